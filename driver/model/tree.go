// The sum "tree" (section 7.3 of the specification): the definition in integers; and for chunks of
// fp32, the processor's additions.

package model

import (
	"math"

	"tributary/driver/wire"
)

// tree adds neighbours pairwise, level by level; an odd one out passes up
// unchanged. Every addition rounds.
type tree struct{ *float }

func newTree(f *float) sum {
	if f.Format == wire.FP32 {
		return &treeFP32{tree{f}}
	}
	return &tree{f}
}

func (t *tree) element(x []uint32) uint32 {
	for len(x) > 1 {
		pairs := len(x) / 2
		for i := range pairs {
			x[i] = t.add(x[2*i], x[2*i+1])
		}
		x = passOddOne(x, pairs)
	}
	return t.canonical(x[0])
}

func (t *tree) chunk(y []uint32, rows [][]uint32) {
	t.sumRows(y, rows, func(x, y []uint32) {
		for i := range x {
			x[i] = t.add(x[i], y[i])
		}
	})
}

// sumRows adds rows by the tree; add writes the sum to the first of its two rows. An absent port is
// an operand that changes nothing.
func (t *tree) sumRows(y []uint32, rows [][]uint32, add func(x, y []uint32)) {
	for len(rows) > 1 {
		pairs := len(rows) / 2
		for i := range pairs {
			left, right := rows[2*i], rows[2*i+1]
			switch {
			case len(left) == 0:
				left = right
			case len(right) != 0:
				add(left, right[:len(left)])
			}
			rows[i] = left
		}
		rows = passOddOne(rows, pairs)
	}
	for i, x := range rows[0][:len(y)] {
		y[i] = t.canonical(x)
	}
}

// passOddOne returns the next level, in which the sums of pairs are already in place.
func passOddOne[T any](level []T, pairs int) []T {
	if len(level)%2 == 1 {
		level[pairs] = level[len(level)-1]
		pairs++
	}
	return level[:pairs]
}

// treeFP32 adds chunks with the processor, which rounds to nearest even and keeps subnormals. It
// replaces NaNs only at the top.
type treeFP32 struct{ tree }

func (t *treeFP32) chunk(y []uint32, rows [][]uint32) {
	t.sumRows(y, rows, func(x, y []uint32) {
		y = y[:len(x)]
		for i := range x {
			x[i] = math.Float32bits(math.Float32frombits(x[i]) + math.Float32frombits(y[i]))
		}
	})
}

// exactDistance is the largest distance at which two significands of at most 24 bits are added
// exactly, in 63 bits. Beyond it, the smaller number is less than 2^-14 of the other's last place,
// and can only break ties.
const exactDistance = 38

// add returns the sum of two numbers.
func (f *float) add(a, b uint32) uint32 {
	if f.isNonfinite(a) || f.isNonfinite(b) || a == f.sign && b == f.sign {
		sum, _ := f.special([]uint32{a, b})
		return sum
	}
	if f.place(a) < f.place(b) {
		a, b = b, a
	}
	place, distance := f.place(b), f.place(a)-f.place(b)
	high, low := f.significand(a), f.significand(b)
	if distance > exactDistance {
		place, distance = f.place(a)-exactDistance, exactDistance
		low = min(max(low, -1), 1)
	}
	sum := high<<distance + low
	if sum == 0 {
		return 0
	}
	return f.roundSigned(sum, place)
}
