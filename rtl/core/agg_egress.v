// Sends results from the cache, and statuses, as packets of one AXI4-Stream.
//
// A result is picked, labelled (its header's fields are read), prepared, and then sent; one result
// can be at each of these steps. Results stay in the order of their picks. A status has priority
// over a result, but not twice in a row while the first beat of a prepared result was written one
// cycle ago: a status never waits for a sum. A result can be sent while it is still being written:
// each beat waits until it is written.
// tuser holds the header from a packet's first beat to its last.
//
// The port queues are told of a packet (start) when it is certain to be sent; port_ready is right
// from the second cycle after that on. In cycles with decide, ready names the ports that can take
// a packet, and starting those for which that is not known yet: four cycles after their last packet
// was decided on. At most one of pick_ready and status_ready asks for a packet. The answer is due
// one cycle later. A slot that begins to be summed while its pick is on its way loses the pick. From
// label_valid on, until its last beat is read, a slot must not begin (label_*, prep_*, send_*).
//
// Latency: a pick shown in cycle 0 (pick_valid) is labelled in cycle 1 and prepared from cycle
// RANKS_LATENCY + 4 on. Its first beat is at the output two cycles after it is written or prepared,
// whichever is later. Packets follow one another without a bubble if each has RANKS_LATENCY + 4
// beats or more, six for one port, and results are always ready to be picked. A packet under way is
// completed even if its job ends. A slot is cleared after its sum, so all beats of its result are
// written then, although the cache's writer forgets them. Not done here: destinations, and order
// in a job (agg_owed, agg_status), turns of jobs, header contents (agg_labels, agg_port_ranks).

`default_nettype none

module agg_egress #(
    parameter integer       PORTS         = 4,
    parameter integer       JOB_BITS      = 1,
    parameter integer       SLOT_BITS     = 4,
    parameter integer       INDEX_BITS    = 4,    // width of a beat's number in its chunk
    parameter integer       RANKS_LATENCY = 2,    // cycles from ports to ranks; 1 or more
    parameter         [7:0] FORMAT        = 8'd1  // data format of results, as in the header
) (
    input wire clk,
    input wire rst,

    // The ports' queues
    input  wire [PORTS-1:0] port_ready,  // they have room for a packet
    output wire [PORTS-1:0] start,       // a packet will be sent to these ports

    output wire             decide,   // in every second cycle
    output wire [PORTS-1:0] ready,
    output wire [PORTS-1:0] starting,

    // The next result; a slot begins to be summed
    output wire                 pick_ready,
    input  wire                 pick_valid,
    input  wire [ JOB_BITS-1:0] pick_job,
    input  wire [SLOT_BITS-1:0] pick_slot,
    input  wire [    PORTS-1:0] pick_receivers,  // destination ports
    input  wire                 pick_replay,
    input  wire                 begun,
    input  wire [SLOT_BITS-1:0] begun_slot,

    // The result being labelled: its job and ports, for the ranks
    output wire                 label_valid,
    output wire [ JOB_BITS-1:0] label_job,
    output wire [SLOT_BITS-1:0] label_slot,
    output wire [    PORTS-1:0] label_receivers,

    // That job's fields, in the first cycle with label_valid
    input wire [INDEX_BITS-1:0] job_last,    // number of the last beat
    input wire [           7:0] job_number,
    input wire [          15:0] job_epoch,
    input wire [          15:0] job_chunk,   // length, in elements
    input wire [     PORTS-1:0] job_member,
`ifdef AGG_PARENT
    input wire [           7:0] job_up_rank, // the card's rank at its parent
`endif

    // Two cycles after label_slot: its label
    input wire [PORTS-1:0] result_ports,      // that contributed
    input wire [     31:0] result_vid,
    input wire [      1:0] result_ecn,
    input wire             result_nonfinite,
    input wire             result_gen,

    // RANKS_LATENCY cycles later
`ifdef AGG_PARENT
    input wire [     63:0] result_mask,      // global ranks that contributed
`else
    input wire [PORTS-1:0] result_mask,      // ranks that contributed
`endif
    input wire [PORTS-1:0] result_receivers, // ranks at label_receivers

    // The next status; its fields stay from the cycle after status_valid to the next one
    input  wire             status_wants,
    output wire             status_ready,
    input  wire             status_valid,
    input  wire [PORTS-1:0] status_ports,  // one-hot; already with status_valid
    input  wire [      7:0] status_job,
    input  wire [     15:0] status_epoch,
    input  wire [      7:0] status_rank,
    input  wire [      7:0] status_code,
    input  wire [     31:0] status_vid,
`ifdef AGG_PARENT
    input  wire [     63:0] status_mask,
`else
    input  wire [PORTS-1:0] status_mask,
`endif

    // Slots of the prepared result and of the one being sent
    output wire                 prep_valid,
    output wire [SLOT_BITS-1:0] prep_slot,
    output wire                 send_valid,
    output wire [SLOT_BITS-1:0] send_slot,

    // The slot's job has ended, and its sum, if any began
    input wire                 clear,
    input wire [SLOT_BITS-1:0] clear_slot,

    // The cache's writer: one cycle later, whether that beat is written; with query_after, whether
    // the one in after_* is
    output wire [ SLOT_BITS-1:0] query_slot,
    output wire                  query_gen,
    output wire [INDEX_BITS-1:0] query_beat,
    output wire [ SLOT_BITS-1:0] after_slot,
    output wire                  after_gen,
    output wire [INDEX_BITS-1:0] after_beat,
    output wire                  query_after,
    input  wire                  query_written,

    // A packet is certain to be sent: one cycle later in start
    output wire sends_result,
    output wire sends_replay,
    output wire sends_status,
`ifdef AGG_PARENT
    output wire sends_up,     // to the parent; none of the others
`endif

    // The cache: its word belongs to the stream's beat of the next cycle
    output wire [ SLOT_BITS-1:0] rd_slot,
    output wire [INDEX_BITS-1:0] rd_beat,

    // The stream, without tdata
    output wire             m_axis_tpayload,  // the beat has bytes: the cache's word
    output wire             m_axis_tvalid,
    input  wire             m_axis_tready,
    output wire             m_axis_tlast,
    output wire [    239:0] m_axis_tuser,     // header with mask and receivers
    output wire [PORTS-1:0] m_axis_tdest      // destination ports
);

  `include "zwire.vh"

  generate
    if (RANKS_LATENCY < 1) begin : g_latency
      ERROR_ranks_take_a_cycle_or_more error ();
    end
  endgenerate

  localparam integer STEPS = RANKS_LATENCY + 2;  // cycles from label_slot to the ranks
  localparam [INDEX_BITS-1:0] FIRST = {INDEX_BITS{1'b0}};
  localparam [INDEX_BITS-1:0] SECOND = 1;

  // -- Labelling ----------------------------------------------------------------------------------

  reg label_reg, replay_reg;
  reg [STEPS:0] step_reg;  // one-hot: cycles since label_slot is shown
  reg waits_reg;  // more than STEPS
  reg [JOB_BITS-1:0] job_reg;
  reg [SLOT_BITS-1:0] slot_reg;
  reg [PORTS-1:0] to_reg;
  reg [INDEX_BITS-1:0] last_reg;
  reg [7:0] number_reg;
  reg [15:0] epoch_reg;
  reg [15:0] chunk_reg;
  reg [PORTS-1:0] member_reg;
`ifdef AGG_PARENT
  reg [7:0] parent_reg;
`endif

  // The job may change while a result waits: its fields are taken at once, the ranks when they come.
`ifdef AGG_PARENT
  reg [63:0] mask_reg;
  reg [PORTS-1:0] receivers_reg;
  wire [63:0] mask = waits_reg ? mask_reg : result_mask;
`else
  reg [PORTS-1:0] mask_reg, receivers_reg;
  wire [PORTS-1:0] mask = waits_reg ? mask_reg : result_mask;
`endif
  wire [PORTS-1:0] receivers = waits_reg ? receivers_reg : result_receivers;

  // A pick is cancelled in its first cycle here if its slot began since the decision, which was two
  // cycles ago. Most of that is known when the pick comes.
  reg begun_reg, lost_reg;
  reg [SLOT_BITS-1:0] begun_slot_reg;
  wire cancel = step_reg[0] && (lost_reg || (begun && begun_slot == slot_reg));

  reg prep_reg;
  wire prepares = (step_reg[STEPS] || waits_reg) && !prep_reg;

  reg label_whole_reg;  // all beats are written
  wire label_whole = label_whole_reg || (clear && clear_slot == slot_reg);

  always @(posedge clk) begin
    label_whole_reg <= label_whole && !pick_valid;
    begun_reg <= begun;
    begun_slot_reg <= begun_slot;
    lost_reg <= (begun && begun_slot == pick_slot) || (begun_reg && begun_slot_reg == pick_slot);

    step_reg <= {step_reg[STEPS-1:1], step_reg[0] && !cancel, pick_valid};
    if (pick_valid) label_reg <= 1'b1;
    else if (prepares || cancel) label_reg <= 1'b0;
    waits_reg <= (step_reg[STEPS] || waits_reg) && prep_reg;

    if (pick_valid) begin
      job_reg    <= pick_job;
      slot_reg   <= pick_slot;
      to_reg     <= pick_receivers;
      replay_reg <= pick_replay;
    end
    if (step_reg[0]) begin
      last_reg   <= job_last;
      number_reg <= job_number;
      epoch_reg  <= job_epoch;
      chunk_reg  <= job_chunk;
      member_reg <= job_member;
`ifdef AGG_PARENT
      parent_reg <= job_up_rank;
`endif
    end
    if (step_reg[STEPS]) begin
      mask_reg      <= result_mask;
      receivers_reg <= result_receivers;
    end

    if (rst) begin
      begun_reg <= 1'b0;
      label_reg <= 1'b0;
      step_reg  <= {STEPS + 1{1'b0}};
      waits_reg <= 1'b0;
    end
  end

  assign label_valid     = label_reg;
  assign label_job       = job_reg;
  assign label_slot      = slot_reg;
  assign label_receivers = to_reg;

  // -- Decisions ----------------------------------------------------------------------------------

  reg decide_reg, pick_ready_reg, status_ready_reg;
  reg [PORTS-1:0] ready_reg;
  reg [PORTS-1:0] starting_reg;
  reg [PORTS-1:0] start_reg;
  reg status_reg;  // a status waits to be sent
  reg status_first_reg;  // in its first cycle

  // There is room if nothing is labelled, or it is prepared by the time of the next pick.
  wire leaves = |{waits_reg, step_reg[STEPS:STEPS-2]} && !prep_reg;
  wire room = !pick_valid && (!label_reg || leaves);
  wire asks_status = status_wants && !status_reg && !status_valid;

  // Ports with a packet that port_ready does not know of yet. A decision is known here one cycle
  // later, and to the port queues in start two cycles after that.
  wire [PORTS-1:0] decided = (pick_valid ? pick_receivers : {PORTS{1'b0}}) |
      (status_valid ? status_ports : {PORTS{1'b0}});

  always @(posedge clk) begin
    decide_reg <= !decide_reg;
    pick_ready_reg <= !decide_reg && room && !asks_status;
    status_ready_reg <= !decide_reg && asks_status;
    ready_reg <= port_ready & ~decided & ~start_reg;
    starting_reg <= decided | start_reg;
    start_reg <= (step_reg[0] && !cancel ? to_reg : {PORTS{1'b0}}) |
        (status_first_reg ? status_ports : {PORTS{1'b0}});
    status_first_reg <= status_valid;
    if (rst) begin
      decide_reg       <= 1'b0;
      pick_ready_reg   <= 1'b0;
      status_ready_reg <= 1'b0;
      start_reg        <= {PORTS{1'b0}};
      status_first_reg <= 1'b0;
    end
  end

`ifdef AGG_PARENT
  wire up = to_reg[PORTS-1];  // an own sum, for the parent
  wire status_up = status_ports[PORTS-1];  // a finish, for the parent
  assign sends_result = step_reg[0] && !cancel && !replay_reg && !up;
  assign sends_replay = step_reg[0] && !cancel && replay_reg && !up;
  assign sends_status = status_first_reg && !status_up;
  assign sends_up     = (step_reg[0] && !cancel && up) || (status_first_reg && status_up);
`else
  assign sends_result = step_reg[0] && !cancel && !replay_reg;
  assign sends_replay = step_reg[0] && !cancel && replay_reg;
  assign sends_status = status_first_reg;
`endif
  assign decide       = decide_reg;
  assign pick_ready   = pick_ready_reg;
  assign status_ready = status_ready_reg;
  assign ready        = ready_reg;
  assign starting     = starting_reg;
  assign start        = start_reg;

  // -- Headers ------------------------------------------------------------------------------------

`ifdef AGG_PARENT
  wire [63:0] contributors = up ? 64'd0 : mask;
  wire [63:0] destinations = up ? 64'd0 : {{65 - PORTS{1'b0}}, receivers[PORTS-2:0]};
  wire unused_receiver = receivers[PORTS-1];
  wire [63:0] missing = status_mask;
`else
  wire [63:0] contributors = {{64 - PORTS{1'b0}}, mask};
  wire [63:0] destinations = {{64 - PORTS{1'b0}}, receivers};
  wire [63:0] missing = {{64 - PORTS{1'b0}}, status_mask};
`endif
  wire [7:0] flags = {6'd0, result_ecn} | (result_nonfinite ? FLAG_NONFINITE : 8'd0) |
      (|(member_reg & ~result_ports) ? FLAG_PARTIAL : 8'd0);
`ifdef AGG_PARENT
  wire [7:0] result_kind = {up ? KIND_DATA : replay_reg ? KIND_REPLAY : KIND_RESULT, VERSION};
  wire [7:0] status_kind = {status_up ? KIND_FINISH : KIND_STATUS, VERSION};
`else
  wire [7:0] result_kind = {replay_reg ? KIND_REPLAY : KIND_RESULT, VERSION};
  wire [7:0] status_kind = {KIND_STATUS, VERSION};
`endif

  // receivers, mask, length, VID, code, rank, epoch, format, job, flags, kind and version
`ifdef AGG_PARENT
  wire [239:0] result_header = {
    destinations,
    contributors,
    chunk_reg,
    result_vid,
    8'd0,
    up ? parent_reg : 8'd0,
    epoch_reg,
    FORMAT,
    number_reg,
    flags,
    result_kind
  };
`else
  wire [239:0] result_header = {
    destinations,
    contributors,
    chunk_reg,
    result_vid,
    16'd0,
    epoch_reg,
    FORMAT,
    number_reg,
    flags,
    result_kind
  };
`endif
  wire [239:0] status_header = {
    64'd0,
    missing,
    16'd0,
    status_vid,
    status_code,
    status_rank,
    status_epoch,
    8'd0,
    status_job,
    8'd0,
    status_kind
  };

  // -- Prepared result ----------------------------------------------------------------------------

  reg [SLOT_BITS-1:0] prep_slot_reg;
  reg prep_gen_reg, prep_one_reg;  // one: it has one beat
  reg prep_whole_reg;  // all beats are written
  wire prep_whole = prep_whole_reg || (clear && clear_slot == prep_slot_reg);
  reg [INDEX_BITS-1:0] prep_last_reg;
  reg [PORTS-1:0] prep_to_reg;
  reg [239:0] prep_header_reg;
  wire takes_result, takes_status;

  always @(posedge clk) begin
    prep_whole_reg <= prepares ? label_whole : prep_whole;
    if (prepares) begin
      prep_reg        <= 1'b1;
      prep_slot_reg   <= slot_reg;
      prep_gen_reg    <= result_gen;
      prep_last_reg   <= last_reg;
      prep_one_reg    <= last_reg == FIRST;
      prep_to_reg     <= to_reg;
      prep_header_reg <= result_header;
    end else if (takes_result) begin
      prep_reg <= 1'b0;
    end
    if (status_valid) status_reg <= 1'b1;
    else if (takes_status) status_reg <= 1'b0;
    if (rst) begin
      prep_reg   <= 1'b0;
      status_reg <= 1'b0;
    end
  end

  assign prep_valid = prep_reg;
  assign prep_slot  = prep_slot_reg;

  // -- Sending ------------------------------------------------------------------------------------

  // The candidate is the beat to be read next: of the result being sent, or the first one of the
  // prepared result. Its slot has a register of its own, which addresses the cache.
  reg sending_reg;  // the result has beats left to read
  reg [SLOT_BITS-1:0] slot_now_reg;
  reg gen_now_reg;
  reg [SLOT_BITS-1:0] send_slot_reg;
  reg [INDEX_BITS-1:0] beat_reg;  // 0 unless sending
  reg [INDEX_BITS-1:0] beat_after_reg;  // beat_reg + 1
  reg [INDEX_BITS-1:0] send_last_reg;
  reg send_ends_reg;  // beat_reg is the last one
  reg send_whole_reg;  // all beats are written
  reg asked_reg;  // the last query was about the candidate
  reg known_reg;  // the candidate is written, as an earlier query returned, or as all its beats are
  reg valid_reg, payload_reg, last_beat_reg;
  reg after_status_reg;
  reg status_next_reg;  // a status is the next packet
  reg [239:0] header_reg;
  reg [PORTS-1:0] dest_reg;

  wire free = !valid_reg || m_axis_tready;
  wire written = known_reg || (asked_reg && query_written);
  wire ends = sending_reg ? send_ends_reg : prep_one_reg;

  wire rd_en = free && written && (sending_reg || !status_next_reg);
  assign rd_slot      = slot_now_reg;
  assign rd_beat      = beat_reg;
  assign takes_result = rd_en && !sending_reg;
  assign takes_status = free && !sending_reg && status_next_reg;

  // A status goes first, unless it follows another and a result was known in the cycle before. Such
  // a result leaves as soon as it may.
  wire result_next = after_status_reg && known_reg && (!free || status_next_reg);

  // The next query: about the candidate, or the beat after it if that is written.
  wire to_prep = sending_reg && send_ends_reg;
  assign query_slot  = slot_now_reg;
  assign query_gen   = gen_now_reg;
  assign query_beat  = beat_reg;
  assign after_slot  = to_prep ? prep_slot_reg : slot_now_reg;
  assign after_gen   = to_prep ? prep_gen_reg : gen_now_reg;
  assign after_beat  = to_prep ? FIRST : beat_after_reg;
  assign query_after = written;

  wire stays = rd_en ? !ends : sending_reg;  // the next candidate is of the same result

  // The result of the next candidate, if it is known now, is whole.
  wire send_whole = send_whole_reg || (clear && clear_slot == send_slot_reg);
  wire next_whole = sending_reg ? (rd_en && ends ? prep_reg && prep_whole_reg : send_whole_reg) :
      prep_reg && prep_whole_reg && !(rd_en && ends);

  always @(posedge clk) begin
    send_whole_reg <= takes_result ? prep_whole : send_whole;
    known_reg <= (written && !rd_en) || next_whole;
    asked_reg <= rd_en && !ends ? 1'b1 : rd_en && !sending_reg ? 1'b0 :
        sending_reg && !rd_en ? 1'b1 : prep_reg;
    if (rd_en) begin
      sending_reg    <= !ends;
      beat_reg       <= ends ? FIRST : beat_after_reg;
      beat_after_reg <= ends ? SECOND : beat_after_reg + 1'b1;
    end
    if (!stays) begin
      slot_now_reg <= prepares ? slot_reg : prep_slot_reg;
      gen_now_reg  <= prepares ? result_gen : prep_gen_reg;
    end
    if (takes_result) begin
      send_slot_reg <= prep_slot_reg;
      send_last_reg <= prep_last_reg;
      send_ends_reg <= prep_last_reg == SECOND;
    end else if (rd_en) begin
      send_ends_reg <= beat_after_reg == send_last_reg;
    end

    status_next_reg <= (status_valid || (status_reg && !takes_status)) && !result_next;
    if (takes_result) after_status_reg <= 1'b0;
    if (takes_status) after_status_reg <= 1'b1;
    if (free && !sending_reg) begin
      header_reg <= status_next_reg ? status_header : prep_header_reg;
      dest_reg   <= status_next_reg ? status_ports : prep_to_reg;
    end
    if (free) begin
      valid_reg     <= rd_en || takes_status;
      payload_reg   <= rd_en;
      last_beat_reg <= takes_status || ends;
    end

    if (rst) begin
      known_reg        <= 1'b0;
      asked_reg        <= 1'b0;
      sending_reg      <= 1'b0;
      beat_reg         <= FIRST;
      beat_after_reg   <= SECOND;
      valid_reg        <= 1'b0;
      dest_reg         <= {PORTS{1'b0}};
      after_status_reg <= 1'b0;
      status_next_reg  <= 1'b0;
    end
  end

  assign send_valid      = sending_reg;
  assign send_slot       = send_slot_reg;
  assign m_axis_tpayload = payload_reg;
  assign m_axis_tvalid   = valid_reg;
  assign m_axis_tlast    = last_beat_reg;
  assign m_axis_tuser    = header_reg;
  assign m_axis_tdest    = dest_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  reg was_reset = 1'b0;
  reg running_was = 1'b0;  // no reset in the last cycle
  integer n;

  // For any slot: it began since its result was picked. Its decision was one cycle before the pick is
  // shown.
  reg [1:0] began;  // and the slots
  reg [2*SLOT_BITS-1:0] began_slot;
  reg label_was, prep_was, send_was;
  reg [SLOT_BITS-1:0] label_slot_was, prep_slot_was, send_slot_was;
  reg picked_was;
  reg [SLOT_BITS-1:0] pick_slot_was;
  reg label_lost, prep_lost, send_lost;
  wire pick_lost = (begun && begun_slot == pick_slot) ||
      (began[0] && began_slot[0+:SLOT_BITS] == pick_slot);

  // For any port: packets that were decided on and not cancelled, shown one to six cycles ago
  (* anyconst *) reg [5:0] port;
  reg [6:1] decided_then;
  reg [PORTS-1:0] ready_was;
  wire decides_now = (pick_valid && pick_receivers[port]) || (status_valid && status_ports[port]);
  reg [PORTS-1:0] ports_were;
  reg status_ready_was;
  reg asked_was, asked_status_was, decide_was;

  // The result being labelled: what its header will hold
  reg [7:0] steps;
  reg [239:0] label_header, prep_header, send_header;
  reg [INDEX_BITS-1:0] label_last, prep_last, send_last;
  reg [PORTS-1:0] label_to, prep_to, send_to, label_member;
  reg label_replay, prep_gen, send_gen;
`ifdef AGG_PARENT
  // Packets for the parent, at the last port: an own sum is data, and a finish takes a status' way.
  wire label_up = label_to[PORTS-1];
  wire status_is_up = status_ports[PORTS-1];
  wire [PORTS-1:0] members = {1'b0, {PORTS - 1{1'b1}}};
  reg [7:0] label_rank;
  reg status_was;
  wire [63:0] ranks_then = steps == STEPS ? {64'd0 | result_receivers} : label_ranks;
`endif
  reg [63:0] label_mask, label_ranks;

  // For any beat: whether the cache's writer returned that it is written, since its slot began
  (* anyconst *)reg [ SLOT_BITS-1:0] a_slot;
  (* anyconst *)reg [INDEX_BITS-1:0] a_beat;
  reg a_known, a_asked;
  wire a_queried = query_after ? after_slot == a_slot && after_beat == a_beat :
      query_slot == a_slot && query_beat == a_beat;
  reg a_cleared;  // the slot was cleared since it began
  // The results' slots were cleared since they were picked; so the front was in the last cycle.
  reg label_cleared, prep_cleared, send_cleared, front_cleared;

  reg open;  // the first beat is at the output or has left, and the last has not left
  reg [INDEX_BITS:0] next;  // beat to be read
  reg [SLOT_BITS-1:0] sends;
  reg waited, took_status, took_result, read_was, last_was, after_status;
  reg prep_known;  // the first beat of the prepared result is written, as an earlier query returned
  reg prep_waits;  // so it was in the last cycle
  reg [1:0] passed;  // statuses sent since then
  reg [240+PORTS+1:0] stood;
  reg [239:0] status_said;
  reg [PORTS-1:0] status_to;
  reg open_was;
  reg [239:0] user_was;
  reg [PORTS-1:0] dest_was;

  always @(posedge clk) begin
    if (rst) was_reset <= 1'b1;
    running_was <= !rst;
    asked_was <= pick_ready;
    status_ready_was <= status_ready || rst;
    ports_were <= status_ports;
    asked_status_was <= status_ready;
    decide_was <= decide;

    began <= {began[0], begun};
    began_slot <= {began_slot[0+:SLOT_BITS], begun_slot};
    label_was <= label_valid && !cancel;
    prep_was <= prep_valid;
    send_was <= send_valid;
    label_slot_was <= label_slot;
    picked_was <= pick_valid;
    pick_slot_was <= pick_slot;
    prep_slot_was <= prep_slot;
    send_slot_was <= send_slot;
    label_lost <= pick_valid ? pick_lost : label_lost || (begun && begun_slot == label_slot);
    prep_lost <= prepares ? label_lost || (begun && begun_slot == label_slot) :
        prep_lost || (begun && begun_slot == prep_slot);
    send_lost <= takes_result ? prep_lost || (begun && begun_slot == prep_slot) :
        send_lost || (begun && begun_slot == send_slot);

    decided_then <= {decided_then[5:2], decided_then[1] && !cancel, decides_now};
    ready_was <= ready;

    steps <= pick_valid ? 0 : steps + (steps < 200);
    if (pick_valid) begin
      label_to <= pick_receivers;
      label_replay <= pick_replay;
    end
    if (steps == 0) begin
      label_last   <= job_last;
      label_member <= job_member;
`ifdef AGG_PARENT
      label_rank   <= job_up_rank;
`endif
      label_header <= {128'd0, job_chunk, 48'd0, job_epoch, FORMAT, job_number, 16'd0};
    end
    if (steps == STEPS) begin
      label_mask  <= result_mask;
      label_ranks <= result_receivers;
    end
    if (prepares) begin
      prep_last <= label_last;
      prep_to <= label_to;
      prep_gen <= result_gen;
      prep_header <= label_header | {
        steps == STEPS ? {64'd0 | result_receivers} : label_ranks,
        steps == STEPS ? {64'd0 | result_mask} : label_mask,
        16'd0,
        result_vid,
        52'd0,
        result_nonfinite,
        (label_member & ~result_ports) != 0,
        result_ecn,
        label_replay ? KIND_REPLAY : KIND_RESULT,
        VERSION
      };
    end
`ifdef AGG_PARENT
    // Receivers are members. An own sum has no ranks but the card's.
    if (prepares) prep_header[176+:64] <= label_up ? 64'd0 : ranks_then & members;
    if (prepares && label_up) begin
      prep_header[112+:64] <= 64'd0;
      prep_header[48+:8]   <= label_rank;
      prep_header[4+:4]    <= KIND_DATA;
    end
`endif
    if (takes_result) begin
      send_last <= prep_last;
      send_header <= prep_header;
      send_to <= prep_to;
      send_gen <= prep_gen;
      sends <= prep_slot;
    end
    if (rd_en) next <= (takes_result ? 0 : next) + 1;

    a_asked <= a_queried;
    a_known <= (a_known || (a_asked && query_written)) && !(begun && begun_slot == a_slot);
    a_cleared <= (a_cleared || (clear && clear_slot == a_slot)) && !(begun && begun_slot == a_slot);
    label_cleared <= !pick_valid && (label_cleared || (clear && clear_slot == label_slot));
    prep_cleared <= prepares ? label_cleared || (clear && clear_slot == label_slot) :
        prep_cleared || (clear && clear_slot == prep_slot);
    send_cleared <= takes_result ? prep_cleared || (clear && clear_slot == prep_slot) :
        send_cleared || (clear && clear_slot == send_slot);
    front_cleared <= sending_reg && !(rd_en && ends) ? send_cleared : prep_reg && prep_cleared;

    waited <= m_axis_tvalid && !m_axis_tready;
    stood <= {m_axis_tpayload, m_axis_tlast, m_axis_tuser, m_axis_tdest};
    open <= takes_result || takes_status ||
        (open && !(m_axis_tvalid && m_axis_tready && m_axis_tlast));
    open_was <= open && !(m_axis_tvalid && m_axis_tready && m_axis_tlast);
    user_was <= m_axis_tuser;
    dest_was <= m_axis_tdest;
    took_status <= takes_status;
    took_result <= takes_result;
    read_was <= rd_en;
    last_was <= (takes_result ? 0 : next) == (takes_result ? prep_last : send_last);
    after_status <= takes_status || (after_status && !takes_result);
    prep_known <= !sending_reg && written && !takes_result;
    prep_waits <= prep_known && !takes_result;
    passed <= takes_result || !(!sending_reg && written) ? 0 : passed + takes_status;
    status_to <= status_ports;
`ifdef AGG_PARENT
    status_was <= status_valid;
`endif
    status_said <= 240'd0;
    status_said[0+:8] <= {KIND_STATUS, VERSION};
    status_said[16+:8] <= status_job;
    status_said[32+:16] <= status_epoch;
    status_said[48+:8] <= status_rank;
    status_said[56+:8] <= status_code;
    status_said[64+:32] <= status_vid;
    status_said[112+:64] <= status_mask;
`ifdef AGG_PARENT
    if (status_is_up) status_said[4+:4] <= KIND_FINISH;
`endif
    if (rst) begin
      began <= 0;
      label_was <= 0;
      prep_was <= 0;
      send_was <= 0;
      decided_then <= 0;
      ready_was <= 0;
      waited <= 0;
      open <= 0;
      open_was <= 0;
      took_status <= 0;
      took_result <= 0;
      read_was <= 0;
      after_status <= 0;
      prep_known <= 0;
      prep_waits <= 0;
      passed <= 0;
      a_known <= 0;
      a_cleared <= 0;
      front_cleared <= 0;
    end
  end

  always @* begin
    if (was_reset && !rst) begin
      assume (port < PORTS);
      // agg_owed (by turns of the jobs), agg_status: a pick comes one cycle after it was asked for.
      `PROMISED(!pick_valid || (running_was && asked_was && pick_receivers != 0));
      `PROMISED(!status_valid || (running_was && asked_status_was));
      `PROMISED(!pick_valid || (pick_receivers & ~ready_was) == 0);
      `PROMISED(!status_valid || (status_ports & ~ready_was) == 0);
      `PROMISED(status_ready_was || status_ports == ports_were);
      `PROMISED((status_ports & (status_ports - 1'b1)) == 0);
`ifdef AGG_PARENT
      // agg_turns: what is sent up goes nowhere else.
      `PROMISED(!pick_valid || !pick_receivers[PORTS-1] || (pick_receivers & members) == 0);
`endif
      // agg_reader: a slot does not begin in the cycle after it is named here.
      `PROMISED(
          !begun || !((label_was && begun_slot == label_slot_was) ||
          (prep_was && begun_slot == prep_slot_was) || (send_was && begun_slot == send_slot_was)));
    end
    if (was_reset && running_was && !rst) begin
      // One pick at a time is asked for, where there is room.
      assert (decide == !decide_was || !running_was);
      assert (!(pick_ready && status_ready) && (decide || !(pick_ready || status_ready)));
      assert (!(asked_was && asked_status_was) && !(asked_was && decide));
      if (pick_valid) assert (!label_valid || prepares);
      if (status_valid) assert (!status_reg);

      // agg_reader: a slot that is named here was named in the cycle before, or picked.
      if (label_valid)
        assert ((picked_was && label_slot == pick_slot_was) ||
            (label_was && label_slot == label_slot_was));
      if (prep_valid)
        assert ((label_was && prep_slot == label_slot_was) ||
            (prep_was && prep_slot == prep_slot_was));
      if (send_valid)
        assert ((prep_was && send_slot == prep_slot_was) ||
            (send_was && send_slot == send_slot_was));

      // A slot does not begin from the decision to the last read. Otherwise its pick is cancelled.
      if (label_valid && !step_reg[0]) assert (!label_lost);
      if (step_reg[0]) assert (cancel == (label_lost || (begun && begun_slot == label_slot)));
      if (prep_valid) assert (!prep_lost);
      if (send_valid) assert (!send_lost);
      assert (began[0] == begun_reg && began_slot[0+:SLOT_BITS] == begun_slot_reg);
      if (step_reg[0]) assert (lost_reg == label_lost);

      // A packet is decided on with a port_ready of two cycles ago. That knows of the starts up to
      // four cycles ago, and a start comes two cycles after its decision is shown. So no packet for
      // the port was shown in the last five cycles.
      if (decides_now) assert (decided_then[5:1] == 0);
      assert ((decided_then & (decide ? 6'b101010 : 6'b010101)) == 0);
      assert (start_reg[port] == decided_then[2]);
      assert (decided_then[1] == ((step_reg[0] && to_reg[port]) ||
          (status_first_reg && status_ports[port])));
      if (ready[port]) assert (!decided_then[1] && !decided_then[3]);
`ifdef AGG_PARENT

      // What is certain to be sent is counted once, by its kind.
      assert (sends_result == (picked_was && !cancel && !label_up && !label_replay));
      assert (sends_replay == (picked_was && !cancel && !label_up && label_replay));
      assert (sends_status == (status_was && !status_is_up));
      assert (sends_up == ((picked_was && !cancel && label_up) || (status_was && status_is_up)));
`endif
    end
    if (was_reset && !rst) begin
      // Results are labelled, prepared and sent one after another.
      assert ((step_reg & (step_reg - 1'b1)) == 0);
      assert (label_reg == (step_reg != 0 || waits_reg) && !(waits_reg && step_reg != 0));
      for (n = 0; n <= STEPS; n = n + 1) if (step_reg[n]) assert (steps == n);
      if (waits_reg) assert (steps > STEPS);
      if (label_reg) begin
        assert (to_reg == label_to && replay_reg == label_replay);
        if (steps > 0) begin
          assert (last_reg == label_last && member_reg == label_member);
`ifdef AGG_PARENT
          assert (parent_reg == label_rank);
`endif
          assert (label_header == {128'd0, chunk_reg, 48'd0, epoch_reg, FORMAT, number_reg, 16'd0});
        end
        if (waits_reg) assert (mask_reg == label_mask && receivers_reg == label_ranks);
      end
      if (prep_reg) begin
        assert (prep_header_reg == prep_header && prep_to_reg == prep_to);
        assert (prep_gen_reg == prep_gen);
        assert (prep_last_reg == prep_last && prep_one_reg == (prep_last == 0));
      end

      // The beats of a result are read in order, each once and after it is written.
      if (sending_reg) begin
        assert (sends == send_slot && next == beat_reg && next != 0 && next <= send_last);
        assert (send_last_reg == send_last && send_ends_reg == (next == send_last));
        assert (gen_now_reg == send_gen && slot_now_reg == send_slot);
      end else begin
        assert (beat_reg == 0);
        if (prep_reg) assert (gen_now_reg == prep_gen && slot_now_reg == prep_slot);
      end
      assert (beat_after_reg == beat_reg + 1'b1);
      if (rd_en) assert (sending_reg || (takes_result && prep_reg));
      if (rd_en) assert (rd_slot == (sending_reg ? sends : prep_slot));
      if (rd_en) assert (rd_beat == (sending_reg ? next : 0));
      if (rd_en && rd_slot == a_slot && rd_beat == a_beat)
        assert (a_known || a_cleared || (a_asked && query_written));
      assert (!(known_reg || asked_reg) || sending_reg || prep_reg);
      if (known_reg && rd_slot == a_slot && rd_beat == a_beat) assert (a_known || a_cleared);
      if (asked_reg && !known_reg && rd_slot == a_slot && rd_beat == a_beat) assert (a_asked);

      // A result whose slot was cleared leaves whole, whatever the cache's writer returns.
      if (label_reg) assert (label_whole_reg == label_cleared);
      if (prep_reg) assert (prep_whole_reg == prep_cleared);
      if (sending_reg) assert (send_whole_reg == send_cleared);
      if (label_reg && label_cleared && label_slot == a_slot) assert (a_cleared);
      if (prep_reg && prep_cleared && prep_slot == a_slot) assert (a_cleared);
      if (sending_reg && send_cleared && send_slot == a_slot) assert (a_cleared);
      if (front_cleared && sending_reg) assert (free == rd_en);
      if (front_cleared && prep_reg && !sending_reg && !status_reg) assert (free == rd_en);

      // One packet at a time; a status has priority, but only one passes a result that is written. It
      // never waits for one that is not.
      assert (!(takes_status && takes_result));
      assert (!takes_status || (status_reg && !sending_reg && free));
      assert (!prep_known || prep_reg);
      if (prep_waits && after_status) assert (!takes_status);
      if (status_next_reg) assert (status_reg);
      if (after_status) assert (!sending_reg);
      if (status_reg && !status_next_reg) assert (after_status && known_reg && !sending_reg);
      if (prep_waits) assert (prep_known);
      if (prep_known) assert (known_reg && !sending_reg);
      assert (passed <= 1 && (passed == 0 || (after_status && prep_known)));
      if (status_reg && !after_status) assert (!takes_result);
      if (status_reg && free && !sending_reg && !takes_result) assert (takes_status);
      if (free && !sending_reg && prep_known && !status_reg) assert (takes_result);
      assert (after_status_reg == after_status);

      // AXI4-Stream; the header is stable from a packet's first beat to its last.
      if (waited) assert (m_axis_tvalid);
      if (waited) assert ({m_axis_tpayload, m_axis_tlast, m_axis_tuser, m_axis_tdest} == stood);
      assert (!sending_reg || open);
      assert (!m_axis_tvalid || open);
      if (m_axis_tvalid) assert (m_axis_tlast == !sending_reg);
      if (open && !sending_reg) assert (m_axis_tvalid);
      if (open_was && running_was) assert (m_axis_tuser == user_was && m_axis_tdest == dest_was);
      if (read_was) assert (m_axis_tvalid && m_axis_tpayload && m_axis_tlast == last_was);
      if (took_result) assert (m_axis_tuser == send_header && m_axis_tdest == send_to);
      if (took_status) begin
        assert (m_axis_tvalid && !m_axis_tpayload && m_axis_tlast);
        assert (m_axis_tuser == status_said && m_axis_tdest == status_to);
      end
      if (!took_status && !read_was && !waited) assert (!m_axis_tvalid);

      cover (step_reg[0] && cancel);
`ifdef AGG_PARENT
      cover (took_result && m_axis_tuser[4+:4] == KIND_DATA);
      cover (took_status && m_axis_tuser[4+:4] == KIND_FINISH);
`endif
      cover (m_axis_tvalid && m_axis_tlast && m_axis_tpayload && next == 3 && takes_result);
      cover (took_status && takes_result);
      cover (sending_reg && !written && m_axis_tvalid && !m_axis_tready);
      cover (waits_reg && sending_reg && prep_reg);
      cover (rd_en && front_cleared && next == 1 && sending_reg && !a_known && rd_slot == a_slot);
      cover (passed == 1 && takes_result);
      cover (prep_reg && after_status && takes_status);
    end
  end
`endif

endmodule

`default_nettype wire
