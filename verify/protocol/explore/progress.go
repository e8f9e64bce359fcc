package main

// maxRounds is more than any state needs to complete: a run that takes longer is in a cycle.
const maxRounds = 200

// Completes judges whether everything completes. The recorded state may number the workers differently than
// the one of a counterexample, so a world that tells tries each order of turns.
func (w *world) Completes() {
	if w.trace == nil {
		w.fairRun()
		return
	}
	from, before := w.state, len(w.trace.steps)-1
	for _, order := range w.symmetry.orders {
		w.state, w.turns, w.good = from, order, map[string]bool{}
		w.trace.steps = w.trace.steps[:before]
		w.Begin()
		w.Describe("the network loses all packets in flight; from here on it loses nothing, and timers expire")
		w.trace.calm = true
		w.fairRun()
		if broken, _ := w.Broken(); broken != "" {
			return
		}
	}
}

// fairRun drops all packets under way and stops all faults. Then, round after round, every
// worker's timer expires, every packet arrives at once, and the card does all that it can. Every
// member must then get every result, and every job must end. Deadlines expire only when nothing
// else happens.
//
// This is the worst case of loss, followed by one fair run. A packet that the network does not
// lose can arrive first instead. That leads to another explored state, from which fairRun starts
// as well.
func (w *world) fairRun() {
	w.network = packetSet{}
	var passed []string
	for range maxRounds {
		key := string(w.symmetry.canonical(&w.state))
		if w.good[key] || w.allDone() {
			w.good[key] = true
			for _, p := range passed {
				w.good[p] = true
			}
			return
		}
		passed = append(passed, key)
		before := w.state
		w.round()
		if broken, _ := w.Broken(); broken == progress {
			return
		}
		if w.state == before && !w.deadlines() {
			w.Violate(progress, "no step is possible, and %s", w.missing())
			return
		}
	}
	w.Violate(progress, "this repeats forever, and %s", w.missing())
}

// allDone reports whether no work remains.
func (w *world) allDone() bool { return w.waiting() == nobody }

// nobody and card are the results of waiting that are not member numbers.
const (
	nobody = -1
	card   = -2
)

// waiting returns a member that still has work to do, or card, or nobody.
func (w *world) waiting() int {
	for m := range w.config.members() {
		me := &w.members[m]
		gone := !w.config.honest(m) || me.life == out && !w.needsEpoch(w.config.jobOf(m))
		if !gone && !me.finished {
			return m
		}
	}
	for j := range w.config.Jobs {
		if w.jobs[j].up && !w.rogueIn(j) {
			return card
		}
	}
	return nobody
}

// rogueIn reports whether a rogue is still a member of a job. It can then keep the job from
// ending.
func (w *world) rogueIn(j int) bool {
	last := w.config.members() - 1
	return !w.config.honest(last) && w.jobs[j].members&bit(last) != 0
}

// missing describes the work that remains.
func (w *world) missing() string {
	if w.trace == nil {
		return ""
	}
	m := w.waiting()
	if m == card {
		return "a job has not ended"
	}
	if me := &w.members[m]; me.life != active {
		return w.name(m) + " is not in the job"
	}
	if low := int(w.members[m].low); low < w.config.end() {
		return w.name(m) + " lacks the result of " + w.v(low)
	}
	return w.name(m) + " has no reply to its finish"
}

// round gives each worker, the card and each controller one turn.
func (w *world) round() {
	for _, m := range w.turns[:w.config.members()] {
		if w.config.honest(m) {
			w.turn(m)
		}
	}
	for i := range len(w.config.Jobs) * w.slotCount() {
		for w.happens(step{kind: stepReduce, slot: uint8(i)}) {
		}
		for m := range w.config.members() {
			w.happens(step{kind: stepRest, member: uint8(m)})
			w.transmitAll(i, m)
		}
	}
	for j := range w.config.Jobs {
		w.happens(step{kind: stepNewEpoch, member: uint8(j)})
		if c := w.controllers[j]; !c.confirmed {
			w.again(packet{kind: commit, job: uint8(j), epoch: c.epoch, vid: c.first})
		}
	}
	for m := range w.config.members() {
		w.happens(step{kind: stepJoin, member: uint8(m)})
	}
}

// transmitAll sends a result if the card owes it. No member asks for it meanwhile, so the card
// must not owe it again.
func (w *world) transmitAll(i, m int) {
	if !w.happens(step{kind: stepTransmit, slot: uint8(i), member: uint8(m)}) {
		return
	}
	w.happens(step{kind: stepRest, member: uint8(m)})
	if w.slots[i].owed&bit(m) != 0 {
		w.Violate(progress, "the card sends the same result to %s forever, though no member asks for it", w.name(m))
	}
}

// turn is one worker's turn. It sends its next VID; failing that, it asks for each missing
// result, or sends finish when it lacks none.
func (w *world) turn(m int) {
	if w.happens(step{kind: stepSend, member: uint8(m)}) {
		return
	}
	me := &w.members[m]
	for vid := int(me.low); vid < int(me.next) && me.life == active; vid++ {
		if me.holds(vid) {
			continue
		}
		p := w.dataOf(m, vid)
		w.Begin()
		if w.deliverAsk(w.packets.Number(p)) == sendIt {
			w.again(p)
		}
		w.drain()
	}
	if me.life == active && int(me.low) == w.config.end() && !me.finished {
		w.again(w.finishOf(m))
	}
}

// happens makes a step if it is possible, and delivers the packets that follow.
func (w *world) happens(s step) bool {
	before := w.state
	w.Begin()
	if !w.Step(s) {
		w.dropStep()
		return false
	}
	w.drain()
	return w.state != before
}

// again delivers a retransmitted packet and all packets that follow from it.
func (w *world) again(p packet) {
	w.Begin()
	w.deliver(w.packets.Number(p))
	w.drain()
}

// drain delivers each packet under way once, until none is left.
func (w *world) drain() {
	for w.network != (packetSet{}) {
		now := w.network
		w.network = packetSet{}
		now.each(func(n int) {
			w.Begin()
			w.deliver(n)
		})
	}
}

// deadlines lets the deadlines of all collecting slots pass. If there are none, it lets one
// deadline pass of a slot that must turn over. It reports whether any passed.
func (w *world) deadlines() bool {
	passed := false
	slots := len(w.config.Jobs) * w.slotCount()
	for i := range slots {
		if w.slots[i].phase == collecting {
			passed = w.happens(step{kind: stepDeadline, slot: uint8(i)}) || passed
		}
	}
	for i := 0; i < slots && !passed; i++ {
		passed = w.happens(step{kind: stepDeadline, slot: uint8(i)})
	}
	return passed
}

// asksProgress reports whether jobs must complete. Without partial sums no deadline evicts a
// rogue, so a rogue can block its job.
func (c *config) asksProgress() bool { return !c.Rogue || c.Partial }
