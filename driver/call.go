package driver

// A call is one reduction under way, of one member (AllReduce) or of all of
// them (Reduce): the worker of SPEC.md, section 8. Members of one call share
// what they have received, and each sends its own input; so every result is
// stored once. This file starts and ends calls; send.go sends their data and
// asks, receive.go takes in what the card answers. Everything is guarded by
// Card.mu, but for the inputs that the writer reads while the call is pinned.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fastAsk is the number of answers to what was sent or asked for later that show
// a chunk, an ask or its answer to be lost, without waiting for a timer.
const fastAsk = 3

type call struct {
	job     *Job
	members []*Member
	ranks   uint64 // of the members, as bits

	inputs   [][]byte // of each member, in the format of the contributions
	dst      []byte   // in that of the results
	elements int      // of each of them
	first    uint32   // VID of chunk 0; chunks are counted from the call's first
	chunks   int

	active bool
	low    int          // the first chunk that is not held
	held   int          // chunks held, wherever
	kept   int          // chunks whose result is kept from an earlier epoch and that are not held in this one
	next   int          // the first chunk that not all members have sent
	turn   int          // the member that sends it next
	sent   int          // frames of chunks that were sent in any epoch
	ring   []chunkState // of chunk i at i mod window, for low <= i < low + window
	resend int          // chunks with a rank in resend

	lacking []contributors // chunks whose sum is partial, in the order in which they came

	order    uint64          // of what was sent and asked for last, counted from 1
	answered [fastAsk]uint64 // the highest orders that were answered, the lowest of them first

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
	kept    bool      // its result is there from an earlier epoch: zeros are sent, and their sum is not stored
	asks    int       // how often it was asked for
	again   bool      // asked for or sent again: no sample from its result
	waiting bool      // an ask has not been answered
	sent    time.Time // by the last member, for the sample
	since   time.Time // sent, asked for or sent again
	order   uint64    // of that, in the call
	known   bool      // missing is what the card said last
	missing uint64    // ranks whose contribution the card lacks
	resend  uint64    // ranks that are to send it again
}

func newCall(j *Job, members []*Member) *call {
	k := &call{
		job:      j,
		members:  members,
		inputs:   make([][]byte, len(members)),
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

// ordered gives what is sent or asked for now its place in the order.
func (k *call) ordered(s *chunkState) {
	k.order++
	s.order = k.order
}

// noteOrder takes in that what was sent or asked for in that order was answered.
func (k *call) noteOrder(order uint64) {
	for i := range k.answered {
		if order <= k.answered[i] {
			return
		}
		if i > 0 {
			k.answered[i-1] = k.answered[i]
		}
		k.answered[i] = order
	}
}

// overtaken says whether several answers to what was sent or asked for later than
// the chunk of s have come: then its own is lost.
func (k *call) overtaken(s *chunkState) bool { return k.answered[0] > s.order }

// state returns the state of chunk i, which is in the window.
func (k *call) state(i int) *chunkState { return &k.ring[i&(len(k.ring)-1)] }

// start puts the call among those under way: to add up inputs, one of each
// member, of so many elements, into dst, and to report progress or not.
func (k *call) start(dst []byte, elements int, report bool, inputs ...[]byte) error {
	j := k.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	leader := k.turnOf(0)
	switch {
	case j.ended:
		k.lacking = k.lacking[:0] // what Partials told is of an earlier call
		return j.endedError()
	case j.finish.left != 0:
		return &InputError{"reduction", "the job is being closed"}
	case leader.out != nil:
		k.lacking = k.lacking[:0]
		return leader.out
	}
	k.first = leader.next
	for _, m := range k.members {
		if m.out != nil {
			continue
		}
		if m.busy {
			return &InputError{"reduction", fmt.Sprintf("rank %d is in a call already; a member makes one call at a time", m.rank)}
		}
		if m.next != k.first {
			return &InputError{"reduction", fmt.Sprintf("rank %d stands at chunk %d and rank %d at chunk %d; all members must have made the same calls", m.rank, m.next, leader.rank, k.first)}
		}
	}
	chunks := (elements + j.cfg.Chunk - 1) / j.cfg.Chunk
	if err := k.checkLength(elements, chunks); err != nil {
		return err
	}
	for _, m := range k.members {
		m.busy = true
	}
	copy(k.inputs, inputs)
	k.dst, k.elements = dst, elements
	k.chunks = chunks
	k.lacking = k.lacking[:0]
	k.low, k.held, k.kept, k.next, k.turn, k.sent, k.resend = 0, 0, 0, 0, 0, 0, 0
	k.order, k.answered = 0, [fastAsk]uint64{}
	k.active, k.report, k.moved = true, report, time.Now()
	j.calls = append(j.calls, k)
	if j.history != nil && (j.outage.count > 0 || j.card.away != nil) {
		clear(k.ring) // of what an earlier call left
		k.catchUp()
	}
	return nil
}

// checkLength refuses an array that has as many chunks as that of a member who is
// in the same round, but another length: the last sums would be wrong. Where the
// chunks differ in number, the card misses some, and says of which rank.
func (k *call) checkLength(elements, chunks int) error {
	for _, other := range k.job.calls {
		if other.first == k.first && other.chunks == chunks && other.elements != elements {
			return &InputError{fmt.Sprintf("buffer of rank %d", k.members[0].rank),
				fmt.Sprintf("it has %d elements, that of rank %d %d; all members' buffers have the same length", elements, other.members[0].rank, other.elements)}
		}
	}
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
		progress(0, k.elements)
	}
	c.kick()
	k.timer.Reset(c.opts.timeout)
	defer k.timer.Stop()
	for {
		select {
		case err := <-k.done:
			if err == nil && progress != nil {
				progress(k.elements, k.elements)
			}
			return err
		case <-k.progress:
			if progress != nil {
				progress(k.summed(), k.elements)
			}
		case <-ctx.Done():
			if err := k.stopped(ctx); !k.withdraw(err, ctx.Err()) {
				return k.giveUp(err, k.job.givenUp(k.name(), err))
			}
		case <-k.timer.C:
			left := c.opts.timeout - k.silent()
			if left <= 0 && !c.missed(k.job) {
				err := k.overdue(nil)
				return k.giveUp(err, err)
			}
			left = max(left, shortestWait)
			k.timer.Reset(left)
		}
	}
}

// name names the call in messages: by its member, if it has one.
func (k *call) name() string {
	if k == k.job.whole {
		return "call of all ranks"
	}
	return fmt.Sprintf("call of rank %d", k.members[0].rank)
}

// giveUp ends the job because this call failed with err, unless the call has an
// outcome by now. Other calls answer that the job has ended for that reason.
func (k *call) giveUp(err, reason error) error {
	ended := k.job.endIf(func() bool { return k.active }, reason)
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

// summed returns how many elements are sums.
func (k *call) summed() int {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	return min((k.held+k.kept)*k.job.cfg.Chunk, k.elements)
}

// silent returns the time since the last sign of progress. A card that is away
// has time of its own.
func (k *call) silent() time.Duration {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return 0
	}
	return time.Since(k.lastMoved())
}

func (k *call) lastMoved() time.Time {
	if sent := k.job.sentData; sent.After(k.moved) {
		return sent
	}
	return k.moved
}

// stopped is the error of a call whose context ended.
func (k *call) stopped(ctx context.Context) error {
	if err := k.job.card.awayError(ctx.Err()); err != nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return k.overdue(ctx.Err())
	}
	return &StoppedError{
		Card: k.job.card.name,
		What: fmt.Sprintf("reduction stopped after %d of %d elements", k.summed(), k.elements),
		Err:  ctx.Err(),
		job:  k.job.label(),
	}
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
		return &MissingError{Card: c.name, VID: vid, Ranks: bitSlice(s.missing), Waited: waited, Err: cause, job: k.job.label()}
	}
	return &TimeoutError{Card: c.name, What: fmt.Sprintf("chunk %d of the reduction", vid), Waited: waited, Err: cause, job: k.job.label()}
}

// rankList writes the ranks of a mask as in "0, 3".
func rankList(mask uint64) string {
	var s []string
	for _, r := range bitSlice(mask) {
		s = append(s, strconv.Itoa(r))
	}
	return strings.Join(s, ", ")
}
