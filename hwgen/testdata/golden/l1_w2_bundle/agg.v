// Made by: hwgen -lanes 1 -workers 2 -format fp32 -result fp32 -sum tree -chunk 4 -window 4 -jobs 1
//      -shell stream -link 8 -prefix left -bundle

/* verilator lint_off DECLFILENAME */  // a bundle holds many modules

// Grants one port's request each cycle, round robin, and registers the granted request.
//
// While hold is high, no request is granted. Latency: a request granted in cycle 0 is at the
// output in cycle 1, for that cycle only. There is no backpressure: the next stage takes it at
// once.

`default_nettype none

module left_arbiter #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,   // width of a port number
    parameter integer WIDTH     = 102  // width of a request, in bits
) (
    input wire clk,
    input wire rst,
    input wire hold,

    input  wire [      PORTS-1:0] req_valid,
    output wire [      PORTS-1:0] req_grant,
    input  wire [PORTS*WIDTH-1:0] req_data,   // port 0 in the lowest bits

    output wire                 out_valid,
    output wire [    PORTS-1:0] out_ports,  // the port, one hot
    output wire [PORT_BITS-1:0] out_port,
    output wire [    WIDTH-1:0] out_data
);

  reg [PORTS-1:0] above_reg;  // ports above the one granted last
  reg valid_reg;
  reg [PORTS-1:0] ports_reg;
  reg [PORT_BITS-1:0] port_reg, port_next;
  reg [WIDTH-1:0] data_reg, data_next;

  wire [PORTS-1:0] ahead = req_valid & above_reg;
  wire [PORTS-1:0] among = |ahead ? ahead : req_valid;
  wire [PORTS-1:0] lowest = among & (~among + 1'b1);

  assign req_grant = hold ? {PORTS{1'b0}} : lowest;

  integer p;

  always @* begin
    port_next = {PORT_BITS{1'b0}};
    data_next = {WIDTH{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (lowest[p]) begin
        port_next = p[PORT_BITS-1:0];
        data_next = req_data[p*WIDTH+:WIDTH];
      end
    end
  end

  always @(posedge clk) begin
    valid_reg <= |req_grant;
    ports_reg <= lowest;
    port_reg  <= port_next;
    data_reg  <= data_next;
    if (|req_grant) above_reg <= ~(lowest | (lowest - 1'b1));
    if (rst) begin
      valid_reg <= 1'b0;
      above_reg <= {PORTS{1'b0}};
    end
  end

  assign out_valid = valid_reg;
  assign out_ports = ports_reg;
  assign out_port  = port_reg;
  assign out_data  = data_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any port: the grants to other ports since its request, and the ports that can precede it.
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg [PORTS-1:0] granted_was;
  reg [WIDTH-1:0] data_was;
  reg [31:0] others;
  reg [31:0] in_front;
  wire others_turn = |req_grant && req_valid[watched] && !req_grant[watched];
  wire [PORTS-1:0] below = ~above_reg;
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    granted_was <= rst ? {PORTS{1'b0}} : req_grant;
    if (req_grant[watched]) data_was <= req_data[watched*WIDTH+:WIDTH];
    others <= rst || !req_valid[watched] || req_grant[watched] ? 0 : others + others_turn;
  end

  always @* begin
    in_front = 0;
    for (n = 0; n < PORTS; n = n + 1) begin
      if (n != watched &&
          (above_reg[watched] ? n < watched && above_reg[n] : n < watched || above_reg[n]))
        in_front = in_front + 1;
    end

    assume (watched < PORTS);  // any existing port
    assert ((req_grant & (req_grant - 1'b1)) == 0);
    assert ((req_grant & ~req_valid) == 0);
    assert (|req_grant == (|req_valid && !hold));
    if (was_reset) begin
      // A request is granted within PORTS grants.
      assert (others < PORTS && others + in_front < PORTS);
      assert (!others_turn || others + 1 < PORTS);
      assert ((below & (below + 1'b1)) == 0);  // the ports up to the one granted last

      assert (out_valid == |granted_was);
      if (out_valid) assert (out_ports == granted_was && granted_was[out_port]);
      if (granted_was[watched]) assert (out_port == watched && out_data == data_was);

      cover (others == PORTS - 1 && req_grant[watched]);
      cover (out_valid && hold && |req_valid);
    end
  end
`endif

endmodule

`default_nettype wire

// Packs the payload words of left_frame_rx into beats for the core.
//
// A full beat is held until the next word or the packet's end, because the last beat carries tlast
// and the verdict on the whole payload. A packet ends in a beat with tkeep = 0 and undefined tdata
// if it has no payload or a payload that is not a whole number of beats.
//
// close (the link went down) ends the packet being received. The words still here are dropped. If
// beats of the packet have left already, a beat with tlast, tkeep = 0 and bad follows. busy is high
// while any part of a packet is here.
//
// Throughput: one word a cycle, without a bubble between packets. Latency: a beat leaves at the
// earliest in the cycle after the word, or end, that pushes it out.

`default_nettype none

module left_beat_pack #(
    parameter integer STEP = 4,  // payload bytes per word
    parameter integer BEAT_BYTES = 64  // multiple of STEP
) (
    input wire clk,
    input wire rst,

    input  wire close,
    output wire busy,

    input wire [111:0] header,  // of the packet at s_axis

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

  reg  [8*BEAT_BYTES-1:0] gather_reg;  // words shifted in from above
  reg  [       COUNT-1:0] count_reg;  // words in gather_reg
  reg                     ragged_reg;  // one of them is short
  reg                     open_reg;  // beats of the packet have left, but not the last
  reg                     closing_reg;

  reg  [8*BEAT_BYTES-1:0] beat_reg;
  reg                     whole_reg;
  reg                     valid_reg;
  reg                     last_reg;
  reg                     bad_reg;
  reg  [           111:0] header_reg;

  wire                    full = count_reg == FULL;
  // A beat takes several words to fill, and its predecessor has left by then. Only if a word is a
  // beat is a departure in this very cycle considered.
  wire                    free = !valid_reg || (WORDS == 1 && m_axis_tready);

  // A word fits in, or pushes out the full beat; an end always pushes.
  assign s_axis_tready = !closing_reg && (free || !(full || s_axis_tlast));

  wire                    word = s_axis_tvalid && s_axis_tready && !s_axis_tlast;
  wire                    ends = s_axis_tvalid && s_axis_tready && s_axis_tlast;
  wire                    push = word && full;
  wire                    terminate = closing_reg && free;

  wire [8*BEAT_BYTES-1:0] gather_next;

  generate
    if (WORDS == 1) begin : g_one_word
      assign gather_next = s_axis_tdata;
    end else begin : g_words
      assign gather_next = {s_axis_tdata, gather_reg[8*BEAT_BYTES-1:8*STEP]};
    end
  endgenerate

  always @(posedge clk) begin
    if (word) begin
      gather_reg <= gather_next;
      count_reg  <= full ? {{COUNT - 1{1'b0}}, 1'b1} : count_reg + {{COUNT - 1{1'b0}}, 1'b1};
      ragged_reg <= !(&s_axis_tkeep);
    end
    if (push) open_reg <= 1'b1;
    if (ends || terminate) begin
      count_reg   <= {COUNT{1'b0}};
      ragged_reg  <= 1'b0;
      open_reg    <= 1'b0;
      closing_reg <= 1'b0;
    end
    if (free || m_axis_tready) valid_reg <= push || ends || terminate;
    if (push || ends || terminate) begin
      beat_reg   <= gather_reg;
      whole_reg  <= full && !ragged_reg && !closing_reg;
      last_reg   <= !push;
      bad_reg    <= closing_reg || s_axis_tuser;
      header_reg <= header;
    end
    if (close && !closing_reg) begin
      count_reg   <= {COUNT{1'b0}};
      ragged_reg  <= 1'b0;
      open_reg    <= 1'b0;
      closing_reg <= (open_reg && !ends) || push;
    end
    if (rst) begin
      count_reg   <= {COUNT{1'b0}};
      ragged_reg  <= 1'b0;
      open_reg    <= 1'b0;
      closing_reg <= 1'b0;
      valid_reg   <= 1'b0;
    end
  end

  assign busy          = valid_reg || closing_reg || open_reg || count_reg != {COUNT{1'b0}};
  assign m_axis_tdata  = beat_reg;
  assign m_axis_tkeep  = {BEAT_BYTES{whole_reg}};
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg;
  assign m_axis_tuser  = {bad_reg, header_reg};

endmodule

`default_nettype wire

// Cuts the core's output beats into the payload words of left_frame_tx.
//
// A beat's first word is at m_axis in the cycle after the beat was accepted. The next beat, of any
// packet, is accepted with the last word: one word a cycle, without a bubble. A packet without
// payload (tkeep = 0) becomes one word with undefined data.
//
// drop (the link is down) discards the words here and the rest of the core's packet; busy is high
// until the packet has ended.

`default_nettype none

module left_beat_unpack #(
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
  localparam integer COUNT = $clog2(WORDS + 2);  // width of a count up to WORDS, at least 2

  generate
    if (WORDS * STEP != BEAT_BYTES) begin : g_beat
      ERROR_a_beat_is_a_whole_number_of_words error ();
    end
  endgenerate

  localparam [COUNT-1:0] NONE = {COUNT{1'b0}};
  localparam [COUNT-1:0] ONE = {{COUNT - 1{1'b0}}, 1'b1};

  reg  [8*BEAT_BYTES-1:0] beat_reg;
  reg  [       COUNT-1:0] left_reg;  // words of the beat still to send
  reg                     last_reg;
  reg                     open_reg;  // the core is inside a packet
  reg  [           239:0] header_reg;

  wire                    empties = left_reg == NONE || (left_reg == ONE && m_axis_tready);
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
      left_reg <= left_reg - ONE;
      beat_reg <= beat_rest;
    end
    if (load) begin
      beat_reg   <= s_axis_tdata;
      left_reg   <= |s_axis_tkeep ? WORDS[COUNT-1:0] : ONE;
      last_reg   <= s_axis_tlast;
      open_reg   <= !s_axis_tlast;
      header_reg <= s_axis_tuser;
    end
    if (drop) left_reg <= NONE;
    if (rst) begin
      left_reg <= NONE;
      open_reg <= 1'b0;
    end
  end

  assign s_axis_tready = drop || empties;
  assign m_axis_tdata  = beat_reg[8*STEP-1:0];
  assign m_axis_tvalid = left_reg != NONE;
  assign m_axis_tlast  = last_reg && left_reg == ONE;
  assign m_axis_tuser  = header_reg;
  assign busy          = open_reg || s_axis_tvalid;

endmodule

`default_nettype wire

// Byte FIFO between a link and a frame parser, with rewind.
//
// Accepts words of up to LINK_BYTES bytes. The parser sees the next WINDOW bytes and takes any
// number of them each cycle. Taken bytes are kept until a commit. A rewind returns to the byte
// after the first one kept, so that the parser can search a bad frame for another that begins
// inside it.
//
// Latency: a byte is in the window in the cycle after it was accepted.
//
// Not done here: frames. The memory has asynchronous reads (distributed RAM).

`default_nettype none

module left_byte_fifo #(
    parameter integer LINK_BYTES = 4,  // 1, 2, 4 or 8
    parameter integer WINDOW = 4,  // bytes in the window: 4 or 8, at least LINK_BYTES
    parameter integer DEPTH = 64  // capacity in bytes: a power of two
) (
    input wire clk,
    input wire rst,  // also empties the FIFO; nothing is accepted meanwhile

    input  wire [8*LINK_BYTES-1:0] s_axis_tdata,
    input  wire [  LINK_BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0, at least one byte
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,

    output wire [8*WINDOW-1:0] window,  // the next byte in bits 7:0
    output wire [3:0] count,  // valid bytes in the window, 0..WINDOW
    input wire [3:0] take,  // bytes to take, 0..count
    input wire commit,  // frees the bytes taken so far, including this cycle's
    input wire rewind  // instead of take and commit: return to the byte after the first one kept
);

  generate
    if (LINK_BYTES != 1 && LINK_BYTES != 2 && LINK_BYTES != 4 && LINK_BYTES != 8) begin : g_link
      ERROR_a_link_has_1_2_4_or_8_bytes error ();
    end
    if ((WINDOW != 4 && WINDOW != 8) || WINDOW < LINK_BYTES) begin : g_window
      ERROR_a_window_has_4_or_8_bytes_and_at_least_those_of_the_link error ();
    end
    if (DEPTH < 4 * WINDOW || (DEPTH & (DEPTH - 1)) != 0) begin : g_depth
      ERROR_the_depth_is_a_power_of_two_of_at_least_4_windows error ();
    end
  endgenerate

  localparam integer PTR = $clog2(DEPTH);
  localparam integer LANE = $clog2(WINDOW);  // pointer bits that select the bank
  localparam integer ROW = PTR - LANE;  // pointer bits that select the row

  // Pointers are modulo twice the depth, to distinguish full from empty.
  reg  [PTR:0] write_reg;
  reg  [PTR:0] read_reg;
  reg  [PTR:0] base_reg;  // the first byte kept; everything before it is committed

  wire [PTR:0] used = write_reg - base_reg;
  wire [PTR:0] ahead = write_reg - read_reg;

  localparam [PTR:0] ROOM = DEPTH[PTR:0] - LINK_BYTES[PTR:0];

  assign s_axis_tready = used <= ROOM && !rst;
  assign count = ahead < WINDOW[PTR:0] ? ahead[3:0] : WINDOW[3:0];

  reg     [3:0] arriving;  // bytes in the input word
  integer       i;

  always @* begin
    arriving = 4'd0;
    for (i = 0; i < LINK_BYTES; i = i + 1) arriving = arriving + {3'd0, s_axis_tkeep[i]};
  end

  wire         write = s_axis_tvalid && s_axis_tready;
  wire [PTR:0] read_next = read_reg + {{PTR - 3{1'b0}}, take};
  wire [PTR:0] base_next = base_reg + {{PTR{1'b0}}, 1'b1};

  always @(posedge clk) begin
    if (write) write_reg <= write_reg + {{PTR - 3{1'b0}}, arriving};
    if (rewind) begin
      read_reg <= base_next;
      base_reg <= base_next;
    end else begin
      read_reg <= read_next;
      if (commit) base_reg <= read_next;
    end
    if (rst) begin
      write_reg <= {PTR + 1{1'b0}};
      read_reg  <= {PTR + 1{1'b0}};
      base_reg  <= {PTR + 1{1'b0}};
    end
  end

  // One bank for each byte of the window. The input word is rotated so that its first byte is at
  // the bank of write_reg; the banks' outputs are rotated back by read_reg. Banks below the
  // addressed one use the next row.
  wire [    LANE-1:0] write_lane = write_reg[LANE-1:0];
  wire [    LANE-1:0] read_lane = read_reg[LANE-1:0];
  wire [    LANE-1:0] write_lane_left = {LANE{1'b0}} - write_lane;
  wire [    LANE-1:0] read_lane_left = {LANE{1'b0}} - read_lane;
  wire [     ROW-1:0] write_row = write_reg[PTR-1:LANE];
  wire [     ROW-1:0] read_row = read_reg[PTR-1:LANE];
  wire [  WINDOW-1:0] write_same_row = {WINDOW{1'b1}} << write_lane;
  wire [  WINDOW-1:0] read_same_row = {WINDOW{1'b1}} << read_lane;

  wire [8*WINDOW-1:0] word;
  wire [8*WINDOW-1:0] word_turned = word << {write_lane, 3'd0} | word >> {write_lane_left, 3'd0};
  wire [8*WINDOW-1:0] banks;

  assign word[8*LINK_BYTES-1:0] = s_axis_tdata;
  assign window = banks >> {read_lane, 3'd0} | banks << {read_lane_left, 3'd0};

  genvar k;
  generate
    if (WINDOW > LINK_BYTES) begin : g_narrow_link
      assign word[8*WINDOW-1:8*LINK_BYTES] = {8 * (WINDOW - LINK_BYTES) {1'b0}};
    end
    for (k = 0; k < WINDOW; k = k + 1) begin : g_bank
      localparam [LANE-1:0] SELF = k;
      reg [7:0] bytes[0:DEPTH/WINDOW-1];
      wire [LANE-1:0] place = SELF - write_lane;  // position of this bank's byte in the word
      wire [ROW-1:0] to_row = write_row + {{ROW - 1{1'b0}}, !write_same_row[k]};
      wire [ROW-1:0] from_row = read_row + {{ROW - 1{1'b0}}, !read_same_row[k]};

      always @(posedge clk) begin
        if (write && {{4 - LANE{1'b0}}, place} < arriving) bytes[to_row] <= word_turned[8*k+:8];
      end

      assign banks[8*k+:8] = bytes[from_row];
    end
  endgenerate

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th byte accepted is the n-th byte in the window, until the parser commits it. Numbers are
  // modulo twice the depth; watched is any of them.
  (* anyconst *) reg [PTR:0] watched;
  reg was_reset = 1'b0;
  reg [PTR:0] came, taken, kept;  // bytes: kept is the first that a rewind can return to
  reg [7:0] put;
  wire [PTR:0] place = watched - came;  // of the watched byte in the arriving word
  wire [PTR:0] bytes_kept = came - kept;
  wire [PTR:0] bytes_taken = taken - kept;  // and not committed
  wire [PTR:0] bytes_left = came - taken;
  wire watched_kept = watched - kept < bytes_kept;
  integer b;

  always @(posedge clk) begin
    if (write) came <= came + arriving;
    if (write && place < arriving) put <= s_axis_tdata[8*place+:8];
    taken <= rewind ? kept + 1 : taken + take;
    kept  <= rewind ? kept + 1 : commit ? taken + take : kept;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      taken <= 0;
      kept <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // The link sends words of one or more contiguous bytes from bit 0. The parser takes only
      // valid bytes, and rewinds only if it took some since its last commit.
      `PROMISED(!s_axis_tvalid || (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0));
      `PROMISED(take <= count);
      `PROMISED(!rewind || taken != kept);

      assert (write_reg == came && read_reg == taken && base_reg == kept);
      assert (bytes_kept <= DEPTH && bytes_taken <= bytes_kept);
      assert (s_axis_tready == (!rst && bytes_kept + LINK_BYTES <= DEPTH));
      assert (count == (bytes_left < WINDOW ? bytes_left : WINDOW));
      for (b = 0; b < WINDOW; b = b + 1) begin
        if (b < count && taken + b[PTR:0] == watched) assert (window[8*b+:8] == put);
      end

      cover (rewind && bytes_kept == DEPTH && bytes_taken > WINDOW);
      cover (count == WINDOW && kept[PTR]);
    end
  end

  generate
    for (k = 0; k < WINDOW; k = k + 1) begin : g_watched
      always @* begin
        if (was_reset && watched_kept && watched[LANE-1:0] == k)
          assert (g_bank[k].bytes[watched[PTR-1:LANE]] == put);
      end
    end
  endgenerate
`endif

endmodule

`default_nettype wire

// Packs steps of bytes into link words, without gaps between them.
//
// Accepts up to STEP bytes a cycle and sends words of LINK_BYTES. A partial word waits for more
// bytes, or for s_step_idle, which flushes it. Throughput: one word a cycle. Latency: at least two
// cycles. A reset also withdraws the word at m_axis.

`default_nettype none

module left_byte_pack #(
    parameter integer STEP = 4,  // maximum bytes per step: 4 or 8, at least LINK_BYTES
    parameter integer LINK_BYTES = 4  // 1, 2, 4 or 8
) (
    input wire clk,
    input wire rst,

    input wire [8*STEP-1:0] s_step_data,  // first byte in bits 7:0; bytes beyond s_step_bytes are 0
    input wire [3:0] s_step_bytes,
    input wire s_step_valid,
    output wire s_step_ready,
    input wire s_step_idle,  // flush: no step is pending, and none comes soon

    output wire [8*LINK_BYTES-1:0] m_axis_tdata,
    output wire [  LINK_BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0, at least one byte
    output wire                    m_axis_tvalid,
    input  wire                    m_axis_tready
);

  generate
    if (STEP != 4 && STEP != 8) begin : g_step
      ERROR_a_step_has_4_or_8_bytes error ();
    end
    if (LINK_BYTES != 1 && LINK_BYTES != 2 && LINK_BYTES != 4 && LINK_BYTES != 8) begin : g_link
      ERROR_a_link_has_1_2_4_or_8_bytes error ();
    end
    if (LINK_BYTES > STEP) begin : g_narrow
      ERROR_a_step_has_at_least_the_bytes_of_the_link error ();
    end
  endgenerate

  // Room for three steps: with two inside, one more fits, and one leaves meanwhile.
  localparam integer HOLD = 8 * 3 * STEP;

  reg [HOLD-1:0] hold_reg;  // pending bytes, with zeros above them
  reg [4:0] count_reg;  // number of pending bytes
  reg [8*LINK_BYTES-1:0] word_reg;
  reg [LINK_BYTES-1:0] keep_reg;
  reg valid_reg;

  wire free = !valid_reg || m_axis_tready;
  wire full = count_reg >= LINK_BYTES[4:0];
  wire leave = free && (full || (s_step_idle && count_reg != 5'd0));
  wire enter = s_step_valid && s_step_ready;

  wire [HOLD-1:0] hold_left = leave ? hold_reg >> 8 * LINK_BYTES : hold_reg;
  wire [4:0] count_left = !leave ? count_reg : full ? count_reg - LINK_BYTES[4:0] : 5'd0;
  wire [HOLD-1:0] entering = {{HOLD - 8 * STEP{1'b0}}, s_step_data} << {count_left, 3'd0};

  assign s_step_ready  = count_reg <= 2 * STEP[4:0];
  assign m_axis_tdata  = word_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tvalid = valid_reg;

  always @(posedge clk) begin
    hold_reg  <= enter ? hold_left | entering : hold_left;
    count_reg <= enter ? count_left + {1'b0, s_step_bytes} : count_left;
    if (free) begin
      valid_reg <= leave;
      word_reg  <= hold_reg[8*LINK_BYTES-1:0];
      keep_reg  <= full ? {LINK_BYTES{1'b1}} : ~({LINK_BYTES{1'b1}} << count_reg);
    end
    if (rst) begin
      hold_reg  <= {HOLD{1'b0}};
      count_reg <= 5'd0;
      valid_reg <= 1'b0;
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th byte accepted is the n-th byte sent. Numbers are modulo 64, more than can be inside;
  // watched is any of them.
  (* anyconst *) reg [5:0] watched;
  reg was_reset = 1'b0;
  reg [5:0] came, left;
  reg [7:0] put;
  reg [3:0] out_bytes;  // in the word at the output
  reg waited, idle_was, free_was, ready_was;
  reg was_running = 1'b0;  // no reset in the last cycle
  reg [9*LINK_BYTES-1:0] stood;
  reg [5:0] quiet;  // cycles without input in which every word was taken
  wire [5:0] place = watched - came;  // of the watched byte in the input step
  wire [5:0] ahead = watched - left;  // bytes to send before it
  integer b;

  always @(posedge clk) begin
    if (enter) came <= came + s_step_bytes;
    if (enter && place < s_step_bytes) put <= s_step_data[8*place+:8];
    if (m_axis_tvalid && m_axis_tready) left <= left + out_bytes;
    waited   <= !rst && m_axis_tvalid && !m_axis_tready;
    stood    <= {m_axis_tkeep, m_axis_tdata};
    idle_was  <= s_step_idle;
    free_was  <= !m_axis_tvalid || m_axis_tready;
    was_running <= was_reset && !rst;
    ready_was <= count_reg >= LINK_BYTES || (s_step_idle && count_reg != 0);
    quiet    <= !s_step_idle || !m_axis_tready ? 0 : quiet < QUIET ? quiet + 1 : quiet;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      left <= 0;
      quiet <= 0;
    end
  end

  localparam integer QUIET = 3 * STEP / LINK_BYTES + 1;  // after this many, all bytes have left

  always @* begin
    out_bytes = 0;
    for (b = 0; b < LINK_BYTES; b = b + 1) out_bytes = out_bytes + (valid_reg && keep_reg[b]);

    if (was_reset) begin
      // left_frame_tx and left_beat_unpack: unused bytes are 0, and no step comes while idle.
      `PROMISED(s_step_bytes <= STEP && (s_step_data >> 8 * s_step_bytes) == 0);
      `PROMISED(!(s_step_idle && s_step_valid));

      assert (came - left == count_reg + out_bytes);
      assert (count_reg <= 3 * STEP);
      assert ((hold_reg >> 8 * count_reg) == 0);
      for (b = 0; b < LINK_BYTES; b = b + 1)
      if (b < out_bytes && ahead == b) assert (m_axis_tdata[8*b+:8] == put);
      if (ahead >= out_bytes && ahead < out_bytes + count_reg)
        assert (hold_reg[8*(ahead-out_bytes)+:8] == put);

      if (m_axis_tvalid) assert (m_axis_tkeep[0] && (m_axis_tkeep & (m_axis_tkeep + 1'b1)) == 0);
      if (waited) assert (m_axis_tvalid && {m_axis_tkeep, m_axis_tdata} == stood);
      assert (s_step_ready == (count_reg + STEP <= 3 * STEP));
      assert (quiet == 0 || count_reg == 0 || count_reg + LINK_BYTES * (quiet - 1) <= 3 * STEP);
      if (quiet == QUIET) assert (count_reg == 0);
      // A word leaves as soon as it is full, and a partial one only when idle.
      if (was_running && free_was) assert (m_axis_tvalid == ready_was);
      if (was_running && free_was && m_axis_tvalid && !idle_was) assert (&m_axis_tkeep);

      cover (count_reg == 3 * STEP);
      cover (m_axis_tvalid && !(&m_axis_tkeep));
      cover (quiet == QUIET && came == 20);
    end
  end
`endif

endmodule

`default_nettype wire

// Unpacks a granted request and makes the checks that need no slot, in the order of the
// specification: version, kind, job, epoch, rank, eviction; then, for data, format, length and
// CRC.
//
// left_ingress documents the request's layout. code names the first check that fails; refused is
// low if all pass. belongs: the rank is the port's own, so a refusal can be answered. index is the
// job's number, truncated for a job that this card does not have. slot is the VID's slot. In the
// cycle after act_next, index and slot are act_job and act_slot.
//
// Latency: one cycle. The job's configuration is read in cycle 0, job_valid in cycle 1: the job
// may end in between. Not done here: the slot rules (left_slots).

`default_nettype none

module left_commit #(
    parameter integer       PORTS     = 4,
    parameter integer       PORT_BITS = 2,
    parameter integer       JOBS      = 1,
    parameter integer       JOB_BITS  = 1,
    parameter integer       SLOT_BITS = 4,
    parameter         [7:0] FORMAT    = 8'd1  // data format of contributions, as in the header
) (
    input wire clk,
    input wire rst,

    input wire                 valid,
    input wire [    PORTS-1:0] ports,   // the request's port, one-hot
    input wire [PORT_BITS-1:0] port,
    input wire [        101:0] request,

    // left_deadlines acts upon a slot in the next cycle; no request is valid in this one
    input wire                 act_next,
    input wire [SLOT_BITS-1:0] act_slot,
    input wire [ JOB_BITS-1:0] act_job,

    // Jobs, job 0 in the lowest bits
    input wire [          JOBS-1:0] job_valid,     // set up
    input wire [          JOBS-1:0] job_complete,  // the last one ended: all had finished
    input wire [       16*JOBS-1:0] job_epoch,     // of the most recent job
    input wire [       16*JOBS-1:0] job_chunk,     // chunk length, in elements
    input wire [SLOT_BITS*JOBS-1:0] slot_mask,     // 2 * window - 1
    input wire [SLOT_BITS*JOBS-1:0] slot_base,     // the first slot
    input wire [    PORTS*JOBS-1:0] member,        // ports of the most recent job
    input wire [    PORTS*JOBS-1:0] evicted,       // ports that were evicted from it
    input wire [  8*PORTS*JOBS-1:0] rank_of_port,

    output wire                 refused,
    output wire [          7:0] code,
    output wire                 belongs,
    output wire                 data,        // accepted: data, ask or finish
    output wire                 ask,
    output wire                 finish,
    output wire                 writable,    // of data: the payload is in the slot memory
    output wire                 nonfinite,   // of data: the payload has a NaN or an infinity
    output wire [          1:0] ecn,
    output wire [          7:0] job,
    output wire [ JOB_BITS-1:0] index,
    output wire [SLOT_BITS-1:0] slot,
    output wire [         15:0] epoch,
    output wire [          7:0] rank,
    output wire [         31:0] vid,
    output wire [    PORTS-1:0] from_ports,  // the request's port, one-hot
    output wire [PORT_BITS-1:0] from_port
);

  localparam [3:0] VERSION = 4'd1;  // of the protocol
  localparam [3:0] KIND_DATA = 4'd1;
  localparam [3:0] KIND_ASK = 4'd2;
  localparam [3:0] KIND_FINISH = 4'd3;
  localparam [7:0] CODE_DONE = 8'd0;
  localparam [7:0] CODE_BAD_VERSION = 8'd16;
  localparam [7:0] CODE_BAD_KIND = 8'd17;
  localparam [7:0] CODE_BAD_JOB = 8'd18;
  localparam [7:0] CODE_BAD_EPOCH = 8'd19;
  localparam [7:0] CODE_BAD_RANK = 8'd20;
  localparam [7:0] CODE_BAD_FORMAT = 8'd21;
  localparam [7:0] CODE_BAD_LENGTH = 8'd22;
  localparam [7:0] CODE_PAYLOAD_CRC = 8'd27;
  localparam [7:0] CODE_EVICTED = 8'd28;

  // -- Checks -------------------------------------------------------------------------------------

  wire [3:0] version = request[3:0];
  wire [3:0] kind = request[7:4];
  wire [7:0] number = request[17:10];  // of the job
  wire [7:0] format = request[25:18];
  wire [15:0] its_epoch = request[41:26];
  wire [7:0] its_rank = request[49:42];
  wire [15:0] length = request[97:82];
  wire whole = request[98];
  wire bad = request[99];

  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : number[JOB_BITS-1:0];

  wire is_data = kind == KIND_DATA;
  wire is_ask = kind == KIND_ASK;
  wire is_finish = kind == KIND_FINISH;

  wire exists = number >> (JOBS == 1 ? 0 : JOB_BITS) == 8'd0;
  wire [15:0] epoch_now = job_epoch[16*its_job+:16];
  wire [8*PORTS-1:0] ranks = rank_of_port[8*PORTS*its_job+:8*PORTS];
  wire [PORTS-1:0] members = member[PORTS*its_job+:PORTS];
  wire [PORTS-1:0] gone = evicted[PORTS*its_job+:PORTS];
  wire [SLOT_BITS-1:0] mask = slot_mask[SLOT_BITS*its_job+:SLOT_BITS];
  wire [SLOT_BITS-1:0] base = slot_base[SLOT_BITS*its_job+:SLOT_BITS];

  wire same_epoch = its_epoch == epoch_now;
  wire same_rank = members[port] && its_rank == ranks[8*port+:8];

  reg [7:0] header_code;  // first failed check that needs no job state
  reg [7:0] job_code;  // first failed check that needs it

  always @* begin
    if (version != VERSION) header_code = CODE_BAD_VERSION;
    else if (!is_data && !is_ask && !is_finish) header_code = CODE_BAD_KIND;
    else if (!exists) header_code = CODE_BAD_JOB;
    else header_code = CODE_DONE;

    if (!same_epoch) job_code = CODE_BAD_EPOCH;
    else if (!same_rank) job_code = CODE_BAD_RANK;
    else if (gone[port]) job_code = CODE_EVICTED;
    else if (!is_data) job_code = CODE_DONE;
    else if (format != FORMAT) job_code = CODE_BAD_FORMAT;
    else if (length != job_chunk[16*its_job+:16] || !whole) job_code = CODE_BAD_LENGTH;
    else if (bad) job_code = CODE_PAYLOAD_CRC;
    else job_code = CODE_DONE;
  end

  // -- Second cycle -------------------------------------------------------------------------------

  reg valid_reg;
  reg [101:0] request_reg;
  reg [PORTS-1:0] ports_reg;
  reg [PORT_BITS-1:0] port_reg;
  reg belongs_reg;
  reg [JOB_BITS-1:0] index_reg;
  reg [SLOT_BITS-1:0] slot_reg;
  reg fails_before_reg;
  reg [7:0] header_code_reg, job_code_reg;
  reg data_reg, ask_reg, finish_reg;  // accepted, provided that the job is set up
  reg confirms_reg;  // a finish of the current epoch; accepted also after it completed the job

  always @(posedge clk) begin
    valid_reg <= valid && !rst;
    request_reg <= request;
    ports_reg <= ports;
    port_reg <= port;
    belongs_reg <= same_rank;
    index_reg <= act_next ? act_job : its_job;
    slot_reg <= act_next ? act_slot : base | (request[50+:SLOT_BITS] & mask);
    fails_before_reg <= header_code != CODE_DONE;
    header_code_reg <= header_code;
    job_code_reg <= job_code;
    data_reg <= valid && !rst && header_code == CODE_DONE && job_code == CODE_DONE && is_data;
    ask_reg <= valid && !rst && header_code == CODE_DONE && job_code == CODE_DONE && is_ask;
    finish_reg <= valid && !rst && header_code == CODE_DONE && job_code == CODE_DONE && is_finish;
    confirms_reg <= is_finish && same_epoch;
  end

  wire stands = job_valid[index_reg];
  wire stood = stands || (job_complete[index_reg] && confirms_reg);

  // The header, the format and the length are checked above.
  wire unused = &{1'b0, request_reg[99:82], request_reg[25:18], request_reg[7:0]};

  assign writable   = request_reg[101];
  assign nonfinite  = request_reg[100];
  assign vid        = request_reg[81:50];
  assign rank       = request_reg[49:42];
  assign epoch      = request_reg[41:26];
  assign job        = request_reg[17:10];
  assign ecn        = request_reg[9:8];
  assign belongs    = belongs_reg;
  assign index      = index_reg;
  assign slot       = slot_reg;
  assign from_ports = ports_reg;
  assign from_port  = port_reg;

  assign data       = data_reg && stands;
  assign ask        = ask_reg && stands;
  assign finish     = finish_reg && stood;
  assign refused    = valid_reg && !data && !ask && !finish;
  assign code       = fails_before_reg ? header_code_reg : stood ? job_code_reg : CODE_BAD_JOB;

endmodule

`default_nettype wire

// The card's counters: 32 bits each, wrapping, in the order of the specification's table.
//
// Events are pulses: one count for each cycle in which an event is high. refused_code selects the
// counter of a refusal. A shell refuses some packets before they reach the core; those share the
// counters. Latency: an event in cycle 0 is in the value from cycle 2 on.

`default_nettype none

module left_counters #(
    parameter integer COUNT_BITS = 5  // width of nonfinite_out and overflow
) (
    input wire clk,
    input wire rst,
    input wire clear,

    // From the core
    input wire                  stored,
    input wire                  stored_ce,
    input wire                  stored_nonfinite,
    input wire                  asked,
    input wire                  finished,
    input wire                  chunk,
    input wire                  beat,
    input wire                  result,
    input wire                  replay,
    input wire                  status,
    input wire [COUNT_BITS-1:0] nonfinite_out,     // elements in this cycle
    input wire [COUNT_BITS-1:0] overflow,          // elements in this cycle
    input wire                  overdue,
    input wire                  partial,
    input wire                  evicts,
    input wire                  undecided,
    input wire                  stalled,
    input wire                  link_down,         // a level; its rising edge counts
    input wire                  refused,
    input wire [           7:0] refused_code,

    // From the shell
    input wire shell_frames,
    input wire shell_hunted,
    input wire shell_header_crc,
    input wire shell_bad_version,
    input wire shell_bad_kind,
    input wire shell_bad_length,

    input  wire [ 5:0] index,
    output wire [31:0] value
);

  localparam [7:0] CODE_BAD_VERSION = 8'd16;
  localparam [7:0] CODE_BAD_KIND = 8'd17;
  localparam [7:0] CODE_BAD_JOB = 8'd18;
  localparam [7:0] CODE_BAD_EPOCH = 8'd19;
  localparam [7:0] CODE_BAD_RANK = 8'd20;
  localparam [7:0] CODE_BAD_FORMAT = 8'd21;
  localparam [7:0] CODE_BAD_LENGTH = 8'd22;
  localparam [7:0] CODE_LATE = 8'd23;
  localparam [7:0] CODE_EARLY = 8'd24;
  localparam [7:0] CODE_NOT_READY = 8'd25;
  localparam [7:0] CODE_DUPLICATE = 8'd26;
  localparam [7:0] CODE_PAYLOAD_CRC = 8'd27;
  localparam [7:0] CODE_EVICTED = 8'd28;
  localparam integer COUNT_FRAMES = 0;
  localparam integer COUNT_STORED = 1;
  localparam integer COUNT_ASKS = 2;
  localparam integer COUNT_FINISHES = 3;
  localparam integer COUNT_CHUNKS = 4;
  localparam integer COUNT_BEATS = 5;
  localparam integer COUNT_RESULTS = 6;
  localparam integer COUNT_REPLAYS = 7;
  localparam integer COUNT_STATUSES = 8;
  localparam integer COUNT_NONFINITE_IN = 9;
  localparam integer COUNT_NONFINITE_OUT = 10;
  localparam integer COUNT_OVERFLOW = 11;
  localparam integer COUNT_UNDECIDED = 12;
  localparam integer COUNT_STALLED = 13;
  localparam integer COUNT_CE = 14;
  localparam integer COUNT_OVERDUE = 15;
  localparam integer COUNT_PARTIAL = 16;
  localparam integer COUNT_EVICTIONS = 17;
  localparam integer COUNT_HUNTED = 18;
  localparam integer COUNT_HEADER_CRC = 19;
  localparam integer COUNT_LINK_DOWN = 20;
  localparam integer COUNT_BAD_VERSION = 21;
  localparam integer COUNT_BAD_KIND = 22;
  localparam integer COUNT_BAD_JOB = 23;
  localparam integer COUNT_BAD_EPOCH = 24;
  localparam integer COUNT_BAD_RANK = 25;
  localparam integer COUNT_BAD_FORMAT = 26;
  localparam integer COUNT_BAD_LENGTH = 27;
  localparam integer COUNT_LATE = 28;
  localparam integer COUNT_EARLY = 29;
  localparam integer COUNT_NOT_READY = 30;
  localparam integer COUNT_DUPLICATE = 31;
  localparam integer COUNT_PAYLOAD_CRC = 32;
  localparam integer COUNT_EVICTED = 33;
  localparam integer COUNTERS = 34;  // how many there are

  reg [32*COUNTERS-1:0] counts_reg;
  reg [COUNTERS-1:0] events_reg, events_next;
  reg [COUNTERS-1:0] shell_reg, shell_next;
  reg [COUNT_BITS-1:0] nonfinite_reg, overflow_reg;
  reg link_down_reg;

  wire [31:0] nonfinite_count =
      counts_reg[32*COUNT_NONFINITE_OUT+:32] + {{32 - COUNT_BITS{1'b0}}, nonfinite_reg};
  wire [31:0] overflow_count =
      counts_reg[32*COUNT_OVERFLOW+:32] + {{32 - COUNT_BITS{1'b0}}, overflow_reg};

  // Packets that a falling link cuts off are dropped, not refused.
  wire refusal = refused && !link_down;

  always @* begin
    events_next                     = {COUNTERS{1'b0}};
    events_next[COUNT_STORED]       = stored;
    events_next[COUNT_ASKS]         = asked;
    events_next[COUNT_FINISHES]     = finished;
    events_next[COUNT_CHUNKS]       = chunk;
    events_next[COUNT_BEATS]        = beat;
    events_next[COUNT_RESULTS]      = result;
    events_next[COUNT_REPLAYS]      = replay;
    events_next[COUNT_STATUSES]     = status;
    events_next[COUNT_NONFINITE_IN] = stored_nonfinite;
    events_next[COUNT_UNDECIDED]    = undecided;
    events_next[COUNT_STALLED]      = stalled;
    events_next[COUNT_CE]           = stored_ce;
    events_next[COUNT_OVERDUE]      = overdue;
    events_next[COUNT_PARTIAL]      = partial;
    events_next[COUNT_EVICTIONS]    = evicts;
    events_next[COUNT_LINK_DOWN]    = link_down && !link_down_reg;
    events_next[COUNT_BAD_VERSION]  = refusal && refused_code == CODE_BAD_VERSION;
    events_next[COUNT_BAD_KIND]     = refusal && refused_code == CODE_BAD_KIND;
    events_next[COUNT_BAD_JOB]      = refusal && refused_code == CODE_BAD_JOB;
    events_next[COUNT_BAD_EPOCH]    = refusal && refused_code == CODE_BAD_EPOCH;
    events_next[COUNT_BAD_RANK]     = refusal && refused_code == CODE_BAD_RANK;
    events_next[COUNT_BAD_FORMAT]   = refusal && refused_code == CODE_BAD_FORMAT;
    events_next[COUNT_BAD_LENGTH]   = refusal && refused_code == CODE_BAD_LENGTH;
    events_next[COUNT_LATE]         = refusal && refused_code == CODE_LATE;
    events_next[COUNT_EARLY]        = refusal && refused_code == CODE_EARLY;
    events_next[COUNT_NOT_READY]    = refusal && refused_code == CODE_NOT_READY;
    events_next[COUNT_DUPLICATE]    = refusal && refused_code == CODE_DUPLICATE;
    events_next[COUNT_PAYLOAD_CRC]  = refusal && refused_code == CODE_PAYLOAD_CRC;
    events_next[COUNT_EVICTED]      = refusal && refused_code == CODE_EVICTED;

    shell_next                      = {COUNTERS{1'b0}};
    shell_next[COUNT_FRAMES]        = shell_frames;
    shell_next[COUNT_HUNTED]        = shell_hunted;
    shell_next[COUNT_HEADER_CRC]    = shell_header_crc;
    shell_next[COUNT_BAD_VERSION]   = shell_bad_version;
    shell_next[COUNT_BAD_KIND]      = shell_bad_kind;
    shell_next[COUNT_BAD_LENGTH]    = shell_bad_length;
  end

  integer i;

  always @(posedge clk) begin
    events_reg    <= events_next;
    shell_reg     <= shell_next;
    nonfinite_reg <= nonfinite_out;
    overflow_reg  <= overflow;
    link_down_reg <= link_down;
    for (i = 0; i < COUNTERS; i = i + 1) begin
      counts_reg[32*i+:32] <= counts_reg[32*i+:32] + {31'd0, events_reg[i]} + {31'd0, shell_reg[i]};
    end
    counts_reg[32*COUNT_NONFINITE_OUT+:32] <= nonfinite_count;
    counts_reg[32*COUNT_OVERFLOW+:32]      <= overflow_count;
    if (rst || clear) begin
      events_reg    <= {COUNTERS{1'b0}};
      shell_reg     <= {COUNTERS{1'b0}};
      nonfinite_reg <= {COUNT_BITS{1'b0}};
      overflow_reg  <= {COUNT_BITS{1'b0}};
      counts_reg    <= {32 * COUNTERS{1'b0}};
    end
    if (rst) link_down_reg <= 1'b1;
  end

  assign value = counts_reg[32*index+:32];

endmodule

`default_nettype wire

// CRC-16/CCITT-FALSE over the first count bytes of data (polynomial 0x1021, most significant bit
// first, no reflection, no final XOR). Byte 0, the lowest, comes first.
//
// Combinational; the caller holds the state, which starts from CRC_INIT or another CRC's value.

`default_nettype none

module left_crc16 #(
    parameter integer BYTES = 4  // maximum bytes per step
) (
    input  wire [       15:0] crc_in,
    input  wire [8*BYTES-1:0] data,
    input  wire [        3:0] count,   // 0..BYTES; the other bytes are ignored
    output reg  [       15:0] crc_out
);

  generate
    if (BYTES < 1 || BYTES > 8) begin : g_bytes
      ERROR_a_step_has_1_to_8_bytes error ();
    end
  endgenerate

  // One byte: eight shifts by the polynomial x^16 + x^12 + x^5 + 1, unrolled.
  function automatic [15:0] step;
    input [15:0] crc;
    input [7:0] value;
    reg [7:0] feedback;
    begin
      feedback = crc[15:8] ^ value;
      feedback = feedback ^ {4'd0, feedback[7:4]};
      step = {crc[7:0], 8'd0} ^ {feedback[3:0], 12'd0} ^ {3'd0, feedback, 5'd0} ^ {8'd0, feedback};
    end
  endfunction

  integer i;

  always @* begin
    crc_out = crc_in;
    for (i = 0; i < BYTES; i = i + 1) begin
      if (i[3:0] < count) crc_out = step(crc_out, data[8*i+:8]);
    end
  end

endmodule

`default_nettype wire

// Measures how long slots wait and finds those that exceed their job's deadline.
//
// A slot's timer starts when the slot turns over and stops when it closes. It starts again when
// the closed slot first refuses to turn over, and stops when it turns over. One slot a cycle is
// examined, and judged in the next. For an overdue slot, pause first blocks grants for two cycles,
// until no packet is being judged. If the slot is still overdue then, act is high for one cycle.
// act_next is high in the cycle before; act_slot and act_job name the slot and its job from then
// on. act restarts the timer. A deadline of 0 means none.
//
// Latency: an overdue slot is acted upon within as many cycles as there are slots, plus four for
// each slot found overdue meanwhile, itself included. Not done here: the action itself
// (left_slots).

`default_nettype none

module left_deadlines #(
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input wire [          JOBS-1:0] flush,        // jobs that are ending, job 0 in the lowest bits
    input wire [(1<<SLOT_BITS)-1:0] flush_slots,  // slots of these jobs
    input wire [       32*JOBS-1:0] job_deadline, // in cycles, job 0 in the lowest bits

    // Events of left_slots, for one slot
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire                 turn_over,
    input wire                 close,      // the slot is queued for summation
    input wire                 stall,      // data for the next chunk cannot turn it over

    output wire                 pause,
    output wire                 act_next,
    output wire                 act,
    output wire [SLOT_BITS-1:0] act_slot,
    output wire [ JOB_BITS-1:0] act_job
);

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [SLOTS-1:0] ONE_SLOT = 1;

  localparam [1:0] STATE_LOOK = 2'd0;
  localparam [1:0] STATE_PAUSE = 2'd1;
  localparam [1:0] STATE_WAIT = 2'd2;  // requests granted earlier are judged
  localparam [1:0] STATE_ACT = 2'd3;

  reg [31:0] since[0:SLOTS-1];  // start time of the slot's timer
  reg [JOB_BITS-1:0] owner[0:SLOTS-1];
  reg [SLOTS-1:0] waits_reg;  // the timer runs
  reg [31:0] now_reg;
  reg [1:0] state_reg;
  reg [SLOT_BITS-1:0] at_reg;  // the slot being examined

  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : owner[at_reg];
  wire [31:0] deadline = job_deadline[32*its_job+:32];

  // Result of the examination, one cycle later
  reg [SLOT_BITS-1:0] seen_reg;
  reg [JOB_BITS-1:0] seen_job_reg;
  reg looked_reg;  // valid: state_reg was STATE_LOOK
  reg runs_reg;  // the timer runs, the job has a deadline and is not ending
  reg [31:0] deadline_reg;
  reg [31:0] waited_reg;
  reg changed_reg;  // but the timer stopped or started in that same cycle
  wire overdue = runs_reg && waited_reg >= deadline_reg;

  wire starts = turn_over || (stall && !waits_reg[slot]);
  wire writes = starts || act;

  wire [SLOTS-1:0] started = starts ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] closed = close ? ONE_SLOT << slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    if (writes) since[act?at_reg : slot] <= now_reg;
    if (starts) owner[slot] <= job;
    waits_reg    <= (waits_reg | started) & ~closed & ~flush_slots;

    seen_reg     <= at_reg;
    seen_job_reg <= its_job;
    runs_reg     <= waits_reg[at_reg] && deadline != 32'd0 && !flush[its_job];
    deadline_reg <= deadline;
    waited_reg   <= now_reg + 32'd1 - since[at_reg];
    changed_reg  <= (starts || close) && slot == at_reg;
    looked_reg   <= state_reg == STATE_LOOK;

    case (state_reg)
      STATE_LOOK: begin
        at_reg <= at_reg + 1'b1;
        if (looked_reg && overdue) begin
          state_reg  <= STATE_PAUSE;
          at_reg     <= seen_reg;
          looked_reg <= 1'b0;
        end
      end
      STATE_PAUSE: state_reg <= STATE_WAIT;
      STATE_WAIT:  state_reg <= STATE_ACT;
      default: begin
        state_reg <= STATE_LOOK;
        at_reg    <= at_reg + 1'b1;
      end
    endcase

    if (rst) begin
      waits_reg  <= {SLOTS{1'b0}};
      now_reg    <= 32'd0;
      state_reg  <= STATE_LOOK;
      at_reg     <= {SLOT_BITS{1'b0}};
      looked_reg <= 1'b0;
    end
  end

  assign pause    = state_reg == STATE_PAUSE || state_reg == STATE_WAIT;
  assign act_next = state_reg == STATE_WAIT;
  assign act      = state_reg == STATE_ACT && overdue && !changed_reg && !flush[seen_job_reg];
  assign act_slot = at_reg;
  assign act_job  = seen_job_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: its job, and how long its timer has run.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg runs;
  reg [JOB_BITS-1:0] its;
  reg [31:0] ran;
  reg pause_was, pauses_was;  // pause in the last cycle; in both of the last two cycles
  reg [31:0] allowed_was;
  reg runs_was;
  reg [SLOT_BITS+2:0] late;  // cycles since it became overdue
  wire mine = slot == watched;
  wire [31:0] allowed = job_deadline[32*its+:32];
  wire is_overdue = runs && allowed != 0 && ran >= allowed;
  wire acts = act && act_slot == watched;
  wire found = state_reg == STATE_LOOK && looked_reg && overdue;
  // Slots examined before this one; cycles left for those, five each, and for this one
  wire [SLOT_BITS-1:0] ahead = watched - (found ? seen_reg : at_reg);
  wire [2:0] phase = found ? 3 : state_reg == STATE_LOOK ? 4 : STATE_ACT - state_reg;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    pause_was <= !rst && pause;
    pauses_was <= !rst && pause && pause_was;
    runs_was <= !rst && runs;
    allowed_was <= allowed;
    ran <= ran + 1;
    if (turn_over && mine) begin
      runs <= 1'b1;
      its  <= job;
      ran  <= 1;
    end else if (stall && mine && !runs) begin
      runs <= 1'b1;
      its  <= job;
      ran  <= 1;
    end
    if (acts) ran <= 1;
    if (close && mine || flush_slots[watched]) runs <= 1'b0;
    late <= is_overdue && !acts && !(turn_over && mine) ? late + 1 : 0;
    if (rst) begin
      runs <= 1'b0;
      late <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // left_arbiter: while paused it grants nothing, so no packet is judged after two cycles.
      `PROMISED(!pauses_was || !(turn_over || stall));
      // left_jobs: flush_slots has the slots of an ending job, and none of its packets is judged.
      `PROMISED(!runs || flush[its] == flush_slots[watched]);
      `PROMISED(!((turn_over || stall || close) && flush_slots[slot]));
      `PROMISED(!(turn_over || stall) || !flush[job]);
      `PROMISED(!act || !close || slot == act_slot);
      // A job's deadline does not change while the job uses slots.
      `PROMISED(!(runs && runs_was) || allowed == allowed_was || flush_slots[watched]);
      // No timer reaches 2^31 cycles.
      assume (!runs || ran < 32'h80000000);
    end
    if (was_reset && !rst) begin
      assert (runs == waits_reg[watched]);
      if (runs) assert (owner[watched] == its && now_reg - since[watched] == ran);
      assert (pause == (state_reg == STATE_PAUSE || state_reg == STATE_WAIT));
      assert (act_next == (pause && pause_was));
      if (state_reg == STATE_WAIT) assert (pause_was);
      if (state_reg == STATE_ACT) assert (pauses_was);
      if (state_reg != STATE_LOOK) assert (!looked_reg);
      if (state_reg == STATE_WAIT || state_reg == STATE_ACT) assert (seen_reg == at_reg);
      if (looked_reg) assert (at_reg == seen_reg + 1'b1 && state_reg == STATE_LOOK);
      if ((looked_reg || state_reg != STATE_LOOK) && runs && !flush_slots[watched] &&
          seen_reg == watched && !changed_reg) begin
        assert (runs_reg == (allowed != 0) && seen_job_reg == its);
        if (runs_reg) assert (waited_reg == ran && deadline_reg == allowed);
      end

      // A slot that is acted upon is overdue, and no packet is judged in that cycle.
      if (act) assert (pauses_was);
      if (acts) assert (is_overdue && act_job == its && !flush_slots[watched]);
      if (state_reg == STATE_ACT && at_reg == watched && late != 0 && is_overdue &&
          !flush_slots[watched])
        assert (acts);

      // The bound: five cycles for each slot.
      if (runs && is_overdue && !flush_slots[watched])
        assert (late + 5 * ahead + phase <= 5 * SLOTS || late == 0);

      cover (acts && its == 1);
      cover (acts && late > 2);
    end
  end
`endif

endmodule

`default_nettype wire

// Delays a word by a fixed number of cycles: q is d from CYCLES cycles ago. CYCLES = 0 is a
// wire.
//
// Not done here: there is no reset and no valid bit; left_tag_delay has both.

`default_nettype none

module left_delay #(
    parameter integer WIDTH  = 32,
    parameter integer CYCLES = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] q
);

  genvar i;
  generate
    if (WIDTH < 1) begin : g_width
      ERROR_width_must_be_at_least_1_bit error ();
    end
    if (CYCLES < 0) begin : g_cycles
      ERROR_cycles_must_not_be_negative error ();
    end

    if (CYCLES == 0) begin : g_wire
      wire unused = clk;
      assign q = d;
    end else begin : g_registers
      // One register a cycle, not one long one: simulators copy words faster than they shift bits.
      for (i = 0; i < CYCLES; i = i + 1) begin : g_cycle
        reg [WIDTH-1:0] word_reg;
        if (i == 0) begin : g_first
          always @(posedge clk) word_reg <= d;
        end else begin : g_next
          always @(posedge clk) word_reg <= g_cycle[i-1].word_reg;
        end
      end
      assign q = g_cycle[CYCLES-1].word_reg;
    end
  endgenerate

endmodule

`default_nettype wire

// Sends results from the cache, and statuses, as packets of one AXI4-Stream.
//
// Packets follow one another without a bubble. A status has priority, but not twice in a
// row while a result waits. A result can be sent while it is still being written: each
// beat waits for rd_written. tuser holds the header from a packet's first beat to its
// last.
//
// Latency: a packet taken in cycle 0 is at the output in cycle 1. A packet under way is
// completed even if its job ends. Not done here: destinations and order (left_owed,
// left_turns, left_status), header contents (left_labels).

`default_nettype none

module left_egress #(
    parameter integer       PORTS      = 4,
    parameter integer       PORT_BITS  = 2,
    parameter integer       SLOT_BITS  = 4,
    parameter integer       INDEX_BITS = 4,    // width of a beat's number in its chunk
    parameter integer       KEEP_BITS  = 64,   // bytes per beat
    parameter         [7:0] FORMAT     = 8'd1  // data format of results, as in the header
) (
    input wire clk,
    input wire rst,

    // The next result and its header fields
    input  wire                  result_valid,
    input  wire [ SLOT_BITS-1:0] result_slot,
    input  wire [INDEX_BITS-1:0] result_last,       // number of the last beat
    input  wire [     PORTS-1:0] result_ports,      // destination ports
    input  wire [           7:0] result_job,
    input  wire [          15:0] result_epoch,
    input  wire [          15:0] result_chunk,      // length, in elements
    input  wire [          31:0] result_vid,
    input  wire [           1:0] result_ecn,
    input  wire                  result_nonfinite,
    input  wire                  result_partial,    // a member's contribution is missing
    input  wire [     PORTS-1:0] result_mask,       // ranks that contributed
    input  wire [     PORTS-1:0] result_receivers,  // ranks at result_ports
    input  wire                  result_replay,
    output wire                  result_take,

    // The next status
    input  wire                 status_valid,
    input  wire [PORT_BITS-1:0] status_port,
    input  wire [          7:0] status_job,
    input  wire [         15:0] status_epoch,
    input  wire [          7:0] status_rank,
    input  wire [          7:0] status_code,
    input  wire [         31:0] status_vid,
    input  wire [    PORTS-1:0] status_mask,
    output wire                 status_take,

    // The cache: rd_written is for rd_slot, rd_beat; its read data is the stream's tdata
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,
    input  wire                  rd_written,
    output wire                  sending,     // the entry of rd_slot must not change

    // The stream, without tdata
    output wire [KEEP_BITS-1:0] m_axis_tkeep,
    output wire                 m_axis_tvalid,
    input  wire                 m_axis_tready,
    output wire                 m_axis_tlast,
    output wire [        239:0] m_axis_tuser,   // header with mask and receivers
    output wire [    PORTS-1:0] m_axis_tdest    // destination ports
);

  localparam [3:0] VERSION = 4'd1;  // of the protocol
  localparam [3:0] KIND_RESULT = 4'd8;
  localparam [3:0] KIND_REPLAY = 4'd9;
  localparam [3:0] KIND_STATUS = 4'd10;
  localparam [7:0] FLAG_PARTIAL = 8'd4;
  localparam [7:0] FLAG_NONFINITE = 8'd8;

  localparam [PORTS-1:0] ONE = 1;

  reg sending_reg;  // the result has beats left to read
  reg [SLOT_BITS-1:0] slot_reg;
  reg [INDEX_BITS-1:0] beat_reg;  // next beat to read
  reg [INDEX_BITS-1:0] last_reg;
  reg valid_reg, payload_reg, last_beat_reg;
  reg after_status_reg;
  reg [239:0] header_reg;
  reg [PORTS-1:0] dest_reg;

  wire free = !valid_reg || m_axis_tready;
  wire begins = free && !sending_reg;

  assign status_take = begins && status_valid && !(result_valid && after_status_reg);
  assign result_take = begins && result_valid && !status_take;

  assign sending = sending_reg;
  assign rd_slot = sending_reg ? slot_reg : result_slot;
  assign rd_beat = sending_reg ? beat_reg : {INDEX_BITS{1'b0}};
  assign rd_en = free && (sending_reg || result_take) && rd_written;

  wire rd_last = rd_beat == (sending_reg ? last_reg : result_last);

  // -- Header -------------------------------------------------------------------------------------

  wire [63:0] contributors = {{64 - PORTS{1'b0}}, result_mask};
  wire [63:0] receivers = {{64 - PORTS{1'b0}}, result_receivers};
  wire [63:0] missing = {{64 - PORTS{1'b0}}, status_mask};
  wire [7:0] flags = {6'd0, result_ecn} | (result_nonfinite ? FLAG_NONFINITE : 8'd0) |
      (result_partial ? FLAG_PARTIAL : 8'd0);
  wire [7:0] result_kind = {result_replay ? KIND_REPLAY : KIND_RESULT, VERSION};
  wire [7:0] status_kind = {KIND_STATUS, VERSION};

  // receivers, mask, length, VID, code, rank, epoch, format, job, flags, kind and version
  wire [239:0] result_header = {
    receivers,
    contributors,
    result_chunk,
    result_vid,
    16'd0,
    result_epoch,
    FORMAT,
    result_job,
    flags,
    result_kind
  };
  wire [239:0] status_header = {
    64'd0,
    missing,
    16'd0,
    status_vid,
    status_code,
    status_rank,
    status_epoch,
    8'd0,
    status_job,
    8'd0,
    status_kind
  };

  // -----------------------------------------------------------------------------------------------

  always @(posedge clk) begin
    if (result_take) begin
      header_reg       <= result_header;
      dest_reg         <= result_ports;
      slot_reg         <= result_slot;
      last_reg         <= result_last;
      after_status_reg <= 1'b0;
    end
    if (status_take) begin
      header_reg       <= status_header;
      dest_reg         <= ONE << status_port;
      after_status_reg <= 1'b1;
    end

    if (rd_en) beat_reg <= rd_beat + 1'b1;
    else if (result_take) beat_reg <= {INDEX_BITS{1'b0}};
    if (result_take || sending_reg) sending_reg <= !(rd_en && rd_last);

    if (free) begin
      valid_reg     <= rd_en || status_take;
      payload_reg   <= rd_en;
      last_beat_reg <= status_take || rd_last;
    end

    if (rst) begin
      sending_reg      <= 1'b0;
      valid_reg        <= 1'b0;
      dest_reg         <= {PORTS{1'b0}};
      after_status_reg <= 1'b0;
    end
  end

  assign m_axis_tkeep  = {KEEP_BITS{payload_reg}};
  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_beat_reg;
  assign m_axis_tuser  = header_reg;
  assign m_axis_tdest  = dest_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The packet being sent, and the reads.
  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg reading;  // the result has beats left to read
  reg [SLOT_BITS-1:0] sends;
  reg [INDEX_BITS:0] next, final_beat;
  reg open;  // the first beat is at the output or has left, and the last has not left
  reg waited, read_was, last_was, status_was, result_was, replay_was, nonfinite_was, partial_was;
  reg [KEEP_BITS+240+PORTS:0] stood;
  reg [239:0] head_was;
  reg [PORTS-1:0] dest_was, receivers_was, mask_was;
  reg [ 7:0] job_was;
  reg [ 1:0] ecn_was;
  reg [31:0] vid_was;
  reg [15:0] chunk_was, epoch_was;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    if (result_take) begin
      reading <= 1'b1;
      sends <= result_slot;
      next <= 0;
      final_beat <= result_last;
    end
    if (rd_en) begin
      next <= (result_take ? 0 : next) + 1;
      if ((result_take ? 0 : next) == (result_take ? result_last : final_beat)) reading <= 1'b0;
    end
    waited <= m_axis_tvalid && !m_axis_tready;
    stood <= {m_axis_tkeep, m_axis_tlast, m_axis_tuser, m_axis_tdest};
    head_was <= m_axis_tuser;
    dest_was <= status_take ? 1 << status_port : result_take ? result_ports : m_axis_tdest;
    open <= result_take || status_take ||
        (open && !(m_axis_tvalid && m_axis_tready && m_axis_tlast));
    read_was <= rd_en;
    last_was <= (result_take ? 0 : next) == (result_take ? result_last : final_beat);
    status_was <= status_take;
    result_was <= result_take;
    vid_was <= result_vid;
    ecn_was <= result_ecn;
    nonfinite_was <= result_nonfinite;
    partial_was <= result_partial;
    job_was <= result_job;
    replay_was <= result_replay;
    receivers_was <= result_receivers;
    mask_was <= result_mask;
    chunk_was <= result_chunk;
    epoch_was <= result_epoch;
    if (rst) begin
      reading <= 1'b0;
      waited  <= 1'b0;
      open    <= 1'b0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // One packet at a time; a status has priority, but not twice while a result waits.
      assert (!(status_take && result_take));
      assert (!status_take || status_valid);
      assert (!result_take || result_valid);
      assert ((status_take || result_take) == (free && !reading && (status_valid || result_valid)));
      if (result_valid && after_status) assert (!status_take);
      if (status_valid && !after_status) assert (!result_take);
      assert (after_status_reg == after_status);

      // The beats of a result are read in order, each once and after it is written; the slot stays
      // named until the last one is read.
      assert (sending == reading);
      if (reading) begin
        assert (sends == slot_reg && next == beat_reg);
        assert (final_beat == last_reg && next <= final_beat);
        assert (rd_slot == sends && rd_beat == next && rd_en == (free && rd_written));
      end
      if (result_take) assert (rd_slot == result_slot && rd_beat == 0 && rd_en == rd_written);
      if (!reading && !result_take) assert (!rd_en);

      // AXI4-Stream; the header is stable from a packet's first beat to its last.
      if (waited)
        assert (m_axis_tvalid && {m_axis_tkeep, m_axis_tlast, m_axis_tuser, m_axis_tdest} == stood);
      assert (!reading || open);
      assert (!m_axis_tvalid || open);
      if (m_axis_tvalid) assert (m_axis_tlast == !reading);
      if (open && !reading) assert (m_axis_tvalid);
    end
    if (was_reset && running_was && !rst) begin
      if (!status_was && !took_was) assert (m_axis_tuser == head_was);
      assert (m_axis_tdest == dest_was);
      if (read_was) assert (m_axis_tvalid && (&m_axis_tkeep) && m_axis_tlast == last_was);
      if (status_was) begin
        assert (m_axis_tvalid && m_axis_tkeep == 0 && m_axis_tlast);
        assert (m_axis_tuser[7:4] == KIND_STATUS && m_axis_tuser == status_said);
      end
      if (!status_was && !read_was && !waited) assert (!m_axis_tvalid);
      if (result_was) begin
        assert (m_axis_tuser[7:0] == {replay_was ? KIND_REPLAY : KIND_RESULT, VERSION});
        assert (m_axis_tuser[64+:32] == vid_was);
        assert (m_axis_tuser[8+:8] == {4'd0, nonfinite_was, partial_was, ecn_was});
        assert (m_axis_tuser[16+:8] == job_was);
        assert (m_axis_tuser[24+:8] == FORMAT);
        assert (m_axis_tuser[32+:16] == epoch_was);
        assert (m_axis_tuser[96+:16] == chunk_was);
        assert (m_axis_tuser[112+:64] == mask_was);
        assert (m_axis_tuser[176+:64] == receivers_was);
      end

      cover (m_axis_tvalid && m_axis_tlast && (&m_axis_tkeep) && next == 3 && result_take);
      cover (result_was && replay_was && status_valid);
      cover (reading && !rd_written && m_axis_tvalid && !m_axis_tready);
      cover (status_was && status_take);
    end
  end

  reg took_was;
  reg after_status;  // the most recent packet is a status
  reg [239:0] status_said;
  always @(posedge clk) begin
    took_was             <= result_take;
    after_status         <= !rst && (status_take || (after_status && !result_take));
    status_said          <= 240'd0;
    status_said[0+:8]    <= {KIND_STATUS, VERSION};
    status_said[16+:8]   <= status_job;
    status_said[32+:16]  <= status_epoch;
    status_said[48+:8]   <= status_rank;
    status_said[56+:8]   <= status_code;
    status_said[64+:32]  <= status_vid;
    status_said[112+:64] <= status_mask;
  end
`endif

endmodule

`default_nettype wire

// IEEE 754 addition, round to nearest, ties to even: y = a + b.
//
// Subnormals are supported. Every NaN result has sign 0 and only the top bit of its fraction set.
// Overflow gives infinity; an exact zero sum is +0 unless both operands are -0. Formats without
// infinities (fp8e4m3) have all ones as their only NaN, and overflow gives that.
//
// Throughput: one addition a cycle. LATENCY = 14 cycles from a, b to y:
//    1  compare the magnitudes
//    2  swap: the larger is "big", the smaller is "little"
//    3  subtract the exponents
//    4  shift little right by 0, 8, 16, 24    5  by 0, 2, 4, 6    6  by 0, 1, invert to subtract
//    7  add
//    8  decide, and   9  shift the sum left by 0, 8, 16, 24
//   10  decide, and  11  shift it left by 0, 2, 4, 6
//   12  shift it left by 0, 1, and decide the rounding
//   13  add exponent, shifts, fraction and rounding in one carry chain
//   14  overflow, infinity and NaN
//
// A register's number is the stage that it ends. Where a flag of the previous stage clears or sets
// a register, the flip-flop's own reset does it without logic. Carry chains have registered
// inputs.
//
// Not done here: reset, enable, valid bit. Whatever belongs to an addition is delayed beside it
// (left_delay). There are no exception flags.

`default_nettype none

module left_fp_add #(
    parameter integer EXP      = 8,   // bits in the exponent
    parameter integer FRAC     = 23,  // bits in the fraction
    parameter integer INFINITY = 1    // 0: no infinities, and one NaN of each sign (fp8e4m3)
) (
    input  wire                clk,
    input  wire [EXP+FRAC : 0] a,
    input  wire [EXP+FRAC : 0] b,
    output wire [EXP+FRAC : 0] y
);

  // Simulates cards a tenth faster: many small functions instead of one large one.
  /* verilator no_inline_module */

  generate
    if (EXP < 2 || EXP > 8) begin : g_exp
      ERROR_exponent_must_have_2_to_8_bits error ();
    end
    if (FRAC < 2 || FRAC > 24) begin : g_frac
      ERROR_fraction_must_have_2_to_24_bits error ();
    end
  endgenerate

  localparam integer WIDTH = 1 + EXP + FRAC;
  localparam integer SIG = FRAC + 1;  // significand with leading bit
  localparam integer ALIGNED = SIG + 2;  // plus guard and round bit below
  localparam integer SUM = ALIGNED + 2;  // plus carry above and sticky bit below
  localparam integer PAD = 32 - SUM;  // sums are the upper bits of 32

  // -- 1: compare ---------------------------------------------------------------------------------

  // Of two equal magnitudes with different signs, the positive one is big, and the sum has its
  // sign: so x - x is +0.
  wire             a_normal = |a[WIDTH-2:FRAC];
  wire             b_normal = |b[WIDTH-2:FRAC];

  reg              ordered1_reg;  // a is big
  reg              both_normal1_reg;
  reg              any_normal1_reg;
  reg  [WIDTH-1:0] a1_reg;
  reg  [WIDTH-1:0] b1_reg;

  always @(posedge clk) begin
    ordered1_reg     <= {a[WIDTH-2:0], b[WIDTH-1]} >= {b[WIDTH-2:0], a[WIDTH-1]};
    both_normal1_reg <= a_normal && b_normal;
    any_normal1_reg  <= a_normal || b_normal;
    a1_reg           <= a;
    b1_reg           <= b;
  end

  // -- 2: swap ------------------------------------------------------------------------------------

  // Big is normal if either operand is, little if both are. A subnormal has exponent 1, that of the
  // smallest normal number, and no leading bit.
  wire [WIDTH-1:0] big1 = ordered1_reg ? a1_reg : b1_reg;
  wire [WIDTH-2:0] little1 = ordered1_reg ? b1_reg[WIDTH-2:0] : a1_reg[WIDTH-2:0];

  reg  [      1:0] flags2_reg;  // big is normal, subtract
  reg  [WIDTH-1:0] big2_reg;  // sign, exponent, fraction
  reg  [WIDTH-1:0] little2_reg;  // leading bit, exponent, fraction

  always @(posedge clk) begin
    flags2_reg  <= {any_normal1_reg, a1_reg[WIDTH-1] ^ b1_reg[WIDTH-1]};
    big2_reg    <= big1 | {{EXP{1'b0}}, !any_normal1_reg, {FRAC{1'b0}}};
    little2_reg <= {both_normal1_reg, little1} | {{EXP{1'b0}}, !both_normal1_reg, {FRAC{1'b0}}};
  end

  // -- 3: distance --------------------------------------------------------------------------------

  wire [EXP-1:0] big_exp2 = big2_reg[WIDTH-2:FRAC];
  wire [EXP-1:0] little_exp2 = little2_reg[WIDTH-2:FRAC];
  wire [EXP-1:0] difference = big_exp2 - little_exp2;
  wire [7:0] distance = {{8 - EXP{1'b0}}, difference};
  wire far = |distance[7:5];
  // The result is an infinity or NaN if big is.
  wire special2 = &big_exp2 && (INFINITY != 0 || &big2_reg[FRAC-1:0]);

  reg [2:0] flags3_reg;  // big is normal, special, subtract
  reg [WIDTH-1:0] big3_reg;
  reg [ALIGNED-1:0] little3_reg;
  reg [4:0] shift3_reg;  // from 28 on, only little's sticky bit is left

  always @(posedge clk) begin
    flags3_reg  <= {flags2_reg[1], special2, flags2_reg[0]};
    big3_reg    <= big2_reg;
    little3_reg <= {little2_reg[WIDTH-1], little2_reg[FRAC-1:0], 2'b00};
    shift3_reg  <= {distance[4:2] | {3{far}}, distance[1:0]};
  end

  // -- 4, 5, 6: align -----------------------------------------------------------------------------

  // Bits shifted out go into the sticky bit. Two infinities of opposite signs have distance 0.
  wire [31:0] ones = 32'hffffffff;
  wire [4:0] shift3 = {shift3_reg[4:3], 3'd0};
  wire [31:0] lost3 = {{32 - ALIGNED{1'b0}}, little3_reg} & ~(ones << shift3);

  reg [3:0] flags4_reg;  // distance 0 and subtract, big is normal, special, subtract
  reg [WIDTH-1:0] big4_reg;
  reg [ALIGNED-1:0] little4_reg;
  reg [1:0] sticky4_reg;  // OR of both
  reg [2:0] shift4_reg;

  always @(posedge clk) begin
    flags4_reg  <= {shift3_reg == 5'd0 && flags3_reg[0], flags3_reg};
    big4_reg    <= big3_reg;
    little4_reg <= little3_reg >> shift3;
    sticky4_reg <= {|lost3[31:16], |lost3[15:0]};
    shift4_reg  <= shift3_reg[2:0];
  end

  wire [2:0] shift4 = {shift4_reg[2:1], 1'b0};
  wire [31:0] lost4 = {{32 - ALIGNED{1'b0}}, little4_reg} & ~(ones << shift4);

  reg [3:0] flags5_reg;
  reg [WIDTH-1:0] big5_reg;
  reg [ALIGNED-1:0] little5_reg;
  reg sticky5_reg;
  reg shift5_reg;

  always @(posedge clk) begin
    flags5_reg  <= flags4_reg;
    big5_reg    <= big4_reg;
    little5_reg <= little4_reg >> shift4;
    sticky5_reg <= |sticky4_reg || |lost4;
    shift5_reg  <= shift4_reg[0];
  end

  wire subtract5 = flags5_reg[0];
  wire sticky5 = sticky5_reg || (shift5_reg && little5_reg[0]);
  wire [ALIGNED:0] aligned5 = {1'b0, little5_reg >> shift5_reg};

  reg [1:0] flags6_reg;  // big is normal, special
  reg [WIDTH-1:0] big6_reg;
  reg [SUM-1:0] little6_reg;  // carry in at the bottom
  reg sticky6_reg;

  // Adds all ones below the leading bit to an infinity or NaN, which carries if the fraction is
  // nonzero: a NaN. For infinities of opposite signs, a carry in makes it carry.
  always @(posedge clk) begin
    flags6_reg  <= flags5_reg[2:1];
    big6_reg    <= big5_reg;
    sticky6_reg <= sticky5;
    if (flags5_reg[1]) little6_reg <= {2'b00, {ALIGNED - 1{1'b1}}, flags5_reg[3]};
    else little6_reg <= {aligned5 ^ {ALIGNED + 1{subtract5}}, subtract5 && !sticky5};
  end

  // -- 7: add -------------------------------------------------------------------------------------

  wire [SUM-1:0] total = {1'b0, flags6_reg[1], big6_reg[FRAC-1:0], 3'b001} + little6_reg;
  wire [7:0] room6 = {{8 - EXP{1'b0}}, big6_reg[WIDTH-2:FRAC]};

  reg [EXP+1:0] pass7_reg;  // special, sign, exponent
  reg [31:0] sum7_reg;
  reg [2:0] may7_reg;  // room for a step of 8, for one of 16, and for one of 8 after that

  always @(posedge clk) begin
    pass7_reg <= {flags6_reg[0], big6_reg[WIDTH-1:FRAC]};
    may7_reg  <= {|room6[7:3], |room6[7:4], |room6[7:5] || room6[3]};
    sum7_reg  <= {total[SUM-1:1], sticky6_reg, {PAD{1'b0}}};
  end

  // -- 8, 9, 10, 11: normalize --------------------------------------------------------------------

  // The leading one moves to the carry's place, in steps of 16, 8, 4, 2 and 1. A step is taken if
  // it shifts out only zeros and there is room: the sum of all steps is at most the exponent, and a
  // sum that needs more is a subnormal. A step taken uses up its bit of the exponent. Any other
  // exponent bit, from the step's own upwards, is room for the step. A bit not used by its own step
  // is room for all smaller steps together.
  wire zeros8 = sum7_reg[31:24] == 8'd0;
  wire then16 = sum7_reg[23:16] == 8'd0 && may7_reg[1];
  wire then24 = sum7_reg[15:8] == 8'd0 && may7_reg[0];
  wire step16 = zeros8 && then16;
  wire step8 = zeros8 && (then16 ? then24 : may7_reg[2]);

  reg [EXP+1:0] pass8_reg;
  reg [31:0] sum8_reg;
  reg [4:0] steps8_reg;

  always @(posedge clk) begin
    pass8_reg  <= pass7_reg;
    sum8_reg   <= sum7_reg;
    steps8_reg <= {step16, step8, 3'd0};
  end

  wire [7:0] room8 = {{8 - EXP{1'b0}}, pass8_reg[EXP-1:0]} & ~{3'd0, steps8_reg};

  reg [EXP+1:0] pass9_reg;
  reg [31:0] sum9_reg;
  reg [4:0] steps9_reg;
  reg more9_reg;  // room for 4, 2 and 1 together

  always @(posedge clk) begin
    pass9_reg  <= pass8_reg;
    sum9_reg   <= sum8_reg << {steps8_reg[4:3], 3'd0};
    steps9_reg <= steps8_reg;
    more9_reg  <= |room8[7:3];
  end

  wire [7:0] room9 = {{8 - EXP{1'b0}}, pass9_reg[EXP-1:0]};
  wire zeros4 = sum9_reg[31:28] == 4'd0;
  wire step4 = zeros4 && (more9_reg || room9[2]);
  wire more4 = more9_reg || (room9[2] && !zeros4);
  wire zeros2 = (step4 ? sum9_reg[27:26] : sum9_reg[31:30]) == 2'd0;
  wire step2 = zeros2 && (more4 || room9[1]);

  reg [EXP+1:0] pass10_reg;
  reg [31:0] sum10_reg;
  reg [4:0] steps10_reg;
  reg more10_reg;  // room for 1

  always @(posedge clk) begin
    pass10_reg  <= pass9_reg;
    sum10_reg   <= sum9_reg;
    steps10_reg <= {steps9_reg[4:3], step4, step2, 1'b0};
    more10_reg  <= more4 || room9[0] || (room9[1] && !zeros2);
  end

  wire [31:0] sum10 = sum10_reg << {steps10_reg[2:1], 1'd0};
  wire last10 = !sum10[31] && more10_reg;

  reg [EXP+1:0] pass11_reg;
  reg [31:0] sum11_reg;
  reg [4:0] steps11_reg;

  always @(posedge clk) begin
    pass11_reg  <= pass10_reg;
    sum11_reg   <= sum10;
    steps11_reg <= {steps10_reg[4:1], last10};
  end

  // -- 12: last step, rounding --------------------------------------------------------------------

  // The fraction, with or without the last shift, is a sum of two numbers, one of them 0: this
  // turns resets and an existing carry chain into a multiplexer. The exponent is that of the
  // carry's place less the steps: the exponent plus minus = 1 - steps. For an infinity or NaN, the
  // leading one is in the first or second place, and in the first only for a NaN.
  wire step1 = steps11_reg[0];
  wire [31:0] sum11 = sum11_reg << step1;
  wire [3:0] pairs = ~steps11_reg[4:1] + 4'd1;
  wire [7:0] minus = {{3{|steps11_reg[4:1]}}, pairs, !step1};
  wire half = sum11[PAD+3];
  wire up = half && |{sum11[PAD+4], sum11[PAD+2:PAD]};

  reg [3:0] pass12_reg;  // subnormal or zero, NaN, special, sign
  reg [WIDTH-1:0] first12_reg;
  reg [WIDTH-1:0] second12_reg;

  always @(posedge clk) begin
    pass12_reg   <= {!sum11[31], pass11_reg[EXP+1] && !step1, pass11_reg[EXP+1:EXP]};
    first12_reg  <= {pass11_reg[EXP-1:0], step1 ? {FRAC{1'b0}} : sum11_reg[30-:FRAC], 1'b1};
    second12_reg <= {minus[EXP-1:0], step1 ? sum11_reg[29-:FRAC] : {FRAC{1'b0}}, up};
  end

  // -- 13: round ----------------------------------------------------------------------------------

  // A fraction of all ones that rounds up carries into the exponent, as required. A subnormal sum
  // is exact, and its exponent field is 0. Without infinities, the exponent may need one more bit.
  localparam integer MORE = INFINITY != 0 ? 0 : 1;
  wire [WIDTH-1+MORE:0] rounded = {{MORE{1'b0}}, first12_reg} +
      {{MORE{second12_reg[WIDTH-1]}}, second12_reg};

  reg [2:0] pass13_reg;  // NaN, special, sign
  reg [WIDTH-2+MORE:0] magnitude13_reg;

  always @(posedge clk) begin
    pass13_reg      <= pass12_reg[2:0];
    magnitude13_reg <= rounded[WIDTH-1+MORE:1];
    if (pass12_reg[3]) magnitude13_reg[WIDTH-2+MORE:FRAC] <= {EXP + MORE{1'b0}};
  end

  // -- 14: overflow, infinity and NaN -------------------------------------------------------------

  localparam [WIDTH-2:0] BEYOND = {{EXP{1'b1}}, {FRAC{INFINITY == 0}}};
  localparam [WIDTH-2:0] QUIET = {{EXP{1'b0}}, INFINITY != 0, {FRAC - 1{1'b0}}};

  wire beyond = pass13_reg[1] || (INFINITY != 0 ? &magnitude13_reg[WIDTH-2:FRAC] :
      magnitude13_reg[WIDTH-2+MORE] || &magnitude13_reg[WIDTH-2:0]);
  wire nan = INFINITY != 0 ? pass13_reg[2] : beyond;

  reg [WIDTH-1:0] y_reg;

  always @(posedge clk) begin
    if (beyond) y_reg <= {pass13_reg[0] && !nan, BEYOND | (QUIET & {WIDTH - 1{nan}})};
    else y_reg <= {pass13_reg[0], magnitude13_reg[WIDTH-2:0]};
  end

  assign y = y_reg;

  // Bits for carries in, and unused bits of these words.
  wire unused = &{
    1'b0, total[0], rounded[0], room6[2:0], room8, room9, steps9_reg, steps10_reg, minus
  };

endmodule

`default_nettype wire

// Marks the elements of a beat that are infinite or NaN, one bit for each lane. Combinational.

`default_nettype none

module left_fp_nonfinite #(
    parameter integer LANES    = 16,
    parameter integer EXP      = 8,   // bits in the exponent
    parameter integer FRAC     = 23,  // bits in the fraction
    parameter integer INFINITY = 1    // 0: only all ones is a NaN, nothing is infinite (fp8e4m3)
) (
    input  wire [LANES*(1+EXP+FRAC)-1:0] beat,
    output reg  [             LANES-1:0] nonfinite
);

  localparam integer WIDTH = 1 + EXP + FRAC;
  // The sign does not count, nor with infinities the fraction: the exponent is all ones.
  localparam integer LOWEST = INFINITY != 0 ? FRAC : 0;

  wire    unused = &{1'b0, beat};

  integer lane;

  always @* begin
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinite[lane] = &beat[WIDTH*lane+LOWEST+:WIDTH-1-LOWEST];
    end
  end

endmodule

`default_nettype wire

// Detects overflow: y is infinite or NaN although no operand is. The operands are those of y's
// beat, delayed here by LATENCY cycles; over is in the same cycle as y.
//
// Not done here: reset, enable, valid bit.

`default_nettype none

module left_fp_over #(
    parameter integer OPERANDS = 8,
    parameter integer LATENCY  = 42,  // cycles from the operands to y
    parameter integer EXP      = 8,   // bits in the exponent
    parameter integer FRAC     = 23,  // bits in the fraction
    parameter integer INFINITY = 1    // 0: only all ones is a NaN, nothing is infinite (fp8e4m3)
) (
    input  wire                               clk,
    input  wire [OPERANDS*(1+EXP+FRAC)-1 : 0] x,
    input  wire [               EXP+FRAC : 0] y,
    output wire                               over
);

  generate
    if (LATENCY < 2) begin : g_latency
      ERROR_a_sum_must_take_at_least_2_cycles error ();
    end
  endgenerate

  wire [OPERANDS-1:0] x_nonfinite;
  wire                y_nonfinite;
  wire                excused;

  left_fp_nonfinite #(
      .LANES   (OPERANDS),
      .EXP     (EXP),
      .FRAC    (FRAC),
      .INFINITY(INFINITY)
  ) u_x (
      .beat     (x),
      .nonfinite(x_nonfinite)
  );

  left_fp_nonfinite #(
      .LANES   (1),
      .EXP     (EXP),
      .FRAC    (FRAC),
      .INFINITY(INFINITY)
  ) u_y (
      .beat     (y),
      .nonfinite(y_nonfinite)
  );

  reg [OPERANDS-1:0] x_nonfinite_reg;

  always @(posedge clk) begin
    x_nonfinite_reg <= x_nonfinite;
  end

  left_delay #(
      .WIDTH (1),
      .CYCLES(LATENCY - 1)
  ) u_excused (
      .clk(clk),
      .d  (|x_nonfinite_reg),
      .q  (excused)
  );

  assign over = y_nonfinite && !excused;

endmodule

`default_nettype wire

// Receiver of the byte-stream link: finds and parses frames in the bytes of left_byte_fifo.
//
// Searches for the sync word byte by byte, reads the header WINDOW bytes a cycle and checks its
// CRC. After a bad header, the search resumes at the byte after the first one of the sync word. An
// unsupported version, kind or length is counted, and the search resumes after the header.
//   data         sends the payload, STEP bytes a word, and then an empty last word, reporting
//                whether the payload's CRC failed; the data must not be used before that
//   ask, finish  send the empty last word alone
//   registers    wait at m_register for their reply, so that nothing overtakes them
// header is valid while a frame is sent. Cycles beside the payload's: sync word 1, header and CRC
// 16 or 24 / WINDOW, verdict 1, payload CRC 1.
//
// Not done here: ending a packet that a reset cuts off (left_beat_pack), checking ranks (left_route),
// checking all other fields (the core).

`default_nettype none

module left_frame_rx #(
    parameter integer WINDOW = 4,  // bytes in the FIFO's window: 4 or 8
    parameter integer STEP = 4,  // payload bytes per word: 1, 2, 4 or 8, at most WINDOW
    parameter integer CHUNK = 256,  // maximum chunk length, in elements
    parameter integer ELEM_BYTES = 4  // bytes per element
) (
    input wire clk,
    input wire rst,  // also drops a frame partly received

    // left_byte_fifo
    input  wire [8*WINDOW-1:0] window,
    input  wire [         3:0] count,
    output reg  [         3:0] take,
    output reg                 commit,
    output reg                 rewind,

    output wire [175:0] header,  // 22 bytes, first in bits 7:0; the last 8 are 0 without a mask

    output wire [8*STEP-1:0] m_axis_tdata,
    output wire [  STEP-1:0] m_axis_tkeep,   // contiguous from bit 0
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast,   // with tkeep = 0
    output wire              m_axis_tuser,   // valid with tlast: the payload's CRC failed

    output wire m_register_valid,
    output wire m_register_write,  // a write; otherwise a read
    input  wire m_register_ready,  // the access in header is complete

    // Events, one cycle each
    output wire event_frame,        // a header with a good CRC
    output wire event_hunted,       // a byte was skipped
    output wire event_header_crc,
    output wire event_bad_version,
    output wire event_bad_kind,
    output wire event_bad_length
);

  localparam integer HDR_VERSION_LSB = 0;
  localparam integer HDR_VERSION_BITS = 4;
  localparam integer HDR_KIND_LSB = 4;
  localparam integer HDR_KIND_BITS = 4;
  localparam integer HDR_LENGTH_LSB = 96;
  localparam integer HDR_LENGTH_BITS = 16;
  localparam integer HDR_BASE_BYTES = 14;  // every kind
  localparam integer HDR_MASK_BYTES = 22;  // with a mask
  localparam [3:0] VERSION = 4'd1;  // of the protocol
  localparam [3:0] KIND_DATA = 4'd1;
  localparam [3:0] KIND_ASK = 4'd2;
  localparam [3:0] KIND_FINISH = 4'd3;
  localparam [3:0] KIND_REGREAD = 4'd4;
  localparam [3:0] KIND_REGWRITE = 4'd5;
  localparam integer SYNC = 32'h425254a5;  // first byte on the link in the lowest byte
  localparam [15:0] CRC_INIT = 16'hffff;
  localparam integer MAX_FRAME_BYTES = 32'hfff;

  generate
    if (WINDOW != 4 && WINDOW != 8) begin : g_window
      ERROR_a_window_has_4_or_8_bytes error ();
    end
    if ((STEP != 1 && STEP != 2 && STEP != 4 && STEP != 8) || STEP > WINDOW) begin : g_step
      ERROR_a_word_has_1_2_4_or_8_bytes_and_at_most_those_of_the_window error ();
    end
    if (CHUNK < 1 || CHUNK * ELEM_BYTES + HDR_BASE_BYTES + 8 > MAX_FRAME_BYTES) begin : g_chunk
      ERROR_a_frame_of_that_chunk_is_longer_than_the_link_allows error ();
    end
  endgenerate

  localparam [2:0] HUNT = 3'd0;  // search for the sync word
  localparam [2:0] HEADER = 3'd1;
  localparam [2:0] JUDGE = 3'd2;  // the header is complete
  localparam [2:0] PAYLOAD = 3'd3;
  localparam [2:0] CLOSE = 3'd4;  // expect the payload's CRC
  localparam [2:0] BARE = 3'd5;  // send a packet without payload
  localparam [2:0] REGISTER = 3'd6;

  // A header and its CRC are whole windows: 14 + 2 bytes, or 22 + 2 with a mask.
  localparam integer LAST_SHORT = (HDR_BASE_BYTES + 2) / WINDOW - 1;
  localparam integer LAST_LONG = (HDR_MASK_BYTES + 2) / WINDOW - 1;

  reg  [  2:0] state_reg;
  reg  [  2:0] step_reg;  // header windows taken
  reg          long_reg;  // the header has a mask
  reg  [191:0] head_reg;  // header and CRC, shifted in from above
  reg  [ 15:0] left_reg;  // payload bytes to come
  reg  [ 15:0] crc_reg;

  // -- Header -------------------------------------------------------------------------------------

  wire [  3:0] version = header[HDR_VERSION_LSB+:HDR_VERSION_BITS];
  wire [  3:0] kind = header[HDR_KIND_LSB+:HDR_KIND_BITS];
  wire [ 15:0] length = header[HDR_LENGTH_LSB+:HDR_LENGTH_BITS];
  wire [ 15:0] header_crc = {head_reg[183:176], head_reg[191:184]};

  assign header = long_reg ? head_reg[175:0] : {64'd0, head_reg[175:64]};

  wire is_data = kind == KIND_DATA;
  wire is_bare = kind == KIND_ASK || kind == KIND_FINISH;
  wire is_register = kind == KIND_REGREAD || kind == KIND_REGWRITE;

  // The CRC over a header and its CRC is zero.
  wire judge = state_reg == JUDGE;
  wire crc_held = judge && crc_reg == 16'd0;
  wire version_held = crc_held && version == VERSION;

  assign event_frame       = crc_held;
  assign event_header_crc  = judge && !crc_held;
  assign event_bad_version = crc_held && !version_held;
  assign event_bad_kind    = version_held && !is_data && !is_bare && !is_register;
  assign event_bad_length  = version_held && is_data && (length == 16'd0 || length > CHUNK[15:0]);

  // -- Bytes --------------------------------------------------------------------------------------

  // Skips a byte as soon as it and the bytes present after it cannot start a sync word.
  wire [31:0] differ = window[31:0] ^ SYNC;
  wire mismatch =
      (count >= 4'd1 && differ[7:0] != 8'd0) || (count >= 4'd2 && differ[15:8] != 8'd0) ||
      (count >= 4'd3 && differ[23:16] != 8'd0) || (count >= 4'd4 && differ[31:24] != 8'd0);
  wire passed_over = state_reg == HUNT && mismatch;
  wire synced = count >= 4'd4 && !mismatch;
  wire header_step = state_reg == HEADER && count == WINDOW[3:0];
  // If elements are whole words, all payload words are full.
  wire [3:0] payload_bytes =
      ELEM_BYTES % STEP != 0 && left_reg < STEP[15:0] ? left_reg[3:0] : STEP[3:0];
  wire payload_there = state_reg == PAYLOAD && count >= payload_bytes;
  wire close_there = state_reg == CLOSE && count >= 4'd2;

  assign event_hunted = passed_over || event_header_crc;

  always @* begin
    take   = 4'd0;
    commit = 1'b0;
    rewind = 1'b0;
    case (state_reg)
      HUNT: begin
        take   = synced ? 4'd4 : {3'd0, passed_over};
        commit = passed_over;
      end
      HEADER:  take = header_step ? WINDOW[3:0] : 4'd0;
      JUDGE: begin
        commit = crc_held;
        rewind = !crc_held;
      end
      PAYLOAD: begin
        take   = payload_there && m_axis_tready ? payload_bytes : 4'd0;
        commit = 1'b1;
      end
      CLOSE: begin
        take   = close_there && m_axis_tready ? 4'd2 : 4'd0;
        commit = 1'b1;
      end
      default: ;
    endcase
  end

  // -- Packets ------------------------------------------------------------------------------------

  assign m_axis_tdata     = window[8*STEP-1:0];
  assign m_axis_tkeep     = m_axis_tlast ? {STEP{1'b0}} : ~({STEP{1'b1}} << payload_bytes);
  assign m_axis_tvalid    = payload_there || close_there || state_reg == BARE;
  assign m_axis_tlast     = state_reg != PAYLOAD;
  assign m_axis_tuser     = state_reg == CLOSE && crc_reg != {window[7:0], window[15:8]};
  assign m_register_valid = state_reg == REGISTER;
  assign m_register_write = long_reg;

  wire moved = m_axis_tvalid && m_axis_tready;

  // -- CRC ----------------------------------------------------------------------------------------

  // All bytes of a header's window count.
  wire [15:0] crc_header, crc_payload;

  left_crc16 #(
      .BYTES(WINDOW)
  ) u_header_crc (
      .crc_in (crc_reg),
      .data   (window),
      .count  (WINDOW[3:0]),
      .crc_out(crc_header)
  );

  left_crc16 #(
      .BYTES(STEP)
  ) u_crc (
      .crc_in (crc_reg),
      .data   (window[8*STEP-1:0]),
      .count  (payload_bytes),
      .crc_out(crc_payload)
  );

  always @(posedge clk) begin
    case (state_reg)
      HUNT: crc_reg <= CRC_INIT;
      HEADER: if (header_step) crc_reg <= crc_header;
      JUDGE: crc_reg <= header_crc;
      PAYLOAD: if (moved) crc_reg <= crc_payload;
      default: ;
    endcase
  end

  // -- State --------------------------------------------------------------------------------------

  always @(posedge clk) begin
    case (state_reg)
      HUNT: begin
        step_reg <= 3'd0;
        if (synced) state_reg <= HEADER;
      end
      HEADER:
      if (header_step) begin
        step_reg <= step_reg + 3'd1;
        head_reg <= {window, head_reg[191:8*WINDOW]};
        if (step_reg == 3'd0) long_reg <= window[HDR_KIND_LSB+:HDR_KIND_BITS] == KIND_REGWRITE;
        else if (step_reg == (long_reg ? LAST_LONG[2:0] : LAST_SHORT[2:0])) state_reg <= JUDGE;
      end
      JUDGE: begin
        left_reg <= length * ELEM_BYTES[15:0];
        if (!version_held || event_bad_kind || event_bad_length) state_reg <= HUNT;
        else if (is_data) state_reg <= PAYLOAD;
        else if (is_bare) state_reg <= BARE;
        else state_reg <= REGISTER;
      end
      PAYLOAD:
      if (moved) begin
        left_reg <= left_reg - {12'd0, payload_bytes};
        if (left_reg <= STEP[15:0]) state_reg <= CLOSE;
      end
      CLOSE, BARE: if (moved) state_reg <= HUNT;
      default: if (m_register_ready) state_reg <= HUNT;
    endcase
    if (rst) state_reg <= HUNT;
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // A frame with a good header, anywhere in the bytes and after any other frames, is found. For any
  // frame, the output is its payload, and it is good only if its CRC was.
  //
  // frame: sync word, header and its CRC, of which frame_bytes count. It begins to_frame bytes
  // after the first byte that a rewind can reach; offset of those bytes were taken.
  (* anyconst *) reg [223:0] any_frame;
  wire [223:0] frame = {any_frame[223:32], SYNC};
  wire frame_long = frame[32+HDR_KIND_LSB+:HDR_KIND_BITS] == KIND_REGWRITE;
  wire [7:0] frame_bytes = frame_long ? 28 : 20;
  wire [111:0] sums;  // of its header, after every four bytes
  wire [15:0] frame_sum = frame_long ? sums[96+:16] : sums[64+:16];

  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [15:0] to_frame;
  reg [7:0] offset;
  reg passed;  // it was inside another frame, with a good header
  reg found_frame;
  reg fed;  // no shortage of bytes and no register access occurred
  reg [15:0] sum, due;  // CRC of the payload so far; payload bytes to come
  wire [2:0] due_now = due < STEP ? due : STEP;
  reg [7:0] spent;  // cycles since to_frame decreased
  reg waited;
  reg [8*STEP+STEP+1:0] stood;
  reg [8*WINDOW-1:0] window_was;
  reg [3:0] count_was, take_was;
  wire [8*STEP-1:0] unused_bytes = {8 * STEP{1'b1}} << 8 * due_now;
  wire [8*STEP-1:0] bytes_out = m_axis_tlast ? 0 : m_axis_tdata & ~unused_bytes;
  wire [STEP+8*STEP+1:0] out = {
    m_axis_tlast && m_axis_tuser, m_axis_tlast, m_axis_tkeep, bytes_out
  };
  wire [7:0] offset_next = offset + take;
  wire passes_frame = commit && offset_next > to_frame;
  wire passes = !rst && (commit ? offset_next : rewind) != 0;  // the search advances
  // Position in the frame of the next byte
  wire signed [17:0] place = $signed({10'd0, offset}) - $signed({2'd0, to_frame});
  wire [2:0] all_steps = long_reg ? 3'd6 : 3'd4;
  wire [2:0] taken_steps = state_reg == HEADER ? step_reg : judge ? all_steps : 3'd0;
  integer n;

  wire [15:0] sum_next;

  // left_crc16 is proved separately.
  assign sums[15:0] = CRC_INIT;
  genvar f;
  generate
    for (f = 0; f < 6; f = f + 1) begin : g_frame
      left_crc16 #(
          .BYTES(4)
      ) u_crc (
          .crc_in (sums[16*f+:16]),
          .data   (frame[32*f+32+:32]),
          .count  (4'd4),
          .crc_out(sums[16*f+16+:16])
      );
    end
  endgenerate

  left_crc16 #(
      .BYTES(WINDOW)
  ) u_any_crc (
      .crc_in (sum),
      .data   (window),
      .count  ({1'b0, due_now}),
      .crc_out(sum_next)
  );

  always @(posedge clk) begin
    running_was <= !rst;
    offset <= commit || rewind ? 0 : offset_next;
    if (commit) to_frame <= to_frame - offset_next;
    else if (rewind) to_frame <= to_frame - 1;
    if (judge && crc_held && to_frame == 0) found_frame <= 1'b1;
    else if (passes_frame) passed <= 1'b1;
    fed   <= fed && count == WINDOW;
    spent <= passes || state_reg > JUDGE ? 0 : spent + 1;
    if (judge) begin
      sum <= header_crc;
      due <= length * ELEM_BYTES;
    end
    if (state_reg == PAYLOAD && moved) begin
      sum <= sum_next;
      due <= due - due_now;
    end
    waited <= m_axis_tvalid && !m_axis_tready;
    stood <= out;
    window_was <= window;
    count_was <= count;
    take_was <= take;
    if (rst) begin
      was_reset <= 1'b1;
      offset <= 0;
      passed <= 1'b0;
      found_frame <= 1'b0;
      fed <= 1'b1;
      spent <= 0;
      waited <= 1'b0;
    end
  end

  always @* begin
    if (was_reset) begin
      // left_byte_fifo: at most WINDOW bytes, stable until taken.
      `PROMISED(count <= WINDOW);
      for (n = 0; n < WINDOW; n = n + 1)
      if (running_was && waited && n < count_was)
        `PROMISED(count >= count_was && window[8*n+:8] == window_was[8*n+:8]);

      // The frame's bytes are at its place, and its header is good.
      assume (frame_sum == 0);
      for (n = 0; n < WINDOW; n = n + 1)
      if (n < count && place + n >= 0 && place + n < frame_bytes)
        assume (window[8*n+:8] == frame[8*(place+n)+:8]);

      // The parser requests only what the FIFO has.
      assert (take <= count && !(commit && rewind));
      assert (!rewind || offset != 0);
      assert (state_reg != HUNT || offset == 0);
      assert (state_reg < PAYLOAD || offset == 0);
      assert (state_reg <= REGISTER);
      if (state_reg == HEADER) begin
        assert (offset == 4 + WINDOW * step_reg && step_reg <= (long_reg ? LAST_LONG : LAST_SHORT));
        if (step_reg == 0) assert (crc_reg == CRC_INIT);
      end
      if (judge) assert (offset == (long_reg ? 28 : 20));
      for (n = 0; n < 6; n = n + 1)
      if (taken_steps == n + 1)
        assert (long_reg == (head_reg[164-32*n+:4] == KIND_REGWRITE));  // its kind
      if (state_reg > JUDGE) assert (long_reg == (kind == KIND_REGWRITE));

      // The search reaches the frame and takes its header, whatever precedes it, unless the frame
      // is inside another one. With all bytes present, an attempt takes at most 8 cycles.
      if (!passed && !found_frame) begin
        if (passes_frame) assert (crc_held || state_reg > JUDGE);
        if (to_frame == 0 && state_reg <= JUDGE) begin
          if (state_reg == HEADER || judge) assert (offset <= frame_bytes);
          if (state_reg == HEADER && step_reg != 0) assert (long_reg == frame_long);
          if (judge) assert (long_reg == frame_long && crc_held);
          if (judge) assert (header == (frame_long ? frame[207:32] : {64'd0, frame[143:32]}));
          for (n = 0; n < 6; n = n + 1)
          if (taken_steps == n + 1) begin
            assert (crc_reg == sums[16*(n+1)+:16]);
            assert (head_reg >> (192 - 32 * (n + 1)) == frame[223:32] % (193'd1 << 32 * (n + 1)));
          end
        end
      end
      if (fed && state_reg == HUNT) assert (spent == 0);
      if (fed && state_reg == HEADER) assert (spent <= 1 + step_reg);
      if (fed && judge) assert (spent < 8);

      // AXI4-Stream rules at the output.
      if (running_was && waited) assert (m_axis_tvalid && out == stood);

      // Payload: the number of bytes in the header, then one empty word. It is good only if the CRC
      // over header and payload equals the received one.
      if (state_reg == PAYLOAD || state_reg == CLOSE) assert (crc_reg == sum && is_data);
      if (state_reg == PAYLOAD) begin
        assert (left_reg == due && due != 0 && due <= CHUNK * ELEM_BYTES);
        assert (m_axis_tkeep == ~({STEP{1'b1}} << due_now) && !m_axis_tlast);
      end
      if (m_axis_tvalid && m_axis_tlast) begin
        assert (m_axis_tkeep == 0 && (is_data ? state_reg == CLOSE : is_bare));
        if (is_data) assert (m_axis_tuser == (sum != {window[7:0], window[15:8]}));
        if (!is_data) assert (!m_axis_tuser);
      end
      assert (!m_register_valid || (is_register && m_register_write == (kind == KIND_REGWRITE)));

      cover (found_frame && state_reg == PAYLOAD && frame_long == 0);
      cover (judge && to_frame == 0 && crc_held && frame_long && m_register_write);
      cover (judge && !crc_held && to_frame == 5);
      cover (m_axis_tvalid && m_axis_tlast && m_axis_tuser);
    end
  end
`endif

endmodule

`default_nettype wire

// Transmitter of the byte-stream link: frames the core's packets and the register replies.
//
// A frame is sent in steps of up to WINDOW bytes: sync word (4 bytes), header and its CRC (24
// bytes, or 32 with receivers; whole windows); for results and replays, also the payload (STEP
// bytes a word) and its CRC (2 bytes). Throughput: one step a cycle, without a bubble between
// frames. Replies and packets alternate if both are pending.
//
// The CRC runs one step ahead of the header, so its final value is in a register when the last step
// leaves.
//
// Not done here: packing steps into link words (left_byte_pack). A reset drops the frame under way;
// left_beat_unpack discards the rest of it.

`default_nettype none

module left_frame_tx #(
    parameter integer WINDOW = 4,  // maximum bytes per step: 4 or 8
    parameter integer STEP   = 4   // payload bytes per word: 1, 2, 4 or 8, at most WINDOW
) (
    input wire clk,
    input wire rst,

    input  wire         s_reply_valid,
    output wire         s_reply_ready,
    input  wire [175:0] s_reply_header,

    input  wire [8*STEP-1:0] s_axis_tdata,   // undefined in packets without payload
    input  wire              s_axis_tvalid,
    output wire              s_axis_tready,
    input  wire              s_axis_tlast,
    input  wire [     239:0] s_axis_tuser,   // header, 30 bytes

    output wire [8*WINDOW-1:0] m_step_data,  // bytes beyond m_step_bytes are 0
    output wire [3:0] m_step_bytes,
    output wire m_step_valid,
    input wire m_step_ready,
    output wire m_step_idle  // no frame is under way or pending
);

  localparam integer HDR_KIND_LSB = 4;
  localparam integer HDR_KIND_BITS = 4;
  localparam integer HDR_MASK_BYTES = 22;  // with a mask
  localparam integer HDR_MAX_BYTES = 30;  // with a mask and receivers
  localparam [3:0] KIND_RESULT = 4'd8;
  localparam [3:0] KIND_REPLAY = 4'd9;
  localparam integer SYNC = 32'h425254a5;  // first byte on the link in the lowest byte
  localparam [15:0] CRC_INIT = 16'hffff;

  generate
    if (WINDOW != 4 && WINDOW != 8) begin : g_window
      ERROR_a_step_has_4_or_8_bytes error ();
    end
    if ((STEP != 1 && STEP != 2 && STEP != 4 && STEP != 8) || STEP > WINDOW) begin : g_step
      ERROR_a_word_has_1_2_4_or_8_bytes_and_at_most_those_of_a_step error ();
    end
  endgenerate

  localparam [1:0] BEGIN = 2'd0;  // send the sync word as soon as a frame is pending
  localparam [1:0] HEADER = 2'd1;
  localparam [1:0] PAYLOAD = 2'd2;
  localparam [1:0] CLOSE = 2'd3;  // send the payload's CRC

  localparam integer LAST_SHORT = (HDR_MASK_BYTES + 2) / WINDOW - 1;
  localparam integer LAST_LONG = (HDR_MAX_BYTES + 2) / WINDOW - 1;
  localparam integer TAIL_BYTES = WINDOW - 2;  // header bytes in its last step, before the CRC
  localparam integer TAIL = 8 * TAIL_BYTES;

  reg  [  1:0] state_reg;
  reg  [  2:0] step_reg;  // header steps sent
  reg          payload_reg;  // the frame has receivers and a payload
  reg          turn_reg;  // the last frame was a reply
  reg  [239:0] header_reg;  // shifted out from the low end
  reg  [ 15:0] crc_reg;

  wire         choose_reply = s_reply_valid && !(turn_reg && s_axis_tvalid);
  wire         waiting = s_reply_valid || s_axis_tvalid;
  wire [  3:0] kind = s_axis_tuser[HDR_KIND_LSB+:HDR_KIND_BITS];
  wire         with_payload = !choose_reply && (kind == KIND_RESULT || kind == KIND_REPLAY);

  wire         begins = state_reg == BEGIN && waiting && m_step_ready;
  wire         begins_bare = begins && !choose_reply && !with_payload;
  wire         header_last = step_reg == (payload_reg ? LAST_LONG[2:0] : LAST_SHORT[2:0]);

  assign s_reply_ready = begins && choose_reply;
  assign s_axis_tready = state_reg == PAYLOAD ? m_step_ready : begins_bare;

  // -- CRC ----------------------------------------------------------------------------------------

  wire [239:0] header = choose_reply ? {64'd0, s_reply_header} : s_axis_tuser;
  wire [8*WINDOW-1:0] payload;
  wire [2:0] step_next = step_reg + 3'd1;
  wire header_next_last = step_next == (payload_reg ? LAST_LONG[2:0] : LAST_SHORT[2:0]);
  wire [15:0] crc_step;  // CRC of a full step, of the header bytes in its last step,
  wire [15:0] crc_tail;
  wire [15:0] crc_payload;  // and of a payload word
  reg [15:0] crc_next;

  assign payload[8*STEP-1:0] = s_axis_tdata;

  generate
    if (WINDOW > STEP) begin : g_narrow_beat
      assign payload[8*WINDOW-1:8*STEP] = {8 * (WINDOW - STEP) {1'b0}};
    end
  endgenerate

  // Input of the CRC: the header's first step while the sync word leaves, and then always the step
  // after the one that leaves.
  always @* begin
    case (state_reg)
      BEGIN:   crc_next = crc_step;
      HEADER:  crc_next = header_last ? crc_reg : header_next_last ? crc_tail : crc_step;
      default: crc_next = crc_payload;
    endcase
  end

  // One instance for each number of bytes: each is then a plain XOR of bits.
  left_crc16 #(
      .BYTES(WINDOW)
  ) u_step_crc (
      .crc_in (state_reg == BEGIN ? CRC_INIT : crc_reg),
      .data   (state_reg == BEGIN ? header[8*WINDOW-1:0] : header_reg[8*WINDOW+:8*WINDOW]),
      .count  (WINDOW[3:0]),
      .crc_out(crc_step)
  );

  left_crc16 #(
      .BYTES(WINDOW - 2)
  ) u_tail_crc (
      .crc_in (crc_reg),
      .data   (header_reg[8*WINDOW+:8*(WINDOW-2)]),
      .count  (TAIL_BYTES[3:0]),
      .crc_out(crc_tail)
  );

  left_crc16 #(
      .BYTES(STEP)
  ) u_payload_crc (
      .crc_in (crc_reg),
      .data   (payload[8*STEP-1:0]),
      .count  (STEP[3:0]),
      .crc_out(crc_payload)
  );

  // -- Steps --------------------------------------------------------------------------------------

  reg [8*WINDOW-1:0] step_data;
  reg [         3:0] step_bytes;

  always @* begin
    step_data = {8 * WINDOW{1'b0}};
    case (state_reg)
      BEGIN: begin
        step_data[31:0] = SYNC;
        step_bytes = 4'd4;
      end
      HEADER: begin
        step_data = header_reg[8*WINDOW-1:0];
        if (header_last) step_data[TAIL+:16] = {crc_reg[7:0], crc_reg[15:8]};
        step_bytes = WINDOW[3:0];
      end
      PAYLOAD: begin
        step_data  = payload;
        step_bytes = STEP[3:0];
      end
      default: begin
        step_data[15:0] = {crc_reg[7:0], crc_reg[15:8]};
        step_bytes = 4'd2;
      end
    endcase
  end

  assign m_step_data  = step_data;
  assign m_step_bytes = step_bytes;
  assign m_step_valid = state_reg == BEGIN ? waiting : state_reg != PAYLOAD || s_axis_tvalid;
  assign m_step_idle  = state_reg == BEGIN && !waiting;

  wire moved = m_step_valid && m_step_ready;

  always @(posedge clk) begin
    if (moved) begin
      case (state_reg)
        BEGIN: begin
          state_reg   <= HEADER;
          step_reg    <= 3'd0;
          payload_reg <= with_payload;
          turn_reg    <= choose_reply;
          header_reg  <= header;
          crc_reg     <= crc_next;
        end
        HEADER: begin
          step_reg   <= step_reg + 3'd1;
          header_reg <= {{8 * WINDOW{1'b0}}, header_reg[239:8*WINDOW]};
          crc_reg    <= crc_next;
          if (header_last) state_reg <= payload_reg ? PAYLOAD : BEGIN;
        end
        PAYLOAD: begin
          crc_reg <= crc_next;
          if (s_axis_tlast) state_reg <= CLOSE;
        end
        default: state_reg <= BEGIN;
      endcase
    end
    if (rst) begin
      state_reg <= BEGIN;
      turn_reg  <= 1'b0;
    end
  end

endmodule

`default_nettype wire

// Replaces the beat of a port that did not contribute by the sum's
// identity: y is x if enable is high, otherwise IDENTITY in every
// lane.
//
// Latency: one cycle. The register is between the slot memories and
// the lanes. Not done here: which ports contribute (left_labels).

`default_nettype none

module left_gate #(
    parameter integer LANES = 16,
    parameter integer ELEM_BITS = 32,
    parameter [63:0] IDENTITY = 64'h8000_0000  // the low ELEM_BITS; default: -0 in fp32
) (
    input  wire                       clk,
    input  wire                       enable,
    input  wire [LANES*ELEM_BITS-1:0] x,
    output wire [LANES*ELEM_BITS-1:0] y
);

  generate
    if (ELEM_BITS < 1 || ELEM_BITS > 64) begin : g_elem
      ERROR_elements_must_have_1_to_64_bits error ();
    end
  endgenerate

  reg [LANES*ELEM_BITS-1:0] y_reg;

  always @(posedge clk) y_reg <= enable ? x : {LANES{IDENTITY[ELEM_BITS-1:0]}};

  assign y = y_reg;

endmodule

`default_nettype wire

// Receives one port's packets: checks their shape, writes payloads into the port's slot
// memory and requests their commit.
//
// A beat is accepted into register A and moves to the slot memory in the next cycle. With
// its last beat, the packet requests its commit in the cycle of the write. One more request
// can be queued, so the next packet proceeds while the arbiter serves other ports.
//
// A payload is written before its commit shows whether it is bad or a repetition. Only a
// contribution that is held and not yet summed needs protection: its slot is *busy* and is
// not written. In any other slot a write does no harm, because an uncommitted payload is
// overwritten before it could be summed. The request reports whether its payload was
// written (*writable*); a payload that was not cannot be stored. Data for a slot with
// uncommitted data of this port (*pending*) waits at its first beat, and blocks this port
// only.
//
// Request, 102 bits: {writable, nonfinite, bad, whole, length 16, vid 32, rank 8, epoch 16,
// format 8, job 8, ecn 2, kind 4, version 4}. left_commit unpacks it. whole: the packet has
// as many beats as a chunk of its job, all of them full. Data is written only if its job is
// set up. When a job ends (its bit of flush, its slots in flush_slots), its contributions
// are dropped, and its data in flight counts as not written.
//
// Latency: a beat accepted in cycle 0 is written in cycle 1; a last beat also requests in
// cycle 1. Not done here: header checks (left_commit).

`default_nettype none

module left_ingress #(
    parameter integer BEAT_BITS  = 512,
    parameter integer JOBS       = 1,
    parameter integer JOB_BITS   = 1,
    parameter integer SLOT_BITS  = 4,    // width of a slot number
    parameter integer INDEX_BITS = 4     // width of a beat's number in its chunk
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input wire [           JOBS-1:0] flush,
    input wire [ (1<<SLOT_BITS)-1:0] flush_slots,
    input wire [           JOBS-1:0] job_valid,    // set up
    input wire [ SLOT_BITS*JOBS-1:0] slot_mask,    // 2 * window - 1
    input wire [ SLOT_BITS*JOBS-1:0] slot_base,    // the first slot
    input wire [INDEX_BITS*JOBS-1:0] job_last,     // number of the last beat of a chunk

    // Packets; tuser is valid on the first beat, except bit 112 (bad payload): valid on the last
    input wire [BEAT_BITS-1:0] s_axis_tdata,
    input wire [BEAT_BITS/8-1:0] s_axis_tkeep,
    input wire s_axis_tvalid,
    output wire s_axis_tready,
    input wire s_axis_tlast,
    input wire [112:0] s_axis_tuser,
    input wire s_nonfinite,  // an element of s_axis_tdata is a NaN or an infinity

    // The port's slot memory
    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,
    output wire [ BEAT_BITS-1:0] wr_data,

    // Request for a commit
    output wire         req_valid,
    input  wire         req_grant,
    output wire [101:0] req_data,

    // The verdict on writable data of this port, and any slot that was summed
    input wire                 resolve,
    input wire [SLOT_BITS-1:0] resolve_slot,
    input wire                 resolve_stored,
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot
);

  localparam integer HDR_VERSION_LSB = 0;
  localparam integer HDR_KIND_LSB = 4;
  localparam integer HDR_FLAGS_LSB = 8;
  localparam integer HDR_JOB_LSB = 16;
  localparam integer HDR_FORMAT_LSB = 24;
  localparam integer HDR_EPOCH_LSB = 32;
  localparam integer HDR_RANK_LSB = 48;
  localparam integer HDR_VID_LSB = 64;
  localparam integer HDR_LENGTH_LSB = 96;
  localparam [3:0] KIND_DATA = 4'd1;

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [SLOTS-1:0] ONE_SLOT = 1;

  // On input, code and the flags other than ECN have no meaning.
  wire unused = &{1'b0, s_axis_tuser[15:10], s_axis_tuser[63:56]};

  // -- Register A ---------------------------------------------------------------------------------

  reg  s_first_reg;  // the next accepted beat begins a packet
  reg a_valid_reg, a_first_reg, a_last_reg, a_full_reg, a_bad_reg, a_nonfinite_reg;
  reg  [BEAT_BITS-1:0] a_data_reg;
  reg  [         97:0] header_reg;  // of the packet in A
  reg                  data_reg;  // data of a job that this card has
  wire                 a_leaves;
  wire [          8:0] s_number = {1'b0, s_axis_tuser[HDR_JOB_LSB+:8]};  // of the job

  assign s_axis_tready = !a_valid_reg || a_leaves;

  always @(posedge clk) begin
    if (s_axis_tready) begin
      a_valid_reg     <= s_axis_tvalid;
      a_first_reg     <= s_first_reg;
      a_last_reg      <= s_axis_tlast;
      a_full_reg      <= &s_axis_tkeep;
      a_bad_reg       <= s_axis_tuser[112];
      a_nonfinite_reg <= s_nonfinite;
      if (s_axis_tvalid) begin
        a_data_reg  <= s_axis_tdata;
        s_first_reg <= s_axis_tlast;
        if (s_first_reg) begin
          data_reg <= s_axis_tuser[HDR_KIND_LSB+:4] == KIND_DATA && s_number < JOBS[8:0];
          header_reg <= {
            s_axis_tuser[HDR_LENGTH_LSB+:16],
            s_axis_tuser[HDR_VID_LSB+:32],
            s_axis_tuser[HDR_RANK_LSB+:8],
            s_axis_tuser[HDR_EPOCH_LSB+:16],
            s_axis_tuser[HDR_FORMAT_LSB+:8],
            s_axis_tuser[HDR_JOB_LSB+:8],
            s_axis_tuser[HDR_FLAGS_LSB+:2],
            s_axis_tuser[HDR_KIND_LSB+:4],
            s_axis_tuser[HDR_VERSION_LSB+:4]
          };
        end
      end
    end
    if (rst) begin
      s_first_reg <= 1'b1;
      a_valid_reg <= 1'b0;
    end
  end

  // -- State of the packet before the beat in A ---------------------------------------------------

  reg [INDEX_BITS:0] beat_reg;  // number of the beat in A; saturates
  reg writable_reg, full_reg, nonfinite_reg;

  wire [INDEX_BITS:0] beat = a_first_reg ? {INDEX_BITS + 1{1'b0}} : beat_reg;
  wire [JOB_BITS-1:0] job = JOBS == 1 ? {JOB_BITS{1'b0}} : header_reg[10+:JOB_BITS];
  wire [INDEX_BITS-1:0] last = job_last[INDEX_BITS*job+:INDEX_BITS];
  wire [SLOT_BITS-1:0] slot = slot_base[SLOT_BITS*job+:SLOT_BITS] |
      (header_reg[50+:SLOT_BITS] & slot_mask[SLOT_BITS*job+:SLOT_BITS]);  // of the VID
  wire data = data_reg && job_valid[job];
  wire full = a_full_reg && (a_first_reg || full_reg);
  wire nonfinite = a_nonfinite_reg || (!a_first_reg && nonfinite_reg);
  wire whole = full && beat == {1'b0, last};

  reg [SLOTS-1:0] busy_reg;
  reg [SLOTS-1:0] pending_reg;

  wire writable = !flush[job] && (a_first_reg ? data && !busy_reg[slot] : writable_reg);
  wire waits = a_first_reg && data && pending_reg[slot];

  always @(posedge clk) begin
    if (a_leaves) begin
      beat_reg      <= &beat ? beat : beat + 1'b1;
      full_reg      <= full;
      nonfinite_reg <= nonfinite;
      writable_reg  <= writable;
    end
    if (flush[job]) writable_reg <= 1'b0;
  end

  assign wr_en   = a_leaves && writable && beat <= {1'b0, last};
  assign wr_slot = slot;
  assign wr_beat = beat[INDEX_BITS-1:0];
  assign wr_data = a_data_reg;

  // -- Request ------------------------------------------------------------------------------------

  reg                 queued_reg;  // a request that was not granted at once
  reg  [       101:0] queue_reg;

  wire [JOB_BITS-1:0] queue_job = JOBS == 1 ? {JOB_BITS{1'b0}} : queue_reg[10+:JOB_BITS];

  wire [       101:0] request = {writable, nonfinite, a_bad_reg, whole, header_reg};
  wire                asks = a_valid_reg && a_last_reg && !waits;

  assign req_valid = queued_reg || asks;
  assign req_data  = queued_reg ? queue_reg : request;
  // Ignores a grant in this very cycle: it would connect the arbiter to s_axis combinationally.
  assign a_leaves  = a_valid_reg && !waits && !(a_last_reg && queued_reg);

  always @(posedge clk) begin
    if (a_leaves && a_last_reg && !req_grant) begin
      queued_reg <= 1'b1;
      queue_reg  <= request;
    end else begin
      if (req_grant) queued_reg <= 1'b0;
      if (flush[queue_job]) queue_reg[101] <= 1'b0;
    end
    if (rst) queued_reg <= 1'b0;
  end

  // -- Slots that must not be written -------------------------------------------------------------

  wire [SLOTS-1:0] summed = reduced ? ONE_SLOT << reduced_slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] resolved = resolve ? ONE_SLOT << resolve_slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] stored = resolve && resolve_stored ? ONE_SLOT << resolve_slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] written = a_leaves && a_last_reg && writable ? ONE_SLOT << slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    busy_reg    <= ((busy_reg & ~summed) | stored) & ~flush_slots;
    pending_reg <= ((pending_reg & ~resolved) | written) & ~flush_slots;
    if (rst) begin
      busy_reg    <= {SLOTS{1'b0}};
      pending_reg <= {SLOTS{1'b0}};
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot and any beat: the data last written there, the data of the packet to be committed,
  // and whether the slot holds a contribution.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  (* anyconst *) reg [INDEX_BITS-1:0] place;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  wire [7:0] number = header_reg[17:10];  // of the job
  integer n, m;

  // Jobs: the owner of the slot, and the guarantees of left_jobs.
  reg [SLOT_BITS-1:0] mask_n, base_n, mask_m, base_m;
  reg [JOBS-1:0] owns, flush_was, flush_before, valid_was;  // flush one and two cycles ago
  reg [JOBS-1:0] ended;  // was set up when its flush began
  reg [SLOT_BITS*JOBS-1:0] mask_was, base_was;
  reg [INDEX_BITS*JOBS-1:0] last_was;

  // The packet at A and its beats.
  reg [INDEX_BITS:0] at;  // number of the beat in A; saturates
  reg all_full, any_special, had_place, writes;
  reg [BEAT_BITS-1:0] its_place;
  wire now_place = at == place;

  // A granted request is examined in the next cycle and judged in the one after, for the slot
  // computed in the first.
  reg looked_at, looked_writes, flight, flight_writes;
  reg [JOB_BITS-1:0] looked_job, flight_job;
  reg [31:0] looked_vid;
  reg [SLOT_BITS-1:0] flight_slot;
  wire [SLOT_BITS-1:0] looked_slot = slot_base[SLOT_BITS*looked_job+:SLOT_BITS] |
      (looked_vid[SLOT_BITS-1:0] & slot_mask[SLOT_BITS*looked_job+:SLOT_BITS]);
  wire [7:0] req_number = req_data[17:10];
  wire [JOB_BITS-1:0] req_job = JOBS == 1 ? {JOB_BITS{1'b0}} : req_number[JOB_BITS-1:0];
  wire [SLOT_BITS-1:0] queue_slot = slot_base[SLOT_BITS*queue_job+:SLOT_BITS] |
      (queue_reg[50+:SLOT_BITS] & slot_mask[SLOT_BITS*queue_job+:SLOT_BITS]);

  reg holding;  // the slot holds a contribution that is not yet summed
  reg [BEAT_BITS-1:0] memory, queue_has, looked_has, flight_has;
  wire in_queue = queued_reg && queue_reg[101] && queue_slot == watched && job_valid[queue_job];
  wire is_looked_at = looked_at && looked_writes && looked_slot == watched && job_valid[looked_job];
  wire is_judged = flight && flight_writes && flight_slot == watched && job_valid[flight_job];
  wire in_flight = is_looked_at || is_judged;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    flush_was <= flush;
    flush_before <= running_was ? flush_was : {JOBS{1'b0}};
    valid_was <= job_valid;
    mask_was <= slot_mask;
    base_was <= slot_base;
    last_was <= job_last;
    ended <= job_valid | (ended & flush);

    // The packet at A
    if (a_leaves) begin
      at <= a_last_reg ? 0 : &at ? at : at + 1;
      all_full <= a_full_reg && (at == 0 || all_full);
      any_special <= a_nonfinite_reg || (at != 0 && any_special);
      if (now_place) its_place <= a_data_reg;
      had_place <= !a_last_reg && (had_place || now_place);
    end
    if (a_valid_reg) writes <= !(a_leaves && a_last_reg) && writable && !flush[job];
    if (flush[job]) writes <= 1'b0;

    looked_at <= req_valid && req_grant;
    looked_writes <= req_data[101];
    looked_job <= req_job;
    looked_vid <= req_data[81:50];
    looked_has <= queued_reg ? queue_has : now_place ? a_data_reg : its_place;
    flight <= looked_at;
    flight_writes <= looked_writes;
    flight_job <= looked_job;
    flight_slot <= looked_slot;
    flight_has <= looked_has;
    if (a_leaves && a_last_reg && !req_grant) queue_has <= now_place ? a_data_reg : its_place;

    if (wr_en && wr_slot == watched && wr_beat == place) memory <= wr_data;
    if (resolve && resolve_stored && resolve_slot == watched) holding <= 1'b1;
    if ((reduced && reduced_slot == watched) || flush_slots[watched]) holding <= 1'b0;
    if (rst) begin
      at <= 0;
      all_full <= 1'b1;
      any_special <= 1'b0;
      had_place <= 1'b0;
      writes <= 1'b0;
      looked_at <= 1'b0;
      flight <= 1'b0;
      holding <= 1'b0;
    end
  end

  always @* begin
    for (n = 0; n < JOBS; n = n + 1)
    owns[n] = job_valid[n] && (watched & ~slot_mask[SLOT_BITS*n+:SLOT_BITS]) ==
          slot_base[SLOT_BITS*n+:SLOT_BITS];
    if (was_reset) begin
      // left_jobs: a job that is set up has slots of its own. The slots and the chunk length do not
      // change until the job has ended, and the slots are in flush_slots while it ends. The job is
      // not set up again, nor its slots reused, before that.
      for (n = 0; n < JOBS; n = n + 1) begin
        mask_n = slot_mask[SLOT_BITS*n+:SLOT_BITS];
        base_n = slot_base[SLOT_BITS*n+:SLOT_BITS];
        `PROMISED((base_n & mask_n) == 0);
        `PROMISED(!(flush[n] && job_valid[n]));
        if (running_was) begin
          `PROMISED(!(valid_was[n] && !job_valid[n]) || flush[n]);
          `PROMISED(!((flush_was[n] || flush_before[n]) && job_valid[n]));
          for (m = 0; m < JOBS; m = m + 1) begin
            mask_m = slot_mask[SLOT_BITS*m+:SLOT_BITS];
            base_m = slot_base[SLOT_BITS*m+:SLOT_BITS];
            `PROMISED(
                !(ended[n] && flush_was[n] && m != n && job_valid[m] &&
                       ((base_n ^ base_m) & ~(mask_n | mask_m)) == 0));
          end
          `PROMISED(
              !(valid_was[n] && !job_valid[n] && (watched & ~mask_n) == base_n) ||
                    flush_slots[watched]);
          `PROMISED(
              (mask_n == mask_was[SLOT_BITS*n+:SLOT_BITS] &&
                     base_n == base_was[SLOT_BITS*n+:SLOT_BITS] &&
                     job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]) ||
                    (!job_valid[n] && !valid_was[n] && !flush[n]));
        end
      end
      `PROMISED((owns & (owns - 1'b1)) == 0);
      `PROMISED(!(owns != 0 && flush_slots[watched]));
      // left_arbiter grants only requests. left_commit and left_slots judge them two cycles later:
      // written data is resolved for the slot of its job and VID. It is stored only if the job is
      // set up and the slot holds no contribution of this port.
      `PROMISED(!req_grant || req_valid);
      `PROMISED(resolve == (flight && flight_writes));
      `PROMISED(!resolve || resolve_slot == flight_slot);
      `PROMISED(!(resolve && resolve_stored) || job_valid[flight_job]);
      `PROMISED(!(resolve && resolve_stored && resolve_slot == watched) || !holding);
      // left_reader and left_writer: a slot that is summed held a contribution.
      `PROMISED(!(reduced && reduced_slot == watched) || holding || flush_slots[watched]);
    end
    if (was_reset && !rst) begin
      // The packet: header_reg has the header of its first beat, and the flags are correct.
      assert (a_first_reg == (at == 0) || !a_valid_reg);
      assert (s_first_reg == (a_valid_reg ? a_last_reg : at == 0));
      assert (at == 0 || beat_reg == at);
      if (a_valid_reg || at != 0)
        assert (data_reg == (header_reg[7:4] == KIND_DATA && number < JOBS));
      if (at != 0) assert (full_reg == all_full && nonfinite_reg == any_special);
      if (at != 0) assert (writable_reg == writes);
      if (a_valid_reg && at == 0 && slot == watched)
        assert (writable == (header_reg[7:4] == KIND_DATA && number < JOBS && job_valid[job] &&
            !holding));
      if (at != 0 && writes)
        assert ((job_valid[job] || flush[job]) && header_reg[7:4] == KIND_DATA);
      assert (had_place == (at > place));
      if (a_valid_reg && a_last_reg && !queued_reg && req_valid) begin
        assert (req_data[98] == (a_full_reg && (at == 0 || all_full) &&
            at == job_last[INDEX_BITS*job+:INDEX_BITS]));
        assert (req_data[99] == a_bad_reg && req_data[97:0] == header_reg);
        assert (req_data[100] == (a_nonfinite_reg || (at != 0 && any_special)));
      end

      // A contribution that is not yet summed is not overwritten, nor is data awaiting its verdict.
      assert (busy_reg[watched] == holding);
      if (wr_en && wr_slot == watched) assert (!holding && !in_queue && !in_flight);
      if (at != 0 && writes && slot == watched && job_valid[job])
        assert (!holding && !in_queue && !in_flight);
      if (wr_en) assert (job_valid[job] && wr_beat <= job_last[INDEX_BITS*job+:INDEX_BITS]);

      // Stored data is the packet's data.
      if (at != 0 && writes && had_place && slot == watched &&
          place <= job_last[INDEX_BITS*job+:INDEX_BITS])
        assert (memory == its_place);
      if (in_queue && place <= job_last[INDEX_BITS*queue_job+:INDEX_BITS] && queue_reg[98])
        assert (memory == queue_has);
      if (is_looked_at && place <= job_last[INDEX_BITS*looked_job+:INDEX_BITS] && looked_whole)
        assert (memory == looked_has);
      if (is_judged && place <= job_last[INDEX_BITS*flight_job+:INDEX_BITS] && flight_whole)
        assert (memory == flight_has);

      // A port waits only for its own packets, until their verdict: written data is judged.
      assert (flush_slots[watched] || pending_reg[watched] == (in_queue || in_flight));
      assert (in_queue + is_looked_at + is_judged <= 1);
      if (queued_reg && queue_reg[101])
        assert ((job_valid[queue_job] || flush[queue_job]) && queue_reg[7:4] == KIND_DATA);
      if (looked_at && looked_writes)
        assert (job_valid[looked_job] || flush[looked_job] || flush_was[looked_job]);
      if (flight && flight_writes)
        assert (job_valid[flight_job] || flush[flight_job] || flush_was[flight_job] ||
                flush_before[flight_job]);
      if (a_valid_reg && !s_axis_tready) assert (waits || (a_last_reg && queued_reg));

      cover (resolve && resolve_stored && resolve_slot == watched && job_last != 0);
      cover (a_valid_reg && waits);
      cover (in_queue && flight && flight_writes && a_valid_reg);
      cover (wr_en && wr_slot == watched && owns == 2 && flush[0]);
    end
  end

  reg looked_whole, flight_whole;
  always @(posedge clk) begin
    looked_whole <= req_data[98];
    flight_whole <= looked_whole;
  end
`endif

endmodule

`default_nettype wire

// Counts one job's NaNs, infinities and overflows: contributions with a NaN or an infinity,
// elements of sums that are one, and elements that overflowed. Keeps the VID of the first of each,
// so that a host can find the element.
//
// The counts saturate. They are cleared when the job is set up, not when it ends.
//
// Latency: a packet stored in cycle 0 and a sum written in cycle 0, with its numbers in cycle 1,
// are counted from cycle 2 on. Not done here: the card's counters (left_counters).

`default_nettype none

module left_job_counts #(
    parameter integer COUNT_BITS = 5  // width of a number of lanes
) (
    input wire clk,
    input wire rst,
    input wire clear, // the job is set up

    // A packet is committed:
    input wire        stored_nonfinite,  // it is stored, and has a NaN or an infinity
    input wire [31:0] vid,
    input wire [ 7:0] rank,

    // A beat of a sum is written; in the next cycle, the number of its elements that
    input wire                  wr_en,
    input wire [          31:0] wr_vid,
    input wire [COUNT_BITS-1:0] nonfinite,  // are NaN or infinite
    input wire [COUNT_BITS-1:0] overflow,   // overflowed

    // Register values
    output wire [31:0] nonfinite_in,
    output wire [31:0] nonfinite_out,
    output wire [31:0] overflows,
    output wire [63:0] first_in,
    output wire [63:0] first_out,
    output wire [63:0] first_overflow
);

  reg clear_reg, written_reg;
  reg stored_reg;
  reg [31:0] stored_vid_reg, sum_vid_reg;
  reg [7:0] stored_rank_reg;

  reg [31:0] in_reg, out_reg, overflow_reg;
  reg in_any_reg, out_any_reg, overflow_any_reg;
  reg [31:0] in_vid_reg, out_vid_reg, overflow_vid_reg;
  reg [7:0] in_rank_reg;

  wire [32:0] in_next = {1'b0, in_reg} + 33'd1;
  wire [COUNT_BITS-1:0] more_out = written_reg ? nonfinite : {COUNT_BITS{1'b0}};
  wire [COUNT_BITS-1:0] more_overflow = written_reg ? overflow : {COUNT_BITS{1'b0}};
  wire [32:0] out_next = {1'b0, out_reg} + {{33 - COUNT_BITS{1'b0}}, more_out};
  wire [32:0] overflow_next = {1'b0, overflow_reg} + {{33 - COUNT_BITS{1'b0}}, more_overflow};

  always @(posedge clk) begin
    clear_reg       <= clear;
    stored_reg      <= stored_nonfinite;
    stored_vid_reg  <= vid;
    stored_rank_reg <= rank;
    written_reg     <= wr_en;
    sum_vid_reg     <= wr_vid;

    if (stored_reg) in_reg <= in_next[31:0] | {32{in_next[32]}};
    out_reg      <= out_next[31:0] | {32{out_next[32]}};
    overflow_reg <= overflow_next[31:0] | {32{overflow_next[32]}};

    if (stored_reg && !in_any_reg) begin
      in_vid_reg  <= stored_vid_reg;
      in_rank_reg <= stored_rank_reg;
    end
    if (!out_any_reg) out_vid_reg <= sum_vid_reg;
    if (!overflow_any_reg) overflow_vid_reg <= sum_vid_reg;
    if (stored_reg) in_any_reg <= 1'b1;
    if (more_out != {COUNT_BITS{1'b0}}) out_any_reg <= 1'b1;
    if (more_overflow != {COUNT_BITS{1'b0}}) overflow_any_reg <= 1'b1;

    if (rst || clear_reg) begin
      stored_reg       <= 1'b0;
      in_reg           <= 32'd0;
      out_reg          <= 32'd0;
      overflow_reg     <= 32'd0;
      in_any_reg       <= 1'b0;
      out_any_reg      <= 1'b0;
      overflow_any_reg <= 1'b0;
    end
  end

  assign nonfinite_in   = in_reg;
  assign nonfinite_out  = out_reg;
  assign overflows      = overflow_reg;
  assign first_in       = in_any_reg ? {1'b1, 23'd0, in_rank_reg, in_vid_reg} : 64'd0;
  assign first_out      = out_any_reg ? {1'b1, 31'd0, out_vid_reg} : 64'd0;
  assign first_overflow = overflow_any_reg ? {1'b1, 31'd0, overflow_vid_reg} : 64'd0;

endmodule

`default_nettype wire

// Sets up jobs, ends them, and holds their configuration.
//
// An operation (commit, abort, end of all) is requested on op_*, stable until op_done, with the
// reply in op_code. For a commit, all checks are made first, one cycle before it starts, in the
// order of the specification. Then slots are allotted: twice the window, aligned to that size, at
// the first place that no other job uses; one cycle for each place tried. Then the running job with
// this number ends, and the new one is set up.
//
// A job ends by an operation, when the link goes down, or when all its ranks have finished. Its bit
// of flush is then high, for at least one cycle and until its reductions have drained, with its
// slots in flush_slots; other jobs keep running. When all jobs end at once, by the link or an
// operation, quiet is high together with flush: no packet may be judged. The statuses of an ending
// job are dropped unless all ranks have finished: then they include the answers. hold is high while
// a job ends or is set up. A link that goes down cancels the operation: no job is set up, and op_*
// need not be stable. link_down stays high until hold has been low for a while (left_link_session);
// by then all jobs have ended.
//
// An evicted member keeps its rank and is no longer waited for, not even to finish. Vectors have
// job 0 in the lowest bits. Slots, window and chunk of a job are valid until it has drained. Not
// done here: ownership of the card (left_registers).

`default_nettype none

module left_jobs #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS = 1,  // number of jobs, a power of two
    parameter integer JOB_BITS = 1,  // width of a job number, at least 1
    parameter integer CHUNK = 256,  // maximum chunk length, in elements
    parameter integer WINDOW = 8,  // maximum window, in chunks; the card has twice as many slots
    parameter integer SLOT_BITS = 4,  // width of a slot number
    parameter integer INDEX_BITS = 4,  // width of a beat's number in its chunk
    parameter integer LANE_BITS = 4  // log2 of the lanes
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // Operations
    input wire op_valid,
    input wire op_commit,  // set up a job
    input wire op_abort,  // end the job, if its epoch is op_epoch; neither: end all
    input wire [7:0] op_job,
    input wire [15:0] op_epoch,
    input wire [31:0] op_first,
    input wire [63:0] op_ports,
    input wire [63:0] op_chunk,
    input wire [63:0] op_window,
    input wire [63:0] op_deadline,
    output wire op_done,
    output wire [7:0] op_code,

    // From left_slots
    input wire                finish,
    input wire [JOB_BITS-1:0] finish_job,
    input wire [   PORTS-1:0] finish_bit,  // rank that has finished
    input wire [    JOBS-1:0] drained,     // no reduction of the job is under way
    input wire [   PORTS-1:0] evict,       // ports to evict
    input wire [JOB_BITS-1:0] evict_job,   // from this job
    input wire [   PORTS-1:0] evict_ranks, // its evicted ranks, these included

    // Ends and beginnings
    output wire [          JOBS-1:0] flush,
    output wire [(1<<SLOT_BITS)-1:0] flush_slots,
    output wire                      quiet,
    output wire                      hold,
    output wire [          JOBS-1:0] drop_statuses,
    output wire [          JOBS-1:0] sets_up,        // a job is set up, its predecessor forgotten
    output wire [      JOB_BITS-1:0] sets_up_job,    // that job, until cleared
    input  wire                      cleared,        // its predecessor's counts are cleared

    // Jobs
    output wire [           JOBS-1:0] job_valid,
    output wire [           JOBS-1:0] job_complete,  // the last one ended: all had finished
    output wire [           JOBS-1:0] job_ever,      // an epoch was ever set
    output wire [        16*JOBS-1:0] job_epoch,
    output wire [        16*JOBS-1:0] job_chunk,     // in elements
    output wire [INDEX_BITS*JOBS-1:0] job_last,      // number of a chunk's last beat
    output wire [ SLOT_BITS*JOBS-1:0] job_window,    // in chunks
    output wire [ SLOT_BITS*JOBS-1:0] slot_mask,     // 2 * window - 1
    output wire [ SLOT_BITS*JOBS-1:0] slot_base,     // first slot
    output wire [        32*JOBS-1:0] job_first,     // first VID
    output wire [        32*JOBS-1:0] job_deadline,  // in cycles; 0: none
    output wire [           JOBS-1:0] job_partial,   // partial sums allowed
    output wire [     PORTS*JOBS-1:0] job_finished,  // ranks that have finished
    output wire [     PORTS*JOBS-1:0] job_evicted,   // ranks that were evicted
    output wire [     PORTS*JOBS-1:0] evicted,       // by port
    output wire [     PORTS*JOBS-1:0] present,       // members not evicted, by port
    output wire [     PORTS*JOBS-1:0] member,        // members, by port
    output wire [   8*PORTS*JOBS-1:0] rank_of_port
);

  localparam [7:0] CODE_DONE = 8'd0;
  localparam [7:0] CODE_BAD_JOB = 8'd18;
  localparam [7:0] CODE_BAD_EPOCH = 8'd19;
  localparam [7:0] CODE_BAD_PORTS = 8'd34;
  localparam [7:0] CODE_BAD_CHUNK = 8'd35;
  localparam [7:0] CODE_BAD_WINDOW = 8'd36;
  localparam [7:0] CODE_STALE_EPOCH = 8'd37;
  localparam [7:0] CODE_EPOCH_IN_USE = 8'd38;
  localparam [7:0] CODE_NO_SLOTS = 8'd39;
  localparam [7:0] CODE_BAD_DEADLINE = 8'd40;

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [JOBS-1:0] ONE_JOB = 1;

  localparam [2:0] STATE_IDLE = 3'd0;
  localparam [2:0] STATE_ALLOT = 3'd1;  // find slots for the new job
  localparam [2:0] STATE_FLUSH = 3'd2;  // wait for the old job to drain
  localparam [2:0] STATE_RANKS = 3'd3;  // assign ranks to the new job
  localparam [2:0] STATE_CLEAR = 3'd4;  // clear the counts of the old job

  localparam [63:0] MOST_CHUNK = {32'd0, CHUNK};
  localparam [63:0] MOST_WINDOW = {32'd0, WINDOW};
  localparam [63:0] LANES = 64'd1 << LANE_BITS;

  reg [2:0] state_reg;
  reg [JOBS-1:0] flush_reg;  // ending jobs
  reg [JOB_BITS-1:0] flush_job_reg;  // the ending job unless all end; the job being set up
  reg flush_all_reg;
  reg flush_slots_reg;  // the ending job was set up, so it has slots
  reg set_up_reg;  // a new job follows the flush
  reg reply_reg;  // an operation waits for its reply
  reg keep_statuses_reg;
  reg done_reg;
  reg [7:0] code_reg;
  reg [SLOT_BITS-1:0] place_reg;  // candidate place for slots

  reg [JOBS-1:0] valid_reg, complete_reg, ever_reg;
  reg [16*JOBS-1:0] epoch_reg;
  reg [PORTS*JOBS-1:0] ports_reg;
  reg [16*JOBS-1:0] chunk_reg;
  reg [INDEX_BITS*JOBS-1:0] last_reg;
  reg [SLOT_BITS*JOBS-1:0] window_reg;
  reg [SLOT_BITS*JOBS-1:0] mask_reg;
  reg [SLOT_BITS*JOBS-1:0] base_reg;
  reg [32*JOBS-1:0] first_reg;
  reg [33*JOBS-1:0] deadline_reg;  // {partial sums, cycles}
  reg [PORTS*JOBS-1:0] finished_reg;
  reg [PORTS*JOBS-1:0] evicted_reg, evicted_ranks_reg;

  // -- Checks -------------------------------------------------------------------------------------

  wire [7:0] op_beyond = op_job >> (JOBS == 1 ? 0 : JOB_BITS);  // 0 if the job exists
  wire [JOB_BITS-1:0] op_index = JOBS == 1 ? {JOB_BITS{1'b0}} : op_job[JOB_BITS-1:0];

  wire [15:0] epoch_now = epoch_reg[16*op_index+:16];
  wire [63:0] ports_now = {{64 - PORTS{1'b0}}, ports_reg[PORTS*op_index+:PORTS]};
  wire [63:0] chunk_now = {48'd0, chunk_reg[16*op_index+:16]};
  wire [63:0] window_now = {{64 - SLOT_BITS{1'b0}}, window_reg[SLOT_BITS*op_index+:SLOT_BITS]};
  wire [31:0] first_now = first_reg[32*op_index+:32];
  wire [63:0] deadline_now = {31'd0, deadline_reg[33*op_index+:33]};
  wire valid_now = valid_reg[op_index];

  wire running = valid_now && op_epoch == epoch_now;  // already set up, with this epoch
  wire same = op_ports == ports_now && op_chunk == chunk_now && op_window == window_now &&
      op_deadline == deadline_now && op_first == first_now;
  wire [15:0] newer = op_epoch - epoch_now;
  wire other_epoch = op_epoch != epoch_now;
  wire stale = ever_reg[op_index] && (newer == 16'd0 || newer[15]);
  wire ports_good = op_ports != 64'd0 && (op_ports >> PORTS) == 64'd0;
  wire chunk_good = op_chunk != 64'd0 && op_chunk <= MOST_CHUNK &&
      (op_chunk & (LANES - 64'd1)) == 64'd0;
  wire window_good = op_window != 64'd0 && op_window <= MOST_WINDOW &&
      (op_window & (op_window - 64'd1)) == 64'd0;
  wire deadline_good = (op_deadline >> 33) == 64'd0 &&
      !(op_deadline[32] && op_deadline[31:0] == 32'd0);

  // Results of the checks one cycle ago, for an operation that was pending while idle
  reg checked_reg;
  reg beyond_reg, running_reg, same_reg, other_epoch_reg, stale_reg;
  reg ports_good_reg, chunk_good_reg, window_good_reg, deadline_good_reg;

  always @(posedge clk) begin
    checked_reg       <= state_reg == STATE_IDLE && op_valid && !done_reg && !link_down && !rst;
    beyond_reg        <= op_beyond != 8'd0;
    running_reg       <= running;
    same_reg          <= same;
    other_epoch_reg   <= other_epoch;
    stale_reg         <= stale;
    ports_good_reg    <= ports_good;
    chunk_good_reg    <= chunk_good;
    window_good_reg   <= window_good;
    deadline_good_reg <= deadline_good;
  end

  reg [7:0] op_check;  // CODE_DONE if all checks pass

  always @* begin
    op_check = CODE_DONE;
    if (op_commit) begin
      if (beyond_reg) op_check = CODE_BAD_JOB;
      else if (running_reg && !same_reg) op_check = CODE_EPOCH_IN_USE;
      else if (running_reg) op_check = CODE_DONE;
      else if (stale_reg) op_check = CODE_STALE_EPOCH;
      else if (!ports_good_reg) op_check = CODE_BAD_PORTS;
      else if (!chunk_good_reg) op_check = CODE_BAD_CHUNK;
      else if (!window_good_reg) op_check = CODE_BAD_WINDOW;
      else if (!deadline_good_reg) op_check = CODE_BAD_DEADLINE;
    end else if (op_abort) begin
      if (beyond_reg) op_check = CODE_BAD_JOB;
      else if (valid_now && other_epoch_reg) op_check = CODE_BAD_EPOCH;
    end
  end

  wire op_all = !op_commit && !op_abort;
  wire op_starts = op_valid && !done_reg && checked_reg && !link_down;
  wire op_changes = op_check == CODE_DONE &&
      (op_commit ? !running_reg : op_abort ? valid_now : |valid_reg);

  // -- Slots for a new job ------------------------------------------------------------------------

  wire [SLOT_BITS-1:0] new_window = op_window[SLOT_BITS-1:0];
  wire [SLOT_BITS-1:0] new_mask = (new_window << 1) - 1'b1;
  wire [SLOT_BITS-1:0] next_place = (place_reg | new_mask) + 1'b1;  // 0 after the last place

  reg taken;  // another job has slots there
  integer other;

  always @* begin
    taken = 1'b0;
    for (other = 0; other < JOBS; other = other + 1) begin
      if (valid_reg[other] && other[JOB_BITS-1:0] != op_index &&
          ((place_reg ^ base_reg[SLOT_BITS*other+:SLOT_BITS]) &
           ~(new_mask | mask_reg[SLOT_BITS*other+:SLOT_BITS])) == {SLOT_BITS{1'b0}})
        taken = 1'b1;
    end
  end

  // -- Jobs that all ranks have finished ----------------------------------------------------------

  wire [PORTS*JOBS-1:0] job_ranks;  // a bit for every assigned rank
  reg [JOBS-1:0] all_finished;
  reg [JOB_BITS-1:0] finished_job;  // lowest of these jobs
  integer j;

  always @* begin
    finished_job = {JOB_BITS{1'b0}};
    for (j = JOBS - 1; j >= 0; j = j - 1) begin
      all_finished[j] = valid_reg[j] && (job_ranks[PORTS*j+:PORTS] & ~finished_reg[PORTS*j+:PORTS] &
                                         ~evicted_ranks_reg[PORTS*j+:PORTS]) == {PORTS{1'b0}};
      if (all_finished[j]) finished_job = j[JOB_BITS-1:0];
    end
  end

  // -- States -------------------------------------------------------------------------------------

  wire asked = reply_reg && !link_down;  // the requester is still connected
  wire follows = set_up_reg && asked;  // a new job follows
  wire flushed = &(drained | ~flush_reg);
  wire ranks_start = state_reg == STATE_FLUSH && flushed && follows;
  wire ranks_done;

  left_ranks #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .JOBS     (JOBS),
      .JOB_BITS (JOB_BITS)
  ) u_ranks (
      .clk         (clk),
      .rst         (rst),
      .start       (ranks_start),
      .job         (flush_job_reg),
      .ports       (op_ports[PORTS-1:0]),
      .done        (ranks_done),
      .member      (member),
      .rank_of_port(rank_of_port),
      .ranks       (job_ranks)
  );

  integer f;

  always @(posedge clk) begin
    done_reg <= 1'b0;
    if (finish && valid_reg[finish_job])
      finished_reg[PORTS*finish_job+:PORTS] <= finished_reg[PORTS*finish_job+:PORTS] | finish_bit;

    if (|evict) begin
      evicted_reg[PORTS*evict_job+:PORTS] <= evicted_reg[PORTS*evict_job+:PORTS] | evict;
      evicted_ranks_reg[PORTS*evict_job+:PORTS] <= evict_ranks;
    end

    case (state_reg)
      STATE_IDLE: begin
        flush_reg         <= {JOBS{1'b1}};
        flush_all_reg     <= 1'b1;
        flush_slots_reg   <= 1'b0;
        set_up_reg        <= 1'b0;
        reply_reg         <= 1'b0;
        keep_statuses_reg <= 1'b0;
        code_reg          <= op_check;
        place_reg         <= {SLOT_BITS{1'b0}};
        if (link_down && |valid_reg) begin
          state_reg    <= STATE_FLUSH;
          complete_reg <= (complete_reg & ~valid_reg) | all_finished;
          valid_reg    <= {JOBS{1'b0}};
        end else if (|all_finished) begin
          state_reg                  <= STATE_FLUSH;
          flush_reg                  <= ONE_JOB << finished_job;
          flush_job_reg              <= finished_job;
          flush_all_reg              <= 1'b0;
          flush_slots_reg            <= 1'b1;
          keep_statuses_reg          <= 1'b1;
          complete_reg[finished_job] <= 1'b1;
          valid_reg[finished_job]    <= 1'b0;
        end else if (op_starts && op_changes) begin
          state_reg  <= op_commit ? STATE_ALLOT : STATE_FLUSH;
          set_up_reg <= op_commit;
          reply_reg  <= 1'b1;
          if (op_all) begin
            valid_reg <= {JOBS{1'b0}};
          end else begin
            flush_reg       <= ONE_JOB << op_index;
            flush_job_reg   <= op_index;
            flush_all_reg   <= 1'b0;
            flush_slots_reg <= valid_now;
            if (op_abort) valid_reg[op_index] <= 1'b0;
          end
        end else if (op_starts) begin
          done_reg <= 1'b1;
        end
      end

      STATE_ALLOT: begin
        if (!asked) begin
          state_reg <= STATE_IDLE;
        end else if (!taken) begin
          state_reg           <= STATE_FLUSH;
          valid_reg[op_index] <= 1'b0;
        end else if (next_place == {SLOT_BITS{1'b0}}) begin
          state_reg <= STATE_IDLE;
          done_reg  <= 1'b1;
          code_reg  <= CODE_NO_SLOTS;
        end
        if (taken) place_reg <= next_place;
      end

      STATE_FLUSH: begin
        for (f = 0; f < JOBS; f = f + 1) begin
          if (flush_reg[f]) finished_reg[PORTS*f+:PORTS] <= {PORTS{1'b0}};
        end
        if (flushed) begin
          state_reg <= ranks_start ? STATE_RANKS : STATE_IDLE;
          done_reg  <= asked && !ranks_start;
        end
        if (ranks_start) begin
          complete_reg[op_index]                    <= 1'b0;
          evicted_reg[PORTS*op_index+:PORTS]        <= {PORTS{1'b0}};
          evicted_ranks_reg[PORTS*op_index+:PORTS]  <= {PORTS{1'b0}};
          deadline_reg[33*op_index+:33]             <= op_deadline[32:0];
          ever_reg[op_index]                        <= 1'b1;
          epoch_reg[16*op_index+:16]                <= op_epoch;
          ports_reg[PORTS*op_index+:PORTS]          <= op_ports[PORTS-1:0];
          chunk_reg[16*op_index+:16]                <= op_chunk[15:0];
          last_reg[INDEX_BITS*op_index+:INDEX_BITS] <= op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1;
          window_reg[SLOT_BITS*op_index+:SLOT_BITS] <= new_window;
          mask_reg[SLOT_BITS*op_index+:SLOT_BITS]   <= new_mask;
          base_reg[SLOT_BITS*op_index+:SLOT_BITS]   <= place_reg;
          first_reg[32*op_index+:32]                <= op_first;
        end
      end

      STATE_RANKS: if (ranks_done) state_reg <= STATE_CLEAR;

      default: begin
        if (cleared) begin
          state_reg                <= STATE_IDLE;
          valid_reg[flush_job_reg] <= asked;
          done_reg                 <= asked;
        end
      end
    endcase

    if (link_down) reply_reg <= 1'b0;
    if (rst) begin
      state_reg         <= STATE_FLUSH;
      flush_reg         <= {JOBS{1'b1}};
      flush_all_reg     <= 1'b1;
      flush_slots_reg   <= 1'b0;
      set_up_reg        <= 1'b0;
      reply_reg         <= 1'b0;
      keep_statuses_reg <= 1'b0;
      done_reg          <= 1'b0;
      valid_reg         <= {JOBS{1'b0}};
      complete_reg      <= {JOBS{1'b0}};
      ever_reg          <= {JOBS{1'b0}};
      epoch_reg         <= {16 * JOBS{1'b0}};
      chunk_reg         <= {16 * JOBS{1'b0}};
      last_reg          <= {INDEX_BITS * JOBS{1'b0}};
      window_reg        <= {JOBS{{{SLOT_BITS - 1{1'b0}}, 1'b1}}};
      mask_reg          <= {SLOT_BITS * JOBS{1'b1}};
      base_reg          <= {SLOT_BITS * JOBS{1'b0}};
      first_reg         <= {32 * JOBS{1'b0}};
      deadline_reg      <= {33 * JOBS{1'b0}};
      finished_reg      <= {PORTS * JOBS{1'b0}};
      evicted_reg       <= {PORTS * JOBS{1'b0}};
      evicted_ranks_reg <= {PORTS * JOBS{1'b0}};
    end
  end

  // -- Ends ---------------------------------------------------------------------------------------

  wire flushes = state_reg == STATE_FLUSH;
  wire [SLOT_BITS-1:0] flush_mask = mask_reg[SLOT_BITS*flush_job_reg+:SLOT_BITS];
  wire [SLOT_BITS-1:0] flush_base = base_reg[SLOT_BITS*flush_job_reg+:SLOT_BITS];

  // The job's slots: one bit each, starting at its first
  wire [SLOTS-1:0] above = {SLOTS{1'b1}} << flush_mask << 1;
  wire [SLOTS-1:0] one_slots = flush_slots_reg ? ~above << flush_base : {SLOTS{1'b0}};

  assign op_done       = done_reg;
  assign op_code       = code_reg;
  assign flush         = flushes ? flush_reg : {JOBS{1'b0}};
  assign flush_slots   = !flushes ? {SLOTS{1'b0}} : flush_all_reg ? {SLOTS{1'b1}} : one_slots;
  assign quiet         = flushes && flush_all_reg;
  assign hold          = state_reg != STATE_IDLE;
  assign drop_statuses = {JOBS{link_down}} | (keep_statuses_reg ? {JOBS{1'b0}} : flush);
  assign sets_up       = ranks_start ? ONE_JOB << op_index : {JOBS{1'b0}};
  assign sets_up_job   = flush_job_reg;
  assign job_valid     = valid_reg;
  assign job_complete  = complete_reg;
  assign job_ever      = ever_reg;
  assign job_epoch     = epoch_reg;
  assign job_chunk     = chunk_reg;
  assign job_last      = last_reg;
  assign job_window    = window_reg;
  assign slot_mask     = mask_reg;
  assign slot_base     = base_reg;
  assign job_first     = first_reg;
  assign job_finished  = finished_reg;
  assign job_evicted   = evicted_ranks_reg;
  assign evicted       = evicted_reg;
  assign present       = member & ~evicted_reg;

  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : g_deadline
      assign {job_partial[g], job_deadline[32*g+:32]} = deadline_reg[33*g+:33];
    end
  endgenerate

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Any job, any other job, and any slot.
  (* anyconst *) reg [JOB_BITS-1:0] watched, rival;
  (* anyconst *) reg [SLOT_BITS-1:0] slot;
  localparam integer JOB_WIDTH = 97 + PORTS + INDEX_BITS + 3 * SLOT_BITS;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  wire [JOB_WIDTH-1:0] its = {
    deadline_reg[33*watched+:33],
    epoch_reg[16*watched+:16],
    chunk_reg[16*watched+:16],
    first_reg[32*watched+:32],
    ports_reg[PORTS*watched+:PORTS],
    last_reg[INDEX_BITS*watched+:INDEX_BITS],
    window_reg[SLOT_BITS*watched+:SLOT_BITS],
    mask_reg[SLOT_BITS*watched+:SLOT_BITS],
    base_reg[SLOT_BITS*watched+:SLOT_BITS]
  };
  wire [SLOT_BITS-1:0] its_window = window_reg[SLOT_BITS*watched+:SLOT_BITS];
  wire [SLOT_BITS-1:0] its_mask = mask_reg[SLOT_BITS*watched+:SLOT_BITS];
  wire [SLOT_BITS-1:0] its_base = base_reg[SLOT_BITS*watched+:SLOT_BITS];
  wire [SLOT_BITS-1:0] rival_mask = mask_reg[SLOT_BITS*rival+:SLOT_BITS];
  wire [SLOT_BITS-1:0] rival_base = base_reg[SLOT_BITS*rival+:SLOT_BITS];
  wire [PORTS-1:0] its_member = member[PORTS*watched+:PORTS];
  wire [8*PORTS-1:0] its_ranks = rank_of_port[8*PORTS*watched+:8*PORTS];
  wire [PORTS-1:0] its_rank_bits = job_ranks[PORTS*watched+:PORTS];
  wire [PORTS-1:0] its_finished = finished_reg[PORTS*watched+:PORTS];
  wire has_slot = (slot & ~its_mask) == its_base;
  wire is_set_up = valid_reg[watched];
  wire meet = ((its_base ^ rival_base) & ~(its_mask | rival_mask)) == 0;
  reg [JOB_WIDTH-1:0] its_were;
  reg [9*PORTS-1:0] ranks_were;
  reg [122:0] op_was;
  reg [191:0] op_rest_was;
  reg op_stays, set_up_was, flush_was, drained_was, ends, ends_was, link_was;
  reg [PORTS-1:0] finished_was;
  reg [7:0] count;  // ranks assigned to lower ports
  integer q;

  // The operation.
  wire [SLOT_BITS-1:0] op_mask = (op_window[SLOT_BITS-1:0] << 1) - 1'b1;
  wire is_op = op_index == watched;
  wire gives = state_reg == STATE_RANKS || state_reg == STATE_CLEAR;
  reg slot_taken;  // not available to its job
  integer r;

  always @* begin
    slot_taken = 1'b0;
    for (r = 0; r < JOBS; r = r + 1)
    if (valid_reg[r] && r != op_index && ((slot ^ base_reg[SLOT_BITS*r+:SLOT_BITS]) &
          ~(op_mask | mask_reg[SLOT_BITS*r+:SLOT_BITS])) == 0)
      slot_taken = 1'b1;
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    its_were <= its;
    ranks_were <= {its_member, its_ranks};
    op_was <= {op_commit, op_abort, op_job, op_epoch, op_first, op_ports};
    op_rest_was <= {op_chunk, op_window, op_deadline};
    op_stays <= !rst && op_valid && !op_done && !link_down;
    set_up_was <= is_set_up;
    flush_was <= flush[watched];
    ends_was <= is_set_up || ends;
    drained_was <= drained[watched];
    link_was <= link_down;
    finished_was <= its_finished;
    // It was set up when its end began.
    ends <= !rst && (is_set_up || ends) && !(flush[watched] && (&(drained | ~flush)));
  end

  always @* begin
    assume (rival != watched);
    if (was_reset) begin
      // left_registers: an operation is stable until its reply, unless the link goes down.
      `PROMISED(
          !op_stays || link_down || (op_valid &&
          op_was == {op_commit, op_abort, op_job, op_epoch, op_first, op_ports} &&
          op_rest_was == {op_chunk, op_window, op_deadline}));
      `PROMISED(!(op_commit && op_abort));
    end
    if (was_reset && !rst) begin
      // A job that is set up has the requested configuration and slots of its own, and its members'
      // ranks follow the order of the ports.
      if (is_set_up) begin
        assert (ever_reg[watched] && !flush[watched] && !sets_up[watched]);
        assert (its_window != 0 && (its_window & (its_window - 1'b1)) == 0 && its_window <= WINDOW);
        assert (its_mask == 2 * its_window - 1 && (its_base & its_mask) == 0);
        assert (its_member != 0 && its_member == ports_reg[PORTS*watched+:PORTS]);
        if (valid_reg[rival]) assert (!meet);
        assert (!flush_slots[slot] || !has_slot);
        assert (!quiet);
      end

      assert (state_reg <= STATE_CLEAR);
      if (checked_reg && state_reg == STATE_IDLE && op_valid && !link_down) begin
        assert (beyond_reg == (op_beyond != 0) && running_reg == running && same_reg == same);
        assert (other_epoch_reg == other_epoch && stale_reg == stale);
        assert (ports_good_reg == ports_good && chunk_good_reg == chunk_good);
        assert (window_good_reg == window_good && deadline_good_reg == deadline_good);
      end
      if (is_set_up || (gives && watched == flush_job_reg)) begin
        count = 0;
        for (q = 0; q < PORTS; q = q + 1) begin
          if (its_member[q]) begin
            assert (its_ranks[8*q+:8] == count);
            count = count + 1;
          end
        end
        for (q = 0; q < PORTS; q = q + 1) assert (its_rank_bits[q] == (q < count));
      end

      // From its end until it has drained, its bit of flush is high, its slots are in flush_slots,
      // and its configuration is still valid.
      if (running_was) begin
        if (set_up_was && !is_set_up) assert (flush[watched]);
        if (flush_was && !drained_was) assert (flush[watched]);
        if (flush_was) assert (!is_set_up);
        if (flush_was && ends_was && valid_reg[rival]) assert (!meet);
        assert (its == its_were || (flush_was && drained_was && !set_up_was));
        assert ({its_member, its_ranks} == ranks_were || (!set_up_was && !is_set_up));
        if (its != its_were) assert (!is_set_up && !flush[watched]);
      end
      if (ends && !is_set_up) assert (flush[watched]);
      if (valid_reg[rival] || (gives && rival == flush_job_reg))
        assert ((rival_base & rival_mask) == 0 && (rival_mask & (rival_mask + 1'b1)) == 0);
      if (flushes && flush_slots_reg)
        assert ((flush_base & flush_mask) == 0 && (flush_mask & (flush_mask + 1'b1)) == 0);
      if (flushes && flush_slots_reg && is_set_up)
        assert (((its_base ^ flush_base) & ~(its_mask | flush_mask)) != 0);
      if (ends && !is_set_up && has_slot) assert (flush_slots[slot]);

      // A finished rank stays finished; the job ends when all ranks have.
      if (running_was && is_set_up && set_up_was) begin
        assert ((finished_was & ~its_finished) == 0);
      end
      if (!is_set_up && !flush[watched] && !flush_was && running_was) assert (its_finished == 0);
      assert ((its_finished & ~finished_was) == 0 || !running_was || set_up_was);

      // A job is set up only with a reply, to a requester still connected, and as requested.
      if (running_was && is_set_up && !set_up_was)
        assert (op_done && op_valid || link_was || link_down);
      if (op_done && op_valid && op_commit && op_code == CODE_DONE && is_op &&
          !link_down && !link_was) begin
        assert (is_set_up && epoch_reg[16*watched+:16] == op_epoch);
        assert (first_reg[32*watched+:32] == op_first);
        assert ({48'd0, chunk_reg[16*watched+:16]} == op_chunk);
        assert ({31'd0, deadline_reg[33*watched+:33]} == op_deadline);
        assert ({{64 - SLOT_BITS{1'b0}}, its_window} == op_window);
        assert ({{64 - PORTS{1'b0}}, its_member} == op_ports);
      end

      // Sequence of an operation.
      if (state_reg == STATE_FLUSH && flush_all_reg) assert (&flush_reg && valid_reg == 0);
      if (state_reg == STATE_FLUSH && !flush_all_reg)
        assert (flush_reg == ONE_JOB << flush_job_reg && !valid_reg[flush_job_reg]);
      if (state_reg == STATE_ALLOT || gives) assert (set_up_reg);
      if (state_reg != STATE_IDLE && asked)
        assert (op_valid && !done_reg && code_reg == CODE_DONE && (set_up_reg || !op_commit));
      if (set_up_reg && state_reg != STATE_IDLE && asked) begin
        assert (op_commit && op_beyond == 0 && !running);
        assert (ports_good && chunk_good && window_good && deadline_good);
        if (!gives) assert (!stale);
        assert (!flush_all_reg && flush_job_reg == op_index && (place_reg & op_mask) == 0);
      end
      if (follows && state_reg == STATE_FLUSH) begin
        if (valid_reg[rival]) assert (((place_reg ^ rival_base) & ~(op_mask | rival_mask)) != 0);
        if (is_set_up) assert (((place_reg ^ its_base) & ~(op_mask | its_mask)) != 0);
      end
      if (gives) begin
        assert (!valid_reg[flush_job_reg]);
        if (rival == flush_job_reg && is_set_up) assert (!meet);
        if (watched == flush_job_reg) begin
          assert (its_window != 0 && (its_window & (its_window - 1'b1)) == 0);
          assert (its_window <= WINDOW && its_mask == 2 * its_window - 1);
          assert ((its_base & its_mask) == 0 && ever_reg[watched]);
          assert (its_member == ports_reg[PORTS*watched+:PORTS] && its_member != 0);
          if (valid_reg[rival]) assert (!meet);
          if (asked)
            assert (its == {op_deadline[32:0], op_epoch, op_chunk[15:0], op_first,
              op_ports[PORTS-1:0],
              op_chunk[LANE_BITS+:INDEX_BITS] - 1'b1, op_window[SLOT_BITS-1:0], op_mask, its_base});
        end
      end

      // CODE_NO_SLOTS only if no place is free.
      if (state_reg == STATE_ALLOT && asked && (slot & op_mask) == 0 && slot < place_reg)
        assert (slot_taken);
      if (op_done && op_valid && op_code == CODE_NO_SLOTS && op_commit && !link_was && !link_down &&
          (slot & op_mask) == 0)
        assert (slot_taken);

      cover (is_set_up && valid_reg[rival] && its_base != 0 && its_window == 1);
      cover (op_done && op_code == CODE_NO_SLOTS);
      cover (flush[watched] && !drained[watched] && valid_reg[rival]);
      cover (quiet && link_down && ends);
      cover (complete_reg[watched] && its_finished == 0 && valid_reg[rival]);
    end
  end
`endif

endmodule

`default_nettype wire

// Holds each slot's label from its completion to its next one: job, contributing ports, VID and
// marks. The readers of beats, the writer of sums and the sender of results each read the label of
// a slot of their own in the same cycle. A label written in cycle 0 is readable from cycle 1 on.
//
// sum_* is for use with a sum's tag; written_* is the same one cycle later, for use with its write.
// Not done here: job configuration (left_jobs). A label is undefined before its slot first
// completes.

`default_nettype none

module left_labels #(
    parameter integer PORTS     = 4,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,

    // A slot completes
    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [ JOB_BITS-1:0] complete_job,
    input wire [    PORTS-1:0] complete_ports,
    input wire [         31:0] complete_vid,
    input wire [          1:0] complete_ecn,
    input wire                 complete_nonfinite,

    // A beat enters the lanes
    input  wire [SLOT_BITS-1:0] beat_slot,
    output wire [    PORTS-1:0] beat_ports,

    // A sum leaves the lanes
    input  wire [SLOT_BITS-1:0] sum_slot,
    output wire [ JOB_BITS-1:0] sum_job,
    output wire [ JOB_BITS-1:0] written_job,
    output wire [         31:0] written_vid,

    // A result is sent
    input  wire [SLOT_BITS-1:0] send_slot,
    output wire [    PORTS-1:0] send_ports,
    output wire [         31:0] send_vid,
    output wire [          1:0] send_ecn,
    output wire                 send_nonfinite
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  // One memory for each reader.
  reg [PORTS-1:0] beat_labels[0:SLOTS-1];
  reg [JOB_BITS-1:0] sum_jobs[0:SLOTS-1];
  reg [31:0] sum_vids[0:SLOTS-1];
  reg [PORTS+34:0] send_labels[0:SLOTS-1];

  reg [JOB_BITS-1:0] job_reg;
  reg [31:0] vid_reg;

  always @(posedge clk) begin
    if (complete) begin
      beat_labels[complete_slot] <= complete_ports;
      sum_jobs[complete_slot] <= complete_job;
      sum_vids[complete_slot] <= complete_vid;
      send_labels[complete_slot] <= {
        complete_ports, complete_nonfinite, complete_ecn, complete_vid
      };
    end
    job_reg <= sum_jobs[sum_slot];
    vid_reg <= sum_vids[sum_slot];
  end

  assign beat_ports = beat_labels[beat_slot];
  assign sum_job = sum_jobs[sum_slot];
  assign written_job = job_reg;
  assign written_vid = vid_reg;
  assign {send_ports, send_nonfinite, send_ecn, send_vid} = send_labels[send_slot];

endmodule

`default_nettype wire

// Counts the lag of each rank's contributions behind the first contribution to the same chunk.
//
// Each job and rank has 16 counts: count 0 for first contributions; count k for lags of at least
// 4^(k-1) and less than 4^k cycles; count 15 for all longer lags too. Counts wrap at 2^32.
// Setting up a job clears its counts, one a cycle; while ready is low, the job must store
// nothing.
//
// Latency: a contribution stored in cycle 0 is counted in cycle 3. A count addressed in cycle 0
// is at value in cycle 1. Not done here: a contribution that never comes (left_deadlines).

`default_nettype none

module left_lags #(
    parameter integer RANK_BITS = 2,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input  wire                clear,      // starts clearing the counts of a new job
    input  wire [JOB_BITS-1:0] clear_job,  // that job; stable until ready
    output wire                ready,

    // A contribution is stored
    input wire                 store,
    input wire                 turn_over,  // the first of its chunk
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire [RANK_BITS-1:0] rank,

    // A count is read
    input  wire [ JOB_BITS-1:0] rd_job,
    input  wire [RANK_BITS-1:0] rd_rank,
    input  wire [          3:0] rd_bucket,
    output wire [         31:0] value
);

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam integer ADDR_BITS = JOB_BITS + RANK_BITS + 4;

  reg [31:0] since[0:SLOTS-1];  // arrival time of the first contribution
  reg [31:0] now_reg;

  // First stage: the lag
  reg store_reg;
  reg [31:0] lag_reg;
  reg [JOB_BITS+RANK_BITS-1:0] whose_reg;

  // Second stage: the number of the lag's count, which is read
  reg [3:0] bucket;
  integer b;

  always @* begin
    bucket = 4'd0;
    for (b = 0; b < 14; b = b + 1) if (|lag_reg[2*b+:2]) bucket = b[3:0] + 4'd1;
    if (|lag_reg[31:28]) bucket = 4'd15;
  end

  // Third stage: the count is incremented
  reg adds_reg;
  reg [ADDR_BITS-1:0] addr_reg;
  wire [31:0] count;

  reg clears_reg;
  reg [RANK_BITS+3:0] clear_reg;  // next count to clear

  wire [ADDR_BITS-1:0] rd_addr = {whose_reg, bucket};
  wire [ADDR_BITS-1:0] wr_addr = adds_reg ? addr_reg : {clear_job, clear_reg};
  wire [31:0] wr_data = adds_reg ? count + 32'd1 : 32'd0;

  always @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    if (turn_over) since[slot] <= now_reg;
    store_reg <= store;
    lag_reg   <= turn_over ? 32'd0 : now_reg - since[slot];
    whose_reg <= {job, rank};
    adds_reg  <= store_reg;
    addr_reg  <= rd_addr;

    if (clears_reg && !adds_reg) begin
      clear_reg  <= clear_reg + 1'b1;
      clears_reg <= !(&clear_reg);
    end
    if (clear) begin
      clear_reg  <= {RANK_BITS + 4{1'b0}};
      clears_reg <= 1'b1;
    end
    if (rst) begin
      now_reg    <= 32'd0;
      store_reg  <= 1'b0;
      adds_reg   <= 1'b0;
      clears_reg <= 1'b0;
    end
  end

  left_ram #(
      .WIDTH    (32),
      .ADDR_BITS(ADDR_BITS),
      .FORWARD  (1)
  ) u_counts (
      .clk    (clk),
      .wr_en  (adds_reg || clears_reg),
      .wr_addr(wr_addr),
      .wr_data(wr_data),
      .rd_en  (store_reg),
      .rd_addr(rd_addr),
      .rd_data(count)
  );

  // A copy, for the registers.
  left_ram #(
      .WIDTH    (32),
      .ADDR_BITS(ADDR_BITS),
      .FORWARD  (1)
  ) u_shown (
      .clk    (clk),
      .wr_en  (adds_reg || clears_reg),
      .wr_addr(wr_addr),
      .wr_data(wr_data),
      .rd_en  (1'b1),
      .rd_addr({rd_job, rd_rank, rd_bucket}),
      .rd_data(value)
  );

  assign ready = !clears_reg;

endmodule

`default_nettype wire

// Drives down while the card's side of a link is down: from the cycle after link_up falls until
// link_up is high and the previous host's traffic has drained (busy low for SETTLE cycles in a
// row). The shell accepts nothing of the next host before that.
//
// A reset starts with the link down. link_up must be synchronous to clk.

`default_nettype none

module left_link_session #(
    parameter integer SETTLE = 16  // cycles for the core to finish what it accepted: 1..255
) (
    input  wire clk,
    input  wire rst,
    input  wire link_up,
    input  wire busy,
    output wire down
);

  reg       down_reg;
  reg [7:0] quiet_reg;  // cycles without traffic

  always @(posedge clk) begin
    quiet_reg <= busy ? 8'd0 : quiet_reg + {7'd0, down_reg && quiet_reg != SETTLE[7:0]};
    if (quiet_reg == SETTLE[7:0] && !busy) down_reg <= 1'b0;
    if (rst || !link_up) begin
      down_reg  <= 1'b1;
      quiet_reg <= 8'd0;
    end
  end

  assign down = down_reg;

endmodule

`default_nettype wire

// Tracks, for one job, which ports are owed which slot's result, and picks the next result to send
// and its receivers. Members are identified by port, slots relative to the job's first one.
//
// A result whose first sum is written is owed to all members. It is first sent in the order of
// reduction, to the members that are ready (*fresh*). A scan, one slot a cycle, finds results still
// owed to members that were not ready or that repeat; what it finds precedes fresh results. A pass
// of the scan starts at the oldest VID and only serves ports that were ready at its start, so a
// port that was held up gets its oldest result first. Until then the port may also be sent fresh
// results.
//
// The pick is combinational and may change until taken; pick_take clears the receivers' owed bits
// and marks them as sent. Latency: a result begun in cycle 0 can be picked in cycle 1. Not done
// here: sending (left_egress).

`default_nettype none

module left_owed #(
    parameter integer PORTS     = 4,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // The job
    input wire                 flush,      // the job ends: nothing is owed
    input wire [SLOT_BITS-1:0] slot_mask,  // 2 * window - 1
    input wire [    PORTS-1:0] member,     // by port

    input wire                 begun,      // the slot's first sum is written
    input wire [SLOT_BITS-1:0] begun_slot,

    // From left_slots: the effect of a packet on its slot
    input wire [SLOT_BITS-1:0] slot,
    input wire                 turn_over,  // drops what was owed for the slot
    input wire                 owe,        // a port is owed the result, perhaps again
    input wire [    PORTS-1:0] port,       // that port, one-hot

    input wire [PORTS-1:0] ready,  // ports that can take a packet

    output wire                 pick_valid,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay,     // a receiver was sent it before
    input  wire                 pick_take
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [PORTS-1:0] owed[0:SLOTS-1];
  reg [PORTS-1:0] sent[0:SLOTS-1];
  reg [SLOTS-1:0] live_reg;  // a result exists; otherwise the slot's row is void
  reg [SLOTS-1:0] fresh_reg;  // the slot is in the queue of fresh results
  reg [SLOTS-1:0] scan_reg;  // the scan has to visit the slot

  // -- Fresh results ------------------------------------------------------------------------------

  wire head_valid;
  wire [SLOT_BITS-1:0] head;
  wire [PORTS-1:0] head_owed = live_reg[head] ? owed[head] : {PORTS{1'b0}};
  wire [PORTS-1:0] head_receivers = head_owed & ready;
  wire pop;
  wire stays = fresh_reg[begun_slot] && !(pop && head == begun_slot);
  wire push = begun && !stays && !flush;

  left_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_fresh (
      .clk       (clk),
      .clear     (rst || flush),
      .push      (push),
      .push_slot (begun_slot),
      .head_valid(head_valid),
      .head_slot (head),
      .pop       (pop)
  );

  // -- Scan ---------------------------------------------------------------------------------------

  reg [SLOT_BITS-1:0] newest_reg;  // slot that turned over last
  reg [SLOT_BITS-1:0] at_reg;  // the scan's position
  reg [SLOT_BITS-1:0] left_reg;  // slots left in this pass
  reg [PORTS-1:0] ready_reg;  // ports that were ready when the pass started

  wire at_owes = live_reg[at_reg] && scan_reg[at_reg] && !fresh_reg[at_reg];
  wire [PORTS-1:0] at_owed = at_owes ? owed[at_reg] : {PORTS{1'b0}};
  wire [PORTS-1:0] at_receivers = at_owed & ready & ready_reg;
  wire found = |at_receivers;
  wire pass_ends = left_reg == {SLOT_BITS{1'b0}};

  always @(posedge clk) begin
    if (turn_over) newest_reg <= slot;
    if (!found) begin
      at_reg   <= (pass_ends ? newest_reg + 1'b1 : at_reg + 1'b1) & slot_mask;
      left_reg <= pass_ends ? slot_mask : left_reg - 1'b1;
      if (pass_ends) ready_reg <= ready;
    end
    if (rst) begin
      newest_reg <= {SLOT_BITS{1'b0}};
      at_reg     <= {SLOT_BITS{1'b0}};
      left_reg   <= {SLOT_BITS{1'b0}};
      ready_reg  <= {PORTS{1'b0}};
    end
  end

  // -- Pick ---------------------------------------------------------------------------------------

  assign pick_valid     = !flush && (found || (head_valid && |head_receivers));
  assign pick_slot      = found ? at_reg : head;
  assign pick_receivers = found ? at_receivers : head_receivers;

  wire [PORTS-1:0] pick_sent = sent[pick_slot];
  wire [PORTS-1:0] pick_left = (found ? at_owed : head_owed) & ~pick_receivers;

  assign pick_replay = |(pick_receivers & pick_sent);
  assign pop         = head_valid && (~|head_owed || (pick_take && !found));

  always @(posedge clk) begin
    if (pick_take) begin
      owed[pick_slot]     <= pick_left;
      sent[pick_slot]     <= pick_sent | pick_receivers;
      scan_reg[pick_slot] <= |pick_left;
    end
    if (pop) fresh_reg[head] <= 1'b0;
    if (owe) begin
      owed[slot]     <= (pick_take && pick_slot == slot ? pick_left : owed[slot]) | port;
      scan_reg[slot] <= 1'b1;
    end
    if (turn_over) live_reg[slot] <= 1'b0;
    if (begun) begin
      owed[begun_slot]     <= member;
      sent[begun_slot]     <= {PORTS{1'b0}};
      live_reg[begun_slot] <= 1'b1;
      scan_reg[begun_slot] <= 1'b0;
    end
    if (push) fresh_reg[begun_slot] <= 1'b1;
    if (rst || flush) begin
      live_reg  <= {SLOTS{1'b0}};
      fresh_reg <= {SLOTS{1'b0}};
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the ports that are owed its result, and those that were sent it.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg flush_was;
  reg exists;  // a result exists
  reg [PORTS-1:0] due, had;
  reg [PORTS-1:0] member_was;
  reg [SLOT_BITS-1:0] mask_was;
  reg [7:0] steps;  // of the scan, at rest
  reg [1:0] passes;  // completed at rest; two of them have visited every slot
  reg [SLOT_BITS:0] fresh_count;
  wire [PORTS-1:0] taken = pick_take && pick_slot == watched ? pick_receivers : {PORTS{1'b0}};
  wire [PORTS-1:0] repeats = owe && slot == watched ? port : {PORTS{1'b0}};
  wire [SLOT_BITS-1:0] to_come = (watched - at_reg) & slot_mask;  // scan steps before the slot
  reg began = 1'b0;  // a pass of the scan started
  reg [SLOT_BITS-1:0] newest, first_was;
  reg [PORTS-1:0] can;  // ports that were ready then
  integer n;

  // At rest: no events, all ports are ready, and every pick is taken at once.
  wire at_rest = !rst && !flush && !begun && !turn_over && !owe &&
      &ready && pick_take == pick_valid;

  always @(posedge clk) begin
    flush_was <= flush;
    member_was <= member;
    mask_was <= slot_mask;
    steps <= !at_rest ? 0 : steps + (!found && steps < 2 * SLOTS);
    passes <= !at_rest ? 0 : passes + (!found && pass_ends && passes < 2);
    due <= due & ~taken | repeats;
    had <= had | taken;
    if (turn_over && slot == watched) exists <= 1'b0;
    if (begun && begun_slot == watched) begin
      exists <= 1'b1;
      due <= member;
      had <= 0;
    end
    began <= !rst && pass_ends && !found;
    first_was <= (newest + 1'b1) & slot_mask;
    if (turn_over) newest <= slot;
    if (pass_ends && !found) can <= ready;
    if (rst) begin
      was_reset <= 1'b1;
      newest <= 0;
      can <= 0;
    end
    if (rst || flush) exists <= 1'b0;
  end

  always @* begin
    fresh_count = 0;
    for (n = 0; n < SLOTS; n = n + 1) fresh_count = fresh_count + fresh_reg[n];
    if (was_reset) begin
      // left_jobs: window and members do not change until the job has ended.
      `PROMISED((slot_mask & (slot_mask + 1'b1)) == 0 && slot_mask != 0);
      `PROMISED(flush || flush_was || slot_mask == mask_was);
      `PROMISED(!begun || begun_slot <= slot_mask);
      `PROMISED(!turn_over || slot <= slot_mask);
      // left_slots: after a slot turns over, it has no result until its sum begins; until then
      // nobody is owed it.
      `PROMISED(!owe || (live_reg[slot] && !turn_over));
      `PROMISED((port & (port - 1'b1)) == 0);
      `PROMISED(!begun || !live_reg[begun_slot]);
      `PROMISED(!begun || !turn_over || slot != begun_slot);
      // left_egress takes only valid picks.
      `PROMISED(!pick_take || pick_valid);
      // left_slot_fifo, proved separately: the head is a queued slot.
      assume (head_valid == (fresh_reg != 0) && (!head_valid || fresh_reg[head]));
      assert (!push || !fresh_reg[begun_slot] || (pop && head == begun_slot));
      assert (!pop || head_valid);

      assert (at_reg <= slot_mask || flush || flush_was);
      assert (exists == live_reg[watched] && (!exists || flush || watched <= slot_mask));
      if (exists) assert (due == owed[watched] && had == sent[watched]);

      // A pass starts with the oldest slot, the one after the last that turned over, visits all
      // slots, and uses the ports that were ready at its start.
      assert (newest_reg == newest && ready_reg == can);
      if (began) assert (at_reg == first_was && left_reg == mask_was);
      if (pick_valid && found && pick_slot == watched) assert ((pick_receivers & ~can) == 0);

      // A pick is owed, its receivers are ready, and it is a replay if one of them had it before.
      if (pick_valid) assert (pick_receivers != 0 && (pick_receivers & ~ready) == 0);
      if (pick_valid && pick_slot == watched) begin
        assert (exists && (pick_receivers & ~due) == 0);
        assert (pick_replay == |(pick_receivers & had));
      end

      // Nothing owed is forgotten: it is queued as fresh or marked for the scan.
      if (exists && due != 0) assert (fresh_reg[watched] || scan_reg[watched]);

      // At rest, every cycle sends an owed result or advances the scan, and nothing is owed after
      // the number of steps in two passes.
      assert (!at_rest || found == (pick_take && pick_slot == at_reg && !fresh_reg[at_reg]));
      assert (steps <= 2 * SLOTS && passes <= 2);
      if (passes == 0) assert (steps + left_reg < SLOTS || steps == 0);
      if (passes == 1 && !flush) begin
        assert (steps + left_reg < 2 * SLOTS && left_reg <= slot_mask);
        assert (ready_reg == {PORTS{1'b1}});
      end
      if (passes == 2) assert (ready_reg == {PORTS{1'b1}});
      assert (fresh_count == 0 || steps + fresh_count <= SLOTS);
      if (exists && !flush && !fresh_reg[watched] &&
          (passes == 2 || (passes == 1 && to_come > left_reg)))
        assert (due == 0);
      if (exists && !flush && steps == 2 * SLOTS) assert (due == 0);

      cover (exists && due != 0 && had == {PORTS{1'b1}} && pick_valid && pick_replay);
      cover (begun && begun_slot == watched && fresh_reg[watched]);
      cover (taken != 0 && repeats != 0);
      cover (found && head_valid && |head_receivers);
    end
  end
`endif

endmodule

`default_nettype wire

// Returns the ranks of the ports in a set, as a bit vector. Combinational. Ports that are not
// members of the job are ignored.
//
// Not done here: assigning ranks (left_ranks).

`default_nettype none

module left_port_ranks #(
    parameter integer PORTS = 4
) (
    input  wire [  PORTS-1:0] member,        // of the job
    input  wire [8*PORTS-1:0] rank_of_port,  // in the job
    input  wire [  PORTS-1:0] ports,
    output reg  [  PORTS-1:0] ranks
);

  localparam [PORTS-1:0] ONE = 1;

  integer p;

  always @* begin
    ranks = {PORTS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) begin
      if (member[p] && ports[p]) ranks = ranks | (ONE << rank_of_port[8*p+:8]);
    end
  end

endmodule

`default_nettype wire

// Simple dual-port RAM: one write port, one read port.
//
// Reads are registered: a cycle with rd_en fetches the word at rd_addr, and rd_data holds it
// from the next cycle to the one after the next rd_en. A read of a word in the cycle of its
// write returns the old word, or the new one if FORWARD = 1.
//
// Not done here: reset. Unwritten words are undefined, and so is rd_data before the first
// read.

`default_nettype none

module left_ram #(
    parameter integer WIDTH     = 512,  // bits per word
    parameter integer ADDR_BITS = 8,
    parameter integer FORWARD   = 0
) (
    input wire clk,

    input wire                 wr_en,
    input wire [ADDR_BITS-1:0] wr_addr,
    input wire [    WIDTH-1:0] wr_data,

    input  wire                 rd_en,
    input  wire [ADDR_BITS-1:0] rd_addr,
    output wire [    WIDTH-1:0] rd_data
);

  reg [WIDTH-1:0] words[0:(1<<ADDR_BITS)-1];
  reg [WIDTH-1:0] rd_data_reg;

  always @(posedge clk) begin
    if (wr_en) words[wr_addr] <= wr_data;
    if (rd_en) rd_data_reg <= words[rd_addr];
  end

  generate
    if (FORWARD != 0) begin : g_forward
      reg             forward_reg;
      reg [WIDTH-1:0] written_reg;
      always @(posedge clk) begin
        if (rd_en) begin
          forward_reg <= wr_en && wr_addr == rd_addr;
          written_reg <= wr_data;
        end
      end
      assign rd_data = forward_reg ? written_reg : rd_data_reg;
    end else begin : g_plain
      assign rd_data = rd_data_reg;
    end
  endgenerate

endmodule

`default_nettype wire

// Assigns the ranks of a job: its members in the order of their ports, counted from 0.
//
// start begins a walk over the ports, one a cycle; done is high in the cycle after the last port.
// job must be stable until then. Vectors have job 0 in the lowest bits. Before a job's first walk,
// rank r is port r's. Not done here: whether a job is set up (left_jobs). An ended job's ranks
// remain.

`default_nettype none

module left_ranks #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1
) (
    input wire clk,
    input wire rst,

    input  wire                start,
    input  wire [JOB_BITS-1:0] job,
    input  wire [   PORTS-1:0] ports,  // members; sampled with start
    output wire                done,

    output wire [  PORTS*JOBS-1:0] member,
    output wire [8*PORTS*JOBS-1:0] rank_of_port,
    output wire [  PORTS*JOBS-1:0] ranks          // a bit for every assigned rank
);

  localparam integer LAST = PORTS - 1;
  localparam [PORTS-1:0] ONE = 1;

  reg [  PORTS*JOBS-1:0] member_reg;
  reg [8*PORTS*JOBS-1:0] rank_of_port_reg;
  reg [  PORTS*JOBS-1:0] ranks_reg;
  reg walks_reg, done_reg;
  reg  [PORT_BITS-1:0] port_reg;
  reg  [          7:0] rank_reg;  // next rank to assign

  wire [    PORTS-1:0] members = member_reg[PORTS*job+:PORTS];
  wire [    PORTS-1:0] given = ranks_reg[PORTS*job+:PORTS];

  wire [         31:0] port = {{32 - PORT_BITS{1'b0}}, port_reg};

  integer j, p;

  always @(posedge clk) begin
    done_reg <= 1'b0;
    if (start) begin
      member_reg[PORTS*job+:PORTS] <= ports;
      ranks_reg[PORTS*job+:PORTS]  <= {PORTS{1'b0}};
      rank_reg                     <= 8'd0;
      port_reg                     <= {PORT_BITS{1'b0}};
      walks_reg                    <= 1'b1;
    end else if (walks_reg) begin
      rank_of_port_reg[8*(PORTS*job+port)+:8] <= rank_reg;
      if (members[port_reg]) begin
        rank_reg                    <= rank_reg + 8'd1;
        ranks_reg[PORTS*job+:PORTS] <= (given << 1) | ONE;
      end
      port_reg <= port_reg + 1'b1;
      if (port_reg == LAST[PORT_BITS-1:0]) begin
        walks_reg <= 1'b0;
        done_reg  <= 1'b1;
      end
    end
    if (rst) begin
      member_reg <= {PORTS * JOBS{1'b1}};
      ranks_reg  <= {PORTS * JOBS{1'b1}};
      walks_reg  <= 1'b0;
      done_reg   <= 1'b0;
      for (j = 0; j < JOBS; j = j + 1) begin
        for (p = 0; p < PORTS; p = p + 1) rank_of_port_reg[8*(PORTS*j+p)+:8] <= p[7:0];
      end
    end
  end

  assign done         = done_reg;
  assign member       = member_reg;
  assign rank_of_port = rank_of_port_reg;
  assign ranks        = ranks_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any job: its ports, and the cycles since its walk started.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [JOB_BITS-1:0] its_job;
  reg [PORTS-1:0] given_ports;
  reg [7:0] cycles;  // since the last walk started, saturating at PORTS + 1
  wire walks = cycles < PORTS;
  reg [7:0] count;  // members at lower ports
  reg [10*PORTS-1:0] its_were;
  reg mine_was;
  wire [PORTS-1:0] its_member = member[PORTS*watched+:PORTS];
  wire [8*PORTS-1:0] its_map = rank_of_port[8*PORTS*watched+:8*PORTS];
  wire [PORTS-1:0] its_ranks = ranks[PORTS*watched+:PORTS];
  wire walked = !walks || its_job != watched;
  wire [7:0] at = walked ? PORTS : cycles;  // ports already visited
  reg seen;  // the job had a walk
  integer q;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    cycles <= rst ? PORTS + 1 : start ? 0 : cycles + (cycles <= PORTS);
    if (start) its_job <= job;
    if (start && job == watched) given_ports <= ports;
    seen <= !rst && (seen || (start && job == watched));
    its_were <= {its_member, its_map, its_ranks};
    mine_was <= !rst && (start || walks) && job == watched;
  end

  always @* begin
    if (was_reset) begin
      // left_jobs: walks do not overlap.
      `PROMISED(!walks || (job == its_job && !start));
    end
    if (was_reset && !rst) begin
      assert (walks == walks_reg && (!walks || cycles == port_reg) && cycles <= PORTS + 1);
      if (!running_was) assert (!seen && !walks && !done);

      // One cycle for each port, then done for one cycle.
      if (running_was) assert (done == (cycles == PORTS));

      count = 0;
      for (q = 0; q < PORTS; q = q + 1) begin
        if (seen && q < at && given_ports[q]) assert (its_map[8*q+:8] == count);
        if (!seen) assert (its_map[8*q+:8] == q);
        if (q < at && given_ports[q]) count = count + 1;
      end
      if (seen) assert (its_member == given_ports && its_ranks == (1 << count) - 1);
      if (!seen) assert (&its_member && &its_ranks);
      if (!walked) assert (rank_reg == count && seen);

      // A walk does not change other jobs' ranks.
      if (running_was && !mine_was) assert ({its_member, its_map, its_ranks} == its_were);

      cover (done && seen && given_ports == 5);
    end
  end
`endif

endmodule

`default_nettype wire

// Reads complete slots from all ports' slot memories at once, one beat a cycle, slot after slot
// without a bubble. Jobs with a complete slot take turns; a job's slots are read in the order of
// their completion.
//
// A slot waits at its first beat while its cache entry is being sent; other jobs proceed. A sum
// that cannot decide a beat in one pass requests it *again*: such a read replaces a new beat and is
// marked as a further pass. With many of these pending, the sum stops new beats (stop). stalled:
// one of the two kept a new beat from being read. When a job ends (its bit of flush), the slot
// being read is completed, and its queued slots are dropped; drained means that no slot of the job
// is under way.
//
// Latency: a slot completed in cycle 0 is read from cycle 1 on (rd_en), and is at the memories'
// outputs from cycle 2 on (beat_valid and its tags). Not done here: backpressure; the lanes and the
// cache take a beat every cycle.

`default_nettype none

module left_reader #(
    parameter integer JOBS       = 1,
    parameter integer JOB_BITS   = 1,
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4   // width of a beat's number in its chunk
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input  wire [           JOBS-1:0] flush,
    input  wire [INDEX_BITS*JOBS-1:0] job_last,  // number of a chunk's last beat
    output wire [           JOBS-1:0] drained,

    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [ JOB_BITS-1:0] complete_job,
    input wire                 sending,        // a cache entry is being sent
    input wire [SLOT_BITS-1:0] sending_slot,
    input wire                 reduced,        // a slot's last beat was summed
    input wire [ JOB_BITS-1:0] reduced_job,

    // From the sum: hold back new beats; read a beat again, taken in the same cycle
    input wire                  stop,
    input wire                  again_valid,
    input wire [ SLOT_BITS-1:0] again_slot,
    input wire [INDEX_BITS-1:0] again_beat,

    // To the slot memories
    output wire                  rd_en,
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,

    // Tags of the slot memories' outputs
    output wire                  beat_valid,
    output wire [ SLOT_BITS-1:0] beat_slot,
    output wire [INDEX_BITS-1:0] beat_index,
    output wire                  beat_pass,   // a further pass

    output wire stalled
);

  // -- Complete slots, by job ---------------------------------------------------------------------

  wire [JOBS-1:0] queued;  // the job has a complete slot
  wire [SLOT_BITS*JOBS-1:0] heads;
  wire [JOBS-1:0] pops, drops, can_begin;

  genvar g;
  generate
    for (g = 0; g < JOBS; g = g + 1) begin : g_job
      localparam [JOB_BITS-1:0] JOB = g;

      left_slot_fifo #(
          .SLOT_BITS(SLOT_BITS)
      ) u_complete (
          .clk       (clk),
          .clear     (drops[g]),
          .push      (complete && complete_job == JOB),
          .push_slot (complete_slot),
          .head_valid(queued[g]),
          .head_slot (heads[SLOT_BITS*g+:SLOT_BITS]),
          .pop       (pops[g])
      );

      assign can_begin[g] = queued[g] && !flush[g] &&
          !(sending && sending_slot == heads[SLOT_BITS*g+:SLOT_BITS]);
    end
  endgenerate

  // -- Job arbitration ----------------------------------------------------------------------------

  reg [JOBS-1:0] above_reg;  // jobs above the one whose slot was begun last
  reg [JOB_BITS-1:0] job_reg;  // the job whose slot is being read
  reg [INDEX_BITS-1:0] next_reg;  // next beat of that slot

  wire [JOBS-1:0] ahead = can_begin & above_reg;
  wire [JOBS-1:0] among = |ahead ? ahead : can_begin;
  wire [JOBS-1:0] lowest = among & (~among + 1'b1);

  reg [JOB_BITS-1:0] turn;
  integer j;

  always @* begin
    turn = {JOB_BITS{1'b0}};
    for (j = 0; j < JOBS; j = j + 1) if (lowest[j]) turn = j[JOB_BITS-1:0];
  end

  // -- Read ---------------------------------------------------------------------------------------

  localparam [JOBS-1:0] ONE = 1;

  wire begins = next_reg == {INDEX_BITS{1'b0}};
  wire [JOB_BITS-1:0] job = begins ? turn : job_reg;
  wire [SLOT_BITS-1:0] head_slot = heads[SLOT_BITS*job+:SLOT_BITS];
  wire last = next_reg == job_last[INDEX_BITS*job+:INDEX_BITS];
  wire ready = !begins || |can_begin;
  wire reads = ready && !again_valid && !stop;

  assign pops  = reads && last ? ONE << job : {JOBS{1'b0}};
  assign drops = rst ? {JOBS{1'b1}} : flush & ~(begins ? {JOBS{1'b0}} : ONE << job_reg);

  reg [(SLOT_BITS+1)*JOBS-1:0] on_way_reg;  // for each job: slots begun and not yet reduced
  reg beat_valid_reg, beat_pass_reg;
  reg [ SLOT_BITS-1:0] beat_slot_reg;
  reg [INDEX_BITS-1:0] beat_index_reg;

  reg [JOBS-1:0] more, less;
  integer k;

  always @* begin
    more = reads && begins ? ONE << turn : {JOBS{1'b0}};
    less = reduced ? ONE << reduced_job : {JOBS{1'b0}};
  end

  always @(posedge clk) begin
    if (reads) next_reg <= last ? {INDEX_BITS{1'b0}} : next_reg + 1'b1;
    if (reads && begins) begin
      job_reg   <= turn;
      above_reg <= ~(lowest | (lowest - 1'b1));
    end
    for (k = 0; k < JOBS; k = k + 1) begin
      if (more[k] && !less[k])
        on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] + 1'b1;
      if (less[k] && !more[k])
        on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] <= on_way_reg[(SLOT_BITS+1)*k+:SLOT_BITS+1] - 1'b1;
    end
    beat_valid_reg <= rd_en;
    beat_slot_reg  <= rd_slot;
    beat_index_reg <= rd_beat;
    beat_pass_reg  <= again_valid;
    if (rst) begin
      next_reg       <= {INDEX_BITS{1'b0}};
      above_reg      <= {JOBS{1'b0}};
      job_reg        <= {JOB_BITS{1'b0}};
      on_way_reg     <= {(SLOT_BITS + 1) * JOBS{1'b0}};
      beat_valid_reg <= 1'b0;
    end
  end

  genvar d;
  generate
    for (d = 0; d < JOBS; d = d + 1) begin : g_drained
      assign drained[d] = on_way_reg[(SLOT_BITS+1)*d+:SLOT_BITS+1] == {SLOT_BITS + 1{1'b0}};
    end
  endgenerate

  assign rd_en      = reads || again_valid;
  assign rd_slot    = again_valid ? again_slot : head_slot;
  assign rd_beat    = again_valid ? again_beat : next_reg;
  assign beat_valid = beat_valid_reg;
  assign beat_slot  = beat_slot_reg;
  assign beat_index = beat_index_reg;
  assign beat_pass  = beat_pass_reg;
  assign stalled    = ready && !reads;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The slot being read, its job and next beat; for any job, its slots under way.
  (* anyconst *) reg [JOB_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [INDEX_BITS-1:0] beat;
  reg [JOB_BITS-1:0] its_job;
  reg [INDEX_BITS*JOBS-1:0] last_was;
  reg [31:0] on_way;
  reg [JOBS-1:0] head_was;
  reg [SLOT_BITS*JOBS-1:0] slots_were;
  reg read_was, pass_was;
  reg [SLOT_BITS-1:0] rd_slot_was, begun_slot;
  reg [INDEX_BITS-1:0] rd_beat_was;
  reg [JOBS-1:0] in_front;  // jobs that began while the watched one could
  reg waits;
  wire [JOBS-1:0] below = ~above_reg;
  wire new_beat = rd_en && !again_valid;
  wire new_slot = new_beat && rd_beat == 0;
  wire [JOB_BITS-1:0] now = beat == 0 ? turn : its_job;
  wire [SLOT_BITS-1:0] now_head = heads >> SLOT_BITS * now;
  wire [INDEX_BITS-1:0] now_last = job_last >> INDEX_BITS * now;
  wire [SLOT_BITS-1:0] watched_head = heads >> SLOT_BITS * watched;
  wire may_begin = queued[watched] && !flush[watched] && !(sending && sending_slot == watched_head);
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    beat <= rst ? 0 : !new_beat ? beat : beat == now_last ? 0 : beat + 1;
    if (new_slot) its_job <= now;
    on_way <= rst ? 0 : on_way + (new_slot && now == watched) - (reduced && reduced_job == watched);
    last_was <= job_last;
    for (n = 0; n < JOBS; n = n + 1)
    head_was[n] <= queued[n] && !(new_beat && beat == now_last && now == n) &&
          !(flush[n] && (beat == 0 || its_job != n));
    slots_were <= heads;
    read_was <= rd_en;
    rd_slot_was <= rd_slot;
    if (new_slot) begun_slot <= rd_slot;
    rd_beat_was <= rd_beat;
    pass_was <= again_valid;
    waits <= !rst && may_begin && !(new_slot && now == watched);
    in_front <= rst || !may_begin || (new_slot && now == watched) ? 0 :
        in_front | (new_slot ? 1 << now : 0);
  end

  always @* begin
    if (rst) assert (&drops);
    if (was_reset) begin
      // left_slot_fifo keeps its head until a pop or a clear.
      for (n = 0; n < JOBS; n = n + 1)
      assume (!running_was || !head_was[n] || (queued[n] &&
            heads[SLOT_BITS*n+:SLOT_BITS] == slots_were[SLOT_BITS*n+:SLOT_BITS]));
      // left_jobs changes a job's chunk length only while the job has no slots under way. left_writer
      // pulses reduced once for each slot of which a beat was read, at least one cycle later. There
      // are no more slots than SLOTS.
      for (n = 0; n < JOBS; n = n + 1)
      `PROMISED(
          (beat == 0 || its_job != n) ||
            job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]);
      `PROMISED(!(reduced && reduced_job == watched) || on_way != 0);
      `PROMISED(!(new_slot && now == watched) || on_way < 1 << SLOT_BITS);
    end
    if (was_reset && !rst) begin

      assert (next_reg == beat && (beat == 0 || beat <= now_last));
      if (beat != 0)
        assert (job_reg == its_job && queued[its_job]);  // a slot that was begun is completed
      if (new_beat) assert (queued[now] && rd_slot == now_head && rd_beat == beat && !stop);
      if (new_beat && beat != 0) assert (rd_slot == begun_slot);
      assert (pops[watched] == (new_beat && beat == now_last && now == watched));
      assert (drops[watched] == (flush[watched] && (beat == 0 || its_job != watched)));
      if (beat != 0) assert (now_head == begun_slot);
      if (again_valid) assert (rd_en && rd_slot == again_slot && rd_beat == again_beat);

      // Only a slot's first beat waits: for its cache entry, for its job's end, and for its job's
      // turn.
      if (new_slot && now == watched) assert (may_begin);
      if (beat != 0 && !again_valid && !stop) assert (new_beat);
      if (beat == 0 && may_begin && !again_valid && !stop) assert (new_slot);

      // While a job has a slot that may begin, no other job begins two.
      if (waits && may_begin && new_slot) assert (!in_front[now]);
      assert ((below & (below + 1'b1)) == 0);
      for (n = 0; n < JOBS; n = n + 1) begin
        if (in_front[n] && n < watched) assert (above_reg[watched] && !above_reg[n]);
        if (in_front[n] && n > watched) assert (above_reg[watched] || !above_reg[n]);
        assert (!in_front[watched]);
      end

      assert ((on_way_reg >> (SLOT_BITS + 1) * watched) % (2 << SLOT_BITS) == on_way);
      assert (on_way <= 1 << SLOT_BITS);
      assert (drained[watched] == (on_way == 0));
      assert (!stalled || (!new_beat && (stop || again_valid)));

      if (running_was) assert (beat_valid == read_was);
      if (!running_was) assert (!beat_valid);
      if (running_was && beat_valid)
        assert (beat_slot == rd_slot_was && beat_index == rd_beat_was && beat_pass == pass_was);

      cover (new_beat && flush[now] && beat == now_last && beat != 0);
      cover (new_slot && reduced && now_last == 0);
      cover (new_slot && read_was && rd_slot_was != rd_slot && now_last != 0);
      cover (waits && in_front != 0 && new_slot && now == watched);
      cover (again_valid && stalled);
    end
  end
`endif

endmodule

`default_nettype wire

// Forwards register accesses from left_frame_rx to the core's register port, and the core's replies,
// as headers, to left_frame_tx.
//
// One access at a time: the receiver waits at s_register for the core, so that accesses and packets
// stay in order. An access also waits until the previous reply has left, so that no reply is lost.
// A reset, which also comes while the link is down, drops the access, as in the core, and the
// reply.

`default_nettype none

module left_register_link (
    input wire clk,
    input wire rst,
    input wire hold, // start no access: earlier packets have not reached the core

    input  wire        s_register_valid,
    output wire        s_register_ready,
    input  wire        s_register_write,  // stable until ready
    input  wire [31:0] s_register_addr,
    input  wire [15:0] s_register_tag,
    input  wire [63:0] s_register_wdata,

    // The core's register port
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire        m_reg_write,
    output wire [31:0] m_reg_addr,
    output wire [63:0] m_reg_wdata,
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire [ 7:0] s_reg_code,
    input  wire [63:0] s_reg_value,

    output wire         m_reply_valid,
    input  wire         m_reply_ready,
    output wire [175:0] m_reply_header
);

  localparam [3:0] VERSION = 4'd1;  // of the protocol
  localparam [3:0] KIND_REPLY = 4'd11;

  localparam [1:0] IDLE = 2'd0;
  localparam [1:0] ACCESS = 2'd1;  // offered to the core
  localparam [1:0] ANSWER = 2'd2;  // accepted; wait for the reply

  reg  [ 1:0] state_reg;
  reg         reply_valid_reg;
  reg  [ 7:0] code_reg;
  reg  [31:0] address_reg;
  reg  [15:0] tag_reg;
  reg  [63:0] value_reg;

  wire        answered = state_reg == ANSWER && s_reg_valid;

  always @(posedge clk) begin
    case (state_reg)
      IDLE:    if (s_register_valid && !hold && !reply_valid_reg) state_reg <= ACCESS;
      ACCESS:  if (m_reg_ready) state_reg <= ANSWER;
      default: if (answered) state_reg <= IDLE;
    endcase
    if (m_reply_ready) reply_valid_reg <= 1'b0;
    if (answered) begin
      reply_valid_reg <= 1'b1;
      code_reg        <= s_reg_code;
      address_reg     <= m_reg_addr;
      tag_reg         <= s_register_tag;
      value_reg       <= s_reg_value;
    end
    if (rst) begin
      state_reg       <= IDLE;
      reply_valid_reg <= 1'b0;
    end
  end

  assign s_register_ready = answered;
  assign m_reg_valid = state_reg == ACCESS;
  assign m_reg_write = s_register_write;
  assign m_reg_addr = s_register_addr;
  assign m_reg_wdata = s_register_wdata;
  assign s_reg_ready = state_reg == ANSWER;
  assign m_reply_valid = reply_valid_reg;

  // A reply does not use job, format, epoch and rank.
  assign m_reply_header = {
    value_reg, tag_reg, address_reg, code_reg, 8'd0, 16'd0, 8'd0, 8'd0, 8'd0, KIND_REPLY, VERSION
  };

endmodule

`default_nettype wire

// The register bank: identification block, owner, staged job, counters, and one block for each job.
//
// Accepts one access at a time at s_reg, executes it, and replies at m_reg with a code and the
// register's new value, in order. Writes that end or set up a job are forwarded to left_jobs, and
// wait for it. A soft reset clears the counters after all jobs have ended, so that it leaves no
// counts of theirs. A link that goes down clears OWNER and drops the access under way.
//
// Latency: 5 cycles from access to reply, more if left_jobs takes part. Cycle 1 decodes the address,
// cycles 2 and 3 read the value, cycle 4 executes. Not done here: the values of counters
// (left_counters) and jobs (left_jobs, left_job_counts).

`default_nettype none

module left_registers #(
    // Contents of the identification block
    parameter [63:0] CONFIG_HASH = 64'd0,
    parameter [63:0] LANES = 64'd16,
    parameter [63:0] PORTS = 64'd4,
    parameter [63:0] FORMAT = 64'h0101,
    parameter [63:0] SUM = 64'd1,
    parameter [63:0] SHELL = 64'd0,
    parameter [63:0] CHUNK = 64'd256,
    parameter [63:0] WINDOW = 64'd8,
    parameter [63:0] JOBS = 64'd1,
    parameter [63:0] LINK = 64'd0,
    parameter [63:0] LATENCY = 64'd0,

    parameter integer JOB_BITS  = 1,  // width of a job number, at least 1
    parameter integer RANK_BITS = 2
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // Accesses and their replies
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

    // Job operations; see left_jobs
    output wire        op_valid,
    output wire        op_commit,
    output wire        op_abort,
    output wire [ 7:0] op_job,
    output wire [15:0] op_epoch,
    output wire [31:0] op_first,
    output wire [63:0] op_ports,
    output wire [63:0] op_chunk,
    output wire [63:0] op_window,
    output wire [63:0] op_deadline,
    input  wire        op_done,
    input  wire [ 7:0] op_code,

    // Values held elsewhere; vectors have job 0 in the lowest bits
    input  wire [     JOBS-1:0] job_valid,
    input  wire [     JOBS-1:0] job_ever,
    input  wire [  16*JOBS-1:0] job_epoch,
    input  wire [  64*JOBS-1:0] job_finished,
    input  wire [  64*JOBS-1:0] job_members,
    input  wire [  64*JOBS-1:0] job_evicted,
    input  wire [  16*JOBS-1:0] job_base,        // first slot
    input  wire [  16*JOBS-1:0] job_slots,       // number of slots
    input  wire [  32*JOBS-1:0] nonfinite_in,
    input  wire [  32*JOBS-1:0] nonfinite_out,
    input  wire [  32*JOBS-1:0] overflows,
    input  wire [  64*JOBS-1:0] first_in,
    input  wire [  64*JOBS-1:0] first_out,
    input  wire [  64*JOBS-1:0] first_overflow,
    output wire [ JOB_BITS-1:0] lag_job,
    output wire [RANK_BITS-1:0] lag_rank,
    output wire [          3:0] lag_bucket,
    input  wire [         31:0] lag_value,       // one cycle later
    output wire [          5:0] counter_index,
    input  wire [         31:0] counter_value,
    output wire                 clear_counters
);

  localparam [3:0] VERSION = 4'd1;  // of the protocol
  localparam [7:0] CODE_DONE = 8'd0;
  localparam [7:0] CODE_BUSY = 8'd3;
  localparam [7:0] CODE_BAD_ADDRESS = 8'd32;
  localparam [7:0] CODE_READ_ONLY = 8'd33;
  localparam [63:0] MAGIC = 64'h5952545542495254;
  localparam integer REG_MAGIC = 0;
  localparam integer REG_VERSION = 8;
  localparam integer REG_CONFIG_HASH = 16;
  localparam integer REG_LANES = 24;
  localparam integer REG_PORTS = 32;
  localparam integer REG_FORMAT = 40;
  localparam integer REG_SUM = 48;
  localparam integer REG_SHELL = 56;
  localparam integer REG_CHUNK = 64;
  localparam integer REG_WINDOW = 72;
  localparam integer REG_JOBS = 80;
  localparam integer REG_LINK = 88;
  localparam integer REG_LATENCY = 96;
  localparam integer REG_OWNER = 32'h100;
  localparam integer REG_RELEASE = 32'h108;
  localparam integer REG_RESET = 32'h110;
  localparam integer REG_CYCLES = 32'h118;
  localparam integer REG_JOB_TOKEN = 32'h200;
  localparam integer REG_JOB_PORTS = 32'h208;
  localparam integer REG_JOB_CHUNK = 32'h210;
  localparam integer REG_JOB_WINDOW = 32'h218;
  localparam integer REG_JOB_DEADLINE = 32'h220;
  localparam integer REG_JOB_COMMIT = 32'h228;
  localparam integer REG_JOB_ABORT = 32'h230;
  localparam integer REG_JOB_STATE = 32'h1000;
  localparam integer REG_JOB_FINISHED = 32'h1008;
  localparam integer REG_JOB_MEMBERS = 32'h1010;
  localparam integer REG_JOB_SLOTS = 32'h1018;
  localparam integer REG_JOB_NONFINITE_IN = 32'h1020;
  localparam integer REG_JOB_NONFINITE_OUT = 32'h1028;
  localparam integer REG_JOB_OVERFLOW = 32'h1030;
  localparam integer REG_JOB_FIRST_IN = 32'h1038;
  localparam integer REG_JOB_FIRST_OUT = 32'h1040;
  localparam integer REG_JOB_FIRST_OVERFLOW = 32'h1048;
  localparam integer REG_JOB_EVICTED = 32'h1050;
  localparam integer REG_COUNTERS = 32'h400;  // first counter; the next is 8 further
  localparam integer REG_JOBS_BASE = 32'h1000;  // first register of job 0
  localparam integer REG_JOB_LAG = 32'h20000;  // first count of job 0, rank 0
  localparam integer REG_JOB_STRIDE = 32'h100;  // from one job's registers to the next one's
  localparam integer COUNTERS = 34;  // how many there are

  localparam [1:0] STATE_IDLE = 2'd0;
  localparam [1:0] STATE_ACCESS = 2'd1;
  localparam [1:0] STATE_JOB = 2'd2;  // left_jobs executes
  localparam [1:0] STATE_ANSWER = 2'd3;

  // Effects of a write
  localparam [2:0] WRITE_REFUSED = 3'd0;  // bad_address, read_only or busy
  localparam [2:0] WRITE_STAGED = 3'd1;
  localparam [2:0] WRITE_OWNER = 3'd2;
  localparam [2:0] WRITE_RELEASE = 3'd3;
  localparam [2:0] WRITE_RESET = 3'd4;
  localparam [2:0] WRITE_COMMIT = 3'd5;
  localparam [2:0] WRITE_ABORT = 3'd6;

  reg [1:0] state_reg;
  reg write_reg;
  reg [31:0] addr_reg;
  reg [63:0] data_reg;
  reg [7:0] code_reg;
  reg [63:0] value_reg;

  reg [63:0] owner_reg;
  reg [63:0] token_reg;
  reg [63:0] ports_reg;
  reg [63:0] chunk_reg;
  reg [63:0] window_reg;
  reg [63:0] deadline_reg;
  reg [63:0] cycles_reg;
  reg [1:0] step_reg;  // of STATE_ACCESS

  // -- Read ---------------------------------------------------------------------------------------

  wire [31:0] counter_offset = addr_reg - REG_COUNTERS;
  wire is_counter = addr_reg >= REG_COUNTERS && counter_offset < 8 * COUNTERS &&
      addr_reg[2:0] == 3'd0;

  // A job's registers; all jobs' blocks have the same layout
  wire [31:0] job_offset = addr_reg - REG_JOBS_BASE;
  wire in_jobs = addr_reg >= REG_JOBS_BASE && {32'd0, job_offset} < JOBS * {32'd0, REG_JOB_STRIDE};
  wire [JOB_BITS-1:0] its_job =
      in_jobs && JOBS != 64'd1 ? job_offset[8+:JOB_BITS] : {JOB_BITS{1'b0}};
  wire [31:0] place = in_jobs ? REG_JOBS_BASE | {24'd0, addr_reg[7:0]} : addr_reg;

  // Lags of contributions, by job and rank
  wire [31:0] lag_offset = addr_reg - REG_JOB_LAG;
  wire [63:0] lag_number = {32'd0, lag_offset} >> 13;  // of the job
  wire [5:0] lag_of = lag_offset[12:7];
  wire in_lags = addr_reg >= REG_JOB_LAG && lag_number < JOBS && {58'd0, lag_of} < PORTS &&
      addr_reg[2:0] == 3'd0;

  // Second cycle: the decoded register
  reg [31:0] place_reg;
  reg [JOB_BITS-1:0] job_reg, lag_job_reg;
  reg [RANK_BITS-1:0] lag_rank_reg;
  reg [3:0] lag_bucket_reg;
  reg [5:0] counter_index_reg;
  reg is_counter_reg, in_lags_reg;

  assign counter_index = counter_index_reg;
  assign lag_job       = lag_job_reg;
  assign lag_rank      = lag_rank_reg;
  assign lag_bucket    = lag_bucket_reg;

  wire [JOB_BITS-1:0] job = job_reg;
  wire valid = job_valid[job];
  reg listed;  // the address is a register's, and not a counter's
  reg [63:0] value;

  always @* begin
    listed = 1'b1;
    case (place_reg)
      REG_MAGIC: value = MAGIC;
      REG_VERSION: value = {60'd0, VERSION};
      REG_CONFIG_HASH: value = CONFIG_HASH;
      REG_LANES: value = LANES;
      REG_PORTS: value = PORTS;
      REG_FORMAT: value = FORMAT;
      REG_SUM: value = SUM;
      REG_SHELL: value = SHELL;
      REG_CHUNK: value = CHUNK;
      REG_WINDOW: value = WINDOW;
      REG_JOBS: value = JOBS;
      REG_LINK: value = LINK;
      REG_LATENCY: value = LATENCY;
      REG_OWNER: value = owner_reg;
      REG_CYCLES: value = cycles_reg;
      REG_JOB_TOKEN: value = token_reg;
      REG_JOB_PORTS: value = ports_reg;
      REG_JOB_CHUNK: value = chunk_reg;
      REG_JOB_WINDOW: value = window_reg;
      REG_JOB_DEADLINE: value = deadline_reg;
      REG_JOB_STATE:
      value = {
        24'd0, {8 - JOB_BITS{1'b0}}, job, job_epoch[16*job+:16], 14'd0, job_ever[job], valid
      };
      REG_JOB_FINISHED: value = job_finished[64*job+:64];
      REG_JOB_MEMBERS: value = job_members[64*job+:64];
      REG_JOB_EVICTED: value = job_evicted[64*job+:64];
      REG_JOB_SLOTS: value = valid ? {32'd0, job_slots[16*job+:16], job_base[16*job+:16]} : 64'd0;
      REG_JOB_NONFINITE_IN: value = {32'd0, nonfinite_in[32*job+:32]};
      REG_JOB_NONFINITE_OUT: value = {32'd0, nonfinite_out[32*job+:32]};
      REG_JOB_OVERFLOW: value = {32'd0, overflows[32*job+:32]};
      REG_JOB_FIRST_IN: value = first_in[64*job+:64];
      REG_JOB_FIRST_OUT: value = first_out[64*job+:64];
      REG_JOB_FIRST_OVERFLOW: value = first_overflow[64*job+:64];
      REG_RELEASE, REG_RESET, REG_JOB_COMMIT, REG_JOB_ABORT: value = 64'd0;
      default: begin
        listed = 1'b0;
        value  = 64'd0;
      end
    endcase
  end

  // Third cycle: its value; a lag's comes one cycle later
  reg listed_reg;
  reg [63:0] listed_value_reg;
  reg [31:0] counter_value_reg, lag_value_reg;

  always @(posedge clk) begin
    place_reg         <= place;
    job_reg           <= its_job;
    lag_job_reg       <= JOBS == 64'd1 ? {JOB_BITS{1'b0}} : lag_offset[13+:JOB_BITS];
    lag_rank_reg      <= lag_of[RANK_BITS-1:0];
    lag_bucket_reg    <= lag_offset[6:3];
    counter_index_reg <= counter_offset[8:3];
    is_counter_reg    <= is_counter;
    in_lags_reg       <= in_lags;
    listed_reg        <= listed;
    listed_value_reg  <= value;
    counter_value_reg <= counter_value;
    lag_value_reg     <= job_ever[lag_job] ? lag_value : 32'd0;
  end

  wire known = listed_reg || is_counter_reg || in_lags_reg;
  wire [63:0] read_value = is_counter_reg ? {32'd0, counter_value_reg} :
      in_lags_reg ? {32'd0, lag_value_reg} : listed_value_reg;

  // -- Write --------------------------------------------------------------------------------------

  // These are valid from the access's second cycle on, the effect of the write from its third.
  reg owned_reg, is_owner_reg, job_owner_reg;
  reg [2:0] action, action_reg;
  reg writable, writable_reg;  // by some host

  always @* begin
    action   = WRITE_REFUSED;
    writable = 1'b1;
    case (addr_reg)
      REG_OWNER: action = WRITE_OWNER;
      REG_RELEASE: if (!owned_reg || is_owner_reg) action = WRITE_RELEASE;
      REG_RESET: if (!owned_reg || is_owner_reg) action = WRITE_RESET;
      REG_JOB_TOKEN, REG_JOB_PORTS, REG_JOB_CHUNK, REG_JOB_WINDOW, REG_JOB_DEADLINE:
      action = WRITE_STAGED;
      REG_JOB_COMMIT: if (job_owner_reg) action = WRITE_COMMIT;
      REG_JOB_ABORT: if (job_owner_reg) action = WRITE_ABORT;
      default: writable = 1'b0;
    endcase
  end

  always @(posedge clk) begin
    owned_reg     <= owner_reg != 64'd0;
    is_owner_reg  <= data_reg == owner_reg;
    job_owner_reg <= owner_reg != 64'd0 && token_reg == owner_reg;
    action_reg    <= action;
    writable_reg  <= writable;
  end

  wire [7:0] refusal = writable_reg ? CODE_BUSY : known ? CODE_READ_ONLY : CODE_BAD_ADDRESS;
  wire acts = state_reg == STATE_ACCESS && (&step_reg);
  wire writes = acts && write_reg;
  wire stages = writes && action_reg == WRITE_STAGED;
  wire resets = writes && action_reg == WRITE_RESET;
  wire frees = resets || (writes && action_reg == WRITE_RELEASE);
  wire to_job = action_reg == WRITE_RESET || action_reg == WRITE_COMMIT ||
      action_reg == WRITE_ABORT || (action_reg == WRITE_RELEASE && owned_reg);

  always @(posedge clk) begin
    if (writes && action_reg == WRITE_OWNER && !owned_reg) owner_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_TOKEN) token_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_PORTS) ports_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_CHUNK) chunk_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_WINDOW) window_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_DEADLINE) deadline_reg <= data_reg;
    if (rst || frees || link_down) owner_reg <= 64'd0;
    if (rst || resets) begin
      token_reg <= 64'd0;
      ports_reg <= 64'd0;
      chunk_reg <= 64'd0;
      window_reg <= 64'd0;
      deadline_reg <= 64'd0;
    end
    cycles_reg <= rst ? 64'd0 : cycles_reg + 64'd1;
  end

  // -- Sequence of an access ----------------------------------------------------------------------

  always @(posedge clk) begin
    case (state_reg)
      STATE_IDLE: begin
        write_reg <= s_reg_write;
        addr_reg  <= s_reg_addr;
        data_reg  <= s_reg_wdata;
        step_reg  <= 2'd0;
        if (s_reg_valid) state_reg <= STATE_ACCESS;
      end

      STATE_ACCESS: begin
        step_reg <= step_reg + 2'd1;
        if (acts) state_reg <= write_reg && to_job ? STATE_JOB : STATE_ANSWER;
        code_reg  <= CODE_DONE;
        value_reg <= read_value;
        if (!write_reg) begin
          if (!known) code_reg <= CODE_BAD_ADDRESS;
        end else if (action_reg == WRITE_REFUSED) begin
          code_reg  <= refusal;
          value_reg <= 64'd0;
        end else if (action_reg == WRITE_STAGED || (action_reg == WRITE_OWNER && !owned_reg)) begin
          value_reg <= data_reg;
        end
      end

      STATE_JOB: begin
        code_reg <= op_code;
        if (op_done) state_reg <= STATE_ANSWER;
      end

      default: if (m_reg_ready) state_reg <= STATE_IDLE;
    endcase
    if (rst || link_down) state_reg <= STATE_IDLE;
  end

  assign s_reg_ready    = state_reg == STATE_IDLE && !link_down;
  assign m_reg_valid    = state_reg == STATE_ANSWER;
  assign m_reg_code     = code_reg;
  assign m_reg_value    = value_reg;

  assign op_valid       = state_reg == STATE_JOB;
  assign op_commit      = addr_reg == REG_JOB_COMMIT;
  assign op_abort       = addr_reg == REG_JOB_ABORT;
  assign op_job         = data_reg[55:48];
  assign op_epoch       = data_reg[47:32];
  assign op_first       = data_reg[31:0];
  assign op_ports       = ports_reg;
  assign op_chunk       = chunk_reg;
  assign op_window      = window_reg;
  assign op_deadline    = deadline_reg;
  assign clear_counters = op_valid && op_done && addr_reg == REG_RESET;

endmodule

`default_nettype wire

// Routes the packets of a shared link to the port of their rank.
//
// Combinational. A rank without a port in the job goes to port 0, which refuses it as not its own.
// Only the low bits of the job number count. The rank map must be stable during a packet.
//
// Not done here: data and header, which go to every port directly; only valid is selected.

`default_nettype none

module left_route #(
    parameter integer PORTS    = 4,
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1
) (
    input wire [             7:0] job,           // of the packet at s_axis
    input wire [             7:0] rank,
    input wire [8*PORTS*JOBS-1:0] rank_of_port,  // job 0 in the lowest bits
    input wire [  PORTS*JOBS-1:0] member,        // the port has a rank

    input  wire s_axis_tvalid,
    output wire s_axis_tready,

    output wire [PORTS-1:0] m_axis_tvalid,
    input  wire [PORTS-1:0] m_axis_tready
);

  wire [JOB_BITS-1:0] index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
  wire unused = &{1'b0, job};
  wire [8*PORTS-1:0] ranks = rank_of_port[8*PORTS*index+:8*PORTS];
  wire [PORTS-1:0] members = member[PORTS*index+:PORTS];

  reg [PORTS-1:0] port;
  integer i;

  always @* begin
    for (i = 0; i < PORTS; i = i + 1) port[i] = members[i] && ranks[8*i+:8] == rank;
    if (port == {PORTS{1'b0}}) port[0] = 1'b1;
  end

  assign m_axis_tvalid = s_axis_tvalid ? port : {PORTS{1'b0}};
  assign s_axis_tready = |(port & m_axis_tready);

endmodule

`default_nettype wire

// A queue of slot numbers with room for every slot; it cannot overflow if no slot is queued twice.
//
// First-word fall-through: a push in cycle 0 into an empty queue is at the head in cycle 1. Not
// done here: a full flag, protection against a pop of an empty queue.

`default_nettype none

module left_slot_fifo #(
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire clear, // empties the queue, despite a push

    input wire                 push,
    input wire [SLOT_BITS-1:0] push_slot,

    output wire                 head_valid,
    output wire [SLOT_BITS-1:0] head_slot,
    input  wire                 pop
);

  reg [SLOT_BITS-1:0] slots  [0:(1<<SLOT_BITS)-1];
  reg [  SLOT_BITS:0] wr_reg;
  reg [  SLOT_BITS:0] rd_reg;

  assign head_valid = wr_reg != rd_reg;
  assign head_slot  = slots[rd_reg[SLOT_BITS-1:0]];

  always @(posedge clk) begin
    if (push) slots[wr_reg[SLOT_BITS-1:0]] <= push_slot;
    if (clear) begin
      wr_reg <= {SLOT_BITS + 1{1'b0}};
      rd_reg <= {SLOT_BITS + 1{1'b0}};
    end else begin
      if (push) wr_reg <= wr_reg + 1'b1;
      if (pop) rd_reg <= rd_reg + 1'b1;
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th push is the n-th head, and there is a head while any slot is queued: no loss,
  // repetition or reordering. Numbers are modulo twice the capacity; watched is any of them.
  (* anyconst *) reg [SLOT_BITS:0] watched;
  reg cleared = 1'b0;
  reg [SLOT_BITS:0] pushed, popped;
  reg [SLOT_BITS-1:0] put;
  reg [(1<<SLOT_BITS)-1:0] queued;  // slots in the queue
  reg [SLOT_BITS:0] queued_count;
  wire [SLOT_BITS:0] waiting = pushed - popped;
  wire watched_waits = watched - popped < waiting;
  reg stays = 1'b0;
  reg [SLOT_BITS-1:0] head_was;
  integer i, j;

  always @(posedge clk) begin
    if (push && pushed == watched) put <= push_slot;
    if (pop) queued[head_slot] <= 1'b0;
    if (push) queued[push_slot] <= 1'b1;
    pushed <= pushed + push;
    popped <= popped + pop;
    stays <= cleared && !clear && head_valid && !pop;
    head_was <= head_slot;
    if (clear) begin
      cleared <= 1'b1;
      pushed  <= 0;
      popped  <= 0;
      queued  <= 0;
    end
  end

  always @* begin
    queued_count = 0;
    for (i = 0; i < 1 << SLOT_BITS; i = i + 1) queued_count = queued_count + queued[i];
    if (cleared) begin
      // The queue's user pushes no slot twice, and pops only what is there.
      `PROMISED(!push || clear || !queued[push_slot] || (pop && head_slot == push_slot));
      `PROMISED(!pop || waiting != 0);

      assert (wr_reg == pushed && rd_reg == popped);
      assert (head_valid == (queued != 0));
      assert (!head_valid || queued[head_slot]);
      assert (!stays || (head_valid && head_slot == head_was));
      if (watched_waits) assert (slots[watched[SLOT_BITS-1:0]] == put);
      if (watched_waits && watched == popped) assert (head_valid && head_slot == put);

      // No slot is queued twice, so the queue never overflows.
      assert (waiting == queued_count);
      for (i = 0; i < 1 << SLOT_BITS; i = i + 1) begin
        if (i < waiting) assert (queued[slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]]]);
        for (j = 0; j < i; j = j + 1) begin
          if (i < waiting)
            assert (slots[rd_reg[SLOT_BITS-1:0]+i[SLOT_BITS-1:0]] !=
                    slots[rd_reg[SLOT_BITS-1:0]+j[SLOT_BITS-1:0]]);
        end
      end

      cover (&queued && push && pop);
      cover (queued == 0 && pushed[SLOT_BITS]);
    end
  end
`endif

endmodule

`default_nettype wire

// The slot table: judges one packet a cycle by the slot rules and updates the table in that
// cycle.
//
// A slot is empty, collecting, reducing or reduced. It is *active* once it has turned over since
// its job was set up, *closed* once it holds all members, and reduced when its sum is in the
// cache. An empty slot has no entry: the VID it would hold follows from the job's first VID, and
// every member is done with it. Members are identified by port; an evicted port is not a member.
//
// An overdue slot is acted upon in a cycle without a packet (left_deadlines). With partial sums, a
// collecting slot is closed with the contributions it holds; for a reduced one, members that are
// not done are evicted. Without, the missing members are reported.
//
// The job_* inputs are those of the packet's job. Its 2 W slots, W its window, begin at a
// multiple of 2 W (slot_base). The slots of v and v - W differ in one bit of their number, the
// window's. A row of the table holds such a pair, so both are read and updated at once: row n of
// a job, 0 to W - 1, is row slot_base / 2 + n of the table. So no two jobs share a row.
//
// Events are for the slot at `slot`, in the cycle of the commit; the table changes at its end.
// Data that was not written (see left_ingress) is refused as not ready; this cannot happen to a
// worker that follows the protocol. Not done here: header checks (left_commit), debts (left_owed),
// sending answers (left_status).

`default_nettype none

module left_slots #(
    parameter integer PORTS     = 4,
    parameter integer WINDOW    = 8,
    parameter integer SLOT_BITS = 4,  // width of a slot number: log2(2 * WINDOW)
    parameter integer ROW_BITS  = 3   // width of a row number: log2(WINDOW), at least 1
) (
    input wire clk,

    input wire [(1<<SLOT_BITS)-1:0] flush_slots,  // slots of ending jobs: they become empty

    // The job of the packet, or of the overdue slot
    input wire [         31:0] job_first,
    input wire [SLOT_BITS-1:0] job_window,
    input wire [SLOT_BITS-1:0] slot_mask,   // 2 * window - 1
    input wire [SLOT_BITS-1:0] slot_base,   // the first slot
    input wire [    PORTS-1:0] member,      // by port
    input wire [    PORTS-1:0] evicted,     // no longer members
    input wire                 partial,     // partial sums allowed

    // A slot is overdue; no packet is judged in this cycle
    input wire act,

    // The slot of the packet's VID, or the overdue slot
    input wire [SLOT_BITS-1:0] slot,

    // The packet; at most one of refuse, data, ask and finish is high
    input wire             refuse,    // a check failed; code names it
    input wire             data,
    input wire             ask,
    input wire             finish,
    input wire [      7:0] code,
    input wire             belongs,   // its rank is the port's own
    input wire [PORTS-1:0] ports,     // its port, one-hot
    input wire [     31:0] vid,
    input wire [      1:0] ecn,
    input wire             writable,
    input wire             nonfinite,

    // A slot's last beat was summed
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot,

    // Events
    output wire turn_over,  // the slot takes a new VID and drops its debts
    output wire store,  // data is stored
    output wire store_ce,
    output wire store_nonfinite,
    output wire [PORTS-1:0] resolve,  // ports whose writable data is resolved
    output wire owe,  // the sender is owed the result
    output wire complete,  // the slot is closed: it holds all members, or its time is up
    output wire [PORTS-1:0] complete_ports,
    output wire [31:0] complete_vid,
    output wire [1:0] complete_ecn,
    output wire complete_nonfinite,
    output wire stall,  // data for the next chunk cannot turn over the reduced slot
    output wire overdue,  // the slot acted upon still waits
    output wire [PORTS-1:0] evict,  // ports to evict
    output wire notice,  // report answer_ports
    output wire [PORTS-1:0] notice_ports,  // to these ports
    output wire [7:0] notice_code,
    output wire [31:0] notice_vid,
    output wire asked,  // an ask was not refused
    output wire answer,  // an ask or a finish gets a status as its reply
    output wire [7:0] answer_code,
    output wire [PORTS-1:0] answer_ports,  // missing members, or all evicted ones
    output wire refused,
    output wire [7:0] refused_code,
    output wire refused_answer  // a status may be sent for it
);

  localparam [1:0] ECN_NOT_ECT = 2'd0;
  localparam [1:0] ECN_ECT1 = 2'd1;
  localparam [1:0] ECN_ECT0 = 2'd2;
  localparam [1:0] ECN_CE = 2'd3;
  localparam [7:0] CODE_DONE = 8'd0;
  localparam [7:0] CODE_WAIT = 8'd1;
  localparam [7:0] CODE_SEND = 8'd2;
  localparam [7:0] CODE_OVERDUE = 8'd4;
  localparam [7:0] CODE_LATE = 8'd23;
  localparam [7:0] CODE_EARLY = 8'd24;
  localparam [7:0] CODE_NOT_READY = 8'd25;
  localparam [7:0] CODE_DUPLICATE = 8'd26;
  localparam [7:0] CODE_PAYLOAD_CRC = 8'd27;
  localparam [7:0] CODE_EVICTED = 8'd28;

  localparam integer SLOTS = 2 * WINDOW;
  localparam [SLOTS-1:0] ONE_SLOT = 1;
  localparam integer SLOT_WIDTH = 32 + 2 * PORTS + 4;  // {marks, done, held, VID}

  reg [SLOT_WIDTH-1:0] low_slots[0:WINDOW-1];  // slots with the window's bit clear
  reg [SLOT_WIDTH-1:0] high_slots[0:WINDOW-1];
  reg [SLOTS-1:0] active_reg;
  reg [SLOTS-1:0] closed_reg;
  reg [SLOTS-1:0] reduced_reg;

  // -- Read ---------------------------------------------------------------------------------------

  wire [SLOT_BITS-1:0] whole_row = (slot_base >> 1) | (slot & (slot_mask >> 1));
  wire [ROW_BITS-1:0] row = whole_row[ROW_BITS-1:0];
  wire high = |(slot & job_window);
  wire unused = whole_row[SLOT_BITS-1];  // always 0

  wire [SLOT_WIDTH-1:0] low_slot = low_slots[row];
  wire [SLOT_WIDTH-1:0] high_slot = high_slots[row];
  wire [SLOT_WIDTH-1:0] own = high ? high_slot : low_slot;
  wire [SLOT_WIDTH-1:0] other = high ? low_slot : high_slot;  // slot of v - W

  wire active = active_reg[slot];
  wire is_reduced = reduced_reg[slot];
  wire [SLOT_BITS-1:0] other_slot = slot ^ job_window;
  wire other_reduced = reduced_reg[other_slot];

  wire [31:0] own_vid = own[31:0];
  wire [PORTS-1:0] own_held = own[32+:PORTS];
  wire [PORTS-1:0] own_done = own[32+PORTS+:PORTS];
  wire [3:0] own_marks = own[32+2*PORTS+:4];
  wire [31:0] other_vid = other[31:0];

  // -- Judge --------------------------------------------------------------------------------------

  // Subtracts from v while the table is read, and then compares for equality only: whether v is the
  // slot's VID, or the next one, is known before its distance.
  wire [31:0] window = {{32 - SLOT_BITS{1'b0}}, job_window};
  wire [31:0] window_2 = window << 1;
  wire [31:0] turn = {{32 - SLOT_BITS{1'b0}}, slot_mask};  // 2 * window - 1
  wire [31:0] one_back = vid - window;
  wire [31:0] two_back = vid - window_2;
  wire is_own = (vid ^ own_vid) == 32'd0;
  wire follows_own = (two_back ^ own_vid) == 32'd0;

  // The next VID of an empty slot is the first VID, or as far after it as the slot is after the
  // first VID's slot.
  wire [31:0] since_first = vid - job_first;
  wire [31:0] since_empty = since_first + window_2;
  wire same = active ? is_own : &(since_first | turn);
  wire next = active ? follows_own : (since_first & ~turn) == 32'd0;

  wire [31:0] since_own = vid - own_vid;
  wire behind_own = active ? since_own[31] : since_empty[31];
  wire unused_bits = &{1'b0, since_own[30:0], since_empty[30:0]};

  wire closed = closed_reg[slot];
  wire collecting = active && !closed;
  wire held = |(own_held & ports);

  wire [PORTS-1:0] done = own_done | ports;
  wire may_turn = !active || (is_reduced && (member & ~done) == {PORTS{1'b0}});

  assign stall           = data && next && active && is_reduced && !may_turn;
  assign turn_over       = data && next && may_turn && writable;
  assign store           = turn_over || (data && same && collecting && !held && writable);
  assign owe             = (data || ask) && same && active && is_reduced;
  assign resolve         = (data || refuse) && writable ? ports : {PORTS{1'b0}};

  assign store_ce        = store && ecn == ECN_CE;
  assign store_nonfinite = store && nonfinite;

  wire proves = data && other_reduced && other_vid == one_back;  // the sender is done with v - W

  // -- Replies ------------------------------------------------------------------------------------

  reg [7:0] rule;  // the code if data or an ask is refused

  always @* begin
    if (same && !active) rule = CODE_LATE;
    else if (same && (held || closed)) rule = CODE_DUPLICATE;
    else if (same || next) rule = CODE_NOT_READY;
    else if (behind_own) rule = CODE_LATE;
    else rule = CODE_EARLY;
  end

  assign asked          = ask && (next || (same && active));
  assign refused        = refuse || (data && !store) || (ask && !asked);
  assign refused_code   = refuse ? code : rule;
  assign refused_answer = refused && belongs && !owe && refused_code != CODE_PAYLOAD_CRC;

  assign answer         = finish || (ask && (next || (same && collecting)));
  assign answer_code    = finish ? CODE_DONE : same && held ? CODE_WAIT : CODE_SEND;

  // -- Overdue ------------------------------------------------------------------------------------

  wire [PORTS-1:0] missing = member & ~own_held;
  wire [PORTS-1:0] behind = member & ~own_done;

  wire ends_early = act && partial && collecting;
  wire evicts = act && partial && is_reduced && |behind;

  assign evict        = evicts ? behind : {PORTS{1'b0}};
  assign overdue      = act && (collecting || (is_reduced && |behind));
  assign notice       = overdue && !ends_early;
  assign notice_ports = evicts ? member | evicted : member & ~(collecting ? missing : behind);
  assign notice_code  = evicts ? CODE_EVICTED : CODE_OVERDUE;
  assign notice_vid   = own_vid;

  reg [PORTS-1:0] named;

  always @* begin
    if (act) named = evicts ? evicted | behind : collecting ? missing : behind;
    else if (finish) named = {PORTS{1'b0}};
    else named = next ? member : missing;
  end

  assign answer_ports = named;

  // -- Update -------------------------------------------------------------------------------------

  wire [PORTS-1:0] held_next = (turn_over ? {PORTS{1'b0}} : own_held) | ports;
  wire [      3:0] marks_next = (turn_over ? 4'd0 : own_marks) |
      {nonfinite, ecn == ECN_CE, ecn == ECN_NOT_ECT, ecn == ECN_ECT0};
  wire [PORTS-1:0] done_next = turn_over ? {PORTS{1'b0}} : data && next ? done : own_done;

  wire [SLOT_WIDTH-1:0] own_next = store ? {marks_next, done_next, held_next, vid} :
      {own_marks, done_next, own_held, own_vid};
  wire [SLOT_WIDTH-1:0] done_bit = {{SLOT_WIDTH - PORTS{1'b0}}, ports} << (32 + PORTS);
  wire [SLOT_WIDTH-1:0] other_next = other | done_bit;

  wire [3:0] marks = ends_early ? own_marks : marks_next;

  assign complete = ends_early || (store && (member & ~held_next) == {PORTS{1'b0}});
  assign complete_ports = ends_early ? own_held : held_next;
  assign complete_vid = ends_early ? own_vid : vid;
  assign complete_nonfinite = marks[3];
  assign complete_ecn = marks[2] ? ECN_CE : marks[1] ? ECN_NOT_ECT : marks[0] ? ECN_ECT0 : ECN_ECT1;

  wire [SLOTS-1:0] turned = turn_over ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] completed = complete ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] summed_now = reduced ? ONE_SLOT << reduced_slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    if (high ? proves : data) low_slots[row] <= high ? other_next : own_next;
    if (high ? data : proves) high_slots[row] <= high ? own_next : other_next;

    active_reg  <= (active_reg | turned) & ~flush_slots;
    closed_reg  <= ((closed_reg & ~turned) | completed) & ~flush_slots;
    reduced_reg <= ((reduced_reg & ~turned) | summed_now) & ~flush_slots;
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: section 5 of the specification, from one flush of the slot to the next, which is
  // one life of its job. VIDs have 32 bits; a slot reaches the same VID again only after 2^32.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_flushed = 1'b0;
  reg used;  // the slot has turned over in this job
  reg [31:0] holds;
  reg [PORTS-1:0] had, finished;
  reg summing, summed;  // queued for summation; its sum is in the cache
  reg ce, not_ect, ect0, special;
  reg [31:0] its_first;  // its job's configuration
  reg [SLOT_BITS-1:0] its_window, its_mask, its_base;
  reg [PORTS-1:0] its_member;

  // hits: the packet's job owns the slot; apart: its slots are none of the owner's.
  wire hits = (watched & ~slot_mask) == slot_base;
  wire apart = ((slot_base ^ its_base) & ~(slot_mask | its_mask)) != 0;
  wire its_job = job_first == its_first && job_window == its_window && slot_mask == its_mask &&
      slot_base == its_base && (member & ~its_member) == 0;
  wire [SLOT_BITS-1:0] its_row = (its_base >> 1) | (watched & (its_mask >> 1));
  wire [31:0] two_windows = 2 * job_window;
  wire mine = slot == watched;
  wire is_held = used && vid == holds;
  wire [31:0] would_hold = job_first + ((watched - job_first) & slot_mask);
  wire [31:0] distance = vid - (used ? holds : would_hold - two_windows);
  wire late = distance[31] || (!used && distance == 0);
  wire begins = used ? vid == holds + two_windows : vid == would_hold;
  wire [PORTS-1:0] finished_now = finished | ports;
  wire may = !used || (summed && (member & ~finished_now) == 0);
  wire turns = data && mine && writable && begins && may;
  wire joins = data && mine && writable && used && vid == holds &&
      !(|(had & ports)) && !summing && !summed;
  wire cut = act && mine && used && !summing && !summed && partial;  // its time is up
  wire [PORTS-1:0] behind_now = member & ~finished;
  wire [PORTS-1:0] had_now = turns ? ports : had | ports;
  wire ce_now = ecn == ECN_CE || (!turns && ce);
  wire not_ect_now = ecn == ECN_NOT_ECT || (!turns && not_ect);
  wire ect0_now = ecn == ECN_ECT0 || (!turns && ect0);
  wire special_now = nonfinite || (!turns && special);

  always @(posedge clk) begin
    if (!used) begin
      its_first  <= job_first;
      its_window <= job_window;
      its_mask   <= slot_mask;
      its_base   <= slot_base;
      its_member <= member;
    end
    if (turns || joins) begin
      used <= 1'b1;
      holds <= vid;
      had <= had_now;
      summing <= (member & ~had_now) == 0;
      ce <= ce_now;
      not_ect <= not_ect_now;
      ect0 <= ect0_now;
      special <= special_now;
    end
    if (cut) summing <= 1'b1;
    if (turns) begin
      finished <= 0;
      summed   <= 1'b0;
    end else if (data && used && hits && (vid == holds + two_windows ||
        (summed && vid == holds + job_window)))
      finished <= finished_now;
    if (reduced && reduced_slot == watched) begin
      summing <= 1'b0;
      summed  <= 1'b1;
    end
    if (&flush_slots) was_flushed <= 1'b1;
    if (flush_slots[watched]) begin
      used <= 1'b0;
      summing <= 1'b0;
      summed <= 1'b0;
    end
  end

  always @* begin
    if (was_flushed) begin
      // left_jobs: a window is a power of two, and a job's slots begin at a multiple of their number
      // and belong to no other job. Its configuration does not change while it uses slots, except
      // evictions. No packet of an ending job is judged.
      `PROMISED(job_window != 0 && (job_window & (job_window - 1'b1)) == 0 && job_window <= WINDOW);
      `PROMISED(slot_mask == two_windows - 1 && (slot_base & slot_mask) == 0);
      `PROMISED(!used || !(data || ask || act) || (hits ? its_job : apart));
      `PROMISED(!(flush_slots[watched] && hits && (data || ask || act)));
      // left_commit: slot is the VID's slot.
      `PROMISED(!(data || ask) || slot == (slot_base | (vid[SLOT_BITS-1:0] & slot_mask)));
      // left_deadlines: a slot acted upon is the job's, and no packet is judged in that cycle.
      `PROMISED(!act || ((slot & ~slot_mask) == slot_base && !(refuse || data || ask || finish)));
      // left_commit: one request a cycle, from a member; left_arbiter: from one port.
      `PROMISED(refuse + data + ask + finish <= 1);
      `PROMISED(!(data || ask) || (ports & member) != 0);
      `PROMISED((ports & (ports - 1'b1)) == 0);
      // left_reader and left_writer: a reduced slot was complete, and is reduced once.
      `PROMISED(!reduced || flush_slots[watched] || reduced_slot != watched || summing);

      assert (used == active_reg[watched] && summed == reduced_reg[watched]);
      assert (!(summing && summed) && (used || !(summing || summed)));
      assert (!used || closed_reg[watched] == (summing || summed));
      assert (!used || ((had & ~its_member) == 0 && (its_base | (holds & its_mask)) == watched));
      assert (!used || (its_window != 0 && (its_window & (its_window - 1'b1)) == 0));
      assert (!used || (its_window <= WINDOW && its_mask == 2 * its_window - 1));
      assert (!used || ((its_base & its_mask) == 0 && (watched & ~its_mask) == its_base));
      if (used)
        assert ((|(watched & its_window) ? high_slots[its_row] : low_slots[its_row]) ==
                {special, ce, not_ect, ect0, finished, had, holds});

      // A contribution is stored once, in the slot's chunk or the next one, and never after its
      // chunk closed. No chunk follows before every rank is done with its predecessor.
      if (mine) begin
        assert (turn_over == turns && store == (turns || joins));
        if (turn_over && used)
          assert (summed && (member & ~finished_now) == 0 && vid == holds + two_windows);
        if (store && used && !turn_over)
          assert (!(|(had & ports)) && vid == holds && !summing && !summed);

        // A slot completes once, when it holds all members or its time is up, with all marks.
        assert (complete == (cut || (store && (member & ~had_now) == 0)));
        if (complete) begin
          assert (complete_ports == (cut ? had : had_now) && complete_vid == (cut ? holds : vid));
          assert (cut || partial || (member & ~complete_ports) == 0);
          assert (turn_over || (!summing && !summed));
        end
        if (complete && cut) begin
          assert (complete_ecn ==
                  (ce ? ECN_CE : not_ect ? ECN_NOT_ECT : ect0 ? ECN_ECT0 : ECN_ECT1));
          assert (complete_nonfinite == special);
        end
        if (complete && !cut) begin
          if (ce_now)
            assert (complete_ecn == ECN_CE);
            else if (not_ect_now)
              assert (complete_ecn == ECN_NOT_ECT);
              else assert (complete_ecn == (ect0_now ? ECN_ECT0 : ECN_ECT1));
          assert (complete_nonfinite == special_now);
        end

        // A repeat or an ask is answered by the result, or by the missing members.
        assert (owe == ((data || ask) && used && summed && vid == holds));
        assert (asked == (ask && (begins || (used && vid == holds))));
        assert (answer == (finish || (ask && (begins || (is_held && !summing && !summed)))));
        if (ask && answer) begin
          assert (answer_ports == (begins ? member : member & ~had));
          assert (answer_code == (!begins && |(had & ports) ? CODE_WAIT : CODE_SEND));
        end
        if (finish) assert (answer_code == CODE_DONE && answer_ports == 0);
        assert (refused == (refuse || (data && !store) || (ask && !asked)));
        if (refuse) assert (refused_code == code);
        if (!refuse && refused) begin
          if (is_held && (|(had & ports) || summing || summed))
            assert (refused_code == CODE_DUPLICATE);
            else if (is_held)
              assert (refused_code == CODE_NOT_READY);
              else if (begins)
                assert (refused_code == CODE_NOT_READY);
                else assert (refused_code == (late ? CODE_LATE : CODE_EARLY));
        end
        assert (refused_answer == (refused && belongs && !owe && refused_code != CODE_PAYLOAD_CRC));
      end
      // Overdue members are reported to the others, or evicted; a packet evicts nobody.
      if (mine && act) begin
        assert (evict == (used && summed && partial ? behind_now : 0));
        assert (overdue == (used && (summed ? behind_now != 0 : !summing)));
        assert (notice == (overdue && !cut));
        if (notice && evict != 0) begin
          assert (notice_code == CODE_EVICTED && notice_ports == (member | evicted));
          assert (answer_ports == (evicted | behind_now));
        end
        if (notice && evict == 0) begin
          assert (notice_code == CODE_OVERDUE && !partial);
          assert (answer_ports == (summed ? behind_now : member & ~had));
          assert (notice_ports == (member & ~answer_ports));
        end
        if (notice) assert (notice_vid == holds);
      end
      if (!act) assert (!overdue && !notice && evict == 0);
      if (mine)
        assert (stall == (data && used && summed && vid == holds + two_windows &&
          (member & ~finished_now) != 0));
      if (!data) assert (!stall);

      assert (store_ce == (store && ecn == ECN_CE) && store_nonfinite == (store && nonfinite));
      assert (resolve == ((data || refuse) && writable ? ports : 0));
      if (!data) assert (!store && !turn_over);

      cover (turn_over && mine && used && finished != 0);
      cover (complete && mine && holds == 32'hffffffff && !turn_over);
      cover (owe && mine && holds == 0);
      cover (summed && finished == member && member != 1 && data && mine && !store);
      cover (cut && had != 0 && had != member);
      cover (act && mine && evict != 0);
      cover (used && its_window == 1 && its_base != 0 && turn_over && !hits);
    end
  end
`endif

endmodule

`default_nettype wire

// Holds the latest status for each port and one notice for several ports, and picks one that its
// port can take.
//
// An answer is always kept. A refusal is kept if its sender is known and no refusal of any port was
// kept in the last 1,024 cycles. A port's next status replaces one not yet sent. A notice is sent
// to each of its ports as a status, with the port's rank; the next notice replaces what was not
// sent of it.
//
// Statuses and notices of an ending job are dropped; a status belongs to the job in the low bits of
// the packet's job number. The pick rotates among ports, and alternates between statuses and the
// notice. Latency: an answer in cycle 0 can be picked in cycle 1. Not done here: counting all
// refusals (left_counters).

`default_nettype none

module left_status #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1
) (
    input wire clk,
    input wire rst,
    input wire [JOBS-1:0] drop,  // drop pending statuses of these jobs

    // Reply to a packet; at most one of answer and refuse
    input wire                 answer,
    input wire [          7:0] answer_code,
    input wire [    PORTS-1:0] answer_mask,  // ranks; also for a notice
    input wire                 refuse,
    input wire [          7:0] refuse_code,
    input wire [PORT_BITS-1:0] port,
    input wire [          7:0] job,
    input wire [         15:0] epoch,
    input wire [          7:0] rank,
    input wire [         31:0] vid,

    // A notice, which no packet requested
    input wire                notice,
    input wire [   PORTS-1:0] notice_ports,
    input wire [         7:0] notice_code,
    input wire [JOB_BITS-1:0] notice_job,
    input wire [        15:0] notice_epoch,
    input wire [        31:0] notice_vid,
    input wire [ 8*PORTS-1:0] notice_ranks,  // of all ports in that job

    input wire [PORTS-1:0] ready,  // ports that can take a status

    output wire                 pick_valid,
    output wire [PORT_BITS-1:0] pick_port,
    output wire [          7:0] pick_job,
    output wire [         15:0] pick_epoch,
    output wire [          7:0] pick_rank,
    output wire [          7:0] pick_code,
    output wire [         31:0] pick_vid,
    output wire [    PORTS-1:0] pick_mask,
    input  wire                 pick_take
);

  localparam integer STATUS_WIDTH = 72 + PORTS;
  localparam [PORTS-1:0] ONE_PORT = 1;
  localparam [9:0] PAUSE = 10'd1023;  // minimum cycles between refusals

  reg [STATUS_WIDTH-1:0] statuses[0:PORTS-1];
  reg [JOB_BITS*PORTS-1:0] job_of_reg;  // of each port's status
  reg [PORTS-1:0] waits_reg;
  reg [PORTS-1:0] above_reg;  // ports above the last pick
  reg [9:0] pause_reg;

  reg [PORTS-1:0] told_reg;  // ports still to be sent the notice
  reg [JOB_BITS-1:0] told_job_reg;
  reg [STATUS_WIDTH-9:0] notice_reg;
  reg [8*PORTS-1:0] ranks_reg;
  reg after_status_reg;  // the last pick was not the notice

  // -- Store --------------------------------------------------------------------------------------

  wire [JOB_BITS-1:0] job_index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
  wire refuses = refuse && pause_reg == 10'd0;
  wire keep = (answer || refuses) && !drop[job_index];
  wire [7:0] code = answer ? answer_code : refuse_code;
  wire [PORTS-1:0] mask = answer ? answer_mask : {PORTS{1'b0}};
  wire [PORTS-1:0] kept = keep ? ONE_PORT << port : {PORTS{1'b0}};

  reg [PORTS-1:0] dropped;
  integer d;

  always @* begin
    for (d = 0; d < PORTS; d = d + 1) dropped[d] = drop[job_of_reg[JOB_BITS*d+:JOB_BITS]];
  end

  // -- Pick ---------------------------------------------------------------------------------------

  wire [PORTS-1:0] can_tell = told_reg & ready;
  wire [PORTS-1:0] can_send = waits_reg & ready;
  wire tells = |can_tell && (after_status_reg || ~|can_send);

  wire [PORTS-1:0] can = tells ? can_tell : can_send;
  wire [PORTS-1:0] ahead = can & above_reg;
  wire [PORTS-1:0] among = |ahead ? ahead : can;
  wire [PORTS-1:0] lowest = among & (~among + 1'b1);
  wire [PORTS-1:0] taken = pick_take ? lowest : {PORTS{1'b0}};

  reg [PORT_BITS-1:0] index;
  integer p;

  always @* begin
    index = {PORT_BITS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) if (lowest[p]) index = p[PORT_BITS-1:0];
  end

  wire [7:0] told_rank = ranks_reg[8*index+:8];
  wire [STATUS_WIDTH-1:0] pick = tells ? {notice_reg, told_rank} : statuses[index];

  // -----------------------------------------------------------------------------------------------

  always @(posedge clk) begin
    if (keep) begin
      statuses[port] <= {mask, vid, code, epoch, job, rank};
      job_of_reg[JOB_BITS*port+:JOB_BITS] <= job_index;
    end
    waits_reg <= (waits_reg & ~dropped & (tells ? {PORTS{1'b1}} : ~taken)) | kept;
    if (pick_take) begin
      above_reg        <= ~(lowest | (lowest - 1'b1));
      after_status_reg <= !tells;
    end
    if (refuses) pause_reg <= PAUSE;
    else if (pause_reg != 10'd0) pause_reg <= pause_reg - 10'd1;

    if (tells) told_reg <= told_reg & ~taken;
    if (notice) begin
      told_reg <= notice_ports;
      told_job_reg <= notice_job;
      notice_reg <= {
        answer_mask, notice_vid, notice_code, notice_epoch, {8 - JOB_BITS{1'b0}}, notice_job
      };
      ranks_reg <= notice_ranks;
    end
    if (notice ? drop[notice_job] : drop[told_job_reg]) told_reg <= {PORTS{1'b0}};

    if (rst) begin
      waits_reg        <= {PORTS{1'b0}};
      above_reg        <= {PORTS{1'b0}};
      pause_reg        <= 10'd0;
      told_reg         <= {PORTS{1'b0}};
      told_job_reg     <= {JOB_BITS{1'b0}};
      after_status_reg <= 1'b0;
    end
  end

  assign pick_valid = |can;
  assign pick_port = index;
  assign {pick_mask, pick_vid, pick_code, pick_epoch, pick_job, pick_rank} = pick;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any port: its pending status and notice.
  (* anyconst *) reg [PORT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg waits, told;
  reg [STATUS_WIDTH-1:0] its, notice_its;
  reg [JOB_BITS-1:0] its_job, notice_its_job;
  reg [9:0] since;  // cycles since the last refusal that was kept
  wire mine = port == watched;
  wire it_keeps = mine && (answer || (refuse && since == PAUSE)) && !drop[job_index];
  wire it_is_sent = pick_take && pick_port == watched && !tells;
  wire it_is_told = pick_take && pick_port == watched && tells;
  wire [PORTS-1:0] bit_ = 1 << watched;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    since <= refuse && since == PAUSE ? 0 : since == PAUSE ? since : since + 1;
    if (drop[its_job] || it_is_sent) waits <= 1'b0;
    if (it_keeps) begin
      waits <= 1'b1;
      its <= {
        answer ? answer_mask : {PORTS{1'b0}},
        vid,
        answer ? answer_code : refuse_code,
        epoch,
        job,
        rank
      };
    end
    if (it_keeps) its_job <= job_index;
    if (it_is_told) told <= 1'b0;
    if (notice) begin
      told <= |(notice_ports & bit_);
      notice_its_job <= notice_job;
      notice_its <= {
        answer_mask,
        notice_vid,
        notice_code,
        notice_epoch,
        {8 - JOB_BITS{1'b0}},
        notice_job,
        notice_ranks[8*watched+:8]
      };
    end
    if (drop[notice?notice_job : notice_its_job]) told <= 1'b0;
    if (rst) begin
      waits <= 1'b0;
      told <= 1'b0;
      since <= PAUSE;
      notice_its_job <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // left_slots: one event at a time. left_egress takes only valid picks.
      `PROMISED(answer + refuse + notice <= 1);
      `PROMISED(!pick_take || pick_valid);
    end
    if (was_reset && !rst) begin
      assert (waits == waits_reg[watched] && told == told_reg[watched]);
      assert (since <= PAUSE && pause_reg == PAUSE - since);
      if (waits)
        assert (statuses[watched] == its && job_of_reg[JOB_BITS*watched+:JOB_BITS] == its_job);
      if (told) assert ({notice_reg, ranks_reg[8*watched+:8]} == notice_its);
      assert (told_job_reg == notice_its_job);

      // A pick is for a port that can take it; with no pick, nothing that could be sent is pending.
      if (pick_valid && pick_port == watched) begin
        assert (ready[watched] && (tells ? told : waits));
        assert ({pick_mask, pick_vid, pick_code, pick_epoch, pick_job, pick_rank} ==
                (tells ? notice_its : its));
      end
      if (ready[watched] && (waits || told)) assert (pick_valid);

      cover (it_is_told && waits);
      cover (it_is_sent && told && it_keeps);
      cover (drop[its_job] && waits && told && its_job != notice_its_job);
    end
  end
`endif

endmodule

`default_nettype wire

// Delays a tag and its valid bit by CYCLES cycles, beside a pipeline that never stalls. CYCLES =
// 0 is a wire.
//
// Reset clears the valid bits. Not done here: stalls; the tags of invalid cycles are not
// cleared.

`default_nettype none

module left_tag_delay #(
    parameter integer WIDTH  = 8,
    parameter integer CYCLES = 4
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             in_valid,
    input  wire [WIDTH-1:0] in_tag,
    output wire             out_valid,
    output wire [WIDTH-1:0] out_tag
);

  left_delay #(
      .WIDTH (WIDTH),
      .CYCLES(CYCLES)
  ) u_tag (
      .clk(clk),
      .d  (in_tag),
      .q  (out_tag)
  );

  generate
    if (CYCLES == 0) begin : g_wire
      wire unused = rst;
      assign out_valid = in_valid;
    end else begin : g_registers
      reg  [CYCLES-1:0] valid_reg;  // newest in bit 0
      wire [  CYCLES:0] valid_next = {valid_reg, in_valid};
      always @(posedge clk) begin
        if (rst) valid_reg <= {CYCLES{1'b0}};
        else valid_reg <= valid_next[CYCLES-1:0];
      end
      assign out_valid = valid_next[CYCLES];
    end
  endgenerate

endmodule

`default_nettype wire

// Writes sums into the result cache, and tracks how much of each slot's result is written.
//
// A sum's tag precedes the sum by one cycle: the tag is in cycle 0, the sum and its write (wr_*)
// in cycle 1. The events begun (a slot's first sum, whichever beat that is) and reduced (its last)
// are in cycle 0; their users must not act before cycle 1. A slot's sums may come in any order.
// Each is counted when whole: a sum in several parts counts with its last part. A beat counts as
// written in the cycle of its write, so a read in the cycle of its query needs a cache that
// forwards.
//
// Not done here: holding back writes; left_reader keeps entries that are being sent from being
// written.

`default_nettype none

module left_writer #(
    parameter integer LANES      = 16,
    parameter integer SLOT_BITS  = 4,
    parameter integer INDEX_BITS = 4,   // width of a beat's number in its chunk
    parameter integer COUNT_BITS = 5    // width of a number of lanes
) (
    input wire clk,
    input wire rst,

    input wire                  next_valid,     // a sum comes in the next cycle
    input wire                  next_whole,     // the whole sum of that beat, or its last part
    input wire [ SLOT_BITS-1:0] next_slot,
    input wire [INDEX_BITS-1:0] next_beat,
    input wire [INDEX_BITS-1:0] next_last,      // number of the last beat of the slot's chunk
    input wire [     LANES-1:0] sum_nonfinite,  // NaN or infinity, in the present sum or part
    input wire [     LANES-1:0] sum_over,       // overflow

    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,

    output wire begun,
    output wire reduced,
    output wire [COUNT_BITS-1:0] nonfinite,  // elements of the sum one cycle ago
    output wire [COUNT_BITS-1:0] overflow,

    input  wire [ SLOT_BITS-1:0] query_slot,
    input  wire [INDEX_BITS-1:0] query_beat,
    output wire                  query_written
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [INDEX_BITS-1:0] counts[0:SLOTS-1];  // beats written, for a slot that has begun
  reg [SLOTS-1:0] begun_reg;  // some beats are written, not all
  reg [SLOTS-1:0] whole_reg;  // all beats are written

  // The slot that began last, and how many of its beats are written without a gap.
  reg [SLOT_BITS-1:0] front_slot_reg;
  reg [INDEX_BITS:0] front_count_reg;

  reg wr_en_reg;
  reg [SLOT_BITS-1:0] wr_slot_reg;
  reg [INDEX_BITS-1:0] wr_beat_reg;
  reg [COUNT_BITS-1:0] nonfinite_reg, overflow_reg;
  reg [COUNT_BITS-1:0] nonfinites, overflows;  // sums over the lanes

  wire [INDEX_BITS-1:0] already = begun_reg[next_slot] ? counts[next_slot] : {INDEX_BITS{1'b0}};

  wire counts_next = next_valid && next_whole;

  assign begun   = counts_next && !begun_reg[next_slot];
  assign reduced = counts_next && already == next_last;

  wire in_order = next_slot == front_slot_reg && {1'b0, next_beat} == front_count_reg;

  integer lane;

  always @* begin
    nonfinites = {COUNT_BITS{1'b0}};
    overflows  = {COUNT_BITS{1'b0}};
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      nonfinites = nonfinites + {{COUNT_BITS - 1{1'b0}}, sum_nonfinite[lane]};
      overflows  = overflows + {{COUNT_BITS - 1{1'b0}}, sum_over[lane]};
    end
  end

  always @(posedge clk) begin
    wr_en_reg     <= next_valid;
    wr_slot_reg   <= next_slot;
    wr_beat_reg   <= next_beat;
    nonfinite_reg <= wr_en_reg ? nonfinites : {COUNT_BITS{1'b0}};
    overflow_reg  <= wr_en_reg ? overflows : {COUNT_BITS{1'b0}};
    if (counts_next) begin
      counts[next_slot]    <= already + 1'b1;
      begun_reg[next_slot] <= !reduced;
      whole_reg[next_slot] <= reduced;
    end
    if (begun) begin
      front_slot_reg  <= next_slot;
      front_count_reg <= {{INDEX_BITS{1'b0}}, next_beat == {INDEX_BITS{1'b0}}};
    end else if (counts_next && in_order) begin
      front_count_reg <= front_count_reg + 1'b1;
    end
    if (rst) begin
      wr_en_reg       <= 1'b0;
      begun_reg       <= {SLOTS{1'b0}};
      whole_reg       <= {SLOTS{1'b0}};
      front_count_reg <= {INDEX_BITS + 1{1'b0}};
    end
  end

  assign wr_en = wr_en_reg;
  assign wr_slot = wr_slot_reg;
  assign wr_beat = wr_beat_reg;
  assign nonfinite = nonfinite_reg;
  assign overflow = overflow_reg;
  assign query_written = whole_reg[query_slot] ||
      (query_slot == front_slot_reg && {1'b0, query_beat} < front_count_reg);

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the beats written since its sum began, in any order.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  localparam integer BEATS = 1 << INDEX_BITS;
  reg was_reset = 1'b0;
  reg known;  // it began in this job
  reg [BEATS-1:0] written;
  reg [INDEX_BITS:0] written_count;
  reg [INDEX_BITS-1:0] its_last;  // of the chunk that began last
  reg running_was = 1'b0;
  reg [SLOT_BITS+INDEX_BITS:0] tag_was;
  wire [BEATS-1:0] all = {BEATS{1'b1}} >> (BEATS - 1 - its_last);
  wire mine = next_valid && next_whole && next_slot == watched;
  wire anew = !known || written == all;
  wire [BEATS-1:0] written_now = (anew ? {BEATS{1'b0}} : written) | (1 << next_beat);
  wire [INDEX_BITS-1:0] last_now = anew ? next_last : its_last;
  wire [BEATS-1:0] all_now = {BEATS{1'b1}} >> (BEATS - 1 - last_now);
  wire under_way = known && written != all;
  reg front;  // it began last
  reg [INDEX_BITS:0] in_row;  // beats from the first on that came in order
  reg [COUNT_BITS-1:0] nonfinite_was, over_was, nonfinite_lanes, over_lanes;
  integer n;

  always @(posedge clk) begin
    if (mine) its_last <= last_now;
    running_was <= !rst;
    tag_was <= {next_valid, next_slot, next_beat};
    if (mine) begin
      known   <= 1'b1;
      written <= written_now;
    end
    if (begun) front <= mine;
    if (mine && anew) in_row <= next_beat == 0;
    else if (mine && next_beat == in_row) in_row <= in_row + 1;
    nonfinite_was <= wr_en ? nonfinite_lanes : 0;
    over_was <= wr_en ? over_lanes : 0;
    if (rst) begin
      was_reset <= 1'b1;
      known     <= 1'b0;
      front     <= 1'b0;
    end
  end

  always @* begin
    nonfinite_lanes = 0;
    over_lanes = 0;
    for (n = 0; n < LANES; n = n + 1) begin
      nonfinite_lanes = nonfinite_lanes + sum_nonfinite[n];
      over_lanes = over_lanes + sum_over[n];
    end
    written_count = 0;
    for (n = 0; n < BEATS; n = n + 1) written_count = written_count + written[n];
    if (was_reset && !rst) begin
      // left_reader: all beats of a slot come, each once, before those of the slot's next chunk.
      `PROMISED(!mine || (next_beat <= last_now && (anew || !written[next_beat])));
      // left_jobs: the chunk length does not change while sums are under way.
      `PROMISED(!mine || next_last == last_now);

      assert (!known || ((written & ~all) == 0 && written != 0));
      assert (begun_reg[watched] == under_way && (!known || whole_reg[watched] == !under_way));
      if (under_way) assert (counts[watched] == written_count);
      assert (!known || front == (front_slot_reg == watched));
      if (!known && front_slot_reg == watched) assert (front_count_reg == 0);
      if (front && under_way) assert (front_count_reg == in_row && in_row <= written_count);

      if (mine) begin
        assert (begun == anew);
        assert (reduced == (written_now == all_now));
      end
      if (!(next_valid && next_whole)) assert (!begun && !reduced);

      // A query hits only written beats, and hits all of them once the slot is whole.
      if (known && query_slot == watched && query_beat <= its_last) begin
        assert (!query_written || written[query_beat]);
        assert (query_written || written != all);
        assert (query_written || !front || query_beat >= in_row);
      end
      if (!known && query_slot == watched) assert (!query_written);
      if (!known) assert (!whole_reg[watched]);
      for (n = 0; n < BEATS; n = n + 1) if (front && under_way && n < in_row) assert (written[n]);
      if (!running_was) assert (!wr_en);
      if (running_was) assert (nonfinite == nonfinite_was && overflow == over_was);
      if (running_was)
        assert ({wr_en, wr_en ? {wr_slot, wr_beat} : tag_was[SLOT_BITS+INDEX_BITS-1:0]} == tag_was);

      cover (mine && reduced && next_beat == 0 && next_last == 2);
      cover (known && query_slot == watched && query_written && under_way && query_beat == 1);
      cover (mine && !anew && next_slot != front_slot_reg);
      cover (begun && reduced);
    end
  end
`endif

endmodule

`default_nettype wire

// The adder tree of one lane: y is the sum of x_p0..x_p1, 14 cycles later; a new sum
// every cycle. Neighbours pair up level by level, an odd one out passes up unchanged.
// over says that y is an infinity or a NaN though no operand was.
// It knows no valid, no slot and no absent worker: whoever drives it delays its tags
// by as many cycles, and gives it -0 for a worker that is absent.

`default_nettype none

module left_lane (
    input  wire        clk,
    input  wire [31:0] x_p0,
    input  wire [31:0] x_p1,
    output wire [31:0] y,
    output wire        over
);
  // Level 0: 2 to 1, valid 14 cycles after the inputs.
  // workers 0, 1
  left_fp_add #(
      .EXP     (8),
      .FRAC    (23),
      .INFINITY(1)
  ) u_l0_n0 (
      .clk(clk),
      .a  (x_p0),
      .b  (x_p1),
      .y  (y)
  );

  left_fp_over #(
      .OPERANDS(2),
      .LATENCY (14),
      .EXP     (8),
      .FRAC    (23),
      .INFINITY(1)
  ) u_over (
      .clk (clk),
      .x   ({x_p1, x_p0}),
      .y   (y),
      .over(over)
  );

endmodule

`default_nettype wire

// The aggregator between AXI4-Stream ports.
//
// Every port's chunks are stored in its slot memory; a slot that holds all members of its job is read
// from all memories at once, summed lane by lane, and its result is kept in the cache and sent.
//
// Into each port go data, ask and finish packets: the 14 bytes of the header stand in tuser[111:0]
// on a packet's first beat, tuser[112] on its last says that the payload is bad. Packets without
// payload are one beat with tkeep = 0. Out of m_axis come results and statuses: the 30 bytes of
// the header stand in tuser during the whole packet, the ports that it is for in tdest. A
// packet is begun only for ports that are ready, and m_axis_tready must then let it pass.
//
// Latency from a chunk's last beat to its result's first: 21 cycles, 14 of them in the
// lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets wait
// to be judged. Not done here: framing and CRC, which are the shell's.

`default_nettype none

module left_core (
    input wire clk,
    input wire rst,

    // The host; whether what it left behind is still at work
    input  wire link_down,
    output wire hold,
    output wire unjudged,

    // Port 0, in
    input  wire [ 31:0] s_axis_p0_tdata,
    input  wire [  3:0] s_axis_p0_tkeep,
    input  wire         s_axis_p0_tvalid,
    output wire         s_axis_p0_tready,
    input  wire         s_axis_p0_tlast,
    input  wire [112:0] s_axis_p0_tuser,

    // Port 1, in
    input  wire [ 31:0] s_axis_p1_tdata,
    input  wire [  3:0] s_axis_p1_tkeep,
    input  wire         s_axis_p1_tvalid,
    output wire         s_axis_p1_tready,
    input  wire         s_axis_p1_tlast,
    input  wire [112:0] s_axis_p1_tuser,

    // Out, for all ports
    output wire [ 31:0] m_axis_tdata,
    output wire [  3:0] m_axis_tkeep,
    output wire         m_axis_tvalid,
    input  wire         m_axis_tready,
    output wire         m_axis_tlast,
    output wire [239:0] m_axis_tuser,
    output wire [  1:0] m_axis_tdest,

    // Ports that can take a whole packet
    input wire [1:0] port_ready,

    // Who has which rank
    output wire [ 1:0] member,
    output wire [15:0] rank_of_port,

    // Register accesses, answered in order, one at a time
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

    // Events of the shell, one count a cycle
    input wire shell_frames,
    input wire shell_hunted,
    input wire shell_header_crc,
    input wire shell_bad_version,
    input wire shell_bad_kind,
    input wire shell_bad_length,

    // A beat enters the lanes
    output wire beat_strobe
);
  // -- Jobs --
  wire        flush;  // the job ends
  wire [ 7:0] flush_slots;  // their job ends
  wire        quiet;  // all jobs end: no packet is judged
  wire        drop_statuses;
  wire        drained;  // nothing of the job is being reduced
  wire        sending;  // a result leaves: its cache entry must not change
  wire        sets_up;  // the job is being set up
  wire        sets_up_job;  // this one
  wire        cleared;  // what was counted of it before
  wire        job_valid;  // set up
  wire        job_complete;  // the last one ended because all had finished
  wire        job_ever;  // an epoch was ever set
  wire [15:0] job_epoch;
  wire [15:0] job_chunk;  // elements
  wire [ 1:0] job_last;  // number of a chunk's last beat
  wire [ 2:0] job_window;  // chunks
  wire [ 2:0] slot_mask;  // twice the window, less 1
  wire [ 2:0] slot_base;  // the first slot
  wire [31:0] job_first;  // first VID
  wire [31:0] job_deadline;  // cycles; 0: none
  wire        job_partial;  // sums
  wire [ 1:0] job_finished;  // ranks that have finished
  wire [ 1:0] job_evicted;  // ranks that were evicted
  wire [ 1:0] evicted;  // their ports
  wire [ 1:0] present;  // members that were not, by port
  wire        op_valid;
  wire        op_commit;
  wire        op_abort;
  wire [ 7:0] op_job;
  wire [15:0] op_epoch;
  wire [31:0] op_first;
  wire [63:0] op_ports;
  wire [63:0] op_chunk;
  wire [63:0] op_window;
  wire [63:0] op_deadline;
  wire        op_done;
  wire [ 7:0] op_code;
  wire        commit_finish;
  wire        commit_index;  // the job of the packet, or of the slot that is acted upon
  wire [ 1:0] commit_rank_bit;  // its sender
  wire [ 1:0] evict;  // these are members no more
  wire [ 1:0] answer_mask;  // ranks that are missing, or were evicted

  left_jobs #(
      .PORTS     (2),
      .PORT_BITS (1),
      .JOBS      (1),
      .JOB_BITS  (1),
      .CHUNK     (4),
      .WINDOW    (4),
      .SLOT_BITS (3),
      .INDEX_BITS(2),
      .LANE_BITS (0)
  ) u_jobs (
      .clk          (clk),
      .rst          (rst),
      .link_down    (link_down),
      .op_valid     (op_valid),
      .op_commit    (op_commit),
      .op_abort     (op_abort),
      .op_job       (op_job),
      .op_epoch     (op_epoch),
      .op_first     (op_first),
      .op_ports     (op_ports),
      .op_chunk     (op_chunk),
      .op_window    (op_window),
      .op_deadline  (op_deadline),
      .op_done      (op_done),
      .op_code      (op_code),
      .finish       (commit_finish),
      .finish_job   (commit_index),
      .finish_bit   (commit_rank_bit),
      .drained      (drained),
      .evict        (evict),
      .evict_job    (commit_index),
      .evict_ranks  (answer_mask),
      .flush        (flush),
      .flush_slots  (flush_slots),
      .quiet        (quiet),
      .hold         (hold),
      .drop_statuses(drop_statuses),
      .sets_up      (sets_up),
      .sets_up_job  (sets_up_job),
      .cleared      (cleared),
      .job_valid    (job_valid),
      .job_complete (job_complete),
      .job_ever     (job_ever),
      .job_epoch    (job_epoch),
      .job_chunk    (job_chunk),
      .job_last     (job_last),
      .job_window   (job_window),
      .slot_mask    (slot_mask),
      .slot_base    (slot_base),
      .job_first    (job_first),
      .job_deadline (job_deadline),
      .job_partial  (job_partial),
      .job_finished (job_finished),
      .job_evicted  (job_evicted),
      .evicted      (evicted),
      .present      (present),
      .member       (member),
      .rank_of_port (rank_of_port)
  );

  // What all ports are told
  wire [  2:0] slot;  // of the packet that is judged, or the one that is acted upon
  wire         commit_store;  // it is stored
  wire [  1:0] resolve;  // the fate of the port's written data is known
  wire         reduced;  // a slot has been summed
  wire [  2:0] sum_slot;  // this one
  wire         sum_job;  // its job
  wire [  1:0] req_valid;  // ports that ask for a commit
  wire [  1:0] req_grant;
  wire         rd_en;  // all slot memories are read
  wire [  2:0] rd_slot;
  wire [  1:0] rd_beat;
  wire [  1:0] beat_members;  // ports in the sum of the beat that goes into the lanes

  // -- Port 0 --
  wire         p0_nonfinite;  // elements that are a NaN or an infinity
  wire [101:0] p0_request;  // commit
  wire         p0_wr_en;
  wire [  2:0] p0_wr_slot;
  wire [  1:0] p0_wr_beat;
  wire [ 31:0] p0_wr_data;
  wire [ 31:0] p0_stored;  // as read
  wire [ 31:0] p0_gated;  // as summed

  left_fp_nonfinite #(
      .LANES   (1),
      .EXP     (8),
      .FRAC    (23),
      .INFINITY(1)
  ) u_nonfinite_p0 (
      .beat     (s_axis_p0_tdata),
      .nonfinite(p0_nonfinite)
  );

  left_ingress #(
      .BEAT_BITS (32),
      .JOBS      (1),
      .JOB_BITS  (1),
      .SLOT_BITS (3),
      .INDEX_BITS(2)
  ) u_ingress_p0 (
      .clk           (clk),
      .rst           (rst),
      .flush         (flush),
      .flush_slots   (flush_slots),
      .job_valid     (job_valid),
      .slot_mask     (slot_mask),
      .slot_base     (slot_base),
      .job_last      (job_last),
      .s_axis_tdata  (s_axis_p0_tdata),
      .s_axis_tkeep  (s_axis_p0_tkeep),
      .s_axis_tvalid (s_axis_p0_tvalid),
      .s_axis_tready (s_axis_p0_tready),
      .s_axis_tlast  (s_axis_p0_tlast),
      .s_axis_tuser  (s_axis_p0_tuser),
      .s_nonfinite   (|p0_nonfinite),
      .wr_en         (p0_wr_en),
      .wr_slot       (p0_wr_slot),
      .wr_beat       (p0_wr_beat),
      .wr_data       (p0_wr_data),
      .req_valid     (req_valid[0]),
      .req_grant     (req_grant[0]),
      .req_data      (p0_request),
      .resolve       (resolve[0]),
      .resolve_slot  (slot),
      .resolve_stored(commit_store),
      .reduced       (reduced),
      .reduced_slot  (sum_slot)
  );

  left_ram #(
      .WIDTH    (32),
      .ADDR_BITS(5)
  ) u_slots_p0 (
      .clk    (clk),
      .wr_en  (p0_wr_en),
      .wr_addr({p0_wr_slot, p0_wr_beat}),
      .wr_data(p0_wr_data),
      .rd_en  (rd_en),
      .rd_addr({rd_slot, rd_beat}),
      .rd_data(p0_stored)
  );

  left_gate #(
      .LANES    (1),
      .ELEM_BITS(32),
      .IDENTITY (64'h80000000)
  ) u_gate_p0 (
      .clk   (clk),
      .enable(beat_members[0]),
      .x     (p0_stored),
      .y     (p0_gated)
  );

  // -- Port 1 --
  wire         p1_nonfinite;  // elements that are a NaN or an infinity
  wire [101:0] p1_request;  // commit
  wire         p1_wr_en;
  wire [  2:0] p1_wr_slot;
  wire [  1:0] p1_wr_beat;
  wire [ 31:0] p1_wr_data;
  wire [ 31:0] p1_stored;  // as read
  wire [ 31:0] p1_gated;  // as summed

  left_fp_nonfinite #(
      .LANES   (1),
      .EXP     (8),
      .FRAC    (23),
      .INFINITY(1)
  ) u_nonfinite_p1 (
      .beat     (s_axis_p1_tdata),
      .nonfinite(p1_nonfinite)
  );

  left_ingress #(
      .BEAT_BITS (32),
      .JOBS      (1),
      .JOB_BITS  (1),
      .SLOT_BITS (3),
      .INDEX_BITS(2)
  ) u_ingress_p1 (
      .clk           (clk),
      .rst           (rst),
      .flush         (flush),
      .flush_slots   (flush_slots),
      .job_valid     (job_valid),
      .slot_mask     (slot_mask),
      .slot_base     (slot_base),
      .job_last      (job_last),
      .s_axis_tdata  (s_axis_p1_tdata),
      .s_axis_tkeep  (s_axis_p1_tkeep),
      .s_axis_tvalid (s_axis_p1_tvalid),
      .s_axis_tready (s_axis_p1_tready),
      .s_axis_tlast  (s_axis_p1_tlast),
      .s_axis_tuser  (s_axis_p1_tuser),
      .s_nonfinite   (|p1_nonfinite),
      .wr_en         (p1_wr_en),
      .wr_slot       (p1_wr_slot),
      .wr_beat       (p1_wr_beat),
      .wr_data       (p1_wr_data),
      .req_valid     (req_valid[1]),
      .req_grant     (req_grant[1]),
      .req_data      (p1_request),
      .resolve       (resolve[1]),
      .resolve_slot  (slot),
      .resolve_stored(commit_store),
      .reduced       (reduced),
      .reduced_slot  (sum_slot)
  );

  left_ram #(
      .WIDTH    (32),
      .ADDR_BITS(5)
  ) u_slots_p1 (
      .clk    (clk),
      .wr_en  (p1_wr_en),
      .wr_addr({p1_wr_slot, p1_wr_beat}),
      .wr_data(p1_wr_data),
      .rd_en  (rd_en),
      .rd_addr({rd_slot, rd_beat}),
      .rd_data(p1_stored)
  );

  left_gate #(
      .LANES    (1),
      .ELEM_BITS(32),
      .IDENTITY (64'h80000000)
  ) u_gate_p1 (
      .clk   (clk),
      .enable(beat_members[1]),
      .x     (p1_stored),
      .y     (p1_gated)
  );

  // -- Commit --
  wire         granted_valid;  // a packet's header is checked; it is judged in the next cycle
  wire [  1:0] granted_ports;  // the port it came by, one hot
  wire         granted_port;
  wire [101:0] granted_request;
  wire         pause;  // a slot is to be acted upon
  wire         act_next;  // in the next cycle
  wire [  2:0] act_slot;
  wire         act_job;

  left_arbiter #(
      .PORTS    (2),
      .PORT_BITS(1),
      .WIDTH    (102)
  ) u_arbiter (
      .clk      (clk),
      .rst      (rst),
      .hold     (quiet || pause),
      .req_valid(req_valid),
      .req_grant(req_grant),
      .req_data ({p1_request, p0_request}),
      .out_valid(granted_valid),
      .out_ports(granted_ports),
      .out_port (granted_port),
      .out_data (granted_request)
  );

  assign unjudged = |req_valid;

  wire        commit_refuse;  // it fails a check
  wire [ 7:0] commit_code;
  wire        commit_belongs;  // its rank is its port's
  wire        commit_data;
  wire        commit_ask;
  wire        commit_writable;  // its payload was written
  wire        commit_nonfinite;
  wire [ 1:0] commit_ecn;
  wire [ 7:0] commit_job;
  wire [15:0] commit_epoch;
  wire [ 7:0] commit_rank;
  wire [31:0] commit_vid;
  wire [ 1:0] commit_ports;  // the port it came by, one hot
  wire        commit_port;

  left_commit #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(3),
      .FORMAT   (8'd1)
  ) u_commit (
      .clk         (clk),
      .rst         (rst),
      .valid       (granted_valid),
      .ports       (granted_ports),
      .port        (granted_port),
      .request     (granted_request),
      .act_next    (act_next),
      .act_slot    (act_slot),
      .act_job     (act_job),
      .job_valid   (job_valid),
      .job_complete(job_complete),
      .job_epoch   (job_epoch),
      .job_chunk   (job_chunk),
      .slot_mask   (slot_mask),
      .slot_base   (slot_base),
      .member      (member),
      .evicted     (evicted),
      .rank_of_port(rank_of_port),
      .refused     (commit_refuse),
      .code        (commit_code),
      .belongs     (commit_belongs),
      .data        (commit_data),
      .ask         (commit_ask),
      .finish      (commit_finish),
      .writable    (commit_writable),
      .nonfinite   (commit_nonfinite),
      .ecn         (commit_ecn),
      .job         (commit_job),
      .index       (commit_index),
      .slot        (slot),
      .epoch       (commit_epoch),
      .rank        (commit_rank),
      .vid         (commit_vid),
      .from_ports  (commit_ports),
      .from_port   (commit_port)
  );

  assign commit_rank_bit = 2'd1 << commit_rank[0];

  wire        turn_over;  // the slot takes a new VID
  wire        store_ce;
  wire        store_nonfinite;
  wire        owe;  // the sender is owed the result
  wire        complete;  // the slot is closed
  wire [ 1:0] complete_ports;
  wire [31:0] complete_vid;
  wire [ 1:0] complete_ecn;
  wire        complete_nonfinite;
  wire        asked;  // an ask is not refused
  wire        answer;  // an ask or a finish is answered with a status
  wire [ 7:0] answer_code;
  wire [ 1:0] answer_ports;  // whose contribution is missing, or that were evicted
  wire        act;  // the slot is overdue
  wire        stall;  // the slot does not turn over though it is asked to
  wire        overdue;
  wire        notice;  // that is told to others
  wire [ 1:0] notice_ports;  // to these
  wire [ 7:0] notice_code;
  wire [31:0] notice_vid;

  left_deadlines #(
      .JOBS     (1),
      .JOB_BITS (1),
      .SLOT_BITS(3)
  ) u_deadlines (
      .clk         (clk),
      .rst         (rst),
      .flush       (flush),
      .flush_slots (flush_slots),
      .job_deadline(job_deadline),
      .slot        (slot),
      .job         (commit_index),
      .turn_over   (turn_over),
      .close       (complete),
      .stall       (stall),
      .pause       (pause),
      .act_next    (act_next),
      .act         (act),
      .act_slot    (act_slot),
      .act_job     (act_job)
  );

  wire       refused;
  wire [7:0] refused_code;
  wire       refused_answer;  // it may be answered with a status

  left_slots #(
      .PORTS    (2),
      .WINDOW   (4),
      .SLOT_BITS(3),
      .ROW_BITS (2)
  ) u_slots (
      .clk               (clk),
      .flush_slots       (flush_slots),
      .job_first         (job_first),
      .job_window        (job_window),
      .slot_mask         (slot_mask),
      .slot_base         (slot_base),
      .evicted           (evicted),
      .partial           (job_partial),
      .member            (present),
      .act               (act),
      .slot              (slot),
      .refuse            (commit_refuse),
      .data              (commit_data),
      .ask               (commit_ask),
      .finish            (commit_finish),
      .code              (commit_code),
      .belongs           (commit_belongs),
      .ports             (commit_ports),
      .vid               (commit_vid),
      .ecn               (commit_ecn),
      .writable          (commit_writable),
      .nonfinite         (commit_nonfinite),
      .reduced           (reduced),
      .reduced_slot      (sum_slot),
      .turn_over         (turn_over),
      .store             (commit_store),
      .store_ce          (store_ce),
      .store_nonfinite   (store_nonfinite),
      .resolve           (resolve),
      .owe               (owe),
      .complete          (complete),
      .complete_ports    (complete_ports),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .stall             (stall),
      .overdue           (overdue),
      .evict             (evict),
      .notice            (notice),
      .notice_ports      (notice_ports),
      .notice_code       (notice_code),
      .notice_vid        (notice_vid),
      .asked             (asked),
      .answer            (answer),
      .answer_code       (answer_code),
      .answer_ports      (answer_ports),
      .refused           (refused),
      .refused_code      (refused_code),
      .refused_answer    (refused_answer)
  );

  left_port_ranks #(
      .PORTS(2)
  ) u_named (
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (answer_ports),
      .ranks       (answer_mask)
  );

  // -- Sum --
  wire [2:0] send_slot;  // of the result that is being sent
  wire [2:0] beat_slot;  // beside what the slot memories give
  wire [1:0] beat_index;
  wire       unused_beat_pass;
  wire       unused_stalled;  // a complete slot is not read because of beats that are not decided

  // No beat is read again: one pass decides each.
  left_reader #(
      .JOBS      (1),
      .JOB_BITS  (1),
      .SLOT_BITS (3),
      .INDEX_BITS(2)
  ) u_reader (
      .clk          (clk),
      .rst          (rst),
      .flush        (flush),
      .job_last     (job_last),
      .drained      (drained),
      .complete     (complete),
      .complete_slot(slot),
      .complete_job (commit_index),
      .sending      (sending),
      .sending_slot (send_slot),
      .reduced      (reduced),
      .reduced_job  (sum_job),
      .stop         (1'b0),
      .again_valid  (1'b0),
      .again_slot   (3'd0),
      .again_beat   (2'd0),
      .rd_en        (rd_en),
      .rd_slot      (rd_slot),
      .rd_beat      (rd_beat),
      .beat_valid   (beat_strobe),
      .beat_slot    (beat_slot),
      .beat_index   (beat_index),
      .beat_pass    (unused_beat_pass),
      .stalled      (unused_stalled)
  );

  wire [31:0] sum;  // of all ports, lane by lane
  wire        sum_over;  // elements that overflowed
  wire        sum_next;  // a sum comes in the next cycle
  wire [ 1:0] sum_beat;

  left_lane u_lane_0 (
      .clk (clk),
      .x_p0(p0_gated[31:0]),
      .x_p1(p1_gated[31:0]),
      .y   (sum[31:0]),
      .over(sum_over)
  );

  // The tag comes out a cycle before its sum.
  left_tag_delay #(
      .WIDTH (5),
      .CYCLES(14)
  ) u_sum_tag (
      .clk      (clk),
      .rst      (rst),
      .in_valid (beat_strobe),
      .in_tag   ({beat_slot, beat_index}),
      .out_valid(sum_next),
      .out_tag  ({sum_slot, sum_beat})
  );

  // -- Result cache --
  wire       sum_nonfinite;  // elements that are a NaN or an infinity
  wire       begun;  // a result begins to be written
  wire       cache_wr_en;
  wire [2:0] cache_wr_slot;
  wire [1:0] cache_wr_beat;
  wire       nonfinite;  // elements of the sum before that are a NaN or an infinity
  wire       overflow;  // those that overflowed
  wire       send_en;  // a beat is read to be sent
  wire [1:0] send_beat;
  wire       send_written;  // it is there

  left_fp_nonfinite #(
      .LANES   (1),
      .EXP     (8),
      .FRAC    (23),
      .INFINITY(1)
  ) u_nonfinite_sum (
      .beat     (sum),
      .nonfinite(sum_nonfinite)
  );

  left_writer #(
      .LANES     (1),
      .SLOT_BITS (3),
      .INDEX_BITS(2),
      .COUNT_BITS(1)
  ) u_writer (
      .clk          (clk),
      .rst          (rst),
      .next_valid   (sum_next),
      .next_whole   (1'b1),
      .next_slot    (sum_slot),
      .next_beat    (sum_beat),
      .next_last    (job_last),
      .sum_nonfinite(sum_nonfinite),
      .sum_over     (sum_over),
      .wr_en        (cache_wr_en),
      .wr_slot      (cache_wr_slot),
      .wr_beat      (cache_wr_beat),
      .begun        (begun),
      .reduced      (reduced),
      .nonfinite    (nonfinite),
      .overflow     (overflow),
      .query_slot   (send_slot),
      .query_beat   (send_beat),
      .query_written(send_written)
  );

  left_ram #(
      .WIDTH    (32),
      .ADDR_BITS(5),
      .FORWARD  (1)
  ) u_cache (
      .clk    (clk),
      .wr_en  (cache_wr_en),
      .wr_addr({cache_wr_slot, cache_wr_beat}),
      .wr_data(sum),
      .rd_en  (send_en),
      .rd_addr({send_slot, send_beat}),
      .rd_data(m_axis_tdata)
  );

  // -- Out --
  wire       result_valid;  // a result can be sent
  wire       result_job;
  wire [2:0] result_slot;
  wire [1:0] result_to;  // the ports that it is for
  wire       result_replay;
  wire       result_take;

  left_owed #(
      .PORTS    (2),
      .SLOT_BITS(3)
  ) u_owed (
      .clk           (clk),
      .rst           (rst),
      .flush         (flush),
      .slot_mask     (slot_mask),
      .member        (present),
      .begun         (begun),
      .begun_slot    (sum_slot),
      .slot          (slot),
      .turn_over     (turn_over),
      .owe           (owe),
      .port          (commit_ports),
      .ready         (port_ready),
      .pick_valid    (result_valid),
      .pick_slot     (result_slot),
      .pick_receivers(result_to),
      .pick_replay   (result_replay),
      .pick_take     (result_take)
  );

  assign result_job = 1'd0;

  wire        unused_written_job;  // of the sum that is written
  wire [31:0] written_vid;
  wire [ 1:0] result_ports;  // in the result that can be sent
  wire [31:0] result_vid;
  wire [ 1:0] result_ecn;
  wire        result_nonfinite;

  left_labels #(
      .PORTS    (2),
      .JOB_BITS (1),
      .SLOT_BITS(3)
  ) u_labels (
      .clk               (clk),
      .complete          (complete),
      .complete_slot     (slot),
      .complete_job      (commit_index),
      .complete_ports    (complete_ports),
      .complete_vid      (complete_vid),
      .complete_ecn      (complete_ecn),
      .complete_nonfinite(complete_nonfinite),
      .beat_slot         (beat_slot),
      .beat_ports        (beat_members),
      .sum_slot          (sum_slot),
      .sum_job           (sum_job),
      .written_job       (unused_written_job),
      .written_vid       (written_vid),
      .send_slot         (result_slot),
      .send_ports        (result_ports),
      .send_vid          (result_vid),
      .send_ecn          (result_ecn),
      .send_nonfinite    (result_nonfinite)
  );

  wire [1:0] result_mask;  // ranks in it
  wire [1:0] result_receivers;  // ranks that it is for

  left_port_ranks #(
      .PORTS(2)
  ) u_contributors (
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (result_ports),
      .ranks       (result_mask)
  );

  left_port_ranks #(
      .PORTS(2)
  ) u_receivers (
      .member      (member),
      .rank_of_port(rank_of_port),
      .ports       (result_to),
      .ranks       (result_receivers)
  );

  wire        status_valid;
  wire        status_port;
  wire [ 7:0] status_job;
  wire [15:0] status_epoch;
  wire [ 7:0] status_rank;
  wire [ 7:0] status_code;
  wire [31:0] status_vid;
  wire [ 1:0] status_mask;
  wire        status_take;

  left_status #(
      .PORTS    (2),
      .PORT_BITS(1),
      .JOBS     (1),
      .JOB_BITS (1)
  ) u_status (
      .clk         (clk),
      .rst         (rst),
      .drop        (drop_statuses),
      .answer      (answer),
      .answer_code (answer_code),
      .answer_mask (answer_mask),
      .refuse      (refused_answer),
      .refuse_code (refused_code),
      .port        (commit_port),
      .job         (commit_job),
      .epoch       (commit_epoch),
      .rank        (commit_rank),
      .vid         (commit_vid),
      .notice      (notice),
      .notice_ports(notice_ports),
      .notice_code (notice_code),
      .notice_job  (commit_index),
      .notice_epoch(job_epoch),
      .notice_vid  (notice_vid),
      .notice_ranks(rank_of_port),
      .ready       (port_ready),
      .pick_valid  (status_valid),
      .pick_port   (status_port),
      .pick_job    (status_job),
      .pick_epoch  (status_epoch),
      .pick_rank   (status_rank),
      .pick_code   (status_code),
      .pick_vid    (status_vid),
      .pick_mask   (status_mask),
      .pick_take   (status_take)
  );

  left_egress #(
      .PORTS     (2),
      .PORT_BITS (1),
      .SLOT_BITS (3),
      .INDEX_BITS(2),
      .KEEP_BITS (4),
      .FORMAT    (8'd1)
  ) u_egress (
      .clk             (clk),
      .rst             (rst),
      .result_valid    (result_valid),
      .result_slot     (result_slot),
      .result_last     (job_last),
      .result_ports    (result_to),
      .result_job      ({7'd0, result_job}),
      .result_epoch    (job_epoch),
      .result_chunk    (job_chunk),
      .result_vid      (result_vid),
      .result_ecn      (result_ecn),
      .result_nonfinite(result_nonfinite),
      .result_partial  (|(member & ~result_ports)),
      .result_mask     (result_mask),
      .result_receivers(result_receivers),
      .result_replay   (result_replay),
      .result_take     (result_take),
      .status_valid    (status_valid),
      .status_port     (status_port),
      .status_job      (status_job),
      .status_epoch    (status_epoch),
      .status_rank     (status_rank),
      .status_code     (status_code),
      .status_vid      (status_vid),
      .status_mask     (status_mask),
      .status_take     (status_take),
      .rd_en           (send_en),
      .rd_slot         (send_slot),
      .rd_beat         (send_beat),
      .rd_written      (send_written),
      .sending         (sending),
      .m_axis_tkeep    (m_axis_tkeep),
      .m_axis_tvalid   (m_axis_tvalid),
      .m_axis_tready   (m_axis_tready),
      .m_axis_tlast    (m_axis_tlast),
      .m_axis_tuser    (m_axis_tuser),
      .m_axis_tdest    (m_axis_tdest)
  );

  // -- Registers --
  wire        lag_job;
  wire        lag_rank;
  wire [ 3:0] lag_bucket;
  wire [31:0] lag_value;
  wire [ 5:0] counter_index;
  wire [31:0] counter_value;
  wire        clear_counters;
  wire [31:0] nonfinite_in;
  wire [31:0] nonfinite_out;
  wire [31:0] overflows;
  wire [63:0] first_in;
  wire [63:0] first_out;
  wire [63:0] first_overflow;

  left_registers #(
      .CONFIG_HASH(64'h435b535bc07c0850),
      .LANES      (64'd1),
      .PORTS      (64'd2),
      .FORMAT     (64'h101),
      .SUM        (64'd1),
      .SHELL      (64'd1),
      .CHUNK      (64'd4),
      .WINDOW     (64'd4),
      .JOBS       (64'd1),
      .LINK       (64'd8),
      .LATENCY    (64'd21),
      .JOB_BITS   (1),
      .RANK_BITS  (1)
  ) u_registers (
      .clk           (clk),
      .rst           (rst),
      .link_down     (link_down),
      .s_reg_valid   (s_reg_valid),
      .s_reg_ready   (s_reg_ready),
      .s_reg_write   (s_reg_write),
      .s_reg_addr    (s_reg_addr),
      .s_reg_wdata   (s_reg_wdata),
      .m_reg_valid   (m_reg_valid),
      .m_reg_ready   (m_reg_ready),
      .m_reg_code    (m_reg_code),
      .m_reg_value   (m_reg_value),
      .op_valid      (op_valid),
      .op_commit     (op_commit),
      .op_abort      (op_abort),
      .op_job        (op_job),
      .op_epoch      (op_epoch),
      .op_first      (op_first),
      .op_ports      (op_ports),
      .op_chunk      (op_chunk),
      .op_window     (op_window),
      .op_deadline   (op_deadline),
      .op_done       (op_done),
      .op_code       (op_code),
      .job_valid     (job_valid),
      .job_ever      (job_ever),
      .job_epoch     (job_epoch),
      .job_finished  ({62'd0, job_finished}),
      .job_members   ({62'd0, member}),
      .job_evicted   ({62'd0, job_evicted}),
      .job_base      ({13'd0, slot_base}),
      .job_slots     (16'd1 + {13'd0, slot_mask}),
      .nonfinite_in  (nonfinite_in),
      .nonfinite_out (nonfinite_out),
      .overflows     (overflows),
      .first_in      (first_in),
      .first_out     (first_out),
      .first_overflow(first_overflow),
      .lag_job       (lag_job),
      .lag_rank      (lag_rank),
      .lag_bucket    (lag_bucket),
      .lag_value     (lag_value),
      .counter_index (counter_index),
      .counter_value (counter_value),
      .clear_counters(clear_counters)
  );

  left_job_counts #(
      .COUNT_BITS(1)
  ) u_job_counts (
      .clk             (clk),
      .rst             (rst),
      .clear           (sets_up),
      .stored_nonfinite(store_nonfinite),
      .vid             (commit_vid),
      .rank            (commit_rank),
      .wr_en           (cache_wr_en),
      .wr_vid          (written_vid),
      .nonfinite       (nonfinite),
      .overflow        (overflow),
      .nonfinite_in    (nonfinite_in),
      .nonfinite_out   (nonfinite_out),
      .overflows       (overflows),
      .first_in        (first_in),
      .first_out       (first_out),
      .first_overflow  (first_overflow)
  );

  left_lags #(
      .RANK_BITS(1),
      .JOB_BITS (1),
      .SLOT_BITS(3)
  ) u_lags (
      .clk      (clk),
      .rst      (rst),
      .clear    (|sets_up),
      .clear_job(sets_up_job),
      .ready    (cleared),
      .store    (commit_store),
      .turn_over(turn_over),
      .slot     (slot),
      .job      (commit_index),
      .rank     (commit_rank[0]),
      .rd_job   (lag_job),
      .rd_rank  (lag_rank),
      .rd_bucket(lag_bucket),
      .value    (lag_value)
  );

  left_counters #(
      .COUNT_BITS(1)
  ) u_counters (
      .clk              (clk),
      .rst              (rst),
      .clear            (clear_counters),
      .stored           (commit_store),
      .stored_ce        (store_ce),
      .stored_nonfinite (store_nonfinite),
      .overdue          (overdue),
      .partial          (complete && |(member & ~complete_ports)),
      .evicts           (|evict),
      .asked            (asked),
      .finished         (commit_finish),
      .chunk            (reduced),
      .beat             (beat_strobe),
      .result           (result_take && !result_replay),
      .replay           (result_take && result_replay),
      .status           (status_take),
      .nonfinite_out    (nonfinite),
      .overflow         (overflow),
      .undecided        (1'b0),
      .stalled          (1'b0),
      .link_down        (link_down),
      .refused          (refused),
      .refused_code     (refused_code),
      .shell_frames     (shell_frames),
      .shell_hunted     (shell_hunted),
      .shell_header_crc (shell_header_crc),
      .shell_bad_version(shell_bad_version),
      .shell_bad_kind   (shell_bad_kind),
      .shell_bad_length (shell_bad_length),
      .index            (counter_index),
      .value            (counter_value)
  );

endmodule

`default_nettype wire

// The card on a byte-stream link of 8 bits: 2 ports, 1 lanes.
//
// link_rx -> FIFO -> frame parser -> beats -> port of the rank -> core -> words -> frames -> link_tx
//
// Both directions: tkeep is contiguous from bit 0, with at least one byte, and words may be cut
// anywhere. link_up is synchronous to clk; while it is low, and until what the last host left behind is
// out of the way, link_rx takes nothing and link_tx offers nothing, also not a word it had offered.
// rst is synchronous. beat_strobe marks the cycles in which a beat enters the lanes, error_strobe those in
// which a frame from the host proves damaged.

`default_nettype none

module left_top (
    input wire clk,
    input wire rst,
    input wire link_up,

    // From the host
    input  wire [7:0] link_rx_tdata,
    input  wire       link_rx_tkeep,
    input  wire       link_rx_tvalid,
    output wire       link_rx_tready,

    // To the host
    output wire [7:0] link_tx_tdata,
    output wire       link_tx_tkeep,
    output wire       link_tx_tvalid,
    input  wire       link_tx_tready,

    // For whoever counts
    output wire beat_strobe,
    output wire error_strobe
);
  // Link
  wire         down;  // the link is down, or the core not yet done with the last host
  wire         link_rst;
  wire         hold;  // the core ends a job or sets one up
  wire         unjudged;  // packets wait in the core to be judged
  wire [ 31:0] window;  // the next bytes from the link
  wire [  3:0] window_count;
  wire [  3:0] window_take;
  wire         window_commit;
  wire         window_rewind;

  // Received: a header and payload words, then whole beats
  wire [175:0] rx_header;
  wire [ 31:0] rx_tdata;
  wire [  3:0] rx_tkeep;
  wire         rx_tvalid;
  wire         rx_tready;
  wire         rx_tlast;
  wire         rx_bad;  // the payload's CRC failed
  wire [ 31:0] ingress_tdata;
  wire [  3:0] ingress_tkeep;
  wire         ingress_tvalid;
  wire         ingress_tready;
  wire         ingress_tlast;
  wire [112:0] ingress_tuser;
  wire         ingress_busy;
  wire [  1:0] port_tvalid;  // the beat is for this port
  wire [  1:0] port_tready;
  wire [ 15:0] rank_of_port;
  wire [  1:0] member;  // the port has a rank
  wire         event_frame;
  wire         event_hunted;
  wire         event_header_crc;
  wire         event_bad_version;
  wire         event_bad_kind;
  wire         event_bad_length;

  // Registers: access, answer, reply
  wire         access_valid;
  wire         access_ready;
  wire         access_write;
  wire         reg_valid;
  wire         reg_ready;
  wire         reg_write;
  wire [ 31:0] reg_addr;
  wire [ 63:0] reg_wdata;
  wire         answer_valid;
  wire         answer_ready;
  wire [  7:0] answer_code;
  wire [ 63:0] answer_value;
  wire         reply_valid;
  wire         reply_ready;
  wire [175:0] reply_header;

  // To be sent: whole beats, then payload words, then steps of a frame
  wire [ 31:0] egress_tdata;
  wire [  3:0] egress_tkeep;
  wire         egress_tvalid;
  wire         egress_tready;
  wire         egress_tlast;
  wire [239:0] egress_tuser;
  wire [  1:0] unused_tdest;  // headers name the ranks
  wire         egress_busy;
  wire [ 31:0] tx_tdata;
  wire         tx_tvalid;
  wire         tx_tready;
  wire         tx_tlast;
  wire [239:0] tx_header;
  wire [ 31:0] step_data;
  wire [  3:0] step_bytes;
  wire         step_valid;
  wire         step_ready;
  wire         step_idle;  // nothing follows for now

  assign link_rst     = rst || down;
  assign error_strobe = event_header_crc || (rx_tvalid && rx_tready && rx_tlast && rx_bad);

  // -- From the link to the core --
  left_link_session u_session (
      .clk    (clk),
      .rst    (rst),
      .link_up(link_up),
      .busy   (ingress_busy || unjudged || hold || egress_busy),
      .down   (down)
  );

  left_byte_fifo #(
      .LINK_BYTES(1),
      .WINDOW    (4)
  ) u_fifo (
      .clk          (clk),
      .rst          (link_rst),
      .s_axis_tdata (link_rx_tdata),
      .s_axis_tkeep (link_rx_tkeep),
      .s_axis_tvalid(link_rx_tvalid),
      .s_axis_tready(link_rx_tready),
      .window       (window),
      .count        (window_count),
      .take         (window_take),
      .commit       (window_commit),
      .rewind       (window_rewind)
  );

  left_frame_rx #(
      .WINDOW    (4),
      .STEP      (4),
      .CHUNK     (4),
      .ELEM_BYTES(4)
  ) u_rx (
      .clk              (clk),
      .rst              (link_rst),
      .window           (window),
      .count            (window_count),
      .take             (window_take),
      .commit           (window_commit),
      .rewind           (window_rewind),
      .header           (rx_header),
      .m_axis_tdata     (rx_tdata),
      .m_axis_tkeep     (rx_tkeep),
      .m_axis_tvalid    (rx_tvalid),
      .m_axis_tready    (rx_tready),
      .m_axis_tlast     (rx_tlast),
      .m_axis_tuser     (rx_bad),
      .m_register_valid (access_valid),
      .m_register_write (access_write),
      .m_register_ready (access_ready),
      .event_frame      (event_frame),
      .event_hunted     (event_hunted),
      .event_header_crc (event_header_crc),
      .event_bad_version(event_bad_version),
      .event_bad_kind   (event_bad_kind),
      .event_bad_length (event_bad_length)
  );

  left_beat_pack #(
      .STEP      (4),
      .BEAT_BYTES(4)
  ) u_pack (
      .clk          (clk),
      .rst          (rst),
      .close        (down),
      .busy         (ingress_busy),
      .header       (rx_header[111:0]),
      .s_axis_tdata (rx_tdata),
      .s_axis_tkeep (rx_tkeep),
      .s_axis_tvalid(rx_tvalid),
      .s_axis_tready(rx_tready),
      .s_axis_tlast (rx_tlast),
      .s_axis_tuser (rx_bad),
      .m_axis_tdata (ingress_tdata),
      .m_axis_tkeep (ingress_tkeep),
      .m_axis_tvalid(ingress_tvalid),
      .m_axis_tready(ingress_tready),
      .m_axis_tlast (ingress_tlast),
      .m_axis_tuser (ingress_tuser)
  );

  left_route #(
      .PORTS   (2),
      .JOBS    (1),
      .JOB_BITS(1)
  ) u_route (
      .job          (ingress_tuser[23:16]),
      .rank         (ingress_tuser[55:48]),
      .rank_of_port (rank_of_port),
      .member       (member),
      .s_axis_tvalid(ingress_tvalid),
      .s_axis_tready(ingress_tready),
      .m_axis_tvalid(port_tvalid),
      .m_axis_tready(port_tready)
  );

  // -- Register accesses --
  left_register_link u_registers (
      .clk             (clk),
      .rst             (link_rst),
      .hold            (ingress_busy),
      .s_register_valid(access_valid),
      .s_register_ready(access_ready),
      .s_register_write(access_write),
      .s_register_addr (rx_header[95:64]),
      .s_register_tag  (rx_header[111:96]),
      .s_register_wdata(rx_header[175:112]),
      .m_reg_valid     (reg_valid),
      .m_reg_ready     (reg_ready),
      .m_reg_write     (reg_write),
      .m_reg_addr      (reg_addr),
      .m_reg_wdata     (reg_wdata),
      .s_reg_valid     (answer_valid),
      .s_reg_ready     (answer_ready),
      .s_reg_code      (answer_code),
      .s_reg_value     (answer_value),
      .m_reply_valid   (reply_valid),
      .m_reply_ready   (reply_ready),
      .m_reply_header  (reply_header)
  );

  // -- Core --
  left_core u_core (
      .clk              (clk),
      .rst              (rst),
      .link_down        (down),
      .hold             (hold),
      .unjudged         (unjudged),
      .s_axis_p0_tdata  (ingress_tdata),
      .s_axis_p0_tkeep  (ingress_tkeep),
      .s_axis_p0_tvalid (port_tvalid[0]),
      .s_axis_p0_tready (port_tready[0]),
      .s_axis_p0_tlast  (ingress_tlast),
      .s_axis_p0_tuser  (ingress_tuser),
      .s_axis_p1_tdata  (ingress_tdata),
      .s_axis_p1_tkeep  (ingress_tkeep),
      .s_axis_p1_tvalid (port_tvalid[1]),
      .s_axis_p1_tready (port_tready[1]),
      .s_axis_p1_tlast  (ingress_tlast),
      .s_axis_p1_tuser  (ingress_tuser),
      .m_axis_tdata     (egress_tdata),
      .m_axis_tkeep     (egress_tkeep),
      .m_axis_tvalid    (egress_tvalid),
      .m_axis_tready    (egress_tready),
      .m_axis_tlast     (egress_tlast),
      .m_axis_tuser     (egress_tuser),
      .m_axis_tdest     (unused_tdest),
      .port_ready       ({2{1'b1}}),
      .s_reg_valid      (reg_valid),
      .s_reg_ready      (reg_ready),
      .s_reg_write      (reg_write),
      .s_reg_addr       (reg_addr),
      .s_reg_wdata      (reg_wdata),
      .m_reg_valid      (answer_valid),
      .m_reg_ready      (answer_ready),
      .m_reg_code       (answer_code),
      .m_reg_value      (answer_value),
      .rank_of_port     (rank_of_port),
      .member           (member),
      .shell_frames     (event_frame),
      .shell_hunted     (event_hunted),
      .shell_header_crc (event_header_crc),
      .shell_bad_version(event_bad_version),
      .shell_bad_kind   (event_bad_kind),
      .shell_bad_length (event_bad_length),
      .beat_strobe      (beat_strobe)
  );

  // -- From the core to the link --
  left_beat_unpack #(
      .STEP      (4),
      .BEAT_BYTES(4)
  ) u_unpack (
      .clk          (clk),
      .rst          (rst),
      .drop         (down),
      .busy         (egress_busy),
      .s_axis_tdata (egress_tdata),
      .s_axis_tkeep (egress_tkeep),
      .s_axis_tvalid(egress_tvalid),
      .s_axis_tready(egress_tready),
      .s_axis_tlast (egress_tlast),
      .s_axis_tuser (egress_tuser),
      .m_axis_tdata (tx_tdata),
      .m_axis_tvalid(tx_tvalid),
      .m_axis_tready(tx_tready),
      .m_axis_tlast (tx_tlast),
      .m_axis_tuser (tx_header)
  );

  left_frame_tx #(
      .WINDOW(4),
      .STEP  (4)
  ) u_tx (
      .clk           (clk),
      .rst           (link_rst),
      .s_reply_valid (reply_valid),
      .s_reply_ready (reply_ready),
      .s_reply_header(reply_header),
      .s_axis_tdata  (tx_tdata),
      .s_axis_tvalid (tx_tvalid),
      .s_axis_tready (tx_tready),
      .s_axis_tlast  (tx_tlast),
      .s_axis_tuser  (tx_header),
      .m_step_data   (step_data),
      .m_step_bytes  (step_bytes),
      .m_step_valid  (step_valid),
      .m_step_ready  (step_ready),
      .m_step_idle   (step_idle)
  );

  left_byte_pack #(
      .STEP      (4),
      .LINK_BYTES(1)
  ) u_link (
      .clk          (clk),
      .rst          (link_rst),
      .s_step_data  (step_data),
      .s_step_bytes (step_bytes),
      .s_step_valid (step_valid),
      .s_step_ready (step_ready),
      .s_step_idle  (step_idle),
      .m_axis_tdata (link_tx_tdata),
      .m_axis_tkeep (link_tx_tkeep),
      .m_axis_tvalid(link_tx_tvalid),
      .m_axis_tready(link_tx_tready)
  );

endmodule

`default_nettype wire
