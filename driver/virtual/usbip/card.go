// Package usbip serves a card's byte stream as a USB device over USB/IP. By that protocol Linux
// attaches devices of other machines (`modprobe vhci-hcd`, `usbip attach`). SPEC.md, section 9,
// defines the device. Neither the kernel nor USB programs can distinguish such a virtual card
// from a real one.
//
// A Server offers one Card to one host at a time, as a device of its own or behind a FIFO
// bridge. It does not interpret frames.
package usbip

import (
	"encoding/binary"
	"fmt"
	"net"
	"regexp"

	"tributary/driver/wire"
)

// Card is the card that a server offers.
type Card struct {
	Ident  []byte // its identification block of wire.USBIdentBytes
	Serial string // serial number; see CheckSerial

	// Bridge is the name of the FIFO bridge, one of Bridges, between the card and the host
	// (SPEC.md, section 10). Empty means that the card is a USB device itself.
	Bridge string

	// Memory is how many bytes the transfers of a host may take while they wait. A transfer beyond
	// it ends at once with StatusNoMemory. Zero means DefaultMemory.
	Memory int

	// Link opens the card's byte stream. The card's link is up until the stream
	// is closed.
	Link func() (net.Conn, error)
}

// DefaultMemory is the default of Card.Memory: four of the largest transfers.
const DefaultMemory = 4 * (MaxTransfer + transferBytes)

// memory returns the limit of the bytes of waiting transfers.
func (c *Card) memory() int {
	if c.Memory == 0 {
		return DefaultMemory
	}
	return c.Memory
}

// Ident returns the identification block of a card whose register values register returns.
func Ident(register func(addr uint32) uint64) []byte {
	var block []byte
	for addr := uint32(0); int(addr) < wire.USBIdentBytes; addr += 8 {
		block = binary.LittleEndian.AppendUint64(block, register(addr))
	}
	return block
}

// hash returns the card's configuration hash.
func (c *Card) hash() uint64 { return binary.LittleEndian.Uint64(c.Ident[wire.RegConfigHash:]) }

var serialPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// CheckSerial rejects an invalid serial number.
func CheckSerial(serial string) error {
	if !serialPattern.MatchString(serial) {
		return fmt.Errorf("%q is not a serial number; it has 1 to 32 letters, digits, '-', '_' or '.'", serial)
	}
	return nil
}

// check rejects a card that a server cannot offer.
func (c *Card) check() error {
	if len(c.Ident) != wire.USBIdentBytes {
		return fmt.Errorf("usbip: an identification block of %d bytes; it has %d", len(c.Ident), wire.USBIdentBytes)
	}
	if _, ok := bridges[c.Bridge]; c.Bridge != "" && !ok {
		return fmt.Errorf("usbip: there is no bridge %q", c.Bridge)
	}
	if c.Memory < 0 {
		return fmt.Errorf("usbip: a memory of %d bytes", c.Memory)
	}
	return CheckSerial(c.Serial)
}
