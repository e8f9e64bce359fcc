package walks

import "tributary/driver/model"

// Card is a card whose clock the test drives.
type Card interface {
	// Send delivers a packet to a port.
	Send(port int, p *model.Packet) error
	// Register accesses a register. It returns the reply's code, as in wire.Codes, and value.
	Register(write bool, addr uint32, value uint64) (code uint8, read uint64, err error)
	// Until runs the clock up to a cycle, and returns the packets that the card has sent since
	// the last call. Receivers are ports, or ranks if the ports share a link.
	Until(cycle uint64) ([]model.Packet, error)
	// Close ends the card.
	Close() error
	// Now returns the current cycle.
	Now() uint64
	// Shared reports whether all ports are on one link. The rank of a packet then selects the
	// port.
	Shared() bool
}
