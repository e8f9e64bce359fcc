package usbip_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
	"tributary/driver/wire"
	"tributary/verify/system/usb/attach"
)

const (
	setInterface = 0x0b
	clearFeature = 0x01
)

// bench is a server whose card is the test.
type bench struct {
	t      *testing.T
	server *usbip.Server
	addr   string
	links  chan net.Conn // the card's ends of its links, in the order they come up
}

func registers(addr uint32) uint64 {
	if addr == wire.RegMagic {
		return wire.Magic
	}
	return 0x1111_0000_0000_0000 + uint64(addr)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOf(t, "")
}

// newBenchOf offers a card, behind a bridge unless bridge is empty.
func newBenchOf(t *testing.T, bridge string) *bench {
	t.Helper()
	return newBenchWith(t, usbip.Card{Bridge: bridge})
}

// newBenchWith offers a card whose other fields are the bench's.
func newBenchWith(t *testing.T, offered usbip.Card) *bench {
	t.Helper()
	b := &bench{t: t, links: make(chan net.Conn, 8)}
	card, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			conn, err := card.Accept()
			if err != nil {
				return
			}
			b.links <- conn
		}
	}()
	offered.Ident, offered.Serial = usbip.Ident(registers), "T-1"
	offered.Link = func() (net.Conn, error) { return net.Dial("tcp", card.Addr().String()) }
	b.server, err = usbip.NewServer(offered)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- b.server.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		b.server.Close()
		require.NoError(t, <-served)
		card.Close()
	})
	return b
}

func (b *bench) dial() net.Conn {
	conn, err := net.Dial("tcp", b.addr)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	return conn
}

// attach attaches the device without claiming it.
func (b *bench) attach() *attach.Host {
	b.t.Helper()
	h, err := attach.Import(b.dial(), usbip.BusID)
	require.NoError(b.t, err)
	status, _ := h.Control(0x00, 0x09, wire.USBConfiguration, 0, nil)
	require.Zero(b.t, status)
	return h
}

// claim brings the link up and returns the card's end of it.
func (b *bench) claim(h *attach.Host) net.Conn {
	b.t.Helper()
	status, _ := h.Control(0x01, setInterface, wire.USBLinkUp, wire.USBInterface, nil)
	require.Zero(b.t, status)
	return b.link()
}

// link waits for a link to come up and returns the card's end of it.
func (b *bench) link() net.Conn {
	b.t.Helper()
	return <-b.links
}

// submit starts a transfer and returns a channel that receives it when it has ended.
func submit(h *attach.Host, endpoint uint8, data []byte) (*attach.Transfer, <-chan *attach.Transfer) {
	done := make(chan *attach.Transfer, 1)
	t := &attach.Transfer{Endpoint: endpoint, Data: data, Done: func(t *attach.Transfer) { done <- t }}
	h.Submit(t)
	return t, done
}

// until waits for something that the server detects by itself.
func until(so func() bool) {
	for !so() {
		runtime.Gosched()
	}
}

// pending checks that a transfer is still waiting after the device has replied to a later
// request.
func pending(t *testing.T, h *attach.Host, done <-chan *attach.Transfer) {
	t.Helper()
	status, _ := h.Control(0x80, 0, 0, 0, make([]byte, 2))
	require.Zero(t, status)
	select {
	case x := <-done:
		t.Fatalf("ended with %d, %d bytes", x.Status, x.Actual)
	default:
	}
}

// ended waits for the end of a transfer.
func ended(t *testing.T, done <-chan *attach.Transfer) *attach.Transfer {
	t.Helper()
	return <-done
}

// in reads one transfer of a given size and returns its data.
func in(t *testing.T, h *attach.Host, size int) []byte {
	t.Helper()
	_, done := submit(h, wire.USBIn, make([]byte, size))
	x := ended(t, done)
	require.Zero(t, x.Status)
	return x.Data[:x.Actual]
}

// TestDescriptorsAreThoseOfTheSpecification compares with SPEC.md, which has the descriptors in
// hex for builders of cards.
func TestDescriptorsAreThoseOfTheSpecification(t *testing.T) {
	text, err := os.ReadFile("../../wire/SPEC.md")
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^    (device|configuration|interface \d\.\d|endpoint) +((?:[0-9a-f]{2} ?)+)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, lines, 6)
	var device, configuration []byte
	for _, l := range lines {
		raw, err := hex.DecodeString(strings.ReplaceAll(l[2], " ", ""))
		require.NoError(t, err)
		if l[1] == "device" {
			device = raw
		} else {
			configuration = append(configuration, raw...)
		}
	}
	h := newBench(t).attach()
	buf := make([]byte, 255)
	status, n := h.Control(0x80, 6, 0x0100, 0, buf)
	require.Zero(t, status)
	require.Equal(t, device, buf[:n])
	status, n = h.Control(0x80, 6, 0x0200, 0, buf)
	require.Zero(t, status)
	require.Equal(t, configuration, buf[:n])
	status, n = h.Control(0x80, 6, 0x0200, 0, buf[:9])
	require.Zero(t, status)
	require.Equal(t, configuration[:9], buf[:n])
}

func TestStrings(t *testing.T) {
	h := newBench(t).attach()
	for index, want := range map[uint16]string{1: "Tributary", 2: "Tributary card 1111000000000010", 3: "T-1"} {
		buf := make([]byte, 255)
		status, n := h.Control(0x80, 6, 0x0300|index, 0x0409, buf)
		require.Zero(t, status)
		require.EqualValues(t, n, buf[0])
		var units []uint16
		for i := 2; i < n; i += 2 {
			units = append(units, uint16(buf[i])|uint16(buf[i+1])<<8)
		}
		require.Equal(t, want, string(utf16.Decode(units)))
	}
	status, _ := h.Control(0x80, 6, 0x0304, 0x0409, make([]byte, 255))
	require.Equal(t, usbip.StatusStall, status)
}

// TestIdentify checks that the device replies to the request with and without a link, and that
// it stalls an unknown request.
func TestIdentify(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	block := make([]byte, 200)
	for range 2 {
		status, n := h.Control(wire.USBIdentifyType, wire.USBIdentify, 0, 0, block)
		require.Zero(t, status)
		require.Equal(t, "TRIBUTRY", string(block[:8]))
		require.Equal(t, usbip.Ident(registers), block[:n])
		status, _ = h.Control(wire.USBIdentifyType, wire.USBIdentify, 1, 0, block)
		require.Equal(t, usbip.StatusStall, status)
		status, _ = h.Control(0xc0, 0x77, 0, 0, block)
		require.Equal(t, usbip.StatusStall, status)
		b.claim(h)
	}
	status, n := h.Control(wire.USBIdentifyType, wire.USBIdentify, 0, 0, block[:16])
	require.Zero(t, status)
	require.Equal(t, 16, n)
}

// TestOneHost checks that the server rejects a second host, and that the device is free after
// the first has left.
func TestOneHost(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	list, err := attach.List(b.dial())
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, usbip.BusID, list[0].BusID())
	require.Equal(t, wire.USBVendor, list[0].Vendor)

	var busy *attach.BusyError
	_, err = attach.Import(b.dial(), usbip.BusID)
	require.ErrorAs(t, err, &busy)
	require.EqualValues(t, 2, busy.Status)
	_, err = attach.Import(b.dial(), "9-9")
	require.ErrorAs(t, err, &busy)
	require.EqualValues(t, 4, busy.Status)

	link := b.claim(h)
	h.Detach()
	_, err = link.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the card's link is still up")
	until(func() bool {
		h, err := attach.Import(b.dial(), usbip.BusID)
		return err == nil && h != nil
	})
}

// TestLinkFollowsTheSetting checks that the link is up in alternate setting 1. Selecting it
// again, another setting or a configuration takes the link down.
func TestLinkFollowsTheSetting(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	_, done := submit(h, wire.USBIn, make([]byte, 512))
	require.Equal(t, usbip.StatusProtocol, ended(t, done).Status, "an endpoint of a setting that is not selected")
	for name, leave := range map[string]func() int32{
		"claim again":   func() int32 { s, _ := h.Control(0x01, setInterface, 1, 0, nil); return s },
		"setting 0":     func() int32 { s, _ := h.Control(0x01, setInterface, 0, 0, nil); return s },
		"configuration": func() int32 { s, _ := h.Control(0x00, 0x09, 1, 0, nil); return s },
	} {
		t.Run(name, func(t *testing.T) {
			link := b.claim(h)
			_, waits := submit(h, wire.USBIn, make([]byte, 512))
			pending(t, h, waits)
			require.Zero(t, leave())
			require.NotZero(t, ended(t, waits).Status)
			_, err := link.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			if name == "claim again" {
				b.link()
			}
		})
	}
	status, _ := h.Control(0x01, setInterface, 2, 0, nil)
	require.Equal(t, usbip.StatusStall, status)
}

// TestBursts checks that an empty transfer ends a burst that fills whole transfers, and that a
// short one ends other bursts. Without data nothing comes.
func TestBursts(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	link := b.claim(h)
	data := bytes.Repeat([]byte("0123456789abcdef"), 64) // 1024 bytes

	_, done := submit(h, wire.USBIn, make([]byte, 2048))
	pending(t, h, done)
	link.Write(data[:700])
	require.Equal(t, data[:700], ended(t, done).Data[:700])

	_, done = submit(h, wire.USBIn, make([]byte, 1024))
	_, end := submit(h, wire.USBIn, make([]byte, 1024))
	_, silent := submit(h, wire.USBIn, make([]byte, 1024))
	link.Write(data)
	require.Equal(t, 1024, ended(t, done).Actual)
	require.Equal(t, 0, ended(t, end).Actual, "the packet that ends the burst")
	pending(t, h, silent)
	link.Write(data[:1])
	require.Equal(t, 1, ended(t, silent).Actual)
}

// TestOverflow checks a packet that exceeds the rest of a transfer.
func TestOverflow(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	link := b.claim(h)
	link.Write(make([]byte, 512))
	_, done := submit(h, wire.USBIn, make([]byte, 100))
	require.Equal(t, usbip.StatusOverflow, ended(t, done).Status)
	link.Write(make([]byte, 50))
	require.Len(t, in(t, h, 100), 50)
}

// TestStreams checks that all bytes arrive in order, in transfers of odd sizes, in both
// directions at once.
func TestStreams(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	link := b.claim(h)
	go io.Copy(link, link)
	var sent bytes.Buffer
	for i := range 200 {
		piece := bytes.Repeat([]byte(fmt.Sprint(i, ",")), 1+i*7%900)
		sent.Write(piece)
		submit(h, wire.USBOut, piece)
	}
	submit(h, wire.USBOut, nil)
	var got bytes.Buffer
	for got.Len() < sent.Len() {
		got.Write(in(t, h, 512*(1+got.Len()%5)))
	}
	require.Equal(t, sent.Bytes(), got.Bytes())
}

// TestBackPressure checks that transfers wait for a card that takes nothing, and that the host
// can cancel them.
func TestBackPressure(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	link := b.claim(h)
	const size = 8 << 20 // more than the sockets hold
	big, stuck := submit(h, wire.USBOut, make([]byte, size))
	next, behind := submit(h, wire.USBOut, []byte("behind"))
	pending(t, h, stuck)
	pending(t, h, behind)
	h.Unlink(next)
	require.Equal(t, usbip.StatusUnlinked, ended(t, behind).Status)
	h.Unlink(big)
	require.Equal(t, usbip.StatusUnlinked, ended(t, stuck).Status)

	second := b.claim(h) // nothing of the first link reaches the second
	_, done := submit(h, wire.USBOut, []byte("begin"))
	require.Equal(t, 5, ended(t, done).Actual)
	got := make([]byte, 5)
	_, err := io.ReadFull(second, got)
	require.NoError(t, err)
	require.Equal(t, "begin", string(got))
	n, err := io.Copy(io.Discard, link)
	require.NoError(t, err)
	require.Less(t, n, int64(size))
}

// TestUnlinkIn checks that cancelling an IN transfer loses no byte.
func TestUnlinkIn(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	link := b.claim(h)
	var got bytes.Buffer
	const rounds = 300
	for i := range rounds {
		x, done := submit(h, wire.USBIn, make([]byte, 512))
		written := make(chan struct{})
		go func() {
			link.Write([]byte{byte(i), byte(i >> 8)})
			close(written)
		}()
		if i%3 == 0 {
			<-written // otherwise they race
		}
		h.Unlink(x)
		ended(t, done)
		got.Write(x.Data[:x.Actual])
		for got.Len() < 2*(i+1) {
			got.Write(in(t, h, 512))
		}
	}
	for i := range rounds {
		require.Equal(t, []byte{byte(i), byte(i >> 8)}, got.Bytes()[2*i:2*i+2])
	}
}

// TestHalt checks that a halted endpoint ends waiting and new transfers until the halt is
// cleared. The stream then continues without loss. Claiming again also clears the halt.
func TestHalt(t *testing.T) {
	b := newBench(t)
	h := b.attach()
	require.False(t, b.server.Halt(wire.USBIn), "there is no endpoint to halt")
	link := b.claim(h)
	_, waits := submit(h, wire.USBIn, make([]byte, 512))
	pending(t, h, waits)
	require.True(t, b.server.Halt(wire.USBIn))
	require.Equal(t, usbip.StatusStall, ended(t, waits).Status)
	link.Write([]byte("kept"))
	_, done := submit(h, wire.USBIn, make([]byte, 512))
	require.Equal(t, usbip.StatusStall, ended(t, done).Status)
	state := make([]byte, 2)
	status, _ := h.Control(0x82, 0, 0, uint16(wire.USBIn), state)
	require.Zero(t, status)
	require.Equal(t, []byte{1, 0}, state)
	status, _ = h.Control(0x02, clearFeature, 0, uint16(wire.USBIn), nil)
	require.Zero(t, status)
	require.Equal(t, "kept", string(in(t, h, 512)))

	status, _ = h.Control(0x02, 3, 0, uint16(wire.USBOut), nil)
	require.Zero(t, status)
	_, done = submit(h, wire.USBOut, []byte("x"))
	require.Equal(t, usbip.StatusStall, ended(t, done).Status)
	b.claim(h)
	_, done = submit(h, wire.USBOut, []byte("x"))
	require.Zero(t, ended(t, done).Status)
}

// TestUnplug checks that the device is gone, with its waiting transfers, when the card's link
// breaks or the server ends.
func TestUnplug(t *testing.T) {
	for name, unplug := range map[string]func(*bench, net.Conn){
		"card":   func(_ *bench, link net.Conn) { link.Close() },
		"cable":  func(b *bench, _ net.Conn) { b.server.Unplug() },
		"server": func(b *bench, _ net.Conn) { b.server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			h := b.attach()
			link := b.claim(h)
			_, read := submit(h, wire.USBIn, make([]byte, 512))
			_, write := submit(h, wire.USBOut, make([]byte, 8<<20))
			pending(t, h, read)
			unplug(b, link)
			require.Equal(t, usbip.StatusUnplugged, ended(t, read).Status)
			require.Equal(t, usbip.StatusUnplugged, ended(t, write).Status)
			<-h.Gone()
			_, done := submit(h, wire.USBIn, make([]byte, 512))
			require.Equal(t, usbip.StatusUnplugged, ended(t, done).Status)
		})
	}
}

// TestMemory checks that waiting transfers take no more memory than the card allows, and that a
// transfer returns its memory at its end. A host could queue transfers without bound.
func TestMemory(t *testing.T) {
	b := newBenchWith(t, usbip.Card{Memory: 2 * (wire.USBPacket + 256)})
	h := b.attach()
	link := b.claim(h)
	_, first := submit(h, 0x81, make([]byte, 1))
	last, second := submit(h, 0x81, make([]byte, wire.USBPacket))
	for range 3 {
		_, refused := submit(h, 0x81, make([]byte, 1))
		require.Equal(t, usbip.StatusNoMemory, ended(t, refused).Status)
		_, refused = submit(h, 0x01, []byte("dropped"))
		require.Equal(t, usbip.StatusNoMemory, ended(t, refused).Status)
	}
	pending(t, h, first)
	pending(t, h, second)

	h.Unlink(last)
	require.Equal(t, usbip.StatusUnlinked, ended(t, second).Status)
	_, out := submit(h, 0x01, []byte("taken"))
	require.Zero(t, ended(t, out).Status)
	got := make([]byte, 5)
	_, err := io.ReadFull(link, got)
	require.NoError(t, err)
	require.Equal(t, "taken", string(got))

	_, err = usbip.NewServer(usbip.Card{Ident: usbip.Ident(registers), Serial: "x", Memory: -1})
	require.ErrorContains(t, err, "-1 bytes")
}

// TestNoCard checks that a host cannot claim a card that does not answer, and that the device
// stays.
func TestNoCard(t *testing.T) {
	server, err := usbip.NewServer(usbip.Card{
		Ident:  usbip.Ident(registers),
		Serial: "T-1",
		Link:   func() (net.Conn, error) { return nil, io.ErrUnexpectedEOF },
	})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go server.Serve(l)
	defer server.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	h, err := attach.Import(conn, usbip.BusID)
	require.NoError(t, err)
	h.Control(0x00, 0x09, 1, 0, nil)
	status, _ := h.Control(0x01, setInterface, 1, 0, nil)
	require.Equal(t, usbip.StatusStall, status)
	status, _ = h.Control(wire.USBIdentifyType, wire.USBIdentify, 0, 0, make([]byte, 8))
	require.Zero(t, status)
}

// TestNonsense checks that a host with another protocol only loses its connection.
func TestNonsense(t *testing.T) {
	b := newBench(t)
	imported := func() net.Conn {
		request := append([]byte{1, 0x11, 0x80, 3, 0, 0, 0, 0}, usbip.BusID...)
		request = append(request, make([]byte, 32-len(usbip.BusID))...)
		for { // until the server has noticed that the last host left
			conn := b.dial()
			conn.Write(request)
			if _, err := io.CopyN(io.Discard, conn, 8+312); err == nil {
				return conn
			}
		}
	}
	long := usbip.Head{Command: usbip.CmdSubmit, Seq: 1, Direction: usbip.In, Endpoint: 1}
	long.Args[usbip.ArgLength] = usbip.MaxTransfer + 1
	unknown := usbip.Head{Command: 77}
	for name, say := range map[string]func() net.Conn{
		"version": func() net.Conn { c := b.dial(); c.Write([]byte{9, 9, 0x80, 5, 0, 0, 0, 0}); return c },
		"request": func() net.Conn { c := b.dial(); c.Write([]byte{1, 0x11, 0x80, 9, 0, 0, 0, 0}); return c },
		"length":  func() net.Conn { c := imported(); c.Write(long.Append(nil)); return c },
		"command": func() net.Conn { c := imported(); c.Write(unknown.Append(nil)); return c },
	} {
		t.Run(name, func(t *testing.T) {
			conn := say()
			_, err := conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
			for { // until the server has noticed that the host left
				if h, err := attach.Import(b.dial(), usbip.BusID); err == nil {
					h.Detach()
					return
				}
			}
		})
	}
}

func TestSerialNumbers(t *testing.T) {
	for serial, good := range map[string]bool{"A-1_b.2": true, "": false, "a b": false, "a#b": false, strings.Repeat("x", 33): false} {
		require.Equal(t, good, usbip.CheckSerial(serial) == nil, "%q", serial)
	}
	_, err := usbip.NewServer(usbip.Card{Ident: make([]byte, 3), Serial: "x"})
	require.ErrorContains(t, err, "3 bytes")
}
