// The jobs' lives: sets them up, ends them, and holds what each was set up with.
//
// An operation (commit, abort, end of all) stands at op_* until op_done, with its code. Of a commit
// everything is checked first, in the order of the specification. Then it is given slots: twice its
// window of them, from a multiple of that on, the first where no other job's are; a cycle for each
// place that is looked at. Then the running job of its number is ended and the new one set up.
//
// A job ends by an operation, by the link going down, or when all its ranks have finished. Then its
// bit of flush is high, for one cycle at least and until what is being reduced of it has drained,
// and its slots stand in flush_slots; other jobs run on. When all jobs end at once, by the link or by
// an operation, quiet is high beside flush: no packet is to be judged. Statuses of a job that ends are
// dropped, but when all have finished: their answers are among them. hold is high whenever a job ends
// or is set up. A link that goes down in the middle of an operation takes it with it: no job is set up,
// and op_* need not hold any longer.
//
// What is known of the jobs stands in vectors, job 0 in the lowest bits. Slots, window and chunk of a
// job hold until it has drained. Not done here: who owns the card (agg_registers).

`default_nettype none

module agg_jobs #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS = 1,  // at once: a power of two
    parameter integer JOB_BITS = 1,  // of a job's number, at least 1
    parameter integer CHUNK = 256,  // most elements in a chunk
    parameter integer WINDOW = 8,  // most chunks in a window; the card has twice as many slots
    parameter integer SLOT_BITS = 4,  // of a slot's number
    parameter integer INDEX_BITS = 4,  // of a beat's number in its chunk
    parameter integer LANE_BITS = 4  // log2 of the lanes
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // Operations
    input wire op_valid,
    input wire op_commit,  // set up
    input wire op_abort,  // end one, if its epoch is op_epoch; else: end all
    input wire [7:0] op_job,
    input wire [15:0] op_epoch,
    input wire [31:0] op_first,
    input wire [63:0] op_ports,
    input wire [63:0] op_chunk,
    input wire [63:0] op_window,
    output wire op_done,
    output wire [7:0] op_code,

    // From the slots
    input wire                finish,
    input wire [JOB_BITS-1:0] finish_job,
    input wire [   PORTS-1:0] finish_bit,  // the rank that has finished
    input wire [    JOBS-1:0] drained,     // nothing of the job is being reduced

    // What ends, and what begins
    output wire [          JOBS-1:0] flush,
    output wire [(1<<SLOT_BITS)-1:0] flush_slots,
    output wire                      quiet,
    output wire                      hold,
    output wire [          JOBS-1:0] drop_statuses,
    output wire [          JOBS-1:0] sets_up,        // a job is set up, the last one forgotten

    // The jobs
    output wire [           JOBS-1:0] job_valid,
    output wire [           JOBS-1:0] job_complete,  // the last one ended because all had finished
    output wire [           JOBS-1:0] job_ever,      // an epoch was ever set
    output wire [        16*JOBS-1:0] job_epoch,
    output wire [        16*JOBS-1:0] job_chunk,     // elements
    output wire [INDEX_BITS*JOBS-1:0] job_last,      // number of a chunk's last beat
    output wire [ SLOT_BITS*JOBS-1:0] job_window,    // chunks
    output wire [ SLOT_BITS*JOBS-1:0] slot_mask,     // twice the window, less 1
    output wire [ SLOT_BITS*JOBS-1:0] slot_base,     // first slot
    output wire [        32*JOBS-1:0] job_first,     // first VID
    output wire [     PORTS*JOBS-1:0] job_finished,  // ranks that have finished
    output wire [     PORTS*JOBS-1:0] member,        // by port
    output wire [   8*PORTS*JOBS-1:0] rank_of_port
);

  `include "zwire.vh"

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [JOBS-1:0] ONE_JOB = 1;

  localparam [1:0] STATE_IDLE = 2'd0;
  localparam [1:0] STATE_ALLOT = 2'd1;  // slots are sought for a new job
  localparam [1:0] STATE_FLUSH = 2'd2;  // the old one drains
  localparam [1:0] STATE_RANKS = 2'd3;  // the new one's ranks are given out

  localparam [63:0] MOST_CHUNK = {32'd0, CHUNK};
  localparam [63:0] MOST_WINDOW = {32'd0, WINDOW};
  localparam [63:0] LANES = 64'd1 << LANE_BITS;

  reg [1:0] state_reg;
  reg [JOBS-1:0] flush_reg;  // jobs that end
  reg [JOB_BITS-1:0] flush_job_reg;  // the one, if it is not all
  reg flush_all_reg;
  reg flush_slots_reg;  // the one was set up, so it has slots
  reg set_up_reg;  // a new job follows the flush
  reg reply_reg;  // an operation waits for its answer
  reg keep_statuses_reg;
  reg done_reg;
  reg [7:0] code_reg;
  reg [SLOT_BITS-1:0] place_reg;  // where slots are sought

  reg [JOBS-1:0] valid_reg, complete_reg, ever_reg;
  reg [16*JOBS-1:0] epoch_reg;
  reg [PORTS*JOBS-1:0] ports_reg;
  reg [16*JOBS-1:0] chunk_reg;
  reg [INDEX_BITS*JOBS-1:0] last_reg;
  reg [SLOT_BITS*JOBS-1:0] window_reg;
  reg [SLOT_BITS*JOBS-1:0] mask_reg;
  reg [SLOT_BITS*JOBS-1:0] base_reg;
  reg [32*JOBS-1:0] first_reg;
  reg [PORTS*JOBS-1:0] finished_reg;

  // -- Checks -------------------------------------------------------------------------------------

  wire [7:0] op_beyond = op_job >> (JOBS == 1 ? 0 : JOB_BITS);  // 0 where there is such a job
  wire [JOB_BITS-1:0] op_index = JOBS == 1 ? {JOB_BITS{1'b0}} : op_job[JOB_BITS-1:0];

  wire [15:0] epoch_now = epoch_reg[16*op_index+:16];
  wire [63:0] ports_now = {{64 - PORTS{1'b0}}, ports_reg[PORTS*op_index+:PORTS]};
  wire [63:0] chunk_now = {48'd0, chunk_reg[16*op_index+:16]};
  wire [63:0] window_now = {{64 - SLOT_BITS{1'b0}}, window_reg[SLOT_BITS*op_index+:SLOT_BITS]};
  wire [31:0] first_now = first_reg[32*op_index+:32];
  wire valid_now = valid_reg[op_index];

  wire running = valid_now && op_epoch == epoch_now;
  wire same = op_ports == ports_now && op_chunk == chunk_now && op_window == window_now &&
      op_first == first_now;
  wire [15:0] newer = op_epoch - epoch_now;
  wire stale = ever_reg[op_index] && (newer == 16'd0 || newer[15]);
  wire ports_good = op_ports != 64'd0 && (op_ports >> PORTS) == 64'd0;
  wire chunk_good = op_chunk != 64'd0 && op_chunk <= MOST_CHUNK &&
      (op_chunk & (LANES - 64'd1)) == 64'd0;
  wire window_good = op_window != 64'd0 && op_window <= MOST_WINDOW &&
      (op_window & (op_window - 64'd1)) == 64'd0;

  reg [7:0] op_check;  // CODE_DONE when nothing stands against it

  always @* begin
    op_check = CODE_DONE;
    if (op_commit) begin
      if (op_beyond != 8'd0) op_check = CODE_BAD_JOB;
      else if (running && !same) op_check = CODE_EPOCH_IN_USE;
      else if (running) op_check = CODE_DONE;
      else if (stale) op_check = CODE_STALE_EPOCH;
      else if (!ports_good) op_check = CODE_BAD_PORTS;
      else if (!chunk_good) op_check = CODE_BAD_CHUNK;
      else if (!window_good) op_check = CODE_BAD_WINDOW;
    end else if (op_abort) begin
      if (op_beyond != 8'd0) op_check = CODE_BAD_JOB;
      else if (valid_now && op_epoch != epoch_now) op_check = CODE_BAD_EPOCH;
    end
  end

  wire op_all = !op_commit && !op_abort;
  wire op_starts = op_valid && !done_reg;
  wire op_changes = op_check == CODE_DONE &&
      (op_commit ? !running : op_abort ? valid_now : |valid_reg);

  // -- Slots for a new job ------------------------------------------------------------------------

  wire [SLOT_BITS-1:0] new_window = op_window[SLOT_BITS-1:0];
  wire [SLOT_BITS-1:0] new_mask = (new_window << 1) - 1'b1;
  wire [SLOT_BITS-1:0] next_place = (place_reg | new_mask) + 1'b1;  // 0 behind the last one

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

  wire [PORTS*JOBS-1:0] job_ranks;  // a bit for every rank there is
  reg [JOBS-1:0] all_finished;
  reg [JOB_BITS-1:0] finished_job;  // the lowest of them
  integer j;

  always @* begin
    finished_job = {JOB_BITS{1'b0}};
    for (j = JOBS - 1; j >= 0; j = j - 1) begin
      all_finished[j] = valid_reg[j] && finished_reg[PORTS*j+:PORTS] == job_ranks[PORTS*j+:PORTS];
      if (all_finished[j]) finished_job = j[JOB_BITS-1:0];
    end
  end

  // -- States -------------------------------------------------------------------------------------

  wire asked = reply_reg && !link_down;  // who began the operation is still there
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
      .job         (op_index),
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

      default: begin
        if (ranks_done) begin
          state_reg           <= STATE_IDLE;
          valid_reg[op_index] <= asked;
          done_reg            <= asked;
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
      finished_reg      <= {PORTS * JOBS{1'b0}};
    end
  end

  // -- What ends ----------------------------------------------------------------------------------

  wire flushes = state_reg == STATE_FLUSH;
  wire [SLOT_BITS-1:0] flush_mask = mask_reg[SLOT_BITS*flush_job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] flush_base = base_reg[SLOT_BITS*flush_job_reg+:SLOT_BITS];

  reg [SLOTS-1:0] its_slots;
  integer s;

  always @* begin
    for (s = 0; s < SLOTS; s = s + 1) begin
      its_slots[s] = flush_all_reg ||
          (flush_slots_reg && (s[SLOT_BITS-1:0] & ~flush_mask) == flush_base);
    end
  end

  assign op_done       = done_reg;
  assign op_code       = code_reg;
  assign flush         = flushes ? flush_reg : {JOBS{1'b0}};
  assign flush_slots   = flushes ? its_slots : {SLOTS{1'b0}};
  assign quiet         = flushes && flush_all_reg;
  assign hold          = state_reg != STATE_IDLE;
  assign drop_statuses = {JOBS{link_down}} | (keep_statuses_reg ? {JOBS{1'b0}} : flush);
  assign sets_up       = ranks_start ? ONE_JOB << op_index : {JOBS{1'b0}};
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

endmodule

`default_nettype wire
