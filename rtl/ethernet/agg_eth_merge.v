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

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg took, waited, free_was;
  reg [9*BYTES:0] word, stood;
  reg amid;  // a frame was begun and has not ended
  reg [STREAMS-1:0] source;  // of the last word
  reg offers_was;  // the stream whose turn it was offered a word, or any at a frame's end

  // For any stream: frames of others that began while it waited to begin one
  (* anyconst *) reg [2:0] watched;
  reg [2:0] passed;
  wire [STREAMS-1:0] taken = s_axis_tvalid & s_axis_tready;
  wire takes = |taken;
  integer n;

  // Places from the stream after the watched one, in turns, to the one that had the last turn, and 1
  reg [3:0] from_turn;
  always @* begin
    from_turn = 0;
    for (n = 0; n < STREAMS; n = n + 1)
    if (source[n]) from_turn = n > watched ? n - watched : STREAMS + n - watched;
  end

  always @(posedge clk) begin
    running_was <= was_reset && !rst;
    took <= !rst && takes;
    for (n = 0; n < STREAMS; n = n + 1)
    if (taken[n])
      word <= {s_axis_tlast[n], s_axis_tkeep[BYTES*n+:BYTES], s_axis_tdata[8*BYTES*n+:8*BYTES]};
    if (takes) begin
      source <= taken;
      amid   <= !(|(taken & s_axis_tlast));
    end
    waited <= !rst && m_axis_tvalid && !m_axis_tready;
    stood <= {m_axis_tlast, m_axis_tkeep, m_axis_tdata};
    free_was <= !m_axis_tvalid || m_axis_tready;
    offers_was <= amid ? |(source & s_axis_tvalid) : |s_axis_tvalid;
    if (taken[watched] || !s_axis_tvalid[watched] || (amid && source[watched])) passed <= 0;
    else if (takes && !amid) passed <= passed + 1;
    if (rst) begin
      was_reset <= 1'b1;
      amid <= 1'b0;
      source <= {1'b1, {STREAMS - 1{1'b0}}};
      passed <= 0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      assume (watched < STREAMS);
      // One word a cycle, and only of the frame under way
      assert ((taken & (taken - 1'b1)) == 0);
      if (amid) assert ((taken & ~source) == 0);
      assert (open_reg == amid && turn_reg == source);
      assert (source != 0 && (source & (source - 1'b1)) == 0);
      // Every stream but one that is under way is passed by each other stream once at most.
      assert (passed < STREAMS);
      if (passed != 0) assert (!source[watched] && passed <= from_turn);
      cover (passed == STREAMS - 1 && taken[watched]);
      cover (amid && took && waited == 0 && takes && stood != word);
    end
    if (running_was) begin
      // What is taken is at the output one cycle later, and stays until it is taken there.
      assert (m_axis_tvalid == (took || waited));
      if (took) assert ({m_axis_tlast, m_axis_tkeep, m_axis_tdata} == word);
      if (waited) assert (!took && {m_axis_tlast, m_axis_tkeep, m_axis_tdata} == stood);
      // No idle cycle while a word is offered
      if (free_was && offers_was) assert (took);
    end
  end
`endif

endmodule

`default_nettype wire
