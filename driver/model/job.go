// A job from set-up to end: its parameters, its epoch, the ranks of its members, and its slots.

package model

import (
	"math/bits"

	"tributary/driver/wire"
)

// job is the state of one job number: a running job, the last one, or none yet. Each job has its
// own slots. Their place on the card only determines how many jobs fit.
type job struct {
	number   int
	running  bool
	everSet  bool     // an epoch was ever set
	complete bool     // whether the last job set up ended because all had finished
	epoch    uint16   // of the last job set up
	finished uint64   // ranks of the running job that have finished
	evicted  uint64   // ranks that were evicted from the last job set up
	setup    setup    // of the last job set up; before the first, its ports are all ports
	slots    span     // of the running job
	n        int      // members: bits of the setup's ports
	portOf   []int    // port of each rank, n of them
	all      uint64   // a bit for each of the n ranks
	ranks    []uint64 // of each rank: the global ranks that its member stands for
	table    slotTable

	streams []*stream // of each rank, with shell roce
	newest  uint32    // with shell roce: the newest VID that was stored; at first, 0

	finish    debt   // of a tree job: its finish to the parent
	upRefusal uint64 // JOB_UP_REFUSAL of the last job set up

	// The counts of the last job set up.
	nonfiniteIn  tally  // contributions that held a NaN or an infinity
	nonfiniteOut tally  // elements of sums that are one
	overflow     tally  // elements of sums that overflowed
	lags         []lags // of each rank that the card can have
}

// setup holds a job's parameters, as in the registers.
type setup struct {
	ports    uint64 // the member ports
	chunk    uint64 // elements
	window   uint64 // chunks
	deadline uint64 // JOB_DEADLINE
	first    uint32 // VID
	upward   upward
}

// newJob returns a number's state before its first job: rank r belongs to port r.
func newJob(number int, cfg Config) job {
	j := job{number: number, table: slotTable{ports: cfg.Ports, silent: cfg.Shell == wire.ShellRoCE}, lags: make([]lags, cfg.Ports)}
	j.set(setup{ports: lowBits(cfg.Ports)})
	return j
}

// set stores the job's parameters, and numbers the ranks in the order of the ports.
func (j *job) set(s setup) {
	j.setup = s
	ports := s.ports
	j.n = bits.OnesCount64(ports)
	j.all = lowBits(j.n)
	j.portOf = j.portOf[:0]
	for ; ports != 0; ports &= ports - 1 {
		j.portOf = append(j.portOf, bits.TrailingZeros64(ports))
	}
	j.ranks = s.upward.ranksOf(j.ranks[:0], j.portOf)
}

// owns reports whether rank belongs to port.
func (j *job) owns(port int, rank uint8) bool {
	return int(rank) < j.n && j.portOf[rank] == port
}

// start makes j the running job of a new epoch, in the given slots of the card.
func (j *job) start(s setup, epoch uint16, slots span) {
	j.running, j.everSet, j.complete = true, true, false
	j.epoch, j.finished, j.evicted, j.slots = epoch, 0, 0, slots
	j.finish, j.upRefusal = debt{}, 0
	clear(j.lags)
	j.nonfiniteIn, j.nonfiniteOut, j.overflow = tally{}, tally{}, tally{}
	j.set(s)
	j.table.setUp(uint32(s.window), s.first, j.all)
}

// allFinished reports whether all members that were not evicted have finished.
func (j *job) allFinished() bool { return j.table.members&^j.finished == 0 }

// end ends the job: it drops begun reductions and owed results, and frees the slots. Ranks and
// epoch stay.
func (j *job) end() {
	j.running, j.finished, j.slots, j.finish = false, 0, span{}, debt{}
	j.table.clear()
}

// confirmsEnd reports whether p repeats a finish of the last job, which ended because all had
// finished.
func (j *job) confirmsEnd(p *Packet) bool {
	return p.Kind == wire.KindFinish && j.complete && p.Epoch == j.epoch
}

// ranksOf returns the ranks of the ports in a set.
func (j *job) ranksOf(ports uint64) (ranks uint64) {
	if ports == AllPorts {
		return j.all
	}
	for rank, port := range j.portOf {
		ranks |= ports >> port & 1 << rank
	}
	return ranks
}

// lowBits returns a number with its n lowest bits set, n at most 64.
func lowBits(n int) uint64 { return 1<<n - 1 }
