// Sends results from the cache, and statuses, as packets of one AXI4-Stream.
//
// Packets follow one another without a bubble. A status has priority, but not twice in a
// row while a result waits. A result can be sent while it is still being written: each
// beat waits for rd_written. tuser holds the header from a packet's first beat to its
// last.
//
// Latency: a packet taken in cycle 0 is at the output in cycle 1. A packet under way is
// completed even if its job ends. Not done here: destinations, and order in a job
// (agg_owed, agg_status), turns of jobs, header contents (agg_labels).

`default_nettype none

module agg_egress #(
    parameter integer       PORTS      = 4,
    parameter integer       PORT_BITS  = 2,
    parameter integer       SLOT_BITS  = 4,
    parameter integer       INDEX_BITS = 4,    // width of a beat's number in its chunk
    parameter integer       KEEP_BITS  = 64,   // bytes per beat
    parameter         [7:0] FORMAT     = 8'd1  // data format of results, as in the header
) (
    input wire clk,
    input wire rst,

    // The next result and its header fields
    input  wire                  result_valid,
    input  wire [ SLOT_BITS-1:0] result_slot,
    input  wire [INDEX_BITS-1:0] result_last,       // number of the last beat
    input  wire [     PORTS-1:0] result_ports,      // destination ports
    input  wire [           7:0] result_job,
    input  wire [          15:0] result_epoch,
    input  wire [          15:0] result_chunk,      // length, in elements
    input  wire [          31:0] result_vid,
    input  wire [           1:0] result_ecn,
    input  wire                  result_nonfinite,
    input  wire                  result_partial,    // a member's contribution is missing
    input  wire [     PORTS-1:0] result_mask,       // ranks that contributed
    input  wire [     PORTS-1:0] result_receivers,  // ranks at result_ports
    input  wire                  result_replay,
    output wire                  result_take,

    // The next status
    input  wire                 status_valid,
    input  wire [PORT_BITS-1:0] status_port,
    input  wire [          7:0] status_job,
    input  wire [         15:0] status_epoch,
    input  wire [          7:0] status_rank,
    input  wire [          7:0] status_code,
    input  wire [         31:0] status_vid,
    input  wire [    PORTS-1:0] status_mask,
    output wire                 status_take,

    // The cache: rd_written is for rd_slot, rd_beat; its read data is the stream's tdata
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,
    input  wire                  rd_written,
    output wire                  sending,     // the entry of rd_slot must not change

    // The stream, without tdata
    output wire [KEEP_BITS-1:0] m_axis_tkeep,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire                 m_axis_tlast,
    output wire [        239:0] m_axis_tuser,   // header with mask and receivers
    output wire [    PORTS-1:0] m_axis_tdest    // destination ports
);

  `include "zwire.vh"

  localparam [PORTS-1:0] ONE = 1;

  reg sending_reg;  // the result has beats left to read
  reg [SLOT_BITS-1:0] slot_reg;
  reg [INDEX_BITS-1:0] beat_reg;  // next beat to read
  reg [INDEX_BITS-1:0] last_reg;
  reg valid_reg, payload_reg, last_beat_reg;
  reg after_status_reg;
  reg [239:0] header_reg;
  reg [PORTS-1:0] dest_reg;

  wire free = !valid_reg || m_axis_tready;
  wire begins = free && !sending_reg;

  assign status_take = begins && status_valid && !(result_valid && after_status_reg);
  assign result_take = begins && result_valid && !status_take;

  assign sending = sending_reg;
  assign rd_slot = sending_reg ? slot_reg : result_slot;
  assign rd_beat = sending_reg ? beat_reg : {INDEX_BITS{1'b0}};
  assign rd_en = free && (sending_reg || result_take) && rd_written;

  wire rd_last = rd_beat == (sending_reg ? last_reg : result_last);

  // -- Header -------------------------------------------------------------------------------------

  wire [63:0] contributors = {{64 - PORTS{1'b0}}, result_mask};
  wire [63:0] receivers = {{64 - PORTS{1'b0}}, result_receivers};
  wire [63:0] missing = {{64 - PORTS{1'b0}}, status_mask};
  wire [7:0] flags = {6'd0, result_ecn} | (result_nonfinite ? FLAG_NONFINITE : 8'd0) |
      (result_partial ? FLAG_PARTIAL : 8'd0);
  wire [7:0] result_kind = {result_replay ? KIND_REPLAY : KIND_RESULT, VERSION};
  wire [7:0] status_kind = {KIND_STATUS, VERSION};

  // receivers, mask, length, VID, code, rank, epoch, format, job, flags, kind and version
  wire [239:0] result_header = {
    receivers,
    contributors,
    result_chunk,
    result_vid,
    16'd0,
    result_epoch,
    FORMAT,
    result_job,
    flags,
    result_kind
  };
  wire [239:0] status_header = {
    64'd0,
    missing,
    16'd0,
    status_vid,
    status_code,
    status_rank,
    status_epoch,
    8'd0,
    status_job,
    8'd0,
    status_kind
  };

  // -----------------------------------------------------------------------------------------------

  always @(posedge clk) begin
    if (result_take) begin
      header_reg       <= result_header;
      dest_reg         <= result_ports;
      slot_reg         <= result_slot;
      last_reg         <= result_last;
      after_status_reg <= 1'b0;
    end
    if (status_take) begin
      header_reg       <= status_header;
      dest_reg         <= ONE << status_port;
      after_status_reg <= 1'b1;
    end

    if (rd_en) beat_reg <= rd_beat + 1'b1;
    else if (result_take) beat_reg <= {INDEX_BITS{1'b0}};
    if (result_take || sending_reg) sending_reg <= !(rd_en && rd_last);

    if (free) begin
      valid_reg     <= rd_en || status_take;
      payload_reg   <= rd_en;
      last_beat_reg <= status_take || rd_last;
    end

    if (rst) begin
      sending_reg      <= 1'b0;
      valid_reg        <= 1'b0;
      dest_reg         <= {PORTS{1'b0}};
      after_status_reg <= 1'b0;
    end
  end

  assign m_axis_tkeep  = {KEEP_BITS{payload_reg}};
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_beat_reg;
  assign m_axis_tuser  = header_reg;
  assign m_axis_tdest  = dest_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The packet being sent, and the reads.
  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg reading;  // the result has beats left to read
  reg [SLOT_BITS-1:0] sends;
  reg [INDEX_BITS:0] next, final_beat;
  reg open;  // the first beat is at the output or has left, and the last has not left
  reg waited, read_was, last_was, status_was, result_was, replay_was, nonfinite_was, partial_was;
  reg [KEEP_BITS+240+PORTS:0] stood;
  reg [239:0] head_was;
  reg [PORTS-1:0] dest_was, receivers_was, mask_was;
  reg [ 7:0] job_was;
  reg [ 1:0] ecn_was;
  reg [31:0] vid_was;
  reg [15:0] chunk_was, epoch_was;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    if (result_take) begin
      reading <= 1'b1;
      sends <= result_slot;
      next <= 0;
      final_beat <= result_last;
    end
    if (rd_en) begin
      next <= (result_take ? 0 : next) + 1;
      if ((result_take ? 0 : next) == (result_take ? result_last : final_beat)) reading <= 1'b0;
    end
    waited <= m_axis_tvalid && !m_axis_tready;
    stood <= {m_axis_tkeep, m_axis_tlast, m_axis_tuser, m_axis_tdest};
    head_was <= m_axis_tuser;
    dest_was <= status_take ? 1 << status_port : result_take ? result_ports : m_axis_tdest;
    open <= result_take || status_take ||
        (open && !(m_axis_tvalid && m_axis_tready && m_axis_tlast));
    read_was <= rd_en;
    last_was <= (result_take ? 0 : next) == (result_take ? result_last : final_beat);
    status_was <= status_take;
    result_was <= result_take;
    vid_was <= result_vid;
    ecn_was <= result_ecn;
    nonfinite_was <= result_nonfinite;
    partial_was <= result_partial;
    job_was <= result_job;
    replay_was <= result_replay;
    receivers_was <= result_receivers;
    mask_was <= result_mask;
    chunk_was <= result_chunk;
    epoch_was <= result_epoch;
    if (rst) begin
      reading <= 1'b0;
      waited  <= 1'b0;
      open    <= 1'b0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // One packet at a time; a status has priority, but not twice while a result waits.
      assert (!(status_take && result_take));
      assert (!status_take || status_valid);
      assert (!result_take || result_valid);
      assert ((status_take || result_take) == (free && !reading && (status_valid || result_valid)));
      if (result_valid && after_status) assert (!status_take);
      if (status_valid && !after_status) assert (!result_take);
      assert (after_status_reg == after_status);

      // The beats of a result are read in order, each once and after it is written; the slot stays
      // named until the last one is read.
      assert (sending == reading);
      if (reading) begin
        assert (sends == slot_reg && next == beat_reg);
        assert (final_beat == last_reg && next <= final_beat);
        assert (rd_slot == sends && rd_beat == next && rd_en == (free && rd_written));
      end
      if (result_take) assert (rd_slot == result_slot && rd_beat == 0 && rd_en == rd_written);
      if (!reading && !result_take) assert (!rd_en);

      // AXI4-Stream; the header is stable from a packet's first beat to its last.
      if (waited)
        assert (m_axis_tvalid && {m_axis_tkeep, m_axis_tlast, m_axis_tuser, m_axis_tdest} == stood);
      assert (!reading || open);
      assert (!m_axis_tvalid || open);
      if (m_axis_tvalid) assert (m_axis_tlast == !reading);
      if (open && !reading) assert (m_axis_tvalid);
    end
    if (was_reset && running_was && !rst) begin
      if (!status_was && !took_was) assert (m_axis_tuser == head_was);
      assert (m_axis_tdest == dest_was);
      if (read_was) assert (m_axis_tvalid && (&m_axis_tkeep) && m_axis_tlast == last_was);
      if (status_was) begin
        assert (m_axis_tvalid && m_axis_tkeep == 0 && m_axis_tlast);
        assert (m_axis_tuser[7:4] == KIND_STATUS && m_axis_tuser == status_said);
      end
      if (!status_was && !read_was && !waited) assert (!m_axis_tvalid);
      if (result_was) begin
        assert (m_axis_tuser[7:0] == {replay_was ? KIND_REPLAY : KIND_RESULT, VERSION});
        assert (m_axis_tuser[64+:32] == vid_was);
        assert (m_axis_tuser[8+:8] == {4'd0, nonfinite_was, partial_was, ecn_was});
        assert (m_axis_tuser[16+:8] == job_was);
        assert (m_axis_tuser[24+:8] == FORMAT);
        assert (m_axis_tuser[32+:16] == epoch_was);
        assert (m_axis_tuser[96+:16] == chunk_was);
        assert (m_axis_tuser[112+:64] == mask_was);
        assert (m_axis_tuser[176+:64] == receivers_was);
      end

      cover (m_axis_tvalid && m_axis_tlast && (&m_axis_tkeep) && next == 3 && result_take);
      cover (result_was && replay_was && status_valid);
      cover (reading && !rd_written && m_axis_tvalid && !m_axis_tready);
      cover (status_was && status_take);
    end
  end

  reg took_was;
  reg after_status;  // the most recent packet is a status
  reg [239:0] status_said;
  always @(posedge clk) begin
    took_was             <= result_take;
    after_status         <= !rst && (status_take || (after_status && !result_take));
    status_said          <= 240'd0;
    status_said[0+:8]    <= {KIND_STATUS, VERSION};
    status_said[16+:8]   <= status_job;
    status_said[32+:16]  <= status_epoch;
    status_said[48+:8]   <= status_rank;
    status_said[56+:8]   <= status_code;
    status_said[64+:32]  <= status_vid;
    status_said[112+:64] <= status_mask;
  end
`endif

endmodule

`default_nettype wire
