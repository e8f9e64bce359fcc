// Stores frames of one port of the in-path switch, and replays each once for each port where it
// leaves, the lowest first.
//
// A frame's words are stored as they come. With the last of them, keep stores it, if it has a place
// for all its words and for itself; kept reports that in the same cycle. Without it, the next frame
// overwrites the words. When a kept frame's destinations are known they come at s_ports, in the
// order of frames; none at all means that the frame leaves nowhere, and is forgotten.
//
// A word's place is free again when its last copy was read. Copies leave in order, and a copy waits
// for its port. So a port that takes nothing holds up the frames behind, from this port alone,
// until frames find no place.
//
// tkeep of a word's first byte is always 1. The memory has tlast there instead, so that words of 8
// bytes are 72 bits wide, which is what block RAMs have.
//
// Latency: the first word of a frame is at m_axis seven cycles after its destinations came.
// Throughput: a word a cycle, also from copy to copy. A frame of one word takes two cycles, and so
// does one that leaves nowhere. No frame has an idle cycle inside. m_axis is a register.

`default_nettype none

module agg_switch_store #(
    parameter integer PORTS = 2,
    parameter integer BYTES = 8,  // in a word
    parameter integer DEPTH_BITS = 12,  // log2 of the words that it holds
    parameter integer FRAME_BITS = 7  // log2 of the frames that it holds
) (
    input wire clk,
    input wire rst,

    input  wire               s_axis_tvalid,
    input  wire [8*BYTES-1:0] s_axis_tdata,
    input  wire [  BYTES-1:0] s_axis_tkeep,
    input  wire               s_axis_tlast,
    input  wire               keep,           // with tlast
    output wire               kept,           // in the same cycle

    input wire             s_ports_valid,
    input wire [PORTS-1:0] s_ports,

    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tlast,
    output wire [  PORTS-1:0] m_axis_tdest,   // one-hot

    output wire event_passed  // the last copy of a frame has been read
);

  generate
    if (DEPTH_BITS < 1 || FRAME_BITS < 1) begin : g_depth
      ERROR_a_store_holds_two_words_and_two_frames_at_least error ();
    end
  endgenerate

  localparam [9*BYTES-1:0] LAST = {{BYTES - 1{1'b0}}, 1'b1, {8 * BYTES{1'b0}}};  // tlast in a word

  // -- Writing ------------------------------------------------------------------------------------

  // Pointers are modulo twice the depth, to distinguish full from empty.
  reg [DEPTH_BITS:0] wr_reg;
  reg [DEPTH_BITS:0] kept_reg;  // behind the last kept frame
  reg [DEPTH_BITS:0] free_reg;  // behind the last word whose last copy was read
  reg [FRAME_BITS:0] frame_wr_reg;  // frames that were kept
  reg [FRAME_BITS:0] known_reg;  // frames whose destinations came
  reg [FRAME_BITS:0] frame_rd_reg;
  reg lost_reg;  // a word of this frame had no place

  // These are a cycle late, because much depends on them, and therefore set one place early.
  reg full_reg, frames_full_reg;

  wire [DEPTH_BITS:0] used = wr_reg - free_reg;
  wire [FRAME_BITS:0] frames_used = frame_wr_reg - frame_rd_reg;
  wire store = s_axis_tvalid && !full_reg && !lost_reg;
  wire ends = s_axis_tvalid && s_axis_tlast;

  assign kept = ends && keep && !full_reg && !lost_reg && !frames_full_reg;

  always @(posedge clk) begin
    full_reg        <= used[DEPTH_BITS] || &used[DEPTH_BITS-1:0];
    frames_full_reg <= frames_used[FRAME_BITS] || &frames_used[FRAME_BITS-1:0];
    if (ends && !kept) wr_reg <= kept_reg;
    else if (store) wr_reg <= wr_reg + 1'b1;
    if (kept) begin
      kept_reg     <= wr_reg + 1'b1;
      frame_wr_reg <= frame_wr_reg + 1'b1;
    end
    if (s_ports_valid) known_reg <= known_reg + 1'b1;
    if (s_axis_tvalid) lost_reg <= !s_axis_tlast && (lost_reg || full_reg);
    if (rst) begin
      wr_reg          <= {DEPTH_BITS + 1{1'b0}};
      kept_reg        <= {DEPTH_BITS + 1{1'b0}};
      frame_wr_reg    <= {FRAME_BITS + 1{1'b0}};
      known_reg       <= {FRAME_BITS + 1{1'b0}};
      full_reg        <= 1'b0;
      frames_full_reg <= 1'b0;
      lost_reg        <= 1'b0;
    end
  end

  // -- Frames: the address of the last word, and destinations -------------------------------------

  // A place is read a cycle after its write at the earliest: block RAM needs no logic for less.
  (* no_rw_check *) reg [9*BYTES-1:0] words[0:(1<<DEPTH_BITS)-1];
  (* no_rw_check *) reg [DEPTH_BITS:0] lasts[0:(1<<FRAME_BITS)-1];
  (* no_rw_check *) reg [PORTS-1:0] ports[0:(1<<FRAME_BITS)-1];

  reg frame_valid_reg;
  reg [DEPTH_BITS:0] frame_last_reg;
  reg [PORTS-1:0] frame_ports_reg;

  reg copy_valid_reg;  // a frame has copies to begin
  reg [DEPTH_BITS:0] copy_first_reg, copy_last_reg;
  reg [PORTS-1:0] left_reg;  // ports of these copies

  reg reads_reg;  // a copy is being read
  reg void_reg;  // its frame leaves nowhere: only its last word is read, and freed
  reg final_reg;  // it is its frame's last
  reg [DEPTH_BITS:0] rd_reg, last_reg;
  reg [PORTS-1:0] dest_reg;
  wire room;  // a word can be fetched

  wire fetch = reads_reg && room;
  wire fetch_last = rd_reg == last_reg;
  wire begins = copy_valid_reg && (!reads_reg || (fetch && fetch_last));
  wire [PORTS-1:0] others = left_reg & (left_reg - 1'b1);
  wire final_copy = others == {PORTS{1'b0}};
  wire nowhere = left_reg == {PORTS{1'b0}};
  wire load = frame_valid_reg && !copy_valid_reg;
  wire fetch_frame = frame_rd_reg != known_reg && !frame_valid_reg;

  always @(posedge clk) begin
    if (kept) lasts[frame_wr_reg[FRAME_BITS-1:0]] <= wr_reg;
    if (s_ports_valid) ports[known_reg[FRAME_BITS-1:0]] <= s_ports;
    if (fetch_frame) begin
      frame_last_reg  <= lasts[frame_rd_reg[FRAME_BITS-1:0]];
      frame_ports_reg <= ports[frame_rd_reg[FRAME_BITS-1:0]];
      frame_rd_reg    <= frame_rd_reg + 1'b1;
    end
    frame_valid_reg <= fetch_frame || (frame_valid_reg && !load);

    // Frames are stored one behind the other, also those that leave nowhere.
    if (load) begin
      copy_first_reg <= copy_last_reg + 1'b1;
      copy_last_reg  <= frame_last_reg;
      left_reg       <= frame_ports_reg;
    end else if (begins) begin
      left_reg <= others;
    end
    copy_valid_reg <= load || (copy_valid_reg && !(begins && final_copy));

    if (begins) begin
      void_reg  <= nowhere;
      final_reg <= final_copy;
      last_reg  <= copy_last_reg;
      rd_reg    <= nowhere ? copy_last_reg : copy_first_reg;
      dest_reg  <= left_reg & ~others;
    end else if (fetch) begin
      rd_reg <= rd_reg + 1'b1;
    end
    reads_reg <= begins || (reads_reg && !(fetch && fetch_last));
    if (fetch && final_reg) free_reg <= rd_reg + 1'b1;

    if (rst) begin
      free_reg        <= {DEPTH_BITS + 1{1'b0}};
      frame_rd_reg    <= {FRAME_BITS + 1{1'b0}};
      copy_last_reg   <= {DEPTH_BITS + 1{1'b1}};
      frame_valid_reg <= 1'b0;
      copy_valid_reg  <= 1'b0;
      reads_reg       <= 1'b0;
    end
  end

  // -- Words: the memory with two registers, and the output with a place beside it ----------------

  // m_axis_tready comes late in its cycle. So it moves only the last of these; all before wait for
  // what it did a cycle ago.
  reg fetched_valid_reg, second_valid_reg, beside_valid_reg, valid_reg;
  reg [9*BYTES-1:0] fetched_reg, second_reg, beside_reg, word_reg;  // a block RAM is slow
  reg [PORTS-1:0] fetched_dest_reg, second_dest_reg, beside_dest_reg, word_dest_reg;
  reg  passed_reg;

  wire free = !valid_reg || m_axis_tready;

  assign room = !beside_valid_reg;

  always @(posedge clk) begin
    if (store)
      words[wr_reg[DEPTH_BITS-1:0]] <=
          ({s_axis_tkeep, s_axis_tdata} & ~LAST) | (s_axis_tlast ? LAST : {9 * BYTES{1'b0}});
    if (fetch) fetched_reg <= words[rd_reg[DEPTH_BITS-1:0]];
    if (room) begin
      fetched_valid_reg <= reads_reg && !void_reg;
      fetched_dest_reg  <= dest_reg;
      second_valid_reg  <= fetched_valid_reg;
      second_dest_reg   <= fetched_dest_reg;
      second_reg        <= fetched_reg;
      beside_dest_reg   <= second_dest_reg;
      beside_reg        <= second_reg;
    end
    beside_valid_reg <= !free && (beside_valid_reg || second_valid_reg);
    if (free) begin
      valid_reg     <= beside_valid_reg || second_valid_reg;
      word_dest_reg <= beside_valid_reg ? beside_dest_reg : second_dest_reg;
      word_reg      <= beside_valid_reg ? beside_reg : second_reg;
    end
    passed_reg <= fetch && fetch_last && final_reg && !void_reg;
    if (rst) begin
      fetched_valid_reg <= 1'b0;
      second_valid_reg  <= 1'b0;
      beside_valid_reg  <= 1'b0;
      valid_reg         <= 1'b0;
      passed_reg        <= 1'b0;
    end
  end

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tdata  = word_reg[8*BYTES-1:0];
  assign m_axis_tkeep  = word_reg[9*BYTES-1:8*BYTES] | LAST[9*BYTES-1:8*BYTES];
  assign m_axis_tlast  = word_reg[8*BYTES];
  assign m_axis_tdest  = word_dest_reg;
  assign event_passed  = passed_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any kept frame, and any word of it: what came, and when its copies leave. Copies are counted
  // over all frames. No counter overflows in the steps of the proof.
  (* anyconst *) reg [3:0] frame;
  (* anyconst *) reg [2:0] place;
  reg was_reset = 1'b0;
  reg [3:0] frames_kept, frames_known;
  reg [2:0] came, size;
  reg [4:0] copies, first_copy, copies_left;
  reg [PORTS-1:0] to, sent;
  reg [9*BYTES:0] put;
  reg [2:0] index;  // of the next word that leaves, in its copy
  reg [3:0] passed, passes;
  reg waited, amid;
  reg [DEPTH_BITS:0] used_was;
  reg [FRAME_BITS:0] frames_used_was;
  reg [4:0] asked, wanted;
  integer n;

  wire [9*BYTES+PORTS:0] out = {m_axis_tdest, m_axis_tlast, m_axis_tkeep, m_axis_tdata};
  reg [9*BYTES+PORTS:0] out_was;
  wire leaves = m_axis_tvalid && m_axis_tready;
  wire [PORTS-1:0] ahead = to & ~sent;
  wire is_it = frames_known > frame && copies_left - first_copy < wanted;

  always @* begin
    asked  = 0;
    wanted = 0;
    for (n = 0; n < PORTS; n = n + 1) begin
      asked  = asked + s_ports[n];
      wanted = wanted + to[n];
    end
  end

  always @(posedge clk) begin
    if (s_axis_tvalid) begin
      came <= s_axis_tlast ? 0 : came + 1'b1;
      if (frames_kept == frame && came == place) put <= {s_axis_tlast, s_axis_tkeep, s_axis_tdata};
    end
    if (kept) begin
      frames_kept <= frames_kept + 1'b1;
      if (frames_kept == frame) size <= came + 1'b1;
    end
    if (s_ports_valid) begin
      frames_known <= frames_known + 1'b1;
      copies <= copies + asked;
      passes <= passes + (s_ports != 0);
      if (frames_known == frame) {to, first_copy} <= {s_ports, copies};
    end
    if (leaves) begin
      index <= m_axis_tlast ? 0 : index + 1'b1;
      amid  <= !m_axis_tlast;
      if (m_axis_tlast) copies_left <= copies_left + 1'b1;
      if (m_axis_tlast && is_it) sent <= sent | m_axis_tdest;
    end
    passed <= passed + event_passed;
    waited <= m_axis_tvalid && !m_axis_tready;
    out_was <= out;
    used_was <= used;
    frames_used_was <= frames_used;
    if (rst) begin
      was_reset <= 1'b1;
      {frames_kept, frames_known, came, index, copies, copies_left, passed, passes} <= 0;
      sent <= 0;
      {waited, amid} <= 2'b00;
    end
  end

  // One reset, in the first cycle, for the proof of a bounded number of cycles
  always @* assume (rst == !was_reset);

  always @* begin
    if (was_reset) begin
      // agg_eth_receive, and agg_switch_table: an answer for each frame, in order
      `PROMISED(!s_axis_tvalid || s_axis_tkeep[0]);
      `PROMISED(!s_ports_valid || frames_known != frames_kept);

      // A kept frame was to be kept. All others had no place for a word, or for the frame.
      if (kept) assert (ends && keep);
      if (ends && keep && !lost_reg && !full_reg && !frames_full_reg) assert (kept);
      if (full_reg) assert (used_was >= (1 << DEPTH_BITS) - 1);
      if (frames_full_reg) assert (frames_used_was >= (1 << FRAME_BITS) - 1);
      assert (used <= 1 << DEPTH_BITS && frames_used <= 1 << FRAME_BITS);

      // What leaves is the next copy, and nothing else does.
      if (m_axis_tvalid) assert (copies_left != copies);
      if (m_axis_tvalid && is_it) begin
        assert (m_axis_tdest == (ahead & (~ahead + 1'b1)));
        assert (m_axis_tlast == (index + 1'b1 == size));
        if (index == place) assert ({m_axis_tlast, m_axis_tkeep, m_axis_tdata} == put);
      end
      assert (passed <= passes);

      // AXI4-Stream, without a pause inside a frame
      if (waited) assert (m_axis_tvalid && out == out_was);
      if (amid) assert (m_axis_tvalid);

      cover (leaves && is_it && frame == 1 && sent != 0);
      cover (leaves && is_it && frame == 1 && first_copy == 0);
      cover (ends && keep && lost_reg);
    end
  end
`endif

endmodule

`default_nettype wire
