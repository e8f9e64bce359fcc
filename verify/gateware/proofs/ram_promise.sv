// Stands in for agg_ram in the proof of its parent: an arbitrary word. The parent assumes what the
// word may be.

`default_nettype none

module agg_ram #(
    parameter integer WIDTH     = 512,
    parameter integer ADDR_BITS = 8,
    parameter integer APART     = 0
) (
    input wire clk,

    input wire                 wr_en,
    input wire [ADDR_BITS-1:0] wr_addr,
    input wire [    WIDTH-1:0] wr_data,

    input  wire                 rd_en,
    input  wire [ADDR_BITS-1:0] rd_addr,
    output wire [    WIDTH-1:0] rd_data
);

  (* anyseq *) reg [WIDTH-1:0] any;

  assign rd_data = any;

endmodule

`default_nettype wire
