// The sum "tree" (section 7.3 of the specification).

package arithmetic

import (
	"math"
	"math/bits"
)

// tree adds neighbours, level by level. Its first node above the leaves splits n ports at the
// largest power of two below n: pairs of whole subtrees come from the left.
//
// A node of a narrow format is an addition in fp32, rounded again. That is as good as rounding the
// real sum once: fp32 has 24 places, and twice the narrow format's places (8, 11, 3 or 4), and 2
// more, are enough for two numbers of that format (S. A. Figueroa, When is double rounding
// innocuous?, SIGNUM Newsletter 30(3), 1995). Where the sum is subnormal in the narrow format, it
// is a multiple of that format's least positive number below 2^24 of them, so fp32 holds it.
func (a *Arithmetic) tree(w *Workspace, from, to int) {
	top := a.subtree(w, 0, w.used, 0, from, to)
	for i, x := range top {
		w.sums[from+i] = canonical(x)
	}
}

// subtree returns the sums of n ports from port first on. Absent ports add nothing: the sum is that
// of the others, and nil if all are absent. Levels from level on are scratch.
func (a *Arithmetic) subtree(w *Workspace, first, n, level, from, to int) []uint32 {
	if n == 1 {
		if w.rows[first] == nil {
			return nil
		}
		return w.wide[first][from:to]
	}
	left := 1 << (bits.Len(uint(n-1)) - 1)
	x := a.subtree(w, first, left, level, from, to)
	if x != nil {
		level++
	}
	y := a.subtree(w, first+left, n-left, level, from, to)
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	sum := w.levels[level-1][:to-from]
	a.addRows(sum, x, y)
	return sum
}

// addRows adds two rows; sum may be one of them.
func (a *Arithmetic) addRows(sum, x, y []uint32) {
	y, x = y[:len(sum)], x[:len(sum)]
	if a.out.cut == 0 {
		for i := range sum {
			sum[i] = math.Float32bits(math.Float32frombits(x[i]) + math.Float32frombits(y[i]))
		}
		return
	}
	for i := range sum {
		sum[i] = a.out.round(math.Float32bits(math.Float32frombits(x[i]) + math.Float32frombits(y[i])))
	}
}
