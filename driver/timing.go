package driver

import "time"

// Limits of a wait. The shortest one keeps scheduler pauses of this host from causing asks. A
// premature ask costs only a header.
const (
	shortestWait = 20 * time.Millisecond
	longestWait  = time.Minute

	// firstWaitShortest and firstWaitLongest limit the wait before the first sample. Until then
	// only the time of a register access is known, and a chunk takes many times that.
	firstWaitShortest = 100 * time.Millisecond
	firstWaitLongest  = 3 * time.Second
	firstWaitTrips    = 64

	// A network loses packets every day, so waits follow its round trips, however short. grain is
	// what timers and the scheduler of this host add.
	grain = 500 * time.Microsecond
)

// mostBackOff limits how often a wait doubles after the first sample. An ask is only a header,
// and on a lossy link longer waits gain nothing. Before the first sample a wait may be far too
// short, so mostFirstBackOff is higher. It is limited too: when the first ask was lost, no
// sample comes until the chunk does.
const (
	mostBackOff      = 3
	mostFirstBackOff = 5
)

// timing computes when a result is overdue, as in RFC 6298: from the smoothed round-trip time
// and its variation. The wait doubles at every timeout until the next sample. Callers take no
// sample from packets that were sent twice (Karn).
//
// It adapts to a simulation that is a thousand times slower than a board after a few asks,
// without repeating a chunk.
//
// A sample is the time from an ask to its reply, or from a chunk to its result when all members
// are in one call. A member that waits for other members takes no sample from its results. Each
// member would learn the others' waits and wait longer itself. In a tree of cards this holds for
// all members at a card with a parent, because their results wait for the other cards.
//
// The calls of a job share a timing, and each has its own backOff.
type timing struct {
	srtt, rttvar time.Duration
	wait         time.Duration // before doubling
	packets      bool          // of a card on a network
}

// newTiming returns a timing without samples, for a card whose register accesses take trip, or
// 0 if that is unknown.
func newTiming(trip time.Duration, packets bool) timing {
	shortest := firstWaitShortest
	if packets && trip != 0 {
		shortest = grain
	}
	return timing{wait: min(max(firstWaitTrips*trip, shortest), firstWaitLongest), packets: packets}
}

// sample adds one round-trip time.
func (t *timing) sample(d time.Duration) {
	d = max(d, time.Nanosecond) // srtt 0 means no sample
	if t.srtt == 0 {
		t.srtt, t.rttvar = d, d/2
	} else {
		t.rttvar += ((t.srtt - d).Abs() - t.rttvar) / 4
		t.srtt += (d - t.srtt) / 8
	}
	wait := max(t.srtt+4*t.rttvar, shortestWait)
	if t.packets { // RFC 6298, 2.3, with at least a round trip more
		wait = t.srtt + max(4*t.rttvar, t.srtt, grain)
	}
	t.wait = min(wait, longestWait)
}

// backOff counts the waits without a reply since the last sample.
type backOff int

// wait returns the current wait by t.
func (b backOff) wait(t *timing) time.Duration {
	most := backOff(mostFirstBackOff)
	if t.srtt != 0 {
		most = mostBackOff
	}
	return min(t.wait<<min(b, most), longestWait)
}
