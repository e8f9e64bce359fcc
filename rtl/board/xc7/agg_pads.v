// Bidirectional pins, for AMD's 7 series: out drives each pin while its drive_n is low; in reads
// it. No logic is in between, so that registers can be placed at the pins.

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
