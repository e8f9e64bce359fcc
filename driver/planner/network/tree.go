package network

import "tributary/driver/planner/topology"

// Member is a worker's stream in a tree.
type Member struct {
	Worker int
	To     int  // the switch that sums it, or the server
	Path   Path // from the worker
}

// Sum is what a used switch sends.
type Sum struct {
	Switch int
	To     int // another used switch, or the server
	Path   Path
}

// Tree says how the gradients of all workers reach a server. Workers and switches are in the order of
// their nodes.
type Tree struct {
	Server  int
	Members []Member
	Sums    []Sum
}

// Load counts the streams of a tree on everything that has a capacity.
type Load struct {
	Arcs  []int64 // streams
	Nodes []int64 // streams that a switch sums, that arrive at a server, or that a worker sends
}

// Load returns the load of a tree.
func (n *Network) Load(t *Tree) Load {
	l := Load{Arcs: make([]int64, len(n.Arcs)), Nodes: make([]int64, len(n.Nodes))}
	follow := func(p Path, to int) {
		for _, a := range p {
			l.Arcs[a]++
		}
		l.Nodes[to]++
	}
	for _, m := range t.Members {
		l.Nodes[m.Worker]++
		follow(m.Path, m.To)
	}
	for _, s := range t.Sums {
		follow(s.Path, s.To)
	}
	return l
}

// Limits are the streams that everything may carry.
type Limits struct {
	Arcs  []int64
	Nodes []int64 // for switches, ports included
}

// Limits returns the streams that everything can carry at a rate.
func (n *Network) Limits(r Rate) Limits {
	l := Limits{make([]int64, len(n.Arcs)), make([]int64, len(n.Nodes))}
	for i, a := range n.Arcs {
		l.Arcs[i] = r.Of(a.Capacity)
	}
	for i, node := range n.Nodes {
		l.Nodes[i] = r.Of(node.Rate)
		if node.Kind == topology.Switch {
			l.Nodes[i] = min(l.Nodes[i], int64(node.Ports))
		}
	}
	return l
}

// Capacities calls a function for the capacity of each arc, then of each node, with what loads have of it.
func (n *Network) Capacities(each func(capacity int64, streams func(l Load) int64)) {
	for a, arc := range n.Arcs {
		each(arc.Capacity, func(l Load) int64 { return l.Arcs[a] })
	}
	for i, node := range n.Nodes {
		each(node.Rate, func(l Load) int64 { return l.Nodes[i] })
	}
}

// Best returns the largest rate of a tree alone. It is a capacity divided by a number of streams.
func (n *Network) Best(t *Tree) (best Rate) {
	load := n.Load(t)
	best = Rate{Unlimited, 1}
	n.Capacities(func(capacity int64, streams func(Load) int64) {
		if r := (Rate{capacity, streams(load)}); capacity != Unlimited && r.Den > 0 && r.Cmp(best) < 0 {
			best = r
		}
	})
	return best
}
