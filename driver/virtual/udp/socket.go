package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"

	"tributary/driver/wire"
)

// Socket is the UDP socket of a card.
type Socket struct {
	conn    *net.UDPConn
	address netip.AddrPort
}

// waitingBytes is the memory that the system is asked for, for datagrams that the card has not taken:
// the windows of many members. The system may grant less.
const waitingBytes = 4 << 20

// Listen opens a socket at HOST:PORT, for IPv4; port 0 takes a free one. HOST is one address of this
// machine, because a card has one.
func Listen(address string) (*Socket, error) {
	at, err := net.ResolveUDPAddr("udp4", address)
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	if at.IP == nil || at.IP.IsUnspecified() {
		return nil, fmt.Errorf("udp: %s names no address of this machine; a card has one, as in 127.0.0.1:%d", address, wire.NetworkPort)
	}
	conn, err := net.ListenUDP("udp4", at)
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	if err := errors.Join(SetUp(conn), conn.SetReadBuffer(waitingBytes)); err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %w", err), conn.Close())
	}
	return &Socket{conn: conn, address: conn.LocalAddr().(*net.UDPAddr).AddrPort()}, nil
}

// Address returns the card's own address.
func (s *Socket) Address() wire.Address { return addressOf(s.address) }

// Name returns the card's name for hosts on this machine.
func (s *Socket) Name() string { return "udp:" + s.address.String() }

// Close closes a socket that serves no card.
func (s *Socket) Close() error { return s.conn.Close() }

// Serve runs the card until ctx ends. It then returns nil; otherwise it returns the socket's error.
// In any case it closes the socket. Real time drives the card's clock, with 100 cycles per
// microsecond, or more if its traffic takes more. When a host gives the card another address, the
// card moves there; Serve fails if this machine does not have the address.
func (s *Socket) Serve(ctx context.Context, card Card) error {
	return serve(ctx, site{packets: ipv4.NewPacketConn(s.conn), station: s.Address().Station}, move, card)
}

// move opens a socket at a card's new address.
func move(to wire.Address) (packets, error) {
	socket, err := Listen(addrPortOf(to).String())
	if err != nil {
		return nil, err
	}
	return ipv4.NewPacketConn(socket.conn), nil
}

// addressOf returns a socket's address as a card has it.
func addressOf(a netip.AddrPort) wire.Address {
	station := uint64(a.Port())
	for _, b := range a.Addr().As4() {
		station = station<<8 | uint64(b)
	}
	return wire.Address{Station: station}
}

// addrPortOf is the inverse of addressOf.
func addrPortOf(a wire.Address) netip.AddrPort {
	ip := netip.AddrFrom4([4]byte{byte(a.Station >> 24), byte(a.Station >> 16), byte(a.Station >> 8), byte(a.Station)})
	return netip.AddrPortFrom(ip, uint16(a.Station>>32))
}
