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

	"tributary/driver/cpu"
	"tributary/driver/transport"
	"tributary/driver/transport/record"
	_ "tributary/driver/transport/serial" // registers its scheme
	_ "tributary/driver/transport/udp"    // registers its scheme
	"tributary/driver/wire"
)

// closeTimeout bounds how long Close, or a failed call, waits for the card to confirm the end
// of a job or of ownership. Without a reply, the end of the link has the same effect. Tests wait longer.
var closeTimeout = time.Second

// Card is an open card. This program owns it until Close, unless Open had WithReadOnly. Several
// goroutines may call its methods at once.
type Card struct {
	name      string
	opts      options
	info      Info
	shared    bool                                          // a daemon owns it, and its jobs have members elsewhere
	packets   bool                                          // its links carry packets: the card is on a network
	token     uint64                                        // this program's token in OWNER
	recorder  *record.Recorder                              // nil when the link is not recorded
	reopen    func(context.Context) (transport.Link, error) // nil for OpenConn
	arrays    *cpu.Card                                     // the card, if it takes arrays; else nil
	wake      chan struct{}                                 // capacity 1: the writer has work
	done      chan struct{}                                 // closed when err is set
	carrying  sync.WaitGroup                                // the carryOn goroutines
	parting   sync.WaitGroup                                // the ends of queue pairs
	searching sync.Mutex                                    // held by carryOn until it has reported

	configuring chan struct{} // capacity 1; held while a goroutine sets up a job or resets the card

	closing sync.Once
	closed  error // the result of Close

	mu       sync.Mutex
	unpinned sync.Cond // signals that pinned was cleared
	err      error     // why the card is gone
	link     *link     // the current link
	away     *away     // set while the driver looks for an absent card; else nil
	accesses accesses
	table    []jobEntry // by job number
	turn     int        // the number of the job that sends data next
	pinned   *call      // the call whose inputs the writer reads
	relayed  int        // batches of relays that the writer has not taken
	resets   int        // beginnings and ends of resets; while it is odd, OWNER may hold anything
	heard    time.Time  // when the last whole frame came
	due      bool       // the frames that the reader takes now have given the writer work
	tell     func()     // callback into the program for the current frame; may be nil
	upward   uint16     // the last upward UDP port of a tree; the holder of treeTurn uses it
	gaveUp   time.Time  // when a failed call stopped waiting for the card to drop its job
	past     LinkStats  // sums of the links that have ended

	// Of a shared card.
	seated    []*Job // the running jobs, and those that wait for members or for their next epoch
	requests  map[uint64]*request
	requested uint64   // number of the last request
	seen      []uint16 // epochs of jobs through the current UDP port, the latest last
}

// Open opens the card called name, reads its identification block and checks that this driver
// supports it. It takes ownership of the card, unless WithReadOnly is given. It returns when
// the card is ready for Configure, when ctx ends, or when the card has not replied for the
// timeout.
//
// Errors: NoCardError, BusyError, VersionError, HashError, or one that wraps ctx's.
func Open(ctx context.Context, name string, opts ...Option) (*Card, error) {
	o := newOptions(opts)
	needs := o.needs
	needs.Patience = o.timeout
	reopen := func(ctx context.Context) (transport.Link, error) { return transport.OpenLink(ctx, name, needs) }
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

// OpenConn is Open for a byte stream that the caller has opened. Errors call the card name. The
// Card closes conn, also when OpenConn fails. Its jobs cannot carry on (JobConfig.CarryOn),
// because only the caller could open the stream again.
func OpenConn(ctx context.Context, name string, conn transport.Conn, opts ...Option) (*Card, error) {
	return openOn(ctx, name, conn, nil, opts)
}

// OpenPackets is OpenConn for a connection that carries packets.
func OpenPackets(ctx context.Context, name string, conn transport.PacketConn, opts ...Option) (*Card, error) {
	return openOn(ctx, name, conn, nil, opts)
}

func openOn(ctx context.Context, name string, conn transport.Link, reopen func(context.Context) (transport.Link, error), opts []Option) (*Card, error) {
	c := &Card{
		name:        name,
		reopen:      reopen,
		opts:        newOptions(opts),
		wake:        make(chan struct{}, 1),
		done:        make(chan struct{}),
		configuring: make(chan struct{}, 1),
	}
	_, c.packets = conn.(transport.PacketConn)
	c.accesses = newAccesses(c.packets)
	c.unpinned.L = &c.mu
	_, c.shared = conn.(session)
	c.requests = map[uint64]*request{}
	if c.opts.record != nil {
		c.recorder = record.NewRecorder(c.opts.record, c.packets)
	} else {
		c.arrays = arraysOf(conn) // a recording has frames
	}
	var token [8]byte
	if _, err := io.ReadFull(c.opts.random, token[:]); err != nil {
		conn.Close()
		return nil, fmt.Errorf("open card %s: no random token: %w", name, err)
	}
	c.token = binary.LittleEndian.Uint64(token[:]) | 1 // zero means no owner

	l := c.attach(conn)
	info, err := c.handshake(ctx, l)
	if err != nil {
		c.fail(err)
		_ = l.end()
		return nil, err
	}
	info.Arrays = c.arrays != nil || l.blocks != nil
	c.info = info
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table = make([]jobEntry, info.Jobs)
	return c, nil
}

// handshake identifies the card on a new link, checks that this driver supports it and takes
// ownership of it (unless WithReadOnly).
func (c *Card) handshake(ctx context.Context, l *link) (Info, error) {
	info, err := c.identify(ctx, l)
	if err == nil && !c.opts.reads && !c.shared {
		err = c.own(ctx, l)
	}
	if err != nil {
		return Info{}, c.openError(ctx, l, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.opened = true
	c.keepLocked(l)
	return info, nil
}

// openError turns an error of the handshake into an error of Open.
func (c *Card) openError(ctx context.Context, l *link, err error) error {
	c.mu.Lock()
	link := l.stats
	c.mu.Unlock()
	var died *DiedError
	var timeout *TimeoutError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("open card %s: %w", c.name, ctx.Err())
	case errors.As(err, &died) && l.packets:
		return &NoCardError{Name: c.name, Err: died.Err}
	case errors.As(err, &died) && link.BytesIn == 0 && hungUp(died.Err):
		return &BusyError{Name: c.name, Reason: "it closed the link without a byte, as a card does when another host uses it; if no other host does, the listener is not a card"}
	case errors.As(err, &died):
		return &NoCardError{Name: c.name, Reason: "it disconnected while the driver opened it", Err: died.Err}
	case errors.As(err, &timeout) && link.Frames == 0 && link.BytesIn > 0:
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("the other end is not a Tributary card: it sent %d bytes and no frame", link.BytesIn)}
	case errors.As(err, &timeout) && link.Frames > 0:
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("it sent %d frames, but no reply to %[3]s for %[2]s; check that it runs, or set a longer timeout", link.Frames, round(timeout.Waited), timeout.What)}
	case errors.As(err, &timeout) && l.packets:
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("nothing replies there for %s; check the card's address and UDP port, its power, and the network on the way", round(timeout.Waited))}
	case errors.As(err, &timeout):
		return &NoCardError{Name: c.name, Reason: fmt.Sprintf("the link is open, but no card replies for %s; check that it runs, or set a longer timeout", round(timeout.Waited))}
	}
	return err
}

// hungUp reports whether the other side closed the link. A socket that is closed with unread
// bytes is reset.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// own makes this host the card's owner.
func (c *Card) own(ctx context.Context, l *link) error {
	holder, err := c.writeOn(ctx, l, wire.RegOwner, c.token)
	var refused *RefusedError
	busy := l.packets && errors.As(err, &refused) && refused.Code == wire.CodeBusy // to a stranger
	if err != nil && !busy {
		return err
	}
	if holder != c.token {
		return &BusyError{Name: c.name, Reason: "another host owns it"}
	}
	return nil
}

// Info returns the identification block that Open read.
func (c *Card) Info() Info { return c.info }

// LinkStats returns the counts of this host's end of the link since Open. Packets of the read in
// progress are not among them, although a call may have ended by one.
func (c *Card) LinkStats() LinkStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.past.plus(c.link.stats)
}

// Reset ends the card's jobs, clears its counters and takes ownership again. Later calls of
// this Card's jobs return EndedError. Reset waits for a Configure or another Reset in progress.
func (c *Card) Reset(ctx context.Context) error {
	if err := c.takeTurn(ctx, c.configuring, "reset"); err != nil {
		return err
	}
	defer func() { <-c.configuring }()
	c.endJobs(errReset)
	return c.resetting(func() error {
		if _, err := c.WriteRegister(ctx, wire.RegReset, c.token); err != nil {
			return c.whyNoReset(err)
		}
		if c.shared {
			return nil
		}
		c.noteDropped()
		return c.own(ctx, c.currentLink())
	})
}

// whyNoReset adds what a daemon needs to an error of a shared card's reset.
func (c *Card) whyNoReset(err error) error {
	var refused *RefusedError
	if c.shared && errors.As(err, &refused) && refused.Code == wire.CodeBusy {
		return fmt.Errorf("%w A daemon resets its cards for clients if it was started with -admin", err)
	}
	return err
}

// errReset is the cause in the EndedError of jobs that Reset ended.
var errReset = errors.New("the card was reset")

// Done returns a channel that is closed when the card has died or was closed.
func (c *Card) Done() <-chan struct{} { return c.done }

// Err returns why the card disconnected: a DiedError or ErrClosed. It returns nil while the card is
// usable.
func (c *Card) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close aborts the unfinished jobs, releases the card and closes its link. The card is then
// ready for the next host. Calls in progress return ErrClosed. Close returns the error of
// closing the link, also when it is called again.
func (c *Card) Close() error {
	c.closing.Do(func() { c.closed = c.close() })
	return c.closed
}

func (c *Card) close() error {
	c.endJobs(ErrClosed)
	if !c.opts.reads && !c.shared && c.answers() {
		c.noteReset() // the card may forget the owner from now on
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		// RELEASE also ends the jobs. Without a reply, the end of the link does both.
		_, _ = c.WriteRegister(ctx, wire.RegRelease, c.token)
		cancel()
	}
	c.fail(ErrClosed)
	c.carrying.Wait()
	c.parting.Wait()
	return c.currentLink().end()
}

// answers reports whether a request to the card makes sense. The card must not be gone or away, and
// must have sent a frame since a failed call last gave up waiting for it.
func (c *Card) answers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && c.away == nil && c.heard.After(c.gaveUp)
}

// takeTurn waits until nobody holds turn, and takes it. Errors name the waiting operation by
// what. A receive from turn gives it back.
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

// stopped returns the error of an operation whose context has ended.
func (c *Card) stopped(ctx context.Context, what string) error {
	return &StoppedError{Card: c.name, What: what, Err: ctx.Err()}
}

// fail makes the card unusable because of err, unless it is so already. It wakes everyone who
// waits for the card.
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
