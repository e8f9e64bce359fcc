// Takes mask and receivers off the parent's packets, between agg_frame_queue and agg_member_check.
//
// Words of a packet to an upward UDP port begin behind the first 14 bytes of its header: a result's
// first 16 bytes are mask and receivers, and a status has 8 bytes of mask. They are removed here. What
// follows are the words of a payload, as data has it; a packet without more has one beat without
// payload. All other packets pass, and descriptors pass beside this module.
//
// Words of 1 or 8 bytes are left out. Words of 64 bytes are rotated: a word leaves with the next one,
// and what remains of the last one leaves behind it, unless it is brief.
//
// Latency: none. A packet takes a cycle for each of its words. Several words of 64 bytes take one more
// if the last is not brief. Not done here: the check of sizes, and the mask, which is in the
// descriptor (agg_datagram_accept).

`default_nettype none

module agg_up_unwrap #(
    parameter integer BYTES    = 8,  // in a word: 1, 8 or 64
    parameter integer JOB_BITS = 1
) (
    input wire clk,
    input wire rst,

    input  wire                 s_axis_tvalid,
    output wire                 s_axis_tready,
    input  wire [  8*BYTES-1:0] s_axis_tdata,
    input  wire                 s_axis_tpayload,  // the beat has a word
    input  wire                 s_axis_tlast,
    input  wire [65+JOB_BITS:0] s_axis_tup,       // second descriptor

    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire               m_axis_tpayload,
    output wire               m_axis_tlast
);

  localparam integer OFF = 16;  // bytes of mask and receivers

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_frame_has_words_of_1_8_or_64_bytes error ();
    end
  endgenerate

  wire up = s_axis_tup[1+JOB_BITS];

  generate
    if (BYTES <= OFF) begin : g_narrow
      localparam integer WORDS = OFF / BYTES;
      reg [4:0] off_reg;  // words that were removed
      wire off = up && s_axis_tpayload && off_reg != WORDS[4:0];

      always @(posedge clk) begin
        if (s_axis_tvalid && s_axis_tready) begin
          off_reg <= s_axis_tlast ? 5'd0 : off ? off_reg + 5'd1 : off_reg;
        end
        if (rst) off_reg <= 5'd0;
      end

      assign s_axis_tready   = m_axis_tready || (off && !s_axis_tlast);
      assign m_axis_tvalid   = s_axis_tvalid && !(off && !s_axis_tlast);
      assign m_axis_tdata    = s_axis_tdata;
      assign m_axis_tpayload = s_axis_tpayload && !off;
      assign m_axis_tlast    = s_axis_tlast;
    end else begin : g_wide
      localparam integer REST = 8 * (BYTES - OFF);  // bits of a word behind them
      reg open_reg;  // rest_reg has the rest of the word before
      reg [REST-1:0] rest_reg;
      wire brief = s_axis_tup[0];
      wire rotates = up && s_axis_tpayload;
      wire begins = rotates && !open_reg && !s_axis_tlast;
      // The last word waits at the input, and its rest leaves as that of a packet of one word.
      wire tails = rotates && open_reg && s_axis_tlast && !brief;
      wire [REST-1:0] rest = s_axis_tdata[8*OFF+:REST];

      always @(posedge clk) begin
        if (s_axis_tvalid && (m_axis_tready || begins)) begin
          open_reg <= rotates && !s_axis_tlast;
          rest_reg <= rest;
        end
        if (rst) open_reg <= 1'b0;
      end

      assign s_axis_tready = begins || (m_axis_tready && !tails);
      assign m_axis_tvalid = s_axis_tvalid && !begins;
      assign m_axis_tdata = !rotates ? s_axis_tdata : !open_reg ? {{8 * OFF{1'b0}}, rest} :
          {s_axis_tdata[8*OFF-1:0], rest_reg};
      assign m_axis_tpayload = s_axis_tpayload && !(rotates && !open_reg && brief);
      assign m_axis_tlast = s_axis_tlast && !tails;
    end
  endgenerate

endmodule

`default_nettype wire
