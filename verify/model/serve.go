// The model card behind a connection.

package model

import (
	"errors"
	"io"
	"sync"
)

// ErrBusy is what Serve returns when the card already serves a host.
var ErrBusy = errors.New("model: the card serves another host")

// batchBytes is about how much the sender gathers before it writes.
const batchBytes = 32 << 10

// Serve is the byte stream of the card for one host: it reads what the host
// sends and writes what the card answers until the host is gone, takes the
// link down and closes rw. One host is served at a time (ErrBusy, and rw
// closed, for another); hosts may follow one another. It returns nil when the
// host is gone, which is that reading ended with io.EOF or that a write failed,
// else the error that ended reading.
//
// Reading never waits for writing: results that the host does not take wait
// in the card's cache, at most 16 replies in a queue.
func (c *Card) Serve(rw io.ReadWriteCloser) error {
	link, err := NewLink(c)
	if err != nil {
		return errors.Join(err, rw.Close())
	}
	select {
	case c.serving <- struct{}{}:
	default:
		return errors.Join(ErrBusy, rw.Close())
	}
	defer func() { <-c.serving }()

	s := server{link: link, rw: rw}
	s.changed.L = &s.mu
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.send()
	}()
	s.receive()
	<-sent
	link.Down()
	return s.err
}

// server is one run of Serve: the receiver and the sender share the link.
type server struct {
	rw io.ReadWriteCloser

	mu      sync.Mutex // guards the card, the link's replies, down and err
	changed sync.Cond  // something to send, a reply less, or the link is down
	link    *Link
	down    bool
	err     error // what ended reading; nil when the host is gone
}

// stop takes the link down for both sides; the first reason is kept.
func (s *server) stop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	s.down, s.err = true, why
	s.changed.Broadcast()
	s.rw.Close() // the other side may be blocked; the reason is known already
}

// receive reads, decodes and hands packets to the card. The decoder is its
// own: only what touches the card needs the lock.
func (s *server) receive() {
	d := &s.link.decoder
	for {
		n, err := s.rw.Read(d.space())
		d.advance(n)
		for d.next(&s.link.in) {
			if !s.take(&s.link.in) {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			s.stop(nil)
			return
		case err != nil:
			s.stop(err)
			return
		}
	}
}

// take hands one packet to the card and wakes the sender; it returns false
// when the link is down.
func (s *server) take(p *Packet) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.link.replies) >= maxReplies && !s.down {
		s.changed.Wait()
	}
	if s.down {
		return false
	}
	s.link.take(p)
	s.link.card.Reduce()
	if s.link.pending() {
		s.changed.Signal()
	}
	return true
}

// send writes what leaves until the link is down.
func (s *server) send() {
	batch := make([]byte, 0, 2*batchBytes)
	for {
		batch = batch[:0]
		for len(batch) < batchBytes && s.fetch(len(batch) == 0) {
			batch = AppendFrame(batch, &s.link.out)
		}
		if len(batch) == 0 {
			return
		}
		if _, err := s.rw.Write(batch); err != nil {
			s.stop(nil)
			return
		}
	}
}

// fetch gets the next packet that leaves into link.out. When there is none it
// returns false, or waits for one if wait is set; it returns false when the
// link is down.
func (s *server) fetch(wait bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for wait && !s.down && !s.link.pending() {
		s.changed.Wait()
	}
	if s.down || !s.link.next(&s.link.out) {
		return false
	}
	if len(s.link.replies) == maxReplies-1 {
		s.changed.Signal()
	}
	return true
}
