package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// reader adds agg_reader, which reads complete slots.
func (b *coreBuilder) reader() {
	m := b.m
	m.Comment("-- Sum --")
	m.Wire("choice_slot", b.slotBits, "of the beat that is read next")
	m.Wire("begun", 1, "a slot's first beat was chosen")
	m.Wire("begun_slot", b.slotBits, "")
	begunJob := "begun_job"
	if b.Jobs == 1 && !b.Parent {
		begunJob = "unused_begun_job"
	}
	m.Wire(begunJob, b.jobBits, "")
	m.Wire("beat_slot", b.slotBits, "of the beat at the slot memories' outputs")
	m.Wire("beat_index", b.indexBits, "")
	m.Wire("beat_gen", 1, "its slot's generation")
	m.Wire("beat_job", b.jobBits, "")
	m.Wire("beat_chunk_end", 1, "the beat is its chunk's last")
	m.Comment("The pick, and results on their way out: their slots do not begin")
	for _, step := range []string{"pick", "label", "prep", "send"} {
		m.Wire(step+"_valid", 1, "")
		m.Wire(step+"_slot", b.slotBits, "")
	}
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
	i.Param("READ_LATENCY", fmt.Sprint(readLatency)).
		Connect("complete_slot", "e_slot").Connect("complete_job", "e_job").
		Connect("label_slot", "choice_slot").Connect("picked_valid", "label_valid").Connect("picked_slot", "label_slot").
		Connect("begun_job", begunJob).Connect("beat_last", "beat_chunk_end").
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
	m.Wire("sum_next", 1, "a sum comes two cycles later")
	m.Wire("sum_slot", b.slotBits, "its slot")
	m.Wire("sum_beat", b.indexBits, "")
	m.Wire("sum_gen", 1, "")
	m.Wire("sum_job", b.jobBits, "")
	m.Wire("sum_chunk_end", 1, "")
	if b.Lane.Shared != nil {
		b.undecided()
		return
	}
	b.lanes("sum", "sum_over", "")
	b.tags("beat_strobe", "sum_next", "The tag leaves two cycles before its sum.", b.passage()-2, nil)
}

// lanes adds a lane for every element of a beat and connects the outputs to the
// given wires.
func (b *coreBuilder) lanes(sum, over, undecided string) {
	i := b.m.Loop("g_lane", "l", 0, b.Lanes).Instance("agg_lane", "u_lane", "")
	for p := range b.Inputs() {
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
	case b.Lanes == 1 && b.Inputs() == 1:
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

// passage returns the cycles from the memories' output to the lanes' outputs: two for the gate, and
// the lane's latency.
func (p *Plan) passage() int { return 2 + p.Lane.Latency }

// tag is a field that travels beside a beat through the lanes.
type tag struct {
	beat, sum string // the wires before and after
	width     int
}

// tags delays a beat's tag. more are fields in addition to those that every card has.
func (b *coreBuilder) tags(beat, sum, comment string, cycles int, more []tag) {
	all := append([]tag{
		{"beat_slot", "sum_slot", b.slotBits},
		{"beat_index", "sum_beat", b.indexBits},
		{"beat_gen", "sum_gen", 1},
		{"beat_job", "sum_job", b.jobBits},
		{"beat_chunk_end", "sum_chunk_end", 1},
	}, more...)
	var in, out []string
	width := 0
	for _, t := range all {
		in, out = append(in, t.beat), append(out, t.sum)
		width += t.width
	}
	b.m.Instance("agg_tag_delay", "u_sum_tag", comment).
		Param("WIDTH", fmt.Sprint(width)).
		Param("CYCLES", fmt.Sprint(cycles)).
		Connect("in_valid", beat).
		Connect("in_tag", netlist.Concat(in...)).
		Connect("out_valid", sum).
		Connect("out_tag", netlist.Concat(out...))
}
