package main

// settle forgets what can make no difference any more, so that states that behave alike are equal.
func (w *world) settle() {
	if w.over != notOver {
		w.state = state{over: w.over}
		return
	}
	if w.left.returns == 0 {
		w.announced = 0
	}
	for n := range w.config.members {
		w.settleMember(&w.members[n])
	}
	if w.weak(staleEpoch | replaceKept) {
		return
	}
	for e := range w.sums {
		if !w.inUse(e) {
			w.summed[e], w.sums[e] = 0, [maxChunks]value{}
		}
	}
	for v := range w.config.chunks {
		if w.bits[v] != 0 && w.bits[v] != settled && w.everyoneHas(v) {
			w.settleChunk(v)
		}
	}
}

// settleMember forgets what only a member that takes part needs.
func (w *world) settleMember(m *member) {
	if m.finish == confirmed && w.left.daemons == 0 {
		m.finish = known
	}
	if m.finish == known {
		*m = member{finish: known, epoch: m.epoch, sent: m.sent}
	}
	if m.finish == known && !w.config.early && !w.weak(finishOfEpoch) {
		m.epoch, m.sent = 0, 0
	}
	if m.stopped && !w.weak(noStop|staleEpoch) {
		m.epoch, m.first, m.sent, m.read = 0, 0, 0, 0
	}
}

// inUse reports whether a result of an epoch can still be taken.
func (w *world) inUse(e int) bool {
	if e == int(w.epoch) && w.cardUp && !w.gathering {
		return true
	}
	for n := range w.config.members {
		if m := &w.members[n]; int(m.epoch) == e && w.underWay(n, e) != 0 {
			return true
		}
	}
	return false
}

// everyoneHas reports whether nobody will take the result of a chunk that has one. A member that
// returns later begins after the chunk.
func (w *world) everyoneHas(v int) bool {
	for n := range w.config.members {
		m := &w.members[n]
		if !m.dead && m.finish != known && m.lacks(v) && (!w.out(n) || m.sent&bit(v) != 0) {
			return false
		}
	}
	return true
}

// settleChunk forgets which result a chunk has.
func (w *world) settleChunk(v int) {
	w.bits[v] = settled
	for _, r := range []*value{&w.kept[v], &w.handed[v]} {
		if *r != 0 {
			*r = settled
		}
	}
	for e := range w.sums {
		w.sums[e][v] = 0
	}
	for n := range w.config.members {
		m := &w.members[n]
		if m.held[v] != 0 {
			m.held[v] = settled
		}
		if m.ring[v] != 0 {
			m.ring[v] = settled
		}
	}
}
