package main

import (
	"fmt"
	"strings"
)

// PANAMA's claims (MLSys 2021), as factors.
const (
	claimJobs  = 1.34 // jobs are up to so much faster
	claimShort = 4.5  // the 99th percentile of short flows is up to so much better
)

// series is one colour of the figure.
type series struct {
	suite, class, title string
	load                float64
}

var drawn = []series{
	{"64", "light", "64 workers, load 0.3", 0.3},
	{"64", "dark", "64 workers, load 0.6", 0.6},
	{"1024", "large", "1,024 workers, load 0.3", 0.3},
}

// Sizes of the figure, in pixels.
const (
	names  = 232 // of transports, before the bars
	column = 250 // bars of one quantity
	gap    = 34
	barTop = 84
	bar1   = 12 // height of a bar
	rowGap = 10
)

// quantity is a column of the figure: a factor by which a transport is better than a ring.
type quantity struct {
	title  string
	factor func(x, ring cell) (factor float64, above string)
	claim  float64
	most   float64
}

// picture draws how much faster a job is than a ring, and how much better short flows fare beside
// it, with PANAMA's claims as lines.
func picture(c configuration, cells []cell) string {
	quantities := []quantity{
		{"job: faster than a ring by", func(x, ring cell) (float64, string) { return c.suite(x.Suite).factor(ring, x) }, claimJobs, 0},
		{"short flows: 99th percentile better by", func(x, ring cell) (float64, string) { return over(ring.P99US, x.P99US), "" }, claimShort, 0},
	}
	var rows []transport
	for _, t := range c.Transports {
		if !t.Ring && find(cells, "64", 0.3, t.Name) != (cell{}) {
			rows = append(rows, t)
		}
	}
	rowHeight := len(drawn)*bar1 + rowGap
	bottom := barTop + len(rows)*rowHeight
	var b strings.Builder
	for i, q := range quantities {
		q.most = q.claim
		for _, t := range rows {
			for _, s := range drawn {
				v, _ := q.of(cells, s, t)
				q.most = max(q.most, v)
			}
		}
		q.most *= 1.15
		q.draw(&b, cells, rows, names+i*(column+gap), bottom, rowHeight)
	}
	for i, t := range rows {
		fmt.Fprintf(&b, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", names-8, barTop+i*rowHeight+len(drawn)*bar1/2+4, t.Title)
	}
	for i, s := range drawn {
		fmt.Fprintf(&b, "<rect class=\"%s\" x=\"%d\" y=\"12\" width=\"12\" height=\"12\"/><text class=\"head\" x=\"%d\" y=\"22\">%s</text>\n",
			s.class, 16+i*190, 34+i*190, s.title)
	}
	width := names + 2*column + gap + 24
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d">
<style>
svg { font-family: sans-serif; }
.paper { fill: #fff; }
.frame { fill: #eef4fb; stroke: #2b5b8c; }
.light { fill: #7fa8d1; }
.dark { fill: #2b5b8c; }
.large { fill: #d08a3c; }
.even { stroke: #16324f; }
.claim { stroke: #b5452c; stroke-width: 2; stroke-dasharray: 5 3; }
text { fill: #16324f; font-size: 10px; }
.name { text-anchor: end; font-size: 12px; }
.head { font-size: 12px; font-weight: bold; }
.red { fill: #b5452c; text-anchor: middle; font-size: 11px; }
.tick { text-anchor: middle; }
</style>
<rect class="paper" x="0" y="0" width="%[1]d" height="%[2]d"/>
%[3]s</svg>
`, width, bottom+28, b.String())
}

func (q *quantity) of(cells []cell, s series, t transport) (factor float64, above string) {
	return q.factor(find(cells, s.suite, s.load, t.Name), find(cells, s.suite, s.load, "ring"))
}

func (q *quantity) draw(b *strings.Builder, cells []cell, rows []transport, left, bottom, rowHeight int) {
	x := func(v float64) float64 { return float64(left) + column*v/q.most }
	fmt.Fprintf(b, "<text class=\"head\" x=\"%d\" y=\"48\">%s</text>\n", left, q.title)
	fmt.Fprintf(b, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", left, barTop-8, column, bottom-barTop+8)
	for i, t := range rows {
		for k, s := range drawn {
			v, above := q.of(cells, s, t)
			if v == 0 {
				continue
			}
			y := barTop + i*rowHeight + k*bar1
			fmt.Fprintf(b, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>", s.class, left, y, x(v)-float64(left), bar1-1)
			fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\">%s%.2f</text>\n", x(v)+3, y+bar1-2, strings.ReplaceAll(above, ">", "&gt;"), v)
		}
	}
	for _, line := range []struct {
		at    float64
		class string
	}{{1, "even"}, {q.claim, "claim"}} {
		fmt.Fprintf(b, "<line class=\"%s\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", line.class, x(line.at), barTop-8, x(line.at), bottom)
	}
	fmt.Fprintf(b, "<text class=\"red\" x=\"%.1f\" y=\"%d\">PANAMA: up to %g</text>\n", x(q.claim), barTop-14, q.claim)
	fmt.Fprintf(b, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">1</text>\n", x(1), bottom+16)
}
