// Beats that the lanes could not decide in one pass: keeps them, has their elements summed by
// agg_exact_unit, one after the other, and sees to it that each beat is counted when it is whole.
//
// Of a beat's first pass the decided lanes are written to the cache. If some are undecided, the beat
// is not counted, but queued. For each of its undecided elements it is read again, once for every
// port, port 0 first: all others are kept out (beat_ports), and stand in the lanes as the sum's
// identity, so that each lane's sum is that port's element. A port that is no member is read like the
// others, and is kept out like them: its operand is the identity too, -0, which changes no sum.
// agg_exact_select takes the lane's, for the unit. The unit's result goes through the lanes in the
// place of absent ports (beat_write), and is written in its own lane alone; with the last one the
// beat is whole.
//
// Order: beats are taken from the queue as they went in, which is as they were first read; the
// undecided lanes of a beat from the lowest up. Results are written in that order. A beat that is
// decided at once overtakes those that wait here.
//
// A read takes the place of a new beat. LIMIT beats in the queue hold new ones back (stop), but
// never a beat that is read again. Until stop is seen and the lanes are empty, LANE_LATENCY + 2 more
// may come, for which there are places: the queue may become full, and nothing is lost. A place is
// free when its beat is taken; with less than LIMIT beats new ones go on.
//
// With P ports, one element follows the other after 3 P + LANE_LATENCY + PAUSE + 3 cycles; a decided
// lane among them costs 1 cycle, a beat 1 more. Reading takes P + 1 of an element's cycles. After its
// last operand has come, 36 cycles at most pass until its result goes into the lanes. PAUSE must be
// 27 - LANE_LATENCY or more, for the unit to have the cycles that it needs between two sums.
//
// Not done here: infinities and NaNs; lanes decide those. Nothing is dropped but by a reset: a job
// that ends waits until its beats are whole.

`default_nettype none

module agg_exact_queue #(
    parameter integer LANES        = 16,
    parameter integer PORTS        = 8,
    parameter integer SLOT_BITS    = 4,
    parameter integer INDEX_BITS   = 4,   // of a beat's number in its chunk
    parameter integer DEPTH_BITS   = 5,   // log2 of the queue's places
    parameter integer LIMIT        = 8,   // beats with which new ones are held back
    parameter integer PAUSE        = 8,   // cycles from an element's last operand to the next
    parameter integer LANE_LATENCY = 20
) (
    input wire clk,
    input wire rst,

    // What the lanes give: undecided two cycles before a sum, lane_* one. On a beat's first pass
    // lane_write and lane_last mean nothing
    input wire [     LANES-1:0] undecided,
    input wire                  lane_next,
    input wire [ SLOT_BITS-1:0] lane_slot,
    input wire [INDEX_BITS-1:0] lane_beat,
    input wire                  lane_again,  // it is no first pass
    input wire                  lane_write,  // beat_write and beat_last of then
    input wire                  lane_last,

    // To the cache
    output wire             sum_next,   // beside lane_next: some of it is written in the next cycle
    output wire             sum_whole,  // and so the beat is whole
    output wire [LANES-1:0] sum_lanes,  // a cycle later: the lanes that are written
    output wire             sum_result, // with the unit's result

    // To the reader: new beats are held back; a beat is read again
    output wire                  stop,
    output wire                  again_valid,
    output wire [ SLOT_BITS-1:0] again_slot,
    output wire [INDEX_BITS-1:0] again_beat,

    // Beside what the slot memories give, a cycle later
    input wire [PORTS-1:0] member,  // that contributed to the slot
    output wire [PORTS-1:0] beat_ports,  // that go into the lanes
    output wire beat_write,  // the unit's result goes in, in the place of an absent port
    output wire beat_last,  // of one read again: an element's last operand, or a beat's last result

    // To the unit; select holds from before an element's first read until after its last operand
    output wire [LANES-1:0] select,         // the lane of the operands, one hot
    output wire             operand_valid,  // two cycles after the sum
    output wire             operand_last,   // with operand_valid alone
    input  wire             done,

    output wire found  // a beat is queued
);

  localparam integer ENTRY = SLOT_BITS + INDEX_BITS + LANES;

  generate
    if (LIMIT < 1 || LIMIT + LANE_LATENCY + 2 > (1 << DEPTH_BITS)) begin : g_limit
      ERROR_the_queue_has_no_room_for_what_is_in_the_lanes error ();
    end
    if (PAUSE < 0 || PAUSE + LANE_LATENCY < 27) begin : g_pause
      ERROR_pause_must_be_27_cycles_less_the_latency_of_the_lanes error ();
    end
    if (PORTS < 2) begin : g_ports
      ERROR_a_single_operand_is_its_own_sum error ();
    end
  endgenerate

  // -- The verdict on a beat ----------------------------------------------------------------------

  reg [LANES-1:0] undecided_reg;
  reg some_reg;

  assign found = lane_next && !lane_again && some_reg;
  assign sum_next = lane_next && (!lane_again || lane_write);
  assign sum_whole = lane_again ? lane_last : !some_reg;

  reg [LANES-1:0] lanes_reg;
  reg result_reg;
  reg [LANES-1:0] result_lane_reg;  // of the result that is on its way through the lanes

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
  reg waits_reg;  // there was one a cycle ago; only one that is taken may be gone

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

  // -- The beat at work: its operands -------------------------------------------------------------

  // Idle; or seeking the next undecided lane; or reading an element's operands, one every third
  // cycle, waiting for the last one to arrive, and pausing. Each of these begins the next one.
  reg idle_reg, seek_reg;
  reg reads_reg, turn1_reg, turn2_reg;  // a port is read, or was one or two cycles ago
  reg [PAUSE:0] pause_reg;  // when the last operand arrived, one hot
  reg [SLOT_BITS-1:0] slot_reg;
  reg [INDEX_BITS-1:0] beat_reg;
  reg [LANES-1:0] left_reg;  // undecided lanes, this one in bit 0
  reg [LANES-1:0] lane_reg;  // this one, one hot
  reg final_reg;  // no lane above it is undecided; known a cycle after it is found
  reg [PORTS-1:0] port_reg;  // to be read next, one hot

  reg operand1_reg, operand2_reg, operand3_reg;
  reg last1_reg, last2_reg, arrives_reg;  // at the unit: the last one

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

  // -- The element at work in the unit: its result ------------------------------------------------

  reg [SLOT_BITS-1:0] done_slot_reg;
  reg [INDEX_BITS-1:0] done_beat_reg;
  reg [LANES-1:0] done_lane_reg;
  reg done_final_reg;  // the beat's last one
  reg done_reg;  // it is to be written

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

  // -- What is read again -------------------------------------------------------------------------

  reg [PORTS-1:0] ports_reg;
  reg write_reg, last_reg;

  always @(posedge clk) begin
    ports_reg <= reads_reg ? port_reg : {PORTS{!done_reg}};
    write_reg <= writes;
    last_reg  <= reads_reg ? port_reg[PORTS-1] : done_final_reg;
  end

  assign again_valid = reads_reg || done_reg;
  assign again_slot  = reads_reg ? slot_reg : done_slot_reg;
  assign again_beat  = reads_reg ? beat_reg : done_beat_reg;
  assign beat_ports  = member & ports_reg;
  assign beat_write  = write_reg;
  assign beat_last   = last_reg;

endmodule

`default_nettype wire
