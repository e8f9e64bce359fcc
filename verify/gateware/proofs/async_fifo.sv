// agg_async_fifo between two clocks with arbitrary edges: every word comes out once, in order.
//
// Checked for the number of steps in the .sby file, from reset. In each step, each clock may rise,
// fall or stay. Metastability is not modelled: a register whose input changes with its clock takes
// the old or the new value, by the order of the clocks' edges.

`default_nettype none

module async_fifo (
    input wire wr_clk,
    input wire rd_clk,
    input wire [1:0] s_axis_tdata,
    input wire s_axis_tvalid,
    input wire m_axis_tready
);

  (* gclk *)
  wire tick;

  reg wr_rst = 1'b1;
  reg rd_rst = 1'b1;
  reg wr_clk_was = 1'b0;
  reg rd_clk_was = 1'b0;

  wire s_axis_tready;
  wire [1:0] m_axis_tdata;
  wire m_axis_tvalid;
  wire rd_empty;

  agg_async_fifo #(
      .WIDTH(2),
      .DEPTH_BITS(2)
  ) fifo (
      .wr_clk(wr_clk),
      .wr_rst(wr_rst),
      .s_axis_tdata(s_axis_tdata),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .rd_clk(rd_clk),
      .rd_rst(rd_rst),
      .m_axis_tdata(m_axis_tdata),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .rd_empty(rd_empty)
  );

  // Numbers of words in and out, and the contents of any one word.
  (* anyconst *)
  reg [4:0] watched;
  reg [4:0] came = 5'd0;
  reg [4:0] left = 5'd0;
  reg [1:0] put;
  reg ended = 1'b0;  // both sides were reset
  reg stalled = 1'b0;
  reg wr_ready = 1'b0;  // edges of both clocks with both resets active
  reg rd_ready = 1'b0;
  wire full_rounds = came - left == 5'd5;

  always @(posedge wr_clk) begin
    wr_ready <= 1'b1;
    if (wr_ready && rd_ready) wr_rst <= 1'b0;
    if (!wr_rst && s_axis_tvalid && s_axis_tready) begin
      came <= came + 1'b1;
      if (came == watched) put <= s_axis_tdata;
    end
  end

  always @(posedge rd_clk) begin
    rd_ready <= 1'b1;
    if (!wr_rst) rd_rst <= 1'b0;
    if (!rd_rst && m_axis_tvalid && m_axis_tready) left <= left + 1'b1;
    stalled <= !rd_rst && m_axis_tvalid && !m_axis_tready;
  end

  always @(posedge tick) begin
    wr_clk_was <= wr_clk;
    rd_clk_was <= rd_clk;
    // Inputs are synchronous to their clocks.
    assume (wr_clk && !wr_clk_was || $stable(s_axis_tdata) && $stable(s_axis_tvalid));
    assume (rd_clk && !rd_clk_was || $stable(m_axis_tready));
  end

  always @* begin
    if (!rd_rst) begin
      assert (came - left <= 5'd5);  // four words in memory, and one at m_axis
      if (m_axis_tvalid) assert (came != left);
      if (m_axis_tvalid && left == watched) assert (m_axis_tdata == put);
      if (rd_empty) assert (!m_axis_tvalid);
      if (stalled) assert (m_axis_tvalid);
      cover (full_rounds && !s_axis_tready);
      cover (left == 5'd3 && rd_empty);
    end
  end

endmodule

`default_nettype wire
