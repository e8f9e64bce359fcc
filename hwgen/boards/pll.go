package boards

import (
	"fmt"
	"slices"
)

// PLL is what agg_pll is set to: the parameters of that name, which each family's PLL
// has in its own way.
type PLL struct {
	Input, Feedback, Primary, Secondary int

	// InputPS is the period of its input in picoseconds, where agg_pll is told that; else 0.
	InputPS int

	// CorePrimary says that the core has the primary clock, and the link the secondary,
	// which nobody has where the link's clock comes in by a pin; else the link has the
	// primary, the core the secondary.
	CorePrimary bool
}

// PLL works out how the core's clock, and the link's where no pin has it, come from the
// board's oscillator. It fails when they cannot, to the megahertz.
func (b Board) PLL(coreMHz int) (PLL, error) {
	if p, ok := b.pll(coreMHz); ok {
		return p, nil
	}
	return PLL{}, fmt.Errorf("%d MHz: the PLL of %s does not make that out of %d MHz; %v would do",
		coreMHz, b.Name, b.Clock.MHz, b.near(coreMHz))
}

// pll returns the dividers of the board's FPGA.
func (b Board) pll(coreMHz int) (p PLL, ok bool) {
	if coreMHz < 1 {
		return p, false
	}
	return b.Family().pll(b, coreMHz)
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
