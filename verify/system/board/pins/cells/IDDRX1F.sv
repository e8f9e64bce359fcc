// A double-rate input register of an ECP5: after a rising edge, Q0 is D at that edge and Q1 is D at
// the falling edge before it. Lattice documents Q1 as the falling edge that follows Q0's; both are
// shown from the next rising edge on. So Q0 waits a cycle here.

`default_nettype none

module IDDRX1F (
    input  wire SCLK,
    input  tri0 RST,  // inactive where it is not connected
    input  wire D,
    output reg  Q0,
    output reg  Q1
);

  reg rise_reg;
  reg fall_reg;

  always @(posedge SCLK) begin
    rise_reg <= !RST && D;
    Q0       <= !RST && rise_reg;
    Q1       <= !RST && fall_reg;
  end

  always @(negedge SCLK) fall_reg <= !RST && D;

endmodule

`default_nettype wire
