package main

// needsEpoch reports whether a job needs a new epoch: a worker lost its state or was evicted, or
// the card was reset.
func (w *world) needsEpoch(job int) bool {
	c := &w.controllers[job]
	j := &w.jobs[job]
	if !c.confirmed || int(c.epoch)+1 >= w.config.Epochs {
		return false
	}
	if !j.up && !j.over {
		return true
	}
	for m := range w.config.members() {
		me := &w.members[m]
		if w.config.jobOf(m) == job && me.epoch == c.epoch && (me.life == down || me.life == out) {
			return true
		}
	}
	return false
}

// newEpoch stops the workers and sends a commit of the next epoch, from the lowest VID that any
// member lacks. Evicted and restarted workers do not count: they get the missing results from
// other workers, outside of this protocol.
func (w *world) newEpoch(job int) int {
	c := &w.controllers[job]
	first := w.config.end()
	for m := range w.config.members() {
		if me := &w.members[m]; w.jobs[job].members&bit(m) != 0 && me.life == active {
			first = min(first, int(me.low))
		}
	}
	*c = controller{epoch: c.epoch + 1, first: uint8(first)}
	w.Describe("the controller stops the workers and sends JOB_COMMIT of epoch %d from %s, the lowest that a worker lacks",
		c.epoch, w.v(first))
	for m := range w.config.members() {
		if w.config.jobOf(m) != job || w.members[m].life != active {
			continue
		}
		w.judgeInputs(m, first)
		if !w.without(unstoppedWorkers) {
			w.leave(m, stopped)
		}
	}
	return w.send(packet{kind: commit, job: uint8(job), epoch: c.epoch, vid: c.first})
}

// mayJoin reports whether a worker can begin in the epoch that the card accepted.
func (w *world) mayJoin(m int) bool {
	c := &w.controllers[w.config.jobOf(m)]
	return c.confirmed && w.members[m].epoch != c.epoch
}

// joinEpoch starts a worker in a new epoch.
func (w *world) joinEpoch(m int) {
	c := &w.controllers[w.config.jobOf(m)]
	if w.members[m].life == active {
		w.judgeInputs(m, int(c.first))
	}
	w.join(m)
	w.Describe("%s begins in epoch %d from %s", w.name(m), c.epoch, w.v(int(c.first)))
	w.finishWhenComplete(m)
}

// reset is a soft reset of the card: its jobs end, and their last epochs stay.
func (w *world) reset() {
	w.resets--
	w.Describe("the card is reset: it has no jobs")
	for j := range w.config.Jobs {
		w.endJob(j)
	}
}
