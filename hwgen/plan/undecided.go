package plan

import (
	"fmt"
	"math/bits"

	"tributary/hwgen/netlist"
)

// Shared is the logic that decides beats which one pass through the lanes leaves
// undecided: a queue of such beats, and a unit that sums their elements one by one. A
// core has it once for all lanes. A core without undecided beats has none of it.
type Shared struct {
	OperandBits int // width of the lanes' operands: contributions are widened before the gates
}

// sharedGap is the cycles that agg_exact_unit needs between a sum's last operand and
// the next sum's first, without those that agg_exact_queue always takes.
const sharedGap = 27

// pause returns the cycles that agg_exact_queue waits after an element's last operand.
func (p *Plan) pause() int { return max(0, sharedGap-p.passage()) }

// Undecided is the cost of elements that one pass through the lanes does not decide. All
// fields are 0 if one pass decides every element.
type Undecided struct {
	ElementCycles int `json:"element_cycles"` // from an undecided element to the next
	ElementReads  int `json:"element_reads"`  // of these, cycles without the read of a new beat
	BeatCycles    int `json:"beat_cycles"`    // maximum, for all elements of a beat
	HeldBeats     int `json:"held_beats"`     // undecided beats that stop the read of new beats
}

// Undecided returns the cost of undecided elements.
func (p *Plan) Undecided() Undecided {
	if p.Lane.Shared == nil {
		return Undecided{}
	}
	element := 3*p.Inputs() + p.passage() + p.pause() + 4
	_, limit := p.queueDepth()
	return Undecided{
		ElementCycles: element,
		ElementReads:  p.Inputs() + 1,
		BeatCycles:    p.Lanes*element + 1,
		HeldBeats:     limit,
	}
}

// queueDepth returns the maximum number of undecided beats in the queue, and the number
// at which the card stops reading new beats.
func (p *Plan) queueDepth() (depth, limit int) {
	lanes := p.passage() + 3
	depth = 1 << bits.Len(uint(lanes+3))
	return depth, depth - lanes
}

// operandBits returns the width of a lane's operand.
func (p *Plan) operandBits() int {
	if p.Lane.Shared != nil {
		return p.Lane.Shared.OperandBits
	}
	return p.ElemBits
}

// extend adds the conversion of a port's contributions to the result's format.
func (b *coreBuilder) extend(in *netlist.Loop, operands string) {
	in.Instance("agg_exact_extend", "u_extend", "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("FROM", fmt.Sprint(b.ElemBits)).
		Param("TO", fmt.Sprint(b.operandBits())).
		Connect("x", "stored").
		Connect("y", operands)
}

// sharedGates adds the gates of a card that reads single ports again. The unit's results enter
// the lanes through port 0's gate.
func (b *coreBuilder) sharedGates() {
	m := b.m
	m.Comment("Gates; results of undecided elements pass through that of port 0")
	m.Wire("beat_ports", b.Inputs(), "members, or the one port that is read again")
	m.Wire("beat_write", 1, "selects the unit's result instead")
	m.Wire("exact_result", b.ResultBits, "")
	gate := func(in *netlist.Body, leaf, name string) *netlist.Instance {
		return in.Instance(leaf, name, "").
			Param("LANES", fmt.Sprint(b.Lanes)).
			Param("ELEM_BITS", fmt.Sprint(b.operandBits())).
			Param("IDENTITY", b.identity(b.Result))
	}
	width := b.operandBeatBits()
	gate(m.Body, "agg_exact_gate", "u_exact_gate").
		Connect("enable", bit("beat_ports", 0, b.Inputs())).
		Connect("x", netlist.Slice("operands", 0, width)).
		Connect("write", "beat_write").Connect("result", "exact_result").
		Connect("y", netlist.Slice("gated", 0, width))
	gate(m.Loop("g_gate", "p", 1, b.Inputs()).Body, "agg_gate", "u_gate").
		Connect("enable", b.ofPort("beat_ports", 1)).
		Connect("x", b.ofPort("operands", width)).
		Connect("y", b.ofPort("gated", width))
}

// undecided adds the lanes, and the queue and unit that decide the remaining beats. The
// wires sum_* go to the cache.
func (b *coreBuilder) undecided() {
	m := b.m
	m.Wire("lane_sum", b.ResultBeatBits, "the lanes' outputs, a cycle before they are the sum")
	m.Wire("lane_over", b.Lanes, "")
	m.Wire("lane_undecided", b.Lanes, "undecided elements, two cycles before lane_sum")
	b.lanes("lane_sum", "lane_over", "lane_undecided")

	m.Wire("beat_last", 1, "of an element's operands, or of a beat's results")
	m.Wire("lane_next", 1, "the next cycle has a lane_sum")
	m.Wire("lane_again", 1, "")
	m.Wire("lane_write", 1, "")
	m.Wire("lane_last", 1, "")
	b.tags("beat_valid", "lane_next", "The tag leaves one cycle before lane_sum.", b.passage()-1, []tag{
		{"beat_pass", "lane_again", 1},
		{"beat_write", "lane_write", 1},
		{"beat_last", "lane_last", 1},
	})

	m.Comment("Undecided beats")
	m.Wire("sum_whole", 1, "this write completes the beat")
	m.Wire("lanes_written", b.Lanes, "one cycle later: lanes to write")
	m.Wire("sum_lanes", b.Lanes, "with the sum: lanes that are written")
	m.Wire("lane_result", 1, "lane_sum has the unit's result")
	m.Wire("undecided", 1, "a beat's first pass did not decide it")
	m.Wire("exact_lane", b.Lanes, "the lane of the unit's operands, one hot")
	m.Wire("exact_valid", 1, "")
	m.Wire("exact_last", 1, "")
	m.Wire("exact_operand", b.ResultBits, "")
	m.Wire("exact_done", 1, "")
	m.Wire("exact_over", 1, "")
	depth, limit := b.queueDepth()
	i := m.Instance("agg_exact_queue", "u_exact_queue", "").Param("LANES", fmt.Sprint(b.Lanes))
	b.inputParams(i, "PORTS", "SLOT_BITS", "INDEX_BITS")
	i.Param("DEPTH_BITS", fmt.Sprint(indexWidth(depth))).
		Param("LIMIT", fmt.Sprint(limit)).
		Param("PAUSE", fmt.Sprint(b.pause())).
		Param("LANE_LATENCY", fmt.Sprint(b.passage()))
	i.Connect("undecided", "lane_undecided").Connect("lane_slot", "sum_slot").Connect("lane_beat", "sum_beat").
		Connect("member", "beat_members").Connect("sum_lanes", "lanes_written").Connect("sum_result", "lane_result").
		Connect("select", "exact_lane").Connect("operand_valid", "exact_valid").Connect("operand_last", "exact_last").
		Connect("done", "exact_done").Connect("found", "undecided")

	m.Instance("agg_exact_select", "u_exact_select", "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("ELEM_BITS", fmt.Sprint(b.ResultBits)).
		Connect("select", "exact_lane").
		Connect("beat", "lane_sum").
		Connect("y", "exact_operand")
	m.Instance("agg_exact_unit", "u_exact_unit", "").
		Param("FRAC", fmt.Sprint(b.Result.Frac)).
		Connect("in_valid", "exact_valid").
		Connect("in_last", "exact_last").
		Connect("in_x", "exact_operand").
		Connect("done", "exact_done").
		Connect("y", "exact_result").
		Connect("over", "exact_over")
	m.Wire("lane_overs", b.Lanes, "of the lanes, or of the unit")
	m.Assign("lane_overs", fmt.Sprintf("(lane_over | {%d{lane_result && exact_over}}) & lanes_written", b.Lanes))
	m.Instance("agg_delay", "u_sum", "The address of a write comes before its sum.").
		Param("WIDTH", fmt.Sprint(b.ResultBeatBits+2*b.Lanes)).
		Param("CYCLES", "1").
		Connect("d", netlist.Concat("lane_sum", "lane_overs", "lanes_written")).
		Connect("q", netlist.Concat("sum", "sum_over", "sum_lanes"))
}
