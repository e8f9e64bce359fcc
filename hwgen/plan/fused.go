package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// fused aligns all operands to the largest exponent, sums them as integers in a
// fixed window, and rounds once.
var fused = Sum{
	Name: wire.SumFused.String(),
	Code: wire.SumFused,
	Doc: "Aligns all members to the largest exponent, truncates them four bits below the last place of the largest " +
		"member, sums them exactly and rounds once. A permutation of the workers does not change the bits.",
	dsp:      true,
	bound:    fusedBound,
	lane:     fusedLane,
	integers: added,
}

// fusedGuard is the number of bits of the window below the last place of the
// largest operand. SPEC.md defines it.
const fusedGuard = 4

func fusedBound(p *Plan) string {
	return fmt.Sprintf("Without overflow, less than %d/%d of a unit in the last place of the largest member, plus half a unit in "+
		"the last place of the result.", p.Workers-1, 1<<fusedGuard)
}

// fusedLane builds the lane of a fused sum. The sum of one operand needs no window.
func fusedLane(p *Plan) Lane {
	if p.Workers == 1 {
		return treeLane(p)
	}
	m, operands := newLane(p)
	operands, widening := widened(p, m, operands)
	w := newWindow(p, m, p.Result.Frac+1+fusedGuard, operands, widening)
	w.largest()
	w.align()
	w.sum()
	w.normalize()
	latency := w.round()
	m.Doc = fmt.Sprintf(`One lane: y is the sum of x_p0..x_p%d, %d cycles later; a new sum every cycle. It aligns
all operands to the largest exponent, truncates them %d bits below the last place of the largest,
sums them as integers and rounds once. over is high if y is not finite, but every operand is.
The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
and drives -0 for an absent worker.`, p.Inputs()-1, latency, fusedGuard)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency}
}
