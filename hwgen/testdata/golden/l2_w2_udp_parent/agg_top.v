// Made by: hwgen -lanes 2 -workers 2 -format fp32 -result fp32 -sum tree -chunk 8 -window 2 -jobs 2
//      -shell udp -link 64 -ethernet 2 -mac 02:54:52:42:00:01 -ip 192.168.84.66 -udp-port 21570
//      -parent

// The card on Ethernet: 2 ports, 2 ports of the core, 2 lanes.
//
// eth_rx -> checks -> queue -> sender's address -> beats -> rank's port -> core
// core, replies -> datagram, checks -> copy for each address -> frame -> eth_tx
//
// Frames are without FCS, from the destination's MAC address on; byte k of a word is in bits
// 8k+7..8k, and tkeep is contiguous from bit 0. eth_rx takes every beat; tuser marks a frame that
// the MAC found bad, on its last beat. A frame on eth_tx has 60 bytes or more, and no pause inside.
// rst is synchronous. beat_strobe is high in each cycle in which a beat enters the lanes,
// error_strobe for one cycle for each frame that is dropped because it is damaged or not for this
// card.

`default_nettype none

module agg_top (
    input wire clk,
    input wire rst,

    // Ethernet port 0
    input  wire [63:0] eth_rx_p0_tdata,
    input  wire [ 7:0] eth_rx_p0_tkeep,
    input  wire        eth_rx_p0_tvalid,
    input  wire        eth_rx_p0_tlast,
    input  wire        eth_rx_p0_tuser,
    output wire [63:0] eth_tx_p0_tdata,
    output wire [ 7:0] eth_tx_p0_tkeep,
    output wire        eth_tx_p0_tvalid,
    input  wire        eth_tx_p0_tready,
    output wire        eth_tx_p0_tlast,

    // Ethernet port 1
    input  wire [63:0] eth_rx_p1_tdata,
    input  wire [ 7:0] eth_rx_p1_tkeep,
    input  wire        eth_rx_p1_tvalid,
    input  wire        eth_rx_p1_tlast,
    input  wire        eth_rx_p1_tuser,
    output wire [63:0] eth_tx_p1_tdata,
    output wire [ 7:0] eth_tx_p1_tkeep,
    output wire        eth_tx_p1_tvalid,
    input  wire        eth_tx_p1_tready,
    output wire        eth_tx_p1_tlast,

    // Strobes for counters and LEDs
    output wire beat_strobe,
    output wire error_strobe
);
  `include "zwire.vh"

  // Ethernet ports, port 0 in the lowest bits of vectors
  wire [127:0] rx_tdata;

  assign rx_tdata = {eth_rx_p1_tdata, eth_rx_p0_tdata};

  wire [15:0] rx_tkeep;

  assign rx_tkeep = {eth_rx_p1_tkeep, eth_rx_p0_tkeep};

  wire [1:0] rx_tvalid;

  assign rx_tvalid = {eth_rx_p1_tvalid, eth_rx_p0_tvalid};

  wire [1:0] rx_tlast;

  assign rx_tlast = {eth_rx_p1_tlast, eth_rx_p0_tlast};

  wire [1:0] rx_tuser;

  assign rx_tuser = {eth_rx_p1_tuser, eth_rx_p0_tuser};

  wire [ 1:0] received_valid;  // a verdict on a frame
  wire [ 5:0] received_kind;
  wire [15:0] ethernet_number;

  assign ethernet_number = {8'd1, 8'd0};

  // Answers to ARP and echo requests
  wire [127:0] answers_tdata;
  wire [ 15:0] answers_tkeep;
  wire [  1:0] answers_tvalid;
  wire [  1:0] answers_tready;
  wire [  1:0] answers_tlast;

  // Registers, addresses and what they hold up
  wire         down;  // a lease has ended, and its jobs have not drained
  wire         access_valid;
  wire         access_ready;
  wire         access_write;
  wire [ 31:0] access_addr;
  wire [ 15:0] access_tag;
  wire [ 63:0] access_wdata;
  wire [ 47:0] access_mac;
  wire [ 31:0] access_ip;
  wire [ 15:0] access_port;
  wire [  7:0] access_ethernet;
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
  wire [ 47:0] reply_mac;
  wire [ 31:0] reply_ip;
  wire [ 15:0] reply_port;
  wire [  7:0] reply_ethernet;  // the Ethernet port
  wire [ 47:0] own_mac;
  wire [ 31:0] own_ip;
  wire [ 15:0] own_port;
  wire         lease_over;  // the owner loses the card
  wire         hold_packets;  // start no lookup and no packet towards the core
  wire         packets_busy;  // a packet was looked up and is not judged
  wire         packet_started;  // the core starts a packet
  wire         packet_left;  // the oldest started packet has left with all copies
  wire [  1:0] drop_valid;  // by Ethernet port, like the next
  wire [  7:0] drop_reason;
  wire [  1:0] stranger;
  wire [  1:0] passed;
  wire [  7:0] dropped;
  wire [  1:0] from_en;
  wire [ 15:0] from_job;
  wire [ 15:0] from_rank;
  wire [  1:0] from_valid;  // two enabled cycles later
  wire [ 63:0] from_ip;
  wire [ 31:0] from_port;
  wire [ 15:0] from_ethernet;
  wire [  1:0] from_dest;  // the core's port
  wire [  1:0] to_en;
  wire [  1:0] to_job;
  wire [  1:0] to_port;
  wire [ 95:0] to_mac;  // two enabled cycles later
  wire [ 63:0] to_ip;
  wire [ 31:0] to_udp_port;
  wire [  3:0] to_same;  // ports with the same address
  wire         s_reg_stranger;
  wire         s_code_valid;
  wire [  7:0] s_code;
  wire         clear_staged;
  wire [  1:0] members_whole;
  wire         members_same;
  wire         owned;
  wire [ 63:0] job_ports;
  wire         clear_counters;
  wire         set_up;
  wire         hold;  // the core ends a job or sets one up

  // Contributions, at the core's ports
  wire [191:0] ingress_tdata;
  wire [ 23:0] ingress_tkeep;
  wire [  2:0] ingress_tvalid;
  wire [  2:0] ingress_tready;
  wire [  2:0] ingress_tlast;
  wire [225:0] ingress_tuser;
  wire [176:0] ingress_up_tuser;

  // Parents: addresses, and upward UDP ports of jobs
  wire         parent_good;  // a parent can have the staged address
  wire         parent_same;  // it is that of the job's parent
  wire [  1:0] up_lost;  // a packet of the parent is dropped, by Ethernet port
  wire         staged_up;  // JOB_PARENT: the job is a tree job
  wire [ 15:0] staged_up_port;  // its upward UDP port
  wire [  1:0] up_runs;  // tree jobs that are set up
  wire [ 31:0] up_ports;  // upward UDP ports
  wire [  1:0] parent_en;
  wire [  1:0] parent_job;
  wire [  1:0] parent_valid;  // two enabled cycles later
  wire [ 63:0] parent_ip;
  wire [ 31:0] parent_port;
  wire [ 15:0] parent_ethernet;
  wire [  1:0] up_en;
  wire [  1:0] up_job;
  wire [ 95:0] up_mac;  // two enabled cycles later
  wire [ 63:0] up_ip;
  wire [ 31:0] up_udp_port;
  wire [ 31:0] up_source;  // the upward UDP port
  wire         parent_write;  // to PARENT_ADDRESS or PARENT_MAC
  wire [ 63:0] parent_value;
  wire         parent_receives;  // entries for received packets change
  wire         parent_sends;  // those for packets that leave do
  wire         parent_partial;  // the entries of the commit's job are not whole
  wire [  3:0] above;  // jobs whose parent is behind each Ethernet port
  wire [  1:0] check_busy;
  wire [  1:0] pack_busy;
  wire         unjudged;  // packets wait in the core for the commit

  // The core's packets
  wire [ 63:0] egress_tdata;
  wire [  7:0] egress_tkeep;
  wire         egress_tvalid;
  wire         egress_tready;
  wire         egress_tlast;
  wire [239:0] egress_tuser;
  wire [  2:0] egress_tdest;
  wire [  2:0] packet_start;  // ports for which the core begins a packet
  wire         unused_verdict_valid;
  wire         unused_verdict_port;
  wire [  1:0] unused_verdict_slot;
  wire [ 31:0] unused_verdict_vid;
  wire [  2:0] unused_verdict_result;
  wire [  7:0] unused_verdict_code;

  // Events of each Ethernet port
  wire [  1:0] event_frame;  // a datagram whose checks hold
  wire [  1:0] event_bad_version;
  wire [  1:0] event_bad_kind;
  wire [  1:0] event_bad_length;
  wire [  1:0] event_queue_full;  // a packet is dropped
  wire [  1:0] event_accesses_full;  // an access is dropped
  wire [  1:0] event_answer_lost;  // an ARP or echo request is dropped

  assign packets_busy   = |{check_busy, pack_busy, unjudged};
  assign packet_started = |packet_start;

  wire [1:0] event_unpassed;  // a frame for another port is dropped
  wire [7:0] behind;  // ports of the core behind each Ethernet port, for each job

  assign dropped      = {event_answer_lost, event_accesses_full, event_queue_full, event_unpassed};
  assign error_strobe = |drop_valid;

  // -- Receiver --
  wire [  1:0] waiting_valid;  // a register access waits
  wire [  1:0] waiting_ready;
  wire [  1:0] waiting_write;
  wire [ 63:0] waiting_addr;
  wire [ 31:0] waiting_tag;
  wire [127:0] waiting_wdata;
  wire [ 95:0] waiting_mac;
  wire [ 63:0] waiting_ip;
  wire [ 31:0] waiting_port;
  wire [ 15:0] waiting_ethernet;
  wire [127:0] beat_tdata;
  wire [ 15:0] beat_tkeep;
  wire [  1:0] beat_tvalid;
  wire [  1:0] beat_tready;
  wire [  1:0] beat_tlast;
  wire [225:0] beat_tuser;
  wire [  5:0] beat_tdest;  // port of the core, one hot
  wire [127:0] beat_tmask;  // of the parent's packets

  genvar e;
  generate
    for (e = 0; e < 2; e = e + 1) begin : g_receive
      wire         received_up;  // for the upward UDP port of a job
      wire         received_up_job;
      wire [ 63:0] checked_mask;
      wire [  3:0] received_reason;
      wire [ 47:0] received_mac;
      wire [ 31:0] received_ip;
      wire [ 15:0] received_port;
      wire [  1:0] received_ecn;
      wire [175:0] received_header;
      wire [ 15:0] received_bytes;
      wire [ 47:0] received_echo;
      wire [ 63:0] received_tdata;  // payload
      wire [  7:0] unused_tkeep;  // headers have the length
      wire         received_tvalid;
      wire         received_tlast;

      agg_eth_receive #(
          .BYTES      (8),
          .FRAME_BYTES(9018),
          .JOBS       (2),
          .JOB_BITS   (1)
      ) u_receive (
          .clk             (clk),
          .rst             (rst),
          .own_mac         (own_mac),
          .own_ip          (own_ip),
          .own_port        (own_port),
          .up_runs         (up_runs),
          .up_ports        (up_ports),
          .m_verdict_up    (received_up),
          .m_verdict_up_job(received_up_job),
          .s_axis_tvalid   (rx_tvalid[e]),
          .s_axis_tdata    (rx_tdata[64*e+:64]),
          .s_axis_tkeep    (rx_tkeep[8*e+:8]),
          .s_axis_tlast    (rx_tlast[e]),
          .s_axis_tuser    (rx_tuser[e]),
          .m_axis_tvalid   (received_tvalid),
          .m_axis_tdata    (received_tdata),
          .m_axis_tkeep    (unused_tkeep),
          .m_axis_tlast    (received_tlast),
          .m_verdict_valid (received_valid[e]),
          .m_verdict_kind  (received_kind[3*e+:3]),
          .m_verdict_reason(received_reason),
          .m_verdict_mac   (received_mac),
          .m_verdict_ip    (received_ip),
          .m_verdict_port  (received_port),
          .m_verdict_ecn   (received_ecn),
          .m_verdict_header(received_header),
          .m_verdict_bytes (received_bytes),
          .m_verdict_echo  (received_echo)
      );

      assign drop_valid[e]       = received_valid[e] && received_kind[3*e+:3] == 3'd0;
      assign drop_reason[4*e+:4] = received_reason;

      wire [63:0] passing_tdata;  // the received frame, as late as its verdict
      wire        passing_tvalid;
      wire        passing_tlast;
      wire [31:0] unused_echo;  // the answer has the request's bytes

      assign unused_echo = received_echo[31:0];

      agg_tag_delay #(
          .WIDTH (65),
          .CYCLES(9)
      ) u_passing (
          .clk      (clk),
          .rst      (rst),
          .in_valid (rx_tvalid[e]),
          .in_tag   ({rx_tlast[e], rx_tdata[64*e+:64]}),
          .out_valid(passing_tvalid),
          .out_tag  ({passing_tlast, passing_tdata})
      );

      agg_eth_answers #(
          .BYTES(8)
      ) u_answers (
          .clk          (clk),
          .rst          (rst),
          .own_mac      (own_mac),
          .own_ip       (own_ip),
          .s_axis_tdata (passing_tdata),
          .s_axis_tvalid(passing_tvalid),
          .s_axis_tlast (passing_tlast),
          .s_arp        (received_valid[e] && received_kind[3*e+:3] == 3'd2),
          .s_echo       (received_valid[e] && received_kind[3*e+:3] == 3'd3),
          .s_mac        (received_mac),
          .s_ip         (received_ip),
          .s_bytes      (received_bytes + 16'd28),
          .s_checksum   (received_echo[47:32]),
          .dropped      (event_answer_lost[e]),
          .m_axis_tdata (answers_tdata[64*e+:64]),
          .m_axis_tkeep (answers_tkeep[8*e+:8]),
          .m_axis_tvalid(answers_tvalid[e]),
          .m_axis_tready(answers_tready[e]),
          .m_axis_tlast (answers_tlast[e])
      );

      wire [ 63:0] accepted_tdata;
      wire         accepted_tvalid;
      wire         accepted_tlast;
      wire         accepted_valid;  // a verdict on a frame's payload
      wire         accepted_keep;
      wire [227:0] accepted_descriptor;
      wire         asked_valid;  // a register access came
      wire         asked_write;
      wire [ 31:0] asked_addr;
      wire [ 15:0] asked_tag;
      wire [ 63:0] asked_wdata;
      wire [ 47:0] asked_mac;
      wire [ 31:0] asked_ip;
      wire [ 15:0] asked_port;

      agg_datagram_accept #(
          .BYTES     (8),
          .CHUNK     (8),
          .ELEM_BYTES(4),
          .JOB_BITS  (1)
      ) u_accept (
          .clk                    (clk),
          .rst                    (rst),
          .s_axis_tvalid          (received_tvalid),
          .s_axis_tdata           (received_tdata),
          .s_axis_tlast           (received_tlast),
          .s_verdict_valid        (received_valid[e]),
          .s_verdict_kind         (received_kind[3*e+:3]),
          .s_verdict_mac          (received_mac),
          .s_verdict_ip           (received_ip),
          .s_verdict_port         (received_port),
          .s_verdict_ecn          (received_ecn),
          .s_verdict_header       (received_header),
          .s_verdict_bytes        (received_bytes),
          .s_verdict_up           (received_up),
          .s_verdict_up_job       (received_up_job),
          .m_axis_tvalid          (accepted_tvalid),
          .m_axis_tdata           (accepted_tdata),
          .m_axis_tlast           (accepted_tlast),
          .m_verdict_valid        (accepted_valid),
          .m_verdict_keep         (accepted_keep),
          .m_verdict_descriptor   (accepted_descriptor[160:0]),
          .m_verdict_up_descriptor(accepted_descriptor[227:161]),
          .m_access_valid         (asked_valid),
          .m_access_write         (asked_write),
          .m_access_addr          (asked_addr),
          .m_access_tag           (asked_tag),
          .m_access_wdata         (asked_wdata),
          .m_access_mac           (asked_mac),
          .m_access_ip            (asked_ip),
          .m_access_port          (asked_port),
          .event_frame            (event_frame[e]),
          .event_bad_version      (event_bad_version[e]),
          .event_bad_kind         (event_bad_kind[e]),
          .event_bad_length       (event_bad_length[e])
      );

      agg_access_queue #(
          .WIDTH(209)
      ) u_accesses (
          .clk(clk),
          .rst(rst),
          .s_access_valid(asked_valid),
          .s_access({
            asked_write, asked_addr, asked_tag, asked_wdata, asked_mac, asked_ip, asked_port
          }),
          .event_dropped(event_accesses_full[e]),
          .m_access_valid(waiting_valid[e]),
          .m_access_ready(waiting_ready[e]),
          .m_access({
            waiting_write[e],
            waiting_addr[32*e+:32],
            waiting_tag[16*e+:16],
            waiting_wdata[64*e+:64],
            waiting_mac[48*e+:48],
            waiting_ip[32*e+:32],
            waiting_port[16*e+:16]
          })
      );

      assign waiting_ethernet[8*e+:8] = ethernet_number[8*e+:8];

      wire [ 63:0] queued_tdata;
      wire         queued_tpayload;
      wire         queued_tvalid;
      wire         queued_tready;
      wire         queued_tlast;
      wire [227:0] queued_tuser;

      agg_frame_queue #(
          .WORD_BITS      (64),
          .DESCRIPTOR_BITS(228),
          .DEPTH_BITS     (5),
          .FRAME_BITS     (5)
      ) u_queue (
          .clk                 (clk),
          .rst                 (rst),
          .s_axis_tvalid       (accepted_tvalid),
          .s_axis_tdata        (accepted_tdata),
          .s_axis_tlast        (accepted_tlast),
          .s_verdict_valid     (accepted_valid),
          .s_verdict_keep      (accepted_keep),
          .s_verdict_descriptor(accepted_descriptor),
          .event_dropped       (event_queue_full[e]),
          .m_axis_tvalid       (queued_tvalid),
          .m_axis_tready       (queued_tready),
          .m_axis_tdata        (queued_tdata),
          .m_axis_tpayload     (queued_tpayload),
          .m_axis_tlast        (queued_tlast),
          .m_axis_tuser        (queued_tuser)
      );

      wire [63:0] unwrapped_tdata;
      wire        unwrapped_tpayload;
      wire        unwrapped_tvalid;
      wire        unwrapped_tready;
      wire        unwrapped_tlast;

      agg_up_unwrap #(
          .BYTES   (8),
          .JOB_BITS(1)
      ) u_unwrap (
          .clk            (clk),
          .rst            (rst),
          .s_axis_tvalid  (queued_tvalid),
          .s_axis_tready  (queued_tready),
          .s_axis_tdata   (queued_tdata),
          .s_axis_tpayload(queued_tpayload),
          .s_axis_tlast   (queued_tlast),
          .s_axis_tup     (queued_tuser[227:161]),
          .m_axis_tvalid  (unwrapped_tvalid),
          .m_axis_tready  (unwrapped_tready),
          .m_axis_tdata   (unwrapped_tdata),
          .m_axis_tpayload(unwrapped_tpayload),
          .m_axis_tlast   (unwrapped_tlast)
      );

      wire [ 63:0] checked_tdata;
      wire [  7:0] checked_tkeep;
      wire         checked_tvalid;
      wire         checked_tready;
      wire         checked_tlast;
      wire [111:0] checked_header;
      wire [  2:0] checked_dest;

      agg_member_check #(
          .PORTS    (2),
          .PORT_BITS(1),
          .BYTES    (8),
          .JOB_BITS (1)
      ) u_check (
          .clk             (clk),
          .rst             (rst),
          .ethernet_port   (ethernet_number[8*e+:8]),
          .hold            (hold_packets),
          .busy            (check_busy[e]),
          .event_stranger  (stranger[e]),
          .event_up_dropped(up_lost[e]),
          .s_axis_tvalid   (unwrapped_tvalid),
          .s_axis_tready   (unwrapped_tready),
          .s_axis_tdata    (unwrapped_tdata),
          .s_axis_tpayload (unwrapped_tpayload),
          .s_axis_tlast    (unwrapped_tlast),
          .s_axis_tuser    (queued_tuser[160:0]),
          .s_axis_tup      (queued_tuser[227:161]),
          .from_en         (from_en[e]),
          .from_job        (from_job[8*e+:8]),
          .from_rank       (from_rank[8*e+:8]),
          .from_valid      (from_valid[e]),
          .from_ip         (from_ip[32*e+:32]),
          .from_port       (from_port[16*e+:16]),
          .from_ethernet   (from_ethernet[8*e+:8]),
          .from_dest       (from_dest[e]),
          .parent_job      (parent_job[e]),
          .parent_valid    (parent_valid[e]),
          .parent_ip       (parent_ip[32*e+:32]),
          .parent_port     (parent_port[16*e+:16]),
          .parent_ethernet (parent_ethernet[8*e+:8]),
          .m_axis_tvalid   (checked_tvalid),
          .m_axis_tready   (checked_tready),
          .m_axis_tdata    (checked_tdata),
          .m_axis_tkeep    (checked_tkeep),
          .m_axis_tlast    (checked_tlast),
          .m_axis_theader  (checked_header),
          .m_axis_tdest    (checked_dest[1:0]),
          .m_axis_tup      (checked_dest[2]),
          .m_axis_tmask    (checked_mask)
      );

      assign parent_en[e] = from_en[e];

      agg_beat_pack #(
          .STEP      (8),
          .BEAT_BYTES(8),
          .PORTS     (67)
      ) u_pack (
          .clk          (clk),
          .rst          (rst),
          .close        (1'b0),
          .busy         (pack_busy[e]),
          .header       (checked_header),
          .dest         ({checked_mask, checked_dest}),
          .s_axis_tdata (checked_tdata),
          .s_axis_tkeep (checked_tkeep),
          .s_axis_tvalid(checked_tvalid),
          .s_axis_tready(checked_tready),
          .s_axis_tlast (checked_tlast),
          .s_axis_tuser (1'b0),
          .m_axis_tdata (beat_tdata[64*e+:64]),
          .m_axis_tkeep (beat_tkeep[8*e+:8]),
          .m_axis_tvalid(beat_tvalid[e]),
          .m_axis_tready(beat_tready[e]),
          .m_axis_tlast (beat_tlast[e]),
          .m_axis_tdest ({beat_tmask[64*e+:64], beat_tdest[3*e+:3]}),
          .m_axis_tuser (beat_tuser[113*e+:113])
      );
    end
  endgenerate

  wire [  6:0] unused_access_padding;  // an access is no whole number of bytes
  wire [447:0] accesses_tdata;
  wire [ 27:0] unused_access_tkeep;
  wire         unused_access_tlast;  // an access is one word

  assign accesses_tdata = {
    {
      7'd0,
      {
        waiting_write[1],
        waiting_addr[63:32],
        waiting_tag[31:16],
        waiting_wdata[127:64],
        waiting_mac[95:48],
        waiting_ip[63:32],
        waiting_port[31:16],
        waiting_ethernet[15:8]
      }
    },
    {
      7'd0,
      {
        waiting_write[0],
        waiting_addr[31:0],
        waiting_tag[15:0],
        waiting_wdata[63:0],
        waiting_mac[47:0],
        waiting_ip[31:0],
        waiting_port[15:0],
        waiting_ethernet[7:0]
      }
    }
  };

  agg_eth_merge #(
      .STREAMS(2),
      .BYTES  (28)
  ) u_access_turns (
      .clk(clk),
      .rst(rst),
      .s_axis_tdata(accesses_tdata),
      .s_axis_tkeep({56{1'b0}}),
      .s_axis_tvalid(waiting_valid),
      .s_axis_tready(waiting_ready),
      .s_axis_tlast({2{1'b1}}),
      .m_axis_tdata({
        unused_access_padding,
        access_write,
        access_addr,
        access_tag,
        access_wdata,
        access_mac,
        access_ip,
        access_port,
        access_ethernet
      }),
      .m_axis_tkeep(unused_access_tkeep),
      .m_axis_tvalid(access_valid),
      .m_axis_tready(access_ready),
      .m_axis_tlast(unused_access_tlast)
  );

  wire [367:0] crossing_tdata;  // the beat of each Ethernet port, with its header
  wire [  3:0] crossing_tready;  // of each Ethernet port, at each port of the core

  assign crossing_tdata = {
    {6'd0, {&beat_tkeep[15:8], beat_tuser[225:113], beat_tdata[127:64]}},
    {6'd0, {&beat_tkeep[7:0], beat_tuser[112:0], beat_tdata[63:0]}}
  };

  wire [  3:0] crossed;  // the same, the ports of the core together
  wire [495:0] up_crossing_tdata;  // for the up port: beats with header and mask
  wire [  1:0] up_crossing_tready;
  wire [247:0] up_word;
  wire [ 30:0] unused_up_tkeep;

  assign up_crossing_tdata = {
    {6'd0, {&beat_tkeep[15:8], beat_tmask[127:64], beat_tuser[225:113], beat_tdata[127:64]}},
    {6'd0, {&beat_tkeep[7:0], beat_tmask[63:0], beat_tuser[112:0], beat_tdata[63:0]}}
  };

  agg_eth_merge #(
      .STREAMS(2),
      .BYTES  (31)
  ) u_cross_up (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (up_crossing_tdata),
      .s_axis_tkeep ({62{1'b0}}),
      .s_axis_tvalid({beat_tvalid[1] && beat_tdest[5], beat_tvalid[0] && beat_tdest[2]}),
      .s_axis_tready(up_crossing_tready),
      .s_axis_tlast (beat_tlast),
      .m_axis_tdata (up_word),
      .m_axis_tkeep (unused_up_tkeep),
      .m_axis_tvalid(ingress_tvalid[2]),
      .m_axis_tready(ingress_tready[2]),
      .m_axis_tlast (ingress_tlast[2])
  );

  wire [5:0] unused_up_padding;

  assign unused_up_padding = up_word[247:242];

  wire [112:0] up_beat_tuser;

  assign up_beat_tuser          = up_word[176:64];
  assign ingress_tdata[191:128] = up_word[63:0];
  assign ingress_tkeep[23:16]   = {8{up_word[241]}};
  assign ingress_up_tuser       = {up_beat_tuser[112], up_word[240:177], up_beat_tuser[111:0]};
  assign beat_tready[0]         = |({up_crossing_tready[0], crossed[1:0]} & beat_tdest[2:0]);
  assign beat_tready[1]         = |({up_crossing_tready[1], crossed[3:2]} & beat_tdest[5:3]);

  genvar p;
  generate
    for (p = 0; p < 2; p = p + 1) begin : g_cross
      assign crossed[0+p] = crossing_tready[2*p+0];
      assign crossed[2+p] = crossing_tready[2*p+1];

      wire [183:0] word;
      wire [ 22:0] unused_tkeep;

      agg_eth_merge #(
          .STREAMS(2),
          .BYTES  (23)
      ) u_cross (
          .clk          (clk),
          .rst          (rst),
          .s_axis_tdata (crossing_tdata),
          .s_axis_tkeep ({46{1'b0}}),
          .s_axis_tvalid({beat_tvalid[1] && beat_tdest[3+p], beat_tvalid[0] && beat_tdest[0+p]}),
          .s_axis_tready(crossing_tready[2*p+:2]),
          .s_axis_tlast (beat_tlast),
          .m_axis_tdata (word),
          .m_axis_tkeep (unused_tkeep),
          .m_axis_tvalid(ingress_tvalid[p]),
          .m_axis_tready(ingress_tready[p]),
          .m_axis_tlast (ingress_tlast[p])
      );

      wire [5:0] unused_padding;

      assign unused_padding            = word[183:178];
      assign ingress_tdata[64*p+:64]   = word[63:0];
      assign ingress_tuser[113*p+:113] = word[176:64];
      assign ingress_tkeep[8*p+:8]     = {8{word[177]}};
    end
  endgenerate

  // -- Frames for others, between the Ethernet ports --
  wire [127:0] pass_tdata;
  wire [ 15:0] pass_tkeep;
  wire [  1:0] pass_tvalid;
  wire [  1:0] pass_tready;
  wire [  1:0] pass_tlast;

  agg_eth_switch #(
      .PORTS     (2),
      .BYTES     (8),
      .DEPTH_BITS(12),
      .FRAME_BITS(7),
      .SET_BITS  (9),
      .CLOCK_KHZ (400000)
  ) u_switch (
      .clk             (clk),
      .rst             (rst),
      .s_axis_tvalid   (rx_tvalid),
      .s_axis_tdata    (rx_tdata),
      .s_axis_tkeep    (rx_tkeep),
      .s_axis_tlast    (rx_tlast),
      .s_verdict_valid (received_valid),
      .s_verdict_kind  (received_kind),
      .s_verdict_reason(drop_reason),
      .m_axis_tvalid   (pass_tvalid),
      .m_axis_tready   (pass_tready),
      .m_axis_tdata    (pass_tdata),
      .m_axis_tkeep    (pass_tkeep),
      .m_axis_tlast    (pass_tlast),
      .event_passed    (passed),
      .event_dropped   (event_unpassed)
  );

  // -- Registers, lease and addresses --
  wire        table_clear;
  wire        table_write;
  wire        table_jobs;  // a JOB register; otherwise a MEMBER register
  wire        table_mac;  // its MAC address
  wire        table_job;
  wire        table_port;
  wire [63:0] table_value;
  wire        commit_start;
  wire        commit_job;
  wire        commit_ready;  // the core may have the commit
  wire        commit_answered;
  wire        commit_done;
  wire        table_hold;  // the table changes
  wire [ 4:0] count_index;
  wire [31:0] count_value;
  wire [61:0] unused_job_ports;  // the core refuses these

  assign unused_job_ports = job_ports[63:2];
  assign hold_packets     = table_hold || down;

  agg_network_registers #(
      .OWN_MAC      (48'h025452420001),
      .OWN_IP       (32'hc0a85442),
      .OWN_PORT     (16'd21570),
      .LEASE_DEFAULT(41'd500000000),
      .PORTS        (2),
      .PORT_BITS    (1),
      .JOBS         (2),
      .JOB_BITS     (1)
  ) u_network_registers (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .s_access_valid   (access_valid),
      .s_access_ready   (access_ready),
      .s_access_write   (access_write),
      .s_access_addr    (access_addr),
      .s_access_tag     (access_tag),
      .s_access_wdata   (access_wdata),
      .s_access_mac     (access_mac),
      .s_access_ip      (access_ip),
      .s_access_port    (access_port),
      .s_access_ethernet(access_ethernet),
      .m_reg_valid      (reg_valid),
      .m_reg_ready      (reg_ready),
      .m_reg_write      (reg_write),
      .m_reg_addr       (reg_addr),
      .m_reg_wdata      (reg_wdata),
      .m_reg_stranger   (s_reg_stranger),
      .s_reg_valid      (answer_valid),
      .s_reg_ready      (answer_ready),
      .s_reg_code       (answer_code),
      .s_reg_value      (answer_value),
      .m_code_valid     (s_code_valid),
      .m_code           (s_code),
      .owned            (owned),
      .clear_counters   (clear_counters),
      .clear_staged     (clear_staged),
      .m_reply_valid    (reply_valid),
      .m_reply_ready    (reply_ready),
      .m_reply_header   (reply_header),
      .m_reply_mac      (reply_mac),
      .m_reply_ip       (reply_ip),
      .m_reply_port     (reply_port),
      .m_reply_ethernet (reply_ethernet),
      .own_mac          (own_mac),
      .own_ip           (own_ip),
      .own_port         (own_port),
      .lease_over       (lease_over),
      .table_clear      (table_clear),
      .table_write      (table_write),
      .table_jobs       (table_jobs),
      .table_mac        (table_mac),
      .table_job        (table_job),
      .table_port       (table_port),
      .table_value      (table_value),
      .commit_start     (commit_start),
      .commit_job       (commit_job),
      .commit_ready     (commit_ready),
      .commit_answered  (commit_answered),
      .commit_done      (commit_done),
      .parent_write     (parent_write),
      .parent_value     (parent_value),
      .count_index      (count_index),
      .count_value      (count_value)
  );

  wire [15:0] unused_to_ethernet;  // a store is for one Ethernet port

  agg_member_table #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (2),
      .JOB_BITS (1),
      .ETHERNET (2)
  ) u_member_table (
      .clk            (clk),
      .rst            (rst),
      .clear          (table_clear),
      .reg_write      (table_write),
      .reg_table      (table_jobs),
      .reg_mac        (table_mac),
      .reg_job        (table_job),
      .reg_port       (table_port),
      .reg_wdata      (access_wdata),
      .reg_value      (table_value),
      .commit_start   (commit_start),
      .commit_job     (commit_job),
      .commit_ports   (job_ports[1:0]),
      .commit_ready   (commit_ready),
      .commit_answered(commit_answered),
      .set_up         (set_up),
      .commit_done    (commit_done),
      .members_whole  (members_whole),
      .members_same   (members_same),
      .hold_packets   (table_hold),
      .packets_busy   (packets_busy),
      .packet_started (packet_started),
      .packet_left    (packet_left),
      .receives       (parent_receives),
      .sends          (parent_sends),
      .partial        (parent_partial),
      .from_en        (from_en),
      .from_job       (from_job),
      .from_rank      (from_rank),
      .from_valid     (from_valid),
      .from_ip        (from_ip),
      .from_port      (from_port),
      .from_ethernet  (from_ethernet),
      .from_dest      (from_dest),
      .to_en          (to_en),
      .to_job         (to_job),
      .to_port        (to_port),
      .to_mac         (to_mac),
      .to_ip          (to_ip),
      .to_udp_port    (to_udp_port),
      .to_ethernet    (unused_to_ethernet),
      .to_same        (to_same),
      .behind         (behind)
  );

  agg_parent_table #(
      .JOBS    (2),
      .JOB_BITS(1),
      .ETHERNET(2)
  ) u_parent_table (
      .clk            (clk),
      .rst            (rst),
      .own_ip         (own_ip),
      .own_port       (own_port),
      .clear          (table_clear),
      .reg_write      (parent_write),
      .reg_mac        (table_mac),
      .reg_wdata      (access_wdata),
      .reg_value      (parent_value),
      .commit_job     (commit_job),
      .staged_up      (staged_up),
      .staged_up_port (staged_up_port),
      .parent_good    (parent_good),
      .parent_same    (parent_same),
      .receives       (parent_receives),
      .sends          (parent_sends),
      .partial        (parent_partial),
      .up_runs        (up_runs),
      .up_ports       (up_ports),
      .parent_en      (parent_en),
      .parent_job     (parent_job),
      .parent_valid   (parent_valid),
      .parent_ip      (parent_ip),
      .parent_port    (parent_port),
      .parent_ethernet(parent_ethernet),
      .up_en          (up_en),
      .up_job         (up_job),
      .up_mac         (up_mac),
      .up_ip          (up_ip),
      .up_udp_port    (up_udp_port),
      .up_source      (up_source),
      .above          (above)
  );

  agg_network_counters #(
      .ETHERNET(2),
      .QUEUES  (8)
  ) u_network_counters (
      .clk        (clk),
      .rst        (rst),
      .clear      (clear_counters),
      .drop_valid (drop_valid),
      .drop_reason(drop_reason),
      .stranger   (stranger),
      .lease      (lease_over),
      .dropped    (dropped),
      .passed     (passed),
      .index      (count_index),
      .value      (count_value)
  );

  // -- Core --
  wire        lease_holds;
  wire [ 3:0] unused_member;  // the address table has the ranks
  wire [31:0] unused_rank_of_port;

  assign lease_holds = !lease_over;

  agg_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(lease_holds),
      .busy   (hold),
      .down   (down)
  );

  wire [1:0] frame_of_2;

  assign frame_of_2 = {1'd0, event_frame[0]} + {1'd0, event_frame[1]};

  wire [1:0] bad_version_of_2;

  assign bad_version_of_2 = {1'd0, event_bad_version[0]} + {1'd0, event_bad_version[1]};

  wire [1:0] bad_kind_of_2;

  assign bad_kind_of_2 = {1'd0, event_bad_kind[0]} + {1'd0, event_bad_kind[1]};

  wire [1:0] bad_length_of_2;

  assign bad_length_of_2 = {1'd0, event_bad_length[0]} + {1'd0, event_bad_length[1]};

  agg_core u_core (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .hold             (hold),
      .unjudged         (unjudged),
      .s_axis_tdata     (ingress_tdata),
      .s_axis_tkeep     (ingress_tkeep),
      .s_axis_tvalid    (ingress_tvalid),
      .s_axis_tready    (ingress_tready),
      .s_axis_tlast     (ingress_tlast),
      .s_axis_tuser     (ingress_tuser),
      .s_axis_up_tuser  (ingress_up_tuser),
      .m_axis_tdata     (egress_tdata),
      .m_axis_tkeep     (egress_tkeep),
      .m_axis_tvalid    (egress_tvalid),
      .m_axis_tready    (egress_tready),
      .m_axis_tlast     (egress_tlast),
      .m_axis_tuser     (egress_tuser),
      .m_axis_tdest     (egress_tdest),
      .port_ready       ({3{1'b1}}),
      .port_start       (packet_start),
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
      .s_reg_partial    (1'b0),
      .s_reg_stranger   (s_reg_stranger),
      .s_code_valid     (s_code_valid),
      .s_code           (s_code),
      .clear_staged     (clear_staged),
      .members_whole    (members_whole),
      .members_same     (members_same),
      .owned            (owned),
      .job_ports        (job_ports),
      .clear_counters   (clear_counters),
      .set_up           (set_up),
      .parent_good      (parent_good),
      .parent_same      (parent_same),
      .up_lost          (up_lost),
      .staged_up        (staged_up),
      .staged_up_port   (staged_up_port),
      .up_runs          (up_runs),
      .up_ports         (up_ports),
      .shell_frames     (frame_of_2),
      .shell_hunted     (1'b0),
      .shell_header_crc (1'b0),
      .shell_bad_version(bad_version_of_2),
      .shell_bad_kind   (bad_kind_of_2),
      .shell_bad_length (bad_length_of_2),
      .verdict_valid    (unused_verdict_valid),
      .verdict_port     (unused_verdict_port),
      .verdict_slot     (unused_verdict_slot),
      .verdict_vid      (unused_verdict_vid),
      .verdict_result   (unused_verdict_result),
      .verdict_code     (unused_verdict_code),
      .beat_strobe      (beat_strobe)
  );

  // -- Transmitter --
  wire [127:0] tx_tdata;

  assign {eth_tx_p1_tdata, eth_tx_p0_tdata} = tx_tdata;

  wire [15:0] tx_tkeep;

  assign {eth_tx_p1_tkeep, eth_tx_p0_tkeep} = tx_tkeep;

  wire [1:0] tx_tvalid;

  assign {eth_tx_p1_tvalid, eth_tx_p0_tvalid} = tx_tvalid;

  wire [1:0] tx_tready;

  assign tx_tready = {eth_tx_p1_tready, eth_tx_p0_tready};

  wire [1:0] tx_tlast;

  assign {eth_tx_p1_tlast, eth_tx_p0_tlast} = tx_tlast;

  wire [  7:0] packet_tkeep;
  wire         packet_tpayload;
  wire         packet_tvalid;
  wire         packet_tready;
  wire         packet_tlast;
  wire [239:0] packet_tuser;
  wire [  3:0] packet_tdest;  // ports of the core, and one for replies
  wire         reply_left;
  wire         room;
  wire         takes_first;
  wire         takes_word;
  wire         step_valid;
  wire         step_first;
  wire         step_last;
  wire         step_bare;
  wire         step_up;  // for the parent
  wire [  2:0] step_number;
  wire [ 63:0] step_data;
  wire         word_valid;
  wire [ 63:0] word_data;
  wire         sums_valid;
  wire [ 31:0] sums_crc;
  wire [ 15:0] sums_sum;
  wire [  1:0] copies_left;  // the last copy of a packet, at this port, has its address
  wire [  1:0] replies_left;

  assign reply_left = |replies_left;

  agg_reply_merge #(
      .PORTS(3)
  ) u_replies (
      .clk            (clk),
      .rst            (rst),
      .s_reply_valid  (reply_valid),
      .s_reply_ready  (reply_ready),
      .s_reply_header (reply_header),
      .reply_left     (reply_left),
      .s_axis_tvalid  (egress_tvalid),
      .s_axis_tready  (egress_tready),
      .s_axis_tpayload(|egress_tkeep),
      .s_axis_tlast   (egress_tlast),
      .s_axis_tuser   (egress_tuser),
      .s_axis_tdest   (egress_tdest),
      .m_axis_tvalid  (packet_tvalid),
      .m_axis_tready  (packet_tready),
      .m_axis_tpayload(packet_tpayload),
      .m_axis_tlast   (packet_tlast),
      .m_axis_tuser   (packet_tuser),
      .m_axis_tdest   (packet_tdest)
  );

  assign packet_tkeep = {8{packet_tpayload}};

  agg_datagram_steps #(
      .BEAT_BYTES (8),
      .BYTES      (8),
      .STEP       (8),
      .ZEROS      (2),
      .ZEROS_BARE (2),
      .NUMBER_BITS(3)
  ) u_steps (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (egress_tdata),
      .s_axis_tkeep (packet_tkeep),
      .s_axis_tvalid(packet_tvalid),
      .s_axis_tready(packet_tready),
      .s_axis_tlast (packet_tlast),
      .s_axis_tuser (packet_tuser),
      .s_axis_tup   (packet_tdest[2]),
      .room         (room),
      .takes_first  (takes_first),
      .takes_word   (takes_word),
      .m_step_valid (step_valid),
      .m_step_first (step_first),
      .m_step_last  (step_last),
      .m_step_bare  (step_bare),
      .m_step_number(step_number),
      .m_step_data  (step_data),
      .m_step_up    (step_up),
      .m_word_valid (word_valid),
      .m_word_data  (word_data)
  );

  agg_datagram_sums #(
      .STEP      (8),
      .ZEROS     (2),
      .ZEROS_BARE(2)
  ) u_sums (
      .clk         (clk),
      .rst         (rst),
      .s_step_valid(step_valid),
      .s_step_first(step_first),
      .s_step_last (step_last),
      .s_step_bare (step_bare),
      .s_step_up   (step_up),
      .s_step_data (step_data),
      .m_valid     (sums_valid),
      .m_crc       (sums_crc),
      .m_sum       (sums_sum)
  );

  wire [7:0] split_dest;
  wire [1:0] split_takes_first;
  wire [1:0] split_takes_word;
  wire [1:0] split_word_valid;
  wire [1:0] split_last;
  wire [1:0] split_sums_valid;
  wire [1:0] rooms;
  wire       ends;  // a packet's last step was taken

  assign ends = step_valid && step_last;

  agg_packet_split #(
      .PORTS   (3),
      .ETHERNET(2),
      .JOBS    (2),
      .JOB_BITS(1),
      .DELAY   (6)
  ) u_split (
      .clk(clk),
      .rst(rst),
      .behind({
        {above[3], behind[7:6]},
        {above[2], behind[5:4]},
        {above[1], behind[3:2]},
        {above[0], behind[1:0]}
      }),
      .reply_ethernet(reply_ethernet),
      .s_dest(packet_tdest),
      .s_job(packet_tuser[HDR_JOB_LSB+:1]),
      .takes_first(takes_first),
      .takes_word(takes_word),
      .s_word_valid(word_valid),
      .s_last(ends),
      .s_sums_valid(sums_valid),
      .m_dest(split_dest),
      .m_takes_first(split_takes_first),
      .m_takes_word(split_takes_word),
      .m_word_valid(split_word_valid),
      .m_last(split_last),
      .m_sums_valid(split_sums_valid)
  );

  wire order_room;

  assign room = order_room && &rooms;

  agg_packet_order #(
      .ETHERNET(2)
  ) u_order (
      .clk     (clk),
      .rst     (rst),
      .room    (order_room),
      .come    (takes_first && !packet_tdest[3]),
      .ports   (split_takes_first),
      .left    (copies_left),
      .all_left(packet_left)
  );

  generate
    for (e = 0; e < 2; e = e + 1) begin : g_transmit
      wire         copy_valid;
      wire         copy_ready;
      wire [  3:0] copy_dest;
      wire [  3:0] copy_done;  // receivers that the copy serves
      wire         copy_final;
      wire [239:0] copy_header;
      wire         copy_bare;
      wire [  1:0] copy_ecn;
      wire [ 13:0] copy_bytes;
      wire [ 31:0] copy_crc;
      wire [ 15:0] copy_sum;
      wire         copy_up;  // it is for the parent
      wire [ 15:0] copy_source;  // the upward UDP port
      wire [ 63:0] payload_tdata;
      wire         payload_tvalid;
      wire         payload_tready;
      wire         payload_tlast;

      agg_datagram_store #(
          .PORTS      (4),
          .BYTES      (8),
          .STEP       (8),
          .PAYLOAD    (32),
          .SPARE      (16),
          .NUMBER_BITS(3)
      ) u_store (
          .clk          (clk),
          .rst          (rst),
          .room         (rooms[e]),
          .takes_first  (split_takes_first[e]),
          .s_header     (packet_tuser),
          .s_dest       (split_dest[4*e+:4]),
          .s_bare       (!packet_tpayload),
          .takes_word   (split_takes_word[e]),
          .s_word_valid (split_word_valid[e]),
          .s_word_data  (word_data),
          .s_last       (split_last[e]),
          .s_number     (step_number),
          .s_sums_valid (split_sums_valid[e]),
          .s_crc        (sums_crc),
          .s_sum        (sums_sum),
          .m_copy_valid (copy_valid),
          .m_copy_ready (copy_ready),
          .m_copy_done  (copy_done),
          .m_copy_dest  (copy_dest),
          .m_copy_final (copy_final),
          .m_copy_header(copy_header),
          .m_copy_bare  (copy_bare),
          .m_copy_ecn   (copy_ecn),
          .m_copy_bytes (copy_bytes),
          .m_copy_crc   (copy_crc),
          .m_copy_sum   (copy_sum),
          .m_axis_tdata (payload_tdata),
          .m_axis_tvalid(payload_tvalid),
          .m_axis_tready(payload_tready),
          .m_axis_tlast (payload_tlast)
      );

      wire         sent_valid;  // a copy with its address
      wire         sent_ready;
      wire [ 47:0] sent_mac;
      wire [ 31:0] sent_ip;
      wire [ 15:0] sent_port;
      wire [239:0] sent_header;
      wire         sent_bare;
      wire [  1:0] sent_ecn;
      wire [ 13:0] sent_bytes;
      wire [ 31:0] sent_crc;
      wire [ 15:0] sent_sum;
      wire         sent_up;
      wire [ 15:0] sent_source;

      assign copy_up     = copy_dest[2];
      assign copy_source = up_source[16*e+:16];
      assign up_en[e]    = to_en[e];
      assign up_job[e]   = copy_header[HDR_JOB_LSB+:1];

      wire unused_to_port;  // only the up port has it

      agg_copy_address #(
          .PORTS    (3),
          .PORT_BITS(2),
          .JOB_BITS (1),
          .WIDTH    (322)
      ) u_address (
          .clk(clk),
          .rst(rst),
          .s_copy_valid(copy_valid),
          .s_copy_ready(copy_ready),
          .s_copy_dest(copy_dest),
          .s_copy_job(copy_header[HDR_JOB_LSB+:1]),
          .s_copy_final(copy_final),
          .s_copy_done(copy_done),
          .s_copy_fields({
            copy_header, copy_bare, copy_ecn, copy_bytes, copy_crc, copy_sum, copy_up, copy_source
          }),
          .reply_mac(reply_mac),
          .reply_ip(reply_ip),
          .reply_port(reply_port),
          .to_en(to_en[e]),
          .to_job(to_job[e]),
          .to_port({unused_to_port, to_port[e]}),
          .to_mac(copy_up ? up_mac[48*e+:48] : to_mac[48*e+:48]),
          .to_ip(copy_up ? up_ip[32*e+:32] : to_ip[32*e+:32]),
          .to_udp_port(copy_up ? up_udp_port[16*e+:16] : to_udp_port[16*e+:16]),
          .to_same({copy_up, to_same[2*e+:2] & {2{!copy_up}}}),
          .m_copy_valid(sent_valid),
          .m_copy_ready(sent_ready),
          .m_copy_mac(sent_mac),
          .m_copy_ip(sent_ip),
          .m_copy_port(sent_port),
          .m_copy_fields({
            sent_header, sent_bare, sent_ecn, sent_bytes, sent_crc, sent_sum, sent_up, sent_source
          }),
          .left(copies_left[e]),
          .reply_left(replies_left[e])
      );

      wire [63:0] frame_tdata;
      wire [ 7:0] frame_tkeep;
      wire        frame_tvalid;
      wire        frame_tready;
      wire        frame_tlast;

      agg_eth_transmit #(
          .BYTES(8),
          .STEP (8)
      ) u_transmit (
          .clk          (clk),
          .rst          (rst),
          .own_mac      (own_mac),
          .own_ip       (own_ip),
          .s_copy_source(sent_up ? sent_source : own_port),
          .s_copy_valid (sent_valid),
          .s_copy_ready (sent_ready),
          .s_copy_mac   (sent_mac),
          .s_copy_ip    (sent_ip),
          .s_copy_port  (sent_port),
          .s_copy_ecn   (sent_ecn),
          .s_copy_size  ({!sent_bare, sent_bare ^ sent_up}),
          .s_copy_header(sent_header),
          .s_copy_bytes (sent_bytes),
          .s_copy_crc   (sent_crc),
          .s_copy_sum   (sent_sum),
          .s_axis_tdata (payload_tdata),
          .s_axis_tvalid(payload_tvalid),
          .s_axis_tready(payload_tready),
          .s_axis_tlast (payload_tlast),
          .m_axis_tdata (frame_tdata),
          .m_axis_tkeep (frame_tkeep),
          .m_axis_tvalid(frame_tvalid),
          .m_axis_tready(frame_tready),
          .m_axis_tlast (frame_tlast)
      );

      agg_eth_merge #(
          .STREAMS(3),
          .BYTES  (8)
      ) u_merge (
          .clk          (clk),
          .rst          (rst),
          .s_axis_tdata ({pass_tdata[64*e+:64], answers_tdata[64*e+:64], frame_tdata}),
          .s_axis_tkeep ({pass_tkeep[8*e+:8], answers_tkeep[8*e+:8], frame_tkeep}),
          .s_axis_tvalid({pass_tvalid[e], answers_tvalid[e], frame_tvalid}),
          .s_axis_tready({pass_tready[e], answers_tready[e], frame_tready}),
          .s_axis_tlast ({pass_tlast[e], answers_tlast[e], frame_tlast}),
          .m_axis_tdata (tx_tdata[64*e+:64]),
          .m_axis_tkeep (tx_tkeep[8*e+:8]),
          .m_axis_tvalid(tx_tvalid[e]),
          .m_axis_tready(tx_tready[e]),
          .m_axis_tlast (tx_tlast[e])
      );
    end
  endgenerate

endmodule

`default_nettype wire
