// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// Sends results from the cache, and statuses, as packets of one stream.
//
// One packet follows the other without a bubble. A status goes first, but after one a result has
// its turn. A result may be sent while it is still being written: each beat is read when it is
// written. The header is put together at a packet's beginning and stands in tuser until the next
// packet begins.
//
// Latency: what is picked in cycle 0 stands at the output in cycle 1. Not done here: who gets what
// (agg_owed, agg_status); a packet that was begun goes on when the job ends.

`default_nettype none

module agg_egress #(
    parameter integer       PORTS      = 4,
    parameter integer       PORT_BITS  = 2,
    parameter integer       SLOT_BITS  = 4,
    parameter integer       INDEX_BITS = 4,    // of a beat's number in its chunk
    parameter integer       KEEP_BITS  = 64,   // bytes of a beat
    parameter         [7:0] FORMAT     = 8'd1  // of results, as in the header
) (
    input wire clk,
    input wire rst,

    // The job
    input wire [INDEX_BITS-1:0] job_last,   // number of a chunk's last beat
    input wire [          15:0] job_epoch,
    input wire [          15:0] job_chunk,  // elements
    input wire [     PORTS-1:0] job_ranks,  // a bit for every rank there is

    // A slot holds all contributions: what its result's header will say
    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [         31:0] complete_vid,
    input wire [          1:0] complete_ecn,
    input wire                 complete_nonfinite,

    // The next result
    input  wire                 result_valid,
    input  wire [SLOT_BITS-1:0] result_slot,
    input  wire [    PORTS-1:0] result_receivers,
    input  wire                 result_replay,
    output wire                 result_take,

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

    // The cache: rd_written answers for rd_slot, rd_beat; what is read stands at the stream's tdata
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,
    input  wire                  rd_written,
    output wire                  sending,     // rd_slot's entry must not change

    // The stream, without its data
    output wire [KEEP_BITS-1:0] m_axis_tkeep,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire                 m_axis_tlast,
    output wire [        239:0] m_axis_tuser,   // header with mask and receivers
    output wire [          7:0] m_axis_tdest    // of a status: its port
);

  `include "zwire.vh"

  localparam integer LABEL_WIDTH = 35;

  reg [LABEL_WIDTH-1:0] labels[0:(1<<SLOT_BITS)-1];  // {nonfinite, ECN, VID} of each result

  reg sending_reg;  // beats are still to be read
  reg [SLOT_BITS-1:0] slot_reg;
  reg [INDEX_BITS-1:0] beat_reg;  // to be read next
  reg [INDEX_BITS-1:0] last_reg;
  reg valid_reg, payload_reg, last_beat_reg;
  reg after_status_reg;
  reg [239:0] header_reg;
  reg [7:0] dest_reg;

  wire free = !valid_reg || m_axis_tready;
  wire begins = free && !sending_reg;

  assign status_take = begins && status_valid && !(result_valid && after_status_reg);
  assign result_take = begins && result_valid && !status_take;

  assign sending = sending_reg;
  assign rd_slot = sending_reg ? slot_reg : result_slot;
  assign rd_beat = sending_reg ? beat_reg : {INDEX_BITS{1'b0}};
  assign rd_en = free && (sending_reg || result_take) && rd_written;

  wire rd_last = rd_beat == (sending_reg ? last_reg : job_last);

  // -- Header -------------------------------------------------------------------------------------

  wire [LABEL_WIDTH-1:0] label = labels[result_slot];
  wire [63:0] result_mask = {{64 - PORTS{1'b0}}, job_ranks};
  wire [63:0] receivers = {{64 - PORTS{1'b0}}, result_receivers};
  wire [63:0] missing = {{64 - PORTS{1'b0}}, status_mask};
  wire [7:0] flags = {6'd0, label[33:32]} | (label[34] ? FLAG_NONFINITE : 8'd0);
  wire [7:0] result_kind = {result_replay ? KIND_REPLAY : KIND_RESULT, VERSION};
  wire [7:0] status_kind = {KIND_STATUS, VERSION};

  // receivers, mask, length, VID, code, rank, epoch, format, job, flags, kind and version
  wire [239:0] result_header = {
    receivers,
    result_mask,
    job_chunk,
    label[31:0],
    16'd0,
    job_epoch,
    FORMAT,
    8'd0,
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
    if (complete) labels[complete_slot] <= {complete_nonfinite, complete_ecn, complete_vid};

    if (result_take) begin
      header_reg       <= result_header;
      slot_reg         <= result_slot;
      last_reg         <= job_last;
      after_status_reg <= 1'b0;
    end
    if (status_take) begin
      header_reg       <= status_header;
      dest_reg         <= {{8 - PORT_BITS{1'b0}}, status_port};
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
      dest_reg         <= 8'd0;
      after_status_reg <= 1'b0;
    end
  end

  assign m_axis_tkeep  = {KEEP_BITS{payload_reg}};
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_beat_reg;
  assign m_axis_tuser  = header_reg;
  assign m_axis_tdest  = dest_reg;

endmodule

`default_nettype wire
