package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// tree adds neighbours pairwise, level by level. An unpaired operand passes
// unchanged, with the latency of a node. Each node rounds.
var tree = Sum{
	Name: wire.SumTree.String(),
	Code: wire.SumTree,
	Doc: "Adds neighbouring ports pairwise, level by level; an unpaired operand passes unchanged. Every node rounds " +
		"to nearest, ties to even. The order of arrival does not change the bits.",
	bound: func(*Plan) string {
		return "At most half a unit in the last place of each node's sum."
	},
	node:     "+",
	lane:     treeLane,
	integers: added,
}

// nodeLatency is the latency of one addition, in cycles.
const nodeLatency = 14

// node is a leaf with the ports clk, a, b and y that joins two operands of the same
// width.
type node struct {
	leaf    string
	latency int // cycles
	params  func(*netlist.Instance) *netlist.Instance
}

// addition is the node of tree.
func addition(p *Plan) node { return node{"agg_fp_add", nodeLatency, p.Result.shape} }

// treeLane builds the adder tree of one lane.
func treeLane(p *Plan) Lane {
	m, operands := newLane(p)
	operands, latency := widened(p, m, operands)
	if p.Inputs() == 1 {
		p.Result.shape(m.Instance("agg_fp_canon", "u_l0_n0", operands[0].String())).
			Connect("a", operands[0].net)
		m.Assign("over", "1'b0")
		latency += canonLatency
	}
	nodes := treeNodes(p, m, addition(p), operands, latency)
	if p.Inputs() > 1 {
		p.Result.shape(m.Instance("agg_fp_over", "u_over", "").
			Param("OPERANDS", fmt.Sprint(p.Inputs())).
			Param("LATENCY", fmt.Sprint(nodes))).
			Connect("x", nets(operands))
	}
	latency += nodes
	m.Doc = fmt.Sprintf(`The adder tree of one lane: y is the sum of x_p0..x_p%d, %d cycles later; a new sum
every cycle. It adds neighbours pairwise, level by level; an unpaired operand passes unchanged.
over is high if y is an infinity or a NaN, but every operand is finite.
The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
and drives -0 for an absent worker.`, p.Inputs()-1, latency)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency}
}

// treeNodes joins neighbours level by level up to the wire y, and returns the cycles that
// the levels take. The operands are valid latency cycles after the lane's inputs.
func treeNodes(p *Plan, m *netlist.Module, join node, level []branch, latency int) int {
	cycles := 0
	for n := 0; len(level) > 1; n++ {
		cycles += join.latency
		level = treeLevel(p, m, join, n, level, latency+cycles)
	}
	return cycles
}

// treeLevel adds one level of nodes above the given branches. It returns the level's
// outputs, which are valid latency cycles after the lane's inputs.
func treeLevel(p *Plan, m *netlist.Module, join node, n int, below []branch, latency int) []branch {
	m.Comment(fmt.Sprintf("Level %d: %d to %d, valid %d cycles after the inputs.", n, len(below), (len(below)+1)/2, latency))
	root := len(below) == 2
	above := pairs(below, func(pair []branch, i int) branch {
		node := over(pair...)
		node.net = fmt.Sprintf("l%d_n%d", n, i)
		if root {
			node.net = "y"
		}
		return node
	})
	for _, node := range above {
		if !root {
			m.Wire(node.net, p.ResultBits, node.String())
		}
	}
	for i, node := range above {
		name := fmt.Sprintf("u_l%d_n%d", n, i)
		if 2*i+1 == len(below) {
			m.Instance("agg_delay", name, node.String()+" passes").
				Param("WIDTH", fmt.Sprint(p.ResultBits)).
				Param("CYCLES", fmt.Sprint(join.latency)).
				Connect("d", below[2*i].net).
				Connect("q", node.net)
			continue
		}
		join.params(m.Instance(join.leaf, name, node.String())).
			Connect("a", below[2*i].net).
			Connect("b", below[2*i+1].net).
			Connect("y", node.net)
	}
	return above
}
