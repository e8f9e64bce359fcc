package rc

import "tributary/driver/wire"

// requester is the sending part of a queue pair. All its PSNs are modulo 2^24, in this order: oldest, next,
// fresh, end.
type requester struct {
	sends  []sending // not completed
	oldest uint32    // not acknowledged
	next   uint32    // sent next
	fresh  uint32    // not sent before
	end    uint32    // of all that is posted
	single bool      // the oldest is sent again, alone

	retries int    // left
	timer   uint64 // the cycle at which it ends; 0 if it does not run
}

// sending is a request with its PSNs.
type sending struct {
	request Request
	first   uint32
	packets int
}

// PostSend adds a message to those that are sent, in order.
func (p *Pair) PostSend(r Request) error {
	if p.state != connected {
		return ErrNotConnected
	}
	packets := max(1, (len(r.Data)+p.to.MTU-1)/p.to.MTU)
	if wire.PSNsFrom(p.oldest, p.end)+packets >= wire.PSNs/2 {
		return ErrTooLong
	}
	p.sends = append(p.sends, sending{r, p.end, packets})
	p.end = wire.AddPSN(p.end, packets)
	return nil
}

// nextRequest returns the next packet of data. ok is false if none may leave.
func (p *Pair) nextRequest() (packet *Packet, ok bool) {
	if p.state != connected {
		return nil, false
	}
	if p.single {
		p.single = false
		p.stats.Packets++
		p.stats.Repeats++
		packet = p.data(p.oldest)
		packet.BTH.AckReq = true
		return packet, true
	}
	unacked := wire.PSNsFrom(p.oldest, p.next)
	if p.next == p.end || unacked >= p.to.MaxUnacked {
		return nil, false
	}
	packet = p.data(p.next)
	packet.BTH.AckReq = packet.BTH.AckReq || unacked+1 == p.to.MaxUnacked
	p.stats.Packets++
	if p.next == p.fresh {
		p.fresh = wire.AddPSN(p.fresh, 1)
	} else {
		p.stats.Repeats++
	}
	p.next = wire.AddPSN(p.next, 1)
	if p.timer == 0 {
		p.startTimer()
	}
	return packet, true
}

// data returns the packet of a PSN that is posted and not acknowledged.
func (p *Pair) data(psn uint32) *Packet {
	s := p.sending(psn)
	i := wire.PSNsFrom(s.first, psn)
	first, last := i == 0, i == s.packets-1
	packet := p.packet(opcodeOf(s.request, first, last), psn)
	packet.Payload = s.request.Data[i*p.to.MTU : min((i+1)*p.to.MTU, len(s.request.Data))]
	packet.BTH.Pad = uint8(-len(packet.Payload) & (wire.WordBytes - 1))
	packet.BTH.AckReq = last || (i+1)%p.to.AckEvery == 0
	packet.Imm = s.request.Imm
	packet.RETH = wire.RETH{VA: s.request.At, RKey: s.request.Key, Length: uint32(len(s.request.Data))}
	return packet
}

// sending returns the request of a PSN that is posted and not acknowledged.
func (p *Pair) sending(psn uint32) sending {
	for _, s := range p.sends {
		if wire.PSNsFrom(s.first, psn) < s.packets {
			return s
		}
	}
	panic("rc: no request has this PSN")
}

// opcodeOf returns the opcode of a request's packet.
func opcodeOf(r Request, first, last bool) wire.Opcode {
	for _, i := range wire.Opcodes {
		if i.Data() && i.Write == r.Write && i.First == first && i.Last == last && i.Imm == (r.HasImm && last) {
			return i.Opcode
		}
	}
	panic("rc: no opcode")
}

// acknowledged takes an ACK or a NAK.
func (p *Pair) acknowledged(packet *Packet) {
	sent := wire.PSNsFrom(p.oldest, p.fresh)
	at := wire.PSNsFrom(p.oldest, packet.BTH.PSN)
	if at < 0 || at >= sent {
		p.stats.Ghosts++
		return
	}
	switch s := packet.AETH.Syndrome; {
	case s.IsACK():
		p.progress(wire.AddPSN(packet.BTH.PSN, 1))
	case s == wire.SyndromeSequence:
		p.stats.NAKs++
		p.progress(packet.BTH.PSN) // what precedes is acknowledged
		p.retry()
	default:
		p.progress(packet.BTH.PSN)
		p.refused(refusals[s])
	}
}

// refusals are the statuses of NAKs. All others are RNR NAKs or unknown.
var refusals = map[wire.Syndrome]Status{
	wire.SyndromeInvalid: RemoteInvalid, wire.SyndromeAccess: RemoteAccess, wire.SyndromeOperational: RemoteOperational,
}

// progress marks all before a PSN as acknowledged, and completes requests. A PSN that is the oldest already
// is no progress.
func (p *Pair) progress(before uint32) {
	if before == p.oldest {
		return
	}
	p.oldest = before
	if wire.PSNsFrom(p.oldest, p.next) < 0 {
		p.next = p.oldest
	}
	for len(p.sends) > 0 && wire.PSNsFrom(p.sends[0].first, p.oldest) >= p.sends[0].packets {
		p.sent = append(p.sent, Completion{ID: p.sends[0].request.ID, Write: p.sends[0].request.Write})
		p.sends = p.sends[1:]
	}
	p.retries, p.single = p.to.Retries, false
	if p.timer = 0; p.oldest != p.fresh {
		p.startTimer()
	}
}

// startTimer lets the timer begin anew.
func (p *Pair) startTimer() {
	if p.to.Timeout != 0 {
		p.timer = p.host.after(timerUnit << p.to.Timeout)
	}
}

// expire retries if the timer has ended.
func (p *Pair) expire() {
	if p.timer != 0 && p.host.now >= p.timer {
		p.stats.Timeouts++
		p.retry()
	}
}

// retry goes back to the oldest packet, or ends the connection.
func (p *Pair) retry() {
	if p.retries == 0 {
		p.refused(RetryExceeded)
		return
	}
	p.retries--
	if p.single = p.to.OldestAlone; !p.single {
		p.next = p.oldest
	}
	p.startTimer()
}

// refused ends the connection by an error of the oldest request.
func (p *Pair) refused(s Status) {
	if s == Success {
		s = NotReady
	}
	p.sent = append(p.sent, Completion{ID: p.sends[0].request.ID, Status: s, Write: p.sends[0].request.Write})
	p.sends = p.sends[1:]
	p.fail()
}
