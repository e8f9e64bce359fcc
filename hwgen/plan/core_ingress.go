package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// portWires declares the wires that all ports share.
func (b *coreBuilder) portWires() {
	m := b.m
	m.Comment("Signals to all ports")
	m.Wire("slot", b.slotBits, "of the packet in the commit, or the overdue slot")
	m.Wire("commit_store", 1, "the packet is stored")
	m.Wire("resolve", b.Workers, "the port's written data is stored or dropped")
	m.Wire("reduced", 1, "a slot has been summed")
	m.Wire("sum_slot", b.slotBits, "the summed slot")
	m.Wire("sum_job", b.jobBits, "its job")
	m.Wire("req_valid", b.Workers, "ports that request a commit")
	m.Wire("req_grant", b.Workers, "")
	m.Wire("rd_en", 1, "reads all slot memories")
	m.Wire("rd_slot", b.slotBits, "")
	m.Wire("rd_beat", b.indexBits, "")
	m.Wire("beat_members", b.Workers, "ports in the sum of the beat at the lanes")
}

// ingress adds one port's input, its slot memory, and the gate that keeps an
// absent port out of the sums.
func (b *coreBuilder) ingress(p int) {
	m := b.m
	m.Comment(fmt.Sprintf("-- Port %d --", p))
	of := func(name string) string { return fmt.Sprintf("p%d_%s", p, name) }
	nonfinite, request := of("nonfinite"), of("request")
	wrEn, wrSlot, wrBeat, wrData := of("wr_en"), of("wr_slot"), of("wr_beat"), of("wr_data")
	stored, gated := of("stored"), of("gated")
	m.Wire(nonfinite, b.Lanes, "elements that are a NaN or an infinity")
	m.Wire(request, requestBits, "for a commit")
	m.Wire(wrEn, 1, "")
	m.Wire(wrSlot, b.slotBits, "")
	m.Wire(wrBeat, b.indexBits, "")
	m.Wire(wrData, b.BeatBits, "")
	m.Wire(stored, b.BeatBits, "the slot memory's output")
	m.Wire(gated, b.Lanes*b.operandBits(), "the lanes' operands")

	b.nonfinite(b.Format, fmt.Sprintf("u_nonfinite_p%d", p), axis("s", p, "tdata"), nonfinite)

	i := m.Instance("agg_ingress", fmt.Sprintf("u_ingress_p%d", p), "")
	b.params(i, "BEAT_BITS", "JOBS", "JOB_BITS", "SLOT_BITS", "INDEX_BITS")
	for _, signal := range []string{"tdata", "tkeep", "tvalid", "tready", "tlast", "tuser"} {
		i.Connect("s_axis_"+signal, axis("s", p, signal))
	}
	i.Connect("s_nonfinite", "|"+nonfinite).
		Connect("wr_en", wrEn).Connect("wr_slot", wrSlot).Connect("wr_beat", wrBeat).Connect("wr_data", wrData).
		Connect("req_valid", bit("req_valid", p, b.Workers)).
		Connect("req_grant", bit("req_grant", p, b.Workers)).
		Connect("req_data", request).
		Connect("resolve", bit("resolve", p, b.Workers)).
		Connect("resolve_slot", "slot").Connect("resolve_stored", "commit_store").
		Connect("reduced_slot", "sum_slot")

	b.ram(fmt.Sprintf("u_slots_p%d", p), b.BeatBits, false).
		Connect("wr_en", wrEn).Connect("wr_addr", netlist.Concat(wrSlot, wrBeat)).Connect("wr_data", wrData).
		Connect("rd_addr", netlist.Concat("rd_slot", "rd_beat")).Connect("rd_data", stored)

	if b.Lane.Shared != nil {
		b.sharedGate(p, stored, gated)
		return
	}
	m.Instance("agg_gate", fmt.Sprintf("u_gate_p%d", p), "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("ELEM_BITS", fmt.Sprint(b.ElemBits)).
		Param("IDENTITY", b.identity(b.Format)).
		Connect("enable", bit("beat_members", p, b.Workers)).
		Connect("x", stored).
		Connect("y", gated)
}
