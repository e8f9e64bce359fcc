// Adds two integers in two's complement, exactly: y = a + b, one bit wider than they are. LATENCY =
// 1 cycle.
//
// Not done here: reset, enable, valid bit; reduction to the format's width (agg_int_clamp).

`default_nettype none

module agg_int_add #(
    parameter integer WIDTH = 32
) (
    input  wire               clk,
    input  wire [WIDTH-1 : 0] a,
    input  wire [WIDTH-1 : 0] b,
    output wire [  WIDTH : 0] y
);

  generate
    if (WIDTH < 1) begin : g_width
      ERROR_an_integer_must_have_at_least_1_bit error ();
    end
  endgenerate

  reg [WIDTH:0] y_reg;

  always @(posedge clk) begin
    y_reg <= {a[WIDTH-1], a} + {b[WIDTH-1], b};
  end

  assign y = y_reg;

endmodule

`default_nettype wire
