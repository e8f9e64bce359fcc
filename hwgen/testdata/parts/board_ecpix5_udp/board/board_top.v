// Made by: hwgen -lanes 2 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 1 -jobs 1
//      -shell udp -link 64 -ethernet 1 -mac 02:54:52:42:00:01 -ip 192.168.84.66 -udp-port 21570
//      -board ecpix5 -clock 80

// A card on the board LambdaConcept ECPIX-5 85F: the whole FPGA.
//
// PHY pins <-> MAC <-> agg_eth_rx_cross, agg_eth_tx_cross <-> card
//           eth_p0_clk, 125 MHz|       clk, 80 MHz
//
// ethernet_mac.py beside this file writes the MAC. LEDs: link while the first port has a partner at 1 Gbit/s,
// traffic while bytes move, error for a while after a damaged frame. ecpix5.lpf
// constrains pins and clocks. agg_pll and the modules at the pins contain the vendor's cells.

`default_nettype none

module board_top (
    // Oscillator, 100 MHz
    input wire clk_in,

    // Ethernet PHY
    output wire       rgmii_p0_rst_n,
    input  wire       rgmii_p0_rx_clk,
    input  wire       rgmii_p0_rx_ctl,
    input  wire [3:0] rgmii_p0_rx_data,
    output wire       rgmii_p0_tx_clk,
    output wire       rgmii_p0_tx_ctl,
    output wire [3:0] rgmii_p0_tx_data,

    // LEDs
    output wire led_link,
    output wire led_traffic,
    output wire led_error
);
  // Clocks and resets
  wire        clk;  // the card's clock
  wire        rst;
  wire        eth_p0_clk;  // the link's clock
  wire        eth_p0_rst;
  wire        locked;
  wire        started;  // clk runs and all supplies are up
  wire        rgmii_p0_rst;
  wire        unused_clock;  // the PLL's second output

  // MAC, on eth_p0_clk
  wire        eth_p0_link_up;
  wire [ 7:0] eth_p0_rx_tdata;
  wire        eth_p0_rx_tvalid;
  wire        eth_p0_rx_tlast;
  wire [ 7:0] eth_p0_tx_tdata;
  wire        eth_p0_tx_tvalid;
  wire        eth_p0_tx_tlast;
  wire        eth_p0_rx_tuser;  // the frame's FCS is wrong
  wire        eth_p0_tx_tready;

  // Card, on clk
  wire [63:0] eth_rx_p0_tdata;
  wire [ 7:0] eth_rx_p0_tkeep;
  wire        eth_rx_p0_tvalid;
  wire        eth_rx_p0_tlast;
  wire [63:0] eth_tx_p0_tdata;
  wire [ 7:0] eth_tx_p0_tkeep;
  wire        eth_tx_p0_tvalid;
  wire        eth_tx_p0_tlast;
  wire        eth_rx_p0_tuser;  // the frame is bad
  wire        eth_tx_p0_tready;
  wire        error;
  wire        unused_beat_strobe;
  wire        moves;  // a beat of a frame
  wire        traffic;

  // LEDs
  wire        traffic_lit;
  wire        error_lit;

  // -- Clocks and resets --
  agg_pll #(
      .INPUT    (5),
      .FEEDBACK (4),
      .PRIMARY  (5),
      .SECONDARY(5)
  ) u_pll (
      .clk_in       (clk_in),
      .clk_primary  (clk),
      .clk_secondary(unused_clock),
      .locked       (locked)
  );

  agg_board_reset #(
      .PHY_CYCLES(800000)
  ) u_reset (
      .clk      (clk),
      .phy_clk  (eth_p0_clk),
      .started  (started),
      .phy_reset(rgmii_p0_rst),
      .phy_rst  (eth_p0_rst),
      .rst      (rst)
  );

  assign started        = locked;
  assign rgmii_p0_rst_n = !rgmii_p0_rst;

  // -- MACs --
  agg_eth_mac u_mac_p0 (
      .rst          (eth_p0_rst),
      .eth_clk      (eth_p0_clk),
      .link_up      (eth_p0_link_up),
      .rgmii_rx_clk (rgmii_p0_rx_clk),
      .rgmii_rx_ctl (rgmii_p0_rx_ctl),
      .rgmii_rx_data(rgmii_p0_rx_data),
      .rgmii_tx_clk (rgmii_p0_tx_clk),
      .rgmii_tx_ctl (rgmii_p0_tx_ctl),
      .rgmii_tx_data(rgmii_p0_tx_data),
      .m_axis_tdata (eth_p0_rx_tdata),
      .m_axis_tvalid(eth_p0_rx_tvalid),
      .m_axis_tlast (eth_p0_rx_tlast),
      .m_axis_tuser (eth_p0_rx_tuser),
      .s_axis_tdata (eth_p0_tx_tdata),
      .s_axis_tvalid(eth_p0_tx_tvalid),
      .s_axis_tready(eth_p0_tx_tready),
      .s_axis_tlast (eth_p0_tx_tlast)
  );

  // -- Clock crossings --
  agg_eth_rx_cross #(
      .BYTES(8)
  ) u_rx_p0 (
      .eth_clk      (eth_p0_clk),
      .eth_rst      (eth_p0_rst),
      .s_axis_tdata (eth_p0_rx_tdata),
      .s_axis_tvalid(eth_p0_rx_tvalid),
      .s_axis_tlast (eth_p0_rx_tlast),
      .s_axis_tuser (eth_p0_rx_tuser),
      .clk          (clk),
      .rst          (rst),
      .m_axis_tdata (eth_rx_p0_tdata),
      .m_axis_tkeep (eth_rx_p0_tkeep),
      .m_axis_tvalid(eth_rx_p0_tvalid),
      .m_axis_tlast (eth_rx_p0_tlast),
      .m_axis_tuser (eth_rx_p0_tuser)
  );

  agg_eth_tx_cross #(
      .BYTES(8)
  ) u_tx_p0 (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (eth_tx_p0_tdata),
      .s_axis_tkeep (eth_tx_p0_tkeep),
      .s_axis_tvalid(eth_tx_p0_tvalid),
      .s_axis_tready(eth_tx_p0_tready),
      .s_axis_tlast (eth_tx_p0_tlast),
      .eth_clk      (eth_p0_clk),
      .eth_rst      (eth_p0_rst),
      .link_up      (eth_p0_link_up),
      .m_axis_tdata (eth_p0_tx_tdata),
      .m_axis_tvalid(eth_p0_tx_tvalid),
      .m_axis_tready(eth_p0_tx_tready),
      .m_axis_tlast (eth_p0_tx_tlast)
  );

  assign moves = eth_rx_p0_tvalid || (eth_tx_p0_tvalid && eth_tx_p0_tready);

  agg_delay #(
      .WIDTH (1),
      .CYCLES(1)
  ) u_moves (
      .clk(clk),
      .d  (moves),
      .q  (traffic)
  );

  // -- Card --
  agg_top u_card (
      .clk             (clk),
      .rst             (rst),
      .eth_rx_p0_tdata (eth_rx_p0_tdata),
      .eth_rx_p0_tkeep (eth_rx_p0_tkeep),
      .eth_rx_p0_tvalid(eth_rx_p0_tvalid),
      .eth_rx_p0_tlast (eth_rx_p0_tlast),
      .eth_rx_p0_tuser (eth_rx_p0_tuser),
      .eth_tx_p0_tdata (eth_tx_p0_tdata),
      .eth_tx_p0_tkeep (eth_tx_p0_tkeep),
      .eth_tx_p0_tvalid(eth_tx_p0_tvalid),
      .eth_tx_p0_tready(eth_tx_p0_tready),
      .eth_tx_p0_tlast (eth_tx_p0_tlast),
      .beat_strobe     (unused_beat_strobe),
      .error_strobe    (error)
  );

  // -- LEDs --
  agg_led #(
      .CYCLES(8000000)
  ) u_traffic (
      .clk   (clk),
      .rst   (rst),
      .strobe(traffic),
      .lit   (traffic_lit)
  );

  agg_led #(
      .CYCLES(8000000)
  ) u_error (
      .clk   (clk),
      .rst   (rst),
      .strobe(error),
      .lit   (error_lit)
  );

  assign led_link    = !eth_p0_link_up;
  assign led_traffic = !traffic_lit;
  assign led_error   = !error_lit;

endmodule

`default_nettype wire
