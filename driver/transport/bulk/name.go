package bulk

import (
	"fmt"
	"strconv"
	"strings"
)

// Number is the USB number of a kind of device.
type Number struct{ Vendor, Product uint16 }

func (n Number) String() string { return fmt.Sprintf("%04x:%04x", n.Vendor, n.Product) }

// udevRule returns the rule that lets the user at the machine open such devices.
func (n Number) udevRule() string {
	return fmt.Sprintf(`SUBSYSTEM=="usb", ATTR{idVendor}=="%04x", ATTR{idProduct}=="%04x", MODE="0660", TAG+="uaccess"`, n.Vendor, n.Product)
}

// selector is the set of devices that a name selects.
type selector struct {
	*Scheme
	numbers []Number
	serial  string // empty means any
}

// parse parses "", "VENDOR:PRODUCT" or "VENDOR:PRODUCT#SERIAL"; both numbers are in hex.
func (s *Scheme) parse(address string) (selector, error) {
	if address == "" {
		return selector{s, s.Numbers, ""}, nil
	}
	numbers, serial, named := strings.Cut(address, "#")
	vendor, product, ok := strings.Cut(numbers, ":")
	v, errVendor := strconv.ParseUint(vendor, 16, 16)
	p, errProduct := strconv.ParseUint(product, 16, 16)
	if !ok || errVendor != nil || errProduct != nil || named && serial == "" {
		return selector{}, fmt.Errorf("%[1]s:%[2]s is not a card's name; use %[1]s: or %[1]s:VENDOR:PRODUCT or %[1]s:VENDOR:PRODUCT#SERIAL with numbers in hex, as in %[1]s:%[3]s#A1", s.Name, address, s.Numbers[0])
	}
	return selector{s, []Number{{uint16(v), uint16(p)}}, serial}, nil
}

// name returns the full name of a device. Some devices have no serial number.
func (s *Scheme) name(n Number, serial string) string {
	if serial == "" {
		return fmt.Sprintf("%s:%s", s.Name, n)
	}
	return fmt.Sprintf("%s:%s#%s", s.Name, n, serial)
}

// numbered returns the selected numbers as text.
func (s selector) numbered() string {
	var all []string
	for _, n := range s.numbers {
		all = append(all, n.String())
	}
	return strings.Join(all, " or ")
}
