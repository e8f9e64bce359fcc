package frame

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"tributary/driver/wire"
)

// result returns a result frame that its VID identifies.
func result(vid uint32, elements int, rng *rand.Rand) []byte {
	payload := make([]byte, 4*elements)
	for i := range payload {
		payload[i] = byte(rng.Uint32())
	}
	return Append(nil, &Header{Kind: wire.KindResult, Format: wire.FP32, VID: vid, Length: uint16(elements), Mask: 3, Receivers: 1}, payload)
}

func status(vid uint32) []byte {
	return Append(nil, &Header{Kind: wire.KindStatus, VID: vid, Code: wire.CodeSend, Mask: 3}, nil)
}

// vids scans stream in pieces of the given size and returns the VIDs of its frames.
func vids(stream []byte, piece int) ([]uint32, Stats) {
	s := NewScanner(FromCard, 0)
	var found []uint32
	var f Frame
	for len(stream) > 0 {
		n := s.Feed(stream[:min(piece, len(stream))])
		stream = stream[n:]
		for s.Next(&f) {
			found = append(found, f.VID)
		}
	}
	s.End()
	for s.Next(&f) {
		found = append(found, f.VID)
	}
	return found, s.Stats()
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestScannerInPieces checks that the pieces of the stream do not matter.
func TestScannerInPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var stream []byte
	var want []uint32
	for i := range uint32(40) {
		if i%3 == 0 {
			stream = append(stream, status(i)...)
		} else {
			stream = append(stream, result(i, 1+int(rng.Uint32()%60), rng)...)
		}
		want = append(want, i)
	}
	for _, piece := range []int{1, 2, 3, 7, 64, 1000, len(stream)} {
		got, stats := vids(stream, piece)
		if !equal(got, want) {
			t.Errorf("pieces of %d: found %v", piece, got)
		}
		if stats != (Stats{Headers: 40, Frames: 40}) {
			t.Errorf("pieces of %d: %+v for a clean stream", piece, stats)
		}
	}
}

// TestScannerFindsTheNextFrame puts various garbage without a valid header before a frame. The
// scanner must find the frame.
func TestScannerFindsTheNextFrame(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	whole := result(1, 8, rng)
	sync := wire.Sync[:]
	badCRC := bytes.Clone(status(2))
	badCRC[len(badCRC)-1] ^= 1
	garbage := map[string][]byte{
		"nothing":                  nil,
		"zeros":                    make([]byte, 100),
		"half a sync word":         sync[:2],
		"sync words":               bytes.Repeat(sync, 9),
		"first bytes of sync":      bytes.Repeat(sync[:1], 9),
		"half a header":            status(2)[:10],
		"header with a wrong CRC":  badCRC,
		"half a header and a sync": append(bytes.Clone(status(2)[:9]), sync...),
	}
	for name, g := range garbage {
		for _, piece := range []int{1, 1000} {
			got, stats := vids(append(bytes.Clone(g), whole...), piece)
			if !equal(got, []uint32{1}) {
				t.Errorf("%s: found %v, %+v", name, got, stats)
			}
		}
	}
}

// TestScannerPassesOver checks the counter for each kind of rejected frame, and that the next
// frame is found.
func TestScannerPassesOver(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	frame := func(h Header, payload int) []byte { return Append(nil, &h, make([]byte, payload)) }
	flip := func(b []byte, at int) []byte {
		b[at] ^= 0x10
		return b
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  Stats
	}{
		{"flipped header", flip(status(9), 12), Stats{Headers: 1, Frames: 1, HeaderCRC: 1, Hunted: 28}},
		{"flipped header CRC", flip(status(9), 27), Stats{Headers: 1, Frames: 1, HeaderCRC: 1, Hunted: 28}},
		{"flipped payload", flip(result(9, 4, rng), 40), Stats{Headers: 2, Frames: 1, PayloadCRC: 1}},
		{"other version", frame(Header{Version: 1, Kind: wire.KindStatus}, 0), Stats{Headers: 2, Frames: 1, BadVersion: 1}},
		{"a kind that goes to the card", frame(Header{Kind: wire.KindAsk}, 0), Stats{Headers: 2, Frames: 1, BadKind: 1}},
		{"no kind", frame(Header{Kind: 15}, 0), Stats{Headers: 2, Frames: 1, BadKind: 1}},
		{"length 0", frame(Header{Kind: wire.KindResult, Format: wire.FP32}, 0), Stats{Headers: 2, Frames: 1, BadLength: 1, Hunted: 2}},
		{"length over the frame", frame(Header{Kind: wire.KindResult, Format: wire.FP32, Length: 1015}, 0), Stats{Headers: 2, Frames: 1, BadLength: 1, Hunted: 2}},
		{"no format", frame(Header{Kind: wire.KindResult, Length: 1}, 4), Stats{Headers: 2, Frames: 1, BadLength: 1, Hunted: 6}},
	} {
		got, stats := vids(append(c.bytes, status(1)...), 1000)
		if !equal(got, []uint32{1}) || stats != c.want {
			t.Errorf("%s: found %v, %+v, want %+v", c.name, got, stats, c.want)
		}
	}
}

// TestScannerPayloadIsNotAFrame checks that a frame inside a payload is payload. It is a frame
// only when the frame around it is invalid.
func TestScannerPayloadIsNotAFrame(t *testing.T) {
	inner := status(7)
	outer := Append(nil, &Header{Kind: wire.KindResult, Format: wire.FP32, VID: 1, Length: uint16(len(inner) / 4)}, inner)
	if got, _ := vids(outer, 1000); !equal(got, []uint32{1}) {
		t.Errorf("found %v, want the outer frame alone", got)
	}
	outer[5] ^= 1
	if got, _ := vids(outer, 1000); !equal(got, []uint32{7}) {
		t.Errorf("header broken: found %v, want the inner frame", got)
	}
}

// TestScannerFlippedBits flips every single bit of a frame between two others. The frame must
// be lost, never misread, and its neighbour must be found.
func TestScannerFlippedBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	middle, last := result(2, 3, rng), result(3, 3, rng)
	for bit := range 8 * len(middle) {
		broken := bytes.Clone(middle)
		broken[bit/8] ^= 1 << (bit % 8)
		got, _ := vids(append(broken, last...), 1000)
		if !equal(got, []uint32{3}) {
			t.Errorf("bit %d: found %v, want the next frame alone", bit, got)
		}
	}
}

// TestScannerFill reads from a reader that returns one byte at a time.
func TestScannerFill(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	r := iotest.OneByteReader(bytes.NewReader(append(status(4), result(5, 2, rng)...)))
	s := NewScanner(FromCard, 0)
	var got []uint32
	for {
		_, err := s.Fill(r)
		for f := (Frame{}); s.Next(&f); {
			got = append(got, f.VID)
		}
		if err != nil {
			break
		}
	}
	if !equal(got, []uint32{4, 5}) {
		t.Errorf("found %v", got)
	}
}

// FuzzScanner checks, for any input, that every byte is in a frame or counted. A frame builds
// its input bytes again, and the next frame is found.
func FuzzScanner(f *testing.F) {
	for _, w := range handWritten(f) {
		f.Add(w.bytes, 3)
		f.Add(append(bytes.Clone(w.bytes[:len(w.bytes)-3]), w.bytes...), 1)
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		piece = 1 + max(0, piece)%5000
		for _, d := range []Direction{ToCard, FromCard} {
			s := NewScanner(d, 0)
			var fr Frame
			taken := 0
			check := func() {
				for s.Next(&fr) {
					taken += len(fr.Raw)
					if built := Append(nil, &fr.Header, fr.Payload); !bytes.Equal(built, fr.Raw) {
						t.Fatalf("read %x, builds %x", fr.Raw, built)
					}
				}
			}
			for rest := stream; len(rest) > 0; {
				rest = rest[s.Feed(rest[:min(piece, len(rest))]):]
				check()
			}
			s.End()
			check()
			st := s.Stats()
			if bad := st.BadKind + st.BadLength + st.BadVersion + st.PayloadCRC; bad == 0 && taken+int(st.Hunted) != len(stream) {
				t.Fatalf("%d bytes came, %d in frames and %d passed over", len(stream), taken, st.Hunted)
			}
		}
	})
}

// TestCardScanner checks what a card's scanner leaves to the core: the format and the payload's CRC.
func TestCardScanner(t *testing.T) {
	h := Header{Kind: wire.KindData, Format: 99, VID: 1, Length: 3}
	good := append(Append(nil, &h, nil)[:wire.SyncBytes+wire.BaseHeaderBytes+wire.CRCBytes], 1, 2, 3, 4, 5, 6)
	crc := CRC(uint16(good[18])<<8|uint16(good[19]), good[20:])
	good = append(good, byte(crc>>8), byte(crc))
	bad := bytes.Clone(good)
	bad[22] ^= 1
	s := NewCardScanner(3, wire.BF16)
	s.Feed(append(append([]byte("x"), good...), bad...))
	var f Frame
	for _, want := range []bool{false, true} {
		if !s.Next(&f) || f.Bad != want || f.Format != 99 || len(f.Payload) != 6 {
			t.Fatalf("%+v, want Bad %v", f, want)
		}
	}
	if want := (Stats{Headers: 2, Frames: 2, Hunted: 1}); s.Next(&f) || s.Stats() != want {
		t.Errorf("%+v, want %+v", s.Stats(), want)
	}
	h.Length = 4 // above the card's chunk
	s.Feed(Append(nil, &h, nil))
	if s.Next(&f) || s.Stats().BadLength != 1 || s.Stats().Headers != 3 {
		t.Errorf("%+v, want a bad length", s.Stats())
	}
}

// TestDrop checks that a scanner forgets half a frame, but counts its header once.
func TestDrop(t *testing.T) {
	whole := result(7, 4, rand.New(rand.NewPCG(1, 2)))
	var f Frame
	for cut := range len(whole) {
		s := NewScanner(FromCard, 0)
		for _, b := range whole[:cut] {
			s.Feed([]byte{b})
			s.Next(&f)
		}
		s.Drop()
		headers := uint64(0)
		if cut >= wire.SyncBytes+wire.MaxHeaderBytes+wire.CRCBytes {
			headers = 1
		}
		s.Feed(whole)
		if !s.Next(&f) || f.VID != 7 || s.Stats() != (Stats{Headers: headers + 1, Frames: 1}) {
			t.Fatalf("after %d bytes: %+v, %+v", cut, f, s.Stats())
		}
	}
}

// TestSwitchScanner: a frame whose payload is damaged passes, and its header is checked.
func TestSwitchScanner(t *testing.T) {
	raw := Append(nil, &Header{Kind: wire.KindData, Format: wire.FP32, Length: 4}, make([]byte, 16))
	damaged := bytes.Clone(raw)
	damaged[len(damaged)-5] ^= 1
	header := bytes.Clone(raw)
	header[5] ^= 1
	s := NewSwitchScanner(ToCard)
	s.Feed(bytes.Join([][]byte{header, damaged, raw}, nil))
	var f Frame
	for _, want := range [][]byte{damaged, raw} {
		if !s.Next(&f) || !bytes.Equal(f.Raw, want) {
			t.Fatalf("got %x, want %x", f.Raw, want)
		}
	}
	if s.Next(&f) || s.Stats().HeaderCRC != 1 {
		t.Errorf("got %+v", s.Stats())
	}
}
