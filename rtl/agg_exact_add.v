// One node of the sum of aligned operands: y = a + b + more, two's complement, one bit wider than a
// and b. more is what an inverted operand in b lacks of being negated.
//
// LATENCY = 1 cycle. Not done here: nothing is cut, rounded or too large.

`default_nettype none

module agg_exact_add #(
    parameter integer WIDTH = 42  // bits of a and of b
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] a,
    input  wire [WIDTH-1:0] b,
    input  wire             more,
    output wire [  WIDTH:0] y
);

  generate
    if (WIDTH < 2) begin : g_width
      ERROR_width_must_be_at_least_2_bits error ();
    end
  endgenerate

  reg [WIDTH:0] y_reg;

  always @(posedge clk) y_reg <= {a[WIDTH-1], a} + {b[WIDTH-1], b} + {{WIDTH{1'b0}}, more};

  assign y = y_reg;

endmodule

`default_nettype wire
