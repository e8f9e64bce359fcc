// The job's life: sets it up, ends it, and holds what it was set up with.
//
// An operation (commit, abort, end) stands at op_* until op_done, with its code. Of a commit
// everything is checked first, in the order of the specification; then a running job is ended and
// the new one set up.
//
// A job ends by an operation, by its link going down, or when all ranks have finished. Then flush
// is high, for one cycle at least and until what is being reduced has drained; hold is high from
// then until a new job, if that is why, may take data. Statuses that wait are dropped, but when
// all have finished: their answers are among them. Ranks are given out anew only while nothing
// leaves by them (keep_ranks low). A link that goes down in the middle of an operation takes it
// with it: the old job ends, no new one is set up, and op_* need not hold any longer.
//
// Not done here: who owns the card (agg_registers).

`default_nettype none

module agg_jobs #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer CHUNK = 256,  // most elements in a chunk
    parameter integer WINDOW = 8,  // most chunks in a window
    parameter integer SLOT_BITS = 4,  // of a slot's number
    parameter integer INDEX_BITS = 4,  // of a beat's number in its chunk
    parameter integer LANE_BITS = 4  // log2 of the lanes
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // Operations
    input wire op_valid,
    input wire op_commit,  // set up; else the job is ended: if its epoch is op_epoch (abort)
    input wire op_abort,  // or whatever it is
    input wire [7:0] op_job,
    input wire [15:0] op_epoch,
    input wire [31:0] op_first,
    input wire [63:0] op_ports,
    input wire [63:0] op_chunk,
    input wire [63:0] op_window,
    output wire op_done,
    output wire [7:0] op_code,

    // From the slots
    input wire             finish,
    input wire [PORTS-1:0] finish_bit,  // the rank that has finished
    input wire             drained,     // nothing is being reduced

    input wire keep_ranks,  // a result leaves by the ranks as they are

    // The job
    output wire                  flush,
    output wire                  hold,
    output wire                  drop_statuses,
    output wire                  sets_up,        // a job is set up, the last one forgotten
    output wire                  job_valid,
    output wire                  job_complete,   // the last one ended because all had finished
    output wire                  job_ever,       // an epoch was ever set
    output wire [          15:0] job_epoch,
    output wire [          15:0] job_chunk,      // elements
    output wire [INDEX_BITS-1:0] job_last,       // number of a chunk's last beat
    output wire [ SLOT_BITS-1:0] job_window,     // chunks
    output wire [ SLOT_BITS-1:0] slot_mask,      // twice the window, less 1
    output wire [          31:0] job_first,      // first VID
    output wire [     PORTS-1:0] job_finished,   // ranks that have finished
    output wire [     PORTS-1:0] job_ranks,      // a bit for every rank there is
    output wire [     PORTS-1:0] member,         // by port
    output wire [   8*PORTS-1:0] rank_of_port
);

  `include "zwire.vh"

  localparam [1:0] STATE_IDLE = 2'd0;
  localparam [1:0] STATE_FLUSH = 2'd1;  // the old job drains
  localparam [1:0] STATE_RANKS = 2'd2;  // the new one's ranks are given out

  localparam [63:0] MOST_CHUNK = {32'd0, CHUNK};
  localparam [63:0] MOST_WINDOW = {32'd0, WINDOW};
  localparam [63:0] LANES = 64'd1 << LANE_BITS;

  reg [1:0] state_reg;
  reg set_up_reg;  // a new job follows the flush
  reg reply_reg;  // an operation waits for its answer
  reg keep_statuses_reg;
  reg done_reg;
  reg [7:0] code_reg;

  reg valid_reg, complete_reg, ever_reg;
  reg [15:0] epoch_reg;
  reg [PORTS-1:0] ports_reg;
  reg [15:0] chunk_reg;
  reg [INDEX_BITS-1:0] last_reg;
  reg [SLOT_BITS-1:0] window_reg;
  reg [SLOT_BITS-1:0] slot_mask_reg;
  reg [31:0] first_reg;
  reg [PORTS-1:0] finished_reg;

  // -- Checks -------------------------------------------------------------------------------------

  wire [63:0] ports_now = {{64 - PORTS{1'b0}}, ports_reg};
  wire [63:0] chunk_now = {48'd0, chunk_reg};
  wire [63:0] window_now = {{64 - SLOT_BITS{1'b0}}, window_reg};

  wire running = valid_reg && op_epoch == epoch_reg;
  wire same = op_ports == ports_now && op_chunk == chunk_now && op_window == window_now &&
      op_first == first_reg;
  wire [15:0] newer = op_epoch - epoch_reg;
  wire stale = ever_reg && (newer == 16'd0 || newer[15]);
  wire ports_good = op_ports != 64'd0 && (op_ports >> PORTS) == 64'd0;
  wire chunk_good = op_chunk != 64'd0 && op_chunk <= MOST_CHUNK &&
      (op_chunk & (LANES - 64'd1)) == 64'd0;
  wire window_good = op_window != 64'd0 && op_window <= MOST_WINDOW &&
      (op_window & (op_window - 64'd1)) == 64'd0;

  reg [7:0] op_check;  // CODE_DONE when nothing stands against it

  always @* begin
    op_check = CODE_DONE;
    if (op_commit) begin
      if (op_job != 8'd0) op_check = CODE_BAD_JOB;
      else if (running && !same) op_check = CODE_EPOCH_IN_USE;
      else if (running) op_check = CODE_DONE;
      else if (stale) op_check = CODE_STALE_EPOCH;
      else if (!ports_good) op_check = CODE_BAD_PORTS;
      else if (!chunk_good) op_check = CODE_BAD_CHUNK;
      else if (!window_good) op_check = CODE_BAD_WINDOW;
    end else if (op_abort) begin
      if (op_job != 8'd0) op_check = CODE_BAD_JOB;
      else if (valid_reg && op_epoch != epoch_reg) op_check = CODE_BAD_EPOCH;
    end
  end

  wire op_starts = op_valid && !done_reg;
  wire op_changes = op_check == CODE_DONE && (op_commit ? !running : valid_reg);
  wire all_finished = finished_reg == job_ranks;

  // -- States -------------------------------------------------------------------------------------

  wire asked = reply_reg && !link_down;  // who began the operation is still there
  wire follows = set_up_reg && asked;  // a new job follows
  wire flushed = drained && !(follows && keep_ranks);
  wire ranks_start = state_reg == STATE_FLUSH && flushed && follows;
  wire ranks_done;

  agg_ranks #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS)
  ) u_ranks (
      .clk         (clk),
      .rst         (rst),
      .start       (ranks_start),
      .ports       (op_ports[PORTS-1:0]),
      .done        (ranks_done),
      .member      (member),
      .rank_of_port(rank_of_port),
      .ranks       (job_ranks)
  );

  always @(posedge clk) begin
    done_reg <= 1'b0;
    if (finish && valid_reg) finished_reg <= finished_reg | finish_bit;

    case (state_reg)
      STATE_IDLE: begin
        set_up_reg        <= 1'b0;
        reply_reg         <= 1'b0;
        keep_statuses_reg <= 1'b0;
        code_reg          <= op_check;
        if (valid_reg && (link_down || all_finished)) begin
          state_reg         <= STATE_FLUSH;
          valid_reg         <= 1'b0;
          complete_reg      <= all_finished;
          keep_statuses_reg <= all_finished;
        end else if (op_starts && op_changes) begin
          state_reg  <= STATE_FLUSH;
          valid_reg  <= 1'b0;
          set_up_reg <= op_commit;
          reply_reg  <= 1'b1;
        end else if (op_starts) begin
          done_reg <= 1'b1;
        end
      end

      STATE_FLUSH: begin
        finished_reg <= {PORTS{1'b0}};
        if (flushed) begin
          state_reg <= ranks_start ? STATE_RANKS : STATE_IDLE;
          done_reg  <= asked && !ranks_start;
        end
        if (ranks_start) begin
          complete_reg  <= 1'b0;
          ever_reg      <= 1'b1;
          epoch_reg     <= op_epoch;
          ports_reg     <= op_ports[PORTS-1:0];
          chunk_reg     <= op_chunk[15:0];
          last_reg      <= op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1;
          window_reg    <= op_window[SLOT_BITS-1:0];
          slot_mask_reg <= (op_window[SLOT_BITS-1:0] << 1) - 1'b1;
          first_reg     <= op_first;
        end
      end

      default: begin
        if (ranks_done) begin
          state_reg <= STATE_IDLE;
          valid_reg <= asked;
          done_reg  <= asked;
        end
      end
    endcase

    if (link_down) reply_reg <= 1'b0;
    if (rst) begin
      state_reg         <= STATE_FLUSH;
      set_up_reg        <= 1'b0;
      reply_reg         <= 1'b0;
      keep_statuses_reg <= 1'b0;
      done_reg          <= 1'b0;
      valid_reg         <= 1'b0;
      complete_reg      <= 1'b0;
      ever_reg          <= 1'b0;
      epoch_reg         <= 16'd0;
      chunk_reg         <= 16'd0;
      last_reg          <= {INDEX_BITS{1'b0}};
      window_reg        <= {{SLOT_BITS - 1{1'b0}}, 1'b1};
      slot_mask_reg     <= {SLOT_BITS{1'b1}};
      first_reg         <= 32'd0;
      finished_reg      <= {PORTS{1'b0}};
    end
  end

  assign op_done       = done_reg;
  assign op_code       = code_reg;
  assign flush         = state_reg == STATE_FLUSH;
  assign hold          = state_reg != STATE_IDLE;
  assign drop_statuses = link_down || (flush && !keep_statuses_reg);
  assign sets_up       = ranks_start;
  assign job_valid     = valid_reg;
  assign job_complete  = complete_reg;
  assign job_ever      = ever_reg;
  assign job_epoch     = epoch_reg;
  assign job_chunk     = chunk_reg;
  assign job_last      = last_reg;
  assign job_window    = window_reg;
  assign slot_mask     = slot_mask_reg;
  assign job_first     = first_reg;
  assign job_finished  = finished_reg;

endmodule

`default_nettype wire
