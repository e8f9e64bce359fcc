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
// each time that a slot is found overdue meanwhile, itself included, plus the cycles in which
// act_valid waits for act_grant. The memories have a word for each slot. Until agg_jobs has
// cleared them after a reset, all bits of flush are high, and nothing is examined. Not done here:
// the action itself (agg_slots).

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
  reg [31:0] soon_reg;  // now_reg in the next cycle

  // -- Events -------------------------------------------------------------------------------------

  wire changes = start || stop || acted || clear;
  wire [SLOT_BITS-1:0] change_slot = clear ? clear_slot : slot;
  // {runs, time of the start}, and the job: its bits have many readers, which would be far from a
  // block RAM. A word read in the cycle of its write is not used.
  (* no_rw_check *) reg [32:0] words[0:(1<<SLOT_BITS)-1];
  (* ram_style = "distributed" *) reg [JOB_BITS-1:0] jobs[0:(1<<SLOT_BITS)-1];

  // -- Examination --------------------------------------------------------------------------------

  // Stages: the slot's word is addressed, read, held, and judged. A slot whose timer changes
  // meanwhile is not overdue.
  reg [SLOT_BITS-1:0] at_reg, read_slot_reg, held_slot_reg, judged_slot_reg;
  reg read_valid_reg, held_valid_reg, judged_valid_reg;
  reg read_changed_reg, held_changed_reg, judged_changed_reg;
  reg [32:0] word_reg, held_reg;
  reg [JOB_BITS-1:0] read_job_reg, held_job_reg, judged_job_reg;
  // The latest start that is overdue when the slot's word is held. Times wrap: a start after now
  // is one before the wrap.
  reg [31:0] latest_reg;
  reg latest_wraps_reg;
  reg bounded_reg;  // the job has a deadline
  reg runs_reg;  // the timer runs, the job has a deadline and is not ending
  reg wraps_reg, judged_wraps_reg;  // the timer's start, and the latest start, are after now
  reg before_reg;  // the timer's start is not after the latest start

  wire [JOB_BITS-1:0] read_job = JOBS == 1 ? {JOB_BITS{1'b0}} : read_job_reg;
  wire [31:0] deadline = job_deadline[32*read_job+:32];
  wire exceeds = wraps_reg == judged_wraps_reg ? before_reg : wraps_reg;
  wire overdue = judged_valid_reg && runs_reg && !judged_changed_reg && exceeds;

  // The slot that was found
  reg busy_reg;  // examination pauses
  reg act_valid_reg, act_ok_reg;
  reg [SLOT_BITS-1:0] act_slot_reg;
  reg [JOB_BITS-1:0] act_job_reg;
  reg granted_reg;
  reg [2:0] cycle_reg;  // since act_grant, from 0 in the next cycle
  wire event_now = granted_reg && cycle_reg == LAST_CYCLE;

  always @(posedge clk) begin
    now_reg  <= soon_reg;
    soon_reg <= soon_reg + 32'd1;
    if (changes) begin
      words[change_slot] <= {!stop && !clear, now_reg};
      jobs[change_slot]  <= job;
    end
    word_reg                       <= words[at_reg];
    read_job_reg                   <= jobs[at_reg];

    at_reg                         <= (event_now ? act_slot_reg : at_reg) + 1'b1;

    read_slot_reg                  <= at_reg;
    read_valid_reg                 <= !busy_reg && !overdue && !(&flush);
    read_changed_reg               <= changes && change_slot == at_reg;

    held_slot_reg                  <= read_slot_reg;
    held_valid_reg                 <= read_valid_reg && !overdue;
    held_changed_reg               <= read_changed_reg || (changes && change_slot == read_slot_reg);
    held_reg                       <= word_reg;
    held_job_reg                   <= read_job;
    bounded_reg                    <= deadline != 32'd0;
    {latest_wraps_reg, latest_reg} <= {1'b0, soon_reg} - {1'b0, deadline};

    judged_slot_reg                <= held_slot_reg;
    judged_valid_reg               <= held_valid_reg && !overdue;
    judged_changed_reg             <= held_changed_reg || (changes && change_slot == held_slot_reg);
    judged_job_reg                 <= held_job_reg;
    runs_reg                       <= held_reg[32] && bounded_reg && !flush[held_job_reg];
    wraps_reg                      <= held_reg[31:0] > now_reg;
    judged_wraps_reg               <= latest_wraps_reg;
    before_reg                     <= held_reg[31:0] <= latest_reg;

    cycle_reg                      <= act_grant ? 3'd0 : cycle_reg + 3'd1;
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
      soon_reg         <= 32'd1;
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
  localparam integer SLOTS = 1 << SLOT_BITS;
  reg was_reset = 1'b0;
  reg cleared;  // the slot, since the reset
  reg runs;
  reg [JOB_BITS-1:0] its;
  reg [31:0] ran;
  reg [31:0] allowed_was;
  reg runs_was, flush_was, granted_was, act_ok_was;
  reg [JOBS-1:0] flush_vector_was;
  reg [3:0] all_were;  // all jobs were ending
  reg [SLOT_BITS+5:0] late;  // cycles since it became overdue, except those of an ungranted act
  wire mine = slot == watched;
  wire [31:0] allowed = job_deadline[32*its+:32];
  wire ends = flush[its];
  wire is_overdue = runs && allowed != 0 && ran >= allowed;
  wire acts = acted && mine;

  // Cycles to the event of the watched slot's action, at most, if no other slot is found overdue
  // from the next cycle on: those of the first slot that is not done with, if it is overdue, and
  // one for each slot after it. An action adds ten. A slot that changed after it was read passes
  // without action, and is read again after all others.
  wire others = overdue && judged_slot_reg != watched;
  wire [SLOT_BITS-1:0] first = busy_reg ? act_slot_reg : judged_valid_reg ? judged_slot_reg :
      held_valid_reg ? held_slot_reg : read_valid_reg ? read_slot_reg : at_reg;
  wire [3:0] rest = granted_reg ? 6 - cycle_reg : busy_reg ? 7 : judged_valid_reg ? 8 :
      held_valid_reg ? 9 : read_valid_reg ? 10 : 11;
  wire [SLOT_BITS-1:0] ahead = watched - first;
  wire [SLOT_BITS+5:0] straight = rest + ahead + (others || (busy_reg && ahead != 0) ? 10 : 0);
  reg [SLOT_BITS+5:0] credit;  // cycles that the bound leaves; each slot that is found adds ten
  wire [3:0] since = busy_reg ? 8 - rest : 19 - rest;  // the last slot was found overdue, at least
  wire [3:0] passes = judged_valid_reg && judged_slot_reg == watched && !overdue ? 1 :
      held_valid_reg && held_slot_reg == watched && held_changed_reg ? 2 :
      read_valid_reg && read_slot_reg == watched && read_changed_reg ? 3 : 0;
  wire [SLOT_BITS+5:0] most = busy_reg && ahead == 0 && !act_ok_reg ? rest + SLOTS + 10 :
      !others && passes != 0 ? passes + SLOTS + 7 : straight;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    cleared <= !rst && (cleared || (clear && clear_slot == watched));
    runs_was <= !rst && runs;
    flush_was <= ends;
    flush_vector_was <= flush;
    granted_was <= !rst && (granted_reg || act_grant);
    act_ok_was <= act_ok;
    all_were <= {all_were[2:0], rst || &flush};
    allowed_was <= allowed;
    ran <= ran + 1;
    if ((start || acted) && mine) begin
      runs <= 1'b1;
      its  <= job;
      ran  <= 1;
    end
    if ((stop && mine) || (clear && clear_slot == watched)) runs <= 1'b0;
    late <= is_overdue && !ends && !((start || acted) && mine) ?
        late + !(act_valid && !act_grant) : 0;
    credit <= is_overdue && !ends && !((start || acted) && mine) ?
        credit - !(act_valid && !act_grant) + (others ? 10 : 0) :
        SLOTS + (overdue || (busy_reg && !event_now) ? 20 : 10);
    if (rst) begin
      runs <= 1'b0;
      late <= 0;
      credit <= SLOTS + 10;
      all_were <= 4'hf;
    end
  end

  always @* begin
    if (was_reset) begin
      // agg_jobs: it clears all slots while all jobs end after a reset, and the slots of a job
      // that ends, while nothing is judged. No job starts soon after all have ended.
      `PROMISED(cleared || &flush);
      `PROMISED(!(start || stop || acted) || !clear);
      `PROMISED(!clear || !(granted_reg || act_grant));
      `PROMISED(!(start || stop || acted) || !flush[job]);
      `PROMISED(!start || all_were == 0);
      `PROMISED(!(runs && runs_was && flush_was) || ends);
      `PROMISED(!granted_was || flush == flush_vector_was);
      // A job's deadline does not change while the job uses slots.
      `PROMISED(!(runs && runs_was) || allowed == allowed_was);
      `PROMISED(!(runs && mine && (start || stop || acted)) || job == its);
      // agg_arbiter and agg_slots: the event comes six cycles after the grant, none in the cycle
      // before; operations are at least two cycles apart.
      `PROMISED(!act_grant || (act_valid && !rst));
      `PROMISED(!granted_reg || cycle_reg != LAST_CYCLE - 1 || !(start || stop || acted));
      `PROMISED(acted == (event_now && act_ok_was));
      `PROMISED(!event_now || !start);
      `PROMISED(!event_now || !(acted || stop) || slot == act_slot);
      `PROMISED(!event_now || !stop || acted);
      // No timer reaches 2^31 cycles.
      assume (!runs || ran < 32'h80000000);
    end
    if (was_reset && !rst) begin
      assert (soon_reg == now_reg + 32'd1);
      if (cleared) assert (words[watched][32] == runs);
      if (cleared && runs)
        assert ((JOBS == 1 || jobs[watched] == its) && now_reg - words[watched][31:0] == ran);
      if (runs) assert (cleared);
      if (read_valid_reg || held_valid_reg || judged_valid_reg || busy_reg) assert (cleared);

      // The stages hold the slot's word, unless it has changed.
      if (read_slot_reg == watched && read_valid_reg && !read_changed_reg)
        assert (word_reg == words[watched] && read_job_reg == jobs[watched]);
      if (held_slot_reg == watched && held_valid_reg && !held_changed_reg) begin
        assert (held_reg == words[watched] && held_job_reg == jobs[watched]);
        if (runs) begin
          assert (bounded_reg == (allowed != 0));
          assert (latest_reg == now_reg - allowed && latest_wraps_reg == (now_reg < allowed));
        end
      end
      if (judged_slot_reg == watched && judged_valid_reg && !judged_changed_reg) begin
        assert (runs_reg == (runs && allowed != 0 && !flush_was));
        if (runs_reg) assert (exceeds == (ran - 1 >= allowed) && judged_job_reg == its);
      end
      if (read_valid_reg) assert (at_reg == read_slot_reg + 1'b1);
      if (held_valid_reg) assert (read_slot_reg == held_slot_reg + 1'b1);
      if (judged_valid_reg) assert (held_slot_reg == judged_slot_reg + 1'b1);
      if (busy_reg) assert (!read_valid_reg && !held_valid_reg && !judged_valid_reg);
      assert (act_valid == (busy_reg && !granted_reg) && (!granted_reg || busy_reg));
      assert (!granted_reg || cycle_reg <= LAST_CYCLE);

      // A slot that is acted upon is overdue. It is acted upon unless its timer has changed.
      if (busy_reg && act_ok && act_slot == watched)
        assert (is_overdue && act_job == its && !(granted_reg && flush_was));
      if (acts) assert (is_overdue && act_job == its && !ends);
      if (busy_reg && act_slot == watched && is_overdue && !ends && late > 12 - rest)
        assert (act_ok);

      // The bound: a cycle for each slot, and ten for each that is found overdue, itself included.
      if (is_overdue && !ends) assert (most <= credit + (others ? 10 : 0));
      assert (credit + since <= SLOTS + 30);

      cover (acts && its == JOBS - 1);
      cover (acts && late > 14);
      cover (event_now && !act_ok_was);
    end
  end
`endif

endmodule

`default_nettype wire
