// The transmitting side of a card on Ethernet as one module, for test_ethernet_transmitter.py, and
// for the lints: from the core's output to frames. The shell's address table is a register here.

`default_nettype none

module ethernet_transmitter #(
    parameter integer PORTS = 4,
    parameter integer BEAT_BYTES = 64,
    parameter integer BYTES = 8,
    parameter integer PAYLOAD = 1024  // of the largest packet, in bytes
) (
    input wire clk,
    input wire rst,

    input wire [47:0] own_mac,
    input wire [31:0] own_ip,
    input wire [15:0] own_port,

    input wire [48*PORTS-1:0] member_mac,
    input wire [32*PORTS-1:0] member_ip,
    input wire [16*PORTS-1:0] member_port,

    input  wire [8*BEAT_BYTES-1:0] s_axis_tdata,
    input  wire [  BEAT_BYTES-1:0] s_axis_tkeep,
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,
    input  wire                    s_axis_tlast,
    input  wire [           239:0] s_axis_tuser,
    input  wire [       PORTS-1:0] s_axis_tdest,

    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire               m_axis_tlast
);

  localparam integer STEP = BEAT_BYTES < BYTES ? BEAT_BYTES : BYTES;
  localparam integer BLOCK = STEP > 32 ? STEP : 32;  // of zeros and a header
  localparam integer ZEROS = BLOCK - 30;
  localparam integer ZEROS_BARE = STEP > 8 ? BLOCK - 22 : ZEROS;
  localparam integer WHOLE = PAYLOAD > BYTES ? PAYLOAD : BYTES;
  localparam integer NUMBER_BITS = $clog2(WHOLE / STEP) + 1;

  wire room, takes_first, takes_word;
  wire step_valid, step_first, step_last, step_bare, word_valid;
  wire [NUMBER_BITS-1:0] step_number;
  wire [8*STEP-1:0] step_data;
  wire [8*BYTES-1:0] word_data;
  wire sums_valid;
  wire [31:0] sums_crc;
  wire [15:0] sums_sum;

  agg_datagram_steps #(
      .BEAT_BYTES (BEAT_BYTES),
      .BYTES      (BYTES),
      .STEP       (STEP),
      .ZEROS      (ZEROS),
      .ZEROS_BARE (ZEROS_BARE),
      .NUMBER_BITS(NUMBER_BITS)
  ) u_steps (
      .clk          (clk),
      .rst          (rst),
      .s_axis_tdata (s_axis_tdata),
      .s_axis_tkeep (s_axis_tkeep),
      .s_axis_tvalid(s_axis_tvalid),
      .s_axis_tready(s_axis_tready),
      .s_axis_tlast (s_axis_tlast),
      .s_axis_tuser (s_axis_tuser),
      .room         (room),
      .takes_first  (takes_first),
      .takes_word   (takes_word),
      .m_step_valid (step_valid),
      .m_step_first (step_first),
      .m_step_last  (step_last),
      .m_step_bare  (step_bare),
      .m_step_number(step_number),
      .m_step_data  (step_data),
      .m_word_valid (word_valid),
      .m_word_data  (word_data)
  );

  agg_datagram_sums #(
      .STEP      (STEP),
      .ZEROS     (ZEROS),
      .ZEROS_BARE(ZEROS_BARE)
  ) u_sums (
      .clk         (clk),
      .rst         (rst),
      .s_step_valid(step_valid),
      .s_step_first(step_first),
      .s_step_last (step_last),
      .s_step_bare (step_bare),
      .s_step_data (step_data),
      .m_valid     (sums_valid),
      .m_crc       (sums_crc),
      .m_sum       (sums_sum)
  );

  wire copy_valid, copy_ready, copy_bare;
  wire [PORTS-1:0] copy_dest;
  wire unused_copy_final;
  wire [239:0] copy_header;
  wire [1:0] copy_ecn;
  wire [13:0] copy_bytes;
  wire [31:0] copy_crc;
  wire [15:0] copy_sum;
  wire payload_tvalid, payload_tready, payload_tlast;
  wire [8*BYTES-1:0] payload_tdata;

  agg_datagram_store #(
      .PORTS      (PORTS),
      .BYTES      (BYTES),
      .STEP       (STEP),
      .PAYLOAD    (PAYLOAD),
      .SPARE      (PAYLOAD < 64 * BYTES ? 16 : 0),
      .NUMBER_BITS(NUMBER_BITS)
  ) u_store (
      .clk          (clk),
      .rst          (rst),
      .room         (room),
      .takes_first  (takes_first),
      .s_header     (s_axis_tuser),
      .s_dest       (s_axis_tdest),
      .s_bare       (!(|s_axis_tkeep)),
      .takes_word   (takes_word),
      .s_word_valid (word_valid),
      .s_word_data  (word_data),
      .s_last       (step_valid && step_last),
      .s_number     (step_number),
      .s_sums_valid (sums_valid),
      .s_crc        (sums_crc),
      .s_sum        (sums_sum),
      .m_copy_valid (copy_valid),
      .m_copy_ready (copy_ready),
      .m_copy_dest  (copy_dest),
      .m_copy_done  (copy_dest),                // each receiver has an address of its own
      .m_copy_final (unused_copy_final),
      .m_copy_header(copy_header),
      .m_copy_bare  (copy_bare),
      .m_copy_ecn   (copy_ecn),
      .m_copy_bytes (copy_bytes),
      .m_copy_crc   (copy_crc),
      .m_copy_sum   (copy_sum),
      .m_axis_tdata (payload_tdata),
      .m_axis_tvalid(payload_tvalid),
      .m_axis_tready(payload_tready),
      .m_axis_tlast (payload_tlast)
  );

  // -- The address of a copy's receiver ------------------------------------------------------------

  wire frame_ready;
  reg frame_valid_reg, bare_reg;
  reg [239:0] header_reg;
  reg [  1:0] ecn_reg;
  reg [ 13:0] bytes_reg;
  reg [ 31:0] crc_reg;
  reg [ 15:0] sum_reg;
  reg [47:0] mac, mac_reg;
  reg [31:0] ip, ip_reg;
  reg [15:0] port, port_reg;
  integer p;

  assign copy_ready = !frame_valid_reg || frame_ready;

  always @* begin
    mac  = 48'd0;
    ip   = 32'd0;
    port = 16'd0;
    for (p = 0; p < PORTS; p = p + 1) begin
      if (copy_dest[p]) begin
        mac  = member_mac[48*p+:48];
        ip   = member_ip[32*p+:32];
        port = member_port[16*p+:16];
      end
    end
  end

  always @(posedge clk) begin
    if (copy_ready) begin
      frame_valid_reg <= copy_valid;
      bare_reg        <= copy_bare;
      header_reg      <= copy_header;
      ecn_reg         <= copy_ecn;
      bytes_reg       <= copy_bytes;
      crc_reg         <= copy_crc;
      sum_reg         <= copy_sum;
      mac_reg         <= mac;
      ip_reg          <= ip;
      port_reg        <= port;
    end
    if (rst) frame_valid_reg <= 1'b0;
  end

  agg_eth_transmit #(
      .BYTES(BYTES),
      .STEP (STEP)
  ) u_transmit (
      .clk          (clk),
      .rst          (rst),
      .own_mac      (own_mac),
      .own_ip       (own_ip),
      .own_port     (own_port),
      .s_copy_valid (frame_valid_reg),
      .s_copy_ready (frame_ready),
      .s_copy_mac   (mac_reg),
      .s_copy_ip    (ip_reg),
      .s_copy_port  (port_reg),
      .s_copy_ecn   (ecn_reg),
      .s_copy_size  (bare_reg ? 2'd1 : 2'd2),
      .s_copy_header(header_reg),
      .s_copy_bytes (bytes_reg),
      .s_copy_crc   (crc_reg),
      .s_copy_sum   (sum_reg),
      .s_axis_tdata (payload_tdata),
      .s_axis_tvalid(payload_tvalid),
      .s_axis_tready(payload_tready),
      .s_axis_tlast (payload_tlast),
      .m_axis_tdata (m_axis_tdata),
      .m_axis_tkeep (m_axis_tkeep),
      .m_axis_tvalid(m_axis_tvalid),
      .m_axis_tready(m_axis_tready),
      .m_axis_tlast (m_axis_tlast)
  );

endmodule

`default_nettype wire
