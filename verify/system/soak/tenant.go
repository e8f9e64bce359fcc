package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/wire"
)

const (
	retry = 5 * time.Millisecond // between attempts to set up a job on an absent card

	// A virtual card stops its clock after 4,096 cycles without traffic. While a deadline may
	// have to expire, the tenant wakes the card at this interval.
	wake = 200 * time.Millisecond
)

// tenant sets up one job after another, beside the other tenants of a round. Every member reduces
// in its own goroutine.
type tenant struct {
	*round
	tenantPlan
	rng      *rand.Rand // of the inputs
	on       *driver.Card
	job      *driver.Job
	members  []*driver.Member // by rank
	sessions []*driver.Card   // of members apart, by rank; nil if they share the owner's address
	notices  *notices         // of the job
}

// notices are the calls of one job's OnOverdue.
type notices struct {
	mu  sync.Mutex
	all []driver.Overdue
}

func (n *notices) note(o driver.Overdue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, o)
}

func (n *notices) told() []driver.Overdue {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

func newTenant(r *round, p tenantPlan, i int) *tenant {
	return &tenant{round: r, tenantPlan: p, rng: rand.New(rand.NewPCG(r.seed, uint64(i)+1))}
}

// run runs the plan, after the first job is set up.
func (t *tenant) run(ctx context.Context) error {
	defer t.closeSessions()
	var evicted []int // from the job before
	for i, plan := range t.jobs {
		if i > 0 {
			if err := t.setUp(ctx); err != nil {
				return fmt.Errorf("set-up of job %d: %w", i, err)
			}
		}
		v := newVerdict(t.job.Config(), plan, t.rng)
		t.reduceAll(ctx, plan, v)
		closed := t.closeAll(ctx)
		v.evicted, v.overdue = t.job.Evicted(), t.notices.told()
		if err := v.judge(t.job.Number(), closed); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
		t.takeIn(v, evicted)
		evicted = v.gone
	}
	return nil
}

// setUp sets up a job. It opens the card again if the card went away while no job waited for it.
func (t *tenant) setUp(ctx context.Context) error {
	for {
		err := t.trySetUp(ctx)
		if err == nil || ctx.Err() != nil || !goneAway(err) {
			return err
		}
		time.Sleep(retry)
	}
}

func (t *tenant) trySetUp(ctx context.Context) error {
	host, err := t.open(ctx)
	if err != nil {
		return err
	}
	info := host.Info()
	share := info.Window / mostTenants
	for 2*share*len(t.tenants) <= info.Window {
		share *= 2
	}
	t.notices = new(notices)
	cfg := driver.JobConfig{
		Ports:          t.ports,
		Window:         max(1, share>>t.window),
		Chunk:          info.Lanes * (1 + t.chunk%(info.Chunk/info.Lanes)),
		FirstVID:       t.firstVID,
		CarryOn:        patience,
		DeadlineCycles: t.deadline * t.clock,
		Partial:        t.partial,
		OnOverdue:      t.notices.note,
	}
	t.on = host
	if t.apart {
		return t.setUpApart(ctx, cfg)
	}
	if t.job, err = host.Configure(ctx, cfg); err != nil {
		return err
	}
	t.members = nil
	for rank := range t.ports {
		t.members = append(t.members, t.job.Member(rank))
	}
	return nil
}

// reduceAll runs the reductions of all members concurrently, and records the outcomes.
func (t *tenant) reduceAll(ctx context.Context, plan []reduction, v *verdict) {
	var all sync.WaitGroup
	for rank := range t.ports {
		all.Go(func() {
			for i := range plan {
				if plan[i].away == rank {
					t.events[rankAway].Add(1)
					return
				}
				if v.outcomes[i][rank] = t.reduce(ctx, &plan[i], rank, v.inputs[i][rank]); v.outcomes[i][rank].err != nil {
					return
				}
			}
		})
	}
	if t.deadline > 0 {
		ctx, over := context.WithCancel(ctx)
		var awake sync.WaitGroup
		awake.Go(func() { t.keepAwake(ctx) })
		defer awake.Wait()
		defer over()
	}
	all.Wait()
}

// keepAwake reads a register periodically, so that the card's clock runs while all members wait.
func (t *tenant) keepAwake(ctx context.Context) {
	tick := time.NewTicker(wake)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_, _ = t.on.ReadRegister(ctx, wire.RegCycles) // the members' calls report an absent card
		case <-ctx.Done():
			return
		}
	}
}

// reduce makes one reduction of a member, in place in a copy of its input.
func (t *tenant) reduce(ctx context.Context, p *reduction, rank int, input []float32) *outcome {
	m := t.members[rank]
	if p.late == rank {
		t.events[rankLate].Add(1)
		time.Sleep(p.pause)
	}
	if p.victim == rank {
		var live func()
		ctx, live = t.mortal(ctx, t.job.Number(), p.dies)
		defer live()
	}
	o := &outcome{buffer: slices.Clone(input)}
	o.err = m.AllReduce(ctx, o.buffer)
	o.partials = m.Partials()
	if o.killed = p.victim == rank && errors.Is(o.err, context.Canceled); o.killed {
		t.events[rankKilled].Add(1)
	}
	return o
}

// takeIn adds up the results of a job; before are the members evicted from the previous job.
func (t *tenant) takeIn(v *verdict, before []int) {
	t.arrays.Add(v.arrays)
	t.campaign.mu.Lock()
	defer t.campaign.mu.Unlock()
	e := &t.effects
	for _, part := range t.parts() {
		e.addJob(part)
	}
	e.jobs++
	if len(t.tenants) > 1 {
		e.beside++
	}
	if t.apart {
		e.apart++
	}
	e.partial += v.partial
	e.evicted += int64(len(v.gone))
	e.overdue += int64(len(v.overdue))
	for _, rank := range before {
		if v.contributed>>rank&1 != 0 {
			e.back++
		}
	}
}
