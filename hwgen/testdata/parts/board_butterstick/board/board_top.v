// Made by: hwgen -lanes 1 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 1 -jobs 1
//      -shell stream -link 8 -board butterstick -clock 120

// A card on the board ButterStick r1.0 85F: the whole FPGA.
//
// PHY pins <-> USB device <-> agg_link_cross <-> card
//           usb_clk, 60 MHz        |       clk, 120 MHz
//
// usb_device.py beside this file writes the USB device. LEDs: link while a host has the card,
// traffic while bytes move, error for a while after a damaged frame. butterstick.lpf
// constrains pins and clocks. agg_pll and the modules at the pins contain the vendor's cells.

`default_nettype none

module board_top (
    // Oscillator, 30 MHz
    input wire clk_in,

    // USB PHY
    output wire       ulpi_rst,
    output wire       ulpi_clk,
    input  wire       ulpi_dir,
    input  wire       ulpi_nxt,
    output wire       ulpi_stp,
    inout  wire [7:0] ulpi_data,

    // LEDs
    output wire       led_link,
    output wire       led_traffic,
    output wire       led_error,
    output wire [2:0] led_held,

    // Supply of the PHY's pins
    output wire [2:0] supply_set,
    output wire       supply_enable
);
  // Clocks and resets
  wire       clk;  // the card's clock
  wire       rst;
  wire       usb_clk;  // the link's clock
  wire       usb_rst;
  wire       locked;
  wire       started;  // clk runs and all supplies are up
  wire       phy_reset;
  wire       supply_level;  // its duty cycle sets the voltage of all rails

  // USB device, on usb_clk
  wire [7:0] ulpi_data_in;
  wire [7:0] ulpi_data_out;
  wire       ulpi_data_oe;
  wire       unused_ulpi_rst;  // would stop the device's own clock
  wire       usb_link_up;
  wire       usb_link_clear;
  wire [7:0] usb_rx_tdata;
  wire       usb_rx_tvalid;
  wire       usb_rx_tready;
  wire [7:0] usb_tx_tdata;
  wire       usb_tx_tvalid;
  wire       usb_tx_tready;
  wire       unused_configured;
  wire       unused_suspended;
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
      .INPUT    (1),
      .FEEDBACK (2),
      .PRIMARY  (8),
      .SECONDARY(4)
  ) u_pll (
      .clk_in       (clk_in),
      .clk_primary  (usb_clk),
      .clk_secondary(clk),
      .locked       (locked)
  );

  agg_supply #(
      .HIGH         (688),
      .SETTLE_CYCLES(3600000),
      .RISE_CYCLES  (600000)
  ) u_supply (
      .clk    (clk),
      .started(locked),
      .set    (supply_level),
      .enable (supply_enable),
      .good   (started)
  );

  agg_board_reset #(
      .PHY_CYCLES(120000)
  ) u_reset (
      .clk      (clk),
      .phy_clk  (usb_clk),
      .started  (started),
      .phy_reset(phy_reset),
      .phy_rst  (usb_rst),
      .rst      (rst)
  );

  assign supply_set = {3{supply_level}};
  assign ulpi_rst   = !phy_reset;

  // -- USB --
  agg_clock_out u_ulpi_clk (
      .clk(usb_clk),
      .pad(ulpi_clk)
  );

  agg_pads #(
      .WIDTH(8)
  ) u_ulpi_data (
      .pads (ulpi_data),
      .drive(ulpi_data_oe),
      .out  (ulpi_data_out),
      .in   (ulpi_data_in)
  );

  agg_usb_device u_usb (
      .clk          (usb_clk),
      .rst          (usb_rst),
      .ulpi_data_in (ulpi_data_in),
      .ulpi_data_out(ulpi_data_out),
      .ulpi_data_oe (ulpi_data_oe),
      .ulpi_dir     (ulpi_dir),
      .ulpi_nxt     (ulpi_nxt),
      .ulpi_stp     (ulpi_stp),
      .ulpi_rst     (unused_ulpi_rst),
      .link_up      (usb_link_up),
      .link_clear   (usb_link_clear),
      .rx_tdata     (usb_rx_tdata),
      .rx_tvalid    (usb_rx_tvalid),
      .rx_tready    (usb_rx_tready),
      .tx_tdata     (usb_tx_tdata),
      .tx_tvalid    (usb_tx_tvalid),
      .tx_tready    (usb_tx_tready),
      .configured   (unused_configured),
      .traffic      (traffic),
      .suspended    (unused_suspended)
  );

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
      .CYCLES(12000000)
  ) u_error (
      .clk   (clk),
      .rst   (rst),
      .strobe(error),
      .lit   (error_lit)
  );

  assign led_link    = usb_link_up;
  assign led_traffic = traffic_lit;
  assign led_error   = error_lit;

  // Common pins of the LEDs
  assign led_held    = 3'b001;

endmodule

`default_nettype wire
