package main

import "fmt"

// Sizes of the largest configuration.
const (
	maxMembers = 3
	maxChunks  = 5
	maxEpochs  = 4
)

// value is a result: the members that it names (bits 0 to 2), those whose inputs it sums (bits 3
// to 5), and whether it sums anything else (bit 6). 0: there is none.
type value uint8

const otherContent value = 1 << 6

func (v value) named() uint8 { return uint8(v) & 7 }
func (v value) right() bool  { return v&otherContent == 0 && uint8(v)>>3&7 == v.named() }

// content is what a member contributes to a chunk.
type content uint8

const (
	nothing content = iota
	input           // the member's input
	zeros           // for a chunk whose result the member holds
	sum             // what its array holds otherwise: a result, or a later call's input
)

// chunks is a set of chunks, a bit each.
type chunks uint8

func bit(v int) chunks { return 1 << v }

// state is all that the world remembers. It is comparable.
type state struct {
	epoch  int8 // the card's, from 0
	first  int8 // the epoch's first chunk
	cards  int8 // how often the card may still die
	deaths int8 // how often the daemon may still die
	leaves int8 // how many members may still die

	cardUp bool // the card has the job
	given  [maxChunks][maxMembers]content
	sums   [maxEpochs][maxChunks]value // of the epochs, as the card made them
	summed chunks                      // in this epoch

	daemonUp  bool
	gathering bool // the daemon waits for reports
	kept      [maxChunks]value
	handed    [maxChunks]value // with the start of the epoch: without that rule alone

	members [maxMembers]member
}

type member struct {
	dead     bool
	epoch    int8 // that it takes part in
	first    int8
	stopped  bool   // it has reported and waits for the next epoch
	reported bool   // to this daemon, since it gathers
	told     chunks // held, by its report
	starting bool   // the start of the epoch is under way to it
	sent     chunks // in its epoch
	read     chunks // results of its epoch that have reached it
	held     [maxChunks]value
	ring     [maxChunks]value  // kept by its library
	flight   [maxEpochs]chunks // results under way to it, by epoch
}

// world is a state and what may happen in it.
type world struct {
	state
	config *config
	rules  ruleSet
	only   string // the property under test; "": all

	broken string // the property that a step broke
	how    string
	tell   string // what the step did
}

func (w *world) weak(r ruleSet) bool { return w.rules&r != 0 }

func (w *world) violate(property, format string, args ...any) {
	if w.broken == "" && (w.only == "" || w.only == property) {
		w.broken, w.how = property, fmt.Sprintf(format, args...)
	}
}

func (w *world) say(format string, args ...any) { w.tell = fmt.Sprintf(format, args...) }

// start is the first state: an epoch has begun.
func (w *world) start() {
	c := w.config
	w.state = state{cardUp: true, daemonUp: true, cards: int8(c.cards), deaths: int8(c.daemons), leaves: int8(c.leaves)}
	for m := c.members; m < maxMembers; m++ {
		w.members[m].dead = true
	}
}

// low returns the first chunk whose result the member lacks.
func (m *member) low() int {
	v := 0
	for v < maxChunks && m.held[v] != 0 {
		v++
	}
	return v
}

// depth returns how many results are kept.
func (c *config) depth() int {
	if c.partial {
		return 2 * c.window
	}
	return c.window
}

// keep puts a result into its slot of a ring of results, over the one that was there.
func keep(ring *[maxChunks]value, v, depth int, r value) {
	ring[v] = r
	if v >= depth {
		ring[v-depth] = 0
	}
}

// hold stores a result in a member's array and its library.
func (w *world) hold(n, v int, r value) {
	m := &w.members[n]
	if !r.right() {
		w.violate("right sum", "member %d takes a result of chunk %d that names %03b and sums %s", n, v, r.named(), r.sums())
	}
	if !w.config.partial && r.named() != uint8(1<<w.config.members-1) {
		w.violate("right sum", "the result of chunk %d lacks members", v)
	}
	for o := range w.members {
		if other := w.members[o].held[v]; o != n && !w.members[o].dead && other != 0 && other != r {
			w.violate("same bits", "members %d and %d hold different results of chunk %d", o, n, v)
		}
	}
	m.held[v] = r
	if w.weak(noLibraryKeep) {
		return
	}
	depth := w.config.depth()
	if w.weak(keepOneWindow) {
		depth = w.config.window
	}
	keep(&m.ring, v, depth, r)
	if w.weak(keepUntilReturn) {
		for u := range m.low() {
			m.ring[u] = 0
		}
	}
}

func (v value) sums() string {
	if v&otherContent != 0 {
		return "what is no input"
	}
	return fmt.Sprintf("the inputs of %03b", uint8(v)>>3&7)
}
