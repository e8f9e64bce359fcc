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
// pins, as SPEC.md, section 10.4, has it.
//
// Of what such a chip has, that is here which a card needs. Notices are off, so that their
// endpoint sends nothing; the settings cannot be changed. A transfer to the host ends when
// it is full or with a short packet: where packets are full no empty one follows, as none of
// the sources promises one. What waits in the chip's buffers waits in those of the link.
type superFIFO struct {
	product uint16

	mu    sync.Mutex
	asked []int // bytes that the host has asked for and not got, the first first
}

// Of the descriptors of an FT601, as lsusb prints them (libft601): what is not of SuperSpeed.
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

// command takes one from the host, and says whether it is one. What announces bytes from
// the host changes nothing.
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

// fill sends what was asked for: packets as the card's bytes come, until one is short, which
// ends what was asked for, or the transfer is full.
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

// first returns how many bytes the host has asked for that are next, 0 for none.
func (c *superFIFO) first() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.asked) == 0 {
		return 0
	}
	return c.asked[0]
}

// sent takes bytes off what was asked for. The host may have ended that meanwhile.
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
