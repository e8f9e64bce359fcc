// Pins that go both ways, of AMD's 7 series: each driven with out while its drive_n is low, read at in. So
// that a register can stand at the pin nothing is between.

`default_nettype none

module agg_pads #(
    parameter integer WIDTH = 8
) (
    inout  wire [WIDTH-1:0] pads,
    input  wire [WIDTH-1:0] drive_n,
    input  wire [WIDTH-1:0] out,
    output wire [WIDTH-1:0] in
);

  genvar i;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : g_pad
      IOBUF u_pad (
          .IO(pads[i]),
          .I (out[i]),
          .T (drive_n[i]),
          .O (in[i])
      );
    end
  endgenerate

endmodule

`default_nettype wire
