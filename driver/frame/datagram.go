package frame

import (
	"encoding/binary"
	"hash/crc32"

	"tributary/driver/wire"
)

// The packets of a card on a network: a datagram is header, payload and CRC-32C
// (driver/wire/NETWORK.md, section 2).

var castagnoli = crc32.MakeTable(wire.CastagnoliPolynomial)

// MaxDatagramBytes is the size of the largest datagram.
const MaxDatagramBytes = wire.MaxHeaderBytes + wire.MaxDatagramPayload + wire.DatagramCRCBytes

// AppendDatagram appends a datagram. The size of payload must match h's kind, format and length; it
// is nil for kinds without a payload.
func AppendDatagram(dst []byte, h *Header, payload []byte) []byte {
	start := len(dst)
	dst = append(h.Append(dst), payload...)
	return appendDatagramCRC(dst, start)
}

// AppendPaddedDatagram appends a datagram. Its payload is elements, padded with zeros to h's length.
// elements have h's format and are at most h's length.
func AppendPaddedDatagram(dst []byte, h *Header, elements []byte) []byte {
	start := len(dst)
	dst = append(h.Append(dst), elements...)
	missing := elementBytes[h.Format]*int(h.Length) - len(elements)
	dst = grow(dst, missing)
	clear(dst[len(dst)-missing:])
	return appendDatagramCRC(dst, start)
}

// appendDatagramCRC appends the CRC of dst[start:].
func appendDatagramCRC(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// DatagramStats counts datagrams. Each bad one has only its first failed check counted.
type DatagramStats struct {
	Packets    uint64 // that passed the checks
	Short      uint64 // less bytes than any packet has
	CRC        uint64 // the CRC was wrong
	BadVersion uint64 // of another protocol version
	BadKind    uint64 // kinds that are unknown or do not travel in this direction
	BadLength  uint64 // another size than kind, format and length require
}

// DatagramChecker checks the datagrams of one direction. It allocates nothing.
type DatagramChecker struct {
	direction Direction
	card      cardData
	stats     DatagramStats
	version   uint8 // of the last datagram counted as BadVersion
}

// NewDatagramChecker returns a checker for the datagrams of one direction.
func NewDatagramChecker(d Direction) *DatagramChecker { return &DatagramChecker{direction: d} }

// cardData is what a card checks data and results by.
type cardData struct {
	most    int // elements; 0: the checker is no card's. A card takes no replies
	element int // bytes
}

// NewCardDatagramChecker returns the checker of a card: data has 1 to chunk elements of the card's
// format, whatever format its header names.
func NewCardDatagramChecker(chunk int, format wire.Format) *DatagramChecker {
	return &DatagramChecker{direction: ToCard, card: cardData{chunk, elementBytes[format]}}
}

// NewChildDatagramChecker returns the checker of a card for the datagrams of its parent
// (driver/wire/TREES.md, section 5): results, replays and statuses. Results have 1 to chunk elements of
// the card's format, whatever format their headers name.
func NewChildDatagramChecker(chunk int, format wire.Format) *DatagramChecker {
	return &DatagramChecker{direction: FromCard, card: cardData{chunk, elementBytes[format]}}
}

// payloadBytes returns the size of the payload that a header requires; ok is false if there is none.
func (c *DatagramChecker) payloadBytes(h *Header) (size int, ok bool) {
	if c.card.most > 0 {
		size = int(h.Length) * c.card.element
		return size, h.Length > 0 && int(h.Length) <= c.card.most
	}
	size = int(h.Length) * elementBytes[h.Format]
	return size, size > 0 && size <= wire.MaxDatagramPayload
}

// Stats returns the checker's counts.
func (c *DatagramChecker) Stats() DatagramStats { return c.stats }

// Version returns the version in the last datagram that was counted as BadVersion.
func (c *DatagramChecker) Version() uint8 { return c.version }

// Check fills f in from the datagram b, and reports whether b is one. f refers to b.
func (c *DatagramChecker) Check(b []byte, f *Frame) bool {
	if len(b) < wire.BaseHeaderBytes+wire.DatagramCRCBytes {
		c.stats.Short++
		return false
	}
	end := len(b) - wire.DatagramCRCBytes
	if crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		c.stats.CRC++
		return false
	}
	if version := b[0] & 0xf; version != wire.Version {
		c.stats.BadVersion++
		c.version = version
		return false
	}
	k := &kinds[b[0]>>4]
	if k.Kind == 0 || k.FromCard != (c.direction == FromCard) || k.Kind == wire.KindReply && c.card.most > 0 {
		c.stats.BadKind++
		return false
	}
	head := headerBytes[k.Kind]
	if end < head {
		c.stats.BadLength++
		return false
	}
	f.Header.decode(b)
	f.Payload, f.Raw, f.Bad = nil, b, false
	size, ok := 0, true
	if k.Payload {
		size, ok = c.payloadBytes(&f.Header)
		f.Payload = b[head:end]
	}
	if !ok || end-head != size {
		c.stats.BadLength++
		return false
	}
	c.stats.Packets++
	return true
}
