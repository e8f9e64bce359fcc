package cable

import (
	"encoding/binary"
	"net/netip"
)

// Packet is what Losses needs to know of a packet of RoCEv2 over IPv4.
type Packet struct {
	From, To netip.Addr
	Opcode   byte   // of the BTH
	QPN      uint32 // of the destination
	PSN      uint32
	Syndrome byte // of the AETH, for an acknowledgement
}

// Sizes and places in a frame without VLAN tag, and values of RoCEv2 (InfiniBand Architecture
// Specification, volume 1, chapter 9 and annex A17).
const (
	atEtherType = 12
	atIP        = 14
	atProtocol  = atIP + 9
	atFrom      = atIP + 12
	atTo        = atIP + 16
	atUDP       = atIP + 20
	atBTH       = atUDP + 8
	atAETH      = atBTH + 12

	ipv4     = 0x0800
	plainIP  = 0x45 // version 4, without options
	udp      = 17
	port     = 4791
	lastData = 0x0b // RC SEND and RDMA WRITE
	ack      = 0x11 // RC acknowledgement
)

// Parse reads a frame, with or without FCS. ok is false if it is no packet of RoCEv2 over IPv4.
func Parse(frame []byte) (p Packet, ok bool) {
	if len(frame) < atAETH+4 || binary.BigEndian.Uint16(frame[atEtherType:]) != ipv4 || frame[atIP] != plainIP ||
		frame[atProtocol] != udp || binary.BigEndian.Uint16(frame[atUDP+2:]) != port {
		return p, false
	}
	p.From = netip.AddrFrom4([4]byte(frame[atFrom:atTo]))
	p.To = netip.AddrFrom4([4]byte(frame[atTo:atUDP]))
	p.Opcode = frame[atBTH]
	p.QPN = binary.BigEndian.Uint32(frame[atBTH+4:]) & 0xffffff
	p.PSN = binary.BigEndian.Uint32(frame[atBTH+8:]) & 0xffffff
	if p.Opcode == ack {
		p.Syndrome = frame[atAETH]
	}
	return p, true
}

// IsData reports whether the packet has data of a SEND or RDMA WRITE.
func (p Packet) IsData() bool { return p.Opcode <= lastData }

// IsACK reports whether the packet is a positive acknowledgement.
func (p Packet) IsACK() bool { return p.Opcode == ack && p.Syndrome>>5 == 0 }

// IsNAK reports whether the packet is a negative acknowledgement; a receiver that is not ready
// sends none.
func (p Packet) IsNAK() bool { return p.Opcode == ack && p.Syndrome>>5 == 3 }
