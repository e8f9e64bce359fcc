// Forwards register accesses from agg_frame_rx to the core's register port, and the core's replies,
// as headers, to agg_frame_tx.
//
// One access at a time: the receiver waits at s_register for the core, so that accesses and packets
// stay in order. An access also waits until the previous reply has left, so that no reply is lost.
//
// A link that goes down withdraws an access that the core has not accepted, and drops the reply.
// The core answers every access that it has accepted, also when its host is gone: that answer is
// awaited and discarded, and no access of the next host is offered before.

`default_nettype none

module agg_register_link (
    input wire clk,
    input wire rst,
    input wire link_down,
    input wire hold,  // start no access: earlier packets have not reached the core

    input  wire        s_register_valid,
    output wire        s_register_ready,
    input  wire        s_register_write,  // stable until ready
    input  wire [31:0] s_register_addr,
    input  wire [15:0] s_register_tag,
    input  wire [63:0] s_register_wdata,

    // The core's register port
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire        m_reg_write,
    output wire [31:0] m_reg_addr,
    output wire [63:0] m_reg_wdata,
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire [ 7:0] s_reg_code,
    input  wire [63:0] s_reg_value,

    output wire         m_reply_valid,
    input  wire         m_reply_ready,
    output wire [175:0] m_reply_header
);

  `include "zwire.vh"

  localparam [1:0] IDLE = 2'd0;
  localparam [1:0] ACCESS = 2'd1;  // offered to the core
  localparam [1:0] ANSWER = 2'd2;  // accepted; wait for the reply
  localparam [1:0] DISCARD = 2'd3;  // the same, for a host that is gone

  reg  [ 1:0] state_reg;
  reg         reply_valid_reg;
  reg  [ 7:0] code_reg;
  reg  [31:0] address_reg;
  reg  [15:0] tag_reg;
  reg  [63:0] value_reg;

  wire        awaits = state_reg == ANSWER || state_reg == DISCARD;
  wire        answered = state_reg == ANSWER && s_reg_valid;

  always @(posedge clk) begin
    case (state_reg)
      IDLE:    if (s_register_valid && !hold && !reply_valid_reg) state_reg <= ACCESS;
      ACCESS:  if (m_reg_ready) state_reg <= ANSWER;
      default: if (s_reg_valid) state_reg <= IDLE;
    endcase
    if (m_reply_ready) reply_valid_reg <= 1'b0;
    if (answered) begin
      reply_valid_reg <= 1'b1;
      code_reg        <= s_reg_code;
      address_reg     <= m_reg_addr;
      tag_reg         <= s_register_tag;
      value_reg       <= s_reg_value;
    end
    if (link_down) begin
      state_reg       <= awaits && !s_reg_valid ? DISCARD : IDLE;
      reply_valid_reg <= 1'b0;
    end
    if (rst) begin
      state_reg       <= IDLE;
      reply_valid_reg <= 1'b0;
    end
  end

  assign s_register_ready = answered;
  assign m_reg_valid = state_reg == ACCESS && !link_down;
  assign m_reg_write = s_register_write;
  assign m_reg_addr = s_register_addr;
  assign m_reg_wdata = s_register_wdata;
  assign s_reg_ready = awaits;
  assign m_reply_valid = reply_valid_reg;

  // A reply does not use job, format, epoch and rank.
  assign m_reply_header = {
    value_reg, tag_reg, address_reg, code_reg, 8'd0, 16'd0, 8'd0, 8'd0, 8'd0, KIND_REPLY, VERSION
  };

endmodule

`default_nettype wire
