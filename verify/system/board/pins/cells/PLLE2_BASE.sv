// A PLL of AMD's 7 series, as agg_pll sets it up: feedback by itself, two outputs.
//
// Time is in femtoseconds. It measures CLKIN1's period over its first edges, lets its outputs run, and says so with LOCKED
// a while later. From then on each edge comes where the dividers have it, up to JITTER fs late, drawn for each.
//
// Not modelled: the time to lock, which is up to 0.1 ms; outputs before it, which may have any frequency; loss of lock;
// and all that agg_pll leaves alone: phases and duty cycles, four more outputs, reset and power-down.

`default_nettype none

module PLLE2_BASE #(
    parameter BANDWIDTH = "OPTIMIZED",
    parameter real CLKIN1_PERIOD = 0.0,
    parameter integer DIVCLK_DIVIDE = 1,
    parameter integer CLKFBOUT_MULT = 5,
    parameter integer CLKOUT0_DIVIDE = 1,
    parameter integer CLKOUT1_DIVIDE = 1
) (
    input  wire CLKIN1,
    input  wire CLKFBIN,
    input  wire RST,
    input  wire PWRDWN,
    output wire CLKFBOUT,
    output wire CLKOUT0,
    output wire CLKOUT1,
    output wire CLKOUT2,
    output wire CLKOUT3,
    output wire CLKOUT4,
    output wire CLKOUT5,
    output wire LOCKED
);

  localparam integer MEASURED = 32;  // periods of CLKIN1
  localparam integer SETTLE = 100;  // edges of CLKOUT0 until LOCKED
  localparam integer JITTER = 100000;  // 0.1 ns, in fs

  reg out0_reg;
  reg out1_reg;
  reg locked_reg;
  reg runs_reg;
  real half;  // of a period of the oscillator inside
  real begun;

  // What a part of the slowest grade can do (AMD, DS181: PLL specification), and this model.
  task check;
    real oscillator;  // MHz
    real phase;
    begin
      oscillator = 0.5e9 / half;
      if (CLKIN1_PERIOD * oscillator / CLKFBOUT_MULT * DIVCLK_DIVIDE < 999.0 ||
          CLKIN1_PERIOD * oscillator / CLKFBOUT_MULT * DIVCLK_DIVIDE > 1001.0)
        $fatal(1, "the PLL's input is said to have a period of %f ns", CLKIN1_PERIOD);
      phase = oscillator / CLKFBOUT_MULT;
      if (oscillator < 799.99 || oscillator > 1600.01) $fatal(1, "the PLL's oscillator at %f MHz", oscillator);
      if (phase < 18.99 || phase > 450.01) $fatal(1, "the PLL's phase detector at %f MHz", phase);
      if (DIVCLK_DIVIDE < 1 || DIVCLK_DIVIDE > 56) $fatal(1, "the PLL's input is divided by %d", DIVCLK_DIVIDE);
      if (CLKFBOUT_MULT < 2 || CLKFBOUT_MULT > 64) $fatal(1, "the PLL multiplies by %d", CLKFBOUT_MULT);
      if (CLKOUT0_DIVIDE < 1 || CLKOUT0_DIVIDE > 128) $fatal(1, "the PLL divides by %d", CLKOUT0_DIVIDE);
      if (CLKOUT1_DIVIDE < 1 || CLKOUT1_DIVIDE > 128) $fatal(1, "the PLL divides by %d", CLKOUT1_DIVIDE);
    end
  endtask

  initial begin : measure
    real first;
    out0_reg   = 1'b0;
    out1_reg   = 1'b0;
    locked_reg = 1'b0;
    runs_reg   = 1'b0;
    @(posedge CLKIN1);
    first = $realtime;
    repeat (MEASURED) @(posedge CLKIN1);
    begun = $realtime;
    half = (begun - first) * DIVCLK_DIVIDE / (2.0 * MEASURED * CLKFBOUT_MULT);
    check;
    runs_reg = 1'b1;
    repeat (SETTLE) @(posedge out0_reg);
    locked_reg = 1'b1;
  end

  // An edge that is due at a time, in fs, is so far away.
  function automatic [31:0] away(input real due);
    away = $rtoi(due - $realtime) + $urandom_range(JITTER, 0);
  endfunction

  initial begin : output0
    real due;
    @(posedge runs_reg);
    due = begun;
    forever begin
      due = due + CLKOUT0_DIVIDE * half;
      #(away(due)) out0_reg = !out0_reg;
    end
  end

  initial begin : output1
    real due;
    @(posedge runs_reg);
    due = begun;
    forever begin
      due = due + CLKOUT1_DIVIDE * half;
      #(away(due)) out1_reg = !out1_reg;
    end
  end

  assign CLKFBOUT = 1'b0;
  assign CLKOUT0  = out0_reg && !RST && !PWRDWN;
  assign CLKOUT1  = out1_reg && !RST && !PWRDWN;
  assign CLKOUT2  = 1'b0;
  assign CLKOUT3  = 1'b0;
  assign CLKOUT4  = 1'b0;
  assign CLKOUT5  = 1'b0;
  assign LOCKED   = locked_reg && !RST && !PWRDWN;

endmodule

`default_nettype wire
