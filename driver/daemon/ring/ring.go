// Package ring carries the frames of a session in memory that the daemon and a client share, a ring of
// bytes each way (driver/daemon/SPEC.md, section 11). The data connection remains: it has the
// doorbells, and its end is the end of the rings.
//
// Neither side trusts the other one, which may write anything into the memory at any time. An End
// therefore keeps its own positions, checks the other side's, and copies bytes out of the memory before
// anybody looks at them.
package ring

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// head is the part of the memory before the rings: the positions and wishes of both.
const head = 4096

// lineBytes is the distance between words that different sides write, so that they do not share a line
// of a cache.
const lineBytes = 64

// Size is the sizes of the two rings, in bytes: powers of two.
type Size struct {
	ToDaemon, ToClient int
}

// Memory returns the bytes of memory that both rings need.
func (s Size) Memory() int { return head + s.ToDaemon + s.ToClient }

// check refuses sizes that are no powers of two, or not those of the memory.
func (s Size) check(memory []byte) error {
	for _, n := range []int{s.ToDaemon, s.ToClient} {
		if n <= 0 || n > 1<<30 || n&(n-1) != 0 {
			return fmt.Errorf("a ring of %d bytes: their number is a power of two", n)
		}
	}
	if len(memory) != s.Memory() {
		return fmt.Errorf("rings of %d and %d bytes need %d bytes of memory, not %d", s.ToDaemon, s.ToClient, s.Memory(), len(memory))
	}
	return nil
}

// ErrPosition means that the other side has written a position that cannot be. The rings are of no use
// any more.
var ErrPosition = errors.New("the other side's position in a ring cannot be")

// words are the positions of a ring and the wishes of its two sides. A position counts bytes since the
// beginning. A wish is 1 from before a side sleeps until the other side has rung.
type words struct {
	written   *atomic.Uint64 // by the writer
	wantsRoom *atomic.Uint32 // set by the writer
	read      *atomic.Uint64 // by the reader
	wantsData *atomic.Uint32 // set by the reader
}

// wordsAt returns the words at four lines of the memory.
func wordsAt(memory []byte, offset int) words {
	at := func(line int) unsafe.Pointer { return unsafe.Pointer(&memory[offset+line*lineBytes]) }
	return words{
		written:   (*atomic.Uint64)(at(0)),
		wantsRoom: (*atomic.Uint32)(at(1)),
		read:      (*atomic.Uint64)(at(2)),
		wantsData: (*atomic.Uint32)(at(3)),
	}
}

// writer is the end of a ring that one side writes.
type writer struct {
	words
	bytes []byte
	at    uint64 // its position: the word in the memory is a copy
}

// room returns the bytes that fit, or ErrPosition.
func (w *writer) room() (int, error) {
	used := w.at - w.read.Load()
	if used > uint64(len(w.bytes)) {
		return 0, ErrPosition
	}
	return len(w.bytes) - int(used), nil
}

// put writes bytes for which there is room.
func (w *writer) put(p []byte) {
	from := int(w.at) & (len(w.bytes) - 1)
	n := copy(w.bytes[from:], p)
	copy(w.bytes, p[n:])
	w.at += uint64(len(p))
	w.written.Store(w.at)
}

// reader is the end of a ring that one side reads.
type reader struct {
	words
	bytes []byte
	at    uint64 // its position: the word in the memory is a copy
}

// ready returns the bytes that can be read, or ErrPosition.
func (r *reader) ready() (int, error) {
	n := r.written.Load() - r.at
	if n > uint64(len(r.bytes)) {
		return 0, ErrPosition
	}
	return int(n), nil
}

// take reads bytes that are ready.
func (r *reader) take(p []byte) {
	from := int(r.at) & (len(r.bytes) - 1)
	n := copy(p, r.bytes[from:])
	copy(p[n:], r.bytes)
	r.at += uint64(len(p))
	r.read.Store(r.at)
}
