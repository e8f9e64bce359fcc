package explorer

import "slices"

// World is a state with everything that reads and writes it. S is the state, and T is a step. Story
// has the methods from Begin on.
type World[S comparable, T any] interface {
	// Current returns the state.
	Current() *S
	// Start sets the first state.
	Start()
	// Steps calls f with every step that may be possible, in an order that the state determines.
	Steps(f func(T))
	// Step makes a step, and reports whether it was possible.
	Step(T) bool
	// Completes lets faults cease, and judges whether everything completes from the state. In the world of
	// a search it may remember the states that complete.
	Completes()

	Begin()
	Tell()
	Lines() []string
	Broken() (property, how string)
}

// Search visits all reachable states of a configuration breadth first, so a counterexample is a shortest
// one. Then it asks of each state whether everything completes.
type Search[S comparable, T any, W World[S, T]] struct {
	// New returns a world with the tables of the configuration.
	New func() W
	// States is empty before the search.
	States States[S]
	Name   string // of the configuration
	// Progresses is whether to ask what completes.
	Progresses bool
	Limit      int // the most states; 0: no limit

	from  []int32 // the state before each
	found Outcome
}

// Run explores. It returns the first violation that it finds.
func (s *Search[S, T, W]) Run(watch *Watch) Outcome {
	work, lister := s.New(), s.New()
	work.Start()
	s.reach(work.Current(), -1)
	for i := 0; i < s.States.Len() && s.found.Broken == ""; i++ {
		s.expand(work, lister, i)
		watch.show(s.Name, "steps", i, s.States.Len())
	}
	for i := 0; s.Progresses && i < s.States.Len() && s.found.Broken == ""; i++ {
		s.States.Load(i, work.Current())
		if work.Completes(); s.isBroken(work) {
			s.retell(i, false)
		}
		watch.show(s.Name, "progress", i, s.States.Len())
	}
	watch.clear()
	s.found.States = s.States.Len()
	s.found.Depth = len(s.path(s.States.Len() - 1))
	return s.found
}

func (s *Search[S, T, W]) isBroken(w W) bool {
	property, _ := w.Broken()
	return property != ""
}

// reach records a state unless it is known.
func (s *Search[S, T, W]) reach(state *S, from int) {
	if s.Limit != 0 && s.States.Len() >= s.Limit {
		s.found.Cut = s.found.Cut || !s.States.Has(state)
		return
	}
	if s.States.Add(state) {
		s.from = append(s.from, int32(from))
	}
}

// expand takes every step from a state.
func (s *Search[S, T, W]) expand(work, lister W, number int) {
	from, to := lister.Current(), work.Current()
	s.States.Load(number, from)
	lister.Steps(func(step T) {
		if s.found.Broken != "" {
			return
		}
		*to = *from
		possible := work.Step(step)
		switch {
		case s.isBroken(work):
			s.retell(number, true)
		case possible && *to != *from:
			s.found.Steps++
			s.reach(to, number)
		}
	})
}

// path returns the numbers of the states between the start and a state, with that one.
func (s *Search[S, T, W]) path(to int) []int {
	var path []int
	for ; to > 0; to = int(s.from[to]) {
		path = append(path, to)
	}
	slices.Reverse(path)
	return path
}

// notRetold is why a search panics: a world depends on more than its state.
const notRetold = "explorer: the counterexample cannot be retold"

// retell records the path to a state, and what then breaks a property: a step, or the lack of progress. It
// searches for the steps, since the states that are kept may have other numbers for equal parts.
func (s *Search[S, T, W]) retell(to int, byStep bool) {
	w := s.New()
	w.Start()
	w.Tell()
	for _, n := range s.path(to) {
		s.retellStep(w, func(next W) bool { return s.States.Is(n, next.Current()) })
	}
	if byStep {
		s.retellStep(w, s.isBroken)
	} else {
		w.Begin()
		w.Completes()
	}
	s.found.Path = w.Lines()
	if s.found.Broken, s.found.How = w.Broken(); s.found.Broken == "" {
		panic(notRetold)
	}
}

// retellStep takes the first step after which fits holds.
func (s *Search[S, T, W]) retellStep(w W, fits func(W) bool) {
	var chosen *T
	w.Steps(func(step T) {
		if chosen != nil {
			return
		}
		next := s.New()
		*next.Current() = *w.Current()
		if possible := next.Step(step); (possible || s.isBroken(next)) && fits(next) {
			chosen = &step
		}
	})
	if chosen == nil {
		panic(notRetold)
	}
	w.Begin()
	w.Step(*chosen)
}
