// Lets the jobs (one agg_owed each) pick results in turns, round robin: after a pick, the turn goes
// to the next job above that wants to pick. It also moves on from a job that does not want to.
//
// All outputs are two gates from registers. Only the job with the turn is ready to pick, so at most
// one picks at a time. Latency: a job that begins to want in cycle 0 has the turn from cycle 1 on,
// if no other job wants it. Not done here: the choice among a job's results (agg_owed).

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
    input  wire [          JOBS-1:0] job_wants,
    output wire [          JOBS-1:0] job_ready,
    input  wire [          JOBS-1:0] job_valid,
    input  wire [SLOT_BITS*JOBS-1:0] job_slot,
    input  wire [    PORTS*JOBS-1:0] job_receivers,
    input  wire [          JOBS-1:0] job_replay,

    input  wire                 pick_ready,
    output wire                 pick_valid,
    output wire [ JOB_BITS-1:0] pick_job,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay
);

  reg [JOBS-1:0] turn_reg;  // the job with the turn, one-hot
  reg [JOBS-1:0] above_reg;  // jobs above it

  // The next job in turn that wants to pick: above this one, or from the lowest on.
  wire [JOBS-1:0] others = job_wants & ~turn_reg;
  wire [JOBS-1:0] ahead = others & above_reg;
  wire [JOBS-1:0] among = |ahead ? ahead : others;
  wire [JOBS-1:0] next = among & (~among + 1'b1);
  wire moves = |others && (pick_valid || ~|(job_wants & turn_reg));

  always @(posedge clk) begin
    if (moves) begin
      turn_reg  <= next;
      above_reg <= ~(next | (next - 1'b1));
    end
    if (rst) begin
      turn_reg  <= {{JOBS - 1{1'b0}}, 1'b1};
      above_reg <= ~{{JOBS - 1{1'b0}}, 1'b1};
    end
  end

  reg     [ JOB_BITS-1:0] index;
  reg     [SLOT_BITS-1:0] slot;
  reg     [    PORTS-1:0] receivers;
  integer                 j;

  always @* begin
    index     = {JOB_BITS{1'b0}};
    slot      = {SLOT_BITS{1'b0}};
    receivers = {PORTS{1'b0}};
    for (j = 0; j < JOBS; j = j + 1) begin
      if (job_valid[j]) begin
        index     = index | j[JOB_BITS-1:0];
        slot      = slot | job_slot[SLOT_BITS*j+:SLOT_BITS];
        receivers = receivers | job_receivers[PORTS*j+:PORTS];
      end
    end
  end

  assign job_ready      = pick_ready ? turn_reg : {JOBS{1'b0}};
  assign pick_valid     = |job_valid;
  assign pick_job       = index;
  assign pick_slot      = slot;
  assign pick_receivers = receivers;
  assign pick_replay    = |(job_valid & job_replay);

endmodule

`default_nettype wire
