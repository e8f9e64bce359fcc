// Package grid chooses which switch sums the gradients of which workers on the way to one server, in
// the manner of GRID (IEEE/ACM Transactions on Networking, 2023): a linear relaxation, randomized
// rounding, then a repair that makes the plan feasible and improves it.
package grid

import (
	"context"
	"math/rand/v2"
	"slices"

	"tributary/driver/planner/fit"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
	"tributary/driver/planner/relax"
)

// Options are those of a search.
type Options struct {
	Seed   uint64
	Solver *highs.Solver // nil: no bound
	Limit  highs.Options // of each run of the solver

	// Gap is the share of the bound that a plan may lack before whole-number programs are solved.
	Gap float64
}

// Found is a tree with its rate, and what is known of better ones.
type Found struct {
	Tree     *network.Tree
	Rate     network.Rate
	Bound    network.Rate // no tree is faster; only with a solver
	Bounded  bool
	TimedOut bool // a time limit struck, so another run may find another tree
	Programs int  // that were solved
}

// budgets are the flows of a search at one rate: a first one, and one that starts from a rounded relaxation.
const (
	firstBudget   = 400
	roundedBudget = 60
	draws         = 6
)

// search looks for the fastest tree to a server.
type search struct {
	Options
	net    *network.Network
	server int
	fitter *fit.Fitter
	rates  []network.Rate // the largest first
	random *rand.Rand
	best   int // index of the rate of the best tree
	tree   *network.Tree
	found  Found
}

// One returns the fastest tree to a server that the search finds.
func One(ctx context.Context, n *network.Network, server int, o Options) (*Found, error) {
	s := &search{Options: o, net: n, server: server, fitter: fit.New(ctx, n, server), rates: n.Rates(), random: rand.New(rand.NewPCG(o.Seed, 1))}
	if err := s.heuristic(ctx); err != nil {
		return nil, err
	}
	if s.Solver != nil {
		bound, err := s.relax(ctx)
		if err == nil && s.gap(bound) > s.Gap {
			bound, err = s.whole(ctx, bound)
		}
		if err != nil {
			return nil, err
		}
		s.found.Bound, s.found.Bounded = s.rates[bound], true
	}
	s.found.Tree, s.found.Rate = s.tree, n.Best(s.tree)
	return &s.found, nil
}

// take keeps a tree if it is the best so far.
func (s *search) take(t *network.Tree) {
	rate := s.net.Best(t)
	at, _ := slices.BinarySearchFunc(s.rates, rate, func(a, b network.Rate) int { return b.Cmp(a) })
	if s.tree == nil || at < s.best {
		s.tree, s.best = t, at
	}
}

// gap returns the share of the bound that the best tree lacks.
func (s *search) gap(bound int) float64 { return 1 - s.rates[s.best].Float()/s.rates[bound].Float() }

// heuristic bisects the rates by the fitter alone.
func (s *search) heuristic(ctx context.Context) error {
	start := s.local()
	s.take(s.fitter.Fit(s.net.Limits(s.rates[len(s.rates)-1]), nil, 1, s.random))
	for low, high := 0, s.best; low < high; {
		middle := (low + high) / 2
		limits := s.net.Limits(s.rates[middle])
		t := s.fitter.Fit(limits, start, firstBudget, s.random)
		if t == nil {
			t = s.fitter.Fit(limits, nil, firstBudget, s.random)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if t == nil {
			low = middle + 1
			continue
		}
		s.take(t)
		high = min(middle, s.best)
	}
	return nil
}

// local returns the switches with more than one worker of their own, those with most first.
func (s *search) local() (start fit.Start) {
	for _, i := range s.fitter.Local() {
		start = append(start, network.Sum{Switch: i})
	}
	return start
}

// relax returns the index of the largest rate at which the relaxation has a solution. Rounded solutions
// improve the best tree on the way.
func (s *search) relax(ctx context.Context) (bound int, err error) {
	low, high := 0, s.best
	for low < high {
		middle := (low + high) / 2
		solution, p, err := s.solve(ctx, middle, false)
		if err != nil {
			return 0, err
		}
		switch {
		case solution.Status == highs.TimedOut || solution.Status == highs.Stopped:
			s.found.TimedOut = true
			return low, nil
		case solution.Status == highs.Infeasible:
			low = middle + 1
		default:
			s.rounded(p, solution, middle)
			high = min(middle, s.best)
		}
	}
	return low, nil
}

// solve asks whether a tree has room at a rate.
func (s *search) solve(ctx context.Context, at int, whole bool) (*highs.Solution, *relax.Program, error) {
	limits := s.net.Limits(s.rates[at])
	p := relax.New(s.net, s.server, limits, nil, whole)
	options := s.Limit
	options.First = whole
	s.found.Programs++
	solution, err := s.Solver.Solve(ctx, &p.Model, options)
	return solution, p, err
}

// rounded draws trees from a solution, at its rate.
func (s *search) rounded(p *relax.Program, solution *highs.Solution, at int) {
	limits := s.net.Limits(s.rates[at])
	for range draws {
		if t := s.fitter.Fit(limits, p.Round(solution, s.random), roundedBudget, s.random); t != nil {
			s.take(t)
			return
		}
	}
}

// whole bisects the rates between the bound and the best tree by whole-number programs. It returns the
// new bound.
func (s *search) whole(ctx context.Context, bound int) (int, error) {
	for low := bound; low < s.best; {
		middle := (low + s.best) / 2
		solution, p, err := s.solve(ctx, middle, true)
		if err != nil {
			return 0, err
		}
		if solution.Status == highs.TimedOut {
			s.found.TimedOut = true
		}
		before := s.best
		if solution.Values != nil {
			if t := s.fitter.Fit(s.net.Limits(s.rates[middle]), p.Round(solution, s.random), 1, s.random); t != nil {
				s.take(t)
			}
		}
		switch {
		case s.best < before:
		case solution.Status == highs.Infeasible && low == bound:
			bound, low = middle+1, middle+1
		default:
			low = middle + 1 // unknown: the bound stays
		}
	}
	return bound, nil
}
