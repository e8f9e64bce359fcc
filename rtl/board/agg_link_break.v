// Restarts a byte-stream link at a break: ZEROS zero bytes in a row, which no stream of frames
// contains (SPEC.md, section 10). For links whose host cannot signal a start otherwise.
//
// Input passes, zeros included, until that many have come; then the link goes down. It comes up
// when the far side has released the previous host; input waits meanwhile. Zeros after a break are
// dropped: the new link starts with a word that has a nonzero byte.
//
// A word is zero if all its bytes are; other words' zeros do not count. Words pass in the same
// cycle. Not done here: clearing what was sent to the host, which the host skips.

`default_nettype none

module agg_link_break #(
    parameter integer BYTES = 1,    // bytes per word: 1, 2 or 4
    parameter integer ZEROS = 4096  // a multiple of 4, up to 65,532
) (
    input wire clk,
    input wire rst,

    output wire link_up,
    input  wire link_clear, // the previous host is gone: the link may come up

    input  wire [8*BYTES-1:0] s_axis_tdata,
    input  wire [  BYTES-1:0] s_axis_tkeep,   // contiguous from bit 0, at least one byte
    input  wire               s_axis_tvalid,
    output wire               s_axis_tready,

    output wire [8*BYTES-1:0] m_axis_tdata,
    output wire [  BYTES-1:0] m_axis_tkeep,
    output wire               m_axis_tvalid,
    input  wire               m_axis_tready
);

  generate
    if (BYTES != 1 && BYTES != 2 && BYTES != 4) begin : g_bytes
      ERROR_a_word_has_1_2_or_4_bytes error ();
    end
  endgenerate

  reg            up_reg;
  reg            broken_reg;  // only zeros have come since the link went down
  reg     [16:0] run_reg;  // zeros in a row, up to ZEROS

  reg            zero;
  reg     [ 2:0] bytes;
  wire           drop = broken_reg && zero;
  wire           take = s_axis_tvalid && s_axis_tready;
  wire    [16:0] run_next = run_reg + {14'd0, bytes};
  wire           enough = run_next >= ZEROS[16:0];

  integer        i;

  always @* begin
    zero  = 1'b1;
    bytes = 3'd0;
    for (i = 0; i < BYTES; i = i + 1) begin
      if (s_axis_tkeep[i]) begin
        zero  = zero && s_axis_tdata[8*i+:8] == 8'd0;
        bytes = bytes + 3'd1;
      end
    end
  end

  assign link_up       = up_reg;
  assign s_axis_tready = up_reg && (drop || m_axis_tready);
  assign m_axis_tdata  = s_axis_tdata;
  assign m_axis_tkeep  = s_axis_tkeep;
  assign m_axis_tvalid = up_reg && !drop && s_axis_tvalid;

  always @(posedge clk) begin
    if (take && !zero) begin
      broken_reg <= 1'b0;
      run_reg    <= 17'd0;
    end else if (take && !broken_reg) begin
      broken_reg <= enough;
      run_reg    <= enough ? 17'd0 : run_next;
    end
    if (!up_reg) up_reg <= link_clear;
    else if (take && zero && !broken_reg && enough) up_reg <= 1'b0;
    if (rst) begin
      up_reg     <= 1'b0;
      broken_reg <= 1'b0;
      run_reg    <= 17'd0;
    end
  end

`ifdef FORMAL
  // Zeros in a row, counted independently.
  reg was_reset = 1'b0;
  reg [16:0] zeros;
  reg fell;  // and only zero bytes have come since
  reg up_was;
  reg [16:0] zeros_was;
  wire [16:0] all_zeros = zeros + bytes;

  always @(posedge clk) begin
    up_was <= up_reg;
    if (take) begin
      zeros <= !zero ? 0 : zeros < 17'h8000 ? all_zeros : zeros;
      if (!zero) fell <= 0;
    end
    if (up_reg && take && zero && !fell && all_zeros >= ZEROS) fell <= 1;
    if (rst) begin
      was_reset <= 1'b1;
      zeros <= 0;
      fell <= 0;
      up_was <= 0;
    end
    zeros_was <= zeros;
  end

  always @* begin
    if (was_reset && !rst) begin
      assume (s_axis_tkeep[0] && (s_axis_tkeep & (s_axis_tkeep + 1'b1)) == 0);
      // The link falls at a break, exactly at its last word.
      if (up_was && !up_reg) assert (fell && zeros >= ZEROS);
      if (zeros >= ZEROS) assert (fell);
      if (!fell) assert (zeros < ZEROS && run_reg == zeros);
      assert (fell == broken_reg);
      // Words that are not dropped pass unchanged, and none passes while the link is down.
      if (!up_reg) assert (!m_axis_tvalid && !s_axis_tready);
      if (m_axis_tvalid) assert (m_axis_tready == s_axis_tready && s_axis_tvalid);
      if (take && !(fell && zero)) assert (m_axis_tvalid);
      if (fell && zero) assert (!m_axis_tvalid);
      cover (fell && up_reg && m_axis_tvalid && m_axis_tready);
      cover (!fell && zeros == ZEROS - BYTES && m_axis_tvalid);
    end
  end
`endif

endmodule

`default_nettype wire
