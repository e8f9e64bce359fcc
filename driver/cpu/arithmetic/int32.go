// Sums of int32 (section 7.6 of the specification).

package arithmetic

import "math"

// integers adds integers, and wraps or saturates. countIntegers finds the overflows in w.integers.
func (a *Arithmetic) integers(w *Workspace, from, to int) {
	all := w.integers[from:to]
	clear(all)
	for k := range w.used {
		for i, x := range w.wide[k][from:to] {
			all[i] += int64(int32(x))
		}
	}
	for i, sum := range all {
		if a.saturate {
			sum = min(max(sum, math.MinInt32), math.MaxInt32)
		}
		w.sums[from+i] = uint32(sum)
	}
}

// countIntegers reports the sums from..to of a tile that overflowed.
func (a *Arithmetic) countIntegers(w *Workspace, from, to, at int, r *report) {
	for i, sum := range w.integers[from:to] {
		if sum != int64(int32(sum)) {
			r.add(at+from+i, 0, false, true)
		}
	}
}
