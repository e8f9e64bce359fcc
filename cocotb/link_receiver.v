// The receiving side of the byte-stream shell as one module, for test_link_receiver.py.

`default_nettype none

module link_receiver #(
    parameter integer LINK_BYTES = 4,
    parameter integer WINDOW = 4,
    parameter integer STEP = 4,
    parameter integer BEAT_BYTES = 8,
    parameter integer CHUNK = 16,
    parameter integer ELEM_BYTES = 4
) (
    input wire clk,
    input wire rst,
    input wire down,

    input  wire [8*LINK_BYTES-1:0] s_axis_tdata,
    input  wire [  LINK_BYTES-1:0] s_axis_tkeep,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,

    output wire [8*BEAT_BYTES-1:0] m_axis_tdata,
    output wire [  BEAT_BYTES-1:0] m_axis_tkeep,
    output wire                    m_axis_tvalid,
    input  wire                    m_axis_tready,
    output wire                    m_axis_tlast,
    output wire                    m_axis_tdest,
    output wire [           112:0] m_axis_tuser,

    output wire         m_register_valid,
    input  wire         m_register_ready,
    output wire         m_register_write,
    output wire [175:0] m_register_header,

    output wire busy,
    output wire event_frame,
    output wire event_hunted,
    output wire event_header_crc,
    output wire event_bad_version,
    output wire event_bad_kind,
    output wire event_bad_length
);

  wire [8*WINDOW-1:0] window;
  wire [  WINDOW-1:0] valid;
  wire [         3:0] sync_bytes;
  wire [         3:0] take;
  wire                commit;
  wire                rewind;
  wire [       175:0] header;
  wire [  8*STEP-1:0] word_tdata;
  wire [    STEP-1:0] word_tkeep;
  wire                word_tvalid;
  wire                word_tready;
  wire                word_tlast;
  wire                word_tuser;

  assign m_register_header = header;

  agg_byte_fifo #(
      .LINK_BYTES(LINK_BYTES),
      .WINDOW    (WINDOW)
  ) u_fifo (
      .clk          (clk),
      .rst          (rst || down),
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
      .rst              (rst || down),
      .window           (window),
      .valid            (valid),
      .sync_bytes       (sync_bytes),
      .take             (take),
      .commit           (commit),
      .rewind           (rewind),
      .header           (header),
      .m_axis_tdata     (word_tdata),
      .m_axis_tkeep     (word_tkeep),
      .m_axis_tvalid    (word_tvalid),
      .m_axis_tready    (word_tready),
      .m_axis_tlast     (word_tlast),
      .m_axis_tuser     (word_tuser),
      .m_register_valid (m_register_valid),
      .m_register_write (m_register_write),
      .m_register_ready (m_register_ready),
      .event_frame      (event_frame),
      .event_hunted     (event_hunted),
      .event_header_crc (event_header_crc),
      .event_bad_version(event_bad_version),
      .event_bad_kind   (event_bad_kind),
      .event_bad_length (event_bad_length)
  );

  agg_beat_pack #(
      .STEP      (STEP),
      .BEAT_BYTES(BEAT_BYTES),
      .PORTS     (1)
  ) u_pack (
      .clk          (clk),
      .rst          (rst),
      .close        (down),
      .busy         (busy),
      .header       (header[111:0]),
      .dest         (1'b1),
      .s_axis_tdata (word_tdata),
      .s_axis_tkeep (word_tkeep),
      .s_axis_tvalid(word_tvalid),
      .s_axis_tready(word_tready),
      .s_axis_tlast (word_tlast),
      .s_axis_tuser (word_tuser),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tlast (m_axis_tlast),
      .m_axis_tdest (m_axis_tdest),
      .m_axis_tuser (m_axis_tuser)
  );

endmodule

`default_nettype wire
