// Proves that the CRC equals its bitwise definition over the counted bytes, and that a CRC appended
// to its bytes, high byte first, gives 0.

`default_nettype none

module crc16 #(
    parameter integer BYTES = 4
) (
    input wire [       15:0] from,
    input wire [8*BYTES-1:0] data,
    input wire [        3:0] count
);

  wire [15:0] crc, closed;

  agg_crc16 #(
      .BYTES(BYTES)
  ) dut (
      .crc_in (from),
      .data   (data),
      .count  (count),
      .crc_out(crc)
  );

  agg_crc16 #(
      .BYTES(2)
  ) close (
      .crc_in (crc),
      .data   ({crc[7:0], crc[15:8]}),
      .count  (4'd2),
      .crc_out(closed)
  );

  reg [15:0] plain;
  integer place, order;

  always @* begin
    plain = from;
    for (place = 0; place < BYTES; place = place + 1) begin
      if (place < count) begin
        for (order = 7; order >= 0; order = order - 1)
        plain = {plain[14:0], 1'b0} ^ (plain[15] ^ data[8*place+order] ? 16'h1021 : 16'h0);
      end
    end
    assume (count <= BYTES);  // maximum bytes per step
    assert (crc == plain);
    assert (closed == 0);
    cover (count == BYTES && crc == 0);
  end

endmodule

`default_nettype wire
