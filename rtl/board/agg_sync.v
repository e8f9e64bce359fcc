// Synchronizes levels to clk, by registers in a row: the first may become metastable when its input
// changes near an edge.
//
// Latency: a level is at out two to three edges of clk after it was set. Bits that change together
// may arrive one edge apart: a vector is consistent only if one bit changes at a time (Gray code).
//
// Not done here: pulses. A level shorter than two edges of clk can be missed, so its source has to
// wait for an answer.

`default_nettype none

module agg_sync #(
    parameter integer WIDTH = 1
) (
    input wire clk,
    input wire rst,

    input  wire [WIDTH-1:0] in,  // from registers of another domain
    output wire [WIDTH-1:0] out
);

  // Makes Vivado place these registers side by side; for other tools it is documentation.
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
