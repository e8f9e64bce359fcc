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
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input wire [JOBS-1:0] flush,  // the job ends: nothing is owed
    input wire [SLOT_BITS*JOBS-1:0] job_window,
    input wire [SLOT_BITS*JOBS-1:0] slot_mask,  // 2 * window - 1
    input wire [SLOT_BITS*JOBS-1:0] slot_base,
    input wire [32*JOBS-1:0] job_first,
    input wire [25*JOBS-1:0] job_repeat,  // cycles
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

  // Times wrap after 2^TIME cycles, four times the longest JOB_REPEAT. Rows are examined more often.
  localparam integer TIME = 26;
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

    now_reg <= now_reg + 26'd1;
    if (walks) walk_reg <= walk_reg + 1'b1;
    if (pick_reg) until_reg <= now_reg + {1'b0, job_repeat[25*scan_job_reg+:25]};

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
      now_reg       <= 26'd0;
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

endmodule

`default_nettype wire
