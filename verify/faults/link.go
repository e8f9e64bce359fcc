// Package faults is a link that goes wrong: it stands between a host and a card
// and loses, repeats, swaps, delays and breaks what passes, as drawn from a seed.
package faults

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport"
)

// Rates are the chances, per frame and in either direction, of what can happen to
// it.
type Rates struct {
	Drop, Repeat, Swap float64
	Delay              float64 // it comes behind frames of some milliseconds later
	Flip               float64 // one to three bits
	Burst              float64 // up to 16 bits in a row
	Stall              float64 // the link stands still for some milliseconds before it

	// What a CRC of 16 bits does not always catch: random bytes before the frame,
	// and bytes cut out of it.
	Garbage, Cut float64

	Seed  uint64
	Pause time.Duration // before every write to the card
}

// Kind is a kind of fault.
type Kind int

// The kinds, in the order of Kinds.
const (
	Drop Kind = iota
	Repeat
	Swap
	Delay
	Flip
	Burst
	Stall
	Garbage
	Cut
)

// Kinds are the names of the kinds.
var Kinds = [...]string{"drop", "repeat", "swap", "delay", "flip", "burst", "stall", "garbage", "cut"}

// Counts counts the faults that happened, by kind. Links may share one.
type Counts [len(Kinds)]atomic.Int64

// Total returns the number of faults of all kinds.
func (c *Counts) Total() int64 {
	var n int64
	for i := range c {
		n += c[i].Load()
	}
	return n
}

// Link is a Conn with faults, which happen while On is set.
type Link struct {
	transport.Conn
	On           atomic.Bool
	Happened     *Counts
	Frames       atomic.Int64 // that came to it, either way
	pause        time.Duration
	out          mangler
	in           mangler
	read         []byte // mangled, to be read
	toCard, toUs sync.Mutex
}

// New returns conn with faults, which it counts in counts.
func New(conn transport.Conn, r Rates, counts *Counts) *Link {
	l := &Link{Conn: conn, Happened: counts, pause: r.Pause}
	l.out = mangler{link: l, Rates: r, scan: frame.NewScanner(frame.ToCard, 0), rng: rand.New(rand.NewPCG(r.Seed, 1))}
	l.in = mangler{link: l, Rates: r, scan: frame.NewScanner(frame.FromCard, 0), rng: rand.New(rand.NewPCG(r.Seed, 2))}
	return l
}

func (l *Link) Write(p []byte) (int, error) {
	l.toCard.Lock()
	defer l.toCard.Unlock()
	if l.On.Load() && l.pause > 0 {
		time.Sleep(l.pause)
	}
	if _, err := l.Conn.Write(l.out.mangle(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *Link) Read(p []byte) (int, error) {
	l.toUs.Lock()
	defer l.toUs.Unlock()
	for len(l.read) == 0 {
		buf := make([]byte, 32<<10)
		n, err := l.Conn.Read(buf)
		if err != nil {
			return 0, err
		}
		l.read = l.in.mangle(nil, buf[:n])
	}
	n := copy(p, l.read)
	l.read = l.read[n:]
	return n, nil
}

// mangler is one direction.
type mangler struct {
	link *Link
	Rates
	scan *frame.Scanner
	rng  *rand.Rand
	held []byte // goes behind the next frame
	late []late // in the order in which they came
}

// late is a frame that is delayed.
type late struct {
	raw []byte
	due time.Time
}

// mangle appends to dst what becomes of p.
func (m *mangler) mangle(dst, p []byte) []byte {
	for len(m.late) > 0 && time.Now().After(m.late[0].due) {
		dst = append(dst, m.late[0].raw...)
		m.late = m.late[1:]
	}
	for len(p) > 0 {
		p = p[m.scan.Feed(p):]
		for f := (frame.Frame{}); m.scan.Next(&f); {
			m.link.Frames.Add(1)
			dst = m.one(dst, append([]byte(nil), f.Raw...))
		}
	}
	dst = append(dst, m.held...) // a link does not wait for the next frame
	m.held = nil
	return dst
}

// happens draws whether a fault happens, and counts it.
func (m *mangler) happens(kind Kind, chance float64) bool {
	if chance == 0 || m.rng.Float64() >= chance {
		return false
	}
	m.link.Happened[kind].Add(1)
	return true
}

func (m *mangler) one(dst, raw []byte) []byte {
	if !m.link.On.Load() {
		return append(dst, raw...)
	}
	if m.happens(Stall, m.Stall) {
		time.Sleep(m.someTime())
	}
	if m.happens(Garbage, m.Garbage) {
		for range m.rng.IntN(40) {
			dst = append(dst, byte(m.rng.Uint32()))
		}
	}
	switch {
	case m.happens(Drop, m.Drop):
		return dst
	case m.happens(Delay, m.Delay):
		m.late = append(m.late, late{raw, time.Now().Add(m.someTime())})
		return dst
	case m.happens(Flip, m.Flip):
		for range 1 + m.rng.IntN(3) {
			m.flip(raw, m.rng.IntN(8*len(raw)))
		}
	case m.happens(Burst, m.Burst):
		m.burst(raw)
	case m.happens(Cut, m.Cut):
		at := m.rng.IntN(len(raw))
		raw = append(raw[:at], raw[min(len(raw), at+1+m.rng.IntN(40)):]...)
	case m.happens(Repeat, m.Repeat):
		dst = append(dst, raw...)
	case m.held == nil && m.happens(Swap, m.Swap):
		m.held = raw
		return dst
	}
	dst = append(dst, raw...)
	dst = append(dst, m.held...)
	m.held = nil
	return dst
}

func (m *mangler) someTime() time.Duration {
	return time.Duration(1 + m.rng.IntN(int(10*time.Millisecond)))
}

// flip changes a bit; bits are counted as they pass, the highest of a byte first.
func (m *mangler) flip(raw []byte, bit int) { raw[bit/8] ^= 0x80 >> (bit % 8) }

// burst changes bits of which the first and the last are at most 16 apart.
func (m *mangler) burst(raw []byte) {
	length := 2 + m.rng.IntN(15)
	first := m.rng.IntN(8*len(raw) - length)
	m.flip(raw, first)
	m.flip(raw, first+length-1)
	for i := 1; i < length-1; i++ {
		if m.rng.IntN(2) == 0 {
			m.flip(raw, first+i)
		}
	}
}
