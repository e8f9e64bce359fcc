// Package bulk carries a card's byte stream over the bulk endpoints of a USB device:
// the card's own (SPEC.md, section 9), or a bridge's with its own Scheme. It finds the
// device of a name, and explains why a device cannot be opened.
//
// It does not depend on a USB library: Bus is the interface that it needs. Package usb
// beside it implements Bus with libusb and registers the schemes.
package bulk

import (
	"context"
	"errors"
)

// Bus is what a USB library must offer. It is used by one goroutine.
type Bus interface {
	// Devices opens all devices of a vendor and product. Those that cannot be
	// opened are among the answers.
	Devices(vendor, product uint16) ([]Found, error)
	// Close gives the library back; all devices are closed by then.
	Close() error
}

// Found is a device that is plugged in.
type Found struct {
	Place   string // where it is plugged in
	Release uint16 // its bcdDevice
	Device  Device // nil when it could not be opened
	Err     error  // why
}

// Device is an open device.
type Device interface {
	Serial() (string, error)
	// Control carries out a request, and returns how many bytes of data passed.
	Control(kind, request uint8, value, index uint16, data []byte) (int, error)
	// Claim claims an interface, which is taken from a driver of the kernel's,
	// and begins to read. An alternate setting is selected if there are several,
	// also the one that is selected already.
	Claim(p Pipes) (Stream, error)
	// Reset has the bus reset a device that is not claimed.
	Reset() error
	Close() error
}

// Pipes are an interface and its two endpoints.
type Pipes struct {
	Configuration, Interface, Setting int
	Out, In                           uint8 // In is 0 where nothing is to be read

	// Waiting is how many transfers to the host wait at a time, of one packet each.
	// Zero: some, of up to TransferBytes.
	Waiting int
}

// TransferBytes bounds what a transfer carries: whole packets, which is more than a
// card sends in one burst most of the time.
const TransferBytes = 64 << 10

// Stream is the byte stream of a claimed card, with several transfers in flight
// each way. Read and Write may be called at the same time by two goroutines, and
// end when their context does; what was in flight may be lost then.
type Stream interface {
	// Read may return no bytes and no error: the end of a burst. With room for
	// TransferBytes it returns what one transfer has brought, whole packets and
	// perhaps a short one; that transfer waits again.
	Read(ctx context.Context, p []byte) (int, error)
	Write(ctx context.Context, p []byte) (int, error)
	// PacketBytes returns how many a whole packet to the host has.
	PacketBytes() int
	// Close takes back what is in flight, and gives the card up: its link goes
	// down. No Read or Write is under way.
	Close() error
}

// Errors of a Bus and what it opens. They read well behind "the card is gone:".
var (
	ErrAccess    = errors.New("this user may not open it")
	ErrClaimed   = errors.New("another program has claimed it")
	ErrStalled   = errors.New("it halted an endpoint, which opening it again clears")
	ErrUnplugged = errors.New("it was unplugged")
	ErrFailed    = errors.New("a USB transfer failed: it was unplugged, or its cable or port is at fault")
	ErrSilent    = errors.New("it does not answer requests in time")
)
