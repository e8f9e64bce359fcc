package ftdi

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"tributary/driver/transport/bulk"
)

// chip is a fake bulk.Device and its Stream: an FT232H with a card behind it that replies to
// writes.
type chip struct {
	requests []string
	eeprom   string   // its first word; empty means a FIFO
	packet   int      // bytes in a packet; 0 means 512
	halted   uint8    // endpoint
	answers  []string // packets that come before the reply
	wrote    []byte
	mute     bool
	babbles  bool // always sends bytes, but no reply
	readErr  error
	setUpErr error
	resets   int
	claims   int
}

func (c *chip) Serial() (string, error) { return "A1", nil }

func (c *chip) Control(kind, request uint8, value, index uint16, data []byte) (int, error) {
	if c.claims != 1 {
		return 0, bulk.ErrClaimed // the kernel's error for endpoints
	}
	switch {
	case kind == 0x82 && request == 0:
		if uint8(index) == c.halted {
			data[0] = 1
		}
		return 2, nil
	case kind == 0xc0 && request == 0x90 && index == 0:
		return copy(data, cmp.Or(c.eeprom, "\x11\x01")), nil
	case kind != 0x40:
		return 0, bulk.ErrStalled
	}
	word := func(w uint16) string {
		return string([]byte{"0123456789abcdef"[w>>12], "0123456789abcdef"[w>>8&15], "0123456789abcdef"[w>>4&15], "0123456789abcdef"[w&15]})
	}
	c.requests = append(c.requests, word(uint16(request))[2:]+" "+word(value)+" "+word(index))
	return 0, c.setUpErr
}

func (c *chip) Reset() error {
	if c.claims != 0 {
		return errors.New("it is claimed")
	}
	c.resets++
	c.halted = 0
	return nil
}

func (c *chip) Close() error { return nil }

func (c *chip) Claim(p bulk.Pipes) (bulk.Stream, error) {
	if p != (bulk.Pipes{Configuration: 1, Out: 0x02, In: 0x81}) {
		return nil, errors.New("no such interface")
	}
	c.claims++
	return (*packets)(c), nil
}

type packets chip

func (p *packets) Write(_ context.Context, b []byte) (int, error) {
	p.wrote = append(p.wrote, b...)
	return len(b), nil
}

// Read returns the queued packets, and then the reply to the last write. The reply begins
// inside a packet, and its last byte is in another one.
func (p *packets) Read(ctx context.Context, b []byte) (int, error) {
	if len(p.answers) > 0 {
		next := p.answers[0]
		p.answers = p.answers[1:]
		return copy(b, next), nil
	}
	if p.readErr != nil {
		return 0, p.readErr
	}
	if p.babbles {
		time.Sleep(time.Millisecond)
		return copy(b, "\x32\x60x"), nil
	}
	if p.mute || len(p.wrote) < 28 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	write := p.wrote[len(p.wrote)-28:]
	p.wrote = nil
	answer := string(reply(write))
	p.answers = []string{"\x32\x60" + answer[27:] + "new"}
	return copy(b, "\x32\x60old"+answer[:27]), nil
}

func (p *packets) PacketBytes() int { return cmp.Or(p.packet, 512) }

func (p *packets) Close() error { p.claims--; return nil }

// reply returns the card's reply to a register write. By PACKET.md only the kind and the CRC
// differ.
func reply(write []byte) []byte {
	r := append([]byte{}, write...)
	r[4] = r[4]&0x0f | 11<<4
	crc := uint16(0xffff)
	for _, b := range r[4:26] {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	r[26], r[27] = byte(crc>>8), byte(crc)
	return r
}

// TestClaim checks for the requests of SPEC.md, section 10.3, then a break and a register
// write. The stream begins after the reply.
func TestClaim(t *testing.T) {
	// Left by earlier hosts: a partial frame, an old reply, the chip's status.
	c := &chip{answers: []string{"\x32\x60", "\x32\x60" + strings.Repeat("x", 510) + "\x32\x60y"}}
	s, err := claim(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{"00 0000 0001", "0b 00ff 0001", "09 0002 0001", "02 0000 0101", "0b 40ff 0001", "00 0001 0001", "00 0002 0001"}, c.requests)
	require.Zero(t, c.resets)
	buf := make([]byte, 2)
	for _, want := range []string{"ne", "w"} {
		n, err := s.Read(t.Context(), buf)
		require.NoError(t, err)
		require.Equal(t, want, string(buf[:n]))
	}
	require.NoError(t, s.Close())
	require.Zero(t, c.claims)
}

// TestClaimErrors checks that claim returns the error and releases the chip.
func TestClaimErrors(t *testing.T) {
	c := &chip{setUpErr: bulk.ErrStalled}
	_, err := claim(t.Context(), c)
	require.EqualError(t, err, "the chip's reset: it does not support the request")
	require.Zero(t, c.claims)

	c = &chip{setUpErr: bulk.ErrSilent}
	_, err = claim(t.Context(), c)
	require.ErrorIs(t, err, bulk.ErrSilent)
	require.Zero(t, c.claims)

	c = &chip{readErr: bulk.ErrUnplugged}
	_, err = claim(t.Context(), c)
	require.ErrorIs(t, err, bulk.ErrUnplugged)
	require.Zero(t, c.claims)

	for word, want := range map[string]string{"\x00\x00": "0000", "\xff\xff": "ffff", "\x08\x01": "0108", "\x02\x01": "0102"} {
		c = &chip{eeprom: word}
		_, err = claim(t.Context(), c)
		require.EqualError(t, err, "the chip's EEPROM does not set FIFO mode (245) for channel A: word 0 is "+want+"; if it is the card's chip, configure it with FT_PROG or ftdi_eeprom")
		require.Empty(t, c.requests) // no request that changes the chip
		require.Empty(t, c.wrote)
		require.Zero(t, c.claims)
	}

	for _, endpoint := range []uint8{0x02, 0x81} {
		c = &chip{halted: endpoint}
		_, err = claim(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, 1, c.resets)
		require.Equal(t, 1, c.claims)
	}
}

// TestClaimStops checks that the context ends claim and is in the error.
func TestClaimStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := &chip{mute: true}
		time.AfterFunc(50*time.Millisecond, stop)
		_, err := claim(ctx, c)
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, c.claims)
	})
}

// TestMute checks a chip without a card.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []*chip{{mute: true}, {babbles: true}} {
			start := time.Now()
			_, err := claim(t.Context(), c)
			require.EqualError(t, err, "no card replies behind the chip; check that its FPGA is configured")
			require.Equal(t, 10*time.Second, time.Since(start).Truncate(time.Second))
			require.Zero(t, c.claims)
		}
	})
}

// TestCheck checks that an FT2232C, which has the FT2232H's number, is rejected.
func TestCheck(t *testing.T) {
	for release, ok := range map[uint16]bool{0x0500: false, 0x0700: true, 0x0800: false, 0x0900: true, 0x1000: false} {
		_, err := check(bulk.Found{Release: release})
		require.Equal(t, ok, err == nil, "%04x", release)
	}
	_, err := check(bulk.Found{Release: 0x0500})
	require.EqualError(t, err, "it is of release 0500, which has no synchronous FIFO mode")
}

// TestStrip checks that strip removes the status of every packet, wherever a transfer ends.
func TestStrip(t *testing.T) {
	full := "\x32\x60" + strings.Repeat("a", 510)
	for in, want := range map[string]string{
		"":                           "",
		"\x32":                       "",
		"\x32\x60":                   "",
		"\x32\x60b":                  "b",
		full:                         strings.Repeat("a", 510),
		full + "\x32\x60":            strings.Repeat("a", 510),
		full + "\x32\x60b":           strings.Repeat("a", 510) + "b",
		full + full + "\x32\x60\x32": strings.Repeat("a", 1020) + "\x32",
	} {
		require.Equal(t, want, string(strip([]byte(in), 512)))
	}
}

// TestFullSpeed checks the packet size that the device reports.
func TestFullSpeed(t *testing.T) {
	packet := "\x32\x60" + strings.Repeat("b", 62)
	c := &chip{packet: 64}
	s, err := claim(t.Context(), c)
	require.NoError(t, err)
	buf := make([]byte, 1024)
	_, err = s.Read(t.Context(), buf) // after the reply
	require.NoError(t, err)
	c.answers = []string{packet + packet + "\x32\x60c"}
	n, err := s.Read(t.Context(), buf)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("b", 124)+"c", string(buf[:n]))
}
