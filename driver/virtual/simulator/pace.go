package simulator

import "tributary/driver/virtual/clock"

// Pace advances the clock of a card that runs freely. A simulator cannot follow real time, and one that
// does all it can would keep a processor busy for nothing.
type Pace struct{ card *Card }

// The clock cycles of a step: while the card is busy, and otherwise.
const (
	busyStep = 256
	idleStep = 16
	busyFor  = 8192 // cycles after the last frame
)

// RunFreely lets the card run beside real time. From then on, Send returns what has left so far, and the
// card moves when its clock advances.
func (c *Card) RunFreely() *Pace {
	c.freely = true
	return &Pace{c}
}

// CatchUp advances the card's clock by a step.
func (p *Pace) CatchUp(clock.Card) {
	if p.card.now-p.card.moved <= busyFor {
		p.card.Advance(busyStep)
		return
	}
	p.card.Advance(idleStep)
}
