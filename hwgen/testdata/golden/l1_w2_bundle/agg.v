// Made by: hwgen -lanes 1 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 4 -jobs 1
//      -shell stream -link 8 -prefix left -bundle

// The adder tree of one lane: y is the sum of x_p0..x_p1, 14 cycles later; a new sum
// every cycle. It adds neighbours pairwise, level by level; an unpaired operand passes unchanged.
// over is high if y is an infinity or a NaN, but every operand is finite.
// The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
// and drives -0 for an absent worker.

`default_nettype none

module left_lane (
    input  wire        clk,
    input  wire [31:0] x_p0,
    input  wire [31:0] x_p1,
    output wire [31:0] y,
    output wire        over
);
  // Level 0: 2 to 1, valid 14 cycles after the inputs.
  // workers 0, 1
  left_fp_add #(
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_l0_n0 (
      .clk(clk),
      .a  (x_p0),
      .b  (x_p1),
      .y  (y)
  );

  left_fp_over #(
      .OPERANDS  (2),
      .LATENCY   (14),
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_over (
      .clk (clk),
      .x   ({x_p1, x_p0}),
      .y   (y),
      .over(over)
  );

endmodule

`default_nettype wire

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

module left_core (
    input wire clk,
    input wire rst,

    // The host's link; work that the last host left behind
    input  wire link_down,
    output wire hold,
    output wire unjudged,

    // In, for each port
    input  wire [ 63:0] s_axis_tdata,
    input  wire [  7:0] s_axis_tkeep,
    input  wire [  1:0] s_axis_tvalid,
    output wire [  1:0] s_axis_tready,
    input  wire [  1:0] s_axis_tlast,
    input  wire [225:0] s_axis_tuser,

    // Out, for all ports
    output wire [ 31:0] m_axis_tdata,
    output wire [  3:0] m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [239:0] m_axis_tuser,
    output wire [  1:0] m_axis_tdest,

    // Ports with room for a whole packet
    input wire [1:0] port_ready,

    // Ports for which a packet starts: its beats come later
    output wire [1:0] port_start,

    // The members and their ranks
    output wire [ 1:0] member,
    output wire [15:0] rank_of_port,

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
    output wire [ 2:0] verdict_slot,
    output wire [31:0] verdict_vid,
    output wire [ 2:0] verdict_result,
    output wire [ 7:0] verdict_code,

    // A beat enters the lanes
    output wire beat_strobe
);
  // -- Events, for one cycle each --
  // A packet, or an overdue slot, was judged (left_slots)
  wire [ 1:0] judged;  // a packet: its port, one hot
  wire        e_port;  // its port
  wire [ 2:0] e_slot;  // its slot, or the overdue one
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

  // A slot was summed (left_writer)
  wire        reduces;  // in the next cycle: reduced
  wire        reduced;
  wire [ 2:0] reduced_slot;
  wire        reduced_gen;  // its generation
  wire        reduced_job;

  // -- Jobs --
  wire        flush;  // the job ends
  wire        hold_commits;  // nothing is picked for the commit
  wire        idle;  // and nothing is being judged
  wire        clear;  // empties a slot
  wire [ 2:0] clear_slot;
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
  wire [ 1:0] job_last;  // number of a chunk's last beat
  wire [ 2:0] job_window;  // chunks
  wire [ 2:0] slot_mask;  // twice the window, minus 1
  wire [ 2:0] slot_base;  // the first slot
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

  left_jobs #(
      .PORTS     (2),
      .PORT_BITS (1),
      .JOBS      (1),
      .JOB_BITS  (1),
      .CHUNK     (4),
      .WINDOW    (4),
      .SLOT_BITS (3),
      .INDEX_BITS(2),
      .LANE_BITS (0),
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
  wire [  2:0] rd_slot;
  wire [  1:0] rd_beat;
  wire [  1:0] beat_members;  // ports in the sum of the beat at the memories' outputs
  wire [ 63:0] gated;  // the lanes' operands

  genvar p;
  generate
    for (p = 0; p < 2; p = p + 1) begin : g_port
      wire        s_nonfinite;  // elements that are a NaN or an infinity
      wire        wr_en;
      wire [ 2:0] wr_slot;
      wire [ 1:0] wr_beat;
      wire [31:0] wr_data;
      wire [31:0] stored;  // the slot memory's output

      left_fp_nonfinite #(
          .LANES     (1),
          .EXP       (8),
          .FRAC      (23),
          .INFINITIES(1)
      ) u_nonfinite (
          .beat     (s_axis_tdata[32*p+:32]),
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

      left_ingress #(
          .LANES     (1),
          .BEAT_BITS (32),
          .JOBS      (1),
          .JOB_BITS  (1),
          .SLOT_BITS (3),
          .INDEX_BITS(2)
      ) u_ingress (
          .clk          (clk),
          .rst          (rst),
          .flush        (flush),
          .job_valid    (job_valid),
          .slot_mask    (slot_mask),
          .slot_base    (slot_base),
          .job_last     (job_last),
          .s_axis_tdata (s_axis_tdata[32*p+:32]),
          .s_axis_tkeep (s_axis_tkeep[4*p+:4]),
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

      left_ram #(
          .WIDTH    (32),
          .ADDR_BITS(5),
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

      left_gate #(
          .LANES    (1),
          .ELEM_BITS(32),
          .IDENTITY (64'h80000000)
      ) u_gate (
          .clk   (clk),
          .enable(beat_members[p]),
          .x     (stored),
          .y     (gated[32*p+:32])
      );
    end
  endgenerate

  // -- Commit --
  wire         slow;  // too many results are being owed
  wire         act_valid;  // a slot is overdue
  wire [  2:0] act_slot;
  wire         act_job;
  wire         act_grant;
  wire         act_ok;  // the slot's timer still runs
  wire         granted_valid;  // a packet's header is checked from this cycle on
  wire         granted_act;  // an overdue slot instead
  wire [  1:0] granted_ports;  // the packet's port, one hot
  wire         granted_port;
  wire [102:0] granted_request;
  wire [  2:0] granted_slot;  // the overdue slot
  wire         granted_job;  // its job

  left_arbiter #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOB_BITS (1),
      .SLOT_BITS(3),
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
  wire [ 1:0] read_row;  // the slot and its neighbour, by one window
  wire [ 2:0] read_slot;
  wire [ 2:0] read_other;
  wire [31:0] read_vid;
  wire [ 2:0] read_window;
  wire [ 2:0] read_mask;
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

  left_commit #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(3),
      .ROW_BITS (2),
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

  left_slots #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOB_BITS (1),
      .SLOT_BITS(3),
      .ROW_BITS (2)
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

  left_deadlines #(
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(3)
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

  left_port_ranks #(
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
  wire [2:0] choice_slot;  // of the beat that is read next
  wire       begun;  // a slot's first beat was chosen
  wire [2:0] begun_slot;
  wire       unused_begun_job;
  wire [2:0] beat_slot;  // of the beat at the slot memories' outputs
  wire [1:0] beat_index;
  wire       beat_gen;  // its slot's generation
  wire       beat_job;
  wire       beat_chunk_end;  // the beat is its chunk's last

  // The pick, and results on their way out: their slots do not begin
  wire       pick_valid;
  wire [2:0] pick_slot;
  wire       label_valid;
  wire [2:0] label_slot;
  wire       prep_valid;
  wire [2:0] prep_slot;
  wire       send_valid;
  wire [2:0] send_slot;
  wire       unused_beat_pass;
  wire       unused_stalled;  // undecided beats delay the read of a complete slot

  // No beat is read again: one pass decides every beat.
  left_reader #(
      .JOBS        (1),
      .JOB_BITS    (1),
      .SLOT_BITS   (3),
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
      .again_slot   (3'd0),
      .again_beat   (2'd0),
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

  wire [31:0] sum;  // of all ports, lane by lane
  wire        sum_over;  // elements that overflowed
  wire        sum_next;  // a sum comes two cycles later
  wire [ 2:0] sum_slot;  // its slot
  wire [ 1:0] sum_beat;
  wire        sum_gen;
  wire        sum_job;
  wire        sum_chunk_end;

  genvar l;
  generate
    for (l = 0; l < 1; l = l + 1) begin : g_lane
      left_lane u_lane (
          .clk (clk),
          .x_p0(gated[31:0]),
          .x_p1(gated[63:32]),
          .y   (sum),
          .over(sum_over)
      );
    end
  endgenerate

  // The tag leaves two cycles before its sum.
  left_tag_delay #(
      .WIDTH (8),
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
  wire         sum_nonfinite;  // elements that are a NaN or an infinity
  wire         cache_wr_en;  // the sum is in the next cycle
  wire [  2:0] cache_wr_slot;
  wire [  1:0] cache_wr_beat;
  wire [  2:0] cache_sum_slot;  // of the present sum
  wire         written;  // a sum was written in the last cycle
  wire         unused_written_job;
  wire [ 31:0] written_vid;
  wire         nonfinite;  // in the next cycle: its elements that are a NaN or an infinity
  wire         overflow;  // and its elements that overflowed
  wire [  2:0] send_read_slot;
  wire [  1:0] send_beat;
  wire [  2:0] query_slot;  // is this beat in the cache?
  wire         query_gen;
  wire [  1:0] query_beat;
  wire [  2:0] after_slot;  // the beat after it
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
  wire [  1:0] out_tdest;

  left_fp_nonfinite #(
      .LANES     (1),
      .EXP       (8),
      .FRAC      (23),
      .INFINITIES(1)
  ) u_nonfinite_sum (
      .beat     (sum),
      .nonfinite(sum_nonfinite)
  );

  left_writer #(
      .LANES     (1),
      .JOB_BITS  (1),
      .SLOT_BITS (3),
      .INDEX_BITS(2),
      .COUNT_BITS(1),
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

  left_cache #(
      .WIDTH    (32),
      .ADDR_BITS(5)
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

  left_labels #(
      .PORTS    (2),
      .JOB_BITS (1),
      .SLOT_BITS(3)
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
  wire       owe_nearly_full;

  assign slow = |owe_nearly_full;

  wire       pick_ready;  // picks a result now
  wire [1:0] pick_receivers;  // destination ports
  wire       pick_replay;
  wire       unused_pick_wants;

  left_owed #(
      .PORTS    (2),
      .SLOT_BITS(3)
  ) u_owed (
      .clk            (clk),
      .rst            (rst),
      .flush          (flush),
      .clear          (clear),
      .clear_slot     (clear_slot),
      .slot_mask      (slot_mask),
      .member         (present),
      .begun          (begun),
      .begun_slot     (begun_slot),
      .begun_gen      (begun_gen),
      .slot           (e_slot),
      .turn_over      (turn_over),
      .gen            (e_gen),
      .owe            (owe),
      .port           (judged),
      .owe_nearly_full(owe_nearly_full),
      .decide         (decide),
      .ready          (ready),
      .starting       (starting),
      .pick_wants     (unused_pick_wants),
      .pick_ready     (pick_ready),
      .pick_valid     (pick_valid),
      .pick_slot      (pick_slot),
      .pick_receivers (pick_receivers),
      .pick_replay    (pick_replay)
  );

  assign pick_job = 1'd0;

  // The picked result; its ranks
  wire       label_job;
  wire [1:0] label_receivers;  // destination ports
  wire [1:0] result_mask;  // ranks in the sum
  wire [1:0] result_receivers;  // ranks that receive it

  left_port_ranks #(
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

  left_port_ranks #(
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

  left_tag_delay #(
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

  left_status #(
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

  left_egress #(
      .PORTS        (2),
      .JOB_BITS     (1),
      .SLOT_BITS    (3),
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

  wire m_axis_tpayload;

  left_stage #(
      .WIDTH(242),
      .PORTS(2)
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

  assign m_axis_tkeep = {4{m_axis_tpayload}};

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

  left_registers #(
      .CONFIG_HASH(64'h3b318ba417f65958),
      .LANES      (64'd1),
      .PORTS      (64'd2),
      .FORMAT     (64'h101),
      .SUM        (64'd1),
      .SHELL      (64'd1),
      .CHUNK      (64'd4),
      .WINDOW     (64'd4),
      .JOBS       (64'd1),
      .LINK       (64'd8),
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
      .job_base      ({13'd0, slot_base}),
      .job_slots     (16'd1 + {13'd0, slot_mask}),
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

  left_job_counts #(
      .COUNT_BITS(1)
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

  left_lags #(
      .RANK_BITS(1),
      .JOB_BITS (1),
      .SLOT_BITS(3)
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

  left_counters #(
      .COUNT_BITS(1)
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

endmodule

`default_nettype wire

// The card on a byte-stream link of 8 bits: 2 ports, 1 lanes.
//
// link_rx -> FIFO -> frame parser -> beats -> rank's port -> core -> words -> frames -> link_tx
//
// Both directions: tkeep is contiguous from bit 0, with at least one byte; a word may end anywhere
// in a frame. link_up is synchronous to clk. While it is low, and until the last host's work has
// drained, link_rx accepts nothing and link_tx offers nothing, not even a word already offered. rst
// is synchronous. beat_strobe is high in each cycle in which a beat enters the lanes, error_strobe
// for one cycle for each damaged frame from the host.

`default_nettype none

module left_top (
    input wire clk,
    input wire rst,
    input wire link_up,

    // From the host
    input  wire [7:0] link_rx_tdata,
    input  wire       link_rx_tkeep,
    input  wire       link_rx_tvalid,
    output wire       link_rx_tready,

    // To the host
    output wire [7:0] link_tx_tdata,
    output wire       link_tx_tkeep,
    output wire       link_tx_tvalid,
    input  wire       link_tx_tready,

    // Strobes for counters and LEDs
    output wire beat_strobe,
    output wire error_strobe
);
  localparam integer HDR_JOB_LSB = 16;
  localparam integer HDR_JOB_BITS = 8;
  localparam integer HDR_RANK_LSB = 48;
  localparam integer HDR_RANK_BITS = 8;
  localparam integer HDR_VID_LSB = 64;
  localparam integer HDR_VID_BITS = 32;
  localparam integer HDR_LENGTH_LSB = 96;
  localparam integer HDR_LENGTH_BITS = 16;
  localparam integer HDR_MASK_LSB = 112;
  localparam integer HDR_MASK_BITS = 64;
  localparam integer HDR_BASE_BYTES = 14;  // every kind

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
  wire [  1:0] rx_dest;  // the packet's port
  wire [ 31:0] ingress_tdata;
  wire [  3:0] ingress_tkeep;
  wire         ingress_tvalid;
  wire         ingress_tready;
  wire         ingress_tlast;
  wire [112:0] ingress_tuser;
  wire [  1:0] ingress_tdest;
  wire         ingress_busy;
  wire [  1:0] port_tvalid;  // the beat is for this port
  wire [  1:0] port_tready;
  wire [ 15:0] rank_of_port;
  wire [  1:0] member;  // the port has a rank
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
  wire [ 31:0] egress_tdata;
  wire [  3:0] egress_tkeep;
  wire         egress_tvalid;
  wire         egress_tready;
  wire         egress_tlast;
  wire [239:0] egress_tuser;
  wire [  1:0] unused_tdest;  // headers name the ranks
  wire         unused_verdict_valid;
  wire         unused_verdict_port;
  wire [  2:0] unused_verdict_slot;
  wire [ 31:0] unused_verdict_vid;
  wire [  2:0] unused_verdict_result;
  wire [  7:0] unused_verdict_code;
  wire [  1:0] unused_start;  // the transmitter takes each packet as it comes
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
  left_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(link_up),
      .busy   (ingress_busy || unjudged || hold || egress_busy),
      .down   (down)
  );

  left_byte_fifo #(
      .LINK_BYTES(1),
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

  left_frame_rx #(
      .WINDOW    (4),
      .STEP      (4),
      .CHUNK     (4),
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

  left_beat_pack #(
      .STEP      (4),
      .BEAT_BYTES(4),
      .PORTS     (2)
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

  left_route #(
      .PORTS   (2),
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
  left_register_link u_registers (
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
  left_core u_core (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .hold             (hold),
      .unjudged         (unjudged),
      .s_axis_tdata     ({2{ingress_tdata}}),
      .s_axis_tkeep     ({2{ingress_tkeep}}),
      .s_axis_tvalid    (port_tvalid),
      .s_axis_tready    (port_tready),
      .s_axis_tlast     ({2{ingress_tlast}}),
      .s_axis_tuser     ({2{ingress_tuser}}),
      .m_axis_tdata     (egress_tdata),
      .m_axis_tkeep     (egress_tkeep),
      .m_axis_tvalid    (egress_tvalid),
      .m_axis_tready    (egress_tready),
      .m_axis_tlast     (egress_tlast),
      .m_axis_tuser     (egress_tuser),
      .m_axis_tdest     (unused_tdest),
      .port_ready       ({2{1'b1}}),
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
      .members_whole    ({2{1'b1}}),
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
  left_beat_unpack #(
      .STEP      (4),
      .BEAT_BYTES(4)
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

  left_frame_tx #(
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

  left_byte_pack #(
      .STEP      (4),
      .LINK_BYTES(1)
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
