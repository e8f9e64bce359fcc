// One output port's packet queue: accepts whole packets at the core's rate, whatever the port's
// receiver does, so that no port waits for another.
//
// start announces a packet: its beats come later, in the order of the announcements, at any pace.
// ready means that a packet of maximum size may be announced. The cycle after a start, it accounts
// for that packet. A packet takes its maximum size from the announcement to its last beat, and its
// own size from then on; each beat that leaves frees its place. In a queue of four packets or more,
// ready returns with room for two packets: a port that drains is then ready for the next result as
// soon as the core has sent it one, and gets what it is owed in order.
//
// Each beat has all its bytes or none; a packet without payload has one beat, and leaves with zero
// lanes. The memory holds beats, to be block RAM; a packet's header is stored once, beside it.
//
// Latency: a beat leaves an empty queue two cycles later. All outputs are registers. Throughput: a
// beat a cycle.
//
// Not done here: backpressure. A packet that is announced without ready is lost.

`default_nettype none

module agg_port_queue #(
    parameter integer BEAT_BITS   = 512,
    parameter integer USER_BITS   = 176,
    parameter integer BEATS       = 16,   // in the largest packet
    parameter integer DEPTH_BITS  = 5,    // log2 of the beats in the memory, at least BEATS
    parameter integer PACKET_BITS = 4     // log2 of the packets here or announced
) (
    input wire clk,
    input wire rst,

    input  wire start,
    output wire ready,

    input wire                 s_axis_tvalid,
    input wire [BEAT_BITS-1:0] s_axis_tdata,
    input wire                 s_axis_tpayload,  // the beat has bytes
    input wire                 s_axis_tlast,
    input wire [USER_BITS-1:0] s_axis_tuser,     // header, on a packet's first beat

    output wire                   m_axis_tvalid,
    input  wire                   m_axis_tready,
    output wire [  BEAT_BITS-1:0] m_axis_tdata,
    output wire [BEAT_BITS/8-1:0] m_axis_tkeep,
    output wire                   m_axis_tlast,
    output wire [  USER_BITS-1:0] m_axis_tuser    // header, stable during a packet
);

  localparam integer WIDE = DEPTH_BITS + 1;  // width of a count up to the depth

  generate
    if ((1 << DEPTH_BITS) < BEATS) begin : g_depth
      ERROR_queue_must_hold_a_packet error ();
    end
    if (PACKET_BITS < 1) begin : g_packets
      ERROR_queue_must_hold_two_packets error ();
    end
  endgenerate

  localparam [WIDE-1:0] DEPTH = {1'b1, {DEPTH_BITS{1'b0}}};
  localparam [WIDE-1:0] LARGEST = BEATS[WIDE-1:0];
  localparam [PACKET_BITS:0] PACKETS = {1'b1, {PACKET_BITS{1'b0}}};

  // -- Input --------------------------------------------------------------------------------------

  reg arrives_reg, in_last_reg, in_payload_reg;
  reg [BEAT_BITS-1:0] in_data_reg;
  reg [USER_BITS-1:0] in_user_reg;

  always @(posedge clk) begin
    arrives_reg    <= s_axis_tvalid && !rst;
    in_last_reg    <= s_axis_tlast;
    in_payload_reg <= s_axis_tpayload;
    in_data_reg    <= s_axis_tpayload ? s_axis_tdata : {BEAT_BITS{1'b0}};
    in_user_reg    <= s_axis_tuser;
  end

  // -- Beats: memory, its output, a register after that, the output --------------------------------

  // With tlast. No beat is read in the cycle of its write: block RAM needs no logic for that case.
  (* no_rw_check *) reg [BEAT_BITS:0] beats[0:(1<<DEPTH_BITS)-1];
  reg [DEPTH_BITS-1:0] wr_reg;
  reg [DEPTH_BITS-1:0] rd_reg;
  reg [DEPTH_BITS-1:0] rd_after_reg;  // rd_reg + 1
  reg waiting_reg;  // beats wait in the memory
  reg [BEAT_BITS:0] fetched_reg;
  reg fetched_valid_reg;
  reg [BEAT_BITS:0] staged_reg;  // a block RAM is slow: nothing is between it and this register
  reg staged_valid_reg;

  reg valid_reg;
  reg last_reg;
  reg payload_reg;
  reg [BEAT_BITS-1:0] data_reg;
  reg [USER_BITS-1:0] user_reg;

  wire free = !valid_reg || m_axis_tready;
  wire stored = waiting_reg || fetched_valid_reg || staged_valid_reg;
  wire push = arrives_reg && (stored || !free);
  wire stage = !staged_valid_reg || free;
  wire fetch = waiting_reg && (!fetched_valid_reg || stage);
  // Without stored beats, an arriving one leaves at once.
  wire leave = free && (staged_valid_reg || (arrives_reg && !stored));
  wire last = staged_valid_reg ? staged_reg[BEAT_BITS] : in_last_reg;

  // -- Headers ------------------------------------------------------------------------------------

  reg [USER_BITS:0] headers[0:(1<<PACKET_BITS)-1];  // with tpayload
  reg [PACKET_BITS-1:0] header_wr_reg;
  reg [PACKET_BITS-1:0] header_rd_reg;
  reg opens_reg;  // the next beat to arrive is a packet's first
  reg begins_reg;  // the next beat to leave is a packet's first

  wire [USER_BITS:0] header_arrives = {in_payload_reg, in_user_reg};
  wire [USER_BITS:0] header = staged_valid_reg ? headers[header_rd_reg] : header_arrives;

  always @(posedge clk) begin
    if (push) beats[wr_reg] <= {in_last_reg, in_data_reg};
    if (fetch) fetched_reg <= beats[rd_reg];
    if (push) wr_reg <= wr_reg + 1'b1;
    if (fetch) begin
      rd_reg       <= rd_after_reg;
      rd_after_reg <= rd_after_reg + 1'b1;
    end
    if (push) waiting_reg <= 1'b1;
    else if (fetch) waiting_reg <= wr_reg != rd_after_reg;
    if (fetch) fetched_valid_reg <= 1'b1;
    else if (stage) fetched_valid_reg <= 1'b0;
    if (stage) begin
      staged_reg       <= fetched_reg;
      staged_valid_reg <= fetched_valid_reg;
    end

    if (push && opens_reg) begin
      headers[header_wr_reg] <= header_arrives;
      header_wr_reg          <= header_wr_reg + 1'b1;
    end
    if (arrives_reg) opens_reg <= in_last_reg;

    if (free) valid_reg <= leave;
    if (free) begin
      data_reg <= staged_valid_reg ? staged_reg[BEAT_BITS-1:0] : in_data_reg;
      last_reg <= last;
    end
    if (leave) begin
      if (begins_reg) begin
        user_reg    <= header[USER_BITS-1:0];
        payload_reg <= header[USER_BITS];
        if (staged_valid_reg) header_rd_reg <= header_rd_reg + 1'b1;
      end
      begins_reg <= last;
    end
    if (rst) begin
      wr_reg            <= {DEPTH_BITS{1'b0}};
      rd_reg            <= {DEPTH_BITS{1'b0}};
      rd_after_reg      <= {{DEPTH_BITS - 1{1'b0}}, 1'b1};
      waiting_reg       <= 1'b0;
      fetched_valid_reg <= 1'b0;
      staged_valid_reg  <= 1'b0;
      header_wr_reg     <= {PACKET_BITS{1'b0}};
      header_rd_reg     <= {PACKET_BITS{1'b0}};
      opens_reg         <= 1'b1;
      begins_reg        <= 1'b1;
      valid_reg         <= 1'b0;
    end
  end

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = {BEAT_BITS / 8{payload_reg}};
  assign m_axis_tlast  = last_reg;
  assign m_axis_tuser  = user_reg;

  // -- Room ---------------------------------------------------------------------------------------

  reg [WIDE-1:0] room_reg;  // places that no packet has
  // To be added to it: places that a packet did not need, and that of a beat that left
  reg [WIDE-1:0] spare_reg;
  reg left_reg;
  reg header_left_reg;  // with a packet's first beat
  reg [WIDE-1:0] rest_reg;  // places announced for the beats to come of the arriving packet
  reg [PACKET_BITS:0] packets_reg;  // announced, until a cycle after their first beat left
  reg ready_reg;

  // Room for a packet, and for one more
  wire one = room_reg >= LARGEST && packets_reg < PACKETS;
  wire two = {1'b0, room_reg} >= {LARGEST, 1'b0} && packets_reg < PACKETS - 1'b1;
  wire returns = 1 << DEPTH_BITS < 4 * BEATS ? one : two;

  always @(posedge clk) begin
    spare_reg <= arrives_reg && in_last_reg ? rest_reg - 1'b1 : {WIDE{1'b0}};
    left_reg <= leave;
    header_left_reg <= leave && begins_reg;
    room_reg <= (start ? room_reg - LARGEST : room_reg) + spare_reg + {{WIDE - 1{1'b0}}, left_reg};
    if (arrives_reg) rest_reg <= in_last_reg ? LARGEST : rest_reg - 1'b1;
    if (start != header_left_reg) packets_reg <= start ? packets_reg + 1'b1 : packets_reg - 1'b1;
    ready_reg <= start ? two : ready_reg ? one : returns;
    if (rst) begin
      spare_reg       <= {WIDE{1'b0}};
      left_reg        <= 1'b0;
      header_left_reg <= 1'b0;
      room_reg        <= DEPTH;
      rest_reg        <= LARGEST;
      packets_reg     <= {PACKET_BITS + 1{1'b0}};
      ready_reg       <= 1'b0;
    end
  end

  assign ready = ready_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th beat accepted is the n-th sent, with its packet's header, whatever the receiver does.
  // Numbers are modulo four times the capacity; watched is any of them.
  (* anyconst *) reg [DEPTH_BITS+1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg [DEPTH_BITS+1:0] came, left;
  reg [BEAT_BITS:0] put;
  reg [USER_BITS:0] put_header, arriving_header;
  reg [PACKET_BITS:0] due;  // packets announced, and their last beat has not come
  reg [WIDE-1:0] arrived;  // beats of the arriving packet
  reg [PACKET_BITS:0] in_due;  // the same at the input
  reg [WIDE-1:0] in_arrived;
  reg waited;  // a beat at the output was not taken
  reg [BEAT_BITS+BEAT_BITS/8+USER_BITS:0] stood;
  reg one_was, two_was, returns_was, start_was, ready_was;
  reg [1:0] quiet;  // cycles with nothing here or announced
  wire [BEAT_BITS+BEAT_BITS/8+USER_BITS:0] out = {
    m_axis_tlast, m_axis_tkeep, m_axis_tuser, m_axis_tdata
  };
  wire [DEPTH_BITS+1:0] present = came - left;
  wire [DEPTH_BITS+1:0] ahead = watched - left;  // beats to send before the watched one
  wire watched_present = ahead < present;
  wire [DEPTH_BITS+1:0] behind = present - m_axis_tvalid;  // beats not at the output
  wire [DEPTH_BITS+1:0] in_memory = behind - fetched_valid_reg - staged_valid_reg;
  wire [WIDE+PACKET_BITS:0] announced = due * BEATS - arrived;  // places for beats to come

  always @(posedge clk) begin
    running_was <= was_reset && !rst;
    came <= came + arrives_reg;
    left <= left + (m_axis_tvalid && m_axis_tready);
    if (arrives_reg && opens_reg) arriving_header <= header_arrives;
    if (arrives_reg && came == watched) begin
      put <= {in_last_reg, in_data_reg};
      put_header <= opens_reg ? header_arrives : arriving_header;
    end
    due <= due + start - (arrives_reg && in_last_reg);
    in_due <= in_due + start - (s_axis_tvalid && s_axis_tlast);
    if (s_axis_tvalid) in_arrived <= s_axis_tlast ? 0 : in_arrived + 1;
    if (arrives_reg) arrived <= in_last_reg ? 0 : arrived + 1;
    waited <= m_axis_tvalid && !m_axis_tready;
    stood <= out;
    one_was <= one;
    two_was <= two;
    returns_was <= returns;
    ready_was <= ready;
    start_was <= start;
    quiet <= due == 0 && present == 0 && !start ? quiet + (quiet != 3) : 0;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      left <= 0;
      due <= 0;
      in_due <= 0;
      in_arrived <= 0;
      arrived <= 0;
      waited <= 1'b0;
      quiet <= 0;
    end
  end

  // The stored beats and their headers. walked counts packets from the oldest stored header: -1 is
  // the header at the output.
  integer n;
  reg [BEAT_BITS:0] at;
  reg signed [PACKET_BITS+2:0] walked;
  reg [PACKET_BITS-1:0] header_at;
  reg [USER_BITS:0] header_of;

  always @* begin
    at = 0;
    header_at = 0;
    header_of = 0;
    walked = begins_reg ? 0 : -1;
    if (was_reset) begin
      for (n = 0; n < 1 << DEPTH_BITS; n = n + 1)
      if (n < behind) begin
        header_at = header_rd_reg + walked;
        header_of = walked < 0 ? {payload_reg, user_reg} : headers[header_at];
        at = beats[rd_reg+n[DEPTH_BITS-1:0]-fetched_valid_reg-staged_valid_reg];
        if (n == staged_valid_reg && fetched_valid_reg) at = fetched_reg;
        if (n == 0 && staged_valid_reg) at = staged_reg;
        if (watched_present && ahead == n + m_axis_tvalid)
          assert (at == put && header_of == put_header);
        // A packet without payload is one beat.
        if (n + 1 < behind || opens_reg)
          assert (header_of[USER_BITS] || (walked >= 0 && at[BEAT_BITS]));
          else assert (header_of == arriving_header && header_of[USER_BITS] && !at[BEAT_BITS]);
        if (n + 1 == behind) assert (opens_reg == at[BEAT_BITS]);
        walked = walked + at[BEAT_BITS];
      end
      // walked is now the number of stored headers, without that of a packet still arriving.
      assert (header_wr_reg == header_rd_reg + walked[PACKET_BITS-1:0] + !opens_reg);
      assert (walked + due + header_left_reg == packets_reg);
    end
  end

  always @* begin
    if (was_reset) begin
      // The core announces a packet only when ready, and sends beats of announced packets only: up
      // to BEATS, one for a packet without payload.
      `PROMISED(!start || ready);
      `PROMISED(!s_axis_tvalid || in_due != 0);
      if (s_axis_tvalid) begin
        `PROMISED(s_axis_tlast || in_arrived + 1 < BEATS);
        `PROMISED(in_arrived == 0 ? s_axis_tlast || s_axis_tpayload : s_axis_tpayload);
      end
      assert (due == in_due + (arrives_reg && in_last_reg));
      assert (in_arrived == (!arrives_reg ? arrived : in_last_reg ? 0 : arrived + 1));
      if (arrives_reg) assert (due != 0 && (in_last_reg || arrived + 1 < BEATS));
      if (arrives_reg) assert (opens_reg ? in_last_reg || in_payload_reg : in_payload_reg);
      if (arrives_reg && !in_payload_reg) assert (in_data_reg == 0);

      // No stored beat and no stored header is overwritten, or read in the cycle of its write.
      if (push && fetch) assert (wr_reg != rd_reg);
      assert (present <= (1 << DEPTH_BITS) + 1 && in_memory <= present);
      assert (behind + announced + room_reg + spare_reg + left_reg == 1 << DEPTH_BITS);
      assert (wr_reg == rd_reg + in_memory[DEPTH_BITS-1:0] && waiting_reg == (in_memory != 0));
      assert (rd_after_reg == rd_reg + 1'b1);
      assert (due + header_left_reg <= packets_reg + !opens_reg && packets_reg <= 1 << PACKET_BITS);
      assert (arrived < BEATS && rest_reg == BEATS - arrived && opens_reg == (arrived == 0));
      assert (due != 0 || arrived == 0);
      if (behind == 0) assert (begins_reg == opens_reg);
      if (behind == 0 && !opens_reg)
        assert (arriving_header == {payload_reg, user_reg} && payload_reg);
      if (!begins_reg) assert (payload_reg);
      if (m_axis_tvalid) assert (begins_reg == m_axis_tlast);

      // ready: room for one more packet besides those announced.
      if (ready) assert (room_reg >= BEATS && packets_reg < 1 << PACKET_BITS);
      if (running_was) assert (ready == (start_was ? two_was : ready_was ? one_was : returns_was));
      assert (!two || one);
      if (quiet == 3) assert (ready && room_reg == 1 << DEPTH_BITS && packets_reg == 0);

      if (watched_present) assert (put_header[USER_BITS] || put[BEAT_BITS-1:0] == 0);
      if (watched_present && ahead < m_axis_tvalid) begin
        assert ({m_axis_tlast, m_axis_tuser} == {put[BEAT_BITS], put_header[USER_BITS-1:0]});
        assert (m_axis_tkeep == {BEAT_BITS / 8{put_header[USER_BITS]}});
        assert (m_axis_tdata == put[BEAT_BITS-1:0]);
      end
      // A beat leaves an empty queue in the next cycle. A stored beat is at most two cycles late,
      // when the receiver resumes. AXI4-Stream rules at the output.
      if (running_was && came_to_none) assert (m_axis_tvalid);
      if (!m_axis_tvalid && behind != 0)
        assert (staged_valid_reg || (fetched_valid_reg && !lacking));
      if (waited) assert (m_axis_tvalid && out == stood);

      cover (!ready && due == 2 && behind == 0);
      cover (behind == 1 << DEPTH_BITS);
      cover (packets_reg == 1 << PACKET_BITS && left != 0);
      cover (came == 6 && !behind && m_axis_tvalid && due == 0 && !waited);
    end
  end

  reg came_to_none, lacking;  // lacking: beats were stored, and none was at the output
  always @(posedge clk) begin
    came_to_none <= arrives_reg && present == 0;
    lacking      <= !rst && !m_axis_tvalid && behind != 0;
  end
`endif

endmodule

`default_nettype wire
