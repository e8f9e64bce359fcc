package driver

// Carrying on: when a card goes away, the driver looks for it, and jobs with CarryOn continue
// on it. The end of the link has ended the jobs on the card. The driver therefore sets each job
// up again, under its number, in a later epoch, from the first missing result.
//
// All members of a job are in this process and share every result that reaches one of them
// (takeResult), so all hold the same chunks. Where sums may be partial, members that are behind
// first copy the results of the others (history.go).
//
// Some results above the first missing one may be there, and may have overwritten their inputs.
// The card takes chunks in order, so these chunks pass through it again, but as zeros, and the
// driver drops their sums. No contribution is in two sums.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Limits of the wait between two attempts to open the card. The wait doubles each time.
const (
	firstReopen   = 20 * time.Millisecond
	longestReopen = time.Second
)

// away is an outage of the card while the driver looks for it; guarded by Card.mu.
type away struct {
	cause *DiedError    // why the card went
	went  time.Time     // when it went
	over  chan struct{} // closed when the card is back, or given up
	last  error         // the error of the last attempt to open it; nil before

	// The context of the search; giveUp ends it when no waiting job is left.
	search context.Context
	giveUp context.CancelCauseFunc
}

func newAway(cause *DiedError) *away {
	a := &away{cause: cause, went: time.Now(), over: make(chan struct{})}
	a.search, a.giveUp = context.WithCancelCause(context.Background())
	return a
}

// outage is a job's record of its card's outages; guarded by Card.mu.
type outage struct {
	since    time.Time   // when the card went; zero after it has done something for this job
	back     time.Time   // when it last came back
	count    int         // outages so far
	patience *time.Timer // ends the job's wait; nil before the first outage
	cause    *DiedError  // of the last one
	went     time.Time   // when that began
}

// Outages returns how often the card has gone away and come back.
func (j *Job) Outages() int {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return j.outage.count
}

// present returns the current link. It waits while the card is away.
func (c *Card) present(ctx context.Context, what string) (*link, error) {
	for {
		c.mu.Lock()
		l, away, err := c.link, c.away, c.err
		c.mu.Unlock()
		if away == nil {
			return l, err
		}
		select {
		case <-away.over:
		case <-ctx.Done():
			return nil, c.stopped(ctx, what)
		}
	}
}

// Away reports whether the card has gone and the driver looks for it (JobConfig.CarryOn, WithReopen).
func (c *Card) Away() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away != nil
}

// lost reports whether a link has ended and the card is not given up.
func (c *Card) lost(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.err != nil && c.err == nil
}

// whyOver returns why a link has ended. Why the card is gone takes precedence.
func (c *Card) whyOver(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return l.err
}

// returned ends the waits for the card. The caller holds mu.
func (c *Card) returned() {
	if c.away == nil {
		return
	}
	close(c.away.over)
	c.away.giveUp(nil)
	c.away = nil
}

// waits reports whether the job waits for its card or for its members. The caller holds mu.
func (j *Job) waits() bool { return j.card.away != nil || j.stopped }

// anyCarriesOn reports whether a running job has CarryOn. The caller holds mu.
func (c *Card) anyCarriesOn() bool {
	for j := range c.jobs() {
		if j.cfg.CarryOn > 0 {
			return true
		}
	}
	return false
}

// anyInTree reports whether a running job is the part of one on a tree. The caller holds mu.
func (c *Card) anyInTree() bool {
	for j := range c.jobs() {
		if j.branch != nil {
			return true
		}
	}
	return false
}

// reopens reports whether the driver looks for the card even if no job waits for it. While Open is under
// way it does not. The caller holds mu.
func (c *Card) reopens() bool { return c.opts.reopens && c.reopen != nil && c.table != nil }

// tellAway tells the program that the card has gone, or with nil that it is back.
func (c *Card) tellAway(died *DiedError) {
	if c.opts.tell != nil {
		c.opts.tell(died)
	}
}

// missed handles a call of j that has waited for the timeout. A card that was silent for that
// long is gone, even if its link is open. It reports whether the driver looks for the card.
func (c *Card) missed(j *Job) bool {
	if w := j.tree(); w != nil && w.missed() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := time.Since(c.heard)
	if c.away == nil && !j.ended && j.cfg.CarryOn > 0 && silent >= c.opts.timeout {
		c.loseLocked(c.link, c.silentError(silent))
	}
	return c.away != nil
}

// carryOn looks for the card, which went away with the link l, and continues its jobs. The card
// is gone for good when another card answers, or when no job waits any longer (without WithReopen).
func (c *Card) carryOn(l *link, a *away) {
	defer c.carrying.Done()
	c.searching.Lock()
	defer c.searching.Unlock()
	_ = l.end()
	c.tellAway(a.cause)
	reportOutages(c.waitFor(a))
	c.stopRelays(a)
	back, err := c.search(a)
	if err != nil {
		c.fail(c.searchError(a, err))
		return
	}
	c.tellAway(nil)
	reportOutages(back)
	for _, n := range back {
		if n.job.relay != nil {
			n.job.relay.remote.Begin(n.outage.Epoch)
		}
	}
	c.dismissLate(c.currentLink())
}

// outageReport is an Outage to report to a job's OnOutage.
type outageReport struct {
	job    *Job
	outage Outage
}

func reportOutages(all []outageReport) {
	for _, n := range all {
		if w := n.job.tree(); w != nil {
			w.noteGone(n.outage)
		} else if n.job.cfg.OnOutage != nil {
			n.job.cfg.OnOutage(n.outage)
		}
	}
}

// begin records that the card went.
func (o *outage) begin(went time.Time, carryOn time.Duration) {
	if o.since.IsZero() || went.Sub(o.back) > carryOn {
		o.since = went
	}
}

// heardOf records that the card has done something for the job. The job's wait then restarts
// with the next outage. Frames from a link that has ended do not count, as they do not show
// that the card is back.
func (j *Job) heardOf() {
	if j.card.away == nil {
		j.outage.since = time.Time{}
	}
}

// waitFor rewinds all flows to their first missing chunk, and starts each job's wait for the
// card. Nobody uses the link any more.
func (c *Card) waitFor(a *away) (gone []outageReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j := range c.jobs() {
		if j.seats != nil {
			j.stopped, j.seats.announces = true, false
		}
		if j.branch != nil {
			j.stopped = true // until its tree continues
		}
		j.rest(a.cause, a.went)
		patience := max(0, time.Until(j.outage.since.Add(j.cfg.CarryOn)))
		j.outage.patience = time.AfterFunc(patience, func() { j.endWait(a) })
		gone = append(gone, outageReport{j, Outage{Card: c.name, Cause: a.cause, Patience: patience, VID: j.firstLacking(), went: a.went}})
	}
	return gone
}

// errNoAttempt stands for the error of the last attempt when no attempt has finished.
var errNoAttempt = errors.New("no attempt to open it has finished")

// endWait ends a job whose wait for its card is over.
func (j *Job) endWait(a *away) {
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if (c.away == a || j.stopped && j.outage.cause == a.cause) && !j.ended {
		j.endLocked(a.lostError(c, cmp.Or(a.last, errNoAttempt)))
	}
}

// firstLacking returns the VID of the first chunk that no member holds without a gap below it.
// All members in a call hold the same chunks. A member that is behind copies what it lacks when
// it makes its next call.
func (j *Job) firstLacking() uint32 {
	if j.relay != nil {
		return j.relay.first
	}
	_, ahead := j.firstMissing()
	return ahead
}

// rewind marks every chunk that is not held as unsent, and keeps the results above them.
func (f *flow) rewind() {
	f.kept = 0
	for i := f.low; i < f.low+len(f.ring); i++ {
		s := f.state(i)
		kept := s.kept || s.held && i < f.next // a state from next on is that of an earlier chunk
		*s = chunkState{kept: kept}
		if kept {
			f.kept++
		}
	}
	f.next, f.held, f.turn, f.resend, f.backOff = f.low, f.low, 0, 0, 0
}

// search opens the card again and again until the jobs continue on it.
func (c *Card) search(a *away) ([]outageReport, error) {
	for wait := firstReopen; ; wait = min(2*wait, longestReopen) {
		if a.search.Err() != nil {
			return nil, a.search.Err()
		}
		back, err := c.tryAgain(a)
		if err == nil || isOtherCard(err) {
			return back, err
		}
		c.noteAttempt(a, err)
		select {
		case <-a.search.Done():
		case <-time.After(wait):
		}
	}
}

// noteAttempt keeps the error of an attempt to open the card. It ignores an attempt that was
// cancelled, because the error before it is more useful.
func (c *Card) noteAttempt(a *away, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.search.Err() == nil {
		a.last = err
	}
}

// searchError returns why the search for the card ended with err: another card came back, or
// else why the last waiting job ended.
func (c *Card) searchError(a *away, err error) error {
	var lost *LostError
	switch cause := context.Cause(a.search); {
	case cause == nil:
		return a.lostError(c, err)
	case errors.Is(cause, ErrClosed) || errors.As(cause, &lost):
		return cause
	}
	return a.cause
}

// isOtherCard reports whether err means that the job can never continue with the card.
func isOtherCard(err error) bool {
	var other *OtherCardError
	var version *VersionError
	var hash *HashError
	return errors.As(err, &other) || errors.As(err, &version) || errors.As(err, &hash)
}

// anew is a job that was set up again.
type anew struct {
	job   *Job
	epoch uint16
}

// tryAgain opens the card once and continues its jobs on it.
func (c *Card) tryAgain(a *away) ([]outageReport, error) {
	conn, err := c.reopen(a.search)
	if err != nil {
		return nil, &NoCardError{Name: c.name, Err: err}
	}
	l := c.attach(conn)
	jobs, err := c.setUpAgain(a.search, l)
	if err == nil {
		var back []outageReport
		if back, err = c.resume(l, a, jobs); err == nil {
			return back, nil
		}
	}
	c.refuse(l, err)
	_ = l.end()
	return nil, err
}

// setUpAgain checks that a new link leads to the same card, and sets the jobs up on it. There
// are slots for all, whatever slots they had before. First-fit allocation from an empty table
// never leaves two free pieces of the same size. Any window that fits into the total of the
// free slots therefore finds a piece.
func (c *Card) setUpAgain(ctx context.Context, l *link) ([]anew, error) {
	info, err := c.handshake(ctx, l)
	if err != nil {
		return nil, err
	}
	if info.ConfigHash != c.info.ConfigHash {
		return nil, &OtherCardError{Name: c.name, Got: info.ConfigHash, Want: c.info.ConfigHash}
	}
	if c.shared {
		return nil, c.rejoin(ctx, l)
	}
	c.mu.Lock()
	jobs := slices.DeleteFunc(slices.Collect(c.jobs()), func(j *Job) bool { return j.branch != nil }) // their trees set them up
	c.mu.Unlock()
	again := make([]anew, len(jobs))
	for i, j := range jobs {
		epoch, err := j.setUpAgain(ctx, l)
		if err != nil {
			return nil, err
		}
		again[i] = anew{j, epoch}
	}
	return again, nil
}

// setUpAgain sets the job up over a new link and returns its epoch.
func (j *Job) setUpAgain(ctx context.Context, l *link) (uint16, error) {
	last, set, err := j.card.lastEpoch(ctx, l, j.number)
	if err != nil {
		return 0, err
	}
	j.card.mu.Lock()
	epoch, first := j.epoch+1, j.firstLacking()
	j.card.mu.Unlock()
	if set && int16(last-epoch) >= 0 {
		epoch = last + 1
	}
	return j.setUp(ctx, l, epoch, first)
}

// resume opens the link l to the frames of the jobs that were set up again.
func (c *Card) resume(l *link, a *away, jobs []anew) (back []outageReport, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.err != nil {
		return nil, l.err
	}
	now := time.Now()
	for _, x := range jobs {
		j := x.job
		if j.ended {
			c.table[j.number] = jobEntry{lingers: true, epoch: x.epoch}
			continue
		}
		j.resume(x.epoch, now)
		back = append(back, outageReport{j, Outage{Card: c.name, Cause: a.cause, Away: now.Sub(a.went), VID: j.firstLacking(), Epoch: x.epoch}})
	}
	if len(back) == 0 && len(c.seated) == 0 && !c.anyInTree() && !c.reopens() {
		return nil, context.Cause(a.search)
	}
	c.returned()
	c.kick()
	return back, nil
}

// resume continues the job in another epoch. The caller holds Card.mu.
func (j *Job) resume(epoch uint16, now time.Time) {
	j.epoch = epoch
	j.stopped = false
	j.timing = newTiming(j.card.accesses.trip, j.card.packets)
	for _, f := range j.flows {
		f.moved = now
	}
	if j.finish.left != 0 {
		j.finish.begin(j.here &^ j.evicted)
	}
	if j.outage.patience != nil { // else another card of its tree was away
		j.outage.patience.Stop()
	}
	j.outage.count++
	j.outage.back = now
}

// lostError returns the error of an operation that err ended while the card was away.
func (a *away) lostError(c *Card, err error) error {
	return &LostError{Card: c.name, Cause: a.cause, Waited: time.Since(a.went), Err: err}
}

// awayError returns the error of a call that err ended while the card is away. It returns nil
// when the card is not away.
func (c *Card) awayError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away == nil {
		return nil
	}
	return c.away.lostError(c, err)
}
