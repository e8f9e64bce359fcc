package relax

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/every"
	"tributary/driver/planner/fit"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
)

// solve solves a program.
func solve(t *testing.T, p *Program) *highs.Solution {
	t.Helper()
	solver, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	solution, err := solver.Solve(t.Context(), &p.Model, highs.Options{})
	require.NoError(t, err)
	return solution
}

// TestRoom: in small networks, the program in whole numbers has a solution up to the rate of the fastest of all
// trees, and no further. The relaxation has one there too; at the rates where it has none, there is no tree.
// A tree within what a solution uses exists.
func TestRoom(t *testing.T) {
	weak := 0
	for seed := range 5 {
		n, err := every.Network(seed, 2)
		require.NoError(t, err)
		server, rates := n.Servers[1], n.Rates()
		best := len(rates)
		for _, tree := range every.Trees(n, server) {
			own := n.Best(tree)
			at := slices.IndexFunc(rates, func(r network.Rate) bool { return r.Cmp(own) == 0 })
			require.GreaterOrEqual(t, at, 0, "a tree has another rate")
			best = min(best, at)
		}
		limits := n.Limits(rates[best])
		p := New(n, server, limits, nil, true)
		solution := solve(t, p)
		require.Equal(t, highs.Optimal, solution.Status)
		tree := fit.New(t.Context(), n, server).Fit(p.Within(solution, limits), p.Round(solution, rand.New(rand.NewPCG(1, 2))), 1, nil)
		require.NotNil(t, tree)
		require.GreaterOrEqual(t, n.Best(tree).Cmp(rates[best]), 0)
		require.Equal(t, highs.Optimal, solve(t, New(n, server, limits, nil, false)).Status)
		if best > 0 {
			limits := n.Limits(rates[best-1])
			require.Equal(t, highs.Infeasible, solve(t, New(n, server, limits, nil, true)).Status)
			if solve(t, New(n, server, limits, nil, false)).Status == highs.Optimal {
				weak++
			}
		}
	}
	assert.Less(t, weak, 3, "the relaxation excludes rates")
}

// TestCheapest compares with the prices of all trees. The program leaves out what workers pay for their
// own rates, and for their only links. The relaxation is no dearer.
func TestCheapest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seed := range 5 {
		n, err := every.Network(seed, 1+seed%2)
		require.NoError(t, err)
		server := n.Servers[0]
		prices := &fit.Prices{Arcs: make([]float64, len(n.Arcs)), Nodes: make([]float64, len(n.Nodes))}
		for a := range prices.Arcs {
			prices.Arcs[a] = float64(random.IntN(8)) / 8
		}
		for i := range prices.Nodes {
			prices.Nodes[i] = float64(random.IntN(8)) / 8
		}
		common := 0.0
		for _, w := range n.Workers {
			common += prices.Nodes[w]
			if out := n.Out[w]; len(out) == 1 {
				common += prices.Arcs[out[0]]
			}
		}
		pays := func(tree *network.Tree) (price float64) {
			load := n.Load(tree)
			for a, streams := range load.Arcs {
				price += float64(streams) * prices.Arcs[a]
			}
			for i, streams := range load.Nodes {
				price += float64(streams) * prices.Nodes[i]
			}
			return price
		}
		least := math.Inf(1)
		for _, tree := range every.Trees(n, server) {
			least = min(least, pays(tree))
		}
		limits := n.Limits(network.Rate{Num: 1, Den: math.MaxInt64}) // ports alone
		p := New(n, server, limits, prices, true)
		solution := solve(t, p)
		require.Equal(t, highs.Optimal, solution.Status)
		require.InDelta(t, least, solution.Cost+common, 1e-6)
		tree := fit.New(t.Context(), n, server).Fit(p.Within(solution, limits), p.Round(solution, random), 1, nil)
		require.NotNil(t, tree)
		require.InDelta(t, least, pays(tree), 1e-6)
		relaxed := solve(t, New(n, server, limits, prices, false))
		require.Equal(t, highs.Optimal, relaxed.Status)
		require.LessOrEqual(t, relaxed.Cost, solution.Cost+1e-6)
	}
}

// TestRound draws from a solution by hand: A sums in full, B with a share of a quarter. The sum of A goes to the
// server itself or by B, one time in four.
func TestRound(t *testing.T) {
	// Arcs: 0 A to the server, 1 A to B, 2 B to the server, 3 B to A.
	n := &network.Network{Nodes: make([]network.Node, 3), Arcs: []network.Arc{{From: 0, To: 2}, {From: 0, To: 1}, {From: 1, To: 2}, {From: 1, To: 0}}, Out: [][]int{{0, 1}, {2, 3}, nil}}
	p := &Program{net: n, server: 2, sum: []highs.Var{0, 1, 2, 3}, share: []highs.Var{4, 5, none}}
	solution := &highs.Solution{Values: []float64{0.75, 0.25, 0.5, 0, 1, 0.25}}
	random := rand.New(rand.NewPCG(1, 2))
	both, around := 0, 0
	for range 1000 {
		start := p.Round(solution, random)
		require.Equal(t, 0, start[0].Switch)
		if slices.Equal(start[0].Path, network.Path{1, 2}) {
			around++
		} else {
			require.Equal(t, network.Path{0}, start[0].Path)
		}
		if len(start) == 2 {
			both++
			require.Equal(t, 1, start[1].Switch)
			if start[1].Path != nil { // the sum of A may have used up what leaves B
				require.Equal(t, network.Path{2}, start[1].Path)
			}
		}
	}
	assert.InDelta(t, 250, around, 50)
	assert.InDelta(t, 250, both, 50)

	limits := network.Limits{Arcs: []int64{9, 9, 9, 9}, Nodes: []int64{9, 9, 9}}
	p.raw, p.taken = []highs.Var{0, none, 4, none}, []highs.Var{4, none, none}
	within := p.Within(&highs.Solution{Values: []float64{1, 0, 1.5, 0, 2 + 1e-9, 0}}, limits)
	assert.Equal(t, network.Limits{Arcs: []int64{2, 9, 4, 9}, Nodes: []int64{2, 9, 9}}, within)
	assert.Equal(t, []int64{9, 9, 9, 9}, limits.Arcs)
}
