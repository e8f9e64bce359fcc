package daemon

import (
	"context"
	"fmt"
	"time"

	"tributary/driver"
	"tributary/driver/daemon/protocol"
)

// rejoin takes a seat anew, of a job that an earlier daemon had (SPEC.md, section 8). The first one
// makes the job.
func (c *card) rejoin(s *session, p *protocol.Rejoin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	join := p.GetJoin()
	refuse := func(cause protocol.Cause, text string, args ...any) {
		s.tell(&protocol.ToClient{Message: &protocol.ToClient_Ended{Ended: &protocol.Ended{
			Nonce: join.GetNonce(), Cause: cause, Ranks: []uint32{join.GetRank()}, Text: fmt.Sprintf(text, args...)}}})
	}
	j, known := c.jobs[join.GetNonce()]
	if !known {
		cfg, err := c.driver.Complete(driver.ConfigOf(join.GetParameters()))
		switch {
		case c.underRoCE():
			refuse(protocol.Cause_CARD_LOST, "queue pairs do not outlive the daemon that set them up")
			return
		case c.driver.TakesArrays():
			refuse(protocol.Cause_CARD_LOST, "the sums were with the daemon that had the job, and it has gone")
			return
		case err != nil:
			refuse(protocol.Cause_CARD_LOST, "the daemon's card cannot continue the job: %s", err)
			return
		case c.server.stopping() || c.full():
			refuse(protocol.Cause_CARD_LOST, "the daemon has no room for the job any more")
			return
		}
		j = c.newJob(join.GetNonce(), cfg)
		j.again, j.direct = true, s.direct
	}
	rank := int(join.GetRank())
	switch {
	case !j.again || j.state != gathering:
		refuse(protocol.Cause_MEMBER_LOST, "the job has gone on without rank %d", rank)
		return
	case rank >= len(j.seats) || j.seats[rank].session != nil:
		refuse(protocol.Cause_MEMBER_LOST, "another process has rank %d", rank)
		return
	case c.seatsOf(s) >= c.server.limits.Seats:
		refuse(protocol.Cause_MEMBER_LOST, "%s", c.seatsLimited().text)
		return
	case j.parameters.Partial && p.Epoch == nil:
		refuse(protocol.Cause_MEMBER_LOST, "rank %d had not begun, and others may have summed without it", rank)
		return
	}
	r := differing(join.GetParameters(), j.parameters)
	if r == nil {
		r = j.differingWay(s, join)
	}
	if r != nil {
		refuse(protocol.Cause_MEMBER_LOST, "%s", r.text)
		return
	}
	if !known {
		wait := j.parameters.CarryOn
		j.wait = time.AfterFunc(wait, func() { j.giveUp(wait) })
		c.enter(j)
	}
	seat := j.seats[rank]
	seat.session, seat.rejoin, seat.calls, seat.next = s, p, p.GetCalls(), p.GetNextVid()
	seat.noteAddress(join)
	j.startIfComplete()
}

// checkReports refuses reports that cannot be those of one job: see checkReport.
func (j *job) checkReports(s *stop) error {
	low, high := s.span()
	if d := int32(high - low); d < 0 || d > 2*j.reach() {
		return fmt.Errorf("one rank lacks chunk %d and another holds chunk %d, which cannot be", low, high-1)
	}
	for seat, r := range s.reports {
		if err := j.checkHeld(seat, r); err != nil {
			return err
		}
	}
	return nil
}

// meet hands the members of an earlier daemon's job the results that some of them lack. It returns the
// first VID that a member lacks, and the epochs that the members have seen.
func (j *job) meet(ctx context.Context) (first uint32, seen []uint16, err error) {
	j.card.mu.Lock()
	s := newStop(j)
	j.state, j.stop = stopped, s
	for _, seat := range j.seats {
		if s.reports[seat] = seat.rejoin.GetReport(); s.reports[seat] == nil {
			s.reports[seat] = &protocol.Report{Low: seat.next}
		}
		if seat.rejoin.Epoch != nil { // else its first epoch had not begun, or it had not heard of that
			seen = append(seen, uint16(*seat.rejoin.Epoch))
		}
		seat.rejoin = nil
	}
	s.evictTrailing()
	if err := j.checkReports(s); err != nil {
		low, _ := s.span()
		j.end(&protocol.Ended{Cause: protocol.Cause_RESULT_LOST, Vid: low, Text: err.Error()})
	} else {
		s.proceed()
	}
	j.card.mu.Unlock()
	select {
	case <-s.over:
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if s.err != nil {
		return 0, nil, s.err // the job is over
	}
	j.state, j.stop, j.again = starting, nil, false
	j.first, j.summed = s.first, s.first
	return s.first, seen, nil
}
