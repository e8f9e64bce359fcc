package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
)

// readmit lets a member return to a job with partial sums (SPEC.md, section 7). It pauses the others
// after the calls that they have announced, and begins an epoch when these are complete.
func (j *job) readmit() {
	if j.state != running || j.paused != nil || !slices.ContainsFunc(j.seats, func(s *seat) bool { return s.returns }) {
		return
	}
	first, calls := j.first, uint64(0)
	for _, s := range j.seats {
		if !s.returns && (calls == 0 || s.calls > calls) {
			first, calls = s.next, s.calls
		}
	}
	j.paused = &first
	for _, s := range j.seats {
		if s.returns {
			s.calls, s.next, j.evicted = calls, first, j.evicted&^s.bit()
		}
	}
	j.tell(everyone, &protocol.ToClient{Message: &protocol.ToClient_Pause{Pause: &protocol.Pause{Nonce: j.nonce, Vid: first}}})
	j.renewIfDrained()
}

// renewIfDrained begins an epoch for the members that return, once the daemon has seen all results up
// to the pause, or nobody is left to wait for them.
func (j *job) renewIfDrained() {
	if j.state != running || j.renewing || j.paused == nil {
		return
	}
	if int32(j.summed-*j.paused) >= 0 || !slices.ContainsFunc(j.seats, j.takesPart) {
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
