package bulk

import (
	"context"
	"encoding/binary"
	"errors"

	"tributary/driver/wire"
)

// Scheme is a kind of USB device that leads to a card.
type Scheme struct {
	Name    string   // of the scheme
	Noun    string   // for one device
	What    string   // a longer description of a device
	Numbers []Number // for a name without numbers

	// Check checks an unclaimed device without disturbing it. It returns the card's
	// identification block if the device has one.
	Check func(Found) (ident []byte, err error)
	// Claim claims a device so that it leads to a card on a clean link. It returns when ctx
	// ends.
	Claim func(ctx context.Context, d Device) (Stream, error)
}

// USB is the scheme of cards that are USB devices.
var USB = &Scheme{
	Name:    "usb",
	Noun:    "card",
	What:    "Tributary card",
	Numbers: []Number{{wire.USBVendor, wire.USBProduct}},
	Check:   identify,
	Claim: func(_ context.Context, d Device) (Stream, error) {
		return d.Claim(Pipes{
			Configuration: wire.USBConfiguration, Interface: wire.USBInterface, Setting: wire.USBLinkUp,
			Out: wire.USBOut, In: wire.USBIn,
		})
	},
}

// identify requests a device's identification block. It is an error if the device is not a
// card.
func identify(f Found) (block []byte, err error) {
	block = make([]byte, wire.USBIdentBytes)
	n, err := f.Device.Control(wire.USBIdentifyType, wire.USBIdentify, 0, 0, block)
	switch {
	case errors.Is(err, ErrStalled):
		return nil, errors.New("it does not support a card's request")
	case err != nil:
		return nil, err
	case n < len(block) || binary.LittleEndian.Uint64(block) != wire.Magic:
		return nil, errors.New("its identification is not a card's")
	}
	return block, nil
}
