package sim

// TCPConfig are the parameters of flows.
type TCPConfig struct {
	Window  WindowConfig
	Timeout Time // the least one of retransmissions
}

// Flow is a TCP connection in one direction, with DCTCP and NewReno's recovery. It sends messages
// of equal size; an ordinary flow has one. Handshakes are not modelled. The receiver acknowledges
// each segment, so a mark is reflected exactly.
type Flow struct {
	engine   *Engine
	src, dst *Host
	hash     uint32
	message  int64 // bytes
	segments int64 // of a message
	total    int64 // segments that may be sent

	Window     Window
	rtt        roundTrip
	una, next  int64
	sent       int64 // the highest next: those below were sent before
	duplicates int
	recovering bool
	recover    int64 // recovery ends when all below are acknowledged
	sampled    int64 // the segment whose round trip is measured, or -1
	sampledAt  Time
	deadline   Time
	waiting    bool // a timer is running

	missing int64 // the receiver's first
	early   map[int64]bool
	arrived func(segments int64) // is called when the receiver has more segments in order

	Retransmitted int64
}

// NewFlow returns a flow that has nothing to send yet.
func NewFlow(e *Engine, c TCPConfig, src, dst *Host, hash uint32, message int64, arrived func(segments int64)) *Flow {
	return &Flow{
		engine: e, src: src, dst: dst, hash: hash, message: message, segments: (message + mss - 1) / mss,
		Window: NewWindow(c.Window), rtt: roundTrip{least: c.Timeout}, sampled: -1, arrived: arrived,
	}
}

// Send adds a message.
func (f *Flow) Send() {
	f.total += f.segments
	f.pump()
}

func (f *Flow) pump() {
	allowed := int64(f.Window.Size) + int64(f.duplicates)
	for f.next < f.total && f.next-f.una < allowed {
		f.transmit(f.next)
		f.next++
		f.sent = max(f.sent, f.next)
	}
	f.watch()
}

func (f *Flow) transmit(seq int64) {
	p := f.engine.packet()
	size := int64(mss)
	if seq%f.segments == f.segments-1 {
		size = f.message - (f.segments-1)*mss
	}
	p.wire = int32(max(shortest, size+segment0))
	p.kind, p.flow, p.seq, p.dst, p.hash = segment, f, seq, f.dst.id, f.hash
	if seq < f.sent {
		f.Retransmitted++
		if f.sampled >= 0 && seq <= f.sampled {
			f.sampled = -1 // Karn: no sample from a repeated segment
		}
	} else if f.sampled < 0 {
		f.sampled, f.sampledAt = seq, f.engine.now
	}
	f.src.nic.send(p)
}

// watch restarts the timer of retransmissions.
func (f *Flow) watch() {
	if f.una == f.next {
		f.deadline = 0
		return
	}
	f.deadline = f.engine.now + f.rtt.timeout()
	if !f.waiting {
		f.waiting = true
		f.engine.After(f.rtt.timeout(), f.expire)
	}
}

func (f *Flow) expire() {
	f.waiting = false
	switch now := f.engine.now; {
	case f.deadline == 0:
	case now < f.deadline:
		f.waiting = true
		f.engine.After(f.deadline-now, f.expire)
	default:
		f.rtt.backOff++
		f.Window.restart(f.next)
		f.next, f.duplicates, f.recovering = f.una, 0, false
		f.pump()
	}
}

// receive takes a segment at the receiver, or an acknowledgement at the sender.
func (f *Flow) receive(p *Packet) {
	if p.kind == segment {
		f.accept(p)
	} else {
		f.acknowledged(p.seq, p.echo)
	}
	f.engine.release(p)
}

func (f *Flow) accept(p *Packet) {
	before := f.missing
	switch {
	case p.seq == f.missing:
		f.missing++
		for len(f.early) > 0 && f.early[f.missing] {
			delete(f.early, f.missing)
			f.missing++
		}
	case p.seq > f.missing:
		if f.early == nil {
			f.early = map[int64]bool{}
		}
		f.early[p.seq] = true
	}
	a := f.engine.packet()
	a.wire, a.kind, a.flow, a.seq, a.dst, a.hash = ackWire, ack, f, f.missing, f.src.id, f.hash
	a.echo = p.ce
	f.dst.nic.send(a)
	if f.missing > before {
		f.arrived(f.missing)
	}
}

func (f *Flow) acknowledged(upTo int64, marked bool) {
	switch {
	case upTo > f.una:
		if f.sampled >= 0 && upTo > f.sampled {
			f.rtt.sample(f.engine.now - f.sampledAt)
			f.sampled = -1
		}
		for seq := f.una; seq < upTo && !f.recovering; seq++ {
			f.Window.Acknowledge(seq, f.next, marked)
		}
		f.una, f.duplicates, f.rtt.backOff = upTo, 0, 0
		f.next = max(f.next, f.una) // after a timeout, the receiver may have had the rest
		if f.recovering && upTo < f.recover {
			f.transmit(f.una) // NewReno: a partial acknowledgement shows the next loss
		} else {
			f.recovering = false
		}
	case upTo == f.una && f.next > f.una:
		f.duplicates++
		if f.duplicates == 3 && !f.recovering {
			f.Window.Lose(f.una, f.next)
			f.recovering, f.recover = true, f.next
			f.transmit(f.una)
		}
	}
	f.pump()
}
