package cpu

import (
	"math/bits"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// AllPorts as Next's ready means that every port can take a packet.
const AllPorts = ^uint64(0)

// turns lets jobs take turns: the next one is sought from behind the last on.
type turns struct{ next int }

// take gives the turn to a job that has something to do, and returns it, or nil.
func (t *turns) take(jobs []job, has func(*job) bool) *job {
	for i := range jobs {
		if number := (t.next + i) & (len(jobs) - 1); has(&jobs[number]) {
			t.next = number + 1
			return &jobs[number]
		}
	}
	return nil
}

// answer makes a status wait at a port, in the place of one that waits there.
func (e *engine) answer(port int, h *frame.Header, code wire.Code, mask uint64) {
	e.answers[port] = frame.Header{
		Version: wire.Version, Kind: wire.KindStatus, Job: h.Job, Epoch: h.Epoch, Rank: h.Rank, Code: code, VID: h.VID, Mask: mask,
	}
	e.answering |= 1 << port
}

// dropStatuses drops the statuses that wait under a job's number.
func (e *engine) dropStatuses(number uint8) {
	job := e.jobOf(number)
	for ports := e.answering; ports != 0; ports &= ports - 1 {
		port := bits.TrailingZeros64(ports)
		if e.jobOf(e.answers[port].Job) == job {
			e.answering &^= 1 << port
		}
	}
	if e.jobOf(e.notice.header.Job) == job {
		e.notice.to = 0
	}
}

// pending reports whether a packet waits, or a sum that will give one.
func (e *engine) pending() bool {
	if e.answering != 0 || e.notice.to != 0 {
		return true
	}
	for i := range e.jobs {
		if j := &e.jobs[i]; j.complete.first != nil || j.fresh.first != nil || j.replays.first != nil {
			return true
		}
	}
	return false
}

// next sums all complete chunks, begins the next packet that leaves to the ready ports, and
// returns its ports; 0 if there is none. The payload is valid until the engine's next call.
func (e *engine) next(ready uint64, h *frame.Header) (payload []byte, ports uint64) {
	e.reduceAll()
	if ports = e.nextAnswer(ready, h); ports == 0 {
		ports = e.nextNotice(ready, h)
	}
	if ports != 0 {
		e.counters[countStatuses]++
		e.advance(1)
		return nil, ports
	}
	return e.nextResult(ready, h)
}

// nextAnswer begins the answer at the lowest port.
func (e *engine) nextAnswer(ready uint64, h *frame.Header) (port uint64) {
	waiting := e.answering & ready
	if waiting == 0 {
		return 0
	}
	port = waiting & -waiting
	e.answering &^= port
	*h = e.answers[bits.TrailingZeros64(port)]
	return port
}

// nextNotice begins the notice to the lowest rank.
func (e *engine) nextNotice(ready uint64, h *frame.Header) (port uint64) {
	if e.notice.to == 0 {
		return 0
	}
	j := e.jobOf(e.notice.header.Job)
	ranks := e.notice.to & j.ranksOf(ready)
	if ranks == 0 {
		return 0
	}
	rank := bits.TrailingZeros64(ranks)
	e.notice.to &^= 1 << rank
	*h = e.notice.header
	h.Rank = uint8(rank)
	return 1 << j.portOf[rank]
}

// nextResult begins the next result or replay of the job that has its turn.
func (e *engine) nextResult(ready uint64, h *frame.Header) (payload []byte, ports uint64) {
	var s *slot
	var to uint64
	j := e.sending.take(e.jobs, func(j *job) bool {
		s, to = j.sendable(ready)
		return s != nil
	})
	if j == nil {
		return nil, 0
	}
	*h = frame.Header{
		Version: wire.Version, Kind: wire.KindResult, Flags: s.flags(), Job: j.number, Format: e.cfg.Result,
		Epoch: j.epoch, VID: s.vid, Length: uint16(j.setup.chunk), Mask: s.mask(), Receivers: to,
	}
	if s.sent&to != 0 {
		h.Kind = wire.KindReplay
		e.counters[countReplays]++
	} else {
		e.counters[countResults]++
	}
	s.owed &^= to
	s.sent |= to
	s.enqueue()
	payload, ports = s.cache, j.portsOf(to)
	e.advance(uint64(int(j.setup.chunk) / e.cfg.Lanes))
	return payload, ports
}

// flags returns the flags of a reduced slot's result.
func (s *slot) flags() uint8 {
	flags := uint8(s.ecn)
	if s.held != s.job.all {
		flags |= wire.FlagPartial
	}
	if s.nonfinite {
		flags |= wire.FlagNonfinite
	}
	return flags
}

// sendable returns the slot whose result the job sends next, and the ranks at ready ports that it
// is for; nil if there is none. Replays go first.
func (j *job) sendable(ready uint64) (s *slot, to uint64) {
	if j.fresh.first == nil && j.replays.first == nil {
		return nil, 0
	}
	ranks := j.ranksOf(ready)
	for x := j.replays.first; x != nil; x = x.next {
		if to := x.slot.owed & ranks; to&x.slot.sent != 0 {
			return x.slot, to
		}
	}
	s = j.replays.owing(ranks)
	if fresh := j.fresh.owing(ranks); s == nil || fresh != nil && fresh.turn < s.turn {
		s = fresh
	}
	if s == nil {
		return nil, 0
	}
	return s, s.owed & ranks
}

// owing returns the first slot of the list that owes its result to one of the ranks.
func (l *list) owing(ranks uint64) *slot {
	for x := l.first; x != nil; x = x.next {
		if x.slot.owed&ranks != 0 {
			return x.slot
		}
	}
	return nil
}
