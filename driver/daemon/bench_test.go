package daemon_test

import (
	"testing"

	"tributary/driver"
	"tributary/driver/daemon"
)

// BenchmarkServe reduces arrays of all members of a job in one process: on a model card, and on the same
// card behind a daemon. Bytes are those of the inputs.
func BenchmarkServe(b *testing.B) {
	for _, served := range []bool{false, true} {
		b.Run(map[bool]string{false: "direct", true: "served"}[served], func(b *testing.B) {
			card, err := driver.Open(b.Context(), "model:")
			if err != nil {
				b.Fatal(err)
			}
			if served {
				card = open(b, serveCard(b, card, daemon.Options{}))
			} else {
				b.Cleanup(func() { card.Close() })
			}
			job, err := card.Configure(b.Context(), driver.JobConfig{})
			if err != nil {
				b.Fatal(err)
			}
			in := make([][]float32, card.Info().Ports)
			for rank := range in {
				in[rank] = ramp(1<<20, float32(rank))
			}
			sum := make([]float32, 1<<20)
			b.SetBytes(int64(len(in)) << 22)
			for b.Loop() {
				if err := job.Reduce(b.Context(), sum, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
