// Reads complete slots from all ports' slot memories at once, one beat a cycle, slot after slot
// without a bubble. Jobs with a complete slot take turns; a job's slots are read in the order of
// their completion.
//
// A slot waits at its first beat while its cache entry is labelled, prepared or sent, and one cycle
// longer (two with several jobs); other jobs proceed, one cycle later. A sum that cannot decide a
// beat in one pass requests it *again*: such a read replaces a new beat and is marked as a further
// pass. With many of these pending, the sum stops new beats (stop). stalled: in the cycle before,
// one of the two kept a new beat from being read. When a job ends (its bit of flush), the slot
// being read is completed, and its queued slots are dropped; drained means that no slot of the job
// is under way. It falls in the cycle after begun.
//
// Cycles: a slot completed in cycle 0 is at the head of its job's queue in cycle 1, in which its
// first beat is chosen (label_slot). Then begun is high in cycle 2, and the beat is read (rd_en).
// It is at the memories' outputs (beat_valid and its tags) in cycle 1 + READ_LATENCY. One beat
// follows another every cycle, also from one slot to the next, but slots begin in every second
// cycle at most. So the next slot is ready in registers: whose turn it is and whether its cache
// entry is on its way out are known one cycle before it begins. beat_last has no meaning in a
// further pass.
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

    // Cache entries on their way out: an entry is picked, and then in one of the other three places
    // in every cycle until it has left
    input wire                 pick_valid,
    input wire [SLOT_BITS-1:0] pick_slot,
    input wire                 picked_valid,
    input wire [SLOT_BITS-1:0] picked_slot,
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

  localparam [INDEX_BITS-1:0] NONE = 0;
  localparam [INDEX_BITS-1:0] ONE = 1;

  // -- Complete slots, by job ---------------------------------------------------------------------

  wire [JOBS-1:0] queued;  // the job has a complete slot
  wire [SLOT_BITS*JOBS-1:0] heads;
  wire [JOBS-1:0] afters_valid;
  wire [SLOT_BITS*JOBS-1:0] afters;  // the slots after these
  reg [JOBS-1:0] pops_reg;  // the job whose slot was begun in the cycle before

  // All slots that may be at the head of a queue in the next cycle, and whether their cache entries
  // are on their way out
  localparam integer SLOTS = 2 * JOBS + 1;
  wire [SLOT_BITS*SLOTS-1:0] slots = {complete_slot, afters, heads};
  wire [SLOTS-1:0] leaves;

  // The job has a complete slot, whose cache entry was not on its way out in the cycle before. Then
  // the slot was at the head already (stay), after another, or pushed: three registers, because the
  // comparisons are long enough.
  wire [JOBS-1:0] queued_next, stays, pushes;
  reg [JOBS-1:0] stay_free_reg, after_free_reg, push_free_reg;
  wire [JOBS-1:0] free = stay_free_reg | after_free_reg | push_free_reg;

  genvar g;
  generate
    for (g = 0; g < SLOTS; g = g + 1) begin : g_slot
      wire [SLOT_BITS-1:0] slot = slots[SLOT_BITS*g+:SLOT_BITS];

      assign leaves[g] = (pick_valid && pick_slot == slot) ||
          (picked_valid && picked_slot == slot) || (prep_valid && prep_slot == slot) ||
          (send_valid && send_slot == slot);
    end

    for (g = 0; g < JOBS; g = g + 1) begin : g_job
      localparam [JOB_BITS-1:0] JOB = g;

      assign pushes[g] = complete && complete_job == JOB;
      assign stays[g]  = queued[g] && !pops_reg[g];

      agg_slot_fifo #(
          .SLOT_BITS(SLOT_BITS)
      ) u_complete (
          .clk        (clk),
          .clear      (rst || flush[g]),
          .push       (pushes[g]),
          .push_slot  (complete_slot),
          .head_valid (queued[g]),
          .head_slot  (heads[SLOT_BITS*g+:SLOT_BITS]),
          .after_valid(afters_valid[g]),
          .after_slot (afters[SLOT_BITS*g+:SLOT_BITS]),
          .pop        (pops_reg[g])
      );
    end
  endgenerate

  assign queued_next = (stays | afters_valid | pushes) & ~flush;

  always @(posedge clk) begin
    stay_free_reg  <= stays & ~flush & ~leaves[0+:JOBS];
    after_free_reg <= ~stays & afters_valid & ~flush & ~leaves[JOBS+:JOBS];
    push_free_reg  <= ~stays & ~afters_valid & pushes & ~flush & ~{JOBS{leaves[2*JOBS]}};
    if (rst) begin
      stay_free_reg  <= {JOBS{1'b0}};
      after_free_reg <= {JOBS{1'b0}};
      push_free_reg  <= {JOBS{1'b0}};
    end
  end

  // -- Job arbitration ----------------------------------------------------------------------------

  // Whose turn it is in the next cycle. A job whose slot has to wait is passed over one cycle
  // later, unless it is the only one: the comparison of slots is not on the path to the choice.
  wire [JOBS-1:0] passed = JOBS == 1 ? {JOBS{1'b0}} : queued & ~free;

  reg  [JOBS-1:0] above_reg;  // jobs above the one whose slot was begun last
  wire [JOBS-1:0] can = queued_next & ~passed;
  wire [JOBS-1:0] ahead = can & above_reg;
  reg [JOBS-1:0] first_ahead, first;  // the lowest of these jobs
  reg [JOBS-1:0] turns_reg;  // the job whose turn it is, if it has a complete slot
  wire [JOBS-1:0] turns = JOBS == 1 ? {JOBS{1'b1}} : turns_reg;  // the only job always has it
  integer p;

  always @* begin
    for (p = 0; p < JOBS; p = p + 1) begin
      first_ahead[p] = ahead[p] && (ahead & ~({JOBS{1'b1}} << p)) == {JOBS{1'b0}};
      first[p] = can[p] && (can & ~({JOBS{1'b1}} << p)) == {JOBS{1'b0}};
    end
  end

  // Of each job's chunks, by the length in the cycle before: they have one beat, or two.
  reg [JOBS-1:0] one_reg, two_reg;
  integer l;

  always @(posedge clk) begin
    turns_reg <= |ahead ? first_ahead : first;
    for (l = 0; l < JOBS; l = l + 1) begin
      one_reg[l] <= job_last[INDEX_BITS*l+:INDEX_BITS] == NONE;
      two_reg[l] <= job_last[INDEX_BITS*l+:INDEX_BITS] == ONE;
    end
    if (rst) turns_reg <= {JOBS{1'b0}};
  end

  // The fields of that job, and the jobs above it
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
      if (j != 0) above[j] = above[j-1] || turns_reg[j-1];
    end
  end

  // -- Choice of a beat ---------------------------------------------------------------------------

  reg begins_reg;  // the next new beat is a slot's first
  reg [SLOT_BITS-1:0] slot_reg;  // the slot being read
  reg [JOB_BITS-1:0] job_reg;  // its job
  reg [INDEX_BITS-1:0] next_reg;  // its next beat
  reg [INDEX_BITS-1:0] rest_reg;  // beats after that
  reg ends_reg;  // there are none
  reg begun_reg;  // a slot began in the cycle before

  wire takes_new = !again_valid && !stop;
  wire can_begin = |(free & ~flush & turns) && !begun_reg;
  wire ready = !begins_reg || can_begin;
  wire reads = ready && takes_new;
  wire last = begins_reg ? |(turns_reg & one_reg) : ends_reg;
  wire [INDEX_BITS-1:0] rest = begins_reg ? turn_last : rest_reg;

  assign label_slot = again_valid ? again_slot : begins_reg ? turn_slot : slot_reg;

  reg rd_en_reg, pass_reg, last_reg, stalled_reg;
  reg [ SLOT_BITS-1:0] rd_slot_reg;
  reg [INDEX_BITS-1:0] rd_beat_reg;

  always @(posedge clk) begin
    if (reads) begin
      begins_reg <= last;
      next_reg   <= last ? NONE : next_reg + ONE;
    end
    if (reads && begins_reg) above_reg <= above;

    // Until a slot begins, these are of the one whose turn it is.
    if (begins_reg) begin
      slot_reg <= turn_slot;
      job_reg  <= turn;
    end
    if (begins_reg || takes_new) begin
      rest_reg <= rest - ONE;
      ends_reg <= begins_reg ? |(turns_reg & two_reg) : rest_reg == ONE;
    end
    rd_en_reg   <= reads || again_valid;
    rd_slot_reg <= label_slot;
    rd_beat_reg <= again_valid ? again_beat : next_reg;
    pass_reg    <= again_valid;
    last_reg    <= last;
    begun_reg   <= reads && begins_reg;
    pops_reg    <= reads && begins_reg ? turns : {JOBS{1'b0}};
    stalled_reg <= ready && !reads;
    if (rst) begin
      begins_reg  <= 1'b1;
      next_reg    <= NONE;
      above_reg   <= {JOBS{1'b0}};
      rd_en_reg   <= 1'b0;
      begun_reg   <= 1'b0;
      pops_reg    <= {JOBS{1'b0}};
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
  reg [JOBS-1:0] less;
  integer k;

  always @* begin
    for (k = 0; k < JOBS; k = k + 1) begin
      less[k] = reduced && reduced_job == k[JOB_BITS-1:0];
    end
  end

  integer c;

  always @(posedge clk) begin
    for (c = 0; c < JOBS; c = c + 1) begin
      if (pops_reg[c] && !less[c])
        on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] + 1'b1;
      if (less[c] && !pops_reg[c])
        on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*c+:SLOT_BITS+1] - 1'b1;
      if (pops_reg[c] != less[c])
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
  reg [JOBS-1:0] stays_were, afters_were, pushes_were, ended_were;
  reg [SLOT_BITS*JOBS-1:0] slots_were, after_slots_were;
  reg [SLOT_BITS-1:0] push_was;
  wire [3:0] out_valid = {send_valid, prep_valid, picked_valid, pick_valid};
  wire [SLOT_BITS*4-1:0] out_slots = {send_slot, prep_slot, picked_slot, pick_slot};
  reg [3:0] outs_were, out_before;  // entries that were on their way out, also one cycle before
  reg [SLOT_BITS*4-1:0] out_slots_were;
  reg
      out,
      was_out;  // of the watched job's head: its entry is on its way out; it was, or was picked
  reg passed_over;  // the watched job, because its slot waited
  reg read_was, pass_was, new_was, begun_was, begun_before, kept_was;
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
  wire may_begin = queued[watched] && !flush[watched] && !was_out && (JOBS == 1 || !passed_over);
  wire held_up = |(turns_reg & ~(free & ~flush));  // the job whose turn it is has to wait
  integer n, o, m;

  always @* begin
    out = 1'b0;
    was_out = 1'b0;
    for (o = 0; o < 4; o = o + 1) begin
      if (o != 0 && out_valid[o] && out_slots[SLOT_BITS*o+:SLOT_BITS] == watched_head) out = 1'b1;
      if (outs_were[o] && out_slots_were[SLOT_BITS*o+:SLOT_BITS] == watched_head) was_out = 1'b1;
      out_before[o] = 1'b0;
      for (m = 0; m < 4; m = m + 1)
      if (outs_were[m] &&
          out_slots_were[SLOT_BITS*m+:SLOT_BITS] == out_slots[SLOT_BITS*o+:SLOT_BITS])
        out_before[o] = 1'b1;
    end
  end

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
    stays_were <= queued & ~pops_reg;
    afters_were <= afters_valid;
    for (n = 0; n < JOBS; n = n + 1) pushes_were[n] <= complete && complete_job == n;
    ended_were <= flush;
    slots_were <= heads;
    after_slots_were <= afters;
    push_was <= complete_slot;
    outs_were <= out_valid;
    out_slots_were <= out_slots;
    passed_over <= queued[watched] && was_out;

    read_was <= reads || again_valid;
    new_was <= reads;
    begun_was <= new_slot;
    begun_before <= begun_was;
    kept_was <= (beat != 0 || (|turns_reg && !held_up && !begun)) && (stop || again_valid);
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
      // agg_slot_fifo: the head is the one before, or the one after that, or the one pushed.
      for (n = 0; n < JOBS; n = n + 1) begin
        assume (!running_was || queued[n] ==
            (!ended_were[n] && (stays_were[n] || afters_were[n] || pushes_were[n])));
        assume (!running_was || !queued[n] || heads[SLOT_BITS*n+:SLOT_BITS] ==
            (stays_were[n] ? slots_were[SLOT_BITS*n+:SLOT_BITS] :
            afters_were[n] ? after_slots_were[SLOT_BITS*n+:SLOT_BITS] : push_was));
        assume (running_was || !queued[n]);
      end
      // agg_egress: an entry on its way out was so in the cycle before, or was picked then.
      `PROMISED(!running_was || (out_valid[3:1] & ~out_before[3:1]) == 0);
      // agg_jobs changes a job's chunk length only while the job has no slots here. agg_writer
      // pulses reduced once for each slot of which a beat was read, after begun. There are no more
      // slots than SLOTS.
      for (n = 0; n < JOBS; n = n + 1)
      `PROMISED(
          (!queued[n] && (beat == 0 || its_job != n)) ||
            job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]);
      `PROMISED(!(reduced && reduced_job == watched) || on_way != 0);
      `PROMISED(!(begun && begun_job == watched) || on_way < 1 << SLOT_BITS);
    end
    if (was_reset && !rst) begin

      assert (next_reg == beat && begins_reg == (beat == 0) && beat <= now_last);
      if (beat != 0) assert (job_reg == its_job && slot_reg == begun_last);
      if (beat != 0) assert (rest_reg == now_last - beat && ends_reg == (rest_reg == 0));
      if (reads)
        assert (label_slot == (beat == 0 ? turn_head : begun_last) && !stop && !again_valid);
      if (new_slot) assert (queued[now] && !flush[now]);
      assert (pops_reg[watched] == (begun && begun_job == watched));
      assert (!pops_reg[watched] || queued[watched]);
      if (again_valid) assert (label_slot == again_slot);

      // Only a slot's first beat waits: for its cache entry, for its job's end, and for its job's
      // turn.
      if (new_slot && now == watched) assert (queued[watched] && !flush[watched] && !out);
      if (new_slot) assert (!begun);
      if (beat != 0 && !again_valid && !stop) assert (reads);
      if (beat == 0 && may_begin && !again_valid && !stop && !begun) assert (new_slot || held_up);
      assert (free[watched] == (queued[watched] && !was_out));
      if (running_was && turns_reg[watched])
        assert (queued[watched] && (JOBS == 1 || !passed_over));

      // While a job has a slot that may begin, no other job begins two.
      if (waits && may_begin && new_slot) assert (!in_front[now]);
      assert ((below & (below + 1'b1)) == 0);
      assert ((turns_reg & (turns_reg - 1'b1)) == 0 && (turns_reg == 0 || turns_reg[turn]));
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
      cover (new_slot && begun_before && now_last == 0 && beat_last);
      cover (waits && in_front != 0 && new_slot && now == watched);
      cover (beat == 0 && held_up && may_begin);
      cover (again_valid && stalled);
      cover (reduced && begun && reduced_job == begun_job);
    end
  end
`endif

endmodule

`default_nettype wire
