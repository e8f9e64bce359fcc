package driver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"tributary/driver/transport"
	"tributary/driver/transport/record"
	_ "tributary/driver/transport/serial" // its scheme
	"tributary/driver/wire"
)

// closeTimeout bounds how long Close, and a call that failed, wait for the card
// to confirm that it is given up. A card that does not answer loses its owner
// with the link anyway.
const closeTimeout = time.Second

// Card is an open card. This program owns it until Close, unless it was opened
// WithReadOnly. Its methods may be called by several goroutines.
type Card struct {
	name      string
	opts      options
	info      Info
	token     uint64                                        // ours in OWNER
	record    func(transport.Conn) transport.Conn           // nil where the link is not recorded
	reopen    func(context.Context) (transport.Conn, error) // nil when only the caller can
	wake      chan struct{}                                 // of capacity 1: the writer has something to do
	done      chan struct{}                                 // closed when err is set
	carrying  sync.WaitGroup                                // carryOn, while the card is away
	searching sync.Mutex                                    // held by carryOn: the next one waits until the last has told what it found

	configuring chan struct{} // of capacity 1: the turn, held by the goroutine that sets up a job or resets the card

	closing sync.Once
	closed  error // what Close answers

	mu       sync.Mutex
	unpinned sync.Cond // pinned was cleared
	err      error     // why the card is gone
	link     *link     // the one that leads to it
	away     *away     // while the card is away and looked for; else nil
	accesses accesses
	table    []jobEntry // by the numbers of the card's jobs
	turn     int        // the number whose job sends data next
	pinned   *call      // the writer reads this call's inputs
	heard    time.Time  // when the last whole frame came
	tell     func()     // what a frame has the reader tell the program; nil: nothing
	gaveUp   time.Time  // when a call that failed gave up waiting for the card to drop its job
	past     LinkStats  // of links that are over
}

// Open opens the card called name, reads what it is, checks that this driver
// can talk to it, and takes ownership of it (unless WithReadOnly). It returns when the card is ready
// for Configure, when ctx is done, or when the card has not answered for the
// time-out.
//
// Errors: NoCardError, BusyError, VersionError, HashError, or ctx's.
func Open(ctx context.Context, name string, opts ...Option) (*Card, error) {
	o := newOptions(opts)
	needs := o.needs
	needs.Patience = o.timeout
	reopen := func(ctx context.Context) (transport.Conn, error) { return transport.Open(ctx, name, needs) }
	conn, err := reopen(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("open card %s: %w", name, err)
		}
		var taken *transport.TakenError
		if errors.As(err, &taken) {
			return nil, &BusyError{Name: name, Reason: taken.Reason}
		}
		return nil, &NoCardError{Name: name, Err: err}
	}
	return openOn(ctx, name, conn, reopen, opts)
}

// OpenConn is Open for a byte stream that the caller has opened; name is what
// errors call the card. The Card closes conn, also when OpenConn fails. Jobs of
// it cannot carry on (JobConfig.CarryOn): only the caller could open it again.
func OpenConn(ctx context.Context, name string, conn transport.Conn, opts ...Option) (*Card, error) {
	return openOn(ctx, name, conn, nil, opts)
}

func openOn(ctx context.Context, name string, conn transport.Conn, reopen func(context.Context) (transport.Conn, error), opts []Option) (*Card, error) {
	c := &Card{
		name:        name,
		reopen:      reopen,
		opts:        newOptions(opts),
		wake:        make(chan struct{}, 1),
		done:        make(chan struct{}),
		configuring: make(chan struct{}, 1),
		accesses:    newAccesses(),
	}
	c.unpinned.L = &c.mu
	if c.opts.record != nil {
		c.record = record.New(c.opts.record).Record
	}
	var token [8]byte
	if _, err := io.ReadFull(c.opts.random, token[:]); err != nil {
		conn.Close()
		return nil, fmt.Errorf("open card %s: no random token: %w", name, err)
	}
	c.token = binary.LittleEndian.Uint64(token[:]) | 1 // zero means nobody

	l := c.attach(conn)
	info, err := c.handshake(ctx, l)
	if err != nil {
		c.fail(err)
		_ = l.end()
		return nil, err
	}
	c.info = info
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table = make([]jobEntry, info.Jobs)
	return c, nil
}

// handshake finds out which card a fresh link leads to, checks that this driver can
// talk to it, and takes ownership of it (unless WithReadOnly).
func (c *Card) handshake(ctx context.Context, l *link) (Info, error) {
	info, err := c.identify(ctx, l)
	if err == nil && !c.opts.reads {
		err = c.own(ctx, l)
	}
	if err != nil {
		return Info{}, c.openError(ctx, l, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.opened = true
	return info, nil
}

// openError says in the words of Open what went wrong in it.
func (c *Card) openError(ctx context.Context, l *link, err error) error {
	c.mu.Lock()
	link := l.stats
	c.mu.Unlock()
	var died *DiedError
	var timeout *TimeoutError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("open card %s: %w", c.name, ctx.Err())
	case errors.As(err, &died) && link.BytesIn == 0 && hungUp(died.Err):
		return &BusyError{Name: c.name, Reason: "it closed the link without a byte, as a card does that another host has; if none has it, what listens there is no card"}
	case errors.As(err, &died):
		return &NoCardError{Name: c.name, Reason: "it went away while it was opened", Err: died.Err}
	case errors.As(err, &timeout) && link.Frames == 0 && link.BytesIn > 0:
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("what answers there is no Tributary card: %d bytes came and no frame among them", link.BytesIn)}
	case errors.As(err, &timeout) && link.Frames > 0:
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("%d frames came from there, but for %s no reply to %s; see whether it runs, or allow it more time", link.Frames, round(timeout.Waited), timeout.What)}
	case errors.As(err, &timeout):
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("the link is open but no card answers, for %s; see whether it runs, or allow it more time", round(timeout.Waited))}
	}
	return err
}

// hungUp tells a link that the other side closed from one that broke in
// another way. A socket that is closed with bytes unread is reset.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// own takes the card for this host.
func (c *Card) own(ctx context.Context, l *link) error {
	holder, err := c.writeOn(ctx, l, wire.RegOwner, c.token)
	if err != nil {
		return err
	}
	if holder != c.token {
		return &BusyError{Name: c.name, Reason: "another host owns it"}
	}
	return nil
}

// Info returns what the card said about itself when it was opened.
func (c *Card) Info() Info { return c.info }

// LinkStats returns what this host's end of the link has counted since Open.
func (c *Card) LinkStats() LinkStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.past.plus(c.link.stats)
}

// Reset ends the card's jobs, clears its counters and takes ownership again.
// Jobs of this Card answer EndedError from then on. It waits for a Configure or
// another Reset that is under way.
func (c *Card) Reset(ctx context.Context) error {
	if err := c.takeTurn(ctx, c.configuring, "reset"); err != nil {
		return err
	}
	defer func() { <-c.configuring }()
	c.endJobs(errReset)
	if _, err := c.WriteRegister(ctx, wire.RegReset, c.token); err != nil {
		return err
	}
	c.noteDropped()
	return c.own(ctx, c.currentLink())
}

// errReset is why a job has ended after Reset.
var errReset = errors.New("the card was reset")

// Done returns a channel that is closed when the card has died or was closed.
func (c *Card) Done() <-chan struct{} { return c.done }

// Err returns why the card is gone: nil, a DiedError, or ErrClosed.
func (c *Card) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close aborts the jobs that have not finished, gives the card up and closes its
// link. The card is ready for the next host. Calls that are under way answer
// ErrClosed. It returns what closing the link said, also when it is called
// again.
func (c *Card) Close() error {
	c.closing.Do(func() { c.closed = c.close() })
	return c.closed
}

func (c *Card) close() error {
	c.endJobs(ErrClosed)
	if !c.opts.reads && c.answers() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		// RELEASE ends the jobs as well. When it is not answered, the end of
		// the link does the same.
		_, _ = c.WriteRegister(ctx, wire.RegRelease, c.token)
		cancel()
	}
	c.fail(ErrClosed)
	c.carrying.Wait()
	return c.currentLink().end()
}

// answers says whether it makes sense to ask the card something: it is not gone,
// and nothing that was asked last was left unanswered.
func (c *Card) answers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.heard.After(c.gaveUp)
}

// takeTurn waits until nobody holds turn, and takes it for what. Receiving from
// it gives it back.
func (c *Card) takeTurn(ctx context.Context, turn chan<- struct{}, what string) error {
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return c.stopped(ctx, what)
	case <-c.done:
		return c.Err()
	}
}

// stopped is the error of what was given up because its context ended.
func (c *Card) stopped(ctx context.Context, what string) error {
	return &StoppedError{Card: c.name, What: what, Err: ctx.Err()}
}

// fail makes the card unusable because of err, if it is not so already, and
// wakes everyone who waits for it.
func (c *Card) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

func (c *Card) failLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.link.overLocked(err)
	c.endJobsLocked(err)
	c.returned()
	close(c.done)
}

// kick wakes the writer.
func (c *Card) kick() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
