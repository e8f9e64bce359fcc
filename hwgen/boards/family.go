package boards

import "fmt"

// Family is a kind of FPGA: what its PLL can do, and what builds a card for it.
//
// A further one is one more type of this package, a field of Board that names the part
// as its tools do, the leaves out of its own cells in rtl/NAME, and its build script in
// hwgen/emit/board/NAME.
type Family interface {
	// Name is that of the folders with its leaves and its build script.
	Name() string

	// Title is what people call it.
	Title() string

	// IsTimed says whether it is placed, routed and timed by tools that this repository
	// pins; else cells are all that is recorded of cards.
	IsTimed() bool

	// Constraints is how the name of the file ends that tells its tools of pins and clocks.
	Constraints() string

	// constraints returns the text of that file.
	constraints(b Board, coreMHz int) string

	// pll works out the dividers of agg_pll, where there are any.
	pll(b Board, coreMHz int) (PLL, bool)

	// check returns all that is wrong with the part in a board's file.
	check(b Board) error
}

// Family returns what the board's FPGA is one of.
func (b Board) Family() Family { return b.families()[0] }

// families returns every family as one of which the board's file names the part.
func (b Board) families() (given []Family) {
	if len(b.Nextpnr) > 0 {
		given = append(given, ecp5{})
	}
	if b.Vivado != nil {
		given = append(given, xc7{})
	}
	return given
}

// checkFamily returns all that is wrong with how the part is named.
func (b Board) checkFamily() error {
	given := b.families()
	if len(given) != 1 {
		return fmt.Errorf("the part is named for %d tools: must be for exactly one of nextpnr, vivado", len(given))
	}
	return nil
}

// Constraints returns the constraints of a card on this board, of pins and clocks, and
// the name of their file.
func (b Board) Constraints(coreMHz int) (name, text string) {
	return b.Name + b.Family().Constraints(), b.Family().constraints(b, coreMHz)
}
