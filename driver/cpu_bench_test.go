package driver_test

import (
	"fmt"
	"testing"

	"tributary/driver"
)

// BenchmarkCPU sums arrays of 25 MB on the card in software. Bytes are those of the inputs.
func BenchmarkCPU(b *testing.B) {
	for _, workers := range []int{4, 8} {
		for _, sum := range []string{"tree", "fused", "exact", "max"} {
			b.Run(fmt.Sprintf("%s/%d", sum, workers), func(b *testing.B) {
				card, err := driver.Open(testContext(b), fmt.Sprintf("cpu:sum=%s,workers=%d", sum, workers))
				if err != nil {
					b.Fatal(err)
				}
				defer card.Close()
				job := configure(b, card, driver.JobConfig{})
				in := arrays(1, workers, 25_000_000/4)
				dst := make([]float32, len(in[0]))
				b.SetBytes(int64(workers) * 25_000_000)
				for b.Loop() {
					if err := job.Reduce(testContext(b), dst, in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
