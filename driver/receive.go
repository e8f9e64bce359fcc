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

// takeResult passes a result or replay to the calls.
func (j *Job) takeResult(f *frame.Frame, now time.Time) {
	partial := f.Flags&wire.FlagPartial != 0
	if f.Format != j.card.info.Result || int(f.Length) != j.cfg.Chunk || partial != (f.Mask != j.ranks) ||
		partial && (!j.cfg.Partial || f.Mask == 0 || f.Mask&^j.ranks != 0) {
		return // not a sum of this job's members
	}
	idle := f.Receivers & j.ranks
	if idle == 0 {
		return
	}
	for n := len(j.calls) - 1; n >= 0; n-- { // complete moves the last call to this index
		k := j.calls[n]
		k.take(f, now)
		idle &^= k.ranks
	}
	if j.history != nil {
		behind, _ := j.firstMissing()
		j.history.forget(behind)
	}
	for ; idle != 0; idle &= idle - 1 {
		j.members[bits.TrailingZeros64(idle)].stats.Duplicates++
	}
}

// take stores a result that is missing in the window and that the call has contributed to. It
// stores a result for another member too, so that all members hold the same chunks. After an
// outage, no member then lacks a result whose contributions the others have overwritten.
func (k *call) take(f *frame.Frame, now time.Time) {
	i := int(f.VID - k.first)
	if i < k.low || i >= k.next || k.state(i).held {
		k.count(f.Receivers, func(s *MemberStats) { s.Duplicates++ })
		return
	}
	s := k.state(i)
	if s.kept {
		s.kept = false
		k.kept--
	} else {
		k.store(i, f.Payload, f.Mask)
		k.job.history.keep(f)
	}
	switch {
	case !s.again && k.ranks == k.job.ranks:
		k.sample(now.Sub(s.sent))
	case f.Kind == wire.KindReplay:
		k.noteAnswer(s, now, k.ranks&f.Receivers != 0)
	}
	k.noteOrder(s.order)
	k.setResend(s, 0)
	s.held = true
	k.held++
	k.job.heardOf()
	for k.low < k.next && k.state(k.low).held {
		k.low++
	}
	k.moved = now
	if k.held == k.chunks {
		k.complete(nil)
		return
	}
	k.job.card.kick()
	k.noteProgress()
}

// noteProgress wakes a caller that wants progress.
func (k *call) noteProgress() {
	if !k.report {
		return
	}
	select {
	case k.progress <- struct{}{}:
	default:
	}
}

// noteAnswer records a reply to an ask of this call (own) or of another one. The reply to the
// only ask for its chunk is a sample. With several asks, nobody knows which one it belongs to,
// but the wait need not double further.
func (k *call) noteAnswer(s *chunkState, now time.Time, own bool) {
	if !s.waiting {
		return
	}
	s.waiting = false
	if own && s.asks == 1 {
		k.sample(now.Sub(s.since))
	} else if k.job.timing.srtt != 0 {
		k.backOff = 0
	}
}

func (k *call) sample(d time.Duration) {
	k.job.timing.sample(d)
	k.backOff = 0
}

// count changes the counters of the call's members that are in ranks.
func (k *call) count(ranks uint64, change func(*MemberStats)) {
	for _, m := range k.members {
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
		for _, k := range j.calls {
			k.takeMissing(h, now)
		}
	case wire.CodeOverdue:
		j.takeOverdue(h)
	case wire.CodeLate, wire.CodeEarly, wire.CodeNotReady, wire.CodeDuplicate:
		// A refusal of a late or duplicated packet. If data was lost too, the next ask finds
		// that.
		m.stats.Refused++
	default:
		m.stats.Refused++
		if j.finish.left != 0 && (m.out != nil || int32(h.VID-m.next) < 0) {
			return // a refusal of a late copy, after all members have finished
		}
		j.endLocked(&RefusedError{Card: j.card.name, What: fmt.Sprintf("chunk %d of rank %d", h.VID, h.Rank), Code: h.Code, job: j.label()})
	}
}

// takeMissing handles the reply to an ask: the ranks whose contribution the card lacks. This
// call's ranks among them send it again, once per ask.
func (k *call) takeMissing(h *frame.Header, now time.Time) {
	s := k.awaited(h.VID)
	if s == nil || !s.waiting {
		return
	}
	k.noteAnswer(s, now, k.ranks>>h.Rank&1 != 0)
	known := s.known
	if s.lacks(h.Mask, k.job.ranks) && known {
		k.moved = now
	}
	k.noteOrder(s.order)
	k.ordered(s) // the missing ranks send it now
	k.setResend(s, s.missing&k.ranks)
	if s.resend != 0 {
		k.job.card.kick()
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
