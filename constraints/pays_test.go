package constraints

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "draw pays.svg anew")

// Times of an all-reduce, in those that a worker's link needs to send the whole array once. Each
// link is used in both directions at once, and the slowest decides.

// ring adds up the steps of a ring: N-1 to sum the N parts of the array, and N-1 to share them.
func ring(workers int) (time float64) {
	for range 2 * (workers - 1) {
		time += 1 / float64(workers)
	}
	return time
}

// oneArmed is a card whose one link, ratio times as fast as a worker's, carries all arrays to it,
// and a copy of the sum for each worker from it.
func oneArmed(workers int, ratio float64) (time float64) {
	var atCard float64
	for range workers {
		atCard += 1 / ratio
		time = max(time, 1) // at this worker's link
	}
	return max(time, atCard)
}

// inPath is a card with a link as fast as a worker's for each of them.
const inPath = 1.0

// even is the ratio where a one-armed card with a link of that ratio is as fast as a ring.
func even(workers int) float64 {
	return float64(workers*workers) / float64(2*(workers-1))
}

var (
	tableWorkers = []int{2, 4, 8, 16}
	tableRatios  = []float64{1, 10, 40, 100}
)

// A one-armed card is slower than a ring below the ratio N²/2(N-1), and not above it.
func TestEven(t *testing.T) {
	for workers := 2; workers <= 64; workers++ {
		at := even(workers)
		assert.InDelta(t, ring(workers), oneArmed(workers, at), 1e-9, workers)
		assert.Greater(t, oneArmed(workers, 0.99*at), ring(workers), workers)
		if workers > 2 { // two workers: a ring is as fast as any card
			assert.Less(t, oneArmed(workers, 1.01*at), ring(workers), workers)
		}
		assert.LessOrEqual(t, inPath, ring(workers)+1e-9, workers)
	}
}

// The page has these numbers.
func TestTableOfThePage(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, workers := range tableWorkers {
		row := fmt.Sprintf("| %d | %.3g | %.2f |", workers, ring(workers), even(workers))
		for _, ratio := range tableRatios {
			row += fmt.Sprintf(" %.2f |", ring(workers)/oneArmed(workers, ratio))
		}
		row += fmt.Sprintf(" %.2f |\n", ring(workers)/inPath)
		assert.Contains(t, string(page), row)
	}
}

// TestPicture: pays.svg, which the page shows, is what picture draws.
func TestPicture(t *testing.T) {
	drawn := picture()
	if *update {
		require.NoError(t, os.WriteFile("pays.svg", []byte(drawn), 0o666))
	}
	kept, err := os.ReadFile("pays.svg")
	require.NoError(t, err)
	assert.Equal(t, string(kept), drawn, "go test ./constraints -update draws it anew")
}

// Sizes of the picture, in pixels.
const (
	left, top     = 56, 36
	width, height = 360, 200
	fewest, most  = 2, 16 // workers
	highest       = 100.0 // ratio, from 1 on
)

// x and y return the place of a number of workers and of a ratio, which has a logarithmic scale.
func x(workers float64) float64 { return left + width*(workers-fewest)/(most-fewest) }
func y(ratio float64) float64   { return top + height*(1-math.Log(ratio)/math.Log(highest)) }

// picture draws the ratio where a card is as fast as a ring, over the number of workers, and a dot
// for each field of the table: full where the card is faster.
func picture() string {
	var line, dots, labels strings.Builder
	for workers := fewest; workers <= most; workers++ {
		fmt.Fprintf(&line, "L%.1f %.1f", x(float64(workers)), y(even(workers)))
	}
	for _, workers := range tableWorkers {
		fmt.Fprintf(&labels, "<text x=\"%.1f\" y=\"%d\">%d</text>\n", x(float64(workers)), top+height+18, workers)
		for _, ratio := range tableRatios {
			class := "even"
			if speed := ring(workers) / oneArmed(workers, ratio); speed > 1+1e-9 {
				class = "faster"
			} else if speed < 1-1e-9 {
				class = "slower"
			}
			fmt.Fprintf(&dots, "<circle class=%q cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", class, x(float64(workers)), y(ratio))
		}
	}
	for _, ratio := range tableRatios {
		fmt.Fprintf(&labels, "<text class=\"axis\" x=\"%d\" y=\"%.1f\">%g</text>\n", left-8, y(ratio)+4, ratio)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d">
<style>
svg { font-family: sans-serif; }
rect { fill: #fff; }
.frame { fill: #eef4fb; stroke: #2b5b8c; }
.area { fill: #f6dcd6; stroke: none; }
.line { fill: none; stroke: #b5452c; stroke-width: 2; }
.faster { fill: #2b5b8c; }
.even { fill: #fff; stroke: #2b5b8c; }
.slower { fill: #b5452c; }
text { fill: #16324f; font-size: 12px; text-anchor: middle; }
.axis { text-anchor: end; }
.head { font-size: 13px; font-weight: bold; text-anchor: start; }
</style>
<rect x="0" y="0" width="%[1]d" height="%[2]d"/>
<text x="%[3]d" y="22" class="head">B/b: the card's link, in links of a worker</text>
<rect class="frame" x="%[3]d" y="%[4]d" width="%[5]d" height="%[6]d"/>
<path class="area" d="M%[3]d %[7]d%[8]sL%[9]d %[7]dz"/>
<path class="line" d="M%[10]s"/>
<text x="%[11]d" y="%[12]d">the card is faster</text>
<text x="%[11]d" y="%[13]d">a ring is faster</text>
%[14]s%[15]s<text x="%[16]d" y="%[17]d">N workers</text>
</svg>
`, left+width+24, top+height+44, left, top, width, height, top+height, line.String(), left+width,
		strings.TrimPrefix(line.String(), "L"), left+width*2/5, top+height/3, top+height*9/10, dots.String(), labels.String(),
		left+width/2, top+height+36)
}
