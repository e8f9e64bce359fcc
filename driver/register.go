package driver

// Register accesses: one at a time, told apart by tags, repeated until they are
// answered. Every access may be repeated without harm (SPEC.md, section 4).

import (
	"context"
	"fmt"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// firstRepeat is how long a register access waits for its answer before it is
// repeated; each further wait is twice as long.
const firstRepeat = 200 * time.Millisecond

// access is the register access under way; guarded by Card.mu.
type access struct {
	link   *link // by which it goes
	header frame.Header
	due    bool              // the writer is to send it
	open   bool              // no answer has come
	reply  chan frame.Header // of capacity 1
	tag    uint16            // of the last access
	trip   time.Duration     // the last time from question to answer of one that was not repeated
}

// ReadRegister reads the 64-bit register at a byte address (wire.Registers).
// It repeats itself when the link loses it, and waits for a card that is away
// and whose job is to carry on.
//
// Errors: RefusedError, TimeoutError, DiedError, ErrClosed, or one that wraps
// ctx's.
func (c *Card) ReadRegister(ctx context.Context, addr uint32) (uint64, error) {
	return c.accessRegister(ctx, readHeader(addr))
}

// WriteRegister writes the register at a byte address and returns what it
// holds afterwards (0 where it cannot be read). Errors are those of
// ReadRegister, and ErrReadOnly.
func (c *Card) WriteRegister(ctx context.Context, addr uint32, value uint64) (uint64, error) {
	if c.opts.reads {
		return 0, ErrReadOnly
	}
	return c.accessRegister(ctx, writeHeader(addr, value))
}

func readHeader(addr uint32) frame.Header { return frame.Header{Kind: wire.KindRegRead, VID: addr} }

func writeHeader(addr uint32, value uint64) frame.Header {
	return frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value}
}

// accessRegister carries an access out by whatever link leads to the card.
func (c *Card) accessRegister(ctx context.Context, h frame.Header) (uint64, error) {
	for {
		l, err := c.present(ctx, accessName(h))
		if err != nil {
			return 0, err
		}
		value, err := c.accessOn(ctx, l, h)
		if err == nil || !c.lost(l) {
			return value, err
		}
	}
}

// readOn and writeOn are ReadRegister and WriteRegister by one link, over which a
// card is being set up: they fail when it does.
func (c *Card) readOn(ctx context.Context, l *link, addr uint32) (uint64, error) {
	return c.accessOn(ctx, l, readHeader(addr))
}

func (c *Card) writeOn(ctx context.Context, l *link, addr uint32, value uint64) (uint64, error) {
	if c.opts.reads {
		return 0, ErrReadOnly
	}
	return c.accessOn(ctx, l, writeHeader(addr, value))
}

func (c *Card) accessOn(ctx context.Context, l *link, h frame.Header) (uint64, error) {
	if err := c.takeTurn(ctx, c.accessing, accessName(h)); err != nil {
		return 0, err
	}
	defer func() { <-c.accessing }()
	reply, err := c.ask(ctx, l, h)
	if err != nil {
		return 0, err
	}
	if reply.Code != wire.CodeDone {
		return 0, &RefusedError{Card: c.name, What: accessName(h), Value: h.Mask, Code: reply.Code}
	}
	return reply.Mask, nil
}

// ask sends a register access until its answer comes.
func (c *Card) ask(ctx context.Context, l *link, h frame.Header) (frame.Header, error) {
	start := time.Now()
	c.startAccess(l, h)
	defer c.stopAccess()
	wait := firstRepeat
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for repeats := 0; ; repeats++ {
		c.kick()
		select {
		case reply := <-c.access.reply:
			if repeats == 0 {
				c.noteTrip(time.Since(start))
			}
			return reply, nil
		case <-ctx.Done():
			return frame.Header{}, c.stopped(ctx, accessName(h))
		case <-l.over:
			return frame.Header{}, c.whyOver(l)
		case <-timer.C:
		}
		silent := c.repeatAccess(start)
		if silent >= c.opts.timeout {
			return frame.Header{}, &TimeoutError{Card: c.name, What: accessName(h), Waited: silent}
		}
		wait *= 2
		timer.Reset(min(wait, c.opts.timeout-silent))
	}
}

func (c *Card) startAccess(l *link, h frame.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.access
	a.tag++
	h.Length = a.tag
	a.link, a.header, a.due, a.open = l, h, true, true
	select {
	case <-a.reply: // of an access that was given up as its answer came
	default:
	}
}

func (c *Card) stopAccess() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.due, c.access.open = false, false
}

// repeatAccess has the access sent again, and returns for how long the card has
// been silent. Behind much data, the answer of a slow card may take long.
func (c *Card) repeatAccess(start time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.due = true
	if c.heard.After(start) {
		start = c.heard
	}
	return time.Since(start)
}

// lastTrip returns the time that the last access took, 0 when it is not known.
func (c *Card) lastTrip() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.access.trip
}

func (c *Card) noteTrip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.access.trip = d
}

// noteGaveUp notes that the card has not confirmed what it had to.
func (c *Card) noteGaveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaveUp = time.Now()
}

// takeReply is called by the reader, with mu held, for a reply.
func (a *access) takeReply(h *frame.Header) {
	if a.open && h.Length == a.tag && h.VID == a.header.VID {
		a.open = false
		a.reply <- *h
	}
}

// accessName names an access in messages: "read LANES".
func accessName(h frame.Header) string {
	verb := "read"
	if h.Kind == wire.KindRegWrite {
		verb = "write"
	}
	return verb + " " + registerName(h.VID)
}

func registerName(addr uint32) string {
	of0, job := wire.SplitJobAddr(addr)
	for _, r := range wire.Registers {
		switch {
		case r.Addr == of0 && job > 0:
			return fmt.Sprintf("%s of job %d", r.Name, job)
		case r.Addr == of0:
			return r.Name
		}
	}
	if i := (addr - wire.CounterBase) / 8; addr >= wire.CounterBase && int(i) < len(wire.Counters) {
		return "counter " + wire.Counters[i].Name
	}
	return fmt.Sprintf("register 0x%x", addr)
}
