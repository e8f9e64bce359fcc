package rc

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/wire"
)

// Address is a host's place on the network.
type Address struct {
	MAC [6]byte
	IP  netip.Addr // IPv4
}

// Packet is a packet of RoCEv2. Its opcode decides which of RETH, Imm and AETH it has.
type Packet struct {
	From, To   Address
	SourcePort uint16 // UDP
	ECN        wire.ECN

	BTH     wire.BTH
	RETH    wire.RETH
	Imm     uint32
	AETH    wire.AETH
	Payload []byte // without padding
}

// ttl is that of Linux.
const ttl = 64

// Append appends the packet's frame, with ICRC and FCS. UDP's checksum is 0, none.
func (p *Packet) Append(dst []byte) []byte {
	body := p.BTH.Append(nil)
	info, _ := p.BTH.Opcode.Info()
	if info.RETH {
		body = p.RETH.Append(body)
	}
	if info.Imm {
		body = wire.AppendImm(body, p.Imm)
	}
	if info.Acknowledges {
		body = p.AETH.Append(body)
	}
	body = append(body, p.Payload...)
	body = append(body, make([]byte, p.BTH.Pad)...)
	packet := wire.AppendICRC(serialize(
		&layers.IPv4{
			Version: 4, IHL: 5, TOS: uint8(p.ECN), TTL: ttl, Flags: layers.IPv4DontFragment, Protocol: layers.IPProtocolUDP,
			SrcIP: p.From.IP.AsSlice(), DstIP: p.To.IP.AsSlice(), Length: uint16(20 + 8 + len(body) + wire.ICRCBytes),
		},
		&layers.UDP{SrcPort: layers.UDPPort(p.SourcePort), DstPort: layers.UDPPort(wire.RoCEPort), Length: uint16(8 + len(body) + wire.ICRCBytes)},
		gopacket.Payload(body)))
	frame := serialize(
		&layers.Ethernet{SrcMAC: p.From.MAC[:], DstMAC: p.To.MAC[:], EthernetType: layers.EthernetTypeIPv4},
		gopacket.Payload(packet))
	return append(dst, ethernet.AppendFCS(ethernet.Pad(frame))...)
}

// serialize returns the bytes of layers as they are; only IP's checksum is computed.
func serialize(all ...gopacket.SerializableLayer) []byte {
	buffer := gopacket.NewSerializeBuffer()
	for i := len(all) - 1; i >= 0; i-- {
		_, isIP := all[i].(*layers.IPv4)
		if err := all[i].SerializeTo(buffer, gopacket.SerializeOptions{ComputeChecksums: isIP}); err != nil {
			panic(err) // an address that is none
		}
	}
	return append([]byte(nil), buffer.Bytes()...)
}

// Reasons why Parse refuses a frame.
var (
	ErrFCS     = errors.New("rc: wrong FCS")
	ErrForeign = errors.New("rc: no RoCEv2 on IPv4")
	ErrHeader  = errors.New("rc: malformed headers")
	ErrICRC    = errors.New("rc: wrong ICRC")
)

// Parse reads the frame of a packet, with FCS. The packet's payload is a part of frame. The opcode of a
// packet may be unknown; it then has all behind the BTH as its payload.
func Parse(frame []byte) (p Packet, err error) {
	body, ok := ethernet.CutFCS(frame)
	if !ok {
		return Packet{}, ErrFCS
	}
	var (
		ether   layers.Ethernet
		ip      layers.IPv4
		udp     layers.UDP
		payload gopacket.Payload
		found   []gopacket.LayerType
	)
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &ether, &ip, &udp, &payload)
	parser.IgnoreUnsupported = true
	decodeErr := parser.DecodeLayers(body, &found)
	// The decoder stops at the header of a fragment.
	if len(found) < 3 || found[1] != layers.LayerTypeIPv4 || found[2] != layers.LayerTypeUDP || uint16(udp.DstPort) != wire.RoCEPort {
		return Packet{}, ErrForeign
	}
	if decodeErr != nil || parser.Truncated {
		return Packet{}, ErrHeader
	}
	return p, p.read(&ether, &ip, &udp)
}

// read fills the packet from its layers.
func (p *Packet) read(ether *layers.Ethernet, ip *layers.IPv4, udp *layers.UDP) error {
	size := int(ip.Length) - len(ip.Contents)
	if int(udp.Length) != size || !rightChecksum(ip.Contents) {
		return ErrHeader
	}
	bare, ok := wire.CutICRC(append(append([]byte(nil), ip.Contents...), ip.Payload...))
	if !ok {
		return ErrICRC
	}
	p.From, p.To = addressOf(ether.SrcMAC, ip.SrcIP), addressOf(ether.DstMAC, ip.DstIP)
	p.SourcePort, p.ECN = uint16(udp.SrcPort), wire.ECN(ip.TOS&wire.FlagECN)
	return p.readTransport(bare[len(ip.Contents)+8:])
}

// readTransport fills the packet from what follows the UDP header, without ICRC.
func (p *Packet) readTransport(body []byte) error {
	p.BTH, _ = wire.ParseBTH(body) // there, or there would be no ICRC
	rest := body[wire.BTHBytes:]
	info, _ := p.BTH.Opcode.Info()
	if p.BTH.Version != 0 || len(rest) < info.Extra+int(p.BTH.Pad) {
		return ErrHeader
	}
	extra := rest[:info.Extra]
	if info.RETH {
		p.RETH, _ = wire.ParseRETH(extra)
		extra = extra[wire.RETHBytes:]
	}
	if info.Imm {
		p.Imm, _ = wire.ParseImm(extra)
	}
	if info.Acknowledges {
		p.AETH, _ = wire.ParseAETH(extra)
	}
	p.Payload = rest[info.Extra : len(rest)-int(p.BTH.Pad)]
	return nil
}

func addressOf(mac net.HardwareAddr, ip net.IP) Address {
	at, _ := netip.AddrFromSlice(ip.To4())
	return Address{[6]byte(mac), at}
}

// rightChecksum reports whether an IP header's ones' complement sum is that of a correct one (RFC 1071).
func rightChecksum(header []byte) bool {
	var sum uint32
	for ; len(header) >= 2; header = header[2:] {
		sum += uint32(binary.BigEndian.Uint16(header))
	}
	return sum%0xffff == 0 && sum != 0
}
