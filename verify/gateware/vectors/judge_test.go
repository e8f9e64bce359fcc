package vectors

import (
	"testing"

	"tributary/driver/wire"
	"tributary/verify/reference/operands"
)

// BenchmarkJudge measures the cost of a vector apart from its lane: its generation, and its sums
// by the model, by the oracle and by the card in software.
func BenchmarkJudge(b *testing.B) {
	for _, which := range wire.Sums {
		for _, format := range []wire.Format{wire.FP32, wire.BF16, wire.FP16, wire.Int32} {
			l := Lane{Sum: which.Sum, Format: format, Result: format, Ports: 8}
			j, err := newJudge(l)
			if err != nil {
				b.Fatal(err)
			}
			source := operands.New(format, format, 1)
			x := make([]uint32, 8)
			b.Run(name(l)+"/make", func(b *testing.B) {
				for b.Loop() {
					source.Next(x)
				}
			})
			b.Run(name(l)+"/model", func(b *testing.B) {
				for b.Loop() {
					source.Next(x)
					j.model.Element(x)
				}
			})
			b.Run(name(l)+"/oracle", func(b *testing.B) {
				for b.Loop() {
					source.Next(x)
					j.oracle.Sum(x)
				}
			})
			var vectors [][]uint32
			var kinds []string
			var sums []answer
			for range softwareBlock {
				x := make([]uint32, l.Ports)
				kinds = append(kinds, source.Next(x))
				vectors = append(vectors, x)
				y, over := j.model.Element(x)
				sums = append(sums, answer{y, over})
			}
			b.Run(name(l)+"/software", func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					v := i % softwareBlock
					if err := j.software.add(kinds[v], vectors[v], sums[v]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
