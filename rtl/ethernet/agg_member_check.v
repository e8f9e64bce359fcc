// Lets packets to the core only from the address of their rank, and finds their port of the core.
//
// A packet waits at s_axis (agg_frame_queue) with its descriptor (agg_datagram_accept). Job and rank
// of its header select an entry of the address table (agg_member_table), which comes two cycles
// later; a cycle compares it with the sender byte by byte, another one joins the bytes. A packet
// whose IPv4 address, UDP port or Ethernet port differs, or whose entry is empty, is dropped: a pulse
// of event_stranger.
//
// Packets leave as agg_beat_pack takes them: words, and an end without data. A packet without payload
// is an end alone. So a packet takes a cycle more than it has words. Words wait for the core in the
// registers here, which all move together.
//
`ifdef AGG_PARENT
// A packet to an upward UDP port belongs to that port's job. It must come from the job's parent, whose
// address agg_parent_table has, and have the job's number: otherwise it is dropped, with a pulse of
// event_stranger or event_up_dropped. It leaves for the up port, behind the ports of members.
//
`endif
// While hold is high, no packet begins; busy is high while a part of one is here. A commit needs
// both: no packet that was compared with the old table reaches the core after it.

`default_nettype none

module agg_member_check #(
`ifdef AGG_PARENT
    parameter integer JOB_BITS = 1,
`endif
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer BYTES = 8  // in a word
) (
    input wire clk,
    input wire rst,

    input wire [7:0] ethernet_port,  // where these packets came: a constant

    input  wire hold,
    output wire busy,
    output wire event_stranger,
`ifdef AGG_PARENT

    output wire event_up_dropped,
`endif

    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,
    input  wire [8*BYTES-1:0] s_axis_tdata,
    input  wire               s_axis_tpayload,  // the beat has a word
    input  wire               s_axis_tlast,
    input  wire [      160:0] s_axis_tuser,     // descriptor
`ifdef AGG_PARENT

    input wire [65+JOB_BITS:0] s_axis_tup,  // second descriptor
`endif

    // Address table: the entry two enabled cycles after its job and rank
    output wire                 from_en,
    output wire [          7:0] from_job,
    output wire [          7:0] from_rank,
    input  wire                 from_valid,
    input  wire [         31:0] from_ip,
    input  wire [         15:0] from_port,
    input  wire [          7:0] from_ethernet,
    input  wire [PORT_BITS-1:0] from_dest,      // the core's port
`ifdef AGG_PARENT

    // Parents: likewise, after an upward UDP port's job
    output wire [JOB_BITS-1:0] parent_job,
    input  wire                parent_valid,
    input  wire [        31:0] parent_ip,
    input  wire [        15:0] parent_port,
    input  wire [         7:0] parent_ethernet,
`endif

    output wire               m_axis_tvalid,
    input  wire               m_axis_tready,
    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tlast,    // an end
    output wire [      111:0] m_axis_theader,
`ifdef AGG_PARENT
    output wire [  PORTS-1:0] m_axis_tdest,

    // For the up port
    output wire        m_axis_tup,
    output wire [63:0] m_axis_tmask
`else
    output wire [  PORTS-1:0] m_axis_tdest
`endif
);

  `include "zwire.vh"

  localparam integer WIDTH = 8 * BYTES + 2 + 161;
`ifdef AGG_PARENT
  localparam integer UP_BITS = 66 + JOB_BITS;
`endif

  reg  open_reg;  // a packet's first beat was taken, and its last one was not
  wire advance;  // everything here moves on by one place

  wire takes = s_axis_tvalid && s_axis_tready;

  always @(posedge clk) begin
    if (takes) open_reg <= !s_axis_tlast;
    if (rst) open_reg <= 1'b0;
  end

  assign s_axis_tready = advance && (open_reg || !hold);
  assign from_en = advance;
  assign from_job = s_axis_tuser[HDR_JOB_LSB+:HDR_JOB_BITS];
  assign from_rank = s_axis_tuser[HDR_RANK_LSB+:HDR_RANK_BITS];

  // -- Places: two for the table, one for each step of the comparison -----------------------------

  reg [4:1] valid_reg;
  reg [WIDTH-1:0] beat_1_reg, beat_2_reg, beat_3_reg, beat_4_reg;
  reg [6:0] differs_reg;
  reg empty_reg;
  reg [PORT_BITS-1:0] dest_3_reg;
  reg stranger_reg;
  reg [PORTS-1:0] dest_4_reg;

  wire [31:0] ip = beat_2_reg[112+:32];
  wire [15:0] port = beat_2_reg[144+:16];
  wire [55:0] sender = {ethernet_port, port, ip};
`ifdef AGG_PARENT
  reg [UP_BITS-1:0] up_1_reg, up_2_reg, up_3_reg, up_4_reg;
  reg other_3_reg, other_4_reg;  // the number is another job's
  wire up = up_2_reg[1+JOB_BITS];
  wire [JOB_BITS-1:0] up_job = up_2_reg[1+:JOB_BITS];
  wire [7:0] number = beat_2_reg[HDR_JOB_LSB+:8];
  wire [55:0] expected = up ? {parent_ethernet, parent_port, parent_ip} :
      {from_ethernet, from_port, from_ip};
  wire known = up ? parent_valid : from_valid;
`else
  wire [55:0] expected = {from_ethernet, from_port, from_ip};
`endif
  integer k;

  always @(posedge clk) begin
    if (advance) begin
      valid_reg  <= {valid_reg[3:1], takes};
      beat_1_reg <= {s_axis_tlast, s_axis_tpayload, s_axis_tdata, s_axis_tuser};
      beat_2_reg <= beat_1_reg;
      beat_3_reg <= beat_2_reg;
      beat_4_reg <= beat_3_reg;
      for (k = 0; k < 7; k = k + 1) differs_reg[k] <= sender[8*k+:8] != expected[8*k+:8];
`ifdef AGG_PARENT
      empty_reg    <= !known;
      up_1_reg     <= s_axis_tup;
      up_2_reg     <= up_1_reg;
      up_3_reg     <= up_2_reg;
      up_4_reg     <= up_3_reg;
      other_3_reg  <= up && number != {{8 - JOB_BITS{1'b0}}, up_job};
      other_4_reg  <= other_3_reg;
`else
      empty_reg    <= !from_valid;
`endif
      dest_3_reg   <= from_dest;
      stranger_reg <= empty_reg || differs_reg != 7'd0;
      for (k = 0; k < PORTS; k = k + 1) dest_4_reg[k] <= dest_3_reg == k[PORT_BITS-1:0];
    end
    if (rst) valid_reg <= 4'd0;
  end

  // -- The output: words, and an end ---------------------------------------------------------------

  reg  end_reg;  // the packet's last word has left, and its end has not
  wire last = beat_4_reg[WIDTH-1];
  wire payload = beat_4_reg[WIDTH-2];
  wire ends = end_reg || !payload;
`ifdef AGG_PARENT
  wire offers = valid_reg[4] && !stranger_reg && !other_4_reg;
`else
  wire offers = valid_reg[4] && !stranger_reg;
`endif

  assign advance = !offers || (m_axis_tready && (ends || !last));

  always @(posedge clk) begin
    if (offers && m_axis_tready) end_reg <= !ends && last;
    if (rst) end_reg <= 1'b0;
  end

  assign event_stranger = valid_reg[4] && stranger_reg && last;
  assign busy = valid_reg != 4'd0 || open_reg;
  assign m_axis_tvalid = offers;
`ifdef AGG_PARENT
  assign parent_job = s_axis_tup[1+:JOB_BITS];
  assign event_up_dropped = valid_reg[4] && !stranger_reg && other_4_reg && last;
  assign m_axis_tup = up_4_reg[1+JOB_BITS];
  assign m_axis_tmask = up_4_reg[2+JOB_BITS+:64];
`endif
  assign m_axis_tdata = beat_4_reg[161+:8*BYTES];
  assign m_axis_tkeep = {BYTES{!(last && beat_4_reg[160])}};
  assign m_axis_tlast = ends;
  assign m_axis_theader = beat_4_reg[111:0];
`ifdef AGG_PARENT
  assign m_axis_tdest = dest_4_reg & {PORTS{!m_axis_tup}};
`else
  assign m_axis_tdest = dest_4_reg;
`endif

endmodule

`default_nettype wire
