// The register bank: identification block, owner, staged job, counters, and one block for each job.
//
// Accepts one access at a time at s_reg, executes it, and replies at m_reg with a code and the
// register's new value, in order. Writes that end or set up a job are forwarded to agg_jobs, and
// wait for it. A soft reset clears the counters after all jobs have ended, so that it leaves no
// counts of theirs. A link that goes down clears OWNER and drops the access under way.
//
// Latency: 5 cycles from access to reply, more if agg_jobs takes part. Cycle 1 decodes the address,
// cycles 2 and 3 read the value, cycle 4 executes. Not done here: the values of counters
// (agg_counters) and jobs (agg_jobs, agg_job_counts).

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
    output wire        m_reg_valid,
    input  wire        m_reg_ready,
    output wire [ 7:0] m_reg_code,
    output wire [63:0] m_reg_value,

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
    input  wire [         31:0] lag_value,       // one cycle later
    output wire [          5:0] counter_index,
    input  wire [         31:0] counter_value,
    output wire                 clear_counters
);

  `include "zwire.vh"

  localparam [1:0] STATE_IDLE = 2'd0;
  localparam [1:0] STATE_ACCESS = 2'd1;
  localparam [1:0] STATE_JOB = 2'd2;  // agg_jobs executes
  localparam [1:0] STATE_ANSWER = 2'd3;

  // Effects of a write
  localparam [2:0] WRITE_REFUSED = 3'd0;  // bad_address, read_only or busy
  localparam [2:0] WRITE_STAGED = 3'd1;
  localparam [2:0] WRITE_OWNER = 3'd2;
  localparam [2:0] WRITE_RELEASE = 3'd3;
  localparam [2:0] WRITE_RESET = 3'd4;
  localparam [2:0] WRITE_COMMIT = 3'd5;
  localparam [2:0] WRITE_ABORT = 3'd6;

  reg [1:0] state_reg;
  reg write_reg;
  reg [31:0] addr_reg;
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
  reg [1:0] step_reg;  // of STATE_ACCESS

  // -- Read ---------------------------------------------------------------------------------------

  wire [31:0] counter_offset = addr_reg - REG_COUNTERS;
  wire is_counter = addr_reg >= REG_COUNTERS && counter_offset < 8 * COUNTERS &&
      addr_reg[2:0] == 3'd0;

  // A job's registers; all jobs' blocks have the same layout
  wire [31:0] job_offset = addr_reg - REG_JOBS_BASE;
  wire in_jobs = addr_reg >= REG_JOBS_BASE && {32'd0, job_offset} < JOBS * {32'd0, REG_JOB_STRIDE};
  wire [JOB_BITS-1:0] its_job =
      in_jobs && JOBS != 64'd1 ? job_offset[8+:JOB_BITS] : {JOB_BITS{1'b0}};
  wire [31:0] place = in_jobs ? REG_JOBS_BASE | {24'd0, addr_reg[7:0]} : addr_reg;

  // Lags of contributions, by job and rank
  wire [31:0] lag_offset = addr_reg - REG_JOB_LAG;
  wire [63:0] lag_number = {32'd0, lag_offset} >> 13;  // of the job
  wire [5:0] lag_of = lag_offset[12:7];
  wire in_lags = addr_reg >= REG_JOB_LAG && lag_number < JOBS && {58'd0, lag_of} < PORTS &&
      addr_reg[2:0] == 3'd0;

  // Second cycle: the decoded register
  reg [31:0] place_reg;
  reg [JOB_BITS-1:0] job_reg, lag_job_reg;
  reg [RANK_BITS-1:0] lag_rank_reg;
  reg [3:0] lag_bucket_reg;
  reg [5:0] counter_index_reg;
  reg is_counter_reg, in_lags_reg;

  assign counter_index = counter_index_reg;
  assign lag_job       = lag_job_reg;
  assign lag_rank      = lag_rank_reg;
  assign lag_bucket    = lag_bucket_reg;

  wire [JOB_BITS-1:0] job = job_reg;
  wire valid = job_valid[job];
  reg listed;  // the address is a register's, and not a counter's
  reg [63:0] value;

  always @* begin
    listed = 1'b1;
    case (place_reg)
      REG_MAGIC: value = MAGIC;
      REG_VERSION: value = {60'd0, VERSION};
      REG_CONFIG_HASH: value = CONFIG_HASH;
      REG_LANES: value = LANES;
      REG_PORTS: value = PORTS;
      REG_FORMAT: value = FORMAT;
      REG_SUM: value = SUM;
      REG_SHELL: value = SHELL;
      REG_CHUNK: value = CHUNK;
      REG_WINDOW: value = WINDOW;
      REG_JOBS: value = JOBS;
      REG_LINK: value = LINK;
      REG_LATENCY: value = LATENCY;
      REG_OWNER: value = owner_reg;
      REG_CYCLES: value = cycles_reg;
      REG_JOB_TOKEN: value = token_reg;
      REG_JOB_PORTS: value = ports_reg;
      REG_JOB_CHUNK: value = chunk_reg;
      REG_JOB_WINDOW: value = window_reg;
      REG_JOB_DEADLINE: value = deadline_reg;
      REG_JOB_STATE:
      value = {
        24'd0, {8 - JOB_BITS{1'b0}}, job, job_epoch[16*job+:16], 14'd0, job_ever[job], valid
      };
      REG_JOB_FINISHED: value = job_finished[64*job+:64];
      REG_JOB_MEMBERS: value = job_members[64*job+:64];
      REG_JOB_EVICTED: value = job_evicted[64*job+:64];
      REG_JOB_SLOTS: value = valid ? {32'd0, job_slots[16*job+:16], job_base[16*job+:16]} : 64'd0;
      REG_JOB_NONFINITE_IN: value = {32'd0, nonfinite_in[32*job+:32]};
      REG_JOB_NONFINITE_OUT: value = {32'd0, nonfinite_out[32*job+:32]};
      REG_JOB_OVERFLOW: value = {32'd0, overflows[32*job+:32]};
      REG_JOB_FIRST_IN: value = first_in[64*job+:64];
      REG_JOB_FIRST_OUT: value = first_out[64*job+:64];
      REG_JOB_FIRST_OVERFLOW: value = first_overflow[64*job+:64];
      REG_RELEASE, REG_RESET, REG_JOB_COMMIT, REG_JOB_ABORT: value = 64'd0;
      default: begin
        listed = 1'b0;
        value  = 64'd0;
      end
    endcase
  end

  // Third cycle: its value; a lag's comes one cycle later
  reg listed_reg;
  reg [63:0] listed_value_reg;
  reg [31:0] counter_value_reg, lag_value_reg;

  always @(posedge clk) begin
    place_reg         <= place;
    job_reg           <= its_job;
    lag_job_reg       <= JOBS == 64'd1 ? {JOB_BITS{1'b0}} : lag_offset[13+:JOB_BITS];
    lag_rank_reg      <= lag_of[RANK_BITS-1:0];
    lag_bucket_reg    <= lag_offset[6:3];
    counter_index_reg <= counter_offset[8:3];
    is_counter_reg    <= is_counter;
    in_lags_reg       <= in_lags;
    listed_reg        <= listed;
    listed_value_reg  <= value;
    counter_value_reg <= counter_value;
    lag_value_reg     <= job_ever[lag_job] ? lag_value : 32'd0;
  end

  wire known = listed_reg || is_counter_reg || in_lags_reg;
  wire [63:0] read_value = is_counter_reg ? {32'd0, counter_value_reg} :
      in_lags_reg ? {32'd0, lag_value_reg} : listed_value_reg;

  // -- Write --------------------------------------------------------------------------------------

  // These are valid from the access's second cycle on, the effect of the write from its third.
  reg owned_reg, is_owner_reg, job_owner_reg;
  reg [2:0] action, action_reg;
  reg writable, writable_reg;  // by some host

  always @* begin
    action   = WRITE_REFUSED;
    writable = 1'b1;
    case (addr_reg)
      REG_OWNER: action = WRITE_OWNER;
      REG_RELEASE: if (!owned_reg || is_owner_reg) action = WRITE_RELEASE;
      REG_RESET: if (!owned_reg || is_owner_reg) action = WRITE_RESET;
      REG_JOB_TOKEN, REG_JOB_PORTS, REG_JOB_CHUNK, REG_JOB_WINDOW, REG_JOB_DEADLINE:
      action = WRITE_STAGED;
      REG_JOB_COMMIT: if (job_owner_reg) action = WRITE_COMMIT;
      REG_JOB_ABORT: if (job_owner_reg) action = WRITE_ABORT;
      default: writable = 1'b0;
    endcase
  end

  always @(posedge clk) begin
    owned_reg     <= owner_reg != 64'd0;
    is_owner_reg  <= data_reg == owner_reg;
    job_owner_reg <= owner_reg != 64'd0 && token_reg == owner_reg;
    action_reg    <= action;
    writable_reg  <= writable;
  end

  wire [7:0] refusal = writable_reg ? CODE_BUSY : known ? CODE_READ_ONLY : CODE_BAD_ADDRESS;
  wire acts = state_reg == STATE_ACCESS && (&step_reg);
  wire writes = acts && write_reg;
  wire stages = writes && action_reg == WRITE_STAGED;
  wire resets = writes && action_reg == WRITE_RESET;
  wire frees = resets || (writes && action_reg == WRITE_RELEASE);
  wire to_job = action_reg == WRITE_RESET || action_reg == WRITE_COMMIT ||
      action_reg == WRITE_ABORT || (action_reg == WRITE_RELEASE && owned_reg);

  always @(posedge clk) begin
    if (writes && action_reg == WRITE_OWNER && !owned_reg) owner_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_TOKEN) token_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_PORTS) ports_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_CHUNK) chunk_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_WINDOW) window_reg <= data_reg;
    if (stages && addr_reg == REG_JOB_DEADLINE) deadline_reg <= data_reg;
    if (rst || frees || link_down) owner_reg <= 64'd0;
    if (rst || resets) begin
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
        write_reg <= s_reg_write;
        addr_reg  <= s_reg_addr;
        data_reg  <= s_reg_wdata;
        step_reg  <= 2'd0;
        if (s_reg_valid) state_reg <= STATE_ACCESS;
      end

      STATE_ACCESS: begin
        step_reg <= step_reg + 2'd1;
        if (acts) state_reg <= write_reg && to_job ? STATE_JOB : STATE_ANSWER;
        code_reg  <= CODE_DONE;
        value_reg <= read_value;
        if (!write_reg) begin
          if (!known) code_reg <= CODE_BAD_ADDRESS;
        end else if (action_reg == WRITE_REFUSED) begin
          code_reg  <= refusal;
          value_reg <= 64'd0;
        end else if (action_reg == WRITE_STAGED || (action_reg == WRITE_OWNER && !owned_reg)) begin
          value_reg <= data_reg;
        end
      end

      STATE_JOB: begin
        code_reg <= op_code;
        if (op_done) state_reg <= STATE_ANSWER;
      end

      default: if (m_reg_ready) state_reg <= STATE_IDLE;
    endcase
    if (rst || link_down) state_reg <= STATE_IDLE;
  end

  assign s_reg_ready    = state_reg == STATE_IDLE && !link_down;
  assign m_reg_valid    = state_reg == STATE_ANSWER;
  assign m_reg_code     = code_reg;
  assign m_reg_value    = value_reg;

  assign op_valid       = state_reg == STATE_JOB;
  assign op_commit      = addr_reg == REG_JOB_COMMIT;
  assign op_abort       = addr_reg == REG_JOB_ABORT;
  assign op_job         = data_reg[55:48];
  assign op_epoch       = data_reg[47:32];
  assign op_first       = data_reg[31:0];
  assign op_ports       = ports_reg;
  assign op_chunk       = chunk_reg;
  assign op_window      = window_reg;
  assign op_deadline    = deadline_reg;
  assign clear_counters = op_valid && op_done && addr_reg == REG_RESET;

endmodule

`default_nettype wire
