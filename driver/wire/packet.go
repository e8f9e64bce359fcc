// Package wire holds the tables shared by all parts of Tributary: the packet header; its
// kinds, codes, flags and formats; the frame of the byte-stream link; and the card's
// registers.
//
// The tables exist only here. The Verilog header, the Python module of the cocotb
// benches, regs.h, regs.json, PACKET.md and REGISTERS.md are printed from them. The
// package imports no other package of Tributary. It has no behaviour beyond lookups, except for
// RoCEv2, which is not ours: its headers have a codec here, and its ICRC an arithmetic.
//
// SPEC.md in this folder defines the fields and how a card handles them.
package wire

// Version is the protocol version in the low four bits of a header's first byte.
const Version = 2

// Kind is the kind of a packet: the high four bits of a header's first byte.
type Kind uint8

// The kinds of a packet. Kinds below 8 travel from host to card, the others
// from card to host.
const (
	KindData     Kind = 1  // one rank's contribution to one chunk
	KindAsk      Kind = 2  // requests an overdue result
	KindFinish   Kind = 3  // the sender has every result below VID
	KindRegRead  Kind = 4  // reads the register at address VID
	KindRegWrite Kind = 5  // writes mask to the register at address VID
	KindResult   Kind = 8  // a sum, sent to its receivers for the first time
	KindReplay   Kind = 9  // a sum that was already sent to at least one of its receivers
	KindStatus   Kind = 10 // answers an ask or a finish, or reports a refusal
	KindReply    Kind = 11 // answers a register access
)

// KindInfo describes a kind of packet.
type KindInfo struct {
	Kind      Kind
	Name      string // lower case, as printed and as used in identifiers
	FromCard  bool   // travels from card to host
	Mask      bool   // the header has the mask field
	Receivers bool   // the header has the receivers field when it travels on a shared link
	Payload   bool   // a payload of length elements, and its CRC, follow the header
	Doc       string
}

// Kinds lists every kind by number.
var Kinds = []KindInfo{
	{Kind: KindData, Name: "data", Payload: true, Doc: "One rank's contribution to chunk VID of the job's stream."},
	{Kind: KindAsk, Name: "ask", Doc: "Requests the overdue result VID. The card answers with a replay or a status."},
	{Kind: KindFinish, Name: "finish", Doc: "The sender has every result below VID and sends no more data. The sender repeats it until the status `done`."},
	{Kind: KindRegRead, Name: "regread", Doc: "Reads the register at byte address VID. The reply echoes length as a tag."},
	{Kind: KindRegWrite, Name: "regwrite", Mask: true, Doc: "Writes mask to the register at byte address VID. The reply echoes length as a tag."},
	{Kind: KindResult, Name: "result", FromCard: true, Mask: true, Receivers: true, Payload: true, Doc: "The sum of chunk VID; mask lists the contributing ranks."},
	{Kind: KindReplay, Name: "replay", FromCard: true, Mask: true, Receivers: true, Payload: true, Doc: "The same sum, bit for bit, when at least one of its receivers was already sent it."},
	{Kind: KindStatus, Name: "status", FromCard: true, Mask: true, Doc: "Answers an ask or a finish of rank, or refuses a packet of rank; mask lists the ranks whose contribution to VID is missing."},
	{Kind: KindReply, Name: "reply", FromCard: true, Mask: true, Doc: "Answers a register access: code, address in VID, tag in length, value in mask."},
}

// Info returns the table's row for k, and whether it exists.
func (k Kind) Info() (KindInfo, bool) {
	for _, i := range Kinds {
		if i.Kind == k {
			return i, true
		}
	}
	return KindInfo{}, false
}

// String returns the kind's name, or "kind N" for an unknown number.
func (k Kind) String() string {
	if i, ok := k.Info(); ok {
		return i.Name
	}
	return "kind " + itoa(int(k))
}

// HeaderBytes returns the length of the kind's header in bytes, without its
// CRC: 14, 22 with a mask, 30 with a mask and receivers (shared links only).
func (i KindInfo) HeaderBytes(shared bool) int {
	n := BaseHeaderBytes
	if i.Mask {
		n += 8
	}
	if i.Receivers && shared {
		n += 8
	}
	return n
}

// Sizes of a header in bytes, without its CRC.
const (
	BaseHeaderBytes = 14 // every kind
	MaskHeaderBytes = 22 // with a mask
	MaxHeaderBytes  = 30 // with a mask and receivers
)

// Field is one field of the header. Bits are counted from the least
// significant bit of the header read as one little-endian number, so a
// field's first byte is Bit/8.
type Field struct {
	Name string // as in the Go struct, lower case in Verilog and Python
	Bit  int    // position of the least significant bit
	Bits int    // width
	Doc  string
}

// Fields lists the header's fields by position. Every kind has the fields up to
// and including length. Some kinds add mask, or mask and receivers.
var Fields = []Field{
	{"version", 0, 4, "Protocol version, 2."},
	{"kind", 4, 4, "Kind of packet."},
	{"flags", 8, 8, "Bits 1:0 ECN as in IP, bit 2 partial, bit 3 nonfinite; the others are zero."},
	{"job", 16, 8, "Number of the job."},
	{"format", 24, 8, "Format of the payload; 0 without a payload."},
	{"epoch", 32, 16, "Epoch of the job, chosen by the host that sets the job up."},
	{"rank", 48, 8, "Data, ask, finish: the sender's rank. Status: the rank that the card answers. Otherwise 0."},
	{"code", 56, 8, "Status and reply: the outcome. Otherwise 0."},
	{"vid", 64, 32, "Number of the chunk in the job's stream. Registers: the byte address."},
	{"length", 96, 16, "Data, result, replay: elements in the payload. Registers: a tag that the reply echoes. Otherwise 0."},
	{"mask", 112, 64, "Result, replay: ranks in the sum. Status: missing ranks. Registers: the value."},
	{"receivers", 176, 64, "Result, replay on a shared link: the ranks that the packet is for."},
}

// Bits of the flags field.
const (
	FlagECN       = 0x03 // mask of the two ECN bits, as in IP
	FlagPartial   = 0x04 // the sum lacks members of the job
	FlagNonfinite = 0x08 // a contribution to this sum held a NaN or an infinity
)

// ECN is the two-bit congestion mark of a packet, with IP's code points.
type ECN uint8

// The code points of ECN.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// ECNOrder lists the code points from the merge's identity to its absorbing
// element; the merge of two marks is the one further right.
var ECNOrder = [4]ECN{ECT1, ECT0, NotECT, CE}

// Code is the outcome in a status or a reply.
type Code uint8

// The codes. Codes from FirstRefusal on are reasons for a refusal.
const (
	CodeDone          Code = 0
	CodeWait          Code = 1
	CodeSend          Code = 2
	CodeBusy          Code = 3
	CodeOverdue       Code = 4
	CodeBadVersion    Code = 16
	CodeBadKind       Code = 17
	CodeBadJob        Code = 18
	CodeBadEpoch      Code = 19
	CodeBadRank       Code = 20
	CodeBadFormat     Code = 21
	CodeBadLength     Code = 22
	CodeLate          Code = 23
	CodeEarly         Code = 24
	CodeNotReady      Code = 25
	CodeDuplicate     Code = 26
	CodePayloadCRC    Code = 27
	CodeEvicted       Code = 28
	CodeBadAddress    Code = 32
	CodeReadOnly      Code = 33
	CodeBadPorts      Code = 34
	CodeBadChunk      Code = 35
	CodeBadWindow     Code = 36
	CodeStaleEpoch    Code = 37
	CodeEpochInUse    Code = 38
	CodeNoSlots       Code = 39
	CodeBadDeadline   Code = 40
	CodeBadMember     Code = 41
	CodeBadParent     Code = 42
	CodeBadRanks      Code = 43
	CodeBadConnection Code = 44

	FirstRefusal = CodeBadVersion
)

// CodeInfo describes a code.
type CodeInfo struct {
	Code Code
	Name string
	Doc  string
}

// Codes lists every code by number.
var Codes = []CodeInfo{
	{CodeDone, "done", "Accepted: the card recorded the finish or performed the register access."},
	{CodeWait, "wait", "Ask: the card has the rank's contribution; mask lists the missing ranks."},
	{CodeSend, "send", "Ask: the card lacks the rank's contribution, so send the data; mask lists the missing ranks."},
	{CodeBusy, "busy", "Register write: another host owns the card, or the link went down first."},
	{CodeOverdue, "overdue", "Notice: chunk VID has waited longer than the job's deadline for the ranks in mask."},
	{CodeBadVersion, "bad_version", "The header's version differs from the card's."},
	{CodeBadKind, "bad_kind", "Unknown kind, or a kind that a card does not accept."},
	{CodeBadJob, "bad_job", "No job with that number is set up."},
	{CodeBadEpoch, "bad_epoch", "The job is set up with another epoch."},
	{CodeBadRank, "bad_rank", "No member has that rank, or the rank belongs to another link. Counted, never answered."},
	{CodeBadFormat, "bad_format", "The payload's format differs from the job's."},
	{CodeBadLength, "bad_length", "The length differs from the job's chunk, or the payload's size contradicts the length. Register write: bytes are missing."},
	{CodeLate, "late", "The VID is behind the slot's."},
	{CodeEarly, "early", "The VID is ahead of the next one that the slot may accept."},
	{CodeNotReady, "not_ready", "The slot cannot advance to that VID yet; send the packet again."},
	{CodeDuplicate, "duplicate", "The card already has the contribution."},
	{CodePayloadCRC, "payload_crc", "The payload's CRC is wrong. Counted, never answered."},
	{CodeEvicted, "evicted", "The rank was evicted from the job. Also a notice to all ranks; mask lists all evicted ranks."},
	{CodeBadAddress, "bad_address", "No register has that address."},
	{CodeReadOnly, "read_only", "The register is read-only."},
	{CodeBadPorts, "bad_ports", "JOB_PORTS is empty or names a port that the card lacks."},
	{CodeBadChunk, "bad_chunk", "JOB_CHUNK is zero, not a multiple of LANES, or larger than CHUNK."},
	{CodeBadWindow, "bad_window", "JOB_WINDOW is not a power of two, or larger than WINDOW."},
	{CodeStaleEpoch, "stale_epoch", "The epoch is not newer than the job's last epoch."},
	{CodeEpochInUse, "epoch_in_use", "The epoch is the running one, but the parameters differ."},
	{CodeNoSlots, "no_slots", "The free slots cannot hold the job's window."},
	{CodeBadDeadline, "bad_deadline", "JOB_DEADLINE has unknown bits, or requests partial sums without a deadline or in a tree. LEASE is out of its range."},
	{CodeBadMember, "bad_member", "With shell udp: a port of JOB_PORTS has no whole address."},
	{CodeBadParent, "bad_parent", "In a tree: JOB_PARENT, JOB_REPEAT, PARENT_ADDRESS or PARENT_MAC is out of its range, or another job has the upward UDP port."},
	{CodeBadRanks, "bad_ranks", "In a tree: MEMBER_RANKS lacks a member or overlaps, or TREE_RANKS lacks a rank."},
	{CodeBadConnection, "bad_connection", "Under RoCEv2: a connection has no receiver, is registered twice, or its packets have no MTU of RoCEv2."},
}

// Info returns the table's row for c, and whether it exists.
func (c Code) Info() (CodeInfo, bool) {
	for _, i := range Codes {
		if i.Code == c {
			return i, true
		}
	}
	return CodeInfo{}, false
}

// String returns the code's name, or "code N" for an unknown number.
func (c Code) String() string {
	if i, ok := c.Info(); ok {
		return i.Name
	}
	return "code " + itoa(int(c))
}

// Format is the type of a payload's elements.
type Format uint8

// The formats. A card accepts and sends only the formats in its identification block.
const (
	FP32    Format = 1
	BF16    Format = 2
	FP16    Format = 3
	FP8E4M3 Format = 4
	FP8E5M2 Format = 5
	Int32   Format = 6
)

// FormatInfo describes a format.
type FormatInfo struct {
	Format   Format
	Name     string
	Bits     int    // of one element
	Exp      int    // bits of the exponent; 0: a two's complement integer
	Frac     int    // bits of the fraction
	Infinity bool   // has the infinities and NaNs of IEEE 754; else all ones below the sign is the only NaN
	NaN      uint32 // the bits of every NaN result; 0 for integers
}

// FitsIn reports whether g represents every value of f, so that contributions of
// format f may have results of format g.
func (f FormatInfo) FitsIn(g FormatInfo) bool {
	if f.Exp == 0 || g.Exp == 0 {
		return f.Format == g.Format
	}
	return g.Exp >= f.Exp && g.Frac >= f.Frac && (g.Infinity || !f.Infinity)
}

// Info returns the table's row for f, and whether it exists.
func (f Format) Info() (FormatInfo, bool) {
	for _, i := range Formats {
		if i.Format == f {
			return i, true
		}
	}
	return FormatInfo{}, false
}

// String returns the format's name, or "format N" for an unknown number.
func (f Format) String() string {
	if i, ok := f.Info(); ok {
		return i.Name
	}
	return "format " + itoa(int(f))
}

// Formats lists every format by number.
var Formats = []FormatInfo{
	{FP32, "fp32", 32, 8, 23, true, 0x7fc00000},
	{BF16, "bf16", 16, 8, 7, true, 0x7fc0},
	{FP16, "fp16", 16, 5, 10, true, 0x7e00},
	{FP8E4M3, "fp8e4m3", 8, 4, 3, false, 0x7f},
	{FP8E5M2, "fp8e5m2", 8, 5, 2, true, 0x7e},
	{Int32, "int32", 32, 0, 0, false, 0},
}

// Sum is the arithmetic of a card, as its identification block names it.
type Sum uint8

// The sums.
const (
	SumTree  Sum = 1
	SumFused Sum = 2
	SumExact Sum = 3
	SumMax   Sum = 4
)

// SumInfo describes a sum.
type SumInfo struct {
	Sum      Sum
	Name     string            // in hwgen's flags
	Adds     bool              // results are sums of numbers: they overflow, saturate and have a mean
	Identity map[Format]uint32 // contribution of a port that is not a member, in the contributions' format
}

// Sums lists every sum by number.
var Sums = []SumInfo{
	{SumTree, "tree", true, zeros},
	{SumFused, "fused", true, zeros},
	{SumExact, "exact", true, zeros},
	{SumMax, "max", false, lowest},
}

// zeros is the identity of sums that add: -0, and 0 of integers.
var zeros = map[Format]uint32{FP32: 0x80000000, BF16: 0x8000, FP16: 0x8000, FP8E4M3: 0x80, FP8E5M2: 0x80, Int32: 0}

// lowest is the identity of max: -infinity, or the lowest number of a format without infinities.
var lowest = map[Format]uint32{FP32: 0xff800000, BF16: 0xff80, FP16: 0xfc00, FP8E4M3: 0xfe, FP8E5M2: 0xfc, Int32: 0x80000000}

// sumNumbers returns "1 tree, 2 fused" and so on.
func sumNumbers() string {
	list := ""
	for i, row := range Sums {
		if i > 0 {
			list += ", "
		}
		list += itoa(int(row.Sum)) + " " + row.Name
	}
	return list
}

// Info returns the table's row for s, and whether it exists.
func (s Sum) Info() (SumInfo, bool) {
	for _, i := range Sums {
		if i.Sum == s {
			return i, true
		}
	}
	return SumInfo{}, false
}

// Identity returns the contribution of a port that is not a member, in format f. It
// panics when the table lacks the sum or the format.
func (s Sum) Identity(f Format) uint32 {
	i, _ := s.Info()
	bits, ok := i.Identity[f]
	if !ok {
		panic("wire: " + s.String() + " of " + f.String() + " has no identity")
	}
	return bits
}

// String returns the sum's name, or "sum N" for an unknown number.
func (s Sum) String() string {
	if i, ok := s.Info(); ok {
		return i.Name
	}
	return "sum " + itoa(int(s))
}

// Shell is the logic around the core, as named in the identification block.
type Shell uint8

// The shells.
const (
	ShellNone   Shell = 0
	ShellStream Shell = 1
	ShellUDP    Shell = 2
	ShellRoCE   Shell = 3
)

// Shells lists every shell by number, with its name in hwgen's flags.
var Shells = []struct {
	Shell Shell
	Name  string
}{
	{ShellNone, "none"},
	{ShellStream, "stream"},
	{ShellUDP, "udp"},
	{ShellRoCE, "roce"},
}

// Network reports whether cards with the shell are on a network: NETWORK.md.
func (s Shell) Network() bool { return s == ShellUDP || s == ShellRoCE }

// String returns the shell's name, or "shell N" for an unknown number.
func (s Shell) String() string {
	for _, i := range Shells {
		if i.Shell == s {
			return i.Name
		}
	}
	return "shell " + itoa(int(s))
}

// The frame of the byte-stream link: sync word, header, header CRC, payload,
// payload CRC. Both CRCs are CRC-16/CCITT-FALSE, high byte first; the header's
// starts from CRCInit, the payload's from the header's CRC.
const (
	SyncBytes     = 4
	CRCBytes      = 2
	CRCPoly       = 0x1021
	CRCInit       = 0xffff
	MaxFrameBytes = 4095
)

// Sync is the sync word, first byte on the link first.
var Sync = [SyncBytes]byte{0xa5, 'T', 'R', 'B'}

// FrameBytes returns the length in bytes of a frame of this kind on a shared link,
// given the size of its payload in bytes. Only kinds with a payload have a payload CRC.
func (i KindInfo) FrameBytes(payload int) int {
	n := SyncBytes + i.HeaderBytes(true) + CRCBytes
	if i.Payload {
		n += payload + CRCBytes
	}
	return n
}

func itoa(n int) string {
	if n == 0 {
		return "0"
	}
	var b [20]byte
	i := len(b)
	for ; n > 0; n /= 10 {
		i--
		b[i] = byte('0' + n%10)
	}
	return string(b[i:])
}
