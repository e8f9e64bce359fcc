package main

// gather has the daemon ask all members for reports.
func (w *world) gather() {
	w.gathering = true
	for i := range w.members {
		w.members[i].reported = false
	}
}

// report has a member stop and report what it holds: all below its first chunk, and its results.
func (w *world) report(n int) bool {
	m := &w.members[n]
	if !w.daemonUp || !w.gathering || !w.takesPart(n) || m.reported {
		return false
	}
	w.Say("member %d stops and reports the results that it holds", n)
	m.reported, m.stopped, m.starting, m.fresh = true, true, false, false
	m.told = 0
	for v := range w.config.chunks {
		if !m.lacks(v) {
			m.told |= bit(v)
		}
	}
	return true
}

// allReported reports whether the daemon has all reports that it waits for.
func (w *world) allReported() bool {
	some, all := !w.anyTakesPart(), true
	for n := range w.config.members {
		m := &w.members[n]
		waits := w.takesPart(n) || m.dead && w.weak(waitForLost) || m.finish != unfinished && w.weak(waitForFinished) ||
			w.out(n) && w.weak(waitForEvicted)
		some, all = some || m.reported, all && (m.reported || !waits)
	}
	return all || some && w.weak(noBarrier)
}

// infer has the daemon take a seat for evicted that lacks a result though there is one of 2W chunks
// later: the card sums that one only when all others are done with the first. The notice may be lost.
func (w *world) infer() {
	if !w.daemonUp || !w.gathering || !w.config.partial || !w.allReported() || w.weak(evictedByNotice) {
		return
	}
	newest := 0
	for v := range w.config.chunks {
		if w.kept[v] != 0 || w.isHeld(v) {
			newest = v
		}
	}
	for n := range w.config.members {
		m := &w.members[n]
		oldest := int(m.from)
		for m.told&bit(oldest) != 0 {
			oldest++
		}
		if !w.takesPart(n) || !m.reported || oldest+2*w.config.window > newest {
			continue
		}
		w.Add("; member %d lacks chunk %d, so the card has evicted it", n, oldest)
		if w.evicted&seat(n) == 0 && !m.again {
			w.Violate(progress, "member %d is taken for evicted, and the card has not evicted it", n)
		}
		w.evicted, w.noticed = w.evicted|seat(n), w.noticed|seat(n)
	}
}

// source returns the result of a chunk that the daemon or a member's library keeps.
func (w *world) source(v int) value {
	if w.kept[v] != 0 && !(w.weak(sumAgain) && !w.isHeld(v)) {
		return w.kept[v]
	}
	for n := range w.members {
		if m := &w.members[n]; w.takesPart(n) && m.reported && m.told&bit(v) != 0 && m.ring[v] != 0 {
			return m.ring[v]
		}
	}
	return 0
}

// isHeld reports whether a member has reported that it holds the result of a chunk.
func (w *world) isHeld(v int) bool {
	for n := range w.members {
		if m := &w.members[n]; w.takesPart(n) && m.reported && v >= int(m.from) && m.told&bit(v) != 0 {
			return true
		}
	}
	return false
}

// isLacked reports whether a seat of the next epoch lacks the result of a chunk, as the daemon knows it.
func (w *world) isLacked(v int, entering bool) bool {
	for n := range w.members {
		m := &w.members[n]
		switch {
		case w.takesPart(n) && !(m.reported && m.told&bit(v) != 0) && v >= int(m.from):
			return true
		case entering && w.enters(n) && m.told&bit(v) == 0 && v >= int(m.from):
			return true
		}
	}
	return false
}

// hand has a member that has stopped take the kept results that it lacks.
func (w *world) hand(n int) bool {
	m := &w.members[n]
	if !w.daemonUp || !w.gathering || !w.allReported() || !(w.takesPart(n) && m.reported || w.enters(n)) ||
		w.weak(keptNotHanded|handWithStart|firstOfFastest) {
		return false
	}
	w.Say("member %d takes what it lacks", n)
	var got chunks
	for v := range w.config.chunks {
		if kept := w.source(v); kept != 0 && m.told&bit(v) == 0 && v >= int(m.from) {
			got |= bit(v)
			w.Add(": the kept result of chunk %d", v)
			if m.held[v] == 0 {
				w.hold(n, v, kept)
			}
		}
	}
	m.told |= got
	return got != 0
}

// begin has the daemon set the job up in the next epoch, when all members have reported and hold the
// results that were kept. It begins with the first chunk that a member lacks.
func (w *world) begin() bool {
	if !w.daemonUp || !w.gathering || int(w.epoch)+1 == maxEpochs || !w.allReported() {
		return false
	}
	enter := w.letsIn()
	if !enter && !w.anyTakesPart() {
		return false
	}
	before := w.state
	w.first, w.handed = int8(w.config.chunks), [maxChunks]value{}
	for v := w.config.chunks - 1; v >= 0; v-- {
		if !w.beginChunk(v, enter) {
			w.state = before
			return false
		}
	}
	w.setUp()
	if w.weak(lateNotice) {
		w.stale |= w.evicted &^ w.noticed
	}
	w.Say("the daemon sets the job up in epoch %d, from chunk %d", w.epoch, w.first)
	if enter {
		w.enter()
	}
	w.evicted = w.noticed
	for n := range w.members {
		w.members[n].starting = w.takesPart(n)
	}
	return true
}

// setUp is what the card and the daemon forget when an epoch begins.
func (w *world) setUp() {
	w.epoch++
	w.cardUp, w.gathering, w.rejoining = true, false, false
	w.given = [maxChunks][maxMembers]content{}
	for n := range w.members {
		if m := &w.members[n]; m.dead || m.entering {
			m.epoch, m.sent = 0, 0
		}
	}
}

// beginChunk decides what becomes of a chunk in the next epoch. It returns false if a member has not
// taken its kept result yet.
func (w *world) beginChunk(v int, enter bool) bool {
	lacked, held := w.isLacked(v, enter), w.isHeld(v)
	if !lacked && !w.weak(firstOfSlowest) || held && w.weak(firstOfFastest) {
		return true
	}
	kept := w.source(v)
	switch {
	case kept != 0 && w.weak(handWithStart):
		w.handed[v] = kept
		return true
	case kept != 0 && lacked && !w.weak(keptNotHanded|noBarrier):
		return false
	case kept == 0 && lacked && held && !w.weak(sumLost):
		w.Violate(nothingLost, "a member holds the result of chunk %d, and nobody has kept it for those that lack it", v)
	}
	if lacked && kept == 0 && w.isBefore(v) {
		w.Add("; nobody keeps the result of chunk %d", v)
		w.over = lost
	}
	w.first = int8(v)
	return true
}

// isBefore reports whether a member that has returned begins after a chunk: its report is that of a
// member that holds the result, and it has no input to sum it again. Then only a seat may lack the
// result that finishes again, and does not need it.
func (w *world) isBefore(v int) bool {
	before := false
	for n := range w.config.members {
		m := &w.members[n]
		if w.takesPart(n) && m.lacks(v) && !m.again {
			return false
		}
		before = before || w.takesPart(n) && v < int(m.from)
	}
	return before
}

// begun has a member begin the epoch.
func (w *world) begun(n int) bool {
	m := &w.members[n]
	if m.dead || !m.starting {
		return false
	}
	w.Say("member %d begins epoch %d", n, w.epoch)
	if w.weak(staleEpoch) {
		m.late[m.epoch] = w.summed[m.epoch] & m.sent &^ m.read
	}
	m.starting, m.stopped, m.fresh = false, false, false
	m.epoch, m.first, m.sent, m.read = w.epoch, w.first, 0, 0
	for v, r := range w.handed {
		if r != 0 && m.held[v] == 0 {
			w.Add(": the kept result of chunk %d", v)
			w.hold(n, v, r)
		}
	}
	return true
}
