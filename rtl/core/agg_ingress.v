// Receives one port's packets: checks their shape, writes payloads into the port's slot
// memory and requests their commit.
//
// A beat is accepted into register A and moves to the slot memory in the next cycle. With
// its last beat, the packet requests its commit in the cycle of the write. One more request
// can be queued, so the next packet proceeds while the arbiter serves other ports.
//
// A payload is written before its commit shows whether it is bad or a repetition. Only a
// contribution that is held and not yet summed needs protection: its slot is *busy* and is
// not written. In any other slot a write does no harm, because an uncommitted payload is
// overwritten before it could be summed. The request reports whether its payload was
// written (*writable*); a payload that was not cannot be stored. Data for a slot with
// uncommitted data of this port (*pending*) waits at its first beat, and blocks this port
// only.
//
// Request, 102 bits: {writable, nonfinite, bad, whole, length 16, vid 32, rank 8, epoch 16,
// format 8, job 8, ecn 2, kind 4, version 4}. agg_commit unpacks it. whole: the packet has
// as many beats as a chunk of its job, all of them full. Data is written only if its job is
// set up. When a job ends (its bit of flush, its slots in flush_slots), its contributions
// are dropped, and its data in flight counts as not written.
//
// Latency: a beat accepted in cycle 0 is written in cycle 1; a last beat also requests in
// cycle 1. Not done here: header checks (agg_commit).

`default_nettype none

module agg_ingress #(
    parameter integer BEAT_BITS  = 512,
    parameter integer JOBS       = 1,
    parameter integer JOB_BITS   = 1,
    parameter integer SLOT_BITS  = 4,    // width of a slot number
    parameter integer INDEX_BITS = 4     // width of a beat's number in its chunk
) (
    input wire clk,
    input wire rst,

    // Jobs, job 0 in the lowest bits
    input wire [           JOBS-1:0] flush,
    input wire [ (1<<SLOT_BITS)-1:0] flush_slots,
    input wire [           JOBS-1:0] job_valid,    // set up
    input wire [ SLOT_BITS*JOBS-1:0] slot_mask,    // 2 * window - 1
    input wire [ SLOT_BITS*JOBS-1:0] slot_base,    // the first slot
    input wire [INDEX_BITS*JOBS-1:0] job_last,     // number of the last beat of a chunk

    // Packets; tuser is valid on the first beat, except bit 112 (bad payload): valid on the last
    input wire [BEAT_BITS-1:0] s_axis_tdata,
    input wire [BEAT_BITS/8-1:0] s_axis_tkeep,
    input wire s_axis_tvalid,
    output wire s_axis_tready,
    input wire s_axis_tlast,
    input wire [112:0] s_axis_tuser,
    input wire s_nonfinite,  // an element of s_axis_tdata is a NaN or an infinity

    // The port's slot memory
    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,
    output wire [ BEAT_BITS-1:0] wr_data,

    // Request for a commit
    output wire         req_valid,
    input  wire         req_grant,
    output wire [101:0] req_data,

    // The verdict on writable data of this port, and any slot that was summed
    input wire                 resolve,
    input wire [SLOT_BITS-1:0] resolve_slot,
    input wire                 resolve_stored,
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot
);

  `include "zwire.vh"

  localparam integer SLOTS = 1 << SLOT_BITS;
  localparam [SLOTS-1:0] ONE_SLOT = 1;

  // On input, code and the flags other than ECN have no meaning.
  wire unused = &{1'b0, s_axis_tuser[15:10], s_axis_tuser[63:56]};

  // -- Register A ---------------------------------------------------------------------------------

  reg  s_first_reg;  // the next accepted beat begins a packet
  reg a_valid_reg, a_first_reg, a_last_reg, a_full_reg, a_bad_reg, a_nonfinite_reg;
  reg  [BEAT_BITS-1:0] a_data_reg;
  reg  [         97:0] header_reg;  // of the packet in A
  reg                  data_reg;  // data of a job that this card has
  wire                 a_leaves;
  wire [          8:0] s_number = {1'b0, s_axis_tuser[HDR_JOB_LSB+:8]};  // of the job

  assign s_axis_tready = !a_valid_reg || a_leaves;

  always @(posedge clk) begin
    if (s_axis_tready) begin
      a_valid_reg     <= s_axis_tvalid;
      a_first_reg     <= s_first_reg;
      a_last_reg      <= s_axis_tlast;
      a_full_reg      <= &s_axis_tkeep;
      a_bad_reg       <= s_axis_tuser[112];
      a_nonfinite_reg <= s_nonfinite;
      if (s_axis_tvalid) begin
        a_data_reg  <= s_axis_tdata;
        s_first_reg <= s_axis_tlast;
        if (s_first_reg) begin
          data_reg <= s_axis_tuser[HDR_KIND_LSB+:4] == KIND_DATA && s_number < JOBS[8:0];
          header_reg <= {
            s_axis_tuser[HDR_LENGTH_LSB+:16],
            s_axis_tuser[HDR_VID_LSB+:32],
            s_axis_tuser[HDR_RANK_LSB+:8],
            s_axis_tuser[HDR_EPOCH_LSB+:16],
            s_axis_tuser[HDR_FORMAT_LSB+:8],
            s_axis_tuser[HDR_JOB_LSB+:8],
            s_axis_tuser[HDR_FLAGS_LSB+:2],
            s_axis_tuser[HDR_KIND_LSB+:4],
            s_axis_tuser[HDR_VERSION_LSB+:4]
          };
        end
      end
    end
    if (rst) begin
      s_first_reg <= 1'b1;
      a_valid_reg <= 1'b0;
    end
  end

  // -- State of the packet before the beat in A ---------------------------------------------------

  reg [INDEX_BITS:0] beat_reg;  // number of the beat in A; saturates
  reg writable_reg, full_reg, nonfinite_reg;

  wire [INDEX_BITS:0] beat = a_first_reg ? {INDEX_BITS + 1{1'b0}} : beat_reg;
  wire [JOB_BITS-1:0] job = JOBS == 1 ? {JOB_BITS{1'b0}} : header_reg[10+:JOB_BITS];
  wire [INDEX_BITS-1:0] last = job_last[INDEX_BITS*job+:INDEX_BITS];
  wire [SLOT_BITS-1:0] slot = slot_base[SLOT_BITS*job+:SLOT_BITS] |
      (header_reg[50+:SLOT_BITS] & slot_mask[SLOT_BITS*job+:SLOT_BITS]);  // of the VID
  wire data = data_reg && job_valid[job];
  wire full = a_full_reg && (a_first_reg || full_reg);
  wire nonfinite = a_nonfinite_reg || (!a_first_reg && nonfinite_reg);
  wire whole = full && beat == {1'b0, last};

  reg [SLOTS-1:0] busy_reg;
  reg [SLOTS-1:0] pending_reg;

  wire writable = !flush[job] && (a_first_reg ? data && !busy_reg[slot] : writable_reg);
  wire waits = a_first_reg && data && pending_reg[slot];

  always @(posedge clk) begin
    if (a_leaves) begin
      beat_reg      <= &beat ? beat : beat + 1'b1;
      full_reg      <= full;
      nonfinite_reg <= nonfinite;
      writable_reg  <= writable;
    end
    if (flush[job]) writable_reg <= 1'b0;
  end

  assign wr_en   = a_leaves && writable && beat <= {1'b0, last};
  assign wr_slot = slot;
  assign wr_beat = beat[INDEX_BITS-1:0];
  assign wr_data = a_data_reg;

  // -- Request ------------------------------------------------------------------------------------

  reg                 queued_reg;  // a request that was not granted at once
  reg  [       101:0] queue_reg;

  wire [JOB_BITS-1:0] queue_job = JOBS == 1 ? {JOB_BITS{1'b0}} : queue_reg[10+:JOB_BITS];

  wire [       101:0] request = {writable, nonfinite, a_bad_reg, whole, header_reg};
  wire                asks = a_valid_reg && a_last_reg && !waits;

  assign req_valid = queued_reg || asks;
  assign req_data  = queued_reg ? queue_reg : request;
  // Ignores a grant in this very cycle: it would connect the arbiter to s_axis combinationally.
  assign a_leaves  = a_valid_reg && !waits && !(a_last_reg && queued_reg);

  always @(posedge clk) begin
    if (a_leaves && a_last_reg && !req_grant) begin
      queued_reg <= 1'b1;
      queue_reg  <= request;
    end else begin
      if (req_grant) queued_reg <= 1'b0;
      if (flush[queue_job]) queue_reg[101] <= 1'b0;
    end
    if (rst) queued_reg <= 1'b0;
  end

  // -- Slots that must not be written -------------------------------------------------------------

  wire [SLOTS-1:0] summed = reduced ? ONE_SLOT << reduced_slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] resolved = resolve ? ONE_SLOT << resolve_slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] stored = resolve && resolve_stored ? ONE_SLOT << resolve_slot : {SLOTS{1'b0}};
  wire [SLOTS-1:0] written = a_leaves && a_last_reg && writable ? ONE_SLOT << slot : {SLOTS{1'b0}};

  always @(posedge clk) begin
    busy_reg    <= ((busy_reg & ~summed) | stored) & ~flush_slots;
    pending_reg <= ((pending_reg & ~resolved) | written) & ~flush_slots;
    if (rst) begin
      busy_reg    <= {SLOTS{1'b0}};
      pending_reg <= {SLOTS{1'b0}};
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot and any beat: the data last written there, the data of the packet to be committed,
  // and whether the slot holds a contribution.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  (* anyconst *) reg [INDEX_BITS-1:0] place;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  wire [7:0] number = header_reg[17:10];  // of the job
  integer n, m;

  // Jobs: the owner of the slot, and the guarantees of agg_jobs.
  reg [SLOT_BITS-1:0] mask_n, base_n, mask_m, base_m;
  reg [JOBS-1:0] owns, flush_was, flush_before, valid_was;  // flush one and two cycles ago
  reg [JOBS-1:0] ended;  // was set up when its flush began
  reg [SLOT_BITS*JOBS-1:0] mask_was, base_was;
  reg [INDEX_BITS*JOBS-1:0] last_was;

  // The packet at A and its beats.
  reg [INDEX_BITS:0] at;  // number of the beat in A; saturates
  reg all_full, any_special, had_place, writes;
  reg [BEAT_BITS-1:0] its_place;
  wire now_place = at == place;

  // A granted request is examined in the next cycle and judged in the one after, for the slot
  // computed in the first.
  reg looked_at, looked_writes, flight, flight_writes;
  reg [JOB_BITS-1:0] looked_job, flight_job;
  reg [31:0] looked_vid;
  reg [SLOT_BITS-1:0] flight_slot;
  wire [SLOT_BITS-1:0] looked_slot = slot_base[SLOT_BITS*looked_job+:SLOT_BITS] |
      (looked_vid[SLOT_BITS-1:0] & slot_mask[SLOT_BITS*looked_job+:SLOT_BITS]);
  wire [7:0] req_number = req_data[17:10];
  wire [JOB_BITS-1:0] req_job = JOBS == 1 ? {JOB_BITS{1'b0}} : req_number[JOB_BITS-1:0];
  wire [SLOT_BITS-1:0] queue_slot = slot_base[SLOT_BITS*queue_job+:SLOT_BITS] |
      (queue_reg[50+:SLOT_BITS] & slot_mask[SLOT_BITS*queue_job+:SLOT_BITS]);

  reg holding;  // the slot holds a contribution that is not yet summed
  reg [BEAT_BITS-1:0] memory, queue_has, looked_has, flight_has;
  wire in_queue = queued_reg && queue_reg[101] && queue_slot == watched && job_valid[queue_job];
  wire is_looked_at = looked_at && looked_writes && looked_slot == watched && job_valid[looked_job];
  wire is_judged = flight && flight_writes && flight_slot == watched && job_valid[flight_job];
  wire in_flight = is_looked_at || is_judged;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    flush_was <= flush;
    flush_before <= running_was ? flush_was : {JOBS{1'b0}};
    valid_was <= job_valid;
    mask_was <= slot_mask;
    base_was <= slot_base;
    last_was <= job_last;
    ended <= job_valid | (ended & flush);

    // The packet at A
    if (a_leaves) begin
      at <= a_last_reg ? 0 : &at ? at : at + 1;
      all_full <= a_full_reg && (at == 0 || all_full);
      any_special <= a_nonfinite_reg || (at != 0 && any_special);
      if (now_place) its_place <= a_data_reg;
      had_place <= !a_last_reg && (had_place || now_place);
    end
    if (a_valid_reg) writes <= !(a_leaves && a_last_reg) && writable && !flush[job];
    if (flush[job]) writes <= 1'b0;

    looked_at <= req_valid && req_grant;
    looked_writes <= req_data[101];
    looked_job <= req_job;
    looked_vid <= req_data[81:50];
    looked_has <= queued_reg ? queue_has : now_place ? a_data_reg : its_place;
    flight <= looked_at;
    flight_writes <= looked_writes;
    flight_job <= looked_job;
    flight_slot <= looked_slot;
    flight_has <= looked_has;
    if (a_leaves && a_last_reg && !req_grant) queue_has <= now_place ? a_data_reg : its_place;

    if (wr_en && wr_slot == watched && wr_beat == place) memory <= wr_data;
    if (resolve && resolve_stored && resolve_slot == watched) holding <= 1'b1;
    if ((reduced && reduced_slot == watched) || flush_slots[watched]) holding <= 1'b0;
    if (rst) begin
      at <= 0;
      all_full <= 1'b1;
      any_special <= 1'b0;
      had_place <= 1'b0;
      writes <= 1'b0;
      looked_at <= 1'b0;
      flight <= 1'b0;
      holding <= 1'b0;
    end
  end

  always @* begin
    for (n = 0; n < JOBS; n = n + 1)
    owns[n] = job_valid[n] && (watched & ~slot_mask[SLOT_BITS*n+:SLOT_BITS]) ==
          slot_base[SLOT_BITS*n+:SLOT_BITS];
    if (was_reset) begin
      // agg_jobs: a job that is set up has slots of its own. The slots and the chunk length do not
      // change until the job has ended, and the slots are in flush_slots while it ends. The job is
      // not set up again, nor its slots reused, before that.
      for (n = 0; n < JOBS; n = n + 1) begin
        mask_n = slot_mask[SLOT_BITS*n+:SLOT_BITS];
        base_n = slot_base[SLOT_BITS*n+:SLOT_BITS];
        `PROMISED((base_n & mask_n) == 0);
        `PROMISED(!(flush[n] && job_valid[n]));
        if (running_was) begin
          `PROMISED(!(valid_was[n] && !job_valid[n]) || flush[n]);
          `PROMISED(!((flush_was[n] || flush_before[n]) && job_valid[n]));
          for (m = 0; m < JOBS; m = m + 1) begin
            mask_m = slot_mask[SLOT_BITS*m+:SLOT_BITS];
            base_m = slot_base[SLOT_BITS*m+:SLOT_BITS];
            `PROMISED(
                !(ended[n] && flush_was[n] && m != n && job_valid[m] &&
                       ((base_n ^ base_m) & ~(mask_n | mask_m)) == 0));
          end
          `PROMISED(
              !(valid_was[n] && !job_valid[n] && (watched & ~mask_n) == base_n) ||
                    flush_slots[watched]);
          `PROMISED(
              (mask_n == mask_was[SLOT_BITS*n+:SLOT_BITS] &&
                     base_n == base_was[SLOT_BITS*n+:SLOT_BITS] &&
                     job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]) ||
                    (!job_valid[n] && !valid_was[n] && !flush[n]));
        end
      end
      `PROMISED((owns & (owns - 1'b1)) == 0);
      `PROMISED(!(owns != 0 && flush_slots[watched]));
      // agg_arbiter grants only requests. agg_commit and agg_slots judge them two cycles later:
      // written data is resolved for the slot of its job and VID. It is stored only if the job is
      // set up and the slot holds no contribution of this port.
      `PROMISED(!req_grant || req_valid);
      `PROMISED(resolve == (flight && flight_writes));
      `PROMISED(!resolve || resolve_slot == flight_slot);
      `PROMISED(!(resolve && resolve_stored) || job_valid[flight_job]);
      `PROMISED(!(resolve && resolve_stored && resolve_slot == watched) || !holding);
      // agg_reader and agg_writer: a slot that is summed held a contribution.
      `PROMISED(!(reduced && reduced_slot == watched) || holding || flush_slots[watched]);
    end
    if (was_reset && !rst) begin
      // The packet: header_reg has the header of its first beat, and the flags are correct.
      assert (a_first_reg == (at == 0) || !a_valid_reg);
      assert (s_first_reg == (a_valid_reg ? a_last_reg : at == 0));
      assert (at == 0 || beat_reg == at);
      if (a_valid_reg || at != 0)
        assert (data_reg == (header_reg[7:4] == KIND_DATA && number < JOBS));
      if (at != 0) assert (full_reg == all_full && nonfinite_reg == any_special);
      if (at != 0) assert (writable_reg == writes);
      if (a_valid_reg && at == 0 && slot == watched)
        assert (writable == (header_reg[7:4] == KIND_DATA && number < JOBS && job_valid[job] &&
            !holding));
      if (at != 0 && writes)
        assert ((job_valid[job] || flush[job]) && header_reg[7:4] == KIND_DATA);
      assert (had_place == (at > place));
      if (a_valid_reg && a_last_reg && !queued_reg && req_valid) begin
        assert (req_data[98] == (a_full_reg && (at == 0 || all_full) &&
            at == job_last[INDEX_BITS*job+:INDEX_BITS]));
        assert (req_data[99] == a_bad_reg && req_data[97:0] == header_reg);
        assert (req_data[100] == (a_nonfinite_reg || (at != 0 && any_special)));
      end

      // A contribution that is not yet summed is not overwritten, nor is data awaiting its verdict.
      assert (busy_reg[watched] == holding);
      if (wr_en && wr_slot == watched) assert (!holding && !in_queue && !in_flight);
      if (at != 0 && writes && slot == watched && job_valid[job])
        assert (!holding && !in_queue && !in_flight);
      if (wr_en) assert (job_valid[job] && wr_beat <= job_last[INDEX_BITS*job+:INDEX_BITS]);

      // Stored data is the packet's data.
      if (at != 0 && writes && had_place && slot == watched &&
          place <= job_last[INDEX_BITS*job+:INDEX_BITS])
        assert (memory == its_place);
      if (in_queue && place <= job_last[INDEX_BITS*queue_job+:INDEX_BITS] && queue_reg[98])
        assert (memory == queue_has);
      if (is_looked_at && place <= job_last[INDEX_BITS*looked_job+:INDEX_BITS] && looked_whole)
        assert (memory == looked_has);
      if (is_judged && place <= job_last[INDEX_BITS*flight_job+:INDEX_BITS] && flight_whole)
        assert (memory == flight_has);

      // A port waits only for its own packets, until their verdict: written data is judged.
      assert (flush_slots[watched] || pending_reg[watched] == (in_queue || in_flight));
      assert (in_queue + is_looked_at + is_judged <= 1);
      if (queued_reg && queue_reg[101])
        assert ((job_valid[queue_job] || flush[queue_job]) && queue_reg[7:4] == KIND_DATA);
      if (looked_at && looked_writes)
        assert (job_valid[looked_job] || flush[looked_job] || flush_was[looked_job]);
      if (flight && flight_writes)
        assert (job_valid[flight_job] || flush[flight_job] || flush_was[flight_job] ||
                flush_before[flight_job]);
      if (a_valid_reg && !s_axis_tready) assert (waits || (a_last_reg && queued_reg));

      cover (resolve && resolve_stored && resolve_slot == watched && job_last != 0);
      cover (a_valid_reg && waits);
      cover (in_queue && flight && flight_writes && a_valid_reg);
      cover (wr_en && wr_slot == watched && owns == 2 && flush[0]);
    end
  end

  reg looked_whole, flight_whole;
  always @(posedge clk) begin
    looked_whole <= req_data[98];
    flight_whole <= looked_whole;
  end
`endif

endmodule

`default_nettype wire
