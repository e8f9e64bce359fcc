package boards

import "fmt"

// Family is an FPGA family: the ranges of its PLL, and the tools that build a card for it.
//
// A new family needs a type in this package, and a field of Board with the part's name in
// the family's tools. It also needs leaves with the family's cells in rtl/board/NAME, and a
// build script in hwgen/emit/board/NAME.
type Family interface {
	// Name is the name of the folders with the family's leaves and its build script.
	Name() string

	// Title is the family's name, for people.
	Title() string

	// IsTimed reports whether tools pinned by this repository place, route and time the
	// family. Otherwise only cells are recorded.
	IsTimed() bool

	// Constraints is the file extension of the constraints on pins and clocks.
	Constraints() string

	// constraints returns the text of the constraints.
	constraints(b Board, coreMHz int) string

	// pll computes the dividers of agg_pll, if any exist.
	pll(b Board, coreMHz int) (PLL, bool)

	// check returns all mistakes of the part in a board's file.
	check(b Board) error
}

// Family returns the family of the board's FPGA.
func (b Board) Family() Family { return b.families()[0] }

// families returns every family for which the board's file names a part.
func (b Board) families() (given []Family) {
	if len(b.Nextpnr) > 0 {
		given = append(given, ecp5{})
	}
	if b.Vivado != nil {
		given = append(given, xc7{})
	}
	return given
}

// checkFamily checks that the board's file names the part for exactly one family.
func (b Board) checkFamily() error {
	given := b.families()
	if len(given) != 1 {
		return fmt.Errorf("the part is named for %d tools: must be for exactly one of nextpnr, vivado", len(given))
	}
	return nil
}

// Constraints returns the name and text of the file that constrains the pins and clocks of
// a card on this board.
func (b Board) Constraints(coreMHz int) (name, text string) {
	return b.Name + b.Family().Constraints(), b.Family().constraints(b, coreMHz)
}
