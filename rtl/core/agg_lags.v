// Counts the lag of each rank's contributions behind the first contribution to the same chunk.
//
// Each job and rank has 16 counts: count 0 for first contributions; count k for lags of at least
// 4^(k-1) and less than 4^k cycles; count 15 for all longer lags too. Counts wrap at 2^32.
// Setting up a job clears its counts, one a cycle; while ready is low, the job must store
// nothing. Contributions are stored at least two cycles apart: then a count is written by the time
// at which the second next contribution reads it.
//
// Latency: a contribution stored in cycle 0 is counted in cycle 7. A count addressed in cycles 0
// and 1 is at value in cycle 3, with the contribution that is counted in cycle 0, and without the
// one that is counted in cycle 1. Not done here: a contribution that never comes (agg_deadlines).

`default_nettype none

module agg_lags #(
    parameter integer RANK_BITS = 2,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input  wire                clear,      // starts clearing the counts of a new job
    input  wire [JOB_BITS-1:0] clear_job,  // that job; stable until ready
    output wire                ready,

    // A contribution is stored
    input wire                 store,
    input wire                 turn_over,  // the first of its chunk
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire [RANK_BITS-1:0] rank,

    // A count is read
    input  wire [ JOB_BITS-1:0] rd_job,
    input  wire [RANK_BITS-1:0] rd_rank,
    input  wire [          3:0] rd_bucket,
    output wire [         31:0] value
);

  localparam integer ADDR_BITS = JOB_BITS + RANK_BITS + 4;

  reg  [31:0] now_reg;

  // Cycles 0 to 2: the time of the first contribution is read and held. Two cycles are added to
  // what is stored, as the lag is taken in cycle 2.
  wire [31:0] since;
  reg  [31:0] since_reg;
  reg [1:0] stores_reg, first_reg;
  reg [2*(JOB_BITS+RANK_BITS)-1:0] whose_reg;

  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(SLOT_BITS),
      .APART    (1)
  ) u_since (
      .clk    (clk),
      .wr_en  (turn_over),
      .wr_addr(slot),
      .wr_data(now_reg + 32'd2),
      .rd_en  (store),
      .rd_addr(slot),
      .rd_data(since)
  );

  // Cycle 3: the number of the lag's count
  reg lag_store_reg;
  reg [31:0] lag_reg;
  reg [JOB_BITS+RANK_BITS-1:0] lag_whose_reg;
  reg [3:0] bucket;
  integer b;

  always @* begin
    bucket = 4'd0;
    for (b = 0; b < 14; b = b + 1) if (|lag_reg[2*b+:2]) bucket = b[3:0] + 4'd1;
    if (|lag_reg[31:28]) bucket = 4'd15;
  end

  // Cycle 4: the count is read. Cycle 5: it is held. Cycle 6: it is incremented, or what the
  // contribution before added to it, if that was not written when the count was read. Cycle 7: it
  // is written.
  wire [31:0] count;
  reg [31:0] count_reg, written_reg;
  reg reads_reg, read_reg, adds_reg, counts_reg;
  reg read_again_reg, again_reg;
  reg [ADDR_BITS-1:0] rd_addr_reg, read_addr_reg, addr_reg, count_addr_reg;

  reg clears_reg;
  reg [RANK_BITS+3:0] clear_reg;  // next count to clear

  wire [ADDR_BITS-1:0] wr_addr = counts_reg ? count_addr_reg : {clear_job, clear_reg};
  wire writes = counts_reg || clears_reg;
  wire [31:0] wr_data = counts_reg ? written_reg : 32'd0;

  always @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    stores_reg <= {stores_reg[0], store};
    first_reg <= {first_reg[0], turn_over};
    whose_reg <= {whose_reg[0+:JOB_BITS+RANK_BITS], job, rank};
    since_reg <= since;

    lag_store_reg <= stores_reg[1];
    lag_reg <= first_reg[1] ? 32'd0 : now_reg - since_reg;
    lag_whose_reg <= whose_reg[JOB_BITS+RANK_BITS+:JOB_BITS+RANK_BITS];

    reads_reg <= lag_store_reg;
    rd_addr_reg <= {lag_whose_reg, bucket};
    read_reg <= reads_reg;
    read_addr_reg <= rd_addr_reg;
    read_again_reg <= (adds_reg && addr_reg == rd_addr_reg) ||
        (counts_reg && count_addr_reg == rd_addr_reg);
    adds_reg <= read_reg;
    addr_reg <= read_addr_reg;
    again_reg <= read_again_reg;
    count_reg <= count;
    counts_reg <= adds_reg;
    count_addr_reg <= addr_reg;
    if (adds_reg) written_reg <= (again_reg ? written_reg : count_reg) + 32'd1;

    if (clears_reg && !counts_reg) begin
      clear_reg  <= clear_reg + 1'b1;
      clears_reg <= !(&clear_reg);
    end
    if (clear) begin
      clear_reg  <= {RANK_BITS + 4{1'b0}};
      clears_reg <= 1'b1;
    end
    if (rst) begin
      now_reg       <= 32'd0;
      stores_reg    <= 2'd0;
      lag_store_reg <= 1'b0;
      reads_reg     <= 1'b0;
      read_reg      <= 1'b0;
      adds_reg      <= 1'b0;
      counts_reg    <= 1'b0;
      clears_reg    <= 1'b0;
    end
  end

  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(ADDR_BITS),
      .APART    (1)
  ) u_counts (
      .clk    (clk),
      .wr_en  (writes),
      .wr_addr(wr_addr),
      .wr_data(wr_data),
      .rd_en  (reads_reg),
      .rd_addr(rd_addr_reg),
      .rd_data(count)
  );

  // A copy, for the registers. The cycle that writes the addressed word does not read; the one
  // before or after it does, as no word is written in two consecutive cycles.
  wire [ADDR_BITS-1:0] shown_addr = {rd_job, rd_rank, rd_bucket};
  wire [31:0] shown;
  reg [31:0] value_reg;

  always @(posedge clk) value_reg <= shown;

  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(ADDR_BITS),
      .APART    (1)
  ) u_shown (
      .clk    (clk),
      .wr_en  (writes),
      .wr_addr(wr_addr),
      .wr_data(wr_data),
      .rd_en  (!(writes && wr_addr == shown_addr)),
      .rd_addr(shown_addr),
      .rd_data(shown)
  );

  assign ready = !clears_reg;
  assign value = value_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the cycles since its chunk's first contribution. For any count: its value, from
  // its job's set-up on.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  (* anyconst *) reg [ADDR_BITS-1:0] place;
  wire [JOB_BITS-1:0] its_job = place[ADDR_BITS-1-:JOB_BITS];
  reg was_reset = 1'b0;
  reg began, cleared;
  reg [31:0] ran, tally;
  wire counts = counts_reg && count_addr_reg == place;
  wire clears = clears_reg && !counts_reg && wr_addr == place;

  // Contributions by age: all, those of the count's job, and those to the slot with their lags.
  reg [7:1] stored, of_job, to_slot;
  reg [31:0] lag1, lag2, lag3, lag4;
  reg [JOB_BITS+RANK_BITS-1:0] whose1, whose2, whose3, whose4;
  reg [ADDR_BITS-1:0] addr5, addr6, addr7;
  wire [ 3:0] bucket4 = rd_addr_reg[3:0];
  wire [31:0] least = bucket4 == 0 ? 0 : 32'd1 << (2 * bucket4 - 2);
  wire [31:0] most = bucket4 == 15 ? 32'hffffffff : (32'd1 << (2 * bucket4)) - 1;

  // Words of the memories, and reads of them in the last cycle
  reg [31:0] since_word, since_read, tally_read, shown_last;
  reg count_was, shown_was, kept_was;
  wire shows = shown_addr == place;
  wire reads_shown = !(writes && wr_addr == shown_addr);

  // The count, addressed in two cycles
  reg shows_was;
  reg [2:1] asked;
  reg [31:0] value1, value2;
  reg [JOB_BITS-1:0] clear_job_was;
  reg clears_was;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    ran <= ran + 1;
    if (turn_over && slot == watched) begin
      began      <= 1'b1;
      ran        <= 1;
      since_word <= now_reg + 32'd2;
    end
    stored <= {stored[6:1], store};
    of_job <= {of_job[6:1], store && job == its_job};
    to_slot <= {to_slot[6:1], store && slot == watched && (began || turn_over)};
    {lag4, lag3, lag2, lag1} <= {lag3, lag2, lag1, turn_over ? 32'd0 : ran};
    {whose4, whose3, whose2, whose1} <= {whose3, whose2, whose1, job, rank};
    {addr7, addr6, addr5} <= {addr6, addr5, rd_addr_reg};

    if (counts) tally <= tally + 1;
    if (clears) begin
      tally   <= 0;
      cleared <= 1'b1;
    end
    since_read    <= since_word;
    tally_read    <= tally;
    count_was     <= cleared && reads_reg && rd_addr_reg == place && !counts;
    shown_was     <= cleared && shows && reads_shown;
    kept_was      <= !reads_shown;
    shown_last    <= shown;
    shows_was     <= shows;
    asked         <= {asked[1], cleared && shows && shows_was};
    value1        <= tally;
    value2        <= value1;
    clear_job_was <= clear_job;
    clears_was    <= !rst && (clear || clears_reg);
    if (rst) begin
      began     <= 1'b0;
      cleared   <= 1'b0;
      stored    <= 0;
      of_job    <= 0;
      to_slot   <= 0;
      asked     <= 0;
      count_was <= 1'b0;
      shown_was <= 1'b0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // agg_arbiter: contributions are stored at least two cycles apart. agg_slots: the first one
      // of a chunk turns its slot over.
      `PROMISED(!store || !stored[1]);
      `PROMISED(!turn_over || store);
      // agg_jobs: a job stores nothing while its counts are cleared, nor for seven cycles before.
      `PROMISED(!(clear || clears_reg) || !store || job != clear_job);
      `PROMISED(!clear || clear_job != its_job || of_job == 0);
      `PROMISED(!clear || !clears_reg);
      `PROMISED(!(clears_was && clears_reg) || clear_job == clear_job_was);
      // agg_ram: what was written last, unless it was written in the cycle of the read.
      `PROMISED(!(to_slot[1] && !first_reg[0]) || since == since_read);
      `PROMISED(!count_was || count == tally_read);
      `PROMISED(!shown_was || shown == tally_read);
      `PROMISED(!kept_was || shown == shown_last);
      // No lag reaches 2^31 cycles.
      assume (!began || ran < 32'h80000000);
      if (began) assert (now_reg + 32'd2 - since_word == ran);

      // A contribution is counted for its job, rank and lag: the count is read in cycle 4, and
      // written in cycle 7.
      assert (reads_reg == stored[4] && read_reg == stored[5] && adds_reg == stored[6]);
      assert (counts_reg == stored[7]);
      assert ((stored & (stored >> 1)) == 0 && ((of_job | to_slot) & ~stored) == 0);
      if (reads_reg) assert (rd_addr_reg[ADDR_BITS-1:4] == whose4);
      if (to_slot[4]) assert (lag4 >= least && lag4 <= most);
      if (adds_reg) assert (addr_reg == addr6);
      if (counts_reg) assert (count_addr_reg == addr7);
      if (counts) assert (of_job[7]);
      if (clears_reg && clear_job == its_job) assert (of_job == 0);

      // The words that are written, and the count that is shown.
      if (counts && cleared) assert (wr_data == tally + 1);
      if (clears) assert (wr_data == 0);
      if (asked[2]) assert (value == value2);

      cover (to_slot[4] && bucket4 == 2);
      cover (asked[2] && value == 2);
    end
  end
`endif

endmodule

`default_nettype wire
