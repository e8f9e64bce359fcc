package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/wire"
)

// admit returns the job that a frame of the session belongs to, or nil if it is to be dropped. It
// waits for the announcement of the call of a data frame. An error ends the session.
func (s *session) admit(h *frame.Header) (*job, error) {
	c := s.card
	c.mu.Lock()
	defer c.mu.Unlock()
	var since time.Time
	for {
		j := c.jobOf(h.Job)
		switch {
		case j == nil || j.direct || j.rdma != nil || int(h.Rank) >= len(j.seats) || j.seats[h.Rank].session != s:
			c.counts.foreign++
			return nil, nil
		case j.state != running || h.Epoch != j.epoch:
			c.counts.stale++
			return nil, nil
		case h.Kind != wire.KindData:
			return j, nil
		case j.paused != nil && int32(h.VID-j.paused.vid) >= 0:
			c.counts.stale++
			return nil, nil
		case h.Format != c.driver.Info().Format || int(h.Length) != j.parameters.Chunk:
			c.counts.malformed++
			return nil, nil
		case int32(h.VID-j.seats[h.Rank].next) < 0:
			c.accepted(j, h)
			return j, nil
		case since.IsZero():
			since = time.Now()
			timer := time.AfterFunc(announceTimeout, c.wake)
			defer timer.Stop()
		case time.Since(since) >= announceTimeout:
			return nil, fmt.Errorf("rank %d sent chunk %d of a call that it did not announce", h.Rank, h.VID)
		}
		if s.over.Err() != nil {
			return nil, context.Cause(s.over)
		}
		c.changed.Wait()
	}
}

// wake wakes the sessions that wait for a change.
func (c *card) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
}

// noteDrop notes that the card drops a job of the session, until dropped is closed.
func (s *session) noteDrop(dropped <-chan struct{}) {
	s.drops = append(slices.DeleteFunc(s.drops, func(d <-chan struct{}) bool {
		select {
		case <-d:
			return true
		default:
			return false
		}
	}), dropped)
}

// awaitDrops waits until the card has dropped the jobs of the session that have ended. A member that has
// closed its job does not find it in the card's registers any more.
func (s *session) awaitDrops() {
	s.card.mu.Lock()
	drops := s.drops
	s.drops = nil
	s.card.mu.Unlock()
	for _, d := range drops {
		select {
		case <-d:
		case <-s.over.Done():
		}
	}
}

// access answers a register access of the session. An error ends the session.
func (s *session) access(h frame.Header) error {
	s.awaitDrops()
	reply := frame.Header{Kind: wire.KindReply, VID: h.VID, Length: h.Length, Code: wire.CodeBusy}
	if h.Kind == wire.KindRegRead || s.mayWrite(h.VID) {
		value, err := s.accessCard(&h)
		var refused *driver.RefusedError
		switch {
		case errors.As(err, &refused):
			reply.Code = refused.Code
		case err != nil:
			return err
		default:
			reply.Mask, reply.Code = value, wire.CodeDone
		}
	} else {
		s.card.counts.writes.Add(1)
	}
	s.forward(&outgoing{frame.Append(nil, &reply, nil), true})
	s.flush()
	return nil
}
