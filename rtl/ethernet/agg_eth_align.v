// Shifts a frame's payload to the lowest byte of its words.
//
// The payload begins at byte SHIFT of a beat, so word k is the end of beat k and the beginning of
// the next one. s_word marks the beats whose word has payload; last and keep are those of the word.
//
// Latency: a word is at m_axis one cycle after its beat if SHIFT is 0. Otherwise it is there one
// cycle after the next beat of its frame, or two after the frame's last beat. Throughput: a beat a
// cycle.
//
// Not done here: clearing the bytes of the last word behind the payload. m_axis has no back-pressure.

`default_nettype none

module agg_eth_align #(
    parameter integer BYTES = 64,
    parameter integer SHIFT = 56   // below BYTES
) (
    input wire clk,
    input wire rst,

    input wire               s_valid,
    input wire               s_last,       // the frame's last beat
    input wire [8*BYTES-1:0] s_data,
    input wire               s_word,
    input wire               s_word_last,
    input wire [  BYTES-1:0] s_word_keep,

    output wire               m_axis_tvalid,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tlast
);

  reg valid_reg;
  reg last_reg;
  reg [8*BYTES-1:0] data_reg;
  reg [BYTES-1:0] keep_reg;

  generate
    if (SHIFT < 0 || SHIFT >= BYTES) begin : g_bad
      ERROR_the_payload_begins_in_a_beat error ();
    end
    if (SHIFT == 0) begin : g_straight
      wire unused = s_last;
      always @(posedge clk) begin
        valid_reg <= s_valid && s_word && !rst;
        last_reg  <= s_word_last;
        keep_reg  <= s_word_keep;
        data_reg  <= s_data;
      end
    end else begin : g_turned
      reg held_reg;  // a word waits for the next beat
      reg held_end_reg;  // of which there is none
      reg held_last_reg;
      reg [BYTES-1:0] held_keep_reg;
      reg [8*(BYTES-SHIFT)-1:0] held_data_reg;

      always @(posedge clk) begin
        if (s_valid) begin
          held_reg      <= s_word;
          held_end_reg  <= s_last;
          held_last_reg <= s_word_last;
          held_keep_reg <= s_word_keep;
          held_data_reg <= s_data[8*BYTES-1:8*SHIFT];
        end else if (held_end_reg) held_reg <= 1'b0;
        valid_reg <= held_reg && (held_end_reg || s_valid);
        last_reg  <= held_last_reg;
        keep_reg  <= held_keep_reg;
        data_reg  <= {s_data[8*SHIFT-1:0], held_data_reg};
        if (rst) begin
          held_reg  <= 1'b0;
          valid_reg <= 1'b0;
        end
      end
    end
  endgenerate

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tlast  = last_reg;

endmodule

`default_nettype wire
