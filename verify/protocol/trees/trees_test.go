package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/protocol/explorer"
	"tributary/verify/protocol/explorer/explorertest"
)

var tests = explorertest.Suite[config]{New: suite, Cases: []explorertest.Case{
	{Args: "-weaken final-added", Status: explorer.ExitBroken, Contains: "violated: right result"},
	{Args: "-weaken final-added -config two-two", Status: explorer.ExitBroken, Contains: "two-two: "},
}}

func TestExplorer(t *testing.T) { tests.Test(t) }

// TestExchange explores with and without the exchange of equal workers and leaves. Both find the
// same states, up to the exchange.
func TestExchange(t *testing.T) {
	with := newSearch(tests.Named(t, "two-two"), 0, "")
	assert.Len(t, with.New().symmetry.orders, 8)
	with.Run(nil)
	without := newSearch(tests.Named(t, "two-two"), 0, "")
	w := without.New()
	w.symmetry.orders = w.symmetry.orders[:1]
	without.Run(nil)
	assert.Greater(t, without.States.Len(), 3*with.States.Len())

	keys := map[string]bool{}
	whole := newSymmetry(w)
	for i := range without.States.Len() {
		without.States.Load(i, &w.state)
		_, key := whole.canonical(&w.state)
		keys[string(key)] = true
	}
	assert.Len(t, keys, with.States.Len())
}

// TestEncoding: decoding a state's encoding and encoding it again gives the same bytes, and the encoding of
// a state that a step makes has all of it.
func TestEncoding(t *testing.T) {
	for _, name := range []string{"leaf-taken", "beats-forgets", "restart"} {
		c := tests.Named(t, name)
		s := newSearch(c, 0, "")
		s.Run(nil)
		lister, w := s.New(), s.New()
		for i, encoded := range s.States.(orbits).All() {
			lister.state = c.decode(encoded)
			require.Equal(t, encoded, string(c.encode(nil, &lister.state)))
			if i%17 != 0 {
				continue
			}
			lister.Steps(func(step step) {
				if w.state = lister.state; w.Step(step) && c.decode(string(c.encode(nil, &w.state))) != w.state {
					require.Equal(t, w.state, c.decode(string(c.encode(nil, &w.state))))
				}
			})
		}
	}
}
