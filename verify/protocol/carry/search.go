package main

import (
	"fmt"
	"strings"
)

func fmtChunk(v int) string { return fmt.Sprintf(": the kept result of chunk %d", v) }

// outcome is what an exploration found.
type outcome struct {
	states int
	broken string // the broken property; "": all hold
	how    string
	path   []string
}

// story returns the counterexample as text, one step a line.
func (o *outcome) story() string {
	if o.broken == "" {
		return ""
	}
	var b strings.Builder
	for i, line := range o.path {
		fmt.Fprintf(&b, "%3d: %s\n", i+1, line)
	}
	fmt.Fprintf(&b, "broken: %s: %s\n", o.broken, o.how)
	for _, p := range properties {
		if p.name == o.broken {
			fmt.Fprintf(&b, "must hold: %s\n", p.holds)
		}
	}
	return b.String()
}

// visited is a state that was reached: by a step, from another state.
type visited struct {
	state
	from int32
	by   step
}

// explore visits all states of a configuration, breadth first. It tests one property, or all if only is
// empty.
func explore(c config, rules ruleSet, only string) outcome {
	w := &world{config: &c, rules: rules, only: only}
	w.start()
	seen := map[state]bool{w.state: true}
	all := []visited{{state: w.state, from: -1}}
	for i := 0; i < len(all); i++ {
		moves := false
		var found *outcome
		w.state = all[i].state
		w.steps(func(s step) {
			if found != nil {
				return
			}
			w.state, w.broken = all[i].state, ""
			if !w.take(s) {
				return
			}
			moves = moves || s.kind < cardDies
			if w.broken != "" {
				found = &outcome{states: len(all), broken: w.broken, how: w.how, path: retell(&c, rules, all, int32(i), &s)}
				return
			}
			if !seen[w.state] {
				seen[w.state] = true
				all = append(all, visited{w.state, int32(i), s})
			}
		})
		if found != nil {
			return *found
		}
		w.state = all[i].state
		if n, v := w.lacking(); n >= 0 && !moves && (only == "" || only == "progress") {
			return outcome{states: len(all), broken: "progress", how: fmt.Sprintf("no step is possible, and member %d lacks the result of chunk %d", n, v),
				path: retell(&c, rules, all, int32(i), nil)}
		}
	}
	return outcome{states: len(all)}
}

// lacking returns a living member and a chunk whose result it lacks, or -1.
func (w *world) lacking() (n, v int) {
	for n := range w.members {
		if m := &w.members[n]; !m.dead && m.low() < w.config.chunks {
			return n, m.low()
		}
	}
	return -1, 0
}

// retell describes the path to a state, and a last step from it.
func retell(c *config, rules ruleSet, all []visited, to int32, last *step) []string {
	var steps []step
	for i := to; all[i].from >= 0; i = all[i].from {
		steps = append([]step{all[i].by}, steps...)
	}
	if last != nil {
		steps = append(steps, *last)
	}
	w := &world{config: c, rules: rules}
	w.start()
	var lines []string
	for _, s := range steps {
		w.take(s)
		lines = append(lines, w.tell)
	}
	return lines
}
