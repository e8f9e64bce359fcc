package driver

// What the reader does with the packets of a job: results, replays and
// statuses. All of it is called with Card.mu held.

import (
	"fmt"
	"math/bits"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// takeResult takes a result or replay in, for every call that it is for.
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
	for n := len(j.calls) - 1; n >= 0; n-- { // complete moves the last call to the place of its own
		k := j.calls[n]
		k.take(f, now)
		idle &^= k.ranks
	}
	if j.history != nil {
		behind, _ := j.stands()
		j.history.forget(behind)
	}
	for ; idle != 0; idle &= idle - 1 {
		j.members[bits.TrailingZeros64(idle)].stats.Duplicates++
	}
}

// take stores a result, if it is missing in the window and was sent for. One that
// is for another member is taken as well, so that all hold the same: should the
// card go away, there is none who lacks a result whose contributions others have
// given up.
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
	if k.report {
		select {
		case k.progress <- struct{}{}:
		default:
		}
	}
}

// noteAnswer takes in that an ask was answered, own or another call's. Its own
// gives a sample when it was the only one for its chunk: else nobody knows which
// of them is answered, but waits need not be doubled further.
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

// count changes the counters of the call's members among ranks.
func (k *call) count(ranks uint64, change func(*MemberStats)) {
	for _, m := range k.members {
		if ranks>>m.rank&1 != 0 {
			change(&m.stats)
		}
	}
}

// takeStatus takes in what the card says to an ask or a finish, or its refusal.
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
		// Of a packet that came late or twice. If data was lost with it,
		// the next ask brings it to light.
		m.stats.Refused++
	default:
		m.stats.Refused++
		if j.finish.left != 0 && (m.out != nil || int32(h.VID-m.next) < 0) {
			return // of a copy that came late, to a card for which all have finished
		}
		j.endLocked(&RefusedError{Card: j.card.name, What: fmt.Sprintf("chunk %d of rank %d", h.VID, h.Rank), Code: h.Code, job: j.label()})
	}
}

// takeMissing takes in the answer to an ask: the ranks whose contribution the
// card lacks. Those of this call send theirs again, once for every ask.
func (k *call) takeMissing(h *frame.Header, now time.Time) {
	s := k.awaited(h.VID)
	if s == nil || !s.waiting {
		return
	}
	k.noteAnswer(s, now, k.ranks>>h.Rank&1 != 0)
	if s.known && bits.OnesCount64(h.Mask) < bits.OnesCount64(s.missing) {
		k.moved = now
	}
	s.known, s.missing = true, h.Mask&k.job.ranks
	k.noteOrder(s.order)
	k.ordered(s) // who lacks it sends it now
	k.setResend(s, s.missing&k.ranks)
	if s.resend != 0 {
		k.job.card.kick()
	}
}
