package driver

// The owner of a card on a network (NETWORK.md, section 4). No link goes down there: the card takes
// itself back from an owner that has been silent for LEASE cycles, and the owner learns that by
// reading OWNER.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Limits of the time from one renewal to the next. Until the second, the card's clock is unknown.
const (
	firstRenewal   = 50 * time.Millisecond
	longestRenewal = wire.LeaseSeconds * time.Second / leaseParts
	leaseParts     = 4 // renewals in a lease
)

// LeaseLostError is the cause in the DiedError of a card on a network that this program no longer
// owns. The card has ended all of its jobs.
type LeaseLostError struct {
	Owned   bool // by another host now
	Changed bool // it holds other jobs than this host has set up
}

func (e *LeaseLostError) Error() string {
	by := "nobody owns it now"
	switch {
	case e.Owned:
		by = "another host owns it now"
	case e.Changed:
		by = "its jobs are not those that this host has set up"
	}
	return "this host was silent for the card's lease, or the card was reset, and " + by
}

// lease is what the owner of a card knows of its lease; guarded by Card.mu.
type lease struct {
	soon chan struct{} // capacity 1: renew now

	// The last renewal.
	at     time.Time
	cycles uint64 // the card's clock
}

// leased reports whether this program owns the card by a lease.
func (c *Card) leased(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leasedLocked(l)
}

func (c *Card) leasedLocked(l *link) bool {
	return l.packets && l.session == nil && l.opened && !c.opts.reads
}

// renewSoon makes the next renewal due.
func (l *link) renewSoon() {
	select {
	case l.lease.soon <- struct{}{}:
	default:
	}
}

// keepLocked begins to renew the lease of a card that this program has taken over the link.
func (c *Card) keepLocked(l *link) {
	if c.leasedLocked(l) && l.err == nil {
		l.running.Add(1) // the reader runs, because the link has not ended
		go c.keep(l)
	}
}

// keep renews the lease until the link ends.
func (c *Card) keep(l *link) {
	defer l.running.Done()
	timer := time.NewTimer(firstRenewal)
	defer timer.Stop()
	for {
		select {
		case <-l.over:
			return
		case <-timer.C:
		case <-l.lease.soon:
		}
		wait, err := c.renew(context.Background(), l)
		var silent *TimeoutError
		if errors.As(err, &silent) {
			c.missedBy(l, silent)
		}
		timer.Reset(wait)
	}
}

// missedBy ends the link to a silent card if the driver is to look for it. Otherwise the program's own
// calls time out.
func (c *Card) missedBy(l *link, silent *TimeoutError) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.anyCarriesOn() || c.reopens() {
		c.loseLocked(l, &DiedError{Card: c.name, Err: fmt.Errorf("it has sent nothing for %s", round(silent.Waited))})
	}
}

// renew renews the lease, and ends the link when another token is in OWNER. It returns the time until
// the next renewal.
func (c *Card) renew(ctx context.Context, l *link) (next time.Duration, err error) {
	owning, doubts, watched := c.beforeRenewal(l)
	if owning {
		return firstRenewal, nil
	}
	reads := []frame.Header{readHeader(wire.RegOwner), readHeader(wire.RegLease), readHeader(wire.RegCycles)}
	for _, w := range watched {
		reads = w.addReads(reads)
	}
	values, err := c.accessOn(ctx, l, reads...)
	if err != nil {
		return firstRenewal, err
	}
	owner, cycles, clock := values[0], values[1], values[2]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owning > 0 {
		return firstRenewal, nil
	}
	if owner != c.token {
		return 0, c.loseLeaseLocked(l, &LeaseLostError{Owned: owner != 0})
	}
	for rest := values[3:]; len(watched) > 0; watched = watched[1:] {
		w := watched[0]
		if !w.holds(rest) && w.isCurrent() {
			return 0, c.loseLeaseLocked(l, &LeaseLostError{Changed: true})
		}
		rest = rest[1+len(w.entries):]
	}
	for _, d := range doubts {
		if d.job.doubt == d.refused {
			d.job.endLocked(d.refused)
		}
	}
	return l.lease.note(cycles, clock, time.Now()), nil
}

func (c *Card) loseLeaseLocked(l *link, lost *LeaseLostError) error {
	died := &DiedError{Card: c.name, Err: lost}
	c.loseLocked(l, died)
	return died
}

// watched is a job as its owner has set it up. Its token in OWNER does not show that the card still has
// the job: late copies of packets may have taken the card again, and, after a loss of power, have set up
// an earlier one.
type watched struct {
	job     *Job
	epoch   uint16
	entries []frame.Header
}

// watch notes the members' addresses with which a job was set up, for renewals to look at.
func (j *Job) watch(staged []frame.Header) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.entries = j.boundMembers(staged)
}

// addReads adds the reads of the job's epoch and entries.
func (w *watched) addReads(reads []frame.Header) []frame.Header {
	reads = append(reads, readHeader(wire.JobAddr(wire.RegJobState, int(w.job.number))))
	for _, h := range w.entries {
		reads = append(reads, readHeader(h.VID))
	}
	return reads
}

// holds reports whether the card's answers to these reads are those of the job. A job that all have
// finished, or that ended with the lease, has the same.
func (w *watched) holds(values []uint64) bool {
	return uint16(values[0]>>stateEpochShift) == w.epoch && hold(values[1:], w.entries)
}

// isCurrent reports whether the job still is in the epoch in which it is watched. The caller holds
// Card.mu.
func (w *watched) isCurrent() bool { return !w.job.ended && !w.job.stopped && w.job.epoch == w.epoch }

// doubt is a refusal of a job's packet that may mean that the lease is lost.
type doubt struct {
	job     *Job
	refused *RefusedError
}

// beforeRenewal returns the refusals that a renewal decides and the jobs that it looks at, or that OWNER
// may hold anything.
func (c *Card) beforeRenewal(l *link) (owning bool, doubts []doubt, jobs []watched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j := range c.jobs() {
		if j.doubt != nil {
			doubts = append(doubts, doubt{j, j.doubt})
		}
		if j.entries != nil && !j.stopped {
			jobs = append(jobs, watched{j, j.epoch, j.entries})
		}
	}
	return c.owning > 0, doubts, jobs
}

// note records a renewal at which the card's clock was at cycles, and returns the time until the next
// one: a quarter of the lease.
func (s *lease) note(lease, cycles uint64, now time.Time) time.Duration {
	before, at := s.cycles, s.at
	s.cycles, s.at = cycles, now
	if at.IsZero() || cycles <= before {
		return firstRenewal
	}
	perCycle := float64(now.Sub(at)) / float64(cycles-before)
	return time.Duration(min(perCycle*float64(lease)/leaseParts, float64(longestRenewal)))
}

// doubts reports whether a refusal decides nothing yet: without the lease, the card knows none of the
// jobs. The next renewal then ends the job, or the link. The caller holds Card.mu.
func (j *Job) doubts(refused *RefusedError) bool {
	l := j.card.link
	if refused.Code != wire.CodeBadJob && refused.Code != wire.CodeBadEpoch || !j.card.leasedLocked(l) {
		return false
	}
	if j.doubt == nil {
		j.doubt = refused
		l.renewSoon()
	}
	return true
}

// refusedAccess returns the error for an access that the card refused. A write that gets busy may
// show that the lease is lost.
func (c *Card) refusedAccess(ctx context.Context, l *link, h frame.Header, code wire.Code) error {
	if code == wire.CodeBusy && c.leased(l) {
		_, err := c.renew(ctx, l)
		var died *DiedError
		if errors.As(err, &died) {
			return died
		}
	}
	return &RefusedError{Card: c.name, What: accessName(h), Value: h.Mask, Code: code}
}

// reown does what changes OWNER, while no renewal may judge its value.
func (c *Card) reown(do func() error) error {
	c.noteOwning(1)
	defer c.noteOwning(-1)
	return do()
}

func (c *Card) noteOwning(more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owning += more
}
