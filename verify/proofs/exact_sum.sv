// Proves that a node of the sum of `exact` adds, with what an operand that was inverted lacks of being
// negated; and that operands which lost bits are counted up to two.

`default_nettype none

module exact_sum #(
    parameter integer WIDTH    = 42,
    parameter integer OPERANDS = 64
) (
    input wire                clk,
    input wire [   WIDTH-1:0] a,
    input wire [   WIDTH-1:0] b,
    input wire                more,
    input wire [OPERANDS-1:0] lost
);

  wire [WIDTH:0] y;
  agg_exact_add #(
      .WIDTH(WIDTH)
  ) node (
      .clk(clk),
      .a(a),
      .b(b),
      .more(more),
      .y(y)
  );

  wire some, several;
  agg_exact_lost #(
      .OPERANDS(OPERANDS)
  ) losers (
      .clk(clk),
      .lost(lost),
      .some(some),
      .several(several)
  );

  wire [WIDTH-1:0] a0, b0;
  wire [OPERANDS-1:0] lost0;
  wire more0, sum_due, losers_due;

  one_beat #(
      .WIDTH  (2 * WIDTH + 1),
      .LATENCY(1)
  ) beat_sum (
      .clk (clk),
      .x   ({a, b, more}),
      .held({a0, b0, more0}),
      .due (sum_due)
  );

  one_beat #(
      .WIDTH  (OPERANDS),
      .LATENCY(3)
  ) beat_losers (
      .clk (clk),
      .x   (lost),
      .held(lost0),
      .due (losers_due)
  );

  // What is left when the lowest one is taken away.
  wire [OPERANDS-1:0] others = lost0 & (lost0 - 1'b1);

  always @* begin
    if (sum_due) begin
      assert ($signed(y) == (more0 ? $signed(a0) - $signed(~b0) : $signed(a0) + $signed(b0)));
    end

    if (losers_due) begin
      assert (some == (lost0 != 0));
      assert (several == (others != 0));

      cover (some && !several && lost0[OPERANDS-1]);
      cover (several && lost0[0] && lost0[OPERANDS-1]);
    end
  end

endmodule

`default_nettype wire
