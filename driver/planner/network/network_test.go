package network

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/topology"
)

// parse returns the network of a topology in NetworkX JSON.
func parse(t *testing.T, text string) *Network {
	t.Helper()
	topo, err := topology.Parse("x", []byte(text), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	n, err := New(topo)
	require.NoError(t, err)
	return n
}

// two has two switches between two workers and the server. Its capacities are 2, 3, 5, 0.5 and 0.4
// Gb/s: 20, 30, 50, 5 and 4 tenths.
const two = `{"nodes": [{"id": "A", "ports": 2, "rate": 3}, {"id": "B"}, {"id": "S", "kind": "server", "rate": 5},
{"id": "V", "kind": "worker", "rate": 2}, {"id": "W", "kind": "worker"}],
"links": [{"source": "V", "target": "A", "capacity": 3}, {"source": "W", "target": "A", "capacity": 0.5},
{"source": "W", "target": "B", "capacity": 0.4}, {"source": "A", "target": "B", "capacity": 2}, {"source": "B", "target": "S", "capacity": 5}]}`

// path returns the arcs between nodes.
func path(t *testing.T, n *Network, nodes ...int) (p Path) {
	t.Helper()
	for i, to := range nodes[1:] {
		at := slices.IndexFunc(n.Arcs, func(a Arc) bool { return a.From == nodes[i] && a.To == to })
		require.GreaterOrEqual(t, at, 0)
		p = append(p, at)
	}
	return p
}

// TestNew: capacities are whole multiples of the unit, and no arc leaves a server or enters a worker.
func TestNew(t *testing.T) {
	n := parse(t, two)
	assert.Equal(t, "1/10", n.Unit.RatString())
	assert.Equal(t, []Node{{topology.Switch, 30, 2}, {topology.Switch, Unlimited, 0}, {topology.Server, 50, 0}, {topology.Worker, 20, 0}, {topology.Worker, Unlimited, 0}}, n.Nodes)
	assert.Equal(t, []Arc{{3, 0, 30}, {4, 0, 5}, {4, 1, 4}, {0, 1, 20}, {1, 0, 20}, {1, 2, 50}}, n.Arcs)
	assert.Equal(t, [][]int{{3}, {4, 5}, nil, {0}, {1, 2}}, n.Out)
	assert.Equal(t, [][]int{{0, 1, 4}, {2, 3}, {5}, nil, nil}, n.In)
	assert.Equal(t, "W", n.Name(4))
	assert.Equal(t, "7/20", n.Gbps(Rate{7, 2}).RatString())

	node, access := n.Home(3)
	assert.Equal(t, 0, node)
	assert.Equal(t, Path{0}, access)
	node, access = n.Home(4)
	assert.Equal(t, 4, node)
	assert.Empty(t, access)
}

// TestOneWay: a link of one way is one arc, and a capacity of 0 gives no rate.
func TestOneWay(t *testing.T) {
	n := parse(t, `{"directed": true, "nodes": [{"id": "A"}, {"id": "B"}, {"id": "S", "kind": "server"}, {"id": "W", "kind": "worker"}],
"links": [{"source": "W", "target": "A", "capacity": 3}, {"source": "A", "target": "B", "capacity": 5}, {"source": "B", "target": "S", "capacity": 2}]}`)
	assert.Equal(t, []Arc{{3, 0, 3}, {0, 1, 5}, {1, 2, 2}}, n.Arcs)
	assert.Equal(t, []Rate{{3, 1}, {5, 2}, {2, 1}, {2, 2}}, n.Rates())
}

// TestUnit: the largest capacity is at most 2^48 times the unit.
func TestUnit(t *testing.T) {
	for capacity, says := range map[string]string{
		"281474976710656": "",
		"281474976710657": "x: its capacities differ too much: the smallest common part of them fits more than 2^48 times into the largest; round them",
	} {
		topo, err := topology.Parse("x", fmt.Appendf(nil, `{"nodes": [{"id": "S", "kind": "server"}, {"id": "W", "kind": "worker"}], "links": [{"source": "W", "target": "S", "capacity": %q}]}`, capacity), topology.Defaults{Summing: -1})
		require.NoError(t, err)
		_, err = New(topo)
		if says == "" {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, says)
		}
	}
}

// TestRates: the rates of a tree are the access rate, here that of W's better link, and below it the
// capacities of links over 1 to 4 streams, of nodes over 1 and 2, and of W's other link.
func TestRates(t *testing.T) {
	n := parse(t, two)
	assert.Equal(t, Rate{5, 1}, n.Access())
	assert.Equal(t, []Rate{{5, 1}, {4, 1}}, n.Rates())

	// W has a wider link, so V's rate of 20 limits the access. A to B has the same one over 1 stream, and
	// 10 over 2; A has 30/2, but not 30/4. B to the server has 50/3 and 50/4; 50/2 exceeds the access.
	// V's link has no other rate, W's link to B one.
	n.Arcs[1].Capacity = 26
	assert.Equal(t, Rate{20, 1}, n.Access())
	var rates []float64
	for _, r := range n.Rates() {
		rates = append(rates, r.Float())
	}
	assert.Equal(t, []float64{20, 50. / 3, 15, 12.5, 10, 20. / 3, 5, 4}, rates)

	// No node has a limit.
	n.Nodes[3].Rate, n.Nodes[0].Rate, n.Nodes[2].Rate = Unlimited, Unlimited, Unlimited
	rates = nil
	for _, r := range n.Rates() {
		rates = append(rates, r.Float())
	}
	assert.Equal(t, []float64{26, 25, 20, 50. / 3, 12.5, 10, 20. / 3, 5, 4}, rates)
}

// TestRateArithmetic compares Of and Cmp with arithmetic of any width.
func TestRateArithmetic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	wide := func() int64 { return 1 + random.Int64()>>random.IntN(63) }
	for range 2000 {
		a, b, capacity := Rate{wide(), wide()}, Rate{wide(), wide()}, wide()
		if random.IntN(4) == 0 {
			b = Rate{a.Num, a.Den + random.Int64N(3) - 1}
			capacity = a.Num
		}
		if b.Den > 0 {
			assert.Equal(t, big.NewRat(a.Num, a.Den).Cmp(big.NewRat(b.Num, b.Den)), a.Cmp(b), "%v %v", a, b)
		}
		streams := new(big.Int).Mul(big.NewInt(capacity), big.NewInt(a.Den))
		streams.Quo(streams, big.NewInt(a.Num))
		want := int64(Unlimited)
		if streams.IsInt64() {
			want = streams.Int64()
		}
		assert.Equal(t, want, a.Of(capacity), "%v %d", a, capacity)
	}
	assert.Equal(t, int64(Unlimited), Rate{3, 1}.Of(Unlimited))
	assert.Equal(t, int64(math.MaxInt64), Rate{1, 2}.Of(1<<62))
	assert.Equal(t, int64(Unlimited), Rate{1, 4}.Of(1<<62), "2^64 does not fit into 64 bits")
	assert.Equal(t, int64(1), Rate{7, 1}.Of(7))
	assert.Equal(t, int64(0), Rate{7, 1}.Of(6))
}

// TestTree counts the streams of a tree, and finds its rate: V and W to A, the sum by B to the server.
func TestTree(t *testing.T) {
	n := parse(t, two)
	tree := &Tree{Server: 2, Members: []Member{{3, 0, path(t, n, 3, 0)}, {4, 0, path(t, n, 4, 1, 0)}}, Sums: []Sum{{0, 2, path(t, n, 0, 1, 2)}}}
	load := n.Load(tree)
	assert.Equal(t, []int64{1, 0, 1, 1, 1, 1}, load.Arcs)
	assert.Equal(t, []int64{2, 0, 1, 1, 1}, load.Nodes)
	assert.Equal(t, Rate{4, 1}, n.Best(tree), "W's link to B")
	n.Arcs[2].Capacity = 40
	assert.Equal(t, Rate{30, 2}, n.Best(tree), "A sums two streams")
	n.Nodes[0].Rate = 50
	assert.Equal(t, Rate{20, 1}, n.Best(tree), "A to B")

	// At a rate of 4, A's ports limit it, at 30 its rate.
	l := n.Limits(Rate{4, 1})
	assert.Equal(t, []int64{7, 1, 10, 5, 5, 12}, l.Arcs)
	assert.Equal(t, []int64{2, 0, 12, 5, Unlimited}, l.Nodes)
	assert.Equal(t, []int64{1, 0, 1, 0, Unlimited}, n.Limits(Rate{30, 1}).Nodes)
}

// TestFlow compares maximum flows in small random networks with the smallest of all cuts, found by trying
// all sets of nodes. The members' paths use exactly what the flow says.
func TestFlow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	partial, several := 0, 0
	for range 150 {
		n, server := randomNetwork(t, random)
		f := NewFlow(n, server)
		for range 3 { // a flow is used again, with other capacities
			arcs, takes := make([]int64, len(n.Arcs)), make([]int64, len(n.Nodes))
			for a := range arcs {
				arcs[a] = random.Int64N(4)
			}
			for i := range takes {
				takes[i] = random.Int64N(4)
			}
			placed := f.Run(arcs, takes)
			require.Equal(t, smallestCut(n, server, arcs, takes), placed)
			if placed > 0 && placed < int64(len(n.Workers)) {
				partial++
			}
			if placed < int64(len(n.Workers)) {
				require.Equal(t, placed, cut(n, server, arcs, takes, f.Cut), "the cut is a smallest one")
			}
			members := f.Members()
			require.Len(t, members, int(placed))
			before := -1
			for _, m := range members {
				require.Greater(t, m.Worker, before, "in their order, each once")
				before = m.Worker
				at, seen := m.Worker, map[int]bool{m.Worker: true}
				for _, a := range m.Path {
					require.Equal(t, at, n.Arcs[a].From)
					at = n.Arcs[a].To
					require.False(t, seen[at], "a cycle")
					seen[at] = true
					if _, access := n.Home(m.Worker); len(access) == 0 || a != access[0] {
						arcs[a]--
						require.GreaterOrEqual(t, arcs[a], int64(0))
					}
				}
				require.Equal(t, at, m.To)
				takes[at]--
				require.GreaterOrEqual(t, takes[at], int64(0))
				require.True(t, at == server || n.Nodes[at].Ports > 0)
				if len(m.Path) > 2 {
					several++
				}
			}
		}
	}
	assert.Greater(t, partial, 50)
	assert.Greater(t, several, 50)
}

// randomNetwork has up to five switches, of which some can sum, up to five workers with one or two links,
// and two servers.
func randomNetwork(t *testing.T, random *rand.Rand) (n *Network, server int) {
	t.Helper()
	topo := &topology.Topology{Name: "random"}
	node := func(kind topology.Kind, ports int) int {
		topo.Nodes = append(topo.Nodes, topology.Node{ID: topology.ID{Text: fmt.Sprint(len(topo.Nodes))}, Kind: kind, Ports: ports})
		return len(topo.Nodes) - 1
	}
	link := func(a, b int) {
		topo.Links = append(topo.Links, topology.Link{Ends: [2]int{a, b}, Capacity: [2]*big.Rat{big.NewRat(1, 1), big.NewRat(1, 1)}})
	}
	switches := 2 + random.IntN(4)
	for s := range switches {
		node(topology.Switch, random.IntN(2)*4)
		for other := range s {
			if random.IntN(3) > 0 {
				link(s, other)
			}
		}
	}
	for range 1 + random.IntN(5) {
		w := node(topology.Worker, 0)
		for range 1 + random.IntN(2) {
			link(w, random.IntN(switches))
		}
	}
	for range 2 {
		server = node(topology.Server, 0)
		link(server, random.IntN(switches))
		link(server, random.IntN(switches))
	}
	n, err := New(topo)
	require.NoError(t, err)
	return n, server
}

// smallestCut tries all sets of nodes.
func smallestCut(n *Network, server int, arcs, takes []int64) int64 {
	least := int64(math.MaxInt64)
	for set := range 1 << len(n.Nodes) {
		least = min(least, cut(n, server, arcs, takes, func(node int) bool { return set>>node&1 != 0 }))
	}
	return least
}

// cut returns the capacity from a side of a network to the other: workers whose streams begin on the
// other side, arcs, and what nodes on this side take.
func cut(n *Network, server int, arcs, takes []int64, side func(node int) bool) (capacity int64) {
	for _, w := range n.Workers {
		if home, _ := n.Home(w); !side(home) {
			capacity++
		}
	}
	for a, arc := range n.Arcs {
		if side(arc.From) && !side(arc.To) {
			capacity += arcs[a]
		}
	}
	for i, node := range n.Nodes {
		if side(i) && (i == server || node.Kind == topology.Switch && node.Ports > 0) {
			capacity += takes[i]
		}
	}
	return capacity
}
