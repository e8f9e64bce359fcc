package main

// header is what a card reads of a packet from below, and what its link knows of the sender.
type header struct {
	from    node // the sender, by port or by address
	card    int
	rank    int // the member that the header names
	epoch   uint8
	vid     int // the field
	earlier bool
}

// answer is what a card does with a packet.
type answer int

const (
	stored answer = iota
	duplicate
	answered // the sender is sent the result
	repeats  // the own sum is owed to the parent again
	underWay
	wait
	sendIt
	notReady
	late
	early
	refused
)

// check makes the header checks.
func (w *world) check(h header) bool {
	k := &w.cards[h.card]
	switch {
	case !k.up:
		w.Describe("%s refuses it: the job is not set up", w.card(h.card))
	case h.epoch != k.epoch && !w.without(dataOfAnyEpoch):
		w.Describe("%s refuses it: another epoch", w.card(h.card))
	case w.members[h.card][h.rank] != h.from && !w.without(dataFromAny):
		w.Describe("%s drops it: not the address of rank %d", w.card(h.card), h.rank)
	case w.all(h.card)&bit(h.rank) == 0:
		w.Describe("%s drops it: no member has rank %d", w.card(h.card), h.rank)
	default:
		return true
	}
	return false
}

// takeData commits data: a worker's input, or a leaf's own sum.
func (w *world) takeData(h header, content func(*slot) uint16) answer {
	if h.earlier && !w.without(dataOfAnyTree) {
		w.Describe("%s drops it: from another UDP port", w.card(h.card))
		return refused
	}
	if !w.check(h) {
		return refused
	}
	w.evidence(h)
	s := w.slotOf(h.card, h.vid)
	u := w.field(int(s.vid))
	switch {
	case h.vid == u:
		return w.dataOfSlot(h, s, content(s))
	case h.vid == w.ahead(u, w.config.slots()):
		return w.dataOfNext(h, s, content)
	}
	return w.outside(h, u)
}

// evidence marks the sender of data v as done with v - W: it has that result.
func (w *world) evidence(h header) {
	before := w.ahead(h.vid, -w.config.window)
	s := w.slotOf(h.card, before)
	switch {
	case h.card == root && w.members[root][h.rank].isLeaf() && w.without(parentNoEvidence):
	case w.field(int(s.vid)) != before:
	case s.phase != reduced && !w.without(evidenceUnreduced):
	default:
		s.done |= bit(h.rank)
	}
}

// dataOfSlot takes data with the VID that the slot holds.
func (w *world) dataOfSlot(h header, s *slot, content uint16) answer {
	switch {
	case s.phase == collecting && s.held&bit(h.rank) == 0:
		w.store(h, s, content)
		return stored
	case s.phase == empty:
		w.Describe("%s drops it: late, the slot is empty", w.card(h.card))
		return late
	case s.phase == waiting && !w.without(noRepeatOfData):
		return w.repeat(h, s)
	case s.phase == reduced && !(h.card == root && w.without(parentNoReplay)):
		w.sendResult(h.card, s, bit(h.rank))
		return answered
	}
	w.Describe("%s drops it: a duplicate", w.card(h.card))
	return duplicate
}

// repeat owes a waiting slot's own sum to the parent again, at every second repeat: the first may
// come too soon after the last sending.
func (w *world) repeat(h header, s *slot) answer {
	if s.fresh {
		s.fresh = false
		w.Describe("%s has just sent the own sum %s up", w.card(h.card), w.v(int(s.vid)))
		return wait
	}
	s.owed = true
	w.Describe("%s owes its parent the own sum %s again", w.card(h.card), w.v(int(s.vid)))
	return repeats
}

// dataOfNext takes data with the VID that the slot takes next.
func (w *world) dataOfNext(h header, s *slot, content func(*slot) uint16) answer {
	s.done |= bit(h.rank)
	all := w.all(h.card)
	over := s.phase == empty || s.phase == reduced && s.done&all == all
	if s.phase == waiting {
		over = w.without(turnoverWaiting) || w.without(turnoverUnreduced) && s.done&all == all
	}
	if !over {
		w.Describe("%s drops it: not ready, its slot has not finished %s", w.card(h.card), w.v(int(s.vid)))
		return notReady
	}
	w.turnOver(h.card, s)
	w.store(h, s, content(s))
	return stored
}

// turnOver gives the slot to the VID 2W later.
func (w *world) turnOver(c int, s *slot) {
	w.judgeTurnover(c, s)
	s.vid += uint8(w.config.slots())
	s.phase = collecting
	if !w.without(turnoverKeepsHeld) {
		s.held = 0
	}
	s.done, s.owed, s.fresh = 0, false, false
	w.expire(w.cards[c].epoch, int(s.vid))
}

// store writes a contribution to its port's memory and marks it. A complete slot is then summed.
func (w *world) store(h header, s *slot, content uint16) {
	s.memory[h.rank] = content
	s.held |= bit(h.rank)
	w.Describe("%s stores it; it holds %s of %s", w.card(h.card), w.memberSet(h.card, s.held), w.v(int(s.vid)))
	switch {
	case s.held&w.all(h.card) != w.all(h.card):
		if h.card != root && w.without(upIncomplete) {
			w.sendOwn(h.card, s, w.sumOf(s))
			w.Describe("it sends their sum up")
		}
	case w.config.beats:
		s.phase = reducing
	default:
		w.reduce(h.card, s)
	}
}

// sumOf adds what the slot holds.
func (w *world) sumOf(s *slot) uint16 {
	var p payload
	for m := range maxMembers {
		if s.held&bit(m) != 0 {
			p = p.add(w.payloads.Values[s.memory[m]])
		}
	}
	return uint16(w.payloads.Number(p))
}

// reduce sums a complete slot.
func (w *world) reduce(c int, s *slot) {
	s.cache = w.sumOf(s)
	w.judgeSum(c, s)
	if c != root && !w.without(ownSumIsFinal) {
		s.phase, s.owed = waiting, true
		w.judgeReady(c, s)
		w.Describe("it has the own sum %s, and owes it to its parent", w.v(int(s.vid)))
		return
	}
	s.phase, s.owed = reduced, c != root
	w.Describe("it has the sum %s", w.v(int(s.vid)))
	w.sendResult(c, s, w.all(c))
}

// sendResult sends what a reduced slot has to members.
func (w *world) sendResult(c int, s *slot, to uint8) {
	p := packet{kind: result, card: uint8(c), epoch: w.cards[c].epoch, vid: s.vid, payload: s.cache, mask: w.config.ranks()}
	if c == root {
		p.mask = w.ranks(root, w.all(root))
	}
	w.judgeSame(p)
	w.Describe("%s sends it to %s", w.card(c), w.memberSet(c, to))
	w.send(p, to)
}

// outside classifies a VID that the slot neither holds nor takes next: late or early.
func (w *world) outside(h header, u int) answer {
	if w.ahead(h.vid, -u) >= w.config.mod/2 {
		w.Describe("%s drops it: late", w.card(h.card))
		return late
	}
	w.Describe("%s drops it: early", w.card(h.card))
	return early
}

// takeAsk commits an ask.
func (w *world) takeAsk(h header) answer {
	if !w.check(h) {
		return refused
	}
	s := w.slotOf(h.card, h.vid)
	u := w.field(int(s.vid))
	switch {
	case h.vid == w.ahead(u, w.config.slots()), h.vid == u && s.phase == collecting && s.held&bit(h.rank) == 0:
		w.Describe("%s replies: send it", w.card(h.card))
		return sendIt
	case h.vid != u:
		return w.outside(h, u)
	case s.phase == empty:
		w.Describe("%s replies: late", w.card(h.card))
		return late
	case s.phase == reduced:
		w.sendResult(h.card, s, bit(h.rank))
		return answered
	case s.phase == waiting && !w.without(noRepeatOfAsk):
		return w.repeat(h, s)
	}
	w.Describe("%s replies: wait", w.card(h.card))
	return wait
}

// takeFinish commits a finish. A leaf with all of them sends its own instead of an answer.
func (w *world) takeFinish(h header) {
	k := &w.cards[h.card]
	answer := packet{kind: done, card: uint8(h.card), member: uint8(h.rank), epoch: k.epoch, vid: uint8(w.config.end())}
	if h.earlier && !w.without(finishOfAnyTree) {
		w.Describe("%s drops it: from another UDP port", w.card(h.card))
		return
	}
	if !k.up && k.over && h.epoch == k.epoch && w.members[h.card][h.rank] == h.from && !(h.card != root && w.without(finishForgotten)) {
		w.Describe("%s replies: done, the job has ended", w.card(h.card))
		w.send(answer, bit(h.rank))
		return
	}
	if !w.check(h) {
		return
	}
	k.finished |= bit(h.rank)
	all := k.finished == w.all(h.card)
	if h.card == root || !all || w.without(finishAnswered) {
		w.Describe("%s replies: done", w.card(h.card))
		w.send(answer, bit(h.rank))
	}
	switch {
	case h.card == root && all:
		w.end(h.card)
	case h.card != root && (all || w.without(finishFirst)):
		w.finishUp(h.card)
	}
}

// end ends a job after all its members have finished.
func (w *world) end(c int) {
	w.judgeEnd(c)
	w.Describe("all have finished: the job of %s has ended", w.card(c))
	w.clear(c)
	w.cards[c].over = true
}

// clear ends the running job, and leaves its last epoch, the memories and the caches.
func (w *world) clear(c int) {
	k := &w.cards[c]
	k.up, k.over, k.finished, k.fresh = false, false, 0, false
	for i := range w.config.slots() {
		s := &k.slots[i]
		*s = slot{memory: s.memory, final: s.final, cache: s.cache}
	}
}

// setUp prepares a card to take VIDs from first on.
func (w *world) setUp(c, epoch, first int) {
	w.clear(c)
	k := &w.cards[c]
	k.up, k.known, k.epoch = true, true, uint8(epoch)
	n := w.config.slots()
	for i := range n {
		k.slots[i].vid = uint8(first + ((i-first)%n+n)%n - n)
		k.slots[i].done = w.all(c)
	}
}
