package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"sync"

	"tributary/driver"
	"tributary/driver/daemon"
	_ "tributary/driver/transport/serve" // sessions with the daemon
)

// Members apart: each has a session of its own with a daemon that owns the card, and an address of its own
// at the card. In path, they are behind all Ethernet ports in turn.

// isApart draws whether the members of a round are apart.
func isApart(seed uint64) bool { return rand.New(rand.NewPCG(seed, 2<<32)).IntN(2) == 0 }

// withoutDeaths returns a plan for members apart. The end of a session is another matter, which package shared
// tests: nobody dies, and sums are complete.
func (p plan) withoutDeaths() plan {
	for i := range p.tenants {
		t := &p.tenants[i]
		t.partial = false
		for _, job := range t.jobs {
			for k := range job {
				job[k].victim, job[k].away = -1, -1
			}
		}
	}
	return p
}

// share runs a daemon with the round's card. The returned function ends it.
func (r *round) share(ctx context.Context) (end func(), err error) {
	host, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", r.socket)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = daemon.New(map[string]daemon.Card{"card": host}, daemon.Options{Wait: limit}).Serve(running, listener, 0) // it closes a card that is closed
	}()
	return func() {
		stop()
		<-ended
		_ = os.Remove(r.socket)
	}, nil
}

// openSessions opens a session for each member, once.
func (t *tenant) openSessions(ctx context.Context) error {
	for len(t.sessions) < len(t.ports) {
		s, err := driver.Open(ctx, "serve:unix:"+t.socket, driver.WithTimeout(timeout))
		if err != nil {
			return err
		}
		t.sessions = append(t.sessions, s)
	}
	return nil
}

// closeSessions ends the members' sessions.
func (t *tenant) closeSessions() {
	for _, s := range t.sessions {
		_ = s.Close() // their jobs are over
	}
}

// setUpApart sets a job up through the first member's session. The others join it.
func (t *tenant) setUpApart(ctx context.Context, cfg driver.JobConfig) (err error) {
	if err := t.openSessions(ctx); err != nil {
		return err
	}
	cfg.Here = []int{0}
	if t.job, err = t.sessions[0].Configure(ctx, cfg); err != nil {
		return err
	}
	t.members = []*driver.Member{t.job.Member(0)}
	for rank := 1; rank < len(t.ports); rank++ {
		m, err := t.sessions[rank].Join(ctx, t.job.Ticket(), rank)
		if err != nil {
			return err
		}
		t.members = append(t.members, m)
	}
	return t.job.AwaitMembers(ctx)
}

// closeAll finishes the job of all members.
func (t *tenant) closeAll(ctx context.Context) error {
	var all sync.WaitGroup
	parts := t.parts()
	errs := make([]error, len(parts))
	for i, part := range parts {
		all.Go(func() { errs[i] = part.Close(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// parts returns the job as each process with members has it.
func (t *tenant) parts() []*driver.Job {
	if t.sessions == nil {
		return []*driver.Job{t.job}
	}
	var all []*driver.Job
	for _, m := range t.members {
		all = append(all, m.Job())
	}
	return all
}
