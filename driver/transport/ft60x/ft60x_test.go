package ft60x

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sigurn/crc16"
	"github.com/stretchr/testify/require"

	"tributary/driver/transport/bulk"
)

// chip is a fake bulk.Device: an FT601 with a card behind it that replies to writes. It sends
// no more packets than requested.
type chip struct {
	mode, channels, features uint8
	packet                   int // bytes in a packet
	settings                 int // bytes of the settings
	settingsErr              error
	claimErr                 error
	commandErr               error
	halted                   uint8
	packets                  []string // that come before the reply
	mute                     bool

	claims   [2]int // of the two interfaces
	resets   int
	commands []string // their kinds and requested sizes
	asked    int
	wrote    []byte
}

func newChip() *chip { return &chip{channels: 2, packet: 512, settings: 152} }

func (c *chip) Serial() (string, error) { return "A1", nil }

func (c *chip) Control(kind, request uint8, value, index uint16, data []byte) (int, error) {
	switch {
	case kind == 0xc0 && request == 0xcf && value == 1 && index == 0:
		settings := make([]byte, c.settings)
		if c.settings == 152 {
			settings[138], settings[139], settings[140] = c.mode, c.channels, c.features
		}
		return copy(data, settings), c.settingsErr
	case kind == 0x82 && request == 0 && c.claims == [2]int{1, 1}:
		if uint8(index) == c.halted {
			data[0] = 1
		}
		return 2, nil
	}
	return 0, bulk.ErrStalled
}

func (c *chip) Reset() error {
	if c.claims != [2]int{} {
		return errors.New("it is claimed")
	}
	c.resets++
	c.halted = 0
	return nil
}

func (c *chip) Close() error { return nil }

func (c *chip) Claim(p bulk.Pipes) (bulk.Stream, error) {
	switch p {
	case bulk.Pipes{Configuration: 1, Interface: 0, Out: 0x01}:
		c.claims[0]++
		return (*commands)(c), nil
	case bulk.Pipes{Configuration: 1, Interface: 1, Out: 0x02, In: 0x82, Waiting: 16}:
		if c.claimErr != nil {
			return nil, c.claimErr
		}
		c.claims[1]++
		return (*data)(c), nil
	}
	return nil, errors.New("no such interface")
}

// commands is the stream of endpoint 01.
type commands chip

func (c *commands) Write(_ context.Context, b []byte) (int, error) {
	if len(b) != 20 || b[4] != 0x82 {
		return 0, errors.New("no command")
	}
	n := int(binary.LittleEndian.Uint32(b[8:]))
	if b[5] == 1 && n == c.packet {
		c.asked++
	}
	c.commands = append(c.commands, string("0123456789"[b[5]]))
	return len(b), c.commandErr
}

func (c *commands) Read(context.Context, []byte) (int, error) { panic("of commands nothing is read") }
func (c *commands) PacketBytes() int                          { return 0 }
func (c *commands) Close() error                              { c.claims[0]--; return nil }

// data is the stream of endpoints 02 and 82.
type data chip

func (d *data) Write(_ context.Context, b []byte) (int, error) {
	d.wrote = append(d.wrote, b...)
	if len(d.wrote) == 8192+28 && !d.mute {
		d.packets = append(d.packets, string(reply(d.wrote[8192:])), "new")
	}
	return len(b), nil
}

func (d *data) Read(ctx context.Context, b []byte) (int, error) {
	if len(b) < d.packet {
		return 0, errors.New("no room for a packet")
	}
	if d.asked == 0 || len(d.packets) == 0 {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	d.asked--
	next := d.packets[0]
	d.packets = d.packets[1:]
	return copy(b, next), nil
}

func (d *data) PacketBytes() int { return d.packet }
func (d *data) Close() error     { d.claims[1]--; return nil }

// reply returns the card's reply to a register write. By PACKET.md only the kind and the CRC
// differ.
func reply(write []byte) []byte {
	r := append([]byte{}, write...)
	r[4] = r[4]&0x0f | 11<<4
	binary.BigEndian.PutUint16(r[26:], crc16.Checksum(r[4:26], crc16.MakeTable(crc16.CRC16_CCITT_FALSE)))
	return r
}

// TestClaim checks that claim cancels old requests and requests 16 packets, and one more for
// each packet received. The stream begins after the reply.
func TestClaim(t *testing.T) {
	for _, packet := range []int{512, 1024} {
		c := newChip()
		c.packet = packet
		for range 40 { // left by earlier hosts
			c.packets = append(c.packets, strings.Repeat("x", packet), "")
		}
		s, err := claim(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, "3"+strings.Repeat("1", 16+81), strings.Join(c.commands, ""))
		require.Equal(t, 16, c.asked)
		require.Zero(t, c.resets)
		buf := make([]byte, 2)
		for _, want := range []string{"ne", "w"} {
			n, err := s.Read(t.Context(), buf)
			require.NoError(t, err)
			require.Equal(t, want, string(buf[:n]))
		}
		require.Equal(t, 16, c.asked)
		require.NoError(t, s.Close())
		require.Equal(t, [2]int{}, c.claims)
	}
}

// TestHalted checks that claim resets a halted chip.
func TestHalted(t *testing.T) {
	for _, endpoint := range []uint8{0x01, 0x02, 0x82} {
		c := newChip()
		c.halted = endpoint
		_, err := claim(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, 1, c.resets)
		require.Equal(t, [2]int{1, 1}, c.claims)
	}
}

// TestSettings checks that claim rejects a chip with other settings, and that the error names
// the remedy.
func TestSettings(t *testing.T) {
	const tool = "; if it is the card's chip, configure it with FTDI's FT60X Chip Configuration Programmer"
	for _, c := range []struct {
		mode, channels, features uint8
		says                     string
	}{
		{1, 2, 0, "FIFO mode 245 (it is 600)"},
		{1, 0, 0x3c, "FIFO mode 245 (it is 600), 1 channel (it has 4), no notification messages for channel 1 (they are on)"},
		{0, 1, 0, "1 channel (it has 2)"},
		{0, 3, 0, "1 channel (it has 1 out only)"},
		{0, 9, 0, "1 channel (it has number 9)"},
		{0, 2, 4, "no notification messages for channel 1 (they are on)"},
	} {
		chip := newChip()
		chip.mode, chip.channels, chip.features = c.mode, c.channels, c.features
		_, err := claim(t.Context(), chip)
		require.EqualError(t, err, "the chip is not set to "+c.says+tool)
		require.Empty(t, chip.commands)
	}
	for _, features := range []uint8{0, 0x02, 0x43, 0x38} { // unrelated bits
		chip := newChip()
		chip.features = features
		_, err := claim(t.Context(), chip)
		require.NoError(t, err)
	}
}

// TestErrors checks that claim returns the error and releases the chip.
func TestErrors(t *testing.T) {
	for says, change := range map[string]func(*chip){
		"the chip does not support the request for its settings": func(c *chip) { c.settingsErr = bulk.ErrStalled },
		"the chip's settings: it does not reply":                 func(c *chip) { c.settingsErr = bulk.ErrSilent },
		"the chip's settings have 100 bytes, not 152":            func(c *chip) { c.settings = 100 },
		"another program has claimed it":                         func(c *chip) { c.claimErr = bulk.ErrClaimed },
		"it was unplugged":                                       func(c *chip) { c.commandErr = bulk.ErrUnplugged },
	} {
		c := newChip()
		change(c)
		_, err := claim(t.Context(), c)
		require.ErrorContains(t, err, says)
		require.Equal(t, [2]int{}, c.claims)
	}
}

// TestMute checks a chip without a card.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChip()
		c.mute = true
		start := time.Now()
		_, err := claim(t.Context(), c)
		require.EqualError(t, err, "no card replies behind the chip; check that its FPGA is configured")
		require.Equal(t, 10*time.Second, time.Since(start).Truncate(time.Second))
		require.Equal(t, [2]int{}, c.claims)
	})
}
