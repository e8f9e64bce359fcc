// The link's sender: packets into frames.

package model

import (
	"tributary/driver/wire"
)

// AppendFrame appends a packet's frame on a shared byte-stream link to dst. Only the kinds with a
// payload include it.
func AppendFrame(dst []byte, p *Packet) []byte {
	info, _ := p.Kind.Info()
	dst = append(dst, wire.Sync[:]...)
	start := len(dst)
	dst = AppendHeader(dst, &p.Header, true)
	crc := updateCRC(wire.CRCInit, dst[start:])
	dst = appendCRC(dst, crc)
	if !info.Payload {
		return dst
	}
	dst = append(dst, p.Payload...)
	return appendCRC(dst, updateCRC(crc, p.Payload))
}

// appendCRC appends a CRC in wire order, high byte first.
func appendCRC(dst []byte, crc uint16) []byte { return append(dst, byte(crc>>8), byte(crc)) }
