package main

// world is a state in the hands of the rules: what they read, change, judge
// and tell.
type world struct {
	config  *config
	rules   ruleSet // what is left out
	packets *packetTable
	state

	broken *violation // the first property that did not hold
	only   property   // what is looked for; the zero property: anything

	turns [maxMembers]int // in which order workers take their turns when faults have ceased
	tale  *tale           // nil while exploring: then no text is made

	alphabet []forgery // of the rogue
}

// slotCount is how many slots a job has: 2W.
func (w *world) slotCount() int {
	if w.without(slotsOfOneWindow) {
		return w.config.Window
	}
	return 2 * w.config.Window
}

// field is the VID as packets carry it.
func (w *world) field(vid int) int { return vid % w.config.Modulus }

// slotOf is the slot of a VID, as its field has it, in a job.
func (w *world) slotOf(job, field int) *slot {
	return &w.slots[job*w.slotCount()+field%w.slotCount()]
}

// ahead is the field n chunks further; n may be negative.
func (w *world) ahead(field, n int) int {
	m := w.config.Modulus
	return ((field+n)%m + m) % m
}

// send puts a packet under way, and returns its number.
func (w *world) send(p packet) int {
	n := w.packets.number(p)
	w.network.add(n)
	return n
}

// start is the state in which all jobs have been set up and nobody has sent. The
// commits that did it may be repeated.
func (w *world) start() {
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
