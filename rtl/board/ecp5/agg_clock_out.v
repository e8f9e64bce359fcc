// Drives a pin with a clock, of Lattice ECP5: by a double-rate register at the pin, so that the pin moves
// with the clock and not later by some wire.

`default_nettype none

module agg_clock_out (
    input  wire clk,
    output wire pad
);

  ODDRX1F u_pin (
      .SCLK(clk),
      .RST (1'b0),
      .D0  (1'b1),
      .D1  (1'b0),
      .Q   (pad)
  );

endmodule

`default_nettype wire
