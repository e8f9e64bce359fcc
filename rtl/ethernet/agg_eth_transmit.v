// Makes Ethernet frames of datagrams: Ethernet, IPv4 and UDP headers, our header, payload and CRC.
//
//   byte  0  destination and source MAC address, EtherType 0x0800
//        14  IPv4: ECN, length, identification 0, don't fragment, TTL 64, UDP, header checksum
//        34  UDP: ports, length, checksum (0 is sent as 0xffff)
//        42  our header, of 14, 22 or 30 bytes; the payload follows one of 30 bytes only
//        56  CRC behind a header of 14 bytes, which makes the shortest frame, of 60 bytes: a
//            datagram needs no padding
//        64  CRC behind a header of 22 bytes
//        72  payload, and its CRC right behind it
`ifdef AGG_PARENT
//        56  instead, the payload behind a header of 14 bytes, and its CRC
`endif
//
// The header is shifted out of one register, with the CRC of a bare datagram behind it. Byte 72 is
// the first of a word of 1 or 8 bytes. Words of 64 bytes are rotated by CARRY = 8: what is left of
// the header, and then of each word of the payload, goes in front of the next one. Behind the
// payload, the register takes what is left, and the CRC.
//
`ifdef AGG_PARENT
// Byte 56 is such a byte as well, but words of 64 bytes are rotated by 56 then: all bytes of the header
// go in front of the payload's first word. The UDP port that a datagram comes from is s_copy_source.
//
`endif
// Checksums take two cycles, while the fields wait at the input. The first word is at the output
// four cycles after its fields are offered. Frames follow without an idle cycle if fields and
// payload are there in time, and if a frame has three words or more; so words of 64 bytes need
// payloads of 53 bytes or more. A frame whose payload is there in time has no idle cycle inside.
//
// Not done here: the choice of receivers (agg_datagram_store) and their addresses. The own address
// must be stable while a copy is offered, and in the four cycles before.

`default_nettype none

module agg_eth_transmit #(
    parameter integer BYTES = 8,  // in a word: 1, 8 or 64
    parameter integer STEP  = 8   // payloads are multiples of it: a power of 2, up to BYTES
) (
    input wire clk,
    input wire rst,

    // The card's own address
    input wire [47:0] own_mac,  // first byte highest, as in the registers
    input wire [31:0] own_ip,
`ifdef AGG_PARENT
    input wire [15:0] s_copy_source,  // the UDP port from which this copy leaves
`else
    input wire [15:0] own_port,
`endif

    // A datagram and its receiver
    input  wire         s_copy_valid,
    output wire         s_copy_ready,
    input  wire [ 47:0] s_copy_mac,
    input  wire [ 31:0] s_copy_ip,
    input  wire [ 15:0] s_copy_port,
    input  wire [  1:0] s_copy_ecn,
`ifdef AGG_PARENT
    input  wire [  1:0] s_copy_size,    // of the header: 14, 22, or 30 and 14 bytes with a payload
`else
    input  wire [  1:0] s_copy_size,    // of the header: 14, 22, or 30 bytes with a payload
`endif
    input  wire [239:0] s_copy_header,  // low bytes first; those beyond its size are ignored
    input  wire [ 13:0] s_copy_bytes,   // of the datagram
    input  wire [ 31:0] s_copy_crc,     // low byte first
    input  wire [ 15:0] s_copy_sum,     // ones' complement sum over the datagram, not inverted

    // Payloads of the datagrams that have one, in their order
    input  wire [8*BYTES-1:0] s_axis_tdata,   // the bytes behind the last are 0
    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,
    input  wire               s_axis_tlast,

    // Frames without FCS
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  `include "zwire.vh"

  localparam integer BEFORE = 42;  // bytes of Ethernet, IPv4 and UDP headers
  localparam integer LONGEST = BEFORE + HDR_MAX_BYTES;
  localparam integer CARRY = LONGEST % BYTES;  // bytes of the last word before the payload
`ifdef AGG_PARENT
  localparam integer DEEP = (BEFORE + HDR_BASE_BYTES) % BYTES;  // the same, of a header of 14 bytes
  localparam integer WINDOW = BYTES + DEEP + 4;  // what a word of the payload makes known
`else
  localparam integer WINDOW = BYTES + CARRY + 4;  // what a word of the payload makes known
`endif

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_frame_has_words_of_1_8_or_64_bytes error ();
    end
    if ((STEP & (STEP - 1)) != 0 || STEP < 1 || STEP > BYTES) begin : g_step
      ERROR_a_step_is_a_power_of_2_and_at_most_a_word error ();
    end
  endgenerate

  // -- Checksums -----------------------------------------------------------------------------------

  // Modulo 0xffff, a complement is the negative, and 17 bits' complement is 1 more. UDP's checksum
  // is a sum of complements here. It is positive, so that it is never 0, but 0xffff: as UDP has it.
  // IP's is the complement of a sum.
  localparam [15:0] UDP_CONSTANT = ~16'd35;  // twice 8 of the length, protocol 17, two complements
  localparam [15:0] IP_CONSTANT = 16'h4500 + 16'h4000 + 16'h4011 + 16'd28;  // 28 of the length

  reg [16:0] own_sum_reg, own_udp_fold_reg, own_ip_fold_reg;
  reg [17:0] own_udp_reg, own_ip_reg;
  reg [15:0] udp_part_reg, ip_part_reg;
`ifdef AGG_PARENT
  reg [17:0] rest_reg;
  reg [16:0] dest_reg, udp_reg, ip_reg;
`else
  reg [16:0] rest_reg, dest_reg, udp_reg, ip_reg;
`endif
  reg [18:0] udp_sum_reg, ip_sum_reg;
  reg [1:0] waited_reg;  // cycles for which the fields have waited, up to 2

  always @(posedge clk) begin
    own_sum_reg      <= {1'b0, own_ip[31:16]} + {1'b0, own_ip[15:0]};
`ifdef AGG_PARENT
    own_udp_reg      <= {1'b0, ~own_sum_reg} + {2'b0, UDP_CONSTANT};
`else
    own_udp_reg      <= {1'b0, ~own_sum_reg} + {2'b0, ~own_port} + {2'b0, UDP_CONSTANT};
`endif
    own_ip_reg       <= {1'b0, own_sum_reg} + {2'b0, IP_CONSTANT};
    own_udp_fold_reg <= {1'b0, own_udp_reg[15:0]} + {15'd0, own_udp_reg[17:16]};
    own_ip_fold_reg  <= {1'b0, own_ip_reg[15:0]} + {15'd0, own_ip_reg[17:16]};
    udp_part_reg     <= own_udp_fold_reg[15:0] + {15'd0, own_udp_fold_reg[16]};
    ip_part_reg      <= own_ip_fold_reg[15:0] + {15'd0, own_ip_fold_reg[16]};

`ifdef AGG_PARENT
    rest_reg         <= {2'b0, ~s_copy_sum} + {2'b0, ~s_copy_port} + {2'b0, ~s_copy_source};
`else
    rest_reg         <= {1'b0, ~s_copy_sum} + {1'b0, ~s_copy_port};
`endif
    dest_reg         <= {1'b0, s_copy_ip[31:16]} + {1'b0, s_copy_ip[15:0]};
    udp_reg          <= {1'b0, udp_part_reg} + {1'b0, ~{1'b0, s_copy_bytes, 1'b0}};
    ip_reg           <= {1'b0, ip_part_reg} + {3'b0, s_copy_bytes};

`ifdef AGG_PARENT
    udp_sum_reg      <= {1'b0, rest_reg} + {2'b0, ~dest_reg} + {2'b0, udp_reg};
`else
    udp_sum_reg      <= {2'b0, rest_reg} + {2'b0, ~dest_reg} + {2'b0, udp_reg};
`endif
    ip_sum_reg       <= {2'b0, ip_reg} + {2'b0, dest_reg} + {17'd0, s_copy_ecn};
  end

  // Folds a sum, with both possible carries at once.
  function automatic [15:0] folded;
    input [18:0] sum;
    reg [16:0] plain;
    reg [15:0] carried;
    begin
      plain   = {1'b0, sum[15:0]} + {14'd0, sum[18:16]};
      carried = sum[15:0] + {13'd0, sum[18:16]} + 16'd1;
      folded  = plain[16] ? carried : plain[15:0];
    end
  endfunction

  // -- The header ----------------------------------------------------------------------------------

  // A value whose first byte is the high one, with that byte lowest
  function automatic [47:0] turned;
    input [47:0] value;
    turned = {value[7:0], value[15:8], value[23:16], value[31:24], value[39:32], value[47:40]};
  endfunction

  function automatic [15:0] turned16;
    input [15:0] value;
    turned16 = {value[7:0], value[15:8]};
  endfunction

  function automatic [31:0] turned32;
    input [31:0] value;
    turned32 = {value[7:0], value[15:8], value[23:16], value[31:24]};
  endfunction

  wire [ 15:0] udp_bytes = {2'd0, s_copy_bytes} + 16'd8;
  wire [ 15:0] ip_bytes = {2'd0, s_copy_bytes} + 16'd28;
  reg  [239:0] own_header;  // and the CRC behind it, if there is no payload

  always @* begin
    own_header = s_copy_header;
    case (s_copy_size)
      2'd0: own_header[239:112] = {96'd0, s_copy_crc};
      2'd1: own_header[239:176] = {32'd0, s_copy_crc};
      default: ;
    endcase
  end

  wire [8*LONGEST-1:0] header = {
    own_header,
    turned16(folded(udp_sum_reg)),
    turned16(udp_bytes),
    turned16(s_copy_port),
`ifdef AGG_PARENT
    turned16(s_copy_source),
`else
    turned16(own_port),
`endif
    turned32(s_copy_ip),
    turned32(own_ip),
    turned16(~folded(ip_sum_reg)),
    8'd17,  // UDP
    8'd64,  // TTL
    16'h0040,  // don't fragment
    16'd0,  // identification
    turned16(ip_bytes),
    6'd0,
    s_copy_ecn,
    8'h45,
    16'h0008,  // EtherType
    turned(own_mac),
    turned(s_copy_mac)
  };

  // -- The frame -----------------------------------------------------------------------------------

  reg sends_reg;  // hold_reg, which has left_reg bytes
  reg payload_reg;  // the payload follows
  reg merges_reg;  // words of the payload with hold_reg
  reg [8*LONGEST-1:0] hold_reg;
  reg [6:0] left_reg;
  reg [31:0] crc_reg;
  reg [6:0] tail_reg;  // bytes in the payload's last word
  reg [6:0] end_reg;  // bytes in the window then
  reg end_fits_reg;  // they fit into a word
  reg valid_reg, last_reg;
  reg [8*BYTES-1:0] data_reg;
  reg [  BYTES-1:0] keep_reg;

  localparam [6:0] WORD = BYTES[6:0];
  localparam [6:0] BESIDE = CARRY[6:0] + 7'd4;
`ifdef AGG_PARENT
  localparam [6:0] BESIDE_DEEP = DEEP[6:0] + 7'd4;
  localparam integer KEPT = DEEP + 4;  // bytes of the window behind a word
  localparam [8*KEPT-1:0] CARRIED = ~({8 * KEPT{1'b1}} << 8 * CARRY);
  localparam [8*KEPT-1:0] CARRIED_DEEP = ~({8 * KEPT{1'b1}} << 8 * DEEP);
  reg deep_reg;  // the payload is behind a header of 14 bytes
`else
  localparam [8*(CARRY+4)-1:0] CARRIED = ~({8 * (CARRY + 4) {1'b1}} << 8 * CARRY);
`endif

  // The word of the payload behind what is left of the one before, and the CRC behind both
  reg [8*WINDOW-1:0] window;
  integer i;

`ifdef AGG_PARENT
  always @* begin
    window = {{8 * KEPT{1'b0}}, s_axis_tdata} << (deep_reg ? 8 * DEEP : 8 * CARRY);
    window = window |
        {{8 * BYTES{1'b0}}, hold_reg[8*KEPT-1:0] & (deep_reg ? CARRIED_DEEP : CARRIED)};
    for (i = STEP; i <= BYTES; i = i + STEP)
    if (s_axis_tlast && tail_reg == i[6:0])
      window = window | ({{8 * (WINDOW - 4) {1'b0}}, crc_reg} <<
          (deep_reg ? 8 * (DEEP + i) : 8 * (CARRY + i)));
  end
`else
  always @* begin
    window = {{8 * (CARRY + 4) {1'b0}}, s_axis_tdata} << 8 * CARRY;
    window = window | {{8 * BYTES{1'b0}}, hold_reg[8*(CARRY+4)-1:0] & CARRIED};
    for (i = STEP; i <= BYTES; i = i + STEP)
    if (s_axis_tlast && tail_reg == i[6:0])
      window = window | ({{8 * (WINDOW - 4) {1'b0}}, crc_reg} << 8 * (CARRY + i));
  end
`endif

  wire free = !valid_reg || m_axis_tready;
  wire moves = free && (sends_reg || (merges_reg && s_axis_tvalid));
  wire fits = left_reg == WORD || (left_reg & ~(WORD - 7'd1)) == 7'd0;  // there is a byte at least
  wire ends = sends_reg ? !payload_reg && fits : merges_reg && s_axis_tlast && end_fits_reg;
  wire idle = !sends_reg && !merges_reg;
  wire [6:0] bytes = sends_reg ? left_reg : merges_reg && s_axis_tlast ? end_reg : WORD;
`ifdef AGG_PARENT
  // Bytes of the payload's last word: a payload is 34 or 18 bytes shorter than its datagram.
  wire deep = s_copy_size == 2'd3;
  wire [6:0] tail = ((s_copy_bytes[6:0] - (deep ? 7'd19 : 7'd35)) & (WORD - 7'd1)) + 7'd1;
  wire [6:0] end_of_tail = tail + (deep ? BESIDE_DEEP : BESIDE);
`else
  // Bytes of the payload's last word: a payload is 34 bytes shorter than its datagram.
  wire [6:0] tail = ((s_copy_bytes[6:0] - 7'd35) & (WORD - 7'd1)) + 7'd1;
`endif
  wire load = s_copy_valid && s_copy_ready;

  assign s_copy_ready  = waited_reg[1] && (idle || (moves && ends));
  assign s_axis_tready = merges_reg && free;

  always @(posedge clk) begin
    if (!s_copy_valid || load) waited_reg <= 2'd0;
    else if (!waited_reg[1]) waited_reg <= waited_reg + 2'd1;

    if (free) begin
      valid_reg <= moves;
      last_reg  <= ends;
      data_reg  <= sends_reg ? hold_reg[8*BYTES-1:0] : window[8*BYTES-1:0];
      keep_reg  <= |(bytes & ~(WORD - 7'd1)) ? {BYTES{1'b1}} : ~({BYTES{1'b1}} << bytes);
    end

    if (moves) begin
      if (sends_reg) begin
        hold_reg <= hold_reg >> 8 * BYTES;
        left_reg <= left_reg - WORD;
        if (payload_reg && left_reg == WORD + CARRY[6:0]) begin
          sends_reg   <= 1'b0;
          payload_reg <= 1'b0;
          merges_reg  <= 1'b1;
        end
      end else begin
`ifdef AGG_PARENT
        hold_reg <= {{8 * (LONGEST - KEPT) {1'b0}}, window[8*BYTES+:8*KEPT]};
`else
        hold_reg <= {{8 * (LONGEST - CARRY - 4) {1'b0}}, window[8*BYTES+:8*(CARRY+4)]};
`endif
        left_reg <= end_reg - WORD;
        if (s_axis_tlast) begin
          sends_reg  <= 1'b1;
          merges_reg <= 1'b0;
        end
      end
      if (ends) begin
        sends_reg  <= 1'b0;
        merges_reg <= 1'b0;
      end
    end

`ifdef AGG_PARENT
    if (load) begin
      sends_reg    <= BYTES != 64 || !deep;
      merges_reg   <= BYTES == 64 && deep;
      payload_reg  <= s_copy_size[1] && (BYTES != 64 || !deep);
      deep_reg     <= deep;
      hold_reg     <= header;
      left_reg     <= deep ? 7'd56 : s_copy_size[1] ? 7'd72 : s_copy_size[0] ? 7'd68 : 7'd60;
      crc_reg      <= s_copy_crc;
      tail_reg     <= tail;
      end_reg      <= end_of_tail;
      end_fits_reg <= end_of_tail <= WORD;
    end
`else
    if (load) begin
      sends_reg    <= 1'b1;
      payload_reg  <= s_copy_size[1];
      hold_reg     <= header;
      left_reg     <= s_copy_size[1] ? 7'd72 : s_copy_size[0] ? 7'd68 : 7'd60;
      crc_reg      <= s_copy_crc;
      tail_reg     <= tail;
      end_reg      <= tail + BESIDE;
      end_fits_reg <= tail + BESIDE <= WORD;
    end
`endif

    if (rst) begin
      waited_reg <= 2'd0;
      sends_reg  <= 1'b0;
      merges_reg <= 1'b0;
      valid_reg  <= 1'b0;
    end
  end

  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  integer b;

  // The frame: any byte of its header, or of a bare datagram's CRC behind that; the bytes of its
  // parts, and what has left
  reg under_way;
  (* anyconst *) reg [6:0] spot;
  reg [7:0] head;
  reg [13:0] head_bytes, payload_bytes, frame_bytes, sent;
  reg [31:0] crc;

  // Any byte of the payload
  (* anyconst *) reg [12:0] watched;
  reg [7:0] put;
  reg [13:0] came;  // bytes of the words that came

  // The word at the output
  reg moved;
  reg [BYTES-1:0] want_keep, want_put, want_head, want_crc;
  reg [7:0] want_head_byte;
  reg [8*BYTES-1:0] want_data;
  reg want_last;
  reg waited, copy_waited;
  reg [9*BYTES:0] stood;
  reg [439:0] fields_stood;
  wire [439:0] fields = {
    s_copy_mac,
    s_copy_ip,
    s_copy_port,
    s_copy_ecn,
    s_copy_size,
    s_copy_header,
    s_copy_bytes,
    s_copy_crc,
    s_copy_sum,
    38'd0
  };
  wire [13:0] size_bytes = 14'd14 + {s_copy_size, 3'd0};
  wire [13:0] left_to_come = payload_bytes - came;
  wire takes_payload = s_axis_tvalid && s_axis_tready;

  always @(posedge clk) begin
    if (load) begin
      under_way <= 1'b1;
      sent <= 0;
      head <= header[8*spot+:8];
      head_bytes <= s_copy_size[1] ? 72 : size_bytes + 46;
      payload_bytes <= s_copy_size[1] ? s_copy_bytes - 34 : 0;
      frame_bytes <= s_copy_bytes + 42;
      crc <= s_copy_crc;
    end else if (moves && sent + BYTES >= frame_bytes) begin
      under_way <= 1'b0;
    end
    if (takes_payload) begin
      came <= left_to_come > BYTES ? came + BYTES : payload_bytes;
      for (b = 0; b < BYTES; b = b + 1) if (came + b == watched) put <= s_axis_tdata[8*b+:8];
    end
    if (load) came <= 0;
    if (moves && !load) sent <= sent + BYTES;
    moved <= moves;
    if (moves)
      for (b = 0; b < BYTES; b = b + 1) begin
        want_keep[b] <= sent + b < frame_bytes;
        want_head[b] <= sent + b == spot && spot < head_bytes;
        want_crc[b] <= payload_bytes != 0 && sent + b >= 72 + payload_bytes;
        want_put[b] <= sent + b == 72 + watched && watched < payload_bytes;
        want_data[8*b+:8] <= crc[8*((sent+b-72-payload_bytes)%4)+:8];
      end
    want_head_byte <= head;
    want_last <= sent + BYTES >= frame_bytes;
    waited <= !rst && m_axis_tvalid && !m_axis_tready;
    stood <= {m_axis_tlast, m_axis_tkeep, m_axis_tdata};
    copy_waited <= !rst && s_copy_valid && !s_copy_ready;
    fields_stood <= fields;
    if (rst) begin
      was_reset <= 1'b1;
      under_way <= 1'b0;
      moved <= 1'b0;
    end
  end

  wire [6:0] to_spot = spot - sent[6:0];
  wire in_tail = sends_reg && !payload_reg && payload_bytes != 0;
  wire [13:0] at_hold = sent - 14'd72;  // byte of payload and CRC
  wire [13:0] carried = came - CARRY;  // byte of the payload

  always @* begin
    if (was_reset && !rst) begin
      // agg_datagram_store: a copy's fields stay until they are taken; a datagram of a size that is right
      // for its header; the words of its payload, with zeros behind it.
      `PROMISED(!copy_waited || (s_copy_valid && fields == fields_stood));
      `PROMISED(!s_copy_valid || s_copy_size != 3);
      `PROMISED(!s_copy_valid || s_copy_size == 2 || s_copy_bytes == size_bytes + 4);
      `PROMISED(!s_copy_valid || s_copy_size != 2 || (s_copy_bytes > 34 && s_copy_bytes <= 8226));
      `PROMISED(!s_copy_valid || s_copy_size != 2 || (s_copy_bytes - 34) % STEP == 0);
      `PROMISED(!takes_payload || s_axis_tlast == (left_to_come <= BYTES));
      for (b = 0; b < BYTES; b = b + 1)
      `PROMISED(!takes_payload || b < left_to_come || s_axis_tdata[8*b+:8] == 0);

      assert (under_way == (sends_reg || merges_reg) && !(sends_reg && merges_reg));
      assume (spot < LONGEST);
      assert (waited_reg <= 2);
      if (under_way) begin
        assert (sent < frame_bytes && sent % BYTES == 0 && came <= payload_bytes);
        assert (payload_bytes == 0 ? frame_bytes == head_bytes :
            head_bytes == 72 && frame_bytes == 76 + payload_bytes);
        assert (head_bytes == 60 || head_bytes == 68 || head_bytes == 72);
        assert (payload_bytes <= 8192 && payload_bytes % STEP == 0);
        assert (payload_bytes == 0 || crc_reg == crc);
        assert (payload_bytes == 0 || tail_reg == (payload_bytes - 1) % BYTES + 1);
        assert (end_reg == tail_reg + CARRY + 4 && end_fits_reg == (end_reg <= BYTES));
      end
      if (sends_reg) assert (left_reg != 0);
      if (sends_reg && !in_tail) begin
        assert (payload_reg == (payload_bytes != 0) && came == 0);
        assert (left_reg == head_bytes - sent);
        if (spot >= sent && spot < head_bytes) assert (hold_reg[8*to_spot+:8] == head);
        assert (!payload_reg || left_reg >= BYTES + CARRY);
      end
      if (merges_reg) begin
        assert (payload_bytes != 0 && !payload_reg);
        assert (sent + CARRY == 72 + came && came < payload_bytes && came % BYTES == 0);
        for (b = 0; b < CARRY; b = b + 1) begin
          if (came == 0 && spot == 72 - CARRY + b) assert (hold_reg[8*b+:8] == head);
          if (came != 0 && carried + b == watched) assert (hold_reg[8*b+:8] == put);
        end
      end
      if (in_tail) begin
        assert (came == payload_bytes && left_reg == frame_bytes - sent && left_reg <= CARRY + 4);
        for (b = 0; b < CARRY + 4; b = b + 1) begin
          if (b < left_reg && at_hold + b >= payload_bytes)
            assert (hold_reg[8*b+:8] == crc[8*((at_hold+b-payload_bytes)%4)+:8]);
          if (b < left_reg && at_hold + b < payload_bytes && at_hold + b == watched)
            assert (hold_reg[8*b+:8] == put);
        end
      end

      // The bytes of the frame are those of its parts, in order.
      if (moved) begin
        assert (m_axis_tvalid && m_axis_tkeep == want_keep && m_axis_tlast == want_last);
        for (b = 0; b < BYTES; b = b + 1) begin
          if (want_head[b]) assert (m_axis_tdata[8*b+:8] == want_head_byte);
          if (want_keep[b] && want_crc[b]) assert (m_axis_tdata[8*b+:8] == want_data[8*b+:8]);
          if (want_put[b]) assert (m_axis_tdata[8*b+:8] == put);
        end
      end
      assert (m_axis_tvalid == (moved || waited));
      if (waited) assert (!moved && {m_axis_tlast, m_axis_tkeep, m_axis_tdata} == stood);

      cover (moved && want_last && payload_bytes == 12 && load);
      cover (moved && want_last && payload_bytes == 0 && frame_bytes == 60 && load);
    end
  end
`endif

endmodule

`default_nettype wire
