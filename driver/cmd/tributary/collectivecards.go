package main

// The cards of tributary collective: which ranks share a job on which card.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/daemon"
	"tributary/driver/transport"
)

// cardJob is a job of some ranks on a card.
type cardJob struct {
	card  string
	rack  string // its name, with rina
	ranks []int  // of the group, in the order of their ranks in the job; the first creates it
}

// workers returns how many members the job has. With rina, the first rank has the last one too, which
// brings what comes from the ring.
func (j *cardJob) workers() int {
	if j.rack != "" {
		return len(j.ranks) + 1
	}
	return len(j.ranks)
}

// seats reports whether a card has room for the job. The group does not use a card that has not.
func (j *cardJob) seats(info driver.Info) bool {
	return collective.Fits(info, info.Format, j.workers()) == ""
}

// parseCards makes the jobs of -card, -racks and -machines.
func (s *setup) parseCards() error {
	f := s.collectiveFlags
	switch {
	case f.racks != nil && s.algorithm != collective.Rina:
		return usagef("-racks: only -algorithm rina has racks")
	case f.machines > 0 && s.algorithm != collective.Parallel:
		return usagef("-machines: only -algorithm parallel has machines")
	}
	switch s.algorithm {
	case collective.Card:
		s.jobs = []*cardJob{{}}
		for rank := range s.group.Size() {
			s.jobs[0].ranks = append(s.jobs[0].ranks, rank)
		}
	case collective.Rina:
		if err := s.parseRacks(); err != nil {
			return err
		}
	case collective.Parallel:
		if err := s.parseMachines(); err != nil {
			return err
		}
	default:
		if len(f.cards) > 0 || f.join != "" {
			return usagef("-card and -join: -algorithm %s uses no card", f.algorithm)
		}
		return nil
	}
	if s.jobs == nil {
		return nil
	}
	if err := s.checkCards(); err != nil {
		return err
	}
	for i, j := range s.jobs {
		if len(f.cards) > 0 { // else the ticket names it
			j.card = f.cards[min(i, len(f.cards)-1)]
		}
	}
	return nil
}

// parseRacks makes the racks of -racks, and a job for each.
func (s *setup) parseRacks() error {
	text := listed(s.racks)
	if s.racks == nil {
		return usagef("-racks is missing; give the number of ranks that share each card, as in 2,3")
	}
	rank := 0
	for i, n := range s.racks {
		switch {
		case n < 1:
			return usagef("-racks %s: a rack has at least one rank", text)
		case rank+n > s.group.Size():
			return usagef("-racks %s: these racks have more ranks than the group, %d", text, s.group.Size())
		}
		j := &cardJob{rack: strconv.Itoa(i)}
		for range n {
			s.group.Members[rank].Rack = j.rack
			j.ranks = append(j.ranks, rank)
			rank++
		}
		s.jobs = append(s.jobs, j)
	}
	return nil
}

// parseMachines makes the machines of -machines, and a job for each local index if there is a card.
func (s *setup) parseMachines() error {
	ranks, machines := s.group.Size(), int(s.machines)
	switch {
	case machines == 0:
		return usagef("-machines is missing; give the number of machines over which to spread the ranks")
	case ranks%machines != 0:
		return usagef("-machines %d: %s cannot be spread evenly over so many", machines, several(uint64(ranks), "rank"))
	}
	n := ranks / machines
	for rank := range ranks {
		s.group.Members[rank].Machine = strconv.Itoa(rank / n)
	}
	if len(s.cards) == 0 && s.join == "" {
		return nil
	}
	for index := range n {
		j := &cardJob{}
		for rank := index; rank < ranks; rank += n {
			j.ranks = append(j.ranks, rank)
		}
		s.jobs = append(s.jobs, j)
	}
	return nil
}

// listed returns a list as in 2,3.
func listed(list []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
}

// checkCards refuses cards or a ticket that this command cannot use.
func (s *setup) checkCards() error {
	f := s.collectiveFlags
	rina := s.algorithm == collective.Rina
	cards, jobs := several(uint64(len(f.cards)), "card"), len(s.jobs)
	switch {
	case len(f.cards) == 0 && (f.join == "" || rina):
		return usagef("-card is missing; name the card that sums, as in cpu: or serve:unix:PATH")
	case len(f.cards) <= 1 && !rina || len(f.cards) == jobs:
	case s.algorithm == collective.Card:
		return usagef("-card: -algorithm card uses one card, not %d", len(f.cards))
	case s.algorithm == collective.Parallel:
		return usagef("-card: %s for %s of a machine; name one for all, or one for each", cards, several(uint64(jobs), "rank"))
	case len(f.cards) > 1 || !inSoftware(f.cards[0]):
		return usagef("-card: %s for %s; name one for each rack, or one in software (cpu:, model:) of which each rack gets its own", cards, several(uint64(jobs), "rack"))
	}
	if f.rank < 0 {
		return nil
	}
	for _, name := range f.cards {
		if daemon.CheckCard(name) == nil { // not that of a daemon
			return usagef("-card %s: ranks that are started one by one share a card of tributary serve; name it serve: or roce:", name)
		}
	}
	j := s.ownJob()
	switch {
	case j == nil && f.join != "":
		return usagef("-join: rank %d is in no rack with a card; leave it out", f.rank)
	case j != nil && f.rank == j.ranks[0] && f.join != "":
		return usagef("-join: rank %d creates the job; leave it out", f.rank)
	case s.algorithm == collective.Card && f.rank > 0 && f.join == "":
		return noTicket(j)
	}
	return nil
}

func noTicket(j *cardJob) error {
	return usagef("-join is missing; rank %d prints the ticket", j.ranks[0])
}

// ownJob returns the job of this rank, or nil.
func (s *setup) ownJob() *cardJob {
	i := slices.IndexFunc(s.jobs, func(j *cardJob) bool { return slices.Contains(j.ranks, s.rank) })
	if i < 0 {
		return nil
	}
	return s.jobs[i]
}

// inSoftware reports whether a card is made anew for each who opens it.
func inSoftware(name string) bool {
	scheme, _, _ := strings.Cut(name, ":")
	return scheme == "cpu" || scheme == "model"
}

// runRina is one rank of a ring of racks. It asks every rack's card what it is.
func (s *setup) runRina(ctx context.Context, t *table) error {
	var cfg collective.RinaConfig
	own := s.ownJob()
	for _, j := range s.jobs {
		info, err := s.cardInfo(ctx, j.card)
		if err != nil {
			return err
		}
		cfg.Cards = append(cfg.Cards, collective.RackCard{Rack: j.rack, Info: info})
		if j == own && !j.seats(info) {
			own = nil
		}
	}
	return s.onSeat(ctx, t, own, func(seat *driver.Member) (collective.Collective, error) {
		cfg.Seat = seat
		if own != nil && s.rank == own.ranks[0] {
			cfg.Incoming = seat.Job().Member(len(own.ranks))
		}
		return collective.OpenRina(ctx, s.group, cfg, s.options()...)
	})
}

// runParallel is one rank on a machine.
func (s *setup) runParallel(ctx context.Context, t *table) error {
	own := s.ownJob()
	if own != nil && own.card != "" {
		info, err := s.cardInfo(ctx, own.card)
		if err != nil {
			return err
		}
		if !own.seats(info) {
			s.warn(fmt.Sprintf("the card is not used: %s; rings sum instead", collective.Fits(info, info.Format, own.workers())))
			own = nil
		}
	}
	return s.onSeat(ctx, t, own, func(seat *driver.Member) (collective.Collective, error) {
		return collective.OpenParallel(ctx, s.group, collective.ParallelConfig{Seat: seat}, s.options()...)
	})
}

// cardInfo returns the description of a card of tributary serve.
func (s *setup) cardInfo(ctx context.Context, name string) (info driver.Info, err error) {
	f := cardFlags{card: name, timeout: s.timeout, warn: s.warn}
	err = f.withCard(ctx, transport.Needs{}, func(card *driver.Card) error {
		info = card.Info()
		return nil
	})
	return info, err
}

// onSeat takes this rank's seat in a job, opens the group with it and measures. Without a job, the seat
// is nil.
func (s *setup) onSeat(ctx context.Context, t *table, j *cardJob, open func(seat *driver.Member) (collective.Collective, error)) error {
	if j == nil {
		c, err := open(nil)
		if err != nil {
			return err
		}
		return s.measure(ctx, c, t)
	}
	place := slices.Index(j.ranks, s.rank)
	if place > 0 && s.join == "" {
		return noTicket(j)
	}
	seat := allReduceFlags{cardFlags: cardFlags{card: j.card, timeout: s.timeout, warn: s.warn},
		workers: count(j.workers()), join: s.join, rank: place, wait: s.wait, json: s.json || s.report}
	if place == 0 && j.workers() > len(j.ranks) {
		seat.also = []int{len(j.ranks)}
	}
	return seat.withJob(ctx, t.out, func(m *driver.Member) error {
		c, err := open(m)
		if err != nil {
			return err
		}
		if err := s.measure(ctx, c, t); err != nil {
			return err
		}
		return m.Job().Close(ctx)
	})
}
