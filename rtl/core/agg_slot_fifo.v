// A queue of slot numbers with room for every slot; it cannot overflow if no slot is queued twice.
//
// The head and the two slots behind it, *next* and *third*, are registers; the others are in a
// memory with a synchronous read. The memory's output feeds the third without any logic, because
// block RAMs are slow. A push goes past the memory into the head or the next if nothing is before
// it. Pops are not in consecutive cycles: so there is a head while any slot is queued. A push in
// cycle 0 into an empty queue is at the head in cycle 1, and so is, after a pop in cycle 0, the
// slot *after* the head: if there is none, the slot that is pushed in cycle 0. Not done here: a
// full flag, protection against a pop of an empty queue.

`default_nettype none

module agg_slot_fifo #(
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire clear, // empties the queue, despite a push

    input wire                 push,
    input wire [SLOT_BITS-1:0] push_slot,

    output wire                 head_valid,
    output wire [SLOT_BITS-1:0] head_slot,
    output wire                 after_valid,  // right unless there was a pop in the last cycle
    output wire [SLOT_BITS-1:0] after_slot,
    input  wire                 pop           // not in consecutive cycles
);

  // A slot that is read in the cycle of its push is never used: it is not fresh.
  (* no_rw_check *) reg [SLOT_BITS-1:0] slots[0:(1<<SLOT_BITS)-1];
  reg [SLOT_BITS:0] wr_reg, rd_reg;  // next place to write; place of the slot behind the third
  reg [SLOT_BITS-1:0] slot_reg;  // the memory's output
  reg fresh_reg;  // it is the slot behind the third
  reg head_valid_reg, next_valid_reg, third_valid_reg;
  reg [SLOT_BITS-1:0] head_reg, next_reg, third_reg;

  wire empty = rd_reg == wr_reg;  // no slot is in the memory
  wire open = !head_valid_reg || pop;  // the head is free
  wire next_open = !next_valid_reg || open;
  wire third_open = !third_valid_reg || next_open;
  wire moves = third_open && fresh_reg;
  wire skips = open && !next_valid_reg;  // the head takes the slot behind the next
  wire may_pass = push && empty;
  wire passes = may_pass && (third_valid_reg ? skips : next_open);  // past the memory
  wire after = next_valid_reg || third_valid_reg;  // nothing else is behind the head without these

  always @(posedge clk) begin
    slot_reg <= slots[rd_reg[SLOT_BITS-1:0]];
    if (push) slots[wr_reg[SLOT_BITS-1:0]] <= push_slot;
    if (open) head_reg <= after ? after_slot : push_slot;
    if (next_open) next_reg <= third_valid_reg && !skips ? third_reg : push_slot;
    if (third_open) third_reg <= slot_reg;
    if (push && !passes) wr_reg <= wr_reg + 1'b1;
    if (moves) rd_reg <= rd_reg + 1'b1;
    fresh_reg <= !empty && !moves;
    head_valid_reg <= !open || after || push;
    next_valid_reg  <= !next_open || (skips ? third_valid_reg && may_pass :
        third_valid_reg || may_pass);
    third_valid_reg <= !third_open || fresh_reg;
    if (clear) begin
      wr_reg          <= {SLOT_BITS + 1{1'b0}};
      rd_reg          <= {SLOT_BITS + 1{1'b0}};
      fresh_reg       <= 1'b0;
      head_valid_reg  <= 1'b0;
      next_valid_reg  <= 1'b0;
      third_valid_reg <= 1'b0;
    end
  end

  assign head_valid  = head_valid_reg;
  assign head_slot   = head_reg;
  assign after_valid = after;
  assign after_slot  = next_valid_reg ? next_reg : third_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th push is the n-th head, and there is a head while any slot is queued: no loss,
  // repetition or reordering. Numbers are modulo twice the capacity; watched is any of them.
  (* anyconst *) reg [SLOT_BITS:0] watched;
  reg cleared = 1'b0;
  reg [SLOT_BITS:0] pushed, popped;
  reg [SLOT_BITS-1:0] put;
  reg [(1<<SLOT_BITS)-1:0] queued;  // slots in the queue
  reg [SLOT_BITS:0] queued_count;
  wire [SLOT_BITS:0] waiting = pushed - popped;
  wire watched_waits = watched - popped < waiting;
  wire [SLOT_BITS:0] first = head_valid + next_valid_reg + third_valid_reg;  // slots in registers
  wire [SLOT_BITS:0] behind = waiting - first;
  wire [SLOT_BITS-1:0] watched_at = rd_reg + (watched - popped) - first;
  reg clash_was;  // the memory's output was read in the cycle of its write
  reg popped_was;  // a pop in the last cycle
  reg runs = 1'b0;  // not cleared in the last cycle
  reg stayed, after_was, pushed_was;  // the head, without a pop; the slot after it; a push
  reg [SLOT_BITS-1:0] head_was, after_slot_was, push_slot_was;
  integer i, j;

  always @(posedge clk) begin
    if (push && pushed == watched) put <= push_slot;
    if (pop) queued[head_slot] <= 1'b0;
    if (push) queued[push_slot] <= 1'b1;
    pushed <= pushed + push;
    popped <= popped + pop;
    clash_was <= push && wr_reg[SLOT_BITS-1:0] == rd_reg[SLOT_BITS-1:0];
    popped_was <= !clear && pop;
    runs <= cleared && !clear;
    stayed <= head_valid && !pop;
    after_was <= after_valid;
    pushed_was <= push;
    head_was <= head_slot;
    after_slot_was <= after_slot;
    push_slot_was <= push_slot;
    if (clear) begin
      cleared <= 1'b1;
      pushed  <= 0;
      popped  <= 0;
      queued  <= 0;
    end
  end

  always @* begin
    queued_count = 0;
    for (i = 0; i < 1 << SLOT_BITS; i = i + 1) queued_count = queued_count + queued[i];
    if (cleared) begin
      // The queue's user pushes no slot twice, and pops only what is there, not in
      // consecutive cycles.
      `PROMISED(!push || clear || !queued[push_slot] || (pop && head_slot == push_slot));
      `PROMISED(!pop || head_valid);
      `PROMISED(!pop || !popped_was);

      // Behind the third, slots are in the memory in their order.
      assert (wr_reg - rd_reg == behind);
      assert (!fresh_reg || (behind != 0 && slot_reg == slots[rd_reg[SLOT_BITS-1:0]]));
      assert (!fresh_reg || !clash_was);
      assert (!head_valid || queued[head_slot]);
      assert (!next_valid_reg || queued[next_reg]);
      assert (!third_valid_reg || queued[third_reg]);
      assert (!(head_valid && next_valid_reg) || head_slot != next_reg);
      assert (!(head_valid && third_valid_reg) || head_slot != third_reg);
      assert (!(next_valid_reg && third_valid_reg) || next_reg != third_reg);
      if (watched_waits && watched == popped && head_valid) assert (head_slot == put);
      if (watched_waits && watched - popped == head_valid && next_valid_reg)
        assert (next_reg == put);
      if (watched_waits && watched - popped == head_valid + next_valid_reg && third_valid_reg)
        assert (third_reg == put);
      if (watched_waits && watched - popped >= first) assert (slots[watched_at] == put);

      // There is a head while any slot is queued. It is the one before, or the one after that, or
      // the one that was pushed.
      assert (head_valid == (waiting != 0));
      assert (next_valid_reg || third_valid_reg || empty || fresh_reg);
      if (!popped_was) assert (after_valid == (waiting > 1));
      if (runs) begin
        assert (head_valid == (stayed || after_was || pushed_was));
        if (head_valid)
          assert (head_slot == (stayed ? head_was : after_was ? after_slot_was : push_slot_was));
      end

      // No slot is queued twice, so the queue never overflows.
      assert (waiting == queued_count);
      for (i = 0; i < 1 << SLOT_BITS; i = i + 1) begin
        if (i < behind)
          assert (queued[slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]]] &&
              !(head_valid && slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]] == head_slot) &&
              !(next_valid_reg && slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]] == next_reg) &&
              !(third_valid_reg && slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]] == third_reg));
        for (j = 0; j < i; j = j + 1) begin
          if (i < behind)
            assert (slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]] !=
                    slots[rd_reg[SLOT_BITS-1:0]+j[SLOT_BITS-1:0]]);
        end
      end

      cover (&queued && push && pop);
      cover (&queued && !after_valid);
      cover (pop && skips && third_valid_reg && push);
      cover (queued == 0 && pushed[SLOT_BITS]);
    end
  end
`endif

endmodule

`default_nettype wire
