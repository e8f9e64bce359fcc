package usbip

import (
	"encoding/binary"
	"net"
	"slices"
	"sync"
	"time"

	"tributary/driver/wire"
)

// superFIFO is an FT601 or FT600 on USB 2, in 245 mode with one channel, with a card at its
// pins (SPEC.md, section 10.4).
//
// It models only what a card needs. Notices are off, so their endpoint sends nothing; the
// settings are fixed. A transfer to the host ends when it is full or with a short packet. No
// empty packet follows full ones, because none of the sources promises one. The link's buffers
// replace the chip's buffers.
type superFIFO struct {
	product uint16

	mu    sync.Mutex
	asked []int // requested bytes not yet sent, oldest first
}

// From the descriptors of an FT601, as lsusb prints them (libft601), without those of
// SuperSpeed.
const (
	classMisc         = 0xef // of the device
	subClassCommon    = 0x02
	protocolAssociate = 0x01
	descriptorGroup   = 11 // an interface association
	attributesFT60x   = 0xe0
	powerFT60x        = 48 // of 2 mA
	transferInterrupt = 3
	noticeInterval    = 9
)

func (c *superFIFO) endpoints() (out, in uint8) { return wire.FT60xOut, wire.FT60xIn }
func (c *superFIFO) settings() uint16           { return 1 }
func (c *superFIFO) takes() bool                { return true }

func (c *superFIFO) gives() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked) > 0
}

func (c *superFIFO) side() (commands, mute uint8) { return wire.FT60xCommands, wire.FT60xNotices }

// command handles a command from the host and reports whether it is valid. An announcement of
// bytes from the host changes nothing.
func (c *superFIFO) command(b []byte) bool {
	if len(b) != wire.FT60xCommandBytes {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int(binary.LittleEndian.Uint32(b[wire.FT60xCommandLength:]))
	switch [2]uint8{b[wire.FT60xCommandPipe], b[wire.FT60xCommandKind]} {
	case [2]uint8{wire.FT60xIn, wire.FT60xAsk}:
		if n > 0 {
			c.asked = append(c.asked, n)
		}
		return n > 0
	case [2]uint8{wire.FT60xIn, wire.FT60xEnd}:
		c.asked = nil
		return true
	}
	return b[wire.FT60xCommandPipe] == wire.FT60xOut && b[wire.FT60xCommandKind] == wire.FT60xAsk
}

func (c *superFIFO) request(s setup) (answer []byte, ok bool) {
	if s.kind != wire.FT60xGet || s.request != wire.FT60xSettings || s.value != wire.FT60xSettingsValue {
		return nil, false
	}
	answer = make([]byte, wire.FT60xSettingsBytes)
	copy(answer, slices.Concat(word(int(wire.FT60xVendor)), word(int(c.product))))
	answer[wire.FT60xMode] = wire.FT60xMode245
	answer[wire.FT60xChannels] = wire.FT60xOneChannel
	return answer, true
}

func (c *superFIFO) device() []byte {
	return descriptor(descriptorDevice, slices.Concat(
		word(usbRelease), []byte{classMisc, subClassCommon, protocolAssociate, controlPacket},
		word(int(wire.FT60xVendor)), word(int(c.product)), word(0),
		[]byte{stringManufacturer, stringProduct, stringSerial, 1})...)
}

func (c *superFIFO) configuration() []byte {
	below := descriptor(descriptorGroup, wire.FT60xControl, 2, classVendor, classVendor, classVendor, 0)
	side := func(number byte, endpoints ...[]byte) {
		below = append(below, descriptor(descriptorInterface,
			number, 0, byte(len(endpoints)), classVendor, classVendor, classVendor, 0)...)
		below = append(below, slices.Concat(endpoints...)...)
	}
	notices := descriptor(descriptorEndpoint,
		slices.Concat([]byte{wire.FT60xNotices, transferInterrupt}, word(wire.FT60xNoticePacket), []byte{noticeInterval})...)
	side(wire.FT60xControl, bulkEndpoints(wire.FT60xCommands), notices)
	side(wire.FT60xData, bulkEndpoints(wire.FT60xOut), bulkEndpoints(wire.FT60xIn))
	all := configured(2, below)
	all[7], all[8] = attributesFT60x, powerFT60x
	return all
}

func (c *superFIFO) strings() (manufacturer, product string) {
	return "FTDI", "FTDI SuperSpeed-FIFO Bridge"
}

func (c *superFIFO) info() (DeviceInfo, []interfaceInfo) {
	inside := slices.Repeat([]interfaceInfo{{classVendor, classVendor, classVendor, 0}}, 2)
	d := deviceInfo(wire.FT60xVendor, c.product, 0, inside)
	d.Class, d.SubClass, d.Protocol = classMisc, subClassCommon, protocolAssociate
	return d, inside
}

func (c *superFIFO) deadline() time.Time { return time.Time{} }

// fill sends the requested bytes in packets, as they come from the card. It ends with a short
// packet, which also ends the request, or when the transfer is full.
func (c *superFIFO) fill(link net.Conn, t *transfer) (n int, err error) {
	for t.done < t.length {
		want := c.first()
		if want == 0 {
			return 0, errUnasked
		}
		got, err := link.Read(t.data[t.done:min(len(t.data), t.done+want)])
		t.done += got
		if err != nil {
			return t.done, err
		}
		short := got%wire.FT60xPacket != 0
		c.sent(got, short)
		if short {
			break
		}
	}
	return t.done, nil
}

// first returns the remaining size of the oldest request, or 0 for none.
func (c *superFIFO) first() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return 0
	}
	return c.asked[0]
}

// sent subtracts bytes from the oldest request. The host may have cancelled it meanwhile.
func (c *superFIFO) sent(n int, short bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return
	}
	c.asked[0] -= n
	if short || c.asked[0] <= 0 {
		c.asked = c.asked[1:]
	}
}
