package sim

// Placement says where the roots of a job's trees are.
type Placement int

// Placements.
const (
	AtSpines Placement = iota // each tree has its root at another spine; chunks go round-robin over the trees
	AtLeaf                    // one root, at the first leaf; hashes choose the spine of each leaf's flow to it
)

// JobConfig describes a reduction that repeats.
type JobConfig struct {
	Workers int // in each rack, from First on; 0 for all
	First   int
	Trees   int
	Spine   int // of tree 0; those of the others follow
	Roots   Placement
	Window  int // chunks of the job in flight, a power of two
	Tree    WindowConfig
	Payload int  // bytes of a chunk
	Bytes   int  // of an array
	Compute Time // between two reductions
	Timeout Time // the least one of asks
	Hash    uint32
}

// Job is a set of workers, and their cards.
type Job struct {
	JobConfig
	network *Network
	index   int
	payload int32
	chunks  int64 // of an array
	Members []*Worker
	Cards   []*Card
	done    []int  // workers that finished, by iteration
	Ends    []Time // of iterations: all workers have the sum
}

// NewJob sets a job up on workers of a network.
func NewJob(n *Network, c JobConfig) *Job {
	if c.Workers == 0 {
		c.Workers = n.Clos.Workers
	}
	j := &Job{JobConfig: c, network: n, index: len(n.Leaves[0].cards), payload: int32(c.Payload), chunks: int64((c.Bytes + c.Payload - 1) / c.Payload)}
	for i, leaf := range n.Leaves {
		var nodes []int32
		for _, h := range n.workerHosts(i, c.First, c.Workers) {
			nodes = append(nodes, h.id)
		}
		leaf.cards = append(leaf.cards, newCard(n, n.LeafCard, j, leaf.id, leaf, j.membersOf(i, nodes), j.parentOf(i)))
		j.Cards = append(j.Cards, leaf.cards[j.index])
	}
	for i, spine := range n.Spines {
		var card *Card
		if tree := (i - c.Spine + len(n.Spines)) % len(n.Spines); c.Roots == AtSpines && tree < c.Trees && n.Racks > 1 {
			var nodes []int32
			for _, leaf := range n.Leaves {
				nodes = append(nodes, leaf.id)
			}
			card = newCard(n, n.SpineCard, j, spine.id, spine, nodes, root)
			j.Cards = append(j.Cards, card)
		}
		spine.cards = append(spine.cards, card)
	}
	for _, h := range n.Hosts {
		h.workers = append(h.workers, nil)
	}
	for i := range n.Racks {
		for _, h := range n.workerHosts(i, c.First, c.Workers) {
			w := newWorker(j, h)
			h.workers[j.index] = w
			j.Members = append(j.Members, w)
		}
	}
	return j
}

func root(int64) int32 { return -1 }

// membersOf adds the other leaves to the workers of the first leaf if the root is there.
func (j *Job) membersOf(rack int, nodes []int32) []int32 {
	if j.Roots == AtLeaf && rack == 0 {
		for _, leaf := range j.network.Leaves[1:] {
			nodes = append(nodes, leaf.id)
		}
	}
	return nodes
}

func (j *Job) parentOf(rack int) func(int64) int32 {
	n := j.network
	switch {
	case n.Racks == 1 || j.Roots == AtLeaf && rack == 0:
		return root
	case j.Roots == AtLeaf:
		return func(int64) int32 { return n.Leaves[0].id }
	}
	return func(vid int64) int32 { return n.Spines[(int(vid%int64(j.Trees))+j.Spine)%len(n.Spines)].id }
}

// Start begins the first reduction.
func (j *Job) Start() {
	for _, w := range j.Members {
		w.begin()
	}
}

// finished counts a worker that has the sum of an iteration.
func (j *Job) finished(iteration int) {
	if iteration == len(j.done) {
		j.done = append(j.done, 0)
	}
	if j.done[iteration]++; j.done[iteration] == len(j.Members) {
		j.Ends = append(j.Ends, j.network.now)
	}
}
