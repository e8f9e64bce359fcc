// Package every has small networks with all of their trees, for tests of what searches for the best.
package every

import (
	"fmt"
	"math/big"
	"slices"

	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// Network returns a random network of three switches and three workers, of which one has two links. Some
// links between switches are slower one way. The same seed gives the same network.
func Network(seed, servers int) (*network.Network, error) {
	topo, err := topology.Generate(fmt.Sprintf("random:seed=%d,switches=3,workers=3,servers=%d", seed, servers))
	if err != nil {
		return nil, err
	}
	for i := range topo.Links { // the links of workers are no wider than the others
		if end := topo.Links[i].Ends[1]; topo.Nodes[end].Kind != topology.Switch {
			topo.Links[i].Capacity = [2]*big.Rat{big.NewRat(40, 1), big.NewRat(40, 1)}
		} else if (seed+i)%2 == 0 {
			topo.Links[i].Capacity[(seed+i)/2%2] = big.NewRat(int64(15-seed%8), 1)
		}
	}
	last := topo.Links[len(topo.Links)-1].Ends
	topo.Links = append(topo.Links, topology.Link{Ends: [2]int{(last[0] + 1) % 3, last[1]}, Capacity: [2]*big.Rat{big.NewRat(17, 1), big.NewRat(17, 1)}})
	return network.New(topo)
}

// Trees returns a tree of one level to a server for each load that one can have, within the ports of the
// switches. Paths have no cycles.
func Trees(n *network.Network, server int) (all []*network.Tree) {
	seen := map[string]bool{}
	var sums func(t *network.Tree, s int)
	var members func(t *network.Tree, w int)
	members = func(t *network.Tree, w int) {
		if w == len(n.Workers) {
			sums(t, 0)
			return
		}
		for i, node := range n.Nodes {
			if i == server || node.Ports > 0 {
				for _, p := range paths(n, n.Workers[w], i, nil) {
					next := *t
					next.Members = append(slices.Clone(t.Members), network.Member{Worker: n.Workers[w], To: i, Path: p})
					members(&next, w+1)
				}
			}
		}
	}
	sums = func(t *network.Tree, s int) {
		if s == len(n.Nodes) {
			if load := n.Load(t); !seen[fmt.Sprint(load)] {
				seen[fmt.Sprint(load)] = true
				all = append(all, t)
			}
			return
		}
		count := 0
		for _, m := range t.Members {
			if m.To == s {
				count++
			}
		}
		switch {
		case s == server || count == 0:
			sums(t, s+1)
		case count <= n.Nodes[s].Ports:
			for _, p := range paths(n, s, server, nil) {
				next := *t
				next.Sums = append(slices.Clone(t.Sums), network.Sum{Switch: s, To: server, Path: p})
				sums(&next, s+1)
			}
		}
	}
	members(&network.Tree{Server: server}, 0)
	return all
}

// paths returns all paths without a cycle between two nodes.
func paths(n *network.Network, from, to int, seen []int) (all []network.Path) {
	if from == to {
		return []network.Path{{}}
	}
	for _, a := range n.Out[from] {
		if next := n.Arcs[a].To; !slices.Contains(seen, next) && next != from {
			for _, rest := range paths(n, next, to, append(slices.Clone(seen), from)) {
				all = append(all, append(network.Path{a}, rest...))
			}
		}
	}
	return all
}
