package driver

import (
	"context"
	"errors"

	"tributary/driver/transport"
)

// Card is an open card. This program owns it until Close. Its methods may be
// called by several goroutines.
type Card struct {
	name string
	conn transport.Conn
	info Info
}

// Open opens the card called name, reads what it is, checks that this driver
// can talk to it, and takes ownership of it. It returns when the card is ready
// for Configure, when ctx is done, or when the card has not answered for the
// time-out.
//
// Errors: NoCardError, BusyError, VersionError, HashError, or ctx's.
func Open(ctx context.Context, name string, opts ...Option) (*Card, error) {
	return nil, errors.New("not there yet")
}

// OpenConn is Open for a byte stream that the caller has opened; name is what
// errors call the card. The Card closes conn.
func OpenConn(ctx context.Context, name string, conn transport.Conn, opts ...Option) (*Card, error) {
	return nil, errors.New("not there yet")
}

// Info returns what the card said about itself when it was opened.
func (c *Card) Info() Info { return c.info }

// LinkStats returns what this host's end of the link has counted since Open.
func (c *Card) LinkStats() LinkStats { return LinkStats{} }

// ReadRegister reads the 64-bit register at a byte address (wire.Registers).
// It repeats itself when the link loses it.
//
// Errors: RefusedError, TimeoutError, DiedError, ErrClosed, or ctx's.
func (c *Card) ReadRegister(ctx context.Context, addr uint32) (uint64, error) {
	return 0, errors.New("not there yet")
}

// WriteRegister writes the register at a byte address and returns what it
// holds afterwards. Errors are those of ReadRegister.
func (c *Card) WriteRegister(ctx context.Context, addr uint32, value uint64) (uint64, error) {
	return 0, errors.New("not there yet")
}

// Reset ends the card's job, clears its counters and takes ownership again.
// Jobs of this Card answer EndedError from then on.
func (c *Card) Reset(ctx context.Context) error { return errors.New("not there yet") }

// Done returns a channel that is closed when the card has died or was closed.
func (c *Card) Done() <-chan struct{} { return nil }

// Err returns why the card is gone: nil, a DiedError, or ErrClosed.
func (c *Card) Err() error { return nil }

// Close aborts a job that has not finished, gives the card up and closes its
// link. The card is ready for the next host. Close may be called twice.
func (c *Card) Close() error { return nil }
