// Proves that the aligner returns its operand in units of the window's last place, truncated,
// with a mark if bits were lost; with multipliers, too: sections 7.4 and 7.5 of
// driver/wire/SPEC.md.

`default_nettype none

module window_align #(
    parameter integer EXP        = 4,
    parameter integer FRAC       = 3,
    parameter integer INFINITIES = 1,
    parameter integer WINDOW     = 11,
    parameter integer MARK       = 1,
    parameter integer DSP        = 0
) (
    input wire              clk,
    input wire [EXP+FRAC:0] x,
    input wire [   EXP-1:0] max,
    input wire              special
);

  `include "plain_float.svh"

  wire negative, top, mark;
  wire [WINDOW-1:0] cut;
  agg_window_align #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES),
      .WINDOW(WINDOW),
      .MARK(MARK),
      .DSP(DSP)
  ) aligner (
      .clk(clk),
      .x(x),
      .max(max),
      .special(special),
      .negative(negative),
      .top(top),
      .magnitude(cut),
      .mark(mark)
  );

  wire [ SIGN:0] x0;
  wire [EXP-1:0] max0;
  wire special0, signs_due, due;

  one_beat #(
      .WIDTH  (SIGN + 1),
      .LATENCY(3)
  ) beat (
      .clk (clk),
      .x   (x),
      .held(x0),
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
      .LATENCY(DSP != 0 || MARK != 0 || WINDOW > 32 ? 5 : 4),
      .START  (2)
  ) beat_special (
      .clk (clk),
      .x   (special),
      .held(special0),
      .due (due)
  );

  // A zero or a subnormal has exponent 1 and no leading bit.
  wire [EXP-1:0] field = x0[SIGN-1:FRAC];
  wire [EXP-1:0] exponent = field == 0 ? 1 : field;
  wire [EXP-1:0] distance = max0 - exponent;
  wire [WINDOW-1:0] exact = {field != 0, x0[FRAC-1:0], {WINDOW - FRAC - 1{1'b0}}};

  // The preconditions in the leaf's header, which its neighbours guarantee.
  wire asked = max0 >= exponent && special0 == (INFINITIES && &max0);

  always @* begin
    if (signs_due && asked) begin
      assert (negative == x0[SIGN]);
      assert (top == (INFINITIES ? &field : is_nan(x0)));
    end

    if (due && asked) begin
      if (!special0) assert (cut == exact >> distance);
      assert (mark == (MARK != 0 && !special0 && cut << distance != exact));
      // Beside infinities and NaNs, the result is 0 without a NaN.
      if (special0) assert ((cut != 0) == is_nan(x0));

      cover (mark && cut != 0);
      cover (mark && cut == 0 && field != 0);
      cover (!special0 && max0 != field && x0[FRAC-1:0] != 0 && cut << distance == exact);
      cover (special0 && is_infinite(x0));
      cover (special0 && !is_infinite(x0) && !is_nan(x0) && field != 0);
      cover (field == 0 && max0 == 1 && x0[FRAC-1:0] != 0);
    end
  end

endmodule

`default_nettype wire
