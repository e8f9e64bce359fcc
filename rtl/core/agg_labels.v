// Holds what is known of each slot's chunk from its completion to the next one: job, contributing
// ports, VID, marks and the slot's generation.
//
// Three memories, one for each reader, each read synchronously. A completion in cycle 0 is in the
// reader's memory from cycle 1 on. When the reader begins a slot, its label is copied to the other
// two. So the label of a result cannot change before its cache entry may: agg_reader begins no slot
// whose result is being sent.
//
// Latency: rd_slot in cycle 0 gives begun_gen in cycle 1, beat_* in cycle 2. begun, in cycle 1,
// copies that label; wr_slot and send_slot see the copy from cycle 3 on. wr_slot in cycle 0 gives
// written_vid in cycle 1; send_slot in cycle 0 gives send_* in cycle 2.
//
// A label is used only while its slot is not written: between completion and the next one, or
// between a slot's beginning and the next one.
//
// Not done here: the configuration of jobs (agg_jobs). A label is undefined before its slot first
// completes.

`default_nettype none

module agg_labels #(
    parameter integer PORTS     = 4,
    parameter integer JOB_BITS  = 1,
    parameter integer SLOT_BITS = 4
) (
    input wire clk,

    // A slot completes
    input wire                 complete,
    input wire [SLOT_BITS-1:0] complete_slot,
    input wire [ JOB_BITS-1:0] complete_job,
    input wire [    PORTS-1:0] complete_ports,
    input wire [         31:0] complete_vid,
    input wire [          1:0] complete_ecn,
    input wire                 complete_nonfinite,
    input wire                 complete_gen,

    // A beat is read from the slot memories; begun: one cycle ago, it was the first of its slot
    input  wire [SLOT_BITS-1:0] rd_slot,
    input  wire                 begun,
    input  wire [SLOT_BITS-1:0] begun_slot,
    output wire                 begun_gen,
    output wire [    PORTS-1:0] beat_ports,
    output wire                 beat_gen,
    output wire [ JOB_BITS-1:0] beat_job,

    // A sum is written to the cache
    input  wire [SLOT_BITS-1:0] wr_slot,
    output wire [         31:0] written_vid,

    // A result is sent
    input  wire [SLOT_BITS-1:0] send_slot,
    output wire [    PORTS-1:0] send_ports,
    output wire [         31:0] send_vid,
    output wire [          1:0] send_ecn,
    output wire                 send_nonfinite,
    output wire                 send_gen
);

  localparam integer SENT = PORTS + 36;  // {gen, nonfinite, ECN, VID, ports}
  localparam integer WIDTH = JOB_BITS + SENT;

  wire [WIDTH-1:0] complete_label = {
    complete_job, complete_gen, complete_nonfinite, complete_ecn, complete_vid, complete_ports
  };

  wire [WIDTH-1:0] read_label;  // of the read one cycle ago
  reg [WIDTH-1:0] label_reg;  // two cycles ago
  reg copies_reg;
  reg [SLOT_BITS-1:0] copy_slot_reg;

  wire [SENT-1:0] sent_label;
  reg [SENT-1:0] sent_label_reg;

  always @(posedge clk) begin
    label_reg      <= read_label;
    copies_reg     <= begun;
    copy_slot_reg  <= begun_slot;
    sent_label_reg <= sent_label;
  end

  agg_ram #(
      .WIDTH    (WIDTH),
      .ADDR_BITS(SLOT_BITS),
      .APART    (1)
  ) u_complete (
      .clk    (clk),
      .wr_en  (complete),
      .wr_addr(complete_slot),
      .wr_data(complete_label),
      .rd_en  (1'b1),
      .rd_addr(rd_slot),
      .rd_data(read_label)
  );

  agg_ram #(
      .WIDTH    (32),
      .ADDR_BITS(SLOT_BITS),
      .APART    (1)
  ) u_written (
      .clk    (clk),
      .wr_en  (copies_reg),
      .wr_addr(copy_slot_reg),
      .wr_data(label_reg[PORTS+:32]),
      .rd_en  (1'b1),
      .rd_addr(wr_slot),
      .rd_data(written_vid)
  );

  agg_ram #(
      .WIDTH    (SENT),
      .ADDR_BITS(SLOT_BITS),
      .APART    (1)
  ) u_sent (
      .clk    (clk),
      .wr_en  (copies_reg),
      .wr_addr(copy_slot_reg),
      .wr_data(label_reg[SENT-1:0]),
      .rd_en  (1'b1),
      .rd_addr(send_slot),
      .rd_data(sent_label)
  );

  assign begun_gen = read_label[SENT-1];
  assign beat_ports = label_reg[PORTS-1:0];
  assign beat_gen = label_reg[SENT-1];
  assign beat_job = label_reg[WIDTH-1:SENT];
  assign {send_gen, send_nonfinite, send_ecn, send_vid, send_ports} = sent_label_reg;

endmodule

`default_nettype wire
