// Proves that the CRC equals its bitwise definition, and that a CRC's complement after its bytes, low
// byte first, gives the residue that receivers of Ethernet frames look for. For wide steps, this is
// proved for inputs with a single one: the module and the definition are linear.

`default_nettype none

module crc32 #(
    parameter integer BYTES  = 1,
    parameter integer SINGLE = 0   // inputs with a single one
) (
    input wire [       31:0] from,
    input wire [8*BYTES-1:0] data
);

  wire [31:0] crc, closed;

  agg_crc32 #(
      .BYTES(BYTES)
  ) dut (
      .crc_in (from),
      .data   (data),
      .crc_out(crc)
  );

  agg_crc32 #(
      .BYTES(4)
  ) close (
      .crc_in (crc),
      .data   (~crc),
      .crc_out(closed)
  );

  wire [31+8*BYTES:0] bits = {from, data};
  reg [31:0] plain;
  integer place;

  always @* begin
    plain = from;
    for (place = 0; place < 8 * BYTES; place = place + 1)
    plain = plain >> 1 ^ (plain[0] ^ data[place] ? 32'hedb88320 : 32'h0);
    if (SINGLE != 0) assume ((bits & (bits - 1)) == 0);
    assert (crc == plain);
    if (SINGLE == 0) assert (closed == 32'hdebb20e3);
    cover (crc == 0);
  end

endmodule

`default_nettype wire
