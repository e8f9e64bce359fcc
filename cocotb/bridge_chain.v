// Everything between the pins of a FIFO bridge and a card: bus, break, bursts if the bus has byte
// enables, and the crossing from the chip's clock to the card's.

`default_nettype none

module bridge_chain #(
    parameter integer BYTES = 1,  // bytes per word of bus and link; byte enables if more than 1
    parameter integer BUS   = 8,  // bits of the bus: 8, 18 or 36, byte enables above the data
    parameter integer ZEROS = 64
) (
    input wire clk,       // the chip's
    input wire rst,
    input wire card_clk,
    input wire card_rst,

    input  wire           rxf_n,
    input  wire           txe_n,
    output wire           rd_n,
    output wire           wr_n,
    output wire           oe_n,
    output wire           siwu_n,
    input  wire [BUS-1:0] data_in,
    output wire [BUS-1:0] data_out,
    output wire [BUS-1:0] drive_n,

    output wire               link_up,
    output wire [8*BYTES-1:0] rx_tdata,
    output wire [  BYTES-1:0] rx_tkeep,
    output wire               rx_tvalid,
    input  wire               rx_tready,
    input  wire [8*BYTES-1:0] tx_tdata,
    input  wire [  BYTES-1:0] tx_tkeep,
    input  wire               tx_tvalid,
    output wire               tx_tready
);

  wire [BUS-1:0] bus_rx_word;
  wire [BYTES-1:0] bus_rx_tkeep;
  wire bus_rx_tvalid;
  wire bus_rx_tready;
  wire [BUS-1:0] bus_tx_word;
  wire bus_tx_tlast;
  wire bus_tx_tvalid;
  wire bus_tx_tready;
  wire [8*BYTES-1:0] break_tdata;
  wire [BYTES-1:0] break_tkeep;
  wire break_tvalid;
  wire break_tready;
  wire [8*BYTES-1:0] link_tdata;
  wire [BYTES-1:0] link_tkeep;
  wire link_tvalid;
  wire link_tready;
  wire up;
  wire clear;

  agg_fifo_bus #(
      .WIDTH(BUS),
      .BURST(32)
  ) u_bus (
      .clk(clk),
      .rst(rst),
      .rxf_n(rxf_n),
      .txe_n(txe_n),
      .rd_n(rd_n),
      .wr_n(wr_n),
      .oe_n(oe_n),
      .siwu_n(siwu_n),
      .data_in(data_in),
      .data_out(data_out),
      .drive_n(drive_n),
      .m_axis_rx_tdata(bus_rx_word),
      .m_axis_rx_tvalid(bus_rx_tvalid),
      .m_axis_rx_tready(bus_rx_tready || !bus_rx_tkeep[0]),  // a word without bytes is discarded
      .s_axis_tx_tdata(bus_tx_word),
      .s_axis_tx_tlast(bus_tx_tlast),
      .s_axis_tx_tvalid(bus_tx_tvalid),
      .s_axis_tx_tready(bus_tx_tready)
  );

  generate
    if (BYTES == 1) begin : g_byte
      wire unused_keep = &link_tkeep;
      assign bus_rx_tkeep  = 1'b1;
      assign bus_tx_word   = link_tdata;
      assign bus_tx_tlast  = 1'b0;
      assign bus_tx_tvalid = link_tvalid;
      assign link_tready   = bus_tx_tready;
    end else begin : g_words
      assign bus_rx_tkeep = bus_rx_word[BUS-1-:BYTES];
      agg_bus_burst #(
          .LINK_BYTES(BYTES),
          .BUS_BYTES (BYTES),
          .BURST_BITS(4)
      ) u_burst (
          .clk(clk),
          .rst(rst),
          .s_axis_tdata(link_tdata),
          .s_axis_tkeep(link_tkeep),
          .s_axis_tvalid(link_tvalid),
          .s_axis_tready(link_tready),
          .m_axis_tdata(bus_tx_word[8*BYTES-1:0]),
          .m_axis_tkeep(bus_tx_word[BUS-1-:BYTES]),
          .m_axis_tlast(bus_tx_tlast),
          .m_axis_tvalid(bus_tx_tvalid),
          .m_axis_tready(bus_tx_tready)
      );
    end
  endgenerate

  agg_link_break #(
      .BYTES(BYTES),
      .ZEROS(ZEROS)
  ) u_break (
      .clk(clk),
      .rst(rst),
      .link_up(up),
      .link_clear(clear),
      .s_axis_tdata(bus_rx_word[8*BYTES-1:0]),
      .s_axis_tkeep(bus_rx_tkeep),
      .s_axis_tvalid(bus_rx_tvalid && bus_rx_tkeep[0]),
      .s_axis_tready(bus_rx_tready),
      .m_axis_tdata(break_tdata),
      .m_axis_tkeep(break_tkeep),
      .m_axis_tvalid(break_tvalid),
      .m_axis_tready(break_tready)
  );

  agg_link_cross #(
      .WIDTH(9 * BYTES)
  ) u_cross (
      .phy_clk(clk),
      .phy_rst(rst),
      .phy_link_up(up),
      .phy_link_clear(clear),
      .s_axis_rx_tdata({break_tkeep, break_tdata}),
      .s_axis_rx_tvalid(break_tvalid),
      .s_axis_rx_tready(break_tready),
      .m_axis_tx_tdata({link_tkeep, link_tdata}),
      .m_axis_tx_tvalid(link_tvalid),
      .m_axis_tx_tready(link_tready),
      .clk(card_clk),
      .rst(card_rst),
      .link_up(link_up),
      .m_axis_rx_tdata({rx_tkeep, rx_tdata}),
      .m_axis_rx_tvalid(rx_tvalid),
      .m_axis_rx_tready(rx_tready),
      .s_axis_tx_tdata({tx_tkeep, tx_tdata}),
      .s_axis_tx_tvalid(tx_tvalid),
      .s_axis_tx_tready(tx_tready)
  );

endmodule

`default_nettype wire
