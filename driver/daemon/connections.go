package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// dataTag opens a data connection, controlTag is how HTTP/2 opens a connection.
const (
	dataTag    = "TRIBDAT1"
	controlTag = "PRI * HT"
)

// openTimeout is how long a connection may take to say what it is, and a control stream to say Hello.
const openTimeout = 5 * time.Second

// acceptPause is the time between two attempts to accept when the system has no room, such as for
// another descriptor.
const acceptPause = 50 * time.Millisecond

// accept hands control connections to gRPC, and data connections to their sessions.
func (s *Server) accept(listener net.Listener, control *handedOver, serving *sync.WaitGroup) {
	refused := &quiet{sometimes: rate.Sometimes{First: 10, Interval: time.Second}}
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			control.Close()
			return
		case err != nil:
			refused.do(func(n int) { s.options.Log.Error("no connection accepted", "why", err, "refused", n) })
			pause(s.running, acceptPause)
			continue
		}
		if limit := s.guards.arrive(); limit != "" {
			s.meters.limited.WithLabelValues(limit).Inc()
			s.meters.closed.WithLabelValues(closedLimit).Inc()
			conn.Close()
			refused.do(func(n int) { s.options.Log.Warn("connections refused", "limit", limit, "refused", n) })
			continue
		}
		serving.Go(func() {
			if err := s.open(conn, control); err != nil {
				s.meters.closed.WithLabelValues(err.cause).Inc()
				conn.Close()
				refused.do(func(n int) {
					s.options.Log.Info("connection closed", "from", conn.RemoteAddr(), "why", err.text, "refused", n)
				})
			}
		})
	}
}

// quiet limits how often something is logged. Many connections must not fill the disk.
type quiet struct {
	sometimes rate.Sometimes
	mu        sync.Mutex
	passed    int // since the last line
}

// do calls log, now and then, with the number of calls since it did so the last time.
func (q *quiet) do(log func(calls int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.passed++
	q.sometimes.Do(func() {
		log(q.passed)
		q.passed = 0
	})
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// notOpened is why the daemon closes a connection that opened no session.
type notOpened struct{ cause, text string }

// open reads what a new connection is, and serves a data connection until its end.
func (s *Server) open(conn net.Conn, control *handedOver) *notOpened {
	unopened, leave := sync.OnceFunc(s.guards.unopened.leave), sync.OnceFunc(s.guards.open.leave)
	defer unopened()
	stop := context.AfterFunc(s.running, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(openTimeout)) // both ways: TLS writes as well
	var tag [len(dataTag)]byte
	if _, err := io.ReadFull(conn, tag[:]); err != nil {
		leave()
		return &notOpened{closedSilent, fmt.Sprintf("no tag: %s", err)}
	}
	switch string(tag[:]) {
	case controlTag:
		_ = conn.SetDeadline(time.Time{})
		unopened() // its stream counts from here, maybe before hand returns
		stop()     // gRPC closes it from here, after the last messages of its streams
		handed := &tagged{Conn: conn, tag: bytes.NewReader(tag[:]), closed: leave}
		if control.hand(handed) != nil {
			handed.Close()
		}
		return nil
	case dataTag:
		defer leave()
		var k key
		if _, err := io.ReadFull(conn, k[:]); err != nil {
			return &notOpened{closedSilent, fmt.Sprintf("no key: %s", err)}
		}
		session := s.take(k)
		if session == nil {
			return &notOpened{closedKey, "no session has its key"}
		}
		_ = conn.SetDeadline(time.Time{})
		unopened()
		session.data(conn)
		return nil
	}
	leave()
	return &notOpened{closedOther, "it is neither HTTP/2 nor a data connection"}
}

// take returns the session of a key. A key opens one connection.
func (s *Server) take(k key) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	session := s.sessions[k]
	delete(s.sessions, k)
	return session
}

// writeBatch writes frames to a data connection: with one system call if it is a socket, and otherwise
// in pieces that are worth a record of TLS.
func writeBatch(conn net.Conn, frames net.Buffers) error {
	if _, secured := conn.(interface{ NetConn() net.Conn }); !secured {
		_, err := frames.WriteTo(conn)
		return err
	}
	buf := make([]byte, 0, batchBytes)
	for i, f := range frames {
		buf = append(buf, f...)
		if last := i == len(frames)-1; !last && len(buf)+len(frames[i+1]) <= batchBytes {
			continue
		}
		if _, err := conn.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	return nil
}
