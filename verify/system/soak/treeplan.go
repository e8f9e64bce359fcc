package main

import (
	"math/rand/v2"

	"tributary/verify/system/faults"
)

const (
	mostTreeCards   = 4 // of a round
	mostTreeTenants = 2
	mostInTrees     = 16 // chunks in a reduction

	leastHarmedInTrees, mostHarmedInTrees = 0.01, 0.06 // share of the frames of a cable; a packet passes several
)

// treePlan holds the decisions of a round with trees of cards, all drawn from its seed.
type treePlan struct {
	rates        faults.FrameRates
	cards        []cardPlan
	hosts        int         // one-armed: at the switch
	tenants      [][]treeJob // jobs in succession
	kill, victim int         // packet of data that kills a card, and which; 0: none
}

// cardPlan is the place of a card in the network. One-armed, all cards are at a switch. In path, port 0 of each
// card but the first leads to an earlier card. Hosts are at all other ports.
type cardPlan struct {
	above, at int // in path: the earlier card, and its port; -1 for none
	host      int // its owner's, modulo the number of hosts
}

// treeJob is a job on a tree: some cards of the round, the root first.
type treeJob struct {
	cards, parents, workers []int // by position in the list; parents are positions
	window                  int   // how often to halve its share of the card's window
	chunk                   int   // beats, modulo the card's
	firstVID                uint32
	reductions              []treeReduction
}

// treeReduction is a reduction of a tree's workers.
type treeReduction struct {
	chunks   int
	short    int  // missing elements in the last chunk, modulo the chunk
	together bool // one call for all workers, instead of one for each
}

// newTreePlan draws the plan for cards with so many Ethernet ports.
func newTreePlan(seed uint64, ethernet int) treePlan {
	rng := rand.New(rand.NewPCG(seed, 3<<32))
	p := treePlan{rates: newFrameRates(rng, leastHarmedInTrees, mostHarmedInTrees), hosts: 1 + rng.IntN(3)}
	for i := range 2 + rng.IntN(mostTreeCards-1) {
		c := cardPlan{above: -1, host: rng.IntN(1 << 10)}
		if ethernet > 1 && i > 0 {
			c.above, c.at = p.freePort(rng, ethernet)
		}
		p.cards = append(p.cards, c)
	}
	p.tenants = make([][]treeJob, 1+rng.IntN(mostTreeTenants))
	data := 0
	for i := range p.tenants {
		for range 1 + rng.IntN(mostJobs) {
			j := newTreeJob(rng, len(p.cards))
			p.tenants[i] = append(p.tenants[i], j)
			for _, r := range j.reductions {
				data += r.chunks * totalOf(j.workers)
			}
		}
	}
	if rng.IntN(2) == 0 {
		p.kill, p.victim = 1+rng.IntN(data), rng.IntN(len(p.cards))
	}
	return p
}

func totalOf(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

// freePort returns a card and its port that leads nowhere yet. Port 0 leads up, or to a host.
func (p *treePlan) freePort(rng *rand.Rand, ethernet int) (card, port int) {
	var free [][2]int
	for i := range p.cards {
		for port := 1; port < ethernet; port++ {
			if p.below(i, port) < 0 {
				free = append(free, [2]int{i, port})
			}
		}
	}
	chosen := free[rng.IntN(len(free))]
	return chosen[0], chosen[1]
}

// below returns the card at a port of a card; -1 for none.
func (p *treePlan) below(card, port int) int {
	for i, c := range p.cards {
		if c.above == card && c.at == port {
			return i
		}
	}
	return -1
}

// toward returns the Ethernet port of a card behind which another card is.
func (p *treePlan) toward(card, other int) int {
	for at := other; at >= 0; at = p.cards[at].above {
		if p.cards[at].above == card {
			return p.cards[at].at
		}
	}
	return 0
}

// newTreeJob draws a tree of at least two of the cards, each with a port for all that it sums, and its job.
func newTreeJob(rng *rand.Rand, cards int) treeJob {
	j := treeJob{window: rng.IntN(2), chunk: rng.IntN(1 << 20), firstVID: rng.Uint32()}
	if rng.IntN(2) == 0 {
		j.firstVID = -uint32(rng.IntN(mostInTrees)) // VIDs wrap soon
	}
	j.cards = rng.Perm(cards)[:2+rng.IntN(cards-1)]
	used := make([]int, len(j.cards)) // ports
	for i := range j.cards {
		parent := -1
		if i > 0 {
			for parent = rng.IntN(i); used[parent] == portsOnNetwork; parent = rng.IntN(i) {
			}
			used[parent]++
		}
		j.parents = append(j.parents, parent)
	}
	for i := range j.cards {
		least := 0
		if used[i] == 0 {
			least = 1
		}
		j.workers = append(j.workers, least+rng.IntN(portsOnNetwork-used[i]-least+1))
	}
	for range 1 + rng.IntN(mostReductions) {
		j.reductions = append(j.reductions, treeReduction{1 + rng.IntN(mostInTrees), rng.IntN(1 << 20), rng.IntN(4) == 0})
	}
	return j
}

// sumOf returns what a card of the tree, by its position, sums: its workers' arrays by rank, and the cards below.
func (j *treeJob) sumOf(position int, inputs [][]float32) []float32 {
	first := totalOf(j.workers[:position])
	parts := append([][]float32(nil), inputs[first:first+j.workers[position]]...)
	for below, parent := range j.parents {
		if parent == position {
			parts = append(parts, j.sumOf(below, inputs))
		}
	}
	for len(parts) < portsOnNetwork {
		parts = append(parts, nil)
	}
	return treeSum(parts, len(inputs[0]))
}
