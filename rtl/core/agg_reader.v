// Reads complete slots from all ports' slot memories at once, one beat a cycle, slot after slot
// without a bubble. Jobs with a complete slot take turns; a job's slots are read in the order of
// their completion.
//
// A slot waits at its first beat while its cache entry is picked, prepared or sent; other jobs
// proceed, one cycle later. A sum that cannot decide a beat in one pass requests it *again*: such
// a read replaces a new beat and is marked as a further pass. With many of these pending, the sum
// stops new beats (stop). stalled: in the cycle before, one of the two kept a new beat from being
// read. When a job ends (its bit of flush), the slot being read is completed, and its queued slots
// are dropped; drained means that no slot of the job is under way.
//
// Cycles: a slot completed in cycle 0 is at the head of its job's queue in cycle 1, in which its
// first beat is chosen (label_slot). Then begun is high in cycle 2, and the beat is read (rd_en).
// It is at the memories' outputs (beat_valid and its tags) in cycle 1 + READ_LATENCY. One beat
// follows another every cycle, and so do the slots of two jobs; two slots of one job with one beat
// each may follow at two cycles. beat_last and beat_job have no meaning in a further pass. Not done
// here: backpressure; the lanes and the cache take a beat every cycle.

`default_nettype none

module agg_reader #(
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,
    parameter integer SLOT_BITS = 4,
    parameter integer INDEX_BITS = 4,  // width of a beat's number in its chunk
    parameter integer READ_LATENCY = 2  // cycles from the choice of a beat to its tags, at least 2
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input  wire [           JOBS-1:0] flush,
    input  wire [INDEX_BITS*JOBS-1:0] job_last,  // number of a chunk's last beat
    output wire [           JOBS-1:0] drained,

    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [ JOB_BITS-1:0] complete_job,
    input wire                 reduced,        // a slot's last beat was summed
    input wire [ JOB_BITS-1:0] reduced_job,

    // Cache entries on their way out
    input wire                 pick_valid,
    input wire [SLOT_BITS-1:0] pick_slot,
    input wire                 prep_valid,
    input wire [SLOT_BITS-1:0] prep_slot,
    input wire                 send_valid,
    input wire [SLOT_BITS-1:0] send_slot,

    // From the sum: hold back new beats; read a beat again, taken in the same cycle
    input wire                  stop,
    input wire                  again_valid,
    input wire [ SLOT_BITS-1:0] again_slot,
    input wire [INDEX_BITS-1:0] again_beat,

    // The slot of the beat that is chosen in this cycle
    output wire [SLOT_BITS-1:0] label_slot,

    // In the cycle before, a slot's first beat was chosen
    output wire                 begun,
    output wire [SLOT_BITS-1:0] begun_slot,
    output wire [ JOB_BITS-1:0] begun_job,

    // To the slot memories
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,

    // Tags of the slot memories' outputs
    output wire                  beat_valid,
    output wire [ SLOT_BITS-1:0] beat_slot,
    output wire [INDEX_BITS-1:0] beat_index,
    output wire                  beat_pass,   // a further pass
    output wire                  beat_last,   // of its chunk
    output wire [  JOB_BITS-1:0] beat_job,

    output wire stalled
);

  // -- Complete slots, by job ---------------------------------------------------------------------

  wire [JOBS-1:0] queued;  // the job has a complete slot
  wire [SLOT_BITS*JOBS-1:0] heads;
  wire [JOBS-1:0] pops;
  wire [JOBS-1:0] leaves;  // the slot's cache entry is on its way out
  reg [JOBS-1:0] left_reg;  // so it was in the cycle before

  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : g_job
      localparam [JOB_BITS-1:0] JOB = g;

      wire [SLOT_BITS-1:0] head = heads[SLOT_BITS*g+:SLOT_BITS];

      agg_slot_fifo #(
          .SLOT_BITS(SLOT_BITS)
      ) u_complete (
          .clk       (clk),
          .clear     (rst || flush[g]),
          .push      (complete && complete_job == JOB),
          .push_slot (complete_slot),
          .head_valid(queued[g]),
          .head_slot (heads[SLOT_BITS*g+:SLOT_BITS]),
          .pop       (pops[g])
      );

      assign leaves[g] = (pick_valid && pick_slot == head) || (prep_valid && prep_slot == head) ||
          (send_valid && send_slot == head);
    end
  endgenerate

  // -- Job arbitration ----------------------------------------------------------------------------

  // A job whose slot had to wait in the cycle before is passed over, unless it is the only one: the
  // comparison of slots is not on the path to the choice.
  wire [JOBS-1:0] passed = JOBS == 1 ? {JOBS{1'b0}} : left_reg;

  reg  [JOBS-1:0] above_reg;  // jobs above the one whose slot was begun last
  wire [JOBS-1:0] can = queued & ~flush & ~passed;
  wire [JOBS-1:0] ahead = can & above_reg;
  reg [JOBS-1:0] first_ahead, first;  // the lowest of these jobs
  wire [JOBS-1:0] turns = |ahead ? first_ahead : first;
  integer p;

  always @* begin
    for (p = 0; p < JOBS; p = p + 1) begin
      first_ahead[p] = ahead[p] && (ahead & ~({JOBS{1'b1}} << p)) == {JOBS{1'b0}};
      first[p] = can[p] && (can & ~({JOBS{1'b1}} << p)) == {JOBS{1'b0}};
    end
  end

  // The fields of the job whose turn it is, and the jobs above it
  reg [JOB_BITS-1:0] turn;
  reg [SLOT_BITS-1:0] turn_slot;
  reg [INDEX_BITS-1:0] turn_last;
  reg [JOBS-1:0] above;
  integer j;

  always @* begin
    turn = {JOB_BITS{1'b0}};
    turn_slot = {SLOT_BITS{1'b0}};
    turn_last = {INDEX_BITS{1'b0}};
    above[0] = 1'b0;
    for (j = 0; j < JOBS; j = j + 1) begin
      if (turns[j]) begin
        turn = turn | j[JOB_BITS-1:0];
        turn_slot = turn_slot | heads[SLOT_BITS*j+:SLOT_BITS];
        turn_last = turn_last | job_last[INDEX_BITS*j+:INDEX_BITS];
      end
      if (j != 0) above[j] = above[j-1] || turns[j-1];
    end
  end

  // -- Choice of a beat ---------------------------------------------------------------------------

  localparam [INDEX_BITS-1:0] NONE = 0;
  localparam [INDEX_BITS-1:0] ONE = 1;

  reg begins_reg;  // the next new beat is a slot's first
  reg [SLOT_BITS-1:0] slot_reg;  // the slot being read
  reg [JOB_BITS-1:0] job_reg;  // its job
  reg [INDEX_BITS-1:0] next_reg;  // its next beat
  reg [INDEX_BITS-1:0] rest_reg;  // beats after that

  wire ready = !begins_reg || (|can && (turns & leaves) == {JOBS{1'b0}});
  wire reads = ready && !again_valid && !stop;
  wire [INDEX_BITS-1:0] rest = begins_reg ? turn_last : rest_reg;
  wire last = rest == NONE;

  assign label_slot = again_valid ? again_slot : begins_reg ? turn_slot : slot_reg;
  assign pops = reads && begins_reg ? turns : {JOBS{1'b0}};

  reg rd_en_reg, pass_reg, last_reg, begun_reg, stalled_reg;
  reg [ SLOT_BITS-1:0] rd_slot_reg;
  reg [INDEX_BITS-1:0] rd_beat_reg;
  reg [  JOB_BITS-1:0] rd_job_reg;

  always @(posedge clk) begin
    left_reg <= queued & leaves;
    if (reads) begin
      begins_reg <= last;
      next_reg   <= last ? NONE : next_reg + ONE;
      rest_reg   <= rest - ONE;
      if (begins_reg) begin
        slot_reg  <= turn_slot;
        job_reg   <= turn;
        above_reg <= above;
      end
    end
    rd_en_reg   <= reads || again_valid;
    rd_slot_reg <= label_slot;
    rd_beat_reg <= again_valid ? again_beat : next_reg;
    rd_job_reg  <= begins_reg ? turn : job_reg;
    pass_reg    <= again_valid;
    last_reg    <= last;
    begun_reg   <= reads && begins_reg;
    stalled_reg <= ready && !reads;
    if (rst) begin
      begins_reg  <= 1'b1;
      next_reg    <= NONE;
      above_reg   <= {JOBS{1'b0}};
      rd_en_reg   <= 1'b0;
      begun_reg   <= 1'b0;
      stalled_reg <= 1'b0;
    end
  end

  assign begun      = begun_reg;
  assign begun_slot = rd_slot_reg;
  assign begun_job  = rd_job_reg;
  assign rd_en      = rd_en_reg;
  assign rd_slot    = rd_slot_reg;
  assign rd_beat    = rd_beat_reg;
  assign stalled    = stalled_reg;

  // -- Tags ---------------------------------------------------------------------------------------

  agg_tag_delay #(
      .WIDTH (SLOT_BITS + INDEX_BITS + JOB_BITS + 2),
      .CYCLES(READ_LATENCY - 1)
  ) u_tags (
      .clk      (clk),
      .rst      (rst),
      .in_valid (rd_en_reg),
      .in_tag   ({rd_slot_reg, rd_beat_reg, rd_job_reg, pass_reg, last_reg}),
      .out_valid(beat_valid),
      .out_tag  ({beat_slot, beat_index, beat_job, beat_pass, beat_last})
  );

  // -- Slots under way ----------------------------------------------------------------------------

  // For each job: slots begun and not yet reduced, and whether there are any
  genvar d;
  generate
    for (d = 0; d < JOBS; d = d + 1) begin : g_drained
      localparam [JOB_BITS-1:0] JOB = d;

      reg [SLOT_BITS:0] on_way_reg;
      reg drained_reg;

      wire more = pops[d];
      wire less = reduced && reduced_job == JOB;

      always @(posedge clk) begin
        if (more && !less) on_way_reg <= on_way_reg + 1'b1;
        if (less && !more) on_way_reg <= on_way_reg - 1'b1;
        if (more != less) drained_reg <= less && on_way_reg == {{SLOT_BITS{1'b0}}, 1'b1};
        if (rst) begin
          on_way_reg  <= {SLOT_BITS + 1{1'b0}};
          drained_reg <= 1'b1;
        end
      end

      assign drained[d] = drained_reg;
    end
  endgenerate

endmodule

`default_nettype wire
