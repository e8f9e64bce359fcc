package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// search visits all reachable states of a configuration.
type search = explorer.Search[state, step, *world]

func newSearch(c config, rules ruleSet, only string) *search {
	return &search{Name: c.name, Progresses: only == "" || only == progress, States: explorer.NewSet[state](),
		New: func() *world { return &world{Story: explorer.Story{Only: only}, config: &c, rules: rules} }}
}

// Completes judges whether a step is possible that must happen some day, unless the job is over.
func (w *world) Completes() {
	from, moves := w.state, w.over != notOver
	w.Steps(func(s step) {
		if !moves && s.kind < evictLiving {
			moves = w.Step(s)
			w.state = from
		}
	})
	w.Drop()
	if !moves {
		w.Violate(progress, "no step is possible, and %s", w.waits())
	}
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
