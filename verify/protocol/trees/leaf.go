package main

// mayGoUp reports whether a slot's own sum may leave for the parent: it says that everything up to
// v - W is here.
func (w *world) mayGoUp(c int, s *slot) bool {
	before := int(s.vid) - w.config.window
	t := w.slotOf(c, before)
	switch {
	case w.without(upTooEarly):
		return true
	case w.without(upOnlyNotWaiting):
		return int(t.vid) != before || t.phase != waiting && t.phase != closing
	}
	return int(t.vid) > before || int(t.vid) == before && (t.phase == reduced || t.phase == empty)
}

// sendUp sends a slot's own sum to the parent, or its first beat.
func (w *world) sendUp(c, i int) bool {
	k := &w.cards[c]
	s := &k.slots[i]
	ready := s.phase == waiting || s.phase == reduced && w.without(owedWhenReduced|ownSumIsFinal)
	if !s.owed || !ready || k.sending != 0 || !w.mayGoUp(c, s) {
		return false
	}
	s.owed = w.without(owedForEver)
	s.fresh = w.calm
	if w.config.beats {
		k.sending, k.begun = uint8(i+1), uint16(w.packets.Number(w.ownSum(c, s, s.cache)))
		w.Describe("%s begins to send its own sum %s up", w.card(c), w.v(int(s.vid)))
		return true
	}
	w.Describe("%s sends its own sum %s%s up", w.card(c), w.v(int(s.vid)), w.during(k.epoch))
	w.sendOwn(c, s, s.cache)
	return true
}

// sendRest sends the rest of an own sum.
func (w *world) sendRest(c int) bool {
	k := &w.cards[c]
	if k.sending == 0 {
		return false
	}
	p := w.packets.Values[k.begun]
	if now := k.slots[k.sending-1].cache; now != p.payload {
		torn := w.payloads.Values[p.payload]
		torn.torn = true
		p.payload = uint16(w.payloads.Number(torn))
	}
	k.sending, k.begun = 0, 0
	w.Describe("%s sends the rest of %s up", w.card(c), w.v(int(p.vid)))
	w.send(p, 0)
	return true
}

func (w *world) ownSum(c int, s *slot, content uint16) packet {
	return packet{kind: data, card: root, member: uint8(rankAtParent(c)), epoch: w.cards[c].epoch, vid: s.vid, payload: content}
}

func (w *world) sendOwn(c int, s *slot, content uint16) { w.send(w.ownSum(c, s, content), 0) }

// takeFinal takes a result at a leaf's up port, if it is the final sum that a slot waits for.
func (w *world) takeFinal(c int, p packet, fromParent bool) bool {
	k := &w.cards[c]
	s := w.slotOf(c, w.field(int(p.vid)))
	awaited := s.phase == waiting || s.phase == collecting && w.without(finalBeforeOwn) || s.phase == reduced && w.without(finalTwice)
	switch {
	case !k.up:
		w.Describe("%s drops it: the job is not set up", w.card(c))
	case !fromParent && !w.without(finalFromAny):
		w.Describe("%s drops it: not from its parent", w.card(c))
	case p.earlier && !w.without(finalOfAnyTree):
		w.Describe("%s drops it: for another UDP port", w.card(c))
	case p.epoch != k.epoch && !w.without(finalOfAnyEpoch):
		w.Describe("%s drops it: another epoch", w.card(c))
	case p.mask != w.config.ranks() && !w.without(finalOfAnyRanks):
		w.Describe("%s drops it: not the sum of all ranks", w.card(c))
	case w.field(int(s.vid)) != w.field(int(p.vid)) && !w.without(finalOfAnyVID):
		w.Describe("%s drops it: its slot holds %s", w.card(c), w.v(int(s.vid)))
	case !awaited:
		w.Describe("%s drops it: it does not wait for %s", w.card(c), w.v(int(s.vid)))
	default:
		w.take(c, s, p.payload)
		return true
	}
	return false
}

// take stores a final sum, which then passes through the lanes.
func (w *world) take(c int, s *slot, content uint16) {
	s.final = content
	if !w.without(owedWhenReduced) {
		s.owed = false
	}
	s.phase, s.fresh = closing, false
	w.Describe("%s takes the final sum %s", w.card(c), w.v(int(s.vid)))
	if !w.config.beats {
		w.close(c, s)
	}
}

// isBeingSent reports whether a slot's own sum is half sent.
func (w *world) isBeingSent(c, i int) bool { return int(w.cards[c].sending) == i+1 }

// close replaces the own sum by the final one, and sends that to all members.
func (w *world) close(c int, s *slot) {
	own := s.cache
	s.cache = s.final
	if w.without(finalAdded) {
		s.cache = uint16(w.payloads.Number(w.payloads.Values[own].add(w.payloads.Values[s.final])))
	}
	s.phase = reduced
	w.Describe("%s has the result %s", w.card(c), w.v(int(s.vid)))
	w.sendResult(c, s, w.all(c))
	if w.without(finalKept) {
		s.cache = own
	}
}

// step of the lanes: reduces a complete slot, or closes one. Neither replaces what is being sent.
func (w *world) lanes(c, i int) bool {
	s := &w.cards[c].slots[i]
	if w.isBeingSent(c, i) && !w.without(finalWhileSending) {
		return false
	}
	switch s.phase {
	case reducing:
		w.Describe("%s sums %s", w.card(c), w.v(int(s.vid)))
		w.reduce(c, s)
	case closing:
		w.close(c, s)
	default:
		return false
	}
	return true
}

// finishUp sends a leaf's finish to its parent, at every second repeat, as in repeat.
func (w *world) finishUp(c int) {
	k := &w.cards[c]
	p := packet{kind: finish, card: root, member: uint8(rankAtParent(c)), epoch: k.epoch, vid: uint8(w.config.end())}
	if k.fresh {
		k.fresh = w.without(finishOnce)
		w.Describe("%s has just sent its own finish up", w.card(c))
		return
	}
	k.fresh = w.calm || w.without(finishOnce)
	w.Describe("%s sends its own finish up", w.card(c))
	w.send(p, 0)
}

// takeDone takes a done at a leaf's up port: the parent has its finish, so its job ends.
func (w *world) takeDone(c int, p packet) {
	k := &w.cards[c]
	switch {
	case !k.up:
		w.Describe("%s drops it: the job is not set up", w.card(c))
	case p.earlier && !w.without(doneOfAnyTree):
		w.Describe("%s drops it: for another UDP port", w.card(c))
	case p.epoch != k.epoch && !w.without(doneOfAnyEpoch):
		w.Describe("%s drops it: another epoch", w.card(c))
	case k.finished != w.all(c) && !w.without(doneUnfinished):
		w.Describe("%s drops it: not all of its members have finished", w.card(c))
	default:
		w.end(c)
		if w.without(doneUnnoticed) {
			return
		}
		for m := range w.members[c] {
			w.send(packet{kind: done, card: uint8(c), member: uint8(m), epoch: k.epoch, vid: p.vid}, bit(m))
		}
	}
}
