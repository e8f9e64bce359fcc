package cpu

import (
	"math"
	"math/bits"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// never is a clock that is never reached.
const never = math.MaxUint64

// wait starts a slot's deadline, if its job has one.
func (e *engine) wait(s *slot) {
	cycles := s.job.setup.cycles()
	if cycles == 0 {
		return
	}
	s.since = e.now
	s.job.timers.push(&s.timer)
	e.due = min(e.due, s.since+cycles)
}

// advance moves the clock, ends an expired lease, and acts on every slot that is overdue then.
func (e *engine) advance(cycles uint64) {
	e.now += cycles
	e.expire()
	if e.now >= e.due {
		e.look()
	}
}

// look acts once on every overdue slot.
func (e *engine) look() {
	e.due = never
	for i := range e.jobs {
		e.lookAt(&e.jobs[i])
		if t := e.jobs[i].timers.first; t != nil {
			e.due = min(e.due, t.slot.since+t.slot.job.setup.cycles())
		}
	}
}

// lookAt acts once on every overdue slot of a job, in the order of their numbers.
func (e *engine) lookAt(j *job) {
	if t := j.timers.first; t == nil || e.now < t.slot.since+j.setup.cycles() {
		return
	}
	var overdue [2 * wire.MaxWindow / 64]uint64
	for t := j.timers.first; t != nil && e.now >= t.slot.since+j.setup.cycles(); t = t.next {
		overdue[t.slot.number/64] |= 1 << (t.slot.number % 64)
	}
	for word, set := range overdue {
		for ; set != 0; set &= set - 1 {
			e.overdue(&e.slots[64*word+bits.TrailingZeros64(set)])
		}
	}
}

// overdue acts on a slot whose deadline has passed, unless it waits for nobody any more.
func (e *engine) overdue(s *slot) {
	if s.timer.of == nil {
		return // the action on another slot ended the job
	}
	s.timer.leave()
	j := s.job
	missing := j.members &^ s.done
	if s.state == collecting {
		missing = j.members &^ s.held
	} else if missing == 0 {
		return
	}
	e.counters[countOverdue]++
	switch {
	case !j.setup.partial():
		e.notify(j, s.vid, wire.CodeOverdue, j.global(missing), j.members&^missing)
		e.wait(s)
	case s.state == collecting:
		s.close()
	default:
		e.evict(s, missing)
	}
}

// evict excludes ranks, which are not done with the slot, from its job.
func (e *engine) evict(s *slot, ranks uint64) {
	j := s.job
	e.counters[countEvictions]++
	j.members &^= ranks
	j.evicted |= ranks
	j.evictedAt = s.vid
	e.notify(j, s.vid, wire.CodeEvicted, j.global(j.evicted), j.all)
	j.endIfFinished()
}

// notice is a status that no packet asked for, to several ranks of a job.
type notice struct {
	header frame.Header
	to     uint64 // ranks that it has not been sent to
}

// notify replaces the card's notice by one of a job about a VID.
func (e *engine) notify(j *job, vid uint32, code wire.Code, mask, to uint64) {
	e.notice = notice{to: to, header: frame.Header{
		Version: wire.Version, Kind: wire.KindStatus, Job: j.number, Epoch: j.epoch, Code: code, VID: vid, Mask: mask,
	}}
}
