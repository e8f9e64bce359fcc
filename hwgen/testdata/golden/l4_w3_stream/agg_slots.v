// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// The slot table: one packet a cycle is judged by the slot rules, and the table is changed, in
// that cycle.
//
// A slot is empty, collecting, reducing or reduced: *active* once it has turned over since the job
// was set up, reducing when it holds all ranks, reduced when its sum is in the cache. Of an empty
// slot nothing is stored: the VID that it would hold follows from the job's first VID, and every
// rank is done with it.
//
// The slots of v and of v - W differ in one bit of their number alone, that of the window. A row
// of the table holds such a pair, so both are read and changed at once.
//
// Events belong to slot `slot` and stand in the cycle of the commit; the table changes at its end.
// A payload that was not written (see agg_ingress) is refused as not ready; no worker that keeps
// to the rules meets that. Not done here: the checks of the header (agg_commit), who is owed what
// (agg_owed), what becomes of answers (agg_status).

`default_nettype none

module agg_slots #(
    parameter integer PORTS     = 4,
    parameter integer WINDOW    = 8,
    parameter integer SLOT_BITS = 4,  // of a slot's number: log2(2 * WINDOW)
    parameter integer ROW_BITS  = 3,  // of a row's number: log2(WINDOW), at least 1
    parameter integer RANK_BITS = 2   // of a rank
) (
    input wire clk,

    // The job
    input wire                 flush,       // the job ends: all slots become empty
    input wire [         31:0] job_first,
    input wire [SLOT_BITS-1:0] job_window,
    input wire [SLOT_BITS-1:0] slot_mask,   // twice the window, less 1
    input wire [    PORTS-1:0] job_ranks,   // a bit for every rank there is

    // The packet; one of these at most is high
    input wire                 refuse,    // it failed a check, with code
    input wire                 data,
    input wire                 ask,
    input wire                 finish,
    input wire [          7:0] code,
    input wire                 belongs,   // its rank is its port's
    input wire [    PORTS-1:0] ports,     // the port it came by, one hot
    input wire [RANK_BITS-1:0] rank,
    input wire [         31:0] vid,
    input wire [          1:0] ecn,
    input wire                 writable,
    input wire                 nonfinite,

    // A slot's last beat has been summed
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot,

    // What comes of it
    output wire [SLOT_BITS-1:0] slot,
    output wire [PORTS-1:0] rank_bit,  // the sender
    output wire turn_over,  // the slot takes a new VID, drops what it owed
    output wire store,  // data is stored
    output wire store_ce,
    output wire store_nonfinite,
    output wire [PORTS-1:0] resolve,  // the fate of the port's writable data is known
    output wire owe,  // the sender is owed the result
    output wire complete,  // the slot holds all ranks
    output wire [1:0] complete_ecn,
    output wire complete_nonfinite,
    output wire asked,  // an ask is not refused
    output wire answer,  // an ask or finish is answered with a status
    output wire [7:0] answer_code,
    output wire [PORTS-1:0] answer_mask,  // the ranks that are missing
    output wire refused,
    output wire [7:0] refused_code,
    output wire refused_answer  // it may be answered with a status
);

  `include "zwire.vh"

  localparam [PORTS-1:0] ONE = 1;
  localparam integer SLOT_WIDTH = 32 + 2 * PORTS + 4;  // {marks, done, held, VID}

  reg [SLOT_WIDTH-1:0] low_slots[0:WINDOW-1];  // the window's bit is 0 in their number
  reg [SLOT_WIDTH-1:0] high_slots[0:WINDOW-1];
  reg [2*WINDOW-1:0] active_reg;
  reg [2*WINDOW-1:0] reduced_reg;

  // -- Read ---------------------------------------------------------------------------------------

  wire [SLOT_BITS-1:0] in_window = slot & ~job_window;
  wire [ROW_BITS-1:0] row = in_window[ROW_BITS-1:0];
  wire high = |(slot & job_window);
  wire unused = in_window[SLOT_BITS-1];  // it is 0

  wire [SLOT_WIDTH-1:0] low_slot = low_slots[row];
  wire [SLOT_WIDTH-1:0] high_slot = high_slots[row];
  wire [SLOT_WIDTH-1:0] own = high ? high_slot : low_slot;
  wire [SLOT_WIDTH-1:0] other = high ? low_slot : high_slot;  // of v - W

  assign slot     = vid[SLOT_BITS-1:0] & slot_mask;
  assign rank_bit = ONE << rank;

  wire active = active_reg[slot];
  wire is_reduced = reduced_reg[slot];
  wire [SLOT_BITS-1:0] other_slot = slot ^ job_window;
  wire other_reduced = reduced_reg[other_slot];

  wire [31:0] own_vid = own[31:0];
  wire [PORTS-1:0] own_held = own[32+:PORTS];
  wire [PORTS-1:0] own_done = own[32+PORTS+:PORTS];
  wire [3:0] own_marks = own[32+2*PORTS+:4];
  wire [31:0] other_vid = other[31:0];

  // -- Judge --------------------------------------------------------------------------------------

  wire [31:0] window = {{32 - SLOT_BITS{1'b0}}, job_window};
  wire [31:0] window_2 = window << 1;
  wire [31:0] since_first = vid - job_first;

  // How far v is ahead of what the slot holds
  wire [31:0] ahead = active ? vid - own_vid : (since_first & ~(window_2 - 32'd1)) + window_2;
  wire same = ahead == 32'd0;
  wire next = ahead == window_2;

  wire reducing = own_held == job_ranks;
  wire collecting = active && !reducing;
  wire held = |(own_held & rank_bit);

  wire [PORTS-1:0] done = own_done | rank_bit;
  wire may_turn = (active ? is_reduced && done == job_ranks : 1'b1);

  assign turn_over       = data && next && may_turn && writable;
  assign store           = turn_over || (data && same && collecting && !held && writable);
  assign owe             = (data || ask) && same && active && is_reduced;
  assign resolve         = (data || refuse) && writable ? ports : {PORTS{1'b0}};

  assign store_ce        = store && ecn == ECN_CE;
  assign store_nonfinite = store && nonfinite;

  wire proves = data && other_reduced && other_vid == vid - window;  // done with v - W

  // -- Answer -------------------------------------------------------------------------------------

  reg [7:0] rule;  // that refuses data or ask

  always @* begin
    if (same && !active) rule = CODE_LATE;
    else if (same && (held || reducing)) rule = CODE_DUPLICATE;
    else if (same || next) rule = CODE_NOT_READY;
    else if (ahead[31]) rule = CODE_LATE;
    else rule = CODE_EARLY;
  end

  assign asked          = ask && (next || (same && active));
  assign refused        = refuse || (data && !store) || (ask && !asked);
  assign refused_code   = refuse ? code : rule;
  assign refused_answer = refused && belongs && !owe && refused_code != CODE_PAYLOAD_CRC;

  assign answer         = finish || (ask && (next || (same && collecting)));
  assign answer_code    = finish ? CODE_DONE : same && held ? CODE_WAIT : CODE_SEND;
  assign answer_mask    = finish ? {PORTS{1'b0}} : next ? job_ranks : job_ranks & ~own_held;

  // -- Change -------------------------------------------------------------------------------------

  wire [PORTS-1:0] held_next = (turn_over ? {PORTS{1'b0}} : own_held) | rank_bit;
  wire [      3:0] marks_next = (turn_over ? 4'd0 : own_marks) |
      {nonfinite, ecn == ECN_CE, ecn == ECN_NOT_ECT, ecn == ECN_ECT0};
  wire [PORTS-1:0] done_next = turn_over ? {PORTS{1'b0}} : data && next ? done : own_done;

  wire [SLOT_WIDTH-1:0] own_next = store ? {marks_next, done_next, held_next, vid} :
      {own_marks, done_next, own_held, own_vid};
  wire [SLOT_WIDTH-1:0] done_bit = {{SLOT_WIDTH - PORTS{1'b0}}, rank_bit} << (32 + PORTS);
  wire [SLOT_WIDTH-1:0] other_next = other | done_bit;

  assign complete = store && held_next == job_ranks;
  assign complete_nonfinite = marks_next[3];
  assign complete_ecn       = marks_next[2] ? ECN_CE : marks_next[1] ? ECN_NOT_ECT :
      marks_next[0] ? ECN_ECT0 : ECN_ECT1;

  always @(posedge clk) begin
    if (high ? proves : data) low_slots[row] <= high ? other_next : own_next;
    if (high ? data : proves) high_slots[row] <= high ? own_next : other_next;

    if (turn_over) begin
      active_reg[slot]  <= 1'b1;
      reduced_reg[slot] <= 1'b0;
    end
    if (reduced) reduced_reg[reduced_slot] <= 1'b1;
    if (flush) begin
      active_reg  <= {2 * WINDOW{1'b0}};
      reduced_reg <= {2 * WINDOW{1'b0}};
    end
  end

endmodule

`default_nettype wire
