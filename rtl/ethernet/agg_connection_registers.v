// The registers of RoCEv2, between agg_network_registers and the core's register port.
//
// Takes each access that agg_network_registers forwards, and answers those to the registers here:
// MEMBER_CONNECTION, JOB_CONNECTION, JOB_DISCONNECT, the counters of shell roce and, on a card
// with neighbours, NEIGHBOUR_ADDRESS and NEIGHBOUR_MAC. All others are the core's. An access is
// stable until it is answered, and may be withdrawn until it is taken: s_reg_valid falls.
//
// A commit of the owner waits for the checks of agg_connection_table. If they fail, it is answered
// here, and the core does not get it. If the core then sets the job up, the table takes the
// connections when the answer is taken.
//
// Staged values that the checks need, JOB_PORTS, JOB_CHUNK and whether JOB_DEADLINE allows
// partial sums, are copies of what the core took. clear makes them 0; reset_done clears the
// counters and neighbours, too, and all connections.
//
// Latency: 6 cycles from an access to its answer here; for the core's, 5 more than the core, and
// those of the checks of a commit. Not done here: senders (agg_network_registers), which mark an
// access of a stranger.

`default_nettype none

module agg_connection_registers #(
    parameter integer PORTS = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOBS = 1,
    parameter integer JOB_BITS = 1,  // width of a job number, at least 1
    parameter integer ETHERNET = 1,  // Ethernet ports
    parameter integer HAS_NEIGHBOURS = 0,
    parameter integer NEIGHBOURS = 1  // at least 1, also without
) (
    input wire clk,
    input wire rst,

    // From agg_network_registers
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    input  wire        s_reg_stranger,
    output wire        m_answer_valid,
    input  wire        m_answer_ready,
    output wire [ 7:0] m_answer_code,
    output wire [63:0] m_answer_value,
    input  wire        clear,           // the card has a new owner
    input  wire        reset_done,      // RESET is done

    // The core's register port; the rest of an access goes past here
    output wire            m_reg_valid,
    input  wire            m_reg_ready,
    input  wire            s_answer_valid,
    output wire            s_answer_ready,
    input  wire [     7:0] s_answer_code,
    input  wire [    63:0] s_answer_value,
    output wire            m_code_valid,    // a write was answered here: for LAST_CODE
    output wire [     7:0] m_code,
    input  wire            set_up,          // a pulse before the answer to a commit
    input  wire [JOBS-1:0] job_on,          // set up

    // agg_connection_table; its registers are read two cycles later
    output wire                 table_clear,
    output wire                 table_write,
    output wire                 table_registered,  // JOB_CONNECTION; otherwise MEMBER_CONNECTION
    output wire [ JOB_BITS-1:0] table_job,
    output wire [PORT_BITS-1:0] table_port,
    input  wire [         63:0] table_value,
    output wire                 check,
    output wire [ JOB_BITS-1:0] commit_job,
    output wire [    PORTS-1:0] commit_ports,
    output wire [         63:0] commit_chunk,
    output wire [         31:0] commit_first,
    output wire [         15:0] commit_epoch,
    output wire                 commit_partial,
    input  wire                 checked,
    input  wire                 good,
    output wire                 install,
    output wire                 remove,
    output wire [ JOB_BITS-1:0] remove_job,
    output wire                 remove_all,

    // Neighbours, number 0 in the lowest bits; the address is 0 for none
    output wire [32*NEIGHBOURS-1:0] neighbour_ip,
    output wire [48*NEIGHBOURS-1:0] neighbour_mac,

    // Events, for each Ethernet port: a frame was dropped for a reason of agg_roce_judge, 1 to 6;
    // one was relayed
    input wire [  ETHERNET-1:0] dropped,
    input wire [3*ETHERNET-1:0] reason,
    input wire [  ETHERNET-1:0] relayed,
    input wire                  early     // a sum was released early
);

  `include "zwire.vh"
  `include "zroce.vh"

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_DECODE = 1;
  localparam integer STATE_CHECK = 2;  // agg_connection_table checks a commit
  localparam integer STATE_OFFER = 3;  // the access is offered to the core
  localparam integer STATE_CORE = 4;  // the core has it
  localparam integer STATE_TAKE = 5;  // an access that is answered here is taken
  localparam integer STATE_ANSWER = 6;
  localparam integer STATES = 7;
  localparam [STATES-1:0] ONE_STATE = 1;

  localparam integer DROPS = 6;  // reasons: the first counters

  reg [STATES-1:0] at_reg;  // one-hot
  reg [2:0] age_reg;  // cycles in STATE_DECODE

  // -- Decoding: two cycles, of an access that is stable ------------------------------------------

  wire aligned = s_reg_addr[2:0] == 3'd0;
  wire [31:0] port_at = {26'd0, s_reg_addr[8:3]};
  wire [31:0] neighbour_at = {26'd0, s_reg_addr[9:4]};
  wire [31:0] job_at = {28'd0, s_reg_addr[12:9]};
  wire [31:0] counter_at = (s_reg_addr - REG_CONNECTION_COUNTERS) >> 3;
  reg is_member_reg, is_job_reg, is_counter_reg, is_neighbour_reg, is_disconnect_reg;
  reg is_commit_reg, is_number_reg, is_ports_reg, is_chunk_reg, is_deadline_reg;
  reg here_reg, writable_reg;
  reg [31:0] count_value_reg;
  reg [63:0] neighbour_reg;
  reg disconnect_bad_reg, disconnect_busy_reg;
  integer n;

  // -- Staged, neighbours, counters ---------------------------------------------------------------

  reg [PORTS-1:0] ports_reg;
  reg [63:0] chunk_reg;
  reg partial_reg;
  reg [32*NEIGHBOURS-1:0] ip_reg;
  reg [48*NEIGHBOURS-1:0] mac_reg;
  reg [32*CONNECTION_COUNTERS-1:0] count_reg;

  always @(posedge clk) begin
    is_member_reg <= aligned && s_reg_addr[31:9] == REG_MEMBER_CONNECTION[31:9] && port_at < PORTS;
    is_job_reg <= aligned && s_reg_addr[31:13] == REG_JOB_CONNECTION[31:13] && port_at < PORTS &&
        job_at < JOBS;
    is_counter_reg <= aligned && s_reg_addr >= REG_CONNECTION_COUNTERS &&
        counter_at < CONNECTION_COUNTERS;
    is_neighbour_reg <= aligned && s_reg_addr[31:10] == REG_NEIGHBOUR_ADDRESS[31:10] &&
        HAS_NEIGHBOURS != 0 && neighbour_at < NEIGHBOURS;
    is_disconnect_reg <= s_reg_addr == REG_JOB_DISCONNECT;
    is_commit_reg <= s_reg_addr == REG_JOB_COMMIT;
    is_number_reg <= {24'd0, s_reg_wdata[55:48]} < JOBS;
    is_ports_reg <= s_reg_addr == REG_JOB_PORTS;
    is_chunk_reg <= s_reg_addr == REG_JOB_CHUNK;
    is_deadline_reg <= s_reg_addr == REG_JOB_DEADLINE;
    here_reg <= is_member_reg || is_job_reg || is_counter_reg || is_neighbour_reg ||
        is_disconnect_reg;
    writable_reg <= is_member_reg || is_neighbour_reg || is_disconnect_reg;
    count_value_reg <= 32'd0;
    for (n = 0; n < CONNECTION_COUNTERS; n = n + 1) begin
      if (counter_at == n) count_value_reg <= count_reg[32*n+:32];
    end
    neighbour_reg <= 64'd0;
    for (n = 0; n < NEIGHBOURS; n = n + 1) begin
      if (neighbour_at == n)
        neighbour_reg <= s_reg_addr[3] ? {16'd0, mac_reg[48*n+:48]} : {32'd0, ip_reg[32*n+:32]};
    end
    disconnect_bad_reg  <= |s_reg_wdata[63:8] || {24'd0, s_reg_wdata[7:0]} >= JOBS;
    disconnect_busy_reg <= job_on[JOBS==1?0 : s_reg_wdata[JOB_BITS-1:0]];
  end

  // -- The sequence of an access ------------------------------------------------------------------

  reg [7:0] code_reg;
  reg [63:0] value_reg;
  reg set_up_reg;
  wire decoded = at_reg[STATE_DECODE] && age_reg == 3'd3;
  wire commits = is_commit_reg && s_reg_write && !s_reg_stranger && is_number_reg;
  wire answered = at_reg[STATE_CORE] && s_answer_valid && m_answer_ready;
  wire [STATES-1:0] at_next;

  assign at_next[STATE_IDLE] = (at_reg[STATE_IDLE] && !s_reg_valid) || answered ||
      (at_reg[STATE_ANSWER] && m_answer_ready) || (!s_reg_valid && (at_reg[STATE_DECODE] ||
      at_reg[STATE_CHECK] || at_reg[STATE_OFFER] || at_reg[STATE_TAKE]));
  assign at_next[STATE_DECODE] = s_reg_valid && (at_reg[STATE_IDLE] ||
      (at_reg[STATE_DECODE] && !decoded));
  assign at_next[STATE_CHECK] = s_reg_valid && ((decoded && commits) ||
      (at_reg[STATE_CHECK] && !checked));
  assign at_next[STATE_OFFER] = s_reg_valid && ((decoded && !here_reg && !commits) ||
      (at_reg[STATE_CHECK] && checked && good) || (at_reg[STATE_OFFER] && !m_reg_ready));
  assign at_next[STATE_CORE] = (at_reg[STATE_OFFER] && s_reg_valid && m_reg_ready) ||
      (at_reg[STATE_CORE] && !answered);
  assign at_next[STATE_TAKE] = s_reg_valid && ((decoded && here_reg) ||
      (at_reg[STATE_CHECK] && checked && !good));
  assign at_next[STATE_ANSWER] = (at_reg[STATE_TAKE] && s_reg_valid) ||
      (at_reg[STATE_ANSWER] && !m_answer_ready);

  wire takes = at_reg[STATE_TAKE] && s_reg_valid;
  wire acts = takes && s_reg_write && code_reg == CODE_DONE;

  always @(posedge clk) begin
    at_reg <= at_next;
    age_reg <= at_reg[STATE_DECODE] ? age_reg + 3'd1 : 3'd0;
    set_up_reg <= !at_reg[STATE_IDLE] && (set_up_reg || (set_up && is_commit_reg));
    if (at_reg[STATE_DECODE]) begin
      code_reg <= CODE_DONE;
      if (s_reg_write) begin
        if (!writable_reg) code_reg <= CODE_READ_ONLY;
        else if (s_reg_stranger) code_reg <= CODE_BUSY;
        else if (is_disconnect_reg && disconnect_bad_reg) code_reg <= CODE_BAD_JOB;
        else if (is_disconnect_reg && disconnect_busy_reg) code_reg <= CODE_BUSY;
      end
      value_reg <= 64'd0;
      if (is_counter_reg) value_reg <= {32'd0, count_value_reg};
      if (is_neighbour_reg) value_reg <= neighbour_reg;
      if (is_member_reg || is_job_reg) value_reg <= table_value;
    end
    if (at_reg[STATE_CHECK]) code_reg <= CODE_BAD_CONNECTION;
    if (takes && s_reg_write) begin
      value_reg <= 64'd0;
      if (code_reg == CODE_DONE && is_member_reg) value_reg <= {8'd0, s_reg_wdata[55:0]};
      if (code_reg == CODE_DONE && is_neighbour_reg)
        value_reg <= s_reg_addr[3] ? {16'd0, s_reg_wdata[47:0]} : {32'd0, s_reg_wdata[31:0]};
    end
    if (rst) at_reg <= ONE_STATE << STATE_IDLE;
  end

  assign s_reg_ready    = at_reg[STATE_OFFER] ? m_reg_ready : at_reg[STATE_TAKE];
  assign m_reg_valid    = at_reg[STATE_OFFER] && s_reg_valid;
  assign m_answer_valid = at_reg[STATE_CORE] ? s_answer_valid : at_reg[STATE_ANSWER];
  assign m_answer_code  = at_reg[STATE_CORE] ? s_answer_code : code_reg;
  assign m_answer_value = at_reg[STATE_CORE] ? s_answer_value : value_reg;
  assign s_answer_ready = at_reg[STATE_CORE] && m_answer_ready;
  assign m_code_valid   = takes && s_reg_write;
  assign m_code         = code_reg;

  // -- Effects ------------------------------------------------------------------------------------

  integer k;
  wire core_took = answered && s_reg_write && s_answer_code == CODE_DONE;

  always @(posedge clk) begin
    if (core_took && is_ports_reg) ports_reg <= s_reg_wdata[PORTS-1:0];
    if (core_took && is_chunk_reg) chunk_reg <= s_reg_wdata;
    if (core_took && is_deadline_reg) partial_reg <= s_reg_wdata[32];
    for (k = 0; k < NEIGHBOURS; k = k + 1) begin
      if (acts && is_neighbour_reg && neighbour_at == k) begin
        if (s_reg_addr[3]) mac_reg[48*k+:48] <= s_reg_wdata[47:0];
        else ip_reg[32*k+:32] <= s_reg_wdata[31:0];
      end
    end
    if (clear || reset_done || rst) begin
      ports_reg   <= {PORTS{1'b0}};
      chunk_reg   <= 64'd0;
      partial_reg <= 1'b0;
    end
    if (reset_done || rst) begin
      ip_reg  <= {32 * NEIGHBOURS{1'b0}};
      mac_reg <= {48 * NEIGHBOURS{1'b0}};
    end
  end

  assign table_clear      = clear || reset_done;
  assign table_write      = acts && is_member_reg;
  assign table_registered = is_job_reg;
  assign table_job        = s_reg_addr[9+:JOB_BITS];
  assign table_port       = s_reg_addr[3+:PORT_BITS];
  assign check            = at_reg[STATE_CHECK] && s_reg_valid;
  assign commit_job       = s_reg_wdata[48+:JOB_BITS];
  assign commit_ports     = ports_reg;
  assign commit_chunk     = chunk_reg;
  assign commit_first     = s_reg_wdata[31:0];
  assign commit_epoch     = s_reg_wdata[47:32];
  assign commit_partial   = partial_reg;
  assign install          = answered && (set_up_reg || (set_up && is_commit_reg));
  assign remove           = acts && is_disconnect_reg;
  assign remove_job       = s_reg_wdata[JOB_BITS-1:0];
  assign remove_all       = reset_done;
  assign neighbour_ip     = ip_reg;
  assign neighbour_mac    = mac_reg;

  // -- Counters -----------------------------------------------------------------------------------

  localparam integer MANY = $clog2(ETHERNET + 1);  // width of the events of a cycle
  reg [MANY*DROPS-1:0] drops, drops_reg;
  reg [MANY-1:0] relays, relays_reg;
  reg early_reg;
  integer e, d, c;

  always @* begin
    relays = {MANY{1'b0}};
    drops  = {MANY * DROPS{1'b0}};
    for (e = 0; e < ETHERNET; e = e + 1) begin
      relays = relays + {{MANY - 1{1'b0}}, relayed[e]};
      for (d = 0; d < DROPS; d = d + 1) begin
        drops[MANY*d+:MANY] = drops[MANY*d+:MANY] +
            {{MANY - 1{1'b0}}, dropped[e] && reason[3*e+:3] == d[2:0] + 3'd1};
      end
    end
  end

  always @(posedge clk) begin
    drops_reg  <= drops;
    relays_reg <= relays;
    early_reg  <= early;
    for (c = 0; c < DROPS; c = c + 1) begin
      count_reg[32*c+:32] <= count_reg[32*c+:32] + {{32 - MANY{1'b0}}, drops_reg[MANY*c+:MANY]};
    end
    count_reg[32*COUNT_RELEASED_EARLY+:32] <= count_reg[32*COUNT_RELEASED_EARLY+:32] +
        {31'd0, early_reg};
    count_reg[32*COUNT_RELAYED+:32] <= count_reg[32*COUNT_RELAYED+:32] +
        {{32 - MANY{1'b0}}, relays_reg};
    if (reset_done || rst) count_reg <= {32 * CONNECTION_COUNTERS{1'b0}};
  end

endmodule

`default_nettype wire
