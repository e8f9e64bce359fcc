package main

// verdict is what becomes of a data packet at the card.
type verdict uint8

const (
	stored verdict = iota
	repeat
	late
	early
	notReady
	damaged
	ended
)

// takeData is the arrival of a data packet of a registered connection. Its ICRC holds unless bad.
func (w *world) takeData(p packet, bad bool) verdict {
	c, conn := w.config, int(p.conn)
	v := w.extend(c.field(int(p.vid)))
	if bad && !w.without(storeBeforeICRC) {
		if s := w.slotOf(v); w.without(damagedSetsHeader) && int(s.vid) == v {
			s.header[conn] = p.header()
		}
		w.Describe("its ICRC does not hold, and the card drops it")
		return damaged
	}
	if w.over {
		w.Describe("its job has ended, and the card drops it")
		if w.without(endForgets) {
			w.forward(p)
		}
		return ended
	}
	if old := w.slotOf(v - c.window); int(old.vid) == v-c.window && old.phase == reduced {
		w.evidence(old, conn)
	}
	s := w.slotOf(v)
	u, turn := int(s.vid), int(s.vid)+w.slotCount()
	switch {
	case v == u && s.phase != empty && s.held&bit(conn) != 0:
		w.takeRepeat(p, s)
		return repeat
	case v == u && s.phase == collecting:
		w.store(p, s)
		return stored
	case v == turn:
		w.evidence(s, conn)
		if s.phase == empty || s.phase == reduced && s.done == c.all() || w.without(turnoverUndone) {
			w.turnOver(s, v)
			w.store(p, s)
			return stored
		}
		w.Describe("the card drops it: connections %s are not done with %s", w.set(c.all()&^s.done), w.v(u))
		w.refuse(p, s)
		return notReady
	case v > turn:
		w.Describe("the card drops it: early")
		w.refuse(p, s)
		return early
	}
	w.Describe("the card drops it: late")
	w.refuse(p, s)
	return late
}

// extend returns the VID with these low bits that is nearest to the newest stored one.
func (w *world) extend(psn int) int {
	newest := 0
	for i := range w.slotCount() {
		if s := &w.slots[i]; s.phase != empty {
			newest = max(newest, int(s.vid))
		}
	}
	d := w.config.ahead(psn, w.config.field(newest))
	if d < 0 && w.without(anyExtension) {
		d += w.config.mod
	}
	return newest + d
}

// evidence notes that a connection's receiver has a slot's sum.
func (w *world) evidence(s *slot, conn int) {
	switch {
	case w.without(noEvidence):
	case w.without(evidenceOfAll):
		s.done = w.config.all()
	case w.without(evidenceMoved):
		s.done |= bit(w.config.from(conn))
	case w.without(evidenceOfOther):
		s.done |= bit(conn) | bit(w.config.from(conn))
	default:
		s.done |= bit(conn)
	}
}

// turnOver gives a slot to VID v.
func (w *world) turnOver(s *slot, v int) {
	if s.phase != empty {
		w.judgeTurnover(s)
		w.Describe("the slot of %s turns over", w.v(int(s.vid)))
		for conn := range w.config.ranks {
			line := &w.conns[conn]
			line.ended = line.ended || int(line.next) <= int(s.vid) && !w.without(completionOrder)
		}
	}
	s.vid, s.phase, s.held, s.done, s.owed = int16(v), collecting, 0, 0, 0
	if !w.without(turnoverKeepsHeader) {
		s.header = [maxRanks]tag{}
	}
	w.expire(v)
}

// store stores a contribution, and sums the slot when it was the last.
func (w *world) store(p packet, s *slot) {
	conn := int(p.conn)
	load := p.load[conn]
	for _, t := range p.load {
		if load == 0 {
			load = t // damage has brought it here
		}
	}
	s.memory[conn] = load
	s.held |= bit(conn)
	s.header[conn] = p.header()
	if s.held != w.config.all() {
		w.Describe("the card stores it; it holds %s of %s", w.set(s.held), w.v(int(s.vid)))
		return
	}
	s.phase, s.cache = reduced, payload{}
	copy(s.cache[:], s.memory[:w.config.ranks])
	w.Describe("the card stores it, and has the sum %s", w.v(int(s.vid)))
	if w.without(completionOrder) {
		for conn := range w.config.ranks {
			w.leave(conn, s)
		}
	}
	if w.without(earlyAgain) {
		for conn := range w.conns {
			w.conns[conn].early = false
		}
	}
}

// takeRepeat is the arrival of a VID that the slot holds.
func (w *world) takeRepeat(p packet, s *slot) {
	conn := int(p.conn)
	if !w.without(headerStays) {
		s.header[conn] = p.header()
	}
	switch {
	case s.phase == reduced && (int(s.vid) < int(w.conns[conn].next) || w.without(completionOrder|repeatAhead)):
		if w.without(noReplay) {
			w.Describe("the card has released it")
			return
		}
		w.Describe("the card owes connection %d the sum again", conn)
		s.owed |= bit(conn)
	case w.without(waitingForwarded):
		w.forward(p)
	default:
		w.Describe("a repeat; its turn has not come")
	}
}

// refuse leaves no trace of a packet that the slot rules refuse.
func (w *world) refuse(p packet, s *slot) {
	if w.without(refusedSetsHeader) {
		s.header[p.conn] = p.header()
	}
	if w.without(refusedForwarded) {
		w.forward(p)
	}
}

// forward passes a data packet on as it came.
func (w *world) forward(p packet) {
	w.Describe("the card passes it on")
	w.Violate(alwaysSummed, "v=%d of rank %d leaves with its own payload", p.vid, p.conn)
	p.kind, p.source = sum, 0
	w.send(p)
}

// summed reports whether the card has the sum of a VID.
func (w *world) summed(vid int) bool {
	s := w.slotOf(vid)
	return int(s.vid) == vid && s.phase == reduced
}

// contributed reports whether the card holds a rank's contribution.
func (w *world) contributed(rank, vid int) bool {
	s := w.slotOf(vid)
	return int(s.vid) == vid && s.held&bit(rank) != 0
}

// release releases one sum to a connection in its turn, or the one after that early. It returns false
// if there is none.
func (w *world) release(conn int) bool {
	line := &w.conns[conn]
	k := int(line.next)
	switch {
	case w.without(completionOrder) || line.ended:
		return false
	case w.summed(k):
		line.next++
		if w.without(earlyMoves) && line.early {
			line.next++
		}
		line.early = false
		w.leave(conn, w.slotOf(k))
		return true
	case w.without(strictOrder) || line.early || !w.summed(k+1):
		return false
	case w.contributed(conn, k) && !w.without(exceptionToAll):
		return false
	}
	line.early = true
	w.Describe("%s is next on connection %d, and its rank has not contributed it", w.v(k), conn)
	w.leave(conn, w.slotOf(k+1))
	return true
}

// replay answers a repeat of a released VID. It returns false if none is owed.
func (w *world) replay(conn int) bool {
	if w.conns[conn].ended {
		return false
	}
	for i := range w.slotCount() {
		if s := &w.slots[i]; s.owed&bit(conn) != 0 {
			s.owed &^= bit(conn)
			w.leave(conn, s)
			return true
		}
	}
	return false
}

// leave sends a slot's sum on a connection, in the connection's header of the slot.
func (w *world) leave(conn int, s *slot) {
	h := s.header[conn]
	if h.vid() != int(s.vid) && !w.without(anyHeader) {
		w.Describe("the header is of another VID, and nothing leaves")
		return
	}
	w.judgeHeader(conn, s)
	p := packet{kind: sum, conn: uint8(conn), vid: uint8(max(0, h.vid())), ask: h&tagAsk != 0, load: s.cache}
	w.Describe("the card sends %s", w.name(p))
	w.send(p)
}

// releases sends all that the card can send.
func (w *world) releases() {
	for conn := range w.config.ranks {
		for w.release(conn) || w.replay(conn) {
		}
	}
}
