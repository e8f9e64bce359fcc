package main

import "tributary/verify/protocol/explorer"

// world is a state with the rules and everything that they read and write.
type world struct {
	config  *config
	rules   ruleSet // rules that are left out
	packets *explorer.Numbers[packet]
	state

	explorer.Story // judges; trace tells

	symmetry *symmetry
	good     map[string]bool // representatives of states with an empty network that complete
	turns    [maxMembers]int // order of the workers' turns after faults have ceased
	trace    *trace          // nil while exploring, so that no text is formatted

	alphabet []forgery // of the rogue; filled on first use
}

// Current returns the world's state.
func (w *world) Current() *state { return &w.state }

// slotCount is the number of slots of a job: 2W.
func (w *world) slotCount() int {
	if w.without(slotsOfOneWindow) {
		return w.config.Window
	}
	return 2 * w.config.Window
}

// field returns the VID as packets carry it.
func (w *world) field(vid int) int { return vid % w.config.Modulus }

// slotOf returns a job's slot for the VID in a packet's field.
func (w *world) slotOf(job, field int) *slot {
	return &w.slots[job*w.slotCount()+field%w.slotCount()]
}

// ahead returns the field n chunks later; n may be negative.
func (w *world) ahead(field, n int) int {
	m := w.config.Modulus
	return ((field+n)%m + m) % m
}

// send adds a packet to the network and returns its number.
func (w *world) send(p packet) int {
	n := w.packets.Number(p)
	w.network.add(n)
	return n
}

// Start sets up all jobs, before any worker has sent. The network may repeat the commits.
func (w *world) Start() {
	c := w.config
	w.state = state{restarts: uint8(c.Restarts), resets: uint8(c.Resets), evictions: uint8(c.Evictions)}
	for j := range c.Jobs {
		w.controllers[j] = controller{first: uint8(c.First), confirmed: true}
		w.setUp(j, 0, c.First)
		w.send(packet{kind: commit, job: uint8(j), vid: uint8(c.First)})
	}
	for m := range c.members() {
		w.join(m)
	}
}
