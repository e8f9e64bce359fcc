// Unpacks a granted request and makes the checks that need no slot, in the order of the
// specification: version, kind, job, epoch, rank, eviction; then, for data, format, length and
// CRC.
//
// agg_ingress documents the request's layout. code names the first check that fails; refused is
// low if all pass. belongs: the rank is the port's own, so a refusal can be answered. index is the
// job's number, truncated for a job that this card does not have. slot is the VID's slot. In the
// cycle after act_next, index and slot are act_job and act_slot.
//
// Latency: one cycle. The job's configuration is read in cycle 0, job_valid in cycle 1: the job
// may end in between. Not done here: the slot rules (agg_slots).

`default_nettype none

module agg_commit #(
    parameter integer       PORTS     = 4,
    parameter integer       PORT_BITS = 2,
    parameter integer       JOBS      = 1,
    parameter integer       JOB_BITS  = 1,
    parameter integer       SLOT_BITS = 4,
    parameter         [7:0] FORMAT    = 8'd1  // data format of contributions, as in the header
) (
    input wire clk,
    input wire rst,

    input wire                 valid,
    input wire [    PORTS-1:0] ports,   // the request's port, one-hot
    input wire [PORT_BITS-1:0] port,
    input wire [        101:0] request,

    // agg_deadlines acts upon a slot in the next cycle; no request is valid in this one
    input wire                 act_next,
    input wire [SLOT_BITS-1:0] act_slot,
    input wire [ JOB_BITS-1:0] act_job,

    // Jobs, job 0 in the lowest bits
    input wire [          JOBS-1:0] job_valid,     // set up
    input wire [          JOBS-1:0] job_complete,  // the last one ended: all had finished
    input wire [       16*JOBS-1:0] job_epoch,     // of the most recent job
    input wire [       16*JOBS-1:0] job_chunk,     // chunk length, in elements
    input wire [SLOT_BITS*JOBS-1:0] slot_mask,     // 2 * window - 1
    input wire [SLOT_BITS*JOBS-1:0] slot_base,     // the first slot
    input wire [    PORTS*JOBS-1:0] member,        // ports of the most recent job
    input wire [    PORTS*JOBS-1:0] evicted,       // ports that were evicted from it
    input wire [  8*PORTS*JOBS-1:0] rank_of_port,

    output wire                 refused,
    output wire [          7:0] code,
    output wire                 belongs,
    output wire                 data,        // accepted: data, ask or finish
    output wire                 ask,
    output wire                 finish,
    output wire                 writable,    // of data: the payload is in the slot memory
    output wire                 nonfinite,   // of data: the payload has a NaN or an infinity
    output wire [          1:0] ecn,
    output wire [          7:0] job,
    output wire [ JOB_BITS-1:0] index,
    output wire [SLOT_BITS-1:0] slot,
    output wire [         15:0] epoch,
    output wire [          7:0] rank,
    output wire [         31:0] vid,
    output wire [    PORTS-1:0] from_ports,  // the request's port, one-hot
    output wire [PORT_BITS-1:0] from_port
);

  `include "zwire.vh"

  // -- Checks -------------------------------------------------------------------------------------

  wire [3:0] version = request[3:0];
  wire [3:0] kind = request[7:4];
  wire [7:0] number = request[17:10];  // of the job
  wire [7:0] format = request[25:18];
  wire [15:0] its_epoch = request[41:26];
  wire [7:0] its_rank = request[49:42];
  wire [15:0] length = request[97:82];
  wire whole = request[98];
  wire bad = request[99];

  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : number[JOB_BITS-1:0];

  wire is_data = kind == KIND_DATA;
  wire is_ask = kind == KIND_ASK;
  wire is_finish = kind == KIND_FINISH;

  wire exists = number >> (JOBS == 1 ? 0 : JOB_BITS) == 8'd0;
  wire [15:0] epoch_now = job_epoch[16*its_job+:16];
  wire [8*PORTS-1:0] ranks = rank_of_port[8*PORTS*its_job+:8*PORTS];
  wire [PORTS-1:0] members = member[PORTS*its_job+:PORTS];
  wire [PORTS-1:0] gone = evicted[PORTS*its_job+:PORTS];
  wire [SLOT_BITS-1:0] mask = slot_mask[SLOT_BITS*its_job+:SLOT_BITS];
  wire [SLOT_BITS-1:0] base = slot_base[SLOT_BITS*its_job+:SLOT_BITS];

  wire same_epoch = its_epoch == epoch_now;
  wire same_rank = members[port] && its_rank == ranks[8*port+:8];

  reg [7:0] header_code;  // first failed check that needs no job state
  reg [7:0] job_code;  // first failed check that needs it

  always @* begin
    if (version != VERSION) header_code = CODE_BAD_VERSION;
    else if (!is_data && !is_ask && !is_finish) header_code = CODE_BAD_KIND;
    else if (!exists) header_code = CODE_BAD_JOB;
    else header_code = CODE_DONE;

    if (!same_epoch) job_code = CODE_BAD_EPOCH;
    else if (!same_rank) job_code = CODE_BAD_RANK;
    else if (gone[port]) job_code = CODE_EVICTED;
    else if (!is_data) job_code = CODE_DONE;
    else if (format != FORMAT) job_code = CODE_BAD_FORMAT;
    else if (length != job_chunk[16*its_job+:16] || !whole) job_code = CODE_BAD_LENGTH;
    else if (bad) job_code = CODE_PAYLOAD_CRC;
    else job_code = CODE_DONE;
  end

  // -- Second cycle -------------------------------------------------------------------------------

  reg valid_reg;
  reg [101:0] request_reg;
  reg [PORTS-1:0] ports_reg;
  reg [PORT_BITS-1:0] port_reg;
  reg belongs_reg;
  reg [JOB_BITS-1:0] index_reg;
  reg [SLOT_BITS-1:0] slot_reg;
  reg fails_before_reg;
  reg [7:0] header_code_reg, job_code_reg;
  reg data_reg, ask_reg, finish_reg;  // accepted, provided that the job is set up
  reg confirms_reg;  // a finish of the current epoch; accepted also after it completed the job

  always @(posedge clk) begin
    valid_reg <= valid && !rst;
    request_reg <= request;
    ports_reg <= ports;
    port_reg <= port;
    belongs_reg <= same_rank;
    index_reg <= act_next ? act_job : its_job;
    slot_reg <= act_next ? act_slot : base | (request[50+:SLOT_BITS] & mask);
    fails_before_reg <= header_code != CODE_DONE;
    header_code_reg <= header_code;
    job_code_reg <= job_code;
    data_reg <= valid && !rst && header_code == CODE_DONE && job_code == CODE_DONE && is_data;
    ask_reg <= valid && !rst && header_code == CODE_DONE && job_code == CODE_DONE && is_ask;
    finish_reg <= valid && !rst && header_code == CODE_DONE && job_code == CODE_DONE && is_finish;
    confirms_reg <= is_finish && same_epoch;
  end

  wire stands = job_valid[index_reg];
  wire stood = stands || (job_complete[index_reg] && confirms_reg);

  // The header, the format and the length are checked above.
  wire unused = &{1'b0, request_reg[99:82], request_reg[25:18], request_reg[7:0]};

  assign writable   = request_reg[101];
  assign nonfinite  = request_reg[100];
  assign vid        = request_reg[81:50];
  assign rank       = request_reg[49:42];
  assign epoch      = request_reg[41:26];
  assign job        = request_reg[17:10];
  assign ecn        = request_reg[9:8];
  assign belongs    = belongs_reg;
  assign index      = index_reg;
  assign slot       = slot_reg;
  assign from_ports = ports_reg;
  assign from_port  = port_reg;

  assign data       = data_reg && stands;
  assign ask        = ask_reg && stands;
  assign finish     = finish_reg && stood;
  assign refused    = valid_reg && !data && !ask && !finish;
  assign code       = fails_before_reg ? header_code_reg : stood ? job_code_reg : CODE_BAD_JOB;

endmodule

`default_nettype wire
