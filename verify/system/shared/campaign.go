package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// campaign is a series of rounds at some sites. A round's seed modulo sites is the number of its site.
type campaign struct {
	kills  int // to reach
	rounds int // limit; 0: none
	seed   uint64
	report func(kills int) // after every kill
	table  table

	mu    sync.Mutex
	began [sites]uint64 // rounds by site
}

// run runs rounds until enough processes have been killed, or one fails.
func (c *campaign) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	c.table.Seed = c.seed
	var all sync.WaitGroup
	var errs [sites]error
	for number := range uint64(sites) {
		all.Go(func() {
			if errs[number] = c.runSite(ctx, number); errs[number] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	c.table.Seconds = time.Since(began).Seconds()
	for _, err := range errs {
		if err != nil && !errors.Is(err, errStopped) {
			return err
		}
	}
	return errors.Join(errs[:]...)
}

// runSite runs the rounds of a site.
func (c *campaign) runSite(ctx context.Context, number uint64) error {
	seed, more := c.next(number)
	if !more {
		return nil
	}
	s, err := newSite(ctx, c, number == 0)
	if err != nil {
		return err
	}
	defer s.close()
	for ; more && ctx.Err() == nil; seed, more = c.next(number) {
		err := s.round(ctx, seed)
		if errors.Is(err, errStopped) {
			return err
		}
		if err != nil {
			return fmt.Errorf("%s\nround %d: %w\n  this round alone: make soak-shared SEED=%d ROUNDS=1", s.describe(err), seed, err, seed)
		}
		c.add(&c.table.Rounds, 1)
	}
	if s.steady {
		c.table.Daemon = s.growth
	}
	return nil
}

// next returns the seed of the next round of a site, if there is one.
func (c *campaign) next(number uint64) (seed uint64, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seed = c.seed + (number+sites-c.seed%sites)%sites + sites*c.began[number]
	if c.rounds > 0 && seed >= c.seed+uint64(c.rounds) || c.table.killed() >= c.kills {
		return 0, false
	}
	c.began[number]++
	return seed, true
}

func (c *campaign) add(to *int, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*to += n
}

// countKill counts a kill of a process, which has used some time of a processor.
func (c *campaign) countKill(role string, at phase, usage time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.note(role, at)
	c.table.CPU += usage.Seconds()
	c.report(c.table.killed())
}

func (c *campaign) countUsage(usage time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.CPU += usage.Seconds()
}

func (c *campaign) countSum(s *summed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.table.Sums++
	c.table.Chunks += s.Chunks
	c.table.Partial += s.Partial
}

// countEnding counts how a life ended.
func (c *campaign) countEnding(j *jobPlan, e ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how := "finished"
	switch {
	case e.killed:
		how = "killed"
	case e.failed:
		how = e.kind
	}
	c.table.end(j, how)
	if e.returns && !e.failed && !e.killed {
		c.table.Returned++
	}
}
