package operands

import "iter"

// Permutations yields x in every order of its elements, starting with the current one (Heap's
// algorithm: B. R. Heap, Permutations by Interchanges, 1963). It permutes x in place.
func Permutations(x []uint32) iter.Seq[[]uint32] {
	return func(yield func([]uint32) bool) {
		if !yield(x) {
			return
		}
		count := make([]int, len(x))
		for i := 1; i < len(x); {
			if count[i] == i {
				count[i] = 0
				i++
				continue
			}
			x[i], x[i%2*count[i]] = x[i%2*count[i]], x[i]
			if !yield(x) {
				return
			}
			count[i]++
			i = 1
		}
	}
}

// Hurts reports whether vectors of this kind are made to expose sums that depend on the order of
// their operands.
func Hurts(kind string) bool {
	switch kind {
	case "broken ties", "cancelling pairs", "ladders", "edge of overflow", "NaNs and infinities", "sums about a limit":
		return true
	}
	return false
}
