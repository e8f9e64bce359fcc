package bulk

import (
	"context"
	"encoding/binary"
	"errors"

	"tributary/driver/wire"
)

// Scheme is a kind of USB devices by which cards are reached.
type Scheme struct {
	Name    string   // of the scheme
	Noun    string   // for one of them
	What    string   // that a device is, in more words
	Numbers []Number // what a name means that has none

	// Check judges a device that is not claimed, and does not disturb it. It
	// returns the card's identification block if the device tells it.
	Check func(Found) (ident []byte, err error)
	// Claim claims a device, so that it leads to a card on a clean link. It gives
	// up when ctx is done.
	Claim func(ctx context.Context, d Device) (Stream, error)
}

// USB is the scheme of cards that are USB devices themselves.
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

// identify asks a device what it is; it is an error if that is no card.
func identify(f Found) (block []byte, err error) {
	block = make([]byte, wire.USBIdentBytes)
	n, err := f.Device.Control(wire.USBIdentifyType, wire.USBIdentify, 0, 0, block)
	switch {
	case errors.Is(err, ErrStalled):
		return nil, errors.New("it does not know a card's request")
	case err != nil:
		return nil, err
	case n < len(block) || binary.LittleEndian.Uint64(block) != wire.Magic:
		return nil, errors.New("its identification is not a card's")
	}
	return block, nil
}
