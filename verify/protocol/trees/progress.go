package main

import "slices"

// asksProgress reports whether the job must complete. A rogue can block its job, and so can a wrong
// set-up.
func (c *config) asksProgress() bool { return !c.rogue && !c.misfit }

// Completes drops all packets under way and stops all faults. Then, round after round, every worker's
// timer expires, every packet arrives at once, and the cards do all that they can. Every worker must
// then get every result, and the job must end on every card.
//
// This is the worst case of loss, followed by one fair run. A packet that the network does not lose
// can arrive first instead. That leads to another explored state, which is judged as well.
func (w *world) Completes() {
	w.Describe("the network loses all packets in flight; from here on it loses nothing, and timers expire")
	w.calm, w.network, w.queue = true, packetSet{}, nil
	var passed []string
	for {
		_, key := w.symmetry.canonical(&w.state)
		if w.good[string(key)] || w.missing() == "" {
			for _, p := range append(passed, string(key)) {
				w.good[p] = true
			}
			return
		}
		if slices.Contains(passed, string(key)) {
			w.Violate(progress, "this repeats forever, and %s", w.missing())
			return
		}
		passed = append(passed, string(key))
		before := w.state
		w.round()
		if broken, _ := w.Broken(); broken != "" {
			return
		}
		if w.state == before {
			w.Violate(progress, "no step is possible, and %s", w.missing())
			return
		}
	}
}

// missing describes the work that remains.
func (w *world) missing() string {
	for i := range w.config.workers() {
		switch k := &w.workers[i]; {
		case k.finished:
		case k.life != active:
			return w.worker(i) + " is not in the job"
		case int(k.low) < w.config.end():
			return w.worker(i) + " lacks the result of " + w.v(int(k.low))
		default:
			return w.worker(i) + " has no reply to its finish"
		}
	}
	for c := range w.config.cards() {
		if k := &w.cards[c]; k.up && k.lost == none {
			return "the job of " + w.card(c) + " has not ended"
		}
	}
	return ""
}

// round gives each worker, each card and the owner one turn.
func (w *world) round() {
	for i := range w.config.workers() {
		w.turn(i)
	}
	w.cardsWork()
	if w.needsEpoch() {
		w.Begin()
		w.newEpoch()
		w.drain()
	}
	w.happens(step{kind: stepAbort})
	for c := range w.config.cards() {
		if w.owner.confirmed&bit(c) == 0 {
			w.send(w.commitOf(c), 0)
			w.drain()
		}
	}
}

// cardsWork lets the cards sum and send what they can. No member repeats anything meanwhile, so a
// card must fall silent.
func (w *world) cardsWork() {
	for c := range w.config.cards() {
		w.happens(step{kind: stepRest, card: uint8(c)})
		for i := range w.config.slots() {
			s := step{card: uint8(c), member: uint8(i)}
			s.kind = stepLanes
			w.happens(s)
			if s.kind = stepUp; c == root || !w.happens(s) {
				continue
			}
			w.happens(step{kind: stepRest, card: uint8(c)})
			if w.happens(s) {
				w.Violate(progress, "%s sends the same own sum forever, though no member asks for it", w.card(c))
			}
		}
	}
}

// turn is one worker's turn. It asks for each missing result, and sends the data again on request;
// with dataOnly it sends the data again. It sends finish when it lacks none.
func (w *world) turn(i int) {
	for w.happens(step{kind: stepSend, member: uint8(i)}) {
	}
	k := &w.workers[i]
	for vid := int(k.low); vid < int(k.next) && k.life == active; vid++ {
		if k.holds(vid) {
			continue
		}
		p := w.dataOf(i, vid)
		if w.config.dataOnly || w.ask(p) == sendIt {
			w.send(p, 0)
		}
		w.drain()
	}
	if k.life == active && int(k.low) == w.config.end() && !k.finished {
		w.send(w.finishOf(i), 0)
		w.drain()
	}
}

// happens makes a step if it is possible, and delivers the packets that follow.
func (w *world) happens(s step) bool {
	if !w.Step(s) {
		return false
	}
	w.drain()
	return true
}

// drain delivers each packet under way, and those that follow.
func (w *world) drain() {
	for len(w.queue) > 0 {
		d := w.queue[0]
		w.queue = w.queue[1:]
		m := d.member
		if m < 0 {
			m = int(d.packet.member)
		}
		w.deliver(d.packet, m)
	}
}
