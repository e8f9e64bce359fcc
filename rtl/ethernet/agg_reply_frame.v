// Makes the Ethernet frame of a reply to a register access, for cards whose core sends no
// datagrams.
//
// Ethernet, IPv4 and UDP headers, the reply's header of 22 bytes and the CRC-32C: 68 bytes, as
// agg_eth_transmit has them. CRC and checksums take a byte or 16 bits a cycle; replies are rare.
//
// The reply is taken at its input when its frame has left: until then its sender, and the card's
// own address, are those of the access. Latency: 46 cycles to the first word. No pause inside a
// frame.

`default_nettype none

module agg_reply_frame #(
    parameter integer BYTES = 8  // in a word: 1, 8 or 64
) (
    input wire clk,
    input wire rst,

    // The card's own address, first byte highest
    input wire [47:0] own_mac,
    input wire [31:0] own_ip,
    input wire [15:0] own_port,

    // The reply and where it goes
    input  wire         s_reply_valid,
    output wire         s_reply_ready,
    input  wire [175:0] s_reply_header,  // first byte lowest
    input  wire [ 47:0] s_reply_mac,
    input  wire [ 31:0] s_reply_ip,
    input  wire [ 15:0] s_reply_port,

    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  localparam integer FRAME_BYTES = 68;
  localparam integer WORDS = (FRAME_BYTES + BYTES - 1) / BYTES;
  localparam integer LAST_BYTES = FRAME_BYTES - BYTES * (WORDS - 1);
  localparam integer UDP_WORDS = 22;  // of 16 bits: pseudo header, UDP header, datagram
  localparam [5:0] LAST_CRC = 6'd21;  // of 22 bytes
  localparam [5:0] LAST_SUM = 6'd21;
  localparam integer LAST = WORDS - 1;
  localparam [6:0] LAST_WORD = LAST[6:0];
  localparam [15:0] IP_BYTES = 16'd54;
  localparam [15:0] UDP_BYTES = 16'd34;
  // Version, length and TOS, which is ECT(0); don't fragment; TTL and protocol
  localparam [15:0] IP_SUM = 16'hc549;  // 4502 + 36 + 4000 + 4011

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_CRC = 1;
  localparam integer STATE_SUM = 2;
  localparam integer STATE_FOLD = 3;
  localparam integer STATE_SEND = 4;
  localparam integer STATES = 5;
  localparam [STATES-1:0] ONE_STATE = 1;

  reg [STATES-1:0] at_reg;  // one-hot
  reg [6:0] step_reg;
  reg [31:0] crc_reg;
  reg [15:0] udp_sum_reg;
  reg [8*WORDS*BYTES-1:0] frame_reg;

  // -- The CRC-32C of the header, a byte a cycle -------------------------------------------------

  wire [31:0] crc_next;
  wire [207:0] datagram = {~crc_reg, s_reply_header};

  agg_crc32c #(
      .BYTES(1)
  ) u_crc (
      .crc_in (crc_reg),
      .data   (s_reply_header[8*step_reg[4:0]+:8]),
      .crc_out(crc_next)
  );

  // -- Checksums ---------------------------------------------------------------------------------

  // The words of the UDP checksum: the first byte is the high one.
  wire [16*UDP_WORDS-1:0] words;
  assign words[143:0] = {
    UDP_BYTES,
    s_reply_port,
    own_port,
    UDP_BYTES,
    16'd17,
    s_reply_ip[15:0],
    s_reply_ip[31:16],
    own_ip[15:0],
    own_ip[31:16]
  };

  genvar g;
  generate
    for (g = 0; g < 13; g = g + 1) begin : g_word
      assign words[144+16*g+:16] = {datagram[16*g+:8], datagram[16*g+8+:8]};
    end
  endgenerate

  function automatic [15:0] add;  // ones' complement
    input [15:0] x;
    input [15:0] y;
    reg [16:0] sum;
    begin
      sum = {1'b0, x} + {1'b0, y};
      add = sum[15:0] + {15'd0, sum[16]};
    end
  endfunction

  reg [15:0] own_sum_reg, to_sum_reg, ip_sum_reg;
  wire [15:0] udp_checksum = udp_sum_reg == 16'hffff ? 16'hffff : ~udp_sum_reg;

  always @(posedge clk) begin
    own_sum_reg <= add(own_ip[31:16], own_ip[15:0]);
    to_sum_reg  <= add(s_reply_ip[31:16], s_reply_ip[15:0]);
    ip_sum_reg  <= add(add(own_sum_reg, to_sum_reg), IP_SUM);
  end

  // -- The frame ---------------------------------------------------------------------------------

  // All bytes, the first one highest
  wire [8*FRAME_BYTES-1:0] frame;
  assign frame[8*FRAME_BYTES-1:8*26] = {
    s_reply_mac,
    own_mac,
    16'h0800,
    16'h4502,
    IP_BYTES,
    16'd0,
    16'h4000,
    16'h4011,
    ~ip_sum_reg,
    own_ip,
    s_reply_ip,
    own_port,
    s_reply_port,
    UDP_BYTES,
    udp_checksum
  };
  generate
    for (g = 0; g < 26; g = g + 1) begin : g_datagram
      assign frame[8*(25-g)+:8] = datagram[8*g+:8];
    end
  endgenerate

  wire ends = at_reg[STATE_SEND] && m_axis_tready && step_reg == LAST_WORD;
  integer b;

  always @(posedge clk) begin
    step_reg <= step_reg + 7'd1;
    if (at_reg[STATE_IDLE]) begin
      crc_reg     <= 32'hffffffff;
      udp_sum_reg <= 16'd0;
      step_reg    <= 7'd0;
      if (s_reply_valid) at_reg <= ONE_STATE << STATE_CRC;
    end
    if (at_reg[STATE_CRC]) begin
      crc_reg <= crc_next;
      if (step_reg[5:0] == LAST_CRC) begin
        at_reg   <= ONE_STATE << STATE_SUM;
        step_reg <= 7'd0;
      end
    end
    if (at_reg[STATE_SUM]) begin
      udp_sum_reg <= add(udp_sum_reg, words[16*step_reg[4:0]+:16]);
      if (step_reg[5:0] == LAST_SUM) at_reg <= ONE_STATE << STATE_FOLD;
    end
    if (at_reg[STATE_FOLD]) begin
      frame_reg <= {8 * WORDS * BYTES{1'b0}};
      for (b = 0; b < FRAME_BYTES; b = b + 1) frame_reg[8*b+:8] <= frame[8*(FRAME_BYTES-1-b)+:8];
      at_reg   <= ONE_STATE << STATE_SEND;
      step_reg <= 7'd0;
    end
    if (at_reg[STATE_SEND]) begin
      if (m_axis_tready) frame_reg <= frame_reg >> 8 * BYTES;
      else step_reg <= step_reg;
      if (ends) at_reg <= ONE_STATE << STATE_IDLE;
    end
    if (rst) at_reg <= ONE_STATE << STATE_IDLE;
  end

  assign s_reply_ready = ends;
  assign m_axis_tvalid = at_reg[STATE_SEND];
  assign m_axis_tdata  = frame_reg[8*BYTES-1:0];
  assign m_axis_tlast  = step_reg == LAST_WORD;
  assign m_axis_tkeep  = m_axis_tlast ? {BYTES{1'b1}} >> (BYTES - LAST_BYTES) : {BYTES{1'b1}};

endmodule

`default_nettype wire
