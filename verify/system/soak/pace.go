package main

import (
	"time"

	"tributary/driver/virtual/clock"
	"tributary/driver/virtual/simulator"
)

// paced is a card in a simulator that runs beside real time: fast while frames move, and slowly while it
// waits for some or for a deadline. So many cards can share a processor.
type paced struct {
	*simulator.Card
	link uint64        // bytes that a port takes in a cycle
	busy uint64        // the card has something to do up to this cycle
	idle time.Duration // its speed while it waits
	last time.Time
}

// The speeds of a card's clock, in cycles a millisecond.
const (
	busySpeed = 256
	idleSpeed = 16 // towards a deadline
	slowSpeed = 2
)

const (
	inside = 256 // cycles that a frame's effect may take, or follow another frame's
	most   = 512 // cycles of a step
	least  = 64
)

// newPaced returns a card whose ports take a number of bytes in a cycle. deadlines may have to pass while it
// waits.
func newPaced(card *simulator.Card, link uint64, deadlines bool) *paced {
	card.RunFreely()
	p := &paced{Card: card, link: link, idle: slowSpeed, last: time.Now()}
	if deadlines {
		p.idle = idleSpeed
	}
	return p
}

// Receive gives the card a frame.
func (p *paced) Receive(port int, frame []byte) {
	p.Card.Receive(port, frame)
	p.busy = max(p.busy, p.Cycles()) + uint64(len(frame))/p.link
}

// Send returns a frame that has left.
func (p *paced) Send(dst []byte) (frame []byte, port int, ok bool) {
	frame, port, ok = p.Card.Send(dst)
	if ok {
		p.busy = max(p.busy, p.Cycles())
	}
	return frame, port, ok
}

// CatchUp advances the card's clock.
func (p *paced) CatchUp(clock.Card) {
	speed := p.idle
	if p.Cycles() < p.busy+inside {
		speed = busySpeed
	}
	if n := time.Since(p.last) * speed / time.Millisecond; n >= least {
		p.last = time.Now()
		p.Advance(uint64(min(n, most)))
	}
}
