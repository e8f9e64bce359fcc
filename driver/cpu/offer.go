package cpu

import (
	"math/bits"

	"tributary/driver/wire"
)

// pump sums complete chunks, delivers their sums, begins the rounds that can begin, and commits what
// the exchanges may commit, until nothing more can be committed.
func (c *Card) pump() {
	for moved := true; moved; {
		moved = false
		c.engine.reduceAll()
		for n := len(c.exchanges) - 1; n >= 0; n-- { // collect may drop the exchange
			c.collect(c.exchanges[n])
		}
		for i := range c.engine.jobs {
			c.beginRound(&c.engine.jobs[i])
		}
		for n := len(c.exchanges) - 1; n >= 0; n-- { // as may offer
			moved = c.offer(c.exchanges[n]) || moved
		}
	}
}

// collect delivers the sums that the slots have for an exchange. It refuses an exchange that the
// card can do nothing for.
func (c *Card) collect(x *Exchange) {
	j := c.jobOf(x)
	switch {
	case j == nil:
		c.refuse(x, bits.TrailingZeros64(x.Ranks), x.low, c.whyNoJob(x))
		return
	case x.Ranks&j.members == 0:
		c.refuse(x, bits.TrailingZeros64(x.Ranks), x.low, wire.CodeEvicted)
		return
	case uint64(x.Chunk) != j.setup.chunk:
		c.refuse(x, bits.TrailingZeros64(x.Ranks), x.low, wire.CodeBadLength)
		return
	}
	for i := x.low; x.active && i <= x.next && i < x.chunks; i++ {
		if s := j.slot(x.vid(i)); s.vid == x.vid(i) && s.state == reduced {
			c.deliver(s, x)
		}
	}
}

// offer commits the chunks of an exchange that the window allows, unless a round has them. It
// reports whether there were any.
func (c *Card) offer(x *Exchange) (moved bool) {
	j := c.jobOf(x)
	if j == nil || j.round != nil {
		return false
	}
	for x.active && x.next < min(x.chunks, x.low+len(x.got)) {
		if !c.offerNext(j, x) {
			break
		}
		moved = true
		if x.turn++; x.turn == len(x.Inputs) {
			x.next, x.turn = x.next+1, 0
		}
	}
	return moved
}

// whyNoJob returns the refusal of data of a job that is not set up.
func (c *Card) whyNoJob(x *Exchange) wire.Code {
	if int(x.Job) < len(c.engine.jobs) && c.engine.jobs[x.Job].running {
		return wire.CodeBadEpoch
	}
	return wire.CodeBadJob
}

// offerNext commits the next contribution of an exchange. It returns false if that must wait, or
// was refused.
func (c *Card) offerNext(j *job, x *Exchange) bool {
	rank := rankAt(x.Ranks, x.turn)
	if j.members&bit(uint8(rank)) == 0 {
		return true // an evicted member offers nothing
	}
	s := j.slot(x.vid(x.next))
	switch c.judge(s, x, rank) {
	case storesIt:
		c.storePart(s, x, rank)
		return true
	case needsNothing:
		return true
	}
	return false
}

// verdict is what a slot does with the next contribution of an exchange.
type verdict uint8

const (
	storesIt     verdict = iota
	needsNothing         // it has one, or the sum
	waits                // until the slot turns over; or the exchange was refused
)

// judge applies the rules for data to the next contribution of an exchange.
func (c *Card) judge(s *slot, x *Exchange, rank int) verdict {
	vid, w := x.vid(x.next), bit(uint8(rank))
	switch vid - s.vid {
	case 0:
		switch {
		case s.state == empty:
			c.refuse(x, rank, x.next, wire.CodeLate)
			return waits
		case s.state == collecting && s.held&w == 0:
			return storesIt
		case s.state == reduced:
			c.deliver(s, x)
		}
		return needsNothing
	case 2 * s.job.window():
		s.done |= w
		if !c.engine.turnOver(s, vid) {
			return waits
		}
		return storesIt
	}
	c.refuse(x, rank, x.next, serial(vid, s.vid))
	return waits
}

// storePart stores the next contribution of an exchange in its slot, by reference where its chunk is
// whole.
func (c *Card) storePart(s *slot, x *Exchange, rank int) {
	e := c.engine
	at := place{slot: s, port: int(s.job.portOf[rank]), rank: uint8(rank), flags: uint8(wire.ECT0)}
	payload := x.part(x.Inputs[x.turn], x.next, e.elementBytes)
	nonfinite := e.arithmetic.HoldsNonfinite(payload)
	if short := x.Chunk*e.elementBytes - len(payload); short > 0 {
		payload = e.keepPadded(at, payload, short)
	}
	e.store(at, payload, nonfinite)
}

// keepPadded copies a payload into memory of its slot, with zeros after it.
func (e *engine) keepPadded(at place, payload []byte, zeros int) []byte {
	kept := append(e.keep(at, payload), make([]byte, zeros)...)
	at.slot.memory[at.port] = kept
	return kept
}

// rankAt returns the rank at an index of a set.
func rankAt(ranks uint64, index int) int {
	for ; index > 0; index-- {
		ranks &= ranks - 1
	}
	return bits.TrailingZeros64(ranks)
}

// refuse ends an exchange whose contribution the card does not take.
func (c *Card) refuse(x *Exchange, rank, chunk int, code wire.Code) {
	c.engine.counters.refusal(code)
	c.report(x, report{refused: true, rank: rank, vid: x.vid(chunk), code: code})
	c.drop(x)
}

// deliver copies the sum of a reduced slot into the array of an exchange, if that lacks it.
func (c *Card) deliver(s *slot, x *Exchange) {
	j, i := s.job, int(s.vid-x.First)
	if i < x.low || i >= min(x.chunks, x.low+len(x.got)) || x.got[i&(len(x.got)-1)] {
		return
	}
	copy(x.part(x.Sum, i, c.engine.resultBytes), s.cache)
	if s.sent == 0 {
		c.engine.counters[countResults]++ // one for all arrays, as on a shared link
	}
	s.done |= x.Ranks
	s.sent |= x.Ranks & j.members
	s.owed &^= x.Ranks
	s.enqueue()
	x.got[i&(len(x.got)-1)] = true
	for x.low < x.chunks && x.got[x.low&(len(x.got)-1)] {
		x.got[x.low&(len(x.got)-1)] = false
		x.low++
	}
	if x.next < x.low { // another member's sum came first
		x.next, x.turn = x.low, 0
	}
	c.report(x, report{first: i, chunks: 1, ranks: s.held, evicted: j.evicted, vid: j.evictedAt})
	if x.low == x.chunks {
		c.drop(x)
	}
}
