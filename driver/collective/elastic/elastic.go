package elastic

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/collective"
	"tributary/driver/collective/membership"
	"tributary/driver/wire"
)

// Policy is what happens to a call that a failure interrupts. It is the same for all members.
type Policy uint8

// The policies (SPEC.md, section 7).
const (
	// Rerun runs the call again from its inputs. When members are lost, one call fails with LostError
	// on all others, and later ones go on without: a sum never lacks a contribution in silence.
	Rerun Policy = iota
	// Rest is Rerun, but the call runs again without the lost members, whose contributions its sum lacks.
	Rest
	// Fail fails the call on all members, whatever the failure.
	Fail
)

func (p Policy) String() string {
	names := [...]string{"rerun", "rest", "fail"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("policy %d", uint8(p))
}

// DefaultTTL is the time of a lease if Config has none.
const DefaultTTL = 10 * time.Second

// Self describes this member.
type Self struct {
	ID      string // unique in the group
	Address string // where it listens: tcp:HOST:PORT or unix:PATH; unique in the group
	Machine string // where it runs; may be empty
	Rack    string // which members share a card; may be empty
	// Card names the rack's card, as this member opens it: one of `tributary serve`, or any card if the
	// rack has one member. It may be away, or empty. A card is used while all members of the rack reach it.
	Card string
}

func (s *Self) member() collective.Member {
	return collective.Member{ID: s.ID, Address: s.Address, Machine: s.Machine, Rack: s.Rack}
}

// Config describes the group. All members have the same Name, Token, Expect and OnFailure.
type Config struct {
	Name      string // of the group; no slash
	Token     string // secret that proves membership
	Expect    int    // members of the first plan
	OnFailure Policy
	TTL       time.Duration       // how long this member may be silent in the engine; 0 means DefaultTTL
	Options   []collective.Option // of every generation's group
	Card      []driver.Option     // of the card
	Warn      func(text string)   // of what waits or is not used, from any goroutine; may be nil

	open   func(ctx context.Context, g collective.Group, r collective.RinaConfig, opts ...collective.Option) (collective.Collective, error)
	decide decider
}

// check returns an InputError for what is invalid, and completes the rest.
func (c *Config) check(self *Self) error {
	wrong := func(what, format string, args ...any) error {
		return &collective.InputError{What: what, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case !validName(c.Name):
		return wrong("name of the group", "it is %q; it must have 1 to %d bytes and no slash", c.Name, maxName)
	case c.Expect < 1 || c.Expect > collective.MaxMembers:
		return wrong("expected members", "they are %d; a first plan has 1 to %d", c.Expect, collective.MaxMembers)
	case c.OnFailure > Fail:
		return wrong("policy", "%s is unknown", c.OnFailure)
	case c.TTL < 0:
		return wrong("time of leases", "it is %s; it must not be negative", c.TTL)
	case !validName(self.ID):
		return wrong("ID", "it is %q; it must have 1 to %d bytes and no slash", self.ID, maxName)
	case !collective.ValidAddress(self.Address):
		return wrong("address", "it is %q; it must be tcp:HOST:PORT or unix:PATH", self.Address)
	case self.Card != "" && self.Rack == "":
		return wrong("card", "it is %s, but the member has no rack; name its rack", self.Card)
	}
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.Warn == nil {
		c.Warn = func(string) {}
	}
	if c.open == nil {
		c.open = collective.OpenRina
	}
	if c.decide == nil {
		c.decide = decide
	}
	return nil
}

// maxName is the most bytes of a name.
const maxName = 255

func validName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.Contains(s, "/")
}

// Group is this member of a group whose members come and go. Its methods may be called from several
// goroutines; calls run one at a time.
type Group struct {
	self   Self
	cfg    Config
	keeper *keeper
	card   *holder        // nil without a card
	jobs   sync.WaitGroup // their ends
	turn   chan struct{}  // capacity 1; held by a call, and guards what follows

	standing
	incarnation string
	current     *generation // nil: none
	why         error       // the last generation ended, or nil
	failures    int         // set-ups that failed, one after another
	copied      []byte      // of inputs in place
	closed      bool
}

// Join registers this member with an engine, and waits until a plan has it. The engine belongs to the caller
// and is closed after Close. Errors: collective.InputError, RefusedError, WaitError.
func Join(ctx context.Context, e membership.Engine, self Self, cfg Config) (*Group, error) {
	if err := cfg.check(&self); err != nil {
		return nil, err
	}
	g := &Group{self: self, cfg: cfg, turn: make(chan struct{}, 1), standing: beginning()}
	g.keeper = newKeeper(e, &g.cfg, self)
	g.incarnation = g.keeper.incarnation()
	if self.Card != "" {
		g.card = hold(self.Card, cfg.Card, g.keeper)
	}
	if _, err := g.planned(ctx, 1); err != nil {
		g.failed = err // it does not leave in order
		_ = g.Close(ctx)
		return nil, err
	}
	return g, nil
}

// planned waits for a plan that has this member, of a generation or later.
func (g *Group) planned(ctx context.Context, generation uint64) (plan Plan, err error) {
	err = g.keeper.wait(ctx, func(v *view) string {
		switch n := len(v.roster); {
		case v.plan.rank(g.keeper.incarnation()) >= 0 && v.plan.Generation >= generation:
			plan = v.plan
			return ""
		case v.plan.Generation == 0:
			return fmt.Sprintf("the first plan: %d of %d members are there", n, g.cfg.Expect)
		}
		return fmt.Sprintf("a plan after generation %d with %s", max(v.plan.Generation, generation-1), g.self.ID)
	})
	return plan, err
}

// Plan returns the newest plan that this member has seen. Its calls switch to it between calls.
func (g *Group) Plan() Plan { return g.keeper.plan() }

// AllReduce computes in dst the sums of all members' src, in the generation of the newest plan that all
// members have seen. The arrays are as those of collective.Collective. After a failure, the call runs again
// from its inputs or fails, as Config.OnFailure has it. A call that has completed on one member gives the
// same bits on all that live.
//
// ctx limits the call, with its waits for members and for the engine. A call that it ends fails on all members that
// have not completed it.
//
// Errors: collective.InputError, before the call begins; LostError, FailedError, EvictedError, WaitError,
// RefusedError, collective.StoppedError and ErrClosed.
func (g *Group) AllReduce(ctx context.Context, f wire.Format, dst, src []byte) error {
	if err := collective.CheckAllReduce(f, dst, src); err != nil {
		return err
	}
	if err := g.take(ctx); err != nil {
		return err
	}
	defer g.release()
	if g.closed {
		return ErrClosed
	}
	if &dst[0] == &src[0] { // it runs again from its inputs
		g.copied = append(g.copied[:0], src...)
		src = g.copied
	}
	err := g.call(ctx, f, dst, src)
	switch {
	case errors.As(err, new(*EvictedError)): // it is no call of the group
	case len(g.owed) > 0:
		return g.give().take(g.number(), f, dst, err)
	case err != nil && g.done == g.number(): // it ended here before it had an outcome; else it came before that of the call before
		if g.failed == nil {
			g.fail(err)
		}
		g.made++
	}
	return err
}

// take waits for the turn of a call.
func (g *Group) take(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}: // also when ctx has ended: Close leaves anyway
		return nil
	default:
	}
	select {
	case g.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &WaitError{g.cfg.Name, "the calls before", ctx.Err(), nil}
	}
}

func (g *Group) release() { <-g.turn }

// fail notes that the call after done failed here for good.
func (g *Group) fail(err error) {
	g.failed = err
	g.cause = failure{ID: g.self.ID, Text: err.Error()}.encode()
}

// call runs the call after made until it has an outcome, or an error of this member alone. With an outcome, the
// error is this member's own in that call, or nil.
func (g *Group) call(ctx context.Context, f wire.Format, dst, src []byte) (own error) {
	for {
		err := g.ready(ctx)
		switch {
		case len(g.owed) > 0: // also if the generation has ended since
			return own
		case err != nil:
			return err
		}
		err = g.current.c.AllReduce(ctx, f, dst, src)
		if err == nil {
			g.conclude(append(outcome{outcomeSum, byte(f)}, dst...))
			return nil
		}
		if ctx.Err() == nil && g.final(err) {
			own = err
			g.fail(err)
		}
		next := g.current.plan.Generation + 1
		g.end(err)
		switch {
		case ctx.Err() == nil:
		case errors.Is(err, ctx.Err()):
			return err
		default: // the failure came first, and the call cannot run again
			return g.because(&WaitError{g.cfg.Name, fmt.Sprintf("generation %d", next), ctx.Err(), nil})
		}
	}
}

// final reports whether an error of a call fails it for good.
func (g *Group) final(err error) bool {
	var lost *collective.LostError
	switch {
	case errors.As(err, new(*collective.DifferError)):
		return true
	case errors.As(err, &lost) && lost.Left():
		return false // it has switched to a newer plan, or closed
	}
	return g.cfg.OnFailure == Fail
}

// end ends the current generation, because of err or for a newer plan (nil).
func (g *Group) end(err error) {
	c := g.current
	g.current = nil
	if err != nil {
		g.why = err
		g.blame(c, err)
		g.keeper.need(c.plan.Generation + 1)
	}
	g.close(c, err == nil)
}

// ready brings this member into the generation of the newest plan.
func (g *Group) ready(ctx context.Context) error {
	for {
		if err := g.evict(); err != nil {
			return err
		}
		if c := g.current; c != nil {
			err := c.c.Err()
			if err == nil && g.keeper.plan().Generation == c.plan.Generation {
				return nil
			}
			g.end(err)
		}
		plan, err := g.planned(ctx, g.keeper.needs())
		if err != nil {
			return g.because(err)
		}
		if plan.rank(g.incarnation) < 0 {
			continue // evicted, and back
		}
		g.current, err = g.setUp(ctx, plan)
		if err == nil {
			g.why, g.failures = nil, 0
			return nil
		}
		if err != errNewer {
			g.why = err
			g.keeper.need(plan.Generation + 1)
			if g.failures++; g.failures%manyFailures == 0 && ctx.Err() == nil {
				g.cfg.Warn(fmt.Sprintf("group %q: %s tries again after generation %d: %v", g.cfg.Name, g.self.ID, plan.Generation, err))
			}
		}
		if ctx.Err() != nil {
			return g.because(&WaitError{g.cfg.Name, fmt.Sprintf("generation %d", plan.Generation), ctx.Err(), nil})
		}
		if err != errNewer {
			sleep(ctx, min(setUpPause<<min(g.failures, 10), probeTime))
		}
	}
}

// because adds why the last generation ended to a WaitError.
func (g *Group) because(err error) error {
	var w *WaitError
	if errors.As(err, &w) && w.Cause == nil && g.why != nil && !errors.Is(g.why, w.Err) {
		w.Cause = g.why
	}
	return err
}

// evict makes this member a newcomer if the group has gone on without it.
func (g *Group) evict() error {
	generation, first := g.keeper.wasEvicted()
	if generation > 0 {
		if g.current != nil {
			g.end(nil)
		}
		g.standing = beginning()
		g.incarnation = g.keeper.incarnation()
		return &EvictedError{g.cfg.Name, generation}
	}
	if g.fresh {
		g.since = first
	}
	return nil
}

// Close leaves the group: in order if this member has the outcome of every call that it made. It waits for
// the call under way, and, if the last generation has failed, until the others have that outcome too. When ctx
// ends first, it leaves within seconds. Other members go on without this one. Errors: WaitError, if ctx ends while
// another call is under way.
func (g *Group) Close(ctx context.Context) error {
	if err := g.take(ctx); err != nil {
		return err
	}
	defer g.release()
	if g.closed {
		return nil
	}
	g.closed = true
	if g.failed == nil && g.current != nil && g.current.c.Err() != nil { // others may need its last outcome
		_ = g.ready(ctx)
	}
	g.keeper.leave(ctx, g.failed == nil)
	if g.current != nil {
		g.end(nil)
	}
	g.jobs.Wait()
	g.card.close()
	g.keeper.release(ctx)
	return nil
}
