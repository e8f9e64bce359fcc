package usbip

import (
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"tributary/driver/wire"
)

// chipKind is a kind of 8-bit FIFO bridge.
type chipKind struct {
	product, release uint16
	channels         uint16 // each has an interface
	text             string // of the product
}

// bridges are the constructors of the bridges' faces, by name.
var bridges = map[string]func() face{
	"ft2232h": func() face {
		return &chip{chipKind: chipKind{wire.FT2232HProduct, wire.FT2232HRelease, 2, "Dual RS232-HS"}}
	},
	"ft232h": func() face {
		return &chip{chipKind: chipKind{wire.FT232HProduct, wire.FT232HRelease, 1, "Single RS232-HS"}}
	},
	"ft600": func() face { return &superFIFO{product: wire.FT600Product} },
	"ft601": func() face { return &superFIFO{product: wire.FT601Product} },
}

// Bridges returns the valid names for Card.Bridge.
func Bridges() []string { return slices.Sorted(maps.Keys(bridges)) }

// chip is a FIFO bridge with a card at its pins. Its EEPROM makes channel A a FIFO.
//
// It models only what synchronous FIFO mode needs. In any other mode no byte passes in either
// direction, because the card has no clock. The link's buffers replace the chip's buffers.
// Channel B is not connected.
type chip struct {
	chipKind
	isSync  atomic.Bool   // in synchronous FIFO mode
	latency atomic.Uint32 // timer, in milliseconds
}

const (
	defaultLatency = 16   // ms
	statusModem    = 0x32 // status of such chips at high speed
	statusLine     = 0x60 // the transmitter is empty
	classFTDI      = 0xff // also subclass and protocol
)

func (c *chip) endpoints() (out, in uint8) { return wire.FTDIOut, wire.FTDIIn }
func (c *chip) settings() uint16           { return 1 }
func (c *chip) takes() bool                { return c.isSync.Load() }
func (c *chip) gives() bool                { return true } // at least its status

func (c *chip) request(s setup) (answer []byte, ok bool) {
	if s.kind == wire.FTDIGet && s.request == wire.FTDIReadEEPROM {
		return word(int(wire.FTDITypeFIFO)), s.index == wire.FTDITypeWord
	}
	switch channel := s.index & 0xff; {
	case channel > c.channels:
		return nil, false
	case channel > wire.FTDIChannel:
		return []byte{0}, s.request <= wire.FTDISetMode
	}
	switch [2]uint8{s.kind, s.request} {
	case [2]uint8{wire.FTDISet, wire.FTDIReset}:
		return nil, s.value <= wire.FTDIPurge2
	case [2]uint8{wire.FTDISet, wire.FTDIFlow}:
		return nil, true
	case [2]uint8{wire.FTDISet, wire.FTDISetLatency}:
		c.latency.Store(uint32(s.value))
		return nil, s.value > 0 && s.value < 256
	case [2]uint8{wire.FTDIGet, wire.FTDIGetLatency}:
		return []byte{byte(c.wait() / time.Millisecond)}, true
	case [2]uint8{wire.FTDISet, wire.FTDISetMode}:
		c.isSync.Store(s.value>>8 == wire.FTDIModeSyncFIFO>>8)
		return nil, true
	}
	return nil, false
}

func (c *chip) device() []byte {
	return descriptor(descriptorDevice, slices.Concat(
		word(usbRelease), []byte{0, 0, 0, controlPacket},
		word(int(wire.FTDIVendor)), word(int(c.product)), word(int(c.release)),
		[]byte{stringManufacturer, stringProduct, stringSerial, 1})...)
}

func (c *chip) configuration() []byte {
	var below []byte
	for i := range byte(c.channels) {
		below = append(below, descriptor(descriptorInterface, i, 0, 2, classFTDI, classFTDI, classFTDI, stringProduct)...)
		below = append(below, bulkEndpoints(wire.FTDIIn+2*i, wire.FTDIOut+2*i)...)
	}
	return configured(int(c.channels), below)
}

func (c *chip) strings() (manufacturer, product string) { return "FTDI", c.text }

func (c *chip) info() (DeviceInfo, []interfaceInfo) {
	inside := slices.Repeat([]interfaceInfo{{classFTDI, classFTDI, classFTDI, 0}}, int(c.channels))
	return deviceInfo(wire.FTDIVendor, c.product, c.release, inside), inside
}

// wait returns the time of the latency timer.
func (c *chip) wait() time.Duration {
	ms := c.latency.Load()
	if ms == 0 {
		ms = defaultLatency
	}
	return time.Duration(ms) * time.Millisecond
}

func (c *chip) deadline() time.Time { return time.Now().Add(c.wait()) }

// fill sends packets, each with the status first. It sends the card's bytes at once, as the
// card requests. After the time of the latency timer it sends only the status. A full packet is
// followed by one that is not full.
func (c *chip) fill(link net.Conn, t *transfer) (int, error) {
	if !c.isSync.Load() {
		time.Sleep(c.wait())
		return pack(t, nil), nil
	}
	const room = wire.USBPacket - wire.FTDIStatus
	bytes := make([]byte, max(1, t.length/wire.USBPacket*room))
	n, err := link.Read(bytes)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
		return pack(t, nil), err
	}
	return pack(t, bytes[:n]), err
}

// pack puts bytes into a transfer, in packets, and returns the transfer's length. A full
// transfer needs no short packet at its end.
func pack(t *transfer, bytes []byte) int {
	packets := t.data[:0]
	for more := true; more; {
		n := min(len(bytes), wire.USBPacket-wire.FTDIStatus)
		packets = append(append(packets, statusModem, statusLine), bytes[:n]...)
		bytes = bytes[n:]
		more = len(packets)%wire.USBPacket == 0 && len(packets) < t.length
	}
	return len(packets)
}
