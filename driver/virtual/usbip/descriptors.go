package usbip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
	"unicode/utf16"

	"tributary/driver/wire"
)

// Descriptor types.
const (
	descriptorDevice        = 1
	descriptorConfiguration = 2
	descriptorString        = 3
	descriptorInterface     = 4
	descriptorEndpoint      = 5
)

// String indexes.
const (
	stringManufacturer = 1 + iota
	stringProduct
	stringSerial
	stringEnd
)

const (
	usbRelease       = 0x0200
	cardRelease      = wire.Version << 8 // bcdDevice
	classVendor      = 0xff
	subClassCard     = 'T'
	controlPacket    = 64
	attributeSelf    = 0xc0 // self-powered
	transferBulk     = 2
	languageEnglish  = 0x0409
	interfaceSetting = 2 // number of alternate settings
)

// face is the part that differs between the devices that can lead to a card. One goroutine at a
// time uses it, except for request, takes and gives.
type face interface {
	device() []byte        // device descriptor
	configuration() []byte // configuration descriptor with everything below it
	strings() (manufacturer, product string)
	info() (DeviceInfo, []interfaceInfo)
	endpoints() (out, in uint8)
	settings() uint16 // number of alternate settings
	// request handles a request that is not a standard one.
	request(s setup) (answer []byte, ok bool)
	// takes reports whether the device now takes data from the host.
	takes() bool
	// gives reports whether the device now fills transfers to the host.
	gives() bool
	// deadline returns when fill must end without data. Zero means never.
	deadline() time.Time
	// fill waits for bytes from the link and puts them into a transfer to the host, which then
	// ends. With errUnasked the transfer does not end, but waits until gives returns true.
	fill(link net.Conn, t *transfer) (int, error)
}

var errUnasked = errors.New("usbip: the host has not asked for more")

// commanded is a face with an endpoint for commands, and one that never sends.
type commanded interface {
	side() (commands, mute uint8)
	// command handles a command. It returns false for an invalid one, which halts the endpoint.
	command(b []byte) bool
}

// descriptor returns a descriptor: length, kind and bytes.
func descriptor(kind byte, bytes ...byte) []byte {
	return append([]byte{byte(2 + len(bytes)), kind}, bytes...)
}

// word returns a 16-bit number as in a descriptor.
func word(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }

// native is a card that is a USB device itself (SPEC.md, section 9).
type native struct {
	card *Card
	open bool // a burst has filled its last transfer and may continue
}

func (n *native) endpoints() (out, in uint8) { return wire.USBOut, wire.USBIn }
func (n *native) settings() uint16           { return interfaceSetting }
func (n *native) takes() bool                { return true }
func (n *native) gives() bool                { return true }

func (n *native) request(s setup) (answer []byte, ok bool) {
	if int(s.kind)<<8|int(s.request) == identify {
		return n.card.Ident, s.value == 0 && s.index == 0
	}
	return nil, false
}

func (n *native) device() []byte {
	return descriptor(descriptorDevice, slices.Concat(
		word(usbRelease), []byte{0, 0, 0, controlPacket},
		word(int(wire.USBVendor)), word(int(wire.USBProduct)), word(cardRelease),
		[]byte{stringManufacturer, stringProduct, stringSerial, 1})...)
}

func (n *native) configuration() []byte {
	var below []byte
	for setting := range byte(interfaceSetting) {
		var endpoints []byte
		if setting == wire.USBLinkUp {
			endpoints = []byte{wire.USBOut, wire.USBIn}
		}
		below = append(below, descriptor(descriptorInterface,
			wire.USBInterface, setting, byte(len(endpoints)), classVendor, subClassCard, wire.Version, 0)...)
		below = append(below, bulkEndpoints(endpoints...)...)
	}
	return configured(1, below)
}

func (n *native) strings() (manufacturer, product string) {
	return wire.USBManufacturer, fmt.Sprintf("%s%016x", wire.USBProductPrefix, n.card.hash())
}

func (n *native) info() (DeviceInfo, []interfaceInfo) {
	inside := []interfaceInfo{{classVendor, subClassCard, wire.Version, 0}}
	return deviceInfo(wire.USBVendor, wire.USBProduct, cardRelease, inside), inside
}

// deadline ends the wait for the rest of a burst.
func (n *native) deadline() time.Time {
	if n.open {
		return time.Now().Add(burstEnd)
	}
	return time.Time{}
}

// fill makes one read. A read that does not fill the transfer ends the burst. Otherwise the
// burst continues in the next transfer, which stays empty if nothing more comes.
func (n *native) fill(link net.Conn, t *transfer) (int, error) {
	count, err := link.Read(t.data)
	n.open = count > 0 && count == t.length
	return count, err
}

// bulkEndpoints returns the descriptors of bulk endpoints.
func bulkEndpoints(addresses ...uint8) (all []byte) {
	for _, address := range addresses {
		all = append(all, descriptor(descriptorEndpoint,
			slices.Concat([]byte{address, transferBulk}, word(wire.USBPacket), []byte{0})...)...)
	}
	return all
}

// configured returns a configuration descriptor with everything below it.
func configured(interfaces int, below []byte) []byte {
	const own = 9
	head := descriptor(descriptorConfiguration,
		slices.Concat(word(own+len(below)), []byte{byte(interfaces), wire.USBConfiguration, 0, attributeSelf, 0})...)
	return append(head, below...)
}

// stringDescriptor returns one of a device's strings.
func stringDescriptor(f face, serial string, index byte) ([]byte, bool) {
	if index >= stringEnd {
		return nil, false
	}
	if index == 0 {
		return descriptor(descriptorString, word(languageEnglish)...), true
	}
	manufacturer, product := f.strings()
	text := map[byte]string{
		stringManufacturer: manufacturer,
		stringProduct:      product,
		stringSerial:       serial,
	}[index]
	var units []byte
	for _, u := range utf16.Encode([]rune(text)) {
		units = append(units, word(int(u))...)
	}
	return descriptor(descriptorString, units...), true
}

// deviceInfo returns a device's entry in a list.
func deviceInfo(vendor, product, release uint16, inside []interfaceInfo) DeviceInfo {
	info := DeviceInfo{
		Bus: 1, Device: 1, Speed: speedHigh,
		Vendor: vendor, Product: product, Release: release,
		Configurations: 1, Interfaces: uint8(len(inside)),
	}
	copy(info.PathBytes[:], "/sys/devices/tributary/"+BusID)
	copy(info.BusIDBytes[:], BusID)
	return info
}

// BusID is the name of the server's only device.
const BusID = "1-1"

// speedHigh is DeviceInfo's code for 480 Mbit/s.
const speedHigh = 3
