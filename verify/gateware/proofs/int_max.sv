// Proves that a node of max is the larger of two integers: section 7.10 of driver/wire/SPEC.md.
// Integers are compared by their distance from the least one.

`default_nettype none

module int_max #(
    parameter integer WIDTH   = 32,
    parameter integer LATENCY = 2
) (
    input wire             clk,
    input wire [WIDTH-1:0] a,
    input wire [WIDTH-1:0] b
);

  wire [WIDTH-1:0] y, a0, b0;
  wire due;

  agg_int_max #(
      .WIDTH(WIDTH)
  ) node (
      .clk(clk),
      .a  (a),
      .b  (b),
      .y  (y)
  );

  one_beat #(
      .WIDTH  (2 * WIDTH),
      .LATENCY(LATENCY)
  ) beat (
      .clk (clk),
      .x   ({a, b}),
      .held({a0, b0}),
      .due (due)
  );

  localparam [WIDTH-1:0] LEAST = {1'b1, {WIDTH - 1{1'b0}}};

  function automatic [WIDTH-1:0] above(input logic [WIDTH-1:0] x);
    above = x - LEAST;
  endfunction

  always @* begin
    if (due) begin
      assert (y == a0 || y == b0);
      assert (above(y) >= above(a0) && above(y) >= above(b0));

      cover (a0 == LEAST && b0 == ~LEAST);
      cover (a0 == ~LEAST && b0 == LEAST);
      cover (a0[WIDTH-1] && b0[WIDTH-1] && a0 != b0 && y == b0);
    end
  end

endmodule

`default_nettype wire
