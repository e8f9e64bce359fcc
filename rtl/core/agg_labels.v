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
`ifdef AGG_PARENT
    output wire [  SLOT_BITS:0] begun_vid,   // its lowest bits
`endif
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
`ifdef AGG_PARENT
  assign begun_vid = read_label[PORTS+:SLOT_BITS+1];
`endif
  assign beat_ports = label_reg[PORTS-1:0];
  assign beat_gen = label_reg[SENT-1];
  assign beat_job = label_reg[WIDTH-1:SENT];
  assign {send_gen, send_nonfinite, send_ecn, send_vid, send_ports} = sent_label_reg;

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // For any slot: the label of its last completion, and the copy that the writer and the sender
  // see, as {ports, VID, ECN, nonfinite, gen, job}. Each reader's part stands by itself.
  (* anyconst *) reg [SLOT_BITS-1:0] watched;
  wire completes = complete && complete_slot == watched;
  reg running_was = 1'b0;
  reg copies = 1'b0;  // it began in the last cycle
  reg known = 1'b0;
  reg copy_known = 1'b0;
  reg [WIDTH-1:0] label, copy;
  wire [PORTS-1:0] its_ports, copy_ports;
  wire [31:0] its_vid, copy_vid;
  wire [1:0] its_ecn, copy_ecn;
  wire its_nonfinite, its_gen, copy_nonfinite, copy_gen;
  wire [JOB_BITS-1:0] its_job, copy_job;
  assign {its_ports, its_vid, its_ecn, its_nonfinite, its_gen, its_job} = label;
  assign {copy_ports, copy_vid, copy_ecn, copy_nonfinite, copy_gen, copy_job} = copy;

  // The slot's word in each memory, and what a read of it returns.
  reg [WIDTH-1:0] complete_word, complete_read;
  reg [31:0] written_word, written_read;
  reg [SENT-1:0] sent_word, sent_read;

  // Reads of the slot, one and two cycles ago, and the label or copy then.
  reg read1 = 1'b0, read2 = 1'b0;
  reg writes1 = 1'b0;
  reg sends1 = 1'b0, sends2 = 1'b0;
  reg [WIDTH-1:0] label1, label2, copy1, copy2;
  wire [PORTS-1:0] ports2, sent_ports2;
  wire [31:0] vid2, sent_vid2;
  wire [1:0] ecn2, sent_ecn2;
  wire nonfinite2, gen2, sent_nonfinite2, sent_gen2;
  wire [JOB_BITS-1:0] job2, sent_job2;
  assign {ports2, vid2, ecn2, nonfinite2, gen2, job2} = label2;
  assign {sent_ports2, sent_vid2, sent_ecn2, sent_nonfinite2, sent_gen2, sent_job2} = copy2;

  always @(posedge clk) begin
    running_was <= 1'b1;
    copies      <= begun && begun_slot == watched;

    if (completes) begin
      known <= 1'b1;
      label <= {
        complete_ports, complete_vid, complete_ecn, complete_nonfinite, complete_gen, complete_job
      };
      complete_word <= complete_label;
    end
    complete_read <= complete_word;
    read1 <= rd_slot == watched && known && !completes;
    read2 <= read1;
    label1 <= label;
    label2 <= label1;

    if (copies) begin
      copy_known   <= read2;
      copy         <= label2;
      written_word <= label_reg[PORTS+:32];
      sent_word    <= label_reg[SENT-1:0];
    end
    written_read <= written_word;
    sent_read    <= sent_word;
    writes1      <= wr_slot == watched && copy_known && !copies;
    sends1       <= send_slot == watched && copy_known && !copies;
    sends2       <= sends1;
    copy1        <= copy;
    copy2        <= copy1;
  end

  always @* begin
    if (running_was) assert (copies == (copies_reg && copy_slot_reg == watched));
    // agg_ram: what was written last, unless the word was written in the cycle of its read.
    `PROMISED(!read1 || read_label == complete_read);
    `PROMISED(!writes1 || written_vid == written_read);
    `PROMISED(!sends1 || sent_label == sent_read);
    if (known)
      assert (complete_word == {its_job, its_gen, its_nonfinite, its_ecn, its_vid, its_ports});
    if (copy_known) begin
      assert (written_word == copy_vid);
      assert (sent_word == {copy_gen, copy_nonfinite, copy_ecn, copy_vid, copy_ports});
    end

    if (read1) assert (begun_gen == label1[JOB_BITS]);
`ifdef AGG_PARENT
    if (read1) assert (begun_vid == label1[JOB_BITS+4+:SLOT_BITS+1]);
`endif
    if (read2) assert (beat_ports == ports2 && beat_gen == gen2 && beat_job == job2);
    if (writes1) assert (written_vid == copy1[JOB_BITS+4+:32]);
    if (sends2) begin
      assert (send_ports == sent_ports2 && send_vid == sent_vid2 && send_ecn == sent_ecn2);
      assert (send_nonfinite == sent_nonfinite2 && send_gen == sent_gen2);
    end

    cover (sends2 && read2 && send_vid != vid2 && send_ports != beat_ports);
    cover (writes1 && written_vid != its_vid);
  end
`endif

endmodule

`default_nettype wire
