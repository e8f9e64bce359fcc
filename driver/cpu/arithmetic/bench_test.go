package arithmetic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tributary/driver/wire"
)

// BenchmarkSum counts the bytes of the contributions: arrays in memory, with numbers of a normal
// distribution or close to 1, or small integers. Chunks are short ones, as a card has.
func BenchmarkSum(b *testing.B) {
	const array, chunk = 25_000_000, 256
	for _, k := range []kind{
		{wire.SumTree, wire.FP32, wire.FP32, false}, {wire.SumFused, wire.FP32, wire.FP32, false},
		{wire.SumExact, wire.FP32, wire.FP32, false}, {wire.SumMax, wire.FP32, wire.FP32, false},
		{wire.SumTree, wire.Int32, wire.Int32, false}, {wire.SumTree, wire.BF16, wire.BF16, false},
		{wire.SumExact, wire.BF16, wire.FP32, false}, {wire.SumTree, wire.FP16, wire.FP16, false},
		{wire.SumTree, wire.FP8E4M3, wire.FP8E4M3, false},
	} {
		a := k.arithmetic(b)
		for _, n := range []int{4, 8} {
			rows := make([][]byte, n)
			for p := range rows {
				rows[p] = make([]byte, array)
				random := rand.New(rand.NewPCG(1, uint64(p)))
				for i := range array / a.in.size {
					put(rows[p], a.in.size, i, ordinary(a.in, random))
				}
			}
			dst := make([]byte, array/a.in.size*a.out.size)
			none := func(int, Exceptions) { b.Fatal("an exception") }
			var w Workspace
			b.Run(fmt.Sprintf("%v/%d", k, n), func(b *testing.B) {
				b.SetBytes(int64(n) * array)
				b.ReportAllocs()
				for b.Loop() {
					a.Sum(dst, rows, chunk, &w, none)
				}
			})
			b.Run(fmt.Sprintf("%v/%d/chunk", k, n), func(b *testing.B) {
				for p := range rows {
					rows[p] = rows[p][:chunk*a.in.size]
				}
				b.SetBytes(int64(n * chunk * a.in.size))
				for b.Loop() {
					a.Sum(dst[:chunk*a.out.size], rows, chunk, &w, none)
				}
			})
		}
	}
}

// ordinary returns an element that sums do not overflow on.
func ordinary(f *format, random *rand.Rand) uint32 {
	switch {
	case f.integer():
		return uint32(random.Int32N(1 << 20))
	case f.size == 4:
		return math.Float32bits(float32(random.NormFloat64()))
	}
	return random.Uint32N(2)<<(f.Bits-1) | f.encode(math.Float32bits(1)) | random.Uint32N(1<<f.Frac)
}

// BenchmarkHoldsNonfinite looks at a contribution in the cache.
func BenchmarkHoldsNonfinite(b *testing.B) {
	a := kind{wire.SumTree, wire.FP32, wire.FP32, false}.arithmetic(b)
	payload := make([]byte, 100_000)
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		a.HoldsNonfinite(payload)
	}
}
