// Looks up the address to which a copy of a packet leaves, between agg_datagram_store and
// agg_eth_transmit.
//
// A copy for a port of the core has the address of the member there, from the address table; the
// copy is for all of the job's members with that address (m_copy_done). The copy for the port behind
// them is a reply to a register access, which leaves for the sender of that access.
//
// A copy waits at s_copy for the table's two cycles. It is then taken into registers: so its payload
// comes meanwhile, and is at agg_eth_transmit before the frame's header has left. Throughput: a copy
// every three cycles. left is a pulse in the cycle after the last copy of a packet of the core has got
// its address, reply_left after a reply has left for agg_eth_transmit.

`default_nettype none

module agg_copy_address #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,
    parameter integer JOB_BITS = 1,
    parameter integer WIDTH = 305  // of the fields that pass
) (
    input wire clk,
    input wire rst,

    // From agg_datagram_store
    input  wire                s_copy_valid,
    output wire                s_copy_ready,
    input  wire [     PORTS:0] s_copy_dest,   // one-hot; the highest bit: a reply
    input  wire [JOB_BITS-1:0] s_copy_job,
    input  wire                s_copy_final,  // no copy follows but those in s_copy_done
    output wire [     PORTS:0] s_copy_done,   // receivers that this copy serves
    input  wire [   WIDTH-1:0] s_copy_fields, // all others: they pass

    // Sender of the access whose reply is in the store, until that has left
    input wire [47:0] reply_mac,
    input wire [31:0] reply_ip,
    input wire [15:0] reply_port,

    // Address table: the entry two enabled cycles after its job and port
    output wire                 to_en,
    output wire [ JOB_BITS-1:0] to_job,
    output wire [PORT_BITS-1:0] to_port,
    input  wire [         47:0] to_mac,
    input  wire [         31:0] to_ip,
    input  wire [         15:0] to_udp_port,
    input  wire [    PORTS-1:0] to_same,      // ports with this very entry

    // To agg_eth_transmit
    output wire             m_copy_valid,
    input  wire             m_copy_ready,
    output wire [     47:0] m_copy_mac,
    output wire [     31:0] m_copy_ip,
    output wire [     15:0] m_copy_port,
    output wire [WIDTH-1:0] m_copy_fields,

    output wire left,
    output wire reply_left
);

  reg [PORT_BITS-1:0] port;
  reg [1:0] step_reg;  // the entry comes, is here
  reg valid_reg;
  reg reply_reg;
  reg left_reg, reply_left_reg;
  reg [47:0] mac_reg;
  reg [31:0] ip_reg;
  reg [15:0] udp_port_reg;
  reg [WIDTH-1:0] fields_reg;
  integer p;

  wire reply = s_copy_dest[PORTS];
  wire take = step_reg[1] && (!valid_reg || m_copy_ready);

  always @* begin
    port = {PORT_BITS{1'b0}};
    for (p = 0; p < PORTS; p = p + 1) if (s_copy_dest[p]) port = port | p[PORT_BITS-1:0];
  end

  always @(posedge clk) begin
    step_reg <= step_reg[1] ? {!take, 1'b0} : {step_reg[0], s_copy_valid && !step_reg[0]};
    valid_reg <= take || (valid_reg && !m_copy_ready);
    left_reg <= take && s_copy_final && !reply;
    reply_left_reg <= valid_reg && m_copy_ready && reply_reg;
    if (take) begin
      reply_reg    <= reply;
      mac_reg      <= reply ? reply_mac : to_mac;
      ip_reg       <= reply ? reply_ip : to_ip;
      udp_port_reg <= reply ? reply_port : to_udp_port;
      fields_reg   <= s_copy_fields;
    end
    if (rst) begin
      step_reg <= 2'd0;
      valid_reg <= 1'b0;
      left_reg <= 1'b0;
      reply_left_reg <= 1'b0;
    end
  end

  assign to_en = 1'b1;
  assign to_job = s_copy_job;
  assign to_port = port;
  assign s_copy_ready = take;
  assign s_copy_done = reply ? {1'b1, {PORTS{1'b0}}} : {1'b0, to_same};
  assign m_copy_valid = valid_reg;
  assign m_copy_mac = mac_reg;
  assign m_copy_ip = ip_reg;
  assign m_copy_port = udp_port_reg;
  assign m_copy_fields = fields_reg;
  assign left = left_reg;
  assign reply_left = reply_left_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // A copy that is offered leaves once, with the address that the table showed two cycles after it
  // came or later, and its fields; what is offered is held.
  reg was_reset = 1'b0;
  reg offered, waited, took;
  reg [PORTS+JOB_BITS+WIDTH:0] copy_stood;
  reg [95+WIDTH:0] stood, put;
  reg left_due, reply_due;
  reg put_reply;  // the copy taken last is a reply
  wire [95+WIDTH:0] out = {m_copy_fields, m_copy_mac, m_copy_ip, m_copy_port};
  reg [1:0] age;  // cycles for which this copy has been offered, up to 3
  integer n;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    offered <= !rst && s_copy_valid && !s_copy_ready;
    copy_stood <= {s_copy_dest, s_copy_job, s_copy_fields};
    stood <= out;
    waited <= !rst && m_copy_valid && !m_copy_ready;
    took <= !rst && s_copy_valid && s_copy_ready;
    put <= {
      s_copy_fields,
      s_copy_dest[PORTS] ? {reply_mac, reply_ip, reply_port} : {to_mac, to_ip, to_udp_port}
    };
    if (s_copy_valid && s_copy_ready) put_reply <= s_copy_dest[PORTS];
    left_due <= !rst && s_copy_valid && s_copy_ready && s_copy_final && !s_copy_dest[PORTS];
    reply_due <= !rst && m_copy_valid && m_copy_ready && put_reply;
    age <= rst || !s_copy_valid || s_copy_ready ? 0 : age + (age != 3);
  end

  always @* begin
    if (was_reset) begin
      // agg_datagram_store: a copy stays until it is taken.
      if (offered)
        `PROMISED(s_copy_valid && {s_copy_dest, s_copy_job, s_copy_fields} == copy_stood);
      assert (age == 0 || offered);
      assert (step_reg == (age == 0 ? 2'd0 : age == 1 ? 2'd1 : 2'd2));
      if (s_copy_ready) assert (s_copy_valid && age >= 2);
      assert (m_copy_valid == (waited || took));
      if (waited) assert (out == stood && !took);
      if (took) assert (out == put);
      // The table is asked for the copy's job and port. A copy serves the ports with that entry, and a
      // reply serves itself. A packet of the core has left with its final copy.
      assert (to_en && to_job == s_copy_job);
      for (n = 0; n < PORTS; n = n + 1)
      if (s_copy_dest == {{PORTS{1'b0}}, 1'b1} << n) assert (to_port == n[PORT_BITS-1:0]);
      assert (s_copy_done[PORTS] == s_copy_dest[PORTS]);
      assert (s_copy_done[PORTS-1:0] == (s_copy_dest[PORTS] ? {PORTS{1'b0}} : to_same));
      assert (left == left_due);
      assert (!m_copy_valid || reply_reg == put_reply);
      assert (reply_left == reply_due);
      cover (left);
      cover (reply_left && s_copy_ready);
    end
  end
`endif

endmodule

`default_nettype wire
