// Picks one of the results that the jobs have ready (one agg_owed each), round robin: the
// next job above the one taken last. The pick is combinational and may change until
// taken.
//
// Not done here: the choice among a job's results (agg_owed).

`default_nettype none

module agg_turns #(
    parameter integer PORTS     = 4,
    parameter integer JOBS      = 2,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // The jobs' picks, job 0 in the lowest bits
    input  wire [          JOBS-1:0] job_valid,
    input  wire [SLOT_BITS*JOBS-1:0] job_slot,
    input  wire [    PORTS*JOBS-1:0] job_receivers,
    input  wire [          JOBS-1:0] job_replay,
    output wire [          JOBS-1:0] job_take,

    output wire                 pick_valid,
    output wire [ JOB_BITS-1:0] pick_job,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay,
    input  wire                 pick_take
);

  reg [JOBS-1:0] above_reg;  // jobs above the one taken last

  wire [JOBS-1:0] ahead = job_valid & above_reg;
  wire [JOBS-1:0] among = |ahead ? ahead : job_valid;
  wire [JOBS-1:0] lowest = among & (~among + 1'b1);

  reg [JOB_BITS-1:0] index;
  integer j;

  always @* begin
    index = {JOB_BITS{1'b0}};
    for (j = 0; j < JOBS; j = j + 1) if (lowest[j]) index = j[JOB_BITS-1:0];
  end

  always @(posedge clk) begin
    if (pick_take) above_reg <= ~(lowest | (lowest - 1'b1));
    if (rst) above_reg <= {JOBS{1'b0}};
  end

  assign job_take       = pick_take ? lowest : {JOBS{1'b0}};
  assign pick_valid     = |job_valid;
  assign pick_job       = index;
  assign pick_slot      = job_slot[SLOT_BITS*index+:SLOT_BITS];
  assign pick_receivers = job_receivers[PORTS*index+:PORTS];
  assign pick_replay    = job_replay[index];

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any job: the other jobs taken while it has a result to send.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg [JOBS-1:0] in_front;  // jobs taken meanwhile
  reg waits;
  wire [JOBS-1:0] below = ~above_reg;
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    waits <= !rst && job_valid[watched] && !job_take[watched];
    in_front <= rst || !job_valid[watched] || job_take[watched] ? 0 : in_front | job_take;
  end

  always @* begin
    if (was_reset) begin
      // agg_owed: a job's pick remains until taken, or until the job ends. agg_egress takes only
      // valid picks.
      `PROMISED(!pick_take || pick_valid);

      assert (pick_valid == (job_valid != 0));
      assert ((job_take & (job_take - 1'b1)) == 0);
      assert ((job_take != 0) == pick_take);
      if (pick_take) assert (job_take[pick_job] && job_valid[pick_job]);
      if (pick_valid) begin
        assert (pick_slot == job_slot[SLOT_BITS*pick_job+:SLOT_BITS]);
        assert (pick_receivers == job_receivers[PORTS*pick_job+:PORTS]);
        assert (pick_replay == job_replay[pick_job]);
      end

      // While it waits, no other job is taken twice.
      if (waits && job_valid[watched]) assert ((job_take & in_front) == 0);
      assert ((below & (below + 1'b1)) == 0);
      for (n = 0; n < JOBS; n = n + 1) begin
        if (in_front[n] && n < watched) assert (above_reg[watched] && !above_reg[n]);
        if (in_front[n] && n > watched) assert (above_reg[watched] || !above_reg[n]);
        assert (!in_front[watched]);
      end

      cover (waits && in_front != 0 && job_take[watched]);
      cover (job_valid == {JOBS{1'b1}} && pick_take && above_reg == 0);
    end
  end
`endif

endmodule

`default_nettype wire
