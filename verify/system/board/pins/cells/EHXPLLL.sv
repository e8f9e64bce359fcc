// A PLL of an ECP5, as agg_pll sets it up: feedback from CLKOP, outputs in phase with one another.
//
// Time is in femtoseconds. It measures CLKI's period over its first edges, lets its outputs run, and says so with LOCK a while
// later. From then on each edge comes where the dividers have it, up to JITTER fs late, drawn for each: where
// two outputs have edges at the same time, either may be first.
//
// Not modelled: the time to lock, which is up to 15 ms; outputs before it, which may have any frequency; loss of
// lock; and all that agg_pll leaves alone: other phases and feedback, standby, the third and fourth output.

`default_nettype none

module EHXPLLL #(
    parameter integer CLKI_DIV = 1,
    parameter integer CLKFB_DIV = 1,
    parameter FEEDBK_PATH = "CLKOP",
    parameter CLKOP_ENABLE = "ENABLED",
    parameter integer CLKOP_DIV = 8,
    parameter integer CLKOP_CPHASE = 0,
    parameter integer CLKOP_FPHASE = 0,
    parameter CLKOS_ENABLE = "DISABLED",
    parameter integer CLKOS_DIV = 8,
    parameter integer CLKOS_CPHASE = 0,
    parameter integer CLKOS_FPHASE = 0,
    parameter CLKOS2_ENABLE = "DISABLED",
    parameter CLKOS3_ENABLE = "DISABLED",
    parameter OUTDIVIDER_MUXA = "DIVA",
    parameter OUTDIVIDER_MUXB = "DIVB",
    parameter OUTDIVIDER_MUXC = "DIVC",
    parameter OUTDIVIDER_MUXD = "DIVD",
    parameter PLLRST_ENA = "DISABLED",
    parameter STDBY_ENABLE = "DISABLED",
    parameter DPHASE_SOURCE = "DISABLED",
    parameter INTFB_WAKE = "DISABLED",
    parameter integer PLL_LOCK_MODE = 0
) (
    input  wire CLKI,
    input  wire CLKFB,
    input  wire RST,
    input  wire STDBY,
    input  wire PHASESEL0,
    input  wire PHASESEL1,
    input  wire PHASEDIR,
    input  wire PHASESTEP,
    input  wire PHASELOADREG,
    input  wire PLLWAKESYNC,
    input  wire ENCLKOP,
    input  wire ENCLKOS,
    input  wire ENCLKOS2,
    input  wire ENCLKOS3,
    output wire CLKOP,
    output wire CLKOS,
    output wire CLKOS2,
    output wire CLKOS3,
    output wire LOCK,
    output wire INTLOCK,
    output wire REFCLK,
    output wire CLKINTFB
);

  localparam integer MEASURED = 32;  // periods of CLKI
  localparam integer SETTLE = 100;  // edges of CLKOP until LOCK
  localparam integer JITTER = 100000;  // 0.1 ns, in fs

  reg op_reg;
  reg os_reg;
  reg lock_reg;
  reg runs_reg;
  real half;  // of a period of the oscillator inside
  real begun;

  // What the ECP5 can do (Lattice, FPGA-DS-02012: sysCLOCK PLL timing), and this model.
  task check;
    real oscillator;  // MHz
    begin
      oscillator = 0.5e9 / half;
      if (oscillator < 399.99 || oscillator > 800.01) $fatal(1, "the PLL's oscillator at %f MHz", oscillator);
      if (oscillator / CLKOP_DIV / CLKFB_DIV < 9.99) $fatal(1, "the PLL's phase detector below 10 MHz");
      if (FEEDBK_PATH != "CLKOP" || CLKOP_ENABLE != "ENABLED") $fatal(1, "the PLL's feedback is not CLKOP");
      if (CLKOP_CPHASE != CLKOP_DIV - 1 || CLKOS_CPHASE != CLKOS_DIV - 1) $fatal(1, "the PLL's phases");
      if (CLKOP_FPHASE != 0 || CLKOS_FPHASE != 0) $fatal(1, "the PLL's fine phases");
    end
  endtask

  initial begin : measure
    real first;
    op_reg   = 1'b0;
    os_reg   = 1'b0;
    lock_reg = 1'b0;
    runs_reg = 1'b0;
    @(posedge CLKI);
    first = $realtime;
    repeat (MEASURED) @(posedge CLKI);
    begun = $realtime;
    half = (begun - first) * CLKI_DIV / (2.0 * MEASURED * CLKFB_DIV * CLKOP_DIV);
    check;
    runs_reg = 1'b1;
    repeat (SETTLE) @(posedge op_reg);
    lock_reg = 1'b1;
  end

  // An edge that is due at a time, in fs, is so far away.
  function automatic [31:0] away(input real due);
    away = $rtoi(due - $realtime) + $urandom_range(JITTER, 0);
  endfunction

  initial begin : primary
    real due;
    @(posedge runs_reg);
    due = begun;
    forever begin
      due = due + CLKOP_DIV * half;
      #(away(due)) op_reg = !op_reg;
    end
  end

  initial begin : secondary
    real due;
    @(posedge runs_reg);
    due = begun;
    forever begin
      due = due + CLKOS_DIV * half;
      #(away(due)) os_reg = !os_reg;
    end
  end

  assign CLKOP    = op_reg;
  assign CLKOS    = os_reg && CLKOS_ENABLE == "ENABLED";
  assign CLKOS2   = 1'b0;
  assign CLKOS3   = 1'b0;
  assign LOCK     = lock_reg;
  assign INTLOCK  = 1'b0;
  assign REFCLK   = 1'b0;
  assign CLKINTFB = 1'b0;

endmodule

`default_nettype wire
