// Aligns one operand to the largest exponent of all operands: its magnitude in units of the
// window's last place, truncated.
//
// The window's top bit is the leading bit of a number with exponent max. magnitude is {significand,
// zeros} shifted right by max - exponent; zeros and subnormals have exponent 1. max is at least 1
// and at least the operand's exponent. mark: the truncated bits were not all 0.
//
// Cycles, counted from x:
//   0  x
//   1  max              the largest exponent field of all operands, from a tree that began before
//   2  special          max is of an infinity or NaN (agg_window_special; 0 without infinities)
//   3  negative, top    the sign of x; x itself is infinite or NaN
//   4  magnitude        5 with DSP = 1, with MARK = 1, or if the window is wider than 32 bits
//   5  mark             0 with MARK = 0
//
// If special is high, magnitude is the fraction of an infinity or NaN without its leading bit, and
// 0 for all other operands, and mark is 0. So the sum of magnitudes is 0 exactly if no operand is a
// NaN.
//
// Not done here: the maximum, the sum, and infinities of opposite signs (agg_window_special).

`default_nettype none

module agg_window_align #(
    parameter integer EXP = 8,  // bits in the exponent
    parameter integer FRAC = 23,  // bits in the fraction
    parameter integer INFINITIES = 1,  // 0: all ones is a NaN, no infinities (fp8e4m3)
    parameter integer WINDOW = 28,  // bits in the window
    parameter integer MARK = 0,  // 1: drive mark
    parameter integer DSP = 0  // 1: shift by multipliers, two of 12 by 16 bits in fp32
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

  localparam integer LEVELS = $clog2(WINDOW);  // of the shift; larger distances leave nothing
  localparam [8:0] NEAR = (9'd1 << LEVELS) - 9'd1;

  // -- 1: the significand and its exponent --------------------------------------------------------

  wire           normal = x[EXP+FRAC-1:FRAC] != 0;

  reg            sign1_reg;
  reg            nan1_reg;  // without infinities
  reg  [EXP-1:0] exponent1_reg;
  reg  [ FRAC:0] significand1_reg;

  always @(posedge clk) begin
    sign1_reg        <= x[EXP+FRAC];
    nan1_reg         <= INFINITIES == 0 && &x[EXP+FRAC-1:0];
    exponent1_reg    <= {x[EXP+FRAC-1:FRAC+1], x[FRAC] || !normal};
    significand1_reg <= {normal, x[FRAC-1:0]};
  end

  // -- 2: distance to the largest exponent --------------------------------------------------------

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

  // -- 3: shift amount ----------------------------------------------------------------------------

  wire [8:0] distance = {{9 - EXP{1'b0}}, distance2_reg};
  wire [8:0] steps = distance & NEAR;
  wire       beyond = |(distance & ~NEAR);

  reg        sign3_reg;
  reg        top3_reg;
  reg        none3_reg;  // nothing is left

  always @(posedge clk) begin
    sign3_reg <= sign2_reg;
    top3_reg  <= INFINITIES != 0 ? special && distance == 0 : nan2_reg;
    none3_reg <= beyond || special && steps != 0;
  end

  assign negative = sign3_reg;
  assign top = top3_reg;

  // Places into which only zeros are shifted are cleared by register resets, which take no logic.
  generate
    if (DSP == 0) begin : g_logic
      // -- 3: up to 7 places ----------------------------------------------------------------------

      // Bits that the shifted significand spans; if the window is narrower, it is truncated here.
      localparam integer FINE = WINDOW < FRAC + 8 ? WINDOW : FRAC + 8;

      reg [     2:0] coarse3_reg;  // remaining shift in units of 8
      reg [FINE-1:0] fine3_reg;

      always @(posedge clk) begin
        coarse3_reg <= steps[5:3];
        fine3_reg   <= {significand2_reg, {FINE - FRAC - 1{1'b0}}} >> steps[2:0];
        if (special) fine3_reg[FINE-1] <= 1'b0;
      end

      // -- 4: 8 and 16 places; clears distant operands, and finite ones if special ----------------

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
        wire [15:0] unused_shifted;  // replaced by high4_reg and middle4_reg, at a lower cost
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

      // -- 4 and 5: the mark ----------------------------------------------------------------------

      if (MARK != 0) begin : g_mark
        // eight[k]: a nonzero bit is among those that a shift by 8 k truncates and a shift by 8 (k
        // - 1) does not.
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
        reg [7:0] reach4_reg;  // the groups of bits that are truncated, unless special
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
      // -- 3: power of two; 4: product, up to 15 places to the right; 5: 16 more ------------------

      localparam integer LOW = FRAC > 17 ? 12 : 0;  // bits of the second multiplier
      localparam integer HIGH = FRAC + 1 - LOW;  // bits of the first
      localparam integer PRODUCT = FRAC + 16;

      // A leading bit at the window's top does not count if special.
      wire [FRAC:0] significand = {significand2_reg[FRAC] && !special, significand2_reg[FRAC-1:0]};
      wire [15:0] power = 16'h8000 >> steps[3:0];
      wire [HIGH+15:0] high;
      wire [PRODUCT:0] product;  // the top bit is 0
      wire unused_product = &product;  // truncated bits

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

        // The two parts do not overlap, so no adder is needed.
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
        sixteen3_reg <= steps[4];
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

      wire unused_steps = steps[5];  // covered by beyond
      assign magnitude = magnitude5_reg;
      assign mark = 1'b0;
    end
  endgenerate

endmodule

`default_nettype wire
