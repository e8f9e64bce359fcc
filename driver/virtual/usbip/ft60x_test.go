package usbip_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"tributary/driver/virtual/usbip"
	"tributary/verify/system/usb/attach"
)

// command sends an FT601 a command (SPEC.md, section 10.4).
func command(h *attach.Host, endpoint, kind byte, n uint32) (status int32) {
	b := append(make([]byte, 4, 20), endpoint, kind, 0, 0)
	b = append(binary.LittleEndian.AppendUint32(b, n), make([]byte, 8)...)
	x := &attach.Transfer{Endpoint: 0x01, Data: b}
	h.Wait(x)
	return x.Status
}

// TestFT60xDescriptors compares with lsusb's output for an FT601, at the speed of USB 2.
func TestFT60xDescriptors(t *testing.T) {
	for name, product := range map[string]string{"ft601": "\x1f", "ft600": "\x1e"} {
		h := newBenchOf(t, name).attach()
		for value, want := range map[uint16]string{
			0x0100: "\x12\x01\x00\x02\xef\x02\x01\x40\x03\x04" + product + "\x60\x00\x00\x01\x02\x03\x01",
			0x0200: "\x09\x02\x3f\x00\x02\x01\x00\xe0\x30" + "\x08\x0b\x00\x02\xff\xff\xff\x00" +
				"\x09\x04\x00\x00\x02\xff\xff\xff\x00" + "\x07\x05\x01\x02\x00\x02\x00" + "\x07\x05\x81\x03\x40\x00\x09" +
				"\x09\x04\x01\x00\x02\xff\xff\xff\x00" + "\x07\x05\x02\x02\x00\x02\x00" + "\x07\x05\x82\x02\x00\x02\x00",
			0x0303: "\x08\x03T\x00-\x001\x00",
		} {
			buf := make([]byte, 255)
			status, n := h.Control(0x80, 6, value, 0, buf)
			require.Zero(t, status)
			require.Equal(t, want, string(buf[:n]), "%s %04x", name, value)
		}
	}
}

// TestFT60xSettings checks the settings: 245 mode, one channel, no notices, read-only.
func TestFT60xSettings(t *testing.T) {
	h := newBenchOf(t, "ft600").attach()
	settings := make([]byte, 152)
	status, n := h.Control(0xc0, 0xcf, 1, 0, settings)
	require.Zero(t, status)
	require.Equal(t, 152, n)
	require.Equal(t, "\x03\x04\x1e\x60", string(settings[:4]))
	require.Equal(t, []byte{0, 0, 2, 0, 0}, settings[137:142])
	for _, r := range [][4]uint16{{0xc0, 0xcf, 0, 0}, {0x40, 0xcf, 0, 0}, {0xc0, 1, 0, 0}, {0x40, 0x0b, 0x40ff, 1}} {
		status, _ := h.Control(byte(r[0]), byte(r[1]), r[2], r[3], nil)
		require.Equal(t, usbip.StatusStall, status, "%x", r)
	}
}

// TestFT60xAsks checks that only requested bytes come. A transfer ends when it is full or with
// a short packet, which also ends the request. Full packets do not end it.
func TestFT60xAsks(t *testing.T) {
	b := newBenchOf(t, "ft601")
	h := b.attach()
	card := b.link()
	send := func(n int) string {
		sent := bytes.Repeat([]byte{byte(n), 7}, n)[:n]
		_, err := card.Write(sent)
		require.NoError(t, err)
		return string(sent)
	}

	_, done := submit(h, 0x82, make([]byte, 512))
	want := send(100)
	pending(t, h, done)
	require.Zero(t, command(h, 0x82, 1, 512))
	x := ended(t, done)
	require.Equal(t, want, string(x.Data[:x.Actual]))

	_, done = submit(h, 0x82, make([]byte, 2048))
	require.Zero(t, command(h, 0x82, 1, 1024))
	want = send(1024)
	pending(t, h, done) // full packets
	want += send(10)
	pending(t, h, done) // the whole request
	require.Zero(t, command(h, 0x82, 1, 1024))
	x = ended(t, done)
	require.Equal(t, want, string(x.Data[:x.Actual]))

	_, done = submit(h, 0x82, make([]byte, 512))
	require.Zero(t, command(h, 0x82, 1, 4096))
	want = send(700)
	x = ended(t, done)
	require.Equal(t, want[:512], string(x.Data[:x.Actual]))
	_, done = submit(h, 0x82, make([]byte, 512))
	x = ended(t, done) // requested with the packet before
	require.Equal(t, want[512:], string(x.Data[:x.Actual]))

	// A command cancels requests; the host cancels a waiting transfer.
	require.Zero(t, command(h, 0x82, 1, 512))
	require.Zero(t, command(h, 0x82, 3, 0))
	waits, done := submit(h, 0x82, make([]byte, 512))
	want = send(1)
	pending(t, h, done)
	h.Unlink(waits)
	require.Equal(t, usbip.StatusUnlinked, ended(t, done).Status)
	_, done = submit(h, 0x82, make([]byte, 512))
	require.Zero(t, command(h, 0x82, 1, 512))
	x = ended(t, done)
	require.Equal(t, want, string(x.Data[:x.Actual]))
}

// TestFT60xCommands checks that invalid commands halt their endpoint. Announcements change
// nothing, and no notices come.
func TestFT60xCommands(t *testing.T) {
	b := newBenchOf(t, "ft601")
	h := b.attach()
	card := b.link()
	notice, noticed := submit(h, 0x81, make([]byte, 64))
	require.Zero(t, command(h, 0x02, 1, 5))
	_, done := submit(h, 0x02, []byte("hello"))
	require.Zero(t, ended(t, done).Status)
	got := make([]byte, 5)
	_, err := io.ReadFull(card, got)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
	for _, c := range []struct {
		endpoint, kind byte
		n              uint32
	}{{0x82, 7, 0}, {0x83, 1, 512}, {0x02, 3, 0}, {0x82, 1, 0}} {
		require.Equal(t, usbip.StatusStall, command(h, c.endpoint, c.kind, c.n), "%v", c)
		require.Equal(t, usbip.StatusStall, command(h, 0x82, 3, 0))
		state := make([]byte, 2)
		h.Control(0x82, 0, 0, 0x01, state)
		require.Equal(t, []byte{1, 0}, state)
		status, _ := h.Control(0x02, 1, 0, 0x01, nil)
		require.Zero(t, status)
	}
	require.Zero(t, command(h, 0x82, 3, 0))
	short := &attach.Transfer{Endpoint: 0x01, Data: make([]byte, 19)}
	h.Wait(short)
	require.Equal(t, usbip.StatusStall, short.Status)
	pending(t, h, noticed)
	h.Unlink(notice)
	require.Equal(t, usbip.StatusUnlinked, ended(t, noticed).Status)
}
