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

// element selects an element of a vector by the name of its index: a wire or a genvar. A vector
// of one element has no index.
func element(name string, width, count int, index string) string {
	switch {
	case count == 1:
		return name
	case width == 1:
		return fmt.Sprintf("%s[%s]", name, index)
	}
	return fmt.Sprintf("%s[%d*%s+:%d]", name, width, index, width)
}

// join concatenates the parts, the first in the lowest bits.
func join(count int, part func(int) string) string {
	var parts []string
	for i := count - 1; i >= 0; i-- {
		parts = append(parts, part(i))
	}
	if count == 1 {
		return parts[0]
	}
	return netlist.Concat(parts...)
}

// repeat concatenates a net with itself.
func repeat(times int, name string) string {
	if times == 1 {
		return name
	}
	return fmt.Sprintf("{%d{%s}}", times, name)
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

// nameAll returns the name of each field, and the width of all of them together.
func nameAll(fields []jobWire, name func(jobWire) string) (names []string, width int) {
	for _, f := range fields {
		names = append(names, name(f))
		width += f.width
	}
	return names, width
}

// prefixer returns a function for nameAll that puts a prefix before a field's name.
func prefixer(prefix string) func(jobWire) string {
	return func(f jobWire) string { return prefix + f.name }
}
