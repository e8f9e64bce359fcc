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
// the other. A word: {active, closed, gen, stalled, marks 4, done, held, VID 32}; done and held
// have a bit for each port.
//
// Sums come at any time, so they have memories of their own: a bit for each slot, which the end of
// a reduction sets to the slot's gen. The slot is reduced if it is closed and the bit equals its
// gen. A slot that turns over takes the opposite of its bit as its gen.
//
// The cycles of an operation, a packet or an overdue slot (agg_commit has the first ones):
//
//   C2  the row is addressed
//   C3  the words are in the memories' registers; the bits of sums are addressed: a reduction that
//       ends in C3 or later comes after the operation
//   C4  the words move to the operands, unless these have the row already, from the operation
//       before; words that were written in C2 come from a copy. The VID is compared with those
//       that an empty slot would hold
//   C5  comparisons, and most of the decision
//   C6  the rest; the row is written, to memories and operands
//   C7  events, for one cycle
//
// Inputs of C5 stay until C6, except act, refuse, data, ask and finish, which are high in C5 only.
// `clear` empties clear_slot and its row, in a cycle without an operation in C1 to C7 and without
// `reduced`. All slots of a job are cleared before its first packet.
//
`ifdef AGG_PARENT
// With an up port: a slot of a tree job is closed twice, and gen alternates each time. Its own sum is
// the first, and the slot then waits. A final sum that it waits for closes it again, with the up
// port's contribution alone, and the sum of that is the slot's result: the slot is settled. In other
// jobs a slot is settled from its turnover on.
//
`endif
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

    // C2: an operation
    input wire                read,
    input wire [ROW_BITS-1:0] read_row,

    // C3 and C4
    input wire [SLOT_BITS-1:0] read_slot,    // the VID's, or the overdue slot
    input wire [SLOT_BITS-1:0] read_other,   // the other slot of the row
    input wire [         31:0] read_vid,
    input wire [SLOT_BITS-1:0] read_window,  // of the job
    input wire [SLOT_BITS-1:0] read_mask,    // 2 * window - 1
    input wire [         31:0] read_first,   // the job's first VID

    // C5 only; at most one is high
    input wire act,
    input wire refuse,  // a check failed; code names it
    input wire data,
    input wire ask,
    input wire finish,
`ifdef AGG_PARENT
    // A final sum of the parent, with the job's header, length and ranks
    input wire settle,
`endif

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
`ifdef AGG_PARENT
    input wire                 tree,       // the job's results come from the parent
`endif

    input wire act_ok,  // C6 of an overdue slot: its timer has not changed since it was found

    // C7: the operation; its fields mean nothing without it
    output wire [PORT_BITS-1:0] e_port,
    output wire [    PORTS-1:0] judged,    // the same, one-hot; 0 without a packet
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
`ifdef AGG_PARENT
    output wire taken,  // the final sum is: it is the slot's only contribution; with complete
    output wire again,  // a member repeats while the slot waits for the final sum
`endif
    output wire timer_start,  // the slot turns over, or cannot, though reduced, for the first time
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
`ifdef AGG_PARENT
  localparam integer WORD_BITS = 2 * PORTS + 41;
`else
  localparam integer WORD_BITS = 2 * PORTS + 40;
`endif

  // A word read while it is written is not used (copy_reg, fetch_reg).
  (* no_rw_check *) reg [WORD_BITS-1:0] low_words[0:ROWS-1];
  (* no_rw_check *) reg [WORD_BITS-1:0] high_words[0:ROWS-1];
  reg own_sums[0:SLOTS-1];  // two copies of the bits of sums
  reg other_sums[0:SLOTS-1];

  // -- C2, C3: read ------------------------------------------------------------------------------

  wire read_high = |(read_slot & read_window);

  // C3
  reg addressed_reg;
  reg [ROW_BITS-1:0] addressed_row_reg;
  reg [WORD_BITS-1:0] low_read_reg, high_read_reg;

  // The words written last
  reg wrote_reg;  // in the last cycle
  reg [ROW_BITS-1:0] written_row_reg;
  reg [WORD_BITS-1:0] low_written_reg, high_written_reg;

  // C4
  reg [WORD_BITS-1:0] low_fetched_reg, high_fetched_reg;
  reg own_read_reg, other_read_reg;
  reg read_reg;
  reg copy_reg;  // the words were written while they were read
  reg fetch_reg;  // the operands do not have the row
  reg swap_reg;  // they have it, with the words exchanged
  reg read_high_reg;
  reg [31:0] since_first_reg;

  // From C5 on
  reg loaded_reg;  // the operands have row row_reg
  reg [ROW_BITS-1:0] row_reg;
  reg high_is_own_reg;

  wire kept = loaded_reg && row_reg == addressed_row_reg;

  always @(posedge clk) begin
    addressed_reg <= read && !rst;
    low_read_reg  <= low_words[read_row];
    high_read_reg <= high_words[read_row];
    if (!addressed_reg) addressed_row_reg <= read_row;
    read_reg <= addressed_reg && !rst;
    if (addressed_reg) begin
      low_fetched_reg  <= low_read_reg;
      high_fetched_reg <= high_read_reg;
      own_read_reg     <= own_sums[read_slot];
      other_read_reg   <= other_sums[read_other];
      since_first_reg  <= read_vid - read_first;
    end
    copy_reg <= wrote_reg && written_row_reg == addressed_row_reg;
    fetch_reg <= addressed_reg && !kept && !rst;
    swap_reg <= addressed_reg && kept && read_high != high_is_own_reg && !rst;
    read_high_reg <= read_high;
  end

  // -- C4: operands ------------------------------------------------------------------------------

  wire [WORD_BITS-1:0] low_fetched = copy_reg ? low_written_reg : low_fetched_reg;
  wire [WORD_BITS-1:0] high_fetched = copy_reg ? high_written_reg : high_fetched_reg;

  // From C5 on: the slot's word, and that of the row's other slot. The next values differ in C6
  // only.
  reg [WORD_BITS-1:0] own_reg, other_reg;
  wire [WORD_BITS-1:0] own_next, other_next;

  // C5 and C6
  reg own_sum_reg, other_sum_reg;
  reg [SLOT_BITS-1:0] slot_reg;
  reg [31:0] vid_reg, one_back_reg, two_back_reg;

  // The VID, compared with an empty slot's. The next VID of an empty slot is the first VID, or as
  // far after it as the slot is after the first VID's slot.
  wire [31:0] turn = {{32 - SLOT_BITS{1'b0}}, read_mask};
  wire [31:0] since_empty = since_first_reg + turn + 32'd1;
  reg empty_same_reg, empty_next_reg, empty_behind_reg;

  always @(posedge clk) begin
    own_reg <= fetch_reg ? (read_high_reg ? high_fetched : low_fetched) :
        swap_reg ? other_next : own_next;
    other_reg <= fetch_reg ? (read_high_reg ? low_fetched : high_fetched) :
        swap_reg ? own_next : other_next;
    loaded_reg <= (loaded_reg || read_reg) && !clear && !rst;
    if (read_reg) begin
      own_sum_reg <= own_read_reg;
      other_sum_reg <= other_read_reg;
      high_is_own_reg <= read_high_reg;
      row_reg <= addressed_row_reg;
      slot_reg <= read_slot;
      vid_reg <= read_vid;
      one_back_reg <= read_vid - {{32 - SLOT_BITS{1'b0}}, read_window};
      two_back_reg <= read_vid - {{32 - SLOT_BITS{1'b0}}, read_mask} - 32'd1;
      empty_same_reg <= &(since_first_reg | turn);
      empty_next_reg <= (since_first_reg & ~turn) == 32'd0;
      empty_behind_reg <= since_empty[31];
    end
  end

`ifdef AGG_PARENT
  // settled: the sum that the slot has, or waits for, is the result
  wire active, closed, gen, settled, stalled, other_active, other_closed, other_gen, other_settled;
`else
  wire active, closed, gen, stalled, other_active, other_closed, other_gen;
`endif
  wire [3:0] own_marks;
  wire [PORTS-1:0] own_done, own_held;
  wire [31:0] own_vid;
`ifdef AGG_PARENT
  assign {active, closed, gen, settled, stalled, own_marks, own_done, own_held, own_vid} = own_reg;
  assign {other_active, other_closed, other_gen, other_settled} = other_reg[WORD_BITS-1-:4];

  wire is_summed = active && closed && gen == own_sum_reg;
  wire is_reduced = is_summed && settled;
  wire is_waiting = is_summed && !settled;  // for the final sum
  // The slot of v - W
  wire other_reduced = other_active && other_closed && other_settled && other_gen == other_sum_reg;
`else
  assign {active, closed, gen, stalled, own_marks, own_done, own_held, own_vid} = own_reg;
  assign {other_active, other_closed, other_gen} = other_reg[WORD_BITS-1-:3];

  wire is_reduced = active && closed && gen == own_sum_reg;
  wire other_reduced = other_active && other_closed && other_gen == other_sum_reg;  // slot of v - W
`endif

  // -- C5: judge ---------------------------------------------------------------------------------

  wire [31:0] since_own = vid_reg - own_vid;
  wire unused_bits = &{1'b0, since_own[30:0], since_empty[30:0], two_back_reg[0]};
  wire all_done = (member & ~own_done & ~ports) == {PORTS{1'b0}};
  wire held = |(own_held & ports);

  // VIDs are compared for equality with ones from the cycle before: a carry passes pairs of bits
  // that are equal, which is faster than a tree of tables. A slot's VIDs are a multiple of 2 W
  // apart, so bit 0 is the same.
  wire [31:0] own_high = {1'b0, own_vid[31:1]};
  wire [31:0] vid_high = {1'b0, vid_reg[31:1]};
  wire [31:0] two_back_high = {1'b0, two_back_reg[31:1]};
  reg [15:0] own_pairs, next_pairs, proved_pairs;
  integer i;

  always @* begin
    for (i = 0; i < 16; i = i + 1) begin
      own_pairs[i] = vid_high[2*i+:2] == own_high[2*i+:2];
      next_pairs[i] = two_back_high[2*i+:2] == own_high[2*i+:2];
      proved_pairs[i] = one_back_reg[2*i+:2] == other_reg[2*i+:2];
    end
  end

  wire own_same, follows, proved_same;
  wire [15:0] unused_own, unused_next, unused_proved;
  assign {own_same, unused_own} = {1'b0, own_pairs} + 17'd1;
  assign {follows, unused_next} = {1'b0, next_pairs} + 17'd1;
  assign {proved_same, unused_proved} = {1'b0, proved_pairs} + 17'd1;

  // C6
  reg act_reg, refuse_reg, data_reg, ask_reg, finish_reg;
  reg valid_reg;  // a packet
  reg same_reg, next_reg, behind_reg;
  reg active_reg, collecting_reg, reduced_reg;
  reg held_reg;
  reg turns_reg, joins_reg, stalls_reg, owes_reg;
  reg next_done_reg;  // the sender is done with the slot's VID
  reg alone_reg;  // the sender is the only member
  reg fills_reg;  // no other member is missing
  reg proves_reg;  // the sender is done with v - W
  reg lags_reg;  // a member is not done
  reg cuts_reg;  // an overdue slot closes with what it holds
  reg evicts_reg;  // its members that are not done are evicted
`ifdef AGG_PARENT
  reg takes_reg;  // the final sum is stored
  reg again_reg, asks_again_reg;  // the slot waits for it: a repeat, an ask
`endif
  reg [PORTS-1:0] missing_reg, undone_reg;
  reg [3:0] marks_reg;

  always @(posedge clk) begin
    act_reg <= act;
    refuse_reg <= refuse;
    data_reg <= data;
    ask_reg <= ask;
    finish_reg <= finish;
    valid_reg <= refuse || data || ask || finish;

    same_reg <= active ? own_same : empty_same_reg;
    next_reg <= active ? follows : empty_next_reg;
    behind_reg <= active ? since_own[31] : empty_behind_reg;
    active_reg <= active;
    collecting_reg <= active && !closed;
    reduced_reg <= is_reduced;
    held_reg <= held;
    turns_reg <= data && writable && (active ? follows && is_reduced && all_done : empty_next_reg);
    joins_reg <= data && writable && own_same && active && !closed && !held;
    stalls_reg <= data && follows && is_reduced && !all_done;
    owes_reg <= (data || ask) && own_same && is_reduced;
    next_done_reg <= data && (active ? follows : empty_next_reg);
    alone_reg <= (member & ~ports) == {PORTS{1'b0}};
    fills_reg <= (member & ~own_held & ~ports) == {PORTS{1'b0}};
    proves_reg <= data && other_reduced && proved_same;
    lags_reg <= |(member & ~own_done);
    cuts_reg <= act && partial && active && !closed;
    evicts_reg <= act && partial && is_reduced && |(member & ~own_done);
`ifdef AGG_PARENT
    takes_reg <= settle && own_same && is_waiting;
    again_reg <= (data || ask) && own_same && is_waiting;
    asks_again_reg <= ask && own_same && is_waiting;
`endif
    missing_reg <= member & ~own_held;
    undone_reg <= member & ~own_done;
    marks_reg <= {nonfinite, ecn == ECN_CE, ecn == ECN_NOT_ECT, ecn == ECN_ECT0};
    if (rst) begin
`ifdef AGG_PARENT
      takes_reg     <= 1'b0;
      again_reg     <= 1'b0;
`endif
      act_reg       <= 1'b0;
      refuse_reg    <= 1'b0;
      data_reg      <= 1'b0;
      ask_reg       <= 1'b0;
      finish_reg    <= 1'b0;
      valid_reg     <= 1'b0;
      turns_reg     <= 1'b0;
      joins_reg     <= 1'b0;
      stalls_reg    <= 1'b0;
      owes_reg      <= 1'b0;
      next_done_reg <= 1'b0;
      proves_reg    <= 1'b0;
      cuts_reg      <= 1'b0;
      evicts_reg    <= 1'b0;
    end
  end

  // -- C6: decide --------------------------------------------------------------------------------

  wire stores = turns_reg || joins_reg;
  wire cuts = cuts_reg && act_ok;
`ifdef AGG_PARENT
  wire completes = cuts || (turns_reg && alone_reg) || (joins_reg && fills_reg) || takes_reg;
`else
  wire completes = cuts || (turns_reg && alone_reg) || (joins_reg && fills_reg);
`endif
  wire evicts = evicts_reg && act_ok;
  wire still_waits = collecting_reg || (reduced_reg && lags_reg);

  wire [3:0] marks = cuts_reg ? own_marks : turns_reg ? marks_reg : own_marks | marks_reg;
  wire [PORTS-1:0] contributors = cuts_reg ? own_held : turns_reg ? ports : own_held | ports;
  wire [1:0] merged = marks[2] ? ECN_CE : marks[1] ? ECN_NOT_ECT : marks[0] ? ECN_ECT0 : ECN_ECT1;

  // -- C6: update --------------------------------------------------------------------------------

  wire [PORTS-1:0] done_next = own_done | (next_done_reg ? ports : {PORTS{1'b0}});
  wire [PORTS-1:0] proved = proves_reg ? ports : {PORTS{1'b0}};
  wire [3:0] marks_next = own_marks | marks_reg;

`ifdef AGG_PARENT
  assign own_next = {
    active || turns_reg,
    completes || (closed && !turns_reg),
    turns_reg ? !own_sum_reg : gen ^ takes_reg,
    turns_reg ? !tree : settled || takes_reg,
    stalls_reg || (stalled && !turns_reg),
    turns_reg ? marks_reg : joins_reg || takes_reg ? marks_next : own_marks,
    turns_reg ? {PORTS{1'b0}} : done_next,
    turns_reg ? ports : joins_reg ? own_held | ports : own_held,
    turns_reg ? vid_reg : own_vid
  };
`else
  assign own_next = {
    active || turns_reg,
    completes || (closed && !turns_reg),
    turns_reg ? !own_sum_reg : gen,
    stalls_reg || (stalled && !turns_reg),
    turns_reg ? marks_reg : joins_reg ? marks_next : own_marks,
    turns_reg ? {PORTS{1'b0}} : done_next,
    turns_reg ? ports : joins_reg ? own_held | ports : own_held,
    turns_reg ? vid_reg : own_vid
  };
`endif
`ifdef AGG_PARENT
  assign other_next = other_reg | {9'd0, proved, {PORTS + 32{1'b0}}};

  wire row_changes = data_reg || act_reg || takes_reg;
`else
  assign other_next = other_reg | {8'd0, proved, {PORTS + 32{1'b0}}};

  wire row_changes = data_reg || act_reg;
`endif
  wire [ROW_BITS-1:0] clear_row;
  wire [ROW_BITS-1:0] wr_row = clear ? clear_row : row_reg;
  wire [WORD_BITS-1:0] stays = {!clear, {WORD_BITS - 1{1'b1}}};  // active
  wire [WORD_BITS-1:0] low_next = high_is_own_reg ? other_next : own_next;
  wire [WORD_BITS-1:0] high_next = high_is_own_reg ? own_next : other_next;

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
      low_words[wr_row]  <= low_next & stays;
      high_words[wr_row] <= high_next & stays;
    end
    wrote_reg <= row_changes && !rst;
    if (row_changes) begin
      written_row_reg  <= row_reg;
      low_written_reg  <= low_next;
      high_written_reg <= high_next;
    end
    if (reduced || clear) begin
      own_sums[clear?clear_slot : reduced_slot]   <= reduced_gen && !clear;
      other_sums[clear?clear_slot : reduced_slot] <= reduced_gen && !clear;
    end
  end

  // -- C7: events --------------------------------------------------------------------------------

  reg e_gen_reg;
  reg [PORTS-1:0] judged_reg, complete_ports_reg, evict_reg;
  reg [PORT_BITS-1:0] e_port_reg;
  reg [SLOT_BITS-1:0] e_slot_reg;
  reg [ JOB_BITS-1:0] e_job_reg;
  reg [7:0] e_number_reg, e_rank_reg;
  reg [15:0] e_epoch_reg;
  reg [31:0] e_vid_reg, complete_vid_reg;
  reg turn_over_reg, store_reg, store_ce_reg, store_nonfinite_reg, owe_reg;
  reg complete_reg, complete_nonfinite_reg;
  reg [1:0] complete_ecn_reg;
  reg timer_start_reg, acted_reg, overdue_reg;
`ifdef AGG_PARENT
  reg taken_reg, repeated_reg;
`endif

  always @(posedge clk) begin
    judged_reg <= valid_reg && !rst ? ports : {PORTS{1'b0}};
    e_port_reg <= port;
    e_slot_reg <= slot_reg;
    e_job_reg <= job;
    e_number_reg <= number;
    e_epoch_reg <= epoch;
    e_rank_reg <= rank;
    e_vid_reg <= vid_reg;
`ifdef AGG_PARENT
    e_gen_reg <= turns_reg ? !own_sum_reg : gen ^ takes_reg;
`else
    e_gen_reg <= turns_reg ? !own_sum_reg : gen;
`endif

    turn_over_reg <= turns_reg && !rst;
    store_reg <= stores && !rst;
    store_ce_reg <= stores && marks_reg[2] && !rst;
    store_nonfinite_reg <= stores && marks_reg[3] && !rst;
    owe_reg <= owes_reg && !rst;
    complete_reg <= completes && !rst;
    complete_ports_reg <= contributors;
    complete_vid_reg <= cuts_reg ? own_vid : vid_reg;
    complete_ecn_reg <= merged;
    complete_nonfinite_reg <= marks[3];
    timer_start_reg <= (turns_reg || (stalls_reg && !stalled)) && !rst;
`ifdef AGG_PARENT
    taken_reg <= takes_reg && !rst;
    repeated_reg <= again_reg && !rst;
`endif
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
`ifdef AGG_PARENT
      .collecting    (collecting_reg || asks_again_reg),  // both are answered by a status
`else
      .collecting    (collecting_reg),
`endif
      .held          (held_reg),
      .stores        (stores),
      .owes          (owes_reg),
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
`ifdef AGG_PARENT
  assign taken              = taken_reg;
  assign again              = repeated_reg;
`endif
  assign timer_start        = timer_start_reg;
  assign timer_stop         = complete_reg;
  assign acted              = acted_reg;
  assign overdue            = overdue_reg;
  assign evict              = evict_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot of a job with any window and first VID: section 5 of the specification, from one
  // clear of its row to the next, which is one life of the job. VIDs have 32 bits; a slot reaches
  // the same VID again only after 2^32.
  (* anyconst *) reg [SLOT_BITS-1:0] watched, its_window;
  (* anyconst *) reg [31:0] its_first;
  wire [SLOT_BITS-1:0] its_mask = 2 * its_window - 1'b1;
  wire [SLOT_BITS-1:0] its_base = watched & ~its_mask;
  wire [SLOT_BITS-1:0] its_other = watched ^ its_window;
  wire [SLOT_BITS-1:0] its_whole_row = (its_base >> 1) | (watched & (its_mask >> 1));
  wire [ROW_BITS-1:0] its_row = its_whole_row[ROW_BITS-1:0];
  wire its_high = |(watched & its_window);

  reg was_reset = 1'b0;
  reg sums_cleared = 1'b0;
  reg cleared = 1'b0;  // its row, and no other job came since
  reg used;  // the slot has turned over in this job
  reg [31:0] holds;
  reg [PORTS-1:0] had, finished_with;
  reg summing, summed;  // queued for summation; its sum is in the cache
  reg generation, stalls_before;
`ifdef AGG_PARENT
  (* anyconst *)reg its_tree;  // its job is a tree job
  reg its_settled;  // the sum that it has, or waits for, is the result
  reg is_settle, was_settle, was_take, was_again;
`endif
  reg ce, not_ect, ect0, special;

  // The operation: C4, C5, C6
  reg [SLOT_BITS-1:0] slot_c4, other_c4, window_c4, mask_c4, slot_c5, other_c5, window_c5, mask_c5;
  reg [ROW_BITS-1:0] row_c3, row_c4, row_c5, row_c7;
  reg [31:0] vid_c4, vid_c5, first_c4, first_c5;
  reg seen_c4, seen_c5;  // its sum was in the cache in C3
  reg in_c3, in_c4, in_c5, in_c6, in_c7;
  reg is_act, is_refuse, is_data, is_ask, is_finish;
  wire [3*PORTS+PORT_BITS+JOB_BITS+48:0] packet_now = {
    member,
    evicted,
    partial,
    ports,
    port,
    job,
    number,
    epoch,
    rank,
    code,
    ecn,
    belongs,
    of_data,
    placed,
    ended,
    writable,
    nonfinite
  };
  reg [3*PORTS+PORT_BITS+JOB_BITS+48:0] packet_c5;

  // The operation in C7
  reg was_mine, was_act, was_refuse, was_data, was_ask, was_finish, was_carried_out, was_down;
  reg [3*PORTS+PORT_BITS+JOB_BITS+48:0] packet_c7;
  reg [SLOT_BITS-1:0] slot_c7;
  reg [31:0] vid_c7, holds_c7, was_vid;
  reg was_turn, was_join, was_cut, was_first_stall, was_close, was_owed, was_repeat;
  reg was_refused, was_asked, was_answer, was_wait, was_evict, was_special, was_gen;
  reg may_turn_was, may_store_was, was_used, was_all, was_kept, was_copied, was_in_sum;
  reg [7:0] was_refusal, was_code;
  reg [PORTS-1:0] was_named, was_told, was_behind, was_ports;
  reg [1:0] was_ecn;
  reg kept_c5, copied_c5;
  wire [PORTS-1:0] member_c7, evicted_c7, ports_c7;
  wire [PORT_BITS-1:0] port_c7;
  wire [ JOB_BITS-1:0] job_c7;
  wire [7:0] number_c7, rank_c7, code_c7;
  wire [15:0] epoch_c7;
  wire [ 1:0] ecn_c7;
  wire partial_c7, belongs_c7, of_data_c7, placed_c7, ended_c7, writable_c7, nonfinite_c7;
  assign {
    member_c7, evicted_c7, partial_c7, ports_c7, port_c7, job_c7, number_c7, epoch_c7, rank_c7,
    code_c7, ecn_c7, belongs_c7, of_data_c7, placed_c7, ended_c7, writable_c7, nonfinite_c7
  } = packet_c7;

  wire its_job = window_c5 == its_window && mask_c5 == its_mask && first_c5 == its_first &&
      (slot_c5 & ~its_mask) == its_base;
`ifdef AGG_PARENT
  wire changes = is_data || is_act || takes_reg;
  wire reduced_c5 = seen_c5 && its_settled;
  wire waiting_c5 = seen_c5 && !its_settled;
`else
  wire changes = is_data || is_act;
`endif
  // Its slots are none of the watched slot's job's.
  wire apart = (((slot_c5 & ~mask_c5) ^ its_base) & ~(mask_c5 | its_mask)) != 0;
  wire mine = in_c6 && its_job && slot_c5 == watched;
`ifdef AGG_PARENT
  wire proves_mine = in_c6 && its_job && slot_c5 == its_other && is_data && reduced_c5 &&
      vid_c5 - its_window == holds;
`else
  wire proves_mine = in_c6 && its_job && slot_c5 == its_other && is_data && seen_c5 &&
      vid_c5 - its_window == holds;
`endif
  wire foreign = in_c6 && changes && row_c5 == its_row && !its_job;

  wire is_held = used && vid_c5 == holds;
  wire in_sum = (summing || summed) && !seen_c5;  // for this operation
  wire [31:0] two_windows = 2 * its_window;
  wire [31:0] would_hold = its_first + ((watched - its_first) & its_mask);
  wire [31:0] distance = vid_c5 - (used ? holds : would_hold - two_windows);
  wire late = distance[31] || (!used && distance == 0);
  wire begins = used ? vid_c5 == holds + two_windows : vid_c5 == would_hold;
  wire [PORTS-1:0] finished_now = finished_with | ports;
`ifdef AGG_PARENT
  wire may = !used || (reduced_c5 && (member & ~finished_now) == 0);
  wire does_take = mine && is_settle && is_held && waiting_c5;
  wire does_again = mine && (is_data || is_ask) && is_held && waiting_c5;
`else
  wire may = !used || (seen_c5 && (member & ~finished_now) == 0);
`endif
  wire does_turn = mine && is_data && writable && begins && may;
  wire may_join = is_held && !(|(had & ports)) && !in_sum && !seen_c5;
  wire does_join = mine && is_data && writable && may_join;
  wire does_cut = mine && is_act && act_ok && used && !in_sum && !seen_c5 && partial;
  wire was_packet = was_refuse || was_data || was_ask || was_finish;
`ifdef AGG_PARENT
  wire does_stall = mine && is_data && used && reduced_c5 && begins && !may;
`else
  wire does_stall = mine && is_data && used && seen_c5 && begins && !may;
`endif
  wire [PORTS-1:0] had_now = does_turn ? ports : had | ports;
  wire ce_now = ecn == ECN_CE || (!does_turn && ce);
  wire not_ect_now = ecn == ECN_NOT_ECT || (!does_turn && not_ect);
  wire ect0_now = ecn == ECN_ECT0 || (!does_turn && ect0);
  wire special_now = nonfinite || (!does_turn && special);
`ifdef AGG_PARENT
  wire closes = does_cut || does_take || ((does_turn || does_join) && (member & ~had_now) == 0);
`else
  wire closes = does_cut || ((does_turn || does_join) && (member & ~had_now) == 0);
`endif
  wire [PORTS-1:0] behind_now = member & ~finished_with;
  wire [PORTS-1:0] lacks = member & ~had;
`ifdef AGG_PARENT
  wire waits = mine && is_act && act_ok && used && !waiting_c5 &&
      (seen_c5 ? behind_now != 0 : !in_sum);
  wire evicts_now = waits && seen_c5 && partial;
`else
  wire waits = mine && is_act && act_ok && used && (seen_c5 ? behind_now != 0 : !in_sum);
  wire evicts_now = waits && seen_c5 && partial;
`endif
  wire asks = mine && is_ask && (begins || is_held);
`ifdef AGG_PARENT
  wire asks_open = mine && is_ask && (begins || (is_held && !in_sum && !reduced_c5));
  wire is_owed = mine && (is_data || is_ask) && is_held && reduced_c5;
`else
  wire asks_open = mine && is_ask && (begins || (is_held && !in_sum && !seen_c5));
  wire is_owed = mine && (is_data || is_ask) && is_held && seen_c5;
`endif
  wire repeats = is_held && (|(had & ports) || in_sum || seen_c5);
  wire refuses = is_refuse || (is_data && !does_turn && !does_join) || (is_ask && !asks);
  wire [7:0] refusal = is_refuse ? code : repeats ? CODE_DUPLICATE :
      is_held || begins ? CODE_NOT_READY : late ? CODE_LATE : CODE_EARLY;
`ifdef AGG_PARENT
  wire [WORD_BITS-1:0] its_word = {
    1'b1,
    summing || summed,
    generation,
    its_settled,
    stalls_before,
    special,
    ce,
    not_ect,
    ect0,
    finished_with,
    had,
    holds
  };
`else
  wire [WORD_BITS-1:0] its_word = {
    1'b1,
    summing || summed,
    generation,
    stalls_before,
    special,
    ce,
    not_ect,
    ect0,
    finished_with,
    had,
    holds
  };
`endif

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    slot_c4 <= read_slot;
    other_c4 <= read_other;
    window_c4 <= read_window;
    mask_c4 <= read_mask;
    {row_c3, row_c4} <= {read_row, row_c3};
    {vid_c4, first_c4} <= {read_vid, read_first};
`ifdef AGG_PARENT
    seen_c4 <= summed && !does_turn && !does_take;
`else
    seen_c4 <= summed && !does_turn;
`endif
    if (in_c4) begin
      {slot_c5, other_c5, window_c5, mask_c5} <= {slot_c4, other_c4, window_c4, mask_c4};
      {row_c5, vid_c5, first_c5} <= {row_c4, vid_c4, read_first};
`ifdef AGG_PARENT
      seen_c5 <= seen_c4 && !does_turn && !does_take;
`else
      seen_c5 <= seen_c4 && !does_turn;
`endif
      {kept_c5, copied_c5} <= {!fetch_reg, fetch_reg && copy_reg};
    end
    in_c3 <= read && !rst;
    in_c4 <= in_c3 && !rst;
    in_c5 <= in_c4 && !rst;
    in_c6 <= in_c5 && !rst;
    in_c7 <= in_c6 && !rst;
    packet_c5 <= packet_now;
    {is_act, is_refuse, is_data, is_ask, is_finish} <= rst ? 0 : {act, refuse, data, ask, finish};
`ifdef AGG_PARENT
    is_settle <= settle && !rst;
    {was_settle, was_take, was_again} <= rst ? 0 : {is_settle, does_take, does_again};
`endif

    // Events of the next cycle
    was_mine <= mine && !rst;
    {was_act, was_refuse, was_data, was_ask, was_finish} <= rst ? 0 :
        {is_act, is_refuse, is_data, is_ask, is_finish};
    was_carried_out <= act_ok;
    was_down <= link_down;
    packet_c7 <= packet_now;
    {slot_c7, row_c7, vid_c7, holds_c7} <= {slot_c5, row_c5, vid_c5, holds};
    {was_turn, was_join, was_cut} <= {does_turn, does_join, does_cut};
    {was_first_stall, was_close} <= {does_stall && !stalls_before, closes};
    {was_owed, was_repeat} <= {is_owed, repeats};
    was_refusal <= refusal;
    {was_refused, was_asked} <= {refuses, asks};
    was_answer <= is_finish || asks_open;
    was_code <= is_finish ? CODE_DONE : !begins && |(had & ports) ? CODE_WAIT : CODE_SEND;
    was_named <= is_finish ? 0 : is_ask ? (begins ? member : lacks) :
        evicts_now ? evicted | behind_now : seen_c5 ? behind_now : lacks;
    was_told <= evicts_now ? member | evicted : member & ~(seen_c5 ? behind_now : lacks);
    {was_wait, was_evict} <= {waits, evicts_now};
    was_behind <= behind_now;
    was_ports <= does_cut ? had : had_now;
    was_vid <= does_cut ? holds : vid_c5;
    was_special <= does_cut ? special : special_now;
    if (does_cut) was_ecn <= ce ? ECN_CE : not_ect ? ECN_NOT_ECT : ect0 ? ECN_ECT0 : ECN_ECT1;
    else was_ecn <= ce_now ? ECN_CE : not_ect_now ? ECN_NOT_ECT : ect0_now ? ECN_ECT0 : ECN_ECT1;
`ifdef AGG_PARENT
    was_gen <= does_turn ? !own_sums[watched] : generation ^ does_take;
    may_turn_was <= used && reduced_c5 && (member & ~finished_now) == 0 &&
        vid_c5 == holds + two_windows;
`else
    was_gen <= does_turn ? !own_sums[watched] : generation;
    may_turn_was <= used && seen_c5 && (member & ~finished_now) == 0 &&
        vid_c5 == holds + two_windows;
`endif
    may_store_was <= may_join;
    was_used <= used;
    was_all <= (member & ~(does_cut ? had : had_now)) == 0;
    {was_kept, was_copied} <= {kept_c5, copied_c5};
    was_in_sum <= in_sum && summed;

    if (does_turn || does_join) begin
      used <= 1'b1;
      holds <= vid_c5;
      had <= had_now;
      ce <= ce_now;
      not_ect <= not_ect_now;
      ect0 <= ect0_now;
      special <= special_now;
    end
`ifdef AGG_PARENT
    if (does_take) begin
      ce <= ce_now;
      not_ect <= not_ect_now;
      ect0 <= ect0_now;
      special <= special_now;
      summed <= 1'b0;
      its_settled <= 1'b1;
      generation <= !generation;
    end
    if (does_turn) its_settled <= !its_tree;
`endif
    if (does_turn) begin
      finished_with <= 0;
      summed <= 1'b0;
      stalls_before <= 1'b0;
      generation <= !own_sums[watched];
    end else if ((mine && is_data && used && begins) || (used && proves_mine))
      finished_with <= finished_now;
    if (does_stall) stalls_before <= 1'b1;
    if (closes) summing <= 1'b1;
    if (reduced && reduced_slot == watched) begin
      summing <= 1'b0;
      summed  <= 1'b1;
    end
    if (foreign) cleared <= 1'b0;
    if (clear && clear_slot == watched) begin
      sums_cleared <= 1'b1;
      if (used) cleared <= 1'b0;
    end
    if (clear && clear_row == its_row) begin
      cleared <= 1'b1;
      used <= 1'b0;
      summing <= 1'b0;
      summed <= 1'b0;
    end
    if (rst) begin
      sums_cleared <= 1'b0;
      cleared <= 1'b0;
    end
  end

  always @* begin
    assume (its_window != 0 && (its_window & (its_window - 1'b1)) == 0);
    assume (2 * its_window <= SLOTS);
  end

  // What other modules promise
  always @* begin
    if (was_reset && !rst) begin
      // agg_arbiter, agg_commit: the operations.
      `PROMISED(!(read && in_c3));
`ifdef AGG_PARENT
      `PROMISED(act + refuse + data + ask + finish + settle <= 1);
      `PROMISED(!(act || refuse || data || ask || finish || settle) || in_c5);
      // agg_up_commit, agg_jobs: a final sum is no port's, and a job stays what it is.
      `PROMISED(!settle || (ports == 0 && ((slot_c5 ^ vid_c5[SLOT_BITS-1:0]) & mask_c5) == 0));
      if ((in_c5 || in_c6) && its_job) `PROMISED(tree == its_tree);
`else
      `PROMISED(act + refuse + data + ask + finish <= 1);
      `PROMISED((act || refuse || data || ask || finish) == in_c5);
`endif
      if (in_c4) begin
        `PROMISED({read_slot, read_other, read_window} == {slot_c4, other_c4, window_c4});
        `PROMISED({read_mask, read_vid, read_first} == {mask_c4, vid_c4, first_c4});
      end
      if (in_c6) `PROMISED(packet_now == packet_c5);
      if (in_c5 && (data || ask)) begin
        `PROMISED((ports & member) != 0 && (ports & (ports - 1'b1)) == 0);
        `PROMISED(((slot_c5 ^ vid_c5[SLOT_BITS-1:0]) & mask_c5) == 0);
      end
`ifdef AGG_PARENT
      if (in_c5 && (data || ask || act || settle)) begin
`else
      if (in_c5 && (data || ask || act)) begin
`endif
        // agg_jobs: a window is a power of two. agg_commit: the row of a slot.
        `PROMISED(window_c5 != 0 && (window_c5 & (window_c5 - 1'b1)) == 0);
        `PROMISED(mask_c5 == 2 * window_c5 - 1'b1);
        `PROMISED(row_c5 == (((slot_c5 & ~mask_c5) >> 1) | (slot_c5 & (mask_c5 >> 1))));
        `PROMISED(other_c5 == (slot_c5 ^ window_c5));
        // agg_jobs: a job's configuration does not change while it uses slots.
        `PROMISED(!(cleared && used) || its_job || apart);
        // agg_jobs: a job's slots are cleared before its first packet, and no other job has them
        // until they are cleared again.
        if (its_job && row_c5 == its_row) `PROMISED(cleared && sums_cleared);
      end
      if (clear) `PROMISED(!(read || in_c3 || in_c4 || in_c5 || in_c6 || in_c7 || reduced));
      // agg_reader and agg_writer: a slot reduced was complete, and is reduced once.
      if (cleared && reduced && reduced_slot == watched)
        `PROMISED(summing && reduced_gen == generation);
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      assert (!sums_cleared || own_sums[watched] == other_sums[watched]);
`ifdef AGG_PARENT
      assert (!(act_reg || refuse_reg || data_reg || ask_reg || finish_reg || is_settle) || in_c6);
      if (takes_reg) assert (is_settle);
`else
      assert ((act_reg || refuse_reg || data_reg || ask_reg || finish_reg) == in_c6);
`endif
      assert ({is_act, is_refuse, is_data, is_ask, is_finish} ==
          {act_reg, refuse_reg, data_reg, ask_reg, finish_reg});
      assert (addressed_reg == in_c3 && read_reg == in_c4);
      assert (!(in_c3 && in_c4) && !(in_c4 && in_c5) && !(in_c5 && in_c6) && !(in_c6 && in_c7));
      if (in_c3 || in_c4) assert (addressed_row_reg == (in_c3 ? row_c3 : row_c4));
`ifdef AGG_PARENT
      assert (wrote_reg == (in_c7 && (was_data || was_act || taken)));
      if (taken) assert (was_settle && in_c7);
`else
      assert (wrote_reg == (in_c7 && (was_data || was_act)));
`endif
      if (wrote_reg) assert (written_row_reg == row_c7);
      if (in_c5 || in_c6 || in_c7) assert (loaded_reg);
      assert (!(fetch_reg || swap_reg) || read_reg);
      if (read_reg) begin
        assert (read_high_reg == |(slot_c4 & window_c4));
        assert (since_first_reg == vid_c4 - first_c4);
        if (!fetch_reg) begin
          assert (loaded_reg && row_reg == row_c4);
          assert (swap_reg == (read_high_reg != high_is_own_reg));
        end
      end
      if (loaded_reg) assert (row_reg == row_c5);
      if (in_c5 || in_c6) begin
        assert (slot_reg == slot_c5 && vid_reg == vid_c5);
        assert (high_is_own_reg == |(slot_c5 & window_c5));
      end

      // No operation of another job changes the row.
      assert (!(foreign && cleared && used));

      // Memories and operands hold the slot's word.
      if (cleared) begin
        assert (!used || sums_cleared);
        assert (!(summing && summed) && (used || !(summing || summed)));
        assert (!used || (its_base | (holds & its_mask)) == watched);
        assert (!used || (own_sums[watched] == generation) == summed);
        assert (stored_word[WORD_BITS-1] == used && (!used || stored_word == its_word));
        if (loaded_reg && row_reg == its_row)
          assert (loaded_word[WORD_BITS-1] == used && (!used || loaded_word == its_word));
        if (in_c3 && row_c3 == its_row && !(wrote_reg && written_row_reg == its_row))
          assert (read_word[WORD_BITS-1] == used && (!used || read_word == its_word));
        if (wrote_reg && written_row_reg == its_row)
          assert (written_word[WORD_BITS-1] == used && (!used || written_word == its_word));
        if (in_c4 && row_c4 == its_row && fetch_reg)
          assert (fetched_word[WORD_BITS-1] == used && (!used || fetched_word == its_word));
        if (read_reg && slot_c4 == watched) begin
          assert (!used || (own_read_reg == generation) == seen_c4);
          assert (used || own_read_reg == own_sums[watched]);
        end
        if (read_reg && other_c4 == watched && used)
          assert ((other_read_reg == generation) == seen_c4);
        if ((in_c5 || in_c6) && slot_c5 == watched) begin
          assert (!used || (own_sum_reg == generation) == seen_c5);
          assert (used || own_sum_reg == own_sums[watched]);
        end
        if ((in_c5 || in_c6) && other_c5 == watched && used)
          assert ((other_sum_reg == generation) == seen_c5);
        if (read_reg) assert (!seen_c4 || summed);
        if (in_c5 || in_c6) assert (!seen_c5 || summed);
      end
    end
  end

  wire [WORD_BITS-1:0] stored_word = its_high ? high_words[its_row] : low_words[its_row];
  wire [WORD_BITS-1:0] loaded_word = its_high == high_is_own_reg ? own_reg : other_reg;
  wire [WORD_BITS-1:0] read_word = its_high ? high_read_reg : low_read_reg;
  wire [WORD_BITS-1:0] written_word = its_high ? high_written_reg : low_written_reg;
  wire [WORD_BITS-1:0] fetched_word = its_high ? high_fetched : low_fetched;

  // The rules, event by event
  always @* begin
    if (was_reset && !rst) begin
      // A contribution is stored once, in the slot's chunk or the next one, and never after its
      // chunk closed. No chunk follows before every rank is done with its predecessor.
      if (was_mine) begin
        assert (turn_over == was_turn && store == (was_turn || was_join));
        if (turn_over && was_used) assert (may_turn_was);
        if (store && !turn_over) assert (may_store_was);
        if (store) assert (writable_c7 && was_data);

        // A slot completes once, when it holds all members or its time is up, with all marks.
        assert (complete == was_close && timer_stop == complete);
        if (complete) begin
          assert (complete_ports == was_ports && complete_vid == was_vid);
          assert (complete_ecn == was_ecn && complete_nonfinite == was_special);
`ifdef AGG_PARENT
          assert (was_cut || was_all || was_take);
`else
          assert (was_cut || was_all);
`endif
        end

`ifdef AGG_PARENT
        // A final sum is taken once for each own sum, and only while the slot waits for it.
        assert (taken == was_take && again == was_again);
        assert (!(again && owe) && !(taken && turn_over));

`endif
        // A repeat or an ask is answered by the result, or by the missing members.
        assert (owe == was_owed && asked == was_asked && answer == was_answer);
        if (answer) assert (answer_code == was_code && answer_ports == was_named);
        assert (refused == was_refused);
        if (refused) assert (refused_code == was_refusal);
        assert (refused_answer == (refused && belongs_c7 && !owe &&
                                   refused_code != CODE_PAYLOAD_CRC));
        assert (timer_start == (was_turn || was_first_stall));
`ifdef AGG_PARENT
        if (was_data || was_ask || was_take) assert (e_gen == was_gen || !(was_used || was_turn));
`else
        if (was_data || was_ask) assert (e_gen == was_gen || !(was_used || was_turn));
`endif
      end

      // Overdue members are reported to the others, or evicted; a packet evicts nobody.
      if (was_mine && was_act) begin
        assert (overdue == was_wait && evict == (was_evict ? was_behind : 0));
        assert (notice == (overdue && !was_cut));
        if (notice) begin
          assert (notice_code == (was_evict ? CODE_EVICTED : CODE_OVERDUE));
          assert (was_evict || !partial_c7);
          assert (answer_ports == was_named && notice_ports == was_told && notice_vid == holds_c7);
        end
      end
      if (!was_act || !was_carried_out) assert (!overdue && !notice && evict == 0);
      if (was_act && !was_carried_out) assert (!complete);
      assert (acted == (was_act && was_carried_out));
      if (!was_data) assert (!store && !turn_over && !timer_start && !store_ce && !store_nonfinite);
      if (!was_data && !was_ask) assert (!owe);
`ifdef AGG_PARENT
      if (!was_data && !was_act && !taken) assert (!complete);
      if (!was_data && !was_ask) assert (!again);
`else
      if (!was_data && !was_act) assert (!complete);
`endif
      assert (store_ce == (store && ecn_c7 == ECN_CE));
      assert (store_nonfinite == (store && nonfinite_c7));
      assert (finished == was_finish);
      if (finished) assert (answer && answer_code == CODE_DONE && answer_ports == 0);
      if (was_refuse) assert (refused && refused_code == code_c7);

      // The operation
      assert (judged == (was_packet ? ports_c7 : 0));
      if (was_packet || was_act) begin
        assert (e_slot == slot_c7 && e_job == job_c7 && e_vid == vid_c7);
        assert (e_port == port_c7 && e_number == number_c7 && e_epoch == epoch_c7);
        assert (e_rank == rank_c7);
      end

      // One verdict for each packet of data, as its events say.
      assert (verdict_valid == (of_data_c7 && (was_data || was_refuse)));
      if (verdict_valid) begin
        assert (verdict_port == port_c7 && verdict_vid == vid_c7);
        assert (verdict_slot == (placed_c7 ? slot_c7 : 0));
        assert ((verdict_result == 0) == store && (verdict_result == 2) == owe);
        assert ((verdict_result == 0) == !refused);
        if (was_mine && was_data) assert ((verdict_result == 1) == (was_repeat && !owe));
        if (was_refuse) assert (verdict_result == (ended_c7 || was_down ? 4 : 3));
        assert (verdict_result <= 4);
        if (verdict_result == 1 || verdict_result == 2)
          assert (was_data && refused_code == CODE_DUPLICATE);
        if (verdict_result == 3) assert (!was_down && !ended_c7);
        if (verdict_result == 4) assert (was_down || ended_c7);
        assert (verdict_code == (store ? CODE_DONE : refused_code));
      end

      if (cleared) begin
        cover (turn_over && was_mine && was_used && was_kept);
        cover (store && !turn_over && was_mine && was_copied);
        cover (complete && was_mine && complete_vid == 32'hffffffff && !turn_over);
        cover (owe && was_mine && vid_c7 == 0);
        cover (was_mine && was_data && was_in_sum && refused_code == CODE_DUPLICATE);
        cover (was_cut && was_ports != 0 && was_ports != member_c7);
        cover (was_act && was_mine && evict != 0);
`ifdef AGG_PARENT
        cover (taken && was_mine && its_tree && complete_ports != 0);
        cover (again && was_mine && answer);
`endif
        cover (used && its_window == 1 && its_base != 0 && turn_over && !was_mine);
        cover (was_mine && was_first_stall && timer_start);
      end
      cover (verdict_valid && verdict_result == 4 && refused_code == CODE_BAD_JOB);
    end
  end
`endif

endmodule

`default_nettype wire
