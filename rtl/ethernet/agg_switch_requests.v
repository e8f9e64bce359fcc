// A port's requests to the table of addresses, which serves one port a cycle.
//
// A request is offered at m_axis in the cycle after it came, at the earliest. One that comes while
// room is low is not taken. Throughput: a request a cycle. m_axis_tdata is the output of a small
// memory, and no register: agg_eth_merge has one.

`default_nettype none

module agg_switch_requests #(
    parameter integer WIDTH = 98,
    parameter integer DEPTH_BITS = 4  // log2 of the requests: what a small memory of an FPGA holds
) (
    input wire clk,
    input wire rst,

    output wire             room,
    input  wire             s_valid,
    input  wire [WIDTH-1:0] s_request,

    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire [WIDTH-1:0] m_axis_tdata
);

  (* ram_style = "distributed" *) reg [WIDTH-1:0] requests[0:(1<<DEPTH_BITS)-1];
  reg [DEPTH_BITS-1:0] wr_reg;
  reg [DEPTH_BITS-1:0] rd_reg;
  reg [DEPTH_BITS:0] count_reg;

  wire push = s_valid && room;
  wire pop = m_axis_tvalid && m_axis_tready;

  always @(posedge clk) begin
    if (push) begin
      requests[wr_reg] <= s_request;
      wr_reg           <= wr_reg + 1'b1;
    end
    if (pop) rd_reg <= rd_reg + 1'b1;
    count_reg <= count_reg + {{DEPTH_BITS{1'b0}}, push} - {{DEPTH_BITS{1'b0}}, pop};
    if (rst) begin
      wr_reg    <= {DEPTH_BITS{1'b0}};
      rd_reg    <= {DEPTH_BITS{1'b0}};
      count_reg <= {DEPTH_BITS + 1{1'b0}};
    end
  end

  assign room          = !count_reg[DEPTH_BITS];
  assign m_axis_tvalid = count_reg != {DEPTH_BITS + 1{1'b0}};
  assign m_axis_tdata  = requests[rd_reg];

endmodule

`default_nettype wire
