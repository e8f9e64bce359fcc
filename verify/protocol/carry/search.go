package main

import (
	"fmt"
	"strings"
)

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
			moves = moves || s.kind < evictLiving
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
		if w.over == notOver && !moves && (only == "" || only == "progress") {
			return outcome{states: len(all), broken: "progress", how: "no step is possible, and " + w.waits(),
				path: retell(&c, rules, all, int32(i), nil)}
		}
	}
	return outcome{states: len(all)}
}

// waits describes what a job waits for that makes no step.
func (w *world) waits() string {
	for n := range w.config.members {
		m := &w.members[n]
		switch low := m.low(); {
		case !m.here() || w.noticed&seat(n) != 0 && !m.entering:
		case m.entering:
			return fmt.Sprintf("member %d, which has returned, is not in the job", n)
		case low < w.config.chunks:
			return fmt.Sprintf("member %d lacks the result of chunk %d", n, low)
		default:
			return fmt.Sprintf("member %d has not finished", n)
		}
	}
	return "the job is not over"
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
	w := &world{config: c, rules: rules, retell: true}
	w.start()
	var lines []string
	for _, s := range steps {
		w.take(s)
		lines = append(lines, w.tell)
	}
	return lines
}
