package usbip_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
	"tributary/verify/system/usb/attach"
)

// newBridgeBench offers a card behind an FT232H.
func newBridgeBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOf(t, "ft232h")
}

// Requests of SPEC.md, section 10.3.
func syncFIFO(t *testing.T, h *attach.Host) {
	t.Helper()
	for _, r := range []struct {
		request      byte
		value, index uint16
	}{{0, 0, 1}, {0x0b, 0x00ff, 1}, {9, 2, 1}, {2, 0, 0x0101}, {0x0b, 0x40ff, 1}, {0, 1, 1}, {0, 2, 1}} {
		status, _ := h.Control(0x40, r.request, r.value, r.index, nil)
		require.Zero(t, status)
	}
}

// data reads n bytes of the stream from the chip, and checks the chip's own bytes.
func data(t *testing.T, h *attach.Host, n int) []byte {
	t.Helper()
	var all []byte
	for len(all) < n {
		x := &attach.Transfer{Endpoint: 0x81, Data: make([]byte, 4096)}
		h.Wait(x)
		require.Zero(t, x.Status)
		got := x.Data[:x.Actual]
		// A transfer ends when it is full, or with a short packet, which has the status.
		require.True(t, len(got) == 4096 || len(got)%512 >= 2, "%d bytes", len(got))
		for ; len(got) > 0; got = got[min(512, len(got)):] {
			require.Equal(t, []byte{0x32, 0x60}, got[:2])
			all = append(all, got[2:min(512, len(got))]...)
		}
	}
	return all
}

// attachAgain attaches a chip that another host has just left.
func attachAgain(b *bench) (h *attach.Host) {
	b.t.Helper()
	until(func() bool {
		var err error
		h, err = attach.Import(b.dial(), usbip.BusID)
		return err == nil
	})
	status, _ := h.Control(0x00, 0x09, 1, 0, nil)
	require.Zero(b.t, status)
	return h
}

// TestChipDescriptors checks the descriptors of the two chips.
func TestChipDescriptors(t *testing.T) {
	const channelA = "\x09\x04\x00\x00\x02\xff\xff\xff\x02" +
		"\x07\x05\x81\x02\x00\x02\x00" + "\x07\x05\x02\x02\x00\x02\x00"
	const channelB = "\x09\x04\x01\x00\x02\xff\xff\xff\x02" +
		"\x07\x05\x83\x02\x00\x02\x00" + "\x07\x05\x04\x02\x00\x02\x00"
	for name, descriptors := range map[string]map[uint16]string{
		"ft232h": {
			0x0100: "\x12\x01\x00\x02\x00\x00\x00\x40\x03\x04\x14\x60\x00\x09\x01\x02\x03\x01",
			0x0200: "\x09\x02\x20\x00\x01\x01\x00\xc0\x00" + channelA,
			0x0303: "\x08\x03T\x00-\x001\x00",
		},
		"ft2232h": {
			0x0100: "\x12\x01\x00\x02\x00\x00\x00\x40\x03\x04\x10\x60\x00\x07\x01\x02\x03\x01",
			0x0200: "\x09\x02\x37\x00\x02\x01\x00\xc0\x00" + channelA + channelB,
			0x0301: "\x0a\x03F\x00T\x00D\x00I\x00",
		},
	} {
		h := newBenchOf(t, name).attach()
		for value, want := range descriptors {
			buf := make([]byte, 255)
			status, n := h.Control(0x80, 6, value, 0, buf)
			require.Zero(t, status)
			require.Equal(t, want, string(buf[:n]), "%s %04x", name, value)
		}
	}
}

// TestBridges checks the names of the bridges, and that others are rejected.
func TestBridges(t *testing.T) {
	require.Equal(t, []string{"ft2232h", "ft232h", "ft600", "ft601"}, usbip.Bridges())
	_, err := usbip.NewServer(usbip.Card{Ident: usbip.Ident(registers), Serial: "T-1", Bridge: "ft232r"})
	require.EqualError(t, err, `usbip: there is no bridge "ft232r"`)
}

// TestChipRequests checks that the chip stalls unknown requests, including a card's Identify.
func TestChipRequests(t *testing.T) {
	h := newBridgeBench(t).attach()
	timer := make([]byte, 1)
	status, n := h.Control(0xc0, 0x0a, 0, 1, timer)
	require.Zero(t, status)
	require.Equal(t, []byte{16}, timer[:n])
	syncFIFO(t, h)
	_, _ = h.Control(0xc0, 0x0a, 0, 1, timer)
	require.Equal(t, []byte{2}, timer)
	word := make([]byte, 2)
	status, n = h.Control(0xc0, 0x90, 0, 0, word)
	require.Zero(t, status)
	require.Equal(t, []byte{1, 0}, word[:n]) // FIFO
	for _, r := range [][4]uint16{{0xc0, 1, 0, 0}, {0x40, 0, 3, 1}, {0x40, 0x0b, 0x40ff, 2}, {0x40, 9, 0, 1}, {0x40, 9, 256, 1}, {0x40, 0x55, 0, 1}, {0xc0, 0x90, 0, 5}, {0x01, 11, 1, 0}} {
		status, _ := h.Control(byte(r[0]), byte(r[1]), r[2], r[3], nil)
		require.Equal(t, usbip.StatusStall, status, "%x", r)
	}
}

// TestChipStreams checks that each packet has the status, and that a short packet follows full
// ones. Without data, the status comes alone.
func TestChipStreams(t *testing.T) {
	b := newBridgeBench(t)
	h := b.attach()
	syncFIFO(t, h)
	card := b.link()
	start := time.Now()
	idle := &attach.Transfer{Endpoint: 0x81, Data: make([]byte, 512)}
	h.Wait(idle)
	require.Equal(t, []byte{0x32, 0x60}, idle.Data[:idle.Actual])
	require.GreaterOrEqual(t, time.Since(start), time.Millisecond)
	for _, n := range []int{1, 509, 510, 511, 1020, 8 * 510, 8*510 + 1, 20_000} {
		sent := bytes.Repeat([]byte{byte(n), 7}, n)[:n]
		_, err := card.Write(sent)
		require.NoError(t, err)
		require.Equal(t, sent, data(t, h, n))
	}
	out := &attach.Transfer{Endpoint: 0x02, Data: []byte("hello")}
	h.Wait(out)
	require.Zero(t, out.Status)
	got := make([]byte, 5)
	_, err := io.ReadFull(card, got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

// TestChipModes checks that no byte passes in another mode, because the card has no clock.
func TestChipModes(t *testing.T) {
	b := newBridgeBench(t)
	h := b.attach()
	card := b.link()
	_, err := card.Write([]byte("card"))
	require.NoError(t, err)
	ended := make(chan bool)
	out := &attach.Transfer{Endpoint: 0x02, Data: []byte("host"), Done: func(*attach.Transfer) { close(ended) }}
	h.Submit(out)
	for range 5 {
		in := &attach.Transfer{Endpoint: 0x81, Data: make([]byte, 512)}
		h.Wait(in)
		require.Equal(t, 2, in.Actual)
	}
	select {
	case <-ended:
		t.Fatal("bytes were taken")
	default:
	}
	syncFIFO(t, h)
	<-ended
	require.Equal(t, "card", string(data(t, h, 4)))
}

// TestChipBreak checks that 4,096 zeros take the card's link down and up again, and that
// further zeros are dropped. Fewer zeros do not, and neither does a host that leaves.
func TestChipBreak(t *testing.T) {
	b := newBridgeBench(t)
	h := b.attach()
	syncFIFO(t, h)
	card := b.link()
	send := func(p []byte) {
		out := &attach.Transfer{Endpoint: 0x02, Data: p}
		h.Wait(out)
		require.Zero(t, out.Status)
	}
	got := make(chan []byte, 1)
	receive := func(c net.Conn) {
		all, _ := io.ReadAll(c)
		got <- all
	}
	go receive(card)
	var want []byte
	for _, part := range [][]byte{[]byte("a"), make([]byte, 4095), []byte("b"), make([]byte, 4000), make([]byte, 96+4096)} {
		send(part)
		want = append(want, part...)
	}
	require.Equal(t, want[:len(want)-4096], <-got)
	card = b.link()
	_, err := card.Write([]byte("card"))
	require.NoError(t, err)
	require.Equal(t, "card", string(data(t, h, 4)))
	_, err = card.Write([]byte("old"))
	require.NoError(t, err)
	go receive(card)
	send(make([]byte, 10))
	send([]byte("c"))
	h.Detach()
	h = attachAgain(b)
	syncFIFO(t, h)
	send(make([]byte, 8192))
	require.Equal(t, append([]byte("c"), make([]byte, 4096)...), <-got)
	_, err = b.link().Write([]byte("new"))
	require.NoError(t, err)
	require.Equal(t, "oldnew", string(data(t, h, 6)))
}

// TestChipLosesItsCard checks that the chip is unplugged with its card. When it is attached
// again, it waits for a card.
func TestChipLosesItsCard(t *testing.T) {
	b := newBridgeBench(t)
	h := b.attach()
	syncFIFO(t, h)
	b.link().Close()
	h.Submit(&attach.Transfer{Endpoint: 0x81, Data: make([]byte, 512)}) // detects the loss
	<-h.Gone()
	h = attachAgain(b)
	syncFIFO(t, h)
	_, err := b.link().Write(binary.BigEndian.AppendUint16(nil, 0x1234))
	require.NoError(t, err)
	require.Equal(t, []byte{0x12, 0x34}, data(t, h, 2))
}
