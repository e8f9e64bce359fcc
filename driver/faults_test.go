package driver_test

// A link with faults, for tests: it stands between the driver and a card and
// loses, repeats, swaps and breaks frames.

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver/frame"
	"tributary/driver/transport"
)

// faults are the chances, per frame and in either direction, of what can
// happen to it.
type faults struct {
	drop, repeat, swap, flip, garbage float64
	seed                              uint64
	pause                             time.Duration // before every write to the card
}

// faultyLink is a Conn with faults, which begin when on is set.
type faultyLink struct {
	transport.Conn
	on            atomic.Bool
	pause         time.Duration
	out           mangler
	in            mangler
	read          []byte // mangled, to be read
	toCard, toUs  sync.Mutex
	happened      atomic.Int64
	countedFrames atomic.Int64
}

func newFaultyLink(conn transport.Conn, f faults) *faultyLink {
	l := &faultyLink{Conn: conn, pause: f.pause}
	l.out = mangler{link: l, faults: f, scan: frame.NewScanner(frame.ToCard, 0), rng: rand.New(rand.NewPCG(f.seed, 1))}
	l.in = mangler{link: l, faults: f, scan: frame.NewScanner(frame.FromCard, 0), rng: rand.New(rand.NewPCG(f.seed, 2))}
	return l
}

func (l *faultyLink) Write(p []byte) (int, error) {
	l.toCard.Lock()
	defer l.toCard.Unlock()
	if l.on.Load() && l.pause > 0 {
		time.Sleep(l.pause)
	}
	if _, err := l.Conn.Write(l.out.mangle(nil, p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *faultyLink) Read(p []byte) (int, error) {
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
	link *faultyLink
	faults
	scan *frame.Scanner
	rng  *rand.Rand
	held []byte // goes behind the next frame
}

// mangle appends to dst what becomes of p.
func (m *mangler) mangle(dst, p []byte) []byte {
	for len(p) > 0 {
		p = p[m.scan.Feed(p):]
		for f := (frame.Frame{}); m.scan.Next(&f); {
			m.link.countedFrames.Add(1)
			dst = m.one(dst, append([]byte(nil), f.Raw...))
		}
	}
	dst = append(dst, m.held...) // a link does not wait for the next frame
	m.held = nil
	return dst
}

func (m *mangler) one(dst, raw []byte) []byte {
	if !m.link.on.Load() {
		return append(dst, raw...)
	}
	happens := func(chance float64) bool {
		if m.rng.Float64() >= chance {
			return false
		}
		m.link.happened.Add(1)
		return true
	}
	if happens(m.garbage) {
		for range m.rng.IntN(40) {
			dst = append(dst, byte(m.rng.Uint32()))
		}
	}
	switch {
	case happens(m.drop):
		return dst
	case happens(m.flip):
		raw[m.rng.IntN(len(raw))] ^= 1 << m.rng.IntN(8)
	case happens(m.repeat):
		dst = append(dst, raw...)
	case m.held == nil && happens(m.swap):
		m.held = raw
		return dst
	}
	dst = append(dst, raw...)
	dst = append(dst, m.held...)
	m.held = nil
	return dst
}
