// Replies to what the slot table decided: refusals, answers, notices of overdue slots, and the
// verdict on data.
//
// A verdict is one event for each packet of data, accepted or refused: stored; a duplicate; owed,
// the duplicate of a reduced slot; refused; flushed, if no job judged it, because its job ended on
// its way or the link is down. Its code is that of the refusal, or done.
//
// Latency: one cycle. Fields mean nothing without their event. Not done here: the rules
// (agg_slots), sending (agg_status).

`default_nettype none

module agg_replies #(
    parameter integer PORTS     = 4,
    parameter integer PORT_BITS = 2,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,
    input wire link_down,

    // The packet; at most one of the first four is high
    input wire                 refuse,   // a check failed; code names it
    input wire                 data,
    input wire                 ask,
    input wire                 finish,
    input wire [          7:0] code,
    input wire                 belongs,  // its rank is the port's own
    input wire                 of_data,  // data, refused or not
    input wire                 placed,   // its job is set up
    input wire                 ended,    // refused because its job ended on its way
    input wire [PORT_BITS-1:0] port,
    input wire [SLOT_BITS-1:0] slot,
    input wire [         31:0] vid,

    // What the rules say
    input wire same,        // the VID is the slot's
    input wire next,        // its next one
    input wire behind,      // one before
    input wire active,      // the slot, and below
    input wire collecting,
    input wire held,        // the sender's contribution
    input wire stores,      // the packet
    input wire owes,        // the packet's sender is owed the result

    // An overdue slot that still waits, for missing ports or for ports that are not done
    input wire             overdue,
    input wire             cuts,     // it closes
    input wire             evicts,   // those that are not done are evicted
    input wire [     31:0] own_vid,  // the slot's
    input wire [PORTS-1:0] member,
    input wire [PORTS-1:0] evicted,
    input wire [PORTS-1:0] missing,
    input wire [PORTS-1:0] undone,

    output wire             notice,         // report answer_ports
    output wire [PORTS-1:0] notice_ports,   // to these ports
    output wire [      7:0] notice_code,
    output wire [     31:0] notice_vid,
    output wire             asked,          // an ask was not refused
    output wire             answer,         // an ask or a finish gets a status as its reply
    output wire [      7:0] answer_code,
    output wire [PORTS-1:0] answer_ports,   // missing members, or all evicted ones
    output wire             finished,       // a finish was accepted
    output wire             refused,
    output wire [      7:0] refused_code,
    output wire             refused_answer, // a status may be sent for it

    output wire                 verdict_valid,
    output wire [PORT_BITS-1:0] verdict_port,
    output wire [SLOT_BITS-1:0] verdict_slot,    // 0 if its job is not set up
    output wire [         31:0] verdict_vid,
    output wire [          2:0] verdict_result,
    output wire [          7:0] verdict_code
);

  `include "zwire.vh"

  localparam [2:0] RESULT_STORED = 3'd0;
  localparam [2:0] RESULT_DUPLICATE = 3'd1;
  localparam [2:0] RESULT_OWED = 3'd2;
  localparam [2:0] RESULT_REFUSED = 3'd3;
  localparam [2:0] RESULT_FLUSHED = 3'd4;

  // -- Refusals ----------------------------------------------------------------------------------

  wire repeats = same && active && (held || !collecting);  // of the sender's data, or too late
  reg [7:0] rule;  // the code if data or an ask is refused

  always @* begin
    if (same && !active) rule = CODE_LATE;
    else if (repeats) rule = CODE_DUPLICATE;
    else if (same || next) rule = CODE_NOT_READY;
    else if (behind) rule = CODE_LATE;
    else rule = CODE_EARLY;
  end

  wire asked_next = ask && (next || (same && active));
  wire refused_next = refuse || (data && !stores) || (ask && !asked_next);
  wire [7:0] refused_code_next = refuse ? code : rule;

  // -- Answers and notices -----------------------------------------------------------------------

  wire [PORTS-1:0] waits_for = collecting ? missing : undone;
  wire of_slot = ask || finish;  // else an overdue slot, if anything
  reg [PORTS-1:0] named;

  always @* begin
    if (finish) named = {PORTS{1'b0}};
    else if (of_slot) named = next ? member : missing;
    else named = evicts ? evicted | undone : waits_for;
  end

  // -- Verdict -----------------------------------------------------------------------------------

  reg [2:0] result;

  always @* begin
    if (stores) result = RESULT_STORED;
    else if (owes) result = RESULT_OWED;
    else if (data && repeats) result = RESULT_DUPLICATE;
    else if (ended || link_down) result = RESULT_FLUSHED;
    else result = RESULT_REFUSED;
  end

  // -- Registers ---------------------------------------------------------------------------------

  reg notice_reg, asked_reg, answer_reg, finished_reg, refused_reg, refused_answer_reg;
  reg verdict_valid_reg;
  reg [PORTS-1:0] notice_ports_reg, answer_ports_reg;
  reg [7:0] notice_code_reg, answer_code_reg, refused_code_reg, verdict_code_reg;
  reg [31:0] notice_vid_reg, verdict_vid_reg;
  reg [PORT_BITS-1:0] verdict_port_reg;
  reg [SLOT_BITS-1:0] verdict_slot_reg;
  reg [2:0] verdict_result_reg;

  always @(posedge clk) begin
    notice_reg <= overdue && !cuts && !rst;
    notice_ports_reg <= evicts ? member | evicted : member & ~waits_for;
    notice_code_reg <= evicts ? CODE_EVICTED : CODE_OVERDUE;
    notice_vid_reg <= own_vid;

    asked_reg <= asked_next && !rst;
    answer_reg <= (finish || (ask && (next || (same && collecting)))) && !rst;
    answer_code_reg <= finish ? CODE_DONE : same && held ? CODE_WAIT : CODE_SEND;
    answer_ports_reg <= named;
    finished_reg <= finish && !rst;

    refused_reg <= refused_next && !rst;
    refused_code_reg <= refused_code_next;
    refused_answer_reg <= refused_next && belongs && !owes &&
        !(refuse && code == CODE_PAYLOAD_CRC) && !rst;

    verdict_valid_reg <= of_data && (refuse || data) && !rst;
    verdict_port_reg <= port;
    verdict_slot_reg <= placed ? slot : {SLOT_BITS{1'b0}};
    verdict_vid_reg <= vid;
    verdict_result_reg <= result;
    verdict_code_reg <= stores ? CODE_DONE : refused_code_next;
  end

  assign notice         = notice_reg;
  assign notice_ports   = notice_ports_reg;
  assign notice_code    = notice_code_reg;
  assign notice_vid     = notice_vid_reg;
  assign asked          = asked_reg;
  assign answer         = answer_reg;
  assign answer_code    = answer_code_reg;
  assign answer_ports   = answer_ports_reg;
  assign finished       = finished_reg;
  assign refused        = refused_reg;
  assign refused_code   = refused_code_reg;
  assign refused_answer = refused_answer_reg;
  assign verdict_valid  = verdict_valid_reg;
  assign verdict_port   = verdict_port_reg;
  assign verdict_slot   = verdict_slot_reg;
  assign verdict_vid    = verdict_vid_reg;
  assign verdict_result = verdict_result_reg;
  assign verdict_code   = verdict_code_reg;

endmodule

`default_nettype wire
