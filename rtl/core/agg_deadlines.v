// Measures how long slots wait and finds those that exceed their job's deadline.
//
// A slot's timer starts when the slot turns over and stops when it closes. It starts again when
// the closed slot first refuses to turn over, and stops when it turns over. One slot a cycle is
// examined, and judged in the next. For an overdue slot, pause first blocks grants for two cycles,
// until no packet is being judged. If the slot is still overdue then, act is high for one cycle.
// act_next is high in the cycle before; act_slot and act_job name the slot and its job from then
// on. act restarts the timer. A deadline of 0 means none.
//
// Latency: an overdue slot is acted upon within as many cycles as there are slots, plus four for
// each slot found overdue meanwhile, itself included. Not done here: the action itself
// (agg_slots).

`default_nettype none

module agg_deadlines #(
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input wire [          JOBS-1:0] flush,        // jobs that are ending, job 0 in the lowest bits
    input wire [(1<<SLOT_BITS)-1:0] flush_slots,  // slots of these jobs
    input wire [       32*JOBS-1:0] job_deadline, // in cycles, job 0 in the lowest bits

    // Events of agg_slots, for one slot
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire                 turn_over,
    input wire                 close,      // the slot is queued for summation
    input wire                 stall,      // data for the next chunk cannot turn it over

    output wire                 pause,
    output wire                 act_next,
    output wire                 act,
    output wire [SLOT_BITS-1:0] act_slot,
    output wire [ JOB_BITS-1:0] act_job
);

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [SLOTS-1:0] ONE_SLOT = 1;

  localparam [1:0] STATE_LOOK = 2'd0;
  localparam [1:0] STATE_PAUSE = 2'd1;
  localparam [1:0] STATE_WAIT = 2'd2;  // requests granted earlier are judged
  localparam [1:0] STATE_ACT = 2'd3;

  reg [31:0] since[0:SLOTS-1];  // start time of the slot's timer
  reg [JOB_BITS-1:0] owner[0:SLOTS-1];
  reg [SLOTS-1:0] waits_reg;  // the timer runs
  reg [31:0] now_reg;
  reg [1:0] state_reg;
  reg [SLOT_BITS-1:0] at_reg;  // the slot being examined

  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : owner[at_reg];
  wire [31:0] deadline = job_deadline[32*its_job+:32];

  // Result of the examination, one cycle later
  reg [SLOT_BITS-1:0] seen_reg;
  reg [JOB_BITS-1:0] seen_job_reg;
  reg looked_reg;  // valid: state_reg was STATE_LOOK
  reg runs_reg;  // the timer runs, the job has a deadline and is not ending
  reg [31:0] deadline_reg;
  reg [31:0] waited_reg;
  reg changed_reg;  // but the timer stopped or started in that same cycle
  wire overdue = runs_reg && waited_reg >= deadline_reg;

  wire starts = turn_over || (stall && !waits_reg[slot]);
  wire writes = starts || act;

  wire [SLOTS-1:0] started = starts ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] closed = close ? ONE_SLOT << slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    if (writes) since[act?at_reg : slot] <= now_reg;
    if (starts) owner[slot] <= job;
    waits_reg    <= (waits_reg | started) & ~closed & ~flush_slots;

    seen_reg     <= at_reg;
    seen_job_reg <= its_job;
    runs_reg     <= waits_reg[at_reg] && deadline != 32'd0 && !flush[its_job];
    deadline_reg <= deadline;
    waited_reg   <= now_reg + 32'd1 - since[at_reg];
    changed_reg  <= (starts || close) && slot == at_reg;
    looked_reg   <= state_reg == STATE_LOOK;

    case (state_reg)
      STATE_LOOK: begin
        at_reg <= at_reg + 1'b1;
        if (looked_reg && overdue) begin
          state_reg  <= STATE_PAUSE;
          at_reg     <= seen_reg;
          looked_reg <= 1'b0;
        end
      end
      STATE_PAUSE: state_reg <= STATE_WAIT;
      STATE_WAIT:  state_reg <= STATE_ACT;
      default: begin
        state_reg <= STATE_LOOK;
        at_reg    <= at_reg + 1'b1;
      end
    endcase

    if (rst) begin
      waits_reg  <= {SLOTS{1'b0}};
      now_reg    <= 32'd0;
      state_reg  <= STATE_LOOK;
      at_reg     <= {SLOT_BITS{1'b0}};
      looked_reg <= 1'b0;
    end
  end

  assign pause    = state_reg == STATE_PAUSE || state_reg == STATE_WAIT;
  assign act_next = state_reg == STATE_WAIT;
  assign act      = state_reg == STATE_ACT && overdue && !changed_reg && !flush[seen_job_reg];
  assign act_slot = at_reg;
  assign act_job  = seen_job_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: its job, and how long its timer has run.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg runs;
  reg [JOB_BITS-1:0] its;
  reg [31:0] ran;
  reg pause_was, pauses_was;  // pause in the last cycle; in both of the last two cycles
  reg [31:0] allowed_was;
  reg runs_was;
  reg [SLOT_BITS+2:0] late;  // cycles since it became overdue
  wire mine = slot == watched;
  wire [31:0] allowed = job_deadline[32*its+:32];
  wire is_overdue = runs && allowed != 0 && ran >= allowed;
  wire acts = act && act_slot == watched;
  wire found = state_reg == STATE_LOOK && looked_reg && overdue;
  // Slots examined before this one; cycles left for those, five each, and for this one
  wire [SLOT_BITS-1:0] ahead = watched - (found ? seen_reg : at_reg);
  wire [2:0] phase = found ? 3 : state_reg == STATE_LOOK ? 4 : STATE_ACT - state_reg;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    pause_was <= !rst && pause;
    pauses_was <= !rst && pause && pause_was;
    runs_was <= !rst && runs;
    allowed_was <= allowed;
    ran <= ran + 1;
    if (turn_over && mine) begin
      runs <= 1'b1;
      its  <= job;
      ran  <= 1;
    end else if (stall && mine && !runs) begin
      runs <= 1'b1;
      its  <= job;
      ran  <= 1;
    end
    if (acts) ran <= 1;
    if (close && mine || flush_slots[watched]) runs <= 1'b0;
    late <= is_overdue && !acts && !(turn_over && mine) ? late + 1 : 0;
    if (rst) begin
      runs <= 1'b0;
      late <= 0;
    end
  end

  always @* begin
    if (was_reset) begin
      // agg_arbiter: while paused it grants nothing, so no packet is judged after two cycles.
      `PROMISED(!pauses_was || !(turn_over || stall));
      // agg_jobs: flush_slots has the slots of an ending job, and none of its packets is judged.
      `PROMISED(!runs || flush[its] == flush_slots[watched]);
      `PROMISED(!((turn_over || stall || close) && flush_slots[slot]));
      `PROMISED(!(turn_over || stall) || !flush[job]);
      `PROMISED(!act || !close || slot == act_slot);
      // A job's deadline does not change while the job uses slots.
      `PROMISED(!(runs && runs_was) || allowed == allowed_was || flush_slots[watched]);
      // No timer reaches 2^31 cycles.
      assume (!runs || ran < 32'h80000000);
    end
    if (was_reset && !rst) begin
      assert (runs == waits_reg[watched]);
      if (runs) assert (owner[watched] == its && now_reg - since[watched] == ran);
      assert (pause == (state_reg == STATE_PAUSE || state_reg == STATE_WAIT));
      assert (act_next == (pause && pause_was));
      if (state_reg == STATE_WAIT) assert (pause_was);
      if (state_reg == STATE_ACT) assert (pauses_was);
      if (state_reg != STATE_LOOK) assert (!looked_reg);
      if (state_reg == STATE_WAIT || state_reg == STATE_ACT) assert (seen_reg == at_reg);
      if (looked_reg) assert (at_reg == seen_reg + 1'b1 && state_reg == STATE_LOOK);
      if ((looked_reg || state_reg != STATE_LOOK) && runs && !flush_slots[watched] &&
          seen_reg == watched && !changed_reg) begin
        assert (runs_reg == (allowed != 0) && seen_job_reg == its);
        if (runs_reg) assert (waited_reg == ran && deadline_reg == allowed);
      end

      // A slot that is acted upon is overdue, and no packet is judged in that cycle.
      if (act) assert (pauses_was);
      if (acts) assert (is_overdue && act_job == its && !flush_slots[watched]);
      if (state_reg == STATE_ACT && at_reg == watched && late != 0 && is_overdue &&
          !flush_slots[watched])
        assert (acts);

      // The bound: five cycles for each slot.
      if (runs && is_overdue && !flush_slots[watched])
        assert (late + 5 * ahead + phase <= 5 * SLOTS || late == 0);

      cover (acts && its == 1);
      cover (acts && late > 2);
    end
  end
`endif

endmodule

`default_nettype wire
