package collective

// A call: its place in the queue, and how algorithms send and receive.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"tributary/driver/element"
)

// Pending is a call that was started. It goes on by itself, and its arrays are in use until it is over.
type Pending struct {
	done chan struct{} // closed when err is set
	err  error
	what string
}

// Done returns a channel that is closed when the call is over. After a failure elsewhere that may be only when
// this member has made a later call, for which others have sent data before the failure (SPEC.md, section 10).
func (p *Pending) Done() <-chan struct{} { return p.done }

// Err returns the call's error when it is over, and nil before.
func (p *Pending) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Wait waits until the call is over and returns its error. When ctx ends before, Wait returns a
// StoppedError, and the call goes on. Any number of goroutines may wait.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return &StoppedError{What: "wait for " + p.what, Rank: -1, Err: ctx.Err()}
	}
}

// call is one call of this member.
type call struct {
	*endpoint
	description
	number   uint64
	size     int // bytes of an element
	dst, src []byte
	ctx      context.Context // ends with the program's, or with the group
	stop     context.CancelCauseFunc
	waiting  atomic.Int64   // the rank that recv waits for; -1 if none
	sends    sync.WaitGroup // that use arrays
	unsent   atomic.Int64   // the first rank to which a message could not be sent; -1 if none
}

// start queues a call.
func (e *endpoint) start(ctx context.Context, d description, dst, src []byte, run func(*call) error) (*Pending, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.endedErrorLocked(); err != nil {
		return nil, err
	}
	e.calls++
	c := &call{endpoint: e, description: d, number: e.calls, size: element.Size(d.format), dst: dst, src: src}
	c.waiting.Store(-1)
	c.unsent.Store(-1)
	p := &Pending{done: make(chan struct{}), what: fmt.Sprintf("%s %d", d.operation, c.number)}
	before := e.last
	e.last = p
	e.wg.Go(func() {
		defer close(p.done)
		if before != nil {
			select {
			case <-before.done:
			case <-ctx.Done():
				e.fail(&StoppedError{What: p.what + ", before its start", Rank: -1, Err: ctx.Err()}, false)
				<-before.done
			}
		}
		p.err = c.run(ctx, p.what, run)
	})
	return p, nil
}

// run runs the call when it is its turn.
func (c *call) run(ctx context.Context, what string, run func(*call) error) error {
	e := c.endpoint
	e.mu.Lock()
	if err := e.cause; err != nil {
		defer e.mu.Unlock()
		if own := (*StoppedError)(nil); errors.As(err, &own) && own.Err == ctx.Err() {
			return err
		}
		return e.endedErrorLocked()
	}
	e.current = c
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()

	c.ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	defer context.AfterFunc(e.life, func() { c.stop(nil) })()
	err := run(c)
	if err == nil {
		err = c.flush()
	}
	if err != nil {
		if ctx.Err() != nil && e.life.Err() == nil {
			rank := int(c.waiting.Load())
			stopped := &StoppedError{What: what, Rank: rank, Err: ctx.Err()}
			if rank >= 0 {
				stopped.ID = e.group.Members[rank].ID
			}
			err = stopped
		}
		e.fail(err, false)
	}
	c.sends.Wait() // the arrays are the program's again
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Calls++
	if err != nil {
		return cmp.Or(e.cause, err)
	}
	return nil
}

// errNoCall means that a call will not start, because the member leaves.
var errNoCall = errors.New("the member leaves before that call")

// awaitCall waits until call n has started, and returns it. It returns nil when the call is an earlier
// one, and an error when the group ends.
func (e *endpoint) awaitCall(n uint64) (*call, error) {
	for {
		e.mu.Lock()
		current, changed, closing := e.current, e.changed, e.closing
		e.mu.Unlock()
		switch {
		case current != nil && current.number == n:
			return current, nil
		case current != nil && current.number > n, n == 0:
			return nil, nil
		case e.life.Err() != nil:
			return nil, e.life.Err()
		case closing:
			return nil, errNoCall
		}
		select {
		case <-changed:
		case <-e.dialing.Done():
		}
	}
}

// own returns this member's rank.
func (c *call) own() int { return c.group.Rank }

// piece returns piece p of the call.
func (c *call) piece(p int) (from, to int) { return Piece(p, c.group.Size(), int(c.length)) }

// at returns elements [from, to) of an array of the call's length.
func (c *call) at(array []byte, from, to int) []byte { return array[from*c.size : to*c.size] }

// chunks cuts elements [from, to) into chunks. No elements are one chunk without elements.
func (c *call) chunks(from, to int) iter.Seq2[int, int] {
	most := maxPayload / c.size
	return func(yield func(int, int) bool) {
		for first := from; ; first += most {
			last := min(first+most, to)
			if !yield(first, last) || last == to {
				return
			}
		}
	}
}

// send queues elements of this member for a rank: payload is elements first and on. It must not change
// until the call is over, or until a message has come that depends on it.
func (c *call) send(rank int, phase uint8, step, first int, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.peers[rank].gone {
		return c.lost(rank, errBye)
	}
	c.stats.Sent += uint64(len(payload))
	c.peers[rank].called = c.number
	c.sends.Add(1)
	h := header{kind: kindData, description: c.description, phase: phase, call: c.number, first: uint64(first), step: uint32(step)}
	c.outLocked(rank).send(outgoing{h, payload, func(sent bool) {
		if !sent {
			c.unsent.CompareAndSwap(-1, int64(rank))
		}
		c.sends.Done()
	}})
	return nil
}

// recv receives elements [first, last) from a rank. The caller releases the message.
func (c *call) recv(rank int, phase uint8, step, first, last int) (*message, error) {
	c.waiting.Store(int64(rank))
	m, err := c.next(rank)
	if err != nil {
		return nil, err
	}
	c.waiting.Store(-1)
	if m.call != c.number || m.phase != phase || m.step != uint32(step) || m.first != uint64(first) || len(m.payload) != (last-first)*c.size {
		m.release()
		return nil, &ProtocolError{rank, c.group.Members[rank].ID, fmt.Sprintf(
			"phase %d, step %d, element %d, %d bytes of call %d came instead of phase %d, step %d, element %d, %d bytes of call %d",
			m.phase, m.step, m.first, m.bytes, m.call, phase, step, first, (last-first)*c.size, c.number)}
	}
	c.mu.Lock()
	c.stats.Chunks++
	c.stats.Received += uint64(len(m.payload))
	c.mu.Unlock()
	return m, nil
}

// next receives the next message from a rank.
func (c *call) next(rank int) (*message, error) {
	p := c.peers[rank]
	c.announce(rank)
	select {
	case <-p.came:
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	case <-p.left:
		select {
		case <-p.came: // its data came first
		default:
			return nil, c.lost(rank, errBye)
		}
	}
	select {
	case m := <-p.in.inbox:
		return m, nil
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	case <-p.in.over:
		c.mu.Lock()
		gone := p.gone
		c.mu.Unlock()
		if gone {
			return nil, c.lost(rank, errBye)
		}
	}
	<-c.ctx.Done() // the connection broke, and its reason is being found out
	return nil, c.ctx.Err()
}

// announce sends the call's description to a rank that this member waits for, unless a message of the
// call was sent to it before. It also makes the connection by which this member notices its death.
func (c *call) announce(rank int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[rank]
	if p.called == c.number || p.gone {
		return
	}
	p.called = c.number
	c.outLocked(rank).send(outgoing{header: header{kind: kindCall, description: c.description, call: c.number}})
}

// stepped counts a step.
func (c *call) stepped() {
	c.mu.Lock()
	c.stats.Steps++
	c.mu.Unlock()
}

// recvStep receives elements [from, to), a whole step, chunk by chunk. take must not keep the payload.
func (c *call) recvStep(rank int, phase uint8, step, from, to int, take func(first, last int, payload []byte) error) error {
	for first, last := range c.chunks(from, to) {
		m, err := c.recv(rank, phase, step, first, last)
		if err != nil {
			return err
		}
		err = take(first, last, m.payload)
		m.release()
		if err != nil {
			return err
		}
	}
	c.stepped()
	return nil
}

// sendStep queues elements [from, to) of array, a whole step.
func (c *call) sendStep(rank int, phase uint8, step, from, to int, array []byte) error {
	for first, last := range c.chunks(from, to) {
		if err := c.send(rank, phase, step, first, c.at(array, first, last)); err != nil {
			return err
		}
	}
	return nil
}

// flush waits until everything is sent, or the call's context ends. It ends soon if a message could not be sent
// to a member that has not left: the group fails then.
func (c *call) flush() error {
	sent := make(chan struct{})
	go func() {
		c.sends.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
	rank := int(c.unsent.Load())
	if rank < 0 {
		return nil
	}
	select {
	case <-c.peers[rank].left:
		return c.lost(rank, errBye)
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}
