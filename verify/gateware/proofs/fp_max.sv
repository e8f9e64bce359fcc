// Proves that a node of max is the larger of its operands, in any order of theirs: section 7.10 of
// driver/wire/SPEC.md. Numbers are compared by a key here: the encodings of positive numbers above those of
// negative ones, which are in the opposite order.

`default_nettype none

module fp_max #(
    parameter integer EXP        = 8,
    parameter integer FRAC       = 23,
    parameter integer INFINITIES = 1,
    parameter integer LATENCY    = 2
) (
    input wire              clk,
    input wire [EXP+FRAC:0] a,
    input wire [EXP+FRAC:0] b
);

  localparam integer SIGN = EXP + FRAC;

  wire [SIGN:0] y, swapped, a0, b0;
  wire due;

  agg_fp_max #(
      .EXP       (EXP),
      .FRAC      (FRAC),
      .INFINITIES(INFINITIES)
  ) node (
      .clk(clk),
      .a  (a),
      .b  (b),
      .y  (y)
  );

  agg_fp_max #(
      .EXP       (EXP),
      .FRAC      (FRAC),
      .INFINITIES(INFINITIES)
  ) mirror (
      .clk(clk),
      .a  (b),
      .b  (a),
      .y  (swapped)
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

  function automatic is_nan(input logic [SIGN:0] x);
    is_nan = INFINITIES ? x[SIGN-1:0] > {{EXP{1'b1}}, {FRAC{1'b0}}} : &x[SIGN-1:0];
  endfunction

  function automatic [SIGN:0] key(input logic [SIGN:0] x);
    key = x[SIGN] ? ~x : {1'b1, x[SIGN-1:0]};
  endfunction

  localparam [SIGN:0] NAN = INFINITIES ?
      {1'b0, {EXP{1'b1}}, 1'b1, {FRAC - 1{1'b0}}} : {1'b0, {SIGN{1'b1}}};

  always @* begin
    if (due) begin
      assert (y == swapped);
      if (is_nan(a0) || is_nan(b0))
        assert (y == NAN);
        else begin
          assert (y == a0 || y == b0);
          assert (key(y) >= key(a0) && key(y) >= key(b0));
        end

      cover (is_nan(a0) && b0[SIGN]);
      cover (a0 == {1'b1, {SIGN{1'b0}}} && b0 == 0 && y == 0);
      cover (a0[SIGN] && b0[SIGN] && a0 != b0 && y == b0);
    end
  end

endmodule

`default_nettype wire
