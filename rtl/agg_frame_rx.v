// Receiver of the byte-stream link: finds frames in the bytes of agg_byte_fifo and takes them apart.
//
// It looks for the sync word byte by byte, reads the header WINDOW bytes a cycle and checks its CRC. A
// header that fails sends the search back to the byte after the first one of its sync word. What the
// card cannot take (version, kind, length of data) is counted and searched on from behind the header.
//   data         goes out as its payload, STEP bytes a word, and then one word without bytes that ends
//                the packet and says whether the payload's CRC failed; nothing may be acted upon before
//   ask, finish  go out as that last word alone
//   registers    wait at m_register until they are answered, so that nothing overtakes them
// header holds while the frame goes out. Its cycles beside the payload's: sync word 1, header and CRC
// 16 or 24 / WINDOW, judgement 1, payload CRC 1.
//
// Not done here: a packet that a reset cuts off is not ended (agg_beat_pack does that), the rank is not
// looked at (agg_route), and all other fields are the core's business.

`default_nettype none

module agg_frame_rx #(
    parameter integer WINDOW = 4,  // bytes in the window of the FIFO: 4 or 8
    parameter integer STEP = 4,  // bytes of payload in a word: 1, 2, 4 or 8, at most WINDOW
    parameter integer CHUNK = 256,  // most elements in a data packet
    parameter integer ELEM_BYTES = 4  // bytes of an element
) (
    input wire clk,
    input wire rst,  // also: drop what is half received

    // agg_byte_fifo
    input  wire [8*WINDOW-1:0] window,
    input  wire [         3:0] count,
    output reg  [         3:0] take,
    output reg                 commit,
    output reg                 rewind,

    output wire [175:0] header,  // 22 bytes, the first in bits 7:0; without a mask the last 8 are 0

    output wire [8*STEP-1:0] m_axis_tdata,
    output wire [  STEP-1:0] m_axis_tkeep,   // contiguous from bit 0
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast,   // with tkeep = 0
    output wire              m_axis_tuser,   // valid with tlast: the payload's CRC failed

    output wire m_register_valid,
    output wire m_register_write,  // else a read
    input  wire m_register_ready,  // the access in header has been answered

    // Events to count, one cycle each
    output wire event_frame,        // a header's CRC held
    output wire event_hunted,       // a byte was passed over
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

  localparam [2:0] HUNT = 3'd0;  // for the sync word
  localparam [2:0] HEADER = 3'd1;
  localparam [2:0] JUDGE = 3'd2;  // all of the header is there
  localparam [2:0] PAYLOAD = 3'd3;
  localparam [2:0] CLOSE = 3'd4;  // the payload's CRC is next
  localparam [2:0] BARE = 3'd5;  // a packet without payload goes out
  localparam [2:0] REGISTER = 3'd6;

  // Headers with their CRC are whole windows: 14 + 2 bytes, or 22 + 2 with a mask.
  localparam integer LAST_SHORT = (HDR_BASE_BYTES + 2) / WINDOW - 1;
  localparam integer LAST_LONG = (HDR_MASK_BYTES + 2) / WINDOW - 1;

  reg  [  2:0] state_reg;
  reg  [  2:0] step_reg;  // windows of header taken
  reg          long_reg;  // the header has a mask
  reg  [191:0] head_reg;  // header and CRC, shifted in from above
  reg  [ 15:0] left_reg;  // bytes of payload to come
  reg  [ 15:0] crc_reg;

  // -- header -------------------------------------------------------------------------------------

  wire [  3:0] version = header[HDR_VERSION_LSB+:HDR_VERSION_BITS];
  wire [  3:0] kind = header[HDR_KIND_LSB+:HDR_KIND_BITS];
  wire [ 15:0] length = header[HDR_LENGTH_LSB+:HDR_LENGTH_BITS];
  wire [ 15:0] header_crc = {head_reg[183:176], head_reg[191:184]};

  assign header = long_reg ? head_reg[175:0] : {64'd0, head_reg[175:64]};

  wire is_data = kind == KIND_DATA;
  wire is_bare = kind == KIND_ASK || kind == KIND_FINISH;
  wire is_register = kind == KIND_REGREAD || kind == KIND_REGWRITE;

  // The CRC over a header and its own CRC is zero.
  wire judge = state_reg == JUDGE;
  wire crc_held = judge && crc_reg == 16'd0;
  wire version_held = crc_held && version == VERSION;

  assign event_frame       = crc_held;
  assign event_header_crc  = judge && !crc_held;
  assign event_bad_version = crc_held && !version_held;
  assign event_bad_kind    = version_held && !is_data && !is_bare && !is_register;
  assign event_bad_length  = version_held && is_data && (length == 16'd0 || length > CHUNK[15:0]);

  // -- bytes --------------------------------------------------------------------------------------

  // A byte is passed over as soon as it cannot begin a sync word with what is there behind it.
  wire [31:0] differ = window[31:0] ^ SYNC;
  wire mismatch =
      (count >= 4'd1 && differ[7:0] != 8'd0) || (count >= 4'd2 && differ[15:8] != 8'd0) ||
      (count >= 4'd3 && differ[23:16] != 8'd0) || (count >= 4'd4 && differ[31:24] != 8'd0);
  wire passed_over = state_reg == HUNT && mismatch;
  wire synced = count >= 4'd4 && !mismatch;
  wire header_step = state_reg == HEADER && count == WINDOW[3:0];
  wire [3:0] payload_bytes = left_reg < STEP[15:0] ? left_reg[3:0] : STEP[3:0];
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

  // -- packets ------------------------------------------------------------------------------------

  assign m_axis_tdata     = window[8*STEP-1:0];
  assign m_axis_tkeep     = m_axis_tlast ? {STEP{1'b0}} : ~({STEP{1'b1}} << payload_bytes);
  assign m_axis_tvalid    = payload_there || close_there || state_reg == BARE;
  assign m_axis_tlast     = state_reg != PAYLOAD;
  assign m_axis_tuser     = state_reg == CLOSE && crc_reg != {window[7:0], window[15:8]};
  assign m_register_valid = state_reg == REGISTER;
  assign m_register_write = long_reg;

  wire moved = m_axis_tvalid && m_axis_tready;

  // -- CRC ----------------------------------------------------------------------------------------

  wire [15:0] crc_next;

  agg_crc16 #(
      .BYTES(WINDOW)
  ) u_crc (
      .crc_in (crc_reg),
      .data   (window),
      .count  (state_reg == HEADER ? WINDOW[3:0] : payload_bytes),
      .crc_out(crc_next)
  );

  always @(posedge clk) begin
    case (state_reg)
      HUNT: crc_reg <= CRC_INIT;
      HEADER: if (header_step) crc_reg <= crc_next;
      JUDGE: crc_reg <= header_crc;
      PAYLOAD: if (moved) crc_reg <= crc_next;
      default: ;
    endcase
  end

  // -- state --------------------------------------------------------------------------------------

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

endmodule

`default_nettype wire
