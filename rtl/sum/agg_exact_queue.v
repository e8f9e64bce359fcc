// Queues the beats that the lanes cannot decide in one pass, has agg_exact_unit sum their
// undecided elements one by one, and counts each beat when it is whole.
//
// After a beat's first pass, its decided lanes are written to the cache. If a lane is undecided,
// the beat is queued instead of counted. For each undecided element, the beat is read again once
// for every port, port 0 first. All other ports are gated off (beat_ports) and feed the identity
// into the lanes, so each lane's sum is that port's element. A port that did not contribute is
// read too, and gated off: its operand is the identity, -0, which changes no sum.
// agg_exact_select picks the lane for the unit. The unit's result passes through the lanes
// instead of absent ports (beat_write) and is written in its own lane only; the last result makes
// the beat whole.
//
// Order: beats leave the queue in the order of their first reads, and the undecided lanes of a
// beat from lane 0 up; results are written in that order. A beat decided at once overtakes queued
// ones.
//
// Such a read replaces a new beat. LIMIT queued beats stop new beats (stop), but never repeated
// reads. Until stop takes effect and the lanes are empty, LANE_LATENCY + 3 more beats can come,
// for which there is room: the queue can become full but cannot overflow. A beat frees its place
// when it is taken; below LIMIT, new beats resume.
//
// With P ports, elements follow one another every 3 P + LANE_LATENCY + PAUSE + 4 cycles; a
// decided lane between them costs 1 cycle, a beat 1 more. Reads use P + 1 cycles of an element.
// At most 37 cycles after its last operand arrived, its result enters the lanes. PAUSE must be at
// least 27 - LANE_LATENCY, to give the unit the cycles it needs between two sums.
//
// Not done here: infinities and NaNs, which the lanes decide. Only a reset drops beats: a job
// that ends waits until its beats are whole.

`default_nettype none

module agg_exact_queue #(
    parameter integer LANES        = 16,
    parameter integer PORTS        = 8,
    parameter integer SLOT_BITS    = 4,
    parameter integer INDEX_BITS   = 4,   // width of a beat's number in its chunk
    parameter integer DEPTH_BITS   = 5,   // log2 of the queue's capacity
    parameter integer LIMIT        = 8,   // queued beats that stop new ones
    parameter integer PAUSE        = 8,   // cycles from an element's last operand to the next
    parameter integer LANE_LATENCY = 20
) (
    input wire clk,
    input wire rst,

    // From the lanes: undecided two cycles before a sum, lane_* one cycle before. On a first pass,
    // lane_write and lane_last are undefined
    input wire [     LANES-1:0] undecided,
    input wire                  lane_next,
    input wire [ SLOT_BITS-1:0] lane_slot,
    input wire [INDEX_BITS-1:0] lane_beat,
    input wire                  lane_again,  // a further pass
    input wire                  lane_write,  // beat_write and beat_last of that pass
    input wire                  lane_last,

    // To the cache
    output wire             sum_next,   // with lane_next: a write follows in the next cycle
    output wire             sum_whole,  // with it, the beat is whole
    output wire [LANES-1:0] sum_lanes,  // one cycle later: lanes to write
    output wire             sum_result, // it is the unit's result

    // To agg_reader: stop new beats; read a beat again
    output wire                  stop,
    output wire                  again_valid,
    output wire [ SLOT_BITS-1:0] again_slot,
    output wire [INDEX_BITS-1:0] again_beat,

    // For the slot memories' outputs, two cycles later
    input wire [PORTS-1:0] member,  // ports that contributed to the slot
    output wire [PORTS-1:0] beat_ports,  // ports to enable
    output wire beat_write,  // the unit's result replaces an absent port
    output wire beat_last,  // of a further pass: an element's last operand, or a beat's last result

    // To the unit; select is stable from before an element's first read to after its last operand
    output wire [LANES-1:0] select,         // lane of the operands, one-hot
    output wire             operand_valid,  // two cycles after the sum
    output wire             operand_last,   // only with operand_valid
    input  wire             done,

    output wire found  // a beat is queued
);

  localparam integer ENTRY = SLOT_BITS + INDEX_BITS + LANES;

  generate
    if (LIMIT < 1 || LIMIT + LANE_LATENCY + 3 > (1 << DEPTH_BITS)) begin : g_limit
      ERROR_the_queue_has_no_room_for_what_is_in_the_lanes error ();
    end
    if (PAUSE < 0 || PAUSE + LANE_LATENCY < 27) begin : g_pause
      ERROR_pause_must_be_27_cycles_less_the_latency_of_the_lanes error ();
    end
    if (PORTS < 2) begin : g_ports
      ERROR_a_single_operand_is_its_own_sum error ();
    end
  endgenerate

  // -- First pass ---------------------------------------------------------------------------------

  reg [LANES-1:0] undecided_reg;
  reg some_reg;

  assign found = lane_next && !lane_again && some_reg;
  assign sum_next = lane_next && (!lane_again || lane_write);
  assign sum_whole = lane_again ? lane_last : !some_reg;

  reg [LANES-1:0] lanes_reg;
  reg result_reg;
  reg [LANES-1:0] result_lane_reg;  // for the result on its way through the lanes

  always @(posedge clk) begin
    undecided_reg <= undecided;
    some_reg      <= |undecided;
    lanes_reg     <= lane_again ? result_lane_reg : ~undecided_reg;
    result_reg    <= lane_again;
  end

  assign sum_lanes  = lanes_reg;
  assign sum_result = result_reg;

  // -- Queue --------------------------------------------------------------------------------------

  reg [ENTRY-1:0] entries[0:(1<<DEPTH_BITS)-1];
  reg [DEPTH_BITS:0] wr_reg;
  reg [DEPTH_BITS:0] rd_reg;
  reg [DEPTH_BITS:0] count_reg;
  reg stop_reg;
  wire take;
  wire [ENTRY-1:0] head = entries[rd_reg[DEPTH_BITS-1:0]];
  reg waits_reg;  // not empty one cycle ago; only a take can have emptied it

  always @(posedge clk) begin
    if (found) begin
      entries[wr_reg[DEPTH_BITS-1:0]] <= {lane_slot, lane_beat, undecided_reg};
      wr_reg <= wr_reg + 1'b1;
    end
    if (take) rd_reg <= rd_reg + 1'b1;
    count_reg <= wr_reg - rd_reg;
    waits_reg <= wr_reg != rd_reg;
    stop_reg  <= count_reg >= LIMIT[DEPTH_BITS:0];
    if (rst) begin
      wr_reg    <= {DEPTH_BITS + 1{1'b0}};
      rd_reg    <= {DEPTH_BITS + 1{1'b0}};
      count_reg <= {DEPTH_BITS + 1{1'b0}};
      waits_reg <= 1'b0;
      stop_reg  <= 1'b0;
    end
  end

  assign stop = stop_reg;

  // -- Operands of the current element ------------------------------------------------------------

  // States: idle; seek the next undecided lane; read an element's operands, one every third cycle,
  // wait for the last to arrive, and pause. Each starts the next one.
  reg idle_reg, seek_reg;
  reg reads_reg, turn1_reg, turn2_reg;  // a read now, one or two cycles ago
  reg [PAUSE:0] pause_reg;  // one-hot delay line, from the arrival of the last operand
  reg [SLOT_BITS-1:0] slot_reg;
  reg [INDEX_BITS-1:0] beat_reg;
  reg [LANES-1:0] left_reg;  // undecided lanes, shifted: the current one in bit 0
  reg [LANES-1:0] lane_reg;  // current lane, one-hot
  reg final_reg;  // no higher lane is undecided; valid one cycle after the lane is found
  reg [PORTS-1:0] port_reg;  // next port to read, one-hot

  reg operand1_reg, operand2_reg, operand3_reg;
  reg last1_reg, last2_reg, arrives_reg;  // the last operand arrives at the unit

  wire [PAUSE+1:0] pauses = {pause_reg, arrives_reg};
  wire paused = pauses[PAUSE+1];
  wire finds = seek_reg && left_reg[0];
  wire next = paused || (seek_reg && !left_reg[0]);

  assign take          = idle_reg && waits_reg;
  assign operand_valid = operand3_reg;
  assign operand_last  = arrives_reg;
  assign select        = lane_reg;

  always @(posedge clk) begin
    if (idle_reg) idle_reg <= !waits_reg;
    else idle_reg <= paused && final_reg;
    seek_reg <= take || (seek_reg && !left_reg[0]) || (paused && !final_reg);

    if (idle_reg) begin
      {slot_reg, beat_reg, left_reg} <= head;
      lane_reg <= {{LANES - 1{1'b0}}, 1'b1};
    end else if (next) begin
      left_reg <= left_reg >> 1;
      lane_reg <= lane_reg << 1;
    end
    final_reg <= !(|(left_reg >> 1));

    if (seek_reg) port_reg <= {{PORTS - 1{1'b0}}, 1'b1};
    else if (reads_reg) port_reg <= port_reg << 1;
    reads_reg    <= finds || turn2_reg;
    turn1_reg    <= reads_reg && !port_reg[PORTS-1];
    turn2_reg    <= turn1_reg;

    operand1_reg <= lane_next && lane_again && !lane_write;
    operand2_reg <= operand1_reg;
    operand3_reg <= operand2_reg;
    last1_reg    <= lane_last;
    last2_reg    <= last1_reg;
    arrives_reg  <= operand2_reg && last2_reg;
    pause_reg    <= pauses[PAUSE:0];

    if (rst) begin
      idle_reg     <= 1'b1;
      seek_reg     <= 1'b0;
      reads_reg    <= 1'b0;
      turn1_reg    <= 1'b0;
      turn2_reg    <= 1'b0;
      operand1_reg <= 1'b0;
      operand2_reg <= 1'b0;
      operand3_reg <= 1'b0;
      arrives_reg  <= 1'b0;
      pause_reg    <= {PAUSE + 1{1'b0}};
    end
  end

  // -- Result of the element in the unit ----------------------------------------------------------

  reg [SLOT_BITS-1:0] done_slot_reg;
  reg [INDEX_BITS-1:0] done_beat_reg;
  reg [LANES-1:0] done_lane_reg;
  reg done_final_reg;  // the last of its beat
  reg done_reg;  // to be written

  wire writes = done_reg && !reads_reg;

  always @(posedge clk) begin
    if (arrives_reg) begin
      done_slot_reg  <= slot_reg;
      done_beat_reg  <= beat_reg;
      done_lane_reg  <= lane_reg;
      done_final_reg <= final_reg;
    end
    done_reg <= done || (done_reg && reads_reg);
    if (writes) result_lane_reg <= done_lane_reg;
    if (rst) done_reg <= 1'b0;
  end

  // -- Repeated reads -----------------------------------------------------------------------------

  // A read waits one cycle in agg_reader's register, and one in the memories.
  reg [PORTS-1:0] read_ports_reg, ports_reg;
  reg read_write_reg, write_reg, read_last_reg, last_reg;

  always @(posedge clk) begin
    read_ports_reg <= reads_reg ? port_reg : {PORTS{!done_reg}};
    read_write_reg <= writes;
    read_last_reg  <= reads_reg ? port_reg[PORTS-1] : done_final_reg;
    ports_reg      <= read_ports_reg;
    write_reg      <= read_write_reg;
    last_reg       <= read_last_reg;
  end

  assign again_valid = reads_reg || done_reg;
  assign again_slot  = reads_reg ? slot_reg : done_slot_reg;
  assign again_beat  = reads_reg ? beat_reg : done_beat_reg;
  assign beat_ports  = member & ports_reg;
  assign beat_write  = write_reg;
  assign beat_last   = last_reg;

endmodule

`default_nettype wire
