package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/hwgen/config"
)

// Leaves refuse inconsistent parameters only when a card is elaborated. This test checks
// the widths of exact lanes.
func TestExactWindowsFit(t *testing.T) {
	for _, f := range formats {
		if !f.Float() {
			continue
		}
		for _, r := range formats {
			if !f.FitsIn(r.FormatInfo) {
				continue
			}
			for workers := 3; workers <= 64; workers++ {
				t.Run(fmt.Sprintf("%s_%s_%d", f.Name, r.Name, workers), func(t *testing.T) {
					p := &Plan{Config: config.Config{Lanes: 1, Workers: workers, Chunk: 1, Window: 1}, Format: f, Result: r, Sum: exact}
					p.size()
					lane := exactLane(p)
					width, whole := exactWhole(f)
					require.Equal(t, whole, lane.Shared == nil)
					if !whole {
						width = r.Frac + 1 + exactSpare
					}
					w := newWindow(p, nil, max(width, r.Frac+8), make([]branch, workers), 0)
					w.lost = !whole
					if w.lost {
						d := newDecision(w)
						w.keep += d.places
						assert.Greater(t, d.places, d.far-d.near)
						assert.GreaterOrEqual(t, d.far, d.near)
						assert.GreaterOrEqual(t, d.one, d.far)
						assert.LessOrEqual(t, d.one, 62)
					}
					assert.LessOrEqual(t, w.width, 56)
					assert.LessOrEqual(t, w.sumBits(), w.normalBits()+1)
					assert.LessOrEqual(t, w.keep, w.normalBits()-normalLost)
				})
			}
		}
	}
}
