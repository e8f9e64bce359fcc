package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// ingress adds the input of each port, its slot memory, and the gate that keeps an absent port
// out of the sums.
func (b *coreBuilder) ingress() {
	m := b.m
	m.Comment("-- Ports --")
	m.Wire("req_valid", b.Inputs(), "ports that request a commit")
	m.Wire("req_grant", b.Inputs(), "the port's request is taken")
	m.Wire("requests", b.Inputs()*requestBits, "")
	m.Wire("rd_en", 1, "reads all slot memories")
	m.Wire("rd_slot", b.slotBits, "")
	m.Wire("rd_beat", b.indexBits, "")
	m.Wire("beat_members", b.Inputs(), "ports in the sum of the beat at the memories' outputs")
	tuser, judged, kept := "s_axis_tuser", "judged", "store"
	if b.Parent {
		m.Wire("label_members", b.Inputs(), "its label; that of a final sum has the up port")
		m.Assign("beat_members", netlist.Concat(b.upPort("label_members", 1),
			fmt.Sprintf("label_members[0+:%d] & {%d{!%s}}", b.Workers, b.Workers, b.upPort("label_members", 1))))
		b.upReceive()
		tuser, judged, kept = "in_tuser", "in_judged", "store || taken"
	}
	stored := "stored"
	if b.Lane.Shared != nil {
		m.Wire("operands", b.Inputs()*b.operandBeatBits(), "the slot memories' outputs, in the result's format")
		stored = b.ofPort("operands", b.operandBeatBits())
	}
	m.Wire("gated", b.Inputs()*b.operandBeatBits(), "the lanes' operands")

	in := m.Loop("g_port", "p", 0, b.Inputs())
	in.Wire("s_nonfinite", b.Lanes, "elements that are a NaN or an infinity")
	in.Wire("wr_en", 1, "")
	in.Wire("wr_slot", b.slotBits, "")
	in.Wire("wr_beat", b.indexBits, "")
	in.Wire("wr_data", b.BeatBits, "")
	if b.operandBeatBits() != b.BeatBits || b.Lane.Shared == nil {
		in.Wire("stored", b.BeatBits, "the slot memory's output")
	}
	b.nonfinite(in.Body, b.Format, "u_nonfinite", b.ofPort("s_axis_tdata", b.BeatBits), "s_nonfinite")

	for _, f := range requestFields {
		in.Wire("req_"+f.name, f.width, "")
	}
	i := in.Instance("agg_ingress", "u_ingress", "")
	b.params(i, "LANES", "BEAT_BITS", "JOBS", "JOB_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Connect("s_axis_tdata", b.ofPort("s_axis_tdata", b.BeatBits)).
		Connect("s_axis_tkeep", b.ofPort("s_axis_tkeep", b.KeepBits)).
		Connect("s_axis_tvalid", b.ofPort("s_axis_tvalid", 1)).
		Connect("s_axis_tready", b.ofPort("s_axis_tready", 1)).
		Connect("s_axis_tlast", b.ofPort("s_axis_tlast", 1)).
		Connect("s_axis_tuser", b.ofPort(tuser, coreHeaderBits)).
		Connect("s_nonfinite", "s_nonfinite").
		Connect("req_valid", b.ofPort("req_valid", 1)).
		Connect("req_grant", b.ofPort("req_grant", 1)).
		Connect("judged", b.ofPort(judged, 1)).Connect("judged_stored", kept)
	in.Assign(b.ofPort("requests", requestBits), request())

	if b.operandBeatBits() == b.BeatBits {
		b.slotMemory(in, stored)
	} else {
		b.slotMemory(in, "stored")
		b.extend(in, stored)
	}
	if b.Lane.Shared != nil {
		b.sharedGates()
		return
	}
	in.Instance("agg_gate", "u_gate", "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("ELEM_BITS", fmt.Sprint(b.ElemBits)).
		Param("IDENTITY", b.identity(b.Format)).
		Connect("enable", b.ofPort("beat_members", 1)).
		Connect("x", stored).
		Connect("y", b.ofPort("gated", b.BeatBits))
}

// slotMemory adds the slot memory of a port. A word is written before its slot is complete, and read
// for use only after.
func (b *coreBuilder) slotMemory(in *netlist.Loop, stored string) {
	in.Instance("agg_ram", "u_memory", "").
		Param("WIDTH", fmt.Sprint(b.BeatBits)).
		Param("ADDR_BITS", fmt.Sprint(b.slotBits+b.indexBits)).
		Param("APART", "1").
		Connect("wr_addr", netlist.Concat("wr_slot", "wr_beat")).
		Connect("rd_addr", netlist.Concat("rd_slot", "rd_beat")).
		Connect("rd_data", stored)
}

// ofPort selects the element of a vector for a port, in a loop over the ports.
func (b *coreBuilder) ofPort(name string, width int) string {
	return element(name, width, b.Inputs(), "p")
}

// operandBeatBits returns the width of a beat of operands for the lanes.
func (b *coreBuilder) operandBeatBits() int { return b.Lanes * b.operandBits() }
