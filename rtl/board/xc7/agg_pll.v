// A board's clocks from its oscillator, by a PLL of AMD's 7 series.
//
// The VCO runs at clk_in * FEEDBACK / INPUT, 800 to 1600 MHz; clk_primary is that / PRIMARY, and
// clk_secondary that / SECONDARY. Their phases relative to clk_in are undefined. locked is
// asynchronous.
//
// hwgen computes the dividers. Vivado derives the output frequencies from that of clk_in.

`default_nettype none

module agg_pll #(
    parameter integer INPUT_PS = 10000,  // period of clk_in in ps
    parameter integer INPUT = 1,  // dividers: 1..56
    parameter integer FEEDBACK = 8,  // 2..64
    parameter integer PRIMARY = 8,  // 1..128
    parameter integer SECONDARY = 8
) (
    input  wire clk_in,
    output wire clk_primary,
    output wire clk_secondary,
    output wire locked
);

  wire feedback;
  wire primary;
  wire secondary;
  wire unused_clkout2;
  wire unused_clkout3;
  wire unused_clkout4;
  wire unused_clkout5;

  PLLE2_BASE #(
      .BANDWIDTH     ("OPTIMIZED"),
      .CLKIN1_PERIOD (INPUT_PS / 1000.0),
      .DIVCLK_DIVIDE (INPUT),
      .CLKFBOUT_MULT (FEEDBACK),
      .CLKOUT0_DIVIDE(PRIMARY),
      .CLKOUT1_DIVIDE(SECONDARY)
  ) u_pll (
      .CLKIN1  (clk_in),
      .CLKFBIN (feedback),
      .RST     (1'b0),
      .PWRDWN  (1'b0),
      .CLKFBOUT(feedback),
      .CLKOUT0 (primary),
      .CLKOUT1 (secondary),
      .CLKOUT2 (unused_clkout2),
      .CLKOUT3 (unused_clkout3),
      .CLKOUT4 (unused_clkout4),
      .CLKOUT5 (unused_clkout5),
      .LOCKED  (locked)
  );

  BUFG u_primary (
      .I(primary),
      .O(clk_primary)
  );

  BUFG u_secondary (
      .I(secondary),
      .O(clk_secondary)
  );

endmodule

`default_nettype wire
