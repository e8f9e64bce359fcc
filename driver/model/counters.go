// The card's counters: 32 bits, wrapping, in the order of wire.Counters; and the counts of a job,
// which saturate at 32 bits.

package model

import (
	"math"
	"slices"

	"tributary/driver/wire"
)

// counters holds a value for each counter of a card's shell, in the order of wire.CountersOf.
type counters []uint32

func newCounters(shell wire.Shell) counters { return make(counters, len(wire.CountersOf(shell))) }

// The indices of the counters that the model increments by name.
var (
	countFrames       = counterIndex("frames")
	countStored       = counterIndex("stored")
	countAsks         = counterIndex("asks")
	countFinishes     = counterIndex("finishes")
	countChunks       = counterIndex("chunks")
	countBeats        = counterIndex("beats")
	countResults      = counterIndex("results")
	countReplays      = counterIndex("replays")
	countStatuses     = counterIndex("statuses")
	countNonfiniteIn  = counterIndex("nonfinite_in")
	countNonfiniteOut = counterIndex("nonfinite_out")
	countOverflow     = counterIndex("overflow")
	countCE           = counterIndex("ce")
	countOverdue      = counterIndex("overdue")
	countPartial      = counterIndex("partial")
	countEvictions    = counterIndex("evictions")
	countHunted       = counterIndex("hunted")
	countHeaderCRC    = counterIndex("header_crc")
	countLinkDown     = counterIndex("link_down")

	// With the shells udp and roce alone.
	countShort       = counterIndex("short")
	countDatagramCRC = counterIndex("datagram_crc")
	countStranger    = counterIndex("stranger")
	countLease       = counterIndex("lease")
	countDropped     = counterIndex("dropped")
	countUDPPort     = counterIndex("udp_port")

	// With shell roce alone.
	countRoCEHeader    = counterIndex("roce_header")
	countRoCEICRC      = counterIndex("roce_icrc")
	countRoCESource    = counterIndex("roce_source")
	countRoCEOpcode    = counterIndex("roce_opcode")
	countRoCELength    = counterIndex("roce_length")
	countRoCEHidden    = counterIndex("roce_hidden")
	countReleasedEarly = counterIndex("released_early")
)

// The indices of the counters of the up port, which have a table of their own.
var (
	countUpSent    = indexIn(wire.UpCounters, "up_sent")
	countUpRepeats = indexIn(wire.UpCounters, "up_repeats")
	countUpTaken   = indexIn(wire.UpCounters, "up_taken")
	countUpDropped = indexIn(wire.UpCounters, "up_dropped")
	countUpRefused = indexIn(wire.UpCounters, "up_refused")
)

// counterIndex returns the index of the named counter among those of the other ports. The counters of
// shell roce begin with those of all other shells.
func counterIndex(name string) int { return indexIn(wire.CountersOf(wire.ShellRoCE), name) }

// indexIn returns the index of the named counter in a table.
func indexIn(table []wire.CounterInfo, name string) int {
	i := slices.IndexFunc(table, func(c wire.CounterInfo) bool { return c.Name == name })
	if i < 0 {
		panic("model: the tables have no counter " + name)
	}
	return i
}

// add counts n events.
func (c counters) add(index, n int) { c[index] += uint32(n) }

// refused counts one refusal.
func (c counters) refused(code wire.Code) {
	for i := range wire.Counters {
		if wire.Counters[i].Refuse == code {
			c[i]++
			return
		}
	}
}

// read returns the counter at a register address; ok is false if there is none.
func (c counters) read(addr uint32) (value uint64, ok bool) {
	offset := addr - wire.CounterBase
	if addr < wire.CounterBase || offset%8 != 0 || offset/8 >= uint32(len(c)) {
		return 0, false
	}
	return uint64(c[offset/8]), true
}

// tally is one count of a job (section 7.7 of the specification): the register pair JOB_NAME and
// JOB_FIRST_NAME.
type tally struct {
	count uint32 // saturates
	first uint64 // as in the register; 0 while count is 0
}

// tallyFirst marks a JOB_FIRST register as valid.
const tallyFirst = 1 << 63

// add counts n events at a place: the VID, and for a contribution the rank in the upper bits.
func (t *tally) add(n int, where uint64) {
	if n > 0 && t.count == 0 {
		t.first = tallyFirst | where
	}
	t.count = uint32(min(uint64(t.count)+uint64(n), math.MaxUint32))
}
