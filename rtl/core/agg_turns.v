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
  wire moves = |others && (|(job_valid & turn_reg) || ~|(job_wants & turn_reg));

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

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any job: the other jobs that picked while it wanted to.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [JOBS-1:0] in_front;  // jobs that picked meanwhile
  reg [JOBS-1:0] ready_was;
  reg [JOBS-1:0] wants_were, turn_was;
  reg valid_was;
  wire [JOBS-1:0] below = ~above_reg & ~turn_reg;
  reg [JOB_BITS-1:0] turn, its_turn, other_turn;  // jobs until its turn
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    ready_was <= job_ready;
    wants_were <= job_wants;
    turn_was <= turn_reg;
    valid_was <= pick_valid;
    in_front <= rst || !job_wants[watched] || !wants_were[watched] || job_valid[watched] ? 0 :
        in_front | job_valid;
  end

  always @* begin
    turn = 0;
    its_turn = 0;
    other_turn = 0;
    if (was_reset && !rst) begin
      // agg_owed: a job picks one cycle after it was ready to; agg_egress does not ask for a pick in
      // the cycle in which one is shown.
      `PROMISED((job_valid & ~(running_was ? ready_was : 0)) == 0);
      `PROMISED(!pick_ready || !pick_valid);

      // One job has the turn, and at most one picks.
      assert (turn_reg != 0 && (turn_reg & (turn_reg - 1'b1)) == 0);
      assert (job_ready == (pick_ready ? turn_reg : 0));
      assert ((ready_was & (ready_was - 1'b1)) == 0 || !running_was);
      assert (pick_valid == (job_valid != 0));
      if (pick_valid) begin
        assert (job_valid == 1 << pick_job);
        assert (pick_slot == job_slot[SLOT_BITS*pick_job+:SLOT_BITS]);
        assert (pick_receivers == job_receivers[PORTS*pick_job+:PORTS]);
        assert (pick_replay == job_replay[pick_job]);
      end

      // A job that wants to pick has the turn at once if no other wants it.
      if (running_was && wants_were == 1 << watched && !valid_was)
        assert (turn_reg == 1 << watched);

      // While it wants to, no other job picks twice: the turn only moves towards it.
      assert (below == turn_reg - 1'b1 && (above_reg & turn_reg) == 0);
      assert (!in_front[watched]);
      if (job_wants[watched]) assert ((job_valid & in_front) == 0);
      for (n = 0; n < JOBS; n = n + 1) begin
        if (turn_reg[n]) turn = n;
      end
      for (n = 0; n < JOBS; n = n + 1) begin
        its_turn   = watched - turn;
        other_turn = n - turn;
        if (in_front[n]) assert (other_turn > its_turn);
      end
      cover (in_front == ({JOBS{1'b1}} & ~(1 << watched)) && job_valid[watched]);
      cover (pick_valid && moves && above_reg == 0);
    end
  end
`endif

endmodule

`default_nettype wire
