// Keeps packets of the core, and replays each once for each receiver, in the order of ports.
//
// The words of payloads are in one ring, which holds two of the largest packets: one leaves while
// the next one comes. A word's place is free again when its last copy has been read. Beside the ring
// is a queue of packets: header, receivers, size and checks, the latter when agg_datagram_sums has
// them. Up to 16 packets wait there.
//
// A packet's copies are offered at m_copy one after another, the lowest port first, as soon as its
// checks are there. When a copy is taken, its payload follows at m_axis, word by word. The next copy
// can be taken as soon as the payload before it begins: the shell looks up its address meanwhile.
//
// Latency: a copy is offered two cycles after the checks came; the first word of its payload is at
// m_axis four cycles after the copy was taken. Throughput: a word a cycle, also from copy to copy,
// and a copy every two cycles. Not done here: addresses, frames (agg_eth_transmit), and the cutting
// of packets into steps and words (agg_datagram_steps).

`default_nettype none

module agg_datagram_store #(
    parameter integer PORTS       = 4,
    parameter integer BYTES       = 8,     // in a word of the frame
    parameter integer STEP        = 8,     // in a step of agg_datagram_steps
    parameter integer PAYLOAD     = 1024,  // of the largest packet, in bytes
    parameter integer NUMBER_BITS = 10     // width of a step's number in the payload
) (
    input wire clk,
    input wire rst,

    // From agg_datagram_steps: a packet's first step, and a word's last one, are taken in this cycle;
    // one cycle later, the word, and the packet's end with the number of its last step
    output wire                   room,
    input  wire                   takes_first,
    input  wire [          239:0] s_header,      // 30 bytes
    input  wire [      PORTS-1:0] s_dest,        // receivers, at least one
    input  wire                   s_bare,        // no payload, and a header of 22 bytes
    input  wire                   takes_word,
    input  wire                   s_word_valid,  // one cycle later
    input  wire [    8*BYTES-1:0] s_word_data,
    input  wire                   s_last,
    input  wire [NUMBER_BITS-1:0] s_number,

    // The checks of the oldest packet that lacks them
    input wire        s_sums_valid,
    input wire [31:0] s_crc,
    input wire [15:0] s_sum,

    // A copy to be sent
    output wire             m_copy_valid,
    input  wire             m_copy_ready,
    output wire [PORTS-1:0] m_copy_dest,    // one-hot
    output wire [    239:0] m_copy_header,
    output wire             m_copy_bare,
    output wire [      1:0] m_copy_ecn,     // of the IP header
    output wire [     13:0] m_copy_bytes,   // of the datagram
    output wire [     31:0] m_copy_crc,
    output wire [     15:0] m_copy_sum,

    // The payloads of the copies that were taken
    output wire [8*BYTES-1:0] m_axis_tdata,   // the bytes behind the last are 0
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  `include "zwire.vh"

  localparam integer WORDS = (PAYLOAD + BYTES - 1) / BYTES;  // of the largest payload
  localparam integer SPARE = BYTES > 8 ? 16 : 0;  // a short frame takes less time than its checks
  localparam integer RING_BITS = WORDS <= 8 && SPARE == 0 ? 4 : $clog2(2 * WORDS + SPARE);
  localparam integer QUEUE_BITS = 4;  // what a small memory of an FPGA holds
  localparam integer STEP_SHIFT = $clog2(STEP);
  localparam integer WORD_SHIFT = $clog2(BYTES) - STEP_SHIFT;  // from a step's number to a word's

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_frame_has_words_of_1_8_or_64_bytes error ();
    end
    if (PAYLOAD < STEP || PAYLOAD > 8192) begin : g_payload
      ERROR_a_payload_has_up_to_8192_bytes error ();
    end
    if (STEP > BYTES || STEP << NUMBER_BITS < PAYLOAD || NUMBER_BITS + STEP_SHIFT > 14 ||
        NUMBER_BITS <= WORD_SHIFT) begin : g_number
      ERROR_numbers_of_steps_must_count_a_payload error ();
    end
  endgenerate

  localparam integer LEFT_BITS = NUMBER_BITS - WORD_SHIFT;
  localparam [13:0] FULL_BYTES = HDR_MAX_BYTES[13:0] + 14'd4 + STEP[13:0];  // payload of one step
  localparam [13:0] BARE_BYTES = HDR_MASK_BYTES[13:0] + 14'd4;
  localparam [RING_BITS:0] PLACES = {1'b1, {RING_BITS{1'b0}}};
  localparam [QUEUE_BITS:0] PACKETS = {1'b1, {QUEUE_BITS{1'b0}}};

  // -- Room ----------------------------------------------------------------------------------------

  reg [RING_BITS:0] places_reg;  // free
  reg [QUEUE_BITS:0] packets_reg;  // in the queue, or coming
  reg room_reg;
  reg freed_reg;  // a word's last copy was read
  wire load;  // the next packet leaves the queue

  wire [RING_BITS:0] places = places_reg + {{RING_BITS{1'b0}}, freed_reg} -
      {{RING_BITS{1'b0}}, takes_word};
  wire [QUEUE_BITS:0] packets = packets_reg + {{QUEUE_BITS{1'b0}}, takes_first} -
      {{QUEUE_BITS{1'b0}}, load};

  always @(posedge clk) begin
    places_reg  <= places;
    packets_reg <= packets;
    room_reg    <= places != {RING_BITS + 1{1'b0}} && packets != PACKETS;
    if (rst) begin
      places_reg  <= PLACES;
      packets_reg <= {QUEUE_BITS + 1{1'b0}};
      room_reg    <= 1'b0;
    end
  end

  assign room = room_reg;

  // -- The queue -----------------------------------------------------------------------------------

  // The three parts of an entry, which come one after another
  (* ram_style = "distributed" *) reg [240+PORTS:0] heads[0:(1<<QUEUE_BITS)-1];
  (* ram_style = "distributed" *) reg [NUMBER_BITS-1:0] sizes[0:(1<<QUEUE_BITS)-1];
  (* ram_style = "distributed" *) reg [47:0] checks[0:(1<<QUEUE_BITS)-1];
  reg [QUEUE_BITS-1:0] head_wr_reg;
  reg [QUEUE_BITS-1:0] size_wr_reg;
  reg [QUEUE_BITS-1:0] check_wr_reg;
  reg [QUEUE_BITS-1:0] rd_reg;
  reg waits_reg;  // an entry is complete

  wire [QUEUE_BITS-1:0] rd_next = rd_reg + 1'b1;

  always @(posedge clk) begin
    if (takes_first) begin
      heads[head_wr_reg] <= {s_bare, s_dest, s_header};
      head_wr_reg        <= head_wr_reg + 1'b1;
    end
    if (s_last) begin
      sizes[size_wr_reg] <= s_number;
      size_wr_reg        <= size_wr_reg + 1'b1;
    end
    if (s_sums_valid) begin
      checks[check_wr_reg] <= {s_sum, s_crc};
      check_wr_reg         <= check_wr_reg + 1'b1;
    end
    if (load) rd_reg <= rd_next;
    // The queue has 16 complete entries at most, and one of them leaves when it has.
    waits_reg <= s_sums_valid || (waits_reg && !(load && rd_next == check_wr_reg));
    if (rst) begin
      head_wr_reg  <= {QUEUE_BITS{1'b0}};
      size_wr_reg  <= {QUEUE_BITS{1'b0}};
      check_wr_reg <= {QUEUE_BITS{1'b0}};
      rd_reg       <= {QUEUE_BITS{1'b0}};
      waits_reg    <= 1'b0;
    end
  end

  // -- Copies --------------------------------------------------------------------------------------

  reg held_reg;  // a packet is here, with copies to be taken
  reg [PORTS-1:0] port_reg;
  reg [PORTS-1:0] left_reg;  // receivers after that
  reg bare_reg;
  reg [239:0] header_reg;
  reg [1:0] ecn_reg;
  reg [13:0] bytes_reg;
  reg [LEFT_BITS-1:0] size_reg;  // number of the payload's last word
  reg [31:0] crc_reg;
  reg [15:0] sum_reg;
  reg next_valid_reg;  // a copy was taken, and its payload has not begun

  wire head_bare;
  wire [PORTS-1:0] head_dest;
  wire [239:0] header;
  assign {head_bare, head_dest, header} = heads[rd_reg];
  wire [NUMBER_BITS-1:0] size = sizes[rd_reg];
  wire [PORTS-1:0] first = head_dest & (~head_dest + 1'b1);
  wire [PORTS-1:0] then = left_reg & (~left_reg + 1'b1);
  wire taken = m_copy_valid && m_copy_ready;
  wire final_copy = left_reg == {PORTS{1'b0}};

  assign load = waits_reg && (!held_reg || (taken && final_copy));

  always @(posedge clk) begin
    if (taken) begin
      port_reg <= then;
      left_reg <= left_reg & ~then;
    end
    if (load) begin
      port_reg <= first;
      left_reg <= head_dest & ~first;
      bare_reg <= head_bare;
      header_reg <= header;
      ecn_reg <= head_bare ? ECN_ECT0 : header[HDR_FLAGS_LSB+:2];
      bytes_reg  <= head_bare ? BARE_BYTES :
          ({{14 - NUMBER_BITS{1'b0}}, size} << STEP_SHIFT) + FULL_BYTES;
      size_reg <= size[NUMBER_BITS-1:WORD_SHIFT];
      {sum_reg, crc_reg} <= checks[rd_reg];
    end
    held_reg <= load || (held_reg && !(taken && final_copy));
    if (rst) held_reg <= 1'b0;
  end

  assign m_copy_valid  = held_reg && (bare_reg || !next_valid_reg);
  assign m_copy_dest   = port_reg;
  assign m_copy_header = header_reg;
  assign m_copy_bare   = bare_reg;
  assign m_copy_ecn    = ecn_reg;
  assign m_copy_bytes  = bytes_reg;
  assign m_copy_crc    = crc_reg;
  assign m_copy_sum    = sum_reg;

  // -- Payloads ------------------------------------------------------------------------------------

  // No word is read in the cycle of its write: block RAM needs no logic for that case.
  (* no_rw_check *) reg [8*BYTES-1:0] ring[0:(1<<RING_BITS)-1];
  reg [RING_BITS-1:0] word_wr_reg;
  reg [RING_BITS-1:0] word_rd_reg;
  reg [RING_BITS-1:0] begin_reg;  // first word of the packet being read
  reg [LEFT_BITS-1:0] next_size_reg;
  reg next_final_reg;  // the packet's last copy
  reg reads_reg;  // a payload is being read
  reg [LEFT_BITS-1:0] size_left_reg;  // words to read after the next one
  reg final_reg;
  reg fetched_valid_reg, fetched_last_reg;
  reg [8*BYTES-1:0] fetched_reg;  // a block RAM is slow: the next register takes it as it is
  reg valid_reg, last_reg;
  reg [8*BYTES-1:0] data_reg;

  wire out_free = !valid_reg || m_axis_tready;
  wire fetch_free = !fetched_valid_reg || out_free;
  wire fetch = reads_reg && fetch_free;
  wire last = size_left_reg == {LEFT_BITS{1'b0}};
  wire begins = next_valid_reg && (!reads_reg || (fetch && last));
  wire [RING_BITS-1:0] word_after = word_rd_reg + 1'b1;

  always @(posedge clk) begin
    if (s_word_valid) begin
      ring[word_wr_reg] <= s_word_data;
      word_wr_reg       <= word_wr_reg + 1'b1;
    end

    if (taken && !bare_reg) begin
      next_size_reg  <= size_reg;
      next_final_reg <= final_copy;
    end
    next_valid_reg <= (taken && !bare_reg) || (next_valid_reg && !begins);

    if (begins) begin
      size_left_reg <= next_size_reg;
      final_reg     <= next_final_reg;
    end else if (fetch) begin
      size_left_reg <= size_left_reg - 1'b1;
    end
    reads_reg <= begins || (reads_reg && !(fetch && last));

    freed_reg <= fetch && final_reg;
    if (fetch) begin
      fetched_reg      <= ring[word_rd_reg];
      fetched_last_reg <= last;
      word_rd_reg      <= last && !final_reg ? begin_reg : word_after;
      if (last && final_reg) begin_reg <= word_after;
    end
    if (fetch_free) fetched_valid_reg <= reads_reg;
    if (out_free) begin
      data_reg  <= fetched_reg;
      last_reg  <= fetched_last_reg;
      valid_reg <= fetched_valid_reg;
    end

    if (rst) begin
      word_wr_reg       <= {RING_BITS{1'b0}};
      word_rd_reg       <= {RING_BITS{1'b0}};
      begin_reg         <= {RING_BITS{1'b0}};
      next_valid_reg    <= 1'b0;
      reads_reg         <= 1'b0;
      freed_reg         <= 1'b0;
      fetched_valid_reg <= 1'b0;
      valid_reg         <= 1'b0;
    end
  end

  assign m_axis_tdata  = data_reg;
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg;

endmodule

`default_nettype wire
