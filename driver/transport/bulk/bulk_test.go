package bulk_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport"
	"tributary/driver/transport/bulk"
	"tributary/driver/wire"
)

// bus is a fake Bus.
type bus struct {
	plugged []*device
	err     error
	closed  int
}

func (b *bus) Devices(vendor, product uint16) ([]bulk.Found, error) {
	var found []bulk.Found
	for _, d := range b.plugged {
		if d.vendor != vendor || d.product != product {
			continue
		}
		f := bulk.Found{Place: "bus 1, device 2", Err: d.openErr}
		if d.openErr == nil {
			d.open++
			f.Device = d
		}
		found = append(found, f)
	}
	return found, b.err
}

func (b *bus) Close() error {
	b.closed++
	for _, d := range b.plugged {
		if d.open != 0 || d.claims != 0 {
			panic("the bus is closed before its devices")
		}
	}
	return nil
}

// device is a fake Device and its Stream.
type device struct {
	vendor, product uint16
	serial          string
	ident           []byte
	openErr         error
	identErr        error
	claimErr        error

	open, claims int

	mu    sync.Mutex
	reads []any // results of Read: a string or an error; without one, Read waits
	wrote strings.Builder
	full  bool // Write waits
}

func (d *device) Serial() (string, error) { return d.serial, nil }

func (d *device) Control(kind, request uint8, value, index uint16, block []byte) (int, error) {
	if kind != 0xc0 || request != 1 || value != 0 || index != 0 {
		return 0, bulk.ErrStalled
	}
	return copy(block, d.ident), d.identErr
}

func (d *device) Reset() error { return errors.New("nothing is to be reset") }

func (d *device) Claim(p bulk.Pipes) (bulk.Stream, error) {
	if p != (bulk.Pipes{Configuration: 1, Interface: 0, Setting: 1, Out: 0x01, In: 0x81}) {
		return nil, errors.New("no such interface")
	}
	if d.claimErr != nil {
		return nil, d.claimErr
	}
	d.claims++
	return (*stream)(d), nil
}

func (d *device) Close() error { d.open--; return nil }

type stream device

func (s *stream) Read(ctx context.Context, p []byte) (int, error) {
	s.mu.Lock()
	if len(s.reads) > 0 {
		next := s.reads[0]
		s.reads = s.reads[1:]
		s.mu.Unlock()
		if err, ok := next.(error); ok {
			return 0, err
		}
		return copy(p, next.(string)), nil
	}
	s.mu.Unlock()
	<-ctx.Done()
	return 0, errors.New("cancelled")
}

func (s *stream) Write(ctx context.Context, p []byte) (int, error) {
	if s.full {
		<-ctx.Done()
		return 0, errors.New("cancelled")
	}
	return s.wrote.Write(p)
}

func (s *stream) PacketBytes() int { return wire.USBPacket }

func (s *stream) Close() error { s.claims--; return nil }

// card returns a card with a serial number.
func card(serial string) *device {
	ident := make([]byte, wire.USBIdentBytes)
	binary.LittleEndian.PutUint64(ident, wire.Magic)
	binary.LittleEndian.PutUint64(ident[wire.RegConfigHash:], 0xabc)
	return &device{vendor: wire.USBVendor, product: wire.USBProduct, serial: serial, ident: ident}
}

func TestOpenErrors(t *testing.T) {
	stranger := card("X")
	stranger.ident = make([]byte, 4)
	mute := card("M")
	mute.identErr = bulk.ErrStalled
	forbidden := card("F")
	forbidden.openErr = bulk.ErrAccess
	taken := card("T")
	taken.claimErr = bulk.ErrClaimed
	broken := card("B")
	broken.claimErr = bulk.ErrSilent
	other := card("O")
	other.vendor = 0x1d50
	for name, c := range map[string]struct {
		address string
		plugged []*device
		want    string
	}{
		"no name":      {"1209", nil, "usb:1209 is not a card's name; use usb: or usb:VENDOR:PRODUCT or usb:VENDOR:PRODUCT#SERIAL with numbers in hex, as in usb:1209:0001#A1"},
		"no number":    {"1209:x", nil, "usb:1209:x is not a card's name"},
		"large number": {"1209:10000", nil, "usb:1209:10000 is not a card's name"},
		"empty serial": {"1209:1#", nil, "usb:1209:1# is not a card's name"},
		"nothing":      {"", []*device{other}, "no device 1209:0001 is plugged in; see lsusb"},
		"no card":      {"", []*device{stranger, mute}, "device 1209:0001 is no Tributary card (bus 1, device 2: its identification is not a card's; bus 1, device 2: it does not support a card's request)"},
		"which":        {"", []*device{card("A"), card("B")}, "2 cards are plugged in; name one of them: usb:1209:0001#A, usb:1209:0001#B"},
		"another":      {"1209:0001#C", []*device{card("A"), stranger}, "no card with serial number C is plugged in; name one of these: usb:1209:0001#A"},
		"forbidden": {"", []*device{forbidden}, "device 1209:0001 at bus 1, device 2: this user may not open it; add this line to /etc/udev/rules.d/70-tributary.rules, then plug the card in again:\n" +
			`    SUBSYSTEM=="usb", ATTR{idVendor}=="1209", ATTR{idProduct}=="0001", MODE="0660", TAG+="uaccess"`},
		"taken":  {"", []*device{taken}, "another program has claimed usb:1209:0001#T"},
		"broken": {"", []*device{broken}, "usb:1209:0001#B cannot be claimed: it does not reply to requests in time"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bus{plugged: c.plugged}
			_, err := bulk.USB.Open(t.Context(), b, c.address)
			require.ErrorContains(t, err, c.want)
			require.Equal(t, 1, b.closed)
			var busy *transport.TakenError
			require.Equal(t, name == "taken", errors.As(err, &busy))
		})
	}
	b := &bus{err: errors.New("no bus")}
	_, err := bulk.USB.Open(t.Context(), b, "")
	require.EqualError(t, err, "no bus")
	require.Equal(t, 1, b.closed)
}

// TestChoice checks that Open opens the card with the serial number and leaves the others.
func TestChoice(t *testing.T) {
	a, b, closed := card("A"), card("B"), card("C")
	closed.openErr = bulk.ErrAccess
	on := &bus{plugged: []*device{a, b, closed}}
	conn, err := bulk.USB.Open(t.Context(), on, "1209:0001#B")
	require.NoError(t, err)
	require.Equal(t, []int{0, 0, 1, 1}, []int{a.open, a.claims, b.open, b.claims})
	hash, from := conn.(interface{ ExpectedHash() (uint64, string) }).ExpectedHash()
	require.EqualValues(t, 0xabc, hash)
	require.Equal(t, "its USB identification", from)
	for range 2 {
		require.NoError(t, conn.Close())
	}
	require.Equal(t, []int{0, 0, 1}, []int{b.open, b.claims, on.closed})
}

func TestList(t *testing.T) {
	closed := card("C")
	closed.openErr = bulk.ErrAccess
	stranger := card("S")
	stranger.ident = nil
	a := card("A")
	cards, err := bulk.USB.List(&bus{plugged: []*device{a, stranger, closed}})
	require.NoError(t, err)
	require.Len(t, cards, 2)
	require.Equal(t, "usb:1209:0001#A", cards[0].Name)
	require.EqualValues(t, 0xabc, cards[0].Register(wire.RegConfigHash))
	require.Equal(t, "usb:1209:0001", cards[1].Name)
	require.ErrorIs(t, cards[1].Err, bulk.ErrAccess)
	require.Zero(t, a.open)
	require.Zero(t, a.claims)
}

// TestRead checks that the end of a burst does not end the stream, and that Read passes errors
// on.
func TestRead(t *testing.T) {
	d := card("A")
	d.reads = []any{"", "ab", "", "", "c", bulk.ErrUnplugged}
	conn, err := bulk.USB.Open(t.Context(), &bus{plugged: []*device{d}}, "")
	require.NoError(t, err)
	defer conn.Close()
	buf := make([]byte, 10)
	n, err := conn.Read(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	for _, want := range []string{"ab", "c"} {
		n, err := conn.Read(buf)
		require.NoError(t, err)
		require.Equal(t, want, string(buf[:n]))
	}
	_, err = conn.Read(buf)
	require.ErrorIs(t, err, bulk.ErrUnplugged)
	_, err = conn.Write([]byte("xyz"))
	require.NoError(t, err)
	_, err = conn.Write(nil)
	require.NoError(t, err)
	require.Equal(t, "xyz", d.wrote.String())
}

// TestCloseEndsWhatIsUnderWay checks a Read that waits for the card and a Write that the card
// does not take.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	d := card("A")
	d.full = true
	conn, err := bulk.USB.Open(t.Context(), &bus{plugged: []*device{d}}, "")
	require.NoError(t, err)
	ended := make(chan error, 2)
	go func() { _, err := conn.Read(make([]byte, 1)); ended <- err }()
	go func() { _, err := conn.Write(make([]byte, 1)); ended <- err }()
	require.NoError(t, conn.Close())
	for range 2 {
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = conn.Write(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.Zero(t, d.claims)
}
