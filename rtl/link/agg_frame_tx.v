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
// s_axis_tready is a register and m_step_ready: a word without payload is taken with the header's
// first step, not where frames are chosen. So the choice is not in the path to the enables of the
// core's output.
//
// Not done here: packing steps into link words (agg_byte_pack). A reset drops the frame under way;
// agg_beat_unpack discards the rest of it.

`default_nettype none

module agg_frame_tx #(
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

  `include "zwire.vh"

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
  reg          takes_reg;  // this step takes a word
  reg          turn_reg;  // the last frame was a reply
  reg  [239:0] header_reg;  // shifted out from the low end
  reg  [ 15:0] crc_reg;

  wire         choose_reply = s_reply_valid && !(turn_reg && s_axis_tvalid);
  wire         waiting = s_reply_valid || s_axis_tvalid;
  wire [  3:0] kind = s_axis_tuser[HDR_KIND_LSB+:HDR_KIND_BITS];
  wire         with_payload = !choose_reply && (kind == KIND_RESULT || kind == KIND_REPLAY);

  wire         header_last = step_reg == (payload_reg ? LAST_LONG[2:0] : LAST_SHORT[2:0]);

  assign s_reply_ready = state_reg == BEGIN && choose_reply && m_step_ready;
  assign s_axis_tready = takes_reg && m_step_ready;

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
          takes_reg   <= !choose_reply && !with_payload;
          turn_reg    <= choose_reply;
          header_reg  <= header;
          crc_reg     <= crc_next;
        end
        HEADER: begin
          step_reg   <= step_reg + 3'd1;
          header_reg <= {{8 * WINDOW{1'b0}}, header_reg[239:8*WINDOW]};
          crc_reg    <= crc_next;
          takes_reg  <= header_last && payload_reg;
          if (header_last) state_reg <= payload_reg ? PAYLOAD : BEGIN;
        end
        PAYLOAD: begin
          crc_reg   <= crc_next;
          takes_reg <= !s_axis_tlast;
          if (s_axis_tlast) state_reg <= CLOSE;
        end
        default: state_reg <= BEGIN;
      endcase
    end
    if (rst) begin
      state_reg <= BEGIN;
      takes_reg <= 1'b0;
      turn_reg  <= 1'b0;
    end
  end

endmodule

`default_nettype wire
