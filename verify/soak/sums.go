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

// treeSum is section 7.3 of the specification by the processor's additions, for as
// many ranks as ports.
func treeSum(inputs [][]float32) []float32 {
	sum := make([]float32, len(inputs[0]))
	level := make([]float32, len(inputs))
	for i := range sum {
		for r := range inputs {
			level[r] = inputs[r][i]
		}
		n := len(level)
		for ; n > 1; n = (n + 1) / 2 {
			for k := range n / 2 {
				level[k] = level[2*k] + level[2*k+1]
			}
			if n%2 == 1 {
				level[n/2] = level[n-1]
			}
		}
		if sum[i] = level[0]; sum[i] != sum[i] {
			sum[i] = math.Float32frombits(0x7fc00000)
		}
	}
	return sum
}
