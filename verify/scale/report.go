package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// results is the content of results.json.
type results struct {
	Configuration string `json:"configuration_sha256"`
	Cells         []cell `json:"cells"`
}

func digest(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

func (r results) encode() (string, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return string(text) + "\n", err
}

// tables prints a table for each suite and load, for people and for Markdown.
func tables(c configuration, cells []cell) string {
	var b strings.Builder
	for first := 0; first < len(cells); {
		last := first
		for last < len(cells) && cells[last].Suite == cells[first].Suite && cells[last].Load == cells[first].Load {
			last++
		}
		if first > 0 {
			b.WriteString("\n")
		}
		table(&b, c, cells[first:last])
		first = last
	}
	return b.String()
}

func table(b *strings.Builder, c configuration, cells []cell) {
	title := cells[0].Suite
	for _, s := range c.Suites {
		if s.Name == title {
			title = s.Title
		}
	}
	if cells[0].Load > 0 {
		title += fmt.Sprintf(", load %g", cells[0].Load)
	}
	fmt.Fprintf(b, "**%s**\n\n", title)
	b.WriteString("| transport | iteration, ms | faster than ring | short flows: median, µs | 99th percentile, µs | seeds | queue, kB | marked | dropped | asks |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	ring := find(cells, cells[0].Suite, cells[0].Load, "ring")
	for _, x := range cells {
		t, _ := c.transport(x.Transport)
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %.0f | %.1f %% | %d | %d |\n", t.Title,
			number(x.IterationMS, "%.2f"), number(over(ring.IterationMS, x.IterationMS), "%.2f"), number(x.MedianUS, "%.0f"),
			number(x.P99US, "%.0f"), spread(x), x.HighestKB, 100*x.Marked, x.Dropped, x.Asks)
	}
}

func number(v float64, format string) string {
	if v == 0 {
		return "–"
	}
	return fmt.Sprintf(format, v)
}

func spread(x cell) string {
	if x.MostP99 == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f–%.0f", x.LeastP99, x.MostP99)
}

// over returns a/b, or 0 if either is unknown.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// find returns the cell, or an empty one.
func find(cells []cell, suite string, load float64, transport string) cell {
	for _, x := range cells {
		if x.Suite == suite && x.Load == load && x.Transport == transport {
			return x
		}
	}
	return cell{}
}
