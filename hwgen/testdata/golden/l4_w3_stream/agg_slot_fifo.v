// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// A queue of slot numbers, one place for every slot: who pushes no slot twice never fills it.
//
// The head falls through: what is pushed in cycle 0 into an empty queue stands at the head in
// cycle 1. Not done here: no full, no protection against a pop of an empty queue.

`default_nettype none

module agg_slot_fifo #(
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire clear, // empties the queue, whatever is pushed

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

endmodule

`default_nettype wire
