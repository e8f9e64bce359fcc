// Package relax asks by linear programs whether a tree has room, and what the cheapest one costs.
package relax

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tributary/driver/planner/fit"
	"tributary/driver/planner/highs"
	"tributary/driver/planner/network"
	"tributary/driver/planner/topology"
)

// Program is the question whether a tree has room within limits, and what it costs, as a linear program.
//
// The streams that no switch has summed yet are one commodity, the sums another. A switch that sums, to
// the share y, takes up to its limit of streams for y sums:
//
//	raw_in + workers = raw_out + taken,  taken <= limit * y
//	sum_in + y       = sum_out
//	raw + sum       <= limit of the arc
//
// With whole y and whole paths of sums, this is exact, because the raw streams are a flow of one commodity.
type Program struct {
	net    *network.Network
	server int
	Model  highs.Model
	Whole  bool        // y and the paths of sums are whole numbers
	raw    []highs.Var // by arc; -1: none
	sum    []highs.Var // by arc; -1: none
	taken  []highs.Var // by node; -1: none
	share  []highs.Var // y, by node; -1: none
}

const none = highs.Var(-1)

// New returns the program of a network within limits. A stream costs the price of what it uses,
// or one on each arc if there are no prices. With whole, y and the paths of sums are whole numbers.
func New(n *network.Network, server int, limits network.Limits, prices *fit.Prices, whole bool) *Program {
	if prices == nil {
		prices = &fit.Prices{Arcs: make([]float64, len(n.Arcs)), Nodes: make([]float64, len(n.Nodes))}
		for a := range prices.Arcs {
			prices.Arcs[a] = 1
		}
	}
	p := &Program{net: n, server: server, Whole: whole}
	workers := float64(len(n.Workers))
	supply := make([]float64, len(n.Nodes))
	apart := map[int]bool{} // arcs whose streams are the supply of the switch
	for _, w := range n.Workers {
		home, access := n.Home(w)
		for _, a := range access {
			apart[a] = true
		}
		supply[home]++
	}
	for a, arc := range n.Arcs {
		raw, sum := none, none
		if most := limits.Arcs[a]; most > 0 && !apart[a] {
			price := prices.Arcs[a]
			if arc.To == server {
				price += prices.Nodes[server]
			}
			raw = p.Model.Add(fmt.Sprint("r", a), math.Min(float64(most), workers), price, false)
			if n.Nodes[arc.From].Kind == topology.Switch {
				sum = p.Model.Add(fmt.Sprint("s", a), math.Min(float64(most), workers), price, whole)
			}
			if float64(most) < 2*workers && sum != none {
				p.Model.Limit(fmt.Sprint("arc", a), []highs.Term{{Var: raw, By: 1}, {Var: sum, By: 1}}, "<=", float64(most))
			}
		}
		p.raw, p.sum = append(p.raw, raw), append(p.sum, sum)
	}
	p.taken, p.share = make([]highs.Var, len(n.Nodes)), make([]highs.Var, len(n.Nodes))
	for i, node := range n.Nodes {
		p.taken[i], p.share[i] = none, none
		if most := math.Min(float64(limits.Nodes[i]), workers); node.Kind == topology.Switch && node.Ports > 0 && most > 0 {
			p.taken[i] = p.Model.Add(fmt.Sprint("t", i), most, prices.Nodes[i], false)
			p.share[i] = p.Model.Add(fmt.Sprint("y", i), 1, 0, whole)
			p.Model.Limit(fmt.Sprint("use", i), []highs.Term{{Var: p.taken[i], By: 1}, {Var: p.share[i], By: -most}}, "<=", 0)
		}
	}
	p.balance(supply)
	var arrivals []highs.Term
	for a, arc := range n.Arcs {
		if arc.To == server {
			arrivals = append(arrivals, terms(p.raw[a], 1)...)
			arrivals = append(arrivals, terms(p.sum[a], 1)...)
		}
	}
	if most := float64(limits.Nodes[server]); most < 2*workers && len(arrivals) > 0 {
		p.Model.Limit("server", arrivals, "<=", most)
	}
	return p
}

// terms returns a term, or none for no variable.
func terms(v highs.Var, by float64) []highs.Term {
	if v == none {
		return nil
	}
	return []highs.Term{{Var: v, By: by}}
}

// balance adds the constraints of what enters and leaves each switch and worker.
func (p *Program) balance(supply []float64) {
	raw, sum := make([][]highs.Term, len(p.net.Nodes)), make([][]highs.Term, len(p.net.Nodes))
	for a, arc := range p.net.Arcs {
		raw[arc.From] = append(raw[arc.From], terms(p.raw[a], 1)...)
		raw[arc.To] = append(raw[arc.To], terms(p.raw[a], -1)...)
		sum[arc.From] = append(sum[arc.From], terms(p.sum[a], 1)...)
		sum[arc.To] = append(sum[arc.To], terms(p.sum[a], -1)...)
	}
	for i, node := range p.net.Nodes {
		switch node.Kind {
		case topology.Server:
			if i != p.server {
				for _, t := range append(raw[i], sum[i]...) {
					p.Model.Limit(fmt.Sprintf("other%d_%d", i, t.Var), []highs.Term{{Var: t.Var, By: 1}}, "<=", 0)
				}
			}
			continue
		case topology.Switch:
			raw[i] = append(raw[i], terms(p.taken[i], 1)...)
			sum[i] = append(sum[i], terms(p.share[i], -1)...)
		}
		if len(raw[i]) > 0 || supply[i] > 0 {
			p.Model.Limit(fmt.Sprint("raw", i), p.some(raw[i]), "=", supply[i])
		}
		if len(sum[i]) > 0 {
			p.Model.Limit(fmt.Sprint("sum", i), sum[i], "=", 0)
		}
	}
}

// some returns the terms, or one that is 0: the LP format has no empty constraints.
func (p *Program) some(t []highs.Term) []highs.Term {
	if len(t) == 0 {
		return []highs.Term{{Var: p.Model.Add(fmt.Sprint("zero", p.Model.Size()), 0, 0, false), By: 1}}
	}
	return t
}

// Round draws summing switches by their shares, and the paths of their sums by the flow of sums.
func (p *Program) Round(s *highs.Solution, random *rand.Rand) (start fit.Start) {
	left := make([]float64, len(p.net.Arcs))
	for a, v := range p.sum {
		if v != none {
			left[a] = s.Value(v)
		}
	}
	for i, v := range p.share {
		if v == none || s.Value(v) < 1e-6 || random.Float64() > s.Value(v)+1e-6 {
			continue
		}
		start = append(start, network.Sum{Switch: i, To: p.server, Path: p.draw(i, left, random)})
	}
	return start
}

// Within returns the limits that a solution leaves when nothing else may be used: of each arc and switch,
// the streams that the solution has there, rounded up. A tree within them costs no more than a solution in
// whole numbers.
func (p *Program) Within(s *highs.Solution, limits network.Limits) network.Limits {
	l := network.Limits{Arcs: slices.Clone(limits.Arcs), Nodes: slices.Clone(limits.Nodes)}
	streams := func(vars ...highs.Var) int64 {
		x := 0.0
		for _, v := range vars {
			if v != none {
				x += s.Value(v)
			}
		}
		return int64(math.Ceil(x - 1e-6))
	}
	for a, raw := range p.raw {
		if raw != none {
			l.Arcs[a] = streams(raw, p.sum[a])
		}
	}
	for i, taken := range p.taken {
		if taken != none {
			l.Nodes[i] = streams(taken)
		}
	}
	return l
}

// draw walks from a switch to the server by the flow of sums, and uses up what it takes of it.
func (p *Program) draw(at int, left []float64, random *rand.Rand) (path network.Path) {
	seen := map[int]bool{at: true}
	for at != p.server {
		total := 0.0
		for _, a := range p.net.Out[at] {
			if !seen[p.net.Arcs[a].To] {
				total += left[a]
			}
		}
		if total < 1e-6 {
			return nil
		}
		x, next := random.Float64()*total, -1
		for _, a := range p.net.Out[at] {
			if !seen[p.net.Arcs[a].To] && left[a] > 0 {
				next = a
				if x -= left[a]; x < 0 {
					break
				}
			}
		}
		left[next] = math.Max(0, left[next]-1)
		path = append(path, next)
		at = p.net.Arcs[next].To
		seen[at] = true
	}
	return path
}
