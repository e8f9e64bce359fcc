package main

// The sizes that a state has room for. They bound what can be configured, not
// what is explored.
const (
	maxMembers = 3
	maxSlots   = 8
	maxJobs    = 2
	maxBeats   = 2
	maxVID     = 32 // absolute VIDs, see packet.vid
	maxEpochs  = 4

	fewEpochs = 4 // the modulus of epochs where nothing else is said
)

// config is one setting that is explored completely: how many workers, how
// long their stream is, and which faults may strike how often. The network
// may always lose, repeat, reorder and delay, without bound.
type config struct {
	Name  string
	About string // what it is there for, in a few words

	Jobs         []int // members of each job; member numbers run on through the jobs
	Window       int   // W, in chunks
	Modulus      int   // of VIDs; 2^32 in the protocol
	EpochModulus int   // 2^16 in the protocol, here few: an epoch is newer when it is less than half of this ahead; 0: fewEpochs
	First        int   // absolute VID that the stream begins with, at least 2W
	Chunks       int   // length of the stream of every job
	Beats        int   // of a chunk; 2 lets a sum and a transmission be caught half way

	CutThrough bool // a result may begin to leave when its first beat is summed

	Rogue     bool // the last member sends what it likes
	Partial   bool // jobs ask for partial sums at a deadline
	Notices   bool // deadlines of other jobs count too, though they change nothing; for walks
	Evictions int  // members that a second deadline may evict
	Restarts  int  // workers that may lose their state
	Resets    int  // soft resets of the card
	Epochs    int  // lives that the controller may give a job

	Large  bool // takes too long for the tests; the command explores it
	States int  // how many can be reached, workers that can be exchanged being alike
}

func (c *config) members() int {
	n := 0
	for _, k := range c.Jobs {
		n += k
	}
	return n
}

// honest says whether a member keeps the rules.
func (c *config) honest(member int) bool {
	return !c.Rogue || member != c.members()-1
}

// jobOf is the job that a member belongs to.
func (c *config) jobOf(member int) int {
	for job, k := range c.Jobs {
		if member < k {
			return job
		}
		member -= k
	}
	panic("no such member")
}

// membersOf is the set of a job's members, a bit each.
func (c *config) membersOf(job int) uint8 {
	var members uint8
	for m := range c.members() {
		if c.jobOf(m) == job {
			members |= bit(m)
		}
	}
	return members
}

// end is the first VID that is no longer in the stream.
func (c *config) end() int { return c.First + c.Chunks }

// lifetime is for how many chunks a packet lives: it is gone when a VID so far
// ahead of its own is first sent.
func (c *config) lifetime() int { return c.Modulus - 2*c.Window }

// inputsKept is how far ahead of v a worker must hold a result before it gives
// up its input v. Holding v + W proves that every member holds v, where sums
// have all members. Where a sum may be partial only the turnover proves it,
// so v + 2W is needed.
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
