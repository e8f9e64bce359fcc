// Shifts a packet's payload to the lowest byte of its words, behind a header of 54, 58, 70 or 74
// bytes.
//
// The payload begins within a beat, so a word is the end of a beat and the beginning of the next one.
// s_word marks the beats in which a word begins. A word that its frame's end cuts is forgotten: a
// packet has an ICRC behind its payload.
//
// Latency: a word is at m_axis one cycle after the beat that has its last byte. Throughput: a beat a
// cycle.
//
// Not done here: words that are not full; see agg_eth_align. m_axis has no back-pressure.

`default_nettype none

module agg_roce_align #(
    parameter integer BYTES = 64  // in a beat: 1, 8 or 64
) (
    input wire clk,
    input wire rst,

    input wire s_valid,
    input wire s_last,  // the frame's last beat
    input wire [8*BYTES-1:0] s_data,
    input wire s_word,
    input wire s_word_last,
    input wire [1:0] s_code,  // header: 54, 58, 70 or 74 bytes; constant while s_word is high

    output wire               m_axis_tvalid,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire               m_axis_tlast
);

  reg valid_reg;
  reg last_reg;
  reg [8*BYTES-1:0] data_reg;

  generate
    if (BYTES == 1) begin : g_straight
      wire unused = &{1'b0, s_last, s_code};
      always @(posedge clk) begin
        valid_reg <= s_valid && s_word && !rst;
        last_reg  <= s_word_last;
        data_reg  <= s_data;
      end
    end else if (BYTES == 8 || BYTES == 64) begin : g_turned
      reg held_reg;  // a word waits for the next beat
      reg held_last_reg;
      reg [1:0] held_code_reg;
      reg [8*BYTES-1:0] held_data_reg;
      reg [8*BYTES-1:0] word;
      wire unused = &{1'b0, held_data_reg};  // no word begins in a beat's first two bytes

      always @* begin
        case (held_code_reg)
          2'd0: word = {s_data[8*(54%BYTES)-1:0], held_data_reg[8*BYTES-1:8*(54%BYTES)]};
          2'd1: word = {s_data[8*(58%BYTES)-1:0], held_data_reg[8*BYTES-1:8*(58%BYTES)]};
          2'd2: word = {s_data[8*(70%BYTES)-1:0], held_data_reg[8*BYTES-1:8*(70%BYTES)]};
          default: word = {s_data[8*(74%BYTES)-1:0], held_data_reg[8*BYTES-1:8*(74%BYTES)]};
        endcase
      end

      always @(posedge clk) begin
        if (s_valid) begin
          held_reg      <= s_word && !s_last;
          held_last_reg <= s_word_last;
          held_code_reg <= s_code;
          held_data_reg <= s_data;
        end
        valid_reg <= s_valid && held_reg;
        last_reg  <= held_last_reg;
        data_reg  <= word;
        if (rst) begin
          held_reg  <= 1'b0;
          valid_reg <= 1'b0;
        end
      end
    end else begin : g_bytes
      ERROR_a_beat_has_1_8_or_64_bytes error ();
    end
  endgenerate

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tdata  = data_reg;
  assign m_axis_tlast  = last_reg;

endmodule

`default_nettype wire
