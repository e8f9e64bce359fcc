// CRC-16/CCITT-FALSE over the first count bytes of data (polynomial 0x1021, most significant bit
// first, no reflection, no final XOR). Byte 0, the lowest, comes first.
//
// Combinational; the caller holds the state, which starts from CRC_INIT or another CRC's value.

`default_nettype none

module agg_crc16 #(
    parameter integer BYTES = 4  // maximum bytes per step
) (
    input  wire [       15:0] crc_in,
    input  wire [8*BYTES-1:0] data,
    input  wire [        3:0] count,   // 0..BYTES; the other bytes are ignored
    output reg  [       15:0] crc_out
);

  generate
    if (BYTES < 1 || BYTES > 8) begin : g_bytes
      ERROR_a_step_has_1_to_8_bytes error ();
    end
  endgenerate

  // One byte: eight shifts by the polynomial x^16 + x^12 + x^5 + 1, unrolled.
  function automatic [15:0] step;
    input [15:0] crc;
    input [7:0] value;
    reg [7:0] feedback;
    begin
      feedback = crc[15:8] ^ value;
      feedback = feedback ^ {4'd0, feedback[7:4]};
      step = {crc[7:0], 8'd0} ^ {feedback[3:0], 12'd0} ^ {3'd0, feedback, 5'd0} ^ {8'd0, feedback};
    end
  endfunction

  integer i;

  always @* begin
    crc_out = crc_in;
    for (i = 0; i < BYTES; i = i + 1) begin
      if (i[3:0] < count) crc_out = step(crc_out, data[8*i+:8]);
    end
  end

endmodule

`default_nettype wire
