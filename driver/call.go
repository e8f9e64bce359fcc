package driver

// A call is one reduction in progress: an array of each member of a flow, and their sum. This file
// starts calls, waits for them and gives them up. Card.mu guards everything, except the inputs that
// the writer reads while the call is pinned.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tributary/driver/cpu"
	"tributary/driver/schedule"
)

type call struct {
	flow *flow

	inputs   [][]byte      // by member, in the card's format, from chunk base on
	dst      []byte        // in the card's result format; nil when nobody wants the sum any more
	view     schedule.View // the chunks of the arrays that take part
	elements int           // of these, per array
	mean     bool          // the caller wants the mean, not the sum
	from     int           // the call's first chunk, counted in the flow
	chunks   int
	vid      uint32 // of its first chunk
	base     int    // from, or the first chunk of which a detached call has copies

	kin   []*flow // whose progress counts as the call's: of a member's other trees; nil: none
	marks []bool  // which chunks have their sums; nil: nobody wants to know

	lacking []contributors // chunks whose sum is partial, in the order of their results

	inUse    bool // started and not forgotten
	active   bool
	detached bool // nobody waits for it: it goes on for the other members
	report   bool // the caller wants progress
	progress chan struct{}
	done     chan error // capacity 1: the outcome
	timer    *time.Timer

	handed   bool          // the card has the arrays, or gets them now
	exchange *cpu.Exchange // on a card that takes arrays
	heir     *call         // the call that goes on for this one, which was detached
}

func newCall(f *flow) *call {
	k := &call{
		flow:     f,
		inputs:   make([][]byte, len(f.members)),
		progress: make(chan struct{}, 1),
		done:     make(chan error, 1),
		timer:    time.NewTimer(0),
		exchange: new(cpu.Exchange),
	}
	k.timer.Stop()
	return k
}

// end returns the first chunk after those of the call, counted in the flow.
func (k *call) end() int { return k.from + k.chunks }

// reduce starts the call and waits for its outcome.
func (k *call) reduce(ctx context.Context, o reduceOptions, dst []byte, elements int, inputs ...[]byte) error {
	if err := k.start(o, dst, elements, inputs...); err != nil {
		return err
	}
	return k.conclude(ctx, o, dst)
}

// conclude waits for the outcome of the call, and turns its sums into means if the caller wants these.
func (k *call) conclude(ctx context.Context, o reduceOptions, dst []byte) error {
	if err := k.run(ctx, o); err != nil || !o.mean {
		return err
	}
	j := k.flow.job
	return j.card.info.Mean(dst[:k.elements*j.outBytes], j.workers(), k.partials()...)
}

// start begins the call, after those that were started before it: it adds up inputs, one array per
// member, into dst. elements is the length of each array.
func (k *call) start(o reduceOptions, dst []byte, elements int, inputs ...[]byte) error {
	if o.mean {
		if err := k.flow.job.card.info.CheckAdds("mean"); err != nil {
			return err
		}
	}
	if err := k.submit(o, dst, elements, inputs); err != nil {
		return err
	}
	c := k.flow.job.card
	if c.arrays != nil {
		k.flow.handOver()
	} else {
		c.kick()
	}
	return nil
}

func (k *call) submit(o reduceOptions, dst []byte, elements int, inputs [][]byte) error {
	f := k.flow
	f.job.card.mu.Lock()
	defer f.job.card.mu.Unlock()
	if k.inUse {
		return &InputError{"reduction", fmt.Sprintf("rank %d is in a call already; a member waits for one call at a time, and Start queues several", f.members[0].Rank())}
	}
	k.lacking = k.lacking[:0] // Partials must not return those of an earlier call
	chunks, err := f.admit(elements)
	if err != nil {
		return err
	}
	copy(k.inputs, inputs)
	k.dst, k.elements, k.chunks, k.mean = dst, elements, chunks, o.mean
	k.inUse, k.active, k.report = true, true, o.progress != nil
	f.add(k)
	return nil
}

// complete gives the call its outcome. The flow has removed it.
func (k *call) complete(err error) {
	k.active = false
	if k.detached {
		k.flow.release()
		return
	}
	k.done <- err
}

// run waits for the outcome of the call, the end of its context, or the timeout. When it
// returns, nobody uses the caller's arrays any more.
func (k *call) run(ctx context.Context, o reduceOptions) error {
	c := k.flow.job.card
	defer k.forget()
	if o.progress != nil {
		o.progress(0, k.elements)
	}
	timeout := cmp.Or(o.timeout, c.opts.timeout)
	k.timer.Reset(timeout)
	defer k.timer.Stop()
	for {
		select {
		case err := <-k.done:
			if err == nil && o.progress != nil {
				o.progress(k.elements, k.elements)
			}
			return err
		case <-k.progress:
			if o.progress != nil {
				o.progress(k.summed(), k.elements)
			}
		case <-ctx.Done():
			err := k.stopped(ctx)
			if o.detach {
				return k.detach(err)
			}
			if !k.withdraw(err, ctx.Err()) {
				return k.giveUp(err, k.flow.job.givenUp(k.flow.name(), err))
			}
		case <-k.timer.C:
			left := timeout - k.silent()
			if left <= 0 && !k.missed() {
				err := k.overdue(nil)
				return k.giveUp(err, err)
			}
			left = max(left, shortestWait)
			k.timer.Reset(left)
		}
	}
}

// missed handles a call that has waited for the timeout. It reports whether it waits on: its card, or one
// of a tree of cards, has gone or may have gone. Members that the call waits for may wait for such a card.
func (k *call) missed() bool {
	j := k.flow.job
	waits := j.card.missed(j)
	for _, f := range k.kin {
		if w := f.job.tree(); w != nil && f.job.front() != j.front() {
			waits = w.missed() || waits
		}
	}
	return waits
}

// giveUp ends the job because this call failed with err, unless the call has an outcome
// already. The other calls return an EndedError with reason.
func (k *call) giveUp(err, reason error) error {
	ended := k.flow.job.endIf(func() bool { return k.active }, reason)
	outcome := <-k.done
	if ended {
		return err
	}
	return outcome
}

// forget waits until the writer, or the card, has released the arrays, and drops them. The call may
// then start again.
func (k *call) forget() {
	c := k.flow.job.card
	if c.arrays != nil {
		k.flow.waitForHandOver()
		c.arrays.Withdraw(k.exchange)
		k.exchange.Sum = nil
	}
	if k.flow.job.overQueues() {
		k.flow.waitForHandOver()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pinned == k {
		c.unpinned.Wait()
	}
	clear(k.inputs)
	k.dst = nil
	k.inUse, k.handed, k.heir = false, false, nil
	k.flow.release()
	select {
	case <-k.progress:
	default:
	}
}

// detach ends the call with err for its caller, and continues it with copies of the inputs that the
// card still needs: the other members get their sums, and the flow's next call follows. A call that
// has an outcome already returns that.
func (k *call) detach(err error) error {
	f, c := k.flow, k.flow.job.card
	c.mu.Lock()
	for c.pinned == k || f.handing {
		c.unpinned.Wait()
	}
	if !k.active {
		c.mu.Unlock()
		return <-k.done
	}
	heir := newCall(f)
	heir.elements, heir.from, heir.chunks, heir.vid, heir.mean = k.elements, k.from, k.chunks, k.vid, k.mean
	heir.inUse, heir.active, heir.detached, heir.handed = true, true, true, k.handed
	heir.exchange, k.exchange = k.exchange, heir.exchange
	f.calls[slices.Index(f.calls, k)] = heir
	f.use()
	k.active, k.heir = false, heir
	if !k.handed {
		heir.base = min(max(f.low, k.from), k.end())
		for i, in := range k.inputs {
			heir.inputs[i] = k.gather(nil, in, heir.base, heir.end()-heir.base, f.job.inBytes)
		}
		if c.arrays != nil { // which need a place for the sum
			heir.dst = make([]byte, k.elements*f.job.outBytes)
		}
	}
	handed := k.handed
	c.mu.Unlock()
	if handed {
		c.arrays.Detach(heir.exchange, heir)
	}
	return err
}

// noteProgress wakes a caller that wants progress.
func (k *call) noteProgress() {
	if !k.report {
		return
	}
	select {
	case k.progress <- struct{}{}:
	default:
	}
}

// part returns chunk i, counted in the flow, of an array that begins with chunk base. Its elements
// have size bytes. The last chunk may be shorter.
func (k *call) part(array []byte, i, base, size int) []byte {
	chunk := k.flow.job.cfg.Chunk
	at := k.view.Chunk(i-base) * chunk
	return array[at*size : (at+min(chunk, k.elements-(i-k.from)*chunk))*size]
}

// gather appends n chunks of a member's input to dst, from chunk i on.
func (k *call) gather(dst, array []byte, i, n, size int) []byte {
	if dst == nil {
		dst = make([]byte, 0, n*k.flow.job.cfg.Chunk*size)
	}
	for ; n > 0; i, n = i+1, n-1 {
		dst = append(dst, k.part(array, i, k.base, size)...)
	}
	return dst
}

// store keeps the sum of chunk i.
func (k *call) store(i int, sum []byte, ranks uint64) {
	j := k.flow.job
	if k.dst != nil {
		copy(k.part(k.dst, i, k.from, j.outBytes), sum)
		k.mark(i-k.from, 1)
	}
	if ranks != j.everyone() {
		k.lacking = append(k.lacking, contributors{i - k.from, ranks})
	}
}

// mark notes that n chunks of the call have their sums, from chunk first on.
func (k *call) mark(first, n int) {
	for i := first; k.marks != nil && i < first+n; i++ {
		k.marks[i] = true
	}
}

// summed returns the number of summed elements.
func (k *call) summed() int {
	c := k.flow.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	chunks := min(max(k.flow.held+k.flow.kept-k.from, 0), k.chunks)
	return min(chunks*k.flow.job.cfg.Chunk, k.elements)
}

// silent returns the time since the last progress. It is 0 while the job waits for its card or its
// members: other limits hold for these waits.
func (k *call) silent() time.Duration {
	silent := k.flow.silent()
	for _, other := range k.kin {
		silent = min(silent, other.silent())
	}
	return silent
}

func (f *flow) silent() time.Duration {
	c := f.job.card
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.job.waits() || f.job.overQueues() {
		return 0
	}
	return time.Since(f.lastMoved())
}

// stopped returns the error of a call whose context ended.
func (k *call) stopped(ctx context.Context) error {
	j := k.flow.job
	if err := j.card.awayError(ctx.Err()); err != nil {
		return err
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return k.overdue(ctx.Err())
	}
	return &StoppedError{
		Card: j.card.name,
		What: fmt.Sprintf("reduction stopped after %d of %d elements", k.summed(), k.elements),
		Err:  ctx.Err(),
		job:  j.name,
	}
}

// overdue returns the error of a call that waited too long. It names the ranks that the card
// waits for, if the card has reported them.
func (k *call) overdue(cause error) error {
	f := k.flow
	j, c := f.job, f.job.card
	up := j.upRefusals()
	var missing uint64
	if c.arrays != nil {
		missing = c.arrays.Missing(k.exchange)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	vid := f.vid(f.low)
	waited := time.Since(f.lastMoved())
	if s := f.state(f.low); f.low < f.next && s.known {
		missing = s.missing
	}
	if missing != 0 {
		return &MissingError{Card: c.name, VID: vid, Ranks: bitSlice(missing), Waited: waited, Up: up, Err: cause, job: j.name}
	}
	return &TimeoutError{Card: c.name, What: fmt.Sprintf("chunk %d of the reduction", vid), Waited: waited, Up: up, Err: cause, job: j.name}
}

// rankList formats the ranks of a mask as in "0, 3".
func rankList(mask uint64) string {
	var s []string
	for _, r := range bitSlice(mask) {
		s = append(s, strconv.Itoa(r))
	}
	return strings.Join(s, ", ")
}
