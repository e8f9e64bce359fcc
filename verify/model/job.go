// A job's life: what it was set up with, its epoch, and the ranks of its
// members.

package model

import "math/bits"

// job is the one job of a card, running or not.
type job struct {
	running  bool
	everSet  bool   // an epoch was ever set
	complete bool   // the last job set up ended because all had finished
	epoch    uint16 // of the last job set up
	finished uint64 // ranks of the running job that have finished
	setup    setup  // of the last job set up
	n        int    // members of the last job; the card's ports before the first
	portOf   []int  // port of each rank, n of them
	all      uint64 // a bit for each of the n ranks

	// What came of the last job set up.
	nonfiniteIn  tally // contributions that held a NaN or an infinity
	nonfiniteOut tally // elements of sums that are one
	overflow     tally // elements of sums that overflowed
}

// setup is what a job is set up with, as the registers hold it.
type setup struct {
	ports  uint64 // the member ports
	chunk  uint64 // elements
	window uint64 // chunks
	first  uint32 // VID
}

// newJob returns the job of a card that never had one: rank r belongs to port
// r.
func newJob(ports int) job {
	var j job
	j.setMembers(lowBits(ports))
	return j
}

// setMembers gives out the ranks in the order of the ports.
func (j *job) setMembers(ports uint64) {
	j.n = bits.OnesCount64(ports)
	j.all = lowBits(j.n)
	j.portOf = j.portOf[:0]
	for ; ports != 0; ports &= ports - 1 {
		j.portOf = append(j.portOf, bits.TrailingZeros64(ports))
	}
}

// owns reports whether rank belongs to port.
func (j *job) owns(port int, rank uint8) bool {
	return int(rank) < j.n && j.portOf[rank] == port
}

// start makes j the running job of a new epoch.
func (j *job) start(s setup, epoch uint16) {
	j.running, j.everSet, j.complete = true, true, false
	j.epoch, j.finished, j.setup = epoch, 0, s
	j.nonfiniteIn, j.nonfiniteOut, j.overflow = tally{}, tally{}, tally{}
	j.setMembers(s.ports)
}

// end ends the job; its ranks and its epoch stay.
func (j *job) end() {
	j.running, j.finished = false, 0
}

// lowBits returns a number whose n lowest bits are set, n at most 64.
func lowBits(n int) uint64 { return 1<<n - 1 }
