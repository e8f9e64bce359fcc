// Routes the packets of a shared link to the port of their rank.
//
// dest is one-hot, and follows job and rank by a cycle. agg_beat_pack keeps it with each packet. A
// rank without a port in the job goes to port 0, which refuses it as not its own. Only the low bits
// of the job number count. The rank map must be stable during a header.
//
// Not done here: data and header, which go to every port directly; only valid is selected.

`default_nettype none

module agg_route #(
    parameter integer PORTS    = 4,
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1
) (
    input wire clk,

    input  wire [             7:0] job,
    input  wire [             7:0] rank,
    input  wire [8*PORTS*JOBS-1:0] rank_of_port,  // job 0 in the lowest bits
    input  wire [  PORTS*JOBS-1:0] member,        // the port has a rank
    output wire [       PORTS-1:0] dest,

    input  wire [PORTS-1:0] s_axis_tdest,   // one-hot
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,

    output wire [PORTS-1:0] m_axis_tvalid,
    input  wire [PORTS-1:0] m_axis_tready
);

  wire [JOB_BITS-1:0] index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
  wire unused = &{1'b0, job};
  wire [8*PORTS-1:0] ranks = rank_of_port[8*PORTS*index+:8*PORTS];
  wire [PORTS-1:0] members = member[PORTS*index+:PORTS];

  reg [PORTS-1:0] match_reg;
  reg [PORTS-1:0] port;
  integer i;

  always @(posedge clk) begin
    for (i = 0; i < PORTS; i = i + 1) match_reg[i] <= members[i] && ranks[8*i+:8] == rank;
  end

  always @* begin
    port = match_reg;
    if (match_reg == {PORTS{1'b0}}) port[0] = 1'b1;
  end

  assign dest = port;
  assign m_axis_tvalid = s_axis_tvalid ? s_axis_tdest : {PORTS{1'b0}};
  assign s_axis_tready = |(s_axis_tdest & m_axis_tready);

endmodule

`default_nettype wire
