package rc

import "tributary/driver/wire"

// responder is the receiving part of a queue pair.
type responder struct {
	receives []receive // posted, not used
	expected uint32    // PSN
	nakked   bool      // the gap at expected had its NAK
	messages uint32    // completed, modulo 2^24
	current  *incoming // the message in progress, or nil between messages
	answers  []answer
}

// receive is a posted buffer.
type receive struct {
	id     uint64
	buffer []byte
}

// incoming is a message whose last packet has not come.
type incoming struct {
	write  bool
	memory []byte // to be filled
	bytes  int    // filled
}

// answer is an ACK or a NAK that waits to leave.
type answer struct {
	psn      uint32
	syndrome wire.Syndrome
	repeated bool // for a duplicate
}

// PostReceive adds a buffer for a message that comes by SEND, or for the immediate of an RDMA WRITE. It may
// come before Connect. Buffers are used in order.
func (p *Pair) PostReceive(id uint64, buffer []byte) error {
	if p.state == failed {
		return ErrNotConnected
	}
	p.receives = append(p.receives, receive{id, buffer})
	return nil
}

// nextAnswer returns the next ACK or NAK. ok is false if there is none.
func (p *Pair) nextAnswer() (packet *Packet, ok bool) {
	if len(p.answers) == 0 {
		return nil, false
	}
	a := p.answers[0]
	p.answers = p.answers[1:]
	packet = p.packet(wire.OpAcknowledge, a.psn)
	packet.AETH = wire.AETH{Syndrome: a.syndrome, MSN: p.messages}
	return packet, true
}

// acknowledge answers all packets before the expected one. An ACK that has not left yet says it too.
func (p *Pair) acknowledge(repeated bool) {
	a := answer{wire.AddPSN(p.expected, -1), wire.SyndromeACK, repeated}
	if last := len(p.answers) - 1; !repeated && last >= 0 && p.answers[last].syndrome == wire.SyndromeACK && !p.answers[last].repeated {
		p.answers[last] = a
		return
	}
	p.answers = append(p.answers, a)
}

// respond takes a packet of data.
func (p *Pair) respond(packet *Packet, info wire.OpcodeInfo) {
	switch ahead := wire.PSNsFrom(p.expected, packet.BTH.PSN); {
	case ahead < 0:
		p.stats.Duplicates++
		p.acknowledge(true)
	case ahead > 0:
		p.stats.OutOfOrder++
		if !p.nakked {
			p.nakked = true
			p.stats.NAKsSent++
			p.answers = append(p.answers, answer{psn: p.expected, syndrome: wire.SyndromeSequence})
		}
	default:
		if s := p.accept(packet, info); s != wire.SyndromeACK {
			p.refuse(s)
			return
		}
		p.expected, p.nakked = wire.AddPSN(p.expected, 1), false
		if packet.BTH.AckReq {
			p.acknowledge(false)
		}
	}
}

// refuse answers the expected packet with a NAK. Only after an RNR NAK does the connection go on.
func (p *Pair) refuse(s wire.Syndrome) {
	p.answers = append(p.answers, answer{psn: p.expected, syndrome: s})
	if !s.IsRNR() {
		p.fail()
	}
}

// accept takes the expected packet, or returns the syndrome of its refusal.
func (p *Pair) accept(packet *Packet, info wire.OpcodeInfo) wire.Syndrome {
	if info.First != (p.current == nil) || !p.rightSize(packet, info) {
		return wire.SyndromeInvalid
	}
	if (info.Send && info.First || info.Write && info.Imm) && len(p.receives) == 0 {
		return wire.SyndromeRNR
	}
	if info.First {
		message, ok := p.begin(packet, info)
		if !ok {
			return wire.SyndromeAccess
		}
		p.current = message
	}
	c := p.current
	if c.write != info.Write {
		return wire.SyndromeInvalid
	}
	if left := len(c.memory) - c.bytes; len(packet.Payload) > left || c.write && info.Last && len(packet.Payload) != left {
		if !c.write {
			p.complete(Completion{Status: LocalLength})
		}
		return wire.SyndromeInvalid
	}
	c.bytes += copy(c.memory[c.bytes:], packet.Payload)
	if info.Last {
		p.finish(packet, info)
	}
	return wire.SyndromeACK
}

// rightSize reports whether a packet has a payload that its place in the message allows, with its padding.
func (p *Pair) rightSize(packet *Packet, info wire.OpcodeInfo) bool {
	n := len(packet.Payload)
	if int(packet.BTH.Pad) != -n&(wire.WordBytes-1) {
		return false
	}
	if !info.Last {
		return n == p.to.MTU
	}
	return n <= p.to.MTU && (n > 0 || info.First)
}

// begin returns the message that a packet begins. ok is false if it may not access the memory.
func (p *Pair) begin(packet *Packet, info wire.OpcodeInfo) (message *incoming, ok bool) {
	if info.Send {
		return &incoming{memory: p.receives[0].buffer}, true
	}
	if packet.RETH.Length == 0 {
		return &incoming{write: true}, true
	}
	memory, ok := p.host.reach(packet.RETH.RKey, packet.RETH.VA, packet.RETH.Length)
	return &incoming{write: true, memory: memory}, ok
}

// finish ends the current message.
func (p *Pair) finish(packet *Packet, info wire.OpcodeInfo) {
	if info.Send || info.Imm {
		p.complete(Completion{Bytes: p.current.bytes, Write: info.Write, Imm: packet.Imm, HasImm: info.Imm})
	}
	p.current = nil
	p.messages = (p.messages + 1) % wire.PSNs
}

// complete completes the oldest receive.
func (p *Pair) complete(c Completion) {
	c.ID = p.receives[0].id
	p.receives = p.receives[1:]
	p.received = append(p.received, c)
}
