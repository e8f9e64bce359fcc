// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// Reads complete slots from all ports' slot memories at once, a beat a cycle, one slot after the
// other without a bubble, in the order in which they became complete.
//
// A slot waits at its first beat while its cache entry is being sent. A sum that cannot decide a
// beat in one pass asks for it *again*; such a read takes the place of a new beat and is marked as
// a further pass. When it has many of those to do it holds new beats back (stop). stalled: a new beat
// was not read because of either. When the job ends (flush) the slot that is being read is read to
// its end, those behind it are dropped; drained says that nothing is on its way any more.
//
// Latency: a slot that becomes complete in cycle 0 is read from cycle 1 on (rd_en), and stands at
// the memories' outputs from cycle 2 on (beat_valid and its tags). Not done here: it never stalls
// for what follows; the lanes and the cache take a beat every cycle.

`default_nettype none

module agg_reader #(
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4   // of a beat's number in its chunk
) (
    input wire clk,
    input wire rst,

    input  wire                  flush,
    input  wire [INDEX_BITS-1:0] job_last,  // number of a chunk's last beat
    output wire                  drained,

    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire                 sending,        // a cache entry is being sent
    input wire [SLOT_BITS-1:0] sending_slot,
    input wire                 reduced,        // a slot's last beat has been summed

    // The sum holds new beats back; it asks for a beat again, which is taken in the same cycle
    input wire                  stop,
    input wire                  again_valid,
    input wire [ SLOT_BITS-1:0] again_slot,
    input wire [INDEX_BITS-1:0] again_beat,

    // To the slot memories
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,

    // Beside what the slot memories give
    output wire                  beat_valid,
    output wire [ SLOT_BITS-1:0] beat_slot,
    output wire [INDEX_BITS-1:0] beat_index,
    output wire                  beat_pass,   // it was read before

    output wire stalled
);

  wire                  head_valid;
  wire [ SLOT_BITS-1:0] head_slot;
  reg  [INDEX_BITS-1:0] next_reg;  // the head's next beat
  reg  [   SLOT_BITS:0] on_way_reg;  // slots of which a beat was read and that are not reduced

  wire                  begins = next_reg == {INDEX_BITS{1'b0}};
  wire                  last = next_reg == job_last;
  wire                  overwrites = sending && sending_slot == head_slot;
  wire                  ready = head_valid && !(begins && (flush || overwrites));
  wire                  reads = ready && !again_valid && !stop;

  agg_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_complete (
      .clk       (clk),
      .clear     (rst || (flush && begins)),
      .push      (complete),
      .push_slot (complete_slot),
      .head_valid(head_valid),
      .head_slot (head_slot),
      .pop       (reads && last)
  );

  reg beat_valid_reg, beat_pass_reg;
  reg [ SLOT_BITS-1:0] beat_slot_reg;
  reg [INDEX_BITS-1:0] beat_index_reg;

  always @(posedge clk) begin
    if (reads) next_reg <= last ? {INDEX_BITS{1'b0}} : next_reg + 1'b1;
    if (reads && begins && !reduced) on_way_reg <= on_way_reg + 1'b1;
    if (!(reads && begins) && reduced) on_way_reg <= on_way_reg - 1'b1;
    beat_valid_reg <= rd_en;
    beat_slot_reg  <= rd_slot;
    beat_index_reg <= rd_beat;
    beat_pass_reg  <= again_valid;
    if (rst) begin
      next_reg       <= {INDEX_BITS{1'b0}};
      on_way_reg     <= {SLOT_BITS + 1{1'b0}};
      beat_valid_reg <= 1'b0;
    end
  end

  assign drained    = on_way_reg == {SLOT_BITS + 1{1'b0}};
  assign rd_en      = reads || again_valid;
  assign rd_slot    = again_valid ? again_slot : head_slot;
  assign rd_beat    = again_valid ? again_beat : next_reg;
  assign beat_valid = beat_valid_reg;
  assign beat_slot  = beat_slot_reg;
  assign beat_index = beat_index_reg;
  assign beat_pass  = beat_pass_reg;
  assign stalled    = ready && !reads;

endmodule

`default_nettype wire
