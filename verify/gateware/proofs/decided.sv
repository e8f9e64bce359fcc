// Proves the rule by which `exact` decides that a window sufficed: a decided sum rounds
// like the real sum, section 7.5 of driver/wire/SPEC.md. The widths are those of a
// generated lane, but a shorter exponent lets a solver represent all numbers as
// integers. FIXED = 1 leaves one exponent, from which no decided shift reaches a
// subnormal: all values are then alike but for overflow. Every operand that lost bits
// has a one in the sticky place, below the window. Its magnitude exceeds its part in the
// window by less than two units of that place, so the mark is off by less than one. So a
// sum with one loser is odd and off by less than one; with several, each is off by less
// than one. Half-way points are whole numbers of units, so one point between two
// represents all.

`default_nettype none

module decided #(
    parameter integer EXP = 5,
    parameter integer FIXED = 0,
    parameter integer NORMALIZE = 6,  // cycles from exponent, which precedes its sum by one
    parameter integer ROUND = 4,
    parameter integer DECIDE = 2,
    `include "window.vh"  // FRAC, WIDTH, GROWTH, BITS, KEEP, PLACES, NEAR, FAR, ONE, OPERANDS
) (
    input wire clk,
    input wire [WIDTH-1:0] sum,
    input wire [EXP-1:0] exponent,
    input wire negative,
    input wire all_negative,
    input wire some,
    input wire several,
    input wire signed [7:0] off  // excess of the real sum, in half units of the sticky place
);

  localparam integer INFINITIES = 1;
  `include "plain_float.svh"

  wire inverted, zero, rest, over, undecided, due;
  wire [5:0] shift;
  wire [KEEP-1:0] normal;
  wire [SIGN:0] y;
  wire [EXP-1:0] exponent_late;
  wire [WIDTH-1:0] sum0;
  wire [EXP-1:0] exponent0;
  wire negative0, all_negative0, some0, several0;
  wire signed [7:0] off0;

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

  agg_delay #(
      .WIDTH (EXP),
      .CYCLES(NORMALIZE)
  ) delay (
      .clk(clk),
      .d  (exponent),
      .q  (exponent_late)
  );

  agg_exact_decide #(
      .PLACES(PLACES),
      .NEAR(NEAR),
      .FAR(FAR),
      .ONE(ONE)
  ) decision (
      .clk(clk),
      .some(some),
      .several(several),
      .shift(shift),
      .normal(normal[PLACES:0]),
      .undecided(undecided)
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
      .nonfinite(1'b0),
      .nan(1'b0),
      .minus(1'b0),
      .all_negative(all_negative),
      .y(y),
      .over(over)
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
      .WIDTH(WIDTH + 8),
      .START(1)
  ) beat_sum (
      .clk (clk),
      .x   ({sum, off}),
      .held({sum0, off0}),
      .due ()
  );

  one_beat #(
      .WIDTH(4),
      .START(NORMALIZE)
  ) beside (
      .clk (clk),
      .x   ({negative, all_negative, some, several}),
      .held({negative0, all_negative0, some0, several0}),
      .due ()
  );

  wire [5:0] shift0;
  wire [PLACES:0] places0;  // the half place and those below it
  one_beat #(
      .WIDTH(PLACES + 7),
      .START(NORMALIZE)
  ) normalized (
      .clk (clk),
      .x   ({shift, normal[PLACES:0]}),
      .held({shift0, places0}),
      .due ()
  );

  wire undecided0;
  agg_delay #(
      .WIDTH (1),
      .CYCLES(ROUND - DECIDE)
  ) hold (
      .clk(clk),
      .d  (undecided),
      .q  (undecided0)
  );

  // As in window_round.sv, but in half units of the sticky place.
  localparam integer FINER = WIDTH - 1 - GROWTH - FRAC + 1;
  localparam integer LONG = (1 << EXP) + WIDTH + 1;
  wire signed [LONG-1:0] halves = 2 * $signed(sum0) + off0;
  wire signed [LONG-1:0] exact = (negative0 ? -halves : halves) << exponent0;

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

  // No member has places below that of the smallest subnormal, so a window that extends below it
  // loses nothing.
  localparam integer WINDOW = WIDTH - GROWTH - 2;
  wire lossy = exponent0 > WINDOW - FRAC;

  // The operand with the largest exponent loses nothing.
  wire signed [7:0] most = several0 ? 2 * (OPERANDS - 1) - 1 : some0 ? 1 : 0;
  wire possible = (some0 ? lossy && (several0 || sum0[0]) : !several0 && !sum0[0]) &&
      -most <= off0 && off0 <= most;
  // Too close to a half: equal to it or one less, in the places that count.
  localparam [PLACES:0] HALF = {1'b1, {PLACES{1'b0}}};
  wire [5:0] coarse = shift0 > NEAR ? FAR - NEAR : 0;
  wire [PLACES:0] from_half = (places0 >> coarse) - (HALF >> coarse);
  wire close = from_half == 0 || &from_half;

  wire number = (!FIXED || exponent0 == {EXP{1'b1}} - 3'd7) && exponent0 != 0 && !(&exponent0);

  always @* begin
    if (due && number && possible) begin
      if (!undecided0) assert (right);
      // It leaves no more sums undecided than its header states.
      if (!some0) assert (!undecided0);
      if (some0 && !several0) assert (undecided0 == (shift0 > ONE));
      if (several0) assert (undecided0 == (shift0 > FAR || close));

      cover (undecided0 && right && off0 != 0);
      cover (undecided0 && !right && several0);
      cover (undecided0 && !right && !several0);
      cover (!undecided0 && several0 && off0 == most && shift0 != 0);
      cover (!undecided0 && !several0 && some0);
    end
  end

endmodule

`default_nettype wire
