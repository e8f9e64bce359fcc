// Receives the packets of registered connections (RoCEv2): their payload, shifted to the lowest byte,
// and one verdict on each frame of a MAC.
//
// A packet's frame is Ethernet (14 bytes), IPv4 (20), UDP (8), the base transport header (12), by its
// opcode a RETH (16) and an immediate (4), payload, and the ICRC (4). All offsets are fixed, because
// frames that hide their transport header are dropped. So payload begins at byte 54, 58, 70 or 74.
// Bytes behind the IP packet are padding and are ignored.
//
// m_axis carries the payload of every frame whose size says that it has some, whatever it is;
// agg_frame_queue forgets what the verdict does not keep. Words are full, because a packet that is
// taken has one MTU of payload. tlast is that of the payload's end. A frame that ends before has no
// tlast, and is not taken.
//
// A verdict comes for every frame, in the cycle of agg_eth_receive's. agg_roce_judge has the kinds,
// the reasons, and the way to the table of connections. With kind 1, taken, from its highest bit on:
//   descriptor   part      32 bits: the header's part of an ICRC, see agg_icrc_check
//                code       2 bits: a header of 54, 58, 70 or 74 bytes
//                header   592 bits: all bytes before the payload, the first lowest; bytes behind
//                         the header are 0
//                ecn        2 bits: of IPv4
//                mtu        3 bits: log2 of its bytes / 256
//                epoch     16 bits: in which the connection was registered
//                offset    24 bits: PSN less the connection's first one
//                job, port         the member's
//
// Latency, from a frame's last beat: the verdict comes 9 cycles later. Words come before it, and those
// of the next frame after it: a word comes 5 cycles after the beat with its last byte or, with 64
// bytes a beat, 8. Throughput: a beat a cycle, whatever the frames are.
//
// Not done here: back-pressure, which a MAC does not have; counting frames that are damaged, runts or
// too large, whose verdict is that on a frame of no connection (agg_eth_receive); whether the job is
// set up; frames that a reset cuts: the rest of one is judged as a frame.

`default_nettype none

module agg_roce_receive #(
    parameter integer BYTES = 8,  // in a beat: 1, 8 or 64
    parameter integer FRAME_BYTES = 9018,  // largest frame, without FCS
    parameter integer JOB_BITS = 1,
    parameter integer PORT_BITS = 2
) (
    input wire clk,
    input wire rst,

    input wire [7:0] ethernet_port,  // where the frames came: a constant

    input wire               s_axis_tvalid,
    input wire [8*BYTES-1:0] s_axis_tdata,   // first byte lowest
    input wire [  BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0; all ones before the last beat
    input wire               s_axis_tlast,
    input wire               s_axis_tuser,   // with tlast: the FCS is wrong

    // The connections: the answer belongs to the lookup two cycles before; see agg_roce_judge
    output wire [         31:0] lookup_ip,
    output wire [         23:0] lookup_qpn,
    input  wire                 found,
    input  wire                 found_ip,
    input  wire [ JOB_BITS-1:0] found_job,
    input  wire [PORT_BITS-1:0] found_port,
    input  wire [         31:0] found_source,
    input  wire [          7:0] found_ethernet,
    input  wire [         23:0] found_psn,
    input  wire [          2:0] found_mtu,
    input  wire [         15:0] found_epoch,

    output wire               m_axis_tvalid,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire               m_axis_tlast,

    output wire                            m_verdict_valid,
    output wire [                     1:0] m_verdict_kind,
    output wire [                     2:0] m_verdict_reason,
    output wire [670+JOB_BITS+PORT_BITS:0] m_verdict_descriptor
);

  localparam integer LOG = BYTES == 64 ? 6 : BYTES == 8 ? 3 : 0;
  localparam integer HEAD_BYTES = 74;
  localparam integer BASE_BYTES = 54;  // up to the base transport header

  // A beat's number counts up to one that no frame has that is not too large.
  localparam integer LIMIT = FRAME_BYTES / BYTES + 1;
  localparam integer STEP_BITS = 17 - LOG;  // of a number of 17 bits without that of its byte
  localparam [STEP_BITS-1:0] LAST_STEP = LIMIT[STEP_BITS-1:0];

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_beat_has_1_8_or_64_bytes error ();
    end
    if (FRAME_BYTES < 334 || FRAME_BYTES > 65535) begin : g_frame
      ERROR_the_largest_frame_has_334_to_65535_bytes error ();
    end
  endgenerate

  // -- Cycle 1: the beat, its number, and the frame's first bytes ---------------------------------

  reg [STEP_BITS-1:0] next_reg;  // number of the next beat
  reg valid_1_reg, last_1_reg, bad_1_reg;
  reg [STEP_BITS-1:0] step_1_reg;
  reg [8*BYTES-1:0] data_1_reg;
  reg [BYTES-1:0] keep_1_reg;
  reg [8*HEAD_BYTES-1:0] head_reg;
  genvar i;

  wire [31:0] next = {{32 - STEP_BITS{1'b0}}, next_reg};

  always @(posedge clk) begin
    valid_1_reg <= s_axis_tvalid && !rst;
    last_1_reg  <= s_axis_tlast;
    bad_1_reg   <= s_axis_tuser;
    step_1_reg  <= next_reg;
    data_1_reg  <= s_axis_tdata;
    keep_1_reg  <= s_axis_tkeep;
    if (s_axis_tvalid) begin
      if (s_axis_tlast) next_reg <= {STEP_BITS{1'b0}};
      else if (next_reg != LAST_STEP) next_reg <= next_reg + 1'b1;
    end
    if (rst) next_reg <= {STEP_BITS{1'b0}};
  end

  generate
    for (i = 0; i < HEAD_BYTES; i = i + 1) begin : g_head
      localparam integer STEP = i / BYTES;
      always @(posedge clk) begin
        if (s_axis_tvalid && next_reg == STEP[STEP_BITS-1:0])
          head_reg[8*i+:8] <= s_axis_tdata[8*(i%BYTES)+:8];
      end
    end
  endgenerate

  // Byte 59 came: the frame is no runt. Byte FRAME_BYTES came: it is too large.
  reg at_sized_reg, past_sized_reg, at_most_reg, past_most_reg;  // beat with that byte, later beat
  always @(posedge clk) begin
    at_sized_reg   <= next == 59 / BYTES;
    past_sized_reg <= next > 59 / BYTES;
    at_most_reg    <= next == FRAME_BYTES / BYTES;
    past_most_reg  <= next > FRAME_BYTES / BYTES;
  end
  wire sized = past_sized_reg || (at_sized_reg && keep_1_reg[59%BYTES]);
  wire oversized = past_most_reg || (at_most_reg && keep_1_reg[FRAME_BYTES%BYTES]);

  // -- Cycle 2: where the header, the payload and the IP packet end -------------------------------

  // A code names the header's size: 54, 58, 70 or 74 bytes. Bit 0: an immediate; bit 1: a RETH.
  wire [7:0] opcode = head_reg[8*42+:8];
  wire [15:0] total = {head_reg[8*16+:8], head_reg[8*17+:8]};
  wire immediate = opcode == 8'h03 || opcode == 8'h05 || opcode == 8'h09 || opcode == 8'h0b;
  wire reth = opcode == 8'h06 || opcode == 8'h0a || opcode == 8'h0b;
  reg [16:0] behind;  // the IP packet's bytes that are no payload, and one

  always @* begin
    case ({
      reth, immediate
    })
      2'd0: behind = 17'd45;
      2'd1: behind = 17'd49;
      2'd2: behind = 17'd61;
      default: behind = 17'd65;
    endcase
  end

  // Number of the IP packet's last byte, and that of the payload's last byte from its first, of
  // which there is none below zero.
  reg [16:0] end_reg;
  reg [16:0] payload_end_reg;
  reg [ 1:0] code_2_reg;
  reg valid_2_reg, last_2_reg, bad_2_reg, runt_2_reg, large_2_reg;
  reg [STEP_BITS-1:0] step_2_reg;
  reg [8*BYTES-1:0] data_2_reg;
  reg [BYTES-1:0] keep_2_reg;

  always @(posedge clk) begin
    end_reg         <= {1'b0, total} + 17'd13;
    payload_end_reg <= {1'b0, total} - behind;
    code_2_reg      <= {reth, immediate};
    valid_2_reg     <= valid_1_reg && !rst;
    last_2_reg      <= last_1_reg;
    bad_2_reg       <= bad_1_reg;
    runt_2_reg      <= !sized;
    large_2_reg     <= oversized;
    step_2_reg      <= step_1_reg;
    data_2_reg      <= data_1_reg;
    keep_2_reg      <= keep_1_reg;
  end

  // -- Cycle 3: the beat's place in them ----------------------------------------------------------

  localparam integer PAD_BITS = LOG > 0 ? LOG : 1;
  localparam integer PAYLOAD_0 = 54 / BYTES;  // the beat in which payload begins, by code
  localparam integer PAYLOAD_1 = 58 / BYTES;
  localparam integer PAYLOAD_2 = 70 / BYTES;
  localparam integer PAYLOAD_3 = 74 / BYTES;

  wire [31:0] beat_2 = {{32 - STEP_BITS{1'b0}}, step_2_reg};
  wire [STEP_BITS-1:0] end_step = end_reg[16:LOG];
  wire [STEP_BITS-1:0] payload_step = {1'b0, payload_end_reg[15:LOG]};
  reg [STEP_BITS-1:0] payload_start;
  wire [STEP_BITS-1:0] payload_place = step_2_reg - payload_start;
  wire unused = &{1'b0, payload_end_reg};  // words are full
  wire [BYTES-1:0] to_end;  // lanes up to the packet's last byte
  wire [PAD_BITS-1:0] pad;  // lanes behind it

  // Lanes by where their byte belongs: the IP header, the packet, its part before the length is known
  // (the end is still that of the frame before), bytes that the ICRC takes as ones, headers
  wire [BYTES-1:0] in_ip, in_packet, in_start, variant, in_headers;

  always @* begin
    case (code_2_reg)
      2'd0: payload_start = PAYLOAD_0[STEP_BITS-1:0];
      2'd1: payload_start = PAYLOAD_1[STEP_BITS-1:0];
      2'd2: payload_start = PAYLOAD_2[STEP_BITS-1:0];
      default: payload_start = PAYLOAD_3[STEP_BITS-1:0];
    endcase
  end

  generate
    if (LOG == 0) begin : g_one_lane
      assign to_end = 1'b1;
      assign pad = 1'b0;
    end else begin : g_lanes
      assign to_end = ~({{BYTES - 1{1'b1}}, 1'b0} << end_reg[PAD_BITS-1:0]);
      assign pad = ~end_reg[PAD_BITS-1:0];
    end
    for (i = 0; i < BYTES; i = i + 1) begin : g_lane
      wire [31:0] place = beat_2 * BYTES + i;
      assign in_ip[i] = place >= 14 && place < 34;
      assign in_packet[i] = place >= 14;
      assign in_start[i] = place < 17;
      // TOS, TTL, both checksums, byte 4 of the base transport header
      assign variant[i] = place == 15 || place == 22 || place == 24 || place == 25 ||
          place == 40 || place == 41 || place == 46;
      assign in_headers[i] = place < 54 || (place < 58 && code_2_reg != 2'd0) ||
          (place < 70 && code_2_reg[1]) || (place < 74 && code_2_reg == 2'd3);
    end
  endgenerate

  reg valid_3_reg, last_3_reg, bad_3_reg, runt_3_reg, large_3_reg;
  reg first_3_reg, before_3_reg, final_3_reg, odd_3_reg;
  reg ip_valid_3_reg, ip_first_3_reg, crc_valid_3_reg, crc_first_3_reg, word_3_reg, word_last_3_reg;
  reg [1:0] code_3_reg;
  reg [BYTES-1:0]
      keep_3_reg, to_end_reg, in_ip_reg, in_packet_reg, in_start_reg, variant_reg, in_headers_reg;
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
    ip_valid_3_reg <= in_ip != {BYTES{1'b0}};
    ip_first_3_reg <= beat_2 == 14 / BYTES;
    crc_valid_3_reg <= in_packet[BYTES-1];
    crc_first_3_reg <= beat_2 == 14 / BYTES;
    word_3_reg      <= step_2_reg >= payload_start && !payload_end_reg[16] &&
        payload_place <= payload_step;
    word_last_3_reg <= payload_place == payload_step;
    code_3_reg <= code_2_reg;
    keep_3_reg <= keep_2_reg;
    to_end_reg <= to_end;
    in_ip_reg <= in_ip;
    in_packet_reg <= in_packet;
    in_start_reg <= in_start;
    variant_reg <= variant;
    in_headers_reg <= in_headers;
    pad_3_reg <= pad;
    data_3_reg <= data_2_reg;
  end

  // -- Cycle 4: bytes that count, all others zero -------------------------------------------------

  wire [8*BYTES-1:0] ip_bytes, crc_bytes, header_bytes;
  generate
    for (i = 0; i < BYTES; i = i + 1) begin : g_mask
      wire counted = in_packet_reg[i] &&
          (in_start_reg[i] || before_3_reg || (final_3_reg && to_end_reg[i]));
      wire [7:0] taken = data_3_reg[8*i+:8] | {8{variant_reg[i]}};
      assign ip_bytes[8*i+:8]     = data_3_reg[8*i+:8] & {8{in_ip_reg[i]}};
      assign crc_bytes[8*i+:8]    = taken & {8{counted}};
      assign header_bytes[8*i+:8] = taken & {8{in_packet_reg[i] && in_headers_reg[i]}};
    end
  endgenerate

  reg valid_4_reg, last_4_reg, end_4_reg, bad_4_reg, runt_4_reg, large_4_reg, whole_reg;
  reg ip_valid_4_reg, ip_first_4_reg, odd_4_reg;
  reg crc_valid_4_reg, crc_first_4_reg, crc_last_4_reg, word_4_reg, word_last_4_reg;
  reg [1:0] code_4_reg;
  reg [PAD_BITS-1:0] pad_4_reg;
  reg [8*BYTES-1:0] data_4_reg, ip_bytes_reg, crc_bytes_reg, header_bytes_reg;

  always @(posedge clk) begin
    valid_4_reg      <= valid_3_reg && !rst;
    last_4_reg       <= last_3_reg;
    end_4_reg        <= valid_3_reg && last_3_reg && !rst;
    bad_4_reg        <= bad_3_reg;
    runt_4_reg       <= runt_3_reg;
    large_4_reg      <= large_3_reg;
    ip_valid_4_reg   <= valid_3_reg && ip_valid_3_reg;
    ip_first_4_reg   <= ip_first_3_reg;
    odd_4_reg        <= odd_3_reg;
    crc_valid_4_reg  <= valid_3_reg && crc_valid_3_reg;
    crc_first_4_reg  <= crc_first_3_reg;
    crc_last_4_reg   <= final_3_reg;
    word_4_reg       <= word_3_reg;
    word_last_4_reg  <= word_last_3_reg;
    code_4_reg       <= code_3_reg;
    pad_4_reg        <= pad_3_reg;
    data_4_reg       <= data_3_reg;
    ip_bytes_reg     <= ip_bytes;
    crc_bytes_reg    <= crc_bytes;
    header_bytes_reg <= header_bytes;
    // The frame has the IP packet's last byte. Before its length comes, the end is that of the frame
    // before.
    if (valid_3_reg) begin
      if (final_3_reg) whole_reg <= (to_end_reg & ~keep_3_reg) == {BYTES{1'b0}};
      else if (first_3_reg || before_3_reg) whole_reg <= 1'b0;
    end
  end

  // -- Words: cycle 5 and, of wide beats, 8 -------------------------------------------------------

  wire aligned_valid, aligned_last;
  wire [8*BYTES-1:0] aligned_data;

  agg_roce_align #(
      .BYTES(BYTES)
  ) u_align (
      .clk          (clk),
      .rst          (rst),
      .s_valid      (valid_4_reg),
      .s_last       (last_4_reg),
      .s_data       (data_4_reg),
      .s_word       (word_4_reg),
      .s_word_last  (word_last_4_reg),
      .s_code       (code_4_reg),
      .m_axis_tvalid(aligned_valid),
      .m_axis_tdata (aligned_data),
      .m_axis_tlast (aligned_last)
  );

  // Narrow frames take eight beats or more, so that the next payload is far from this verdict.
  agg_tag_delay #(
      .WIDTH (8 * BYTES + 1),
      .CYCLES(BYTES == 64 ? 3 : 0)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .in_valid (aligned_valid),
      .in_tag   ({aligned_last, aligned_data}),
      .out_valid(m_axis_tvalid),
      .out_tag  ({m_axis_tlast, m_axis_tdata})
  );

  // -- Checksums: cycle 8 -------------------------------------------------------------------------

  wire ip_good, icrc_good;
  wire [31:0] part;
  reg  [31:0] part_9_reg;

  always @(posedge clk) part_9_reg <= part;

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

  agg_icrc_check #(
      .BYTES(BYTES)
  ) u_icrc (
      .clk     (clk),
      .s_valid (crc_valid_4_reg),
      .s_first (crc_first_4_reg),
      .s_last  (crc_last_4_reg),
      .s_data  (crc_bytes_reg),
      .s_header(header_bytes_reg),
      .s_pad   (pad_4_reg),
      .s_code  (code_4_reg),
      .good    (icrc_good),
      .part    (part)
  );

  // -- Fields: cycle 2 for the checks, 9 for the verdict ------------------------------------------

  reg  [8*BASE_BYTES-1:0] fields_reg;  // of the checks
  wire [8*HEAD_BYTES-1:0] header;  // of the verdict

  generate
    if (BYTES == 64) begin : g_every
      // A frame that is taken has five beats or more. So the bytes of the last one with as many are
      // copied before the next one's come.
      reg long_reg;
      reg [8*HEAD_BYTES-1:0] early_reg, late_reg;
      wire ends, copy;
      assign ends = valid_1_reg && last_1_reg && long_reg;

      agg_delay #(
          .WIDTH (1),
          .CYCLES(4)
      ) u_copy (
          .clk(clk),
          .d  (ends),
          .q  (copy)
      );

      always @(posedge clk) begin
        fields_reg <= head_reg[8*BASE_BYTES-1:0];
        long_reg   <= next >= 4;
        if (ends) early_reg <= head_reg;
        if (copy) late_reg <= early_reg;
      end
      assign header = late_reg;
    end else begin : g_long
      // A narrow frame's fields stay until those of the next frame come, eight beats later. Runts may
      // come faster and are dropped without a look at them, so they must not replace anything.
      reg [8*(HEAD_BYTES-BASE_BYTES)-1:0] extension_reg;
      always @(posedge clk) begin
        if (valid_1_reg && last_1_reg && sized) {extension_reg, fields_reg} <= head_reg;
      end
      assign header = {extension_reg, fields_reg};
    end
  endgenerate

  wire [1:0] code, ecn;
  wire [2:0] mtu;
  wire [15:0] epoch;
  wire [23:0] offset;
  wire [JOB_BITS-1:0] job;
  wire [PORT_BITS-1:0] port;

  agg_roce_judge #(
      .JOB_BITS (JOB_BITS),
      .PORT_BITS(PORT_BITS)
  ) u_judge (
      .clk             (clk),
      .rst             (rst),
      .ethernet_port   (ethernet_port),
      .head            (fields_reg),
      .code            (code_2_reg),
      .lookup_ip       (lookup_ip),
      .lookup_qpn      (lookup_qpn),
      .found           (found),
      .found_ip        (found_ip),
      .found_job       (found_job),
      .found_port      (found_port),
      .found_source    (found_source),
      .found_ethernet  (found_ethernet),
      .found_psn       (found_psn),
      .found_mtu       (found_mtu),
      .found_epoch     (found_epoch),
      .end_valid       (end_4_reg),
      .end_bad         (bad_4_reg),
      .end_runt        (runt_4_reg),
      .end_large       (large_4_reg),
      .end_whole       (whole_reg),
      .ip_good         (ip_good),
      .icrc_good       (icrc_good),
      .m_verdict_valid (m_verdict_valid),
      .m_verdict_kind  (m_verdict_kind),
      .m_verdict_reason(m_verdict_reason),
      .m_verdict_code  (code),
      .m_verdict_ecn   (ecn),
      .m_verdict_mtu   (mtu),
      .m_verdict_epoch (epoch),
      .m_verdict_offset(offset),
      .m_verdict_job   (job),
      .m_verdict_port  (port)
  );

  wire [8*HEAD_BYTES-1:0] kept = {
    {32{code == 2'd3}}, {96{code[1]}}, {32{code != 2'd0}}, {8 * BASE_BYTES{1'b1}}
  };

  assign m_verdict_descriptor = {
    part_9_reg, code, header & kept, ecn, mtu, epoch, offset, job, port
  };

endmodule

`default_nettype wire
