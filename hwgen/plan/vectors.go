package plan

import (
	"fmt"
	"math/bits"

	"tributary/hwgen/netlist"
)

// bit selects one bit of a vector of the given width.
func bit(name string, at, width int) string {
	if width == 1 {
		return name
	}
	return netlist.Slice(name, at, 1)
}

// widen pads a vector with zeros above.
func widen(name string, from, to int) string {
	if from == to {
		return name
	}
	return netlist.Concat(fmt.Sprintf("%d'd0", to-from), name)
}

// indexWidth returns the width of a number below n, at least 1 bit.
func indexWidth(n int) int { return max(1, bits.Len(uint(n-1))) }
