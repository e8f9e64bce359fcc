// Made by: hwgen -lanes 2 -workers 1 -format fp32 -result fp32 -sum tree -chunk 8 -window 1 -jobs 1
//      -shell none

// Takes a granted request apart and makes the checks that need no slot, in the order of the
// specification: version, kind, job, epoch, rank, eviction, then for data format, length and CRC.
// Combinational.
//
// The request's layout is described in agg_ingress. code is the first check that fails; refused is
// low when none does. belongs: the rank is that of the port, so that a refusal can be answered. index
// is the job's number; of one that the card does not have its low bits. Not done here: the slot rules;
// agg_slots has them.

`default_nettype none

module agg_commit #(
    parameter integer       PORTS     = 4,
    parameter integer       PORT_BITS = 2,
    parameter integer       JOBS      = 1,
    parameter integer       JOB_BITS  = 1,
    parameter         [7:0] FORMAT    = 8'd1  // of contributions, as in the header
) (
    input wire                 valid,
    input wire [PORT_BITS-1:0] port,
    input wire [        101:0] request,

    // The jobs, job 0 in the lowest bits
    input wire [        JOBS-1:0] job_valid,     // set up
    input wire [        JOBS-1:0] job_complete,  // the last one ended because all had finished
    input wire [     16*JOBS-1:0] job_epoch,     // of the last one set up
    input wire [     16*JOBS-1:0] job_chunk,     // elements
    input wire [  PORTS*JOBS-1:0] member,        // ports that belong to the last one set up
    input wire [  PORTS*JOBS-1:0] evicted,       // of these, ports that do no more
    input wire [8*PORTS*JOBS-1:0] rank_of_port,

    output wire                refused,
    output wire [         7:0] code,
    output wire                belongs,
    output wire                data,       // accepted by these checks: data, ask or finish
    output wire                ask,
    output wire                finish,
    output wire                writable,   // of data
    output wire                nonfinite,  // of data
    output wire [         1:0] ecn,
    output wire [         7:0] job,
    output wire [JOB_BITS-1:0] index,
    output wire [        15:0] epoch,
    output wire [         7:0] rank,
    output wire [        31:0] vid
);

  `include "zwire.vh"

  wire [ 3:0] version = request[3:0];
  wire [ 3:0] kind = request[7:4];
  wire [ 7:0] format = request[25:18];
  wire [15:0] length = request[97:82];
  wire        whole = request[98];
  wire        bad = request[99];

  assign ecn       = request[9:8];
  assign job       = request[17:10];
  assign epoch     = request[41:26];
  assign rank      = request[49:42];
  assign vid       = request[81:50];
  assign nonfinite = request[100];
  assign writable  = request[101];

  assign index     = JOBS == 1 ? {JOB_BITS{1'b0}} : job[JOB_BITS-1:0];

  wire is_data = kind == KIND_DATA;
  wire is_ask = kind == KIND_ASK;
  wire is_finish = kind == KIND_FINISH;

  wire exists = job >> (JOBS == 1 ? 0 : JOB_BITS) == 8'd0;
  wire [15:0] epoch_now = job_epoch[16*index+:16];
  wire [8*PORTS-1:0] ranks = rank_of_port[8*PORTS*index+:8*PORTS];
  wire [PORTS-1:0] members = member[PORTS*index+:PORTS];
  wire [PORTS-1:0] gone = evicted[PORTS*index+:PORTS];

  // A finish that repeats one of the job that ended by it is taken.
  wire confirms = job_complete[index] && is_finish && epoch == epoch_now;

  assign belongs = members[port] && rank == ranks[8*port+:8];

  reg [7:0] first;  // the first check that fails

  always @* begin
    if (version != VERSION) first = CODE_BAD_VERSION;
    else if (!is_data && !is_ask && !is_finish) first = CODE_BAD_KIND;
    else if (!exists || !(job_valid[index] || confirms)) first = CODE_BAD_JOB;
    else if (epoch != epoch_now) first = CODE_BAD_EPOCH;
    else if (!belongs) first = CODE_BAD_RANK;
    else if (gone[port]) first = CODE_EVICTED;
    else if (!is_data) first = CODE_DONE;
    else if (format != FORMAT) first = CODE_BAD_FORMAT;
    else if (length != job_chunk[16*index+:16] || !whole) first = CODE_BAD_LENGTH;
    else if (bad) first = CODE_PAYLOAD_CRC;
    else first = CODE_DONE;
  end

  assign code    = first;
  assign refused = valid && first != CODE_DONE;

  wire accepted = valid && first == CODE_DONE;

  assign data   = accepted && is_data;
  assign ask    = accepted && is_ask;
  assign finish = accepted && is_finish;

endmodule

`default_nettype wire
