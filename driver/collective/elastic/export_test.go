package elastic

import (
	"context"
	"encoding/json"
	"slices"

	"tributary/driver/collective"
	"tributary/driver/collective/membership"
	"tributary/driver/wire"
)

// The parts that tests replace or call.
type (
	Record       = record
	Step         = step
	Registration = registration
	Opening      = func(ctx context.Context, g collective.Group, r collective.RinaConfig, opts ...collective.Option) (collective.Collective, error)
)

var (
	NextPlan = nextPlan
	Decide   = decide
)

// Take ends a call with an outcome.
func Take(o []byte, call uint64, f wire.Format, dst []byte) error {
	return outcome(o).take(call, f, dst, nil)
}

// Agree lets a member that has the outcomes of some calls agree with others, and returns its last outcome.
func Agree(ctx context.Context, c collective.Collective, done uint64) ([]byte, error) {
	s := standing{since: 1, done: done, made: done}
	err := s.agree(ctx, c, &Plan{Generation: 2}, Rerun, decide)
	return s.last, err
}

// Over replaces sockets by what open returns.
func (c Config) Over(open Opening) Config { c.open = open; return c }

// By replaces the rules.
func (c Config) By(d decider) Config { c.decide = d; return c }

// Standing is where a member is in the sequence of calls.
type Standing struct {
	Number   uint64 // of the last call of the group that it has made
	Made     uint64 // calls of the group that it has made
	Newcomer bool
	Failed   bool // a call failed here that has no outcome yet
}

// Standing returns this member's. No call may run.
func (g *Group) Standing() Standing {
	return Standing{g.number(), g.made, g.newcomer, g.failed != nil}
}

// Done returns the number of the last call of which this member has the outcome. No call may run.
func (g *Group) Done() uint64 { return g.done }

// Await waits for a plan.
func (g *Group) Await(ctx context.Context, f func(p Plan) bool) error {
	return g.keeper.wait(ctx, func(v *view) string {
		if f(v.plan) {
			return ""
		}
		return "a plan for a test"
	})
}

// Weak are rules of SPEC.md, section 6, each without one of its parts.
var Weak = map[string]decider{
	"outcomes are not spread": func(rs []record, plan *Plan, policy Policy) step {
		s := decide(rs, plan, policy)
		if s.spread >= 0 {
			s = step{numbers: s.numbers, done: s.done, spread: -1, next: nextGo}
		}
		return s
	},
	"no second gather": func(rs []record, plan *Plan, policy Policy) step {
		s := decide(rs, plan, policy)
		if s.spread >= 0 {
			have := slices.Clone(rs)
			for i := range have {
				have[i].failed = have[i].failed && have[i].done == s.done
				have[i].done = s.done
			}
			from := s.spread
			s = decide(have, plan, policy)
			s.spread = from
		}
		return s
	},
	"newcomers take the newest number": func(rs []record, plan *Plan, policy Policy) step {
		all := slices.Clone(rs)
		for i := range all {
			all[i].start = ^uint64(0)
		}
		return decide(all, plan, policy)
	},
	"newcomers count as behind": func(rs []record, plan *Plan, policy Policy) step {
		all := slices.Clone(rs)
		for i := range all {
			all[i].newcomer = false
		}
		return decide(all, plan, policy)
	},
	"losses since the lowest generation": func(rs []record, plan *Plan, policy Policy) step {
		all := slices.Clone(rs)
		lowest := ^uint64(0)
		for _, r := range rs {
			lowest = min(lowest, r.since)
		}
		for i := range all {
			all[i].since = lowest
		}
		return decide(all, plan, policy)
	},
	"losses fail nothing": func(rs []record, plan *Plan, policy Policy) step {
		return decide(rs, plan, Rest)
	},
	"failures are forgotten": func(rs []record, plan *Plan, policy Policy) step {
		all := slices.Clone(rs)
		for i := range all {
			all[i].failed = false
		}
		return decide(all, plan, policy)
	},
}

// Forget makes the engine forget this member until a plan lacks it. The member does not notice until remember.
func (g *Group) Forget(ctx context.Context, e membership.Engine) (remember func(), err error) {
	g.keeper.mu.Lock()
	if _, err := e.Commit(ctx, membership.Txn{Delete: []string{g.keeper.prefix + "members/" + g.self.ID, g.keeper.prefix + "addresses/" + g.self.Address}}); err != nil {
		return nil, err
	}
	for {
		s, err := e.Get(ctx, g.keeper.prefix)
		var p Plan
		if err == nil {
			err = json.Unmarshal([]byte(s.Find(g.keeper.prefix+"plan").Value), &p)
		}
		if err != nil || p.rank(g.incarnation) < 0 {
			return g.keeper.mu.Unlock, err
		}
		if err := e.Await(ctx, g.keeper.prefix, s.Revision); err != nil {
			return nil, err
		}
	}
}

// LoseLease ends this member's lease, and waits until it has registered again. The leader does not notice.
func (g *Group) LoseLease(ctx context.Context, e membership.Engine, leader *Group) error {
	leader.keeper.mu.Lock()
	defer leader.keeper.mu.Unlock()
	name := g.keeper.prefix + "members/" + g.self.ID
	before, err := e.Get(ctx, name)
	if err != nil {
		return err
	}
	if err := g.keeper.lease.Revoke(ctx); err != nil {
		return err
	}
	for {
		s, err := e.Get(ctx, name)
		if err != nil || len(s.Keys) > 0 && s.Keys[0].Modified > before.Keys[0].Modified {
			return err
		}
		if err := e.Await(ctx, name, s.Revision); err != nil {
			return err
		}
	}
}

// Leads reports whether this member leads.
func (g *Group) Leads(ctx context.Context, e membership.Engine) (bool, error) {
	s, err := e.Get(ctx, g.keeper.prefix)
	return s.Find(g.keeper.prefix+"leader").Value == g.incarnation, err
}

// Abandon ends this member's connections, as the end of its process does. No call may run.
func (g *Group) Abandon() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g.keeper.die()
	_ = g.current.c.Close(ctx)
}
