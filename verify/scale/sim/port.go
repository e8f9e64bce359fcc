package sim

// receiver takes a packet that arrives.
type receiver interface{ receive(*Packet) }

// pipe delivers packets in the order in which they entered. Only its first one is in the engine's
// queue, which therefore grows with the links and not with the packets.
type pipe struct {
	engine *Engine
	to     receiver
	ring   []arrival // a power of two
	head   int
	count  int
}

type arrival struct {
	at     Time
	order  uint64
	packet *Packet
}

// push makes a packet arrive at a time, which must not be earlier than that of the one before.
func (p *pipe) push(packet *Packet, at Time) {
	if p.count == len(p.ring) {
		p.grow()
	}
	a := arrival{at, p.engine.order(), packet}
	p.ring[(p.head+p.count)&(len(p.ring)-1)] = a
	if p.count++; p.count == 1 {
		p.engine.push(event{at: at, order: a.order, pipe: p})
	}
}

func (p *pipe) grow() {
	ring := make([]arrival, max(4, 2*len(p.ring)))
	for i := range p.count {
		ring[i] = p.ring[(p.head+i)&(len(p.ring)-1)]
	}
	p.ring, p.head = ring, 0
}

func (p *pipe) first() (arrival, bool) { return p.ring[p.head], p.count > 0 }

func (p *pipe) take() *Packet {
	a := &p.ring[p.head]
	packet := a.packet
	a.packet = nil
	p.head = (p.head + 1) & (len(p.ring) - 1)
	p.count--
	return packet
}

// LinkConfig describes a link and the output queue before it.
type LinkConfig struct {
	Rate  float64 // bits a second
	Delay Time    // propagation, and what the receiver needs before it can act
	Limit int64   // bytes of the queue, with the packet that is being sent; 0 for no limit
	Mark  int64   // bytes that a packet finds in the queue; with more it is marked CE; 0 for never
}

// Port is an output queue and its link. The queue is first in, first out, so a packet's departure
// is known when it arrives: no event but the arrival at the other end is needed.
type Port struct {
	pipe
	LinkConfig
	byteTime Time // to send a byte
	busy     Time // until then

	Packets, Marked, Dropped int64
	Bytes                    int64 // sent
	Highest                  int64 // bytes in the queue, with the packet that arrived
	Waited                   Time  // by all packets
}

func newPort(e *Engine, c LinkConfig, to receiver) *Port {
	return &Port{pipe: pipe{engine: e, to: to}, LinkConfig: c, byteTime: Time(8*float64(Second)/c.Rate + 0.5)}
}

// send queues a packet, or drops it if there is no room.
func (p *Port) send(packet *Packet) {
	now := p.engine.now
	wait := max(0, p.busy-now)
	size := int64(packet.wire)
	queued := int64(wait / p.byteTime)
	if p.Limit > 0 && queued+size > p.Limit {
		p.Dropped++
		p.engine.release(packet)
		return
	}
	if p.Mark > 0 && queued > p.Mark {
		packet.ce = true
		p.Marked++
	}
	p.Packets++
	p.Bytes += size
	p.Waited += wait
	p.Highest = max(p.Highest, queued+size)
	p.busy = now + wait + Time(size)*p.byteTime
	p.push(packet, p.busy+p.Delay)
}
