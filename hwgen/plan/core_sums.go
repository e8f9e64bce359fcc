package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// reader adds agg_reader, which reads complete slots.
func (b *coreBuilder) reader() {
	m := b.m
	m.Comment("-- Sum --")
	m.Wire("send_slot", b.slotBits, "of the result being sent")
	m.Wire("beat_slot", b.slotBits, "of the beat at the slot memories' outputs")
	m.Wire("beat_index", b.indexBits, "")
	stop, valid, slot, beat := "1'b0", "1'b0", fmt.Sprintf("%d'd0", b.slotBits), fmt.Sprintf("%d'd0", b.indexBits)
	strobe, pass, stalled := "beat_strobe", "unused_beat_pass", "unused_stalled"
	comment := "No beat is read again: one pass decides every beat."
	if b.Lane.Shared != nil {
		stop, valid, slot, beat = "stop", "again_valid", "again_slot", "again_beat"
		strobe, pass, stalled, comment = "beat_valid", "beat_pass", "stalled", ""
		m.Wire(stop, 1, "reads no new beat")
		m.Wire(valid, 1, "reads a beat again, instead of a new one")
		m.Wire(slot, b.slotBits, "")
		m.Wire(beat, b.indexBits, "")
		m.Wire(strobe, 1, "")
	}
	m.Wire(pass, 1, "")
	m.Wire(stalled, 1, "undecided beats delay the read of a complete slot")
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
// element of a beat, the delay of the tags, and the unit that the lanes share.
func (b *coreBuilder) sums() {
	m := b.m
	m.Wire("sum", b.ResultBeatBits, "of all ports, lane by lane")
	m.Wire("sum_over", b.Lanes, "elements that overflowed")
	m.Wire("sum_next", 1, "the next cycle has a sum")
	m.Wire("sum_beat", b.indexBits, "")
	if b.Lane.Shared != nil {
		b.undecided()
		return
	}
	b.lanes("sum", "sum_over", "")
	b.tags("beat_strobe", netlist.Concat("beat_slot", "beat_index"), "sum_next", netlist.Concat("sum_slot", "sum_beat"),
		b.slotBits+b.indexBits)
}

// lanes adds a lane for every element of a beat and connects the outputs to the
// given wires.
func (b *coreBuilder) lanes(sum, over, undecided string) {
	i := b.m.Loop("g_lane", "l", 0, b.Lanes).Instance("agg_lane", "u_lane", "")
	for p := range b.Workers {
		i.Connect(fmt.Sprintf("x_p%d", p), b.operand(p))
	}
	i.Connect("y", b.ofLane(sum, b.ResultBits)).Connect("over", b.ofLane(over, 1))
	if undecided != "" {
		i.Connect("undecided", b.ofLane(undecided, 1))
	}
}

// operand selects a port's element from the gates' outputs, in a loop over the lanes.
func (b *coreBuilder) operand(port int) string {
	first, width := port*b.operandBeatBits(), b.operandBits()
	switch {
	case b.Lanes == 1 && b.Workers == 1:
		return "gated"
	case b.Lanes == 1:
		return netlist.Slice("gated", first, width)
	case port == 0:
		return b.ofLane("gated", width)
	}
	return fmt.Sprintf("gated[%d+%d*l+:%d]", first, width, width)
}

// ofLane selects the element of a vector for a lane, in a loop over the lanes.
func (b *coreBuilder) ofLane(name string, width int) string {
	return element(name, width, b.Lanes, "l")
}

// passage returns the cycles from the memories' output to the sum: one for the
// gate, and the lane's latency.
func (p *Plan) passage() int { return 1 + p.Lane.Latency }

// tags delays a beat's tag by one cycle less than gates and lanes take.
func (b *coreBuilder) tags(inValid, in, valid, out string, width int) {
	b.m.Instance("agg_tag_delay", "u_sum_tag", "The tag leaves one cycle before its sum.").
		Param("WIDTH", fmt.Sprint(width)).
		Param("CYCLES", fmt.Sprint(b.passage()-1)).
		Connect("in_valid", inValid).
		Connect("in_tag", in).
		Connect("out_valid", valid).
		Connect("out_tag", out)
}
