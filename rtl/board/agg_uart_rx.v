// Receiver of a UART line: bytes of 8 bits, no parity, one stop bit, DIVIDE cycles a bit.
//
// The line is high while nobody sends. A byte is a start bit (low), its bits from bit 0 on, and a stop bit
// (high). A bit is what two of three samples around its middle say, VOTE cycles apart: a glitch of up to
// VOTE cycles changes none, unless it comes less than half a bit before a start bit. A start bit that is
// high in its middle was a glitch, and no byte. The next start bit is looked for as soon as the stop bit is
// voted, so that a sender may be faster or slower than DIVIDE by (DIVIDE / 2 - VOTE - 1) / (10 * DIVIDE):
// 3.5 % at 20 cycles a bit.
//
// A byte whose stop bit is low is dropped, and nothing is received until the line is high: a cable that
// is pulled out, and the break of a terminal, are no bytes. The frame that a dropped byte was part of is
// damaged then, as its CRC shows.
//
// m_byte_valid is high for one cycle, VOTE + 4 cycles or one less after the middle of the stop bit at the
// pin. Not done here: nothing waits; agg_uart_queue keeps bytes.

`default_nettype none

module agg_uart_rx #(
    parameter integer DIVIDE = 20  // cycles a bit: 8..65,535
) (
    input wire clk,
    input wire rst,

    input wire line,  // the pin, of no clock

    output wire [7:0] m_byte_data,
    output wire       m_byte_valid
);

  generate
    if (DIVIDE < 8 || DIVIDE > 65535) begin : g_divide
      ERROR_a_bit_has_8_to_65535_cycles error ();
    end
  endgenerate

  localparam integer VOTE = DIVIDE / 8;
  localparam [15:0] WHOLE = DIVIDE[15:0];
  localparam [15:0] FIRST = DIVIDE[15:0] / 16'd2 - VOTE[15:0];  // of a bit: its first sample
  localparam [15:0] SECOND = FIRST + VOTE[15:0];
  localparam [15:0] THIRD = SECOND + VOTE[15:0];

  localparam [1:0] WAIT = 2'd0;  // for the line to be high
  localparam [1:0] IDLE = 2'd1;  // it is
  localparam [1:0] START = 2'd2;
  localparam [1:0] BITS = 2'd3;  // eight and the stop bit

  reg  [ 1:0] state_reg;
  reg  [15:0] cycle_reg;  // of this bit
  reg  [ 3:0] bit_reg;  // bits that are done, without the start bit
  reg  [ 1:0] samples_reg;  // of this bit
  reg  [ 7:0] byte_reg;
  reg         valid_reg;
  wire        level;

  agg_sync u_line (
      .clk(clk),
      .rst(rst),
      .in (line),
      .out(level)
  );

  wire decide = cycle_reg == THIRD;
  wire voted = (samples_reg[0] && samples_reg[1]) || (level && (samples_reg[0] || samples_reg[1]));
  wire stop = bit_reg == 4'd8;

  always @(posedge clk) begin
    valid_reg <= 1'b0;
    cycle_reg <= cycle_reg == WHOLE - 16'd1 ? 16'd0 : cycle_reg + 16'd1;
    if (cycle_reg == FIRST) samples_reg[0] <= level;
    if (cycle_reg == SECOND) samples_reg[1] <= level;
    case (state_reg)
      WAIT:  if (level) state_reg <= IDLE;
      IDLE: begin
        cycle_reg <= 16'd1;  // this was the start bit's first
        bit_reg   <= 4'd0;
        if (!level) state_reg <= START;
      end
      START: if (decide) state_reg <= voted ? IDLE : BITS;
      default:
      if (decide) begin
        bit_reg <= bit_reg + 4'd1;
        if (!stop) byte_reg <= {voted, byte_reg[7:1]};
        else state_reg <= voted ? IDLE : WAIT;
        valid_reg <= stop && voted;
      end
    endcase
    if (rst) begin
      state_reg <= WAIT;
      valid_reg <= 1'b0;
    end
  end

  assign m_byte_data  = byte_reg;
  assign m_byte_valid = valid_reg;

endmodule

`default_nettype wire
