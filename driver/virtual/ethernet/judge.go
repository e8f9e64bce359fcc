package ethernet

import (
	"encoding/binary"
	"slices"
)

// kind is what a card does with a frame.
type kind int

const (
	dropped    kind = iota // and counted
	passedOn               // left to other Ethernet ports
	arpForCard             // a request for the card's MAC address
	echoForCard
	datagramForCard
)

// verdict is the judgement of a frame. reason is the counter of one that is dropped.
type verdict struct {
	kind   kind
	reason string
}

// view is a frame without its FCS, on its way through the checks.
type view struct {
	frame []byte
	whole bool // the FCS held
	own   station
	upper upper // the card's up port, or nil
}

// check is one check of a frame. A check may rely on those before it.
type check struct {
	holds     func(v *view) bool
	otherwise verdict
}

// checks are the checks of NETWORK.md, section 2, in their order.
var checks = []check{
	{func(v *view) bool { return v.whole }, drop("fcs")},
	{func(v *view) bool { return len(v.frame) >= Shortest }, drop("runt")},
	{func(v *view) bool { return len(v.frame) <= Longest }, drop("oversize")},
	{func(v *view) bool { return v.asks() || v.mac(atDestination) == v.own.mac }, verdict{kind: passedOn}},
	{func(v *view) bool { return v.asks() || v.word(atEtherType) == etherTypeIPv4 }, verdict{kind: passedOn}},
	{func(v *view) bool { return !v.asks() }, verdict{kind: arpForCard}},
	{func(v *view) bool { return v.frame[atVersion] == withoutOptions }, drop("ip_header")},
	{func(v *view) bool { return checksum(0).add(v.frame[etherBytes:atIPData]).fold() == 0xffff }, drop("ip_checksum")},
	{func(v *view) bool { return v.word(atFragment)&fragmentBits == 0 }, drop("fragment")},
	{(*view).isAllThere, drop("ip_length")},
	{func(v *view) bool { return v.ip(atToIP) == v.own.ip }, drop("ip_address")},
	{func(v *view) bool { return v.isUDP() || v.isEcho() }, drop("protocol")},
	{func(v *view) bool { return v.isEcho() || int(v.word(atUDPLength)) == len(v.data()) }, drop("udp_length")},
	{(*view).sumsUp, drop("checksum")},
	{func(v *view) bool { return v.isUDP() }, verdict{kind: echoForCard}},
	{(*view).isToACardsPort, drop("udp_port")},
}

// drop is the verdict on a frame that is dropped.
func drop(reason string) verdict { return verdict{dropped, reason} }

// judge judges a frame.
func judge(v *view) verdict {
	for _, c := range checks {
		if !c.holds(v) {
			return c.otherwise
		}
	}
	return verdict{kind: datagramForCard}
}

// The fields of a frame.

func (v *view) word(at int) uint16 { return binary.BigEndian.Uint16(v.frame[at:]) }
func (v *view) mac(at int) mac     { return mac(v.frame[at:]) }
func (v *view) ip(at int) ip       { return ip(v.frame[at:]) }

// asks reports whether the frame is an ARP request for the card's IPv4 address, to all or to the card.
func (v *view) asks() bool {
	to := v.mac(atDestination)
	return v.word(atEtherType) == etherTypeARP && (to == broadcast || to == v.own.mac) &&
		binary.BigEndian.Uint64(v.frame[atARP:]) == arpRequest && v.ip(atARPToIP) == v.own.ip
}

// isAllThere reports whether the IP packet has a header of UDP or ICMP, and is in the frame with all
// its bytes.
func (v *view) isAllThere() bool {
	length := int(v.word(atIPLength))
	return length >= ipBytes+udpBytes && etherBytes+length <= len(v.frame)
}

// data returns what the IP packet carries, without the frame's padding.
func (v *view) data() []byte { return v.frame[atIPData : etherBytes+int(v.word(atIPLength))] }

func (v *view) isUDP() bool { return v.frame[atProtocol] == protocolUDP }

func (v *view) isEcho() bool {
	return v.frame[atProtocol] == protocolICMP && v.word(atIPData) == echoRequest
}

// isToACardsPort reports whether the UDP port is the card's, or one from which it sends to a parent.
func (v *view) isToACardsPort() bool {
	port := v.word(atToPort)
	return port == v.own.port || v.upper != nil && slices.Contains(v.upper.UpwardPorts(), port)
}

// sumsUp reports whether the checksum of UDP or ICMP holds. That of UDP must be there.
func (v *view) sumsUp() bool {
	data := v.data()
	if v.isEcho() {
		return checksum(0).add(data).fold() == 0xffff
	}
	header := pseudoHeader(v.frame[atFromIP:atToIP], v.frame[atToIP:atIPData], len(data))
	return v.word(atUDPChecksum) != 0 && header.add(data).fold() == 0xffff
}
