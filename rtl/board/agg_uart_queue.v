// Queues bytes from a UART until the card takes them. A byte without a place is lost, because the
// line has no flow control; the CRC then detects the damaged frame.
//
// Latency: a byte is at m_axis in the second cycle after it came, at the earliest. Throughput: a
// byte every other cycle, more than any line. m_axis holds one byte beyond the capacity.

`default_nettype none

module agg_uart_queue #(
    parameter integer DEPTH_BITS = 13  // log2 of the capacity
) (
    input wire clk,
    input wire rst,

    input wire [7:0] s_byte_data,
    input wire       s_byte_valid,

    output wire [7:0] m_axis_tdata,
    output wire       m_axis_tvalid,
    input  wire       m_axis_tready
);

  reg  [DEPTH_BITS:0] wr_reg;
  reg  [DEPTH_BITS:0] rd_reg;
  reg                 valid_reg;  // m_axis has a byte

  wire [DEPTH_BITS:0] count = wr_reg - rd_reg;
  wire                push = s_byte_valid && !count[DEPTH_BITS];
  wire                fetch = !valid_reg && count != {DEPTH_BITS + 1{1'b0}};

  agg_ram #(
      .WIDTH    (8),
      .ADDR_BITS(DEPTH_BITS)
  ) u_places (
      .clk    (clk),
      .wr_en  (push),
      .wr_addr(wr_reg[DEPTH_BITS-1:0]),
      .wr_data(s_byte_data),
      .rd_en  (fetch),
      .rd_addr(rd_reg[DEPTH_BITS-1:0]),
      .rd_data(m_axis_tdata)
  );

  always @(posedge clk) begin
    if (push) wr_reg <= wr_reg + 1'b1;
    if (fetch) rd_reg <= rd_reg + 1'b1;
    valid_reg <= fetch || (valid_reg && !m_axis_tready);
    if (rst) begin
      wr_reg    <= {DEPTH_BITS + 1{1'b0}};
      rd_reg    <= {DEPTH_BITS + 1{1'b0}};
      valid_reg <= 1'b0;
    end
  end

  assign m_axis_tvalid = valid_reg;

endmodule

`default_nettype wire
