package faults

import (
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport"
)

// Link is a Conn with faults, while On is set.
type Link struct {
	transport.Conn
	On       atomic.Bool
	Happened *Counts
	// Watch, if set before the first use of the link, is called for every frame in both
	// directions. It reports whether to cut the link in the middle of the frame.
	Watch func(*frame.Header) (cut bool)

	pause        time.Duration
	out, in      way
	read         []byte // ready for the caller
	toCard, toUs sync.Mutex
}

// New returns conn with faults, and counts them in counts.
func New(conn transport.Conn, r Rates, counts *Counts) *Link {
	l := &Link{Conn: conn, Happened: counts, pause: r.Pause}
	l.out, l.in = newWay(l, r, frame.ToCard), newWay(l, r, frame.FromCard)
	return l
}

func (l *Link) Write(p []byte) (int, error) {
	l.toCard.Lock()
	defer l.toCard.Unlock()
	if l.On.Load() && l.pause > 0 {
		time.Sleep(l.pause)
	}
	if l.out.cut {
		return 0, ErrCut
	}
	if _, err := l.Conn.Write(l.out.pass(nil, p)); err != nil {
		return 0, err
	}
	if l.out.cut {
		l.Conn.Close()
		return 0, ErrCut
	}
	return len(p), nil
}

func (l *Link) Read(p []byte) (int, error) {
	l.toUs.Lock()
	defer l.toUs.Unlock()
	for len(l.read) == 0 {
		if l.in.cut {
			l.Conn.Close()
			return 0, ErrCut
		}
		buf := make([]byte, 32<<10)
		n, err := l.Conn.Read(buf)
		if err != nil {
			return 0, err
		}
		l.read = l.in.pass(nil, buf[:n])
	}
	n := copy(p, l.read)
	l.read = l.read[n:]
	return n, nil
}

// way is one direction of a link.
type way struct {
	link      *Link
	direction frame.Direction
	fate      *fate
	before    *frame.Scanner  // of the bytes that enter
	after     *frame.Scanner  // of the bytes that leave
	came      map[uint64]bool // hashes of the frames that entered
	hash      maphash.Seed
	held      []byte    // to send after the next frame
	late      []late    // in order of entry
	rests     time.Time // no stall before this time
	cut       bool
}

// late is a delayed frame.
type late struct {
	raw []byte
	due time.Time
}

func newWay(l *Link, r Rates, d frame.Direction) way {
	return way{
		link: l, direction: d, fate: newFate(r, d),
		before: frame.NewScanner(d, 0), after: frame.NewScanner(d, 0),
		came: map[uint64]bool{}, hash: maphash.MakeSeed(),
	}
}

// pass appends p with its faults to dst.
func (w *way) pass(dst, p []byte) []byte {
	first := len(dst)
	now := time.Now()
	w.late = slices.DeleteFunc(w.late, func(l late) bool {
		if now.Before(l.due) {
			return false
		}
		dst = append(dst, l.raw...)
		return true
	})
	for len(p) > 0 && !w.cut {
		p = p[w.before.Feed(p):]
		for f := (frame.Frame{}); !w.cut && w.before.Next(&f); {
			w.came[maphash.Bytes(w.hash, f.Raw)] = true
			dst = w.one(dst, &f)
		}
	}
	if !w.cut {
		dst = append(dst, w.held...) // a link does not wait for the next frame
	}
	w.held = nil
	w.judge(dst[first:])
	return dst
}

// judge counts frames in p that are valid but were never sent.
func (w *way) judge(p []byte) {
	for len(p) > 0 {
		p = p[w.after.Feed(p):]
		for f := (frame.Frame{}); w.after.Next(&f); {
			if !w.came[maphash.Bytes(w.hash, f.Raw)] {
				w.link.Happened.LetThrough[w.direction].Add(1)
			}
		}
	}
}

// one appends a frame with its fault to dst.
func (w *way) one(dst []byte, f *frame.Frame) []byte {
	w.link.Happened.Frames[w.direction].Add(1)
	raw := slices.Clone(f.Raw)
	if w.link.Watch != nil && w.link.Watch(&f.Header) {
		w.cut = true
		return append(dst, raw[:len(raw)/2]...)
	}
	if !w.link.On.Load() {
		return append(dst, raw...)
	}
	kind, rng := w.fate.draw(&f.Header)
	if kind == Reorder {
		if w.held == nil {
			w.held = raw
			return dst
		}
		kind = none // this frame releases the held one
	}
	n := len(dst)
	if dst = w.apply(dst, raw, kind, rng); len(dst) > n && w.held != nil {
		dst = append(dst, w.held...)
		w.held = nil
		w.count(Reorder)
	}
	return dst
}

func (w *way) count(k Kind) { w.link.Happened.Faults[w.direction][k].Add(1) }

// apply appends raw to dst after a fault that concerns this frame alone.
func (w *way) apply(dst, raw []byte, kind Kind, rng *rand.Rand) []byte {
	if kind == Stall && time.Now().Before(w.rests) {
		kind = none
	}
	if kind != none {
		w.count(kind)
	}
	switch kind {
	case Drop:
		return dst
	case Repeat:
		dst = append(dst, raw...)
	case Delay:
		w.late = append(w.late, late{raw, time.Now().Add(longTime(rng))})
		return dst
	case Flip:
		flips(raw, rng)
	case Burst:
		burst(raw, rng)
	case Stall:
		// After a stall the link moves for the same time. Without that rest, a link with many
		// frames would be slower than a card that repeats its notices at each deadline.
		pause := someTime(rng)
		time.Sleep(pause)
		w.rests = time.Now().Add(pause)
	case Garbage:
		dst = appendRandom(dst, rng)
	case Scramble:
		at := rng.IntN(len(raw))
		for i := range raw[at:min(len(raw), at+1+rng.IntN(mostBytes))] {
			raw[at+i] = byte(rng.Uint32())
		}
	case Cut:
		at := rng.IntN(len(raw))
		raw = append(raw[:at], raw[min(len(raw), at+1+rng.IntN(mostBytes)):]...)
	case Insert:
		at := 1 + rng.IntN(len(raw)-1)
		dst = appendRandom(append(dst, raw[:at]...), rng)
		raw = raw[at:]
	}
	return append(dst, raw...)
}

// mostBytes is the most bytes that one fault inserts, removes or replaces.
const mostBytes = 40

func appendRandom(dst []byte, rng *rand.Rand) []byte {
	for range 1 + rng.IntN(mostBytes) {
		dst = append(dst, byte(rng.Uint32()))
	}
	return dst
}

func someTime(rng *rand.Rand) time.Duration {
	return time.Duration(1 + rng.IntN(int(10*time.Millisecond)))
}

// longTime is a random time, sometimes long enough for another job to start.
func longTime(rng *rand.Rand) time.Duration {
	if rng.IntN(4) == 0 {
		return 20 * someTime(rng)
	}
	return someTime(rng)
}

// flip inverts a bit. Bits count in link order, the highest of a byte first.
func flip(raw []byte, bit int) { raw[bit/8] ^= 0x80 >> (bit % 8) }

// flips inverts one to three bits.
func flips(raw []byte, rng *rand.Rand) {
	for _, bit := range rng.Perm(8 * len(raw))[:1+rng.IntN(3)] {
		flip(raw, bit)
	}
}

// burst damages bits, the first and the last at most 16 apart.
func burst(raw []byte, rng *rand.Rand) {
	burstOf(raw, 2+rng.IntN(15), rng)
}

// burstOf damages bits, the first and the last of that many in a row among them.
func burstOf(raw []byte, length int, rng *rand.Rand) {
	first := rng.IntN(8*len(raw) - length + 1)
	flip(raw, first)
	flip(raw, first+length-1)
	for i := 1; i < length-1; i++ {
		if rng.IntN(2) == 0 {
			flip(raw, first+i)
		}
	}
}
