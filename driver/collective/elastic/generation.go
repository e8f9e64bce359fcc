package elastic

// One generation of this member: its group, and its seats at the rack's card (SPEC.md, section 5).

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tributary/driver"
	"tributary/driver/collective"
)

// Times of a generation.
const (
	leaveTime  = 5 * time.Second      // for the end of a group in order
	finishTime = 2 * time.Second      // for the end of a card's job in order
	setUpPause = 2 * time.Millisecond // after the first set-up that failed; then twice as long
	joinTime   = time.Hour            // that a job waits for its members, which is what a daemon allows
)

// manyFailures is the number of set-ups that fail, one after another, before each warning.
const manyFailures = 8

// generation is a plan that this member takes part in.
type generation struct {
	plan Plan
	c    collective.Collective
	card *driver.Card // whose job it uses, or nil
	job  *driver.Job
}

// setUp takes part in a plan until all members are ready, and agrees with them.
func (m *Group) setUp(ctx context.Context, plan Plan) (*generation, error) {
	g := &generation{plan: plan}
	newer := func(p *Plan) bool { return p.Generation > plan.Generation }
	err := m.unless(ctx, newer, func(ctx context.Context) error { return m.enter(ctx, g) })
	if err == nil {
		// Others may have agreed already, and call. So a newer plan ends this only if a member is gone.
		err = m.unless(ctx, g.lacksOne, func(ctx context.Context) error {
			return m.standing.agree(ctx, g.c, &g.plan, m.cfg.OnFailure, m.cfg.decide)
		})
	}
	if err != nil {
		m.blame(g, err)
		m.close(g, false)
		return nil, err
	}
	return g, nil
}

// unless runs f, and ends it with errNewer if the newest plan is one that over reports.
func (m *Group) unless(ctx context.Context, over func(p *Plan) bool, f func(ctx context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if m.keeper.sees(ctx, over) {
			stop(errNewer)
		}
	}()
	err := f(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errNewer) {
		err = errNewer
	}
	stop(nil)
	<-watched
	return err
}

// lacksOne reports whether a plan lacks a member of the generation.
func (g *generation) lacksOne(p *Plan) bool {
	return slices.ContainsFunc(g.plan.Members, func(m Member) bool { return p.rank(m.Incarnation) < 0 })
}

// errNewer ends a set-up: there is a newer plan.
var errNewer = errors.New("a newer plan")

// enter listens in a generation until all members do.
func (m *Group) enter(ctx context.Context, g *generation) error {
	own := g.plan.rank(m.incarnation)
	rack := g.plan.Members[own].Rack
	group := collective.Group{Name: m.cfg.Name, Generation: g.plan.Generation, Rank: own, Token: m.cfg.Token}
	for _, member := range g.plan.Members {
		group.Members = append(group.Members, member.Member)
	}
	rina := collective.RinaConfig{Cards: g.plan.Cards}
	if info := g.plan.Card(rack); info != nil {
		if err := m.sit(ctx, g, own, *info, &rina); err != nil {
			return err
		}
	}
	c, err := m.cfg.open(ctx, group, rina, append([]collective.Option{collective.WithWarnings(m.cfg.Warn)}, m.cfg.Options...)...)
	if err != nil {
		return err
	}
	g.c = c
	m.keeper.change(func(r *registration) { r.Ready = g.plan.Generation })
	return m.keeper.wait(ctx, g.missing)
}

// missing returns which members are not ready.
func (g *generation) missing(v *view) string {
	var ids []string
	for _, member := range g.plan.Members {
		if r := v.roster[member.ID]; r.Incarnation != member.Incarnation || r.Ready != g.plan.Generation {
			ids = append(ids, member.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("%s to make the call in generation %d", list(ids), g.plan.Generation)
}

// list returns IDs for messages.
func list(ids []string) string {
	const most = 5
	if len(ids) > most {
		return fmt.Sprintf("%s and %d more", list(ids[:most-1]), len(ids)-most+1)
	}
	return strings.Join(ids, ", ")
}

// sit takes this member's seats of the job of its rack's card, if the card can be used.
func (m *Group) sit(ctx context.Context, g *generation, own int, info driver.Info, rina *collective.RinaConfig) error {
	ranks := g.plan.Rack(m.self.Rack)
	n := len(ranks)
	if collective.Fits(info, info.Format, n+1) != "" {
		return nil // no call uses it
	}
	g.card = m.card.current()
	if g.card == nil {
		return fmt.Errorf("the card of rack %s is not reached", m.self.Rack)
	}
	if ranks[0] != own {
		return m.join(ctx, g, slices.Index(ranks, own), &rina.Seat)
	}
	cfg := driver.JobConfig{Workers: n + 1, Wait: joinTime, Queue: true}
	if n > 1 {
		cfg.Here = []int{0, n}
	}
	job, err := g.card.Configure(ctx, cfg)
	if err != nil {
		return &collective.CardError{Rank: own, Err: err}
	}
	g.job = job
	rina.Seat, rina.Incoming = job.Member(0), job.Member(n)
	if n > 1 && job.Ticket() == "" {
		return &collective.CardError{Rank: own, Err: fmt.Errorf("card %s: its rack has %d members, and it is not shared among processes; share it by `tributary serve`", g.card.Info().Name, n)}
	}
	m.keeper.change(func(r *registration) { r.Job, r.Ticket = g.plan.Generation, job.Ticket() })
	return nil
}

// join takes a seat of the agent's job.
func (m *Group) join(ctx context.Context, g *generation, place int, seat **driver.Member) error {
	agent := g.plan.Members[g.plan.Rack(m.self.Rack)[0]]
	var ticket string
	err := m.keeper.wait(ctx, func(v *view) string {
		r := v.roster[agent.ID]
		if r.Incarnation != agent.Incarnation || r.Job != g.plan.Generation {
			return fmt.Sprintf("%s, the agent of rack %s, to make the call in generation %d", agent.ID, agent.Rack, g.plan.Generation)
		}
		ticket = r.Ticket
		return ""
	})
	if err != nil {
		return err
	}
	member, err := g.card.Join(ctx, ticket, place)
	if err != nil {
		return &collective.CardError{Rank: g.plan.rank(m.incarnation), Err: err}
	}
	g.job, *seat = member.Job(), member
	return nil
}

// blame reports the card if an error is its fault.
func (m *Group) blame(g *generation, err error) {
	var failed *collective.CardError
	if errors.As(err, &failed) && g.card != nil && !innocent(failed.Err) {
		m.card.blame(g.card, failed.Err)
	}
}

// close ends a generation. In order means that this member has finished its calls.
func (m *Group) close(g *generation, inOrder bool) {
	if g.c != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
		if !inOrder {
			cancel()
		}
		_ = g.c.Close(ctx) // others may be late, or gone
		cancel()
	}
	if g.job == nil {
		return
	}
	m.jobs.Go(func() { // the others may still read their last sums
		ctx, cancel := context.WithTimeout(context.Background(), finishTime)
		defer cancel()
		if !inOrder || g.job.Close(ctx) != nil {
			_ = g.job.Abort(ctx)
		}
	})
}
