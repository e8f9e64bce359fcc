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

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // An access that the core has accepted and not answered, with its fields; whether its host is
  // gone; the reply that waits.
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg asked, gone, replies;
  reg [31:0] its_addr;
  reg [15:0] its_tag;
  reg [175:0] reply;
  wire [112:0] access = {s_register_write, s_register_addr, s_register_tag, s_register_wdata};
  wire accept = m_reg_valid && m_reg_ready;
  wire answer = s_reg_valid && s_reg_ready;
  wire may_offer = s_register_valid && !hold && !asked && !replies && !link_down;
  reg waited_was, offered_was, may_offer_was;
  reg [112:0] access_was;
  reg after_gone;  // since an answer was discarded, with no access since

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was   <= !rst;
    asked         <= !rst && (accept || (asked && !answer));
    gone          <= asked && (gone || link_down);
    replies       <= !rst && !link_down && ((answer && !gone) || (replies && !m_reply_ready));
    waited_was    <= s_register_valid && !s_register_ready && !link_down;
    offered_was   <= m_reg_valid && !m_reg_ready;
    may_offer_was <= may_offer && !m_reg_valid;
    access_was    <= access;
    after_gone    <= !rst && ((answer && gone) || (after_gone && !accept));
    if (accept) begin
      its_addr <= s_register_addr;
      its_tag  <= s_register_tag;
    end
    if (answer) begin
      reply                     <= 176'd0;
      reply[3:0]                <= VERSION;
      reply[7:4]                <= KIND_REPLY;
      reply[HDR_CODE_LSB+:8]    <= s_reg_code;
      reply[HDR_VID_LSB+:32]    <= its_addr;
      reply[HDR_LENGTH_LSB+:16] <= its_tag;
      reply[HDR_MASK_LSB+:64]   <= s_reg_value;
    end
  end

  always @* begin
    if (was_reset && running_was) begin
      // agg_frame_rx: an access stays until it is taken, or until the link goes down.
      `PROMISED(!waited_was || link_down || (s_register_valid && access == access_was));
      // agg_registers: only an accepted access is answered.
      `PROMISED(!s_reg_valid || asked);
    end
    if (was_reset && !rst) begin
      // One access at a time, offered until it is accepted or the link goes down.
      assert (!m_reg_valid || (s_register_valid && !asked && !replies && !link_down));
      assert (!m_reg_valid || {m_reg_write, m_reg_addr, s_register_tag, m_reg_wdata} == access);
      if (running_was && !link_down) assert (m_reg_valid == (offered_was || may_offer_was));

      // Its answer is taken at once. It becomes the reply, unless the link went down.
      assert (s_reg_ready == asked && (state_reg == DISCARD) == (asked && gone));
      assert (s_register_ready == (answer && !gone));
      assert (!asked || gone || link_down ||
          (s_register_valid && s_register_addr == its_addr && s_register_tag == its_tag));
      assert (m_reply_valid == replies && !(replies && asked));
      assert (!replies || m_reply_header == reply);

      cover (replies && !m_reply_ready && s_register_valid);
      cover (accept && after_gone);
      cover (offered_was && link_down);
    end
  end
`endif

endmodule

`default_nettype wire
