package main

import "math/bits"

// maxPackets is how many different packets a configuration may give rise to.
const maxPackets = 1024

// life is what a worker is doing.
type life uint8

const (
	active  life = iota // takes part in the job's epoch member.epoch
	stopped             // waits for the new epoch that the controller sets up
	down                // has lost its state
	out                 // knows that it was evicted
)

// member is the state of one worker in its job.
type member struct {
	life     life
	epoch    uint8
	low      uint8 // the first VID whose result it lacks
	ahead    uint8 // bit i: holds the result of low + 1 + i
	next     uint8 // the first VID it has not sent
	finished bool  // its finish was answered

	// Of the card's port to it, where config.Beats is 2: the slot whose result
	// is half sent, + 1, and the packet so far.
	sending uint8
	begun   uint16
}

// holds says whether the worker holds the result of a VID of its epoch.
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
	halfReduced // of two beats the first is summed and in the cache
	reduced
)

// slot is one slot of a job. The sets have a bit for each member.
type slot struct {
	vid     uint8 // u, absolute: the rules see it modulo config.Modulus
	phase   phase
	held    uint8 // its contribution is stored
	done    uint8 // it holds the result u
	owed    uint8 // the result is to be sent to it
	stalled bool  // it was asked to turn over while reduced, and not all were done
	mask    uint8 // who is named as being in the sum
	count   uint8 // of arrivals, where a weakening counts them

	memory    [maxMembers]tag // by member; outlives turnover and job, as a RAM does
	cache     sum             // likewise
	cacheMask uint8
}

// job is what the card knows of a job.
type job struct {
	up       bool
	over     bool  // it has ended because all had finished
	epoch    uint8 // the last that was set
	members  uint8 // M
	finished uint8
}

// controller is who sets a job up.
type controller struct {
	epoch     uint8 // of the last JOB_COMMIT it sent
	first     uint8
	confirmed bool // that the card took it
}

// state is everything: it determines what may happen next, and what is judged.
type state struct {
	members     [maxMembers]member
	slots       [maxSlots]slot
	jobs        [maxJobs]job
	controllers [maxJobs]controller

	// What faults are still to come.
	restarts, resets, evictions uint8

	// Packets that are under way. A packet stays here when it is delivered,
	// since the network may repeat it, and is never taken out because it is
	// lost, since a packet that is never delivered is as good as lost.
	network packetSet
}

// packetSet is a set of numbers of a packetTable.
type packetSet [maxPackets / 64]uint64

func (s *packetSet) add(n int)      { s[n/64] |= 1 << (n % 64) }
func (s *packetSet) remove(n int)   { s[n/64] &^= 1 << (n % 64) }
func (s *packetSet) has(n int) bool { return s[n/64]>>(n%64)&1 == 1 }

// each calls f with the numbers that are in the set now, in order.
func (s packetSet) each(f func(n int)) {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			f(64*i + bits.TrailingZeros64(word))
		}
	}
}
