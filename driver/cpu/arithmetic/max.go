// The sum "max" (section 7.10 of the specification).

package arithmetic

// largest picks the largest number. NaN is above all.
func (a *Arithmetic) largest(w *Workspace, from, to int) {
	for i := from; i < to; i++ {
		best := int32(-1 << 31) // the key of a NaN, below those of numbers
		bad := false
		for k := range w.used {
			x := w.wide[k][i]
			bad = bad || x&^signBit > infinity
			best = max(best, key(x))
		}
		w.sums[i] = uint32(key(uint32(best)))
		if bad {
			w.sums[i] = nan
		}
	}
}

// key returns an integer that orders numbers by value, -0 below +0. It is its own inverse.
func key(x uint32) int32 { return int32(x) ^ int32(uint32(int32(x)>>31)>>1) }

// largestInteger picks the largest integer.
func (a *Arithmetic) largestInteger(w *Workspace, from, to int) {
	sums := w.sums[from:to]
	for i := range sums {
		sums[i] = 1 << 31
	}
	for k := range w.used {
		for i, x := range w.wide[k][from:to] {
			sums[i] = uint32(max(int32(sums[i]), int32(x)))
		}
	}
}
