package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// added is the integer arithmetic of all sums that add.
var added = integers{
	doc:   "The integer sum of all members; `tree`, `fused` and `exact` are equal for int32.",
	node:  "+",
	bound: intBound,
	lane:  intLane,
}

func intBound(p *Plan) string {
	if p.Saturate {
		return "None: the integer sum of all members, saturated to the format's range."
	}
	return "None: the integer sum of all members, modulo 2^32."
}

// intLane builds the lane of an integer sum. Each level adds exactly, with one more bit.
// Only the last stage reduces the sum to its format, so neither the order nor an
// intermediate overflow matters.
func intLane(p *Plan) Lane {
	m, level := newLane(p)
	width := p.ElemBits
	latency := 0
	for n := 0; len(level) > 1; n++ {
		latency++
		m.Comment(fmt.Sprintf("Level %d: %d to %d, valid %d cycles after the inputs.", n, len(level), (len(level)+1)/2, latency))
		level = intLevel(m, n, level, width)
		width++
	}
	latency++
	saturate, how := "0", fmt.Sprintf("modulo 2^%d", p.ResultBits)
	if p.Saturate {
		saturate, how = "1", "saturated"
	}
	m.Comment(fmt.Sprintf("Reduces the sum to %d bits.", p.ResultBits))
	m.Instance("agg_int_clamp", "u_clamp", "").
		Param("IN", fmt.Sprint(width)).
		Param("OUT", fmt.Sprint(p.ResultBits)).
		Param("SATURATE", saturate).
		Connect("a", level[0].net)
	m.Doc = fmt.Sprintf(`One lane: y is the integer sum of x_p0..x_p%d, %s, %d cycles later; a new
sum every cycle. over is high if the sum is beyond the format's range.
The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
and drives 0 for an absent worker.`, p.Inputs()-1, how, latency)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency}
}

// intLevel adds one level of adders above branches of the given width. It returns the
// level's outputs, which are one bit wider.
func intLevel(m *netlist.Module, n int, below []branch, width int) []branch {
	above := pairs(below, func(pair []branch, i int) branch {
		node := over(pair...)
		node.net = fmt.Sprintf("l%d_n%d", n, i)
		return node
	})
	for _, node := range above {
		m.Wire(node.net, width+1, node.String())
	}
	for i, node := range above {
		a := below[2*i].net
		name := "u_" + node.net
		if 2*i+1 == len(below) {
			m.Instance("agg_delay", name, node.String()+" passes").
				Param("WIDTH", fmt.Sprint(width+1)).
				Param("CYCLES", "1").
				Connect("d", netlist.Concat(netlist.Slice(a, width-1, 1), a)).
				Connect("q", node.net)
			continue
		}
		m.Instance("agg_int_add", name, node.String()).
			Param("WIDTH", fmt.Sprint(width)).
			Connect("a", a).
			Connect("b", below[2*i+1].net).
			Connect("y", node.net)
	}
	return above
}
