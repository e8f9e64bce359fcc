package main

import "tributary/verify/protocol/explorer"

const (
	mostMembers = 3
	mostTrees   = 3
	mostChunks  = 4
)

// state is a state of members and trees; its zero chunks, trees and members are not used.
type state struct {
	generation uint8
	dead       uint8 // trees
	stopping   bool
	lost       bool
	started    [mostMembers]uint8                        // reductions
	returned   [mostMembers]uint8                        // reductions given back to the caller
	stopped    uint8                                     // members that have reported
	reported   [mostMembers]uint8                        // chunks with sums, as reported
	lacking    [mostMembers]uint8                        // chunks that the epoch sums, by the member's view
	offset     [mostMembers]uint8                        // place of the first of them
	cell       [mostMembers][mostChunks]uint8            // sum that a member holds; 0: none
	sent       [mostMembers][mostTrees][mostChunks]uint8 // by VID: chunk + 1; plus wrong: a sum as input
	taken      [mostChunks]uint8                         // sum of a chunk that some member has taken
}

// wrong marks a contribution that is no input.
const wrong = 0x80

// world is a state with the rules and everything that they read and write.
type world struct {
	config
	state
	explorer.Story
	rules  ruleSet
	trees  int
	chunks int
}

func newWorld(c config, rules ruleSet, only string) *world {
	w := &world{config: c, rules: rules, Story: explorer.Story{Only: only}}
	for _, t := range c.schedule {
		w.trees = max(w.trees, t+1)
	}
	for _, n := range c.reductions {
		w.chunks += n
	}
	return w
}

// Current returns the world's state.
func (w *world) Current() *state { return &w.state }

// Start is the first state: all chunks lack their sums.
func (w *world) Start() {
	w.state = state{}
	for m := range w.members {
		w.lacking[m] = 1<<w.chunks - 1
	}
}

// bounds returns the chunks of a reduction.
func (w *world) bounds(reduction int) (from, to int) {
	for _, n := range w.reductions[:reduction] {
		from += n
	}
	return from, from + w.reductions[reduction]
}

// living returns the schedule of this epoch.
func (w *world) living() (s []int) {
	for _, t := range w.schedule {
		if w.dead>>t&1 == 0 {
			s = append(s, t)
		}
	}
	return s // never empty: every tree has an entry, and one lives
}

// queue returns the chunks that a member sends on a tree, in the order of VIDs, as far as its
// reductions have started.
func (w *world) queue(m, tree int) (chunks []int) {
	s := w.living()
	place := int(w.offset[m])
	for r := range int(w.started[m]) {
		from, to := w.bounds(r)
		if w.without(restart) && m == 0 {
			place = 0
		}
		for c := from; c < to; c++ {
			if w.lacking[m]>>c&1 == 0 {
				continue
			}
			if s[place%len(s)] == tree {
				chunks = append(chunks, c)
			}
			place++
		}
	}
	return chunks
}

// sum returns the name of a tree's sums in this epoch.
func (w *world) sum(tree int) uint8 { return 1 + w.generation*mostTrees + uint8(tree) }

// summed reports whether a tree has the sum of a VID.
func (w *world) summed(tree, vid int) bool {
	for m := range w.members {
		if w.sent[m][tree][vid] == 0 {
			return false
		}
	}
	return true
}

func (w *world) start(m int) bool {
	if w.lost || w.stopping || int(w.started[m]) == len(w.reductions) {
		return false
	}
	w.started[m]++
	return true
}

// giveBack returns the member's oldest reduction to its caller, who overwrites the array.
func (w *world) giveBack(m int) bool {
	r := int(w.returned[m])
	if w.lost || r == int(w.started[m]) {
		return false
	}
	from, to := w.bounds(r)
	held := 0
	for c := from; c < to; c++ {
		if w.cell[m][c] != 0 {
			held++
		}
	}
	if held < to-from && (!w.without(earlyBack) || held == 0) {
		return false
	}
	w.returned[m]++
	return true
}

func (w *world) send(m, t int) bool {
	if w.lost || w.stopping || w.dead>>t&1 != 0 {
		return false
	}
	queue := w.queue(m, t)
	vid := 0
	for vid < len(queue) && w.sent[m][t][vid] != 0 {
		vid++
	}
	if vid == len(queue) || vid >= w.window && w.cell[m][queue[vid-w.window]] == 0 {
		return false
	}
	c := queue[vid]
	w.sent[m][t][vid] = uint8(c + 1)
	if w.inPlace && w.cell[m][c] != 0 || w.isReturned(m, c) {
		w.sent[m][t][vid] |= wrong
	}
	if !w.summed(t, vid) {
		return true
	}
	for other := range w.members {
		if x := w.sent[other][t][vid]; x != w.sent[m][t][vid] || x&wrong != 0 {
			w.Violate(rightSum, "sum %d of tree %d has chunk %d of member %d and chunk %d of member %d (%v)", vid, t, int(x&^wrong)-1, other, c, m, x&wrong != 0)
		}
	}
	if w.atOnce() {
		for other := range w.members {
			w.takeSum(other, t, vid)
		}
	}
	return true
}

// atOnce reports whether a sum reaches all members at once.
func (w *world) atOnce() bool { return w.together && !w.without(oneByOne) }

func (w *world) isReturned(m, c int) bool {
	if w.returned[m] == 0 {
		return false
	}
	_, to := w.bounds(int(w.returned[m]) - 1)
	return c < to
}

func (w *world) take(m, t, vid int) bool {
	if w.lost || w.atOnce() || !w.summed(t, vid) || w.stopped>>m&1 != 0 && !w.without(noStop) {
		return false
	}
	if w.cell[m][int(w.sent[m][t][vid]&^wrong)-1] == w.sum(t) {
		return false
	}
	w.takeSum(m, t, vid)
	return true
}

func (w *world) takeSum(m, t, vid int) {
	c := int(w.sent[m][t][vid]&^wrong) - 1
	sum := w.sum(t)
	if w.taken[c] != 0 && w.taken[c] != sum {
		w.Violate(sameBits, "chunk %d has two sums", c)
	}
	w.taken[c], w.cell[m][c] = sum, sum
}

func (w *world) die(t int) bool {
	dead := 0
	for other := range w.trees {
		dead += int(w.dead >> other & 1)
	}
	if w.lost || w.stopping || w.dead>>t&1 != 0 || dead == w.deaths || dead == w.trees-1 {
		return false
	}
	w.dead |= 1 << t
	w.stopping, w.stopped = true, 0
	return true
}

// stop reports what a member holds. Sums on their way to it come before, or never.
func (w *world) stop(m int) bool {
	if w.lost || !w.stopping || w.stopped>>m&1 != 0 {
		return false
	}
	w.stopped |= 1 << m
	w.reported[m] = 0
	for c := range w.chunks {
		if w.cell[m][c] != 0 {
			w.reported[m] |= 1 << c
		}
	}
	return true
}

// begin begins a new epoch when all members have stopped.
func (w *world) begin() bool {
	if w.lost || !w.stopping || w.stopped != 1<<w.members-1 {
		return false
	}
	done, all := uint8(0), uint8(1<<w.chunks-1)
	for m := range w.members {
		done |= w.reported[m]
		all &= w.reported[m]
	}
	if w.without(remake) {
		done = all
	}
	for c := range w.chunks {
		if done>>c&1 == 0 || w.without(noShare) {
			continue
		}
		if !w.share(c) {
			return true
		}
	}
	for m := range w.members {
		w.offset[m] = 0
		if w.without(placesOn) {
			w.offset[m] = w.started[m]
		}
		w.lacking[m] = (1<<w.chunks - 1) &^ done
		switch {
		case w.without(noShare):
			w.lacking[m] = (1<<w.chunks - 1) &^ w.reported[m]
		case w.without(allChunks):
			for c := range w.chunks {
				if w.cell[m][c] != 0 && w.reported[m]>>c&1 != 0 && m == 0 {
					w.offset[m]++
				}
			}
		}
	}
	w.sent = [mostMembers][mostTrees][mostChunks]uint8{}
	w.stopping, w.stopped, w.reported = false, 0, [mostMembers]uint8{}
	w.generation++
	return true
}

// share gives all members the sum of a chunk that one of them reported. It reports whether one is left.
func (w *world) share(c int) bool {
	var from uint8
	lacks := false
	for m := range w.members {
		if w.reported[m]>>c&1 == 0 {
			lacks = true
		} else if !w.isReturned(m, c) {
			from = w.cell[m][c]
		}
	}
	if lacks && from == 0 {
		if w.without(lostWaits) {
			return true
		}
		if w.together {
			w.Violate(nothingLost, "chunk %d: some members lack its sum, and the others gave it back", c)
		}
		w.lost = true
		return false
	}
	for m := range w.members {
		if w.cell[m][c] == 0 {
			w.cell[m][c] = from
		}
	}
	return true
}

// over reports whether nothing is left to do.
func (w *world) over() bool {
	if w.lost {
		return true
	}
	for m := range w.members {
		if int(w.returned[m]) < len(w.reductions) {
			return false
		}
	}
	return true
}
