package driver

// Carrying on: a job whose card has gone away has it looked for, and goes on with
// it when it is back. The card has forgotten the job by then (the end of a link
// ends its owner's jobs), so it is set up anew, in a later epoch, from the first
// chunk whose result is not there.
//
// All members live in this process and take every result that reaches one of
// them (takeResult), so all hold the same chunks. Some may lie above the first
// that is lacking; their inputs may be overwritten by their results. The card
// takes chunks in turn, so these pass through it again, but as zeros, and what
// comes of them is not stored: no contribution is in two sums.

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Between two attempts to open the card again, these bound the wait, which is
// doubled each time.
const (
	firstReopen   = 20 * time.Millisecond
	longestReopen = time.Second
)

// outage is what a job knows of its card's being away; guarded by Card.mu.
type outage struct {
	since  time.Time  // when the card went; zero once it has done something since
	went   time.Time  // when it went last
	back   time.Time  // when it was last back
	cause  *DiedError // why it went
	count  int        // how often it has gone and come back
	giveUp func()     // ends the search when the job does
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
		l, back, err := c.link, c.back, c.err
		c.mu.Unlock()
		if back == nil {
			return l, err
		}
		select {
		case <-back:
		case <-ctx.Done():
			return nil, c.stopped(ctx, what)
		}
	}
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
	if c.back != nil {
		close(c.back)
		c.back = nil
	}
}

// missed is called when a call of j has waited for the time-out. A card that has
// said nothing for as long is gone, though its link may stand. It says whether
// the card is looked for.
func (c *Card) missed(j *Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := time.Since(c.heard)
	if c.back == nil && c.job == j && j.cfg.CarryOn > 0 && silent >= c.opts.timeout {
		c.loseLocked(c.link, &DiedError{Card: c.name, Err: fmt.Errorf("it has said nothing for %s", round(silent))})
	}
	return c.back != nil
}

// carryOn looks for the card, which has gone away with the link l, and has j go on
// with it. When it is not found in time, or is another, it is gone for good.
func (c *Card) carryOn(j *Job, l *link, cause *DiedError) {
	defer c.carrying.Done()
	c.searching.Lock()
	defer c.searching.Unlock()
	_ = l.end()
	first, deadline := j.rewind()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if !j.searchUntil(cancel) {
		c.fail(cause) // the job ended, so nobody waits for the card
		return
	}
	j.tell(Outage{Card: c.name, Cause: cause, Patience: max(0, time.Until(deadline)), VID: first})
	found, err := c.search(ctx, j, first)
	if err != nil {
		c.fail(j.lostError(err))
		return
	}
	j.tell(found)
}

func (j *Job) tell(o Outage) {
	if j.cfg.OnOutage != nil {
		j.cfg.OnOutage(o)
	}
}

// begin notes that the card has gone.
func (o *outage) begin(cause *DiedError, carryOn time.Duration) {
	o.went, o.cause = time.Now(), cause
	if o.since.IsZero() || o.went.Sub(o.back) > carryOn {
		o.since = o.went
	}
}

// rewind has all members stand at the first chunk that they lack, of which
// nothing was sent, and returns its VID and when the search is to end. Nobody
// uses the link any more.
func (j *Job) rewind() (first uint32, deadline time.Time) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	for _, k := range j.calls {
		k.rewind()
	}
	return j.firstLacking(), j.outage.since.Add(j.cfg.CarryOn)
}

// firstLacking returns the VID of the first chunk that not all members hold.
func (j *Job) firstLacking() uint32 {
	if len(j.calls) > 0 {
		return j.calls[0].first + uint32(j.calls[0].low)
	}
	return j.members[0].next
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

// searchUntil has cancel called when the job ends, and says whether it stands.
func (j *Job) searchUntil(cancel func()) bool {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.outage.giveUp = cancel
	return !j.ended
}

// search opens the card again and again until the job goes on with it.
func (c *Card) search(ctx context.Context, j *Job, first uint32) (Outage, error) {
	var last error
	for wait := firstReopen; ; wait = min(2*wait, longestReopen) {
		back, err := c.tryAgain(ctx, j, first)
		if err == nil || isOtherCard(err) {
			return back, err
		}
		if last == nil || ctx.Err() == nil {
			last = err // that the time is up says less than what failed before
		}
		select {
		case <-ctx.Done():
			return Outage{}, last
		case <-time.After(wait):
		}
	}
}

// isOtherCard tells a card with which the job can never go on.
func isOtherCard(err error) bool {
	var other *OtherCardError
	var version *VersionError
	var hash *HashError
	return errors.As(err, &other) || errors.As(err, &version) || errors.As(err, &hash)
}

// tryAgain opens the card once, and has the job go on with it.
func (c *Card) tryAgain(ctx context.Context, j *Job, first uint32) (Outage, error) {
	conn, err := c.reopen(ctx)
	if err != nil {
		return Outage{}, &NoCardError{Name: c.name, Err: err}
	}
	l := c.attach(conn)
	epoch, err := c.setUpAgain(ctx, l, j, first)
	if err == nil {
		var back Outage
		if back, err = j.resume(l, epoch); err == nil {
			return back, nil
		}
	}
	c.refuse(l, err)
	_ = l.end()
	return Outage{}, err
}

// setUpAgain makes sure that a fresh link leads to the card that went away, and
// sets the job up on it, in the epoch that it returns.
func (c *Card) setUpAgain(ctx context.Context, l *link, j *Job, first uint32) (uint16, error) {
	info, err := c.meet(ctx, l)
	if err != nil {
		return 0, err
	}
	if info.ConfigHash != c.info.ConfigHash {
		return 0, &OtherCardError{Name: c.name, Got: info.ConfigHash, Want: c.info.ConfigHash}
	}
	last, set, err := c.lastEpoch(ctx, l)
	if err != nil {
		return 0, err
	}
	epoch := j.Epoch() + 1
	if set && int16(last-epoch) >= 0 {
		epoch = last + 1
	}
	return epoch, j.setUp(ctx, l, epoch, first)
}

// resume lets the job's frames pass again, by the link l.
func (j *Job) resume(l *link, epoch uint16) (Outage, error) {
	c := j.card
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case j.ended:
		return Outage{}, j.endedError()
	case l.err != nil:
		return Outage{}, l.err
	}
	j.epoch = epoch
	j.timing = newTiming(c.access.trip)
	for _, k := range j.calls {
		k.moved = now
	}
	if j.finish.left != 0 {
		j.finish.begin(j.ranks)
	}
	o := &j.outage
	o.count++
	o.back, o.giveUp = now, nil
	c.returned()
	c.kick()
	return Outage{Card: c.name, Cause: o.cause, Away: now.Sub(o.went), VID: j.firstLacking(), Epoch: epoch}, nil
}

// lostError says that the card, which went away, cannot be gone on with because
// of err. Where the job has ended, that is the reason.
func (j *Job) lostError(err error) error {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if j.ended && errors.Is(j.err, ErrClosed) {
		return ErrClosed
	}
	return j.lostErrorLocked(err)
}

func (j *Job) lostErrorLocked(err error) error {
	return &LostError{Card: j.card.name, Cause: j.outage.cause, Waited: time.Since(j.outage.went), Err: err}
}

// awayError says that a call was given up because of err while the card was
// away; it is nil when it is not away.
func (j *Job) awayError(err error) error {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if j.card.back == nil {
		return nil
	}
	return j.lostErrorLocked(err)
}
