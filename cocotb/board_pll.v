// A bench's stand-in for a board's PLL: the card's clock is that at the oscillator's pin.

`default_nettype none

module agg_pll #(
    parameter integer INPUT = 1,
    parameter integer FEEDBACK = 1,
    parameter integer PRIMARY = 8,
    parameter integer SECONDARY = 8
) (
    input  wire clk_in,
    output wire clk_primary,
    output wire clk_secondary,
    output reg  locked
);

  assign clk_primary   = clk_in;
  assign clk_secondary = 1'b0;
  initial locked = 1'b0;
  always @(posedge clk_in) locked <= 1'b1;

endmodule

`default_nettype wire
