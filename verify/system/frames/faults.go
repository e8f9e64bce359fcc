package frames

import (
	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"tributary/driver/wire"
)

// Fault is a fault of a datagram's frame.
type Fault struct {
	Name   string
	Reason string // the counter of the frame; "" if it is passed on
	Make   func(s *Datagram)
}

// Faults are in the order of the checks.
var Faults = []Fault{
	{"FCS", "fcs", func(s *Datagram) { s.BadFCS = true }},
	{"runt", "runt", func(s *Datagram) {
		s.Damage = append(s.Damage, func(b []byte) []byte { return b[:59] })
	}},
	{"oversize", "oversize", func(s *Datagram) {
		s.Damage = append(s.Damage, func(b []byte) []byte { return append(b, make([]byte, 9019-len(b))...) })
	}},
	{"other station", "", func(s *Datagram) { s.Ether.DstMAC = HostMAC }},
	{"all stations", "", func(s *Datagram) { s.Ether.DstMAC = ToAll }},
	{"VLAN tag", "", func(s *Datagram) {
		s.Ether.EthernetType = layers.EthernetTypeDot1Q
		s.Tags = []gopacket.SerializableLayer{&layers.Dot1Q{VLANIdentifier: 1, Type: layers.EthernetTypeIPv4}}
	}},
	{"IPv6", "", func(s *Datagram) { s.Ether.EthernetType = layers.EthernetTypeIPv6 }},
	{"version 5", "ip_header", func(s *Datagram) { s.IP.Version = 5 }},
	{"options", "ip_header", func(s *Datagram) { s.IP.IHL = 6 }},
	{"IP checksum", "ip_checksum", func(s *Datagram) {
		s.Damage = append(s.Damage, func(b []byte) []byte { b[25] ^= 1; return b })
	}},
	{"more fragments", "fragment", func(s *Datagram) { s.IP.Flags = layers.IPv4MoreFragments }},
	{"last fragment", "fragment", func(s *Datagram) { s.IP.FragOffset = 185 }},
	{"longer than its frame", "ip_length", func(s *Datagram) { s.SetLengths(len(s.Body) + 1) }},
	{"too short", "ip_length", func(s *Datagram) { s.IP.Length = 27 }},
	{"IP address", "ip_address", func(s *Datagram) { s.IP.DstIP = HostIP }},
	{"TCP", "protocol", func(s *Datagram) { s.IP.Protocol = layers.IPProtocolTCP }},
	{"ICMP, no echo", "protocol", func(s *Datagram) { s.IP.Protocol = layers.IPProtocolICMPv4 }},
	{"UDP too long", "udp_length", func(s *Datagram) { s.UDP.Length++ }},
	{"UDP too short", "udp_length", func(s *Datagram) { s.UDP.Length-- }},
	{"UDP checksum", "checksum", func(s *Datagram) {
		s.Damage = append(s.Damage, func(b []byte) []byte { b[41] ^= 1; return b })
	}},
	{"no UDP checksum", "checksum", func(s *Datagram) {
		s.Damage = append(s.Damage, func(b []byte) []byte { b[40], b[41] = 0, 0; return b })
	}},
	{"UDP port", "udp_port", func(s *Datagram) { s.UDP.DstPort++ }},
	{"short datagram", "short", func(s *Datagram) { s.Body = s.Body[:17]; s.SetLengths(17) }},
	{"CRC", "datagram_crc", func(s *Datagram) { s.Body[17] ^= 1 }},
}

// Question is a datagram for tests to damage: it reads a register.
func Question() []byte { return Access(wire.KindRegRead, wire.RegPorts, 0) }
