// A board's clocks from its oscillator, by a PLL of Lattice ECP5.
//
// clk_primary = clk_in * FEEDBACK / INPUT. The VCO runs at PRIMARY times that, 400 to 800 MHz, and
// clk_secondary at the VCO's frequency / SECONDARY. locked is asynchronous.
//
// hwgen computes the dividers. nextpnr derives the output frequencies from that of clk_in.

`default_nettype none

module agg_pll #(
    parameter integer INPUT = 1,  // dividers: 1..128
    parameter integer FEEDBACK = 1,  // 1..80
    parameter integer PRIMARY = 8,
    parameter integer SECONDARY = 8
) (
    input  wire clk_in,
    output wire clk_primary,
    output wire clk_secondary,
    output wire locked
);

  wire unused_clkos2;
  wire unused_clkos3;
  wire unused_intlock;
  wire unused_refclk;
  wire unused_clkintfb;

  // Charge pump and loop filter as set by Lattice's own generator for such frequencies.
  (* ICP_CURRENT = "12" *)
  (* LPF_RESISTOR = "8" *)
  (* MFG_ENABLE_FILTEROPAMP = "1" *)
  (* MFG_GMCREF_SEL = "2" *)
  EHXPLLL #(
      .CLKI_DIV       (INPUT),
      .CLKFB_DIV      (FEEDBACK),
      .FEEDBK_PATH    ("CLKOP"),
      .CLKOP_ENABLE   ("ENABLED"),
      .CLKOP_DIV      (PRIMARY),
      .CLKOP_CPHASE   (PRIMARY - 1),
      .CLKOP_FPHASE   (0),
      .CLKOS_ENABLE   ("ENABLED"),
      .CLKOS_DIV      (SECONDARY),
      .CLKOS_CPHASE   (SECONDARY - 1),
      .CLKOS_FPHASE   (0),
      .CLKOS2_ENABLE  ("DISABLED"),
      .CLKOS3_ENABLE  ("DISABLED"),
      .OUTDIVIDER_MUXA("DIVA"),
      .OUTDIVIDER_MUXB("DIVB"),
      .OUTDIVIDER_MUXC("DIVC"),
      .OUTDIVIDER_MUXD("DIVD"),
      .PLLRST_ENA     ("DISABLED"),
      .STDBY_ENABLE   ("DISABLED"),
      .DPHASE_SOURCE  ("DISABLED"),
      .INTFB_WAKE     ("DISABLED"),
      .PLL_LOCK_MODE  (0)
  ) u_pll (
      .CLKI        (clk_in),
      .CLKFB       (clk_primary),
      .RST         (1'b0),
      .STDBY       (1'b0),
      .PHASESEL0   (1'b0),
      .PHASESEL1   (1'b0),
      .PHASEDIR    (1'b0),
      .PHASESTEP   (1'b0),
      .PHASELOADREG(1'b0),
      .PLLWAKESYNC (1'b0),
      .ENCLKOP     (1'b0),
      .ENCLKOS     (1'b0),
      .ENCLKOS2    (1'b0),
      .ENCLKOS3    (1'b0),
      .CLKOP       (clk_primary),
      .CLKOS       (clk_secondary),
      .CLKOS2      (unused_clkos2),
      .CLKOS3      (unused_clkos3),
      .LOCK        (locked),
      .INTLOCK     (unused_intlock),
      .REFCLK      (unused_refclk),
      .CLKINTFB    (unused_clkintfb)
  );

endmodule

`default_nettype wire
