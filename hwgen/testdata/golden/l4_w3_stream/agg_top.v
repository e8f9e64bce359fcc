// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// The card on a byte-stream link of 32 bits: 3 ports, 4 lanes.
//
// link_rx -> FIFO -> frame parser -> beats -> rank's port -> core -> words -> frames -> link_tx
//
// Both directions: tkeep is contiguous from bit 0, with at least one byte; a word may end anywhere
// in a frame. link_up is synchronous to clk. While it is low, and until the last host's work has
// drained, link_rx accepts nothing and link_tx offers nothing, not even a word already offered. rst
// is synchronous. beat_strobe is high in each cycle in which a beat enters the lanes, error_strobe
// for one cycle for each damaged frame from the host.

`default_nettype none

module agg_top (
    input wire clk,
    input wire rst,
    input wire link_up,

    // From the host
    input  wire [31:0] link_rx_tdata,
    input  wire [ 3:0] link_rx_tkeep,
    input  wire        link_rx_tvalid,
    output wire        link_rx_tready,

    // To the host
    output wire [31:0] link_tx_tdata,
    output wire [ 3:0] link_tx_tkeep,
    output wire        link_tx_tvalid,
    input  wire        link_tx_tready,

    // Strobes for counters and LEDs
    output wire beat_strobe,
    output wire error_strobe
);
  `include "zwire.vh"

  // Link
  wire         down;  // the link is down, or the last host's work has not drained
  wire         link_rst;
  wire         hold;  // the core ends a job or sets one up
  wire         unjudged;  // packets wait in the core for the commit
  wire [ 31:0] window;  // the next bytes from the link
  wire [  3:0] window_valid;
  wire [  3:0] window_sync_bytes;  // bytes of the sync word, at their places
  wire [  3:0] window_take;
  wire         window_commit;
  wire         window_rewind;

  // Receive: a header and payload words, then whole beats
  wire [175:0] rx_header;
  wire [ 31:0] rx_tdata;
  wire [  3:0] rx_tkeep;
  wire         rx_tvalid;
  wire         rx_tready;
  wire         rx_tlast;
  wire         rx_bad;  // the payload's CRC failed
  wire [  2:0] rx_dest;  // the packet's port
  wire [127:0] ingress_tdata;
  wire [ 15:0] ingress_tkeep;
  wire         ingress_tvalid;
  wire         ingress_tready;
  wire         ingress_tlast;
  wire [112:0] ingress_tuser;
  wire [  2:0] ingress_tdest;
  wire         ingress_busy;
  wire [  2:0] port_tvalid;  // the beat is for this port
  wire [  2:0] port_tready;
  wire [ 23:0] rank_of_port;
  wire [  2:0] member;  // the port has a rank
  wire         event_frame;
  wire         event_hunted;
  wire         event_header_crc;
  wire         event_bad_version;
  wire         event_bad_kind;
  wire         event_bad_length;

  // Registers: access, answer, reply
  wire         access_valid;
  wire         access_ready;
  wire         access_write;
  wire         reg_valid;
  wire         reg_ready;
  wire         reg_write;
  wire [ 31:0] reg_addr;
  wire [ 63:0] reg_wdata;
  wire         answer_valid;
  wire         answer_ready;
  wire [  7:0] answer_code;
  wire [ 63:0] answer_value;
  wire         reply_valid;
  wire         reply_ready;
  wire [175:0] reply_header;
  wire         unused_owned;  // for cards on a network
  wire [ 63:0] unused_job_ports;  // for cards on a network
  wire         unused_clear_counters;  // for cards on a network
  wire         unused_set_up;  // for cards on a network

  // Transmit: whole beats, then payload words, then steps of a frame
  wire [127:0] egress_tdata;
  wire [ 15:0] egress_tkeep;
  wire         egress_tvalid;
  wire         egress_tready;
  wire         egress_tlast;
  wire [239:0] egress_tuser;
  wire [  2:0] unused_tdest;  // headers name the ranks
  wire         unused_verdict_valid;
  wire [  1:0] unused_verdict_port;
  wire [  1:0] unused_verdict_slot;
  wire [ 31:0] unused_verdict_vid;
  wire [  2:0] unused_verdict_result;
  wire [  7:0] unused_verdict_code;
  wire [  2:0] unused_start;  // the transmitter takes each packet as it comes
  wire         egress_busy;
  wire [ 31:0] tx_tdata;
  wire         tx_tvalid;
  wire         tx_tready;
  wire         tx_tlast;
  wire [239:0] tx_header;
  wire [ 31:0] step_data;
  wire [  3:0] step_bytes;
  wire         step_valid;
  wire         step_ready;
  wire         step_idle;  // no step is ready to follow

  assign link_rst     = rst || down;
  assign error_strobe = event_header_crc || (rx_tvalid && rx_tready && rx_tlast && rx_bad);

  // -- Receiver --
  agg_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(link_up),
      .busy   (ingress_busy || unjudged || hold || egress_busy),
      .down   (down)
  );

  agg_byte_fifo #(
      .LINK_BYTES(4),
      .WINDOW    (4)
  ) u_fifo (
      .clk          (clk),
      .rst          (link_rst),
      .s_axis_tdata (link_rx_tdata),
      .s_axis_tkeep (link_rx_tkeep),
      .s_axis_tvalid(link_rx_tvalid),
      .s_axis_tready(link_rx_tready),
      .window       (window),
      .valid        (window_valid),
      .sync_bytes   (window_sync_bytes),
      .take         (window_take),
      .commit       (window_commit),
      .rewind       (window_rewind)
  );

  agg_frame_rx #(
      .WINDOW    (4),
      .STEP      (4),
      .CHUNK     (32),
      .ELEM_BYTES(4)
  ) u_rx (
      .clk              (clk),
      .rst              (link_rst),
      .window           (window),
      .valid            (window_valid),
      .sync_bytes       (window_sync_bytes),
      .take             (window_take),
      .commit           (window_commit),
      .rewind           (window_rewind),
      .header           (rx_header),
      .m_axis_tdata     (rx_tdata),
      .m_axis_tkeep     (rx_tkeep),
      .m_axis_tvalid    (rx_tvalid),
      .m_axis_tready    (rx_tready),
      .m_axis_tlast     (rx_tlast),
      .m_axis_tuser     (rx_bad),
      .m_register_valid (access_valid),
      .m_register_write (access_write),
      .m_register_ready (access_ready),
      .event_frame      (event_frame),
      .event_hunted     (event_hunted),
      .event_header_crc (event_header_crc),
      .event_bad_version(event_bad_version),
      .event_bad_kind   (event_bad_kind),
      .event_bad_length (event_bad_length)
  );

  agg_beat_pack #(
      .STEP      (4),
      .BEAT_BYTES(16),
      .PORTS     (3)
  ) u_pack (
      .clk          (clk),
      .rst          (rst),
      .close        (down),
      .busy         (ingress_busy),
      .header       (rx_header[8*HDR_BASE_BYTES-1:0]),
      .dest         (rx_dest),
      .s_axis_tdata (rx_tdata),
      .s_axis_tkeep (rx_tkeep),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tready(rx_tready),
      .s_axis_tlast (rx_tlast),
      .s_axis_tuser (rx_bad),
      .m_axis_tdata (ingress_tdata),
      .m_axis_tkeep (ingress_tkeep),
      .m_axis_tvalid(ingress_tvalid),
      .m_axis_tready(ingress_tready),
      .m_axis_tlast (ingress_tlast),
      .m_axis_tdest (ingress_tdest),
      .m_axis_tuser (ingress_tuser)
  );

  agg_route #(
      .PORTS   (3),
      .JOBS    (1),
      .JOB_BITS(1)
  ) u_route (
      .clk          (clk),
      .job          (rx_header[HDR_JOB_LSB+:HDR_JOB_BITS]),
      .rank         (rx_header[HDR_RANK_LSB+:HDR_RANK_BITS]),
      .rank_of_port (rank_of_port),
      .member       (member),
      .dest         (rx_dest),
      .s_axis_tdest (ingress_tdest),
      .s_axis_tvalid(ingress_tvalid),
      .s_axis_tready(ingress_tready),
      .m_axis_tvalid(port_tvalid),
      .m_axis_tready(port_tready)
  );

  // -- Register accesses --
  agg_register_link u_registers (
      .clk             (clk),
      .rst             (rst),
      .link_down       (down),
      .hold            (ingress_busy),
      .s_register_valid(access_valid),
      .s_register_ready(access_ready),
      .s_register_write(access_write),
      .s_register_addr (rx_header[HDR_VID_LSB+:HDR_VID_BITS]),
      .s_register_tag  (rx_header[HDR_LENGTH_LSB+:HDR_LENGTH_BITS]),
      .s_register_wdata(rx_header[HDR_MASK_LSB+:HDR_MASK_BITS]),
      .m_reg_valid     (reg_valid),
      .m_reg_ready     (reg_ready),
      .m_reg_write     (reg_write),
      .m_reg_addr      (reg_addr),
      .m_reg_wdata     (reg_wdata),
      .s_reg_valid     (answer_valid),
      .s_reg_ready     (answer_ready),
      .s_reg_code      (answer_code),
      .s_reg_value     (answer_value),
      .m_reply_valid   (reply_valid),
      .m_reply_ready   (reply_ready),
      .m_reply_header  (reply_header)
  );

  // -- Core --
  agg_core u_core (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .hold             (hold),
      .unjudged         (unjudged),
      .s_axis_tdata     ({3{ingress_tdata}}),
      .s_axis_tkeep     ({3{ingress_tkeep}}),
      .s_axis_tvalid    (port_tvalid),
      .s_axis_tready    (port_tready),
      .s_axis_tlast     ({3{ingress_tlast}}),
      .s_axis_tuser     ({3{ingress_tuser}}),
      .m_axis_tdata     (egress_tdata),
      .m_axis_tkeep     (egress_tkeep),
      .m_axis_tvalid    (egress_tvalid),
      .m_axis_tready    (egress_tready),
      .m_axis_tlast     (egress_tlast),
      .m_axis_tuser     (egress_tuser),
      .m_axis_tdest     (unused_tdest),
      .port_ready       ({3{1'b1}}),
      .port_start       (unused_start),
      .member           (member),
      .rank_of_port     (rank_of_port),
      .s_reg_valid      (reg_valid),
      .s_reg_ready      (reg_ready),
      .s_reg_write      (reg_write),
      .s_reg_addr       (reg_addr),
      .s_reg_wdata      (reg_wdata),
      .m_reg_valid      (answer_valid),
      .m_reg_ready      (answer_ready),
      .m_reg_code       (answer_code),
      .m_reg_value      (answer_value),
      .s_reg_partial    (1'b0),
      .s_reg_stranger   (1'b0),
      .s_code_valid     (1'b0),
      .s_code           (8'd0),
      .clear_staged     (1'b0),
      .members_whole    ({3{1'b1}}),
      .members_same     (1'b1),
      .owned            (unused_owned),
      .job_ports        (unused_job_ports),
      .clear_counters   (unused_clear_counters),
      .set_up           (unused_set_up),
      .shell_frames     (event_frame),
      .shell_hunted     (event_hunted),
      .shell_header_crc (event_header_crc),
      .shell_bad_version(event_bad_version),
      .shell_bad_kind   (event_bad_kind),
      .shell_bad_length (event_bad_length),
      .verdict_valid    (unused_verdict_valid),
      .verdict_port     (unused_verdict_port),
      .verdict_slot     (unused_verdict_slot),
      .verdict_vid      (unused_verdict_vid),
      .verdict_result   (unused_verdict_result),
      .verdict_code     (unused_verdict_code),
      .beat_strobe      (beat_strobe)
  );

  // -- Transmitter --
  agg_beat_unpack #(
      .STEP      (4),
      .BEAT_BYTES(16)
  ) u_unpack (
      .clk          (clk),
      .rst          (rst),
      .drop         (down),
      .busy         (egress_busy),
      .s_axis_tdata (egress_tdata),
      .s_axis_tkeep (egress_tkeep),
      .s_axis_tvalid(egress_tvalid),
      .s_axis_tready(egress_tready),
      .s_axis_tlast (egress_tlast),
      .s_axis_tuser (egress_tuser),
      .m_axis_tdata (tx_tdata),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast (tx_tlast),
      .m_axis_tuser (tx_header)
  );

  agg_frame_tx #(
      .WINDOW(4),
      .STEP  (4)
  ) u_tx (
      .clk           (clk),
      .rst           (link_rst),
      .s_reply_valid (reply_valid),
      .s_reply_ready (reply_ready),
      .s_reply_header(reply_header),
      .s_axis_tdata  (tx_tdata),
      .s_axis_tvalid (tx_tvalid),
      .s_axis_tready (tx_tready),
      .s_axis_tlast  (tx_tlast),
      .s_axis_tuser  (tx_header),
      .m_step_data   (step_data),
      .m_step_bytes  (step_bytes),
      .m_step_valid  (step_valid),
      .m_step_ready  (step_ready),
      .m_step_idle   (step_idle)
  );

  agg_byte_pack #(
      .STEP      (4),
      .LINK_BYTES(4)
  ) u_link (
      .clk          (clk),
      .rst          (link_rst),
      .s_step_data  (step_data),
      .s_step_bytes (step_bytes),
      .s_step_valid (step_valid),
      .s_step_ready (step_ready),
      .s_step_idle  (step_idle),
      .m_axis_tdata (link_tx_tdata),
      .m_axis_tkeep (link_tx_tkeep),
      .m_axis_tvalid(link_tx_tvalid),
      .m_axis_tready(link_tx_tready)
  );

endmodule

`default_nettype wire
