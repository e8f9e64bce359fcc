package usbip

import (
	"encoding/binary"
	"fmt"
	"slices"
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

// descriptor puts length and kind before the bytes of a descriptor.
func descriptor(kind byte, bytes ...byte) []byte {
	return append([]byte{byte(2 + len(bytes)), kind}, bytes...)
}

// word returns a number as it stands in a descriptor.
func word(n int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(n)) }

// deviceDescriptor is that of every card.
func deviceDescriptor() []byte {
	return descriptor(descriptorDevice, slices.Concat(
		word(usbRelease), []byte{0, 0, 0, controlPacket},
		word(int(wire.USBVendor)), word(int(wire.USBProduct)), word(cardRelease),
		[]byte{stringManufacturer, stringProduct, stringSerial, 1})...)
}

// configurationDescriptor is that of every card, with all that stands below it.
func configurationDescriptor() []byte {
	var below []byte
	for setting := range byte(interfaceSetting) {
		var endpoints []byte
		if setting == wire.USBLinkUp {
			endpoints = []byte{wire.USBOut, wire.USBIn}
		}
		below = append(below, descriptor(descriptorInterface,
			wire.USBInterface, setting, byte(len(endpoints)), classVendor, subClassCard, wire.Version, 0)...)
		for _, address := range endpoints {
			below = append(below, descriptor(descriptorEndpoint,
				slices.Concat([]byte{address, transferBulk}, word(wire.USBPacket), []byte{0})...)...)
		}
	}
	const own = 9
	head := descriptor(descriptorConfiguration,
		slices.Concat(word(own+len(below)), []byte{1, wire.USBConfiguration, 0, attributeSelf, 0})...)
	return append(head, below...)
}

// stringDescriptor returns one of the card's strings.
func (c *Card) stringDescriptor(index byte) ([]byte, bool) {
	if index >= stringEnd {
		return nil, false
	}
	if index == 0 {
		return descriptor(descriptorString, word(languageEnglish)...), true
	}
	text := map[byte]string{
		stringManufacturer: wire.USBManufacturer,
		stringProduct:      fmt.Sprintf("%s%016x", wire.USBProductPrefix, c.hash()),
		stringSerial:       c.Serial,
	}[index]
	var units []byte
	for _, u := range utf16.Encode([]rune(text)) {
		units = append(units, word(int(u))...)
	}
	return descriptor(descriptorString, units...), true
}

// Info returns what a list of devices says of every card.
func Info() DeviceInfo {
	info := DeviceInfo{
		Bus: 1, Device: 1, Speed: speedHigh,
		Vendor: wire.USBVendor, Product: wire.USBProduct, Release: cardRelease,
		Configurations: 1, Interfaces: 1,
	}
	copy(info.PathBytes[:], "/sys/devices/tributary/"+BusID)
	copy(info.BusIDBytes[:], BusID)
	return info
}

// BusID is the name under which a server offers its card.
const BusID = "1-1"

// speedHigh is how DeviceInfo says 480 Mbit/s.
const speedHigh = 3
