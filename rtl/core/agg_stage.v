// A register in an AXI4-Stream, for everything but tdata: agg_cache keeps that beside it.
//
// A beat is accepted while the register is empty or its beat leaves. Latency: one cycle. Throughput:
// a beat a cycle. Not done here: a registered tready.

`default_nettype none

module agg_stage #(
    parameter integer WIDTH = 8
) (
    input wire clk,
    input wire rst,

    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [WIDTH-1:0] s_axis_tuser,   // all of the stream's fields

    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [WIDTH-1:0] m_axis_tuser
);

  reg valid_reg;
  reg [WIDTH-1:0] user_reg;

  assign s_axis_tready = !valid_reg || m_axis_tready;

  always @(posedge clk) begin
    if (s_axis_tready) begin
      valid_reg <= s_axis_tvalid;
      user_reg  <= s_axis_tuser;
    end
    if (rst) valid_reg <= 1'b0;
  end

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tuser  = user_reg;

endmodule

`default_nettype wire
