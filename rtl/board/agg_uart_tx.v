// UART transmitter: 8 data bits, no parity, one stop bit, DIVIDE cycles per bit.
//
// A byte starts in the cycle after it was taken: a start bit (low), its bits from bit 0 on, a stop
// bit (high). The next can follow without a gap, 10 * DIVIDE cycles later. The line is high when
// idle and in reset, and comes from a register.
//
// Not done here: flow control; the receiver cannot pause it.

`default_nettype none

module agg_uart_tx #(
    parameter integer DIVIDE = 20  // cycles per bit: 8..65,535
) (
    input wire clk,
    input wire rst,

    input  wire [7:0] s_axis_tdata,
    input  wire       s_axis_tvalid,
    output wire       s_axis_tready,

    output wire line
);

  generate
    if (DIVIDE < 8 || DIVIDE > 65535) begin : g_divide
      ERROR_a_bit_has_8_to_65535_cycles error ();
    end
  endgenerate

  localparam [15:0] LAST = DIVIDE[15:0] - 16'd1;

  reg  [ 8:0] bits_reg;  // the line in bit 0, then the bits to come, up to the stop bit
  reg  [ 3:0] left_reg;  // bits to send after the present one
  reg  [15:0] cycle_reg;  // cycles left of the present bit

  wire        over = cycle_reg == 16'd0;

  assign s_axis_tready = over && left_reg == 4'd0;
  assign line          = bits_reg[0];

  always @(posedge clk) begin
    if (!over) cycle_reg <= cycle_reg - 16'd1;
    if (s_axis_tvalid && s_axis_tready) begin
      bits_reg  <= {s_axis_tdata, 1'b0};
      left_reg  <= 4'd9;
      cycle_reg <= LAST;
    end else if (over && left_reg != 4'd0) begin
      bits_reg  <= {1'b1, bits_reg[8:1]};
      left_reg  <= left_reg - 4'd1;
      cycle_reg <= LAST;
    end
    if (rst) begin
      bits_reg  <= 9'h1ff;
      left_reg  <= 4'd0;
      cycle_reg <= 16'd0;
    end
  end

endmodule

`default_nettype wire
