package plan

import (
	"fmt"
	"math/bits"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// exact rounds the real sum of all members once. A lane nearly always decides the
// result, in a window below the largest exponent. A unit that all lanes share sums
// the undecided elements.
var exact = Sum{
	Name: wire.SumExact.String(),
	Code: wire.SumExact,
	Doc: "The real sum of all members, rounded once. A permutation of the workers, another chunk or another card does " +
		"not change the bits.",
	bound: func(*Plan) string {
		return "Without overflow, at most half a unit in the last place of the result."
	},
	lane:     exactLane,
	integers: added,
}

// exactSpare is the number of bits of the window below the last place of the largest
// operand's significand. It applies to formats whose whole range does not fit into a
// window. More bits leave fewer elements undecided, but cost area in every lane.
// Undecided elements in a million, for eight fp32 operands:
//
//	spare  COMB   gradients  N(0,1)  log-normal: σ 4   σ 8, 30 % zeros   any bits
//	12     2,036  0          0       4,706             7,213             15,794
//	14     2,101  0          0         833             1,942             12,203
//	16     2,145  0          0         157               695             10,836
//	20     2,253  0          0           5               203              9,412
const exactSpare = 20

// exactWhole returns the number of bits from the leading bit of a format's largest number
// to the last bit of its smallest, and whether they all fit into a window.
func exactWhole(f Format) (int, bool) {
	fields := 1<<f.Exp - 2 // of normal numbers
	if !f.Infinity {
		fields++
	}
	places := fields + f.Frac
	return places, places <= 48
}

// exactLane builds the lane of an exact sum. For two operands, a tree's node rounds
// the exact sum once.
func exactLane(p *Plan) Lane {
	if p.Workers <= 2 {
		return treeLane(p)
	}
	width, whole := exactWhole(p.Format)
	if whole {
		m, w, latency := exactWindow(p, width)
		m.Doc = exactDoc(w, latency, "The window holds every number of the format, so no bit is lost.")
		return Lane{Modules: []*netlist.Module{m}, Latency: latency}
	}

	// The lane's operands have the result's format: contributions are widened earlier,
	// because the unit's results also pass through the lanes.
	wide := *p
	wide.Format = p.Result
	wide.size()
	m, w, latency := exactWindow(&wide, p.Result.Frac+1+exactSpare)
	m.Doc = exactDoc(w, latency, `One extra bit marks an operand that lost bits. undecided, two cycles before y, is high if y may
be wrong because of lost bits.`)
	return Lane{Modules: []*netlist.Module{m}, Latency: latency, Shared: &Shared{OperandBits: p.ResultBits}}
}

func exactDoc(w *window, latency int, what string) string {
	return fmt.Sprintf(`One lane: y is the sum of x_p0..x_p%d, rounded once, %d cycles later; a new sum every cycle.
It aligns all operands to the largest exponent and sums them in a window of %d bits.
%s
over is high if y is an infinity or a NaN, but every operand is finite.
The lane has no valid bits and no slots: the parent delays its tags by as many cycles,
and drives -0 for an absent worker.`, len(w.operands)-1, latency, w.width, what)
}

// exactWindow builds a lane with a window of at least the given width. It also returns
// the lane's latency in cycles.
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

// decision holds the parameters of agg_exact_decide.
type decision struct {
	places         int
	near, far, one int // shifts
}

// newDecision derives the parameters from the bits of the sum below the result's last
// place. The lowest of these bits cannot decide: all lost bits together may change them.
// Fewer places leave more elements undecided, but every result stays correct.
func newDecision(w *window) decision {
	below := w.sumBits() - 2 - w.Result.Frac
	margin := bits.Len(uint(len(w.operands) - 2))
	d := decision{near: w.levels + 2, one: below - 2}
	d.places = min(below-d.near-margin-1, w.normalBits()-normalLost-w.keep)
	d.far = min(d.near+4, d.near+d.places-1)
	return d
}

// add adds the logic that drives the output undecided.
func (d decision) add(w *window) {
	m, n := w.m, len(w.operands)
	m.Comment("-- The decision, two cycles before the result --")
	m.Wire("some_lost", 1, "an operand lost bits below the window")
	m.Wire("several_lost", 1, "more than one operand did")
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

// normalLost is the minimum number of bits that agg_window_normalize drops from the
// padded sum.
const normalLost = 7

// Cycles through agg_exact_lost and agg_exact_decide.
const (
	lostLatency   = 3
	decideLatency = 2
)
