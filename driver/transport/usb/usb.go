// Package usb registers three schemes: usb for cards on USB, ftdi for cards behind an
// FT232H or FT2232H, and ft60x for cards behind an FT601 or FT600. It uses libusb, so a
// build needs libusb-1.0 and a C compiler. Programs import it for its effect:
//
//	import _ "tributary/driver/transport/usb"
//
// Names are usb: for the only attached card, usb:VENDOR:PRODUCT, and
// usb:VENDOR:PRODUCT#SERIAL; ftdi and ft60x have the same forms. Packages bulk, ftdi and
// ft60x have everything that does not concern libusb.
package usb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/gousb"

	"tributary/driver/transport"
	"tributary/driver/transport/bulk"
	"tributary/driver/transport/ft60x"
	"tributary/driver/transport/ftdi"
)

var schemes = []*bulk.Scheme{bulk.USB, ftdi.Scheme, ft60x.Scheme}

func init() {
	for _, s := range schemes {
		transport.Register(s.Name, func(ctx context.Context, r transport.Request) (transport.Conn, error) {
			bus, err := newBus()
			if err != nil {
				return nil, err
			}
			return s.Open(ctx, bus, r.Address)
		})
	}
}

// List returns the attached devices of all schemes. It claims none.
func List() ([]bulk.Card, error) {
	bus, err := newBus()
	if err != nil {
		return nil, err
	}
	var all []bulk.Card
	var errs []error
	for _, s := range schemes {
		cards, err := s.List(bus)
		all, errs = append(all, cards...), append(errs, err)
	}
	return all, errors.Join(append(errs, bus.Close())...)
}

// controlTimeout is how long a device may take to reply to a request (USB 2.0, section 9.2.6.1).
const controlTimeout = 5 * time.Second

// transfers is the default number of transfers in flight in each direction. The kernel limits a
// program to 16 MiB in flight.
const transfers = 4

// bus is libusb. libusb lists the devices once, when the bus is made. A new bus therefore finds
// devices attached later, without events.
type bus struct{ *gousb.Context }

func newBus() (b bus, err error) {
	defer func() {
		if r := recover(); r != nil { // gousb has no other way to report it
			err = fmt.Errorf("this machine has no USB that libusb can use (%v)", r)
		}
	}()
	return bus{gousb.NewContext()}, nil
}

func (b bus) Devices(vendor, product uint16) ([]bulk.Found, error) {
	var plugged []*gousb.DeviceDesc
	opened, err := b.OpenDevices(func(d *gousb.DeviceDesc) bool {
		matches := d.Vendor == gousb.ID(vendor) && d.Product == gousb.ID(product)
		if matches {
			plugged = append(plugged, d)
		}
		return matches
	})
	if err != nil && len(plugged) == 0 {
		return nil, nil // the error is about other devices
	}
	found := make([]bulk.Found, len(plugged))
	for i, desc := range plugged {
		found[i] = bulk.Found{Place: fmt.Sprintf("bus %d, device %d", desc.Bus, desc.Address), Release: release(desc), Err: words(err)}
		for _, o := range opened {
			if o.Desc == desc {
				o.ControlTimeout = controlTimeout
				found[i].Device, found[i].Err = device{o}, nil
			}
		}
	}
	return found, nil
}

// release returns the device's bcdDevice.
func release(d *gousb.DeviceDesc) uint16 { return uint16(d.Device) }

// device is an open device of libusb.
type device struct{ *gousb.Device }

func (d device) Serial() (string, error) {
	serial, err := d.SerialNumber()
	return serial, words(err)
}

func (d device) Control(kind, request uint8, value, index uint16, data []byte) (int, error) {
	n, err := d.Device.Control(kind, request, value, index, data)
	return n, words(err)
}

func (d device) Reset() error { return words(d.Device.Reset()) }

func (d device) Claim(p bulk.Pipes) (_ bulk.Stream, err error) {
	s := &stream{}
	defer func() {
		if err != nil {
			err = errors.Join(words(err), s.Close())
		}
	}()
	// With auto-detach, Config would take all interfaces from their drivers.
	if err = d.SetAutoDetach(false); err != nil {
		return nil, err
	}
	if s.config, err = d.Config(p.Configuration); err != nil {
		return nil, err
	}
	if err = d.SetAutoDetach(true); err != nil {
		return nil, err
	}
	if s.claimed, err = s.config.Interface(p.Interface, p.Setting); err != nil {
		return nil, err
	}
	out, err := s.claimed.OutEndpoint(int(p.Out))
	if err != nil {
		return nil, err
	}
	s.out = &writer{endpoint: out, most: wholePackets(out.Desc)}
	if p.In == 0 {
		return s, nil
	}
	in, err := s.claimed.InEndpoint(int(p.In & 0x7f))
	if err != nil {
		return nil, err
	}
	s.packet = in.Desc.MaxPacketSize
	size, count := wholePackets(in.Desc), transfers
	if p.Waiting > 0 {
		size, count = s.packet, p.Waiting
	}
	if s.in, err = in.NewStream(size, count); err != nil {
		return nil, err
	}
	return s, nil
}

// wholePackets returns the size of a transfer at an endpoint.
func wholePackets(e gousb.EndpointDesc) int {
	return bulk.TransferBytes / e.MaxPacketSize * e.MaxPacketSize
}

// stream is a claimed interface with its endpoints.
type stream struct {
	config  *gousb.Config
	claimed *gousb.Interface
	in      *gousb.ReadStream
	packet  int // size of a whole packet to the host
	out     *writer
}

func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	n, err := s.in.ReadContext(ctx, p)
	return n, words(err)
}

func (s *stream) Write(ctx context.Context, p []byte) (int, error) {
	n, err := s.out.write(ctx, p)
	return n, words(err)
}

func (s *stream) PacketBytes() int { return s.packet }

// Close also releases what a failed Claim has opened.
func (s *stream) Close() error {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if s.in != nil {
		_ = s.in.Close() // no more transfers are submitted
		for buf := make([]byte, bulk.TransferBytes); ; {
			if _, err := s.in.ReadContext(over, buf); err != nil {
				break
			}
		}
	}
	if s.out != nil {
		_ = s.out.wait(over, 0) // cancelled transfers are expected
	}
	if s.claimed != nil {
		s.claimed.Close()
	}
	if s.config != nil {
		return s.config.Close()
	}
	return nil
}

// writer keeps OUT transfers in flight. Each is a gousb stream with one transfer of its own. A
// stream with longer transfers would always send them whole.
type writer struct {
	endpoint *gousb.OutEndpoint
	most     int                  // bytes in a transfer
	flying   []*gousb.WriteStream // oldest first
}

// write returns when all of p is in flight.
func (w *writer) write(ctx context.Context, p []byte) (int, error) {
	for done := 0; ; {
		if done == len(p) {
			return done, nil
		}
		if err := w.wait(ctx, transfers-1); err != nil {
			return done, err
		}
		piece := p[done:min(len(p), done+w.most)]
		transfer, err := w.endpoint.NewStream(len(piece), 1)
		if err != nil {
			return done, err
		}
		if _, err := transfer.Write(piece); err != nil { // submits it without waiting
			return done, err
		}
		w.flying = append(w.flying, transfer)
		done += len(piece)
	}
}

// wait waits until only left transfers are in flight. When ctx ends, it cancels the others.
func (w *writer) wait(ctx context.Context, left int) (err error) {
	for len(w.flying) > left {
		oldest := w.flying[0]
		w.flying = w.flying[1:]
		err = errors.Join(err, oldest.CloseContext(ctx))
		if err != nil && left > 0 {
			return err
		}
	}
	return err
}

// words returns the error of package bulk for an error of gousb. Some of gousb's errors have
// lost their type.
func words(err error) error {
	var code gousb.Error
	var status gousb.TransferStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &code):
		return codeWords(code)
	case errors.As(err, &status):
		return statusWords(status)
	}
	for _, code := range []gousb.Error{gousb.ErrorBusy, gousb.ErrorNoDevice, gousb.ErrorAccess, gousb.ErrorPipe} {
		if strings.HasSuffix(err.Error(), code.Error()) {
			return codeWords(code)
		}
	}
	return err
}

func codeWords(code gousb.Error) error {
	switch code {
	case gousb.ErrorAccess:
		return bulk.ErrAccess
	case gousb.ErrorBusy:
		return bulk.ErrClaimed
	case gousb.ErrorPipe:
		return bulk.ErrStalled
	case gousb.ErrorNoDevice, gousb.ErrorNotFound:
		return bulk.ErrUnplugged
	case gousb.ErrorTimeout:
		return bulk.ErrSilent
	case gousb.ErrorIO:
		return bulk.ErrFailed
	}
	return code
}

func statusWords(status gousb.TransferStatus) error {
	switch status {
	case gousb.TransferStall:
		return bulk.ErrStalled
	case gousb.TransferNoDevice:
		return bulk.ErrUnplugged
	case gousb.TransferError:
		return bulk.ErrFailed
	}
	return status
}
