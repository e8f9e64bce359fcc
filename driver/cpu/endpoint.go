package cpu

import (
	"errors"
	"math/bits"
	"slices"

	"tributary/driver/frame"
	"tributary/driver/wire"
)

// Endpoint is a card on a network, shell "udp": datagrams in and out, for calls from one goroutine at
// a time. Package driver/virtual/udp puts one behind a socket.
//
// Replies leave first. Then a result that has begun leaves for its other receivers' addresses. Up to 16 replies
// wait; an access beyond them is dropped without effect.
type Endpoint struct {
	card    *Card
	check   checker
	checkUp checker // of what comes from parents
	frame   frame.Frame
	replies []reply
	upward  []uint16 // reused by UpwardPorts

	// The packet that has begun to leave.
	header  frame.Header
	payload []byte
	ranks   uint64                      // for which it has not left
	to      [wire.MaxPorts]wire.Address // by rank
}

// checker checks datagrams.
type checker struct {
	*frame.DatagramChecker
	counted frame.DatagramStats // that are in the card's counters
}

// reply is a reply that waits.
type reply struct {
	header frame.Header
	to     wire.Address
}

// NewEndpoint returns a card after its hard reset, with the shell udp and an address of its own.
func NewEndpoint(cfg Config, own wire.Address) (*Endpoint, error) {
	card, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if card.engine.network == nil {
		return nil, errors.New("cpu: the card has no datagrams")
	}
	card.engine.network.own = own
	cfg = card.Config()
	return &Endpoint{
		card: card, replies: make([]reply, 0, mostReplies),
		check:   checker{DatagramChecker: frame.NewCardDatagramChecker(cfg.Chunk, cfg.Format)},
		checkUp: checker{DatagramChecker: frame.NewChildDatagramChecker(cfg.Chunk, cfg.Format)},
	}, nil
}

// Config returns the card's geometry, with its defaults filled in.
func (p *Endpoint) Config() Config { return p.card.Config() }

// Cycles returns the card's clock.
func (p *Endpoint) Cycles() uint64 {
	p.card.lock()
	defer p.card.unlock()
	return p.card.engine.now
}

// Advance is Card.Advance.
func (p *Endpoint) Advance(cycles uint64) { p.card.Advance(cycles) }

// Own returns the card's own address, which is in effect when all replies have left.
func (p *Endpoint) Own() wire.Address {
	p.card.lock()
	defer p.card.unlock()
	return p.card.engine.network.own
}

// Count counts an event of what is around the card, by the name of its counter in wire.NetworkCounters.
// It panics if there is none.
func (p *Endpoint) Count(counter string) {
	i := slices.IndexFunc(wire.NetworkCounters, func(c wire.CounterInfo) bool { return c.Name == counter })
	if i < 0 {
		panic("cpu: shell udp has no counter " + counter)
	}
	p.card.lock()
	defer p.card.unlock()
	p.card.engine.counters[len(wire.Counters)+i]++
}

// Receive takes a datagram from an address, whose IP header has a mark. It keeps no reference to it.
func (p *Endpoint) Receive(datagram []byte, from wire.Address, mark wire.ECN) {
	p.card.lock()
	defer p.card.unlock()
	if !p.check.take(datagram, &p.frame, p.card.engine.counters) {
		return
	}
	e, h := p.card.engine, &p.frame.Header
	if h.Kind == wire.KindRegRead || h.Kind == wire.KindRegWrite {
		p.access(h, from)
		return
	}
	port, ok := e.member(from, h.Job, h.Rank)
	if !ok {
		e.counters[countStranger]++
		return
	}
	h.Flags = h.Flags&^wire.FlagECN | uint8(mark)
	e.handle(port, h, p.frame.Payload, false)
}

// access performs a register access.
func (p *Endpoint) access(h *frame.Header, from wire.Address) {
	e := p.card.engine
	if len(p.replies) == cap(p.replies) {
		e.counters[countDropped]++
		return
	}
	code, value := e.registerFrom(from, h.Kind == wire.KindRegWrite, h.VID, h.Mask)
	p.replies = append(p.replies, reply{
		frame.Header{Kind: wire.KindReply, Code: code, VID: h.VID, Length: h.Length, Mask: value}, from,
	})
}

// take checks a datagram, and adds what it counts to the card's counters.
func (k *checker) take(datagram []byte, f *frame.Frame, c counters) (ok bool) {
	ok = k.Check(datagram, f)
	now, then := k.Stats(), k.counted
	k.counted = now
	version, kind, length := uint32(now.BadVersion-then.BadVersion), uint32(now.BadKind-then.BadKind), uint32(now.BadLength-then.BadLength)
	c[countShort] += uint32(now.Short - then.Short)
	c[countDatagramCRC] += uint32(now.CRC - then.CRC)
	c[countFrames] += uint32(now.Packets-then.Packets) + version + kind + length
	c[refusals[wire.CodeBadVersion]] += version
	c[refusals[wire.CodeBadKind]] += kind
	c[refusals[wire.CodeBadLength]] += length
	return ok
}

// Send appends the next datagram that leaves to dst, and returns its destination and the mark for
// its IP header. ok is false if there is none.
func (p *Endpoint) Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool) {
	if len(p.replies) > 0 {
		first := p.replies[0]
		p.replies = p.replies[:copy(p.replies, p.replies[1:])]
		return frame.AppendDatagram(dst, &first.header, nil), first.to, wire.ECT0, true
	}
	if p.ranks == 0 && !p.next() {
		return dst, wire.Address{}, 0, false
	}
	first := bits.TrailingZeros64(p.ranks)
	for rest := p.ranks; rest != 0; rest &= rest - 1 {
		if rank := bits.TrailingZeros64(rest); p.to[rank] == p.to[first] {
			p.ranks &^= 1 << rank
		}
	}
	mark = wire.ECT0
	if p.header.Kind != wire.KindStatus {
		mark = wire.ECN(p.header.Flags & wire.FlagECN)
	}
	return frame.AppendDatagram(dst, &p.header, p.payload), p.to[first], mark, true
}

// next begins the core's next packet, and reports whether there is one. It keeps the payload and the
// addresses, because slots and the address table may change before the last receiver's turn.
func (p *Endpoint) next() bool {
	p.card.lock()
	defer p.card.unlock()
	e := p.card.engine
	payload, ports := e.next(AllPorts, &p.header)
	if ports == 0 {
		return false
	}
	p.payload = append(p.payload[:0], payload...)
	j := e.jobOf(p.header.Job)
	p.ranks = p.header.Receivers
	if p.header.Kind == wire.KindStatus {
		p.ranks = bit(p.header.Rank)
	}
	for ranks := p.ranks; ranks != 0; ranks &= ranks - 1 {
		rank := bits.TrailingZeros64(ranks)
		p.to[rank] = e.network.job(j.number)[j.portOf[rank]]
	}
	return true
}
