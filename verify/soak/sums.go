package main

import (
	"math"
	"math/rand/v2"
)

// someArrays returns one array a rank, of numbers of all sizes and both signs.
func someArrays(rng *rand.Rand, ranks, n int) [][]float32 {
	all := make([][]float32, ranks)
	for r := range all {
		all[r] = make([]float32, n)
		for i := range all[r] {
			bits := rng.Uint32()
			if bits&0x7f800000 == 0x7f800000 {
				bits &^= 0x40000000 // neither NaN nor infinity
			}
			all[r][i] = math.Float32frombits(bits)
		}
	}
	return all
}

// treeSum is section 7.3 of the specification by the processor's additions: of n
// elements of the ports' parts, nil where a port contributes nothing.
func treeSum(parts [][]float32, n int) []float32 {
	sum := make([]float32, n)
	level := make([]float32, len(parts))
	for i := range sum {
		for p := range parts {
			if level[p] = identity; parts[p] != nil {
				level[p] = parts[p][i]
			}
		}
		left := len(level)
		for ; left > 1; left = (left + 1) / 2 {
			for k := range left / 2 {
				level[k] = level[2*k] + level[2*k+1]
			}
			if left%2 == 1 {
				level[left/2] = level[left-1]
			}
		}
		if sum[i] = level[0]; sum[i] != sum[i] {
			sum[i] = math.Float32frombits(0x7fc00000)
		}
	}
	return sum
}

// identity is the contribution of a port that contributes nothing.
var identity = float32(math.Copysign(0, -1))
