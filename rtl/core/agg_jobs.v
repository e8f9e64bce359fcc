// Sets up jobs, ends them, and holds their configuration.
//
// An operation (commit, abort, end of all) is requested on op_*, stable until op_done, with the
// reply in op_code. All checks are made first (agg_job_checks). For a commit, slots are then
// allotted: twice the window (agg_job_places). Then the running job with this number ends, and the
// new one is set up.
//
// A job ends by an operation, when the link goes down, or when all its ranks have finished; other
// jobs keep running. Its configuration stays valid until its slots are cleared.
//
//   STOP    the pipeline of commits empties; the job ends with the last of these cycles: its bit
//           of job_valid falls, and its bit of flush rises
//   DRAIN   commits go on, until the job's reductions have drained
//   HALT    the pipeline of commits empties
//   WALK    clear names the job's slots, one a cycle except in the cycle after reduces
//   REST    every clear has reached its memory; flush falls with the last of these cycles
//
// When all jobs end at once, by the link, an operation or a reset, no commit is judged from STOP to
// REST, and the walk clears the slots of the whole card. For a new job then follow
//
//   RANKS   its configuration is written in the first cycle, its ranks in the others
//   COUNTS  commits go on, until its predecessor's counts are cleared
//   ADMIT   the pipeline of commits empties; the job is set up with the last of these cycles
//
// So while a packet or an overdue slot is judged, nothing of a job changes except its finished
// ranks. hold_commits is high in STOP, HALT to RANKS, and ADMIT; idle means that nothing is being
// judged. An eviction is an event of agg_slots: the arbiter lets nothing follow it too closely.
//
// Bounds, if the pipeline takes at most 8 cycles to become idle: STOP, HALT and ADMIT take at most
// 10 cycles each, DRAIN as long as the lanes take to finish the job's sums, but at least 4, REST 4,
// and RANKS PORTS + 2. WALK takes a cycle for each slot of the job (2 W; after a reset, or if all
// end, all slots of the card) and for each reduced slot. No slot turns over meanwhile, so other
// jobs reduce each of theirs at most once: WALK takes at most as many cycles as the card has slots.
// Without reduced slots, a job ends within 2 W + 24 cycles besides DRAIN. Commits of
// others pause for at most 2 W + 14 of them in a row, and PORTS + 2 more if a new job follows.
//
// A job that was not set up has neither sums nor slots: REST follows STOP, and drops its statuses.
// Before STOP, a commit tries one place each cycle.
//
// The statuses of an ending job are dropped unless all ranks have finished: then they include the
// answers. hold is high while a job ends or is set up. A link that goes down cancels the operation:
// no job is set up, and op_* need not be stable after the first such cycle. link_down stays high
// until hold has been low for a while (agg_link_session); by then all jobs have ended.
//
// An evicted member keeps its rank and is no longer waited for, not even to finish. Vectors have
// job 0 in the lowest bits. Not done here: ownership of the card (agg_registers).

`default_nettype none

module agg_jobs #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS = 1,  // number of jobs, a power of two
    parameter integer JOB_BITS = 1,  // width of a job number, at least 1
    parameter integer CHUNK = 256,  // maximum chunk length, in elements
    parameter integer WINDOW = 8,  // maximum window, in chunks; the card has twice as many slots
    parameter integer SLOT_BITS = 4,  // width of a slot number
    parameter integer INDEX_BITS = 4,  // width of a beat's number in its chunk
    parameter integer LANE_BITS = 4,  // log2 of the lanes
    parameter integer STAGES = 1  // latency of agg_port_ranks
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // Operations
    input wire op_valid,
    input wire op_commit,  // set up a job
    input wire op_abort,  // end the job, if its epoch is op_epoch; neither: end all
    input wire [7:0] op_job,
    input wire [15:0] op_epoch,
    input wire [31:0] op_first,
    input wire [63:0] op_ports,
    input wire [63:0] op_chunk,
    input wire [63:0] op_window,
    input wire [63:0] op_deadline,
    input wire [PORTS-1:0] members_whole,  // see agg_job_checks; stable like op_*
    input wire members_same,
`ifdef AGG_PARENT
    input wire tree_same,  // see agg_job_checks; stable like op_*
    input wire tree_parent,
    input wire tree_ranks,
    input wire tree_nested,
`endif
    output wire op_done,
    output wire [7:0] op_code,

    // Events of agg_slots
    input wire finish,
    input wire [JOB_BITS-1:0] finish_job,
    input wire [PORTS-1:0] finish_bit,  // rank that has finished
    input wire [PORTS-1:0] finish_ports,  // its port
    input wire [PORTS-1:0] evict,  // ports to evict
    input wire [JOB_BITS-1:0] evict_job,  // from this job
    input wire [PORTS-1:0] evict_ranks,  // its evicted ranks, these included; STAGES cycles later
`ifdef AGG_PARENT

    // Tree jobs, which end when the parent answers the card's finish
    input  wire [      JOBS-1:0] job_tree,
    input  wire                  parent_done,    // not before all ranks have finished
    input  wire [  JOB_BITS-1:0] parent_job,
    output wire [PORTS*JOBS-1:0] finished_port,  // ports that have finished
    output wire [      JOBS-1:0] tree_done,      // the parent has answered
`endif

    // The path of commits and sums
    output wire            hold_commits,  // agg_arbiter grants nothing
    input  wire            idle,          // nothing is being judged
    input  wire [JOBS-1:0] drained,       // no reduction of the job is under way
    input  wire            reduces,       // the slot memories are in use in the next cycle

    // Ends and beginnings
    output wire [     JOBS-1:0] flush,
    output wire                 hold,
    output wire [     JOBS-1:0] drop_statuses,
    output wire                 clear,          // the slot below becomes empty
    output wire [SLOT_BITS-1:0] clear_slot,
    output wire [     JOBS-1:0] sets_up,        // a job is set up, its predecessor forgotten
    output wire [ JOB_BITS-1:0] sets_up_job,    // that job, until cleared
    input  wire                 cleared,        // its predecessor's counts are cleared

    // Jobs
    output wire [           JOBS-1:0] job_valid,
    output wire [           JOBS-1:0] job_complete,  // the last one ended: all had finished
    output wire [           JOBS-1:0] job_ever,      // an epoch was ever set
    output wire [        16*JOBS-1:0] job_epoch,
    output wire [        16*JOBS-1:0] job_chunk,     // in elements
    output wire [INDEX_BITS*JOBS-1:0] job_last,      // number of a chunk's last beat
    output wire [ SLOT_BITS*JOBS-1:0] job_window,    // in chunks
    output wire [ SLOT_BITS*JOBS-1:0] slot_mask,     // 2 * window - 1
    output wire [ SLOT_BITS*JOBS-1:0] slot_base,     // first slot
    output wire [        32*JOBS-1:0] job_first,     // first VID
    output wire [        32*JOBS-1:0] job_deadline,  // in cycles; 0: none
    output wire [           JOBS-1:0] job_partial,   // partial sums allowed
    output wire [     PORTS*JOBS-1:0] job_finished,  // ranks that have finished
    output wire [     PORTS*JOBS-1:0] job_evicted,   // ranks that were evicted
    output wire [     PORTS*JOBS-1:0] evicted,       // by port
    output wire [     PORTS*JOBS-1:0] present,       // members not evicted, by port
    output wire [     PORTS*JOBS-1:0] member,        // members, by port
    output wire [   8*PORTS*JOBS-1:0] rank_of_port
);

  `include "zwire.vh"

  localparam [JOBS-1:0] ONE_JOB = 1;

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_PLACE = 1;  // find slots for the new job
  localparam integer STATE_STOP = 2;
  localparam integer STATE_DRAIN = 3;
  localparam integer STATE_HALT = 4;
  localparam integer STATE_WALK = 5;
  localparam integer STATE_REST = 6;
  localparam integer STATE_RANKS = 7;
  localparam integer STATE_COUNTS = 8;
  localparam integer STATE_ADMIT = 9;
  localparam integer STATES = 10;
  localparam [STATES-1:0] ONE_STATE = 1;

  reg [STATES-1:0] at_reg;  // one-hot
  reg [1:0] cycle_reg;  // of STOP, DRAIN, HALT, REST or ADMIT, from 0 to 3
  reg stopped_reg;
  reg hold_commits_reg;

  reg [JOBS-1:0] flush_reg;  // ending jobs
  reg [JOB_BITS-1:0] job_reg;  // the ending job unless all end; the job being set up
  reg quiet_reg;  // all end
  reg set_up_reg;  // a new job follows the end
  reg reply_reg;  // an operation waits for its reply
  reg op_had_reg;  // its job was set up
  reg keep_statuses_reg;
  reg done_reg;
  reg [7:0] code_reg;
  reg [SLOT_BITS-1:0] mask_next_reg, place_reg;  // slots of the new job
  reg [JOBS-1:0] sets_up_reg;
  reg ranks_start_reg;
  // The walk
  reg clear_reg;
  reg [SLOT_BITS-1:0] clear_slot_reg, last_slot_reg;
  reg clears_last_reg;  // these are the same

  reg [JOBS-1:0] valid_reg, complete_reg, ever_reg;
  reg [16*JOBS-1:0] epoch_reg;
  reg [16*JOBS-1:0] chunk_reg;
  reg [INDEX_BITS*JOBS-1:0] last_reg;
  reg [SLOT_BITS*JOBS-1:0] window_reg;
  reg [SLOT_BITS*JOBS-1:0] mask_reg;
  reg [SLOT_BITS*JOBS-1:0] base_reg;
  reg [32*JOBS-1:0] first_reg;
  reg [32*JOBS-1:0] deadline_reg;
  reg [JOBS-1:0] partial_reg;
  reg [PORTS*JOBS-1:0] finished_reg, finished_ranks_reg;
  reg [PORTS*JOBS-1:0] evicted_reg, evicted_ranks_reg;

  // -- Checks, and slots for a new job ------------------------------------------------------------

  wire asked = reply_reg && !link_down;  // the requester is still connected
  wire [JOB_BITS-1:0] op_index = JOBS == 1 ? {JOB_BITS{1'b0}} : op_job[JOB_BITS-1:0];
  wire op_checks = at_reg[STATE_IDLE] && op_valid && !done_reg && !link_down && !rst;
  wire op_checked, op_changes;
  wire [7:0] op_check;
  wire place_found, no_place;
  wire [SLOT_BITS-1:0] found_place;

  agg_job_checks #(
      .PORTS    (PORTS),
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS),
      .CHUNK    (CHUNK),
      .WINDOW   (WINDOW),
      .SLOT_BITS(SLOT_BITS),
      .LANE_BITS(LANE_BITS)
  ) u_checks (
      .clk          (clk),
      .check        (op_checks),
      .op_commit    (op_commit),
      .op_abort     (op_abort),
      .op_job       (op_job),
      .op_epoch     (op_epoch),
      .op_first     (op_first),
      .op_ports     (op_ports),
      .op_chunk     (op_chunk),
      .op_window    (op_window),
      .op_deadline  (op_deadline),
      .job_valid    (valid_reg),
      .job_ever     (ever_reg),
      .job_epoch    (epoch_reg),
      .job_chunk    (chunk_reg),
      .job_window   (window_reg),
      .job_first    (first_reg),
      .job_deadline (deadline_reg),
      .job_partial  (partial_reg),
      .member       (member),
      .members_whole(members_whole),
`ifdef AGG_PARENT
      .members_same (members_same),
      .tree_same    (tree_same),
      .tree_parent  (tree_parent),
      .tree_ranks   (tree_ranks),
      .tree_nested  (tree_nested),
`else
      .members_same (members_same),
`endif
      .checked      (op_checked),
      .code         (op_check),
      .changes      (op_changes)
  );

  agg_job_places #(
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS),
      .SLOT_BITS(SLOT_BITS)
  ) u_places (
      .clk        (clk),
      .seek       (at_reg[STATE_PLACE] && !rst),
      .job        (op_index),
      .mask       (mask_next_reg),
      .job_valid  (valid_reg),
      .slot_mask  (mask_reg),
      .slot_base  (base_reg),
      .found      (place_found),
      .full       (no_place),
      .found_place(found_place)
  );

  wire op_starts = op_valid && !done_reg && !link_down && op_checked;  // in STATE_IDLE
  wire op_all = !op_commit && !op_abort;

  // -- Finished and evicted members ---------------------------------------------------------------

`ifdef AGG_PARENT
  reg [JOBS-1:0] tree_done_reg;
`endif
  reg [JOBS-1:0] all_finished, all_finished_reg;
  reg any_finished_reg;
  reg [JOB_BITS-1:0] finished_job, finished_job_reg;  // lowest of these jobs
  integer j;

  always @* begin
    finished_job = {JOB_BITS{1'b0}};
    for (j = JOBS - 1; j >= 0; j = j - 1) begin
`ifdef AGG_PARENT
      all_finished[j] = valid_reg[j] &&
          (tree_done_reg[j] || (!job_tree[j] &&
          (present[PORTS*j+:PORTS] & ~finished_reg[PORTS*j+:PORTS]) == {PORTS{1'b0}}));
`else
      all_finished[j] = valid_reg[j] &&
          (present[PORTS*j+:PORTS] & ~finished_reg[PORTS*j+:PORTS]) == {PORTS{1'b0}};
`endif
      if (all_finished[j]) finished_job = j[JOB_BITS-1:0];
    end
  end

  // Evictions whose ranks are still to come
  reg [STAGES-1:0] evicts_reg;
  reg [JOB_BITS*STAGES-1:0] evict_jobs_reg;
  wire ranks_evict = evicts_reg[STAGES-1];
  wire [JOB_BITS-1:0] ranks_evict_job = evict_jobs_reg[JOB_BITS*(STAGES-1)+:JOB_BITS];
  integer e;

  always @(posedge clk) begin
    evicts_reg <= (evicts_reg << 1) | {{STAGES - 1{1'b0}}, |evict};
    evict_jobs_reg <= (evict_jobs_reg << JOB_BITS) |
        {{JOB_BITS * STAGES - JOB_BITS{1'b0}}, evict_job};

    all_finished_reg <= all_finished;
    any_finished_reg <= |all_finished;
    finished_job_reg <= finished_job;

    for (e = 0; e < JOBS; e = e + 1) begin
      if (finish && valid_reg[e] && (JOBS == 1 || finish_job == e[JOB_BITS-1:0])) begin
        finished_reg[PORTS*e+:PORTS] <= finished_reg[PORTS*e+:PORTS] | finish_ports;
        finished_ranks_reg[PORTS*e+:PORTS] <= finished_ranks_reg[PORTS*e+:PORTS] | finish_bit;
      end
      if (at_reg[STATE_DRAIN] && flush_reg[e]) begin
        finished_reg[PORTS*e+:PORTS]       <= {PORTS{1'b0}};
        finished_ranks_reg[PORTS*e+:PORTS] <= {PORTS{1'b0}};
      end

`ifdef AGG_PARENT
      if (parent_done && valid_reg[e] && (JOBS == 1 || parent_job == e[JOB_BITS-1:0]))
        tree_done_reg[e] <= 1'b1;
      if (at_reg[STATE_DRAIN] && flush_reg[e]) tree_done_reg[e] <= 1'b0;

`endif
      if (JOBS == 1 || evict_job == e[JOB_BITS-1:0])
        evicted_reg[PORTS*e+:PORTS] <= evicted_reg[PORTS*e+:PORTS] | evict;
      if (ranks_evict && (JOBS == 1 || ranks_evict_job == e[JOB_BITS-1:0]))
        evicted_ranks_reg[PORTS*e+:PORTS] <= evict_ranks;
      if (sets_up_reg[e]) begin
        evicted_reg[PORTS*e+:PORTS]       <= {PORTS{1'b0}};
        evicted_ranks_reg[PORTS*e+:PORTS] <= {PORTS{1'b0}};
      end
    end

    if (rst) begin
`ifdef AGG_PARENT
      tree_done_reg      <= {JOBS{1'b0}};
`endif
      evicts_reg         <= {STAGES{1'b0}};
      all_finished_reg   <= {JOBS{1'b0}};
      any_finished_reg   <= 1'b0;
      finished_reg       <= {PORTS * JOBS{1'b0}};
      finished_ranks_reg <= {PORTS * JOBS{1'b0}};
      evicted_reg        <= {PORTS * JOBS{1'b0}};
      evicted_ranks_reg  <= {PORTS * JOBS{1'b0}};
    end
  end

  // -- Configuration ------------------------------------------------------------------------------

  wire ranks_done;

  agg_ranks #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS)
  ) u_ranks (
      .clk         (clk),
      .rst         (rst),
      .start       (ranks_start_reg),
      .job         (job_reg),
      .ports       (op_ports[PORTS-1:0]),
      .done        (ranks_done),
      .member      (member),
      .rank_of_port(rank_of_port)
  );

  integer c;

  always @(posedge clk) begin
    for (c = 0; c < JOBS; c = c + 1) begin
      if (sets_up_reg[c]) begin
        ever_reg[c]                        <= 1'b1;
        epoch_reg[16*c+:16]                <= op_epoch;
        chunk_reg[16*c+:16]                <= op_chunk[15:0];
        last_reg[INDEX_BITS*c+:INDEX_BITS] <= op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1;
        window_reg[SLOT_BITS*c+:SLOT_BITS] <= op_window[SLOT_BITS-1:0];
        mask_reg[SLOT_BITS*c+:SLOT_BITS]   <= mask_next_reg;
        base_reg[SLOT_BITS*c+:SLOT_BITS]   <= place_reg;
        first_reg[32*c+:32]                <= op_first;
        deadline_reg[32*c+:32]             <= op_deadline[31:0];
        partial_reg[c]                     <= op_deadline[32];
      end
    end
    if (rst) begin
      ever_reg     <= {JOBS{1'b0}};
      epoch_reg    <= {16 * JOBS{1'b0}};
      chunk_reg    <= {16 * JOBS{1'b0}};
      last_reg     <= {INDEX_BITS * JOBS{1'b0}};
      window_reg   <= {JOBS{{{SLOT_BITS - 1{1'b0}}, 1'b1}}};
      mask_reg     <= {SLOT_BITS * JOBS{1'b1}};
      base_reg     <= {SLOT_BITS * JOBS{1'b0}};
      first_reg    <= {32 * JOBS{1'b0}};
      deadline_reg <= {32 * JOBS{1'b0}};
      partial_reg  <= {JOBS{1'b0}};
    end
  end

  // -- States -------------------------------------------------------------------------------------

  wire settled = &cycle_reg;

  // IDLE: an end is due. With the link up and no job complete, an operation causes it.
  wire end_due = (link_down && |valid_reg) || any_finished_reg;
  wire op_due = op_starts && op_changes && !any_finished_reg;  // the link is up
  wire to_place = at_reg[STATE_IDLE] && op_due && op_commit;
  wire to_stop = at_reg[STATE_IDLE] && (end_due || (op_due && !op_commit));

  // PLACE
  wire placed = at_reg[STATE_PLACE] && asked && place_found;
  wire unplaced = at_reg[STATE_PLACE] && (!asked || no_place);

  // STOP: what ends
  wire decides = at_reg[STATE_STOP] && stopped_reg;
  wire link_ends = decides && link_down && |valid_reg;
  // Its operation, if any, starts again.
  wire finish_ends = decides && !link_down && any_finished_reg;
  wire op_ends = decides && asked && !any_finished_reg;
  wire ends_all = link_ends || (op_ends && op_all);
  wire ends = link_ends || finish_ends || op_ends;
  wire drains = ends_all || finish_ends || (op_ends && op_had_reg);
  wire [JOB_BITS-1:0] end_job = finish_ends ? finished_job_reg : op_index;

  // The others
  wire drain_ends = at_reg[STATE_DRAIN] && settled && &(drained | ~flush_reg);
  wire halt_ends = at_reg[STATE_HALT] && stopped_reg;
  wire walk_ends = clear_reg && clears_last_reg;
  wire rest_ends = at_reg[STATE_REST] && settled;
  wire sets_up_next = rest_ends && set_up_reg && asked;
  wire ranks_end = at_reg[STATE_RANKS] && ranks_done;
  wire counts_end = at_reg[STATE_COUNTS] && cleared;
  wire admits = at_reg[STATE_ADMIT] && stopped_reg;

  wire [STATES-1:0] at_next;
  assign at_next[STATE_IDLE] = (at_reg[STATE_IDLE] && !to_place && !to_stop) || unplaced ||
      (decides && !ends) || (rest_ends && !sets_up_next) || admits;
  assign at_next[STATE_PLACE] = to_place || (at_reg[STATE_PLACE] && !placed && !unplaced);
  assign at_next[STATE_STOP] = to_stop || placed || (at_reg[STATE_STOP] && !stopped_reg);
  assign at_next[STATE_DRAIN] = drains || (at_reg[STATE_DRAIN] && !drain_ends);
  assign at_next[STATE_HALT] = drain_ends || (at_reg[STATE_HALT] && !stopped_reg);
  assign at_next[STATE_WALK] = halt_ends || (at_reg[STATE_WALK] && !walk_ends);
  assign at_next[STATE_REST] = (ends && !drains) || walk_ends || (at_reg[STATE_REST] && !settled);
  assign at_next[STATE_RANKS] = sets_up_next || (at_reg[STATE_RANKS] && !ranks_done);
  assign at_next[STATE_COUNTS] = ranks_end || (at_reg[STATE_COUNTS] && !cleared);
  assign at_next[STATE_ADMIT] = counts_end || (at_reg[STATE_ADMIT] && !stopped_reg);

  // The states in which commits begin to be held, and those after which they go on
  wire holds = to_stop || placed || drain_ends || counts_end;
  wire resumes = (decides && (!ends || (drains && !ends_all))) ||
      (rest_ends && !sets_up_next) || ranks_end || admits;

  wire stops = at_reg[STATE_STOP] || at_reg[STATE_HALT] || at_reg[STATE_ADMIT];
  wire counts_cycles = stops || at_reg[STATE_DRAIN] || at_reg[STATE_REST];
  wire [SLOT_BITS-1:0] clear_slot_next = clear_slot_reg + {{SLOT_BITS - 1{1'b0}}, clear_reg};

  always @(posedge clk) begin
    at_reg <= at_next;
    hold_commits_reg <= holds || (hold_commits_reg && !resumes);
    if (!counts_cycles || decides || drain_ends) cycle_reg <= 2'd0;
    else if (!settled) cycle_reg <= cycle_reg + 2'd1;
    stopped_reg <= stops && !stopped_reg && settled && idle;
    op_had_reg <= valid_reg[op_index];
    mask_next_reg <= (op_window[SLOT_BITS-1:0] << 1) - 1'b1;
    done_reg <= 1'b0;
    sets_up_reg <= sets_up_next ? ONE_JOB << job_reg : {JOBS{1'b0}};
    ranks_start_reg <= sets_up_next;
    clear_reg <= (halt_ends || (at_reg[STATE_WALK] && !walk_ends)) && !reduces;
    clear_slot_reg <= clear_slot_next;
    clears_last_reg <= clear_slot_next == last_slot_reg;

    if (at_reg[STATE_IDLE]) begin
      set_up_reg <= op_commit;
      reply_reg  <= op_due;
      code_reg   <= op_check;
      done_reg   <= op_starts && !op_changes && !any_finished_reg;
    end

    if (at_reg[STATE_PLACE]) begin
      place_reg <= found_place;
      if (asked && no_place) begin
        done_reg <= 1'b1;
        code_reg <= CODE_NO_SLOTS;
      end
    end

    if (ends) begin
      flush_reg         <= ends_all ? {JOBS{1'b1}} : ONE_JOB << end_job;
      job_reg           <= end_job;
      quiet_reg         <= ends_all;
      keep_statuses_reg <= finish_ends;
      if (ends_all) valid_reg <= {JOBS{1'b0}};
      else valid_reg[end_job] <= 1'b0;
    end
    if (link_ends) complete_reg <= complete_reg | all_finished_reg;
    if (finish_ends) begin
      complete_reg[finished_job_reg] <= 1'b1;
      reply_reg                      <= 1'b0;
    end

    if (at_reg[STATE_DRAIN] || at_reg[STATE_HALT]) begin
      clear_slot_reg <= quiet_reg ? {SLOT_BITS{1'b0}} : base_reg[SLOT_BITS*job_reg+:SLOT_BITS];
      last_slot_reg <= quiet_reg ? {SLOT_BITS{1'b1}} :
          base_reg[SLOT_BITS*job_reg+:SLOT_BITS] | mask_reg[SLOT_BITS*job_reg+:SLOT_BITS];
    end

    if (rest_ends) begin
      flush_reg <= {JOBS{1'b0}};
      quiet_reg <= 1'b0;
      done_reg  <= asked && !set_up_reg;
    end
    if (sets_up_next) complete_reg[job_reg] <= 1'b0;

    if (admits) begin
      valid_reg[job_reg] <= asked;
      done_reg           <= asked;
    end

    if (link_down) reply_reg <= 1'b0;
    if (rst) begin
      cycle_reg         <= 2'd0;
      stopped_reg       <= 1'b0;
      clear_reg         <= 1'b0;
      hold_commits_reg  <= 1'b1;
      at_reg            <= ONE_STATE << STATE_DRAIN;
      flush_reg         <= {JOBS{1'b1}};
      quiet_reg         <= 1'b1;
      set_up_reg        <= 1'b0;
      reply_reg         <= 1'b0;
      keep_statuses_reg <= 1'b0;
      done_reg          <= 1'b0;
      sets_up_reg       <= {JOBS{1'b0}};
      ranks_start_reg   <= 1'b0;
      valid_reg         <= {JOBS{1'b0}};
      complete_reg      <= {JOBS{1'b0}};
    end
  end

  assign op_done       = done_reg;
  assign op_code       = code_reg;
  assign hold_commits  = hold_commits_reg;
  assign flush         = flush_reg;
  assign hold          = !at_reg[STATE_IDLE];
  assign drop_statuses = {JOBS{link_down}} | (keep_statuses_reg ? {JOBS{1'b0}} : flush_reg);
  assign clear         = clear_reg;
  assign clear_slot    = clear_slot_reg;
  assign sets_up       = sets_up_reg;
  assign sets_up_job   = job_reg;
  assign job_valid     = valid_reg;
  assign job_complete  = complete_reg;
  assign job_ever      = ever_reg;
  assign job_epoch     = epoch_reg;
  assign job_chunk     = chunk_reg;
  assign job_last      = last_reg;
  assign job_window    = window_reg;
  assign slot_mask     = mask_reg;
  assign slot_base     = base_reg;
  assign job_first     = first_reg;
  assign job_deadline  = deadline_reg;
  assign job_partial   = partial_reg;
  assign job_finished  = finished_ranks_reg;
  assign job_evicted   = evicted_ranks_reg;
  assign evicted       = evicted_reg;
  assign present       = member & ~evicted_reg;
`ifdef AGG_PARENT

  assign finished_port = finished_reg;
  assign tree_done     = tree_done_reg;
`endif

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Any job, any other job, and any slot.
  (* anyconst *) reg [JOB_BITS-1:0] watched, rival;
  (* anyconst *) reg [SLOT_BITS-1:0] slot;
  localparam integer JOB_WIDTH = 98 + INDEX_BITS + 3 * SLOT_BITS;
  reg [3:0] state;
  wire leaves = at_next != at_reg;
  reg reduced;  // reduces was high in the last cycle
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  wire [JOB_WIDTH-1:0] its = {
    ever_reg[watched],
    partial_reg[watched],
    deadline_reg[32*watched+:32],
    epoch_reg[16*watched+:16],
    chunk_reg[16*watched+:16],
    first_reg[32*watched+:32],
    last_reg[INDEX_BITS*watched+:INDEX_BITS],
    window_reg[SLOT_BITS*watched+:SLOT_BITS],
    mask_reg[SLOT_BITS*watched+:SLOT_BITS],
    base_reg[SLOT_BITS*watched+:SLOT_BITS]
  };
  wire [SLOT_BITS-1:0] its_window = window_reg[SLOT_BITS*watched+:SLOT_BITS];
  wire [SLOT_BITS-1:0] its_mask = mask_reg[SLOT_BITS*watched+:SLOT_BITS];
  wire [SLOT_BITS-1:0] its_base = base_reg[SLOT_BITS*watched+:SLOT_BITS];
  wire [SLOT_BITS-1:0] rival_mask = mask_reg[SLOT_BITS*rival+:SLOT_BITS];
  wire [SLOT_BITS-1:0] rival_base = base_reg[SLOT_BITS*rival+:SLOT_BITS];
  wire [PORTS-1:0] its_member = member[PORTS*watched+:PORTS];
  wire [PORTS-1:0] its_present = present[PORTS*watched+:PORTS];
  wire [8*PORTS-1:0] its_ranks = rank_of_port[8*PORTS*watched+:8*PORTS];
  wire [PORTS-1:0] its_finished = finished_reg[PORTS*watched+:PORTS];
  wire [PORTS-1:0] its_finished_ranks = finished_ranks_reg[PORTS*watched+:PORTS];
  wire [PORTS-1:0] its_evicted = evicted_reg[PORTS*watched+:PORTS];
  wire [PORTS-1:0] its_evicted_ranks = evicted_ranks_reg[PORTS*watched+:PORTS];
  wire has_slot = (slot & ~its_mask) == its_base;
  wire is_set_up = valid_reg[watched];
  wire meet = ((its_base ^ rival_base) & ~(its_mask | rival_mask)) == 0;
  wire its_flush = flush_reg[watched];
`ifdef AGG_PARENT
  // A tree job ends when its parent has answered.
  wire all_finish = (its_present & ~its_finished) == 0;
  wire is_tree = job_tree[watched];
  wire its_done = tree_done_reg[watched];
  wire its_answer = parent_done && parent_job == watched;
  wire all_done = is_set_up && (is_tree ? its_done : all_finish);
  wire [3:0] tree = {tree_same, tree_parent, tree_ranks, tree_nested};
  reg [3:0] staged_was;
  reg op_stayed;  // before the last cycle too
  reg tree_was, done_was, answer_was;
`else
  wire all_done = is_set_up && (its_present & ~its_finished) == 0;
`endif

  // The operation.
  wire [SLOT_BITS-1:0] op_mask = (op_window[SLOT_BITS-1:0] << 1) - 1'b1;
  wire is_op = op_index == watched;
  wire [15:0] newer = op_epoch - epoch_reg[16*op_index+:16];
  wire fits = op_job >> JOB_BITS == 0 && op_ports != 0 && op_ports >> PORTS == 0 &&
      op_chunk != 0 && op_chunk <= CHUNK && (op_chunk & ((1 << LANE_BITS) - 1)) == 0 &&
      (op_ports[PORTS-1:0] & ~members_whole) == 0 &&
      op_window != 0 && op_window <= WINDOW && (op_window & (op_window - 1)) == 0 &&
      op_deadline >> 33 == 0 && !(op_deadline[32] && op_deadline[31:0] == 0);
  wire fresh = !ever_reg[op_index] || (newer != 0 && !newer[15]);

  // The path of commits: hold_commits for so many cycles before this one.
  reg [3:0] held;
  reg idle_was;
  wire stands = hold_commits && idle && held >= 3;  // nothing is judged, and nothing will be
  reg stood;  // in the last cycle

  // A slot is used from its job's set-up, or from before a reset, until it is cleared.
  reg used, used_was;
  reg is_used;  // by a job that is set up
  reg [2:0] rest;  // cycles since the last clear, saturating
  reg [3:0] age;  // cycles in this state, saturating
  reg [SLOT_BITS:0] walked, pauses;  // cycles of the walk, and those with reduced
  reg [3:0] state_was;
  reg has_drained;  // seen, from the fourth cycle of flush on
  wire [SLOT_BITS-1:0] job_base = base_reg[SLOT_BITS*job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] job_mask = mask_reg[SLOT_BITS*job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] walk_first = quiet_reg ? 0 : job_base;
  wire [SLOT_BITS-1:0] walk_last = quiet_reg ? {SLOT_BITS{1'b1}} : job_base | job_mask;
  wire ending = state == STATE_DRAIN || state == STATE_HALT || state == STATE_WALK ||
      state == STATE_REST;
  wire gives = state == STATE_RANKS || state == STATE_COUNTS || state == STATE_ADMIT;
  wire given = gives && sets_up_reg == 0;  // configuration is written

  reg [JOB_WIDTH-1:0] its_were;
  reg [9*PORTS-1:0] ranks_were;
  reg [121:0] op_was;
  reg [192+PORTS:0] op_rest_was;
  reg op_stays, set_up_was, flush_was, link_was, sets_up_was, all_done_was, complete_was;
  reg [PORTS-1:0] finished_was, finished_ranks_were;
  reg [PORTS-1:0] evicted_was, evict_was, evict_before, evicted_ranks_were, ranks_came;
  reg slot_taken;  // not available to the operation's job
  reg [7:0] count;  // ranks assigned to lower ports
  integer q, r;

  always @* begin
    state = 0;
    for (r = 0; r < STATES; r = r + 1) if (at_reg[r]) state = r;
    slot_taken = 1'b0;
    is_used = 1'b0;
    for (r = 0; r < JOBS; r = r + 1) begin
      if (valid_reg[r] && r != op_index && ((slot ^ base_reg[SLOT_BITS*r+:SLOT_BITS]) &
            ~(op_mask | mask_reg[SLOT_BITS*r+:SLOT_BITS])) == 0)
        slot_taken = 1'b1;
      if (valid_reg[r] && (slot & ~mask_reg[SLOT_BITS*r+:SLOT_BITS]) ==
          base_reg[SLOT_BITS*r+:SLOT_BITS])
        is_used = 1'b1;
    end
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    reduced <= reduces;
    its_were <= its;
    ranks_were <= {its_member, its_ranks};
    op_was <= {op_commit, op_abort, op_job, op_epoch, op_first, op_ports};
    op_rest_was <= {op_chunk, op_window, op_deadline, members_whole, members_same};
    op_stays <= !rst && op_valid && !op_done && !link_down;
    set_up_was <= !rst && is_set_up;
    flush_was <= its_flush;
    link_was <= link_down;
    sets_up_was <= sets_up[watched];
    all_done_was <= all_done;
    complete_was <= complete_reg[watched];
    finished_was <= its_finished;
`ifdef AGG_PARENT
    op_stayed <= op_stays;
    staged_was <= tree;
    tree_was <= is_tree;
    done_was <= its_done;
    answer_was <= !rst && is_set_up && its_answer;
`endif
    finished_ranks_were <= its_finished_ranks;
    evicted_was <= its_evicted;
    evicted_ranks_were <= its_evicted_ranks;
    evict_was <= !rst && evict_job == watched ? evict : 0;
    evict_before <= rst ? 0 : evict_was;
    ranks_came <= evict_ranks;
    state_was <= state;
    held <= rst || !hold_commits ? 0 : held + (held != 15);
    idle_was <= idle;
    stood <= !rst && stands;
    used <= rst || is_used || (used && !(clear && clear_slot == slot));
    used_was <= used;
    rest <= rst ? 7 : clear ? 0 : rest + (rest != 7);
    age <= rst || leaves ? 0 : age + (age != 15);
    walked <= rst || state != STATE_WALK ? 0 : walked + 1'b1;
    pauses <= rst || state != STATE_WALK ? 0 : pauses + reduced;
    has_drained <= !rst && its_flush &&
        (has_drained || (state == STATE_DRAIN && age >= 3 && drained[watched]));
  end

  always @* begin
    assume (rival != watched);
    // It starts with a reset: agg_job_checks and agg_job_places rely on agg_jobs from then on.
    assume (rst || was_reset);
    if (was_reset) begin
      // agg_registers: an operation is stable until its reply, or until the link goes down, and its
      // fields are still so in the first cycle of that.
      `PROMISED(
          !op_stays || ((op_valid || link_down) &&
          op_was == {op_commit, op_abort, op_job, op_epoch, op_first, op_ports} &&
          op_rest_was == {op_chunk, op_window, op_deadline, members_whole, members_same}));
      `PROMISED(!(op_commit && op_abort));
      // agg_arbiter: held for two cycles and idle, it stays idle; it becomes idle in eight.
      `PROMISED(!hold_commits || held < 3 || !idle_was || idle);
      `PROMISED(!hold_commits || held < 8 || idle);
      // agg_slots: an event is the last cycle of a judgement.
      `PROMISED(!idle || !(finish || |evict));
`ifdef AGG_PARENT
      // agg_up_jobs: its checks are stable from the second cycle of an operation on; a job is a tree job
      // or not from its set-up on.
      `PROMISED(!op_stays || !op_stayed || link_down || staged_was == tree);
      `PROMISED(!running_was || sets_up_was || is_tree == tree_was);
      // agg_up_commit: the parent answers a tree job whose members have all finished.
      `PROMISED(!its_answer || (!idle && (!is_set_up || (is_tree && all_finish))));
`endif
    end
    if (was_reset && !rst) begin
      // A job that is set up has the requested configuration and slots of its own, and its members'
      // ranks follow the order of the ports.
      if (is_set_up) begin
        assert (ever_reg[watched] && !its_flush && !sets_up[watched] && !quiet_reg);
        assert (its_window != 0 && (its_window & (its_window - 1'b1)) == 0 && its_window <= WINDOW);
        assert (its_mask == 2 * its_window - 1 && (its_base & its_mask) == 0);
        assert (its_member != 0 && !complete_reg[watched]);
        if (valid_reg[rival]) assert (!meet);
        assert (!clear || clear_slot != slot || !has_slot);
      end
      if (is_set_up || (given && watched == job_reg)) begin
        count = 0;
        for (q = 0; q < PORTS; q = q + 1) begin
          if (its_member[q]) begin
            assert (its_ranks[8*q+:8] == count);
            count = count + 1;
          end
        end
      end

      // A job changes only while nothing is judged, except for its finished and evicted members.
      if (running_was) begin
        if (set_up_was != is_set_up || flush_was != its_flush) assert (stood);
        assert (its == its_were || (stood && sets_up_was && !set_up_was && !flush_was));
        assert ({its_member, its_ranks} == ranks_were ||
            (stood && state_was == STATE_RANKS && !set_up_was && !is_set_up));
        assert (complete_reg[watched] == complete_was || stood);
        assert ((its_evicted & ~evicted_was & ~evict_was) == 0);
        assert ((evicted_was & ~its_evicted) == 0 || (stood && sets_up_was));
        assert ((evict_was & ~its_evicted) == 0);
        assert (its_evicted_ranks == (sets_up_was ? 0 : STAGES == 1 && evict_before != 0 ?
            ranks_came : evicted_ranks_were));
      end

      // From its end until it has drained and its slots are cleared, its bit of flush is high, and
      // its configuration is still valid. Then it has no used slot.
      if (running_was) begin
        if (set_up_was && !is_set_up) assert (its_flush);
        if (flush_was && !its_flush) assert (rest >= 4);
        if (its_flush) assert (!is_set_up);
        if (set_up_was && !is_set_up) assert (complete_reg[watched] == all_done_was);
      end
      if (clear) begin
        assert (stands && !reduced && clear_slot >= walk_first && clear_slot <= walk_last);
        if (its_flush) assert (has_drained);
      end
      if (has_slot && is_set_up && !set_up_was && running_was) assert (!used_was && rest >= 4);
      if (used && !is_used) begin
        assert (ending && state != STATE_REST);
        assert (slot <= walk_last && slot >= walk_first);
        if (state == STATE_WALK) assert (slot >= clear_slot_reg);
      end
      if (is_used) assert (!clear || clear_slot != slot);

      // The bounds.
      if (state == STATE_STOP || state == STATE_HALT || state == STATE_ADMIT)
        assert (age <= 9 && held >= age && (age < 9 || stopped_reg));
      if (state == STATE_REST) assert (age <= 3);
      if (state == STATE_WALK) assert (walked - pauses == clear_slot_reg - walk_first);

      // A finished rank stays finished; the job ends when all ranks have.
      if (running_was && is_set_up && set_up_was) begin
        assert ((finished_was & ~its_finished) == 0);
        assert ((finished_ranks_were & ~its_finished_ranks) == 0);
      end
      if (!is_set_up && (!its_flush || state != STATE_DRAIN || age != 0))
        assert (its_finished == 0 && its_finished_ranks == 0);
`ifdef AGG_PARENT
      // A tree job ends when its parent has answered, and that comes after all have finished.
      assert (finished_port[PORTS*watched+:PORTS] == its_finished && tree_done == tree_done_reg);
      if (is_set_up && its_done) assert (is_tree && all_finish);
      if (running_was && is_set_up && set_up_was) assert (its_done == (done_was || answer_was));
      if (!is_set_up && (!its_flush || state != STATE_DRAIN || age != 0)) assert (!its_done);
`endif
      if (running_was && set_up_was && !is_set_up && all_done_was && !link_was && !link_down)
        assert (!drop_statuses[watched]);

      // A job is set up only with a reply, to a requester still connected, and as requested.
      if (running_was && is_set_up && !set_up_was)
        assert (op_done && op_valid || link_was || link_down);
      if (op_done && op_valid && op_commit && op_code == CODE_DONE && is_op &&
          !link_down && !link_was) begin
        assert (is_set_up && epoch_reg[16*watched+:16] == op_epoch);
        assert (first_reg[32*watched+:32] == op_first);
        assert ({48'd0, chunk_reg[16*watched+:16]} == op_chunk);
        assert ({31'd0, partial_reg[watched], deadline_reg[32*watched+:32]} == op_deadline);
        assert ({{64 - SLOT_BITS{1'b0}}, its_window} == op_window);
        assert ({{64 - PORTS{1'b0}}, its_member} == op_ports);
      end
      if (op_done && op_valid && op_code == CODE_NO_SLOTS && op_commit && !link_was && !link_down &&
          (slot & op_mask) == 0)
        assert (slot_taken);

      if (valid_reg[rival])
        assert ((rival_base & rival_mask) == 0 && (rival_mask & (rival_mask + 1'b1)) == 0);

      // States.
      if (counts_cycles) assert (cycle_reg == (age > 3 ? 3 : age));
      if (!counts_cycles && age != 0) assert (cycle_reg == 0);
      assert (hold_commits == (state == STATE_STOP || state == STATE_HALT ||
          state == STATE_WALK || state == STATE_REST || state == STATE_RANKS ||
          state == STATE_ADMIT || (state == STATE_DRAIN && quiet_reg)));
      assert (at_reg == ONE_STATE << state);
      assert (clear == (state == STATE_WALK && !reduced));
      if (hold_commits && stopped_reg) assert (idle_was && held >= 4);
      if (state == STATE_WALK || state == STATE_REST || state == STATE_RANKS)
        assert (idle_was && held >= 5);
      if (stopped_reg && !(set_up_was && !is_set_up) && !ending)
        assert (!hold_commits || all_finished_reg[watched] == all_done);
      assert (any_finished_reg == |all_finished_reg);
      if (any_finished_reg) assert (all_finished_reg[finished_job_reg]);
      if (all_finished_reg[watched]) assert (finished_job_reg <= watched);
      if (all_finished_reg[watched])
        assert (is_set_up || (state == STATE_DRAIN && age == 0 && its_flush));
      if (ending) begin
        assert (quiet_reg ? &flush_reg && valid_reg == 0 :
            flush_reg == ONE_JOB << job_reg && !valid_reg[job_reg]);
        if (its_flush && (state == STATE_HALT || state == STATE_WALK)) assert (has_drained);
        if (state != STATE_REST && !quiet_reg) begin
          assert ((job_base & job_mask) == 0 && (job_mask & (job_mask + 1'b1)) == 0);
          if (is_set_up) assert (((its_base ^ job_base) & ~(its_mask | job_mask)) != 0);
          if (valid_reg[rival]) assert (((rival_base ^ job_base) & ~(rival_mask | job_mask)) != 0);
        end
        if (state != STATE_DRAIN || age != 0) begin
          assert (last_slot_reg == walk_last || state == STATE_REST);
          if (state == STATE_WALK)
            assert (clear_slot_reg >= walk_first && clear_slot_reg <= walk_last);
            else assert (clear_slot_reg == walk_first || state == STATE_REST);
        end
        if (state == STATE_REST) assert (rest >= age);
      end else assert (flush_reg == 0 && !quiet_reg);
      if (state != STATE_WALK && state != STATE_REST) assert (rest >= 4);
      if (sets_up_reg != 0)
        assert (state == STATE_RANKS && age == 0 && sets_up_reg == ONE_JOB << job_reg);
      assert (ranks_start_reg == (sets_up_reg != 0));
      if (state == STATE_PLACE || gives) assert (set_up_reg);
      if (gives) assert (!valid_reg[job_reg] && !complete_reg[job_reg]);
      if (state != STATE_IDLE && asked) begin
        assert (op_valid && !done_reg && code_reg == CODE_DONE && set_up_reg == op_commit);
        assert (mask_next_reg == op_mask || (state == STATE_PLACE && age == 0));
        if (state != STATE_PLACE && state != STATE_STOP && !op_all)
          assert (job_reg == op_index && !quiet_reg);
        if (op_abort && state == STATE_STOP) assert (valid_reg[op_index]);
        if (set_up_reg) begin
          assert (fits);
`ifdef AGG_PARENT
          assert (tree_parent && tree_ranks && !(tree_nested && op_deadline[32]));
`endif
          if (!given) assert (fresh);
        end
        if (set_up_reg && state != STATE_PLACE) begin
          assert ((place_reg & op_mask) == 0);
          if (!is_op && is_set_up) assert (((place_reg ^ its_base) & ~(op_mask | its_mask)) != 0);
          if (is_op && valid_reg[rival])
            assert (((place_reg ^ rival_base) & ~(op_mask | rival_mask)) != 0);
        end
        if (given)
          assert (!is_op || its == {1'b1, op_deadline[32:0], op_epoch, op_chunk[15:0], op_first,
              op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1, op_window[SLOT_BITS-1:0], op_mask,
              place_reg});
        if (given && is_op) assert (its_member == op_ports);
        if (given) assert (job_base == place_reg && job_mask == op_mask);
      end

`ifdef AGG_PARENT
      cover (is_set_up && is_tree && all_finish && !its_done);
      cover (complete_reg[watched] && is_tree);
`else
      cover (is_set_up && valid_reg[rival] && its_base != 0 && its_window == 1);
      cover (op_done && op_code == CODE_NO_SLOTS);
      cover (its_flush && !drained[watched] && valid_reg[rival]);
      cover (quiet_reg && link_down && set_up_was);
      cover (complete_reg[watched] && its_finished == 0);
      cover (clear && pauses != 0 && !quiet_reg);
`endif
    end
  end
`endif

endmodule

`default_nettype wire
