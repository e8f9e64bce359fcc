package wire

// A card under RoCEv2, with shell roce: ROCE.md.

// ConnectionBits are the parts of MEMBER_CONNECTION and JOB_CONNECTION: the receiver's QPN in the lowest bits,
// then the first PSN, then the receiver's port of the core.
const (
	ConnectionPSNShift          = 24
	ConnectionPortShift         = 48
	ConnectionNumberBits        = 24 // of a QPN and a PSN
	ConnectionPortBits          = 8
	MaxConnections              = 64 // ports times jobs of a card
	FirstQPN             uint32 = 2  // those below belong to management
)

// ConnectionMTUs lists the MTUs of a job's connections in bytes.
var ConnectionMTUs = []int{256, 512, 1024, 2048, 4096}

// Addresses of the registers that exist with shell roce alone. ConnectionAddr, JobConnectionAddr and NeighbourAddr
// return the addresses of each port and job from those of port 0 and job 0.
const (
	RegJobDisconnect uint32 = 0x250

	RegMemberConnection uint32 = 0x2000
	ConnectionStride    uint32 = 8

	RegNeighbourAddress uint32 = 0x2400
	RegNeighbourMAC     uint32 = 0x2408
	NeighbourStride     uint32 = 0x10

	RegJobConnection      uint32 = 0x48000
	ConnectionTableStride uint32 = ConnectionStride * MaxPorts // from one job's connections to the next's
)

// ConnectionRegisters lists the registers of shell roce by address: those that each port has for port 0, and
// those that each job has for job 0.
var ConnectionRegisters = []Register{
	{"JOB_DISCONNECT", RegJobDisconnect, WriteOnly, false, "Removes the connections of the job number that is written, if it is not set up."},
	{"MEMBER_CONNECTION", RegMemberConnection, ReadWrite, false, "Staged: the connection from the member at the port: bits 23:0 the receiver's QPN, 47:24 the first PSN, 55:48 the receiver's port of the core."},
	{"NEIGHBOUR_ADDRESS", RegNeighbourAddress, ReadWrite, false, "With one Ethernet port: bits 31:0 IPv4 address of a host for which the card relays frames; 0 for none."},
	{"NEIGHBOUR_MAC", RegNeighbourMAC, ReadWrite, false, "With one Ethernet port: bits 47:0 MAC address of that host."},
	{"JOB_CONNECTION", RegJobConnection, ReadOnly, false, "MEMBER_CONNECTION of the registered connection of a job number at the port; 0 for none."},
}

// ConnectionCounters lists the counters that exist with shell roce alone; they follow those of NetworkCounters.
var ConnectionCounters = []CounterInfo{
	{"roce_header", 0, "Frames of registered connections with a wrong header of IP, UDP or RoCEv2."},
	{"roce_icrc", 0, "Frames of registered connections with a wrong ICRC."},
	{"roce_source", 0, "Frames of registered connections from another sender than the member."},
	{"roce_opcode", 0, "Frames of registered connections that are neither data packets nor acknowledgements."},
	{"roce_length", 0, "Data packets without one MTU of payload."},
	{"roce_hidden", 0, "Frames to a receiver with a VLAN tag or IP options, which hide the transport header."},
	{"released_early", 0, "Sums released while the one before them is missing."},
	{"relayed", 0, "Frames relayed to neighbours."},
}

// ConnectionAddr returns the byte address of a port's MEMBER_CONNECTION.
func ConnectionAddr(port int) uint32 { return RegMemberConnection + ConnectionStride*uint32(port) }

// JobConnectionAddr returns the byte address of the JOB_CONNECTION of a job number and port.
func JobConnectionAddr(job, port int) uint32 {
	return RegJobConnection + ConnectionTableStride*uint32(job) + ConnectionStride*uint32(port)
}

// NeighbourAddr returns the byte address of a neighbour's register, given that of neighbour 0's.
func NeighbourAddr(addr uint32, number int) uint32 { return addr + NeighbourStride*uint32(number) }

// SplitConnectionAddr is the inverse of ConnectionAddr. ok is false for an address that is no MEMBER_CONNECTION
// on any card.
func SplitConnectionAddr(addr uint32) (port int, ok bool) {
	offset := addr - RegMemberConnection
	if addr < RegMemberConnection || offset >= ConnectionStride*MaxPorts || offset%8 != 0 {
		return 0, false
	}
	return int(offset / ConnectionStride), true
}

// SplitJobConnectionAddr is the inverse of JobConnectionAddr. ok is false for an address that is no
// JOB_CONNECTION on any card.
func SplitJobConnectionAddr(addr uint32) (job, port int, ok bool) {
	offset := addr - RegJobConnection
	if addr < RegJobConnection || offset >= ConnectionTableStride*MaxJobs || offset%8 != 0 {
		return 0, 0, false
	}
	return int(offset / ConnectionTableStride), int(offset % ConnectionTableStride / ConnectionStride), true
}

// SplitNeighbourAddr is the inverse of NeighbourAddr. ok is false for an address that is no NEIGHBOUR register
// on any card.
func SplitNeighbourAddr(addr uint32) (of0 uint32, number int, ok bool) {
	offset := addr - RegNeighbourAddress
	if addr < RegNeighbourAddress || offset >= NeighbourStride*MaxPorts || offset%8 != 0 {
		return 0, 0, false
	}
	return RegNeighbourAddress + offset%NeighbourStride, int(offset / NeighbourStride), true
}
