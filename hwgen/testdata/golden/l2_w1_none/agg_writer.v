// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// Writes sums into the result cache, and knows how much of each slot's result is there.
//
// A sum's tag comes one cycle before the sum: in cycle 0 the tag, in cycle 1 the sum and its write
// (wr_*). The events begun (the slot's first sum, in whatever order they come) and reduced (its
// last) stand in cycle 0; whoever acts on them acts in cycle 1 or later. Sums of one slot may come
// in any order; they are counted, each when it is whole: of a sum that comes in parts, the last part
// counts. What `query` asks is answered for a read in the same cycle: a
// beat counts as written in the cycle of its write, so the cache must forward.
//
// Not done here: it does not hold back a write; the reader sees to it that no entry is written
// while it is sent.

`default_nettype none

module agg_writer #(
    parameter integer LANES      = 16,
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4,   // of a beat's number in its chunk
    parameter integer COUNT_BITS = 5    // of the number of lanes
) (
    input wire clk,
    input wire rst,

    input wire [INDEX_BITS-1:0] job_last,  // number of a chunk's last beat

    input wire                  next_valid,     // a sum comes in the next cycle
    input wire                  next_whole,     // it is all of that beat, or its last part
    input wire [ SLOT_BITS-1:0] next_slot,
    input wire [INDEX_BITS-1:0] next_beat,
    input wire [     LANES-1:0] sum_nonfinite,  // of this cycle's sum or part: a NaN or an infinity
    input wire [     LANES-1:0] sum_over,       // it overflowed

    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,

    output wire begun,
    output wire reduced,
    output wire [COUNT_BITS-1:0] nonfinite,  // elements of the sum a cycle ago
    output wire [COUNT_BITS-1:0] overflow,

    input  wire [ SLOT_BITS-1:0] query_slot,
    input  wire [INDEX_BITS-1:0] query_beat,
    output wire                  query_written
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [INDEX_BITS-1:0] counts[0:SLOTS-1];  // beats written of a slot that has begun
  reg [SLOTS-1:0] begun_reg;  // some beats are written, not all
  reg [SLOTS-1:0] whole_reg;  // all beats are written

  // Of the slot that began last, as many beats from its first one on are written without a gap.
  reg [SLOT_BITS-1:0] front_slot_reg;
  reg [INDEX_BITS:0] front_count_reg;

  reg wr_en_reg;
  reg [SLOT_BITS-1:0] wr_slot_reg;
  reg [INDEX_BITS-1:0] wr_beat_reg;
  reg [COUNT_BITS-1:0] nonfinite_reg, overflow_reg;
  reg [COUNT_BITS-1:0] nonfinites, overflows;  // of the lanes

  wire [INDEX_BITS-1:0] already = begun_reg[next_slot] ? counts[next_slot] : {INDEX_BITS{1'b0}};

  wire counts_next = next_valid && next_whole;

  assign begun   = counts_next && !begun_reg[next_slot];
  assign reduced = counts_next && already == job_last;

  wire in_order = next_slot == front_slot_reg && {1'b0, next_beat} == front_count_reg;

  integer lane;

  always @* begin
    nonfinites = {COUNT_BITS{1'b0}};
    overflows  = {COUNT_BITS{1'b0}};
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinites = nonfinites + {{COUNT_BITS - 1{1'b0}}, sum_nonfinite[lane]};
      overflows  = overflows + {{COUNT_BITS - 1{1'b0}}, sum_over[lane]};
    end
  end

  always @(posedge clk) begin
    wr_en_reg     <= next_valid;
    wr_slot_reg   <= next_slot;
    wr_beat_reg   <= next_beat;
    nonfinite_reg <= wr_en_reg ? nonfinites : {COUNT_BITS{1'b0}};
    overflow_reg  <= wr_en_reg ? overflows : {COUNT_BITS{1'b0}};
    if (counts_next) begin
      counts[next_slot]    <= already + 1'b1;
      begun_reg[next_slot] <= !reduced;
      whole_reg[next_slot] <= reduced;
    end
    if (begun) begin
      front_slot_reg  <= next_slot;
      front_count_reg <= {{INDEX_BITS{1'b0}}, next_beat == {INDEX_BITS{1'b0}}};
    end else if (counts_next && in_order) begin
      front_count_reg <= front_count_reg + 1'b1;
    end
    if (rst) begin
      wr_en_reg       <= 1'b0;
      begun_reg       <= {SLOTS{1'b0}};
      whole_reg       <= {SLOTS{1'b0}};
      front_count_reg <= {INDEX_BITS + 1{1'b0}};
    end
  end

  assign wr_en = wr_en_reg;
  assign wr_slot = wr_slot_reg;
  assign wr_beat = wr_beat_reg;
  assign nonfinite = nonfinite_reg;
  assign overflow = overflow_reg;
  assign query_written = whole_reg[query_slot] ||
      (query_slot == front_slot_reg && {1'b0, query_beat} < front_count_reg);

endmodule

`default_nettype wire
