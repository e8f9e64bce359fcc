// Judges a frame from its first 64 bytes, its size and its checksums. The first check that fails
// decides, in this order:
//
//   DROP   fcs            the MAC found the frame bad
//          runt           less than 60 bytes
//          oversize       more bytes than the largest frame
//   OTHER                 for another MAC address: neither ours nor, for ARP, broadcast
//   ARP                   a request for our address
//   OTHER                 ARP to all, about others
//   IGNORED               for our MAC address, but neither IPv4 nor such a request: other ARP, VLAN
//                         tags and IPv6, too
//   DROP   ip_header      not version 4 with a header of 5 words
//          ip_checksum    of the header
//          fragment       of a larger packet
//          ip_length      more bytes than the frame has, or less than 28
//          ip_address     not ours
//          protocol       neither UDP nor an ICMP echo request
//          udp_length     not that of the IP packet's data
//          checksum       of UDP or ICMP; UDP without one
//   ECHO                  an ICMP echo request
//   DROP   udp_port       not ours
//          short          a datagram of less than 18 bytes
//          datagram_crc   its CRC-32C
//   DATAGRAM
//
// reason is 0 unless kind is DROP. The numbers are the parameters below.
//
// Times are counted from the cycle of the frame's last beat, which is 0. The inputs are taken in
// cycles 2 (head), 4 (end_*) and 8 (*_good), and the verdict is there in cycle 9. Throughput: a
// verdict a cycle.
//
`ifdef AGG_PARENT
// The upward UDP port of a running tree job is ours as well. m_verdict_up marks a frame to another
// port than own_port, and up_job is the job whose port it is.
//
`endif
// Not done here: anything that depends on the aggregation header.

`default_nettype none

`ifdef AGG_PARENT
module agg_eth_judge #(
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1
) (
`else
module agg_eth_judge (
`endif
    input wire clk,
    input wire rst,

    // The card: first byte of an address highest
    input wire [47:0] own_mac,
    input wire [31:0] own_ip,
    input wire [15:0] own_port,
`ifdef AGG_PARENT

    // Upward UDP ports, job 0 in the lowest bits
    input wire [   JOBS-1:0] up_runs,   // a tree job that is set up
    input wire [16*JOBS-1:0] up_ports,
`endif

    input wire [511:0] head,  // the frame's first 64 bytes, the first lowest

    input wire end_valid,  // a frame ended
    input wire end_bad,    // FCS
    input wire end_runt,
    input wire end_large,
    input wire end_whole,  // it has all bytes of its IP packet

    input wire ip_good,
    input wire transport_good,
    input wire crc_good,

`ifdef AGG_PARENT
    output wire                m_verdict_up,
    output wire [JOB_BITS-1:0] m_verdict_up_job,

`endif
    output wire       m_verdict_valid,
    output wire [2:0] m_verdict_kind,
    output wire [3:0] m_verdict_reason
);

  localparam [6:0] NONE = 7'd0;  // no check has failed so far
  localparam [6:0] DATAGRAM = {3'd1, 4'd0};
  localparam [6:0] ARP = {3'd2, 4'd0};
  localparam [6:0] ECHO = {3'd3, 4'd0};
  localparam [6:0] OTHER = {3'd4, 4'd0};
  localparam [6:0] IGNORED = {3'd5, 4'd0};
  localparam [6:0] FCS = {3'd0, 4'd1};
  localparam [6:0] RUNT = {3'd0, 4'd2};
  localparam [6:0] OVERSIZE = {3'd0, 4'd3};
  localparam [6:0] IP_HEADER = {3'd0, 4'd4};
  localparam [6:0] IP_CHECKSUM = {3'd0, 4'd5};
  localparam [6:0] FRAGMENT = {3'd0, 4'd6};
  localparam [6:0] IP_LENGTH = {3'd0, 4'd7};
  localparam [6:0] IP_ADDRESS = {3'd0, 4'd8};
  localparam [6:0] PROTOCOL = {3'd0, 4'd9};
  localparam [6:0] UDP_LENGTH = {3'd0, 4'd10};
  localparam [6:0] CHECKSUM = {3'd0, 4'd11};
  localparam [6:0] UDP_PORT = {3'd0, 4'd12};
  localparam [6:0] SHORT = {3'd0, 4'd13};
  localparam [6:0] DATAGRAM_CRC = {3'd0, 4'd14};

  localparam [63:0] ARP_REQUEST = 64'h0001_0800_0604_0001;  // Ethernet, IPv4, their sizes, request

  // -- Fields: the first byte in the highest bits -------------------------------------------------

  wire [511:0] wire_order;
  wire unused = &{1'b0, wire_order};  // bytes that no check reads

  genvar i;
  generate
    for (i = 0; i < 64; i = i + 1) begin : g_byte
      assign wire_order[8*(63-i)+:8] = head[8*i+:8];
    end
  endgenerate

  // width bytes from byte place on: wire_order[8*(64-place-width)+:8*width]
  wire [47:0] to_mac = wire_order[8*58+:48];
  wire [15:0] ethertype = wire_order[8*50+:16];
  wire [ 7:0] version = wire_order[8*49+:8];
  wire [15:0] total = wire_order[8*46+:16];
  wire [15:0] fragment = wire_order[8*42+:16];
  wire [ 7:0] protocol = wire_order[8*40+:8];
  wire [31:0] to_ip = wire_order[8*30+:32];
  wire [15:0] icmp_type = wire_order[8*28+:16];  // and code
  wire [15:0] to_port = wire_order[8*26+:16];
  wire [15:0] udp_length = wire_order[8*24+:16];
  wire [15:0] udp_checksum = wire_order[8*22+:16];
  wire [63:0] arp_start = wire_order[8*42+:64];
  wire [31:0] arp_to_ip = wire_order[8*22+:32];

  // -- Cycle 3: checks of fields ------------------------------------------------------------------

  reg ours_reg, broadcast_reg, arp_reg, ipv4_reg, request_reg, header_reg, fragment_reg;
  reg brief_reg, address_reg, udp_reg, echo_reg, length_reg, unsummed_reg, port_reg, short_reg;
`ifdef AGG_PARENT
  reg [JOBS-1:0] up_reg;
  integer j;

  always @(posedge clk) begin
    for (j = 0; j < JOBS; j = j + 1) up_reg[j] <= up_runs[j] && up_ports[16*j+:16] == to_port;
  end
`endif

  always @(posedge clk) begin
    ours_reg      <= to_mac == own_mac;
    broadcast_reg <= to_mac == 48'hffffffffffff;
    arp_reg       <= ethertype == 16'h0806;
    ipv4_reg      <= ethertype == 16'h0800;
    request_reg   <= arp_start == ARP_REQUEST && arp_to_ip == own_ip;
    header_reg    <= version == 8'h45;
    fragment_reg  <= (fragment & 16'h3fff) != 16'd0;  // more fragments, or an offset
    brief_reg     <= total < 16'd28;
    address_reg   <= to_ip == own_ip;
    udp_reg       <= protocol == 8'd17;
    echo_reg      <= protocol == 8'd1 && icmp_type == 16'h0800;
    length_reg    <= udp_length == total - 16'd20;
    unsummed_reg  <= udp_checksum == 16'd0;
    port_reg      <= to_port == own_port;
    short_reg     <= total < 16'd46;
  end

  // -- Cycle 4: those before the header's checksum, before the other one, and after it ------------

  reg [6:0] outer, inner, late;
  reg [6:0] outer_reg, inner_reg, late_reg;
  reg unsummed_4_reg;

  always @* begin
    if (!ours_reg && !(arp_reg && broadcast_reg)) outer = OTHER;
    else if (arp_reg) outer = request_reg ? ARP : ours_reg ? IGNORED : OTHER;
    else if (!ipv4_reg) outer = IGNORED;
    else if (!header_reg) outer = IP_HEADER;
    else outer = NONE;

    // ip_length is known later.
    if (!address_reg) inner = IP_ADDRESS;
    else if (!udp_reg && !echo_reg) inner = PROTOCOL;
    else if (udp_reg && !length_reg) inner = UDP_LENGTH;
    else inner = NONE;

    if (echo_reg) late = ECHO;
`ifdef AGG_PARENT
    else if (!port_reg && up_reg == {JOBS{1'b0}}) late = UDP_PORT;
`else
    else if (!port_reg) late = UDP_PORT;
`endif
    else if (short_reg) late = SHORT;
    else late = NONE;
  end

  reg fragment_4_reg, brief_4_reg;
`ifdef AGG_PARENT
  reg up_4_reg;
  reg [JOB_BITS-1:0] up_job, up_job_4_reg;
  integer n;

  always @* begin
    up_job = {JOB_BITS{1'b0}};
    for (n = 0; n < JOBS; n = n + 1) if (up_reg[n]) up_job = up_job | n[JOB_BITS-1:0];
  end

  always @(posedge clk) begin
    up_4_reg     <= !port_reg;
    up_job_4_reg <= up_job;
  end

  agg_delay #(
      .WIDTH (1 + JOB_BITS),
      .CYCLES(5)
  ) u_up (
      .clk(clk),
      .d  ({up_4_reg, up_job_4_reg}),
      .q  ({m_verdict_up, m_verdict_up_job})
  );
`endif

  always @(posedge clk) begin
    outer_reg      <= outer;
    inner_reg      <= inner;
    late_reg       <= late;
    fragment_4_reg <= fragment_reg;
    brief_4_reg    <= brief_reg;
    unsummed_4_reg <= udp_reg && unsummed_reg;
  end

  // -- Cycle 5: with the frame's end ---------------------------------------------------------------

  reg valid_reg, unsummed_5_reg;
  reg [6:0] first_reg, second_reg, third_reg;

  always @(posedge clk) begin
    valid_reg      <= end_valid && !rst;
    first_reg      <= end_bad ? FCS : end_runt ? RUNT : end_large ? OVERSIZE : outer_reg;
    second_reg     <= fragment_4_reg ? FRAGMENT : brief_4_reg || !end_whole ? IP_LENGTH : inner_reg;
    third_reg      <= late_reg;
    unsummed_5_reg <= unsummed_4_reg;
  end

  // -- Cycle 8, and the verdict -------------------------------------------------------------------

  wire ended, unsummed;
  wire [6:0] first, second, third;
  reg ended_reg;
  reg [6:0] verdict_reg;

  agg_tag_delay #(
      .WIDTH (22),
      .CYCLES(3)
  ) u_sums (
      .clk      (clk),
      .rst      (rst),
      .in_valid (valid_reg),
      .in_tag   ({first_reg, second_reg, third_reg, unsummed_5_reg}),
      .out_valid(ended),
      .out_tag  ({first, second, third, unsummed})
  );

  always @(posedge clk) begin
    ended_reg <= ended && !rst;
    if (first != NONE) verdict_reg <= first;
    else if (!ip_good) verdict_reg <= IP_CHECKSUM;
    else if (second != NONE) verdict_reg <= second;
    else if (unsummed || !transport_good) verdict_reg <= CHECKSUM;
    else if (third != NONE) verdict_reg <= third;
    else if (!crc_good) verdict_reg <= DATAGRAM_CRC;
    else verdict_reg <= DATAGRAM;
  end

  assign m_verdict_valid = ended_reg;
  assign {m_verdict_kind, m_verdict_reason} = verdict_reg;

endmodule

`default_nettype wire
