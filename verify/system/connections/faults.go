package connections

import (
	"encoding/binary"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// Offsets in a frame whose IPv4 header has no options, in bytes.
const (
	atEtherType = 12
	atIP        = 14
	atUDP       = 34
	atToPort    = atUDP + 2
	atBTH       = 42
)

// Window is the window of a job whose packets Faults makes early or late.
const Window = 4

// Fault is a fault of a data packet: of its fields, or of its frame.
type Fault struct {
	Name    string
	Counter string                // of the card, which counts it
	Packet  func(p *rc.Packet)    // damages fields
	Frame   func(f []byte) []byte // damages the frame without its FCS, which is made afterwards
	FCS     bool                  // the FCS is wrong
	Port    int                   // Ethernet ports beyond the member's
}

// Faults are in the order of the checks of ROCE.md, section 3. The packet is the first one from rank 0 of a
// ring of 3 or more ranks, whose IPv4 addresses follow one another.
var Faults = []Fault{
	{Name: "FCS", Counter: "fcs", FCS: true},
	{Name: "oversize", Counter: "oversize", Frame: func(f []byte) []byte { return append(f, make([]byte, 9019-len(f))...) }},
	{Name: "version 5 of IP", Counter: "roce_header", Frame: Remade(func(f []byte) { f[atIP] = 0x55 })},
	{Name: "a header of 16 bytes", Counter: "roce_header", Frame: Remade(func(f []byte) { f[atIP] = 0x44 })},
	{Name: "IP checksum", Counter: "roce_header", Frame: func(f []byte) []byte { f[24] ^= 1; return f }},
	{Name: "first fragment", Counter: "roce_header", Frame: Remade(func(f []byte) { f[20] |= 0x20 })},
	{Name: "later fragment", Counter: "roce_header", Frame: Remade(func(f []byte) { f[21] |= 1 })},
	{Name: "IP shorter than UDP", Counter: "roce_header", Frame: Remade(func(f []byte) { f[17] -= 4 })},
	{Name: "UDP shorter than IP", Counter: "roce_header", Frame: Remade(func(f []byte) { f[39] -= 4 })},
	{Name: "longer than its frame", Counter: "roce_header", Frame: func(f []byte) []byte { return f[:len(f)-1] }},
	{Name: "no room for an ICRC", Counter: "roce_header", Frame: func(f []byte) []byte {
		f = f[:60]
		binary.BigEndian.PutUint16(f[16:], 20+8+12+3)
		binary.BigEndian.PutUint16(f[38:], 8+12+3)
		return append(f[:atIP:atIP], mend(f)[:60-atIP]...)
	}},
	{Name: "version of the base header", Counter: "roce_header", Packet: func(p *rc.Packet) { p.BTH.Version = 1 }},
	{Name: "ICRC", Counter: "roce_icrc", Frame: func(f []byte) []byte { f[len(f)-1] ^= 1; return f }},
	{Name: "payload", Counter: "roce_icrc", Frame: func(f []byte) []byte { f[100] ^= 4; return f }},
	{Name: "another address", Counter: "roce_source", Packet: func(p *rc.Packet) { p.From.IP = p.To.IP.Next() }},
	{Name: "another Ethernet port", Counter: "roce_source", Port: 1},
	{Name: "READ", Counter: "roce_opcode", Packet: func(p *rc.Packet) { p.BTH.Opcode = wire.OpReadRequest }},
	{Name: "short payload", Counter: "roce_length", Packet: func(p *rc.Packet) { p.Payload = p.Payload[4:] }},
	{Name: "long payload", Counter: "roce_length", Packet: func(p *rc.Packet) { p.Payload = append(p.Payload, 0, 0, 0, 0) }},
	{Name: "no payload", Counter: "roce_length", Packet: func(p *rc.Packet) { p.Payload = nil }},
	{Name: "padding", Counter: "roce_length", Packet: func(p *rc.Packet) { p.BTH.Pad, p.Payload = 2, p.Payload[2:] }},
	{Name: "late", Counter: "late", Packet: func(p *rc.Packet) { p.BTH.PSN = wire.AddPSN(p.BTH.PSN, -1) }},
	{Name: "early", Counter: "early", Packet: func(p *rc.Packet) { p.BTH.PSN = wire.AddPSN(p.BTH.PSN, 2*Window) }},
	{Name: "early by half of all PSNs less one", Counter: "early", Packet: func(p *rc.Packet) { p.BTH.PSN = wire.AddPSN(p.BTH.PSN, 1<<23-1) }},
	{Name: "late by half of all PSNs", Counter: "late", Packet: func(p *rc.Packet) { p.BTH.PSN = wire.AddPSN(p.BTH.PSN, -1<<23) }},
}

// Frame returns the frame of a packet with faults, with an FCS.
func Frame(p *rc.Packet, all ...Fault) []byte {
	fcs := false
	for _, f := range all {
		if f.Packet != nil {
			f.Packet(p)
		}
		fcs = fcs || f.FCS
	}
	frame, _ := ethernet.CutFCS(p.Append(nil))
	for i := range all {
		if f := all[len(all)-1-i]; f.Frame != nil {
			frame = f.Frame(frame)
		}
	}
	frame = ethernet.AppendFCS(frame)
	if fcs {
		frame[len(frame)-1] ^= 1
	}
	return frame
}

// Remade returns an edit of a frame without FCS. It makes the checksum of IP and the ICRC anew.
func Remade(edit func(f []byte)) func(f []byte) []byte {
	return func(f []byte) []byte {
		edit(f)
		return append(f[:atIP:atIP], mend(f)...)
	}
}

// mend makes ICRC and IP checksum of a frame anew, and returns the IP packet.
func mend(f []byte) []byte {
	f[24], f[25] = 0, 0
	var sum uint32
	for i := atIP; i < atUDP; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(f[i:]))
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	binary.BigEndian.PutUint16(f[24:], ^uint16(sum))
	end := len(f) - wire.ICRCBytes
	return wire.AppendICRC(f[atIP:end:end])
}
