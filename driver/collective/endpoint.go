package collective

// This member's end of the group: its connections, and the end of the group.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// endpoint is this member's end of a group.
type endpoint struct {
	group    Group
	opts     options
	listener net.Listener // nil in a group of one
	hellos   chan struct{}
	peers    []*peer

	life    context.Context // until the group has ended, or Close has
	die     context.CancelFunc
	dialing context.Context // until Close begins, or the group has ended
	noDials context.CancelFunc
	hearing context.Context // hellos, until Close ends
	shut    context.CancelFunc
	wg      sync.WaitGroup // of all goroutines
	left    chan struct{}  // closed when Close has left

	mu      sync.Mutex
	cause   error // why the group ended
	closing bool  // Close has begun to say bye
	closed  bool  // Close was called
	calls   uint64
	last    *Pending // call
	current *call
	changed chan struct{} // closed and replaced when a call starts
	stats   Stats
}

// peer is another member. Its fields are guarded by endpoint.mu.
type peer struct {
	rank    int
	out, in *conn
	came    chan struct{} // closed when in is set
	left    chan struct{} // closed when the member has left
	gone    bool          // left is closed
	broken  bool          // in has ended without bye
	called  uint64        // the last call of which a message was sent
}

// openEndpoint listens, and dials nobody yet.
func openEndpoint(ctx context.Context, g Group, opts options) (*endpoint, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	g.Members = slices.Clone(g.Members) // the program may make the next generation's list in its own
	e := &endpoint{group: g, opts: opts, hellos: make(chan struct{}, 2*g.Size()+16), changed: make(chan struct{}), left: make(chan struct{})}
	for r := range g.Members {
		e.peers = append(e.peers, &peer{rank: r, came: make(chan struct{}), left: make(chan struct{})})
	}
	if g.Size() > 1 {
		l, err := opts.network.listen(ctx, g.Members[g.Rank].Address)
		if err != nil {
			return nil, fmt.Errorf("%s cannot listen at %s: %w", g.name(g.Rank), g.Members[g.Rank].Address, err)
		}
		e.listener = l
	}
	background := context.Background()
	e.life, e.die = context.WithCancel(background)
	e.dialing, e.noDials = context.WithCancel(e.life)
	e.hearing, e.shut = context.WithCancel(background)
	if e.listener != nil {
		e.wg.Go(e.accept)
	}
	return e, nil
}

// accept takes connections until the listener is closed.
func (e *endpoint) accept() {
	for {
		raw, err := e.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF):
			return
		case err != nil: // as when this process has too many open files
			e.opts.warn(fmt.Sprintf("%s cannot accept a connection: %v", e.group.name(e.group.Rank), err))
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-e.hearing.Done():
				return
			}
		}
		select {
		case e.hellos <- struct{}{}:
			e.wg.Go(func() { e.welcome(raw); <-e.hellos })
		default:
			raw.Close()
		}
	}
}

// welcome decides about a connection that was accepted.
func (e *endpoint) welcome(raw net.Conn) {
	stop := context.AfterFunc(e.hearing, func() { raw.Close() })
	defer stop()
	_ = raw.SetDeadline(time.Now().Add(helloTime))
	var c *conn
	_, err := e.group.receive(raw, func(rank int) (r Reason, why []byte) {
		c, r, why = e.admit(rank, stop)
		if c != nil {
			_ = raw.SetDeadline(time.Now().Add(farewellTime))
		}
		return r, why
	})
	switch {
	case err == nil:
		_ = raw.SetDeadline(time.Time{})
		c.start(raw)
		return
	case c != nil: // went away after the welcome
		e.ended(c, err)
		close(c.over)
		c.drop()
	case errors.As(err, new(refusal)):
		e.opts.warn(fmt.Sprintf("%s: %v", e.group.name(e.group.Rank), err))
	}
	raw.Close()
}

// admit gives a proven member its place. It calls keep before the group can end: the connection stays then,
// and brings the reason.
func (e *endpoint) admit(rank int, keep func() bool) (*conn, Reason, []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peers[rank]
	switch {
	case e.cause != nil:
		return nil, reasonEnded, encodeCause(&e.group, e.cause)
	case e.closing:
		return nil, reasonEnded, encodeCause(&e.group, e.lost(e.group.Rank, errBye))
	case p.in != nil:
		return nil, ReasonTwice, fmt.Appendf(nil, "%s is connected already", e.group.name(rank))
	}
	p.in = newConn(e, rank, true)
	keep()
	close(p.came)
	return p.in, welcome, nil
}

// lost returns the error for a member whose connection ended with err.
func (e *endpoint) lost(rank int, err error) *LostError {
	text := err.Error()
	var late *lateError
	var op *net.OpError
	switch {
	case errors.As(err, &late):
	case errors.Is(err, os.ErrDeadlineExceeded):
		text = fmt.Sprintf("it was silent for %s", e.opts.silence)
	case errors.Is(err, errBye):
		text = textLeft
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		text = "its connection has ended"
	case errors.As(err, &op):
		text = op.Err.Error()
	}
	return &LostError{rank, e.group.Members[rank].ID, text, e.group.Rank, late != nil}
}

// lateError means that a member could not be reached within the connect time.
type lateError struct {
	address string
	within  time.Duration
	err     error
}

func (e *lateError) Error() string {
	return fmt.Sprintf("it cannot be reached at %s within %s: %v", e.address, e.within, e.err)
}

// out returns the connection for messages to a rank. It dials if there is none.
func (e *endpoint) out(rank int) *conn {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outLocked(rank)
}

func (e *endpoint) outLocked(rank int) *conn {
	p := e.peers[rank]
	if p.out == nil {
		c := newConn(e, rank, false)
		p.out = c
		e.wg.Go(func() { e.dial(c) })
	}
	return p.out
}

// dial connects c.
func (e *endpoint) dial(c *conn) {
	raw, err := e.connect(e.dialing, c.rank, e.opts.connect)
	if err == nil {
		c.start(raw)
		return
	}
	close(c.over)
	e.mu.Lock()
	p := e.peers[c.rank]
	p.out = nil
	needed := c.drop()
	arrives := p.in != nil && !p.broken
	e.mu.Unlock()
	if arrives && !needed {
		return // it may have left after its last call
	}
	if e.dialing.Err() != nil {
		return
	}
	switch err := err.(type) {
	case *toldError:
		e.fail(err.error, true)
	case *RefusedError: // this member is no member: it has nothing to tell
		e.fail(err, true)
	default:
		e.fail(e.lost(c.rank, err), false)
	}
}

// connect dials a rank until it listens, at most for a time.
func (e *endpoint) connect(ctx context.Context, rank int, atMost time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		raw, err := e.hail(ctx, rank)
		var refused *RefusedError
		var told *toldError
		var lies *ProtocolError
		if err == nil || errors.As(err, &refused) || errors.As(err, &told) || errors.As(err, &lies) {
			return raw, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, &lateError{e.group.Members[rank].Address, atMost, err}
		}
	}
}

// hail dials a rank once and exchanges hellos.
func (e *endpoint) hail(ctx context.Context, rank int) (net.Conn, error) {
	raw, err := e.opts.network.dial(ctx, e.group.Members[rank].Address)
	if err != nil {
		return nil, err
	}
	// When ctx ends, the hellos may still be exchanged: else the other end had a broken connection and no
	// reason.
	_ = raw.SetDeadline(time.Now().Add(2 * helloTime))
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now().Add(farewellTime)) })
	err = e.group.greet(raw, rank)
	if stop() {
		_ = raw.SetDeadline(time.Time{})
	}
	if err != nil {
		raw.Close()
		return nil, err
	}
	return raw, nil
}

// ended takes notice of the end of a connection.
func (e *endpoint) ended(c *conn, err error) {
	e.mu.Lock()
	p := e.peers[c.rank]
	over := e.cause != nil || e.closing
	if err == errBye && !p.gone {
		p.gone = true
		close(p.left)
	}
	gone := p.gone
	p.broken = p.broken || c.data && err != errBye
	e.mu.Unlock()
	if over || err == errBye {
		return
	}
	switch err := err.(type) {
	case *abortError:
		e.fail(err.cause, true)
		return
	case *ProtocolError, *DifferError:
		e.fail(err, false)
		return
	}
	lost := e.lost(c.rank, err)
	if !c.data || gone {
		e.fail(lost, false)
		return
	}
	// The connection in the other direction brings the reason, or ends as well.
	out := e.out(c.rank)
	e.wg.Go(func() { e.awaitReason(out, lost) })
}

// awaitReason fails the group when out has not brought the reason for the loss of its member.
func (e *endpoint) awaitReason(out *conn, lost *LostError) {
	select {
	case <-time.After(graceTime):
	case <-e.life.Done():
		return
	}
	if out.established() { // it ends after the silence time at the latest
		select {
		case <-out.over:
		case <-e.life.Done():
		}
	}
	e.fail(lost, false)
}

// fail ends the group. heard means that another member told the cause.
func (e *endpoint) fail(err error, heard bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil || e.closing {
		return
	}
	e.cause = err
	e.die()
	for _, p := range e.peers {
		if p.rank == e.group.Rank || heard || p.gone || p.in != nil || p.out != nil && p.out.established() {
			continue
		}
		e.wg.Go(func() { e.tell(p.rank) })
	}
}

func (c *conn) established() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Conn != nil
}

// tell sends an abort to a rank that has no connection with this member.
func (e *endpoint) tell(rank int) {
	ctx, cancel := context.WithTimeout(context.Background(), farewellTime)
	defer cancel()
	raw, err := e.hail(ctx, rank)
	if err != nil {
		return // not up yet: it will dial, and be told
	}
	defer raw.Close()
	c := newConn(e, rank, false)
	c.Conn = raw
	c.farewell()
	_, _ = io.Copy(io.Discard, raw) // until it has read the abort; c.end has set a deadline
}

// abort returns the payload of an abort, or nil when the group has not failed.
func (e *endpoint) abort() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause == nil {
		return nil
	}
	return encodeCause(&e.group, e.cause)
}

// endedError returns the error of calls after the end of the group or Close.
func (e *endpoint) endedErrorLocked() error {
	switch {
	case e.cause != nil:
		return &EndedError{e.group.Name, e.group.Generation, e.cause}
	case e.closed:
		return ErrClosed
	}
	return nil
}

// close leaves the group, when all calls are over. Once is enough: further calls wait for the first.
func (e *endpoint) close(ctx context.Context) error {
	e.mu.Lock()
	again, last := e.closed, e.last
	e.closed = true
	e.mu.Unlock()
	if again {
		select {
		case <-e.left:
			return nil
		case <-ctx.Done():
			return &StoppedError{What: "wait for the close of the group", Rank: -1, Err: ctx.Err()}
		}
	}
	defer close(e.left)
	if last != nil {
		select {
		case <-last.done:
		case <-ctx.Done():
			e.fail(&StoppedError{What: "close of the group", Rank: -1, Err: ctx.Err()}, false)
			<-last.done
		}
	}
	late := e.sayBye(ctx)
	e.die()
	e.shut()
	if e.listener != nil {
		e.listener.Close()
	}
	e.wg.Wait() // for farewells, which take farewellTime at the most
	if len(late) > 0 {
		return &StoppedError{What: "close of the group", Rank: late[0], ID: e.group.Members[late[0]].ID, Err: ctx.Err()}
	}
	return nil
}

// sayBye ends every connection in order. It returns the ranks that had not ended theirs before ctx did.
func (e *endpoint) sayBye(ctx context.Context) (late []int) {
	e.mu.Lock()
	if e.cause != nil {
		e.mu.Unlock()
		return nil
	}
	e.closing = true
	var conns []*conn
	for _, p := range e.peers {
		for _, c := range []*conn{p.out, p.in} {
			if c != nil && c.established() {
				conns = append(conns, c)
			}
		}
	}
	e.mu.Unlock()
	e.noDials()
	for _, c := range conns {
		c.send(outgoing{header: header{kind: kindBye}})
	}
	for _, c := range conns {
		select {
		case <-c.over:
		case <-ctx.Done():
			late = append(late, c.rank)
		}
	}
	return late
}
