package driver

// Jobs on trees of cards (wire/TREES.md, section 6). A job on a tree has a part on each card: a Job whose
// local members are the card's workers and the cards below it. The part of the root stands for the whole
// job in the program.
//
// When a card has gone, the parts on all cards stop, the members share their results, and the job
// continues on all cards in a new epoch (treeepoch.go). Parts lock their own cards one at a time.

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"sync"
	"time"
	"unsafe"

	"tributary/driver/wire"
)

// treeJob is a job on a tree of cards.
type treeJob struct {
	tree    *Tree
	cfg     JobConfig // of the whole job
	parts   []*Job    // by card
	members []*Member // by global rank; nil for ranks that nobody has

	over context.Context // ends with the job
	end  context.CancelCauseFunc
	goes chan struct{} // capacity 1: a card has gone

	mu      sync.Mutex
	lost    []Outage // whose end is not reported
	closing bool     // Close is under way
}

// branch is what a part knows of its tree; nil for other jobs.
type branch struct {
	of   *treeJob
	card int
	all  uint64   // the global ranks of the tree
	rank []uint64 // the global ranks that each local member stands for

	// Of the set-up.
	parent  uint64         // JOB_PARENT; 0 at the root
	above   wire.Address   // of the parent
	members []wire.Address // by local rank; zero for workers

	probed time.Time // when a silent card was asked for a sign of life; guarded by its mutex
}

// repeatCycles is JOB_REPEAT: 0.16 ms of a card at 100 MHz. No round trip and no clock is in it, because a
// shorter time costs little: asks alone cause repeats, and the members' timers follow their round trips. A
// time beyond these timers delays what a loss needs. With 2 % of the packets between cards and of the data
// lost, 2,500 chunks took 0.5 to 2.2 s on two levels of cards at 100 MHz, whether JOB_REPEAT was 1 or up
// to 2^16. They took 1.1 to 2.0 s with 2^18, 3.3 s with 2^20 and 41 s with 2^24. 1 caused 700 repeats, 2^16
// 550. So clocks that are four times slower lose nothing.
const repeatCycles = 1 << 14

// newTreeJob returns a job whose parts are not set up yet.
func newTreeJob(t *Tree, cfg JobConfig) *treeJob {
	w := &treeJob{tree: t, cfg: cfg, members: make([]*Member, len(t.workers)), goes: make(chan struct{}, 1)}
	w.over, w.end = context.WithCancelCause(context.Background())
	return w
}

// newPart returns the part of the job on a card.
func (w *treeJob) newPart(i int, cfg JobConfig, number uint8, epoch uint16, trip time.Duration) *Job {
	b := &branch{of: w, card: i, all: w.tree.all, rank: w.tree.standsFor(i)}
	j := newJobOf(w.tree.cards[i].Card, cfg, number, epoch, trip, b)
	for local, rank := range w.tree.cards[i].Ranks {
		j.members[local].global = rank
		w.members[rank] = j.members[local]
	}
	return j
}

// root returns the part that stands for the job.
func (w *treeJob) root() *Job { return w.parts[w.tree.root] }

// manned returns the parts on cards that have workers of their own, with the numbers of the cards.
func (w *treeJob) manned() iter.Seq2[int, *Job] {
	return func(yield func(int, *Job) bool) {
		for i, j := range w.parts {
			if w.tree.cards[i].Workers > 0 && !yield(i, j) {
				return
			}
		}
	}
}

// endHere ends the job because of err, on this host but on no card.
func (w *treeJob) endHere(err error) {
	w.end(err)
	for _, j := range w.parts {
		j.end(err)
	}
}

// local returns the members of a card that stand for some of the ranks in a mask of the card. Without a
// tree, masks have the members' own ranks.
func (j *Job) local(mask uint64) (local uint64) {
	if j.branch == nil {
		return mask & j.ranks
	}
	for rank, stands := range j.branch.rank {
		if stands&mask != 0 {
			local |= 1 << rank
		}
	}
	return local
}

// global returns the ranks of members of a card as the program knows them: on a tree, the global ones.
func (j *Job) global(local uint64) (ranks uint64) {
	for _, rank := range bitSlice(local) {
		ranks |= 1 << j.members[rank].Rank()
	}
	return ranks
}

// everyone returns the mask of a sum of all members.
func (j *Job) everyone() uint64 {
	if j.branch == nil {
		return j.ranks
	}
	return j.branch.all
}

// front returns the job as the program has it: the part of the root, if it is on a tree.
func (j *Job) front() *Job {
	if w := j.tree(); w != nil {
		return w.root()
	}
	return j
}

// tree returns the job that a part belongs to; nil for other jobs.
func (j *Job) tree() *treeJob {
	if j.branch == nil {
		return nil
	}
	return j.branch.of
}

// workers returns the number of workers in a sum.
func (j *Job) workers() int { return bits.OnesCount64(j.everyone()) }

// startReduce starts a reduction of all workers on each card with workers. finish waits for it: it
// returns the first error.
func (w *treeJob) startReduce(ctx context.Context, o reduceOptions, dst []byte, elements int, inputs [][]byte) (first *call, finish func() error, err error) {
	if o.mean {
		if err := w.root().card.info.CheckAdds("mean"); err != nil {
			return nil, nil, err
		}
	}
	mean, sum := o.mean, dst
	o.mean = false
	keeper, copied := w.keeper(dst, inputs)
	if copied {
		sum = make([]byte, len(dst))
	}
	if err := w.checkIdle(); err != nil {
		return nil, nil, err
	}
	type begun struct {
		call *call
		o    reduceOptions
		dst  []byte
	}
	var calls []begun
	for i, j := range w.manned() {
		b := begun{newCall(j.whole), o, nil}
		if i == keeper {
			b.dst, first = sum, b.call
		} else {
			b.o.progress = nil
		}
		if err := b.call.start(b.o, b.dst, elements, w.tree.inputsAt(i, inputs)...); err != nil {
			if len(calls) > 0 {
				w.fail(j, err)
			}
			for _, begun := range calls {
				_ = begun.call.conclude(ctx, begun.o, begun.dst) // it has ended with the job
			}
			return nil, nil, err
		}
		calls = append(calls, b)
	}
	finish = func() error {
		errs := make(chan error, len(calls))
		for _, b := range calls {
			go func() { errs <- b.call.conclude(ctx, b.o, b.dst) }()
		}
		var first error
		for range calls {
			if err := <-errs; first == nil {
				first = err
			}
		}
		if first != nil {
			return first
		}
		if copied {
			copy(dst, sum)
		}
		if mean {
			root := w.root()
			return root.card.info.Mean(dst[:elements*root.outBytes], root.workers())
		}
		return nil
	}
	return first, finish, nil
}

// inputsAt returns the inputs of a card's workers, among those of all workers in the order of their ranks.
func (t *Tree) inputsAt(i int, inputs [][]byte) (own [][]byte) {
	for _, rank := range t.cards[i].Ranks {
		own = append(own, inputs[bits.OnesCount64(t.all&(1<<rank-1))])
	}
	return own
}

// startPending is startReduce with a goroutine that waits.
func (w *treeJob) startPending(ctx context.Context, o reduceOptions, arrived func(), dst []byte, elements int, inputs [][]byte) (*Pending, error) {
	first, finish, err := w.startReduce(ctx, o, dst, elements, inputs)
	if err != nil {
		return nil, err
	}
	p := &Pending{call: first, done: make(chan struct{})}
	go func() {
		p.err = finish()
		arrived()
		close(p.done)
	}()
	return p, nil
}

// checkIdle rejects a reduction of all workers while one of them is in a call of its own. Calls of all
// workers queue.
func (w *treeJob) checkIdle() error {
	for _, m := range w.members {
		if m == nil {
			continue
		}
		c := m.job.card
		c.mu.Lock()
		busy := m.flow != nil && m.flow != m.job.whole
		c.mu.Unlock()
		if busy {
			return &InputError{"reduction", fmt.Sprintf("rank %d is in a call already; calls of all ranks and calls of one rank exclude each other", m.Rank())}
		}
	}
	return nil
}

// keeper returns the card whose members store the sum: dst may be an input of theirs. If it is an input at
// several cards, the sum needs memory of its own, because members of one card may get a chunk while
// another card still needs the input.
func (w *treeJob) keeper(dst []byte, inputs [][]byte) (card int, copied bool) {
	card = -1
	for n, rank := range w.tree.Ranks() {
		if at := w.tree.workers[rank].card; unsafe.SliceData(inputs[n]) == unsafe.SliceData(dst) {
			copied = copied || card >= 0 && card != at
			card = at
		}
	}
	if card < 0 {
		card = w.tree.workers[w.tree.Ranks()[0]].card
	}
	return card, copied
}

// reduce is startReduce with its wait.
func (w *treeJob) reduce(ctx context.Context, o reduceOptions, dst []byte, elements int, inputs [][]byte) error {
	_, finish, err := w.startReduce(ctx, o, dst, elements, inputs)
	if err != nil {
		return err
	}
	return finish()
}

// close finishes the job on all cards, and then aborts it on all of them. Finishes that are all answered
// do not prove that it has ended everywhere: a card that lost the job may have answered one that it never
// sent up.
func (w *treeJob) close(ctx context.Context) error {
	root := w.root()
	if err := w.checkClose(); err != nil {
		return err
	}
	if w.over.Err() != nil {
		return root.finishAll(ctx) // it has ended
	}
	var finishing []*Job
	for _, j := range w.manned() {
		finishing = append(finishing, j)
	}
	w.mu.Lock()
	w.closing = true
	outage := len(w.lost) > 0
	w.mu.Unlock()
	if outage {
		w.finish()
	}
	errs := make(chan error, len(finishing))
	for _, j := range finishing {
		go func() { errs <- j.finishAll(ctx) }()
	}
	var first error
	for range finishing {
		if err := <-errs; first == nil {
			first = err
		}
	}
	w.endHere(first)
	return errors.Join(first, w.abort(ctx))
}

// abandon ends the job at once.
func (w *treeJob) abandon(ctx context.Context) error {
	if w.over.Err() != nil {
		return nil
	}
	w.endHere(errAborted)
	return w.abort(ctx)
}

// checkClose rejects the end of a job with calls in progress.
func (w *treeJob) checkClose() error {
	for _, j := range w.parts {
		if err := j.checkNoCalls(); err != nil {
			return err
		}
	}
	return nil
}

// abort makes all cards drop the job, which has ended on this host. A card that is away has dropped it.
func (w *treeJob) abort(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make([]error, len(w.parts))
	for i, j := range w.parts {
		all.Go(func() { errs[i] = j.dropOnCard(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// dropOnCard aborts what the card still has under the part's number, in whatever epoch, unless another job
// has the number now.
func (j *Job) dropOnCard(ctx context.Context) error {
	c := j.card
	err := c.takeTurn(ctx, c.configuring, "abort of a job")
	if err == nil {
		defer func() { <-c.configuring }()
		c.mu.Lock()
		l, taken := c.link, c.away != nil || c.table[j.number].job != nil
		c.mu.Unlock()
		if taken {
			return nil
		}
		_, err = c.abortAny(ctx, l, j.number)
	}
	var died *DiedError
	if errors.As(err, &died) || errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// abortAny aborts the job that runs on the card under a number, if there is one. It returns the last epoch
// of the number; nil if there was none.
func (c *Card) abortAny(ctx context.Context, l *link, number uint8) (last *uint16, err error) {
	epoch, set, running, err := c.jobState(ctx, l, number)
	if err != nil || !set {
		return nil, err
	}
	if !running {
		return &epoch, nil
	}
	name := jobName(number, epoch)
	if _, err = c.writeOn(ctx, l, wire.RegJobToken, c.token); err == nil {
		_, err = c.writeOn(ctx, l, wire.RegJobAbort, name)
	}
	if err != nil && !isGone(err) {
		return nil, err
	}
	c.noteAborted(name)
	return &epoch, nil
}

// fail ends the job on all cards because of err, which has ended it on one, or is about to.
func (w *treeJob) fail(from *Job, err error) {
	if w.over.Err() != nil {
		return
	}
	w.endHere(err)
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, j := range w.parts {
		if j != from {
			all.Go(func() {
				if j.dropOnCard(ctx) != nil {
					j.card.noteGaveUp() // the next set-up, or the lease, ends the part
				}
			})
		}
	}
	all.Wait()
}

// partEnded spreads the end of a part to the others. The caller holds its card's mutex.
func (b *branch) partEnded(j *Job, err error) {
	if err != nil && b.of.over.Err() == nil {
		go b.of.fail(j, err)
	}
}

// missed handles a call that has waited for the timeout: a card of the tree may be silent. It reports
// whether the call waits on, because such a card has gone or may have gone.
func (w *treeJob) missed() (waits bool) {
	for _, j := range w.parts {
		c := j.card
		c.mu.Lock()
		switch {
		case j.ended:
			waits = waits || j.err != nil // the other parts end now
		case c.away != nil || j.stopped:
			waits = true
		case time.Since(c.heard) >= c.opts.timeout/2:
			j.probe()
			waits = true
		}
		c.mu.Unlock()
	}
	return waits
}

// probe asks a silent card for a sign of life, and gives the card up if none has come for long.
func (j *Job) probe() {
	c, b := j.card, j.branch
	switch now := time.Now(); {
	case !b.probed.After(c.heard):
		b.probed = now
		c.link.renewSoon()
	case now.Sub(b.probed) >= c.opts.timeout/2:
		c.loseLocked(c.link, c.silentError(now.Sub(c.heard)))
	}
}

// silentError returns why a silent card counts as gone.
func (c *Card) silentError(silent time.Duration) *DiedError {
	return &DiedError{Card: c.name, Err: fmt.Errorf("it has sent nothing for %s", round(silent))}
}

// stats returns the sum of the counters of all workers.
func (w *treeJob) stats() (sum MemberStats) {
	for _, m := range w.members {
		if m != nil {
			s := m.Stats()
			sum.add(&s)
		}
	}
	return sum
}

// exceptions adds up the counts of all cards.
func (w *treeJob) exceptions(ctx context.Context) (sum Exceptions, err error) {
	all := make([]Exceptions, len(w.parts))
	for i, j := range w.parts {
		if all[i], err = j.exceptions(ctx); err != nil {
			return sum, err
		}
	}
	sum.NonfiniteOut = all[w.tree.root].NonfiniteOut
	sum.NonfiniteIn, _ = w.tree.addUp(func(i int) (Exception, error) { return w.tree.contributed(i, all[i].NonfiniteIn), nil })
	sum.Overflow, _ = w.tree.addUp(func(i int) (Exception, error) { return all[i].Overflow, nil })
	return sum, nil
}

// contributed is a card's exception in contributions, with the global rank of a worker in its place.
func (t *Tree) contributed(i int, x Exception) Exception {
	stands := t.standsFor(i)
	x.Rank = bits.TrailingZeros64(stands[min(x.Rank, len(stands)-1)])
	return x
}

// addUp adds up the counts of all cards of one kind of exceptions.
func (t *Tree) addUp(of func(card int) (Exception, error)) (sum Exception, err error) {
	for i := range t.cards {
		x, err := of(i)
		if err != nil {
			return sum, err
		}
		sum.add(x)
	}
	return sum, nil
}

// add adds another card's counts. The first one is that of the earlier chunk; cards nearer to the workers
// come later, and know more.
func (x *Exception) add(o Exception) {
	if o.Count == 0 {
		return
	}
	if x.Count == 0 || int32(o.VID-x.VID) <= 0 {
		x.VID, x.Rank = o.VID, o.Rank
	}
	x.Count = uint32(min(uint64(x.Count)+uint64(o.Count), 1<<32-1))
}

// byRank returns the inputs by global rank.
func (w *treeJob) byRank(inputs [][]byte) [][]byte {
	all := make([][]byte, len(w.members))
	for n, rank := range w.tree.Ranks() {
		all[rank] = inputs[n]
	}
	return all
}
