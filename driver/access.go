package driver

// The register accesses under way. The card answers accesses in order (SPEC.md,
// section 4), so those that do not depend on one another are in flight together,
// and an answer shows that what was asked before it and is not answered was lost.
// What nothing shows, a timer does: it adapts to the card as those for results do.

import (
	"math"
	"slices"
	"time"

	"tributary/driver/frame"
)

// firstRepeat is how long a register access waits for its answer before it is
// repeated, as long as no answer was timed.
const firstRepeat = 200 * time.Millisecond

// access is one register access; guarded by Card.mu, but for reply.
type access struct {
	link   *link // by which it goes
	header frame.Header
	due    bool              // the writer is to send it
	again  bool              // it was sent more than once
	sent   time.Time         // last; zero before the first time
	reply  chan frame.Header // of capacity 1
}

// accesses are those that are not answered; guarded by Card.mu.
type accesses struct {
	open     []*access // in the order in which they were sent last; those that were not, behind
	tag      uint16    // of the last access
	answered time.Time // when the last answer came
	trip     time.Duration
	timing   timing
	backOff  backOff
}

func newAccesses() accesses { return accesses{timing: timing{wait: firstRepeat}} }

// add puts accesses by l under way, and returns them.
func (r *accesses) add(l *link, headers []frame.Header) []*access {
	batch := make([]*access, len(headers))
	for i, h := range headers {
		r.tag++
		h.Length = r.tag
		batch[i] = &access{link: l, header: h, due: true, reply: make(chan frame.Header, 1)}
	}
	r.open = append(r.open, batch...)
	return batch
}

// forget drops those of a batch that are not answered.
func (r *accesses) forget(batch []*access) {
	r.open = slices.DeleteFunc(r.open, func(a *access) bool { return slices.Contains(batch, a) })
}

// appendDue appends the accesses by l that are due; that is all of them when no
// answer has come for too long. It returns how long nothing else is due. No wait
// is longer than most.
func (r *accesses) appendDue(buf []byte, l *link, now time.Time, most time.Duration) ([]byte, time.Duration) {
	if r.untilOverdue(l, now, most) <= 0 {
		r.backOff++
		for _, a := range r.open {
			a.due = true
		}
	}
	var sent []*access
	r.open = slices.DeleteFunc(r.open, func(a *access) bool {
		if a.link != l || !a.due {
			return false
		}
		a.due, a.again, a.sent = false, !a.sent.IsZero(), now
		buf = frame.Append(buf, &a.header, nil)
		sent = append(sent, a)
		return true
	})
	r.open = append(r.open, sent...)
	return buf, r.untilOverdue(l, now, most)
}

// untilOverdue returns how long it is until the answers to what was sent by l are
// overdue. Each answer gives the next one as much time again: a slow card that was
// asked much at once takes its time for each.
func (r *accesses) untilOverdue(l *link, now time.Time, most time.Duration) time.Duration {
	for _, a := range r.open {
		if a.link != l || a.sent.IsZero() {
			continue
		}
		since := a.sent
		if r.answered.After(since) {
			since = r.answered
		}
		return since.Add(min(r.backOff.unbounded(&r.timing), most)).Sub(now)
	}
	return math.MaxInt64
}

// takeReply hands a reply to the access that it answers, and says whether others
// were seen to be lost. One that was sent once gives a sample of the time, and
// tells what was lost; of another nobody knows which sending is answered.
func (r *accesses) takeReply(h *frame.Header, now time.Time) (lost bool) {
	i := slices.IndexFunc(r.open, func(a *access) bool { return h.Length == a.header.Length && h.VID == a.header.VID })
	if i < 0 {
		return false
	}
	a := r.open[i]
	if !a.again {
		r.trip = now.Sub(a.sent)
		r.timing.sample(r.trip)
		r.backOff = 0
		for _, before := range r.open[:i] {
			before.due, lost = true, true
		}
	}
	r.open = slices.Delete(r.open, i, i+1)
	r.answered = now
	a.reply <- *h
	return lost
}
