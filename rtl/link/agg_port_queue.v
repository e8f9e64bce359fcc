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
// Each beat has all its bytes or none; a packet without payload has one beat, which arrives with
// zero lanes, and leaves with them. The memory holds beats, to be block RAM; a packet's header is
// stored once, beside it.
//
// The way through the memory is long, and may cross a chip: it never stalls. Behind it, a small
// memory takes what comes, and the output reads that. A beat is fetched when the small memory has
// a place for it, whatever the receiver does in that cycle.
//
// Latency: a beat leaves an empty queue one cycle later. A stored beat can leave five cycles after
// it came: the output is empty only if all beats here came in the last four cycles. All outputs are
// registers. Throughput: a beat a cycle.
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
    input wire [BEAT_BITS-1:0] s_axis_tdata,     // zero if the beat has no bytes
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
  localparam integer LANDING_BITS = 4;  // log2 of the places in the small memory

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
  localparam [WIDE-1:0] ONE = 1;
  localparam [PACKET_BITS:0] PACKETS = {1'b1, {PACKET_BITS{1'b0}}};
  localparam [PACKET_BITS:0] TWO = 2;

  // -- Beats: memory, its output, a register after that, small memory, the output -----------------

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

  // It is never full: what is staged without being a beat may be written as well.
  (* ram_style = "distributed" *) reg [BEAT_BITS:0] landing[0:(1<<LANDING_BITS)-1];
  reg [LANDING_BITS-1:0] landing_wr_reg;
  reg [LANDING_BITS-1:0] landing_rd_reg;
  reg [LANDING_BITS-1:0] landing_after_reg;  // landing_rd_reg + 2
  reg landed_reg;  // it has a beat
  reg several_reg;  // it has two or more
  reg popped_reg;  // a beat has left it
  // Its places, without one, that no beat has here or on the way: late by a cycle
  reg [LANDING_BITS-1:0] places_reg;
  reg may_fetch_reg;  // there were four: three for beats that were not counted, and one more

  reg stored_reg;  // beats wait in the memory, or are behind it
  reg valid_reg;
  reg vacant_reg;  // !valid_reg, for the enable with the most load
  reg last_reg;
  reg payload_reg;
  reg [BEAT_BITS-1:0] data_reg;
  reg [USER_BITS-1:0] user_reg;

  wire fetch = waiting_reg && may_fetch_reg;
  wire held = valid_reg && !m_axis_tready;
  wire pop = landed_reg && !held;
  // Without stored beats, an arriving one leaves at once.
  wire comes = landed_reg || (s_axis_tvalid && !stored_reg);
  wire leave = comes && !held;
  wire [BEAT_BITS:0] landed = landing[landing_rd_reg];
  wire last = landed_reg ? landed[BEAT_BITS] : s_axis_tlast;

  // -- Headers ------------------------------------------------------------------------------------

  // With tpayload
  (* ram_style = "distributed" *) reg [USER_BITS:0] headers[0:(1<<PACKET_BITS)-1];
  reg [PACKET_BITS-1:0] header_wr_reg;
  reg [PACKET_BITS-1:0] header_rd_reg;
  reg opens_reg;  // the next beat to arrive is a packet's first
  reg begins_reg;  // the next beat to leave is a packet's first
  // begins_reg by itself: without a beat at the output, and with a packet's last one
  reg idle_reg;
  reg ends_reg;

  wire [USER_BITS:0] header_arrives = {s_axis_tpayload, s_axis_tuser};
  wire opens = idle_reg || (ends_reg && m_axis_tready);  // begins_reg && !held, without that load

  always @(posedge clk) begin
    // Every beat and header is stored. A beat that leaves at once is fetched in the next cycle, and
    // dropped: stored_reg is low then.
    if (s_axis_tvalid) begin
      beats[wr_reg] <= {s_axis_tlast, s_axis_tdata};
      wr_reg        <= wr_reg + 1'b1;
      opens_reg     <= s_axis_tlast;
    end
    if (s_axis_tvalid && opens_reg) begin
      headers[header_wr_reg] <= header_arrives;
      header_wr_reg          <= header_wr_reg + 1'b1;
    end
    waiting_reg <= s_axis_tvalid || (waiting_reg && !(may_fetch_reg && wr_reg == rd_after_reg));
    if (fetch) begin
      rd_reg       <= rd_after_reg;
      rd_after_reg <= rd_after_reg + 1'b1;
    end
    fetched_reg             <= beats[rd_reg];
    fetched_valid_reg       <= fetch && stored_reg;
    staged_reg              <= fetched_reg;
    staged_valid_reg        <= fetched_valid_reg;

    landing[landing_wr_reg] <= staged_reg;
    if (staged_valid_reg) landing_wr_reg <= landing_wr_reg + 1'b1;
    if (pop) begin
      landing_rd_reg    <= landing_rd_reg + 1'b1;
      landing_after_reg <= landing_after_reg + 1'b1;
    end
    landed_reg <= staged_valid_reg || (landed_reg && (held || several_reg));
    if (pop && !staged_valid_reg) several_reg <= several_reg && landing_wr_reg != landing_after_reg;
    if (staged_valid_reg && !pop) several_reg <= landed_reg;
    popped_reg <= pop;
    if (popped_reg != fetched_valid_reg)
      places_reg <= popped_reg ? places_reg + 1'b1 : places_reg - 1'b1;
    may_fetch_reg <= |places_reg[LANDING_BITS-1:2];

    if (stored_reg)
      stored_reg <= s_axis_tvalid || held || several_reg || waiting_reg || fetched_valid_reg ||
          staged_valid_reg;
    else stored_reg <= s_axis_tvalid && held;

    // What is loaded without leaving is not valid: stored_reg serves as well as landed_reg, which
    // has half the load then.
    if (vacant_reg || m_axis_tready) data_reg <= landed_reg ? landed[BEAT_BITS-1:0] : s_axis_tdata;
    if (opens) {payload_reg, user_reg} <= stored_reg ? headers[header_rd_reg] : header_arrives;
    if (leave && begins_reg) header_rd_reg <= header_rd_reg + 1'b1;
    valid_reg  <= comes || held;
    vacant_reg <= !comes && !held;
    if (!held) begin
      last_reg <= last;
      idle_reg <= !comes && begins_reg;
      ends_reg <= comes && last;
    end
    if (leave) begins_reg <= last;

    if (rst) begin
      wr_reg            <= {DEPTH_BITS{1'b0}};
      rd_reg            <= {DEPTH_BITS{1'b0}};
      rd_after_reg      <= {{DEPTH_BITS - 1{1'b0}}, 1'b1};
      waiting_reg       <= 1'b0;
      fetched_valid_reg <= 1'b0;
      staged_valid_reg  <= 1'b0;
      landing_wr_reg    <= {LANDING_BITS{1'b0}};
      landing_rd_reg    <= {LANDING_BITS{1'b0}};
      landing_after_reg <= {{LANDING_BITS - 2{1'b0}}, 2'd2};
      landed_reg        <= 1'b0;
      several_reg       <= 1'b0;
      popped_reg        <= 1'b0;
      places_reg        <= {LANDING_BITS{1'b1}};
      may_fetch_reg     <= 1'b1;
      stored_reg        <= 1'b0;
      header_wr_reg     <= {PACKET_BITS{1'b0}};
      header_rd_reg     <= {PACKET_BITS{1'b0}};
      opens_reg         <= 1'b1;
      begins_reg        <= 1'b1;
      idle_reg          <= 1'b1;
      ends_reg          <= 1'b0;
      valid_reg         <= 1'b0;
      vacant_reg        <= 1'b1;
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
  reg [WIDE-1:0] spare_start_reg;  // the same less those of a packet that starts
  reg left_reg;
  reg header_left_reg;  // with a packet's first beat
  reg [WIDE-1:0] rest_reg;  // places announced for beats after the next one of the arriving packet
  reg [WIDE-1:0] rest_start_reg;  // the same less those of a packet
  reg [PACKET_BITS:0] packets_reg;  // announced, until a cycle after their first beat left
  reg one_reg, two_reg;  // one and two in the last cycle, less a packet that started then
  reg ready_reg;

  wire [WIDE-1:0] spare = s_axis_tvalid && s_axis_tlast ? rest_reg : {WIDE{1'b0}};
  // Room for a packet, for two, and for three
  wire one = room_reg >= LARGEST && packets_reg < PACKETS;
  wire two = {1'b0, room_reg} >= {LARGEST, 1'b0} && packets_reg < PACKETS - 1'b1;
  wire three = {2'b0, room_reg} >= {2'b0, LARGEST} + {1'b0, LARGEST, 1'b0} &&
      packets_reg < PACKETS - TWO;
  wire returns = 1 << DEPTH_BITS < 4 * BEATS ? one_reg : two_reg;

  always @(posedge clk) begin
    spare_reg <= spare;
    spare_start_reg <= s_axis_tvalid && s_axis_tlast ? rest_start_reg : -LARGEST;
    left_reg <= leave;
    header_left_reg <= leave && begins_reg;
    room_reg <= room_reg + (start ? spare_start_reg : spare_reg) + {{WIDE - 1{1'b0}}, left_reg};
    if (s_axis_tvalid) begin
      rest_reg       <= s_axis_tlast ? LARGEST - 1'b1 : rest_reg - 1'b1;
      rest_start_reg <= s_axis_tlast ? -ONE : rest_start_reg - 1'b1;
    end
    if (start != header_left_reg) packets_reg <= start ? packets_reg + 1'b1 : packets_reg - 1'b1;
    one_reg   <= start ? two : one;
    two_reg   <= start ? three : two;
    ready_reg <= start ? two_reg : ready_reg ? one_reg : returns;
    if (rst) begin
      spare_reg       <= {WIDE{1'b0}};
      spare_start_reg <= -LARGEST;
      left_reg        <= 1'b0;
      header_left_reg <= 1'b0;
      room_reg        <= DEPTH;
      rest_reg        <= LARGEST - 1'b1;
      rest_start_reg  <= -ONE;
      packets_reg     <= {PACKET_BITS + 1{1'b0}};
      one_reg         <= 1'b0;
      two_reg         <= 1'b0;
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
  reg waited;  // a beat at the output was not taken
  reg [BEAT_BITS+BEAT_BITS/8+USER_BITS:0] stood;
  reg one_was, two_was, three_was, start_was, ready_was;
  reg one_reg_was, two_reg_was, returns_was;
  reg [2:0] quiet;  // cycles with nothing here or announced
  reg [LANDING_BITS-1:0] places_was;
  reg [3:0] recent;  // a beat came in the last cycle, and in those before
  wire [BEAT_BITS+BEAT_BITS/8+USER_BITS:0] out = {
    m_axis_tlast, m_axis_tkeep, m_axis_tuser, m_axis_tdata
  };
  wire [DEPTH_BITS+1:0] present = came - left;
  wire [DEPTH_BITS+1:0] ahead = watched - left;  // beats to send before the watched one
  wire watched_present = ahead < present;
  wire [DEPTH_BITS+1:0] behind = present - m_axis_tvalid;  // beats not at the output
  wire [LANDING_BITS-1:0] landed_count = landing_wr_reg - landing_rd_reg;
  wire [LANDING_BITS:0] below = landed_count + staged_valid_reg;
  wire [LANDING_BITS:0] fetched = below + fetched_valid_reg;  // beats not in the memory, nor out
  wire [DEPTH_BITS+1:0] in_memory = behind - fetched;
  wire dropping = waiting_reg && !stored_reg;  // a beat that left at once is still in the memory
  wire [WIDE+PACKET_BITS:0] announced = due * BEATS - arrived;  // places for beats to come

  always @(posedge clk) begin
    running_was <= was_reset && !rst;
    came <= came + s_axis_tvalid;
    left <= left + (m_axis_tvalid && m_axis_tready);
    if (s_axis_tvalid && opens_reg) arriving_header <= header_arrives;
    if (s_axis_tvalid && came == watched) begin
      put <= {s_axis_tlast, s_axis_tdata};
      put_header <= opens_reg ? header_arrives : arriving_header;
    end
    due <= due + start - (s_axis_tvalid && s_axis_tlast);
    if (s_axis_tvalid) arrived <= s_axis_tlast ? 0 : arrived + 1;
    waited <= m_axis_tvalid && !m_axis_tready;
    stood <= out;
    one_was <= one;
    two_was <= two;
    three_was <= three;
    one_reg_was <= one_reg;
    two_reg_was <= two_reg;
    returns_was <= returns;
    ready_was <= ready;
    start_was <= start;
    places_was <= places_reg;
    recent <= {recent[2:0], s_axis_tvalid};
    quiet <= due == 0 && present == 0 && !start ? quiet + (quiet != 4) : 0;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      recent <= 0;
      places_was <= {LANDING_BITS{1'b1}};
      left <= 0;
      due <= 0;
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

  wire [DEPTH_BITS-1:0] oldest = wr_reg - behind;  // stored beat
  wire [DEPTH_BITS-1:0] staged_place = oldest + landed_count;
  wire [DEPTH_BITS-1:0] fetched_place = oldest + below;

  always @* begin
    if (was_reset && staged_valid_reg) assert (staged_reg == beats[staged_place]);
    if (was_reset && fetched_valid_reg) assert (fetched_reg == beats[fetched_place]);
    at = 0;
    header_at = 0;
    header_of = 0;
    walked = begins_reg ? 0 : -1;
    if (was_reset) begin
      for (n = 0; n < 1 << DEPTH_BITS; n = n + 1)
      if (n < behind) begin
        header_at = header_rd_reg + walked;
        header_of = headers[header_at];
        if (walked < 0) header_of = {payload_reg, user_reg};
        // A beat's place in the memory is its own until it leaves.
        at = beats[oldest+n[DEPTH_BITS-1:0]];
        if (n < landed_count) assert (landing[landing_rd_reg+n[LANDING_BITS-1:0]] == at);
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
      assert (walked + due + header_left_reg == packets_reg);
      assert (header_wr_reg == header_rd_reg + walked[PACKET_BITS-1:0] + !opens_reg);
      // No stored header is overwritten.
      if (s_axis_tvalid && opens_reg) assert (walked < 1 << PACKET_BITS);
    end
  end

  always @* begin
    if (was_reset) begin
      // The core announces a packet only when ready, and sends beats of announced packets only: up
      // to BEATS, one for a packet without payload. That has zero lanes.
      `PROMISED(!start || ready);
      if (s_axis_tvalid) begin
        `PROMISED(due != 0);
        `PROMISED(s_axis_tlast || arrived + 1 < BEATS);
        `PROMISED(arrived == 0 ? s_axis_tlast || s_axis_tpayload : s_axis_tpayload);
        `PROMISED(s_axis_tpayload || s_axis_tdata == 0);
      end

      // No stored beat is overwritten, or read in the cycle of its write.
      if (s_axis_tvalid) assert (in_memory < 1 << DEPTH_BITS);
      if (s_axis_tvalid && fetch) assert (wr_reg != rd_reg);
      assert (fetched <= behind && fetched < 1 << LANDING_BITS);
      assert (landed_reg == (landed_count != 0) && several_reg == (landed_count >= 2));
      assert (landing_after_reg == landing_rd_reg + 2'd2);
      assert (places_reg + below + popped_reg == (1 << LANDING_BITS) - 1);
      assert (may_fetch_reg == (places_was >= 4));
      assert (places_reg <= places_was + 1 && places_was <= places_reg + 1);
      assert (stored_reg == (behind != 0) && vacant_reg == !valid_reg);
      assert (present <= (1 << DEPTH_BITS) + 1 && in_memory <= present);
      assert (behind + announced + room_reg + spare_reg + left_reg == 1 << DEPTH_BITS);
      assert (wr_reg == rd_reg + in_memory[DEPTH_BITS-1:0] + dropping);
      assert (waiting_reg == (in_memory != 0 || dropping));
      if (dropping) assert (may_fetch_reg && in_memory == 0 && recent[0]);
      assert (rd_after_reg == rd_reg + 1'b1);
      assert (spare_start_reg == spare_reg - LARGEST);
      assert (rest_start_reg == rest_reg - LARGEST);
      assert (due + header_left_reg <= packets_reg + !opens_reg && packets_reg <= 1 << PACKET_BITS);
      assert (arrived < BEATS && rest_reg == BEATS - 1 - arrived && opens_reg == (arrived == 0));
      assert (due != 0 || arrived == 0);
      if (behind == 0) assert (begins_reg == opens_reg);
      assert (idle_reg == (begins_reg && !valid_reg) && ends_reg == (begins_reg && valid_reg));
      if (behind == 0 && !opens_reg)
        assert (arriving_header == {payload_reg, user_reg} && payload_reg);
      if (!begins_reg) assert (payload_reg);
      if (m_axis_tvalid) assert (begins_reg == m_axis_tlast);

      // ready: room for one more packet besides those announced.
      if (ready) assert (room_reg >= BEATS && packets_reg < 1 << PACKET_BITS);
      if (one_reg) assert (one);
      if (two_reg) assert (one_reg && two);
      if (running_was) begin
        assert (one_reg == (start_was ? two_was : one_was));
        assert (two_reg == (start_was ? three_was : two_was));
        assert (ready == (start_was ? two_reg_was : ready_was ? one_reg_was : returns_was));
      end
      if (quiet != 0) assert (due == 0 && present == 0 && room_reg == 1 << DEPTH_BITS);
      if (quiet > 1) assert (one_reg && (two_reg || 1 << DEPTH_BITS < 4 * BEATS));
      if (quiet == 4) assert (ready && room_reg == 1 << DEPTH_BITS && packets_reg == 0);

      if (watched_present) assert (put_header[USER_BITS] || put[BEAT_BITS-1:0] == 0);
      if (watched_present && ahead < m_axis_tvalid) begin
        assert ({m_axis_tlast, m_axis_tuser} == {put[BEAT_BITS], put_header[USER_BITS-1:0]});
        assert (m_axis_tkeep == {BEAT_BITS / 8{put_header[USER_BITS]}});
        assert (m_axis_tdata == put[BEAT_BITS-1:0]);
      end
      // A beat leaves an empty queue in the next cycle. There is a beat at the output unless all
      // beats here came in the last four cycles. AXI4-Stream rules at the output.
      if (running_was && came_to_none) assert (m_axis_tvalid);
      // A beat waits in the memory while others are fetched only if these are many.
      if (fetched < 9) assert (in_memory <= recent[0]);
      if (fetched < 8) assert (in_memory + fetched_valid_reg <= recent[0] + recent[1]);
      if (fetched < 7) assert (behind <= recent[0] + recent[1] + recent[2] + landed_count);
      if (!m_axis_tvalid) assert (present <= recent[0] + recent[1] + recent[2] + recent[3]);
      if (waited) assert (m_axis_tvalid && out == stood);

      cover (!ready && due == 2 && behind == 0);
      cover (behind == 1 << DEPTH_BITS);
      cover (packets_reg == 1 << PACKET_BITS && left != 0);
      cover (came == 6 && !behind && m_axis_tvalid && due == 0 && !waited);
    end
  end

  reg came_to_none;
  always @(posedge clk) came_to_none <= s_axis_tvalid && present == 0;
`endif

endmodule

`default_nettype wire
