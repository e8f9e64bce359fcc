// The datagrams of an up port (TREES.md, section 5).

package model

import "tributary/driver/wire"

// UpwardPorts returns the UDP ports from which the card sends to the parents of its running tree jobs,
// in the order of the jobs. What arrives there is for ReceiveUp.
func (e *Endpoint) UpwardPorts() (ports []uint16) {
	for number := range e.card.jobs {
		if j := &e.card.jobs[number]; j.running && j.isTree() {
			ports = append(ports, j.setup.upward.port())
		}
	}
	return ports
}

// ReceiveUp is Receive for a datagram to another UDP port than the card's own. If no running tree job
// uses the port, the datagram counts as udp_port.
func (e *Endpoint) ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN) {
	j := e.card.jobAt(port)
	if j == nil {
		e.card.counters.add(countUDPPort, 1)
		return
	}
	p, ok := e.card.receive(datagram, isForChild)
	switch {
	case !ok:
	case !sameSender(from, j.setup.upward.address):
		e.card.counters.add(countStranger, 1)
	case int(p.Job) != j.number:
		e.card.up.add(countUpDropped, 1)
	default:
		worse := max(congestionOf(p.Flags), congestionOf(uint8(mark)))
		p.Flags = p.Flags&^wire.FlagECN | uint8(wire.ECNOrder[worse])
		e.card.Handle(e.card.cfg.Ports, &p)
	}
}

// SendUp is Send for the next datagram to a parent, and also returns the UDP port that it leaves from.
// The mark of an own sum is in its IP header, where the parent reads it, and in its flags.
func (e *Endpoint) SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool) {
	if !e.card.NextUp(&e.up) {
		return dst, 0, wire.Address{}, 0, false
	}
	mark = wire.ECT0
	if e.up.Kind == wire.KindData {
		mark = wire.ECN(e.up.Flags & wire.FlagECN)
	}
	u := &e.card.numbered(e.up.Job).setup.upward
	return AppendDatagram(dst, &e.up), u.port(), u.address, mark, true
}
