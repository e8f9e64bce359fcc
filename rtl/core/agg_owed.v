// Tracks, for one job, which ports are owed which slot's result, and picks the next result to send
// and its receivers. Members are identified by port, slots relative to the job's first one.
//
// A result whose first sum is written is owed to all members. It is first sent in the order of
// reduction, to the members that are ready (*fresh*). A scan, one slot a cycle, finds results still
// owed to members that were not ready or that repeat; what it finds precedes fresh results. A pass
// of the scan starts at the oldest VID and only serves ports that were ready at its start, so a
// port that was held up gets its oldest result first. Until then the port may also be sent fresh
// results.
//
// The pick is combinational and may change until taken; pick_take clears the receivers' owed bits
// and marks them as sent. Latency: a result begun in cycle 0 can be picked in cycle 1. Not done
// here: sending (agg_egress).

`default_nettype none

module agg_owed #(
    parameter integer PORTS     = 4,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // The job
    input wire                 flush,      // the job ends: nothing is owed
    input wire [SLOT_BITS-1:0] slot_mask,  // 2 * window - 1
    input wire [    PORTS-1:0] member,     // by port

    input wire                 begun,      // the slot's first sum is written
    input wire [SLOT_BITS-1:0] begun_slot,

    // From agg_slots: the effect of a packet on its slot
    input wire [SLOT_BITS-1:0] slot,
    input wire                 turn_over,  // drops what was owed for the slot
    input wire                 owe,        // a port is owed the result, perhaps again
    input wire [    PORTS-1:0] port,       // that port, one-hot

    input wire [PORTS-1:0] ready,  // ports that can take a packet

    output wire                 pick_valid,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay,     // a receiver was sent it before
    input  wire                 pick_take
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [PORTS-1:0] owed[0:SLOTS-1];
  reg [PORTS-1:0] sent[0:SLOTS-1];
  reg [SLOTS-1:0] live_reg;  // a result exists; otherwise the slot's row is void
  reg [SLOTS-1:0] fresh_reg;  // the slot is in the queue of fresh results
  reg [SLOTS-1:0] scan_reg;  // the scan has to visit the slot

  // -- Fresh results ------------------------------------------------------------------------------

  wire head_valid;
  wire [SLOT_BITS-1:0] head;
  wire [PORTS-1:0] head_owed = live_reg[head] ? owed[head] : {PORTS{1'b0}};
  wire [PORTS-1:0] head_receivers = head_owed & ready;
  wire pop;
  wire stays = fresh_reg[begun_slot] && !(pop && head == begun_slot);
  wire push = begun && !stays && !flush;

  agg_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_fresh (
      .clk       (clk),
      .clear     (rst || flush),
      .push      (push),
      .push_slot (begun_slot),
      .head_valid(head_valid),
      .head_slot (head),
      .pop       (pop)
  );

  // -- Scan ---------------------------------------------------------------------------------------

  reg [SLOT_BITS-1:0] newest_reg;  // slot that turned over last
  reg [SLOT_BITS-1:0] at_reg;  // the scan's position
  reg [SLOT_BITS-1:0] left_reg;  // slots left in this pass
  reg [PORTS-1:0] ready_reg;  // ports that were ready when the pass started

  wire at_owes = live_reg[at_reg] && scan_reg[at_reg] && !fresh_reg[at_reg];
  wire [PORTS-1:0] at_owed = at_owes ? owed[at_reg] : {PORTS{1'b0}};
  wire [PORTS-1:0] at_receivers = at_owed & ready & ready_reg;
  wire found = |at_receivers;
  wire pass_ends = left_reg == {SLOT_BITS{1'b0}};

  always @(posedge clk) begin
    if (turn_over) newest_reg <= slot;
    if (!found) begin
      at_reg   <= (pass_ends ? newest_reg + 1'b1 : at_reg + 1'b1) & slot_mask;
      left_reg <= pass_ends ? slot_mask : left_reg - 1'b1;
      if (pass_ends) ready_reg <= ready;
    end
    if (rst) begin
      newest_reg <= {SLOT_BITS{1'b0}};
      at_reg     <= {SLOT_BITS{1'b0}};
      left_reg   <= {SLOT_BITS{1'b0}};
      ready_reg  <= {PORTS{1'b0}};
    end
  end

  // -- Pick ---------------------------------------------------------------------------------------

  assign pick_valid     = !flush && (found || (head_valid && |head_receivers));
  assign pick_slot      = found ? at_reg : head;
  assign pick_receivers = found ? at_receivers : head_receivers;

  wire [PORTS-1:0] pick_sent = sent[pick_slot];
  wire [PORTS-1:0] pick_left = (found ? at_owed : head_owed) & ~pick_receivers;

  assign pick_replay = |(pick_receivers & pick_sent);
  assign pop         = head_valid && (~|head_owed || (pick_take && !found));

  always @(posedge clk) begin
    if (pick_take) begin
      owed[pick_slot]     <= pick_left;
      sent[pick_slot]     <= pick_sent | pick_receivers;
      scan_reg[pick_slot] <= |pick_left;
    end
    if (pop) fresh_reg[head] <= 1'b0;
    if (owe) begin
      owed[slot]     <= (pick_take && pick_slot == slot ? pick_left : owed[slot]) | port;
      scan_reg[slot] <= 1'b1;
    end
    if (turn_over) live_reg[slot] <= 1'b0;
    if (begun) begin
      owed[begun_slot]     <= member;
      sent[begun_slot]     <= {PORTS{1'b0}};
      live_reg[begun_slot] <= 1'b1;
      scan_reg[begun_slot] <= 1'b0;
    end
    if (push) fresh_reg[begun_slot] <= 1'b1;
    if (rst || flush) begin
      live_reg  <= {SLOTS{1'b0}};
      fresh_reg <= {SLOTS{1'b0}};
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the ports that are owed its result, and those that were sent it.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg flush_was;
  reg exists;  // a result exists
  reg [PORTS-1:0] due, had;
  reg [PORTS-1:0] member_was;
  reg [SLOT_BITS-1:0] mask_was;
  reg [7:0] steps;  // of the scan, at rest
  reg [1:0] passes;  // completed at rest; two of them have visited every slot
  reg [SLOT_BITS:0] fresh_count;
  wire [PORTS-1:0] taken = pick_take && pick_slot == watched ? pick_receivers : {PORTS{1'b0}};
  wire [PORTS-1:0] repeats = owe && slot == watched ? port : {PORTS{1'b0}};
  wire [SLOT_BITS-1:0] to_come = (watched - at_reg) & slot_mask;  // scan steps before the slot
  reg began = 1'b0;  // a pass of the scan started
  reg [SLOT_BITS-1:0] newest, first_was;
  reg [PORTS-1:0] can;  // ports that were ready then
  integer n;

  // At rest: no events, all ports are ready, and every pick is taken at once.
  wire at_rest = !rst && !flush && !begun && !turn_over && !owe &&
      &ready && pick_take == pick_valid;

  always @(posedge clk) begin
    flush_was <= flush;
    member_was <= member;
    mask_was <= slot_mask;
    steps <= !at_rest ? 0 : steps + (!found && steps < 2 * SLOTS);
    passes <= !at_rest ? 0 : passes + (!found && pass_ends && passes < 2);
    due <= due & ~taken | repeats;
    had <= had | taken;
    if (turn_over && slot == watched) exists <= 1'b0;
    if (begun && begun_slot == watched) begin
      exists <= 1'b1;
      due <= member;
      had <= 0;
    end
    began <= !rst && pass_ends && !found;
    first_was <= (newest + 1'b1) & slot_mask;
    if (turn_over) newest <= slot;
    if (pass_ends && !found) can <= ready;
    if (rst) begin
      was_reset <= 1'b1;
      newest <= 0;
      can <= 0;
    end
    if (rst || flush) exists <= 1'b0;
  end

  always @* begin
    fresh_count = 0;
    for (n = 0; n < SLOTS; n = n + 1) fresh_count = fresh_count + fresh_reg[n];
    if (was_reset) begin
      // agg_jobs: window and members do not change until the job has ended.
      `PROMISED((slot_mask & (slot_mask + 1'b1)) == 0 && slot_mask != 0);
      `PROMISED(flush || flush_was || slot_mask == mask_was);
      `PROMISED(!begun || begun_slot <= slot_mask);
      `PROMISED(!turn_over || slot <= slot_mask);
      // agg_slots: after a slot turns over, it has no result until its sum begins; until then
      // nobody is owed it.
      `PROMISED(!owe || (live_reg[slot] && !turn_over));
      `PROMISED((port & (port - 1'b1)) == 0);
      `PROMISED(!begun || !live_reg[begun_slot]);
      `PROMISED(!begun || !turn_over || slot != begun_slot);
      // agg_egress takes only valid picks.
      `PROMISED(!pick_take || pick_valid);
      // agg_slot_fifo, proved separately: the head is a queued slot.
      assume (head_valid == (fresh_reg != 0) && (!head_valid || fresh_reg[head]));
      assert (!push || !fresh_reg[begun_slot] || (pop && head == begun_slot));
      assert (!pop || head_valid);

      assert (at_reg <= slot_mask || flush || flush_was);
      assert (exists == live_reg[watched] && (!exists || flush || watched <= slot_mask));
      if (exists) assert (due == owed[watched] && had == sent[watched]);

      // A pass starts with the oldest slot, the one after the last that turned over, visits all
      // slots, and uses the ports that were ready at its start.
      assert (newest_reg == newest && ready_reg == can);
      if (began) assert (at_reg == first_was && left_reg == mask_was);
      if (pick_valid && found && pick_slot == watched) assert ((pick_receivers & ~can) == 0);

      // A pick is owed, its receivers are ready, and it is a replay if one of them had it before.
      if (pick_valid) assert (pick_receivers != 0 && (pick_receivers & ~ready) == 0);
      if (pick_valid && pick_slot == watched) begin
        assert (exists && (pick_receivers & ~due) == 0);
        assert (pick_replay == |(pick_receivers & had));
      end

      // Nothing owed is forgotten: it is queued as fresh or marked for the scan.
      if (exists && due != 0) assert (fresh_reg[watched] || scan_reg[watched]);

      // At rest, every cycle sends an owed result or advances the scan, and nothing is owed after
      // the number of steps in two passes.
      assert (!at_rest || found == (pick_take && pick_slot == at_reg && !fresh_reg[at_reg]));
      assert (steps <= 2 * SLOTS && passes <= 2);
      if (passes == 0) assert (steps + left_reg < SLOTS || steps == 0);
      if (passes == 1 && !flush) begin
        assert (steps + left_reg < 2 * SLOTS && left_reg <= slot_mask);
        assert (ready_reg == {PORTS{1'b1}});
      end
      if (passes == 2) assert (ready_reg == {PORTS{1'b1}});
      assert (fresh_count == 0 || steps + fresh_count <= SLOTS);
      if (exists && !flush && !fresh_reg[watched] &&
          (passes == 2 || (passes == 1 && to_come > left_reg)))
        assert (due == 0);
      if (exists && !flush && steps == 2 * SLOTS) assert (due == 0);

      cover (exists && due != 0 && had == {PORTS{1'b1}} && pick_valid && pick_replay);
      cover (begun && begun_slot == watched && fresh_reg[watched]);
      cover (taken != 0 && repeats != 0);
      cover (found && head_valid && |head_receivers);
    end
  end
`endif

endmodule

`default_nettype wire
