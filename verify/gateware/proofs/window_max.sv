// Proves that a node of the exponent tree returns the maximum: section 7.4 of driver/wire/SPEC.md.

`default_nettype none

module window_max #(
    parameter integer EXP     = 8,
    parameter integer FLOOR   = 0,
    parameter integer LATENCY = 1
) (
    input wire           clk,
    input wire [EXP-1:0] a,
    input wire [EXP-1:0] b
);

  wire [EXP-1:0] y, a0, b0;
  wire due;

  agg_window_max #(
      .EXP  (EXP),
      .FLOOR(FLOOR)
  ) node (
      .clk(clk),
      .a  (a),
      .b  (b),
      .y  (y)
  );

  one_beat #(
      .WIDTH  (2 * EXP),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({a, b}),
      .held({a0, b0}),
      .due (due)
  );

  always @* begin
    if (due) begin
      assert (y >= a0 && y >= b0);
      if (FLOOR) assert (y != 0);
      assert (y == a0 || y == b0 || (FLOOR && a0 == 0 && b0 == 0 && y == 1));

      cover (a0 == b0 && y == 0);
      cover (a0 < b0 && a0[0] && !b0[0]);
      cover (a0 > b0 && !a0[0] && b0[0]);
    end
  end

endmodule

`default_nettype wire
