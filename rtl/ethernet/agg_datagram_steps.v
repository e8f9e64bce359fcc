// Cuts the core's packets into steps for their checks, and packs their payloads into words.
//
// A step has STEP bytes: a beat, or a word of the frame if that is narrower. A packet's header comes
// first, and then its payload, a step a cycle. A header is no whole number of steps of 4 bytes or
// more. ZEROS bytes stand before it, so that the payload begins with a step, and every step is a
// whole one. The header passes while the packet's first beat waits at the input. After it, no cycle
// is lost. A word leaves when it is full, and at the packet's end; the bytes behind the end are 0.
//
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

    input  wire room,         // for a packet and a word
    output wire takes_first,  // the packet's first step
    output wire takes_word,   // the last step of a word

    output wire                   m_step_valid,
    output wire                   m_step_first,
    output wire                   m_step_last,
    output wire                   m_step_bare,    // the packet has no payload
    output wire [NUMBER_BITS-1:0] m_step_number,  // in the payload, on a packet's last step
    output wire [     8*STEP-1:0] m_step_data,

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
  assign block = bare ? block_bare : block_full;

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

endmodule

`default_nettype wire
