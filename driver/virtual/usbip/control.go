package usbip

// The device's replies at endpoint 0.

import (
	"encoding/binary"

	"tributary/driver/wire"
)

// setup is the setup packet of a control transfer.
type setup struct {
	kind    byte // bmRequestType
	request byte
	value   uint16
	index   uint16
	length  uint16
}

func newSetup(b [8]byte) setup {
	return setup{b[0], b[1], binary.LittleEndian.Uint16(b[2:]), binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:])}
}

// Standard requests: kind and number.
const (
	getDeviceStatus    = 0x8000
	getInterfaceStatus = 0x8100
	getEndpointStatus  = 0x8200
	clearEndpoint      = 0x0201
	setEndpoint        = 0x0203
	setAddress         = 0x0005
	getDescriptor      = 0x8006
	getConfiguration   = 0x8008
	setConfiguration   = 0x0009
	getInterface       = 0x810a
	setInterface       = 0x010b
	identify           = int(wire.USBIdentifyType)<<8 | int(wire.USBIdentify)
)

// Bits of a request's kind.
const (
	kindType   = 0x60
	kindVendor = 0x40
)

const endpointHalt = 0 // the feature

// control handles a request. answer is nil for a request without data; ok is false for a
// stalled one.
func (d *device) control(s setup) (answer []byte, ok bool) {
	switch int(s.kind)<<8 | int(s.request) {
	case getDescriptor:
		answer, ok = d.descriptor(byte(s.value>>8), byte(s.value))
	case getDeviceStatus:
		answer, ok = []byte{1, 0}, true // self-powered
	case getInterfaceStatus:
		answer, ok = []byte{0, 0}, s.index == wire.USBInterface
	case getEndpointStatus:
		answer, ok = d.endpointStatus(uint8(s.index))
	case getConfiguration:
		answer, ok = []byte{d.configuration}, true
	case getInterface:
		answer, ok = []byte{d.setting}, s.index == wire.USBInterface && d.configuration != 0
	case setAddress:
		ok = true // the host's side keeps the address
	default:
		if s.kind&kindType == kindVendor {
			answer, ok = d.face.request(s)
			d.wake()
			break
		}
		return nil, d.command(s)
	}
	return answer[:min(len(answer), int(s.length))], ok
}

// command handles a request that changes something.
func (d *device) command(s setup) bool {
	switch int(s.kind)<<8 | int(s.request) {
	case setConfiguration:
		return d.configure(s.value)
	case setInterface:
		return s.index == wire.USBInterface && d.configuration != 0 && d.selectSetting(s.value)
	case setEndpoint, clearEndpoint:
		return s.value == endpointHalt && d.halt(uint8(s.index), int(s.request) == setEndpoint&0xff)
	}
	return false
}

func (d *device) descriptor(kind, index byte) ([]byte, bool) {
	switch {
	case kind == descriptorDevice && index == 0:
		return d.face.device(), true
	case kind == descriptorConfiguration && index == 0:
		return d.face.configuration(), true
	case kind == descriptorString:
		return stringDescriptor(d.face, d.card.Serial, index)
	}
	return nil, false
}

// configure sets the configuration, which takes the link down.
func (d *device) configure(value uint16) bool {
	if value > wire.USBConfiguration {
		return false
	}
	d.linkDown()
	d.configuration = byte(value)
	return value == 0 || d.face.settings() > 1 || d.linkUp()
}

// selectSetting selects an alternate setting. With several settings, the link goes down, and
// comes up for the setting with endpoints. With only one setting, the link always comes up.
func (d *device) selectSetting(value uint16) bool {
	if value >= d.face.settings() {
		return false
	}
	d.linkDown()
	if d.face.settings() > 1 && value == wire.USBLinkDown {
		return true
	}
	d.setting = byte(value)
	return d.linkUp()
}

func (d *device) endpointStatus(address uint8) ([]byte, bool) {
	if address&0x7f == 0 {
		return []byte{0, 0}, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.endpoint(address)
	if e == nil {
		return nil, false
	}
	if e.halted {
		return []byte{1, 0}, true
	}
	return []byte{0, 0}, true
}

// halt halts an endpoint, or clears its halt.
func (d *device) halt(address uint8, halted bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.endpoint(address)
	if e == nil {
		return address&0x7f == 0 && !halted
	}
	e.halted = halted
	if halted {
		d.endAll(e, StatusStall)
	}
	return true
}
