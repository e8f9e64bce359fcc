// Judges the packets of the parent, and the finishes of a tree job: what they mean to the job.
//
// A packet of the up port goes through agg_arbiter like every other; cycles are those of agg_commit
// and agg_slots, which read and write its slot's row. In C5, final_sum requests agg_slots to take a
// final sum. In C7, each packet is one of: a final sum that was taken, a status that the card knows,
// or dropped. agg_up_receive translates the headers.
//
// A tree job is complete when all of its members have finished. The finish that completes it, and each
// later one, is owed to the parent instead of being answered (passes_on). The parent's answer ends the
// job (done), which agg_jobs does some cycles later; until then finishes are answered again.
//
// Packets that a falling link cuts off are dropped, but not counted. Not done here: the slot's rules
// (agg_slots), sending (agg_up_finish, agg_status).

`default_nettype none

module agg_up_commit #(
    parameter integer       PORTS    = 4,
    parameter integer       JOBS     = 1,
    parameter integer       JOB_BITS = 1,
    parameter         [7:0] FORMAT   = 8'd1  // data format, as in the header
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // C2: a request of the up port; see agg_commit
    input wire         valid,
    input wire [102:0] request,

    // Jobs, job 0 in the lowest bits
    input wire [      JOBS-1:0] job_valid,
    input wire [   16*JOBS-1:0] job_epoch,
    input wire [   16*JOBS-1:0] job_chunk,
    input wire [      JOBS-1:0] job_tree,
    input wire [    8*JOBS-1:0] job_up_rank,    // the card's rank at its parent
    input wire [PORTS*JOBS-1:0] present,        // members, by port
    input wire [PORTS*JOBS-1:0] finished_port,
    input wire [      JOBS-1:0] tree_done,      // the parent has answered the finish

    // C5
    output wire checked,    // the operation is a packet of the up port
    output wire final_sum,
    // C5 and C6
    output wire marked,     // the operation is a packet of the up port
    output wire nonfinite,  // its mark
    // C7
    output wire judged,

    // C7: the operation in agg_slots
    input wire                taken,
    input wire [JOB_BITS-1:0] job,
    input wire                finished,  // a finish of this port is accepted
    input wire [   PORTS-1:0] port,

    // C7
    output wire       passes_on,  // the finish is owed to the parent, and not answered
    output wire       done,       // the job ends
    output wire       notice,     // to all members
    output wire [7:0] code,       // of the notice, or the refusal
    output wire       sum_taken,  // the others count
    output wire       refused,
    output wire       dropped
);

  `include "zwire.vh"

  // -- C2: unpack --------------------------------------------------------------------------------

  wire its_entered, its_writable, its_nonfinite, its_bad, its_whole;
  wire [15:0] its_length, its_epoch;
  wire [31:0] its_vid;
  wire [7:0] its_rank, its_format, its_number;
  wire [1:0] its_ecn;
  wire [3:0] its_kind, its_version;

  assign {its_entered, its_writable, its_nonfinite, its_bad, its_whole} = request[102:98];
  assign {its_length, its_vid, its_rank, its_epoch} = request[97:26];
  assign {its_format, its_number, its_ecn, its_kind, its_version} = request[25:0];

  wire unused = &{1'b0, its_entered, its_nonfinite, its_vid, its_ecn};
  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : its_number[JOB_BITS-1:0];

  // C3
  reg valid_c3_reg, sum_c3_reg, status_c3_reg;
  reg [JOB_BITS-1:0] index_reg;
  reg [15:0] length_reg, epoch_reg;
  reg [7:0] rank_reg;

  always @(posedge clk) begin
    valid_c3_reg <= valid && !rst;
    sum_c3_reg <= its_version == VERSION && its_kind == KIND_DATA && its_format == FORMAT &&
        its_writable && !its_bad && its_whole && its_number >> (JOBS == 1 ? 0 : JOB_BITS) == 8'd0;
    status_c3_reg <= its_version == VERSION && its_kind == KIND_ASK &&
        its_number >> (JOBS == 1 ? 0 : JOB_BITS) == 8'd0;
    index_reg <= its_job;
    {length_reg, rank_reg, epoch_reg} <= {its_length, its_rank, its_epoch};
  end

  // -- C3: compare -------------------------------------------------------------------------------

  // C4, C5, C6 and C7
  reg [4:1] valid_reg, status_reg;
  reg [2:1] sum_reg;  // C4 and C5
  reg mark_c4_reg, mark_c5_reg;
  reg [7:0] code_c4_reg, code_c5_reg, code_c6_reg, code_c7_reg;
  wire stands = job_valid[index_reg] && job_tree[index_reg] &&
      epoch_reg == job_epoch[16*index_reg+:16];

  always @(posedge clk) begin
    valid_reg <= {valid_reg[3:1], valid_c3_reg};
    sum_reg <= {
      sum_reg[1],
      valid_c3_reg && sum_c3_reg && stands && rank_reg[0] &&
          length_reg == job_chunk[16*index_reg+:16]
    };
    status_reg <= {
      status_reg[3:1],
      valid_c3_reg && status_c3_reg && stands && rank_reg == job_up_rank[8*index_reg+:8]
    };
    mark_c4_reg <= rank_reg[1];
    if (valid_reg[1]) mark_c5_reg <= mark_c4_reg;
    {code_c7_reg, code_c6_reg, code_c5_reg, code_c4_reg} <= {
      code_c6_reg, code_c5_reg, code_c4_reg, length_reg[7:0]
    };
    if (rst) begin
      valid_reg  <= 4'd0;
      sum_reg    <= 2'd0;
      status_reg <= 4'd0;
    end
  end

  assign checked   = valid_reg[2];
  assign marked    = valid_reg[2] || valid_reg[3];
  assign final_sum = sum_reg[2];
  assign nonfinite = mark_c5_reg;
  assign judged    = valid_reg[4];

  // -- C7: events --------------------------------------------------------------------------------

  wire [PORTS-1:0] unfinished = present[PORTS*job+:PORTS] & ~finished_port[PORTS*job+:PORTS];
  wire all_finished = unfinished == {PORTS{1'b0}};
  wire ends = status_reg[4] && code_c7_reg == CODE_DONE && all_finished && !tree_done[job];
  wire overdue = status_reg[4] && code_c7_reg == CODE_OVERDUE;
  wire waits = status_reg[4] && (code_c7_reg == CODE_WAIT || code_c7_reg == CODE_SEND);
  wire refusal = status_reg[4] && code_c7_reg >= CODE_BAD_VERSION;

  assign passes_on = finished && job_valid[job] && job_tree[job] && !tree_done[job] &&
      (unfinished & ~port) == {PORTS{1'b0}};
  assign done = ends;
  assign notice = ends || overdue;
  assign code = code_c7_reg;
  assign sum_taken = taken;
  assign refused = refusal;
  assign dropped = valid_reg[4] && !(taken || ends || overdue || waits || refusal) && !link_down;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For two jobs. Any packet is watched from C3 to C7, but none that begins before the former's end.
  (* anyseq *) reg chosen;
  reg was_reset = 1'b0;
  reg [7:3] in = 5'd0;  // a packet is in this cycle of its judgement
  reg busy = 1'b0;
  reg [2:0] step;
  reg [102:0] its;
  wire starts = valid && !rst && (!busy || step == 3'd4) && chosen;
  wire at_c5 = busy && step == 3'd2;
  wire at_c6 = busy && step == 3'd3;
  wire at_c7 = busy && step == 3'd4;
  localparam integer SETTINGS = 42 * JOBS;
  reg [SETTINGS-1:0] settings_were;
  wire [SETTINGS-1:0] settings = {job_valid, job_epoch, job_chunk, job_tree, job_up_rank};

  // The packet, as agg_up_receive has its header, and agg_ingress its payload
  wire [15:0] length = its[97:82];
  wire [7:0] rank = its[49:42];
  wire [15:0] epoch = its[41:26];
  wire [7:0] number = its[17:10];
  wire odd = number[0];
  wire its_tree = number < 2 && (odd ? job_valid[1] && job_tree[1] : job_valid[0] && job_tree[0]) &&
      epoch == (odd ? job_epoch[31:16] : job_epoch[15:0]) && its[3:0] == VERSION;
  wire is_final = its_tree && its[7:4] == KIND_DATA && rank[0] && its[25:18] == FORMAT &&
      length == (odd ? job_chunk[31:16] : job_chunk[15:0]) && its[98] && !its[99] && its[101];
  wire is_status = its_tree && its[7:4] == KIND_ASK &&
      rank == (odd ? job_up_rank[15:8] : job_up_rank[7:0]);
  wire [7:0] its_code = length[7:0];

  // Members of the job of the operation in C7 that have not finished
  wire [PORTS-1:0] missing = job ? present[2*PORTS-1:PORTS] & ~finished_port[2*PORTS-1:PORTS] :
      present[PORTS-1:0] & ~finished_port[PORTS-1:0];
  wire open = job ? job_valid[1] && job_tree[1] && !tree_done[1] :
      job_valid[0] && job_tree[0] && !tree_done[0];  // its parent has not answered
  wire is_end = is_status && its_code == CODE_DONE && missing == 0 && open;
  wire is_overdue = is_status && its_code == CODE_OVERDUE;
  wire is_wait = is_status && (its_code == CODE_WAIT || its_code == CODE_SEND);
  wire is_refusal = is_status && its_code >= 8'd16;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    in <= rst ? 5'd0 : {in[6:3], valid};
    settings_were <= settings;
    busy <= !rst && (starts || (busy && step != 3'd4));
    step <= starts ? 3'd0 : step + 3'd1;
    if (starts) its <= request;
  end

  always @* begin
    if (was_reset) begin
      `PROMISED(!valid || !in[3]);  // agg_arbiter: two cycles apart or more
      // agg_jobs: a job's settings do not change while anything is judged.
      `PROMISED(in == 0 || settings == settings_were);
      // agg_commit and agg_slots: the operation's job; a finish is one of a member's.
      `PROMISED(!at_c7 || job == odd);
      `PROMISED(!(taken || finished) || (taken != finished && (taken || !in[7])));
      `PROMISED(!taken || !at_c7 || is_final);
    end
    if (was_reset && !rst) begin
      assert (valid_c3_reg == in[3] && valid_reg == in[7:4]);
      if (busy) assert (step <= 4 && in[3+step]);

      // Whose packets these are
      assert (checked == in[5] && marked == (in[5] || in[6]) && judged == in[7]);
      if (!in[5]) assert (!final_sum);
      if (!in[7]) assert (!done && !notice && !refused && !dropped);

      // Only a result of the job's tree, whole and unharmed, is requested as a final sum.
      if (at_c5) assert (final_sum == is_final);
      if (at_c5 || at_c6) assert (nonfinite == rank[1]);
      if (busy && step == 3'd1) assert (sum_reg[1] == is_final);

      // A status has its effect; what has none is dropped.
      if (busy && step != 3'd0) assert (status_reg[step] == is_status);
      if (busy && step == 3'd0)
        assert ({length_reg, rank_reg, epoch_reg, index_reg} == {length, rank, epoch, odd});
      if (busy && step == 3'd1) assert (code_c4_reg == its_code && mark_c4_reg == rank[1]);
      if (busy && step == 3'd2) assert (code_c5_reg == its_code);
      if (busy && step == 3'd3) assert (code_c6_reg == its_code);
      if (at_c7) begin
        assert (done == is_end);
        assert (notice == (is_end || is_overdue));
        assert (refused == is_refusal && code == its_code);
        assert (sum_taken == taken);
        assert (dropped ==
            (!link_down && !(taken || is_end || is_overdue || is_wait || is_refusal)));
        assert (sum_taken + notice + (is_wait && !notice) + refused + dropped <= 1);
      end
      if (in[7] && taken) assert (sum_taken && !dropped);

      // The finish that completes a tree job is passed on, and each later one, until the parent answers.
      assert (passes_on == (finished && open && (missing & ~port) == 0));
      assert (!passes_on || !done);

      cover (at_c5 && is_final);
      cover (at_c7 && is_end);
      cover (at_c7 && its_tree && its_code == CODE_DONE && dropped);
      cover (at_c7 && is_refusal && in[5]);
      cover (passes_on && finished_port[PORTS-1:0] == {PORTS{1'b1}} && !job);
    end
  end
`endif

endmodule

`default_nettype wire
