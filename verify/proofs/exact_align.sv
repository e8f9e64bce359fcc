// Proves that the aligner of `exact` gives its operand as a multiple of the window's last place, cut
// towards zero, with a mark below where that cut anything off, and inverted where its sign is not the
// base's.

`default_nettype none

module exact_align #(
    parameter integer EXP      = 4,
    parameter integer FRAC     = 3,
    parameter integer INFINITY = 1,
    parameter integer WINDOW   = 12,
    parameter integer MARK     = 1
) (
    input wire              clk,
    input wire [EXP+FRAC:0] x,
    input wire              base,
    input wire [   EXP-1:0] max,
    input wire              special
);

  `include "plain_float.svh"

  wire negative, top, turn, lost;
  wire [WINDOW+MARK:0] addend;
  agg_exact_align #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITY(INFINITY),
      .WINDOW(WINDOW),
      .MARK(MARK)
  ) aligner (
      .clk(clk),
      .x(x),
      .base(base),
      .max(max),
      .special(special),
      .negative(negative),
      .top(top),
      .addend(addend),
      .turn(turn),
      .lost(lost)
  );

  wire [ SIGN:0] x0;
  wire [EXP-1:0] max0;
  wire base0, special0, signs_due, due;

  one_beat #(
      .WIDTH  (SIGN + 2),
      .LATENCY(3)
  ) beat (
      .clk (clk),
      .x   ({x, base}),
      .held({x0, base0}),
      .due (signs_due)
  );

  one_beat #(
      .WIDTH(EXP),
      .START(1)
  ) beat_max (
      .clk (clk),
      .x   (max),
      .held(max0),
      .due ()
  );

  one_beat #(
      .WIDTH  (1),
      .LATENCY(5),
      .START  (2)
  ) beat_special (
      .clk (clk),
      .x   (special),
      .held(special0),
      .due (due)
  );

  // A zero or a subnormal has the exponent 1, and no leading bit.
  wire [EXP-1:0] field = x0[SIGN-1:FRAC];
  wire [EXP-1:0] exponent = field == 0 ? 1 : field;
  wire [EXP-1:0] distance = max0 - exponent;
  wire [WINDOW-1:0] exact = {field != 0, x0[FRAC-1:0], {WINDOW - FRAC - 1{1'b0}}};
  wire [WINDOW-1:0] cut = exact >> distance;
  wire mark = cut << distance != exact;
  wire turned = x0[SIGN] != base0;

  // The addend without its being turned over.
  wire [WINDOW+MARK:0] upright = turn ? ~addend : addend;

  // What the header of the leaf asks for, and what its neighbours promise.
  wire asked = max0 >= exponent && special0 == (INFINITY && &max0);

  always @* begin
    if (signs_due && asked) begin
      assert (negative == x0[SIGN]);
      assert (top == (INFINITY ? &field : is_nan(x0)));
    end

    if (due && asked) begin
      assert (turn == (turned && !special0));
      assert (!upright[WINDOW+MARK]);
      if (!special0) assert (upright[WINDOW+MARK-1:MARK] == cut);
      if (!special0 && MARK) assert (lost == mark && upright[0] == mark);
      // Beside infinities and NaNs there is 0 where no NaN is.
      if (special0) assert (!lost && (addend != 0) == is_nan(x0));

      cover (mark && cut != 0 && turn);
      cover (mark && cut == 0 && field != 0);
      cover (!mark && max0 != field && x0[FRAC-1:0] != 0 && !special0);
      cover (special0 && is_infinite(x0) && turned);
      cover (special0 && !is_infinite(x0) && !is_nan(x0) && field != 0);
      cover (field == 0 && max0 == 1 && x0[FRAC-1:0] != 0);
    end
  end

endmodule

`default_nettype wire
