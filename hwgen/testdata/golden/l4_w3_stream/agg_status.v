// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// Keeps the latest status that each port is to be sent, and picks one whose port can take it.
//
// An answer is always kept. A refusal is kept when its sender is known and no refusal was in the
// last 1,024 cycles, for the whole card. A status that could not be sent before the next one for
// its port is replaced by it.
//
// What waits of a job that ends is dropped; of the number that a packet gave as its job the low bits
// count. The pick goes round among the ports. Latency: an answer in cycle 0 can be picked in cycle 1. Not
// done here: refusals are counted elsewhere (agg_counters), all of them.

`default_nettype none

module agg_status #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1
) (
    input wire clk,
    input wire rst,
    input wire [JOBS-1:0] drop,  // forget what was not sent of these jobs

    // What a packet is answered with; of answer and refuse one at most
    input wire                 answer,
    input wire [          7:0] answer_code,
    input wire [    PORTS-1:0] answer_mask,  // ranks
    input wire                 refuse,
    input wire [          7:0] refuse_code,
    input wire [PORT_BITS-1:0] port,
    input wire [          7:0] job,
    input wire [         15:0] epoch,
    input wire [          7:0] rank,
    input wire [         31:0] vid,

    input wire [PORTS-1:0] ready,  // ports that can take a status

    output wire                 pick_valid,
    output wire [PORT_BITS-1:0] pick_port,
    output wire [          7:0] pick_job,
    output wire [         15:0] pick_epoch,
    output wire [          7:0] pick_rank,
    output wire [          7:0] pick_code,
    output wire [         31:0] pick_vid,
    output wire [    PORTS-1:0] pick_mask,
    input  wire                 pick_take
);

  localparam integer STATUS_WIDTH = 72 + PORTS;
  localparam [9:0] PAUSE = 10'd1023;  // cycles without a refusal after one

  reg [STATUS_WIDTH-1:0] statuses[0:PORTS-1];
  reg [JOB_BITS-1:0] job_of[0:PORTS-1];
  reg [PORTS-1:0] waits_reg;
  reg [PORTS-1:0] above_reg;  // ports above the one picked last
  reg [9:0] pause_reg;

  wire refuses = refuse && pause_reg == 10'd0;
  wire keep = answer || refuses;
  wire [7:0] code = answer ? answer_code : refuse_code;
  wire [PORTS-1:0] mask = answer ? answer_mask : {PORTS{1'b0}};

  wire [PORTS-1:0] can = waits_reg & ready;
  wire [PORTS-1:0] ahead = can & above_reg;
  wire [PORTS-1:0] among = |ahead ? ahead : can;
  wire [PORTS-1:0] lowest = among & (~among + 1'b1);

  reg [PORT_BITS-1:0] index;

  wire [JOB_BITS-1:0] job_index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
  reg [PORTS-1:0] dropped;

  integer p;

  always @* begin
    index = {PORT_BITS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (lowest[p]) index = p[PORT_BITS-1:0];
      dropped[p] = drop[job_of[p]];
    end
  end

  integer d;

  always @(posedge clk) begin
    if (keep) begin
      statuses[port] <= {mask, vid, code, rank, epoch, job};
      job_of[port]   <= job_index;
    end
    if (pick_take) begin
      waits_reg <= waits_reg & ~lowest;
      above_reg <= ~(lowest | (lowest - 1'b1));
    end
    for (d = 0; d < PORTS; d = d + 1) if (dropped[d]) waits_reg[d] <= 1'b0;
    if (keep && !drop[job_index]) waits_reg[port] <= 1'b1;
    if (refuses) pause_reg <= PAUSE;
    else if (pause_reg != 10'd0) pause_reg <= pause_reg - 10'd1;
    if (rst) begin
      waits_reg <= {PORTS{1'b0}};
      above_reg <= {PORTS{1'b0}};
      pause_reg <= 10'd0;
    end
  end

  assign pick_valid = |can;
  assign pick_port = index;
  assign {pick_mask, pick_vid, pick_code, pick_rank, pick_epoch, pick_job} = statuses[index];

endmodule

`default_nettype wire
