package main

// outcome is what an exploration found.
type outcome struct {
	states int
	steps  int  // transitions, those that change nothing left out
	depth  int  // of the state that is furthest from the start
	cut    bool // not all states were looked at: there are more than were allowed

	broken *violation // nil: every property holds in every state
	length int        // steps of the counterexample, up to where faults cease
	trace  []string   // the counterexample
}

// explorer goes through all reachable states of a configuration, nearest to the
// start first, so that a counterexample is a shortest one.
type explorer struct {
	config   *config
	rules    ruleSet
	only     property // what is looked for; the zero property: anything
	packets  *packetTable
	symmetry *symmetry

	numbers map[string]int32 // of states, by canonical encoding
	states  []string
	parents []int32
	depths  []int32
	good    map[string]bool // states without network from which all gets done
	found   outcome
	limit   int // of states; 0: none
	watch   *watch
}

// explore goes through a configuration with some rules left out. First it looks
// for a state in which a property breaks; when there is none, for one from which
// not everything gets done. Only that one property is looked for, unless it is
// the zero property. It looks at limit states at most, if that is not 0, and shows
// on seen how far it is.
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

// reach notes a state, unless it is known.
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

// judgeProgress asks whether everything gets done from a state.
func (e *explorer) judgeProgress(w *world, number int32) {
	w.decode(e.states[number])
	w.judgeProgress(e.symmetry, e.good)
	if w.broken != nil {
		e.found.length = int(e.depths[number])
		e.found.trace, e.found.broken = e.retell(number, nil)
	}
}

// asksProgress says whether jobs must get done: not where a rogue can hold its
// job up, since no deadline puts it out.
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

// retell tells how a state is reached, and what then breaks a property: the
// step that broke it, or, when it is nil, that not everything gets done.
// Members may have changed their numbers on the way to the states that are
// noted, so each step is looked for anew.
func (e *explorer) retell(number int32, broken *violation) ([]string, *violation) {
	var path []int32
	for n := number; n > 0; n = e.parents[n] {
		path = append(path, n)
	}
	w := e.world()
	w.tale = &tale{}
	w.start()
	for i := len(path) - 1; i >= 0; i-- {
		e.tellStep(w, func(next *world) bool {
			return next.broken == nil && string(e.symmetry.canonical(&next.state)) == e.states[path[i]]
		})
	}
	if broken != nil {
		e.tellStep(w, func(next *world) bool { return next.broken != nil && next.broken.property == broken.property })
		return w.tale.lines(), w.broken
	}
	return e.tellNoProgress(w)
}

// tellNoProgress tells how faults cease, and not everything gets done. The
// workers that stand here for those of the noted state take their turns in the
// order of those.
func (e *explorer) tellNoProgress(w *world) ([]string, *violation) {
	before := len(w.tale.steps)
	from := w.state
	for _, order := range e.symmetry.orders {
		w.state, w.turns = from, order
		w.tale.steps = w.tale.steps[:before]
		w.begin()
		w.say("the network loses everything that is under way; from here on it loses nothing, and timers run out")
		w.tale.calm = true
		if w.judgeProgress(e.symmetry, map[string]bool{}); w.broken != nil {
			return w.tale.lines(), w.broken
		}
	}
	panic("explore: the counterexample cannot be retold")
}

// tellStep takes the first step from w after which fits holds, and tells it.
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
