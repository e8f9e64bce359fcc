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
	m.Wire("begun", 1, "the first beat of a result is written")
	m.Wire("cache_wr_en", 1, "")
	m.Wire("cache_wr_slot", b.slotBits, "")
	m.Wire("cache_wr_beat", b.indexBits, "")
	m.Wire("nonfinite", b.countBits, "elements of the previous sum that are a NaN or an infinity")
	m.Wire("overflow", b.countBits, "elements of the previous sum that overflowed")
	m.Wire("send_en", 1, "reads a beat for the egress")
	m.Wire("send_beat", b.indexBits, "")
	m.Wire("send_written", 1, "the beat is in the cache")

	whole, marks := "1'b1", "sum_nonfinite"
	if b.Lane.Shared != nil {
		whole, marks = "sum_whole", "lane_nonfinite"
		m.Wire(marks, b.Lanes, "")
		m.Assign("sum_nonfinite", "lane_nonfinite & sum_lanes")
	}
	b.nonfinite(b.Result, "u_nonfinite_sum", "sum", marks)

	i := m.Instance("agg_writer", "u_writer", "").Param("LANES", fmt.Sprint(b.Lanes))
	b.params(i, "SLOT_BITS", "INDEX_BITS")
	i.Param("COUNT_BITS", fmt.Sprint(b.countBits)).
		Connect("next_valid", "sum_next").Connect("next_whole", whole).
		Connect("next_slot", "sum_slot").Connect("next_beat", "sum_beat").
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

// nonfinite adds the logic that marks the elements of a beat that are a NaN or an
// infinity. Integers are always finite.
func (b *coreBuilder) nonfinite(f Format, name, beat, marks string) {
	if !f.Float() {
		b.m.Assign(marks, fmt.Sprintf("%d'd0", b.Lanes))
		return
	}
	f.shape(b.m.Instance("agg_fp_nonfinite", name, "").Param("LANES", fmt.Sprint(b.Lanes))).
		Connect("beat", beat).
		Connect("nonfinite", marks)
}
