// Holds each job's finish that is owed to the parent, and sends it between the statuses.
//
// Stands between agg_status and agg_egress, and works like the former: a pick is made in a cycle with
// pick_ready, shown in the next one, and has its fields from the cycle after that to the one after
// the next pick. Finishes and statuses alternate if both can leave.
//
// A finish that is passed on is owed, with its VID, unless one was sent less than JOB_REPEAT cycles
// ago.
//
// Not done here: which finish is passed on (agg_up_commit).

`default_nettype none

module agg_up_finish #(
    parameter integer PORTS    = 5,  // with the up port, the last one
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input wire [   JOBS-1:0] flush,       // the job ends: nothing is owed
    input wire [25*JOBS-1:0] job_repeat,  // cycles
    input wire [16*JOBS-1:0] job_epoch,
    input wire [ 8*JOBS-1:0] job_up_rank, // the card's rank at its parent

    input  wire                passes_on,
    input  wire [JOB_BITS-1:0] job,
    input  wire [        31:0] vid,
    output wire                repeats,    // it is owed again

    // agg_status
    input  wire             status_wants,
    output wire             status_ready,
    input  wire             status_valid,
    input  wire [PORTS-2:0] status_ports,
    input  wire [      7:0] status_job,
    input  wire [     15:0] status_epoch,
    input  wire [      7:0] status_rank,
    input  wire [      7:0] status_code,
    input  wire [     31:0] status_vid,
    input  wire [     63:0] status_mask,

    // agg_egress
    input wire up_ready,  // in a cycle with pick_ready: the up port can take a packet
    output wire pick_wants,
    input wire pick_ready,
    output wire pick_valid,
    output wire [PORTS-1:0] pick_ports,
    output wire [7:0] pick_job,
    output wire [15:0] pick_epoch,
    output wire [7:0] pick_rank,
    output wire [7:0] pick_code,
    output wire [31:0] pick_vid,
    output wire [63:0] pick_mask
);

  // -- Debts --------------------------------------------------------------------------------------

  reg [JOBS-1:0] owed_reg, sent_reg;  // sent: at least once
  reg [JOBS-1:0] young_reg;  // less than JOB_REPEAT cycles ago: not before this time
  reg [25*JOBS-1:0] until_reg;
  reg [24:0] now_reg;
  reg [32*JOBS-1:0] vids_reg;
  reg [JOBS-1:0] above_reg;  // jobs above the one whose finish was sent last
  wire [JOBS-1:0] ahead = owed_reg & above_reg;
  wire [JOBS-1:0] among = |ahead ? ahead : owed_reg;
  wire [JOBS-1:0] next = among & (~among + 1'b1);
  wire sends;
  wire early = young_reg[job] || (sends && next[job]);  // or begins now
  integer j;

  always @(posedge clk) begin
    now_reg <= now_reg + 25'd1;
    for (j = 0; j < JOBS; j = j + 1) begin
      if (until_reg[25*j+:25] == now_reg) young_reg[j] <= 1'b0;
      if (sends && next[j]) begin
        owed_reg[j]         <= 1'b0;
        sent_reg[j]         <= 1'b1;
        young_reg[j]        <= 1'b1;
        until_reg[25*j+:25] <= now_reg + job_repeat[25*j+:25];
      end
      if (passes_on && !early && (JOBS == 1 || job == j[JOB_BITS-1:0])) begin
        owed_reg[j]        <= 1'b1;
        vids_reg[32*j+:32] <= vid;
      end
      if (flush[j]) begin
        owed_reg[j]  <= 1'b0;
        sent_reg[j]  <= 1'b0;
        young_reg[j] <= 1'b0;
      end
    end
    if (sends) above_reg <= ~(next | (next - 1'b1));
    if (rst) begin
      owed_reg  <= {JOBS{1'b0}};
      sent_reg  <= {JOBS{1'b0}};
      young_reg <= {JOBS{1'b0}};
      now_reg   <= 25'd0;
      above_reg <= {JOBS{1'b0}};
    end
  end

  assign repeats = passes_on && !early && sent_reg[job] && !owed_reg[job];

  // -- Pick ---------------------------------------------------------------------------------------

  reg after_finish_reg;  // the last pick was a finish
  reg valid_reg;  // a finish is shown
  reg up_reg, fields_up_reg;  // the last pick, and the one with its fields, is a finish
  reg [63:0] next_fields;  // {VID, epoch, rank, job}
  reg [63:0] now_fields_reg, fields_reg;
  integer n;

  wire can = |owed_reg && up_ready;
  assign sends = pick_ready && can && !(after_finish_reg && status_wants);
  assign status_ready = pick_ready && !sends;

  always @* begin
    next_fields = 64'd0;
    for (n = 0; n < JOBS; n = n + 1) begin
      if (next[n])
        next_fields = next_fields | {
          vids_reg[32*n+:32], job_epoch[16*n+:16], job_up_rank[8*n+:8], n[7:0]
        };
    end
  end

  always @(posedge clk) begin
    valid_reg <= sends && !rst;
    now_fields_reg <= next_fields;
    if (pick_ready) up_reg <= sends;
    if (pick_ready) after_finish_reg <= sends;
    if (valid_reg) fields_reg <= now_fields_reg;
    if (pick_valid) fields_up_reg <= valid_reg;
    if (rst) begin
      up_reg <= 1'b0;
      after_finish_reg <= 1'b0;
    end
  end

  assign pick_wants = status_wants || (|owed_reg && up_ready);
  assign pick_valid = status_valid || valid_reg;
  assign pick_ports = up_reg ? {1'b1, {PORTS - 1{1'b0}}} : {1'b0, status_ports};
  assign {pick_vid, pick_epoch, pick_rank, pick_job} = fields_up_reg ? fields_reg :
      {status_vid, status_epoch, status_rank, status_job};
  assign pick_code = fields_up_reg ? 8'd0 : status_code;
  assign pick_mask = fields_up_reg ? 64'd0 : status_mask;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any job: its finish that is owed, and the cycles since one was picked.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg owed, ever;  // ever: one was picked, in this job
  reg active;  // a finish was passed on, in this job
  reg [25:0] age;  // cycles since then, saturating
  reg [31:0] its_vid;
  reg others;  // another job's finish was picked since the job owes one
  reg [48:0] settings_were;
  wire [24:0] its_repeat = job_repeat[25*watched+:25];
  wire [15:0] its_epoch = job_epoch[16*watched+:16];
  wire [7:0] its_rank = job_up_rank[8*watched+:8];
  wire mine = passes_on && job == watched;
  // A pick reads the debts of its cycle.
  wire it_sends = sends && next[watched];
  wire recent = it_sends || (ever && age <= its_repeat);  // less than JOB_REPEAT cycles ago
  wire [24:0] rest = until_reg[25*watched+:25] - now_reg;

  // What was picked, one and two cycles ago
  reg asked_was, status_asked_was, finish_was, its_was, its_then, could_was;
  reg [63:0] fields_was, fields_then;
  reg shown_was, finish_shown_was;
  reg [127:0] status_now;  // the fields of agg_status
  reg [151:0] fields_stood, status_stood;
  reg [PORTS-1:0] ports_stood;
  reg [PORTS-2:0] status_ports_were;
  reg after_finish;
  reg status_shown;  // the fields are agg_status'
  wire [151:0] status_fields = {
    8'd0, status_vid, status_epoch, status_rank, status_job, status_code, status_mask
  };
  wire [151:0] fields = {8'd0, pick_vid, pick_epoch, pick_rank, pick_job, pick_code, pick_mask};

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was   <= !rst;
    settings_were <= {its_repeat, its_epoch, its_rank};
    if (mine) active <= 1'b1;
    if (ever) age <= age + (age != 26'h3ff_ffff);
    if (it_sends) begin
      owed <= 1'b0;
      ever <= 1'b1;
      age  <= 1;
    end
    if (mine && !recent) begin
      owed <= 1'b1;
      its_vid <= vid;
    end
    others <= owed && !it_sends && (others || sends);
    asked_was <= pick_ready;
    status_asked_was <= status_ready;
    finish_was <= sends;
    its_was <= it_sends;
    its_then <= its_was;
    could_was <= owed && up_ready;
    fields_was <= {its_vid, its_epoch, its_rank, 8'd0 | watched};
    fields_then <= fields_was;
    shown_was <= pick_valid;
    finish_shown_was <= finish_was;
    if (pick_valid) status_shown <= !finish_was;
    fields_stood <= fields;
    status_stood <= status_fields;
    ports_stood <= pick_ports;
    status_ports_were <= status_ports;
    if (pick_ready) after_finish <= sends;
    if (flush[watched]) begin
      active <= 1'b0;
      owed   <= 1'b0;
      ever   <= 1'b0;
      others <= 1'b0;
    end
    if (rst) begin
      active <= 1'b0;
      owed <= 1'b0;
      ever <= 1'b0;
      others <= 1'b0;
      finish_was <= 1'b0;
      its_was <= 1'b0;
      its_then <= 1'b0;
      shown_was <= 1'b0;
      after_finish <= 1'b0;
    end
  end

  always @* begin
    if (was_reset) begin
      // agg_egress does not ask for a pick in consecutive cycles. agg_status picks when it is asked
      // to, and only something that can leave; its pick and fields stay as its header has it.
      `PROMISED(!pick_ready || !asked_was || !running_was);
      `PROMISED(!status_valid || (running_was && status_asked_was));
      `PROMISED(status_asked_was || status_ports == status_ports_were);
      `PROMISED(shown_was || status_fields == status_stood);
      // agg_up_jobs: a job's settings stay from its set-up to its end; JOB_REPEAT is in its range.
      `PROMISED(!active || settings_were == {its_repeat, its_epoch, its_rank});
      `PROMISED(!(mine || active) || (its_repeat != 0 && its_repeat <= 25'h100_0000));
    end
    if (was_reset && !rst) begin
      assert (owed_reg[watched] == owed && sent_reg[watched] == ever);
      if (owed) assert (vids_reg[32*watched+:32] == its_vid && active);
      if (ever) assert (active && age != 0);
      // Time: the finish is young for JOB_REPEAT cycles, and not longer.
      assert (young_reg[watched] == (ever && age <= its_repeat));
      if (ever && age <= its_repeat) assert (rest == its_repeat - age);

      // A finish is owed again unless one was picked less than JOB_REPEAT cycles ago.
      if (mine) assert (repeats == (ever && !owed && !recent));
      if (!passes_on) assert (!repeats);

      // It is not picked unless it is owed and the up port can take it; one at a time.
      assert ((next & (next - 1'b1)) == 0 && (next & ~owed_reg) == 0);
      if (it_sends) assert (pick_ready && owed && up_ready);
      assert (!(sends && status_ready) && (!pick_ready || sends || status_ready));
      assert (!sends || pick_ready);
      // Finishes and statuses alternate.
      assert (after_finish_reg == after_finish);
      if (pick_ready && owed && up_ready && !(after_finish && status_wants)) assert (sends);
      if (pick_ready && after_finish && status_wants) assert (status_ready);
      // So do the two jobs of this proof.
      if (others) assert (owed && next[watched] && above_reg == {watched, 1'b0});
      if (owed && up_ready || status_wants) assert (pick_wants);
      if (pick_wants && !status_wants && pick_ready) assert (sends);
    end
    if (was_reset && running_was && !rst) begin
      // A pick is shown one cycle later, for its port.
      assert (pick_valid == (finish_was || status_valid));
      if (finish_was) assert (!status_valid && pick_ports == 1 << (PORTS - 1));
      if (status_valid) assert (pick_ports == {1'b0, status_ports});
      if (its_was) assert (could_was && finish_was);
      // Its fields follow, and stay to the cycle after the next pick is shown.
      if (its_then) begin
        assert ({pick_vid, pick_epoch, pick_rank, pick_job} == fields_then);
        assert (pick_code == 0 && pick_mask == 0);
      end
      if (shown_was && !finish_shown_was) assert (fields == status_fields);
      if (!shown_was) assert (fields == fields_stood);
      if (!asked_was) assert (pick_ports == ports_stood);
    end
    if (was_reset && !rst) begin
      cover (repeats && mine);
      cover (mine && recent && age == its_repeat && its_repeat == 25'd3);
      cover (others && it_sends);
      cover (mine && it_sends);
      cover (flush[watched] && owed);
    end
  end
`endif

endmodule

`default_nettype wire
