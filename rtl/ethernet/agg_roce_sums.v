// Takes the core's sums for RoCEv2: packs them into words, and computes the share of each in its ICRC.
//
// A step has STEP bytes: a beat, or a word of the frame if that is narrower. A sum is whole words. Its
// header goes to the stores in a cycle of its own, before the first step, while the first beat waits.
// Then a step is taken every cycle. Packets without payload (tkeep = 0), which are statuses, are
// swallowed: nothing but sums leaves on a connection. Outputs named takes_* are not registers: they
// belong to what is taken in this cycle. A word is at m_word_* in the next one. No sum is taken
// without room.
//
// The share is the CRC-32 of the payload from 0 on. CRCs are linear: the ICRC of a frame is the
// complement of this share and that of all before the payload, added. So one share serves all
// receivers, whatever their headers.
//
// A step of 64 bytes is reduced in STAGES cycles, 16 bytes at a time, in front of the loop. Latency:
// m_sums_valid is a pulse STAGES + 1 cycles after m_last: 2 cycles for steps of up to 16 bytes, 3 for
// more. Throughput: a step a cycle, and a cycle more for each sum.

`default_nettype none

module agg_roce_sums #(
    parameter integer BEAT_BYTES  = 64,  // a power of 2
    parameter integer BYTES       = 8,   // of a word
    parameter integer STEP        = 8,   // the smaller of the two
    parameter integer NUMBER_BITS = 10   // width of a step's number in the payload
) (
    input wire clk,
    input wire rst,

    // The core's output; its header goes to the stores directly
    input  wire [8*BEAT_BYTES-1:0] s_axis_tdata,
    input  wire [  BEAT_BYTES-1:0] s_axis_tkeep,   // all or none
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    input  wire                    s_axis_tlast,

    // To agg_datagram_store
    input  wire                   room,          // for a packet and a word
    output wire                   takes_first,   // a packet begins
    output wire                   takes_word,    // the last step of a word
    output wire                   m_word_valid,  // one cycle after that
    output wire [    8*BYTES-1:0] m_word_data,
    output wire                   m_last,        // with the packet's last word
    output wire [NUMBER_BITS-1:0] m_number,      // then: of its last step
    output wire                   m_sums_valid,
    output wire [           31:0] m_crc
);

  localparam integer CUTS = BEAT_BYTES / STEP;  // steps of a beat
  localparam integer PLACES = BYTES / STEP;  // steps of a word
  localparam integer CUT_BITS = $clog2(CUTS + 1);
  localparam integer PLACE_BITS = $clog2(PLACES + 1);
  localparam integer PARTS = (STEP + 15) / 16;  // shares of the CRC, of 16 bytes each
  localparam integer PART = STEP < 16 ? STEP : 16;
  localparam integer STAGES = PARTS == 1 ? 1 : 2;

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
  endgenerate

  localparam [CUT_BITS-1:0] CUT_LAST = CUTS[CUT_BITS-1:0] - 1'b1;
  localparam [PLACE_BITS-1:0] PLACE_LAST = PLACES[PLACE_BITS-1:0] - 1'b1;

  // -- What is taken -------------------------------------------------------------------------------

  reg payload_reg;  // the packet has begun
  reg fresh_reg;  // its next step is the first
  reg [CUT_BITS-1:0] cut_reg;
  reg [PLACE_BITS-1:0] place_reg;
  reg [NUMBER_BITS-1:0] number_reg;

  wire bare = !(|s_axis_tkeep);
  wire begins = s_axis_tvalid && room && !bare && !payload_reg;
  wire take = s_axis_tvalid && room && payload_reg;
  wire cut_ends = cut_reg == CUT_LAST;
  wire fills = place_reg == PLACE_LAST;
  wire ends = cut_ends && s_axis_tlast;
  wire [8*STEP-1:0] step = s_axis_tdata[8*STEP*cut_reg+:8*STEP];

  assign s_axis_tready = bare ? s_axis_tvalid : take && cut_ends;
  assign takes_first   = begins;
  assign takes_word    = take && fills;

  always @(posedge clk) begin
    payload_reg <= begins || (payload_reg && !(take && ends));
    if (take) begin
      fresh_reg  <= ends;
      cut_reg    <= cut_ends ? {CUT_BITS{1'b0}} : cut_reg + 1'b1;
      place_reg  <= fills ? {PLACE_BITS{1'b0}} : place_reg + 1'b1;
      number_reg <= ends ? {NUMBER_BITS{1'b0}} : number_reg + 1'b1;
    end
    if (rst) begin
      payload_reg <= 1'b0;
      fresh_reg  <= 1'b1;
      cut_reg    <= {CUT_BITS{1'b0}};
      place_reg  <= {PLACE_BITS{1'b0}};
      number_reg <= {NUMBER_BITS{1'b0}};
    end
  end

  // -- The step, and its word ----------------------------------------------------------------------

  reg valid_reg, first_reg, word_valid_reg, last_reg;
  reg [NUMBER_BITS-1:0] step_number_reg;
  reg [8*STEP-1:0] step_reg;
  wire [8*BYTES-1:0] word;

  generate
    if (PLACES == 1) begin : g_whole
      assign word = step_reg;
    end else begin : g_places
      reg [8*BYTES-1:0] word_reg;
      always @(posedge clk) if (take) word_reg <= {step, word_reg[8*BYTES-1:8*STEP]};
      assign word = word_reg;
    end
  endgenerate

  always @(posedge clk) begin
    valid_reg      <= take && !rst;
    word_valid_reg <= take && fills && !rst;
    last_reg       <= take && ends && !rst;
    if (take) begin
      first_reg       <= fresh_reg;
      step_number_reg <= number_reg;
      step_reg        <= step;
    end
  end

  assign m_word_valid = word_valid_reg;
  assign m_word_data  = word;
  assign m_last       = last_reg;
  assign m_number     = step_number_reg;

  // -- CRC -----------------------------------------------------------------------------------------

  localparam [8*STEP-1:0] ALL = {8 * STEP{1'b1}};

  wire [32*PARTS-1:0] share;
  reg [32*PARTS-1:0] share_reg;
  reg [31:0] joined;  // the step's whole share, one cycle after its parts
  wire [31:0] enters;  // at the loop
  wire adds, opens, closes;
  wire [31:0] moved;  // the state's share
  reg [31:0] crc_reg;
  reg sums_valid_reg;

  genvar g;
  generate
    for (g = 0; g < PARTS; g = g + 1) begin : g_part
      localparam [8*STEP-1:0] MASK = (ALL >> 8 * (STEP - PART)) << 8 * PART * g;

      agg_crc32 #(
          .BYTES(STEP)
      ) u_share (
          .crc_in (32'd0),
          .data   (step_reg & MASK),
          .crc_out(share[32*g+:32])
      );
    end
  endgenerate

  agg_crc32 #(
      .BYTES(STEP)
  ) u_state (
      .crc_in (crc_reg),
      .data   ({8 * STEP{1'b0}}),
      .crc_out(moved)
  );

  agg_delay #(
      .WIDTH (32),
      .CYCLES(STAGES - 1)
  ) u_enters (
      .clk(clk),
      .d  (joined),
      .q  (enters)
  );

  agg_tag_delay #(
      .WIDTH (2),
      .CYCLES(STAGES)
  ) u_tags (
      .clk      (clk),
      .rst      (rst),
      .in_valid (valid_reg),
      .in_tag   ({first_reg, last_reg}),
      .out_valid(adds),
      .out_tag  ({opens, closes})
  );

  integer p;

  always @* begin
    joined = share_reg[31:0];
    for (p = 1; p < PARTS; p = p + 1) joined = joined ^ share_reg[32*p+:32];
  end

  always @(posedge clk) begin
    share_reg <= share;
    if (adds) crc_reg <= (opens ? 32'd0 : moved) ^ enters;
    sums_valid_reg <= adds && closes && !rst;
  end

  assign m_sums_valid = sums_valid_reg;
  assign m_crc = crc_reg;

endmodule

`default_nettype wire
