// The in-path switch: passes frames that are for others from each Ethernet port to the others, byte
// for byte, and learns behind which port each station is (NETWORK.md, section 7).
//
// Port p has bits p, and words p, of all vectors. s_axis and s_verdict are what agg_eth_receive of
// the port gets, and its verdict. m_axis are the frames that leave at the port: agg_eth_merge of
// the shell merges them with the card's own.
//
//   s_axis ─> agg_switch_input ─> agg_switch_store ─> agg_eth_merge ─> m_axis
//                    │                    ▲           of all ports, for each
//                    ▼                    └──────────────────┐
//             agg_switch_requests ─> agg_eth_merge ─> agg_switch_table
//
// Latency: a frame's first word is at m_axis 24 cycles after its last one was at s_axis, if nothing
// else waits. Outputs are registers. Throughput: a word a cycle from each port, and to each port; a
// frame of one word takes two. A frame that leaves at several ports is read once for each of them,
// so it takes as many times as long.
//
// A frame is dropped if the store of its port has no place, or if its request has none. The table
// serves a frame a cycle, of all ports, and frames for the card count. The shortest has 60 bytes:
// so 8 ports with words of 8 bytes never ask for more, nor do 16 with words of 1, or 2 with words
// of 64 that get a frame every other cycle. More ports can. After 16 frames of a port that wait,
// one that would pass is dropped, and the source of any other is not learned.
//
// A frame waits for those before it from the same port, also if these leave elsewhere. It waits for
// no other port's frames but at the port where it leaves, which takes turns by frame.
//
// Not done here: the frames for the card (agg_eth_receive), spanning trees.

`default_nettype none

module agg_eth_switch #(
    parameter integer PORTS = 2,
    parameter integer BYTES = 8,  // in a word: 1, 8 or 64
    parameter integer DEPTH_BITS = 12,  // log2 of the words in a port's store
    parameter integer FRAME_BITS = 7,  // log2 of the frames in a port's store
    parameter integer SET_BITS = 9,  // log2 of half of the addresses in the table
    parameter integer CLOCK_KHZ = 125000,
    parameter integer AGE_MS = 300000  // silence for which an address is kept, at least
) (
    input wire clk,
    input wire rst,

    // From the MACs, and the verdicts of agg_eth_receive
    input wire [        PORTS-1:0] s_axis_tvalid,
    input wire [8*BYTES*PORTS-1:0] s_axis_tdata,
    input wire [  BYTES*PORTS-1:0] s_axis_tkeep,
    input wire [        PORTS-1:0] s_axis_tlast,
    input wire [        PORTS-1:0] s_verdict_valid,
    input wire [      3*PORTS-1:0] s_verdict_kind,
    input wire [      4*PORTS-1:0] s_verdict_reason,

    // To the MACs
    output wire [        PORTS-1:0] m_axis_tvalid,
    input  wire [        PORTS-1:0] m_axis_tready,
    output wire [8*BYTES*PORTS-1:0] m_axis_tdata,
    output wire [  BYTES*PORTS-1:0] m_axis_tkeep,
    output wire [        PORTS-1:0] m_axis_tlast,

    // By the port where the frame came: it has left completely; it had no place
    output wire [PORTS-1:0] event_passed,
    output wire [PORTS-1:0] event_dropped
);

  localparam integer FRAME_BYTES = 9018;  // of the largest frame
  localparam integer DELAY = 9;  // of agg_eth_receive, from a frame's last word to its verdict
  localparam integer PORT_BITS = $clog2(PORTS);
  localparam integer REQUEST_BYTES = 13;  // both addresses, learn, pass and the port

  generate
    if (PORTS < 2 || PORTS > 16) begin : g_ports
      ERROR_a_switch_has_2_to_16_ports error ();
    end
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_word_has_1_8_or_64_bytes error ();
    end
    if (BYTES << DEPTH_BITS < 2 * FRAME_BYTES) begin : g_store
      ERROR_a_store_holds_two_of_the_largest_frames error ();
    end
  endgenerate

  // -- Each port's frames, up to the crossing -----------------------------------------------------

  wire [PORTS-1:0] request_valid, request_ready;
  wire [8*REQUEST_BYTES*PORTS-1:0] requests;
  wire [PORTS-1:0] answer_valid, answer_ports;

  // Words of each port, and where they go: port p's are in bits PORTS*p and up
  wire [PORTS-1:0] word_valid, word_ready, word_last;
  wire [8*BYTES*PORTS-1:0] word_data;
  wire [  BYTES*PORTS-1:0] word_keep;
  wire [  PORTS*PORTS-1:0] word_dest;
  wire [  PORTS*PORTS-1:0] taken;  // the same, by the port where the word leaves

  genvar i, o;
  generate
    for (i = 0; i < PORTS; i = i + 1) begin : g_port
      localparam [31:0] PORT = i;

      wire valid, last, pass, learn, room, kept;
      wire [8*BYTES-1:0] data;
      wire [  BYTES-1:0] keep;
      wire [47:0] to, from;
      wire ends = valid && last;
      reg  dropped_reg;

      agg_switch_input #(
          .BYTES(BYTES),
          .DELAY(DELAY)
      ) u_input (
          .clk             (clk),
          .rst             (rst),
          .s_axis_tvalid   (s_axis_tvalid[i]),
          .s_axis_tdata    (s_axis_tdata[8*BYTES*i+:8*BYTES]),
          .s_axis_tkeep    (s_axis_tkeep[BYTES*i+:BYTES]),
          .s_axis_tlast    (s_axis_tlast[i]),
          .s_verdict_valid (s_verdict_valid[i]),
          .s_verdict_kind  (s_verdict_kind[3*i+:3]),
          .s_verdict_reason(s_verdict_reason[4*i+:4]),
          .m_axis_tvalid   (valid),
          .m_axis_tdata    (data),
          .m_axis_tkeep    (keep),
          .m_axis_tlast    (last),
          .m_axis_pass     (pass),
          .m_axis_learn    (learn),
          .m_axis_to       (to),
          .m_axis_from     (from)
      );

      // A frame that has no place is learned from, too.
      agg_switch_requests #(
          .WIDTH(98)
      ) u_requests (
          .clk          (clk),
          .rst          (rst),
          .room         (room),
          .s_valid      (ends && (kept || learn)),
          .s_request    ({kept, learn, from, to}),
          .m_axis_tvalid(request_valid[i]),
          .m_axis_tready(request_ready[i]),
          .m_axis_tdata (requests[8*REQUEST_BYTES*i+:98])
      );
      assign requests[8*REQUEST_BYTES*i+98+:6] = PORT[5:0];

      agg_switch_store #(
          .PORTS     (PORTS),
          .BYTES     (BYTES),
          .DEPTH_BITS(DEPTH_BITS),
          .FRAME_BITS(FRAME_BITS)
      ) u_store (
          .clk          (clk),
          .rst          (rst),
          .s_axis_tvalid(valid),
          .s_axis_tdata (data),
          .s_axis_tkeep (keep),
          .s_axis_tlast (last),
          .keep         (pass && room),
          .kept         (kept),
          .s_ports_valid(answer_valid[i]),
          .s_ports      (answer_ports),
          .m_axis_tvalid(word_valid[i]),
          .m_axis_tready(word_ready[i]),
          .m_axis_tdata (word_data[8*BYTES*i+:8*BYTES]),
          .m_axis_tkeep (word_keep[BYTES*i+:BYTES]),
          .m_axis_tlast (word_last[i]),
          .m_axis_tdest (word_dest[PORTS*i+:PORTS]),
          .event_passed (event_passed[i])
      );

      always @(posedge clk) dropped_reg <= ends && pass && !kept && !rst;
      assign event_dropped[i] = dropped_reg;

      wire [PORTS-1:0] taken_at;
      for (o = 0; o < PORTS; o = o + 1) begin : g_taken
        assign taken_at[o] = taken[PORTS*o+i] && word_dest[PORTS*i+o];
      end
      assign word_ready[i] = |taken_at;
    end
  endgenerate

  // -- The table ----------------------------------------------------------------------------------

  wire request_passes, request_learns, table_valid;
  wire [47:0] table_from, table_to;
  wire [PORT_BITS-1:0] table_port;
  wire [5-PORT_BITS:0] unused_bits;
  wire [REQUEST_BYTES-1:0] unused_keep;
  wire unused_last;

  // A request is a frame of one word.
  agg_eth_merge #(
      .STREAMS(PORTS),
      .BYTES  (REQUEST_BYTES)
  ) u_turns (
      .clk(clk),
      .rst(rst),
      .s_axis_tdata(requests),
      .s_axis_tkeep({REQUEST_BYTES * PORTS{1'b1}}),
      .s_axis_tvalid(request_valid),
      .s_axis_tready(request_ready),
      .s_axis_tlast({PORTS{1'b1}}),
      .m_axis_tdata({
        unused_bits, table_port, request_passes, request_learns, table_from, table_to
      }),
      .m_axis_tkeep(unused_keep),
      .m_axis_tvalid(table_valid),
      .m_axis_tready(1'b1),
      .m_axis_tlast(unused_last)
  );

  agg_switch_table #(
      .PORTS    (PORTS),
      .PORT_BITS(PORT_BITS),
      .SET_BITS (SET_BITS),
      .CLOCK_KHZ(CLOCK_KHZ),
      .AGE_MS   (AGE_MS)
  ) u_table (
      .clk    (clk),
      .rst    (rst),
      .s_valid(table_valid),
      .s_learn(request_learns),
      .s_pass (request_passes),
      .s_from (table_from),
      .s_to   (table_to),
      .s_port (table_port),
      .m_valid(answer_valid),
      .m_ports(answer_ports)
  );

  // -- The crossing: frames of all ports, in turns, to each port ----------------------------------

  generate
    for (o = 0; o < PORTS; o = o + 1) begin : g_out
      wire [PORTS-1:0] offers;
      for (i = 0; i < PORTS; i = i + 1) begin : g_offer
        assign offers[i] = i != o && word_valid[i] && word_dest[PORTS*i+o];
      end

      agg_eth_merge #(
          .STREAMS(PORTS),
          .BYTES  (BYTES)
      ) u_merge (
          .clk          (clk),
          .rst          (rst),
          .s_axis_tdata (word_data),
          .s_axis_tkeep (word_keep),
          .s_axis_tvalid(offers),
          .s_axis_tready(taken[PORTS*o+:PORTS]),
          .s_axis_tlast (word_last),
          .m_axis_tdata (m_axis_tdata[8*BYTES*o+:8*BYTES]),
          .m_axis_tkeep (m_axis_tkeep[BYTES*o+:BYTES]),
          .m_axis_tvalid(m_axis_tvalid[o]),
          .m_axis_tready(m_axis_tready[o]),
          .m_axis_tlast (m_axis_tlast[o])
      );
    end
  endgenerate

endmodule

`default_nettype wire
