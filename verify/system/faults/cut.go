package faults

import (
	"errors"
	"sync"

	"tributary/driver/transport"
)

// ErrCut is the error of a link that was cut.
var ErrCut = errors.New("the link was cut")

// CutAfter returns conn, cut after this many bytes have passed in both directions together, often
// in the middle of a frame.
func CutAfter(conn transport.Conn, bytes int) transport.Conn { return &cut{Conn: conn, left: bytes} }

type cut struct {
	transport.Conn
	mu   sync.Mutex
	left int
}

// pay takes up to n of the remaining bytes, and returns how many it took.
func (c *cut) pay(n int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, c.left)
	if c.left -= n; c.left == 0 {
		c.Conn.Close()
		return n, ErrCut
	}
	return n, nil
}

func (c *cut) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		return 0, err
	}
	return c.pay(n)
}

func (c *cut) Write(p []byte) (int, error) {
	c.mu.Lock()
	n := min(len(p), c.left)
	c.mu.Unlock()
	if n > 0 {
		if _, err := c.Conn.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return c.pay(len(p))
}
