package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tributary/verify/protocol/explorer/explorertest"
)

// TestEverythingHappens: every outcome of a rule occurs, so no rule holds only because the explorer
// never reaches it.
func TestEverythingHappens(t *testing.T) {
	names := []string{"one-one-late", "beats", "lazy", "earlier", "misfit", "leaf-taken", "any-forgets", "restart", "rogue-direct", "rogue-far"}
	search := func(c config) *search { return newSearch(c, 0, summedOnce) }
	explorertest.Happens(t, tests, names, search, 300, []string{
		"stores it", "drops it: a duplicate", "has the own sum", "owes its parent the own sum", "not ready", "late, the slot is empty",
		"drops it: late", "drops it: early", "VID 2", "has the sum", "the root sends it to leaf 1 and worker 2",
		"replies: send it", "replies: wait", "replies: late", "refuses it: another epoch", "not set up", "not the address of rank", "no member has rank",
		"begins to send its own sum", "sends the rest", "leaf 1 sums", "takes the final sum", "has the result",
		"not from its parent", "for another UDP port", "from another UDP port", "not the sum of all ranks", "its slot holds", "does not wait for",
		"not all of its members have finished",
		"replies: done", "replies: done, the job has ended", "sends its own finish up", "the job of leaf 1 has ended", "the job of the root has ended",
		"its finish was taken", "lacks no such result", "not of its epoch", "worker 0 ignores it",
		"acknowledges it again", "a stale epoch", "the root sets up epoch 1", "the workers begin in epoch 1", "begin in epoch 2", "the owner sends JOB_ABORT",
		"it knows nothing", "another owner takes leaf 1", "restarts and loses its state", "payload 1",
	})
}

// TestTooSoon: a leaf ignores the first repeat after a sending when faults have ceased, and takes the
// second. So a job completes although each interval of JOB_REPEAT hides a repeat.
func TestTooSoon(t *testing.T) {
	c := tests.Named(t, "one-one")
	w := newWorld(&c, 0, "")
	w.Start()
	w.calm = true
	ask := w.dataOf(0, c.first)
	w.deliver(ask, 0)
	assert.True(t, w.sendUp(1, c.first%c.slots()))
	assert.Equal(t, wait, w.ask(ask))
	assert.False(t, w.sendUp(1, c.first%c.slots()))
	assert.Equal(t, repeats, w.ask(ask))
	assert.True(t, w.sendUp(1, c.first%c.slots()))
}
