package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tributary/driver"
	"tributary/driver/element"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// Session runs a plan on cards. Another plan can take its place (Replan): then a new epoch begins.
//
// All workers are in this process. A reduction is complete when all of them have all sums, and until then
// their inputs stay. If its epoch ends before, the whole reduction is done again by the next plan: no
// worker has seen a sum of it, so no chunk is lost or counted twice.
type Session struct {
	opts  Options
	ranks map[plan.ID]int // of all workers that were there at the beginning

	turn chan struct{} // held by a reduction, one at a time

	mu      sync.Mutex
	changed sync.Cond // signals changes of the fields below
	cards   map[plan.ID]*card
	epoch   *Epoch
	busy    bool // a reduction is in progress on the epoch
	stopped bool // no reduction begins
	err     error
}

// Epoch is the time of a plan: its trees have jobs until the next plan.
type Epoch struct {
	Number int // from 1
	Layout *Layout

	topology *topology.Topology
	forest   *driver.Forest
	trees    []*driver.Tree
	place    int // of the next chunk in the schedule
}

// Sums is the outcome of a reduction.
type Sums struct {
	Epoch *Epoch
	Place int            // of its first chunk in the epoch's schedule
	Bytes map[int][]byte // by rank, of the workers in the epoch: of each, what it got
	Again int            // how often it was begun again, because its epoch had ended
}

// New opens the cards of a plan and sets its jobs up. The plan must be right for the topology.
//
// Errors: InputError before anything is set up; those of package driver. Nothing is left then.
func New(ctx context.Context, t *topology.Topology, p *plan.Plan, o Options) (*Session, error) {
	s := &Session{opts: o.withDefaults(), ranks: Ranks(t), turn: make(chan struct{}, 1), cards: map[plan.ID]*card{}}
	s.changed.L = &s.mu
	l, err := Lay(t, p, s.ranks, o)
	if err == nil {
		err = s.begin(ctx, t, l)
	}
	if err != nil {
		return nil, errors.Join(err, s.closeCards())
	}
	return s, nil
}

// begin sets up the jobs of the next epoch.
func (s *Session) begin(ctx context.Context, t *topology.Topology, l *Layout) error {
	for i := range l.Nodes {
		if err := s.provide(ctx, &l.Nodes[i], l); err != nil {
			return fmt.Errorf("card of node %q: %w", l.Nodes[i].ID.Text, err)
		}
	}
	e := &Epoch{Number: 1, Layout: l, topology: t}
	if s.epoch != nil {
		e.Number = s.epoch.Number + 1
	}
	var trees []driver.ForestTree
	for i, tree := range l.Trees {
		var cards []driver.TreeCard
		for _, c := range tree.Cards {
			cards = append(cards, driver.TreeCard{Card: s.cards[l.Nodes[c.Node].ID].Card, Parent: c.Parent, Ranks: c.Ranks})
		}
		made, err := driver.NewTree(cards)
		if err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
		e.trees, trees = append(e.trees, made), append(trees, made)
	}
	var err error
	e.forest, err = driver.ConfigureForest(ctx, trees, driver.ForestConfig{Job: driver.JobConfig{Chunk: l.Chunk, Window: l.Window}, Schedule: l.Schedule})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch, s.stopped = e, false
	s.changed.Broadcast()
	return nil
}

// provide opens the card of a node, unless one is open that can do what the plan wants.
func (s *Session) provide(ctx context.Context, n *Node, l *Layout) error {
	s.mu.Lock()
	c := s.cards[n.ID]
	delete(s.cards, n.ID)
	s.mu.Unlock()
	if c != nil && (c.Err() != nil || !n.fits(c.Card, l)) {
		if err := c.close(); err != nil && c.Err() == nil {
			return err
		}
		c = nil
	}
	if c == nil {
		var err error
		if c, err = openCard(ctx, n, l, s.opts); err != nil {
			return err
		}
	}
	if c.made != nil {
		c.made.way.mend()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cards[n.ID] = c
	return nil
}

// Cards returns the cards that are open, by node.
func (s *Session) Cards() map[plan.ID]*driver.Card {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[plan.ID]*driver.Card{}
	for id, c := range s.cards {
		all[id] = c.Card
	}
	return all
}

// Moving reports whether another plan is being set up.
func (s *Session) Moving() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// Epoch returns the current epoch.
func (s *Session) Epoch() *Epoch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// Sum adds up arrays of the workers, by rank; all have the same length, a whole number of elements. Those
// of workers that have left count no more. before runs for each worker before its part, in a goroutine of
// its own; it may be nil. Its context ends when the reduction fails, because other workers or the epoch
// have. Reductions queue.
//
// When the epoch ends, Sum begins again in the next one. When the cards fail, it waits for a next one, up
// to Options.Timeout: then it returns the error of the cards.
func (s *Session) Sum(ctx context.Context, inputs [][]byte, before func(ctx context.Context, rank int)) (*Sums, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var failed error
	for again := 0; ; again++ {
		e, err := s.enter(ctx, failed)
		if err != nil {
			return nil, err
		}
		sums, err := e.sum(ctx, inputs, before)
		s.leave()
		if err == nil {
			sums.Again = again
			return sums, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		failed = &epochError{e, err}
	}
}

// epochError is why an epoch failed.
type epochError struct {
	epoch *Epoch
	error
}

// enter waits for an epoch that has not failed, and is not about to end.
func (s *Session) enter(ctx context.Context, failed error) (*Epoch, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := false
	wake := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		over = true
		s.changed.Broadcast()
	}
	defer context.AfterFunc(ctx, wake)()
	var last *epochError
	if errors.As(failed, &last) {
		defer time.AfterFunc(s.opts.Timeout, wake).Stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && (s.stopped || last != nil && s.epoch == last.epoch) {
		if over && !s.stopped || ctx.Err() != nil {
			if last != nil {
				return nil, last.error
			}
			return nil, ctx.Err()
		}
		s.changed.Wait()
	}
	if s.err != nil {
		return nil, s.err
	}
	s.busy = true
	return s.epoch, nil
}

// leave ends a reduction's use of its epoch.
func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.changed.Broadcast()
}

// sum makes a reduction by all workers.
func (e *Epoch) sum(ctx context.Context, inputs [][]byte, before func(ctx context.Context, rank int)) (*Sums, error) {
	sums := &Sums{Epoch: e, Place: e.place, Bytes: map[int][]byte{}}
	var workers sync.WaitGroup
	var mu sync.Mutex
	var first error
	alive, fail := context.WithCancel(ctx)
	defer fail()
	size := element.Size(e.trees[0].Info().Format)
	for _, rank := range e.trees[0].Ranks() {
		dst := make([]byte, len(inputs[rank]))
		sums.Bytes[rank] = dst
		workers.Go(func() {
			if before != nil {
				before(alive, rank)
			}
			if err := e.forest.Member(rank).AllReduceBytes(ctx, dst, inputs[rank]); err != nil {
				fail()
				mu.Lock()
				defer mu.Unlock()
				if first == nil || isEnded(first) && !isEnded(err) {
					first = err
				}
			}
		})
	}
	workers.Wait()
	if first != nil {
		return nil, first
	}
	chunk := e.Layout.Chunk * size
	e.place += (len(inputs[e.trees[0].Ranks()[0]]) + chunk - 1) / chunk
	return sums, nil
}

// isEnded reports whether an error says no more than that a job was over.
func isEnded(err error) bool {
	var ended *driver.EndedError
	return errors.As(err, &ended)
}

// Want returns what each worker has to get: the nested sums of the Go models of the cards.
func (r *Sums) Want(inputs [][]byte) ([]byte, error) {
	e := r.Epoch
	info := e.trees[0].Info()
	nested := make([]func([]uint32) uint32, len(e.trees))
	for i, t := range e.trees {
		var err error
		if nested[i], err = t.Nested(); err != nil {
			return nil, err
		}
	}
	ranks := e.trees[0].Ranks()
	x := make([]uint32, ranks[len(ranks)-1]+1)
	want := make([]byte, len(inputs[ranks[0]]))
	for i := range len(want) / element.Size(info.Format) {
		for _, rank := range ranks {
			x[rank] = element.At(info.Format, inputs[rank], i)
		}
		s := e.Layout.Schedule
		element.Put(info.Result, want, i, nested[s[(r.Place+i/e.Layout.Chunk)%len(s)]](x))
	}
	return want, nil
}

// Replan moves to a plan for what is left of the topology. Reductions that have not begun wait. With
// drain, one that is in progress ends first, unless it fails; without, its epoch ends at once, and it is
// done again by the new plan. Then the jobs of the old epoch end on all cards that can be reached, which
// frees their slots, and those of the new plan are set up.
//
// Errors: InputError, with which the old epoch goes on; others end the session.
func (s *Session) Replan(ctx context.Context, t *topology.Topology, p *plan.Plan, drain bool) error {
	l, err := Lay(t, p, s.ranks, s.opts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	old := s.epoch
	if s.err != nil || s.stopped {
		defer s.mu.Unlock()
		return cmp.Or(s.err, errors.New("another plan is being set up"))
	}
	s.stopped = true
	s.mu.Unlock()
	if !drain {
		_ = old.forest.Abort(ctx) // a card that is gone has dropped its jobs
	}
	s.idle()
	if drain {
		if err := old.forest.Close(ctx); err != nil {
			_ = old.forest.Abort(ctx)
		}
	}
	err = s.free(ctx)
	if err == nil {
		err = s.begin(ctx, t, l)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = err
		s.changed.Broadcast()
	}
	return err
}

// idle waits until no reduction uses the epoch.
func (s *Session) idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy {
		s.changed.Wait()
	}
}

// free checks that no card has a job any more. Cards that have gone are closed.
func (s *Session) free(ctx context.Context) error {
	s.mu.Lock()
	cards := maps.Clone(s.cards)
	s.mu.Unlock()
	for id, c := range cards {
		jobs, err := c.Jobs(ctx)
		if c.Err() != nil {
			_ = c.close() // it has gone
			s.mu.Lock()
			delete(s.cards, id)
			s.mu.Unlock()
			continue
		}
		if err == nil && slices.ContainsFunc(jobs, func(j driver.JobState) bool { return j.SetUp }) {
			err = errors.New("it still has a job of the plan before")
		}
		if err != nil {
			return fmt.Errorf("card of node %q: %w", id.Text, err)
		}
	}
	return nil
}

// FailLink has the packets of all streams lost that pass a link, in both directions, until the next plan.
// Only cards in this process can do that: a packet of a worker is lost at its card, with those of other
// workers that have its rank there in other trees.
func (s *Session) FailLink(a, b plan.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.epoch.Layout
	for _, t := range l.Trees {
		for _, c := range t.Cards {
			at := s.made(l, c.Node)
			for rank, path := range c.paths {
				if passes(path, a, b) && at != nil {
					at.way.cut(nil, 1<<rank)
				}
			}
			if c.Parent < 0 || !passes(c.path, a, b) {
				continue
			}
			if parent := s.made(l, t.Cards[c.Parent].Node); at != nil && parent != nil {
				parent.way.cut([]uint32{at.ip}, 0)
				at.way.cut([]uint32{parent.ip}, 0)
			}
		}
	}
}

// made returns the card of a node, if it is in this process.
func (s *Session) made(l *Layout, node int) *made {
	if c := s.cards[l.Nodes[node].ID]; c != nil {
		return c.made
	}
	return nil
}

// passes tells whether a path has a link.
func passes(path []plan.ID, a, b plan.ID) bool {
	for i := 1; i < len(path); i++ {
		if path[i-1] == a && path[i] == b || path[i-1] == b && path[i] == a {
			return true
		}
	}
	return false
}

// FailCard ends the card of a switch or server, if it is in this process, as if its power had gone.
func (s *Session) FailCard(id plan.ID) error {
	s.mu.Lock()
	c := s.cards[id]
	s.mu.Unlock()
	if c == nil || c.made == nil {
		return wrong("node %q has no card in this process", id.Text)
	}
	return c.made.end()
}

// Lost returns how many packets the cards in this process have lost, those of this epoch and of others.
func (s *Session) Lost() (packets uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.cards {
		if c.made != nil {
			packets += c.made.way.losses()
		}
	}
	return packets
}

// Close finishes the jobs and closes the cards. No reduction may be in progress.
func (s *Session) Close(ctx context.Context) error {
	s.idle()
	s.mu.Lock()
	e, err := s.epoch, s.err
	s.mu.Unlock()
	if err == nil {
		err = e.forest.Close(ctx)
	}
	return errors.Join(err, s.closeCards())
}

func (s *Session) closeCards() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []error
	for _, c := range s.cards {
		all = append(all, c.close())
	}
	clear(s.cards)
	return errors.Join(all...)
}
