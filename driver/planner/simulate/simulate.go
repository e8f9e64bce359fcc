// Package simulate runs a plan in a fluid simulation, beside other traffic (driver/planner/README.md,
// section Simulate). Rates are max-min fair and exact fractions. Nothing here knows how plans are made.
package simulate

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// Options are those of a simulation.
type Options struct {
	Bytes   int64 // of the gradients of a worker, at least 1
	Traffic Traffic

	// Replan plans for what is left of the topology after a failure. nil: chunks of trees that have
	// failed move to the others.
	Replan func(t *topology.Topology) (*plan.Plan, error)
}

// Result is what a simulation finds.
type Result struct {
	Plan    plan.Quantity  `json:"plan_rate"`
	Rate    *plan.Quantity `json:"rate,omitempty"` // Bytes over Seconds, in Gb/s
	Bytes   int64          `json:"bytes"`
	Seconds *plan.Quantity `json:"seconds,omitempty"` // until all sums have arrived; missing: never
	Why     string         `json:"why,omitempty"`     // why never
	Phases  []Phase        `json:"phases"`
}

// Phase is a time in which no rate changes.
type Phase struct {
	From   plan.Quantity   `json:"from"` // in seconds
	To     *plan.Quantity  `json:"to,omitempty"`
	Events []string        `json:"events,omitempty"` // at its beginning
	Trees  []plan.Quantity `json:"trees"`            // rates in Gb/s; 0: done, or failed
	Flows  []plan.Quantity `json:"flows"`            // 0: not there, or without a way
}

// InputError means that plan, topology and traffic do not go together.
type InputError struct{ Why string }

func (e *InputError) Error() string { return e.Why }

// Run simulates one reduction by a plan. The chunks are divided over its trees in proportion to their
// rates, and no tree is faster than the plan has it. All streams of a tree have one rate, that of the
// slowest; each is a stream like those of other traffic. When a tree is done, it needs nothing any more.
//
// Headers, and the time that a packet takes on its way, are left out.
func Run(t *topology.Topology, p *plan.Plan, o Options) (*Result, error) {
	if o.Bytes < 1 {
		return nil, &InputError{fmt.Sprintf("%d bytes; there must be 1 or more", o.Bytes)}
	}
	s := &simulation{Options: o, graph: newGraph(t), names: map[plan.ID]int{}, now: new(big.Rat)}
	for i, n := range t.Nodes {
		s.names[plan.ID(n.ID)] = i
	}
	s.capacities()
	if err := s.resolve(); err != nil {
		return nil, err
	}
	if err := s.begin(p, big.NewRat(o.Bytes*8, 1e9)); err != nil {
		return nil, err
	}
	r := &Result{Plan: p.Rate, Bytes: o.Bytes}
	if err := s.run(r); err != nil {
		return nil, err
	}
	return r, nil
}

// simulation is the state of a run.
type simulation struct {
	Options
	*graph
	names    map[plan.ID]int
	capacity []*big.Rat // of resources: ways of links, then nodes
	trees    []*tree
	flows    []*other
	failures []failure
	now      *big.Rat // seconds
}

// tree is a tree of the plan.
type tree struct {
	plan.Tree
	left   *big.Rat // Gb that have not arrived
	uses   []use
	failed bool
}

// other is a flow of other traffic.
type other struct {
	Flow
	from, to int
	given    []int // its path, if the traffic names one
}

// failure is a Failure with indices.
type failure struct {
	at   *big.Rat
	text string
	ways []way
	node int // -1: a link
}

// capacities numbers the resources. A node without a limit is none.
func (s *simulation) capacities() {
	s.capacity = make([]*big.Rat, len(s.way)+len(s.t.Nodes))
	for _, l := range s.t.Links {
		for w := range 2 {
			if r, there := s.way[way{l.Ends[w], l.Ends[1-w]}]; there {
				s.capacity[r] = l.Capacity[w]
			}
		}
	}
	for i, n := range s.t.Nodes {
		s.capacity[len(s.way)+i] = n.Rate
	}
}

// resolve finds the nodes of the traffic.
func (s *simulation) resolve() error {
	for i, f := range s.Traffic.Flows {
		from, known := s.names[f.From]
		to, also := s.names[f.To]
		if !known || !also || from == to {
			return &InputError{fmt.Sprintf("flows[%d] leads from %q to %q; both must be nodes of the topology, and not the same one", i, f.From.Text, f.To.Text)}
		}
		o := &other{Flow: f, from: from, to: to}
		if f.Path != nil {
			var err error
			if o.given, err = s.path(fmt.Sprintf("flows[%d]", i), f.Path, f.From, f.To); err != nil {
				return err
			}
		} else if s.shortest(from, to) == nil {
			return &InputError{fmt.Sprintf("flows[%d]: no path leads from %q to %q", i, f.From.Text, f.To.Text)}
		}
		s.flows = append(s.flows, o)
	}
	for i, f := range s.Traffic.Failures {
		if f.Node != nil {
			node, known := s.names[*f.Node]
			if !known {
				return &InputError{fmt.Sprintf("failures[%d]: no node has the id %q", i, f.Node.Text)}
			}
			s.failures = append(s.failures, failure{at: f.At.Rat, node: node, text: fmt.Sprintf("%s %s leaves", s.t.Nodes[node].Kind, f.Node.Text)})
			continue
		}
		a, known := s.names[f.Link[0]]
		b, also := s.names[f.Link[1]]
		if !known || !also || !s.passes(a, b) && !s.passes(b, a) {
			return &InputError{fmt.Sprintf("failures[%d]: no link joins %q and %q", i, f.Link[0].Text, f.Link[1].Text)}
		}
		s.failures = append(s.failures, failure{at: f.At.Rat, node: -1, ways: []way{{a, b}, {b, a}}, text: fmt.Sprintf("link %s to %s fails", f.Link[0].Text, f.Link[1].Text)})
	}
	slices.SortStableFunc(s.failures, func(a, b failure) int { return a.at.Cmp(b.at) })
	return nil
}

// path returns the nodes of a path.
func (s *simulation) path(here string, ids []plan.ID, from, to plan.ID) ([]int, error) {
	if len(ids) == 0 || ids[0] != from || ids[len(ids)-1] != to {
		return nil, &InputError{fmt.Sprintf("%s: its path does not lead from %q to %q", here, from.Text, to.Text)}
	}
	nodes := make([]int, len(ids))
	for i, id := range ids {
		node, known := s.names[id]
		if !known {
			return nil, &InputError{fmt.Sprintf("%s: no node has the id %q", here, id.Text)}
		}
		nodes[i] = node
		if i == 0 {
			continue
		}
		if _, there := s.way[way{nodes[i-1], node}]; !there {
			return nil, &InputError{fmt.Sprintf("%s: no link leads from %q to %q", here, ids[i-1].Text, id.Text)}
		}
	}
	return nodes, nil
}

// begin divides what is left over the trees of a plan.
func (s *simulation) begin(p *plan.Plan, left *big.Rat) error {
	s.trees = nil
	for _, t := range p.Trees {
		share := new(big.Rat).Quo(t.Rate.Rat, p.Rate.Rat)
		s.trees = append(s.trees, &tree{Tree: t, left: share.Mul(share, left)})
	}
	return s.place()
}

// place computes what trees use, without members that have left, and which trees have failed.
func (s *simulation) place() error {
	for i, t := range s.trees {
		streams := map[int]int64{}
		stream := func(id, to plan.ID, ids []plan.ID) error {
			path, err := s.path(fmt.Sprintf("tree %d, %s", i, id.Text), ids, id, to)
			if err != nil {
				return err
			}
			for n, at := range path[1:] {
				t.failed = t.failed || !s.passes(path[n], at)
				streams[s.way[way{path[n], at}]]++
			}
			streams[len(s.way)+path[len(path)-1]]++
			return nil
		}
		members := map[plan.ID]int{}
		for _, m := range t.Members {
			node, known := s.names[m.Worker]
			if !known {
				return &InputError{fmt.Sprintf("tree %d: no node has the id %q", i, m.Worker.Text)}
			}
			if s.left[node] {
				continue
			}
			members[m.To]++
			streams[len(s.way)+node]++
			if err := stream(m.Worker, m.To, m.Path); err != nil {
				return err
			}
		}
		for _, sum := range s.sums(t, members) {
			if err := stream(sum.Switch, sum.To, sum.Path); err != nil {
				return err
			}
		}
		t.uses = nil
		for r, n := range streams {
			if s.capacity[r] != nil {
				t.uses = append(t.uses, use{r, n})
			}
		}
		slices.SortFunc(t.uses, func(a, b use) int { return a.resource - b.resource })
		t.failed = t.failed || len(streams) == 0
	}
	return nil
}

// sums returns the sums of a tree to which streams still come. members has how many workers' streams come
// to each node.
func (s *simulation) sums(t *tree, members map[plan.ID]int) (sums []plan.Sum) {
	taken := make([]bool, len(t.Sums))
	for again := true; again; {
		again = false
		for i, sum := range t.Sums {
			if !taken[i] && members[sum.Switch] > 0 {
				taken[i], again = true, true
				members[sum.To]++
				sums = append(sums, sum)
			}
		}
	}
	return sums
}

// run simulates phase by phase.
func (s *simulation) run(r *Result) error {
	for {
		events, err := s.fail()
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(s.trees, func(t *tree) bool { return !t.failed }) {
			r.Why = "no tree is left: plan again"
			r.Phases = append(r.Phases, Phase{From: quantity(s.now), Events: events, Trees: zeros(len(s.trees)), Flows: zeros(len(s.flows))})
			return nil
		}
		phase := Phase{From: quantity(s.now), Events: events}
		trees, flows := s.rates()
		phase.Trees, phase.Flows = trees, flows
		lasts := s.lasts(trees)
		if lasts == nil {
			r.Phases = append(r.Phases, phase)
			r.Why = "no tree gets any capacity"
			return nil
		}
		s.now = new(big.Rat).Add(s.now, lasts)
		end := quantity(s.now)
		phase.To = &end
		r.Phases = append(r.Phases, phase)
		done := true
		for i, t := range s.trees {
			t.left = new(big.Rat).Sub(t.left, new(big.Rat).Mul(trees[i].Rat, lasts))
			done = done && t.left.Sign() == 0
		}
		if done {
			rate := quantity(new(big.Rat).Quo(big.NewRat(s.Bytes*8, 1e9), s.now))
			r.Seconds, r.Rate = &end, &rate
			return nil
		}
	}
}

// fail applies the failures of now. Chunks of trees that have failed move to the others, or all to those
// of another plan.
func (s *simulation) fail() (events []string, err error) {
	for len(s.failures) > 0 && s.failures[0].at.Cmp(s.now) <= 0 {
		f := s.failures[0]
		s.failures = s.failures[1:]
		for _, w := range f.ways {
			s.gone[w] = true
		}
		if f.node >= 0 {
			s.left[f.node] = true
		}
		events = append(events, f.text)
	}
	if events == nil {
		return nil, nil
	}
	left := new(big.Rat)
	for _, t := range s.trees {
		left.Add(left, t.left)
	}
	if s.Replan != nil {
		var p *plan.Plan
		rest, err := s.rest()
		if err == nil {
			p, err = s.Replan(rest)
		}
		if err != nil {
			return nil, fmt.Errorf("after %s: %w", strings.Join(events, " and "), err)
		}
		return append(events, fmt.Sprintf("planned again, for %s Gb/s", p.Rate.FloatString(4))), s.begin(p, left)
	}
	if err := s.place(); err != nil {
		return nil, err
	}
	s.move()
	return events, nil
}

// rest is the topology without what has failed.
func (s *simulation) rest() (*topology.Topology, error) {
	var without topology.Removed
	for i, left := range s.left {
		if left {
			without.Nodes = append(without.Nodes, s.t.Nodes[i].ID)
		}
	}
	for _, l := range s.t.Links {
		if a, b := l.Ends[0], l.Ends[1]; s.gone[way{a, b}] {
			without.Links = append(without.Links, [2]topology.ID{s.t.Nodes[a].ID, s.t.Nodes[b].ID})
		}
	}
	return s.t.Without(without)
}

// move gives the chunks of trees that have failed to the others, in proportion to their rates.
func (s *simulation) move() {
	lost, rate := new(big.Rat), new(big.Rat)
	for _, t := range s.trees {
		if t.failed {
			lost.Add(lost, t.left)
			t.left = new(big.Rat)
		} else {
			rate.Add(rate, t.Rate.Rat)
		}
	}
	for _, t := range s.trees {
		if !t.failed {
			share := new(big.Rat).Quo(t.Rate.Rat, rate)
			t.left = new(big.Rat).Add(t.left, share.Mul(share, lost))
		}
	}
}

// rates returns the rates from now on.
func (s *simulation) rates() (trees, flows []plan.Quantity) {
	trees, flows = zeros(len(s.trees)), zeros(len(s.flows))
	var all []flow
	var to []*plan.Quantity
	for i, t := range s.trees {
		if !t.failed && t.left.Sign() > 0 {
			all, to = append(all, flow{t.uses, t.Rate.Rat}), append(to, &trees[i])
		}
	}
	for i, o := range s.flows {
		if !o.runs(s.now) {
			continue
		}
		path := o.given
		if path == nil {
			path = s.shortest(o.from, o.to)
		}
		if uses := s.uses(path); uses != nil {
			f := flow{uses: uses}
			if o.Rate != nil {
				f.most = o.Rate.Rat
			}
			all, to = append(all, f), append(to, &flows[i])
		}
	}
	for i, rate := range fill(s.capacity, all) {
		*to[i] = quantity(rate)
	}
	return trees, flows
}

// runs tells whether a flow is there at a time.
func (o *other) runs(now *big.Rat) bool {
	return (o.Start == nil || o.Start.Cmp(now) <= 0) && (o.Stop == nil || o.Stop.Cmp(now) > 0)
}

// uses returns the links of a path; nil: one has failed, or there is no path.
func (s *simulation) uses(path []int) (uses []use) {
	for i := 1; i < len(path); i++ {
		if !s.passes(path[i-1], path[i]) {
			return nil
		}
		uses = append(uses, use{s.way[way{path[i-1], path[i]}], 1})
	}
	return uses
}

// lasts returns how long the rates stay: until a tree is done, or something happens. nil: for ever.
func (s *simulation) lasts(trees []plan.Quantity) (lasts *big.Rat) {
	sooner := func(after *big.Rat) {
		if after.Sign() > 0 && (lasts == nil || after.Cmp(lasts) < 0) {
			lasts = after
		}
	}
	for i, t := range s.trees {
		if trees[i].Sign() > 0 {
			sooner(new(big.Rat).Quo(t.left, trees[i].Rat))
		}
	}
	until := func(at *big.Rat) { sooner(new(big.Rat).Sub(at, s.now)) }
	for _, f := range s.failures {
		until(f.at)
	}
	for _, o := range s.flows {
		for _, at := range []*plan.Quantity{o.Start, o.Stop} {
			if at != nil {
				until(at.Rat)
			}
		}
	}
	return lasts
}

func quantity(r *big.Rat) plan.Quantity { return plan.Quantity{Rat: r} }

func zeros(n int) []plan.Quantity {
	all := make([]plan.Quantity, n)
	for i := range all {
		all[i] = quantity(new(big.Rat))
	}
	return all
}
