// The link's receiver: frames out of a byte stream (section 3 of the
// specification).

package model

import (
	"bytes"

	"tributary/driver/wire"
)

// receiveBytes is the size of a decoder's buffer, many times the largest
// frame.
const receiveBytes = 128 << 10

// decoder finds the frames of a host. Bytes are written to space, advance reports their number, and
// next returns the packets in them.
type decoder struct {
	maxLength    uint16 // elements, the card's CHUNK
	elementBytes int
	counters     counters

	buf        []byte
	head, tail int    // the unprocessed bytes are buf[head:tail]
	inPayload  bool   // buf[head] begins a frame whose header was accepted
	header     Header // of that frame
	headerSize int    // bytes of its sync word, header and CRC
	headerCRC  uint16
}

func newDecoder(cfg Config, counters counters) decoder {
	return decoder{
		maxLength:    uint16(cfg.Chunk),
		elementBytes: elementBytes(cfg.Format),
		counters:     counters,
		buf:          make([]byte, receiveBytes),
	}
}

// space returns the buffer for the next bytes of the stream, which is never empty. It invalidates
// the packets that next has returned.
func (d *decoder) space() []byte {
	d.tail = copy(d.buf, d.buf[d.head:d.tail])
	d.head = 0
	return d.buf[d.tail:]
}

// advance reports that n bytes were written to space.
func (d *decoder) advance(n int) { d.tail += n }

// drop discards half a frame, because the link went down.
func (d *decoder) drop() { d.head, d.tail, d.inPayload = 0, 0, false }

// next sets p to the next packet with a valid header; p.Bad reports an invalid payload. It returns
// false if it needs more bytes. The payload stays in the decoder's buffer until space is called.
func (d *decoder) next(p *Packet) bool {
	for {
		if d.inPayload {
			return d.payload(p)
		}
		if !d.hunt() || !d.readHeader() {
			return false
		}
	}
}

// hunt moves head to the next sync word. It returns false if there is no whole one, and keeps a
// possible beginning of one.
func (d *decoder) hunt() bool {
	rest := d.buf[d.head:d.tail]
	at := bytes.Index(rest, wire.Sync[:])
	found := at >= 0
	if !found {
		at = len(rest) - beginOfSync(rest)
	}
	d.counters.add(countHunted, at)
	d.head += at
	return found
}

// beginOfSync returns the length of a possible beginning of a sync word at the end of b.
func beginOfSync(b []byte) int {
	for n := min(len(b), wire.SyncBytes-1); n > 0; n-- {
		if bytes.HasSuffix(b, wire.Sync[:n]) {
			return n
		}
	}
	return 0
}

// readHeader reads the header after the sync word at head. It accepts a valid one and sets
// inPayload; it counts any other, and the search may continue. It returns false if it needs more
// bytes.
func (d *decoder) readHeader() bool {
	rest := d.buf[d.head+wire.SyncBytes : d.tail]
	if len(rest) == 0 {
		return false
	}
	info, known := wire.Kind(rest[0] >> 4).Info()
	if info.FromCard {
		info, known = wire.KindInfo{}, false
	}
	size := info.HeaderBytes(true)
	if len(rest) < size+wire.CRCBytes {
		return false
	}
	d.headerCRC = updateCRC(wire.CRCInit, rest[:size])
	if d.headerCRC != crcAt(rest[size:]) {
		d.counters.add(countHeaderCRC, 1)
		d.counters.add(countHunted, 1)
		d.head++
		return true
	}
	d.counters.add(countFrames, 1)
	d.header = ParseHeader(rest[:size])
	d.headerSize = wire.SyncBytes + size + wire.CRCBytes
	if code := d.check(known); code != accepted {
		d.counters.refused(code)
		d.head += d.headerSize
		return true
	}
	d.inPayload = true
	return true
}

// check returns the defect of a header, as far as a link can detect it.
func (d *decoder) check(known bool) wire.Code {
	switch {
	case d.header.Version != wire.Version:
		return wire.CodeBadVersion
	case !known:
		return wire.CodeBadKind
	case d.header.Kind == wire.KindData && (d.header.Length == 0 || d.header.Length > d.maxLength):
		return wire.CodeBadLength
	}
	return accepted
}

// payload returns the packet with the accepted header, once it is whole.
func (d *decoder) payload(p *Packet) bool {
	frame := d.buf[d.head:d.tail]
	size := 0
	if d.header.Kind == wire.KindData {
		size = int(d.header.Length)*d.elementBytes + wire.CRCBytes
	}
	if len(frame) < d.headerSize+size {
		return false
	}
	p.Header, p.Payload, p.Bad = d.header, nil, false
	if size > 0 {
		payload := frame[d.headerSize : d.headerSize+size-wire.CRCBytes]
		p.Payload = payload
		p.Bad = updateCRC(d.headerCRC, payload) != crcAt(frame[d.headerSize+len(payload):])
	}
	d.head += d.headerSize + size
	d.inPayload = false
	return true
}

// crcAt reads a CRC in wire order, high byte first.
func crcAt(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }
