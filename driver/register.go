package driver

// Register accesses as callers see them. access.go sends and repeats them.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// ReadRegister reads the 64-bit register at a byte address (wire.Registers). It repeats the
// access when the link loses it. While the card is away and a job waits for it, ReadRegister
// waits too.
//
// Errors: RefusedError, TimeoutError, DiedError, ErrClosed, or one that wraps ctx's.
func (c *Card) ReadRegister(ctx context.Context, addr uint32) (uint64, error) {
	return c.accessRegister(ctx, readHeader(addr))
}

// WriteRegister writes the register at a byte address and returns its new value, or 0 if it
// cannot be read. Errors are those of ReadRegister, and ErrReadOnly.
func (c *Card) WriteRegister(ctx context.Context, addr uint32, value uint64) (uint64, error) {
	if c.opts.reads {
		return 0, ErrReadOnly
	}
	value, err := c.accessRegister(ctx, writeHeader(addr, value))
	if addr == wire.RegLease {
		c.currentLink().renewSoon() // a quarter of it may be over soon
	}
	return value, err
}

func readHeader(addr uint32) frame.Header { return frame.Header{Kind: wire.KindRegRead, VID: addr} }

func writeHeader(addr uint32, value uint64) frame.Header {
	return frame.Header{Kind: wire.KindRegWrite, VID: addr, Mask: value}
}

// accessRegister makes an access over whatever link leads to the card.
func (c *Card) accessRegister(ctx context.Context, h frame.Header) (uint64, error) {
	values, err := c.accessRegisters(ctx, h)
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

// accessRegisters makes independent accesses over whatever link leads to the card.
func (c *Card) accessRegisters(ctx context.Context, headers ...frame.Header) ([]uint64, error) {
	for {
		l, err := c.present(ctx, accessName(headers[0]))
		if err != nil {
			return nil, err
		}
		values, err := c.accessOn(ctx, l, headers...)
		if err == nil || !c.lost(l) {
			return values, err
		}
	}
}

// readOn and writeOn are ReadRegister and WriteRegister over one link, during a set-up. They
// fail when that link ends.
func (c *Card) readOn(ctx context.Context, l *link, addr uint32) (uint64, error) {
	values, err := c.accessOn(ctx, l, readHeader(addr))
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

func (c *Card) writeOn(ctx context.Context, l *link, addr uint32, value uint64) (uint64, error) {
	if c.opts.reads {
		return 0, ErrReadOnly
	}
	values, err := c.accessOn(ctx, l, writeHeader(addr, value))
	if err != nil {
		return 0, err
	}
	return values[0], nil
}

// accessOn makes independent accesses over one link and returns the values of the registers.
// The error is that of the first refused access. Each access has the whole timeout, from its
// own sending and from the reply to the one before it. Other frames of the card do not extend
// it. Nothing is sent if ctx has ended.
func (c *Card) accessOn(ctx context.Context, l *link, headers ...frame.Header) ([]uint64, error) {
	if ctx.Err() != nil {
		return nil, c.stopped(ctx, accessName(headers[0]))
	}
	since := time.Now()
	batch := c.startAccesses(l, headers)
	defer c.stopAccesses(batch)
	c.kick()
	timer := time.NewTimer(c.opts.timeout)
	defer timer.Stop()
	values := make([]uint64, len(batch))
	for i := 0; i < len(batch); {
		name := accessName(headers[i])
		select {
		case reply := <-batch[i].reply:
			if reply.Code != wire.CodeDone {
				return nil, c.refusedAccess(ctx, l, headers[i], reply.Code)
			}
			values[i] = reply.Mask
			i, since = i+1, time.Now()
		case <-ctx.Done():
			return nil, c.stopped(ctx, name)
		case <-l.over:
			return nil, c.whyOver(l)
		case <-timer.C:
			waited := c.waitedFor(batch[i], since)
			if waited >= c.opts.timeout {
				return nil, &TimeoutError{Card: c.name, What: name, Waited: waited}
			}
			timer.Reset(c.opts.timeout - waited)
		}
	}
	return values, nil
}

func (c *Card) startAccesses(l *link, headers []frame.Header) []*access {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accesses.add(l, headers)
}

func (c *Card) stopAccesses(batch []*access) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accesses.forget(batch)
}

// waitedFor returns how long an access has waited, at most since the given time. The writer may
// have to finish a batch of data before it sends the access.
func (c *Card) waitedFor(a *access, since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(a.sent) > 0 && a.sent[0].at.After(since) {
		since = a.sent[0].at
	}
	return time.Since(since)
}

// shortestTrip returns the shortest time of an access, or 0 if none was timed.
func (c *Card) shortestTrip() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.accesses.trip
}

// noteGaveUp records that the driver gave up waiting for the card to confirm the end of a job.
func (c *Card) noteGaveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaveUp = time.Now()
}

// accessName returns the name of an access in messages: "read LANES".
func accessName(h frame.Header) string {
	verb := "read"
	if h.Kind == wire.KindRegWrite {
		verb = "write"
	}
	return verb + " " + registerName(h.VID)
}

func registerName(addr uint32) string {
	if job, rank, bucket, ok := wire.SplitLagAddr(addr); ok {
		return fmt.Sprintf("JOB_LAG %d of job %d, rank %d", bucket, job, rank)
	}
	if of0, port, ok := wire.SplitMemberAddr(addr); ok {
		return fmt.Sprintf("%s of port %d", networkName(of0), port)
	}
	if of0, job, port, ok := wire.SplitTableAddr(addr); ok {
		return fmt.Sprintf("%s of job %d, port %d", networkName(of0), job, port)
	}
	if port, ok := wire.SplitRanksAddr(addr); ok {
		return fmt.Sprintf("MEMBER_RANKS of port %d", port)
	}
	if job, port, ok := wire.SplitJobRanksAddr(addr); ok {
		return fmt.Sprintf("JOB_RANKS of job %d, port %d", job, port)
	}
	of0, job := wire.SplitJobAddr(addr)
	for _, r := range slices.Concat(wire.Registers, wire.TreeRegisters) {
		switch {
		case r.Addr == of0 && job > 0:
			return fmt.Sprintf("%s of job %d", r.Name, job)
		case r.Addr == of0:
			return r.Name
		}
	}
	counters := wire.CountersOf(wire.ShellRoCE)
	if i := (addr - wire.CounterBase) / 8; addr >= wire.CounterBase && int(i) < len(counters) {
		return "counter " + counters[i].Name
	}
	if i := (addr - wire.UpCounterBase) / 8; addr >= wire.UpCounterBase && int(i) < len(wire.UpCounters) {
		return "counter " + wire.UpCounters[i].Name
	}
	return networkName(addr)
}

// networkName returns the name of a register of shell udp.
func networkName(addr uint32) string {
	for _, r := range wire.NetworkRegisters {
		if r.Addr == addr {
			return r.Name
		}
	}
	return fmt.Sprintf("register 0x%x", addr)
}
