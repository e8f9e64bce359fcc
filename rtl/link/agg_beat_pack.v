// Packs the payload words of agg_frame_rx into beats for the core.
//
// A full beat is held until the next word or the packet's end, because the last beat carries tlast
// and the verdict on the whole payload. A packet ends in a beat with tkeep = 0 and undefined tdata
// if it has no payload or a payload that is not a whole number of beats.
//
// close (the link went down) ends the packet being received. The words still here are dropped. If
// beats of the packet have left already, a beat with tlast, tkeep = 0 and bad follows. busy is high
// while any part of a packet is here.
//
// A word waits in a register first, with its packet's header and port, so that agg_frame_rx decides
// without the state of the beats.
//
// Throughput: one word a cycle, without a bubble between packets. Latency: a beat leaves at the
// earliest two cycles after the word, or end, that pushes it out.

`default_nettype none

module agg_beat_pack #(
    parameter integer STEP = 4,  // payload bytes per word
    parameter integer BEAT_BYTES = 64,  // multiple of STEP
    parameter integer PORTS = 4
) (
    input wire clk,
    input wire rst,

    input  wire close,
    output wire busy,

    input wire [    111:0] header,  // of the packet at s_axis
    input wire [PORTS-1:0] dest,    // its port

    input  wire [8*STEP-1:0] s_axis_tdata,
    input  wire [  STEP-1:0] s_axis_tkeep,
    input  wire              s_axis_tvalid,
    output wire              s_axis_tready,
    input  wire              s_axis_tlast,   // with tkeep = 0
    input  wire              s_axis_tuser,   // with tlast: bad payload

    output wire [8*BEAT_BYTES-1:0] m_axis_tdata,
    output wire [  BEAT_BYTES-1:0] m_axis_tkeep,   // all or none
    output wire                    m_axis_tvalid,
    input  wire                    m_axis_tready,
    output wire                    m_axis_tlast,
    output wire [       PORTS-1:0] m_axis_tdest,
    output wire [           112:0] m_axis_tuser    // bit 112: bad, with tlast; below: header
);

  localparam integer WORDS = BEAT_BYTES / STEP;
  localparam integer COUNT = $clog2(WORDS + 2);  // width of a count up to WORDS, at least 2

  generate
    if (WORDS * STEP != BEAT_BYTES) begin : g_beat
      ERROR_a_beat_is_a_whole_number_of_words error ();
    end
  endgenerate

  localparam [COUNT-1:0] FULL = WORDS[COUNT-1:0];

  reg  [      8*STEP-1:0] word_reg;
  reg                     word_short_reg;
  reg                     word_last_reg;
  reg                     word_bad_reg;
  reg  [           111:0] word_header_reg;
  reg  [       PORTS-1:0] word_dest_reg;
  reg                     waits_reg;  // a word, or end, is in these registers

  reg  [8*BEAT_BYTES-1:0] gather_reg;  // words shifted in from above
  reg  [       COUNT-1:0] count_reg;  // words in gather_reg
  reg                     full_reg;  // they are a beat
  reg                     ragged_reg;  // one of them is short
  reg                     open_reg;  // beats of the packet have left, but not the last
  reg                     closing_reg;

  reg  [8*BEAT_BYTES-1:0] beat_reg;
  reg                     whole_reg;
  reg                     valid_reg;
  reg                     last_reg;
  reg                     bad_reg;
  reg  [           111:0] header_reg;
  reg  [       PORTS-1:0] dest_reg;

  // A beat takes several words to fill, and its predecessor has left by then. Only if a word is a
  // beat is a departure in this very cycle considered.
  wire                    free = !valid_reg || (WORDS == 1 && m_axis_tready);

  // A word fits in, or pushes out the full beat; an end always pushes.
  wire                    fits = !closing_reg && (free || !(full_reg || word_last_reg));
  wire                    word = waits_reg && fits && !word_last_reg;
  wire                    ends = waits_reg && fits && word_last_reg;
  wire                    push = word && full_reg;
  wire                    terminate = closing_reg && free;

  assign s_axis_tready = !waits_reg || fits;

  wire [8*BEAT_BYTES-1:0] gather_next;

  generate
    if (WORDS == 1) begin : g_one_word
      assign gather_next = word_reg;
    end else begin : g_words
      assign gather_next = {word_reg, gather_reg[8*BEAT_BYTES-1:8*STEP]};
    end
  endgenerate

  always @(posedge clk) begin
    if (s_axis_tready) begin
      word_reg        <= s_axis_tdata;
      word_short_reg  <= !(&s_axis_tkeep);
      word_last_reg   <= s_axis_tlast;
      word_bad_reg    <= s_axis_tuser;
      word_header_reg <= header;
      word_dest_reg   <= dest;
      waits_reg       <= s_axis_tvalid;
    end
    if (word) begin
      gather_reg <= gather_next;
      count_reg  <= full_reg ? {{COUNT - 1{1'b0}}, 1'b1} : count_reg + {{COUNT - 1{1'b0}}, 1'b1};
      full_reg   <= WORDS == 1 || count_reg == FULL - {{COUNT - 1{1'b0}}, 1'b1};
      ragged_reg <= word_short_reg;
    end
    if (push) open_reg <= 1'b1;
    if (ends || terminate) begin
      count_reg   <= {COUNT{1'b0}};
      full_reg    <= 1'b0;
      ragged_reg  <= 1'b0;
      open_reg    <= 1'b0;
      closing_reg <= 1'b0;
    end
    if (free || m_axis_tready) valid_reg <= push || ends || terminate;
    if (push || ends || terminate) begin
      beat_reg  <= gather_reg;
      whole_reg <= full_reg && !ragged_reg && !closing_reg;
      last_reg  <= !push;
      bad_reg   <= closing_reg || word_bad_reg;
    end
    if (push || ends) begin
      header_reg <= word_header_reg;
      dest_reg   <= word_dest_reg;
    end
    if (close) waits_reg <= 1'b0;
    if (close && !closing_reg) begin
      count_reg   <= {COUNT{1'b0}};
      full_reg    <= 1'b0;
      ragged_reg  <= 1'b0;
      open_reg    <= 1'b0;
      closing_reg <= (open_reg && !ends) || push;
    end
    if (rst) begin
      waits_reg   <= 1'b0;
      count_reg   <= {COUNT{1'b0}};
      full_reg    <= 1'b0;
      ragged_reg  <= 1'b0;
      open_reg    <= 1'b0;
      closing_reg <= 1'b0;
      valid_reg   <= 1'b0;
    end
  end

  assign busy = waits_reg || valid_reg || closing_reg || open_reg || count_reg != {COUNT{1'b0}};
  assign m_axis_tdata = beat_reg;
  assign m_axis_tkeep = {BEAT_BYTES{whole_reg}};
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast = last_reg;
  assign m_axis_tdest = dest_reg;
  assign m_axis_tuser = {bad_reg, header_reg};

endmodule

`default_nettype wire
