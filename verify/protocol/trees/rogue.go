package main

// forgery is one packet that a rogue may send at any time. It has the epoch of the card that it
// reaches.
type forgery struct {
	kind         kind // data, result, finish, done; nothing: an ask
	card, member int  // as in a packet, and card is the leaf for a result or done at its up port
	vid          int  // the field
	marks        tag  // of the payload
}

// rogueAlphabet lists all packets that a rogue may send. They are data, asks and finishes at its
// card, in its own name and in that of every other member; data with a second payload; data and
// finishes at the root in the name of each leaf; results and dones at the up port of each leaf.
func (w *world) rogueAlphabet() []forgery {
	if w.alphabet != nil {
		return w.alphabet
	}
	own := w.place[w.config.workers()-1].card
	add := func(f forgery, vids bool) {
		n := 1
		if vids {
			n = w.config.mod
		}
		for f.vid = range n {
			w.alphabet = append(w.alphabet, f)
		}
	}
	for c := range w.config.cards() {
		for m := range w.members[c] {
			if c == own || c == root {
				add(forgery{kind: data, card: c, member: m}, true)
				add(forgery{kind: nothing, card: c, member: m}, true)
				add(forgery{kind: finish, card: c, member: m}, false)
			}
		}
		if c != root {
			add(forgery{kind: result, card: c}, true)
			add(forgery{kind: done, card: c}, false)
		}
	}
	for m, n := range w.members[own] {
		if int(n) == w.config.workers()-1 {
			add(forgery{kind: data, card: own, member: m, marks: tagOther}, true)
		}
	}
	return w.alphabet
}

// forge delivers a forgery to its card at once: a late arrival equals a later sending.
func (w *world) forge(f forgery) bool {
	own := w.config.workers() - 1
	c := f.card
	h := header{from: node(own), card: c, rank: f.member, epoch: w.cards[c].epoch, vid: f.vid}
	switch f.kind {
	case data:
		w.Describe("%s sends data, VID %d, payload %d, to %s as %s", w.worker(own), f.vid, f.marks>>13, w.card(c), w.node(w.members[c][f.member]))
		w.takeData(h, func(s *slot) uint16 {
			// A forged payload belongs to the VID of the slot that it reaches.
			return w.input(own, int(h.epoch), int(s.vid), f.marks)
		})
	case nothing:
		w.Describe("%s asks for VID %d as %s", w.worker(own), f.vid, w.node(w.members[c][f.member]))
		w.takeAsk(h)
	case finish:
		w.Describe("%s sends finish to %s as %s", w.worker(own), w.card(c), w.node(w.members[c][f.member]))
		w.takeFinish(h)
	case result:
		w.Describe("%s sends a result, VID %d, to the up port of %s", w.worker(own), f.vid, w.card(c))
		w.takeFinal(c, packet{kind: result, epoch: h.epoch, vid: uint8(f.vid), payload: w.foreign(w.config.ranks(), f.vid), mask: w.config.ranks()}, false)
	case done:
		if !w.without(finalFromAny) {
			return false
		}
		w.Describe("%s sends done to the up port of %s", w.worker(own), w.card(c))
		w.takeDone(c, packet{epoch: h.epoch})
	}
	return true
}
