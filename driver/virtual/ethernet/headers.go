package ethernet

// Offsets of fields in a frame whose IPv4 header has no options, in bytes.
const (
	atDestination = 0
	atSource      = 6
	atEtherType   = 12
	etherBytes    = 14

	atVersion    = etherBytes // and the header's length
	atTOS        = etherBytes + 1
	atIPLength   = etherBytes + 2
	atFragment   = etherBytes + 6
	atProtocol   = etherBytes + 9
	atIPChecksum = etherBytes + 10
	atFromIP     = etherBytes + 12
	atToIP       = etherBytes + 16
	ipBytes      = 20
	atIPData     = etherBytes + ipBytes

	atFromPort    = atIPData
	atToPort      = atIPData + 2
	atUDPLength   = atIPData + 4
	atUDPChecksum = atIPData + 6
	udpBytes      = 8
	atDatagram    = atIPData + udpBytes

	atICMPChecksum = atIPData + 2

	atARP       = etherBytes // begins with arpRequest
	atARPFrom   = etherBytes + 8
	atARPFromIP = etherBytes + 14
	atARPTo     = etherBytes + 18
	atARPToIP   = etherBytes + 24
	arpEnd      = etherBytes + 28
)

// Values of fields.
const (
	etherTypeIPv4 = 0x0800
	etherTypeARP  = 0x0806

	withoutOptions = 0x45 // version 4, a header of 5 words
	dontFragment   = 0x4000
	fragmentBits   = 0x3fff // more fragments, and the offset
	ttl            = 64
	protocolICMP   = 1
	protocolUDP    = 17

	echoRequest = 0x0800 // ICMP's type and code
	echoReply   = 0x0000
)

// The beginnings of ARP packets for IPv4 on Ethernet: hardware, protocol, their sizes, operation.
const (
	arpRequest = 0x0001_0800_0604_0001
	arpReply   = 0x0001_0800_0604_0002
)

type (
	mac [6]byte
	ip  [4]byte
)

// broadcast is the address of all stations.
var broadcast = mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// isGroup reports whether an address is that of several stations.
func (m mac) isGroup() bool { return m[0]&1 != 0 }
