// Package fit finds a tree of one level within whole-number limits: which switches sum, which worker
// goes to which switch or straight to the server, and by which paths.
//
// Once the summing switches and the paths of their sums are chosen, the workers' streams are one
// commodity, because all are alike. So a maximum flow decides exactly whether they fit. The search is
// over the choice: it adds, removes and reroutes summing switches where a minimum cut shows that
// streams lack a place.
package fit

import (
	"context"
	"math/rand/v2"
	"slices"

	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// Fitter finds trees to one server, until its context ends.
type Fitter struct {
	ctx     context.Context
	net     *network.Network
	server  int
	flow    *network.Flow
	summers []int   // switches that can sum
	local   []int64 // workers with their only link to a switch, by node

	limits network.Limits
	sums   map[int]network.Path // the choice: summing switches, with the paths of their sums
	arcs   []int64              // what the sums leave of the limits
	takes  []int64
	best   int64 // streams with a place
}

// New returns a fitter. When ctx ends, it finds no more trees.
func New(ctx context.Context, n *network.Network, server int) *Fitter {
	f := &Fitter{ctx: ctx, net: n, server: server, flow: network.NewFlow(n, server), local: make([]int64, len(n.Nodes))}
	for i, node := range n.Nodes {
		if node.Kind == topology.Switch && node.Ports > 0 {
			f.summers = append(f.summers, i)
		}
	}
	for _, w := range n.Workers {
		home, _ := n.Home(w)
		f.local[home]++
	}
	return f
}

// tries is how many changes of a kind are tried before the best of them is taken.
const tries = 12

// Start is what a search begins with: switches that sum, in the order of their importance. A path of a
// sum is taken if it has room; without one, the fitter finds a path.
type Start []network.Sum

// Fit returns a tree within the limits, or nil if the search finds none. budget bounds the number of
// flows; a budget of 1 only tests the start. An ended context ends the search too.
func (f *Fitter) Fit(limits network.Limits, start Start, budget int, random *rand.Rand) *network.Tree {
	if !f.workersFit(limits) {
		return nil
	}
	f.begin(limits)
	for _, s := range start {
		if !f.addBy(s.Switch, s.Path) {
			f.add(s.Switch)
		}
	}
	f.best = f.run()
	for budget--; f.best < int64(len(f.net.Workers)); {
		if budget <= 0 || len(f.summers) == 0 || f.ctx.Err() != nil {
			return nil
		}
		budget -= f.step(random)
	}
	return f.tree()
}

// workersFit tells whether each worker can send at all.
func (f *Fitter) workersFit(l network.Limits) bool {
	for _, w := range f.net.Workers {
		if l.Nodes[w] < 1 || !slices.ContainsFunc(f.net.Out[w], func(a int) bool { return l.Arcs[a] >= 1 }) {
			return false
		}
	}
	return true
}

func (f *Fitter) begin(limits network.Limits) {
	f.limits = limits
	f.sums = map[int]network.Path{}
	f.arcs = slices.Clone(limits.Arcs)
	f.takes = make([]int64, len(limits.Nodes))
	f.takes[f.server] = limits.Nodes[f.server]
}

func (f *Fitter) run() int64 { return f.flow.Run(f.arcs, f.takes) }

// add lets a switch sum, if its sum has a path to the server.
func (f *Fitter) add(s int) bool { return f.addAvoiding(s, nil) }

// addAvoiding does so by a path that avoids arcs, if there is one.
func (f *Fitter) addAvoiding(s int, avoid map[int]bool) bool {
	if _, sums := f.sums[s]; sums || f.limits.Nodes[s] < 1 || f.takes[f.server] < 1 {
		return false
	}
	path := f.path(s, avoid)
	if path == nil {
		return false
	}
	f.restore(s, path)
	return true
}

// addBy lets a switch sum, if the path of its sum has room.
func (f *Fitter) addBy(s int, path network.Path) bool {
	if _, sums := f.sums[s]; sums || len(path) == 0 || f.limits.Nodes[s] < 1 || f.takes[f.server] < 1 {
		return false
	}
	for _, a := range path {
		if f.arcs[a] < 1 {
			return false
		}
	}
	f.restore(s, path)
	return true
}

// remove lets a switch sum no more. It returns the path of its sum.
func (f *Fitter) remove(s int) network.Path {
	path := f.sums[s]
	for _, a := range path {
		f.arcs[a]++
	}
	f.takes[f.server]++
	f.takes[s] = 0
	delete(f.sums, s)
	return path
}

// restore lets a switch sum by a path.
func (f *Fitter) restore(s int, path network.Path) {
	for _, a := range path {
		f.arcs[a]--
	}
	f.takes[f.server]--
	f.takes[s] = f.limits.Nodes[s]
	f.sums[s] = path
}

// path returns a shortest path from a switch to the server over arcs with room. Of several, it
// prefers the arcs with most room at each step.
func (f *Fitter) path(from int, avoid map[int]bool) network.Path {
	distance := make([]int, len(f.net.Nodes))
	for i := range distance {
		distance[i] = -1
	}
	distance[f.server] = 0
	queue := []int{f.server}
	for i := 0; i < len(queue) && distance[from] < 0; i++ {
		for _, a := range f.net.In[queue[i]] {
			n := f.net.Arcs[a].From
			if f.arcs[a] > 0 && !avoid[a] && distance[n] < 0 && f.net.Nodes[n].Kind == topology.Switch {
				distance[n] = distance[queue[i]] + 1
				queue = append(queue, n)
			}
		}
	}
	if distance[from] < 0 {
		return nil
	}
	path := network.Path{}
	for at := from; at != f.server; {
		next, most := -1, int64(0)
		for _, a := range f.net.Out[at] {
			if to := f.net.Arcs[a].To; f.arcs[a] > most && !avoid[a] && distance[to] == distance[at]-1 {
				next, most = a, f.arcs[a]
			}
		}
		path = append(path, next)
		at = f.net.Arcs[next].To
	}
	return path
}

// change is something that may help.
type change struct {
	remove int // a switch, or -1
	add    int // a switch, or -1
	avoid  map[int]bool
}

// step makes the best of some changes. It returns the number of flows.
func (f *Fitter) step(random *rand.Rand) (flows int) {
	if flows := f.addMany(); flows > 0 {
		return flows
	}
	for _, kind := range [][]change{f.additions(random), f.reroutes(random), f.removals(random), f.swaps(random)} {
		best, at := f.best, -1
		for i, c := range kind {
			undo, done := f.apply(c)
			if !done {
				continue
			}
			flows++
			if placed := f.run(); placed > best {
				best, at = placed, i
			}
			undo()
		}
		if at >= 0 {
			f.apply(kind[at])
			f.best = f.run()
			return flows + 1
		}
	}
	f.shake(random)
	f.best = f.run()
	return flows + 1
}

// addMany adds as many switches as lack for the streams without a place, or half of them, or a quarter,
// until that helps. It returns the number of flows; 0 if none of it helped.
func (f *Fitter) addMany() (flows int) {
	additions := f.additions(nil)
	need, room := 0, int64(0)
	for room < int64(len(f.net.Workers))-f.best && need < len(additions) {
		room += f.limits.Nodes[additions[need].add] - 1
		need++
	}
	for size := need; size > 1; size /= 2 {
		var added []int
		for _, c := range additions[:size] {
			if f.add(c.add) {
				added = append(added, c.add)
			}
		}
		flows++
		if placed := f.run(); placed > f.best {
			f.best = placed
			return flows
		}
		for _, s := range added {
			f.remove(s)
		}
	}
	if flows > 0 {
		f.run() // the cut of the choice as it is
	}
	return 0
}

// apply makes a change; undo takes it back.
func (f *Fitter) apply(c change) (undo func(), done bool) {
	var path network.Path
	if c.remove >= 0 {
		path = f.remove(c.remove)
	}
	if c.add >= 0 && !f.addAvoiding(c.add, c.avoid) {
		if c.remove >= 0 {
			f.restore(c.remove, path)
		}
		return nil, false
	}
	return func() {
		if c.add >= 0 {
			f.remove(c.add)
		}
		if c.remove >= 0 {
			f.restore(c.remove, path)
		}
	}, true
}

// some returns up to tries elements: the first ones, and some of the others. Without random, it returns all.
func some(all []change, random *rand.Rand) []change {
	if len(all) <= tries || random == nil {
		return all
	}
	rest := all[tries/2:]
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return all[:tries]
}

// additions are switches on the side of the cut where streams lack a place; those with most workers of
// their own first.
func (f *Fitter) additions(random *rand.Rand) []change {
	var at []int
	for _, s := range f.summers {
		if _, sums := f.sums[s]; !sums && f.limits.Nodes[s] > 1 && f.flow.Cut(s) {
			at = append(at, s)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int {
		return int(min(f.limits.Nodes[b], f.local[b]) - min(f.limits.Nodes[a], f.local[a]))
	})
	var all []change
	for _, s := range at {
		all = append(all, change{remove: -1, add: s})
	}
	return some(all, random)
}

// reroutes are sums whose paths leave the side of the cut; they avoid the arc where they do.
func (f *Fitter) reroutes(random *rand.Rand) []change {
	var all []change
	for _, s := range f.chosen() {
		avoid := map[int]bool{}
		for _, a := range f.sums[s] {
			if arc := f.net.Arcs[a]; f.flow.Cut(arc.From) && !f.flow.Cut(arc.To) && arc.To != f.server {
				avoid[a] = true
			}
		}
		if len(avoid) > 0 {
			all = append(all, change{remove: s, add: s, avoid: avoid})
		}
	}
	return some(all, random)
}

// removals are switches that sum few streams, the fewest first.
func (f *Fitter) removals(random *rand.Rand) []change {
	at := f.chosen()
	slices.SortStableFunc(at, func(a, b int) int { return int(f.flow.Taken(a) - f.flow.Taken(b)) })
	var all []change
	for _, s := range at {
		all = append(all, change{remove: s, add: -1})
	}
	return some(all, random)
}

// swaps replace a switch that sums by another one.
func (f *Fitter) swaps(random *rand.Rand) []change {
	at := f.chosen()
	if len(at) == 0 {
		return nil
	}
	var all []change
	for range tries {
		all = append(all, change{remove: at[random.IntN(len(at))], add: f.summers[random.IntN(len(f.summers))]})
	}
	return slices.DeleteFunc(all, func(c change) bool { return c.remove == c.add })
}

// shake removes and adds some switches, whatever that does.
func (f *Fitter) shake(random *rand.Rand) {
	for _, s := range f.chosen() {
		if random.IntN(4) == 0 {
			f.remove(s)
		}
	}
	for range 1 + len(f.sums)/4 {
		if len(f.summers) > 0 {
			f.add(f.summers[random.IntN(len(f.summers))])
		}
	}
}

// chosen returns the switches that sum, in the order of their nodes.
func (f *Fitter) chosen() (switches []int) {
	for s := range f.sums {
		switches = append(switches, s)
	}
	slices.Sort(switches)
	return switches
}

// tree returns the tree of the choice and the last flow. Switches without members are left out.
func (f *Fitter) tree() *network.Tree {
	f.run()
	t := &network.Tree{Server: f.server, Members: f.flow.Members()}
	for _, s := range f.chosen() {
		if f.flow.Taken(s) > 0 {
			t.Sums = append(t.Sums, network.Sum{Switch: s, To: f.server, Path: f.sums[s]})
		}
	}
	return t
}

// Local returns the switches that can sum and have more than one worker of their own, those with most
// first.
func (f *Fitter) Local() (switches []int) {
	for _, s := range f.summers {
		if f.local[s] > 1 {
			switches = append(switches, s)
		}
	}
	slices.SortStableFunc(switches, func(a, b int) int { return int(f.local[b] - f.local[a]) })
	return switches
}
