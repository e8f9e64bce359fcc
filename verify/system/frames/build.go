// Package frames has Ethernet frames for cards with shell udp, good ones and those with a fault, and a
// host in user space that speaks ARP, IPv4 and UDP at a frame port. gopacket makes the frames and reads
// them, so that they share no code with the cards.
package frames

import (
	"encoding/binary"
	"hash/crc32"
	"net"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"tributary/driver/wire"
)

// The card and a host.
var (
	CardMAC = net.HardwareAddr{0x02, 0x54, 0x52, 0x42, 0, 1}
	CardIP  = net.IP{192, 168, 84, 66}
	HostMAC = net.HardwareAddr{0x06, 0x11, 0x22, 0x33, 0x44, 0x55}
	HostIP  = net.IP{192, 168, 84, 1}
	ToAll   = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// Their UDP ports.
const (
	CardPort = 21570
	HostPort = 4660
)

// CardAddress is the card's address in its registers.
var CardAddress = wire.Address{Station: 0x5442_c0a85442, MAC: 0x0254_52420001}

// Closed returns a frame with its FCS.
func Closed(frame []byte) []byte {
	return binary.LittleEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
}

// MustSerialize returns the bytes of layers, with checksums, but with the lengths that they have, padded
// to the shortest frame. It panics if gopacket refuses them.
func MustSerialize(all ...gopacket.SerializableLayer) []byte {
	buffer := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{ComputeChecksums: true}, all...); err != nil {
		panic(err)
	}
	frame := append([]byte(nil), buffer.Bytes()...)
	return append(frame, make([]byte, max(0, 60-len(frame)))...)
}

// Datagram is a datagram of the host on its way to the card, in layers that a test may damage.
type Datagram struct {
	Ether  layers.Ethernet
	Tags   []gopacket.SerializableLayer
	IP     layers.IPv4
	UDP    layers.UDP
	Body   []byte
	Damage []func(frame []byte) []byte // of the frame without FCS
	BadFCS bool
}

// NewDatagram returns a good one.
func NewDatagram(body []byte) *Datagram {
	s := &Datagram{
		Ether: layers.Ethernet{SrcMAC: HostMAC, DstMAC: CardMAC, EthernetType: layers.EthernetTypeIPv4},
		IP:    layers.IPv4{Version: 4, IHL: 5, TTL: 7, TOS: 0xff, Id: 0x1234, Protocol: layers.IPProtocolUDP, SrcIP: HostIP, DstIP: CardIP},
		UDP:   layers.UDP{SrcPort: HostPort, DstPort: CardPort},
		Body:  body,
	}
	s.SetLengths(len(body))
	return s
}

// SetLengths sets the lengths in the headers to those of a datagram of n bytes.
func (s *Datagram) SetLengths(n int) { s.IP.Length, s.UDP.Length = uint16(28+n), uint16(8+n) }

// Bytes returns the frame with its FCS.
func (s *Datagram) Bytes() []byte {
	if err := s.UDP.SetNetworkLayerForChecksum(&s.IP); err != nil {
		panic(err)
	}
	all := append([]gopacket.SerializableLayer{&s.Ether}, s.Tags...)
	b := MustSerialize(append(all, &s.IP, &s.UDP, gopacket.Payload(s.Body))...)
	for _, damage := range s.Damage {
		b = damage(b)
	}
	b = Closed(b)
	if s.BadFCS {
		b[len(b)-1] ^= 0x80
	}
	return b
}

// ARPRequest returns a request of the host for an address.
func ARPRequest(to net.HardwareAddr, wanted net.IP) []byte {
	return Closed(MustSerialize(
		&layers.Ethernet{SrcMAC: HostMAC, DstMAC: to, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPRequest, SourceHwAddress: HostMAC, SourceProtAddress: HostIP,
			DstHwAddress: make([]byte, 6), DstProtAddress: wanted,
		}))
}

// EchoRequest returns an echo request of the host with data.
func EchoRequest(code uint8, data []byte) []byte {
	return Closed(MustSerialize(
		&layers.Ethernet{SrcMAC: HostMAC, DstMAC: CardMAC, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{
			Version: 4, IHL: 5, TTL: 3, TOS: 0xb8, Id: 0x4321, Protocol: layers.IPProtocolICMPv4, SrcIP: HostIP, DstIP: CardIP,
			Length: uint16(28 + len(data)),
		},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, code), Id: 0xbeef, Seq: 0x0102},
		gopacket.Payload(data)))
}

// Strange returns a frame from one station to another, of an EtherType that no card knows.
func Strange(from, to net.HardwareAddr, data ...byte) []byte {
	frame := append(append(append([]byte(nil), to...), from...), 0x88, 0xb5)
	frame = append(frame, data...)
	return Closed(append(frame, make([]byte, max(0, 60-len(frame)))...))
}

// Access returns the datagram of a register access.
func Access(kind wire.Kind, addr uint32, value uint64) []byte {
	d := make([]byte, wire.BaseHeaderBytes)
	d[0] = wire.Version | byte(kind)<<4
	binary.LittleEndian.PutUint32(d[8:], addr)
	if kind == wire.KindRegWrite {
		d = binary.LittleEndian.AppendUint64(d, value)
	}
	return binary.LittleEndian.AppendUint32(d, crc32.Checksum(d, crc32.MakeTable(crc32.Castagnoli)))
}
