package network

import (
	"slices"

	"tributary/driver/planner/topology"
)

// home is where streams begin: the workers whose only link leads to one switch, or a worker with
// several links.
type home struct {
	node    int // the switch, or the worker
	workers []int
	access  []Path // from each worker to node
}

// Flow computes maximum flows of workers' streams to what takes them, for one network and server.
// All streams are alike, and any switch of a tree may sum any of them. So they are one commodity, and a
// flow in whole numbers is a set of paths.
//
// The algorithm is Dinic's (1970): shortest augmenting paths in phases.
type Flow struct {
	net    *Network
	server int
	homes  []home
	total  int64 // workers

	// Edges are in pairs: edge e and its reverse e^1. The first are those of the arcs, in their order;
	// then one for each home, then one for each node that can take streams.
	to       []int32
	left     []int64 // capacity that is left
	edges    [][]int32
	fromHome []int32 // by home
	toSink   []int32 // by node; -1: none
	source   int32
	sink     int32

	level []int32
	next  []int32
	queue []int32
}

// NewFlow returns the flows of a network to a server.
func NewFlow(n *Network, server int) *Flow {
	f := &Flow{net: n, server: server, total: int64(len(n.Workers)), source: int32(len(n.Nodes)), sink: int32(len(n.Nodes)) + 1}
	f.edges = make([][]int32, len(n.Nodes)+2)
	for _, a := range n.Arcs {
		f.edge(int32(a.From), int32(a.To))
	}
	at := map[int]int{}
	for _, w := range n.Workers {
		node, access := n.Home(w)
		h, known := at[node]
		if !known {
			h = len(f.homes)
			at[node] = h
			f.homes = append(f.homes, home{node: node})
			f.fromHome = append(f.fromHome, f.edge(f.source, int32(node)))
		}
		f.homes[h].workers = append(f.homes[h].workers, w)
		f.homes[h].access = append(f.homes[h].access, access)
	}
	f.toSink = make([]int32, len(n.Nodes))
	for i, node := range n.Nodes {
		f.toSink[i] = -1
		if i == server || node.Kind == topology.Switch && node.Ports > 0 {
			f.toSink[i] = f.edge(int32(i), f.sink)
		}
	}
	f.level = make([]int32, len(f.edges))
	f.next = make([]int32, len(f.edges))
	return f
}

func (f *Flow) edge(from, to int32) int32 {
	e := int32(len(f.to))
	f.to = append(f.to, to, from)
	f.left = append(f.left, 0, 0)
	f.edges[from] = append(f.edges[from], e)
	f.edges[to] = append(f.edges[to], e+1)
	return e
}

func (f *Flow) set(e int32, capacity int64) { f.left[e], f.left[e^1] = capacity, 0 }

// Run computes a maximum flow: the streams that arcs, switches and the server can take. takes has the
// capacity of each node. It returns how many of the workers' streams have a place.
func (f *Flow) Run(arcs, takes []int64) int64 {
	for a, capacity := range arcs {
		f.set(2*int32(a), capacity)
	}
	for h, e := range f.fromHome {
		f.set(e, int64(len(f.homes[h].workers)))
	}
	for node, e := range f.toSink {
		if e >= 0 {
			f.set(e, takes[node])
		}
	}
	placed := int64(0)
	for f.layer() {
		clear(f.next)
		placed += f.push(f.source, f.total)
	}
	return placed
}

// layer numbers the nodes by their distance from the source. It returns false if the sink is beyond
// reach; the nodes with a number are then one side of a minimum cut.
func (f *Flow) layer() bool {
	for i := range f.level {
		f.level[i] = -1
	}
	f.level[f.source] = 0
	f.queue = append(f.queue[:0], f.source)
	for i := 0; i < len(f.queue); i++ {
		at := f.queue[i]
		for _, e := range f.edges[at] {
			if to := f.to[e]; f.left[e] > 0 && f.level[to] < 0 {
				f.level[to] = f.level[at] + 1
				f.queue = append(f.queue, to)
			}
		}
	}
	return f.level[f.sink] >= 0
}

// push sends up to that many streams from a node towards the sink, along the layers.
func (f *Flow) push(at int32, most int64) (sent int64) {
	if at == f.sink {
		return most
	}
	for ; int(f.next[at]) < len(f.edges[at]); f.next[at]++ {
		e := f.edges[at][f.next[at]]
		to := f.to[e]
		if f.left[e] == 0 || f.level[to] != f.level[at]+1 {
			continue
		}
		s := f.push(to, min(most-sent, f.left[e]))
		f.left[e] -= s
		f.left[e^1] += s
		if sent += s; sent == most {
			return sent
		}
	}
	return sent
}

// Cut tells, after Run, whether a node is on the side of the minimum cut where streams lack a place.
func (f *Flow) Cut(node int) bool { return f.level[node] >= 0 }

// Taken returns how many streams a node takes, after Run.
func (f *Flow) Taken(node int) int64 {
	if e := f.toSink[node]; e >= 0 {
		return f.left[e^1]
	}
	return 0
}

// Carried returns how many streams an arc carries, after Run.
func (f *Flow) Carried(arc int) int64 { return f.left[2*arc+1] }

// Members divides the flow into paths, one for each worker that has a place.
func (f *Flow) Members() []Member {
	carried := make([]int64, len(f.net.Arcs))
	for a := range carried {
		carried[a] = f.Carried(a)
	}
	taken := make([]int64, len(f.net.Nodes))
	for i := range taken {
		taken[i] = f.Taken(i)
	}
	var members []Member
	for h, e := range f.fromHome {
		home := f.homes[h]
		for i := range f.left[e^1] {
			path, to := f.walk(home.node, carried, taken)
			members = append(members, Member{home.workers[i], to, append(slices.Clone(home.access[i]), path...)})
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return a.Worker - b.Worker })
	return members
}

// walk follows the flow from a node to one that takes a stream, and uses up both. Cycles are left out
// of the path.
func (f *Flow) walk(at int, carried, taken []int64) (path Path, to int) {
	for taken[at] == 0 {
		for _, a := range f.net.Out[at] {
			if carried[a] == 0 {
				continue
			}
			carried[a]--
			path = append(path, a)
			at = f.net.Arcs[a].To
			break
		}
		for i, a := range path {
			if f.net.Arcs[a].From == at {
				path = path[:i]
				break
			}
		}
	}
	taken[at]--
	return path, at
}
