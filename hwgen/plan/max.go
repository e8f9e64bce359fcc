package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// maximum selects the largest member. Its lanes are trees of comparators.
var maximum = Sum{
	Name: wire.SumMax.String(),
	Code: wire.SumMax,
	Doc: "The largest member, or NaN if any member is NaN; -0 is below +0. A permutation of the workers does not change " +
		"the bits.",
	node:  "max",
	bound: maxBound,
	lane:  maxLane,
	integers: integers{
		doc:   "The largest member. A permutation of the workers does not change the bits.",
		node:  "max",
		bound: maxBound,
		lane:  maxLane,
	},
}

func maxBound(*Plan) string { return "None: a result is one of its members, or NaN." }

// maxNode returns the comparator of a format.
func maxNode(f Format) node {
	const latency = 2
	if f.Float() {
		return node{"agg_fp_max", latency, f.shape}
	}
	return node{"agg_int_max", latency, func(i *netlist.Instance) *netlist.Instance {
		return i.Param("WIDTH", fmt.Sprint(f.Bits))
	}}
}

// maxLane builds the tree of one lane, of any format. A maximum never overflows.
func maxLane(p *Plan) Lane {
	m, operands := newLane(p)
	operands, latency := widened(p, m, operands)
	if p.Inputs() == 1 {
		latency += maxOfOne(p, m, operands[0].net)
	}
	latency += treeNodes(p, m, maxNode(p.Result), operands, latency)
	m.Assign("over", "1'b0")
	m.Doc = fmt.Sprintf(`One lane: y is the largest of x_p0..x_p%d, %d cycles later; a new result every
cycle. It compares neighbours pairwise, level by level; an unpaired operand passes unchanged.
The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
and drives the lowest value of the format for an absent worker.`, p.Inputs()-1, latency)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency}
}

// maxOfOne passes the only operand to y in one cycle. A floating-point NaN becomes the
// format's one NaN.
func maxOfOne(p *Plan, m *netlist.Module, operand string) int {
	if p.Result.Float() {
		p.Result.shape(m.Instance("agg_fp_canon", "u_l0_n0", "worker 0")).
			Connect("clk", "clk").
			Connect("a", operand).
			Connect("y", "y")
		return canonLatency
	}
	m.Instance("agg_delay", "u_l0_n0", "worker 0 passes").
		Param("WIDTH", fmt.Sprint(p.ResultBits)).
		Param("CYCLES", "1").
		Connect("clk", "clk").
		Connect("d", operand).
		Connect("q", "y")
	return 1
}
