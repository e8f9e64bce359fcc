// Made by: hwgen -lanes 1 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 1 -jobs 1
//      -shell stream -link 8 -board nexys-video -clock 60

// A card on the board Digilent Nexys Video: the whole FPGA.
//
// FIFO pins <-> agg_fifo_bus <-> agg_link_break <-> agg_link_cross <-> card
//           usb_clk, 60 MHz                              |       clk, 60 MHz
//
// The chip drives usb_clk. LEDs: link while that runs and no host sends a break,
// traffic while bytes move, error for a while after a damaged frame. nexys-video.xdc
// constrains pins and clocks. agg_pll and the modules at the pins contain the vendor's cells.

`default_nettype none

module board_top (
    // Oscillator, 100 MHz
    input wire clk_in,

    // FIFO bridge; its clock may stop, so agg_fifo_bus uses usb_rst as an asynchronous reset
    // verilator lint_off SYNCASYNCNET
    input  wire       fifo_clk,
    input  wire       fifo_rxf_n,
    input  wire       fifo_txe_n,
    output wire       fifo_rd_n,
    output wire       fifo_wr_n,
    output wire       fifo_oe_n,
    output wire       fifo_siwu_n,
    inout  wire [7:0] fifo_data,

    // LEDs
    output wire led_link,
    output wire led_traffic,
    output wire led_error
);
  // Clocks and resets
  wire       clk;  // the card's clock
  wire       rst;
  wire       usb_clk;  // the link's clock
  wire       usb_rst;
  wire       locked;
  wire       started;  // clk runs and all supplies are up
  wire       unused_phy_reset;
  wire       unused_clock;  // the PLL's second output

  // FIFO bridge, on usb_clk
  wire [7:0] fifo_data_in;
  wire [7:0] fifo_data_out;
  wire [7:0] fifo_drive_n;
  wire [7:0] bus_rx_tdata;  // from the host, breaks included
  wire       bus_rx_tvalid;
  wire       bus_rx_tready;
  wire       unused_rx_tkeep;  // a word is a byte
  wire       usb_link_up;
  wire       usb_link_clear;
  wire [7:0] usb_rx_tdata;
  wire       usb_rx_tvalid;
  wire       usb_rx_tready;
  wire [7:0] usb_tx_tdata;
  wire       usb_tx_tvalid;
  wire       usb_tx_tready;
  wire       traffic;

  // Card, on clk
  wire       link_up;
  wire [7:0] rx_tdata;
  wire       rx_tvalid;
  wire       rx_tready;
  wire [7:0] tx_tdata;
  wire       unused_tx_tkeep;  // a word is a byte
  wire       tx_tvalid;
  wire       tx_tready;
  wire       error;
  wire       unused_beat_strobe;

  // LEDs
  wire       traffic_lit;
  wire       error_lit;

  // -- Clocks and resets --
  agg_pll #(
      .INPUT_PS (10000),
      .INPUT    (1),
      .FEEDBACK (9),
      .PRIMARY  (15),
      .SECONDARY(15)
  ) u_pll (
      .clk_in       (clk_in),
      .clk_primary  (clk),
      .clk_secondary(unused_clock),
      .locked       (locked)
  );

  agg_board_reset #(
      .PHY_CYCLES(60000)
  ) u_reset (
      .clk      (clk),
      .phy_clk  (usb_clk),
      .started  (started),
      .phy_reset(unused_phy_reset),
      .phy_rst  (usb_rst),
      .rst      (rst)
  );

  assign started = locked;
  assign usb_clk = fifo_clk;

  // -- FIFO bridge --
  agg_pads #(
      .WIDTH(8)
  ) u_fifo_data (
      .pads   (fifo_data),
      .drive_n(fifo_drive_n),
      .out    (fifo_data_out),
      .in     (fifo_data_in)
  );

  agg_fifo_bus u_bus (
      .clk             (usb_clk),
      .rst             (usb_rst),
      .rxf_n           (fifo_rxf_n),
      .txe_n           (fifo_txe_n),
      .rd_n            (fifo_rd_n),
      .wr_n            (fifo_wr_n),
      .oe_n            (fifo_oe_n),
      .siwu_n          (fifo_siwu_n),
      .data_in         (fifo_data_in),
      .data_out        (fifo_data_out),
      .drive_n         (fifo_drive_n),
      .m_axis_rx_tdata (bus_rx_tdata),
      .m_axis_rx_tvalid(bus_rx_tvalid),
      .m_axis_rx_tready(bus_rx_tready),
      .s_axis_tx_tdata (usb_tx_tdata),
      .s_axis_tx_tlast (1'b0),
      .s_axis_tx_tvalid(usb_tx_tvalid),
      .s_axis_tx_tready(usb_tx_tready)
  );

  agg_link_break u_break (
      .clk          (usb_clk),
      .rst          (usb_rst),
      .link_up      (usb_link_up),
      .link_clear   (usb_link_clear),
      .s_axis_tdata (bus_rx_tdata),
      .s_axis_tkeep (1'b1),
      .s_axis_tvalid(bus_rx_tvalid),
      .s_axis_tready(bus_rx_tready),
      .m_axis_tdata (usb_rx_tdata),
      .m_axis_tkeep (unused_rx_tkeep),
      .m_axis_tvalid(usb_rx_tvalid),
      .m_axis_tready(usb_rx_tready)
  );

  assign traffic = (bus_rx_tvalid && bus_rx_tready) || (usb_tx_tvalid && usb_tx_tready);

  // -- Clock crossing --
  agg_link_cross u_cross (
      .phy_clk         (usb_clk),
      .phy_rst         (usb_rst),
      .phy_link_up     (usb_link_up),
      .phy_link_clear  (usb_link_clear),
      .s_axis_rx_tdata (usb_rx_tdata),
      .s_axis_rx_tvalid(usb_rx_tvalid),
      .s_axis_rx_tready(usb_rx_tready),
      .m_axis_tx_tdata (usb_tx_tdata),
      .m_axis_tx_tvalid(usb_tx_tvalid),
      .m_axis_tx_tready(usb_tx_tready),
      .clk             (clk),
      .rst             (rst),
      .link_up         (link_up),
      .m_axis_rx_tdata (rx_tdata),
      .m_axis_rx_tvalid(rx_tvalid),
      .m_axis_rx_tready(rx_tready),
      .s_axis_tx_tdata (tx_tdata),
      .s_axis_tx_tvalid(tx_tvalid),
      .s_axis_tx_tready(tx_tready)
  );

  // -- Card --
  agg_top u_card (
      .clk           (clk),
      .rst           (rst),
      .link_up       (link_up),
      .link_rx_tdata (rx_tdata),
      .link_rx_tkeep (1'b1),
      .link_rx_tvalid(rx_tvalid),
      .link_rx_tready(rx_tready),
      .link_tx_tdata (tx_tdata),
      .link_tx_tkeep (unused_tx_tkeep),
      .link_tx_tvalid(tx_tvalid),
      .link_tx_tready(tx_tready),
      .beat_strobe   (unused_beat_strobe),
      .error_strobe  (error)
  );

  // -- LEDs --
  agg_led #(
      .CYCLES(6000000)
  ) u_traffic (
      .clk   (usb_clk),
      .rst   (usb_rst),
      .strobe(traffic),
      .lit   (traffic_lit)
  );

  agg_led #(
      .CYCLES(6000000)
  ) u_error (
      .clk   (clk),
      .rst   (rst),
      .strobe(error),
      .lit   (error_lit)
  );

  assign led_link    = usb_link_up;
  assign led_traffic = traffic_lit;
  assign led_error   = error_lit;

endmodule

`default_nettype wire
