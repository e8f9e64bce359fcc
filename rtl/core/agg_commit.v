// Unpacks a granted request and makes the checks that need no slot, in the order of the
// specification: version, kind, job, epoch, rank, eviction; then, for data, format, length and
// CRC.
//
// An operation is a packet, or an overdue slot to act upon (agg_deadlines). At most every second
// cycle has one. Cycles are those of the operation:
//
//   C2  inputs; read and read_row, combinational: agg_slots reads the row of the slot
//   C3  the other read_*, until C4: the VID, its slot, and the job's window and first VID.
//       read_other is the slot of the VID one window before or after.
//   C5  acts, refused, data, ask, finish: for this cycle; everything else until C6
//
// The request, 103 bits: {entered, writable, nonfinite, bad, whole, length 16, vid 32, rank 8,
// epoch 16, format 8, job 8, ecn 2, kind 4, version 4}; agg_ingress documents it. code names the
// first check that fails; refused is low if all pass. belongs: the rank is the port's own, so a
// refusal can be answered. index is the job's number, truncated for a job that this card does not
// have. The slot of a job that is not set up means nothing (placed is low).
//
// The jobs' configuration does not change while an operation is in C2 to C6 (agg_jobs). Not done
// here: the slot rules (agg_slots).

`default_nettype none

module agg_commit #(
    parameter integer       PORTS     = 4,
    parameter integer       PORT_BITS = 2,
    parameter integer       JOBS      = 1,
    parameter integer       JOB_BITS  = 1,
    parameter integer       SLOT_BITS = 4,    // width of a slot number
    parameter integer       ROW_BITS  = 3,    // width of a row number: SLOT_BITS - 1, at least 1
    parameter         [7:0] FORMAT    = 8'd1  // data format of contributions, as in the header
) (
    input wire clk,
    input wire rst,

    // C2: at most one of valid and act is high. The request is 0 with act; act_slot and act_job are
    // 0 with valid.
    input wire                 valid,     // a request
    input wire [    PORTS-1:0] ports,     // its port, one-hot
    input wire [PORT_BITS-1:0] port,
    input wire [        102:0] request,
    input wire                 act,       // an overdue slot
    input wire [SLOT_BITS-1:0] act_slot,
    input wire [ JOB_BITS-1:0] act_job,

    // Jobs, job 0 in the lowest bits
    input wire [          JOBS-1:0] job_valid,     // set up
    input wire [          JOBS-1:0] job_complete,  // the last one ended: all had finished
    input wire [       16*JOBS-1:0] job_epoch,     // of the most recent job
    input wire [       16*JOBS-1:0] job_chunk,     // chunk length, in elements
    input wire [       32*JOBS-1:0] job_first,     // first VID
    input wire [          JOBS-1:0] job_partial,   // partial sums allowed
    input wire [SLOT_BITS*JOBS-1:0] job_window,
    input wire [SLOT_BITS*JOBS-1:0] slot_mask,     // 2 * window - 1
    input wire [SLOT_BITS*JOBS-1:0] slot_base,     // the first slot
    input wire [    PORTS*JOBS-1:0] member,        // ports of the most recent job
    input wire [    PORTS*JOBS-1:0] present,       // of these, ports that were not evicted
    input wire [    PORTS*JOBS-1:0] evicted,       // ports that were
    input wire [  8*PORTS*JOBS-1:0] rank_of_port,

    // C2
    output wire                read,
    output wire [ROW_BITS-1:0] read_row,

    // C3 and C4
    output wire [SLOT_BITS-1:0] read_slot,
    output wire [SLOT_BITS-1:0] read_other,
    output wire [         31:0] read_vid,
    output wire [SLOT_BITS-1:0] read_window,
    output wire [SLOT_BITS-1:0] read_mask,
    output wire [         31:0] read_first,

    // C5 only
    output wire acts,
    output wire refused,
    output wire data,     // accepted: data, ask or finish
    output wire ask,
    output wire finish,

    // C5 and C6
    output wire [          7:0] code,
    output wire                 belongs,
    output wire                 of_data,     // accepted or refused, a packet of data
    output wire                 placed,      // the job is set up
    output wire                 ended,       // data: the job was set up when the packet arrived
    output wire                 writable,    // of data: the payload is in the slot memory
    output wire                 nonfinite,   // of data: the payload has a NaN or an infinity
    output wire [          1:0] ecn,
    output wire [          7:0] job,
    output wire [ JOB_BITS-1:0] index,
    output wire [         15:0] epoch,
    output wire [          7:0] rank,
    output wire [    PORTS-1:0] from_ports,  // the request's port, one-hot
    output wire [PORT_BITS-1:0] from_port,
    output wire [    PORTS-1:0] waits_for,   // the job's ports that were not evicted
    output wire [    PORTS-1:0] gone,        // those that were
    output wire                 partial
);

  `include "zwire.vh"

  // -- C2: the slot ------------------------------------------------------------------------------

  wire its_entered, its_writable, its_nonfinite, its_bad, its_whole;
  wire [15:0] its_length, its_epoch;
  wire [31:0] its_vid;
  wire [7:0] its_rank, its_format, its_number;
  wire [1:0] its_ecn;
  wire [3:0] its_kind, its_version;

  assign {its_entered, its_writable, its_nonfinite, its_bad, its_whole} = request[102:98];
  assign {its_length, its_vid, its_rank, its_epoch} = request[97:26];
  assign {its_format, its_number, its_ecn, its_kind, its_version} = request[25:0];

  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? {JOB_BITS{1'b0}} : act_job | its_number[JOB_BITS-1:0];
  wire [SLOT_BITS-1:0] its_place = act_slot | its_vid[SLOT_BITS-1:0];
  wire [SLOT_BITS-1:0] window = job_window[SLOT_BITS*its_job+:SLOT_BITS];
  wire [SLOT_BITS-1:0] mask = slot_mask[SLOT_BITS*its_job+:SLOT_BITS];
  wire [SLOT_BITS-1:0] base = slot_base[SLOT_BITS*its_job+:SLOT_BITS];
  wire [SLOT_BITS-1:0] slot = base | (its_place & mask);
  wire [SLOT_BITS-1:0] row = (base >> 1) | (its_place & (mask >> 1));

  // Of every job, what it has at the port
  reg [8*JOBS-1:0] ranks_next;
  reg [JOBS-1:0] members_next, gone_next;

  integer j, p;

  always @* begin
    ranks_next = {8 * JOBS{1'b0}};
    for (j = 0; j < JOBS; j = j + 1) begin
      for (p = 0; p < PORTS; p = p + 1) begin
        ranks_next[8*j+:8] = ranks_next[8*j+:8] | ({8{ports[p]}} & rank_of_port[8*(PORTS*j+p)+:8]);
      end
      members_next[j] = |(ports & member[PORTS*j+:PORTS]);
      gone_next[j] = |(ports & evicted[PORTS*j+:PORTS]);
    end
  end

  reg read_reg;  // an operation in C3
  reg read_valid_reg, read_act_reg;
  reg [SLOT_BITS-1:0] read_slot_reg, read_other_reg, read_window_reg, read_mask_reg;
  reg [JOB_BITS-1:0] read_index_reg;
  reg [  8*JOBS-1:0] ranks_reg;  // job 0 in the lowest bits
  reg [JOBS-1:0] members_reg, gone_reg;

  reg good_version_reg, good_kind_reg, good_format_reg, exists_reg;
  reg is_data_reg, is_ask_reg, is_finish_reg;
  reg entered_reg, writable_reg, nonfinite_reg, bad_reg, whole_reg;
  reg [15:0] length_reg, epoch_reg;
  reg [31:0] vid_reg, first_reg;
  reg [7:0] rank_reg, number_reg;
  reg [1:0] ecn_reg;
  reg [PORTS-1:0] ports_reg;
  reg [PORT_BITS-1:0] port_reg;

  always @(posedge clk) begin
    read_reg <= (valid || act) && !rst;
    read_valid_reg <= valid && !rst;
    read_act_reg <= act && !rst;
    if (!read_reg) begin
      read_slot_reg <= slot;
      read_other_reg <= slot ^ window;
      read_window_reg <= window;
      read_mask_reg <= mask;
      read_index_reg <= its_job;
      ranks_reg <= ranks_next;
      members_reg <= members_next;
      gone_reg <= gone_next;
      first_reg <= job_first[32*its_job+:32];

      good_version_reg <= its_version == VERSION;
      good_kind_reg <= its_kind == KIND_DATA || its_kind == KIND_ASK || its_kind == KIND_FINISH;
      good_format_reg <= its_format == FORMAT;
      exists_reg <= its_number >> (JOBS == 1 ? 0 : JOB_BITS) == 8'd0;
      is_data_reg <= its_kind == KIND_DATA;
      is_ask_reg <= its_kind == KIND_ASK;
      is_finish_reg <= its_kind == KIND_FINISH;
      {entered_reg, writable_reg, nonfinite_reg} <= {its_entered, its_writable, its_nonfinite};
      {bad_reg, whole_reg} <= {its_bad, its_whole};
      {length_reg, vid_reg, rank_reg, epoch_reg} <= {its_length, its_vid, its_rank, its_epoch};
      {number_reg, ecn_reg} <= {its_number, its_ecn};
      {ports_reg, port_reg} <= {ports, port};
    end
  end

  wire unused = row[SLOT_BITS-1];  // always 0

  assign read        = valid || act;
  assign read_row    = row[ROW_BITS-1:0];
  assign read_slot   = read_slot_reg;
  assign read_other  = read_other_reg;
  assign read_vid    = vid_reg;
  assign read_window = read_window_reg;
  assign read_mask   = read_mask_reg;
  assign read_first  = first_reg;

  // -- C3: compare -------------------------------------------------------------------------------

  wire stands = exists_reg && job_valid[read_index_reg];
  wire repeats = exists_reg && job_complete[read_index_reg] && is_finish_reg;  // if of its epoch
  wire gone_now = gone_reg[read_index_reg];
  wire good_head = good_version_reg && good_kind_reg && (stands || repeats) && !gone_now;

  reg check_reg, check_valid_reg, check_act_reg;
  reg stands_reg, repeats_reg, evicted_reg;
  reg same_epoch_reg, same_rank_reg, good_length_reg;
  reg data_reg, ask_reg, finish_reg;  // accepted, if epoch, rank and length are right

  always @(posedge clk) begin
    check_reg <= read_reg && !rst;
    check_valid_reg <= read_valid_reg && !rst;
    check_act_reg <= read_act_reg && !rst;
    stands_reg <= stands;
    repeats_reg <= repeats;
    evicted_reg <= gone_now;
    same_epoch_reg <= epoch_reg == job_epoch[16*read_index_reg+:16];
    same_rank_reg <= members_reg[read_index_reg] && rank_reg == ranks_reg[8*read_index_reg+:8];
    good_length_reg <= length_reg == job_chunk[16*read_index_reg+:16] && whole_reg;
    data_reg <= read_valid_reg && is_data_reg && good_head && good_format_reg && !bad_reg;
    ask_reg <= read_valid_reg && is_ask_reg && good_head;
    finish_reg <= read_valid_reg && is_finish_reg && good_head;
    if (rst) begin
      data_reg   <= 1'b0;
      ask_reg    <= 1'b0;
      finish_reg <= 1'b0;
    end
  end

  // -- C4: decide --------------------------------------------------------------------------------

  wire misplaced = !stands_reg && !(repeats_reg && same_epoch_reg);
  wire is_known = same_epoch_reg && same_rank_reg;
  wire accepts_data = data_reg && is_known && good_length_reg;
  wire accepts_other = (ask_reg || finish_reg) && is_known;

  reg [7:0] code_next;  // first check that fails

  always @* begin
    if (!good_version_reg) code_next = CODE_BAD_VERSION;
    else if (!good_kind_reg) code_next = CODE_BAD_KIND;
    else if (misplaced) code_next = CODE_BAD_JOB;
    else if (!same_epoch_reg) code_next = CODE_BAD_EPOCH;
    else if (!same_rank_reg) code_next = CODE_BAD_RANK;
    else if (evicted_reg) code_next = CODE_EVICTED;
    else if (!is_data_reg) code_next = CODE_DONE;
    else if (!good_format_reg) code_next = CODE_BAD_FORMAT;
    else if (!good_length_reg) code_next = CODE_BAD_LENGTH;
    else if (bad_reg) code_next = CODE_PAYLOAD_CRC;
    else code_next = CODE_DONE;
  end

  reg acts_out_reg, refused_out_reg, data_out_reg, ask_out_reg, finish_out_reg;
  reg [7:0] code_out_reg, number_out_reg, rank_out_reg;
  reg belongs_out_reg, of_data_out_reg, placed_out_reg, ended_out_reg;
  reg writable_out_reg, nonfinite_out_reg, partial_out_reg;
  reg [1:0] ecn_out_reg;
  reg [JOB_BITS-1:0] index_out_reg;
  reg [15:0] epoch_out_reg;
  reg [PORTS-1:0] ports_out_reg, waits_for_out_reg, gone_out_reg;
  reg [PORT_BITS-1:0] port_out_reg;

  always @(posedge clk) begin
    acts_out_reg    <= check_act_reg;
    refused_out_reg <= check_valid_reg && !accepts_data && !accepts_other;
    data_out_reg    <= accepts_data;
    ask_out_reg     <= ask_reg && is_known;
    finish_out_reg  <= finish_reg && is_known;
    if (check_reg) begin
      code_out_reg <= code_next;
      belongs_out_reg <= same_rank_reg;
      of_data_out_reg <= is_data_reg;
      placed_out_reg <= stands_reg;
      ended_out_reg <= entered_reg && good_version_reg && good_kind_reg && misplaced;
      {writable_out_reg, nonfinite_out_reg, ecn_out_reg} <= {writable_reg, nonfinite_reg, ecn_reg};
      {number_out_reg, epoch_out_reg, rank_out_reg} <= {number_reg, epoch_reg, rank_reg};
      {ports_out_reg, port_out_reg} <= {ports_reg, port_reg};
      index_out_reg <= read_index_reg;
      waits_for_out_reg <= present[PORTS*read_index_reg+:PORTS];
      gone_out_reg <= evicted[PORTS*read_index_reg+:PORTS];
      partial_out_reg <= job_partial[read_index_reg];
    end
    if (rst) begin
      acts_out_reg    <= 1'b0;
      refused_out_reg <= 1'b0;
      data_out_reg    <= 1'b0;
      ask_out_reg     <= 1'b0;
      finish_out_reg  <= 1'b0;
    end
  end

  assign acts       = acts_out_reg;
  assign refused    = refused_out_reg;
  assign data       = data_out_reg;
  assign ask        = ask_out_reg;
  assign finish     = finish_out_reg;
  assign code       = code_out_reg;
  assign belongs    = belongs_out_reg;
  assign of_data    = of_data_out_reg;
  assign placed     = placed_out_reg;
  assign ended      = ended_out_reg;
  assign writable   = writable_out_reg;
  assign nonfinite  = nonfinite_out_reg;
  assign ecn        = ecn_out_reg;
  assign job        = number_out_reg;
  assign index      = index_out_reg;
  assign epoch      = epoch_out_reg;
  assign rank       = rank_out_reg;
  assign from_ports = ports_out_reg;
  assign from_port  = port_out_reg;
  assign waits_for  = waits_for_out_reg;
  assign gone       = gone_out_reg;
  assign partial    = partial_out_reg;

endmodule

`default_nettype wire
