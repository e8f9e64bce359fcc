// Made by: hwgen -lanes 2 -workers 2 -format fp32 -result fp32 -sum tree -chunk 64 -window 2
//      -jobs 1 -shell roce -link 64 -ethernet 1 -mac 02:54:52:42:00:01 -ip 192.168.84.66
//      -udp-port 21570

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
// Latency from a chunk's last beat to its result's first: 29 cycles, 14 of them in the
// lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets
// wait for the commit. Not done here: framing and CRC, which the shell does.

`default_nettype none

module agg_core (
    input wire clk,
    input wire rst,

    // The host's link; work that the last host left behind
    input  wire link_down,
    output wire hold,
    output wire unjudged,

    // In, for each port
    input  wire [127:0] s_axis_tdata,
    input  wire [ 15:0] s_axis_tkeep,
    input  wire [  1:0] s_axis_tvalid,
    output wire [  1:0] s_axis_tready,
    input  wire [  1:0] s_axis_tlast,
    input  wire [225:0] s_axis_tuser,

    // Out, for all ports
    output wire [ 63:0] m_axis_tdata,
    output wire [  7:0] m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [239:0] m_axis_tuser,
    output wire [  1:0] m_axis_tdest,

    // The slot of a result; undefined with a status
    output wire [1:0] m_axis_tslot,

    // A result was picked for a port that misses the one before
    output wire released_early,

    // Ports with room for a whole packet
    input wire [1:0] port_ready,

    // Ports for which a packet starts: its beats come later
    output wire [1:0] port_start,

    // The members and their ranks
    output wire [ 1:0] member,
    output wire [15:0] rank_of_port,

    // Jobs, for what checks packets of connections
    output wire        job_on,
    output wire [15:0] job_epochs,

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
    input  wire [ 1:0] members_whole,
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
    output wire        verdict_port,
    output wire [ 1:0] verdict_slot,
    output wire [31:0] verdict_vid,
    output wire [ 2:0] verdict_result,
    output wire [ 7:0] verdict_code,

    // A beat enters the lanes
    output wire beat_strobe
);
  // -- Events, for one cycle each --
  // A packet, or an overdue slot, was judged (agg_slots)
  wire [ 1:0] judged;  // a packet: its port, one hot
  wire        e_port;  // its port
  wire [ 1:0] e_slot;  // its slot, or the overdue one
  wire        e_job;
  wire [ 7:0] e_number;  // the packet's job, as in its header
  wire [15:0] e_epoch;
  wire [ 7:0] e_rank;
  wire [ 1:0] e_rank_bit;  // the rank, one hot
  wire [31:0] e_vid;
  wire        e_gen;  // the slot's generation
  wire        turn_over;  // the slot advances to a new VID
  wire        store;  // the payload is stored
  wire        store_ce;  // it is marked CE
  wire        store_nonfinite;  // it has a NaN or an infinity
  wire        owe;  // the sender is owed the result
  wire        complete;  // the slot closes, and is summed
  wire [ 1:0] complete_ports;  // ports in the sum
  wire [31:0] complete_vid;
  wire [ 1:0] complete_ecn;
  wire        complete_nonfinite;
  wire        timer_start;  // the slot's deadline starts
  wire        timer_stop;  // the slot has no deadline
  wire        acted;  // the overdue slot's deadline starts again
  wire        overdue;  // it still waits
  wire [ 1:0] evict;  // ports to evict
  wire        notice;  // the members get a notice
  wire [ 1:0] notice_ports;
  wire [ 7:0] notice_code;
  wire [31:0] notice_vid;
  wire        asked;  // an ask is accepted
  wire        finished;  // a finish is accepted
  wire        answer;  // a status answers the ask or finish
  wire [ 7:0] answer_code;
  wire [ 1:0] answer_ports;  // that it names, or that were evicted
  wire [ 1:0] answer_mask;  // their ranks, 1 cycle later
  wire        refused;  // the packet is refused
  wire [ 7:0] refused_code;
  wire        refused_answer;  // a status may answer it

  // A slot was summed (agg_writer)
  wire        reduces;  // in the next cycle: reduced
  wire        reduced;
  wire [ 1:0] reduced_slot;
  wire        reduced_gen;  // its generation
  wire        reduced_job;

  // -- Jobs --
  wire        flush;  // the job ends
  wire        hold_commits;  // nothing is picked for the commit
  wire        idle;  // and nothing is being judged
  wire        clear;  // empties a slot
  wire [ 1:0] clear_slot;
  wire        drop_statuses;
  wire        drained;  // no slot of the job is being reduced
  wire        sets_up;  // the job is being set up
  wire        sets_up_job;  // the job's number
  wire        cleared;  // the job's old counts are cleared
  wire        job_valid;  // set up
  wire        job_complete;  // the last one ended because all ranks finished
  wire        job_ever;  // the job has had an epoch
  wire [15:0] job_epoch;
  wire [15:0] job_chunk;  // elements
  wire [ 4:0] job_last;  // number of a chunk's last beat
  wire [ 1:0] job_window;  // chunks
  wire [ 1:0] slot_mask;  // twice the window, minus 1
  wire [ 1:0] slot_base;  // the first slot
  wire [31:0] job_first;  // first VID
  wire [31:0] job_deadline;  // cycles; 0: no deadline
  wire        job_partial;  // partial sums are enabled
  wire [ 1:0] job_finished;  // finished ranks
  wire [ 1:0] job_evicted;  // evicted ranks
  wire [ 1:0] evicted;  // evicted ports
  wire [ 1:0] present;  // member ports that are not evicted
  wire        op_valid;
  wire        op_commit;
  wire        op_abort;
  wire [ 7:0] op_job;
  wire [15:0] op_epoch;
  wire [31:0] op_first;
  wire [63:0] op_ports;
  wire [63:0] op_chunk;
  wire [63:0] op_window;
  wire [63:0] op_deadline;
  wire        op_done;
  wire [ 7:0] op_code;

  agg_jobs #(
      .PORTS     (2),
      .PORT_BITS (1),
      .JOBS      (1),
      .JOB_BITS  (1),
      .CHUNK     (64),
      .WINDOW    (2),
      .SLOT_BITS (2),
      .INDEX_BITS(5),
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
      .op_done      (op_done),
      .op_code      (op_code),
      .finish       (finished),
      .finish_job   (e_job),
      .finish_bit   (e_rank_bit),
      .finish_ports (judged),
      .evict        (evict),
      .evict_job    (e_job),
      .evict_ranks  (answer_mask),
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
  wire [  1:0] req_valid;  // ports that request a commit
  wire [  1:0] req_grant;  // the port's request is taken
  wire [205:0] requests;
  wire         rd_en;  // reads all slot memories
  wire [  1:0] rd_slot;
  wire [  4:0] rd_beat;
  wire [  1:0] beat_members;  // ports in the sum of the beat at the memories' outputs
  wire [127:0] gated;  // the lanes' operands

  genvar p;
  generate
    for (p = 0; p < 2; p = p + 1) begin : g_port
      wire [ 1:0] s_nonfinite;  // elements that are a NaN or an infinity
      wire        wr_en;
      wire [ 1:0] wr_slot;
      wire [ 4:0] wr_beat;
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
          .JOBS      (1),
          .JOB_BITS  (1),
          .SLOT_BITS (2),
          .INDEX_BITS(5)
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
          .s_axis_tuser (s_axis_tuser[113*p+:113]),
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
          .judged       (judged[p]),
          .judged_stored(store),
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
          .ADDR_BITS(7),
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
  wire [  1:0] granted_ports;  // the packet's port, one hot
  wire         granted_port;
  wire [102:0] granted_request;
  wire [  1:0] granted_slot;  // the overdue slot
  wire         granted_job;  // its job

  agg_arbiter #(
      .PORTS    (2),
      .PORT_BITS(1),
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
  wire [ 1:0] checked_ports;  // the packet's port, one hot
  wire        checked_port;
  wire [ 1:0] checked_member;  // ports that the job waits for
  wire [ 1:0] checked_evicted;
  wire        checked_partial;

  agg_commit #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(2),
      .ROW_BITS (1),
      .FORMAT   (8'd1)
  ) u_commit (
      .clk         (clk),
      .rst         (rst),
      .valid       (granted_valid),
      .ports       (granted_ports),
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

  agg_slots #(
      .PORTS    (2),
      .PORT_BITS(1),
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
      .refuse            (checked_refuse),
      .data              (checked_data),
      .ask               (checked_ask),
      .finish            (checked_finish),
      .code              (checked_code),
      .belongs           (checked_belongs),
      .of_data           (checked_of_data),
      .placed            (checked_placed),
      .ended             (checked_ended),
      .writable          (checked_writable),
      .nonfinite         (checked_nonfinite),
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

  assign e_rank_bit = 2'd1 << e_rank[0];

  agg_deadlines #(
      .JOBS     (1),
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
      .PORTS    (2),
      .PORT_BITS(1),
      .STAGES   (1)
  ) u_named (
      .clk         (clk),
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (answer_ports),
      .ranks       (answer_mask)
  );

  // -- Sum --
  wire [1:0] choice_slot;  // of the beat that is read next
  wire       begun;  // a slot's first beat was chosen
  wire [1:0] begun_slot;
  wire       unused_begun_job;
  wire [1:0] beat_slot;  // of the beat at the slot memories' outputs
  wire [4:0] beat_index;
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
      .JOBS        (1),
      .JOB_BITS    (1),
      .SLOT_BITS   (2),
      .INDEX_BITS  (5),
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
      .again_beat   (5'd0),
      .label_slot   (choice_slot),
      .begun        (begun),
      .begun_slot   (begun_slot),
      .begun_job    (unused_begun_job),
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
  wire [ 4:0] sum_beat;
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
          .y   (sum[32*l+:32]),
          .over(sum_over[l])
      );
    end
  endgenerate

  // The tag leaves two cycles before its sum.
  agg_tag_delay #(
      .WIDTH (10),
      .CYCLES(14)
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
  wire [  4:0] cache_wr_beat;
  wire [  1:0] cache_sum_slot;  // of the present sum
  wire         written;  // a sum was written in the last cycle
  wire         unused_written_job;
  wire [ 31:0] written_vid;
  wire [  1:0] nonfinite;  // in the next cycle: its elements that are a NaN or an infinity
  wire [  1:0] overflow;  // and its elements that overflowed
  wire [  1:0] send_read_slot;
  wire [  4:0] send_beat;
  wire [  1:0] query_slot;  // is this beat in the cache?
  wire         query_gen;
  wire [  4:0] query_beat;
  wire [  1:0] after_slot;  // the beat after it
  wire         after_gen;
  wire [  4:0] after_beat;
  wire         query_after;  // ask about that instead
  wire         query_written;  // one cycle later: it is

  // The core's output, before its last register
  wire         out_tvalid;
  wire         out_tready;
  wire         out_tpayload;  // the beat has bytes
  wire         out_tlast;
  wire [239:0] out_tuser;
  wire [  1:0] out_tdest;

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
      .INDEX_BITS(5),
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
      .written_job  (unused_written_job),
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
      .ADDR_BITS(7)
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
  wire [ 1:0] result_ports;  // that contributed
  wire [31:0] result_vid;
  wire [ 1:0] result_ecn;
  wire        result_nonfinite;
  wire        result_gen;

  agg_labels #(
      .PORTS    (2),
      .JOB_BITS (1),
      .SLOT_BITS(2)
  ) u_labels (
      .clk               (clk),
      .complete          (complete),
      .complete_slot     (e_slot),
      .complete_job      (e_job),
      .complete_ports    (complete_ports),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .complete_gen      (e_gen),
      .rd_slot           (choice_slot),
      .begun             (begun),
      .begun_slot        (begun_slot),
      .begun_gen         (begun_gen),
      .beat_ports        (beat_members),
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
  wire [1:0] ready;  // ports that can take a packet
  wire [1:0] starting;  // ports that were just given one: not ready yet

  assign slow = 1'b0;

  wire       pick_ready;  // picks a result now
  wire [1:0] pick_receivers;  // destination ports
  wire       pick_replay;
  wire       unused_pick_wants;

  agg_release #(
      .PORTS    (2),
      .PORT_BITS(1),
      .SLOT_BITS(2)
  ) u_release (
      .clk           (clk),
      .rst           (rst),
      .flush         (flush),
      .clear         (clear),
      .clear_slot    (clear_slot),
      .slot_mask     (slot_mask),
      .member        (present),
      .begun         (begun),
      .begun_slot    (begun_slot),
      .begun_gen     (begun_gen),
      .slot          (e_slot),
      .gen           (e_gen),
      .turn_over     (turn_over),
      .store         (store),
      .store_ports   (complete_ports),
      .owe           (owe),
      .port          (judged),
      .port_index    (e_port),
      .decide        (decide),
      .ready         (ready),
      .starting      (starting),
      .pick_wants    (unused_pick_wants),
      .pick_ready    (pick_ready),
      .pick_valid    (pick_valid),
      .pick_slot     (pick_slot),
      .pick_receivers(pick_receivers),
      .pick_replay   (pick_replay),
      .released_early(released_early)
  );

  assign pick_job = 1'd0;

  // The picked result; its ranks
  wire       label_job;
  wire [1:0] label_receivers;  // destination ports
  wire [1:0] result_mask;  // ranks in the sum
  wire [1:0] result_receivers;  // ranks that receive it

  agg_port_ranks #(
      .PORTS    (2),
      .PORT_BITS(1),
      .STAGES   (1)
  ) u_contributors (
      .clk         (clk),
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (result_ports),
      .ranks       (result_mask)
  );

  agg_port_ranks #(
      .PORTS    (2),
      .PORT_BITS(1),
      .STAGES   (1)
  ) u_receivers (
      .clk         (clk),
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (label_receivers),
      .ranks       (result_receivers)
  );

  // Replies, in the cycle of the ranks that they name
  wire        reply_valid;
  wire        reply_answer;
  wire        reply_refuse;
  wire        reply_notice;
  wire [ 7:0] reply_answer_code;
  wire [ 7:0] reply_refuse_code;
  wire [ 7:0] reply_notice_code;
  wire        reply_port;
  wire [ 7:0] reply_job;
  wire [15:0] reply_epoch;
  wire [ 7:0] reply_rank;
  wire [31:0] reply_vid;
  wire [ 1:0] reply_notice_ports;
  wire        reply_notice_job;
  wire [31:0] reply_notice_vid;

  agg_tag_delay #(
      .WIDTH (127),
      .CYCLES(1)
  ) u_replies (
      .clk(clk),
      .rst(rst),
      .in_valid(answer || refused_answer || notice),
      .in_tag({
        answer,
        refused_answer,
        notice,
        answer_code,
        refused_code,
        notice_code,
        e_port,
        e_number,
        e_epoch,
        e_rank,
        e_vid,
        notice_ports,
        e_job,
        notice_vid
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

  wire        status_wants;
  wire        status_ready;  // picks a status now
  wire        status_valid;  // the pick
  wire [ 1:0] status_ports;  // its port, one hot
  wire [ 7:0] status_job;
  wire [15:0] status_epoch;
  wire [ 7:0] status_rank;
  wire [ 7:0] status_code;
  wire [31:0] status_vid;
  wire [ 1:0] status_mask;
  wire        unused_status_wants;  // no status leaves

  assign status_wants = 1'b0;

  agg_status #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (1),
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
      .notice_epoch(job_epoch),
      .notice_vid  (reply_notice_vid),
      .notice_ranks(rank_of_port),
      .ready       (ready),
      .pick_wants  (unused_status_wants),
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

  agg_egress #(
      .PORTS        (2),
      .JOB_BITS     (1),
      .SLOT_BITS    (2),
      .INDEX_BITS   (5),
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
      .job_last        (job_last),
      .job_number      ({7'd0, label_job}),
      .job_epoch       (job_epoch),
      .job_chunk       (job_chunk),
      .job_member      (member),
      .result_ports    (result_ports),
      .result_vid      (result_vid),
      .result_ecn      (result_ecn),
      .result_nonfinite(result_nonfinite),
      .result_gen      (result_gen),
      .result_mask     (result_mask),
      .result_receivers(result_receivers),
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
      .rd_slot         (send_read_slot),
      .rd_beat         (send_beat),
      .m_axis_tpayload (out_tpayload),
      .m_axis_tvalid   (out_tvalid),
      .m_axis_tready   (out_tready),
      .m_axis_tlast    (out_tlast),
      .m_axis_tuser    (out_tuser),
      .m_axis_tdest    (out_tdest)
  );

  wire       m_axis_tpayload;
  wire [1:0] out_tslot;  // of the result
  wire [2:0] unused_slot_stage;  // its slot follows the beats that are read, valid or not

  agg_stage #(
      .WIDTH(2),
      .PORTS(1)
  ) u_slot (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tvalid(1'b1),
      .s_axis_tready(unused_slot_stage[0]),
      .s_axis_tuser (send_read_slot),
      .s_axis_tdest (1'd0),
      .m_axis_tvalid(unused_slot_stage[1]),
      .m_axis_tready(!out_tvalid || out_tready),
      .m_axis_tuser (out_tslot),
      .m_axis_tdest (unused_slot_stage[2])
  );

  agg_stage #(
      .WIDTH(244),
      .PORTS(2)
  ) u_output (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tvalid(out_tvalid),
      .s_axis_tready(out_tready),
      .s_axis_tuser ({out_tpayload, out_tlast, out_tuser, out_tslot}),
      .s_axis_tdest (out_tdest),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tuser ({m_axis_tpayload, m_axis_tlast, m_axis_tuser, m_axis_tslot}),
      .m_axis_tdest (m_axis_tdest)
  );

  assign m_axis_tkeep = {8{m_axis_tpayload}};

  // -- Registers --
  wire        lag_job;
  wire        lag_rank;
  wire [ 3:0] lag_bucket;
  wire [31:0] lag_value;
  wire [ 5:0] counter_index;
  wire [31:0] counter_value;
  wire [31:0] nonfinite_in;
  wire [31:0] nonfinite_out;
  wire [31:0] overflows;
  wire [63:0] first_in;
  wire [63:0] first_out;
  wire [63:0] first_overflow;

  agg_registers #(
      .CONFIG_HASH(64'ha68600b69fc72e23),
      .LANES      (64'd2),
      .PORTS      (64'd2),
      .FORMAT     (64'h101),
      .SUM        (64'd1),
      .SHELL      (64'd3),
      .CHUNK      (64'd64),
      .WINDOW     (64'd2),
      .JOBS       (64'd1),
      .LINK       (64'd64),
      .LATENCY    (64'd29),
      .JOB_BITS   (1),
      .RANK_BITS  (1)
  ) u_registers (
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
      .s_code_valid  (s_code_valid),
      .s_code        (s_code),
      .clear_staged  (clear_staged),
      .owned         (owned),
      .op_valid      (op_valid),
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
      .job_finished  ({62'd0, job_finished}),
      .job_members   ({62'd0, member}),
      .job_evicted   ({62'd0, job_evicted}),
      .job_base      ({14'd0, slot_base}),
      .job_slots     (16'd1 + {14'd0, slot_mask}),
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

  agg_job_counts #(
      .COUNT_BITS(2)
  ) u_job_counts (
      .clk             (clk),
      .rst             (rst),
      .clear           (sets_up),
      .stored_nonfinite(store_nonfinite),
      .vid             (e_vid),
      .rank            (e_rank),
      .wr_en           (written),
      .wr_vid          (written_vid),
      .nonfinite       (nonfinite),
      .overflow        (overflow),
      .nonfinite_in    (nonfinite_in),
      .nonfinite_out   (nonfinite_out),
      .overflows       (overflows),
      .first_in        (first_in),
      .first_out       (first_out),
      .first_overflow  (first_overflow)
  );

  agg_lags #(
      .RANK_BITS(1),
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
      .rank     (e_rank[0]),
      .rd_job   (lag_job),
      .rd_rank  (lag_rank),
      .rd_bucket(lag_bucket),
      .value    (lag_value)
  );

  agg_counters #(
      .COUNT_BITS(2),
      .EVENT_BITS(1),
      .LINK      (0)
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
      .partial          (complete && |(member & ~complete_ports)),
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

  assign job_on     = job_valid;
  assign job_epochs = job_epoch;

endmodule

`default_nettype wire
