// Connects a byte-stream link from its PHY's clock to the card's and back: the bytes, and the
// change from one host to the next, without any byte left over.
//
// up_reg (PHY) requests a link on the card's side, acknowledge_reg (card) answers. Each changes
// only after the other has followed:
//
//   phy_link_up falls: both directions close at the PHY, and the bytes in tx are dropped. After the
//     card's acknowledgement has risen, up_reg falls.
//   link_up falls at the card: it offers no more words, the words in rx are dropped, and when rx is
//     empty, the acknowledgement falls.
//   phy_link_clear rises after that, when tx is empty. Now phy_link_up may rise, then up_reg,
//     link_up and the acknowledgement; only then do the directions open.
//
// Words that the card sends between link_up and the opening are not lost: they wait in tx.
//
// Both resets must overlap, like those of agg_board_reset. Not done here: while packets of the
// previous host drain, the card holds the next one's bytes by tready (agg_link_session).

`default_nettype none

module agg_link_cross #(
    parameter integer WIDTH = 8,
    parameter integer DEPTH_BITS = 6  // log2 of the words in each direction's FIFO
) (
    // PHY side
    input  wire             phy_clk,
    input  wire             phy_rst,
    input  wire             phy_link_up,       // rises only while phy_link_clear is high
    output wire             phy_link_clear,    // no byte of the previous host is left
    input  wire [WIDTH-1:0] s_axis_rx_tdata,   // from the host
    input  wire             s_axis_rx_tvalid,
    output wire             s_axis_rx_tready,
    output wire [WIDTH-1:0] m_axis_tx_tdata,   // to the host
    output wire             m_axis_tx_tvalid,
    input  wire             m_axis_tx_tready,

    // Card side
    input  wire             clk,
    input  wire             rst,
    output wire             link_up,           // low for at least four cycles
    output wire [WIDTH-1:0] m_axis_rx_tdata,
    output wire             m_axis_rx_tvalid,
    input  wire             m_axis_rx_tready,
    input  wire [WIDTH-1:0] s_axis_tx_tdata,
    input  wire             s_axis_tx_tvalid,
    output wire             s_axis_tx_tready
);

  // -- PHY side --

  reg up_reg;  // request a link on the card's side
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

  // -- Card side --

  wire asked;  // up_reg, synchronized
  reg [1:0] settled_reg;  // cycles since asked fell; after 3, every word written is visible
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

  // -- FIFOs --

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
