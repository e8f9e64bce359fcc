// The slot table: judges one packet a cycle by the slot rules and updates the table in that
// cycle.
//
// A slot is empty, collecting, reducing or reduced. It is *active* once it has turned over since
// its job was set up, *closed* once it holds all members, and reduced when its sum is in the
// cache. An empty slot has no entry: the VID it would hold follows from the job's first VID, and
// every member is done with it. Members are identified by port; an evicted port is not a member.
//
// An overdue slot is acted upon in a cycle without a packet (agg_deadlines). With partial sums, a
// collecting slot is closed with the contributions it holds; for a reduced one, members that are
// not done are evicted. Without, the missing members are reported.
//
// The job_* inputs are those of the packet's job. Its 2 W slots, W its window, begin at a
// multiple of 2 W (slot_base). The slots of v and v - W differ in one bit of their number, the
// window's. A row of the table holds such a pair, so both are read and updated at once: row n of
// a job, 0 to W - 1, is row slot_base / 2 + n of the table. So no two jobs share a row.
//
// Events are for the slot at `slot`, in the cycle of the commit; the table changes at its end.
// Data that was not written (see agg_ingress) is refused as not ready; this cannot happen to a
// worker that follows the protocol. Not done here: header checks (agg_commit), debts (agg_owed),
// sending answers (agg_status).

`default_nettype none

module agg_slots #(
    parameter integer PORTS     = 4,
    parameter integer WINDOW    = 8,
    parameter integer SLOT_BITS = 4,  // width of a slot number: log2(2 * WINDOW)
    parameter integer ROW_BITS  = 3   // width of a row number: log2(WINDOW), at least 1
) (
    input wire clk,

    input wire [(1<<SLOT_BITS)-1:0] flush_slots,  // slots of ending jobs: they become empty

    // The job of the packet, or of the overdue slot
    input wire [         31:0] job_first,
    input wire [SLOT_BITS-1:0] job_window,
    input wire [SLOT_BITS-1:0] slot_mask,   // 2 * window - 1
    input wire [SLOT_BITS-1:0] slot_base,   // the first slot
    input wire [    PORTS-1:0] member,      // by port
    input wire [    PORTS-1:0] evicted,     // no longer members
    input wire                 partial,     // partial sums allowed

    // A slot is overdue; no packet is judged in this cycle
    input wire act,

    // The slot of the packet's VID, or the overdue slot
    input wire [SLOT_BITS-1:0] slot,

    // The packet; at most one of refuse, data, ask and finish is high
    input wire             refuse,    // a check failed; code names it
    input wire             data,
    input wire             ask,
    input wire             finish,
    input wire [      7:0] code,
    input wire             belongs,   // its rank is the port's own
    input wire [PORTS-1:0] ports,     // its port, one-hot
    input wire [     31:0] vid,
    input wire [      1:0] ecn,
    input wire             writable,
    input wire             nonfinite,

    // A slot's last beat was summed
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot,

    // Events
    output wire turn_over,  // the slot takes a new VID and drops its debts
    output wire store,  // data is stored
    output wire store_ce,
    output wire store_nonfinite,
    output wire [PORTS-1:0] resolve,  // ports whose writable data is resolved
    output wire owe,  // the sender is owed the result
    output wire complete,  // the slot is closed: it holds all members, or its time is up
    output wire [PORTS-1:0] complete_ports,
    output wire [31:0] complete_vid,
    output wire [1:0] complete_ecn,
    output wire complete_nonfinite,
    output wire stall,  // data for the next chunk cannot turn over the reduced slot
    output wire overdue,  // the slot acted upon still waits
    output wire [PORTS-1:0] evict,  // ports to evict
    output wire notice,  // report answer_ports
    output wire [PORTS-1:0] notice_ports,  // to these ports
    output wire [7:0] notice_code,
    output wire [31:0] notice_vid,
    output wire asked,  // an ask was not refused
    output wire answer,  // an ask or a finish gets a status as its reply
    output wire [7:0] answer_code,
    output wire [PORTS-1:0] answer_ports,  // missing members, or all evicted ones
    output wire refused,
    output wire [7:0] refused_code,
    output wire refused_answer  // a status may be sent for it
);

  `include "zwire.vh"

  localparam integer SLOTS = 2 * WINDOW;
  localparam [SLOTS-1:0] ONE_SLOT = 1;
  localparam integer SLOT_WIDTH = 32 + 2 * PORTS + 4;  // {marks, done, held, VID}

  reg [SLOT_WIDTH-1:0] low_slots[0:WINDOW-1];  // slots with the window's bit clear
  reg [SLOT_WIDTH-1:0] high_slots[0:WINDOW-1];
  reg [SLOTS-1:0] active_reg;
  reg [SLOTS-1:0] closed_reg;
  reg [SLOTS-1:0] reduced_reg;

  // -- Read ---------------------------------------------------------------------------------------

  wire [SLOT_BITS-1:0] whole_row = (slot_base >> 1) | (slot & (slot_mask >> 1));
  wire [ROW_BITS-1:0] row = whole_row[ROW_BITS-1:0];
  wire high = |(slot & job_window);
  wire unused = whole_row[SLOT_BITS-1];  // always 0

  wire [SLOT_WIDTH-1:0] low_slot = low_slots[row];
  wire [SLOT_WIDTH-1:0] high_slot = high_slots[row];
  wire [SLOT_WIDTH-1:0] own = high ? high_slot : low_slot;
  wire [SLOT_WIDTH-1:0] other = high ? low_slot : high_slot;  // slot of v - W

  wire active = active_reg[slot];
  wire is_reduced = reduced_reg[slot];
  wire [SLOT_BITS-1:0] other_slot = slot ^ job_window;
  wire other_reduced = reduced_reg[other_slot];

  wire [31:0] own_vid = own[31:0];
  wire [PORTS-1:0] own_held = own[32+:PORTS];
  wire [PORTS-1:0] own_done = own[32+PORTS+:PORTS];
  wire [3:0] own_marks = own[32+2*PORTS+:4];
  wire [31:0] other_vid = other[31:0];

  // -- Judge --------------------------------------------------------------------------------------

  // Subtracts from v while the table is read, and then compares for equality only: whether v is the
  // slot's VID, or the next one, is known before its distance.
  wire [31:0] window = {{32 - SLOT_BITS{1'b0}}, job_window};
  wire [31:0] window_2 = window << 1;
  wire [31:0] turn = {{32 - SLOT_BITS{1'b0}}, slot_mask};  // 2 * window - 1
  wire [31:0] one_back = vid - window;
  wire [31:0] two_back = vid - window_2;
  wire is_own = (vid ^ own_vid) == 32'd0;
  wire follows_own = (two_back ^ own_vid) == 32'd0;

  // The next VID of an empty slot is the first VID, or as far after it as the slot is after the
  // first VID's slot.
  wire [31:0] since_first = vid - job_first;
  wire [31:0] since_empty = since_first + window_2;
  wire same = active ? is_own : &(since_first | turn);
  wire next = active ? follows_own : (since_first & ~turn) == 32'd0;

  wire [31:0] since_own = vid - own_vid;
  wire behind_own = active ? since_own[31] : since_empty[31];
  wire unused_bits = &{1'b0, since_own[30:0], since_empty[30:0]};

  wire closed = closed_reg[slot];
  wire collecting = active && !closed;
  wire held = |(own_held & ports);

  wire [PORTS-1:0] done = own_done | ports;
  wire may_turn = !active || (is_reduced && (member & ~done) == {PORTS{1'b0}});

  assign stall           = data && next && active && is_reduced && !may_turn;
  assign turn_over       = data && next && may_turn && writable;
  assign store           = turn_over || (data && same && collecting && !held && writable);
  assign owe             = (data || ask) && same && active && is_reduced;
  assign resolve         = (data || refuse) && writable ? ports : {PORTS{1'b0}};

  assign store_ce        = store && ecn == ECN_CE;
  assign store_nonfinite = store && nonfinite;

  wire proves = data && other_reduced && other_vid == one_back;  // the sender is done with v - W

  // -- Replies ------------------------------------------------------------------------------------

  reg [7:0] rule;  // the code if data or an ask is refused

  always @* begin
    if (same && !active) rule = CODE_LATE;
    else if (same && (held || closed)) rule = CODE_DUPLICATE;
    else if (same || next) rule = CODE_NOT_READY;
    else if (behind_own) rule = CODE_LATE;
    else rule = CODE_EARLY;
  end

  assign asked          = ask && (next || (same && active));
  assign refused        = refuse || (data && !store) || (ask && !asked);
  assign refused_code   = refuse ? code : rule;
  assign refused_answer = refused && belongs && !owe && refused_code != CODE_PAYLOAD_CRC;

  assign answer         = finish || (ask && (next || (same && collecting)));
  assign answer_code    = finish ? CODE_DONE : same && held ? CODE_WAIT : CODE_SEND;

  // -- Overdue ------------------------------------------------------------------------------------

  wire [PORTS-1:0] missing = member & ~own_held;
  wire [PORTS-1:0] behind = member & ~own_done;

  wire ends_early = act && partial && collecting;
  wire evicts = act && partial && is_reduced && |behind;

  assign evict        = evicts ? behind : {PORTS{1'b0}};
  assign overdue      = act && (collecting || (is_reduced && |behind));
  assign notice       = overdue && !ends_early;
  assign notice_ports = evicts ? member | evicted : member & ~(collecting ? missing : behind);
  assign notice_code  = evicts ? CODE_EVICTED : CODE_OVERDUE;
  assign notice_vid   = own_vid;

  reg [PORTS-1:0] named;

  always @* begin
    if (act) named = evicts ? evicted | behind : collecting ? missing : behind;
    else if (finish) named = {PORTS{1'b0}};
    else named = next ? member : missing;
  end

  assign answer_ports = named;

  // -- Update -------------------------------------------------------------------------------------

  wire [PORTS-1:0] held_next = (turn_over ? {PORTS{1'b0}} : own_held) | ports;
  wire [      3:0] marks_next = (turn_over ? 4'd0 : own_marks) |
      {nonfinite, ecn == ECN_CE, ecn == ECN_NOT_ECT, ecn == ECN_ECT0};
  wire [PORTS-1:0] done_next = turn_over ? {PORTS{1'b0}} : data && next ? done : own_done;

  wire [SLOT_WIDTH-1:0] own_next = store ? {marks_next, done_next, held_next, vid} :
      {own_marks, done_next, own_held, own_vid};
  wire [SLOT_WIDTH-1:0] done_bit = {{SLOT_WIDTH - PORTS{1'b0}}, ports} << (32 + PORTS);
  wire [SLOT_WIDTH-1:0] other_next = other | done_bit;

  wire [3:0] marks = ends_early ? own_marks : marks_next;

  assign complete = ends_early || (store && (member & ~held_next) == {PORTS{1'b0}});
  assign complete_ports = ends_early ? own_held : held_next;
  assign complete_vid = ends_early ? own_vid : vid;
  assign complete_nonfinite = marks[3];
  assign complete_ecn = marks[2] ? ECN_CE : marks[1] ? ECN_NOT_ECT : marks[0] ? ECN_ECT0 : ECN_ECT1;

  wire [SLOTS-1:0] turned = turn_over ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] completed = complete ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] summed_now = reduced ? ONE_SLOT << reduced_slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    if (high ? proves : data) low_slots[row] <= high ? other_next : own_next;
    if (high ? data : proves) high_slots[row] <= high ? own_next : other_next;

    active_reg  <= (active_reg | turned) & ~flush_slots;
    closed_reg  <= ((closed_reg & ~turned) | completed) & ~flush_slots;
    reduced_reg <= ((reduced_reg & ~turned) | summed_now) & ~flush_slots;
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: section 5 of the specification, from one flush of the slot to the next, which is
  // one life of its job. VIDs have 32 bits; a slot reaches the same VID again only after 2^32.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_flushed = 1'b0;
  reg used;  // the slot has turned over in this job
  reg [31:0] holds;
  reg [PORTS-1:0] had, finished;
  reg summing, summed;  // queued for summation; its sum is in the cache
  reg ce, not_ect, ect0, special;
  reg [31:0] its_first;  // its job's configuration
  reg [SLOT_BITS-1:0] its_window, its_mask, its_base;
  reg [PORTS-1:0] its_member;

  // hits: the packet's job owns the slot; apart: its slots are none of the owner's.
  wire hits = (watched & ~slot_mask) == slot_base;
  wire apart = ((slot_base ^ its_base) & ~(slot_mask | its_mask)) != 0;
  wire its_job = job_first == its_first && job_window == its_window && slot_mask == its_mask &&
      slot_base == its_base && (member & ~its_member) == 0;
  wire [SLOT_BITS-1:0] its_row = (its_base >> 1) | (watched & (its_mask >> 1));
  wire [31:0] two_windows = 2 * job_window;
  wire mine = slot == watched;
  wire is_held = used && vid == holds;
  wire [31:0] would_hold = job_first + ((watched - job_first) & slot_mask);
  wire [31:0] distance = vid - (used ? holds : would_hold - two_windows);
  wire late = distance[31] || (!used && distance == 0);
  wire begins = used ? vid == holds + two_windows : vid == would_hold;
  wire [PORTS-1:0] finished_now = finished | ports;
  wire may = !used || (summed && (member & ~finished_now) == 0);
  wire turns = data && mine && writable && begins && may;
  wire joins = data && mine && writable && used && vid == holds &&
      !(|(had & ports)) && !summing && !summed;
  wire cut = act && mine && used && !summing && !summed && partial;  // its time is up
  wire [PORTS-1:0] behind_now = member & ~finished;
  wire [PORTS-1:0] had_now = turns ? ports : had | ports;
  wire ce_now = ecn == ECN_CE || (!turns && ce);
  wire not_ect_now = ecn == ECN_NOT_ECT || (!turns && not_ect);
  wire ect0_now = ecn == ECN_ECT0 || (!turns && ect0);
  wire special_now = nonfinite || (!turns && special);

  always @(posedge clk) begin
    if (!used) begin
      its_first  <= job_first;
      its_window <= job_window;
      its_mask   <= slot_mask;
      its_base   <= slot_base;
      its_member <= member;
    end
    if (turns || joins) begin
      used <= 1'b1;
      holds <= vid;
      had <= had_now;
      summing <= (member & ~had_now) == 0;
      ce <= ce_now;
      not_ect <= not_ect_now;
      ect0 <= ect0_now;
      special <= special_now;
    end
    if (cut) summing <= 1'b1;
    if (turns) begin
      finished <= 0;
      summed   <= 1'b0;
    end else if (data && used && hits && (vid == holds + two_windows ||
        (summed && vid == holds + job_window)))
      finished <= finished_now;
    if (reduced && reduced_slot == watched) begin
      summing <= 1'b0;
      summed  <= 1'b1;
    end
    if (&flush_slots) was_flushed <= 1'b1;
    if (flush_slots[watched]) begin
      used <= 1'b0;
      summing <= 1'b0;
      summed <= 1'b0;
    end
  end

  always @* begin
    if (was_flushed) begin
      // agg_jobs: a window is a power of two, and a job's slots begin at a multiple of their number
      // and belong to no other job. Its configuration does not change while it uses slots, except
      // evictions. No packet of an ending job is judged.
      `PROMISED(job_window != 0 && (job_window & (job_window - 1'b1)) == 0 && job_window <= WINDOW);
      `PROMISED(slot_mask == two_windows - 1 && (slot_base & slot_mask) == 0);
      `PROMISED(!used || !(data || ask || act) || (hits ? its_job : apart));
      `PROMISED(!(flush_slots[watched] && hits && (data || ask || act)));
      // agg_commit: slot is the VID's slot.
      `PROMISED(!(data || ask) || slot == (slot_base | (vid[SLOT_BITS-1:0] & slot_mask)));
      // agg_deadlines: a slot acted upon is the job's, and no packet is judged in that cycle.
      `PROMISED(!act || ((slot & ~slot_mask) == slot_base && !(refuse || data || ask || finish)));
      // agg_commit: one request a cycle, from a member; agg_arbiter: from one port.
      `PROMISED(refuse + data + ask + finish <= 1);
      `PROMISED(!(data || ask) || (ports & member) != 0);
      `PROMISED((ports & (ports - 1'b1)) == 0);
      // agg_reader and agg_writer: a reduced slot was complete, and is reduced once.
      `PROMISED(!reduced || flush_slots[watched] || reduced_slot != watched || summing);

      assert (used == active_reg[watched] && summed == reduced_reg[watched]);
      assert (!(summing && summed) && (used || !(summing || summed)));
      assert (!used || closed_reg[watched] == (summing || summed));
      assert (!used || ((had & ~its_member) == 0 && (its_base | (holds & its_mask)) == watched));
      assert (!used || (its_window != 0 && (its_window & (its_window - 1'b1)) == 0));
      assert (!used || (its_window <= WINDOW && its_mask == 2 * its_window - 1));
      assert (!used || ((its_base & its_mask) == 0 && (watched & ~its_mask) == its_base));
      if (used)
        assert ((|(watched & its_window) ? high_slots[its_row] : low_slots[its_row]) ==
                {special, ce, not_ect, ect0, finished, had, holds});

      // A contribution is stored once, in the slot's chunk or the next one, and never after its
      // chunk closed. No chunk follows before every rank is done with its predecessor.
      if (mine) begin
        assert (turn_over == turns && store == (turns || joins));
        if (turn_over && used)
          assert (summed && (member & ~finished_now) == 0 && vid == holds + two_windows);
        if (store && used && !turn_over)
          assert (!(|(had & ports)) && vid == holds && !summing && !summed);

        // A slot completes once, when it holds all members or its time is up, with all marks.
        assert (complete == (cut || (store && (member & ~had_now) == 0)));
        if (complete) begin
          assert (complete_ports == (cut ? had : had_now) && complete_vid == (cut ? holds : vid));
          assert (cut || partial || (member & ~complete_ports) == 0);
          assert (turn_over || (!summing && !summed));
        end
        if (complete && cut) begin
          assert (complete_ecn ==
                  (ce ? ECN_CE : not_ect ? ECN_NOT_ECT : ect0 ? ECN_ECT0 : ECN_ECT1));
          assert (complete_nonfinite == special);
        end
        if (complete && !cut) begin
          if (ce_now)
            assert (complete_ecn == ECN_CE);
            else if (not_ect_now)
              assert (complete_ecn == ECN_NOT_ECT);
              else assert (complete_ecn == (ect0_now ? ECN_ECT0 : ECN_ECT1));
          assert (complete_nonfinite == special_now);
        end

        // A repeat or an ask is answered by the result, or by the missing members.
        assert (owe == ((data || ask) && used && summed && vid == holds));
        assert (asked == (ask && (begins || (used && vid == holds))));
        assert (answer == (finish || (ask && (begins || (is_held && !summing && !summed)))));
        if (ask && answer) begin
          assert (answer_ports == (begins ? member : member & ~had));
          assert (answer_code == (!begins && |(had & ports) ? CODE_WAIT : CODE_SEND));
        end
        if (finish) assert (answer_code == CODE_DONE && answer_ports == 0);
        assert (refused == (refuse || (data && !store) || (ask && !asked)));
        if (refuse) assert (refused_code == code);
        if (!refuse && refused) begin
          if (is_held && (|(had & ports) || summing || summed))
            assert (refused_code == CODE_DUPLICATE);
            else if (is_held)
              assert (refused_code == CODE_NOT_READY);
              else if (begins)
                assert (refused_code == CODE_NOT_READY);
                else assert (refused_code == (late ? CODE_LATE : CODE_EARLY));
        end
        assert (refused_answer == (refused && belongs && !owe && refused_code != CODE_PAYLOAD_CRC));
      end
      // Overdue members are reported to the others, or evicted; a packet evicts nobody.
      if (mine && act) begin
        assert (evict == (used && summed && partial ? behind_now : 0));
        assert (overdue == (used && (summed ? behind_now != 0 : !summing)));
        assert (notice == (overdue && !cut));
        if (notice && evict != 0) begin
          assert (notice_code == CODE_EVICTED && notice_ports == (member | evicted));
          assert (answer_ports == (evicted | behind_now));
        end
        if (notice && evict == 0) begin
          assert (notice_code == CODE_OVERDUE && !partial);
          assert (answer_ports == (summed ? behind_now : member & ~had));
          assert (notice_ports == (member & ~answer_ports));
        end
        if (notice) assert (notice_vid == holds);
      end
      if (!act) assert (!overdue && !notice && evict == 0);
      if (mine)
        assert (stall == (data && used && summed && vid == holds + two_windows &&
          (member & ~finished_now) != 0));
      if (!data) assert (!stall);

      assert (store_ce == (store && ecn == ECN_CE) && store_nonfinite == (store && nonfinite));
      assert (resolve == ((data || refuse) && writable ? ports : 0));
      if (!data) assert (!store && !turn_over);

      cover (turn_over && mine && used && finished != 0);
      cover (complete && mine && holds == 32'hffffffff && !turn_over);
      cover (owe && mine && holds == 0);
      cover (summed && finished == member && member != 1 && data && mine && !store);
      cover (cut && had != 0 && had != member);
      cover (act && mine && evict != 0);
      cover (used && its_window == 1 && its_base != 0 && turn_over && !hits);
    end
  end
`endif

endmodule

`default_nettype wire
