// Merges the replies to register accesses into the core's packets: a reply is a packet without
// payload, of one beat, for a port of its own behind those of the core.
//
// A reply goes next after the packet that is under way; a packet that is offered goes first. The
// reply is taken at its input when it has left for its address (reply_left): until then its sender,
// and the card's own address, are those of the access. tdata passes beside this module: a reply has
// none. Throughput: a beat a cycle, less one cycle around each reply.

`default_nettype none

module agg_reply_merge #(
    parameter integer PORTS = 4
) (
    input wire clk,
    input wire rst,

    input  wire         s_reply_valid,
    output wire         s_reply_ready,
    input  wire [175:0] s_reply_header,
    input  wire         reply_left,      // a pulse after it was taken at m_axis

    input  wire             s_axis_tvalid,
    output wire             s_axis_tready,
    input  wire             s_axis_tpayload,  // the beat has bytes
    input  wire             s_axis_tlast,
    input  wire [    239:0] s_axis_tuser,
    input  wire [PORTS-1:0] s_axis_tdest,

    output wire           m_axis_tvalid,
    input  wire           m_axis_tready,
    output wire           m_axis_tpayload,
    output wire           m_axis_tlast,
    output wire [  239:0] m_axis_tuser,
    output wire [PORTS:0] m_axis_tdest
);

  reg  open_reg;  // inside a packet of the core
  reg  reply_reg;  // a reply is offered
  reg  away_reg;  // it was taken, and has not left

  wire taken = s_axis_tvalid && s_axis_tready;
  wire between = s_axis_tvalid ? taken && s_axis_tlast : !open_reg;

  always @(posedge clk) begin
    if (taken) open_reg <= !s_axis_tlast;
    reply_reg <= reply_reg ? !m_axis_tready : s_reply_valid && !away_reg && between;
    away_reg  <= away_reg ? !reply_left : reply_reg && m_axis_tready;
    if (rst) begin
      open_reg  <= 1'b0;
      reply_reg <= 1'b0;
      away_reg  <= 1'b0;
    end
  end

  assign s_reply_ready   = away_reg && reply_left;
  assign s_axis_tready   = !reply_reg && m_axis_tready;
  assign m_axis_tvalid   = reply_reg || s_axis_tvalid;
  assign m_axis_tpayload = !reply_reg && s_axis_tpayload;
  assign m_axis_tlast    = reply_reg || s_axis_tlast;
  assign m_axis_tuser    = reply_reg ? {64'd0, s_reply_header} : s_axis_tuser;
  assign m_axis_tdest    = reply_reg ? {1'b1, {PORTS{1'b0}}} : {1'b0, s_axis_tdest};

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // AXI4-Stream; a packet of the core is not cut by a reply, and a reply leaves once.
  reg was_reset = 1'b0;
  reg waited, reply_waited, packet_waited, opened;
  reg [242+PORTS:0] stood;
  reg [175:0] reply_stood;
  reg [242+PORTS:0] packet_stood;
  wire [242+PORTS:0] out = {m_axis_tpayload, m_axis_tlast, m_axis_tuser, m_axis_tdest};
  wire [242+PORTS:0] in = {1'b0, s_axis_tpayload, s_axis_tlast, s_axis_tuser, s_axis_tdest};

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    waited <= !rst && m_axis_tvalid && !m_axis_tready;
    reply_waited <= !rst && s_reply_valid && !s_reply_ready;
    packet_waited <= !rst && s_axis_tvalid && !s_axis_tready;
    opened <= !rst && (taken ? !s_axis_tlast : opened);
    stood <= out;
    reply_stood <= s_reply_header;
    packet_stood <= in;
  end

  always @* begin
    if (was_reset) begin
      // agg_network_registers and agg_core: what is offered stays.
      if (reply_waited) `PROMISED(s_reply_valid && s_reply_header == reply_stood);
      if (packet_waited) `PROMISED(s_axis_tvalid && in == packet_stood);
      // agg_copy_address: only what was taken leaves.
      `PROMISED(!reply_left || away_reg);
      assert (open_reg == opened && !(reply_reg && opened) && !(reply_reg && away_reg));
      if (reply_reg || away_reg) assert (s_reply_valid && reply_waited);
      if (waited) assert (m_axis_tvalid && out == stood);
      assert ((m_axis_tvalid && m_axis_tready) == (reply_reg ? m_axis_tready : taken));
      cover (reply_reg && s_axis_tvalid && m_axis_tready);
    end
  end
`endif

endmodule

`default_nettype wire
