package udp

import (
	"fmt"
	"math"
	"net"
	"slices"

	"golang.org/x/net/ipv4"

	"tributary/driver/wire"
)

// upper is a Card with an up port: model.Endpoint or cpu.Endpoint. Each upward UDP port has a socket of
// its own while a job uses it.
type upper interface {
	// UpwardPorts returns the UDP ports from which the card sends to parents now.
	UpwardPorts() []uint16

	// ReceiveUp is Receive for a datagram to one of these ports.
	ReceiveUp(port uint16, datagram []byte, from wire.Address, mark wire.ECN)

	// SendUp is Send for a datagram to a parent, and also returns the UDP port that it leaves from.
	SendUp(dst []byte) (datagram []byte, port uint16, to wire.Address, mark wire.ECN, ok bool)
}

// uplink is the socket of an upward UDP port, with what leaves there.
type uplink struct {
	packets
	out outbox
}

// lower closes the sockets of upward ports that the card has no longer; mu must be held.
func (s *server) lower() {
	if len(s.links) == 0 {
		return
	}
	ports := s.upper.UpwardPorts()
	for port, link := range s.links {
		if !slices.Contains(ports, port) {
			s.cut(port, link)
		}
	}
}

// cut closes the socket of an upward port; mu must be held.
func (s *server) cut(port uint16, link *uplink) {
	delete(s.links, port)
	_ = link.Close() // nothing waits in it: every batch is flushed
}

// cutAll closes the sockets of all upward ports; mu must be held.
func (s *server) cutAll() {
	for port, link := range s.links {
		s.cut(port, link)
	}
}

// raise opens the sockets of the upward ports that the card has now, and closes the others; mu must be
// held.
func (s *server) raise() error {
	if s.upper == nil || s.over {
		return nil
	}
	s.lower()
	for _, port := range s.upper.UpwardPorts() {
		if s.links[port] != nil {
			continue
		}
		at := wire.Address{Station: s.at.station&math.MaxUint32 | uint64(port)<<32}
		socket, err := s.move(at)
		if err != nil {
			return fmt.Errorf("udp: a job was given the upward port of %v; set it up with another one: %w", addrPortOf(at), err)
		}
		link := &uplink{socket, newOutbox()}
		s.links[port] = link
		s.readers.Go(func() { s.receiveUp(port, link) })
	}
	return nil
}

// receiveUp passes datagrams to an upward port to the card until the socket is closed.
func (s *server) receiveUp(port uint16, link *uplink) {
	in := newMessages()
	for {
		n, err := link.ReadBatch(in, 0)
		if err != nil || !s.takeUp(port, link, in[:n]) {
			return
		}
	}
}

// takeUp is take for an upward port; it returns false if the socket is no longer that of the port.
func (s *server) takeUp(port uint16, link *uplink, in []ipv4.Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.links[port] != link {
		return false
	}
	s.time.CatchUp(s.card)
	for i := range in {
		m := &in[i]
		if from, ok := m.Addr.(*net.UDPAddr); ok {
			s.upper.ReceiveUp(port, m.Buffers[0][:m.N], addressOf(from.AddrPort()), ReceivedMark(m.OOB[:m.NN]))
			s.collect()
		}
	}
	s.flush()
	return s.links[port] == link
}

// collect takes all datagrams that the card has to send; mu must be held.
func (s *server) collect() {
	s.out.collect(s.card, s.at)
	if s.upper == nil {
		return
	}
	for {
		datagram, port, to, mark, ok := s.upper.SendUp(s.datagram[:0])
		if !ok {
			return
		}
		s.datagram = datagram
		if link := s.links[port]; link != nil {
			link.out.push(datagram, to, mark, link)
		}
	}
}

// flush sends the datagrams that wait, and then closes the sockets that are not needed; mu must be held.
func (s *server) flush() {
	for _, link := range s.links {
		link.out.flush(link)
	}
	s.lower()
	s.out.flush(s.at)
}
