package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// reader adds what reads complete slots.
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

// sums adds what is between the slot memories and the cache: a lane for every
// element of a beat, the tags beside them, and what the sum shares among them.
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

// tags adds what delays the tag of a beat as gates and lanes delay the beat, less
// a cycle.
func (b *coreBuilder) tags(inValid, in, valid, out string, width int) {
	b.m.Instance("agg_tag_delay", "u_sum_tag", "The tag comes out a cycle before its sum.").
		Param("WIDTH", fmt.Sprint(width)).
		Param("CYCLES", fmt.Sprint(b.passage()-1)).
		Connect("in_valid", inValid).
		Connect("in_tag", in).
		Connect("out_valid", valid).
		Connect("out_tag", out)
}

// cache adds what keeps the results.
func (b *coreBuilder) cache() {
	m := b.m
	m.Comment("-- Result cache --")
	m.Wire("sum_nonfinite", b.Lanes, "elements that are a NaN or an infinity")
	m.Wire("begun", 1, "a result begins to be written")
	m.Wire("cache_wr_en", 1, "")
	m.Wire("cache_wr_slot", b.slotBits, "")
	m.Wire("cache_wr_beat", b.indexBits, "")
	m.Wire("nonfinite", b.countBits, "elements of the sum before that are a NaN or an infinity")
	m.Wire("overflow", b.countBits, "those that overflowed")
	m.Wire("send_en", 1, "a beat is read to be sent")
	m.Wire("send_beat", b.indexBits, "")
	m.Wire("send_written", 1, "it is there")

	whole, marks := "1'b1", "sum_nonfinite"
	if b.Lane.Shared != nil {
		whole, marks = "sum_whole", "lane_nonfinite"
		m.Wire(marks, b.Lanes, "")
		m.Assign("sum_nonfinite", "lane_nonfinite & sum_lanes")
	}
	b.nonfinite(b.Result, "u_nonfinite_sum", "sum", marks)

	i := m.Instance("agg_writer", "u_writer", "")
	i.Param("LANES", fmt.Sprint(b.Lanes))
	b.params(i, "SLOT_BITS", "INDEX_BITS")
	i.Param("COUNT_BITS", fmt.Sprint(b.countBits))
	i.Connect("next_valid", "sum_next").Connect("next_whole", whole).Connect("next_slot", "sum_slot").Connect("next_beat", "sum_beat").
		Connect("next_last", b.ofJob("job_last", b.indexBits, "sum_job")).
		Connect("wr_en", "cache_wr_en").Connect("wr_slot", "cache_wr_slot").Connect("wr_beat", "cache_wr_beat").
		Connect("query_slot", "send_slot").Connect("query_beat", "send_beat").Connect("query_written", "send_written")

	if b.Lane.Shared == nil {
		b.cacheRAM("u_cache", "cache_wr_en", 0, b.Lanes)
		return
	}
	for l := range b.Lanes {
		b.cacheRAM(fmt.Sprintf("u_cache_%d", l), "cache_wr_en && "+bit("sum_lanes", l, b.Lanes), l, 1)
	}
}

// cacheRAM adds the memory of some neighbouring lanes' results.
func (b *coreBuilder) cacheRAM(name, enable string, first, lanes int) {
	of := func(beat string) string {
		if lanes == b.Lanes {
			return beat
		}
		return netlist.Slice(beat, first*b.ResultBits, lanes*b.ResultBits)
	}
	b.ram(name, lanes*b.ResultBits, true).
		Connect("wr_en", enable).
		Connect("wr_addr", netlist.Concat("cache_wr_slot", "cache_wr_beat")).
		Connect("wr_data", of("sum")).
		Connect("rd_en", "send_en").
		Connect("rd_addr", netlist.Concat("send_slot", "send_beat")).
		Connect("rd_data", of("m_axis_tdata"))
}

// nonfinite adds what marks the elements of a beat that are a NaN or an
// infinity; an integer never is.
func (b *coreBuilder) nonfinite(f Format, name, beat, marks string) {
	if !f.Float() {
		b.m.Assign(marks, fmt.Sprintf("%d'd0", b.Lanes))
		return
	}
	f.shape(b.m.Instance("agg_fp_nonfinite", name, "").Param("LANES", fmt.Sprint(b.Lanes))).
		Connect("beat", beat).
		Connect("nonfinite", marks)
}
