// Picks the next result of one job, and its receivers, for connections that take results in the order
// of their VIDs (driver/wire/ROCE.md, section 5). A connection is a port, slots are relative to the
// job's first one. The job's first VID is 0.
//
// A VID is kept as {gen, slot}, gen its slot's generation: 1 for VIDs 0 to 2 W - 1, then in turns, W
// the window. All VIDs below *front* have begun to be summed. Each port has a *next* VID, front or
// below. A port is *lost* if a slot turned over from its next VID, or from one above: nothing is
// released to it any more. For any other port, a slot holds a VID from next - 2 W to
// next + 2 W - 1, so gen tells which.
//
//   1. A port with next below front gets next, together with all ports of the same next.
//   2. A port with next = front, which has not contributed it, gets front + 1 once, if that is summed.
//      A contribution ends such a pick, two cycles or more before front can be summed.
//   3. A port that is owed a result below its next gets that (replay), one for each time it was owed.
//      Such debts are in a queue for each port. A queue has room for as many as slots; others are
//      dropped, as a lost packet is. A port gets its debts first. From next on, nothing is owed.
//
// A pick is for a *lead*, a port that can take a packet, by turns. These are its cycles:
//
//   A  with decide: the lead is chosen among the ports that are ready, or else starting
//   B  the lead's next is compared with that of all ports; the slot's gen is read. For a replay, the
//      debt is read instead, and its slot's gen two cycles later
//   C  with decide: with pick_ready, the pick is made for ports of ready. Without, it is tried again
//      two cycles later, as it is once, for up to four cycles, while a port of it is starting. So
//      ports in step share their picks. It ends if no port is ready, or the slot has turned over
//
// A pick is shown in the cycle after pick_ready, and is final. A slot may still turn over, and begin,
// while its pick is on its way; agg_egress cancels such a pick. Latency from rest: a result begun in
// cycle 0 is picked in cycle 3 or 4 and shown one cycle later; a port noted in cycle 0 is picked in
// cycle 7 or 8. Picks are four cycles apart or more, six after a replay. Front moves on by one VID a
// cycle, or by two in five cycles over VIDs that were summed before it.
//
// Not done here: sending (agg_egress), and headers of packets, whose VID is checked before a result
// leaves.

`default_nettype none

module agg_release #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // The job
    input wire flush,  // the job ends: nothing is released
    input wire clear,  // during flush: empties a row, for each of the job's slots
    input wire [SLOT_BITS-1:0] clear_slot,
    input wire [SLOT_BITS-1:0] slot_mask,  // 2 * window - 1
    input wire [PORTS-1:0] member,  // by port

    input wire                 begun,       // the slot is being summed
    input wire [SLOT_BITS-1:0] begun_slot,
    input wire                 begun_gen,   // of the slot

    // From agg_slots: the effect of a packet on its slot; not in consecutive cycles
    input wire [SLOT_BITS-1:0] slot,
    input wire                 gen,          // of the slot, from now on
    input wire                 turn_over,    // the slot takes its next VID
    input wire                 store,        // data is stored
    input wire [    PORTS-1:0] store_ports,  // that have contributed, with this one
    input wire                 owe,          // a port repeats a result's contribution
    input wire [    PORTS-1:0] port,         // that port, one-hot
    input wire [PORT_BITS-1:0] port_index,   // the same

    input wire             decide,   // in every second cycle: picks start and end
    input wire [PORTS-1:0] ready,    // in a cycle with decide: ports that can take a packet
    input wire [PORTS-1:0] starting, // likewise: that may be ready four cycles later

    output wire                 pick_wants,      // a result could be picked
    input  wire                 pick_ready,      // in a cycle with decide: pick
    output wire                 pick_valid,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay,     // of rule 3
    output wire                 released_early   // with pick_valid: of rule 2; one receiver
);

  localparam integer VID = SLOT_BITS + 1;  // {gen, slot}
  localparam [VID-1:0] FIRST = {1'b1, {SLOT_BITS{1'b0}}};
  localparam [SLOT_BITS-1:0] ONE = 1;

  // The next VID
  function automatic [VID-1:0] after(input reg [VID-1:0] vid, input reg [SLOT_BITS-1:0] mask);
    after = vid[SLOT_BITS-1:0] == mask ? {!vid[SLOT_BITS], {SLOT_BITS{1'b0}}} :
        {vid[SLOT_BITS], vid[SLOT_BITS-1:0] + ONE};
  endfunction

  reg clear_reg;
  reg [SLOT_BITS-1:0] clear_slot_reg;

  always @(posedge clk) begin
    clear_reg      <= clear && flush;
    clear_slot_reg <= clear_slot;
  end

  // -- Front --------------------------------------------------------------------------------------

  reg [VID-1:0] front_reg, second_reg;  // second: the VID after front
  reg first_summed_reg, second_summed_reg;  // front is summed: it moves on; second is
  reg phase_reg;  // the memory of sums is read for front and second in turns
  reg asked_first_reg, asked_second_reg;  // what was read in the last cycle
  wire sum_gen;  // gen of the slot's last sum
  wire [VID-1:0] begun_vid = {begun_gen, begun_slot};

  wire moves = first_summed_reg;
  wire first_summed = (begun && begun_vid == front_reg) ||
      (asked_first_reg && sum_gen == front_reg[SLOT_BITS]);
  wire second_summed = (begun && begun_vid == second_reg) ||
      (asked_second_reg && sum_gen == second_reg[SLOT_BITS]);
  wire [VID-1:0] front_next = moves ? second_reg : front_reg;

  agg_ram #(
      .WIDTH    (1),
      .ADDR_BITS(SLOT_BITS)
  ) u_sums (
      .clk    (clk),
      .wr_en  (clear_reg || (begun && !flush)),
      .wr_addr(clear_reg ? clear_slot_reg : begun_slot),
      .wr_data(begun_gen && !clear_reg),
      .rd_en  (1'b1),
      .rd_addr(phase_reg ? second_reg[SLOT_BITS-1:0] : front_reg[SLOT_BITS-1:0]),
      .rd_data(sum_gen)
  );

  always @(posedge clk) begin
    phase_reg         <= !phase_reg;
    asked_first_reg   <= !phase_reg && !moves;
    asked_second_reg  <= phase_reg && !moves;
    front_reg         <= front_next;
    second_reg        <= moves ? after(second_reg, slot_mask) : second_reg;
    first_summed_reg  <= moves ? second_summed_reg || second_summed : first_summed;
    second_summed_reg <= !moves && (second_summed_reg || second_summed);
    if (rst || flush) begin
      asked_first_reg   <= 1'b0;
      asked_second_reg  <= 1'b0;
      front_reg         <= FIRST;
      second_reg        <= FIRST | {{SLOT_BITS{1'b0}}, 1'b1};
      first_summed_reg  <= 1'b0;
      second_summed_reg <= 1'b0;
    end
    if (rst) phase_reg <= 1'b0;
  end

  // -- Ports that have contributed front ----------------------------------------------------------

  reg asked_row_reg;
  reg [PORTS-1:0] contributed_reg;  // right from the third cycle after front moved on
  wire row_gen;
  wire [PORTS-1:0] row_ports;
  wire stores_front = store && {gen, slot} == front_reg;
  wire row_is_front = asked_row_reg && row_gen == front_reg[SLOT_BITS];

  agg_ram #(
      .WIDTH    (PORTS + 1),
      .ADDR_BITS(SLOT_BITS),
      .APART    (1)
  ) u_rows (
      .clk    (clk),
      .wr_en  (clear_reg || store),
      .wr_addr(clear_reg ? clear_slot_reg : slot),
      .wr_data(clear_reg ? {PORTS + 1{1'b0}} : {gen, store_ports}),
      .rd_en  (1'b1),
      .rd_addr(front_reg[SLOT_BITS-1:0]),
      .rd_data({row_gen, row_ports})
  );

  always @(posedge clk) begin
    asked_row_reg <= !moves && !(store && slot == front_reg[SLOT_BITS-1:0]);
    if (moves) contributed_reg <= {PORTS{1'b0}};
    else
      contributed_reg <= contributed_reg | (stores_front ? store_ports : {PORTS{1'b0}}) |
          (row_is_front ? row_ports : {PORTS{1'b0}});
    if (rst || flush) begin
      asked_row_reg   <= 1'b0;
      contributed_reg <= {PORTS{1'b0}};
    end
  end

  // -- What is owed again -------------------------------------------------------------------------

  reg owe_reg;
  reg [VID-1:0] owed_reg;
  reg [PORTS-1:0] owed_port_reg;
  reg [PORT_BITS-1:0] owed_index_reg;

  reg [VID*PORTS-1:0] wr_reg, rd_reg;  // places in the ports' queues
  reg [PORTS-1:0] noted_reg;  // the port's queue has a debt
  reg [VID-1:0] owed_wr, owed_rd;  // of the port that is owed a result
  wire pops;

  reg [VID*PORTS-1:0] next_reg;
  reg [PORTS-1:0] lost_reg;
  reg [VID-1:0] owed_next;  // its next VID
  integer n;

  always @* begin
    owed_next = {VID{1'b0}};
    owed_wr   = {VID{1'b0}};
    owed_rd   = {VID{1'b0}};
    for (n = 0; n < PORTS; n = n + 1) begin
      if (owed_port_reg[n]) begin
        owed_next = owed_next | next_reg[VID*n+:VID];
        owed_wr   = owed_wr | wr_reg[VID*n+:VID];
        owed_rd   = owed_rd | rd_reg[VID*n+:VID];
      end
    end
  end

  // The slot still holds the VID, so that is at most 2 W below next.
  wire [SLOT_BITS-1:0] owed_slot = owed_reg[SLOT_BITS-1:0];
  wire below = owed_next[SLOT_BITS] == owed_reg[SLOT_BITS] ?
      owed_next[SLOT_BITS-1:0] > owed_slot : owed_next[SLOT_BITS-1:0] <= owed_slot;
  wire full = owed_wr == (owed_rd ^ {1'b1, {SLOT_BITS{1'b0}}});
  wire notes = owe_reg && below && !full;

  reg [PORTS-1:0] lead_reg;
  reg [PORT_BITS-1:0] lead_index;
  reg [VID-1:0] lead_rd;
  wire [VID-1:0] debt;

  agg_ram #(
      .WIDTH    (VID),
      .ADDR_BITS(PORT_BITS + SLOT_BITS),
      .APART    (1)
  ) u_debts (
      .clk    (clk),
      .wr_en  (notes),
      .wr_addr({owed_index_reg, owed_wr[SLOT_BITS-1:0]}),
      .wr_data(owed_reg),
      .rd_en  (!decide),
      .rd_addr({lead_index, lead_rd[SLOT_BITS-1:0]}),
      .rd_data(debt)
  );

  integer q;

  always @(posedge clk) begin
    owe_reg        <= owe && !rst && !flush;
    owed_reg       <= {gen, slot};
    owed_port_reg  <= port;
    owed_index_reg <= port_index;
    for (q = 0; q < PORTS; q = q + 1) begin
      noted_reg[q] <= wr_reg[VID*q+:VID] != rd_reg[VID*q+:VID] && !lost_reg[q];
      if (notes && owed_port_reg[q]) wr_reg[VID*q+:VID] <= owed_wr + {{SLOT_BITS{1'b0}}, 1'b1};
      if (pops && lead_reg[q]) rd_reg[VID*q+:VID] <= lead_rd + {{SLOT_BITS{1'b0}}, 1'b1};
    end
    if (rst || flush) begin
      noted_reg <= {PORTS{1'b0}};
      wr_reg    <= {VID * PORTS{1'b0}};
      rd_reg    <= {VID * PORTS{1'b0}};
    end
  end

  // -- A: the lead --------------------------------------------------------------------------------

  reg [PORTS-1:0] above_reg;  // ports above the last lead
  reg [PORTS-1:0] at_front_reg, behind_reg;  // next is front, or below
  reg [PORTS-1:0] jumped_reg;  // second was released to the port

  reg op_reg, op_first_reg, op_fetch_reg;  // a pick; in its cycle B; its debt is not read yet
  reg op_early_reg, op_replay_reg;
  reg [VID-1:0] op_vid_reg;
  reg [PORTS-1:0] match_reg;  // ports that it is for

  wire [PORTS-1:0] may = member & ~lost_reg & ~noted_reg;
  wire [PORTS-1:0] in_turn = may & (behind_reg | (first_summed_reg ? at_front_reg : {PORTS{1'b0}}));
  wire jump = !first_summed_reg && second_summed_reg;  // two cycles after front moved on, or later
  wire [PORTS-1:0] early =
      jump ? may & at_front_reg & ~contributed_reg & ~jumped_reg : {PORTS{1'b0}};
  wire [PORTS-1:0] can_now = (noted_reg | in_turn | early) & ready;
  wire [PORTS-1:0] can = |can_now ? can_now : (noted_reg | in_turn | early) & starting;
  wire [PORTS-1:0] ahead = can & above_reg;
  wire [PORTS-1:0] among = |ahead ? ahead : can;
  wire [PORTS-1:0] lead = among & (~among + 1'b1);

  // -- B: its VID ---------------------------------------------------------------------------------

  reg [VID-1:0] lead_next;
  reg [PORTS-1:0] same_next;
  integer m;

  always @* begin
    lead_next  = {VID{1'b0}};
    lead_rd    = {VID{1'b0}};
    lead_index = {PORT_BITS{1'b0}};
    for (m = 0; m < PORTS; m = m + 1) begin
      if (lead_reg[m]) begin
        lead_next  = lead_next | next_reg[VID*m+:VID];
        lead_rd    = lead_rd | rd_reg[VID*m+:VID];
        lead_index = lead_index | m[PORT_BITS-1:0];
      end
    end
    for (m = 0; m < PORTS; m = m + 1) same_next[m] = next_reg[VID*m+:VID] == lead_next;
  end

  wire [VID-1:0] first_vid = op_early_reg ? second_reg : lead_next;
  wire slot_gen;

  agg_ram #(
      .WIDTH    (1),
      .ADDR_BITS(SLOT_BITS)
  ) u_gens (
      .clk    (clk),
      .wr_en  (clear_reg || turn_over),
      .wr_addr(clear_reg ? clear_slot_reg : slot),
      .wr_data(gen && !clear_reg),
      .rd_en  (!decide),
      .rd_addr(op_first_reg ? first_vid[SLOT_BITS-1:0] : op_vid_reg[SLOT_BITS-1:0]),
      .rd_data(slot_gen)
  );

  // -- C: the pick --------------------------------------------------------------------------------

  reg pick_reg;
  reg [PORTS-1:0] receivers_reg;
  reg [1:0] stay_reg;  // how often the pick may wait for a port that is starting

  wire live = slot_gen == op_vid_reg[SLOT_BITS];  // the slot has not turned over
  wire [PORTS-1:0] not_now = lost_reg | (op_early_reg ? contributed_reg : {PORTS{1'b0}}) |
      (op_replay_reg ? {PORTS{1'b0}} : noted_reg);
  wire [PORTS-1:0] receivers = match_reg & ready & ~not_now;
  wire decides = decide && op_reg && !op_fetch_reg;
  wire stays = live && stay_reg != 2'd0 && |(match_reg & starting & ~not_now);
  wire picks = decides && live && !stays && |receivers && pick_ready;
  wire ends = decides && !stays && !(live && |receivers && !pick_ready);
  wire is_void = decides && !live;
  wire [PORTS-1:0] released = picks && !op_early_reg && !op_replay_reg ? receivers : {PORTS{1'b0}};
  wire [VID-1:0] vid_after = after(op_vid_reg, slot_mask);

  // A slot turned over from a VID in the last cycle: ports whose next is not above it are lost. The
  // VID is at most 2 W below next, and less than 2 W above.
  reg turned_reg;
  reg [VID-1:0] turned_vid_reg;
  reg [PORTS-1:0] loses;
  integer l;

  always @* begin
    for (l = 0; l < PORTS; l = l + 1)
    loses[l] = next_reg[VID*l+SLOT_BITS] == turned_vid_reg[SLOT_BITS] ?
        next_reg[VID*l+:SLOT_BITS] <= turned_vid_reg[SLOT_BITS-1:0] :
        next_reg[VID*l+:SLOT_BITS] > turned_vid_reg[SLOT_BITS-1:0];
  end

  assign pops = op_replay_reg && (picks || is_void);

  integer p;

  always @(posedge clk) begin
    pick_reg      <= picks;
    receivers_reg <= receivers;
    op_first_reg  <= 1'b0;
    if (decide && !op_reg) begin
      op_reg        <= |can;
      op_first_reg  <= |can;
      op_fetch_reg  <= |(lead & noted_reg);
      op_replay_reg <= |(lead & noted_reg);
      op_early_reg  <= |(lead & early);
      lead_reg      <= lead;
    end
    if (op_first_reg) begin
      op_vid_reg <= first_vid;
      match_reg  <= op_early_reg || op_replay_reg ? lead_reg : in_turn & same_next;
    end
    if (decide && op_reg && op_fetch_reg) begin
      op_vid_reg   <= debt;
      op_fetch_reg <= 1'b0;
    end
    if (op_first_reg) stay_reg <= 2'd2;
    else if (decides && stays) stay_reg <= stay_reg - 2'd1;
    if (ends) above_reg <= ~(lead_reg | (lead_reg - 1'b1));
    if (ends) op_reg <= 1'b0;

    for (p = 0; p < PORTS; p = p + 1) begin
      at_front_reg[p] <= next_reg[VID*p+:VID] == front_next;
      behind_reg[p]   <= next_reg[VID*p+:VID] != front_next;
      if (released[p]) next_reg[VID*p+:VID] <= vid_after;
    end
    turned_reg     <= turn_over;
    turned_vid_reg <= {!gen, slot};
    if (turned_reg) lost_reg <= lost_reg | loses;
    jumped_reg <= (jumped_reg & ~released) | (op_early_reg && picks ? match_reg : {PORTS{1'b0}});

    if (rst || flush) begin
      pick_reg     <= 1'b0;
      op_reg       <= 1'b0;
      op_first_reg <= 1'b0;
      at_front_reg <= {PORTS{1'b1}};
      behind_reg   <= {PORTS{1'b0}};
      next_reg     <= {PORTS{FIRST}};
      turned_reg   <= 1'b0;
      lost_reg     <= {PORTS{1'b0}};
      jumped_reg   <= {PORTS{1'b0}};
    end
    if (rst) above_reg <= {PORTS{1'b1}};
  end

  // -----------------------------------------------------------------------------------------------

  assign pick_wants     = op_reg;
  assign pick_valid     = pick_reg;
  assign pick_slot      = op_vid_reg[SLOT_BITS-1:0];
  assign pick_receivers = receivers_reg;
  assign pick_replay    = op_replay_reg;
  assign released_early = pick_reg && op_early_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // One job, from its reset on. VIDs do not wrap in the steps that are proved.
  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam integer VIDS = 16;
  reg was_reset = 1'b0;
  reg [SLOTS-1:0] cleared = {SLOTS{1'b0}};
  reg settled = 1'b0;  // all of them are
  reg runs = 1'b0;
  reg decide_was, event_was, begun_was;
  reg [SLOT_BITS-1:0] mask_was;
  reg [PORTS-1:0] member_was, ready_was;

  reg [SLOTS-1:0] held;  // the slot has a VID
  reg [4*SLOTS-1:0] vids;  // that VID
  reg [PORTS*SLOTS-1:0] rows;  // ports that have contributed
  reg [2*SLOTS-1:0] ages, turns;  // cycles since its last contribution and turnover, up to 3
  reg [VIDS-1:0] sums, sums_were;  // VIDs that began to be summed; when the pick was decided
  wire [3:0] slot_vid = vids[4*slot+:4];
  wire [3:0] first_of_slot = {{4 - SLOT_BITS{1'b0}}, slot};
  wire [3:0] vid = !held[slot] ? first_of_slot : turn_over ? slot_vid + slot_mask + 4'd1 : slot_vid;
  wire [PORTS-1:0] row = turn_over ? {PORTS{1'b0}} : rows[PORTS*slot+:PORTS];
  wire [3:0] begun_vid_f = vids[4*begun_slot+:4];

  // For any port: its next VID, and what it is owed.
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg [3:0] its_next;
  reg its_jump;  // next + 1 was released to it
  reg its_loss, its_loss_was;  // a slot turned over from next, or from a VID above
  reg [VIDS-1:0] its_vids, its_vids_were;  // that it contributed; when the pick was decided
  reg [4*SLOTS-1:0] its_debts;  // of each slot's VID
  reg owed_was, turned_was;
  reg [3:0] owed_vid, turned_vid;
  wire gets = pick_valid && pick_receivers[watched];
  wire gets_next = gets && !pick_replay && !released_early;
  wire gets_again = gets && pick_replay;
  wire [3:0] its_second = its_next + 4'd1;
  wire [3:0] its_next_now = gets_next ? its_second : its_next;
  wire owes = owed_was && owed_vid < its_next_now;
  wire [SLOT_BITS-1:0] owes_slot = owed_vid[SLOT_BITS-1:0] & slot_mask;
  wire [3:0] picked_vid = vids[4*pick_slot+:4];
  wire lately = turns[2*pick_slot+:2] < 2'd2;  // turned over after the decision, or just before
  integer f;

  always @(posedge clk) begin
    was_reset <= 1'b1;
    decide_was <= decide;
    event_was <= store || owe;
    begun_was <= begun;
    mask_was <= slot_mask;
    member_was <= member;
    ready_was <= ready;
    sums_were <= sums;
    its_vids_were <= its_vids;
    its_loss_was <= its_loss;
    if (clear && flush) cleared[clear_slot] <= 1'b1;
    settled <= &cleared;
    if (!flush) runs <= 1'b1;
    owed_was   <= owe && port[watched];
    owed_vid   <= vid;
    turned_was <= turn_over && held[slot];
    turned_vid <= slot_vid;
    for (f = 0; f < SLOTS; f = f + 1) begin
      if (ages[2*f+:2] != 2'd3) ages[2*f+:2] <= ages[2*f+:2] + 2'd1;
      if (turns[2*f+:2] != 2'd3) turns[2*f+:2] <= turns[2*f+:2] + 2'd1;
      its_debts[4*f+:4] <= turn_over && slot == f ? 4'd0 :
          its_debts[4*f+:4] + (owes && owes_slot == f) - (gets_again && pick_slot == f && !lately);
    end
    if (store) begin
      held[slot] <= 1'b1;
      vids[4*slot+:4] <= vid;
      rows[PORTS*slot+:PORTS] <= row | port;
      ages[2*slot+:2] <= 2'd0;
      if (turn_over) turns[2*slot+:2] <= 2'd0;
      if (port[watched]) its_vids[vid] <= 1'b1;
    end
    if (begun) sums[begun_vid_f] <= 1'b1;
    its_next <= its_next_now;
    its_jump <= (its_jump && !gets_next) || (gets && released_early);
    its_loss <= its_loss || (turned_was && turned_vid >= its_next_now);
    if (rst) begin
      held <= {SLOTS{1'b0}};
      vids <= {4 * SLOTS{1'b0}};
      rows <= {PORTS * SLOTS{1'b0}};
      ages <= {2 * SLOTS{1'b1}};
      turns <= {2 * SLOTS{1'b1}};
      sums <= {VIDS{1'b0}};
      its_next <= 4'd0;
      its_jump <= 1'b0;
      its_loss <= 1'b0;
      its_vids <= {VIDS{1'b0}};
      its_debts <= {4 * SLOTS{1'b0}};
      owed_was <= 1'b0;
      turned_was <= 1'b0;
    end
  end

  always @* begin
    assume (rst == !was_reset);
    assume (watched < PORTS);
    if (!was_reset) assume (flush);
    if (was_reset) begin
      `PROMISED(decide == !decide_was);  // agg_egress
      `PROMISED(!pick_ready || decide);
      `PROMISED((ready & starting) == {PORTS{1'b0}});
      // agg_jobs: the job's slots are cleared before it runs.
      `PROMISED(slot_mask != 0 && (slot_mask & (slot_mask + 1'b1)) == 0 && slot_mask == mask_was);
      `PROMISED(member == member_was && member != {PORTS{1'b0}});
      `PROMISED(flush == !settled && (!runs || !flush) && !(clear && &cleared));
      `PROMISED(!flush || !(store || owe || begun || turn_over));
      // agg_slots: a contribution once; a slot turns over when it is summed; a sum is owed.
      `PROMISED(!(store && owe) && (!turn_over || store) && !((store || owe) && event_was));
      `PROMISED(!(store || owe) || (slot <= slot_mask && port == 1 << port_index));
      `PROMISED(!(store || owe) || ((port & member) != 0 && (port & (port - 1'b1)) == 0));
      `PROMISED(
          !store || (turn_over == (!held[slot] || (rows[PORTS*slot+:PORTS] == member &&
          sums[slot_vid])) && store_ports == (row | port) && (row & port) == {PORTS{1'b0}}));
      `PROMISED(!(store || owe) || gen == !(|(vid & (slot_mask + 4'd1))));
      `PROMISED(!owe || (held[slot] && sums[vid]));
      // agg_reader: a slot begins when it is complete.
      `PROMISED(
          !begun || (begun_slot <= slot_mask && held[begun_slot] && !sums[begun_vid_f] &&
          !begun_was && rows[PORTS*begun_slot+:PORTS] == member && ages[2*begun_slot+:2] != 2'd0));
      `PROMISED(!begun || begun_gen == !(|(begun_vid_f & (slot_mask + 4'd1))));
    end
    if (was_reset && !rst && pick_valid) begin
      assert (pick_receivers != 0 && (pick_receivers & ~(ready_was & member)) == {PORTS{1'b0}});
      assert (!(released_early && pick_replay));
      if (released_early || pick_replay) assert ((pick_receivers & (pick_receivers - 1'b1)) == 0);
    end
    if (was_reset && !rst && gets) begin
      assert (!its_loss_was);
      // In order, each once, and only what is summed, and is in its slot.
      if (gets_next) begin
        assert (pick_slot == (its_next[SLOT_BITS-1:0] & slot_mask) && sums_were[its_next]);
        assert (picked_vid == its_next || lately);
      end
      // Out of order only the one after a missing one, once, and not if the port contributed that.
      if (released_early) begin
        assert (pick_slot == (its_second[SLOT_BITS-1:0] & slot_mask) && sums_were[its_second]);
        assert (picked_vid == its_second || lately);
        assert (!sums_were[its_next] && !its_vids_were[its_next] && !its_jump);
      end
      // A replay is of what was released, once for each time that it was owed.
      if (pick_replay)
        assert ((picked_vid < its_next && its_debts[4*pick_slot+:4] != 4'd0) || lately);
`ifdef RELEASED
      cover (gets_next && its_next == 1 && pick_receivers == {PORTS{1'b1}});
      cover (pick_replay);
`else
      cover (released_early);
`endif
    end
  end

`ifdef RELEASED
  // Later steps: VID 0 is the first one, and is summed as early as it can be.
  reg [3:0] step = 4'd0;
  always @(posedge clk) step <= step + {3'd0, step != 4'd8};
  always @* begin
    assume (member == {PORTS{1'b1}});
    if (step < 4'd7) begin
      assume (store == (step == 4'd3 || step == 4'd5) && !owe && !begun);
      assume (!store || slot == {SLOT_BITS{1'b0}});
    end
    if (step == 4'd7) assume (begun);
  end
`endif
`endif

endmodule

`default_nettype wire
