// Register accesses of a card on a network: the registers of shell udp, the owner and its lease.
//
// Takes one access at a time with its sender, from a queue. It answers accesses to its own registers
// and forwards all others to the core; a register that neither has is the core's to refuse. An access
// stays until s_access_ready, which comes when its reply is ready. The reply goes to the sender, and
// the next access waits until it has been taken at m_reply.
//
// Owner: a forwarded write to OWNER that takes the card makes its sender the owner. The staged
// registers, the core's and MEMBER, are cleared then, and LEASE has its default. While the card is
// owned, a write from any other IPv4 address, UDP port or Ethernet port is a stranger's, and refused
// as busy; otherwise every write but those of OWNER, RELEASE and RESET is. The core decides that for
// its own registers, from m_reg_stranger, after its checks of the address.
//
// Lease: each access of the owner restarts it. LEASE cycles after the last one, lease_over is high
// for one cycle, and agg_link_session then lets link_down rise as if a host were gone: that clears
// OWNER, ends all jobs, and makes the core answer busy to an operation under way. While link_down is
// high, no access begins or is forwarded; one that was withdrawn is decided upon again. So a lease
// may end in any cycle of any access.
//
// A commit of the owner goes through agg_member_table before and after the core has it.
//
// CARD_ADDRESS and CARD_MAC take effect at own_* when the reply has been taken; the reply itself
// leaves with the old address, if m_reply_ready is high no sooner than that is so.
//
// Latency: 11 cycles from an access to the reply for registers here; the core's and 17 for others.
// Not done here: counting (agg_network_counters), dropping accesses (the shell's queue).

`default_nettype none

module agg_network_registers #(
    parameter [47:0] OWN_MAC = 48'h025452000001,  // first byte highest
    parameter [31:0] OWN_IP = 32'h0a000001,
    parameter [15:0] OWN_PORT = 16'h5442,
    parameter [40:0] LEASE_DEFAULT = 41'd625000000,  // cycles
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1  // width of a job number, at least 1
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // An access and its sender, stable until ready
    input  wire        s_access_valid,
    output wire        s_access_ready,
    input  wire        s_access_write,
    input  wire [31:0] s_access_addr,
    input  wire [15:0] s_access_tag,
    input  wire [63:0] s_access_wdata,
    input  wire [47:0] s_access_mac,
    input  wire [31:0] s_access_ip,
    input  wire [15:0] s_access_port,
    input  wire [ 7:0] s_access_ethernet,

    // The core's registers
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire        m_reg_write,
    output wire [31:0] m_reg_addr,
    output wire [63:0] m_reg_wdata,
    output wire        m_reg_stranger,
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire [ 7:0] s_reg_code,
    input  wire [63:0] s_reg_value,
    output wire        m_code_valid,    // a write was answered here: for LAST_CODE
    output wire [ 7:0] m_code,
    input  wire        owned,           // OWNER is not zero, at most three cycles later
    input  wire        clear_counters,  // RESET is done
    output wire        clear_staged,    // the card has a new owner

    // The reply and where it goes
    output wire         m_reply_valid,
    input  wire         m_reply_ready,
    output wire [175:0] m_reply_header,
    output wire [ 47:0] m_reply_mac,
    output wire [ 31:0] m_reply_ip,
    output wire [ 15:0] m_reply_port,
    output wire [  7:0] m_reply_ethernet,

    output wire [47:0] own_mac,
    output wire [31:0] own_ip,
    output wire [15:0] own_port,
    output wire        lease_over,

    // agg_member_table
    output wire                 table_clear,
    output wire                 table_write,
    output wire                 table_jobs,       // JOB_*; otherwise MEMBER_*
    output wire                 table_mac,
    output wire [ JOB_BITS-1:0] table_job,
    output wire [PORT_BITS-1:0] table_port,
    input  wire [         63:0] table_value,
    output wire                 commit_start,
    output wire [ JOB_BITS-1:0] commit_job,
    input  wire                 commit_ready,
    output wire                 commit_answered,
    input  wire                 commit_done,
`ifdef AGG_PARENT

    // agg_parent_table, which has table_clear and table_mac as well
    output wire        parent_write,
    input  wire [63:0] parent_value,
`endif

    // agg_network_counters
    output wire [ 4:0] count_index,
    input  wire [31:0] count_value
);

  `include "zwire.vh"
  `include "znetwork.vh"
`ifdef AGG_PARENT
  `include "ztrees.vh"
`endif

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_DECIDE = 1;
  localparam integer STATE_ACT = 2;  // an access to a register here takes effect
  localparam integer STATE_PREPARE = 3;  // agg_member_table prepares a commit
  localparam integer STATE_FORWARD = 4;  // the access is offered to the core
  localparam integer STATE_ANSWER = 5;  // the core has it
  localparam integer STATE_SETTLE = 6;  // owned follows
  localparam integer STATE_FINISH = 7;  // agg_member_table finishes a commit
  localparam integer STATE_REPLY = 8;  // the reply is ready
  localparam integer STATE_LEAVE = 9;  // until it is taken
  localparam integer STATES = 10;
  localparam [STATES-1:0] ONE_STATE = 1;

  localparam [2:0] HEARD_STEP = 3'd3;  // of STATE_DECIDE: from_owner_reg is the access'
  localparam [2:0] LAST_STEP = 3'd7;  // of STATE_DECIDE: everything is
  localparam [2:0] LAST_SETTLE = 3'd5;

  // Registers here, by place in at_reg. Those from AT_LEASE on can be written.
  localparam integer AT_SOURCE = 0;
  localparam integer AT_SOURCE_MAC = 1;
  localparam integer AT_JOB = 2;
  localparam integer AT_COUNTER = 3;
  localparam integer AT_LEASE = 4;
  localparam integer AT_CARD_ADDRESS = 5;
  localparam integer AT_CARD_MAC = 6;
  localparam integer AT_MEMBER = 7;
`ifdef AGG_PARENT
  localparam integer AT_PARENT = 8;
  localparam integer PLACES = 9;
`else
  localparam integer PLACES = 8;
`endif

  reg [STATES-1:0] at_state_reg;  // one-hot
  reg [2:0] step_reg;

  reg [31:0] owner_ip_reg;  // the owner's address, while the card is owned
  reg [15:0] owner_port_reg;
  reg [7:0] owner_ethernet_reg;
  reg [40:0] lease_reg;
  reg [47:0] card_address_reg;
  reg [55:0] card_mac_reg;
  reg [47:0] own_address_reg, own_mac_reg;

  // -- Decoding: each register follows the access, which is stable --------------------------------

  // Cycle 1: parts of the address, and bytes
  wire aligned = s_access_addr[2:0] == 3'd0;
  wire [31:0] low_place = {22'd0, s_access_addr[9:3], 3'd0};
  wire [5:0] count_number = s_access_addr[8:3];
  wire [6:0] port_number = {1'b0, s_access_addr[9:4]};
  wire [4:0] job_number = {1'b0, s_access_addr[13:10]};
  reg is_low_reg, is_member_reg, is_job_reg, is_counter_reg;
  reg low_lease_reg, low_source_reg, low_source_mac_reg, low_card_reg, low_card_mac_reg;
  reg low_owner_reg, low_free_reg, low_commit_reg;
`ifdef AGG_PARENT
  reg low_parent_reg;
`endif
  reg [6:0] differs_reg;  // from the owner, by byte
  reg [5:0] lease_bytes_reg;  // of the value: bytes 0 to 4 are not zero, and nor are the bits above
  reg lease_high_reg;  // bit 40
  reg job_exists_reg;  // of a commit
  reg [4:0] count_place_reg;
  integer b;

  always @(posedge clk) begin
    is_low_reg <= aligned && s_access_addr[31:10] == 22'd0;
    is_member_reg <= aligned && s_access_addr[31:10] == REG_MEMBER_ADDRESS[31:10];
    is_job_reg <= aligned && s_access_addr[31:14] == REG_JOB_ADDRESS[31:14];
    is_counter_reg <= aligned && s_access_addr[31:9] == REG_COUNTERS[31:9];
    low_lease_reg <= low_place == REG_LEASE;
    low_source_reg <= low_place == REG_SOURCE;
    low_source_mac_reg <= low_place == REG_SOURCE_MAC;
    low_card_reg <= low_place == REG_CARD_ADDRESS;
    low_card_mac_reg <= low_place == REG_CARD_MAC;
    low_owner_reg <= low_place == REG_OWNER;
    low_free_reg <= low_place == REG_RELEASE || low_place == REG_RESET;
    low_commit_reg <= low_place == REG_JOB_COMMIT;
`ifdef AGG_PARENT
    low_parent_reg <= low_place == REG_PARENT_ADDRESS || low_place == REG_PARENT_MAC;
`endif
    for (b = 0; b < 4; b = b + 1) begin
      differs_reg[b] <= s_access_ip[8*b+:8] != owner_ip_reg[8*b+:8];
    end
    differs_reg[4] <= s_access_port[7:0] != owner_port_reg[7:0];
    differs_reg[5] <= s_access_port[15:8] != owner_port_reg[15:8];
    differs_reg[6] <= s_access_ethernet != owner_ethernet_reg;
    for (b = 0; b < 5; b = b + 1) lease_bytes_reg[b] <= |s_access_wdata[8*b+:8];
    lease_bytes_reg[5] <= |s_access_wdata[63:41];
    lease_high_reg <= s_access_wdata[40];
    job_exists_reg <= {24'd0, s_access_wdata[55:48]} < JOBS;
    count_place_reg <= count_number[4:0] - COUNTERS[4:0];
  end

  // Cycle 2: which register it is, and whose access
  reg port_exists_reg, table_exists_reg, count_exists_reg;
  reg [PLACES-1:0] at_reg;
  reg takes_reg, frees_reg, commits_reg;  // a write to OWNER; to RELEASE or RESET; to JOB_COMMIT
  reg from_owner_reg;
  reg lease_bad_reg;

  always @(posedge clk) begin
    port_exists_reg <= {25'd0, port_number} < PORTS;
    table_exists_reg <= {27'd0, job_number} < JOBS;
    count_exists_reg <= {26'd0, count_number} >= COUNTERS &&
        {26'd0, count_number} < COUNTERS + NETWORK_COUNTERS;
    at_reg[AT_SOURCE] <= is_low_reg && low_source_reg;
    at_reg[AT_SOURCE_MAC] <= is_low_reg && low_source_mac_reg;
    at_reg[AT_JOB] <= is_job_reg && port_exists_reg && table_exists_reg;
    at_reg[AT_COUNTER] <= is_counter_reg && count_exists_reg;
    at_reg[AT_LEASE] <= is_low_reg && low_lease_reg;
    at_reg[AT_CARD_ADDRESS] <= is_low_reg && low_card_reg;
    at_reg[AT_CARD_MAC] <= is_low_reg && low_card_mac_reg;
    at_reg[AT_MEMBER] <= is_member_reg && port_exists_reg;
`ifdef AGG_PARENT
    at_reg[AT_PARENT] <= is_low_reg && low_parent_reg;
`endif
    takes_reg <= is_low_reg && low_owner_reg && s_access_write;
    frees_reg <= is_low_reg && low_free_reg && s_access_write;
    commits_reg <= is_low_reg && low_commit_reg && s_access_write && job_exists_reg;
    from_owner_reg <= differs_reg == 7'd0;
    lease_bad_reg <= lease_bytes_reg[5] || (lease_high_reg && |lease_bytes_reg[4:0]) ||
        (!lease_high_reg && !(|lease_bytes_reg[4:0]));
  end

  // Cycle 3: may it write
  reg here_reg, writable_reg, stranger_reg;

  always @(posedge clk) begin
    here_reg     <= |at_reg;
    writable_reg <= |at_reg[PLACES-1:AT_LEASE];
    stranger_reg <= s_access_write && (owned ? !from_owner_reg : !(takes_reg || frees_reg));
  end

  // Later, when the table's and the counters' values are there: the reply, if the register is here
  reg [7:0] code_next;
  reg [63:0] value_next;
  reg [7:0] code_reg;
  reg [63:0] value_reg;
  reg writes_reg;

  always @* begin
    code_next = CODE_DONE;
    if (s_access_write) begin
      if (!writable_reg) code_next = CODE_READ_ONLY;
      else if (stranger_reg) code_next = CODE_BUSY;
      else if (at_reg[AT_LEASE] && lease_bad_reg) code_next = CODE_BAD_DEADLINE;
    end
    value_next =
        {64{at_reg[AT_SOURCE]}} & {16'd0, s_access_port, s_access_ip} |
        {64{at_reg[AT_SOURCE_MAC]}} & {8'd0, s_access_ethernet, s_access_mac} |
        {64{at_reg[AT_JOB] || at_reg[AT_MEMBER]}} & table_value |
        {64{at_reg[AT_COUNTER]}} & {32'd0, count_value} |
`ifdef AGG_PARENT
        {64{at_reg[AT_PARENT]}} & parent_value |
`endif
        {64{at_reg[AT_LEASE]}} & {23'd0, lease_reg} |
        {64{at_reg[AT_CARD_ADDRESS]}} & {16'd0, card_address_reg} |
        {64{at_reg[AT_CARD_MAC]}} & {8'd0, card_mac_reg};
    if (s_access_write) begin
      value_next = s_access_wdata;
      if (at_reg[AT_CARD_ADDRESS]) value_next[63:48] = 16'd0;
      if (at_reg[AT_CARD_MAC]) value_next[63:56] = 8'd0;
    end
  end

  assign table_jobs  = s_access_addr[18];  // where JOB_ADDRESS and MEMBER_ADDRESS differ
  assign table_mac   = s_access_addr[3];
  assign table_job   = s_access_addr[10+:JOB_BITS];
  assign table_port  = s_access_addr[4+:PORT_BITS];
  assign count_index = count_place_reg;
  assign commit_job  = s_access_wdata[48+:JOB_BITS];

  // -- The sequence of an access ------------------------------------------------------------------

  reg prepared_reg;  // agg_member_table waits for the core's answer

  wire idle = at_state_reg[STATE_IDLE];
  wire decided = at_state_reg[STATE_DECIDE] && step_reg == LAST_STEP && !link_down;
  wire prepares = commits_reg && !stranger_reg;
  wire accepted = m_reg_valid && m_reg_ready;
  wire withdrawn = at_state_reg[STATE_FORWARD] && link_down && !prepared_reg;
  wire answered = at_state_reg[STATE_ANSWER] && s_reg_valid;
  wire settled = at_state_reg[STATE_SETTLE] && step_reg == LAST_SETTLE;
  wire replied = m_reply_valid && m_reply_ready;

  wire [STATES-1:0] at_next;
  assign at_next[STATE_IDLE] = (idle && !s_access_valid) || (at_state_reg[STATE_LEAVE] && replied);
  assign at_next[STATE_DECIDE] = (idle && s_access_valid) || withdrawn ||
      (at_state_reg[STATE_DECIDE] && !decided);
  assign at_next[STATE_ACT] = decided && here_reg;
  assign at_next[STATE_PREPARE] = (decided && !here_reg && prepares) ||
      (at_state_reg[STATE_PREPARE] && !commit_ready);
  assign at_next[STATE_FORWARD] = (decided && !here_reg && !prepares) ||
      (at_state_reg[STATE_PREPARE] && commit_ready) ||
      (at_state_reg[STATE_FORWARD] && !accepted && !withdrawn);
  assign at_next[STATE_ANSWER] = accepted || (at_state_reg[STATE_ANSWER] && !answered);
  assign at_next[STATE_SETTLE] = answered || (at_state_reg[STATE_SETTLE] && !settled);
  assign at_next[STATE_FINISH] = (settled && prepared_reg) ||
      (at_state_reg[STATE_FINISH] && !commit_done);
  assign at_next[STATE_REPLY] = at_state_reg[STATE_ACT] || (settled && !prepared_reg) ||
      (at_state_reg[STATE_FINISH] && commit_done);
  assign at_next[STATE_LEAVE] = at_state_reg[STATE_REPLY] ||
      (at_state_reg[STATE_LEAVE] && !replied);

  always @(posedge clk) begin
    at_state_reg <= at_next;
    step_reg     <= step_reg + 3'd1;
    if (at_next != at_state_reg || (at_state_reg[STATE_DECIDE] && link_down)) step_reg <= 3'd0;
    if (at_state_reg[STATE_DECIDE]) begin
      prepared_reg <= decided && !here_reg && prepares;
      code_reg     <= code_next;
      value_reg    <= code_next == CODE_DONE ? value_next : 64'd0;
      writes_reg   <= s_access_write && code_next == CODE_DONE;
    end
    if (answered) begin
      code_reg  <= s_reg_code;
      value_reg <= s_reg_value;
    end
    if (rst) at_state_reg <= ONE_STATE << STATE_IDLE;
  end

  assign s_access_ready  = at_state_reg[STATE_REPLY];
  assign m_reg_valid     = at_state_reg[STATE_FORWARD] && !link_down;
  assign m_reg_write     = s_access_write;
  assign m_reg_addr      = s_access_addr;
  assign m_reg_wdata     = s_access_wdata;
  assign m_reg_stranger  = stranger_reg;
  assign s_reg_ready     = at_state_reg[STATE_ANSWER];
  assign m_code_valid    = at_state_reg[STATE_ACT] && s_access_write;
  assign m_code          = code_reg;
  assign commit_start    = decided && !here_reg && prepares;
  assign commit_answered = settled && prepared_reg;
  assign table_write     = at_state_reg[STATE_ACT] && writes_reg && at_reg[AT_MEMBER];
`ifdef AGG_PARENT
  assign parent_write    = at_state_reg[STATE_ACT] && writes_reg && at_reg[AT_PARENT];
`endif

  // -- The card's own address ---------------------------------------------------------------------

  wire acts = at_state_reg[STATE_ACT] && writes_reg;

  always @(posedge clk) begin
    if (acts && at_reg[AT_CARD_ADDRESS]) card_address_reg <= s_access_wdata[47:0];
    if (acts && at_reg[AT_CARD_MAC]) card_mac_reg <= s_access_wdata[55:0];
    if (replied) begin
      own_address_reg <= card_address_reg;
      own_mac_reg     <= card_mac_reg[47:0];
    end
    if (rst) begin
      card_address_reg <= {OWN_PORT, OWN_IP};
      card_mac_reg     <= {8'd0, OWN_MAC};
      own_address_reg  <= {OWN_PORT, OWN_IP};
      own_mac_reg      <= OWN_MAC;
    end
  end

  assign own_mac            = own_mac_reg;
  assign {own_port, own_ip} = own_address_reg;

  // -- The owner and its lease --------------------------------------------------------------------

  reg leased_reg;  // the owner is known
  wire takes = settled && takes_reg && owned && !leased_reg;
  wire heard = at_state_reg[STATE_DECIDE] && step_reg == HEARD_STEP && from_owner_reg;
  reg [40:0] silent_reg;  // cycles since the owner's last access
  reg over_reg;
  reg ended_reg;  // OWNER is about to fall
  reg clears_reg;

  always @(posedge clk) begin
    if (takes) begin
      owner_ip_reg       <= s_access_ip;
      owner_port_reg     <= s_access_port;
      owner_ethernet_reg <= s_access_ethernet;
    end
    clears_reg <= takes && !rst;

    if (acts && at_reg[AT_LEASE]) lease_reg <= s_access_wdata[40:0];
    if (takes || clear_counters || rst) lease_reg <= LEASE_DEFAULT;

    leased_reg <= takes || (leased_reg && owned);
    silent_reg <= heard || !leased_reg ? 41'd0 : silent_reg + 41'd1;
    over_reg   <= leased_reg && !heard && silent_reg >= lease_reg;
    ended_reg  <= leased_reg && (ended_reg || over_reg);
    if (rst) begin
      leased_reg <= 1'b0;
      over_reg   <= 1'b0;
      ended_reg  <= 1'b0;
    end
  end

  assign lease_over   = over_reg && leased_reg && !ended_reg;
  assign clear_staged = clears_reg;
  assign table_clear  = clears_reg || clear_counters;

  // -- The reply ----------------------------------------------------------------------------------

  reg [31:0] reply_addr_reg, reply_ip_reg;
  reg [15:0] reply_tag_reg, reply_port_reg;
  reg [47:0] reply_mac_reg;
  reg [ 7:0] reply_ethernet_reg;

  always @(posedge clk) begin
    if (at_state_reg[STATE_REPLY]) begin
      reply_addr_reg     <= s_access_addr;
      reply_tag_reg      <= s_access_tag;
      reply_mac_reg      <= s_access_mac;
      reply_ip_reg       <= s_access_ip;
      reply_port_reg     <= s_access_port;
      reply_ethernet_reg <= s_access_ethernet;
    end
  end

  assign m_reply_valid = at_state_reg[STATE_LEAVE];
  assign m_reply_mac = reply_mac_reg;
  assign m_reply_ip = reply_ip_reg;
  assign m_reply_port = reply_port_reg;
  assign m_reply_ethernet = reply_ethernet_reg;

  // A reply does not use job, format, epoch and rank.
  assign m_reply_header = {
    value_reg,
    reply_tag_reg,
    reply_addr_reg,
    code_reg,
    8'd0,
    16'd0,
    8'd0,
    8'd0,
    8'd0,
    KIND_REPLY,
    VERSION
  };

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg [4:0] age;  // cycles for which the access is here, saturating
  reg [215:0] access_was;
  reg waited_was;  // the access was not taken in the last cycle
  reg asked;  // the core has an access, and has not answered it
  reg forwarded;  // the core had this access
  reg reply_due;  // an access was taken, and its reply was not
  reg [175:0] reply;
  reg [103:0] reply_to;
  reg [71:0] answer;  // the core's
  reg [95:0] own_was;
  reg replied_was;
  reg over_was;
  reg preparing;  // commit_start came, and commit_done did not
  wire [215:0] access = {
    s_access_write,
    s_access_addr,
    s_access_tag,
    s_access_wdata,
    s_access_mac[46:0],
    s_access_ip,
    s_access_port,
    s_access_ethernet
  };
  wire same = s_access_ip == owner_ip_reg && s_access_port == owner_port_reg &&
      s_access_ethernet == owner_ethernet_reg;
  wire may_take = s_access_addr == REG_OWNER || s_access_addr == REG_RELEASE ||
      s_access_addr == REG_RESET;
  wire deciding = at_state_reg[STATE_DECIDE];
  reg owned_1, owned_2;  // owned in the cycles before
  reg owner_written;  // the last access of the core was a write to OWNER, of a sender who may

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    waited_was  <= !rst && s_access_valid && !s_access_ready;
    access_was  <= access;
    asked       <= !rst && (accepted || (asked && !(s_reg_valid && s_reg_ready)));
    forwarded   <= !rst && !s_access_ready && (forwarded || accepted);
    reply_due   <= !rst && (s_access_ready || (reply_due && !replied));
    if (s_reg_valid && s_reg_ready) answer <= {s_reg_code, s_reg_value};
    if (s_access_ready) begin
      reply                     <= 176'd0;
      reply[3:0]                <= VERSION;
      reply[7:4]                <= KIND_REPLY;
      reply[HDR_VID_LSB+:32]    <= s_access_addr;
      reply[HDR_LENGTH_LSB+:16] <= s_access_tag;
      reply_to                  <= {s_access_mac, s_access_ip, s_access_port, s_access_ethernet};
    end
    own_was <= {own_mac, own_ip, own_port};
    replied_was <= replied;
    over_was <= !rst && lease_over;
    preparing <= !rst && (commit_start || (preparing && !commit_done));
    owned_1 <= owned;
    owned_2 <= owned_1;
    age <= rst || !s_access_valid || s_access_ready || idle ? 5'd0 : age + {4'd0, age != 5'd31};
    if (accepted) owner_written <= s_access_write && s_access_addr == REG_OWNER && !m_reg_stranger;
  end

  always @* begin
    assume (rst || was_reset);
    if (was_reset && running_was && !rst) begin
      // The queue: an access stays until it is taken.
      `PROMISED(!waited_was || (s_access_valid && access == access_was));
    end
    if (was_reset && !rst) begin
      // agg_registers: only an accepted access is answered.
      `PROMISED(!s_reg_valid || asked);
      `PROMISED(running_was || !owned);  // a reset takes three cycles or more
      // OWNER is written by such an access alone, and owned follows within the cycles of SETTLE.
      `PROMISED(
          !owned || owned_1 || (owner_written && (asked ||
          (at_state_reg[STATE_SETTLE] && step_reg < LAST_SETTLE))));
      // agg_member_table
      `PROMISED(!commit_ready || preparing);
      `PROMISED(!commit_done || (preparing && at_state_reg[STATE_FINISH]));

      // One access at a time. The core has it once, and its answer is taken at once.
      assert ((at_state_reg & (at_state_reg - 1'b1)) == 0 && at_state_reg != 0);
      assert (asked == at_state_reg[STATE_ANSWER] && (!asked || forwarded));
      assert (!m_reg_valid || (s_access_valid && !forwarded && !link_down && !reply_due));
      assert (!m_reg_valid || {m_reg_write, m_reg_addr, m_reg_wdata} ==
          {s_access_write, s_access_addr, s_access_wdata});
      assert (s_reg_ready == asked);
      if (at_state_reg[STATE_SETTLE] || at_state_reg[STATE_FINISH])
        assert (forwarded && {code_reg, value_reg} == answer);
      assert (!forwarded || at_state_reg[STATE_ANSWER] || at_state_reg[STATE_SETTLE] ||
          at_state_reg[STATE_FINISH] || at_state_reg[STATE_REPLY]);
      assert (s_access_valid || at_state_reg[STATE_IDLE] || at_state_reg[STATE_LEAVE]);
      // A write is answered by the core, or here, and LAST_CODE follows.
      assert (!m_code_valid || (!forwarded && s_access_write && !asked));
      if (at_state_reg[STATE_ACT] || at_state_reg[STATE_DECIDE]) assert (!forwarded);

      // A reply for each access, to its sender. It stays, and the next access waits for it.
      assert (m_reply_valid == reply_due);
      assert (!reply_due || !s_access_ready);
      if (reply_due) begin
        assert ({m_reply_mac, m_reply_ip, m_reply_port, m_reply_ethernet} == reply_to);
        assert ({m_reply_header[175:HDR_MASK_LSB], m_reply_header[HDR_CODE_LSB+:8]} ==
            {value_reg, code_reg});
        assert (m_reply_header[HDR_VID_LSB+:32] == reply[HDR_VID_LSB+:32]);
        assert (m_reply_header[HDR_LENGTH_LSB+:16] == reply[HDR_LENGTH_LSB+:16]);
      end

      // The card's own address changes when a reply was taken.
      if (running_was) assert (replied_was || {own_mac, own_ip, own_port} == own_was);

      // The sender decides, by the owner of the cycle before the decision.
      if (deciding) assert (age >= {2'd0, step_reg});
      if (s_access_valid && !idle && !at_state_reg[STATE_LEAVE] && !deciding) assert (age >= 5'd8);
      if (m_reg_valid) assert (m_reg_stranger == (s_access_write && (owned_1 ? !same : !may_take)));
      if (at_state_reg[STATE_ACT] && writes_reg) assert (s_access_write && owned_2 && same);
      assert (!table_write || (at_state_reg[STATE_ACT] && writes_reg));
      assert (!clears_reg || owner_written);
      assert (!owned || leased_reg || (owner_written && (asked || at_state_reg[STATE_SETTLE])));
      if (asked || at_state_reg[STATE_SETTLE])
        assert (!owner_written || (s_access_write && s_access_addr == REG_OWNER));

      // A lease ends once, of a known owner alone.
      assert (!lease_over || (leased_reg && !over_was));
      assert (!(over_was && leased_reg) || ended_reg);

      // A commit
      assert (preparing == (at_state_reg[STATE_PREPARE] || at_state_reg[STATE_FINISH] ||
          (prepared_reg && (at_state_reg[STATE_FORWARD] || at_state_reg[STATE_ANSWER] ||
          at_state_reg[STATE_SETTLE]))));
      if (at_state_reg[STATE_PREPARE] || at_state_reg[STATE_FINISH]) assert (prepared_reg);
      assert (!commit_answered || forwarded);
    end
  end

  always @* begin
    cover (was_reset && !rst && withdrawn);
    cover (was_reset && !rst && takes);
    cover (was_reset && !rst && lease_over);
    cover (was_reset && !rst && commit_done && at_state_reg[STATE_FINISH]);
    cover (was_reset && !rst && at_state_reg[STATE_ACT] && code_reg == CODE_BUSY);
  end
`endif

endmodule

`default_nettype wire
