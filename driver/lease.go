package driver

// The owner of a card on a network (NETWORK.md, section 4). No link goes down there: the card takes
// itself back from an owner that has been silent for LEASE cycles, and the owner learns that by
// reading OWNER.

import (
	"context"
	"errors"
	"slices"
	"sync"
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

// lease is what the owner of a card knows of its lease.
type lease struct {
	renewing sync.Mutex    // held during a renewal
	soon     chan struct{} // capacity 1: renew now

	// Guarded by Card.mu.
	doubts []doubt // that the next renewal decides

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
	return l.packets && l.session == nil && l.opened && !c.opts.reads // a session's daemon is the owner
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
		if timeout := (*TimeoutError)(nil); errors.As(err, &timeout) {
			c.missedBy(l)
		}
		timer.Reset(wait)
	}
}

// missedBy ends the link to a silent card if the driver is to look for it. Otherwise the program's own
// calls time out.
func (c *Card) missedBy(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := time.Since(c.heard)
	if silent >= c.opts.timeout && (c.anyCarriesOn() || c.anyInTree() || c.reopens()) {
		c.loseLocked(l, c.silentError(silent))
	}
}

// renew renews the lease, and ends the link when another token is in OWNER. It returns the time until
// the next renewal.
func (c *Card) renew(ctx context.Context, l *link) (next time.Duration, err error) {
	l.lease.renewing.Lock()
	defer l.lease.renewing.Unlock()
	resets, doubts, watched := c.beforeRenewal(l)
	if resets%2 == 1 {
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
	if c.resets != resets {
		return firstRenewal, nil
	}
	if owner != c.token {
		return 0, c.loseLeaseLocked(l, &LeaseLostError{Owned: owner != 0})
	}
	if changed(watched, values[3:]) {
		return 0, c.loseLeaseLocked(l, &LeaseLostError{Changed: true})
	}
	l.lease.doubts = l.lease.doubts[len(doubts):]
	for _, d := range doubts {
		if d.job.epoch == d.epoch {
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

// doubt is a refusal of a job's packet that may mean that the lease is lost. A renewal that begins
// after it decides.
type doubt struct {
	job     *Job
	epoch   uint16
	refused *RefusedError
}

// beforeRenewal returns the number of resets, the refusals that a renewal decides, and the jobs that it
// looks at. A card that was away has none of them before all are set up again.
func (c *Card) beforeRenewal(l *link) (resets int, doubts []doubt, jobs []watched) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j := range c.jobs() {
		if c.away == nil && j.entries != nil && !j.stopped {
			jobs = append(jobs, watched{j, j.epoch, j.entries})
		}
	}
	return c.resets, l.lease.doubts, jobs
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
	if !slices.ContainsFunc(l.lease.doubts, func(d doubt) bool { return d.job == j && d.epoch == j.epoch }) {
		l.lease.doubts = append(l.lease.doubts, doubt{j, j.epoch, refused})
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

// resetting does a reset. No renewal meanwhile judges the value of OWNER.
func (c *Card) resetting(do func() error) error {
	c.noteReset()
	defer c.noteReset()
	return do()
}

// noteReset notes the beginning or the end of a reset.
func (c *Card) noteReset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resets++
}
