// The connections of RoCEv2: staged for the next job, and registered for all jobs.
//
// Staged, by port of the core: the member's IPv4 address and Ethernet port (copies of what
// agg_member_table has), and its connection: the receiver's QPN, the first PSN, the receiver's
// port. clear makes all of them 0.
//
// Checks, from check's first cycle until checked: the connections of commit_ports, with the
// operands stable. good is low unless each has a receiver in commit_ports with a QPN above 1, no
// other one of them or of another job has the same receiver's address and QPN, a chunk is one MTU
// of RoCEv2, the first VID is 0, and no partial sums are allowed. They take PORTS * (PORTS *
// (JOBS + 1) + 3) + 1 cycles.
//
// install copies what was checked last to commit_job, all ports at once. remove and remove_all
// forget connections. A job keeps them otherwise, also when it has ended.
//
// Lookups, for each Ethernet port: found_* belongs to the lookup two cycles before; found_ip says
// that some connection has this receiver's address. Throughput: one a cycle. found_epoch is that of
// the set-up whose connection matched, so a packet that waits while a commit passes is of the epoch
// in which it was found. If install comes with the lookup, the other fields may be of the new one.
//
// Not done here: who may write, and when (agg_connection_registers); whether the job is set up
// (agg_core); comparing a packet with its connection (agg_roce_judge).

`default_nettype none

module agg_connection_table #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,  // width of a job number, at least 1
    parameter integer ETHERNET = 1,  // Ethernet ports
    parameter integer ELEM_BYTES = 4  // of an element: 1, 2 or 4
) (
    input wire clk,
    input wire rst,

    // Staged registers
    input wire                 clear,
    input wire                 stage_address,     // MEMBER_ADDRESS, for its IPv4 address
    input wire                 stage_mac,         // MEMBER_MAC, for its Ethernet port
    input wire                 stage_connection,
    input wire [PORT_BITS-1:0] stage_port,
    input wire [         55:0] stage_value,

    // Registers, two cycles later
    input  wire                 reg_table,  // JOB_CONNECTION; otherwise MEMBER_CONNECTION
    input  wire [ JOB_BITS-1:0] reg_job,
    input  wire [PORT_BITS-1:0] reg_port,
    output wire [         63:0] reg_value,

    // A commit
    input  wire                check,
    input  wire [JOB_BITS-1:0] commit_job,
    input  wire [   PORTS-1:0] commit_ports,
    input  wire [        63:0] commit_chunk,
    input  wire [        31:0] commit_first,
    input  wire                commit_partial,
    input  wire [        15:0] commit_epoch,
    output wire                checked,
    output wire                good,
    input  wire                install,         // a pulse

    input wire                remove,      // a pulse
    input wire [JOB_BITS-1:0] remove_job,
    input wire                remove_all,  // likewise

    // Lookups
    input  wire [       32*ETHERNET-1:0] lookup_ip,
    input  wire [       24*ETHERNET-1:0] lookup_qpn,
    output wire [          ETHERNET-1:0] found,
    output wire [          ETHERNET-1:0] found_ip,
    output wire [ JOB_BITS*ETHERNET-1:0] found_job,
    output wire [PORT_BITS*ETHERNET-1:0] found_port,      // the member's
    output wire [       32*ETHERNET-1:0] found_source,    // its IPv4 address
    output wire [        8*ETHERNET-1:0] found_ethernet,  // its Ethernet port
    output wire [       24*ETHERNET-1:0] found_psn,       // the first
    output wire [        3*ETHERNET-1:0] found_mtu,       // log2 of its bytes / 256
    output wire [       16*ETHERNET-1:0] found_epoch,     // of the set-up that registered it

    // Where sums leave: the receiver's port of the core, and whether it is behind each Ethernet
    // port; job 0, and Ethernet port 0, in the lowest bits
    output wire [PORT_BITS*JOBS*PORTS-1:0] receivers,
    output wire [ ETHERNET*JOBS*PORTS-1:0] behind
);

  localparam integer ENTRIES = JOBS * PORTS;
  localparam integer OTHERS = PORTS + ENTRIES;  // what a connection is compared with
  localparam integer OTHER_BITS = $clog2(OTHERS + 1);
  localparam integer LAST_PORT = PORTS - 1;
  localparam integer LAST_OTHER = OTHERS - 1;
  localparam [PORT_BITS-1:0] LAST = LAST_PORT[PORT_BITS-1:0];
  localparam [OTHER_BITS-1:0] LAST_K = LAST_OTHER[OTHER_BITS-1:0];
  localparam [OTHER_BITS-1:0] FIRST_K = PORTS[OTHER_BITS-1:0];  // of a registered one

  generate
    if (ENTRIES > 64) begin : g_entries
      ERROR_a_card_has_up_to_64_connections error ();
    end
  endgenerate

  // -- Staged -------------------------------------------------------------------------------------

  reg [32*PORTS-1:0] ip_reg;
  reg [ 8*PORTS-1:0] ethernet_reg;
  reg [56*PORTS-1:0] connection_reg;

  always @(posedge clk) begin
    if (stage_address) ip_reg[32*stage_port+:32] <= stage_value[31:0];
    if (stage_mac) ethernet_reg[8*stage_port+:8] <= stage_value[55:48];
    if (stage_connection) connection_reg[56*stage_port+:56] <= stage_value[55:0];
    if (clear || rst) begin
      ip_reg         <= {32 * PORTS{1'b0}};
      ethernet_reg   <= {8 * PORTS{1'b0}};
      connection_reg <= {56 * PORTS{1'b0}};
    end
  end

  // -- Registered ---------------------------------------------------------------------------------

  reg [ENTRIES-1:0] valid_reg;
  reg [32*ENTRIES-1:0] to_ip_reg;  // the receiver's
  reg [24*ENTRIES-1:0] qpn_reg, psn_reg;
  reg [PORT_BITS*ENTRIES-1:0] to_port_reg;
  reg [32*ENTRIES-1:0] source_reg;
  reg [8*ENTRIES-1:0] from_ethernet_reg;
  reg [ETHERNET*ENTRIES-1:0] behind_reg;  // by Ethernet port
  reg [3*JOBS-1:0] mtu_reg;
  reg [16*JOBS-1:0] epoch_reg, epoch_1_reg;  // when it was looked up one cycle ago

  // -- Checks -------------------------------------------------------------------------------------

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_ROW = 1;  // the connection of port_reg
  localparam integer STATE_RECEIVER = 2;  // its receiver's address
  localparam integer STATE_COMPARE = 3;  // with another one
  localparam integer STATE_NEXT = 4;
  localparam integer STATE_DONE = 5;
  localparam integer STATES = 6;

  reg [STATES-1:0] at_reg;  // one-hot
  reg [PORT_BITS-1:0] port_reg;
  reg [OTHER_BITS-1:0] k_reg;
  reg member_reg;
  reg [31:0] row_reg;  // receiver's port, QPN
  reg [31:0] row_ip_reg;
  reg [32*PORTS-1:0] dest_ip_reg;  // of each port's receiver
  reg [8*PORTS-1:0] dest_ethernet_reg;
  reg bad_reg;
  reg other_reg;  // there is one that counts
  reg [31:0] other_ip_reg;
  reg [23:0] other_qpn_reg;
  reg [2:0] size_reg;
  reg size_good_reg;

  wire [PORT_BITS-1:0] row_port = row_reg[24+:PORT_BITS];
  wire [7:0] row_number = row_reg[31:24];
  localparam integer SHIFT = ELEM_BYTES == 4 ? 0 : ELEM_BYTES == 2 ? 1 : 2;
  wire [31:0] bytes = {14'd0, commit_chunk[15:0], 2'd0} >> SHIFT;
  wire [31:0] ports = PORTS;
  integer n, m, s;

  // Of the connections that a new one is compared with: the other ports' come first
  reg k_counts;
  reg [31:0] k_ip;
  reg [23:0] k_qpn;
  reg [OTHER_BITS-1:0] place;

  always @* begin
    k_counts = 1'b0;
    k_ip     = 32'd0;
    k_qpn    = 24'd0;
    place    = FIRST_K;
    for (n = 0; n < PORTS; n = n + 1) begin
      if (k_reg == n[OTHER_BITS-1:0]) begin
        k_counts = commit_ports[n] && n[PORT_BITS-1:0] < port_reg;
        k_ip     = dest_ip_reg[32*n+:32];
        k_qpn    = connection_reg[56*n+:24];
      end
    end
    for (m = 0; m < JOBS; m = m + 1) begin
      for (n = 0; n < PORTS; n = n + 1) begin
        if (k_reg == place) begin
          k_counts = valid_reg[PORTS*m+n] && JOBS != 1 && commit_job != m[JOB_BITS-1:0];
          k_ip     = to_ip_reg[32*(PORTS*m+n)+:32];
          k_qpn    = qpn_reg[24*(PORTS*m+n)+:24];
        end
        place = place + 1'b1;
      end
    end
  end

  always @(posedge clk) begin
    at_reg <= {STATES{1'b0}};
    if (!check || rst) at_reg[STATE_IDLE] <= 1'b1;
    else if (at_reg[STATE_IDLE]) at_reg[STATE_ROW] <= 1'b1;
    else if (at_reg[STATE_ROW]) at_reg[STATE_RECEIVER] <= 1'b1;
    else if (at_reg[STATE_RECEIVER]) at_reg[STATE_COMPARE] <= 1'b1;
    else if (at_reg[STATE_COMPARE] && k_reg != LAST_K) at_reg[STATE_COMPARE] <= 1'b1;
    else if (at_reg[STATE_COMPARE]) at_reg[STATE_NEXT] <= 1'b1;
    else if (at_reg[STATE_NEXT] && port_reg != LAST) at_reg[STATE_ROW] <= 1'b1;
    else at_reg[STATE_DONE] <= 1'b1;

    size_good_reg <= 1'b0;
    for (s = 0; s < 5; s = s + 1) begin
      if (bytes == 32'd256 << s) begin
        size_good_reg <= commit_chunk[63:16] == 48'd0;
        size_reg      <= s[2:0];
      end
    end

    k_reg <= at_reg[STATE_COMPARE] ? k_reg + 1'b1 : {OTHER_BITS{1'b0}};
    if (at_reg[STATE_IDLE]) begin
      port_reg <= {PORT_BITS{1'b0}};
      bad_reg  <= 1'b0;
    end
    if (at_reg[STATE_ROW]) begin
      row_reg    <= {connection_reg[56*port_reg+48+:8], connection_reg[56*port_reg+:24]};
      member_reg <= commit_ports[port_reg];
    end
    if (at_reg[STATE_RECEIVER]) begin
      row_ip_reg <= 32'd0;
      for (s = 0; s < PORTS; s = s + 1) begin
        if (row_port == s[PORT_BITS-1:0]) begin
          row_ip_reg                       <= ip_reg[32*s+:32];
          dest_ip_reg[32*port_reg+:32]     <= ip_reg[32*s+:32];
          dest_ethernet_reg[8*port_reg+:8] <= ethernet_reg[8*s+:8];
        end
      end
      if (member_reg && ({24'd0, row_number} >= ports || !commit_ports[row_port] ||
          row_reg[23:1] == 23'd0))
        bad_reg <= 1'b1;
    end
    // A comparison takes two cycles.
    other_reg     <= at_reg[STATE_COMPARE] && member_reg && k_counts;
    other_ip_reg  <= k_ip;
    other_qpn_reg <= k_qpn;
    if (other_reg && other_ip_reg == row_ip_reg && other_qpn_reg == row_reg[23:0]) bad_reg <= 1'b1;
    if (at_reg[STATE_NEXT]) port_reg <= port_reg + 1'b1;
    if (rst) other_reg <= 1'b0;
  end

  assign checked = at_reg[STATE_DONE];
  assign good    = !bad_reg && size_good_reg && commit_first == 32'd0 && !commit_partial;

  // -- Changes ------------------------------------------------------------------------------------

  integer j, q, e;

  always @(posedge clk) begin
    for (j = 0; j < JOBS; j = j + 1) begin
      if (install && (JOBS == 1 || commit_job == j[JOB_BITS-1:0])) begin
        valid_reg[PORTS*j+:PORTS] <= commit_ports;
        to_ip_reg[32*PORTS*j+:32*PORTS] <= dest_ip_reg;
        source_reg[32*PORTS*j+:32*PORTS] <= ip_reg;
        from_ethernet_reg[8*PORTS*j+:8*PORTS] <= ethernet_reg;
        mtu_reg[3*j+:3] <= size_reg;
        epoch_reg[16*j+:16] <= commit_epoch;
        for (q = 0; q < PORTS; q = q + 1) begin
          {to_port_reg[PORT_BITS*(PORTS*j+q)+:PORT_BITS], psn_reg[24*(PORTS*j+q)+:24],
              qpn_reg[24*(PORTS*j+q)+:24]} <= connection_reg[56*q+:48+PORT_BITS];
          for (e = 0; e < ETHERNET; e = e + 1)
          behind_reg[ENTRIES*e+PORTS*j+q] <= {24'd0, dest_ethernet_reg[8*q+:8]} == e;
        end
      end
      if (remove && (JOBS == 1 || remove_job == j[JOB_BITS-1:0]))
        valid_reg[PORTS*j+:PORTS] <= {PORTS{1'b0}};
    end
    if (remove_all || rst) valid_reg <= {ENTRIES{1'b0}};
  end

  assign receivers = to_port_reg;
  assign behind    = behind_reg;

  // -- Registers ----------------------------------------------------------------------------------

  wire [31:0] asked = JOBS == 1 ? {{32 - PORT_BITS{1'b0}}, reg_port} :
      {{32 - JOB_BITS{1'b0}}, reg_job} * PORTS + {{32 - PORT_BITS{1'b0}}, reg_port};
  reg [55:0] staged_reg, registered_reg, value_reg;
  integer r;

  always @(posedge clk) begin
    staged_reg     <= 56'd0;
    registered_reg <= 56'd0;
    for (r = 0; r < ENTRIES; r = r + 1) begin
      if (asked == r && valid_reg[r])
        registered_reg <= {
          {8 - PORT_BITS{1'b0}},
          to_port_reg[PORT_BITS*r+:PORT_BITS],
          psn_reg[24*r+:24],
          qpn_reg[24*r+:24]
        };
    end
    for (r = 0; r < PORTS; r = r + 1) begin
      if (reg_port == r[PORT_BITS-1:0]) staged_reg <= connection_reg[56*r+:56];
    end
    value_reg <= reg_table ? registered_reg : staged_reg;
  end

  assign reg_value = {8'd0, value_reg};

  // -- Lookups ------------------------------------------------------------------------------------

  always @(posedge clk) epoch_1_reg <= epoch_reg;

  genvar g;
  generate
    for (g = 0; g < ETHERNET; g = g + 1) begin : g_lookup
      reg [ENTRIES-1:0] ip_same_reg, qpn_same_reg;
      reg found_reg, found_ip_reg;
      reg [JOB_BITS-1:0] job_reg;
      reg [PORT_BITS-1:0] member_port_reg;
      reg [31:0] from_ip_reg;
      reg [7:0] from_reg;
      reg [23:0] first_reg;
      reg [2:0] log_reg;
      reg [15:0] set_up_reg;
      reg [JOB_BITS-1:0] job_next;
      reg [PORT_BITS-1:0] port_next;
      reg [31:0] source_next;
      reg [7:0] ethernet_next;
      reg [23:0] psn_next;
      reg [2:0] mtu_next;
      reg [15:0] epoch_next;
      integer i, p, k;

      // At most one connection matches.
      always @* begin
        job_next      = {JOB_BITS{1'b0}};
        port_next     = {PORT_BITS{1'b0}};
        source_next   = 32'd0;
        ethernet_next = 8'd0;
        psn_next      = 24'd0;
        mtu_next      = 3'd0;
        epoch_next    = 16'd0;
        for (i = 0; i < JOBS; i = i + 1) begin
          for (p = 0; p < PORTS; p = p + 1) begin
            if (ip_same_reg[PORTS*i+p] && qpn_same_reg[PORTS*i+p]) begin
              job_next      = job_next | i[JOB_BITS-1:0];
              port_next     = port_next | p[PORT_BITS-1:0];
              source_next   = source_next | source_reg[32*(PORTS*i+p)+:32];
              ethernet_next = ethernet_next | from_ethernet_reg[8*(PORTS*i+p)+:8];
              psn_next      = psn_next | psn_reg[24*(PORTS*i+p)+:24];
              mtu_next      = mtu_next | mtu_reg[3*i+:3];
              epoch_next    = epoch_next | epoch_1_reg[16*i+:16];
            end
          end
        end
      end

      always @(posedge clk) begin
        for (k = 0; k < ENTRIES; k = k + 1) begin
          ip_same_reg[k]  <= valid_reg[k] && to_ip_reg[32*k+:32] == lookup_ip[32*g+:32];
          qpn_same_reg[k] <= qpn_reg[24*k+:24] == lookup_qpn[24*g+:24];
        end
        found_reg       <= |(ip_same_reg & qpn_same_reg);
        found_ip_reg    <= |ip_same_reg;
        job_reg         <= job_next;
        member_port_reg <= port_next;
        from_ip_reg     <= source_next;
        from_reg        <= ethernet_next;
        first_reg       <= psn_next;
        log_reg         <= mtu_next;
        set_up_reg      <= epoch_next;
      end

      assign found[g]                           = found_reg;
      assign found_ip[g]                        = found_ip_reg;
      assign found_job[JOB_BITS*g+:JOB_BITS]    = job_reg;
      assign found_port[PORT_BITS*g+:PORT_BITS] = member_port_reg;
      assign found_source[32*g+:32]             = from_ip_reg;
      assign found_ethernet[8*g+:8]             = from_reg;
      assign found_psn[24*g+:24]                = first_reg;
      assign found_mtu[3*g+:3]                  = log_reg;
      assign found_epoch[16*g+:16]              = set_up_reg;
    end
  endgenerate

endmodule

`default_nettype wire
