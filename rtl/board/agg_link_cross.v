// Brings a byte-stream link from the clock of its PHY to the clock of the card and back: the bytes, and
// the end of one host and the beginning of the next, between which no byte is left.
//
// up_reg (PHY) asks the card's side for a link, acknowledge_reg (card) answers; each changes only when
// the other has followed:
//
//   phy_link_up falls: both ways are shut on the PHY's side, and what stands in tx is dropped. Once the
//     card's side has acknowledged that the link was up, up_reg falls.
//   link_up falls at the card: it stops to offer, what stands in rx is dropped, and when that is empty
//     the acknowledgement falls.
//   phy_link_clear rises when that is seen and tx is empty: now phy_link_up may rise, then up_reg,
//     link_up, and the acknowledgement; only then are the ways open.
//
// Nothing that the card sends between link_up and the opening is lost: it waits in tx.
//
// Both resets must be high together, as those of agg_board_reset are. Not done here: a card whose
// last host's packets have not drained keeps the next one's bytes waiting by tready (agg_link_session).

`default_nettype none

module agg_link_cross #(
    parameter integer WIDTH = 8,
    parameter integer DEPTH_BITS = 6  // log2 of the words that each way holds
) (
    // The PHY's side
    input  wire             phy_clk,
    input  wire             phy_rst,
    input  wire             phy_link_up,       // rises only while phy_link_clear is high
    output wire             phy_link_clear,    // nothing is left of the last host
    input  wire [WIDTH-1:0] s_axis_rx_tdata,   // from the host
    input  wire             s_axis_rx_tvalid,
    output wire             s_axis_rx_tready,
    output wire [WIDTH-1:0] m_axis_tx_tdata,   // to the host
    output wire             m_axis_tx_tvalid,
    input  wire             m_axis_tx_tready,

    // The card's side
    input  wire             clk,
    input  wire             rst,
    output wire             link_up,           // low for four cycles at least
    output wire [WIDTH-1:0] m_axis_rx_tdata,
    output wire             m_axis_rx_tvalid,
    input  wire             m_axis_rx_tready,
    input  wire [WIDTH-1:0] s_axis_tx_tdata,
    input  wire             s_axis_tx_tvalid,
    output wire             s_axis_tx_tready
);

  // -- The PHY's side --

  reg up_reg;  // the card's side is to have a link
  reg lost_reg;  // phy_link_up has fallen since up_reg rose
  reg acknowledge_reg;  // of the card's side, below
  wire acknowledged;
  wire lost = lost_reg || !phy_link_up;
  wire open = up_reg && acknowledged && !lost;

  wire rx_tready;
  wire [WIDTH-1:0] tx_tdata;
  wire tx_tvalid;
  wire tx_empty;

  agg_sync u_acknowledged (
      .clk(phy_clk),
      .rst(phy_rst),
      .in (acknowledge_reg),
      .out(acknowledged)
  );

  always @(posedge phy_clk) begin
    if (!up_reg) begin
      up_reg   <= phy_link_up && phy_link_clear;
      lost_reg <= 1'b0;
    end else begin
      lost_reg <= lost;
      up_reg   <= !(acknowledged && lost);
    end
    if (phy_rst) begin
      up_reg   <= 1'b0;
      lost_reg <= 1'b0;
    end
  end

  assign phy_link_clear   = !up_reg && !acknowledged && tx_empty && !phy_rst;
  assign s_axis_rx_tready = open && rx_tready;
  assign m_axis_tx_tdata  = tx_tdata;
  assign m_axis_tx_tvalid = open && tx_tvalid;

  // -- The card's side --

  wire asked;  // up_reg
  reg [1:0] settled_reg;  // cycles since asked fell; after 3 all that was written shows
  wire [WIDTH-1:0] rx_tdata;
  wire rx_tvalid;
  wire rx_empty;
  wire tx_tready;

  agg_sync u_asked (
      .clk(clk),
      .rst(rst),
      .in (up_reg),
      .out(asked)
  );

  always @(posedge clk) begin
    if (asked) begin
      acknowledge_reg <= 1'b1;
      settled_reg     <= 2'd0;
    end else begin
      if (settled_reg != 2'd3) settled_reg <= settled_reg + 2'd1;
      else if (rx_empty) acknowledge_reg <= 1'b0;
    end
    if (rst) begin
      acknowledge_reg <= 1'b0;
      settled_reg     <= 2'd0;
    end
  end

  assign link_up          = asked;
  assign m_axis_rx_tdata  = rx_tdata;
  assign m_axis_rx_tvalid = asked && rx_tvalid;
  assign s_axis_tx_tready = asked && tx_tready;

  // -- Both ways --

  agg_async_fifo #(
      .WIDTH(WIDTH),
      .DEPTH_BITS(DEPTH_BITS)
  ) u_rx (
      .wr_clk       (phy_clk),
      .wr_rst       (phy_rst),
      .s_axis_tdata (s_axis_rx_tdata),
      .s_axis_tvalid(s_axis_rx_tvalid && open),
      .s_axis_tready(rx_tready),
      .rd_clk       (clk),
      .rd_rst       (rst),
      .m_axis_tdata (rx_tdata),
      .m_axis_tvalid(rx_tvalid),
      .m_axis_tready(m_axis_rx_tready || !asked),
      .rd_empty     (rx_empty)
  );

  agg_async_fifo #(
      .WIDTH(WIDTH),
      .DEPTH_BITS(DEPTH_BITS)
  ) u_tx (
      .wr_clk       (clk),
      .wr_rst       (rst),
      .s_axis_tdata (s_axis_tx_tdata),
      .s_axis_tvalid(s_axis_tx_tvalid && asked),
      .s_axis_tready(tx_tready),
      .rd_clk       (phy_clk),
      .rd_rst       (phy_rst),
      .m_axis_tdata (tx_tdata),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(lost || (open && m_axis_tx_tready)),
      .rd_empty     (tx_empty)
  );

endmodule

`default_nettype wire
