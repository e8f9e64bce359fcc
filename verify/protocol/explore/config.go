package main

import (
	"fmt"

	"tributary/verify/protocol/explorer"
)

// Capacities of a state. They limit configurations, not the exploration.
const (
	maxMembers = 3
	maxSlots   = 8
	maxJobs    = 2
	maxBeats   = 2
	maxVID     = 32 // absolute VIDs, see packet.vid
	maxEpochs  = 4

	fewEpochs = 4 // default modulus of epochs
)

// config is one setting to explore completely: the number of workers, the length of their stream,
// and how often each fault may strike. The network may always lose, repeat, reorder and delay
// packets, without bound.
type config struct {
	Name  string
	About string // its purpose, in a few words

	Jobs         []int // members of each job; member numbers run on through the jobs
	Window       int   // W, in chunks
	Modulus      int   // of VIDs; 2^32 in the protocol
	EpochModulus int   // 2^16 in the protocol; 0: fewEpochs. An epoch is newer when it is less than half of this ahead
	First        int   // absolute VID of the first chunk, at least 2W
	Chunks       int   // length of the stream of every job
	Beats        int   // in a chunk; with 2, events can fall inside sums and transmissions

	CutThrough bool // a result may start to leave once the card has summed its first beat

	Rogue     bool // the last member breaks the rules at will
	Partial   bool // jobs ask for partial sums at a deadline
	Notices   bool // jobs without partial sums also have deadlines, which change nothing; for walks
	Evictions int  // members that a second deadline may evict
	Restarts  int  // workers that may lose their state
	Resets    int  // soft resets of the card
	Epochs    int  // epochs that the controller may give a job

	Large  bool // too slow for the tests; only the command explores it
	States int  // reachable states, up to the exchange of equal workers
}

// Heading returns what all explorers' configurations have.
func (c config) Heading() explorer.Heading {
	return explorer.Heading{Name: c.Name, About: c.About, Note: fmt.Sprintf("; M = %d", c.Modulus), Large: c.Large, States: c.States}
}

func (c *config) members() int {
	n := 0
	for _, k := range c.Jobs {
		n += k
	}
	return n
}

// honest reports whether a member keeps the rules.
func (c *config) honest(member int) bool {
	return !c.Rogue || member != c.members()-1
}

// jobOf returns the job that a member belongs to.
func (c *config) jobOf(member int) int {
	for job, k := range c.Jobs {
		if member < k {
			return job
		}
		member -= k
	}
	panic("no such member")
}

// membersOf returns the set of a job's members, one bit each.
func (c *config) membersOf(job int) uint8 {
	var members uint8
	for m := range c.members() {
		if c.jobOf(m) == job {
			members |= bit(m)
		}
	}
	return members
}

// end is the first VID after the stream.
func (c *config) end() int { return c.First + c.Chunks }

// lifetime is the life of a packet in chunks: it leaves the network when a VID this far ahead of
// its own is first sent.
func (c *config) lifetime() int { return c.Modulus - 2*c.Window }

// inputsKept is how far ahead of v a worker must hold a result before it drops its input v. With
// complete sums, holding v + W proves that every member holds v. With partial sums only the
// turnover proves it, so the worker must hold v + 2W.
func (c *config) inputsKept() int {
	if c.Partial {
		return 2 * c.Window
	}
	return c.Window
}

// epochs is the modulus of epochs.
func (c *config) epochs() int {
	if c.EpochModulus == 0 {
		return fewEpochs
	}
	return c.EpochModulus
}

func bit(member int) uint8 { return 1 << member }
