// Keeps a header for each port of the core and slot, in which a sum may leave on that port's
// connection (ROCE.md, section 4).
//
// A record has what a frame needs besides its payload: header, length code, and the header's part
// in the ICRC. Its tag says of which packet it is: job, epoch and VID. The epoch is in it because
// VIDs begin again with each set-up.
//
//   agg_connection_check ─ record ─> pending memory ─ verdict: stored, duplicate, owed ─> header memory
//            │ ^ place                     ^ place                                             │ read
//            v │                           │                                                   v
//       core's port ──── CODE byte ────> queue of the port's places               agg_roce_transmit
//
// A record enters with a handshake, and gets a place in the pending memory: eight for each
// Ethernet port. Packets of several Ethernet ports can meet at a port of the core. Only where
// they enter it is their order known. So each packet carries its place there, in the CODE byte of
// its header, which the core ignores. Verdicts come in the order of a port's packets. A verdict
// frees the place of the port's oldest packet. If the packet was stored, or has the VID that its
// slot holds, then its record replaces the header of port and slot.
//
// A verdict takes effect in five cycles: long before the sum that it completes leaves the core.
//
// Read port: agg_roce_transmit of one Ethernet port at a time asks for port and slot (read_valid
// until read_ready); in turns, one a cycle. Three cycles after read_ready, read_done is high for
// a cycle, with tag and record, the newest then or one that was replaced in these three cycles. A
// record is always whole: no word is read in the cycle of its write; the read waits for a cycle.
// Whether the tag is that of the sum is for the sender to decide.
//
// newest_vid: the newest VID of a job's stored packets, or 0 before the first one of an epoch.
// Throughput: a verdict and a read a cycle; a record a cycle, in turns. Not done here: VIDs of
// packets (agg_connection_check).

`default_nettype none

module agg_roce_headers #(
    parameter integer PORTS       = 4,
    parameter integer PORT_BITS   = 2,
    parameter integer SLOT_BITS   = 4,
    parameter integer JOBS        = 1,
    parameter integer JOB_BITS    = 1,
    parameter integer ETHERNET    = 1,
    parameter integer TAG_BITS    = JOB_BITS + 48,
    parameter integer RECORD_BITS = 626,
    parameter integer PLACE_BITS  = 3 + $clog2(ETHERNET)
) (
    input wire clk,
    input wire rst,

    // Records of packets that are about to enter the core, from each Ethernet port
    input  wire [                       ETHERNET-1:0] s_record_valid,
    output wire [                       ETHERNET-1:0] s_record_ready,
    output wire [            PLACE_BITS*ETHERNET-1:0] s_record_place,  // with ready
    input  wire [(TAG_BITS+RECORD_BITS)*ETHERNET-1:0] s_record,        // tag above the record

    // The inputs of the core's ports
    input wire [           PORTS-1:0] enter_tvalid,
    input wire [           PORTS-1:0] enter_tready,
    input wire [           PORTS-1:0] enter_tlast,
    input wire [PLACE_BITS*PORTS-1:0] enter_place,   // low bits of CODE, on a packet's first beat

    // The core's verdicts: 0 stored, 1 a duplicate, 2 owed, others: refused
    input wire                 verdict_valid,
    input wire [PORT_BITS-1:0] verdict_port,
    input wire [SLOT_BITS-1:0] verdict_slot,
    input wire [          2:0] verdict_result,

    // Jobs that are set up, and their epochs
    input  wire [   JOBS-1:0] job_on,
    input  wire [16*JOBS-1:0] job_epoch,
    output wire [32*JOBS-1:0] newest_vid,

    // The sender of each Ethernet port
    input  wire [          ETHERNET-1:0] read_valid,
    output wire [          ETHERNET-1:0] read_ready,
    input  wire [PORT_BITS*ETHERNET-1:0] read_port,
    input  wire [SLOT_BITS*ETHERNET-1:0] read_slot,
    output wire [          ETHERNET-1:0] read_done,   // a pulse
    output wire [          TAG_BITS-1:0] read_tag,    // of all Ethernet ports
    output wire [       RECORD_BITS-1:0] read_record
);

  localparam integer WIDTH = TAG_BITS + RECORD_BITS;
  localparam integer EIGHT = 8;  // places of an Ethernet port
  localparam integer ENTERED = 16;  // packets in a port of the core without a verdict: 10 at most
  localparam integer ROW_BITS = PORT_BITS + SLOT_BITS;
  localparam [2:0] LAST_KEPT = 3'd2;  // of the verdicts: owed

  generate
    if (EIGHT * ETHERNET > 256) begin : g_ethernet
      ERROR_a_byte_names_the_places_of_32_ethernet_ports error ();
    end
    if (PORTS > 1 << PORT_BITS || JOBS > 1 << JOB_BITS) begin : g_numbers
      ERROR_ports_and_jobs_must_have_numbers error ();
    end
  endgenerate

  genvar e, n;
  integer i;

  // -- Records that enter ------------------------------------------------------------------------

  reg [EIGHT*ETHERNET-1:0] taken_reg;  // places with a record, or with one that comes
  wire [EIGHT*ETHERNET-1:0] takes, frees;
  wire [ETHERNET-1:0] offers;  // and there is a place
  wire [ETHERNET-1:0] put;  // one-hot
  wire [PLACE_BITS*ETHERNET-1:0] places;
  reg put_reg;
  reg [PLACE_BITS-1:0] put_place, put_place_reg;
  reg [WIDTH-1:0] put_record, put_record_reg;

  generate
    for (e = 0; e < ETHERNET; e = e + 1) begin : g_places
      wire [EIGHT-1:0] open = ~taken_reg[EIGHT*e+:EIGHT];
      wire [EIGHT-1:0] first = open & (~open + 1'b1);
      wire [2:0] place = {
        |first[7:4], |first[7:6] || |first[3:2], first[7] || first[5] || first[3] || first[1]
      };
      assign offers[e] = s_record_valid[e] && open != {EIGHT{1'b0}};
      assign takes[EIGHT*e+:EIGHT] = first & {EIGHT{put[e]}};
      if (ETHERNET == 1) begin : g_one
        assign places[PLACE_BITS*e+:PLACE_BITS] = place;
      end else begin : g_several
        localparam [PLACE_BITS-4:0] NUMBER = e;
        assign places[PLACE_BITS*e+:PLACE_BITS] = {NUMBER, place};
      end
    end

    if (ETHERNET == 1) begin : g_alone
      assign put = offers;
    end else begin : g_turns
      reg  [ETHERNET-1:0] turn_reg;  // one-hot: whose record was taken last
      wire [ETHERNET-1:0] above = offers & ~((turn_reg << 1) - 1'b1);
      assign put = |above ? above & (~above + 1'b1) : offers & (~offers + 1'b1);
      always @(posedge clk) begin
        if (|put) turn_reg <= put;
        if (rst) turn_reg <= {1'b1, {ETHERNET - 1{1'b0}}};
      end
    end
  endgenerate

  assign s_record_ready = put;
  assign s_record_place = places;

  always @* begin
    put_place  = {PLACE_BITS{1'b0}};
    put_record = {WIDTH{1'b0}};
    for (i = 0; i < ETHERNET; i = i + 1) begin
      put_place  = put_place | (places[PLACE_BITS*i+:PLACE_BITS] & {PLACE_BITS{put[i]}});
      put_record = put_record | (s_record[WIDTH*i+:WIDTH] & {WIDTH{put[i]}});
    end
  end

  (* no_rw_check *) reg [WIDTH-1:0] pending[0:EIGHT*ETHERNET-1];

  always @(posedge clk) begin
    taken_reg      <= (taken_reg | takes) & ~frees;
    put_reg        <= |put && !rst;
    put_place_reg  <= put_place;
    put_record_reg <= put_record;
    if (put_reg) pending[put_place_reg] <= put_record_reg;
    if (rst) taken_reg <= {EIGHT * ETHERNET{1'b0}};
  end

  // -- Verdicts ----------------------------------------------------------------------------------

  // 1: the verdict, and the place of its packet; 2: the place; 3: the record, as it was in the memory;
  // 4: the record, which is written into the header memory
  reg verdict_1_reg, verdict_2_reg, verdict_3_reg, verdict_4_reg;
  reg keeps_1_reg, keeps_2_reg, keeps_3_reg, keeps_4_reg;
  reg stored_1_reg, stored_2_reg, stored_3_reg, stored_4_reg;
  reg [PORT_BITS-1:0] port_1_reg, port_2_reg, port_3_reg, port_4_reg;
  reg [SLOT_BITS-1:0] slot_1_reg, slot_2_reg, slot_3_reg, slot_4_reg;
  reg [PLACE_BITS-1:0] place_2_reg, place_3_reg;
  reg [WIDTH-1:0] record_3_reg, record_4_reg;
  wire [ROW_BITS-1:0] row_4 = {port_4_reg, slot_4_reg};
  wire writes = verdict_4_reg && keeps_4_reg;

  // Packets that entered the core, until their verdict
  wire [PLACE_BITS*PORTS-1:0] oldest;  // place of each port's oldest packet

  generate
    for (n = 0; n < PORTS; n = n + 1) begin : g_port
      localparam [PORT_BITS-1:0] PORT = n;
      (* ram_style = "distributed" *) reg [PLACE_BITS-1:0] queue[0:ENTERED-1];
      reg [3:0] wr_reg, rd_reg;
      reg  open_reg;  // a packet has entered in part
      wire moves = enter_tvalid[n] && enter_tready[n];

      always @(posedge clk) begin
        if (moves) open_reg <= !enter_tlast[n];
        if (moves && !open_reg) begin
          queue[wr_reg] <= enter_place[PLACE_BITS*n+:PLACE_BITS];
          wr_reg        <= wr_reg + 1'b1;
        end
        if (verdict_1_reg && port_1_reg == PORT) rd_reg <= rd_reg + 1'b1;
        if (rst) begin
          open_reg <= 1'b0;
          wr_reg   <= 4'd0;
          rd_reg   <= 4'd0;
        end
      end

      assign oldest[PLACE_BITS*n+:PLACE_BITS] = queue[rd_reg];
    end
  endgenerate

  always @(posedge clk) begin
    {verdict_4_reg, verdict_3_reg, verdict_2_reg, verdict_1_reg} <= rst ? 4'd0 :
        {verdict_3_reg, verdict_2_reg, verdict_1_reg, verdict_valid};
    {keeps_4_reg, keeps_3_reg, keeps_2_reg, keeps_1_reg} <= {
      keeps_3_reg, keeps_2_reg, keeps_1_reg, verdict_result <= LAST_KEPT
    };
    {stored_4_reg, stored_3_reg, stored_2_reg, stored_1_reg} <= {
      stored_3_reg, stored_2_reg, stored_1_reg, verdict_result == 3'd0
    };
    {port_4_reg, port_3_reg, port_2_reg, port_1_reg} <= {
      port_3_reg, port_2_reg, port_1_reg, verdict_port
    };
    {slot_4_reg, slot_3_reg, slot_2_reg, slot_1_reg} <= {
      slot_3_reg, slot_2_reg, slot_1_reg, verdict_slot
    };
    place_2_reg <= oldest[PLACE_BITS*port_1_reg+:PLACE_BITS];
    place_3_reg <= place_2_reg;
    record_3_reg <= pending[place_2_reg];
    record_4_reg <= record_3_reg;
  end

  generate
    for (e = 0; e < EIGHT * ETHERNET; e = e + 1) begin : g_free
      localparam [PLACE_BITS-1:0] PLACE = e;
      assign frees[e] = verdict_3_reg && place_3_reg == PLACE;
    end
  endgenerate

  // -- The newest VID of each job ----------------------------------------------------------------

  wire [JOB_BITS-1:0] stored_job = record_4_reg[RECORD_BITS+48+:JOB_BITS];
  wire [15:0] stored_epoch = record_4_reg[RECORD_BITS+32+:16];
  wire [31:0] stored_vid = record_4_reg[RECORD_BITS+:32];

  generate
    for (n = 0; n < JOBS; n = n + 1) begin : g_job
      localparam [JOB_BITS-1:0] JOB = n;
      reg on_reg;
      reg [15:0] epoch_reg;
      reg [31:0] newest_reg;
      wire same = on_reg && job_on[n] && job_epoch[16*n+:16] == epoch_reg;
      wire behind;
      wire [30:0] unused_distance;
      assign {behind, unused_distance} = stored_vid - newest_reg;
      wire stored = verdict_4_reg && stored_4_reg && stored_job == JOB && stored_epoch == epoch_reg;

      always @(posedge clk) begin
        on_reg    <= job_on[n] && !rst;
        epoch_reg <= job_epoch[16*n+:16];
        if (!same) newest_reg <= 32'd0;
        else if (stored && !behind) newest_reg <= stored_vid;
      end

      assign newest_vid[32*n+:32] = same ? newest_reg : 32'd0;
    end
  endgenerate

  // -- Headers, and their readers ----------------------------------------------------------------

  (* no_rw_check *) reg [WIDTH-1:0] headers[0:(1<<ROW_BITS)-1];
  wire [ETHERNET-1:0] asks, read;  // read is one-hot
  reg [ETHERNET-1:0] read_1_reg, read_2_reg, read_3_reg;
  reg [ROW_BITS-1:0] row, row_1_reg;
  reg [WIDTH-1:0] header_2_reg, header_3_reg;
  wire clash = writes && row_4 == row_1_reg;  // the write goes first
  wire steps = !clash || read_1_reg == {ETHERNET{1'b0}};

  assign asks = read_valid & {ETHERNET{steps}};

  generate
    if (ETHERNET == 1) begin : g_reader
      assign read = asks;
    end else begin : g_readers
      reg  [ETHERNET-1:0] turn_reg;  // one-hot: who read last
      wire [ETHERNET-1:0] above = asks & ~((turn_reg << 1) - 1'b1);
      assign read = |above ? above & (~above + 1'b1) : asks & (~asks + 1'b1);
      always @(posedge clk) begin
        if (|read) turn_reg <= read;
        if (rst) turn_reg <= {1'b1, {ETHERNET - 1{1'b0}}};
      end
    end
  endgenerate

  always @* begin
    row = {ROW_BITS{1'b0}};
    for (i = 0; i < ETHERNET; i = i + 1)
    row = row | ({read_port[PORT_BITS*i+:PORT_BITS], read_slot[SLOT_BITS*i+:SLOT_BITS]} &
                 {ROW_BITS{read[i]}});
  end

  always @(posedge clk) begin
    if (writes) headers[row_4] <= record_4_reg;
    if (!clash) header_2_reg <= headers[row_1_reg];
    if (steps) begin
      read_1_reg <= read;
      row_1_reg  <= row;
    end
    read_2_reg   <= clash ? {ETHERNET{1'b0}} : read_1_reg;
    read_3_reg   <= read_2_reg;
    header_3_reg <= header_2_reg;
    if (rst) begin
      read_1_reg <= {ETHERNET{1'b0}};
      read_2_reg <= {ETHERNET{1'b0}};
      read_3_reg <= {ETHERNET{1'b0}};
    end
  end

  assign read_ready = read;
  assign read_done = read_3_reg;
  assign {read_tag, read_record} = header_3_reg;

endmodule

`default_nettype wire
