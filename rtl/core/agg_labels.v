// What is known of every slot when its last contribution is stored, until it is complete the next time:
// its job, the ports that contributed, its VID and its marks. Who reads beats, who writes sums and who
// sends results each look at a slot of their own, in the same cycle; what they see of a slot that is
// completed in cycle 0 is new from cycle 1 on.
//
// sum_* is read beside a sum's tag, written_* is the same a cycle later, beside its write. Not done here:
// what a job is (agg_jobs); a label means nothing before its slot was first complete.

`default_nettype none

module agg_labels #(
    parameter integer PORTS     = 4,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,

    // A slot is complete
    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [ JOB_BITS-1:0] complete_job,
    input wire [    PORTS-1:0] complete_ports,
    input wire [         31:0] complete_vid,
    input wire [          1:0] complete_ecn,
    input wire                 complete_nonfinite,

    // A beat goes into the lanes
    input  wire [SLOT_BITS-1:0] beat_slot,
    output wire [    PORTS-1:0] beat_ports,

    // A sum comes out of them
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

  // A memory for each reader.
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
