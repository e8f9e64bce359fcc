// Package record logs the bytes on a link, and plays a log back.
//
// # The link log
//
// A log is a file in two parts. All numbers are little-endian. The head is:
//
//	8 bytes   the letters TRIBLOG and the version: 1, or 2 for a link of packets
//	8 bytes   start time: nanoseconds since 1970, UTC
//
// The entries follow in order, without an end mark: one for every read from the link or
// write to it. The position of a write is the time it began. An entry is:
//
//	8 bytes   nanoseconds since the start time
//	4 bytes   bits 27:0 the number of bytes that follow, bit 31 set when they
//	          came from the card; bits 29:28 the ECN field of a packet from the card
//	n bytes   the bytes on the link
//
// In version 1, entries do not follow frames: a reader joins the bytes of a direction and feeds
// them to a frame.Scanner. In version 2, an entry is one packet.
package record

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"tributary/driver/wire"
)

const (
	magic          = "TRIBLOG"
	versionStream  = 1
	versionPackets = 2

	headBytes   = 16
	entryBytes  = 12
	fromCardBit = 1 << 31
	ecnShift    = 28
	ecnBits     = wire.FlagECN << ecnShift

	// maxEntry limits the size of an entry for a Reader, so that a damaged file does not
	// request gigabytes.
	maxEntry = 16 << 20
)

// Entry is a piece of the bytes in one direction, or a packet.
type Entry struct {
	At       time.Duration // since the log was begun
	FromCard bool          // false: to the card
	ECN      wire.ECN      // of a packet from the card
	Bytes    []byte
}

// ErrNoLog is the error for a file that is not a link log of this version.
var ErrNoLog = errors.New("not a link log of this version, which begins with TRIBLOG and a 1 or a 2")

// DamagedError is the error for a damaged log.
type DamagedError struct {
	Offset int64 // of the damaged entry in the file
	Why    string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("link log damaged at byte %d: %s", e.Offset, e.Why)
}

// Reader reads a link log.
type Reader struct {
	r       *bufio.Reader
	begun   time.Time
	packets bool
	offset  int64 // of the next entry
}

// NewReader reads the head of a log. The error is ErrNoLog if r is not a log.
func NewReader(r io.Reader) (*Reader, error) {
	l := &Reader{r: bufio.NewReader(r), offset: headBytes}
	var head [headBytes]byte
	if _, err := io.ReadFull(l.r, head[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, ErrNoLog
	} else if err != nil {
		return nil, err
	}
	version := head[len(magic)]
	if !strings.HasPrefix(string(head[:]), magic) || version != versionStream && version != versionPackets {
		return nil, ErrNoLog
	}
	l.packets = version == versionPackets
	l.begun = time.Unix(0, int64(binary.LittleEndian.Uint64(head[8:]))).UTC()
	return l, nil
}

// Begun returns the start time of the log.
func (l *Reader) Begun() time.Time { return l.begun }

// Packets reports whether each entry is a packet.
func (l *Reader) Packets() bool { return l.packets }

// Next returns the next entry; the caller owns its bytes. The error is io.EOF after the last
// entry, and a DamagedError for a truncated or invalid entry.
func (l *Reader) Next() (Entry, error) {
	var head [entryBytes]byte
	if _, err := io.ReadFull(l.r, head[:]); err == io.ErrUnexpectedEOF {
		return Entry{}, l.damaged("it ends in the middle of an entry's head")
	} else if err != nil {
		return Entry{}, err
	}
	size := binary.LittleEndian.Uint32(head[8:])
	e := Entry{
		At:       time.Duration(binary.LittleEndian.Uint64(head[:])),
		FromCard: size&fromCardBit != 0,
	}
	size &^= fromCardBit
	if l.packets {
		e.ECN = wire.ECN(size & ecnBits >> ecnShift)
		size &^= ecnBits
	}
	if size > maxEntry || e.At < 0 {
		return Entry{}, l.damaged(fmt.Sprintf("an entry of %d bytes at %d ns", size, uint64(e.At)))
	}
	e.Bytes = make([]byte, size)
	if _, err := io.ReadFull(l.r, e.Bytes); err == io.EOF || err == io.ErrUnexpectedEOF {
		return Entry{}, l.damaged(fmt.Sprintf("it ends within the %d bytes of an entry", size))
	} else if err != nil {
		return Entry{}, err
	}
	l.offset += entryBytes + int64(size)
	return e, nil
}

func (l *Reader) damaged(why string) error { return &DamagedError{Offset: l.offset, Why: why} }

// appendHead appends a log's head to dst.
func appendHead(dst []byte, begun time.Time, packets bool) []byte {
	dst = append(dst, magic...)
	if packets {
		dst = append(dst, versionPackets)
	} else {
		dst = append(dst, versionStream)
	}
	return binary.LittleEndian.AppendUint64(dst, uint64(begun.UnixNano()))
}

// appendEntry appends an entry to dst.
func appendEntry(dst []byte, e Entry) []byte {
	size := uint32(len(e.Bytes)) | uint32(e.ECN)<<ecnShift
	if e.FromCard {
		size |= fromCardBit
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.At))
	dst = binary.LittleEndian.AppendUint32(dst, size)
	return append(dst, e.Bytes...)
}
