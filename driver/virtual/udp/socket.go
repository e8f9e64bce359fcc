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

// Listen opens a socket at HOST:PORT, for IPv4; port 0 takes a free one. HOST is one address of this
// machine: a card has one.
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
	if err := mark(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %w", err), conn.Close())
	}
	return &Socket{conn: conn, address: conn.LocalAddr().(*net.UDPAddr).AddrPort()}, nil
}

// Address returns the card's own address.
func (s *Socket) Address() wire.Address { return addressOf(s.address) }

// Name returns the card's name for hosts on this machine.
func (s *Socket) Name() string { return "udp:" + s.address.String() }

// Close closes the socket, for those that do not serve a card.
func (s *Socket) Close() error { return s.conn.Close() }

// Serve runs the card until ctx ends, and closes the socket. It then returns nil; otherwise it
// returns the socket's error. Real time drives the card's clock, with 100 cycles per microsecond, or
// more if its traffic takes more.
func (s *Socket) Serve(ctx context.Context, card Card) error {
	return serve(ctx, ipv4.NewPacketConn(s.conn), card)
}

// addressOf returns a socket's address as a card sees it.
func addressOf(a netip.AddrPort) wire.Address {
	ip := a.Addr().As4()
	station := uint64(a.Port())
	for _, b := range ip {
		station = station<<8 | uint64(b)
	}
	return wire.Address{Station: station}
}

// setUDPAddr sets the address of a datagram to where a card sends it; dst has 4 bytes for IPv4.
func setUDPAddr(dst *net.UDPAddr, to wire.Address) {
	for i := range dst.IP {
		dst.IP[i] = byte(to.Station >> (8 * (len(dst.IP) - 1 - i)))
	}
	dst.Port = int(uint16(to.Station >> 32))
}
