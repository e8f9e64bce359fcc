package receiver

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/sigurn/crc16"
)

// Received is a receiver's output for a link's bytes.
type Received struct {
	Items  []string // packets and register accesses in order, in the format of receiver.cpp
	Counts Counts
}

// Counts are the counters of a receiver.
type Counts struct {
	Frames, Hunted, HeaderCRC, BadVersion, BadKind, BadLength int
}

// span is a received frame: its bytes on the link, and its item, or "" if it was refused.
type span struct {
	from, to int
	item     string
	payload  bool // present
	good     bool // all CRCs held
}

// What the oracle knows of the header and the frame: section 3, and the tables of
// PACKET.md.
const (
	syncWord = "\xa5TRB"

	version = 2

	kindData     = 1
	kindAsk      = 2
	kindFinish   = 3
	kindRegRead  = 4
	kindRegWrite = 5

	shortHeader = 14
	longHeader  = 22 // with a mask
)

var ccitt = crc16.MakeTable(crc16.CRC16_CCITT_FALSE)

// crc returns the CRC of data, continued from another CRC.
func crc(from uint16, data []byte) uint16 { return crc16.Update(from, data, ccitt) }

// crcStart is the initial value for the CRC of a header.
const crcStart = 0xffff

// Expect implements sections 3 and 6 of the specification for a complete stream: enough bytes
// must follow the last frame to end its reception. It also returns the frames with right header
// CRCs.
func Expect(s Shape, stream []byte) (*Received, []span, error) {
	r := &Received{}
	var spans []span
	for at := 0; at < len(stream); {
		rest := stream[at:]
		if !matches(rest) {
			r.Counts.Hunted++
			at++
			continue
		}
		if len(rest) < len(syncWord)+longHeader+2 {
			return nil, nil, fmt.Errorf("the stream ends inside a header, at byte %d", at)
		}
		header := rest[len(syncWord):]
		size := shortHeader
		if header[0]>>4 == kindRegWrite {
			size = longHeader
		}
		sum := binary.BigEndian.Uint16(header[size:])
		header = header[:size]
		if crc(crcStart, header) != sum {
			r.Counts.HeaderCRC++
			r.Counts.Hunted++
			at++
			continue
		}
		r.Counts.Frames++
		f := span{from: at, to: at + len(syncWord) + size + 2, good: true}
		taken := s.judge(header, &r.Counts)
		kind := header[0] >> 4
		text := hex.EncodeToString(append(append([]byte(nil), header...), make([]byte, longHeader-size)...))
		switch {
		case !taken:
		case kind == kindData:
			n := s.Elem * int(binary.LittleEndian.Uint16(header[12:]))
			if len(stream) < f.to+n+2 {
				return nil, nil, fmt.Errorf("the stream ends inside a payload, at byte %d", f.to)
			}
			payload := stream[f.to : f.to+n]
			how := "good"
			if f.good = crc(sum, payload) == binary.BigEndian.Uint16(stream[f.to+n:]); !f.good {
				how = "bad"
			}
			f.to += n + 2
			f.payload = true
			f.item = fmt.Sprintf("packet %s %x %s", text, payload, how)
		case kind == kindRegRead:
			f.item = fmt.Sprintf("register %s read", text)
		case kind == kindRegWrite:
			f.item = fmt.Sprintf("register %s write", text)
		default:
			f.item = fmt.Sprintf("packet %s - bare", text)
		}
		if f.item != "" {
			r.Items = append(r.Items, f.item)
		}
		spans = append(spans, f)
		at = f.to
	}
	return r, spans, nil
}

// matches reports whether bytes start like the sync word, up to their length.
func matches(b []byte) bool {
	n := min(len(b), len(syncWord))
	return string(b[:n]) == syncWord[:n]
}

// judge reports whether the receiver accepts a header with a right CRC, and counts a refusal.
func (s Shape) judge(header []byte, c *Counts) bool {
	length := int(binary.LittleEndian.Uint16(header[12:]))
	switch kind := header[0] >> 4; {
	case header[0]&15 != version:
		c.BadVersion++
	case kind < kindData || kind > kindRegWrite:
		c.BadKind++
	case kind == kindData && (length == 0 || length > s.Chunk):
		c.BadLength++
	default:
		return true
	}
	return false
}
