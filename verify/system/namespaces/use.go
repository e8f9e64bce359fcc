//go:build linux

package main

import (
	"context"
	"errors"
)

// The hosts at the ends of the traffic.
const (
	pinging, pinged    = 0, 1
	sending, receiving = 2, 3
)

// traffic is what ping and iperf3 have found.
type traffic struct {
	pings      *pings
	throughput throughput
	err        error
}

// use sums arrays while ping and iperf3 are under way, prints what came of it, and refuses a loss.
func (s *site) use(ctx context.Context) error {
	team, err := newTeam(ctx, s.workers, "serve:"+s.socket(), s.elements)
	if err != nil {
		return err
	}
	rounds, found, err := s.sumMeanwhile(ctx, team)
	if err != nil {
		return err
	}
	counted, err := s.counters(ctx)
	if err != nil {
		return err
	}
	s.say("reductions %d of %d elements from each of %d workers: every bit as in the Go model", rounds, s.elements, hosts)
	s.print(found, counted)
	return errors.Join(counted.check(s.ports, found.pings), team.finish())
}

// sumMeanwhile repeats the reduction until ping and iperf3 have ended, and shows the progress of the pings.
func (s *site) sumMeanwhile(ctx context.Context, t *team) (rounds int, found traffic, err error) {
	bar := s.bar(s.demo.pings)
	defer bar.Finish() // clears its line
	ended := make(chan traffic, 1)
	go func() { ended <- s.disturb(ctx, func(answered int) { _ = bar.Set(min(answered, s.demo.pings)) }) }()
	for {
		rounds++
		if err := t.reduce(ctx, rounds); err != nil {
			return rounds, found, err
		}
		select {
		case found := <-ended:
			return rounds, found, found.err
		default:
		}
	}
}

// disturb pings from host 0 to host 1 as long as iperf3 sends from host 2 to host 3.
func (s *site) disturb(ctx context.Context, show func(answered int)) (t traffic) {
	pids := s.pids()
	over := make(chan struct{})
	var failed error
	go func() {
		defer close(over)
		t.throughput, failed = iperf(ctx, pids[sending], pids[receiving], s.rate)
	}()
	var err error
	t.pings, err = pingUntil(ctx, pids[pinging], s.demo.pings, over, show)
	<-over
	t.err = errors.Join(err, failed)
	return t
}

// print prints what ping, iperf3 and the card have counted.
func (s *site) print(t traffic, c counters) {
	s.say("ping       %s to %s: %s", hostIP(pinging), hostIP(pinged), t.pings)
	s.say("iperf3     %s to %s: %s", hostIP(sending), hostIP(receiving), t.throughput)
	s.say("counters   %s", c)
}
