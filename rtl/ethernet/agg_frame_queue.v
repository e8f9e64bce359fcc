// Store-and-forward queue of a receiver that cannot wait: payload words are stored as they come, and
// the verdict on their frame keeps or forgets them.
//
// Words belong to the frame of the next verdict, or of one in their own cycle. s_verdict_keep stores
// the frame's descriptor; its words are then there for the reader. Without it, the next frame's
// words overwrite them. A frame without a place for all its words and its descriptor is dropped
// whole. event_dropped reports it in the cycle of its verdict, if that would have kept it: others
// are counted by their own reason.
//
// The reader sees whole frames, in order. A frame without words is one beat without payload, whose
// data is zero. The descriptor is valid for all beats of its frame.
//
// Latency: the first beat of a frame is at m_axis in the third cycle after its verdict. All outputs
// are registers. Throughput: a beat a cycle, also if each is a frame. m_axis and the memories'
// outputs hold two words and a descriptor beyond the capacity.
//
// Not done here: back-pressure on the receiver, and the bytes of a frame's last word (the descriptor
// has the size).

`default_nettype none

module agg_frame_queue #(
    parameter integer WORD_BITS = 64,
    parameter integer DESCRIPTOR_BITS = 376,
    parameter integer DEPTH_BITS = 10,  // log2 of the words that it holds
    parameter integer FRAME_BITS = 5  // log2 of the frames that it holds
) (
    input wire clk,
    input wire rst,

    input wire                 s_axis_tvalid,
    input wire [WORD_BITS-1:0] s_axis_tdata,
    input wire                 s_axis_tlast,   // a kept frame's last word

    input wire                       s_verdict_valid,
    input wire                       s_verdict_keep,
    input wire [DESCRIPTOR_BITS-1:0] s_verdict_descriptor,

    output wire event_dropped,

    output wire                       m_axis_tvalid,
    input  wire                       m_axis_tready,
    output wire [      WORD_BITS-1:0] m_axis_tdata,
    output wire                       m_axis_tpayload,  // the beat has a word
    output wire                       m_axis_tlast,
    output wire [DESCRIPTOR_BITS-1:0] m_axis_tuser
);

  generate
    if (DEPTH_BITS < 1 || FRAME_BITS < 1) begin : g_depth
      ERROR_a_queue_holds_two_words_and_two_frames_at_least error ();
    end
  endgenerate

  // -- Writing ------------------------------------------------------------------------------------

  // Pointers are modulo twice the depth, to distinguish full from empty.
  reg [DEPTH_BITS:0] wr_reg;
  reg [DEPTH_BITS:0] kept_reg;  // behind the last kept frame
  reg [DEPTH_BITS:0] rd_reg;
  reg [FRAME_BITS:0] frame_wr_reg;
  reg [FRAME_BITS:0] frame_rd_reg;
  reg some_reg;  // a word of this frame came
  reg lost_reg;  // a word of this frame had no place

  wire full = wr_reg == {~rd_reg[DEPTH_BITS], rd_reg[DEPTH_BITS-1:0]};
  wire frames_full = frame_wr_reg == {~frame_rd_reg[FRAME_BITS], frame_rd_reg[FRAME_BITS-1:0]};
  wire store = s_axis_tvalid && !full && !lost_reg;
  wire lost = lost_reg || (s_axis_tvalid && full);
  wire [DEPTH_BITS:0] wr_next = wr_reg + {{DEPTH_BITS{1'b0}}, store};
  wire fits = !lost && !frames_full;
  wire keep = s_verdict_valid && s_verdict_keep && fits;

  assign event_dropped = s_verdict_valid && s_verdict_keep && !fits;

  always @(posedge clk) begin
    wr_reg <= s_verdict_valid && !keep ? kept_reg : wr_next;
    if (keep) begin
      kept_reg     <= wr_next;
      frame_wr_reg <= frame_wr_reg + 1'b1;
    end
    some_reg <= !s_verdict_valid && (some_reg || s_axis_tvalid);
    lost_reg <= !s_verdict_valid && lost;
    if (rst) begin
      wr_reg       <= {DEPTH_BITS + 1{1'b0}};
      kept_reg     <= {DEPTH_BITS + 1{1'b0}};
      frame_wr_reg <= {FRAME_BITS + 1{1'b0}};
      some_reg     <= 1'b0;
      lost_reg     <= 1'b0;
    end
  end

  // -- Reading: memories with registers, and the output -------------------------------------------

  // With tlast, and with whether the frame has no words. A place is read a cycle after its write at
  // the earliest: block RAM needs no logic for less.
  (* no_rw_check *) reg [WORD_BITS:0] words[0:(1<<DEPTH_BITS)-1];
  (* no_rw_check *) reg [DESCRIPTOR_BITS:0] descriptors[0:(1<<FRAME_BITS)-1];

  reg [WORD_BITS:0] word_reg;
  reg word_valid_reg;
  reg [DESCRIPTOR_BITS:0] descriptor_reg;
  reg descriptor_valid_reg;
  reg valid_reg;
  reg begins_reg;  // the next beat is a frame's first
  reg payload_reg;
  reg last_reg;
  reg [WORD_BITS-1:0] data_reg;
  reg [DESCRIPTOR_BITS-1:0] user_reg;

  // A kept frame's words are kept with its descriptor, but may come out of their memory later.
  wire bare = begins_reg && descriptor_reg[DESCRIPTOR_BITS];
  wire free = !valid_reg || m_axis_tready;
  wire move = free && (!begins_reg || descriptor_valid_reg) && (bare || word_valid_reg);
  wire pop_word = move && !bare;
  wire pop_descriptor = move && begins_reg;
  wire fetch_word = rd_reg != kept_reg && (!word_valid_reg || pop_word);
  wire fetch_descriptor = frame_rd_reg != frame_wr_reg && (!descriptor_valid_reg || pop_descriptor);

  always @(posedge clk) begin
    if (store) words[wr_reg[DEPTH_BITS-1:0]] <= {s_axis_tlast, s_axis_tdata};
    if (fetch_word) word_reg <= words[rd_reg[DEPTH_BITS-1:0]];
    if (keep)
      descriptors[frame_wr_reg[FRAME_BITS-1:0]] <= {
        !some_reg && !s_axis_tvalid, s_verdict_descriptor
      };
    if (fetch_descriptor) descriptor_reg <= descriptors[frame_rd_reg[FRAME_BITS-1:0]];
  end

  always @(posedge clk) begin
    if (fetch_word) rd_reg <= rd_reg + 1'b1;
    if (fetch_descriptor) frame_rd_reg <= frame_rd_reg + 1'b1;
    word_valid_reg <= fetch_word || (word_valid_reg && !pop_word);
    descriptor_valid_reg <= fetch_descriptor || (descriptor_valid_reg && !pop_descriptor);
    valid_reg <= move || (valid_reg && !m_axis_tready);
    if (free) begin
      payload_reg <= !bare;
      last_reg    <= bare || word_reg[WORD_BITS];
      data_reg    <= bare ? {WORD_BITS{1'b0}} : word_reg[WORD_BITS-1:0];
      if (begins_reg) user_reg <= descriptor_reg[DESCRIPTOR_BITS-1:0];
    end
    if (move) begins_reg <= bare || word_reg[WORD_BITS];
    if (rst) begin
      rd_reg               <= {DEPTH_BITS + 1{1'b0}};
      frame_rd_reg         <= {FRAME_BITS + 1{1'b0}};
      word_valid_reg       <= 1'b0;
      descriptor_valid_reg <= 1'b0;
      valid_reg            <= 1'b0;
      begins_reg           <= 1'b1;
    end
  end

  assign m_axis_tvalid   = valid_reg;
  assign m_axis_tdata    = data_reg;
  assign m_axis_tpayload = payload_reg;
  assign m_axis_tlast    = last_reg;
  assign m_axis_tuser    = user_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th word of kept frames is the n-th that leaves, with its frame's descriptor, and the same
  // holds for frames: watched and watched_frame are any of them. Numbers are modulo eight times the
  // capacity. A word of a frame that is not kept has the number of a later word.
  localparam integer NUMBER = DEPTH_BITS + 3;
  localparam integer FRAME_NUMBER = FRAME_BITS + 3;
  (* anyconst *) reg [NUMBER-1:0] watched;
  (* anyconst *) reg [FRAME_NUMBER-1:0] watched_frame;
  reg was_reset = 1'b0;
  reg [NUMBER-1:0] words_kept, words_left, came;  // came: words of the frame that arrives
  reg [FRAME_NUMBER-1:0] frames_kept, frames_left;
  reg [WORD_BITS:0] put;
  reg [DESCRIPTOR_BITS-1:0] put_user, frame_user;
  reg frame_bare;
  reg ended, extra;  // words of the frame that arrives: one with tlast, more after that
  reg opens;  // the beat at the output is its frame's first
  reg waited;  // it was not taken
  reg [WORD_BITS+DESCRIPTOR_BITS+1:0] stood;
  reg [1:0] recent;  // a frame was kept one cycle ago, and two
  wire [WORD_BITS+DESCRIPTOR_BITS+1:0] out = {
    m_axis_tlast, m_axis_tpayload, m_axis_tuser, m_axis_tdata
  };
  wire was_lost = s_axis_tvalid && !store && !lost_reg;
  wire [NUMBER-1:0] came_next = came + (s_axis_tvalid && !lost_reg);
  wire kept = s_verdict_valid && s_verdict_keep && !event_dropped;
  wire leaves = m_axis_tvalid && m_axis_tready;

  // The first word and the number of words of each frame here, by the frame's number
  reg [NUMBER-1:0] starts[0:(2<<FRAME_BITS)-1];
  reg [NUMBER-1:0] counts[0:(2<<FRAME_BITS)-1];

  always @(posedge clk) begin
    if (kept) begin
      starts[frames_kept[FRAME_BITS:0]] <= words_kept;
      counts[frames_kept[FRAME_BITS:0]] <= came_next;
      words_kept <= words_kept + came_next;
      frames_kept <= frames_kept + 1'b1;
      if (watched - words_kept < came_next) put_user <= s_verdict_descriptor;
      if (watched_frame == frames_kept) begin
        frame_user <= s_verdict_descriptor;
        frame_bare <= came_next == 0;
      end
    end
    if (s_axis_tvalid && !lost_reg && watched == words_kept + came)
      put <= {s_axis_tlast, s_axis_tdata};
    came  <= s_verdict_valid ? 0 : came_next;
    some  <= !s_verdict_valid && (some || s_axis_tvalid);
    ended <= !s_verdict_valid && (ended || (s_axis_tvalid && s_axis_tlast));
    extra <= !s_verdict_valid && (extra || (s_axis_tvalid && ended));
    if (leaves) begin
      words_left <= words_left + m_axis_tpayload;
      frames_left <= frames_left + m_axis_tlast;
      opens <= m_axis_tlast;
    end
    waited <= m_axis_tvalid && !m_axis_tready;
    stood  <= out;
    recent <= {recent[0], kept};
    if (rst) begin
      was_reset <= 1'b1;
      words_kept <= 0;
      words_left <= 0;
      frames_kept <= 0;
      frames_left <= 0;
      came <= 0;
      {ended, extra} <= 2'd0;
      opens <= 1'b1;
      waited <= 1'b0;
      recent <= 2'd0;
    end
  end

  // The next word to move to the output, and to fetch; the same for descriptors
  wire [NUMBER-1:0] moved = words_left + (m_axis_tvalid && m_axis_tpayload);
  wire [NUMBER-1:0] fetched = moved + word_valid_reg;
  wire [FRAME_NUMBER-1:0] begun = frames_left + (m_axis_tvalid || !begins_reg);
  wire [FRAME_NUMBER-1:0] frames_fetched = begun + descriptor_valid_reg;
  wire [FRAME_NUMBER-1:0] frames_here = frames_kept - frames_fetched;  // in the memory
  wire [NUMBER-1:0] words_here = words_kept - fetched;
  wire watched_kept = watched - words_left < words_kept - words_left;
  wire watched_came = watched - words_kept < came && !lost_reg;
  wire frame_kept = watched_frame - frames_left < frames_kept - frames_left;
  wire [FRAME_NUMBER-1:0] oldest = begins_reg ? begun : begun - 1'b1;  // with words to move
  wire [FRAME_NUMBER-1:0] frames_open = frames_kept - oldest;
  wire [FRAME_NUMBER-1:0] newest = frames_kept - 1'b1;
  reg [FRAME_NUMBER-1:0] frame, prior;
  reg [NUMBER-1:0] first, count, number;
  reg [DESCRIPTOR_BITS:0] label;
  reg ends;  // a frame ends with the word number
  reg [FRAME_NUMBER-1:0] ending;
  reg [NUMBER-1:0] behind;
  integer f, w, e;

  // Each frame's words follow those of the frame before it.
  always @* begin
    frame = oldest;
    prior = oldest;
    first = 0;
    count = 0;
    label = 0;
    if (was_reset) begin
      assert (frames_open <= 2 << FRAME_BITS);
      for (f = 0; f < 2 << FRAME_BITS; f = f + 1) begin
        prior = frame;
        frame = oldest + f[FRAME_NUMBER-1:0];
        first = starts[frame[FRAME_BITS:0]];
        count = counts[frame[FRAME_BITS:0]];
        label = descriptors[frame[FRAME_BITS-1:0]];
        if (descriptor_valid_reg && frame == begun) label = descriptor_reg;
        if (f < frames_open) begin
          if (f == 0 && begins_reg) assert (first == moved);
          if (f == 0 && !begins_reg) assert (moved - first < count);
          if (f != 0) assert (first == starts[prior[FRAME_BITS:0]] + counts[prior[FRAME_BITS:0]]);
          assert (first + count - moved <= words_kept - moved && count <= 1 << DEPTH_BITS);
          if (f == 0 && !begins_reg) label = {1'b0, user_reg};
          assert (label[DESCRIPTOR_BITS] == (count == 0));
          if (watched_kept && watched - moved < words_kept - moved && watched - first < count)
            assert (label[DESCRIPTOR_BITS-1:0] == put_user);
          if (watched_frame == frame) assert (label == {frame_bare, frame_user});
        end
      end
      if (frames_open == 0)
        assert (moved == words_kept);
        else assert (starts[newest[FRAME_BITS:0]] + counts[newest[FRAME_BITS:0]] == words_kept);
    end
  end

  // The last word of each frame alone has tlast.
  always @* begin
    number = moved;
    ends   = 1'b0;
    ending = oldest;
    behind = moved;
    if (was_reset) begin
      for (w = 0; w <= 1 << DEPTH_BITS; w = w + 1) begin
        number = moved + w[NUMBER-1:0];
        ends   = 1'b0;
        for (e = 0; e < 2 << FRAME_BITS; e = e + 1) begin
          ending = oldest + e[FRAME_NUMBER-1:0];
          behind = starts[ending[FRAME_BITS:0]] + counts[ending[FRAME_BITS:0]];
          if (e < frames_open && counts[ending[FRAME_BITS:0]] != 0 && number + 1'b1 == behind)
            ends = 1'b1;
        end
        if (number - moved < words_kept - moved) begin
          if (w == 0 && word_valid_reg)
            assert (word_reg[WORD_BITS] == ends);
            else assert (words[number[DEPTH_BITS-1:0]][WORD_BITS] == ends);
        end
        number = words_kept + w[NUMBER-1:0];
        if (w < came && !lost_reg && !extra)
          assert (words[number[DEPTH_BITS-1:0]][WORD_BITS] == (ended && w + 1 == came));
      end
    end
  end

  always @* begin
    if (was_reset) begin
      // agg_eth_receive: tlast is on the last word of each kept frame, and only there.
      if (s_verdict_valid && s_verdict_keep) begin
        `PROMISED(!extra && !(s_axis_tvalid && ended));
        `PROMISED(ended || !some_reg && !s_axis_tvalid || s_axis_tvalid && s_axis_tlast);
      end

      // Pointers
      assert (frame_wr_reg == frames_kept[FRAME_BITS:0] && kept_reg == words_kept[DEPTH_BITS:0]);
      assert (frame_rd_reg == frames_fetched[FRAME_BITS:0] && rd_reg == fetched[DEPTH_BITS:0]);
      assert (frames_here <= 1 << FRAME_BITS && words_here <= 1 << DEPTH_BITS);
      assert (lost_reg || wr_reg == kept_reg + came[DEPTH_BITS:0]);
      assert (lost_reg || words_here + came <= 1 << DEPTH_BITS);
      if (!lost_reg) assert (some_reg == (came != 0));
      if (ended || lost_reg) assert (some_reg);
      if (word_valid_reg) assert (moved != words_kept);
      if (frame_kept && watched_frame == frames_left && begun != frames_left)
        assert (user_reg == frame_user);
      if (m_axis_tvalid) assert (m_axis_tlast == begins_reg && (m_axis_tpayload || m_axis_tlast));

      // The watched word, wherever it is
      if (watched_kept || watched_came) begin
        if (watched == words_left && moved != words_left)
          assert ({m_axis_tlast, m_axis_tdata} == put && m_axis_tuser == put_user);
          else if (watched == moved && word_valid_reg)
            assert (word_reg == put);
            else assert (words[watched[DEPTH_BITS-1:0]] == put);
      end

      // The watched frame
      if (m_axis_tvalid && watched_frame == frames_left) begin
        assert (m_axis_tuser == frame_user);
        if (opens) assert (m_axis_tpayload == !frame_bare);
      end
      if (m_axis_tvalid) assert (m_axis_tpayload || m_axis_tdata == 0);

      // A frame is dropped only if a word had no place, or its descriptor has none.
      if (was_lost) assert (words_kept + came - words_left >= 1 << DEPTH_BITS);
      if (event_dropped)
        assert (lost_reg || was_lost || frames_kept - frames_left >= 1 << FRAME_BITS);

      // AXI4-Stream. The output lacks a beat only if all frames here were kept in the last two
      // cycles.
      if (waited) assert (m_axis_tvalid && out == stood);
      if (!m_axis_tvalid) assert (frames_kept - frames_left == recent[0] + recent[1]);

      cover (event_dropped && !lost_reg && !was_lost);
      cover (frames_left == 3 && words_left == 2 && frames_kept == 3);
      cover (event_dropped && lost_reg && words_left == 2);
    end
  end
`endif

endmodule

`default_nettype wire
