// Sets up jobs, ends them, and holds their configuration.
//
// An operation (commit, abort, end of all) is requested on op_*, stable until op_done, with the
// reply in op_code. For a commit, all checks are made first, one cycle before it starts, in the
// order of the specification. Then slots are allotted: twice the window, aligned to that size, at
// the first place that no other job uses; one cycle for each place tried. Then the running job with
// this number ends, and the new one is set up.
//
// A job ends by an operation, when the link goes down, or when all its ranks have finished. Its bit
// of flush is then high, for at least one cycle and until its reductions have drained, with its
// slots in flush_slots; other jobs keep running. When all jobs end at once, by the link or an
// operation, quiet is high together with flush: no packet may be judged. The statuses of an ending
// job are dropped unless all ranks have finished: then they include the answers. hold is high while
// a job ends or is set up. A link that goes down cancels the operation: no job is set up, and op_*
// need not be stable. link_down stays high until hold has been low for a while (agg_link_session);
// by then all jobs have ended.
//
// An evicted member keeps its rank and is no longer waited for, not even to finish. Vectors have
// job 0 in the lowest bits. Slots, window and chunk of a job are valid until it has drained. Not
// done here: ownership of the card (agg_registers).

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
    parameter integer LANE_BITS = 4  // log2 of the lanes
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
    output wire op_done,
    output wire [7:0] op_code,

    // From agg_slots
    input wire                finish,
    input wire [JOB_BITS-1:0] finish_job,
    input wire [   PORTS-1:0] finish_bit,  // rank that has finished
    input wire [    JOBS-1:0] drained,     // no reduction of the job is under way
    input wire [   PORTS-1:0] evict,       // ports to evict
    input wire [JOB_BITS-1:0] evict_job,   // from this job
    input wire [   PORTS-1:0] evict_ranks, // its evicted ranks, these included

    // Ends and beginnings
    output wire [          JOBS-1:0] flush,
    output wire [(1<<SLOT_BITS)-1:0] flush_slots,
    output wire                      quiet,
    output wire                      hold,
    output wire [          JOBS-1:0] drop_statuses,
    output wire [          JOBS-1:0] sets_up,        // a job is set up, its predecessor forgotten
    output wire [      JOB_BITS-1:0] sets_up_job,    // that job, until cleared
    input  wire                      cleared,        // its predecessor's counts are cleared

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

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [JOBS-1:0] ONE_JOB = 1;

  localparam [2:0] STATE_IDLE = 3'd0;
  localparam [2:0] STATE_ALLOT = 3'd1;  // find slots for the new job
  localparam [2:0] STATE_FLUSH = 3'd2;  // wait for the old job to drain
  localparam [2:0] STATE_RANKS = 3'd3;  // assign ranks to the new job
  localparam [2:0] STATE_CLEAR = 3'd4;  // clear the counts of the old job

  localparam [63:0] MOST_CHUNK = {32'd0, CHUNK};
  localparam [63:0] MOST_WINDOW = {32'd0, WINDOW};
  localparam [63:0] LANES = 64'd1 << LANE_BITS;

  reg [2:0] state_reg;
  reg [JOBS-1:0] flush_reg;  // ending jobs
  reg [JOB_BITS-1:0] flush_job_reg;  // the ending job unless all end; the job being set up
  reg flush_all_reg;
  reg flush_slots_reg;  // the ending job was set up, so it has slots
  reg set_up_reg;  // a new job follows the flush
  reg reply_reg;  // an operation waits for its reply
  reg keep_statuses_reg;
  reg done_reg;
  reg [7:0] code_reg;
  reg [SLOT_BITS-1:0] place_reg;  // candidate place for slots

  reg [JOBS-1:0] valid_reg, complete_reg, ever_reg;
  reg [16*JOBS-1:0] epoch_reg;
  reg [PORTS*JOBS-1:0] ports_reg;
  reg [16*JOBS-1:0] chunk_reg;
  reg [INDEX_BITS*JOBS-1:0] last_reg;
  reg [SLOT_BITS*JOBS-1:0] window_reg;
  reg [SLOT_BITS*JOBS-1:0] mask_reg;
  reg [SLOT_BITS*JOBS-1:0] base_reg;
  reg [32*JOBS-1:0] first_reg;
  reg [33*JOBS-1:0] deadline_reg;  // {partial sums, cycles}
  reg [PORTS*JOBS-1:0] finished_reg;
  reg [PORTS*JOBS-1:0] evicted_reg, evicted_ranks_reg;

  // -- Checks -------------------------------------------------------------------------------------

  wire [7:0] op_beyond = op_job >> (JOBS == 1 ? 0 : JOB_BITS);  // 0 if the job exists
  wire [JOB_BITS-1:0] op_index = JOBS == 1 ? {JOB_BITS{1'b0}} : op_job[JOB_BITS-1:0];

  wire [15:0] epoch_now = epoch_reg[16*op_index+:16];
  wire [63:0] ports_now = {{64 - PORTS{1'b0}}, ports_reg[PORTS*op_index+:PORTS]};
  wire [63:0] chunk_now = {48'd0, chunk_reg[16*op_index+:16]};
  wire [63:0] window_now = {{64 - SLOT_BITS{1'b0}}, window_reg[SLOT_BITS*op_index+:SLOT_BITS]};
  wire [31:0] first_now = first_reg[32*op_index+:32];
  wire [63:0] deadline_now = {31'd0, deadline_reg[33*op_index+:33]};
  wire valid_now = valid_reg[op_index];

  wire running = valid_now && op_epoch == epoch_now;  // already set up, with this epoch
  wire same = op_ports == ports_now && op_chunk == chunk_now && op_window == window_now &&
      op_deadline == deadline_now && op_first == first_now;
  wire [15:0] newer = op_epoch - epoch_now;
  wire other_epoch = op_epoch != epoch_now;
  wire stale = ever_reg[op_index] && (newer == 16'd0 || newer[15]);
  wire ports_good = op_ports != 64'd0 && (op_ports >> PORTS) == 64'd0;
  wire chunk_good = op_chunk != 64'd0 && op_chunk <= MOST_CHUNK &&
      (op_chunk & (LANES - 64'd1)) == 64'd0;
  wire window_good = op_window != 64'd0 && op_window <= MOST_WINDOW &&
      (op_window & (op_window - 64'd1)) == 64'd0;
  wire deadline_good = (op_deadline >> 33) == 64'd0 &&
      !(op_deadline[32] && op_deadline[31:0] == 32'd0);

  // Results of the checks one cycle ago, for an operation that was pending while idle
  reg checked_reg;
  reg beyond_reg, running_reg, same_reg, other_epoch_reg, stale_reg;
  reg ports_good_reg, chunk_good_reg, window_good_reg, deadline_good_reg;

  always @(posedge clk) begin
    checked_reg       <= state_reg == STATE_IDLE && op_valid && !done_reg && !link_down && !rst;
    beyond_reg        <= op_beyond != 8'd0;
    running_reg       <= running;
    same_reg          <= same;
    other_epoch_reg   <= other_epoch;
    stale_reg         <= stale;
    ports_good_reg    <= ports_good;
    chunk_good_reg    <= chunk_good;
    window_good_reg   <= window_good;
    deadline_good_reg <= deadline_good;
  end

  reg [7:0] op_check;  // CODE_DONE if all checks pass

  always @* begin
    op_check = CODE_DONE;
    if (op_commit) begin
      if (beyond_reg) op_check = CODE_BAD_JOB;
      else if (running_reg && !same_reg) op_check = CODE_EPOCH_IN_USE;
      else if (running_reg) op_check = CODE_DONE;
      else if (stale_reg) op_check = CODE_STALE_EPOCH;
      else if (!ports_good_reg) op_check = CODE_BAD_PORTS;
      else if (!chunk_good_reg) op_check = CODE_BAD_CHUNK;
      else if (!window_good_reg) op_check = CODE_BAD_WINDOW;
      else if (!deadline_good_reg) op_check = CODE_BAD_DEADLINE;
    end else if (op_abort) begin
      if (beyond_reg) op_check = CODE_BAD_JOB;
      else if (valid_now && other_epoch_reg) op_check = CODE_BAD_EPOCH;
    end
  end

  wire op_all = !op_commit && !op_abort;
  wire op_starts = op_valid && !done_reg && checked_reg && !link_down;
  wire op_changes = op_check == CODE_DONE &&
      (op_commit ? !running_reg : op_abort ? valid_now : |valid_reg);

  // -- Slots for a new job ------------------------------------------------------------------------

  wire [SLOT_BITS-1:0] new_window = op_window[SLOT_BITS-1:0];
  wire [SLOT_BITS-1:0] new_mask = (new_window << 1) - 1'b1;
  wire [SLOT_BITS-1:0] next_place = (place_reg | new_mask) + 1'b1;  // 0 after the last place

  reg taken;  // another job has slots there
  integer other;

  always @* begin
    taken = 1'b0;
    for (other = 0; other < JOBS; other = other + 1) begin
      if (valid_reg[other] && other[JOB_BITS-1:0] != op_index &&
          ((place_reg ^ base_reg[SLOT_BITS*other+:SLOT_BITS]) &
           ~(new_mask | mask_reg[SLOT_BITS*other+:SLOT_BITS])) == {SLOT_BITS{1'b0}})
        taken = 1'b1;
    end
  end

  // -- Jobs that all ranks have finished ----------------------------------------------------------

  wire [PORTS*JOBS-1:0] job_ranks;  // a bit for every assigned rank
  reg [JOBS-1:0] all_finished;
  reg [JOB_BITS-1:0] finished_job;  // lowest of these jobs
  integer j;

  always @* begin
    finished_job = {JOB_BITS{1'b0}};
    for (j = JOBS - 1; j >= 0; j = j - 1) begin
      all_finished[j] = valid_reg[j] && (job_ranks[PORTS*j+:PORTS] & ~finished_reg[PORTS*j+:PORTS] &
                                         ~evicted_ranks_reg[PORTS*j+:PORTS]) == {PORTS{1'b0}};
      if (all_finished[j]) finished_job = j[JOB_BITS-1:0];
    end
  end

  // -- States -------------------------------------------------------------------------------------

  wire asked = reply_reg && !link_down;  // the requester is still connected
  wire follows = set_up_reg && asked;  // a new job follows
  wire flushed = &(drained | ~flush_reg);
  wire ranks_start = state_reg == STATE_FLUSH && flushed && follows;
  wire ranks_done;

  agg_ranks #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS)
  ) u_ranks (
      .clk         (clk),
      .rst         (rst),
      .start       (ranks_start),
      .job         (flush_job_reg),
      .ports       (op_ports[PORTS-1:0]),
      .done        (ranks_done),
      .member      (member),
      .rank_of_port(rank_of_port),
      .ranks       (job_ranks)
  );

  integer f;

  always @(posedge clk) begin
    done_reg <= 1'b0;
    if (finish && valid_reg[finish_job])
      finished_reg[PORTS*finish_job+:PORTS] <= finished_reg[PORTS*finish_job+:PORTS] | finish_bit;

    if (|evict) begin
      evicted_reg[PORTS*evict_job+:PORTS] <= evicted_reg[PORTS*evict_job+:PORTS] | evict;
      evicted_ranks_reg[PORTS*evict_job+:PORTS] <= evict_ranks;
    end

    case (state_reg)
      STATE_IDLE: begin
        flush_reg         <= {JOBS{1'b1}};
        flush_all_reg     <= 1'b1;
        flush_slots_reg   <= 1'b0;
        set_up_reg        <= 1'b0;
        reply_reg         <= 1'b0;
        keep_statuses_reg <= 1'b0;
        code_reg          <= op_check;
        place_reg         <= {SLOT_BITS{1'b0}};
        if (link_down && |valid_reg) begin
          state_reg    <= STATE_FLUSH;
          complete_reg <= (complete_reg & ~valid_reg) | all_finished;
          valid_reg    <= {JOBS{1'b0}};
        end else if (|all_finished) begin
          state_reg                  <= STATE_FLUSH;
          flush_reg                  <= ONE_JOB << finished_job;
          flush_job_reg              <= finished_job;
          flush_all_reg              <= 1'b0;
          flush_slots_reg            <= 1'b1;
          keep_statuses_reg          <= 1'b1;
          complete_reg[finished_job] <= 1'b1;
          valid_reg[finished_job]    <= 1'b0;
        end else if (op_starts && op_changes) begin
          state_reg  <= op_commit ? STATE_ALLOT : STATE_FLUSH;
          set_up_reg <= op_commit;
          reply_reg  <= 1'b1;
          if (op_all) begin
            valid_reg <= {JOBS{1'b0}};
          end else begin
            flush_reg       <= ONE_JOB << op_index;
            flush_job_reg   <= op_index;
            flush_all_reg   <= 1'b0;
            flush_slots_reg <= valid_now;
            if (op_abort) valid_reg[op_index] <= 1'b0;
          end
        end else if (op_starts) begin
          done_reg <= 1'b1;
        end
      end

      STATE_ALLOT: begin
        if (!asked) begin
          state_reg <= STATE_IDLE;
        end else if (!taken) begin
          state_reg           <= STATE_FLUSH;
          valid_reg[op_index] <= 1'b0;
        end else if (next_place == {SLOT_BITS{1'b0}}) begin
          state_reg <= STATE_IDLE;
          done_reg  <= 1'b1;
          code_reg  <= CODE_NO_SLOTS;
        end
        if (taken) place_reg <= next_place;
      end

      STATE_FLUSH: begin
        for (f = 0; f < JOBS; f = f + 1) begin
          if (flush_reg[f]) finished_reg[PORTS*f+:PORTS] <= {PORTS{1'b0}};
        end
        if (flushed) begin
          state_reg <= ranks_start ? STATE_RANKS : STATE_IDLE;
          done_reg  <= asked && !ranks_start;
        end
        if (ranks_start) begin
          complete_reg[op_index]                    <= 1'b0;
          evicted_reg[PORTS*op_index+:PORTS]        <= {PORTS{1'b0}};
          evicted_ranks_reg[PORTS*op_index+:PORTS]  <= {PORTS{1'b0}};
          deadline_reg[33*op_index+:33]             <= op_deadline[32:0];
          ever_reg[op_index]                        <= 1'b1;
          epoch_reg[16*op_index+:16]                <= op_epoch;
          ports_reg[PORTS*op_index+:PORTS]          <= op_ports[PORTS-1:0];
          chunk_reg[16*op_index+:16]                <= op_chunk[15:0];
          last_reg[INDEX_BITS*op_index+:INDEX_BITS] <= op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1;
          window_reg[SLOT_BITS*op_index+:SLOT_BITS] <= new_window;
          mask_reg[SLOT_BITS*op_index+:SLOT_BITS]   <= new_mask;
          base_reg[SLOT_BITS*op_index+:SLOT_BITS]   <= place_reg;
          first_reg[32*op_index+:32]                <= op_first;
        end
      end

      STATE_RANKS: if (ranks_done) state_reg <= STATE_CLEAR;

      default: begin
        if (cleared) begin
          state_reg                <= STATE_IDLE;
          valid_reg[flush_job_reg] <= asked;
          done_reg                 <= asked;
        end
      end
    endcase

    if (link_down) reply_reg <= 1'b0;
    if (rst) begin
      state_reg         <= STATE_FLUSH;
      flush_reg         <= {JOBS{1'b1}};
      flush_all_reg     <= 1'b1;
      flush_slots_reg   <= 1'b0;
      set_up_reg        <= 1'b0;
      reply_reg         <= 1'b0;
      keep_statuses_reg <= 1'b0;
      done_reg          <= 1'b0;
      valid_reg         <= {JOBS{1'b0}};
      complete_reg      <= {JOBS{1'b0}};
      ever_reg          <= {JOBS{1'b0}};
      epoch_reg         <= {16 * JOBS{1'b0}};
      chunk_reg         <= {16 * JOBS{1'b0}};
      last_reg          <= {INDEX_BITS * JOBS{1'b0}};
      window_reg        <= {JOBS{{{SLOT_BITS - 1{1'b0}}, 1'b1}}};
      mask_reg          <= {SLOT_BITS * JOBS{1'b1}};
      base_reg          <= {SLOT_BITS * JOBS{1'b0}};
      first_reg         <= {32 * JOBS{1'b0}};
      deadline_reg      <= {33 * JOBS{1'b0}};
      finished_reg      <= {PORTS * JOBS{1'b0}};
      evicted_reg       <= {PORTS * JOBS{1'b0}};
      evicted_ranks_reg <= {PORTS * JOBS{1'b0}};
    end
  end

  // -- Ends ---------------------------------------------------------------------------------------

  wire flushes = state_reg == STATE_FLUSH;
  wire [SLOT_BITS-1:0] flush_mask = mask_reg[SLOT_BITS*flush_job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] flush_base = base_reg[SLOT_BITS*flush_job_reg+:SLOT_BITS];

  // The job's slots: one bit each, starting at its first
  wire [SLOTS-1:0] above = {SLOTS{1'b1}} << flush_mask << 1;
  wire [SLOTS-1:0] one_slots = flush_slots_reg ? ~above << flush_base : {SLOTS{1'b0}};

  assign op_done       = done_reg;
  assign op_code       = code_reg;
  assign flush         = flushes ? flush_reg : {JOBS{1'b0}};
  assign flush_slots   = !flushes ? {SLOTS{1'b0}} : flush_all_reg ? {SLOTS{1'b1}} : one_slots;
  assign quiet         = flushes && flush_all_reg;
  assign hold          = state_reg != STATE_IDLE;
  assign drop_statuses = {JOBS{link_down}} | (keep_statuses_reg ? {JOBS{1'b0}} : flush);
  assign sets_up       = ranks_start ? ONE_JOB << op_index : {JOBS{1'b0}};
  assign sets_up_job   = flush_job_reg;
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
  assign job_finished  = finished_reg;
  assign job_evicted   = evicted_ranks_reg;
  assign evicted       = evicted_reg;
  assign present       = member & ~evicted_reg;

  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : g_deadline
      assign {job_partial[g], job_deadline[32*g+:32]} = deadline_reg[33*g+:33];
    end
  endgenerate

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Any job, any other job, and any slot.
  (* anyconst *) reg [JOB_BITS-1:0] watched, rival;
  (* anyconst *) reg [SLOT_BITS-1:0] slot;
  localparam integer JOB_WIDTH = 97 + PORTS + INDEX_BITS + 3 * SLOT_BITS;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  wire [JOB_WIDTH-1:0] its = {
    deadline_reg[33*watched+:33],
    epoch_reg[16*watched+:16],
    chunk_reg[16*watched+:16],
    first_reg[32*watched+:32],
    ports_reg[PORTS*watched+:PORTS],
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
  wire [8*PORTS-1:0] its_ranks = rank_of_port[8*PORTS*watched+:8*PORTS];
  wire [PORTS-1:0] its_rank_bits = job_ranks[PORTS*watched+:PORTS];
  wire [PORTS-1:0] its_finished = finished_reg[PORTS*watched+:PORTS];
  wire has_slot = (slot & ~its_mask) == its_base;
  wire is_set_up = valid_reg[watched];
  wire meet = ((its_base ^ rival_base) & ~(its_mask | rival_mask)) == 0;
  reg [JOB_WIDTH-1:0] its_were;
  reg [9*PORTS-1:0] ranks_were;
  reg [122:0] op_was;
  reg [191:0] op_rest_was;
  reg op_stays, set_up_was, flush_was, drained_was, ends, ends_was, link_was;
  reg [PORTS-1:0] finished_was;
  reg [7:0] count;  // ranks assigned to lower ports
  integer q;

  // The operation.
  wire [SLOT_BITS-1:0] op_mask = (op_window[SLOT_BITS-1:0] << 1) - 1'b1;
  wire is_op = op_index == watched;
  wire gives = state_reg == STATE_RANKS || state_reg == STATE_CLEAR;
  reg slot_taken;  // not available to its job
  integer r;

  always @* begin
    slot_taken = 1'b0;
    for (r = 0; r < JOBS; r = r + 1)
    if (valid_reg[r] && r != op_index && ((slot ^ base_reg[SLOT_BITS*r+:SLOT_BITS]) &
          ~(op_mask | mask_reg[SLOT_BITS*r+:SLOT_BITS])) == 0)
      slot_taken = 1'b1;
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    its_were <= its;
    ranks_were <= {its_member, its_ranks};
    op_was <= {op_commit, op_abort, op_job, op_epoch, op_first, op_ports};
    op_rest_was <= {op_chunk, op_window, op_deadline};
    op_stays <= !rst && op_valid && !op_done && !link_down;
    set_up_was <= is_set_up;
    flush_was <= flush[watched];
    ends_was <= is_set_up || ends;
    drained_was <= drained[watched];
    link_was <= link_down;
    finished_was <= its_finished;
    // It was set up when its end began.
    ends <= !rst && (is_set_up || ends) && !(flush[watched] && (&(drained | ~flush)));
  end

  always @* begin
    assume (rival != watched);
    if (was_reset) begin
      // agg_registers: an operation is stable until its reply, unless the link goes down.
      `PROMISED(
          !op_stays || link_down || (op_valid &&
          op_was == {op_commit, op_abort, op_job, op_epoch, op_first, op_ports} &&
          op_rest_was == {op_chunk, op_window, op_deadline}));
      `PROMISED(!(op_commit && op_abort));
    end
    if (was_reset && !rst) begin
      // A job that is set up has the requested configuration and slots of its own, and its members'
      // ranks follow the order of the ports.
      if (is_set_up) begin
        assert (ever_reg[watched] && !flush[watched] && !sets_up[watched]);
        assert (its_window != 0 && (its_window & (its_window - 1'b1)) == 0 && its_window <= WINDOW);
        assert (its_mask == 2 * its_window - 1 && (its_base & its_mask) == 0);
        assert (its_member != 0 && its_member == ports_reg[PORTS*watched+:PORTS]);
        if (valid_reg[rival]) assert (!meet);
        assert (!flush_slots[slot] || !has_slot);
        assert (!quiet);
      end

      assert (state_reg <= STATE_CLEAR);
      if (checked_reg && state_reg == STATE_IDLE && op_valid && !link_down) begin
        assert (beyond_reg == (op_beyond != 0) && running_reg == running && same_reg == same);
        assert (other_epoch_reg == other_epoch && stale_reg == stale);
        assert (ports_good_reg == ports_good && chunk_good_reg == chunk_good);
        assert (window_good_reg == window_good && deadline_good_reg == deadline_good);
      end
      if (is_set_up || (gives && watched == flush_job_reg)) begin
        count = 0;
        for (q = 0; q < PORTS; q = q + 1) begin
          if (its_member[q]) begin
            assert (its_ranks[8*q+:8] == count);
            count = count + 1;
          end
        end
        for (q = 0; q < PORTS; q = q + 1) assert (its_rank_bits[q] == (q < count));
      end

      // From its end until it has drained, its bit of flush is high, its slots are in flush_slots,
      // and its configuration is still valid.
      if (running_was) begin
        if (set_up_was && !is_set_up) assert (flush[watched]);
        if (flush_was && !drained_was) assert (flush[watched]);
        if (flush_was) assert (!is_set_up);
        if (flush_was && ends_was && valid_reg[rival]) assert (!meet);
        assert (its == its_were || (flush_was && drained_was && !set_up_was));
        assert ({its_member, its_ranks} == ranks_were || (!set_up_was && !is_set_up));
        if (its != its_were) assert (!is_set_up && !flush[watched]);
      end
      if (ends && !is_set_up) assert (flush[watched]);
      if (valid_reg[rival] || (gives && rival == flush_job_reg))
        assert ((rival_base & rival_mask) == 0 && (rival_mask & (rival_mask + 1'b1)) == 0);
      if (flushes && flush_slots_reg)
        assert ((flush_base & flush_mask) == 0 && (flush_mask & (flush_mask + 1'b1)) == 0);
      if (flushes && flush_slots_reg && is_set_up)
        assert (((its_base ^ flush_base) & ~(its_mask | flush_mask)) != 0);
      if (ends && !is_set_up && has_slot) assert (flush_slots[slot]);

      // A finished rank stays finished; the job ends when all ranks have.
      if (running_was && is_set_up && set_up_was) begin
        assert ((finished_was & ~its_finished) == 0);
      end
      if (!is_set_up && !flush[watched] && !flush_was && running_was) assert (its_finished == 0);
      assert ((its_finished & ~finished_was) == 0 || !running_was || set_up_was);

      // A job is set up only with a reply, to a requester still connected, and as requested.
      if (running_was && is_set_up && !set_up_was)
        assert (op_done && op_valid || link_was || link_down);
      if (op_done && op_valid && op_commit && op_code == CODE_DONE && is_op &&
          !link_down && !link_was) begin
        assert (is_set_up && epoch_reg[16*watched+:16] == op_epoch);
        assert (first_reg[32*watched+:32] == op_first);
        assert ({48'd0, chunk_reg[16*watched+:16]} == op_chunk);
        assert ({31'd0, deadline_reg[33*watched+:33]} == op_deadline);
        assert ({{64 - SLOT_BITS{1'b0}}, its_window} == op_window);
        assert ({{64 - PORTS{1'b0}}, its_member} == op_ports);
      end

      // Sequence of an operation.
      if (state_reg == STATE_FLUSH && flush_all_reg) assert (&flush_reg && valid_reg == 0);
      if (state_reg == STATE_FLUSH && !flush_all_reg)
        assert (flush_reg == ONE_JOB << flush_job_reg && !valid_reg[flush_job_reg]);
      if (state_reg == STATE_ALLOT || gives) assert (set_up_reg);
      if (state_reg != STATE_IDLE && asked)
        assert (op_valid && !done_reg && code_reg == CODE_DONE && (set_up_reg || !op_commit));
      if (set_up_reg && state_reg != STATE_IDLE && asked) begin
        assert (op_commit && op_beyond == 0 && !running);
        assert (ports_good && chunk_good && window_good && deadline_good);
        if (!gives) assert (!stale);
        assert (!flush_all_reg && flush_job_reg == op_index && (place_reg & op_mask) == 0);
      end
      if (follows && state_reg == STATE_FLUSH) begin
        if (valid_reg[rival]) assert (((place_reg ^ rival_base) & ~(op_mask | rival_mask)) != 0);
        if (is_set_up) assert (((place_reg ^ its_base) & ~(op_mask | its_mask)) != 0);
      end
      if (gives) begin
        assert (!valid_reg[flush_job_reg]);
        if (rival == flush_job_reg && is_set_up) assert (!meet);
        if (watched == flush_job_reg) begin
          assert (its_window != 0 && (its_window & (its_window - 1'b1)) == 0);
          assert (its_window <= WINDOW && its_mask == 2 * its_window - 1);
          assert ((its_base & its_mask) == 0 && ever_reg[watched]);
          assert (its_member == ports_reg[PORTS*watched+:PORTS] && its_member != 0);
          if (valid_reg[rival]) assert (!meet);
          if (asked)
            assert (its == {op_deadline[32:0], op_epoch, op_chunk[15:0], op_first,
              op_ports[PORTS-1:0],
              op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1, op_window[SLOT_BITS-1:0], op_mask, its_base});
        end
      end

      // CODE_NO_SLOTS only if no place is free.
      if (state_reg == STATE_ALLOT && asked && (slot & op_mask) == 0 && slot < place_reg)
        assert (slot_taken);
      if (op_done && op_valid && op_code == CODE_NO_SLOTS && op_commit && !link_was && !link_down &&
          (slot & op_mask) == 0)
        assert (slot_taken);

      cover (is_set_up && valid_reg[rival] && its_base != 0 && its_window == 1);
      cover (op_done && op_code == CODE_NO_SLOTS);
      cover (flush[watched] && !drained[watched] && valid_reg[rival]);
      cover (quiet && link_down && ends);
      cover (complete_reg[watched] && its_finished == 0 && valid_reg[rival]);
    end
  end
`endif

endmodule

`default_nettype wire
