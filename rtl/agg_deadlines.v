// Watches how long slots wait, and finds those that wait for longer than their job allows.
//
// A slot's time begins when it turns over, and ends when it is closed; it begins once more when the
// closed slot first refuses to turn over, and ends when it does. The slots are looked at in turn, one a
// cycle. One that is overdue is acted upon: pause keeps packets from being judged in the next cycle, and
// in that cycle act names the slot, if it still is overdue. Its time begins anew. A job's deadline of 0
// is none.
//
// Latency: a slot is acted upon no later than as many cycles after its time as there are slots, and one
// more, and two more for each other one that is found overdue before. Not done here: what is to be done with it (agg_slots).

`default_nettype none

module agg_deadlines #(
    parameter integer JOBS      = 1,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    input wire [(1<<SLOT_BITS)-1:0] flush_slots,  // their job ends
    input wire [       32*JOBS-1:0] job_deadline, // cycles, job 0 in the lowest bits

    // What is done to a slot
    input wire [SLOT_BITS-1:0] slot,
    input wire [ JOB_BITS-1:0] job,
    input wire                 turn_over,
    input wire                 close,      // it is given to be summed
    input wire                 stall,      // it is not turned over though it is asked to

    output wire                 pause,
    output wire                 act,
    output wire [SLOT_BITS-1:0] act_slot,
    output wire [ JOB_BITS-1:0] act_job
);

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [SLOTS-1:0] ONE_SLOT = 1;

  localparam [1:0] STATE_LOOK = 2'd0;
  localparam [1:0] STATE_PAUSE = 2'd1;
  localparam [1:0] STATE_ACT = 2'd2;

  reg [31:0] since[0:SLOTS-1];  // when its time began
  reg [JOB_BITS-1:0] owner[0:SLOTS-1];
  reg [SLOTS-1:0] waits_reg;  // its time runs
  reg [31:0] now_reg;
  reg [1:0] state_reg;
  reg [SLOT_BITS-1:0] at_reg;  // the slot that is looked at

  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : owner[at_reg];
  wire [31:0] deadline = job_deadline[32*its_job+:32];
  wire [31:0] waited = now_reg - since[at_reg];
  wire overdue = waits_reg[at_reg] && deadline != 32'd0 && waited >= deadline;

  wire starts = turn_over || (stall && !waits_reg[slot]);
  wire writes = starts || act;

  wire [SLOTS-1:0] started = starts ? ONE_SLOT << slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] closed = close ? ONE_SLOT << slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    if (writes) since[act?at_reg : slot] <= now_reg;
    if (starts) owner[slot] <= job;
    waits_reg <= (waits_reg | started) & ~closed & ~flush_slots;

    case (state_reg)
      STATE_LOOK: begin
        if (overdue) state_reg <= STATE_PAUSE;
        else at_reg <= at_reg + 1'b1;
      end
      STATE_PAUSE: state_reg <= STATE_ACT;
      default: begin
        state_reg <= STATE_LOOK;
        at_reg    <= at_reg + 1'b1;
      end
    endcase

    if (rst) begin
      waits_reg <= {SLOTS{1'b0}};
      now_reg   <= 32'd0;
      state_reg <= STATE_LOOK;
      at_reg    <= {SLOT_BITS{1'b0}};
    end
  end

  assign pause    = state_reg == STATE_PAUSE;
  assign act      = state_reg == STATE_ACT && overdue && !flush_slots[at_reg];
  assign act_slot = at_reg;
  assign act_job  = its_job;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // Of any slot: whose it is and how long its time has run.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  reg runs;
  reg [JOB_BITS-1:0] its;
  reg [31:0] ran;
  reg pause_was;
  reg [SLOT_BITS+2:0] late;  // cycles for which it has been overdue
  wire mine = slot == watched;
  wire [31:0] allowed = job_deadline[32*its+:32];
  wire is_overdue = runs && allowed != 0 && ran >= allowed;
  wire acts = act && act_slot == watched;
  wire [SLOT_BITS-1:0] ahead = watched - at_reg;  // slots that are looked at before

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    pause_was <= pause;
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
      // agg_arbiter: who is told to pause grants nothing, so that no packet is judged in the next cycle.
      `PROMISED(!pause_was || !(turn_over || stall));
      `PROMISED(!act || !close || slot == act_slot);
      // Nothing waits for 2^31 cycles.
      assume (!runs || ran < 32'h80000000);
    end
    if (was_reset && !rst) begin
      assert (runs == waits_reg[watched]);
      if (runs) assert (owner[watched] == its && now_reg - since[watched] == ran);
      assert (pause == (state_reg == STATE_PAUSE) && state_reg != 3);

      // What is acted upon is overdue, and nothing is judged in that cycle.
      if (act) assert (pause_was);
      if (acts) assert (is_overdue && act_job == its && !flush_slots[watched]);
      if (state_reg == STATE_ACT && at_reg == watched && is_overdue && !flush_slots[watched])
        assert (acts);

      // It is found in time: three cycles for each slot.
      if (runs && is_overdue)
        assert (late + 3 * ahead + (state_reg == STATE_LOOK ? 2 :
          state_reg == STATE_PAUSE ? 1 : 0) < 3 * SLOTS || late == 0);

      cover (acts && its == 1);
      cover (acts && late > 2);
    end
  end
`endif

endmodule

`default_nettype wire
