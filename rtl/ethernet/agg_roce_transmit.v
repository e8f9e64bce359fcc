// Makes RoCEv2 frames of sums: each copy leaves in the header of its receiver (ROCE.md, section 4).
//
//   byte   0  the header as it came, of 54, 58, 70 or 74 bytes, except for
//             MAC addresses, if it came to the card's: to the receiver's, from the card's
//         15  the ECN mark, which is the sum's
//         24  the IP checksum
//         40  the UDP checksum, which is 0
//      H      payload: one MTU, which is whole words
//      H + M  ICRC, low byte first: the complement of the header's part and the payload's share
//
// A copy passes three places. Look-up: agg_roce_headers is asked for the header of its port and slot,
// and the MAC address of its receiver comes meanwhile. Next: the IP checksum is computed. Frame: the
// header is shifted out of one register. A header is no whole number of words: what is left of it,
// and then of each word of the payload, goes in front of the next one. Behind the payload, the
// register takes what is left, and the ICRC.
//
// A header with another tag is another packet's: the slot has turned over, or has a new job. Then the
// payload of the copy is taken and nothing leaves: a pulse of skipped.
//
// Latency: the first word is at the output 9 cycles after its copy is offered, or later. A frame has no
// idle cycle inside if its payload is there in time. A header is asked for when the frame before has
// begun. It takes 6 cycles, and its turn at agg_roce_headers. Frames of more than 7 words and that
// wait follow without an idle cycle: with words of 64 bytes, those of an MTU of 512 or more. left is a
// pulse when the last copy of a packet has its header and address. Not done here: the choice of
// receivers (agg_datagram_store).

`default_nettype none

module agg_roce_transmit #(
    parameter integer PORTS       = 4,
    parameter integer PORT_BITS   = 2,
    parameter integer SLOT_BITS   = 4,
    parameter integer JOB_BITS    = 1,
    parameter integer BYTES       = 8,              // in a word: 1, 8 or 64
    parameter integer TAG_BITS    = JOB_BITS + 48,
    parameter integer RECORD_BITS = 626
) (
    input wire clk,
    input wire rst,

    input wire [47:0] own_mac,  // first byte highest, as in the registers

    // From agg_datagram_store
    input  wire                 s_copy_valid,
    output wire                 s_copy_ready,
    input  wire [    PORTS-1:0] s_copy_dest,   // one-hot: the port whose connection it leaves on
    output wire [    PORTS-1:0] s_copy_done,   // receivers that this copy serves: this one
    input  wire                 s_copy_final,  // no copy of the packet follows
    input  wire [SLOT_BITS-1:0] s_copy_slot,
    input  wire [ TAG_BITS-1:0] s_copy_tag,    // job, epoch, VID
    input  wire [          1:0] s_copy_ecn,
    input  wire [         31:0] s_copy_crc,    // the payload's share of the ICRC

    // agg_roce_headers
    output wire                   read_valid,
    input  wire                   read_ready,
    output wire [  PORT_BITS-1:0] read_port,
    output wire [  SLOT_BITS-1:0] read_slot,
    input  wire                   read_done,
    input  wire [   TAG_BITS-1:0] read_tag,    // job, epoch, VID
    input  wire [RECORD_BITS-1:0] read_record, // part of the ICRC, length code, header

    // Where the receiver of the port's connection is: right three cycles after job and port or earlier
    output wire [ JOB_BITS-1:0] to_job,
    output wire [PORT_BITS-1:0] to_port,
    input  wire [         47:0] to_mac,

    // Payloads of the copies that were taken
    input  wire [8*BYTES-1:0] s_axis_tdata,
    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,
    input  wire               s_axis_tlast,

    // Frames without FCS
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast,

    output wire left,
    output wire skipped
);

  localparam integer LONGEST = 74;  // bytes of a header

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_frame_has_words_of_1_8_or_64_bytes error ();
    end
    if (RECORD_BITS != 8 * LONGEST + 34 || TAG_BITS != JOB_BITS + 48) begin : g_record
      ERROR_a_record_has_626_bits_and_a_tag_48_beside_the_job error ();
    end
    if (PORTS > 1 << PORT_BITS) begin : g_ports
      ERROR_ports_must_have_numbers error ();
    end
  endgenerate

  // Bytes of a header by its code, and of its last word before the payload
  function automatic [6:0] bytes_of;
    input [1:0] code;
    bytes_of = code[1] ? (code[0] ? 7'd74 : 7'd70) : code[0] ? 7'd58 : 7'd54;
  endfunction

  localparam [6:0] WORD = BYTES[6:0];

  // -- Look-up -------------------------------------------------------------------------------------

  reg look_reg;  // a copy is here
  reg asked_reg;  // its header is being read
  reg final_reg;
  reg [PORT_BITS-1:0] port, port_reg;
  reg [SLOT_BITS-1:0] slot_reg;
  reg [TAG_BITS-1:0] tag_reg;
  reg [1:0] ecn_reg;
  reg [31:0] share_reg;
  reg next_reg;  // the place behind has a copy
  integer p;

  always @* begin
    port = {PORT_BITS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) if (s_copy_dest[p]) port = port | p[PORT_BITS-1:0];
  end

  assign s_copy_ready = !look_reg || read_done;
  assign s_copy_done  = s_copy_dest;
  assign read_valid   = look_reg && !asked_reg && !next_reg;
  assign read_port    = port_reg;
  assign read_slot    = slot_reg;
  assign to_job       = tag_reg[48+:JOB_BITS];
  assign to_port      = port_reg;

  always @(posedge clk) begin
    if (s_copy_ready) begin
      look_reg  <= s_copy_valid;
      final_reg <= s_copy_final;
      port_reg  <= port;
      slot_reg  <= s_copy_slot;
      tag_reg   <= s_copy_tag;
      ecn_reg   <= s_copy_ecn;
      share_reg <= s_copy_crc;
    end
    asked_reg <= (asked_reg || (read_valid && read_ready)) && !read_done;
    if (rst) begin
      look_reg  <= 1'b0;
      asked_reg <= 1'b0;
    end
  end

  // -- Next ----------------------------------------------------------------------------------------

  reg [1:0] sums_reg;  // the IP checksum's sums are known: of three words, of all
  reg mine_reg;  // the header is of this sum
  reg own_reg;  // it came to the card
  reg left_reg;
  reg [47:0] mac_reg;
  reg [8*LONGEST-1:0] header_reg;
  reg [1:0] code_reg;
  reg [31:0] icrc_reg;
  reg [17:0] sum_a_reg, sum_b_reg, sum_c_reg;
  reg [19:0] sum_reg;
  wire load;  // the copy moves on

  wire [8*LONGEST-1:0] record_header = read_record[8*LONGEST-1:0];
  wire [1:0] record_code = read_record[8*LONGEST+:2];
  wire [31:0] record_part = read_record[8*LONGEST+2+:32];

  // A 16-bit word of the header; the first byte is the high one.
  function automatic [17:0] word_at;
    input [8*LONGEST-1:0] bytes;
    input integer place;
    word_at = {2'd0, bytes[8*place+:8], bytes[8*place+8+:8]};
  endfunction

  // A value whose first byte is the high one, with that byte lowest
  function automatic [47:0] turned;
    input [47:0] value;
    turned = {value[7:0], value[15:8], value[23:16], value[31:24], value[39:32], value[47:40]};
  endfunction

  always @(posedge clk) begin
    if (read_done) begin
      mine_reg <= read_tag == tag_reg;
      mac_reg <= to_mac;
      code_reg <= record_code;
      icrc_reg <= ~(record_part ^ share_reg);
      header_reg <= record_header;
      header_reg[8*15+:2] <= ecn_reg;
      header_reg[8*40+:16] <= 16'd0;
    end
    next_reg  <= read_done || (next_reg && !load);
    sums_reg  <= load || !next_reg ? 2'd0 : {sums_reg[0], 1'b1};
    left_reg  <= read_done && final_reg && !rst;

    own_reg   <= header_reg[47:0] == turned(own_mac);
    sum_a_reg <= word_at(header_reg, 14) + word_at(header_reg, 16) + word_at(header_reg, 18);
    sum_b_reg <= word_at(header_reg, 20) + word_at(header_reg, 22) + word_at(header_reg, 26);
    sum_c_reg <= word_at(header_reg, 28) + word_at(header_reg, 30) + word_at(header_reg, 32);
    sum_reg   <= {2'd0, sum_a_reg} + {2'd0, sum_b_reg} + {2'd0, sum_c_reg};
    if (rst) begin
      next_reg <= 1'b0;
      sums_reg <= 2'd0;
    end
  end

  assign left = left_reg;

  // The sum in 16 bits, with both possible carries at once
  wire [16:0] plain = {1'b0, sum_reg[15:0]} + {13'd0, sum_reg[19:16]};
  wire [15:0] carried = sum_reg[15:0] + {12'd0, sum_reg[19:16]} + 16'd1;
  wire [15:0] checksum = ~(plain[16] ? carried : plain[15:0]);

  reg [8*LONGEST-1:0] header;

  always @* begin
    header = header_reg;
    header[8*24+:16] = {checksum[7:0], checksum[15:8]};
    if (own_reg) header[95:0] = {turned(own_mac), turned(mac_reg)};
  end

  // -- Frame ---------------------------------------------------------------------------------------

  localparam integer CARRY_0 = 54 % BYTES;
  localparam integer CARRY_1 = 58 % BYTES;
  localparam integer CARRY_2 = 70 % BYTES;
  localparam integer CARRY_3 = 74 % BYTES;
  localparam integer CARRIES = CARRY_1 > CARRY_0 ? CARRY_1 : CARRY_0;  // the largest
  localparam integer KEPT = CARRIES + 4;  // bytes of the register behind a word
  localparam integer WINDOW = BYTES + KEPT;

  reg head_reg;  // words of hold_reg that are header alone, or, with tail_reg, its last bytes
  reg tail_reg;
  reg merges_reg;  // words of the payload with hold_reg
  reg drops_reg;  // words of a payload that does not leave
  reg [8*LONGEST-1:0] hold_reg;
  reg [6:0] bytes_reg;  // of hold_reg
  reg [1:0] form_reg;  // the length code
  reg [31:0] check_reg;
  reg valid_reg, last_reg;
  reg [8*BYTES-1:0] data_reg;
  reg [BYTES-1:0] keep_reg;

  reg [8*WINDOW-1:0] window;  // what is left, the word of the payload, and the ICRC behind it
  reg [6:0] carry;

  function automatic [8*WINDOW-1:0] window_of;
    input integer count;  // bytes that are left
    input [8*KEPT-1:0] kept;
    input [8*BYTES-1:0] word;
    input [31:0] check;
    window_of = ({{8 * BYTES{1'b0}}, kept} & ~({8 * WINDOW{1'b1}} << 8 * count)) |
        ({{8 * KEPT{1'b0}}, word} << 8 * count) |
        ({{8 * (WINDOW - 4) {1'b0}}, check} << 8 * (BYTES + count));
  endfunction

  always @* begin
    case (form_reg)
      2'd0: window = window_of(CARRY_0, hold_reg[8*KEPT-1:0], s_axis_tdata, check_reg);
      2'd1: window = window_of(CARRY_1, hold_reg[8*KEPT-1:0], s_axis_tdata, check_reg);
      2'd2: window = window_of(CARRY_2, hold_reg[8*KEPT-1:0], s_axis_tdata, check_reg);
      default: window = window_of(CARRY_3, hold_reg[8*KEPT-1:0], s_axis_tdata, check_reg);
    endcase
  end

  always @* begin
    carry = bytes_of(form_reg) & (WORD - 7'd1);
  end

  wire free = !valid_reg || m_axis_tready;
  wire moves = free && (head_reg || tail_reg || (merges_reg && s_axis_tvalid));
  wire ends = tail_reg && bytes_reg <= WORD;
  wire idle = !head_reg && !tail_reg && !merges_reg && !drops_reg;
  wire dropped = drops_reg && s_axis_tvalid && s_axis_tlast;
  wire full = head_reg || merges_reg || bytes_reg >= WORD;

  assign load = sums_reg[1] && (idle || (moves && ends) || dropped);
  assign skipped = load && !mine_reg;
  assign s_axis_tready = drops_reg || (merges_reg && free);

  always @(posedge clk) begin
    if (free) begin
      valid_reg <= moves;
      last_reg  <= ends;
      data_reg  <= merges_reg ? window[8*BYTES-1:0] : hold_reg[8*BYTES-1:0];
      keep_reg  <= full ? {BYTES{1'b1}} : ~({BYTES{1'b1}} << bytes_reg);
    end

    if (moves) begin
      if (merges_reg) begin
        hold_reg  <= {{8 * (LONGEST - KEPT) {1'b0}}, window[8*BYTES+:8*KEPT]};
        bytes_reg <= carry + 7'd4;
        if (s_axis_tlast) begin
          merges_reg <= 1'b0;
          tail_reg   <= 1'b1;
        end
      end else begin
        hold_reg  <= hold_reg >> 8 * BYTES;
        bytes_reg <= bytes_reg - WORD;
        if (head_reg && bytes_reg - WORD == carry) begin
          head_reg   <= 1'b0;
          merges_reg <= 1'b1;
        end
      end
      if (ends) tail_reg <= 1'b0;
    end
    if (dropped) drops_reg <= 1'b0;

    if (load) begin
      head_reg   <= mine_reg && bytes_of(code_reg) >= WORD;
      merges_reg <= mine_reg && bytes_of(code_reg) < WORD;
      drops_reg  <= !mine_reg;
      hold_reg   <= header;
      bytes_reg  <= bytes_of(code_reg);
      form_reg   <= code_reg;
      check_reg  <= icrc_reg;
    end

    if (rst) begin
      head_reg   <= 1'b0;
      tail_reg   <= 1'b0;
      merges_reg <= 1'b0;
      drops_reg  <= 1'b0;
      valid_reg  <= 1'b0;
    end
  end

  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg;

endmodule

`default_nettype wire
