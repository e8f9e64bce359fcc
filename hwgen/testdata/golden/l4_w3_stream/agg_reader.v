// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

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
  wire                  pops = reads && last;
  wire                  drops = rst || (flush && begins);

  agg_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_complete (
      .clk       (clk),
      .clear     (drops),
      .push      (complete),
      .push_slot (complete_slot),
      .head_valid(head_valid),
      .head_slot (head_slot),
      .pop       (pops)
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

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The slot that is being read, its next beat, and the slots that are on their way.
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [INDEX_BITS-1:0] beat, last_was;
  reg [31:0] on_way;
  reg head_was, kept_was, flush_was, read_was, pass_was;
  reg [SLOT_BITS-1:0] slot_was, rd_slot_was, begun_slot;
  reg [INDEX_BITS-1:0] rd_beat_was;
  wire new_beat = rd_en && !again_valid;
  wire new_slot = new_beat && rd_beat == 0;
  wire may_begin = !flush && !(sending && sending_slot == head_slot);

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    beat <= rst ? 0 : !new_beat ? beat : beat == job_last ? 0 : beat + 1;
    on_way <= rst ? 0 : on_way + new_slot - reduced;
    last_was <= job_last;
    flush_was <= flush;
    head_was <= head_valid && !(new_beat && beat == job_last) && !(flush && beat == 0);
    slot_was <= head_slot;
    read_was <= rd_en;
    rd_slot_was <= rd_slot;
    if (new_slot) begun_slot <= rd_slot;
    rd_beat_was <= rd_beat;
    pass_was <= again_valid;
  end

  always @* begin
    if (rst) assert (drops);
    if (was_reset) begin
      // agg_slot_fifo keeps its head until it is popped or the queue cleared.
      assume (!running_was || !head_was || (head_valid && head_slot == slot_was));
      // agg_jobs changes the length of chunks when nothing is on its way; agg_writer says reduced once
      // for each slot of which a beat was read, no sooner than a cycle after; there are no more slots.
      `PROMISED(job_last == last_was || beat == 0);
      `PROMISED(!reduced || on_way != 0);
      `PROMISED(!new_slot || on_way < 1 << SLOT_BITS);
    end
    if (was_reset && !rst) begin

      assert (next_reg == beat && beat <= job_last);
      assert (beat == 0 || head_valid);  // a slot that was begun is read to its end
      if (new_beat) assert (head_valid && rd_slot == head_slot && rd_beat == beat && !stop);
      if (new_beat && beat != 0) assert (rd_slot == begun_slot);
      assert (pops == (new_beat && beat == job_last) && drops == (flush && beat == 0));
      if (beat != 0) assert (head_slot == begun_slot);
      if (again_valid) assert (rd_en && rd_slot == again_slot && rd_beat == again_beat);

      // A slot's first beat waits for its entry, and for no job's end; nothing else waits.
      if (new_slot) assert (!flush && !(sending && sending_slot == rd_slot));
      if (head_valid && !again_valid && !stop && (beat != 0 || may_begin)) assert (new_beat);
      assert (on_way_reg == on_way && on_way <= 1 << SLOT_BITS);
      assert (drained == (on_way == 0));
      assert (!stalled || (!new_beat && (stop || again_valid)));

      if (running_was) assert (beat_valid == read_was);
      if (!running_was) assert (!beat_valid);
      if (running_was && beat_valid)
        assert (beat_slot == rd_slot_was && beat_index == rd_beat_was && beat_pass == pass_was);

      cover (new_beat && flush && beat == job_last && beat != 0);
      cover (new_slot && reduced && job_last == 0);
      cover (new_slot && read_was && rd_slot_was != rd_slot && job_last != 0);
      cover (again_valid && stalled);
    end
  end
`endif

endmodule

`default_nettype wire
