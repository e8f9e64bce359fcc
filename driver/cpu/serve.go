package cpu

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrBusy is the error of Serve while the card serves another host.
var ErrBusy = errors.New("cpu: the card serves another host")

// batchBytes is the size from which on the writer writes what it has.
const batchBytes = 64 << 10

// session is a host that a card serves. The card's lock guards it; the card's changed wakes its
// reader and writer.
type session struct {
	*Card
	link   *Link
	rw     io.ReadWriteCloser
	clock  clock
	timer  *time.Timer
	alarm  uint64 // cycle at which timer calls ring, or 0 at first; never: it does not
	ended  bool
	failed bool // a write has failed: the host is gone
}

// Serve runs the byte stream of the card for one host, until the host disconnects; then it takes
// the link down. In any case it closes rw. It serves one host at a time, and returns ErrBusy for a
// second one. It returns nil when the host disconnects: a read ends with io.EOF, or a write fails.
// Otherwise it returns the read's error.
//
// Reading never waits for writing: results wait in the card until the host takes them. At most 16
// replies wait; then the next register access does. The card acts on a deadline within a
// millisecond.
func (c *Card) Serve(rw io.ReadWriteCloser) error {
	s, err := c.admit(rw)
	if err != nil {
		rw.Close()
		return err
	}
	var writer sync.WaitGroup
	writer.Go(s.write)
	err = s.read()
	failed := s.end()
	writer.Wait()
	c.dismiss()
	if failed || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// admit makes a host the one that the card serves.
func (c *Card) admit(rw io.ReadWriteCloser) (*session, error) {
	link, err := NewLink(c)
	if err != nil {
		return nil, err
	}
	c.lock()
	defer c.unlock()
	if c.serving {
		return nil, ErrBusy
	}
	c.serving = true
	s := &session{Card: c, link: link, rw: rw, clock: startClock(c.engine.now)}
	s.timer = time.AfterFunc(tick, s.ring)
	c.session = s
	return s, nil
}

// dismiss lets the card serve another host.
func (c *Card) dismiss() {
	c.lock()
	defer c.unlock()
	c.serving = false
}

// end takes the link down and closes it. It reports whether a write has failed before.
func (s *session) end() (failed bool) {
	defer s.rw.Close()
	s.lock()
	defer s.unlock()
	s.link.down()
	s.ended = true
	s.session = nil
	s.timer.Stop()
	s.changed.Broadcast()
	return s.failed
}

// ring acts on deadlines.
func (s *session) ring() {
	s.lock()
	defer s.unlock()
	s.alarm = never
	if !s.ended {
		s.settle()
	}
}

// settle advances the clock to real time, and wakes what waits for it.
func (s *session) settle() {
	s.clock.sync(s.engine)
	s.wake()
}

// wake sets the alarm for the next deadline, and wakes the writer.
func (s *session) wake() {
	if due := s.engine.due; due < s.alarm {
		s.alarm = due
		s.timer.Reset(max(s.clock.until(due), tick))
	}
	s.changed.Broadcast()
}

// read commits the host's frames until a read fails. It checks them without the card's lock.
func (s *session) read() error {
	l := s.link
	for {
		_, err := l.scan.Fill(s.rw)
		s.lock()
		s.clock.sync(s.engine)
		s.unlock()
		for l.scan.Next(&l.frame) {
			s.lock()
			s.take()
			s.unlock()
		}
		s.lock()
		l.count()
		s.settle()
		s.unlock()
		if err != nil {
			return err
		}
	}
}

// take commits the scanned frame. A register access waits until there is room for its reply. Sums
// are made while their contributions are in the processor's cache.
func (s *session) take() {
	for s.link.isAccess() && len(s.link.replies) == mostReplies && !s.failed {
		s.changed.Broadcast()
		s.changed.Wait()
	}
	if !s.failed {
		s.link.take()
		s.engine.reduceAll()
	}
}

// write writes what leaves until the session ends or a write fails. It then closes the connection,
// which ends the reading.
func (s *session) write() {
	var batch []byte
	for {
		batch = s.batch(batch[:0])
		if len(batch) == 0 {
			return
		}
		if _, err := s.rw.Write(batch); err != nil {
			s.lock()
			s.failed = true
			s.changed.Broadcast()
			s.unlock()
			s.rw.Close()
			return
		}
	}
}

// batch waits for frames to write, and returns them in dst; none when the session has ended.
func (s *session) batch(dst []byte) []byte {
	s.lock()
	defer s.unlock()
	for !s.ended {
		if dst = s.link.send(dst, batchBytes); len(dst) > 0 {
			s.changed.Broadcast()
			return dst
		}
		s.changed.Wait()
	}
	return nil
}
