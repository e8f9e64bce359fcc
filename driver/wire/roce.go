package wire

import "encoding/binary"

// RoCEv2, as cards with shell roce and their endpoints use it: the headers and opcodes of the InfiniBand
// Architecture Specification, volume 1 (release 1.4, chapter 9, and annex A17 for RoCEv2). Only what one
// of them takes, passes or refuses is here. ICRC is in icrc.go.

// RoCEPort is the UDP port to which all packets of RoCEv2 go.
const RoCEPort uint16 = 4791

// Sizes of headers in bytes.
const (
	BTHBytes       = 12
	RETHBytes      = 16
	ImmBytes       = 4
	AETHBytes      = 4
	IETHBytes      = 4
	DETHBytes      = 8
	AtomicBytes    = 28
	AtomicAckBytes = 8
	CNPBytes       = 16 // reserved bytes of a CNP
	ICRCBytes      = 4
)

// Values of the BTH's fields.
const (
	PSNBits   = 24
	PSNs      = 1 << PSNBits // packet sequence numbers are counted modulo this number
	MaxQPN    = 1<<24 - 1
	PKey      = 0xffff // the default partition, full member
	WordBytes = 4      // a payload is padded to a multiple
)

// MTUs lists the path MTUs, which are payloads in bytes, in ascending order.
var MTUs = []int{256, 512, 1024, 2048, 4096}

// RoCEHeader is a header's fields. Field.Bit counts from the first bit on the wire, the highest of byte 0;
// a field's bits are in descending order.
type RoCEHeader struct {
	Name   string
	Bytes  int
	Fields []Field
}

// RoCEHeaders lists the headers that have codecs here.
var RoCEHeaders = []RoCEHeader{
	{"BTH", BTHBytes, []Field{
		{"opcode", 0, 8, "Opcode: transport and operation."},
		{"solicited", 8, 1, "The receiver's completion raises an event."},
		{"migreq", 9, 1, "Path migration: 1 as long as the queue pair has not moved."},
		{"pad", 10, 2, "Bytes of padding behind the payload."},
		{"version", 12, 4, "Version of the transport header, 0."},
		{"pkey", 16, 16, "Partition key."},
		{"fecn", 32, 1, "Unused in RoCEv2, 0. ICRC does not cover it."},
		{"becn", 33, 1, "1 in a CNP. ICRC does not cover it."},
		{"resv8a", 34, 6, "Reserved. ICRC does not cover it."},
		{"destqp", 40, 24, "Queue pair of the destination."},
		{"ackreq", 64, 1, "The responder must acknowledge this packet."},
		{"resv7", 65, 7, "Reserved."},
		{"psn", 72, 24, "Packet sequence number."},
	}},
	{"RETH", RETHBytes, []Field{
		{"va", 0, 64, "Address in the remote memory."},
		{"rkey", 64, 32, "Key of the remote memory."},
		{"length", 96, 32, "Bytes of the whole message."},
	}},
	{"ImmDt", ImmBytes, []Field{
		{"imm", 0, 32, "Immediate data, handed to the receiver's completion."},
	}},
	{"AETH", AETHBytes, []Field{
		{"syndrome", 0, 8, "Bits 6:5 ACK, RNR NAK or NAK; bits 4:0 credits, timer or code."},
		{"msn", 8, 24, "Messages that the responder has completed."},
	}},
}

// Opcode is the operation of a packet, the BTH's first byte.
type Opcode uint8

// The opcodes of reliable connections (RC).
const (
	OpSendFirst       Opcode = 0x00
	OpSendMiddle      Opcode = 0x01
	OpSendLast        Opcode = 0x02
	OpSendLastImm     Opcode = 0x03
	OpSendOnly        Opcode = 0x04
	OpSendOnlyImm     Opcode = 0x05
	OpWriteFirst      Opcode = 0x06
	OpWriteMiddle     Opcode = 0x07
	OpWriteLast       Opcode = 0x08
	OpWriteLastImm    Opcode = 0x09
	OpWriteOnly       Opcode = 0x0a
	OpWriteOnlyImm    Opcode = 0x0b
	OpReadRequest     Opcode = 0x0c
	OpReadFirst       Opcode = 0x0d // of the response
	OpReadMiddle      Opcode = 0x0e
	OpReadLast        Opcode = 0x0f
	OpReadOnly        Opcode = 0x10
	OpAcknowledge     Opcode = 0x11
	OpAtomicAck       Opcode = 0x12
	OpCompareSwap     Opcode = 0x13
	OpFetchAdd        Opcode = 0x14
	OpSendLastInvalid Opcode = 0x16
	OpSendOnlyInvalid Opcode = 0x17
	OpUDSendOnly      Opcode = 0x64
	OpUDSendOnlyImm   Opcode = 0x65
	OpCNP             Opcode = 0x81 // congestion notification packet
)

// OpcodeInfo describes an opcode.
type OpcodeInfo struct {
	Opcode Opcode
	Name   string // lower case, words joined by underscores
	Extra  int    // bytes of extended headers between BTH and payload

	Send, Write  bool // a packet of a SEND or RDMA WRITE of a reliable connection
	First, Last  bool // of those: begins, or ends, a message
	RETH, Imm    bool // of those: has this header; RETH precedes ImmDt
	Acknowledges bool // an ACK or NAK: AETH alone, no payload
}

// Data reports whether the packet carries a part of a message that a card with shell roce may sum.
func (i OpcodeInfo) Data() bool { return i.Send || i.Write }

// Opcodes lists every opcode by number.
var Opcodes = []OpcodeInfo{
	{Opcode: OpSendFirst, Name: "send_first", Send: true, First: true},
	{Opcode: OpSendMiddle, Name: "send_middle", Send: true},
	{Opcode: OpSendLast, Name: "send_last", Send: true, Last: true},
	{Opcode: OpSendLastImm, Name: "send_last_imm", Extra: ImmBytes, Send: true, Last: true, Imm: true},
	{Opcode: OpSendOnly, Name: "send_only", Send: true, First: true, Last: true},
	{Opcode: OpSendOnlyImm, Name: "send_only_imm", Extra: ImmBytes, Send: true, First: true, Last: true, Imm: true},
	{Opcode: OpWriteFirst, Name: "write_first", Extra: RETHBytes, Write: true, First: true, RETH: true},
	{Opcode: OpWriteMiddle, Name: "write_middle", Write: true},
	{Opcode: OpWriteLast, Name: "write_last", Write: true, Last: true},
	{Opcode: OpWriteLastImm, Name: "write_last_imm", Extra: ImmBytes, Write: true, Last: true, Imm: true},
	{Opcode: OpWriteOnly, Name: "write_only", Extra: RETHBytes, Write: true, First: true, Last: true, RETH: true},
	{Opcode: OpWriteOnlyImm, Name: "write_only_imm", Extra: RETHBytes + ImmBytes, Write: true, First: true, Last: true, RETH: true, Imm: true},
	{Opcode: OpReadRequest, Name: "read_request", Extra: RETHBytes},
	{Opcode: OpReadFirst, Name: "read_first", Extra: AETHBytes},
	{Opcode: OpReadMiddle, Name: "read_middle"},
	{Opcode: OpReadLast, Name: "read_last", Extra: AETHBytes},
	{Opcode: OpReadOnly, Name: "read_only", Extra: AETHBytes},
	{Opcode: OpAcknowledge, Name: "acknowledge", Extra: AETHBytes, Acknowledges: true},
	{Opcode: OpAtomicAck, Name: "atomic_acknowledge", Extra: AETHBytes + AtomicAckBytes},
	{Opcode: OpCompareSwap, Name: "compare_swap", Extra: AtomicBytes},
	{Opcode: OpFetchAdd, Name: "fetch_add", Extra: AtomicBytes},
	{Opcode: OpSendLastInvalid, Name: "send_last_invalidate", Extra: IETHBytes},
	{Opcode: OpSendOnlyInvalid, Name: "send_only_invalidate", Extra: IETHBytes},
	{Opcode: OpUDSendOnly, Name: "ud_send_only", Extra: DETHBytes},
	{Opcode: OpUDSendOnlyImm, Name: "ud_send_only_imm", Extra: DETHBytes + ImmBytes},
	{Opcode: OpCNP, Name: "cnp", Extra: CNPBytes},
}

// Info returns the table's row for o, and whether it exists.
func (o Opcode) Info() (OpcodeInfo, bool) {
	for _, i := range Opcodes {
		if i.Opcode == o {
			return i, true
		}
	}
	return OpcodeInfo{}, false
}

// String returns the opcode's name, or "opcode N" for an unknown number.
func (o Opcode) String() string {
	if i, ok := o.Info(); ok {
		return i.Name
	}
	return "opcode " + itoa(int(o))
}

// Syndrome is AETH's first byte.
type Syndrome uint8

// The syndromes. SyndromeACK has no credits: the responder does not limit the requester.
const (
	SyndromeACK         Syndrome = 0x1f
	SyndromeRNR         Syndrome = 0x20 // and a timer: no receive is posted
	SyndromeSequence    Syndrome = 0x60 // a PSN is missing
	SyndromeInvalid     Syndrome = 0x61 // invalid request
	SyndromeAccess      Syndrome = 0x62 // remote access error
	SyndromeOperational Syndrome = 0x63 // remote operational error
)

// IsACK reports whether the syndrome is an ACK, with or without credits.
func (s Syndrome) IsACK() bool { return s&0xe0 == 0 }

// IsRNR reports whether the syndrome is an RNR NAK, with any timer.
func (s Syndrome) IsRNR() bool { return s&0xe0 == SyndromeRNR }

// BTH is the base transport header.
type BTH struct {
	Opcode    Opcode
	Solicited bool
	MigReq    bool
	Pad       uint8 // 0 to 3
	Version   uint8 // 4 bits
	PKey      uint16
	FECN      bool
	BECN      bool
	DestQP    uint32 // 24 bits
	AckReq    bool
	PSN       uint32 // 24 bits
}

// Append appends the header's 12 bytes. The reserved bits are 0.
func (h BTH) Append(dst []byte) []byte {
	return append(dst,
		byte(h.Opcode), bit(h.Solicited, 7)|bit(h.MigReq, 6)|h.Pad&3<<4|h.Version&15, byte(h.PKey>>8), byte(h.PKey),
		bit(h.FECN, 7)|bit(h.BECN, 6), byte(h.DestQP>>16), byte(h.DestQP>>8), byte(h.DestQP),
		bit(h.AckReq, 7), byte(h.PSN>>16), byte(h.PSN>>8), byte(h.PSN))
}

// ParseBTH returns the header at the start of b, without its reserved bits. ok is false if b is shorter.
func ParseBTH(b []byte) (h BTH, ok bool) {
	if len(b) < BTHBytes {
		return BTH{}, false
	}
	return BTH{
		Opcode: Opcode(b[0]), Solicited: b[1]>>7 == 1, MigReq: b[1]>>6&1 == 1, Pad: b[1] >> 4 & 3, Version: b[1] & 15,
		PKey: uint16(b[2])<<8 | uint16(b[3]), FECN: b[4]>>7 == 1, BECN: b[4]>>6&1 == 1, DestQP: number24(b[5:]),
		AckReq: b[8]>>7 == 1, PSN: number24(b[9:]),
	}, true
}

// RETH is the extended header of RDMA.
type RETH struct {
	VA     uint64
	RKey   uint32
	Length uint32 // bytes of the whole message
}

// Append appends the header's 16 bytes.
func (h RETH) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, h.VA)
	dst = binary.BigEndian.AppendUint32(dst, h.RKey)
	return binary.BigEndian.AppendUint32(dst, h.Length)
}

// ParseRETH returns the header at the start of b. ok is false if b is shorter.
func ParseRETH(b []byte) (h RETH, ok bool) {
	if len(b) < RETHBytes {
		return RETH{}, false
	}
	return RETH{binary.BigEndian.Uint64(b), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])}, true
}

// AETH is the extended header of acknowledgements.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // 24 bits
}

// Append appends the header's 4 bytes.
func (h AETH) Append(dst []byte) []byte {
	return binary.BigEndian.AppendUint32(dst, uint32(h.Syndrome)<<24|h.MSN&(1<<24-1))
}

// ParseAETH returns the header at the start of b. ok is false if b is shorter.
func ParseAETH(b []byte) (h AETH, ok bool) {
	if len(b) < AETHBytes {
		return AETH{}, false
	}
	return AETH{Syndrome(b[0]), number24(b[1:])}, true
}

// AppendImm appends immediate data as ImmDt.
func AppendImm(dst []byte, imm uint32) []byte { return binary.BigEndian.AppendUint32(dst, imm) }

// ParseImm returns the immediate data at the start of b. ok is false if b is shorter.
func ParseImm(b []byte) (imm uint32, ok bool) {
	if len(b) < ImmBytes {
		return 0, false
	}
	return binary.BigEndian.Uint32(b), true
}

// AddPSN returns the PSN that follows psn by n, which may be negative, modulo 2^24.
func AddPSN(psn uint32, n int) uint32 { return uint32(int64(psn)+int64(n)) % PSNs }

// PSNsFrom returns how far psn is ahead of from, modulo 2^24, from -2^23 to 2^23 - 1: negative if it is
// behind. A PSN at a distance of 2^23 counts as behind.
func PSNsFrom(from, psn uint32) int {
	const high = 32 - PSNBits
	return int(int32((psn-from)<<high) >> high)
}

// bit returns a byte with one bit, if it is set.
func bit(set bool, at int) byte {
	if set {
		return 1 << at
	}
	return 0
}

// number24 returns the number of 24 bits at the start of b, the highest byte first.
func number24(b []byte) uint32 { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }
