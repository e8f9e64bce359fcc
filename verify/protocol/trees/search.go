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

// explorer visits all reachable states of a configuration breadth first, so a counterexample is a
// shortest one.
type explorer struct {
	world    *world // for its tables
	symmetry *symmetry
	known    map[string]struct{} // by representative
	states   []string
	from     []int32
	by       []step
}

// explore visits all states of a configuration, and then asks whether each can complete. It tests one
// property, or all if only is empty.
func explore(c config, rules ruleSet, only string, seen *watch) outcome {
	return newExplorer(c, rules, only).explore(seen)
}

func newExplorer(c config, rules ruleSet, only string) *explorer {
	w := newWorld(&c, rules, only)
	return &explorer{world: w, symmetry: newSymmetry(w), known: map[string]struct{}{}}
}

func (e *explorer) explore(seen *watch) outcome {
	first := e.world.another()
	first.start()
	e.reach(&first.state, -1, step{})
	for i := 0; i < len(e.states); i++ {
		if w, last := e.expand(int32(i)); w != nil {
			return e.outcome(w, e.retell(int32(i), &last))
		}
		seen.show(e.world.config.name, "steps", i, len(e.states))
	}
	found := outcome{states: len(e.states)}
	if only := e.world.only; e.world.config.asksProgress() && (only == "" || only == progress) {
		found = e.judgeProgress(seen)
	}
	seen.clear()
	return found
}

func (e *explorer) outcome(w *world, path []string) outcome {
	return outcome{states: len(e.states), broken: w.broken, how: w.how, path: path}
}

// reach records a state unless it is known.
func (e *explorer) reach(s *state, from int32, by step) {
	own, key := e.symmetry.canonical(s)
	if _, known := e.known[string(key)]; known {
		return
	}
	k := string(key)
	e.known[k] = struct{}{}
	if string(own) == k {
		e.states = append(e.states, k)
	} else {
		e.states = append(e.states, string(own))
	}
	e.from = append(e.from, from)
	e.by = append(e.by, by)
}

// expand takes every step from a state. It returns the world in which a property broke, and the step.
func (e *explorer) expand(number int32) (broken *world, last step) {
	from := e.world.config.decode(e.states[number])
	work := e.world.another()
	lister := e.world.another()
	lister.state = from
	lister.steps(func(s step) {
		if broken != nil {
			return
		}
		work.state = from
		possible := work.step(s)
		switch {
		case work.broken != "":
			broken, last = work, s
		case possible && work.state != from:
			e.reach(&work.state, number, s)
		}
	})
	e.world.alphabet = lister.alphabet
	return broken, last
}

// judgeProgress lets faults cease in every state, in the order in which they were found.
func (e *explorer) judgeProgress(seen *watch) outcome {
	good := map[string]bool{}
	w := e.world.another()
	w.calm = true
	for i := range e.states {
		seen.show(e.world.config.name, "progress", i, len(e.states))
		w.state = e.world.config.decode(e.states[i])
		if w.completes(e.symmetry, good); w.broken == "" {
			continue
		}
		path := e.retell(int32(i), nil)
		w = e.world.another()
		w.calm, w.retell = true, true
		w.state = e.world.config.decode(e.states[i])
		w.completes(e.symmetry, map[string]bool{})
		w.begin()
		return e.outcome(w, append(path, w.lines...))
	}
	return outcome{states: len(e.states)}
}

// retell describes the path to a state, and a last step from it.
func (e *explorer) retell(to int32, last *step) []string {
	var steps []step
	for i := to; e.from[i] >= 0; i = e.from[i] {
		steps = append([]step{e.by[i]}, steps...)
	}
	if last != nil {
		steps = append(steps, *last)
	}
	w := e.world.another()
	w.start()
	w.retell = true
	for _, s := range steps {
		w.step(s)
	}
	w.begin()
	return w.lines
}

// counterexample formats the path to a broken property.
func counterexample(c config, weak weakening, found outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s; M = %d\n", c.name, c.about, c.mod)
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
