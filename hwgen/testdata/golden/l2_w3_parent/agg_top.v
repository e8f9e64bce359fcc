// Made by: hwgen -lanes 2 -workers 3 -format fp32 -result fp32 -sum tree -chunk 8 -window 2 -jobs 2
//      -shell none -registers axil -parent

// The card with bare AXI4-Stream ports: 3 ports, 2 lanes.
//
// s_axis_p0..2 -> core -> a queue per port -> m_axis_p0..2
//
// tuser is the header, byte k in bits 8k+7..8k. Inputs: 14 bytes, valid on a packet's first beat;
// bit 112 marks a damaged payload, on the last beat. Outputs: 22 bytes, valid on every beat.
// tkeep is all ones in a beat of a payload; a packet without payload is one beat with tkeep = 0.
//
// A port that accepts no packets does not delay other ports. link_up is synchronous to clk. While
// it is low, and until its jobs have drained, the card accepts no register access and drops
// incoming packets. An access under way is answered, and packets in a queue leave completely.
// Latency from the last contribution's last beat to the result's first: 44 cycles. rst is
// synchronous. beat_strobe is high in each cycle in which a beat enters the lanes.
//
// The up port is one more port, for the parent in a tree of cards. Its input takes results, replays and
// statuses: tuser has 22 bytes of header, and bit 176 marks a damaged payload. Its output sends data and
// finishes; their headers have no mask.

`default_nettype none

module agg_top (
    input wire clk,
    input wire rst,
    input wire link_up,

    // Port 0
    input  wire [ 63:0] s_axis_p0_tdata,
    input  wire [  7:0] s_axis_p0_tkeep,
    input  wire         s_axis_p0_tvalid,
    output wire         s_axis_p0_tready,
    input  wire         s_axis_p0_tlast,
    input  wire [112:0] s_axis_p0_tuser,
    output wire [ 63:0] m_axis_p0_tdata,
    output wire [  7:0] m_axis_p0_tkeep,
    output wire         m_axis_p0_tvalid,
    input  wire         m_axis_p0_tready,
    output wire         m_axis_p0_tlast,
    output wire [175:0] m_axis_p0_tuser,

    // Port 1
    input  wire [ 63:0] s_axis_p1_tdata,
    input  wire [  7:0] s_axis_p1_tkeep,
    input  wire         s_axis_p1_tvalid,
    output wire         s_axis_p1_tready,
    input  wire         s_axis_p1_tlast,
    input  wire [112:0] s_axis_p1_tuser,
    output wire [ 63:0] m_axis_p1_tdata,
    output wire [  7:0] m_axis_p1_tkeep,
    output wire         m_axis_p1_tvalid,
    input  wire         m_axis_p1_tready,
    output wire         m_axis_p1_tlast,
    output wire [175:0] m_axis_p1_tuser,

    // Port 2
    input  wire [ 63:0] s_axis_p2_tdata,
    input  wire [  7:0] s_axis_p2_tkeep,
    input  wire         s_axis_p2_tvalid,
    output wire         s_axis_p2_tready,
    input  wire         s_axis_p2_tlast,
    input  wire [112:0] s_axis_p2_tuser,
    output wire [ 63:0] m_axis_p2_tdata,
    output wire [  7:0] m_axis_p2_tkeep,
    output wire         m_axis_p2_tvalid,
    input  wire         m_axis_p2_tready,
    output wire         m_axis_p2_tlast,
    output wire [175:0] m_axis_p2_tuser,

    // Up port, for the parent
    input  wire [ 63:0] s_axis_up_tdata,
    input  wire [  7:0] s_axis_up_tkeep,
    input  wire         s_axis_up_tvalid,
    output wire         s_axis_up_tready,
    input  wire         s_axis_up_tlast,
    input  wire [176:0] s_axis_up_tuser,
    output wire [ 63:0] m_axis_up_tdata,
    output wire [  7:0] m_axis_up_tkeep,
    output wire         m_axis_up_tvalid,
    input  wire         m_axis_up_tready,
    output wire         m_axis_up_tlast,
    output wire [175:0] m_axis_up_tuser,

    // Registers, as an AXI4-Lite subordinate
    input  wire [31:0] s_axil_awaddr,
    input  wire [ 2:0] s_axil_awprot,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [63:0] s_axil_wdata,
    input  wire [ 7:0] s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [ 1:0] s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [31:0] s_axil_araddr,
    input  wire [ 2:0] s_axil_arprot,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [63:0] s_axil_rdata,
    output wire [ 1:0] s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,

    // What became of a data packet: one event for each that entered, in the order of their port
    output wire        verdict_valid,
    output wire [ 1:0] verdict_port,
    output wire [ 1:0] verdict_slot,
    output wire [31:0] verdict_vid,
    output wire [ 2:0] verdict_result,
    output wire [ 7:0] verdict_code,

    // A beat enters the lanes
    output wire beat_strobe
);
  `include "zwire.vh"

  wire         down;  // the link is down, or its jobs have not drained
  wire         hold;  // the core ends a job or sets one up
  wire         unused_unjudged;  // workers may send at any time
  wire [ 63:0] out_tdata;
  wire [  7:0] out_tkeep;
  wire         unused_tvalid;  // out_tdest has it
  wire         out_tlast;
  wire [239:0] out_tuser;
  wire [  3:0] out_tdest;  // ports that the beat is for; 0: there is none
  wire         out_tpayload;  // the beat has payload: all bytes
  wire [  3:0] port_ready;  // the port's queue has room for a packet
  wire [  3:0] port_start;  // a packet starts for the port
  wire [  5:0] unused_member;  // each port is a link of its own
  wire [ 47:0] unused_rank_of_port;
  wire         unused_owned;  // for cards on a network
  wire [ 63:0] unused_job_ports;  // for cards on a network
  wire         unused_clear_counters;  // for cards on a network
  wire         unused_set_up;  // for cards on a network

  agg_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(link_up),
      .busy   (hold),
      .down   (down)
  );

  wire        reg_ready;  // the core can take a register access
  wire        reg_valid;
  wire        reg_write;
  wire [31:0] reg_addr;
  wire [63:0] reg_wdata;
  wire        reg_partial;  // a write lacks bytes
  wire        answer_valid;
  wire        answer_ready;
  wire [ 7:0] answer_code;
  wire [63:0] answer_value;

  agg_axil u_axil (
      .clk           (clk),
      .rst           (rst),
      .link_down     (down),
      .s_axil_awaddr (s_axil_awaddr),
      .s_axil_awprot (s_axil_awprot),
      .s_axil_awvalid(s_axil_awvalid),
      .s_axil_awready(s_axil_awready),
      .s_axil_wdata  (s_axil_wdata),
      .s_axil_wstrb  (s_axil_wstrb),
      .s_axil_wvalid (s_axil_wvalid),
      .s_axil_wready (s_axil_wready),
      .s_axil_bresp  (s_axil_bresp),
      .s_axil_bvalid (s_axil_bvalid),
      .s_axil_bready (s_axil_bready),
      .s_axil_araddr (s_axil_araddr),
      .s_axil_arprot (s_axil_arprot),
      .s_axil_arvalid(s_axil_arvalid),
      .s_axil_arready(s_axil_arready),
      .s_axil_rdata  (s_axil_rdata),
      .s_axil_rresp  (s_axil_rresp),
      .s_axil_rvalid (s_axil_rvalid),
      .s_axil_rready (s_axil_rready),
      .m_reg_valid   (reg_valid),
      .m_reg_ready   (reg_ready),
      .m_reg_write   (reg_write),
      .m_reg_addr    (reg_addr),
      .m_reg_wdata   (reg_wdata),
      .m_reg_partial (reg_partial),
      .s_reg_valid   (answer_valid),
      .s_reg_ready   (answer_ready),
      .s_reg_code    (answer_code),
      .s_reg_value   (answer_value)
  );

  agg_core u_core (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .hold             (hold),
      .unjudged         (unused_unjudged),
      .s_axis_tdata     ({s_axis_up_tdata, s_axis_p2_tdata, s_axis_p1_tdata, s_axis_p0_tdata}),
      .s_axis_tkeep     ({s_axis_up_tkeep, s_axis_p2_tkeep, s_axis_p1_tkeep, s_axis_p0_tkeep}),
      .s_axis_tvalid    ({s_axis_up_tvalid, s_axis_p2_tvalid, s_axis_p1_tvalid, s_axis_p0_tvalid}),
      .s_axis_tready    ({s_axis_up_tready, s_axis_p2_tready, s_axis_p1_tready, s_axis_p0_tready}),
      .s_axis_tlast     ({s_axis_up_tlast, s_axis_p2_tlast, s_axis_p1_tlast, s_axis_p0_tlast}),
      .s_axis_tuser     ({s_axis_p2_tuser, s_axis_p1_tuser, s_axis_p0_tuser}),
      .s_axis_up_tuser  (s_axis_up_tuser),
      .m_axis_tdata     (out_tdata),
      .m_axis_tkeep     (out_tkeep),
      .m_axis_tvalid    (unused_tvalid),
      .m_axis_tready    (1'b1),
      .m_axis_tlast     (out_tlast),
      .m_axis_tuser     (out_tuser),
      .m_axis_tdest     (out_tdest),
      .port_ready       (port_ready),
      .port_start       (port_start),
      .member           (unused_member),
      .rank_of_port     (unused_rank_of_port),
      .s_reg_valid      (reg_valid),
      .s_reg_ready      (reg_ready),
      .s_reg_write      (reg_write),
      .s_reg_addr       (reg_addr),
      .s_reg_wdata      (reg_wdata),
      .m_reg_valid      (answer_valid),
      .m_reg_ready      (answer_ready),
      .m_reg_code       (answer_code),
      .m_reg_value      (answer_value),
      .s_reg_partial    (reg_partial),
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
      .shell_frames     (1'b0),
      .shell_hunted     (1'b0),
      .shell_header_crc (1'b0),
      .shell_bad_version(1'b0),
      .shell_bad_kind   (1'b0),
      .shell_bad_length (1'b0),
      .verdict_valid    (verdict_valid),
      .verdict_port     (verdict_port),
      .verdict_slot     (verdict_slot),
      .verdict_vid      (verdict_vid),
      .verdict_result   (verdict_result),
      .verdict_code     (verdict_code),
      .beat_strobe      (beat_strobe)
  );

  wire [63:0] unused_fields;  // the mask's bits of ports that the card lacks, and receivers

  assign unused_fields = out_tuser[239:176];
  assign out_tpayload  = |out_tkeep;

  // Output queues of the ports, port 0 in the lowest bits of vectors
  wire [  3:0] queue_tvalid;
  wire [  3:0] queue_tready;
  wire [255:0] queue_tdata;
  wire [ 31:0] queue_tkeep;
  wire [  3:0] queue_tlast;
  wire [703:0] queue_tuser;

  genvar p;
  generate
    for (p = 0; p < 4; p = p + 1) begin : g_queue
      wire [175:0] header;  // without bits of the mask that are always zero

      assign queue_tuser[176*p+:176] = header;

      agg_port_queue #(
          .BEAT_BITS  (64),
          .USER_BITS  (176),
          .BEATS      (4),
          .DEPTH_BITS (6),
          .PACKET_BITS(4)
      ) u_queue (
          .clk            (clk),
          .rst            (rst),
          .start          (port_start[p]),
          .ready          (port_ready[p]),
          .s_axis_tvalid  (out_tdest[p]),
          .s_axis_tdata   (out_tdata),
          .s_axis_tpayload(out_tpayload),
          .s_axis_tlast   (out_tlast),
          .s_axis_tuser   (out_tuser[175:0]),
          .m_axis_tvalid  (queue_tvalid[p]),
          .m_axis_tready  (queue_tready[p]),
          .m_axis_tdata   (queue_tdata[64*p+:64]),
          .m_axis_tkeep   (queue_tkeep[8*p+:8]),
          .m_axis_tlast   (queue_tlast[p]),
          .m_axis_tuser   (header)
      );
    end
  endgenerate

  assign {m_axis_up_tvalid, m_axis_p2_tvalid, m_axis_p1_tvalid, m_axis_p0_tvalid} = queue_tvalid;
  assign queue_tready = {m_axis_up_tready, m_axis_p2_tready, m_axis_p1_tready, m_axis_p0_tready};
  assign {m_axis_up_tdata, m_axis_p2_tdata, m_axis_p1_tdata, m_axis_p0_tdata} = queue_tdata;
  assign {m_axis_up_tkeep, m_axis_p2_tkeep, m_axis_p1_tkeep, m_axis_p0_tkeep} = queue_tkeep;
  assign {m_axis_up_tlast, m_axis_p2_tlast, m_axis_p1_tlast, m_axis_p0_tlast} = queue_tlast;
  assign {m_axis_up_tuser, m_axis_p2_tuser, m_axis_p1_tuser, m_axis_p0_tuser} = queue_tuser;

endmodule

`default_nettype wire
