// Package clock drives the clock of a card in software by real time.
package clock

import "time"

// Rate is the number of a card's clock cycles in a second.
const Rate = 100_000_000

// Tick is the time after which a card that has no traffic catches up, so that its deadlines and leases
// end in time.
const Tick = time.Millisecond

// cycle is the time of a clock cycle.
const cycle = time.Second / Rate

// Card is a card with a clock.
type Card interface {
	Cycles() uint64        // the card's clock
	Advance(cycles uint64) // advances it
}

// Clock follows real time from its start on.
type Clock struct {
	began time.Time
	from  uint64 // the card's clock at that time
}

// Start returns the clock of a card, which shows the right time now.
func Start(card Card) Clock { return Clock{time.Now(), card.Cycles()} }

// CatchUp advances the card's clock to real time, unless it is ahead.
func (c Clock) CatchUp(card Card) {
	now := c.from + Cycles(time.Since(c.began))
	if at := card.Cycles(); now > at {
		card.Advance(now - at)
	}
}

// Cycles returns the number of whole clock cycles in a time that is not negative.
func Cycles(d time.Duration) uint64 { return uint64(d / cycle) }
