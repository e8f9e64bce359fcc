// Proves the count of operands that lost bits: none, one, or more.

`default_nettype none

module exact_lost #(
    parameter integer OPERANDS = 64
) (
    input wire                clk,
    input wire [OPERANDS-1:0] lost
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

  wire [OPERANDS-1:0] lost0;
  wire due;

  one_beat #(
      .WIDTH  (OPERANDS),
      .LATENCY(3)
  ) beat (
      .clk (clk),
      .x   (lost),
      .held(lost0),
      .due (due)
  );

  // The rest without the lowest one.
  wire [OPERANDS-1:0] others = lost0 & (lost0 - 1'b1);

  always @* begin
    if (due) begin
      assert (some == (lost0 != 0));
      assert (several == (others != 0));

      cover (some && !several && lost0[OPERANDS-1]);
      cover (several && lost0[0] && lost0[OPERANDS-1]);
    end
  end

endmodule

`default_nettype wire
