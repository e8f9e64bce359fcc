package driver

// The register accesses under way. The card answers accesses in order (SPEC.md,
// section 4), so those that do not depend on one another are in flight together,
// and an answer shows that what was sent before it and is not answered was lost.
// What nothing shows, a timer does: it adapts to the card as those for results do.
// Every sending has a tag of its own, which the reply echoes. So it is known which
// is answered, and its time is a sample though it was not the only one.

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
	sent   []sending         // with the last one last
	reply  chan frame.Header // of capacity 1
}

type sending struct {
	tag uint16
	at  time.Time
}

// accesses are those that are not answered; guarded by Card.mu.
type accesses struct {
	open     []*access     // in the order in which they were sent last; those that were not, behind
	tag      uint16        // of the last sending
	answered time.Time     // when the last answer came
	trip     time.Duration // the shortest sample; others may have waited for a link that stood still
	timing   timing
	backOff  backOff
}

func newAccesses() accesses { return accesses{timing: timing{wait: firstRepeat}} }

// add puts accesses by l under way, and returns them.
func (r *accesses) add(l *link, headers []frame.Header) []*access {
	batch := make([]*access, len(headers))
	for i, h := range headers {
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
		r.tag++
		a.due, a.header.Length = false, r.tag
		a.sent = append(a.sent, sending{r.tag, now})
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
		if a.link != l || len(a.sent) == 0 {
			continue
		}
		since := a.sent[len(a.sent)-1].at
		if r.answered.After(since) {
			since = r.answered
		}
		return since.Add(min(r.backOff.wait(&r.timing), most)).Sub(now)
	}
	return math.MaxInt64
}

// takeReply hands a reply to the access that it answers, and says whether others
// were seen to be lost.
func (r *accesses) takeReply(h *frame.Header, now time.Time) (lost bool) {
	for i, a := range r.open {
		for _, s := range a.sent {
			if s.tag != h.Length || a.header.VID != h.VID {
				continue
			}
			r.answered, r.backOff = now, 0
			trip := now.Sub(s.at)
			r.timing.sample(trip)
			if r.trip == 0 || trip < r.trip {
				r.trip = trip
			}
			r.open = slices.Delete(r.open, i, i+1)
			a.reply <- *h
			return r.lostBefore(s.tag)
		}
	}
	return false
}

// lostBefore has accesses sent again that were sent last before the sending of a
// tag, which was answered. It says whether there are any.
func (r *accesses) lostBefore(tag uint16) (lost bool) {
	for _, a := range r.open {
		if n := len(a.sent); n > 0 && int16(a.sent[n-1].tag-tag) < 0 {
			a.due, lost = true, true
		}
	}
	return lost
}
