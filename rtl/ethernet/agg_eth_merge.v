// Merges streams of frames into one, frame by frame, in turns: after a frame of stream i, the next
// frame comes from the first stream after i that offers one.
//
// The choice takes no cycle of its own, so frames follow without an idle cycle, and a word is at the
// output one cycle after it was offered. Throughput: a word a cycle. A stream that pauses inside a
// frame holds all others up: MACs want frames without pauses, and agg_eth_transmit and
// agg_eth_answers send such. Not done here: queues.

`default_nettype none

module agg_eth_merge #(
    parameter integer STREAMS = 3,
    parameter integer BYTES   = 8   // in a word
) (
    input wire clk,
    input wire rst,

    input  wire [8*BYTES*STREAMS-1:0] s_axis_tdata,
    input  wire [  BYTES*STREAMS-1:0] s_axis_tkeep,
    input  wire [        STREAMS-1:0] s_axis_tvalid,
    output wire [        STREAMS-1:0] s_axis_tready,
    input  wire [        STREAMS-1:0] s_axis_tlast,

    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  generate
    if (STREAMS < 2) begin : g_streams
      ERROR_one_stream_needs_no_merge error ();
    end
  endgenerate

  reg [STREAMS-1:0] turn_reg;  // one-hot: the stream of the frame under way, or of the last one
  reg open_reg;  // a frame is under way
  reg valid_reg, last_reg;
  reg [8*BYTES-1:0] data_reg;
  reg [BYTES-1:0] keep_reg;

  // Of the streams that offer a frame, the first one above the one that had the turn, or the first
  wire [STREAMS-1:0] above = s_axis_tvalid & ~({turn_reg[STREAMS-2:0], 1'b0} - 1'b1);
  wire [STREAMS-1:0] choice = |above ? above & (~above + 1'b1) :
      s_axis_tvalid & (~s_axis_tvalid + 1'b1);
  wire [STREAMS-1:0] granted = open_reg ? turn_reg : choice;
  wire free = !valid_reg || m_axis_tready;
  wire moves = free && |(granted & s_axis_tvalid);

  assign s_axis_tready = granted & {STREAMS{free}};

  reg [8*BYTES-1:0] data;
  reg [BYTES-1:0] keep;
  integer i;

  always @* begin
    data = {8 * BYTES{1'b0}};
    keep = {BYTES{1'b0}};
    for (i = 0; i < STREAMS; i = i + 1) begin
      data = data | (s_axis_tdata[8*BYTES*i+:8*BYTES] & {8 * BYTES{granted[i]}});
      keep = keep | (s_axis_tkeep[BYTES*i+:BYTES] & {BYTES{granted[i]}});
    end
  end

  wire last = |(granted & s_axis_tlast);

  always @(posedge clk) begin
    if (free) begin
      valid_reg <= moves;
      last_reg  <= last;
      data_reg  <= data;
      keep_reg  <= keep;
    end
    if (moves) begin
      turn_reg <= granted;
      open_reg <= !last;
    end
    if (rst) begin
      turn_reg  <= {1'b1, {STREAMS - 1{1'b0}}};
      open_reg  <= 1'b0;
      valid_reg <= 1'b0;
    end
  end

  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg;

endmodule

`default_nettype wire
