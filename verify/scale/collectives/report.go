package main

import (
	"fmt"
	"slices"
	"strings"

	"tributary/verify/scale/archive"
)

// results is the content of results.json.
type results struct {
	Configuration string      `json:"configuration_sha256"`
	SimGrid       string      `json:"simgrid"`
	Alpha         float64     `json:"alpha_seconds"`
	Given         bool        `json:"alpha_given,omitempty"` // on the command line, and not measured
	Cells         []cell      `json:"cells"`
	Judgements    []judgement `json:"judgements"`
}

// record writes the results, their page and their figure into a folder.
func record(c configuration, r results, dir string) error {
	return archive.Write(dir, r, page(c, r), picture(c, r))
}

// find returns the seconds of a cell, or 0.
func (r *results) find(workers int, array, algorithm string, percent int) float64 {
	i := slices.IndexFunc(r.Cells, func(x cell) bool {
		return x.Workers == workers && x.Array == array && x.Algorithm == algorithm && x.Percent == percent
	})
	if i < 0 {
		return 0
	}
	return r.Cells[i].Seconds
}

// ring returns the seconds of the ring: Rina without cards.
func (r *results) ring(workers int, array string) float64 { return r.find(workers, array, rina, 0) }

var titles = map[string]string{
	rina:      "Rina",
	rinaAgent: "Rina, through agents' links",
	atp:       "ATP, one server",
	atpRacks:  "ATP, a server a rack",
	tree:      "tree of cards",
}

const pageHead = `# All-reduces of 16 to 4,096 workers

` + "`make scale-collectives`" + ` wrote this page from [results.json](results.json). [README.md](README.md)
describes the simulation and discusses these numbers; [configuration.json](configuration.json) has
every parameter.

![Throughput of each algorithm against a ring](result.svg)

`

// page returns RESULT.md.
func page(c configuration, r results) string {
	var b strings.Builder
	b.WriteString(pageHead)
	parameters(&b, c, r)
	b.WriteString("\n## Rina beside a ring and ATP\n\nThroughput, as a multiple of the other's. All racks have a card.\n\n")
	gains(&b, c, r)
	b.WriteString("\n## Times\n\nMilliseconds, and in brackets the throughput as a multiple of the ring's. Columns: racks with a\n" +
		"card. Rina without cards is the ring; ATP without cards is a plain parameter server. ≈: by the\nclosed form alone. A dash: not simulated.\n")
	for _, a := range c.Arrays {
		fmt.Fprintf(&b, "\n**%s, %.1f MB**\n\n", a.Name, a.Bytes/1e6)
		table(&b, c, r, a.Name)
	}
	b.WriteString("\n## SMPI's rings beside ours\n\n")
	judgements(&b, r)
	return b.String()
}

func parameters(b *strings.Builder, c configuration, r results) {
	how := "measured: half the median round trip of 64 bytes, TCP on the loopback"
	if r.Given {
		how = "given"
	}
	b.WriteString("| parameter | value | source |\n|---|---|---|\n")
	fmt.Fprintf(b, "| fixed cost of a step, α | %.2f µs | %s |\n", r.Alpha*1e6, how)
	fmt.Fprintf(b, "| links | %g Gbit/s, %g µs each | configuration.json |\n", c.LinkGbitS, c.LinkDelayUS)
	var done []string
	for _, k := range c.Clusters {
		if !slices.Contains(done, k.Card) {
			done = append(done, k.Card)
			x := c.Cards[k.Card]
			fmt.Fprintf(b, "| card of %s | latency %d cycles, %d cycles for a chunk of %d bytes: %.2f µs at %g MHz | manifest |\n",
				k.Card, x.LatencyCycles, x.ChunkCycles, c.ChunkBytes, c.cardSeconds(k)*1e6, c.ClockMHz)
		}
	}
	fmt.Fprintf(b, "| SimGrid | %s, network model CM02 | Debian |\n", r.SimGrid)
	fmt.Fprintf(b, "| largest difference from a closed form | %.2f %% | all runs below |\n", 100*r.farthest())
}

// farthest returns the largest relative difference between a simulation and its closed form.
func (r *results) farthest() (most float64) {
	for _, x := range r.Cells {
		most = max(most, x.difference())
	}
	return most
}

func (x cell) difference() float64 { return max(x.Seconds/x.Closed-1, 1-x.Seconds/x.Closed) }

func gains(b *strings.Builder, c configuration, r results) {
	b.WriteString("| workers | array | Rina ÷ ring | through agents' links ÷ ring | Rina ÷ ATP, one server | Rina ÷ ATP, a server a rack | tree of cards ÷ ring |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, k := range c.Clusters {
		for _, a := range c.Arrays {
			w := k.workers()
			ring := r.ring(w, a.Name)
			if ring == 0 {
				continue
			}
			all := func(algorithm string) float64 { return r.find(w, a.Name, algorithm, 100) }
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s |\n", thousands(w), a.Name, gain(ring, all(rina)), gain(ring, all(rinaAgent)),
				gain(all(atp), all(rina)), gain(all(atpRacks), all(rina)), gain(ring, all(tree)))
		}
	}
}

// gain formats how much more throughput the second has than the first.
func gain(first, second float64) string {
	if first == 0 || second == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", first/second)
}

func table(b *strings.Builder, c configuration, r results, array string) {
	b.WriteString("| workers | algorithm |")
	for _, p := range c.Percent {
		fmt.Fprintf(b, " %d %% |", p)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(c.Percent)) + "\n")
	for _, k := range c.Clusters {
		w := k.workers()
		ring := r.ring(w, array)
		if ring == 0 {
			continue
		}
		for _, algorithm := range algorithms {
			fmt.Fprintf(b, "| %s | %s |", thousands(w), titles[algorithm])
			for _, p := range c.Percent {
				seconds := r.find(w, array, algorithm, p)
				if seconds == 0 {
					b.WriteString(" – |")
					continue
				}
				about := ""
				if !(experiment{cluster: k, algorithm: algorithm}).simulated() {
					about = "≈ "
				}
				fmt.Fprintf(b, " %s%s (%s) |", about, digits(seconds*1e3), digits(ring/seconds))
			}
			b.WriteString("\n")
		}
	}
}

// digits formats a number with three digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return thousands(int(v + 0.5))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func thousands(v int) string {
	if v < 1000 {
		return fmt.Sprint(v)
	}
	return thousands(v/1000) + fmt.Sprintf(",%03d", v%1000)
}

func judgements(b *strings.Builder, r results) {
	b.WriteString("| workers | bytes | algorithm of SMPI | its time, ms | our ring, ms | difference |\n|---|---|---|---|---|---|\n")
	for _, j := range r.Judgements {
		fmt.Fprintf(b, "| %d | %s | `%s` | %.4f | %.4f | %+.2f %% |\n", j.Workers, thousands(int(j.Bytes)), j.Algorithm, j.Theirs*1e3, j.Ours*1e3, 100*(j.Ours/j.Theirs-1))
	}
}
