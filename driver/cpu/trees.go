package cpu

import (
	"math/bits"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// This file has tree jobs: own sums to the parent, final sums from it, and the end of the job
// (driver/wire/TREES.md, section 4).

// branch is what a job has of a tree of cards. Without an up port it stays zero.
type branch struct {
	upward
	stands  []uint64 // global ranks, by rank; nil: each member stands for its own rank
	rising  list     // waiting slots whose own sum is owed to the parent, in the order of the debts
	finish  finish
	refusal uint64 // JOB_UP_REFUSAL
}

// finish is a tree job's finish to the parent.
type finish struct {
	owed bool
	sent bool // it was sent before
	vid  uint32
	at   uint64 // clock of the last sending
}

// begin is what the set-up of a job does here.
func (b *branch) begin(j *job, u upward) {
	*b = branch{upward: u, stands: b.stands[:0]}
	if u.all() == 0 {
		b.stands = nil
		return
	}
	for _, port := range j.portOf[:j.ranks] {
		b.stands = append(b.stands, u.ranks[port])
	}
}

// isTree reports whether the job of the last set-up is a tree job.
func (j *job) isTree() bool { return j.branch.isTree() }

// global returns the global ranks that ranks stand for.
func (j *job) global(ranks uint64) uint64 {
	if j.branch.stands == nil {
		return ranks
	}
	global := uint64(0)
	for ; ranks != 0; ranks &= ranks - 1 {
		global |= j.branch.stands[bits.TrailingZeros64(ranks)]
	}
	return global
}

// mask returns the global ranks in the result of a reduced slot.
func (s *slot) mask() uint64 {
	if s.job.isTree() {
		return s.job.branch.tree
	}
	return s.job.global(s.held)
}

// rise ends the making of an own sum: the slot waits for the final sum, and owes its own to the parent.
func (s *slot) rise() {
	s.state = waiting
	s.job.branch.rising.push(&s.queue)
}

// repeatUp owes the parent the own sum of a waiting slot again, unless it owes it already, or sent it a
// short time ago.
func (e *engine) repeatUp(s *slot) {
	j := s.job
	if s.queue.of != nil || e.now-s.rose < j.branch.repeat {
		return
	}
	e.uplink.counters[upRepeats]++
	j.branch.rising.push(&s.queue)
}

// finishUp owes the parent a finish, unless one was sent a short time ago.
func (e *engine) finishUp(j *job, vid uint32) {
	f := &j.branch.finish
	if f.sent && e.now-f.at < j.branch.repeat {
		return
	}
	if f.sent && !f.owed {
		e.uplink.counters[upRepeats]++
	}
	f.owed, f.vid = true, vid
}

// risen returns the slot whose own sum leaves next, or nil.
func (j *job) risen() *slot {
	for x := j.branch.rising.first; x != nil; x = x.next {
		if j.isBehind(x.slot.vid - j.window()) {
			return x.slot
		}
	}
	return nil
}

// isBehind reports whether the final sum of vid is here, or is not needed: the own sum of a window later
// is evidence of that for the parent.
func (j *job) isBehind(vid uint32) bool {
	s := j.slot(vid)
	if s.vid == vid {
		return s.state == reduced || s.state == empty
	}
	return serial(vid, s.vid) == wire.CodeLate
}

// nextUp sums all complete chunks, and begins the next packet to the parent. It returns its job; nil if
// there is none. The payload is valid until the engine's next call. Jobs take turns, a packet each.
func (e *engine) nextUp(h *frame.Header) (payload []byte, j *job) {
	if e.uplink == nil {
		return nil, nil
	}
	e.reduceAll()
	var s *slot
	j = e.uplink.sending.take(e.jobs, func(j *job) bool {
		s = j.risen()
		return s != nil || j.branch.finish.owed
	})
	if j == nil {
		return nil, nil
	}
	e.uplink.counters[upSent]++
	*h = frame.Header{Version: wire.Version, Job: j.number, Epoch: j.epoch, Rank: j.branch.rank()}
	if s == nil {
		f := &j.branch.finish
		h.Kind, h.VID = wire.KindFinish, f.vid
		f.owed, f.sent, f.at = false, true, e.now
		e.advance(1)
		return nil, j
	}
	h.Kind, h.Flags, h.Format, h.VID, h.Length = wire.KindData, s.flags(), e.cfg.Format, s.vid, uint16(j.setup.chunk)
	s.queue.leave()
	s.rose = e.now
	payload = s.cache
	e.advance(j.setup.chunk / uint64(e.cfg.Lanes))
	return payload, j
}

// takeUp commits a packet of the up port, whose payload is damaged if bad.
func (e *engine) takeUp(h *frame.Header, payload []byte, bad bool) {
	e.advance(e.beats(len(payload)))
	if !e.commitUp(h, payload, bad) {
		e.uplink.counters[upDropped]++
	}
}

// commitUp is takeUp without its cycles. It returns false for a packet that is to be dropped.
func (e *engine) commitUp(h *frame.Header, payload []byte, bad bool) bool {
	if h.Version != wire.Version || int(h.Job) >= len(e.jobs) {
		return false
	}
	j := &e.jobs[h.Job]
	if !j.running || !j.isTree() || h.Epoch != j.epoch {
		return false
	}
	switch h.Kind {
	case wire.KindResult, wire.KindReplay:
		return !bad && e.finalSum(j, h, payload)
	case wire.KindStatus:
		return h.Rank == j.branch.rank() && e.statusUp(j, h)
	}
	return false
}

// finalSum takes the final sum of a waiting slot. Until it has passed the lanes, it is in the memory of
// the contribution of port 0, which the own sum has in it.
func (e *engine) finalSum(j *job, h *frame.Header, payload []byte) bool {
	s := j.slot(h.VID)
	switch {
	case h.Format != e.cfg.Format || uint64(h.Length) != j.setup.chunk || len(payload) != int(h.Length)*e.elementBytes:
		return false
	case h.Mask != j.branch.tree || h.VID != s.vid || s.state != waiting:
		return false
	}
	s.rows[0] = e.keep(place{slot: s}, payload)
	s.merge(wire.ECN(h.Flags & wire.FlagECN))
	s.nonfinite = s.nonfinite || h.Flags&wire.FlagNonfinite != 0
	s.queue.leave()
	s.state = closing
	j.complete.push(&s.queue)
	e.uplink.counters[upTaken]++
	return true
}

// statusUp acts on a status of the parent. It returns false for one that is to be dropped.
func (e *engine) statusUp(j *job, h *frame.Header) bool {
	switch {
	case h.Code == wire.CodeDone && j.members&^j.finished == 0:
		e.notify(j, h.VID, wire.CodeDone, 0, j.members)
		j.end()
		j.allFinished = true
	case h.Code == wire.CodeOverdue:
		e.notify(j, h.VID, wire.CodeOverdue, h.Mask, j.members)
	case h.Code == wire.CodeWait || h.Code == wire.CodeSend: // the card asks nothing
	case h.Code >= wire.FirstRefusal:
		j.branch.refusal = wire.UpRefusal(h.Code, h.VID)
		e.uplink.counters[upRefused]++
	default:
		return false
	}
	return true
}
