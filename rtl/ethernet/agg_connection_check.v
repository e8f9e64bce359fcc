// Makes data of packets of connections: an aggregation header in front of the payload, for the
// core.
//
// A packet waits at s_axis (agg_frame_queue) with its descriptor (agg_roce_receive). Its VID is the
// one nearest to the newest stored VID of the job that has the lowest 24 bits of the PSN's offset.
// Its epoch is that of the registration that it was found in: a packet that waits while the next
// job is set up is no packet of that job. The rank is the job's. The header that it came with goes
// to agg_roce_headers before its first beat leaves here, with a tag of job, epoch and VID. In
// return the packet gets a place, which it carries in CODE: the core ignores this field of data.
//
// Packets leave as agg_beat_pack takes them: words, and an end without data. So a packet takes a
// cycle more than it has words.
//
// hold stops packets before their first beat; busy is high while one is here. A commit needs
// both. Latency: 2 cycles. Throughput: a beat a cycle, also from packet to packet, if headers
// find room at once.
//
// Not done here: whether the job is set up, and all other checks of data (agg_core). Of VIDs as
// near to the newest on both sides, which no window holds, it is the lower one.

`default_nettype none

module agg_connection_check #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,
    parameter integer BYTES = 8,  // in a word
    parameter integer ELEM_BYTES = 4,  // of an element: 1, 2 or 4
    parameter integer FORMAT = 1,  // of contributions, in a header
    parameter integer PLACE_BITS = 4
) (
    input wire clk,
    input wire rst,

    input  wire hold,
    output wire busy,

    // Jobs, number 0 in the lowest bits
    input wire [     32*JOBS-1:0] newest_vid,
    input wire [8*PORTS*JOBS-1:0] rank_of_port,

    input  wire                            s_axis_tvalid,
    output wire                            s_axis_tready,
    input  wire [             8*BYTES-1:0] s_axis_tdata,
    input  wire                            s_axis_tpayload,  // always: packets have payload
    input  wire                            s_axis_tlast,
    input  wire [670+JOB_BITS+PORT_BITS:0] s_axis_tuser,     // descriptor

    output wire                  m_record_valid,
    input  wire                  m_record_ready,
    output wire [JOB_BITS+673:0] m_record,        // tag, and header
    input  wire [PLACE_BITS-1:0] record_place,

    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tlast,    // an end, without data
    output wire [      111:0] m_axis_theader,
    output wire [  PORTS-1:0] m_axis_tdest     // one-hot
);

  `include "zwire.vh"

  localparam integer SHIFT = ELEM_BYTES == 4 ? 6 : ELEM_BYTES == 2 ? 7 : 8;
  localparam [15:0] LEAST = 16'd1 << SHIFT;  // elements of 256 bytes

  // -- The packet at the input -------------------------------------------------------------------

  wire [PORT_BITS-1:0] port = s_axis_tuser[0+:PORT_BITS];
  wire [ JOB_BITS-1:0] job = s_axis_tuser[PORT_BITS+:JOB_BITS];
  localparam integer FIELDS = PORT_BITS + JOB_BITS;
  wire unused = s_axis_tpayload;
  reg open_reg;  // a packet's first beat was taken, and its last one was not
  reg [31:0] newest;
  reg [7:0] rank;
  reg [8*PORTS-1:0] ranks;  // of the job
  integer j, n, d;

  always @* begin
    newest = 32'd0;
    ranks  = {8 * PORTS{1'b0}};
    for (j = 0; j < JOBS; j = j + 1) begin
      if (JOBS == 1 || job == j[JOB_BITS-1:0]) begin
        newest = newest | newest_vid[32*j+:32];
        ranks  = ranks | rank_of_port[8*PORTS*j+:8*PORTS];
      end
    end
  end

  always @* begin
    rank = 8'd0;
    for (n = 0; n < PORTS; n = n + 1)
    if (PORTS == 1 || port == n[PORT_BITS-1:0]) rank = rank | ranks[8*n+:8];
  end

  wire takes = s_axis_tvalid && s_axis_tready;

  always @(posedge clk) begin
    if (takes) open_reg <= !s_axis_tlast;
    if (rst) open_reg <= 1'b0;
  end

  // -- Place 1: the VID, and the header for agg_roce_headers -------------------------------------

  reg valid_1_reg, first_1_reg, last_1_reg;
  reg [8*BYTES-1:0] data_1_reg;
  reg [PORT_BITS-1:0] port_reg;
  reg [JOB_BITS-1:0] job_reg;
  reg [23:0] offset_reg;
  reg [2:0] mtu_reg;
  reg [1:0] ecn_reg;
  reg [625:0] record_reg;
  reg [15:0] epoch_reg;
  reg [31:0] newest_reg;
  reg [7:0] rank_reg;
  reg told_reg;  // the packet has its place
  reg [PLACE_BITS-1:0] place_reg;
  wire free;  // place 2 takes a beat
  wire leaves = free && (!first_1_reg || told_reg || m_record_ready);
  wire moves = !valid_1_reg || leaves;

  wire [23:0] distance = offset_reg - newest_reg[23:0];
  wire [31:0] vid = newest_reg + {{8{distance[23]}}, distance};
  wire [15:0] length = LEAST << mtu_reg;

  always @(posedge clk) begin
    if (moves) begin
      valid_1_reg <= takes;
      data_1_reg  <= s_axis_tdata;
      first_1_reg <= !open_reg;
      last_1_reg  <= s_axis_tlast;
      if (!open_reg) begin
        port_reg   <= port;
        job_reg    <= job;
        offset_reg <= s_axis_tuser[FIELDS+:24];
        epoch_reg  <= s_axis_tuser[FIELDS+24+:16];
        mtu_reg    <= s_axis_tuser[FIELDS+40+:3];
        ecn_reg    <= s_axis_tuser[FIELDS+43+:2];
        // From its lowest bit on: the header, the code of its size, its part of an ICRC
        record_reg <= s_axis_tuser[FIELDS+45+:626];
        newest_reg <= newest;
        rank_reg   <= rank;
      end
    end
    if (m_record_valid && m_record_ready) place_reg <= record_place;
    told_reg <= valid_1_reg && first_1_reg && !leaves && (told_reg || m_record_ready);
    if (rst) valid_1_reg <= 1'b0;
  end

  assign m_record_valid = valid_1_reg && first_1_reg && !told_reg;
  assign m_record = {job_reg, epoch_reg, vid, record_reg};

  // -- Place 2: the word that leaves, and the end ------------------------------------------------

  reg valid_2_reg, last_2_reg;
  reg end_reg;  // the packet's last word has left, and its end has not
  reg [8*BYTES-1:0] data_2_reg;
  reg [111:0] header_reg;
  reg [PORTS-1:0] dest_reg;
  wire [7:0] number = {{8 - JOB_BITS{1'b0}}, job_reg};
  wire [7:0] place = {{8 - PLACE_BITS{1'b0}}, told_reg ? place_reg : record_place};

  assign free = !valid_2_reg || (m_axis_tready && (!last_2_reg || end_reg));

  always @(posedge clk) begin
    if (valid_2_reg && m_axis_tready) end_reg <= last_2_reg && !end_reg;
    if (free) begin
      valid_2_reg <= valid_1_reg && leaves;
      data_2_reg  <= data_1_reg;
      last_2_reg  <= last_1_reg;
      if (first_1_reg) begin
        header_reg <= 112'd0;
        header_reg[HDR_VERSION_LSB+:HDR_VERSION_BITS] <= VERSION;
        header_reg[HDR_KIND_LSB+:HDR_KIND_BITS] <= KIND_DATA;
        header_reg[HDR_FLAGS_LSB+:HDR_FLAGS_BITS] <= {6'd0, ecn_reg};
        header_reg[HDR_JOB_LSB+:HDR_JOB_BITS] <= number;
        header_reg[HDR_FORMAT_LSB+:HDR_FORMAT_BITS] <= FORMAT[7:0];
        header_reg[HDR_EPOCH_LSB+:HDR_EPOCH_BITS] <= epoch_reg;
        header_reg[HDR_RANK_LSB+:HDR_RANK_BITS] <= rank_reg;
        header_reg[HDR_CODE_LSB+:HDR_CODE_BITS] <= place;
        header_reg[HDR_VID_LSB+:HDR_VID_BITS] <= vid;
        header_reg[HDR_LENGTH_LSB+:HDR_LENGTH_BITS] <= length;
        for (d = 0; d < PORTS; d = d + 1) dest_reg[d] <= PORTS == 1 || port_reg == d[PORT_BITS-1:0];
      end
    end
    if (rst) begin
      valid_2_reg <= 1'b0;
      end_reg     <= 1'b0;
    end
  end

  assign s_axis_tready  = moves && (open_reg || !hold);
  assign busy           = open_reg || valid_1_reg || valid_2_reg;
  assign m_axis_tvalid  = valid_2_reg;
  assign m_axis_tdata   = data_2_reg;
  assign m_axis_tkeep   = {BYTES{1'b1}};
  assign m_axis_tlast   = end_reg;  // without data
  assign m_axis_theader = header_reg;
  assign m_axis_tdest   = dest_reg;

endmodule

`default_nettype wire
