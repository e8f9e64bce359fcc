package simulator

import (
	"time"

	"tributary/driver/virtual/clock"
)

// Pace advances the clock of a card that runs freely. A simulator cannot follow real time, and one that
// does all it can would keep a processor busy for nothing.
type Pace struct {
	card  *Card
	every time.Duration // between two steps
	last  time.Time
}

// The clock cycles of a step: while the card is busy, and otherwise.
const (
	busyStep = 256
	idleStep = 16
	busyFor  = 8192 // cycles after the last frame
)

// mostGiven is the number of bytes of frames that a card gets between two steps. A pipe has room for more, so
// that a card that waits for its output to be read does not block its reader.
const mostGiven = 16 << 10

// RunFreely lets the card run beside real time. From then on, Send returns what has left so far, and the
// card moves when its clock advances.
func (c *Card) RunFreely() *Pace {
	c.freely = true
	return &Pace{card: c, every: clock.Tick}
}

// CatchUp advances the card's clock by a step, unless the last one was just now: a step waits for the card, and
// frames that come meanwhile at several ports need not.
func (p *Pace) CatchUp(clock.Card) {
	if time.Since(p.last) < p.every && p.card.given < mostGiven {
		return
	}
	defer func() { p.last = time.Now() }()
	if p.card.now-p.card.moved <= busyFor {
		p.card.Advance(busyStep)
		return
	}
	p.card.Advance(idleStep)
}
