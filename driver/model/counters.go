// The card's counters: 32 bits, wrapping, in the order of wire.Counters; and the counts of a job,
// which saturate at 32 bits.

package model

import (
	"math"
	"slices"

	"tributary/driver/wire"
)

// counters holds a value for each row of wire.Counters; with shell udp those of wire.NetworkCounters
// follow.
type counters []uint32

func newCounters(shell wire.Shell) counters {
	if shell == wire.ShellUDP {
		return make(counters, len(wire.Counters)+len(wire.NetworkCounters))
	}
	return make(counters, len(wire.Counters))
}

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

	// With shell udp alone.
	countShort       = counterIndex("short")
	countDatagramCRC = counterIndex("datagram_crc")
	countStranger    = counterIndex("stranger")
	countLease       = counterIndex("lease")
	countDropped     = counterIndex("dropped")
	countUDPPort     = counterIndex("udp_port")
)

// The indices of the counters of the up port, which have a table of their own.
var (
	countUpSent    = indexIn(wire.UpCounters, "up_sent")
	countUpRepeats = indexIn(wire.UpCounters, "up_repeats")
	countUpTaken   = indexIn(wire.UpCounters, "up_taken")
	countUpDropped = indexIn(wire.UpCounters, "up_dropped")
	countUpRefused = indexIn(wire.UpCounters, "up_refused")
)

// counterIndex returns the index of the named counter in the two tables of the other ports.
func counterIndex(name string) int {
	return indexIn(slices.Concat(wire.Counters, wire.NetworkCounters), name)
}

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
