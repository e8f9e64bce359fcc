package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"tributary/driver/transport"
)

// DeviationError is the error of a playback whose user deviates from the recording.
type DeviationError struct {
	Offset int64  // in the bytes to the card
	Why    string // the difference between the writes and the recording
}

func (e *DeviationError) Error() string {
	return fmt.Sprintf("playback: at byte %d to the card: %s", e.Offset, e.Why)
}

// errPackets is the error for the log of a link of packets. What is sent there depends on when it is
// lost, so no second run sends the same.
var errPackets = errors.New("a log of packets cannot be played back")

// playback is a Conn that replaces the card of a recording.
type playback struct {
	mu      sync.Mutex
	changed sync.Cond
	toCard  []byte  // all recorded bytes
	written int     // bytes of toCard already written
	answers []Entry // from the card, in order; the first may be partly read
	after   []int   // for each answer, the bytes of toCard before it
	closed  bool
	err     error // the first deviation
}

// Playback returns a replacement for the recorded card. It accepts exactly the recorded bytes,
// in order, in writes of any size. It returns each entry from the card as soon as all bytes
// recorded before it have been written. A write that deviates returns a DeviationError, as does
// Close before the end of the recording. After the end, Read waits for Close.
func Playback(log io.Reader) (transport.Conn, error) {
	r, err := NewReader(log)
	if err != nil {
		return nil, err
	}
	if r.Packets() {
		return nil, errPackets
	}
	p := &playback{}
	p.changed.L = &p.mu
	for {
		e, err := r.Next()
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		if e.FromCard {
			p.answers = append(p.answers, e)
			p.after = append(p.after, len(p.toCard))
		} else {
			p.toCard = append(p.toCard, e.Bytes...)
		}
	}
}

func (p *playback) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && p.err == nil && (len(p.answers) == 0 || p.written < p.after[0]) {
		p.changed.Wait()
	}
	if p.err != nil {
		return 0, p.err
	}
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	a := &p.answers[0]
	n := copy(b, a.Bytes)
	if a.Bytes = a.Bytes[n:]; len(a.Bytes) == 0 {
		p.answers, p.after = p.answers[1:], p.after[1:]
	}
	return n, nil
}

func (p *playback) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	if p.err != nil {
		return 0, p.err
	}
	rest := p.toCard[p.written:]
	n := min(len(b), len(rest))
	if !bytes.Equal(b[:n], rest[:n]) {
		for i := range n {
			if b[i] != rest[i] {
				return 0, p.deviate(p.written+i, fmt.Sprintf("%02x was written, %02x was recorded", b[i], rest[i]))
			}
		}
	}
	p.written += n
	if n < len(b) {
		return n, p.deviate(p.written, fmt.Sprintf("%d bytes more were written than were recorded", len(b)-n))
	}
	return n, nil
}

func (p *playback) deviate(offset int, why string) error {
	p.err = &DeviationError{Offset: int64(offset), Why: why}
	return p.err
}

func (p *playback) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.changed.Broadcast()
	if p.closed {
		return nil
	}
	p.closed = true
	unread := 0
	for _, a := range p.answers {
		unread += len(a.Bytes)
	}
	switch left := len(p.toCard) - p.written; {
	case p.err != nil:
		return p.err
	case left > 0:
		return p.deviate(p.written, fmt.Sprintf("%d bytes that were recorded were not written", left))
	case unread > 0:
		return p.deviate(p.written, fmt.Sprintf("%d bytes that came from the card were not read", unread))
	}
	return nil
}
