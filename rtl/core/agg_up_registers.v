// The registers of trees of cards, in front of agg_registers, and the counters of the up port.
//
// Takes one access at a time at s_reg. It answers those to its own registers, and forwards all others
// to agg_registers; a register that neither has is refused there. Replies are in order. The code of a
// write that is answered here goes to m_code, for LAST_CODE.
//
// The staged registers are cleared after a reset, by RESET and when OWNER is taken. A write is refused
// as busy if the link is down before it takes effect, or if it is a stranger's.
//
// Latency: 6 cycles from access to reply here; 3 more than agg_registers for others. Not done here:
// checks of a commit, MEMBER_RANKS and JOB_RANKS (agg_up_jobs).

`default_nettype none

module agg_up_registers #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,  // width of a port's number, at least 1
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    input  wire        s_reg_partial,
    input  wire        s_reg_stranger,
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

    // agg_registers
    output wire        core_valid,
    input  wire        core_ready,
    output wire        core_write,
    output wire [31:0] core_addr,
    output wire [63:0] core_wdata,
    output wire        core_partial,
    output wire        core_stranger,
    input  wire        answer_valid,
    output wire        answer_ready,
    input  wire [ 7:0] answer_code,
    input  wire [63:0] answer_value,
    output wire        m_code_valid,
    output wire [ 7:0] m_code,
    input  wire        owned,          // OWNER is not zero
    input  wire        clear_counters, // RESET is done

    // Staged
    output wire [         63:0] parent,
    output wire [         63:0] repeats,
    output wire [         63:0] tree,
    output wire                 clear_staged,
    output wire                 ranks_write,
    output wire [PORT_BITS-1:0] ranks_port,
    output wire [         63:0] ranks_wdata,
    output wire                 ranks_of_job,
    output wire [ JOB_BITS-1:0] ranks_job,
    input  wire [         63:0] ranks_value,

    // Jobs, job 0 in the lowest bits
    input wire [32*JOBS-1:0] job_up,
    input wire [64*JOBS-1:0] job_tree_ranks,
    input wire [40*JOBS-1:0] job_refusal,

    // Events
    input wire up_sent,
    input wire repeats_sum,
    input wire repeats_finish,
    input wire up_taken,
    input wire up_dropped,
    input wire up_refused
);

  `include "zwire.vh"
  `include "ztrees.vh"

  localparam integer STATE_IDLE = 0;
  localparam integer STATE_DECODE = 1;
  localparam integer STATE_READ = 2;  // a register here is read
  localparam integer STATE_ACT = 3;  // and written
  localparam integer STATE_FORWARD = 4;  // the access is offered to agg_registers
  localparam integer STATE_ANSWER = 5;  // agg_registers has it
  localparam integer STATE_REPLY = 6;  // until the answer is taken
  localparam integer STATES = 7;
  localparam [STATES-1:0] ONE_STATE = 1;

  reg [STATES-1:0] at_reg;  // one-hot
  reg step_reg;  // of STATE_DECODE and STATE_READ
  reg write_reg, partial_reg, stranger_reg;
  reg cut_reg;  // the link went down during the access
  reg [31:0] addr_reg;
  reg [63:0] data_reg;
  reg [7:0] code_reg;
  reg [63:0] value_reg;
  reg [63:0] parent_reg, repeats_reg, tree_reg;

  // -- Decode -------------------------------------------------------------------------------------

  // Step 0: parts of the address. Step 1: which register it is
  wire aligned = addr_reg[2:0] == 3'd0;
  wire [31:0] job_place = {REG_JOBS_BASE[31:8], addr_reg[7:0]};
  reg low_reg, job_reg, counter_reg, ranks_reg, table_reg;
  reg job_up_place_reg, job_tree_place_reg, job_refusal_place_reg;
  reg parent_place_reg, repeats_place_reg, tree_place_reg;
  reg port_exists_reg, job_exists_reg, table_exists_reg, count_exists_reg;
  reg at_parent_reg, at_repeats_reg, at_tree_reg, at_ranks_reg;  // these can be written
  reg at_up_reg, at_job_tree_reg, at_refusal_reg, at_counter_reg, at_table_reg;
  wire writable = at_parent_reg || at_repeats_reg || at_tree_reg || at_ranks_reg;
  wire here = writable || at_up_reg || at_job_tree_reg || at_refusal_reg || at_counter_reg ||
      at_table_reg;

  always @(posedge clk) begin
    low_reg               <= addr_reg[31:10] == 22'd0;
    parent_place_reg      <= addr_reg[9:0] == REG_JOB_PARENT[9:0];
    repeats_place_reg     <= addr_reg[9:0] == REG_JOB_REPEAT[9:0];
    tree_place_reg        <= addr_reg[9:0] == REG_TREE_RANKS[9:0];
    job_reg               <= addr_reg[31:12] == REG_JOBS_BASE[31:12];
    job_up_place_reg      <= job_place == REG_JOB_UP;
    job_tree_place_reg    <= job_place == REG_JOB_TREE;
    job_refusal_place_reg <= job_place == REG_JOB_UP_REFUSAL;
    job_exists_reg        <= {28'd0, addr_reg[11:8]} < JOBS;
    counter_reg           <= aligned && addr_reg[31:8] == REG_UP_COUNTERS[31:8];
    count_exists_reg      <= {27'd0, addr_reg[7:3]} < UP_COUNTERS;
    ranks_reg             <= aligned && addr_reg[31:9] == REG_MEMBER_RANKS[31:9];
    port_exists_reg       <= {26'd0, addr_reg[8:3]} < PORTS;
    table_reg             <= aligned && addr_reg[31:13] == REG_JOB_RANKS[31:13];
    table_exists_reg      <= {28'd0, addr_reg[12:9]} < JOBS;

    at_parent_reg         <= low_reg && parent_place_reg;
    at_repeats_reg        <= low_reg && repeats_place_reg;
    at_tree_reg           <= low_reg && tree_place_reg;
    at_ranks_reg          <= ranks_reg && port_exists_reg;
    at_up_reg             <= job_reg && job_up_place_reg && job_exists_reg;
    at_job_tree_reg       <= job_reg && job_tree_place_reg && job_exists_reg;
    at_refusal_reg        <= job_reg && job_refusal_place_reg && job_exists_reg;
    at_counter_reg        <= counter_reg && count_exists_reg;
    at_table_reg          <= table_reg && port_exists_reg && table_exists_reg;
  end

  wire [JOB_BITS-1:0] block = JOBS == 1 ? {JOB_BITS{1'b0}} : addr_reg[8+:JOB_BITS];

  assign ranks_port   = addr_reg[3+:PORT_BITS];
  assign ranks_job    = JOBS == 1 ? {JOB_BITS{1'b0}} : addr_reg[9+:JOB_BITS];
  assign ranks_of_job = addr_reg[18];  // where JOB_RANKS and MEMBER_RANKS differ
  assign ranks_wdata  = data_reg;

  // -- Counters -----------------------------------------------------------------------------------

  reg [32*UP_COUNTERS-1:0] counts_reg;
  reg [31:0] count_reg;
  reg clear_reg;
  reg [UP_COUNTERS-1:0] events_reg;
  reg both_reg;  // two repeats in a cycle
  integer c;

  always @(posedge clk) begin
    events_reg[COUNT_UP_SENT]    <= up_sent;
    events_reg[COUNT_UP_REPEATS] <= repeats_sum || repeats_finish;
    events_reg[COUNT_UP_TAKEN]   <= up_taken;
    events_reg[COUNT_UP_DROPPED] <= up_dropped;
    events_reg[COUNT_UP_REFUSED] <= up_refused;
    both_reg                     <= repeats_sum && repeats_finish;
    clear_reg                    <= clear_counters || rst;
    count_reg                    <= 32'd0;
    for (c = 0; c < UP_COUNTERS; c = c + 1) begin
      counts_reg[32*c+:32] <= counts_reg[32*c+:32] + {31'd0, events_reg[c]};
      if (addr_reg[7:3] == c[4:0]) count_reg <= counts_reg[32*c+:32];
    end
    if (both_reg)
      counts_reg[32*COUNT_UP_REPEATS+:32] <= counts_reg[32*COUNT_UP_REPEATS+:32] + 32'd2;
    if (clear_reg) counts_reg <= {32 * UP_COUNTERS{1'b0}};
  end

  // -- Sequence of an access ----------------------------------------------------------------------

  wire cut = cut_reg || link_down;
  wire writes = write_reg && writable && !partial_reg && !stranger_reg;
  wire [63:0] read_value =
      {64{at_parent_reg}} & parent_reg |
      {64{at_repeats_reg}} & repeats_reg |
      {64{at_tree_reg}} & tree_reg |
      {64{at_ranks_reg || at_table_reg}} & ranks_value |
      {64{at_up_reg}} & {32'd0, job_up[32*block+:32]} |
      {64{at_job_tree_reg}} & job_tree_ranks[64*block+:64] |
      {64{at_refusal_reg}} &
          {job_refusal[40*block+8+:32], 24'd0, job_refusal[40*block+:8]} |
      {64{at_counter_reg}} & {32'd0, count_reg};

  always @(posedge clk) begin
    step_reg <= !step_reg;
    cut_reg  <= cut;
    if (at_reg[STATE_IDLE]) begin
      {write_reg, partial_reg, stranger_reg} <= {s_reg_write, s_reg_partial, s_reg_stranger};
      addr_reg <= s_reg_addr;
      data_reg <= s_reg_wdata;
      step_reg <= 1'b0;
      cut_reg <= link_down;
      if (s_reg_valid) at_reg <= ONE_STATE << STATE_DECODE;
    end
    if (at_reg[STATE_DECODE] && step_reg) at_reg <= ONE_STATE << STATE_READ;
    if (at_reg[STATE_READ]) begin
      if (!here) at_reg <= ONE_STATE << STATE_FORWARD;
      else if (step_reg) at_reg <= ONE_STATE << STATE_ACT;
    end
    if (at_reg[STATE_ACT]) begin
      at_reg <= ONE_STATE << STATE_REPLY;
      value_reg <= 64'd0;
      if (!write_reg) {code_reg, value_reg} <= {CODE_DONE, read_value};
      else if (!writable) code_reg <= CODE_READ_ONLY;
      else if (partial_reg) code_reg <= CODE_BAD_LENGTH;
      else if (stranger_reg || cut) code_reg <= CODE_BUSY;
      else {code_reg, value_reg} <= {CODE_DONE, data_reg};
    end
    if (at_reg[STATE_FORWARD] && core_ready) at_reg <= ONE_STATE << STATE_ANSWER;
    if (at_reg[STATE_ANSWER] && answer_valid) begin
      at_reg                <= ONE_STATE << STATE_REPLY;
      {code_reg, value_reg} <= {answer_code, answer_value};
    end
    if (at_reg[STATE_REPLY] && m_reg_ready) at_reg <= ONE_STATE << STATE_IDLE;
    if (rst) at_reg <= ONE_STATE << STATE_IDLE;
  end

  assign s_reg_ready   = at_reg[STATE_IDLE];
  assign m_reg_valid   = at_reg[STATE_REPLY];
  assign m_reg_code    = code_reg;
  assign m_reg_value   = value_reg;
  assign core_valid    = at_reg[STATE_FORWARD];
  assign core_write    = write_reg;
  assign core_addr     = addr_reg;
  assign core_wdata    = data_reg;
  assign core_partial  = partial_reg;
  assign core_stranger = stranger_reg;
  assign answer_ready  = at_reg[STATE_ANSWER];

  // -- Staged registers ---------------------------------------------------------------------------

  reg acted_reg;  // a write was answered here
  reg owned_reg, clears_reg;
  wire acts = at_reg[STATE_ACT] && writes && !cut;

  always @(posedge clk) begin
    acted_reg  <= at_reg[STATE_ACT] && write_reg && !rst;
    owned_reg  <= owned && !rst;
    clears_reg <= rst || clear_counters || (owned && !owned_reg);
    if (acts && at_parent_reg) parent_reg <= data_reg;
    if (acts && at_repeats_reg) repeats_reg <= data_reg;
    if (acts && at_tree_reg) tree_reg <= data_reg;
    if (clears_reg) begin
      parent_reg  <= 64'd0;
      repeats_reg <= 64'd0;
      tree_reg    <= 64'd0;
    end
  end

  assign parent       = parent_reg;
  assign repeats      = repeats_reg;
  assign tree         = tree_reg;
  assign clear_staged = clears_reg;
  assign ranks_write  = acts && at_ranks_reg;
  assign m_code_valid = acted_reg;
  assign m_code       = code_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  reg due;  // an accepted access is not answered yet
  reg due_write, due_partial, due_stranger;
  reg [31:0] due_addr;
  reg [63:0] due_data;
  reg [2:0] age;  // cycles since it was accepted, saturating
  reg met_down;  // the link was down before the access could take effect
  reg passed;  // agg_registers has it
  reg offered, core_offered;  // in the last cycle, and not taken
  reg [71:0] answer;
  reg owned_was, clears_due;
  wire accepted = s_reg_valid && s_reg_ready;
  wire answered = m_reg_valid && m_reg_ready;

  // The registers here, from their addresses: writable, or of any job or counter
  reg is_staged, is_ranks, is_job_ranks, is_job, is_count;
  wire is_here = is_staged || is_ranks || is_job_ranks || is_job || is_count;
  wire may_write = is_staged || is_ranks;
  reg [63:0] held;  // what a read returns, without ranks
  reg [63:0] parent_now, repeats_now, tree_now;
  reg [32*UP_COUNTERS-1:0] totals, totals_1, totals_2;  // now, and one and two cycles ago
  wire acts_now = due && age == 3'd5 && is_here;
  wire takes = acts_now && due_write && may_write && !due_partial && !due_stranger && !met_down &&
      !link_down;
  reg [7:0] code_want;
  reg [63:0] value_want;
  integer i;

  always @* begin
    is_staged = due_addr == REG_JOB_PARENT || due_addr == REG_JOB_REPEAT ||
        due_addr == REG_TREE_RANKS;
    {is_ranks, is_job_ranks, is_job, is_count} = 4'd0;
    held = due_addr == REG_JOB_PARENT ? parent_now :
        due_addr == REG_JOB_REPEAT ? repeats_now : due_addr == REG_TREE_RANKS ? tree_now : 64'd0;
    for (i = 0; i < PORTS; i = i + 1) begin
      if (due_addr == REG_MEMBER_RANKS + REG_RANKS_STRIDE * i) is_ranks = 1'b1;
      if (due_addr == REG_JOB_RANKS + REG_RANKS_STRIDE * i) is_job_ranks = 1'b1;
      if (due_addr == REG_JOB_RANKS + REG_RANKS_TABLE_STRIDE + REG_RANKS_STRIDE * i)
        is_job_ranks = 1'b1;
    end
    for (i = 0; i < JOBS; i = i + 1) begin
      if (due_addr == REG_JOB_UP + REG_JOB_STRIDE * i) begin
        is_job = 1'b1;
        held   = {32'd0, job_up[32*i+:32]};
      end
      if (due_addr == REG_JOB_TREE + REG_JOB_STRIDE * i) begin
        is_job = 1'b1;
        held   = job_tree_ranks[64*i+:64];
      end
      if (due_addr == REG_JOB_UP_REFUSAL + REG_JOB_STRIDE * i) begin
        is_job = 1'b1;
        held   = {job_refusal[40*i+8+:32], 24'd0, job_refusal[40*i+:8]};
      end
    end
    for (i = 0; i < UP_COUNTERS; i = i + 1) begin
      if (due_addr == REG_UP_COUNTERS + 8 * i) begin
        is_count = 1'b1;
        held = {32'd0, totals_2[32*i+:32]};
      end
    end
  end

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    due <= !rst && (accepted || (due && !answered));
    passed <= !rst && due && (passed || (core_valid && core_ready));
    offered <= !rst && m_reg_valid && !m_reg_ready;
    core_offered <= !rst && core_valid && !core_ready;
    answer <= {m_reg_code, m_reg_value};
    owned_was <= owned && !rst;
    clears_due <= rst || clear_counters || (owned && !owned_was);
    if (age != 3'd7) age <= age + 3'd1;
    if (link_down) met_down <= 1'b1;
    if (accepted) begin
      {due_write, due_partial, due_stranger} <= {s_reg_write, s_reg_partial, s_reg_stranger};
      {due_addr, due_data} <= {s_reg_addr, s_reg_wdata};
      age <= 3'd1;
      passed <= 1'b0;
      met_down <= link_down;
    end

    if (takes && due_addr == REG_JOB_PARENT) parent_now <= due_data;
    if (takes && due_addr == REG_JOB_REPEAT) repeats_now <= due_data;
    if (takes && due_addr == REG_TREE_RANKS) tree_now <= due_data;
    if (clears_due) {parent_now, repeats_now, tree_now} <= 192'd0;

    totals[32*COUNT_UP_SENT+:32] <= totals[32*COUNT_UP_SENT+:32] + up_sent;
    totals[32*COUNT_UP_REPEATS+:32] <= totals[32*COUNT_UP_REPEATS+:32] + repeats_sum +
        repeats_finish;
    totals[32*COUNT_UP_TAKEN+:32] <= totals[32*COUNT_UP_TAKEN+:32] + up_taken;
    totals[32*COUNT_UP_DROPPED+:32] <= totals[32*COUNT_UP_DROPPED+:32] + up_dropped;
    totals[32*COUNT_UP_REFUSED+:32] <= totals[32*COUNT_UP_REFUSED+:32] + up_refused;
    if (rst || clear_counters) totals <= 0;
    totals_1 <= totals;
    totals_2 <= totals_1;

    if (acts_now) begin
      code_want <= !due_write ? CODE_DONE : !may_write ? CODE_READ_ONLY :
          due_partial ? CODE_BAD_LENGTH :
          due_stranger || met_down || link_down ? CODE_BUSY : CODE_DONE;
      value_want <= due_write ? due_data : is_ranks || is_job_ranks ? ranks_value : held;
    end
    if (due && passed && answer_valid && answer_ready)
      {code_want, value_want} <= {answer_code, answer_value};
  end

  always @* begin
    if (was_reset) begin
      // agg_registers: one answer for each access that it took. Writes to OWNER and RESET are not here.
      `PROMISED(!answer_valid || passed);
      `PROMISED(!(clear_counters || (owned && !owned_was)) || !due || !is_here);
    end
    if (was_reset && !rst) begin
      // One access at a time: it is answered once, after six cycles if its register is here.
      assert (s_reg_ready == !due);
      assert (!m_reg_valid || due);
      if (due && is_here) assert (m_reg_valid == (age >= 3'd6));
      if (due) begin
        assert (age != 3'd0 && {write_reg, partial_reg, stranger_reg} ==
            {due_write, due_partial, due_stranger});
        assert (addr_reg == due_addr && data_reg == due_data);
        if (age <= 3'd5 && !passed) assert (cut_reg == met_down);
      end
      if (offered) assert (m_reg_valid && {m_reg_code, m_reg_value} == answer);
      if (m_reg_valid) begin
        assert (m_reg_code == code_want);
        if (m_reg_code == CODE_DONE || !is_here) assert (m_reg_value == value_want);
      end

      // All others go to agg_registers, once, as they came; it answers them.
      assert (!core_valid || (due && !is_here && !passed));
      if (core_valid) begin
        assert ({core_write, core_partial, core_stranger} ==
            {due_write, due_partial, due_stranger});
        assert (core_addr == due_addr && core_wdata == due_data);
      end
      if (core_offered) assert (core_valid);
      if (due && !is_here && age >= 3'd4)
        assert (core_valid + (passed && answer_ready) + m_reg_valid == 1);
      if (m_reg_valid && !is_here) assert (passed);
      if (passed) assert (!is_here);

      // Ranks: the access is at agg_up_jobs for two cycles before it acts.
      if (due) begin
        assert (ranks_port == due_addr[3+:PORT_BITS]);
        if (is_job_ranks) assert (ranks_job == due_addr[9+:JOB_BITS] && ranks_of_job);
        if (is_ranks) assert (!ranks_of_job);
      end
      assert (ranks_write == (takes && is_ranks));
      if (ranks_write) assert (ranks_wdata == due_data);

      // Staged registers change by whole writes of the owner, while the link is up, and are cleared.
      if (running_was) assert (parent == parent_now && repeats == repeats_now && tree == tree_now);
      assert (clear_staged == clears_due && owned_reg == owned_was);
      assert (m_code_valid == (due && is_here && due_write && age == 3'd6));
      if (m_code_valid) assert (m_code == code_want);

      // A read returns what was counted until two cycles before.
      if (running_was) assert (counts_reg == totals_1);

      // The states of an access
      if (!due) assert (at_reg == ONE_STATE << STATE_IDLE);
      if (due && age <= 3'd2)
        assert (at_reg == ONE_STATE << STATE_DECODE && step_reg == (age == 3'd2));
      if (due && age == 3'd3) assert (at_reg == ONE_STATE << STATE_READ && !step_reg);
      if (due && age == 3'd3) assert (here == is_here);
      if (due && is_here && age == 3'd4) assert (at_reg == ONE_STATE << STATE_READ && step_reg);
      if (due && is_here && age == 3'd5) assert (at_reg == ONE_STATE << STATE_ACT);
      if (due && is_here && age >= 3'd6) assert (at_reg == ONE_STATE << STATE_REPLY);
      if (due && age <= 3'd3) assert (!passed);
      if (due && !is_here && age >= 3'd4)
        assert (at_reg == ONE_STATE << (m_reg_valid ? STATE_REPLY : passed ? STATE_ANSWER :
            STATE_FORWARD));

      cover (answered && is_here && m_reg_code == CODE_BUSY && !due_stranger);
      cover (answered && is_count && !due_write && m_reg_value == 64'd2);
      cover (answered && passed && is_job == 0 && m_reg_code == CODE_READ_ONLY);
      cover (ranks_write);
      cover (clear_staged && parent != 64'd0);
    end
  end
`endif

endmodule

`default_nettype wire
