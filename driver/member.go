package driver

// Member is one worker's view of a job.
type Member struct {
	job  *Job
	rank int
	call *call // of AllReduce

	// Guarded by Card.mu.
	next  uint32 // VID of the first chunk that it does not hold, when it is in no call
	busy  bool   // in a call
	stats MemberStats
	out   *EvictedError // why it takes no part any more; nil while it does
}

// Rank returns the member's place in the job.
func (m *Member) Rank() int { return m.rank }

// MemberStats counts what a member's end of the protocol did.
type MemberStats struct {
	Sent       uint64 // chunks sent, each counted once
	Resent     uint64 // chunks sent again because the card lacked them
	Asked      uint64 // overdue results asked for
	Results    uint64 // results taken
	Duplicates uint64 // results that came again or were not waited for
	Refused    uint64 // refusals the card sent (late, early, not_ready, ...)
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
