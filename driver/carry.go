package driver

// Carrying on: jobs whose card has gone away have it looked for, and go on with
// it when it is back. The card has forgotten them by then (the end of a link ends
// its owner's jobs), so each is set up anew, under its number, in a later epoch,
// from the first chunk whose result is not there.
//
// All members of a job live in this process and take every result that reaches one of
// them (takeResult), so all hold the same chunks; where sums may be partial, those
// that are behind first take what they lack from the others (history.go). Some may lie above the first
// that is lacking; their inputs may be overwritten by their results. The card
// takes chunks in turn, so these pass through it again, but as zeros, and what
// comes of them is not stored: no contribution is in two sums.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Between two attempts to open the card again, these bound the wait, which is
// doubled each time.
const (
	firstReopen   = 20 * time.Millisecond
	longestReopen = time.Second
)

// away is a time in which the card is away and looked for; guarded by Card.mu.
type away struct {
	cause *DiedError    // why it went
	went  time.Time     // when
	over  chan struct{} // closed when it is back, or given up
	last  error         // what came of the last attempt to open it; nil before

	// The search's context, and what ends it when no job is left that waits.
	search context.Context
	giveUp context.CancelCauseFunc
}

func newAway(cause *DiedError) *away {
	a := &away{cause: cause, went: time.Now(), over: make(chan struct{})}
	a.search, a.giveUp = context.WithCancelCause(context.Background())
	return a
}

// outage is what a job knows of its card's being away; guarded by Card.mu.
type outage struct {
	since    time.Time   // when the card went; zero once it has done something for this job since
	back     time.Time   // when it was last back
	count    int         // how often it has gone and come back
	patience *time.Timer // ends the job when it has waited for long enough; nil before the first outage
}

// Outages returns how often the card has gone away and come back so far.
func (j *Job) Outages() int {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	return j.outage.count
}

// present returns the link to the card. While the card is away it waits for it.
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

// isAway says whether the card is away and looked for.
func (c *Card) isAway() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.away != nil
}

// lost says whether a link is over and the card is not given up.
func (c *Card) lost(l *link) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.err != nil && c.err == nil
}

// whyOver returns why a link is over; the card's end is the better reason.
func (c *Card) whyOver(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	return l.err
}

// returned ends the wait of those who wait for the card; with mu held.
func (c *Card) returned() {
	if c.away == nil {
		return
	}
	close(c.away.over)
	c.away.giveUp(nil)
	c.away = nil
}

// anyCarriesOn says whether a job runs that is to carry on; with mu held.
func (c *Card) anyCarriesOn() bool {
	for j := range c.jobs() {
		if j.cfg.CarryOn > 0 {
			return true
		}
	}
	return false
}

// missed is called when a call of j has waited for the time-out. A card that has
// said nothing for as long is gone, though its link may stand. It says whether
// the card is looked for.
func (c *Card) missed(j *Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := time.Since(c.heard)
	if c.away == nil && !j.ended && j.cfg.CarryOn > 0 && silent >= c.opts.timeout {
		c.loseLocked(c.link, &DiedError{Card: c.name, Err: fmt.Errorf("it has said nothing for %s", round(silent))})
	}
	return c.away != nil
}

// carryOn looks for the card, which has gone away with the link l, and has its
// jobs go on with it. When it is not found while one waits, or is another, it is
// gone for good.
func (c *Card) carryOn(l *link, a *away) {
	defer c.carrying.Done()
	c.searching.Lock()
	defer c.searching.Unlock()
	_ = l.end()
	tell(c.waitFor(a))
	back, err := c.search(a)
	if err != nil {
		c.fail(c.searchError(a, err))
		return
	}
	tell(back)
	c.dismissLate(c.currentLink())
}

// news is what a job is to be told of its card's being away.
type news struct {
	job    *Job
	outage Outage
}

func tell(all []news) {
	for _, n := range all {
		if n.job.cfg.OnOutage != nil {
			n.job.cfg.OnOutage(n.outage)
		}
	}
}

// begin notes that the card went.
func (o *outage) begin(went time.Time, carryOn time.Duration) {
	if o.since.IsZero() || went.Sub(o.back) > carryOn {
		o.since = went
	}
}

// heardOf notes that the card has done something for the job, which then waits
// for it anew when it goes the next time. A link that is over may still be read: what
// comes by it is no sign that the card is back.
func (j *Job) heardOf() {
	if j.card.away == nil {
		j.outage.since = time.Time{}
	}
}

// waitFor has the members of all jobs stand at the first chunk that they lack, of
// which nothing was sent, and each job wait for the card for as long as it is to.
// Nobody uses the link any more.
func (c *Card) waitFor(a *away) (gone []news) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j := range c.jobs() {
		for _, k := range j.calls {
			k.rewind()
		}
		for n := len(j.calls) - 1; j.history != nil && n >= 0; n-- { // complete moves the last call to the place of its own
			j.calls[n].catchUp()
		}
		patience := max(0, time.Until(j.outage.since.Add(j.cfg.CarryOn)))
		j.outage.patience = time.AfterFunc(patience, func() { j.loseHope(a) })
		gone = append(gone, news{j, Outage{Card: c.name, Cause: a.cause, Patience: patience, VID: j.firstLacking()}})
	}
	return gone
}

// errNoAttempt is what came of the attempts to open a card again while there were
// none.
var errNoAttempt = errors.New("no attempt to open it has ended")

// loseHope ends a job that has waited for its card for long enough.
func (j *Job) loseHope(a *away) {
	c := j.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away == a && !j.ended {
		j.endLocked(a.lostError(c, cmp.Or(a.last, errNoAttempt)))
	}
}

// firstLacking returns the VID of the first chunk that no member holds without a
// gap below it. All that are in a call hold the same; one that is behind takes what
// it lacks when it makes its next call.
func (j *Job) firstLacking() uint32 {
	_, ahead := j.stands()
	return ahead
}

// rewind has nothing sent of the chunks that are not held, and keeps the results
// above them.
func (k *call) rewind() {
	k.kept = 0
	for i := k.low; i < k.low+len(k.ring); i++ {
		s := k.state(i)
		kept := s.kept || s.held && i < k.next // a state above next is that of an earlier chunk
		*s = chunkState{kept: kept}
		if kept {
			k.kept++
		}
	}
	k.next, k.held, k.turn, k.resend, k.backOff = k.low, k.low, 0, 0, 0
}

// search opens the card again and again until its jobs go on with it.
func (c *Card) search(a *away) ([]news, error) {
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

// noteAttempt keeps what came of an attempt to open the card, unless it was given
// up: that says less than what failed before.
func (c *Card) noteAttempt(a *away, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a.search.Err() == nil {
		a.last = err
	}
}

// searchError says why the search for the card is over because of err: that
// another card came back, or else why the last job that waited has ended.
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

// isOtherCard tells a card with which the job can never go on.
func isOtherCard(err error) bool {
	var other *OtherCardError
	var version *VersionError
	var hash *HashError
	return errors.As(err, &other) || errors.As(err, &version) || errors.As(err, &hash)
}

// anew is a job that is set up again.
type anew struct {
	job   *Job
	epoch uint16
}

// tryAgain opens the card once, and has its jobs go on with it.
func (c *Card) tryAgain(a *away) ([]news, error) {
	conn, err := c.reopen(a.search)
	if err != nil {
		return nil, &NoCardError{Name: c.name, Err: err}
	}
	l := c.attach(conn)
	jobs, err := c.setUpAgain(a.search, l)
	if err == nil {
		var back []news
		if back, err = c.resume(l, a, jobs); err == nil {
			return back, nil
		}
	}
	c.refuse(l, err)
	_ = l.end()
	return nil, err
}

// setUpAgain makes sure that a fresh link leads to the card that went away, and
// sets the jobs up on it. They find slots, wherever they had them before: the
// first that are free, beginning with none in use, never leave two pieces of one
// size free, so that what is free in all is enough for what fits into it.
func (c *Card) setUpAgain(ctx context.Context, l *link) ([]anew, error) {
	info, err := c.handshake(ctx, l)
	if err != nil {
		return nil, err
	}
	if info.ConfigHash != c.info.ConfigHash {
		return nil, &OtherCardError{Name: c.name, Got: info.ConfigHash, Want: c.info.ConfigHash}
	}
	c.mu.Lock()
	jobs := slices.Collect(c.jobs())
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

// setUpAgain sets the job up by a fresh link, in the epoch that it returns.
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

// resume lets the frames of the jobs that were set up again pass, by the link l.
func (c *Card) resume(l *link, a *away, jobs []anew) (back []news, err error) {
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
		back = append(back, news{j, Outage{Card: c.name, Cause: a.cause, Away: now.Sub(a.went), VID: j.firstLacking(), Epoch: x.epoch}})
	}
	if len(back) == 0 {
		return nil, context.Cause(a.search)
	}
	c.returned()
	c.kick()
	return back, nil
}

// resume has the job go on in another epoch; with Card.mu held.
func (j *Job) resume(epoch uint16, now time.Time) {
	j.epoch = epoch
	j.timing = newTiming(j.card.accesses.trip)
	for _, k := range j.calls {
		k.moved = now
	}
	if j.finish.left != 0 {
		j.finish.begin(j.ranks &^ j.evicted)
	}
	j.outage.patience.Stop()
	j.outage.count++
	j.outage.back = now
}

// lostError says that the card c, which is away, cannot be gone on with because of
// err.
func (a *away) lostError(c *Card, err error) error {
	return &LostError{Card: c.name, Cause: a.cause, Waited: time.Since(a.went), Err: err}
}

// awayError says that a call was given up because of err while the card was
// away; it is nil when it is not away.
func (c *Card) awayError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away == nil {
		return nil
	}
	return c.away.lostError(c, err)
}
