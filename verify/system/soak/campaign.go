package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"tributary/driver/virtual/ethernet"
	"tributary/driver/virtual/frameport"
	"tributary/verify/system/faults"
)

// campaign is a series of rounds, each with its own card process.
type campaign struct {
	program  string // of the card
	seed     uint64 // of the first round
	faults   int64  // number of faults to reach
	rounds   int64  // limit; 0: none
	parallel int
	damage   bool
	trees    bool                                                                                     // rounds have trees of such cards
	ethernet int                                                                                      // Ethernet ports of the card; 0 for a card with a byte stream
	link     int                                                                                      // bits that each takes in a cycle
	device   func(ctx context.Context, deadlines bool) (ethernet.Device, frameport.Timekeeper, error) // makes a card with them
	clock    uint32                                                                                   // speed of the card's clock, relative to a simulation's
	report   func(faults int64)                                                                       // after every round

	counts faults.Counts
	frames faults.FrameCounts // of cards with Ethernet ports
	events [len(events)]atomic.Int64
	arrays atomic.Int64 // that were compared
	took   time.Duration

	mu      sync.Mutex
	began   int64 // rounds started
	ended   int64
	wrong   int64   // rounds with a wrong sum, with -damage
	failed  int64   // rounds with another error, with -damage
	reasons []error // of both
	failure error   // the first of a round, without -damage
	effects effects
}

// event is a fault that does not concern a single frame.
type event int

const (
	linkCut event = iota
	cardKilled
	rankLate
	rankKilled
	rankAway
	cableUnplugged
	packetOfBefore
)

var events = [...]string{"link cut in a frame", "card killed", "rank late", "rank killed", "rank away", "cable unplugged", "packet of an earlier set-up"}

func (c *campaign) total() int64 {
	n := c.counts.Total() + c.frames.Total()
	for i := range c.events {
		n += c.events[i].Load()
	}
	return n
}

// variable are the variables of make that choose the cards.
func (c *campaign) variable() string {
	switch {
	case c.trees:
		return fmt.Sprintf("TREES=1 PORTS=%d ", c.ethernet)
	case c.ethernet > 0:
		return fmt.Sprintf("PORTS=%d ", c.ethernet)
	}
	return ""
}

// size returns the size of the campaign's rounds.
func (c *campaign) size() size {
	if c.ethernet > 0 {
		return size{portsOnNetwork, mostOnNetwork, c.damage}
	}
	return size{ports, mostChunks, c.damage}
}

// run makes rounds until the number of faults is reached. Without -damage it stops at the first
// wrong or missing sum.
func (c *campaign) run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "soak")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	start := time.Now()
	var all sync.WaitGroup
	for range c.parallel {
		all.Go(func() {
			for {
				seed, more := c.next(ctx)
				if !more {
					return
				}
				err := c.round(seed, filepath.Join(folder, fmt.Sprint(seed))).run(ctx)
				if ctx.Err() == nil && !c.end(seed, err) {
					cancel()
				}
			}
		})
	}
	all.Wait()
	c.took = time.Since(start)
	if c.failure == nil {
		return ctx.Err()
	}
	return c.failure
}

// round makes a round; socket is a path for it alone.
func (c *campaign) round(seed uint64, socket string) interface{ run(context.Context) error } {
	if c.trees {
		return newTreeRound(c, seed)
	}
	return newRound(c, seed, socket)
}

// next returns the seed of the next round, if there is one.
func (c *campaign) next(ctx context.Context) (seed uint64, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || c.failure != nil || c.total() >= c.faults || c.rounds > 0 && c.began == c.rounds {
		return 0, false
	}
	c.began++
	return c.seed + uint64(c.began) - 1, true
}

// end records the result of a round, and reports whether more rounds may follow.
func (c *campaign) end(seed uint64, err error) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var wrong *wrongSum
	if err != nil {
		err = fmt.Errorf("round %d: %w", seed, err)
		c.reasons = append(c.reasons, err)
	}
	switch {
	case err == nil:
	case !c.damage:
		if c.failure == nil {
			c.failure = fmt.Errorf("%w\n  this round alone: make soak %sSEED=%d ROUNDS=1", err, c.variable(), seed)
		}
		return false
	case errors.As(err, &wrong):
		c.wrong++
	default:
		c.failed++
	}
	c.ended++
	c.report(c.total())
	return true
}
