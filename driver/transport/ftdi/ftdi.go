// Package ftdi carries a card's byte stream through FTDI's FT232H or FT2232H in
// synchronous FIFO mode (SPEC.md, section 10.3). It handles the chip's vendor requests
// and the two status bytes of each packet. Package bulk handles names, devices and
// transfers.
//
// A chip cannot report whether a card is attached, and many are programmers of boards.
// The package changes a chip only if the user chose it, by its serial number or because
// there is no other.
package ftdi

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"tributary/driver/transport/bulk"
	"tributary/driver/wire"
)

// Scheme is the scheme of cards behind such a chip.
var Scheme = &bulk.Scheme{
	Name: "ftdi",
	Noun: "chip",
	What: "FT232H or FT2232H",
	Numbers: []bulk.Number{
		{Vendor: wire.FTDIVendor, Product: wire.FT232HProduct},
		{Vendor: wire.FTDIVendor, Product: wire.FT2232HProduct},
	},
	Check: check,
	Claim: claim,
}

// check rejects older chips, which have the same numbers.
func check(f bulk.Found) (ident []byte, err error) {
	if f.Release != wire.FT232HRelease && f.Release != wire.FT2232HRelease {
		return nil, fmt.Errorf("it is of release %04x, which has no synchronous FIFO mode", f.Release)
	}
	return nil, nil
}

var pipes = bulk.Pipes{
	Configuration: wire.FTDIConfiguration, Interface: wire.FTDIInterface,
	Out: wire.FTDIOut, In: wire.FTDIIn,
}

// claim claims a chip, sets it up, and begins a link to the card behind it.
func claim(ctx context.Context, d bulk.Device) (bulk.Stream, error) {
	claimed, err := bulk.ClaimWorking(d, pipes)
	if err != nil {
		return nil, err
	}
	s := newStream(claimed[0])
	if err := start(ctx, d, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// start sets a claimed chip up and begins a link.
func start(ctx context.Context, d bulk.Device, s *stream) error {
	if err := checkMode(d); err != nil {
		return err
	}
	if err := setUp(d); err != nil {
		return err
	}
	return s.begin(ctx)
}

// checkMode rejects a chip whose EEPROM does not make channel A a FIFO. Such a chip has no
// synchronous mode and uses its pins for something else.
func checkMode(d bulk.Device) error {
	word := make([]byte, 2)
	if _, err := d.Control(wire.FTDIGet, wire.FTDIReadEEPROM, 0, wire.FTDITypeWord, word); err != nil {
		return refused("EEPROM", err)
	}
	if w := binary.LittleEndian.Uint16(word); w&wire.FTDIType != wire.FTDITypeFIFO {
		return fmt.Errorf("the chip's EEPROM does not set FIFO mode (245) for channel A: word 0 is %04x; if it is the card's chip, configure it with FT_PROG or ftdi_eeprom", w)
	}
	return nil
}

// latency is how long, in milliseconds, the chip keeps a partial packet. The gateware asks it
// to send at once; the latency applies to what that misses.
const latency = 2

// settled is the pause after a change of the chip's mode.
const settled = 10 * time.Millisecond

// setUp puts the chip into its synchronous FIFO mode and empties its buffers.
func setUp(d bulk.Device) error {
	for _, r := range []struct {
		what         string
		request      uint8
		value, index uint16
		wait         time.Duration
	}{
		{"reset", wire.FTDIReset, wire.FTDIResetAll, wire.FTDIChannel, 0},
		{"mode of its EEPROM", wire.FTDISetMode, wire.FTDIModeReset, wire.FTDIChannel, settled},
		{"latency timer", wire.FTDISetLatency, latency, wire.FTDIChannel, 0},
		{"flow control", wire.FTDIFlow, 0, wire.FTDIFlowRTSCTS | wire.FTDIChannel, 0},
		{"synchronous FIFO mode", wire.FTDISetMode, wire.FTDIModeSyncFIFO, wire.FTDIChannel, 0},
		{"purge", wire.FTDIReset, wire.FTDIPurge1, wire.FTDIChannel, 0},
		{"purge", wire.FTDIReset, wire.FTDIPurge2, wire.FTDIChannel, 0},
	} {
		if _, err := d.Control(wire.FTDISet, r.request, r.value, r.index, nil); err != nil {
			return refused(r.what, err)
		}
		time.Sleep(r.wait)
	}
	return nil
}

// refused returns the error for a failed request, named by what.
func refused(what string, err error) error {
	if errors.Is(err, bulk.ErrStalled) {
		err = errors.New("it does not support the request")
	}
	return fmt.Errorf("the chip's %s: %w", what, err)
}
