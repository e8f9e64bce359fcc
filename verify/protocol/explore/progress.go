package main

// maxRounds is more than any state needs until it is done: a run that is not
// done by then is going round in circles.
const maxRounds = 200

// judgeProgress loses everything that is under way and then lets no fault
// strike any more: round after round every worker's timer runs out, every
// packet arrives at once, and the card does all it can. That must end with
// every member holding every result and every job ended. Deadlines pass only
// when nothing else happens.
//
// This is the worst case of what the network may lose, and one fair way to go
// on: what it has not lost can be delivered first, which leads to another state
// that is explored, and from which the same is asked.
//
// good holds the states from which this is known; passed are those that this
// run went through.
func (w *world) judgeProgress(y *symmetry, good map[string]bool) {
	w.network = packetSet{}
	var passed []string
	for range maxRounds {
		key := string(y.canonical(&w.state))
		if good[key] || w.allDone() {
			good[key] = true
			for _, p := range passed {
				good[p] = true
			}
			return
		}
		passed = append(passed, key)
		before := w.state
		w.round()
		if w.broken != nil && w.broken.property == progress {
			return
		}
		if w.state == before && !w.deadlines() {
			w.violate(progress, "nothing happens any more, and %s", w.missing())
			return
		}
	}
	w.violate(progress, "it goes on like this for ever, and %s", w.missing())
}

// allDone says whether nothing is left to do.
func (w *world) allDone() bool { return w.waiting() == nobody }

// nobody and card are what waiting says besides a member's number.
const (
	nobody = -1
	card   = -2
)

// waiting is a member that still has something to do, or the card.
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

// rogueIn says whether a rogue is still a member of a job, which it then can
// keep from ending.
func (w *world) rogueIn(j int) bool {
	last := w.config.members() - 1
	return !w.config.honest(last) && w.jobs[j].members&bit(last) != 0
}

// missing says what is not done.
func (w *world) missing() string {
	if w.tale == nil {
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
	return w.name(m) + " does not know that its finish was heard"
}

// round lets everyone have a turn.
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

// transmitAll sends a result, if it is owed. Nobody asks for it meanwhile, so it
// is not owed again.
func (w *world) transmitAll(i, m int) {
	if !w.happens(step{kind: stepTransmit, slot: uint8(i), member: uint8(m)}) {
		return
	}
	w.happens(step{kind: stepRest, member: uint8(m)})
	if w.slots[i].owed&bit(m) != 0 {
		w.violate(progress, "the card sends the same result to %s for ever, though nobody asks for it", w.name(m))
	}
}

// turn is a worker's: its next VID, or else an ask for each result it lacks, or
// a finish when it lacks none.
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
		w.begin()
		if w.deliverAsk(w.packets.number(p)) == sendIt {
			w.again(p)
		}
		w.drain()
	}
	if me.life == active && int(me.low) == w.config.end() && !me.finished {
		w.again(w.finishOf(m))
	}
}

// happens makes a step, if it is possible, and delivers what it sent.
func (w *world) happens(s step) bool {
	before := w.state
	w.begin()
	if !w.take(s) {
		w.unbegin()
		return false
	}
	w.drain()
	return w.state != before
}

// again delivers a packet that is sent again, and what it gives rise to.
func (w *world) again(p packet) {
	w.begin()
	w.deliver(w.packets.number(p))
	w.drain()
}

// drain delivers what is under way, once each, until nothing is.
func (w *world) drain() {
	for w.network != (packetSet{}) {
		now := w.network
		w.network = packetSet{}
		now.each(func(n int) {
			w.begin()
			w.deliver(n)
		})
	}
}

// deadlines lets the deadlines of all collecting slots pass, or else that of one
// that is asked to turn over; it says whether there were any.
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
