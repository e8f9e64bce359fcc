// Rounds a normalized sum to nearest, ties to even, and puts infinities, NaNs and zeros in its place.
//
// inverted, zero, shift, normal and rest are those of agg_window_normalize, and belong to one sum, as
// all inputs do:
//   exponent      that which the sum was normalized with
//   negative      the sign that the sum came with: it is turned over
//   nonfinite     an operand is an infinity or a NaN; then nan, minus of agg_window_special say which,
//                 and, with INFINITY = 1, a sum that is not zero: a NaN
//   all_negative  every operand has a sign of 1
//
//   y     the result; every NaN is the format's one
//   over  the result is an infinity or a NaN though nonfinite is not set
//
// LATENCY = 4 cycles:
//   1  whether to round up, and the exponent
//   2  round
//   3  overflow
//   4  special values
//
// Not done here: whether what is known of the sum suffices to round it.

`default_nettype none

module agg_window_round #(
    parameter integer EXP      = 8,   // bits of the exponent
    parameter integer FRAC     = 23,  // bits of the fraction
    parameter integer INFINITY = 1,   // 0: all ones is a NaN, and there are no infinities (fp8e4m3)
    parameter integer GROWTH   = 3,   // as agg_window_normalize has it
    parameter integer KEEP     = 25   // bits of normal
) (
    input  wire                clk,
    input  wire                inverted,
    input  wire                zero,
    input  wire [     EXP-1:0] exponent,
    input  wire [         5:0] shift,
    input  wire [    KEEP-1:0] normal,
    input  wire                rest,
    input  wire                negative,
    input  wire                nonfinite,
    input  wire                nan,
    input  wire                minus,
    input  wire                all_negative,
    output wire [EXP+FRAC : 0] y,
    output wire                over
);

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (GROWTH < 1 || GROWTH > 6) begin : g_growth
      ERROR_growth_must_be_1_to_6_bits error ();
    end
    if (KEEP < FRAC + 2) begin : g_keep
      ERROR_normal_must_have_two_bits_more_than_a_fraction error ();
    end
  endgenerate

  localparam [EXP:0] MORE = GROWTH[EXP:0] - {{EXP{1'b0}}, 1'b1};
  localparam [EXP:0] NONE = {EXP + 1{1'b0}} - MORE;  // brings the exponent field of a zero to 0

  // -- 1: whether to round up, and the exponent ---------------------------------------------------

  // Of an inverted sum the places below are ones, and one more in the last of them. All ones there
  // make one in the place of half, so what would be a tie is none, and a tie is what was less.
  wire last = normal[KEEP-1-FRAC];
  wire half = normal[KEEP-2-FRAC];
  wire even;  // nothing below half
  wire up = inverted ? half || (even && last) : half && (!even || last);

  wire [9:0] shift_padded = {4'd0, shift};
  wire unused_shift = &shift_padded;  // not all bits, in formats with a short exponent

  // The exponent field is this, with GROWTH - 1 and the leading bit added.
  wire [EXP:0] base = {1'b0, exponent} - shift_padded[EXP:0];

  reg up1_reg;
  reg sign1_reg;
  reg nonfinite1_reg;
  reg nan1_reg;
  reg minus1_reg;
  reg [EXP:0] base1_reg;
  reg [FRAC:0] significand1_reg;

  generate
    if (KEEP > FRAC + 2) begin : g_below
      assign even = normal[KEEP-3-FRAC:0] == {KEEP - 2 - FRAC{inverted}} && !rest;
    end else begin : g_rest
      assign even = !rest;
    end
  endgenerate

  always @(posedge clk) begin
    up1_reg          <= up;
    sign1_reg        <= zero ? all_negative : negative ^ inverted;
    nonfinite1_reg   <= nonfinite;
    nan1_reg         <= nan || (INFINITY != 0 && nonfinite && !zero);
    minus1_reg       <= minus;
    base1_reg        <= base;
    significand1_reg <= normal[KEEP-1-:FRAC+1];
    if (zero) base1_reg <= NONE;
  end

  // -- 2: round -----------------------------------------------------------------------------------

  // A fraction that overflows adds one to the exponent field.
  wire [EXP:0] lead = MORE + {{EXP{1'b0}}, significand1_reg[FRAC]};
  wire [EXP+FRAC:0] below = {base1_reg, {FRAC{1'b0}}};
  wire [EXP+FRAC:0] above = {lead, significand1_reg[FRAC-1:0]};

  reg sign2_reg;
  reg nonfinite2_reg;
  reg nan2_reg;
  reg [EXP+FRAC:0] rounded2_reg;

  always @(posedge clk) begin
    sign2_reg      <= nonfinite1_reg ? minus1_reg : sign1_reg;
    nonfinite2_reg <= nonfinite1_reg;
    nan2_reg       <= nan1_reg;
    rounded2_reg   <= below + above + {{EXP + FRAC{1'b0}}, up1_reg};
  end

  // -- 3: overflow --------------------------------------------------------------------------------

  wire beyond;

  generate
    if (INFINITY != 0) begin : g_infinity
      assign beyond = rounded2_reg[EXP+FRAC] || &rounded2_reg[EXP+FRAC-1:FRAC];
    end else begin : g_nan
      assign beyond = rounded2_reg[EXP+FRAC] || &rounded2_reg[EXP+FRAC-1:0];
    end
  endgenerate

  reg sign3_reg;
  reg beyond3_reg;
  reg over3_reg;
  reg nan3_reg;
  reg [EXP+FRAC-1:0] rounded3_reg;

  always @(posedge clk) begin
    sign3_reg    <= sign2_reg;
    beyond3_reg  <= beyond || nonfinite2_reg;
    over3_reg    <= beyond && !nonfinite2_reg;
    nan3_reg     <= INFINITY != 0 ? nan2_reg : beyond || nan2_reg;
    rounded3_reg <= rounded2_reg[EXP+FRAC-1:0];
  end

  // -- 4: special values --------------------------------------------------------------------------

  // Of a NaN the sign is 0 and the fraction is 100..., or, without infinities, 111....
  localparam [FRAC-1:0] QUIET = INFINITY != 0 ? {1'b1, {FRAC - 1{1'b0}}} : {FRAC{1'b1}};

  reg over_reg;
  reg [EXP+FRAC:0] y_reg;

  always @(posedge clk) begin
    over_reg <= over3_reg;
    y_reg    <= {sign3_reg, rounded3_reg};
    if (beyond3_reg) y_reg[EXP+FRAC-1:0] <= {{EXP{1'b1}}, {FRAC{1'b0}}};
    if (nan3_reg) y_reg <= {1'b0, {EXP{1'b1}}, QUIET};
  end

  assign y = y_reg;
  assign over = over_reg;

endmodule

`default_nettype wire
