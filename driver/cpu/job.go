package cpu

import (
	"math/bits"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// setup is what a job is committed with.
type setup struct {
	ports, chunk, window, deadline uint64 // as in the registers
	first                          uint32 // VID
}

// partialSums is the bit of JOB_DEADLINE that enables them.
const partialSums = 1 << 32

// cycles returns the deadline of a slot in clock cycles; 0: none.
func (s *setup) cycles() uint64 { return s.deadline &^ partialSums }

// partial reports whether sums may lack members.
func (s *setup) partial() bool { return s.deadline&partialSums != 0 }

// job is a job by its number: the one that is set up, or the last one. Its sets are masks of ranks.
type job struct {
	number      uint8
	running     bool // it is set up
	known       bool // one was set up before: epoch and ranks are its
	allFinished bool // it ended because all had finished
	epoch       uint16
	setup       setup

	ports  uint64               // of its ranks
	ranks  int                  // their number
	portOf [wire.MaxPorts]uint8 // by rank
	all    uint64               // every rank

	members  uint64 // every rank that is not evicted
	finished uint64
	evicted  uint64

	evictedAt uint32 // VID of the slot that the last evicted ranks blocked

	slots    []slot // the job's of the card's; nil unless it is running
	complete list   // slots to be summed, in the order in which they were closed
	fresh    list   // reduced slots that owe no replay, in the order in which they became owing
	replays  list   // reduced slots that owe a replay, likewise
	timers   list   // slots with a running deadline, earliest first
	turns    uint64 // number of times that a slot became owing

	round  *round // that sums chunks of the job's arrays; nil when there is none
	rounds round  // its memory

	branch branch

	in, out, overflow tally
	lags              [][wire.LagBuckets]uint32 // by rank
}

// window returns the number of chunks in the job's window.
func (j *job) window() uint32 { return uint32(j.setup.window) }

// slot returns the slot of a running job for a VID.
func (j *job) slot(vid uint32) *slot { return &j.slots[vid&uint32(len(j.slots)-1)] }

// place gives the job's ranks to ports.
func (j *job) place(ports uint64) {
	j.ports, j.ranks = ports, bits.OnesCount64(ports)
	j.all = ^uint64(0) >> (64 - j.ranks)
	for rank := range j.ranks {
		j.portOf[rank] = uint8(bits.TrailingZeros64(ports))
		ports &= ports - 1
	}
}

// has reports whether a rank exists, and belongs to a port.
func (j *job) has(rank uint8, port int) bool {
	return int(rank) < j.ranks && int(j.portOf[rank]) == port
}

// portsOf returns the ports of a set of ranks.
func (j *job) portsOf(ranks uint64) uint64 {
	if ranks == j.all {
		return j.ports
	}
	ports := uint64(0)
	for ; ranks != 0; ranks &= ranks - 1 {
		ports |= 1 << j.portOf[bits.TrailingZeros64(ranks)]
	}
	return ports
}

// ranksOf returns the ranks that belong to a set of ports.
func (j *job) ranksOf(ports uint64) uint64 {
	if j.ports&^ports == 0 {
		return j.all
	}
	ranks := uint64(0)
	for rank := range j.ranks {
		ranks |= ports >> j.portOf[rank] & 1 << rank
	}
	return ranks
}

// begin sets the job up in the given slots.
func (j *job) begin(epoch uint16, s setup, slots []slot) {
	j.running, j.known, j.allFinished = true, true, false
	j.epoch, j.setup, j.slots = epoch, s, slots
	j.place(s.ports)
	j.members, j.evicted = j.all, 0
	j.in, j.out, j.overflow = tally{}, tally{}, tally{}
	clear(j.lags)
	count := uint32(len(slots))
	for i := range slots {
		slots[i].clear(j, s.first+(uint32(i)-s.first)&(count-1)-count)
	}
}

// end ends a running job. Its epoch, ranks and counts remain.
func (j *job) end() {
	for i := range j.slots {
		j.slots[i].clear(nil, 0)
	}
	j.running, j.slots, j.finished, j.branch.finish = false, nil, 0, finish{}
}

// finish records that a rank has finished, and answers. The parent must confirm the end of a tree job.
func (e *engine) finish(j *job, port int, h *frame.Header) {
	e.counters[countFinishes]++
	if j.running {
		j.finished |= bit(h.Rank)
		if j.isTree() && j.members&^j.finished == 0 {
			e.finishUp(j, h.VID)
			return
		}
		j.endIfFinished()
	}
	e.answer(port, h, wire.CodeDone, 0)
}

// endIfFinished ends the job if all its members have finished, or none is left. The statuses that
// wait remain, because the answers to the finishes are among them.
func (j *job) endIfFinished() {
	if j.members&^j.finished == 0 {
		j.end()
		j.allFinished = true
	}
}

// endJob ends a job, if it is running, and drops what waits under its number.
func (e *engine) endJob(j *job) {
	if j.running {
		j.end()
	}
	e.dropStatuses(j.number)
}

// endAll ends all jobs.
func (e *engine) endAll() {
	for i := range e.jobs {
		e.endJob(&e.jobs[i])
	}
}

// freeSlots returns the first slots for a window, from a multiple of their number, that no job other
// than j uses; nil if there are none.
func (e *engine) freeSlots(j *job, window int) []slot {
	count := 2 * window
	for first := 0; first < len(e.slots); first += count {
		if slots := e.slots[first : first+count]; free(slots, j) {
			return slots
		}
	}
	return nil
}

// free reports whether no job other than j uses any of the slots.
func free(slots []slot, j *job) bool {
	for i := range slots {
		if slots[i].job != nil && slots[i].job != j {
			return false
		}
	}
	return true
}

// commit performs JOB_COMMIT.
func (e *engine) commit(value uint64) wire.Code {
	first, epoch, number := uint32(value), uint16(value>>32), uint8(value>>48)
	s, up := e.staged, e.uplink.wanted(e.staged.ports)
	s.first = first
	switch {
	case e.owner == 0 || e.token != e.owner:
		return wire.CodeBusy
	case int(number) >= len(e.jobs):
		return wire.CodeBadJob
	}
	j := &e.jobs[number]
	switch {
	case j.running && j.epoch == epoch && j.setup == s && j.branch.upward == up && e.network.unchanged(j):
		return wire.CodeDone
	case j.running && j.epoch == epoch:
		return wire.CodeEpochInUse
	case j.known && (epoch == j.epoch || epoch-j.epoch >= 1<<15):
		return wire.CodeStaleEpoch
	}
	if code := e.checkSetup(j, &s, &up); code != wire.CodeDone {
		return code
	}
	slots := e.freeSlots(j, int(s.window))
	if slots == nil {
		return wire.CodeNoSlots
	}
	e.endJob(j)
	j.begin(epoch, s, slots)
	j.branch.begin(j, up)
	e.network.begin(j)
	return wire.CodeDone
}

// checkSetup checks a job's parameters.
func (e *engine) checkSetup(j *job, s *setup, up *upward) wire.Code {
	switch {
	case s.ports == 0 || s.ports>>(e.cfg.Ports-1)>>1 != 0:
		return wire.CodeBadPorts
	case e.network.checkMembers(s.ports) != wire.CodeDone:
		return wire.CodeBadMember
	}
	if code := e.checkTree(j, s, up); code != wire.CodeDone {
		return code
	}
	switch {
	case s.chunk == 0 || s.chunk > uint64(e.cfg.Chunk) || s.chunk%uint64(e.cfg.Lanes) != 0:
		return wire.CodeBadChunk
	case s.window > uint64(e.cfg.Window) || bits.OnesCount64(s.window) != 1:
		return wire.CodeBadWindow
	case s.deadline>>33 != 0 || s.partial() && s.cycles() == 0:
		return wire.CodeBadDeadline
	}
	return wire.CodeDone
}

// abort performs JOB_ABORT.
func (e *engine) abort(value uint64) wire.Code {
	epoch, number := uint16(value>>32), uint8(value>>48)
	switch {
	case e.owner == 0 || e.token != e.owner:
		return wire.CodeBusy
	case int(number) >= len(e.jobs):
		return wire.CodeBadJob
	}
	j := &e.jobs[number]
	switch {
	case !j.running:
		return wire.CodeDone
	case j.epoch != epoch:
		return wire.CodeBadEpoch
	}
	e.endJob(j)
	return wire.CodeDone
}
