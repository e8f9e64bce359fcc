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

// timing tells when a result is overdue. It is RFC 6298: smoothed round-trip
// time and variation, doubled at every time-out until a sample is taken again,
// and no sample from what was asked for or sent twice (Karn), which the caller
// sees to. So it adapts to a simulation that is a thousand times slower than a
// board after a few asks, and without a single chunk sent in vain.
type timing struct {
	srtt, rttvar time.Duration
	wait         time.Duration
}

// newTiming returns a timing without samples, for a card whose register
// accesses take trip (0 when that is not known).
func newTiming(trip time.Duration) timing {
	return timing{wait: min(max(firstWaitTrips*trip, firstWaitShortest), firstWaitLongest)}
}

// sample takes in one round-trip time.
func (t *timing) sample(d time.Duration) {
	if t.srtt == 0 {
		t.srtt, t.rttvar = d, d/2
	} else {
		t.rttvar += ((t.srtt - d).Abs() - t.rttvar) / 4
		t.srtt += (d - t.srtt) / 8
	}
	t.wait = min(max(t.srtt+4*t.rttvar, shortestWait), longestWait)
}

// backOff doubles the wait after it was in vain.
func (t *timing) backOff() { t.wait = min(2*t.wait, longestWait) }
