// Frames from a MAC's clock to the card's: bytes at eth_clk become beats of BYTES at clk.
//
// Neither side can wait. The card takes a beat in every cycle of clk, so nothing is lost if BYTES
// bytes a cycle of clk are as fast as a byte a cycle of eth_clk: with 1 byte clk is no slower, and
// with 8 bytes it may be an eighth. A partner's clock is up to 0.02 % faster than its name; the gap
// and the preamble between frames, which do not cross, make up for that.
//
// Where clk is too slow, or still in reset, the memory fills. The rest of the frame is dropped,
// but for its last beat, which has tuser. If even that has no place, it is written once there is
// one, and frames that end before are dropped whole. So a frame without tuser at m_axis is one
// that came, byte for byte.
//
// Bytes of a last beat without tkeep are not defined. Not done here: the checks of frames, and the
// reset of one side alone (agg_async_fifo).

`default_nettype none

module agg_eth_rx_cross #(
    parameter integer BYTES = 8,  // in a beat of the card: 1 or 8
    parameter integer DEPTH_BITS = 4  // log2 of the beats that it holds, at least 2
) (
    // MAC
    input wire       eth_clk,
    input wire       eth_rst,
    input wire [7:0] s_axis_tdata,
    input wire       s_axis_tvalid,
    input wire       s_axis_tlast,
    input wire       s_axis_tuser,   // with tlast: the frame is bad

    // Card
    input  wire               clk,
    input  wire               rst,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0
    output wire               m_axis_tvalid,
    output wire               m_axis_tlast,
    output wire               m_axis_tuser    // with tlast: the frame is bad, or not whole
);

  generate
    if (BYTES != 1 && BYTES != 8) begin : g_bytes
      ERROR_a_beat_has_1_or_8_bytes error ();
    end
  endgenerate

  localparam [BYTES-1:0] FIRST = 1;  // a beat's first place

  // -- A beat, of bytes ---------------------------------------------------------------------------

  reg [8*BYTES-1:0] data_reg;
  reg [BYTES-1:0] keep_reg;  // bytes of data_reg
  reg [BYTES-1:0] at_reg;  // place of the next byte: one bit
  reg beat_reg;  // data_reg is a whole beat
  reg last_reg;
  reg user_reg;

  wire whole = s_axis_tvalid && (at_reg[BYTES-1] || s_axis_tlast);
  wire [BYTES-1:0] at_next = (at_reg << 1) | (at_reg >> (BYTES - 1));
  integer i;

  always @(posedge eth_clk) begin
    for (i = 0; i < BYTES; i = i + 1) begin
      if (s_axis_tvalid && at_reg[i]) data_reg[8*i+:8] <= s_axis_tdata;
    end
    if (s_axis_tvalid) begin
      keep_reg <= at_reg[0] ? at_reg : keep_reg | at_reg;
      at_reg   <= s_axis_tlast ? FIRST : at_next;
    end
    beat_reg <= whole;
    last_reg <= s_axis_tlast;
    user_reg <= s_axis_tuser;
    if (eth_rst) begin
      at_reg   <= FIRST;
      beat_reg <= 1'b0;
    end
  end

  // -- The memory, and what happens when it is full -----------------------------------------------

  reg  lost_reg;  // a beat of this frame was dropped, so all others up to its last are
  reg  owed_reg;  // the last beat of a frame had no place
  wire ready;
  wire unused_empty;
  wire write = owed_reg || (beat_reg && (last_reg || !lost_reg));
  wire taken = beat_reg && !owed_reg && (last_reg || !lost_reg) && ready;

  always @(posedge eth_clk) begin
    if (beat_reg) lost_reg <= !last_reg && !taken;  // none is taken until the last
    owed_reg <= (owed_reg && !ready) || (beat_reg && last_reg && !taken);
    if (eth_rst) begin
      lost_reg <= 1'b0;
      owed_reg <= 1'b0;
    end
  end

  agg_async_fifo #(
      .WIDTH(9 * BYTES + 2),
      .DEPTH_BITS(DEPTH_BITS)
  ) u_beats (
      .wr_clk(eth_clk),
      .wr_rst(eth_rst),
      .s_axis_tdata({
        owed_reg || (last_reg && (user_reg || lost_reg)), owed_reg || last_reg, keep_reg, data_reg
      }),
      .s_axis_tvalid(write),
      .s_axis_tready(ready),
      .rd_clk(clk),
      .rd_rst(rst),
      .m_axis_tdata({m_axis_tuser, m_axis_tlast, m_axis_tkeep, m_axis_tdata}),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(1'b1),
      .rd_empty(unused_empty)
  );

endmodule

`default_nettype wire
