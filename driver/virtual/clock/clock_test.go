package clock

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// counted is a card's clock.
type counted uint64

func (c *counted) Cycles() uint64        { return uint64(*c) }
func (c *counted) Advance(cycles uint64) { *c += counted(cycles) }

// TestCatchUp: a card's clock has 100 cycles a microsecond, and is never turned back.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := counted(7)
		c := Start(&card)
		c.CatchUp(&card)
		assert.EqualValues(t, 7, card)
		time.Sleep(3 * time.Microsecond)
		c.CatchUp(&card)
		assert.EqualValues(t, 307, card)
		card = 1000
		c.CatchUp(&card)
		assert.EqualValues(t, 1000, card)
		time.Sleep(time.Second)
		c.CatchUp(&card)
		assert.EqualValues(t, 100_000_307, card)
	})
}
