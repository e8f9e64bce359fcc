// What holds in the engine between any two calls.

package cpu

// holds fails the test unless a condition holds.
func (x *steps) holds(ok bool, what string, args ...any) {
	if !ok {
		x.t.Helper()
		x.fail(what, args...)
	}
}

// invariants checks all jobs and slots.
func (x *steps) invariants() {
	e := x.card.engine
	for i := range e.jobs {
		x.jobHolds(&e.jobs[i])
	}
	for i := range e.slots {
		s := &e.slots[i]
		x.holds(s.job != nil || s.state == empty && s.queue.of == nil && s.timer.of == nil, "slot %d is free: %+v", i, s)
		x.holds(s.state == collecting || s.state == reducing || s.state == closing || !s.refers(), "slot %d, state %d, keeps contributions", i, s.state)
		if s.job != nil {
			x.slotHolds(s)
		}
	}
}

// refers reports whether the slot refers to a contribution.
func (s *slot) refers() bool {
	for _, row := range s.rows {
		if row != nil {
			return true
		}
	}
	return false
}

func (x *steps) jobHolds(j *job) {
	e := x.card.engine
	x.holds(j.members == j.all&^j.evicted || !j.known, "job %d: members %x of %x, evicted %x", j.number, j.members, j.all, j.evicted)
	if !j.running {
		x.holds(j.slots == nil && j.finished == 0, "job %d is not running: %+v", j.number, j)
	} else {
		x.holds(len(j.slots) == 2*int(j.setup.window) && j.slots[0].number%len(j.slots) == 0, "job %d: %d slots", j.number, len(j.slots))
		x.holds(j.members&^j.finished != 0 || j.isTree(), "job %d: members %x have finished, but it runs", j.number, j.members)
	}
	x.branchHolds(j)
	for _, l := range []*list{&j.complete, &j.fresh, &j.replays, &j.timers, &j.branch.rising} {
		x.listHolds(j, l)
	}
	x.sorted(&j.fresh, func(a, b *slot) bool { return a.turn < b.turn })
	x.sorted(&j.replays, func(a, b *slot) bool { return a.turn < b.turn })
	x.sorted(&j.timers, func(a, b *slot) bool { return a.since <= b.since })
	if t := j.timers.first; t != nil {
		x.holds(e.due <= t.slot.since+j.setup.cycles(), "due %d, but slot %d waits since %d", e.due, t.slot.number, t.slot.since)
		x.holds(e.now < t.slot.since+j.setup.cycles(), "slot %d is overdue since %d", t.slot.number, t.slot.since)
	}
}

// branchHolds checks what a job has of a tree of cards.
func (x *steps) branchHolds(j *job) {
	b := &j.branch
	x.holds(x.card.engine.uplink != nil || b.upward == upward{} && b.stands == nil, "job %d has a branch without an up port", j.number)
	x.holds(b.upward == upward{} || j.known && len(b.stands) == j.ranks || b.all() == 0, "job %d: %d members stand for ranks", j.number, len(b.stands))
	x.holds(j.evicted == 0 || !j.isTree(), "job %d: evicted %x", j.number, j.evicted)
	x.holds(b.finish == finish{} || j.running && j.isTree() && j.members&^j.finished == 0, "job %d owes its parent a finish", j.number)
}

// listHolds checks the links of a job's list.
func (x *steps) listHolds(j *job, l *list) {
	var last *element
	for e := l.first; e != nil; e = e.next {
		x.holds(e.of == l && e.prev == last && e.slot.job == j, "slot %d in a list of job %d", e.slot.number, j.number)
		last = e
	}
	x.holds(l.last == last, "job %d: the end of a list", j.number)
}

// sorted checks the order of a list.
func (x *steps) sorted(l *list, before func(a, b *slot) bool) {
	for e := l.first; e != nil && e.next != nil; e = e.next {
		x.holds(before(e.slot, e.next.slot), "slot %d before slot %d", e.slot.number, e.next.slot.number)
	}
}

func (x *steps) slotHolds(s *slot) {
	j := s.job
	x.holds(j.running && s == j.slot(s.vid), "VID %d in slot %d", s.vid, s.number)
	x.holds((s.held|s.done|s.owed|s.sent)&^j.all == 0, "slot %d has a bit of no rank: %+v", s.number, s)
	queue := (*list)(nil)
	switch {
	case s.state == reducing || s.state == closing:
		queue = &j.complete
	case s.state == waiting && s.queue.of != nil:
		queue = &j.branch.rising
	case s.owed&s.sent != 0:
		queue = &j.replays
	case s.owed != 0:
		queue = &j.fresh
	}
	x.holds(s.queue.of == queue, "slot %d, state %d, is in the wrong queue", s.number, s.state)
	timed := s.state == collecting || s.state == reduced
	x.holds(s.timer.of == nil || timed && s.timer.of == &j.timers, "slot %d, state %d, has a deadline", s.number, s.state)
	x.holds(s.state != collecting || j.setup.cycles() == 0 || s.timer.of != nil, "slot %d has no deadline", s.number)
	x.holds((s.state != empty) == (s.held != 0), "slot %d, state %d, holds %x", s.number, s.state, s.held)
	x.holds(s.state != waiting && s.state != closing || j.isTree() && s.held == j.all, "slot %d, state %d, holds %x", s.number, s.state, s.held)
	x.holds(s.owed|s.sent == 0 || s.state == reduced, "slot %d, state %d, owes %x", s.number, s.state, s.owed)
}
