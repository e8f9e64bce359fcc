package main

// stepKind is the kind of a step. The comments name the fields that it uses.
type stepKind uint8

const (
	// Open networks.
	stepArrive  stepKind = iota // packet
	stepDamaged                 // packet; to is the connection that its QPN names now: the same if its payload is damaged

	// Ordered networks. A cable is up from rank to, or down to it.
	stepSend  // rank is to
	stepUp    // the first packet arrives
	stepDown  // the first packet arrives
	loseUp    // the first packet is lost
	loseDown  // the first packet is lost
	copyUp    // the first packet arrives, and once more later
	copyDown  // the first packet arrives, and once more later
	passUp    // the second packet arrives before the first
	passDown  // the second packet arrives before the first
	stepTimer // rank is to

	stepEnd // with config.ends

	// With config.lag.
	stepRelease // connection is to
	stepReplay  // connection is to
)

// step is one transition.
type step struct {
	kind   stepKind
	to     uint8
	packet uint16
}

// Steps calls f with every step that may be possible.
func (w *world) Steps(f func(step)) {
	w.network.each(func(n int) {
		f(step{kind: stepArrive, packet: uint16(n)})
		for conn := range w.config.ranks {
			f(step{kind: stepDamaged, packet: uint16(n), to: uint8(conn)})
		}
	})
	if w.config.ends {
		f(step{kind: stepEnd})
	}
	for to := range w.config.ranks {
		if w.config.ordered {
			for k := stepSend; k <= stepTimer; k++ {
				f(step{kind: k, to: uint8(to)})
			}
		}
		if w.config.lag {
			f(step{kind: stepRelease, to: uint8(to)})
			f(step{kind: stepReplay, to: uint8(to)})
		}
	}
}

// Step makes a step and reports whether it was possible.
func (w *world) Step(s step) bool {
	w.Begin()
	possible := w.makeStep(s)
	if possible && w.config.ordered && w.atRest() {
		w.judgeRest()
	}
	return possible
}

func (w *world) makeStep(s step) bool {
	to := int(s.to)
	switch s.kind {
	case stepArrive:
		w.deliver(w.Values[s.packet])
	case stepDamaged:
		return w.deliverDamaged(w.Values[s.packet], to)
	case stepSend:
		return w.sendNext(to)
	case stepUp, loseUp, copyUp, passUp:
		return w.cable(&w.up[to], s.kind-stepUp)
	case stepDown, loseDown, copyDown, passDown:
		return w.cable(&w.down[to], s.kind-stepDown)
	case stepTimer:
		return w.timer(to)
	case stepEnd:
		w.Describe("the job ends")
		was := w.over
		w.over = true
		return !was
	case stepRelease:
		w.Describe("the card's turn for connection %d", to)
		return w.release(to)
	case stepReplay:
		w.Describe("the card answers on connection %d", to)
		return w.replay(to)
	}
	return true
}

// cable moves a packet on a cable. What is a step of stepUp's and stepDown's groups, counted from there.
func (w *world) cable(q *queue, what stepKind) bool {
	place := 0
	if what == passUp-stepUp {
		place = 1
	}
	if q[place] == 0 {
		return false
	}
	p := w.Values[q[place]-1]
	fault := &w.others
	switch what {
	case 0:
		fault = nil
	case loseUp - stepUp:
		fault = &w.losses
	}
	if fault != nil {
		if *fault == 0 {
			return false
		}
		*fault--
	}
	switch what {
	case loseUp - stepUp:
		w.Describe("the network loses %s", w.name(p))
		q.take(0)
		if p.kind == ack || p.kind == nak {
			w.harmed = true
		} else {
			w.conns[p.conn].lost++
		}
		return true
	case copyUp - stepUp:
		w.Describe("the network repeats a packet")
		w.harmed = true
	case passUp - stepUp:
		w.Describe("a packet overtakes another")
		w.harmed = true
		for conn := range w.config.ranks {
			w.conns[conn].lost++
		}
		q.take(1)
	default:
		q.take(0)
	}
	w.pass(q, p)
	return true
}

// pass lets a packet arrive at the end of its cable. The card passes ACKs and NAKs on.
func (w *world) pass(q *queue, p packet) {
	if (p.kind == ack || p.kind == nak) && q == &w.up[w.config.receiver(int(p.conn))] {
		w.Describe("%s passes the card", w.name(p))
		w.down[p.conn].add(w.Number(p))
		return
	}
	w.deliver(p)
}

// timer expires at a rank with packets that lack an ACK.
func (w *world) timer(rank int) bool {
	r := &w.ranks[rank]
	if r.gone || r.oldest >= r.fresh {
		return false
	}
	if !w.atRest() {
		if w.timers == 0 {
			return false
		}
		w.timers--
	}
	w.Describe("the timer of rank %d expires", rank)
	w.goBack(rank)
	return true
}

// atRest reports whether nothing but a timer can happen on an ordered network.
func (w *world) atRest() bool {
	for i := range w.config.ranks {
		r := &w.ranks[i]
		if w.up[i][0] != 0 || w.down[i][0] != 0 || !r.gone && int(r.next) < w.sent(i) || w.canRelease(i) {
			return false
		}
	}
	return true
}

// canRelease reports whether the card has something for a connection.
func (w *world) canRelease(conn int) bool {
	before := w.another()
	before.state = w.state
	return before.release(conn) || before.replay(conn)
}

// deliver is the arrival of a packet: of data at the card, of others at their rank.
func (w *world) deliver(p packet) {
	w.Begin()
	switch p.kind {
	case data:
		w.Describe("%s reaches the card", w.name(p))
		w.judgeVerdict(p, w.takeData(p, false))
		w.afterwards()
	case sum:
		w.Describe("%s arrives", w.name(p))
		w.takeSum(p)
		w.post()
	default:
		w.Describe("%s arrives", w.name(p))
		w.takeACK(p)
		w.post()
	}
}

// deliverDamaged is the arrival of damaged data: its QPN names another connection now, or its payload is
// damaged if that is the same.
func (w *world) deliverDamaged(p packet, conn int) bool {
	if p.kind != data || conn == int(p.conn) && !w.config.damage || conn != int(p.conn) && !w.config.strays {
		return false
	}
	w.Describe("%s reaches the card", w.name(p))
	if conn == int(p.conn) {
		w.Describe("its payload is damaged")
		p.load[conn] |= tagDamaged
	} else {
		w.Describe("its QPN is damaged, and names connection %d", conn)
		p.conn = uint8(conn)
	}
	w.takeData(p, true)
	w.afterwards()
	return true
}

// afterwards lets the card send what it can, unless that takes steps of its own.
func (w *world) afterwards() {
	if !w.config.lag || w.calm {
		w.releases()
	}
}
