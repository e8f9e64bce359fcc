// A word of the slot table after an operation: that of the operation's slot (is_own), or that of
// the row's other slot. agg_slots has two, one for each word of the row.
//
// Combinational. Not done here: the rules (agg_slots).

`default_nettype none

module agg_slot_word #(
    parameter integer PORTS     = 4,
    parameter integer WORD_BITS = 2 * PORTS + 40
) (
    input wire [WORD_BITS-1:0] word,   // {active, closed, gen, stalled, marks 4, done, held, VID}
    input wire                 is_own,

    // The operation
    input wire             turns,      // the slot takes the VID, and forgets all else
    input wire             joins,      // the contribution is added
    input wire             completes,
    input wire             stalls,
    input wire             next,       // data for the next chunk: the sender is done with this one
    input wire             proves,     // the sender is done with the other slot's chunk
    input wire             gen,        // for a slot that turns over
    input wire [      3:0] marks,      // of the packet
    input wire [PORTS-1:0] ports,      // its port, one-hot
    input wire [     31:0] vid,

    output wire [WORD_BITS-1:0] word_next
);

  wire was_active, was_closed, was_gen, was_stalled;
  wire [3:0] was_marks;
  wire [PORTS-1:0] was_done, was_held;
  wire [31:0] was_vid;

  assign {was_active, was_closed, was_gen, was_stalled, was_marks, was_done, was_held, was_vid} =
      word;

  wire turns_here = is_own && turns;
  wire stores_here = is_own && (turns || joins);
  wire done_here = is_own ? next : proves;

  wire [PORTS-1:0] done_next = was_done | (done_here ? ports : {PORTS{1'b0}});
  wire [PORTS-1:0] held_next = was_held | (stores_here ? ports : {PORTS{1'b0}});
  wire [3:0] marks_next = was_marks | (stores_here ? marks : 4'd0);

  assign word_next = {
    was_active || turns_here,
    (is_own && completes) || (was_closed && !turns_here),
    turns_here ? gen : was_gen,
    (is_own && stalls) || (was_stalled && !turns_here),
    turns_here ? marks : marks_next,
    turns_here ? {PORTS{1'b0}} : done_next,
    turns_here ? ports : held_next,
    stores_here ? vid : was_vid
  };

endmodule

`default_nettype wire
