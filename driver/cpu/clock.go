package cpu

import "time"

// Real time drives the clock of a card in use.
const (
	cycle = 10 * time.Nanosecond
	tick  = time.Millisecond // deadlines are looked at no more often, unless traffic does it
)

// clock is the real time of a card in use. The card's clock makes a cycle in 10 ns, or more if its
// traffic takes more.
type clock struct {
	began time.Time
	at    uint64 // the card's clock then
}

// startClock starts real time at the card's clock.
func startClock(now uint64) clock { return clock{time.Now(), now} }

// sync advances the card's clock to real time.
func (c clock) sync(e *engine) {
	if now := c.at + uint64(time.Since(c.began)/cycle); now > e.now {
		e.advance(now - e.now)
	}
}

// until returns the time until real time brings the card's clock to a cycle.
func (c clock) until(cycles uint64) time.Duration {
	return time.Duration(cycles-c.at)*cycle - time.Since(c.began)
}
