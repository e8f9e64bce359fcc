package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// cache adds the result cache and its writer.
func (b *coreBuilder) cache() {
	m := b.m
	m.Comment("-- Result cache --")
	m.Wire("sum_nonfinite", b.Lanes, "elements that are a NaN or an infinity")
	m.Wire("cache_wr_en", 1, "the sum is in the next cycle")
	m.Wire("cache_wr_slot", b.slotBits, "")
	m.Wire("cache_wr_beat", b.indexBits, "")
	m.Wire("cache_sum_slot", b.slotBits, "of the present sum")
	m.Wire("written", 1, "a sum was written in the last cycle")
	written := "written_job"
	if b.Jobs == 1 {
		written = "unused_written_job"
	}
	m.Wire(written, b.jobBits, "")
	m.Wire("written_vid", 32, "")
	m.Wire("nonfinite", b.countBits, "in the next cycle: its elements that are a NaN or an infinity")
	m.Wire("overflow", b.countBits, "and its elements that overflowed")
	m.Wire("send_read_slot", b.slotBits, "")
	m.Wire("send_beat", b.indexBits, "")
	m.Wire("query_slot", b.slotBits, "is this beat in the cache?")
	m.Wire("query_gen", 1, "")
	m.Wire("query_beat", b.indexBits, "")
	m.Wire("after_slot", b.slotBits, "the beat after it")
	m.Wire("after_gen", 1, "")
	m.Wire("after_beat", b.indexBits, "")
	m.Wire("query_after", 1, "ask about that instead")
	m.Wire("query_written", 1, "one cycle later: it is")
	m.Comment("The core's output, before its last register")
	m.Wire("out_tvalid", 1, "")
	m.Wire("out_tready", 1, "")
	b.wires("out_", b.outFields())

	again, whole, passes, marks := "1'b0", "1'b1", "0", "sum_nonfinite"
	if b.Lane.Shared != nil {
		again, whole, passes, marks = "lane_again", "sum_whole", "1", "lane_nonfinite"
		m.Wire(marks, b.Lanes, "")
		m.Assign("sum_nonfinite", "lane_nonfinite & sum_lanes")
	}
	b.nonfinite(m.Body, b.Result, "u_nonfinite_sum", "sum", marks)

	i := m.Instance("agg_writer", "u_writer", "").Param("LANES", fmt.Sprint(b.Lanes))
	b.params(i, "JOB_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Param("COUNT_BITS", fmt.Sprint(b.countBits)).Param("PASSES", passes).
		Connect("next_valid", "sum_next").Connect("next_again", again).Connect("next_whole", whole).
		Connect("next_last", "sum_chunk_end").Connect("next_slot", "sum_slot").Connect("next_gen", "sum_gen").
		Connect("next_job", "sum_job").Connect("next_beat", "sum_beat").
		Connect("written_job", written).Connect("sum_slot", "cache_sum_slot").
		Connect("wr_en", "cache_wr_en").Connect("wr_slot", "cache_wr_slot").Connect("wr_beat", "cache_wr_beat")

	in, lanes, enable := m.Body, b.Lanes, "cache_wr_en"
	of := func(beat string) string { return beat }
	if b.Lane.Shared != nil { // an undecided lane is written later than others
		in, lanes = m.Loop("g_cache", "l", 0, b.Lanes).Body, 1
		enable += " && " + b.ofLane("lanes_written", 1)
		of = func(beat string) string { return b.ofLane(beat, b.ResultBits) }
	}
	in.Instance("agg_cache", "u_cache", "").
		Param("WIDTH", fmt.Sprint(lanes*b.ResultBits)).
		Param("ADDR_BITS", fmt.Sprint(b.slotBits+b.indexBits)).
		Connect("wr_en", enable).
		Connect("wr_addr", netlist.Concat("cache_wr_slot", "cache_wr_beat")).
		Connect("wr_data", of("sum")).
		Connect("rd_addr", netlist.Concat("send_read_slot", "send_beat")).
		Connect("hold", "out_tvalid && !out_tready").
		Connect("shift", "out_tready").
		Connect("blank", "!out_tpayload").
		Connect("data", of("m_axis_tdata"))
}

// nonfinite adds the logic that marks the elements of a beat that are a NaN or an
// infinity. Integers are always finite.
func (b *coreBuilder) nonfinite(in *netlist.Body, f Format, name, beat, marks string) {
	if !f.Float() {
		in.Assign(marks, fmt.Sprintf("%d'd0", b.Lanes))
		return
	}
	f.shape(in.Instance("agg_fp_nonfinite", name, "").Param("LANES", fmt.Sprint(b.Lanes))).
		Connect("beat", beat).
		Connect("nonfinite", marks)
}
