// The slot table: judges packets by the slot rules, one every second cycle at most.
//
// A slot is empty, collecting, reducing or reduced. It is *active* once it has turned over since
// its job was set up, *closed* once it holds all members, and reduced when its sum is in the
// cache. An empty slot has no entry: the VID it would hold follows from the job's first VID, and
// every member is done with it. Members are identified by port; an evicted port is not a member.
//
// An overdue slot is acted upon like a packet (agg_deadlines). With partial sums, a collecting
// slot is closed with the contributions it holds; for a reduced one, members that are not done are
// evicted. Without, the missing members are reported.
//
// A job has 2 W slots, W its window, from a multiple of 2 W on (base). The slots of v and v - W
// differ in one bit of their number, the window's. A row of the table holds such a pair, so both
// are read and updated at once: row n of a job, 0 to W - 1, is row base / 2 + n of the table. So no
// two jobs share a row. A row has two words, low for the slot with the window's bit clear, high for
// the other. A word: {active, closed, gen, stalled, marks 4, done, held, VID 32}.
//
// Sums come at any time, so they have memories of their own: a bit for each slot, which the end of
// a reduction sets to the slot's gen. The slot is reduced if it is closed and the bit equals its
// gen. A slot that turns over takes the other gen. A slot has a gen from its first turn-over on.
//
// The cycles of an operation, a packet or an overdue slot (agg_commit has the first ones):
//
//   C3  the row is addressed; a reduction that ends in C3 or later comes after the operation
//   C4  the words are in the memories' registers; they move to the operands, unless the operation
//       before has the same row and writes it in this cycle, its C6
//   C5  comparisons
//   C6  decision; the row is written
//   C7  events, for one cycle
//
// Inputs of C5 stay until C6, except act, refuse, data, ask and finish, which are high in C5 only.
// `clear` empties clear_slot and its row, in a cycle without an operation in C1 to C7 and without
// `reduced`. All slots of a job are cleared before its first packet.
//
// Data that was not written (see agg_ingress) is refused as not ready; this cannot happen to a
// worker that follows the protocol. Not done here: header checks (agg_commit), debts (agg_owed),
// what is sent to whom (agg_replies), sending it (agg_status).

`default_nettype none

module agg_slots #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4,  // width of a slot number
    parameter integer ROW_BITS  = 3   // width of a row number: SLOT_BITS - 1, at least 1
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    input wire                 clear,
    input wire [SLOT_BITS-1:0] clear_slot,

    // A slot's last beat was summed
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot,
    input wire                 reduced_gen,

    // C3 and C4
    input wire                 read,         // C3 only: an operation
    input wire [ ROW_BITS-1:0] read_row,
    input wire [SLOT_BITS-1:0] read_slot,    // the VID's, or the overdue slot
    input wire [SLOT_BITS-1:0] read_other,   // the other slot of the row
    input wire [         31:0] read_vid,
    input wire [SLOT_BITS-1:0] read_window,  // of the job
    input wire [SLOT_BITS-1:0] read_mask,    // 2 * window - 1
    input wire [         31:0] read_first,   // C4 only: the job's first VID

    // C5 only; at most one is high
    input wire act,
    input wire refuse,  // a check failed; code names it
    input wire data,
    input wire ask,
    input wire finish,

    // C5 and C6: the packet
    input wire [          7:0] code,
    input wire                 belongs,    // its rank is the port's own
    input wire                 of_data,    // data, refused or not
    input wire                 placed,     // its job is set up
    input wire                 ended,      // refused because its job ended on its way
    input wire                 writable,
    input wire                 nonfinite,
    input wire [          1:0] ecn,
    input wire [          7:0] number,     // of the job
    input wire [ JOB_BITS-1:0] job,        // the same, as an index
    input wire [         15:0] epoch,
    input wire [          7:0] rank,
    input wire [    PORTS-1:0] ports,      // its port, one-hot
    input wire [PORT_BITS-1:0] port,
    input wire [    PORTS-1:0] member,     // of the job, by port
    input wire [    PORTS-1:0] evicted,    // no longer members
    input wire                 partial,    // partial sums allowed

    input wire act_ok,  // C6 of an overdue slot: its timer has not changed since it was found

    // C7: the operation; its fields mean nothing without it
    output wire                 e_valid,   // a packet
    output wire                 e_act,     // an overdue slot
    output wire [PORT_BITS-1:0] e_port,
    output wire [    PORTS-1:0] judged,    // the packet's port, one-hot; 0 without a packet
    output wire [SLOT_BITS-1:0] e_slot,
    output wire [ JOB_BITS-1:0] e_job,
    output wire [          7:0] e_number,
    output wire [         15:0] e_epoch,
    output wire [          7:0] e_rank,
    output wire [         31:0] e_vid,
    output wire                 e_gen,     // the slot's gen after the operation

    // C7: events
    output wire turn_over,  // the slot takes a new VID and drops its debts
    output wire store,  // data is stored
    output wire store_ce,
    output wire store_nonfinite,
    output wire owe,  // the sender is owed the result
    output wire complete,  // the slot is closed: it holds all members, or its time is up
    output wire [PORTS-1:0] complete_ports,
    output wire [31:0] complete_vid,
    output wire [1:0] complete_ecn,
    output wire complete_nonfinite,
    output wire stall,  // data for the next chunk cannot turn over the reduced slot
    output wire timer_start,  // the slot turns over, or stalls for the first time since then
    output wire timer_stop,  // it closes; counts before timer_start
    output wire acted,  // act_ok was high: the timer starts again
    output wire overdue,  // the slot acted upon still waits
    output wire [PORTS-1:0] evict,  // ports to evict

    // C7: replies (agg_replies)
    output wire             notice,         // report answer_ports
    output wire [PORTS-1:0] notice_ports,   // to these ports
    output wire [      7:0] notice_code,
    output wire [     31:0] notice_vid,
    output wire             asked,          // an ask was not refused
    output wire             answer,         // an ask or a finish gets a status as its reply
    output wire [      7:0] answer_code,
    output wire [PORTS-1:0] answer_ports,   // missing members, or all evicted ones
    output wire             finished,       // a finish was accepted
    output wire             refused,
    output wire [      7:0] refused_code,
    output wire             refused_answer, // a status may be sent for it

    // C7: what became of a packet of data
    output wire                 verdict_valid,
    output wire [PORT_BITS-1:0] verdict_port,
    output wire [SLOT_BITS-1:0] verdict_slot,    // 0 if its job is not set up
    output wire [         31:0] verdict_vid,
    output wire [          2:0] verdict_result,
    output wire [          7:0] verdict_code
);

  `include "zwire.vh"

  localparam integer ROWS = 1 << ROW_BITS;
  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam integer DONE_LSB = 32 + PORTS;
  localparam integer MARKS_LSB = 32 + 2 * PORTS;
  localparam integer STALLED = MARKS_LSB + 4;
  localparam integer GEN = MARKS_LSB + 5;
  localparam integer CLOSED = MARKS_LSB + 6;
  localparam integer ACTIVE = MARKS_LSB + 7;
  localparam integer WORD_BITS = MARKS_LSB + 8;

  reg [WORD_BITS-1:0] low_words[0:ROWS-1];
  reg [WORD_BITS-1:0] high_words[0:ROWS-1];
  reg own_sums[0:SLOTS-1];  // two copies of the bits of sums
  reg other_sums[0:SLOTS-1];

  // -- C3: read -------------------------------------------------------------------------------------

  reg [WORD_BITS-1:0] low_read_reg, high_read_reg;
  reg own_read_reg, other_read_reg;
  reg read_reg;  // C4
  reg forward_reg;  // the operation in C6 has the row
  reg judge_reg;  // C5
  reg [ROW_BITS-1:0] row_reg;  // C5 and C6

  always @(posedge clk) begin
    if (read) begin
      low_read_reg   <= low_words[read_row];
      high_read_reg  <= high_words[read_row];
      own_read_reg   <= own_sums[read_slot];
      other_read_reg <= other_sums[read_other];
    end
    read_reg <= read && !rst;
    forward_reg <= judge_reg && row_reg == read_row;
  end

  // -- C4: operands ---------------------------------------------------------------------------------

  wire [WORD_BITS-1:0] low_next, high_next;  // C6: the row after the operation

  // C5 and C6
  reg [WORD_BITS-1:0] low_reg, high_reg;
  reg own_sum_reg, other_sum_reg;
  reg high_is_own_reg;
  reg [SLOT_BITS-1:0] slot_reg, mask_reg;
  reg [31:0] vid_reg, one_back_reg, two_back_reg, since_first_reg;

  always @(posedge clk) begin
    judge_reg <= read_reg && !rst;
    if (read_reg) begin
      low_reg <= forward_reg ? low_next : low_read_reg;
      high_reg <= forward_reg ? high_next : high_read_reg;
      own_sum_reg <= own_read_reg;
      other_sum_reg <= other_read_reg;
      high_is_own_reg <= |(read_slot & read_window);
      row_reg <= read_row;
      slot_reg <= read_slot;
      mask_reg <= read_mask;
      vid_reg <= read_vid;
      one_back_reg <= read_vid - {{32 - SLOT_BITS{1'b0}}, read_window};
      two_back_reg <= read_vid - {{32 - SLOT_BITS{1'b0}}, read_mask} - 32'd1;
      since_first_reg <= read_vid - read_first;
    end
  end

  wire [WORD_BITS-1:0] own = high_is_own_reg ? high_reg : low_reg;
  wire [WORD_BITS-1:0] other = high_is_own_reg ? low_reg : high_reg;  // slot of v - W

  wire [31:0] own_vid = own[31:0];
  wire [PORTS-1:0] own_held = own[32+:PORTS];
  wire [PORTS-1:0] own_done = own[DONE_LSB+:PORTS];
  wire [3:0] own_marks = own[MARKS_LSB+:4];
  wire active = own[ACTIVE];
  wire closed = own[CLOSED];
  wire is_reduced = closed && own[GEN] == own_sum_reg;
  wire other_reduced = other[ACTIVE] && other[CLOSED] && other[GEN] == other_sum_reg;

  // -- C5: compare ----------------------------------------------------------------------------------

  // VIDs are compared for equality with ones from the cycle before. The next VID of an empty slot
  // is the first VID, or as far after it as the slot is after the first VID's slot.
  wire [31:0] turn = {{32 - SLOT_BITS{1'b0}}, mask_reg};
  wire [31:0] since_own = vid_reg - own_vid;
  wire [31:0] since_empty = since_first_reg + turn + 32'd1;
  wire unused_bits = &{1'b0, since_own[30:0], since_empty[30:0]};
  wire all_done = (member & ~own_done & ~ports) == {PORTS{1'b0}};
  wire held = |(own_held & ports);

  // C6
  reg act_reg, refuse_reg, data_reg, ask_reg, finish_reg;
  reg valid_reg;  // a packet
  reg same_reg;  // v is the slot's VID
  reg next_reg;  // v is its next VID
  reg behind_reg;
  reg active_reg, collecting_reg, reduced_reg;
  reg held_reg;
  reg may_turn_reg, may_join_reg;
  reg alone_reg;  // the sender is the only member
  reg fills_reg;  // no other member is missing
  reg proves_reg;  // the sender is done with v - W
  reg lags_reg;  // a member is not done
  reg cuts_reg;  // an overdue slot closes with what it holds
  reg evicts_reg;  // its members that are not done are evicted
  reg [PORTS-1:0] missing_reg, undone_reg;
  reg [3:0] marks_reg;

  always @(posedge clk) begin
    act_reg <= act && !rst;
    refuse_reg <= refuse && !rst;
    data_reg <= data && !rst;
    ask_reg <= ask && !rst;
    finish_reg <= finish && !rst;
    valid_reg <= (refuse || data || ask || finish) && !rst;

    same_reg <= active ? vid_reg == own_vid : &(since_first_reg | turn);
    next_reg <= active ? two_back_reg == own_vid : (since_first_reg & ~turn) == 32'd0;
    behind_reg <= active ? since_own[31] : since_empty[31];
    active_reg <= active;
    collecting_reg <= active && !closed;
    reduced_reg <= active && is_reduced;
    held_reg <= held;
    may_turn_reg <= !active || (is_reduced && all_done);
    may_join_reg <= active && !closed && !held;
    alone_reg <= (member & ~ports) == {PORTS{1'b0}};
    fills_reg <= (member & ~own_held & ~ports) == {PORTS{1'b0}};
    proves_reg <= data && other_reduced && other[31:0] == one_back_reg;
    lags_reg <= |(member & ~own_done);
    cuts_reg <= act && partial && active && !closed;
    evicts_reg <= act && partial && active && is_reduced && |(member & ~own_done);
    missing_reg <= member & ~own_held;
    undone_reg <= member & ~own_done;
    marks_reg <= {nonfinite, ecn == ECN_CE, ecn == ECN_NOT_ECT, ecn == ECN_ECT0};
  end

  // -- C6: decide -----------------------------------------------------------------------------------

  wire stores = data_reg && writable;
  wire turns = stores && next_reg && may_turn_reg;
  wire joins = stores && same_reg && may_join_reg;
  wire cuts = cuts_reg && act_ok;
  wire completes = cuts || (turns && alone_reg) || (joins && fills_reg);
  wire stalls = data_reg && next_reg && reduced_reg && !may_turn_reg;
  wire owes = (data_reg || ask_reg) && same_reg && reduced_reg;
  wire evicts = evicts_reg && act_ok;
  wire still_waits = collecting_reg || (reduced_reg && lags_reg);

  wire [3:0] marks = cuts_reg ? own_marks : turns ? marks_reg : own_marks | marks_reg;
  wire [PORTS-1:0] contributors = cuts_reg ? own_held : turns ? ports : own_held | ports;
  wire [1:0] merged = marks[2] ? ECN_CE : marks[1] ? ECN_NOT_ECT : marks[0] ? ECN_ECT0 : ECN_ECT1;

  // -- C6: update -----------------------------------------------------------------------------------

  agg_slot_word #(
      .PORTS    (PORTS),
      .WORD_BITS(WORD_BITS)
  ) u_low (
      .word     (low_reg),
      .is_own   (!high_is_own_reg),
      .turns    (turns),
      .joins    (joins),
      .completes(completes),
      .stalls   (stalls),
      .next     (data_reg && next_reg),
      .proves   (proves_reg),
      .gen      (!own_sum_reg),
      .marks    (marks_reg),
      .ports    (ports),
      .vid      (vid_reg),
      .word_next(low_next)
  );

  agg_slot_word #(
      .PORTS    (PORTS),
      .WORD_BITS(WORD_BITS)
  ) u_high (
      .word     (high_reg),
      .is_own   (high_is_own_reg),
      .turns    (turns),
      .joins    (joins),
      .completes(completes),
      .stalls   (stalls),
      .next     (data_reg && next_reg),
      .proves   (proves_reg),
      .gen      (!own_sum_reg),
      .marks    (marks_reg),
      .ports    (ports),
      .vid      (vid_reg),
      .word_next(high_next)
  );

  wire row_changes = data_reg || act_reg;
  wire [ROW_BITS-1:0] clear_row;
  wire [ROW_BITS-1:0] wr_row = clear ? clear_row : row_reg;
  wire [WORD_BITS-1:0] kept = {!clear, {WORD_BITS - 1{1'b1}}};

  generate
    if (SLOT_BITS == 1) begin : g_one_row
      wire unused = clear_slot[0];
      assign clear_row = 1'b0;
    end else begin : g_rows
      wire unused = clear_slot[0];
      assign clear_row = clear_slot[ROW_BITS:1];
    end
  endgenerate

  always @(posedge clk) begin
    if (row_changes || clear) begin
      low_words[wr_row]  <= low_next & kept;
      high_words[wr_row] <= high_next & kept;
    end
    if (reduced || clear) begin
      own_sums[clear?clear_slot : reduced_slot]   <= reduced_gen && !clear;
      other_sums[clear?clear_slot : reduced_slot] <= reduced_gen && !clear;
    end
  end

  // -- C7: events -----------------------------------------------------------------------------------

  reg e_valid_reg, e_act_reg, e_gen_reg;
  reg [PORTS-1:0] judged_reg, complete_ports_reg, evict_reg;
  reg [PORT_BITS-1:0] e_port_reg;
  reg [SLOT_BITS-1:0] e_slot_reg;
  reg [ JOB_BITS-1:0] e_job_reg;
  reg [7:0] e_number_reg, e_rank_reg;
  reg [15:0] e_epoch_reg;
  reg [31:0] e_vid_reg, complete_vid_reg;
  reg turn_over_reg, store_reg, store_ce_reg, store_nonfinite_reg, owe_reg;
  reg complete_reg, complete_nonfinite_reg, stall_reg;
  reg [1:0] complete_ecn_reg;
  reg timer_start_reg, acted_reg, overdue_reg;

  always @(posedge clk) begin
    e_valid_reg <= valid_reg && !rst;
    e_act_reg <= act_reg && !rst;
    judged_reg <= valid_reg && !rst ? ports : {PORTS{1'b0}};
    e_port_reg <= port;
    e_slot_reg <= slot_reg;
    e_job_reg <= job;
    e_number_reg <= number;
    e_epoch_reg <= epoch;
    e_rank_reg <= rank;
    e_vid_reg <= vid_reg;
    e_gen_reg <= turns ? !own_sum_reg : own[GEN];

    turn_over_reg <= turns && !rst;
    store_reg <= (turns || joins) && !rst;
    store_ce_reg <= (turns || joins) && marks_reg[2] && !rst;
    store_nonfinite_reg <= (turns || joins) && marks_reg[3] && !rst;
    owe_reg <= owes && !rst;
    complete_reg <= completes && !rst;
    complete_ports_reg <= contributors;
    complete_vid_reg <= cuts_reg ? own_vid : vid_reg;
    complete_ecn_reg <= merged;
    complete_nonfinite_reg <= marks[3];
    stall_reg <= stalls && !rst;
    timer_start_reg <= (turns || (stalls && !own[STALLED])) && !rst;
    acted_reg <= act_reg && act_ok && !rst;
    overdue_reg <= act_reg && act_ok && still_waits && !rst;
    evict_reg <= evicts && !rst ? undone_reg : {PORTS{1'b0}};
  end

  agg_replies #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .SLOT_BITS(SLOT_BITS)
  ) u_replies (
      .clk           (clk),
      .rst           (rst),
      .link_down     (link_down),
      .refuse        (refuse_reg),
      .data          (data_reg),
      .ask           (ask_reg),
      .finish        (finish_reg),
      .code          (code),
      .belongs       (belongs),
      .of_data       (of_data),
      .placed        (placed),
      .ended         (ended),
      .port          (port),
      .slot          (slot_reg),
      .vid           (vid_reg),
      .same          (same_reg),
      .next          (next_reg),
      .behind        (behind_reg),
      .active        (active_reg),
      .collecting    (collecting_reg),
      .held          (held_reg),
      .stores        (turns || joins),
      .owes          (owes),
      .overdue       (act_reg && act_ok && still_waits),
      .cuts          (cuts),
      .evicts        (evicts),
      .own_vid       (own_vid),
      .member        (member),
      .evicted       (evicted),
      .missing       (missing_reg),
      .undone        (undone_reg),
      .notice        (notice),
      .notice_ports  (notice_ports),
      .notice_code   (notice_code),
      .notice_vid    (notice_vid),
      .asked         (asked),
      .answer        (answer),
      .answer_code   (answer_code),
      .answer_ports  (answer_ports),
      .finished      (finished),
      .refused       (refused),
      .refused_code  (refused_code),
      .refused_answer(refused_answer),
      .verdict_valid (verdict_valid),
      .verdict_port  (verdict_port),
      .verdict_slot  (verdict_slot),
      .verdict_vid   (verdict_vid),
      .verdict_result(verdict_result),
      .verdict_code  (verdict_code)
  );

  assign e_valid            = e_valid_reg;
  assign e_act              = e_act_reg;
  assign e_port             = e_port_reg;
  assign judged             = judged_reg;
  assign e_slot             = e_slot_reg;
  assign e_job              = e_job_reg;
  assign e_number           = e_number_reg;
  assign e_epoch            = e_epoch_reg;
  assign e_rank             = e_rank_reg;
  assign e_vid              = e_vid_reg;
  assign e_gen              = e_gen_reg;
  assign turn_over          = turn_over_reg;
  assign store              = store_reg;
  assign store_ce           = store_ce_reg;
  assign store_nonfinite    = store_nonfinite_reg;
  assign owe                = owe_reg;
  assign complete           = complete_reg;
  assign complete_ports     = complete_ports_reg;
  assign complete_vid       = complete_vid_reg;
  assign complete_ecn       = complete_ecn_reg;
  assign complete_nonfinite = complete_nonfinite_reg;
  assign stall              = stall_reg;
  assign timer_start        = timer_start_reg;
  assign timer_stop         = complete_reg;
  assign acted              = acted_reg;
  assign overdue            = overdue_reg;
  assign evict              = evict_reg;

endmodule

`default_nettype wire
