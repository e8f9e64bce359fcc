// Tracks, for one job, which ports are owed which slot's result, and picks the next result to send
// and its receivers. Members are identified by port, slots relative to the job's first one.
//
// A result is owed to all members once its slot begins to be summed. It is first sent in the order
// of these beginnings, to the members that are ready (*fresh*). A scan finds results still owed to
// members that were not ready or that repeat; what it finds precedes fresh results. A pass of the
// scan starts at the oldest VID, or from rest at the first slot that owes, and only serves ports
// that were ready at its start, so a port that was held up gets its oldest result first. Until then
// the port may also be sent fresh results. The scan rests while no slot owes.
//
// A slot's row is in a RAM. One operation takes two cycles and follows another without a pause: it
// starts in a cycle with decide and is decided in the next one; its row is written one cycle later. In the order of precedence, an operation
// enters a slot that began, notes a packet's port as owed, or looks at the head of the fresh results
// or at the scan's slot. The last three take turns. The scan takes every second turn at most.
//
// A pick is made in a cycle with decide and pick_ready, for ports of ready, and is shown in the next
// cycle. It is final: its receivers are no longer owed. A slot may still turn over, and begin, while
// its pick is on its way; agg_egress cancels such a pick. Latency: a result begun in cycle 0 is
// picked in cycle 3 or 4 and shown one cycle later. A port noted in cycle 0 is picked in cycle 7 to
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

    input wire             decide,  // in every second cycle: operations start and end
    input wire [PORTS-1:0] ready,   // in a cycle with decide: ports that can take a packet

    output wire                 pick_wants,      // a result could be picked
    input  wire                 pick_ready,      // in a cycle with decide: pick
    output wire                 pick_valid,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay      // a receiver was sent it before
);

  localparam integer NOTES = 8;  // room for ports to note as owed
  localparam integer ROW = 2 * PORTS + 3;

  // -- Slots that began, and ports to note --------------------------------------------------------

  reg begun_reg;  // a slot waits to be entered
  reg [SLOT_BITS-1:0] begun_slot_reg;
  reg begun_gen_reg;

  reg [NOTES-1:0] note_valid_reg;  // the oldest is note 0
  reg [NOTES-1:0] note_void_reg;  // the slot has turned over since
  reg [SLOT_BITS*NOTES-1:0] note_slot_reg;
  reg [PORTS*NOTES-1:0] note_port_reg;
  reg nearly_full_reg;

  wire takes_begun, takes_note, takes_fresh, takes_scan;

  // Notes move up when note 0 leaves. A new one takes the first free place.
  wire [NOTES-1:0] stay = takes_note ? note_valid_reg >> 1 : note_valid_reg;
  wire [NOTES-1:0] adds = owe ? ~stay & {stay[NOTES-2:0], 1'b1} : {NOTES{1'b0}};
  reg  [NOTES-1:0] voids;
  integer m, n;

  always @* begin
    for (n = 0; n < NOTES; n = n + 1)
    voids[n] = note_void_reg[n] || (turn_over && slot == note_slot_reg[SLOT_BITS*n+:SLOT_BITS]);
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
    note_void_reg   <= (takes_note ? voids >> 1 : voids) & ~adds;
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
  wire head_valid;
  wire [SLOT_BITS-1:0] head;
  reg push_reg, pop_reg;
  reg [SLOT_BITS-1:0] end_slot_reg;

  agg_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_fresh (
      .clk       (clk),
      .clear     (rst || flush),
      .push      (push_reg),
      .push_slot (end_slot_reg),
      .head_valid(head_valid),
      .head_slot (head),
      .pop       (pop_reg)
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
  reg [SLOT_BITS-1:0] at_reg;  // the scan's slot

  wire others = head_valid || !idle_reg;
  wire scan_may = !idle_reg && !op_scans_reg;
  wire fresh_may = head_valid && !found_reg;

  assign takes_begun = decide && begun_reg;
  assign takes_note  = decide && !begun_reg && note_valid_reg[0] && !(noted_reg && others);
  wire takes_other = decide && !begun_reg && !(note_valid_reg[0] && !(noted_reg && others));
  assign takes_scan  = takes_other && scan_may && !(fresh_may && scanned_reg);
  assign takes_fresh = takes_other && fresh_may && !(scan_may && !scanned_reg);

  wire [SLOT_BITS-1:0] next_slot = takes_begun ? begun_slot_reg :
      takes_note ? note_slot_reg[SLOT_BITS-1:0] : takes_scan ? at_reg : head;

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
    if (rst || flush) begin
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

  reg same_reg;  // the operation is on the slot of the one before, whose row is being written
  reg clear_reg;
  reg [SLOT_BITS-1:0] clear_slot_reg;
  reg ends_reg;  // an operation was decided in the last cycle
  wire [ROW-1:0] next_row;
  wire [ROW-1:0] ram_row;
  wire ram_gen;

  agg_ram #(
      .WIDTH    (ROW),
      .ADDR_BITS(SLOT_BITS)
  ) u_rows (
      .clk    (clk),
      .wr_en  (clear_reg || ends_reg),
      .wr_addr(clear_reg ? clear_slot_reg : end_slot_reg),
      .wr_data(clear_reg ? {ROW{1'b0}} : next_row),
      .rd_en  (decide),
      .rd_addr(next_slot),
      .rd_data(ram_row)
  );

  // Generations of slots: a row whose generation is not its slot's is void.
  agg_ram #(
      .WIDTH    (1),
      .ADDR_BITS(SLOT_BITS)
  ) u_gens (
      .clk    (clk),
      .wr_en  (turn_over),
      .wr_addr(slot),
      .wr_data(gen),
      .rd_en  (decide),
      .rd_addr(next_slot),
      .rd_data(ram_gen)
  );

  reg row_valid_reg, row_gen_reg, row_fresh_reg;  // fresh: queued, and owed to all members
  reg [PORTS-1:0] row_owed_reg, row_sent_reg;  // of a slot that is not queued
  reg slot_gen_reg;
  reg [PORTS-1:0] serves_reg;  // ports that were ready when the scan's pass started

  always @(posedge clk) begin
    if (!decide) begin
      {row_valid_reg, row_gen_reg, row_fresh_reg, row_owed_reg, row_sent_reg} <=
          same_reg ? next_row : ram_row;
      slot_gen_reg <= ram_gen;
    end
    same_reg       <= op_slot_reg == next_slot &&
        (op_enters_reg || op_notes_reg || op_fresh_reg || op_scans_reg);
    clear_reg <= clear && flush;
    clear_slot_reg <= clear_slot;
  end

  // -- Decision -----------------------------------------------------------------------------------

  reg none_reg;  // the job has no members

  wire [PORTS-1:0] serves = row_owed_reg & serves_reg;
  wire live = row_valid_reg && row_gen_reg == slot_gen_reg;
  wire can_fresh = !found_reg && |(member & ready) &&
      ((op_fresh_reg && row_fresh_reg && live) ||
       (op_enters_reg && !row_fresh_reg && fresh_none_reg));
  wire can_scan = op_scans_reg && live && !row_fresh_reg && |(serves & ready);

  reg end_enters_reg, end_notes_reg, end_fresh_reg, end_scans_reg;
  reg [PORTS-1:0] end_port_reg;
  reg end_gen_reg;
  reg can_reg;  // a pick was possible
  reg pick_reg, replay_reg;
  reg [PORTS-1:0] ready_reg;
  reg [PORTS-1:0] receivers_reg;

  always @(posedge clk) begin
    ends_reg <= decide && (op_enters_reg || op_notes_reg || op_fresh_reg || op_scans_reg);
    end_enters_reg <= decide && op_enters_reg;
    end_notes_reg <= decide && op_notes_reg;
    end_fresh_reg <= decide && op_fresh_reg;
    end_scans_reg <= decide && op_scans_reg;
    end_slot_reg <= op_slot_reg;
    end_port_reg <= op_port_reg;
    end_gen_reg <= op_gen_reg;
    can_reg <= can_fresh || can_scan;
    pick_reg <= decide && pick_ready && (can_fresh || can_scan);
    push_reg <= decide && op_enters_reg && !row_fresh_reg && !(pick_ready && can_fresh);
    pop_reg <= decide && op_fresh_reg && row_fresh_reg &&
        ((pick_ready && can_fresh) || !live || none_reg);
    ready_reg <= ready;
    receivers_reg <= (op_scans_reg ? serves : member) & ready;
    replay_reg <= op_scans_reg && |(serves & row_sent_reg & ready);
    if (rst || flush) begin
      ends_reg       <= 1'b0;
      end_enters_reg <= 1'b0;
      end_notes_reg  <= 1'b0;
      end_fresh_reg  <= 1'b0;
      end_scans_reg  <= 1'b0;
      push_reg       <= 1'b0;
      pop_reg        <= 1'b0;
      pick_reg       <= 1'b0;
    end
  end

  // -- End of an operation: the row, and what it owes afterwards ----------------------------------

  wire head_ends = end_fresh_reg && row_fresh_reg;
  wire first = end_enters_reg || head_ends;  // nobody was sent the result
  wire notes = end_notes_reg && live && !row_fresh_reg;
  wire [PORTS-1:0] served = pick_reg ? receivers_reg : {PORTS{1'b0}};
  wire [PORTS-1:0] next_owed = ((first ? member : row_owed_reg) & ~served) |
      (notes ? end_port_reg : {PORTS{1'b0}});
  wire [PORTS-1:0] next_sent = (first ? {PORTS{1'b0}} : row_sent_reg) | served;
  wire owes = |next_owed && (first ? pick_reg : live && !row_fresh_reg);

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

  wire moves = end_scans_reg && (pick_reg || !can_reg);
  wire pass_ends = left_reg == {SLOT_BITS{1'b0}};
  wire wakes = idle_reg && ends_reg && owes;
  wire restarts = moves && pass_ends;

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
    if (ends_reg && owes) seen_reg <= 1'b1;
    if (restarts) begin
      idle_reg <= !seen_reg && !owes;
      at_reg   <= (newest_reg + 1'b1) & slot_mask;
    end
    if (wakes) begin
      idle_reg <= 1'b0;
      at_reg   <= end_slot_reg;
    end
    if (wakes || restarts) begin
      left_reg   <= slot_mask;
      serves_reg <= ready_reg;
      seen_reg   <= 1'b0;
    end

    if (rst || flush) begin
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

endmodule

`default_nettype wire
