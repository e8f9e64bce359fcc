package bulk

import (
	"context"
	"errors"
	"net"
	"sync"

	"tributary/driver/wire"
)

// conn is the byte stream to a card.
type conn struct {
	bus    Bus
	device Device
	stream Stream
	card   Card

	ctx              context.Context // Close cancels it
	cancel           context.CancelFunc
	reading, writing sync.Mutex // held during a Read or a Write
	closing          sync.Once
	closed           error
}

func newConn(bus Bus, card *candidate, stream Stream) *conn {
	c := &conn{bus: bus, device: card.device, stream: stream, card: card.Card}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Read waits until the card sends something. It ignores the ends of bursts.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for len(p) > 0 {
		if c.ctx.Err() != nil {
			return 0, net.ErrClosed
		}
		if n, err := c.stream.Read(c.ctx, p); n > 0 || err != nil {
			return n, c.why(err)
		}
	}
	return 0, nil
}

// Write returns when all of p is in a transfer in flight.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.ctx.Err() != nil {
		return 0, net.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := c.stream.Write(c.ctx, p)
	return n, c.why(err)
}

// why returns net.ErrClosed if the conn was closed, else err.
func (c *conn) why(err error) error {
	if err != nil && c.ctx.Err() != nil {
		return net.ErrClosed
	}
	return err
}

// Close ends a Read and a Write in progress, cancels their transfers and releases the card.
func (c *conn) Close() error {
	c.closing.Do(func() {
		c.cancel()
		c.reading.Lock()
		defer c.reading.Unlock()
		c.writing.Lock()
		defer c.writing.Unlock()
		c.closed = errors.Join(c.stream.Close(), c.device.Close(), c.bus.Close())
	})
	return c.closed
}

// identified is the byte stream to a card with a known identification block.
type identified struct{ *conn }

// ExpectedHash returns the configuration hash of the card's USB identification, which its byte
// stream must repeat. The driver calls it on any Conn that has this method.
func (c *identified) ExpectedHash() (hash uint64, from string) {
	return c.card.Register(wire.RegConfigHash), "its USB identification"
}
