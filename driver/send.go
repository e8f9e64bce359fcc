package driver

// What the writer sends for the calls of a job: data, data again, and asks. All
// of it is called with Card.mu held.

import (
	"math/bits"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// appendFrame appends a frame of data, first of what the card has asked for
// again, and nothing when there is none. It gives up the mutex as appendData does.
func (j *Job) appendFrame(buf []byte, now time.Time) []byte {
	size := len(buf)
	if buf = j.appendResend(buf); len(buf) > size {
		return buf
	}
	if buf = j.appendData(buf, now); len(buf) > size {
		j.fresh = true
	}
	return buf
}

// appendData appends the next frame of data that the window allows, and nothing
// when there is none. The mutex is given up while the frame is built, with the
// call pinned.
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

// pass notes that the member whose turn it is has sent its next chunk, or has none
// to send.
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

// turnOf returns the n-th of the members in turn, or the next one behind it that
// takes part. When none does it is any.
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

	// Nobody writes to this part: its result is not accepted before all
	// members have sent theirs, and the caller waits in forget.
	c.pinned = k
	c.mu.Unlock()
	buf = frame.AppendPadded(buf, &h, part)
	c.mu.Lock()
	c.pinned = nil
	c.unpinned.Broadcast()
	if !k.active {
		return buf // it ended meanwhile; the card refuses or drops the frame
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
	m.stats.Resent++ // the card that had it is gone
}

// contribution returns what the member in that place sends for chunk i: its input,
// and nothing but zeros for a chunk whose result is there, which may have replaced
// the input.
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

// part returns chunk i of an array whose elements have the given size in bytes;
// the last one may be shorter than a chunk.
func (k *call) part(array []byte, i, size int) []byte {
	n := k.job.cfg.Chunk * size
	return array[i*n : min((i+1)*n, len(array))]
}

// appendResend appends one frame of data that the card has asked for again, and
// nothing when there is none. The mutex is held: the result, which replaces the
// input, may come at any moment.
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

// appendControl appends the finishes and asks that are due, and returns how
// long it is until the next one may be.
func (j *Job) appendControl(buf []byte, now time.Time) ([]byte, time.Duration) {
	buf, wait := j.appendFinishes(buf, now)
	for _, k := range j.calls {
		var w time.Duration
		buf, w = k.appendAsks(buf, now)
		wait = min(wait, w)
	}
	return buf, wait
}

// appendAsks asks for the results that are overdue: those behind which several
// later ones are there, when answers have overtaken them or the timer says so, and
// else for the oldest, by the timer. wait is how long it is until the next one may
// be due.
func (k *call) appendAsks(buf []byte, now time.Time) (_ []byte, wait time.Duration) {
	if k.low == k.next {
		return buf, longestWait
	}
	wait = longestWait
	inVain := false
	later := k.held - k.low // results that are there of chunks beyond i
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

// appendAsk asks for the result of chunk i. The call's members take turns, and
// no other call of the job asks for what this one has asked for: the answer tells
// all of them.
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

// awaited returns the state of the chunk of a VID that the call's members have
// sent and whose result is not there; nil for any other.
func (k *call) awaited(vid uint32) *chunkState {
	i := int(vid - k.first)
	if i < k.low || i >= k.next || k.state(i).held {
		return nil
	}
	return k.state(i)
}

// asksInTimeout is how often a result is asked for, at least, before the
// time-out, so that the ranks that are missing can be named. Over a link that loses a
// fifth of the frames half of what an ask brings about is lost again, and until
// one is answered nothing tells how long to wait for it.
const asksInTimeout = 8

// untilAsk returns how long it is until the chunk of s is overdue.
func (k *call) untilAsk(s *chunkState, now time.Time) time.Duration {
	c := k.job.card
	since := s.since
	if sent := k.job.sentData; sent.After(since) {
		since = sent
	}
	return since.Add(min(k.backOff.wait(&k.job.timing), c.opts.timeout/asksInTimeout)).Sub(now)
}
