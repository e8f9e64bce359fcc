// agg_eth_merge with three streams of their own names, for test_ethernet_leaves.py and the lints.

`default_nettype none

module ethernet_merge #(
    parameter integer BYTES = 8
) (
    input wire clk,
    input wire rst,

    input  wire [8*BYTES-1:0] s_0_tdata,
    input  wire [  BYTES-1:0] s_0_tkeep,
    input  wire               s_0_tvalid,
    output wire               s_0_tready,
    input  wire               s_0_tlast,

    input  wire [8*BYTES-1:0] s_1_tdata,
    input  wire [  BYTES-1:0] s_1_tkeep,
    input  wire               s_1_tvalid,
    output wire               s_1_tready,
    input  wire               s_1_tlast,

    input  wire [8*BYTES-1:0] s_2_tdata,
    input  wire [  BYTES-1:0] s_2_tkeep,
    input  wire               s_2_tvalid,
    output wire               s_2_tready,
    input  wire               s_2_tlast,

    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  agg_eth_merge #(
      .STREAMS(3),
      .BYTES  (BYTES)
  ) u_merge (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata ({s_2_tdata, s_1_tdata, s_0_tdata}),
      .s_axis_tkeep ({s_2_tkeep, s_1_tkeep, s_0_tkeep}),
      .s_axis_tvalid({s_2_tvalid, s_1_tvalid, s_0_tvalid}),
      .s_axis_tready({s_2_tready, s_1_tready, s_0_tready}),
      .s_axis_tlast ({s_2_tlast, s_1_tlast, s_0_tlast}),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tlast (m_axis_tlast)
  );

endmodule

`default_nettype wire
