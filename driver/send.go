package driver

// What the writer sends for the calls of a job: data, repeated data and asks. The caller holds
// Card.mu in all functions.

import (
	"math/bits"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// appendFrame appends one data frame if there is one to send; frames that the card asked for
// again go first. It releases the mutex as appendData does.
func (j *Job) appendFrame(buf []byte, now time.Time) []byte {
	if j.card.arrays != nil {
		return buf // the card has the arrays
	}
	size := len(buf)
	if buf = j.appendResend(buf); len(buf) > size {
		return buf
	}
	if buf = j.appendData(buf, now); len(buf) > size {
		j.fresh = true
	}
	return buf
}

// appendData appends the next data frame that the window allows, if there is one. It releases
// the mutex while it builds the frame, with the call pinned.
func (j *Job) appendData(buf []byte, now time.Time) []byte {
	for n := range j.calls {
		k := j.calls[(j.turn+n)%len(j.calls)]
		for k.next < min(k.chunks, k.low+len(k.ring)) {
			if k.members[k.turn].out != nil {
				k.pass(now)
				continue
			}
			j.turn = (j.turn + n + 1) % len(j.calls)
			return k.appendNext(buf, now)
		}
	}
	return buf
}

// pass records that the member in turn has sent its next chunk, or has none to send.
func (k *call) pass(now time.Time) {
	s := k.state(k.next)
	if k.turn == 0 {
		*s = chunkState{kept: s.kept}
	}
	if k.turn++; k.turn == len(k.members) {
		k.turn = 0
		k.next++
		s.sent, s.since = now, now
		k.ordered(s)
	}
}

// turnOf returns the first member from index n on, cyclically, that takes part. If none does,
// it returns any member.
func (k *call) turnOf(n int) *Member {
	for i := range k.members {
		if m := k.members[(n+i)%len(k.members)]; m.out == nil {
			return m
		}
	}
	return k.members[0]
}

func (k *call) appendNext(buf []byte, now time.Time) []byte {
	c := k.job.card
	m := k.members[k.turn]
	i := k.next
	h := k.dataHeader(m, i)
	part := k.contribution(k.turn, i)

	// Nobody writes to this part meanwhile. Its result is not accepted before all members have
	// sent theirs, and the caller waits in forget.
	c.pinned = k
	c.mu.Unlock()
	buf = frame.AppendPadded(buf, &h, part)
	c.mu.Lock()
	c.pinned = nil
	c.unpinned.Broadcast()
	if !k.active {
		return buf // the call ended meanwhile; the card refuses or drops the frame
	}

	k.countSent(m)
	k.pass(now)
	return buf
}

// countSent counts the frame that member m has sent in its turn.
func (k *call) countSent(m *Member) {
	if n := k.next*len(k.members) + k.turn; n >= k.sent {
		k.sent = n + 1
		m.stats.Sent++
		return
	}
	m.stats.Resent++ // a repeat after an outage
}

// contribution returns what the member at index place sends for chunk i: its input. It returns
// nil, for zeros, when the chunk has a result, which may have overwritten the input.
func (k *call) contribution(place, i int) []byte {
	if k.state(i).kept {
		return nil
	}
	return k.part(k.inputs[place], i, k.job.inBytes)
}

func (k *call) dataHeader(m *Member, i int) frame.Header {
	return frame.Header{
		Kind:   wire.KindData,
		Flags:  uint8(wire.ECT0),
		Job:    k.job.number,
		Format: k.job.card.info.Format,
		Epoch:  k.job.epoch,
		Rank:   uint8(m.rank),
		VID:    k.first + uint32(i),
		Length: uint16(k.job.cfg.Chunk),
	}
}

// part returns chunk i of an array with elements of size bytes. The last chunk may be shorter.
func (k *call) part(array []byte, i, size int) []byte {
	n := k.job.cfg.Chunk * size
	return array[i*n : min((i+1)*n, len(array))]
}

// appendResend appends one data frame that the card asked for again, if there is one. It keeps
// the mutex, because the result may come and overwrite the input at any moment.
func (j *Job) appendResend(buf []byte) []byte {
	for _, k := range j.calls {
		if k.resend == 0 {
			continue
		}
		for i := k.low; i < k.next; i++ {
			if s := k.state(i); s.resend != 0 {
				return k.appendAgain(buf, i, s)
			}
		}
	}
	return buf
}

func (k *call) appendAgain(buf []byte, i int, s *chunkState) []byte {
	rank := bits.TrailingZeros64(s.resend)
	k.setResend(s, s.resend&(s.resend-1))
	s.since = time.Now()
	place := bits.OnesCount64(k.ranks & (1<<rank - 1)) // members are in the order of ranks
	m := k.members[place]
	m.stats.Resent++
	h := k.dataHeader(m, i)
	return frame.AppendPadded(buf, &h, k.contribution(place, i))
}

func (k *call) setResend(s *chunkState, ranks uint64) {
	if s.resend != 0 {
		k.resend--
	}
	if s.resend = ranks; ranks != 0 {
		k.resend++
	}
}

// appendControl appends the due finishes and asks, and returns how long nothing else is due.
func (j *Job) appendControl(buf []byte, now time.Time) ([]byte, time.Duration) {
	buf, wait := j.appendFinishes(buf, now)
	if j.card.arrays != nil {
		return buf, wait
	}
	for _, k := range j.calls {
		var w time.Duration
		buf, w = k.appendAsks(buf, now)
		wait = min(wait, w)
	}
	return buf, wait
}

// appendAsks asks for overdue results. The oldest missing chunk is overdue when its timer ends
// or replies have overtaken it. The same holds for later chunks that have at least fastAsk
// results after them. wait is how long nothing else is due.
func (k *call) appendAsks(buf []byte, now time.Time) (_ []byte, wait time.Duration) {
	if k.low == k.next {
		return buf, longestWait
	}
	wait = longestWait
	inVain := false
	later := k.held - k.low // results after chunk i
	for i := k.low; i == k.low || later >= fastAsk; i++ {
		s := k.state(i)
		if s.held {
			later--
			continue
		}
		overtaken := k.overtaken(s)
		if overtaken || k.untilAsk(s, now) <= 0 {
			inVain = inVain || !overtaken
			buf = k.appendAsk(buf, i, now)
		}
		wait = min(wait, k.untilAsk(s, now))
	}
	if inVain {
		for _, other := range k.job.calls {
			other.backOff++
		}
	}
	return buf, wait
}

// appendAsk asks for the result of chunk i. The call's members take turns. One ask serves all
// calls of the job, because they all see the reply.
func (k *call) appendAsk(buf []byte, i int, now time.Time) []byte {
	m := k.turnOf(k.state(i).asks)
	m.stats.Asked++
	h := frame.Header{
		Kind:  wire.KindAsk,
		Job:   k.job.number,
		Epoch: k.job.epoch,
		Rank:  uint8(m.rank),
		VID:   k.first + uint32(i),
	}
	for _, other := range k.job.calls {
		if s := other.awaited(h.VID); s != nil {
			s.asks++
			s.again, s.waiting, s.since = true, true, now
			other.ordered(s)
		}
	}
	return frame.Append(buf, &h, nil)
}

// awaited returns the state of the chunk with that VID, if the call's members have sent it and
// its result is missing. Otherwise it returns nil.
func (k *call) awaited(vid uint32) *chunkState {
	i := int(vid - k.first)
	if i < k.low || i >= k.next || k.state(i).held {
		return nil
	}
	return k.state(i)
}

// asksInTimeout is the least number of asks for a result before the timeout, so that the card
// can name the missing ranks. On a link that loses a fifth of the frames, half of the exchanges
// that an ask starts fail. Until a reply comes, the wait is unknown.
const asksInTimeout = 8

// untilAsk returns the time until the chunk of s is overdue.
func (k *call) untilAsk(s *chunkState, now time.Time) time.Duration {
	c := k.job.card
	since := s.since
	if sent := k.job.sentData; sent.After(since) {
		since = sent
	}
	return since.Add(min(k.backOff.wait(&k.job.timing), c.opts.timeout/asksInTimeout)).Sub(now)
}
