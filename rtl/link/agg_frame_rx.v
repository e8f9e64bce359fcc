// Receiver of the byte-stream link: finds and parses frames in the bytes of agg_byte_fifo.
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
// Not done here: ending a packet that a reset cuts off (agg_beat_pack), checking ranks (agg_route),
// checking all other fields (the core).

`default_nettype none

module agg_frame_rx #(
    parameter integer WINDOW = 4,  // bytes in the FIFO's window: 4 or 8
    parameter integer STEP = 4,  // payload bytes per word: 1, 2, 4 or 8, at most WINDOW
    parameter integer CHUNK = 256,  // maximum chunk length, in elements
    parameter integer ELEM_BYTES = 4  // bytes per element
) (
    input wire clk,
    input wire rst,  // also drops a frame partly received

    // agg_byte_fifo
    input  wire [8*WINDOW-1:0] window,
    input  wire [  WINDOW-1:0] valid,       // contiguous from bit 0
    input  wire [         3:0] sync_bytes,  // byte k is valid, and byte k of the sync word
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

  `include "zwire.vh"

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
  reg          last_reg;  // the next payload word is the last
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
  wire mismatch = |(valid[3:0] & ~sync_bytes);
  wire passed_over = state_reg == HUNT && mismatch;
  wire synced = sync_bytes == 4'b1111;
  wire header_step = state_reg == HEADER && valid[WINDOW-1];
  wire [15:0] payload_length = length * ELEM_BYTES[15:0];
  // If elements are whole words, all payload words are full.
  wire partial = ELEM_BYTES % STEP != 0 && last_reg;
  wire [3:0] payload_bytes = partial ? left_reg[3:0] : STEP[3:0];
  wire [WINDOW-1:0] payload_end = {{WINDOW - 1{1'b0}}, 1'b1} << (payload_bytes - 4'd1);
  wire payload_there = state_reg == PAYLOAD && |(valid & payload_end);
  wire close_there = state_reg == CLOSE && valid[1];

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

  agg_crc16 #(
      .BYTES(WINDOW)
  ) u_header_crc (
      .crc_in (crc_reg),
      .data   (window),
      .count  (WINDOW[3:0]),
      .crc_out(crc_header)
  );

  agg_crc16 #(
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
        left_reg <= payload_length;
        last_reg <= payload_length <= STEP[15:0];
        if (!version_held || event_bad_kind || event_bad_length) state_reg <= HUNT;
        else if (is_data) state_reg <= PAYLOAD;
        else if (is_bare) state_reg <= BARE;
        else state_reg <= REGISTER;
      end
      PAYLOAD:
      if (moved) begin
        left_reg <= left_reg - STEP[15:0];
        last_reg <= left_reg <= 2 * STEP[15:0];
        if (last_reg) state_reg <= CLOSE;
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
  reg [3:0] count, count_was, take_was;
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
  integer n, v;

  wire [15:0] sum_next;

  // agg_crc16 is proved separately.
  assign sums[15:0] = CRC_INIT;
  genvar f;
  generate
    for (f = 0; f < 6; f = f + 1) begin : g_frame
      agg_crc16 #(
          .BYTES(4)
      ) u_crc (
          .crc_in (sums[16*f+:16]),
          .data   (frame[32*f+32+:32]),
          .count  (4'd4),
          .crc_out(sums[16*f+16+:16])
      );
    end
  endgenerate

  agg_crc16 #(
      .BYTES(WINDOW)
  ) u_any_crc (
      .crc_in (sum),
      .data   (window),
      .count  ({1'b0, due_now}),
      .crc_out(sum_next)
  );

  always @* begin
    count = 0;
    for (v = 0; v < WINDOW; v = v + 1) count = count + valid[v];
  end

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
      // agg_byte_fifo: contiguous bytes, stable until taken.
      `PROMISED((valid & (valid + 1'b1)) == 0);
      for (n = 0; n < 4; n = n + 1)
      `PROMISED(sync_bytes[n] == (valid[n] && window[8*n+:8] == SYNC[8*n+:8]));
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
        assert (last_reg == (left_reg <= STEP));
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
