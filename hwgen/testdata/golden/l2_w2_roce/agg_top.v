// Made by: hwgen -lanes 2 -workers 2 -format fp32 -result fp32 -sum tree -chunk 64 -window 2
//      -jobs 1 -shell roce -link 64 -ethernet 1 -mac 02:54:52:42:00:01 -ip 192.168.84.66
//      -udp-port 21570

// The card under RoCEv2: 1 port, 2 ports of the core, 2 lanes.
//
// eth_rx -> packets of registered connections -> queue -> header and payload -> core
// core -> ICRC of the payload -> header of each connection -> frame -> eth_tx
//
// Registers are accessed over UDP, as on a card of shell udp.
// Frames for neighbours pass.
//
// Frames are without FCS, from the destination's MAC address on; byte k of a word is in bits
// 8k+7..8k, and tkeep is contiguous from bit 0. eth_rx takes every beat; tuser marks a frame that
// the MAC found bad, on its last beat. A frame on eth_tx has no pause inside. rst is synchronous.
// beat_strobe is high in each cycle in which a beat enters the lanes, error_strobe for one cycle for
// each frame that is dropped because it is damaged or not for this card.

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

    // Strobes for counters and LEDs
    output wire beat_strobe,
    output wire error_strobe
);
  `include "zwire.vh"

  // Ethernet ports, port 0 in the lowest bits of vectors
  wire [63:0] rx_tdata;

  assign rx_tdata = eth_rx_p0_tdata;

  wire [7:0] rx_tkeep;

  assign rx_tkeep = eth_rx_p0_tkeep;

  wire rx_tvalid;

  assign rx_tvalid = eth_rx_p0_tvalid;

  wire rx_tlast;

  assign rx_tlast = eth_rx_p0_tlast;

  wire rx_tuser;

  assign rx_tuser = eth_rx_p0_tuser;

  wire       received_valid;  // a verdict on a frame
  wire [2:0] received_kind;
  wire [7:0] ethernet_number;

  assign ethernet_number = 8'd0;

  // Answers to ARP and echo requests
  wire [ 63:0] answers_tdata;
  wire [  7:0] answers_tkeep;
  wire         answers_tvalid;
  wire         answers_tready;
  wire         answers_tlast;

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
  wire [  7:0] unused_reply_ethernet;  // the Ethernet port
  wire [ 47:0] own_mac;
  wire [ 31:0] own_ip;
  wire [ 15:0] own_port;
  wire         lease_over;  // the owner loses the card
  wire         hold_packets;  // start no lookup and no packet towards the core
  wire         packets_busy;  // a packet was looked up and is not judged
  wire         packet_started;  // the core starts a packet
  wire         packet_left;  // the oldest started packet has left with all copies
  wire         drop_valid;  // by Ethernet port, like the next
  wire [  3:0] drop_reason;
  wire         stranger;
  wire         passed;
  wire [  3:0] dropped;
  wire         from_en;
  wire [  7:0] from_job;
  wire [  7:0] from_rank;
  wire         unused_from_valid;  // two enabled cycles later
  wire [ 31:0] unused_from_ip;
  wire [ 15:0] unused_from_port;
  wire [  7:0] unused_from_ethernet;
  wire         unused_from_dest;  // the core's port
  wire         to_en;
  wire         to_job;
  wire         to_port;
  wire [ 47:0] to_mac;  // two enabled cycles later
  wire [ 31:0] unused_to_ip;
  wire [ 15:0] unused_to_udp_port;
  wire [  1:0] unused_to_same;  // ports with the same address
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
  wire [127:0] ingress_tdata;
  wire [ 15:0] ingress_tkeep;
  wire [  1:0] ingress_tvalid;
  wire [  1:0] ingress_tready;
  wire [  1:0] ingress_tlast;
  wire [225:0] ingress_tuser;
  wire         check_busy;
  wire         pack_busy;
  wire         unjudged;  // packets wait in the core for the commit

  // The core's packets
  wire [ 63:0] egress_tdata;
  wire [  7:0] egress_tkeep;
  wire         egress_tvalid;
  wire         egress_tready;
  wire         egress_tlast;
  wire [175:0] egress_tuser;
  wire [ 63:0] unused_egress_receivers;  // ranks
  wire [  1:0] egress_tdest;
  wire [  1:0] packet_start;  // ports for which the core begins a packet
  wire         verdict_valid;
  wire         verdict_port;
  wire [  1:0] verdict_slot;
  wire [ 31:0] unused_verdict_vid;
  wire [  2:0] verdict_result;
  wire [  7:0] unused_verdict_code;

  // Events of each Ethernet port
  wire         event_frame;  // a datagram whose checks hold
  wire         event_bad_version;
  wire         event_bad_kind;
  wire         event_bad_length;
  wire         event_queue_full;  // a packet is dropped
  wire         event_accesses_full;  // an access is dropped
  wire         event_answer_lost;  // an ARP or echo request is dropped

  assign packets_busy   = |{check_busy, pack_busy, unjudged};
  assign packet_started = |packet_start;

  wire       event_unpassed;  // a frame for another station is dropped
  wire [1:0] unused_behind;  // connections leave where their receivers are

  assign dropped = {event_answer_lost, event_accesses_full, event_queue_full, event_unpassed};

  // Connections, Ethernet port 0 in the lowest bits
  wire [31:0] lookup_ip;
  wire [23:0] lookup_qpn;
  wire        found;  // two cycles later
  wire        found_ip;  // a receiver has this address
  wire        found_job;
  wire        found_port;
  wire [31:0] found_source;  // the member's address
  wire [ 7:0] found_ethernet;
  wire [23:0] found_psn;  // the first
  wire [ 2:0] found_mtu;
  wire [15:0] found_epoch;
  wire [ 1:0] receivers;  // the receiver's port of each connection, job 0 lowest
  wire [ 1:0] unused_leaves_at;  // all are behind one port
  wire        roce_dropped;  // a packet of a connection
  wire [ 2:0] roce_reason;
  wire        relayed;
  wire [63:0] neighbour_ip;
  wire [95:0] neighbour_mac;
  wire        reply_tready;
  wire        job_on;  // jobs that are set up
  wire [15:0] job_epochs;
  wire [15:0] rank_of_port;
  wire        released_early;  // a sum leaves before the one that it follows
  wire [ 1:0] egress_tslot;

  assign error_strobe = |{drop_valid, roce_dropped};

  // Headers of connections
  wire [ 31:0] newest_vid;
  wire         record_valid;  // a packet goes to the core
  wire         record_ready;
  wire [  2:0] record_place;
  wire [674:0] record;
  wire         read_valid;  // a header is wanted
  wire         read_ready;
  wire         read_port;
  wire [  1:0] read_slot;
  wire         read_done;
  wire [ 48:0] read_tag;
  wire [625:0] read_record;

  // -- Receiver --
  wire         waiting_valid;  // a register access waits
  wire         waiting_ready;
  wire         waiting_write;
  wire [ 31:0] waiting_addr;
  wire [ 15:0] waiting_tag;
  wire [ 63:0] waiting_wdata;
  wire [ 47:0] waiting_mac;
  wire [ 31:0] waiting_ip;
  wire [ 15:0] waiting_port;
  wire [  7:0] waiting_ethernet;
  wire [ 63:0] beat_tdata;
  wire [  7:0] beat_tkeep;
  wire         beat_tvalid;
  wire         beat_tready;
  wire         beat_tlast;
  wire [112:0] beat_tuser;
  wire [  1:0] beat_tdest;  // port of the core, one hot
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
  wire [  2:0] judged_kind;

  agg_eth_receive #(
      .BYTES      (8),
      .FRAME_BYTES(9018)
  ) u_receive (
      .clk             (clk),
      .rst             (rst),
      .own_mac         (own_mac),
      .own_ip          (own_ip),
      .own_port        (own_port),
      .s_axis_tvalid   (rx_tvalid),
      .s_axis_tdata    (rx_tdata),
      .s_axis_tkeep    (rx_tkeep),
      .s_axis_tlast    (rx_tlast),
      .s_axis_tuser    (rx_tuser),
      .m_axis_tvalid   (received_tvalid),
      .m_axis_tdata    (received_tdata),
      .m_axis_tkeep    (unused_tkeep),
      .m_axis_tlast    (received_tlast),
      .m_verdict_valid (received_valid),
      .m_verdict_kind  (judged_kind),
      .m_verdict_reason(received_reason),
      .m_verdict_mac   (received_mac),
      .m_verdict_ip    (received_ip),
      .m_verdict_port  (received_port),
      .m_verdict_ecn   (received_ecn),
      .m_verdict_header(received_header),
      .m_verdict_bytes (received_bytes),
      .m_verdict_echo  (received_echo)
  );

  assign drop_valid  = received_valid && received_kind == 3'd0;
  assign drop_reason = received_reason;

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
      .in_valid (rx_tvalid),
      .in_tag   ({rx_tlast, rx_tdata}),
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
      .s_arp        (received_valid && received_kind == 3'd2),
      .s_echo       (received_valid && received_kind == 3'd3),
      .s_mac        (received_mac),
      .s_ip         (received_ip),
      .s_bytes      (received_bytes + 16'd28),
      .s_checksum   (received_echo[47:32]),
      .dropped      (event_answer_lost),
      .m_axis_tdata (answers_tdata),
      .m_axis_tkeep (answers_tkeep),
      .m_axis_tvalid(answers_tvalid),
      .m_axis_tready(answers_tready),
      .m_axis_tlast (answers_tlast)
  );

  wire         refused_kind;  // a datagram of an unknown kind
  wire         accepted_valid;  // a verdict on a datagram
  wire         accepted_keep;  // it is a member's
  wire [ 63:0] unused_accepted_tdata;  // members send no datagrams
  wire         unused_accepted_tvalid;
  wire         unused_accepted_tlast;
  wire [160:0] unused_accepted_descriptor;
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
      .CHUNK     (64),
      .ELEM_BYTES(4)
  ) u_accept (
      .clk                 (clk),
      .rst                 (rst),
      .s_axis_tvalid       (received_tvalid),
      .s_axis_tdata        (received_tdata),
      .s_axis_tlast        (received_tlast),
      .s_verdict_valid     (received_valid),
      .s_verdict_kind      (received_kind),
      .s_verdict_mac       (received_mac),
      .s_verdict_ip        (received_ip),
      .s_verdict_port      (received_port),
      .s_verdict_ecn       (received_ecn),
      .s_verdict_header    (received_header),
      .s_verdict_bytes     (received_bytes),
      .m_axis_tvalid       (unused_accepted_tvalid),
      .m_axis_tdata        (unused_accepted_tdata),
      .m_axis_tlast        (unused_accepted_tlast),
      .m_verdict_valid     (accepted_valid),
      .m_verdict_keep      (accepted_keep),
      .m_verdict_descriptor(unused_accepted_descriptor),
      .m_access_valid      (asked_valid),
      .m_access_write      (asked_write),
      .m_access_addr       (asked_addr),
      .m_access_tag        (asked_tag),
      .m_access_wdata      (asked_wdata),
      .m_access_mac        (asked_mac),
      .m_access_ip         (asked_ip),
      .m_access_port       (asked_port),
      .event_frame         (event_frame),
      .event_bad_version   (event_bad_version),
      .event_bad_kind      (refused_kind),
      .event_bad_length    (event_bad_length)
  );

  assign event_bad_kind = refused_kind || (accepted_valid && accepted_keep);

  agg_access_queue #(
      .WIDTH(209)
  ) u_accesses (
      .clk(clk),
      .rst(rst),
      .s_access_valid(asked_valid),
      .s_access({asked_write, asked_addr, asked_tag, asked_wdata, asked_mac, asked_ip, asked_port}),
      .event_dropped(event_accesses_full),
      .m_access_valid(waiting_valid),
      .m_access_ready(waiting_ready),
      .m_access({
        waiting_write,
        waiting_addr,
        waiting_tag,
        waiting_wdata,
        waiting_mac,
        waiting_ip,
        waiting_port
      })
  );

  assign waiting_ethernet = ethernet_number;

  wire [ 63:0] packet_tdata;  // payload
  wire         packet_tvalid;
  wire         packet_tlast;
  wire         packet_verdict;  // on a frame, in the cycle of the other verdict
  wire [  1:0] packet_kind;
  wire [672:0] packet_descriptor;

  agg_roce_receive #(
      .BYTES      (8),
      .FRAME_BYTES(9018),
      .JOB_BITS   (1),
      .PORT_BITS  (1)
  ) u_roce_receive (
      .clk                 (clk),
      .rst                 (rst),
      .ethernet_port       (ethernet_number),
      .s_axis_tvalid       (rx_tvalid),
      .s_axis_tdata        (rx_tdata),
      .s_axis_tkeep        (rx_tkeep),
      .s_axis_tlast        (rx_tlast),
      .s_axis_tuser        (rx_tuser),
      .lookup_ip           (lookup_ip),
      .lookup_qpn          (lookup_qpn),
      .found               (found),
      .found_ip            (found_ip),
      .found_job           (found_job),
      .found_port          (found_port),
      .found_source        (found_source),
      .found_ethernet      (found_ethernet),
      .found_psn           (found_psn),
      .found_mtu           (found_mtu),
      .found_epoch         (found_epoch),
      .m_axis_tvalid       (packet_tvalid),
      .m_axis_tdata        (packet_tdata),
      .m_axis_tlast        (packet_tlast),
      .m_verdict_valid     (packet_verdict),
      .m_verdict_kind      (packet_kind),
      .m_verdict_reason    (roce_reason),
      .m_verdict_descriptor(packet_descriptor)
  );

  wire relay_claims;  // the frame is for a neighbour
  wire claimed;

  assign claimed       = packet_kind != 2'd0 || relay_claims;
  assign received_kind = claimed ? 3'd5 : judged_kind;
  assign roce_dropped  = packet_verdict && packet_kind == 2'd2;

  wire [ 63:0] queued_tdata;
  wire         queued_tpayload;
  wire         queued_tvalid;
  wire         queued_tready;
  wire         queued_tlast;
  wire [672:0] queued_tuser;

  agg_frame_queue #(
      .WORD_BITS      (64),
      .DESCRIPTOR_BITS(673),
      .DEPTH_BITS     (7),
      .FRAME_BITS     (5)
  ) u_queue (
      .clk                 (clk),
      .rst                 (rst),
      .s_axis_tvalid       (packet_tvalid),
      .s_axis_tdata        (packet_tdata),
      .s_axis_tlast        (packet_tlast),
      .s_verdict_valid     (packet_verdict),
      .s_verdict_keep      (packet_kind == 2'd1),
      .s_verdict_descriptor(packet_descriptor),
      .event_dropped       (event_queue_full),
      .m_axis_tvalid       (queued_tvalid),
      .m_axis_tready       (queued_tready),
      .m_axis_tdata        (queued_tdata),
      .m_axis_tpayload     (queued_tpayload),
      .m_axis_tlast        (queued_tlast),
      .m_axis_tuser        (queued_tuser)
  );

  wire [ 63:0] checked_tdata;
  wire [  7:0] checked_tkeep;
  wire         checked_tvalid;
  wire         checked_tready;
  wire         checked_tlast;
  wire [111:0] checked_header;
  wire [  1:0] checked_dest;

  agg_connection_check #(
      .PORTS     (2),
      .PORT_BITS (1),
      .JOBS      (1),
      .JOB_BITS  (1),
      .BYTES     (8),
      .ELEM_BYTES(4),
      .FORMAT    (1),
      .PLACE_BITS(3)
  ) u_check (
      .clk            (clk),
      .rst            (rst),
      .hold           (hold_packets),
      .busy           (check_busy),
      .newest_vid     (newest_vid),
      .rank_of_port   (rank_of_port),
      .s_axis_tvalid  (queued_tvalid),
      .s_axis_tready  (queued_tready),
      .s_axis_tdata   (queued_tdata),
      .s_axis_tpayload(queued_tpayload),
      .s_axis_tlast   (queued_tlast),
      .s_axis_tuser   (queued_tuser),
      .m_record_valid (record_valid),
      .m_record_ready (record_ready),
      .m_record       (record),
      .record_place   (record_place),
      .m_axis_tvalid  (checked_tvalid),
      .m_axis_tready  (checked_tready),
      .m_axis_tdata   (checked_tdata),
      .m_axis_tkeep   (checked_tkeep),
      .m_axis_tlast   (checked_tlast),
      .m_axis_theader (checked_header),
      .m_axis_tdest   (checked_dest)
  );

  agg_beat_pack #(
      .STEP      (8),
      .BEAT_BYTES(8),
      .PORTS     (2)
  ) u_pack (
      .clk          (clk),
      .rst          (rst),
      .close        (1'b0),
      .busy         (pack_busy),
      .header       (checked_header),
      .dest         (checked_dest),
      .s_axis_tdata (checked_tdata),
      .s_axis_tkeep (checked_tkeep),
      .s_axis_tvalid(checked_tvalid),
      .s_axis_tready(checked_tready),
      .s_axis_tlast (checked_tlast),
      .s_axis_tuser (1'b0),
      .m_axis_tdata (beat_tdata),
      .m_axis_tkeep (beat_tkeep),
      .m_axis_tvalid(beat_tvalid),
      .m_axis_tready(beat_tready),
      .m_axis_tlast (beat_tlast),
      .m_axis_tdest (beat_tdest),
      .m_axis_tuser (beat_tuser)
  );

  wire [63:0] relay_tdata;
  wire [ 7:0] relay_tkeep;
  wire        relay_tvalid;
  wire        relay_tready;
  wire        relay_tlast;

  agg_relay #(
      .BYTES      (8),
      .FRAME_BYTES(9018),
      .NEIGHBOURS (2),
      .DEPTH_BITS (12),
      .FRAME_BITS (7)
  ) u_relay (
      .clk          (clk),
      .rst          (rst),
      .own_mac      (own_mac),
      .own_ip       (own_ip),
      .neighbour_ip (neighbour_ip),
      .neighbour_mac(neighbour_mac),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tdata (rx_tdata),
      .s_axis_tkeep (rx_tkeep),
      .s_axis_tlast (rx_tlast),
      .s_axis_tuser (rx_tuser),
      .claims       (relay_claims),
      .refuse       (packet_kind != 2'd0),
      .event_relayed(relayed),
      .event_dropped(event_unpassed),
      .m_axis_tdata (relay_tdata),
      .m_axis_tkeep (relay_tkeep),
      .m_axis_tvalid(relay_tvalid),
      .m_axis_tready(relay_tready),
      .m_axis_tlast (relay_tlast)
  );

  assign access_valid    = waiting_valid;
  assign waiting_ready   = access_ready;
  assign access_write    = waiting_write;
  assign access_addr     = waiting_addr;
  assign access_tag      = waiting_tag;
  assign access_wdata    = waiting_wdata;
  assign access_mac      = waiting_mac;
  assign access_ip       = waiting_ip;
  assign access_port     = waiting_port;
  assign access_ethernet = waiting_ethernet;
  assign ingress_tvalid  = beat_tdest & {2{beat_tvalid}};
  assign beat_tready     = |(beat_tdest & ingress_tready);
  assign ingress_tdata   = {2{beat_tdata}};
  assign ingress_tkeep   = {2{beat_tkeep}};
  assign ingress_tlast   = {2{beat_tlast}};
  assign ingress_tuser   = {2{beat_tuser}};

  agg_roce_headers #(
      .PORTS     (2),
      .PORT_BITS (1),
      .SLOT_BITS (2),
      .JOBS      (1),
      .JOB_BITS  (1),
      .ETHERNET  (1),
      .PLACE_BITS(3)
  ) u_headers (
      .clk           (clk),
      .rst           (rst),
      .s_record_valid(record_valid),
      .s_record_ready(record_ready),
      .s_record_place(record_place),
      .s_record      (record),
      .enter_tvalid  (ingress_tvalid),
      .enter_tready  (ingress_tready),
      .enter_tlast   (ingress_tlast),
      .enter_place   ({ingress_tuser[113+HDR_CODE_LSB+:3], ingress_tuser[0+HDR_CODE_LSB+:3]}),
      .verdict_valid (verdict_valid),
      .verdict_port  (verdict_port),
      .verdict_slot  (verdict_slot),
      .verdict_result(verdict_result),
      .job_on        (job_on),
      .job_epoch     (job_epochs),
      .newest_vid    (newest_vid),
      .read_valid    (read_valid),
      .read_ready    (read_ready),
      .read_port     (read_port),
      .read_slot     (read_slot),
      .read_done     (read_done),
      .read_tag      (read_tag),
      .read_record   (read_record)
  );

  assign passed = 1'b0;

  wire        near_valid;  // an access that the registers of the network forward
  wire        near_ready;
  wire        far_valid;  // the answer to it
  wire        far_ready;
  wire [ 7:0] far_code;
  wire [63:0] far_value;
  wire        network_code_valid;
  wire [ 7:0] network_code;
  wire        connection_code_valid;
  wire [ 7:0] connection_code;
  wire        stage_clear;
  wire        stage_connection;
  wire        connection_registered;  // JOB_CONNECTION
  wire        connection_job;
  wire        connection_port;
  wire [63:0] connection_value;
  wire        check;  // the connections of a commit
  wire        checked;
  wire        good;
  wire        install;
  wire        set_up_job;
  wire [ 1:0] set_up_ports;
  wire [63:0] set_up_chunk;
  wire [31:0] set_up_first;
  wire [15:0] set_up_epoch;
  wire        set_up_partial;
  wire        remove;
  wire        remove_job;
  wire        remove_all;

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
      .JOBS         (1),
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
      .m_reg_valid      (near_valid),
      .m_reg_ready      (near_ready),
      .m_reg_write      (reg_write),
      .m_reg_addr       (reg_addr),
      .m_reg_wdata      (reg_wdata),
      .m_reg_stranger   (s_reg_stranger),
      .s_reg_valid      (far_valid),
      .s_reg_ready      (far_ready),
      .s_reg_code       (far_code),
      .s_reg_value      (far_value),
      .m_code_valid     (network_code_valid),
      .m_code           (network_code),
      .owned            (owned),
      .clear_counters   (clear_counters),
      .clear_staged     (clear_staged),
      .m_reply_valid    (reply_valid),
      .m_reply_ready    (reply_ready),
      .m_reply_header   (reply_header),
      .m_reply_mac      (reply_mac),
      .m_reply_ip       (reply_ip),
      .m_reply_port     (reply_port),
      .m_reply_ethernet (unused_reply_ethernet),
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
      .count_index      (count_index),
      .count_value      (count_value)
  );

  wire [7:0] unused_to_ethernet;  // a store is for one Ethernet port

  agg_member_table #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (1),
      .JOB_BITS (1),
      .ETHERNET (1)
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
      .from_en        (from_en),
      .from_job       (from_job),
      .from_rank      (from_rank),
      .from_valid     (unused_from_valid),
      .from_ip        (unused_from_ip),
      .from_port      (unused_from_port),
      .from_ethernet  (unused_from_ethernet),
      .from_dest      (unused_from_dest),
      .to_en          (to_en),
      .to_job         (to_job),
      .to_port        (to_port),
      .to_mac         (to_mac),
      .to_ip          (unused_to_ip),
      .to_udp_port    (unused_to_udp_port),
      .to_ethernet    (unused_to_ethernet),
      .to_same        (unused_to_same),
      .behind         (unused_behind)
  );

  agg_network_counters #(
      .ETHERNET(1),
      .QUEUES  (4)
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

  // -- Connections --
  assign s_code_valid = network_code_valid || connection_code_valid;
  assign s_code       = network_code_valid ? network_code : connection_code;

  agg_connection_registers #(
      .PORTS         (2),
      .PORT_BITS     (1),
      .JOBS          (1),
      .JOB_BITS      (1),
      .ETHERNET      (1),
      .HAS_NEIGHBOURS(1),
      .NEIGHBOURS    (2)
  ) u_connection_registers (
      .clk             (clk),
      .rst             (rst),
      .s_reg_valid     (near_valid),
      .s_reg_ready     (near_ready),
      .s_reg_write     (reg_write),
      .s_reg_addr      (reg_addr),
      .s_reg_wdata     (reg_wdata),
      .s_reg_stranger  (s_reg_stranger),
      .m_answer_valid  (far_valid),
      .m_answer_ready  (far_ready),
      .m_answer_code   (far_code),
      .m_answer_value  (far_value),
      .clear           (clear_staged),
      .reset_done      (clear_counters),
      .m_reg_valid     (reg_valid),
      .m_reg_ready     (reg_ready),
      .s_answer_valid  (answer_valid),
      .s_answer_ready  (answer_ready),
      .s_answer_code   (answer_code),
      .s_answer_value  (answer_value),
      .m_code_valid    (connection_code_valid),
      .m_code          (connection_code),
      .set_up          (set_up),
      .job_on          (job_on),
      .table_clear     (stage_clear),
      .table_write     (stage_connection),
      .table_registered(connection_registered),
      .table_job       (connection_job),
      .table_port      (connection_port),
      .table_value     (connection_value),
      .check           (check),
      .commit_job      (set_up_job),
      .commit_ports    (set_up_ports),
      .commit_chunk    (set_up_chunk),
      .commit_first    (set_up_first),
      .commit_epoch    (set_up_epoch),
      .commit_partial  (set_up_partial),
      .checked         (checked),
      .good            (good),
      .install         (install),
      .remove          (remove),
      .remove_job      (remove_job),
      .remove_all      (remove_all),
      .neighbour_ip    (neighbour_ip),
      .neighbour_mac   (neighbour_mac),
      .dropped         (roce_dropped),
      .reason          (roce_reason),
      .relayed         (relayed),
      .early           (released_early)
  );

  agg_connection_table #(
      .PORTS     (2),
      .PORT_BITS (1),
      .JOBS      (1),
      .JOB_BITS  (1),
      .ETHERNET  (1),
      .ELEM_BYTES(4)
  ) u_connections (
      .clk             (clk),
      .rst             (rst),
      .clear           (stage_clear),
      .stage_address   (table_write && !table_mac),
      .stage_mac       (table_write && table_mac),
      .stage_connection(stage_connection),
      .stage_port      (stage_connection ? connection_port : table_port),
      .stage_value     (access_wdata[55:0]),
      .reg_table       (connection_registered),
      .reg_job         (connection_job),
      .reg_port        (connection_port),
      .reg_value       (connection_value),
      .check           (check),
      .commit_job      (set_up_job),
      .commit_ports    (set_up_ports),
      .commit_chunk    (set_up_chunk),
      .commit_first    (set_up_first),
      .commit_partial  (set_up_partial),
      .commit_epoch    (set_up_epoch),
      .checked         (checked),
      .good            (good),
      .install         (install),
      .remove          (remove),
      .remove_job      (remove_job),
      .remove_all      (remove_all),
      .lookup_ip       (lookup_ip),
      .lookup_qpn      (lookup_qpn),
      .found           (found),
      .found_ip        (found_ip),
      .found_job       (found_job),
      .found_port      (found_port),
      .found_source    (found_source),
      .found_ethernet  (found_ethernet),
      .found_psn       (found_psn),
      .found_mtu       (found_mtu),
      .found_epoch     (found_epoch),
      .receivers       (receivers),
      .behind          (unused_leaves_at)
  );

  // -- Core --
  wire       lease_holds;
  wire [1:0] unused_member;  // the address table has the ranks

  assign lease_holds = !lease_over;

  agg_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(lease_holds),
      .busy   (hold),
      .down   (down)
  );

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
      .m_axis_tdata     (egress_tdata),
      .m_axis_tkeep     (egress_tkeep),
      .m_axis_tvalid    (egress_tvalid),
      .m_axis_tready    (egress_tready),
      .m_axis_tlast     (egress_tlast),
      .m_axis_tuser     ({unused_egress_receivers, egress_tuser}),
      .m_axis_tdest     (egress_tdest),
      .m_axis_tslot     (egress_tslot),
      .released_early   (released_early),
      .port_ready       ({2{1'b1}}),
      .port_start       (packet_start),
      .member           (unused_member),
      .rank_of_port     (rank_of_port),
      .job_on           (job_on),
      .job_epochs       (job_epochs),
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
      .shell_frames     (event_frame),
      .shell_hunted     (1'b0),
      .shell_header_crc (1'b0),
      .shell_bad_version(event_bad_version),
      .shell_bad_kind   (event_bad_kind),
      .shell_bad_length (event_bad_length),
      .verdict_valid    (verdict_valid),
      .verdict_port     (verdict_port),
      .verdict_slot     (verdict_slot),
      .verdict_vid      (unused_verdict_vid),
      .verdict_result   (verdict_result),
      .verdict_code     (unused_verdict_code),
      .beat_strobe      (beat_strobe)
  );

  // -- Transmitter --
  wire [63:0] tx_tdata;

  assign eth_tx_p0_tdata = tx_tdata;

  wire [7:0] tx_tkeep;

  assign eth_tx_p0_tkeep = tx_tkeep;

  wire tx_tvalid;

  assign eth_tx_p0_tvalid = tx_tvalid;

  wire tx_tready;

  assign tx_tready = eth_tx_p0_tready;

  wire tx_tlast;

  assign eth_tx_p0_tlast = tx_tlast;

  wire        room;
  wire        takes_first;
  wire        takes_word;
  wire        word_valid;
  wire [63:0] word_data;
  wire        word_last;  // a packet's last step was taken
  wire [ 5:0] word_number;  // of that step
  wire        sums_valid;
  wire [31:0] sums_crc;

  agg_roce_sums #(
      .BEAT_BYTES (8),
      .BYTES      (8),
      .STEP       (8),
      .NUMBER_BITS(6)
  ) u_sums (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (egress_tdata),
      .s_axis_tkeep (egress_tkeep),
      .s_axis_tvalid(egress_tvalid),
      .s_axis_tready(egress_tready),
      .s_axis_tlast (egress_tlast),
      .room         (room),
      .takes_first  (takes_first),
      .takes_word   (takes_word),
      .m_word_valid (word_valid),
      .m_word_data  (word_data),
      .m_last       (word_last),
      .m_number     (word_number),
      .m_sums_valid (sums_valid),
      .m_crc        (sums_crc)
  );

  wire [2:0] split_dest;
  wire       split_takes_first;
  wire       split_takes_word;
  wire       split_word_valid;
  wire       split_last;
  wire       split_sums_valid;
  wire       rooms;
  wire       copies_left;  // the last copy of a packet, at this port, has its header

  assign room              = rooms;
  assign packet_left       = copies_left;
  assign split_dest        = {1'b0, egress_tdest};
  assign split_takes_first = takes_first;
  assign split_takes_word  = takes_word;
  assign split_word_valid  = word_valid;
  assign split_last        = word_last;
  assign split_sums_valid  = sums_valid;

  wire [63:0] answer_frame_tdata;
  wire [ 7:0] answer_frame_tkeep;
  wire        answer_frame_tvalid;
  wire        answer_frame_tlast;
  wire        replies_tvalid;

  assign replies_tvalid = answer_frame_tvalid;

  agg_reply_frame #(
      .BYTES(8)
  ) u_replies (
      .clk           (clk),
      .rst           (rst),
      .own_mac       (own_mac),
      .own_ip        (own_ip),
      .own_port      (own_port),
      .s_reply_valid (reply_valid),
      .s_reply_ready (reply_ready),
      .s_reply_header(reply_header),
      .s_reply_mac   (reply_mac),
      .s_reply_ip    (reply_ip),
      .s_reply_port  (reply_port),
      .m_axis_tdata  (answer_frame_tdata),
      .m_axis_tkeep  (answer_frame_tkeep),
      .m_axis_tvalid (answer_frame_tvalid),
      .m_axis_tready (|(replies_tvalid & reply_tready)),
      .m_axis_tlast  (answer_frame_tlast)
  );

  wire [ 1:0] copy_dest;
  wire [ 1:0] copy_done;  // receivers that the copy serves
  wire [ 1:0] copy_slot;
  wire [48:0] copy_tag;  // job, epoch and VID
  wire        unused_copy_reply;
  wire [15:0] unused_copy_0;
  wire        copy_job;
  wire [14:0] unused_copy_1;
  wire [15:0] copy_epoch;
  wire [15:0] unused_copy_2;
  wire [31:0] copy_vid;
  wire [79:0] unused_copy_3;
  wire [61:0] unused_copy_4;
  wire        copy_valid;
  wire        copy_ready;
  wire        copy_final;
  wire [ 1:0] copy_ecn;
  wire [31:0] copy_crc;
  wire        unused_copy_bare;
  wire [13:0] unused_copy_bytes;
  wire [15:0] unused_copy_sum;
  wire [63:0] payload_tdata;
  wire        payload_tvalid;
  wire        payload_tready;
  wire        payload_tlast;

  agg_datagram_store #(
      .PORTS      (3),
      .BYTES      (8),
      .STEP       (8),
      .PAYLOAD    (256),
      .SPARE      (16),
      .NUMBER_BITS(6)
  ) u_store (
      .clk(clk),
      .rst(rst),
      .room(rooms),
      .takes_first(split_takes_first),
      .s_header({62'd0, egress_tslot, egress_tuser}),
      .s_dest(split_dest),
      .s_bare(1'b0),
      .takes_word(split_takes_word),
      .s_word_valid(split_word_valid),
      .s_word_data(word_data),
      .s_last(split_last),
      .s_number(word_number),
      .s_sums_valid(split_sums_valid),
      .s_crc(sums_crc),
      .s_sum(16'd0),
      .m_copy_valid(copy_valid),
      .m_copy_ready(copy_ready),
      .m_copy_done({1'b0, copy_done}),
      .m_copy_dest({unused_copy_reply, copy_dest}),
      .m_copy_final(copy_final),
      .m_copy_header({
        unused_copy_4,
        copy_slot,
        unused_copy_3,
        copy_vid,
        unused_copy_2,
        copy_epoch,
        unused_copy_1,
        copy_job,
        unused_copy_0
      }),
      .m_copy_bare(unused_copy_bare),
      .m_copy_ecn(copy_ecn),
      .m_copy_bytes(unused_copy_bytes),
      .m_copy_crc(copy_crc),
      .m_copy_sum(unused_copy_sum),
      .m_axis_tdata(payload_tdata),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast(payload_tlast)
  );

  assign copy_tag = {copy_job, copy_epoch, copy_vid};

  wire [63:0] frame_tdata;
  wire [ 7:0] frame_tkeep;
  wire        frame_tvalid;
  wire        frame_tready;
  wire        frame_tlast;
  wire        to_member;  // whose connection it is
  wire        unused_skipped;  // a header was another packet's

  agg_roce_transmit #(
      .PORTS    (2),
      .PORT_BITS(1),
      .SLOT_BITS(2),
      .JOB_BITS (1),
      .BYTES    (8)
  ) u_transmit (
      .clk          (clk),
      .rst          (rst),
      .own_mac      (own_mac),
      .s_copy_valid (copy_valid),
      .s_copy_ready (copy_ready),
      .s_copy_dest  (copy_dest),
      .s_copy_done  (copy_done),
      .s_copy_final (copy_final),
      .s_copy_slot  (copy_slot),
      .s_copy_tag   (copy_tag),
      .s_copy_ecn   (copy_ecn),
      .s_copy_crc   (copy_crc),
      .read_valid   (read_valid),
      .read_ready   (read_ready),
      .read_port    (read_port),
      .read_slot    (read_slot),
      .read_done    (read_done),
      .read_tag     (read_tag),
      .read_record  (read_record),
      .to_job       (to_job),
      .to_port      (to_member),
      .to_mac       (to_mac),
      .s_axis_tdata (payload_tdata),
      .s_axis_tvalid(payload_tvalid),
      .s_axis_tready(payload_tready),
      .s_axis_tlast (payload_tlast),
      .m_axis_tdata (frame_tdata),
      .m_axis_tkeep (frame_tkeep),
      .m_axis_tvalid(frame_tvalid),
      .m_axis_tready(frame_tready),
      .m_axis_tlast (frame_tlast),
      .left         (copies_left),
      .skipped      (unused_skipped)
  );

  assign to_en     = 1'b1;
  assign to_port   = receivers[1*to_member+:1];
  assign from_en   = 1'b0;
  assign from_job  = 8'd0;
  assign from_rank = 8'd0;
  assign stranger  = 1'b0;

  agg_eth_merge #(
      .STREAMS(4),
      .BYTES  (8)
  ) u_merge (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata ({relay_tdata, answer_frame_tdata, answers_tdata, frame_tdata}),
      .s_axis_tkeep ({relay_tkeep, answer_frame_tkeep, answers_tkeep, frame_tkeep}),
      .s_axis_tvalid({relay_tvalid, replies_tvalid, answers_tvalid, frame_tvalid}),
      .s_axis_tready({relay_tready, reply_tready, answers_tready, frame_tready}),
      .s_axis_tlast ({relay_tlast, answer_frame_tlast, answers_tlast, frame_tlast}),
      .m_axis_tdata (tx_tdata),
      .m_axis_tkeep (tx_tkeep),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast (tx_tlast)
  );

endmodule

`default_nettype wire
