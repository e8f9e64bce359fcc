package main

// stepKind is the kind of a step. The comments name the fields that it uses.
type stepKind uint8

const (
	stepSend      stepKind = iota // member sends its next VID
	stepSendAgain                 // member sends VID slot again after its earlier copies have left the network
	stepDeliver                   // packet arrives
	stepAsk                       // an ask for the VID of a data packet arrives
	stepReduce                    // slot
	stepTransmit                  // slot to member
	stepRest                      // the second beat to member
	stepDeadline                  // slot
	stepRestart                   // member
	stepReset
	stepNewEpoch // job is member
	stepJoin     // member
	stepRogue    // packet is an index into the rogue's alphabet
)

// step is one transition.
type step struct {
	kind   stepKind
	member uint8
	slot   uint8
	packet uint16
}

// Steps calls f with every step that may be possible.
//
// An ask needs no packet of its own. A worker may ask for a VID as soon as it has sent the data,
// and the ask may be under way as long as the data. So an ask can arrive whenever the data can.
func (w *world) Steps(f func(step)) {
	w.network.each(func(n int) {
		f(step{kind: stepDeliver, packet: uint16(n)})
		if w.packets.Values[n].kind == data {
			f(step{kind: stepAsk, packet: uint16(n)})
		}
	})
	for m := range w.config.members() {
		w.memberSteps(m, f)
	}
	for i := range len(w.config.Jobs) * w.slotCount() {
		f(step{kind: stepReduce, slot: uint8(i)})
		f(step{kind: stepDeadline, slot: uint8(i)})
		for m := range w.config.members() {
			f(step{kind: stepTransmit, slot: uint8(i), member: uint8(m)})
		}
	}
	for j := range w.config.Jobs {
		f(step{kind: stepNewEpoch, member: uint8(j)})
	}
	f(step{kind: stepReset})
	if w.config.Rogue {
		for i := range w.rogueAlphabet() {
			f(step{kind: stepRogue, packet: uint16(i)})
		}
	}
}

// memberSteps lists the steps of one worker and of the card's port to it.
func (w *world) memberSteps(m int, f func(step)) {
	f(step{kind: stepRest, member: uint8(m)})
	if !w.config.honest(m) {
		return
	}
	f(step{kind: stepSend, member: uint8(m)})
	me := &w.members[m]
	for vid := int(me.low); vid < int(me.next); vid++ {
		f(step{kind: stepSendAgain, member: uint8(m), slot: uint8(vid)})
	}
	f(step{kind: stepRestart, member: uint8(m)})
	f(step{kind: stepJoin, member: uint8(m)})
}

// Step makes a step and reports whether it was possible.
func (w *world) Step(s step) bool {
	m := int(s.member)
	switch s.kind {
	case stepSend:
		if !w.maySend(m) {
			return false
		}
		w.sent(w.sendNext(m))
	case stepSendAgain:
		return w.sendAgain(m, int(s.slot))
	case stepDeliver:
		w.deliver(int(s.packet))
	case stepAsk:
		w.deliverAsk(int(s.packet))
	case stepReduce:
		return w.reduce(int(s.slot))
	case stepTransmit:
		return w.transmit(int(s.slot), m)
	case stepRest:
		return w.transmitRest(m)
	case stepDeadline:
		return w.deadline(int(s.slot))
	case stepRestart:
		if life := w.members[m].life; w.restarts == 0 || life == down || life == out {
			return false
		}
		w.restart(m)
	case stepReset:
		if w.resets == 0 || !w.anyUp() {
			return false
		}
		w.reset()
	case stepNewEpoch:
		if !w.needsEpoch(m) {
			return false
		}
		w.sent(w.newEpoch(m))
	case stepJoin:
		if !w.mayJoin(m) {
			return false
		}
		w.joinEpoch(m)
	case stepRogue:
		return w.rogue(w.rogueAlphabet()[s.packet])
	}
	return true
}

func (w *world) anyUp() bool {
	for j := range w.config.Jobs {
		if w.jobs[j].up {
			return true
		}
	}
	return false
}

// sendAgain sends a VID whose data is no longer under way.
func (w *world) sendAgain(m, vid int) bool {
	me := &w.members[m]
	n := w.packets.Number(w.dataOf(m, vid))
	if me.life != active || me.holds(vid) || w.network.has(n) {
		return false
	}
	w.Describe("%s sends %s again", w.name(m), w.v(vid))
	w.network.add(n)
	w.sent(n)
	return true
}

// deliver delivers a packet to its receiver.
func (w *world) deliver(n int) {
	p := w.packets.Values[n]
	who := w.name(int(p.member))
	w.arrived(n)
	switch p.kind {
	case data:
		w.Describe("%s of %s%s reaches the card", w.v(int(p.vid)), who, w.during(int(p.epoch)))
		before := w.state
		a := w.takeData(w.headerOf(p), func(*slot) tag {
			return contribution(int(p.member), int(p.epoch), int(p.vid), 0)
		})
		w.judgeAnswer(p, a)
		w.judgeIsolation(int(p.member), &before)
	case finish:
		w.Describe("the finish of %s%s reaches the card", who, w.during(int(p.epoch)))
		before := w.state
		w.takeFinish(w.headerOf(p))
		w.judgeIsolation(int(p.member), &before)
	case commit:
		w.Describe("JOB_COMMIT of epoch %d reaches the card", p.epoch)
		w.takeCommit(int(p.job), int(p.epoch), int(p.vid))
	case result:
		w.Describe("the result %s%s reaches %s", w.v(int(p.vid)), w.during(int(p.epoch)), who)
		w.takeResult(p)
	case finished:
		w.Describe("the reply to its finish%s reaches %s", w.during(int(p.epoch)), who)
		w.takeFinished(p)
	case evicted:
		w.Describe("the eviction notice%s reaches %s", w.during(int(p.epoch)), who)
		w.takeOut(p)
	case ended:
		w.Describe("the notice that the job has ended%s reaches %s", w.during(int(p.epoch)), who)
		w.takeEnded(p)
	}
}

// deliverAsk delivers to the card an ask for the VID of a data packet.
func (w *world) deliverAsk(n int) answer {
	p := w.packets.Values[n]
	w.Describe("%s asks for %s%s", w.name(int(p.member)), w.v(int(p.vid)), w.during(int(p.epoch)))
	before := w.state
	h := w.headerOf(p)
	h.kind = ask
	a := w.takeAsk(h)
	w.judgeIsolation(int(p.member), &before)
	return a
}
