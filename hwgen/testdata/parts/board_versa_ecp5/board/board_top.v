// Made by: hwgen -lanes 1 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 1 -jobs 1
//      -shell stream -link 8 -board versa_ecp5 -clock 80

// A card on the board Lattice Versa ECP5: the whole FPGA.
//
// UART pins <-> UART, queue, break <-> agg_link_cross <-> card
//           uart_clk, 60 MHz                |       clk, 80 MHz
//
// A new host sends a break, which takes the link down for a moment. LEDs: link while it is up,
// traffic while bytes move, error for a while after a damaged frame. versa_ecp5.lpf
// constrains pins and clocks. agg_pll and the modules at the pins contain the vendor's cells.

`default_nettype none

module board_top (
    // Oscillator, 100 MHz
    input wire clk_in,

    // UART, 3000000 baud
    input  wire uart_rx,
    output wire uart_tx,

    // LEDs
    output wire led_link,
    output wire led_traffic,
    output wire led_error
);
  // Clocks and resets
  wire       clk;  // the card's clock
  wire       rst;
  wire       uart_clk;  // the link's clock
  wire       uart_rst;
  wire       locked;
  wire       started;  // clk runs and all supplies are up
  wire       unused_phy_reset;

  // UART, on uart_clk
  wire [7:0] byte_data;
  wire       byte_valid;
  wire [7:0] queue_tdata;
  wire       queue_tvalid;
  wire       queue_tready;
  wire       uart_link_up;
  wire       uart_link_clear;
  wire [7:0] uart_rx_tdata;
  wire       uart_rx_tvalid;
  wire       uart_rx_tready;
  wire [7:0] uart_tx_tdata;
  wire       uart_tx_tvalid;
  wire       uart_tx_tready;
  wire       unused_rx_tkeep;
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
      .INPUT    (5),
      .FEEDBACK (3),
      .PRIMARY  (8),
      .SECONDARY(6)
  ) u_pll (
      .clk_in       (clk_in),
      .clk_primary  (uart_clk),
      .clk_secondary(clk),
      .locked       (locked)
  );

  agg_board_reset #(
      .PHY_CYCLES(80000)
  ) u_reset (
      .clk      (clk),
      .phy_clk  (uart_clk),
      .started  (started),
      .phy_reset(unused_phy_reset),
      .phy_rst  (uart_rst),
      .rst      (rst)
  );

  assign started = locked;

  // -- UART --
  agg_uart_rx #(
      .DIVIDE(20)
  ) u_uart_rx (
      .clk         (uart_clk),
      .rst         (uart_rst),
      .line        (uart_rx),
      .m_byte_data (byte_data),
      .m_byte_valid(byte_valid)
  );

  agg_uart_queue #(
      .DEPTH_BITS(13)
  ) u_uart_queue (
      .clk          (uart_clk),
      .rst          (uart_rst),
      .s_byte_data  (byte_data),
      .s_byte_valid (byte_valid),
      .m_axis_tdata (queue_tdata),
      .m_axis_tvalid(queue_tvalid),
      .m_axis_tready(queue_tready)
  );

  agg_link_break u_break (
      .clk          (uart_clk),
      .rst          (uart_rst),
      .link_up      (uart_link_up),
      .link_clear   (uart_link_clear),
      .s_axis_tdata (queue_tdata),
      .s_axis_tkeep (1'b1),
      .s_axis_tvalid(queue_tvalid),
      .s_axis_tready(queue_tready),
      .m_axis_tdata (uart_rx_tdata),
      .m_axis_tkeep (unused_rx_tkeep),
      .m_axis_tvalid(uart_rx_tvalid),
      .m_axis_tready(uart_rx_tready)
  );

  agg_uart_tx #(
      .DIVIDE(20)
  ) u_uart_tx (
      .clk          (uart_clk),
      .rst          (uart_rst),
      .s_axis_tdata (uart_tx_tdata),
      .s_axis_tvalid(uart_tx_tvalid),
      .s_axis_tready(uart_tx_tready),
      .line         (uart_tx)
  );

  assign traffic = byte_valid || (uart_tx_tvalid && uart_tx_tready);

  // -- Clock crossing --
  agg_link_cross u_cross (
      .phy_clk         (uart_clk),
      .phy_rst         (uart_rst),
      .phy_link_up     (uart_link_up),
      .phy_link_clear  (uart_link_clear),
      .s_axis_rx_tdata (uart_rx_tdata),
      .s_axis_rx_tvalid(uart_rx_tvalid),
      .s_axis_rx_tready(uart_rx_tready),
      .m_axis_tx_tdata (uart_tx_tdata),
      .m_axis_tx_tvalid(uart_tx_tvalid),
      .m_axis_tx_tready(uart_tx_tready),
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
      .clk   (uart_clk),
      .rst   (uart_rst),
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

  assign led_link    = !uart_link_up;
  assign led_traffic = !traffic_lit;
  assign led_error   = !error_lit;

endmodule

`default_nettype wire
