package boards

import (
	"fmt"
	"slices"
	"strings"
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

// fastestMHz is what no family's clocks go beyond.
const fastestMHz = 500

// PLL works out how the core's clock, and the link's where no pin has it, come from the
// board's oscillator. It fails when they cannot, to the megahertz.
func (b Board) PLL(coreMHz int) (PLL, error) {
	if p, ok := b.pll(coreMHz); ok {
		return p, nil
	}
	return PLL{}, fmt.Errorf("%d MHz: the PLL of %s does not make that out of %d MHz; %s",
		coreMHz, b.Name, b.Clock.MHz, b.choices(coreMHz))
}

// pll returns the dividers of the board's FPGA.
func (b Board) pll(coreMHz int) (p PLL, ok bool) {
	if coreMHz < 1 {
		return p, false
	}
	return b.Family().pll(b, coreMHz)
}

// choices says what the PLL makes in the place of a frequency that it cannot make:
// how many, from where to where, and the four that are nearest.
func (b Board) choices(mhz int) string {
	var made []int
	for f := 1; f <= fastestMHz; f++ {
		if _, ok := b.pll(f); ok {
			made = append(made, f)
		}
	}
	if len(made) < 2 {
		return fmt.Sprintf("it makes %d clocks for a card", len(made))
	}
	all := fmt.Sprintf("of the %d that it makes, from %d to %d,", len(made), made[0], made[len(made)-1])
	slices.SortStableFunc(made, func(f, g int) int { return max(f-mhz, mhz-f) - max(g-mhz, mhz-g) })
	near := made[:min(4, len(made))]
	slices.Sort(near)
	last := len(near) - 1
	return fmt.Sprintf("%s the nearest are %s and %d", all, strings.Trim(strings.ReplaceAll(fmt.Sprint(near[:last]), " ", ", "), "[]"), near[last])
}
