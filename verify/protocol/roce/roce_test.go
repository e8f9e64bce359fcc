package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"tributary/verify/protocol/explorer"
	"tributary/verify/protocol/explorer/explorertest"
)

var tests = explorertest.Suite[config]{New: suite, Cases: []explorertest.Case{
	{Args: "-weaken no-replay", Status: explorer.ExitBroken, Contains: "violated: progress"},
	{Args: "-weaken no-replay -config ring", Status: explorer.ExitBroken, Contains: "ring: "},
}}

func TestExplorer(t *testing.T) { tests.Test(t) }

// TestOpenCoversOrdered: an open network has no timers and no NAKs, because a packet that was sent may
// arrive again at any time. So card and endpoints reach each state there that they reach on an ordered
// network, with its timers and faults.
func TestOpenCoversOrdered(t *testing.T) {
	for _, name := range []string{"loss-ring", "timer", "losses", "losses-oldest"} {
		c := tests.Named(t, name)
		ordered := reached(c)
		c.ordered, c.losses, c.others, c.timers = false, 0, 0, 0
		covered := explorer.NewSet[state]()
		for _, s := range reached(c) {
			s = withoutNetwork(s)
			covered.Add(&s)
		}
		for _, s := range ordered {
			s = withoutNetwork(s)
			require.True(t, covered.Has(&s), name)
		}
	}
}

// reached returns the reachable states of a configuration.
func reached(c config) []state {
	s := newSearch(c, 0, rightSum)
	s.Run(nil)
	return s.States.(*explorer.Set[state]).All()
}

// TestReceivedAloneRecovers: with the wrong clock of the window, senders that repeat all PSNs complete
// nevertheless. So a run against such senders does not show that the clock is right.
func TestReceivedAloneRecovers(t *testing.T) {
	assert.Empty(t, newSearch(tests.Named(t, "pair-packets"), receivedAlone, progress).Run(nil).Broken)
	assert.Equal(t, progress, newSearch(tests.Named(t, "oldest"), receivedAlone, progress).Run(nil).Broken)
}

// withoutNetwork returns the part of a state that open and ordered networks share.
func withoutNetwork(s state) state {
	kept := state{slots: s.slots}
	for i := range s.ranks {
		r := &s.ranks[i]
		kept.ranks[i] = rank{posted: r.posted, oldest: r.oldest, expected: r.expected, gone: r.gone}
		kept.conns[i] = connection{next: s.conns[i].next, early: s.conns[i].early, ended: s.conns[i].ended}
	}
	return kept
}

// TestEverythingHappens: every outcome of a rule occurs, so no rule holds only because the explorer
// never reaches it.
func TestEverythingHappens(t *testing.T) {
	names := []string{"pair", "wrap", "asked", "lag-one", "damage", "strays", "ends", "others", "reckless-credits", "timer", "losses-oldest"}
	search := func(c config) *search { return newSearch(c, 0, rightSum) }
	explorertest.Happens(t, tests, names, search, 3000, []string{
		"the card stores it; it holds {0}", "has the sum", "the slot of v=0 turns over", "a repeat; its turn has not come",
		"owes connection 0 the sum again", "drops it: late", "its job has ended", "drops it: early", "are not done with", "its ICRC does not hold",
		"its payload is damaged", "its QPN is damaged", "the card's turn for connection 1", "the card answers on connection 1",
		"its rank has not contributed it", "the card sends the sum v=0 on connection 0", "PSN 3", "with AckReq",
		"rank 0 posts message 1", "rank 0 takes it", "a duplicate at rank 0", "sends a NAK", "has sent a NAK for the gap",
		"has completed all before", "knows it", "rank 1 goes back to v=0", "rank 1 repeats v=0", "the timer of rank 0 expires",
		"the network loses v=0 of rank 0", "the network loses a NAK", "the network loses an ACK", "the network repeats a packet", "a packet overtakes another", "passes the card",
	})
}
