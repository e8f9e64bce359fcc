package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/frame"
	"tributary/driver/transport"
	"tributary/verify/system/faults"
)

const (
	timeout  = 5 * time.Minute  // without any progress, on a busy machine
	patience = 5 * time.Minute  // for a card that is away, on a busy machine
	limit    = 10 * time.Minute // of a round
)

// round is one card with one faulty link, which its tenants share. The seed decides the faults,
// the jobs and the fates of members. It does not decide the scheduling. So two runs may differ in
// overdue chunks, in evicted members, and in the tenants' progress at a cut.
type round struct {
	*campaign
	plan
	seed uint64
	card site

	opening sync.Mutex
	host    *driver.Card // guarded by opening; nil when it is not open

	mu        sync.Mutex
	frames    int // that entered its links
	links     uint64
	restarted bool
	apart     bool   // each member has an address of its own
	socket    string // of the card or the daemon
	unshare   func() // ends the daemon
	deaths    []*death
	restarts  sync.WaitGroup
	restart   error
}

// death cancels the call of a rank after a number of frames of its job.
type death struct {
	job  int // its number
	left int // frames to go
	kill func()
}

// running holds the rounds by the card address "soak:SEED".
var running sync.Map

func init() {
	transport.Register("soak", func(ctx context.Context, to transport.Request) (transport.Conn, error) {
		r, there := running.Load(to.Address)
		if !there {
			return nil, fmt.Errorf("no round %s is running", to.Address)
		}
		return r.(*round).dial(ctx)
	})
}

func newRound(c *campaign, seed uint64, socket string) *round {
	r := &round{campaign: c, plan: newPlan(seed, c.size()), seed: seed, socket: socket, unshare: func() {}}
	if c.ethernet > 0 {
		if r.apart = isApart(seed); r.apart {
			r.plan = r.plan.withoutDeaths()
		}
		r.card = newNetwork(r)
	} else {
		r.card = &card{program: c.program, socket: socket, seed: seed}
	}
	return r
}

// dial opens a link to the card, with the next faults.
func (r *round) dial(ctx context.Context) (transport.Conn, error) {
	conn, err := r.card.(*card).dial(ctx)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rates := r.rates
	rates.Seed += r.links << 48
	r.links++
	link := faults.New(conn, rates, &r.counts)
	link.Watch = r.watch
	link.On.Store(true)
	return link, nil
}

// watch counts the frames and triggers the events planned for them.
func (r *round) watch(h *frame.Header) (cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames++
	if r.frames == r.kill {
		r.events[cardKilled].Add(1)
		r.restarted = true
		r.restarts.Go(func() { r.restart = r.card.restart() })
	}
	for _, d := range r.deaths {
		if int(h.Job) != d.job {
			continue
		}
		if d.left--; d.left < 0 {
			d.kill()
		}
	}
	if len(r.cuts) > 0 && r.frames >= r.cuts[0] {
		r.events[r.cutting()].Add(1)
		r.cuts = r.cuts[1:]
		return true
	}
	return false
}

// cutting is the event of a cut.
func (r *round) cutting() event {
	if r.ethernet > 0 {
		return cableUnplugged
	}
	return linkCut
}

// mortal returns a context that ends after a number of frames of a job, and a function that
// withdraws this.
func (r *round) mortal(ctx context.Context, job, frames int) (context.Context, func()) {
	ctx, kill := context.WithCancel(ctx)
	d := &death{job, frames, kill}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deaths = append(r.deaths, d)
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.deaths = slices.DeleteFunc(r.deaths, func(other *death) bool { return other == d })
		kill()
	}
}

// run runs every tenant's plan.
func (r *round) run(ctx context.Context) (err error) {
	if err := r.card.start(); err != nil {
		return fmt.Errorf("%w; `make soak` builds one", err)
	}
	defer func() { err = errors.Join(err, r.card.stop()) }()
	running.Store(fmt.Sprint(r.seed), r)
	defer running.Delete(fmt.Sprint(r.seed))
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = r.runShared(ctx)
	r.restarts.Wait()
	if err == nil && !r.restarted {
		err = r.card.account(ctx, func() ([]driver.Counter, error) { return r.counters(ctx) })
	}
	r.leave(ctx)
	r.unshare()
	return errors.Join(err, r.restart)
}

// counters reads the card's counters.
func (r *round) counters(ctx context.Context) ([]driver.Counter, error) {
	host, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	return host.Counters(ctx)
}

// runShared runs the tenants, beside a daemon if their members are apart.
func (r *round) runShared(ctx context.Context) error {
	if r.apart {
		end, err := r.share(ctx)
		if err != nil {
			return err
		}
		r.unshare = end
	}
	return r.runTenants(ctx)
}

// runTenants sets up the first job of each tenant in turn, so that every run of the round gives
// them the same numbers. Then all tenants run at once.
func (r *round) runTenants(ctx context.Context) error {
	all := make([]*tenant, len(r.tenants))
	for i, p := range r.tenants {
		all[i] = newTenant(r, p, i)
		if err := all[i].setUp(ctx); err != nil {
			return fmt.Errorf("tenant %d of %d: set-up: %w", i, len(all), err)
		}
	}
	return runAll(ctx, all)
}

// runAll runs tenants at once. The first failure cancels the others, whose errors it ignores.
func runAll[T interface{ run(context.Context) error }](ctx context.Context, all []T) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var under sync.WaitGroup
	var first sync.Once
	for i, t := range all {
		under.Go(func() {
			if failure := t.run(ctx); failure != nil {
				first.Do(func() { err = fmt.Errorf("tenant %d of %d: %w", i, len(all), failure) })
				cancel()
			}
		})
	}
	under.Wait()
	return err
}

// open opens the card unless it is open. Without a job that waits for it, an absent card closes
// for good.
func (r *round) open(ctx context.Context) (*driver.Card, error) {
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.host != nil && r.host.Err() == nil {
		return r.host, nil
	}
	r.leaveLocked(ctx)
	options := []driver.Option{driver.WithTimeout(timeout)}
	if r.apart {
		options = append(options, driver.WithReopen(nil))
	}
	host, err := driver.Open(ctx, r.card.name(), options...)
	if err == nil {
		r.host = host
	}
	return host, err
}

func goneAway(err error) bool {
	var died *driver.DiedError
	var none *driver.NoCardError
	var busy *driver.BusyError
	return errors.As(err, &died) || errors.As(err, &none) || errors.As(err, &busy)
}

// leave closes the card, if it is open, and adds up its counters.
func (r *round) leave(ctx context.Context) {
	r.opening.Lock()
	defer r.opening.Unlock()
	r.leaveLocked(ctx)
}

func (r *round) leaveLocked(ctx context.Context) {
	if r.host == nil {
		return
	}
	counters, err := r.host.Counters(ctx)
	_ = r.host.Close() // the link may be cut
	r.campaign.mu.Lock()
	defer r.campaign.mu.Unlock()
	if err == nil {
		r.effects.addCounters(counters)
	}
	r.effects.addLink(r.host.LinkStats())
	r.host = nil
}
