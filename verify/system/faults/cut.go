package faults

import (
	"errors"
	"sync"

	"tributary/driver/transport"
)

// ErrCut is answered by a link that was cut.
var ErrCut = errors.New("the link was cut")

// CutAfter returns conn, which ends when so many bytes were read from it and
// written to it together: in the middle of a frame as often as not.
func CutAfter(conn transport.Conn, bytes int) transport.Conn { return &cut{Conn: conn, left: bytes} }

type cut struct {
	transport.Conn
	mu   sync.Mutex
	left int
}

// pay takes n bytes from what is left, and returns how many there were.
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
