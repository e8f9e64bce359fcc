package driver

// A call is one reduction under way, of one member (AllReduce) or of all of
// them (Reduce): the worker of SPEC.md, section 8. Members of one call share
// what they have received, and each sends its own input; so every result is
// stored once. Everything here is guarded by Card.mu, but for the inputs that
// the writer reads while the call is pinned.

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// fastAsk is the number of later results that show a result to be lost, without
// waiting for a timer.
const fastAsk = 3

type call struct {
	job     *Job
	members []*Member
	ranks   uint64 // of the members, as bits

	inputs [][]float32 // of each member
	dst    []float32
	first  uint32 // VID of chunk 0; chunks are counted from the call's first
	chunks int

	active bool
	low    int          // the first chunk that is not held
	held   int          // chunks held, wherever
	next   int          // the first chunk that not all members have sent
	turn   int          // the member that sends it next
	ring   []chunkState // of chunk i at i mod window, for low <= i < low + window
	resend int          // chunks with a rank in resend

	backOff  backOff
	moved    time.Time // last sign of progress
	report   bool      // the caller wants to know of progress
	progress chan struct{}
	done     chan error // of capacity 1: the outcome
	timer    *time.Timer
}

// chunkState is what is known of one chunk in the window.
type chunkState struct {
	held    bool
	asks    int       // how often it was asked for
	again   bool      // asked for or sent again: no sample from its result
	waiting bool      // an ask has not been answered
	sent    time.Time // by the last member, for the sample
	since   time.Time // sent, asked for or sent again
	known   bool      // missing is what the card said last
	missing uint64    // ranks whose contribution the card lacks
	resend  uint64    // ranks that are to send it again
}

func newCall(j *Job, members []*Member) *call {
	k := &call{
		job:      j,
		members:  members,
		inputs:   make([][]float32, len(members)),
		ring:     make([]chunkState, j.cfg.Window),
		progress: make(chan struct{}, 1),
		done:     make(chan error, 1),
		timer:    time.NewTimer(0),
	}
	k.timer.Stop()
	for _, m := range members {
		k.ranks |= 1 << m.rank
	}
	return k
}

// state returns the state of chunk i, which is in the window.
func (k *call) state(i int) *chunkState { return &k.ring[i&(len(k.ring)-1)] }

// start puts the call among those under way: to add up inputs, one of each
// member, into dst, and to report progress or not.
func (k *call) start(dst []float32, report bool, inputs ...[]float32) error {
	j := k.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	switch {
	case j.ended:
		return j.endedError()
	case j.finish.left != 0:
		return &InputError{"reduction", "the job is being closed"}
	}
	k.first = k.members[0].next
	for _, m := range k.members {
		if m.busy {
			return &InputError{"reduction", fmt.Sprintf("rank %d is in a call already; a member makes one call at a time", m.rank)}
		}
		if m.next != k.first {
			return &InputError{"reduction", fmt.Sprintf("rank %d stands at chunk %d and rank %d at chunk %d; all members must have made the same calls", m.rank, m.next, k.members[0].rank, k.first)}
		}
	}
	for _, m := range k.members {
		m.busy = true
	}
	copy(k.inputs, inputs)
	k.dst = dst
	k.chunks = (len(k.dst) + j.cfg.Chunk - 1) / j.cfg.Chunk
	k.low, k.held, k.next, k.turn, k.resend = 0, 0, 0, 0, 0
	k.active, k.report, k.moved = true, report, time.Now()
	j.calls = append(j.calls, k)
	return nil
}

// complete takes the call from those under way and tells its caller how it went.
func (k *call) complete(err error) {
	k.active = false
	j := k.job
	for i, other := range j.calls {
		if other == k {
			last := len(j.calls) - 1
			j.calls[i], j.calls[last] = j.calls[last], nil
			j.calls = j.calls[:last]
			break
		}
	}
	for _, m := range k.members {
		if err == nil {
			m.next += uint32(k.chunks)
		}
	}
	k.done <- err
}

// run sees the call through: it waits for its outcome, its context's end, or
// the time-out. When it returns nobody uses the inputs and dst any more.
func (k *call) run(ctx context.Context, progress func(done, total int)) error {
	c := k.job.card
	defer k.forget()
	if progress != nil {
		progress(0, len(k.dst))
	}
	c.kick()
	k.timer.Reset(c.opts.timeout)
	defer k.timer.Stop()
	for {
		select {
		case err := <-k.done:
			if err == nil && progress != nil {
				progress(len(k.dst), len(k.dst))
			}
			return err
		case <-k.progress:
			if progress != nil {
				progress(k.summed(), len(k.dst))
			}
		case <-ctx.Done():
			return k.giveUp(k.stopped(ctx))
		case <-k.timer.C:
			left := c.opts.timeout - k.silent()
			if left <= 0 {
				return k.giveUp(k.overdue(nil))
			}
			k.timer.Reset(left)
		}
	}
}

// giveUp ends the job because this call failed with err, unless the call has an
// outcome by now.
func (k *call) giveUp(err error) error {
	ended := k.job.endIf(func() bool { return k.active }, err)
	outcome := <-k.done
	if ended {
		return err
	}
	return outcome
}

// forget waits until the writer has let go of the inputs, and drops them. The
// members are free for the next call.
func (k *call) forget() {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pinned == k {
		c.unpinned.Wait()
	}
	clear(k.inputs)
	k.dst = nil
	for _, m := range k.members {
		m.busy = false
	}
	select {
	case <-k.progress:
	default:
	}
}

// summed returns how many elements of dst are sums.
func (k *call) summed() int {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	return min(k.held*k.job.cfg.Chunk, len(k.dst))
}

// silent returns the time since the last sign of progress.
func (k *call) silent() time.Duration {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(k.lastMoved())
}

func (k *call) lastMoved() time.Time {
	if sent := k.job.card.sentData; sent.After(k.moved) {
		return sent
	}
	return k.moved
}

// stopped is the error of a call whose context ended.
func (k *call) stopped(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return k.overdue(ctx.Err())
	}
	return fmt.Errorf("card %s: reduction stopped after %d of %d elements: %w", k.job.card.name, k.summed(), len(k.dst), ctx.Err())
}

// overdue is the error of a call that waited too long: it names the ranks that
// the card waits for, when it has said so.
func (k *call) overdue(cause error) error {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	vid := k.first + uint32(k.low)
	waited := time.Since(k.lastMoved())
	if s := k.state(k.low); k.low < k.next && s.known && s.missing != 0 {
		return &MissingError{Card: c.name, VID: vid, Ranks: rankSlice(s.missing), Waited: waited, Err: cause}
	}
	return &TimeoutError{Card: c.name, What: fmt.Sprintf("chunk %d of the reduction", vid), Waited: waited, Err: cause}
}

// appendData appends the next frame of data that the window allows, and nothing
// when there is none. The mutex is given up while the frame is built, with the
// call pinned.
func (j *Job) appendData(buf []byte, now time.Time) []byte {
	for n := range j.calls {
		k := j.calls[(j.turn+n)%len(j.calls)]
		if k.next < min(k.chunks, k.low+len(k.ring)) {
			j.turn = (j.turn + n + 1) % len(j.calls)
			return k.appendNext(buf, now)
		}
	}
	return buf
}

func (k *call) appendNext(buf []byte, now time.Time) []byte {
	c := k.job.card
	m := k.members[k.turn]
	i := k.next
	h := k.dataHeader(m, i)
	part := k.part(k.inputs[k.turn], i)

	// Nobody writes to this part: its result is not accepted before all
	// members have sent theirs, and the caller waits in forget.
	c.pinned = k
	c.mu.Unlock()
	buf = frame.AppendFP32(buf, &h, part)
	c.mu.Lock()
	c.pinned = nil
	c.unpinned.Broadcast()
	if !k.active {
		return buf // it ended meanwhile; the card refuses or drops the frame
	}

	m.stats.Sent++
	s := k.state(i)
	if k.turn == 0 {
		*s = chunkState{}
	}
	if k.turn++; k.turn == len(k.members) {
		k.turn = 0
		k.next++
		s.sent, s.since = now, now
	}
	return buf
}

func (k *call) dataHeader(m *Member, i int) frame.Header {
	return frame.Header{
		Kind:   wire.KindData,
		Flags:  uint8(wire.ECT0),
		Job:    k.job.number,
		Format: wire.FP32,
		Epoch:  k.job.epoch,
		Rank:   uint8(m.rank),
		VID:    k.first + uint32(i),
		Length: uint16(k.job.cfg.Chunk),
	}
}

// part returns chunk i of an array; the last one may be shorter than a chunk.
func (k *call) part(array []float32, i int) []float32 {
	n := k.job.cfg.Chunk
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
	return frame.AppendFP32(buf, &h, k.part(k.inputs[place], i))
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
		buf, w = k.appendAsk(buf, now)
		wait = min(wait, w)
	}
	return buf, wait
}

// appendAsk asks for the oldest result when it is overdue: several later ones
// are there, or the timer says so. Its members take turns.
func (k *call) appendAsk(buf []byte, now time.Time) ([]byte, time.Duration) {
	if k.low == k.next {
		return buf, longestWait
	}
	s := k.state(k.low)
	fast := s.asks == 0 && k.held-k.low >= fastAsk
	if wait := k.untilAsk(s, now); wait > 0 && !fast {
		return buf, wait
	}
	if !fast {
		k.backOff++
	}
	m := k.members[s.asks%len(k.members)]
	m.stats.Asked++
	s.asks++
	s.again, s.waiting, s.since = true, true, now
	h := frame.Header{
		Kind:  wire.KindAsk,
		Job:   k.job.number,
		Epoch: k.job.epoch,
		Rank:  uint8(m.rank),
		VID:   k.first + uint32(k.low),
	}
	return frame.Append(buf, &h, nil), k.untilAsk(s, now)
}

// asksInTimeout is how often a result is asked for, at least, before the
// time-out, so that the ranks that are missing can be named.
const asksInTimeout = 4

// untilAsk returns how long it is until the chunk of s is overdue.
func (k *call) untilAsk(s *chunkState, now time.Time) time.Duration {
	c := k.job.card
	since := s.since
	if c.sentData.After(since) {
		since = c.sentData
	}
	return since.Add(min(k.backOff.wait(&k.job.timing), c.opts.timeout/asksInTimeout)).Sub(now)
}

// takeResult takes a result or replay in, for every call that it is for.
func (j *Job) takeResult(f *frame.Frame, now time.Time) {
	if f.Format != wire.FP32 || int(f.Length) != j.cfg.Chunk || f.Mask != j.ranks || f.Flags&wire.FlagPartial != 0 {
		return // not a sum of this job's members
	}
	idle := f.Receivers & j.ranks
	for n := len(j.calls) - 1; n >= 0; n-- { // complete moves the last call to the place of its own
		k := j.calls[n]
		if k.ranks&f.Receivers != 0 {
			k.take(f, now)
		}
		idle &^= k.ranks
	}
	for ; idle != 0; idle &= idle - 1 {
		j.members[bits.TrailingZeros64(idle)].stats.Duplicates++
	}
}

// take stores a result, if it is missing in the window and was sent for.
func (k *call) take(f *frame.Frame, now time.Time) {
	i := int(f.VID - k.first)
	if i < k.low || i >= k.next || k.state(i).held {
		k.count(f.Receivers, func(s *MemberStats) { s.Duplicates++ })
		return
	}
	k.count(k.ranks, func(s *MemberStats) { s.Results++ })
	frame.GetFP32(k.part(k.dst, i), f.Payload)
	s := k.state(i)
	switch {
	case !s.again && k.ranks == k.job.ranks:
		k.sample(now.Sub(s.sent))
	case f.Kind == wire.KindReplay:
		k.noteAnswer(s, now)
	}
	k.setResend(s, 0)
	s.held = true
	k.held++
	for k.low < k.next && k.state(k.low).held {
		k.low++
	}
	k.moved = now
	if k.held == k.chunks {
		k.complete(nil)
		return
	}
	k.job.card.kick()
	if k.report {
		select {
		case k.progress <- struct{}{}:
		default:
		}
	}
}

// noteAnswer takes in that an ask was answered. It gives a sample when it was the
// only one for its chunk: else nobody knows which of them is answered, but waits
// need not be doubled further.
func (k *call) noteAnswer(s *chunkState, now time.Time) {
	if !s.waiting {
		return
	}
	s.waiting = false
	if s.asks == 1 {
		k.sample(now.Sub(s.since))
	} else if k.job.timing.srtt != 0 {
		k.backOff = 0
	}
}

func (k *call) sample(d time.Duration) {
	k.job.timing.sample(d)
	k.backOff = 0
}

// count changes the counters of the call's members among ranks.
func (k *call) count(ranks uint64, change func(*MemberStats)) {
	for _, m := range k.members {
		if ranks>>m.rank&1 != 0 {
			change(&m.stats)
		}
	}
}

// takeStatus takes in what the card says to an ask or a finish, or its refusal.
func (j *Job) takeStatus(h *frame.Header, now time.Time) {
	if int(h.Rank) >= len(j.members) {
		return
	}
	m := j.members[h.Rank]
	switch h.Code {
	case wire.CodeDone:
		j.takeFinished(m, h, now)
	case wire.CodeWait, wire.CodeSend:
		for _, k := range j.calls {
			if k.ranks>>m.rank&1 != 0 {
				k.takeMissing(h, now)
			}
		}
	case wire.CodeLate, wire.CodeEarly, wire.CodeNotReady, wire.CodeDuplicate:
		// Of a packet that came late or twice. If data was lost with it,
		// the next ask brings it to light.
		m.stats.Refused++
	default:
		m.stats.Refused++
		j.endLocked(&RefusedError{Card: j.card.name, What: fmt.Sprintf("chunk %d of rank %d", h.VID, h.Rank), Code: h.Code})
	}
}

// takeMissing takes in the answer to an ask: the ranks whose contribution the
// card lacks. Those of this call send theirs again, once for every ask.
func (k *call) takeMissing(h *frame.Header, now time.Time) {
	i := int(h.VID - k.first)
	if i < k.low || i >= k.next {
		return
	}
	s := k.state(i)
	if s.held || !s.waiting {
		return
	}
	k.noteAnswer(s, now)
	if s.known && bits.OnesCount64(h.Mask) < bits.OnesCount64(s.missing) {
		k.moved = now
	}
	s.known, s.missing = true, h.Mask&k.job.ranks
	k.setResend(s, s.missing&k.ranks)
	if s.resend != 0 {
		k.job.card.kick()
	}
}

// appendFinishes appends the finishes of all ranks that the card has not
// confirmed, when it is time.
func (j *Job) appendFinishes(buf []byte, now time.Time) ([]byte, time.Duration) {
	f := &j.finish
	if f.left == 0 {
		return buf, longestWait
	}
	if !f.sent.IsZero() {
		if wait := f.sent.Add(f.backOff.wait(&j.timing)).Sub(now); wait > 0 {
			return buf, wait
		}
		f.backOff++
	}
	f.sent = now
	for left := f.left; left != 0; left &= left - 1 {
		m := j.members[bits.TrailingZeros64(left)]
		h := frame.Header{
			Kind:  wire.KindFinish,
			Job:   j.number,
			Epoch: j.epoch,
			Rank:  uint8(m.rank),
			VID:   m.next,
		}
		buf = frame.Append(buf, &h, nil)
	}
	return buf, f.backOff.wait(&j.timing)
}

// takeFinished notes that the card knows m to have finished. When it knows that
// of all, the job has ended.
func (j *Job) takeFinished(m *Member, h *frame.Header, now time.Time) {
	f := &j.finish
	if h.VID != m.next || f.left>>m.rank&1 == 0 {
		return
	}
	f.moved = now
	if f.left &^= 1 << m.rank; f.left == 0 {
		j.endLocked(nil)
		f.done <- nil
	}
}

// rankSlice lists the ranks of a mask.
func rankSlice(mask uint64) []int {
	ranks := make([]int, 0, bits.OnesCount64(mask))
	for ; mask != 0; mask &= mask - 1 {
		ranks = append(ranks, bits.TrailingZeros64(mask))
	}
	return ranks
}

// rankList writes the ranks of a mask as in "0, 3".
func rankList(mask uint64) string {
	var s []string
	for _, r := range rankSlice(mask) {
		s = append(s, strconv.Itoa(r))
	}
	return strings.Join(s, ", ")
}
