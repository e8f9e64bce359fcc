package plan

import (
	"fmt"
	"math/bits"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// exact rounds the real sum of all members once. A lane decides nearly always
// what that is, in a window below the largest exponent; a unit that all lanes
// share sums what they cannot.
var exact = Sum{
	Name: wire.SumExact.String(),
	Code: wire.SumExact,
	Doc: "The real sum of all members, rounded once. The same bits for every permutation of the workers, every chunk " +
		"and every card.",
	bound: func(*Plan) string {
		return "If it does not overflow, a result is off the real sum by at most half a last place of its own."
	},
	lane:     exactLane,
	integers: added,
}

// exactSpare is how many places the window has below the last one of the
// largest operand's significand, where the whole range of a format does not fit
// into one. More leave fewer elements undecided, but cost area in every lane.
// Eight fp32 operands, elements undecided in a million:
//
//	spare  COMB   gradients  N(0,1)  log-normal: σ 4   σ 8, 30 % zeros   any bits
//	12     2,036  0          0       4,706             7,213             15,794
//	14     2,101  0          0         833             1,942             12,203
//	16     2,145  0          0         157               695             10,836
//	20     2,253  0          0           5               203              9,412
const exactSpare = 20

// exactWhole returns the places from the leading bit of a format's largest
// number to the last one of its smallest, and whether a window holds them all.
func exactWhole(f Format) (int, bool) {
	fields := 1<<f.Exp - 2 // of normal numbers
	if !f.Infinity {
		fields++
	}
	places := fields + f.Frac
	return places, places <= 48
}

// exactLane builds the lane of an exact sum. A node of a tree sums two operands
// exactly.
func exactLane(p *Plan) Lane {
	if p.Workers <= 2 {
		return treeLane(p)
	}
	width, whole := exactWhole(p.Format)
	if whole {
		m, w, latency := exactWindow(p, width)
		m.Doc = exactDoc(w, latency, "It holds every number of the format, so that nothing is lost.")
		return Lane{Modules: []*netlist.Module{m}, Latency: latency}
	}

	// Contributions are widened before they come here: the unit's results, which
	// come by the same way, are of the result's format.
	wide := *p
	wide.Format = p.Result
	wide.size()
	m, w, latency := exactWindow(&wide, p.Result.Frac+1+exactSpare)
	m.Doc = exactDoc(w, latency, `What does not fit leaves a mark in one place more. undecided, two cycles before y, says that y may
be wrong because of that.`)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency, Shared: &Shared{OperandBits: p.ResultBits}}
}

func exactDoc(w *window, latency int, what string) string {
	return fmt.Sprintf(`One lane: y is the sum of x_p0..x_p%d, rounded once, %d cycles later; a new sum every cycle.
All are aligned to the largest exponent and summed in a window of %d bits.
%s
over says that y is an infinity or a NaN though no operand was. It knows no valid, no slot and no
absent worker: whoever drives it delays its tags by as many cycles, and gives it -0 for a worker
that is absent.`, len(w.operands)-1, latency, w.width, what)
}

// exactWindow builds a lane with a window of at least the given width, and says
// how many cycles it takes.
func exactWindow(p *Plan, width int) (*netlist.Module, *window, int) {
	m, operands := newLane(p)
	operands, widening := widened(p, m, operands)
	w := newWindow(p, m, max(width, p.Result.Frac+8), operands, widening)
	w.settling = 1
	_, whole := exactWhole(p.Format)
	w.lost = !whole
	var d decision
	if w.lost {
		m.Output("undecided", 1)
		d = newDecision(w)
		w.keep += d.places
	}
	w.largest()
	w.align()
	w.sum()
	w.normalize()
	if w.lost {
		d.add(w)
	}
	return m, w, w.round()
}

// decision is what agg_exact_decide is told of a window.
type decision struct {
	places         int
	near, far, one int // shifts
}

// newDecision weighs the places of a sum. Below the last one of a sum's result
// are so many as are left of it; the lowest of them, worth more than all
// operands may be off, do not help to decide. To look at fewer leaves more
// undecided, no more.
func newDecision(w *window) decision {
	below := w.sumBits() - 2 - w.Result.Frac
	margin := bits.Len(uint(len(w.operands) - 2))
	d := decision{near: w.levels + 2, one: below - 2}
	d.places = min(below-d.near-margin-1, w.normalBits()-normalLost-w.keep)
	d.far = min(d.near+4, d.near+d.places-1)
	return d
}

// add adds what knows whether the window suffices: output undecided.
func (d decision) add(w *window) {
	m, n := w.m, len(w.operands)
	m.Comment("-- Whether that suffices, two cycles before the result --")
	m.Wire("some_lost", 1, "an operand lost bits below the window")
	m.Wire("several_lost", 1, "more than one did")
	m.Instance("agg_exact_lost", "u_lost", "").Param("OPERANDS", fmt.Sprint(n)).
		Connect("some", "some_lost").Connect("several", "several_lost")
	w.delay("losers", netlist.Concat("some_lost", "several_lost"), 2, w.normalCycle()-w.alignCycle()-lostLatency, "")
	m.Wire("doubt", 1, "")
	m.Instance("agg_exact_decide", "u_decide", "").
		Param("PLACES", fmt.Sprint(d.places)).
		Param("NEAR", fmt.Sprint(d.near)).
		Param("FAR", fmt.Sprint(d.far)).
		Param("ONE", fmt.Sprint(d.one)).
		Connect("some", "losers[1]").Connect("several", "losers[0]").
		Connect("normal", netlist.Slice("normal", 0, d.places+1)).Connect("undecided", "doubt")
	m.Instance("agg_delay", "u_undecided", "").Param("WIDTH", "1").Param("CYCLES", fmt.Sprint(roundLatency-decideLatency-2)).
		Connect("d", "doubt").Connect("q", "undecided")
}

// normalLost is how many bits of what it is padded to agg_window_normalize does
// not keep at least.
const normalLost = 7

// Cycles through agg_exact_lost and agg_exact_decide.
const (
	lostLatency   = 3
	decideLatency = 2
)
