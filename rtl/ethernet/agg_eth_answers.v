// Answers ARP requests (RFC 826) and ICMP echo requests (RFC 792) for the card's own address.
//
// Every received frame passes at s_axis, whole and without FCS, from its destination MAC address on;
// there is no back-pressure. In the cycle of its last word the receive side gives its verdict:
//
//   s_arp   an ARP request for the card's IP address; s_mac and s_ip are the sender's in it
//   s_echo  an echo request to the card in one IPv4 packet without options; s_mac and s_ip are those
//           it came from, s_bytes is its total length, s_checksum that of ICMP
//
// or neither. A receive side whose verdict takes longer delays the frame by as much.
//
// One buffer keeps the frame that passes, and then the echo that leaves: while an answer is under
// way, no frame is kept. An echo that was not kept whole, one of more than 1,500 bytes, and any
// request while an answer is under way, are dropped: a pulse of dropped. The sender asks again.
//
// Answers have frames of their own: TTL 64, TOS 0, don't fragment. The checksum of an echo is that
// of the request plus 0x0800 (RFC 1624), the difference in the type; so a damaged request becomes a
// damaged answer. A checksum of 0 is sent as 0xffff, which also holds where all is 0.
//
// The first word is at the output seven cycles after the verdict. An answer has no idle cycle inside.
// Not done here: all checks of the request, FCS and checksums included.

`default_nettype none

module agg_eth_answers #(
    parameter integer BYTES = 8  // in a word: 1, 8 or 64
) (
    input wire clk,
    input wire rst,

    input wire [47:0] own_mac,  // first byte highest
    input wire [31:0] own_ip,

    input wire [8*BYTES-1:0] s_axis_tdata,
    input wire               s_axis_tvalid,
    input wire               s_axis_tlast,
    input wire               s_arp,          // with s_axis_tlast, and all that follows
    input wire               s_echo,
    input wire [       47:0] s_mac,
    input wire [       31:0] s_ip,
    input wire [       15:0] s_bytes,        // 28 or more
    input wire [       15:0] s_checksum,

    output wire dropped,

    // Frames without FCS, of 60 bytes or more
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  localparam [15:0] LONGEST = 16'd1500;  // of an echo's IP packet
  localparam integer WORDS = (14 + 1500 + BYTES - 1) / BYTES;
  localparam integer WORD_BITS = $clog2(WORDS + 1);
  localparam integer HOLD = BYTES > 48 ? BYTES : 48;  // bytes of the longest header, and zeros
  localparam [10:0] ARP_BYTES = 11'd42;
  localparam [10:0] ECHO_BYTES = 11'd38;  // of an echo's header, with the checksum
  localparam [10:0] SHORTEST = 11'd60;
  localparam [10:0] WORD = BYTES[10:0];

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_frame_has_words_of_1_8_or_64_bytes error ();
    end
  endgenerate

  // -- The frame that passes -----------------------------------------------------------------------

  reg busy_reg;  // an answer is under way
  reg inside_reg;  // a frame is
  reg keeps_reg;  // it is kept, so far
  reg [WORD_BITS-1:0] wr_reg;  // words of it
  (* no_rw_check *) reg [8*BYTES-1:0] buffer[0:WORDS-1];

  wire place = wr_reg < WORDS[WORD_BITS-1:0];
  wire keeps = (inside_reg ? keeps_reg : !busy_reg) && place;
  wire verdict = s_axis_tvalid && s_axis_tlast;
  wire asks = verdict && (s_arp || s_echo);
  wire accepts = asks && !busy_reg && (s_arp || (keeps && s_bytes <= LONGEST));
  reg dropped_reg;

  always @(posedge clk) begin
    if (s_axis_tvalid) begin
      inside_reg <= !s_axis_tlast;
      keeps_reg  <= keeps;
      wr_reg     <= s_axis_tlast ? {WORD_BITS{1'b0}} : place ? wr_reg + 1'b1 : wr_reg;
      if (keeps) buffer[wr_reg] <= s_axis_tdata;
    end
    dropped_reg <= asks && !accepts;
    if (rst) begin
      inside_reg  <= 1'b0;
      wr_reg      <= {WORD_BITS{1'b0}};
      dropped_reg <= 1'b0;
    end
  end

  assign dropped = dropped_reg;

  // -- What the answer begins with -----------------------------------------------------------------

  localparam [15:0] IP_CONSTANT = 16'h4500 + 16'h4000 + 16'h4001;  // length, TOS; DF; TTL, ICMP

  reg echo_reg;
  reg [47:0] mac_reg;
  reg [31:0] ip_reg;
  reg [10:0] bytes_reg;
  reg [16:0] checksum_reg;
  reg [16:0] own_sum_reg, ip_sum_reg;
  reg [17:0] own_part_reg;
  reg [18:0] sum_reg;
  reg [1:0] step_reg;  // cycles of checksums
  reg sends_reg;

  wire load = busy_reg && !sends_reg && step_reg == 2'd2;

  always @(posedge clk) begin
    if (accepts) begin
      echo_reg     <= !s_arp;
      mac_reg      <= s_mac;
      ip_reg       <= s_ip;
      bytes_reg    <= s_bytes[10:0];
      checksum_reg <= {1'b0, s_checksum} + 17'h00800;
    end
    own_sum_reg  <= {1'b0, own_ip[31:16]} + {1'b0, own_ip[15:0]};
    own_part_reg <= {1'b0, own_sum_reg} + {2'b0, IP_CONSTANT};
    ip_sum_reg   <= {1'b0, ip_reg[31:16]} + {1'b0, ip_reg[15:0]};
    sum_reg      <= {1'b0, own_part_reg} + {2'b0, ip_sum_reg} + {8'd0, bytes_reg};
    step_reg     <= !busy_reg || sends_reg ? 2'd0 : step_reg + 2'd1;
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

  wire [95:0] addresses = {turned(own_mac), turned(mac_reg)};
  wire [8*ARP_BYTES-1:0] arp = {
    turned32(ip_reg),
    turned(mac_reg),
    turned32(own_ip),
    turned(own_mac),
    16'h0200,  // reply
    16'h0406,  // sizes of the addresses
    16'h0008,  // IPv4
    16'h0100,  // Ethernet
    16'h0608,  // EtherType
    addresses
  };
  wire [8*ECHO_BYTES-1:0] echo = {
    turned16(checksum_reg[15:0] + {15'd0, checksum_reg[16]}),
    16'h0000,  // echo reply
    turned32(ip_reg),
    turned32(own_ip),
    turned16(~folded(sum_reg)),
    8'd1,  // ICMP
    8'd64,  // TTL
    16'h0040,  // don't fragment
    16'd0,  // identification
    turned16({5'd0, bytes_reg}),
    16'h0045,  // TOS
    16'h0008,  // EtherType
    addresses
  };
  wire [8*HOLD-1:0] header = echo_reg ? {{8 * (HOLD - 38) {1'b0}}, echo} :
      {{8 * (HOLD - 42) {1'b0}}, arp};

  // -- The answer ----------------------------------------------------------------------------------

  reg [8*HOLD-1:0] hold_reg;  // what is left of the header, and zeros
  reg [10:0] header_left_reg;  // bytes of it
  reg [10:0] content_left_reg;  // and with what follows from the buffer
  reg [10:0] frame_left_reg;  // and with padding
  reg [WORD_BITS-1:0] rd_reg;
  reg fetched_valid_reg, staged_valid_reg;
  reg [8*BYTES-1:0] fetched_reg;  // a block RAM is slow: the next register takes it as it is
  reg [8*BYTES-1:0] staged_reg;
  reg valid_reg, last_reg;
  reg [8*BYTES-1:0] data_reg;
  reg [BYTES-1:0] keep_reg;

  wire free = !valid_reg || m_axis_tready;
  wire moves = free && staged_valid_reg;
  wire stage = !staged_valid_reg || free;
  wire fetch = sends_reg && (!fetched_valid_reg || stage);
  wire ends = frame_left_reg <= WORD;
  wire [10:0] content = echo_reg ? bytes_reg + 11'd14 : ARP_BYTES;

  // From the buffer come the bytes behind the header and before the padding.
  reg [8*BYTES-1:0] from_buffer;
  reg [BYTES-1:0] keep;
  integer i;

  always @* begin
    for (i = 0; i < BYTES; i = i + 1) begin
      from_buffer[8*i+:8] = i[10:0] >= header_left_reg && i[10:0] < content_left_reg ?
          staged_reg[8*i+:8] : 8'd0;
      keep[i] = i[10:0] < frame_left_reg;
    end
  end

  always @(posedge clk) begin
    if (free) begin
      valid_reg <= staged_valid_reg;
      last_reg  <= ends;
      data_reg  <= hold_reg[8*BYTES-1:0] | from_buffer;
      keep_reg  <= keep;
    end
    if (moves) begin
      hold_reg         <= hold_reg >> 8 * BYTES;
      header_left_reg  <= header_left_reg > WORD ? header_left_reg - WORD : 11'd0;
      content_left_reg <= content_left_reg > WORD ? content_left_reg - WORD : 11'd0;
      frame_left_reg   <= frame_left_reg - WORD;
    end
    if (stage) begin
      staged_reg       <= fetched_reg;
      staged_valid_reg <= fetched_valid_reg;
    end
    if (fetch) begin
      fetched_reg       <= buffer[rd_reg];
      fetched_valid_reg <= 1'b1;
      rd_reg            <= rd_reg + 1'b1;
    end
    if (moves && ends) begin
      fetched_valid_reg <= 1'b0;
      staged_valid_reg  <= 1'b0;
      sends_reg         <= 1'b0;
      busy_reg          <= 1'b0;
    end
    if (accepts) busy_reg <= 1'b1;
    if (load) begin
      sends_reg        <= 1'b1;
      rd_reg           <= {WORD_BITS{1'b0}};
      hold_reg         <= header;
      header_left_reg  <= echo_reg ? ECHO_BYTES : ARP_BYTES;
      content_left_reg <= content;
      frame_left_reg   <= content > SHORTEST ? content : SHORTEST;
    end
    if (rst) begin
      busy_reg          <= 1'b0;
      sends_reg         <= 1'b0;
      fetched_valid_reg <= 1'b0;
      staged_valid_reg  <= 1'b0;
      valid_reg         <= 1'b0;
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

  // The frame that passes, and any word of it
  (* anyconst *) reg [WORD_BITS-1:0] watched;
  reg [WORD_BITS-1:0] words;  // of the frame, up to those of the buffer
  reg amid, began_free;  // no answer was under way when it began
  reg too_long;
  reg [8*BYTES-1:0] word;  // the watched one
  wire whole = (amid ? began_free : !answering) && words < WORDS;
  wire frame_ends = s_axis_tvalid && s_axis_tlast;

  // The answer
  reg answering;  // from the verdict until its last word is at the output
  reg has_word;  // the request has the watched word
  reg [8*BYTES-1:0] put;
  reg [10:0] header_bytes, content_bytes, frame_bytes;
  reg [10:0] sent;  // bytes that were at the output
  reg [WORD_BITS-1:0] fetched, staged;  // numbers of the words that were read
  reg dropped_due;
  reg waited, moved;
  reg [9*BYTES:0] stood;

  // The word at the output: bytes that are the request's, that are 0, and that are there
  reg [BYTES-1:0] want_put, want_zero, want_keep;
  reg want_last;

  always @(posedge clk) begin
    if (s_axis_tvalid) begin
      amid <= !s_axis_tlast;
      words <= s_axis_tlast ? 0 : words + (words < WORDS);
      too_long <= amid && (too_long || words == WORDS);
      if (!amid) began_free <= !answering;
      if (words == watched) word <= s_axis_tdata;
    end
    dropped_due <= frame_ends && (s_arp || s_echo) &&
        (answering || (!s_arp && (!whole || s_bytes > 1500)));
    if (frame_ends && (s_arp || s_echo) && !answering && (s_arp || (whole && s_bytes <= 1500)))
    begin
      answering <= 1'b1;
      sent <= 0;
      has_word <= !s_arp && watched <= words;
      put <= words == watched ? s_axis_tdata : word;
      header_bytes <= s_arp ? 42 : 38;
      content_bytes <= s_arp ? 42 : s_bytes + 14;
      frame_bytes <= s_arp || s_bytes < 46 ? 60 : s_bytes + 14;
    end
    if (moves) begin
      sent <= sent + BYTES;
      for (b = 0; b < BYTES; b = b + 1) begin
        want_put[b]  <= has_word && staged == watched && sent + b >= header_bytes &&
            sent + b < content_bytes;
        want_zero[b] <= sent + b >= content_bytes;
        want_keep[b] <= sent + b < frame_bytes;
      end
      want_last <= sent + BYTES >= frame_bytes;
      if (sent + BYTES >= frame_bytes) answering <= 1'b0;
    end
    if (fetch) fetched <= rd_reg;
    if (stage) staged <= fetched;
    moved  <= moves;
    waited <= !rst && m_axis_tvalid && !m_axis_tready;
    stood  <= {m_axis_tlast, m_axis_tkeep, m_axis_tdata};
    if (rst) begin
      was_reset <= 1'b1;
      amid <= 1'b0;
      words <= 0;
      answering <= 1'b0;
      dropped_due <= 1'b0;
      moved <= 1'b0;
    end
  end

  wire [10:0] header_rest = header_bytes > sent ? header_bytes - sent : 0;
  wire [10:0] content_rest = content_bytes > sent ? content_bytes - sent : 0;
  wire [10:0] frame_rest = frame_bytes - sent;

  always @* begin
    if (was_reset && !rst) begin
      // The receive side: an IP header and one of ICMP
      `PROMISED(!(frame_ends && s_echo) || s_bytes >= 28);

      // Every request is answered, or dropped for one of the reasons above.
      assert (busy_reg == answering && dropped == dropped_due);
      assert (inside_reg == amid && wr_reg == words && words <= WORDS);
      assert (amid == (words != 0));
      if (amid) assert (keeps_reg == (began_free && !too_long));
      if (amid && too_long) assert (words == WORDS);
      if (amid && began_free) assert (!answering);

      // The buffer keeps the frame, and then the answer under way.
      if (amid && keeps_reg && watched < words) assert (buffer[watched] == word);
      if (answering && has_word) assert (buffer[watched] == put);
      if (answering && has_word) assert (watched < WORDS);

      // Its words leave in order.
      assert (!sends_reg || answering);
      assert (!fetched_valid_reg || sends_reg);
      assert (!staged_valid_reg || fetched_valid_reg);
      if (answering) begin
        assert (header_bytes == (echo_reg ? 38 : 42));
        assert (content_bytes == (echo_reg ? bytes_reg + 14 : 42) && content_bytes <= 1514);
        assert (!echo_reg || bytes_reg >= 28);
        assert (frame_bytes == (content_bytes < 60 ? 60 : content_bytes));
        assert (sends_reg || sent == 0);
      end
      if (sends_reg) begin
        assert (sent < frame_bytes && sent % BYTES == 0);
        assert (header_left_reg == header_rest && content_left_reg == content_rest);
        assert (frame_left_reg == frame_rest);
        assert ((hold_reg >> 8 * header_rest) == 0);
        if (fetched_valid_reg) begin
          assert (fetched * BYTES == sent + (staged_valid_reg ? BYTES : 0));
          assert (rd_reg == fetched + 1'b1);
        end else begin
          assert (sent == 0 && rd_reg == 0 && !staged_valid_reg);
        end
        if (staged_valid_reg)
          assert (staged * BYTES == sent);
          else assert (sent == 0);
        if (fetched_valid_reg && has_word && fetched == watched) assert (fetched_reg == put);
        if (staged_valid_reg && has_word && staged == watched) assert (staged_reg == put);
      end else begin
        assert (!answering || step_reg <= 2);
      end

      if (moved)
        for (b = 0; b < BYTES; b = b + 1) begin
          if (want_put[b]) assert (m_axis_tdata[8*b+:8] == moved_put[8*b+:8]);
          if (want_zero[b]) assert (m_axis_tdata[8*b+:8] == 0);
        end
      if (moved) assert (m_axis_tvalid && m_axis_tkeep == want_keep && m_axis_tlast == want_last);
      assert (m_axis_tvalid == (moved || waited));
      if (waited) assert ({m_axis_tlast, m_axis_tkeep, m_axis_tdata} == stood);

      cover (dropped && answering && has_word);
      cover (moved && want_put[0] && !want_last);
    end
  end

  reg [8*BYTES-1:0] moved_put;
  always @(posedge clk) moved_put <= put;
`endif

endmodule

`default_nettype wire
