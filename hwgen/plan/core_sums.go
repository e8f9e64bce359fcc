package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// reader adds agg_reader, which reads complete slots.
func (b *coreBuilder) reader() {
	m := b.m
	m.Comment("-- Sum --")
	m.Wire("send_slot", b.slotBits, "of the result that is being sent")
	m.Wire("beat_slot", b.slotBits, "beside what the slot memories give")
	m.Wire("beat_index", b.indexBits, "")
	stop, valid, slot, beat := "1'b0", "1'b0", fmt.Sprintf("%d'd0", b.slotBits), fmt.Sprintf("%d'd0", b.indexBits)
	strobe, pass, stalled := "beat_strobe", "unused_beat_pass", "unused_stalled"
	comment := "No beat is read again: one pass decides each."
	if b.Lane.Shared != nil {
		stop, valid, slot, beat = "stop", "again_valid", "again_slot", "again_beat"
		strobe, pass, stalled, comment = "beat_valid", "beat_pass", "stalled", ""
		m.Wire(stop, 1, "no new beat is read")
		m.Wire(valid, 1, "a beat is read once more, instead of a new one")
		m.Wire(slot, b.slotBits, "")
		m.Wire(beat, b.indexBits, "")
		m.Wire(strobe, 1, "")
	}
	m.Wire(pass, 1, "")
	m.Wire(stalled, 1, "a complete slot is not read because of beats that are not decided")
	if b.Lane.Shared != nil {
		m.Assign("beat_strobe", "beat_valid && !beat_pass")
	}
	i := m.Instance("agg_reader", "u_reader", comment)
	b.params(i, "JOBS", "JOB_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Connect("complete_slot", "slot").Connect("complete_job", "commit_index").Connect("sending_slot", "send_slot").
		Connect("reduced_job", "sum_job").
		Connect("stop", stop).
		Connect("again_valid", valid).
		Connect("again_slot", slot).
		Connect("again_beat", beat).
		Connect("beat_valid", strobe).Connect("beat_pass", pass).Connect("stalled", stalled)
}

// sums adds the path from the slot memories to the cache: a lane for every
// element of a beat, the tags beside them, and the unit that lanes share.
func (b *coreBuilder) sums() {
	m := b.m
	m.Wire("sum", b.ResultBeatBits, "of all ports, lane by lane")
	m.Wire("sum_over", b.Lanes, "elements that overflowed")
	m.Wire("sum_next", 1, "a sum comes in the next cycle")
	m.Wire("sum_beat", b.indexBits, "")
	if b.Lane.Shared != nil {
		b.undecided()
		return
	}
	b.lanes("sum", "sum_over", "")
	b.tags("beat_strobe", netlist.Concat("beat_slot", "beat_index"), "sum_next", netlist.Concat("sum_slot", "sum_beat"),
		b.slotBits+b.indexBits)
}

// lanes adds a lane for every element of a beat, with its outputs on the given
// wires.
func (b *coreBuilder) lanes(sum, over, undecided string) {
	for l := range b.Lanes {
		i := b.m.Instance("agg_lane", fmt.Sprintf("u_lane_%d", l), "")
		for p := range b.Workers {
			i.Connect(fmt.Sprintf("x_p%d", p), netlist.Slice(fmt.Sprintf("p%d_gated", p), l*b.operandBits(), b.operandBits()))
		}
		i.Connect("y", netlist.Slice(sum, l*b.ResultBits, b.ResultBits)).
			Connect("over", bit(over, l, b.Lanes))
		if undecided != "" {
			i.Connect("undecided", bit(undecided, l, b.Lanes))
		}
	}
}

// passage is the cycles from the memories' output to the sum: through a gate,
// which takes one, and a lane.
func (p *Plan) passage() int { return 1 + p.Lane.Latency }

// tags adds the delay of a beat's tag: that of gates and lanes, less a cycle.
func (b *coreBuilder) tags(inValid, in, valid, out string, width int) {
	b.m.Instance("agg_tag_delay", "u_sum_tag", "The tag comes out a cycle before its sum.").
		Param("WIDTH", fmt.Sprint(width)).
		Param("CYCLES", fmt.Sprint(b.passage()-1)).
		Connect("in_valid", inValid).
		Connect("in_tag", in).
		Connect("out_valid", valid).
		Connect("out_tag", out)
}
