// Checks the ICRC of a RoCEv2 packet at its end, BYTES bytes a step, and takes out the header's part
// of it. Byte 0 of a step, the lowest, comes first.
//
// The ICRC is CRC-32 (agg_crc32), started from ones, over 8 bytes of ones and the packet from byte 14
// of its frame on; the bytes that it takes as ones are ones here. Steps are a frame's beats: the
// message begins at byte 14 modulo BYTES of its first step, and ends anywhere in its last one. Its
// last four bytes are the ICRC, low byte first. All bytes before and behind it must be zero. The
// register is zero until the message begins; the initial ones, and the 8 bytes, enter with the first
// step as a constant. Zeros behind the message advance the register, so the value that shows a right
// ICRC depends on their number, s_pad, and is read from a table.
//
// part: the register after the header and as many zeros as the payload has bytes. s_header has the
// message with zeros instead of payload and ICRC; the zeros behind the payload are taken back. Their
// number follows from the size of the header, if the payload is a multiple of 64 bytes; otherwise
// part means nothing. The CRC is linear: with the register R of any other payload of this size,
// started from zero, ~(part ^ R) is the ICRC of header and payload.
//
// Latency: good and part belong to the message whose last step came four cycles ago or, if none did,
// before that. Throughput: a step a cycle; only the 32 bits of a register are in a feedback.
//
// Not done here: clearing bytes, and setting ones (agg_roce_receive).

`default_nettype none

module agg_icrc_check #(
    parameter integer BYTES = 8  // in a step: 1, 8 or 64
) (
    input wire clk,

    input wire s_valid,
    input wire s_first,
    input wire s_last,
    input wire [8*BYTES-1:0] s_data,
    input wire [8*BYTES-1:0] s_header,
    input wire [(BYTES > 1 ? $clog2(BYTES) : 1)-1:0] s_pad,  // zero bytes after it, with s_last
    input wire [1:0] s_code,  // header: 54, 58, 70 or 74 bytes; with s_last

    output wire        good,
    output wire [31:0] part
);

  generate
    if (BYTES != 1 && BYTES != 8 && BYTES != 64) begin : g_bytes
      ERROR_a_step_has_1_8_or_64_bytes error ();
    end
  endgenerate

  localparam integer BITS = 8 * BYTES;
  localparam integer PAD_BITS = BYTES > 1 ? $clog2(BYTES) : 1;
  localparam integer START = 14 % BYTES;

  // Data enters in groups of at most 64 bits, each with a register of its share.
  localparam integer GROUP_BITS = BITS > 64 ? 64 : BITS;
  localparam integer GROUPS = BITS / GROUP_BITS;

  localparam [31:0] POLY = 32'hedb88320;  // reflected
  localparam [31:0] RESIDUE = 32'hdebb20e3;  // the register after a message and its ICRC

  // The register after as many equal bits.
  function automatic [31:0] advance;
    input [31:0] crc;
    input integer bits;
    input value;
    integer n;
    begin
      advance = crc;
      for (n = 0; n < bits; n = n + 1)
      advance = {1'b0, advance[31:1]} ^ (advance[0] ^ value ? POLY : 32'd0);
    end
  endfunction

  // The register that shows a right ICRC, for each number of zeros after the message.
  function automatic [(32<<PAD_BITS)-1:0] residues;
    input [31:0] none;
    integer pads;
    reg [31:0] crc;
    begin
      crc = none;
      for (pads = 0; pads < 1 << PAD_BITS; pads = pads + 1) begin
        residues[32*pads+:32] = crc;
        crc = advance(crc, 8, 1'b0);
      end
    end
  endfunction

  // The bits that make each bit of the register as it was before as many zeros: bit 0's in the lowest
  // 32. A step back doubles a register without bit 31, so those of bits 0 to 31 are successive steps.
  function automatic [1023:0] rewind;
    input integer bits;
    integer n, bit_number;
    reg [31:0] crc;
    begin
      rewind = 1024'd0;
      crc = 32'd1;
      for (n = 0; n < bits + 32; n = n + 1) begin
        if (n >= bits)
          for (bit_number = 0; bit_number < 32; bit_number = bit_number + 1)
          rewind[32*bit_number+n-bits] = crc[bit_number];
        crc = crc[31] ? {crc[30:0] ^ POLY[30:0], 1'b1} : {crc[30:0], 1'b0};
      end
    end
  endfunction

  localparam [31:0] OPENED = advance(32'hffffffff, 64, 1'b1);
  localparam [31:0] SEED = advance(OPENED, BITS - 8 * START, 1'b0);
  localparam [(32<<PAD_BITS)-1:0] RESIDUES = residues(RESIDUE);

  // -- The message, and its header alone: groups in cycle 1, data in 2, crc in 3 ------------------

  reg  [ 2:1] valid_reg;
  reg  [ 2:1] first_reg;
  reg  [ 3:1] last_reg;
  wire [63:0] crcs;  // the header's in the upper half

  genvar k, g;
  generate
    for (k = 0; k < 2; k = k + 1) begin : g_stream
      wire [BITS-1:0] bytes = k == 0 ? s_data : s_header;
      wire [32*GROUPS-1:0] groups;
      wire [31:0] advanced;
      reg [32*GROUPS-1:0] groups_reg;
      reg [31:0] data_reg;
      reg [31:0] crc_reg;
      reg [31:0] data;
      integer share;

      for (g = 0; g < GROUPS; g = g + 1) begin : g_group
        wire [BITS-1:0] alone;  // all other groups are zero
        if (GROUPS == 1) begin : g_one
          assign alone = bytes;
        end else begin : g_many
          assign alone = bytes & {{BITS - GROUP_BITS{1'b0}}, {GROUP_BITS{1'b1}}} << GROUP_BITS * g;
        end
        agg_crc32 #(
            .BYTES(BYTES)
        ) u_share (
            .crc_in (32'd0),
            .data   (alone),
            .crc_out(groups[32*g+:32])
        );
      end

      agg_crc32 #(
          .BYTES(BYTES)
      ) u_advanced (
          .crc_in (crc_reg),
          .data   ({BITS{1'b0}}),
          .crc_out(advanced)
      );

      always @* begin
        data = 32'd0;
        for (share = 0; share < GROUPS; share = share + 1) data = data ^ groups_reg[32*share+:32];
      end

      always @(posedge clk) begin
        groups_reg <= groups;
        data_reg   <= data;
        if (valid_reg[2]) crc_reg <= (first_reg[2] ? SEED : advanced) ^ data_reg;
      end

      assign crcs[32*k+:32] = crc_reg;
    end
  endgenerate

  // -- Cycle 4: the answers -----------------------------------------------------------------------

  reg [PAD_BITS-1:0] pad_reg;
  reg [        31:0] expected_reg;
  reg [        31:0] expected_crc_reg;
  reg [1:0] code_1_reg, code_2_reg, code_3_reg;
  reg          good_reg;
  reg  [ 31:0] part_reg;
  wire [127:0] rewound;  // by code

  genvar c, row;
  generate
    for (c = 0; c < 4; c = c + 1) begin : g_code
      localparam integer HEADER = 54 + 4 * (c % 2) + 16 * (c / 2);
      localparam integer BEHIND = (BYTES - (HEADER + 4) % BYTES) % BYTES;
      localparam [1023:0] ROWS = rewind(8 * (4 + BEHIND));
      for (row = 0; row < 32; row = row + 1) begin : g_bit
        assign rewound[32*c+row] = ^(crcs[63:32] & ROWS[32*row+:32]);
      end
    end
  endgenerate

  always @(posedge clk) begin
    valid_reg        <= {valid_reg[1], s_valid};
    first_reg        <= {first_reg[1], s_first};
    last_reg         <= {last_reg[2] && valid_reg[2], last_reg[1], s_last};
    pad_reg          <= s_pad;
    expected_reg     <= RESIDUES[{pad_reg, 5'd0}+:32];
    expected_crc_reg <= expected_reg;
    code_1_reg       <= s_code;
    code_2_reg       <= code_1_reg;
    code_3_reg       <= code_2_reg;
    if (last_reg[3]) begin
      good_reg <= crcs[31:0] == expected_crc_reg;
      part_reg <= rewound[{code_3_reg, 5'd0}+:32];
    end
  end

  assign good = good_reg;
  assign part = part_reg;

endmodule

`default_nettype wire
