// One output port's packet queue: accepts whole packets at the core's rate, whatever the port's
// receiver does, so that no port waits for another.
//
// ready means that a packet of maximum size may start, even with beats of its predecessor still on
// their way (at most SLACK). An empty queue passes a beat through in the same cycle. Each beat has
// all its bytes or none, and is stored with its header.
//
// Not done here: backpressure. A packet that starts without ready is lost.

`default_nettype none

module agg_port_queue #(
    parameter integer BEAT_BITS  = 512,
    parameter integer USER_BITS  = 176,
    parameter integer BEATS      = 16,   // in the largest packet
    parameter integer DEPTH_BITS = 5     // log2 of the capacity, which is at least BEATS + SLACK
) (
    input wire clk,
    input wire rst,

    output wire ready,

    input wire                 s_axis_tvalid,
    input wire [BEAT_BITS-1:0] s_axis_tdata,
    input wire                 s_axis_tpayload,  // the beat has bytes
    input wire                 s_axis_tlast,
    input wire [USER_BITS-1:0] s_axis_tuser,

    output wire                   m_axis_tvalid,
    input  wire                   m_axis_tready,
    output wire [  BEAT_BITS-1:0] m_axis_tdata,
    output wire [BEAT_BITS/8-1:0] m_axis_tkeep,
    output wire                   m_axis_tlast,
    output wire [  USER_BITS-1:0] m_axis_tuser
);

  // A beat can be at s_axis, and ready is registered.
  localparam integer SLACK = 3;
  localparam integer WIDTH = USER_BITS + 2 + BEAT_BITS;
  localparam integer FULLEST = (1 << DEPTH_BITS) - BEATS - SLACK;  // still leaves that room

  generate
    if ((1 << DEPTH_BITS) < BEATS + SLACK) begin : g_depth
      ERROR_queue_must_hold_a_packet_and_its_slack error ();
    end
  endgenerate

  reg [WIDTH-1:0] beats[0:(1<<DEPTH_BITS)-1];
  reg [DEPTH_BITS:0] wr_reg;
  reg [DEPTH_BITS:0] rd_reg;
  reg ready_reg;

  wire [DEPTH_BITS:0] count = wr_reg - rd_reg;
  wire empty = count == {DEPTH_BITS + 1{1'b0}};
  wire [WIDTH-1:0] arrives = {s_axis_tuser, s_axis_tlast, s_axis_tpayload, s_axis_tdata};
  wire [WIDTH-1:0] leaves = empty ? arrives : beats[rd_reg[DEPTH_BITS-1:0]];
  wire payload;

  wire push = s_axis_tvalid && !(empty && m_axis_tready);
  wire pop = m_axis_tready && !empty;

  always @(posedge clk) begin
    if (push) beats[wr_reg[DEPTH_BITS-1:0]] <= arrives;
    if (push) wr_reg <= wr_reg + 1'b1;
    if (pop) rd_reg <= rd_reg + 1'b1;
    ready_reg <= count <= FULLEST[DEPTH_BITS:0];
    if (rst) begin
      wr_reg    <= {DEPTH_BITS + 1{1'b0}};
      rd_reg    <= {DEPTH_BITS + 1{1'b0}};
      ready_reg <= 1'b0;
    end
  end

  assign {m_axis_tuser, m_axis_tlast, payload, m_axis_tdata} = leaves;
  assign m_axis_tkeep                                        = {BEAT_BITS / 8{payload}};
  assign m_axis_tvalid                                       = s_axis_tvalid || !empty;
  assign ready                                               = ready_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th beat accepted is the n-th sent, whatever the receiver does. Numbers are modulo twice
  // the capacity; watched is any of them. begins: a packet of size beats starts for this port.
  (* anyconst *) reg [DEPTH_BITS:0] watched;
  (* anyseq *) reg begins;
  (* anyseq *) reg [DEPTH_BITS:0] size;
  reg was_reset = 1'b0;
  reg [DEPTH_BITS:0] came, left;
  reg [WIDTH-1:0] put;
  reg [31:0] expected;  // beats still to come of the packet that began
  reg waited;  // a beat at the output was not taken
  reg [WIDTH-1:0] stood;
  wire [DEPTH_BITS:0] waiting = came - left;
  wire watched_waits = watched - left < waiting;
  wire [WIDTH-1:0] out = {m_axis_tuser, m_axis_tlast, payload, m_axis_tdata};
  reg [DEPTH_BITS:0] waiting_was;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    came <= rst ? 0 : came + s_axis_tvalid;
    left <= rst ? 0 : left + (m_axis_tvalid && m_axis_tready);
    if (s_axis_tvalid && came == watched) put <= arrives;
    expected <= rst ? 0 : begins ? size : expected - s_axis_tvalid;
    waited <= !rst && m_axis_tvalid && !m_axis_tready;
    stood <= out;
    waiting_was <= rst ? {DEPTH_BITS + 1{1'b1}} : waiting;
  end

  always @* begin
    if (was_reset) begin
      // agg_egress starts a packet only for ready ports, when its predecessor's last beat has come
      // or is in this cycle, and sends only beats of packets it started.
      `PROMISED(!begins || (ready && expected == s_axis_tvalid && size >= 1 && size <= BEATS));
      `PROMISED(!s_axis_tvalid || expected != 0);

      assert (wr_reg - rd_reg == waiting);
      assert (waiting < 1 << DEPTH_BITS);  // no stored beat is overwritten
      assert (waiting + expected <= (1 << DEPTH_BITS) - 1 && expected <= BEATS);
      assert (!ready || (waiting_was <= FULLEST && waiting <= waiting_was + 1));
      assert (ready == (waiting_was <= FULLEST));

      if (watched_waits)
        assert (beats[rd_reg[DEPTH_BITS-1:0]+watched[DEPTH_BITS-1:0]-left[DEPTH_BITS-1:0]] == put);
      if (m_axis_tvalid && left == watched) assert (out == (watched_waits ? put : arrives));
      assert (m_axis_tvalid == (waiting != 0 || s_axis_tvalid));
      assert (m_axis_tkeep == {BEAT_BITS / 8{payload}});
      if (waited) assert (m_axis_tvalid && out == stood);

      cover (waiting > FULLEST && expected != 0);
      cover (waiting == 0 && s_axis_tvalid && m_axis_tready && left != 0);
    end
  end
`endif

endmodule

`default_nettype wire
