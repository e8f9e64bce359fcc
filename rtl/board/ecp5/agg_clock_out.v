// Outputs a clock at a pin, for Lattice ECP5: a double-rate register at the pin follows the clock
// without routing delay.

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
