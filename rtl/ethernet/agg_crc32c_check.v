// Checks the CRC-32C at a message's end, BYTES bytes a step. Byte 0, the lowest, comes first. The
// last four bytes of the message are its CRC, low byte first.
//
// A message begins at byte START of its first step, and ends anywhere in its last one. All other
// bytes of these steps must be zero. Zeros before a message change nothing: the register is zero
// until START, and its initial ones enter with the first step as a constant. Zeros after a message
// advance the register. So the value that shows a right CRC depends on their number, s_pad, and is
// read from a table.
//
// Latency: good belongs to the message whose last step came four cycles ago or, if none did, before
// that. Throughput: a step a cycle; only the 32 bits of the register are in the feedback.
//
// Not done here: clearing bytes outside of the message (agg_eth_receive). Messages of less than four
// bytes get an arbitrary answer.

`default_nettype none

module agg_crc32c_check #(
    parameter integer BYTES = 8,  // in a step: a power of two, at most 64
    parameter integer START = 0   // the message's first byte in its first step
) (
    input wire clk,

    input wire                                       s_valid,
    input wire                                       s_first,
    input wire                                       s_last,
    input wire [                        8*BYTES-1:0] s_data,
    input wire [(BYTES > 1 ? $clog2(BYTES) : 1)-1:0] s_pad,    // zero bytes after it, with s_last

    output wire good
);

  generate
    if (BYTES < 1 || BYTES > 64 || (BYTES & (BYTES - 1)) != 0) begin : g_bytes
      ERROR_a_step_has_a_power_of_two_of_bytes_at_most_64 error ();
    end
    if (START < 0 || START >= BYTES) begin : g_start
      ERROR_a_message_starts_in_its_first_step error ();
    end
  endgenerate

  localparam integer BITS = 8 * BYTES;
  localparam integer PAD_BITS = BYTES > 1 ? $clog2(BYTES) : 1;

  // Data enters in groups of at most 64 bits, each with a register of its share.
  localparam integer GROUP_BITS = BITS > 64 ? 64 : BITS;
  localparam integer GROUPS = BITS / GROUP_BITS;

  localparam [31:0] RESIDUE = 32'hb798b438;  // the register after a message and its CRC

  // The register after bits of zeros.
  function automatic [31:0] advance;
    input [31:0] crc;
    input integer bits;
    integer n;
    begin
      advance = crc;
      for (n = 0; n < bits; n = n + 1)
      advance = {1'b0, advance[31:1]} ^ (advance[0] ? 32'h82f63b78 : 32'd0);
    end
  endfunction

  // The register that shows a right CRC, for each number of zeros after the message.
  function automatic [(32<<PAD_BITS)-1:0] residues;
    input [31:0] none;
    integer behind;
    reg [31:0] crc;
    begin
      crc = none;
      for (behind = 0; behind < 1 << PAD_BITS; behind = behind + 1) begin
        residues[32*behind+:32] = crc;
        crc = advance(crc, 8);
      end
    end
  endfunction

  localparam [31:0] SEED = advance(32'hffffffff, BITS - 8 * START);
  localparam [(32<<PAD_BITS)-1:0] RESIDUES = residues(RESIDUE);

  // Registers of cycle 1: groups; 2: data; 3: crc; 4: good
  reg [2:1] valid_reg;
  reg [2:1] first_reg;
  reg [3:1] last_reg;
  reg [PAD_BITS-1:0] pad_reg;
  reg [31:0] expected_reg;
  reg [31:0] expected_crc_reg;
  reg [32*GROUPS-1:0] groups_reg;
  reg [31:0] data_reg;
  reg [31:0] crc_reg;
  reg good_reg;

  wire [32*GROUPS-1:0] groups;
  wire [31:0] advanced;
  reg [31:0] data;
  integer share;

  genvar g;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      wire [BITS-1:0] alone;  // all other groups are zero
      if (GROUPS == 1) begin : g_one
        assign alone = s_data;
      end else begin : g_many
        assign alone = s_data & {{BITS - GROUP_BITS{1'b0}}, {GROUP_BITS{1'b1}}} << GROUP_BITS * g;
      end
      agg_crc32c #(
          .BYTES(BYTES)
      ) u_share (
          .crc_in (32'd0),
          .data   (alone),
          .crc_out(groups[32*g+:32])
      );
    end
  endgenerate

  agg_crc32c #(
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
    valid_reg        <= {valid_reg[1], s_valid};
    first_reg        <= {first_reg[1], s_first};
    last_reg         <= {last_reg[2] && valid_reg[2], last_reg[1], s_last};
    pad_reg          <= s_pad;
    expected_reg     <= RESIDUES[{pad_reg, 5'd0}+:32];
    expected_crc_reg <= expected_reg;
    groups_reg       <= groups;
    data_reg         <= data;
    if (valid_reg[2]) crc_reg <= (first_reg[2] ? SEED : advanced) ^ data_reg;
    if (last_reg[3]) good_reg <= crc_reg == expected_crc_reg;
  end

  assign good = good_reg;

endmodule

`default_nettype wire
