package boards

import (
	"fmt"
	"maps"
	"slices"
)

// PLL is what agg_pll is set to: the dividers of an ECP5's PLL, whose feedback is
// its primary output.
type PLL struct {
	Input, Feedback, Primary, Secondary int

	// CorePrimary says that the core has the primary clock, and the link the secondary,
	// which nobody has where the link's clock comes in by a pin; else the link has the
	// primary, the core the secondary.
	CorePrimary bool
}

// The ranges of an ECP5's PLL (Lattice, FPGA-DS-02012: sysCLOCK PLL timing).
const (
	maxInputDivider    = 128
	maxFeedbackDivider = 80
	maxOutputDivider   = 128
	minPhaseMHz        = 10 // at the phase detector
	minOscillatorMHz   = 400
	maxOscillatorMHz   = 800
)

// PLL works out how the core's clock, and the link's where no pin has it, come from the
// board's oscillator. It fails when they cannot, to the megahertz.
func (b Board) PLL(coreMHz int) (PLL, error) {
	if p, ok := b.pll(coreMHz); ok {
		return p, nil
	}
	return PLL{}, fmt.Errorf("%d MHz: the PLL of %s does not make that out of %d MHz; %v would do",
		coreMHz, b.Name, b.Clock.MHz, b.near(coreMHz))
}

// pll returns the dividers: where the PLL makes both clocks, the first of the two ways
// that does.
func (b Board) pll(coreMHz int) (p PLL, ok bool) {
	if coreMHz < 1 {
		return p, false
	}
	if b.Link().ClockPort() != "" {
		p, ok = b.dividers(coreMHz, coreMHz)
		p.CorePrimary = true
		return p, ok
	}
	if p, ok = b.dividers(b.Link().MHz(), coreMHz); !ok {
		p, ok = b.dividers(coreMHz, b.Link().MHz())
		p.CorePrimary = true
	}
	return p, ok
}

// dividers returns the dividers with the fastest phase detector for two clocks.
func (b Board) dividers(primary, secondary int) (p PLL, ok bool) {
	for p.Input = 1; p.Input <= maxInputDivider && b.Clock.MHz >= minPhaseMHz*p.Input; p.Input++ {
		p.Feedback = primary * p.Input / b.Clock.MHz
		if p.Feedback*b.Clock.MHz != primary*p.Input || p.Feedback > maxFeedbackDivider {
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

// near returns a few frequencies near one that the PLL cannot make.
func (b Board) near(mhz int) []int {
	var found []int
	for away := 1; away < 100 && len(found) < 4; away++ {
		for _, f := range []int{mhz - away, mhz + away} {
			if _, ok := b.pll(f); ok {
				found = append(found, f)
			}
		}
	}
	slices.Sort(found)
	return found
}

// sourceNames returns the names of the packages that the pins were read in, in
// alphabetical order.
func (b Board) sourceNames() []string { return slices.Sorted(maps.Keys(b.Sources)) }
