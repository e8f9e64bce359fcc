// A double-rate register at a pin of an ECP5: Q is D0 while the clock is high and D1 while it is low, as they
// were at its last rising edge. The cell's own cycles of latency are not modelled.

`default_nettype none

module ODDRX1F (
    input  wire SCLK,
    input  tri0 RST,  // inactive where it is not connected
    input  wire D0,
    input  wire D1,
    output wire Q
);

  reg d0_reg;
  reg d1_reg;

  always @(posedge SCLK) begin
    d0_reg <= D0;
    d1_reg <= D1;
  end

  assign Q = !RST && (SCLK ? d0_reg : d1_reg);

endmodule

`default_nettype wire
