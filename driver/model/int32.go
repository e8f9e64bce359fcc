// The sum of int32, which all sums that add share (section 7.6 of the
// specification).

package model

import "math"

// integers adds whole numbers: modulo 2^32, or to the nearest number that int32
// has.
type integers struct{ saturate bool }

func newIntegers(saturate bool) integerSum { return &integers{saturate} }

// element returns the sum of x, and whether it is beyond the format.
func (n *integers) element(x []uint32) (y uint32, overflowed bool) {
	var sum int64
	for _, e := range x {
		sum += int64(int32(e))
	}
	return n.fit(sum)
}

// chunk writes the sums of rows to y; an empty row is of a port that is no
// member. It returns how many are beyond the format.
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

// fit returns the number that stands for a sum.
func (n *integers) fit(sum int64) (y uint32, overflowed bool) {
	nearest := min(max(sum, math.MinInt32), math.MaxInt32)
	if n.saturate {
		return uint32(nearest), nearest != sum
	}
	return uint32(sum), nearest != sum
}
