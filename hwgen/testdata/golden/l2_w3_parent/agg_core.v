// Made by: hwgen -lanes 2 -workers 3 -format fp32 -result fp32 -sum tree -chunk 8 -window 2 -jobs 2
//      -shell none -registers axil -parent

// The aggregator between AXI4-Stream ports.
//
// Each port stores its chunks in a slot memory of its own. Once a slot has a chunk from every
// member of its job, the core reads all memories, sums lane by lane, caches and sends the result.
//
// Ports accept data, ask and finish packets. tuser[111:0] is the 14-byte header, on a packet's
// first beat; tuser[112] marks a damaged payload, on the last beat. A packet without payload is
// one beat with tkeep = 0. m_axis sends results and statuses: tuser is the 30-byte header during
// the whole packet, tdest the destination ports. The core starts a packet only for ports that are
// ready, and announces it at port_start; m_axis_tready must then let the whole packet pass. Port 0
// has the lowest bits of vectors.
//
// Latency from a chunk's last beat to its result's first: 43 cycles, 28 of them in the
// lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets
// wait for the commit. Not done here: framing and CRC, which the shell does.
//
// The last port is the up port. It takes results, replays and statuses of the parent, and sends data and
// finishes; it is no member.

`default_nettype none

module agg_core (
    input wire clk,
    input wire rst,

    // The host's link; work that the last host left behind
    input  wire link_down,
    output wire hold,
    output wire unjudged,

    // In, for each port
    input  wire [255:0] s_axis_tdata,
    input  wire [ 31:0] s_axis_tkeep,
    input  wire [  3:0] s_axis_tvalid,
    output wire [  3:0] s_axis_tready,
    input  wire [  3:0] s_axis_tlast,
    input  wire [338:0] s_axis_tuser,

    // At the up port: a header with mask, and in bit 176 the mark of a damaged payload
    input wire [176:0] s_axis_up_tuser,

    // Out, for all ports
    output wire [ 63:0] m_axis_tdata,
    output wire [  7:0] m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [239:0] m_axis_tuser,
    output wire [  3:0] m_axis_tdest,

    // Ports with room for a whole packet
    input wire [3:0] port_ready,

    // Ports for which a packet starts: its beats come later
    output wire [3:0] port_start,

    // The members and their ranks, job 0 in the lowest bits
    output wire [ 5:0] member,
    output wire [47:0] rank_of_port,

    // Register accesses, one at a time; replies in order
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

    // A write lacks bytes: it is refused
    input wire s_reg_partial,

    // The registers, addresses and owners of a shell on a network
    input  wire        s_reg_stranger,
    input  wire        s_code_valid,
    input  wire [ 7:0] s_code,
    input  wire        clear_staged,
    input  wire [ 2:0] members_whole,
    input  wire        members_same,
    output wire        owned,
    output wire [63:0] job_ports,
    output wire        clear_counters,
    output wire        set_up,

    // Events of the shell: how many in a cycle
    input wire shell_frames,
    input wire shell_hunted,
    input wire shell_header_crc,
    input wire shell_bad_version,
    input wire shell_bad_kind,
    input wire shell_bad_length,

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
  // -- Events, for one cycle each --
  // A packet, or an overdue slot, was judged (agg_slots)
  wire [  2:0] judged;  // a packet: its port, one hot
  wire [  1:0] e_port;  // its port
  wire [  1:0] e_slot;  // its slot, or the overdue one
  wire         e_job;
  wire [  7:0] e_number;  // the packet's job, as in its header
  wire [ 15:0] e_epoch;
  wire [  7:0] e_rank;
  wire [  2:0] e_rank_bit;  // the rank, one hot
  wire [ 31:0] e_vid;
  wire         e_gen;  // the slot's generation
  wire         turn_over;  // the slot advances to a new VID
  wire         store;  // the payload is stored
  wire         store_ce;  // it is marked CE
  wire         store_nonfinite;  // it has a NaN or an infinity
  wire         owe;  // the sender is owed the result
  wire         complete;  // the slot closes, and is summed
  wire [  2:0] complete_ports;  // ports in the sum
  wire [ 31:0] complete_vid;
  wire [  1:0] complete_ecn;
  wire         complete_nonfinite;
  wire         timer_start;  // the slot's deadline starts
  wire         timer_stop;  // the slot has no deadline
  wire         acted;  // the overdue slot's deadline starts again
  wire         overdue;  // it still waits
  wire [  2:0] evict;  // ports to evict
  wire         notice;  // the members get a notice
  wire [  2:0] notice_ports;
  wire [  7:0] notice_code;
  wire [ 31:0] notice_vid;
  wire         asked;  // an ask is accepted
  wire         finished;  // a finish is accepted
  wire         answer;  // a status answers the ask or finish
  wire [  7:0] answer_code;
  wire [  2:0] answer_ports;  // that it names, or that were evicted
  wire [ 63:0] answer_mask;  // their ranks, 1 cycle later
  wire         refused;  // the packet is refused
  wire [  7:0] refused_code;
  wire         refused_answer;  // a status may answer it
  wire         taken;  // a final sum is stored, with complete
  wire         again;  // a member repeats while the slot waits for the final sum
  wire [  2:0] answer_ranks;  // ranks of answer_ports in the job, likewise

  // A slot was summed (agg_writer)
  wire         reduces;  // in the next cycle: reduced
  wire         reduced;
  wire [  1:0] reduced_slot;
  wire         reduced_gen;  // its generation
  wire         reduced_job;

  // -- Jobs --
  wire [  1:0] flush;  // the job ends, job 0 in the lowest bits
  wire         hold_commits;  // nothing is picked for the commit
  wire         idle;  // and nothing is being judged
  wire         clear;  // empties a slot
  wire [  1:0] clear_slot;
  wire [  1:0] drop_statuses;
  wire [  1:0] drained;  // no slot of the job is being reduced
  wire [  1:0] sets_up;  // the job is being set up
  wire         sets_up_job;  // the job's number
  wire         cleared;  // the job's old counts are cleared
  wire [  1:0] job_valid;  // set up
  wire [  1:0] job_complete;  // the last one ended because all ranks finished
  wire [  1:0] job_ever;  // the job has had an epoch
  wire [ 31:0] job_epoch;
  wire [ 31:0] job_chunk;  // elements
  wire [  3:0] job_last;  // number of a chunk's last beat
  wire [  3:0] job_window;  // chunks
  wire [  3:0] slot_mask;  // twice the window, minus 1
  wire [  3:0] slot_base;  // the first slot
  wire [ 63:0] job_first;  // first VID
  wire [ 63:0] job_deadline;  // cycles; 0: no deadline
  wire [  1:0] job_partial;  // partial sums are enabled
  wire [  5:0] job_finished;  // finished ranks
  wire [  5:0] job_evicted;  // evicted ranks
  wire [  5:0] evicted;  // evicted ports
  wire [  5:0] present;  // member ports that are not evicted
  wire         op_valid;
  wire         op_commit;
  wire         op_abort;
  wire [  7:0] op_job;
  wire [ 15:0] op_epoch;
  wire [ 31:0] op_first;
  wire [ 63:0] op_ports;
  wire [ 63:0] op_chunk;
  wire [ 63:0] op_window;
  wire [ 63:0] op_deadline;
  wire         op_done;
  wire [  7:0] op_code;

  // Trees of cards
  wire [  1:0] job_tree;  // results come from the parent, job 0 in the lowest bits
  wire [ 63:0] job_up;  // JOB_PARENT
  wire [ 15:0] job_up_rank;  // the card's rank at its parent
  wire [127:0] job_tree_ranks;
  wire [ 79:0] job_refusal;  // the parent's last refusal: VID and code
  wire [ 49:0] job_repeat;  // cycles
  wire [  5:0] finished_port;  // ports that have finished
  wire [  1:0] tree_done;  // the parent has answered the card's finish
  wire         asks_op;  // agg_registers requests an operation
  wire         tree_same;
  wire         tree_parent;
  wire         tree_ranks;
  wire         tree_nested;
  wire [ 63:0] staged_parent;
  wire [ 63:0] staged_repeat;
  wire [ 63:0] staged_tree;
  wire         up_clear_staged;
  wire         ranks_write;  // MEMBER_RANKS of a port
  wire [  1:0] ranks_port;
  wire [ 63:0] ranks_wdata;
  wire         ranks_of_job;  // reads JOB_RANKS instead
  wire         ranks_job;
  wire [ 63:0] ranks_value;
  wire         global_write;  // the global ranks of a member are set
  wire         global_job;
  wire [  1:0] global_port;
  wire [ 63:0] global_ranks;

  // A packet of the up port was judged (agg_up_commit)
  wire         up_judged;
  wire [ 63:0] up_mask;  // in its header
  wire         up_passes_on;  // a finish is owed to the parent, not answered
  wire         up_done;  // the parent ends the job
  wire         up_notice;  // all members get a notice
  wire [  7:0] up_code;  // of the notice, or the refusal
  wire         up_taken;  // a final sum is taken
  wire         up_refused;  // the parent refused a packet
  wire         up_dropped;

  agg_up_jobs #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOBS     (2),
      .JOB_BITS (1)
  ) u_up_jobs (
      .clk           (clk),
      .rst           (rst),
      .parent        (staged_parent),
      .repeats       (staged_repeat),
      .tree          (staged_tree),
      .clear_staged  (up_clear_staged),
      .ranks_write   (ranks_write),
      .ranks_port    (ranks_port),
      .ranks_wdata   (ranks_wdata),
      .ranks_of_job  (ranks_of_job),
      .ranks_job     (ranks_job),
      .ranks_value   (ranks_value),
      .op_valid      (asks_op),
      .op_commit     (op_commit),
      .op_job        (op_job[0]),
      .op_ports      (op_ports[2:0]),
      .m_op_valid    (op_valid),
      .tree_same     (tree_same),
      .tree_parent   (tree_parent),
      .tree_ranks    (tree_ranks),
      .tree_nested   (tree_nested),
      .sets_up       (|sets_up),
      .sets_up_job   (sets_up_job),
      .refused       (up_refused),
      .refused_job   (e_job),
      .refused_code  (up_code),
      .refused_vid   (e_vid),
      .job_tree      (job_tree),
      .job_up        (job_up),
      .job_tree_ranks(job_tree_ranks),
      .job_refusal   (job_refusal),
      .job_repeat    (job_repeat),
      .wr_en         (global_write),
      .wr_job        (global_job),
      .wr_port       (global_port),
      .wr_ranks      (global_ranks)
  );

  assign job_up_rank = {job_up[47:40], job_up[15:8]};

  agg_jobs #(
      .PORTS     (3),
      .PORT_BITS (2),
      .JOBS      (2),
      .JOB_BITS  (1),
      .CHUNK     (8),
      .WINDOW    (2),
      .SLOT_BITS (2),
      .INDEX_BITS(2),
      .LANE_BITS (1),
      .STAGES    (1)
  ) u_jobs (
      .clk          (clk),
      .rst          (rst),
      .link_down    (link_down),
      .op_valid     (op_valid),
      .op_commit    (op_commit),
      .op_abort     (op_abort),
      .op_job       (op_job),
      .op_epoch     (op_epoch),
      .op_first     (op_first),
      .op_ports     (op_ports),
      .op_chunk     (op_chunk),
      .op_window    (op_window),
      .op_deadline  (op_deadline),
      .members_whole(members_whole),
      .members_same (members_same),
      .tree_same    (tree_same),
      .tree_parent  (tree_parent),
      .tree_ranks   (tree_ranks),
      .tree_nested  (tree_nested),
      .op_done      (op_done),
      .op_code      (op_code),
      .finish       (finished),
      .finish_job   (e_job),
      .finish_bit   (e_rank_bit),
      .finish_ports (judged),
      .evict        (evict),
      .evict_job    (e_job),
      .evict_ranks  (answer_ranks),
      .job_tree     (job_tree),
      .parent_done  (up_done),
      .parent_job   (e_job),
      .finished_port(finished_port),
      .tree_done    (tree_done),
      .hold_commits (hold_commits),
      .idle         (idle),
      .drained      (drained),
      .reduces      (reduces),
      .flush        (flush),
      .hold         (hold),
      .drop_statuses(drop_statuses),
      .clear        (clear),
      .clear_slot   (clear_slot),
      .sets_up      (sets_up),
      .sets_up_job  (sets_up_job),
      .cleared      (cleared),
      .job_valid    (job_valid),
      .job_complete (job_complete),
      .job_ever     (job_ever),
      .job_epoch    (job_epoch),
      .job_chunk    (job_chunk),
      .job_last     (job_last),
      .job_window   (job_window),
      .slot_mask    (slot_mask),
      .slot_base    (slot_base),
      .job_first    (job_first),
      .job_deadline (job_deadline),
      .job_partial  (job_partial),
      .job_finished (job_finished),
      .job_evicted  (job_evicted),
      .evicted      (evicted),
      .present      (present),
      .member       (member),
      .rank_of_port (rank_of_port)
  );

  assign job_ports = op_ports;
  assign set_up    = |sets_up;

  // -- Ports --
  wire [  3:0] req_valid;  // ports that request a commit
  wire [  3:0] req_grant;  // the port's request is taken
  wire [411:0] requests;
  wire         rd_en;  // reads all slot memories
  wire [  1:0] rd_slot;
  wire [  1:0] rd_beat;
  wire [  3:0] beat_members;  // ports in the sum of the beat at the memories' outputs
  wire [  3:0] label_members;  // its label; that of a final sum has the up port

  assign beat_members = {label_members[3], label_members[0+:3] & {3{!label_members[3]}}};

  wire [112:0] up_tuser;
  wire [451:0] in_tuser;  // of all ports
  wire [  3:0] in_judged;

  assign in_tuser  = {up_tuser, s_axis_tuser};
  assign in_judged = {up_judged, judged};

  agg_up_receive #(
      .JOBS    (2),
      .JOB_BITS(1)
  ) u_up_receive (
      .clk          (clk),
      .rst          (rst),
      .tree_ranks   (job_tree_ranks),
      .s_axis_tvalid(s_axis_tvalid[3]),
      .s_axis_tready(s_axis_tready[3]),
      .s_axis_tlast (s_axis_tlast[3]),
      .s_axis_tuser (s_axis_up_tuser),
      .m_axis_tuser (up_tuser),
      .judged       (up_judged),
      .mask         (up_mask)
  );

  wire [255:0] gated;  // the lanes' operands

  genvar p;
  generate
    for (p = 0; p < 4; p = p + 1) begin : g_port
      wire [ 1:0] s_nonfinite;  // elements that are a NaN or an infinity
      wire        wr_en;
      wire [ 1:0] wr_slot;
      wire [ 1:0] wr_beat;
      wire [63:0] wr_data;
      wire [63:0] stored;  // the slot memory's output

      agg_fp_nonfinite #(
          .LANES     (2),
          .EXP       (8),
          .FRAC      (23),
          .INFINITIES(1)
      ) u_nonfinite (
          .beat     (s_axis_tdata[64*p+:64]),
          .nonfinite(s_nonfinite)
      );

      wire        req_entered;
      wire        req_writable;
      wire        req_nonfinite;
      wire        req_bad;
      wire        req_whole;
      wire [15:0] req_length;
      wire [31:0] req_vid;
      wire [ 7:0] req_rank;
      wire [15:0] req_epoch;
      wire [ 7:0] req_format;
      wire [ 7:0] req_job;
      wire [ 1:0] req_ecn;
      wire [ 3:0] req_kind;
      wire [ 3:0] req_version;

      agg_ingress #(
          .LANES     (2),
          .BEAT_BITS (64),
          .JOBS      (2),
          .JOB_BITS  (1),
          .SLOT_BITS (2),
          .INDEX_BITS(2)
      ) u_ingress (
          .clk          (clk),
          .rst          (rst),
          .flush        (flush),
          .job_valid    (job_valid),
          .slot_mask    (slot_mask),
          .slot_base    (slot_base),
          .job_last     (job_last),
          .s_axis_tdata (s_axis_tdata[64*p+:64]),
          .s_axis_tkeep (s_axis_tkeep[8*p+:8]),
          .s_axis_tvalid(s_axis_tvalid[p]),
          .s_axis_tready(s_axis_tready[p]),
          .s_axis_tlast (s_axis_tlast[p]),
          .s_axis_tuser (in_tuser[113*p+:113]),
          .s_nonfinite  (s_nonfinite),
          .wr_en        (wr_en),
          .wr_slot      (wr_slot),
          .wr_beat      (wr_beat),
          .wr_data      (wr_data),
          .req_valid    (req_valid[p]),
          .req_grant    (req_grant[p]),
          .req_entered  (req_entered),
          .req_writable (req_writable),
          .req_nonfinite(req_nonfinite),
          .req_bad      (req_bad),
          .req_whole    (req_whole),
          .req_length   (req_length),
          .req_vid      (req_vid),
          .req_rank     (req_rank),
          .req_epoch    (req_epoch),
          .req_format   (req_format),
          .req_job      (req_job),
          .req_ecn      (req_ecn),
          .req_kind     (req_kind),
          .req_version  (req_version),
          .judged       (in_judged[p]),
          .judged_stored(store || taken),
          .reduced      (reduced),
          .reduced_slot (reduced_slot),
          .clear        (clear),
          .clear_slot   (clear_slot)
      );

      assign requests[103*p+:103] = {
        req_entered,
        req_writable,
        req_nonfinite,
        req_bad,
        req_whole,
        req_length,
        req_vid,
        req_rank,
        req_epoch,
        req_format,
        req_job,
        req_ecn,
        req_kind,
        req_version
      };

      agg_ram #(
          .WIDTH    (64),
          .ADDR_BITS(4),
          .APART    (1)
      ) u_memory (
          .clk    (clk),
          .wr_en  (wr_en),
          .wr_addr({wr_slot, wr_beat}),
          .wr_data(wr_data),
          .rd_en  (rd_en),
          .rd_addr({rd_slot, rd_beat}),
          .rd_data(stored)
      );

      agg_gate #(
          .LANES    (2),
          .ELEM_BITS(32),
          .IDENTITY (64'h80000000)
      ) u_gate (
          .clk   (clk),
          .enable(beat_members[p]),
          .x     (stored),
          .y     (gated[64*p+:64])
      );
    end
  endgenerate

  // -- Commit --
  wire         slow;  // too many results are being owed
  wire         act_valid;  // a slot is overdue
  wire [  1:0] act_slot;
  wire         act_job;
  wire         act_grant;
  wire         act_ok;  // the slot's timer still runs
  wire         granted_valid;  // a packet's header is checked from this cycle on
  wire         granted_act;  // an overdue slot instead
  wire [  3:0] granted_ports;  // the packet's port, one hot
  wire [  1:0] granted_port;
  wire [102:0] granted_request;
  wire [  1:0] granted_slot;  // the overdue slot
  wire         granted_job;  // its job

  agg_arbiter #(
      .PORTS    (4),
      .PORT_BITS(2),
      .JOB_BITS (1),
      .SLOT_BITS(2),
      .WIDTH    (103)
  ) u_arbiter (
      .clk      (clk),
      .rst      (rst),
      .hold     (hold_commits),
      .slow     (slow),
      .req_valid(req_valid),
      .req_grant(req_grant),
      .req_data (requests),
      .act_valid(act_valid),
      .act_grant(act_grant),
      .act_slot (act_slot),
      .act_job  (act_job),
      .out_valid(granted_valid),
      .out_act  (granted_act),
      .out_ports(granted_ports),
      .out_port (granted_port),
      .out_data (granted_request),
      .out_slot (granted_slot),
      .out_job  (granted_job),
      .idle     (idle),
      .unjudged (unjudged)
  );

  wire        read;  // a slot is read
  wire        read_row;  // the slot and its neighbour, by one window
  wire [ 1:0] read_slot;
  wire [ 1:0] read_other;
  wire [31:0] read_vid;
  wire [ 1:0] read_window;
  wire [ 1:0] read_mask;
  wire [31:0] read_first;
  wire        checked_act;  // an overdue slot
  wire        checked_refuse;  // the packet fails a check
  wire        checked_data;
  wire        checked_ask;
  wire        checked_finish;
  wire [ 7:0] checked_code;
  wire        checked_belongs;  // the packet's rank is its port's
  wire        checked_of_data;
  wire        checked_placed;
  wire        checked_ended;
  wire        checked_writable;  // the packet's payload was written
  wire        checked_nonfinite;
  wire [ 1:0] checked_ecn;
  wire [ 7:0] checked_number;  // of the job
  wire        checked_job;
  wire [15:0] checked_epoch;
  wire [ 7:0] checked_rank;
  wire [ 2:0] checked_ports;  // the packet's port, one hot
  wire [ 1:0] checked_port;
  wire [ 2:0] checked_member;  // ports that the job waits for
  wire [ 2:0] checked_evicted;
  wire        checked_partial;

  agg_commit #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOBS     (2),
      .JOB_BITS (1),
      .SLOT_BITS(2),
      .ROW_BITS (1),
      .FORMAT   (8'd1)
  ) u_commit (
      .clk         (clk),
      .rst         (rst),
      .valid       (granted_valid),
      .ports       (granted_ports[2:0]),
      .port        (granted_port),
      .request     (granted_request),
      .act         (granted_act),
      .act_slot    (granted_slot),
      .act_job     (granted_job),
      .job_valid   (job_valid),
      .job_complete(job_complete),
      .job_epoch   (job_epoch),
      .job_chunk   (job_chunk),
      .job_first   (job_first),
      .job_partial (job_partial),
      .job_window  (job_window),
      .slot_mask   (slot_mask),
      .slot_base   (slot_base),
      .member      (member),
      .present     (present),
      .evicted     (evicted),
      .rank_of_port(rank_of_port),
      .read        (read),
      .read_row    (read_row),
      .read_slot   (read_slot),
      .read_other  (read_other),
      .read_vid    (read_vid),
      .read_window (read_window),
      .read_mask   (read_mask),
      .read_first  (read_first),
      .acts        (checked_act),
      .refused     (checked_refuse),
      .data        (checked_data),
      .ask         (checked_ask),
      .finish      (checked_finish),
      .code        (checked_code),
      .belongs     (checked_belongs),
      .of_data     (checked_of_data),
      .placed      (checked_placed),
      .ended       (checked_ended),
      .writable    (checked_writable),
      .nonfinite   (checked_nonfinite),
      .ecn         (checked_ecn),
      .job         (checked_number),
      .index       (checked_job),
      .epoch       (checked_epoch),
      .rank        (checked_rank),
      .from_ports  (checked_ports),
      .from_port   (checked_port),
      .waits_for   (checked_member),
      .gone        (checked_evicted),
      .partial     (checked_partial)
  );

  wire up_checked_valid;  // the operation is a packet of the up port
  wire up_checked_sum;  // a final sum
  wire up_checked_marked;  // the same, for two cycles
  wire up_checked_nonfinite;  // its mark

  agg_up_commit #(
      .PORTS   (3),
      .JOBS    (2),
      .JOB_BITS(1),
      .FORMAT  (8'd1)
  ) u_up_commit (
      .clk          (clk),
      .rst          (rst),
      .link_down    (link_down),
      .valid        (granted_valid && granted_ports[3]),
      .request      (granted_request),
      .job_valid    (job_valid),
      .job_epoch    (job_epoch),
      .job_chunk    (job_chunk),
      .job_tree     (job_tree),
      .job_up_rank  (job_up_rank),
      .present      (present),
      .finished_port(finished_port),
      .tree_done    (tree_done),
      .checked      (up_checked_valid),
      .final_sum    (up_checked_sum),
      .marked       (up_checked_marked),
      .nonfinite    (up_checked_nonfinite),
      .judged       (up_judged),
      .taken        (taken),
      .job          (e_job),
      .finished     (finished),
      .port         (judged),
      .passes_on    (up_passes_on),
      .done         (up_done),
      .notice       (up_notice),
      .code         (up_code),
      .sum_taken    (up_taken),
      .refused      (up_refused),
      .dropped      (up_dropped)
  );

  agg_slots #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOB_BITS (1),
      .SLOT_BITS(2),
      .ROW_BITS (1)
  ) u_slots (
      .clk               (clk),
      .rst               (rst),
      .link_down         (link_down),
      .clear             (clear),
      .clear_slot        (clear_slot),
      .reduced           (reduced),
      .reduced_slot      (reduced_slot),
      .reduced_gen       (reduced_gen),
      .read              (read),
      .read_row          (read_row),
      .read_slot         (read_slot),
      .read_other        (read_other),
      .read_vid          (read_vid),
      .read_window       (read_window),
      .read_mask         (read_mask),
      .read_first        (read_first),
      .act               (checked_act),
      .refuse            (checked_refuse && !up_checked_valid),
      .data              (checked_data),
      .ask               (checked_ask),
      .finish            (checked_finish),
      .settle            (up_checked_sum),
      .code              (checked_code),
      .belongs           (checked_belongs),
      .of_data           (checked_of_data),
      .placed            (checked_placed),
      .ended             (checked_ended),
      .writable          (checked_writable),
      .nonfinite         (up_checked_marked ? up_checked_nonfinite : checked_nonfinite),
      .ecn               (checked_ecn),
      .number            (checked_number),
      .job               (checked_job),
      .epoch             (checked_epoch),
      .rank              (checked_rank),
      .ports             (checked_ports),
      .port              (checked_port),
      .member            (checked_member),
      .evicted           (checked_evicted),
      .partial           (checked_partial),
      .tree              (job_tree[checked_job]),
      .act_ok            (act_ok),
      .e_port            (e_port),
      .judged            (judged),
      .e_slot            (e_slot),
      .e_job             (e_job),
      .e_number          (e_number),
      .e_epoch           (e_epoch),
      .e_rank            (e_rank),
      .e_vid             (e_vid),
      .e_gen             (e_gen),
      .turn_over         (turn_over),
      .store             (store),
      .store_ce          (store_ce),
      .store_nonfinite   (store_nonfinite),
      .owe               (owe),
      .complete          (complete),
      .complete_ports    (complete_ports),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .taken             (taken),
      .again             (again),
      .timer_start       (timer_start),
      .timer_stop        (timer_stop),
      .acted             (acted),
      .overdue           (overdue),
      .evict             (evict),
      .notice            (notice),
      .notice_ports      (notice_ports),
      .notice_code       (notice_code),
      .notice_vid        (notice_vid),
      .asked             (asked),
      .answer            (answer),
      .answer_code       (answer_code),
      .answer_ports      (answer_ports),
      .finished          (finished),
      .refused           (refused),
      .refused_code      (refused_code),
      .refused_answer    (refused_answer),
      .verdict_valid     (verdict_valid),
      .verdict_port      (verdict_port),
      .verdict_slot      (verdict_slot),
      .verdict_vid       (verdict_vid),
      .verdict_result    (verdict_result),
      .verdict_code      (verdict_code)
  );

  wire [1:0] e_jobs;  // e_job, one hot

  assign e_jobs     = 2'd1 << e_job;
  assign e_rank_bit = 3'd1 << e_rank[1:0];

  agg_deadlines #(
      .JOBS     (2),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_deadlines (
      .clk         (clk),
      .rst         (rst),
      .flush       (flush),
      .job_deadline(job_deadline),
      .slot        (e_slot),
      .job         (e_job),
      .start       (timer_start),
      .stop        (timer_stop),
      .acted       (acted),
      .clear       (clear),
      .clear_slot  (clear_slot),
      .act_valid   (act_valid),
      .act_slot    (act_slot),
      .act_job     (act_job),
      .act_grant   (act_grant),
      .act_ok      (act_ok)
  );

  agg_port_ranks #(
      .PORTS    (3),
      .PORT_BITS(2),
      .STAGES   (1)
  ) u_named (
      .clk         (clk),
      .member      (member[3*e_job+:3]),
      .rank_of_port(rank_of_port[24*e_job+:24]),
      .ports       (answer_ports),
      .ranks       (answer_ranks)
  );

  agg_up_masks #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOB_BITS (1),
      .STAGES   (1)
  ) u_named_global (
      .clk       (clk),
      .wr_en     (global_write),
      .wr_job    (global_job),
      .wr_port   (global_port),
      .wr_ranks  (global_ranks),
      .job       (e_job),
      .ports     (answer_ports),
      .given     (up_notice),
      .given_mask(up_code == 8'd0 ? 64'd0 : up_mask),
      .mask      (answer_mask)
  );

  // -- Sum --
  wire [1:0] choice_slot;  // of the beat that is read next
  wire       begun;  // a slot's first beat was chosen
  wire [1:0] begun_slot;
  wire       begun_job;
  wire [1:0] beat_slot;  // of the beat at the slot memories' outputs
  wire [1:0] beat_index;
  wire       beat_gen;  // its slot's generation
  wire       beat_job;
  wire       beat_chunk_end;  // the beat is its chunk's last

  // The pick, and results on their way out: their slots do not begin
  wire       pick_valid;
  wire [1:0] pick_slot;
  wire       label_valid;
  wire [1:0] label_slot;
  wire       prep_valid;
  wire [1:0] prep_slot;
  wire       send_valid;
  wire [1:0] send_slot;
  wire       unused_beat_pass;
  wire       unused_stalled;  // undecided beats delay the read of a complete slot

  // No beat is read again: one pass decides every beat.
  agg_reader #(
      .JOBS        (2),
      .JOB_BITS    (1),
      .SLOT_BITS   (2),
      .INDEX_BITS  (2),
      .READ_LATENCY(2)
  ) u_reader (
      .clk          (clk),
      .rst          (rst),
      .flush        (flush),
      .job_last     (job_last),
      .drained      (drained),
      .complete     (complete),
      .complete_slot(e_slot),
      .complete_job (e_job),
      .reduced      (reduced),
      .reduced_job  (reduced_job),
      .pick_valid   (pick_valid),
      .pick_slot    (pick_slot),
      .picked_valid (label_valid),
      .picked_slot  (label_slot),
      .prep_valid   (prep_valid),
      .prep_slot    (prep_slot),
      .send_valid   (send_valid),
      .send_slot    (send_slot),
      .stop         (1'b0),
      .again_valid  (1'b0),
      .again_slot   (2'd0),
      .again_beat   (2'd0),
      .label_slot   (choice_slot),
      .begun        (begun),
      .begun_slot   (begun_slot),
      .begun_job    (begun_job),
      .rd_en        (rd_en),
      .rd_slot      (rd_slot),
      .rd_beat      (rd_beat),
      .beat_valid   (beat_strobe),
      .beat_slot    (beat_slot),
      .beat_index   (beat_index),
      .beat_pass    (unused_beat_pass),
      .beat_last    (beat_chunk_end),
      .stalled      (unused_stalled)
  );

  wire [63:0] sum;  // of all ports, lane by lane
  wire [ 1:0] sum_over;  // elements that overflowed
  wire        sum_next;  // a sum comes two cycles later
  wire [ 1:0] sum_slot;  // its slot
  wire [ 1:0] sum_beat;
  wire        sum_gen;
  wire        sum_job;
  wire        sum_chunk_end;

  genvar l;
  generate
    for (l = 0; l < 2; l = l + 1) begin : g_lane
      agg_lane u_lane (
          .clk (clk),
          .x_p0(gated[32*l+:32]),
          .x_p1(gated[64+32*l+:32]),
          .x_p2(gated[128+32*l+:32]),
          .x_p3(gated[192+32*l+:32]),
          .y   (sum[32*l+:32]),
          .over(sum_over[l])
      );
    end
  endgenerate

  // The tag leaves two cycles before its sum.
  agg_tag_delay #(
      .WIDTH (7),
      .CYCLES(28)
  ) u_sum_tag (
      .clk      (clk),
      .rst      (rst),
      .in_valid (beat_strobe),
      .in_tag   ({beat_slot, beat_index, beat_gen, beat_job, beat_chunk_end}),
      .out_valid(sum_next),
      .out_tag  ({sum_slot, sum_beat, sum_gen, sum_job, sum_chunk_end})
  );

  // -- Result cache --
  wire [  1:0] sum_nonfinite;  // elements that are a NaN or an infinity
  wire         cache_wr_en;  // the sum is in the next cycle
  wire [  1:0] cache_wr_slot;
  wire [  1:0] cache_wr_beat;
  wire [  1:0] cache_sum_slot;  // of the present sum
  wire         written;  // a sum was written in the last cycle
  wire         written_job;
  wire [ 31:0] written_vid;
  wire [  1:0] nonfinite;  // in the next cycle: its elements that are a NaN or an infinity
  wire [  1:0] overflow;  // and its elements that overflowed
  wire [  1:0] send_read_slot;
  wire [  1:0] send_beat;
  wire [  1:0] query_slot;  // is this beat in the cache?
  wire         query_gen;
  wire [  1:0] query_beat;
  wire [  1:0] after_slot;  // the beat after it
  wire         after_gen;
  wire [  1:0] after_beat;
  wire         query_after;  // ask about that instead
  wire         query_written;  // one cycle later: it is

  // The core's output, before its last register
  wire         out_tvalid;
  wire         out_tready;
  wire         out_tpayload;  // the beat has bytes
  wire         out_tlast;
  wire [239:0] out_tuser;
  wire [  3:0] out_tdest;

  agg_fp_nonfinite #(
      .LANES     (2),
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_nonfinite_sum (
      .beat     (sum),
      .nonfinite(sum_nonfinite)
  );

  agg_writer #(
      .LANES     (2),
      .JOB_BITS  (1),
      .SLOT_BITS (2),
      .INDEX_BITS(2),
      .COUNT_BITS(2),
      .PASSES    (0)
  ) u_writer (
      .clk          (clk),
      .rst          (rst),
      .clear        (clear),
      .clear_slot   (clear_slot),
      .next_valid   (sum_next),
      .next_again   (1'b0),
      .next_whole   (1'b1),
      .next_last    (sum_chunk_end),
      .next_slot    (sum_slot),
      .next_gen     (sum_gen),
      .next_job     (sum_job),
      .next_beat    (sum_beat),
      .sum_nonfinite(sum_nonfinite),
      .sum_over     (sum_over),
      .wr_en        (cache_wr_en),
      .wr_slot      (cache_wr_slot),
      .wr_beat      (cache_wr_beat),
      .reduces      (reduces),
      .reduced      (reduced),
      .reduced_slot (reduced_slot),
      .reduced_gen  (reduced_gen),
      .reduced_job  (reduced_job),
      .sum_slot     (cache_sum_slot),
      .written      (written),
      .written_job  (written_job),
      .nonfinite    (nonfinite),
      .overflow     (overflow),
      .query_slot   (query_slot),
      .query_gen    (query_gen),
      .query_beat   (query_beat),
      .after_slot   (after_slot),
      .after_gen    (after_gen),
      .after_beat   (after_beat),
      .query_after  (query_after),
      .query_written(query_written)
  );

  agg_cache #(
      .WIDTH    (64),
      .ADDR_BITS(4)
  ) u_cache (
      .clk    (clk),
      .wr_en  (cache_wr_en),
      .wr_addr({cache_wr_slot, cache_wr_beat}),
      .wr_data(sum),
      .rd_addr({send_read_slot, send_beat}),
      .hold   (out_tvalid && !out_tready),
      .shift  (out_tready),
      .blank  (!out_tpayload),
      .data   (m_axis_tdata)
  );

  // -- Labels --
  wire        begun_gen;  // of begun_slot

  // The label of label_slot, two cycles later
  wire [ 3:0] result_ports;  // that contributed
  wire [31:0] result_vid;
  wire [ 1:0] result_ecn;
  wire        result_nonfinite;
  wire        result_gen;
  wire [ 2:0] begun_vid;  // the lowest bits of its VID

  agg_labels #(
      .PORTS    (4),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_labels (
      .clk               (clk),
      .complete          (complete),
      .complete_slot     (e_slot),
      .complete_job      (e_job),
      .complete_ports    ({taken, complete_ports}),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .complete_gen      (e_gen),
      .rd_slot           (choice_slot),
      .begun             (begun),
      .begun_slot        (begun_slot),
      .begun_gen         (begun_gen),
      .begun_vid         (begun_vid),
      .beat_ports        (label_members),
      .beat_gen          (beat_gen),
      .beat_job          (beat_job),
      .wr_slot           (cache_sum_slot),
      .written_vid       (written_vid),
      .send_slot         (label_slot),
      .send_ports        (result_ports),
      .send_vid          (result_vid),
      .send_ecn          (result_ecn),
      .send_nonfinite    (result_nonfinite),
      .send_gen          (result_gen)
  );

  // -- Egress --
  wire       pick_job;  // of the result that is picked
  wire       decide;  // every second cycle: picks are made
  wire [3:0] ready;  // ports that can take a packet
  wire [3:0] starting;  // ports that were just given one: not ready yet
  wire [1:0] owe_nearly_full;

  assign slow = |owe_nearly_full;

  wire       pick_ready;  // picks a result now
  wire [3:0] pick_receivers;  // destination ports
  wire       pick_replay;

  // Results for the members; own sums are not owed to them
  wire       result_wants;
  wire       result_ready;
  wire       result_valid;
  wire [1:0] result_slot;
  wire [2:0] result_receivers_of;  // destination ports
  wire       result_replay;
  wire       begun_result;

  assign begun_result = begun && !(job_tree[begun_job] && begun_gen);

  wire begun_turn;  // alternates with the slot's chunks

  assign begun_turn = |(begun_vid & ({1'd0, slot_mask[2*begun_job+:2]} + 3'd1));

  wire e_turn;  // alternates with the slot's chunks

  assign e_turn = |(e_vid[2:0] & ({1'd0, slot_mask[2*e_job+:2]} + 3'd1));

  wire       result_job;

  // Each job's picks, job 0 in the lowest bits; slots relative to the job's first
  wire [1:0] owed_wants;
  wire [1:0] owed_ready;
  wire [1:0] owed_valid;
  wire [3:0] owed_slot;
  wire [5:0] owed_receivers;
  wire [1:0] owed_replay;
  wire [1:0] begun_jobs;  // begun_job, one hot

  assign begun_jobs = 2'd1 << begun_job;

  genvar j;
  generate
    for (j = 0; j < 2; j = j + 1) begin : g_owed
      agg_owed #(
          .PORTS    (3),
          .SLOT_BITS(2)
      ) u_owed (
          .clk            (clk),
          .rst            (rst),
          .flush          (flush[j]),
          .clear          (clear),
          .clear_slot     (clear_slot & slot_mask[2*j+:2]),
          .slot_mask      (slot_mask[2*j+:2]),
          .member         (present[3*j+:3]),
          .begun          (begun_result && begun_jobs[j]),
          .begun_slot     (begun_slot & slot_mask[2*j+:2]),
          .begun_gen      (begun_turn),
          .slot           (e_slot & slot_mask[2*j+:2]),
          .turn_over      (turn_over && e_jobs[j]),
          .gen            (e_turn),
          .owe            (owe && e_jobs[j]),
          .port           (judged),
          .owe_nearly_full(owe_nearly_full[j]),
          .decide         (decide),
          .ready          (ready[2:0]),
          .starting       (starting[2:0]),
          .pick_wants     (owed_wants[j]),
          .pick_ready     (owed_ready[j]),
          .pick_valid     (owed_valid[j]),
          .pick_slot      (owed_slot[2*j+:2]),
          .pick_receivers (owed_receivers[3*j+:3]),
          .pick_replay    (owed_replay[j])
      );
    end
  endgenerate

  agg_turns #(
      .PORTS    (3),
      .JOBS     (2),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_turns (
      .clk           (clk),
      .rst           (rst),
      .job_wants     (owed_wants),
      .job_ready     (owed_ready),
      .job_valid     (owed_valid),
      .job_slot      (owed_slot | slot_base),
      .job_receivers (owed_receivers),
      .job_replay    (owed_replay),
      .pick_ready    (result_ready),
      .pick_valid    (result_valid),
      .pick_job      (result_job),
      .pick_slot     (result_slot),
      .pick_receivers(result_receivers_of),
      .pick_replay   (result_replay)
  );

  assign result_wants = |owed_wants;

  // Own sums for the parent
  wire       up_pick_wants;
  wire       up_pick_ready;
  wire       up_pick_valid;
  wire [1:0] up_pick_slot;
  wire       up_pick_job;
  wire       sum_repeats;  // an own sum is owed again
  wire       pick_up;  // the pick is an own sum
  wire [1:0] turn_ready;

  agg_up_owed #(
      .JOBS     (2),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_up_owed (
      .clk         (clk),
      .rst         (rst),
      .flush       (flush),
      .job_window  (job_window),
      .slot_mask   (slot_mask),
      .slot_base   (slot_base),
      .job_first   (job_first),
      .job_repeat  (job_repeat),
      .clear       (clear),
      .clear_slot  (clear_slot),
      .enter       (begun && job_tree[begun_job] && begun_gen),
      .enter_slot  (begun_slot),
      .enter_job   (begun_job),
      .reduced     (reduced && job_tree[reduced_job] && !reduced_gen),
      .reduced_slot(reduced_slot),
      .turn_over   (turn_over),
      .again       (again),
      .taken       (taken),
      .slot        (e_slot),
      .job         (e_job),
      .vid         (e_vid),
      .repeats     (sum_repeats),
      .pick_wants  (up_pick_wants),
      .pick_ready  (up_pick_ready && ready[3]),
      .pick_valid  (up_pick_valid),
      .pick_slot   (up_pick_slot),
      .pick_job    (up_pick_job)
  );

  agg_turns #(
      .PORTS    (4),
      .JOBS     (2),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_up_turns (
      .clk           (clk),
      .rst           (rst),
      .job_wants     ({up_pick_wants && ready[3], result_wants}),
      .job_ready     (turn_ready),
      .job_valid     ({up_pick_valid, result_valid}),
      .job_slot      ({up_pick_slot, result_slot}),
      .job_receivers ({1'd1, 3'd0, 1'd0, result_receivers_of}),
      .job_replay    ({1'd0, result_replay}),
      .pick_ready    (pick_ready),
      .pick_valid    (pick_valid),
      .pick_job      (pick_up),
      .pick_slot     (pick_slot),
      .pick_receivers(pick_receivers),
      .pick_replay   (pick_replay)
  );

  assign up_pick_ready = turn_ready[1];
  assign result_ready  = turn_ready[0];
  assign pick_job      = pick_up ? up_pick_job : result_job;

  // The picked result; its ranks
  wire        label_job;
  wire [ 3:0] label_receivers;  // destination ports
  wire [63:0] result_mask;  // ranks in the sum
  wire [ 2:0] result_receivers;  // ranks that receive it

  agg_up_masks #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOB_BITS (1),
      .STAGES   (1)
  ) u_contributors (
      .clk       (clk),
      .wr_en     (global_write),
      .wr_job    (global_job),
      .wr_port   (global_port),
      .wr_ranks  (global_ranks),
      .job       (label_job),
      .ports     (result_ports[2:0]),
      .given     (job_tree[label_job]),
      .given_mask(job_tree_ranks[64*label_job+:64]),
      .mask      (result_mask)
  );

  wire [1:0] unused_up;  // no result goes to the up port

  assign unused_up = {starting[3], label_receivers[3]};

  agg_port_ranks #(
      .PORTS    (3),
      .PORT_BITS(2),
      .STAGES   (1)
  ) u_receivers (
      .clk         (clk),
      .member      (member[3*label_job+:3]),
      .rank_of_port(rank_of_port[24*label_job+:24]),
      .ports       (label_receivers[2:0]),
      .ranks       (result_receivers)
  );

  // Replies, with those that the parent causes
  wire        all_answer;
  wire        all_notice;
  wire [ 7:0] all_notice_code;
  wire [ 2:0] all_notice_ports;
  wire [31:0] all_notice_vid;

  assign all_answer       = answer && !up_passes_on;
  assign all_notice       = notice || up_notice;
  assign all_notice_code  = up_notice ? up_code : notice_code;
  assign all_notice_ports = up_notice ? present[3*e_job+:3] : notice_ports;
  assign all_notice_vid   = up_notice ? e_vid : notice_vid;

  // Replies, in the cycle of the ranks that they name
  wire        reply_valid;
  wire        reply_answer;
  wire        reply_refuse;
  wire        reply_notice;
  wire [ 7:0] reply_answer_code;
  wire [ 7:0] reply_refuse_code;
  wire [ 7:0] reply_notice_code;
  wire [ 1:0] reply_port;
  wire [ 7:0] reply_job;
  wire [15:0] reply_epoch;
  wire [ 7:0] reply_rank;
  wire [31:0] reply_vid;
  wire [ 2:0] reply_notice_ports;
  wire        reply_notice_job;
  wire [31:0] reply_notice_vid;

  agg_tag_delay #(
      .WIDTH (129),
      .CYCLES(1)
  ) u_replies (
      .clk(clk),
      .rst(rst),
      .in_valid(all_answer || refused_answer || all_notice),
      .in_tag({
        all_answer,
        refused_answer,
        all_notice,
        answer_code,
        refused_code,
        all_notice_code,
        e_port,
        e_number,
        e_epoch,
        e_rank,
        e_vid,
        all_notice_ports,
        e_job,
        all_notice_vid
      }),
      .out_valid(reply_valid),
      .out_tag({
        reply_answer,
        reply_refuse,
        reply_notice,
        reply_answer_code,
        reply_refuse_code,
        reply_notice_code,
        reply_port,
        reply_job,
        reply_epoch,
        reply_rank,
        reply_vid,
        reply_notice_ports,
        reply_notice_job,
        reply_notice_vid
      })
  );

  wire        member_status_wants;
  wire        member_status_ready;  // picks a status now
  wire        member_status_valid;  // the pick
  wire [ 2:0] member_status_ports;  // its port, one hot
  wire [ 7:0] member_status_job;
  wire [15:0] member_status_epoch;
  wire [ 7:0] member_status_rank;
  wire [ 7:0] member_status_code;
  wire [31:0] member_status_vid;
  wire [63:0] member_status_mask;

  agg_status #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOBS     (2),
      .JOB_BITS (1)
  ) u_status (
      .clk         (clk),
      .rst         (rst),
      .drop        (drop_statuses),
      .answer      (reply_valid && reply_answer),
      .answer_code (reply_answer_code),
      .answer_mask (answer_mask),
      .refuse      (reply_valid && reply_refuse),
      .refuse_code (reply_refuse_code),
      .port        (reply_port),
      .job         (reply_job),
      .epoch       (reply_epoch),
      .rank        (reply_rank),
      .vid         (reply_vid),
      .notice      (reply_valid && reply_notice),
      .notice_ports(reply_notice_ports),
      .notice_code (reply_notice_code),
      .notice_job  (reply_notice_job),
      .notice_epoch(job_epoch[16*reply_notice_job+:16]),
      .notice_vid  (reply_notice_vid),
      .notice_ranks(rank_of_port[24*reply_notice_job+:24]),
      .ready       (ready[2:0]),
      .pick_wants  (member_status_wants),
      .pick_ready  (member_status_ready),
      .pick_valid  (member_status_valid),
      .pick_ports  (member_status_ports),
      .pick_job    (member_status_job),
      .pick_epoch  (member_status_epoch),
      .pick_rank   (member_status_rank),
      .pick_code   (member_status_code),
      .pick_vid    (member_status_vid),
      .pick_mask   (member_status_mask)
  );

  wire        status_wants;
  wire        status_ready;  // picks a status now
  wire        status_valid;  // the pick
  wire [ 3:0] status_ports;  // its port, one hot
  wire [ 7:0] status_job;
  wire [15:0] status_epoch;
  wire [ 7:0] status_rank;
  wire [ 7:0] status_code;
  wire [31:0] status_vid;
  wire [63:0] status_mask;
  wire        finish_repeats;  // a finish is owed again

  agg_up_finish #(
      .PORTS   (4),
      .JOBS    (2),
      .JOB_BITS(1)
  ) u_up_finish (
      .clk         (clk),
      .rst         (rst),
      .flush       (flush),
      .job_repeat  (job_repeat),
      .job_epoch   (job_epoch),
      .job_up_rank (job_up_rank),
      .passes_on   (up_passes_on),
      .job         (e_job),
      .vid         (e_vid),
      .repeats     (finish_repeats),
      .status_wants(member_status_wants),
      .status_ready(member_status_ready),
      .status_valid(member_status_valid),
      .status_ports(member_status_ports),
      .status_job  (member_status_job),
      .status_epoch(member_status_epoch),
      .status_rank (member_status_rank),
      .status_code (member_status_code),
      .status_vid  (member_status_vid),
      .status_mask (member_status_mask),
      .up_ready    (ready[3]),
      .pick_wants  (status_wants),
      .pick_ready  (status_ready),
      .pick_valid  (status_valid),
      .pick_ports  (status_ports),
      .pick_job    (status_job),
      .pick_epoch  (status_epoch),
      .pick_rank   (status_rank),
      .pick_code   (status_code),
      .pick_vid    (status_vid),
      .pick_mask   (status_mask)
  );

  wire sends_result;
  wire sends_replay;
  wire sends_status;
  wire sends_up;

  agg_egress #(
      .PORTS        (4),
      .JOB_BITS     (1),
      .SLOT_BITS    (2),
      .INDEX_BITS   (2),
      .RANKS_LATENCY(1),
      .FORMAT       (8'd1)
  ) u_egress (
      .clk             (clk),
      .rst             (rst),
      .port_ready      (port_ready),
      .start           (port_start),
      .decide          (decide),
      .ready           (ready),
      .starting        (starting),
      .pick_ready      (pick_ready),
      .pick_valid      (pick_valid),
      .pick_job        (pick_job),
      .pick_slot       (pick_slot),
      .pick_receivers  (pick_receivers),
      .pick_replay     (pick_replay),
      .begun           (begun),
      .begun_slot      (begun_slot),
      .label_valid     (label_valid),
      .label_job       (label_job),
      .label_slot      (label_slot),
      .label_receivers (label_receivers),
      .job_last        (job_last[2*label_job+:2]),
      .job_number      ({7'd0, label_job}),
      .job_epoch       (job_epoch[16*label_job+:16]),
      .job_chunk       (job_chunk[16*label_job+:16]),
      .job_member      ({1'd0, member[3*label_job+:3]}),
      .job_up_rank     (job_up_rank[8*label_job+:8]),
      .result_ports    (result_ports),
      .result_vid      (result_vid),
      .result_ecn      (result_ecn),
      .result_nonfinite(result_nonfinite),
      .result_gen      (result_gen),
      .result_mask     (result_mask),
      .result_receivers({1'd0, result_receivers}),
      .status_wants    (status_wants),
      .status_ready    (status_ready),
      .status_valid    (status_valid),
      .status_ports    (status_ports),
      .status_job      (status_job),
      .status_epoch    (status_epoch),
      .status_rank     (status_rank),
      .status_code     (status_code),
      .status_vid      (status_vid),
      .status_mask     (status_mask),
      .prep_valid      (prep_valid),
      .prep_slot       (prep_slot),
      .send_valid      (send_valid),
      .send_slot       (send_slot),
      .clear           (clear),
      .clear_slot      (clear_slot),
      .query_slot      (query_slot),
      .query_gen       (query_gen),
      .query_beat      (query_beat),
      .after_slot      (after_slot),
      .after_gen       (after_gen),
      .after_beat      (after_beat),
      .query_after     (query_after),
      .query_written   (query_written),
      .sends_result    (sends_result),
      .sends_replay    (sends_replay),
      .sends_status    (sends_status),
      .sends_up        (sends_up),
      .rd_slot         (send_read_slot),
      .rd_beat         (send_beat),
      .m_axis_tpayload (out_tpayload),
      .m_axis_tvalid   (out_tvalid),
      .m_axis_tready   (out_tready),
      .m_axis_tlast    (out_tlast),
      .m_axis_tuser    (out_tuser),
      .m_axis_tdest    (out_tdest)
  );

  wire m_axis_tpayload;

  agg_stage #(
      .WIDTH(242),
      .PORTS(4)
  ) u_output (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tvalid(out_tvalid),
      .s_axis_tready(out_tready),
      .s_axis_tuser ({out_tpayload, out_tlast, out_tuser}),
      .s_axis_tdest (out_tdest),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tuser ({m_axis_tpayload, m_axis_tlast, m_axis_tuser}),
      .m_axis_tdest (m_axis_tdest)
  );

  assign m_axis_tkeep = {8{m_axis_tpayload}};

  // -- Registers --
  wire         lag_job;
  wire [  1:0] lag_rank;
  wire [  3:0] lag_bucket;
  wire [ 31:0] lag_value;
  wire [  5:0] counter_index;
  wire [ 31:0] counter_value;
  wire [ 63:0] nonfinite_in;
  wire [ 63:0] nonfinite_out;
  wire [ 63:0] overflows;
  wire [127:0] first_in;
  wire [127:0] first_out;
  wire [127:0] first_overflow;
  wire         bank_valid;
  wire         bank_ready;
  wire         bank_write;
  wire [ 31:0] bank_addr;
  wire [ 63:0] bank_wdata;
  wire         bank_partial;
  wire         bank_stranger;
  wire         bank_answer_valid;
  wire         bank_answer_ready;
  wire [  7:0] bank_answer_code;
  wire [ 63:0] bank_answer_value;
  wire         up_code_valid;  // a write was answered here
  wire [  7:0] up_reg_code;

  agg_up_registers #(
      .PORTS    (3),
      .PORT_BITS(2),
      .JOBS     (2),
      .JOB_BITS (1)
  ) u_up_registers (
      .clk           (clk),
      .rst           (rst),
      .link_down     (link_down),
      .s_reg_valid   (s_reg_valid),
      .s_reg_ready   (s_reg_ready),
      .s_reg_write   (s_reg_write),
      .s_reg_addr    (s_reg_addr),
      .s_reg_wdata   (s_reg_wdata),
      .s_reg_partial (s_reg_partial),
      .s_reg_stranger(s_reg_stranger),
      .m_reg_valid   (m_reg_valid),
      .m_reg_ready   (m_reg_ready),
      .m_reg_code    (m_reg_code),
      .m_reg_value   (m_reg_value),
      .core_valid    (bank_valid),
      .core_ready    (bank_ready),
      .core_write    (bank_write),
      .core_addr     (bank_addr),
      .core_wdata    (bank_wdata),
      .core_partial  (bank_partial),
      .core_stranger (bank_stranger),
      .answer_valid  (bank_answer_valid),
      .answer_ready  (bank_answer_ready),
      .answer_code   (bank_answer_code),
      .answer_value  (bank_answer_value),
      .m_code_valid  (up_code_valid),
      .m_code        (up_reg_code),
      .owned         (owned),
      .clear_counters(clear_counters),
      .parent        (staged_parent),
      .repeats       (staged_repeat),
      .tree          (staged_tree),
      .clear_staged  (up_clear_staged),
      .ranks_write   (ranks_write),
      .ranks_port    (ranks_port),
      .ranks_wdata   (ranks_wdata),
      .ranks_of_job  (ranks_of_job),
      .ranks_job     (ranks_job),
      .ranks_value   (ranks_value),
      .job_up        (job_up),
      .job_tree_ranks(job_tree_ranks),
      .job_refusal   (job_refusal),
      .up_sent       (sends_up),
      .repeats_sum   (sum_repeats),
      .repeats_finish(finish_repeats),
      .up_taken      (up_taken),
      .up_dropped    (up_dropped),
      .up_refused    (up_refused)
  );

  agg_registers #(
      .CONFIG_HASH(64'hfd5c32008e9576b3),
      .LANES      (64'd2),
      .PORTS      (64'd3),
      .FORMAT     (64'h101),
      .SUM        (64'd1),
      .SHELL      (64'd256),
      .CHUNK      (64'd8),
      .WINDOW     (64'd2),
      .JOBS       (64'd2),
      .LINK       (64'd0),
      .LATENCY    (64'd43),
      .JOB_BITS   (1),
      .RANK_BITS  (2)
  ) u_registers (
      .clk           (clk),
      .rst           (rst),
      .link_down     (link_down),
      .s_reg_valid   (bank_valid),
      .s_reg_ready   (bank_ready),
      .s_reg_write   (bank_write),
      .s_reg_addr    (bank_addr),
      .s_reg_wdata   (bank_wdata),
      .s_reg_partial (bank_partial),
      .s_reg_stranger(bank_stranger),
      .m_reg_valid   (bank_answer_valid),
      .m_reg_ready   (bank_answer_ready),
      .m_reg_code    (bank_answer_code),
      .m_reg_value   (bank_answer_value),
      .s_code_valid  (s_code_valid || up_code_valid),
      .s_code        (s_code_valid ? s_code : up_reg_code),
      .clear_staged  (clear_staged),
      .owned         (owned),
      .op_valid      (asks_op),
      .op_commit     (op_commit),
      .op_abort      (op_abort),
      .op_job        (op_job),
      .op_epoch      (op_epoch),
      .op_first      (op_first),
      .op_ports      (op_ports),
      .op_chunk      (op_chunk),
      .op_window     (op_window),
      .op_deadline   (op_deadline),
      .op_done       (op_done),
      .op_code       (op_code),
      .job_valid     (job_valid),
      .job_ever      (job_ever),
      .job_epoch     (job_epoch),
      .job_finished  ({{61'd0, job_finished[5:3]}, {61'd0, job_finished[2:0]}}),
      .job_members   ({{61'd0, member[5:3]}, {61'd0, member[2:0]}}),
      .job_evicted   ({{61'd0, job_evicted[5:3]}, {61'd0, job_evicted[2:0]}}),
      .job_base      ({{14'd0, slot_base[3:2]}, {14'd0, slot_base[1:0]}}),
      .job_slots     ({16'd1 + {14'd0, slot_mask[3:2]}, 16'd1 + {14'd0, slot_mask[1:0]}}),
      .nonfinite_in  (nonfinite_in),
      .nonfinite_out (nonfinite_out),
      .overflows     (overflows),
      .first_in      (first_in),
      .first_out     (first_out),
      .first_overflow(first_overflow),
      .lag_job       (lag_job),
      .lag_rank      (lag_rank),
      .lag_bucket    (lag_bucket),
      .lag_value     (lag_value),
      .counter_index (counter_index),
      .counter_value (counter_value),
      .clear_counters(clear_counters)
  );

  wire [1:0] written_jobs;  // written_job, one hot

  assign written_jobs = 2'd1 << written_job;

  generate
    for (j = 0; j < 2; j = j + 1) begin : g_counts
      agg_job_counts #(
          .COUNT_BITS(2)
      ) u_job_counts (
          .clk             (clk),
          .rst             (rst),
          .clear           (sets_up[j]),
          .stored_nonfinite(store_nonfinite && e_jobs[j]),
          .vid             (e_vid),
          .rank            (e_rank),
          .wr_en           (written && written_jobs[j]),
          .wr_vid          (written_vid),
          .nonfinite       (nonfinite),
          .overflow        (overflow),
          .nonfinite_in    (nonfinite_in[32*j+:32]),
          .nonfinite_out   (nonfinite_out[32*j+:32]),
          .overflows       (overflows[32*j+:32]),
          .first_in        (first_in[64*j+:64]),
          .first_out       (first_out[64*j+:64]),
          .first_overflow  (first_overflow[64*j+:64])
      );
    end
  endgenerate

  agg_lags #(
      .RANK_BITS(2),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_lags (
      .clk      (clk),
      .rst      (rst),
      .clear    (|sets_up),
      .clear_job(sets_up_job),
      .ready    (cleared),
      .store    (store),
      .turn_over(turn_over),
      .slot     (e_slot),
      .job      (e_job),
      .rank     (e_rank[1:0]),
      .rd_job   (lag_job),
      .rd_rank  (lag_rank),
      .rd_bucket(lag_bucket),
      .value    (lag_value)
  );

  agg_counters #(
      .COUNT_BITS(2)
  ) u_counters (
      .clk              (clk),
      .rst              (rst),
      .clear            (clear_counters),
      .stored           (store),
      .stored_ce        (store_ce),
      .stored_nonfinite (store_nonfinite),
      .asked            (asked),
      .finished         (finished),
      .chunk            (reduced),
      .beat             (beat_strobe),
      .result           (sends_result),
      .replay           (sends_replay),
      .status           (sends_status),
      .nonfinite_out    (nonfinite),
      .overflow         (overflow),
      .overdue          (overdue),
      .partial          (complete && |(member[3*e_job+:3] & ~complete_ports)),
      .evicts           (|evict),
      .undecided        (1'b0),
      .stalled          (1'b0),
      .link_down        (link_down),
      .refused          (refused),
      .refused_code     (refused_code),
      .shell_frames     (shell_frames),
      .shell_hunted     (shell_hunted),
      .shell_header_crc (shell_header_crc),
      .shell_bad_version(shell_bad_version),
      .shell_bad_kind   (shell_bad_kind),
      .shell_bad_length (shell_bad_length),
      .index            (counter_index),
      .value            (counter_value)
  );

endmodule

`default_nettype wire
