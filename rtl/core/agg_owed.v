// Tracks, for one job, which ports are owed which slot's result, and picks the next result to send
// and its receivers. Members are identified by port, slots relative to the job's first one.
//
// A result is owed to all members once its slot begins to be summed. It is first sent in the order
// of these beginnings, to the members that are ready (*fresh*). A scan finds results still owed to
// members that were not ready or that repeat; what it finds precedes fresh results. A pass of the
// scan starts at the oldest VID, or from rest at the first slot that owes. A port that is not ready
// for a result serves no more in this pass, so a port that was held up gets its oldest result first.
// Until then the port may also be sent fresh results. The scan stays at a slot once, for four
// cycles, if a port that is owed its result is starting. The scan rests while no slot owes.
//
// A slot's row is in a RAM. An operation starts in a cycle with decide and is decided in the next
// such cycle, in which another may start; its row is written one cycle later. In the order of
// precedence, an operation enters a slot that began, notes a packet's port as owed, or looks at the
// head of the fresh results or at the scan's slot. The last three take turns. The scan takes every
// second turn at most, and pauses for one when a pass begins.
//
// A pick is made in a cycle with decide and pick_ready, for ports of ready, and is shown in the next
// cycle. It is final: its receivers are no longer owed. A slot may still turn over, and begin, while
// its pick is on its way; agg_egress cancels such a pick. Latency: a result begun in cycle 0 is
// picked in cycle 3 or 4 and shown one cycle later. A port noted in cycle 0 is picked in cycle 9 or
// 10 from rest, and otherwise within two passes of four cycles a slot. Both hold if nothing precedes
// it. Not done here: sending (agg_egress).

`default_nettype none

module agg_owed #(
    parameter integer PORTS     = 4,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // The job
    input wire flush,  // the job ends: nothing is owed
    input wire clear,  // during flush: empties a row, for each of the job's slots
    input wire [SLOT_BITS-1:0] clear_slot,
    input wire [SLOT_BITS-1:0] slot_mask,  // 2 * window - 1
    input wire [PORTS-1:0] member,  // by port

    input wire                 begun,       // the slot is being summed; not in consecutive cycles
    input wire [SLOT_BITS-1:0] begun_slot,
    input wire                 begun_gen,   // of the slot

    // From agg_slots: the effect of a packet on its slot
    input  wire [SLOT_BITS-1:0] slot,
    input  wire                 turn_over,       // drops what was owed for the slot
    input  wire                 gen,             // of the slot, from now on
    input  wire                 owe,             // a port is owed the result, perhaps again
    input  wire [    PORTS-1:0] port,            // that port, one-hot
    output wire                 owe_nearly_full, // has room for four more of them

    input wire             decide,   // in every second cycle: operations start and end
    input wire [PORTS-1:0] ready,    // in a cycle with decide: ports that can take a packet
    input wire [PORTS-1:0] starting, // likewise: that may be ready four cycles later

    output wire                 pick_wants,      // a result could be picked
    input  wire                 pick_ready,      // in a cycle with decide: pick
    output wire                 pick_valid,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay      // a receiver was sent it before
);

  localparam integer NOTES = 8;  // room for ports to note as owed
  localparam integer ROW = 2 * PORTS + 3;
  localparam integer TABLE_BITS = SLOT_BITS < 5 || SLOT_BITS > 8 ? SLOT_BITS : 4;
  localparam integer FOLDS = 1 << (SLOT_BITS - TABLE_BITS);
  localparam [FOLDS-1:0] ONE_FOLD = 1;
  localparam [SLOT_BITS-1:0] FOLD_OF = {SLOT_BITS{1'b1}} << TABLE_BITS;

  // -- Slots that began, and ports to note --------------------------------------------------------

  reg begun_reg;  // a slot waits to be entered
  reg [SLOT_BITS-1:0] begun_slot_reg;
  reg begun_gen_reg;

  reg [NOTES-1:0] note_valid_reg;  // the oldest is note 0
  reg [NOTES-1:0] note_void_reg;  // the slot has turned over, or the port was sent the result since
  reg [SLOT_BITS*NOTES-1:0] note_slot_reg;
  reg [PORTS*NOTES-1:0] note_port_reg;
  reg nearly_full_reg;

  reg pick_reg;
  reg [SLOT_BITS-1:0] end_slot_reg;  // of the operation that ends, and of its pick
  reg [PORTS-1:0] receivers_reg;

  wire takes_begun, takes_note, takes_fresh, takes_scan;

  // Notes move up when note 0 leaves. A new one takes the first free place.
  wire [NOTES-1:0] stay = takes_note ? note_valid_reg >> 1 : note_valid_reg;
  wire [NOTES-1:0] adds = owe ? ~stay & {stay[NOTES-2:0], 1'b1} : {NOTES{1'b0}};
  reg  [NOTES-1:0] voids;  // of the places that are taken
  integer m, n;

  always @* begin
    for (n = 0; n < NOTES; n = n + 1)
    voids[n] = note_valid_reg[n] && (note_void_reg[n] ||
          (turn_over && slot == note_slot_reg[SLOT_BITS*n+:SLOT_BITS]) ||
          (pick_reg && end_slot_reg == note_slot_reg[SLOT_BITS*n+:SLOT_BITS] &&
           |(receivers_reg & note_port_reg[PORTS*n+:PORTS])));
  end

  always @(posedge clk) begin
    if (begun) begin
      begun_reg      <= 1'b1;
      begun_slot_reg <= begun_slot;
      begun_gen_reg  <= begun_gen;
    end else if (takes_begun) begin
      begun_reg <= 1'b0;
    end

    for (m = 0; m < NOTES; m = m + 1) begin
      if (adds[m]) begin
        note_slot_reg[SLOT_BITS*m+:SLOT_BITS] <= slot;
        note_port_reg[PORTS*m+:PORTS]         <= port;
      end else if (takes_note && m < NOTES - 1) begin
        note_slot_reg[SLOT_BITS*m+:SLOT_BITS] <= note_slot_reg[SLOT_BITS*((m+1)%NOTES)+:SLOT_BITS];
        note_port_reg[PORTS*m+:PORTS]         <= note_port_reg[PORTS*((m+1)%NOTES)+:PORTS];
      end
    end
    note_valid_reg  <= stay | adds;
    note_void_reg   <= takes_note ? voids >> 1 : voids;
    nearly_full_reg <= note_valid_reg[2];

    if (rst || flush) begin
      begun_reg       <= 1'b0;
      note_valid_reg  <= {NOTES{1'b0}};
      nearly_full_reg <= 1'b0;
    end
  end

  assign owe_nearly_full = nearly_full_reg;

  // -- Fresh results that wait --------------------------------------------------------------------

  reg [SLOT_BITS:0] fresh_count_reg;  // queued
  reg fresh_none_reg;
  wire head_valid, unused_after;
  wire [SLOT_BITS-1:0] head, unused_after_slot;
  reg push_reg, pop_reg;

  agg_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_fresh (
      .clk        (clk),
      .clear      (rst || flush),
      .push       (push_reg),
      .push_slot  (end_slot_reg),
      .head_valid (head_valid),
      .head_slot  (head),
      .after_valid(unused_after),
      .after_slot (unused_after_slot),
      .pop        (pop_reg)
  );

  always @(posedge clk) begin
    if (push_reg) begin
      fresh_count_reg <= fresh_count_reg + 1'b1;
      fresh_none_reg  <= 1'b0;
    end
    if (pop_reg) begin
      fresh_count_reg <= fresh_count_reg - 1'b1;
      fresh_none_reg  <= fresh_count_reg == {{SLOT_BITS{1'b0}}, 1'b1};
    end
    if (rst || flush) begin
      fresh_count_reg <= {SLOT_BITS + 1{1'b0}};
      fresh_none_reg  <= 1'b1;
    end
  end

  // -- Start of an operation ----------------------------------------------------------------------

  reg op_enters_reg, op_notes_reg, op_fresh_reg, op_scans_reg;  // at most one
  reg [SLOT_BITS-1:0] op_slot_reg;
  reg [PORTS-1:0] op_port_reg;
  reg op_gen_reg;  // of a slot that is entered
  reg noted_reg, scanned_reg;  // who had the last turn

  reg idle_reg;  // the scan rests: no slot owes, except those that are queued as fresh
  reg found_reg;  // the scan's slot waits to be picked
  reg restarted_reg;  // the scan has just begun a pass
  reg [SLOT_BITS-1:0] at_reg;  // the scan's slot
  reg scan_may_reg;  // in a cycle with decide: the scan may look at its slot
  wire restarts;

  wire fresh_may = head_valid && !found_reg;
  wire note_turn = note_valid_reg[0] && !(noted_reg && (head_valid || !idle_reg));
  wire scan_turn = scan_may_reg && !(fresh_may && scanned_reg);
  wire takes_other = decide && !begun_reg && !note_turn;

  assign takes_begun = decide && begun_reg;
  assign takes_note  = decide && !begun_reg && note_turn;
  assign takes_scan  = takes_other && scan_turn;
  assign takes_fresh = takes_other && fresh_may && !scan_turn;

  wire [SLOT_BITS-1:0] next_slot = begun_reg ? begun_slot_reg :
      note_turn ? note_slot_reg[SLOT_BITS-1:0] : scan_turn ? at_reg : head;

  always @(posedge clk) begin
    if (decide) begin
      op_enters_reg <= takes_begun;
      op_notes_reg  <= takes_note && !note_void_reg[0];
      op_fresh_reg  <= takes_fresh;
      op_scans_reg  <= takes_scan;
      op_slot_reg   <= next_slot;
      op_port_reg   <= note_port_reg[PORTS-1:0];
      op_gen_reg    <= begun_gen_reg;
    end
    if (takes_note) noted_reg <= 1'b1;
    else if (takes_other) noted_reg <= 1'b0;
    if (takes_other) scanned_reg <= takes_scan;
    scan_may_reg <= !idle_reg && !op_scans_reg && !restarts;
    if (rst || flush) begin
      scan_may_reg  <= 1'b0;
      op_enters_reg <= 1'b0;
      op_notes_reg  <= 1'b0;
      op_fresh_reg  <= 1'b0;
      op_scans_reg  <= 1'b0;
    end
    if (rst) begin
      noted_reg   <= 1'b0;
      scanned_reg <= 1'b0;
    end
  end

  // -- Rows ---------------------------------------------------------------------------------------

  reg clear_reg;
  reg [SLOT_BITS-1:0] clear_slot_reg;
  reg ends_reg;  // an operation was decided in the last cycle
  wire [ROW-1:0] next_row;
  wire [ROW-1:0] ram_row;
  wire [FOLDS-1:0] ram_gens;
  wire ram_gen;

  agg_ram #(
      .WIDTH    (ROW),
      .ADDR_BITS(SLOT_BITS),
      .APART    (1)
  ) u_rows (
      .clk    (clk),
      .wr_en  (clear_reg || ends_reg),
      .wr_addr(clear_reg ? clear_slot_reg : end_slot_reg),
      .wr_data(next_row),                                   // 0 with a clear
      .rd_en  (decide),
      .rd_addr(next_slot),
      .rd_data(ram_row)
  );

  // Generations of slots: a row whose generation is not its slot's is void. Tables are read in
  // folds of 16 slots, and the fold is selected in the next cycle; a large memory is a block RAM.
  genvar g;
  generate
    for (g = 0; g < FOLDS; g = g + 1) begin : g_fold
      localparam [SLOT_BITS-1:0] FIRST = g << TABLE_BITS;

      agg_ram #(
          .WIDTH    (1),
          .ADDR_BITS(TABLE_BITS),
          .APART    (1)
      ) u_gens (
          .clk    (clk),
          .wr_en  (turn_over && (slot & FOLD_OF) == FIRST),
          .wr_addr(slot[TABLE_BITS-1:0]),
          .wr_data(gen),
          .rd_en  (decide),
          .rd_addr(next_slot[TABLE_BITS-1:0]),
          .rd_data(ram_gens[g])
      );
    end
  endgenerate

  assign ram_gen = |(ram_gens & (ONE_FOLD << (op_slot_reg >> TABLE_BITS)));

  reg [ROW-1:0] read_reg;  // as the memory had it, or as the operation before left it
  reg [ROW-1:0] wrote_reg;  // as the operation before left its row
  reg same_reg;  // the operation before was on the same slot
  wire same = ends_reg && op_slot_reg == end_slot_reg;
  reg served_reg;  // and its pick served the port to note
  reg slot_gen_reg;
  reg [PORTS-1:0] serves_reg;  // ports that were ready at each slot of this pass that owed them

  always @(posedge clk) begin
    if (!decide) begin
      read_reg     <= same ? next_row : ram_row;
      wrote_reg    <= next_row;
      same_reg     <= same;
      served_reg   <= pick_reg && |(op_port_reg & receivers_reg);
      slot_gen_reg <= ram_gen;
    end
    clear_reg <= clear && flush;
    clear_slot_reg <= clear_slot;
  end

  // -- Decision -----------------------------------------------------------------------------------

  // The row in a cycle with decide. Fresh: queued, and owed to all members. Otherwise, the ports
  // that are owed the result, and those that were sent it
  wire valid, row_gen, fresh;
  wire [PORTS-1:0] owed, sent;
  assign {valid, row_gen, fresh, owed, sent} = read_reg;

  reg none_reg;  // the job has no members
  reg stayed_reg;  // the scan stayed at its slot

  wire [PORTS-1:0] serves = owed & serves_reg;
  wire may_pick = valid && row_gen == slot_gen_reg;
  wire can_fresh = !found_reg && |(member & ready) &&
      ((op_fresh_reg && fresh && may_pick) || (op_enters_reg && !fresh && fresh_none_reg));
  wire may_scan = op_scans_reg && may_pick && !fresh;
  wire serves_now = |(serves & ready);
  wire serves_soon = !stayed_reg && |(serves & starting);
  wire stays = may_scan && serves_soon;
  wire can_scan = may_scan && serves_now && !serves_soon;

  reg row_valid_reg, row_gen_reg, row_fresh_reg;  // the row in the next cycle
  reg [PORTS-1:0] row_owed_reg, row_sent_reg;
  reg live_reg;  // it has its slot's generation

  reg end_enters_reg, end_fresh_reg, end_scans_reg;
  reg first_reg;  // nobody was sent the result
  reg notes_reg;  // the port is owed it
  reg [PORTS-1:0] end_port_reg;
  reg end_gen_reg;
  reg can_reg;  // a pick was possible, or may be when the scan's slot is looked at again
  reg replay_reg;

  always @(posedge clk) begin
    {row_valid_reg, row_gen_reg, row_fresh_reg, row_owed_reg, row_sent_reg} <= {
      valid, row_gen, fresh, owed, sent
    };
    live_reg <= may_pick;
    ends_reg <= decide && (op_enters_reg || op_notes_reg || op_fresh_reg || op_scans_reg);
    end_enters_reg <= decide && op_enters_reg;
    first_reg <= decide && (op_enters_reg || (op_fresh_reg && fresh));
    notes_reg <= decide && op_notes_reg && !(same_reg && served_reg) && may_pick && !fresh;
    end_fresh_reg <= decide && op_fresh_reg;
    end_scans_reg <= decide && op_scans_reg;
    end_slot_reg <= op_slot_reg;
    end_port_reg <= op_port_reg;
    end_gen_reg <= op_gen_reg;
    can_reg <= can_fresh || (may_scan && (serves_now || serves_soon));
    if (decide && op_scans_reg) stayed_reg <= stays;
    pick_reg <= decide && pick_ready && (can_fresh || can_scan);
    push_reg <= decide && op_enters_reg && !fresh && !(pick_ready && can_fresh);
    pop_reg <= decide && op_fresh_reg && fresh &&
        ((pick_ready && can_fresh) || !may_pick || none_reg);
    receivers_reg <= (op_scans_reg ? serves : member) & ready;
    replay_reg <= op_scans_reg && |(serves & sent & ready);
    if (rst || flush) begin
      ends_reg                                                                <= 1'b0;
      end_enters_reg                                                          <= 1'b0;
      first_reg                                                               <= 1'b0;
      notes_reg                                                               <= 1'b0;
      end_fresh_reg                                                           <= 1'b0;
      end_scans_reg                                                           <= 1'b0;
      push_reg                                                                <= 1'b0;
      pop_reg                                                                 <= 1'b0;
      pick_reg                                                                <= 1'b0;
      stayed_reg                                                              <= 1'b0;
      {row_valid_reg, row_gen_reg, row_fresh_reg, row_owed_reg, row_sent_reg} <= {ROW{1'b0}};
    end
  end

  // -- End of an operation: the row, and what it owes afterwards ----------------------------------

  wire [PORTS-1:0] served = pick_reg ? receivers_reg : {PORTS{1'b0}};
  wire [PORTS-1:0] next_owed = ((first_reg ? member : row_owed_reg) & ~served) |
      (notes_reg ? end_port_reg : {PORTS{1'b0}});
  wire [PORTS-1:0] next_sent = (first_reg ? {PORTS{1'b0}} : row_sent_reg) | served;

  assign next_row = {
    row_valid_reg || end_enters_reg,
    end_enters_reg ? end_gen_reg : row_gen_reg,
    end_enters_reg ? !pick_reg : row_fresh_reg && !pop_reg,
    next_owed,
    next_sent
  };

  // -- Scan ---------------------------------------------------------------------------------------

  reg [SLOT_BITS-1:0] newest_reg;  // slot that turned over last
  reg [SLOT_BITS-1:0] left_reg;  // slots left in this pass
  reg seen_reg;  // a slot that this pass does not come to, or no more, owes
  reg fresh_can_reg;  // a fresh result waits to be picked

  // One cycle after the end of an operation: whether its row, if it is right, owes
  reg ended_reg, right_reg;
  reg [SLOT_BITS-1:0] ended_slot_reg;
  wire owes = ended_reg && right_reg && !wrote_reg[2*PORTS] && |wrote_reg[PORTS+:PORTS];

  reg unseen_reg;  // no slot was seen to owe in the pass before

  wire moves = end_scans_reg && (pick_reg || !can_reg);
  wire pass_ends = left_reg == {SLOT_BITS{1'b0}};
  wire wakes = idle_reg && owes;
  assign restarts = moves && pass_ends;

  always @(posedge clk) begin
    if (turn_over) newest_reg <= slot;
    none_reg <= ~|member;
    if (end_scans_reg) found_reg <= can_reg && !pick_reg;
    if (end_fresh_reg) fresh_can_reg <= can_reg && !pick_reg;
    if (push_reg) fresh_can_reg <= 1'b1;

    if (moves) begin
      at_reg   <= (at_reg + 1'b1) & slot_mask;
      left_reg <= left_reg - 1'b1;
    end
    ended_reg      <= ends_reg;
    ended_slot_reg <= end_slot_reg;
    right_reg      <= live_reg || end_enters_reg;
    restarted_reg  <= restarts;
    unseen_reg     <= !seen_reg;

    if (owes && !restarted_reg) seen_reg <= 1'b1;
    if (restarted_reg && unseen_reg && !owes) idle_reg <= 1'b1;
    if (restarts) at_reg <= (newest_reg + 1'b1) & slot_mask;
    if (wakes) begin
      idle_reg <= 1'b0;
      at_reg   <= ended_slot_reg;
    end
    if (moves && live_reg && !row_fresh_reg) serves_reg <= serves_reg & ~next_owed;
    if (wakes || restarts) begin
      left_reg   <= slot_mask;
      serves_reg <= {PORTS{1'b1}};
      seen_reg   <= 1'b0;
    end

    if (rst || flush) begin
      ended_reg     <= 1'b0;
      restarted_reg <= 1'b0;
      idle_reg      <= 1'b1;
      found_reg     <= 1'b0;
      fresh_can_reg <= 1'b0;
    end
    if (rst) newest_reg <= {SLOT_BITS{1'b0}};
  end

  // -----------------------------------------------------------------------------------------------

  assign pick_wants = begun_reg || op_enters_reg || end_enters_reg || found_reg || fresh_can_reg;
  assign pick_valid = pick_reg;
  assign pick_slot = end_slot_reg;
  assign pick_receivers = receivers_reg;
  assign pick_replay = replay_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The contents of the memories and of the queue, and the life of every slot
  localparam integer SLOTS = 1 << SLOT_BITS;
  reg was_reset = 1'b0;
  reg [ROW*SLOTS-1:0] rows;
  reg [SLOTS-1:0] gens, queued;
  reg [SLOTS-1:0] cleared;  // the row was emptied since the last job
  reg [SLOTS-1:0] known;  // the slot turned over in this job
  reg [SLOTS-1:0] exists;  // it has begun since
  reg [SLOTS-1:0] turned_0, turned_1, turned_2;  // it turned over one, two, three cycles ago
  reg [SLOTS-1:0] begun_0, begun_1, begun_2, begun_3, begun_4;  // it began ...
  reg [SLOTS-1:0] ended_0, ended_1, ended_2;  // and had begun before
  reg flush_was, decide_was, begun_was;
  reg ends_note;  // the operation that ends noted a port, unless the one before served it
  reg stayed_then;  // before the last operation of the scan was decided
  reg [ROW-1:0] read_row;  // by the operation that started
  reg read_gen;  // of its slot
  reg row_any, gen_any;  // they were written in that cycle
  reg [SLOT_BITS-1:0] mask_was;
  reg [SLOT_BITS:0] queue_count;
  reg [7:0] full_was;  // owe_nearly_full, in the last eight cycles
  reg [7:0] owe_was;  // owe, likewise
  reg [3:0] note_count, came;
  integer j;
  reg [PORTS-1:0] member_was, ready_was;
  wire [SLOTS-1:0] turns = turn_over ? 1 << slot : 0;
  wire [SLOTS-1:0] begins = begun ? 1 << begun_slot : 0;
  wire op_valid = op_enters_reg || op_notes_reg || op_fresh_reg || op_scans_reg;
  wire [SLOTS-1:0] recent = turned_0 | turned_1 | turned_2;
  wire [SLOTS-1:0] young = begun_0 | begun_1 | begun_2 | begun_3 | begun_4;
  wire [SLOTS-1:0] enters = (begun_reg ? 1 << begun_slot_reg : 0) |
      (op_enters_reg ? 1 << op_slot_reg : 0) |
      (end_enters_reg ? 1 << end_slot_reg : 0);
  reg all_cleared;  // the job's slots
  reg [SLOT_BITS-1:0] newest;  // slot that turned over last
  reg asked_was;  // all ports were ready in the last cycle, and a pick was asked for
  reg [SLOT_BITS-1:0] newest_was;
  // At rest: no events, all ports are ready, and every cycle with decide picks.
  wire asked = &ready && starting == 0 && pick_ready;
  wire at_rest = !rst && !flush && !begun && !turn_over && !owe && (decide ? asked : asked_was);
  wire settled = at_rest && queued == 0 && note_valid_reg == 0 && enters == 0 && !op_notes_reg &&
      !ends_note && !op_fresh_reg && !end_fresh_reg;
  wire pending = !idle_reg || owes || queued != 0 || note_valid_reg != 0 || enters != 0;
  reg [1:0] passes;  // that began since all is settled; the second has visited every slot
  reg [3:0] waits;  // cycles without progress, at rest
  wire [SLOT_BITS-1:0] to_come = (watched - at_reg) & slot_mask;  // slots before the watched one
  reg running;  // no flush, now and in the last cycle
  reg head_stays;
  reg [SLOT_BITS-1:0] head_was;

  // For any slot: the ports that are owed its result, and those that were sent it.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg unsent;  // sent to nobody
  reg [PORTS-1:0] due, had;
  reg [PORTS-1:0] noted;  // ports with a note
  reg [PORTS-1:0] passed;  // ports that it owed when the scan moved on from it in this pass
  reg [PORTS-1:0] its_port;
  wire [ROW-1:0] its_row = rows[ROW*watched+:ROW];
  wire its_fresh = its_row[2*PORTS];
  wire [PORTS-1:0] its_owed = its_row[PORTS+:PORTS];
  wire it_exists = exists[watched];
  wire ended = ended_0[watched] || ended_1[watched] || ended_2[watched];
  wire its_end = owes && ended_slot_reg == watched;
  wire it_picks = pick_valid && pick_slot == watched;
  wire cancelled = begins[watched] || begun_0[watched];  // by agg_egress
  wire [PORTS-1:0] taken = it_picks && !cancelled ? pick_receivers : 0;
  integer i;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    flush_was <= flush;
    head_stays <= head_valid && !pop_reg && !rst && !flush;
    head_was <= head;
    decide_was <= decide;
    ends_note <= decide && op_notes_reg && !(same_reg && served_reg) && !rst && !flush;
    stayed_then <= stayed_reg;
    passes <= !settled || idle_reg ? 0 : passes + (restarts && passes < 2);
    waits <= !at_rest || !pending || moves || pick_reg || takes_note || takes_begun || pop_reg ? 0 :
        waits + 1;
    if (rst) newest <= 0;
    else if (turn_over) newest <= slot;
    newest_was <= newest;
    asked_was <= decide && asked;
    begun_was <= begun;
    mask_was <= slot_mask;
    member_was <= member;
    ready_was <= ready;
    owe_was <= {owe_was[6:0], owe};
    full_was <= {full_was[6:0], owe_nearly_full};
    turned_0 <= turns;
    turned_1 <= turned_0;
    ended_0 <= turns & exists;
    ended_1 <= ended_0;
    ended_2 <= ended_1;
    turned_2 <= turned_1;
    begun_0 <= begins;
    begun_1 <= begun_0;
    begun_2 <= begun_1;
    begun_3 <= begun_2;
    begun_4 <= begun_3;
    known <= known | turns;
    exists <= (exists & ~turns) | begins;
    if (turn_over) gens[slot] <= gen;
    if (clear && flush) cleared[clear_slot] <= 1'b1;
    if (clear_reg) rows[ROW*clear_slot_reg+:ROW] <= 0;
    else if (ends_reg) rows[ROW*end_slot_reg+:ROW] <= next_row;
    if (decide) begin
      read_row <= rows[ROW*next_slot+:ROW];
      read_gen <= gens[next_slot];
      row_any <= (clear_reg && clear_slot_reg == next_slot) ||
          (ends_reg && end_slot_reg == next_slot);
      gen_any <= turn_over && slot == next_slot;
    end
    if (push_reg) queued[end_slot_reg] <= 1'b1;
    if (pop_reg) queued[head] <= 1'b0;

    if (wakes || restarts) passed <= 0;
    else if (moves && end_slot_reg == watched && it_exists && !unsent)
      passed <= passed | (its_owed & ~(pick_reg ? pick_receivers : 0));

    due <= due & ~taken | (owe && slot == watched ? port : 0);
    had <= had | taken;
    if (taken != 0) unsent <= 1'b0;
    if (begins[watched]) begin
      unsent <= 1'b1;
      due <= {PORTS{1'b1}};
      had <= 0;
    end
    if (taken != 0 && unsent && !begins[watched])
      due <= (member | noted) & ~taken | (owe && slot == watched ? port : 0);

    // Nobody is left to be owed it, or it ended.
    if (pop_reg && !pick_reg && end_slot_reg == watched &&
        !begins[watched] && !enters[watched]) begin
      unsent <= 1'b0;
      due <= noted | (owe && slot == watched ? port : 0);
    end

    if (rst || flush) begin
      ended_0 <= 0;
      ended_1 <= 0;
      ended_2 <= 0;
      queued  <= 0;
      known   <= 0;
      exists  <= 0;
      owe_was <= 0;
    end
    if (rst) begin
      cleared  <= 0;
      begun_0  <= 0;
      turned_0 <= 0;
    end
    if (flush && !flush_was) cleared <= 0;
  end

  always @* begin
    running = !flush && !flush_was;
    all_cleared = 1'b1;
    for (i = 0; i < SLOTS; i = i + 1) if (i <= slot_mask && !cleared[i]) all_cleared = 1'b0;
    note_count = 0;
    for (i = 0; i < NOTES; i = i + 1) note_count = note_count + note_valid_reg[i];
    queue_count = 0;
    for (i = 0; i < SLOTS; i = i + 1) queue_count = queue_count + queued[i];
    noted = op_notes_reg && op_slot_reg == watched && !(decide && same_reg && served_reg) ?
        op_port_reg : 0;
    if (ends_note && end_slot_reg == watched && !decide) noted = noted | end_port_reg;
    for (i = 0; i < NOTES; i = i + 1)
    if (note_valid_reg[i] && !note_void_reg[i] && note_slot_reg[SLOT_BITS*i+:SLOT_BITS] == watched)
      noted = noted | note_port_reg[PORTS*i+:PORTS];
  end

  always @* begin
    if (was_reset && !rst) begin
      `PROMISED(decide == !decide_was);  // agg_egress
      // agg_jobs: window and members do not change until the job has ended; members may be evicted.
      // It empties the rows of an ended job's slots.
      `PROMISED((slot_mask & (slot_mask + 1'b1)) == 0 && slot_mask != 0);
      `PROMISED(flush || flush_was || (slot_mask == mask_was && (member & ~member_was) == 0));
      `PROMISED(!turn_over || all_cleared);
      `PROMISED(!(turn_over || owe || begun) || !flush_was || flush);
      `PROMISED(!(turn_over || owe) || !flush);
      `PROMISED(!begun || begun_slot <= slot_mask);
      `PROMISED(!(turn_over || owe) || slot <= slot_mask);
      // agg_slots: a slot turns over, begins to be summed two cycles later or later, and has a result
      // after that.
      `PROMISED(!turn_over || !known[slot] || (exists[slot] && !young[slot] && gen != gens[slot]));
      `PROMISED(!owe || (exists[slot] && !young[slot] && !turn_over));
      `PROMISED(!owe || (port != 0 && (port & ~member) == 0));
      `PROMISED(
          !begun || flush || (known[begun_slot] && !exists[begun_slot] &&
          !turns[begun_slot] && !turned_0[begun_slot] && begun_gen == gens[begun_slot]));
      `PROMISED((port & (port - 1'b1)) == 0);
      `PROMISED(!begun || !begun_was);  // agg_reader
      // agg_arbiter makes no operation once owe_nearly_full was seen, and spaces them.
      `PROMISED(!owe || !owe_was[0]);
      `PROMISED(!owe || !(&full_was));
      // agg_ram: what was read, unless it was written in that cycle. agg_slot_fifo, proved separately:
      // the head is a queued slot and stays. There is one while any slot is queued, because pushes
      // and pops come in cycles without decide only.
      assume (decide || row_any || ram_row == read_row);
      assume (decide || gen_any || ram_gen == read_gen);
      assert (!decide || !(push_reg || pop_reg));
      assume (!head_valid || queued[head]);
      assume (!decide || head_valid == (queued != 0));
      assume (!head_stays || (head_valid && head == head_was));

      if (flush_was) begin
        assert (!begun_reg && !op_valid && !ends_reg && !pick_valid && !push_reg && !pop_reg);
        assert (note_valid_reg == 0 && idle_reg && !found_reg && fresh_none_reg);
        assert (fresh_count_reg == 0 && queued == 0 && known == 0 && exists == 0);
        for (i = 0; i < SLOTS; i = i + 1)
        if (cleared[i]) assert (rows[ROW*i+:ROW] == 0 || (clear_reg && clear_slot_reg == i));
      end
      assert (!clear_reg || flush_was);
      assert (newest_reg == newest);
    end
    if (was_reset && !rst && running) begin
      // Operations and the registers that describe their rows
      assert (op_enters_reg + op_notes_reg + op_fresh_reg + op_scans_reg <= 1);
      assert (end_enters_reg + ends_note + end_fresh_reg + end_scans_reg <= ends_reg);
      assert (first_reg == (end_enters_reg || (end_fresh_reg && row_fresh_reg)));
      assert (notes_reg == (ends_note && live_reg && !row_fresh_reg));
      if (ends_reg) assert (live_reg == (row_valid_reg && row_gen_reg == slot_gen_reg));
      if (clear_reg) assert (next_row == 0);
      assert (!ends_reg || !decide);
      assert (push_reg == (end_enters_reg && !row_fresh_reg && !pick_reg));
      if (pop_reg)
        assert (end_fresh_reg && row_fresh_reg && (pick_reg || member == 0 || !live_reg));
      assert (!none_reg || member == 0);
      if (pick_reg) assert (can_reg && (end_enters_reg || end_fresh_reg || end_scans_reg));
      if (pick_reg && end_fresh_reg) assert (pop_reg);
      assert (all_cleared || (known == 0 && queued == 0 && idle_reg && !op_valid && !ends_reg));
      assert (all_cleared || (note_valid_reg == 0 && !begun_reg));
      assert (!op_valid || (cleared[op_slot_reg] && op_slot_reg <= slot_mask));
      assert (!ends_reg || (cleared[end_slot_reg] && end_slot_reg <= slot_mask));
      if (op_valid && decide)
        assert ({valid, row_gen, fresh, owed, sent} == rows[ROW*op_slot_reg+:ROW]);
      if (ends_reg)
        assert ({row_valid_reg, row_gen_reg, row_fresh_reg, row_owed_reg, row_sent_reg} ==
                rows[ROW*end_slot_reg+:ROW]);
      if (op_valid && decide && !recent[op_slot_reg]) assert (slot_gen_reg == gens[op_slot_reg]);
      if (op_valid && !decide) begin
        assert (!row_any && read_row == rows[ROW*op_slot_reg+:ROW]);
        if (!turned_0[op_slot_reg]) assert (read_gen == gens[op_slot_reg]);
      end

      // Slots that began are entered; a row is queued, or is right, or is void.
      for (i = 0; i < SLOTS; i = i + 1) begin
        assert (!known[i] || cleared[i]);
        assert (!exists[i] || known[i]);
        assert (!known[i] || i <= slot_mask);
        assert (!queued[i] || i <= slot_mask);
        assert (!enters[i] || (exists[i] && young[i]));
        assert (!(begun_reg && begun_slot_reg == i) || begun_0[i] || begun_1[i]);
        assert (!(op_enters_reg && op_slot_reg == i) || begun_1[i] || begun_2[i] || begun_3[i]);
        if (known[i] && !exists[i])
          assert (!rows[ROW*i+2*PORTS+2] || rows[ROW*i+2*PORTS+1] != gens[i]);
        if (cleared[i]) assert (rows[ROW*i+2*PORTS] == queued[i]);
        if (!cleared[i]) assert (!queued[i]);
        if (cleared[i] && !known[i]) assert (!rows[ROW*i+2*PORTS+2] && !queued[i]);
        if (exists[i])
          assert (enters[i] || (rows[ROW*i+2*PORTS+2] && rows[ROW*i+2*PORTS+1] == gens[i]));
      end
      if (begun_reg) assert (begun_gen_reg == gens[begun_slot_reg]);
      if (op_enters_reg) assert (op_gen_reg == gens[op_slot_reg]);
      if (end_enters_reg) assert (end_gen_reg == gens[end_slot_reg]);
      if (op_fresh_reg && !decide) assert (head_valid && head == op_slot_reg);
      if (op_fresh_reg && decide && fresh) assert (head_valid && head == op_slot_reg);
      if (end_fresh_reg && row_fresh_reg) assert (head_valid && head == end_slot_reg);

      // The queue of fresh results holds no slot twice. A result that is not queued is picked first
      // only when none is queued.
      assert (!push_reg || !queued[end_slot_reg]);
      assert (!pop_reg || (head_valid && head == end_slot_reg));
      assert (fresh_count_reg == queue_count && fresh_none_reg == (queue_count == 0));
      if (pick_reg && end_enters_reg) assert (queue_count == 0);

      // No note is lost. A note that is not void is for a slot with a result.
      assert (!owe || !stay[NOTES-1]);
      assert ((owe_was & owe_was >> 1) == 0);
      assert (owe_nearly_full || note_count <= 3);
      for (i = 0; i < 8; i = i + 1) begin
        came = 3;
        for (j = 0; j <= i; j = j + 1) came = came + owe_was[j];
        if (!full_was[i]) assert (note_count <= came);
      end
      for (i = 0; i < NOTES; i = i + 1) begin
        assert (i == 0 || !note_valid_reg[i] || note_valid_reg[i-1]);
        assert (!note_valid_reg[i] || note_slot_reg[SLOT_BITS*i+:SLOT_BITS] <= slot_mask);
        its_port = note_port_reg[PORTS*i+:PORTS];
        assert (!note_valid_reg[i] || (its_port & (its_port - 1'b1)) == 0);
        if (note_valid_reg[i] && !note_void_reg[i]) begin
          assert (exists[note_slot_reg[SLOT_BITS*i+:SLOT_BITS]]);
          assert (!enters[note_slot_reg[SLOT_BITS*i+:SLOT_BITS]]);
        end
      end
      assert (!op_notes_reg || (op_port_reg & (op_port_reg - 1'b1)) == 0);
      assert (!ends_note || (end_port_reg & (end_port_reg - 1'b1)) == 0);
      if (op_notes_reg && !recent[op_slot_reg]) assert (exists[op_slot_reg]);

      // Nothing owed is forgotten: it is queued as fresh, or in its row, or noted.
      if ((it_exists || ended) && unsent) assert (had == 0);
      if (it_exists && unsent) assert (enters[watched] || its_fresh);
      if (it_exists && !unsent) begin
        assert (!enters[watched] && !its_fresh);
        assert (due == (its_owed | noted) && had == its_row[0+:PORTS]);
      end

      // The scan comes to every slot that owes. Its pass begins at the oldest VID or from rest, and
      // serves no port that it passed over.
      assert (!op_scans_reg || (op_slot_reg == at_reg && !idle_reg && !end_scans_reg));
      assert (!end_scans_reg || (end_slot_reg == at_reg && !idle_reg));
      assert (idle_reg || (at_reg <= slot_mask && left_reg <= slot_mask));
      if (it_exists && !unsent && its_owed != 0)
        assert (its_end || (!idle_reg &&
            (seen_reg || to_come <= left_reg) && !(restarted_reg && unseen_reg)));
      if (ended_reg) assert (decide && wrote_reg == rows[ROW*ended_slot_reg+:ROW]);
      assert (!restarted_reg || (ended_reg && !idle_reg && !op_scans_reg));
      if (decide) assert (scan_may_reg == (!idle_reg && !op_scans_reg && !restarted_reg));
      if (restarted_reg) assert (at_reg == ((newest_was + 1'b1) & slot_mask));
      if (it_picks && end_scans_reg) assert ((pick_receivers & ~serves_reg) == 0);
      assert (idle_reg || (passed & serves_reg) == 0);
      if (pick_reg && end_scans_reg) assert ((pick_receivers & passed) == 0);
      assert (!found_reg || !idle_reg);

      // At rest, an operation follows another, and nothing is owed after two passes.
      assert (waits <= 8);
      if (passes != 0) assert (&serves_reg);
      if (it_exists && (passes == 2 || (passes == 1 && to_come > left_reg))) assert (its_owed == 0);
      if (it_exists && settled && idle_reg && !its_end) assert (its_owed == 0 && !unsent);

      // For three cycles after a slot turns over, its result can still be picked.
      if (!it_exists && ended) begin
        assert (its_fresh == unsent && !enters[watched]);
        if (!unsent) assert (((its_owed | noted) & ~due) == 0 && had == its_row[0+:PORTS]);
      end

      // A pick is owed, its receivers are ready, and it is a replay if one of them had it before.
      if (it_picks) assert (pick_receivers != 0 && (pick_receivers & ~ready_was) == 0);
      if (taken != 0) begin
        assert (it_exists || ended);
        assert ((pick_receivers & ~(unsent ? member_was : due)) == 0);
        assert (pick_replay == (!unsent && |(pick_receivers & had)));
      end

      cover (it_exists && had == {PORTS{1'b1}} && it_picks && pick_replay);
      cover (begins[watched] && its_fresh);
      cover (taken != 0 && owe && slot == watched);
      cover (it_picks && end_scans_reg && head_valid);
      cover (passes == 2);
      cover (it_picks && end_scans_reg && stayed_then);
    end
  end
`endif

endmodule

`default_nettype wire
