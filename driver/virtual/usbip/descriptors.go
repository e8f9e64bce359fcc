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

// Kinds of descriptors.
const (
	descriptorDevice        = 1
	descriptorConfiguration = 2
	descriptorString        = 3
	descriptorInterface     = 4
	descriptorEndpoint      = 5
)

// Indexes of strings.
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
	attributeSelf    = 0xc0 // powered by itself
	transferBulk     = 2
	languageEnglish  = 0x0409
	interfaceSetting = 2 // number of alternate settings
)

// face is what differs between the devices that can lead to a card. But for request, takes
// and gives it is used by one goroutine at a time.
type face interface {
	device() []byte        // descriptor
	configuration() []byte // the same, with all that stands below it
	strings() (manufacturer, product string)
	info() (DeviceInfo, []interfaceInfo)
	endpoints() (out, in uint8)
	settings() uint16 // how many alternate settings its interface has
	// request answers one that is not among the standard ones.
	request(s setup) (answer []byte, ok bool)
	// takes says whether what the host sends is taken now.
	takes() bool
	// gives says whether a transfer to the host is filled now.
	gives() bool
	// deadline is when fill is to end although nothing has come; zero: never.
	deadline() time.Time
	// fill waits for bytes from the link and puts what is sent of them into a
	// transfer to the host, which they end. With errUnasked it is not ended: it waits
	// until gives says so.
	fill(link net.Conn, t *transfer) (int, error)
}

var errUnasked = errors.New("usbip: the host has not asked for more")

// commanded is a face that has an endpoint for commands, and one from which nothing comes.
type commanded interface {
	side() (commands, mute uint8)
	// command carries one out; if it is none, its endpoint is halted.
	command(b []byte) bool
}

// descriptor puts length and kind before the bytes of a descriptor.
func descriptor(kind byte, bytes ...byte) []byte {
	return append([]byte{byte(2 + len(bytes)), kind}, bytes...)
}

// word returns a number as it stands in a descriptor.
func word(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }

// native is a card that is a USB device itself: SPEC.md, section 9.
type native struct {
	card *Card
	open bool // a burst has filled its last transfer, and may go on
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

// deadline ends the wait for a burst to go on.
func (n *native) deadline() time.Time {
	if n.open {
		return time.Now().Add(burstEnd)
	}
	return time.Time{}
}

// fill takes what one read finds: the rest of a burst, unless it fills the transfer.
// Then the burst goes on with the next, which stays empty if nothing more comes.
func (n *native) fill(link net.Conn, t *transfer) (int, error) {
	count, err := link.Read(t.data)
	n.open = count > 0 && count == t.length
	return count, err
}

// bulkEndpoints are the descriptors of endpoints at addresses.
func bulkEndpoints(addresses ...uint8) (all []byte) {
	for _, address := range addresses {
		all = append(all, descriptor(descriptorEndpoint,
			slices.Concat([]byte{address, transferBulk}, word(wire.USBPacket), []byte{0})...)...)
	}
	return all
}

// configured puts the descriptor of a configuration before what stands below it, so many
// interfaces.
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

// deviceInfo returns what a list says of a device.
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

// BusID is the name under which a server offers its card.
const BusID = "1-1"

// speedHigh is how DeviceInfo says 480 Mbit/s.
const speedHigh = 3
