package walks

import "tributary/driver/model"

// Card is a card at whose clock one can stop.
type Card interface {
	// Send has a packet come in at a port.
	Send(port int, p *model.Packet) error
	// Register makes an access to a register. It returns the reply's code, as the
	// tables have it, and value.
	Register(write bool, addr uint32, value uint64) (code uint8, read uint64, err error)
	// Until lets the clock run until a cycle, and returns what the card has sent since
	// the last call. Receivers are ports; ranks where they share a link.
	Until(cycle uint64) ([]model.Packet, error)
	// Close ends the card.
	Close() error
	// Now is the cycle that the clock has come to.
	Now() uint64
	// Shared says that all ports are on one link, where the rank of a packet says
	// which port it is for.
	Shared() bool
}
