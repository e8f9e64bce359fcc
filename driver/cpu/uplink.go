package cpu

import (
	"slices"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// This file has the datagrams of an up port (driver/wire/TREES.md, section 5).

// countUDPPort is the index of the counter of datagrams to a UDP port that nothing uses.
var countUDPPort = counter(len(wire.Counters) + slices.IndexFunc(wire.NetworkCounters, func(c wire.CounterInfo) bool { return c.Name == "udp_port" }))

// UpwardPorts returns the UDP ports from which the card sends to the parents of its running tree jobs,
// in the order of the jobs. What arrives there is for ReceiveUp. The next call of UpwardPorts reuses the
// memory.
func (p *Endpoint) UpwardPorts() []uint16 {
	p.upward = p.upward[:0]
	if p.card.engine.uplink == nil {
		return p.upward
	}
	p.card.lock()
	defer p.card.unlock()
	jobs := p.card.engine.jobs
	for i := range jobs {
		if j := &jobs[i]; j.running && j.isTree() {
			p.upward = append(p.upward, j.branch.port())
		}
	}
	return p.upward
}

// ReceiveUp is Receive for a datagram to another UDP port than the card's own. If no running tree job
// uses the port, the datagram counts as udp_port.
func (p *Endpoint) ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN) {
	p.card.lock()
	defer p.card.unlock()
	e, h := p.card.engine, &p.frame.Header
	j := e.jobUnder(port)
	if j == nil {
		e.counters[countUDPPort]++
		return
	}
	if !p.checkUp.take(datagram, &p.frame, e.counters) {
		return
	}
	switch {
	case whoIs(from) != whoIs(j.branch.address):
		e.counters[countStranger]++
	case h.Job != j.number:
		e.uplink.counters[upDropped]++
	default:
		if strength[mark] > strength[h.Flags&wire.FlagECN] {
			h.Flags = h.Flags&^wire.FlagECN | uint8(mark)
		}
		e.takeUp(h, p.frame.Payload, false)
	}
}

// SendUp is Send for the next datagram to a parent, and also returns the UDP port that it leaves from.
// The mark of an own sum is in its IP header, where the parent reads it, and in its flags.
func (p *Endpoint) SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool) {
	e := p.card.engine
	if e.uplink == nil {
		return dst, 0, wire.Address{}, 0, false
	}
	p.card.lock()
	defer p.card.unlock()
	var h frame.Header
	payload, j := e.nextUp(&h)
	if j == nil {
		return dst, 0, wire.Address{}, 0, false
	}
	mark = wire.ECT0
	if h.Kind == wire.KindData {
		mark = wire.ECN(h.Flags & wire.FlagECN)
	}
	return frame.AppendDatagram(dst, &h, payload), j.branch.port(), j.branch.address, mark, true
}
