// Writes sums into the result cache, and tracks how much of each slot's result is written.
//
// A sum's tag precedes the sum by one cycle: the tag is in cycle 0, the sum and its write (wr_*)
// in cycle 1. The events begun (a slot's first sum, whichever beat that is) and reduced (its last)
// are in cycle 0; their users must not act before cycle 1. A slot's sums may come in any order.
// Each is counted when whole: a sum in several parts counts with its last part. A beat counts as
// written in the cycle of its write, so a read in the cycle of its query needs a cache that
// forwards.
//
// Not done here: holding back writes; agg_reader keeps entries that are being sent from being
// written.

`default_nettype none

module agg_writer #(
    parameter integer LANES      = 16,
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4,   // width of a beat's number in its chunk
    parameter integer COUNT_BITS = 5    // width of a number of lanes
) (
    input wire clk,
    input wire rst,

    input wire                  next_valid,     // a sum comes in the next cycle
    input wire                  next_whole,     // the whole sum of that beat, or its last part
    input wire [ SLOT_BITS-1:0] next_slot,
    input wire [INDEX_BITS-1:0] next_beat,
    input wire [INDEX_BITS-1:0] next_last,      // number of the last beat of the slot's chunk
    input wire [     LANES-1:0] sum_nonfinite,  // NaN or infinity, in the present sum or part
    input wire [     LANES-1:0] sum_over,       // overflow

    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,

    output wire begun,
    output wire reduced,
    output wire [COUNT_BITS-1:0] nonfinite,  // elements of the sum one cycle ago
    output wire [COUNT_BITS-1:0] overflow,

    input  wire [ SLOT_BITS-1:0] query_slot,
    input  wire [INDEX_BITS-1:0] query_beat,
    output wire                  query_written
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [INDEX_BITS-1:0] counts[0:SLOTS-1];  // beats written, for a slot that has begun
  reg [SLOTS-1:0] begun_reg;  // some beats are written, not all
  reg [SLOTS-1:0] whole_reg;  // all beats are written

  // The slot that began last, and how many of its beats are written without a gap.
  reg [SLOT_BITS-1:0] front_slot_reg;
  reg [INDEX_BITS:0] front_count_reg;

  reg wr_en_reg;
  reg [SLOT_BITS-1:0] wr_slot_reg;
  reg [INDEX_BITS-1:0] wr_beat_reg;
  reg [COUNT_BITS-1:0] nonfinite_reg, overflow_reg;
  reg [COUNT_BITS-1:0] nonfinites, overflows;  // sums over the lanes

  wire [INDEX_BITS-1:0] already = begun_reg[next_slot] ? counts[next_slot] : {INDEX_BITS{1'b0}};

  wire counts_next = next_valid && next_whole;

  assign begun   = counts_next && !begun_reg[next_slot];
  assign reduced = counts_next && already == next_last;

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

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the beats written since its sum began, in any order.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  localparam integer BEATS = 1 << INDEX_BITS;
  reg was_reset = 1'b0;
  reg known;  // it began in this job
  reg [BEATS-1:0] written;
  reg [INDEX_BITS:0] written_count;
  reg [INDEX_BITS-1:0] its_last;  // of the chunk that began last
  reg running_was = 1'b0;
  reg [SLOT_BITS+INDEX_BITS:0] tag_was;
  wire [BEATS-1:0] all = {BEATS{1'b1}} >> (BEATS - 1 - its_last);
  wire mine = next_valid && next_whole && next_slot == watched;
  wire anew = !known || written == all;
  wire [BEATS-1:0] written_now = (anew ? {BEATS{1'b0}} : written) | (1 << next_beat);
  wire [INDEX_BITS-1:0] last_now = anew ? next_last : its_last;
  wire [BEATS-1:0] all_now = {BEATS{1'b1}} >> (BEATS - 1 - last_now);
  wire under_way = known && written != all;
  reg front;  // it began last
  reg [INDEX_BITS:0] in_row;  // beats from the first on that came in order
  reg [COUNT_BITS-1:0] nonfinite_was, over_was, nonfinite_lanes, over_lanes;
  integer n;

  always @(posedge clk) begin
    if (mine) its_last <= last_now;
    running_was <= !rst;
    tag_was <= {next_valid, next_slot, next_beat};
    if (mine) begin
      known   <= 1'b1;
      written <= written_now;
    end
    if (begun) front <= mine;
    if (mine && anew) in_row <= next_beat == 0;
    else if (mine && next_beat == in_row) in_row <= in_row + 1;
    nonfinite_was <= wr_en ? nonfinite_lanes : 0;
    over_was <= wr_en ? over_lanes : 0;
    if (rst) begin
      was_reset <= 1'b1;
      known     <= 1'b0;
      front     <= 1'b0;
    end
  end

  always @* begin
    nonfinite_lanes = 0;
    over_lanes = 0;
    for (n = 0; n < LANES; n = n + 1) begin
      nonfinite_lanes = nonfinite_lanes + sum_nonfinite[n];
      over_lanes = over_lanes + sum_over[n];
    end
    written_count = 0;
    for (n = 0; n < BEATS; n = n + 1) written_count = written_count + written[n];
    if (was_reset && !rst) begin
      // agg_reader: all beats of a slot come, each once, before those of the slot's next chunk.
      `PROMISED(!mine || (next_beat <= last_now && (anew || !written[next_beat])));
      // agg_jobs: the chunk length does not change while sums are under way.
      `PROMISED(!mine || next_last == last_now);

      assert (!known || ((written & ~all) == 0 && written != 0));
      assert (begun_reg[watched] == under_way && (!known || whole_reg[watched] == !under_way));
      if (under_way) assert (counts[watched] == written_count);
      assert (!known || front == (front_slot_reg == watched));
      if (!known && front_slot_reg == watched) assert (front_count_reg == 0);
      if (front && under_way) assert (front_count_reg == in_row && in_row <= written_count);

      if (mine) begin
        assert (begun == anew);
        assert (reduced == (written_now == all_now));
      end
      if (!(next_valid && next_whole)) assert (!begun && !reduced);

      // A query hits only written beats, and hits all of them once the slot is whole.
      if (known && query_slot == watched && query_beat <= its_last) begin
        assert (!query_written || written[query_beat]);
        assert (query_written || written != all);
        assert (query_written || !front || query_beat >= in_row);
      end
      if (!known && query_slot == watched) assert (!query_written);
      if (!known) assert (!whole_reg[watched]);
      for (n = 0; n < BEATS; n = n + 1) if (front && under_way && n < in_row) assert (written[n]);
      if (!running_was) assert (!wr_en);
      if (running_was) assert (nonfinite == nonfinite_was && overflow == over_was);
      if (running_was)
        assert ({wr_en, wr_en ? {wr_slot, wr_beat} : tag_was[SLOT_BITS+INDEX_BITS-1:0]} == tag_was);

      cover (mine && reduced && next_beat == 0 && next_last == 2);
      cover (known && query_slot == watched && query_written && under_way && query_beat == 1);
      cover (mine && !anew && next_slot != front_slot_reg);
      cover (begun && reduced);
    end
  end
`endif

endmodule

`default_nettype wire
