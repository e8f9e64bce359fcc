package main

// Links with a rate: token buckets under the connections of members, and under relays to a card.

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"golang.org/x/time/rate"
)

const (
	shapedBurst = 32 << 10 // bytes that a bucket holds: pauses of the scheduler cost no rate
	shapedPart  = 16 << 10 // bytes that go at once
)

// newShape returns one direction of a link.
func newShape(bytesPerSecond float64) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(bytesPerSecond), shapedBurst)
}

// pass writes b at the rate of a link.
func pass(ctx context.Context, link *rate.Limiter, to io.Writer, b []byte) (written int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), shapedPart)]
		if err := link.WaitN(ctx, len(part)); err != nil {
			return written, err
		}
		n, err := to.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// shapedConn is a connection whose writes pass a link.
type shapedConn struct {
	*net.UnixConn
	link *rate.Limiter
}

func (c *shapedConn) Write(b []byte) (int, error) {
	return pass(context.Background(), c.link, c.UnixConn, b)
}

// dialShaped returns a dialer of Unix sockets whose link depends on the address; nil has no limit.
func dialShaped(link func(address string) *rate.Limiter) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(address, "unix:"))
		if err != nil || link(address) == nil {
			return conn, err
		}
		return &shapedConn{conn.(*net.UnixConn), link(address)}, nil
	}
}

// startRelay passes connections on to an address, at the rate of a link each way, until ctx ends. It
// returns its own address.
func startRelay(ctx context.Context, to string, up, down *rate.Limiter) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := new(net.Dialer).DialContext(ctx, "tcp", to)
			if err != nil {
				near.Close()
				continue
			}
			context.AfterFunc(ctx, func() { near.Close(); far.Close() })
			go relay(ctx, up, far, near)
			go relay(ctx, down, near, far)
		}
	}()
	return l.Addr().String(), nil
}

// relay passes one direction on. Its end is the end of the connection.
func relay(ctx context.Context, link *rate.Limiter, to, from net.Conn) {
	defer to.Close()
	b := make([]byte, shapedPart)
	for {
		n, err := from.Read(b)
		if _, failed := pass(ctx, link, to, b[:n]); errors.Join(err, failed) != nil {
			return
		}
	}
}
