package main

// The endpoints are RC queue pairs with go-back-N, and workers that keep the window of ROCE.md, section 7.

// received reports whether a rank has received message m.
func (w *world) received(rank, m int) bool {
	return int(w.ranks[rank].expected) >= (m+1)*w.config.packets
}

// completed reports whether a rank's own send m has completed.
func (w *world) completed(rank, m int) bool {
	return int(w.ranks[rank].oldest) >= (m+1)*w.config.packets
}

// mayPost reports whether a worker may post message m.
func (w *world) mayPost(rank, m int) bool {
	before := m - w.config.credits
	if w.without(oneAhead) {
		before--
	}
	switch {
	case before < 0 || !w.config.honest(rank):
		return true
	case w.without(receivedAlone):
		return w.received(rank, before)
	case w.without(completedAlone):
		return w.completed(rank, before)
	}
	return w.received(rank, before) && w.completed(rank, before)
}

// post lets each worker post what it may. In an open network, all that a sender could repeat by now is under
// way as well. Workers leave when they may.
func (w *world) post() {
	c := w.config
	for i := range c.ranks {
		r := &w.ranks[i]
		for int(r.posted) < c.messages && w.mayPost(i, int(r.posted)) {
			first := int(r.posted) * c.packets
			r.posted++
			w.Describe("rank %d posts message %d", i, r.posted-1)
			for v := first; v < first+c.packets && (!c.ordered || w.calm); v++ {
				w.send(w.dataOf(i, v, v == first+c.packets-1))
			}
		}
		if !c.ordered && !w.calm && (c.asked || c.inPlace) {
			for v := int(r.oldest); v < w.sent(i); v++ {
				w.send(w.dataOf(i, v, c.asked))
				if c.oldest {
					break
				}
			}
		}
		w.leaves(i)
	}
}

// sent is the first VID that a rank has not posted.
func (w *world) sent(rank int) int { return int(w.ranks[rank].posted) * w.config.packets }

// dataOf returns a rank's data packet as it would send it now.
func (w *world) dataOf(rank, vid int, ask bool) packet {
	p := packet{kind: data, conn: uint8(rank), vid: uint8(vid), ask: ask && w.config.asked, source: tagOf(rank, vid)}
	p.load[rank] = tagOf(rank, vid)
	if w.config.inPlace && int(w.ranks[rank].expected) > vid {
		p.load[rank] |= tagSum
	}
	return p
}

// leaves lets a weakened worker leave before the barrier. Nobody else leaves: after the barrier nothing
// happens.
func (w *world) leaves(rank int) {
	r, end := &w.ranks[rank], w.config.end()
	received, complete := int(r.expected) == end, int(r.oldest) == end
	if !r.gone && received && (w.without(leaveReceived) || complete && w.without(leaveComplete)) {
		r.gone = true
		w.Describe("rank %d leaves", rank)
	}
}

// takeSum is the arrival of a data packet at its receiver.
func (w *world) takeSum(p packet) {
	c, conn := w.config, int(p.conn)
	me := c.receiver(conn)
	r := &w.ranks[me]
	if r.gone {
		w.Describe("rank %d has left", me)
		return
	}
	answers := !c.asked || p.ask
	switch d := c.ahead(c.field(int(p.vid)), c.field(int(r.expected))); {
	case d == 0:
		w.judgeTaken(me, p)
		w.Describe("rank %d takes it", me)
		r.expected++
		r.nakked = false
	case d < 0:
		w.Describe("a duplicate at rank %d", me)
	case !c.ordered:
		// A NAK acknowledges all before it; the repeats that it asks for are under way already.
		w.Describe("rank %d lacks %s, and sends a NAK", me, w.v(int(r.expected)))
		answers = true
	case r.nakked:
		w.Describe("rank %d has sent a NAK for the gap", me)
		answers = false
	default:
		r.nakked, answers = true, false
		w.Describe("rank %d lacks %s, and sends a NAK", me, w.v(int(r.expected)))
		w.judgeNAK(conn)
		w.send(packet{kind: nak, conn: p.conn, vid: r.expected})
	}
	if answers {
		w.send(packet{kind: ack, conn: p.conn, vid: r.expected})
	}
}

// takeACK is the arrival of an ACK or NAK at the sender.
func (w *world) takeACK(p packet) {
	c, conn := w.config, int(p.conn)
	r := &w.ranks[conn]
	if r.gone {
		w.Describe("rank %d has left", conn)
		return
	}
	d := c.ahead(c.field(int(p.vid)), c.field(int(r.oldest)))
	if d < 0 || d == 0 && p.kind == ack || int(r.oldest)+d > w.sent(conn) {
		w.Describe("rank %d knows it", conn)
		return
	}
	r.oldest += uint8(d)
	w.Describe("rank %d has completed all before %s", conn, w.v(int(r.oldest)))
	r.next = max(r.next, r.oldest)
	if p.kind == nak && !w.calm {
		w.goBack(conn)
	}
}

// goBack lets a sender repeat what it sent: all from the oldest VID on, or the oldest alone.
func (w *world) goBack(rank int) {
	r := &w.ranks[rank]
	if !w.config.oldest {
		r.next = r.oldest
		w.Describe("rank %d goes back to %s", rank, w.v(int(r.oldest)))
		return
	}
	if r.oldest < r.fresh {
		w.Describe("rank %d repeats %s", rank, w.v(int(r.oldest)))
		w.send(w.dataOf(rank, int(r.oldest), true))
	}
}

// sendNext sends a rank's next packet on an ordered network.
func (w *world) sendNext(rank int) bool {
	r := &w.ranks[rank]
	if r.gone || int(r.next) >= w.sent(rank) {
		return false
	}
	v := int(r.next)
	p := w.dataOf(rank, v, r.next < r.fresh || v%w.config.packets == w.config.packets-1)
	w.Describe("rank %d sends %s", rank, w.v(v))
	r.next++
	r.fresh = max(r.fresh, r.next)
	w.send(p)
	return true
}
