package capture

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pcapng writes blocks of a pcapng file.
type pcapng struct {
	bytes.Buffer
	order binary.AppendByteOrder
}

// block appends a block with a body, which is padded to words.
func (p *pcapng) block(kind uint32, body ...byte) {
	body = append(body, make([]byte, -len(body)&3)...)
	size := uint32(12 + len(body))
	b := p.order.AppendUint32(p.order.AppendUint32(nil, kind), size)
	p.Write(p.order.AppendUint32(append(b, body...), size))
}

// section appends the first block.
func (p *pcapng) section() {
	body := p.order.AppendUint16(p.order.AppendUint32(nil, 0x1a2b3c4d), 1)
	p.block(0x0a0d0d0a, append(body, make([]byte, 10)...)...)
}

// ethernet appends an interface with options.
func (p *pcapng) ethernet(options ...byte) {
	p.block(1, append(p.order.AppendUint16(nil, 1), append(make([]byte, 6), options...)...)...)
}

// option returns an option.
func (p *pcapng) option(code uint16, value ...byte) []byte {
	b := p.order.AppendUint16(p.order.AppendUint16(nil, code), uint16(len(value)))
	return append(append(b, value...), make([]byte, -len(value)&3)...)
}

// TestFCSOption: if_fcslen has 4 bytes or 32 bits, in either order of bytes, behind other options.
func TestFCSOption(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		p := &pcapng{order: order}
		p.section()
		p.ethernet()
		p.ethernet(p.option(2, []byte("eth0 ")...)...)
		p.ethernet(append(p.option(2, []byte("eth0 ")...), p.option(13, 4)...)...)
		p.block(0x99, 1, 2, 3)
		p.ethernet(append(p.option(13, 32), p.option(0)...)...)
		p.ethernet(p.option(13, 0)...)
		p.ethernet(append(p.option(2, 1), 13, 0, 200, 0)...) // cut off
		got, err := scan(bytes.NewReader(p.Bytes()))
		require.NoError(t, err)
		assert.Equal(t, []bool{false, false, true, true, false, false}, got, order)
		c, err := Open(bytes.NewReader(p.Bytes()))
		require.NoError(t, err)
		assert.Equal(t, 6, c.Ports())
	}
}

// TestDamagedFiles: a file that is no capture, or one that no card can take, is refused with the reason.
func TestDamagedFiles(t *testing.T) {
	for message, write := range map[string]func(p *pcapng){
		"it is neither a pcapng nor a pcap file":                      func(p *pcapng) {},
		"it is neither a pcapng nor a pcap file: Unknown magic":       func(p *pcapng) { p.Write(make([]byte, 100)) },
		"it has no interface":                                         func(p *pcapng) { p.section() },
		"it does not have one section; mergecap makes one of several": func(p *pcapng) { p.section(); p.section() },
		"interface 1: its FCS has the length 2 (if_fcslen)":           func(p *pcapng) { p.section(); p.ethernet(); p.ethernet(p.option(13, 2)...) },
		"a block has 13 bytes; the file is damaged":                   func(p *pcapng) { p.section(); p.Write([]byte{1, 0, 0, 0, 13, 0, 0, 0}) },
		"a block has 16777220 bytes; the file is damaged":             func(p *pcapng) { p.section(); p.Write([]byte{1, 0, 0, 0, 4, 0, 0, 1}) },
		"unexpected EOF": func(p *pcapng) { p.section(); p.Write([]byte{1, 0, 0, 0, 16, 0, 0, 0}) },
	} {
		p := &pcapng{order: binary.LittleEndian}
		write(p)
		_, err := Open(bytes.NewReader(p.Bytes()))
		assert.ErrorContains(t, err, message)
	}
}

// TestTheOptionDecides: frames without epb_flags have the FCS of their interface.
func TestTheOptionDecides(t *testing.T) {
	p := &pcapng{order: binary.LittleEndian}
	p.section()
	p.ethernet(p.option(13, 4)...)
	p.ethernet()
	for _, at := range []byte{0, 1} {
		p.block(6, at, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4)
	}
	c, err := Open(bytes.NewReader(p.Bytes()))
	require.NoError(t, err)
	for _, want := range []bool{true, false} {
		got, err := c.next()
		require.NoError(t, err)
		assert.Equal(t, want, got.hasFCS)
	}
}

// TestFramesThatNoCardTakes: other link types, and frames of which the end is missing.
func TestFramesThatNoCardTakes(t *testing.T) {
	packet := func(p *pcapng, of uint32) {
		body := make([]byte, 12) // interface 0, at time 0
		p.block(6, append(p.order.AppendUint32(p.order.AppendUint32(body, 4), of), 1, 2, 3, 4)...)
	}
	p := &pcapng{order: binary.LittleEndian}
	p.section()
	p.ethernet()
	packet(p, 5)
	c, err := Open(bytes.NewReader(p.Bytes()))
	require.NoError(t, err)
	_, err = c.next()
	assert.EqualError(t, err, "the capture has only 4 of its 5 bytes; capture whole frames (tcpdump -s 0)")

	p = &pcapng{order: binary.LittleEndian}
	p.section()
	p.block(1, 101, 0, 0, 0, 0, 0, 0, 0)
	packet(p, 4)
	c, err = Open(bytes.NewReader(p.Bytes()))
	require.NoError(t, err)
	_, err = c.next()
	assert.ErrorContains(t, err, "the link type of interface 0 is Raw, not Ethernet")
}

// FuzzOpen reads files that may be damaged anywhere. Each ends, with its frames or with an error.
func FuzzOpen(f *testing.F) {
	p := &pcapng{order: binary.BigEndian}
	p.section()
	p.ethernet(p.option(13, 4)...)
	p.block(6, make([]byte, 20)...)
	f.Add(p.Bytes())
	f.Add([]byte("\xd4\xc3\xb2\xa1\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := Open(bytes.NewReader(file))
		if err != nil {
			return
		}
		for frames := 0; ; frames++ {
			p, err := c.next()
			if err != nil {
				return
			}
			require.Less(t, p.port, c.Ports())
			require.Less(t, frames, len(file), "a frame takes at least a byte")
		}
	})
}
