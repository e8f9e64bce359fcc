package emit

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"

	"tributary/driver/wire"
)

// recipeECN is the mark of the recipe's packets.
const recipeECN = wire.ECT0

// ethernetHost is a host on the network of a recipe, or the card.
type ethernetHost struct {
	mac  uint64
	ip   uint32
	port uint16 // of UDP
}

// host returns the host of the member at a port, or of the owner: 192.0.2.1. These addresses are for
// documentation alone (RFC 5737).
func host(port int) ethernetHost {
	n := port - recipeOwner
	return ethernetHost{0x0200_0000_0001 + uint64(n), 192<<24 | 2<<8 | 1 + uint32(n), uint16(50000 + n)}
}

// card returns the address of a new card.
func (r *recipe) card() ethernetHost {
	return ethernetHost{r.plan.MAC, r.plan.IP, uint16(r.plan.UDPPort)}
}

// resolve adds the owner's question for the card's MAC address, and the answer.
func (r *recipe) resolve() {
	owner, card := host(recipeOwner), r.card()
	unknown := ethernetHost{ip: card.ip}
	r.line(fmt.Sprintf("send    %x", arp(1, 1<<48-1, owner, unknown)), "ARP: the MAC address of the card's IPv4 address?")
	r.line(fmt.Sprintf("receive %x", arp(2, owner.mac, card, owner)), "ARP: the answer")
}

// arp returns a frame with a request (operation 1) or a reply (2), to a MAC address.
func arp(operation uint16, to uint64, sender, target ethernetHost) []byte {
	b := ethernetHeader(to, sender.mac, 0x0806)
	b = append(b, 0, 1, 8, 0, 6, 4) // Ethernet, IPv4, the sizes of their addresses
	b = binary.BigEndian.AppendUint16(b, operation)
	for _, h := range []ethernetHost{sender, target} {
		b = binary.BigEndian.AppendUint32(appendMAC(b, h.mac), h.ip)
	}
	return append(b, make([]byte, 60-len(b))...)
}

// stageMembers adds the writes of members' addresses.
func (r *recipe) stageMembers(members int) {
	for port := range members {
		h := host(port)
		r.write(wire.MemberAddr(wire.RegMemberAddress, port), uint64(h.ip)|uint64(h.port)<<32, fmt.Sprintf("MEMBER_ADDRESS of port %d", port), true)
		r.write(wire.MemberAddr(wire.RegMemberMAC, port), h.mac, fmt.Sprintf("MEMBER_MAC of port %d, at Ethernet port 0", port), true)
	}
}

// ethernetFrame returns a frame between the card and the host of a port or the owner.
func (r *recipe) ethernetFrame(kind wire.Kind, f fields, port int, element uint32, bits int) string {
	datagram := r.sharedHeader(kind, f)
	info, _ := kind.Info()
	if info.Payload {
		one := binary.LittleEndian.AppendUint32(nil, element)[:bits/8]
		datagram = append(datagram, slices.Repeat(one, f.length)...)
	}
	datagram = binary.LittleEndian.AppendUint32(datagram, crc32.Checksum(datagram, crc32.MakeTable(wire.CastagnoliPolynomial)))
	from, to := host(port), r.card()
	if info.FromCard {
		from, to = to, from
	}
	return fmt.Sprintf("%x", udpFrame(from, to, datagram))
}

// udpFrame returns a frame without FCS. A datagram of the protocol needs no padding.
func udpFrame(from, to ethernetHost, datagram []byte) []byte {
	const ipBytes, udpBytes = 20, 8
	length := uint16(udpBytes + len(datagram))
	addresses := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, from.ip), to.ip)

	ip := []byte{0x45, byte(recipeECN)}
	ip = binary.BigEndian.AppendUint16(ip, ipBytes+length)
	ip = append(ip, 0, 0, 0x40, 0, 64, 17, 0, 0) // no fragment, 64 hops, UDP
	ip = append(ip, addresses...)
	binary.BigEndian.PutUint16(ip[10:], ^onesSum(0, ip))

	udp := binary.BigEndian.AppendUint16(nil, from.port)
	udp = binary.BigEndian.AppendUint16(udp, to.port)
	udp = binary.BigEndian.AppendUint16(udp, length)
	udp = append(append(udp, 0, 0), datagram...)
	checksum := ^onesSum(uint32(17)+uint32(length), append(addresses, udp...))
	if checksum == 0 {
		checksum = 0xffff // 0 is none
	}
	binary.BigEndian.PutUint16(udp[6:], checksum)
	return slices.Concat(ethernetHeader(to.mac, from.mac, 0x0800), ip, udp)
}

func ethernetHeader(to, from uint64, etherType uint16) []byte {
	return binary.BigEndian.AppendUint16(appendMAC(appendMAC(nil, to), from), etherType)
}

func appendMAC(b []byte, mac uint64) []byte {
	return append(b, binary.BigEndian.AppendUint64(nil, mac)[2:]...)
}

// onesSum adds 16-bit words to a sum, in ones' complement (RFC 1071). A last odd byte is a word's
// high byte.
func onesSum(sum uint32, b []byte) uint16 {
	for i, v := range b {
		sum += uint32(v) << (8 * (1 - i%2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}
