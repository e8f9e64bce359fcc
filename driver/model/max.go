// The sum "max" (section 7.10 of the specification).

package model

import "math"

// largest returns the largest member.
type largest struct {
	*float
	columns
}

func (l *largest) chunk(y []uint32, rows [][]uint32) { l.columns.chunk(y, rows, l.element) }

func (l *largest) element(x []uint32) uint32 {
	top := x[0]
	for _, e := range x {
		if l.isNaN(e) {
			return l.NaN
		}
		if l.rank(e) > l.rank(top) {
			top = e
		}
	}
	return top
}

// rank returns a number's position in the order of all numbers: the magnitude's encoding, or -1
// minus it for a negative number, so that -0 is just below +0.
func (l *largest) rank(x uint32) int64 {
	magnitude := int64(x &^ l.sign)
	if l.isNegative(x) {
		return -1 - magnitude
	}
	return magnitude
}

// largestInteger returns the largest integer. It never overflows.
type largestInteger struct{}

func (largestInteger) element(x []uint32) (y uint32, overflowed bool) {
	top := int32(math.MinInt32)
	for _, e := range x {
		top = max(top, int32(e))
	}
	return uint32(top), false
}

func (largestInteger) chunk(y []uint32, rows [][]uint32) (overflowed int) {
	for i := range y {
		top := int32(math.MinInt32)
		for _, row := range rows {
			if len(row) != 0 {
				top = max(top, int32(row[i]))
			}
		}
		y[i] = uint32(top)
	}
	return 0
}
