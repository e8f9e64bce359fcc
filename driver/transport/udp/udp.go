// Package udp registers the scheme udp, for cards on a network (driver/wire/NETWORK.md). Package
// driver imports it for its effect.
//
// Names are udp:HOST and udp:HOST:PORT. Each link has a UDP port of its own, which the kernel
// chooses: an owner or member of a card uses no port twice. The scheme works on Linux only.
package udp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

func init() { transport.RegisterPackets("udp", Open) }

// name is the part of a card's name after the scheme.
type name struct {
	host string
	port uint16
}

// parse parses HOST or HOST:PORT.
func parse(address string) (name, error) {
	n := name{address, wire.NetworkPort}
	host, port, given := strings.Cut(address, ":")
	if given {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return n, fmt.Errorf("udp:%s: %q is not a UDP port; use udp:HOST or udp:HOST:PORT, as in udp:192.0.2.7:%d; HOST is a name or an IPv4 address", address, port, wire.NetworkPort)
		}
		n = name{host, uint16(number)}
	}
	if n.host == "" {
		return n, fmt.Errorf("udp:%s lacks the card's name or IPv4 address; use udp:HOST or udp:HOST:PORT, as in udp:192.0.2.7", address)
	}
	return n, nil
}

// resolve returns the card's address.
func (n name) resolve(ctx context.Context) (netip.AddrPort, error) {
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", n.host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%w; check the card's name, or use its IPv4 address", err)
	}
	return netip.AddrPortFrom(all[0].Unmap(), n.port), nil
}

// Open opens a socket to the card at an address, HOST or HOST:PORT. It sends nothing, so it does not
// find out whether a card is there.
func Open(ctx context.Context, r transport.Request) (transport.PacketConn, error) {
	return OpenFrom(ctx, r, netip.Addr{})
}

// OpenFrom is Open for a socket with a local IPv4 address. The zero Addr leaves the address to the kernel.
func OpenFrom(ctx context.Context, r transport.Request, own netip.Addr) (transport.PacketConn, error) {
	n, err := parse(r.Address)
	if err != nil {
		return nil, err
	}
	to, err := n.resolve(ctx)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Control: setUp}
	if own.IsValid() {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(own, 0))
	}
	socket, err := dialer.DialContext(ctx, "udp4", to.String())
	if err != nil {
		return nil, explain(err, to)
	}
	return newConn(socket.(*net.UDPConn), to)
}

// NetworkError explains an error that the network reports.
type NetworkError struct {
	Reason string // what happened and the remedy
	Err    error
}

func (e *NetworkError) Error() string { return e.Reason }
func (e *NetworkError) Unwrap() error { return e.Err }

// explain returns the error that explains an error of a socket to a card.
func explain(err error, to netip.AddrPort) error {
	for _, known := range networkErrors {
		if errors.Is(err, known.err) {
			return &NetworkError{Reason: fmt.Sprintf(known.reason, to.Addr(), to.Port()), Err: err}
		}
	}
	return err
}
