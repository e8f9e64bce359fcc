package cpu

import (
	"math"

	"tributary/driver/wire"
)

// counter is the index of a counter in wire.Counters.
type counter uint8

// The counters that count no refusal, in the order of wire.Counters.
const (
	countFrames counter = iota
	countStored
	countAsks
	countFinishes
	countChunks
	countBeats
	countResults
	countReplays
	countStatuses
	countNonfiniteIn
	countNonfiniteOut
	countOverflow
	countUndecided
	countStalled
	countCE
	countOverdue
	countPartial
	countEvictions
	countHunted
	countHeaderCRC
	countLinkDown
)

// The counters that exist with shell udp alone, in the order of wire.NetworkCounters.
var (
	countShort       = counter(len(wire.Counters))
	countDatagramCRC = countShort + 1
	countStranger    = countShort + 2
	countLease       = countShort + 3
	countDropped     = countShort + 4
)

// refusals is the counter of each refusal.
var refusals = func() (t [256]counter) {
	for i, c := range wire.Counters {
		t[c.Refuse] = counter(i)
	}
	return t
}()

// counters are the values of wire.Counters, and with shell udp of wire.NetworkCounters behind them.
// They have 32 bits and wrap around.
type counters []uint32

func newCounters(shell wire.Shell) counters {
	n := len(wire.Counters)
	if shell == wire.ShellUDP {
		n += len(wire.NetworkCounters)
	}
	return make(counters, n)
}

// refusal counts a refusal.
func (c counters) refusal(code wire.Code) { c[refusals[code]]++ }

// tally is a job's count of exceptions, and the first of them.
type tally struct {
	count uint64 // stops at 2^32 - 1
	first uint64 // VID, rank and the valid bit, as in the registers
}

// valid marks the first exception of a tally as there.
const valid = 1 << 63

// add counts n exceptions at a place: a VID, and above it a rank where the register has one.
func (t *tally) add(n int, place uint64) {
	if n == 0 {
		return
	}
	if t.count == 0 {
		t.first = valid | place
	}
	t.count = min(t.count+uint64(n), math.MaxUint32)
}
