// The in-path switch behind one receiver for each port, for test_eth_switch.py and the lints.

`default_nettype none

module ethernet_switch #(
    parameter integer PORTS = 3,
    parameter integer BYTES = 8,
    parameter integer DEPTH_BITS = 12,
    parameter integer FRAME_BITS = 7,
    parameter integer SET_BITS = 9,
    parameter integer CLOCK_KHZ = 125000,
    parameter integer AGE_MS = 300000
) (
    input wire clk,
    input wire rst,

    input wire [47:0] own_mac,
    input wire [31:0] own_ip,
    input wire [15:0] own_port,

    input wire [        PORTS-1:0] s_axis_tvalid,
    input wire [8*BYTES*PORTS-1:0] s_axis_tdata,
    input wire [  BYTES*PORTS-1:0] s_axis_tkeep,
    input wire [        PORTS-1:0] s_axis_tlast,
    input wire [        PORTS-1:0] s_axis_tuser,

    output wire [        PORTS-1:0] m_axis_tvalid,
    input  wire [        PORTS-1:0] m_axis_tready,
    output wire [8*BYTES*PORTS-1:0] m_axis_tdata,
    output wire [  BYTES*PORTS-1:0] m_axis_tkeep,
    output wire [        PORTS-1:0] m_axis_tlast,

    output wire [PORTS-1:0] event_passed,
    output wire [PORTS-1:0] event_dropped
);

  wire [  PORTS-1:0] verdict_valid;
  wire [3*PORTS-1:0] verdict_kind;
  wire [4*PORTS-1:0] verdict_reason;

  genvar i;
  generate
    for (i = 0; i < PORTS; i = i + 1) begin : g_port
      wire unused_valid, unused_last;
      wire [8*BYTES-1:0] unused_data;
      wire [BYTES-1:0] unused_keep;
      wire [337:0] unused_fields;

      agg_eth_receive #(
          .BYTES(BYTES)
      ) u_receive (
          .clk             (clk),
          .rst             (rst),
          .own_mac         (own_mac),
          .own_ip          (own_ip),
          .own_port        (own_port),
          .s_axis_tvalid   (s_axis_tvalid[i]),
          .s_axis_tdata    (s_axis_tdata[8*BYTES*i+:8*BYTES]),
          .s_axis_tkeep    (s_axis_tkeep[BYTES*i+:BYTES]),
          .s_axis_tlast    (s_axis_tlast[i]),
          .s_axis_tuser    (s_axis_tuser[i]),
          .m_axis_tvalid   (unused_valid),
          .m_axis_tdata    (unused_data),
          .m_axis_tkeep    (unused_keep),
          .m_axis_tlast    (unused_last),
          .m_verdict_valid (verdict_valid[i]),
          .m_verdict_kind  (verdict_kind[3*i+:3]),
          .m_verdict_reason(verdict_reason[4*i+:4]),
          .m_verdict_mac   (unused_fields[47:0]),
          .m_verdict_ip    (unused_fields[79:48]),
          .m_verdict_port  (unused_fields[95:80]),
          .m_verdict_ecn   (unused_fields[97:96]),
          .m_verdict_header(unused_fields[273:98]),
          .m_verdict_bytes (unused_fields[289:274]),
          .m_verdict_echo  (unused_fields[337:290])
      );
    end
  endgenerate

  agg_eth_switch #(
      .PORTS     (PORTS),
      .BYTES     (BYTES),
      .DEPTH_BITS(DEPTH_BITS),
      .FRAME_BITS(FRAME_BITS),
      .SET_BITS  (SET_BITS),
      .CLOCK_KHZ (CLOCK_KHZ),
      .AGE_MS    (AGE_MS)
  ) u_switch (
      .clk             (clk),
      .rst             (rst),
      .s_axis_tvalid   (s_axis_tvalid),
      .s_axis_tdata    (s_axis_tdata),
      .s_axis_tkeep    (s_axis_tkeep),
      .s_axis_tlast    (s_axis_tlast),
      .s_verdict_valid (verdict_valid),
      .s_verdict_kind  (verdict_kind),
      .s_verdict_reason(verdict_reason),
      .m_axis_tvalid   (m_axis_tvalid),
      .m_axis_tready   (m_axis_tready),
      .m_axis_tdata    (m_axis_tdata),
      .m_axis_tkeep    (m_axis_tkeep),
      .m_axis_tlast    (m_axis_tlast),
      .event_passed    (event_passed),
      .event_dropped   (event_dropped)
  );

endmodule

`default_nettype wire
