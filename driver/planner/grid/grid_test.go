package grid

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/driver/planner/every"
	"tributary/driver/planner/fit"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// TestOne: in small networks, planner exact finds the fastest of all trees, and proves it. The relaxation
// alone gives a bound that holds, and without a solver there is a tree.
func TestOne(t *testing.T) {
	solver, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	summed := 0
	for seed := range 12 {
		n, err := every.Network(seed, 1+seed%2)
		require.NoError(t, err)
		server := n.Servers[len(n.Servers)-1]
		best := network.Rate{Num: 0, Den: 1}
		for _, tree := range every.Trees(n, server) {
			if r := n.Best(tree); r.Cmp(best) > 0 {
				best = r
			}
		}
		found, err := One(t.Context(), n, server, Options{Solver: solver})
		require.NoError(t, err)
		require.True(t, found.Bounded)
		require.False(t, found.TimedOut)
		require.Zero(t, found.Rate.Cmp(best), "seed %d: %v, and the best is %v", seed, found.Rate, best)
		require.Zero(t, found.Bound.Cmp(best), "seed %d: %v, and the best is %v", seed, found.Bound, best)
		require.Zero(t, n.Best(found.Tree).Cmp(best))
		if len(found.Tree.Sums) > 0 {
			summed++
		}
		relaxed, err := One(t.Context(), n, server, Options{Solver: solver, Gap: 1})
		require.NoError(t, err)
		require.LessOrEqual(t, relaxed.Rate.Cmp(best), 0)
		require.GreaterOrEqual(t, relaxed.Bound.Cmp(best), 0)
		require.LessOrEqual(t, relaxed.Programs, found.Programs)
		alone, err := One(t.Context(), n, server, Options{})
		require.NoError(t, err)
		require.False(t, alone.Bounded)
		require.Zero(t, alone.Programs)
		require.LessOrEqual(t, alone.Rate.Cmp(best), 0)
	}
	assert.Greater(t, summed, 4)
}

// TestWhole: from the slowest tree, which the search without a solver would improve, whole-number programs
// alone find the fastest. A program that reaches its time limit leaves tree and bound as they are.
func TestWhole(t *testing.T) {
	solver, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	slow := &highs.Solver{Program: filepath.Join(t.TempDir(), "slow")}
	require.NoError(t, os.WriteFile(slow.Program, []byte("#!/bin/sh\nprintf 'Model status\\nTime limit reached\\n' > \"$4\"\n"), 0o700))
	improved := 0
	for seed := range 4 {
		n, err := every.Network(seed, 1)
		require.NoError(t, err)
		server := n.Servers[0]
		best := network.Rate{Num: 0, Den: 1}
		for _, tree := range every.Trees(n, server) {
			if r := n.Best(tree); r.Cmp(best) > 0 {
				best = r
			}
		}
		begin := func(with *highs.Solver) *search {
			s := &search{Options: Options{Solver: with}, net: n, server: server, fitter: fit.New(t.Context(), n, server), rates: n.Rates(), random: rand.New(rand.NewPCG(1, 2))}
			s.take(s.fitter.Fit(n.Limits(s.rates[len(s.rates)-1]), nil, 1, s.random))
			return s
		}
		s := begin(solver)
		if s.rates[s.best].Cmp(best) < 0 {
			improved++
		}
		bound, err := s.whole(t.Context(), 0)
		require.NoError(t, err)
		require.Zero(t, s.rates[bound].Cmp(best))
		require.Zero(t, n.Best(s.tree).Cmp(best))
		require.False(t, s.found.TimedOut)

		for _, search := range []func(s *search) (int, error){
			func(s *search) (int, error) { return s.whole(t.Context(), 0) },
			func(s *search) (int, error) { return s.relax(t.Context()) },
		} {
			s = begin(slow)
			before := s.best
			bound, err = search(s)
			require.NoError(t, err)
			require.Zero(t, bound)
			require.Equal(t, before, s.best)
			require.Equal(t, before > 0, s.found.TimedOut)
		}
	}
	assert.Greater(t, improved, 2)
}

// solved plans for a topology in NetworkX JSON, with a solver.
func solved(t *testing.T, text string) (*Found, *network.Network) {
	t.Helper()
	topo, err := topology.Parse("x", []byte(text), topology.Defaults{Summing: -1})
	require.NoError(t, err)
	n, err := network.New(topo)
	require.NoError(t, err)
	solver, err := highs.Find(t.Context(), "")
	require.NoError(t, err)
	found, err := One(t.Context(), n, n.Servers[0], Options{Solver: solver})
	require.NoError(t, err)
	return found, n
}

// TestRing: on a ring of one way, only X can sum. Four workers' streams pass the link from A to B on their
// way to X, and their sum passes it again: five streams, which is more than there are workers. Once such
// rates were left out, and the bound was 29/30.
func TestRing(t *testing.T) {
	found, n := solved(t, `{"directed": true, "nodes": [{"id": "A"}, {"id": "B"}, {"id": "X", "ports": 8}, {"id": "S", "kind": "server"},
{"id": "V1", "kind": "worker"}, {"id": "V2", "kind": "worker"}, {"id": "V3", "kind": "worker"}, {"id": "V4", "kind": "worker"}],
"links": [{"source": "A", "target": "B", "capacity": 5}, {"source": "B", "target": "X", "capacity": 100}, {"source": "X", "target": "A", "capacity": 100}, {"source": "B", "target": "S", "capacity": 2.9},
{"source": "V1", "target": "A", "capacity": 100}, {"source": "V2", "target": "A", "capacity": 100}, {"source": "V3", "target": "A", "capacity": 100}, {"source": "V4", "target": "A", "capacity": 100}]}`)
	assert.Equal(t, "1", n.Gbps(found.Rate).RatString())
	assert.Equal(t, "1", n.Gbps(found.Bound).RatString())
}

// TestSecondLink: the wider link of the worker leads to a slow way. The rate is that of its other link. Once
// this was no possible rate.
func TestSecondLink(t *testing.T) {
	found, n := solved(t, `{"nodes": [{"id": "A"}, {"id": "B"}, {"id": "S", "kind": "server"}, {"id": "W", "kind": "worker"}],
"links": [{"source": "W", "target": "A", "capacity": 9}, {"source": "W", "target": "B", "capacity": 4}, {"source": "A", "target": "S", "capacity": 1}, {"source": "B", "target": "S", "capacity": 100}]}`)
	assert.Equal(t, "4", n.Gbps(found.Rate).RatString())
	assert.Equal(t, "4", n.Gbps(found.Bound).RatString())
}

// TestSolverFails: the error of a solver ends the search.
func TestSolverFails(t *testing.T) {
	n, err := every.Network(1, 1)
	require.NoError(t, err)
	_, err = One(t.Context(), n, n.Servers[0], Options{Solver: &highs.Solver{Program: "false"}})
	assert.ErrorContains(t, err, "HiGHS: exit status 1")
}
