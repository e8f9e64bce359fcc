package main

// fail has something die, or the daemon return.
func (w *world) fail(k kind, n int) bool {
	switch k {
	case daemonReturns:
		return w.daemonReturns()
	case cardDies:
		if w.left.cards == 0 || !w.cardUp || !w.daemonUp {
			return false
		}
		w.Say("the card dies; the daemon gathers reports")
		w.left.cards--
		w.forgetJob()
		w.gather()
		return true
	case daemonDies:
		return w.daemonDies()
	case memberDies:
		return w.memberDies(n)
	}
	return false
}

func (w *world) forgetJob() {
	w.cardUp, w.given = false, [maxChunks][maxMembers]content{}
}

// daemonDies: the card drops the job, and sessions end. A seat that does not know that it has finished
// takes part again.
func (w *world) daemonDies() bool {
	if w.left.daemons == 0 || !w.daemonUp {
		return false
	}
	w.Say("the daemon dies; the card drops the job")
	w.left.daemons--
	w.forgetJob()
	w.daemonUp, w.gathering, w.rejoining, w.kept = false, false, false, [maxChunks]value{}
	for n := range w.members {
		if m := &w.members[n]; m.finish == confirmed {
			m.finish, m.again = unfinished, m.low() < w.config.chunks
		}
	}
	return true
}

// daemonReturns: the job is over if a rank is not there. Otherwise the daemon knows the calls that
// members announce anew, and those whose results they report.
func (w *world) daemonReturns() bool {
	if w.daemonUp {
		return false
	}
	w.Say("a new daemon starts, and gathers reports")
	w.daemonUp, w.rejoining, w.paused, w.skipped = true, true, false, false
	if w.weak(pauseAfterAnnounced) {
		w.announced = 0
	}
	for n := range w.config.members {
		m := &w.members[n]
		if !m.here() || m.entering || m.fresh || w.out(n) {
			w.Add("; member %d is not there, so the job is over", n)
			w.over = missing
		}
		if v := m.low(); w.weak(pauseAfterAnnounced) && !w.config.boundary(v) {
			w.announced = max(w.announced, int8(w.config.after(v)))
		}
	}
	w.gather()
	return true
}

// memberDies: its session ends, and its seat is lost. What it has sent stays on the card.
func (w *world) memberDies(n int) bool {
	m := &w.members[n]
	if w.left.leaves == 0 || !m.here() {
		return false
	}
	w.Say("member %d dies", n)
	w.left.leaves--
	*m = member{dead: true, epoch: m.epoch, sent: m.sent}
	if w.rejoining {
		w.Add(": it was there for the new daemon, so the job is over")
		w.over = missing
	}
	return true
}

// returns has a member take a lost seat again, with nothing. If it is the first, the daemon pauses the
// job after the calls that have been announced; seats may have announced more than they have begun.
func (w *world) returns(n, pause int) bool {
	m := &w.members[n]
	if w.left.returns == 0 || !m.dead || !w.daemonUp || w.rejoining {
		return false
	}
	if !w.config.boundary(pause) || pause < w.announcedBy() || w.paused && pause != int(w.pause) {
		return false
	}
	w.Say("member %d returns; the job pauses before chunk %d", n, pause)
	w.left.returns--
	*m = member{entering: true, later: w.paused, from: int8(pause), epoch: m.epoch, sent: m.sent}
	if w.weak(evictedMarkStays) {
		w.marked |= w.noticed & seat(n)
	}
	w.paused, w.pause, w.announced = true, int8(pause), int8(pause)
	return true
}

// announcedBy returns the first chunk after the calls that any seat has begun.
func (w *world) announcedBy() int {
	if !w.weak(pauseAfterLiving) {
		return int(w.announced)
	}
	end := 0
	for n := range w.config.members {
		if m := &w.members[n]; w.takesPart(n) {
			for v := range w.config.chunks {
				if m.held[v] != 0 || m.sent&bit(v) != 0 {
					end = max(end, w.config.after(v))
				}
			}
		}
	}
	return end
}

// enters reports whether a member that has returned gets into the next epoch that lets any in.
func (w *world) enters(n int) bool {
	m := &w.members[n]
	return m.entering && !(m.later && w.weak(onlyFirstEnters))
}

// renew ends an epoch for members that have returned, when the card has summed all before the pause, or
// nobody is left to complete it.
func (w *world) renew() bool {
	if !w.paused || w.gathering || !w.cardUp || !w.daemonUp || !w.drained() {
		return false
	}
	w.Say("the daemon ends the epoch for those that have returned")
	w.gather()
	return true
}

func (w *world) drained() bool {
	before := chunks(1)<<w.pause - 1
	from := chunks(1)<<w.first - 1
	switch {
	case w.weak(pauseNeedsReturned) && !w.anyReturned() || w.skipped:
		return false
	case w.weak(renewBeforeDrained | noPause):
		return true
	case !w.anyTakesPart() && !w.weak(waitForTheDead):
		return true
	}
	return before&^from&^w.summed[w.epoch] == 0
}

func (w *world) anyReturned() bool {
	for n := range w.members {
		if w.members[n].entering {
			return true
		}
	}
	return false
}

// letsIn reports whether the next epoch is the one after the pause: if no seat lacks a result before it.
func (w *world) letsIn() bool {
	switch {
	case !w.paused || w.skipped || w.weak(pauseNeedsReturned) && !w.anyReturned():
		return false
	case w.weak(renewBeforeDrained | noPause):
		return true
	case !w.anyTakesPart():
		return !w.weak(waitForTheDead)
	}
	for v := range int(w.pause) {
		if w.isLacked(v, false) && w.source(v) == 0 {
			return false
		}
	}
	return true
}

// enter ends the pause: members that have returned get into the epoch that begins.
func (w *world) enter() {
	if w.weak(summedFromOldEpoch) && !w.anyTakesPart() && w.pause > 0 {
		w.skipped = true
	}
	w.paused, w.pause = false, 0
	for n := range w.members {
		m := &w.members[n]
		if !w.enters(n) {
			continue
		}
		w.Add("; member %d gets in", n)
		w.noticed &^= seat(n)
		m.entering, m.later, m.fresh, m.told = false, false, true, 0
		if w.weak(noPause) {
			m.from = w.first
		}
	}
}

// end ends a job whose seats have all finished, apart from those that are lost or evicted.
func (w *world) end() {
	if w.over != notOver || !w.daemonUp {
		return
	}
	for n := range w.config.members {
		m := &w.members[n]
		again := m.finish != unfinished && m.epoch != w.epoch && w.weak(finishOfEpoch)
		if m.here() && !w.out(n) || again || m.dead && w.weak(endWaitsForLost) {
			return
		}
	}
	w.over = finished
	w.Add("; the job is over")
	for n := range w.config.members {
		if m := &w.members[n]; m.here() && (w.noticed&seat(n) == 0 || m.entering) {
			w.Violate(progress, "the job is over, and member %d has not finished", n)
		}
	}
}
