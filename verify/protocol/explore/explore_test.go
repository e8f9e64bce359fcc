package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/protocol/explorer"
	"tributary/verify/protocol/explorer/explorertest"
)

var tests = explorertest.Suite[config]{New: suite, Listed: explorertest.HarmlessListed, Cases: []explorertest.Case{
	{Args: "-config two-by-one -limit 10", Status: 0, Contains: "limit of states"},
	{Args: "-weaken no-bitmap", Status: explorer.ExitBroken, Contains: "violated: summed once"},
	{Args: "-weaken no-bitmap -config partial", Status: explorer.ExitBroken, Contains: "partial: "},
	{Args: "-walk 7", Status: 0, Contains: `"Answer":"stored"`},
	{Args: "-workers 3 -window 1 -limit 1000", Status: 0, Contains: "rogue-two "},
	{Args: "-workers 7", Status: explorer.ExitUsage, Contains: "no such configuration"},
}}

func TestExplorer(t *testing.T) { tests.Test(t) }

// TestExchange explores with and without the exchange of equal workers. Both find the same
// states, up to the exchange.
func TestExchange(t *testing.T) {
	c := tests.Named(t, "three-by-one")
	with := newSearch(c, 0, "", 0).Run(nil)
	search := newSearch(c, 0, "", 0)
	w := search.New()
	w.symmetry.orders = w.symmetry.orders[:1]
	without := search.Run(nil)
	assert.Empty(t, without.Broken)
	assert.Greater(t, without.States, 4*with.States)
	assert.Equal(t, with.Depth, without.Depth)

	keys := map[string]bool{}
	whole := newSymmetry(w)
	for i := range without.States {
		search.States.Load(i, &w.state)
		keys[string(whole.canonical(&w.state))] = true
	}
	assert.Len(t, keys, with.States)
}

// TestEncoding: decoding a state's encoding and encoding it again gives the same bytes.
func TestEncoding(t *testing.T) {
	for _, name := range []string{"evict-return", "reset-beats", "jobs"} {
		search := newSearch(tests.Named(t, name), 0, "", 5000)
		search.Run(nil)
		w := search.New()
		for _, s := range search.States.(orbits).All() {
			w.decode(s, &w.state)
			require.Equal(t, s, string(w.encode(nil)))
		}
	}
}

// TestWalk: a seed determines its walk, and two seeds give different walks.
func TestWalk(t *testing.T) {
	var walks [3]bytes.Buffer
	for i, seed := range []uint64{5, 5, 6} {
		require.NoError(t, takeWalk(&walks[i], seed, 0))
	}
	assert.Equal(t, walks[0].String(), walks[1].String())
	assert.NotEqual(t, walks[0].String(), walks[2].String())
}
