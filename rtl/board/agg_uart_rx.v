// UART receiver: 8 data bits, no parity, one stop bit, DIVIDE cycles per bit.
//
// An idle line is high. A byte is a start bit (low), its bits from bit 0 on, and a stop bit
// (high). A bit is the majority of three samples around its middle, VOTE cycles apart: a
// glitch of up to VOTE cycles changes none, unless it comes less than half a bit before a
// start bit. A start bit that is high in its middle is ignored as a glitch. The receiver
// looks for the next start bit right after the stop bit's vote. So a sender may deviate from
// DIVIDE by (DIVIDE / 2 - VOTE - 1) / (10 * DIVIDE): 3.5 % at 20 cycles per bit.
//
// A byte with a low stop bit is dropped, and the receiver waits for a high line: an
// unplugged cable or a terminal's break yields no bytes. The CRC detects the frame that lost
// a byte.
//
// Latency: m_byte_valid is high for one cycle, VOTE + 4 or VOTE + 3 cycles after the middle
// of the stop bit at the pin. Not done here: flow control, queueing (agg_uart_queue).

`default_nettype none

module agg_uart_rx #(
    parameter integer DIVIDE = 20  // cycles per bit: 8..65,535
) (
    input wire clk,
    input wire rst,

    input wire line,  // the pin, asynchronous

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
  localparam [15:0] FIRST = DIVIDE[15:0] / 16'd2 - VOTE[15:0];  // first sample's position in a bit
  localparam [15:0] SECOND = FIRST + VOTE[15:0];
  localparam [15:0] THIRD = SECOND + VOTE[15:0];

  localparam [1:0] WAIT = 2'd0;  // for a high line
  localparam [1:0] IDLE = 2'd1;  // the line is high
  localparam [1:0] START = 2'd2;
  localparam [1:0] BITS = 2'd3;  // eight data bits and the stop bit

  reg  [ 1:0] state_reg;
  reg  [15:0] cycle_reg;  // in this bit
  reg  [ 3:0] bit_reg;  // bits received, without the start bit
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
        cycle_reg <= 16'd1;  // counts as the start bit's first
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
