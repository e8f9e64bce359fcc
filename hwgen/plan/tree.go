package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// tree adds neighbours pairwise, level by level; an odd one out passes up
// unchanged, as late as the sums beside it. Each node rounds.
var tree = Sum{
	Name: wire.SumTree.String(),
	Code: wire.SumTree,
	Doc: "Neighbouring ports pair up level by level, an odd one out passes up unchanged; every node rounds to " +
		"nearest, ties to even. The same bits whatever the order of arrival.",
	bound: func(*Plan) string {
		return "Every node is off by at most half a last place of its own sum."
	},
	lane: treeLane,
}

// nodeLatency is the latency of one addition, in cycles.
const nodeLatency = 4

// branch is a value on its way through the tree.
type branch struct {
	net         string
	first, last int // the workers in it
}

// String names the workers in a branch, as comments print them.
func (b branch) String() string {
	switch b.last - b.first {
	case 0:
		return fmt.Sprintf("worker %d", b.first)
	case 1:
		return fmt.Sprintf("workers %d, %d", b.first, b.last)
	}
	return fmt.Sprintf("workers %d..%d", b.first, b.last)
}

// treeLane builds the adder tree of one lane.
func treeLane(p *Plan) Lane {
	m := netlist.New("agg_lane", "")
	m.Input("clk", 1)
	var level []branch
	for w := range p.Workers {
		x := fmt.Sprintf("x_p%d", w)
		m.Input(x, p.ElemBits)
		level = append(level, branch{x, w, w})
	}
	m.Output("y", p.ResultBits)
	m.Output("over", 1)
	m.Assign("over", "1'b0")

	latency := 0
	if p.Workers == 1 {
		latency = 1
		m.Instance("agg_fp32_canon", "u_l0_n0", level[0].String()).Connect("clk", "clk").Connect("a", "x_p0").Connect("y", "y")
	}
	for n := 0; len(level) > 1; n++ {
		latency += nodeLatency
		level = treeLevel(p, m, n, level, latency)
	}
	m.Doc = fmt.Sprintf(`The adder tree of one lane: y is the sum of x_p0..x_p%d, %d cycles later; a new sum
every cycle. Neighbours pair up level by level, an odd one out passes up unchanged.
It knows no valid, no slot and no absent worker: whoever drives it delays its tags
by as many cycles, and gives it -0 for a worker that is absent.`, p.Workers-1, latency)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency}
}

// treeLevel adds one level of nodes above the given branches and returns what
// leaves it, latency cycles after the tree's inputs.
func treeLevel(p *Plan, m *netlist.Module, n int, below []branch, latency int) []branch {
	m.Comment(fmt.Sprintf("Level %d: %d to %d, valid %d cycles after the inputs.", n, len(below), (len(below)+1)/2, latency))
	var above []branch
	for i := 0; i < len(below); i += 2 {
		node := branch{fmt.Sprintf("l%d_n%d", n, i/2), below[i].first, below[min(i+1, len(below)-1)].last}
		if len(below) == 2 {
			node.net = "y"
		}
		above = append(above, node)
	}
	for _, node := range above {
		if node.net != "y" {
			m.Wire(node.net, p.ElemBits, node.String())
		}
	}
	for i, node := range above {
		name := fmt.Sprintf("u_l%d_n%d", n, i)
		if 2*i+1 == len(below) {
			m.Instance("agg_delay", name, node.String()+" passes").
				Param("WIDTH", fmt.Sprint(p.ElemBits)).
				Param("CYCLES", fmt.Sprint(nodeLatency)).
				Connect("clk", "clk").
				Connect("d", below[2*i].net).
				Connect("q", node.net)
			continue
		}
		m.Instance("agg_fp32_add", name, node.String()).
			Connect("clk", "clk").
			Connect("a", below[2*i].net).
			Connect("b", below[2*i+1].net).
			Connect("y", node.net)
	}
	return above
}
