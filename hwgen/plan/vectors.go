package plan

import (
	"fmt"
	"math/bits"

	"tributary/hwgen/netlist"
)

// bit selects a bit of a vector that is one bit wide when width is 1.
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

// indexWidth returns the bits of a number below n, at least one.
func indexWidth(n int) int { return max(1, bits.Len(uint(n-1))) }
