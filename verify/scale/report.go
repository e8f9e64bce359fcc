package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tributary/verify/scale/archive"
)

// results is the content of results.json.
type results struct {
	Configuration string `json:"configuration_sha256"`
	Cells         []cell `json:"cells"`
}

// record puts cells into the results of a folder, and draws its page and figure anew.
func record(c configuration, cells []cell, dir string) error {
	path := filepath.Join(dir, "results.json")
	var before results
	switch text, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal(text, &before); err != nil {
			return fmt.Errorf("%s is no result of this program; move it away: %w", path, err)
		}
	}
	r := results{Configuration: archive.Digest(committed)}
	for _, s := range c.Suites {
		of := cellsOf(cells, s.Name)
		if len(of) == 0 && before.Configuration == r.Configuration {
			of = cellsOf(before.Cells, s.Name)
		}
		r.Cells = append(r.Cells, of...)
	}
	return archive.Write(dir, r, page(c, r.Cells), picture(c, r.Cells))
}

func cellsOf(cells []cell, suite string) (of []cell) {
	for _, x := range cells {
		if x.Suite == suite {
			of = append(of, x)
		}
	}
	return of
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
	s := c.suite(cells[0].Suite)
	title := s.Title
	if cells[0].Load > 0 {
		title += fmt.Sprintf(", load %g", cells[0].Load)
	}
	fmt.Fprintf(b, "**%s**\n\n", title)
	b.WriteString("| transport | iterations | iteration, ms | faster than ring | short flows: median, µs | 99th percentile, µs | seeds | queue, kB | marked | dropped | asks |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|\n")
	ring := find(cells, cells[0].Suite, cells[0].Load, "ring")
	for _, x := range cells {
		t, _ := c.transport(x.Transport)
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s | %.0f | %.1f %% | %d | %d |\n", t.Title, x.Iterations,
			s.iteration(x), s.faster(ring, x), number(x.MedianUS, "%.0f"),
			number(x.P99US, "%.0f"), spread(x), x.HighestKB, 100*x.Marked, x.Dropped, x.Asks)
	}
}

// suite returns the suite of a name.
func (c *configuration) suite(name string) suite {
	for _, s := range c.Suites {
		if s.Name == name {
			return s
		}
	}
	return suite{Name: name, Title: name}
}

// bound returns the mean time of an iteration, or what it is above if none ended.
func (s suite) bound(x cell) (ms float64, above string) {
	if x.Iterations == 0 {
		return s.MeasuredMS + s.ComputeMS, "> "
	}
	return x.IterationMS, ""
}

func (s suite) iteration(x cell) string {
	ms, above := s.bound(x)
	return fmt.Sprintf("%s%.2f", above, ms)
}

// faster formats how much faster a transport is than a ring.
func (s suite) faster(ring, x cell) string {
	factor, above := s.factor(ring, x)
	return above + number(factor, "%.2f")
}

// factor returns how much faster a transport is than a ring, or 0 if it is unknown. The factor is
// above that if no iteration of the ring ended.
func (s suite) factor(ring, x cell) (factor float64, above string) {
	if ring.Transport == "" || x.Iterations == 0 {
		return 0, ""
	}
	ms, above := s.bound(ring)
	return ms / x.IterationMS, above
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

const pageHead = `# Reductions of 64 and 1,024 workers

` + "`make scale`" + ` wrote this page from [results.json](results.json). [README.md](README.md) describes the
simulation and discusses these numbers; [configuration.json](configuration.json) has every
parameter.

![Each transport against a ring, beside PANAMA's claims](result.svg)

Columns: iterations that ended in the measured time, with all seeds; their mean time with the
computation; completion times of flows of less than 100 kB; the 99th percentile of single seeds,
lowest to highest; the fullest queue between switches; marked packets there; dropped packets in all
queues; asks of workers for results. A dash: none ended, or nothing was measured.

## PANAMA's claims

`

// page returns RESULT.md.
func page(c configuration, cells []cell) string {
	var b strings.Builder
	b.WriteString(pageHead)
	claims(&b, c, cells)
	b.WriteString("\n## All runs\n\n")
	b.WriteString(tables(c, cells))
	return b.String()
}

// claims compares the best transport of each suite and load with PANAMA's factors.
func claims(b *strings.Builder, c configuration, cells []cell) {
	fmt.Fprintf(b, "| suite | load | jobs faster than a ring; PANAMA: up to %g | by | short flows' 99th percentile better; PANAMA: up to %g | by |\n", claimJobs, claimShort)
	b.WriteString("|---|---|---|---|---|---|\n")
	for _, s := range c.Suites {
		if len(cellsOf(cells, s.Name)) == 0 {
			fmt.Fprintf(b, "| %s | | not recorded | | | |\n", s.Title)
			continue
		}
		for _, load := range s.Loads {
			ring := find(cells, s.Name, load, "ring")
			_, above := s.bound(ring)
			job, jobBy := best(c, s, func(name string) float64 {
				factor, _ := s.factor(ring, find(cells, s.Name, load, name))
				return factor
			})
			short, shortBy := best(c, s, func(name string) float64 { return over(ring.P99US, find(cells, s.Name, load, name).P99US) })
			fmt.Fprintf(b, "| %s | %g | %s | %s | %s | %s |\n", s.Title, load, above+number(job, "%.2f"), jobBy, number(short, "%.2f"), shortBy)
		}
	}
}

// best returns the highest factor among the transports of a suite other than the ring, and its
// title.
func best(c configuration, s suite, factor func(transport string) float64) (highest float64, title string) {
	title = "–"
	for _, name := range s.Transports {
		t, _ := c.transport(name)
		if f := factor(name); !t.Ring && f > highest {
			highest, title = f, t.Title
		}
	}
	return highest, title
}
