// Datagrams: a packet and its CRC-32C (NETWORK.md, section 2).

package model

import (
	"encoding/binary"
	"hash/crc32"

	"tributary/driver/wire"
)

// castagnoli is the table of the CRC-32C.
var castagnoli = crc32.MakeTable(wire.CastagnoliPolynomial)

// shortest is the size of the shortest datagram in bytes.
const shortest = wire.BaseHeaderBytes + wire.DatagramCRCBytes

// AppendDatagram appends a packet's datagram to dst. Only the kinds with a payload include it.
func AppendDatagram(dst []byte, p *Packet) []byte {
	start := len(dst)
	dst = AppendHeader(dst, &p.Header, true)
	if info, _ := p.Kind.Info(); info.Payload {
		dst = append(dst, p.Payload...)
	}
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// isForCard reports whether a kind travels from a host to a card.
func isForCard(i wire.KindInfo) bool { return !i.FromCard }

// isAccess reports whether a kind is an access to a register.
func isAccess(i wire.KindInfo) bool { return i.Kind == wire.KindRegRead || i.Kind == wire.KindRegWrite }

// isForChild reports whether a kind travels from a parent to a card.
func isForChild(i wire.KindInfo) bool { return i.FromCard && i.Kind != wire.KindReply }

// receive returns the packet in a datagram to the card, whose payload stays in the datagram. It
// counts the datagram if it is damaged or none that a card takes, whose kind does not travel this way;
// ok is then false.
func (c *Card) receive(datagram []byte, travels func(wire.KindInfo) bool) (p Packet, ok bool) {
	if len(datagram) < shortest {
		c.counters.add(countShort, 1)
		return Packet{}, false
	}
	body := datagram[:len(datagram)-wire.DatagramCRCBytes]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(datagram[len(body):]) {
		c.counters.add(countDatagramCRC, 1)
		return Packet{}, false
	}
	c.counters.add(countFrames, 1)
	h := ParseHeader(body[:wire.BaseHeaderBytes])
	info, known := h.Kind.Info()
	switch {
	case h.Version != wire.Version:
		c.counters.refused(wire.CodeBadVersion)
		return Packet{}, false
	case !known || !travels(info):
		c.counters.refused(wire.CodeBadKind)
		return Packet{}, false
	case !c.fits(&h, info, len(datagram)):
		c.counters.refused(wire.CodeBadLength)
		return Packet{}, false
	}
	header := info.HeaderBytes(true)
	return Packet{Header: ParseHeader(body[:header]), Payload: body[header:]}, true
}

// fits reports whether a datagram has the size that its header requires.
func (c *Card) fits(h *Header, info wire.KindInfo, size int) bool {
	if !info.Payload {
		return size == info.DatagramBytes(0)
	}
	return h.Length > 0 && int(h.Length) <= c.cfg.Chunk && size == info.DatagramBytes(int(h.Length)*elementBytes(c.cfg.Format))
}
