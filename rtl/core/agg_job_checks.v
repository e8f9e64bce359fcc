// Checks an operation on jobs: its reply, and whether it changes any job. Makes all checks of a
// commit, in the order of the specification.
//
// check is high from the operation's first cycle until it is executed; op_* and all jobs are stable
// then. Latency: checked is high, and code and changes are valid, from the fifth such cycle on.
// Cycle 1 selects the job's configuration, cycle 2 compares byte by byte, cycle 3 joins the bytes,
// cycle 4 decides. Not done here: whether slots are free (agg_job_places).

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

    // Staged addresses of members; all ones for a shell without addresses
    input wire [PORTS-1:0] members_whole,  // by port: a member can have the address
    input wire             members_same,   // of all ports asked for: those of the job's members
`ifdef AGG_PARENT

    // Staged registers of trees of cards; see agg_up_jobs
    input wire tree_same,    // those of the job
    input wire tree_parent,  // JOB_PARENT and JOB_REPEAT can be a job's
    input wire tree_ranks,   // MEMBER_RANKS and TREE_RANKS agree
    input wire tree_nested,  // results are sums of more than one level: no partial sums
`endif

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

  // -- Second cycle: comparisons, by byte ---------------------------------------------------------

  localparam integer BYTES = 36;  // ports, chunk, window, deadline, first VID

  wire [8*BYTES-1:0] asks = {op_ports, op_chunk, op_window, op_deadline, op_first};
  wire [8*BYTES-1:0] has = {
    {64 - PORTS{1'b0}},
    member_reg,
    48'd0,
    chunk_reg,
    {64 - SLOT_BITS{1'b0}},
    window_reg,
    31'd0,
    partial_reg,
    deadline_reg,
    first_reg
  };
  wire [63:0] no_ports = op_ports >> PORTS;  // bits beyond the ports
  wire [63:0] no_deadline = {op_deadline[63:33], 33'd0};
  wire [SLOT_BITS-1:0] window_low = op_window[SLOT_BITS-1:0];
  wire [63:0] no_member = op_ports & ~{{64 - PORTS{1'b1}}, members_whole};

  reg valid_then_reg, ever_then_reg;
  reg [15:0] newer_reg;
  reg [BYTES-1:0] differs_reg;
  reg [7:0] ports_reg, no_ports_reg, op_chunk_reg, op_window_reg;  // not zero
  reg [7:0] no_deadline_reg;
  reg [3:0] op_deadline_reg;  // without the bit that allows partial sums
  reg [7:0] no_member_reg;  // a port without a whole address
  reg chunk_over_reg, chunk_odd_reg, window_over_reg, window_odd_reg;
  integer k;

  always @(posedge clk) begin
    valid_then_reg <= valid_reg;
    ever_then_reg  <= ever_reg;
    newer_reg      <= op_epoch - epoch_reg;
    for (k = 0; k < BYTES; k = k + 1) differs_reg[k] <= asks[8*k+:8] != has[8*k+:8];
    for (k = 0; k < 8; k = k + 1) begin
      ports_reg[k]       <= |op_ports[8*k+:8];
      no_ports_reg[k]    <= |no_ports[8*k+:8];
      op_chunk_reg[k]    <= |op_chunk[8*k+:8];
      op_window_reg[k]   <= |op_window[8*k+:8];
      no_deadline_reg[k] <= |no_deadline[8*k+:8];
      no_member_reg[k]   <= |no_member[8*k+:8];
    end
    for (k = 0; k < 4; k = k + 1) op_deadline_reg[k] <= |op_deadline[8*k+:8];
    // The lower two bytes. There is no job with a longer chunk or window.
    chunk_over_reg  <= op_chunk[15:0] > MOST_CHUNK[15:0];
    chunk_odd_reg   <= (op_chunk[15:0] & (LANES[15:0] - 16'd1)) != 16'd0;
    window_over_reg <= op_window[15:0] > MOST_WINDOW[15:0];
    window_odd_reg  <= (window_low & (window_low - 1'b1)) != {SLOT_BITS{1'b0}};
  end

  // -- Third cycle: the bytes joined --------------------------------------------------------------

  reg beyond_reg, other_epoch_reg, stale_reg, any_reg, was_valid_reg;
  reg same_reg;
  reg ports_good_reg, members_good_reg, chunk_good_reg, window_good_reg, deadline_good_reg;

  always @(posedge clk) begin
    beyond_reg <= op_beyond != 8'd0;
    any_reg <= job_valid != {JOBS{1'b0}};
    was_valid_reg <= valid_then_reg;
    other_epoch_reg <= newer_reg != 16'd0;
    stale_reg <= ever_then_reg && (newer_reg == 16'd0 || newer_reg[15]);
`ifdef AGG_PARENT
    same_reg <= differs_reg == {BYTES{1'b0}} && members_same && tree_same;
`else
    same_reg <= differs_reg == {BYTES{1'b0}} && members_same;
`endif
    ports_good_reg <= |ports_reg && !(|no_ports_reg);
    members_good_reg <= !(|no_member_reg);
    chunk_good_reg <= |op_chunk_reg && !(|op_chunk_reg[7:2] || chunk_over_reg || chunk_odd_reg);
    window_good_reg   <= |op_window_reg &&
        !(|op_window_reg[7:2] || window_over_reg || window_odd_reg);
    deadline_good_reg <= !(|no_deadline_reg || (op_deadline[32] && !(|op_deadline_reg)));
  end

  // -- Fourth cycle: the decision -----------------------------------------------------------------

  wire running = was_valid_reg && !other_epoch_reg;  // already set up, with this epoch
  reg [7:0] code_next, code_reg;
  reg changes_reg;

  always @* begin
    code_next = CODE_DONE;
    if (op_commit) begin
      if (beyond_reg) code_next = CODE_BAD_JOB;
      else if (running && !same_reg) code_next = CODE_EPOCH_IN_USE;
      else if (running) code_next = CODE_DONE;
      else if (stale_reg) code_next = CODE_STALE_EPOCH;
      else if (!ports_good_reg) code_next = CODE_BAD_PORTS;
      else if (!members_good_reg) code_next = CODE_BAD_MEMBER;
      else if (!chunk_good_reg) code_next = CODE_BAD_CHUNK;
      else if (!window_good_reg) code_next = CODE_BAD_WINDOW;
      else if (!deadline_good_reg) code_next = CODE_BAD_DEADLINE;
    end else if (op_abort) begin
      if (beyond_reg) code_next = CODE_BAD_JOB;
      else if (was_valid_reg && other_epoch_reg) code_next = CODE_BAD_EPOCH;
    end
`ifdef AGG_PARENT
    if (op_commit && !beyond_reg && !running && !stale_reg && ports_good_reg &&
        members_good_reg) begin
      if (!tree_parent) code_next = CODE_BAD_PARENT;
      else if (!tree_ranks) code_next = CODE_BAD_RANKS;
      else if (tree_nested && op_deadline[32]) code_next = CODE_BAD_DEADLINE;
    end
`endif
  end

  always @(posedge clk) begin
    code_reg <= code_next;
    changes_reg <= code_next == CODE_DONE &&
        (op_commit ? !running : op_abort ? was_valid_reg : any_reg);
  end

  // -- Age of the operation -----------------------------------------------------------------------

  reg [3:0] age_reg;  // one bit for each cycle of checks

  always @(posedge clk) age_reg <= check ? {age_reg[2:0], 1'b1} : 4'd0;

  assign checked = age_reg[3];
  assign code    = code_reg;
  assign changes = changes_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The reply and its effect, from the operation and the jobs alone.
  localparam integer OP_WIDTH = 314;
  localparam integer JOBS_WIDTH = JOBS * (99 + PORTS + SLOT_BITS) + PORTS + 1;
  reg check_was = 1'b0;
  reg [OP_WIDTH-1:0] op_was;
  reg [JOBS_WIDTH-1:0] jobs_were;
`ifdef AGG_PARENT
  reg [3:0] tree_was;
`endif
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
    member,
    members_whole,
    members_same
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
      op_deadline == its_deadline && op_first == job_first[32*op_index+:32] && members_same;
  reg [7:0] want;
  reg is_change;

  function automatic [7:0] byte_any;
    input [63:0] word;
    integer b;
    for (b = 0; b < 8; b = b + 1) byte_any[b] = word[8*b+:8] != 0;
  endfunction

  initial assume (age_reg == 0);  // agg_jobs: nothing is checked during a reset

  always @* begin
    want = CODE_DONE;
    if ((op_commit || op_abort) && op_beyond != 0) want = CODE_BAD_JOB;
    else if (op_commit && repeats) want = equal ? CODE_DONE : CODE_EPOCH_IN_USE;
    else if (op_commit) begin
      if (job_ever[op_index] && (distance == 0 || distance[15])) want = CODE_STALE_EPOCH;
      else if (op_ports == 0 || (op_ports >> PORTS) != 0) want = CODE_BAD_PORTS;
      else if ((op_ports[PORTS-1:0] & ~members_whole) != 0) want = CODE_BAD_MEMBER;
      else if (op_chunk == 0 || op_chunk > MOST_CHUNK || (op_chunk & (LANES - 1)) != 0)
        want = CODE_BAD_CHUNK;
      else if (op_window == 0 || op_window > MOST_WINDOW || (op_window & (op_window - 1)) != 0)
        want = CODE_BAD_WINDOW;
      else if ((op_deadline >> 33) != 0 || (op_deadline[32] && op_deadline[31:0] == 0))
        want = CODE_BAD_DEADLINE;
    end else if (op_abort && its_valid && op_epoch != its_epoch) want = CODE_BAD_EPOCH;
`ifdef AGG_PARENT
    // Trees of cards: a job that runs has the staged registers, or it is in use. The other checks come
    // after bad_member.
    if (op_commit && repeats && want == CODE_DONE && !tree_same) want = CODE_EPOCH_IN_USE;
    if (op_commit && !repeats && (want == CODE_DONE || want == CODE_BAD_CHUNK ||
        want == CODE_BAD_WINDOW || want == CODE_BAD_DEADLINE)) begin
      if (!tree_parent) want = CODE_BAD_PARENT;
      else if (!tree_ranks) want = CODE_BAD_RANKS;
      else if (tree_nested && op_deadline[32]) want = CODE_BAD_DEADLINE;
    end
`endif
    is_change = want == CODE_DONE && (op_commit ? !repeats : op_abort ? its_valid : job_valid != 0);
  end

  always @(posedge clk) begin
    check_was <= check;
    op_was    <= op;
    jobs_were <= jobs;
`ifdef AGG_PARENT
    tree_was <= {tree_same, tree_parent, tree_ranks, tree_nested};
`endif
  end

  always @* begin
    `PROMISED(!check || !check_was || (op == op_was && jobs == jobs_were));
`ifdef AGG_PARENT
    // agg_up_jobs: from the second cycle on.
    `PROMISED(
        !check || !age_reg[1] || tree_was == {tree_same, tree_parent, tree_ranks, tree_nested});
`endif
    if (check_was)
      assert (age_reg[0]);
      else assert (age_reg == 0);
    assert (age_reg == 0 || age_reg == 1 || age_reg == 3 || age_reg == 7 || age_reg == 15);
    if (check && age_reg[0]) begin
      assert (valid_reg == its_valid && ever_reg == job_ever[op_index] && epoch_reg == its_epoch);
      assert (chunk_reg == its_chunk && window_reg == its_window && member_reg == its_member);
      assert (first_reg == job_first[32*op_index+:32]);
      assert ({partial_reg, deadline_reg} == its_deadline);
    end
    if (check && age_reg[1]) begin
      assert (valid_then_reg == its_valid && ever_then_reg == job_ever[op_index]);
      assert (newer_reg == distance && (differs_reg == 0 && members_same) == equal);
      assert ((no_member_reg == 0) == ((op_ports & ~{{64 - PORTS{1'b1}}, members_whole}) == 0));
      assert (ports_reg == byte_any(op_ports) && no_ports_reg == byte_any(op_ports >> PORTS));
      assert (op_chunk_reg == byte_any(op_chunk) && op_window_reg == byte_any(op_window));
      assert (op_deadline_reg == byte_any({32'd0, op_deadline[31:0]}));
      assert (no_deadline_reg == byte_any({op_deadline[63:33], 33'd0}));
      assert (chunk_over_reg == (op_chunk[15:0] > MOST_CHUNK));
      assert (chunk_odd_reg == ((op_chunk & (LANES - 1)) != 0));
      assert (window_over_reg == (op_window[15:0] > MOST_WINDOW));
      assert (window_odd_reg == ((window_low & (window_low - 1'b1)) != 0));
    end
    if (check && age_reg[2]) begin
`ifdef AGG_PARENT
      assert (same_reg == (equal && tree_same));
      assert (running == repeats && any_reg == (job_valid != 0));
`else
      assert (running == repeats && same_reg == equal && any_reg == (job_valid != 0));
`endif
      assert (beyond_reg == (op_beyond != 0) && was_valid_reg == its_valid);
      assert (other_epoch_reg == (op_epoch != its_epoch));
      assert (stale_reg == (job_ever[op_index] && (distance == 0 || distance[15])));
      assert (code_next == want);
    end
    if (check && checked) assert (code == want && changes == is_change);
    cover (check && checked && changes && op_commit);
    cover (check && checked && code == CODE_BAD_DEADLINE);
    cover (check && checked && code == CODE_BAD_MEMBER);
`ifdef AGG_PARENT
    cover (check && checked && code == CODE_BAD_RANKS);
`endif
  end
`endif

endmodule

`default_nettype wire
