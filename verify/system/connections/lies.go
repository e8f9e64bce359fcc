package connections

import (
	"tributary/driver/virtual/rc"
	"tributary/driver/wire"
)

// Lie is what a rank does with its packets beside the rules. It makes no wrong element.
type Lie struct {
	Name     string
	Tamper   func(p *rc.Packet) // for rc.Host.Tamper
	Harmless bool               // the job succeeds; otherwise it fails on every rank
}

// Lies are for jobs whose messages have 2 packets or more, 16 packets in all.
var Lies = []Lie{
	{"messages that are no multiple of the MTU", func(p *rc.Packet) {
		if p.BTH.Opcode == wire.OpSendLast || p.BTH.Opcode == wire.OpWriteLastImm {
			p.Payload = p.Payload[:len(p.Payload)-4]
		}
	}, false},
	{"another MTU", func(p *rc.Packet) { p.Payload = append(p.Payload, p.Payload...) }, false},
	{"unknown opcodes", func(p *rc.Packet) { p.BTH.Opcode = tweak(p, p.BTH.Opcode, 0x1d) }, false},
	{"READ", func(p *rc.Packet) { p.BTH.Opcode = tweak(p, p.BTH.Opcode, wire.OpReadRequest) }, false},
	{"atomics", func(p *rc.Packet) { p.BTH.Opcode = tweak(p, p.BTH.Opcode, wire.OpFetchAdd) }, false},
	{"UD", func(p *rc.Packet) { p.BTH.Opcode = tweak(p, p.BTH.Opcode, wire.OpUDSendOnly) }, false},
	{"an unknown queue pair", func(p *rc.Packet) { p.BTH.DestQP = tweak(p, p.BTH.DestQP, 0x7777) }, false},
	{"PSNs out of range", func(p *rc.Packet) {
		if IsData(p) {
			p.BTH.PSN = wire.AddPSN(p.BTH.PSN, 1<<20)
		}
	}, false},
	{"AckReq anywhere", func(p *rc.Packet) { p.BTH.AckReq = p.BTH.AckReq || IsData(p) && p.BTH.PSN%2 == 0 }, true},
	{"AckReq at every packet", func(p *rc.Packet) { p.BTH.AckReq = p.BTH.AckReq || IsData(p) }, true},
}

// IsData reports whether a packet of an rc.Host is one of data, and no acknowledgement.
func IsData(p *rc.Packet) bool { return p.BTH.Opcode != wire.OpAcknowledge }

// tweak returns another value for some packets of data.
func tweak[T any](p *rc.Packet, value, other T) T {
	if IsData(p) && p.BTH.PSN%16 == 3 {
		return other
	}
	return value
}
