// Not a card of Tributary: a bench's stand-in with the ports of a card of shell udp, which returns
// each good frame to where it came from.
//
// It keeps whole frames, since it may not pause within one. A frame that came bad is dropped, and
// error_strobe is high for a cycle. beat_strobe is high when a good frame has no place.

`default_nettype none

module ethernet_card #(
    parameter integer BYTES = 8,  // in a beat: 1 or 8
    parameter integer DEPTH_BITS = 12  // log2 of the beats that it holds
) (
    input  wire               clk,
    input  wire               rst,
    input  wire [8*BYTES-1:0] eth_rx_p0_tdata,
    input  wire [  BYTES-1:0] eth_rx_p0_tkeep,
    input  wire               eth_rx_p0_tvalid,
    input  wire               eth_rx_p0_tlast,
    input  wire               eth_rx_p0_tuser,
    output wire [8*BYTES-1:0] eth_tx_p0_tdata,
    output wire [  BYTES-1:0] eth_tx_p0_tkeep,
    output wire               eth_tx_p0_tvalid,
    input  wire               eth_tx_p0_tready,
    output wire               eth_tx_p0_tlast,
    output wire               beat_strobe,
    output wire               error_strobe
);

  wire [BYTES-1:0] last_keep;
  wire unused_payload;

  assign error_strobe = eth_rx_p0_tvalid && eth_rx_p0_tlast && eth_rx_p0_tuser;
  assign eth_tx_p0_tkeep = eth_tx_p0_tlast ? last_keep : {BYTES{1'b1}};

  agg_frame_queue #(
      .WORD_BITS(8 * BYTES),
      .DESCRIPTOR_BITS(BYTES),
      .DEPTH_BITS(DEPTH_BITS),
      .FRAME_BITS(6)
  ) u_frames (
      .clk(clk),
      .rst(rst),
      .s_axis_tvalid(eth_rx_p0_tvalid),
      .s_axis_tdata(eth_rx_p0_tdata),
      .s_axis_tlast(eth_rx_p0_tlast),
      .s_verdict_valid(eth_rx_p0_tvalid && eth_rx_p0_tlast),
      .s_verdict_keep(!eth_rx_p0_tuser),
      .s_verdict_descriptor(eth_rx_p0_tkeep),
      .event_dropped(beat_strobe),
      .m_axis_tvalid(eth_tx_p0_tvalid),
      .m_axis_tready(eth_tx_p0_tready),
      .m_axis_tdata(eth_tx_p0_tdata),
      .m_axis_tpayload(unused_payload),
      .m_axis_tlast(eth_tx_p0_tlast),
      .m_axis_tuser(last_keep)
  );

endmodule

`default_nettype wire
