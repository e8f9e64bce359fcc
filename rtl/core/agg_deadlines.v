// Measures how long slots wait and finds those that exceed their job's deadline.
//
// A slot's timer starts when the slot turns over and stops when it closes. It starts again when
// the closed slot first refuses to turn over, and stops when it turns over. One slot a cycle is
// examined. For an overdue slot, act_valid asks agg_arbiter for an operation on act_slot, of
// act_job, until act_grant; examination pauses until the operation's event, six cycles after
// act_grant. act_ok is low if the slot's timer has started or stopped since, or its job is ending:
// then agg_slots does nothing. If it acts, acted restarts the timer. A deadline of 0 means none.
//
// Latency: an overdue slot is acted upon within as many cycles as there are slots, plus ten for
// each slot found overdue meanwhile, itself included, and the cycles in which act_valid waits for
// act_grant. Memories: a word for each slot; unwritten words do not count, as agg_jobs clears all
// slots after a reset. Not done here: the action itself (agg_slots).

`default_nettype none

module agg_deadlines #(
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input wire [   JOBS-1:0] flush,        // jobs that are ending, job 0 in the lowest bits
    input wire [32*JOBS-1:0] job_deadline, // in cycles, job 0 in the lowest bits

    // Events of agg_slots, for one slot
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire                 start,  // it turns over, or stalls for the first time
    input wire                 stop,   // it is queued for summation; wins over the others
    input wire                 acted,  // it was overdue

    // No event comes in such a cycle
    input wire                 clear,      // the slot below becomes empty
    input wire [SLOT_BITS-1:0] clear_slot,

    output wire                 act_valid,
    output wire [SLOT_BITS-1:0] act_slot,
    output wire [ JOB_BITS-1:0] act_job,
    input  wire                 act_grant,
    output wire                 act_ok      // in the cycle before the event
);

  localparam [2:0] LAST_CYCLE = 3'd5;

  reg [31:0] now_reg;

  // -- Events -------------------------------------------------------------------------------------

  wire changes = start || stop || acted || clear;
  wire [SLOT_BITS-1:0] change_slot = clear ? clear_slot : slot;
  wire [JOB_BITS+32:0] word;  // {runs, job, time of the start}

  agg_ram #(
      .WIDTH    (JOB_BITS + 33),
      .ADDR_BITS(SLOT_BITS),
      .FORWARD  (0)
  ) u_words (
      .clk    (clk),
      .wr_en  (changes),
      .wr_addr(change_slot),
      .wr_data({!stop && !clear, job, now_reg}),
      .rd_en  (1'b1),
      .rd_addr(at_reg),
      .rd_data(word)
  );

  // -- Examination --------------------------------------------------------------------------------

  // Stages: the slot's word is addressed, read, held, and judged. A slot whose timer changes
  // meanwhile is not overdue.
  reg [SLOT_BITS-1:0] at_reg, read_slot_reg, held_slot_reg, judged_slot_reg;
  reg read_valid_reg, held_valid_reg, judged_valid_reg;
  reg read_changed_reg, held_changed_reg, judged_changed_reg;
  reg [JOB_BITS+32:0] held_reg;
  reg [JOB_BITS-1:0] judged_job_reg;
  reg runs_reg;  // the timer runs, and the job is not ending
  reg [31:0] waited_reg, deadline_reg;

  wire [JOB_BITS-1:0] held_job = JOBS == 1 ? {JOB_BITS{1'b0}} : held_reg[32+:JOB_BITS];
  wire overdue = judged_valid_reg && runs_reg && !judged_changed_reg && deadline_reg != 32'd0 &&
      waited_reg >= deadline_reg;

  // The slot that was found
  reg busy_reg;  // examination pauses
  reg act_valid_reg, act_ok_reg;
  reg [SLOT_BITS-1:0] act_slot_reg;
  reg [JOB_BITS-1:0] act_job_reg;
  reg granted_reg;
  reg [2:0] cycle_reg;  // since act_grant, from 0
  wire event_now = granted_reg && cycle_reg == LAST_CYCLE;

  always @(posedge clk) begin
    now_reg            <= now_reg + 32'd1;

    at_reg             <= (event_now ? act_slot_reg : at_reg) + 1'b1;

    read_slot_reg      <= at_reg;
    read_valid_reg     <= !busy_reg && !overdue && !(&flush);
    read_changed_reg   <= changes && change_slot == at_reg;

    held_slot_reg      <= read_slot_reg;
    held_valid_reg     <= read_valid_reg && !overdue;
    held_changed_reg   <= read_changed_reg || (changes && change_slot == read_slot_reg);
    held_reg           <= word;

    judged_slot_reg    <= held_slot_reg;
    judged_valid_reg   <= held_valid_reg && !overdue;
    judged_changed_reg <= held_changed_reg || (changes && change_slot == held_slot_reg);
    judged_job_reg     <= held_job;
    runs_reg           <= held_reg[JOB_BITS+32] && !flush[held_job];
    waited_reg         <= now_reg - held_reg[31:0];
    deadline_reg       <= job_deadline[32*held_job+:32];

    cycle_reg          <= granted_reg ? cycle_reg + 3'd1 : 3'd0;
    if (busy_reg) begin
      act_ok_reg <= act_ok_reg && !flush[act_job_reg] && !(changes && change_slot == act_slot_reg);
    end else begin
      act_ok_reg   <= !(changes && change_slot == judged_slot_reg);
      act_slot_reg <= judged_slot_reg;
      act_job_reg  <= judged_job_reg;
    end
    if (overdue) begin
      busy_reg      <= 1'b1;
      act_valid_reg <= 1'b1;
    end
    if (act_grant) begin
      act_valid_reg <= 1'b0;
      granted_reg   <= 1'b1;
    end
    if (event_now) begin
      busy_reg    <= 1'b0;
      granted_reg <= 1'b0;
    end

    if (rst) begin
      now_reg          <= 32'd0;
      at_reg           <= {SLOT_BITS{1'b0}};
      read_valid_reg   <= 1'b0;
      held_valid_reg   <= 1'b0;
      judged_valid_reg <= 1'b0;
      busy_reg         <= 1'b0;
      act_valid_reg    <= 1'b0;
      granted_reg      <= 1'b0;
    end
  end

  assign act_valid = act_valid_reg;
  assign act_slot  = act_slot_reg;
  assign act_job   = act_job_reg;
  assign act_ok    = act_ok_reg;

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
