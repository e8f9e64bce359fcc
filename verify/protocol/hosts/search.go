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

// visited is a state that was reached: by a step, from another state.
type visited struct {
	state
	from int32
	by   step
}

// explore visits all states of a configuration, breadth first, and then asks whether each can go on. It
// tests one property, or all if only is empty.
func explore(c config, rules ruleSet, only string) outcome {
	w := &world{config: &c, rules: rules, only: only}
	w.start()
	seen := map[state]struct{}{w.state: {}}
	all := []visited{{state: w.state, from: -1}}
	for i := 0; i < len(all); i++ {
		var found *outcome
		w.state = all[i].state
		w.steps(func(s step) {
			if found != nil {
				return
			}
			w.state, w.broken = all[i].state, ""
			switch possible := w.take(s); {
			case w.broken != "":
				found = &outcome{states: len(all), broken: w.broken, how: w.how, path: retell(&c, rules, all, int32(i), &s)}
			case possible:
				if _, known := seen[w.state]; !known {
					seen[w.state] = struct{}{}
					all = append(all, visited{w.state, int32(i), s})
				}
			}
			w.state = all[i].state
		})
		if found != nil {
			return *found
		}
	}
	if only == "" || only == progress {
		if found := judgeProgress(&c, rules, all); found != nil {
			return *found
		}
	}
	return outcome{states: len(all)}
}

// judgeProgress lets faults cease in every state, in the order in which they were found.
func judgeProgress(c *config, rules ruleSet, all []visited) *outcome {
	good := map[state]bool{}
	for i := range all {
		w := &world{state: all[i].state, config: c, rules: rules, calm: true}
		if w.completes(good) {
			continue
		}
		path := retell(c, rules, all, int32(i), nil)
		w = &world{state: all[i].state, config: c, rules: rules, calm: true, retell: true}
		w.completes(map[state]bool{})
		return &outcome{states: len(all), broken: progress, how: w.how, path: append(path, w.rest...)}
	}
	return nil
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

// counterexample formats the path to a broken property.
func counterexample(c config, weak weakening, found outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", c.name, c.about)
	if weak.name != "" {
		fmt.Fprintf(&b, "weakened: %s\n", weak.means)
	}
	fmt.Fprintln(&b)
	for i, line := range found.path {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, line)
	}
	fmt.Fprintf(&b, "\nviolated: %s\n     %s\n", found.broken, found.how)
	for _, p := range properties {
		if p.name == found.broken {
			fmt.Fprintf(&b, "property: %s\n", p.holds)
		}
	}
	return b.String()
}
