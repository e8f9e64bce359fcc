// Rounds a normalized sum to nearest, ties to even, and substitutes infinities, NaNs and zeros.
//
// inverted, zero, shift, normal and rest are the outputs of agg_window_normalize. All inputs belong
// to one sum:
//   exponent      the exponent input of agg_window_normalize
//   negative      the sum's relative sign: negates the sum
//   nonfinite     an operand is infinite or NaN. Then nan and minus of agg_window_special give the
//                 result, and with INFINITIES = 1 a nonzero sum means NaN, too
//   all_negative  every operand has sign 1
//
//   y     the result; a NaN is the format's canonical one
//   over  the result is infinite or NaN although nonfinite is low
//
// LATENCY = 4 cycles:
//   1  rounding decision, exponent
//   2  round
//   3  overflow
//   4  special values
//
// Not done here: deciding whether the sum suffices for rounding (sum exact does).

`default_nettype none

module agg_window_round #(
    parameter integer EXP = 8,  // bits in the exponent
    parameter integer FRAC = 23,  // bits in the fraction
    parameter integer INFINITIES = 1,  // 0: all ones is a NaN, no infinities (fp8e4m3)
    parameter integer GROWTH = 3,  // as in agg_window_normalize
    parameter integer KEEP = 25  // bits in normal
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
  localparam [EXP:0] NONE = {EXP + 1{1'b0}} - MORE;  // makes the exponent field of a zero 0

  // -- 1: rounding decision, exponent -------------------------------------------------------------

  // An inverted sum has ones below its places, plus a unit in the last. All ones there carry into
  // the half place: an apparent tie is none, and the value below it is one.
  wire last = normal[KEEP-1-FRAC];
  wire half = normal[KEEP-2-FRAC];
  wire even;  // nothing is below the half place
  wire up = inverted ? half || (even && last) : half && (!even || last);

  wire [9:0] shift_padded = {4'd0, shift};
  wire unused_shift = &shift_padded;  // short exponents do not use all bits

  // The exponent field is base plus GROWTH - 1 plus the leading bit.
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
    nan1_reg         <= nan || (INFINITIES != 0 && nonfinite && !zero);
    minus1_reg       <= minus;
    base1_reg        <= base;
    significand1_reg <= normal[KEEP-1-:FRAC+1];
    if (zero) base1_reg <= NONE;
  end

  // -- 2: round -----------------------------------------------------------------------------------

  // A fraction that overflows increments the exponent field.
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
    if (INFINITIES != 0) begin : g_infinity
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
    nan3_reg     <= INFINITIES != 0 ? nan2_reg : beyond || nan2_reg;
    rounded3_reg <= rounded2_reg[EXP+FRAC-1:0];
  end

  // -- 4: special values --------------------------------------------------------------------------

  // A NaN has sign 0 and fraction 100..., or, without infinities, 111....
  localparam [FRAC-1:0] QUIET = INFINITIES != 0 ? {1'b1, {FRAC - 1{1'b0}}} : {FRAC{1'b1}};

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
