package driver

// A card on a network sends a result once for each of its receivers (NETWORK.md, section 2). All
// members of this process take the first copy. The others are no duplicates, unless one comes for a
// rank whose copy has come.

// copies records the ranks whose copy of a result has come, for the last results of a job.
type copies []resultCopies

type resultCopies struct {
	vid   uint32
	ranks uint64 // 0: no copy yet
}

// newCopies returns the record of a job with that window. No copy of an older result comes, unless
// the network has delayed it: a result leaves its slot when all members have it.
func newCopies(window int) copies { return make(copies, 2*window) }

// again records a copy for ranks, and returns those whose copy had come before.
func (c copies) again(vid uint32, ranks uint64) uint64 {
	e := &c[vid&uint32(len(c)-1)]
	switch ahead := int32(vid - e.vid); {
	case e.ranks == 0 || ahead > 0:
		*e = resultCopies{vid, ranks}
		return 0
	case ahead < 0:
		return ranks
	}
	came := e.ranks & ranks
	e.ranks |= ranks
	return came
}
