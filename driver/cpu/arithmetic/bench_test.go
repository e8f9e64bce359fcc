package arithmetic

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"tributary/driver/wire"
)

// BenchmarkSum counts the bytes of the contributions.
func BenchmarkSum(b *testing.B) {
	const bytes = 25_000_000
	for _, k := range []kind{
		{wire.SumTree, wire.FP32, wire.FP32, false}, {wire.SumFused, wire.FP32, wire.FP32, false},
		{wire.SumExact, wire.FP32, wire.FP32, false}, {wire.SumMax, wire.FP32, wire.FP32, false},
		{wire.SumTree, wire.Int32, wire.Int32, false},
		{wire.SumTree, wire.BF16, wire.BF16, false}, {wire.SumExact, wire.BF16, wire.BF16, false},
		{wire.SumTree, wire.FP16, wire.FP16, false}, {wire.SumTree, wire.FP8E4M3, wire.FP8E4M3, false}, {wire.SumFused, wire.BF16, wire.FP32, false},
	} {
		for _, n := range []int{4, 8} {
			b.Run(fmt.Sprintf("%v/%d", k, n), func(b *testing.B) {
				a := k.arithmetic(b)
				random := rand.New(rand.NewPCG(1, 1))
				rows := make([][]byte, n)
				for p := range rows {
					rows[p] = make([]byte, bytes)
					for i := 0; i < bytes; i += 4 {
						x := math.Float32bits(float32(random.NormFloat64()))
						if a.in.size < 4 {
							x = random.Uint32() & 0x3f3f3f3f
						}
						binary.LittleEndian.PutUint32(rows[p][i:], x)
					}
				}
				dst := make([]byte, bytes/a.in.size*a.out.size)
				var w Workspace
				b.SetBytes(int64(n) * bytes)
				b.ReportAllocs()
				for b.Loop() {
					a.Sum(dst, rows, 256, &w, func(int, Exceptions) { b.Fatal("an exception") })
				}
			})
		}
	}
}
