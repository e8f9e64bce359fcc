package main

// outcome is what an exploration found.
type outcome struct {
	states int
	steps  int  // transitions that change the state
	depth  int  // largest distance of a state from the start
	cut    bool // the state limit ended the exploration early

	broken *violation // nil: every property holds in every state
	length int        // steps of the counterexample before faults cease
	trace  []string   // the counterexample
}

// explorer visits all reachable states of a configuration breadth first, so a counterexample is a
// shortest one.
type explorer struct {
	config   *config
	rules    ruleSet
	only     property // the property under test; the zero property: all
	packets  *packetTable
	symmetry *symmetry

	numbers map[string]int32 // of states, by canonical encoding
	states  []string
	parents []int32
	depths  []int32
	good    map[string]bool // states with an empty network that are known to complete
	found   outcome
	limit   int // of states; 0: none
	watch   *watch
}

// explore explores a configuration with some rules left out. First it searches for a state that
// breaks a property. If there is none, it searches for a state from which the jobs do not
// complete. It tests property only, or all properties if only is the zero property. It stops
// after limit states, unless limit is 0, and reports its progress on seen.
func explore(c config, rules ruleSet, only property, limit int, seen *watch) outcome {
	e := newExplorer(c, rules, only, limit)
	e.watch = seen
	e.explore()
	return e.found
}

func newExplorer(c config, rules ruleSet, only property, limit int) *explorer {
	e := &explorer{config: &c, rules: rules, only: only, packets: &packetTable{numbers: map[packet]int{}},
		numbers: map[string]int32{}, good: map[string]bool{}, limit: limit}
	e.symmetry = newSymmetry(e.world())
	return e
}

func (e *explorer) explore() {
	first := e.world()
	first.start()
	e.reach(&first.state, -1)
	work := e.world()
	for i := 0; i < len(e.states) && e.found.broken == nil; i++ {
		e.expand(work, int32(i))
		e.watch.show(e.config.Name, "steps", i, len(e.states))
	}
	for i := 0; i < len(e.states) && e.found.broken == nil && e.config.asksProgress(); i++ {
		e.judgeProgress(work, int32(i))
		e.watch.show(e.config.Name, "progress", i, len(e.states))
	}
	e.watch.clear()
	e.found.states = len(e.states)
	e.found.depth = int(e.depths[len(e.depths)-1])
}

func (e *explorer) world() *world {
	return &world{config: e.config, rules: e.rules, only: e.only, packets: e.packets, turns: [maxMembers]int{0, 1, 2}}
}

// reach records a state unless it is known.
func (e *explorer) reach(s *state, parent int32) {
	key := e.symmetry.canonical(s)
	if _, known := e.numbers[string(key)]; known {
		return
	}
	if e.limit != 0 && len(e.states) >= e.limit {
		e.found.cut = true
		return
	}
	state := string(key)
	number := int32(len(e.states))
	e.numbers[state] = number
	e.states = append(e.states, state)
	e.parents = append(e.parents, parent)
	depth := int32(0)
	if parent >= 0 {
		depth = e.depths[parent] + 1
	}
	e.depths = append(e.depths, depth)
}

// judgeProgress checks that everything completes from a state.
func (e *explorer) judgeProgress(w *world, number int32) {
	w.decode(e.states[number])
	w.judgeProgress(e.symmetry, e.good)
	if w.broken != nil {
		e.found.length = int(e.depths[number])
		e.found.trace, e.found.broken = e.retell(number, nil)
	}
}

// asksProgress reports whether jobs must complete. Without partial sums no deadline evicts a
// rogue, so a rogue can block its job.
func (c *config) asksProgress() bool { return !c.Rogue || c.Partial }

// expand takes every step from a state.
func (e *explorer) expand(w *world, number int32) {
	from := e.world()
	from.decode(e.states[number])
	from.steps(func(s step) {
		if e.found.broken != nil {
			return
		}
		w.state = from.state
		if !w.take(s) || w.state == from.state && w.broken == nil {
			return
		}
		e.found.steps++
		if w.broken != nil {
			e.found.length = int(e.depths[number]) + 1
			e.found.trace, e.found.broken = e.retell(number, w.broken)
			return
		}
		e.reach(&w.state, number)
	})
}

// retell describes the path to a state and what then breaks a property: a step, or, when broken
// is nil, the lack of progress. The recorded states may have renumbered their members, so retell
// searches for each step again.
func (e *explorer) retell(number int32, broken *violation) ([]string, *violation) {
	var path []int32
	for n := number; n > 0; n = e.parents[n] {
		path = append(path, n)
	}
	w := e.world()
	w.trace = &trace{}
	w.start()
	for i := len(path) - 1; i >= 0; i-- {
		e.tellStep(w, func(next *world) bool {
			return next.broken == nil && string(e.symmetry.canonical(&next.state)) == e.states[path[i]]
		})
	}
	if broken != nil {
		e.tellStep(w, func(next *world) bool { return next.broken != nil && next.broken.property == broken.property })
		return w.trace.lines(), w.broken
	}
	return e.tellNoProgress(w)
}

// tellNoProgress describes the run without faults that does not complete. The recorded state may
// number the workers differently, so it tries each order of turns.
func (e *explorer) tellNoProgress(w *world) ([]string, *violation) {
	before := len(w.trace.steps)
	from := w.state
	for _, order := range e.symmetry.orders {
		w.state, w.turns = from, order
		w.trace.steps = w.trace.steps[:before]
		w.begin()
		w.describe("the network loses all packets in flight; from here on it loses nothing, and timers expire")
		w.trace.calm = true
		if w.judgeProgress(e.symmetry, map[string]bool{}); w.broken != nil {
			return w.trace.lines(), w.broken
		}
	}
	panic("explore: the counterexample cannot be retold")
}

// tellStep takes the first step from w after which fits holds, and describes it.
func (e *explorer) tellStep(w *world, fits func(*world) bool) {
	var chosen *step
	w.steps(func(s step) {
		next := e.world()
		next.state = w.state
		if chosen == nil && next.take(s) && fits(next) {
			chosen = &s
		}
	})
	w.begin()
	w.take(*chosen)
}
