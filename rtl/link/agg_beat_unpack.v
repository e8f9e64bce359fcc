// Cuts the core's output beats into the payload words of agg_frame_tx.
//
// A beat's first word is at m_axis in the cycle after the beat was accepted. The next beat, of any
// packet, is accepted with the last word: one word a cycle, without a bubble. A packet without
// payload (tkeep = 0) becomes one word with undefined data.
//
// drop (the link is down) discards the words here and the rest of the core's packet; busy is high
// until the packet has ended.

`default_nettype none

module agg_beat_unpack #(
    parameter integer STEP = 4,  // payload bytes per word
    parameter integer BEAT_BYTES = 64  // multiple of STEP
) (
    input wire clk,
    input wire rst,

    input  wire drop,
    output wire busy,

    input  wire [8*BEAT_BYTES-1:0] s_axis_tdata,
    input  wire [  BEAT_BYTES-1:0] s_axis_tkeep,   // all or none
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    input  wire                    s_axis_tlast,
    input  wire [           239:0] s_axis_tuser,   // header, 30 bytes, on every beat

    output wire [8*STEP-1:0] m_axis_tdata,
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast,
    output wire [     239:0] m_axis_tuser    // header, stable during a packet
);

  localparam integer WORDS = BEAT_BYTES / STEP;
  localparam integer LAST_WORD = WORDS - 1;
  localparam integer COUNT = WORDS > 4 ? $clog2(WORDS) : 2;  // width of a count below WORDS

  generate
    if (WORDS * STEP != BEAT_BYTES) begin : g_beat
      ERROR_a_beat_is_a_whole_number_of_words error ();
    end
  endgenerate

  localparam [COUNT-1:0] ONE = {{COUNT - 1{1'b0}}, 1'b1};

  reg  [8*BEAT_BYTES-1:0] beat_reg;
  reg                     valid_reg;  // a word is at m_axis
  reg                     final_reg;  // it is the beat's last word
  reg  [       COUNT-1:0] left_reg;  // words of the beat after it
  reg                     last_reg;
  reg                     open_reg;  // the core is inside a packet
  reg  [           239:0] header_reg;

  wire                    empties = !valid_reg || (final_reg && m_axis_tready);
  wire                    load = s_axis_tvalid && s_axis_tready;

  wire [8*BEAT_BYTES-1:0] beat_rest;

  generate
    if (WORDS == 1) begin : g_one_word
      assign beat_rest = beat_reg;
    end else begin : g_words
      assign beat_rest = {{8 * STEP{1'b0}}, beat_reg[8*BEAT_BYTES-1:8*STEP]};
    end
  endgenerate

  always @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) begin
      beat_reg  <= beat_rest;
      valid_reg <= !final_reg;
      final_reg <= left_reg == ONE;
      left_reg  <= left_reg - ONE;
    end
    if (load) begin
      beat_reg   <= s_axis_tdata;
      valid_reg  <= 1'b1;
      final_reg  <= WORDS == 1 || !(|s_axis_tkeep);
      left_reg   <= LAST_WORD[COUNT-1:0];
      last_reg   <= s_axis_tlast;
      open_reg   <= !s_axis_tlast;
      header_reg <= s_axis_tuser;
    end
    if (drop) valid_reg <= 1'b0;
    if (rst) begin
      valid_reg <= 1'b0;
      open_reg  <= 1'b0;
    end
  end

  assign s_axis_tready = drop || empties;
  assign m_axis_tdata  = beat_reg[8*STEP-1:0];
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg && final_reg;
  assign m_axis_tuser  = header_reg;
  assign busy          = open_reg || s_axis_tvalid;

endmodule

`default_nettype wire
