package driver_test

import (
	"fmt"
	"testing"

	"tributary/driver"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// BenchmarkReduce measures the whole driver with the model card, which uses most of the shared
// processor. The bytes of all frames count. BenchmarkFrames of package frame measures the
// host's work alone.
func BenchmarkReduce(b *testing.B) {
	for _, workers := range []int{1, 4, 16} {
		b.Run(fmt.Sprint(workers, "_workers"), func(b *testing.B) {
			const n = 1 << 18
			card := open(b, serve(b, model.Config{Lanes: 16, Ports: workers, Chunk: 992, Window: 16, Shell: wire.ShellStream, Link: 64}, 256<<10))
			job := configure(b, card, driver.JobConfig{})
			in := make([][]float32, workers)
			for w := range in {
				in[w] = make([]float32, n)
			}
			dst := make([]float32, n)
			before := card.LinkStats()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				if err := job.Reduce(b.Context(), dst, in); err != nil {
					b.Fatal(err)
				}
			}
			after := card.LinkStats()
			b.SetBytes(int64(after.BytesIn+after.BytesOut-before.BytesIn-before.BytesOut) / int64(b.N))
		})
	}
}
