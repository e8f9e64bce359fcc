// A card behind the pins of a ULPI PHY, for the simulation: the USB device and a card with a link of 8
// bits, both with the PHY's clock. On a board a clock crossing stands between them.

`default_nettype none

module usb_card (
    input  wire       clk,
    input  wire       rst,
    input  wire [7:0] ulpi_data_in,
    output wire [7:0] ulpi_data_out,
    output wire       ulpi_data_oe,
    input  wire       ulpi_dir,
    input  wire       ulpi_nxt,
    output wire       ulpi_stp,
    output wire       ulpi_rst,
    output wire       active          // something moves in the card
);
  wire link_up;
  reg link_clear_reg;
  wire [7:0] rx_tdata;
  wire rx_tvalid;
  wire rx_tready;
  wire [7:0] tx_tdata;
  wire tx_tvalid;
  wire tx_tready;
  wire traffic;
  wire beat_strobe;

  // The card drops what the last host has left by itself, as soon as its link_up falls.
  always @(posedge clk) link_clear_reg <= !link_up;

  assign active = traffic || beat_strobe;

  // Not connected: what a board shows with lamps.
  /* verilator lint_off PINCONNECTEMPTY */
  /* verilator lint_off PINMISSING */
  agg_usb_device u_usb (
      .clk          (clk),
      .rst          (rst),
      .ulpi_data_in (ulpi_data_in),
      .ulpi_data_out(ulpi_data_out),
      .ulpi_data_oe (ulpi_data_oe),
      .ulpi_dir     (ulpi_dir),
      .ulpi_nxt     (ulpi_nxt),
      .ulpi_stp     (ulpi_stp),
      .ulpi_rst     (ulpi_rst),
      .link_up      (link_up),
      .link_clear   (link_clear_reg),
      .rx_tdata     (rx_tdata),
      .rx_tvalid    (rx_tvalid),
      .rx_tready    (rx_tready),
      .tx_tdata     (tx_tdata),
      .tx_tvalid    (tx_tvalid),
      .tx_tready    (tx_tready),
      .configured   (),
      .traffic      (traffic),
      .suspended    ()
  );

  agg_top u_card (
      .clk           (clk),
      .rst           (rst),
      .link_up       (link_up),
      .link_rx_tdata (rx_tdata),
      .link_rx_tkeep (1'b1),
      .link_rx_tvalid(rx_tvalid),
      .link_rx_tready(rx_tready),
      .link_tx_tdata (tx_tdata),
      .link_tx_tkeep (),
      .link_tx_tvalid(tx_tvalid),
      .link_tx_tready(tx_tready),
      .beat_strobe   (beat_strobe)
  );
  /* verilator lint_on PINMISSING */
  /* verilator lint_on PINCONNECTEMPTY */

endmodule

`default_nettype wire
