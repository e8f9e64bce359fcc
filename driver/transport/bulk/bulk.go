// Package bulk carries a card's byte stream over the bulk endpoints of a USB device. The device
// is the card (SPEC.md, section 9), or a bridge with its own Scheme. The package finds the
// device of a name, and explains why a device cannot be opened.
//
// It does not depend on a USB library: Bus is the interface that it needs. Package usb
// implements Bus with libusb and registers the schemes.
package bulk

import (
	"context"
	"errors"
)

// Bus is the interface to a USB library. One goroutine uses it.
type Bus interface {
	// Devices opens all devices of a vendor and product. The result includes those that cannot
	// be opened.
	Devices(vendor, product uint16) ([]Found, error)
	// Close closes the library. All devices are closed by then.
	Close() error
}

// Found is an attached device.
type Found struct {
	Place   string // the port where it is attached
	Release uint16 // its bcdDevice
	Device  Device // nil when it could not be opened
	Err     error  // why Device is nil
}

// Device is an open device.
type Device interface {
	Serial() (string, error)
	// Control makes a control request and returns the number of data bytes transferred.
	Control(kind, request uint8, value, index uint16, data []byte) (int, error)
	// Claim claims an interface and begins to read; it detaches a kernel driver. If there are
	// several alternate settings, it selects one even when it is selected already.
	Claim(p Pipes) (Stream, error)
	// Reset resets an unclaimed device on the bus.
	Reset() error
	Close() error
}

// Pipes are an interface and its two endpoints.
type Pipes struct {
	Configuration, Interface, Setting int
	Out, In                           uint8 // In is 0 if nothing is to be read

	// Waiting is the number of pending transfers to the host, of one packet each. 0 means the
	// default number, of up to TransferBytes each.
	Waiting int
}

// TransferBytes limits a transfer. It is a multiple of the packet size, and more than most
// bursts of a card.
const TransferBytes = 64 << 10

// Stream is the byte stream of a claimed card, with several transfers in flight in each
// direction. Two goroutines may call Read and Write at the same time. Both return when their
// context ends; transfers in flight may be lost then.
type Stream interface {
	// Read may return no bytes and no error: the end of a burst. With room for TransferBytes it
	// returns the bytes of one transfer: whole packets and perhaps a short one. It then submits
	// the transfer again.
	Read(ctx context.Context, p []byte) (int, error)
	Write(ctx context.Context, p []byte) (int, error)
	// PacketBytes returns the size of a whole packet to the host.
	PacketBytes() int
	// Close cancels the transfers in flight and releases the card, whose link goes down. No
	// Read or Write may be in progress.
	Close() error
}

// Errors of a Bus and its devices. The texts fit after "the card disconnected:".
var (
	ErrAccess    = errors.New("this user may not open it")
	ErrClaimed   = errors.New("another program has claimed it")
	ErrStalled   = errors.New("it halted an endpoint, which opening it again clears")
	ErrUnplugged = errors.New("it was unplugged")
	ErrFailed    = errors.New("a USB transfer failed: it was unplugged, or its cable or port is at fault")
	ErrSilent    = errors.New("it does not reply to requests in time")
)
