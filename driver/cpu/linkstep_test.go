// The byte stream beside the model's: the same bytes in the same pieces must be answered by the
// same bytes.

package cpu

import (
	"bytes"
	"cmp"
	"testing"

	"tributary/driver/frame"
	"tributary/driver/model"
	"tributary/driver/wire"
)

// links is the byte stream of a card, and of the model, in lock step.
type links struct {
	*steps
	link  *Link
	other *model.Link
	scan  *frame.Scanner // of what they send
}

// newLinks puts byte streams around a card and the model.
func newLinks(t testing.TB, s *script, h heard) *links {
	t.Helper()
	cfg := configuration(s)
	cfg.Parent = false
	cfg.Shell, cfg.Link = wire.ShellStream, 32
	x := newSteps(t, cfg, s, h)
	link, err := NewLink(x.card)
	if err != nil {
		t.Fatal(err)
	}
	other, err := model.NewLink(x.model)
	if err != nil {
		t.Fatal(err)
	}
	return &links{x, link, other, frame.NewScanner(frame.FromCard, 0)}
}

// exchange gives the same bytes to both, and compares what they send.
func (x *links) exchange(piece []byte) {
	x.t.Helper()
	x.note("received %x", piece)
	got, want := x.link.Exchange(nil, piece), x.other.Exchange(nil, piece)
	if !bytes.Equal(got, want) {
		x.fail("sent\n%x, the model sent\n%x", got, want)
	}
	x.note("sent %x", got)
	x.scan.Feed(got)
	for f := (frame.Frame{}); x.scan.Next(&f); {
		x.heard[f.Kind.String()]++
		x.heard[f.Kind.String()+" "+f.Code.String()]++
		if f.Kind == wire.KindResult && int(f.Job) < len(x.tenants) {
			x.tenants[f.Job].base = f.VID + 1
		}
	}
}

// stream returns the frames of some steps, with damage.
func (x *links) stream() []byte {
	s := x.script
	var b []byte
	for range 1 + s.below(12) {
		start := len(b)
		b = x.frame(b)
		if s.one(6) {
			b = x.damage(b, start)
		}
	}
	return b
}

// frame appends the frame of a packet or an access.
func (x *links) frame(b []byte) []byte {
	s := x.script
	if s.one(6) {
		h := frame.Header{Kind: wire.KindRegRead, VID: x.addrs[s.below(len(x.addrs))], Length: uint16(s.uint32())}
		switch s.below(6) {
		case 0, 1:
			h.Kind, h.Mask = wire.KindRegWrite, uint64(s.below(16))
		case 2:
			number := s.below(len(x.tenants))
			h.Kind, h.VID = wire.KindRegWrite, wire.RegJobAbort
			h.Mask = uint64(number)<<48 | uint64(x.tenants[number].epoch+uint16(s.below(4)))<<32
		}
		return frame.Append(b, &h, nil)
	}
	_, p := x.packet()
	p.Header.Version = cmp.Or(p.Header.Version, 2) // 0 means the right one
	return frame.Append(b, &p.Header, p.Payload)
}

// damage changes the frame that begins at start.
func (x *links) damage(b []byte, start int) []byte {
	s := x.script
	at := start + s.below(len(b)-start)
	switch s.below(6) {
	case 0:
		b[at] ^= 1 << s.below(8)
	case 1:
		b = b[:at]
	case 2:
		b = append(b, wire.Sync[:s.below(5)]...)
	case 3:
		for range s.below(40) {
			b = append(b, s.byte())
		}
	case 4: // lost in the middle
		b = append(b[:at], b[min(at+s.below(8), len(b)):]...)
	case 5: // a sync word in the middle
		b = append(b[:at], append(wire.Sync[:4:4], b[at:]...)...)
	}
	return b
}

// connect sets the jobs up.
func (x *links) connect() {
	for number := range x.tenants {
		x.setUp(number)
	}
	x.drain()
}

// drain takes what waits. The model's link sends only after a frame from the host; the card's also
// what waits without one.
func (x *links) drain() {
	for x.next(AllPorts) {
	}
}

// converse plays a script through the byte streams.
func converse(t testing.TB, text []byte, h heard) {
	s := &script{text}
	x := newLinks(t, s, h)
	x.connect()
	for len(s.rest) > 0 {
		stream := x.stream()
		if s.one(12) { // half of it, and the link goes down
			x.exchange(stream[:s.below(len(stream)+1)])
			x.link.Down()
			x.other.Down()
			stream = nil
			x.connect()
		}
		for size := 1 + s.below(64)*s.below(4); len(stream) > 0; {
			n := min(size, len(stream))
			x.exchange(stream[:n])
			stream = stream[n:]
		}
		switch s.below(8) {
		case 0:
			x.card.Advance(1000)
			x.model.Advance(1000)
		case 1:
			x.setUp(s.below(len(x.tenants)))
		}
		x.compare()
		x.drain()
	}
	for i, c := range wire.Counters {
		_, n := x.register(false, wire.CounterAddr(i), 0)
		h["counter "+c.Name] += int(n)
	}
}

func TestLinkLockStep(t *testing.T) {
	h := heard{}
	for seed := range *seeds / 3 {
		converse(t, random(seed, 6000), h)
	}
	h.hasAll(t, wire.ShellStream, "status bad_version", "status bad_kind")
}

// FuzzLink plays scripts through the byte streams.
func FuzzLink(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(random(2000+seed, 2000))
	}
	f.Fuzz(func(t *testing.T, text []byte) { converse(t, text[:min(len(text), 4000)], heard{}) })
}
