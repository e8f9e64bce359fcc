package bulk

import (
	"fmt"
	"strconv"
	"strings"

	"tributary/driver/wire"
)

// selector is what a name behind "usb:" selects.
type selector struct {
	vendor, product uint16
	serial          string // empty: any
}

// parse reads "", "VENDOR:PRODUCT" or "VENDOR:PRODUCT#SERIAL"; both numbers are in
// hex.
func parse(address string) (selector, error) {
	s := selector{vendor: wire.USBVendor, product: wire.USBProduct}
	if address == "" {
		return s, nil
	}
	numbers, serial, named := strings.Cut(address, "#")
	vendor, product, ok := strings.Cut(numbers, ":")
	v, errVendor := strconv.ParseUint(vendor, 16, 16)
	p, errProduct := strconv.ParseUint(product, 16, 16)
	if !ok || errVendor != nil || errProduct != nil || named && serial == "" {
		return s, fmt.Errorf("usb:%s is no card's name; it is usb: or usb:VENDOR:PRODUCT or usb:VENDOR:PRODUCT#SERIAL with numbers in hex, as in usb:%04x:%04x#A1", address, wire.USBVendor, wire.USBProduct)
	}
	return selector{uint16(v), uint16(p), serial}, nil
}

// name returns the full name of a card.
func (s selector) name(serial string) string {
	return fmt.Sprintf("usb:%04x:%04x#%s", s.vendor, s.product, serial)
}

// udevRule is the line that lets who sits at the machine open the card.
func (s selector) udevRule() string {
	return fmt.Sprintf(`SUBSYSTEM=="usb", ATTR{idVendor}=="%04x", ATTR{idProduct}=="%04x", MODE="0660", TAG+="uaccess"`, s.vendor, s.product)
}
