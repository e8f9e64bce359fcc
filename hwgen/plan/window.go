package plan

import (
	"fmt"
	"math/bits"
	"strings"

	"tributary/hwgen/netlist"
)

// window builds the part of a lane that fused and exact share. It aligns all operands to
// the largest exponent, in a window of fixed width, sums them as integers and normalizes
// the sum.
//
// The exponents' maximum takes one cycle per level. An aligner gets its operand one cycle
// before the maximum.
type window struct {
	*Plan
	m        *netlist.Module
	width    int  // of the window, in bits
	lost     bool // the aligners mark operands that lose bits
	operands []branch
	begin    int // cycles from the lane's inputs to the operands
	levels   int // of a binary tree above the operands
	keep     int // bits of the normalized sum that are kept
	settling int // register stages after the largest exponent
}

// Latencies in cycles: from an operand at agg_window_align to its sign, from the largest
// exponent to the outputs of agg_window_special, and of agg_window_round.
const (
	signLatency    = 3
	specialLatency = 4
	roundLatency   = 4
)

func newWindow(p *Plan, m *netlist.Module, width int, operands []branch, begin int) *window {
	return &window{
		Plan: p, m: m, width: width, operands: operands, begin: begin,
		levels: bits.Len(uint(len(operands) - 1)),
		keep:   p.Result.Frac + 2, // the leading bit, the fraction, and half of its last place
	}
}

// aligning returns the cycles from an operand at agg_window_align to its magnitude.
func (w *window) aligning() int {
	if w.DSP || w.lost || w.width > 32 {
		return 5
	}
	return 4
}

// Cycles from the lane's inputs to the largest exponent, the aligned operands,
// their sum, and the normalized sum.
func (w *window) maxCycle() int    { return w.begin + w.levels + w.settling }
func (w *window) alignCycle() int  { return w.maxCycle() - 1 + w.aligning() }
func (w *window) sumCycle() int    { return w.alignCycle() + w.levels }
func (w *window) normalCycle() int { return w.sumCycle() + w.normalizeLatency() }

// addendBits returns the width of an aligned operand: the window, and one more bit below
// it that marks lost bits.
func (w *window) addendBits() int {
	if w.lost {
		return w.width + 1
	}
	return w.width
}

// sumBits returns the width of the sum, two's complement.
func (w *window) sumBits() int { return w.addendBits() + w.levels + 1 }

// normalBits returns the width of the normalized sum.
func (w *window) normalBits() int {
	if w.sumBits() > 33 {
		return 64
	}
	return 32
}

// normalizeLatency returns the cycles through agg_window_normalize.
func (w *window) normalizeLatency() int {
	if w.normalBits() == 64 {
		return 6
	}
	return 5
}

// delay declares the wire to and drives it with from, delayed by a number of cycles.
func (w *window) delay(to, from string, width, cycles int, comment string) {
	w.m.Wire(to, width, comment)
	w.m.Instance("agg_delay", "u_"+to, "").
		Param("WIDTH", fmt.Sprint(width)).
		Param("CYCLES", fmt.Sprint(cycles)).
		Connect("d", from).
		Connect("q", to)
}

// largest adds the tree that finds the largest exponent. It drives the wire max.
func (w *window) largest() {
	f := w.Result
	level := make([]branch, len(w.operands))
	for i, o := range w.operands {
		level[i] = branch{netlist.Slice(o.net, f.Frac, f.Exp), o.first, o.last}
	}
	w.m.Comment(fmt.Sprintf("-- The largest exponent, %d cycles after the inputs --", w.maxCycle()))
	top := "max"
	if w.settling > 0 {
		top = "found_max"
	}
	for n := 0; len(level) > 1; n++ {
		root := len(level) == 2
		level = pairs(level, func(below []branch, i int) branch {
			node := over(below...)
			node.net = fmt.Sprintf("max_l%d_n%d", n, i)
			if root {
				node.net = top
			}
			if len(below) == 1 {
				w.delay(node.net, below[0].net, f.Exp, 1, node.String()+" pass")
				return node
			}
			w.m.Wire(node.net, f.Exp, node.String())
			inst := w.m.Instance("agg_window_max", "u_"+node.net, "").Param("EXP", fmt.Sprint(f.Exp))
			if root {
				inst.Param("FLOOR", "1")
			}
			inst.Connect("a", below[0].net).Connect("b", below[1].net).Connect("y", node.net)
			return node
		})
	}
	if w.settling > 0 {
		w.delay("max", top, f.Exp, w.settling, "registered, because of its fan-out")
	}
}

// align adds the aligners and agg_window_special. They drive the wires negative,
// nonfinite, nan, minus and all_negative, and a magnitude for every operand.
func (w *window) align() {
	f := w.Result
	m, n := w.m, len(w.operands)
	dsp, mark, lost := "0", "0", "unused_lost"
	if w.DSP {
		dsp = "1"
	}
	if w.lost {
		mark, lost = "1", "lost"
	}
	m.Comment(fmt.Sprintf("-- Operands in a window of %d bits below the largest exponent, %d cycles after the inputs --",
		w.width, w.alignCycle()))
	m.Wire("top", n, "operands that are an infinity or a NaN")
	m.Wire("negative", n, "signs")
	m.Wire("special", 1, "max is the exponent of infinities and NaNs")
	m.Wire(lost, n, "operands that lost bits below the window")
	for i, o := range w.operands {
		held := fmt.Sprintf("held_p%d", i)
		w.delay(held, o.net, f.Bits, w.maxCycle()-w.begin-1, "delayed until a cycle before max")
		magnitude := fmt.Sprintf("magnitude_p%d", i)
		m.Wire(magnitude, w.width, "")
		f.shape(m.Instance("agg_window_align", fmt.Sprintf("u_align_p%d", i), "")).
			Param("WINDOW", fmt.Sprint(w.width)).Param("MARK", mark).Param("DSP", dsp).
			Connect("x", held).Connect("negative", bit("negative", i, n)).Connect("top", bit("top", i, n)).
			Connect("magnitude", magnitude).Connect("mark", bit(lost, i, n))
	}
	w.special()
}

// special adds agg_window_special, which detects infinities and NaNs from the aligners'
// wires top and negative. Its output special goes back to the aligners.
func (w *window) special() {
	f, m, n := w.Result, w.m, len(w.operands)
	m.Wire("nonfinite", 1, "an operand is an infinity or a NaN")
	m.Wire("nan", 1, "the sum is a NaN")
	m.Wire("minus", 1, "an operand is -infinity")
	m.Wire("all_negative", 1, "a sum of zeros is -0")
	m.Instance("agg_window_special", "u_special", "").
		Param("EXP", fmt.Sprint(f.Exp)).Param("INFINITIES", f.infinity()).Param("OPERANDS", fmt.Sprint(n))
}

// sum adds the tree that sums the aligned operands. It drives the wires sum and, a cycle
// earlier, sum_negative.
func (w *window) sum() {
	m, n := w.m, len(w.operands)
	m.Comment(fmt.Sprintf("-- The sum, %d cycles after the inputs; signs are a cycle ahead --", w.sumCycle()))
	ahead := w.aligning() - 1 - signLatency // signs and special are this many cycles too early
	w.delay("sign", "negative", n, ahead, "a cycle before the magnitudes")
	w.delay("plain", "special", 1, ahead, "add and ignore the signs")
	level := make([]addend, n)
	for i, o := range w.operands {
		parts := []string{"1'b0", fmt.Sprintf("magnitude_p%d", i)}
		if w.lost {
			parts = append(parts, bit("lost", i, n))
		}
		o.net = netlist.Concat(parts...)
		level[i] = addend{branch: o, top: "1'b0", negative: bit("sign", i, n)}
	}
	plain := "plain"
	for l := 0; len(level) > 1; l++ {
		next := fmt.Sprintf("plain_l%d", l)
		w.delay(next, plain, 1, 1, "")
		plain = next
		name := fmt.Sprintf("sum_l%d", l)
		root := len(level) == 2
		level = pairs(level, func(below []addend, i int) addend {
			if root {
				return w.add("sum", plain, w.addendBits()+1+l, below)
			}
			return w.add(fmt.Sprintf("%s_n%d", name, i), plain, w.addendBits()+1+l, below)
		})
	}
}

// addend is a value in the adder tree, two's complement. Its wire negative is high if the
// value is negated.
type addend struct {
	branch
	top      string // its highest bit
	negative string
}

// add adds the node named net. It sums two addends of width bits, or passes one.
func (w *window) add(net, plain string, width int, below []addend) addend {
	m, a := w.m, below[0]
	y := addend{over(a.branch, below[len(below)-1].branch), netlist.Slice(net, width, 1), net + "_negative"}
	y.net = net
	if len(below) == 1 {
		w.delay(y.net, netlist.Concat(a.top, a.net), width+1, 1, y.String()+" pass")
		w.delay(y.negative, a.negative, 1, 1, "")
		return y
	}
	m.Wire(y.net, width+1, y.String())
	m.Wire(y.negative, 1, "")
	m.Instance("agg_window_add", "u_"+net, "").Param("WIDTH", fmt.Sprint(width)).
		Connect("plain", plain).
		Connect("a_negative", a.negative).Connect("a", a.net).
		Connect("b_negative", below[1].negative).Connect("b", below[1].net).
		Connect("y_negative", y.negative).Connect("y", y.net)
	return y
}

// normalize adds agg_window_normalize. It drives the wires inverted, zero, shift, normal
// and rest.
func (w *window) normalize() {
	f, m := w.Result, w.m
	m.Comment(fmt.Sprintf("-- Normalized, %d cycles after the inputs --", w.normalCycle()))
	w.delay("exponent", "max", f.Exp, w.sumCycle()-1-w.maxCycle(), "of the window's top, a cycle before the sum")
	m.Wire("inverted", 1, "the sum is negative, and normal is inverted")
	m.Wire("zero", 1, "the sum is 0")
	m.Wire("shift", 6, "")
	m.Wire("normal", w.keep, "")
	m.Wire("rest", 1, "bits below normal are nonzero")
	m.Instance("agg_window_normalize", "u_normalize", "").
		Param("EXP", fmt.Sprint(f.Exp)).Param("WIDTH", fmt.Sprint(w.sumBits())).Param("GROWTH", fmt.Sprint(w.levels)).
		Param("BITS", fmt.Sprint(w.normalBits())).Param("KEEP", fmt.Sprint(w.keep))
}

// round adds agg_window_round, which rounds the normalized sum to y and drives over. It
// returns the cycles from the lane's inputs to y.
func (w *window) round() int {
	f, m := w.Result, w.m
	latency := w.normalCycle() + roundLatency
	m.Comment(fmt.Sprintf("-- Rounded, %d cycles after the inputs --", latency))
	signs := []string{"nonfinite", "nan", "minus", "all_negative"}
	w.delay("signs", netlist.Concat(signs...), len(signs), w.normalCycle()-w.maxCycle()-specialLatency, strings.Join(signs, ", "))
	w.delay("turned", "sum_negative", 1, w.normalCycle()-w.sumCycle()+1, "the sum's sign is inverted")
	w.delay("normal_exponent", "exponent", f.Exp, w.normalCycle()-w.sumCycle()+1, "")
	f.shape(m.Instance("agg_window_round", "u_round", "")).
		Param("GROWTH", fmt.Sprint(w.levels)).Param("KEEP", fmt.Sprint(w.keep)).
		Connect("exponent", "normal_exponent").Connect("negative", "turned").
		Connect("nonfinite", "signs[3]").Connect("nan", "signs[2]").Connect("minus", "signs[1]").
		Connect("all_negative", "signs[0]")
	return latency
}
