package main

// reduce sums a slot, or its next beat, and reports whether it could. A sum does not begin while
// the card sends the result that it replaces.
func (w *world) reduce(i int) bool {
	s := &w.slots[i]
	blocked := w.isBeingSent(i) && !w.without(overwriteWhileSending)
	if s.phase != halfReduced && (s.phase != reducing || blocked) {
		return false
	}
	last := w.config.Beats - 1
	if s.phase == reducing {
		s.cache = sum{}
		s.cacheMask = s.mask
		w.sumBeat(s, 0)
		if last > 0 {
			s.phase = halfReduced
			if w.config.CutThrough {
				w.oweAll(i)
			}
			w.Describe("the card sums the first beat of %s", w.v(int(s.vid)))
			return true
		}
	}
	if last > 0 {
		w.sumBeat(s, last)
	}
	s.phase = reduced
	job := w.jobOfSlot(i)
	if !w.config.CutThrough {
		w.oweAll(i)
	}
	if w.without(partialUnmarked) {
		s.cacheMask = w.config.membersOf(job)
	}
	w.Describe("the card has summed %s of %s%s; the card owes all of them the result", w.set(s.cacheMask), w.v(int(s.vid)), w.during(int(w.jobs[job].epoch)))
	w.judgeSum(job, s)
	return true
}

// oweAll sets the owed bits of all members for a slot's result.
func (w *world) oweAll(i int) {
	if !w.without(notOwedWhenReduced) {
		w.slots[i].owed |= w.jobs[w.jobOfSlot(i)].members
	}
}

// sumBeat sums the memories of the members whose held bit is set, into the cache.
func (w *world) sumBeat(s *slot, beat int) {
	for m := range maxMembers {
		s.cache[beat][m] = 0
		if s.held&bit(m) != 0 {
			s.cache[beat][m] = s.memory[m]
		}
	}
}

// jobOfSlot returns the job that owns a slot.
func (w *world) jobOfSlot(i int) int { return i / w.slotCount() }

// isBeingSent reports whether a port is sending the slot's cache entry.
func (w *world) isBeingSent(i int) bool {
	for m := range w.config.members() {
		if int(w.members[m].sending) == i+1 {
			return true
		}
	}
	return false
}

// transmit sends a slot's result, or its first beat, to a member to which it is owed. It reports
// whether there was one to send.
func (w *world) transmit(i, m int) bool {
	s := &w.slots[i]
	to := &w.members[m]
	ready := s.phase == reduced || s.phase == halfReduced && w.config.CutThrough || w.without(turnoverKeepsOwed|setUpKeepsOwed)
	if s.owed&bit(m) == 0 || !ready || to.sending != 0 {
		return false
	}
	if !w.without(owedForEver) {
		s.owed &^= bit(m)
	}
	job := w.jobOfSlot(i)
	p := packet{kind: result, member: uint8(m), job: uint8(job), epoch: w.jobs[job].epoch, vid: s.vid, mask: s.cacheMask}
	p.sum[0] = s.cache[0]
	if w.config.Beats > 1 {
		to.sending = uint8(i + 1)
		to.begun = uint16(w.packets.Number(p))
		w.Describe("the card begins to send the result %s to %s", w.v(int(s.vid)), w.name(m))
		return true
	}
	w.judgeReplay(p)
	w.Describe("the card sends the result %s%s to %s", w.v(int(s.vid)), w.during(int(p.epoch)), w.name(m))
	w.sendResult(p)
	return true
}

// transmitRest sends the second beat of a result that transmit began.
func (w *world) transmitRest(m int) bool {
	to := &w.members[m]
	if to.sending == 0 || w.slots[to.sending-1].phase == halfReduced && w.config.CutThrough {
		return false
	}
	p := w.packets.Values[to.begun]
	p.sum[1] = w.slots[to.sending-1].cache[1]
	to.sending, to.begun = 0, 0
	w.judgeReplay(p)
	w.Describe("the card sends the rest of %s to %s", w.v(int(p.vid)), w.name(m))
	w.sendResult(p)
	return true
}

// cutShort stops the transmission of a result whose sum will not finish.
func (w *world) cutShort(s *slot) {
	if s.phase != halfReduced || !w.config.CutThrough || w.without(begunLeavesTorn) {
		return
	}
	for m := range w.config.members() {
		if to := &w.members[m]; to.sending != 0 && &w.slots[to.sending-1] == s {
			to.sending, to.begun = 0, 0
			w.Describe("the result that it was sending to %s is cut off", w.name(m))
		}
	}
}

// sendResult sends a result. Results to a rogue change nothing, so it drops those.
func (w *world) sendResult(p packet) {
	if w.config.honest(int(p.member)) {
		w.sent(w.send(p))
	}
}

// deadline applies a slot's deadline in a job with partial sums, and reports whether the slot
// changed. In other jobs the card only reports the missing members, which changes no state.
func (w *world) deadline(i int) bool {
	s := &w.slots[i]
	switch {
	case !w.config.Partial && !w.without(deadlineOfAny):
		return false
	case s.phase == collecting:
		s.phase = reducing
		s.mask = s.held
		w.Describe("the deadline of %s passes: the card sums what it has, %s", w.v(int(s.vid)), w.set(s.held))
		return true
	case s.phase == reduced && (s.stalled || w.without(evictUnasked)):
		return w.evict(i)
	}
	return false
}

// evict removes from the job all members that are not done with a slot, because another member
// waits for its turnover.
func (w *world) evict(i int) bool {
	s := &w.slots[i]
	job := w.jobOfSlot(i)
	j := &w.jobs[job]
	behind := j.members &^ s.done
	if w.without(evictMissingOnly) {
		behind &^= s.cacheMask
	}
	if w.without(evictOne) {
		behind &= -behind
	}
	if behind == 0 || w.evictions == 0 {
		return false
	}
	w.evictions--
	w.judgeEviction(s, behind)
	w.Describe("the deadline of %s passes again: the card evicts %s", w.v(int(s.vid)), w.set(behind))
	if !w.without(evictedCounts) {
		j.members &^= behind
	}
	for k := range w.slotCount() {
		w.waitNoLonger(job, w.slotOf(job, k))
	}
	// The card notifies all members of all evictions so far. A remaining member does not act
	// on that, so only evicted members get a packet here.
	for m := range w.config.members() {
		if (w.config.membersOf(job)&^j.members|behind)&bit(m) != 0 {
			w.tellOut(job, m)
		}
	}
	if !w.without(evictionLeavesJob) {
		w.endIfFinished(job)
	}
	return true
}

// waitNoLonger applies an eviction to a slot. By the rules nothing changes: the card still sends
// owed results, and a collecting slot waits for its deadline.
func (w *world) waitNoLonger(job int, s *slot) {
	if w.without(evictionDropsOwed) {
		s.owed &= w.jobs[job].members
	}
	if s.phase == collecting && w.without(evictionClosesSlots) {
		w.complete(job, s)
	}
}

// tellOut notifies a member of its eviction.
func (w *world) tellOut(job, m int) {
	if w.config.honest(m) && !w.without(evictionUntold) {
		w.send(packet{kind: evicted, member: uint8(m), job: uint8(job), epoch: w.jobs[job].epoch})
	}
}

// tellEnded notifies the sender of a refused packet that its job has ended. If it lacks results,
// it was evicted, because the job no longer waits for it.
func (w *world) tellEnded(h header) {
	if w.config.honest(h.rank) && !w.without(evictionUntold) {
		w.send(packet{kind: ended, member: uint8(h.rank), job: uint8(h.job), epoch: w.jobs[h.job].epoch, of: h.kind})
	}
}
