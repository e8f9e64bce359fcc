package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEverythingHappens: every outcome of a rule occurs, so no rule holds only because the explorer
// never reaches it.
func TestEverythingHappens(t *testing.T) {
	heard := map[string]bool{}
	for _, name := range []string{"one-one-late", "beats", "lazy", "earlier", "misfit", "leaf-taken", "any-forgets", "restart", "rogue-direct", "rogue-far"} {
		listen(named(t, name), heard)
	}
	var all strings.Builder
	for text := range heard {
		all.WriteString(text + "\n")
	}
	for _, text := range []string{
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
	} {
		assert.Contains(t, all.String(), text)
	}
}

// TestTooSoon: a leaf ignores the first repeat after a sending when faults have ceased, and takes the
// second. So a job completes although each interval of JOB_REPEAT hides a repeat.
func TestTooSoon(t *testing.T) {
	c := named(t, "one-one")
	w := newWorld(&c, 0, "")
	w.start()
	w.calm = true
	ask := w.dataOf(0, c.first)
	w.deliver(ask, 0)
	assert.True(t, w.sendUp(1, c.first%c.slots()))
	assert.Equal(t, wait, w.ask(ask))
	assert.False(t, w.sendUp(1, c.first%c.slots()))
	assert.Equal(t, repeats, w.ask(ask))
	assert.True(t, w.sendUp(1, c.first%c.slots()))
}

// sample is about how many states of a configuration listen takes.
const sample = 300

// listen collects the texts of all steps from a sample of a configuration's states.
func listen(c config, heard map[string]bool) {
	e := newExplorer(c, 0, summedOnce)
	e.explore(nil)
	lister := e.world.another()
	for i := 0; i < len(e.states); i += 1 + len(e.states)/sample {
		lister.state = c.decode(e.states[i])
		lister.steps(func(s step) {
			next := e.world.another()
			next.state = lister.state
			next.retell = true
			if next.step(s) {
				for _, text := range next.tell {
					heard[text] = true
				}
			}
		})
	}
}
