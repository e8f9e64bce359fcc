// The sum of int32, which is the same for all sums that add (section 7.6 of the specification).

package model

import "math"

// integers adds whole numbers: modulo 2^32, or clamped to int32.
type integers struct{ saturate bool }

func newIntegers(saturate bool) integerSum { return &integers{saturate} }

// element returns the sum of x, and whether it overflows int32.
func (n *integers) element(x []uint32) (y uint32, overflowed bool) {
	var sum int64
	for _, e := range x {
		sum += int64(int32(e))
	}
	return n.fit(sum)
}

// chunk writes the sums of rows to y; the row of a port that is no member is empty. It returns how
// many sums overflow int32.
func (n *integers) chunk(y []uint32, rows [][]uint32) (overflowed int) {
	for i := range y {
		var sum int64
		for _, row := range rows {
			if len(row) != 0 {
				sum += int64(int32(row[i]))
			}
		}
		fitted, over := n.fit(sum)
		y[i] = fitted
		if over {
			overflowed++
		}
	}
	return overflowed
}

// fit returns the encoding of a sum.
func (n *integers) fit(sum int64) (y uint32, overflowed bool) {
	nearest := min(max(sum, math.MinInt32), math.MaxInt32)
	if n.saturate {
		return uint32(nearest), nearest != sum
	}
	return uint32(sum), nearest != sum
}
