// Cuts the core's packets into steps for their checks, and packs their payloads into words.
//
// A step has STEP bytes: a beat, or a word of the frame if that is narrower. A packet's header comes
// first, and then its payload, a step a cycle. A header is no whole number of steps of 4 bytes or
// more. ZEROS bytes stand before it, so that the payload begins with a step, and every step is a
// whole one. The header passes while the packet's first beat waits at the input. After it, no cycle
// is lost. A word leaves when it is full, and at the packet's end; the bytes behind the end are 0.
//
`ifdef AGG_PARENT
// A packet for the parent has a header of 14 bytes, and more zeros before it: 16 more with a payload,
// and 8 more without.
//
`endif
// A packet without payload (tkeep = 0) has one beat and a header of 22 bytes; one with payload has a
// header of 30. Outputs named takes_* are not registers: they belong to the step that is taken in
// this cycle, and is at m_step_* in the next one. Nothing is taken without room.

`default_nettype none

module agg_datagram_steps #(
    parameter integer BEAT_BYTES  = 64,  // a power of 2
    parameter integer BYTES       = 8,   // of a word
    parameter integer STEP        = 8,   // the smaller of the two
    parameter integer ZEROS       = 2,   // bytes before a header of 30 bytes
    parameter integer ZEROS_BARE  = 2,   // and before one of 22
    parameter integer NUMBER_BITS = 10   // width of a step's number in the payload
) (
    input wire clk,
    input wire rst,

    input  wire [8*BEAT_BYTES-1:0] s_axis_tdata,
    input  wire [  BEAT_BYTES-1:0] s_axis_tkeep,   // all or none
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    input  wire                    s_axis_tlast,
    input  wire [           239:0] s_axis_tuser,   // header, 30 bytes, on every beat
`ifdef AGG_PARENT

    input wire s_axis_tup,  // on every beat: the packet is for the parent
`endif

    input  wire room,         // for a packet and a word
    output wire takes_first,  // the packet's first step
    output wire takes_word,   // the last step of a word

    output wire                   m_step_valid,
    output wire                   m_step_first,
    output wire                   m_step_last,
    output wire                   m_step_bare,    // the packet has no payload
    output wire [NUMBER_BITS-1:0] m_step_number,  // in the payload, on a packet's last step
    output wire [     8*STEP-1:0] m_step_data,
`ifdef AGG_PARENT

    output wire m_step_up,  // the packet is for the parent
`endif

    output wire               m_word_valid,  // with the word's last step
    output wire [8*BYTES-1:0] m_word_data
);

  `include "zwire.vh"

  localparam integer BLOCK = ZEROS + HDR_MAX_BYTES;  // bytes of zeros and header
  localparam integer HEADS = BLOCK / STEP;  // steps of it
  localparam integer SKIP = ZEROS_BARE == ZEROS ? 8 / STEP : 0;  // fewer for a short header
  localparam integer CUTS = BEAT_BYTES / STEP;  // steps of a beat
  localparam integer PLACES = BYTES / STEP;  // steps of a word
  localparam integer HEAD_BITS = $clog2(HEADS + 1);
  localparam integer CUT_BITS = $clog2(CUTS + 1);
  localparam integer PLACE_BITS = $clog2(PLACES + 1);

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_frame_has_words_of_1_8_or_64_bytes error ();
    end
    if ((BEAT_BYTES & (BEAT_BYTES - 1)) != 0) begin : g_beat
      ERROR_the_bytes_of_a_beat_are_a_power_of_2 error ();
    end
    if (STEP != (BEAT_BYTES < BYTES ? BEAT_BYTES : BYTES)) begin : g_step
      ERROR_a_step_is_a_beat_or_a_word error ();
    end
    if (HEADS * STEP != BLOCK ||
        (ZEROS_BARE + HDR_MASK_BYTES != BLOCK && (ZEROS_BARE != ZEROS || STEP > 8))) begin : g_zeros
      ERROR_zeros_must_make_headers_whole_steps error ();
    end
  endgenerate

  localparam [HEAD_BITS-1:0] HEAD_LAST = HEADS[HEAD_BITS-1:0] - 1'b1;
  localparam [CUT_BITS-1:0] CUT_LAST = CUTS[CUT_BITS-1:0] - 1'b1;
  localparam [PLACE_BITS-1:0] PLACE_LAST = PLACES[PLACE_BITS-1:0] - 1'b1;

  // -- What is taken -------------------------------------------------------------------------------

  reg fresh_reg;  // the next step is a packet's first
  reg payload_reg;  // the packet's header has passed
  reg [HEAD_BITS-1:0] head_reg;
  reg [CUT_BITS-1:0] cut_reg;
  reg [PLACE_BITS-1:0] place_reg;
  reg [NUMBER_BITS-1:0] number_reg;

  wire bare = !(|s_axis_tkeep);
  wire [HEAD_BITS-1:0] first = bare ? SKIP[HEAD_BITS-1:0] : {HEAD_BITS{1'b0}};
  wire [HEAD_BITS-1:0] head = fresh_reg ? first : head_reg;
  wire head_ends = head == HEAD_LAST;
  wire cut_ends = cut_reg == CUT_LAST;
  wire take = s_axis_tvalid && room;
  wire ends = payload_reg ? cut_ends && s_axis_tlast : head_ends && bare;  // the packet
  wire fills = payload_reg && (place_reg == PLACE_LAST || ends);

  assign s_axis_tready = take && (payload_reg ? cut_ends : head_ends && bare);
  assign takes_first   = take && fresh_reg;
  assign takes_word    = take && fills;

  wire [8*BLOCK-1:0] block;
  wire [8*BLOCK-1:0] block_full = {s_axis_tuser, {8 * ZEROS{1'b0}}};
  wire [8*BLOCK-1:0] block_bare = {s_axis_tuser[8*HDR_MASK_BYTES-1:0], {8 * (ZEROS + 8) {1'b0}}};
`ifdef AGG_PARENT
  wire [8*BLOCK-1:0] block_up = {
    s_axis_tuser[8*HDR_BASE_BYTES-1:0], {8 * (BLOCK - HDR_BASE_BYTES) {1'b0}}
  };
  assign block = s_axis_tup ? block_up : bare ? block_bare : block_full;
`else
  assign block = bare ? block_bare : block_full;
`endif

  wire [8*STEP-1:0] step = payload_reg ? s_axis_tdata[8*STEP*cut_reg+:8*STEP] :
      block[8*STEP*head+:8*STEP];

  always @(posedge clk) begin
    if (take) begin
      fresh_reg   <= ends;
      payload_reg <= payload_reg ? !ends : head_ends && !bare;
      head_reg    <= head + 1'b1;
      if (payload_reg) begin
        cut_reg    <= cut_ends ? {CUT_BITS{1'b0}} : cut_reg + 1'b1;
        place_reg  <= fills ? {PLACE_BITS{1'b0}} : place_reg + 1'b1;
        number_reg <= ends ? {NUMBER_BITS{1'b0}} : number_reg + 1'b1;
      end
    end
    if (rst) begin
      fresh_reg   <= 1'b1;
      payload_reg <= 1'b0;
      cut_reg     <= {CUT_BITS{1'b0}};
      place_reg   <= {PLACE_BITS{1'b0}};
      number_reg  <= {NUMBER_BITS{1'b0}};
    end
  end

  // -- The step, and its word ----------------------------------------------------------------------

  reg step_valid_reg, first_reg, last_reg, bare_reg, word_valid_reg;
`ifdef AGG_PARENT
  reg up_reg;

  always @(posedge clk) if (take) up_reg <= s_axis_tup;

  assign m_step_up = up_reg;
`endif
  reg  [NUMBER_BITS-1:0] step_number_reg;
  reg  [     8*STEP-1:0] step_reg;
  wire [    8*BYTES-1:0] word;

  generate
    if (PLACES == 1) begin : g_whole
      assign word = step_reg;
    end else begin : g_places
      reg [8*BYTES-1:0] word_reg;
      always @(posedge clk) begin
        if (take && payload_reg) begin
          if (place_reg == {PLACE_BITS{1'b0}}) word_reg <= {8 * BYTES{1'b0}};
          word_reg[8*STEP*place_reg+:8*STEP] <= step;
        end
      end
      assign word = word_reg;
    end
  endgenerate

  always @(posedge clk) begin
    step_valid_reg <= take && !rst;
    word_valid_reg <= take && fills && !rst;
    if (take) begin
      first_reg       <= fresh_reg;
      last_reg        <= ends;
      bare_reg        <= bare;
      step_number_reg <= number_reg;
      step_reg        <= step;
    end
  end

  assign m_step_valid  = step_valid_reg;
  assign m_step_first  = first_reg;
  assign m_step_last   = last_reg;
  assign m_step_bare   = bare_reg;
  assign m_step_number = step_number_reg;
  assign m_step_data   = step_reg;
  assign m_word_valid  = word_valid_reg;
  assign m_word_data   = word;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  integer b;

  // Bytes of zeros and header that were taken, and of the beat and the word after them
  reg in_payload;
  reg [7:0] header_bytes, beat_bytes, word_bytes;
  reg [NUMBER_BITS-1:0] steps;  // of the payload
  wire is_bare = s_axis_tkeep == 0;
  wire [7:0] zeros = is_bare ? ZEROS_BARE : ZEROS;
  wire [7:0] header_all = zeros + (is_bare ? 22 : 30);
  // As in the module, zeros may be left out by whole steps.
  wire [7:0] passed = header_bytes + (is_bare && STEP <= 8 ? ZEROS_BARE - ZEROS : 0);
  wire takes = s_axis_tvalid && room;
  wire header_done = passed + STEP == header_all;
  wire beat_done = beat_bytes + STEP == BEAT_BYTES;
  wire packet_done = in_payload ? beat_done && s_axis_tlast : header_done && is_bare;
  wire word_done = in_payload && (word_bytes + STEP == BYTES || packet_done);

  // What is due at the output
  reg took, want_first, want_last, want_bare, want_word;
  reg [8*STEP-1:0] want_step;
  reg [8*BYTES-1:0] want_data;
  reg [NUMBER_BITS-1:0] want_number;

  // The input
  reg waited;
  reg [9*BEAT_BYTES+240:0] stood;
  reg amid;  // a packet's first beat was taken, and its last was not
  wire [9*BEAT_BYTES+240:0] offered = {s_axis_tlast, s_axis_tkeep, s_axis_tdata, s_axis_tuser};

  always @(posedge clk) begin
    running_was <= was_reset && !rst;
    took <= takes;
    want_first <= !in_payload && header_bytes == 0;
    want_last <= packet_done;
    want_bare <= is_bare;
    want_word <= word_done;
    want_number <= steps;
    for (b = 0; b < STEP; b = b + 1)
    want_step[8*b+:8] <= in_payload ? s_axis_tdata[8*(beat_bytes+b)+:8] :
        passed + b < zeros ? 8'd0 : s_axis_tuser[8*(passed+b-zeros)+:8];
    if (takes && in_payload)
      for (b = 0; b < BYTES; b = b + 1)
      if (b >= word_bytes)
        want_data[8*b+:8] <= b < word_bytes + STEP ?
              s_axis_tdata[8*(beat_bytes+b-word_bytes)+:8] : 0;
    if (takes) begin
      in_payload <= in_payload ? !packet_done : header_done && !is_bare;
      if (!in_payload) header_bytes <= header_done ? 0 : header_bytes + STEP;
      if (in_payload) begin
        beat_bytes <= beat_done ? 0 : beat_bytes + STEP;
        word_bytes <= word_done ? 0 : word_bytes + STEP;
        steps <= packet_done ? 0 : steps + 1'b1;
      end
    end
    waited <= !rst && s_axis_tvalid && !s_axis_tready;
    stood  <= offered;
    if (s_axis_tvalid && s_axis_tready) amid <= !s_axis_tlast;
    if (rst) begin
      was_reset <= 1'b1;
      in_payload <= 1'b0;
      header_bytes <= 0;
      beat_bytes <= 0;
      word_bytes <= 0;
      steps <= 0;
      amid <= 1'b0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // agg_stage, agg_egress: a beat stays until it is taken; tkeep is all or nothing, and a packet
      // without payload has one beat.
      `PROMISED(!waited || (s_axis_tvalid && offered == stood));
      `PROMISED(!s_axis_tvalid || is_bare || &s_axis_tkeep);
      `PROMISED(!s_axis_tvalid || !is_bare || (s_axis_tlast && !amid));

      // Nothing is taken without room, and a beat only with its last step.
      assert (takes_first == (takes && !in_payload && header_bytes == 0));
      assert (takes_word == (takes && word_done));
      assert (s_axis_tready == (takes && (in_payload ? beat_done : header_done && is_bare)));
      assert (payload_reg == in_payload && fresh_reg == (!in_payload && header_bytes == 0));
      assert (cut_reg * STEP == beat_bytes && beat_bytes < BEAT_BYTES);
      assert (place_reg * STEP == word_bytes && word_bytes < BYTES);
      assert (number_reg == steps);
      if (word_bytes != 0) assert (m_word_data == want_data);
      if (!in_payload) assert (beat_bytes == 0 && word_bytes == 0 && steps == 0 && !amid);
      if (in_payload) assert (header_bytes == 0);
      // What is half taken waits at the input.
      if (beat_bytes != 0 || (in_payload && !amid) || header_bytes != 0)
        assert (waited || !running_was);
      if (header_bytes != 0) begin
        assert (header_bytes % STEP == 0 && passed + STEP <= header_all);
        assert (head_reg * STEP == header_bytes + (is_bare && STEP <= 8 ? 8 : 0));
      end
    end
    if (running_was && !rst) begin
      assert (m_step_valid == took);
      if (took) begin
        assert (m_step_data == want_step && m_step_first == want_first && m_step_last == want_last);
        assert (m_step_bare == want_bare && m_word_valid == want_word);
        if (want_last) assert (m_step_number == want_number);
        if (want_word) assert (m_word_data == want_data);
      end else begin
        assert (!m_word_valid);
      end
      cover (m_step_last && m_step_valid && !m_step_bare && m_step_number == 3);
      cover (m_step_last && m_step_valid && m_step_bare);
    end
  end
`endif

endmodule

`default_nettype wire
