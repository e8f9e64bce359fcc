// Says when the core's packets have left from all Ethernet ports, in the order in which they came to
// agg_packet_split.
//
// A packet is noted with the ports that it goes to. left is a pulse for each port when its store has
// sent the last copy; each store sends in order. all_left is a pulse for each packet, the oldest
// first, when all of its ports are done with it: at the earliest two cycles after the last left, or
// after a packet without a port came.
//
// room is high while three more packets have a place. Not done here: replies, which are no packets of
// the core.

`default_nettype none

module agg_packet_order #(
    parameter integer ETHERNET   = 2,
    parameter integer QUEUE_BITS = 6   // log2 of the packets
) (
    input wire clk,
    input wire rst,

    output wire                room,
    input  wire                come,  // a packet
    input  wire [ETHERNET-1:0] ports, // where it goes

    input  wire [ETHERNET-1:0] left,
    output wire                all_left
);

  (* ram_style = "distributed" *) reg [ETHERNET-1:0] packets[0:(1<<QUEUE_BITS)-1];
  reg [QUEUE_BITS-1:0] wr_reg;
  reg [QUEUE_BITS-1:0] rd_reg;
  reg [QUEUE_BITS*ETHERNET-1:0] done_reg;  // packets that each port is ahead of the oldest one
  reg valid_reg;
  reg [ETHERNET-1:0] head_reg;
  reg left_reg;
  reg room_reg;

  localparam [QUEUE_BITS-1:0] MOST = {QUEUE_BITS{1'b1}} - 3;

  wire [QUEUE_BITS-1:0] here = wr_reg - rd_reg;
  reg  [  ETHERNET-1:0] ahead;
  integer a, e;  // loops

  always @* begin
    for (a = 0; a < ETHERNET; a = a + 1)
    ahead[a] = done_reg[QUEUE_BITS*a+:QUEUE_BITS] != {QUEUE_BITS{1'b0}};
  end

  wire leaves = valid_reg && (head_reg & ~ahead) == {ETHERNET{1'b0}};
  wire load = rd_reg != wr_reg && (!valid_reg || leaves);

  always @(posedge clk) begin
    if (come) begin
      packets[wr_reg] <= ports;
      wr_reg          <= wr_reg + 1'b1;
    end
    if (load) begin
      head_reg <= packets[rd_reg];
      rd_reg   <= rd_reg + 1'b1;
    end
    valid_reg <= load || (valid_reg && !leaves);
    left_reg  <= leaves;
    room_reg  <= here < MOST;
    for (e = 0; e < ETHERNET; e = e + 1) begin
      if (left[e] != (leaves && head_reg[e]))
        done_reg[QUEUE_BITS*e+:QUEUE_BITS] <= left[e] ? done_reg[QUEUE_BITS*e+:QUEUE_BITS] + 1'b1 :
            done_reg[QUEUE_BITS*e+:QUEUE_BITS] - 1'b1;
    end
    if (rst) begin
      wr_reg    <= {QUEUE_BITS{1'b0}};
      rd_reg    <= {QUEUE_BITS{1'b0}};
      done_reg  <= {QUEUE_BITS * ETHERNET{1'b0}};
      valid_reg <= 1'b0;
      left_reg  <= 1'b0;
      room_reg  <= 1'b0;
    end
  end

  assign room = room_reg;
  assign all_left = left_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // A queue of its own: the packets that have not left everywhere, and how many each port is ahead.
  reg was_reset = 1'b0;
  reg [ETHERNET-1:0] its_ports[0:(1<<QUEUE_BITS)-1];
  reg [QUEUE_BITS:0] came, gone;
  reg [QUEUE_BITS:0] sent[0:ETHERNET-1];  // packets that a port has sent
  reg [QUEUE_BITS:0] given[0:ETHERNET-1];  // packets that came for it
  reg [QUEUE_BITS:0] counted[0:ETHERNET-1];  // those of them that are gone
  reg [1:0] ready;  // cycles for which the oldest packet could have gone
  wire [QUEUE_BITS:0] present = came - gone;
  wire [ETHERNET-1:0] oldest = its_ports[gone[QUEUE_BITS-1:0]];
  reg [ETHERNET-1:0] done;
  integer n;

  always @* begin
    for (n = 0; n < ETHERNET; n = n + 1) done[n] = sent[n] != counted[n];
  end

  wire complete = present != 0 && (oldest & ~done) == 0;

  always @(posedge clk) begin
    if (come) its_ports[came[QUEUE_BITS-1:0]] <= ports;
    came  <= came + come;
    gone  <= gone + all_left;
    ready <= complete && !all_left ? ready + (ready != 3) : 0;
    for (n = 0; n < ETHERNET; n = n + 1) begin
      sent[n]    <= sent[n] + left[n];
      given[n]   <= given[n] + (come && ports[n]);
      counted[n] <= counted[n] + (all_left && oldest[n]);
    end
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      gone <= 0;
      ready <= 0;
      for (n = 0; n < ETHERNET; n = n + 1) begin
        sent[n]    <= 0;
        given[n]   <= 0;
        counted[n] <= 0;
      end
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      // agg_datagram_steps: a packet comes with room in the last cycle, and the next is a step behind.
      `PROMISED(!come || present < (1 << QUEUE_BITS) - 1);
      // agg_datagram_store: only what came leaves.
      for (n = 0; n < ETHERNET; n = n + 1) `PROMISED(!left[n] || given[n] != sent[n]);
      // A packet is gone when all its ports have sent it, in order, and within three cycles.
      if (all_left) assert (complete);
      assert (ready != 3);
      cover (all_left && present == 2);
    end
  end
`endif

endmodule

`default_nettype wire
