package wire

import (
	"math/bits"
	"strconv"
)

// Limits of every card.
const (
	MaxLanes   = 64
	MaxPorts   = 64 // a mask holds 64 ranks
	MaxChunk   = 1<<16 - 1
	MaxWindow  = 1024
	MaxLink    = 512
	MaxLatency = 1<<16 - 1
)

// Bound is the range of a register of the identification block.
type Bound struct {
	Addr        uint32
	Least, Most uint64
	PowerOfTwo  bool // a power of two, or 0 if Least allows it
}

// Bounds lists the bound of each register of the identification block, by address.
// A host refuses a card outside these bounds before it reserves memory for it.
var Bounds = []Bound{
	{RegLanes, 1, MaxLanes, true},
	{RegPorts, 1, MaxPorts, false},
	{RegFormat, 0, 1<<16 - 1, false},
	{RegSum, 0, 1<<9 - 1, false},
	{RegShell, 0, 1<<9 - 1, false},
	{RegChunk, 1, MaxChunk, false},
	{RegWindow, 1, MaxWindow, true},
	{RegJobs, 1, MaxJobs, true},
	{RegLink, 0, MaxLink, true},
	{RegLatency, 0, MaxLatency, false},
}

// Holds reports whether the register may hold value.
func (b Bound) Holds(value uint64) bool {
	return value >= b.Least && value <= b.Most && (!b.PowerOfTwo || bits.OnesCount64(value) <= 1)
}

// String returns the bound as text: "a power of two from 1 to 64".
func (b Bound) String() string {
	span := " from " + itoa(int(b.Least)) + " to " + itoa(int(b.Most))
	switch {
	case b.PowerOfTwo && b.Least == 0:
		return "0 or a power of two up to " + itoa(int(b.Most))
	case b.PowerOfTwo:
		return "a power of two" + span
	}
	return "a number" + span
}

// Name returns the name of the bound's register.
func (b Bound) Name() string {
	for _, r := range Registers {
		if r.Addr == b.Addr {
			return r.Name
		}
	}
	return ""
}

// IdentError reports an invalid identification block.
type IdentError struct {
	Name  string // of the register
	Value uint64
	Why   string // the bound, or the contradiction with another register
	Newer bool   // a later version of this package may know the value
}

func (e *IdentError) Error() string {
	return e.Name + " is " + utoa(e.Value) + ", " + e.Why
}

// The parts of FORMAT, SUM and SHELL.
const (
	formatBits      = 8
	shellBits       = 8
	sumBits         = 8
	sumSaturateFlag = 1 << sumBits
)

// CheckIdent returns an IdentError for the first register of an identification
// block that is out of its bound or contradicts another register. read returns
// the value of the register at an address.
func CheckIdent(read func(addr uint32) uint64) error {
	for _, b := range Bounds {
		v := read(b.Addr)
		if choice, known := knownChoice(b.Addr, v); choice && !known {
			return &IdentError{Name: b.Name(), Value: v, Why: unknownChoice(b.Addr, v), Newer: true}
		}
		if !b.Holds(v) {
			return &IdentError{Name: b.Name(), Value: v, Why: "not " + b.String()}
		}
	}
	return checkTogether(read)
}

// knownChoice reports whether the register at addr selects rows of a table, and
// whether the tables have the rows that v selects.
func knownChoice(addr uint32, v uint64) (choice, known bool) {
	switch addr {
	case RegFormat:
		_, in := Format(v).Info()
		_, out := Format(v >> formatBits).Info()
		return true, in && out && v>>(2*formatBits) == 0
	case RegSum:
		for _, s := range Sums {
			if v&^sumSaturateFlag == uint64(s.Sum) {
				return true, true
			}
		}
		return true, false
	case RegShell:
		for _, s := range Shells {
			if v&^ShellParentFlag == uint64(s.Shell) {
				return true, true
			}
		}
		return true, false
	}
	return false, false
}

// unknownChoice names the selection in the register at addr.
func unknownChoice(addr uint32, v uint64) string {
	const unknown = ", which is unknown here"
	switch {
	case addr == RegFormat && v>>(2*formatBits) == 0:
		return Format(v).String() + " into " + Format(v>>formatBits).String() + unknown
	case addr == RegSum && v>>sumBits <= 1:
		return Sum(v).String() + unknown
	case addr == RegShell && v>>shellBits <= 1:
		return Shell(v).String() + unknown
	}
	return "with bits that are unknown here"
}

// checkTogether refuses registers that contradict one another. Each is already
// within its own bound.
func checkTogether(read func(addr uint32) uint64) error {
	in, _ := Format(read(RegFormat)).Info()
	out, _ := Format(read(RegFormat) >> formatBits).Info()
	sum, chunk, lanes, link := read(RegSum), read(RegChunk), read(RegLanes), read(RegLink)
	shell, parent := Shell(read(RegShell)), read(RegShell)&ShellParentFlag != 0
	switch {
	case !in.FitsIn(out):
		return &IdentError{Name: "FORMAT", Value: read(RegFormat), Why: in.Name + " into " + out.Name + ", which does not hold every value of it"}
	case sum&sumSaturateFlag != 0 && in.Format != Int32:
		return &IdentError{Name: "SUM", Value: sum, Why: "saturating, but FORMAT is " + in.Name + " and only int32 saturates"}
	case sum&sumSaturateFlag != 0 && !adds(sum):
		return &IdentError{Name: "SUM", Value: sum, Why: "saturating, but only a sum that adds saturates"}
	case parent && in.Format != out.Format:
		return &IdentError{Name: "FORMAT", Value: read(RegFormat), Why: in.Name + " into " + out.Name + ", but a card with an up port has one format"}
	case parent && shell != ShellNone && shell != ShellUDP:
		return &IdentError{Name: "SHELL", Value: read(RegShell), Why: shell.String() + " with an up port, but only none and udp have one"}
	case shell == ShellRoCE && in.Format != out.Format:
		return &IdentError{Name: "FORMAT", Value: read(RegFormat), Why: in.Name + " into " + out.Name + ", but a card with shell roce has one format"}
	case shell == ShellRoCE && read(RegPorts)*read(RegJobs) > MaxConnections:
		return &IdentError{Name: "JOBS", Value: read(RegJobs), Why: "times PORTS is more than " + itoa(MaxConnections) + " connections, but SHELL is roce"}
	case chunk%lanes != 0:
		return &IdentError{Name: "CHUNK", Value: chunk, Why: "not a multiple of LANES, which is " + utoa(lanes)}
	case shell == ShellStream && (link < 8 || link > 64):
		return &IdentError{Name: "LINK", Value: link, Why: "not 8, 16, 32 or 64, but SHELL is stream"}
	case shell == ShellNone && link != 0:
		return &IdentError{Name: "LINK", Value: link, Why: "not 0, but SHELL is none"}
	case shell.Network() && link != 8 && link != 64 && link != 512:
		return &IdentError{Name: "LINK", Value: link, Why: "not 8, 64 or 512, but SHELL is " + shell.String()}
	case shell == ShellStream:
		return CheckFrames(read)
	case shell.Network():
		return checkDatagrams(read)
	}
	return nil
}

// adds reports whether the sum in register SUM adds its contributions.
func adds(register uint64) bool {
	info, ok := Sum(register &^ sumSaturateFlag).Info()
	return ok && info.Adds
}

// checkDatagrams returns an IdentError when the payload of a chunk of CHUNK elements is larger than
// MaxDatagramPayload.
func checkDatagrams(read func(addr uint32) uint64) error {
	chunk := read(RegChunk)
	for _, k := range Kinds {
		if n := k.payloadBytes(read); n > MaxDatagramPayload {
			return &IdentError{Name: "CHUNK", Value: chunk, Why: "a " + k.Name + " payload of " + itoa(n) + " bytes, but the largest has " + itoa(MaxDatagramPayload)}
		}
	}
	return nil
}

// payloadBytes returns the size of the payload of CHUNK elements in a packet of the kind; 0 if it has
// none.
func (i KindInfo) payloadBytes(read func(addr uint32) uint64) int {
	if !i.Payload {
		return 0
	}
	format, _ := Format(read(RegFormat)).Info()
	if i.FromCard {
		format, _ = Format(read(RegFormat) >> formatBits).Info()
	}
	return int(read(RegChunk)) * format.Bits / 8
}

// CheckFrames returns an IdentError when the frame of a chunk of CHUNK elements is
// longer than MaxFrameBytes.
func CheckFrames(read func(addr uint32) uint64) error {
	chunk := read(RegChunk)
	for _, k := range Kinds {
		if n := k.FrameBytes(k.payloadBytes(read)); k.Payload && n > MaxFrameBytes {
			return &IdentError{Name: "CHUNK", Value: chunk, Why: "a " + k.Name + " frame of " + itoa(n) + " bytes, but the longest has " + itoa(MaxFrameBytes)}
		}
	}
	return nil
}

// utoa is itoa for the whole range of a register.
func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
