package ethernet_test

import (
	"encoding/binary"
	"hash/crc32"
	"net"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/require"

	"tributary/driver/wire"
)

// The stations of the tests.
var (
	cardMAC = net.HardwareAddr{0x02, 0x54, 0x52, 0x42, 0, 1}
	cardIP  = net.IP{192, 168, 84, 66}
	hostMAC = net.HardwareAddr{0x06, 0x11, 0x22, 0x33, 0x44, 0x55}
	hostIP  = net.IP{192, 168, 84, 1}
	toAll   = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

const (
	cardPort = 21570
	hostPort = 4660
)

// cardAddress is the card's address in its registers.
var cardAddress = wire.Address{Station: 0x5442_c0a85442, MAC: 0x0254_52420001}

// closed returns a frame with its FCS.
func closed(frame []byte) []byte {
	return binary.LittleEndian.AppendUint32(frame, crc32.ChecksumIEEE(frame))
}

// serialized returns the bytes of layers, with checksums, but with the lengths that they have, padded
// to the shortest frame.
func serialized(t testing.TB, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buffer := gopacket.NewSerializeBuffer()
	require.NoError(t, gopacket.SerializeLayers(buffer, gopacket.SerializeOptions{ComputeChecksums: true}, all...))
	frame := append([]byte(nil), buffer.Bytes()...)
	return append(frame, make([]byte, max(0, 60-len(frame)))...)
}

// sent is a datagram of the host on its way to the card, in layers that a test may damage.
type sent struct {
	ether  layers.Ethernet
	tag    []gopacket.SerializableLayer
	ip     layers.IPv4
	udp    layers.UDP
	body   []byte
	damage []func(frame []byte) []byte // of the frame without FCS
	badFCS bool
}

// newSent returns a good one.
func newSent(body []byte) *sent {
	s := &sent{
		ether: layers.Ethernet{SrcMAC: hostMAC, DstMAC: cardMAC, EthernetType: layers.EthernetTypeIPv4},
		ip:    layers.IPv4{Version: 4, IHL: 5, TTL: 7, TOS: 0xff, Id: 0x1234, Protocol: layers.IPProtocolUDP, SrcIP: hostIP, DstIP: cardIP},
		udp:   layers.UDP{SrcPort: hostPort, DstPort: cardPort},
		body:  body,
	}
	s.lengths(len(body))
	return s
}

// lengths sets the lengths in the headers to those of a datagram of n bytes.
func (s *sent) lengths(n int) { s.ip.Length, s.udp.Length = uint16(28+n), uint16(8+n) }

// frame returns the frame with its FCS.
func (s *sent) frame(t testing.TB) []byte {
	t.Helper()
	require.NoError(t, s.udp.SetNetworkLayerForChecksum(&s.ip))
	all := append([]gopacket.SerializableLayer{&s.ether}, s.tag...)
	b := serialized(t, append(all, &s.ip, &s.udp, gopacket.Payload(s.body))...)
	for _, damage := range s.damage {
		b = damage(b)
	}
	b = closed(b)
	if s.badFCS {
		b[len(b)-1] ^= 0x80
	}
	return b
}

// arpRequest returns a request of the host for an address.
func arpRequest(t testing.TB, to net.HardwareAddr, wanted net.IP) []byte {
	t.Helper()
	return closed(serialized(t,
		&layers.Ethernet{SrcMAC: hostMAC, DstMAC: to, EthernetType: layers.EthernetTypeARP},
		&layers.ARP{
			AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: layers.ARPRequest, SourceHwAddress: hostMAC, SourceProtAddress: hostIP,
			DstHwAddress: make([]byte, 6), DstProtAddress: wanted,
		}))
}

// echoRequest returns an echo request of the host with data.
func echoRequest(t testing.TB, code uint8, data []byte) []byte {
	t.Helper()
	return closed(serialized(t,
		&layers.Ethernet{SrcMAC: hostMAC, DstMAC: cardMAC, EthernetType: layers.EthernetTypeIPv4},
		&layers.IPv4{
			Version: 4, IHL: 5, TTL: 3, TOS: 0xb8, Id: 0x4321, Protocol: layers.IPProtocolICMPv4, SrcIP: hostIP, DstIP: cardIP,
			Length: uint16(28 + len(data)),
		},
		&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoRequest, code), Id: 0xbeef, Seq: 0x0102},
		gopacket.Payload(data)))
}

// strange returns a frame from one station to another, of an EtherType that no card knows.
func strange(from, to net.HardwareAddr, data ...byte) []byte {
	frame := append(append(append([]byte(nil), to...), from...), 0x88, 0xb5)
	frame = append(frame, data...)
	return closed(append(frame, make([]byte, max(0, 60-len(frame)))...))
}

// access returns the datagram of a register access.
func access(kind wire.Kind, addr uint32, value uint64) []byte {
	d := make([]byte, wire.BaseHeaderBytes)
	d[0] = wire.Version | byte(kind)<<4
	binary.LittleEndian.PutUint32(d[8:], addr)
	if kind == wire.KindRegWrite {
		d = binary.LittleEndian.AppendUint64(d, value)
	}
	return binary.LittleEndian.AppendUint32(d, crc32.Checksum(d, crc32.MakeTable(crc32.Castagnoli)))
}
