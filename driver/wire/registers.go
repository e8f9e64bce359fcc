package wire

import (
	"encoding/binary"
	"hash/fnv"
)

// Access says what a host may do with a register.
type Access uint8

// The kinds of access. A write to a ReadOnly register is refused with
// CodeReadOnly; a read of a WriteOnly register gives 0 and CodeDone.
const (
	ReadOnly Access = iota
	ReadWrite
	WriteOnly
)

// String returns "RO", "RW" or "WO".
func (a Access) String() string {
	return [...]string{"RO", "RW", "WO"}[a]
}

// Register is one 64-bit register of the card.
type Register struct {
	Name   string // upper case
	Addr   uint32 // byte address, a multiple of 8
	Access Access
	Ident  bool // part of the identification block that ConfigHash covers
	Doc    string
}

// Magic is what the first register holds: "TRIBUTRY", first letter in the
// lowest byte.
const Magic uint64 = 0x5952545542495254

// Addresses of the registers. Counters stand at CounterBase, 8 bytes apart, in
// the order of Counters.
const (
	RegMagic      uint32 = 0x000
	RegVersion    uint32 = 0x008
	RegConfigHash uint32 = 0x010
	RegLanes      uint32 = 0x018
	RegPorts      uint32 = 0x020
	RegFormat     uint32 = 0x028
	RegSum        uint32 = 0x030
	RegShell      uint32 = 0x038
	RegChunk      uint32 = 0x040
	RegWindow     uint32 = 0x048
	RegJobs       uint32 = 0x050
	RegLink       uint32 = 0x058
	RegLatency    uint32 = 0x060

	RegOwner   uint32 = 0x100
	RegRelease uint32 = 0x108
	RegReset   uint32 = 0x110
	RegCycles  uint32 = 0x118

	RegJobToken    uint32 = 0x200
	RegJobPorts    uint32 = 0x208
	RegJobChunk    uint32 = 0x210
	RegJobWindow   uint32 = 0x218
	RegJobDeadline uint32 = 0x220
	RegJobCommit   uint32 = 0x228
	RegJobAbort    uint32 = 0x230

	CounterBase uint32 = 0x400

	// Each job has a block of the registers from here on, JobStride bytes apart;
	// these are those of job 0. See JobAddr.
	JobBase   uint32 = 0x1000
	JobStride uint32 = 0x100

	RegJobState         uint32 = 0x1000
	RegJobFinished      uint32 = 0x1008
	RegJobMembers       uint32 = 0x1010
	RegJobSlots         uint32 = 0x1018
	RegJobNonfiniteIn   uint32 = 0x1020
	RegJobNonfiniteOut  uint32 = 0x1028
	RegJobOverflow      uint32 = 0x1030
	RegJobFirstIn       uint32 = 0x1038
	RegJobFirstOut      uint32 = 0x1040
	RegJobFirstOverflow uint32 = 0x1048
	RegJobEvicted       uint32 = 0x1050

	// MaxJobs is the most jobs that a card can have.
	MaxJobs = 16

	// LagBase is the first of the counts of how late contributions come; see
	// LagAddr.
	LagBase         uint32 = 0x20000
	LagJobStride    uint32 = 0x2000
	LagRankStride   uint32 = 0x80
	LagBucketStride uint32 = 8
	// LagBuckets is how many counts each rank of each job has. Bucket 0 counts
	// contributions that came first of their chunk, bucket k those that came
	// 4^(k-1) cycles later or more, but less than 4^k; the last all later ones.
	LagBuckets = 16
)

// Registers lists every register but the counters, in the order of addresses;
// of those that each job has, job 0's.
var Registers = []Register{
	{"MAGIC", RegMagic, ReadOnly, false, "The letters TRIBUTRY, first letter in the lowest byte."},
	{"VERSION", RegVersion, ReadOnly, false, "Bits 7:0 protocol version."},
	{"CONFIG_HASH", RegConfigHash, ReadOnly, false, "FNV-1a, 64 bits, of the registers of the identification block (LANES to LATENCY) in the order of their addresses, 8 bytes each, lowest byte first."},
	{"LANES", RegLanes, ReadOnly, true, "Elements in a beat."},
	{"PORTS", RegPorts, ReadOnly, true, "Ports of the card: the most members a job can have."},
	{"FORMAT", RegFormat, ReadOnly, true, "Bits 7:0 format of the contributions, bits 15:8 format of the results."},
	{"SUM", RegSum, ReadOnly, true, "Bits 7:0 " + sumNumbers() + "; bit 8 int32 saturates."},
	{"SHELL", RegShell, ReadOnly, true, "0 none, 1 stream."},
	{"CHUNK", RegChunk, ReadOnly, true, "Most elements in a chunk; a job's chunk is a multiple of LANES."},
	{"WINDOW", RegWindow, ReadOnly, true, "Most chunks in a job's window; the card has twice as many slots, for all jobs."},
	{"JOBS", RegJobs, ReadOnly, true, "Jobs that can be set up at once: a power of two, at most 16."},
	{"LINK", RegLink, ReadOnly, true, "Bits the link moves in a cycle; 0 with shell none."},
	{"LATENCY", RegLatency, ReadOnly, true, "Cycles from a chunk's last beat in to its first beat out, at the core."},
	{"OWNER", RegOwner, ReadWrite, false, "The owner's token. A write takes effect only while it is zero; the reply holds what it holds then. A link that goes down clears it."},
	{"RELEASE", RegRelease, WriteOnly, false, "Writing the owner's token clears OWNER and ends all jobs. Done also while OWNER is zero; another token is answered busy."},
	{"RESET", RegReset, WriteOnly, false, "Soft reset: ends all jobs, clears counters and OWNER, keeps each job's last epoch. Takes the owner's token; while OWNER is zero, any."},
	{"CYCLES", RegCycles, ReadOnly, false, "Clock cycles since the hard reset."},
	{"JOB_TOKEN", RegJobToken, ReadWrite, false, "Staged: token of the host that commits. Must equal OWNER, and not be zero, at JOB_COMMIT and JOB_ABORT."},
	{"JOB_PORTS", RegJobPorts, ReadWrite, false, "Staged: the member ports, bit p for port p. Ranks go to them in the order of the ports."},
	{"JOB_CHUNK", RegJobChunk, ReadWrite, false, "Staged: elements in a chunk, a multiple of LANES, at most CHUNK."},
	{"JOB_WINDOW", RegJobWindow, ReadWrite, false, "Staged: chunks in the window, a power of two, at most WINDOW."},
	{"JOB_DEADLINE", RegJobDeadline, ReadWrite, false, "Staged: bits 31:0 clock cycles that a slot is given, 0: as many as it takes; bit 32 partial sums, and eviction, after them."},
	{"JOB_COMMIT", RegJobCommit, WriteOnly, false, "Sets a job up from what is staged, whole or not at all: bits 31:0 first VID, 47:32 epoch, 55:48 job."},
	{"JOB_ABORT", RegJobAbort, WriteOnly, false, "Ends a job: bits 47:32 epoch, 55:48 job. Done also when it has ended already."},
	{"JOB_STATE", RegJobState, ReadOnly, false, "Bit 0 set up, bit 1 an epoch was ever set, bits 31:16 last epoch, 39:32 job."},
	{"JOB_FINISHED", RegJobFinished, ReadOnly, false, "Ranks that have finished."},
	{"JOB_MEMBERS", RegJobMembers, ReadOnly, false, "Member ports of the job, or of the last one; before the first, all ports."},
	{"JOB_SLOTS", RegJobSlots, ReadOnly, false, "The job's slots: bits 15:0 the first, 31:16 how many. 0 while it is not set up."},
	{"JOB_NONFINITE_IN", RegJobNonfiniteIn, ReadOnly, false, "Stored contributions of the job that held a NaN or an infinity; stops at 2^32 - 1."},
	{"JOB_NONFINITE_OUT", RegJobNonfiniteOut, ReadOnly, false, "Elements of the job's sums that are a NaN or an infinity; stops at 2^32 - 1."},
	{"JOB_OVERFLOW", RegJobOverflow, ReadOnly, false, "Elements of the job's sums that overflowed; stops at 2^32 - 1."},
	{"JOB_FIRST_IN", RegJobFirstIn, ReadOnly, false, "First contribution that JOB_NONFINITE_IN counts: bits 31:0 VID, 39:32 rank, bit 63 there is one."},
	{"JOB_FIRST_OUT", RegJobFirstOut, ReadOnly, false, "First sum that JOB_NONFINITE_OUT counts: bits 31:0 VID, bit 63 there is one."},
	{"JOB_FIRST_OVERFLOW", RegJobFirstOverflow, ReadOnly, false, "First sum that JOB_OVERFLOW counts: bits 31:0 VID, bit 63 there is one."},
	{"JOB_EVICTED", RegJobEvicted, ReadOnly, false, "Ranks that were evicted from the job, or from the last one."},
}

// CounterInfo describes a counter: a register of 32 bits that wraps around and
// that a soft reset clears.
type CounterInfo struct {
	Name   string // lower case; the register's name is COUNT_ and this in upper case
	Refuse Code   // the refusal it counts; 0 when it counts none
	Doc    string
}

// Counters lists the counters; the register of counter i is at CounterBase + 8i.
var Counters = []CounterInfo{
	{"frames", 0, "Headers whose CRC held."},
	{"stored", 0, "Contributions stored."},
	{"asks", 0, "Asks accepted."},
	{"finishes", 0, "Finishes accepted."},
	{"chunks", 0, "Chunks reduced."},
	{"beats", 0, "Beats passed through the adder trees."},
	{"results", 0, "Result packets begun."},
	{"replays", 0, "Replay packets begun."},
	{"statuses", 0, "Status packets begun."},
	{"nonfinite_in", 0, "Stored contributions that held a NaN or an infinity."},
	{"nonfinite_out", 0, "Elements of sums that are a NaN or an infinity."},
	{"overflow", 0, "Elements of sums that overflowed: no contribution to them was a NaN or an infinity, and the sum is beyond the format."},
	{"undecided", 0, "Beats whose sum was not decided in one pass through the lanes."},
	{"stalled", 0, "Cycles in which a complete slot was not read because of undecided beats."},
	{"ce", 0, "Stored contributions marked CE."},
	{"overdue", 0, "Slots found overdue."},
	{"partial", 0, "Sums begun that lack a member."},
	{"evictions", 0, "Times that members were evicted."},
	{"hunted", 0, "Bytes passed over in search of a sync word."},
	{"header_crc", 0, "Headers whose CRC was wrong."},
	{"link_down", 0, "Times the link went down."},
	{"bad_version", CodeBadVersion, ""},
	{"bad_kind", CodeBadKind, ""},
	{"bad_job", CodeBadJob, ""},
	{"bad_epoch", CodeBadEpoch, ""},
	{"bad_rank", CodeBadRank, ""},
	{"bad_format", CodeBadFormat, ""},
	{"bad_length", CodeBadLength, ""},
	{"late", CodeLate, ""},
	{"early", CodeEarly, ""},
	{"not_ready", CodeNotReady, ""},
	{"duplicate", CodeDuplicate, ""},
	{"payload_crc", CodePayloadCRC, ""},
	{"evicted", CodeEvicted, ""},
}

// PerJob reports whether each job has a register of this name.
func (r Register) PerJob() bool { return r.Addr >= JobBase }

// JobAddr returns the byte address of a job's register, given that of job 0's.
func JobAddr(addr uint32, job int) uint32 { return addr + JobStride*uint32(job) }

// LagAddr returns the byte address of a count of how late the contributions of
// a rank came.
func LagAddr(job, rank, bucket int) uint32 {
	return LagBase + LagJobStride*uint32(job) + LagRankStride*uint32(rank) + LagBucketStride*uint32(bucket)
}

// SplitLagAddr is the reverse of LagAddr; ok is false for an address that is none
// of those counts on any card.
func SplitLagAddr(addr uint32) (job, rank, bucket int, ok bool) {
	offset := addr - LagBase
	if addr < LagBase || offset >= LagJobStride*MaxJobs || offset%LagBucketStride != 0 {
		return 0, 0, 0, false
	}
	return int(offset / LagJobStride), int(offset % LagJobStride / LagRankStride), int(offset % LagRankStride / LagBucketStride), true
}

// SplitJobAddr is the reverse of JobAddr: it returns what an address is called in
// job 0's block, and the job in whose block it stands. An address in none
// of the blocks that there can be is returned as it is, with job 0.
func SplitJobAddr(addr uint32) (of0 uint32, job int) {
	if addr < JobBase || addr >= JobAddr(JobBase, MaxJobs) {
		return addr, 0
	}
	job = int((addr - JobBase) / JobStride)
	return addr - JobStride*uint32(job), job
}

// LagDoc says what the counts at LagAddr are.
const LagDoc = "Stored contributions of the job's rank that came so late behind the first one of their chunk: bucket 0 came first, bucket k 4^(k-1) cycles later or more but less than 4^k, bucket 15 later still. 32 bits, wrapping; cleared when the job is set up."

// CounterAddr returns the byte address of counter i of Counters.
func CounterAddr(i int) uint32 { return CounterBase + 8*uint32(i) }

// ConfigHash computes the configuration hash from the identification block's
// registers: FNV-1a over the 64-bit values, lowest byte first, in the order of
// their addresses. read returns the value of the register at an address.
func ConfigHash(read func(addr uint32) uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, r := range Registers {
		if r.Ident {
			binary.LittleEndian.PutUint64(b[:], read(r.Addr))
			h.Write(b[:])
		}
	}
	return h.Sum64()
}
