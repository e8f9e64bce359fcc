// A circuit whose cells can be counted by hand: a table for the and of four, WIDTH flip-flops, a
// block RAM of 1,024 words of 18 bits with its own registers, a multiplier of 16 by 16 bits.

`default_nettype none

module known #(
    parameter WIDTH = 4
) (
    input  wire             clk,
    input  wire [      3:0] four,
    output wire             one,
    input  wire [WIDTH-1:0] d,
    output reg  [WIDTH-1:0] q,
    input  wire             write,
    input  wire [      9:0] address,
    input  wire [     17:0] data,
    output reg  [     17:0] word,
    input  wire [     15:0] a,
    input  wire [     15:0] b,
    output wire [     31:0] product
);

  reg [17:0] memory[0:1023];

  assign one = &four;
  assign product = a * b;

  always @(posedge clk) begin
    q <= d;
    if (write) memory[address] <= data;
    word <= memory[address];
  end

endmodule

`default_nettype wire
