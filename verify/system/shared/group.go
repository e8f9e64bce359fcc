package main

import (
	"context"
	"fmt"
	"time"
)

// livesOfGroup is how many lives the members of a group may have in a round.
const livesOfGroup = 1000

// group is the members of one job after another.
type group struct {
	site    *site
	plan    *groupPlan
	members []*keeper // by rank
	inbox   chan report
	life    int       // number of the next one
	since   time.Time // when the job before began
}

// run runs the group's jobs.
func (g *group) run(ctx context.Context) error {
	g.since = time.Now().Add(-lateness)
	for i := range g.plan.jobs {
		a := &attempt{group: g, job: &g.plan.jobs[i], lives: map[*process]*life{}, sits: map[int]bool{}, ledger: newLedger()}
		began := time.Now()
		if err := a.run(ctx); err != nil {
			return fmt.Errorf("job %d of %+v: %w", i, *a.job, err)
		}
		g.since = began
	}
	return nil
}

// attempt is one job, from its set-up to the end of its members' lives.
type attempt struct {
	*group
	job     *jobPlan
	ticket  string
	lives   map[*process]*life // under way
	sits    map[int]bool       // by life: has its seat
	endings []ending
	returns int
	ledger  *ledger
}

const mostReturns = 5 // to a job

func (a *attempt) run(ctx context.Context) error {
	if err := a.launch(ctx, 0, false); err != nil {
		return err
	}
	for len(a.lives) > 0 {
		select {
		case r := <-a.inbox:
			if err := a.take(ctx, r); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%w; lives under way: %d", ctx.Err(), len(a.lives))
		}
	}
	return a.judge()
}

// launch begins a life of a rank.
func (a *attempt) launch(ctx context.Context, rank int, returns bool) error {
	p, err := a.members[rank].current(ctx)
	if err != nil {
		return err
	}
	l := &life{Number: a.life, Rank: rank, Job: *a.job, Ticket: a.ticket, Returns: returns}
	a.life++
	a.lives[p] = l
	a.site.log.note(p.name, "begins life %d: rank %d of %d, carry %t, partial %t, returns %t", l.Number, rank, a.job.Workers, a.job.Carry, a.job.Partial, returns)
	p.tell(order{Do: "run", Life: l})
	return nil
}

// take handles an event of a member.
func (a *attempt) take(ctx context.Context, r report) error {
	l := a.lives[r.from]
	if l == nil || r.Is != "dead" && r.Is != "dying" && r.Life != l.Number {
		return nil // of a life that is over
	}
	end := ending{rank: l.Rank, returns: l.Returns}
	switch r.Is {
	case "seated":
		a.sits[l.Number] = true
		return a.seated(ctx, r.Ticket)
	case "summed":
		a.site.campaign.countSum(r.Sum)
		return a.ledger.take(l.Number, l.Rank, r.Call, r.Sum)
	case "finished":
	case "failed":
		end.failed, end.stage, end.kind, end.ranks, end.text = true, r.Stage, r.Kind, r.Ranks, r.Text
		if r.Kind == "wrong" { // no damage is a reason
			return a.job.explain(end, a.damage())
		}
	case "dead":
		end.killed = true
	default:
		return nil
	}
	a.site.campaign.add(&a.site.campaign.table.Outages, r.Outages)
	delete(a.lives, r.from)
	a.endings = append(a.endings, end)
	if a.mayReturn(l, end) && a.returns < mostReturns {
		a.returns++
		return a.launch(ctx, l.Rank, true)
	}
	return nil
}

// mayReturn reports whether a member that was killed or evicted may take its seat again: in a job with
// partial sums, or before the job begins. The job waits for a member that was killed before it joined.
func (a *attempt) mayReturn(l *life, end ending) bool {
	if a.ticket == "" || len(a.lives) == 0 {
		return false
	}
	return end.killed && !a.sits[l.Number] || a.job.Partial && (end.killed || end.kind == "EvictedError")
}

// seated lets the other members join when the first one has made the job.
func (a *attempt) seated(ctx context.Context, ticket string) error {
	if a.ticket != "" {
		return nil
	}
	a.ticket = ticket
	for rank := 1; rank < a.job.Workers; rank++ {
		if err := a.launch(ctx, rank, false); err != nil {
			return err
		}
	}
	return nil
}

// judge checks that each failure has a reason.
func (a *attempt) judge() error {
	for _, e := range a.endings {
		err := a.job.explain(e, a.damage())
		if err != nil { // the reason may not be known yet
			for _, k := range a.site.keepers() {
				k.settle()
			}
			err = a.job.explain(e, a.damage())
		}
		if err != nil {
			return err
		}
		a.site.campaign.countEnding(a.job, e)
	}
	return nil
}

// damage returns what has happened to the job since the job before began.
func (a *attempt) damage() damage {
	d := damage{card: a.site.diedSince("card", a.since), daemon: a.site.diedSince("daemon", a.since)}
	for _, e := range a.endings {
		if e.killed {
			d.dead = append(d.dead, e.rank)
		} else {
			d.left = append(d.left, e.rank)
		}
	}
	return d
}
