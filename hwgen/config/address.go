package config

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// Defaults of the card's own address: a MAC address that is locally administered, and a private IPv4
// address. Both have letters of the project's name in them.
const (
	defaultMAC = "02:54:52:42:00:01"
	defaultIP  = "192.168.84.66"
)

// ParseMAC reads a MAC address of one card: not a group's, and not zero. The first byte is the highest.
func ParseMAC(text string) (uint64, error) {
	mac, err := net.ParseMAC(text)
	if err != nil || len(mac) != 6 {
		return 0, fmt.Errorf("%s: must be a MAC address of 6 bytes, as in %s", text, defaultMAC)
	}
	value := binary.BigEndian.Uint64(append([]byte{0, 0}, mac...))
	if mac[0]&1 != 0 || value == 0 {
		return 0, fmt.Errorf("%s: must be the address of one card: its first byte even, and not all zero", text)
	}
	return value, nil
}

// ParseIP reads an IPv4 address of one card. The first byte is the highest.
func ParseIP(text string) (uint32, error) {
	ip, err := netip.ParseAddr(text)
	if err != nil || !ip.Is4() {
		return 0, fmt.Errorf("%s: must be an IPv4 address, as in %s", text, defaultIP)
	}
	bytes := ip.As4()
	value := binary.BigEndian.Uint32(bytes[:])
	if ip.IsUnspecified() || ip.IsMulticast() || value == 1<<32-1 {
		return 0, fmt.Errorf("%s: must be the address of one card", text)
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
