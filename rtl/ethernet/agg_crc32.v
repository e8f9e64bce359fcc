// CRC-32 of Ethernet, which is that of the ICRC as well, over BYTES more bytes: polynomial 0x04C11DB7,
// reflected, low bit first. Byte 0, the lowest, comes first.
//
// Combinational, and linear, as agg_crc32c: with crc_in 0 it is the share of the data, with data 0 that
// of the state; their XOR is the whole.
//
// Not done here: the start from 0xFFFFFFFF, and the final inversion. The caller holds the state.

`default_nettype none

module agg_crc32 #(
    parameter integer BYTES = 8
) (
    input  wire [       31:0] crc_in,
    input  wire [8*BYTES-1:0] data,
    output wire [       31:0] crc_out
);

  localparam integer BITS = 8 * BYTES;
  localparam [31:0] POLY = 32'hedb88320;  // reflected

  generate
    if (BYTES < 1) begin : g_bytes
      ERROR_a_step_has_a_byte_or_more error ();
    end
  endgenerate

  // The bits of the data that change bit 0 of the CRC. The last bit adds the polynomial; each bit
  // before it has gone through one shift more.
  function automatic [BITS-1:0] row_0;
    input integer bits;
    integer n;
    reg [31:0] share;
    begin
      row_0 = {BITS{1'b0}};
      share = POLY;
      for (n = bits - 1; n >= 0; n = n - 1) begin
        row_0[n] = share[0];
        share = {1'b0, share[31:1]} ^ (share[0] ? POLY : 32'd0);
      end
    end
  endfunction

  localparam [BITS-1:0] ROW_0 = row_0(BITS);

  // The same for bit number place. A shift moves the next higher bit there, and adds bit 0 if the
  // polynomial has that term. So a row follows from the next one in few steps: a tool that
  // evaluates all bits of all rows one by one takes seconds.
  function automatic [BITS-1:0] row;
    input integer place;
    integer n;
    begin
      row = {BITS{1'b0}};
      for (n = 31; n >= place; n = n - 1)
      row = {POLY[n], row[BITS-1:1] ^ (POLY[n] ? ROW_0[BITS-1:1] : {BITS - 1{1'b0}})};
    end
  endfunction

  // The state's low bits meet the data's first bits; bits that meet none are shifted.
  wire [BITS-1:0] mixed;
  wire [31:0] shifted;

  generate
    if (BITS > 32) begin : g_wide
      assign mixed   = data ^ {{BITS - 32{1'b0}}, crc_in};
      assign shifted = 32'd0;
    end else if (BITS == 32) begin : g_word
      assign mixed   = data ^ crc_in;
      assign shifted = 32'd0;
    end else begin : g_narrow
      assign mixed   = data ^ crc_in[BITS-1:0];
      assign shifted = {{BITS{1'b0}}, crc_in[31:BITS]};
    end
  endgenerate

  genvar i;
  generate
    for (i = 0; i < 32; i = i + 1) begin : g_bit
      localparam [BITS-1:0] ROW = row(i);
      assign crc_out[i] = ^(mixed & ROW) ^ shifted[i];
    end
  endgenerate

endmodule

`default_nettype wire
