package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// Sizes of the largest configuration.
const (
	maxMembers = 3
	maxChunks  = 5
	maxEpochs  = 6
)

// value is a result: the members that it names (bits 0 to 2), those whose inputs it sums (bits 3
// to 5), and whether it sums anything else (bit 6). 0: there is none.
type value uint8

const (
	otherContent value = 1 << 6
	settled      value = 1 << 7 // whatever it was: no member can take it any more
)

func (v value) named() uint8 { return uint8(v) & 7 }
func (v value) right() bool {
	return v == settled || v&otherContent == 0 && uint8(v)>>3&7 == v.named()
}

// content is what a member contributes to a chunk.
type content uint8

const (
	nothing content = iota
	input           // the member's input
	zeros           // for a chunk whose result the member holds
	sum             // what its array holds otherwise: a result, or another call's input
)

// chunks is a set of chunks, a bit each; seats is a set of ranks.
type (
	chunks uint8
	seats  uint8
)

func bit(v int) chunks { return 1 << v }
func seat(n int) seats { return 1 << n }

// ending is how a job ended.
type ending uint8

const (
	notOver  ending = iota
	finished        // all seats that are not lost or evicted have finished
	missing         // a daemon has died, and a rank is not there for the next one
	lost            // a seat seems to lack a result that nobody keeps
)

// state is all that the world remembers. It is comparable.
type state struct {
	epoch int8 // the card's, from 0
	first int8 // the epoch's first chunk
	left  failures
	over  ending

	cardUp  bool // the card has the job
	given   [maxChunks][maxMembers]content
	sums    [maxEpochs][maxChunks]value // of the epochs, as the card made them
	summed  [maxEpochs]chunks           // the daemon has seen these results
	evicted seats                       // by the card
	noticed seats                       // of these: the daemon knows it, and the seat may

	daemonUp  bool
	gathering bool // the daemon waits for reports
	rejoining bool // it has replaced one that died, and has begun no epoch
	kept      [maxChunks]value
	paused    bool
	pause     int8 // the chunk from which on the daemon drops data: a pause's alone
	announced int8 // the first chunk after the calls that seats have begun

	bits [maxChunks]value // of results that a member took, even if it is lost now

	// Of protocols that lack a rule alone.
	handed  [maxChunks]value // with the start of the epoch
	stale   seats            // the notice of an old epoch's eviction is under way
	marked  seats            // taken for evicted though they have returned
	skipped bool             // the daemon waits for results that never come

	members [maxMembers]member
}

// failures are how often each may still happen.
type failures struct{ cards, daemons, leaves, returns, evictions int8 }

// finish is how far a seat's finish has come.
type finish uint8

const (
	unfinished finish = iota
	confirmed         // by the card, and the daemon knows it
	known             // to the seat: it may leave
)

type member struct {
	dead     bool
	entering bool // it has returned, and waits for an epoch
	later    bool // it has returned during a pause
	fresh    bool // it has not begun its first epoch since it has returned
	finish   finish
	from     int8 // its first chunk
	epoch    int8 // that it takes part in
	first    int8
	stopped  bool   // it has reported and waits for the next epoch
	reported bool   // to this daemon, since it gathers
	told     chunks // held, by its report
	starting bool   // the start of the epoch is under way to it
	sent     chunks // in its epoch
	gave     chunks // its input, since it has joined; it lacks the results
	again    bool   // it finishes again, because a daemon died that had its finish
	read     chunks // results of its epoch that have reached it: matters without a rule alone
	held     [maxChunks]value
	ring     [maxChunks]value  // kept by its library
	late     [maxEpochs]chunks // results of old epochs under way to it: without a rule alone
}

// world is a state and what may happen in it.
type world struct {
	state
	config *config
	rules  ruleSet
	explorer.Story
}

func (w *world) weak(r ruleSet) bool { return w.rules&r != 0 }

// Current returns the world's state.
func (w *world) Current() *state { return &w.state }

// Start is the first state: an epoch has begun.
func (w *world) Start() {
	w.state = state{cardUp: true, daemonUp: true, left: w.config.left}
	for n := w.config.members; n < maxMembers; n++ {
		w.members[n].dead = true
	}
	w.settle()
}

// low returns the first chunk whose result the member lacks.
func (m *member) low() int {
	v := int(m.from)
	for v < maxChunks && m.held[v] != 0 {
		v++
	}
	return v
}

// lacks reports whether a member needs the result of a chunk that it does not hold.
func (m *member) lacks(v int) bool { return v >= int(m.from) && m.held[v] == 0 }

// here reports whether a seat has a living session that has not finished.
func (m *member) here() bool { return !m.dead && m.finish == unfinished }

// out reports whether the daemon takes a seat for evicted.
func (w *world) out(n int) bool {
	return (w.noticed|w.marked)&seat(n) != 0 && !w.members[n].entering
}

// takesPart reports whether a seat takes part in a change of epochs, apart from those that return.
func (w *world) takesPart(n int) bool {
	m := &w.members[n]
	return m.here() && !m.entering && !w.out(n)
}

// anyTakesPart reports whether a seat does.
func (w *world) anyTakesPart() bool {
	for n := range w.config.members {
		if w.takesPart(n) {
			return true
		}
	}
	return false
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
	if v+depth < maxChunks && ring[v+depth] != 0 {
		return
	}
	ring[v] = r
	if v >= depth {
		ring[v-depth] = 0
	}
}

// hold stores a result in a member's array and its library.
func (w *world) hold(n, v int, r value) {
	m := &w.members[n]
	if !r.right() {
		w.Violate(rightSum, "member %d takes a result of chunk %d that names %03b and sums %s", n, v, r.named(), r.sums())
	}
	if !w.config.partial && r != settled && r.named() != uint8(1<<w.config.members-1) {
		w.Violate(rightSum, "the result of chunk %d lacks members", v)
	}
	if r.named()&(1<<n) != 0 && m.gave&bit(v) == 0 {
		w.Violate(rightSum, "the result of chunk %d names member %d, which has not contributed to it since it returned", v, n)
	}
	if b := w.bits[v]; b != 0 && b != r {
		w.Violate(sameBits, "member %d takes a result of chunk %d that differs from the one that has been taken before", n, v)
	}
	w.bits[v], m.held[v] = r, r
	m.gave &^= bit(v)
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
