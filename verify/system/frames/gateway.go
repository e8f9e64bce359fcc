package frames

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"tributary/driver/transport"
)

// Gateway leads UDP sockets of this machine to a card behind hosts in user space, as a router that
// translates addresses does. Each socket has a UDP port of its own at one of the hosts, which take turns.
// Marks of congestion do not pass.
type Gateway struct {
	hosts  []*Host
	card   netip.AddrPort
	local  *net.UDPConn
	closed sync.WaitGroup
	over   context.Context
	end    context.CancelFunc

	mu   sync.Mutex
	ways map[netip.AddrPort]chan []byte
	next int // host
}

// mostAhead is how many datagrams of a socket wait for ARP. What comes beyond is lost.
const mostAhead = 1 << 12

// OpenGateway opens a gateway to the card at an address behind hosts.
func OpenGateway(card netip.AddrPort, hosts ...*Host) (*Gateway, error) {
	local, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	g := &Gateway{hosts: hosts, card: card, local: local, ways: map[netip.AddrPort]chan []byte{}}
	g.over, g.end = context.WithCancel(context.Background())
	g.closed.Go(g.receive)
	return g, nil
}

// Name returns the card's name for sockets of this machine.
func (g *Gateway) Name() string { return "udp:" + g.local.LocalAddr().String() }

// Close closes the gateway's sockets.
func (g *Gateway) Close() error {
	g.end()
	err := g.local.Close()
	g.closed.Wait()
	return err
}

// receive takes what the machine's sockets send, until the gateway is closed.
func (g *Gateway) receive() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := g.local.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		select {
		case g.wayOf(from) <- append([]byte(nil), buf[:n]...):
		default:
		}
	}
}

// wayOf returns where the datagrams of a socket go.
func (g *Gateway) wayOf(from netip.AddrPort) chan []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	way := g.ways[from]
	if way == nil {
		way = make(chan []byte, mostAhead)
		g.ways[from] = way
		host := g.hosts[g.next%len(g.hosts)]
		g.next++
		g.closed.Go(func() { g.lead(from, way, host) })
	}
	return way
}

// lead forwards the datagrams of a socket, and those for it.
func (g *Gateway) lead(from netip.AddrPort, way chan []byte, host *Host) {
	s, err := host.Dial(g.over, g.card)
	if err != nil {
		return // closed
	}
	defer s.Close()
	g.closed.Go(func() { g.back(s, from) })
	for {
		select {
		case b := <-way:
			if s.WritePackets(b, []int{len(b)}) != nil {
				return
			}
		case <-g.over.Done():
			return
		}
	}
}

// back forwards what comes for a socket of this machine. A socket that is closed loses it.
func (g *Gateway) back(s *Socket, to netip.AddrPort) {
	batch := make([]transport.Packet, 64)
	for {
		n, err := s.ReadPackets(batch)
		if err != nil {
			return
		}
		for _, p := range batch[:n] {
			_, _ = g.local.WriteToUDPAddrPort(p.Bytes, to)
		}
	}
}
