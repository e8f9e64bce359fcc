// The addresses of parents: staged for the next job, and those of all jobs.
//
// Registers write and read PARENT_ADDRESS and PARENT_MAC. clear makes both 0. A job's entry has what
// is staged when the job is set up, also if it is no tree job.
//
// Checks, while a commit's operands are stable: parent_good, five cycles later, is low if the job is a
// tree job whose packets cannot go from the upward UDP port to the staged address; parent_same says
// whether the job's entry is the staged address. Bits of it without a meaning do not count.
//
// Lookups: parent_* asks where the packets of a job's parent must come from, and up_* where packets
// for it go, and from which UDP port. Each answers two enabled cycles later, in a memory of its own for
// each Ethernet port. above has the jobs whose parent is behind each Ethernet port.
//
// The entries change with those of members (agg_member_table): the former at receives, the latter at
// sends, and in between a job without a whole entry has no parent.
//
// Not done here: who may write, and when (agg_network_registers); comparing a sender with an entry
// (agg_member_check); JOB_PARENT and JOB_REPEAT by themselves (agg_up_jobs).

`default_nettype none

module agg_parent_table #(
    parameter integer JOBS     = 1,
    parameter integer JOB_BITS = 1,
    parameter integer ETHERNET = 1   // Ethernet ports
) (
    input wire clk,
    input wire rst,

    // The card's own address
    input wire [31:0] own_ip,
    input wire [15:0] own_port,

    // A register
    input  wire        clear,
    input  wire        reg_write,
    input  wire        reg_mac,    // PARENT_MAC; otherwise PARENT_ADDRESS
    input  wire [63:0] reg_wdata,
    output wire [63:0] reg_value,

    // A commit
    input  wire [JOB_BITS-1:0] commit_job,
    input  wire                staged_up,       // JOB_PARENT: the job is a tree job
    input  wire [        15:0] staged_up_port,  // its upward UDP port
    output wire                parent_good,
    output wire                parent_same,
    input  wire                receives,        // pulses, after the job was set up
    input  wire                sends,
    input  wire                partial,         // the entry is not whole

    // Running tree jobs and their upward UDP ports, job 0 in the lowest bits
    input wire [   JOBS-1:0] up_runs,
    input wire [16*JOBS-1:0] up_ports,

    // The sender of a parent's packet, for each Ethernet port
    input  wire [         ETHERNET-1:0] parent_en,
    input  wire [JOB_BITS*ETHERNET-1:0] parent_job,
    output wire [         ETHERNET-1:0] parent_valid,
    output wire [      32*ETHERNET-1:0] parent_ip,
    output wire [      16*ETHERNET-1:0] parent_port,
    output wire [       8*ETHERNET-1:0] parent_ethernet,

    // The receiver of a packet for a parent, for each Ethernet port
    input  wire [         ETHERNET-1:0] up_en,
    input  wire [JOB_BITS*ETHERNET-1:0] up_job,
    output wire [      48*ETHERNET-1:0] up_mac,
    output wire [      32*ETHERNET-1:0] up_ip,
    output wire [      16*ETHERNET-1:0] up_udp_port,
    output wire [      16*ETHERNET-1:0] up_source,    // the upward UDP port

    output wire [ETHERNET*JOBS-1:0] above  // job 0, and Ethernet port 0, in the lowest bits
);

  // -- Staged registers -----------------------------------------------------------------------------

  reg [63:0] address_reg, mac_reg;
  wire [31:0] ip = address_reg[31:0];
  wire [15:0] port = address_reg[47:32];
  wire [ 7:0] ethernet = mac_reg[55:48];

  always @(posedge clk) begin
    if (reg_write && !reg_mac) address_reg <= reg_wdata;
    if (reg_write && reg_mac) mac_reg <= reg_wdata;
    if (clear || rst) begin
      address_reg <= 64'd0;
      mac_reg     <= 64'd0;
    end
  end

  assign reg_value = reg_mac ? mac_reg : address_reg;

  // -- Checks ---------------------------------------------------------------------------------------

  localparam integer BYTES = 13;  // of an address: IPv4, UDP port, MAC, Ethernet port

  wire [103:0] staged = {mac_reg[55:0], address_reg[47:0]};
  wire [103:0] entry;
  reg whole_reg, own_ip_reg, own_port_reg, here_reg, source_reg, tree_reg;
  reg [ JOBS-1:0] uses_reg;  // running tree jobs with this upward UDP port
  reg [ JOBS-1:0] others_reg;  // all jobs but the commit's
  reg [BYTES-1:0] differs_reg;
  reg good_reg, same_reg;
  integer b, j;

  always @(posedge clk) begin
    whole_reg    <= ip != 32'd0 && port != 16'd0;
    own_ip_reg   <= ip == own_ip;
    own_port_reg <= port == own_port;
    here_reg     <= {24'd0, ethernet} < ETHERNET;
    source_reg   <= staged_up_port != 16'd0 && staged_up_port != own_port;
    tree_reg     <= staged_up;
    for (j = 0; j < JOBS; j = j + 1) begin
      uses_reg[j]   <= up_runs[j] && up_ports[16*j+:16] == staged_up_port;
      others_reg[j] <= JOBS != 1 && commit_job != j[JOB_BITS-1:0];
    end
    good_reg <= !tree_reg || (whole_reg && !(own_ip_reg && own_port_reg) && here_reg &&
        source_reg && (uses_reg & others_reg) == {JOBS{1'b0}});
    for (b = 0; b < BYTES; b = b + 1) differs_reg[b] <= staged[8*b+:8] != entry[8*b+:8];
    same_reg <= differs_reg == {BYTES{1'b0}};
  end

  assign parent_good = good_reg;
  assign parent_same = same_reg;

  agg_ram #(
      .WIDTH    (104),
      .ADDR_BITS(JOB_BITS),
      .APART    (1)
  ) u_entries (
      .clk    (clk),
      .wr_en  (receives),
      .wr_addr(commit_job),
      .wr_data(staged),
      .rd_en  (1'b1),
      .rd_addr(commit_job),
      .rd_data(entry)
  );

  // -- Lookups --------------------------------------------------------------------------------------

  genvar e;
  generate
    for (e = 0; e < ETHERNET; e = e + 1) begin : g_ethernet
      wire [JOB_BITS-1:0] from_job = parent_job[JOB_BITS*e+:JOB_BITS];
      wire [55:0] from_row;
      wire [111:0] to_row;
      reg whole_1_reg, valid_reg;
      reg [55:0] from_reg;
      reg [111:0] to_reg;
      reg [JOBS-1:0] above_reg;
      integer n;

      agg_ram #(
          .WIDTH    (56),
          .ADDR_BITS(JOB_BITS),
          .APART    (1)
      ) u_from (
          .clk    (clk),
          .wr_en  (receives),
          .wr_addr(commit_job),
          .wr_data({ethernet, port, ip}),
          .rd_en  (parent_en[e]),
          .rd_addr(from_job),
          .rd_data(from_row)
      );

      agg_ram #(
          .WIDTH    (112),
          .ADDR_BITS(JOB_BITS),
          .APART    (1)
      ) u_to (
          .clk    (clk),
          .wr_en  (sends),
          .wr_addr(commit_job),
          .wr_data({staged_up_port, mac_reg[47:0], port, ip}),
          .rd_en  (up_en[e]),
          .rd_addr(up_job[JOB_BITS*e+:JOB_BITS]),
          .rd_data(to_row)
      );

      always @(posedge clk) begin
        if (parent_en[e]) begin
          whole_1_reg <= !(partial && (JOBS == 1 || from_job == commit_job));
          valid_reg   <= whole_1_reg;
          from_reg    <= from_row;
        end
        if (up_en[e]) to_reg <= to_row;
        for (n = 0; n < JOBS; n = n + 1) begin
          if (sends && (JOBS == 1 || commit_job == n[JOB_BITS-1:0]))
            above_reg[n] <= {24'd0, ethernet} == e;
        end
        if (rst) above_reg <= {JOBS{1'b0}};
      end

      assign parent_valid[e]                                                       = valid_reg;
      assign {parent_ethernet[8*e+:8], parent_port[16*e+:16], parent_ip[32*e+:32]} = from_reg;
      assign up_ip[32*e+:32]                                                       = to_reg[31:0];
      assign up_udp_port[16*e+:16]                                                 = to_reg[47:32];
      assign up_mac[48*e+:48]                                                      = to_reg[95:48];
      assign up_source[16*e+:16]                                                   = to_reg[111:96];
      assign above[JOBS*e+:JOBS]                                                   = above_reg;
    end
  endgenerate

endmodule

`default_nettype wire
