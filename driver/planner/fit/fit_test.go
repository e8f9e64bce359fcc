package fit

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// small calls a function for seeded random networks of so many switches and workers. Every other worker
// has a second link.
func small(t *testing.T, count, switches, workers int, each func(n *network.Network, random *rand.Rand)) {
	t.Helper()
	for seed := range count {
		topo, err := topology.Generate(fmt.Sprintf("random:seed=%d,switches=%d,workers=%d", seed, switches, workers))
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		for i, w := range topo.Of(topology.Worker) {
			topo.Links[len(topo.Links)-workers+i].Capacity[0] = big.NewRat(int64(20*(1+random.IntN(5))), 1)
			if first := topo.Links[len(topo.Links)-workers+i].Ends[0]; i%2 == 0 {
				topo.Links = slices.Insert(topo.Links, 0, topology.Link{Ends: [2]int{(first + 1 + random.IntN(switches-1)) % switches, w}, Capacity: [2]*big.Rat{big.NewRat(50, 1), big.NewRat(50, 1)}})
			}
		}
		for i := range topo.Links {
			topo.Links[i].Capacity[1] = topo.Links[i].Capacity[0]
		}
		n, err := network.New(topo)
		require.NoError(t, err)
		each(n, random)
	}
}

// exists tries all sets of summing switches, with all paths of their sums.
func exists(n *network.Network, server int, limits network.Limits) bool {
	flow := network.NewFlow(n, server)
	arcs, takes := slices.Clone(limits.Arcs), make([]int64, len(n.Nodes))
	takes[server] = limits.Nodes[server]
	var decide func(s int) bool
	var lead func(s, at int, seen []int) bool
	decide = func(s int) bool {
		if s == len(n.Nodes) {
			return takes[server] >= 0 && flow.Run(arcs, takes) == int64(len(n.Workers))
		}
		if decide(s + 1) {
			return true
		}
		return n.Nodes[s].Kind == topology.Switch && limits.Nodes[s] > 0 && lead(s, s, nil)
	}
	lead = func(s, at int, seen []int) bool {
		if at == server {
			takes[s], takes[server] = limits.Nodes[s], takes[server]-1
			found := decide(s + 1)
			takes[s], takes[server] = 0, takes[server]+1
			return found
		}
		for _, a := range n.Out[at] {
			if arcs[a] > 0 && !slices.Contains(seen, n.Arcs[a].To) {
				arcs[a]--
				found := lead(s, n.Arcs[a].To, append(seen, at))
				arcs[a]++
				if found {
					return true
				}
			}
		}
		return false
	}
	return decide(0)
}

// valid checks that a tree has all workers, leads to the server, and keeps limits.
func valid(t *testing.T, n *network.Network, server int, tree *network.Tree, limits network.Limits) {
	t.Helper()
	follow := func(at int, path network.Path) int {
		for _, a := range path {
			require.Equal(t, at, n.Arcs[a].From)
			at = n.Arcs[a].To
		}
		return at
	}
	require.Equal(t, server, tree.Server)
	sums := map[int]int64{}
	for _, s := range tree.Sums {
		sums[s.Switch] = 0
		require.Equal(t, server, s.To)
		require.Equal(t, server, follow(s.Switch, s.Path))
	}
	require.Len(t, sums, len(tree.Sums), "each once")
	require.True(t, slices.IsSortedFunc(tree.Sums, func(a, b network.Sum) int { return a.Switch - b.Switch }))
	var workers []int
	for _, m := range tree.Members {
		workers = append(workers, m.Worker)
		require.Equal(t, m.To, follow(m.Worker, m.Path))
		if _, known := sums[m.To]; known {
			sums[m.To]++
		} else {
			require.Equal(t, server, m.To)
		}
	}
	require.Equal(t, n.Workers, workers)
	for s, members := range sums {
		require.Positive(t, members, "switch %d sums nothing", s)
	}
	load := n.Load(tree)
	for a, streams := range load.Arcs {
		require.LessOrEqual(t, streams, limits.Arcs[a])
	}
	for i, streams := range load.Nodes {
		require.LessOrEqual(t, streams, limits.Nodes[i])
	}
}

// TestFit: at the largest rate at which all choices together have a tree, the search finds one nearly
// always, and at the next rate it finds none. Many networks need sums.
func TestFit(t *testing.T) {
	missed, summed := 0, 0
	small(t, 60, 4, 5, func(n *network.Network, random *rand.Rand) {
		server, rates := n.Servers[0], n.Rates()
		best := slices.IndexFunc(rates, func(r network.Rate) bool { return exists(n, server, n.Limits(r)) })
		f, limits := New(t.Context(), n, server), n.Limits(rates[best])
		tree := f.Fit(limits, nil, 300, random)
		if tree == nil {
			missed++
			return
		}
		valid(t, n, server, tree, limits)
		if len(tree.Sums) > 0 {
			summed++
		}
		if best > 0 {
			require.Nil(t, f.Fit(n.Limits(rates[best-1]), nil, 30, random))
		}

		// The tree's own sums are a start without a search.
		again := f.Fit(limits, tree.Sums, 1, nil)
		require.NotNil(t, again)
		valid(t, n, server, again, limits)
		for _, s := range again.Sums {
			at := slices.IndexFunc(tree.Sums, func(old network.Sum) bool { return old.Switch == s.Switch })
			require.Equal(t, tree.Sums[at].Path, s.Path)
		}

		// So are its switches alone, and nothing goes where there is no room.
		for _, s := range tree.Sums {
			less := limits
			less.Nodes = slices.Clone(limits.Nodes)
			less.Nodes[s.Switch] = 0
			if tree := f.Fit(less, Start{{Switch: s.Switch, Path: s.Path}, {Switch: s.Switch}}, 30, random); tree != nil {
				valid(t, n, server, tree, less)
			}
		}
		less := limits
		less.Nodes = slices.Clone(limits.Nodes)
		less.Nodes[server] = 0
		require.Nil(t, f.Fit(less, tree.Sums, 30, random))
	})
	assert.LessOrEqual(t, missed, 1)
	assert.Greater(t, summed, 30)
}

// TestStep: whatever changes a search makes and takes back, it knows what its sums leave of the limits,
// and how many streams have a place. Many switches are added at once only if that helps.
func TestStep(t *testing.T) {
	many := 0
	small(t, 60, 9, 16, func(n *network.Network, random *rand.Rand) {
		server, rates := n.Servers[0], n.Rates()
		f, flow := New(t.Context(), n, server), network.NewFlow(n, server)
		limits := n.Limits(rates[random.IntN(len(rates))])
		f.begin(limits)
		f.best = f.run()
		for i := range 20 {
			if i%2 == 0 {
				before, chosen := f.best, f.chosen()
				if f.addMany() > 0 {
					require.Greater(t, f.best, before)
					many++
				} else {
					require.Equal(t, before, f.best)
					require.Equal(t, chosen, f.chosen())
				}
			}
			if i%2 != 0 || f.best == int64(len(n.Workers)) {
				require.Positive(t, f.step(random))
			}
			arcs, takes := slices.Clone(limits.Arcs), make([]int64, len(n.Nodes))
			takes[server] = limits.Nodes[server] - int64(len(f.sums))
			for s, path := range f.sums {
				takes[s] = limits.Nodes[s]
				at := s
				for _, a := range path {
					require.Equal(t, at, n.Arcs[a].From)
					at = n.Arcs[a].To
					arcs[a]--
					require.GreaterOrEqual(t, arcs[a], int64(0))
				}
				require.Equal(t, server, at)
			}
			require.Equal(t, arcs, f.arcs)
			require.Equal(t, takes, f.takes)
			require.GreaterOrEqual(t, takes[server], int64(0))
			require.Equal(t, flow.Run(arcs, takes), f.best)
			for i := range n.Nodes {
				require.Equal(t, flow.Cut(i), f.flow.Cut(i), "it looks where streams lack a place")
			}
		}
	})
	assert.Positive(t, many)
}

// diamond has ways from A by B and by C to the server, a longer one by D, and workers at A and D.
func diamond(t *testing.T) *network.Network {
	t.Helper()
	topo, err := topology.Parse("x", []byte(`{"directed": true, "nodes": [{"id": "A", "ports": 9}, {"id": "B", "ports": 9}, {"id": "C"}, {"id": "D", "ports": 9}, {"id": "S", "kind": "server"},
{"id": "U", "kind": "worker"}, {"id": "V", "kind": "worker"}, {"id": "W", "kind": "worker"}, {"id": "X", "kind": "worker"}, {"id": "Y", "kind": "worker"}, {"id": "Z", "kind": "worker"}],
"links": [{"source": "A", "target": "B", "capacity": 2}, {"source": "A", "target": "C", "capacity": 3}, {"source": "B", "target": "S", "capacity": 4}, {"source": "C", "target": "S", "capacity": 4},
{"source": "A", "target": "D", "capacity": 9}, {"source": "D", "target": "B", "capacity": 9},
{"source": "U", "target": "A", "capacity": 9}, {"source": "V", "target": "A", "capacity": 9}, {"source": "W", "target": "D", "capacity": 9}, {"source": "X", "target": "D", "capacity": 9}, {"source": "Y", "target": "D", "capacity": 9},
{"source": "Z", "target": "B", "capacity": 9}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	n, err := network.New(topo)
	require.NoError(t, err)
	return n
}

// TestPath: the path of a sum is a shortest one with room, and of several the one with most.
func TestPath(t *testing.T) {
	n := diamond(t)
	f := New(t.Context(), n, 4)
	f.begin(n.Limits(network.Rate{Num: 1, Den: 1}))
	assert.Equal(t, network.Path{1, 3}, f.path(0, nil), "by C: room for 3")
	assert.Equal(t, network.Path{0, 2}, f.path(0, map[int]bool{3: true}), "by B")
	assert.Equal(t, network.Path{4, 5, 2}, f.path(0, map[int]bool{0: true, 1: true}), "by D and B")
	assert.Nil(t, f.path(0, map[int]bool{2: true, 3: true}))
	f.arcs[1] = 1
	assert.Equal(t, network.Path{0, 2}, f.path(0, nil), "by B: room for 2")
	f.arcs[0], f.arcs[1] = 0, 0
	assert.Equal(t, network.Path{4, 5, 2}, f.path(0, nil))
	f.arcs[5] = 0
	assert.Nil(t, f.path(0, nil))

	// A start keeps its path, even a long one. Without room there, the search finds another one.
	limits := n.Limits(network.Rate{Num: 1, Den: 1})
	long := New(t.Context(), n, 4).Fit(limits, Start{{Switch: 0, Path: network.Path{4, 5, 2}}, {Switch: 3}}, 1, nil)
	require.NotNil(t, long)
	assert.Equal(t, network.Path{4, 5, 2}, long.Sums[0].Path)
	limits.Arcs[1] = 0
	tree := New(t.Context(), n, 4).Fit(limits, Start{{Switch: 0, Path: network.Path{1, 3}}, {Switch: 3}}, 1, nil)
	require.NotNil(t, tree)
	assert.Equal(t, network.Path{0, 2}, tree.Sums[0].Path)
}

// TestLocal: D has three workers of its own, A two; B has one.
func TestLocal(t *testing.T) {
	assert.Equal(t, []int{3, 0}, New(t.Context(), diamond(t), 4).Local())
}

// TestWorkersFit: a worker that cannot send at a rate makes it impossible.
func TestWorkersFit(t *testing.T) {
	n := diamond(t)
	f := New(t.Context(), n, 4)
	assert.True(t, f.workersFit(n.Limits(network.Rate{Num: 9, Den: 1})))
	assert.False(t, f.workersFit(n.Limits(network.Rate{Num: 10, Den: 1})))
	limits := n.Limits(network.Rate{Num: 9, Den: 1})
	limits.Nodes[7] = 0
	assert.False(t, f.workersFit(limits))
}

// TestCheap compares with the cheapest of all assignments of workers to places, at random prices. Paths
// are those of Bellman and Ford. The search may be dearer, but seldom is, and by little.
func TestCheap(t *testing.T) {
	dearer, summed, all, best := 0, 0, 0.0, 0.0
	small(t, 60, 4, 5, func(n *network.Network, random *rand.Rand) {
		server := n.Servers[0]
		prices := Prices{Arcs: make([]float64, len(n.Arcs)), Nodes: make([]float64, len(n.Nodes))}
		for a := range prices.Arcs {
			prices.Arcs[a] = math.Floor(4*random.Float64()) / 16
		}
		for i := range prices.Nodes {
			prices.Nodes[i] = math.Floor(4*random.Float64()) / 16
		}
		tree, price := Cheap(t.Context(), n, server, prices)
		valid(t, n, server, tree, unlimited(n))
		paid, load := 0.0, n.Load(tree)
		for a, streams := range load.Arcs {
			paid += float64(streams) * prices.Arcs[a]
		}
		for i, streams := range load.Nodes {
			paid += float64(streams) * prices.Nodes[i]
		}
		require.InDelta(t, paid, price, 1e-9)
		least := cheapest(n, server, prices)
		require.GreaterOrEqual(t, price, least-1e-6)
		all, best = all+price, best+least
		if price > least+1e-6 {
			dearer++
		}
		if len(tree.Sums) > 0 {
			summed++
		}
	})
	assert.LessOrEqual(t, dearer, 12)
	assert.LessOrEqual(t, all, 1.02*best)
	assert.Greater(t, summed, 20)
}

// unlimited has the ports of the switches, and no other limits.
func unlimited(n *network.Network) network.Limits {
	l := n.Limits(network.Rate{Num: 1, Den: math.MaxInt64})
	return l
}

// cheapest returns the price of the cheapest tree.
func cheapest(n *network.Network, server int, prices Prices) float64 {
	distance := func(to int) []float64 {
		d := slices.Repeat([]float64{math.Inf(1)}, len(n.Nodes))
		d[to] = 0
		for range n.Nodes {
			for a, arc := range n.Arcs {
				d[arc.From] = min(d[arc.From], d[arc.To]+prices.Arcs[a])
			}
		}
		return d
	}
	toServer := distance(server)
	places, to := []int{server}, [][]float64{toServer}
	for i, node := range n.Nodes {
		if node.Ports > 0 {
			places, to = append(places, i), append(to, distance(i))
		}
	}
	count := make([]int, len(n.Nodes))
	var assign func(w int) float64
	assign = func(w int) float64 {
		if w == len(n.Workers) {
			return 0
		}
		least := math.Inf(1)
		for p, place := range places {
			if place != server && count[place] == n.Nodes[place].Ports {
				continue
			}
			cost := prices.Nodes[n.Workers[w]] + to[p][n.Workers[w]] + prices.Nodes[place]
			if place != server && count[place] == 0 {
				cost += toServer[place] + prices.Nodes[server]
			}
			count[place]++
			least = min(least, cost+assign(w+1))
			count[place]--
		}
		return least
	}
	return assign(0)
}
