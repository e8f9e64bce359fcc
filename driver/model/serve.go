// The model card behind a connection.

package model

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrBusy is what Serve returns when the card already serves a host.
var ErrBusy = errors.New("model: the card serves another host")

// batchBytes is about how much the sender gathers before it writes.
const batchBytes = 32 << 10

// The clock of a card that is served: it runs on with the time that passes, as
// that of a board does, for every tick at the latest. Traffic may take it ahead.
const (
	servedRate = 100_000_000 // cycles a second
	servedTick = time.Millisecond
)

// Serve is the byte stream of the card for one host: it reads what the host
// sends and writes what the card answers until the host is gone, takes the
// link down and closes rw. One host is served at a time (ErrBusy, and rw
// closed, for another); hosts may follow one another. It returns nil when the
// host is gone, which is that reading ended with io.EOF or that a write failed,
// else the error that ended reading.
//
// Reading never waits for writing: results that the host does not take wait
// in the card's cache, at most 16 replies in a queue.
//
// The card lives in time while it is served: its clock makes 100 cycles a
// microsecond, or more where its traffic takes more, so that a deadline passes
// also while nobody sends.
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

	s := server{link: link, rw: rw, over: make(chan struct{}), began: time.Now(), from: c.cycles}
	s.changed.L = &s.mu
	var others sync.WaitGroup
	others.Go(s.send)
	others.Go(s.keepTime)
	s.receive()
	others.Wait()
	link.Down()
	return s.err
}

// server is one run of Serve: the receiver, the sender and the clock share the
// link.
type server struct {
	rw    io.ReadWriteCloser
	over  chan struct{} // closed when down is set
	began time.Time
	from  uint64 // the card's clock then

	mu      sync.Mutex // guards the card, the link's replies, down and err
	changed sync.Cond  // something to send, a reply less, or the link is down
	link    *Link
	down    bool
	err     error // what ended reading; nil when the host is gone
}

// keepTime has the card's clock run while nobody sends.
func (s *server) keepTime() {
	ticks := time.NewTicker(servedTick)
	defer ticks.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-ticks.C:
			s.mu.Lock()
			s.catchUp()
			s.mu.Unlock()
		}
	}
}

// catchUp sets the card's clock to the time, unless it is ahead; with mu held.
func (s *server) catchUp() {
	card := s.link.card
	now := s.from + uint64(time.Since(s.began).Seconds()*servedRate)
	if now > card.cycles {
		card.Advance(now - card.cycles)
		card.Reduce()
	}
	if s.link.pending() {
		s.changed.Signal()
	}
}

// stop takes the link down for both sides; the first reason is kept.
func (s *server) stop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	s.down, s.err = true, why
	close(s.over)
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
	s.catchUp()
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
