package driver

// Calls of a forest. A call has a part on each tree with chunks of it: a call of that tree's job, on a
// view of the same arrays. Forest.mu guards everything. The driver takes a card's lock under it, never
// the other way round.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tributary/driver/schedule"
	"tributary/driver/wire"
)

// forestWaiter is what the methods of a member need that wait for their reduction.
type forestWaiter struct {
	busy bool
	last *forestCall // for Partials
}

// forestCall is one reduction in progress, of one member or of all.
type forestCall struct {
	forest   *Forest
	member   *ForestMember // nil: all
	number   int           // of the member's reductions, from 0
	opts     reduceOptions
	dst      []byte
	sum      []byte // memory for the sum that is not dst; nil without
	inputs   [][]byte
	elements int
	chunks   int
	held     []bool // chunks with a sum, from earlier epochs too; nil without Move
	parts    []*forestPart
	progress forestProgress
}

// forestPart is the part of a call on one tree.
type forestPart struct {
	tree     int
	job      *Job
	call     *call
	view     schedule.View
	elements int
	inputs   [][]byte
	stores   bool  // the sums; on a tree of cards, one part of a call of all ranks does
	err      error // why it could not start
}

// forestRound is a reduction that not all members have started.
type forestRound struct {
	elements int
	rank     int // the first to start it
	left     int
}

// name returns the call's name in messages.
func (c *forestCall) name() string {
	if c.member == nil {
		return "a call of all ranks"
	}
	return fmt.Sprintf("a call of rank %d", c.member.rank)
}

// members returns the members whose arrays the call has.
func (c *forestCall) members() []*ForestMember {
	if c.member == nil {
		return c.forest.members
	}
	return []*ForestMember{c.member}
}

// start begins a call behind those that its members started before. It waits while chunks move.
func (f *Forest) start(ctx context.Context, c *forestCall) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.opts.detach && f.cfg.Move {
		return &InputError{"reduction", "WithDetach and Move exclude each other; a call that has left its arrays could not move"}
	}
	if c.opts.mean {
		if err := f.info.CheckAdds("mean"); err != nil {
			return err
		}
	}
	for {
		if err := f.await(ctx); err != nil {
			return err
		}
		f.layOut(c)
		err := f.admit(c)
		if err == nil {
			break
		}
		if !f.cfg.Move || !isDeath(err) {
			return err
		}
		f.stop(err)
	}
	f.enter(c)
	f.begin(c)
	return nil
}

// await waits while chunks move. It returns why no call can start.
func (f *Forest) await(ctx context.Context) error {
	wake := context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.changed.Broadcast()
	})
	defer wake()
	for {
		switch {
		case f.err != nil:
			return f.endedError()
		case f.closed:
			return &InputError{"reduction", "the forest is being closed"}
		case !f.stopping:
			return nil
		case f.moveIfIdle():
			continue
		case ctx.Err() != nil:
			return &StoppedError{Card: f.names(), What: "start of a reduction while chunks move", Err: ctx.Err()}
		}
		f.changed.Wait()
	}
}

// admit checks a call before anything of it starts.
func (f *Forest) admit(c *forestCall) error {
	members := c.members()
	for _, m := range members[1:] {
		if m.calls != members[0].calls {
			return &InputError{"reduction", fmt.Sprintf("rank %d has started %d reductions and rank %d %d; all members must make the same calls", m.rank, m.calls, members[0].rank, members[0].calls)}
		}
	}
	c.number = members[0].calls
	for _, other := range f.live {
		if (other.member == nil) != (c.member == nil) {
			return &InputError{"reduction", other.name() + " is in progress; calls of all ranks and calls of one rank exclude each other"}
		}
	}
	if r := f.rounds[c.number]; r != nil && c.member != nil && r.elements != c.elements {
		return &InputError{fmt.Sprintf("buffer of rank %d", c.member.rank),
			fmt.Sprintf("it has %d elements, that of rank %d %d; all members' buffers have the same length", c.elements, r.rank, r.elements)}
	}
	for _, p := range c.parts {
		if err := p.call.admissible(p.elements); err != nil {
			return err
		}
	}
	return nil
}

// admissible checks whether a call could start.
func (k *call) admissible(elements int) error {
	k.flow.job.card.mu.Lock()
	defer k.flow.job.card.mu.Unlock()
	_, err := k.flow.admit(elements)
	return err
}

// enter counts a call that starts.
func (f *Forest) enter(c *forestCall) {
	for _, m := range c.members() {
		m.calls++
	}
	if c.member == nil {
		return
	}
	r := f.rounds[c.number]
	if r == nil {
		r = &forestRound{c.elements, c.member.rank, len(f.members)}
		f.rounds[c.number] = r
	}
	if r.left--; r.left == 0 {
		delete(f.rounds, c.number)
	}
}

// layOut gives the chunks of the call that have no sum to the trees, from the member's place in the
// schedule on.
func (f *Forest) layOut(c *forestCall) {
	lacking := c.lacking()
	n, at := c.left(), c.members()[0].at
	c.parts = c.parts[:0]
	for t, job := range f.jobs {
		view, chunks := f.schedule.Share(t, at, n)
		if chunks == 0 {
			continue
		}
		if lacking != nil {
			places := make([]int, chunks)
			for k := range places {
				places[k] = lacking[view.Chunk(k)]
			}
			view = schedule.List(places)
		}
		chunk := f.cfg.Job.Chunk
		elements := (chunks-1)*chunk + min(chunk, c.elements-view.Chunk(chunks-1)*chunk)
		c.addParts(t, job, view, chunks, elements)
	}
}

// addParts adds the call's parts on one tree: one, or in a call of all ranks one on each card with workers.
func (c *forestCall) addParts(tree int, job *Job, view schedule.View, chunks, elements int) {
	add := func(f *flow, inputs [][]byte, stores bool) {
		k := newCall(f)
		k.view = view
		if c.held != nil {
			k.marks = make([]bool, chunks)
		}
		c.parts = append(c.parts, &forestPart{tree: tree, job: job, call: k, view: view, elements: elements, inputs: inputs, stores: stores})
	}
	w := job.tree()
	switch {
	case c.member != nil:
		add(job.Member(c.member.rank).own, c.inputs, true)
	case w == nil:
		add(job.whole, c.inputs, true)
	default:
		keeper, copied := w.keeper(c.dst, c.inputs)
		if copied && c.sum == nil {
			c.sum = make([]byte, len(c.dst))
		}
		for i, part := range w.manned() {
			add(part.whole, w.tree.inputsAt(i, c.inputs), i == keeper)
		}
	}
}

// lacking returns the chunks without a sum; nil means all.
func (c *forestCall) lacking() []int {
	if !slices.Contains(c.held, true) {
		return nil
	}
	lacking := []int{}
	for i, held := range c.held {
		if !held {
			lacking = append(lacking, i)
		}
	}
	return lacking
}

// begin starts the parts of a call that has been laid out and admitted. The caller holds mu.
func (f *Forest) begin(c *forestCall) {
	n := c.left()
	for _, m := range c.members() {
		m.at += n
	}
	if !slices.Contains(f.live, c) {
		f.live = append(f.live, c)
	}
	f.running++
	sum := c.dst
	if c.sum != nil {
		sum = c.sum
	}
	for _, p := range c.parts {
		var dst []byte
		if p.stores {
			dst = sum
		}
		p.call.kin = f.kinOf(c)
		p.err = p.call.start(c.opts.of(c, p), dst, p.elements, p.inputs...)
	}
}

// left returns the number of chunks without a sum.
func (c *forestCall) left() int {
	n := c.chunks
	for _, held := range c.held {
		if held {
			n--
		}
	}
	return n
}

// kinOf returns the flows of a call's members on all trees.
func (f *Forest) kinOf(c *forestCall) (kin []*flow) {
	for t, job := range f.jobs {
		switch {
		case !f.alive[t]:
		case c.member == nil:
			kin = append(kin, job.wholes()...)
		default:
			kin = append(kin, job.Member(c.member.rank).own)
		}
	}
	return kin
}

// of returns the options of a part. The call itself reports progress and makes means.
func (o reduceOptions) of(c *forestCall, p *forestPart) reduceOptions {
	if o.progress == nil {
		return o
	}
	o.progress = nil
	if p.stores {
		o.progress = func(done, _ int) { c.progress.note(c, p, done) }
	}
	return o
}

// forestProgress adds up what the parts of a call report.
type forestProgress struct {
	mu     sync.Mutex
	done   map[*forestPart]int // of parts of this epoch
	before int                 // elements with sums of earlier epochs
	last   int
	begun  bool
}

func (p *forestProgress) note(c *forestCall, part *forestPart, done int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done == nil {
		p.done = map[*forestPart]int{}
	}
	p.done[part] = done
	sum := p.before
	for _, n := range p.done {
		sum += n
	}
	if p.begun && sum <= p.last {
		return
	}
	p.begun, p.last = true, sum
	c.opts.progress(sum, c.elements)
}

// newEpoch begins to count the parts of another epoch, when before elements have their sums.
func (p *forestProgress) newEpoch(before int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.before = nil, before
}

// conclude waits for the outcome of the call. When it returns, nobody uses the caller's arrays.
func (c *forestCall) conclude(ctx context.Context) error {
	f := c.forest
	for {
		err := c.wait(ctx)
		again, err := f.settle(c, err)
		if err != nil {
			return err
		}
		if !again {
			break
		}
	}
	if c.sum != nil {
		copy(c.dst, c.sum)
	}
	if c.opts.progress != nil && c.progress.last < c.elements { // other members' sums were the last
		c.opts.progress(c.elements, c.elements)
	}
	if !c.opts.mean {
		return nil
	}
	return f.info.Mean(c.dst, f.workers, c.partials()...)
}

// wait waits for all parts. It returns the error of the part that failed first, or that of a dead
// tree.
func (c *forestCall) wait(ctx context.Context) error {
	var mu sync.Mutex
	var first error
	note := func(p *forestPart, err error) {
		if err == nil {
			return
		}
		c.forest.partFailed(p, err)
		mu.Lock()
		defer mu.Unlock()
		if first == nil || isEnded(first) && !isEnded(err) {
			first = err
		}
	}
	var parts sync.WaitGroup
	for i, p := range c.parts {
		run := func() {
			if p.err != nil {
				note(p, p.err)
				return
			}
			note(p, p.call.run(ctx, c.opts.of(c, p)))
		}
		if i < len(c.parts)-1 {
			parts.Go(run)
		} else {
			run()
		}
	}
	parts.Wait()
	return first
}

// isEnded reports whether err says no more than that a job was over.
func isEnded(err error) bool {
	var ended *EndedError
	return errors.As(err, &ended)
}

// isDeath reports whether err means that a card is gone, or silent, or has lost its job.
func isDeath(err error) bool {
	var died *DiedError
	var silent *TimeoutError
	var refused *RefusedError
	switch {
	case errors.As(err, &died):
		return true
	case errors.As(err, &silent):
		return silent.Err == nil
	case errors.As(err, &refused):
		return refused.Code == wire.CodeBadJob || refused.Code == wire.CodeBadEpoch
	}
	return false
}

// partFailed ends the forest, or stops it to move chunks, if the job of the part has ended. It goes on
// for the other members if the part's member alone has left.
func (f *Forest) partFailed(p *forestPart, err error) {
	ended, why := p.job.over()
	if !ended {
		return
	}
	f.mu.Lock()
	drop := false
	switch {
	case f.jobs[p.tree] != p.job || f.err != nil || f.stopping && errors.Is(why, errMoves):
	case f.cfg.Move && isDeath(cmp.Or(why, err)):
		f.stop(cmp.Or(why, err))
	default:
		drop = f.endLocked(cmp.Or(why, err))
	}
	f.mu.Unlock()
	if drop {
		f.drop()
	}
}

// settle takes the outcome of a call's parts. It reports whether the call goes on in another epoch.
func (f *Forest) settle(c *forestCall, err error) (again bool, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	generation := f.generation
	f.running--
	f.changed.Broadcast()
	c.keep()
	if err == nil || !f.stopping && f.err == nil {
		f.leave(c)
		if err == nil {
			f.noteComplete(c)
		}
		return false, err
	}
	for f.err == nil && f.generation == generation {
		if !f.moveIfIdle() {
			f.changed.Wait()
		}
	}
	if f.err != nil {
		f.leave(c)
		return false, err
	}
	return true, nil
}

// noteComplete counts the members that have all sums of a reduction.
func (f *Forest) noteComplete(c *forestCall) {
	if f.complete[c.number]++; f.complete[c.number] == len(f.members) || c.member == nil {
		delete(f.complete, c.number)
	}
}

// leave forgets a call that is over.
func (f *Forest) leave(c *forestCall) {
	i := slices.Index(f.live, c)
	f.live = slices.Delete(f.live, i, i+1)
}

// keep notes which chunks have their sums.
func (c *forestCall) keep() {
	if c.held == nil {
		return
	}
	for _, p := range c.parts {
		for k, held := range p.call.marks {
			if held {
				c.held[p.view.Chunk(k)] = true
			}
		}
	}
}

// partials returns which sums of the call lack members, in the order of the elements.
func (c *forestCall) partials() []Partial {
	var all []Partial
	for _, p := range c.parts {
		all = append(all, p.call.partials()...)
	}
	slices.SortFunc(all, func(a, b Partial) int { return cmp.Compare(a.From, b.From) })
	return all
}

// newForestCall returns a call of a member, or with nil of all.
func (f *Forest) newCall(m *ForestMember, opts []ReduceOption, dst []byte, elements int, inputs ...[]byte) *forestCall {
	c := &forestCall{forest: f, member: m, opts: optionsOf(opts), dst: dst, inputs: inputs, elements: elements}
	c.chunks = (elements + f.cfg.Job.Chunk - 1) / f.cfg.Job.Chunk
	if f.cfg.Move {
		c.held = make([]bool, c.chunks)
	}
	return c
}

// reduce starts the call and waits for its outcome.
func (c *forestCall) reduce(ctx context.Context, w *forestWaiter) error {
	f := c.forest
	f.mu.Lock()
	if w.busy {
		f.mu.Unlock()
		return &InputError{"reduction", c.name() + " is in progress; a member waits for one call at a time, and Start queues several"}
	}
	w.busy, w.last = true, nil
	f.mu.Unlock()
	err := f.start(ctx, c)
	if err == nil {
		err = c.conclude(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w.busy, w.last = false, c
	return err
}

// goOn starts the call and lets a goroutine wait for its outcome.
func (c *forestCall) goOn(ctx context.Context, arrived func()) (*Pending, error) {
	if err := c.forest.start(ctx, c); err != nil {
		return nil, err
	}
	p := &Pending{tree: c, done: make(chan struct{})}
	go func() {
		p.err = c.conclude(ctx)
		arrived()
		close(p.done)
	}()
	return p, nil
}

// job returns the first tree's job, for the checks of arrays.
func (f *Forest) job() *Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[0]
}

// Reduce is Job.Reduce.
func (f *Forest) Reduce(ctx context.Context, dst []float32, inputs [][]float32, opts ...ReduceOption) error {
	raw, err := appendInputs[float32](nil, f.job(), inputs)
	if err != nil {
		return err
	}
	err = f.ReduceBytes(ctx, memory(dst), raw, opts...)
	arrived(dst)
	return err
}

// ReduceBytes is Job.ReduceBytes.
func (f *Forest) ReduceBytes(ctx context.Context, dst []byte, inputs [][]byte, opts ...ReduceOption) error {
	n, err := f.checkArrays(dst, inputs)
	if err != nil {
		return err
	}
	return f.newCall(nil, opts, dst, n, inputs...).reduce(ctx, &f.whole)
}

// StartReduce is Job.StartReduce. It waits while the chunks of a dead tree move.
func (f *Forest) StartReduce(ctx context.Context, dst []float32, inputs [][]float32, opts ...ReduceOption) (*Pending, error) {
	raw, err := appendInputs[float32](nil, f.job(), inputs)
	if err != nil {
		return nil, err
	}
	return f.startReduce(ctx, memory(dst), raw, func() { arrived(dst) }, opts)
}

// StartReduceBytes is Job.StartReduceBytes. It waits while the chunks of a dead tree move.
func (f *Forest) StartReduceBytes(ctx context.Context, dst []byte, inputs [][]byte, opts ...ReduceOption) (*Pending, error) {
	return f.startReduce(ctx, dst, inputs, func() {}, opts)
}

func (f *Forest) startReduce(ctx context.Context, dst []byte, inputs [][]byte, arrived func(), opts []ReduceOption) (*Pending, error) {
	n, err := f.checkArrays(dst, inputs)
	if err != nil {
		return nil, err
	}
	return f.newCall(nil, opts, dst, n, inputs...).goOn(ctx, arrived)
}

func (f *Forest) checkArrays(dst []byte, inputs [][]byte) (int, error) {
	return f.job().checkArraysOf(f.workers, dst, inputs)
}

// Partials returns which sums of the last Reduce lack members, as Job.Partials does.
func (f *Forest) Partials() []Partial { return f.partialsOf(&f.whole) }

// Partials returns which sums of the last AllReduce lack members, as Member.Partials does.
func (m *ForestMember) Partials() []Partial { return m.forest.partialsOf(&m.waiter) }

func (f *Forest) partialsOf(w *forestWaiter) []Partial {
	f.mu.Lock()
	c := w.last
	f.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.partials()
}

// AllReduce is Member.AllReduce.
func (m *ForestMember) AllReduce(ctx context.Context, buf []float32, opts ...ReduceOption) error {
	if err := m.checkTypes(); err != nil {
		return err
	}
	err := m.AllReduceBytes(ctx, memory(buf), travelling(buf), opts...)
	arrived(buf)
	return err
}

// AllReduceBytes is Member.AllReduceBytes.
func (m *ForestMember) AllReduceBytes(ctx context.Context, dst, src []byte, opts ...ReduceOption) error {
	n, err := m.checkBuffers(dst, src)
	if err != nil {
		return err
	}
	return m.forest.newCall(m, opts, dst, n, src).reduce(ctx, &m.waiter)
}

// StartAllReduce is Member.StartAllReduce. It waits while the chunks of a dead tree move.
func (m *ForestMember) StartAllReduce(ctx context.Context, buf []float32, opts ...ReduceOption) (*Pending, error) {
	if err := m.checkTypes(); err != nil {
		return nil, err
	}
	return m.startAllReduce(ctx, memory(buf), travelling(buf), func() { arrived(buf) }, opts)
}

// StartAllReduceBytes is Member.StartAllReduceBytes. It waits while the chunks of a dead tree move.
func (m *ForestMember) StartAllReduceBytes(ctx context.Context, dst, src []byte, opts ...ReduceOption) (*Pending, error) {
	return m.startAllReduce(ctx, dst, src, func() {}, opts)
}

func (m *ForestMember) startAllReduce(ctx context.Context, dst, src []byte, arrived func(), opts []ReduceOption) (*Pending, error) {
	n, err := m.checkBuffers(dst, src)
	if err != nil {
		return nil, err
	}
	return m.forest.newCall(m, opts, dst, n, src).goOn(ctx, arrived)
}

// onFirstTree returns the member's like on the first tree, for the checks of buffers.
func (m *ForestMember) onFirstTree() *Member {
	m.forest.mu.Lock()
	defer m.forest.mu.Unlock()
	return m.forest.jobs[0].Member(m.rank)
}

func (m *ForestMember) checkTypes() error {
	return checkTypes[float32, float32](m.onFirstTree())
}

func (m *ForestMember) checkBuffers(dst, src []byte) (int, error) {
	return m.onFirstTree().checkBuffers(dst, src)
}
