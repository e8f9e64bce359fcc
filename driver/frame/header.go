// Package frame builds and checks the frames of the byte-stream link.
//
// A frame is a sync word, a header, the header's CRC and, for the kinds that
// carry one, a payload and its CRC (driver/wire/SPEC.md, section 3). The tables
// in package wire say where everything stands; a test holds this package to
// them. Nothing here knows what a frame means.
package frame

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// Header is the header of a packet. Fields that its kind does not use are 0.
type Header struct {
	Version   uint8 // as received; when built, 0 stands for wire.Version
	Kind      wire.Kind
	Flags     uint8
	Job       uint8
	Format    wire.Format
	Epoch     uint16
	Rank      uint8
	Code      wire.Code
	VID       uint32
	Length    uint16 // elements in the payload; registers: the tag
	Mask      uint64 // only where the kind has it
	Receivers uint64 // only where the kind has it
}

// kinds is wire.Kinds by number, so that the hot path does not search it.
var kinds = func() (t [16]wire.KindInfo) {
	for _, k := range wire.Kinds {
		t[k.Kind] = k
	}
	return t
}()

// elementBytes is the size of an element by format; 0 where there is no format.
var elementBytes = func() (t [256]int) {
	for _, f := range wire.Formats {
		t[f.Format] = f.Bits / 8
	}
	return t
}()

// headerBytes is the length of the header of a kind on a shared link; a number
// that is no kind has the base header.
var headerBytes = func() (t [16]int) {
	for k := range t {
		t[k] = wire.BaseHeaderBytes
	}
	for _, k := range wire.Kinds {
		t[k.Kind] = k.HeaderBytes(true)
	}
	return t
}()

// Append appends the header's bytes as they stand on a shared link: 14, 22 or
// 30 by its kind, without sync word and CRC.
func (h *Header) Append(dst []byte) []byte {
	version := h.Version
	if version == 0 {
		version = wire.Version
	}
	dst = append(dst, version&0xf|uint8(h.Kind)<<4, h.Flags, h.Job, uint8(h.Format),
		byte(h.Epoch), byte(h.Epoch>>8), h.Rank, uint8(h.Code))
	dst = binary.LittleEndian.AppendUint32(dst, h.VID)
	dst = binary.LittleEndian.AppendUint16(dst, h.Length)
	n := headerBytes[h.Kind&0xf]
	if n >= wire.MaskHeaderBytes {
		dst = binary.LittleEndian.AppendUint64(dst, h.Mask)
	}
	if n == wire.MaxHeaderBytes {
		dst = binary.LittleEndian.AppendUint64(dst, h.Receivers)
	}
	return dst
}

// decode reads a header from b, which holds all of it.
func (h *Header) decode(b []byte) {
	*h = Header{
		Version: b[0] & 0xf,
		Kind:    wire.Kind(b[0] >> 4),
		Flags:   b[1],
		Job:     b[2],
		Format:  wire.Format(b[3]),
		Epoch:   binary.LittleEndian.Uint16(b[4:]),
		Rank:    b[6],
		Code:    wire.Code(b[7]),
		VID:     binary.LittleEndian.Uint32(b[8:]),
		Length:  binary.LittleEndian.Uint16(b[12:]),
	}
	n := headerBytes[h.Kind]
	if n >= wire.MaskHeaderBytes {
		h.Mask = binary.LittleEndian.Uint64(b[14:])
	}
	if n == wire.MaxHeaderBytes {
		h.Receivers = binary.LittleEndian.Uint64(b[22:])
	}
}

// appendStart appends sync word, header and header CRC, and returns that CRC.
func appendStart(dst []byte, h *Header) ([]byte, uint16) {
	dst = append(dst, wire.Sync[:]...)
	start := len(dst)
	dst = h.Append(dst)
	crc := CRC(wire.CRCInit, dst[start:])
	return binary.BigEndian.AppendUint16(dst, crc), crc
}

// Append appends a whole frame. payload must have the size that h's kind,
// format and length ask for; it is nil for kinds that carry none.
func Append(dst []byte, h *Header, payload []byte) []byte {
	dst, crc := appendStart(dst, h)
	if !kinds[h.Kind&0xf].Payload {
		return dst
	}
	dst = append(dst, payload...)
	return binary.BigEndian.AppendUint16(dst, CRC(crc, payload))
}

// AppendPadded appends a whole frame whose payload is elements and, up to h's
// length, zeros. elements are of h's format, and no more than h's length.
func AppendPadded(dst []byte, h *Header, elements []byte) []byte {
	dst, crc := appendStart(dst, h)
	start, size := len(dst), elementBytes[h.Format]*int(h.Length)
	dst = grow(dst, size+wire.CRCBytes)
	payload := dst[start : start+size]
	clear(payload[copy(payload, elements):])
	binary.BigEndian.PutUint16(dst[start+size:], CRC(crc, payload))
	return dst
}

// grow makes dst n bytes longer; what they hold is not defined.
func grow(dst []byte, n int) []byte {
	if free := cap(dst) - len(dst); free < n {
		dst = append(dst[:cap(dst)], make([]byte, n-free)...)[:len(dst)]
	}
	return dst[:len(dst)+n]
}
