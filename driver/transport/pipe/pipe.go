// Package pipe is a byte stream within a program. Its two ends, each a transport.Conn, are
// joined by a bounded buffer in each direction. The model: card is at one end.
//
// Unlike net.Pipe, it lets a writer continue while the reader is busy. Like a socket, it makes
// a writer wait for a slow reader.
package pipe

import (
	"io"
	"sync"
)

// New returns the two ends of a pipe that holds up to capacity bytes in each direction.
func New(capacity int) (a, b *End) {
	x, y := newBuffer(capacity), newBuffer(capacity)
	return &End{in: x, out: y}, &End{in: y, out: x}
}

// End is one end of a pipe. After one end is closed, the other can read the bytes written
// before, and then gets io.EOF.
type End struct {
	in, out *buffer
}

// Read reads the available bytes, and waits if there are none.
func (e *End) Read(p []byte) (int, error) { return e.in.read(p) }

// Write writes all of p, and waits for room when necessary.
func (e *End) Write(p []byte) (int, error) { return e.out.write(p) }

// Close ends both directions.
func (e *End) Close() error {
	e.in.stopReading()
	e.out.stopWriting()
	return nil
}

// buffer is a ring for one direction.
type buffer struct {
	mu       sync.Mutex
	changed  sync.Cond
	ring     []byte
	start, n int  // n bytes are held from start on, with wrap-around
	noReader bool // reading has ended: writes fail
	noWriter bool // writing has ended: no more bytes will come
}

func newBuffer(capacity int) *buffer {
	b := &buffer{ring: make([]byte, capacity)}
	b.changed.L = &b.mu
	return b
}

func (b *buffer) read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.n == 0 && !b.noWriter && !b.noReader {
		b.changed.Wait()
	}
	if b.noReader {
		return 0, io.ErrClosedPipe
	}
	if b.n == 0 {
		return 0, io.EOF
	}
	got := 0
	for got < len(p) && b.n > 0 {
		piece := copy(p[got:], b.ring[b.start:min(b.start+b.n, len(b.ring))])
		b.start = (b.start + piece) % len(b.ring)
		b.n -= piece
		got += piece
	}
	b.changed.Broadcast()
	return got, nil
}

func (b *buffer) write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	put := 0
	for put < len(p) {
		for b.n == len(b.ring) && !b.noReader && !b.noWriter {
			b.changed.Wait()
		}
		if b.noReader || b.noWriter {
			return put, io.ErrClosedPipe
		}
		end := (b.start + b.n) % len(b.ring)
		piece := copy(b.ring[end:min(end+len(b.ring)-b.n, len(b.ring))], p[put:])
		b.n += piece
		put += piece
		b.changed.Broadcast()
	}
	return put, nil
}

func (b *buffer) stopReading() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noReader = true
	b.changed.Broadcast()
}

func (b *buffer) stopWriting() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noWriter = true
	b.changed.Broadcast()
}
