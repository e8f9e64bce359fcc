// The link's receiver: hand-written frames, garbage and broken frames.

package model

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// wireTap is a decoder that keeps its packets, for a card of chunk 4.
type wireTap struct {
	*testing.T
	decoder decoder
	packets []Packet
}

func newWireTap(t *testing.T) *wireTap {
	return &wireTap{T: t, decoder: newDecoder(Config{Chunk: 4, Format: wire.FP32}, newCounters(wire.ShellStream))}
}

// feed gives bytes to the decoder in pieces of the given size.
func (w *wireTap) feed(size int, b ...byte) {
	for len(b) > 0 {
		n := copy(w.decoder.space(), b[:min(size, len(b))])
		w.decoder.advance(n)
		b = b[n:]
		for {
			var p Packet
			if !w.decoder.next(&p) {
				break
			}
			p.Payload = bytes.Clone(p.Payload)
			w.packets = append(w.packets, p)
		}
	}
}

// counts checks every counter of the link: the unnamed ones are 0.
func (w *wireTap) counts(want map[string]int) {
	w.Helper()
	for i, c := range wire.Counters {
		assert.EqualValues(w, want[c.Name], w.decoder.counters[i], c.Name)
	}
}

// decodeHex reads bytes with blanks and bars in between.
func decodeHex(t testing.TB, digits string) []byte {
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "|", "").Replace(digits))
	require.NoError(t, err)
	return b
}

// askFrame is a whole frame, written by hand; askPacket is its packet.
const askFrame = "a5 54 52 42 | 22 00 05 00 cd ab 03 00 fe ff ff ff 00 00 | c9 23"

var askPacket = Packet{Header: Header{Version: 2, Kind: wire.KindAsk, Job: 5, Epoch: 0xabcd, Rank: 3, VID: 0xfffffffe}}

func TestReceivesTheHandWrittenFrames(t *testing.T) {
	for _, size := range []int{1, 3, 1 << 10} {
		w := newWireTap(t)
		var stream []byte
		var want []Packet
		for _, f := range handFrames(t) {
			if info, _ := f.want.Kind.Info(); !info.FromCard {
				stream = append(stream, f.bytes...)
				want = append(want, f.want)
			}
		}
		w.feed(size, stream...)
		assert.Equal(t, want, w.packets, "in pieces of %d bytes", size)
		w.counts(map[string]int{"frames": 5})
	}
}

func TestSearchGoesOnInsideABrokenHeader(t *testing.T) {
	// A sync word, directly followed by a whole frame.
	w := newWireTap(t)
	w.feed(1, decodeHex(t, "a5545242"+askFrame)...)
	assert.Equal(t, []Packet{askPacket}, w.packets)
	w.counts(map[string]int{"frames": 1, "header_crc": 1, "hunted": 4})
}

func TestSearchSeesSyncWordsThatOverlap(t *testing.T) {
	w := newWireTap(t)
	w.feed(1, decodeHex(t, "a5 a554 a55452 "+askFrame)...)
	assert.Equal(t, []Packet{askPacket}, w.packets)
	w.counts(map[string]int{"frames": 1, "hunted": 6})
}

func TestWrongHeaderCRC(t *testing.T) {
	for bit := range 8 * 16 { // of header and CRC
		w := newWireTap(t)
		broken := decodeHex(t, askFrame)
		broken[4+bit/8] ^= 1 << (bit % 8)
		w.feed(7, append(broken, decodeHex(t, askFrame)...)...)
		assert.Equal(t, []Packet{askPacket}, w.packets)
		w.counts(map[string]int{"frames": 1, "header_crc": 1, "hunted": 20})
	}
}

func TestWrongPayloadCRC(t *testing.T) {
	frames := handFrames(t)
	data := frames[0]
	for bit := range 8 * 10 { // of payload and CRC
		w := newWireTap(t)
		broken := bytes.Clone(data.bytes)
		broken[20+bit/8] ^= 1 << (bit % 8)
		w.feed(7, append(broken, data.bytes...)...)
		require.Len(t, w.packets, 2)
		assert.True(t, w.packets[0].Bad)
		assert.Equal(t, data.want.Header, w.packets[0].Header)
		assert.Equal(t, data.want, w.packets[1])
		w.counts(map[string]int{"frames": 2}) // the core counts payload_crc
	}
}

func TestAPayloadBelongsToItsHeader(t *testing.T) {
	// One frame's header and another's payload: the other has rank 0.
	a := Packet{Header: Header{Version: 2, Kind: wire.KindData, Format: wire.FP32, Length: 1}, Payload: words(f(1))}
	b := a
	b.Rank, b.Payload = 1, words(f(2))
	mixed := append(AppendFrame(nil, &a)[:20], AppendFrame(nil, &b)[20:]...)
	w := newWireTap(t)
	w.feed(64, mixed...)
	require.Len(t, w.packets, 1)
	assert.True(t, w.packets[0].Bad)
}

// headerFrame returns a frame with any header and a valid CRC, without a payload.
func headerFrame(h Header) []byte {
	frame := AppendFrame(nil, &Packet{Header: h})
	if info, _ := h.Kind.Info(); info.Payload {
		frame = frame[:len(frame)-wire.CRCBytes]
	}
	return frame
}

func TestRejectedHeaders(t *testing.T) {
	for _, c := range []struct {
		name    string
		header  Header
		counter string
	}{
		{"a version", Header{Version: 1, Kind: wire.KindAsk}, "bad_version"},
		{"a version, and a kind", Header{Version: 1, Kind: 7}, "bad_version"},
		{"no kind", Header{Version: 2, Kind: 0}, "bad_kind"},
		{"no kind", Header{Version: 2, Kind: 15}, "bad_kind"},
		{"an empty chunk", Header{Version: 2, Kind: wire.KindData}, "bad_length"},
		{"a chunk too large", Header{Version: 2, Kind: wire.KindData, Length: 5}, "bad_length"},
	} {
		w := newWireTap(t)
		w.feed(5, append(headerFrame(c.header), decodeHex(t, askFrame)...)...)
		assert.Equal(t, []Packet{askPacket}, w.packets, c.name)
		w.counts(map[string]int{"frames": 2, c.counter: 1})
	}
}

func TestKindsOfTheOtherDirectionAreReadAsFourteenBytes(t *testing.T) {
	// A card sends status with 22 bytes. With 14 and a valid CRC, it is a header of a kind that a card
	// does not accept.
	var stream []byte
	for _, kind := range []wire.Kind{wire.KindResult, wire.KindReplay, wire.KindStatus, wire.KindReply} {
		frame := headerFrame(Header{Version: 2, Kind: wire.KindAsk})
		frame[4] = 2 | byte(kind)<<4
		crc := crcOf(frame[4:18])
		frame[18], frame[19] = byte(crc>>8), byte(crc)
		stream = append(stream, frame...)
	}
	w := newWireTap(t)
	w.feed(1, append(stream, decodeHex(t, askFrame)...)...)
	assert.Equal(t, []Packet{askPacket}, w.packets)
	w.counts(map[string]int{"frames": 5, "bad_kind": 4})
}

// crcOf computes CRC-16/CCITT-FALSE bit by bit.
func crcOf(b []byte) uint16 {
	crc := uint16(0xffff)
	for _, x := range b {
		crc ^= uint16(x) << 8
		for range 8 {
			carry := crc >> 15
			crc <<= 1
			crc ^= 0x1021 * carry
		}
	}
	return crc
}

func TestPayloadOfBadLengthIsHunted(t *testing.T) {
	p := Packet{Header: Header{Version: 2, Kind: wire.KindData, Length: 5}, Payload: words(1, 2, 3, 4, 5)}
	w := newWireTap(t)
	w.feed(9, append(AppendFrame(nil, &p), decodeHex(t, askFrame)...)...)
	assert.Equal(t, []Packet{askPacket}, w.packets)
	w.counts(map[string]int{"frames": 2, "bad_length": 1, "hunted": 22})
}

func TestACutFrameTakesTheNextsBytesOnly(t *testing.T) {
	data := handFrames(t)[0]
	w := newWireTap(t)
	stream := bytes.Clone(data.bytes[:22]) // two of the payload's bytes
	stream = append(stream, data.bytes...)
	stream = append(stream, data.bytes...)
	w.feed(11, stream...)
	require.Len(t, w.packets, 2)
	assert.True(t, w.packets[0].Bad)
	assert.Equal(t, data.want, w.packets[1])
	w.counts(map[string]int{"frames": 2, "hunted": len(data.bytes) - 8})
}

func TestDropForgetsHalfAFrame(t *testing.T) {
	data := handFrames(t)[0]
	for cut := range len(data.bytes) {
		w := newWireTap(t)
		w.feed(1, data.bytes[:cut]...)
		w.decoder.drop()
		w.feed(1, data.bytes...)
		assert.Equal(t, []Packet{data.want}, w.packets)
	}
}

func TestManyFramesThroughOneBuffer(t *testing.T) {
	w := newWireTap(t)
	frame := decodeHex(t, askFrame)
	stream := bytes.Repeat(frame, 2*receiveBytes/len(frame))
	w.feed(len(stream), stream...)
	assert.Len(t, w.packets, len(stream)/len(frame))
	w.counts(map[string]int{"frames": len(stream) / len(frame)})
}
