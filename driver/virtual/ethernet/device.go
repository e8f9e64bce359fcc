package ethernet

import "tributary/driver/virtual/clock"

// Device is a card with Ethernet ports: a Card, or a card in a simulator's process. It is for calls from
// one goroutine at a time.
type Device interface {
	clock.Card

	Ports() int // Ethernet ports

	// Receive takes a frame with its FCS that came at a port, and keeps no reference to it.
	Receive(port int, frame []byte)

	// Send appends the next frame that leaves to dst, with its FCS, and returns its port. ok is false,
	// and dst unchanged, if there is none.
	Send(dst []byte) (frame []byte, port int, ok bool)

	// Err returns why the device does nothing any more, or nil.
	Err() error
}
