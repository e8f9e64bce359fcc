// Carries levels into the clock domain of clk: registers in a row, for the first may become neither 0
// nor 1 when its input changes with the clock.
//
// A level stands at out two to three edges of clk after it was set. Bits that change together may come
// an edge apart: several are one number only where one of them changes at a time (a Gray code).
//
// Not done here: a level that lasts less than two edges of clk may not be seen at all; who sets it waits
// for an answer.

`default_nettype none

module agg_sync #(
    parameter integer WIDTH = 1
) (
    input wire clk,
    input wire rst,

    input  wire [WIDTH-1:0] in,  // out of registers of another domain
    output wire [WIDTH-1:0] out
);

  // Vivado places registers with this attribute side by side; others have it for their readers.
  (* ASYNC_REG = "TRUE" *)
  reg [WIDTH-1:0] first_reg;
  (* ASYNC_REG = "TRUE" *)
  reg [WIDTH-1:0] second_reg;

  always @(posedge clk) begin
    first_reg  <= rst ? {WIDTH{1'b0}} : in;
    second_reg <= rst ? {WIDTH{1'b0}} : first_reg;
  end

  assign out = second_reg;

endmodule

`default_nettype wire
