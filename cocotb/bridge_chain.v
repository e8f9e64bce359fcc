// All that stands between the pins of a FIFO bridge and a card: bus, break, and the way from the chip's
// clock to the card's.

`default_nettype none

module bridge_chain #(
    parameter integer WIDTH = 8,
    parameter integer ZEROS = 64
) (
    input wire clk,       // the chip's
    input wire rst,
    input wire card_clk,
    input wire card_rst,

    input  wire             rxf_n,
    input  wire             txe_n,
    output wire             rd_n,
    output wire             wr_n,
    output wire             oe_n,
    output wire             siwu_n,
    input  wire [WIDTH-1:0] data_in,
    output wire [WIDTH-1:0] data_out,
    output wire             drive,

    output wire             link_up,
    output wire [WIDTH-1:0] rx_tdata,
    output wire             rx_tvalid,
    input  wire             rx_tready,
    input  wire [WIDTH-1:0] tx_tdata,
    input  wire             tx_tvalid,
    output wire             tx_tready
);

  wire [WIDTH-1:0] bus_rx_tdata;
  wire bus_rx_tvalid;
  wire bus_rx_tready;
  wire [WIDTH-1:0] bus_tx_tdata;
  wire bus_tx_tvalid;
  wire bus_tx_tready;
  wire [WIDTH-1:0] break_tdata;
  wire break_tvalid;
  wire break_tready;
  wire unused_keep;
  wire up;
  wire clear;

  agg_fifo_bus #(
      .WIDTH(WIDTH),
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
      .drive(drive),
      .m_axis_rx_tdata(bus_rx_tdata),
      .m_axis_rx_tvalid(bus_rx_tvalid),
      .m_axis_rx_tready(bus_rx_tready),
      .s_axis_tx_tdata(bus_tx_tdata),
      .s_axis_tx_tvalid(bus_tx_tvalid),
      .s_axis_tx_tready(bus_tx_tready)
  );

  agg_link_break #(
      .ZEROS(ZEROS)
  ) u_break (
      .clk(clk),
      .rst(rst),
      .link_up(up),
      .link_clear(clear),
      .s_axis_tdata(bus_rx_tdata),
      .s_axis_tkeep(1'b1),
      .s_axis_tvalid(bus_rx_tvalid),
      .s_axis_tready(bus_rx_tready),
      .m_axis_tdata(break_tdata),
      .m_axis_tkeep(unused_keep),
      .m_axis_tvalid(break_tvalid),
      .m_axis_tready(break_tready)
  );

  agg_link_cross #(
      .WIDTH(WIDTH)
  ) u_cross (
      .phy_clk(clk),
      .phy_rst(rst),
      .phy_link_up(up),
      .phy_link_clear(clear),
      .s_axis_rx_tdata(break_tdata),
      .s_axis_rx_tvalid(break_tvalid),
      .s_axis_rx_tready(break_tready),
      .m_axis_tx_tdata(bus_tx_tdata),
      .m_axis_tx_tvalid(bus_tx_tvalid),
      .m_axis_tx_tready(bus_tx_tready),
      .clk(card_clk),
      .rst(card_rst),
      .link_up(link_up),
      .m_axis_rx_tdata(rx_tdata),
      .m_axis_rx_tvalid(rx_tvalid),
      .m_axis_rx_tready(rx_tready),
      .s_axis_tx_tdata(tx_tdata),
      .s_axis_tx_tvalid(tx_tvalid),
      .s_axis_tx_tready(tx_tready)
  );

endmodule

`default_nettype wire
