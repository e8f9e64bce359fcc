package ring

import (
	"net"
	"sync/atomic"
)

// End is one side's end of both rings. One goroutine may call Read, another Write or Put and Ring, and a
// third Close at the same time. Nobody may use the memory after it is unmapped.
type End struct {
	in     reader
	out    writer
	bells  bells
	closed atomic.Bool
}

// Daemon returns the daemon's end of rings in a memory.
func Daemon(memory []byte, size Size) (*End, error) { return newEnd(memory, size, true) }

// Client returns a client's end of rings in a memory.
func Client(memory []byte, size Size) (*End, error) { return newEnd(memory, size, false) }

func newEnd(memory []byte, size Size, daemon bool) (*End, error) {
	if err := size.check(memory); err != nil {
		return nil, err
	}
	toDaemon, toClient := wordsAt(memory, 0), wordsAt(memory, head/2)
	there, here := memory[head:][:size.ToDaemon], memory[head+size.ToDaemon:]
	e := &End{}
	if daemon {
		e.in, e.out = reader{words: toDaemon, bytes: there}, writer{words: toClient, bytes: here}
	} else {
		e.in, e.out = reader{words: toClient, bytes: here}, writer{words: toDaemon, bytes: there}
	}
	e.bells.changed.L = &e.bells.mu
	return e, nil
}

// Attach gives the end its data connection. Put may come before, and all others after that.
func (e *End) Attach(conn net.Conn) error { return e.bells.attach(conn) }

// Close ends the rings: it closes the data connection, and ends a Read and a Write in progress.
func (e *End) Close() error {
	e.closed.Store(true)
	return e.bells.close()
}

// Read reads the bytes that are there, and waits if there are none. It returns ErrPosition, net.ErrClosed
// after Close, and the error of the data connection after the last bytes.
func (e *End) Read(p []byte) (int, error) {
	n, err := e.ready()
	if n == 0 && err == nil {
		n, err = e.bells.await(e.in.wantsData, e.ready)
	}
	if err != nil {
		return 0, err
	}
	n = min(n, len(p))
	e.in.take(p[:n])
	if e.in.wantsRoom.Load() != 0 {
		// A writer that waits gets half the ring at once: a bell for every few bytes would cost more.
		if left, err := e.in.ready(); err == nil && left <= len(e.in.bytes)/2 {
			e.bells.ring(e.in.wantsRoom)
		}
	}
	return n, nil
}

func (e *End) ready() (int, error) {
	if e.closed.Load() {
		return 0, net.ErrClosed
	}
	return e.in.ready()
}

// Write writes all of p, and waits for room. Errors are those of Read.
func (e *End) Write(p []byte) (int, error) {
	put := 0
	for put < len(p) {
		n, err := e.room()
		if n == 0 && err == nil {
			n, err = e.bells.await(e.out.wantsRoom, e.room)
		}
		if err != nil {
			return put, err
		}
		n = min(n, len(p)-put)
		e.out.put(p[put : put+n])
		put += n
		e.Ring()
	}
	return put, nil
}

func (e *End) room() (int, error) {
	if e.closed.Load() {
		return 0, net.ErrClosed
	}
	return e.out.room()
}

// Put writes all of p if there is room for it, and reports that. It does not wait, and does not wake the
// other side: Ring does. It returns ErrPosition.
func (e *End) Put(p []byte) (bool, error) {
	n, err := e.out.room()
	if err != nil || n < len(p) {
		return false, err
	}
	e.out.put(p)
	return true, nil
}

// Ring wakes the other side if it waits for bytes.
func (e *End) Ring() { e.bells.ring(e.out.wantsData) }

// Queued returns the bytes that the other side has not read.
func (e *End) Queued() int {
	n, err := e.out.room()
	if err != nil {
		return 0
	}
	return len(e.out.bytes) - n
}
