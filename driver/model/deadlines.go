// Deadlines (section 5 of the specification): slots that wait for too long, what
// is done with them, and who is told; and how late contributions come.

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// The parts of JOB_DEADLINE.
const (
	deadlineCycles  = 1<<32 - 1
	deadlinePartial = 1 << 32
)

// cycles returns how long a slot of the job is given; 0 is for ever.
func (s *setup) cycles() uint64 { return s.deadline & deadlineCycles }

// partial reports whether the job asks for partial sums.
func (s *setup) partial() bool { return s.deadline&deadlinePartial != 0 }

// badDeadline reports whether JOB_DEADLINE is refused.
func (s *setup) badDeadline() bool {
	return s.deadline&^(deadlineCycles|deadlinePartial) != 0 || s.partial() && s.cycles() == 0
}

// lookAtDeadlines acts upon every slot that is overdue, job by job, each job's in
// the order of their numbers. The time of one that still waits begins anew: of
// several deadlines that pass between two looks one is acted upon.
func (c *Card) lookAtDeadlines() {
	for number := range c.jobs {
		j := &c.jobs[number]
		if j.running && j.setup.cycles() != 0 {
			c.lookAt(j)
		}
	}
}

// lookAt looks at the slots of a job, until an eviction ends it.
func (c *Card) lookAt(j *job) {
	for number := uint32(0); j.running && number < j.table.count; number++ {
		s := &j.table.slots[number]
		if s.waits && c.cycles-s.since >= j.setup.cycles() {
			s.since = c.cycles
			c.overdue(j, s)
		}
	}
}

// overdue does with a slot that has waited for too long what its job asks for.
// One that waits for nobody any more, as those were evicted, turns over as soon
// as it is asked to.
func (c *Card) overdue(j *job, s *slot) {
	missing := j.table.missing(s)
	if s.state == reduced && missing == 0 {
		return
	}
	c.counters.add(countOverdue, 1)
	switch {
	case !j.setup.partial():
		c.notify(j, wire.CodeOverdue, s.vid, j.table.members&^missing, missing)
	case s.state == collecting:
		j.table.close(s)
	default:
		c.evict(j, s.vid, missing)
	}
}

// evict takes ranks, which the slot of vid waits for, out of the members of the
// job. When all that are left have finished, it ends as it does with the last
// finish.
func (c *Card) evict(j *job, vid uint32, ranks uint64) {
	j.evicted |= ranks
	j.table.members &^= ranks
	c.counters.add(countEvictions, 1)
	c.notify(j, wire.CodeEvicted, vid, j.all, j.evicted)
	if j.allFinished() {
		j.complete = true
		j.end()
	}
}

// notice is what the card tells without being asked: a status that goes to
// several ranks of a job. There is one at most.
type notice struct {
	job    *job
	ranks  uint64 // that it has not been sent to
	header Header // but for the rank
}

// notify leaves a notice for ranks, in place of what was not sent of the last
// one.
func (c *Card) notify(j *job, code wire.Code, vid uint32, ranks, mask uint64) {
	c.notice = notice{job: j, ranks: ranks, header: Header{
		Version: wire.Version,
		Kind:    wire.KindStatus,
		Job:     uint8(j.number),
		Epoch:   j.epoch,
		Code:    code,
		VID:     vid,
		Mask:    mask,
	}}
}

// ranksAmong returns those of the ranks that wait for the notice that have a port
// among ready.
func (n *notice) ranksAmong(ready uint64) uint64 {
	if n.ranks == 0 {
		return 0
	}
	return n.ranks & n.job.ranksOf(ready)
}

// lags counts the contributions of one rank by how late they came, as JOB_LAG
// tells it.
type lags [wire.LagBuckets]uint32

// add counts a contribution that came so many cycles after the first one of its
// chunk, or was the first.
func (l *lags) add(first bool, cycles uint64) {
	if first {
		l[0]++
		return
	}
	l[min((bits.Len64(cycles)+1)/2, wire.LagBuckets-1)]++
}
