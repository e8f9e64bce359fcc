// Tracks which own sums are owed to the parent, and picks the next one to send.
//
// An own sum is owed once it begins to be summed (enter), and again when a member repeats while its
// slot waits (again), unless it was sent less than JOB_REPEAT cycles ago. The final sum that is taken
// ends the debt. agg_egress cancels a pick if the slot begins its final sum meanwhile.
//
// The own sum of v does not leave before the slot of v - W holds v - W and is reduced or empty, or
// holds a later VID: for the parent it is evidence of that.
//
// A scan looks for such a sum in the slots of one job at a time, from the slot after the one that the
// job sent last. If the job owes nothing else, it begins at the slot that is owed. After a pick, or
// a scan of all of the job's slots in vain, it is the next job's turn. A debt is a bit in a row of a
// memory, with one writer: operations on rows take two cycles, and one can begin in each cycle. The
// event of agg_slots goes first, then a slot that enters, then a pick that was made.
//
// A row also has the time until which a sum that was sent is *young*. Times wrap, so every row is
// examined in turn, in cycles without another operation: then the mark is removed in time.
//
// Latency: from rest, a sum that enters in cycle 0 can be picked in cycle 7. The scan takes two cycles
// for a slot without a debt, and three for one whose neighbour holds it up. Not done here: sending.

`default_nettype none

module agg_up_owed #(
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4,
    parameter integer TIME      = 26  // width of a time; JOB_REPEAT has one bit less
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input wire [JOBS-1:0] flush,  // the job ends: nothing is owed
    input wire [SLOT_BITS*JOBS-1:0] job_window,
    input wire [SLOT_BITS*JOBS-1:0] slot_mask,  // 2 * window - 1
    input wire [SLOT_BITS*JOBS-1:0] slot_base,
    input wire [32*JOBS-1:0] job_first,
    input wire [(TIME-1)*JOBS-1:0] job_repeat,  // cycles
    input wire clear,  // the slot becomes empty; without other events of it
    input wire [SLOT_BITS-1:0] clear_slot,

    // An own sum begins; not in consecutive cycles
    input wire                 enter,
    input wire [SLOT_BITS-1:0] enter_slot,
    input wire [ JOB_BITS-1:0] enter_job,

    // A slot's final sum is in the cache; never with clear
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot,

    // Events of agg_slots, at most one, and not in consecutive cycles
    input wire                 turn_over,  // the slot takes the VID
    input wire                 again,
    input wire                 taken,
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire [         31:0] vid,

    output wire repeats,  // a sum is owed again

    output wire                 pick_wants,
    input  wire                 pick_ready,  // and the up port can take a packet: pick
    output wire                 pick_valid,  // one cycle later
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [ JOB_BITS-1:0] pick_job
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg  [SLOT_BITS:0] counts_reg[0:JOBS-1];  // own sums that each job owes
  reg  [   JOBS-1:0] owing_reg;  // it owes some

  // -- Slots: VIDs, and whether their final sum is in the cache -------------------------------------

  // {active, VID}, of the scan's slot and of its neighbour by one window
  (* no_rw_check *) reg [32:0] own_vids[0:SLOTS-1];
  (* no_rw_check *) reg [32:0] other_vids[0:SLOTS-1];
  // A slot's VIDs are 2 W apart: one bit alternates. The final sum is in the cache if that bit was so
  // when the last one came.
  reg parities[0:SLOTS-1];  // that bit of the slot's VID
  reg [1:0] finals[0:SLOTS-1];  // {any, the bit}
  reg reduced_reg, clear_reg, parity_reg;
  reg [SLOT_BITS-1:0] done_slot_reg;

  function automatic parity_of;
    input [SLOT_BITS:0] number;
    input [SLOT_BITS-1:0] its_mask;
    parity_of = |(number & ({1'b0, its_mask} + 1'b1));
  endfunction

  always @(posedge clk) begin
    if (turn_over || clear) begin
      own_vids[clear?clear_slot : slot]   <= {!clear, vid};
      other_vids[clear?clear_slot : slot] <= {!clear, vid};
    end
    if (turn_over)
      parities[slot] <= parity_of(vid[SLOT_BITS:0], slot_mask[SLOT_BITS*job+:SLOT_BITS]);

    reduced_reg   <= reduced && !rst;
    clear_reg     <= clear && !rst;
    done_slot_reg <= clear ? clear_slot : reduced_slot;
    parity_reg    <= parities[reduced_slot];
    if (reduced_reg || clear_reg) finals[done_slot_reg] <= {reduced_reg, parity_reg};
  end

  // -- Operations on rows ---------------------------------------------------------------------------

  // Times wrap after 2^TIME cycles. Rows are examined more often.
  localparam integer ROW = TIME + 2;

  reg [ROW-1:0] rows[0:SLOTS-1];  // {owed, young, until}
  reg [TIME-1:0] now_reg;
  reg [TIME-1:0] until_reg;  // of the pick
  reg [SLOT_BITS-1:0] walk_reg;  // the next row to examine

  reg entered_reg;  // an own sum waits to be entered
  reg [SLOT_BITS-1:0] entered_slot_reg;
  reg [JOB_BITS-1:0] entered_job_reg;
  reg pick_reg;
  reg sent_reg;  // a pick waits to be recorded
  reg [SLOT_BITS-1:0] at_slot_reg;  // of the scan, and of the pick
  reg [JOB_BITS-1:0] scan_job_reg;

  wire of_slots = turn_over || again || taken;
  wire takes_entered = entered_reg && !of_slots;
  wire takes_sent = sent_reg && !of_slots && !entered_reg;

  reg op_keeps_reg;  // a repeat, or the row is examined
  reg op_reg, op_again_reg, op_enter_reg, op_sent_reg;
  reg [SLOT_BITS-1:0] op_slot_reg;
  reg [JOB_BITS-1:0] op_job_reg;
  reg [ROW-1:0] read_reg;
  reg wrote_reg;  // the row was written while it was read
  reg [ROW-1:0] written_reg;
  wire [ROW-1:0] row = wrote_reg ? written_reg : read_reg;
  wire [TIME-1:0] left = now_reg - row[TIME-1:0];  // negative until then
  wire young = row[TIME] && left[TIME-1];
  wire owed = row[ROW-1];
  wire owes_again = op_again_reg && !owed && !young;
  wire owed_next = op_enter_reg || owes_again || (op_keeps_reg && owed);
  wire young_next = op_sent_reg || (op_keeps_reg && young);
  wire [ROW-1:0] row_next = {owed_next, young_next, op_sent_reg ? until_reg : row[TIME-1:0]};
  wire [SLOT_BITS-1:0] op_slot = of_slots ? slot : entered_reg ? entered_slot_reg :
      sent_reg ? at_slot_reg : walk_reg;
  wire walks = !of_slots && !entered_reg && !sent_reg;
  // A turnover clears what an earlier job left in the row: no debt of this job.
  reg op_counts_reg;
  wire more = op_counts_reg && owed_next && (!owed || op_enter_reg);
  wire less = op_counts_reg && !owed_next && owed;
  wire [SLOT_BITS:0] count = counts_reg[op_job_reg];
  wire unused = &{1'b0, left[TIME-2:0]};
  integer j;

  always @(posedge clk) begin
    if (enter) begin
      entered_reg      <= 1'b1;
      entered_slot_reg <= enter_slot;
      entered_job_reg  <= enter_job;
    end else if (takes_entered) begin
      entered_reg <= 1'b0;
    end

    now_reg <= now_reg + 1'b1;
    if (walks) walk_reg <= walk_reg + 1'b1;
    if (pick_reg) until_reg <= now_reg + {1'b0, job_repeat[(TIME-1)*scan_job_reg+:TIME-1]};

    op_reg        <= 1'b1;
    op_keeps_reg  <= again || walks;
    op_again_reg  <= again;
    op_enter_reg  <= takes_entered;
    op_sent_reg   <= takes_sent;
    op_counts_reg <= (again || taken || takes_entered || takes_sent);
    op_slot_reg   <= op_slot;
    op_job_reg    <= of_slots ? job : entered_reg ? entered_job_reg : scan_job_reg;
    read_reg      <= rows[op_slot];
    wrote_reg     <= op_reg && op_slot == op_slot_reg;
    written_reg   <= row_next;
    if (op_reg) rows[op_slot_reg] <= row_next;

    if (more) begin
      counts_reg[op_job_reg] <= count + 1'b1;
      owing_reg[op_job_reg]  <= 1'b1;
    end
    if (less) begin
      counts_reg[op_job_reg] <= count - 1'b1;
      owing_reg[op_job_reg]  <= count != {{SLOT_BITS{1'b0}}, 1'b1};
    end
    for (j = 0; j < JOBS; j = j + 1) begin
      if (flush[j]) begin
        counts_reg[j] <= {SLOT_BITS + 1{1'b0}};
        owing_reg[j]  <= 1'b0;
      end
    end
    if (rst) begin
      now_reg       <= {TIME{1'b0}};
      walk_reg      <= {SLOT_BITS{1'b0}};
      entered_reg   <= 1'b0;
      op_reg        <= 1'b0;
      op_again_reg  <= 1'b0;
      op_counts_reg <= 1'b0;
    end
  end

  assign repeats = op_reg && owes_again && op_counts_reg && !flush[op_job_reg];

  // -- Scan -----------------------------------------------------------------------------------------

  localparam integer STATE_TURN = 0;  // choose a job
  localparam integer STATE_READ = 1;  // its slot is read
  localparam integer STATE_LOOK = 2;  // is its sum owed?
  localparam integer STATE_DECIDE = 3;  // may it leave?
  localparam integer STATE_OFFER = 4;  // until it is picked, or not owed any more
  localparam integer STATE_SENT = 5;  // until the pick is recorded
  localparam integer STATES = 6;
  localparam [STATES-1:0] ONE_STATE = 1;

  reg [STATES-1:0] at_reg;  // one-hot
  reg [SLOT_BITS-1:0] ats_reg[0:JOBS-1];  // where each job's scan begins, relative to its slots
  reg [SLOT_BITS-1:0] place_reg, left_reg;  // the scan's slot, relative; the slots after it
  reg [JOBS-1:0] above_reg;  // jobs above the one whose turn it was
  reg scan_owed_reg;
  reg [32:0] own_reg, other_reg;
  reg [1:0] other_final_reg;

  wire [JOBS-1:0] ahead = owing_reg & above_reg;
  wire [JOBS-1:0] among = |ahead ? ahead : owing_reg;
  wire [JOBS-1:0] next = among & (~among + 1'b1);
  reg [JOB_BITS-1:0] next_job;
  integer n;

  always @* begin
    next_job = {JOB_BITS{1'b0}};
    for (n = 0; n < JOBS; n = n + 1) if (next[n]) next_job = next_job | n[JOB_BITS-1:0];
  end

  wire [SLOT_BITS-1:0] window = job_window[SLOT_BITS*scan_job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] mask = slot_mask[SLOT_BITS*scan_job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] base = slot_base[SLOT_BITS*scan_job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] other_slot = at_slot_reg ^ window;
  wire [SLOT_BITS-1:0] place_next = (place_reg + 1'b1) & mask;
  wire [31:0] window_vid = {{32 - SLOT_BITS{1'b0}}, window};

  // How far the neighbour's VID is after v - W, and v after the job's first VID
  reg [31:0] after_reg, since_reg;
  reg there_reg;  // the neighbour had that VID
  wire before_first = since_reg < window_vid;
  wire other_final = other_final_reg == {1'b1, parity_of(other_reg[SLOT_BITS:0], mask)};
  wire may_leave = there_reg ? !after_reg[31] && (after_reg != 32'd0 || other_final) : before_first;

  wire ends = flush[scan_job_reg];
  wire [ROW-1:0] scan_row = rows[at_slot_reg];
  wire unused_row = &{1'b0, scan_row[ROW-2:0]};
  wire dropped = taken && slot == at_slot_reg;
  wire picks = at_reg[STATE_OFFER] && pick_ready;
  wire passes = (at_reg[STATE_LOOK] && !(scan_owed_reg && own_reg[32])) ||
      (at_reg[STATE_DECIDE] && !(scan_owed_reg && may_leave));  // if own_vids was read in its write
  wire exhausted = left_reg == {SLOT_BITS{1'b0}};
  wire recorded = at_reg[STATE_SENT] && !sent_reg && !op_sent_reg;

  // From rest, the scan begins where a sum enters.
  wire jumps = more && !owing_reg[op_job_reg];
  wire [SLOT_BITS-1:0] jump_place = op_slot_reg & slot_mask[SLOT_BITS*op_job_reg+:SLOT_BITS];

  always @(posedge clk) begin
    pick_reg        <= picks && !rst;
    scan_owed_reg   <= op_reg && op_slot_reg == at_slot_reg ? owed_next : scan_row[ROW-1];
    own_reg         <= own_vids[at_slot_reg];
    other_reg       <= other_vids[other_slot];
    other_final_reg <= finals[other_slot];
    there_reg       <= other_reg[32];
    after_reg       <= other_reg[31:0] - own_reg[31:0] + window_vid;
    since_reg       <= own_reg[31:0] - job_first[32*scan_job_reg+:32];

    if (jumps) ats_reg[op_job_reg] <= jump_place;
    if (picks) sent_reg <= 1'b1;
    else if (takes_sent) sent_reg <= 1'b0;

    if (at_reg[STATE_TURN]) begin
      scan_job_reg <= next_job;
      place_reg    <= ats_reg[next_job];
      left_reg     <= slot_mask[SLOT_BITS*next_job+:SLOT_BITS];
      at_slot_reg  <= slot_base[SLOT_BITS*next_job+:SLOT_BITS] | ats_reg[next_job];
      if (|owing_reg) begin
        at_reg    <= ONE_STATE << STATE_READ;
        above_reg <= ~(next | (next - 1'b1));
      end
    end
    if (at_reg[STATE_READ]) at_reg <= ONE_STATE << STATE_LOOK;
    if (at_reg[STATE_LOOK]) at_reg <= ONE_STATE << STATE_DECIDE;
    if (at_reg[STATE_DECIDE]) at_reg <= ONE_STATE << STATE_OFFER;
    if (passes) begin
      at_reg      <= ONE_STATE << (exhausted ? STATE_TURN : STATE_READ);
      place_reg   <= place_next;
      at_slot_reg <= base | place_next;
      left_reg    <= left_reg - 1'b1;
    end
    if (picks) at_reg <= ONE_STATE << STATE_SENT;
    if (recorded) begin
      at_reg                <= ONE_STATE << STATE_TURN;
      ats_reg[scan_job_reg] <= place_next;
    end
    if ((ends || dropped) && !picks && !at_reg[STATE_TURN] && !at_reg[STATE_SENT])
      at_reg <= ONE_STATE << STATE_TURN;

    if (rst) begin
      at_reg   <= ONE_STATE << STATE_TURN;
      sent_reg <= 1'b0;
    end
  end

  assign pick_wants = at_reg[STATE_OFFER];
  assign pick_valid = pick_reg;
  assign pick_slot  = at_slot_reg;
  assign pick_job   = scan_job_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Two jobs of two slots each, or one of all four
  (* anyconst *) reg whole;
  wire [SLOT_BITS-1:0] w = whole ? SLOTS / 2 : SLOTS / 4;
  wire [SLOT_BITS-1:0] m = 2 * w - 1;
  wire [SLOTS-1:0] of_job_1 = whole ? 0 : {SLOTS{1'b1}} << SLOTS / 2;
  reg was_reset = 1'b0;

  // The life of each slot in its job: it has a VID, its own sum has begun, its final sum is taken, and
  // is in the cache
  reg [SLOTS-1:0] known, exists, ended, settled;
  reg [SLOTS-1:0] turned_0;  // one cycle ago
  reg [SLOTS-1:0] begun_0, begun_1, begun_2, begun_3;  // one to four cycles ago
  reg [SLOTS-1:0] taken_0, taken_1, taken_2, taken_3;
  reg [SLOTS-1:0] settled_0, settled_1, settled_2;
  reg [SLOTS-1:0] emptied;  // since the last event of its job
  reg [32*SLOTS-1:0] vids;
  wire event_now = turn_over || again || taken;
  wire [SLOTS-1:0] at_slot = 1 << slot;
  wire [SLOTS-1:0] turns = turn_over ? at_slot : 0;
  wire [SLOTS-1:0] begins = enter ? 1 << enter_slot : 0;
  wire [SLOTS-1:0] reductions = reduced ? 1 << reduced_slot : 0;
  wire [SLOTS-1:0] settles = reductions & ended;
  wire [SLOTS-1:0] clears = clear ? 1 << clear_slot : 0;
  wire [SLOTS-1:0] flushes = (flush[0] ? ~of_job_1 : 0) | (flush[1] ? of_job_1 : 0);
  reg [SLOTS-1:0] flushed;  // its job ended one cycle ago
  reg [JOBS-1:0] flush_was;
  reg [4*JOBS-1:0] quiet;  // cycles of flush since the last event of the job, at most 15
  reg enter_was, event_was;
  reg [2:0] busy;  // cycles without one for a pick
  reg [3:0] waits;  // cycles since the pick, at most 15
  reg [32*JOBS-1:0] first_was;
  reg [(TIME-1)*JOBS-1:0] repeat_was;

  // What each slot owes when its operations are over, what is counted, and what may leave
  reg [SLOTS-1:0] owes, counted, may, beside;
  reg [SLOT_BITS:0] sum_0, sum_1;
  reg [31:0] ahead_of;
  reg [SLOT_BITS-1:0] other;
  integer f, g, i;

  // For any slot: is its sum due, and when was it sent?
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg due, was_sent;
  reg [TIME-1:0] since, unseen;  // cycles since it was sent, and since its row was examined
  wire [TIME-2:0] its_repeat = job_repeat[(TIME-1)*of_job_1[watched]+:TIME-1];
  wire it_picks = picks && at_slot_reg == watched;
  wire its_young = was_sent &&
      ((sent_reg && at_slot_reg == watched) || {1'b0, since} + 1'b1 < its_repeat);
  wire [ROW-1:0] its_row = rows[watched];
  wire [TIME-1:0] its_until = now_reg + its_repeat - since;
  wire [TIME-1:0] late_by = since - its_repeat;
  wire records = sent_reg || (op_reg && op_sent_reg);
  wire recording = records && at_slot_reg == watched;

  always @* begin
    sum_0 = 0;
    sum_1 = 0;
    for (f = 0; f < SLOTS; f = f + 1) begin
      owes[f] = op_reg && op_slot_reg == f ? owed_next : rows[f][ROW-1];
      if (entered_reg && entered_slot_reg == f) owes[f] = 1'b1;
      if (sent_reg && at_slot_reg == f) owes[f] = 1'b0;
      counted[f] = rows[f][ROW-1] && known[f] && !turned_0[f];
      if (of_job_1[f]) sum_1 = sum_1 + counted[f];
      else sum_0 = sum_0 + counted[f];
      other = f ^ w;
      ahead_of = vids[32*other+:32] - vids[32*f+:32];
      beside[f] = !(known[f] && known[other]) || {3{ahead_of[31]}} == ahead_of[31:29];
      ahead_of = ahead_of + w;
      may[f] = known[other] ? !ahead_of[31] && (ahead_of != 0 || settled[other]) :
          vids[32*f+:32] - job_first[32*of_job_1[f]+:32] < w;
    end
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    flush_was <= flush;
    flushed <= flushes;
    first_was <= job_first;
    repeat_was <= job_repeat;
    enter_was <= enter && !rst;
    event_was <= event_now && !rst;
    waits <= picks ? 0 : waits + !(&waits);
    busy <= rst || !(event_now || entered_reg) ? 0 : busy + !(&busy);
    turned_0 <= turns;
    {begun_3, begun_2, begun_1, begun_0} <= {begun_2, begun_1, begun_0, begins};
    {taken_3, taken_2, taken_1, taken_0} <= {
      taken_2, taken_1, taken_0, taken ? at_slot : {SLOTS{1'b0}}
    };
    {settled_2, settled_1, settled_0} <= {settled_1, settled_0, settles};
    known <= rst ? 0 : (known | turns) & ~flushes;
    exists <= rst ? 0 : ((exists & ~turns) | begins) & ~flushes;
    ended <= rst ? 0 : ((ended & ~turns) | (taken ? at_slot : 0)) & ~flushes;
    settled <= rst ? 0 : ((settled & ~turns) | settles) & ~flushes;
    emptied <= rst ? 0 : (emptied | clears) & ~turns & ~reductions & ~(flushes & ~flushed);
    if (turn_over) vids[32*slot+:32] <= vid;
    for (g = 0; g < JOBS; g = g + 1)
    if (rst || !flush[g] || (event_now && job == g) || (enter && enter_job == g))
      quiet[4*g+:4] <= 0;
    else quiet[4*g+:4] <= quiet[4*g+:4] + !(&quiet[4*g+:4]);

    // The definition: a sum is due from its beginning, or a repeat, until it is sent or the final sum
    // is taken.
    since  <= pick_reg && at_slot_reg == watched ? 1 : since + !(&since);
    unseen <= op_reg && op_slot_reg == watched ? 0 : unseen + 1'b1;
    if (begins[watched] || (again && slot == watched && !its_young)) due <= 1'b1;
    if (it_picks || (taken && slot == watched) || turns[watched] || flushes[watched] || rst)
      due <= 1'b0;
    was_sent <= it_picks || (was_sent && !turns[watched]);
  end

  always @* begin
    if (rst) `PROMISED(&flush);  // agg_jobs
    if (was_reset && !rst) begin
      // agg_jobs: a job has its slots and settings until it has ended, and it has when nothing of it
      // is under way and its slots are empty.
      `PROMISED(job_window == {2'd1, w} && slot_mask == {2'd1, m} && slot_base == {2'd2, 2'd0});
      `PROMISED(!event_now || job == of_job_1[slot]);
      `PROMISED(!enter || enter_job == of_job_1[enter_slot]);
      `PROMISED(!clear || (flushes[clear_slot] && flushed[clear_slot] && !event_now && !reduced));
      for (i = 0; i < JOBS; i = i + 1) begin
        if ((known & (i == 0 ? ~of_job_1 : of_job_1)) != 0) begin
          `PROMISED(job_first[32*i+:32] == first_was[32*i+:32]);
          `PROMISED(job_repeat[(TIME-1)*i+:TIME-1] == repeat_was[(TIME-1)*i+:TIME-1]);
        end
        `PROMISED(flush[i] || !flush_was[i] || quiet[4*i+:4] >= 8);
      end
      `PROMISED(&(emptied | flushes | ~flushed));
      // agg_slots, agg_reader: at most one event, and not in consecutive cycles. One cycle of four has
      // none.
      `PROMISED(
          turn_over + again + taken <= 1 && !(event_now && event_was) && !(enter && enter_was));
      `PROMISED(busy < 4);
      // They are in this order, and some cycles are between them, as the sums are.
      for (i = 0; i < SLOTS; i = i + 1)
      if (!flushes[i]) begin
        if (turns[i]) begin
          `PROMISED(!known[i] || (settled[i] && !settled_0[i] && !settled_1[i] && !settled_2[i]));
          if (known[i]) `PROMISED(vid == vids[32*i+:32] + m + 1'b1);
          else `PROMISED(vid - job_first[32*of_job_1[i]+:32] <= m);
          `PROMISED(((vid ^ i) & m) == 0);
        end
        if (begins[i]) `PROMISED(known[i] && !exists[i] && !turned_0[i] && !turns[i]);
        if ((again || taken) && slot == i)
          `PROMISED(
              exists[i] && !ended[i] && !(begun_0[i] || begun_1[i] || begun_2[i] || begun_3[i]));
        if (settles[i])
          `PROMISED(!settled[i] && !(taken_0[i] || taken_1[i] || taken_2[i] || taken_3[i]));
      end
      if (reduced && !flushes[reduced_slot]) `PROMISED(ended[reduced_slot]);
      `PROMISED(&beside);
      `PROMISED(unseen < 1 << TIME - 2);  // rows are examined before times wrap
    end

    if (was_reset && !rst) begin
      // The scan
      assert (at_reg != 0 && (at_reg & (at_reg - 1'b1)) == 0);
      assert (!records || at_reg[STATE_SENT]);
      assert (!(sent_reg && op_reg && op_sent_reg) && (!pick_reg || sent_reg));
      for (i = 0; i < JOBS; i = i + 1)
      assert (!owing_reg[i] || (ats_reg[i] & ~slot_mask[SLOT_BITS*i+:SLOT_BITS]) == 0);
      if (!at_reg[STATE_TURN])
        assert (at_slot_reg == (base | place_reg) && scan_job_reg == of_job_1[at_slot_reg]);
      if (at_reg[STATE_LOOK] || at_reg[STATE_DECIDE] || at_reg[STATE_OFFER])
        assert (scan_owed_reg == rows[at_slot_reg][ROW-1]);
      if (at_reg[STATE_OFFER]) assert (known[at_slot_reg] && scan_owed_reg && owes[at_slot_reg]);
      if (pick_valid) assert (pick_slot == at_slot_reg && pick_job == scan_job_reg);

      // A pick is recorded before its slot turns over, and before its job has ended.
      if (sent_reg) assert (waits <= busy);
      if (at_reg[STATE_SENT]) assert (waits <= (sent_reg ? 3 : records ? 4 : 5));
      if (records) begin
        assert (exists[at_slot_reg] || flushed[at_slot_reg]);
        if (ended[at_slot_reg])
          assert (taken_0[at_slot_reg] || (waits > 0 && taken_1[at_slot_reg]) || waits > 3 ||
                  (waits > 1 && taken_2[at_slot_reg]) || (waits > 2 && taken_3[at_slot_reg]));
        if (settled[at_slot_reg]) assert (waits > 4);
      end
      for (i = 0; i < JOBS; i = i + 1) begin
        if (flush_was[i]) assert (counts_reg[i] == 0 && !owing_reg[i]);
        if (!flush_was[i]) assert (quiet[4*i+:4] == 0);
        if (quiet[4*i+:4] >= 3)
          assert (at_reg[STATE_SENT] || at_reg[STATE_TURN] || scan_job_reg != i);
        if (at_reg[STATE_SENT] && scan_job_reg == i) assert (waits + 1'b1 >= quiet[4*i+:4]);
        if (quiet[4*i+:4] >= 4)
          assert (!(op_reg && op_counts_reg && !op_sent_reg && op_job_reg == i) &&
                  !(entered_reg && entered_job_reg == i));
      end

      // Operations, rows, and what they count
      if (op_reg) assert (row == rows[op_slot_reg]);
      assert (counts_reg[0] == sum_0 && counts_reg[1] == sum_1);
      assert (owing_reg == {sum_1 != 0, sum_0 != 0});
      if (entered_reg) begin
        assert (begun_0[entered_slot_reg] || begun_1[entered_slot_reg]);
        assert (entered_job_reg == of_job_1[entered_slot_reg]);
      end
      assert (!op_reg || !op_counts_reg || op_job_reg == of_job_1[op_slot_reg]);
      assert (op_again_reg + op_enter_reg + op_sent_reg <= 1);
      if (op_reg && op_enter_reg) assert (begun_1[op_slot_reg] || begun_2[op_slot_reg]);
      for (i = 0; i < SLOTS; i = i + 1) begin
        if (flushed[i]) assert (!known[i]);
        assert (!settled[i] || ended[i]);
        assert (!ended[i] || exists[i]);
        assert (!exists[i] || known[i]);
        assert (emptied[i] ? !known[i] : known[i] || flushed[i]);
        assert (!(begun_0[i] || begun_1[i] || begun_2[i]) || exists[i] || flushed[i]);
        assert (!emptied[i] || (!own_vids[i][32] && !other_vids[i][32]));
        if (known[i]) begin
          assert (own_vids[i][32] && other_vids[i][32]);
          if (!exists[i] || ended[i]) assert (!owes[i]);
          if (!turned_0[i] && !exists[i]) assert (!rows[i][ROW-1]);
          if (entered_reg && entered_slot_reg == i) assert (exists[i] && !rows[i][ROW-1]);
          if (op_reg && op_slot_reg == i) begin
            if (op_enter_reg) assert (exists[i] && !rows[i][ROW-1]);
            if (op_again_reg) assert (exists[i]);
          end
        end
      end
`ifdef TIMES

      // The times of the watched slot, and its debt
      if (known[watched] && !flushes[watched] && !ended[watched]) begin
        if (!was_sent) begin
          assert (!recording && (turned_0[watched] || !its_row[TIME]));
        end else if (recording) begin
          assert (pick_reg || (until_reg == its_until && since == waits));
        end else begin
          assert (its_row[TIME-1:0] == its_until || !its_row[TIME]);
          assert (its_row[TIME] || since >= its_repeat);
          assert (!its_row[TIME] || since < its_repeat || late_by <= unseen + 8);
        end
        if (was_sent)
          assert (exists[watched] && !(entered_reg && entered_slot_reg == watched) &&
                  !(op_reg && op_enter_reg && op_slot_reg == watched));
      end
      if (known[watched]) assert (due == owes[watched]);
      if (it_picks) assert (due && exists[watched] && !ended[watched]);
`endif
`ifdef ORDER

      // VIDs, and what may leave
      for (i = 0; i < SLOTS; i = i + 1) begin
        if (emptied[i]) begin
          assert (!finals[i][1] || (clear_reg && done_slot_reg == i));
          assert (!(reduced_reg && done_slot_reg == i));
        end
        if (known[i]) begin
          assert (own_vids[i][31:0] == vids[32*i+:32] && other_vids[i][31:0] == vids[32*i+:32]);
          assert (((vids[32*i+:32] ^ i) & m) == 0);
          assert (parities[i] == parity_of(vids[32*i+:SLOT_BITS+1], m));
          if (settled[i]) begin
            assert (finals[i] == {1'b1, parities[i]} ||
                    (reduced_reg && done_slot_reg == i && parity_reg == parities[i]));
          end else begin
            assert (finals[i] != {1'b1, parities[i]});
            assert (!((reduced_reg || clear_reg) && done_slot_reg == i));
          end
        end
      end
      if (at_reg[STATE_OFFER]) assert (may[at_slot_reg]);
`endif
`ifdef COVER

      // Short ways to what can happen: one job, without events at its end
      assume (flush[1] && !(flush[0] && (event_now || enter || reduced)));
      assume (job_first == 0 && vid < 16);
      cover (it_picks && !was_sent && known[watched^w]);
      cover (it_picks && !was_sent && !known[watched^w]);
      cover (again && known[watched] && slot == watched && its_young && !due);
`endif
    end
  end
`endif

endmodule

`default_nettype wire
