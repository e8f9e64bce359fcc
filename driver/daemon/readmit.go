package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
)

// gap is the place between two calls where members return.
type gap struct {
	vid   uint32 // the daemon drops data from here on
	calls uint64 // before it
}

// readmit lets members return to a job with partial sums (SPEC.md, section 7). It pauses the others
// after the calls that they have announced, and begins an epoch when these are complete.
func (j *job) readmit() {
	if j.state != running || j.paused != nil || j.returning() == 0 {
		return
	}
	g := gap{j.seats[0].next, j.seats[0].calls}
	for _, s := range j.seats { // a lost seat may have sent data of calls that others have not announced yet
		if int32(s.next-g.vid) > 0 {
			g = gap{s.next, s.calls}
		}
	}
	j.paused = &g
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Pause{Pause: &protocol.Pause{Nonce: j.nonce, Vid: g.vid}}})
	j.renewIfDrained()
}

// admitReturned lets the members that have returned take part in the epoch that begins, if it begins
// where they can: also those that returned after the pause was told.
func (j *job) admitReturned() {
	if j.paused == nil || j.first != j.paused.vid {
		return
	}
	for _, s := range j.seats {
		if s.returns {
			s.returns, s.calls, s.next = false, j.paused.calls, j.paused.vid
			j.evicted &^= s.bit() // evicted when it was lost
		}
	}
}

// returning is the mask of the ranks that take part from the next epoch on.
func (j *job) returning() (ranks uint64) {
	for _, s := range j.seats {
		if s.returns {
			ranks |= s.bit()
		}
	}
	return ranks
}

// renewIfDrained begins an epoch for the members that return, once the daemon has seen all results up
// to the pause, or nobody is left to wait for them.
func (j *job) renewIfDrained() {
	if j.state != running || j.renewing || j.paused == nil {
		return
	}
	if int32(j.summed-j.paused.vid) >= 0 || !slices.ContainsFunc(j.seats, j.takesPart) {
		j.renewing = true
		go j.renew(j.card.server.running)
	}
}

// renew begins an epoch on a card that is there.
func (j *job) renew(ctx context.Context) {
	j.card.mu.Lock()
	last := j.epoch
	j.card.mu.Unlock()
	s := j.beginStop("a member returns")
	select {
	case <-s.over:
	case <-ctx.Done():
		return
	}
	if s.err != nil {
		return // the job is over
	}
	epoch, err := j.relay.Renew(ctx, last, s.first)
	var died *driver.DiedError
	switch {
	case err == nil:
		j.Begin(epoch)
		return
	case errors.As(err, &died):
		return // the job goes on, or ends, as after any outage
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	j.end(&protocol.Ended{Cause: protocol.Cause_CARD_LOST, Text: fmt.Sprintf("no epoch could begin: %s", err)})
}
