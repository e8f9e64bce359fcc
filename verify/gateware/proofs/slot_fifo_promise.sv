// Stands in for agg_slot_fifo in the proof of its parent: an arbitrary head. The parent assumes
// what the head may be; slot_fifo.sby proves that agg_slot_fifo complies.

`default_nettype none

module agg_slot_fifo #(
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire clear,

    input wire                 push,
    input wire [SLOT_BITS-1:0] push_slot,

    output wire                 head_valid,
    output wire [SLOT_BITS-1:0] head_slot,
    output wire                 after_valid,
    output wire [SLOT_BITS-1:0] after_slot,
    input  wire                 pop
);

  (* anyseq *) reg any_valid, any_after;
  (* anyseq *) reg [SLOT_BITS-1:0] any_slot, any_after_slot;

  assign head_valid  = any_valid;
  assign head_slot   = any_slot;
  assign after_valid = any_after;
  assign after_slot  = any_after_slot;

endmodule

`default_nettype wire
