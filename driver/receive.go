package driver

// The reader's handling of a job's packets: results, replays and statuses. The caller holds
// Card.mu in all functions.

import (
	"fmt"
	"math/bits"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// takeResult passes a result or replay to the flows.
func (j *Job) takeResult(f *frame.Frame, now time.Time) {
	partial := f.Flags&wire.FlagPartial != 0
	if f.Format != j.card.info.Result || int(f.Length) != j.cfg.Chunk || partial != (f.Mask != j.everyone()) ||
		partial && (!j.cfg.Partial || f.Mask == 0 || f.Mask&^j.everyone() != 0) {
		return // not a sum of this job's members
	}
	idle := f.Receivers & j.here
	if idle == 0 {
		return
	}
	for n := len(j.flows) - 1; n >= 0; n-- { // a flow that ends moves the last one to this index
		to := j.flows[n]
		to.take(f, now)
		idle &^= to.ranks
	}
	if j.history != nil {
		behind, _ := j.firstMissing()
		j.history.forget(behind)
	}
	for ; idle != 0; idle &= idle - 1 {
		j.members[bits.TrailingZeros64(idle)].stats.Duplicates++
	}
}

// take stores a result that is missing in the window and that the flow has contributed to. It
// stores a result for another member too, so that all members hold the same chunks. After an
// outage, no member then lacks a result whose contributions the others have overwritten.
func (f *flow) take(r *frame.Frame, now time.Time) {
	i := f.chunkOf(r.VID)
	if i < f.low || i >= f.next || f.state(i).held {
		f.count(r.Receivers, func(s *MemberStats) { s.Duplicates++ })
		return
	}
	s := f.state(i)
	if s.kept {
		s.kept = false
		f.kept--
	} else {
		f.store(i, r.Payload, r.Mask)
		f.job.history.keep(r)
	}
	switch {
	case !s.again && f.isWhole():
		f.sample(now.Sub(s.sent))
	case r.Kind == wire.KindReplay:
		f.noteAnswer(s, now, f.ranks&r.Receivers != 0)
	}
	f.noteOrder(s.order)
	f.setResend(s, 0)
	if f.congestion != nil {
		if r.Kind == wire.KindReplay {
			f.congestion.lose(r.VID, f.vid(f.next)) // the result was lost
		}
		f.congestion.take(r.VID, f.vid(f.next), isMarked(r.Flags))
	}
	s.held = true
	f.held++
	f.job.heardOf()
	for f.low < f.next && f.state(f.low).held {
		f.low++
	}
	f.moved = now
	f.settle()
	f.job.card.due = true
	f.noteProgress()
}

// store keeps the sum of chunk i in its call.
func (f *flow) store(i int, sum []byte, ranks uint64) {
	f.count(f.ranks, func(s *MemberStats) { s.Results++ })
	f.callOf(i).store(i, sum, ranks)
}

// noteAnswer records a reply to an ask of this flow (own) or of another one. The reply to the
// only ask for its chunk is a sample. With several asks, nobody knows which one it belongs to,
// but the wait need not double further.
func (f *flow) noteAnswer(s *chunkState, now time.Time, own bool) {
	if !s.waiting {
		return
	}
	s.waiting = false
	if own && s.asks == 1 {
		f.sample(now.Sub(s.since))
	} else if f.job.timing.srtt != 0 {
		f.backOff = 0
	}
}

func (f *flow) sample(d time.Duration) {
	f.job.timing.sample(d)
	f.backOff = 0
}

// count changes the counters of the flow's members that are in ranks.
func (f *flow) count(ranks uint64, change func(*MemberStats)) {
	for _, m := range f.members {
		if ranks>>m.rank&1 != 0 {
			change(&m.stats)
		}
	}
}

// takeStatus handles a status: the reply to an ask or a finish, a refusal, or a notice.
func (j *Job) takeStatus(h *frame.Header, now time.Time) {
	if int(h.Rank) >= len(j.members) {
		return
	}
	m := j.members[h.Rank]
	if h.Code == wire.CodeEvicted && j.cfg.Partial {
		j.takeEvicted(h)
		return
	}
	switch h.Code {
	case wire.CodeDone:
		j.takeFinished(m, h, now)
	case wire.CodeWait, wire.CodeSend:
		for _, f := range j.flows {
			f.takeMissing(h, now)
		}
	case wire.CodeOverdue:
		j.takeOverdue(h)
	default:
		m.stats.Refused++
		if passes(h.Code) {
			return // if data was lost too, the next ask finds that
		}
		if j.finish.left != 0 && (m.out != nil || int32(h.VID-m.next) < 0) {
			return // a refusal of a late copy, after all members have finished
		}
		refused := &RefusedError{Card: j.card.name, What: fmt.Sprintf("chunk %d of rank %d", h.VID, m.Rank()), Code: h.Code, job: j.name}
		if !j.doubts(refused) {
			j.endLocked(refused)
		}
	}
}

// passes reports whether a code is the refusal of a late or duplicated packet, which needs no remedy.
func passes(code wire.Code) bool {
	switch code {
	case wire.CodeLate, wire.CodeEarly, wire.CodeNotReady, wire.CodeDuplicate:
		return true
	}
	return false
}

// takeMissing handles the reply to an ask: the ranks whose contribution the card lacks. This
// flow's ranks among them send it again, once per ask.
func (f *flow) takeMissing(h *frame.Header, now time.Time) {
	s := f.awaited(h.VID)
	if s == nil || !s.waiting {
		return
	}
	f.noteAnswer(s, now, f.ranks>>h.Rank&1 != 0)
	known := s.known
	if s.lacks(h.Mask, f.job.everyone()) && known {
		f.moved = now
	}
	f.noteOrder(s.order)
	f.ordered(s) // the missing ranks send it now
	f.setResend(s, f.job.local(s.missing)&f.ranks)
	if s.resend != 0 {
		if f.congestion != nil {
			f.congestion.lose(h.VID, f.vid(f.next))
		}
		f.job.card.due = true
	}
}

// lacks records the card's report of the ranks whose contribution it lacks. It returns whether
// another rank has arrived than all earlier reports show, so the reports of a chunk are progress
// at most once per rank, whatever a card sends.
func (s *chunkState) lacks(missing, ranks uint64) (progress bool) {
	arrived := ranks &^ missing
	progress = arrived&^s.arrived != 0
	s.known, s.missing = true, missing&ranks
	s.arrived |= arrived
	return progress
}
