package inart

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"

	"tributary/driver/planner/fit"
	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// budget is the number of flows of a search for one tree.
const budget = 200

// rerouter changes one tree after the other.
type rerouter struct {
	net    *network.Network
	trees  []*network.Tree
	shares []*big.Rat
	seed   uint64
}

// rate returns the largest total rate of the trees with their shares, in units.
func (r *rerouter) rate() *big.Rat {
	var loads []network.Load
	for _, t := range r.trees {
		loads = append(loads, r.net.Load(t))
	}
	var best *big.Rat
	r.net.Capacities(func(capacity int64, streams func(network.Load) int64) {
		if capacity == network.Unlimited {
			return
		}
		load := new(big.Rat)
		for i, l := range loads {
			load.Add(load, new(big.Rat).Mul(big.NewRat(streams(l), 1), r.shares[i]))
		}
		if load.Sign() == 0 {
			return
		}
		if most := load.Quo(new(big.Rat).SetInt64(capacity), load); best == nil || most.Cmp(best) < 0 {
			best = most
		}
	})
	return best
}

// reroute replaces a tree by one that allows a larger total rate, if it finds one. It returns the rate.
func (r *rerouter) reroute(ctx context.Context, i int, rate *big.Rat) *big.Rat {
	f := fit.New(ctx, r.net, r.trees[i].Server)
	random := rand.New(rand.NewPCG(r.seed, uint64(i)))
	old := r.trees[i]
	try := func(total float64) bool {
		t := f.Fit(r.limits(i, total), old.Sums, budget, random)
		if t == nil {
			return false
		}
		before := r.trees[i]
		r.trees[i] = t
		if now := r.rate(); now.Cmp(rate) > 0 {
			rate = now
			return true
		}
		r.trees[i] = before
		return false
	}
	low, _ := rate.Float64()
	high := 2 * low
	for try(high) {
		low, high = high, 2*high
	}
	for range 12 {
		if middle := (low + high) / 2; try(middle) {
			low, _ = rate.Float64()
		} else {
			high = middle
		}
		if high <= low {
			break
		}
	}
	return rate
}

// limits returns the streams of tree i that everything has room for beside the other trees, at a total rate.
func (r *rerouter) limits(i int, total float64) network.Limits {
	n := r.net
	arcs, nodes := make([]float64, len(n.Arcs)), make([]float64, len(n.Nodes))
	for j, t := range r.trees {
		if j == i {
			continue
		}
		share, _ := r.shares[j].Float64()
		load := n.Load(t)
		for a, streams := range load.Arcs {
			arcs[a] += float64(streams) * share * total
		}
		for v, streams := range load.Nodes {
			nodes[v] += float64(streams) * share * total
		}
	}
	share, _ := r.shares[i].Float64()
	room := func(capacity int64, used float64) int64 {
		if capacity == network.Unlimited {
			return network.Unlimited
		}
		return int64(math.Max(0, math.Min(1<<40, (float64(capacity)-used)/(share*total)+1e-9)))
	}
	l := network.Limits{Arcs: make([]int64, len(n.Arcs)), Nodes: make([]int64, len(n.Nodes))}
	for a, arc := range n.Arcs {
		l.Arcs[a] = room(arc.Capacity, arcs[a])
	}
	for v, node := range n.Nodes {
		l.Nodes[v] = room(node.Rate, nodes[v])
		if node.Kind == topology.Switch {
			l.Nodes[v] = min(l.Nodes[v], int64(node.Ports))
		}
	}
	return l
}
