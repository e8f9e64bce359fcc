// Holds each slot's label from its completion to its next one: job, contributing ports, VID and
// marks. The readers of beats, the writer of sums and the sender of results each read the label of
// a slot of their own in the same cycle. A label written in cycle 0 is readable from cycle 1 on.
//
// sum_* is for use with a sum's tag; written_* is the same one cycle later, for use with its write.
// Not done here: job configuration (agg_jobs). A label is undefined before its slot first
// completes.

`default_nettype none

module agg_labels #(
    parameter integer PORTS     = 4,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,

    // A slot completes
    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [ JOB_BITS-1:0] complete_job,
    input wire [    PORTS-1:0] complete_ports,
    input wire [         31:0] complete_vid,
    input wire [          1:0] complete_ecn,
    input wire                 complete_nonfinite,

    // A beat enters the lanes
    input  wire [SLOT_BITS-1:0] beat_slot,
    output wire [    PORTS-1:0] beat_ports,

    // A sum leaves the lanes
    input  wire [SLOT_BITS-1:0] sum_slot,
    output wire [ JOB_BITS-1:0] sum_job,
    output wire [ JOB_BITS-1:0] written_job,
    output wire [         31:0] written_vid,

    // A result is sent
    input  wire [SLOT_BITS-1:0] send_slot,
    output wire [    PORTS-1:0] send_ports,
    output wire [         31:0] send_vid,
    output wire [          1:0] send_ecn,
    output wire                 send_nonfinite
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  // One memory for each reader.
  reg [PORTS-1:0] beat_labels[0:SLOTS-1];
  reg [JOB_BITS-1:0] sum_jobs[0:SLOTS-1];
  reg [31:0] sum_vids[0:SLOTS-1];
  reg [PORTS+34:0] send_labels[0:SLOTS-1];

  reg [JOB_BITS-1:0] job_reg;
  reg [31:0] vid_reg;

  always @(posedge clk) begin
    if (complete) begin
      beat_labels[complete_slot] <= complete_ports;
      sum_jobs[complete_slot] <= complete_job;
      sum_vids[complete_slot] <= complete_vid;
      send_labels[complete_slot] <= {
        complete_ports, complete_nonfinite, complete_ecn, complete_vid
      };
    end
    job_reg <= sum_jobs[sum_slot];
    vid_reg <= sum_vids[sum_slot];
  end

  assign beat_ports = beat_labels[beat_slot];
  assign sum_job = sum_jobs[sum_slot];
  assign written_job = job_reg;
  assign written_vid = vid_reg;
  assign {send_ports, send_nonfinite, send_ecn, send_vid} = send_labels[send_slot];

endmodule

`default_nettype wire
