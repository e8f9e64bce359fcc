package ethernet

import (
	"fmt"

	"tributary/driver/wire"
)

// Endpoint is a card on a network without its Ethernet: model.Endpoint or cpu.Endpoint.
type Endpoint interface {
	// Receive takes a datagram that came from an address with a mark in its IP header. It keeps no
	// reference to it.
	Receive(datagram []byte, from wire.Address, mark wire.ECN)

	// Send appends the next datagram that leaves to dst, and returns its destination and its mark. ok
	// is false if there is none.
	Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool)

	Cycles() uint64        // the card's clock
	Advance(cycles uint64) // advances it
	Own() wire.Address     // the card's own address, in effect when everything has left
	Count(counter string)  // counts an event in a counter of wire.NetworkCounters
}

// upper is an Endpoint with an up port: model.Endpoint or cpu.Endpoint.
type upper interface {
	// UpwardPorts returns the UDP ports from which the card sends to parents now.
	UpwardPorts() []uint16

	// ReceiveUp is Receive for a datagram to one of these ports.
	ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN)

	// SendUp is Send for a datagram to a parent, and also returns the UDP port that it leaves from.
	SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool)
}

// MaxPorts is the largest number of Ethernet ports of a card.
const MaxPorts = 256

// Card is a card with Ethernet ports. It has no device and reads no clock, so the same calls give the
// same frames. It is for calls from one goroutine at a time.
type Card struct {
	endpoint  Endpoint
	upper     upper     // the endpoint, or nil
	connected connected // the endpoint, or nil
	ports     int
	own       station // in effect
	stations  *stations
	answers   queue // to ARP and ICMP
	passing   queue
	datagram  []byte // reused by Send
}

// The largest numbers of frames that wait to leave. The hardware makes one answer at a time, too.
const (
	maxAnswers = 1
	maxPassing = 256
)

// New returns a card with Ethernet ports around an endpoint that was made for as many.
func New(endpoint Endpoint, ports int) (*Card, error) {
	if ports < 1 || ports > MaxPorts {
		return nil, fmt.Errorf("ethernet: %d ports are not from 1 to %d", ports, MaxPorts)
	}
	up, _ := endpoint.(upper)
	conn, _ := endpoint.(connected)
	return &Card{
		endpoint: endpoint, upper: up, connected: conn, ports: ports, own: stationOf(endpoint.Own()), stations: newStations(),
		answers: queue{most: maxAnswers}, passing: queue{most: maxPassing},
	}, nil
}

// Cycles returns the card's clock.
func (c *Card) Cycles() uint64 { return c.endpoint.Cycles() }

// Advance advances the card's clock.
func (c *Card) Advance(cycles uint64) { c.endpoint.Advance(cycles) }

// Err returns nil: nothing stops a card in this process.
func (c *Card) Err() error { return nil }

// Receive takes a frame with its FCS that came at an Ethernet port. It keeps no reference to it.
// Send then returns all that the frame has caused.
func (c *Card) Receive(port int, frame []byte) {
	body, whole := CutFCS(frame)
	v := &view{body, whole, c.own, c.upper}
	if whole && len(body) >= Shortest && len(body) <= Longest {
		c.stations.learn(v.mac(atSource), port, c.Cycles())
		if c.take(v, port) || c.relay(v, port) {
			return
		}
	}
	switch verdict := judge(v); verdict.kind {
	case dropped:
		c.endpoint.Count(verdict.reason)
	case passedOn:
		c.pass(v.mac(atDestination), port, frame)
	case arpForCard:
		c.answer(appendARPReply(nil, body, c.own), port)
	case echoForCard:
		if int(v.word(atIPLength)) > longestEcho {
			c.endpoint.Count("dropped")
			return
		}
		c.answer(appendEchoReply(nil, v), port)
	case datagramForCard:
		from := station{v.mac(atSource), v.ip(atFromIP), v.word(atFromPort), port}
		mark := wire.ECN(v.frame[atTOS] & wire.FlagECN)
		datagram := v.data()[udpBytes:]
		if port := v.word(atToPort); port == c.own.port {
			c.endpoint.Receive(datagram, from.address(), mark)
		} else {
			c.upper.ReceiveUp(port, datagram, from.address(), mark)
		}
	}
}

// answer lets a frame without FCS leave at a port.
func (c *Card) answer(frame []byte, port int) {
	if !c.answers.push(AppendFCS(Pad(frame)), []int{port}) {
		c.endpoint.Count("dropped")
	}
}

// pass lets a frame leave at other ports than it came at, byte for byte. The card's own MAC address is
// behind none of them.
func (c *Card) pass(to mac, from int, frame []byte) {
	ports := c.portsFor(to, from)
	if len(ports) == 0 {
		return
	}
	if !c.passing.push(append([]byte(nil), frame...), ports) {
		c.endpoint.Count("dropped")
		return
	}
	c.endpoint.Count("passed")
}

// portsFor returns the ports at which a frame that is passed on leaves.
func (c *Card) portsFor(to mac, from int) (ports []int) {
	at, known := c.stations.find(to, c.Cycles())
	for port := range c.ports {
		if port != from && to != c.own.mac && (!known || port == at) {
			ports = append(ports, port)
		}
	}
	return ports
}

// Send appends the next frame that leaves to dst, with its FCS, and returns its port. ok is false,
// and dst unchanged, if there is none. Answers to ARP and ICMP leave first, then what the endpoint
// sends, also to parents, then sums on connections, then frames that pass or are relayed, in the order
// of their arrival; a frame for several ports leaves at the lowest first.
func (c *Card) Send(dst []byte) (frame []byte, port int, ok bool) {
	if frame, port, ok = c.answers.pop(); ok {
		return append(dst, frame...), port, true
	}
	datagram, from, address, mark, ok := c.next()
	if ok {
		c.datagram = datagram
		to := stationOf(address)
		frame = appendDatagram(nil, datagram, from, to, mark)
		return append(dst, AppendFCS(Pad(frame))...), to.at, true
	}
	c.own = stationOf(c.endpoint.Own()) // all replies have left
	if c.connected != nil {
		if frame, port, ok = c.connected.SendFrame(nil); ok {
			return append(dst, AppendFCS(Pad(frame))...), port, true
		}
	}
	if frame, port, ok = c.passing.pop(); ok {
		return append(dst, frame...), port, true
	}
	return dst, 0, false
}

// next returns the next datagram of the endpoint, and the station that it leaves from.
func (c *Card) next() (datagram []byte, from station, to wire.Address, mark wire.ECN, ok bool) {
	from = c.own
	datagram, to, mark, ok = c.endpoint.Send(c.datagram[:0])
	if !ok && c.upper != nil {
		datagram, from.port, to, mark, ok = c.upper.SendUp(c.datagram[:0])
	}
	return datagram, from, to, mark, ok
}
