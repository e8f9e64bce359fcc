package plan

import (
	"fmt"
	"math/bits"
	"strings"

	"tributary/hwgen/netlist"
)

// Shared is what a core has once, for all lanes, when one pass through them does
// not decide every beat: a queue of beats that are undecided, and a unit that
// sums their elements one by one. Other cores have nothing of it.
type Shared struct {
	OperandBits int // of the lanes' operands: contributions are widened before the gates
}

// sharedGap is the cycles that agg_exact_unit needs from a sum's last operand
// to the next one's first, less those that agg_exact_queue takes anyway.
const sharedGap = 27

// pause is how long agg_exact_queue waits from an element's last operand on.
func (p *Plan) pause() int { return max(0, sharedGap-p.passage()) }

// Undecided says what it costs that one pass through the lanes does not decide
// every element. All is 0 where it does.
type Undecided struct {
	ElementCycles int `json:"element_cycles"` // until the next such element is begun
	ElementReads  int `json:"element_reads"`  // of these, cycles in which no new beat is read
	BeatCycles    int `json:"beat_cycles"`    // at most, for all elements of a beat
	HeldBeats     int `json:"held_beats"`     // with so many undecided no new beat is read
}

// Undecided returns what undecided elements cost.
func (p *Plan) Undecided() Undecided {
	if p.Lane.Shared == nil {
		return Undecided{}
	}
	element := 3*p.Workers + p.passage() + p.pause() + 3
	_, limit := p.queueDepth()
	return Undecided{
		ElementCycles: element,
		ElementReads:  p.Workers + 1,
		BeatCycles:    p.Lanes*element + 1,
		HeldBeats:     limit,
	}
}

// queueDepth returns how many undecided beats the card keeps at most, and with
// how many it holds new ones back.
func (p *Plan) queueDepth() (depth, limit int) {
	lanes := p.passage() + 2
	depth = 1 << bits.Len(uint(lanes+3))
	return depth, depth - lanes
}

// operandBits is the width of what goes into a lane from each port.
func (p *Plan) operandBits() int {
	if p.Lane.Shared != nil {
		return p.Lane.Shared.OperandBits
	}
	return p.ElemBits
}

// sharedGate adds a port's gate where single ports are read again. By port 0 the
// unit's results go through the lanes.
func (b *coreBuilder) sharedGate(p int, stored, gated string) {
	m := b.m
	if p == 0 {
		m.Comment("What all gates are told")
		m.Wire("beat_ports", b.Workers, "members, or the one port that is read again")
		m.Wire("beat_write", 1, "instead of them the unit's result")
		m.Wire("exact_result", b.ResultBits, "")
	}
	if b.operandBits() != b.ElemBits {
		wide := fmt.Sprintf("p%d_wide", p)
		m.Wire(wide, b.Lanes*b.operandBits(), "with more places")
		m.Instance("agg_exact_extend", fmt.Sprintf("u_extend_p%d", p), "").
			Param("LANES", fmt.Sprint(b.Lanes)).
			Param("FROM", fmt.Sprint(b.ElemBits)).
			Param("TO", fmt.Sprint(b.operandBits())).
			Connect("x", stored).
			Connect("y", wide)
		stored = wide
	}
	leaf := "agg_gate"
	if p == 0 {
		leaf = "agg_exact_gate"
	}
	i := m.Instance(leaf, fmt.Sprintf("u_gate_p%d", p), "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("ELEM_BITS", fmt.Sprint(b.operandBits())).
		Param("IDENTITY", b.identity(b.Result)).
		Connect("enable", bit("beat_ports", p, b.Workers)).
		Connect("x", stored)
	if p == 0 {
		i.Connect("write", "beat_write").Connect("result", "exact_result")
	}
	i.Connect("y", gated)
}

// undecided adds the lanes and what decides the beats that they cannot: what is
// on the wires sum_* goes to the cache.
func (b *coreBuilder) undecided() {
	m := b.m
	m.Wire("lane_over", b.Lanes, "")
	m.Wire("lane_undecided", b.Lanes, "elements that are not known yet, two cycles before the sum")
	b.lanes("sum", "lane_over", "lane_undecided")

	tag := []struct {
		beside, lane string
		width        int
	}{
		{"beat_slot", "sum_slot", b.slotBits},
		{"beat_index", "sum_beat", b.indexBits},
		{"beat_pass", "lane_again", 1},
		{"beat_write", "lane_write", 1},
		{"beat_last", "lane_last", 1},
	}
	m.Wire("beat_last", 1, "of an element's operands, or of a beat's results")
	m.Wire("lane_next", 1, "a sum comes in the next cycle")
	var beside, lane []string
	width := 0
	for _, t := range tag {
		if t.lane != "sum_slot" && t.lane != "sum_beat" {
			m.Wire(t.lane, 1, "")
		}
		beside, lane = append(beside, t.beside), append(lane, t.lane)
		width += t.width
	}
	b.tags("beat_valid", netlist.Concat(beside...), "lane_next", netlist.Concat(lane...), width)

	m.Comment("What the lanes do not decide")
	m.Wire("sum_whole", 1, "and so all of the beat is there")
	m.Wire("sum_lanes", b.Lanes, "lanes that are written")
	m.Wire("sum_result", 1, "with the unit's result")
	m.Wire("undecided", 1, "a beat is not known after its first pass")
	m.Wire("exact_lane", b.Lanes, "whose operands the unit takes")
	m.Wire("exact_valid", 1, "")
	m.Wire("exact_last", 1, "")
	m.Wire("exact_operand", b.ResultBits, "")
	m.Wire("exact_done", 1, "")
	m.Wire("exact_over", 1, "")
	depth, limit := b.queueDepth()
	i := m.Instance("agg_exact_queue", "u_exact_queue", "").Param("LANES", fmt.Sprint(b.Lanes))
	b.params(i, "PORTS", "SLOT_BITS", "INDEX_BITS")
	i.Param("DEPTH_BITS", fmt.Sprint(indexWidth(depth))).
		Param("LIMIT", fmt.Sprint(limit)).
		Param("PAUSE", fmt.Sprint(b.pause())).
		Param("LANE_LATENCY", fmt.Sprint(b.passage()))
	i.Connect("undecided", "lane_undecided").Connect("lane_slot", "sum_slot").Connect("lane_beat", "sum_beat").
		Connect("member", "beat_members").
		Connect("select", "exact_lane").Connect("operand_valid", "exact_valid").Connect("operand_last", "exact_last").
		Connect("done", "exact_done").Connect("found", "undecided")

	m.Instance("agg_exact_select", "u_exact_select", "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("ELEM_BITS", fmt.Sprint(b.ResultBits)).
		Connect("select", "exact_lane").
		Connect("beat", "sum").
		Connect("y", "exact_operand")
	m.Instance("agg_exact_unit", "u_exact_unit", "").
		Param("FRAC", fmt.Sprint(b.Result.Frac)).
		Connect("in_valid", "exact_valid").
		Connect("in_last", "exact_last").
		Connect("in_x", "exact_operand").
		Connect("done", "exact_done").
		Connect("y", "exact_result").
		Connect("over", "exact_over")
	overs := "{" + fmt.Sprint(b.Lanes) + "{sum_result && exact_over}}"
	m.Assign("sum_over", strings.Join([]string{"(lane_over", overs + ")"}, " | ")+" & sum_lanes")
}
