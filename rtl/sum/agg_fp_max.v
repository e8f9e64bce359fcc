// The larger of two floating-point numbers: one node of the sum max. NaN wins, in the one pattern that
// NaN results have; -0 is below +0; infinities are numbers beyond the largest finite one.
//
// LATENCY = 2 cycles from a, b to y; a new pair every cycle. y comes straight from registers.
//
// Not done here: no reset, no enable, no valid bit. It does not count anything; a maximum never
// overflows. Lanes with one operand and lanes of integers have other leaves.

`default_nettype none

module agg_fp_max #(
    parameter integer EXP        = 8,   // bits of the exponent
    parameter integer FRAC       = 23,  // bits of the fraction
    parameter integer INFINITIES = 1    // 0: only all ones is a NaN (fp8e4m3)
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] a,
    input  wire [EXP+FRAC : 0] b,
    output wire [EXP+FRAC : 0] y
);

  generate
    if (EXP < 2) begin : g_exp
      ERROR_exponent_must_have_at_least_2_bits error ();
    end
    if (FRAC < 2) begin : g_frac
      ERROR_fraction_must_have_at_least_2_bits error ();
    end
    if (INFINITIES != 0 && INFINITIES != 1) begin : g_infinity
      ERROR_infinity_must_be_0_or_1 error ();
    end
  endgenerate

  localparam integer SIGN = EXP + FRAC;
  localparam [SIGN:0] QUIET_NAN = {1'b0, {EXP{1'b1}}, 1'b1, {FRAC - 1{INFINITIES == 0}}};

  wire          a_nan = &a[SIGN-1:FRAC] && (INFINITIES == 0 ? &a[FRAC-1:0] : |a[FRAC-1:0]);
  wire          b_nan = &b[SIGN-1:FRAC] && (INFINITIES == 0 ? &b[FRAC-1:0] : |b[FRAC-1:0]);

  // Below the sign the encodings are in the order of the magnitudes.
  reg  [SIGN:0] a_reg;
  reg  [SIGN:0] b_reg;
  reg           nan_reg;
  reg           a_above_reg;  // in magnitude

  always @(posedge clk) begin
    a_reg <= a;
    b_reg <= b;
    nan_reg <= a_nan || b_nan;
    a_above_reg <= a[SIGN-1:0] > b[SIGN-1:0];
  end

  // Of two negative numbers the one of smaller magnitude is larger.
  wire          b_wins = a_reg[SIGN] ? !b_reg[SIGN] || a_above_reg : !b_reg[SIGN] && !a_above_reg;

  reg  [SIGN:0] y_reg;

  always @(posedge clk) begin
    y_reg <= nan_reg ? QUIET_NAN : b_wins ? b_reg : a_reg;
  end

  assign y = y_reg;

endmodule

`default_nettype wire
