// Receives one port's packets: checks their shape, writes payloads into the port's slot
// memory and requests their commit.
//
// A beat passes registers A, B and C, and is written to the slot memory from C. All wr_* and
// req_valid are registers, because the memory and the arbiter are far away. A beat that A cannot
// take waits in the skid, so s_axis_tready is a register. A packet's slot is computed and looked up
// on its way into A. With its last beat in B, the packet requests its commit, and moves to the
// queue: the next packet proceeds while the arbiter serves other ports.
//
// A payload is written before its commit shows whether it is bad or a repetition. Only a
// contribution that is held and not yet summed needs protection: its slot is *busy* and is
// not written. In any other slot a write does no harm, because an uncommitted payload is
// overwritten before it could be summed. The request reports whether its payload was
// written (*writable*); a payload that was not cannot be stored. Data for a slot with
// unjudged data of this port waits at its first beat, in B, and blocks this port only; also if
// the job of that data ended since.
//
// A slot is busy if its bits in two memories, set and red, differ. A stored contribution
// inverts the bit in set; the sum of the slot copies it to red. Each memory has one writer, and
// no decoder. The bits of unjudged requests are kept in places, which are searched for the slot
// of the next packet.
//
// Request, 103 bits if its fields are concatenated: {entered, writable, nonfinite, bad, whole,
// length 16, vid 32, rank 8, epoch 16, format 8, job 8, ecn 2, kind 4, version 4}. agg_commit
// checks it. entered: the job was set up when the packet's first beat was accepted. whole: the
// packet has as many beats as a chunk of its job, all of them full. Data is written only if its
// job is set up. When a job ends (its bit of flush), its data in flight counts as not written.
// The job's slots are then cleared one by one (clear).
//
// Latency: a beat accepted in cycle 0 is in A in cycle 1, in B in cycle 2 and in C in cycle 3, in
// which it is written. With a last beat, req_valid is high in cycle 2; the fields are valid from
// cycle 3 to the grant. A grant follows its request by a cycle or more, so a payload is written
// in the cycle of its grant at the latest. A request in the cycle of a grant is not a new one. A
// packet that finds the queue taken moves there in the cycle after the grant. A slot that is
// reduced in cycle 0 is not busy for a packet that begins in cycle 3. A cleared slot is not busy
// for a packet that begins three cycles later. Not done here: header checks (agg_commit).

`default_nettype none

module agg_ingress #(
    parameter integer LANES      = 16,
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
    input wire [           JOBS-1:0] job_valid,  // set up
    input wire [ SLOT_BITS*JOBS-1:0] slot_mask,  // 2 * window - 1
    input wire [ SLOT_BITS*JOBS-1:0] slot_base,  // the first slot
    input wire [INDEX_BITS*JOBS-1:0] job_last,   // number of the last beat of a chunk

    // Packets; tuser is valid on the first beat, except bit 112 (bad payload): valid on the last
    input wire [BEAT_BITS-1:0] s_axis_tdata,
    input wire [BEAT_BITS/8-1:0] s_axis_tkeep,
    input wire s_axis_tvalid,
    output wire s_axis_tready,
    input wire s_axis_tlast,
    input wire [112:0] s_axis_tuser,
    input wire [LANES-1:0] s_nonfinite,  // elements of s_axis_tdata that are a NaN or an infinity

    // The port's slot memory
    output wire                  wr_en,
    output wire [ SLOT_BITS-1:0] wr_slot,
    output wire [INDEX_BITS-1:0] wr_beat,
    output wire [ BEAT_BITS-1:0] wr_data,

    // Request for a commit
    output wire        req_valid,
    input  wire        req_grant,
    output wire        req_entered,
    output wire        req_writable,
    output wire        req_nonfinite,
    output wire        req_bad,
    output wire        req_whole,
    output wire [15:0] req_length,
    output wire [31:0] req_vid,
    output wire [ 7:0] req_rank,
    output wire [15:0] req_epoch,
    output wire [ 7:0] req_format,
    output wire [ 7:0] req_job,
    output wire [ 1:0] req_ecn,
    output wire [ 3:0] req_kind,
    output wire [ 3:0] req_version,

    // The port's oldest request that was granted and not yet judged is judged, and stored or not;
    // never in consecutive cycles
    input wire judged,
    input wire judged_stored,

    // Any slot was summed, or is cleared; never both in a cycle
    input wire                 reduced,
    input wire [SLOT_BITS-1:0] reduced_slot,
    input wire                 clear,
    input wire [SLOT_BITS-1:0] clear_slot
);

  `include "zwire.vh"

  localparam integer PLACES = 5;  // commits two cycles apart, judged after seven, do not fill them
  localparam integer HEADER = 98;  // the request's fields from length to version
  // Bits of slots in a word of set and red. A small memory is made of tables of 16 bits; a word of
  // several is registered before its bit is selected. A large one is a block RAM.
  localparam integer FOLD_BITS = SLOT_BITS < 5 || SLOT_BITS > 8 ? 0 : SLOT_BITS - 4;
  localparam integer FOLD = 1 << FOLD_BITS;
  localparam [FOLD-1:0] ONE_BIT = 1;
  localparam [SLOT_BITS-1:0] LOW = ~({SLOT_BITS{1'b1}} << FOLD_BITS);
  localparam [INDEX_BITS-1:0] ONE = 1;

  // On input, code and the flags other than ECN have no meaning.
  wire unused = &{1'b0, s_axis_tuser[15:10], s_axis_tuser[63:56]};

  // -- Input --------------------------------------------------------------------------------------

  reg first_reg;  // the next accepted beat begins a packet
  wire full = &s_axis_tkeep;
  wire bad = s_axis_tuser[112];
  wire [7:0] number = s_axis_tuser[HDR_JOB_LSB+:8];
  wire [JOB_BITS-1:0] job = JOBS == 1 ? {JOB_BITS{1'b0}} : number[JOB_BITS-1:0];
  reg entered;
  wire data = s_axis_tuser[HDR_KIND_LSB+:4] == KIND_DATA;
  wire [SLOT_BITS-1:0] slot = slot_base[SLOT_BITS*job+:SLOT_BITS] |
      (s_axis_tuser[HDR_VID_LSB+:SLOT_BITS] & slot_mask[SLOT_BITS*job+:SLOT_BITS]);
  wire [HEADER-1:0] header = {
    s_axis_tuser[HDR_LENGTH_LSB+:16],
    s_axis_tuser[HDR_VID_LSB+:32],
    s_axis_tuser[HDR_RANK_LSB+:8],
    s_axis_tuser[HDR_EPOCH_LSB+:16],
    s_axis_tuser[HDR_FORMAT_LSB+:8],
    number,
    s_axis_tuser[HDR_FLAGS_LSB+:2],
    s_axis_tuser[HDR_KIND_LSB+:4],
    s_axis_tuser[HDR_VERSION_LSB+:4]
  };

  integer e;

  always @* begin
    entered = 1'b0;
    for (e = 0; e < JOBS; e = e + 1) if (number == e[7:0] && job_valid[e]) entered = 1'b1;
  end

  // -- Skid ---------------------------------------------------------------------------------------

  wire advance;  // B is free: beats move on

  reg  ready_reg;  // the skid is empty
  reg s_first_reg, s_last_reg, s_full_reg, s_bad_reg, s_entered_reg;
  reg [LANES-1:0] s_nonfinite_reg;
  reg s_data_reg;  // a packet of data; of no job that ended since
  reg [JOB_BITS-1:0] s_job_reg;
  reg [SLOT_BITS-1:0] s_slot_reg;

  assign s_axis_tready = ready_reg;

  always @(posedge clk) begin
    ready_reg <= advance || (ready_reg && !s_axis_tvalid);
    if (ready_reg && s_axis_tvalid) first_reg <= s_axis_tlast;
    if (ready_reg) begin
      s_first_reg     <= first_reg;
      s_last_reg      <= s_axis_tlast;
      s_full_reg      <= full;
      s_bad_reg       <= bad;
      s_nonfinite_reg <= s_nonfinite;
      s_entered_reg   <= entered;
      s_data_reg      <= data;
      s_job_reg       <= job;
      s_slot_reg      <= slot;
    end else begin
      if (flush[s_job_reg]) s_data_reg <= 1'b0;
    end
    if (rst) begin
      ready_reg <= 1'b1;
      first_reg <= 1'b1;
    end
  end

  // -- Register A ---------------------------------------------------------------------------------

  reg a_valid_reg, a_first_reg, a_full_reg, a_bad_reg, a_entered_reg;
  reg [LANES-1:0] a_nonfinite_reg;
  reg a_ends_reg;  // holds a packet's last beat
  reg a_data_reg;  // holds the first beat of a packet of data; of no job that ended since
  reg [JOB_BITS-1:0] a_job_reg;
  reg [SLOT_BITS-1:0] a_slot_reg;
  wire [SLOT_BITS-1:0] a_slot_next = ready_reg ? slot : s_slot_reg;

  always @(posedge clk) begin
    if (advance) begin
      a_slot_reg <= a_slot_next;
      a_valid_reg <= s_axis_tvalid || !ready_reg;
      a_first_reg <= ready_reg ? first_reg : s_first_reg;
      a_ends_reg <= ready_reg ? s_axis_tvalid && s_axis_tlast : s_last_reg;
      a_full_reg <= ready_reg ? full : s_full_reg;
      a_bad_reg <= ready_reg ? bad : s_bad_reg;
      a_nonfinite_reg <= ready_reg ? s_nonfinite : s_nonfinite_reg;
      a_entered_reg <= ready_reg ? entered : s_entered_reg;
      a_data_reg      <= ready_reg ? s_axis_tvalid && first_reg && data :
          s_first_reg && s_data_reg && !flush[s_job_reg];
      a_job_reg <= ready_reg ? job : s_job_reg;
    end else begin
      if (flush[a_job_reg]) a_data_reg <= 1'b0;
    end
    if (rst) begin
      a_valid_reg <= 1'b0;
      a_ends_reg  <= 1'b0;
      a_data_reg  <= 1'b0;
    end
  end

  // Payload of the beats in the skid, A and B. Without a beat, the free place is written in vain.
  (* ram_style = "distributed" *) reg [BEAT_BITS-1:0] beats[0:3];
  reg [1:0] wr_place_reg, b_place_reg;  // of the next beat; of the latest beat in B

  always @(posedge clk) begin
    if (ready_reg) beats[wr_place_reg] <= s_axis_tdata;
    if (ready_reg && s_axis_tvalid) wr_place_reg <= wr_place_reg + 2'd1;
    if (advance && a_valid_reg) b_place_reg <= b_place_reg + 2'd1;
    if (rst) begin
      wr_place_reg <= 2'd0;
      b_place_reg  <= 2'd3;
    end
  end

  // -- Headers ------------------------------------------------------------------------------------

  // Four places: a packet each in the skid, A, B and the queue. Between headers, the free place is
  // written in vain. The header for the queue is loaded in every cycle.
  (* ram_style = "distributed" *) reg [HEADER-1:0] headers[0:3];
  reg [1:0] wr_header_reg, q_number_reg;  // place of the next packet; of the oldest not granted
  reg [HEADER-1:0] q_header_reg;

  always @(posedge clk) begin
    if (ready_reg) headers[wr_header_reg] <= header;
    if (ready_reg && s_axis_tvalid && first_reg) wr_header_reg <= wr_header_reg + 2'd1;
    if (req_grant) q_number_reg <= q_number_reg + 2'd1;
    q_header_reg <= headers[q_number_reg];
    if (rst) begin
      wr_header_reg <= 2'd0;
      q_number_reg  <= 2'd0;
    end
  end

  // -- Register B ---------------------------------------------------------------------------------

  reg b_valid_reg;  // holds a beat that did not move to C
  reg b_asks_reg, b_bad_reg;  // asks: with the packet's last beat
  reg b_full_reg, b_nonfinite_reg;  // of the packet's beats so far
  reg b_entered_reg;
  // The packet's beats are written: its job is set up, the slot is not busy, and the chunk goes on.
  reg b_open_reg;
  reg b_waits_reg;  // with a first beat, for a verdict on data in the same slot
  reg b_stuck_reg;  // with a last beat, because the queue or all places are taken
  reg b_set_reg;  // the slot's bit in set
  reg [INDEX_BITS-1:0] b_number_reg;  // of the beat in its packet, modulo
  reg [INDEX_BITS:0] b_rest_reg;  // beats that the chunk still has, or -1
  reg b_at_last_reg;  // with the chunk's last beat: none
  reg [JOB_BITS-1:0] b_job_reg;
  reg [SLOT_BITS-1:0] b_slot_reg;

  reg queued_reg;
  wire [INDEX_BITS-1:0] a_rest = job_last[INDEX_BITS*a_job_reg+:INDEX_BITS];
  wire asks = b_asks_reg && advance;
  reg [FOLD-1:0] set_reg, red_reg;  // words of the slot in A, as the packet moved there
  wire [FOLD-1:0] a_bit = ONE_BIT << (a_slot_reg & LOW);
  wire a_set = |(set_reg & a_bit);
  wire a_busy = |((set_reg ^ red_reg) & a_bit);
  reg a_stored_reg;  // a contribution was stored since
  wire freed, freed_stored;  // the verdict that B waits for was given
  wire all_unjudged;  // no place is free
  wire waits_next;

  // In the next cycle: the queue is taken, and B has a last beat. A grant frees B a cycle later. A
  // packet that takes the last place takes the queue too.
  wire queued_next = asks || (queued_reg && !req_grant);
  wire asks_next = advance ? a_ends_reg : b_asks_reg;
  wire stuck_next = asks_next && (queued_next || all_unjudged);

  wire may_open = advance && a_data_reg && a_entered_reg && !a_busy && !a_stored_reg &&
      !flush[a_job_reg];
  wire stays_open = b_open_reg && !flush[b_job_reg] && !(freed && freed_stored) &&
      !(advance && (b_asks_reg || b_at_last_reg));

  always @(posedge clk) begin
    b_open_reg  <= may_open || stays_open;
    b_waits_reg <= waits_next;
    b_stuck_reg <= stuck_next;
    b_asks_reg  <= asks_next;
    b_valid_reg <= advance ? a_valid_reg : b_valid_reg && b_waits_reg;
    if (advance) begin
      b_bad_reg <= a_bad_reg;
      if (a_valid_reg) begin
        b_full_reg <= a_full_reg && (a_first_reg || b_full_reg);
        b_nonfinite_reg <= |a_nonfinite_reg || (!a_first_reg && b_nonfinite_reg);
        b_number_reg <= a_first_reg ? {INDEX_BITS{1'b0}} : b_number_reg + ONE;
        b_rest_reg <= a_first_reg ? {1'b0, a_rest} :
            b_rest_reg - {{INDEX_BITS{1'b0}}, !b_rest_reg[INDEX_BITS]};
        b_at_last_reg <= a_first_reg ? a_rest == {INDEX_BITS{1'b0}} : b_rest_reg == {1'b0, ONE};
      end
      if (a_first_reg) begin
        b_entered_reg <= a_entered_reg;
        b_set_reg     <= a_set;
        b_job_reg     <= a_job_reg;
        b_slot_reg    <= a_slot_reg;
      end
    end
    if (rst) begin
      b_valid_reg <= 1'b0;
      b_asks_reg  <= 1'b0;
      b_open_reg  <= 1'b0;
      b_waits_reg <= 1'b0;
      b_stuck_reg <= 1'b0;
    end
  end

  // -- Register C ---------------------------------------------------------------------------------

  reg c_valid_reg;  // holds a beat to write
  reg [SLOT_BITS-1:0] c_slot_reg;
  reg [INDEX_BITS-1:0] c_number_reg;
  reg [BEAT_BITS-1:0] c_beat_reg;

  wire b_writes = b_valid_reg && b_open_reg && !b_waits_reg;

  always @(posedge clk) begin
    c_valid_reg  <= b_writes && !rst;
    c_slot_reg   <= b_slot_reg;
    c_number_reg <= b_number_reg;
    c_beat_reg   <= beats[b_place_reg];
  end

  assign wr_en   = c_valid_reg;
  assign wr_slot = c_slot_reg;
  assign wr_beat = c_number_reg;
  assign wr_data = c_beat_reg;

  // -- Request ------------------------------------------------------------------------------------

  reg q_entered_reg, q_writable_reg, q_nonfinite_reg, q_bad_reg, q_whole_reg;
  reg [JOB_BITS-1:0] q_job_reg;

  reg req_reg;  // the queue is taken, or a packet asks

  assign req_valid = req_reg;

  always @(posedge clk) begin
    queued_reg <= queued_next;
    req_reg    <= queued_next || (asks_next && !all_unjudged && !waits_next);
    if (!queued_reg) begin
      q_entered_reg   <= b_entered_reg;
      q_writable_reg  <= b_open_reg && !flush[b_job_reg];
      q_nonfinite_reg <= b_nonfinite_reg;
      q_bad_reg       <= b_bad_reg;
      q_whole_reg     <= b_full_reg && b_at_last_reg;
      q_job_reg       <= b_job_reg;
    end else begin
      if (flush[q_job_reg]) q_writable_reg <= 1'b0;
    end
    if (rst) begin
      queued_reg <= 1'b0;
      req_reg    <= 1'b0;
    end
  end

  assign req_entered = q_entered_reg;
  assign req_writable = q_writable_reg;
  assign req_nonfinite = q_nonfinite_reg;
  assign req_bad = q_bad_reg;
  assign req_whole = q_whole_reg;
  assign {req_length, req_vid, req_rank, req_epoch, req_format, req_job, req_ecn, req_kind,
          req_version} = q_header_reg;

  // -- Unjudged requests --------------------------------------------------------------------------

  // Slots that were reduced or cleared one and two cycles ago
  reg reduced_reg, reduced_before_reg, clear_reg, clear_before_reg;
  reg [SLOT_BITS-1:0] done_slot_reg, done_before_reg;

  // A place is free two cycles after its verdict, when a look-up of its slot shows the verdict.
  reg [PLACES-1:0] filled_reg;  // as many ones as places are taken, from bit 0
  reg [PLACES-1:0] put_reg, get_reg;  // next place to take; of the next verdict
  reg [PLACES-1:0] judged_reg;  // place of the verdict one cycle ago
  reg frees_reg;  // there was one
  reg stored_reg, stored_before_reg;  // data was stored one and two cycles ago
  reg [SLOT_BITS-1:0] stored_slot_reg;  // the slot of the verdict one cycle ago
  reg [PLACES-1:0] live_reg;  // written data
  reg [SLOT_BITS*PLACES-1:0] slots_reg;
  reg [PLACES-1:0] sets_reg;  // the slot's bit in set
  reg [PLACES-1:0] match_reg;  // place that B waits for, until it is not live

  wire match_b = b_asks_reg && b_open_reg && b_slot_reg == a_slot_reg;
  reg [PLACES-1:0] same_slot, match;  // match_b is at the place to take
  // The slot of the next verdict, which is two cycles after the last one or more. Its request was
  // granted a cycle or more before, so its place is filled.
  reg [SLOT_BITS-1:0] next_slot, set_slot_reg;  // the latter also of a clear
  reg judged_set_reg;
  integer i;

  always @* begin
    next_slot = {SLOT_BITS{1'b0}};
    for (i = 0; i < PLACES; i = i + 1) begin
      same_slot[i] = slots_reg[SLOT_BITS*i+:SLOT_BITS] == a_slot_reg;
      match[i] = (live_reg[i] && same_slot[i]) || (match_b && put_reg[i]);
      if (get_reg[i]) next_slot = next_slot | slots_reg[SLOT_BITS*i+:SLOT_BITS];
    end
  end

  wire [PLACES-1:0] match_next = advance ? match & {PLACES{a_data_reg}} : match_reg & live_reg;
  wire may_wait = match_b || |(live_reg & same_slot);

  assign advance      = !(b_waits_reg || b_stuck_reg);
  assign waits_next   = advance ? a_data_reg && may_wait : |(match_reg & live_reg);
  assign freed        = |(match_reg & ~live_reg);
  assign freed_stored = stored_before_reg;
  assign all_unjudged = filled_reg[PLACES-1];

  integer k;

  always @(posedge clk) begin
    judged_reg <= judged ? get_reg : {PLACES{1'b0}};
    frees_reg <= judged;
    stored_reg <= judged && judged_stored;
    stored_slot_reg <= set_slot_reg;
    stored_before_reg <= stored_reg;
    if (judged) get_reg <= {get_reg[PLACES-2:0], get_reg[PLACES-1]};
    set_slot_reg <= clear_reg ? done_slot_reg : next_slot;
    judged_set_reg <= |(get_reg & sets_reg);
    match_reg <= match_next;
    a_stored_reg <= !advance && (a_stored_reg || (stored_reg && stored_slot_reg == a_slot_reg));
    live_reg <= live_reg & ~judged_reg;
    if (asks) put_reg <= {put_reg[PLACES-2:0], put_reg[PLACES-1]};
    for (k = 0; k < PLACES; k = k + 1) begin
      if (asks && put_reg[k]) live_reg[k] <= b_open_reg;
      if (put_reg[k] && !all_unjudged) begin
        slots_reg[SLOT_BITS*k+:SLOT_BITS] <= b_slot_reg;
        sets_reg[k]                       <= b_set_reg;
      end
    end
    if (asks && !frees_reg) filled_reg <= {filled_reg[PLACES-2:0], 1'b1};
    if (frees_reg && !asks) filled_reg <= {1'b0, filled_reg[PLACES-1:1]};
    if (rst) begin
      filled_reg <= {PLACES{1'b0}};
      put_reg    <= {{PLACES - 1{1'b0}}, 1'b1};
      get_reg    <= {{PLACES - 1{1'b0}}, 1'b1};
      judged_reg <= {PLACES{1'b0}};
      frees_reg  <= 1'b0;
      stored_reg <= 1'b0;
      live_reg   <= {PLACES{1'b0}};
      match_reg  <= {PLACES{1'b0}};
    end
  end

  // -- Busy slots ---------------------------------------------------------------------------------

  // A reduced slot's bit in set is read in the cycle of the event, and written to red two cycles
  // later. A clear takes as long.
  reg [FOLD-1:0] set_bits[0:(1<<SLOT_BITS>>FOLD_BITS)-1];
  reg [FOLD-1:0] red_bits[0:(1<<SLOT_BITS>>FOLD_BITS)-1];

  reg [FOLD-1:0] copy_reg;
  reg copy_before_reg;
  wire copy = |(copy_reg & (ONE_BIT << (done_slot_reg & LOW)));

  always @(posedge clk) begin
    reduced_reg        <= reduced && !rst;
    reduced_before_reg <= reduced_reg && !rst;
    clear_reg          <= clear && !rst;
    clear_before_reg   <= clear_reg && !rst;
    done_slot_reg      <= clear ? clear_slot : reduced_slot;
    done_before_reg    <= done_slot_reg;
    copy_before_reg    <= copy;
  end

  wire set_wr_en = clear_before_reg || (judged && judged_stored);
  wire set_wr_bit = !clear_before_reg && !judged_set_reg;

  integer f;

  always @(posedge clk) begin
    if (advance) begin
      set_reg <= set_bits[a_slot_next[SLOT_BITS-1:FOLD_BITS]];
      red_reg <= red_bits[a_slot_next[SLOT_BITS-1:FOLD_BITS]];
    end
    copy_reg <= set_bits[reduced_slot[SLOT_BITS-1:FOLD_BITS]];
    for (f = 0; f < FOLD; f = f + 1) begin
      if (set_wr_en && (set_slot_reg & LOW) == f[SLOT_BITS-1:0])
        set_bits[set_slot_reg[SLOT_BITS-1:FOLD_BITS]][f] <= set_wr_bit;
      if ((clear_before_reg || reduced_before_reg) && (done_before_reg & LOW) == f[SLOT_BITS-1:0])
        red_bits[done_before_reg[SLOT_BITS-1:FOLD_BITS]][f] <= !clear_before_reg && copy_before_reg;
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  localparam integer JOB_LSB = 10;

  // For any slot, any beat and any packet by its number (modulo 16): the packet as it was accepted,
  // the data last written to that beat of the slot, and whether the slot holds a contribution.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  (* anyconst *) reg [INDEX_BITS-1:0] place;
  (* anyconst *) reg [3:0] which;
  reg was_reset = 1'b0;
  reg running_was = 1'b0;
  wire takes = s_axis_tvalid && s_axis_tready;
  integer n;

  // Jobs: the owner of the slot, and the guarantees of agg_jobs.
  reg [SLOT_BITS-1:0] mask_n, base_n;
  reg [JOBS-1:0] owns, valid_was;
  wire [JOBS-1:0] stands = job_valid | (flush & valid_was);  // not flushed before this cycle
  reg [SLOT_BITS*JOBS-1:0] mask_was, base_was;
  reg [INDEX_BITS*JOBS-1:0] last_was;

  // Numbers of packets: being accepted, in the skid, in A, in B, in the queue, to be judged; and
  // for a beat in these registers, how many precede it in its packet (saturates).
  reg [3:0] in_count, out_count, judged_count;
  reg [INDEX_BITS:0] in_at, b_at;
  reg in_begun, b_begun;  // the packet has beats that passed the input, or moved to B, not its last
  wire [3:0] b_count = out_count + queued_reg;
  wire [3:0] a_count = b_count + b_asks_reg;
  wire [3:0] s_count = a_count + a_ends_reg;
  wire s_ends = !ready_reg && s_last_reg;
  wire a_begun = a_valid_reg ? !a_ends_reg : b_begun;
  wire s_begun = ready_reg ? a_begun : !s_last_reg;
  wire [INDEX_BITS:0] next_b_at = b_at + !(&b_at);
  wire [INDEX_BITS:0] a_at = b_begun ? next_b_at : 0;
  wire [INDEX_BITS:0] next_a_at = a_valid_reg ? a_at + !(&a_at) : a_at;
  wire [INDEX_BITS:0] s_at = a_begun ? next_a_at : 0;


  // The packet, as accepted so far, and where it is
  reg [HEADER-1:0] its_header;
  reg its_full, its_special, its_bad, its_entered, its_steady, its_whole;
  reg [INDEX_BITS:0] its_at;  // number of its latest beat
  reg [BEAT_BITS-1:0] its_place;
  wire [JOB_BITS-1:0] its_job = JOBS == 1 ? 1'b0 : its_header[JOB_LSB+:JOB_BITS];
  wire in_s = !ready_reg && s_count == which;
  wire in_a = a_valid_reg && a_count == which;
  wire in_b = (b_begun || b_asks_reg) && b_count == which;
  wire in_queue = queued_reg && out_count == which;
  wire [1:0] a_place = b_place_reg + 2'd1;
  wire [1:0] s_place = a_place + a_valid_reg;
  wire [BEAT_BITS-1:0] s_beat = beats[s_place];
  wire [BEAT_BITS-1:0] a_beat = beats[a_place];
  wire [BEAT_BITS-1:0] b_beat = beats[b_place_reg];
  wire [HEADER-1:0] s_header = headers[s_count[1:0]];
  wire [HEADER-1:0] a_header = headers[a_count[1:0]];
  wire [HEADER-1:0] b_header = headers[b_count[1:0]];
  wire [JOB_BITS-1:0] q_job = q_job_reg;
  wire [JOB_BITS-1:0] b_job = b_job_reg;
  wire b_holds = b_begun || b_asks_reg;  // a packet's beats
  reg [INDEX_BITS:0] b_limit;  // its chunk's last beat

  // Slots of packets, by their jobs
  wire [SLOT_BITS-1:0] s_home = slot_base[SLOT_BITS*s_job_reg+:SLOT_BITS] |
      (s_header[50+:SLOT_BITS] & slot_mask[SLOT_BITS*s_job_reg+:SLOT_BITS]);
  wire [SLOT_BITS-1:0] a_home = slot_base[SLOT_BITS*a_job_reg+:SLOT_BITS] |
      (a_header[50+:SLOT_BITS] & slot_mask[SLOT_BITS*a_job_reg+:SLOT_BITS]);
  wire [SLOT_BITS-1:0] b_home = slot_base[SLOT_BITS*b_job+:SLOT_BITS] |
      (b_header[50+:SLOT_BITS] & slot_mask[SLOT_BITS*b_job+:SLOT_BITS]);
  wire [SLOT_BITS-1:0] q_home = slot_base[SLOT_BITS*q_job+:SLOT_BITS] |
      (q_header_reg[50+:SLOT_BITS] & slot_mask[SLOT_BITS*q_job+:SLOT_BITS]);
  wire [INDEX_BITS-1:0] b_last = job_last >> INDEX_BITS * b_job;
  wire [INDEX_BITS-1:0] its_last = job_last >> INDEX_BITS * its_job;

  // Places in the order of requests, from the next verdict's
  wire [3:0] unjudged = out_count + queued_reg - judged_count;
  wire [3:0] taken = unjudged + |judged_reg;
  wire [3:0] its_turn = which - judged_count;
  wire [3:0] granted = out_count - judged_count;  // of these
  wire all_judged = granted == 0;
  reg [SLOT_BITS-1:0] oldest_slot;  // of the next verdict's place
  wire [PLACES-1:0] queue_at = queued_reg ? {put_reg[0], put_reg[PLACES-1:1]} : {PLACES{1'b0}};
  reg [PLACES-1:0] next_at, unjudged_at, put_at, its_at_place, hits;
  reg [PLACES-1:0] granted_writes;  // the request's payload was written
  wire [PLACES-1:0] writes = (granted_writes & ~queue_at) | (q_writable_reg ? queue_at : 0);
  wire [PLACES-1:0] pending = hits & live_reg & unjudged_at & writes;

  // The watched slot
  reg known = 1'b0;  // it was cleared
  reg holding;  // it holds a contribution that is not yet summed
  reg sums, sums_before;  // one was summed one or two cycles ago
  reg [BEAT_BITS-1:0] memory;
  wire [BEAT_BITS-1:0] memory_next =
      wr_en && wr_slot == watched && wr_beat == place ? wr_data : memory;
  reg a_was_busy, asked_was, granted_was, began, expected_open, owned_was;
  wire set_now = set_bits[watched>>FOLD_BITS] >> (watched & LOW);
  wire red_now = red_bits[watched>>FOLD_BITS] >> (watched & LOW);
  wire busy = holding || sums || sums_before;
  wire reduces = reduced && reduced_slot == watched;
  wire clears = clear && clear_slot == watched;
  wire reduces_1 = reduced_reg && done_slot_reg == watched;
  wire reduces_2 = reduced_before_reg && done_before_reg == watched;
  wire clears_1 = clear_reg && done_slot_reg == watched;
  wire clears_2 = clear_before_reg && done_before_reg == watched;
  wire stores = judged && judged_stored && set_slot_reg == watched;
  wire stored_now = stored_reg && |(judged_reg & hits & live_reg);  // one cycle ago

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    valid_was <= job_valid;
    mask_was <= slot_mask;
    base_was <= slot_base;
    last_was <= job_last;

    // What is accepted
    if (takes) begin
      in_count <= in_count + s_axis_tlast;
      in_begun <= !s_axis_tlast;
      in_at <= s_axis_tlast ? 0 : in_at + !(&in_at);
    end
    if (takes && in_count == which) begin
      its_at <= in_at;
      its_full <= &s_axis_tkeep && (!in_begun || its_full);
      its_special <= |s_nonfinite || (in_begun && its_special);
      its_bad <= s_axis_tuser[112];
      if (!in_begun) begin
        its_header  <= header;
        its_entered <= number < JOBS && job_valid[job];
      end
      if (in_at == place) its_place <= s_axis_tdata;
    end
    if (takes && in_count == which && !in_begun)
      its_steady <= number < JOBS && job_valid[job] && header[7:4] == KIND_DATA;
    else if (flush[its_job]) its_steady <= 1'b0;

    // What moves on
    if (advance && a_valid_reg) begin
      b_begun <= !a_ends_reg;
      b_at <= a_at;
    end
    if (advance) a_was_busy <= busy;
    began <= advance && a_valid_reg && a_first_reg && a_slot_reg == watched;
    expected_open <= its_steady && !flush[its_job] && !a_was_busy && !a_stored_reg;
    if (advance && a_valid_reg && a_first_reg)
      b_limit <= job_last[INDEX_BITS*a_job_reg+:INDEX_BITS];
    if (asks && in_b) its_whole <= its_full && its_at == b_limit;
    asked_was   <= req_valid && !rst;
    granted_was <= req_grant;
    if (req_grant) out_count <= out_count + 1'b1;
    if (judged) judged_count <= judged_count + 1'b1;
    if (req_grant)
      granted_writes <= (granted_writes & ~queue_at) | (req_writable ? queue_at : {PLACES{1'b0}});

    memory <= memory_next;
    owned_was <= owns != 0;
    if (stores) holding <= 1'b1;
    if (reduces || clears) holding <= 1'b0;
    sums <= reduces && holding;
    sums_before <= sums;
    if (clears_2) known <= 1'b1;
    if (rst) begin
      in_count <= 0;
      in_begun <= 1'b0;
      in_at <= 0;
      b_begun <= 1'b0;
      out_count <= 0;
      judged_count <= 0;
      known <= 1'b0;
      holding <= 1'b0;
      sums <= 1'b0;
      sums_before <= 1'b0;
      began <= 1'b0;
    end
  end

  always @* begin
    next_at = get_reg;
    unjudged_at = 0;
    put_at = 0;
    its_at_place = 0;
    oldest_slot = 0;
    for (n = 0; n < PLACES; n = n + 1) begin
      if (get_reg[n]) oldest_slot = oldest_slot | slots_reg[SLOT_BITS*n+:SLOT_BITS];
      hits[n] = slots_reg[SLOT_BITS*n+:SLOT_BITS] == watched;
      if (n < unjudged) unjudged_at = unjudged_at | next_at;
      if (n == unjudged) put_at = next_at;
      if (n == its_turn && its_turn < unjudged) its_at_place = next_at;
      next_at = {next_at[PLACES-2:0], next_at[PLACES-1]};
    end
    if (unjudged == PLACES) put_at = get_reg;

    for (n = 0; n < JOBS; n = n + 1)
    owns[n] = stands[n] && (watched & ~slot_mask[SLOT_BITS*n+:SLOT_BITS]) ==
          slot_base[SLOT_BITS*n+:SLOT_BITS];

    if (was_reset) begin
      // agg_jobs: a job that is set up has slots of its own, all of which were cleared before. Its
      // flush begins as it ends. Its slots and its chunk length do not change until the flush is
      // over.
      for (n = 0; n < JOBS; n = n + 1) begin
        `PROMISED((slot_base[SLOT_BITS*n+:SLOT_BITS] & slot_mask[SLOT_BITS*n+:SLOT_BITS]) == 0);
        `PROMISED(!(flush[n] && job_valid[n]));
        if (running_was) begin
          `PROMISED(!(valid_was[n] && !job_valid[n]) || flush[n]);
          `PROMISED(
              (slot_mask[SLOT_BITS*n+:SLOT_BITS] == mask_was[SLOT_BITS*n+:SLOT_BITS] &&
                     slot_base[SLOT_BITS*n+:SLOT_BITS] == base_was[SLOT_BITS*n+:SLOT_BITS] &&
                     job_last[INDEX_BITS*n+:INDEX_BITS] == last_was[INDEX_BITS*n+:INDEX_BITS]) ||
                    (!job_valid[n] && !valid_was[n] && !flush[n]));
        end
      end
      `PROMISED((owns & (owns - 1'b1)) == 0);
      `PROMISED(owns == 0 || known);
      `PROMISED(owns == 0 || !(clears || clears_1 || clears_2));
      // A granted request is judged before any job changes, or a slot is cleared.
      `PROMISED(!(req_grant || !all_judged) || job_valid == valid_was);
      `PROMISED(
          !(clear || clear_reg || clear_before_reg) || (!req_grant && all_judged && !reduced));
      // agg_arbiter grants a request in a later cycle, and sees the next one after that. Requests
      // are judged in order, and stored only if their data was written.
      `PROMISED(!req_grant || (asked_was && !granted_was));
      `PROMISED(!judged || !all_judged);
      // agg_slots: a packet every second cycle at most.
      `PROMISED(!judged || judged_reg == 0);
      `PROMISED(!(judged && judged_stored) || |(get_reg & granted_writes));
      // agg_slots: a slot that was reduced in the last cycles takes no contribution.
      `PROMISED(!stores || !(reduces || reduces_1 || reduces_2));
    end
    if (was_reset && !rst) begin
      // Order: no packet and no beat is lost or repeated.
      assert (in_count == s_count + s_ends);
      assert (first_reg == !s_begun && in_begun == s_begun);
      if (!ready_reg) assert (s_first_reg == !a_begun);
      assert (a_first_reg ? !b_begun : b_begun || !a_valid_reg);
      assert (in_at == (!s_begun ? 0 : ready_reg ? s_at : s_at + !(&s_at)));
      assert (wr_place_reg == s_place + !ready_reg);
      assert (!(a_ends_reg || a_data_reg) || a_valid_reg);
      assert (!a_data_reg || a_first_reg);
      assert (!(b_asks_reg && b_begun) && !(b_valid_reg && !b_holds));
      if (!advance && !b_waits_reg) assert (b_asks_reg && (queued_reg || filled_reg[PLACES-2]));
      assert (!(b_waits_reg && advance));
      if (asks) assert (!queued_reg && !all_unjudged);
      if (b_holds) begin
        assert (&b_at || b_number_reg == b_at[INDEX_BITS-1:0]);
        assert (b_rest_reg == (b_at <= b_limit ? b_limit - b_at : {INDEX_BITS + 1{1'b1}}));
        assert (b_at_last_reg == (b_at == b_limit) && !b_limit[INDEX_BITS]);
        if (in_b && its_steady) assert (stands[b_job] && b_limit == {1'b0, b_last});
      end
      assert (wr_header_reg == in_count[1:0] + in_begun && q_number_reg == out_count[1:0]);

      // The packet in every register is the accepted one.
      if (in_s && s_first_reg)
        assert (s_header == its_header && s_entered_reg == its_entered &&
            (s_data_reg && s_entered_reg) == its_steady && s_job_reg == its_job);
      if (in_a && a_first_reg)
        assert (a_header == its_header && a_entered_reg == its_entered &&
            (a_data_reg && a_entered_reg) == its_steady && a_job_reg == its_job);
      if (in_b)
        assert (b_header == its_header && b_entered_reg == its_entered && b_job_reg == its_job);
      if (in_s)
        assert (its_at == s_at && its_bad == s_bad_reg);
        else if (in_a)
          assert (its_at == a_at && its_bad == a_bad_reg);
          else if (in_b) assert (its_at == b_at && (!b_asks_reg || its_bad == b_bad_reg));
      if (in_s || in_a || in_b) begin
        assert (its_full == ((!in_s || s_full_reg) && (!in_a || a_full_reg) &&
            (!in_b || b_full_reg)));
        assert (its_special == ((in_s && |s_nonfinite_reg) || (in_a && |a_nonfinite_reg) ||
            (in_b && b_nonfinite_reg)));
      end
      if (in_s && s_at == place) assert (s_beat == its_place);
      if (in_a && a_at == place) assert (a_beat == its_place);
      if (in_b && b_valid_reg && b_at == place) assert (b_beat == its_place);
      if (in_queue) begin
        assert (q_header_reg == its_header && q_entered_reg == its_entered && q_job_reg == its_job);
        assert (headers[which[1:0]] == its_header);
        assert (q_bad_reg == its_bad && q_nonfinite_reg == its_special);
        assert (q_whole_reg == its_whole);
      end

      // Only data of a job that is set up is written, to the slot of its job and VID.
      if (!ready_reg && s_first_reg) assert (s_job_reg == s_header[JOB_LSB+:JOB_BITS] % JOBS);
      if (!ready_reg && s_first_reg && s_data_reg && s_entered_reg)
        assert (stands[s_job_reg] && s_slot_reg == s_home && s_header[7:4] == KIND_DATA &&
            s_header[JOB_LSB+:8] < JOBS);
      if (a_valid_reg && a_first_reg) assert (a_job_reg == a_header[JOB_LSB+:JOB_BITS] % JOBS);
      if (!ready_reg && s_first_reg && s_data_reg) assert (s_header[7:4] == KIND_DATA);
      if (a_data_reg) assert (a_header[7:4] == KIND_DATA);
      if (a_data_reg && a_entered_reg)
        assert (stands[a_job_reg] && a_slot_reg == a_home && a_header[7:4] == KIND_DATA &&
            a_header[JOB_LSB+:8] < JOBS);
      if (b_open_reg) assert (b_holds);
      if (b_open_reg) begin
        assert (stands[b_job] && b_slot_reg == b_home && b_header[7:4] == KIND_DATA &&
            b_header[JOB_LSB+:8] < JOBS);
        assert (b_limit == {1'b0, b_last});
        assert (b_at < b_last || (b_at == b_last && (b_valid_reg || b_asks_reg)));
      end
      if (queued_reg && q_writable_reg)
        assert (stands[q_job] && |(queue_at & live_reg) && q_header_reg[7:4] == KIND_DATA);
      if (queued_reg && q_writable_reg && q_home == watched) assert (|(queue_at & hits));
      if (queued_reg && q_writable_reg && |(queue_at & hits)) assert (q_home == watched);
      if (b_writes)
        assert (stands[b_job] && {1'b0, b_number_reg} == b_at && b_number_reg <= b_last);
      if (a_data_reg && a_entered_reg && a_slot_reg == watched) assert (a_busy == a_was_busy);
      if (began && in_b) assert (b_open_reg == expected_open);

      // Places: taken in order, and free again after their verdict.
      assert (granted <= unjudged && unjudged <= PLACES && taken <= PLACES);
      for (n = 0; n < PLACES; n = n + 1) assert (filled_reg[n] == (n < taken));
      assert (get_reg != 0 && (get_reg & (get_reg - 1'b1)) == 0 && put_reg == put_at);
      assert (judged_reg == 0 || judged_reg == {get_reg[0], get_reg[PLACES-1:1]});
      assert ((live_reg & ~unjudged_at & ~judged_reg) == 0);
      assert ((writes & unjudged_at & ~live_reg) == 0);
      if (req_grant) assert (queued_reg);
      assert (b_waits_reg == (match_reg != 0));
      assert (req_valid == (queued_reg || asks));
      assert (frees_reg == (judged_reg != 0));
      if (stored_reg) assert (|(judged_reg & live_reg));
      for (n = 0; n < PLACES; n = n + 1)
      if (stored_reg && judged_reg[n])
        assert (slots_reg[SLOT_BITS*n+:SLOT_BITS] == stored_slot_reg);
      if (!all_judged && judged_reg == 0)
        assert (set_slot_reg == oldest_slot && judged_set_reg == |(get_reg & sets_reg));

      // The slot is busy while it holds a contribution.
      if (known && !clears_1 && !clears_2) assert ((set_now ^ red_now) == busy);
      if (clears_1 || clears_2) assert (!holding);
      if (clear_before_reg) assert (set_slot_reg == done_before_reg);
      if (reduces_1 && known) assert (copy == set_now);
      if (reduces_2 && known) assert (copy_before_reg == set_now);
      if (sums) assert (reduces_1);
      if (sums_before) assert (reduces_2);

      // One unjudged request at most has written the slot, and the slot holds nothing then.
      assert ((hits & live_reg & ((hits & live_reg) - 1'b1)) == 0);
      if (pending != 0) assert (owns != 0 && !busy && |(pending & sets_reg) == set_now);

      // A contribution that is not yet summed is not overwritten, nor is data awaiting its verdict.
      if (a_data_reg && a_entered_reg && a_slot_reg == watched && !a_stored_reg && !a_busy)
        assert (owns != 0 && ((!busy && a_set == set_now) || stored_now));
      if (b_holds && b_open_reg && b_slot_reg == watched) begin
        assert (owns != 0);
        if (!b_waits_reg) assert (!busy && (hits & live_reg) == 0);
        if (b_waits_reg && (hits & live_reg) != 0)
          assert ((hits & live_reg) == (match_reg & live_reg) && (!busy || stored_now));
        if (b_waits_reg && (hits & live_reg) == 0) assert (!busy || stored_before_reg);
        if (!busy) assert (b_set_reg == set_now);
      end
      if (b_writes && b_slot_reg == watched) assert (owns != 0 && !busy && pending == 0);
      if (wr_en && wr_slot == watched) assert (owned_was && !busy && (pending & ~queue_at) == 0);

      // Stored data is the packet's data.
      if (place <= its_last && its_at >= place) begin
        if (in_b && b_open_reg && b_slot_reg == watched &&
            (b_at > place || (b_at == place && !b_valid_reg)))
          assert (memory_next == its_place);
        if (|(its_at_place & pending)) assert (memory_next == its_place);
        if (|(its_at_place & pending & ~queue_at)) assert (memory == its_place);
      end
      if (|(its_at_place & writes)) assert (stands[its_job]);

      // A port waits only for its own packets, until their verdict.
      if (!advance) assert (taken != 0 || freed);
      if (b_waits_reg) begin
        if (b_slot_reg == watched) assert ((match_reg & (match_reg - 1'b1)) == 0);
        assert (b_valid_reg && b_at == 0 && b_header[7:4] == KIND_DATA);
        if (b_slot_reg == watched) assert ((match_reg & live_reg & ~hits) == 0);
      end

      cover (stores && job_last != 0);
      cover (b_waits_reg && b_open_reg && freed && !freed_stored && b_slot_reg == watched);
      cover (b_waits_reg && freed && freed_stored);
      cover (a_stored_reg && advance && a_data_reg && a_slot_reg == watched);
      cover (pending != 0 && !all_judged && queued_reg && !ready_reg);
      cover (all_unjudged && !ready_reg);
      cover (wr_en && wr_slot == watched && owns == 2 && flush[0]);
      cover (sums_before);
    end
  end
`endif

endmodule

`default_nettype wire
