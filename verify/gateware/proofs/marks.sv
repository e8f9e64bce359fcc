// Proves that NaNs become canonical where there is no adder, and that NaNs and infinities are
// detected: sections 7.1 and 7.7 of driver/wire/SPEC.md.

`default_nettype none

module marks #(
    parameter integer EXP        = 8,
    parameter integer FRAC       = 23,
    parameter integer INFINITIES = 1,
    parameter integer LATENCY    = 1
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a,
    input wire [EXP+FRAC:0] b
);

  `include "plain_float.svh"

  wire [SIGN:0] y, a0;
  wire [1:0] nonfinite;
  wire due;

  agg_fp_canon #(
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES)
  ) canon (
      .clk(clk),
      .a  (a),
      .y  (y)
  );

  agg_fp_nonfinite #(
      .LANES(2),
      .EXP(EXP),
      .FRAC(FRAC),
      .INFINITIES(INFINITIES)
  ) marker (
      .beat({b, a}),
      .nonfinite(nonfinite)
  );

  one_beat #(
      .WIDTH  (SIGN + 1),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   (a),
      .held(a0),
      .due (due)
  );

  always @* begin
    assert (nonfinite[0] == (is_nan(a) || is_infinite(a)));
    assert (nonfinite[1] == (is_nan(b) || is_infinite(b)));

    if (due) begin
      assert (y == (is_nan(a0) ? NAN : a0));

      cover (is_nan(a0) && a0 != NAN);
      cover (nonfinite == 2'b01 && !is_nan(a));
      cover (!is_nan(a0) && &a0[SIGN-1:FRAC]);
    end
  end

endmodule

`default_nettype wire
