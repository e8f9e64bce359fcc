// Deadlines (section 5 of the specification): overdue slots, the actions on them, notices; and the
// lateness of contributions.

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

// cycles returns the deadline of the job's slots; 0 means none.
func (s *setup) cycles() uint64 { return s.deadline & deadlineCycles }

// partial reports whether the job asks for partial sums.
func (s *setup) partial() bool { return s.deadline&deadlinePartial != 0 }

// badDeadline reports whether JOB_DEADLINE is refused.
func (s *setup) badDeadline() bool {
	return s.deadline&^(deadlineCycles|deadlinePartial) != 0 || s.partial() && s.cycles() == 0
}

// lookAtDeadlines acts on every overdue slot, job by job, each job's in the order of their numbers.
// The time of a slot that still waits restarts: if several of its deadlines pass between two looks,
// the card acts once.
func (c *Card) lookAtDeadlines() {
	for number := range c.jobs {
		j := &c.jobs[number]
		if j.running && j.setup.cycles() != 0 {
			c.lookAt(j)
		}
	}
}

// lookAt checks the slots of a job, until an eviction ends the job.
func (c *Card) lookAt(j *job) {
	for number := uint32(0); j.running && number < j.table.count; number++ {
		s := &j.table.slots[number]
		if s.waits && c.cycles-s.since >= j.setup.cycles() {
			s.since = c.cycles
			c.overdue(j, s)
		}
	}
}

// overdue acts on an overdue slot as the job requests. If evictions left a slot with no rank to
// wait for, it does nothing: the slot turns over on the next request.
func (c *Card) overdue(j *job, s *slot) {
	missing := j.table.missing(s)
	if s.state == reduced && missing == 0 {
		return
	}
	c.counters.add(countOverdue, 1)
	switch {
	case !j.setup.partial():
		c.notify(j, wire.CodeOverdue, s.vid, j.table.members&^missing, j.global(missing))
	case s.state == collecting:
		j.table.close(s)
	default:
		c.evict(j, s.vid, missing)
	}
}

// evict removes ranks, which the slot of vid waits for, from the members of the job. If all
// remaining members have finished, the job ends as after a last finish.
func (c *Card) evict(j *job, vid uint32, ranks uint64) {
	j.evicted |= ranks
	j.table.members &^= ranks
	c.counters.add(countEvictions, 1)
	c.notify(j, wire.CodeEvicted, vid, j.all, j.global(j.evicted))
	if j.allFinished() {
		j.complete = true
		j.end()
	}
}

// notice is an unsolicited status for several ranks of a job. A card holds at most one.
type notice struct {
	job    *job
	ranks  uint64 // not yet sent to these
	header Header // without the rank
}

// notify stores a notice for ranks, and drops the unsent part of the last one. The mask has global ranks.
// With shell roce no notice leaves.
func (c *Card) notify(j *job, code wire.Code, vid uint32, ranks, mask uint64) {
	if c.connections != nil {
		return
	}
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

// ranksAmong returns the ranks that wait for the notice and have a port in ready.
func (n *notice) ranksAmong(ready uint64) uint64 {
	if n.ranks == 0 {
		return 0
	}
	return n.ranks & n.job.ranksOf(ready)
}

// lags counts the contributions of one rank by lateness, as in JOB_LAG.
type lags [wire.LagBuckets]uint32

// add counts a contribution that was the first of its chunk, or came that many cycles after the
// first.
func (l *lags) add(first bool, cycles uint64) {
	if first {
		l[0]++
		return
	}
	l[min((bits.Len64(cycles)+1)/2, wire.LagBuckets-1)]++
}
