// Aligns one operand to the largest exponent of all: its magnitude as a multiple of the window's last
// place, cut towards zero.
//
// The top bit of the window is the leading bit of a number with the exponent max. magnitude is
// {significand, zeros} shifted right by max - exponent, where a zero or a subnormal has the exponent 1;
// max is at least 1 and no smaller than the operand's.
//
// Cycles, counted from x:
//   0  x
//   1  max            the largest exponent field of all operands, from a tree that began before
//   2  special        max says infinity or NaN (agg_window_special; 0 in formats without infinities)
//   3  negative, top  the sign of x; x itself is an infinity or a NaN
//   4  magnitude      5 with DSP = 1
//
// When special is high, magnitude is the fraction of an infinity or a NaN without a leading bit, and 0
// for all other operands: then a sum of magnitudes is 0 exactly if no operand is a NaN.
//
// Not done here: no maximum, no sum, and no word of what was cut off; whether infinities of both
// signs meet is agg_window_special's.

`default_nettype none

module agg_window_align #(
    parameter integer EXP = 8,  // bits of the exponent
    parameter integer FRAC = 23,  // bits of the fraction
    parameter integer INFINITY = 1,  // 0: all ones is a NaN, and there are no infinities (fp8e4m3)
    parameter integer WINDOW = 28,  // bits of the window
    parameter integer DSP = 0  // 1: shift with multipliers, two of 12 by 16 bits in fp32
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] x,
    input  wire [     EXP-1:0] max,
    input  wire                special,
    output wire                negative,
    output wire                top,
    output wire [  WINDOW-1:0] magnitude
);

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (WINDOW <= FRAC || WINDOW > 32) begin : g_window
      ERROR_window_must_hold_a_significand_and_have_32_bits_at_most error ();
    end
  endgenerate

  localparam integer LEVELS = $clog2(WINDOW);  // of the shift; what is further away leaves nothing
  localparam [8:0] NEAR = (9'd1 << LEVELS) - 9'd1;

  // -- 1: the significand and its exponent --------------------------------------------------------

  wire           normal = x[EXP+FRAC-1:FRAC] != 0;

  reg            sign1_reg;
  reg            nan1_reg;  // without infinities
  reg  [EXP-1:0] exponent1_reg;
  reg  [ FRAC:0] significand1_reg;

  always @(posedge clk) begin
    sign1_reg        <= x[EXP+FRAC];
    nan1_reg         <= INFINITY == 0 && &x[EXP+FRAC-1:0];
    exponent1_reg    <= {x[EXP+FRAC-1:FRAC+1], x[FRAC] || !normal};
    significand1_reg <= {normal, x[FRAC-1:0]};
  end

  // -- 2: the distance to the largest exponent ----------------------------------------------------

  reg           sign2_reg;
  reg           nan2_reg;
  reg [EXP-1:0] distance2_reg;
  reg [ FRAC:0] significand2_reg;

  always @(posedge clk) begin
    sign2_reg        <= sign1_reg;
    nan2_reg         <= nan1_reg;
    distance2_reg    <= max - exponent1_reg;
    significand2_reg <= significand1_reg;
  end

  // -- 3: how far to shift ------------------------------------------------------------------------

  wire [8:0] distance = {{9 - EXP{1'b0}}, distance2_reg};
  wire [8:0] near = distance & NEAR;
  wire       far = |(distance & ~NEAR);

  reg        sign3_reg;
  reg        top3_reg;
  reg        none3_reg;  // nothing is left

  always @(posedge clk) begin
    sign3_reg <= sign2_reg;
    top3_reg  <= INFINITY != 0 ? special && distance == 0 : nan2_reg;
    none3_reg <= far || special && near != 0;
  end

  assign negative = sign3_reg;
  assign top = top3_reg;

  // Where nothing comes from above, places are cleared at their registers, which takes no logic.
  generate
    if (DSP == 0) begin : g_logic
      // -- 3: up to 7 places; 4: eights of places -------------------------------------------------

      reg [       1:0] coarse3_reg;
      reg [WINDOW-1:0] fine3_reg;
      reg [WINDOW-1:0] magnitude4_reg;

      always @(posedge clk) begin
        coarse3_reg <= near[4:3];
        fine3_reg   <= {significand2_reg, {WINDOW - FRAC - 1{1'b0}}} >> near[2:0];
        if (special) fine3_reg[WINDOW-1] <= 1'b0;
      end

      if (WINDOW > 16) begin : g_wide
        wire [7:0] first = fine3_reg[WINDOW-1-:8];
        wire [7:0] second = fine3_reg[WINDOW-9-:8];
        always @(posedge clk) begin
          magnitude4_reg <= fine3_reg >> {coarse3_reg, 3'd0};
          magnitude4_reg[WINDOW-1-:16] <= {first, coarse3_reg[0] ? first : second};
          if (none3_reg || coarse3_reg != 0) magnitude4_reg[WINDOW-1-:8] <= 8'd0;
          if (none3_reg || coarse3_reg[1]) magnitude4_reg[WINDOW-9-:8] <= 8'd0;
          if (none3_reg) magnitude4_reg[WINDOW-17:0] <= {WINDOW - 16{1'b0}};
        end
      end else begin : g_narrow
        always @(posedge clk) begin
          magnitude4_reg <= fine3_reg >> {coarse3_reg, 3'd0};
          if (none3_reg) magnitude4_reg <= {WINDOW{1'b0}};
        end
      end

      assign magnitude = magnitude4_reg;
    end else begin : g_dsp
      // -- 3: a power of two; 4: times that, up to 15 places to the right; 5: sixteen more --------

      localparam integer LOW = FRAC > 17 ? 12 : 0;  // bits of a second multiplier
      localparam integer HIGH = FRAC + 1 - LOW;  // bits of the first
      localparam integer PRODUCT = FRAC + 16;

      // A leading bit that is the top of the window does not count beside infinities and NaNs.
      wire [FRAC:0] significand = {significand2_reg[FRAC] && !special, significand2_reg[FRAC-1:0]};
      wire [15:0] power = 16'h8000 >> near[3:0];
      wire [HIGH+15:0] high;
      wire [PRODUCT:0] product;  // its top bit is 0
      wire unused_product = &product;  // what is cut off

      agg_window_multiply #(
          .A(HIGH),
          .B(16)
      ) u_high (
          .clk(clk),
          .a  (significand[FRAC:LOW]),
          .b  (power),
          .y  (high)
      );

      if (LOW > 0) begin : g_two
        wire [LOW+15:0] low;

        agg_window_multiply #(
            .A(LOW),
            .B(16)
        ) u_low (
            .clk(clk),
            .a  (significand[LOW-1:0]),
            .b  (power),
            .y  (low)
        );

        // Both parts of a shifted number: no sum is needed.
        assign product = {high, {LOW{1'b0}}} | {{HIGH{1'b0}}, low};
      end else begin : g_one
        assign product = high;
      end

      reg none4_reg;
      reg sixteen3_reg;
      reg sixteen4_reg;
      reg [WINDOW-1:0] magnitude5_reg;

      always @(posedge clk) begin
        none4_reg    <= none3_reg;
        sixteen3_reg <= near[4];
        sixteen4_reg <= sixteen3_reg;
      end

      if (WINDOW > 16) begin : g_wide
        always @(posedge clk) begin
          magnitude5_reg[WINDOW-1-:16] <= product[PRODUCT-1-:16];
          magnitude5_reg[WINDOW-17:0] <= sixteen4_reg ? product[PRODUCT-1-:WINDOW-16] :
              product[PRODUCT-17-:WINDOW-16];
          if (none4_reg || sixteen4_reg) magnitude5_reg[WINDOW-1-:16] <= 16'd0;
          if (none4_reg) magnitude5_reg[WINDOW-17:0] <= {WINDOW - 16{1'b0}};
        end
      end else begin : g_narrow
        wire unused_sixteen = sixteen4_reg;
        always @(posedge clk) begin
          magnitude5_reg <= product[PRODUCT-1-:WINDOW];
          if (none4_reg) magnitude5_reg <= {WINDOW{1'b0}};
        end
      end

      assign magnitude = magnitude5_reg;
    end
  endgenerate

endmodule

`default_nettype wire
