package driver

// A call is one reduction in progress, by one member (AllReduce) or by all of them (Reduce):
// the worker of SPEC.md, section 8. The members of a call share the received results, and each
// sends its own input, so every result is stored once.
//
// This file starts and ends calls, send.go sends their data and asks, and receive.go handles
// the card's packets. Card.mu guards everything, except the inputs that the writer reads while
// the call is pinned.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tributary/driver/cpu"
)

// fastAsk replies to later packets show, without a timer, that a chunk, an ask or its reply was
// lost.
const fastAsk = 3

type call struct {
	job     *Job
	members []*Member
	ranks   uint64 // bit r for every rank r of the members

	inputs   [][]byte // by member, in the card's format
	dst      []byte   // in the card's result format
	elements int      // per array
	first    uint32   // VID of chunk 0; chunks are counted from the call's first
	chunks   int

	active bool
	low    int          // the first chunk that is not held
	held   int          // chunks held, in any position
	kept   int          // chunks not held in this epoch whose result is kept from an earlier one
	next   int          // the first chunk that some member has not sent
	turn   int          // index of the member that sends it next
	sent   int          // data frames sent at least once
	ring   []chunkState // chunk i is at i mod window, for low <= i < low + window
	resend int          // chunks with a rank in resend

	lacking []contributors // chunks whose sum is partial, in the order of their results

	order    uint64          // counts data and asks; that of the last one sent
	answered [fastAsk]uint64 // the highest orders with a reply, ascending

	backOff  backOff
	moved    time.Time // last sign of progress
	report   bool      // the caller wants progress
	progress chan struct{}
	done     chan error // capacity 1: the outcome
	timer    *time.Timer

	exchange cpu.Exchange // on a card that takes arrays
}

// chunkState is the state of one chunk in the window.
type chunkState struct {
	held    bool
	kept    bool      // has a result from an earlier epoch: send zeros, drop their sum
	asks    int       // asks sent
	again   bool      // asked for or sent again: its result is no sample
	waiting bool      // an ask has no reply yet
	sent    time.Time // by the last member; the start of the sample
	since   time.Time // when it was last sent or asked for
	order   uint64    // the call's order at that time
	known   bool      // missing is the card's last report
	missing uint64    // ranks whose contribution the card lacks
	arrived uint64    // ranks that some report of the card did not lack
	resend  uint64    // ranks that must send again
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

// ordered gives s the next place in the order of data and asks.
func (k *call) ordered(s *chunkState) {
	k.order++
	s.order = k.order
}

// noteOrder records a reply to the data or ask with that order.
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

// overtaken reports whether several later packets have a reply while s has none. Then the
// packet of s, or its reply, is lost.
func (k *call) overtaken(s *chunkState) bool { return k.answered[0] > s.order }

// state returns the state of chunk i in the window.
func (k *call) state(i int) *chunkState { return &k.ring[i&(len(k.ring)-1)] }

// start begins the call: it adds up inputs, one array per member, into dst. elements is the
// length of each array. report asks for progress.
func (k *call) start(dst []byte, elements int, report bool, inputs ...[]byte) error {
	j := k.job
	j.card.mu.Lock()
	defer j.card.mu.Unlock()
	leader := k.turnOf(0)
	switch {
	case j.ended:
		k.lacking = k.lacking[:0] // Partials must not return those of an earlier call
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
			return &InputError{"reduction", fmt.Sprintf("rank %d is at chunk %d and rank %d at chunk %d; all members must make the same calls", m.rank, m.next, leader.rank, k.first)}
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
		clear(k.ring) // left by an earlier call
		k.catchUp()
	}
	return nil
}

// checkLength rejects an array of another length than that of a member in the same round, when
// the numbers of chunks agree. The last sums would be wrong. When the numbers differ, the card
// reports the missing rank.
func (k *call) checkLength(elements, chunks int) error {
	for _, other := range k.job.calls {
		if other.first == k.first && other.chunks == chunks && other.elements != elements {
			return &InputError{fmt.Sprintf("buffer of rank %d", k.members[0].rank),
				fmt.Sprintf("it has %d elements, that of rank %d %d; all members' buffers have the same length", elements, other.members[0].rank, other.elements)}
		}
	}
	return nil
}

// complete removes the call from those in progress and gives its caller the outcome.
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

// run waits for the outcome of the call, the end of its context, or the timeout. When it
// returns, nobody uses the inputs or dst any more.
func (k *call) run(ctx context.Context, progress func(done, total int)) error {
	c := k.job.card
	defer k.forget()
	if progress != nil {
		progress(0, k.elements)
	}
	if c.arrays != nil {
		k.handOver()
	} else {
		c.kick()
	}
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

// name returns the call's name in messages, with the member if there is one.
func (k *call) name() string {
	if k == k.job.whole {
		return "call of all ranks"
	}
	return fmt.Sprintf("call of rank %d", k.members[0].rank)
}

// giveUp ends the job because this call failed with err, unless the call has an outcome
// already. The other calls return an EndedError with reason.
func (k *call) giveUp(err, reason error) error {
	ended := k.job.endIf(func() bool { return k.active }, reason)
	outcome := <-k.done
	if ended {
		return err
	}
	return outcome
}

// forget waits until the writer, or the card, has released the arrays, and drops them. The
// members are then free for the next call.
func (k *call) forget() {
	c := k.job.card
	if c.arrays != nil {
		c.arrays.Withdraw(&k.exchange)
		k.exchange.Sum = nil
	}
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

// summed returns the number of summed elements.
func (k *call) summed() int {
	c := k.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	return min((k.held+k.kept)*k.job.cfg.Chunk, k.elements)
}

// silent returns the time since the last progress. It is 0 while the card is away, because
// CarryOn limits that wait.
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

// stopped returns the error of a call whose context ended.
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

// overdue returns the error of a call that waited too long. It names the ranks that the card
// waits for, if the card has reported them.
func (k *call) overdue(cause error) error {
	c := k.job.card
	var missing uint64
	if c.arrays != nil {
		missing = c.arrays.Missing(&k.exchange)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	vid := k.first + uint32(k.low)
	waited := time.Since(k.lastMoved())
	if s := k.state(k.low); k.low < k.next && s.known {
		missing = s.missing
	}
	if missing != 0 {
		return &MissingError{Card: c.name, VID: vid, Ranks: bitSlice(missing), Waited: waited, Err: cause, job: k.job.label()}
	}
	return &TimeoutError{Card: c.name, What: fmt.Sprintf("chunk %d of the reduction", vid), Waited: waited, Err: cause, job: k.job.label()}
}

// rankList formats the ranks of a mask as in "0, 3".
func rankList(mask uint64) string {
	var s []string
	for _, r := range bitSlice(mask) {
		s = append(s, strconv.Itoa(r))
	}
	return strings.Join(s, ", ")
}
