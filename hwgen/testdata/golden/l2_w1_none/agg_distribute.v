// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// Says which ports a packet of the core is for: a status for the port in tdest, a result for the ports
// of its receivers. Combinational.
//
// Not done here: who has which rank (agg_ranks).

`default_nettype none

module agg_distribute #(
    parameter integer PORTS     = 4,
    parameter integer KEEP_BITS = 64  // bytes of a beat
) (
    input wire [  PORTS-1:0] member,       // the port has a rank
    input wire [8*PORTS-1:0] rank_of_port,

    // The core's stream
    input wire                 s_axis_tvalid,
    input wire [KEEP_BITS-1:0] s_axis_tkeep,
    input wire [        239:0] s_axis_tuser,   // header with mask and receivers
    input wire [          7:0] s_axis_tdest,

    output reg  [PORTS-1:0] m_axis_tvalid,
    output wire             m_axis_tpayload  // the beat has bytes: all of them
);

  `include "zwire.vh"

  localparam [PORTS-1:0] ONE = 1;

  wire [PORTS-1:0] receivers = s_axis_tuser[HDR_RECEIVERS_LSB+:PORTS];
  wire unused = &{1'b0, s_axis_tkeep, s_axis_tuser};

  integer p;

  always @* begin
    for (p = 0; p < PORTS; p = p + 1) begin
      if (!s_axis_tvalid) m_axis_tvalid[p] = 1'b0;
      else if (!m_axis_tpayload) m_axis_tvalid[p] = s_axis_tdest == p[7:0];
      else m_axis_tvalid[p] = member[p] && |(receivers & (ONE << rank_of_port[8*p+:8]));
    end
  end

  assign m_axis_tpayload = s_axis_tkeep[0];

endmodule

`default_nettype wire
