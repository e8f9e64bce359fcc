// Made by: hwgen -lanes 4 -workers 3 -format fp32 -result fp32 -sum tree -chunk 32 -window 2
//      -jobs 1 -shell stream -link 32

// Who is owed which slot's result, and which is to be sent next, to whom.
//
// A result that begins to be written is owed to all ranks. It is sent first in the order of
// reduction, to those that can take it (*fresh*); who could not, and who repeats, is found by a
// scan of the slots, one a cycle, and goes before fresh results when it is found. A pass of the
// scan begins with the oldest VID and knows only ranks that were ready when it began: of what it
// finds for a rank that was held up, the oldest goes first. Until it has found that, the rank may
// be sent fresh results as well.
//
// The pick is combinational and may change until it is taken; taking it clears the receivers' owed
// bits and marks them sent. Latency: a result begun in cycle 0 can be picked in cycle 1. Not done
// here: it sends nothing; agg_egress does.

`default_nettype none

module agg_owed #(
    parameter integer PORTS     = 4,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,
    input wire rst,

    // The job
    input wire                 flush,      // the job ends: nothing is owed
    input wire [SLOT_BITS-1:0] slot_mask,  // twice the window, less 1
    input wire [    PORTS-1:0] job_ranks,  // a bit for every rank there is

    input wire                 begun,      // the slot's result begins to be written
    input wire [SLOT_BITS-1:0] begun_slot,

    // From the slot table: what a packet did to its slot
    input wire [SLOT_BITS-1:0] slot,
    input wire                 turn_over,  // what it owed is dropped
    input wire                 owe,        // one rank is owed the result (again)
    input wire [    PORTS-1:0] rank_bit,

    input wire [PORTS-1:0] ready,  // ranks that can take a packet

    output wire                 pick_valid,
    output wire [SLOT_BITS-1:0] pick_slot,
    output wire [    PORTS-1:0] pick_receivers,
    output wire                 pick_replay,     // one of them was sent it before
    input  wire                 pick_take
);

  localparam integer SLOTS = 1 << SLOT_BITS;

  reg [PORTS-1:0] owed[0:SLOTS-1];
  reg [PORTS-1:0] sent[0:SLOTS-1];
  reg [SLOTS-1:0] live_reg;  // there is a result; else its row means nothing
  reg [SLOTS-1:0] fresh_reg;  // its place is in the queue of fresh results
  reg [SLOTS-1:0] scan_reg;  // the scan is to look at it

  // -- Fresh results ------------------------------------------------------------------------------

  wire head_valid;
  wire [SLOT_BITS-1:0] head;
  wire [PORTS-1:0] head_owed = live_reg[head] ? owed[head] : {PORTS{1'b0}};
  wire [PORTS-1:0] head_receivers = head_owed & ready;
  wire pop;
  wire stays = fresh_reg[begun_slot] && !(pop && head == begun_slot);
  wire push = begun && !stays && !flush;

  agg_slot_fifo #(
      .SLOT_BITS(SLOT_BITS)
  ) u_fresh (
      .clk       (clk),
      .clear     (rst || flush),
      .push      (push),
      .push_slot (begun_slot),
      .head_valid(head_valid),
      .head_slot (head),
      .pop       (pop)
  );

  // -- Scan ---------------------------------------------------------------------------------------

  reg [SLOT_BITS-1:0] newest_reg;  // the slot that turned over last
  reg [SLOT_BITS-1:0] at_reg;  // the slot the scan looks at
  reg [SLOT_BITS-1:0] left_reg;  // slots of this pass behind it
  reg [PORTS-1:0] ready_reg;  // ranks that were ready when the pass began

  wire at_owes = live_reg[at_reg] && scan_reg[at_reg] && !fresh_reg[at_reg];
  wire [PORTS-1:0] at_owed = at_owes ? owed[at_reg] : {PORTS{1'b0}};
  wire [PORTS-1:0] at_receivers = at_owed & ready & ready_reg;
  wire found = |at_receivers;
  wire pass_ends = left_reg == {SLOT_BITS{1'b0}};

  always @(posedge clk) begin
    if (turn_over) newest_reg <= slot;
    if (!found) begin
      at_reg   <= (pass_ends ? newest_reg + 1'b1 : at_reg + 1'b1) & slot_mask;
      left_reg <= pass_ends ? slot_mask : left_reg - 1'b1;
      if (pass_ends) ready_reg <= ready;
    end
    if (rst) begin
      newest_reg <= {SLOT_BITS{1'b0}};
      at_reg     <= {SLOT_BITS{1'b0}};
      left_reg   <= {SLOT_BITS{1'b0}};
      ready_reg  <= {PORTS{1'b0}};
    end
  end

  // -- Pick ---------------------------------------------------------------------------------------

  assign pick_valid     = !flush && (found || (head_valid && |head_receivers));
  assign pick_slot      = found ? at_reg : head;
  assign pick_receivers = found ? at_receivers : head_receivers;

  wire [PORTS-1:0] pick_sent = sent[pick_slot];
  wire [PORTS-1:0] pick_left = (found ? at_owed : head_owed) & ~pick_receivers;

  assign pick_replay = |(pick_receivers & pick_sent);
  assign pop         = head_valid && (~|head_owed || (pick_take && !found));

  always @(posedge clk) begin
    if (pick_take) begin
      owed[pick_slot]     <= pick_left;
      sent[pick_slot]     <= pick_sent | pick_receivers;
      scan_reg[pick_slot] <= |pick_left;
    end
    if (pop) fresh_reg[head] <= 1'b0;
    if (owe) begin
      owed[slot]     <= (pick_take && pick_slot == slot ? pick_left : owed[slot]) | rank_bit;
      scan_reg[slot] <= 1'b1;
    end
    if (turn_over) live_reg[slot] <= 1'b0;
    if (begun) begin
      owed[begun_slot]     <= job_ranks;
      sent[begun_slot]     <= {PORTS{1'b0}};
      live_reg[begun_slot] <= 1'b1;
      scan_reg[begun_slot] <= 1'b0;
    end
    if (push) fresh_reg[begun_slot] <= 1'b1;
    if (rst || flush) begin
      live_reg  <= {SLOTS{1'b0}};
      fresh_reg <= {SLOTS{1'b0}};
    end
  end

endmodule

`default_nettype wire
