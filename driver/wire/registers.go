package wire

import (
	"encoding/binary"
	"hash/fnv"
)

// Access is what a host may do with a register.
type Access uint8

// The kinds of access. The card refuses a write to a ReadOnly register with
// CodeReadOnly. A read of a WriteOnly register returns 0 and CodeDone.
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
	Ident  bool // in the identification block, which ConfigHash covers
	Doc    string
}

// Magic is the value of the first register: "TRIBUTRY", first letter in the
// lowest byte.
const Magic uint64 = 0x5952545542495254

// Addresses of the registers. Counters start at CounterBase, 8 bytes apart, in
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

	RegOwner    uint32 = 0x100
	RegRelease  uint32 = 0x108
	RegReset    uint32 = 0x110
	RegCycles   uint32 = 0x118
	RegLastCode uint32 = 0x120

	RegJobToken    uint32 = 0x200
	RegJobPorts    uint32 = 0x208
	RegJobChunk    uint32 = 0x210
	RegJobWindow   uint32 = 0x218
	RegJobDeadline uint32 = 0x220
	RegJobCommit   uint32 = 0x228
	RegJobAbort    uint32 = 0x230

	CounterBase uint32 = 0x400

	// Each job has a block of registers; blocks are JobStride bytes apart. The
	// addresses below are job 0's. See JobAddr.
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

	// MaxJobs is the maximum number of jobs of a card.
	MaxJobs = 16

	// LagBase is the address of the first lateness count; see LagAddr.
	LagBase         uint32 = 0x20000
	LagJobStride    uint32 = 0x2000
	LagRankStride   uint32 = 0x80
	LagBucketStride uint32 = 8
	// LagBuckets is the number of lateness counts per rank and job. Bucket 0
	// counts contributions that were the first of their chunk. Bucket k counts
	// those 4^(k-1) or more cycles later, but less than 4^k. The last bucket
	// counts all later ones.
	LagBuckets = 16
)

// Registers lists every register except the counters, by address. Registers that
// each job has are listed for job 0 only.
var Registers = []Register{
	{"MAGIC", RegMagic, ReadOnly, false, "The letters TRIBUTRY, first letter in the lowest byte."},
	{"VERSION", RegVersion, ReadOnly, false, "Bits 7:0 protocol version."},
	{"CONFIG_HASH", RegConfigHash, ReadOnly, false, "64-bit FNV-1a hash of the identification block: registers LANES to LATENCY by address, 8 bytes each, lowest byte first."},
	{"LANES", RegLanes, ReadOnly, true, "Elements in a beat."},
	{"PORTS", RegPorts, ReadOnly, true, "Ports of the card: the maximum number of members of a job."},
	{"FORMAT", RegFormat, ReadOnly, true, "Bits 7:0 format of the contributions, bits 15:8 format of the results."},
	{"SUM", RegSum, ReadOnly, true, "Bits 7:0 " + sumNumbers() + "; bit 8 int32 saturates."},
	{"SHELL", RegShell, ReadOnly, true, "0 none, 1 stream, 2 udp, 3 roce."},
	{"CHUNK", RegChunk, ReadOnly, true, "Maximum number of elements in a chunk; a job's chunk is a multiple of LANES."},
	{"WINDOW", RegWindow, ReadOnly, true, "Maximum number of chunks in a job's window; the card has twice as many slots, which all jobs share."},
	{"JOBS", RegJobs, ReadOnly, true, "Maximum number of jobs at a time: a power of two, at most 16."},
	{"LINK", RegLink, ReadOnly, true, "Bits per cycle on the link; 0 with shell none."},
	{"LATENCY", RegLatency, ReadOnly, true, "Cycles from the last beat of a chunk's last contribution at the core's input to the first beat of its sum at the core's output."},
	{"OWNER", RegOwner, ReadWrite, false, "The owner's token. A write takes effect only while OWNER is zero; the reply returns the value after the write. A link that goes down clears it."},
	{"RELEASE", RegRelease, WriteOnly, false, "Writing the owner's token clears OWNER and ends all jobs. The card replies `done` also while OWNER is zero, and `busy` to another token."},
	{"RESET", RegReset, WriteOnly, false, "Soft reset: ends all jobs, clears counters and OWNER, keeps each job's last epoch. Requires the owner's token; any token while OWNER is zero."},
	{"CYCLES", RegCycles, ReadOnly, false, "Clock cycles since the hard reset."},
	{"LAST_CODE", RegLastCode, ReadOnly, false, "Code of the last register write that the card answered; 0 before the first. A read changes nothing."},
	{"JOB_TOKEN", RegJobToken, ReadWrite, false, "Staged: token of the committing host. Must be nonzero and equal OWNER at JOB_COMMIT and JOB_ABORT."},
	{"JOB_PORTS", RegJobPorts, ReadWrite, false, "Staged: mask of the member ports, bit p for port p. Ranks follow the order of the ports."},
	{"JOB_CHUNK", RegJobChunk, ReadWrite, false, "Staged: elements in a chunk, a multiple of LANES, at most CHUNK."},
	{"JOB_WINDOW", RegJobWindow, ReadWrite, false, "Staged: chunks in the window, a power of two, at most WINDOW."},
	{"JOB_DEADLINE", RegJobDeadline, ReadWrite, false, "Staged: bits 31:0 deadline of a slot in clock cycles, 0 for no deadline; bit 32 enables partial sums and eviction after the deadline."},
	{"JOB_COMMIT", RegJobCommit, WriteOnly, false, "Sets a job up from the staged values, completely or not at all: bits 31:0 first VID, 47:32 epoch, 55:48 job."},
	{"JOB_ABORT", RegJobAbort, WriteOnly, false, "Ends a job: bits 47:32 epoch, 55:48 job. The card replies `done` also after the job has ended."},
	{"JOB_STATE", RegJobState, ReadOnly, false, "Bit 0 the job is set up, bit 1 the job has had an epoch, bits 31:16 last epoch, 39:32 job."},
	{"JOB_FINISHED", RegJobFinished, ReadOnly, false, "Ranks that have finished."},
	{"JOB_MEMBERS", RegJobMembers, ReadOnly, false, "Member ports of the current or last job; all ports before the first job."},
	{"JOB_SLOTS", RegJobSlots, ReadOnly, false, "The job's slots: bits 15:0 first slot, 31:16 number of slots. 0 while the job is not set up."},
	{"JOB_NONFINITE_IN", RegJobNonfiniteIn, ReadOnly, false, "Stored contributions of the job with a NaN or an infinity; stops at 2^32 - 1."},
	{"JOB_NONFINITE_OUT", RegJobNonfiniteOut, ReadOnly, false, "Elements of the job's sums that are a NaN or an infinity; stops at 2^32 - 1."},
	{"JOB_OVERFLOW", RegJobOverflow, ReadOnly, false, "Elements of the job's sums that overflowed; stops at 2^32 - 1."},
	{"JOB_FIRST_IN", RegJobFirstIn, ReadOnly, false, "First contribution that JOB_NONFINITE_IN counts: bits 31:0 VID, 39:32 rank, bit 63 valid."},
	{"JOB_FIRST_OUT", RegJobFirstOut, ReadOnly, false, "First sum that JOB_NONFINITE_OUT counts: bits 31:0 VID, bit 63 valid."},
	{"JOB_FIRST_OVERFLOW", RegJobFirstOverflow, ReadOnly, false, "First sum that JOB_OVERFLOW counts: bits 31:0 VID, bit 63 valid."},
	{"JOB_EVICTED", RegJobEvicted, ReadOnly, false, "Ranks evicted from the current or last job."},
}

// CounterInfo describes a counter: a register of 32 bits that wraps around and
// that a soft reset clears.
type CounterInfo struct {
	Name   string // lower case; the register's name is COUNT_ and this in upper case
	Refuse Code   // the refusal it counts; 0 for a counter of anything else
	Doc    string
}

// Counters lists the counters; the register of counter i is at CounterBase + 8i.
var Counters = []CounterInfo{
	{"frames", 0, "Headers with a correct CRC."},
	{"stored", 0, "Contributions stored."},
	{"asks", 0, "Asks accepted."},
	{"finishes", 0, "Finishes accepted."},
	{"chunks", 0, "Chunks reduced."},
	{"beats", 0, "Beats passed through the adder trees."},
	{"results", 0, "Result packets started."},
	{"replays", 0, "Replay packets started."},
	{"statuses", 0, "Status packets started."},
	{"nonfinite_in", 0, "Stored contributions with a NaN or an infinity."},
	{"nonfinite_out", 0, "Elements of sums that are a NaN or an infinity."},
	{"overflow", 0, "Elements of sums that overflowed: every contribution was finite, but the sum exceeds the format's range."},
	{"undecided", 0, "Beats whose sum one pass through the lanes did not decide."},
	{"stalled", 0, "Cycles in which undecided beats delayed the read of a complete slot."},
	{"ce", 0, "Stored contributions marked CE."},
	{"overdue", 0, "Slots found overdue."},
	{"partial", 0, "Sums started that lack a member."},
	{"evictions", 0, "Evictions; one eviction may remove several members."},
	{"hunted", 0, "Bytes skipped in search of a sync word."},
	{"header_crc", 0, "Headers with a wrong CRC."},
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

// LagAddr returns the byte address of the lateness count of a bucket of a job's rank.
func LagAddr(job, rank, bucket int) uint32 {
	return LagBase + LagJobStride*uint32(job) + LagRankStride*uint32(rank) + LagBucketStride*uint32(bucket)
}

// SplitLagAddr is the inverse of LagAddr. ok is false for an address that is not a
// lateness count on any card.
func SplitLagAddr(addr uint32) (job, rank, bucket int, ok bool) {
	offset := addr - LagBase
	if addr < LagBase || offset >= LagJobStride*MaxJobs || offset%LagBucketStride != 0 {
		return 0, 0, 0, false
	}
	return int(offset / LagJobStride), int(offset % LagJobStride / LagRankStride), int(offset % LagRankStride / LagBucketStride), true
}

// SplitJobAddr is the inverse of JobAddr: it returns the address of the same
// register in job 0's block, and the job. It returns an address outside the blocks
// of all possible jobs unchanged, with job 0.
func SplitJobAddr(addr uint32) (of0 uint32, job int) {
	if addr < JobBase || addr >= JobAddr(JobBase, MaxJobs) {
		return addr, 0
	}
	job = int((addr - JobBase) / JobStride)
	return addr - JobStride*uint32(job), job
}

// LagDoc describes the counts at LagAddr.
const LagDoc = "Lateness histogram of the rank's stored contributions, in cycles after the first contribution to their chunk: bucket 0 counts first contributions, bucket k those from 4^(k-1) up to but excluding 4^k, bucket 15 all later ones. 32 bits, wraps around; a job's setup clears it."

// CounterAddr returns the byte address of counter i of Counters.
func CounterAddr(i int) uint32 { return CounterBase + 8*uint32(i) }

// ConfigHash computes the configuration hash from the identification block's
// registers: FNV-1a over the 64-bit values, lowest byte first, by address. read
// returns the value of the register at an address.
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
