package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// site is a daemon, a card and members.
type site struct {
	campaign *campaign
	folder   string
	steady   bool // its daemon lives on
	log      *journal
	card     *keeper
	daemon   *keeper
	members  [members]*keeper
	growth   growth

	mu     sync.Mutex
	deaths map[string]time.Time // the last one of a role
	err    error
	cancel context.CancelFunc
}

func newSite(ctx context.Context, c *campaign, steady bool) (*site, error) {
	folder, err := os.MkdirTemp("", "shared")
	if err != nil {
		return nil, err
	}
	s := &site{campaign: c, folder: folder, steady: steady, log: &journal{began: time.Now()}, deaths: map[string]time.Time{}}
	place := folderVariable + "=" + folder
	s.card = newKeeper(s, "card", "card", place)
	keep := keepVariable + "="
	if steady {
		keep += "1"
	}
	s.daemon = newKeeper(s, "daemon", "daemon", place, keep)
	for i := range s.members {
		s.members[i] = newKeeper(s, "member", fmt.Sprint("member ", i), place)
	}
	return s, nil
}

func (s *site) keepers() []*keeper { return append([]*keeper{s.daemon, s.card}, s.members[:]...) }

// close ends all processes.
func (s *site) close() {
	var all sync.WaitGroup
	for _, k := range s.keepers() {
		all.Go(k.close)
	}
	all.Wait()
	os.RemoveAll(s.folder)
}

// noteDeath records that a process dies now, or is dead.
func (s *site) noteDeath(role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths[role] = time.Now()
}

// diedSince reports whether a process of a role has died since a time.
func (s *site) diedSince(role string, t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deaths[role].After(t)
}

// noteEnd counts a kill. Another end of a process is a failure, unless a daemon ends after its card.
func (s *site) noteEnd(role string, e event, closing bool) {
	switch {
	case e.killed:
		s.campaign.countKill(role, e.Phase, e.usage)
	case closing:
		s.campaign.countUsage(e.usage)
	case role == "daemon" && e.status == fmt.Sprint("exit status ", goneStatus) && !s.steady:
		s.campaign.countUsage(e.usage)
	default:
		s.fail(fmt.Errorf("the %s ended by itself: %s", role, e.status))
	}
}

// fail ends the round with an error.
func (s *site) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		if s.cancel != nil {
			s.cancel()
		}
	}
}

func (s *site) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// roundLimit bounds a round: several calls and outages one after another.
const roundLimit = 5 * time.Minute

// round runs the round of a seed.
func (s *site) round(ctx context.Context, seed uint64) error {
	p := newPlan(seed)
	s.log.begin(seed)
	within, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	all := s.newGroups(&p)
	s.card.arm(p.card, nil)
	s.daemon.arm(p.daemon, nil)
	var running sync.WaitGroup
	for _, g := range all {
		running.Go(func() {
			if err := g.run(within); err != nil {
				s.fail(err)
			}
		})
	}
	pausing, stop := context.WithCancel(within)
	var pauses sync.WaitGroup
	pauses.Go(func() { s.pause(pausing, p.pauses) })
	running.Wait()
	stop()
	pauses.Wait()
	for _, k := range s.keepers() {
		k.arm(nil, nil)
	}
	err := s.failure()
	if err == nil && within.Err() == nil && s.steady {
		err = s.measure(within)
	}
	switch {
	case ctx.Err() != nil:
		return errStopped
	case err == nil && within.Err() != nil:
		err = fmt.Errorf("the round has not ended within %s: %w", roundLimit, within.Err())
	}
	return err
}

// newGroups gives the members of a round their groups.
func (s *site) newGroups(p *plan) []*group {
	var all []*group
	next := 0
	for i := range p.groups {
		g := &group{site: s, plan: &p.groups[i], inbox: make(chan report, 1<<12), life: 1 + i*livesOfGroup}
		for range p.groups[i].workers {
			k := s.members[next]
			g.members = append(g.members, k)
			k.arm(p.member[next], g.inbox)
			next++
		}
		all = append(all, g)
	}
	return all
}

// pause stops processes now and then.
func (s *site) pause(ctx context.Context, all []pause) {
	for _, p := range all {
		select {
		case <-time.After(p.after):
		case <-ctx.Done():
			return
		}
		k := append(s.members[:], s.card, s.daemon)[p.process]
		k.mu.Lock()
		process := k.process
		k.mu.Unlock()
		if process != nil {
			process.pause(p.lasts)
			s.campaign.add(&s.campaign.table.Pauses, 1)
		}
	}
}

// describe returns the journal after a failure, with the goroutines of all processes if they hang.
func (s *site) describe(err error) string {
	var all sync.WaitGroup
	for _, k := range s.keepers() {
		if errors.Is(err, context.DeadlineExceeded) {
			all.Go(k.dump)
		}
	}
	all.Wait()
	return s.log.text()
}

// growth is what a daemon that lives on needs, round after round.
type growth struct {
	Rounds int       `json:"rounds"`
	First  footprint `json:"first"` // the largest of the first rounds
	Last   footprint `json:"last"`
	Most   footprint `json:"most"`
}

// footprint is what a process needs.
type footprint struct {
	KiB         int `json:"kib"` // resident
	Descriptors int `json:"descriptors"`
	Goroutines  int `json:"goroutines"`
	Open        int `json:"open"` // sessions and jobs: none between rounds
}

const (
	warmUp      = 5                // rounds
	mostGrowth  = 16 << 10         // KiB after them
	settleLimit = 30 * time.Second // for the ends of sessions that were killed
)

// measure checks that the daemon needs no more than after the first rounds.
func (s *site) measure(ctx context.Context) error {
	g := &s.growth
	until := time.Now().Add(settleLimit)
	for {
		p, err := s.daemon.current(ctx)
		if err != nil {
			return err
		}
		now, err := footprintOf(p)
		if err != nil {
			return err
		}
		over := now.over(g.First)
		if (g.Rounds >= warmUp && over != nil || now.Open > 0) && time.Now().Before(until) {
			time.Sleep(10 * retry)
			continue
		}
		if now.Open > 0 {
			return fmt.Errorf("the daemon still has sessions or jobs, %d in all, %s after the end of a round", now.Open, settleLimit)
		}
		if g.Rounds++; g.Rounds <= warmUp {
			g.First, over = g.First.most(now), nil
		}
		g.Last, g.Most = now, g.Most.most(now)
		return over
	}
}

func (f footprint) most(o footprint) footprint {
	return footprint{max(f.KiB, o.KiB), max(f.Descriptors, o.Descriptors), max(f.Goroutines, o.Goroutines), max(f.Open, o.Open)}
}

// over returns an error if a daemon needs more than at first.
func (f footprint) over(first footprint) error {
	if f.KiB > first.KiB+mostGrowth || f.Descriptors > first.Descriptors || f.Goroutines > first.Goroutines {
		return fmt.Errorf("the daemon has grown: %+v; it had %+v", f, first)
	}
	return nil
}

// footprintOf reads what a process needs, after it has returned the memory that it does not use.
func footprintOf(p *process) (footprint, error) {
	pong, alive := p.ping()
	if !alive {
		return footprint{}, errors.New("the daemon is dead")
	}
	place := filepath.Join("/proc", fmt.Sprint(p.cmd.Process.Pid))
	open, err := os.ReadDir(filepath.Join(place, "fd"))
	if err != nil {
		return footprint{}, err
	}
	text, err := os.ReadFile(filepath.Join(place, "statm"))
	if err != nil {
		return footprint{}, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return footprint{}, fmt.Errorf("statm: %w", err)
	}
	return footprint{resident * os.Getpagesize() / 1024, len(open), pong.Goroutines, pong.Open}, nil
}
