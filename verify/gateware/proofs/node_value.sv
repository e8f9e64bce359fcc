// Proves that the `tree` node returns the rounded real sum of its operands, for every pair of
// operands of a small format: section 7.3 of driver/wire/SPEC.md.

`default_nettype none

module node_value #(
    parameter integer EXP        = 4,
    parameter integer FRAC       = 3,
    parameter integer INFINITIES = 1,
    parameter integer LATENCY    = 14
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a,
    input wire [EXP+FRAC:0] b
);

  `include "plain_float.svh"

  wire [SIGN:0] y, a0, b0;
  wire due;

  agg_fp_add #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES)
  ) node (
      .clk(clk),
      .a  (a),
      .b  (b),
      .y  (y)
  );

  one_beat #(
      .WIDTH  (2 * (SIGN + 1)),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({a, b}),
      .held({a0, b0}),
      .due (due)
  );

  wire nan = is_nan(
      a0
  ) || is_nan(
      b0
  ) || (is_infinite(
      a0
  ) && is_infinite(
      b0
  ) && a0[SIGN] != b0[SIGN]);
  wire finite = !nan && !is_infinite(a0) && !is_infinite(b0);

  wire signed [MAG+1:0] sum = value(a0) + value(b0);
  wire right, overflows, inexact, tie;

  plain_rounding #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES),
      .SUM(MAG + 2)
  ) rounding (
      .sum(sum),
      .zero_sign(a0[SIGN] && b0[SIGN]),
      .y(y),
      .right(right),
      .overflows(overflows),
      .inexact(inexact),
      .tie(tie)
  );

  always @* begin
    if (due) begin
      if (nan)
        assert (y == NAN);
        else if (is_infinite(a0))
          assert (y == a0);
          else if (is_infinite(b0))
            assert (y == b0);
            else assert (right);

      cover (is_nan(a0) && is_infinite(b0));
      cover (finite && overflows);
      cover (finite && !overflows && tie && y[FRAC-1:0] == 0);  // rounds into the next binade
      cover (finite && !overflows && inexact && !tie);
      cover (finite && sum == 0 && a0[SIGN-1:0] != 0);
      cover (finite && y[SIGN-1:FRAC] == 0 && a0[SIGN-1:FRAC] != 0 && y[FRAC-1:0] != 0);
    end
  end

endmodule

`default_nettype wire
