// Packs steps of bytes into link words, without gaps between them.
//
// Accepts up to STEP bytes a cycle and sends words of LINK_BYTES. A partial word waits for more
// bytes, or for s_step_idle, which flushes it. Throughput: one word a cycle. Latency: at least two
// cycles. A reset also withdraws the word at m_axis.

`default_nettype none

module agg_byte_pack #(
    parameter integer STEP = 4,  // maximum bytes per step: 4 or 8, at least LINK_BYTES
    parameter integer LINK_BYTES = 4  // 1, 2, 4 or 8
) (
    input wire clk,
    input wire rst,

    input wire [8*STEP-1:0] s_step_data,  // first byte in bits 7:0; bytes beyond s_step_bytes are 0
    input wire [3:0] s_step_bytes,
    input wire s_step_valid,
    output wire s_step_ready,
    input wire s_step_idle,  // flush: no step is pending, and none comes soon

    output wire [8*LINK_BYTES-1:0] m_axis_tdata,
    output wire [  LINK_BYTES-1:0] m_axis_tkeep,   // contiguous from bit 0, at least one byte
    output wire                    m_axis_tvalid,
    input  wire                    m_axis_tready
);

  generate
    if (STEP != 4 && STEP != 8) begin : g_step
      ERROR_a_step_has_4_or_8_bytes error ();
    end
    if (LINK_BYTES != 1 && LINK_BYTES != 2 && LINK_BYTES != 4 && LINK_BYTES != 8) begin : g_link
      ERROR_a_link_has_1_2_4_or_8_bytes error ();
    end
    if (LINK_BYTES > STEP) begin : g_narrow
      ERROR_a_step_has_at_least_the_bytes_of_the_link error ();
    end
  endgenerate

  // Room for three steps: with two inside, one more fits, and one leaves meanwhile.
  localparam integer HOLD = 8 * 3 * STEP;

  reg [HOLD-1:0] hold_reg;  // pending bytes, with zeros above them
  reg [4:0] count_reg;  // number of pending bytes
  reg ready_reg;  // a step has room beside them
  reg [8*LINK_BYTES-1:0] word_reg;
  reg [LINK_BYTES-1:0] keep_reg;
  reg valid_reg;

  wire free = !valid_reg || m_axis_tready;
  wire full = count_reg >= LINK_BYTES[4:0];
  wire leave = free && (full || (s_step_idle && count_reg != 5'd0));
  wire enter = s_step_valid && s_step_ready;

  wire [HOLD-1:0] hold_left = leave ? hold_reg >> 8 * LINK_BYTES : hold_reg;
  wire [4:0] count_left = !leave ? count_reg : full ? count_reg - LINK_BYTES[4:0] : 5'd0;
  wire [4:0] count_next = enter ? count_left + {1'b0, s_step_bytes} : count_left;
  wire [HOLD-1:0] entering = {{HOLD - 8 * STEP{1'b0}}, s_step_data} << {count_left, 3'd0};

  assign s_step_ready  = ready_reg;
  assign m_axis_tdata  = word_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tvalid = valid_reg;

  always @(posedge clk) begin
    hold_reg  <= enter ? hold_left | entering : hold_left;
    count_reg <= count_next;
    ready_reg <= count_next <= 2 * STEP[4:0];
    if (free) begin
      valid_reg <= leave;
      word_reg  <= hold_reg[8*LINK_BYTES-1:0];
      keep_reg  <= full ? {LINK_BYTES{1'b1}} : ~({LINK_BYTES{1'b1}} << count_reg);
    end
    if (rst) begin
      hold_reg  <= {HOLD{1'b0}};
      count_reg <= 5'd0;
      ready_reg <= 1'b1;
      valid_reg <= 1'b0;
    end
  end

`ifdef FORMAL
`ifndef PROMISED
  `define PROMISED assert
`endif

  // The n-th byte accepted is the n-th byte sent. Numbers are modulo 64, more than can be inside;
  // watched is any of them.
  (* anyconst *) reg [5:0] watched;
  reg was_reset = 1'b0;
  reg [5:0] came, left;
  reg [7:0] put;
  reg [3:0] out_bytes;  // in the word at the output
  reg waited, idle_was, free_was, ready_was;
  reg was_running = 1'b0;  // no reset in the last cycle
  reg [9*LINK_BYTES-1:0] stood;
  reg [5:0] quiet;  // cycles without input in which every word was taken
  wire [5:0] place = watched - came;  // of the watched byte in the input step
  wire [5:0] ahead = watched - left;  // bytes to send before it
  integer b;

  always @(posedge clk) begin
    if (enter) came <= came + s_step_bytes;
    if (enter && place < s_step_bytes) put <= s_step_data[8*place+:8];
    if (m_axis_tvalid && m_axis_tready) left <= left + out_bytes;
    waited   <= !rst && m_axis_tvalid && !m_axis_tready;
    stood    <= {m_axis_tkeep, m_axis_tdata};
    idle_was  <= s_step_idle;
    free_was  <= !m_axis_tvalid || m_axis_tready;
    was_running <= was_reset && !rst;
    ready_was <= count_reg >= LINK_BYTES || (s_step_idle && count_reg != 0);
    quiet    <= !s_step_idle || !m_axis_tready ? 0 : quiet < QUIET ? quiet + 1 : quiet;
    if (rst) begin
      was_reset <= 1'b1;
      came <= 0;
      left <= 0;
      quiet <= 0;
    end
  end

  localparam integer QUIET = 3 * STEP / LINK_BYTES + 1;  // after this many, all bytes have left

  always @* begin
    out_bytes = 0;
    for (b = 0; b < LINK_BYTES; b = b + 1) out_bytes = out_bytes + (valid_reg && keep_reg[b]);

    if (was_reset) begin
      // agg_frame_tx and agg_beat_unpack: unused bytes are 0, and no step comes while idle.
      `PROMISED(s_step_bytes <= STEP && (s_step_data >> 8 * s_step_bytes) == 0);
      `PROMISED(!(s_step_idle && s_step_valid));

      assert (came - left == count_reg + out_bytes);
      assert (count_reg <= 3 * STEP);
      assert ((hold_reg >> 8 * count_reg) == 0);
      for (b = 0; b < LINK_BYTES; b = b + 1)
      if (b < out_bytes && ahead == b) assert (m_axis_tdata[8*b+:8] == put);
      if (ahead >= out_bytes && ahead < out_bytes + count_reg)
        assert (hold_reg[8*(ahead-out_bytes)+:8] == put);

      if (m_axis_tvalid) assert (m_axis_tkeep[0] && (m_axis_tkeep & (m_axis_tkeep + 1'b1)) == 0);
      if (waited) assert (m_axis_tvalid && {m_axis_tkeep, m_axis_tdata} == stood);
      assert (s_step_ready == (count_reg + STEP <= 3 * STEP));
      assert (quiet == 0 || count_reg == 0 || count_reg + LINK_BYTES * (quiet - 1) <= 3 * STEP);
      if (quiet == QUIET) assert (count_reg == 0);
      // A word leaves as soon as it is full, and a partial one only when idle.
      if (was_running && free_was) assert (m_axis_tvalid == ready_was);
      if (was_running && free_was && m_axis_tvalid && !idle_was) assert (&m_axis_tkeep);

      cover (count_reg == 3 * STEP);
      cover (m_axis_tvalid && !(&m_axis_tkeep));
      cover (quiet == QUIET && came == 20);
    end
  end
`endif

endmodule

`default_nettype wire
