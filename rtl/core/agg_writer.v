// Writes sums into the result cache, and tracks how much of each slot's result is written.
//
// A sum's tag precedes the sum by one cycle: the tag (next_*) is in cycle 0, the sum and its write
// (wr_*) in cycle 1. A slot's first passes come in the order of its beats, slot after slot. With
// PASSES, a first pass may leave its beat incomplete (next_whole low). Later, a further pass with
// next_whole completes that beat, in any order, and not within 4 cycles of another such pass.
//
// A result is whole when all of its beats are. Its slot's generation, which is 1 for the slot's
// first chunk in a job and alternates, then goes to a memory: so the word of a slot shows whether
// its present chunk is whole. The slot whose first passes came last, the *front*, is also readable
// up to its first incomplete beat.
//
// Latency: reduced, for a slot whose last beat has its tag in cycle 0, is high in cycle 1; with
// PASSES up to 3 cycles later. A query in cycle 0 is answered in cycle 1, and counts a beat as
// written from the cycle of its write on: its word can be read in cycle 1 or later. nonfinite and
// overflow follow a write by 2 cycles.
//
// Not done here: holding back writes; agg_reader keeps entries that are being sent from being
// written.

`default_nettype none

module agg_writer #(
    parameter integer LANES      = 16,
    parameter integer JOB_BITS   = 1,
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4,   // width of a beat's number in its chunk
    parameter integer COUNT_BITS = 5,   // width of a number of lanes
    parameter integer PASSES     = 0    // 1: a beat may take several passes
) (
    input wire clk,
    input wire rst,

    input wire                 clear,  // no chunk of the slot was whole; not with reduced
    input wire [SLOT_BITS-1:0] clear_slot,

    input wire                  next_valid,     // a sum comes in the next cycle
    input wire                  next_again,     // in a further pass of its beat
    input wire                  next_whole,     // it completes its beat
    input wire                  next_last,      // the beat is the last of its chunk
    input wire [ SLOT_BITS-1:0] next_slot,
    input wire                  next_gen,       // the slot's generation
    input wire [  JOB_BITS-1:0] next_job,
    input wire [INDEX_BITS-1:0] next_beat,
    input wire [     LANES-1:0] sum_nonfinite,  // NaN or infinity, in the present sum
    input wire [     LANES-1:0] sum_over,       // overflow

    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,

    output wire                 reduced,       // a slot's result is whole
    output wire [SLOT_BITS-1:0] reduced_slot,
    output wire                 reduced_gen,
    output wire [ JOB_BITS-1:0] reduced_job,

    output wire                  written,     // a sum was written in the last cycle
    output wire [  JOB_BITS-1:0] written_job,
    output wire [COUNT_BITS-1:0] nonfinite,   // elements of the sum two cycles ago
    output wire [COUNT_BITS-1:0] overflow,

    input  wire [ SLOT_BITS-1:0] query_slot,
    input  wire                  query_gen,
    input  wire [INDEX_BITS-1:0] query_beat,
    output wire                  query_written
);

  localparam [INDEX_BITS:0] NONE = 0;
  localparam [INDEX_BITS:0] ONE = 1;

  // -- Front --------------------------------------------------------------------------------------

  reg [SLOT_BITS-1:0] front_slot_reg;
  reg front_gen_reg;
  reg [INDEX_BITS:0] front_count_reg;  // beats written before the first incomplete one
  reg [INDEX_BITS:0] missing_reg;  // incomplete beats
  reg front_open_reg;  // first passes are still to come

  wire first = next_valid && !next_again;
  wire begins = next_beat == {INDEX_BITS{1'b0}};
  wire completes = next_valid && next_again && next_whole;
  wire completes_front = completes && front_open_reg && next_slot == front_slot_reg;

  wire [INDEX_BITS:0] missing = begins ? NONE : missing_reg;
  wire [INDEX_BITS:0] missing_next = missing + {{INDEX_BITS{1'b0}}, !next_whole};
  wire in_order = missing_next == NONE;
  wire ends = first && next_last;

  always @(posedge clk) begin
    if (first) begin
      front_slot_reg  <= next_slot;
      front_gen_reg   <= next_gen;
      front_open_reg  <= !next_last;
      front_count_reg <= in_order ? {1'b0, next_beat} + ONE : begins ? NONE : front_count_reg;
      missing_reg     <= missing_next;
    end else if (completes_front) begin
      missing_reg <= missing_reg - ONE;
    end
    if (rst) begin
      front_open_reg  <= 1'b0;
      front_count_reg <= NONE;
      missing_reg     <= NONE;
    end
  end

  // -- Slots of which a beat is incomplete --------------------------------------------------------

  wire late_whole;  // the slot's last incomplete beat is completed
  wire [SLOT_BITS-1:0] late_slot;
  wire late_gen;
  wire [JOB_BITS-1:0] late_job;

  generate
    if (PASSES == 0) begin : g_one_pass
      wire unused = &{1'b0, completes, completes_front};
      assign late_whole = 1'b0;
      assign late_slot  = {SLOT_BITS{1'b0}};
      assign late_gen   = 1'b0;
      assign late_job   = {JOB_BITS{1'b0}};
    end else begin : g_passes
      // One completion waits for its slot's word, and for a cycle in which no front ends.
      reg waits_reg, read_reg;
      reg [SLOT_BITS-1:0] slot_reg;
      reg gen_reg;
      reg [JOB_BITS-1:0] job_reg;
      wire [INDEX_BITS:0] left;
      wire acts = waits_reg && read_reg && !ends;

      always @(posedge clk) begin
        read_reg <= waits_reg && !acts;
        if (acts) waits_reg <= 1'b0;
        if (completes && !completes_front) begin
          waits_reg <= 1'b1;
          slot_reg  <= next_slot;
          gen_reg   <= next_gen;
          job_reg   <= next_job;
        end
        if (rst) begin
          waits_reg <= 1'b0;
          read_reg  <= 1'b0;
        end
      end

      agg_ram #(
          .WIDTH    (INDEX_BITS + 1),
          .ADDR_BITS(SLOT_BITS)
      ) u_left (
          .clk    (clk),
          .wr_en  (ends || acts),
          .wr_addr(ends ? next_slot : slot_reg),
          .wr_data(ends ? missing_next : left - ONE),
          .rd_en  (1'b1),
          .rd_addr(slot_reg),
          .rd_data(left)
      );

      assign late_whole = acts && left == ONE;
      assign late_slot  = slot_reg;
      assign late_gen   = gen_reg;
      assign late_job   = job_reg;
    end
  endgenerate

  // -- Whole results ------------------------------------------------------------------------------

  wire whole_now = ends && missing_next == NONE;
  wire reduced_next = whole_now || late_whole;
  wire [SLOT_BITS-1:0] whole_slot = whole_now ? next_slot : late_slot;
  wire whole_gen = whole_now ? next_gen : late_gen;

  reg reduced_reg, reduced_gen_reg;
  reg [SLOT_BITS-1:0] reduced_slot_reg;
  reg [JOB_BITS-1:0] reduced_job_reg;
  reg in_front_reg, query_gen_reg;
  wire last_whole;  // generation of the slot's last whole chunk

  wire in_front = query_slot == front_slot_reg && query_gen == front_gen_reg &&
      {1'b0, query_beat} < front_count_reg;

  always @(posedge clk) begin
    reduced_reg      <= reduced_next && !rst;
    reduced_slot_reg <= whole_slot;
    reduced_gen_reg  <= whole_gen;
    reduced_job_reg  <= whole_now ? next_job : late_job;
    in_front_reg     <= in_front;
    query_gen_reg    <= query_gen;
  end

  agg_ram #(
      .WIDTH    (1),
      .ADDR_BITS(SLOT_BITS)
  ) u_whole (
      .clk    (clk),
      .wr_en  (reduced_reg || clear),
      .wr_addr(reduced_reg ? reduced_slot_reg : clear_slot),
      .wr_data(reduced_reg && reduced_gen_reg),
      .rd_en  (1'b1),
      .rd_addr(query_slot),
      .rd_data(last_whole)
  );

  assign query_written = in_front_reg || last_whole == query_gen_reg;

  // -- Write and counts ---------------------------------------------------------------------------

  reg wr_en_reg, written_reg;
  reg [SLOT_BITS-1:0] wr_slot_reg;
  reg [INDEX_BITS-1:0] wr_beat_reg;
  reg [JOB_BITS-1:0] wr_job_reg, written_job_reg;
  reg [LANES-1:0] nonfinite_marks_reg, over_marks_reg;
  reg [COUNT_BITS-1:0] nonfinite_reg, overflow_reg;
  reg [COUNT_BITS-1:0] nonfinites, overflows;  // sums over the lanes

  integer lane;

  always @* begin
    nonfinites = {COUNT_BITS{1'b0}};
    overflows  = {COUNT_BITS{1'b0}};
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinites = nonfinites + {{COUNT_BITS - 1{1'b0}}, nonfinite_marks_reg[lane]};
      overflows  = overflows + {{COUNT_BITS - 1{1'b0}}, over_marks_reg[lane]};
    end
  end

  always @(posedge clk) begin
    wr_en_reg           <= next_valid && !rst;
    wr_slot_reg         <= next_slot;
    wr_beat_reg         <= next_beat;
    wr_job_reg          <= next_job;
    written_reg         <= wr_en_reg && !rst;
    written_job_reg     <= wr_job_reg;
    nonfinite_marks_reg <= wr_en_reg ? sum_nonfinite : {LANES{1'b0}};
    over_marks_reg      <= wr_en_reg ? sum_over : {LANES{1'b0}};
    nonfinite_reg       <= nonfinites;
    overflow_reg        <= overflows;
  end

  assign wr_en        = wr_en_reg;
  assign wr_slot      = wr_slot_reg;
  assign wr_beat      = wr_beat_reg;
  assign reduced      = reduced_reg;
  assign reduced_slot = reduced_slot_reg;
  assign reduced_gen  = reduced_gen_reg;
  assign reduced_job  = reduced_job_reg;
  assign written      = written_reg;
  assign written_job  = written_job_reg;
  assign nonfinite    = nonfinite_reg;
  assign overflow     = overflow_reg;

endmodule

`default_nettype wire
