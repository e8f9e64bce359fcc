package main

import (
	"fmt"
	"math"
	"strings"
)

// Sizes of the figure, in pixels.
const (
	panelWidth  = 300
	panelHeight = 240
	leftMargin  = 58
	topMargin   = 64
	panelGap    = 60
	legendRow   = 18
)

// line is one curve of a panel: throughput against a ring.
type line struct {
	algorithm string
	percent   int // of racks with a card; unused where the horizontal axis has it
	title     string
	class     string
}

// By the number of workers.
var byWorkers = []line{
	{atpRacks, 100, "ATP, a server a rack, all racks with a card", "atp"},
	{atpRacks, 50, "ATP, a server a rack, half of the racks", "atp half"},
	{rina, 100, "Rina, all racks", "rina"},
	{rina, 50, "Rina, half of the racks", "rina half"},
	{rinaAgent, 100, "Rina, through agents' links, all racks", "agent"},
	{tree, 100, "tree of cards", "tree"}, // over ATP's line, which it often meets
}

// By the racks with a card.
var byCards = []line{
	{rina, 0, "Rina", "rina"},
	{atpRacks, 0, "ATP, a server a rack", "atp"},
	{atp, 0, "ATP, one server", "one"},
}

// curve is a line and its points, from 0 to 1 to the right, and the multiple of a ring.
type curve struct {
	line
	points [][2]float64
}

// picture draws throughput as a multiple of the ring's: above by workers, for the two largest arrays, and below by the racks with a card, for 256 workers.
func picture(c configuration, r results) string {
	arrays := c.Arrays[:2]
	var b strings.Builder
	top := topMargin
	for i, a := range arrays {
		var curves []curve
		var ticks []string
		for _, k := range c.Clusters {
			ticks = append(ticks, thousands(k.workers()))
		}
		for _, l := range byWorkers {
			curves = append(curves, along(l, c.Clusters, func(k cluster) float64 { return r.multiple(k.workers(), a.Name, l.algorithm, l.percent) }))
		}
		panel(&b, leftMargin+i*(panelWidth+panelGap), top, a.Name+", by workers", ticks, curves)
	}
	top = legend(&b, top+panelHeight+44, byWorkers) + topMargin
	for i, a := range arrays {
		var curves []curve
		var ticks []string
		for _, p := range c.Percent {
			ticks = append(ticks, fmt.Sprintf("%d %%", p))
		}
		for _, l := range byCards {
			curves = append(curves, along(l, c.Percent, func(p int) float64 { return r.multiple(256, a.Name, l.algorithm, p) }))
		}
		panel(&b, leftMargin+i*(panelWidth+panelGap), top, a.Name+", 256 workers, by racks with a card", ticks, curves)
	}
	bottom := legend(&b, top+panelHeight+44, byCards)
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d">
<style>
svg { font-family: sans-serif; }
.paper { fill: #fff; }
.frame { fill: #eef4fb; stroke: #2b5b8c; }
.grid { stroke: #c5d5e6; }
.even { stroke: #16324f; }
polyline { fill: none; stroke-width: 2.5; }
.tree { stroke: #3b7d4f; stroke-dasharray: 2 5; }
.atp { stroke: #d08a3c; }
.one { stroke: #8a6d5a; }
.rina { stroke: #2b5b8c; }
.agent { stroke: #b5452c; }
.half { stroke-dasharray: 6 4; }
text { fill: #16324f; font-size: 11px; }
.head { font-size: 13px; font-weight: bold; }
.tick { text-anchor: middle; }
.side { text-anchor: end; }
</style>
<rect class="paper" x="0" y="0" width="%[1]d" height="%[2]d"/>
<text class="head" x="%[3]d" y="24">Throughput of an all-reduce, as a multiple of the ring's</text>
%[4]s</svg>
`, leftMargin+2*panelWidth+panelGap+24, bottom+16, leftMargin, b.String())
}

// multiple returns the throughput against a ring, or 0 if it is not recorded.
func (r *results) multiple(workers int, array, algorithm string, percent int) float64 {
	seconds := r.find(workers, array, algorithm, percent)
	if seconds == 0 {
		return 0
	}
	return r.ring(workers, array) / seconds
}

// along returns a line with a point for each place; a place without a number has none.
func along[T any](l line, places []T, at func(T) float64) curve {
	c := curve{line: l}
	for i, p := range places {
		if v := at(p); v > 0 {
			c.points = append(c.points, [2]float64{float64(i) / float64(max(1, len(places)-1)), v})
		}
	}
	return c
}

// panel draws curves over a logarithmic scale.
func panel(b *strings.Builder, left, top int, title string, ticks []string, curves []curve) {
	least, most := 0.5, 2.0
	for _, c := range curves {
		for _, p := range c.points {
			least, most = min(least, p[1]/1.2), max(most, p[1]*1.2)
		}
	}
	const inset = 14
	x := func(v float64) float64 { return float64(left+inset) + (panelWidth-2*inset)*v }
	y := func(v float64) float64 {
		return float64(top) + panelHeight*(math.Log(most)-math.Log(v))/(math.Log(most)-math.Log(least))
	}
	fmt.Fprintf(b, "<text class=\"head\" x=\"%d\" y=\"%d\">%s</text>\n", left, top-10, title)
	fmt.Fprintf(b, "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", left, top, panelWidth, panelHeight)
	for _, v := range []float64{0.01, 0.1, 0.5, 1, 2, 5, 10, 100} {
		if v < least || v > most {
			continue
		}
		class := "grid"
		if v == 1 {
			class = "even"
		}
		fmt.Fprintf(b, "<line class=\"%s\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>", class, left, y(v), left+panelWidth, y(v))
		fmt.Fprintf(b, "<text class=\"side\" x=\"%d\" y=\"%.1f\">%g ×</text>\n", left-6, y(v)+4, v)
	}
	for i, t := range ticks {
		fmt.Fprintf(b, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">%s</text>\n", x(float64(i)/float64(max(1, len(ticks)-1))), top+panelHeight+16, t)
	}
	for _, c := range curves {
		fmt.Fprintf(b, "<polyline class=\"%s\" points=\"", c.class)
		for i, p := range c.points {
			if i > 0 {
				b.WriteString(" ")
			}
			fmt.Fprintf(b, "%.1f,%.1f", x(p[0]), y(p[1]))
		}
		b.WriteString("\"/>\n")
	}
}

// legend draws a row for each line, and returns where it ends.
func legend(b *strings.Builder, top int, lines []line) (bottom int) {
	for i, l := range lines {
		column, row := i%2, i/2
		left, middle := leftMargin+column*(panelWidth+panelGap), top+row*legendRow
		fmt.Fprintf(b, "<polyline class=\"%s\" points=\"%d,%d %d,%d\"/>", l.class, left, middle, left+30, middle)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", left+38, middle+4, l.title)
	}
	return top + (len(lines)+1)/2*legendRow
}
