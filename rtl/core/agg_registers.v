// The register bank: identification block, owner, staged job, counters, and one block for each job.
//
// Accepts one access at a time at s_reg, executes it, and replies at m_reg with a code and the
// register's new value, in order. It answers every accepted access once, and the answer is stable
// until it is taken. Writes that end or set up a job are forwarded to agg_jobs, and wait for it. A
// soft reset clears the counters after all jobs have ended, so that it leaves no counts of theirs.
// The staged registers are cleared in the cycle after that, and in the one after a reset.
//
// A shell with registers of its own answers accesses to them. It reports the code of each such write
// at s_code, for LAST_CODE, and clears the staged registers for a new owner by clear_staged; both
// between accesses alone. owned is OWNER of two cycles before.
//
// A link that goes down clears OWNER. A write that has not taken effect by then is refused as busy,
// as is every write while the link is down; a job operation under way is cancelled. Reads go
// on. The shell decides which accesses it forwards while the link is down.
//
// Latency: 6 cycles from access to reply, more if agg_jobs takes part. Cycle 1 decodes the address,
// cycles 2 to 4 read the value and decide about a write, cycle 5 executes it. Not done here: the
// values of counters (agg_counters) and jobs (agg_jobs, agg_job_counts).

`default_nettype none

module agg_registers #(
    // Contents of the identification block
    parameter [63:0] CONFIG_HASH = 64'd0,
    parameter [63:0] LANES = 64'd16,
    parameter [63:0] PORTS = 64'd4,
    parameter [63:0] FORMAT = 64'h0101,
    parameter [63:0] SUM = 64'd1,
    parameter [63:0] SHELL = 64'd0,
    parameter [63:0] CHUNK = 64'd256,
    parameter [63:0] WINDOW = 64'd8,
    parameter [63:0] JOBS = 64'd1,
    parameter [63:0] LINK = 64'd0,
    parameter [63:0] LATENCY = 64'd0,

    parameter integer JOB_BITS  = 1,  // width of a job number, at least 1
    parameter integer RANK_BITS = 2
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // Accesses and their replies
    input  wire        s_reg_valid,
    output wire        s_reg_ready,
    input  wire        s_reg_write,
    input  wire [31:0] s_reg_addr,
    input  wire [63:0] s_reg_wdata,
    input  wire        s_reg_partial,   // a write lacks bytes: it is refused
    input  wire        s_reg_stranger,  // a write of a host that may not: it is refused as busy
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

    // The shell's registers
    input  wire       s_code_valid,
    input  wire [7:0] s_code,
    input  wire       clear_staged,
    output wire       owned,         // OWNER is not zero

    // Job operations; see agg_jobs
    output wire        op_valid,
    output wire        op_commit,
    output wire        op_abort,
    output wire [ 7:0] op_job,
    output wire [15:0] op_epoch,
    output wire [31:0] op_first,
    output wire [63:0] op_ports,
    output wire [63:0] op_chunk,
    output wire [63:0] op_window,
    output wire [63:0] op_deadline,
    input  wire        op_done,
    input  wire [ 7:0] op_code,

    // Values held elsewhere; vectors have job 0 in the lowest bits
    input  wire [     JOBS-1:0] job_valid,
    input  wire [     JOBS-1:0] job_ever,
    input  wire [  16*JOBS-1:0] job_epoch,
    input  wire [  64*JOBS-1:0] job_finished,
    input  wire [  64*JOBS-1:0] job_members,
    input  wire [  64*JOBS-1:0] job_evicted,
    input  wire [  16*JOBS-1:0] job_base,        // first slot
    input  wire [  16*JOBS-1:0] job_slots,       // number of slots
    input  wire [  32*JOBS-1:0] nonfinite_in,
    input  wire [  32*JOBS-1:0] nonfinite_out,
    input  wire [  32*JOBS-1:0] overflows,
    input  wire [  64*JOBS-1:0] first_in,
    input  wire [  64*JOBS-1:0] first_out,
    input  wire [  64*JOBS-1:0] first_overflow,
    output wire [ JOB_BITS-1:0] lag_job,
    output wire [RANK_BITS-1:0] lag_rank,
    output wire [          3:0] lag_bucket,
    input  wire [         31:0] lag_value,       // three cycles later, while that is stable
    output wire [          5:0] counter_index,
    input  wire [         31:0] counter_value,   // three cycles later, likewise
    output wire                 clear_counters
);

  `include "zwire.vh"

  localparam [1:0] STATE_IDLE = 2'd0;
  localparam [1:0] STATE_ACCESS = 2'd1;
  localparam [1:0] STATE_JOB = 2'd2;  // agg_jobs executes
  localparam [1:0] STATE_ANSWER = 2'd3;

  localparam [2:0] LAST_STEP = 3'd4;  // of STATE_ACCESS: the access takes effect

  // The card's own registers that are no constants, by place in at_reg. Those from AT_OWNER on can
  // be written, those from AT_TOKEN on are staged.
  localparam integer AT_CYCLES = 0;
  localparam integer AT_LAST_CODE = 1;
  localparam integer AT_OWNER = 2;
  localparam integer AT_RELEASE = 3;
  localparam integer AT_RESET = 4;
  localparam integer AT_COMMIT = 5;
  localparam integer AT_ABORT = 6;
  localparam integer AT_TOKEN = 7;
  localparam integer AT_PORTS = 8;
  localparam integer AT_CHUNK = 9;
  localparam integer AT_WINDOW = 10;
  localparam integer AT_DEADLINE = 11;
  localparam integer CARD_PLACES = 12;

  // A job's registers, by place in at_job_reg
  localparam integer AT_STATE = 0;
  localparam integer AT_FINISHED = 1;
  localparam integer AT_MEMBERS = 2;
  localparam integer AT_SLOTS = 3;
  localparam integer AT_NONFINITE_IN = 4;
  localparam integer AT_NONFINITE_OUT = 5;
  localparam integer AT_OVERFLOW = 6;
  localparam integer AT_FIRST_IN = 7;
  localparam integer AT_FIRST_OUT = 8;
  localparam integer AT_FIRST_OVERFLOW = 9;
  localparam integer AT_EVICTED = 10;
  localparam integer JOB_PLACES = 11;

  reg [1:0] state_reg;
  reg [2:0] step_reg;  // of STATE_ACCESS
  reg write_reg, partial_reg, stranger_reg;
  reg cut_reg;  // the link went down during the access
  reg [31:0] addr_reg;  // stable from step 0 to the answer, like write_reg and data_reg
  reg [63:0] data_reg;
  reg [7:0] code_reg;
  reg [63:0] value_reg;

  reg [63:0] owner_reg;
  reg [63:0] token_reg;
  reg [63:0] ports_reg;
  reg [63:0] chunk_reg;
  reg [63:0] window_reg;
  reg [63:0] deadline_reg;
  reg [63:0] cycles_reg;
  reg [7:0] last_code_reg;

  // -- Step 0: decode the address -----------------------------------------------------------------

  // Every kind of register has an aligned range of addresses, so parts of the address select one.
  wire [31:0] card_place = {22'd0, addr_reg[9:3], 3'd0};
  wire [31:0] job_place = {REG_JOBS_BASE[31:8], addr_reg[7:3], 3'd0};
  wire [3:0] job_number = addr_reg[11:8];
  wire [3:0] lag_number = addr_reg[16:13];
  wire [5:0] lag_of = addr_reg[12:7];
  wire aligned = addr_reg[2:0] == 3'd0;

  assign counter_index = addr_reg[8:3];
  assign lag_job       = JOBS == 64'd1 ? {JOB_BITS{1'b0}} : addr_reg[13+:JOB_BITS];
  assign lag_rank      = lag_of[RANK_BITS-1:0];
  assign lag_bucket    = addr_reg[6:3];

  // A constant's address is decoded in step 1. The first 16 registers, and no others, are constants
  // or unknown: four bits select the value, and is_constant_reg masks it a step later.
  reg [6:0] place_reg;
  wire [31:0] constant_place = {25'd0, place_reg[3:0], 3'd0};
  reg is_constant;
  reg [63:0] constant;

  always @* begin
    is_constant = place_reg[6:4] == 3'd0;
    case (constant_place)
      REG_MAGIC: constant = MAGIC;
      REG_VERSION: constant = {60'd0, VERSION};
      REG_CONFIG_HASH: constant = CONFIG_HASH;
      REG_LANES: constant = LANES;
      REG_PORTS: constant = PORTS;
      REG_FORMAT: constant = FORMAT;
      REG_SUM: constant = SUM;
      REG_SHELL: constant = SHELL;
      REG_CHUNK: constant = CHUNK;
      REG_WINDOW: constant = WINDOW;
      REG_JOBS: constant = JOBS;
      REG_LINK: constant = LINK;
      REG_LATENCY: constant = LATENCY;
      default: begin
        is_constant = 1'b0;
        constant    = 64'd0;
      end
    endcase
  end

  reg is_card_reg, is_counter_reg, is_lag_reg;
  reg [JOBS-1:0] is_job_reg;  // of this job's block
  reg is_constant_reg;
  reg [63:0] constant_reg;
  reg [CARD_PLACES-1:0] at_reg;
  reg [JOB_PLACES-1:0] at_job_reg;
  reg [7:0] owned_bytes_reg, owner_differs_reg, token_differs_reg;  // by byte
  integer k;

  always @(posedge clk) begin
    is_card_reg <= aligned && addr_reg[31:10] == 22'd0;
    is_counter_reg <= aligned && addr_reg[31:9] == REG_COUNTERS[31:9] &&
        {26'd0, counter_index} < COUNTERS;
    is_lag_reg <= aligned && addr_reg[31:17] == REG_JOB_LAG[31:17] &&
        {60'd0, lag_number} < JOBS && {58'd0, lag_of} < PORTS;
    for (k = 0; k < JOBS[31:0]; k = k + 1) begin
      is_job_reg[k] <= aligned && addr_reg[31:12] == REG_JOBS_BASE[31:12] && job_number == k[3:0];
    end

    place_reg                     <= addr_reg[9:3];
    is_constant_reg               <= is_constant;
    constant_reg                  <= constant;
    at_reg[AT_CYCLES]             <= card_place == REG_CYCLES;
    at_reg[AT_LAST_CODE]          <= card_place == REG_LAST_CODE;
    at_reg[AT_OWNER]              <= card_place == REG_OWNER;
    at_reg[AT_RELEASE]            <= card_place == REG_RELEASE;
    at_reg[AT_RESET]              <= card_place == REG_RESET;
    at_reg[AT_COMMIT]             <= card_place == REG_JOB_COMMIT;
    at_reg[AT_ABORT]              <= card_place == REG_JOB_ABORT;
    at_reg[AT_TOKEN]              <= card_place == REG_JOB_TOKEN;
    at_reg[AT_PORTS]              <= card_place == REG_JOB_PORTS;
    at_reg[AT_CHUNK]              <= card_place == REG_JOB_CHUNK;
    at_reg[AT_WINDOW]             <= card_place == REG_JOB_WINDOW;
    at_reg[AT_DEADLINE]           <= card_place == REG_JOB_DEADLINE;
    at_job_reg[AT_STATE]          <= job_place == REG_JOB_STATE;
    at_job_reg[AT_FINISHED]       <= job_place == REG_JOB_FINISHED;
    at_job_reg[AT_MEMBERS]        <= job_place == REG_JOB_MEMBERS;
    at_job_reg[AT_SLOTS]          <= job_place == REG_JOB_SLOTS;
    at_job_reg[AT_NONFINITE_IN]   <= job_place == REG_JOB_NONFINITE_IN;
    at_job_reg[AT_NONFINITE_OUT]  <= job_place == REG_JOB_NONFINITE_OUT;
    at_job_reg[AT_OVERFLOW]       <= job_place == REG_JOB_OVERFLOW;
    at_job_reg[AT_FIRST_IN]       <= job_place == REG_JOB_FIRST_IN;
    at_job_reg[AT_FIRST_OUT]      <= job_place == REG_JOB_FIRST_OUT;
    at_job_reg[AT_FIRST_OVERFLOW] <= job_place == REG_JOB_FIRST_OVERFLOW;
    at_job_reg[AT_EVICTED]        <= job_place == REG_JOB_EVICTED;

    for (k = 0; k < 8; k = k + 1) begin
      owned_bytes_reg[k]   <= |owner_reg[8*k+:8];
      owner_differs_reg[k] <= data_reg[8*k+:8] != owner_reg[8*k+:8];
      token_differs_reg[k] <= token_reg[8*k+:8] != owner_reg[8*k+:8];
    end
  end

  // -- Steps 1 and 2: the value in the card's and in every job's registers; who writes ------------

  // A constant's value takes both steps.

  reg known_reg;
  reg [63:0] card_value_reg;
  reg [64*JOBS-1:0] job_values_reg;
  reg owned_reg, is_owner_reg, job_owner_reg;
  reg writable_reg;  // by some host
  reg [CARD_PLACES-1:0] writes_reg;  // a whole write to this place
  integer j;

  always @(posedge clk) begin
    known_reg <= (is_card_reg && (is_constant_reg || |at_reg)) || (|is_job_reg && |at_job_reg) ||
        is_counter_reg || is_lag_reg;
    card_value_reg <= {64{is_card_reg}} & (
        {64{is_constant_reg}} & constant_reg |
        {64{at_reg[AT_CYCLES]}} & cycles_reg |
        {64{at_reg[AT_LAST_CODE]}} & {56'd0, last_code_reg} |
        {64{at_reg[AT_OWNER]}} & owner_reg |
        {64{at_reg[AT_TOKEN]}} & token_reg |
        {64{at_reg[AT_PORTS]}} & ports_reg |
        {64{at_reg[AT_CHUNK]}} & chunk_reg |
        {64{at_reg[AT_WINDOW]}} & window_reg |
        {64{at_reg[AT_DEADLINE]}} & deadline_reg);
    for (j = 0; j < JOBS[31:0]; j = j + 1) begin
      job_values_reg[64*j+:64] <=
          {64{at_job_reg[AT_STATE]}} &
              {24'd0, j[7:0], job_epoch[16*j+:16], 14'd0, job_ever[j], job_valid[j]} |
          {64{at_job_reg[AT_FINISHED]}} & job_finished[64*j+:64] |
          {64{at_job_reg[AT_MEMBERS]}} & job_members[64*j+:64] |
          {64{at_job_reg[AT_SLOTS] && job_valid[j]}} &
              {32'd0, job_slots[16*j+:16], job_base[16*j+:16]} |
          {64{at_job_reg[AT_NONFINITE_IN]}} & {32'd0, nonfinite_in[32*j+:32]} |
          {64{at_job_reg[AT_NONFINITE_OUT]}} & {32'd0, nonfinite_out[32*j+:32]} |
          {64{at_job_reg[AT_OVERFLOW]}} & {32'd0, overflows[32*j+:32]} |
          {64{at_job_reg[AT_FIRST_IN]}} & first_in[64*j+:64] |
          {64{at_job_reg[AT_FIRST_OUT]}} & first_out[64*j+:64] |
          {64{at_job_reg[AT_FIRST_OVERFLOW]}} & first_overflow[64*j+:64] |
          {64{at_job_reg[AT_EVICTED]}} & job_evicted[64*j+:64];
    end
    owned_reg <= |owned_bytes_reg;
    is_owner_reg <= owner_differs_reg == 8'd0;
    job_owner_reg <= |owned_bytes_reg && token_differs_reg == 8'd0;
    writable_reg <= is_card_reg && |at_reg[CARD_PLACES-1:AT_OWNER];
    writes_reg <= at_reg & {CARD_PLACES{is_card_reg && write_reg && !partial_reg && !stranger_reg}};
  end

  // -- Step 2: the value in the addressed job's register; the effect of a write -------------------

  reg [63:0] job_value;
  reg [63:0] job_value_reg;
  reg has_lag_reg;  // the job has counts of lags
  reg takes_owner_reg, frees_reg, resets_reg, op_commit_reg, op_abort_reg;
  reg ends_all_reg, granted_reg;
  reg shows_data_reg, shows_read_reg;  // the reply's value is the written one, the read one
  reg [CARD_PLACES-1:AT_TOKEN] stages_reg;
  integer i;

  always @* begin
    job_value = 64'd0;
    for (i = 0; i < JOBS[31:0]; i = i + 1) begin
      job_value = job_value | {64{is_job_reg[i]}} & job_values_reg[64*i+:64];
    end
  end

  wire may_end = !owned_reg || is_owner_reg;
  wire ends = (writes_reg[AT_RELEASE] || writes_reg[AT_RESET]) && may_end;
  wire operates = (writes_reg[AT_COMMIT] || writes_reg[AT_ABORT]) && job_owner_reg;
  wire stages = |writes_reg[CARD_PLACES-1:AT_TOKEN];
  wire granted = writes_reg[AT_OWNER] || stages || ends || operates;

  always @(posedge clk) begin
    job_value_reg <= job_value;
    has_lag_reg <= is_lag_reg && job_ever[lag_job];
    takes_owner_reg <= writes_reg[AT_OWNER] && !owned_reg;
    stages_reg <= writes_reg[CARD_PLACES-1:AT_TOKEN];
    frees_reg <= ends;
    resets_reg <= writes_reg[AT_RESET] && may_end;
    ends_all_reg <= ends && (owned_reg || writes_reg[AT_RESET]);
    op_commit_reg <= writes_reg[AT_COMMIT] && job_owner_reg;
    op_abort_reg <= writes_reg[AT_ABORT] && job_owner_reg;
    granted_reg <= granted;
    shows_data_reg <= (writes_reg[AT_OWNER] && !owned_reg) || stages;
    shows_read_reg <= !write_reg || granted;
  end

  // -- Step 3: the reply --------------------------------------------------------------------------

  wire [63:0] read_value = card_value_reg | job_value_reg |
      {32'd0, lag_value & {32{has_lag_reg}}} | {32'd0, counter_value & {32{is_counter_reg}}};

  reg [7:0] answer_reg;
  reg [63:0] after_reg;
  reg to_job_reg;
  reg write_done_reg;  // a write that is answered as done

  always @(posedge clk) begin
    if (!known_reg) answer_reg <= CODE_BAD_ADDRESS;
    else if (!write_reg || granted_reg) answer_reg <= CODE_DONE;
    else if (!writable_reg) answer_reg <= CODE_READ_ONLY;
    else answer_reg <= partial_reg ? CODE_BAD_LENGTH : CODE_BUSY;
    after_reg <= shows_data_reg ? data_reg : shows_read_reg ? read_value : 64'd0;
    write_done_reg <= known_reg && write_reg && granted_reg;
    to_job_reg <= op_commit_reg || op_abort_reg || ends_all_reg;
  end

  // -- Step 4: the access takes effect ------------------------------------------------------------

  wire acts = state_reg == STATE_ACCESS && step_reg == LAST_STEP;
  wire cut = cut_reg || link_down;

  // What the access writes, unless the link goes down in this cycle: prepared in step 3
  wire may_write = state_reg == STATE_ACCESS && step_reg == LAST_STEP - 3'd1 && !cut && !rst;
  reg to_owner_reg;
  reg [CARD_PLACES-1:AT_TOKEN] to_staged_reg;
  reg clears_reg;  // the staged registers

  always @(posedge clk) begin
    to_owner_reg  <= may_write && takes_owner_reg;
    to_staged_reg <= stages_reg & {CARD_PLACES - AT_TOKEN{may_write}};
    clears_reg    <= rst || clear_counters || clear_staged;
    if (to_owner_reg && !link_down) owner_reg <= data_reg;
    if (to_staged_reg[AT_TOKEN] && !link_down) token_reg <= data_reg;
    if (to_staged_reg[AT_PORTS] && !link_down) ports_reg <= data_reg;
    if (to_staged_reg[AT_CHUNK] && !link_down) chunk_reg <= data_reg;
    if (to_staged_reg[AT_WINDOW] && !link_down) window_reg <= data_reg;
    if (to_staged_reg[AT_DEADLINE] && !link_down) deadline_reg <= data_reg;
    if (rst || link_down || (op_valid && op_done && frees_reg)) owner_reg <= 64'd0;
    if (clears_reg) begin
      token_reg <= 64'd0;
      ports_reg <= 64'd0;
      chunk_reg <= 64'd0;
      window_reg <= 64'd0;
      deadline_reg <= 64'd0;
    end
    cycles_reg <= rst ? 64'd0 : cycles_reg + 64'd1;
  end

  // -- Sequence of an access ----------------------------------------------------------------------

  always @(posedge clk) begin
    case (state_reg)
      STATE_IDLE: begin
        write_reg    <= s_reg_write;
        partial_reg  <= s_reg_partial;
        stranger_reg <= s_reg_stranger;
        addr_reg     <= s_reg_addr;
        data_reg     <= s_reg_wdata;
        step_reg     <= 3'd0;
        cut_reg      <= link_down;
        if (s_reg_valid) state_reg <= STATE_ACCESS;
      end

      STATE_ACCESS: begin
        step_reg <= step_reg + 3'd1;
        cut_reg  <= cut;
        if (acts) state_reg <= to_job_reg && !cut ? STATE_JOB : STATE_ANSWER;
        code_reg  <= answer_reg;
        value_reg <= after_reg;
        if (cut && write_done_reg) begin
          code_reg  <= CODE_BUSY;
          value_reg <= 64'd0;
        end
      end

      STATE_JOB: begin
        code_reg <= op_done ? op_code : CODE_BUSY;
        if (op_done || link_down) state_reg <= STATE_ANSWER;
      end

      default: begin
        if (write_reg) last_code_reg <= code_reg;
        if (m_reg_ready) state_reg <= STATE_IDLE;
      end
    endcase
    if (s_code_valid) last_code_reg <= s_code;
    if (rst) begin
      state_reg     <= STATE_IDLE;
      last_code_reg <= CODE_DONE;
    end
  end

  assign s_reg_ready    = state_reg == STATE_IDLE;
  assign m_reg_valid    = state_reg == STATE_ANSWER;
  assign m_reg_code     = code_reg;
  assign m_reg_value    = value_reg;
  assign owned          = owned_reg;

  assign op_valid       = state_reg == STATE_JOB;
  assign op_commit      = op_commit_reg;
  assign op_abort       = op_abort_reg;
  assign op_job         = data_reg[55:48];
  assign op_epoch       = data_reg[47:32];
  assign op_first       = data_reg[31:0];
  assign op_ports       = ports_reg;
  assign op_chunk       = chunk_reg;
  assign op_window      = window_reg;
  assign op_deadline    = deadline_reg;
  assign clear_counters = op_valid && op_done && resets_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  reg was_down;  // in the last cycle
  reg due;  // an accepted access is not answered yet
  reg due_write, due_partial, due_stranger;
  reg [31:0] due_addr;
  reg [63:0] due_data;
  reg [2:0] age;  // cycles since it was accepted
  reg met_down;  // the link was down when it could have taken effect, or before
  reg offered;  // its answer was not taken in the last cycle
  reg [71:0] answer;
  reg [7:0] last_code;  // of the last write that was answered
  reg effect;  // the access changed a register, or agg_jobs has done it
  reg [383:0] registers;  // before the cycle
  reg clears_due;
  wire [383:0] registers_now = {
    owner_reg, token_reg, ports_reg, chunk_reg, window_reg, deadline_reg
  };
  wire accepted = s_reg_valid && s_reg_ready;
  wire answered = m_reg_valid && m_reg_ready;
  wire changed = registers_now[319:0] != registers[319:0] ||
      (registers_now[383:320] != registers[383:320] && !was_down);

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    was_down <= link_down;
    due <= !rst && (accepted || (due && !answered));
    offered <= !rst && m_reg_valid && !m_reg_ready;
    answer <= {m_reg_code, m_reg_value};
    // Staged registers that are to be cleared are so already, to an access.
    registers <= {owner_reg, clears_reg ? 320'd0 : registers_now[319:0]};
    clears_due <= rst || clear_counters || clear_staged;
    if (age != 3'd7) age <= age + 3'd1;
    effect <= effect || changed || op_done;
    if (link_down && age <= 3'd4) met_down <= 1'b1;
    if (accepted) begin
      due_write <= s_reg_write;
      due_partial <= s_reg_partial;
      due_stranger <= s_reg_stranger;
      due_addr <= s_reg_addr;
      due_data <= s_reg_wdata;
      age <= 3'd0;
      effect <= 1'b0;
      met_down <= link_down;
    end
    if (m_reg_valid && due_write) last_code <= m_reg_code;
    if (s_code_valid) last_code <= s_code;
    if (rst) last_code <= CODE_DONE;
  end

  always @* begin
    if (was_reset) begin
      // agg_jobs: it answers an operation that is requested, and never as busy.
      `PROMISED(!op_done || (op_valid && op_code != CODE_BUSY));
      // The shell: one access at a time, here or to its own registers.
      `PROMISED(!due || !(s_code_valid || clear_staged));

      // Every accepted access is answered once, before the next is accepted, and at once unless
      // agg_jobs takes part. The answer is stable until it is taken.
      assert (s_reg_ready == !due);
      assert (!m_reg_valid || due);
      assert (!due || op_valid || m_reg_valid || (age <= 3'd4 && step_reg == age));
      assert (!offered || (m_reg_valid && {m_reg_code, m_reg_value} == answer));
      assert (!m_reg_valid || age >= 3'd5);

      assert (clears_reg == clears_due);

      // A link that goes down leaves no owner, and no operation.
      assert (!was_down || (owner_reg == 64'd0 && !op_valid));

      // The access under way is the accepted one.
      if (due) assert (write_reg == due_write && partial_reg == due_partial);
      if (due) assert (stranger_reg == due_stranger);
      if (due) assert (addr_reg == due_addr && data_reg == due_data);
      if (state_reg == STATE_ACCESS && age != 3'd0) assert (cut_reg == met_down);

      // agg_jobs works for whole writes alone, made while the link was up.
      if (op_valid) assert (due_write && !due_partial && !due_stranger && !met_down && age >= 3'd5);
      if (op_valid) assert (!effect && !changed);
      if (op_valid)
        assert (due_addr == REG_RELEASE || due_addr == REG_RESET ||
          due_addr == REG_JOB_COMMIT || due_addr == REG_JOB_ABORT);

      // Reads, and writes that are refused as busy, change nothing. All of a stranger's are.
      if (m_reg_valid && (!due_write || m_reg_code == CODE_BUSY)) assert (!effect && !changed);
      if (m_reg_valid && due_write && due_stranger) assert (!effect && !changed);
      // A staged register that was written has its value; a partial write has no effect.
      if (m_reg_valid && due_write && m_reg_code == CODE_DONE) begin
        assert (!due_partial && !due_stranger && !met_down);
        assert (due_addr != REG_JOB_TOKEN || token_reg == due_data);
        assert (due_addr != REG_JOB_DEADLINE || deadline_reg == due_data);
      end

      assert (last_code_reg == last_code);
      if (m_reg_valid && !due_write && due_addr == REG_LAST_CODE)
        assert (m_reg_code == CODE_DONE && m_reg_value == {56'd0, last_code});
    end
  end

  always @* begin
    cover (was_reset && answered && due_write && m_reg_code == CODE_BUSY && met_down);
    cover (was_reset && m_reg_valid && due_addr == REG_LAST_CODE && m_reg_value == CODE_READ_ONLY);
    cover (was_reset && m_reg_valid && due_addr == REG_RESET && effect && link_down);
    cover (was_reset && m_reg_valid && due_addr == REG_RESET && m_reg_code == CODE_BUSY &&
        !met_down);
  end
`endif

endmodule

`default_nettype wire
