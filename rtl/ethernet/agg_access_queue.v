// Queue of register accesses, so that an access that waits for a job's end delays no data behind it.
//
// An access that finds it full is dropped: a pulse of event_dropped, in the same cycle. Its sender
// asks again. The head is a register: an access is there in the second cycle after it came to an
// empty queue. Throughput: one every two cycles; the memory is small and distributed. Not done here:
// who may access what (agg_network_registers).

`default_nettype none

module agg_access_queue #(
    parameter integer WIDTH = 209,  // of an access with its sender
    parameter integer DEPTH_BITS = 4  // log2 of the accesses in the memory
) (
    input wire clk,
    input wire rst,

    input wire             s_access_valid,
    input wire [WIDTH-1:0] s_access,

    output wire event_dropped,

    output wire             m_access_valid,
    input  wire             m_access_ready,
    output wire [WIDTH-1:0] m_access
);

  (* ram_style = "distributed" *) reg [WIDTH-1:0] accesses[0:(1<<DEPTH_BITS)-1];
  reg [DEPTH_BITS:0] wr_reg;  // modulo twice the depth
  reg [DEPTH_BITS:0] rd_reg;
  reg full_reg;
  reg valid_reg;
  reg [WIDTH-1:0] head_reg;

  wire push = s_access_valid && !full_reg;
  wire load = rd_reg != wr_reg && !valid_reg;
  wire [DEPTH_BITS:0] wr_next = wr_reg + {{DEPTH_BITS{1'b0}}, push};
  wire [DEPTH_BITS:0] rd_next = rd_reg + {{DEPTH_BITS{1'b0}}, load};

  always @(posedge clk) begin
    if (push) accesses[wr_reg[DEPTH_BITS-1:0]] <= s_access;
    wr_reg   <= wr_next;
    rd_reg   <= rd_next;
    full_reg <= wr_next == {~rd_next[DEPTH_BITS], rd_next[DEPTH_BITS-1:0]};
    if (load) head_reg <= accesses[rd_reg[DEPTH_BITS-1:0]];
    valid_reg <= load || (valid_reg && !m_access_ready);
    if (rst) begin
      wr_reg    <= {DEPTH_BITS + 1{1'b0}};
      rd_reg    <= {DEPTH_BITS + 1{1'b0}};
      full_reg  <= 1'b0;
      valid_reg <= 1'b0;
    end
  end

  assign event_dropped = s_access_valid && full_reg;
  assign m_access_valid = valid_reg;
  assign m_access = head_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th access that is not dropped is the n-th that leaves. Numbers are modulo four times the
  // capacity; watched is any of them.
  (* anyconst *) reg [DEPTH_BITS+1:0] watched;
  reg was_reset = 1'b0;
  reg [DEPTH_BITS+1:0] came, left;
  reg [WIDTH-1:0] put, stood;
  reg waited;
  wire [DEPTH_BITS+1:0] here = came - left;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    came <= came + (s_access_valid && !event_dropped);
    left <= left + (m_access_valid && m_access_ready);
    if (s_access_valid && !event_dropped && came == watched) put <= s_access;
    waited <= m_access_valid && !m_access_ready;
    stood  <= m_access;
    if (rst) begin
      came   <= 0;
      left   <= 0;
      waited <= 1'b0;
    end
  end

  always @* begin
    if (was_reset) begin
      assert (wr_reg == came[DEPTH_BITS:0]);
      assert (rd_reg == left[DEPTH_BITS:0] + valid_reg);
      assert (here - valid_reg <= 1 << DEPTH_BITS && (here != 0 || !valid_reg));
      assert (full_reg == (here - valid_reg == 1 << DEPTH_BITS));
      if (watched - left < here) begin
        if (valid_reg && watched == left)
          assert (head_reg == put);
          else assert (accesses[watched[DEPTH_BITS-1:0]] == put);
      end
      if (event_dropped) assert (here >= 1 << DEPTH_BITS);
      if (waited) assert (m_access_valid && m_access == stood);
      cover (event_dropped);
      cover (here == 2 && left == 3);
    end
  end
`endif

endmodule

`default_nettype wire
