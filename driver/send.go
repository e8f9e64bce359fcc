package driver

// What the writer sends for the flows of a job: data, repeated data and asks. The caller holds
// Card.mu in all functions.

import (
	"math/bits"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// addPacket adds one packet of data, and reports whether there is one to send. Packets that the card
// asked for again go first. It releases the mutex as addData does.
func (j *Job) addPacket(out *batch, now time.Time) bool {
	switch {
	case j.card.arrays != nil:
		return false // the card has the arrays
	case j.overQueues():
		return false
	case j.card.link.blocks != nil:
		for !j.stopped && j.sendBlock(now) { // copying releases the mutex
		}
		return false
	case j.relay != nil:
		return j.relay.addQueued(out)
	}
	if j.addResend(out) {
		return true
	}
	added := j.addData(out, now)
	j.fresh = j.fresh || added
	return added
}

// addData adds the next packet of data that the windows allow, and reports whether there is one. It
// releases the mutex while it builds the packet, with the call pinned.
func (j *Job) addData(out *batch, now time.Time) bool {
	for n := range j.flows {
		f := j.flows[(j.turn+n)%len(j.flows)]
		for f.next < min(f.chunks, f.low+len(f.ring)) && !f.pausesAt(f.next) && f.mayBegin() {
			if f.members[f.turn].out != nil {
				f.pass(now)
				continue
			}
			j.turn = (j.turn + n + 1) % len(j.flows)
			f.addNext(out, now)
			return true
		}
	}
	return false
}

// pausesAt reports whether the job's members pause before chunk i: another member returns there, or not
// all direct members have announced its call.
func (f *flow) pausesAt(i int) bool {
	p := f.job.pause
	return p != nil && int32(f.vid(i)-*p) >= 0 || f.job.awaitsAgreement(f.vid(i))
}

// mayBegin reports whether the congestion window has room for the next chunk, or some member has sent it
// already. Repeats and asks need no room.
func (f *flow) mayBegin() bool {
	return f.congestion == nil || f.turn > 0 || f.congestion.allows(f.next-f.held)
}

// pass records that the member in turn has sent its next chunk, or has none to send.
func (f *flow) pass(now time.Time) {
	s := f.state(f.next)
	if f.turn == 0 {
		*s = chunkState{kept: s.kept}
	}
	if f.turn++; f.turn == len(f.members) {
		f.turn = 0
		f.next++
		s.sent, s.since = now, now
		f.ordered(s)
	}
}

// turnOf returns the first member from index n on, cyclically, that takes part. If none does,
// it returns any member.
func (f *flow) turnOf(n int) *Member {
	for i := range f.members {
		if m := f.members[(n+i)%len(f.members)]; m.out == nil {
			return m
		}
	}
	return f.members[0]
}

func (f *flow) addNext(out *batch, now time.Time) {
	c := f.job.card
	m := f.members[f.turn]
	i := f.next
	k := f.callOf(i)
	h := f.dataHeader(m, i)
	part := f.contribution(f.turn, i)

	// Nobody writes to this part meanwhile. Its result is not accepted before all members have
	// sent theirs, and the caller waits in forget.
	c.pinned = k
	c.mu.Unlock()
	out.addPadded(&h, part)
	c.mu.Lock()
	c.pinned = nil
	c.unpinned.Broadcast()
	if !k.active {
		return // the call ended meanwhile; the card refuses or drops the packet
	}

	f.countSent(m)
	f.pass(now)
}

// countSent counts the frame that member m has sent in its turn.
func (f *flow) countSent(m *Member) {
	if n := f.next*len(f.members) + f.turn; n >= f.sent {
		f.sent = n + 1
		m.stats.Sent++
		return
	}
	m.stats.Resent++ // a repeat after an outage
}

// contribution returns what the member at index place sends for chunk i: its input. It returns
// nil, for zeros, when the chunk has a result, which may have overwritten the input.
func (f *flow) contribution(place, i int) []byte {
	if f.state(i).kept {
		return nil
	}
	k := f.callOf(i)
	return k.part(k.inputs[place], i, k.base, f.job.inBytes)
}

func (f *flow) dataHeader(m *Member, i int) frame.Header {
	return frame.Header{
		Kind:   wire.KindData,
		Flags:  uint8(wire.ECT0),
		Job:    f.job.number,
		Format: f.job.card.info.Format,
		Epoch:  f.job.epoch,
		Rank:   uint8(m.rank),
		VID:    f.vid(i),
		Length: uint16(f.job.cfg.Chunk),
	}
}

// addResend adds one packet of data that the card asked for again, and reports whether there is one.
// It keeps the mutex, because the result may come and overwrite the input at any moment.
func (j *Job) addResend(out *batch) bool {
	for _, f := range j.flows {
		if f.resend == 0 {
			continue
		}
		for i := f.low; i < f.next; i++ {
			if s := f.state(i); s.resend != 0 {
				f.addAgain(out, i, s)
				return true
			}
		}
	}
	return false
}

func (f *flow) addAgain(out *batch, i int, s *chunkState) {
	rank := bits.TrailingZeros64(s.resend)
	f.setResend(s, s.resend&(s.resend-1))
	s.since = time.Now()
	place := bits.OnesCount64(f.ranks & (1<<rank - 1)) // members are in the order of ranks
	m := f.members[place]
	m.stats.Resent++
	h := f.dataHeader(m, i)
	out.addPadded(&h, f.contribution(place, i))
}

func (f *flow) setResend(s *chunkState, ranks uint64) {
	if s.resend != 0 {
		f.resend--
	}
	if s.resend = ranks; ranks != 0 {
		f.resend++
	}
}

// addControl adds the due finishes and asks, and returns how long nothing else is due.
func (j *Job) addControl(out *batch, now time.Time) (wait time.Duration) {
	wait = j.addFinishes(out, now)
	if j.card.arrays != nil {
		return wait
	}
	for _, f := range j.flows {
		if j.card.link.blocks != nil {
			wait = min(wait, f.appendBlockAsks(now))
			continue
		}
		wait = min(wait, f.addAsks(out, now))
	}
	return wait
}

// addAsks asks for overdue results. The oldest missing chunk is overdue when its timer ends
// or replies have overtaken it. The same holds for later chunks that have at least fastAsk
// results after them. wait is how long nothing else is due.
func (f *flow) addAsks(out *batch, now time.Time) (wait time.Duration) {
	if f.low == f.next {
		return longestWait
	}
	wait = longestWait
	inVain := false
	later := f.held - f.low // results after chunk i
	for i := f.low; i == f.low || later >= fastAsk; i++ {
		s := f.state(i)
		if s.held {
			later--
			continue
		}
		overtaken := f.overtaken(s)
		if overtaken || f.untilAsk(s, now) <= 0 {
			inVain = inVain || !overtaken
			f.addAsk(out, i, now)
		}
		wait = min(wait, f.untilAsk(s, now))
	}
	if inVain {
		for _, other := range f.job.flows {
			other.backOff++
		}
	}
	return wait
}

// addAsk asks for the result of chunk i. The call's members take turns. One ask serves all
// flows of the job, because they all see the reply.
func (f *flow) addAsk(out *batch, i int, now time.Time) {
	m := f.turnOf(f.state(i).asks)
	m.stats.Asked++
	h := frame.Header{
		Kind:  wire.KindAsk,
		Job:   f.job.number,
		Epoch: f.job.epoch,
		Rank:  uint8(m.rank),
		VID:   f.vid(i),
	}
	for _, other := range f.job.flows {
		if s := other.awaited(h.VID); s != nil {
			s.asks++
			s.again, s.waiting, s.since = true, true, now
			other.ordered(s)
		}
	}
	out.add(&h, nil)
}

// awaited returns the state of the chunk with that VID, if the flow's members have sent it and
// its result is missing. Otherwise it returns nil.
func (f *flow) awaited(vid uint32) *chunkState {
	i := f.chunkOf(vid)
	if i < f.low || i >= f.next || f.state(i).held {
		return nil
	}
	return f.state(i)
}

// asksInTimeout is the least number of asks for a result before the timeout, so that the card
// can name the missing ranks. On a link that loses a fifth of the frames, half of the exchanges
// that an ask starts fail. Until a reply comes, the wait is unknown.
const asksInTimeout = 8

// untilAsk returns the time until the chunk of s is overdue.
func (f *flow) untilAsk(s *chunkState, now time.Time) time.Duration {
	c := f.job.card
	since := s.since
	if sent := f.job.sentData; sent.After(since) {
		since = sent
	}
	return since.Add(min(f.backOff.wait(&f.job.timing), c.opts.timeout/asksInTimeout)).Sub(now)
}
