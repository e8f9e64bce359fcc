// A queue of slot numbers with room for every slot; it cannot overflow if no slot is queued twice.
//
// The head is a register; the slots behind it are in a memory with a synchronous read. A push in
// cycle 0 into an empty queue is at the head in cycle 1. After a pop in cycle 0, the next slot is
// at the head in cycle 1 or 2. Not done here: a full flag, protection against a pop of an empty
// queue.

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

  reg head_valid_reg;
  reg [SLOT_BITS-1:0] head_reg;
  reg [SLOT_BITS:0] wr_reg, wr_before_reg;  // next place to write: now, and one cycle ago
  reg [SLOT_BITS:0] rd_reg;  // place behind the head
  reg [SLOT_BITS-1:0] slots[0:(1<<SLOT_BITS)-1];
  reg [SLOT_BITS-1:0] slot_reg;  // the memory's output

  // The memory's output was read in the last cycle: a word written in that cycle is not in it.
  wire behind = rd_reg != wr_before_reg;
  wire empty = rd_reg == wr_reg;
  wire open = !head_valid_reg || pop;
  wire moves = open && behind;
  wire passes = push && open && empty;
  wire [SLOT_BITS:0] rd_next = rd_reg + {{SLOT_BITS{1'b0}}, moves};

  always @(posedge clk) begin
    slot_reg <= slots[rd_next[SLOT_BITS-1:0]];
    if (push && !passes) slots[wr_reg[SLOT_BITS-1:0]] <= push_slot;
    if (open) head_reg <= behind ? slot_reg : push_slot;
    head_valid_reg <= !open || behind || passes;
    if (push && !passes) wr_reg <= wr_reg + 1'b1;
    wr_before_reg <= wr_reg;
    rd_reg        <= rd_next;
    if (clear) begin
      head_valid_reg <= 1'b0;
      wr_reg         <= {SLOT_BITS + 1{1'b0}};
      wr_before_reg  <= {SLOT_BITS + 1{1'b0}};
      rd_reg         <= {SLOT_BITS + 1{1'b0}};
    end
  end

  assign head_valid = head_valid_reg;
  assign head_slot  = head_reg;

endmodule

`default_nettype wire
