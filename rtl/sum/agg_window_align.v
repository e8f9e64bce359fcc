// Aligns one operand to the largest exponent of all: its magnitude as a multiple of the window's last
// place, cut towards zero.
//
// The top bit of the window is the leading bit of a number with the exponent max. magnitude is
// {significand, zeros} shifted right by max - exponent, where a zero or a subnormal has the exponent 1;
// max is at least 1 and no smaller than the operand's. mark says that bits other than 0 were cut off.
//
// Cycles, counted from x:
//   0  x
//   1  max              the largest exponent field of all operands, from a tree that began before
//   2  special          max says infinity or NaN (agg_window_special; 0 in formats without infinities)
//   3  negative, top    the sign of x; x itself is an infinity or a NaN
//   4  magnitude        5 with DSP = 1, with MARK = 1, or if the window has more than 32 bits
//   5  mark             0 with MARK = 0
//
// When special is high, magnitude is the fraction of an infinity or a NaN without a leading bit, and 0
// for all other operands, and nothing is marked: then a sum of magnitudes is 0 exactly if no operand
// is a NaN.
//
// Not done here: no maximum, no sum; whether infinities of both signs meet is agg_window_special's.

`default_nettype none

module agg_window_align #(
    parameter integer EXP = 8,  // bits of the exponent
    parameter integer FRAC = 23,  // bits of the fraction
    parameter integer INFINITY = 1,  // 0: all ones is a NaN, and there are no infinities (fp8e4m3)
    parameter integer WINDOW = 28,  // bits of the window
    parameter integer MARK = 0,  // 1: say what was cut off
    parameter integer DSP = 0  // 1: shift with multipliers, two of 12 by 16 bits in fp32
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] x,
    input  wire [     EXP-1:0] max,
    input  wire                special,
    output wire                negative,
    output wire                top,
    output wire [  WINDOW-1:0] magnitude,
    output wire                mark
);

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (WINDOW <= FRAC || WINDOW > 56) begin : g_window
      ERROR_window_must_hold_a_significand_and_have_56_bits_at_most error ();
    end
    if (MARK != 0 && WINDOW < FRAC + 8) begin : g_mark_window
      ERROR_window_must_have_8_bits_more_than_a_fraction_to_mark error ();
    end
    if (DSP != 0 && (MARK != 0 || WINDOW > 32)) begin : g_dsp_window
      ERROR_multipliers_shift_in_32_bits_at_most_and_do_not_mark error ();
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
      // -- 3: up to 7 places ----------------------------------------------------------------------

      // Bits that the significand is spread over then; what a window lacks of them is cut off here.
      localparam integer FINE = WINDOW < FRAC + 8 ? WINDOW : FRAC + 8;

      reg [     2:0] coarse3_reg;  // eights of places to go
      reg [FINE-1:0] fine3_reg;

      always @(posedge clk) begin
        coarse3_reg <= near[5:3];
        fine3_reg   <= {significand2_reg, {FINE - FRAC - 1{1'b0}}} >> near[2:0];
        if (special) fine3_reg[FINE-1] <= 1'b0;
      end

      // -- 4: 8 and 16 places; nothing is left of what is far, or no infinity nor NaN --------------

      wire [WINDOW-1:0] word3;
      wire [WINDOW-1:0] word4;

      if (WINDOW > FINE) begin : g_zeros
        assign word3 = {fine3_reg, {WINDOW - FINE{1'b0}}};
      end else begin : g_no_zeros
        assign word3 = fine3_reg;
      end

      if (WINDOW > 16) begin : g_wide
        wire [7:0] first = word3[WINDOW-1-:8];
        wire [7:0] second = word3[WINDOW-9-:8];
        wire [15:0] unused_shifted;  // what high4_reg and middle4_reg are made of more cheaply
        wire [WINDOW-17:0] low;
        assign {unused_shifted, low} = word3 >> {coarse3_reg[1:0], 3'd0};

        reg [        7:0] high4_reg;
        reg [        7:0] middle4_reg;
        reg [WINDOW-17:0] low4_reg;

        always @(posedge clk) begin
          high4_reg   <= first;
          middle4_reg <= coarse3_reg[0] ? first : second;
          low4_reg    <= low;
          if (none3_reg || coarse3_reg[1:0] != 0) high4_reg <= 8'd0;
          if (none3_reg || coarse3_reg[1]) middle4_reg <= 8'd0;
          if (none3_reg) low4_reg <= {WINDOW - 16{1'b0}};
        end

        assign word4 = {high4_reg, middle4_reg, low4_reg};
      end else begin : g_narrow
        reg [WINDOW-1:0] word4_reg;

        always @(posedge clk) begin
          word4_reg <= word3 >> {coarse3_reg[1:0], 3'd0};
          if (none3_reg) word4_reg <= {WINDOW{1'b0}};
        end

        assign word4 = word4_reg;
      end

      // -- 5: 32 places ---------------------------------------------------------------------------

      if (WINDOW > 32) begin : g_long
        reg               far4_reg;
        reg [       31:0] high5_reg;
        reg [WINDOW-33:0] low5_reg;

        always @(posedge clk) begin
          far4_reg  <= coarse3_reg[2];
          high5_reg <= word4[WINDOW-1-:32];
          low5_reg  <= far4_reg ? word4[WINDOW-1-:WINDOW-32] : word4[WINDOW-33:0];
          if (far4_reg) high5_reg <= 32'd0;
        end

        assign magnitude = {high5_reg, low5_reg};
      end else if (MARK != 0) begin : g_wait
        reg [WINDOW-1:0] word5_reg;
        always @(posedge clk) word5_reg <= word4;
        assign magnitude = word5_reg;
      end else begin : g_short
        wire unused_far = coarse3_reg[2];
        assign magnitude = word4;
      end

      // -- 4 and 5: whether any of what was cut off is not 0 --------------------------------------

      if (MARK != 0) begin : g_mark
        // eight[k]: bits other than 0 are among those that a shift by 8 k cuts off, and one by less
        // does not.
        reg [7:0] eight;
        integer k, i, j;

        always @* begin
          eight = 8'd0;
          for (k = 0; k < 8; k = k + 1) begin
            for (i = 0; i < FINE; i = i + 1) begin
              if (i < FINE + 8 * k - WINDOW && (k == 0 || i >= FINE + 8 * k - 8 - WINDOW)) begin
                eight[k] = eight[k] || fine3_reg[i];
              end
            end
          end
        end

        reg       special3_reg;
        reg [7:0] eight4_reg;
        reg [7:0] reach4_reg;  // the eights that are cut off, if that counts
        reg       mark5_reg;

        always @(posedge clk) begin
          special3_reg <= special;
          eight4_reg   <= eight;
          for (j = 0; j < 8; j = j + 1) begin
            reach4_reg[j] <= !special3_reg && (none3_reg || coarse3_reg >= j[2:0]);
          end
          mark5_reg <= |(eight4_reg & reach4_reg);
        end

        assign mark = mark5_reg;
      end else begin : g_no_mark
        assign mark = 1'b0;
      end
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

      wire unused_near = near[5];  // far says it
      assign magnitude = magnitude5_reg;
      assign mark = 1'b0;
    end
  endgenerate

endmodule

`default_nettype wire
