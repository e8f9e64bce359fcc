// The model card behind a connection.

package model

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrBusy is Serve's error if the card already serves a host.
var ErrBusy = errors.New("model: the card serves another host")

// batchBytes is the approximate size of the sender's writes.
const batchBytes = 32 << 10

// The clock of a served card follows real time, as on a board, with an update at least every tick.
// Traffic may advance it further.
const (
	clockRate  = 100_000_000 // cycles a second
	servedTick = time.Millisecond
)

// Serve runs the byte stream of the card for one host. It reads the host's bytes and writes the
// card's frames until the host disconnects; then it takes the link down and closes rw. It serves
// one host at a time, and closes the rw of a second one with ErrBusy; hosts may follow one another.
// It returns nil when the host disconnects, which means io.EOF from a read or a failed write.
// Otherwise it returns the error of the read.
//
// Reading never waits for writing: results wait in the card's cache until the host takes them, and
// at most 16 replies wait in a queue.
//
// Real time drives a served card. Its clock makes 100 cycles per microsecond, or more if its
// traffic takes more, so deadlines pass even without traffic.
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

// server is one run of Serve: the receiver, the sender and the clock share the link.
type server struct {
	rw    io.ReadWriteCloser
	over  chan struct{} // closed when down is set
	began time.Time
	from  uint64 // the card's clock at that time

	mu      sync.Mutex // guards the card, the link's replies, down and err
	changed sync.Cond  // signals a packet to send, a removed reply, or the link's end
	link    *Link
	down    bool
	err     error // the read's error; nil if the host disconnected
}

// keepTime advances the card's clock while there is no traffic.
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

// catchUp advances the card's clock to real time, unless it is ahead; mu must be held.
func (s *server) catchUp() {
	card := s.link.card
	now := s.from + uint64(time.Since(s.began).Seconds()*clockRate)
	if now > card.cycles {
		card.Advance(now - card.cycles)
		card.Reduce()
	}
	if s.link.pending() {
		s.changed.Signal()
	}
}

// stop takes the link down for both sides; it keeps the first reason.
func (s *server) stop(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	s.down, s.err = true, why
	close(s.over)
	s.changed.Broadcast()
	s.rw.Close() // unblocks the other side; the reason is known already
}

// receive reads, decodes and passes packets to the card. It alone uses the decoder, so only access
// to the card needs the lock.
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

// take passes one packet to the card and wakes the sender; it returns false if the link is down.
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

// send writes the card's frames until the link is down.
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

// fetch puts the next packet that leaves into link.out. If there is none, it returns false, or
// waits for one if wait is set. It returns false if the link is down.
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
