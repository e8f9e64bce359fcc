// Package columns finds several trees that are fast together, to one server or to several.
//
// The rates of given trees are a linear program. Its prices say what a unit of each capacity is worth,
// and a tree that pays less than 1 for its streams would make the whole faster (Dantzig and Wolfe's
// column generation, 1960). The prices also bound all plans: no set of trees, however large, is faster
// than the capacities' worth divided by the price of the cheapest tree.
package columns

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"

	"tributary/driver/planner/fit"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
	"tributary/driver/planner/pack"
	"tributary/driver/planner/relax"
	"tributary/driver/planner/topology"
)

// Options are those of a search.
type Options struct {
	Servers []int
	Most    int           // trees to a server in the result
	Solver  *highs.Solver // nil: no bound
	Limit   highs.Options // of each run of the solver

	// Whole asks for the cheapest tree itself even in large networks. The bound is then the optimum of
	// any number of trees, if the limits allow. Otherwise large networks take the relaxation.
	Whole bool
}

// small is the number of arcs up to which the cheapest tree itself is asked for.
const small = 1000

// Found is a set of trees with their rates.
type Found struct {
	Trees    []*network.Tree
	Rates    []*big.Rat // in units
	Total    *big.Rat
	Bound    *big.Rat // no set of trees is faster; nil: unknown
	TimedOut bool
	Programs int
}

// rounds is the most trees that a search adds, and programs the most that the solver is asked for without
// Whole.
const (
	rounds   = 200
	programs = 30
)

// Search starts from trees, and adds others.
func Search(ctx context.Context, n *network.Network, first []*network.Tree, o Options) (*Found, error) {
	s := &search{Options: o, net: n, trees: slices.Clone(first)}
	s.loads = s.loadsOf(s.trees)
	for range rounds {
		s.pack()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		added := s.cheap(ctx)
		if !added && s.Solver != nil && (s.Whole || s.found.Programs < programs) {
			var err error
			if added, err = s.program(ctx); err != nil {
				return nil, err
			}
		}
		if !added {
			break
		}
	}
	return s.result(ctx)
}

// Choose gives trees their rates, and keeps at most that many to each server. There is no bound.
func Choose(ctx context.Context, n *network.Network, trees []*network.Tree, most int) (*Found, error) {
	s := &search{Options: Options{Most: most}, net: n, trees: slices.Clone(trees)}
	s.loads = s.loadsOf(s.trees)
	s.pack()
	return s.result(ctx)
}

func (s *search) result(ctx context.Context) (*Found, error) {
	if err := s.choose(ctx); err != nil {
		return nil, err
	}
	s.found.Trees, s.found.Rates, s.found.Total = s.trees, s.rates, s.total
	return &s.found, nil
}

type search struct {
	Options
	net    *network.Network
	trees  []*network.Tree
	loads  []network.Load
	rates  []*big.Rat
	total  *big.Rat
	exact  []*big.Rat // prices, by capacity
	prices fit.Prices
	found  Found
}

func (s *search) loadsOf(trees []*network.Tree) (loads []network.Load) {
	for _, t := range trees {
		loads = append(loads, s.net.Load(t))
	}
	return loads
}

// pack gives the trees their rates, and everything its price.
func (s *search) pack() {
	var prices []*big.Rat
	s.rates, prices = Rates(s.net, s.loads)
	s.total = new(big.Rat)
	for _, r := range s.rates {
		s.total.Add(s.total, r)
	}
	s.exact = prices
	arcs := len(s.net.Arcs)
	s.prices = fit.Prices{Arcs: make([]float64, arcs), Nodes: make([]float64, len(s.net.Nodes))}
	for i, p := range prices {
		price, _ := p.Float64()
		if i < arcs {
			s.prices.Arcs[i] = price
		} else {
			s.prices.Nodes[i-arcs] = price
		}
	}
}

// Rates gives trees with these loads the rates whose sum is largest, in units. It returns the prices of
// arcs, then of nodes.
func Rates(n *network.Network, loads []network.Load) (rates, prices []*big.Rat) {
	var rows []pack.Row
	n.Capacities(func(capacity int64, streams func(network.Load) int64) {
		r := pack.Row{Capacity: new(big.Rat).SetInt64(capacity), Streams: make([]int64, len(loads))}
		if capacity != network.Unlimited {
			for i, l := range loads {
				r.Streams[i] = streams(l)
			}
		}
		rows = append(rows, r)
	})
	return pack.Rates(len(loads), rows)
}

// cheap adds the tree of each server that pays least, as far as a search finds ones that pay less than 1.
func (s *search) cheap(ctx context.Context) (added bool) {
	for _, server := range s.Servers {
		t, _ := fit.Cheap(ctx, s.net, server, s.prices)
		added = s.add(t) || added
	}
	return added
}

// add adds a tree if it pays less than 1.
func (s *search) add(t *network.Tree) bool {
	load := s.net.Load(t)
	paid := new(big.Rat)
	pay := func(streams int64, price *big.Rat) {
		if streams > 0 && price.Sign() > 0 {
			paid.Add(paid, new(big.Rat).Mul(big.NewRat(streams, 1), price))
		}
	}
	for a, streams := range load.Arcs {
		pay(streams, s.exact[a])
	}
	for i, streams := range load.Nodes {
		pay(streams, s.exact[len(load.Arcs)+i])
	}
	if paid.Cmp(big.NewRat(1, 1)) >= 0 {
		return false
	}
	s.trees, s.loads = append(s.trees, t), append(s.loads, load)
	return true
}

// program asks the solver for the cheapest tree of each server. What they pay bounds all plans.
func (s *search) program(ctx context.Context) (added bool, err error) {
	least := 1.0
	known := true
	limits := s.ports()
	for _, server := range s.Servers {
		p, solution, err := s.cheapest(ctx, server, limits)
		if err != nil {
			return false, err
		}
		if solution.Status != highs.Optimal {
			known = false
			continue
		}
		least = min(least, solution.Cost+s.access())
		if p.Whole {
			start := p.Round(solution, rand.New(rand.NewPCG(0, 0)))
			if t := fit.New(ctx, s.net, server).Fit(p.Within(solution, limits), start, 1, nil); t != nil {
				added = s.add(t) || added
			}
		}
	}
	switch {
	case !known:
	case least < 1-1e-7:
		s.bound(roundUp(new(big.Rat).Quo(s.total, new(big.Rat).SetFloat64(least))))
	case !added:
		s.bound(s.total)
	}
	return added, nil
}

// bound keeps a bound if it is the lowest so far. The prices of each round have one.
func (s *search) bound(b *big.Rat) {
	if s.found.Bound == nil || b.Cmp(s.found.Bound) < 0 {
		s.found.Bound = b
	}
}

// ports returns limits by the switches' ports alone: prices stand for the capacities.
func (s *search) ports() network.Limits {
	l := network.Limits{Arcs: make([]int64, len(s.net.Arcs)), Nodes: make([]int64, len(s.net.Nodes))}
	for a := range l.Arcs {
		l.Arcs[a] = network.Unlimited
	}
	for i, node := range s.net.Nodes {
		l.Nodes[i] = network.Unlimited
		if node.Kind == topology.Switch {
			l.Nodes[i] = int64(node.Ports)
		}
	}
	return l
}

// cheapest solves the program of the cheapest tree, or its relaxation where that is too dear.
func (s *search) cheapest(ctx context.Context, server int, limits network.Limits) (p *relax.Program, solution *highs.Solution, err error) {
	for _, whole := range []bool{true, false} {
		if whole && !s.Whole && len(s.net.Arcs) > small {
			continue
		}
		p = relax.New(s.net, server, limits, &s.prices, whole)
		s.found.Programs++
		if solution, err = s.Solver.Solve(ctx, &p.Model, s.Limit); err != nil {
			return nil, nil, err
		}
		if solution.Status == highs.Optimal {
			break
		}
		s.found.TimedOut = s.found.TimedOut || solution.Status == highs.TimedOut
	}
	return p, solution, nil
}

// roundUp returns the next number of millionths: more digits than the solver has mean nothing.
func roundUp(r *big.Rat) *big.Rat {
	const parts = 1e6
	scaled := new(big.Rat).Mul(r, big.NewRat(parts, 1))
	whole := new(big.Int).Quo(scaled.Num(), scaled.Denom())
	return new(big.Rat).SetFrac(whole.Add(whole, big.NewInt(1)), big.NewInt(parts))
}

// access returns what all workers pay that the programs do not have: their own rates, and the links of
// those with one.
func (s *search) access() (price float64) {
	for _, w := range s.net.Workers {
		price += s.prices.Nodes[w]
		_, access := s.net.Home(w)
		for _, a := range access {
			price += s.prices.Arcs[a]
		}
	}
	return price
}

// choose keeps at most Most trees to each server: it takes away the one that the rest miss least, one
// after the other, and then exchanges trees as long as that helps. Trees without a rate go too.
func (s *search) choose(ctx context.Context) error {
	all, loads := s.trees, s.loads
	in := make([]bool, len(all))
	for i, r := range s.rates {
		in[i] = r.Sign() > 0
	}
	total := func() *big.Rat {
		s.keep(all, loads, in)
		return s.total
	}
	for server := s.crowded(all, in); server >= 0; server = s.crowded(all, in) {
		best, at := new(big.Rat), -1
		for i := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			if in[i] && all[i].Server == server {
				in[i] = false
				if t := total(); at < 0 || t.Cmp(best) > 0 {
					best, at = t, i
				}
				in[i] = true
			}
		}
		in[at] = false
	}
	best := total()
	for improved := true; improved; {
		improved = false
		for i := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			for j := range all {
				if !in[i] || in[j] || all[i].Server != all[j].Server {
					continue
				}
				in[i], in[j] = false, true
				if t := total(); t.Cmp(best) > 0 {
					best, improved = t, true
				} else {
					in[i], in[j] = true, false
				}
			}
		}
	}
	for i, r := range s.keep(all, loads, in) {
		in[i] = in[i] && r.Sign() > 0
	}
	s.keep(all, loads, in)
	return nil
}

// crowded returns a server with more than Most trees, or -1.
func (s *search) crowded(all []*network.Tree, in []bool) int {
	count := map[int]int{}
	for i, t := range all {
		if in[i] {
			if count[t.Server]++; count[t.Server] > s.Most {
				return t.Server
			}
		}
	}
	return -1
}

// keep packs some trees. It returns the rates of all, nil for those that are not among them.
func (s *search) keep(all []*network.Tree, loads []network.Load, in []bool) []*big.Rat {
	s.trees, s.loads = nil, nil
	for i := range all {
		if in[i] {
			s.trees, s.loads = append(s.trees, all[i]), append(s.loads, loads[i])
		}
	}
	s.pack()
	rates, next := make([]*big.Rat, len(all)), 0
	for i := range all {
		if in[i] {
			rates[i] = s.rates[next]
			next++
		}
	}
	return rates
}
