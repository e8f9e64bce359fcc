// Writes sums into the result cache, and tracks how much of each slot's result is written.
//
// A sum's tag precedes the sum by two cycles: the tag (next_*) is in cycle 0, the address of its
// write (wr_*) in cycle 1, the sum in cycle 2. A slot's first passes come in the order of its beats,
// slot after slot. With PASSES, a first pass may leave its beat incomplete (next_whole low). Later, a
// further pass with next_whole completes that beat, in any order, and not within 6 cycles of another
// such pass.
//
// A result is whole when all of its beats are. Its slot's generation, which is 1 for the slot's
// first chunk in a job and alternates, then goes to a memory: so the word of a slot shows whether
// its present chunk is whole. The slot whose first passes came last, the *front*, is also readable
// up to its first incomplete beat.
//
// Latency: reduced, for a slot whose last beat has its tag in cycle 0, is high in cycle 1; with
// PASSES up to 3 cycles later. reduces precedes it by a cycle, and is no register. A query has two
// beats; query_after, which may come late, selects one. A query in cycle 0 is answered in cycle 1,
// and counts a beat as written from the cycle of its tag on: its word can be read in cycle 1, the
// cycle of its address, or later, so the cache must forward. written follows a sum by one cycle,
// nonfinite and overflow by two.
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

    input wire                 clear,      // no chunk of the slot was whole; not with reduced
    input wire [SLOT_BITS-1:0] clear_slot,

    input wire                  next_valid,     // a sum comes two cycles later
    input wire                  next_again,     // in a further pass of its beat
    input wire                  next_whole,     // it completes its beat
    input wire                  next_last,      // the beat is the last of its chunk
    input wire [ SLOT_BITS-1:0] next_slot,
    input wire                  next_gen,       // the slot's generation
    input wire [  JOB_BITS-1:0] next_job,
    input wire [INDEX_BITS-1:0] next_beat,
    input wire [     LANES-1:0] sum_nonfinite,  // NaN or infinity, in the present sum
    input wire [     LANES-1:0] sum_over,       // overflow

    output wire                  wr_en,    // the sum is in the next cycle
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,

    output wire                 reduces,       // reduced is high in the next cycle, unless rst is
    output wire                 reduced,       // a slot's result is whole
    output wire [SLOT_BITS-1:0] reduced_slot,
    output wire                 reduced_gen,
    output wire [ JOB_BITS-1:0] reduced_job,

    output wire [ SLOT_BITS-1:0] sum_slot,     // of the present sum
    output wire                  written,      // a sum was written in the last cycle
    output wire [  JOB_BITS-1:0] written_job,
    output wire [COUNT_BITS-1:0] nonfinite,    // elements of the sum two cycles ago
    output wire [COUNT_BITS-1:0] overflow,

    input  wire [ SLOT_BITS-1:0] query_slot,
    input  wire                  query_gen,
    input  wire [INDEX_BITS-1:0] query_beat,
    input  wire [ SLOT_BITS-1:0] after_slot,
    input  wire                  after_gen,
    input  wire [INDEX_BITS-1:0] after_beat,
    input  wire                  query_after,   // the query is about after_*
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
  wire completes = PASSES != 0 && next_valid && next_again && next_whole;
  wire completes_front = completes && front_open_reg && next_slot == front_slot_reg;

  wire [INDEX_BITS:0] missing = begins ? NONE : missing_reg;
  wire [INDEX_BITS:0] missing_next = missing + {{INDEX_BITS{1'b0}}, !next_whole};
  wire in_order = next_whole && (begins || missing_reg == NONE);  // missing_next is NONE
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
    if (clear && clear_slot == front_slot_reg) front_count_reg <= NONE;
    if (rst) begin
      front_open_reg  <= 1'b0;
      front_count_reg <= NONE;
      missing_reg     <= NONE;
    end
  end

  // -- Slots of which a beat is incomplete --------------------------------------------------------

  // One completion waits for its slot's word, and for a cycle in which no front ends.
  reg late_reg, late_read_reg;
  reg [SLOT_BITS-1:0] late_slot_reg;
  reg late_gen_reg;
  reg [JOB_BITS-1:0] late_job_reg;
  wire [INDEX_BITS:0] left;  // incomplete beats of that slot
  wire acts = late_reg && late_read_reg && !ends;
  wire late_whole = acts && left == ONE;

  always @(posedge clk) begin
    late_read_reg <= late_reg && !acts;
    if (acts) late_reg <= 1'b0;
    if (completes && !completes_front) begin
      late_reg      <= 1'b1;
      late_slot_reg <= next_slot;
      late_gen_reg  <= next_gen;
      late_job_reg  <= next_job;
    end
    if (rst) begin
      late_reg      <= 1'b0;
      late_read_reg <= 1'b0;
    end
  end

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [INDEX_BITS:0] lefts[0:SLOTS-1];
  reg [INDEX_BITS:0] left_reg;

  always @(posedge clk) begin
    if (ends || acts) lefts[ends?next_slot : late_slot_reg] <= ends ? missing_next : left - ONE;
    left_reg <= lefts[late_slot_reg];
  end

  assign left = left_reg;

  // -- Whole results ------------------------------------------------------------------------------

  wire whole_now = ends && in_order;
  wire reduced_next = whole_now || late_whole;
  wire [SLOT_BITS-1:0] whole_slot = whole_now ? next_slot : late_slot_reg;
  wire whole_gen = whole_now ? next_gen : late_gen_reg;

  reg reduced_reg, reduced_gen_reg;
  reg [SLOT_BITS-1:0] reduced_slot_reg;
  reg [JOB_BITS-1:0] reduced_job_reg;
  reg wholes[0:SLOTS-1];  // generations of the slots' last whole chunks

  // Either query may be meant: which one comes late.
  wire query_in_front = query_slot == front_slot_reg && query_gen == front_gen_reg &&
      {1'b0, query_beat} < front_count_reg;
  wire query_comes = first && in_order && query_slot == next_slot && query_gen == next_gen &&
      query_beat == next_beat;
  wire query_whole = wholes[query_slot] == query_gen;

  wire after_in_front = after_slot == front_slot_reg && after_gen == front_gen_reg &&
      {1'b0, after_beat} < front_count_reg;
  wire after_comes = first && in_order && after_slot == next_slot && after_gen == next_gen &&
      after_beat == next_beat;
  wire after_whole = wholes[after_slot] == after_gen;

  reg in_front_reg, comes_reg, whole_reg;

  always @(posedge clk) begin
    reduced_reg      <= reduced_next && !rst;
    reduced_slot_reg <= whole_slot;
    reduced_gen_reg  <= whole_gen;
    reduced_job_reg  <= whole_now ? next_job : late_job_reg;
    in_front_reg     <= query_after ? after_in_front : query_in_front;
    comes_reg        <= query_after ? after_comes : query_comes;
    whole_reg        <= query_after ? after_whole : query_whole;
    if (reduced_reg || clear)
      wholes[reduced_reg?reduced_slot_reg : clear_slot] <= reduced_reg && reduced_gen_reg;
  end

  assign query_written = in_front_reg || comes_reg || whole_reg;

  // -- Write and counts ---------------------------------------------------------------------------

  reg wr_en_reg, sum_reg, written_reg;
  reg [ SLOT_BITS-1:0] sum_slot_reg;
  reg [ SLOT_BITS-1:0] wr_slot_reg;
  reg [INDEX_BITS-1:0] wr_beat_reg;
  reg [JOB_BITS-1:0] wr_job_reg, sum_job_reg, written_job_reg;
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
    sum_reg             <= wr_en_reg && !rst;
    sum_slot_reg        <= wr_slot_reg;
    sum_job_reg         <= wr_job_reg;
    written_reg         <= sum_reg && !rst;
    written_job_reg     <= sum_job_reg;
    nonfinite_marks_reg <= sum_reg ? sum_nonfinite : {LANES{1'b0}};
    over_marks_reg      <= sum_reg ? sum_over : {LANES{1'b0}};
    nonfinite_reg       <= nonfinites;
    overflow_reg        <= overflows;
  end

  assign wr_en        = wr_en_reg;
  assign wr_slot      = wr_slot_reg;
  assign wr_beat      = wr_beat_reg;
  assign sum_slot     = sum_slot_reg;
  assign reduces      = reduced_next;
  assign reduced      = reduced_reg;
  assign reduced_slot = reduced_slot_reg;
  assign reduced_gen  = reduced_gen_reg;
  assign reduced_job  = reduced_job_reg;
  assign written      = written_reg;
  assign written_job  = written_job_reg;
  assign nonfinite    = nonfinite_reg;
  assign overflow     = overflow_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the beats of its present chunk whose first pass was made, and those that were left
  // incomplete.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  localparam integer BEATS = 1 << INDEX_BITS;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg running_before = 1'b0;  // for two cycles
  reg reduces_was = 1'b0;
  reg cleared;  // the slot's memories are cleared
  reg known;  // a chunk of it has begun
  reg gen;
  reg [INDEX_BITS:0] came;  // first passes
  reg all_came;
  reg [BEATS-1:0] incomplete;
  reg [JOB_BITS-1:0] its_job;
  reg whole;
  reg reported;  // reduced was high, or the chunk is not whole
  // The chunk whose first passes are coming, of any slot.
  reg open;
  reg [SLOT_BITS-1:0] open_slot;
  reg open_gen;
  reg [INDEX_BITS:0] open_came;
  reg began;  // a slot's first pass began in the last cycle
  reg [3:0] quiet;  // cycles since a further pass completed a beat
  wire mine = next_valid && next_slot == watched;
  wire mine_first = mine && !next_again;
  wire mine_completes = mine && next_again && next_whole;
  wire [BEATS-1:0] its_bit = 1 << next_beat;
  wire [BEATS-1:0] incomplete_next = next_again ? incomplete & ~its_bit :
      (next_beat == 0 ? 0 : incomplete) | (next_whole ? 0 : its_bit);
  wire starts_now = mine_first && next_beat == 0;
  wire its_reduced = reduced && reduced_slot == watched;
  // A query one cycle ago of the watched slot, and what was written then.
  wire [SLOT_BITS-1:0] asks_slot = query_after ? after_slot : query_slot;
  wire asks_gen = query_after ? after_gen : query_gen;
  wire [INDEX_BITS-1:0] asks_beat = query_after ? after_beat : query_beat;
  reg asked, asked_known, asked_beat_written;
  reg asked_whole;  // whole, and reported, then
  reg asked_cleared;  // of its first chunk, before that began
  reg [COUNT_BITS-1:0] nonfinite_lanes, over_lanes, nonfinite_was, over_was;
  reg [LANES-1:0] marks_was, overs_was;
  reg [SLOT_BITS+INDEX_BITS:0] tag_was;
  reg sums, sums_was;  // a sum is here now; was here one cycle ago
  reg [SLOT_BITS-1:0] sums_slot;
  reg [INDEX_BITS:0] missing_count, prefix;
  wire waits = PASSES != 0 && late_reg && late_slot_reg == watched;
  integer n;

  always @(posedge clk) begin
    running_was <= !rst;
    reduces_was <= reduces && !rst;
    running_before <= running_was && !rst;
    tag_was <= {next_valid && !rst, next_slot, next_beat};
    if (mine_first && next_beat == 0) begin
      known <= 1'b1;
      gen <= next_gen;
      its_job <= next_job;
    end
    if (mine_first) begin
      came <= next_beat + 1;
      all_came <= next_last;
    end
    if (mine_first || mine_completes) begin
      incomplete <= incomplete_next;
      whole <= (next_again ? all_came : next_last) && incomplete_next == 0;
      reported <= 1'b0;
    end
    if (its_reduced) reported <= 1'b1;
    if (next_valid && !next_again) begin
      open <= !next_last;
      open_slot <= next_slot;
      open_gen <= next_gen;
      open_came <= next_beat + 1;
    end
    began <= next_valid && !next_again && next_beat == 0;
    quiet <= completes ? 0 : quiet + (quiet != 15);
    asked <= asks_slot == watched && (starts_now || known) &&
        asks_gen == (starts_now ? next_gen : gen) &&
        (!(mine_first ? next_last : all_came) || asks_beat < (mine_first ? next_beat + 1 : came));
    asked_beat_written <= asks_beat < (mine_first ? next_beat + 1 : came) &&
        !(mine_first || mine_completes ? incomplete_next[asks_beat] : incomplete[asks_beat]);
    asked_whole <= whole && reported && !starts_now && asks_beat < came;
    nonfinite_was <= nonfinite_lanes;
    over_was <= over_lanes;
    asked_cleared <= asks_slot == watched && cleared && !known && !starts_now && asks_gen && !rst;
    sums <= tag_was[SLOT_BITS+INDEX_BITS] && !rst;
    sums_was <= sums && !rst;
    sums_slot <= tag_was[INDEX_BITS+:SLOT_BITS];
    marks_was <= sums ? sum_nonfinite : 0;
    overs_was <= sums ? sum_over : 0;
    if (clear && clear_slot == watched) begin
      cleared <= 1'b1;
      known   <= 1'b0;
    end
    if (rst) begin
      was_reset <= 1'b1;
      cleared <= 1'b0;
      known <= 1'b0;
      open <= 1'b0;
      quiet <= 15;
      asked <= 1'b0;
    end
  end

  always @* begin
    nonfinite_lanes = 0;
    over_lanes = 0;
    for (n = 0; n < LANES; n = n + 1) begin
      nonfinite_lanes = nonfinite_lanes + marks_was[n];
      over_lanes = over_lanes + overs_was[n];
    end
    missing_count = 0;
    prefix = came;
    for (n = BEATS - 1; n >= 0; n = n - 1) begin
      missing_count = missing_count + incomplete[n];
      if (incomplete[n]) prefix = n;
    end
    if (was_reset) begin
      // agg_reader: first passes in order, slot after slot, and slots begin at most every second
      // cycle; a slot is read after it was cleared, and
      // again only after its last chunk was whole.
      `PROMISED(!(next_valid && !next_again) || next_beat == (open ? open_came : 0));
      `PROMISED(!(next_valid && !next_again && next_beat == 0 && began));
      `PROMISED(
          !(next_valid && !next_again && open) || (next_slot == open_slot && next_gen == open_gen));
      `PROMISED(
          !mine_first || (cleared && (next_beat != 0 || (known ? whole && reported &&
                next_gen != gen : next_gen))));
      `PROMISED(!mine_first || next_beat == 0 || next_job == its_job);
      `PROMISED(!(&next_beat) || next_last || next_again);
      `PROMISED(PASSES != 0 || !next_valid || (next_whole && !next_again));
      // The queue of undecided beats: it completes only incomplete beats, each once, far from each
      // other.
      `PROMISED(
          !mine_completes || (known && incomplete[next_beat] && next_gen == gen &&
                                    next_job == its_job));
      `PROMISED(!completes || quiet > 4);
      // agg_jobs: only slots of which nothing is under way are cleared, and not with reduced.
      `PROMISED(!clear || !reduced);
      `PROMISED(!(clear && clear_slot == watched) || (!mine && (!known || (whole && reported))));
      `PROMISED(!(open && clear && clear_slot == open_slot));
    end
    if (was_reset && !rst) begin
      if (known) assert (cleared && came != 0 && came <= BEATS);
      if (known) assert (whole == (all_came && incomplete == 0));
      for (n = 0; n < BEATS; n = n + 1) if (known && n >= came) assert (!incomplete[n]);
      assert (reduced == reduces_was);
      if (mine_first) assert (in_order == (missing_next == NONE));
      assert (open == front_open_reg);
      if (open) assert (open_slot == front_slot_reg && open_gen == front_gen_reg);
      if (open && open_slot == watched) begin
        assert (known && !all_came && open_came == came && gen == open_gen);
        assert (missing_reg == missing_count && !waits);
      end
      if (known && !all_came) assert (open && open_slot == watched);
      if (!known && cleared && front_slot_reg == watched) assert (front_count_reg == 0);
      if (known && front_slot_reg == watched)
        assert (front_gen_reg == gen && front_count_reg <= prefix);
      if (PASSES != 0 && known && all_came && (!whole || waits))
        assert (lefts[watched] == missing_count + waits);
      if (known && whole) assert (reported || reduced_reg && reduced_slot_reg == watched || waits);
      if (known) assert (wholes[watched] == (whole && reported ? gen : !gen));
      if (cleared && !known) assert (wholes[watched] == 1'b0);
      if (waits) assert (known && all_came && late_gen_reg == gen && late_job_reg == its_job);
      if (late_reg) assert (quiet < 4);

      // A result is reported once, when all its beats are written.
      if (its_reduced)
        assert (known && whole && !reported && reduced_gen == gen && reduced_job == its_job);
      // A query hits only written beats, and hits every beat of a whole result.
      if (asked) begin
        assert (!query_written || asked_beat_written);
        assert (query_written || !asked_whole);
      end
      if (asked_cleared) assert (!query_written);

      cover (its_reduced && came == 3 && wholes[watched]);
      cover (asked && query_written && !whole && query_beat == 1);
      cover (PASSES == 0 || (acts && !late_whole));
      cover (PASSES == 0 || (its_reduced && open && open_slot != watched));
    end
    if (was_reset && running_was && !rst) begin
      assert (wr_en == tag_was[SLOT_BITS+INDEX_BITS]);
      if (wr_en) assert ({wr_slot, wr_beat} == tag_was[SLOT_BITS+INDEX_BITS-1:0]);
      assert (written == sums_was && (!sums || sum_slot == sums_slot));
      if (running_before) assert (nonfinite == nonfinite_was && overflow == over_was);
    end
  end
`endif

endmodule

`default_nettype wire
