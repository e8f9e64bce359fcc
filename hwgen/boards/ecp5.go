package boards

import (
	"fmt"
	"strings"
)

// ecp5 is Lattice's ECP5, built with Yosys and nextpnr.
type ecp5 struct{}

func (ecp5) Name() string        { return "ecp5" }
func (ecp5) Title() string       { return "Lattice ECP5" }
func (ecp5) IsTimed() bool       { return true }
func (ecp5) Constraints() string { return ".lpf" }

func (ecp5) check(b Board) error {
	if b.Link().Timing() != nil {
		return fmt.Errorf("nextpnr does not check the timing of pins, which %s needs: use another link on an ECP5", b.Link().Title())
	}
	return nil
}

// The ranges of an ECP5's PLL (Lattice, FPGA-DS-02012: sysCLOCK PLL timing).
const (
	maxInputDivider    = 128
	maxFeedbackDivider = 80
	maxOutputDivider   = 128
	minPhaseMHz        = 10 // at the phase detector
	minOscillatorMHz   = 400
	maxOscillatorMHz   = 800
	maxOutputMHz       = 400
)

// pll returns the dividers. If the PLL makes both clocks, the link's is the primary output
// if possible, otherwise the core's. The primary output is the feedback.
func (f ecp5) pll(b Board, coreMHz int) (p PLL, ok bool) {
	if len(b.Link().ClockPorts()) > 0 {
		p, ok = f.dividers(b.Clock.MHz, coreMHz, coreMHz)
		p.CorePrimary = true
		return p, ok
	}
	if p, ok = f.dividers(b.Clock.MHz, b.Link().MHz(), coreMHz); !ok {
		p, ok = f.dividers(b.Clock.MHz, coreMHz, b.Link().MHz())
		p.CorePrimary = true
	}
	return p, ok
}

// dividers returns the dividers with the fastest phase detector for two clocks.
func (ecp5) dividers(in, primary, secondary int) (p PLL, ok bool) {
	if max(primary, secondary) > maxOutputMHz {
		return p, false
	}
	for p.Input = 1; p.Input <= maxInputDivider && in >= minPhaseMHz*p.Input; p.Input++ {
		p.Feedback = primary * p.Input / in
		if p.Feedback*in != primary*p.Input || p.Feedback > maxFeedbackDivider {
			continue
		}
		for p.Primary = 1; p.Primary <= maxOutputDivider; p.Primary++ {
			oscillator := primary * p.Primary
			p.Secondary = oscillator / secondary
			if oscillator >= minOscillatorMHz && oscillator <= maxOscillatorMHz &&
				p.Secondary*secondary == oscillator && p.Secondary <= maxOutputDivider {
				return p, true
			}
		}
	}
	return p, false
}

// constraints returns an .lpf for nextpnr. nextpnr derives the PLL's outputs from its
// input; timing.py checks the clock crossings.
func (ecp5) constraints(b Board, _ int) string {
	var t strings.Builder
	b.writeSources(&t)
	t.WriteString(`
# Clocks. nextpnr derives those of the PLL's outputs from that of its input.
`)
	fmt.Fprintf(&t, "FREQUENCY PORT \"clk_in\" %d MHZ;\n", b.Clock.MHz)
	for _, port := range b.Link().ClockPorts() {
		fmt.Fprintf(&t, "FREQUENCY PORT \"%s\" %d MHZ;\n", port, b.Link().MHz())
	}
	for _, p := range b.Pins() {
		fmt.Fprintf(&t, "\nLOCATE COMP \"%s\" SITE \"%s\";\n", p.Port, p.Site)
		fmt.Fprintf(&t, "IOBUF PORT \"%s\" IO_TYPE=%s", p.Port, p.IO)
		if p.Slew != "" {
			fmt.Fprintf(&t, " SLEWRATE=%s", p.Slew)
		}
		if p.Pull != "" {
			fmt.Fprintf(&t, " PULLMODE=%s", p.Pull)
		}
		t.WriteString(";\n")
	}
	return t.String()
}
