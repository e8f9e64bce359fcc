// The shells "udp" and "roce": a card at a network, which takes and sends datagrams. With shell roce these are
// register accesses and their replies; what else it takes and sends is in roce.go and release.go.

package model

import (
	"errors"
	"math/bits"

	"tributary/driver/wire"
)

// Endpoint is a card on a network: Receive takes a datagram, Send returns the next one that leaves.
// It has no socket and reads no clock, so the same calls give the same datagrams. Package
// driver/virtual/udp puts one behind a socket. It is for calls from one goroutine at a time.
//
// Replies leave first, in the order of the accesses. Then a result that has begun leaves for the rest
// of its receivers' addresses, in the order of the ranks. Then the core begins its next packet
// (Card.Next).
//
// At most 16 replies wait. An access that comes while so many wait is dropped without effect, and
// counts as dropped.
type Endpoint struct {
	card    *Card
	replies []reply
	result  Packet         // that has begun
	rest    uint64         // ranks that it has not left for
	to      []wire.Address // of the result's receivers, by rank, when it began
	up      Packet         // for a parent, reused for its memory
}

// reply is the waiting reply to a register access.
type reply struct {
	Header
	to wire.Address
}

// NewEndpoint returns a card after its hard reset, whose shell must be udp or roce, and whose own address is
// own.
func NewEndpoint(cfg Config, own wire.Address) (*Endpoint, error) {
	card, err := NewCard(cfg)
	if err != nil {
		return nil, err
	}
	if card.network == nil {
		return nil, errors.New("model: the card's shell has no datagrams")
	}
	card.network.card = own
	return &Endpoint{card: card, to: make([]wire.Address, card.cfg.Ports)}, nil
}

// Config returns the card's geometry, with its defaults filled in.
func (e *Endpoint) Config() Config { return e.card.cfg }

// Cycles returns the card's clock.
func (e *Endpoint) Cycles() uint64 { return e.card.cycles }

// Advance advances the card's clock, as Card.Advance does.
func (e *Endpoint) Advance(cycles uint64) { e.card.Advance(cycles) }

// Own returns the card's own address, as its registers hold it. It is in effect when all replies
// have left.
func (e *Endpoint) Own() wire.Address { return e.card.network.card }

// Count counts an event of what is around the card, by the name of its counter in wire.NetworkCounters.
// It panics if there is none.
func (e *Endpoint) Count(counter string) { e.card.counters.add(counterIndex(counter), 1) }

// Receive takes a datagram that came from an address with a mark in its IP header. It keeps no
// reference to it.
func (e *Endpoint) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	travels := isForCard
	if e.card.connections != nil {
		travels = isAccess
	}
	p, ok := e.card.receive(datagram, travels)
	switch {
	case !ok:
	case p.Kind == wire.KindRegRead || p.Kind == wire.KindRegWrite:
		e.access(&p.Header, from)
	case !e.card.isMember(from, p.Job, p.Rank):
		e.card.counters.add(countStranger, 1)
	default:
		p.Flags = p.Flags&^wire.FlagECN | uint8(mark)
		port, _ := e.card.PortOf(p.Job, p.Rank)
		e.card.Handle(port, &p)
	}
}

// access performs a register access, if there is room for its reply.
func (e *Endpoint) access(h *Header, from wire.Address) {
	if len(e.replies) == maxReplies {
		e.card.counters.add(countDropped, 1)
		return
	}
	code, value := e.card.registerFrom(from, h.Kind == wire.KindRegWrite, h.VID, h.Mask)
	e.replies = append(e.replies, reply{replyTo(h, code, value), from})
}

// Send appends the next datagram that leaves to dst. It returns its destination, and the mark for
// its IP header. ok is false, and dst unchanged, if there is none.
func (e *Endpoint) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	if len(e.replies) > 0 {
		first := e.replies[0]
		e.replies = append(e.replies[:0], e.replies[1:]...)
		return AppendDatagram(dst, &Packet{Header: first.Header}), first.to, wire.ECT0, true
	}
	if e.rest == 0 {
		if _, ok := e.card.Next(AllPorts, &e.result); !ok {
			return dst, wire.Address{}, 0, false
		}
		e.begin()
	}
	to = e.to[bits.TrailingZeros64(e.rest)]
	for rank := range e.to {
		if e.to[rank] == to {
			e.rest &^= 1 << rank // one copy is for all who are there
		}
	}
	mark = wire.ECT0
	if e.result.Kind != wire.KindStatus {
		mark = wire.ECN(e.result.Flags & wire.FlagECN)
	}
	return AppendDatagram(dst, &e.result), to, mark, true
}

// begin notes where the packet that the core has begun goes. Addresses that a new epoch brings are
// not for a result of the last one.
func (e *Endpoint) begin() {
	e.rest = e.result.Receivers
	if e.result.Kind == wire.KindStatus {
		e.rest = 1 << e.result.Rank
	}
	j := e.card.numbered(e.result.Job)
	for rank, port := range j.portOf {
		e.to[rank] = e.card.network.table[j.number][port]
	}
}
