package driver

// Cards in software on a network. They have the names of cards that are made to order, and a socket
// of their own (driver/virtual/udp).

import (
	"errors"
	"fmt"
	"strings"

	"tributary/driver/transport"
	"tributary/driver/wire"
)

// NetworkCard is a card in software on a network, without its socket. Its methods must not be called
// concurrently.
type NetworkCard interface {
	// Receive takes a datagram that came from an address with a mark in its IP header.
	Receive(datagram []byte, from wire.Address, mark wire.ECN)

	// Send appends the next datagram that leaves to dst, and returns its destination and its mark. ok
	// is false if there is none.
	Send(dst []byte) (datagram []byte, to wire.Address, mark wire.ECN, ok bool)

	Cycles() uint64        // the card's clock
	Advance(cycles uint64) // advances it
	Own() wire.Address     // the card's own address, once everything has left
	Count(counter string)  // counts an event in a counter of wire.NetworkCounters
}

// networkCards makes the cards, by the scheme of their names.
var networkCards = map[string]func(geometry, wire.Address) (NetworkCard, error){}

// IsSoftware reports whether a card's name is that of a card in software, such as "model:" or
// "cpu:workers=8".
func IsSoftware(name string) bool {
	scheme, _, ok := strings.Cut(name, ":")
	return ok && networkCards[scheme] != nil
}

// NewNetworkCard makes the card in software that a name describes, with an address of its own and as
// many Ethernet ports, 0 for a card behind a socket: as Open does for "cpu:", "cpu:DIR" and
// "cpu:OPTION=VALUE,...", but on a network. The card in DIR must have been generated for one. A card with
// shell roce ("model:shell=roce") needs Ethernet ports.
func NewNetworkCard(name string, own wire.Address, ethernet int) (NetworkCard, error) {
	card, err := newNetworkCard(name, own, ethernet)
	if err != nil {
		return nil, &NoCardError{Name: name, Err: err}
	}
	return card, nil
}

func newNetworkCard(name string, own wire.Address, ethernet int) (NetworkCard, error) {
	scheme, address, _ := strings.Cut(name, ":")
	build := networkCards[scheme]
	if build == nil {
		return nil, errors.New("only cards in software, model: or cpu:, are made to order")
	}
	if isToMeasure(address) {
		g, err := madeToMeasure(scheme, transport.Request{Address: address}, wire.ShellUDP)
		if err != nil {
			return nil, err
		}
		return buildOnNetwork(build, g, own, ethernet)
	}
	manifest, err := transport.ReadManifest(address)
	if err != nil {
		return nil, err
	}
	g := manifestGeometry(manifest)
	if !g.Shell.Network() {
		return nil, fmt.Errorf("its shell is %v; a card on a network has the shell %v or %v", g.Shell, wire.ShellUDP, wire.ShellRoCE)
	}
	return buildOnNetwork(build, g, own, ethernet)
}

// buildOnNetwork builds a card with Ethernet ports, or with none of its own.
func buildOnNetwork(build func(geometry, wire.Address) (NetworkCard, error), g geometry, own wire.Address, ethernet int) (NetworkCard, error) {
	if g.Shell == wire.ShellRoCE && ethernet == 0 {
		return nil, errors.New("its shell is roce, for which it needs Ethernet ports: tributary sim CARD -port PORT")
	}
	g.Ethernet = max(1, ethernet)
	return build(g, own)
}
