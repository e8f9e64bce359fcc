package main

// Reductions over several cards.

import (
	"context"

	"tributary/driver"
	"tributary/driver/schedule"
	"tributary/driver/transport"
)

// cardNames is the value of -card where a command takes several. The first one replaces the default.
type cardNames struct {
	first *string
	also  *[]string
	given bool
}

func (c *cardNames) Set(name string) error {
	if c.given {
		*c.also = append(*c.also, name)
		return nil
	}
	*c.first, c.given = name, true
	return nil
}

func (c *cardNames) String() string { return *c.first }
func (c *cardNames) Type() string   { return "string" }

// checkCards refuses flags that exclude each other with one card or with several.
func (f *reduceFlags) checkCards() error {
	several := len(f.also) > 0
	switch {
	case !several && f.schedule != nil:
		return usagef("-schedule: it needs several cards; name -card once for each")
	case !several && f.move:
		return usagef("-move: it needs several cards; name -card once for each")
	case several && f.record != "":
		return usagef("-record: it needs one card")
	case several && f.stats:
		return usagef("-stats: it needs one card")
	case several && f.carryOn > 0:
		return usagef("-carry-on: it needs one card; with several, use -move")
	case f.move && f.partial:
		return usagef("-move: it cannot be used with -partial")
	case f.schedule != nil:
		if err := schedule.Schedule(f.schedule).Check(1 + len(f.also)); err != nil {
			return usagef("-schedule: %v", err)
		}
	}
	return nil
}

// withOthers opens the further cards, calls use with all, and closes them.
func (c *carriedOut) withOthers(ctx context.Context, needs transport.Needs, cards []*driver.Card, use func([]*driver.Card) error) error {
	if len(cards) > len(c.also) {
		return use(cards)
	}
	other := &cardFlags{card: c.also[len(cards)-1], timeout: c.timeout, warn: c.warn}
	return other.withCard(ctx, needs, func(card *driver.Card) error {
		return c.withOthers(ctx, needs, append(cards, card), use)
	})
}

// showMove prints that the chunks of a card have moved.
func (c *carriedOut) showMove(m driver.Moved) {
	c.moved = true
	c.progress.say("%s: %v; its chunks move to the other cards", c.command, m.Cause)
}
