// The larger of two integers in two's complement: one node of the sum max.
//
// LATENCY = 2 cycles from a, b to y, as for floating point; a new pair every cycle. y comes straight from
// registers.
//
// Not done here: no reset, no enable, no valid bit.

`default_nettype none

module agg_int_max #(
    parameter integer WIDTH = 32
) (
    input  wire               clk,
    input  wire [WIDTH-1 : 0] a,
    input  wire [WIDTH-1 : 0] b,
    output wire [WIDTH-1 : 0] y
);

  generate
    if (WIDTH < 2) begin : g_width
      ERROR_an_integer_must_have_at_least_2_bits error ();
    end
  endgenerate

  reg [WIDTH-1:0] a_reg;
  reg [WIDTH-1:0] b_reg;
  reg             a_wins_reg;

  always @(posedge clk) begin
    a_reg <= a;
    b_reg <= b;
    a_wins_reg <= $signed(a) > $signed(b);
  end

  reg [WIDTH-1:0] y_reg;

  always @(posedge clk) begin
    y_reg <= a_wins_reg ? a_reg : b_reg;
  end

  assign y = y_reg;

endmodule

`default_nettype wire
