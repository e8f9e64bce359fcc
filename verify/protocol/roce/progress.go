package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// Completes drops all packets under way and stops all faults. Then, round after round, every sender's
// timer expires, and every packet arrives at once. Every rank must then receive and complete everything.
//
// This is the worst case of loss, followed by one fair run. A packet that the network does not lose can
// arrive first instead. That leads to another explored state, which is judged as well.
func (w *world) Completes() {
	if w.good == nil {
		w.good = explorer.NewSet[state]()
	}
	w.Describe("the network loses all packets in flight; from here on it loses nothing, and timers expire")
	w.calm, w.queue = true, nil
	w.network, w.up, w.down = packetSet{}, [maxRanks]queue{}, [maxRanks]queue{}
	var passed []state
	for w.lacks() != "" && !w.good.Has(&w.state) {
		passed = append(passed, w.state)
		w.round()
		if w.state == passed[len(passed)-1] {
			w.Violate(progress, "nothing changes any more, and %s", w.lacks())
		}
		if w.isBroken() {
			return
		}
	}
	for _, s := range passed {
		w.good.Add(&s)
	}
}

// round lets each rank's timer expire, and delivers all that follows.
func (w *world) round() {
	w.afterwards()
	w.drain()
	for i := range w.config.ranks {
		r := &w.ranks[i]
		if r.gone || int(r.oldest) == w.sent(i) {
			continue
		}
		w.Begin()
		w.Describe("the timer of rank %d expires, and it repeats from %s", i, w.v(int(r.oldest)))
		first, last := int(r.oldest), w.sent(i)
		if w.config.oldest {
			last = first + 1
		}
		for v := first; v < last; v++ {
			w.send(w.dataOf(i, v, true))
		}
		w.drain()
	}
}

// drain delivers each packet under way, and those that follow.
func (w *world) drain() {
	for len(w.queue) > 0 && !w.isBroken() {
		p := w.queue[0]
		w.queue = w.queue[1:]
		w.deliver(p)
	}
}

func (w *world) isBroken() bool {
	property, _ := w.Broken()
	return property != ""
}

// lacks describes the work that remains. A job that has ended has none: its ranks get errors.
func (w *world) lacks() string {
	for i := range w.config.ranks {
		switch r := &w.ranks[i]; {
		case w.over:
		case int(r.expected) < w.config.end():
			return fmt.Sprintf("rank %d lacks v=%d", i, r.expected)
		case int(r.oldest) < w.config.end():
			return fmt.Sprintf("rank %d has not completed v=%d", i, r.oldest)
		}
	}
	return ""
}
