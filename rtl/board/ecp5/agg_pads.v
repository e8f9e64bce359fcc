// Bidirectional pins, for Lattice ECP5: out drives them while drive is high; in reads them.

`default_nettype none

module agg_pads #(
    parameter integer WIDTH = 8
) (
    inout  wire [WIDTH-1:0] pads,
    input  wire             drive,
    input  wire [WIDTH-1:0] out,
    output wire [WIDTH-1:0] in
);

  genvar i;
  generate
    for (i = 0; i < WIDTH; i = i + 1) begin : g_pad
      BB u_pad (
          .B(pads[i]),
          .I(out[i]),
          .T(!drive),
          .O(in[i])
      );
    end
  endgenerate

endmodule

`default_nettype wire
