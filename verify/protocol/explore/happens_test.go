package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/verify/protocol/explorer/explorertest"
)

// TestEverythingHappens: every outcome of a rule occurs, so no rule holds only because the
// explorer never reaches it.
func TestEverythingHappens(t *testing.T) {
	names := []string{"two-by-one-late", "rogue-far", "evict", "evict-return", "reset", "cut-through", "jobs-rogue"}
	search := func(c config) *search { return newSearch(c, 0, "", 40000) }
	explorertest.Happens(t, tests, names, search, 2000, []string{
		"the card stores it", "the card drops it: a duplicate", "is owed the result", "not ready", "late, the slot is empty",
		"the card drops it: late", "the card drops it: early", "VID 2",
		"replies: send it", "replies: wait for {", "the card owes", "the card does nothing",
		"refuses it: another epoch", "rank does not belong to this port", "is not set up", "was evicted",
		"has summed {0} of", "has summed {0,1} of", "sums the first beat", "the deadline of", "the card evicts",
		"begins to send", "sends the rest", "is cut off", "sends the result",
		"knows that it is evicted", "waits for the reply to its finish", "the notice that the job has ended", "lacks no such result", "not of its epoch",
		"sends finish", "the job has ended", "replies: done, the job has ended", "the card took its finish",
		"acknowledges it again", "a stale epoch", "ends epoch 0 and sets up epoch 1", "the card is reset", "begins in epoch 1",
		"payload 1", "of job 1",
	})
}

// TestTwoEvictEachOther: from W = 2 on, two workers that keep the rules can each wait for the
// other's slot. If the packets of both are late, the card evicts both. The job then ends, and no
// property breaks.
func TestTwoEvictEachOther(t *testing.T) {
	c := config{Name: "both", Jobs: []int{2}, Window: 2, Modulus: 16, First: 4, Chunks: 6, Beats: 1, Epochs: 1, Partial: true, Evictions: 2}
	w := newSearch(c, 0, "", 0).New()
	w.Start()
	sends := func(m int, arrives bool) {
		if n := w.sendNext(m); arrives {
			w.deliver(n)
		}
	}
	settle := func() {
		for i := range w.slotCount() {
			w.reduce(i)
			w.transmit(i, 0)
			w.transmit(i, 1)
		}
		w.network.each(func(n int) {
			if w.packets.Values[n].kind == result {
				w.deliver(n)
			}
		})
	}
	for range 2 {
		sends(0, true)
		sends(1, true)
		settle()
	}
	// The card does not know that 0 holds the second chunk, nor that 1 holds the first.
	sends(0, true)
	sends(1, false)
	sends(0, false)
	sends(1, true)
	assert.True(t, w.deadline(2) && w.deadline(3))
	settle()
	sends(0, true) // waits for 1 to be done with the first
	sends(1, false)
	sends(0, false)
	sends(1, true) // waits for 0 to be done with the second
	assert.True(t, w.deadline(0))
	assert.Equal(t, bit(0), w.jobs[0].members)
	assert.True(t, w.deadline(1))
	assert.Zero(t, w.jobs[0].members)
	assert.False(t, w.jobs[0].up)
	broken, _ := w.Broken()
	assert.Empty(t, broken)
}
