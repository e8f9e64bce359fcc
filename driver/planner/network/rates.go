package network

import (
	"slices"

	"tributary/driver/planner/topology"
)

// Access returns the largest rate at which every worker can send by one of its links.
func (n *Network) Access() Rate {
	access := Rate{Unlimited, 1}
	for _, w := range n.Workers {
		most := int64(0)
		for _, a := range n.Out[w] {
			most = max(most, n.Arcs[a].Capacity)
		}
		access.Num = min(access.Num, most, n.Nodes[w].Rate)
	}
	return access
}

// Rates returns the rates that one tree can have, the largest first: that of the workers, or a
// capacity divided by a number of streams. A link carries twice as many streams as there are workers, if
// the sum of each passes it too.
func (n *Network) Rates() []Rate {
	access := n.Access()
	workers := int64(len(n.Workers))
	counted := map[int64]int64{Unlimited: 2 * workers} // streams, by capacity
	rates := []Rate{access}
	add := func(capacity, most int64) {
		for k := counted[capacity] + 1; k <= most; k++ {
			if r := (Rate{capacity, k}); r.Cmp(access) < 0 {
				rates = append(rates, r)
			}
		}
		counted[capacity] = max(counted[capacity], most)
	}
	for _, a := range n.Arcs {
		switch {
		case n.Nodes[a.From].Kind != topology.Worker:
			add(a.Capacity, 2*workers)
		case len(n.Out[a.From]) > 1:
			add(a.Capacity, 1) // a wider link may lead nowhere
		}
	}
	for _, node := range n.Nodes {
		if node.Kind != topology.Worker {
			add(node.Rate, workers)
		}
	}
	slices.SortFunc(rates, func(a, b Rate) int { return b.Cmp(a) })
	return slices.CompactFunc(rates, func(a, b Rate) bool { return a.Cmp(b) == 0 })
}

// Float returns the rate in units.
func (r Rate) Float() float64 { return float64(r.Num) / float64(r.Den) }
