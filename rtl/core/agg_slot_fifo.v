// A queue of slot numbers with room for every slot; it cannot overflow if no slot is queued twice.
//
// First-word fall-through: a push in cycle 0 into an empty queue is at the head in cycle 1. Not
// done here: a full flag, protection against a pop of an empty queue.

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
    input  wire                 pop
);

  reg [SLOT_BITS-1:0] slots  [0:(1<<SLOT_BITS)-1];
  reg [  SLOT_BITS:0] wr_reg;
  reg [  SLOT_BITS:0] rd_reg;

  assign head_valid = wr_reg != rd_reg;
  assign head_slot  = slots[rd_reg[SLOT_BITS-1:0]];

  always @(posedge clk) begin
    if (push) slots[wr_reg[SLOT_BITS-1:0]] <= push_slot;
    if (clear) begin
      wr_reg <= {SLOT_BITS + 1{1'b0}};
      rd_reg <= {SLOT_BITS + 1{1'b0}};
    end else begin
      if (push) wr_reg <= wr_reg + 1'b1;
      if (pop) rd_reg <= rd_reg + 1'b1;
    end
  end

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
  reg stays = 1'b0;
  reg [SLOT_BITS-1:0] head_was;
  integer i, j;

  always @(posedge clk) begin
    if (push && pushed == watched) put <= push_slot;
    if (pop) queued[head_slot] <= 1'b0;
    if (push) queued[push_slot] <= 1'b1;
    pushed <= pushed + push;
    popped <= popped + pop;
    stays <= cleared && !clear && head_valid && !pop;
    head_was <= head_slot;
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
      // The queue's user pushes no slot twice, and pops only what is there.
      `PROMISED(!push || clear || !queued[push_slot] || (pop && head_slot == push_slot));
      `PROMISED(!pop || waiting != 0);

      assert (wr_reg == pushed && rd_reg == popped);
      assert (head_valid == (queued != 0));
      assert (!head_valid || queued[head_slot]);
      assert (!stays || (head_valid && head_slot == head_was));
      if (watched_waits) assert (slots[watched[SLOT_BITS-1:0]] == put);
      if (watched_waits && watched == popped) assert (head_valid && head_slot == put);

      // No slot is queued twice, so the queue never overflows.
      assert (waiting == queued_count);
      for (i = 0; i < 1 << SLOT_BITS; i = i + 1) begin
        if (i < waiting) assert (queued[slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]]]);
        for (j = 0; j < i; j = j + 1) begin
          if (i < waiting)
            assert (slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]] !=
                    slots[rd_reg[SLOT_BITS-1:0]+j[SLOT_BITS-1:0]]);
        end
      end

      cover (&queued && push && pop);
      cover (queued == 0 && pushed[SLOT_BITS]);
    end
  end
`endif

endmodule

`default_nettype wire
