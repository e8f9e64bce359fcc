package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"

	"tributary/driver/wire"
)

// Direction is the direction of a byte stream.
type Direction uint8

// The two directions of a link.
const (
	ToCard Direction = iota
	FromCard
)

// String returns "to card" or "from card".
func (d Direction) String() string { return [...]string{"to card", "from card"}[d] }

// Frame is a frame that passed its checks.
type Frame struct {
	Header
	Payload []byte // nil for kinds without one; valid until the next Fill or Feed
	Raw     []byte // the whole frame with sync word and CRCs; valid as long as Payload
	Bad     bool   // the payload's CRC is wrong; only a card's scanner returns such frames
}

// Stats counts a Scanner's frames and errors.
type Stats struct {
	Headers    uint64 // headers whose CRC was right
	Frames     uint64 // frames returned
	Hunted     uint64 // bytes skipped in search of a sync word
	HeaderCRC  uint64 // headers whose CRC was wrong
	PayloadCRC uint64 // payloads whose CRC was wrong
	BadVersion uint64 // headers of another protocol version
	BadKind    uint64 // kinds that are unknown or do not travel in this direction
	BadLength  uint64 // a length of 0 or over the limit, or an unknown format
}

// bufferBytes is the size of a Scanner's buffer: many frames, to make each system call
// worthwhile.
const bufferBytes = 256 << 10

// Scanner finds the frames in a byte stream, among any other bytes, by the rules for receivers
// in SPEC.md, section 3. It allocates its memory once.
type Scanner struct {
	direction Direction
	maxLength int
	element   int  // a card's: bytes of an element in its format; otherwise 0
	switches  bool // leaves the check of payloads to their receiver
	buf       []byte
	r, w      int  // buf[r:w] is read but not scanned
	counted   bool // Headers has the header at r
	ended     bool // no more bytes will come
	stats     Stats
	version   uint8 // of the last header counted as BadVersion
}

// NewScanner returns a scanner for frames in one direction with payloads of at most maxLength
// elements. 0 means the most that a frame can carry.
func NewScanner(d Direction, maxLength int) *Scanner {
	if maxLength == 0 {
		maxLength = wire.MaxFrameBytes
	}
	return &Scanner{direction: d, maxLength: maxLength, buf: make([]byte, bufferBytes)}
}

// NewCardScanner returns the scanner of a card whose chunks have at most chunk elements of a
// format. It leaves the checks behind the header to the card's core: it returns a frame whose
// payload's CRC is wrong, with Bad set, and one that names another format. Payloads have the
// size of the card's format.
func NewCardScanner(chunk int, format wire.Format) *Scanner {
	s := NewScanner(ToCard, chunk)
	s.element = elementBytes[format]
	return s
}

// NewSwitchScanner returns the scanner of a program that forwards frames as they are. It checks headers,
// and leaves the CRC of a payload to the frame's receiver.
func NewSwitchScanner(d Direction) *Scanner {
	s := NewScanner(d, 0)
	s.switches = true
	return s
}

// Stats returns the scanner's counts.
func (s *Scanner) Stats() Stats { return s.stats }

// Version returns the version in the last header that was counted as
// BadVersion.
func (s *Scanner) Version() uint8 { return s.version }

// Fill reads once from r. It returns the number of bytes, with r's error.
func (s *Scanner) Fill(r io.Reader) (int, error) {
	s.makeRoom()
	n, err := r.Read(s.buf[s.w:])
	s.w += n
	return n, err
}

// Feed takes as many bytes of p as fit and returns their number. There is room again after Next
// has returned false.
func (s *Scanner) Feed(p []byte) int {
	s.makeRoom()
	n := copy(s.buf[s.w:], p)
	s.w += n
	return n
}

// End declares the end of the stream. Next then searches an incomplete frame for frames inside
// it.
func (s *Scanner) End() { s.ended = true }

// Drop forgets the bytes that were read but not scanned, as when a link goes down.
func (s *Scanner) Drop() { s.r, s.w, s.counted = 0, 0, false }

// makeRoom moves the rest of the buffer to its beginning. A frame is shorter than the buffer,
// so there is room after Next has returned false.
func (s *Scanner) makeRoom() {
	if s.r > 0 {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
}

// errShort means that the frame at the beginning of the buffer is incomplete.
var errShort = errors.New("more bytes are needed")

// Next fills in the next frame, or returns false when more bytes are needed.
func (s *Scanner) Next(f *Frame) bool {
	for s.hunt() {
		size, err := s.check(f)
		switch {
		case err == nil:
			s.move(size)
			s.stats.Frames++
			return true
		case err != errShort:
			s.move(size)
		case s.ended:
			s.skip(1)
		default:
			return false
		}
	}
	return false
}

// move goes on n bytes later.
func (s *Scanner) move(n int) {
	s.r += n
	s.counted = s.counted && n == 0
}

// skip skips n bytes.
func (s *Scanner) skip(n int) {
	s.move(n)
	s.stats.Hunted += uint64(n)
}

// hunt skips bytes until a whole sync word is at s.r. It returns false when the buffer holds
// none; the end of the buffer may hold the first part of one.
func (s *Scanner) hunt() bool {
	for {
		b := s.buf[s.r:s.w]
		i := bytes.IndexByte(b, wire.Sync[0])
		if i < 0 {
			s.skip(len(b))
			return false
		}
		s.skip(i)
		b = b[i:]
		if len(b) < wire.SyncBytes {
			if bytes.HasPrefix(wire.Sync[:], b) && !s.ended {
				return false
			}
		} else if [wire.SyncBytes]byte(b) == wire.Sync {
			return true
		}
		s.skip(1)
	}
}

var (
	errHeaderCRC  = errors.New("header CRC")
	errBadHeader  = errors.New("a header that cannot be")
	errPayloadCRC = errors.New("payload CRC")
)

// check checks the frame with its sync word at s.r and fills f in. It returns the number of
// bytes to skip, unless the error is errShort.
func (s *Scanner) check(f *Frame) (int, error) {
	b := s.buf[s.r:s.w]
	if len(b) <= wire.SyncBytes {
		return 0, errShort
	}
	k := &kinds[b[wire.SyncBytes]>>4]
	takes := k.Kind != 0 && k.FromCard == (s.direction == FromCard)
	n := wire.BaseHeaderBytes
	if takes {
		n = headerBytes[k.Kind]
	}
	head := wire.SyncBytes + n + wire.CRCBytes
	if len(b) < head {
		return 0, errShort
	}
	crc := binary.BigEndian.Uint16(b[head-wire.CRCBytes:])
	if CRC(wire.CRCInit, b[wire.SyncBytes:head-wire.CRCBytes]) != crc {
		s.stats.HeaderCRC++
		s.stats.Hunted++
		return 1, errHeaderCRC
	}
	if !s.counted {
		s.counted = true
		s.stats.Headers++
	}
	if version := b[wire.SyncBytes] & 0xf; version != wire.Version {
		s.stats.BadVersion++
		s.version = version
		return head, errBadHeader
	}
	if !takes {
		s.stats.BadKind++
		return head, errBadHeader
	}
	f.Header.decode(b[wire.SyncBytes:])
	f.Payload, f.Bad = nil, false
	f.Raw = b[:head]
	if !k.Payload {
		return head, nil
	}
	size := int(f.Length) * s.elementOf(f.Format)
	whole := head + size + wire.CRCBytes
	if size == 0 || int(f.Length) > s.maxLength || whole > wire.MaxFrameBytes {
		s.stats.BadLength++
		return head, errBadHeader
	}
	if len(b) < whole {
		return 0, errShort
	}
	f.Payload = b[head : head+size]
	f.Raw = b[:whole]
	if s.switches {
		return whole, nil
	}
	f.Bad = CRC(crc, f.Payload) != binary.BigEndian.Uint16(b[head+size:])
	if f.Bad && s.element == 0 {
		s.stats.PayloadCRC++
		return whole, errPayloadCRC
	}
	return whole, nil
}

// elementOf returns the size of a payload's elements in bytes; 0 for an unknown format.
func (s *Scanner) elementOf(format wire.Format) int {
	if s.element != 0 {
		return s.element
	}
	return elementBytes[format]
}
