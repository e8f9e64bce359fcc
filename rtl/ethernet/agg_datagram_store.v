// Keeps packets of the core, and replays each once for each receiver, in the order of ports. A copy
// may serve several receivers with one address (m_copy_done); those get no copy of their own.
//
// The words of payloads are in one ring, which holds two of the largest packets: one leaves while
// the next one comes. A word's place is free again when its last copy has been read. Short packets
// need SPARE: a packet waits for its checks as long as 20 words take to leave. Beside the ring
// is a queue of packets: header, receivers, size and checks, the latter when agg_datagram_sums has
// them. Up to 2^QUEUE_BITS packets wait there.
//
// A packet's copies are offered at m_copy one after another, the lowest port first, as soon as its
// checks are there. When a copy is taken, its payload follows at m_axis, word by word. The next copy
// can be taken as soon as the payload before it begins: the shell looks up its address meanwhile.
//
`ifdef AGG_PARENT
// The port before the last is the up port, and a packet for it has a header of 14 bytes.
//
`endif
// Latency: a copy is offered two cycles after the checks came; the first word of its payload is at
// m_axis four cycles after the copy was taken. Throughput: a word a cycle, also from copy to copy,
// and a copy every two cycles. Not done here: addresses, frames (agg_eth_transmit), and the cutting
// of packets into steps and words (agg_datagram_steps).

`default_nettype none

module agg_datagram_store #(
    parameter integer PORTS = 4,
    parameter integer BYTES = 8,  // in a word of the frame
    parameter integer STEP = 8,  // in a step of agg_datagram_steps
    parameter integer PAYLOAD = 1024,  // of the largest packet, in bytes
    parameter integer SPARE = 0,  // words in the ring beyond those of two packets
    parameter integer NUMBER_BITS = 10,  // width of a step's number in the payload
    parameter integer QUEUE_BITS = 4  // log2 of the packets: what a small memory of an FPGA holds
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
    input  wire [PORTS-1:0] m_copy_done,    // with ready: receivers that this copy serves
    output wire [PORTS-1:0] m_copy_dest,    // one-hot
    output wire             m_copy_final,   // with ready: no other receivers are left
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
  localparam integer RING_BITS = $clog2(2 * WORDS + SPARE);
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
`ifdef AGG_PARENT
  localparam [13:0] UP_BYTES = HDR_BASE_BYTES[13:0] + 14'd4 + STEP[13:0];
  localparam [13:0] UP_BARE_BYTES = HDR_BASE_BYTES[13:0] + 14'd4;
`endif
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
  wire [PORTS-1:0] rest = left_reg & ~m_copy_done;
  wire [PORTS-1:0] then = rest & (~rest + 1'b1);
  wire taken = m_copy_valid && m_copy_ready;
  wire final_copy = rest == {PORTS{1'b0}};

  assign load = waits_reg && !held_reg;

  always @(posedge clk) begin
    if (taken) begin
      port_reg <= then;
      left_reg <= rest & ~then;
    end
    if (load) begin
      port_reg <= first;
      left_reg <= head_dest & ~first;
      bare_reg <= head_bare;
      header_reg <= header;
      ecn_reg <= head_bare ? ECN_ECT0 : header[HDR_FLAGS_LSB+:2];
`ifdef AGG_PARENT
      bytes_reg  <= head_bare ? (head_dest[PORTS-2] ? UP_BARE_BYTES : BARE_BYTES) :
          ({{14 - NUMBER_BITS{1'b0}}, size} << STEP_SHIFT) +
          (head_dest[PORTS-2] ? UP_BYTES : FULL_BYTES);
`else
      bytes_reg  <= head_bare ? BARE_BYTES :
          ({{14 - NUMBER_BITS{1'b0}}, size} << STEP_SHIFT) + FULL_BYTES;
`endif
      size_reg <= size[NUMBER_BITS-1:WORD_SHIFT];
      {sum_reg, crc_reg} <= checks[rd_reg];
    end
    held_reg <= load || (held_reg && !(taken && final_copy));
    if (rst) held_reg <= 1'b0;
  end

  assign m_copy_valid  = held_reg && (bare_reg || !next_valid_reg);
  assign m_copy_dest   = port_reg;
  assign m_copy_final  = final_copy;
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

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Words and packets have numbers, modulo more than can be here.
  localparam integer N = RING_BITS + 2;
  localparam integer Q = QUEUE_BITS + 2;

  reg was_reset = 1'b0;
  integer n;

  // What came: packets begun, ended and with checks; words taken and stored
  reg [Q-1:0] begun, ended, checked, loaded;
  reg [N-1:0] words_taken, words_stored;
  reg under_way;  // a packet was begun, and its last step was not taken
  reg under_way_bare;
  reg [N-1:0] open_words;  // taken, of the packet whose end has not come
  (* anyseq *) reg takes_last;  // the step that is taken is a packet's last
  reg took_last;

  // For any packet: what came, and where it is
  (* anyseq *) reg choose;
  reg chosen, waits, sized, complete, holds, next, reads;
  reg [QUEUE_BITS-1:0] index;
  reg [240+PORTS:0] put_head;
  reg [NUMBER_BITS-1:0] put_size;
  reg [47:0] put_checks;
  reg [N-1:0] put_first;  // its first word
  wire [LEFT_BITS-1:0] put_last = put_size[NUMBER_BITS-1:WORD_SHIFT];

  // For any word
  (* anyconst *) reg [N-1:0] word;
  reg [8*BYTES-1:0] put_word;

  // What leaves
  reg [PORTS-1:0] sent;  // ports that copies of the held packet served
  reg [N-1:0] read_first, read_word, fetched_word, out_word;
  reg [LEFT_BITS-1:0] read_size;
  reg fetched_ends, out_ends;
  reg waited, copy_waited;
  reg [8*BYTES:0] stood;
  reg [PORTS+303:0] copy_stood;
  wire [PORTS+303:0] copy = {
    m_copy_sum, m_copy_crc, m_copy_bytes, m_copy_ecn, m_copy_header[238:0], m_copy_bare, m_copy_dest
  };

  always @(posedge clk) begin
    begun <= begun + takes_first;
    ended <= ended + s_last;
    checked <= checked + s_sums_valid;
    loaded <= loaded + load;
    words_taken <= words_taken + takes_word;
    words_stored <= words_stored + s_word_valid;
    open_words <= (s_last ? 0 : open_words) + takes_word;
    took_last <= takes_last;
    if (takes_first) under_way_bare <= s_bare;
    under_way <= (under_way || takes_first) && !takes_last;

    if (takes_first && choose && !chosen) begin
      chosen <= 1'b1;
      waits <= 1'b1;
      index <= head_wr_reg;
      put_head <= {s_bare, s_dest, s_header};
      put_first <= words_taken;
    end
    if (s_last && waits && !sized && size_wr_reg == index) begin
      sized <= 1'b1;
      put_size <= s_number;
    end
    if (s_sums_valid && waits && !complete && check_wr_reg == index) begin
      complete   <= 1'b1;
      put_checks <= {s_sum, s_crc};
    end
    if (load && rd_reg == index) waits <= 1'b0;
    if (load || (taken && final_copy)) holds <= load && waits && rd_reg == index;
    if (taken && !bare_reg) next <= holds;
    if (begins) reads <= next;
    if (s_word_valid && words_stored == word) put_word <= s_word_data;

    sent <= load ? 0 : taken ? sent | port_reg | (left_reg & m_copy_done) : sent;
    if (begins) read_size <= next_size_reg;
    if (fetch) begin
      fetched_word <= read_word;
      fetched_ends <= read_word == read_first + read_size;
      read_word <= last && !final_reg ? read_first : read_word + 1'b1;
      if (last && final_reg) read_first <= read_word + 1'b1;
    end
    if (out_free) begin
      out_word <= fetched_word;
      out_ends <= fetched_ends;
    end
    waited <= !rst && m_axis_tvalid && !m_axis_tready;
    stood <= {m_axis_tlast, m_axis_tdata};
    copy_waited <= !rst && m_copy_valid && !m_copy_ready;
    copy_stood <= copy;
    if (rst) begin
      was_reset <= 1'b1;
      begun <= 0;
      ended <= 0;
      checked <= 0;
      loaded <= 0;
      words_taken <= 0;
      words_stored <= 0;
      open_words <= 0;
      took_last <= 1'b0;
      under_way <= 1'b0;
      chosen <= 1'b0;
      waits <= 1'b0;
      sized <= 1'b0;
      complete <= 1'b0;
      holds <= 1'b0;
      next <= 1'b0;
      reads <= 1'b0;
      read_first <= 0;
      read_word <= 0;
    end
  end

  // Words of the packets on the way out, and of those in the queue
  wire [N-1:0] words_read = reads_reg && final_reg ? read_size + 1 : 0;
  wire [N-1:0] words_next = next_valid_reg && next_final_reg ? next_size_reg + 1 : 0;
  wire [N-1:0] words_held = held_reg && !bare_reg ? size_reg + 1 : 0;
  wire [N-1:0] words_out = words_read + words_next + words_held;
  wire [N-1:0] freed = reads_reg && final_reg ? read_word : read_first;
  wire [Q-1:0] in_queue = begun - loaded;
  wire [Q-1:0] with_size = ended - loaded;
  wire [Q-1:0] with_checks = checked - loaded;
  wire [QUEUE_BITS-1:0] place = index - rd_reg;  // of the watched packet
  wire [N-1:0] words_here = words_taken - freed;
  wire [N-1:0] words_behind = reads_reg ? read_size - size_left_reg : 0;  // of the copy
  wire [N-1:0] fetched_ahead = fetched_word + 1'b1 - freed;
  wire [N-1:0] fetched_age = words_stored - fetched_word - 1'b1;
  wire [N-1:0] out_ahead = out_word + 1'b1 + fetched_valid_reg - freed;
  wire [N-1:0] out_age = words_stored - out_word - 1'b1;
  reg [N-1:0] words_queued, words_before;
  reg [QUEUE_BITS-1:0] at;

  always @* begin
    words_queued = 0;
    words_before = 0;
    for (n = 0; n < 1 << QUEUE_BITS; n = n + 1) begin
      at = rd_reg + n[QUEUE_BITS-1:0];
      if (n == place) words_before = words_queued;
      if (n < with_size && !heads[at][240+PORTS])
        words_queued = words_queued + (sizes[at] >> WORD_SHIFT) + 1;
      if (was_reset && !rst && n < in_queue) assert (heads[at][240+:PORTS] != 0);
      if (was_reset && !rst && n < with_size)
        assert (heads[at][240+PORTS] || sizes[at] >> WORD_SHIFT < WORDS);
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // agg_datagram_steps: nothing is taken without room; a packet's steps come one after another; a
      // word is at s_word one cycle after it was taken; the last step ends a word, and its number is
      // one less than the steps of the payload. agg_datagram_sums: checks come afterwards, in order.
      `PROMISED(room || !(takes_first || takes_word || takes_last));
      `PROMISED(!takes_first || (!under_way && s_dest != 0));
      `PROMISED(!takes_word || (under_way && !under_way_bare && open_words < WORDS));
      `PROMISED(
          !takes_last || (takes_first ? s_bare : under_way && (under_way_bare || takes_word)));
      `PROMISED(s_last == took_last);
      `PROMISED(!s_last || under_way_bare || open_words == (s_number >> WORD_SHIFT) + 1);
      `PROMISED(s_word_valid == (words_stored != words_taken));
      `PROMISED(!s_sums_valid || checked != ended);
      assert (!(under_way && took_last) && begun - ended == under_way + took_last);
      assert (open_words <= WORDS);
      if ((under_way || took_last) && under_way_bare) assert (open_words == 0);
      assert (under_way || took_last || open_words == 0);
      if (under_way || took_last) assert (heads[size_wr_reg][240+PORTS] == under_way_bare);
      assert (words_taken - words_stored <= (open_words != 0));

      // No packet and no word is overwritten.
      assert (in_queue <= 1 << QUEUE_BITS && packets_reg == in_queue);
      assert (with_size <= in_queue && with_checks <= with_size);
      assert (head_wr_reg == begun[QUEUE_BITS-1:0] && size_wr_reg == ended[QUEUE_BITS-1:0]);
      assert (check_wr_reg == checked[QUEUE_BITS-1:0] && rd_reg == loaded[QUEUE_BITS-1:0]);
      assert (waits_reg == (with_checks != 0));
      if (room) assert (packets_reg < 1 << QUEUE_BITS && places_reg != 0);
      assert (places_reg + freed_reg + words_here == 1 << RING_BITS);
      assert (words_here <= 1 << RING_BITS);
      assert (words_taken == read_first + words_out + words_queued + open_words);
      assert (word_wr_reg == words_stored[RING_BITS-1:0]);
      assert (word_rd_reg == read_word[RING_BITS-1:0] && begin_reg == read_first[RING_BITS-1:0]);

      // One copy is read, another one is next, and both may be of the packet that is held.
      if (reads_reg) assert (size_left_reg <= read_size && read_size < WORDS);
      assert (read_word == read_first + words_behind);
      if (reads_reg && !final_reg && next_valid_reg)
        assert (next_size_reg == read_size && next == reads);
      if (reads_reg && !final_reg && !next_valid_reg)
        assert (held_reg && !bare_reg && size_reg == read_size && holds == reads);
      if (next_valid_reg && !next_final_reg)
        assert (held_reg && !bare_reg && size_reg == next_size_reg && holds == next);
      if (next_valid_reg) assert (next_size_reg < WORDS);
      if (held_reg) assert (bare_reg || size_reg < WORDS);

      // A word is what was stored.
      if (word - freed < words_stored - freed) assert (ring[word[RING_BITS-1:0]] == put_word);
      if (reads_reg) assert (read_word - freed < words_stored - freed);
      if (fetched_valid_reg) begin
        assert (fetched_ahead <= 1 << RING_BITS && fetched_age <= 1 << RING_BITS);
        assert (fetched_last_reg == fetched_ends);
        if (fetched_word == word) assert (fetched_reg == put_word);
      end
      if (m_axis_tvalid) begin
        assert (out_ahead <= (1 << RING_BITS) + fetched_valid_reg);
        assert (out_age <= (1 << RING_BITS) + fetched_valid_reg);
        assert (m_axis_tlast == out_ends);
        if (out_word == word) assert (m_axis_tdata == put_word);
      end

      // A packet leaves as it came, once for each receiver, the lowest port first.
      assert (chosen || !(waits || sized || complete || holds || next || reads));
      if (waits) begin
        assert (chosen && place < in_queue && heads[index] == put_head);
        assert (sized == (place < with_size) && complete == (place < with_checks));
        if (sized) assert (sizes[index] == put_size);
        if (complete) assert (checks[index] == put_checks);
        assert (put_first == read_first + words_out + words_before);
      end
      if (held_reg && holds) begin
        assert (!waits && complete && sized);
        assert ({bare_reg, sent | port_reg | left_reg, header_reg} == put_head);
        assert (bare_reg || size_reg == put_last);
        assert (bytes_reg == (bare_reg ? 26 : (put_size + 1) * STEP + 34));
        assert (ecn_reg == (bare_reg ? ECN_ECT0 : put_head[HDR_FLAGS_LSB+:2]));
        assert ({sum_reg, crc_reg} == put_checks);
        assert (bare_reg || put_first == read_first + words_read + words_next);
      end
      if (held_reg) begin
        assert (port_reg != 0 && (port_reg & (port_reg - 1'b1)) == 0);
        assert ((left_reg & (port_reg | (port_reg - 1'b1))) == 0);
        assert ((sent & (port_reg | left_reg)) == 0);
      end else begin
        assert (!holds);
      end
      if (next_valid_reg && next)
        assert (sized && next_size_reg == put_last && put_first == read_first + words_read);
      if (reads_reg && reads) assert (sized && read_size == put_last && put_first == read_first);

      // What is offered stays.
      if (waited) assert (m_axis_tvalid && {m_axis_tlast, m_axis_tdata} == stood);
      if (copy_waited) assert (m_copy_valid && copy == copy_stood);

      cover (reads_reg && reads && final_reg && read_size == 1 && put_head[240+:2] == 3);
      cover (room_reg == 0 && places_reg == 0);
      cover (holds && bare_reg && reads_reg && next_valid_reg);
    end
  end
`endif

endmodule

`default_nettype wire
