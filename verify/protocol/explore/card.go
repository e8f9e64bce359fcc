package main

import "math/bits"

// header is the part of a packet's header that the card reads, and the packet's port.
type header struct {
	kind  kind
	port  int // the member whose link the packet arrived on
	job   int
	epoch int // modulo config.epochs()
	rank  int // the member that the header names as the sender
	vid   int // modulo config.Modulus
}

// answer is what the card does with a packet.
type answer int

const (
	stored answer = iota
	duplicate
	owes     // the card will send the result
	underWay // no action: the card is summing the chunk
	wait
	sendIt
	notReady
	late
	early
	done

	// Refusals by the checks and by JOB_COMMIT.
	badJob
	badEpoch
	badRank
	gone // the member was evicted
	stale
)

// headerOf returns the header of a packet from a member that keeps the rules.
func (w *world) headerOf(p packet) header {
	return header{kind: p.kind, port: int(p.member), job: int(p.job), epoch: int(p.epoch) % w.config.epochs(),
		rank: int(p.member), vid: w.field(int(p.vid))}
}

// check makes the header checks in their order; why is the first that fails.
func (w *world) check(h *header) (why answer, ok bool) {
	if w.without(anyJob) {
		*h = w.inFirstJob(*h)
	}
	j := &w.jobs[h.job]
	switch {
	case !j.up && !w.confirmsEnd(*h) && !w.without(notUp):
		w.Describe("the card refuses it: job %d is not set up", h.job)
		if j.over && h.epoch == int(j.epoch)%w.config.epochs() && h.rank == h.port {
			w.tellEnded(*h)
		}
		return badJob, false
	case h.epoch != int(j.epoch)%w.config.epochs() && !w.without(anyEpoch):
		w.Describe("the card refuses it: another epoch")
		return badEpoch, false
	case h.rank != h.port && !w.without(anyRank):
		w.Describe("the card drops it: worker %d's rank does not belong to this port", h.rank)
		return badRank, false
	case w.config.membersOf(h.job)&bit(h.rank) == 0:
		w.Describe("the card drops it: not a rank of job %d", h.job)
		return badRank, false
	case j.members&bit(h.rank) == 0 && !w.without(evictedHeard) && !(w.confirmsEnd(*h) && w.without(evictedFinishHeard)):
		w.Describe("the card refuses it: %s was evicted", w.name(h.rank))
		w.tellOut(h.job, h.rank)
		return gone, false
	}
	return 0, true
}

// inFirstJob maps a header to job 0, for the weakening that ignores job numbers. The sender
// becomes the member with the same rank in job 0, as if its port were in both jobs.
func (w *world) inFirstJob(h header) header {
	if w.config.membersOf(h.job)&bit(h.rank) == 0 {
		return h // the rank belongs to neither job
	}
	for j := range h.job {
		h.rank -= w.config.Jobs[j]
	}
	h.job, h.port = 0, h.rank
	return h
}

// takeData commits a contribution.
func (w *world) takeData(h header, payload func(*slot) tag) answer {
	if why, ok := w.check(&h); !ok {
		return why
	}
	w.evidence(h)
	s := w.slotOf(h.job, h.vid)
	u := w.field(int(s.vid))
	switch {
	case h.vid == u:
		return w.dataOfSlot(h, s, payload)
	case h.vid == w.ahead(u, w.slotCount()):
		return w.dataOfNext(h, s, payload)
	case w.without(storeAnyInSlot) && s.phase == collecting:
		return w.dataOfSlot(h, s, payload)
	}
	return w.outside(h, u)
}

// evidence marks the sender of data v as done with v - W: it holds that result.
func (w *world) evidence(h header) {
	before := w.ahead(h.vid, -w.config.Window)
	s := w.slotOf(h.job, before)
	switch {
	case w.without(noEvidence):
	case w.field(int(s.vid)) != before && !w.without(evidenceOfOtherVID):
	case s.phase != reduced && !w.without(evidenceUnreduced):
	default:
		s.done |= bit(h.rank)
	}
}

// dataOfSlot takes data with the VID that the slot holds.
func (w *world) dataOfSlot(h header, s *slot, payload func(*slot) tag) answer {
	from := bit(h.rank)
	switch {
	case s.phase == collecting && (s.held&from == 0 || w.without(noBitmap)):
		w.store(h, s, payload(s))
		return stored
	case s.phase > collecting && s.held&from == 0 && w.without(storeWhenComplete):
		s.memory[h.rank] = payload(s)
		s.held |= from
		w.Describe("the card stores it, though the slot is complete")
		return stored
	case s.phase == empty:
		w.Describe("the card drops it: late, the slot is empty")
		return late
	}
	if w.without(duplicateWrites) {
		s.memory[h.rank] = payload(s)
	}
	if s.phase == reduced && !w.without(noReplay|noReplayOfData) {
		s.owed |= from
		w.Describe("the card does not add it: %s is owed the result", w.name(h.rank))
		return owes
	}
	w.Describe("the card drops it: a duplicate")
	return duplicate
}

// dataOfNext takes data with the VID that the slot takes next.
func (w *world) dataOfNext(h header, s *slot, payload func(*slot) tag) answer {
	if !w.without(noDoneOfNext) {
		s.done |= bit(h.rank)
	}
	members := w.jobs[h.job].members
	over := s.phase == reduced || s.phase == empty || w.without(turnoverUnreduced)
	if !over || s.done&members != members && !w.without(turnoverWithoutDone) {
		s.stalled = s.stalled || s.phase == reduced && (w.config.Partial || w.config.Notices)
		w.Describe("the card drops it: not ready, the slot waits until %s are done with %s",
			w.set(members&^s.done), w.v(int(s.vid)))
		return notReady
	}
	w.turnOver(h.job, s)
	w.store(h, s, payload(s))
	return stored
}

// turnOver gives the slot to the VID 2W later.
func (w *world) turnOver(j int, s *slot) {
	w.judgeTurnover(j, s)
	s.vid += uint8(w.slotCount())
	s.phase = collecting
	s.stalled = false
	s.count = 0
	s.mask = 0
	if !w.without(turnoverKeepsHeld) {
		s.held = 0
	}
	if !w.without(turnoverKeepsDone) {
		s.done = 0
	}
	if !w.without(turnoverKeepsOwed | turnoverLeavesOwed) {
		s.owed = 0
	}
	w.expire(j, int(w.jobs[j].epoch), int(s.vid))
}

// store writes a contribution to its port's memory and marks it. A complete slot then starts its
// reduction.
func (w *world) store(h header, s *slot, payload tag) {
	s.memory[h.rank] = payload
	s.held |= bit(h.rank)
	s.count++
	w.Describe("the card stores it; the slot holds %s of %s", w.set(s.held), w.v(int(s.vid)))
	w.complete(h.job, s)
}

// complete starts the reduction of a slot that has all contributions.
func (w *world) complete(j int, s *slot) {
	members := w.jobs[j].members
	all := s.held&members == members
	if w.without(noBitmap) {
		all = int(s.count) == bits.OnesCount8(members)
		if all {
			s.held = members
		}
	}
	if all {
		s.phase = reducing
		s.mask = s.held
	}
}

// outside classifies a VID that the slot neither holds nor takes next: late or early.
func (w *world) outside(h header, u int) answer {
	if (h.vid-u+w.config.Modulus)%w.config.Modulus >= w.config.Modulus/2 {
		w.Describe("the card drops it: late")
		return late
	}
	w.Describe("the card drops it: early")
	return early
}

// takeAsk commits an ask.
func (w *world) takeAsk(h header) answer {
	if why, ok := w.check(&h); !ok {
		return why
	}
	s := w.slotOf(h.job, h.vid)
	u := w.field(int(s.vid))
	switch {
	case h.vid == u || w.without(askOfOtherVID) && s.phase == reduced:
		return w.askOfSlot(h, s)
	case h.vid == w.ahead(u, w.slotCount()) && !w.without(askOfNextDropped):
		w.Describe("the card replies: send it")
		return sendIt
	}
	return w.outside(h, u)
}

// askOfSlot takes an ask for the VID that the slot holds.
func (w *world) askOfSlot(h header, s *slot) answer {
	switch s.phase {
	case empty:
		w.Describe("the card replies: late, the slot is empty")
		return late
	case collecting:
		if s.held&bit(h.rank) == 0 && !w.without(noSendStatus) {
			w.Describe("the card replies: send it")
			return sendIt
		}
		w.Describe("the card replies: wait for %s", w.set(w.jobs[h.job].members&^s.held))
		return wait
	case reduced:
		if !w.without(noReplay | noReplayOfAsk) {
			s.owed |= bit(h.rank)
			w.Describe("the card owes %s the result", w.name(h.rank))
			return owes
		}
	}
	w.Describe("the card does nothing")
	return underWay
}

// takeFinish commits a finish: its sender holds all results.
func (w *world) takeFinish(h header) answer {
	if why, ok := w.check(&h); !ok {
		return why
	}
	j := &w.jobs[h.job]
	if w.confirmsEnd(h) {
		w.Describe("the card replies: done, the job has ended")
		w.answerFinish(h)
		return done
	}
	j.finished |= bit(h.rank)
	w.Describe("the card replies: done")
	w.answerFinish(h)
	w.endIfFinished(h.job)
	return done
}

// confirmsEnd reports whether a packet is a finish of a job that ended because all members had
// finished. The card answers it as if the job were set up.
func (w *world) confirmsEnd(h header) bool {
	j := &w.jobs[h.job]
	return h.kind == finish && !j.up && j.over && h.epoch == int(j.epoch)%w.config.epochs() && !w.without(finishForgotten)
}

func (w *world) answerFinish(h header) {
	w.send(packet{kind: finished, member: uint8(h.port), job: uint8(h.job), epoch: w.jobs[h.job].epoch})
}

// endIfFinished ends a job after all its members have finished.
func (w *world) endIfFinished(job int) {
	j := &w.jobs[job]
	if !j.up || j.finished&j.members != j.members && !(w.without(endAtFirstFinish) && j.finished != 0) {
		return
	}
	w.judgeEnd(job)
	if j.members == 0 {
		w.Describe("no member is left: the job has ended")
	} else {
		w.Describe("all have finished: the job has ended")
	}
	j.over = true
	w.endJob(job)
}

// endJob clears the running job except its last epoch. It leaves the memories and the cache, as
// the card does.
func (w *world) endJob(job int) {
	j := &w.jobs[job]
	j.up = false
	if !w.without(setUpKeepsFinished) {
		j.finished = 0
	}
	for i := range w.slotCount() {
		s := w.slotOf(job, i)
		if s.phase == reducing && w.without(reductionOutlivesUp) {
			continue
		}
		w.cutShort(s)
		s.phase = empty
		if !w.without(setUpKeepsHeld) {
			s.held = 0
		}
		if !w.without(setUpKeepsOwed) {
			s.owed = 0
		}
		s.vid, s.done, s.mask, s.count, s.stalled = 0, 0, 0, 0, false
	}
}

// setUp prepares a job to take VIDs from first on.
func (w *world) setUp(job, epoch, first int) {
	members := w.config.membersOf(job)
	j := &w.jobs[job]
	j.up, j.over, j.epoch, j.members = true, false, uint8(epoch), members
	n := w.slotCount()
	for i := range n {
		s := w.slotOf(job, i)
		next := first + ((i-w.field(first))%n+n)%n
		s.vid, s.done = uint8(next-n), members
	}
}

// takeAbort is a write of JOB_ABORT. Only walks use it: to workers an abort looks like a reset of
// the card.
func (w *world) takeAbort(job, epoch int) answer {
	j := &w.jobs[job]
	switch {
	case !j.up:
		w.Describe("the card has no such job, and does nothing")
	case epoch != int(j.epoch):
		w.Describe("the card refuses it: another epoch")
		return badEpoch
	default:
		w.Describe("the card ends the job")
		w.endJob(job)
	}
	return done
}

// takeCommit is a write of JOB_COMMIT.
func (w *world) takeCommit(job, epoch, first int) answer {
	j := &w.jobs[job]
	newer := (epoch - int(j.epoch)) % w.config.epochs()
	if newer < 0 {
		newer += w.config.epochs()
	}
	switch {
	case j.up && newer == 0 && !w.without(sameEpochAgain):
		w.Describe("the card acknowledges it again and changes nothing")
	case (newer == 0 || newer >= w.config.epochs()/2) && !w.without(anyOlderEpoch) && !(newer == 0 && w.without(sameEpochAgain)):
		w.Describe("the card refuses it: a stale epoch")
		return stale
	default:
		if j.up {
			w.Describe("the card ends epoch %d and sets up epoch %d", j.epoch, epoch)
		} else {
			w.Describe("the card sets up epoch %d", epoch)
		}
		w.endJob(job)
		w.setUp(job, epoch, first)
	}
	if c := &w.controllers[job]; int(c.epoch) == epoch {
		c.confirmed = true
	}
	return done
}
