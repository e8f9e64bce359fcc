// The transmitting side of the byte-stream shell as one module, for test_link_transmitter.py.

`default_nettype none

module link_transmitter #(
    parameter integer LINK_BYTES = 4,
    parameter integer WINDOW = 4,
    parameter integer STEP = 4,
    parameter integer BEAT_BYTES = 8
) (
    input wire clk,
    input wire rst,
    input wire down,

    input  wire [8*BEAT_BYTES-1:0] s_axis_tdata,
    input  wire [  BEAT_BYTES-1:0] s_axis_tkeep,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    input  wire                    s_axis_tlast,
    input  wire [           239:0] s_axis_tuser,

    input  wire         s_reply_valid,
    output wire         s_reply_ready,
    input  wire [175:0] s_reply_header,

    output wire [8*LINK_BYTES-1:0] m_axis_tdata,
    output wire [  LINK_BYTES-1:0] m_axis_tkeep,
    output wire                    m_axis_tvalid,
    input  wire                    m_axis_tready,

    output wire busy
);

  wire [  8*STEP-1:0] word_tdata;
  wire                word_tvalid;
  wire                word_tready;
  wire                word_tlast;
  wire [       239:0] word_tuser;
  wire [8*WINDOW-1:0] step_data;
  wire [         3:0] step_bytes;
  wire                step_valid;
  wire                step_ready;
  wire                step_idle;

  agg_beat_unpack #(
      .STEP      (STEP),
      .BEAT_BYTES(BEAT_BYTES)
  ) u_unpack (
      .clk          (clk),
      .rst          (rst),
      .drop         (down),
      .busy         (busy),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tkeep (s_axis_tkeep),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .s_axis_tlast (s_axis_tlast),
      .s_axis_tuser (s_axis_tuser),
      .m_axis_tdata (word_tdata),
      .m_axis_tvalid(word_tvalid),
      .m_axis_tready(word_tready),
      .m_axis_tlast (word_tlast),
      .m_axis_tuser (word_tuser)
  );

  agg_frame_tx #(
      .WINDOW(WINDOW),
      .STEP  (STEP)
  ) u_tx (
      .clk           (clk),
      .rst           (rst || down),
      .s_reply_valid (s_reply_valid),
      .s_reply_ready (s_reply_ready),
      .s_reply_header(s_reply_header),
      .s_axis_tdata  (word_tdata),
      .s_axis_tvalid (word_tvalid),
      .s_axis_tready (word_tready),
      .s_axis_tlast  (word_tlast),
      .s_axis_tuser  (word_tuser),
      .m_step_data   (step_data),
      .m_step_bytes  (step_bytes),
      .m_step_valid  (step_valid),
      .m_step_ready  (step_ready),
      .m_step_idle   (step_idle)
  );

  agg_byte_pack #(
      .STEP      (WINDOW),
      .LINK_BYTES(LINK_BYTES)
  ) u_pack (
      .clk          (clk),
      .rst          (rst || down),
      .s_step_data  (step_data),
      .s_step_bytes (step_bytes),
      .s_step_valid (step_valid),
      .s_step_ready (step_ready),
      .s_step_idle  (step_idle),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready)
  );

endmodule

`default_nettype wire
