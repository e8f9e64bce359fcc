package columns

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/every"
	"tributary/driver/planner/fit"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// tiny calls a function for small networks.
func tiny(t *testing.T, count, servers int, each func(n *network.Network)) {
	t.Helper()
	for seed := range count {
		n, err := every.Network(seed, servers)
		require.NoError(t, err)
		each(n)
	}
}

func total(rates []*big.Rat) *big.Rat {
	sum := new(big.Rat)
	for _, r := range rates {
		sum.Add(sum, r)
	}
	return sum
}

func loads(n *network.Network, trees []*network.Tree) (all []network.Load) {
	for _, t := range trees {
		all = append(all, n.Load(t))
	}
	return all
}

// right checks that the rates of what was found are positive, are the total, and keep all capacities, and that no
// server has more than most trees.
func right(t *testing.T, n *network.Network, f *Found, most int) {
	t.Helper()
	require.Len(t, f.Rates, len(f.Trees))
	require.Zero(t, total(f.Rates).Cmp(f.Total))
	count, all := map[int]int{}, loads(n, f.Trees)
	for i, tree := range f.Trees {
		require.Positive(t, f.Rates[i].Sign())
		count[tree.Server]++
		require.LessOrEqual(t, count[tree.Server], most)
	}
	n.Capacities(func(capacity int64, streams func(network.Load) int64) {
		load := new(big.Rat)
		for i, l := range all {
			load.Add(load, new(big.Rat).Mul(big.NewRat(streams(l), 1), f.Rates[i]))
		}
		if capacity != network.Unlimited {
			require.LessOrEqual(t, load.Cmp(new(big.Rat).SetInt64(capacity)), 0)
		}
	})
}

// TestSearch compares with the rates of all trees together, in networks that are small enough. The search
// begins with a bad tree. With a solver it is exact, and knows it. Once it was not: a cheapest tree that
// the solver had found got other paths, which were not cheap, and the search ended.
func TestSearch(t *testing.T) {
	solver, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	grown, several := 0, 0
	for servers, count := range map[int]int{1: 6, 2: 2} {
		tiny(t, count, servers, func(n *network.Network) {
			var all, first []*network.Tree
			for _, server := range n.Servers {
				trees := every.Trees(n, server)
				all, first = append(all, trees...), append(first, trees[len(trees)-1])
			}
			rates, _ := Rates(n, loads(n, all))
			best := total(rates)
			begin, _ := Rates(n, loads(n, first))
			if total(begin).Cmp(best) < 0 {
				grown++
			}
			one := new(big.Rat) // the best tree alone
			for _, tree := range all {
				if r := n.Best(tree); one.Cmp(big.NewRat(r.Num, r.Den)) < 0 {
					one.SetFrac64(r.Num, r.Den)
				}
			}
			if one.Cmp(best) < 0 {
				several++
			}

			o := Options{Servers: n.Servers, Most: 100}
			f, err := Search(t.Context(), n, first, o)
			require.NoError(t, err)
			right(t, n, f, 100)
			require.Nil(t, f.Bound)
			require.LessOrEqual(t, f.Total.Cmp(best), 0)
			require.GreaterOrEqual(t, f.Total.Cmp(total(begin)), 0)

			o.Solver, o.Whole = solver, true
			exact, err := Search(t.Context(), n, first, o)
			require.NoError(t, err)
			right(t, n, exact, 100)
			require.Equal(t, best.RatString(), exact.Total.RatString())
			require.Equal(t, best.RatString(), exact.Bound.RatString())
			require.Positive(t, exact.Programs)

			o.Most = 1
			few, err := Search(t.Context(), n, first, o)
			require.NoError(t, err)
			right(t, n, few, 1)
			require.LessOrEqual(t, few.Total.Cmp(best), 0)
			require.Equal(t, best.RatString(), few.Bound.RatString())
			if servers == 1 {
				require.LessOrEqual(t, few.Total.Cmp(one), 0)
				require.GreaterOrEqual(t, few.Total.Cmp(total(begin)), 0)
			}
		})
	}
	assert.Greater(t, grown, 5, "the first trees are bad")
	assert.Greater(t, several, 2, "several trees are faster than one")
}

// TestChoose: of all trees, the one that is left for a server is the best; of two and more, the total
// never grows when there are to be fewer.
func TestChoose(t *testing.T) {
	tiny(t, 6, 1, func(n *network.Network) {
		random := rand.New(rand.NewPCG(1, 2))
		all := every.Trees(n, n.Servers[0])
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(len(all), 12)]
		rates, _ := Rates(n, loads(n, all))
		before := total(rates)
		for _, most := range []int{3, 2, 1} {
			s := &search{Options: Options{Most: most}, net: n, trees: all, loads: loads(n, all)}
			s.pack()
			require.NoError(t, s.choose(t.Context()))
			right(t, n, &Found{Trees: s.trees, Rates: s.rates, Total: s.total}, most)
			require.LessOrEqual(t, s.total.Cmp(before), 0)
			before = s.total
		}
		best := new(big.Rat)
		for _, tree := range all {
			if r := n.Best(tree); best.Cmp(big.NewRat(r.Num, r.Den)) < 0 {
				best.SetFrac64(r.Num, r.Den)
			}
		}
		require.Equal(t, best.RatString(), before.RatString())
	})
}

// TestChooseServers: two trees to S, by A and by B, would be faster than one to each server, but S may have one.
func TestChooseServers(t *testing.T) {
	topo, err := topology.Parse("x", []byte(`{"directed": true, "nodes": [{"id": "A"}, {"id": "B"}, {"id": "C"}, {"id": "S", "kind": "server"}, {"id": "T", "kind": "server"}, {"id": "W", "kind": "worker"}],
"links": [{"source": "W", "target": "A", "capacity": 2}, {"source": "A", "target": "S", "capacity": 2}, {"source": "W", "target": "B", "capacity": 2}, {"source": "B", "target": "S", "capacity": 2},
{"source": "W", "target": "C", "capacity": 1}, {"source": "C", "target": "T", "capacity": 1}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	n, err := network.New(topo)
	require.NoError(t, err)
	var trees []*network.Tree
	for i, server := range []int{3, 3, 4} {
		trees = append(trees, &network.Tree{Server: server, Members: []network.Member{{Worker: 5, To: server, Path: network.Path{2 * i, 2*i + 1}}}})
	}
	s := &search{Options: Options{Most: 1}, net: n, trees: trees, loads: loads(n, trees)}
	s.pack()
	require.Equal(t, "5", s.total.RatString())
	require.NoError(t, s.choose(t.Context()))
	right(t, n, &Found{Trees: s.trees, Rates: s.rates, Total: s.total}, 1)
	require.Equal(t, "3", s.total.RatString())
}

// TestSolverIsSlow: when whole-number programs reach their time limit, the relaxation still bounds all plans.
func TestSolverIsSlow(t *testing.T) {
	solver, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	script := fmt.Sprintf(`#!/bin/sh
if grep -A1 '^General' "$5" | grep -q '^ '; then printf 'Model status\nTime limit reached\n' > "$4"; else exec %s "$@"; fi
`, solver.Program)
	slow := *solver
	slow.Program = filepath.Join(t.TempDir(), "slow")
	require.NoError(t, os.WriteFile(slow.Program, []byte(script), 0o700))
	n, err := every.Network(0, 1)
	require.NoError(t, err)
	all := every.Trees(n, n.Servers[0])
	rates, _ := Rates(n, loads(n, all))
	f, err := Search(t.Context(), n, all[:1], Options{Servers: n.Servers, Most: 9, Solver: &slow})
	require.NoError(t, err)
	assert.True(t, f.TimedOut)
	require.NotNil(t, f.Bound)
	assert.GreaterOrEqual(t, f.Bound.Cmp(total(rates)), 0)
	assert.LessOrEqual(t, f.Total.Cmp(total(rates)), 0)
}

// TestSolverFails: the error of a solver, and an end from outside, end the search.
func TestSolverFails(t *testing.T) {
	n := one(t)
	tree := &network.Tree{Server: 1, Members: []network.Member{{Worker: 2, To: 1, Path: network.Path{0, 1}}, {Worker: 3, To: 1, Path: network.Path{2}}}}
	o := Options{Servers: n.Servers, Most: 1, Solver: &highs.Solver{Program: "false"}}
	_, err := Search(t.Context(), n, []*network.Tree{tree}, o)
	assert.ErrorContains(t, err, "HiGHS: exit status 1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Search(ctx, n, []*network.Tree{tree}, o)
	assert.ErrorIs(t, err, context.Canceled)
}

// one is a worker at a switch that sums, beside another worker at the server itself.
func one(t *testing.T) *network.Network {
	t.Helper()
	topo, err := topology.Parse("x", []byte(`{"directed": true, "nodes": [{"id": "A", "ports": 7}, {"id": "S", "kind": "server", "rate": 8}, {"id": "V", "kind": "worker", "rate": 3}, {"id": "W", "kind": "worker"}],
"links": [{"source": "V", "target": "A", "capacity": 4}, {"source": "A", "target": "S", "capacity": 5}, {"source": "W", "target": "S", "capacity": 6}, {"source": "W", "target": "A", "capacity": 9}]}`), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	n, err := network.New(topo)
	require.NoError(t, err)
	return n
}

// TestAdd: a tree is of use if it pays less than 1.
func TestAdd(t *testing.T) {
	n := one(t)
	tree := &network.Tree{Server: 1, Members: []network.Member{{Worker: 2, To: 0, Path: network.Path{0}}, {Worker: 3, To: 0, Path: network.Path{3}}}, Sums: []network.Sum{{Switch: 0, To: 1, Path: network.Path{1}}}}
	for _, test := range []struct {
		prices [8]int64 // of V-A, A-S, W-S, W-A, A (two streams), S, V, W; in tenths
		added  bool
	}{
		{[8]int64{0, 0, 9, 0, 0, 0, 0, 0}, true}, // W-S is not used
		{[8]int64{2, 2, 0, 2, 1, 1, 0, 0}, true}, // 9
		{[8]int64{2, 2, 0, 2, 1, 2, 0, 0}, false},
		{[8]int64{0, 0, 0, 0, 5, 0, 0, 0}, false},
		{[8]int64{0, 0, 0, 0, 0, 0, 5, 5}, false},
		{[8]int64{0, 0, 0, 0, 0, 0, 5, 4}, true},
	} {
		s := &search{net: n}
		for _, p := range test.prices {
			s.exact = append(s.exact, big.NewRat(p, 10))
		}
		assert.Equal(t, test.added, s.add(tree), "%v", test.prices)
		if test.added {
			assert.Equal(t, []*network.Tree{tree}, s.trees)
			assert.Equal(t, []network.Load{n.Load(tree)}, s.loads)
		} else {
			assert.Empty(t, s.trees)
		}
	}
}

// TestPrices: V's rate of 3 limits the tree, so a unit of it is worth 1. The programs of the cheapest tree
// leave V's link and the workers' own rates out; access adds them.
func TestPrices(t *testing.T) {
	n := one(t)
	tree := &network.Tree{Server: 1, Members: []network.Member{{Worker: 2, To: 1, Path: network.Path{0, 1}}, {Worker: 3, To: 1, Path: network.Path{2}}}}
	s := &search{net: n, trees: []*network.Tree{tree}, loads: []network.Load{n.Load(tree)}}
	s.pack()
	assert.Equal(t, "3", s.total.RatString())
	assert.Equal(t, fit.Prices{Arcs: make([]float64, 4), Nodes: []float64{0, 0, 1, 0}}, s.prices)
	s.prices = fit.Prices{Arcs: []float64{1, 2, 4, 8}, Nodes: []float64{16, 32, 64, 128}}
	assert.Equal(t, 1.0+64+128, s.access())
	assert.Equal(t, network.Limits{Arcs: slices.Repeat([]int64{network.Unlimited}, 4), Nodes: []int64{7, network.Unlimited, network.Unlimited, network.Unlimited}}, s.ports())
}

// TestBound: each round has a bound, and the lowest holds.
func TestBound(t *testing.T) {
	s := &search{}
	for _, b := range []int64{7, 5, 6} {
		s.bound(big.NewRat(b, 1))
	}
	assert.Equal(t, "5", s.found.Bound.RatString())
}

func TestRoundUp(t *testing.T) {
	assert.Equal(t, "0.333334", roundUp(big.NewRat(1, 3)).FloatString(6))
	assert.Equal(t, "2.000001", roundUp(big.NewRat(2, 1)).FloatString(6))
}
