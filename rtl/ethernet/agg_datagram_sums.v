// The two checks of a datagram, over a packet's header and payload: its CRC-32C, and the ones'
// complement sum for its UDP checksum. The sum includes the CRC behind the payload.
//
// A packet comes in whole steps of STEP bytes. A header is no whole number of steps of 4 bytes or
// more: zeros stand before it (agg_datagram_steps). The sum ignores them, and the CRC starts from
// the value that these zeros turn into 0xFFFFFFFF. So a CRC of part of a step is not needed: the
// payload is whole steps, because a step is at most a beat.
//
// A step of many bytes is reduced by at most four numbers a cycle, in STAGES cycles. The loops
// behind that add one number, or one share of a CRC.
//
// Latency: m_valid is a pulse STAGES + 5 cycles after the last step: 6 cycles for up to 8 bytes, 8
// for 64. Packets may follow without a gap. Not done here: the pseudo header and the UDP header,
// which differ from copy to copy (agg_eth_transmit).

`default_nettype none

module agg_datagram_sums #(
    parameter integer STEP       = 8,  // bytes in a step: a power of 2, up to 64
    parameter integer ZEROS      = 2,  // bytes before a header of 30 bytes (agg_datagram_steps)
    parameter integer ZEROS_BARE = 2   // and before one of 22
) (
    input wire clk,
    input wire rst,

    input wire              s_step_valid,
    input wire              s_step_first,
    input wire              s_step_last,
    input wire              s_step_bare,   // with the first: the header has 22 bytes, not 30
`ifdef AGG_PARENT
    input wire              s_step_up,     // with the first: it has 14
`endif
    input wire [8*STEP-1:0] s_step_data,

    output wire        m_valid,
    output wire [31:0] m_crc,    // low byte first on the wire
    output wire [15:0] m_sum     // 16-bit words with their first byte highest, not inverted
);

  generate
    if ((STEP & (STEP - 1)) != 0 || STEP < 1 || STEP > 64) begin : g_step
      ERROR_a_step_has_1_2_4_8_16_32_or_64_bytes error ();
    end
  endgenerate

  localparam integer STAGES = STEP <= 8 ? 1 : STEP <= 32 ? 2 : 3;
  localparam integer WORDS = STEP < 2 ? 1 : STEP / 2;  // 16-bit words in a step
  localparam integer LEAVES = STAGES == 1 ? 4 : STAGES == 2 ? 16 : 64;  // of a tree of fours
  localparam integer INNER = (LEAVES - 1) / 3;
  localparam integer PARTS = (STEP + 15) / 16;  // shares of the CRC, of 16 bytes each

  // The CRC's state after so many zeros from 0xFFFFFFFF on; before them, if the number is negative.
  function automatic [31:0] after_zeros;
    input integer bytes;
    integer n;
    begin
      after_zeros = 32'hffffffff;
      for (n = 0; n < 8 * bytes; n = n + 1) begin
        after_zeros = {1'b0, after_zeros[31:1]} ^ (after_zeros[0] ? 32'h82f63b78 : 32'd0);
      end
      for (n = 0; n < -8 * bytes; n = n + 1) begin
        after_zeros = {after_zeros[30:0], 1'b0} ^ (after_zeros[31] ? 32'h05ec76f1 : 32'd0);
      end
    end
  endfunction

  // The start's share of the state after the first step
  localparam [31:0] START = after_zeros(STEP - ZEROS);
  localparam [31:0] START_BARE = after_zeros(STEP - ZEROS_BARE);
`ifdef AGG_PARENT
  localparam [31:0] START_UP = after_zeros(STEP - ZEROS - 16);
  localparam [31:0] START_UP_BARE = after_zeros(STEP - ZEROS_BARE - 8);
`endif

  // -- Steps at the pipeline's end ----------------------------------------------------------------

  wire adds, begins, closes, bare;
  wire low;  // of steps of one byte: a low byte of its word
  wire low_now;
`ifdef AGG_PARENT
  wire up;

  agg_delay #(
      .WIDTH (1),
      .CYCLES(STAGES)
  ) u_up (
      .clk(clk),
      .d  (s_step_up),
      .q  (up)
  );
`endif

  agg_tag_delay #(
      .WIDTH (4),
      .CYCLES(STAGES)
  ) u_tags (
      .clk      (clk),
      .rst      (rst),
      .in_valid (s_step_valid),
      .in_tag   ({s_step_first, s_step_last, s_step_bare, low_now}),
      .out_valid(adds),
      .out_tag  ({begins, closes, bare, low})
  );

  // -- CRC -----------------------------------------------------------------------------------------

  localparam integer PART = STEP < 16 ? STEP : 16;  // bytes whose share takes one cycle
  localparam [8*STEP-1:0] ALL = {8 * STEP{1'b1}};

  wire [32*PARTS-1:0] share;
  reg [32*PARTS-1:0] share_reg;
  reg [31:0] joined;  // the step's whole share, one cycle after its parts
  wire [31:0] enters;  // at the pipeline's end
  wire [31:0] moved;  // the state's share
  reg [31:0] crc_reg;

  genvar g;
  generate
    for (g = 0; g < PARTS; g = g + 1) begin : g_part
      localparam [8*STEP-1:0] MASK = (ALL >> 8 * (STEP - PART)) << 8 * PART * g;

      agg_crc32c #(
          .BYTES(STEP)
      ) u_share (
          .crc_in (32'd0),
          .data   (s_step_data & MASK),
          .crc_out(share[32*g+:32])
      );
    end
  endgenerate

  agg_crc32c #(
      .BYTES(STEP)
  ) u_state (
      .crc_in (crc_reg),
      .data   ({8 * STEP{1'b0}}),
      .crc_out(moved)
  );

  agg_delay #(
      .WIDTH (32),
      .CYCLES(STAGES - 1)
  ) u_enters (
      .clk(clk),
      .d  (joined),
      .q  (enters)
  );

  integer p;

  always @* begin
    joined = share_reg[31:0];
    for (p = 1; p < PARTS; p = p + 1) joined = joined ^ share_reg[32*p+:32];
  end

  always @(posedge clk) begin
    share_reg <= share;
`ifdef AGG_PARENT
    if (adds)
      crc_reg <= (!begins ? moved : up ? (bare ? START_UP_BARE : START_UP) :
          bare ? START_BARE : START) ^ enters;
`else
    if (adds) crc_reg <= (!begins ? moved : bare ? START_BARE : START) ^ enters;
`endif
  end

  // -- Sum -----------------------------------------------------------------------------------------

  // A packet's first byte is the high one of its first word. Of steps of one byte, every second is
  // a low one: a header is an even number of bytes, and so are the zeros before it.
  reg low_reg;
  assign low_now = STEP == 1 && low_reg && !s_step_first;

  // Node 0 is the root, and the inputs of node n are nodes 4 n + 1 to 4 n + 4.
  wire [22*(INNER+LEAVES)-1:0] node;
  reg [28:0] sum_reg;  // of up to 8,222 bytes

  generate
    for (g = 0; g < INNER; g = g + 1) begin : g_node
      reg [21:0] node_reg;
      always @(posedge clk)
        node_reg <= (node[22*(4*g+1)+:22] + node[22*(4*g+2)+:22]) +
            (node[22*(4*g+3)+:22] + node[22*(4*g+4)+:22]);
      assign node[22*g+:22] = node_reg;
    end
    for (g = 0; g < LEAVES; g = g + 1) begin : g_leaf
      if (g >= WORDS) begin : g_none
        assign node[22*(INNER+g)+:22] = 22'd0;
      end else if (STEP == 1) begin : g_byte
        assign node[22*(INNER+g)+:22] = {6'd0, low_now ? {8'd0, s_step_data} : {s_step_data, 8'd0}};
      end else begin : g_word
        assign node[22*(INNER+g)+:22] = {6'd0, s_step_data[16*g+:8], s_step_data[16*g+8+:8]};
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (s_step_valid) low_reg <= !low_now;
    if (adds) sum_reg <= (begins ? 29'd0 : sum_reg) + {7'd0, node[21:0]};
  end

  // -- The sum with the CRC ------------------------------------------------------------------------

  // Folds both to 16 bits, adds them and folds again. After an odd number of bytes, the CRC's first
  // byte is a low one: the words of its sum have their bytes exchanged.
  reg [4:1] close_reg;  // a packet's step in the loops was the last; so it was in the cycles before
  reg odd_reg, odd_1_reg, odd_2_reg;
  reg [16:0] sum_1_reg, crc_sum_1_reg, sum_3_reg;
  reg [15:0] sum_2_reg, crc_sum_2_reg, sum_4_reg;
  reg [31:0] crc_1_reg, crc_2_reg, crc_3_reg, crc_4_reg;
  reg valid_4_reg;
  wire [31:0] crc = ~crc_reg;

  always @(posedge clk) begin
    close_reg <= {close_reg[3:1], adds && closes};
    odd_reg <= STEP == 1 && !low;
    odd_1_reg <= odd_reg;
    odd_2_reg <= odd_1_reg;

    crc_1_reg <= crc;
    crc_2_reg <= crc_1_reg;
    crc_3_reg <= crc_2_reg;
    crc_4_reg <= crc_3_reg;
    crc_sum_1_reg <= {1'b0, crc[7:0], crc[15:8]} + {1'b0, crc[23:16], crc[31:24]};
    crc_sum_2_reg <= crc_sum_1_reg[15:0] + {15'd0, crc_sum_1_reg[16]};

    sum_1_reg <= {1'b0, sum_reg[15:0]} + {4'd0, sum_reg[28:16]};
    sum_2_reg <= sum_1_reg[15:0] + {15'd0, sum_1_reg[16]};
    sum_3_reg     <= {1'b0, sum_2_reg} +
        {1'b0, odd_2_reg ? {crc_sum_2_reg[7:0], crc_sum_2_reg[15:8]} : crc_sum_2_reg};
    sum_4_reg <= sum_3_reg[15:0] + {15'd0, sum_3_reg[16]};
    valid_4_reg <= close_reg[4];

    if (rst) begin
      close_reg   <= 4'd0;
      valid_4_reg <= 1'b0;
    end
  end

  assign m_valid = valid_4_reg;
  assign m_crc   = crc_4_reg;
  assign m_sum   = sum_4_reg;

endmodule

`default_nettype wire
