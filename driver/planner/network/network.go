// Package network is a topology in whole numbers, as the planners need it: links are pairs of arcs,
// and every capacity is a multiple of one unit. So a rate is an exact fraction, and the streams that a
// resource carries at that rate are a whole number.
package network

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"

	"tributary/driver/planner/topology"
)

// Unlimited is the capacity of what has no limit.
const Unlimited = math.MaxInt64

// Arc is one way of a link.
type Arc struct {
	From, To int   // nodes
	Capacity int64 // in units
}

// Node is a node of the topology, with its limits in units.
type Node struct {
	Kind  topology.Kind
	Rate  int64
	Ports int
}

// Network is a topology in units.
type Network struct {
	Topology *topology.Topology
	Unit     *big.Rat // Gb/s

	Nodes   []Node
	Arcs    []Arc
	Out     [][]int  // arcs by the node that they leave; none leave a server, none enter a worker
	In      [][]int  // arcs by the node that they enter
	Workers []int    // nodes
	Servers []int    // that all workers reach
	Notes   []string // about the other servers
}

// New returns the network of a topology. The error names a capacity whose unit would be too small.
func New(t *topology.Topology) (*Network, error) {
	n := &Network{Topology: t, Workers: t.Of(topology.Worker), Out: make([][]int, len(t.Nodes)), In: make([][]int, len(t.Nodes))}
	n.Servers, n.Notes = t.Serving()
	parts := big.NewInt(1) // of a Gb/s
	var largest big.Rat
	for _, r := range quantities(t) {
		gcd := new(big.Int).GCD(nil, nil, parts, r.Denom())
		parts.Mul(parts, new(big.Int).Quo(r.Denom(), gcd))
		if r.Cmp(&largest) > 0 {
			largest.Set(r)
		}
	}
	scale := new(big.Rat).SetInt(parts)
	if largest.Mul(&largest, scale); largest.Cmp(big.NewRat(1<<48, 1)) > 0 {
		return nil, &topology.Error{File: t.Name, Why: "its capacities differ too much: the smallest common part of them fits more than 2^48 times into the largest; round them"}
	}
	n.Unit = new(big.Rat).Inv(scale)
	units := func(r *big.Rat) int64 {
		if r == nil {
			return Unlimited
		}
		return new(big.Rat).Mul(r, scale).Num().Int64()
	}
	for _, node := range t.Nodes {
		n.Nodes = append(n.Nodes, Node{node.Kind, units(node.Rate), node.Ports})
	}
	for _, l := range t.Links {
		for way := range 2 {
			from, to := l.Ends[way], l.Ends[1-way]
			if l.Capacity[way].Sign() == 0 || n.Nodes[from].Kind == topology.Server || n.Nodes[to].Kind == topology.Worker {
				continue
			}
			n.Out[from] = append(n.Out[from], len(n.Arcs))
			n.In[to] = append(n.In[to], len(n.Arcs))
			n.Arcs = append(n.Arcs, Arc{from, to, units(l.Capacity[way])})
		}
	}
	return n, nil
}

// quantities returns all capacities and rates of a topology.
func quantities(t *topology.Topology) (all []*big.Rat) {
	for _, n := range t.Nodes {
		if n.Rate != nil {
			all = append(all, n.Rate)
		}
	}
	for _, l := range t.Links {
		all = append(all, l.Capacity[0], l.Capacity[1])
	}
	return all
}

// Home returns where a worker's stream begins to have a choice, and the way there: the switch or server
// behind its only link, or the worker itself.
func (n *Network) Home(worker int) (node int, access Path) {
	if out := n.Out[worker]; len(out) == 1 {
		return n.Arcs[out[0]].To, Path{out[0]}
	}
	return worker, nil
}

// Rate is a fraction of units.
type Rate struct{ Num, Den int64 }

// Of returns how many streams of the rate a capacity carries: floor(capacity / rate).
func (r Rate) Of(capacity int64) int64 {
	if capacity == Unlimited {
		return Unlimited
	}
	high, low := bits.Mul64(uint64(capacity), uint64(r.Den))
	if high >= uint64(r.Num) {
		return Unlimited
	}
	streams, _ := bits.Div64(high, low, uint64(r.Num))
	return int64(min(streams, Unlimited))
}

// Cmp compares two rates.
func (r Rate) Cmp(o Rate) int {
	ah, al := bits.Mul64(uint64(r.Num), uint64(o.Den))
	bh, bl := bits.Mul64(uint64(o.Num), uint64(r.Den))
	return cmp.Or(cmp.Compare(ah, bh), cmp.Compare(al, bl))
}

// Gbps returns the rate in Gb/s.
func (n *Network) Gbps(r Rate) *big.Rat {
	return new(big.Rat).Mul(big.NewRat(r.Num, r.Den), n.Unit)
}

// Name returns the name of a node.
func (n *Network) Name(node int) string { return n.Topology.Nodes[node].ID.Text }

// Path is a list of arcs from a node to another.
type Path []int
