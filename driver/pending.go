package driver

// Reductions that the caller does not wait for at once. They queue in the order of their starts,
// and the window stays full across them.

import "context"

// Pending is a reduction that was started. It goes on by itself, and its arrays are in use until it
// is over.
type Pending struct {
	call *call         // of a job; else nil
	tree *forestCall   // of several trees; else nil
	done chan struct{} // closed when err is set
	err  error
}

// StartReduce is Job.Reduce that returns as soon as the reduction is queued behind those of all
// ranks that were started before. ctx is that of the whole reduction.
//
// Errors: InputError, EndedError, EvictedError. Others come from Pending.Wait.
func (j *Job) StartReduce(ctx context.Context, dst []float32, inputs [][]float32, opts ...ReduceOption) (*Pending, error) {
	return StartReduce(ctx, j, dst, inputs, opts...)
}

// StartReduce is Job.StartReduce for a card of any format, as Reduce is Job.Reduce.
func StartReduce[R, E Element](ctx context.Context, j *Job, dst []R, inputs [][]E, opts ...ReduceOption) (*Pending, error) {
	raw, err := appendInputs[R](nil, j, inputs)
	if err != nil {
		return nil, err
	}
	return j.startReduce(ctx, memory(dst), raw, func() { arrived(dst) }, opts)
}

// StartReduceBytes is Job.StartReduce on encoded arrays, as in ReduceBytes.
func (j *Job) StartReduceBytes(ctx context.Context, dst []byte, inputs [][]byte, opts ...ReduceOption) (*Pending, error) {
	return j.startReduce(ctx, dst, inputs, func() {}, opts)
}

func (j *Job) startReduce(ctx context.Context, dst []byte, inputs [][]byte, arrived func(), opts []ReduceOption) (*Pending, error) {
	n, err := j.checkArrays(dst, inputs)
	if err != nil {
		return nil, err
	}
	if w := j.tree(); w != nil {
		return w.startPending(ctx, optionsOf(opts), arrived, dst, n, inputs)
	}
	return newCall(j.whole).goOn(ctx, optionsOf(opts), arrived, dst, n, inputs...)
}

// StartAllReduce is AllReduce that returns as soon as the reduction is queued behind those that
// this member started before. The members start theirs in the same order. ctx is that of the whole
// reduction.
//
// Errors: InputError, EndedError, EvictedError. Others come from Pending.Wait.
func (m *Member) StartAllReduce(ctx context.Context, buf []float32, opts ...ReduceOption) (*Pending, error) {
	return StartAllReduce(ctx, m, buf, buf, opts...)
}

// StartAllReduce is Member.StartAllReduce for a card of any format, as AllReduce is
// Member.AllReduce.
func StartAllReduce[R, E Element](ctx context.Context, m *Member, dst []R, src []E, opts ...ReduceOption) (*Pending, error) {
	if err := checkTypes[R, E](m); err != nil {
		return nil, err
	}
	return m.startAllReduce(ctx, memory(dst), travelling(src), func() { arrived(dst) }, opts)
}

// StartAllReduceBytes is StartAllReduce on encoded arrays, as in ReduceBytes.
func (m *Member) StartAllReduceBytes(ctx context.Context, dst, src []byte, opts ...ReduceOption) (*Pending, error) {
	return m.startAllReduce(ctx, dst, src, func() {}, opts)
}

func (m *Member) startAllReduce(ctx context.Context, dst, src []byte, arrived func(), opts []ReduceOption) (*Pending, error) {
	n, err := m.checkBuffers(dst, src)
	if err != nil {
		return nil, err
	}
	return newCall(m.own).goOn(ctx, optionsOf(opts), arrived, dst, n, src)
}

// goOn starts the call and lets a goroutine wait for its outcome.
func (k *call) goOn(ctx context.Context, o reduceOptions, arrived func(), dst []byte, elements int, inputs ...[]byte) (*Pending, error) {
	if err := k.start(o, dst, elements, inputs...); err != nil {
		return nil, err
	}
	p := &Pending{call: k, done: make(chan struct{})}
	go func() {
		p.err = k.conclude(ctx, o, dst)
		arrived()
		close(p.done)
	}()
	return p, nil
}

// Done returns a channel that is closed when the reduction is over.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits until the reduction is over and returns its error, one of Reduce's. When ctx ends
// before, Wait returns a StoppedError, and the reduction goes on. Any number of goroutines may
// wait.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		if p.tree != nil {
			return &StoppedError{Card: p.tree.forest.names(), What: "wait for a reduction", Err: ctx.Err()}
		}
		j := p.call.flow.job
		return &StoppedError{Card: j.card.name, What: "wait for a reduction", Err: ctx.Err(), job: j.name}
	}
}

// Partials returns which sums of the reduction lack members, as Job.Partials does. It returns none
// before the reduction is over.
func (p *Pending) Partials() []Partial {
	select {
	case <-p.done:
		if p.tree != nil {
			return p.tree.partials()
		}
		return p.call.partials()
	default:
		return nil
	}
}
