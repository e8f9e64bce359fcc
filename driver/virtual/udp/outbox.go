package udp

import (
	"net"

	"golang.org/x/net/ipv4"

	"tributary/driver/wire"
)

// outbox gathers the datagrams that leave, for few calls of the system.
type outbox struct {
	ms []ipv4.Message // reused for their memory
	n  int            // that wait
}

func newOutbox() outbox {
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		ms[i].Buffers = [][]byte{nil}
		ms[i].Addr = &net.UDPAddr{IP: make(net.IP, net.IPv4len)}
		ms[i].OOB = make([]byte, 0, ControlBytes)
	}
	return outbox{ms: ms}
}

// collect takes all datagrams that the card has to send. It sends full batches.
func (o *outbox) collect(card Card, at packets) {
	for {
		datagram, to, mark, ok := card.Send(o.memory())
		if !ok {
			return
		}
		o.put(datagram, to, mark, at)
	}
}

// push takes a copy of one datagram.
func (o *outbox) push(datagram []byte, to wire.Address, mark wire.ECN, at packets) {
	o.put(append(o.memory(), datagram...), to, mark, at)
}

// memory returns the memory of the next datagram, without bytes.
func (o *outbox) memory() []byte { return o.ms[o.n].Buffers[0][:0] }

// put adds a datagram in that memory, and sends a full batch.
func (o *outbox) put(datagram []byte, to wire.Address, mark wire.ECN, at packets) {
	m := &o.ms[o.n]
	m.Buffers[0] = datagram
	address(m, to)
	m.OOB = AppendMark(m.OOB[:0], mark)
	if o.n++; o.n == len(o.ms) {
		o.flush(at)
	}
}

// address sets the destination of a message, in the memory that it has for that.
func address(m *ipv4.Message, to wire.Address) {
	a, dst := addrPortOf(to), m.Addr.(*net.UDPAddr)
	ip := a.Addr().As4()
	copy(dst.IP, ip[:])
	dst.Port = int(a.Port())
}

// flush sends the datagrams that wait. One that the system does not take is lost, as on any network:
// it may be too long for the way, or there is no way.
func (o *outbox) flush(at packets) {
	for ms := o.ms[:o.n]; len(ms) > 0; {
		n, err := at.WriteBatch(ms, 0)
		if err != nil || n < 1 {
			n = 1 // the first one is lost
		}
		ms = ms[n:]
	}
	o.n = 0
}
