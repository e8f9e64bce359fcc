// The bench of an Ethernet port of a board: agg_eth_mac, which ethernet_mac.py writes, both crossings,
// and a card that returns each good frame.

`default_nettype none

module ethernet_port #(
    parameter integer BYTES = 8,  // in a beat of the card: 1 or 8
    parameter integer DEPTH_BITS = 12  // log2 of the card's beats
) (
    input  wire       clk,
    input  wire       rst,
    input  wire       eth_rst,
    output wire       error,
    output wire       dropped,        // a good frame had no place
    output wire       link_up,
    input  wire       rgmii_rx_clk,
    input  wire       rgmii_rx_ctl,
    input  wire [3:0] rgmii_rx_data,
    output wire       rgmii_tx_clk,
    output wire       rgmii_tx_ctl,
    output wire [3:0] rgmii_tx_data
);

  wire eth_clk;
  wire [7:0] rx_tdata, tx_tdata;
  wire rx_tvalid, rx_tlast, rx_tuser, tx_tvalid, tx_tready, tx_tlast;
  wire [8*BYTES-1:0] card_rx_tdata, card_tx_tdata;
  wire [BYTES-1:0] card_rx_tkeep, card_tx_tkeep;
  wire card_rx_tvalid, card_rx_tlast, card_rx_tuser, card_tx_tvalid, card_tx_tready, card_tx_tlast;

  agg_eth_mac u_mac (
      .rst(eth_rst),
      .eth_clk(eth_clk),
      .link_up(link_up),
      .rgmii_rx_clk(rgmii_rx_clk),
      .rgmii_rx_ctl(rgmii_rx_ctl),
      .rgmii_rx_data(rgmii_rx_data),
      .rgmii_tx_clk(rgmii_tx_clk),
      .rgmii_tx_ctl(rgmii_tx_ctl),
      .rgmii_tx_data(rgmii_tx_data),
      .m_axis_tdata(rx_tdata),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tlast(rx_tlast),
      .m_axis_tuser(rx_tuser),
      .s_axis_tdata(tx_tdata),
      .s_axis_tvalid(tx_tvalid),
      .s_axis_tready(tx_tready),
      .s_axis_tlast(tx_tlast)
  );

  agg_eth_rx_cross #(
      .BYTES(BYTES)
  ) u_rx_cross (
      .eth_clk(eth_clk),
      .eth_rst(eth_rst),
      .s_axis_tdata(rx_tdata),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tlast(rx_tlast),
      .s_axis_tuser(rx_tuser),
      .clk(clk),
      .rst(rst),
      .m_axis_tdata(card_rx_tdata),
      .m_axis_tkeep(card_rx_tkeep),
      .m_axis_tvalid(card_rx_tvalid),
      .m_axis_tlast(card_rx_tlast),
      .m_axis_tuser(card_rx_tuser)
  );

  ethernet_card #(
      .BYTES(BYTES),
      .DEPTH_BITS(DEPTH_BITS)
  ) u_card (
      .clk(clk),
      .rst(rst),
      .eth_rx_p0_tdata(card_rx_tdata),
      .eth_rx_p0_tkeep(card_rx_tkeep),
      .eth_rx_p0_tvalid(card_rx_tvalid),
      .eth_rx_p0_tlast(card_rx_tlast),
      .eth_rx_p0_tuser(card_rx_tuser),
      .eth_tx_p0_tdata(card_tx_tdata),
      .eth_tx_p0_tkeep(card_tx_tkeep),
      .eth_tx_p0_tvalid(card_tx_tvalid),
      .eth_tx_p0_tready(card_tx_tready),
      .eth_tx_p0_tlast(card_tx_tlast),
      .beat_strobe(dropped),
      .error_strobe(error)
  );

  agg_eth_tx_cross #(
      .BYTES(BYTES)
  ) u_tx_cross (
      .clk(clk),
      .rst(rst),
      .s_axis_tdata(card_tx_tdata),
      .s_axis_tkeep(card_tx_tkeep),
      .s_axis_tvalid(card_tx_tvalid),
      .s_axis_tready(card_tx_tready),
      .s_axis_tlast(card_tx_tlast),
      .eth_clk(eth_clk),
      .eth_rst(eth_rst),
      .link_up(link_up),
      .m_axis_tdata(tx_tdata),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast(tx_tlast)
  );

endmodule

`default_nettype wire
