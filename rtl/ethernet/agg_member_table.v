// The addresses of members: staged for the next job, and the address table of all jobs.
//
// Registers write and read one staged address (MEMBER_ADDRESS, MEMBER_MAC) and read one entry of the
// table (JOB_ADDRESS, JOB_MAC). clear makes all staged registers 0.
//
// Lookups. from_* asks who has a rank of a job, to_* where packets for a port of a job go; each
// answers two enabled cycles later. Each Ethernet port has one of both, in a memory of its own.
// behind has the ports of the core behind each Ethernet port, for each job. A job that the card lacks, a rank without a port and a job number
// without a first commit have no valid entry. to_same has all ports of the job with the same
// address, so that one copy of a result can be for all of them.
//
// A commit, from commit_start to commit_done, with commit_job and commit_ports stable:
//
//   CHECK    the staged addresses are compared with the job's entries: members_same
//   QUIET    hold_packets is high: the shell starts no lookup and no packet. Packets that were looked
//            up before reach their judgement, until packets_busy was low for 8 cycles
//   READY    commit_ready is high, and the core sets the job up, or does not
//   RECEIVE  the job's entries are rewritten for from_*, rank by rank
//   CLEAR    those of ranks that the job lacks become empty
//   LEAVE    hold_packets is low. Packets that the core has started until now leave for the old
//            addresses
//   LOAD, COMPARE, STORE  the entries are rewritten for to_* and for the registers, port by port:
//            each is compared with those of all ports
//
// If nothing was set up, the commit ends after READY and changes nothing. From RECEIVE to the end,
// from_* finds no entry of this job: none of its packets enters the core before the table is whole.
// Other jobs go on, except from QUIET to CLEAR. CHECK takes PORTS + 3 cycles, RECEIVE and CLEAR up to
// 2 PORTS + 3, LOAD to STORE together PORTS * (PORTS + 8).
//
// Not done here: who may write, and when (agg_network_registers); comparing a sender with an entry
// (the shell); which ports a job may have (agg_job_checks).

`default_nettype none

module agg_member_table #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,  // width of a job number, at least 1
    parameter integer ETHERNET = 1  // Ethernet ports
) (
    input wire clk,
    input wire rst,

    // A register, stable while it is accessed
    input  wire                 clear,
    input  wire                 reg_write,  // to the staged register
    input  wire                 reg_table,  // JOB_*; otherwise MEMBER_*
    input  wire                 reg_mac,    // *_MAC; otherwise *_ADDRESS
    input  wire [ JOB_BITS-1:0] reg_job,
    input  wire [PORT_BITS-1:0] reg_port,
    input  wire [         63:0] reg_wdata,
    output wire [         63:0] reg_value,  // three cycles later

    // A commit
    input  wire                commit_start,     // a pulse
    input  wire [JOB_BITS-1:0] commit_job,
    input  wire [   PORTS-1:0] commit_ports,
    output wire                commit_ready,     // the core may have the commit
    input  wire                commit_answered,  // a pulse: the core has answered it
    input  wire                set_up,           // a pulse before that: it has set the job up
    output wire                commit_done,      // a pulse
    output wire [   PORTS-1:0] members_whole,    // see agg_job_checks
    output wire                members_same,

    // Packets of the shell
    output wire hold_packets,
    input  wire packets_busy,    // a packet was looked up, and the core has not judged it
    input  wire packet_started,  // a packet of the core, in the cycle of port_start; at most 255
    input  wire packet_left,     // the oldest of them has left, with all its copies
`ifdef AGG_PARENT

    // agg_parent_table changes with the entries of the commit's job
    output wire receives,  // a pulse: those for received packets are being rewritten
    output wire sends,     // a pulse: those for packets that leave are
    output wire partial,   // the entries are not whole
`endif

    // The sender of a packet, for each Ethernet port
    input  wire [          ETHERNET-1:0] from_en,
    input  wire [        8*ETHERNET-1:0] from_job,
    input  wire [        8*ETHERNET-1:0] from_rank,
    output wire [          ETHERNET-1:0] from_valid,
    output wire [       32*ETHERNET-1:0] from_ip,
    output wire [       16*ETHERNET-1:0] from_port,
    output wire [        8*ETHERNET-1:0] from_ethernet,
    output wire [PORT_BITS*ETHERNET-1:0] from_dest,      // the core's port

    // The receiver of a packet, for each Ethernet port
    input  wire [          ETHERNET-1:0] to_en,
    input  wire [ JOB_BITS*ETHERNET-1:0] to_job,
    input  wire [PORT_BITS*ETHERNET-1:0] to_port,
    output wire [       48*ETHERNET-1:0] to_mac,
    output wire [       32*ETHERNET-1:0] to_ip,
    output wire [       16*ETHERNET-1:0] to_udp_port,
    output wire [        8*ETHERNET-1:0] to_ethernet,
    output wire [    PORTS*ETHERNET-1:0] to_same,

    output wire [ETHERNET*JOBS*PORTS-1:0] behind  // job 0, and Ethernet port 0, in the lowest bits
);

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_CHECK = 1;
  localparam integer STATE_QUIET = 2;
  localparam integer STATE_READY = 3;
  localparam integer STATE_RECEIVE = 4;
  localparam integer STATE_CLEAR = 5;
  localparam integer STATE_LEAVE = 6;
  localparam integer STATE_LOAD = 7;
  localparam integer STATE_COMPARE = 8;
  localparam integer STATE_STORE = 9;
  localparam integer STATES = 10;
  localparam [STATES-1:0] ONE_STATE = 1;

  localparam integer LAST_PORT = PORTS - 1;
  localparam [PORT_BITS-1:0] LAST = LAST_PORT[PORT_BITS-1:0];
  localparam integer BYTES = 13;  // of an address: IPv4, UDP port, MAC, Ethernet port

  reg [STATES-1:0] at_reg;  // one-hot

  // -- Staged addresses ---------------------------------------------------------------------------

  reg [PORTS-1:0] address_set_reg, mac_set_reg;  // written since the last clear
  reg [PORTS-1:0] whole_reg;  // neither the IPv4 address nor the UDP port is zero
  reg [PORTS-1:0] beyond_reg;  // an Ethernet port that the card lacks

  always @(posedge clk) begin
    if (reg_write && !reg_mac) begin
      address_set_reg[reg_port] <= 1'b1;
      whole_reg[reg_port]       <= |reg_wdata[31:0] && |reg_wdata[47:32];
    end
    if (reg_write && reg_mac) begin
      mac_set_reg[reg_port] <= 1'b1;
      beyond_reg[reg_port]  <= {24'd0, reg_wdata[55:48]} >= ETHERNET;
    end
    if (clear || rst) begin
      address_set_reg <= {PORTS{1'b0}};
      mac_set_reg     <= {PORTS{1'b0}};
      whole_reg       <= {PORTS{1'b0}};
      beyond_reg      <= {PORTS{1'b0}};
    end
  end

  assign members_whole = whole_reg & ~beyond_reg;

  // -- Walks over the ports -----------------------------------------------------------------------

  // A walk names each port once, or LOAD one of them. Cycle 1 reads the memories, cycle 2 replaces
  // what was never written, cycle 3 compares byte by byte, and cycle 4 joins the bytes.
  reg walks_reg;
  reg [PORT_BITS-1:0] port_reg;  // of the walk
  reg [2:0] valid_reg, last_reg;  // cycles 2 to 4; the walk's last port
  reg [2:0] member_reg;
  reg [PORT_BITS-1:0] port_1_reg, port_2_reg;

  wire walk_ends = walks_reg && (at_reg[STATE_LOAD] || port_reg == LAST);
  wire idle = at_reg[STATE_IDLE];
  wire [PORT_BITS-1:0] staged_at = idle ? reg_port : port_reg;
  wire [JOB_BITS+PORT_BITS-1:0] entry_at = idle ? {reg_job, reg_port} : {commit_job, port_reg};

  wire [63:0] staged_address, staged_mac;
  wire [103:0] entry;
  reg address_set_1_reg, mac_set_1_reg, bound_1_reg;
  reg [63:0] address_reg, mac_reg;  // staged
  reg [103:0] entry_reg;  // Ethernet port and MAC, UDP port and IPv4
  reg [63:0] value_reg;
  reg [103:0] own_reg;  // of the row that is to be stored
  reg [BYTES-1:0] differs_reg;
  reg [JOBS-1:0] bound_reg;  // the number had a commit

  wire [103:0] staged = {mac_reg[55:0], address_reg[47:0]};
  wire [103:0] other = at_reg[STATE_CHECK] ? entry_reg : own_reg;
  integer b;

  always @(posedge clk) begin
    port_1_reg        <= port_reg;
    port_2_reg        <= port_1_reg;
    valid_reg         <= {valid_reg[1:0], walks_reg};
    last_reg          <= {last_reg[1:0], walk_ends};
    member_reg        <= {member_reg[1:0], commit_ports[port_reg]};

    address_set_1_reg <= address_set_reg[staged_at];
    mac_set_1_reg     <= mac_set_reg[staged_at];
    bound_1_reg       <= bound_reg[JOBS==1?0 : entry_at[PORT_BITS+:JOB_BITS]];
    address_reg       <= staged_address & {64{address_set_1_reg}};
    mac_reg           <= staged_mac & {64{mac_set_1_reg}};
    entry_reg         <= entry & {104{bound_1_reg}};
    if (reg_table) value_reg <= reg_mac ? {8'd0, entry_reg[103:48]} : {16'd0, entry_reg[47:0]};
    else value_reg <= reg_mac ? mac_reg : address_reg;

    for (b = 0; b < BYTES; b = b + 1) differs_reg[b] <= staged[8*b+:8] != other[8*b+:8];
    if (at_reg[STATE_LOAD] && valid_reg[1]) own_reg <= staged;
    if (rst) valid_reg <= 3'd0;
    if (rst) last_reg <= 3'd0;
  end

  wire equal = differs_reg == {BYTES{1'b0}};
  wire walked = last_reg[2];

  agg_ram #(
      .WIDTH    (64),
      .ADDR_BITS(PORT_BITS),
      .APART    (1)
  ) u_addresses (
      .clk    (clk),
      .wr_en  (reg_write && !reg_mac),
      .wr_addr(reg_port),
      .wr_data(reg_wdata),
      .rd_en  (1'b1),
      .rd_addr(staged_at),
      .rd_data(staged_address)
  );

  agg_ram #(
      .WIDTH    (64),
      .ADDR_BITS(PORT_BITS),
      .APART    (1)
  ) u_macs (
      .clk    (clk),
      .wr_en  (reg_write && reg_mac),
      .wr_addr(reg_port),
      .wr_data(reg_wdata),
      .rd_en  (1'b1),
      .rd_addr(staged_at),
      .rd_data(staged_mac)
  );

  assign reg_value = value_reg;

  // -- A commit -----------------------------------------------------------------------------------

  reg same_reg;
  reg hold_reg;
  reg [2:0] quiet_reg;  // cycles in which packets_busy was low
  reg set_up_reg;
  reg closed_reg;  // the job's entries are not whole
  reg done_reg;
  reg [7:0] outstanding_reg;  // packets that were started and have not left
  reg [7:0] pending_reg;  // those of them that leave for the old addresses
  reg [PORT_BITS:0] rank_reg;  // the next rank
  reg [PORT_BITS-1:0] row_reg;
  reg [PORTS-1:0] same_ports_reg;  // fills from the top: port 0 ends up lowest
  reg row_member_reg;

  wire [7:0] outstanding = outstanding_reg + {7'd0, packet_started} - {7'd0, packet_left};
  wire answered = at_reg[STATE_READY] && commit_answered;
  wire quiet = quiet_reg == 3'd7 && !packets_busy;
  wire cleared = rank_reg == PORTS[PORT_BITS:0];
  wire left = pending_reg == 8'd0;
  wire from_wr_valid = at_reg[STATE_RECEIVE] && valid_reg[1] && member_reg[1];
  wire from_wr_en = from_wr_valid || (at_reg[STATE_CLEAR] && !cleared);
  wire final_row = row_reg == LAST;
  wire closes = (answered && !set_up_reg) || (at_reg[STATE_STORE] && final_row);

  wire [STATES-1:0] at_next;
  assign at_next[STATE_IDLE] = (at_reg[STATE_IDLE] && !commit_start) || closes;
  assign at_next[STATE_CHECK] = (at_reg[STATE_IDLE] && commit_start) ||
      (at_reg[STATE_CHECK] && !walked);
  assign at_next[STATE_QUIET] = (at_reg[STATE_CHECK] && walked) || (at_reg[STATE_QUIET] && !quiet);
  assign at_next[STATE_READY] = (at_reg[STATE_QUIET] && quiet) ||
      (at_reg[STATE_READY] && !answered);
  assign at_next[STATE_RECEIVE] = (answered && set_up_reg) || (at_reg[STATE_RECEIVE] && !walked);
  assign at_next[STATE_CLEAR] = (at_reg[STATE_RECEIVE] && walked) ||
      (at_reg[STATE_CLEAR] && !cleared);
  assign at_next[STATE_LEAVE] = (at_reg[STATE_CLEAR] && cleared) || (at_reg[STATE_LEAVE] && !left);
  assign at_next[STATE_LOAD] = (at_reg[STATE_LEAVE] && left) || (at_reg[STATE_LOAD] && !walked) ||
      (at_reg[STATE_STORE] && !final_row);
  assign at_next[STATE_COMPARE] = (at_reg[STATE_LOAD] && walked) ||
      (at_reg[STATE_COMPARE] && !walked);
  assign at_next[STATE_STORE] = at_reg[STATE_COMPARE] && walked;

  wire enters_walk = at_next != at_reg && (at_next[STATE_CHECK] || at_next[STATE_RECEIVE] ||
      at_next[STATE_LOAD] || at_next[STATE_COMPARE]);
  wire [PORT_BITS-1:0] row_next = at_reg[STATE_LEAVE] ? {PORT_BITS{1'b0}} :
      at_reg[STATE_STORE] ? row_reg + 1'b1 : row_reg;

  always @(posedge clk) begin
    at_reg <= at_next;
    done_reg <= closes;
    hold_reg  <= at_next[STATE_QUIET] || at_next[STATE_READY] || at_next[STATE_RECEIVE] ||
        at_next[STATE_CLEAR];
    walks_reg <= enters_walk || (walks_reg && !walk_ends);
    port_reg <= port_reg + 1'b1;
    if (enters_walk) port_reg <= at_next[STATE_LOAD] ? row_next : {PORT_BITS{1'b0}};

    if (at_reg[STATE_IDLE]) same_reg <= 1'b1;
    if (at_reg[STATE_CHECK] && valid_reg[2] && member_reg[2] && !equal) same_reg <= 1'b0;
    quiet_reg <= at_reg[STATE_QUIET] && !packets_busy ? quiet_reg + 3'd1 : 3'd0;
    set_up_reg <= at_reg[STATE_READY] && (set_up_reg || set_up);

    outstanding_reg <= outstanding;
    if (at_reg[STATE_CLEAR]) pending_reg <= outstanding;
    else if (packet_left && !left) pending_reg <= pending_reg - 8'd1;

    if (at_reg[STATE_READY]) rank_reg <= {PORT_BITS + 1{1'b0}};
    if (from_wr_en) rank_reg <= rank_reg + 1'b1;
    row_reg <= row_next;
    if (valid_reg[2]) begin
      same_ports_reg <= same_ports_reg >> 1;
      same_ports_reg[PORTS-1] <= equal && member_reg[2];
    end
    if (at_reg[STATE_LOAD] && valid_reg[2]) row_member_reg <= member_reg[2];

    if (answered && set_up_reg) closed_reg <= 1'b1;
    if (closes) closed_reg <= 1'b0;
    if (at_reg[STATE_STORE]) bound_reg[JOBS==1?0 : commit_job] <= 1'b1;
    if (rst) begin
      at_reg          <= ONE_STATE << STATE_IDLE;
      done_reg        <= 1'b0;
      hold_reg        <= 1'b0;
      walks_reg       <= 1'b0;
      closed_reg      <= 1'b0;
      outstanding_reg <= 8'd0;
      bound_reg       <= {JOBS{1'b0}};
    end
  end

  assign commit_ready = at_reg[STATE_READY];
  assign commit_done  = done_reg;
  assign members_same = same_reg;
  assign hold_packets = hold_reg;
`ifdef AGG_PARENT
  assign receives = answered && set_up_reg;
  assign sends    = at_reg[STATE_STORE] && final_row;
  assign partial  = closed_reg;
`endif

  // -- The table, for received packets ------------------------------------------------------------

  localparam integer FROM_WIDTH = 57 + PORT_BITS;

  wire [JOB_BITS+PORT_BITS-1:0] from_wr_addr = {commit_job, rank_reg[PORT_BITS-1:0]};
  wire [FROM_WIDTH-1:0] from_wr_data = {
    from_wr_valid, port_2_reg, mac_reg[55:48], address_reg[47:0]
  };

  genvar e;
  generate
    for (e = 0; e < ETHERNET; e = e + 1) begin : g_from
      wire [7:0] job = from_job[8*e+:8];
      wire [7:0] rank = from_rank[8*e+:8];
      wire [JOB_BITS-1:0] index = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];
      wire [FROM_WIDTH-1:0] from_row;
      reg known_reg;  // the row was written, and is whole
      reg found_reg;
      reg [FROM_WIDTH-2:0] row_found_reg;

      agg_ram #(
          .WIDTH    (FROM_WIDTH),
          .ADDR_BITS(JOB_BITS + PORT_BITS),
          .APART    (1)
      ) u_from (
          .clk    (clk),
          .wr_en  (from_wr_en),
          .wr_addr(from_wr_addr),
          .wr_data(from_wr_data),
          .rd_en  (from_en[e]),
          .rd_addr({index, rank[PORT_BITS-1:0]}),
          .rd_data(from_row)
      );

      always @(posedge clk) begin
        if (from_en[e]) begin
          known_reg <= {24'd0, job} < JOBS && {24'd0, rank} < PORTS && bound_reg[index] &&
              !(closed_reg && index == commit_job);
          found_reg <= known_reg && from_row[FROM_WIDTH-1];
          row_found_reg <= from_row[FROM_WIDTH-2:0];
        end
      end

      assign from_valid[e] = found_reg;
      assign from_ip[32*e+:32] = row_found_reg[31:0];
      assign from_port[16*e+:16] = row_found_reg[47:32];
      assign from_ethernet[8*e+:8] = row_found_reg[55:48];
      assign from_dest[PORT_BITS*e+:PORT_BITS] = row_found_reg[56+:PORT_BITS];
    end
  endgenerate

  // -- The table, for packets to members, and for the registers -----------------------------------

  wire [103:0] row = own_reg & {104{row_member_reg}};
  agg_ram #(
      .WIDTH    (104),
      .ADDR_BITS(JOB_BITS + PORT_BITS),
      .APART    (1)
  ) u_entries (
      .clk    (clk),
      .wr_en  (at_reg[STATE_STORE]),
      .wr_addr({commit_job, row_reg}),
      .wr_data(row),
      .rd_en  (1'b1),
      .rd_addr(entry_at),
      .rd_data(entry)
  );

  generate
    for (e = 0; e < ETHERNET; e = e + 1) begin : g_to
      wire [103+PORTS:0] to_row;
      reg [103+PORTS:0] to_reg;
      reg [JOBS*PORTS-1:0] here_reg;
      integer j, p;

      agg_ram #(
          .WIDTH    (104 + PORTS),
          .ADDR_BITS(JOB_BITS + PORT_BITS),
          .APART    (1)
      ) u_to (
          .clk    (clk),
          .wr_en  (at_reg[STATE_STORE]),
          .wr_addr({commit_job, row_reg}),
          .wr_data({same_ports_reg, row}),
          .rd_en  (to_en[e]),
          .rd_addr({to_job[JOB_BITS*e+:JOB_BITS], to_port[PORT_BITS*e+:PORT_BITS]}),
          .rd_data(to_row)
      );

      always @(posedge clk) begin
        if (to_en[e]) to_reg <= to_row;
        for (j = 0; j < JOBS; j = j + 1) begin
          for (p = 0; p < PORTS; p = p + 1) begin
            if (at_reg[STATE_STORE] && row_reg == p[PORT_BITS-1:0] &&
                (JOBS == 1 || commit_job == j[JOB_BITS-1:0]))
              here_reg[PORTS*j+p] <= row_member_reg && {24'd0, row[103:96]} == e;
          end
        end
        if (rst) here_reg <= {JOBS * PORTS{1'b0}};
      end

      assign to_ip[32*e+:32] = to_reg[31:0];
      assign to_udp_port[16*e+:16] = to_reg[47:32];
      assign to_mac[48*e+:48] = to_reg[95:48];
      assign to_ethernet[8*e+:8] = to_reg[103:96];
      assign to_same[PORTS*e+:PORTS] = to_reg[104+:PORTS];
      assign behind[JOBS*PORTS*e+:JOBS*PORTS] = here_reg;
    end
  endgenerate

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // A commit is under way; any rank and any port, and how often the commit has written it.
  (* anyconst *) reg [PORT_BITS-1:0] which;
  reg was_reset = 1'b0;
  reg under_way, answered_f, set_up_f;
  reg [JOB_BITS-1:0] its_job;
  reg [PORTS-1:0] its_ports;
  reg [1:0] rank_writes, port_writes;
  reg [3:0] held;  // cycles in a row with hold_packets and without packets_busy, saturating
  reg [7:0] started, left_f;  // packets since the reset, wrapping
  reg [7:0] started_then;  // when hold_packets fell
  reg ready_was;
  reg [7:0] members, below;  // ports of the commit, and those below the written one
  wire [7:0] rank = {{7 - PORT_BITS{1'b0}}, rank_reg};
  integer n;

  wire [2:0] token = {2'd0, walks_reg} + {2'd0, last_reg[0]} + {2'd0, last_reg[1]} +
      {2'd0, last_reg[2]};
  wire walking = at_reg[STATE_CHECK] || at_reg[STATE_RECEIVE] || at_reg[STATE_LOAD] ||
      at_reg[STATE_COMPARE];
  wire changes = at_reg[STATE_RECEIVE] || at_reg[STATE_CLEAR] || at_reg[STATE_LEAVE] ||
      at_reg[STATE_LOAD] || at_reg[STATE_COMPARE] || at_reg[STATE_STORE];

  always @* begin
    members = 8'd0;
    below   = 8'd0;
    for (n = 0; n < PORTS; n = n + 1) begin
      members = members + {7'd0, commit_ports[n]};
      if (n < port_2_reg) below = below + {7'd0, commit_ports[n]};
    end
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    ready_was <= commit_ready;
    under_way <= !rst && (commit_start || (under_way && !commit_done));
    if (commit_start) begin
      its_job   <= commit_job;
      its_ports <= commit_ports;
    end
    answered_f <= !rst && !commit_start && (answered_f || commit_answered);
    set_up_f   <= !rst && !commit_start && (set_up_f || set_up);
    if (from_wr_en && rank_reg[PORT_BITS-1:0] == which && rank_writes != 2'd3)
      rank_writes <= rank_writes + 2'd1;
    if (at_reg[STATE_STORE] && row_reg == which && port_writes != 2'd3)
      port_writes <= port_writes + 2'd1;
    if (commit_start || rst) rank_writes <= 2'd0;
    if (commit_start || rst) port_writes <= 2'd0;
    held <= rst || !hold_packets || packets_busy ? 4'd0 : held == 4'd15 ? held : held + 4'd1;
    started <= rst ? 8'd0 : started + {7'd0, packet_started};
    left_f <= rst ? 8'd0 : left_f + {7'd0, packet_left};
    if (hold_packets) started_then <= started + {7'd0, packet_started};
  end

  always @* begin
    assume (rst || was_reset);
    assume (which <= LAST);
    if (was_reset && !rst) begin
      // agg_network_registers: one commit at a time, which stays; no staged register changes meanwhile.
      `PROMISED(!commit_start || !under_way);
      `PROMISED(!(commit_start || under_way) || !(reg_write || clear));
      `PROMISED(!under_way || (commit_job == its_job && commit_ports == its_ports));
      `PROMISED(!commit_answered || (commit_ready && !set_up));
      `PROMISED({1'b0, reg_port} < PORTS[PORT_BITS:0]);
      // agg_jobs: a job is set up while the core has a commit, and not otherwise.
      `PROMISED(!set_up || commit_ready);
      // The shell: packets leave in order, after they were started.
      `PROMISED(!packet_left || outstanding_reg != 8'd0);
      `PROMISED(!packet_started || outstanding_reg != 8'd255);

      // The sequence
      assert ((at_reg & (at_reg - 1'b1)) == 0 && at_reg != 0);
      assert (at_reg[STATE_IDLE] == (!under_way || commit_done));
      assert (!commit_done || under_way);
      assert (token == (walking ? 3'd1 : 3'd0));
      assert (walking || valid_reg == 3'd0);
      assert ((last_reg & ~valid_reg) == 3'd0);
      assert (port_reg <= LAST || !walks_reg);
      if (walks_reg && !at_reg[STATE_LOAD]) assert (valid_reg[0] == (port_reg != 0));
      if (walks_reg && at_reg[STATE_LOAD]) assert (valid_reg == 3'd0 && port_reg == row_reg);
      if (!at_reg[STATE_LOAD]) begin
        if (walks_reg && valid_reg[0]) assert (port_1_reg + 1'b1 == port_reg);
        if (valid_reg[0]) assert (last_reg[0] == (port_1_reg == LAST) && port_1_reg <= LAST);
        if (valid_reg[1]) assert (last_reg[1] == (port_2_reg == LAST) && port_2_reg <= LAST);
        if (valid_reg[0] && valid_reg[1]) assert (port_2_reg + 1'b1 == port_1_reg);
        if (valid_reg[0] && !valid_reg[1]) assert (port_1_reg == 0);
        if (valid_reg[1] && !valid_reg[0]) assert (port_2_reg == LAST);
      end
      if (valid_reg[0]) assert (member_reg[0] == commit_ports[port_1_reg]);
      if (valid_reg[1]) assert (member_reg[1] == commit_ports[port_2_reg]);
      assert (row_reg <= LAST || !changes || at_reg[STATE_RECEIVE] || at_reg[STATE_CLEAR] ||
          at_reg[STATE_LEAVE]);

      // The core gets a commit when the packets that were looked up are judged.
      if (at_reg[STATE_QUIET]) assert (held == {1'b0, quiet_reg});
      if (commit_ready && !ready_was) assert (held >= 4'd8);

      // The table changes only if the job was set up, after the core's answer; if it was, all of it.
      assert (!changes || (answered_f && set_up_f));
      assert (closed_reg == changes);
      assert (!commit_done || port_writes == (set_up_f ? 2'd1 : 2'd0));
      assert (!commit_done || rank_writes == (set_up_f ? 2'd1 : 2'd0));
      if (at_reg[STATE_READY]) assert (set_up_reg == set_up_f && !answered_f);
      if (at_reg[STATE_CHECK] || at_reg[STATE_QUIET]) assert (!set_up_f && !answered_f);

      // For lookups, only while no packet is looked up: each rank is written once, in order, and is
      // that of its port.
      assert (!from_wr_en || (hold_packets && closed_reg));
      assert (!from_wr_valid || (commit_ports[port_2_reg] && below == rank));
      assert (!(at_reg[STATE_CLEAR] && from_wr_en) || rank >= members);
      if (at_reg[STATE_RECEIVE] && valid_reg[1]) assert (below == rank);
      if (at_reg[STATE_RECEIVE] && !valid_reg[1] && !last_reg[2]) assert (rank_reg == 0);
      if (at_reg[STATE_RECEIVE] && last_reg[2]) assert (members == rank);
      if (at_reg[STATE_RECEIVE] || at_reg[STATE_CLEAR])
        assert (rank_writes == (rank_reg > {1'b0, which} ? 2'd1 : 2'd0));
      if (at_reg[STATE_CLEAR]) assert (rank_reg <= PORTS[PORT_BITS:0]);
      if (at_reg[STATE_CLEAR]) assert (rank >= members);
      if (at_reg[STATE_LEAVE] || at_reg[STATE_LOAD] || at_reg[STATE_COMPARE] || at_reg[STATE_STORE])
        assert (rank_writes == 2'd1);
      if (at_reg[STATE_CHECK] || at_reg[STATE_QUIET] || at_reg[STATE_READY])
        assert (rank_writes == 0);
      // From then to the end, and in a lookup that begins then, this job has no entry.
      assert (hold_packets == (at_reg[STATE_QUIET] || at_reg[STATE_READY] ||
          at_reg[STATE_RECEIVE] || at_reg[STATE_CLEAR]));

      // For packets, when all that were started before have left: each port once.
      assert (outstanding_reg == started - left_f);
      if (at_reg[STATE_LEAVE])
        assert (pending_reg <= outstanding_reg && pending_reg ==
            ((started_then - left_f) <= outstanding_reg ? started_then - left_f : 8'd0));
      if (at_reg[STATE_LOAD] || at_reg[STATE_COMPARE] || at_reg[STATE_STORE])
        assert (pending_reg == 8'd0 && port_writes == (row_reg > which ? 2'd1 : 2'd0));
      if (walking && !changes || at_reg[STATE_QUIET] || at_reg[STATE_READY] ||
          at_reg[STATE_RECEIVE] || at_reg[STATE_CLEAR] || at_reg[STATE_LEAVE])
        assert (port_writes == 0);
    end
  end

  // A lookup of the job that began while its entries were not whole finds none.
  reg closed_lookup = 1'b0;
  always @(posedge clk) begin
    if (from_en[0])
      closed_lookup <= closed_reg && from_job[7:0] == {{8 - JOB_BITS{1'b0}}, commit_job};
  end
  always @* begin
    assert (!closed_lookup || !g_from[0].known_reg);
    cover (commit_done && set_up_f && was_reset && !rst);
    cover (commit_done && !set_up_f && was_reset && !rst);
    cover (at_reg[STATE_LEAVE] && pending_reg == 8'd1 && packet_left && packet_started && !rst);
  end
`endif

endmodule

`default_nettype wire
