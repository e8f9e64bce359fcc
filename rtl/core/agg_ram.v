// Simple dual-port RAM: one write port, one read port.
//
// Reads are registered: a cycle with rd_en fetches the word at rd_addr, and rd_data holds it
// from the next cycle to the one after the next rd_en. A read of a word in the cycle of its
// write returns the old word. In an FPGA's block RAM, that costs two registers and a multiplexer for
// each bit. APART = 1 saves them: its user promises never to use a word that was read in the cycle
// of its write.
//
// Not done here: reset. Unwritten words are undefined, and so is rd_data before the first
// read.

`default_nettype none

module agg_ram #(
    parameter integer WIDTH     = 512,  // bits per word
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

  reg [WIDTH-1:0] rd_data_reg;

  generate
    if (APART != 0) begin : g_apart
      (* no_rw_check *) reg [WIDTH-1:0] words[0:(1<<ADDR_BITS)-1];
      always @(posedge clk) begin
        if (wr_en) words[wr_addr] <= wr_data;
        if (rd_en) rd_data_reg <= words[rd_addr];
      end
    end else begin : g_any
      reg [WIDTH-1:0] words[0:(1<<ADDR_BITS)-1];
      always @(posedge clk) begin
        if (wr_en) words[wr_addr] <= wr_data;
        if (rd_en) rd_data_reg <= words[rd_addr];
      end
    end
  endgenerate

  assign rd_data = rd_data_reg;

endmodule

`default_nettype wire
