// Reads complete slots from all ports' slot memories at once, one beat a cycle, slot after slot
// without a bubble. Jobs with a complete slot take turns; a job's slots are read in the order of
// their completion.
//
// A slot waits at its first beat while its cache entry is picked, prepared or sent; other jobs
// proceed, one cycle later. A sum that cannot decide a beat in one pass requests it *again*: such
// a read replaces a new beat and is marked as a further pass. With many of these pending, the sum
// stops new beats (stop). stalled: in the cycle before, one of the two kept a new beat from being
// read. When a job ends (its bit of flush), the slot being read is completed, and its queued slots
// are dropped; drained means that no slot of the job is under way. It falls in the cycle after
// begun.
//
// Cycles: a slot completed in cycle 0 is at the head of its job's queue in cycle 1, in which its
// first beat is chosen (label_slot). Then begun is high in cycle 2, and the beat is read (rd_en).
// It is at the memories' outputs (beat_valid and its tags) in cycle 1 + READ_LATENCY. One beat
// follows another every cycle, and so do the slots of two jobs; two slots of one job with one beat
// each may follow at two cycles. beat_last has no meaning in a further pass.
//
// Not done here: backpressure; the lanes and the cache take a beat every cycle.

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
  assign begun_job  = job_reg;
  assign rd_en      = rd_en_reg;
  assign rd_slot    = rd_slot_reg;
  assign rd_beat    = rd_beat_reg;
  assign stalled    = stalled_reg;

  // -- Tags ---------------------------------------------------------------------------------------

  agg_tag_delay #(
      .WIDTH (SLOT_BITS + INDEX_BITS + 2),
      .CYCLES(READ_LATENCY - 1)
  ) u_tags (
      .clk      (clk),
      .rst      (rst),
      .in_valid (rd_en_reg),
      .in_tag   ({rd_slot_reg, rd_beat_reg, pass_reg, last_reg}),
      .out_valid(beat_valid),
      .out_tag  ({beat_slot, beat_index, beat_pass, beat_last})
  );

  // -- Slots under way ----------------------------------------------------------------------------

  localparam [SLOT_BITS:0] ONE_SLOT = 1;

  reg [(SLOT_BITS+1)*JOBS-1:0] on_way_reg;  // for each job: slots begun and not yet reduced
  reg [JOBS-1:0] drained_reg;  // there are none
  reg [JOBS-1:0] more, less;
  integer k;

  always @* begin
    for (k = 0; k < JOBS; k = k + 1) begin
      more[k] = begun_reg && job_reg == k[JOB_BITS-1:0];
      less[k] = reduced && reduced_job == k[JOB_BITS-1:0];
    end
  end

  integer c;

  always @(posedge clk) begin
    for (c = 0; c < JOBS; c = c + 1) begin
      if (more[c] && !less[c])
        on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] + 1'b1;
      if (less[c] && !more[c])
        on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] - 1'b1;
      if (more[c] != less[c])
        drained_reg[c] <= less[c] && on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] == ONE_SLOT;
    end
    if (rst) begin
      on_way_reg  <= {(SLOT_BITS + 1) * JOBS{1'b0}};
      drained_reg <= {JOBS{1'b1}};
    end
  end

  assign drained = drained_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The slot being read, its job and next beat; for any job, its slots under way.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg running_before = 1'b0;
  reg [INDEX_BITS-1:0] beat;
  reg [JOB_BITS-1:0] its_job;
  reg [INDEX_BITS*JOBS-1:0] last_was;
  reg [31:0] on_way;
  reg [JOBS-1:0] head_was, left;
  reg [SLOT_BITS*JOBS-1:0] slots_were;
  reg read_was, pass_was, new_was, begun_was, kept_was;
  reg [SLOT_BITS-1:0] slot_was, begun_last;
  reg [INDEX_BITS-1:0] beat_was;
  reg [JOB_BITS-1:0] now_was;
  reg last_beat_was;
  reg read_before, pass_before, new_before, last_before;
  reg [SLOT_BITS-1:0] slot_before;
  reg [INDEX_BITS-1:0] beat_before;
  reg [JOBS-1:0] in_front;  // jobs that began while the watched one could
  reg waits;
  wire [JOBS-1:0] below = ~above_reg;
  wire new_slot = reads && beat == 0;
  wire [JOB_BITS-1:0] now = beat == 0 ? turn : its_job;
  wire [SLOT_BITS-1:0] turn_head = heads >> SLOT_BITS * turn;
  wire [INDEX_BITS-1:0] now_last = job_last >> INDEX_BITS * now;
  wire [SLOT_BITS-1:0] watched_head = heads >> SLOT_BITS * watched;
  wire out = (pick_valid && pick_slot == watched_head) ||
      (prep_valid && prep_slot == watched_head) || (send_valid && send_slot == watched_head);
  wire may_begin = queued[watched] && !flush[watched] && !out && (JOBS == 1 || !left[watched]);
  wire held_up = |(turns & leaves);  // the job whose turn it is has to wait
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    running_before <= running_was && !rst;
    beat <= rst ? 0 : !reads ? beat : beat == now_last ? 0 : beat + 1;
    if (new_slot) its_job <= now;
    if (new_slot) begun_last <= label_slot;
    on_way <= rst ? 0 :
        on_way + (begun && begun_job == watched) - (reduced && reduced_job == watched);
    last_was <= job_last;
    for (n = 0; n < JOBS; n = n + 1) head_was[n] <= queued[n] && !pops[n] && !flush[n];
    left[watched] <= queued[watched] && out;
    slots_were <= heads;

    read_was <= reads || again_valid;
    new_was <= reads;
    begun_was <= new_slot;
    kept_was <= (beat != 0 || (|can && !held_up)) && (stop || again_valid);
    slot_was <= label_slot;
    beat_was <= again_valid ? again_beat : beat;
    pass_was <= again_valid;
    now_was <= now;
    last_beat_was <= beat == now_last;
    read_before <= read_was;
    new_before <= new_was;
    slot_before <= slot_was;
    beat_before <= beat_was;
    pass_before <= pass_was;
    last_before <= last_beat_was;

    waits <= !rst && may_begin && !(new_slot && now == watched);
    in_front <= rst || !may_begin || (new_slot && now == watched) ? 0 :
        in_front | (new_slot ? 1 << now : 0);
  end

  always @* begin
    if (was_reset) begin
      // agg_slot_fifo keeps its head until a pop or a clear.
      for (n = 0; n < JOBS; n = n + 1)
      assume (!running_was || !head_was[n] || (queued[n] &&
            heads[SLOT_BITS*n+:SLOT_BITS] == slots_were[SLOT_BITS*n+:SLOT_BITS]));
      // agg_jobs changes a job's chunk length only while the job has no slots under way. agg_writer
      // pulses reduced once for each slot of which a beat was read, after begun. There are no more
      // slots than SLOTS.
      for (n = 0; n < JOBS; n = n + 1)
      `PROMISED(
          (beat == 0 || its_job != n) ||
            job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]);
      `PROMISED(!(reduced && reduced_job == watched) || on_way != 0);
      `PROMISED(!(begun && begun_job == watched) || on_way < 1 << SLOT_BITS);
    end
    if (was_reset && !rst) begin

      assert (next_reg == beat && begins_reg == (beat == 0) && beat <= now_last);
      if (beat != 0) assert (job_reg == its_job && slot_reg == begun_last);
      if (beat != 0) assert (rest_reg == now_last - beat);
      if (reads)
        assert (label_slot == (beat == 0 ? turn_head : begun_last) && !stop && !again_valid);
      if (new_slot) assert (queued[now] && !flush[now]);
      assert (pops[watched] == (new_slot && now == watched));
      if (again_valid) assert (label_slot == again_slot);

      // Only a slot's first beat waits: for its cache entry, for its job's end, and for its job's
      // turn.
      if (new_slot && now == watched) assert (queued[watched] && !flush[watched] && !out);
      if (beat != 0 && !again_valid && !stop) assert (reads);
      if (beat == 0 && may_begin && !again_valid && !stop) assert (new_slot || held_up);
      if (running_was) assert (left_reg[watched] == left[watched]);
      if (JOBS != 1 && running_was && turns[watched]) assert (!left[watched]);

      // While a job has a slot that may begin, no other job begins two.
      if (waits && may_begin && new_slot) assert (!in_front[now]);
      assert ((below & (below + 1'b1)) == 0);
      assert ((turns & (turns - 1'b1)) == 0 && (turns == 0 || turns[turn]));
      for (n = 0; n < JOBS; n = n + 1) begin
        if (in_front[n] && n < watched) assert (above_reg[watched] && !above_reg[n]);
        if (in_front[n] && n > watched) assert (above_reg[watched] || !above_reg[n]);
        assert (!in_front[watched]);
      end

      assert (on_way <= 1 << SLOT_BITS);
      assert ((on_way_reg >> (SLOT_BITS + 1) * watched) % (2 << SLOT_BITS) == on_way);
      assert (drained[watched] == (on_way == 0));

      // Outputs, one cycle after the choice and READ_LATENCY cycles after it
      if (!running_was) assert (!rd_en && !begun && !beat_valid);
      if (running_was) begin
        assert (rd_en == read_was && begun == begun_was && stalled == kept_was);
        if (rd_en) assert (rd_slot == slot_was && rd_beat == beat_was);
        if (begun) assert (begun_slot == slot_was && begun_job == now_was);
      end
      if (running_before) assert (beat_valid == read_before);
      if (running_before && beat_valid) begin
        assert (beat_slot == slot_before && beat_index == beat_before && beat_pass == pass_before);
        if (new_before) assert (beat_last == last_before);
      end

      cover (reads && flush[now] && beat == now_last && beat != 0);
      cover (new_slot && reduced && now_last == 0);
      cover (new_slot && begun && begun_slot != label_slot && now_last != 0);
      cover (waits && in_front != 0 && new_slot && now == watched);
      cover (beat == 0 && held_up && may_begin);
      cover (again_valid && stalled);
      cover (reduced && begun && reduced_job == begun_job);
    end
  end
`endif

endmodule

`default_nettype wire
