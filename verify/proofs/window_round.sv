// Proves that normalizer and rounder together round the sum of a window to nearest, ties to even: the
// rounding of section 7.1 of driver/wire/SPEC.md, for every sum and exponent of small formats.

`default_nettype none

module window_round #(
    parameter integer EXP       = 4,
    parameter integer FRAC      = 3,
    parameter integer INFINITY  = 1,
    parameter integer WIDTH     = 10,  // of the sum
    parameter integer GROWTH    = 2,
    parameter integer BITS      = 32,
    parameter integer NORMALIZE = 4,   // cycles
    parameter integer ROUND     = 3
) (
    input wire             clk,
    input wire [WIDTH-1:0] sum,
    input wire [  EXP-1:0] exponent,
    input wire             sticky,
    input wire             negative,
    input wire             nonfinite,
    input wire             nan,
    input wire             minus,
    input wire             all_negative
);

  `include "plain_float.svh"

  wire inverted, zero, over, due;
  wire [   EXP:0] room;
  wire [BITS-1:0] normal;
  wire [  SIGN:0] y;
  wire [WIDTH-1:0] sum0;
  wire [EXP-1:0] exponent0;
  wire sticky0, negative0, nonfinite0, nan0, minus0, all_negative0;

  agg_window_normalize #(
      .EXP(EXP),
      .WIDTH(WIDTH),
      .GROWTH(GROWTH),
      .BITS(BITS)
  ) normalizer (
      .clk(clk),
      .sum(sum),
      .exponent(exponent),
      .inverted(inverted),
      .zero(zero),
      .room(room),
      .normal(normal)
  );

  agg_window_round #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITY(INFINITY),
      .BITS(BITS)
  ) rounder (
      .clk(clk),
      .inverted(inverted),
      .zero(zero),
      .room(room),
      .normal(normal),
      .sticky(sticky),
      .negative(negative),
      .nonfinite(nonfinite),
      .nan(nan),
      .minus(minus),
      .all_negative(all_negative),
      .y(y),
      .over(over)
  );

  one_beat #(
      .WIDTH  (WIDTH + EXP),
      .LATENCY(NORMALIZE + ROUND)
  ) beat (
      .clk (clk),
      .x   ({sum, exponent}),
      .held({sum0, exponent0}),
      .due (due)
  );

  one_beat #(
      .WIDTH(6),
      .START(NORMALIZE)
  ) beside (
      .clk (clk),
      .x   ({sticky, negative, nonfinite, nan, minus, all_negative}),
      .held({sticky0, negative0, nonfinite0, nan0, minus0, all_negative0}),
      .due ()
  );

  // The sum's bit WIDTH-2 is the leading bit of a number with the exponent field exponent + GROWTH,
  // so its lowest bit is worth 2^(exponent + GROWTH - 1 + FRAC - (WIDTH - 2)) smallest subnormals:
  // 2^exponent of the units here, of which the largest number has MAG + FINER bits.
  localparam integer FINER = WIDTH - 1 - GROWTH - FRAC;
  localparam integer LONG = (1 << EXP) + WIDTH;
  wire signed [LONG-1:0] signed_sum = $signed(sum0);
  wire signed [LONG-1:0] turned = negative0 ? -signed_sum : signed_sum;
  wire signed [LONG-1:0] exact = turned << exponent0;

  wire right, overflows, inexact, tie;
  plain_rounding #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITY(INFINITY),
      .SUM(LONG),
      .FINER(FINER)
  ) rounding (
      .sum(exact),
      .zero_sign(all_negative0),
      .y(y),
      .right(right),
      .overflows(overflows),
      .inexact(inexact),
      .tie(tie)
  );

  wire number = !nonfinite0 && !nan0 && exponent0 != 0 && !(INFINITY && &exponent0);

  always @* begin
    if (due && number && !sticky0) begin
      assert (right);
      assert (over == overflows);

      cover (overflows);
      cover (tie && y[0] == 0 && negative0 && exact < 0);
      cover (tie && y[FRAC-1:0] == 0 && !overflows && exact < 0 && !negative0);
      cover (inexact && y[SIGN-1:FRAC] == 0 && sum0[WIDTH-1]);
      cover (sum0 == 0 && y[SIGN]);
    end

    // Places below the sum, which bring it to no tie and past none: nothing changes but ties.
    if (due && number && sticky0 && !tie) assert (right);

    if (due && nonfinite0) begin
      if (nan0 || (INFINITY && sum0 != 0))
        assert (y == NAN);
        else if (INFINITY) assert (is_infinite(y) && y[SIGN] == minus0);
      assert (!over);
    end
  end

endmodule

`default_nettype wire
