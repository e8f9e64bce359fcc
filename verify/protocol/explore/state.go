package main

import "math/bits"

// maxPackets is the number of different packets that a configuration may produce.
const maxPackets = 1024

// life is a worker's stage.
type life uint8

const (
	active  life = iota // takes part in the epoch member.epoch of its job
	stopped             // waits for the controller to set up a new epoch
	down                // has lost its state
	out                 // knows that the card evicted it
)

// member is the state of one worker in its job.
type member struct {
	life     life
	epoch    uint8
	low      uint8 // the first VID whose result it lacks
	ahead    uint8 // bit i: holds the result of low + 1 + i
	next     uint8 // the first VID it has not sent
	finished bool  // the card answered its finish

	// With config.Beats 2, the card's port to this member: 1 + the slot whose
	// result is half sent, or 0, and the packet so far.
	sending uint8
	begun   uint16
}

// holds reports whether the worker holds the result of a VID in its epoch.
func (m *member) holds(vid int) bool {
	low := int(m.low)
	return vid < low || vid > low && m.ahead>>(vid-low-1)&1 == 1
}

// phase is the state of a slot.
type phase uint8

const (
	empty phase = iota
	collecting
	reducing
	halfReduced // the first of two beats is summed and in the cache
	reduced
)

// slot is one slot of a job. Sets have one bit for each member.
type slot struct {
	vid     uint8 // u, absolute; the rules use it modulo config.Modulus
	phase   phase
	held    uint8 // members whose contribution is stored
	done    uint8 // members that hold the result u
	owed    uint8 // members that the card will send the result
	stalled bool  // a member asked for the turnover of a reduced slot before all were done
	mask    uint8 // members that the result names
	count   uint8 // arrivals; only for the weakening no-bitmap

	memory    [maxMembers]tag // by member; keeps its value across turnovers and jobs, like a RAM
	cache     sum             // as memory
	cacheMask uint8
}

// job is the card's state of a job.
type job struct {
	up       bool
	over     bool  // ended because all members had finished
	epoch    uint8 // of the last set-up
	members  uint8 // M
	finished uint8
}

// controller sets a job up.
type controller struct {
	epoch     uint8 // of the last JOB_COMMIT that it sent
	first     uint8
	confirmed bool // the card accepted that commit
}

// state is the complete state of a world: it determines all next steps and all judgements.
type state struct {
	members     [maxMembers]member
	slots       [maxSlots]slot
	jobs        [maxJobs]job
	controllers [maxJobs]controller

	// How many faults may still strike.
	restarts, resets, evictions uint8

	// Packets under way. A delivered packet stays, because the network may repeat it. A lost
	// packet stays too: it equals one that never arrives.
	network packetSet
}

// packetSet is a set of numbers of packets.
type packetSet [maxPackets / 64]uint64

func (s *packetSet) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s *packetSet) remove(n int)   { s[n/64] &^= 1 << (n % 64) }
func (s *packetSet) has(n int) bool { return s[n/64]>>(n%64)&1 == 1 }

// each calls f with the current elements of the set, in ascending order.
func (s packetSet) each(f func(n int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			f(64*i + bits.TrailingZeros64(word))
		}
	}
}
