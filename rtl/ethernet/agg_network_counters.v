// The counters of shell udp: 32 bits each, wrapping, in the order of the specification's table.
//
// Several Ethernet ports and several queues may have an event in one cycle, and each counts. Latency:
// an event in cycle 0 is in its count from cycle 3 on. A clear in cycle 0 removes the events up to
// that cycle, and the counts are 0 in cycle 3. The value of index is at value three cycles later;
// index must be stable meanwhile.

`default_nettype none

module agg_network_counters #(
    parameter integer ETHERNET = 1,  // Ethernet ports
    parameter integer QUEUES   = 1   // queues that may be full
) (
    input wire clk,
    input wire rst,
    input wire clear,

    input wire [  ETHERNET-1:0] drop_valid,   // a frame or a datagram was dropped
    input wire [4*ETHERNET-1:0] drop_reason,  // by agg_eth_judge's numbers
    input wire [  ETHERNET-1:0] stranger,     // a packet from a wrong address
    input wire                  lease,        // the owner lost the card by silence
    input wire [    QUEUES-1:0] dropped,      // no room
    input wire [  ETHERNET-1:0] passed,       // a frame leaves at this port for another host

    input  wire [ 4:0] index,
    output wire [31:0] value
);

  `include "znetwork.vh"

  // agg_eth_judge's reasons for datagrams. Those for frames are 1 to 12, in the order of the table.
  localparam [3:0] OFFSET = COUNT_FCS[3:0] - 4'd1;
  localparam [3:0] REASON_SHORT = 4'd13;
  localparam [3:0] REASON_DATAGRAM_CRC = 4'd14;

  localparam integer MOST = ETHERNET > QUEUES ? ETHERNET : QUEUES;  // events of a kind in a cycle
  localparam integer SUM_BITS = $clog2(MOST + 1);

  // -- First cycle: the events of each counter ----------------------------------------------------

  reg [MOST*NETWORK_COUNTERS-1:0] events_next, events_reg;
  integer c, p;

  always @* begin
    events_next = {MOST * NETWORK_COUNTERS{1'b0}};
    for (p = 0; p < ETHERNET; p = p + 1) begin
      for (c = COUNT_FCS; c < NETWORK_COUNTERS; c = c + 1) begin
        events_next[MOST*c+p] = drop_valid[p] && drop_reason[4*p+:4] + OFFSET == c[3:0];
      end
      events_next[MOST*COUNT_SHORT+p] = drop_valid[p] && drop_reason[4*p+:4] == REASON_SHORT;
      events_next[MOST*COUNT_DATAGRAM_CRC+p] =
          drop_valid[p] && drop_reason[4*p+:4] == REASON_DATAGRAM_CRC;
    end
    events_next[MOST*COUNT_STRANGER+:ETHERNET] = stranger;
    events_next[MOST*COUNT_LEASE]              = lease;
    events_next[MOST*COUNT_DROPPED+:QUEUES]    = dropped;
    events_next[MOST*COUNT_PASSED+:ETHERNET]   = passed;
  end

  // -- Second cycle: how many ---------------------------------------------------------------------

  function automatic [SUM_BITS-1:0] ones;
    input [MOST-1:0] events;
    integer b;
    begin
      ones = {SUM_BITS{1'b0}};
      for (b = 0; b < MOST; b = b + 1) ones = ones + {{SUM_BITS - 1{1'b0}}, events[b]};
    end
  endfunction

  reg [SUM_BITS*NETWORK_COUNTERS-1:0] sums_reg;
  reg [32*NETWORK_COUNTERS-1:0] counts_reg;
  reg [1:0] clear_reg;
  integer i;

  always @(posedge clk) begin
    events_reg <= events_next;
    clear_reg  <= {clear_reg[0] || rst, clear || rst};
    for (i = 0; i < NETWORK_COUNTERS; i = i + 1) begin
      sums_reg[SUM_BITS*i+:SUM_BITS] <= ones(events_reg[MOST*i+:MOST]);
      counts_reg[32*i+:32] <=
          counts_reg[32*i+:32] + {{32 - SUM_BITS{1'b0}}, sums_reg[SUM_BITS*i+:SUM_BITS]};
    end
    if (clear_reg[1]) counts_reg <= {32 * NETWORK_COUNTERS{1'b0}};
  end

  // -- Read ---------------------------------------------------------------------------------------

  // First the count of this place in each group of eight, then that of the group.
  localparam integer GROUPS = (NETWORK_COUNTERS + 7) / 8;

  wire [256*GROUPS-1:0] counts = {{256 * GROUPS - 32 * NETWORK_COUNTERS{1'b0}}, counts_reg};
  reg [32*GROUPS-1:0] group_reg;
  reg [31:0] value_reg;
  reg [4:0] index_reg;
  integer g;

  always @(posedge clk) begin
    index_reg <= index;
    for (g = 0; g < GROUPS; g = g + 1) begin
      group_reg[32*g+:32] <= counts[{g[1:0], index_reg[2:0], 5'd0}+:32];
    end
    value_reg <= group_reg[{index_reg[4:3], 5'd0}+:32];
  end

  assign value = value_reg;

endmodule

`default_nettype wire
