// Package baseline has the simple ways that planners are compared with: no switch sums, the nearest
// switch sums, or two levels of switches sum as in ATP (NSDI 2021).
package baseline

import (
	"context"
	"slices"

	"tributary/driver/planner/fit"
	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// None returns the fastest tree in which no switch sums: an exact maximum flow decides the paths.
func None(ctx context.Context, n *network.Network, server int) *network.Tree {
	f, rates := fit.New(ctx, n, server), n.Rates()
	var best *network.Tree
	for low, high := 0, len(rates); low < high; {
		middle := (low + high) / 2
		limits := n.Limits(rates[middle])
		if t := f.Fit(limits, nil, 1, nil); t != nil {
			best, high = t, middle
		} else {
			low = middle + 1
		}
	}
	return best
}

// Nearest returns trees in which each worker's stream goes to the nearest switch that can sum, as far as
// that has room, and otherwise straight to the server, all by shortest paths. The first is the fastest
// alone. With several, there follow those of which a switch sums as much as its rate allows, and the rest
// goes straight to the server.
func Nearest(n *network.Network, server int, several bool) []*network.Tree {
	b := newBuilder(n, server)
	return trees(n, several, func(limits []int64) *network.Tree {
		b.begin(limits)
		for _, w := range n.Workers {
			b.send(w, b.nearest(w))
		}
		b.sums(func(int) int { return server })
		return b.tree
	})
}

// ATP returns a tree of two levels: each worker's stream goes to the nearest switch that can sum, and
// the sums go to the one nearest to the server. What a switch has no room for goes straight to the server.
// Several trees are as in Nearest.
func ATP(n *network.Network, server int, several bool) []*network.Tree {
	b := newBuilder(n, server)
	top := b.top()
	return trees(n, several, func(limits []int64) *network.Tree {
		b.begin(limits)
		for _, w := range n.Workers {
			b.send(w, b.nearest(w))
		}
		b.sums(func(s int) int {
			if s == top || top < 0 || b.left[top] < 1 || b.toward(top).distance[s] < 0 {
				return server
			}
			b.left[top]--
			return top
		})
		return b.tree
	})
}

// mostTrees is how many trees there are to choose from.
const mostTrees = 16

// trees returns the fastest tree and, with several, the trees without limits by rates: the first one,
// the one without the switches that are full first, without those that are full next, and so on.
func trees(n *network.Network, several bool, build func(limits []int64) *network.Tree) []*network.Tree {
	all := []*network.Tree{fastest(n, build)}
	if !several {
		return all
	}
	limits := make([]int64, len(n.Nodes))
	for i, node := range n.Nodes {
		if limits[i] = network.Unlimited; node.Kind == topology.Switch {
			limits[i] = int64(node.Ports)
		}
	}
	for len(all) < mostTrees {
		t := build(limits)
		all = append(all, t)
		load := n.Load(t)
		var full []int
		var least network.Rate
		for _, s := range t.Sums {
			rate := network.Rate{Num: n.Nodes[s.Switch].Rate, Den: load.Nodes[s.Switch]}
			if rate.Num == network.Unlimited {
				continue
			}
			if len(full) > 0 && rate.Cmp(least) < 0 {
				full = full[:0]
			}
			if len(full) == 0 || rate.Cmp(least) == 0 {
				full, least = append(full, s.Switch), rate
			}
		}
		if len(full) == 0 {
			break
		}
		for _, s := range full {
			limits[s] = 0
		}
	}
	return all
}

// fastest builds trees for the limits of several rates, and returns the fastest.
func fastest(n *network.Network, build func(limits []int64) *network.Tree) (best *network.Tree) {
	var rate network.Rate
	for _, r := range switchRates(n) {
		t := build(n.Limits(r).Nodes)
		if own := n.Best(t); best == nil || own.Cmp(rate) > 0 {
			best, rate = t, own
		}
	}
	return best
}

// switchRates returns the rates at which the number of streams changes that a switch can sum.
func switchRates(n *network.Network) (rates []network.Rate) {
	rates = append(rates, n.Access())
	seen := map[int64]bool{network.Unlimited: true}
	for _, node := range n.Nodes {
		if node.Kind == topology.Switch && node.Ports > 0 && !seen[node.Rate] {
			seen[node.Rate] = true
			for k := range int64(min(node.Ports, len(n.Workers))) {
				rates = append(rates, network.Rate{Num: node.Rate, Den: k + 1})
			}
		}
	}
	return rates
}

// builder makes a tree of shortest paths.
type builder struct {
	net     *network.Network
	server  int
	tree    *network.Tree
	left    []int64 // room, by node
	summers []int
	to      map[int]*tree // shortest paths to a node
}

func newBuilder(n *network.Network, server int) *builder {
	b := &builder{net: n, server: server, to: map[int]*tree{}}
	b.toward(server)
	for i, node := range n.Nodes {
		if node.Kind == topology.Switch && node.Ports > 0 && b.to[server].distance[i] >= 0 {
			b.summers = append(b.summers, i)
		}
	}
	return b
}

// begin begins a tree.
func (b *builder) begin(limits []int64) {
	b.tree, b.left = &network.Tree{Server: b.server}, slices.Clone(limits)
}

// tree is the shortest paths to a node.
type tree struct {
	distance []int // in arcs; -1: none
	first    []int // arcs
}

// toward returns the shortest paths to a node.
func (b *builder) toward(node int) *tree {
	if t := b.to[node]; t != nil {
		return t
	}
	n := b.net
	t := &tree{make([]int, len(n.Nodes)), make([]int, len(n.Nodes))}
	for i := range t.distance {
		t.distance[i] = -1
	}
	t.distance[node] = 0
	for queue := []int{node}; len(queue) > 0; queue = queue[1:] {
		for _, a := range n.In[queue[0]] {
			from := n.Arcs[a].From
			if t.distance[from] >= 0 {
				continue
			}
			t.distance[from], t.first[from] = t.distance[queue[0]]+1, a
			if n.Nodes[from].Kind == topology.Switch {
				queue = append(queue, from)
			}
		}
	}
	b.to[node] = t
	return t
}

// nearest returns the nearest switch that can sum, or the server if none can. Of several, it is the
// first of the topology.
func (b *builder) nearest(worker int) int {
	near, least := b.server, -1
	for _, s := range b.summers {
		if d := b.toward(s).distance[worker]; d >= 0 && (least < 0 || d < least) {
			near, least = s, d
		}
	}
	return near
}

// top returns the switch that can sum and is nearest to the server, or -1.
func (b *builder) top() int {
	top, least := -1, -1
	for _, s := range b.summers {
		if d := b.to[b.server].distance[s]; least < 0 || d < least {
			top, least = s, d
		}
	}
	return top
}

// send adds a worker's stream: to a node if that has room, otherwise to the server.
func (b *builder) send(worker, to int) {
	if b.left[to] < 1 {
		to = b.server
	}
	if b.left[to] > 0 {
		b.left[to]--
	}
	b.tree.Members = append(b.tree.Members, network.Member{Worker: worker, To: to, Path: b.path(worker, to)})
}

// sums adds the sums of all switches with members, and of those where they go.
func (b *builder) sums(to func(s int) int) {
	used := map[int]bool{}
	for _, m := range b.tree.Members {
		used[m.To] = true
	}
	delete(used, b.server)
	above := map[int]bool{}
	for _, s := range b.summers {
		if used[s] {
			next := to(s)
			b.tree.Sums = append(b.tree.Sums, network.Sum{Switch: s, To: next, Path: b.path(s, next)})
			above[next] = true
		}
	}
	for _, s := range b.summers {
		if above[s] && !used[s] {
			b.tree.Sums = append(b.tree.Sums, network.Sum{Switch: s, To: b.server, Path: b.path(s, b.server)})
		}
	}
	slices.SortFunc(b.tree.Sums, func(a, b network.Sum) int { return a.Switch - b.Switch })
}

// path returns the shortest path between two nodes.
func (b *builder) path(from, to int) (path network.Path) {
	t := b.toward(to)
	for from != to {
		path = append(path, t.first[from])
		from = b.net.Arcs[t.first[from]].To
	}
	return path
}
