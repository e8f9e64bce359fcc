package driver

import "time"

// The bounds of a wait. The shortest keeps pauses of this host's scheduler from
// causing asks; what is sent too early is a header alone.
const (
	shortestWait = 20 * time.Millisecond
	longestWait  = time.Minute

	// firstWaitShortest and firstWaitLongest bound the wait before anything
	// was measured but the time of a register access, of which a chunk takes
	// many.
	firstWaitShortest = 100 * time.Millisecond
	firstWaitLongest  = 3 * time.Second
	firstWaitTrips    = 64
)

// mostBackOff is how often a wait is doubled at most once something was
// measured: an ask is a header alone, and over a link that loses much, waiting
// longer gains nothing. Before that, a wait may be far too short, and is doubled
// more often; but not for ever, for where a first ask was lost nothing is measured
// until the chunk is there.
const (
	mostBackOff      = 3
	mostFirstBackOff = 5
)

// timing tells when a result is overdue. It is RFC 6298: smoothed round-trip
// time and variation, doubled at every time-out until a sample is taken again,
// and no sample from what was asked for or sent twice (Karn), which the callers
// see to. So it adapts to a simulation that is a thousand times slower than a
// board after a few asks, and without a single chunk sent in vain.
//
// Samples are the time from a chunk to its result where all members are in one
// call, and from an ask to its answer. A member that waits for others takes none
// from its results: each would learn from how long the others waited, and wait
// longer itself.
//
// The calls of a job share a timing, and each has its own backOff.
type timing struct {
	srtt, rttvar time.Duration
	wait         time.Duration // before it is doubled
}

// newTiming returns a timing without samples, for a card whose register
// accesses take trip (0 when that is not known).
func newTiming(trip time.Duration) timing {
	return timing{wait: min(max(firstWaitTrips*trip, firstWaitShortest), firstWaitLongest)}
}

// sample takes in one round-trip time.
func (t *timing) sample(d time.Duration) {
	d = max(d, time.Nanosecond) // srtt 0 stands for no sample
	if t.srtt == 0 {
		t.srtt, t.rttvar = d, d/2
	} else {
		t.rttvar += ((t.srtt - d).Abs() - t.rttvar) / 4
		t.srtt += (d - t.srtt) / 8
	}
	t.wait = min(max(t.srtt+4*t.rttvar, shortestWait), longestWait)
}

// backOff counts the waits that were in vain since the last sample.
type backOff int

// wait returns how long to wait by t after them.
func (b backOff) wait(t *timing) time.Duration {
	most := backOff(mostFirstBackOff)
	if t.srtt != 0 {
		most = mostBackOff
	}
	return min(t.wait<<min(b, most), longestWait)
}
