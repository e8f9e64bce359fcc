// Receives frames of a MAC: their payload, shifted to the lowest byte, and one verdict on each.
//
// A frame is Ethernet (14 bytes), IPv4 (20), UDP (8), and a datagram: the aggregation header of 14
// or 22 bytes, payload, CRC. All offsets are fixed, because frames with IP options are dropped. So
// payload always begins at byte 56; a write of a register has its value there. The CRC does not
// belong to it. Of an echo request, the data from byte 56 on is the payload. Bytes behind the IP
// packet are padding and are ignored.
//
// m_axis carries the payload of every frame whose size says that it has some, whatever the verdict
// is; agg_frame_queue forgets what the verdict does not keep. tlast and tkeep are those of the
// payload's end. A frame that ends before has no tlast, and is dropped.
//
// A verdict comes for every frame, with what its fields say (agg_eth_judge has the kinds, and the
// reasons):
//   mac, ip, port  sender: an ARP request's own; otherwise those of Ethernet, IPv4 and UDP
//   ecn            of IPv4
`ifdef AGG_PARENT
//   header         bytes 42 to 63: the aggregation header. The last 8 belong to a write and to packets
//                  of the parent
//   up, up_job     the frame is for the upward UDP port of that job
`else
//   header         bytes 42 to 63: the aggregation header. The last 8 belong to a write alone
`endif
//   bytes          datagram: those of the payload. Echo: those of its data, from byte 42 on
//   echo           bytes 36 to 41: an echo request's checksum, identifier and sequence number
//
// Latency, from a frame's last beat: the verdict comes 9 cycles later. Words come before it or with
// it, and those of the next frame after it: a word comes 5 cycles after its beat or, with 64 bytes,
// 8 after the next beat of its frame, and 9 after its last. Throughput: a beat a cycle, whatever
// the frames are.
//
// Not done here: back-pressure, which a MAC does not have; passing other frames on; the checks of
// the aggregation header; frames that a reset cuts: the rest of one is judged as a frame.

`default_nettype none

module agg_eth_receive #(
`ifdef AGG_PARENT
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,
`endif
    parameter integer BYTES = 8,  // in a beat: 1, 8 or 64
    parameter integer FRAME_BYTES = 9018  // largest frame, without FCS
) (
    input wire clk,
    input wire rst,

    // The card: first byte of an address highest
    input wire [47:0] own_mac,
    input wire [31:0] own_ip,
    input wire [15:0] own_port,
`ifdef AGG_PARENT

    // Upward UDP ports, and what a verdict says of them; see agg_eth_judge
    input  wire [    JOBS-1:0] up_runs,
    input  wire [ 16*JOBS-1:0] up_ports,
    output wire                m_verdict_up,
    output wire [JOB_BITS-1:0] m_verdict_up_job,
`endif

    input wire               s_axis_tvalid,
    input wire [8*BYTES-1:0] s_axis_tdata,   // first byte lowest
    input wire [  BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0; all ones before the last beat
    input wire               s_axis_tlast,
    input wire               s_axis_tuser,   // with tlast: the FCS is wrong

    output wire               m_axis_tvalid,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tlast,

    output wire         m_verdict_valid,
    output wire [  2:0] m_verdict_kind,
    output wire [  3:0] m_verdict_reason,
    output wire [ 47:0] m_verdict_mac,
    output wire [ 31:0] m_verdict_ip,
    output wire [ 15:0] m_verdict_port,
    output wire [  1:0] m_verdict_ecn,
    output wire [175:0] m_verdict_header,
    output wire [ 15:0] m_verdict_bytes,
    output wire [ 47:0] m_verdict_echo
);

  localparam integer LOG = BYTES == 64 ? 6 : BYTES == 8 ? 3 : 0;
  localparam integer HEAD_BYTES = 64;
  localparam integer HEAD_STEPS = HEAD_BYTES / BYTES;

  // A beat's number counts up to one that no frame has that is not too large.
  localparam integer LIMIT = FRAME_BYTES / BYTES + 1;
  localparam integer STEP_BITS = 17 - LOG;  // of a number of 17 bits without that of its byte
  localparam [STEP_BITS-1:0] LAST_STEP = LIMIT[STEP_BITS-1:0];

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_beat_has_1_8_or_64_bytes error ();
    end
    if (FRAME_BYTES < 64 || FRAME_BYTES > 65535) begin : g_frame
      ERROR_the_largest_frame_has_64_to_65535_bytes error ();
    end
  endgenerate

  // -- Cycle 1: the beat, its number, and the frame's first bytes ---------------------------------

  reg [STEP_BITS-1:0] next_reg;  // number of the next beat
  reg valid_1_reg, last_1_reg, bad_1_reg;
  reg [STEP_BITS-1:0] step_1_reg;
  reg [8*BYTES-1:0] data_1_reg;
  reg [BYTES-1:0] keep_1_reg;
  reg [8*HEAD_BYTES-1:0] head_reg;
  integer h;

  always @(posedge clk) begin
    valid_1_reg <= s_axis_tvalid && !rst;
    last_1_reg  <= s_axis_tlast;
    bad_1_reg   <= s_axis_tuser;
    step_1_reg  <= next_reg;
    data_1_reg  <= s_axis_tdata;
    keep_1_reg  <= s_axis_tkeep;
    for (h = 0; h < HEAD_STEPS; h = h + 1) begin
      if (s_axis_tvalid && next_reg == h[STEP_BITS-1:0])
        head_reg[8*BYTES*h+:8*BYTES] <= s_axis_tdata;
    end
    if (s_axis_tvalid) begin
      if (s_axis_tlast) next_reg <= {STEP_BITS{1'b0}};
      else if (next_reg != LAST_STEP) next_reg <= next_reg + 1'b1;
    end
    if (rst) next_reg <= {STEP_BITS{1'b0}};
  end

  // Byte 59 came: the frame is no runt. Byte FRAME_BYTES came: it is too large.
  wire [31:0] next = {{32 - STEP_BITS{1'b0}}, next_reg};
  reg at_sized_reg, past_sized_reg, at_most_reg, past_most_reg;  // beat with that byte, later beat
  always @(posedge clk) begin
    at_sized_reg   <= next == 59 / BYTES;
    past_sized_reg <= next > 59 / BYTES;
    at_most_reg    <= next == FRAME_BYTES / BYTES;
    past_most_reg  <= next > FRAME_BYTES / BYTES;
  end
  wire sized = past_sized_reg || (at_sized_reg && keep_1_reg[59%BYTES]);
  wire oversized = past_most_reg || (at_most_reg && keep_1_reg[FRAME_BYTES%BYTES]);

  // -- Cycle 2: where the IP packet and the payload end -------------------------------------------

  // Number of the IP packet's last byte, and that of the payload's last byte from its first, of
  // which there is none below zero.
  wire [15:0] total = {head_reg[8*16+:8], head_reg[8*17+:8]};
  wire icmp = head_reg[8*23+:8] == 8'd1;
  reg [16:0] end_reg;
  reg [16:0] payload_end_reg;
  reg icmp_2_reg;
  reg valid_2_reg, last_2_reg, bad_2_reg, runt_2_reg, large_2_reg;
  reg [STEP_BITS-1:0] step_2_reg;
  reg [8*BYTES-1:0] data_2_reg;
  reg [BYTES-1:0] keep_2_reg;

  always @(posedge clk) begin
    end_reg         <= {1'b0, total} + 17'd13;
    payload_end_reg <= {1'b0, total} - (icmp ? 17'd43 : 17'd47);
    icmp_2_reg      <= icmp;
    valid_2_reg     <= valid_1_reg && !rst;
    last_2_reg      <= last_1_reg;
    bad_2_reg       <= bad_1_reg;
    runt_2_reg      <= !sized;
    large_2_reg     <= oversized;
    step_2_reg      <= step_1_reg;
    data_2_reg      <= data_1_reg;
    keep_2_reg      <= keep_1_reg;
  end

  // -- Cycle 3: the beat's place in both ----------------------------------------------------------

  localparam integer PAD_BITS = LOG > 0 ? LOG : 1;
  localparam integer PAYLOAD_STEP = 56 / BYTES;

  wire [31:0] beat_2 = {{32 - STEP_BITS{1'b0}}, step_2_reg};
  wire [STEP_BITS-1:0] end_step = end_reg[16:LOG];
  wire [STEP_BITS-1:0] payload_step = {1'b0, payload_end_reg[15:LOG]};
  wire [STEP_BITS-1:0] payload_place = step_2_reg - PAYLOAD_STEP[STEP_BITS-1:0];
  wire [BYTES-1:0] to_end, to_payload_end;  // lanes up to the last byte
  wire [PAD_BITS-1:0] pad;  // lanes behind the packet's

  // Lanes by the header that their byte belongs to: IP, addresses in it, UDP and behind
  wire [BYTES-1:0] in_ip, in_addresses, in_udp, in_datagram;

  genvar i;
  generate
    if (LOG == 0) begin : g_one_lane
      assign to_end = 1'b1;
      assign to_payload_end = 1'b1;
      assign pad = 1'b0;
    end else begin : g_lanes
      assign to_end = ~({{BYTES - 1{1'b1}}, 1'b0} << end_reg[PAD_BITS-1:0]);
      assign to_payload_end = ~({{BYTES - 1{1'b1}}, 1'b0} << payload_end_reg[PAD_BITS-1:0]);
      assign pad = ~end_reg[PAD_BITS-1:0];
    end
    for (i = 0; i < BYTES; i = i + 1) begin : g_lane
      wire [31:0] place = beat_2 * BYTES + i;
      assign in_ip[i] = place >= 14 && place < 34;
      assign in_addresses[i] = place >= 26 && place < 34;
      assign in_udp[i] = place >= 34;
      assign in_datagram[i] = place >= 42;
    end
  endgenerate

  reg valid_3_reg, last_3_reg, bad_3_reg, runt_3_reg, large_3_reg;
  reg first_3_reg, before_3_reg, final_3_reg, odd_3_reg, icmp_3_reg;
  reg ip_valid_3_reg, ip_first_3_reg, sum_valid_3_reg, sum_first_3_reg;
  reg crc_valid_3_reg, crc_first_3_reg, word_3_reg, word_last_3_reg;
  reg [15:0] pseudo_3_reg;
  reg [BYTES-1:0] keep_3_reg, to_end_reg, to_payload_end_reg;
  reg [BYTES-1:0] in_ip_reg, in_sum_reg, in_datagram_reg;
  reg [PAD_BITS-1:0] pad_3_reg;
  reg [ 8*BYTES-1:0] data_3_reg;

  always @(posedge clk) begin
    valid_3_reg <= valid_2_reg && !rst;
    last_3_reg <= last_2_reg;
    bad_3_reg <= bad_2_reg;
    runt_3_reg <= runt_2_reg;
    large_3_reg <= large_2_reg;
    first_3_reg <= step_2_reg == {STEP_BITS{1'b0}};
    before_3_reg <= step_2_reg < end_step;
    final_3_reg <= step_2_reg == end_step;
    odd_3_reg <= step_2_reg[0];
    icmp_3_reg <= icmp_2_reg;
    ip_valid_3_reg <= in_ip != {BYTES{1'b0}};
    ip_first_3_reg <= beat_2 == 14 / BYTES;
    sum_valid_3_reg <= (in_addresses | in_udp) != {BYTES{1'b0}};
    sum_first_3_reg <= beat_2 == 26 / BYTES;
    crc_valid_3_reg <= in_datagram[BYTES-1];
    crc_first_3_reg <= beat_2 == 42 / BYTES;
    word_3_reg      <= (beat_2 + 1) * BYTES > 56 && !payload_end_reg[16] &&
        payload_place <= payload_step;
    word_last_3_reg <= payload_place == payload_step;
    // Protocol 17 and the UDP length, which is the IP length less 20
    pseudo_3_reg <= end_reg[15:0] - 16'd16;
    keep_3_reg <= keep_2_reg;
    to_end_reg <= to_end;
    to_payload_end_reg <= to_payload_end;
    in_ip_reg <= in_ip;
    in_sum_reg <= in_udp | (icmp_2_reg ? {BYTES{1'b0}} : in_addresses);
    in_datagram_reg <= in_datagram;
    pad_3_reg <= pad;
    data_3_reg <= data_2_reg;
  end

  // -- Cycle 4: bytes that count, all others zero -------------------------------------------------

  wire [8*BYTES-1:0] ip_bytes, sum_bytes, crc_bytes;
  generate
    for (i = 0; i < BYTES; i = i + 1) begin : g_mask
      wire counted = before_3_reg || (final_3_reg && to_end_reg[i]);
      assign ip_bytes[8*i+:8]  = data_3_reg[8*i+:8] & {8{in_ip_reg[i]}};
      assign sum_bytes[8*i+:8] = data_3_reg[8*i+:8] & {8{counted && in_sum_reg[i]}};
      assign crc_bytes[8*i+:8] = data_3_reg[8*i+:8] & {8{counted && in_datagram_reg[i]}};
    end
  endgenerate

  reg valid_4_reg, last_4_reg, end_4_reg, bad_4_reg, runt_4_reg, large_4_reg, whole_reg;
  reg ip_valid_4_reg, ip_first_4_reg, sum_valid_4_reg, sum_first_4_reg, odd_4_reg;
  reg crc_valid_4_reg, crc_first_4_reg, crc_last_4_reg, word_4_reg, word_last_4_reg;
  reg [15:0] pseudo_4_reg;
  reg [BYTES-1:0] word_keep_reg;
  reg [PAD_BITS-1:0] pad_4_reg;
  reg [8*BYTES-1:0] ip_bytes_reg, sum_bytes_reg, crc_bytes_reg;

  always @(posedge clk) begin
    valid_4_reg     <= valid_3_reg && !rst;
    last_4_reg      <= last_3_reg;
    end_4_reg       <= valid_3_reg && last_3_reg && !rst;
    bad_4_reg       <= bad_3_reg;
    runt_4_reg      <= runt_3_reg;
    large_4_reg     <= large_3_reg;
    ip_valid_4_reg  <= valid_3_reg && ip_valid_3_reg;
    ip_first_4_reg  <= ip_first_3_reg;
    sum_valid_4_reg <= valid_3_reg && sum_valid_3_reg;
    sum_first_4_reg <= sum_first_3_reg;
    odd_4_reg       <= odd_3_reg;
    crc_valid_4_reg <= valid_3_reg && crc_valid_3_reg;
    crc_first_4_reg <= crc_first_3_reg;
    crc_last_4_reg  <= final_3_reg;
    word_4_reg      <= word_3_reg;
    word_last_4_reg <= word_last_3_reg;
    pseudo_4_reg    <= sum_first_3_reg && !icmp_3_reg ? pseudo_3_reg : 16'd0;
    word_keep_reg   <= word_last_3_reg ? to_payload_end_reg : {BYTES{1'b1}};
    pad_4_reg       <= pad_3_reg;
    ip_bytes_reg    <= ip_bytes;
    sum_bytes_reg   <= sum_bytes;
    crc_bytes_reg   <= crc_bytes;
    // The frame has the IP packet's last byte. Before its length comes, the end is that of the frame
    // before.
    if (valid_3_reg) begin
      if (final_3_reg) whole_reg <= (to_end_reg & ~keep_3_reg) == {BYTES{1'b0}};
      else if (first_3_reg || before_3_reg) whole_reg <= 1'b0;
    end
  end

  // -- Words: cycle 5 and, of wide beats, later ---------------------------------------------------

  wire aligned_valid, aligned_last;
  wire [8*BYTES-1:0] aligned_data;
  wire [  BYTES-1:0] aligned_keep;

  agg_eth_align #(
      .BYTES(BYTES),
      .SHIFT(56 % BYTES)
  ) u_align (
      .clk          (clk),
      .rst          (rst),
      .s_valid      (valid_4_reg),
      .s_last       (last_4_reg),
      .s_data       (crc_bytes_reg),
      .s_word       (word_4_reg),
      .s_word_last  (word_last_4_reg),
      .s_word_keep  (word_keep_reg),
      .m_axis_tvalid(aligned_valid),
      .m_axis_tdata (aligned_data),
      .m_axis_tkeep (aligned_keep),
      .m_axis_tlast (aligned_last)
  );

  // Narrow frames take eight beats or more, so that the next payload is far from this verdict.
  agg_tag_delay #(
      .WIDTH (9 * BYTES + 1),
      .CYCLES(BYTES == 64 ? 3 : 0)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .in_valid (aligned_valid),
      .in_tag   ({aligned_last, aligned_keep, aligned_data}),
      .out_valid(m_axis_tvalid),
      .out_tag  ({m_axis_tlast, m_axis_tkeep, m_axis_tdata})
  );

  // -- Checksums: cycle 8 -------------------------------------------------------------------------

  wire ip_good, transport_good, crc_good;

  agg_eth_sum #(
      .BYTES(BYTES)
  ) u_ip_sum (
      .clk    (clk),
      .s_valid(ip_valid_4_reg),
      .s_first(ip_first_4_reg),
      .s_odd  (odd_4_reg),
      .s_data (ip_bytes_reg),
      .s_extra(16'd0),
      .good   (ip_good)
  );

  agg_eth_sum #(
      .BYTES(BYTES)
  ) u_transport_sum (
      .clk    (clk),
      .s_valid(sum_valid_4_reg),
      .s_first(sum_first_4_reg),
      .s_odd  (odd_4_reg),
      .s_data (sum_bytes_reg),
      .s_extra(pseudo_4_reg),
      .good   (transport_good)
  );

  agg_crc32c_check #(
      .BYTES(BYTES),
      .START(42 % BYTES)
  ) u_crc (
      .clk    (clk),
      .s_valid(crc_valid_4_reg),
      .s_first(crc_first_4_reg),
      .s_last (crc_last_4_reg),
      .s_data (crc_bytes_reg),
      .s_pad  (pad_4_reg),
      .good   (crc_good)
  );

  // -- Fields: cycle 2 for the checks, 3 for the verdict ------------------------------------------

  // A narrow frame's fields stay until those of the next frame come, eight beats later. Runts may
  // come faster and are dropped without a look at them, so they must not replace anything.
  reg [8*HEAD_BYTES-1:0] fields_reg;
  wire [8*HEAD_BYTES-1:0] wire_order;  // first byte highest
  wire unused = &{1'b0, wire_order};  // bytes that only the checks read
  generate
    if (BYTES == 64) begin : g_every
      always @(posedge clk) fields_reg <= head_reg;
    end else begin : g_long
      always @(posedge clk) if (valid_1_reg && last_1_reg && sized) fields_reg <= head_reg;
    end
    for (i = 0; i < HEAD_BYTES; i = i + 1) begin : g_order
      assign wire_order[8*(HEAD_BYTES-1-i)+:8] = fields_reg[8*i+:8];
    end
  endgenerate

`ifdef AGG_PARENT
  agg_eth_judge #(
      .JOBS    (JOBS),
      .JOB_BITS(JOB_BITS)
  ) u_judge (
      .up_runs         (up_runs),
      .up_ports        (up_ports),
      .m_verdict_up    (m_verdict_up),
      .m_verdict_up_job(m_verdict_up_job),
`else
  agg_eth_judge u_judge (
`endif
      .clk             (clk),
      .rst             (rst),
      .own_mac         (own_mac),
      .own_ip          (own_ip),
      .own_port        (own_port),
      .head            (fields_reg),
      .end_valid       (end_4_reg),
      .end_bad         (bad_4_reg),
      .end_runt        (runt_4_reg),
      .end_large       (large_4_reg),
      .end_whole       (whole_reg),
      .ip_good         (ip_good),
      .transport_good  (transport_good),
      .crc_good        (crc_good),
      .m_verdict_valid (m_verdict_valid),
      .m_verdict_kind  (m_verdict_kind),
      .m_verdict_reason(m_verdict_reason)
  );

  // width bytes from byte place on: wire_order[8*(64-place-width)+:8*width]
  wire arp = wire_order[8*50+:16] == 16'h0806;
  wire is_icmp = wire_order[8*40+:8] == 8'd1;
  wire [15:0] length = wire_order[8*46+:16];
  reg [47:0] mac_reg;
  reg [31:0] ip_reg;
  reg [15:0] bytes_reg;
  reg [241:0] rest_reg;

  always @(posedge clk) begin
    mac_reg <= arp ? wire_order[8*36+:48] : wire_order[8*52+:48];
    ip_reg <= arp ? wire_order[8*32+:32] : wire_order[8*34+:32];
    bytes_reg <= length - (is_icmp ? 16'd28 : 16'd46);
    // Port, ECN, echo, header
    rest_reg <= {
      wire_order[8*28+:16], wire_order[8*48+:2], wire_order[8*22+:48], fields_reg[8*42+:176]
    };
  end

  agg_delay #(
      .WIDTH (338),
      .CYCLES(BYTES == 64 ? 6 : 0)
  ) u_fields (
      .clk(clk),
      .d({mac_reg, ip_reg, bytes_reg, rest_reg}),
      .q({
        m_verdict_mac,
        m_verdict_ip,
        m_verdict_bytes,
        m_verdict_port,
        m_verdict_ecn,
        m_verdict_echo,
        m_verdict_header
      })
  );

endmodule

`default_nettype wire
