// Decides what becomes of a received datagram. Data, asks and finishes are kept with their payload
// (agg_frame_queue), accesses to registers go to a queue of their own (agg_access_queue), and all
// others are forgotten and counted. The checks are those of the specification, in its order:
// version, a kind that travels to the card, and the size that kind and length require.
//
// The descriptor of a kept packet has, from its lowest bit on:
//
//   header   112 bits, with the ECN mark of the IP packet in its flags
//   ip        32 bits, and
//   port      16 bits: the sender
//   ragged     1 bit: the payload's last word is not full
`ifdef AGG_PARENT
//
// A datagram to an upward UDP port has a result, a replay or a status. The 16 or 8 bytes of its header
// behind the first 14 are words here (agg_up_unwrap). The mark of a result is the worse of two: that of
// its flags and that of the IP packet. A kept packet has a second descriptor:
//
//   brief      1 bit: the last word has 16 bytes or less
//   up_job       the job whose port it is
//   up         1 bit: it came to such a port
//   mask      64 bits, of its header
`endif
//
// Latency: 2 cycles, for words and verdicts. A verdict for every frame goes to the queue, kept or
// not. An access is a pulse. The checks before these are in agg_eth_judge.

`default_nettype none

module agg_datagram_accept #(
`ifdef AGG_PARENT
    parameter integer JOB_BITS = 1,
`endif
    parameter integer BYTES = 8,  // in a word
    parameter integer CHUNK = 256,  // maximum length, in elements
    parameter integer ELEM_BYTES = 4  // of a contribution: 1, 2 or 4
) (
    input wire clk,
    input wire rst,

    // From agg_eth_receive
    input wire               s_axis_tvalid,
    input wire [8*BYTES-1:0] s_axis_tdata,
    input wire               s_axis_tlast,
    input wire               s_verdict_valid,
    input wire [        2:0] s_verdict_kind,
    input wire [       47:0] s_verdict_mac,
    input wire [       31:0] s_verdict_ip,
    input wire [       15:0] s_verdict_port,
    input wire [        1:0] s_verdict_ecn,
    input wire [      175:0] s_verdict_header,
    input wire [       15:0] s_verdict_bytes,   // of the payload, or of a written value
`ifdef AGG_PARENT

    // The frame is for the upward UDP port of a job
    input wire                s_verdict_up,
    input wire [JOB_BITS-1:0] s_verdict_up_job,
`endif

    // To agg_frame_queue
    output wire               m_axis_tvalid,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire               m_axis_tlast,
    output wire               m_verdict_valid,
    output wire               m_verdict_keep,
    output wire [      160:0] m_verdict_descriptor,
`ifdef AGG_PARENT

    output wire [65+JOB_BITS:0] m_verdict_up_descriptor,
`endif

    // To agg_access_queue
    output wire        m_access_valid,
    output wire        m_access_write,
    output wire [31:0] m_access_addr,
    output wire [15:0] m_access_tag,
    output wire [63:0] m_access_wdata,
    output wire [47:0] m_access_mac,
    output wire [31:0] m_access_ip,
    output wire [15:0] m_access_port,

    // Pulses for counters
    output wire event_frame,
    output wire event_bad_version,
    output wire event_bad_kind,
    output wire event_bad_length
);

  `include "zwire.vh"

  generate
    if (ELEM_BYTES != 1 && ELEM_BYTES != 2 && ELEM_BYTES != 4) begin : g_element
      ERROR_an_element_has_1_2_or_4_bytes error ();
    end
  endgenerate

  localparam [2:0] DATAGRAM = 3'd1;  // agg_eth_judge
  localparam integer SHIFT = $clog2(ELEM_BYTES);
  localparam [15:0] MOST = CHUNK[15:0];
  localparam [15:0] VALUE_BYTES = 16'd8;

  // -- First cycle: fields and comparisons --------------------------------------------------------

  wire [ 3:0] version = s_verdict_header[HDR_VERSION_LSB+:HDR_VERSION_BITS];
  wire [ 3:0] kind = s_verdict_header[HDR_KIND_LSB+:HDR_KIND_BITS];
  wire [15:0] length = s_verdict_header[HDR_LENGTH_LSB+:HDR_LENGTH_BITS];
  wire [17:0] payload_bytes = {2'd0, length} << SHIFT;

  reg datagram_reg, frame_reg;
  reg version_reg, data_reg, write_reg, read_reg, short_reg;  // short: ask or finish
  reg length_reg, payload_size_reg, no_size_reg, value_size_reg;  // these are right
  reg [175:0] header_reg;
  reg [47:0] mac_reg;
  reg [31:0] ip_reg;
  reg [15:0] port_reg;
  reg ragged_reg;
  wire ragged;

  generate
    if (BYTES == 1) begin : g_bytes
      assign ragged = 1'b0;
    end else begin : g_words
      assign ragged = s_verdict_bytes[$clog2(BYTES)-1:0] != {$clog2(BYTES) {1'b0}};
    end
  endgenerate

`ifdef AGG_PARENT
  // The parent's packets
  localparam [15:0] SUM_BYTES = 16'd16;  // mask and receivers
  localparam [15:0] STATUS_BYTES = 16'd8;  // mask
  localparam [15:0] IN_WORD = BYTES[15:0] - 16'd1;

  // The order of marks: ECT(1), ECT(0), none, CE
  function automatic [1:0] severity;
    input [1:0] ecn;
    severity = {ecn == ECN_NOT_ECT || ecn == ECN_CE, ecn == ECN_ECT0 || ecn == ECN_CE};
  endfunction

  wire [1:0] its_ecn = s_verdict_header[HDR_FLAGS_LSB+:2];
  wire its_is_worse = s_verdict_up && severity(its_ecn) > severity(s_verdict_ecn);
  wire [1:0] mark = its_is_worse ? its_ecn : s_verdict_ecn;
  wire [15:0] last_byte = s_verdict_bytes - 16'd1;
  wire [15:0] sum_bytes = s_verdict_bytes - SUM_BYTES;
  reg up_reg, sum_reg, status_reg, sum_size_reg, status_size_reg, sum_ragged_reg, brief_reg;
  reg [JOB_BITS-1:0] up_job_reg;

  always @(posedge clk) begin
    up_reg          <= s_verdict_up;
    up_job_reg      <= s_verdict_up_job;
    sum_reg         <= kind == KIND_RESULT || kind == KIND_REPLAY;
    status_reg      <= kind == KIND_STATUS;
    sum_size_reg    <= {2'd0, s_verdict_bytes} == payload_bytes + {2'd0, SUM_BYTES};
    status_size_reg <= s_verdict_bytes == STATUS_BYTES;
    sum_ragged_reg  <= (sum_bytes & IN_WORD) != 16'd0;
    brief_reg       <= (last_byte & IN_WORD) < SUM_BYTES;
  end

`endif
  always @(posedge clk) begin
    frame_reg                    <= s_verdict_valid && !rst;
    datagram_reg                 <= s_verdict_valid && s_verdict_kind == DATAGRAM && !rst;
    version_reg                  <= version == VERSION;
    data_reg                     <= kind == KIND_DATA;
    short_reg                    <= kind == KIND_ASK || kind == KIND_FINISH;
    read_reg                     <= kind == KIND_REGREAD;
    write_reg                    <= kind == KIND_REGWRITE;
    length_reg                   <= length != 16'd0 && length <= MOST;
    payload_size_reg             <= {2'd0, s_verdict_bytes} == payload_bytes;
    no_size_reg                  <= s_verdict_bytes == 16'd0;
    value_size_reg               <= s_verdict_bytes == VALUE_BYTES;
    header_reg                   <= s_verdict_header;
    mac_reg                      <= s_verdict_mac;
    ip_reg                       <= s_verdict_ip;
    port_reg                     <= s_verdict_port;
    ragged_reg                   <= ragged;

`ifdef AGG_PARENT
    header_reg[HDR_FLAGS_LSB+:2] <= mark;
`else
    header_reg[HDR_FLAGS_LSB+:2] <= s_verdict_ecn;
`endif
  end

  // -- Second cycle: the decision -----------------------------------------------------------------

`ifdef AGG_PARENT
  wire asks = !up_reg && (read_reg || write_reg);
  wire carries = up_reg ? sum_reg || status_reg : data_reg || short_reg;
  wire known = asks || carries;
  wire fits_up = (sum_reg && length_reg && sum_size_reg) || (status_reg && status_size_reg);
  wire fits_down = (data_reg && length_reg && payload_size_reg) ||
      ((short_reg || read_reg) && no_size_reg) || (write_reg && value_size_reg);
  wire fits = up_reg ? fits_up : fits_down;
`else
  wire known = data_reg || short_reg || read_reg || write_reg;
  wire fits = (data_reg && length_reg && payload_size_reg) ||
      ((short_reg || read_reg) && no_size_reg) || (write_reg && value_size_reg);
`endif
  wire good = datagram_reg && version_reg && fits;

  reg verdict_reg, keep_reg, access_reg, access_write_reg;
  reg counts_reg, bad_version_reg, bad_kind_reg, bad_length_reg;
  reg [175:0] out_header_reg;
  reg [95:0] sender_reg;  // mac, port, ip
  reg out_ragged_reg;
`ifdef AGG_PARENT
  reg [JOB_BITS+1:0] out_up_reg;
`endif

  always @(posedge clk) begin
    verdict_reg      <= frame_reg && !rst;
`ifdef AGG_PARENT
    keep_reg         <= good && carries;
    access_reg       <= good && asks && !rst;
`else
    keep_reg         <= good && (data_reg || short_reg);
    access_reg       <= good && (read_reg || write_reg) && !rst;
`endif
    access_write_reg <= write_reg;
    counts_reg       <= datagram_reg && !rst;
    bad_version_reg  <= datagram_reg && !version_reg && !rst;
    bad_kind_reg     <= datagram_reg && version_reg && !known && !rst;
    bad_length_reg   <= datagram_reg && version_reg && known && !fits && !rst;
    out_header_reg   <= header_reg;
    sender_reg       <= {mac_reg, port_reg, ip_reg};
`ifdef AGG_PARENT
    out_ragged_reg   <= up_reg ? sum_ragged_reg && sum_reg : ragged_reg && data_reg;
    out_up_reg       <= {up_reg, up_job_reg, brief_reg};
`else
    out_ragged_reg   <= ragged_reg && data_reg;
`endif
  end

  agg_tag_delay #(
      .WIDTH (8 * BYTES + 1),
      .CYCLES(2)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .in_valid (s_axis_tvalid),
      .in_tag   ({s_axis_tlast, s_axis_tdata}),
      .out_valid(m_axis_tvalid),
      .out_tag  ({m_axis_tlast, m_axis_tdata})
  );

  assign m_verdict_valid = verdict_reg;
  assign m_verdict_keep = keep_reg;
  assign m_verdict_descriptor = {out_ragged_reg, sender_reg[47:0], out_header_reg[111:0]};
`ifdef AGG_PARENT
  assign m_verdict_up_descriptor = {out_header_reg[HDR_MASK_LSB+:64], out_up_reg};
`endif
  assign m_access_valid = access_reg;
  assign m_access_write = access_write_reg;
  assign m_access_addr = out_header_reg[HDR_VID_LSB+:HDR_VID_BITS];
  assign m_access_tag = out_header_reg[HDR_LENGTH_LSB+:HDR_LENGTH_BITS];
  assign m_access_wdata = out_header_reg[HDR_MASK_LSB+:HDR_MASK_BITS];
  assign {m_access_mac, m_access_port, m_access_ip} = sender_reg;
  assign event_frame = counts_reg;
  assign event_bad_version = bad_version_reg;
  assign event_bad_kind = bad_kind_reg;
  assign event_bad_length = bad_length_reg;

endmodule

`default_nettype wire
