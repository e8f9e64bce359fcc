package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/transport"
	"tributary/driver/wire"
)

// twist changes a frame in transit, or drops it by returning false.
type twist func(*frame.Frame) bool

// twisted is a link that twists every frame and then fixes the CRCs.
type twisted struct {
	net.Conn
	in, out *frame.Scanner
	twistIn twist  // of frames from the card
	twistTo twist  // of frames to the card; nil forwards all bytes unchanged
	unread  []byte // frames from the card that have not been read
}

func (c *twisted) Read(b []byte) (int, error) {
	var f frame.Frame
	for len(c.unread) == 0 {
		if c.in.Next(&f) {
			if c.twistIn(&f) {
				c.unread = frame.Append(nil, &f.Header, f.Payload)
			}
		} else if _, err := c.in.Fill(c.Conn); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.unread)
	c.unread = c.unread[n:]
	return n, nil
}

func (c *twisted) Write(b []byte) (int, error) {
	if c.twistTo == nil {
		return c.Conn.Write(b)
	}
	var f frame.Frame
	var send []byte
	for rest := b; len(rest) > 0; {
		rest = rest[c.out.Feed(rest):]
		for c.out.Next(&f) {
			if c.twistTo(&f) {
				send = frame.Append(send, &f.Header, f.Payload)
			}
		}
	}
	if _, err := c.Conn.Write(send); err != nil {
		return 0, err
	}
	return len(b), nil
}

// straight leaves a frame unchanged.
func straight(*frame.Frame) bool { return true }

// links opens the cards of the tests: links[N] opens the card "test:N".
var links []func() net.Conn

// patience is how long the card that was opened last may take to reply.
var patience atomic.Int64

func init() {
	transport.Register("test", func(_ context.Context, r transport.Request) (transport.Conn, error) {
		patience.Store(int64(r.Patience))
		n, err := strconv.Atoi(r.Address)
		if err != nil {
			return nil, err
		}
		return links[n](), nil
	})
}

// newLink returns the name of a card that open opens.
func newLink(open func() net.Conn) string {
	links = append(links, open)
	return fmt.Sprintf("test:%d", len(links)-1)
}

// newCard makes a model of a card with 4 ports, 4 lanes, chunks of 8 and a
// window of 2, behind a twisted link (toCard may be nil), and returns its name. A
// card keeps its state from one host to the next.
func newCard(t *testing.T, toCard, fromCard twist) string {
	t.Helper()
	return newCardOf(t, 1, toCard, fromCard)
}

// newCardOf is newCard for a card that holds a number of jobs.
func newCardOf(t *testing.T, jobs int, toCard, fromCard twist) string {
	t.Helper()
	card, err := model.NewCard(model.Config{Lanes: 4, Ports: 4, Chunk: 8, Window: 2, Jobs: jobs, Shell: wire.ShellStream, Link: 32})
	require.NoError(t, err)
	var serving sync.Mutex
	return newLink(func() net.Conn {
		host, end := net.Pipe()
		go func() {
			serving.Lock() // the last host's end may still be in progress
			defer serving.Unlock()
			card.Serve(end)
		}()
		return &twisted{
			Conn: host, in: frame.NewScanner(frame.FromCard, 0), out: frame.NewScanner(frame.ToCard, 0),
			twistIn: fromCard, twistTo: toCard,
		}
	})
}
