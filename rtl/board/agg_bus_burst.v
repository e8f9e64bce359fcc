// Packs the card's output into bursts of whole words, for FIFO bridges that end a USB packet at
// each pause of the bus, with partial words only at its end (FTDI's FT600 and FT601).
//
// Packs bytes into bus words without gaps. Words wait for a full burst, or for SILENCE cycles
// without input; then a partial word is sent too, with tlast. A burst continues until nothing is
// left, one word a cycle, including new arrivals.
//
// A single byte leaves within SILENCE + 21 cycles. A reset drops pending bytes.

`default_nettype none

module agg_bus_burst #(
    parameter integer LINK_BYTES = 4,  // bytes per input word: 2, 4 or 8, at least BUS_BYTES
    parameter integer BUS_BYTES = 4,  // bytes per output word: 2 or 4
    parameter integer BURST_BITS = 8,  // log2 of the words in a burst: 2..14
    parameter integer SILENCE = 32  // in cycles: 1..1024
) (
    input wire clk,
    input wire rst,

    input  wire [8*LINK_BYTES-1:0] s_axis_tdata,
    input  wire [  LINK_BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0, at least one byte
    input  wire                    s_axis_tvalid,
    output wire                    s_axis_tready,

    output wire [8*BUS_BYTES-1:0] m_axis_tdata,
    output wire [  BUS_BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0, at least one byte
    output wire                   m_axis_tlast,   // on a word of fewer than BUS_BYTES
    output wire                   m_axis_tvalid,
    input  wire                   m_axis_tready
);

  generate
    if (BUS_BYTES != 2 && BUS_BYTES != 4) begin : g_bus
      ERROR_a_bus_with_byte_enables_has_2_or_4_bytes error ();
    end
    if (LINK_BYTES != 2 && LINK_BYTES != 4 && LINK_BYTES != 8) begin : g_link
      ERROR_a_link_to_a_bus_with_byte_enables_has_2_4_or_8_bytes error ();
    end
    if (LINK_BYTES < BUS_BYTES) begin : g_narrow
      ERROR_a_link_has_at_least_the_bytes_of_its_bus error ();
    end
  endgenerate

  // -- Bus words --

  localparam integer STEP = LINK_BYTES < 4 ? 4 : LINK_BYTES;
  localparam [10:0] QUIET = SILENCE[10:0];
  localparam [10:0] DRAINED = QUIET + 11'd16;  // u_pack is empty by then

  reg [10:0] quiet_reg;  // cycles without input, up to DRAINED
  reg [8*STEP-1:0] step;
  reg [3:0] step_bytes;
  wire [8*BUS_BYTES-1:0] word;
  wire [BUS_BYTES-1:0] keep;
  wire word_valid;
  wire word_ready;
  integer i;

  always @* begin
    step = {8 * STEP{1'b0}};
    step_bytes = 4'd0;
    for (i = 0; i < LINK_BYTES; i = i + 1) begin
      if (s_axis_tkeep[i]) step[8*i+:8] = s_axis_tdata[8*i+:8];
      step_bytes = step_bytes + {3'd0, s_axis_tkeep[i]};
    end
  end

  always @(posedge clk) begin
    if (s_axis_tvalid) quiet_reg <= 11'd0;
    else if (quiet_reg != DRAINED) quiet_reg <= quiet_reg + 11'd1;
    if (rst) quiet_reg <= 11'd0;
  end

  agg_byte_pack #(
      .STEP(STEP),
      .LINK_BYTES(BUS_BYTES)
  ) u_pack (
      .clk(clk),
      .rst(rst),
      .s_step_data(step),
      .s_step_bytes(step_bytes),
      .s_step_valid(s_axis_tvalid),
      .s_step_ready(s_axis_tready),
      .s_step_idle(quiet_reg >= QUIET && !s_axis_tvalid),
      .m_axis_tdata(word),
      .m_axis_tkeep(keep),
      .m_axis_tvalid(word_valid),
      .m_axis_tready(word_ready)
  );

  // -- Bursts. Pointers are modulo twice the burst, to distinguish full from empty --

  reg [9*BUS_BYTES-1:0] words[0:(1<<BURST_BITS)-1];
  reg [9*BUS_BYTES-1:0] head_reg;
  reg head_valid_reg;
  reg [BURST_BITS:0] write_reg;
  reg [BURST_BITS:0] read_reg;
  reg open_reg;

  wire [BURST_BITS:0] waiting = write_reg - read_reg;
  wire enter = word_valid && word_ready;
  wire leave = m_axis_tvalid && m_axis_tready;
  wire fetch = waiting != {BURST_BITS + 1{1'b0}} && (!head_valid_reg || leave);
  wire head_valid_next = fetch || (head_valid_reg && !leave);
  wire begins = waiting[BURST_BITS] || quiet_reg == DRAINED;

  assign word_ready    = !waiting[BURST_BITS] && !rst;
  assign m_axis_tdata  = head_reg[8*BUS_BYTES-1:0];
  assign m_axis_tkeep  = head_reg[9*BUS_BYTES-1:8*BUS_BYTES];
  assign m_axis_tlast  = !head_reg[9*BUS_BYTES-1];
  assign m_axis_tvalid = head_valid_reg && open_reg;

  always @(posedge clk) begin
    if (enter) words[write_reg[BURST_BITS-1:0]] <= {keep, word};
    if (fetch) head_reg <= words[read_reg[BURST_BITS-1:0]];
  end

  always @(posedge clk) begin
    write_reg <= write_reg + {{BURST_BITS{1'b0}}, enter};
    read_reg <= read_reg + {{BURST_BITS{1'b0}}, fetch};
    head_valid_reg <= head_valid_next;
    open_reg <= (open_reg || begins) && head_valid_next;
    if (rst) begin
      write_reg <= {BURST_BITS + 1{1'b0}};
      read_reg <= {BURST_BITS + 1{1'b0}};
      head_valid_reg <= 1'b0;
      open_reg <= 1'b0;
    end
  end

`ifdef FORMAL
  // The n-th word from u_pack is the n-th to leave; the order of its bytes is proved of u_pack
  // itself. Numbers are modulo four bursts, more than are ever held; watched is any of them.
  localparam integer NUMBER = BURST_BITS + 2;
  (* anyconst *) reg [NUMBER-1:0] watched;
  reg was_reset = 1'b0;
  reg [NUMBER-1:0] came, left;
  reg [9*BUS_BYTES-1:0] put;
  reg waited, offered, left_was;
  reg [9*BUS_BYTES-1:0] stood;
  reg [11:0] silent;  // cycles without input
  reg [11:0] silent_was;
  reg [NUMBER-1:0] held_was;
  reg [11:0] stuck;  // cycles without input in which words waited and none left though it could
  wire [NUMBER-1:0] held = came - left;
  wire [NUMBER-1:0] place = watched - left;
  wire [NUMBER-1:0] stored = place - head_valid_reg;  // position in words
  wire [BURST_BITS-1:0] address = read_reg[BURST_BITS-1:0] + stored[BURST_BITS-1:0];

  always @(posedge clk) begin
    if (enter) came <= came + 1;
    if (enter && came == watched) put <= {keep, word};
    if (leave) left <= left + 1;
    waited <= m_axis_tvalid && !m_axis_tready;
    offered <= m_axis_tvalid;
    left_was <= leave;
    stood <= head_reg;
    held_was <= held;
    silent_was <= silent;
    silent <= s_axis_tvalid ? 0 : silent < 12'h800 ? silent + 1 : silent;
    stuck <= held != 0 && !leave && m_axis_tready && !s_axis_tvalid ? stuck + 1 : 0;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      left <= 0;
      waited <= 0;
      offered <= 0;
      left_was <= 0;
      held_was <= 0;
      silent_was <= 0;
      silent <= 0;
      stuck <= 0;
    end
  end

  always @* begin
    if (!was_reset) assume (rst);
    // Also without tvalid, which changes nothing: u_pack ignores the step then.
    if (was_reset) assume (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0);
    if (was_reset && !rst) begin
      assert (waiting <= 1 << BURST_BITS);
      assert (held == waiting + head_valid_reg);
      assert (quiet_reg == (silent < DRAINED ? silent : DRAINED));
      if (head_valid_reg && place == 0) assert (head_reg == put);
      if (place >= head_valid_reg && place < held) assert (words[address] == put);
      if (m_axis_tvalid && left == watched) assert ({m_axis_tkeep, m_axis_tdata} == put);
      if (open_reg) assert (head_valid_reg);

      // An offered word is stable, and a burst ends only when nothing is left.
      if (waited) assert (m_axis_tvalid && head_reg == stood);
      if (offered && !m_axis_tvalid) assert (held == 0 || (held == 1 && held_was == 1));
      // A burst starts when enough words are there, or in silence.
      if (!offered && m_axis_tvalid) assert (held_was >= 1 << BURST_BITS || silent_was >= DRAINED);

      // In silence, everything leaves.
      if (silent_was >= DRAINED && held_was != 0 && !left_was) assert (m_axis_tvalid);
      assert (stuck <= silent);
      assert (stuck <= DRAINED + 1);

      cover (offered && m_axis_tvalid && m_axis_tlast && left == 5);
      cover (waiting[BURST_BITS] && head_valid_reg && waited);
      cover (offered && !m_axis_tvalid && silent == 1);
    end
  end
`endif

endmodule

`default_nettype wire
