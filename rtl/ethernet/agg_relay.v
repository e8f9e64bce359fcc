// Relays frames between neighbours of a card with one Ethernet port: those to the card's MAC
// address whose IPv4 address is a neighbour's.
//
// claims is high with the verdict of agg_eth_receive, 9 cycles after a frame's last beat, if the
// frame is one to relay: IPv4, to own_mac, not to own_ip, to a neighbour, with a good FCS and no
// other size than frames have. Unless refuse is high in that cycle, because it belongs to a
// registered connection, the frame leaves at m_axis, from own_mac to the neighbour's MAC address,
// otherwise byte for byte. A frame without a place in the queue is dropped whole.
//
// Latency: 12 cycles from a frame's last beat to its first word. Throughput: a word a cycle, but
// a frame of 64 bytes or less takes two. No pause inside a frame. Not done here: registers of
// neighbours.

`default_nettype none

module agg_relay #(
    parameter integer BYTES = 8,  // in a beat: 1, 8 or 64
    parameter integer FRAME_BYTES = 9018,  // largest frame, without FCS
    parameter integer NEIGHBOURS = 4,
    parameter integer DEPTH_BITS = 12,  // log2 of the words that wait
    parameter integer FRAME_BITS = 6  // log2 of the frames that wait
) (
    input wire clk,
    input wire rst,

    input wire [             47:0] own_mac,       // first byte highest
    input wire [             31:0] own_ip,
    input wire [32*NEIGHBOURS-1:0] neighbour_ip,  // 0 for none
    input wire [48*NEIGHBOURS-1:0] neighbour_mac,

    // Frames of the MAC
    input wire               s_axis_tvalid,
    input wire [8*BYTES-1:0] s_axis_tdata,   // first byte lowest
    input wire [  BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0; all ones before the last beat
    input wire               s_axis_tlast,
    input wire               s_axis_tuser,   // with tlast: the FCS is wrong

    output wire claims,
    input  wire refuse,
    output wire event_relayed,
    output wire event_dropped,

    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  localparam integer VERDICT = 9;  // cycles from a frame's last beat to its verdict
  localparam integer KNOWN = 3;  // to what is known here
  localparam integer HEAD_BYTES = 34;
  localparam integer LIMIT = FRAME_BYTES / BYTES + 1;
  localparam integer STEP_BITS = 17;
  localparam [STEP_BITS-1:0] LAST_STEP = LIMIT[STEP_BITS-1:0];
  localparam integer NUMBER_BITS = NEIGHBOURS == 1 ? 1 : $clog2(NEIGHBOURS);
  localparam integer WORD_BITS = 9 * BYTES;

  // -- Cycle 1: the beat's number and the frame's first bytes; whether the frame has a good size -

  reg [STEP_BITS-1:0] next_reg;
  reg [8*HEAD_BYTES-1:0] head_reg;
  reg end_1_reg, good_1_reg;

  wire [31:0] next = {{32 - STEP_BITS{1'b0}}, next_reg};
  wire sized = next > 59 / BYTES || (next == 59 / BYTES && s_axis_tkeep[59%BYTES]);
  wire oversized = next > FRAME_BYTES / BYTES ||
      (next == FRAME_BYTES / BYTES && s_axis_tkeep[FRAME_BYTES%BYTES]);

  always @(posedge clk) begin
    end_1_reg  <= s_axis_tvalid && s_axis_tlast && !rst;
    good_1_reg <= !s_axis_tuser && sized && !oversized;
    if (s_axis_tvalid) begin
      if (s_axis_tlast) next_reg <= {STEP_BITS{1'b0}};
      else if (next_reg != LAST_STEP) next_reg <= next_reg + 1'b1;
    end
    if (rst) next_reg <= {STEP_BITS{1'b0}};
  end

  genvar h;
  generate
    for (h = 0; h < HEAD_BYTES; h = h + 1) begin : g_head
      localparam integer STEP = h / BYTES;
      always @(posedge clk) begin
        if (s_axis_tvalid && next_reg == STEP[STEP_BITS-1:0])
          head_reg[8*h+:8] <= s_axis_tdata[8*(h%BYTES)+:8];
      end
    end
  endgenerate

  // -- Cycles 2 and 3: the addresses -------------------------------------------------------------

  wire [47:0] to_mac = {
    head_reg[7:0],
    head_reg[15:8],
    head_reg[23:16],
    head_reg[31:24],
    head_reg[39:32],
    head_reg[47:40]
  };
  wire [31:0] to_ip = {head_reg[8*30+:8], head_reg[8*31+:8], head_reg[8*32+:8], head_reg[8*33+:8]};
  wire unused = &{1'b0, head_reg[8*14-1:48], head_reg[8*30-1:8*14]};
  reg end_2_reg, good_2_reg, ours_reg, ip_reg;
  reg [NEIGHBOURS-1:0] is_reg;
  reg claims_3_reg;
  reg [NUMBER_BITS-1:0] number_3_reg;
  integer n;

  always @(posedge clk) begin
    end_2_reg  <= end_1_reg && !rst;
    good_2_reg <= good_1_reg;
    ours_reg   <= to_mac == own_mac && to_ip != own_ip;
    ip_reg     <= {head_reg[8*12+:8], head_reg[8*13+:8]} == 16'h0800;
    for (n = 0; n < NEIGHBOURS; n = n + 1) begin
      is_reg[n] <= neighbour_ip[32*n+:32] != 32'd0 && neighbour_ip[32*n+:32] == to_ip;
    end
    claims_3_reg <= end_2_reg && good_2_reg && ours_reg && ip_reg && |is_reg && !rst;
    number_3_reg <= {NUMBER_BITS{1'b0}};
    for (n = NEIGHBOURS - 1; n >= 0; n = n - 1) begin
      if (is_reg[n]) number_3_reg <= n[NUMBER_BITS-1:0];  // the first one counts
    end
  end

  // -- Cycle 9: the frame's words, and the verdict -----------------------------------------------

  wire word_valid, word_last, word_end;
  wire [8*BYTES-1:0] word_data;
  wire [BYTES-1:0] word_keep;
  wire [NUMBER_BITS-1:0] number;

  agg_tag_delay #(
      .WIDTH (WORD_BITS + 1),
      .CYCLES(VERDICT)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .in_valid (s_axis_tvalid),
      .in_tag   ({s_axis_tlast, s_axis_tkeep, s_axis_tdata}),
      .out_valid(word_valid),
      .out_tag  ({word_last, word_keep, word_data})
  );

  agg_tag_delay #(
      .WIDTH (NUMBER_BITS),
      .CYCLES(VERDICT - KNOWN)
  ) u_verdict (
      .clk      (clk),
      .rst      (rst),
      .in_valid (claims_3_reg),
      .in_tag   (number_3_reg),
      .out_valid(claims),
      .out_tag  (number)
  );

  assign word_end = word_valid && word_last;

  // -- The queue, and the addresses of what leaves -----------------------------------------------

  wire full;
  wire [WORD_BITS-1:0] queued;
  wire [NUMBER_BITS-1:0] queued_number;
  wire queued_valid, queued_ready, queued_last, unused_payload;

  agg_frame_queue #(
      .WORD_BITS      (WORD_BITS),
      .DESCRIPTOR_BITS(NUMBER_BITS),
      .DEPTH_BITS     (DEPTH_BITS),
      .FRAME_BITS     (FRAME_BITS)
  ) u_queue (
      .clk                 (clk),
      .rst                 (rst),
      .s_axis_tvalid       (word_valid),
      .s_axis_tdata        ({word_keep, word_data}),
      .s_axis_tlast        (word_last),
      .s_verdict_valid     (word_end),
      .s_verdict_keep      (claims && !refuse),
      .s_verdict_descriptor(number),
      .event_dropped       (full),
      .m_axis_tvalid       (queued_valid),
      .m_axis_tready       (queued_ready),
      .m_axis_tdata        (queued),
      .m_axis_tpayload     (unused_payload),
      .m_axis_tlast        (queued_last),
      .m_axis_tuser        (queued_number)
  );

  // A write to a neighbour's register changes no frame that has begun to leave.
  reg [3:0] step_reg;  // of the word that leaves, up to 12
  reg [47:0] mac_reg;  // the receiver's, since the frame's first word
  reg begun_reg;  // that was shown
  reg [95:0] addresses;  // the receiver's and the card's, first byte lowest
  reg [47:0] mac;
  reg [8*BYTES-1:0] data;
  reg [3:0] at;  // step of a byte of the addresses
  integer b, i;

  always @* begin
    mac = 48'd0;
    at  = 4'd0;
    for (i = 0; i < NEIGHBOURS; i = i + 1) begin
      if (queued_number == i[NUMBER_BITS-1:0]) mac = neighbour_mac[48*i+:48];
    end
    if (begun_reg) mac = mac_reg;
    for (i = 0; i < 6; i = i + 1) begin
      addresses[8*i+:8]    = mac[8*(5-i)+:8];
      addresses[48+8*i+:8] = own_mac[8*(5-i)+:8];
    end
    data = queued[8*BYTES-1:0];
    for (b = 0; b < 12; b = b + 1) begin
      if (step_reg == at) data[8*(b%BYTES)+:8] = addresses[8*b+:8];
      if (b % BYTES == BYTES - 1) at = at + 4'd1;
    end
  end

  always @(posedge clk) begin
    begun_reg <= queued_valid && !(queued_ready && queued_last);
    mac_reg   <= mac;
    if (queued_valid && queued_ready) begin
      if (queued_last) step_reg <= 4'd0;
      else if (step_reg != 4'd12) step_reg <= step_reg + 4'd1;
    end
    if (rst) begin
      step_reg  <= 4'd0;
      begun_reg <= 1'b0;
    end
  end

  assign event_relayed = queued_valid && queued_ready && queued_last;
  assign event_dropped = full;
  assign queued_ready  = m_axis_tready;
  assign m_axis_tvalid = queued_valid;
  assign m_axis_tdata  = data;
  assign m_axis_tkeep  = queued[8*BYTES+:BYTES];
  assign m_axis_tlast  = queued_last;

endmodule

`default_nettype wire
