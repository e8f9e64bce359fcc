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

`ifdef FORMAL
  // Any request leaves as it came, and in order. Numbers are modulo four times the capacity.
  localparam integer NUMBER = DEPTH_BITS + 2;
  (* anyconst *) reg [NUMBER-1:0] watched;
  reg was_reset = 1'b0;
  reg [NUMBER-1:0] came, left;
  reg [WIDTH-1:0] put;

  always @(posedge clk) begin
    if (s_valid && room) begin
      came <= came + 1'b1;
      if (came == watched) put <= s_request;
    end
    if (m_axis_tvalid && m_axis_tready) left <= left + 1'b1;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      left <= 0;
    end
  end

  wire [NUMBER-1:0] here = came - left;

  always @* begin
    if (was_reset) begin
      assert (here <= 1 << DEPTH_BITS && count_reg == here[DEPTH_BITS:0]);
      assert (wr_reg == came[DEPTH_BITS-1:0] && rd_reg == left[DEPTH_BITS-1:0]);
      assert (room == (here < 1 << DEPTH_BITS) && m_axis_tvalid == (here != 0));
      if (watched - left < here) assert (requests[watched[DEPTH_BITS-1:0]] == put);
      if (m_axis_tvalid && watched == left) assert (m_axis_tdata == put);
      cover (s_valid && !room && left == 2);
    end
  end
`endif

endmodule

`default_nettype wire
