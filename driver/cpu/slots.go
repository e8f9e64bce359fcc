package cpu

import (
	"math/bits"

	"tributary/driver/cpu/arithmetic"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// state is the state of a slot.
type state uint8

const (
	empty state = iota
	collecting
	reducing
	waiting // of tree jobs: the own sum is there, the final one is not
	closing // of tree jobs: the final sum passes the lanes
	reduced
)

// slot is the memory for one chunk. Its sets are masks of ranks.
type slot struct {
	number int  // among the card's slots
	job    *job // to which it belongs; nil: to none

	state     state
	vid       uint32 // that it holds
	held      uint64 // their contributions are stored; once it is closed, those in the sum
	done      uint64 // they have the result
	owed      uint64 // the result is to be sent to them
	sent      uint64 // the result has begun to leave to them
	ecn       wire.ECN
	nonfinite bool   // a contribution holds a NaN or an infinity
	opened    uint64 // clock at which it turned over
	since     uint64 // clock from which its deadline counts, while it is among the timers
	turn      uint64 // order in which slots became owing

	rose uint64 // of tree jobs: clock at which its own sum last left for the parent

	queue element // among the complete, fresh, replayed or rising slots of its job
	timer element // among those of its job that have a deadline

	rows [][]byte // the stored contributions, by port

	memory [][]byte // by port: where the front keeps contributions that it has to copy
	cache  []byte   // the sum, once the slot is reduced
}

// clear empties the slot, which then holds vid; every rank of its job is done with that. A slot
// that is given up has no job.
func (s *slot) clear(j *job, vid uint32) {
	s.queue.leave()
	s.timer.leave()
	s.release()
	s.job, s.state, s.vid = j, empty, vid
	s.held, s.done, s.owed, s.sent = 0, 0, 0, 0
	if j != nil {
		s.done = j.all
	}
}

// release gives up the slot's references to contributions.
func (s *slot) release() {
	if s.held != 0 {
		clear(s.rows)
	}
}

// place is where a contribution is to be stored: the outcome of take.
type place struct {
	slot  *slot
	port  int
	rank  uint8
	flags uint8
}

// data commits data from a rank that has passed all checks. It reports whether the contribution is
// to be stored, and where; store must follow at once.
func (e *engine) data(j *job, port int, h *frame.Header) (at place, stores bool) {
	w := bit(h.Rank)
	if before := j.slot(h.VID - j.window()); before.vid == h.VID-j.window() && before.state == reduced {
		before.done |= w
	}
	s := j.slot(h.VID)
	switch h.VID - s.vid {
	case 0:
		stores = e.repeat(s, port, h)
	case 2 * j.window():
		s.done |= w
		if stores = e.turnOver(s, h.VID); !stores {
			e.refuse(port, h, wire.CodeNotReady)
		}
	default:
		e.refuse(port, h, serial(h.VID, s.vid))
	}
	return place{s, port, h.Rank, h.Flags}, stores
}

// serial returns the refusal of a VID that a slot with u does not take.
func serial(v, u uint32) wire.Code {
	if int32(v-u) < 0 {
		return wire.CodeLate
	}
	return wire.CodeEarly
}

// repeat commits data for the VID that the slot holds, and reports whether it is to be stored.
func (e *engine) repeat(s *slot, port int, h *frame.Header) bool {
	w := bit(h.Rank)
	switch {
	case s.state == collecting && s.held&w == 0:
		return true
	case s.state == reduced:
		e.counters.refusal(wire.CodeDuplicate)
		s.owe(w)
	case s.state == empty:
		e.refuse(port, h, wire.CodeLate)
	case s.state == waiting:
		e.repeatUp(s)
		fallthrough
	default:
		e.refuse(port, h, wire.CodeDuplicate)
	}
	return false
}

// turnOver makes the slot hold its next VID if it can, and reports whether it did. Otherwise the
// slot's deadline begins if members keep it from turning over.
func (e *engine) turnOver(s *slot, vid uint32) bool {
	blocked := s.state == reduced && s.job.members&^s.done != 0
	if blocked && s.timer.of == nil {
		e.wait(s)
	}
	if blocked || s.state != empty && s.state != reduced {
		return false
	}
	s.queue.leave()
	s.timer.leave()
	s.state, s.vid = collecting, vid
	s.held, s.done, s.owed, s.sent = 0, 0, 0, 0
	s.ecn, s.nonfinite = wire.ECNOrder[0], false
	s.opened = e.now
	e.wait(s)
	return true
}

// strength is the position of a mark in wire.ECNOrder: the merge of two is the stronger.
var strength = func() (t [4]uint8) {
	for i, mark := range wire.ECNOrder {
		t[mark] = uint8(i)
	}
	return t
}()

// store stores a contribution. The slot keeps a reference to it until its sum is done or given up.
func (e *engine) store(at place, contribution []byte, nonfinite bool) {
	s, j := at.slot, at.slot.job
	if s.rows == nil {
		s.rows = make([][]byte, e.cfg.Ports)
	}
	s.rows[at.port] = contribution
	e.counters[countStored]++
	j.lags[at.rank][lagBucket(s.held == 0, e.now-s.opened)]++
	s.held |= bit(at.rank)
	mark := wire.ECN(at.flags & wire.FlagECN)
	s.merge(mark)
	if mark == wire.CE {
		e.counters[countCE]++
	}
	if nonfinite {
		s.nonfinite = true
		e.counters[countNonfiniteIn]++
		j.in.add(1, uint64(at.rank)<<32|uint64(s.vid))
	}
	if j.members&^s.held == 0 {
		s.close()
	}
}

// merge merges a mark into the slot's.
func (s *slot) merge(mark wire.ECN) {
	if strength[mark] > strength[s.ecn] {
		s.ecn = mark
	}
}

// lagBucket returns the bucket of JOB_LAG for a contribution, some cycles after the first one of
// its chunk.
func lagBucket(first bool, cycles uint64) int {
	if first {
		return 0
	}
	return min(1+max(bits.Len64(cycles)-1, 0)/2, wire.LagBuckets-1)
}

// close ends the collecting: the slot waits for its sum.
func (s *slot) close() {
	s.timer.leave()
	s.state = reducing
	s.job.complete.push(&s.queue)
}

// reduceAll sums all closed slots into their caches. Jobs take turns, a chunk each.
func (e *engine) reduceAll() {
	for {
		j := e.summing.take(e.jobs, func(j *job) bool { return j.complete.first != nil })
		if j == nil {
			return
		}
		e.reduce(j.complete.first.slot)
	}
}

// reduce sums a closed slot into its cache. All members are owed the result, or the parent is owed the
// own sum of a tree job. A final sum passes the same way alone.
func (e *engine) reduce(s *slot) {
	j := s.job
	s.queue.leave()
	s.cache = sized(s.cache, int(j.setup.chunk)*e.resultBytes)
	e.found = arithmetic.Exceptions{}
	e.arithmetic.Sum(s.cache, s.rows, int(j.setup.chunk), &e.work, e.find)
	s.release()
	if j.isTree() && s.state == reducing {
		s.rise()
	} else {
		s.state = reduced
		s.owe(j.members)
	}
	if s.held != j.all {
		e.counters[countPartial]++
	}
	e.counters[countChunks]++
	e.counters[countBeats] += uint32(int(j.setup.chunk) / e.cfg.Lanes)
	e.countSum(j, s.vid, e.found)
}

// countSum counts the exceptions of a sum.
func (e *engine) countSum(j *job, vid uint32, x arithmetic.Exceptions) {
	e.counters[countNonfiniteOut] += uint32(x.Out)
	e.counters[countOverflow] += uint32(x.Overflow)
	j.out.add(x.Out, uint64(vid))
	j.overflow.add(x.Overflow, uint64(vid))
}

// sized returns n bytes: memory's, if it has so many.
func sized(memory []byte, n int) []byte {
	if cap(memory) < n {
		return make([]byte, n)
	}
	return memory[:n]
}

// owe marks a reduced slot's result as owed to ranks.
func (s *slot) owe(ranks uint64) {
	if s.owed == 0 {
		s.job.turns++
		s.turn = s.job.turns
	}
	s.owed |= ranks
	s.enqueue()
}

// enqueue moves a reduced slot to the queue where it belongs: to replays if it owes its result to
// a rank that was sent it, otherwise to fresh. Both are in the order in which slots became owing.
func (s *slot) enqueue() {
	queue := &s.job.fresh
	if s.owed&s.sent != 0 {
		queue = &s.job.replays
	}
	if s.queue.of == queue && s.owed != 0 {
		return
	}
	s.queue.leave()
	if s.owed == 0 {
		return
	}
	after := queue.last
	for after != nil && after.slot.turn > s.turn {
		after = after.prev
	}
	queue.insert(after, &s.queue)
}

// bit is the set of one rank, which is below 64.
func bit(rank uint8) uint64 { return 1 << (rank & 63) }
