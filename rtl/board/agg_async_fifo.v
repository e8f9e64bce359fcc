// FIFO between two clock domains.
//
// The pointers cross in Gray code: one bit changes at a time, so each side sees the other's current
// or an earlier pointer. Either side may miss free space or a new word for a while, but never uses
// a word that is not there. Latency: a word is at m_axis three to four edges of rd_clk after the
// edge of wr_clk that accepted it. A place that was freed may be seen a cycle late.
//
// Both resets must overlap for some edges of both clocks; words written then are lost. Not done
// here: resetting or emptying one side alone.

`default_nettype none

module agg_async_fifo #(
    parameter integer WIDTH = 8,
    parameter integer DEPTH_BITS = 6  // log2 of the memory's words, at least 2
) (
    input  wire             wr_clk,
    input  wire             wr_rst,         // synchronous to wr_clk
    input  wire [WIDTH-1:0] s_axis_tdata,
    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,

    input  wire             rd_clk,
    input  wire             rd_rst,         // synchronous to rd_clk
    output wire [WIDTH-1:0] m_axis_tdata,
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire             rd_empty        // no word is visible to rd_clk
);

  generate
    if (DEPTH_BITS < 2) begin : g_depth
      ERROR_a_fifo_between_clocks_has_4_places_at_least error ();
    end
  endgenerate

  // Pointers are modulo twice the depth, to distinguish full from empty.
  reg [WIDTH-1:0] words[0:(1<<DEPTH_BITS)-1];
  reg [DEPTH_BITS:0] wr_reg;
  reg [DEPTH_BITS:0] wr_gray_reg;
  reg ready_reg;
  reg [DEPTH_BITS:0] rd_reg;
  reg [DEPTH_BITS:0] rd_gray_reg;
  reg [WIDTH-1:0] m_tdata_reg;
  reg m_tvalid_reg;

  wire [DEPTH_BITS:0] rd_gray_seen;  // in wr_clk
  wire [DEPTH_BITS:0] wr_gray_seen;  // in rd_clk

  wire empty = rd_gray_reg == wr_gray_seen;
  wire write = s_axis_tvalid && s_axis_tready;
  wire fetch = !empty && (!m_tvalid_reg || m_axis_tready);
  wire [DEPTH_BITS:0] wr_next = wr_reg + {{DEPTH_BITS{1'b0}}, write};
  wire [DEPTH_BITS:0] wr_gray_next = wr_next ^ wr_next >> 1;
  wire [DEPTH_BITS:0] rd_next = rd_reg + {{DEPTH_BITS{1'b0}}, fetch};

  // Gray codes of pointers one full round apart differ exactly in the upper two bits.
  wire full_next =
      wr_gray_next == {~rd_gray_seen[DEPTH_BITS:DEPTH_BITS-1], rd_gray_seen[DEPTH_BITS-2:0]};

  assign s_axis_tready = ready_reg;
  assign m_axis_tdata  = m_tdata_reg;
  assign m_axis_tvalid = m_tvalid_reg;
  assign rd_empty      = empty && !m_tvalid_reg;

  agg_sync #(
      .WIDTH(DEPTH_BITS + 1)
  ) u_rd_seen (
      .clk(wr_clk),
      .rst(wr_rst),
      .in (rd_gray_reg),
      .out(rd_gray_seen)
  );

  agg_sync #(
      .WIDTH(DEPTH_BITS + 1)
  ) u_wr_seen (
      .clk(rd_clk),
      .rst(rd_rst),
      .in (wr_gray_reg),
      .out(wr_gray_seen)
  );

  always @(posedge wr_clk) begin
    if (write) words[wr_reg[DEPTH_BITS-1:0]] <= s_axis_tdata;
    wr_reg      <= wr_next;
    wr_gray_reg <= wr_gray_next;
    ready_reg   <= !full_next;
    if (wr_rst) begin
      ready_reg   <= 1'b0;
      wr_reg      <= {DEPTH_BITS + 1{1'b0}};
      wr_gray_reg <= {DEPTH_BITS + 1{1'b0}};
    end
  end

  always @(posedge rd_clk) begin
    if (fetch) m_tdata_reg <= words[rd_reg[DEPTH_BITS-1:0]];
    m_tvalid_reg <= fetch || (m_tvalid_reg && !m_axis_tready);
    rd_reg       <= rd_next;
    rd_gray_reg  <= rd_next ^ rd_next >> 1;
    if (rd_rst) begin
      m_tvalid_reg <= 1'b0;
      rd_reg       <= {DEPTH_BITS + 1{1'b0}};
      rd_gray_reg  <= {DEPTH_BITS + 1{1'b0}};
    end
  end

endmodule

`default_nettype wire
