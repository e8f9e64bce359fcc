// Package ft60x carries a card's byte stream through FTDI's FT601 or FT600 in 245 mode
// with one channel (SPEC.md, section 10.4, with its sources). It handles the chip's
// settings and the commands that request data. Package bulk handles names, devices and
// transfers.
//
// A chip cannot report whether a card is attached. The package uses a chip only if the
// user chose it, by its serial number or because there is no other. It does not change
// the chip's settings.
package ft60x

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"tributary/driver/transport/bridge"
	"tributary/driver/transport/bulk"
	"tributary/driver/wire"
)

// Scheme is the scheme of cards behind such a chip.
var Scheme = &bulk.Scheme{
	Name: "ft60x",
	Noun: "chip",
	What: "FT601 or FT600",
	Numbers: []bulk.Number{
		{Vendor: wire.FT60xVendor, Product: wire.FT601Product},
		{Vendor: wire.FT60xVendor, Product: wire.FT600Product},
	},
	Check: func(bulk.Found) ([]byte, error) { return nil, nil },
	Claim: claim,
}

// waiting is the number of packets requested and awaited at a time.
const waiting = 16

var (
	commandPipes = bulk.Pipes{
		Configuration: wire.FT60xConfiguration, Interface: wire.FT60xControl, Out: wire.FT60xCommands,
	}
	dataPipes = bulk.Pipes{
		Configuration: wire.FT60xConfiguration, Interface: wire.FT60xData,
		Out: wire.FT60xOut, In: wire.FT60xIn, Waiting: waiting,
	}
)

// claim claims a chip with the right settings, and begins a link to the card behind it.
func claim(ctx context.Context, d bulk.Device) (bulk.Stream, error) {
	if err := checkSettings(d); err != nil {
		return nil, err
	}
	claimed, err := bulk.ClaimWorking(d, commandPipes, dataPipes)
	if err != nil {
		return nil, err
	}
	s := &stream{Stream: claimed[1], commands: claimed[0]}
	s.packet = make([]byte, s.PacketBytes())
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkSettings rejects a chip with settings for something else.
func checkSettings(d bulk.Device) error {
	settings := make([]byte, wire.FT60xSettingsBytes)
	n, err := d.Control(wire.FT60xGet, wire.FT60xSettings, wire.FT60xSettingsValue, 0, settings)
	switch {
	case errors.Is(err, bulk.ErrStalled):
		return errors.New("the chip does not support the request for its settings")
	case err != nil:
		return fmt.Errorf("the chip's settings: %w", err)
	case n != len(settings):
		return fmt.Errorf("the chip's settings have %d bytes, not %d", n, len(settings))
	}
	var wrong []string
	if mode := settings[wire.FT60xMode]; mode != wire.FT60xMode245 {
		wrong = append(wrong, fmt.Sprintf("FIFO mode 245 (it is %s)", named(mode, "245", "600")))
	}
	if channels := settings[wire.FT60xChannels]; channels != wire.FT60xOneChannel {
		wrong = append(wrong, fmt.Sprintf("1 channel (it has %s)", named(channels, "4", "2", "1", "1 out only", "1 in only")))
	}
	if binary.LittleEndian.Uint16(settings[wire.FT60xFeatures:])&wire.FT60xFeatureNotice != 0 {
		wrong = append(wrong, "no notification messages for channel 1 (they are on)")
	}
	if len(wrong) > 0 {
		return fmt.Errorf("the chip is not set to %s; if it is the card's chip, configure it with FTDI's FT60X Chip Configuration Programmer", strings.Join(wrong, ", "))
	}
	return nil
}

// named returns the name of a number.
func named(n uint8, names ...string) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprintf("number %d", n)
}

// stream is the byte stream behind a claimed chip.
type stream struct {
	bulk.Stream
	commands bulk.Stream
	packet   []byte // buffer for a transfer
	left     []byte // its unread bytes
}

// begin cancels the requests of the host before, requests packets, and begins a link to the
// card behind the chip.
func (s *stream) begin(ctx context.Context) (err error) {
	if err := s.command(ctx, wire.FT60xEnd, 0); err != nil {
		return err
	}
	for range waiting {
		if err := s.ask(ctx); err != nil {
			return err
		}
	}
	s.left, err = bridge.Begin(ctx, s, bridge.ErrMute)
	return err
}

// Read returns no bytes for an empty packet. It requests a new packet for each one received.
func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	if len(s.left) == 0 {
		n, err := s.Stream.Read(ctx, s.packet)
		if err != nil {
			return 0, err
		}
		if err := s.ask(ctx); err != nil {
			return 0, err
		}
		s.left = s.packet[:n]
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// ask requests a packet from the chip.
func (s *stream) ask(ctx context.Context) error {
	return s.command(ctx, wire.FT60xAsk, len(s.packet))
}

// command sends the chip a command for its endpoint to the host.
func (s *stream) command(ctx context.Context, kind uint8, bytes int) error {
	c := make([]byte, wire.FT60xCommandBytes)
	c[wire.FT60xCommandPipe] = wire.FT60xIn
	c[wire.FT60xCommandKind] = kind
	binary.LittleEndian.PutUint32(c[wire.FT60xCommandLength:], uint32(bytes))
	_, err := s.commands.Write(ctx, c)
	return err
}

// Close releases both interfaces.
func (s *stream) Close() error { return errors.Join(s.Stream.Close(), s.commands.Close()) }
