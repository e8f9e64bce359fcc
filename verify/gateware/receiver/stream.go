package receiver

import (
	"math/bits"
	"math/rand/v2"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Stream is a link's bytes, with the frames in it.
type Stream struct {
	Bytes []byte

	whole []int           // starts of complete frames outside of other frames
	built map[string]bool // items of all frames, including those damaged later
}

// generator makes a stream.
type generator struct {
	Stream
	shape Shape
	rng   *rand.Rand
}

// NewStream returns at least size bytes for a receiver, drawn from a seed. They end so that no
// reception is pending.
func NewStream(s Shape, seed uint64, size int) *Stream {
	g := &generator{Stream{built: map[string]bool{}}, s, rand.New(rand.NewPCG(seed, uint64(s.Link<<8|s.Step)))}
	pieces := []func(){
		g.frame, g.frame, g.frame, g.frame, // the most frequent
		g.noise, g.syncs, g.cutOff, g.flipped, g.burst, g.otherCRC, g.refused, g.falseSync, g.scrambled,
	}
	for len(g.Bytes) < size {
		pieces[g.rng.IntN(len(pieces))]()
	}
	g.Bytes = append(g.Bytes, make([]byte, wire.MaxFrameBytes)...)
	return &g.Stream
}

// frame is a complete, undamaged frame.
func (g *generator) frame() {
	g.whole = append(g.whole, len(g.Bytes))
	g.Bytes = append(g.Bytes, g.build(true)...)
}

// build returns a frame that a card accepts, and records its item. Its payload may contain
// another frame.
func (g *generator) build(outer bool) []byte {
	h := g.header()
	kinds := []wire.Kind{wire.KindData, wire.KindData, wire.KindData, wire.KindAsk, wire.KindFinish, wire.KindRegRead, wire.KindRegWrite}
	h.Kind = kinds[g.rng.IntN(len(kinds))]
	var payload []byte
	if h.Kind == wire.KindData {
		h.Length = uint16(1 + g.rng.IntN(g.shape.Chunk))
		if g.rng.IntN(3) == 0 {
			h.Length = uint16(g.shape.Chunk)
		}
		payload = g.payload(g.shape.Elem*int(h.Length), outer)
	}
	return g.append(h, payload)
}

// append returns a frame with any header and payload, and right CRCs.
func (g *generator) append(h frame.Header, payload []byte) []byte {
	b := frame.Append(nil, &h, payload)
	if _, spans, err := Expect(g.shape, append(b[:len(b):len(b)], make([]byte, wire.MaxFrameBytes)...)); err == nil && len(spans) > 0 && spans[0].from == 0 {
		g.built[spans[0].item] = true
	}
	return b
}

// header has random fields, except that those for the link are right.
func (g *generator) header() frame.Header {
	r := g.rng
	return frame.Header{
		Flags: uint8(r.Uint32()), Job: uint8(r.Uint32()), Format: g.format(), Epoch: uint16(r.Uint32()),
		Rank: uint8(r.Uint32()), Code: wire.Code(r.Uint32()), VID: r.Uint32(), Length: uint16(r.Uint32()), Mask: r.Uint64(),
	}
}

// format returns a format with the shape's element size, which the frame's construction needs.
func (g *generator) format() wire.Format {
	return map[int]wire.Format{1: wire.FP8E4M3, 2: wire.BF16, 4: wire.FP32}[g.shape.Elem]
}

// payload is random, full of sync words, or contains a frame.
func (g *generator) payload(n int, outer bool) []byte {
	p := g.random(n)
	switch g.rng.IntN(4) {
	case 0:
		for at := g.rng.IntN(8); at < n; at += 1 + g.rng.IntN(8) {
			copy(p[at:], syncWord)
		}
	case 1:
		if outer {
			copy(p[g.rng.IntN(n):], g.build(false))
		}
	}
	return p
}

func (g *generator) random(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.rng.Uint32())
	}
	return b
}

// noise is random bytes.
func (g *generator) noise() { g.Bytes = append(g.Bytes, g.random(1+g.rng.IntN(200))...) }

// syncs is a series of bytes that start like a frame.
func (g *generator) syncs() {
	for range 1 + g.rng.IntN(8) {
		g.Bytes = append(g.Bytes, syncWord[:1+g.rng.IntN(len(syncWord))]...)
		if g.rng.IntN(2) == 0 {
			g.Bytes = append(g.Bytes, syncWord...)
			g.Bytes = append(g.Bytes, g.random(g.rng.IntN(30))...)
		}
	}
}

// cutOff is the beginning of a frame.
func (g *generator) cutOff() {
	b := g.build(true)
	g.Bytes = append(g.Bytes, b[:1+g.rng.IntN(len(b)-1)]...)
}

// flipped is a frame with one to three wrong bits.
func (g *generator) flipped() {
	b := g.build(true)
	for _, bit := range g.rng.Perm(8 * len(b))[:1+g.rng.IntN(3)] {
		b[bit/8] ^= 1 << (bit % 8)
	}
	g.Bytes = append(g.Bytes, b...)
}

// burst is a frame with up to three wrong bytes in a row.
func (g *generator) burst() {
	b := g.build(true)
	at := g.rng.IntN(len(b))
	copy(b[at:], g.random(1+g.rng.IntN(3)))
	g.Bytes = append(g.Bytes, b...)
}

// otherCRC is a frame with one wrong CRC. It is another one, has its bytes exchanged, or differs
// in one bit of itself or of the CRC register's final value.
func (g *generator) otherCRC() {
	b := g.build(true)
	at := len(b) - 2
	if g.rng.IntN(2) == 0 {
		at = len(syncWord) + shortHeader
	}
	switch g.rng.IntN(4) {
	case 0:
		copy(b[at:], g.random(2))
	case 1:
		b[at], b[at+1] = b[at+1], b[at]
	case 2:
		e := nearlyHeld[g.rng.IntN(len(nearlyHeld))]
		b[at], b[at+1] = b[at]^byte(e>>8), b[at+1]^byte(e)
	default:
		b[at+g.rng.IntN(2)] ^= 1 << g.rng.IntN(8)
	}
	g.Bytes = append(g.Bytes, b...)
}

// nearlyHeld are the errors in a CRC that leave one bit of the final register set, the lowest
// first.
var nearlyHeld = func() (errors [16]uint16) {
	for e := range 1 << 16 {
		if left := crc(0, []byte{byte(e >> 8), byte(e)}); bits.OnesCount16(left) == 1 {
			errors[bits.TrailingZeros16(left)] = uint16(e)
		}
	}
	return errors
}()

// refused is a header that no card accepts, with a right CRC.
func (g *generator) refused() {
	h := g.header()
	h.Kind = wire.KindData
	switch g.rng.IntN(4) {
	case 0:
		h.Length = 0
	case 1:
		h.Length = uint16(g.shape.Chunk + 1 + g.rng.IntN(4))
	}
	raw := h.Append(nil)[:shortHeader]
	switch g.rng.IntN(3) {
	case 0:
		raw[0] = raw[0]&0xf0 | byte(g.rng.IntN(16)) // version
	case 1:
		raw[0] = raw[0]&0x0f | byte(6+g.rng.IntN(11))<<4 // kind; 16 becomes 0
	}
	sum := crc(crcStart, raw)
	g.Bytes = append(append(g.Bytes, syncWord...), raw...)
	g.Bytes = append(g.Bytes, byte(sum>>8), byte(sum))
	g.Bytes = append(g.Bytes, g.random(g.rng.IntN(12))...)
}

// falseSync is a sync word, or the beginning of one, right before a frame.
func (g *generator) falseSync() {
	g.Bytes = append(g.Bytes, syncWord[:1+g.rng.IntN(len(syncWord))]...)
	g.frame()
}

// scrambled is a frame with bytes missing or added in the middle.
func (g *generator) scrambled() {
	b := g.build(true)
	at := g.rng.IntN(len(b))
	g.Bytes = append(g.Bytes, b[:at]...)
	if g.rng.IntN(2) == 0 {
		g.Bytes = append(g.Bytes, g.random(1+g.rng.IntN(8))...)
	} else {
		at = min(len(b), at+1+g.rng.IntN(8))
	}
	g.Bytes = append(g.Bytes, b[at:]...)
}
