package plan

import (
	"fmt"
	"strings"

	"tributary/hwgen/netlist"
)

// Latencies in cycles of the leaves that convert an operand.
const (
	canonLatency = 1
	widenLatency = 2
)

// branch is a value inside a lane.
type branch struct {
	net         string
	first, last int // the workers in it
}

// String names the branch's workers, for comments.
func (b branch) String() string {
	switch b.last - b.first {
	case 0:
		return fmt.Sprintf("worker %d", b.first)
	case 1:
		return fmt.Sprintf("workers %d, %d", b.first, b.last)
	}
	return fmt.Sprintf("workers %d..%d", b.first, b.last)
}

// pairs joins neighbours pairwise. join gets an unpaired last element alone.
func pairs[T any](below []T, join func(pair []T, i int) T) []T {
	var above []T
	for i := 0; i < len(below); i += 2 {
		above = append(above, join(below[i:min(i+2, len(below))], i/2))
	}
	return above
}

// over returns the branch above the given ones. The caller sets its net.
func over(below ...branch) branch {
	return branch{first: below[0].first, last: below[len(below)-1].last}
}

// newLane returns the module agg_lane with its ports.
func newLane(p *Plan) (*netlist.Module, []branch) {
	m := netlist.New("agg_lane", "")
	m.Input("clk", 1)
	var operands []branch
	for w := range p.Inputs() {
		x := fmt.Sprintf("x_p%d", w)
		m.Input(x, p.ElemBits)
		operands = append(operands, branch{x, w, w})
	}
	m.Output("y", p.ResultBits)
	m.Output("over", 1)
	return m, operands
}

// widened converts operands to the result's format. It also returns the latency in cycles,
// which is 0 if the formats are equal.
func widened(p *Plan, m *netlist.Module, operands []branch) ([]branch, int) {
	if p.Result.Format == p.Format.Format {
		return operands, 0
	}
	m.Comment(fmt.Sprintf("Exact conversion from %s to %s: valid %d cycles after the inputs.",
		p.Format.Name, p.Result.Name, widenLatency))
	var wide []branch
	for _, o := range operands {
		o.net = fmt.Sprintf("wide_p%d", o.first)
		m.Wire(o.net, p.ResultBits, "")
		wide = append(wide, o)
	}
	for i, o := range wide {
		p.Format.shape(m.Instance("agg_fp_widen", fmt.Sprintf("u_widen_p%d", o.first), "")).
			Param("TO_EXP", fmt.Sprint(p.Result.Exp)).
			Param("TO_FRAC", fmt.Sprint(p.Result.Frac)).
			Connect("a", operands[i].net).
			Connect("y", o.net)
	}
	return wide, widenLatency
}

// nets concatenates the branches' nets, the first in the lowest bits.
func nets(branches []branch) string {
	var names []string
	for _, b := range branches {
		names = append([]string{b.net}, names...)
	}
	if len(names) == 1 {
		return names[0]
	}
	return "{" + strings.Join(names, ", ") + "}"
}
