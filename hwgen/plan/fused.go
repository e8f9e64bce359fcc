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
	Doc: "All members are aligned to the largest exponent, cut to four places below the last of the largest number, " +
		"summed exactly and rounded once. The same bits for every permutation of the workers.",
	dsp:      true,
	bound:    fusedBound,
	lane:     fusedLane,
	integers: added,
}

// fusedGuard is how many places the window has below the last one of the
// largest operand, as the specification says.
const fusedGuard = 4

func fusedBound(p *Plan) string {
	return fmt.Sprintf("If nothing overflows, a result is off the real sum by less than %d/%d of a last place of the largest "+
		"member, plus half a last place of the result.", p.Workers-1, 1<<fusedGuard)
}

// fusedLane builds the lane of a fused sum. One operand is its own sum.
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
	m.Doc = fmt.Sprintf(`One lane: y is the sum of x_p0..x_p%d, %d cycles later; a new sum every cycle. All are aligned to
the largest exponent, cut to %d places below its last, summed as integers and rounded once. over
says that y is an infinity or a NaN though no operand was.
It knows no valid, no slot and no absent worker: whoever drives it delays its tags
by as many cycles, and gives it -0 for a worker that is absent.`, p.Workers-1, latency, fusedGuard)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency}
}
