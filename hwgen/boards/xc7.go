package boards

import (
	"errors"
	"fmt"
	"strings"
)

// Vivado has the part's name in AMD's Vivado, and settings of the board besides pins.
type Vivado struct {
	Part        string  `json:"part"`
	ConfigVolts float64 `json:"config_volts"` // of bank 0, the configuration bank: 3.3 or 2.5
}

// xc7 is AMD's 7 series, formerly Xilinx (Artix-7 and similar), built with Vivado.
type xc7 struct{}

func (xc7) Name() string        { return "xc7" }
func (xc7) Title() string       { return "AMD 7 series" }
func (xc7) IsTimed() bool       { return false }
func (xc7) Constraints() string { return ".xdc" }

func (xc7) check(b Board) error {
	var errs []error
	if b.Vivado.Part == "" {
		errs = append(errs, errors.New("vivado.part is empty"))
	}
	if v := b.Vivado.ConfigVolts; v != 3.3 && v != 2.5 {
		errs = append(errs, fmt.Errorf("vivado.config_volts is %g: must be 3.3 or 2.5", v))
	}
	if b.Link().Timing() == nil {
		errs = append(errs, fmt.Errorf("the timing of the pins of %s, which Vivado needs, is unknown: use another link on a 7-series FPGA", b.Link().Title()))
	}
	return errors.Join(errs...)
}

// pll returns the parameters of a PLLE2_BASE: the fastest phase detector, and the slowest
// oscillator that it allows. Both outputs divide the oscillator. The link's clock is an
// input of the FPGA.
//
// The ranges are for the slowest speed grade, -1 (AMD, DS181: PLL specification), and so is
// the limit of a global clock buffer (DS189, table 32, of the same generation).
func (xc7) pll(b Board, coreMHz int) (p PLL, ok bool) {
	const (
		maxInput, minFeedback, maxFeedback, maxOutput = 56, 2, 64, 128
		minPhaseMHz, maxPhaseMHz                      = 19, 450 // at the phase detector
		minOscillatorMHz, maxOscillatorMHz            = 800, 1600
		maxBufferMHz                                  = 464
	)
	if coreMHz > maxBufferMHz {
		return p, false
	}
	in := b.Clock.MHz
	p.CorePrimary, p.InputPS = true, periodPS(in)
	for p.Input = 1; p.Input <= maxInput && in >= minPhaseMHz*p.Input; p.Input++ {
		for p.Feedback = minFeedback; p.Feedback <= maxFeedback; p.Feedback++ {
			// In MHz times Input, so that nothing is rounded.
			oscillator := in * p.Feedback
			p.Primary = oscillator / (coreMHz * p.Input)
			p.Secondary = p.Primary
			if in <= maxPhaseMHz*p.Input &&
				oscillator >= minOscillatorMHz*p.Input && oscillator <= maxOscillatorMHz*p.Input &&
				p.Primary*coreMHz*p.Input == oscillator && p.Primary <= maxOutput {
				return p, true
			}
		}
	}
	return p, false
}

// tracesNS is the assumed round-trip delay of the board's traces, in nanoseconds: 8 cm
// each way. With it, the limits of a FIFO's bus contain those of Digilent's own
// controller for such a chip: 1 to 7.15 ns, and 8.6 ns before an edge.
const tracesNS = 1.1

// constraints returns an .xdc, as Vivado reads it.
func (f xc7) constraints(b Board, coreMHz int) string {
	var t strings.Builder
	b.writeSources(&t)
	link := b.Link().ClockPorts()[0]
	fmt.Fprintf(&t, `
# Clocks. clk is the PLL's output, %d MHz.
create_clock -name clk_in -period %s [get_ports clk_in]
create_generated_clock -name clk [get_pins u_pll/u_pll/CLKOUT0]
create_clock -name %[3]s -period %[4]s [get_ports %[3]s]
`, coreMHz, period(b.Clock.MHz), link, period(b.Link().MHz()))
	writeTimes(&t, b.Link().Timing(), link)
	writeCrossing(&t, link, period(max(coreMHz, b.Link().MHz())))
	t.WriteString(`
# LEDs: their timing is irrelevant.
set_false_path -to [get_ports {led_link led_traffic led_error}]

# Pins
`)
	for _, p := range b.Pins() {
		fmt.Fprintf(&t, "set_property -dict {PACKAGE_PIN %s IOSTANDARD %s", p.Site, p.IO)
		if p.Slew != "" {
			fmt.Fprintf(&t, " SLEW %s", p.Slew)
		}
		if p.Drive != 0 {
			fmt.Fprintf(&t, " DRIVE %d", p.Drive)
		}
		fmt.Fprintf(&t, "} [get_ports {%s}]\n", p.Port)
	}
	level := "VCCO"
	if b.Vivado.ConfigVolts < 3 {
		level = "GND"
	}
	fmt.Fprintf(&t, `
# Configuration bank and bitstream
set_property CONFIG_VOLTAGE %.1f [current_design]
set_property CFGBVS %s [current_design]
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
`, b.Vivado.ConfigVolts, level)
	return t.String()
}

// writeTimes constrains the paths between the link's pins and registers.
func writeTimes(t *strings.Builder, times *Timing, clock string) {
	fmt.Fprintf(t, `
# Timing of the chip at the link's pins, from a rising edge of %[1]s at its own pins:
#   its outputs change %[2]g to %[3]g ns after the edge,
#   its inputs need %[4]g ns of setup and %[5]g ns of hold
# (%[6]s).
# The maximum delays include %[7]g ns for traces.
set_input_delay -clock %[1]s -min %.2[8]f [get_ports {%[9]s}]
set_input_delay -clock %[1]s -max %.2[10]f [get_ports {%[9]s}]
set_output_delay -clock %[1]s -min %.2[11]f [get_ports {%[12]s}]
set_output_delay -clock %[1]s -max %.2[13]f [get_ports {%[12]s}]
`, clock, times.GivesFrom, times.GivesBy, times.Setup, times.Hold, times.Source, tracesNS,
		times.GivesFrom, strings.Join(times.Gives, " "), times.GivesBy+tracesNS,
		0-times.Hold, strings.Join(times.Takes, " "), times.Setup+tracesNS)
}

// writeCrossing limits the delays between the two clocks.
func writeCrossing(t *strings.Builder, link, period string) {
	fmt.Fprintf(t, `
# Signals between the unrelated clocks clk and %[1]s:
#   the Gray codes of agg_link_cross's FIFOs: bits arrive in order if their delays differ by less than a period,
#   the words in these FIFOs: stable two edges of the reader's clock before the read,
#   levels into agg_sync, and resets from agg_board_reset.
# The period of the faster clock is a sufficient limit for all of them, whatever the skew.
set_max_delay -datapath_only -from [get_clocks clk] -to [get_clocks %[1]s] %[2]s
set_max_delay -datapath_only -from [get_clocks %[1]s] -to [get_clocks clk] %[2]s
`, link, period)
}

// period returns a clock's period in nanoseconds, rounded down.
func period(mhz int) string {
	ps := periodPS(mhz)
	return fmt.Sprintf("%d.%03d", ps/1000, ps%1000)
}

func periodPS(mhz int) int { return 1_000_000 / mhz }
