// Transmitter of the byte-stream link: makes frames of the core's packets and of register replies.
//
// A frame leaves as steps of up to WINDOW bytes: the sync word (4 bytes), the header with its CRC
// (24 bytes, or 32 with receivers; whole windows), for results and replays the payload (STEP bytes a
// word) and its CRC (2 bytes). One step a cycle, and the next frame's first step may follow at once.
// Replies and packets take turns when both wait.
//
// The CRC runs a step ahead of the header: when its last step leaves, the CRC of all of it stands in a
// register, and not behind the logic that finds it.
//
// Not done here: the steps are put together into words of the link by agg_byte_pack. A reset drops the
// frame under way; swallowing what the core still sends of it is agg_beat_unpack's part.

`default_nettype none

module agg_frame_tx #(
    parameter integer WINDOW = 4,  // most bytes in a step: 4 or 8
    parameter integer STEP   = 4   // bytes of payload in a word: 1, 2, 4 or 8, at most WINDOW
) (
    input wire clk,
    input wire rst,

    input  wire         s_reply_valid,
    output wire         s_reply_ready,
    input  wire [175:0] s_reply_header,

    input  wire [8*STEP-1:0] s_axis_tdata,   // means nothing in packets without payload
    input  wire              s_axis_tvalid,
    output wire              s_axis_tready,
    input  wire              s_axis_tlast,
    input  wire [     239:0] s_axis_tuser,   // header of 30 bytes

    output wire [8*WINDOW-1:0] m_step_data,  // bytes beyond m_step_bytes are 0
    output wire [3:0] m_step_bytes,
    output wire m_step_valid,
    input wire m_step_ready,
    output wire m_step_idle  // no frame is under way, and none waits
);

  `include "zwire.vh"

  generate
    if (WINDOW != 4 && WINDOW != 8) begin : g_window
      ERROR_a_step_has_4_or_8_bytes error ();
    end
    if ((STEP != 1 && STEP != 2 && STEP != 4 && STEP != 8) || STEP > WINDOW) begin : g_step
      ERROR_a_word_has_1_2_4_or_8_bytes_and_at_most_those_of_a_step error ();
    end
  endgenerate

  localparam [1:0] BEGIN = 2'd0;  // the sync word leaves as soon as there is something to send
  localparam [1:0] HEADER = 2'd1;
  localparam [1:0] PAYLOAD = 2'd2;
  localparam [1:0] CLOSE = 2'd3;  // the payload's CRC leaves

  localparam integer LAST_SHORT = (HDR_MASK_BYTES + 2) / WINDOW - 1;
  localparam integer LAST_LONG = (HDR_MAX_BYTES + 2) / WINDOW - 1;
  localparam integer TAIL_BYTES = WINDOW - 2;  // of the header in its last step, before the CRC
  localparam integer TAIL = 8 * TAIL_BYTES;

  reg  [  1:0] state_reg;
  reg  [  2:0] step_reg;  // steps of header that have left
  reg          payload_reg;  // the frame has receivers and a payload
  reg          turn_reg;  // the last frame was a reply
  reg  [239:0] header_reg;  // shifted out from below
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
  wire [15:0] crc_step;  // of a whole step, of as many bytes as the header has in its last step,
  wire [15:0] crc_tail;
  wire [15:0] crc_payload;  // and of a word of payload
  reg [15:0] crc_next;

  assign payload[8*STEP-1:0] = s_axis_tdata;

  generate
    if (WINDOW > STEP) begin : g_narrow_beat
      assign payload[8*WINDOW-1:8*STEP] = {8 * (WINDOW - STEP) {1'b0}};
    end
  endgenerate

  // What is counted next: the header's first step while the sync word leaves, then the one behind the one
  // that leaves.
  always @* begin
    case (state_reg)
      BEGIN:   crc_next = crc_step;
      HEADER:  crc_next = header_last ? crc_reg : header_next_last ? crc_tail : crc_step;
      default: crc_next = crc_payload;
    endcase
  end

  // One for each number of bytes, so that each is a plain sum of bits.
  agg_crc16 #(
      .BYTES(WINDOW)
  ) u_step_crc (
      .crc_in (state_reg == BEGIN ? CRC_INIT : crc_reg),
      .data   (state_reg == BEGIN ? header[8*WINDOW-1:0] : header_reg[8*WINDOW+:8*WINDOW]),
      .count  (WINDOW[3:0]),
      .crc_out(crc_step)
  );

  agg_crc16 #(
      .BYTES(WINDOW - 2)
  ) u_tail_crc (
      .crc_in (crc_reg),
      .data   (header_reg[8*WINDOW+:8*(WINDOW-2)]),
      .count  (TAIL_BYTES[3:0]),
      .crc_out(crc_tail)
  );

  agg_crc16 #(
      .BYTES(STEP)
  ) u_payload_crc (
      .crc_in (crc_reg),
      .data   (payload[8*STEP-1:0]),
      .count  (STEP[3:0]),
      .crc_out(crc_payload)
  );

  // -- steps --------------------------------------------------------------------------------------

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
