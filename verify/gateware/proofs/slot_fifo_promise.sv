// The place of agg_slot_fifo in the proof of a module that has one: any head. What the head may be, the
// module says; that agg_slot_fifo keeps to it, slot_fifo.sby shows.

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
    input  wire                 pop
);

  (* anyseq *) reg any_valid;
  (* anyseq *) reg [SLOT_BITS-1:0] any_slot;

  assign head_valid = any_valid;
  assign head_slot  = any_slot;

endmodule

`default_nettype wire
