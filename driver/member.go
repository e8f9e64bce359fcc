package driver

import (
	"context"
	"errors"
	"fmt"
)

// Member is one worker's view of a job.
type Member struct {
	job  *Job
	rank int   // on its card
	own  *flow // of its own calls

	global int // the rank in the job: that in the tree, if the job is on one

	// Guarded by Card.mu.
	next  uint32 // VID of the first chunk after the member's complete calls
	calls uint64 // complete calls
	got   int    // on a card that takes blocks: chunks of the flow whose sums have come
	flow  *flow  // that uses the member's arrays; nil between calls
	stats MemberStats
	pair  *pair         // its queue pairs, on a card under RoCEv2; else nil
	out   *EvictedError // why the member has left the job; nil while it takes part

	closes *Card // that Join has opened for this member; else nil
}

// Job returns the member's job.
func (m *Member) Job() *Job { return m.job.front() }

// Close finishes the part of a member that Join has returned, as Job.Close does, and ends its session
// with the daemon. Without such a confirmation, the other members get a MemberLostError. The members
// of Configure have no session of their own: Job.Close finishes them.
func (m *Member) Close(ctx context.Context) error {
	if m.closes == nil {
		return &InputError{fmt.Sprintf("close of rank %d", m.Rank()), "it has no session of its own; close its job"}
	}
	return errors.Join(m.job.Close(ctx), m.closes.Close())
}

// Rank returns the member's rank in the job; on a tree of cards, the global one.
func (m *Member) Rank() int { return m.global }

// MemberStats counts what a member sent and received.
type MemberStats struct {
	Sent       uint64 // chunks sent, each counted once
	Resent     uint64 // chunks sent again because the card lacked them
	Asked      uint64 // asks for overdue results
	Results    uint64 // results taken
	Duplicates uint64 // results that came again or were not expected
	Refused    uint64 // refusals from the card (late, early, not_ready, ...)
}

func (s *MemberStats) add(o *MemberStats) {
	s.Sent += o.Sent
	s.Resent += o.Resent
	s.Asked += o.Asked
	s.Results += o.Results
	s.Duplicates += o.Duplicates
	s.Refused += o.Refused
}

// Stats returns the member's counters since Configure.
func (m *Member) Stats() MemberStats {
	m.job.card.mu.Lock()
	defer m.job.card.mu.Unlock()
	return m.stats
}
