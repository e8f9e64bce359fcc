package wire

// Trees of cards: TREES.md.

// ShellParentFlag is the bit of SHELL that a card with an up port sets.
const ShellParentFlag uint64 = 1 << 8

// MaxRepeat is the largest JOB_REPEAT, in clock cycles.
const MaxRepeat uint64 = 1 << 24

// The parts of JOB_PARENT and JOB_UP.
const (
	ParentTree      uint64 = 1    // the job is a tree job
	ParentRankShift        = 8    // 8 bits: the card's rank at its parent
	ParentRankBits  uint64 = 0xff // of the rank, shifted down
	ParentPortShift        = 16   // 16 bits, with shell udp: the upward UDP port
	ParentPortBits  uint64 = 0xffff

	refusalVIDShift = 32 // in JOB_UP_REFUSAL
)

// Addresses of the registers of trees of cards. They exist on cards with an up port alone, PARENT_ADDRESS
// and PARENT_MAC with shell udp alone. RanksAddr and JobRanksAddr return the addresses of each port and job from those of port 0 and
// job 0. JOB_UP, JOB_TREE and JOB_UP_REFUSAL are in a job's block: JobAddr has their addresses.
const (
	RegParentAddress uint32 = 0x150
	RegParentMAC     uint32 = 0x158

	RegJobParent uint32 = 0x238
	RegJobRepeat uint32 = 0x240
	RegTreeRanks uint32 = 0x248

	// UpCounterBase is the address of the first counter of UpCounters. It is the same for every shell.
	UpCounterBase uint32 = 0x600

	RegMemberRanks uint32 = 0xc00
	RanksStride    uint32 = 8

	RegJobUp        uint32 = 0x1058
	RegJobTree      uint32 = 0x1060
	RegJobUpRefusal uint32 = 0x1068

	RegJobRanks      uint32 = 0x44000
	RanksTableStride uint32 = RanksStride * MaxPorts // from one job's ranks to the next's
)

// TreeRegisters lists the registers of trees of cards by address: those that each port has for port 0,
// and those that each job has for job 0.
var TreeRegisters = []Register{
	{"PARENT_ADDRESS", RegParentAddress, ReadWrite, false, "Staged, with shell udp: bits 31:0 IPv4 address, 47:32 UDP port of the parent."},
	{"PARENT_MAC", RegParentMAC, ReadWrite, false, "Staged, with shell udp: bits 47:0 MAC address, 55:48 Ethernet port of the parent."},
	{"JOB_PARENT", RegJobParent, ReadWrite, false, "Staged: bit 0 the job is a tree job, bits 15:8 the card's rank at its parent, 31:16 with shell udp the upward UDP port."},
	{"JOB_REPEAT", RegJobRepeat, ReadWrite, false, "Staged: clock cycles between two sendings of one own sum, 1 to 2^24 for a tree job."},
	{"TREE_RANKS", RegTreeRanks, ReadWrite, false, "Staged: global ranks of all workers of the tree."},
	{"MEMBER_RANKS", RegMemberRanks, ReadWrite, false, "Staged: global ranks that the member at the port stands for."},
	{"JOB_UP", RegJobUp, ReadOnly, false, "JOB_PARENT of the current or last job."},
	{"JOB_TREE", RegJobTree, ReadOnly, false, "TREE_RANKS of the current or last job."},
	{"JOB_UP_REFUSAL", RegJobUpRefusal, ReadOnly, false, "The parent's last refusal: bits 7:0 code, 63:32 VID; 0 for none since the set-up."},
	{"JOB_RANKS", RegJobRanks, ReadOnly, false, "MEMBER_RANKS of the current or last job at the port; 0 for a port that is no member."},
}

// UpCounters lists the counters of cards with an up port; the register of counter i is at
// UpCounterAddr(i).
var UpCounters = []CounterInfo{
	{"up_sent", 0, "Packets that left for the parent."},
	{"up_repeats", 0, "Repeats that owed the parent a sum or a finish again."},
	{"up_taken", 0, "Final sums taken."},
	{"up_dropped", 0, "Packets at the up port that were dropped."},
	{"up_refused", 0, "Refusals of the parent."},
}

// UpCounterAddr returns the byte address of counter i of UpCounters.
func UpCounterAddr(i int) uint32 { return UpCounterBase + 8*uint32(i) }

// RanksAddr returns the byte address of a port's MEMBER_RANKS.
func RanksAddr(port int) uint32 { return RegMemberRanks + RanksStride*uint32(port) }

// JobRanksAddr returns the byte address of the JOB_RANKS of a job number and port.
func JobRanksAddr(job, port int) uint32 {
	return RegJobRanks + RanksTableStride*uint32(job) + RanksStride*uint32(port)
}

// SplitRanksAddr is the inverse of RanksAddr. ok is false for an address that is no MEMBER_RANKS on any
// card.
func SplitRanksAddr(addr uint32) (port int, ok bool) {
	if addr < RegMemberRanks || addr >= RanksAddr(MaxPorts) || addr%8 != 0 {
		return 0, false
	}
	return int((addr - RegMemberRanks) / RanksStride), true
}

// SplitJobRanksAddr is the inverse of JobRanksAddr. ok is false for an address that is no JOB_RANKS on
// any card.
func SplitJobRanksAddr(addr uint32) (job, port int, ok bool) {
	if addr < RegJobRanks || addr >= JobRanksAddr(MaxJobs, 0) || addr%8 != 0 {
		return 0, 0, false
	}
	offset := addr - RegJobRanks
	return int(offset / RanksTableStride), int(offset % RanksTableStride / RanksStride), true
}

// Upward returns the value of JOB_PARENT for a tree job: the card's rank at its parent, and with shell
// udp the upward UDP port.
func Upward(rank uint8, port uint16) uint64 {
	return ParentTree | uint64(rank)<<ParentRankShift | uint64(port)<<ParentPortShift
}

// UpRefusal returns the value of JOB_UP_REFUSAL for a refusal of a VID.
func UpRefusal(code Code, vid uint32) uint64 { return uint64(code) | uint64(vid)<<refusalVIDShift }

// SplitUpRefusal is the inverse of UpRefusal.
func SplitUpRefusal(value uint64) (code Code, vid uint32) {
	return Code(value), uint32(value >> refusalVIDShift)
}
