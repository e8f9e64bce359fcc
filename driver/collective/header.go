package collective

// Messages (SPEC.md, section 9).

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"tributary/driver/wire"
)

// Operation is what a call does, by its number in messages.
type Operation uint8

// The operations.
const (
	AllReduceOp     Operation = 1
	ReduceScatterOp Operation = 2
	AllGatherOp     Operation = 3
	BroadcastOp     Operation = 4
)

func (o Operation) String() string {
	names := [...]string{AllReduceOp: "all-reduce", ReduceScatterOp: "reduce-scatter", AllGatherOp: "all-gather", BroadcastOp: "broadcast"}
	if int(o) < len(names) && names[o] != "" {
		return names[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// Algorithm is how a call does it, by its number in messages.
type Algorithm uint8

// The algorithms.
const (
	Ring     Algorithm = 1
	Tree     Algorithm = 2
	PS       Algorithm = 3
	Card     Algorithm = 4
	Rina     Algorithm = 5
	Parallel Algorithm = 6
)

func (a Algorithm) String() string {
	names := [...]string{Ring: "ring", Tree: "tree", PS: "ps", Card: "card", Rina: "rina", Parallel: "parallel"}
	if int(a) < len(names) && names[a] != "" {
		return names[a]
	}
	return fmt.Sprintf("algorithm %d", uint8(a))
}

// kind is the kind of a message.
type kind uint8

const (
	kindData  kind = 1
	kindPing  kind = 2
	kindAbort kind = 3
	kindBye   kind = 4
	kindCall  kind = 5
)

// The phases of a call.
const (
	phaseReduce uint8 = 0
	phaseGather uint8 = 1
	phaseAgree  uint8 = 2
	phaseRack   uint8 = 3
)

const (
	headerBytes = 64
	maxPayload  = 256 << 10 // bytes of a chunk
	version     = 1
	magic       = "TRCM"
	noRank      = 1<<32 - 1 // of an abort
	maxText     = 512       // bytes of an abort's text
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// description is what all members' calls have in common. Every data message has it.
type description struct {
	operation Operation
	format    wire.Format
	algorithm Algorithm
	root      uint32 // of a broadcast; check of the plan in an all-reduce by Rina or in parallel; else 0
	length    uint64
}

func (d description) String() string {
	text := fmt.Sprintf("%s of %d elements of %s by %s", d.operation, d.length, d.format, d.algorithm)
	switch {
	case d.operation == BroadcastOp:
		text += fmt.Sprintf(" from rank %d", d.root)
	case d.operation == AllReduceOp && (d.algorithm == Rina || d.algorithm == Parallel):
		text += fmt.Sprintf(" under plan %08x", d.root)
	}
	return text
}

// header is the header of a message.
type header struct {
	kind kind
	description
	phase      uint8
	generation uint64
	call       uint64
	first      uint64 // element
	step       uint32
	bytes      uint32 // of the payload
	crc        uint32 // of the payload
}

func (h *header) encode(b *[headerBytes]byte) {
	*b = [headerBytes]byte{}
	le := binary.LittleEndian
	copy(b[:], magic)
	b[4], b[5], b[6], b[7], b[8], b[9] = version, byte(h.kind), byte(h.operation), byte(h.format), byte(h.algorithm), h.phase
	le.PutUint32(b[12:], h.root)
	le.PutUint64(b[16:], h.generation)
	le.PutUint64(b[24:], h.call)
	le.PutUint64(b[32:], h.length)
	le.PutUint64(b[40:], h.first)
	le.PutUint32(b[48:], h.step)
	le.PutUint32(b[52:], h.bytes)
	le.PutUint32(b[56:], h.crc)
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
}

// decode reads a header. It returns why the bytes are none; "" means that they are.
func (h *header) decode(b *[headerBytes]byte) (why string) {
	le := binary.LittleEndian
	switch {
	case string(b[:4]) != magic:
		return fmt.Sprintf("a message begins with %q", b[:4])
	case le.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli):
		return "the CRC of a header is wrong"
	case b[4] != version:
		return fmt.Sprintf("a message has version %d, not %d", b[4], version)
	}
	*h = header{
		kind:        kind(b[5]),
		description: description{Operation(b[6]), wire.Format(b[7]), Algorithm(b[8]), le.Uint32(b[12:]), le.Uint64(b[32:])},
		phase:       b[9],
		generation:  le.Uint64(b[16:]),
		call:        le.Uint64(b[24:]),
		first:       le.Uint64(b[40:]),
		step:        le.Uint32(b[48:]),
		bytes:       le.Uint32(b[52:]),
		crc:         le.Uint32(b[56:]),
	}
	most := uint32(0)
	switch h.kind {
	case kindData:
		most = maxPayload
	case kindAbort:
		most = abortBytes + maxText
	case kindPing, kindBye, kindCall:
	default:
		return fmt.Sprintf("a message has kind %d", h.kind)
	}
	if h.bytes > most {
		return fmt.Sprintf("a message of kind %d has %d bytes of payload; the most are %d", h.kind, h.bytes, most)
	}
	return ""
}

// cause is the payload of an abort.
type cause uint8

const (
	causeLost     cause = 1
	causeDiffers  cause = 2
	causeProtocol cause = 3
	causeGivenUp  cause = 4
	causeLate     cause = 5
)

const abortBytes = 9 // before the text

// encodeCause returns the payload of an abort for an error of this member.
func encodeCause(g *Group, err error) []byte {
	kind, ranks, text := causeGivenUp, [2]uint32{uint32(g.Rank), noRank}, err.Error()
	switch e := err.(type) {
	case *LostError:
		kind, ranks, text = causeLost, [2]uint32{uint32(e.Rank), uint32(e.By)}, e.Text
		if e.Late {
			kind = causeLate
		}
	case *DifferError:
		kind, ranks, text = causeDiffers, [2]uint32{uint32(e.Ranks[0]), uint32(e.Ranks[1])}, e.Text
	case *ProtocolError:
		kind, ranks[0], text = causeProtocol, uint32(e.Rank), e.Text
	case *GivenUpError:
		ranks[0], text = uint32(e.Rank), e.Text
	}
	b := []byte{byte(kind)}
	b = binary.LittleEndian.AppendUint32(b, ranks[0])
	b = binary.LittleEndian.AppendUint32(b, ranks[1])
	return append(b, text[:min(len(text), maxText)]...)
}

// decodeCause returns the error of an abort that rank has sent.
func decodeCause(g *Group, rank int, b []byte) error {
	if len(b) < abortBytes {
		return &ProtocolError{rank, g.Members[rank].ID, fmt.Sprintf("an abort has %d bytes of payload; it has at least %d", len(b), abortBytes)}
	}
	at, other := binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])
	text := string(b[abortBytes:])
	if int64(at) >= int64(g.Size()) {
		return &ProtocolError{rank, g.Members[rank].ID, fmt.Sprintf("an abort names rank %d, which the group lacks", at)}
	}
	id := g.Members[at].ID
	switch kind := cause(b[0]); kind {
	case causeLost, causeLate:
		return &LostError{int(at), id, text, int(int32(other)), kind == causeLate}
	case causeDiffers:
		return &DifferError{[2]int{int(at), int(int32(other))}, text}
	case causeProtocol:
		return &ProtocolError{int(at), id, text}
	}
	return &GivenUpError{int(at), id, text}
}
