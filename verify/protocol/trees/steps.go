package main

// stepKind is the kind of a step. The comments name the fields that it uses.
type stepKind uint8

const (
	stepDeliver stepKind = iota // packet arrives, a result or done at member of its card
	stepAsk                     // an ask for the VID of a data packet arrives
	stepSend                    // worker is member; with config.lazy
	stepLanes                   // card, slot
	stepUp                      // card, slot
	stepRest                    // card
	stepDie                     // card
	stepRestart                 // worker is member
	stepEpoch
	stepAbort
	stepRogue // packet is an index into the rogue's alphabet
)

// step is one transition.
type step struct {
	kind         stepKind
	card, member uint8
	packet       uint16
}

// Steps calls f with every step that may be possible.
//
// An ask needs no packet of its own. A worker may ask for a VID as soon as it has sent the data, and
// the ask may be under way as long as the data. So an ask can arrive whenever the data can.
func (w *world) Steps(f func(step)) {
	w.network.each(func(n int) {
		p := w.packets.Values[n]
		if p.kind == result {
			for m := range w.members[p.card] {
				f(step{kind: stepDeliver, packet: uint16(n), member: uint8(m)})
			}
			return
		}
		f(step{kind: stepDeliver, packet: uint16(n), member: p.member})
		if p.kind == data && !w.members[p.card][p.member].isLeaf() && !w.config.dataOnly {
			f(step{kind: stepAsk, packet: uint16(n)})
		}
	})
	for c := range w.config.cards() {
		for i := range w.config.slots() {
			f(step{kind: stepLanes, card: uint8(c), member: uint8(i)})
			if c != root {
				f(step{kind: stepUp, card: uint8(c), member: uint8(i)})
			}
		}
		f(step{kind: stepRest, card: uint8(c)})
	}
	for _, c := range w.config.dying {
		f(step{kind: stepDie, card: uint8(c)})
	}
	for i := range w.config.workers() {
		if w.config.lazy {
			f(step{kind: stepSend, member: uint8(i)})
		}
		f(step{kind: stepRestart, member: uint8(i)})
	}
	f(step{kind: stepEpoch})
	f(step{kind: stepAbort})
	if w.config.rogue {
		for i := range w.rogueAlphabet() {
			f(step{kind: stepRogue, packet: uint16(i)})
		}
	}
}

// Step makes a step and reports whether it was possible.
func (w *world) Step(s step) bool {
	w.Begin()
	c, m := int(s.card), int(s.member)
	switch s.kind {
	case stepDeliver:
		w.deliver(w.packets.Values[s.packet], m)
	case stepAsk:
		w.ask(w.packets.Values[s.packet])
	case stepSend:
		return w.sendNext(m)
	case stepLanes:
		return w.lanes(c, m)
	case stepUp:
		return w.sendUp(c, m)
	case stepRest:
		return w.sendRest(c)
	case stepDie:
		if w.deaths == 0 || !w.cards[c].up && !w.cards[c].over {
			return false
		}
		w.die(c)
	case stepRestart:
		if w.restarts == 0 || !w.config.honest(m) || w.workers[m].life != active {
			return false
		}
		w.restart(m)
	case stepEpoch:
		if !w.needsEpoch() {
			return false
		}
		w.newEpoch()
	case stepAbort:
		return w.abort()
	case stepRogue:
		return w.forge(w.rogueAlphabet()[s.packet])
	}
	return true
}

// headerOf returns the header of a packet from below that keeps the rules.
func (w *world) headerOf(p packet) header {
	return header{from: w.members[p.card][p.member], card: int(p.card), rank: int(p.member), epoch: p.epoch,
		vid: w.field(int(p.vid)), earlier: p.earlier}
}

// deliver delivers a packet: up to its card, or down to a member of it.
func (w *world) deliver(p packet, m int) {
	w.Begin()
	c := int(p.card)
	from := "" // of an earlier tree
	if p.earlier {
		from = " of the earlier tree"
	}
	switch p.kind {
	case data:
		w.Describe("%s of %s%s%s reaches %s", w.v(int(p.vid)), w.node(w.members[c][p.member]), w.during(p.epoch), from, w.card(c))
		w.judgeAnswer(p, w.takeData(w.headerOf(p), func(*slot) uint16 { return p.payload }))
	case finish:
		w.Describe("the finish of %s%s%s reaches %s", w.node(w.members[c][p.member]), w.during(p.epoch), from, w.card(c))
		w.takeFinish(w.headerOf(p))
	case commit:
		w.Describe("JOB_COMMIT of epoch %d reaches %s", p.epoch, w.card(c))
		w.takeCommit(c, int(p.epoch), int(p.vid))
	case result:
		to := w.members[c][m]
		w.Describe("the result %s%s%s reaches %s", w.v(int(p.vid)), w.during(p.epoch), from, w.node(to))
		if to.isLeaf() {
			w.judgeFinal(to.card(), p, w.takeFinal(to.card(), p, true))
		} else {
			w.takeResult(int(to), p)
		}
	case done:
		to := w.members[c][m]
		w.Describe("done%s%s reaches %s", w.during(p.epoch), from, w.node(to))
		if to.isLeaf() {
			w.takeDone(to.card(), p)
		} else {
			w.workerDone(int(to), p)
		}
	}
}

// ask delivers an ask for the VID of a data packet.
func (w *world) ask(p packet) answer {
	w.Begin()
	w.Describe("%s asks for %s%s", w.node(w.members[p.card][p.member]), w.v(int(p.vid)), w.during(p.epoch))
	return w.takeAsk(w.headerOf(p))
}
