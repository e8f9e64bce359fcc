// Counts how late the contributions of each rank come, behind the first one of their chunk.
//
// Of each job and rank 16 counts: 0 of those that came first, k of those that came 4^(k-1) cycles later or
// more, but less than 4^k; the last one of all that came later still. They wrap at 2^32, and are cleared
// when the job is set up, a count a cycle: until that is done ready is low, and nothing of the job may be
// stored.
//
// Latency: what is stored in cycle 0 is counted in cycle 3. A count that is read in cycle 0 stands at value
// in cycle 1. Not done here: nobody is missed here who never comes (agg_deadlines).

`default_nettype none

module agg_lags #(
    parameter integer RANK_BITS = 2,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input  wire                clear,      // a job is set up:
    input  wire [JOB_BITS-1:0] clear_job,  // this one; holds until ready
    output wire                ready,

    // A contribution is stored
    input wire                 store,
    input wire                 turn_over,  // the first one of its chunk
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire [RANK_BITS-1:0] rank,

    // A count is read
    input  wire [ JOB_BITS-1:0] rd_job,
    input  wire [RANK_BITS-1:0] rd_rank,
    input  wire [          3:0] rd_bucket,
    output wire [         31:0] value
);

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam integer ADDR_BITS = JOB_BITS + RANK_BITS + 4;

  reg [31:0] since[0:SLOTS-1];  // when the first contribution came
  reg [31:0] now_reg;

  // Stored: how late
  reg store_reg;
  reg [31:0] lag_reg;
  reg [JOB_BITS+RANK_BITS-1:0] whose_reg;

  // How late, as a count's number; the count is read
  reg [3:0] bucket;
  integer b;

  always @* begin
    bucket = 4'd0;
    for (b = 0; b < 14; b = b + 1) if (|lag_reg[2*b+:2]) bucket = b[3:0] + 4'd1;
    if (|lag_reg[31:28]) bucket = 4'd15;
  end

  // The count goes up
  reg adds_reg;
  reg [ADDR_BITS-1:0] addr_reg;
  wire [31:0] count;

  reg clears_reg;
  reg [RANK_BITS+3:0] clear_reg;  // the count that is cleared

  wire [ADDR_BITS-1:0] rd_addr = {whose_reg, bucket};
  wire [ADDR_BITS-1:0] wr_addr = adds_reg ? addr_reg : {clear_job, clear_reg};
  wire [31:0] wr_data = adds_reg ? count + 32'd1 : 32'd0;

  always @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    if (turn_over) since[slot] <= now_reg;
    store_reg <= store;
    lag_reg   <= turn_over ? 32'd0 : now_reg - since[slot];
    whose_reg <= {job, rank};
    adds_reg  <= store_reg;
    addr_reg  <= rd_addr;

    if (clears_reg && !adds_reg) begin
      clear_reg  <= clear_reg + 1'b1;
      clears_reg <= !(&clear_reg);
    end
    if (clear) begin
      clear_reg  <= {RANK_BITS + 4{1'b0}};
      clears_reg <= 1'b1;
    end
    if (rst) begin
      now_reg    <= 32'd0;
      store_reg  <= 1'b0;
      adds_reg   <= 1'b0;
      clears_reg <= 1'b0;
    end
  end

  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(ADDR_BITS),
      .FORWARD  (1)
  ) u_counts (
      .clk    (clk),
      .wr_en  (adds_reg || clears_reg),
      .wr_addr(wr_addr),
      .wr_data(wr_data),
      .rd_en  (store_reg),
      .rd_addr(rd_addr),
      .rd_data(count)
  );

  // The same, to be read by others.
  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(ADDR_BITS),
      .FORWARD  (1)
  ) u_shown (
      .clk    (clk),
      .wr_en  (adds_reg || clears_reg),
      .wr_addr(wr_addr),
      .wr_data(wr_data),
      .rd_en  (1'b1),
      .rd_addr({rd_job, rd_rank, rd_bucket}),
      .rd_data(value)
  );

  assign ready = !clears_reg;

endmodule

`default_nettype wire
