package wire

import "slices"

// A card on a network, with shell udp or roce: NETWORK.md.
const (
	// MaxDatagramPayload is the largest payload of a packet in a datagram, in bytes.
	MaxDatagramPayload = 8192

	// DatagramCRCBytes is the length of the CRC-32C at a datagram's end.
	DatagramCRCBytes = 4

	// CastagnoliPolynomial is the polynomial of the CRC-32C, reflected as in hash/crc32.
	CastagnoliPolynomial uint32 = 0x82f63b78

	// NetworkPort is the UDP port of a card whose name gives none.
	NetworkPort uint16 = 0x5442

	// NetworkIP and NetworkMAC are the defaults of a card with Ethernet ports of its own:
	// 192.168.84.66, in a network for private use, and 02:54:52:42:00:01, an address that no vendor has
	// (its second lowest bit is 1).
	NetworkIP  uint32 = 0xc0a85442
	NetworkMAC uint64 = 0x025452420001

	// MaxLease is the longest lease, in clock cycles.
	MaxLease uint64 = 1 << 40

	// LeaseSeconds is the default of LEASE in seconds of the card's clock.
	LeaseSeconds = 5
)

// Addresses of the registers that exist on a network alone. Each port of the core has a pair of
// MEMBER registers, and each job number and port a pair of JOB registers: MemberAddr and TableAddr
// return their addresses from those of port 0 and job 0.
const (
	RegLease       uint32 = 0x128
	RegSource      uint32 = 0x130
	RegSourceMAC   uint32 = 0x138
	RegCardAddress uint32 = 0x140
	RegCardMAC     uint32 = 0x148

	RegMemberAddress uint32 = 0x800
	RegMemberMAC     uint32 = 0x808
	MemberStride     uint32 = 0x10

	RegJobAddress uint32 = 0x40000
	RegJobMAC     uint32 = 0x40008
	TableStride   uint32 = MemberStride * MaxPorts // from one job's entries to the next's
)

// NetworkRegisters lists the registers of cards on a network by address: those that each port has for port 0,
// and those that each job has for job 0.
var NetworkRegisters = []Register{
	{"LEASE", RegLease, ReadWrite, false, "Clock cycles of silence after which the owner loses the card, 1 to 2^40. The default holds again for each owner."},
	{"SOURCE", RegSource, ReadOnly, false, "The sender of this access: bits 31:0 IPv4 address, 47:32 UDP port."},
	{"SOURCE_MAC", RegSourceMAC, ReadOnly, false, "The sender of this access: bits 47:0 MAC address, 55:48 Ethernet port."},
	{"CARD_ADDRESS", RegCardAddress, ReadWrite, false, "The card: bits 31:0 IPv4 address, 47:32 UDP port."},
	{"CARD_MAC", RegCardMAC, ReadWrite, false, "The card: bits 47:0 MAC address."},
	{"MEMBER_ADDRESS", RegMemberAddress, ReadWrite, false, "Staged: bits 31:0 IPv4 address, 47:32 UDP port of the member at the port."},
	{"MEMBER_MAC", RegMemberMAC, ReadWrite, false, "Staged: bits 47:0 MAC address, 55:48 Ethernet port of the member at the port."},
	{"JOB_ADDRESS", RegJobAddress, ReadOnly, false, "The member of the current or last job at the port: bits 31:0 IPv4 address, 47:32 UDP port; 0 for none."},
	{"JOB_MAC", RegJobMAC, ReadOnly, false, "The member of the current or last job at the port: bits 47:0 MAC address, 55:48 Ethernet port."},
}

// NetworkCounters lists the counters that exist on a network alone; they follow those of Counters.
// Those from passed on count frames. A card in software behind a socket has its system's Ethernet, IP
// and UDP, which counts them instead: there they stay 0.
var NetworkCounters = []CounterInfo{
	{"short", 0, "Datagrams of less than 18 bytes."},
	{"datagram_crc", 0, "Datagrams with a wrong CRC-32C."},
	{"stranger", 0, "Data, asks and finishes whose address is not that of their rank."},
	{"lease", 0, "Owners that lost the card by silence."},
	{"dropped", 0, "Datagrams, requests and passing frames dropped because a queue was full."},
	{"passed", 0, "Frames passed on to other Ethernet ports."},
	{"fcs", 0, "Frames with a wrong FCS."},
	{"runt", 0, "Frames of less than 60 bytes."},
	{"oversize", 0, "Frames of more bytes than the card's largest."},
	{"ip_header", 0, "Packets that are not IPv4, or have options."},
	{"ip_checksum", 0, "IPv4 headers with a wrong checksum."},
	{"fragment", 0, "Fragments."},
	{"ip_length", 0, "IPv4 packets longer than their frame, or too short."},
	{"ip_address", 0, "IPv4 packets to another address than the card's."},
	{"protocol", 0, "IPv4 packets of other protocols than UDP and ICMP echo."},
	{"udp_length", 0, "UDP datagrams whose length is not that of their packet."},
	{"checksum", 0, "UDP datagrams and echo requests with a wrong checksum, or without one."},
	{"udp_port", 0, "UDP datagrams to another port than the card's."},
}

// CountersOf lists the counters of a card with that shell; the register of counter i is at
// CounterAddr(i).
func CountersOf(s Shell) []CounterInfo {
	switch s {
	case ShellUDP:
		return slices.Concat(Counters, NetworkCounters)
	case ShellRoCE:
		return slices.Concat(Counters, NetworkCounters, ConnectionCounters)
	}
	return Counters
}

// MemberAddr returns the byte address of a port's MEMBER register, given that of port 0's.
func MemberAddr(addr uint32, port int) uint32 { return addr + MemberStride*uint32(port) }

// TableAddr returns the byte address of a JOB_ADDRESS or JOB_MAC register, given that of job 0's port 0.
func TableAddr(addr uint32, job, port int) uint32 {
	return addr + TableStride*uint32(job) + MemberStride*uint32(port)
}

// SplitMemberAddr is the inverse of MemberAddr. ok is false for an address that is no MEMBER register
// on any card.
func SplitMemberAddr(addr uint32) (of0 uint32, port int, ok bool) {
	offset := addr - RegMemberAddress
	if addr < RegMemberAddress || offset >= MemberStride*MaxPorts || offset%8 != 0 {
		return 0, 0, false
	}
	return RegMemberAddress + offset%MemberStride, int(offset / MemberStride), true
}

// SplitTableAddr is the inverse of TableAddr. ok is false for an address that is no JOB_ADDRESS or
// JOB_MAC register on any card.
func SplitTableAddr(addr uint32) (of0 uint32, job, port int, ok bool) {
	offset := addr - RegJobAddress
	if addr < RegJobAddress || offset >= TableStride*MaxJobs || offset%8 != 0 {
		return 0, 0, 0, false
	}
	within := offset % TableStride
	return RegJobAddress + within%MemberStride, int(offset / TableStride), int(within / MemberStride), true
}

// DatagramBytes returns the size of a datagram: header by kind, payload in bytes, CRC.
func (i KindInfo) DatagramBytes(payload int) int {
	return i.HeaderBytes(true) + payload + DatagramCRCBytes
}
