package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tributary/driver/daemon/protocol"
)

// stop leads the members of a job from one epoch to the next (SPEC.md, section 8): reports, kept
// results to those that lack them, confirmations. The card's mutex guards it.
type stop struct {
	job     *job
	reports map[*seat]*protocol.Report
	wanted  map[uint32]*seat // results that a seat was asked for, by VID
	tried   map[uint32][]*seat
	held    map[*seat]bool // confirmed
	handing bool           // all have reported, and the results are there
	over    chan struct{}  // closed when first or err is set
	first   uint32
	err     error
}

// Stop stops the members and hands them the results that some of them lack. It returns the first VID
// whose result a member lacks.
func (j *job) Stop(ctx context.Context) (uint32, error) {
	s := j.beginStop("the card has gone")
	select {
	case <-s.over:
	case <-ctx.Done():
		j.card.mu.Lock()
		s.fail(ctx.Err())
		j.card.mu.Unlock()
	}
	return s.first, s.err
}

func (j *job) beginStop(cause string) *stop {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	s := newStop(j)
	switch j.state {
	case over:
		s.fail(errors.New("the job is over"))
		return s
	case stopped: // another cause stops it, too
		return j.stop
	case starting: // the members have nothing of this epoch yet
		s.first = j.first
		close(s.over)
		j.state, j.stop = stopped, s
		return s
	}
	j.state, j.stop = stopped, s
	for _, seat := range j.seats {
		if seat.session != nil && !seat.returns {
			seat.session.tell(&protocol.ToClient{Message: &protocol.ToClient_Stop{Stop: &protocol.Stop{Nonce: j.nonce, Cause: cause}}})
		}
	}
	s.proceed()
	return s
}

func newStop(j *job) *stop {
	return &stop{job: j, reports: map[*seat]*protocol.Report{}, wanted: map[uint32]*seat{}, tried: map[uint32][]*seat{},
		held: map[*seat]bool{}, over: make(chan struct{})}
}

// Begin tells the members the epoch in which the job continues.
func (j *job) Begin(epoch uint16) {
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	if j.state != stopped {
		return
	}
	j.first, j.epoch, j.stop = j.stop.first, epoch, nil
	if j.relay == nil { // start begins the epoch
		j.state = starting
		return
	}
	j.begin()
}

// fail ends the change of epochs with an error.
func (s *stop) fail(err error) {
	select {
	case <-s.over:
	default:
		s.err = err
		close(s.over)
	}
}

// report takes a seat's report.
func (s *stop) report(from *seat, r *protocol.Report) {
	if s.reports[from] != nil || !s.job.takesPart(from) {
		return
	}
	s.reports[from] = r
	s.proceed()
}

// left goes on without a seat that was lost.
func (s *stop) left(seat *seat) {
	delete(s.reports, seat)
	for vid, from := range s.wanted {
		if from == seat {
			delete(s.wanted, vid)
		}
	}
	s.proceed()
}

// holds reports whether a report says that its seat has the result of a VID.
func holds(r *protocol.Report, vid uint32) bool {
	return int32(vid-r.Low) < 0 || slices.Contains(r.Held, vid)
}

// proceed takes the next step when nothing is missing for it.
func (s *stop) proceed() {
	j := s.job
	for _, seat := range j.seats {
		if j.takesPart(seat) && s.reports[seat] == nil {
			return
		}
	}
	if s.handing {
		s.settle()
		return
	}
	s.evictTrailing()
	if len(s.reports) == 0 { // all have finished, or gone
		s.first = j.summed
		if j.paused != nil { // the members that return go on after the calls of those that have gone
			s.first = j.paused.vid
		}
		s.succeed()
		return
	}
	low, high := s.span()
	for vid := low; int32(vid-high) < 0; vid++ {
		if !s.lacking(vid) || !s.heldByOne(vid) {
			continue
		}
		if _, ok := j.kept.of(vid); !ok && !s.ask(vid) {
			j.end(&protocol.Ended{Cause: protocol.Cause_RESULT_LOST, Vid: vid,
				Text: fmt.Sprintf("nobody has kept the result of chunk %d, which some members hold and others lack", vid)})
			return
		}
	}
	if len(s.wanted) == 0 {
		s.hand(low, high)
	}
}

// evictTrailing finds seats that the card has evicted although its word has not come: they lack a result
// that all others had before the card could sum a later one.
func (s *stop) evictTrailing() {
	j := s.job
	if !j.parameters.Partial {
		return
	}
	_, high := s.span()
	for seat, r := range s.reports {
		if int(int32(high-1-r.Low)) >= 2*j.parameters.Window {
			delete(s.reports, seat)
			j.noteEvicted(seat.bit(), r.Low)
		}
	}
}

// span returns the first VID that a seat lacks, and one beyond all that any holds or the daemon keeps.
func (s *stop) span() (low, high uint32) {
	first := true
	for _, r := range s.reports {
		if first || int32(r.Low-low) < 0 {
			low = r.Low
		}
		if first || int32(r.Low-high) > 0 {
			high = r.Low
		}
		first = false
	}
	for _, r := range s.reports {
		for _, vid := range r.Held {
			if int32(vid+1-high) > 0 {
				high = vid + 1
			}
		}
	}
	for _, k := range s.job.kept {
		if k.mask != 0 && int32(k.vid+1-high) > 0 {
			high = k.vid + 1
		}
	}
	return low, high
}

func (s *stop) lacking(vid uint32) bool {
	for _, r := range s.reports {
		if !holds(r, vid) {
			return true
		}
	}
	return false
}

func (s *stop) heldByOne(vid uint32) bool {
	for _, r := range s.reports {
		if holds(r, vid) {
			return true
		}
	}
	return false
}

// known reports whether the daemon keeps a result, or a seat holds it. A result that the daemon has
// seen is not summed again, even if no seat has taken it: a lost seat may have, and another sum of the
// chunk would differ from the kept one.
func (s *stop) known(vid uint32) bool {
	_, kept := s.job.kept.of(vid)
	return kept || s.heldByOne(vid)
}

// ask asks a seat for a result that the daemon lacks. It returns false when nobody is left to ask.
func (s *stop) ask(vid uint32) bool {
	if s.wanted[vid] != nil {
		return true
	}
	for seat, r := range s.reports {
		if holds(r, vid) && int32(vid-r.KeptFrom) >= 0 && !slices.Contains(s.tried[vid], seat) {
			s.wanted[vid], s.tried[vid] = seat, append(s.tried[vid], seat)
			seat.session.tell(&protocol.ToClient{Message: &protocol.ToClient_Fetch{Fetch: &protocol.Fetch{
				Nonce: s.job.nonce, Rank: uint32(seat.rank), Vid: vid}}})
			return true
		}
	}
	return false
}

// take takes a result that a seat keeps. A mask of 0 means that it does not have it.
func (s *stop) take(from *seat, k *protocol.Kept) {
	if s.wanted[k.Vid] != from {
		return
	}
	delete(s.wanted, k.Vid)
	if k.Mask != 0 && len(k.Payload) == s.job.chunkBytes() {
		s.job.kept.put(result{k.Vid, k.Mask, k.Payload})
	}
	s.proceed()
}

// hand sends the results to the seats that lack them.
func (s *stop) hand(low, high uint32) {
	s.handing = true
	s.first = high
	for vid := high - 1; int32(vid-low) >= 0; vid-- {
		if s.lacking(vid) && !s.known(vid) {
			s.first = vid
		}
	}
	for seat, r := range s.reports {
		for vid := low; int32(vid-high) < 0; vid++ {
			if k, ok := s.job.kept.of(vid); ok && !holds(r, vid) {
				seat.session.tell(&protocol.ToClient{Message: &protocol.ToClient_Hand{Hand: &protocol.Hand{
					Nonce: s.job.nonce, Rank: uint32(seat.rank), Vid: vid, Mask: k.mask, Payload: slices.Clone(k.sum)}}})
			}
		}
		seat.session.tell(&protocol.ToClient{Message: &protocol.ToClient_Hand{Hand: &protocol.Hand{Nonce: s.job.nonce, Rank: uint32(seat.rank), Done: true}}})
	}
}

// confirm notes that a seat has stored what was handed to it. With the last one the epoch can begin.
func (s *stop) confirm(from *seat) {
	if !s.handing {
		return
	}
	s.held[from] = true
	s.settle()
}

// settle ends the change of epochs if all have confirmed.
func (s *stop) settle() {
	for _, seat := range s.job.seats {
		if s.job.takesPart(seat) && !s.held[seat] {
			return
		}
	}
	s.succeed()
}

// succeed ends the change of epochs.
func (s *stop) succeed() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
}
