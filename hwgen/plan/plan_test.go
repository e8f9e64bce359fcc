package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

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
