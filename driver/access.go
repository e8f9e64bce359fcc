package driver

// Register accesses in progress. The card replies to accesses in order (SPEC.md, section 4).
// Independent accesses are therefore in flight together, and a reply shows that unanswered
// accesses sent before it were lost. A timer finds the other losses; it adapts to the card as
// the timers of results do.
//
// Each sent frame has its own tag, which the reply echoes. A reply to a repeated access is
// therefore still a sample.

import (
	"math"
	"slices"
	"time"

	"tributary/driver/frame"
)

// firstRepeat is how long a register access waits before it is repeated, until the first reply
// was timed.
const firstRepeat = 200 * time.Millisecond

// access is one register access; guarded by Card.mu, except reply.
type access struct {
	link   *link // the link it uses
	header frame.Header
	due    bool              // the writer must send it
	sent   []sending         // oldest first
	reply  chan frame.Header // capacity 1
}

type sending struct {
	tag uint16
	at  time.Time
}

// accesses are the unanswered accesses; guarded by Card.mu.
type accesses struct {
	open     []*access     // in the order of their last sending; unsent ones at the end
	tag      uint16        // of the last frame sent
	most     int           // accesses in flight; 0 means no limit
	answered time.Time     // when the last reply came
	trip     time.Duration // the shortest sample; longer ones may include a blocked link
	timing   timing
	backOff  backOff
}

// mostAccesses limits the accesses in flight to a card on a network. It may drop those for which it
// has no room, and nothing but a timer shows that.
const mostAccesses = 8

// newAccesses returns the accesses of a card, which is on a network or not.
func newAccesses(packets bool) accesses {
	r := accesses{timing: newTiming(0, packets)}
	r.timing.wait = firstRepeat
	if packets {
		r.most = mostAccesses
	}
	return r
}

// add starts accesses over l and returns them.
func (r *accesses) add(l *link, headers []frame.Header) []*access {
	batch := make([]*access, len(headers))
	for i, h := range headers {
		batch[i] = &access{link: l, header: h, due: true, reply: make(chan frame.Header, 1)}
	}
	r.open = append(r.open, batch...)
	return batch
}

// forget drops the unanswered accesses of a batch.
func (r *accesses) forget(batch []*access) {
	r.open = slices.DeleteFunc(r.open, func(a *access) bool { return slices.Contains(batch, a) })
}

// addDue adds the due accesses over l. All are due when no reply has come for too long. It returns
// how long no other access is due. No wait is longer than most.
func (r *accesses) addDue(out *batch, l *link, now time.Time, most time.Duration) time.Duration {
	if r.untilOverdue(l, now, most) <= 0 {
		r.backOff++
		for _, a := range r.open {
			a.due = true
		}
	}
	var sent []*access
	room := r.room(l)
	r.open = slices.DeleteFunc(r.open, func(a *access) bool {
		if a.link != l || !a.due || room == 0 {
			return false
		}
		room--
		r.tag++
		a.due, a.header.Length = false, r.tag
		a.sent = append(a.sent, sending{r.tag, now})
		out.add(&a.header, nil)
		sent = append(sent, a)
		return true
	})
	r.open = append(r.open, sent...)
	return r.untilOverdue(l, now, most)
}

// room returns how many accesses over l may be sent.
func (r *accesses) room(l *link) int {
	room := len(r.open)
	if r.most > 0 {
		room = r.most
		for _, a := range r.open {
			if a.link == l && !a.due {
				room--
			}
		}
	}
	return room
}

// untilOverdue returns the time until the next reply over l is overdue. Each reply restarts the
// wait, because a slow card with many requests needs the time for each.
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

// takeReply passes a reply to its access, and reports whether others are due now: those that were lost
// before it, or had no room.
func (r *accesses) takeReply(h *frame.Header, now time.Time) (due bool) {
	for i, a := range r.open {
		for _, s := range a.sent {
			if s.tag != h.Length || a.header.VID != h.VID {
				continue
			}
			r.answered, r.backOff = now, 0
			trip := max(now.Sub(s.at), time.Nanosecond) // trip 0 means no sample
			r.timing.sample(trip)
			if r.trip == 0 || trip < r.trip {
				r.trip = trip
			}
			r.open = slices.Delete(r.open, i, i+1)
			a.reply <- *h
			return r.lostBefore(s.tag) || r.most > 0 && len(r.open) >= r.most
		}
	}
	return false
}

// lostBefore marks as due the accesses last sent before the given, answered tag. It reports
// whether there are any.
func (r *accesses) lostBefore(tag uint16) (lost bool) {
	for _, a := range r.open {
		if n := len(a.sent); n > 0 && int16(a.sent[n-1].tag-tag) < 0 {
			a.due, lost = true, true
		}
	}
	return lost
}
