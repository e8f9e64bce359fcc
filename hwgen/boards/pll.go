package boards

import (
	"fmt"
	"slices"
	"strings"
)

// PLL has the parameters of agg_pll. Their exact meaning depends on the family.
type PLL struct {
	Input, Feedback, Primary, Secondary int

	// InputPS is the input's period in picoseconds, for an agg_pll with that parameter;
	// otherwise 0.
	InputPS int

	// CorePrimary is true if the primary output drives the core, and the secondary output
	// the link. If the link's clock is an input, the secondary output is unused. Otherwise
	// the primary output drives the link, and the secondary output the core.
	CorePrimary bool
}

// fastestMHz exceeds the clocks of all families.
const fastestMHz = 500

// PLL derives the core's clock from the board's oscillator, and the link's clock unless it
// is an input. It fails if the PLL cannot make these frequencies exactly.
func (b Board) PLL(coreMHz int) (PLL, error) {
	if p, ok := b.pll(coreMHz); ok {
		return p, nil
	}
	return PLL{}, fmt.Errorf("%d MHz: the PLL of %s cannot make it from %d MHz; %s",
		coreMHz, b.Name, b.Clock.MHz, b.choices(coreMHz))
}

// pll returns the dividers of the board's FPGA.
func (b Board) pll(coreMHz int) (p PLL, ok bool) {
	if coreMHz < 1 {
		return p, false
	}
	return b.Family().pll(b, coreMHz)
}

// choices describes the frequencies that the PLL can make instead of mhz: their number,
// their range and the nearest four.
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
