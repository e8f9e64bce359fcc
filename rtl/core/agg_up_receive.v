// Translates the headers of the parent's packets, in front of the up port's agg_ingress, and keeps
// their masks until the packets are judged.
//
// A result or a replay becomes data, so that agg_ingress writes its payload: its rank is {nonfinite,
// good} then, good if its mask is TREE_RANKS of its job. A status becomes an ask, with its code as
// the length. Every other kind becomes 0, which is none. agg_up_commit understands that.
//
// tuser, in: 22 bytes of header, valid on the first beat; bit 176 marks a damaged payload, on the
// last beat. Out: as every port of agg_ingress has it. Latency: none. Up to eight packets are between
// their first beat and judged: three in registers of agg_ingress, and five in its places.
//
// Not done here: any other check (agg_up_commit).

`default_nettype none

module agg_up_receive #(
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1
) (
    input wire clk,
    input wire rst,

    input wire [64*JOBS-1:0] tree_ranks,  // of each job, job 0 in the lowest bits

    // A packet's beats
    input  wire         s_axis_tvalid,
    input  wire         s_axis_tready,  // of agg_ingress
    input  wire         s_axis_tlast,
    input  wire [176:0] s_axis_tuser,
    output wire [112:0] m_axis_tuser,

    // A packet is judged; its mask
    input  wire        judged,
    output wire [63:0] mask
);

  `include "zwire.vh"

  localparam integer PLACES_BITS = 3;

  wire [63:0] its_mask = s_axis_tuser[HDR_MASK_LSB+:64];
  wire [7:0] number = s_axis_tuser[HDR_JOB_LSB+:8];
  wire [JOB_BITS-1:0] job = JOBS == 1 ? {JOB_BITS{1'b0}} : number[JOB_BITS-1:0];
  wire [3:0] kind = s_axis_tuser[HDR_KIND_LSB+:4];
  wire sum = kind == KIND_RESULT || kind == KIND_REPLAY;
  wire status = kind == KIND_STATUS;
  wire good = its_mask == tree_ranks[64*job+:64];
  wire nonfinite = |(s_axis_tuser[HDR_FLAGS_LSB+:8] & FLAG_NONFINITE);

  assign m_axis_tuser = {
    s_axis_tuser[176],
    status ? {8'd0, s_axis_tuser[HDR_CODE_LSB+:8]} : s_axis_tuser[HDR_LENGTH_LSB+:16],
    s_axis_tuser[HDR_VID_LSB+:32],
    8'd0,
    status ? s_axis_tuser[HDR_RANK_LSB+:8] : {6'd0, nonfinite, good},
    s_axis_tuser[HDR_EPOCH_LSB+:16],
    s_axis_tuser[HDR_FORMAT_LSB+:8],
    number,
    6'd0,
    s_axis_tuser[HDR_FLAGS_LSB+:2],
    sum ? KIND_DATA : status ? KIND_ASK : 4'd0,
    s_axis_tuser[HDR_VERSION_LSB+:4]
  };

  // -- Masks --------------------------------------------------------------------------------------

  (* ram_style = "distributed" *) reg [63:0] masks[0:(1<<PLACES_BITS)-1];
  reg first_reg;  // the next beat begins a packet
  reg [PLACES_BITS-1:0] wr_reg, rd_reg;  // of the next packet; of the next to be judged
  reg [63:0] mask_reg;
  wire begins = s_axis_tvalid && s_axis_tready && first_reg;
  wire [PLACES_BITS-1:0] rd_next = rd_reg + {{PLACES_BITS - 1{1'b0}}, judged};

  always @(posedge clk) begin
    if (s_axis_tvalid && s_axis_tready) first_reg <= s_axis_tlast;
    if (begins) begin
      masks[wr_reg] <= its_mask;
      wr_reg        <= wr_reg + 1'b1;
    end
    rd_reg   <= rd_next;
    mask_reg <= masks[rd_next];
    if (rst) begin
      first_reg <= 1'b1;
      wr_reg    <= {PLACES_BITS{1'b0}};
      rd_reg    <= {PLACES_BITS{1'b0}};
    end
  end

  assign mask = mask_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Any packet, from its first beat until it is judged: its mask, and the packets before it.
  (* anyseq *) reg chosen;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg first;  // the next beat begins a packet
  reg [3:0] pending;  // packets between their first beat and judged
  reg began_was, judged_was;
  reg watches;
  reg [2:0] ahead;  // packets that are judged before the watched one
  reg [63:0] mask_then;
  wire enters = s_axis_tvalid && s_axis_tready && first;
  wire starts = enters && chosen && !watches;
  wire its_turn = watches && ahead == 0;

  wire [111:0] to = m_axis_tuser[111:0];
  wire [7:0] its_job = s_axis_tuser[HDR_JOB_LSB+:8];
  wire [3:0] its_kind = s_axis_tuser[HDR_KIND_LSB+:4];
  wire is_sum = its_kind == KIND_RESULT || its_kind == KIND_REPLAY;
  wire [63:0] its_tree = its_job[0] ? tree_ranks[127:64] : tree_ranks[63:0];

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    if (s_axis_tvalid && s_axis_tready) first <= s_axis_tlast;
    pending <= pending + enters - judged;
    began_was <= enters;
    judged_was <= judged;
    if (starts) begin
      watches <= 1'b1;
      ahead <= pending - judged;
      mask_then <= s_axis_tuser[HDR_MASK_LSB+:64];
    end else if (judged) begin
      if (its_turn) watches <= 1'b0;
      ahead <= ahead - 1'b1;
    end
    if (rst) begin
      first <= 1'b1;
      pending <= 0;
      watches <= 1'b0;
      began_was <= 1'b0;
      judged_was <= 1'b0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // agg_ingress: it has at most eight packets, and asks two cycles after the first beat or later.
      // agg_arbiter: they are judged two cycles apart or more.
      `PROMISED(pending < 8 || !(s_axis_tvalid && s_axis_tready && first));
      `PROMISED(!judged || (pending > began_was && !judged_was));
      assert (first_reg == first && pending <= 8);
      assert (wr_reg - rd_reg == pending[2:0]);
      if (watches) assert (ahead < pending);

      // The mask of a packet stays until it is judged.
      if (watches) assert (masks[rd_reg+ahead] == mask_then);
      if (its_turn && !began_was) assert (mask == mask_then);

      // The header, as agg_ingress has it. A result with the mask of its tree is data.
      assert (m_axis_tuser[112] == s_axis_tuser[176]);
      assert (to[HDR_VERSION_LSB+:4] == s_axis_tuser[HDR_VERSION_LSB+:4]);
      assert (to[HDR_JOB_LSB+:8] == its_job);
      assert (to[HDR_EPOCH_LSB+:16] == s_axis_tuser[HDR_EPOCH_LSB+:16]);
      assert (to[HDR_FORMAT_LSB+:8] == s_axis_tuser[HDR_FORMAT_LSB+:8]);
      assert (to[HDR_VID_LSB+:32] == s_axis_tuser[HDR_VID_LSB+:32]);
      assert (to[HDR_FLAGS_LSB+:2] == s_axis_tuser[HDR_FLAGS_LSB+:2]);
      if (is_sum) begin
        assert (to[HDR_KIND_LSB+:4] == KIND_DATA);
        assert (to[HDR_LENGTH_LSB+:16] == s_axis_tuser[HDR_LENGTH_LSB+:16]);
        assert (to[HDR_RANK_LSB+1] == ((s_axis_tuser[HDR_FLAGS_LSB+:8] & FLAG_NONFINITE) != 0));
        if (its_job < 2) assert (to[HDR_RANK_LSB] == (s_axis_tuser[HDR_MASK_LSB+:64] == its_tree));
      end else if (its_kind == KIND_STATUS) begin
        assert (to[HDR_KIND_LSB+:4] == KIND_ASK);
        assert (to[HDR_LENGTH_LSB+:16] == {8'd0, s_axis_tuser[HDR_CODE_LSB+:8]});
        assert (to[HDR_RANK_LSB+:8] == s_axis_tuser[HDR_RANK_LSB+:8]);
      end else begin
        assert (to[HDR_KIND_LSB+:4] == 0);
      end

      cover (its_turn && judged && pending == 8);
      cover (its_turn && judged && pending == 1 && enters);
    end
  end
`endif

endmodule

`default_nettype wire
