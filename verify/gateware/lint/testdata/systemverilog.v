// A word that Verilog-2005 does not have.

`default_nettype none

module systemverilog (
    input  wire clk,
    input  wire d,
    output wire q
);

  reg q_reg;
  assign q = q_reg;

  always_ff @(posedge clk) q_reg <= d;

endmodule

`default_nettype wire
