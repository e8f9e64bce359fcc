package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// Address is where datagrams of a card on a network come from and go to: the values of an ADDRESS
// register and of the MAC register beside it.
type Address struct {
	Station uint64 // bits 31:0 IPv4 address, first byte highest; 47:32 UDP port
	MAC     uint64 // bits 47:0 MAC address, first byte highest; 55:48 number of the Ethernet port
}

// ParseMAC reads a MAC address of one station: not a group's, and not zero. The first byte is the
// highest.
func ParseMAC(text string) (uint64, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return 0, fmt.Errorf("must be a MAC address of 6 bytes, as in %s", MACText(NetworkMAC))
	}
	value := binary.BigEndian.Uint64(append([]byte{0, 0}, mac...))
	if mac[0]&1 != 0 || value == 0 {
		return 0, errors.New("must be the address of one card: its first byte even, and not all zero")
	}
	return value, nil
}

// ParseIP reads an IPv4 address of one station. The first byte is the highest.
func ParseIP(text string) (uint32, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() {
		return 0, fmt.Errorf("must be an IPv4 address, as in %s", IPText(NetworkIP))
	}
	bytes := ip.As4()
	value := binary.BigEndian.Uint32(bytes[:])
	if ip.IsUnspecified() || ip.IsMulticast() || value == 1<<32-1 {
		return 0, errors.New("must be the address of one card")
	}
	return value, nil
}

// MACText writes a MAC address.
func MACText(mac uint64) string {
	return net.HardwareAddr(binary.BigEndian.AppendUint64(nil, mac)[2:]).String()
}

// IPText writes an IPv4 address.
func IPText(ip uint32) string {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, ip))).String()
}
