// A register in an AXI4-Stream, for everything but tdata: agg_cache keeps that beside it.
//
// A beat is accepted while the register is empty or its beat leaves. Without a beat, tdest is zero:
// a bit of it is the tvalid of its port. Latency: one cycle. Throughput: a beat a cycle. Not done
// here: a registered tready.

`default_nettype none

module agg_stage #(
    parameter integer WIDTH = 8,
    parameter integer PORTS = 4
) (
    input wire clk,
    input wire rst,

    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire [WIDTH-1:0] s_axis_tuser,   // the stream's other fields
    input  wire [PORTS-1:0] s_axis_tdest,

    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [WIDTH-1:0] m_axis_tuser,
    output wire [PORTS-1:0] m_axis_tdest
);

  reg valid_reg;
  reg [WIDTH-1:0] user_reg;
  reg [PORTS-1:0] dest_reg;

  assign s_axis_tready = !valid_reg || m_axis_tready;

  always @(posedge clk) begin
    if (s_axis_tready) begin
      valid_reg <= s_axis_tvalid;
      user_reg  <= s_axis_tuser;
      dest_reg  <= s_axis_tvalid ? s_axis_tdest : {PORTS{1'b0}};
    end
    if (rst) begin
      valid_reg <= 1'b0;
      dest_reg  <= {PORTS{1'b0}};
    end
  end

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tuser  = user_reg;
  assign m_axis_tdest  = dest_reg;

endmodule

`default_nettype wire
