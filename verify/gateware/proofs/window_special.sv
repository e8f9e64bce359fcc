// Proves the outputs for infinities, NaNs and signs among all operands, given the aligners' outputs
// for each operand: section 7.4 of driver/wire/SPEC.md.

`default_nettype none

module window_special #(
    parameter integer EXP        = 8,
    parameter integer INFINITIES = 1,
    parameter integer OPERANDS   = 4
) (
    input wire                clk,
    input wire [     EXP-1:0] max,
    input wire [OPERANDS-1:0] top,
    input wire [OPERANDS-1:0] negative
);

  wire special, nonfinite, nan, minus, all_negative;
  agg_window_special #(
      .EXP(EXP),
      .INFINITIES(INFINITIES),
      .OPERANDS(OPERANDS)
  ) specials (
      .clk(clk),
      .max(max),
      .special(special),
      .top(top),
      .negative(negative),
      .nonfinite(nonfinite),
      .nan(nan),
      .minus(minus),
      .all_negative(all_negative)
  );

  wire [EXP-1:0] max0;
  wire [OPERANDS-1:0] top0, negative0;
  wire special_due, due;

  one_beat #(
      .WIDTH  (EXP),
      .LATENCY(1)
  ) beat_max (
      .clk (clk),
      .x   (max),
      .held(max0),
      .due (special_due)
  );

  one_beat #(
      .WIDTH  (2 * OPERANDS),
      .LATENCY(4),
      .START  (2)
  ) beat_operands (
      .clk (clk),
      .x   ({top, negative}),
      .held({top0, negative0}),
      .due (due)
  );

  // top is high for an infinity or a NaN; the largest exponent is then all ones.
  wire some = top0 != 0;

  always @* begin
    if (special_due) assert (special == (INFINITIES && &max0));

    if (due && (!INFINITIES || some == &max0)) begin
      assert (nonfinite == some);
      if (INFINITIES)
        assert (nan == ((top0 & negative0) != 0 && (top0 & ~negative0) != 0));
        else assert (nan == some);
      if (some && !nan) assert (minus == ((top0 & negative0) != 0));
      if (!some) assert (all_negative == &negative0);

      cover (INFINITIES && nan);
      cover (nonfinite && minus && !nan && !all_negative);
      cover (all_negative && !nonfinite);
    end
  end

endmodule

`default_nettype wire
