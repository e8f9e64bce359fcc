// Transmitter of a UART line: bytes of 8 bits, no parity, one stop bit, DIVIDE cycles a bit.
//
// A byte leaves from the cycle after it was taken: a start bit (low), its bits from bit 0 on, a stop bit
// (high); the next one may follow at once, 10 * DIVIDE cycles after it. While nobody sends, and in reset, the
// line is high. It comes out of a register.
//
// Not done here: nobody at the other end can hold it up.

`default_nettype none

module agg_uart_tx #(
    parameter integer DIVIDE = 20  // cycles a bit: 8..65,535
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

  reg  [ 8:0] bits_reg;  // the line, and behind it what follows, up to the stop bit
  reg  [ 3:0] left_reg;  // bits after the one on the line
  reg  [15:0] cycle_reg;  // of this bit, that are left

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
