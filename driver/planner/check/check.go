// Package check counts the loads of a plan again, and compares them with the topology's capacities and
// with what the plan lists. It shares no code with the planners.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"

	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// Plan returns everything that is wrong with a plan for a topology; none: it is right.
func Plan(t *topology.Topology, p *plan.Plan) []string {
	c := &checker{t: t, p: p, nodes: map[plan.ID]int{}, capacity: map[way]*big.Rat{}, links: map[way]*big.Rat{}, load: map[int]*big.Rat{}, members: map[int]int{}}
	for i, n := range t.Nodes {
		c.nodes[plan.ID(n.ID)] = i
	}
	for _, l := range t.Links {
		for w := range 2 {
			c.capacity[way{l.Ends[w], l.Ends[1-w]}] = l.Capacity[w]
		}
	}
	total := new(big.Rat)
	for i := range p.Trees {
		c.tree(i)
		total.Add(total, p.Trees[i].Rate.Rat)
	}
	if total.Cmp(p.Rate.Rat) != 0 {
		c.wrong("the rates of its trees add up to %s, not to its rate of %s", total.RatString(), p.Rate.RatString())
	}
	if len(c.found) == 0 {
		c.capacities()
		c.listed()
		c.bound()
	}
	return c.found
}

// bound compares the bound and the gap with the rate.
func (c *checker) bound() {
	bound, gap := c.p.Bound, c.p.Gap
	switch {
	case bound == nil && gap == nil:
		return
	case bound == nil || gap == nil:
		c.wrong("it has one of bound and gap without the other")
		return
	case bound.Cmp(c.p.Rate.Rat) < 0:
		c.wrong("its rate of %s exceeds its bound of %s", c.p.Rate.RatString(), bound.RatString())
		return
	}
	lack, _ := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(c.p.Rate.Rat, bound.Rat)).Float64()
	if math.Abs(lack-*gap) > 1e-9 {
		c.wrong("it has the gap %g, and its rate lacks %g of its bound", *gap, lack)
	}
}

// way is one way of a link.
type way struct{ from, to int }

type checker struct {
	t        *topology.Topology
	p        *plan.Plan
	nodes    map[plan.ID]int
	capacity map[way]*big.Rat
	links    map[way]*big.Rat // loads
	load     map[int]*big.Rat // of nodes
	members  map[int]int      // of switches: the most in a tree
	found    []string
}

func (c *checker) wrong(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// tree checks the form of a tree, and adds its loads.
func (c *checker) tree(number int) {
	t := &c.p.Trees[number]
	here := fmt.Sprintf("tree %d", number)
	if t.Rate.Sign() <= 0 {
		c.wrong("%s has the rate %s; it must be more than 0", here, t.Rate.RatString())
	}
	server, known := c.nodes[t.Server]
	if !known || c.t.Nodes[server].Kind != topology.Server {
		c.wrong("%s leads to %q, which is no server of the topology", here, t.Server.Text)
		return
	}
	next := map[int]int{} // of summing switches
	for _, s := range t.Sums {
		from, known := c.nodes[s.Switch]
		if !known || c.t.Nodes[from].Kind != topology.Switch {
			c.wrong("%s: %q sums, and is no switch of the topology", here, s.Switch.Text)
			return
		}
		if _, twice := next[from]; twice {
			c.wrong("%s: switch %q has two sums", here, s.Switch.Text)
		}
		next[from] = c.nodes[s.To]
	}
	counts := map[int]int{}
	sent := map[int]bool{}
	for _, m := range t.Members {
		from, known := c.nodes[m.Worker]
		if !known || c.t.Nodes[from].Kind != topology.Worker {
			c.wrong("%s: %q is no worker of the topology", here, m.Worker.Text)
			continue
		}
		if sent[from] {
			c.wrong("%s has worker %q twice", here, m.Worker.Text)
		}
		sent[from] = true
		c.add(c.load, from, t.Rate.Rat)
		c.stream(here+", worker "+m.Worker.Text, m.Path, from, m.To, server, next, counts, t.Rate.Rat)
	}
	for _, w := range c.t.Of(topology.Worker) {
		if !sent[w] {
			c.wrong("%s lacks worker %q", here, c.t.Nodes[w].ID.Text)
		}
	}
	for _, s := range t.Sums {
		c.stream(here+", switch "+s.Switch.Text, s.Path, c.nodes[s.Switch], s.To, server, next, counts, t.Rate.Rat)
	}
	for _, from := range slices.Sorted(maps.Keys(next)) {
		if counts[from] == 0 {
			c.wrong("%s: switch %q sums nothing", here, c.t.Nodes[from].ID.Text)
		}
		at, steps := from, 0
		for at != server && steps <= len(next) {
			at, steps = next[at], steps+1
		}
		if at != server {
			c.wrong("%s: the sum of switch %q goes round in a circle", here, c.t.Nodes[from].ID.Text)
		}
	}
	for node, count := range counts {
		c.members[node] = max(c.members[node], count)
	}
}

// stream follows a path, and adds its loads.
func (c *checker) stream(here string, path []plan.ID, from int, to plan.ID, server int, next, counts map[int]int, rate *big.Rat) {
	end, known := c.nodes[to]
	if _, sums := next[end]; !known || end != server && !sums {
		c.wrong("%s goes to %q, which is neither the tree's server nor a switch that sums", here, to.Text)
		return
	}
	if len(path) < 1 || path[0] != plan.ID(c.t.Nodes[from].ID) || path[len(path)-1] != to {
		c.wrong("%s: its path does not lead from it to %q", here, to.Text)
		return
	}
	passed := map[plan.ID]bool{}
	for _, node := range path {
		if passed[node] {
			c.wrong("%s: its path passes %q twice", here, node.Text)
			return
		}
		passed[node] = true
	}
	for i := 1; i < len(path); i++ {
		a, b := c.nodes[path[i-1]], c.nodes[path[i]]
		_, there := c.nodes[path[i]]
		step := way{a, b}
		capacity, linked := c.capacity[step]
		switch {
		case !there || !linked || capacity.Sign() == 0:
			c.wrong("%s: no link leads from %q to %q", here, path[i-1].Text, path[i].Text)
			return
		case i < len(path)-1 && c.t.Nodes[b].Kind != topology.Switch:
			c.wrong("%s: %q forwards nothing", here, path[i].Text)
		}
		if c.links[step] == nil {
			c.links[step] = new(big.Rat)
		}
		c.links[step].Add(c.links[step], rate)
	}
	counts[end]++
	c.add(c.load, end, rate)
}

func (c *checker) add(loads map[int]*big.Rat, node int, rate *big.Rat) {
	if loads[node] == nil {
		loads[node] = new(big.Rat)
	}
	loads[node].Add(loads[node], rate)
}

// capacities compares loads with the topology's capacities.
func (c *checker) capacities() {
	for _, l := range c.t.Links {
		for w := range 2 {
			step := way{l.Ends[w], l.Ends[1-w]}
			if load := c.links[step]; load != nil && load.Cmp(l.Capacity[w]) > 0 {
				c.wrong("the link from %q to %q has the load %s and the capacity %s", c.t.Nodes[step.from].ID.Text, c.t.Nodes[step.to].ID.Text, load.RatString(), l.Capacity[w].RatString())
			}
		}
	}
	for i, n := range c.t.Nodes {
		if load := c.load[i]; load != nil && n.Rate != nil && load.Cmp(n.Rate) > 0 {
			c.wrong("%s %q has the load %s and the rate %s", n.Kind, n.ID.Text, load.RatString(), n.Rate.RatString())
		}
		if n.Kind == topology.Switch && c.members[i] > n.Ports {
			c.wrong("switch %q sums %d streams of a tree and has %d ports", n.ID.Text, c.members[i], n.Ports)
		}
	}
}

// listed compares loads and capacities with those that the plan lists.
func (c *checker) listed() {
	seen := map[way]bool{}
	for _, l := range c.p.Loads.Links {
		step := way{c.nodes[l.From], c.nodes[l.To]}
		capacity := c.capacity[step]
		_, from := c.nodes[l.From]
		_, to := c.nodes[l.To]
		if !from || !to || capacity == nil || seen[step] {
			c.wrong("it lists a link from %q to %q that the topology does not have, or lists it twice", l.From.Text, l.To.Text)
			continue
		}
		seen[step] = true
		c.same(fmt.Sprintf("the link from %q to %q", l.From.Text, l.To.Text), l.Load, c.links[step], &l.Capacity, capacity)
	}
	for _, step := range slices.SortedFunc(maps.Keys(c.links), func(a, b way) int { return cmp.Or(a.from-b.from, a.to-b.to) }) {
		if !seen[step] {
			c.wrong("it lists no load of the link from %q to %q", c.t.Nodes[step.from].ID.Text, c.t.Nodes[step.to].ID.Text)
		}
	}
	named := map[int]bool{}
	for kind, nodes := range [][]plan.NodeLoad{topology.Switch: c.p.Loads.Switches, topology.Worker: c.p.Loads.Workers, topology.Server: c.p.Loads.Servers} {
		kind := topology.Kind(kind)
		for _, n := range nodes {
			at, known := c.nodes[n.Node]
			if !known || c.t.Nodes[at].Kind != kind || named[at] {
				c.wrong("it lists a %s %q that the topology does not have, or lists it twice", kind, n.Node.Text)
				continue
			}
			named[at] = true
			c.same(fmt.Sprintf("%s %q", kind, n.Node.Text), n.Load, c.load[at], n.Capacity, c.t.Nodes[at].Rate)
			if kind == topology.Switch && (n.Members != c.members[at] || n.Ports != c.t.Nodes[at].Ports) {
				c.wrong("it lists %d members and %d ports of switch %q, which has %d and %d", n.Members, n.Ports, n.Node.Text, c.members[at], c.t.Nodes[at].Ports)
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(c.load)) {
		if !named[at] {
			c.wrong("it lists no load of %q", c.t.Nodes[at].ID.Text)
		}
	}
}

// same compares a listed load and capacity with the counted ones; nil is 0, and no limit.
func (c *checker) same(what string, load plan.Quantity, counted *big.Rat, capacity *plan.Quantity, real *big.Rat) {
	if counted == nil {
		counted = new(big.Rat)
	}
	if load.Cmp(counted) != 0 {
		c.wrong("it lists the load %s of %s, which has %s", load.RatString(), what, counted.RatString())
	}
	switch {
	case (capacity == nil) != (real == nil):
		c.wrong("it lists another capacity of %s than the topology", what)
	case capacity != nil && capacity.Cmp(real) != 0:
		c.wrong("it lists the capacity %s of %s, which has %s", capacity.RatString(), what, real.RatString())
	}
}
