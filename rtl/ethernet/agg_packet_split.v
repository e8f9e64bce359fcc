// Shows the core's packets, and replies, to the Ethernet ports behind which their receivers are: one
// agg_datagram_steps and one agg_datagram_sums serve the agg_datagram_store of every port.
//
// A packet's receivers are its destination ports of the core, which are behind the Ethernet ports
// that the address table says (behind: for each Ethernet port, for each job, a bit for each port of
// the core), or the sender of an access. A store gets a packet only if a receiver is there. All
// signals of steps and sums pass in the same cycle, or do not pass.
//
// DELAY is the latency of agg_datagram_sums. Ethernet port 0, and job 0, have the lowest bits.

`default_nettype none

module agg_packet_split #(
    parameter integer PORTS    = 4,
    parameter integer ETHERNET = 2,
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1,
    parameter integer DELAY    = 6
) (
    input wire clk,
    input wire rst,

    input wire [ETHERNET*JOBS*PORTS-1:0] behind,
    input wire [                    7:0] reply_ethernet, // of the access that a reply answers

    // The packet whose steps are taken
    input wire [     PORTS:0] s_dest,  // the highest bit: a reply
    input wire [JOB_BITS-1:0] s_job,

    // From agg_datagram_steps and agg_datagram_sums
    input wire takes_first,
    input wire takes_word,
    input wire s_word_valid,  // one cycle later, as s_last
    input wire s_last,
    input wire s_sums_valid,

    // The same for each store
    output wire [(PORTS+1)*ETHERNET-1:0] m_dest,
    output wire [          ETHERNET-1:0] m_takes_first,
    output wire [          ETHERNET-1:0] m_takes_word,
    output wire [          ETHERNET-1:0] m_word_valid,
    output wire [          ETHERNET-1:0] m_last,
    output wire [          ETHERNET-1:0] m_sums_valid
);

  wire [JOB_BITS-1:0] job = JOBS == 1 ? {JOB_BITS{1'b0}} : s_job;
  wire [ETHERNET-1:0] receives;  // of the packet that begins
  reg  [ETHERNET-1:0] now_reg;  // of the one whose step was taken last
  wire [ETHERNET-1:0] then;  // of the one whose checks come

  genvar e;
  generate
    for (e = 0; e < ETHERNET; e = e + 1) begin : g_ethernet
      wire [JOBS*PORTS-1:0] here = behind[JOBS*PORTS*e+:JOBS*PORTS];
      wire reply = s_dest[PORTS] && {24'd0, reply_ethernet} == e;
      wire [PORTS:0] dest = {reply, s_dest[PORTS-1:0] & here[PORTS*job+:PORTS]};
      assign m_dest[(PORTS+1)*e+:PORTS+1] = dest;
      assign receives[e] = dest != {PORTS + 1{1'b0}};
    end
  endgenerate

  always @(posedge clk) begin
    if (takes_first) now_reg <= receives;
    if (rst) now_reg <= {ETHERNET{1'b0}};
  end

  agg_delay #(
      .WIDTH (ETHERNET),
      .CYCLES(DELAY)
  ) u_then (
      .clk(clk),
      .d  (now_reg),
      .q  (then)
  );

  assign m_takes_first = receives & {ETHERNET{takes_first}};
  assign m_takes_word  = now_reg & {ETHERNET{takes_word}};
  assign m_word_valid  = now_reg & {ETHERNET{s_word_valid}};
  assign m_last        = now_reg & {ETHERNET{s_last}};
  assign m_sums_valid  = then & {ETHERNET{s_sums_valid}};

endmodule

`default_nettype wire
