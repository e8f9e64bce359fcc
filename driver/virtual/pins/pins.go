// Package pins models a card at the pins of a bridge: a byte stream without a host
// (SPEC.md, section 10). Models of bridges use it.
package pins

import (
	"net"
	"sync"
	"time"

	"tributary/driver/wire"
)

// Card is a card at a bridge's pins. It models the gateware's response to a break, because the
// stream of a virtual card begins after that logic. A break closes the stream and opens a new one.
type Card struct {
	dial func() (net.Conn, error)

	writing sync.Mutex // one write at a time; guards run and broken
	run     int        // consecutive zeros
	broken  bool       // only zeros since the break

	mu          sync.Mutex
	conn        net.Conn // nil before the first session, and after the card is gone
	stale       []byte   // bytes that the card sent before the last break
	read, write time.Time

	reading sync.Mutex // held while the link is read
}

// past is a deadline that ends a read or write at once.
var past = time.Unix(1, 0)

// heldBytes limits what a bridge still holds for the host before. downTime is the time from a
// break until the link goes down.
const (
	heldBytes = 1024
	downTime  = time.Millisecond
)

// New returns the card with the byte stream that dial opens. The card's link is up until that
// stream is closed.
func New(dial func() (net.Conn, error)) *Card { return &Card{dial: dial} }

// Session returns the stream for one attachment of the bridge to a host. The end of a session
// does not end the card's link.
func (p *Card) Session() (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		if err := p.open(); err != nil {
			return nil, err
		}
	}
	return &session{Conn: p.conn, Card: p}, nil
}

// Close takes the link down for good. No session may be in progress.
func (p *Card) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		HangUp(p.conn)
		p.conn = nil
	}
}

// open opens a link to the card. The caller holds mu.
func (p *Card) open() error {
	conn, err := p.dial()
	if err != nil {
		return err
	}
	p.conn = conn
	_ = conn.SetReadDeadline(p.read)
	return conn.SetWriteDeadline(p.write)
}

// now returns the current link, or nil when the card is gone. It first copies stale bytes of
// the last link into b.
func (p *Card) now(b []byte) (conn net.Conn, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = copy(b, p.stale)
	p.stale = p.stale[n:]
	return p.conn, n
}

// lost handles the end of a link. It reports whether the card closed the link, and not a break.
func (p *Card) lost(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != conn {
		return false
	}
	conn.Close()
	p.conn = nil
	return true
}

// reopen takes the link down and up again. Some bytes from the card stay in the bridge.
func (p *Card) reopen() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.down()
	}
	return p.open()
}

// down takes the link down. The caller holds mu.
func (p *Card) down() {
	_ = p.conn.SetReadDeadline(past)
	p.reading.Lock()
	defer p.reading.Unlock()
	_ = p.conn.SetReadDeadline(time.Now().Add(downTime))
	held := make([]byte, heldBytes)
	n, _ := p.conn.Read(held)
	p.stale = held[:n]
	HangUp(p.conn)
	p.conn = nil
}

// session is a host's connection to the pins.
type session struct {
	net.Conn // the link at the start, for its addresses
	*Card
}

// Close ends reads and writes in progress.
func (s *session) Close() error {
	_ = s.SetReadDeadline(past)
	return s.SetWriteDeadline(past)
}

func (s *session) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = t
	if s.conn == nil {
		return nil
	}
	return s.conn.SetReadDeadline(t)
}

func (s *session) SetWriteDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write = t
	if s.conn == nil {
		return nil
	}
	return s.conn.SetWriteDeadline(t)
}

func (s *session) Read(b []byte) (int, error) {
	for {
		conn, n := s.now(b)
		if n > 0 {
			return n, nil
		}
		if conn == nil {
			return 0, net.ErrClosed
		}
		s.reading.Lock()
		n, err := conn.Read(b)
		s.reading.Unlock()
		if n > 0 || isTimeout(err) {
			return n, err
		}
		if err != nil && s.lost(conn) {
			return n, err
		}
	}
}

// Write passes bytes on. It drops further zeros of a break.
func (s *session) Write(b []byte) (done int, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for done < len(b) {
		if s.broken && b[done] == 0 {
			done++
			continue
		}
		s.broken = false
		conn, _ := s.now(nil)
		if conn == nil {
			return done, net.ErrClosed
		}
		n, err := conn.Write(b[done : done+s.untilBreak(b[done:])])
		s.count(b[done : done+n])
		done += n
		if err != nil {
			if !isTimeout(err) {
				s.lost(conn)
			}
			return done, err
		}
		if s.run >= wire.BreakZeros {
			s.run, s.broken = 0, true
			if err := s.reopen(); err != nil {
				return done, err
			}
		}
	}
	return done, nil
}

// untilBreak returns the number of bytes up to the last one of a break, or all.
func (p *Card) untilBreak(b []byte) int {
	run := p.run
	for i, x := range b {
		run++
		if x != 0 {
			run = 0
		}
		if run == wire.BreakZeros {
			return i + 1
		}
	}
	return len(b)
}

// count updates run for the bytes that were taken.
func (p *Card) count(b []byte) {
	for _, x := range b {
		p.run++
		if x != 0 {
			p.run = 0
		}
	}
}

// HangUp closes a link so that the card notices at once and can accept the next one. A program
// that is just starting may keep the link open for a moment longer.
func HangUp(link net.Conn) {
	if half, ok := link.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	link.Close()
}

func isTimeout(err error) bool {
	timeout, ok := err.(net.Error)
	return ok && timeout.Timeout()
}
