// Reads complete slots from all ports' slot memories at once, one beat a cycle, slot after slot
// without a bubble. Jobs with a complete slot take turns; a job's slots are read in the order of
// their completion.
//
// A slot waits at its first beat while its cache entry is being sent; other jobs proceed. A sum
// that cannot decide a beat in one pass requests it *again*: such a read replaces a new beat and is
// marked as a further pass. With many of these pending, the sum stops new beats (stop). stalled:
// one of the two kept a new beat from being read. When a job ends (its bit of flush), the slot
// being read is completed, and its queued slots are dropped; drained means that no slot of the job
// is under way.
//
// Latency: a slot completed in cycle 0 is read from cycle 1 on (rd_en), and is at the memories'
// outputs from cycle 2 on (beat_valid and its tags). Not done here: backpressure; the lanes and the
// cache take a beat every cycle.

`default_nettype none

module agg_reader #(
    parameter integer JOBS       = 1,
    parameter integer JOB_BITS   = 1,
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4   // width of a beat's number in its chunk
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
    input wire                 sending,        // a cache entry is being sent
    input wire [SLOT_BITS-1:0] sending_slot,
    input wire                 reduced,        // a slot's last beat was summed
    input wire [ JOB_BITS-1:0] reduced_job,

    // From the sum: hold back new beats; read a beat again, taken in the same cycle
    input wire                  stop,
    input wire                  again_valid,
    input wire [ SLOT_BITS-1:0] again_slot,
    input wire [INDEX_BITS-1:0] again_beat,

    // To the slot memories
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,

    // Tags of the slot memories' outputs
    output wire                  beat_valid,
    output wire [ SLOT_BITS-1:0] beat_slot,
    output wire [INDEX_BITS-1:0] beat_index,
    output wire                  beat_pass,   // a further pass

    output wire stalled
);

  // -- Complete slots, by job ---------------------------------------------------------------------

  wire [JOBS-1:0] queued;  // the job has a complete slot
  wire [SLOT_BITS*JOBS-1:0] heads;
  wire [JOBS-1:0] pops, drops, can_begin;

  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : g_job
      localparam [JOB_BITS-1:0] JOB = g;

      agg_slot_fifo #(
          .SLOT_BITS(SLOT_BITS)
      ) u_complete (
          .clk       (clk),
          .clear     (drops[g]),
          .push      (complete && complete_job == JOB),
          .push_slot (complete_slot),
          .head_valid(queued[g]),
          .head_slot (heads[SLOT_BITS*g+:SLOT_BITS]),
          .pop       (pops[g])
      );

      assign can_begin[g] = queued[g] && !flush[g] &&
          !(sending && sending_slot == heads[SLOT_BITS*g+:SLOT_BITS]);
    end
  endgenerate

  // -- Job arbitration ----------------------------------------------------------------------------

  reg [JOBS-1:0] above_reg;  // jobs above the one whose slot was begun last
  reg [JOB_BITS-1:0] job_reg;  // the job whose slot is being read
  reg [INDEX_BITS-1:0] next_reg;  // next beat of that slot

  wire [JOBS-1:0] ahead = can_begin & above_reg;
  wire [JOBS-1:0] among = |ahead ? ahead : can_begin;
  wire [JOBS-1:0] lowest = among & (~among + 1'b1);

  reg [JOB_BITS-1:0] turn;
  integer j;

  always @* begin
    turn = {JOB_BITS{1'b0}};
    for (j = 0; j < JOBS; j = j + 1) if (lowest[j]) turn = j[JOB_BITS-1:0];
  end

  // -- Read ---------------------------------------------------------------------------------------

  localparam [JOBS-1:0] ONE = 1;

  wire begins = next_reg == {INDEX_BITS{1'b0}};
  wire [JOB_BITS-1:0] job = begins ? turn : job_reg;
  wire [SLOT_BITS-1:0] head_slot = heads[SLOT_BITS*job+:SLOT_BITS];
  wire last = next_reg == job_last[INDEX_BITS*job+:INDEX_BITS];
  wire ready = !begins || |can_begin;
  wire reads = ready && !again_valid && !stop;

  assign pops  = reads && last ? ONE << job : {JOBS{1'b0}};
  assign drops = rst ? {JOBS{1'b1}} : flush & ~(begins ? {JOBS{1'b0}} : ONE << job_reg);

  reg [(SLOT_BITS+1)*JOBS-1:0] on_way_reg;  // for each job: slots begun and not yet reduced
  reg beat_valid_reg, beat_pass_reg;
  reg [ SLOT_BITS-1:0] beat_slot_reg;
  reg [INDEX_BITS-1:0] beat_index_reg;

  reg [JOBS-1:0] more, less;
  integer k;

  always @* begin
    more = reads && begins ? ONE << turn : {JOBS{1'b0}};
    less = reduced ? ONE << reduced_job : {JOBS{1'b0}};
  end

  always @(posedge clk) begin
    if (reads) next_reg <= last ? {INDEX_BITS{1'b0}} : next_reg + 1'b1;
    if (reads && begins) begin
      job_reg   <= turn;
      above_reg <= ~(lowest | (lowest - 1'b1));
    end
    for (k = 0; k < JOBS; k = k + 1) begin
      if (more[k] && !less[k])
        on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] + 1'b1;
      if (less[k] && !more[k])
        on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] - 1'b1;
    end
    beat_valid_reg <= rd_en;
    beat_slot_reg  <= rd_slot;
    beat_index_reg <= rd_beat;
    beat_pass_reg  <= again_valid;
    if (rst) begin
      next_reg       <= {INDEX_BITS{1'b0}};
      above_reg      <= {JOBS{1'b0}};
      job_reg        <= {JOB_BITS{1'b0}};
      on_way_reg     <= {(SLOT_BITS + 1) * JOBS{1'b0}};
      beat_valid_reg <= 1'b0;
    end
  end

  genvar d;
  generate
    for (d = 0; d < JOBS; d = d + 1) begin : g_drained
      assign drained[d] = on_way_reg[(SLOT_BITS+1)*d+:SLOT_BITS+1] == {SLOT_BITS + 1{1'b0}};
    end
  endgenerate

  assign rd_en      = reads || again_valid;
  assign rd_slot    = again_valid ? again_slot : head_slot;
  assign rd_beat    = again_valid ? again_beat : next_reg;
  assign beat_valid = beat_valid_reg;
  assign beat_slot  = beat_slot_reg;
  assign beat_index = beat_index_reg;
  assign beat_pass  = beat_pass_reg;
  assign stalled    = ready && !reads;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The slot being read, its job and next beat; for any job, its slots under way.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [INDEX_BITS-1:0] beat;
  reg [JOB_BITS-1:0] its_job;
  reg [INDEX_BITS*JOBS-1:0] last_was;
  reg [31:0] on_way;
  reg [JOBS-1:0] head_was;
  reg [SLOT_BITS*JOBS-1:0] slots_were;
  reg read_was, pass_was;
  reg [SLOT_BITS-1:0] rd_slot_was, begun_slot;
  reg [INDEX_BITS-1:0] rd_beat_was;
  reg [JOBS-1:0] in_front;  // jobs that began while the watched one could
  reg waits;
  wire [JOBS-1:0] below = ~above_reg;
  wire new_beat = rd_en && !again_valid;
  wire new_slot = new_beat && rd_beat == 0;
  wire [JOB_BITS-1:0] now = beat == 0 ? turn : its_job;
  wire [SLOT_BITS-1:0] now_head = heads >> SLOT_BITS * now;
  wire [INDEX_BITS-1:0] now_last = job_last >> INDEX_BITS * now;
  wire [SLOT_BITS-1:0] watched_head = heads >> SLOT_BITS * watched;
  wire may_begin = queued[watched] && !flush[watched] && !(sending && sending_slot == watched_head);
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    beat <= rst ? 0 : !new_beat ? beat : beat == now_last ? 0 : beat + 1;
    if (new_slot) its_job <= now;
    on_way <= rst ? 0 : on_way + (new_slot && now == watched) - (reduced && reduced_job == watched);
    last_was <= job_last;
    for (n = 0; n < JOBS; n = n + 1)
    head_was[n] <= queued[n] && !(new_beat && beat == now_last && now == n) &&
          !(flush[n] && (beat == 0 || its_job != n));
    slots_were <= heads;
    read_was <= rd_en;
    rd_slot_was <= rd_slot;
    if (new_slot) begun_slot <= rd_slot;
    rd_beat_was <= rd_beat;
    pass_was <= again_valid;
    waits <= !rst && may_begin && !(new_slot && now == watched);
    in_front <= rst || !may_begin || (new_slot && now == watched) ? 0 :
        in_front | (new_slot ? 1 << now : 0);
  end

  always @* begin
    if (rst) assert (&drops);
    if (was_reset) begin
      // agg_slot_fifo keeps its head until a pop or a clear.
      for (n = 0; n < JOBS; n = n + 1)
      assume (!running_was || !head_was[n] || (queued[n] &&
            heads[SLOT_BITS*n+:SLOT_BITS] == slots_were[SLOT_BITS*n+:SLOT_BITS]));
      // agg_jobs changes a job's chunk length only while the job has no slots under way. agg_writer
      // pulses reduced once for each slot of which a beat was read, at least one cycle later. There
      // are no more slots than SLOTS.
      for (n = 0; n < JOBS; n = n + 1)
      `PROMISED(
          (beat == 0 || its_job != n) ||
            job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]);
      `PROMISED(!(reduced && reduced_job == watched) || on_way != 0);
      `PROMISED(!(new_slot && now == watched) || on_way < 1 << SLOT_BITS);
    end
    if (was_reset && !rst) begin

      assert (next_reg == beat && (beat == 0 || beat <= now_last));
      if (beat != 0)
        assert (job_reg == its_job && queued[its_job]);  // a slot that was begun is completed
      if (new_beat) assert (queued[now] && rd_slot == now_head && rd_beat == beat && !stop);
      if (new_beat && beat != 0) assert (rd_slot == begun_slot);
      assert (pops[watched] == (new_beat && beat == now_last && now == watched));
      assert (drops[watched] == (flush[watched] && (beat == 0 || its_job != watched)));
      if (beat != 0) assert (now_head == begun_slot);
      if (again_valid) assert (rd_en && rd_slot == again_slot && rd_beat == again_beat);

      // Only a slot's first beat waits: for its cache entry, for its job's end, and for its job's
      // turn.
      if (new_slot && now == watched) assert (may_begin);
      if (beat != 0 && !again_valid && !stop) assert (new_beat);
      if (beat == 0 && may_begin && !again_valid && !stop) assert (new_slot);

      // While a job has a slot that may begin, no other job begins two.
      if (waits && may_begin && new_slot) assert (!in_front[now]);
      assert ((below & (below + 1'b1)) == 0);
      for (n = 0; n < JOBS; n = n + 1) begin
        if (in_front[n] && n < watched) assert (above_reg[watched] && !above_reg[n]);
        if (in_front[n] && n > watched) assert (above_reg[watched] || !above_reg[n]);
        assert (!in_front[watched]);
      end

      assert ((on_way_reg >> (SLOT_BITS + 1) * watched) % (2 << SLOT_BITS) == on_way);
      assert (on_way <= 1 << SLOT_BITS);
      assert (drained[watched] == (on_way == 0));
      assert (!stalled || (!new_beat && (stop || again_valid)));

      if (running_was) assert (beat_valid == read_was);
      if (!running_was) assert (!beat_valid);
      if (running_was && beat_valid)
        assert (beat_slot == rd_slot_was && beat_index == rd_beat_was && beat_pass == pass_was);

      cover (new_beat && flush[now] && beat == now_last && beat != 0);
      cover (new_slot && reduced && now_last == 0);
      cover (new_slot && read_was && rd_slot_was != rd_slot && now_last != 0);
      cover (waits && in_front != 0 && new_slot && now == watched);
      cover (again_valid && stalled);
    end
  end
`endif

endmodule

`default_nettype wire
