// Checks an operation on jobs: its reply, and whether it changes any job. Makes all checks of a
// commit, in the order of the specification.
//
// check is high from the operation's first cycle until it is executed; op_* and all jobs are stable
// then. Latency: checked is high, and code and changes are valid, from the fourth such cycle on.
// Cycle 1 selects the job's configuration, cycle 2 compares, cycle 3 decides. Not done here:
// whether slots are free (agg_job_places).

`default_nettype none

module agg_job_checks #(
    parameter integer PORTS = 4,
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,
    parameter integer CHUNK = 256,
    parameter integer WINDOW = 8,
    parameter integer SLOT_BITS = 4,
    parameter integer LANE_BITS = 4
) (
    input wire clk,

    input wire        check,
    input wire        op_commit,
    input wire        op_abort,
    input wire [ 7:0] op_job,
    input wire [15:0] op_epoch,
    input wire [31:0] op_first,
    input wire [63:0] op_ports,
    input wire [63:0] op_chunk,
    input wire [63:0] op_window,
    input wire [63:0] op_deadline,

    // Jobs, job 0 in the lowest bits; see agg_jobs
    input wire [          JOBS-1:0] job_valid,
    input wire [          JOBS-1:0] job_ever,
    input wire [       16*JOBS-1:0] job_epoch,
    input wire [       16*JOBS-1:0] job_chunk,
    input wire [SLOT_BITS*JOBS-1:0] job_window,
    input wire [       32*JOBS-1:0] job_first,
    input wire [       32*JOBS-1:0] job_deadline,
    input wire [          JOBS-1:0] job_partial,
    input wire [    PORTS*JOBS-1:0] member,

    output wire       checked,
    output wire [7:0] code,     // CODE_DONE if all checks pass
    output wire       changes   // a job ends or is set up; only if code is CODE_DONE
);

  `include "zwire.vh"

  localparam [63:0] MOST_CHUNK = {32'd0, CHUNK};
  localparam [63:0] MOST_WINDOW = {32'd0, WINDOW};
  localparam [63:0] LANES = 64'd1 << LANE_BITS;

  wire [7:0] op_beyond = op_job >> (JOBS == 1 ? 0 : JOB_BITS);  // 0 if the job exists
  wire [JOB_BITS-1:0] op_index = JOBS == 1 ? {JOB_BITS{1'b0}} : op_job[JOB_BITS-1:0];

  // -- First cycle: the job's configuration -------------------------------------------------------

  reg valid_reg, ever_reg, partial_reg;
  reg [15:0] epoch_reg, chunk_reg;
  reg [SLOT_BITS-1:0] window_reg;
  reg [31:0] first_reg, deadline_reg;
  reg [PORTS-1:0] member_reg;

  always @(posedge clk) begin
    valid_reg    <= job_valid[op_index];
    ever_reg     <= job_ever[op_index];
    epoch_reg    <= job_epoch[16*op_index+:16];
    chunk_reg    <= job_chunk[16*op_index+:16];
    window_reg   <= job_window[SLOT_BITS*op_index+:SLOT_BITS];
    first_reg    <= job_first[32*op_index+:32];
    deadline_reg <= job_deadline[32*op_index+:32];
    partial_reg  <= job_partial[op_index];
    member_reg   <= member[PORTS*op_index+:PORTS];
  end

  // -- Second cycle: comparisons ------------------------------------------------------------------

  wire [15:0] newer = op_epoch - epoch_reg;
  reg beyond_reg, other_epoch_reg, stale_reg, any_reg, was_valid_reg;
  reg [4:0] same_reg;  // ports, chunk, window, deadline, first VID
  reg ports_good_reg, chunk_good_reg, window_good_reg, deadline_good_reg;

  always @(posedge clk) begin
    beyond_reg <= op_beyond != 8'd0;
    any_reg <= job_valid != {JOBS{1'b0}};
    was_valid_reg <= valid_reg;
    other_epoch_reg <= op_epoch != epoch_reg;
    stale_reg <= ever_reg && (newer == 16'd0 || newer[15]);
    same_reg <= {
      op_ports == {{64 - PORTS{1'b0}}, member_reg},
      op_chunk == {48'd0, chunk_reg},
      op_window == {{64 - SLOT_BITS{1'b0}}, window_reg},
      op_deadline == {31'd0, partial_reg, deadline_reg},
      op_first == first_reg
    };
    ports_good_reg <= op_ports != 64'd0 && (op_ports >> PORTS) == 64'd0;
    chunk_good_reg <= op_chunk != 64'd0 && op_chunk <= MOST_CHUNK &&
        (op_chunk & (LANES - 64'd1)) == 64'd0;
    window_good_reg <= op_window != 64'd0 && op_window <= MOST_WINDOW &&
        (op_window[SLOT_BITS-1:0] & (op_window[SLOT_BITS-1:0] - 1'b1)) == {SLOT_BITS{1'b0}};
    deadline_good_reg <= (op_deadline >> 33) == 64'd0 &&
        !(op_deadline[32] && op_deadline[31:0] == 32'd0);
  end

  // -- Third cycle: the decision ------------------------------------------------------------------

  wire running = was_valid_reg && !other_epoch_reg;  // already set up, with this epoch
  wire same = &same_reg;
  reg [7:0] code_next, code_reg;
  reg changes_reg;

  always @* begin
    code_next = CODE_DONE;
    if (op_commit) begin
      if (beyond_reg) code_next = CODE_BAD_JOB;
      else if (running && !same) code_next = CODE_EPOCH_IN_USE;
      else if (running) code_next = CODE_DONE;
      else if (stale_reg) code_next = CODE_STALE_EPOCH;
      else if (!ports_good_reg) code_next = CODE_BAD_PORTS;
      else if (!chunk_good_reg) code_next = CODE_BAD_CHUNK;
      else if (!window_good_reg) code_next = CODE_BAD_WINDOW;
      else if (!deadline_good_reg) code_next = CODE_BAD_DEADLINE;
    end else if (op_abort) begin
      if (beyond_reg) code_next = CODE_BAD_JOB;
      else if (was_valid_reg && other_epoch_reg) code_next = CODE_BAD_EPOCH;
    end
  end

  always @(posedge clk) begin
    code_reg <= code_next;
    changes_reg <= code_next == CODE_DONE &&
        (op_commit ? !running : op_abort ? was_valid_reg : any_reg);
  end

  // -- Age of the operation -----------------------------------------------------------------------

  reg [2:0] age_reg;  // one bit for each cycle of checks

  always @(posedge clk) age_reg <= check ? {age_reg[1:0], 1'b1} : 3'd0;

  assign checked = age_reg[2];
  assign code    = code_reg;
  assign changes = changes_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The reply and its effect, from the operation and the jobs alone.
  localparam integer OP_WIDTH = 314;
  localparam integer JOBS_WIDTH = JOBS * (99 + PORTS + SLOT_BITS);
  reg check_was = 1'b0;
  reg [OP_WIDTH-1:0] op_was;
  reg [JOBS_WIDTH-1:0] jobs_were;
  wire [OP_WIDTH-1:0] op = {
    op_commit, op_abort, op_job, op_epoch, op_first, op_ports, op_chunk, op_window, op_deadline
  };
  wire [JOBS_WIDTH-1:0] jobs = {
    job_valid,
    job_ever,
    job_epoch,
    job_chunk,
    job_window,
    job_first,
    job_deadline,
    job_partial,
    member
  };
  wire its_valid = job_valid[op_index];
  wire [15:0] its_epoch = job_epoch[16*op_index+:16];
  wire [15:0] distance = op_epoch - its_epoch;
  wire [PORTS-1:0] its_member = member[PORTS*op_index+:PORTS];
  wire [15:0] its_chunk = job_chunk[16*op_index+:16];
  wire [SLOT_BITS-1:0] its_window = job_window[SLOT_BITS*op_index+:SLOT_BITS];
  wire [32:0] its_deadline = {job_partial[op_index], job_deadline[32*op_index+:32]};
  wire repeats = its_valid && op_epoch == its_epoch;
  wire equal = op_ports == its_member && op_chunk == its_chunk && op_window == its_window &&
      op_deadline == its_deadline && op_first == job_first[32*op_index+:32];
  reg [7:0] want;
  reg is_change;

  initial assume (age_reg == 0);  // agg_jobs: nothing is checked during a reset

  always @* begin
    want = CODE_DONE;
    if ((op_commit || op_abort) && op_beyond != 0) want = CODE_BAD_JOB;
    else if (op_commit && repeats) want = equal ? CODE_DONE : CODE_EPOCH_IN_USE;
    else if (op_commit) begin
      if (job_ever[op_index] && (distance == 0 || distance[15])) want = CODE_STALE_EPOCH;
      else if (op_ports == 0 || (op_ports >> PORTS) != 0) want = CODE_BAD_PORTS;
      else if (op_chunk == 0 || op_chunk > MOST_CHUNK || (op_chunk & (LANES - 1)) != 0)
        want = CODE_BAD_CHUNK;
      else if (op_window == 0 || op_window > MOST_WINDOW || (op_window & (op_window - 1)) != 0)
        want = CODE_BAD_WINDOW;
      else if ((op_deadline >> 33) != 0 || (op_deadline[32] && op_deadline[31:0] == 0))
        want = CODE_BAD_DEADLINE;
    end else if (op_abort && its_valid && op_epoch != its_epoch) want = CODE_BAD_EPOCH;
    is_change = want == CODE_DONE && (op_commit ? !repeats : op_abort ? its_valid : job_valid != 0);
  end

  always @(posedge clk) begin
    check_was <= check;
    op_was    <= op;
    jobs_were <= jobs;
  end

  always @* begin
    `PROMISED(!check || !check_was || (op == op_was && jobs == jobs_were));
    if (check_was)
      assert (age_reg[0]);
      else assert (age_reg == 0);
    assert (age_reg == 0 || age_reg == 1 || age_reg == 3 || age_reg == 7);
    if (check && age_reg[0]) begin
      assert (valid_reg == its_valid && ever_reg == job_ever[op_index] && epoch_reg == its_epoch);
      assert (chunk_reg == its_chunk && window_reg == its_window && member_reg == its_member);
      assert (first_reg == job_first[32*op_index+:32]);
      assert ({partial_reg, deadline_reg} == its_deadline);
    end
    if (check && age_reg[1]) begin
      assert (running == repeats && same == equal && any_reg == (job_valid != 0));
      assert (beyond_reg == (op_beyond != 0) && was_valid_reg == its_valid);
      assert (other_epoch_reg == (op_epoch != its_epoch));
      assert (stale_reg == (job_ever[op_index] && (distance == 0 || distance[15])));
      assert (code_next == want);
    end
    if (check && checked) assert (code == want && changes == is_change);
    cover (check && checked && changes && op_commit);
    cover (check && checked && code == CODE_BAD_DEADLINE);
  end
`endif

endmodule

`default_nettype wire
