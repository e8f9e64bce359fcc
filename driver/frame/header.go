// Package frame builds and checks the frames of the byte-stream link.
//
// A frame is a sync word, a header, the header's CRC and, for some kinds, a payload and its CRC
// (driver/wire/SPEC.md, section 3). The tables in package wire give the positions of the
// fields, and a test compares this package with them. This package does not interpret frames.
package frame

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// Header is the header of a packet. Fields that its kind does not use are 0.
type Header struct {
	Version   uint8 // as received; 0 in a frame to build means wire.Version
	Kind      wire.Kind
	Flags     uint8
	Job       uint8
	Format    wire.Format
	Epoch     uint16
	Rank      uint8
	Code      wire.Code
	VID       uint32
	Length    uint16 // elements in the payload; registers: the tag
	Mask      uint64 // 0 if the kind has none
	Receivers uint64 // 0 if the kind has none
}

// kinds is wire.Kinds by number, so that the hot path needs no search.
var kinds = func() (t [16]wire.KindInfo) {
	for _, k := range wire.Kinds {
		t[k.Kind] = k
	}
	return t
}()

// elementBytes is the size of an element by format; 0 for an unknown format.
var elementBytes = func() (t [256]int) {
	for _, f := range wire.Formats {
		t[f.Format] = f.Bits / 8
	}
	return t
}()

// headerBytes is the length of a kind's header on a shared link. Unknown kinds have the base
// header.
var headerBytes = func() (t [16]int) {
	for k := range t {
		t[k] = wire.BaseHeaderBytes
	}
	for _, k := range wire.Kinds {
		t[k.Kind] = k.HeaderBytes(true)
	}
	return t
}()

// Append appends the header's bytes as on a shared link: 14, 22 or 30 bytes by kind, without
// sync word and CRC.
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

// decode reads a header from b, which holds the whole header.
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

// Append appends a whole frame. The size of payload must match h's kind, format and length; it
// is nil for kinds without a payload.
func Append(dst []byte, h *Header, payload []byte) []byte {
	dst, crc := appendStart(dst, h)
	if !kinds[h.Kind&0xf].Payload {
		return dst
	}
	dst = append(dst, payload...)
	return binary.BigEndian.AppendUint16(dst, CRC(crc, payload))
}

// AppendPadded appends a whole frame. Its payload is elements, padded with zeros to h's length.
// elements have h's format and are at most h's length.
func AppendPadded(dst []byte, h *Header, elements []byte) []byte {
	dst, crc := appendStart(dst, h)
	start, size := len(dst), elementBytes[h.Format]*int(h.Length)
	dst = grow(dst, size+wire.CRCBytes)
	payload := dst[start : start+size]
	clear(payload[copy(payload, elements):])
	binary.BigEndian.PutUint16(dst[start+size:], CRC(crc, payload))
	return dst
}

// grow makes dst n bytes longer; their content is undefined.
func grow(dst []byte, n int) []byte {
	if free := cap(dst) - len(dst); free < n {
		dst = append(dst[:cap(dst)], make([]byte, n-free)...)[:len(dst)]
	}
	return dst[:len(dst)+n]
}
