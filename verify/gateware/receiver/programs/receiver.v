// The link's receiver as the shell has it: bytes into the FIFO, packets and register accesses out of the
// parser.

`default_nettype none

module receiver #(
    parameter integer LINK_BYTES = 4,
    parameter integer WINDOW = 4,
    parameter integer STEP = 4,
    parameter integer CHUNK = 16,
    parameter integer ELEM_BYTES = 4
) (
    input wire clk,
    input wire rst,

    input  wire [8*LINK_BYTES-1:0] s_axis_tdata,
    input  wire [  LINK_BYTES-1:0] s_axis_tkeep,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,

    output wire [     175:0] header,
    output wire [8*STEP-1:0] m_axis_tdata,
    output wire [  STEP-1:0] m_axis_tkeep,
    output wire              m_axis_tvalid,
    input  wire              m_axis_tready,
    output wire              m_axis_tlast,
    output wire              m_axis_tuser,

    output wire m_register_valid,
    output wire m_register_write,
    input  wire m_register_ready,

    output wire       moves,  // the parser goes on by bytes
    output wire [5:0] events  // frame, hunted, header_crc, bad_version, bad_kind, bad_length
);

  wire [8*WINDOW-1:0] window;
  wire [  WINDOW-1:0] valid;
  wire [         3:0] sync_bytes;
  wire [         3:0] take;
  wire                commit;
  wire                rewind;

  assign moves = take != 4'd0 || rewind;

  agg_byte_fifo #(
      .LINK_BYTES(LINK_BYTES),
      .WINDOW    (WINDOW)
  ) u_fifo (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tkeep (s_axis_tkeep),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .window       (window),
      .valid        (valid),
      .sync_bytes   (sync_bytes),
      .take         (take),
      .commit       (commit),
      .rewind       (rewind)
  );

  agg_frame_rx #(
      .WINDOW    (WINDOW),
      .STEP      (STEP),
      .CHUNK     (CHUNK),
      .ELEM_BYTES(ELEM_BYTES)
  ) u_rx (
      .clk              (clk),
      .rst              (rst),
      .window           (window),
      .valid            (valid),
      .sync_bytes       (sync_bytes),
      .take             (take),
      .commit           (commit),
      .rewind           (rewind),
      .header           (header),
      .m_axis_tdata     (m_axis_tdata),
      .m_axis_tkeep     (m_axis_tkeep),
      .m_axis_tvalid    (m_axis_tvalid),
      .m_axis_tready    (m_axis_tready),
      .m_axis_tlast     (m_axis_tlast),
      .m_axis_tuser     (m_axis_tuser),
      .m_register_valid (m_register_valid),
      .m_register_write (m_register_write),
      .m_register_ready (m_register_ready),
      .event_frame      (events[0]),
      .event_hunted     (events[1]),
      .event_header_crc (events[2]),
      .event_bad_version(events[3]),
      .event_bad_kind   (events[4]),
      .event_bad_length (events[5])
  );

endmodule

`default_nettype wire
