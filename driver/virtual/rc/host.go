package rc

import (
	"time"

	"tributary/driver/virtual/clock"
	"tributary/driver/wire"
)

// Host is an RDMA host at one Ethernet port: an ethernet.Device. It is for calls from one goroutine at a
// time.
type Host struct {
	own     Address
	now     uint64 // clock cycles
	pairs   []*Pair
	turn    int // of pairs, which send in turn
	regions map[uint32]region
	counts  Counters
	replies [][]byte // to ARP requests, with FCS

	// Tamper, unless it is nil, may change each packet before it leaves, so that tests have peers that lie:
	// ICRC, FCS and lengths are made afterwards. The payload is a copy. Only opcode and BTH.Pad decide
	// which other parts leave.
	Tamper func(p *Packet)
}

// Counters counts the frames that a host has dropped in silence.
type Counters struct {
	FCS     int // wrong FCS
	Foreign int // for another MAC or IP address, or no RoCEv2
	Header  int // malformed, or in another partition
	ICRC    int // wrong ICRC
	Pair    int // no such queue pair, not connected, or from another address than its peer's
	Opcode  int // opcodes that the host does not take
}

// New returns a host without queue pairs.
func New(own Address) *Host { return &Host{own: own, regions: map[uint32]region{}} }

// Address returns the host's address.
func (h *Host) Address() Address { return h.own }

// Counters returns what the host has dropped until now.
func (h *Host) Counters() Counters { return h.counts }

// CreatePair makes a queue pair. It panics if the host has one of that number.
func (h *Host) CreatePair(qpn uint32) *Pair {
	if h.pair(qpn) != nil {
		panic("rc: this number has a queue pair")
	}
	p := &Pair{host: h, qpn: qpn}
	h.pairs = append(h.pairs, p)
	return p
}

// pair returns the queue pair of a number, or nil.
func (h *Host) pair(qpn uint32) *Pair {
	for _, p := range h.pairs {
		if p.qpn == qpn {
			return p
		}
	}
	return nil
}

// Cycles returns the host's clock, in cycles of clock.Rate.
func (h *Host) Cycles() uint64 { return h.now }

// Advance advances the host's clock. Send then returns what timers have caused.
func (h *Host) Advance(cycles uint64) {
	h.now += cycles
	for _, p := range h.pairs {
		p.expire()
	}
}

// Deadline returns the cycle at which the next timer ends. ok is false if none runs.
func (h *Host) Deadline() (cycle uint64, ok bool) {
	for _, p := range h.pairs {
		if p.timer != 0 && (!ok || p.timer < cycle) {
			cycle, ok = p.timer, true
		}
	}
	return cycle, ok
}

// Err returns nil: nothing stops a host in this process.
func (h *Host) Err() error { return nil }

// Receive takes a frame with its FCS. The port is that of an ethernet.Device and has no meaning. The host
// keeps no reference to the frame.
func (h *Host) Receive(_ int, frame []byte) {
	p, err := Parse(frame)
	switch {
	case err == ErrFCS:
		h.counts.FCS++
	case err == ErrForeign && h.answerARP(frame):
	case err == ErrForeign:
		h.counts.Foreign++
	case err == ErrICRC:
		h.counts.ICRC++
	case err != nil || p.BTH.PKey != wire.PKey:
		h.counts.Header++
	case p.To != h.own:
		h.counts.Foreign++
	default:
		h.take(&p)
	}
}

// take hands a good packet to its queue pair.
func (h *Host) take(p *Packet) {
	pair := h.pair(p.BTH.DestQP)
	info, _ := p.BTH.Opcode.Info()
	switch {
	case pair == nil || pair.state != connected || p.From.IP != pair.to.Peer.IP:
		h.counts.Pair++
	case info.Acknowledges:
		pair.acknowledged(p)
	case info.Data():
		pair.respond(p, info)
	default:
		h.counts.Opcode++
	}
}

// Send appends the next frame that leaves to dst, with its FCS. ok is false, and dst unchanged, if there is
// none. The port is 0. Answers to ARP leave first, then acknowledgements, then data; queue pairs
// send in turn.
func (h *Host) Send(dst []byte) (frame []byte, port int, ok bool) {
	if len(h.replies) > 0 {
		frame, h.replies = h.replies[0], h.replies[1:]
		return append(dst, frame...), 0, true
	}
	for _, p := range h.pairs {
		if packet, ok := p.nextAnswer(); ok {
			return h.leave(dst, packet), 0, true
		}
	}
	for i := range h.pairs {
		p := h.pairs[(h.turn+i)%len(h.pairs)]
		if packet, ok := p.nextRequest(); ok {
			h.turn = (h.turn + i + 1) % len(h.pairs)
			return h.leave(dst, packet), 0, true
		}
	}
	return dst, 0, false
}

// leave appends a packet's frame.
func (h *Host) leave(dst []byte, p *Packet) []byte {
	if h.Tamper != nil {
		p.Payload = append([]byte(nil), p.Payload...)
		h.Tamper(p)
	}
	return p.Append(dst)
}

// after returns the cycle at which a time has passed from now on.
func (h *Host) after(d time.Duration) uint64 { return h.now + clock.Cycles(d) }
