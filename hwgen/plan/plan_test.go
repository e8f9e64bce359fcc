package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
)

// Cards of every shape link: names, widths, directions and drivers of every instance hold.
func TestEveryShapeLinks(t *testing.T) {
	known := Known()
	for _, f := range formats {
		for _, r := range formats {
			if r.Name != f.Name && !f.FitsIn(r.FormatInfo) {
				continue
			}
			for _, sum := range known.Sums {
				for i, workers := range []int{1, 2, 3, 8} {
					if workers == 8 && r.Name != f.Name {
						continue // takes long, and shows no more
					}
					args := []string{"-format", f.Name, "-result", r.Name, "-sum", sum, "-shell", known.Shells[i%2],
						"-lanes", fmt.Sprint(1 << i), "-workers", fmt.Sprint(workers), "-jobs", fmt.Sprint(1 << (i / 2))}
					o, err := config.Parse(args, known)
					if assert.NoError(t, err, args) {
						_, err = Build(o.Config)
						assert.NoError(t, err, args)
					}
				}
			}
		}
	}
}

// A worker waits for the result of the chunk a window before. The cycles are those of a simulated card
// whose workers send at once: a window of one takes 175 cycles for each chunk of 64 beats, and 79 for each of 16.
func TestRateNeedsAWindow(t *testing.T) {
	for _, c := range []struct{ chunk, window, cycles, rateWindow int }{
		{256, 1, 175, 4}, {256, 2, 88, 4}, {256, 4, 0, 4}, {64, 1, 79, 8}, {64, 4, 20, 8}, {64, 8, 0, 8},
	} {
		o, err := config.Parse([]string{"-shell", "none", "-lanes", "4", "-workers", "3",
			"-chunk", fmt.Sprint(c.chunk), "-window", fmt.Sprint(c.window)}, Known())
		require.NoError(t, err)
		p, err := Build(o.Config)
		require.NoError(t, err)
		assert.Equal(t, c.rateWindow, p.RateWindow(), c)
		if c.cycles != 0 {
			assert.Equal(t, c.cycles, p.WindowCycles(), c)
		}
	}
}
