// Package planner decides which gradients go through which switch to which parameter server
// (README.md). A plan is trees with rates; plan has its file, check counts its loads again.
package planner

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"tributary/driver/planner/baseline"
	"tributary/driver/planner/columns"
	"tributary/driver/planner/grid"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/inart"
	"tributary/driver/planner/network"
	"tributary/driver/planner/plan"
	"tributary/driver/planner/topology"
)

// Names are the planners.
var Names = []string{"grid", "inart", "exact", "none", "nearest", "atp"}

// Options are those of a plan.
type Options struct {
	Planner string
	Trees   int // to each server, at most; 0: 1
	Seed    uint64
	Solver  *highs.Solver // nil: no bound
	Missing error         // why there is no solver, for the plan's notes
	Limit   highs.Options // of each run of the solver

	// Replan is a plan whose split over the servers stays (inart). The topology may differ from its own.
	Replan *plan.Plan
}

// InputError means that planner and topology do not go together.
type InputError struct{ Why string }

func (e *InputError) Error() string { return e.Why }

// Gap is the share of the bound that a tree may lack before whole-number programs are solved.
const Gap = 0.05

// Make plans for a topology.
func Make(ctx context.Context, t *topology.Topology, o Options) (*plan.Plan, error) {
	o.Trees = max(o.Trees, 1)
	n, err := network.New(t)
	if err != nil {
		return nil, err
	}
	if err := o.check(n); err != nil {
		return nil, err
	}
	m := &maker{Options: o, net: n}
	found, err := m.make(ctx)
	if err != nil {
		return nil, err
	}
	return m.plan(found), nil
}

// check returns why the options cannot be used for a network.
func (o *Options) check(n *network.Network) error {
	switch {
	case !slices.Contains(Names, o.Planner):
		return &InputError{fmt.Sprintf("no planner is named %q; there are %s", o.Planner, strings.Join(Names, ", "))}
	case o.Planner == "grid" && len(n.Servers) > 1:
		return &InputError{fmt.Sprintf("planner grid plans for one server, and the topology has %d; use planner inart", len(n.Servers))}
	case o.Planner == "exact" && o.Solver == nil:
		return &InputError{fmt.Sprintf("planner exact needs a solver: %v", o.Missing)}
	case o.Replan != nil && o.Planner != "inart":
		return &InputError{"only planner inart replans"}
	}
	return nil
}

// maker makes a plan.
type maker struct {
	Options
	net *network.Network
}

func (m *maker) make(ctx context.Context) (*columns.Found, error) {
	switch m.Planner {
	case "none":
		return m.each(ctx, m.none(ctx))
	case "nearest":
		return m.each(ctx, baseline.Nearest)
	case "atp":
		return m.each(ctx, baseline.ATP)
	case "inart":
		if m.Replan != nil {
			return m.replan(ctx)
		}
		return m.inart(ctx)
	}
	return m.grid(ctx)
}

// none is the way of the planner of that name: no switch sums.
func (m *maker) none(ctx context.Context) way {
	return func(n *network.Network, server int, _ bool) []*network.Tree {
		return []*network.Tree{baseline.None(ctx, n, server)}
	}
}

// inart plans for several servers. Its choice among many trees is greedy, so it may miss that no switch
// needs to sum at all.
func (m *maker) inart(ctx context.Context) (*columns.Found, error) {
	found, err := inart.Plan(ctx, m.net, inart.Options{Seed: m.Seed, Trees: m.Trees, Solver: m.Solver, Limit: m.Limit})
	if err != nil {
		return nil, err
	}
	plain, err := m.each(ctx, m.none(ctx))
	if err != nil {
		return nil, err
	}
	if plain.Total.Cmp(found.Total) > 0 {
		found.Trees, found.Rates, found.Total = plain.Trees, plain.Rates, plain.Total
	}
	return found, nil
}

// way builds trees to a server, one or several.
type way func(n *network.Network, server int, several bool) []*network.Tree

// each plans trees to each server, and splits the model by what they can do together.
func (m *maker) each(ctx context.Context, build way) (*columns.Found, error) {
	var trees []*network.Tree
	for _, server := range m.net.Servers {
		trees = append(trees, build(m.net, server, m.Trees > 1)...)
	}
	return columns.Choose(ctx, m.net, trees, m.Trees)
}

// grid plans with planner grid or exact.
func (m *maker) grid(ctx context.Context) (*columns.Found, error) {
	gap := Gap
	if m.Planner == "exact" {
		gap = 0
	}
	var first []*network.Tree
	for _, server := range m.net.Servers {
		one, err := grid.One(ctx, m.net, server, grid.Options{Seed: m.Seed, Solver: m.Solver, Limit: m.Limit, Gap: gap})
		if err != nil {
			return nil, err
		}
		if len(m.net.Servers) == 1 && m.Trees == 1 {
			f := &columns.Found{Trees: []*network.Tree{one.Tree}, Total: big.NewRat(one.Rate.Num, one.Rate.Den), TimedOut: one.TimedOut}
			f.Rates = []*big.Rat{f.Total}
			if one.Bounded {
				f.Bound = big.NewRat(one.Bound.Num, one.Bound.Den)
			}
			return f, nil
		}
		first = append(first, one.Tree)
	}
	return columns.Search(ctx, m.net, first, columns.Options{Servers: m.net.Servers, Most: m.Trees, Solver: m.Solver, Limit: m.Limit, Whole: m.Planner == "exact"})
}

// replan keeps the shares of another plan's servers.
func (m *maker) replan(ctx context.Context) (*columns.Found, error) {
	var servers []int
	var shares []*big.Rat
	all := new(big.Rat)
	for i, t := range m.Replan.Trees {
		if t.Rate.Sign() <= 0 {
			return nil, &InputError{fmt.Sprintf("tree %d of the plan has the rate %s; it must be more than 0", i, t.Rate.RatString())}
		}
		all.Add(all, t.Rate.Rat)
	}
	for _, t := range m.Replan.Trees {
		server, known := m.net.Topology.Find(topology.ID(t.Server))
		switch {
		case !known || m.net.Nodes[server].Kind != topology.Server:
			return nil, &InputError{fmt.Sprintf("the plan has a tree to %q, which is no server of the topology; make a new plan without -replan", t.Server.Text)}
		case !slices.Contains(m.net.Servers, server):
			return nil, &InputError{fmt.Sprintf("the plan has a tree to %q, which not all workers reach; make a new plan without -replan", t.Server.Text)}
		}
		servers = append(servers, server)
		shares = append(shares, new(big.Rat).Quo(t.Rate.Rat, all))
	}
	trees, total, err := inart.Reroute(ctx, m.net, servers, shares, m.Seed)
	if err != nil {
		return nil, err
	}
	f := &columns.Found{Trees: trees, Total: total}
	for _, share := range shares {
		f.Rates = append(f.Rates, new(big.Rat).Mul(share, total))
	}
	return f, nil
}

// plan formats what was found.
func (m *maker) plan(f *columns.Found) *plan.Plan {
	t := m.net.Topology
	p := &plan.Plan{Version: plan.Version, Planner: m.Planner, Seed: m.Seed, Topology: t.Name, Rate: m.quantity(f.Total), Notes: slices.Concat(t.Notes, m.net.Notes)}
	if m.Solver != nil {
		p.Solver = "HiGHS " + m.Solver.Version
	}
	if f.Bound != nil {
		bound := m.quantity(f.Bound)
		lack := new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).Quo(f.Total, f.Bound))
		gap, _ := lack.Float64()
		p.Bound, p.Gap = &bound, &gap
	} else if why := m.unbounded(); why != "" {
		p.Notes = append(p.Notes, "no bound: "+why)
	}
	if f.TimedOut {
		p.Notes = append(p.Notes, "a time limit struck, so another run may find another plan")
	}
	for i, tree := range f.Trees {
		p.Trees = append(p.Trees, m.tree(tree, f.Rates[i]))
	}
	p.Loads = m.loads(f)
	return p
}

// unbounded returns why a plan has no bound; "" for baselines, which never have one.
func (m *maker) unbounded() string {
	switch {
	case m.Planner == "none" || m.Planner == "nearest" || m.Planner == "atp":
		return ""
	case m.Replan != nil:
		return "a plan that keeps the split of another has none"
	case m.Solver != nil:
		return "HiGHS found none within -nodes and -time-limit"
	case m.Missing != nil:
		return m.Missing.Error()
	}
	return ""
}

func (m *maker) quantity(units *big.Rat) plan.Quantity {
	return plan.Quantity{Rat: new(big.Rat).Mul(units, m.net.Unit)}
}

func (m *maker) id(node int) plan.ID { return plan.ID(m.net.Topology.Nodes[node].ID) }

func (m *maker) tree(t *network.Tree, rate *big.Rat) plan.Tree {
	to := plan.Tree{Server: m.id(t.Server), Rate: m.quantity(rate), Sums: []plan.Sum{}}
	for _, member := range t.Members {
		to.Members = append(to.Members, plan.Member{Worker: m.id(member.Worker), To: m.id(member.To), Path: m.path(member.Worker, member.Path)})
	}
	for _, s := range t.Sums {
		to.Sums = append(to.Sums, plan.Sum{Switch: m.id(s.Switch), To: m.id(s.To), Path: m.path(s.Switch, s.Path)})
	}
	return to
}

func (m *maker) path(from int, p network.Path) []plan.ID {
	ids := []plan.ID{m.id(from)}
	for _, a := range p {
		ids = append(ids, m.id(m.net.Arcs[a].To))
	}
	return ids
}

// loads lists the loads of trees: of each link with one, and of all nodes.
func (m *maker) loads(f *columns.Found) plan.Loads {
	arcs, nodes := make([]*big.Rat, len(m.net.Arcs)), make([]*big.Rat, len(m.net.Nodes))
	members := make([]int, len(m.net.Nodes))
	for i, t := range f.Trees {
		load := m.net.Load(t)
		add := func(to []*big.Rat, at int, streams int64) {
			if to[at] == nil {
				to[at] = new(big.Rat)
			}
			to[at].Add(to[at], new(big.Rat).Mul(big.NewRat(streams, 1), f.Rates[i]))
		}
		for a, streams := range load.Arcs {
			add(arcs, a, streams)
		}
		for v, streams := range load.Nodes {
			add(nodes, v, streams)
			members[v] = max(members[v], int(streams))
		}
	}
	l := plan.Loads{Switches: []plan.NodeLoad{}}
	for a, load := range arcs {
		if arc := m.net.Arcs[a]; load.Sign() > 0 {
			l.Links = append(l.Links, plan.LinkLoad{From: m.id(arc.From), To: m.id(arc.To), Load: m.quantity(load), Capacity: m.quantity(new(big.Rat).SetInt64(arc.Capacity))})
		}
	}
	for v, load := range nodes {
		node := plan.NodeLoad{Node: m.id(v), Load: m.quantity(load)}
		if rate := m.net.Topology.Nodes[v].Rate; rate != nil {
			node.Capacity = &plan.Quantity{Rat: rate}
		}
		switch m.net.Nodes[v].Kind {
		case topology.Server:
			l.Servers = append(l.Servers, node)
		case topology.Worker:
			l.Workers = append(l.Workers, node)
		case topology.Switch:
			if load.Sign() > 0 {
				node.Members, node.Ports = members[v], m.net.Nodes[v].Ports
				l.Switches = append(l.Switches, node)
			}
		}
	}
	return l
}
