// The card's counters: 32 bits, wrapping, in the order of wire.Counters; and
// what a job counts, which stops at the end of 32 bits.

package model

import (
	"math"

	"tributary/driver/wire"
)

// counters holds a value for each row of wire.Counters.
type counters []uint32

func newCounters() counters { return make(counters, len(wire.Counters)) }

// The places of the counters that the model counts by name.
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
)

// counterIndex returns the place of the named counter in the table.
func counterIndex(name string) int {
	for i, c := range wire.Counters {
		if c.Name == name {
			return i
		}
	}
	panic("model: wire.Counters has no " + name)
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

// read returns the counter at a register address; ok is false when there is
// none.
func (c counters) read(addr uint32) (value uint64, ok bool) {
	offset := addr - wire.CounterBase
	if addr < wire.CounterBase || offset%8 != 0 || offset/8 >= uint32(len(c)) {
		return 0, false
	}
	return uint64(c[offset/8]), true
}

// tally is one thing that a job counts (section 7.7 of the specification): the
// register pair JOB_NAME and JOB_FIRST_NAME.
type tally struct {
	count uint32 // stops at the greatest
	first uint64 // as the register holds it; 0 while count is
}

// tallyFirst says in a JOB_FIRST register that there is one.
const tallyFirst = 1 << 63

// add counts n at a place: the VID, and, of a contribution, the rank in the
// bits above.
func (t *tally) add(n int, where uint64) {
	if n > 0 && t.count == 0 {
		t.first = tallyFirst | where
	}
	t.count = uint32(min(uint64(t.count)+uint64(n), math.MaxUint32))
}
