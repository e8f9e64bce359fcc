// Packets at the core's ports, and the bytes of their headers.

package model

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// Header holds the fields of a packet's header, as in wire.Fields.
type Header struct {
	Version   uint8
	Kind      wire.Kind
	Flags     uint8
	Job       uint8
	Format    wire.Format
	Epoch     uint16
	Rank      uint8
	Code      wire.Code
	VID       uint32
	Length    uint16
	Mask      uint64
	Receivers uint64
}

// Packet is one packet. Payload is in wire order: elements in sequence, little-endian. Bad means
// that the payload's CRC was wrong (tuser's "bad" at a port of the core).
type Packet struct {
	Header
	Payload []byte
	Bad     bool
}

// ParseHeader reads a header of 14, 22 or 30 bytes; the fields beyond its length are 0. It panics
// if b is shorter than 14 bytes.
func ParseHeader(b []byte) Header {
	h := Header{
		Version: b[0] & 0x0f,
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
	if len(b) >= wire.MaskHeaderBytes {
		h.Mask = binary.LittleEndian.Uint64(b[wire.BaseHeaderBytes:])
	}
	if len(b) >= wire.MaxHeaderBytes {
		h.Receivers = binary.LittleEndian.Uint64(b[wire.MaskHeaderBytes:])
	}
	return h
}

// AppendHeader appends the header's bytes for its kind to dst; shared means that several ranks
// share the link. A kind that is not in the table has 14 bytes.
func AppendHeader(dst []byte, h *Header, shared bool) []byte {
	info, _ := h.Kind.Info()
	dst = append(dst, h.Version&0x0f|uint8(h.Kind)<<4, h.Flags, h.Job, uint8(h.Format))
	dst = binary.LittleEndian.AppendUint16(dst, h.Epoch)
	dst = append(dst, h.Rank, uint8(h.Code))
	dst = binary.LittleEndian.AppendUint32(dst, h.VID)
	dst = binary.LittleEndian.AppendUint16(dst, h.Length)
	if info.Mask {
		dst = binary.LittleEndian.AppendUint64(dst, h.Mask)
	}
	if info.Receivers && shared {
		dst = binary.LittleEndian.AppendUint64(dst, h.Receivers)
	}
	return dst
}
