// Proves that normalizer and rounder together round a window's sum to nearest, ties to even:
// section 7.1 of driver/wire/SPEC.md, for every sum and exponent of small formats.

`default_nettype none

module window_round #(
    parameter integer EXP = 4,
    parameter integer FRAC = 3,
    parameter integer INFINITIES = 1,
    parameter integer WIDTH = 10,  // bits in the sum
    parameter integer GROWTH = 2,
    parameter integer BITS = 32,
    parameter integer KEEP = 5,  // bits in the normalized sum
    parameter integer NORMALIZE = 6,  // cycles from exponent, which precedes its sum by one
    parameter integer ROUND = 4
) (
    input wire             clk,
    input wire [WIDTH-1:0] sum,
    input wire [  EXP-1:0] exponent,
    input wire             negative,
    input wire             nonfinite,
    input wire             nan,
    input wire             minus,
    input wire             all_negative
);

  `include "plain_float.svh"

  wire inverted, zero, rest, over, due;
  wire [5:0] shift;
  wire [KEEP-1:0] normal;
  wire [SIGN:0] y;
  wire [WIDTH-1:0] sum0;
  wire [EXP-1:0] exponent0;
  wire negative0, nonfinite0, nan0, minus0, all_negative0;

  agg_window_normalize #(
      .EXP(EXP),
      .WIDTH(WIDTH),
      .GROWTH(GROWTH),
      .BITS(BITS),
      .KEEP(KEEP)
  ) normalizer (
      .clk(clk),
      .sum(sum),
      .exponent(exponent),
      .inverted(inverted),
      .zero(zero),
      .shift(shift),
      .normal(normal),
      .rest(rest)
  );

  agg_window_round #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES),
      .GROWTH(GROWTH),
      .KEEP(KEEP)
  ) rounder (
      .clk(clk),
      .inverted(inverted),
      .zero(zero),
      .exponent(exponent_late),
      .shift(shift),
      .normal(normal),
      .rest(rest),
      .negative(negative),
      .nonfinite(nonfinite),
      .nan(nan),
      .minus(minus),
      .all_negative(all_negative),
      .y(y),
      .over(over)
  );

  wire [EXP-1:0] exponent_late;
  agg_delay #(
      .WIDTH (EXP),
      .CYCLES(NORMALIZE)
  ) delay (
      .clk(clk),
      .d  (exponent),
      .q  (exponent_late)
  );

  one_beat #(
      .WIDTH  (EXP),
      .LATENCY(NORMALIZE + ROUND)
  ) beat (
      .clk (clk),
      .x   (exponent),
      .held(exponent0),
      .due (due)
  );

  one_beat #(
      .WIDTH(WIDTH),
      .START(1)
  ) beat_sum (
      .clk (clk),
      .x   (sum),
      .held(sum0),
      .due ()
  );

  one_beat #(
      .WIDTH(5),
      .START(NORMALIZE)
  ) beside (
      .clk (clk),
      .x   ({negative, nonfinite, nan, minus, all_negative}),
      .held({negative0, nonfinite0, nan0, minus0, all_negative0}),
      .due ()
  );

  // The sum's bit WIDTH-2 is the leading bit of a number with the exponent field exponent + GROWTH.
  // So its lowest bit is worth 2^(exponent + GROWTH - 1 + FRAC - (WIDTH - 2)) smallest subnormals:
  // 2^exponent units; the largest number has MAG + FINER bits of them.
  localparam integer FINER = WIDTH - 1 - GROWTH - FRAC;
  localparam integer LONG = (1 << EXP) + WIDTH;
  wire signed [LONG-1:0] signed_sum = $signed(sum0);
  wire signed [LONG-1:0] turned = negative0 ? -signed_sum : signed_sum;
  wire signed [LONG-1:0] exact = turned << exponent0;

  wire right, overflows, inexact, tie;
  plain_rounding #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES),
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

  wire number = !nonfinite0 && !nan0 && exponent0 != 0 && !(INFINITIES && &exponent0);

  always @* begin
    if (due && number) begin
      assert (right);
      assert (over == overflows);

      cover (overflows);
      cover (tie && y[0] == 0 && negative0 && exact < 0);
      cover (tie && y[FRAC-1:0] == 0 && !overflows && exact < 0 && !negative0);
      cover (inexact && y[SIGN-1:FRAC] == 0 && sum0[WIDTH-1]);
      cover (sum0 == 0 && y[SIGN]);
    end

    if (due && nonfinite0) begin
      assert (!over);
      if (nan0 || (INFINITIES && sum0 != 0)) assert (y == NAN);
      if (INFINITIES && !nan0 && sum0 == 0) assert (is_infinite(y) && y[SIGN] == minus0);
    end
  end

endmodule

`default_nettype wire
