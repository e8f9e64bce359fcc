// Every check of NETWORK.md, section 2.

package model

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// crc32c is the CRC by its definition, bit by bit.
func crc32c(b []byte) uint32 {
	r := ^uint32(0)
	for _, x := range b {
		r ^= uint32(x)
		for range 8 {
			r = r>>1 ^ wire.CastagnoliPolynomial*(r&1)
		}
	}
	return ^r
}

// sealed returns b with its CRC.
func sealed(b []byte) []byte { return binary.LittleEndian.AppendUint32(b[:len(b):len(b)], crc32c(b)) }

func TestCRC32C(t *testing.T) {
	assert.EqualValues(t, 0xe3069283, crc32c([]byte("123456789")), "the check value of the catalogue of CRCs")
	// RFC 3720, B.4: 32 bytes of zero.
	assert.EqualValues(t, 0x8a9136aa, crc32c(make([]byte, 32)))
	p := packetOf(wire.KindAsk, 3, 7)
	datagram := AppendDatagram(nil, &p)
	assert.Equal(t, sealed(datagram[:14]), datagram)
}

// dropCounters are the counters of what happens to datagrams.
var dropCounters = []string{"short", "datagram_crc", "frames", "bad_version", "bad_kind", "bad_length", "stranger", "stored", "asks", "finishes"}

// drops checks which of dropCounters a datagram counts as: "frames" with any that comes behind it.
func (s *site) drops(datagram []byte, from wire.Address, want ...string) {
	s.Helper()
	before := map[string]uint32{}
	for _, name := range dropCounters {
		before[name] = s.e.card.counters[counterIndex(name)]
	}
	s.e.Receive(datagram, from, wire.ECT0)
	got := []string{}
	for _, name := range dropCounters {
		if s.e.card.counters[counterIndex(name)] != before[name] {
			got = append(got, name)
		}
	}
	assert.Equal(s, want, got, "%x", datagram)
}

// TestDatagramChecksInTheirOrder corrects one thing after another, beginning with a datagram where
// all is wrong.
func TestDatagramChecksInTheirOrder(t *testing.T) {
	s := newSiteWithJob(t, 1)
	good := element(0, 10, 1)
	header := AppendHeader(nil, &good.Header, true)

	header[0] = 7<<4 | 1 // no kind, and the version before
	s.drops(header[:13], hostD, "short")
	s.drops(append(header[:13:13], 0, 0, 0, 0), hostD, "short")
	s.drops(append(header[:14:14], 0, 0, 0, 0), hostD, "datagram_crc")
	s.drops(sealed(header), hostD, "frames", "bad_version")
	header[0] = 7<<4 | 2
	s.drops(sealed(header), hostD, "frames", "bad_kind")
	header[0] = 1<<4 | 2
	s.drops(sealed(header), hostD, "frames", "bad_length")
	whole := append(header, good.Payload...)
	s.drops(sealed(whole), hostD, "frames", "stranger")
	s.drops(sealed(whole), hostB, "frames", "stored")
	s.sends()
}

func TestEveryByteIsChecked(t *testing.T) {
	s := newSiteWithJob(t, 1)
	good := element(0, 10, 1)
	datagram := AppendDatagram(nil, &good)
	for bit := range 8 * len(datagram) {
		datagram[bit/8] ^= 1 << (bit % 8)
		s.drops(datagram, hostB, "datagram_crc")
		datagram[bit/8] ^= 1 << (bit % 8)
	}
	for n := range datagram {
		want := "datagram_crc"
		if n < 18 {
			want = "short"
		}
		s.drops(datagram[:n], hostB, want)
	}
	s.drops(append(datagram, 0), hostB, "datagram_crc")
	s.drops(datagram, hostB, "frames", "stored")
}

func TestKindsThatTravelToACard(t *testing.T) {
	for kind := range wire.Kind(16) {
		s := newSiteWithJob(t, 1)
		h := Header{Version: wire.Version, Kind: kind, Epoch: 1, VID: 10, Format: wire.FP32}
		sizes := map[wire.Kind]int{wire.KindData: 14 + 4, wire.KindAsk: 14, wire.KindFinish: 14, wire.KindRegRead: 14, wire.KindRegWrite: 22}
		size, ok := sizes[kind]
		if !ok {
			s.drops(sealed(AppendHeader(nil, &h, true)), hostB, "frames", "bad_kind")
			continue
		}
		if kind == wire.KindData {
			h.Length = 1
		}
		b := append(AppendHeader(nil, &h, true), make([]byte, 8)...)
		s.drops(sealed(b[:size+1]), hostB, "frames", "bad_length")
		if size > 14 {
			s.drops(sealed(b[:size-1]), hostB, "frames", "bad_length")
		}
		before := s.e.card.cycles
		s.e.Receive(sealed(b[:size]), hostB, wire.ECT0)
		assert.Equal(t, before+1, s.e.card.cycles, "%v of the right size arrives", kind)
	}
}

// TestLengthsOfData: 1 to CHUNK elements of the card's own format, whatever the header names.
func TestLengthsOfData(t *testing.T) {
	e, err := NewEndpoint(Config{Lanes: 2, Ports: 1, Chunk: 6, Window: 1, Format: wire.BF16, Result: wire.FP32, Shell: wire.ShellUDP, Link: 8}, wire.Address{})
	require.NoError(t, err)
	s := &site{t, e}
	for _, c := range []struct {
		length, bytes int
		format        wire.Format
		want          string
	}{
		{0, 0, wire.BF16, "bad_length"}, {0, 2, wire.BF16, "bad_length"}, {1, 2, wire.BF16, "stranger"}, {1, 1, wire.BF16, "bad_length"},
		{1, 4, wire.BF16, "bad_length"}, {6, 12, wire.BF16, "stranger"}, {7, 14, wire.BF16, "bad_length"}, {8, 16, wire.BF16, "bad_length"},
		{6, 12, wire.FP32, "stranger"}, {6, 24, wire.FP32, "bad_length"}, {6, 12, 99, "stranger"}, {0xffff, 12, wire.BF16, "bad_length"},
	} {
		h := Header{Version: wire.Version, Kind: wire.KindData, Format: c.format, Length: uint16(c.length)}
		s.drops(sealed(append(AppendHeader(nil, &h, true), make([]byte, c.bytes)...)), hostB, "frames", c.want)
	}
}

// TestAnswersNeedARightCRC: a register access with a wrong CRC has no effect and no answer.
func TestAnswersNeedARightCRC(t *testing.T) {
	s := newSite(t, 1)
	take := Packet{Header: Header{Version: wire.Version, Kind: wire.KindRegWrite, VID: wire.RegOwner, Mask: 7}}
	datagram := AppendDatagram(nil, &take)
	datagram[14] ^= 8
	s.drops(datagram, hostA, "datagram_crc")
	s.sends()
	assert.Zero(t, s.read(wire.RegOwner))
}

func TestDatagramsOfOtherShells(t *testing.T) {
	for _, cfg := range []Config{{Lanes: 1, Ports: 1, Chunk: 1, Window: 1}, {Lanes: 1, Ports: 1, Chunk: 1, Window: 1, Shell: wire.ShellStream, Link: 8}} {
		_, err := NewEndpoint(cfg, wire.Address{})
		assert.Error(t, err)
	}
}
