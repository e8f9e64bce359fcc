package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// commits adds the commit, which accepts or refuses one packet a cycle.
func (b *coreBuilder) commits() {
	b.m.Comment("-- Commit --")
	b.arbiter()
	b.commit()
	b.slotWires()
	b.deadlines()
	b.slots()
	b.portRanks("u_named", "commit_index", "answer_ports", "answer_mask")
}

// arbiter adds agg_arbiter, which chooses the next packet among the ports'.
func (b *coreBuilder) arbiter() {
	m := b.m
	m.Wire("granted_valid", 1, "checks a packet's header; the commit follows in the next cycle")
	m.Wire("granted_ports", b.Workers, "the packet's port, one hot")
	m.Wire("granted_port", b.portBits, "")
	m.Wire("granted_request", requestBits, "")
	m.Wire("pause", 1, "a slot is overdue")
	m.Wire("act_next", 1, "agg_slots acts on it in the next cycle")
	m.Wire("act_slot", b.slotBits, "")
	m.Wire("act_job", b.jobBits, "")
	i := m.Instance("agg_arbiter", "u_arbiter", "")
	b.params(i, "PORTS", "PORT_BITS")
	i.Param("WIDTH", fmt.Sprint(requestBits)).
		Connect("hold", "quiet || pause").
		Connect("req_data", "requests").
		Connect("out_valid", "granted_valid").
		Connect("out_ports", "granted_ports").
		Connect("out_port", "granted_port").
		Connect("out_data", "granted_request")
	m.Assign("unjudged", "|req_valid")
}

// commit adds agg_commit, which checks a packet against its job.
func (b *coreBuilder) commit() {
	m := b.m
	m.Wire("commit_refuse", 1, "the packet fails a check")
	m.Wire("commit_code", 8, "")
	m.Wire("commit_belongs", 1, "the packet's rank is its port's")
	m.Wire("commit_data", 1, "")
	m.Wire("commit_ask", 1, "")
	m.Wire("commit_writable", 1, "the packet's payload was written")
	m.Wire("commit_nonfinite", 1, "")
	m.Wire("commit_ecn", 2, "")
	m.Wire("commit_job", 8, "")
	m.Wire("commit_epoch", 16, "")
	m.Wire("commit_rank", 8, "")
	m.Wire("commit_vid", 32, "")
	m.Wire("commit_ports", b.Workers, "the packet's port, one hot")
	m.Wire("commit_port", b.portBits, "")
	i := m.Instance("agg_commit", "u_commit", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS", "SLOT_BITS")
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Format.Format))
	prefixed(i, "granted_", "valid", "ports", "port", "request")
	prefixed(i, "commit_", "code", "belongs", "data", "ask", "finish", "writable", "nonfinite", "ecn", "job", "index",
		"epoch", "rank", "vid")
	i.Connect("refused", "commit_refuse").Connect("from_ports", "commit_ports").Connect("from_port", "commit_port")
	b.decodeJob("commit_jobs", "commit_index")
	m.Assign("commit_rank_bit", fmt.Sprintf("%d'd1 << %s", b.Workers, netlist.Slice("commit_rank", 0, b.portBits)))
}

// slotWires declares the outputs of agg_slots for a packet and for an overdue slot.
func (b *coreBuilder) slotWires() {
	m := b.m
	m.Wire("turn_over", 1, "the slot advances to a new VID")
	m.Wire("store_ce", 1, "")
	m.Wire("store_nonfinite", 1, "")
	m.Wire("owe", 1, "the card owes the sender the result")
	m.Wire("complete", 1, "closes the slot")
	m.Wire("complete_ports", b.Workers, "")
	m.Wire("complete_vid", 32, "")
	m.Wire("complete_ecn", 2, "")
	m.Wire("complete_nonfinite", 1, "")
	m.Wire("asked", 1, "an ask is accepted")
	m.Wire("answer", 1, "a status answers an ask or a finish")
	m.Wire("answer_code", 8, "")
	m.Wire("answer_ports", b.Workers, "ports with a missing contribution, or evicted ports")
	m.Wire("act", 1, "the slot is overdue")
	m.Wire("stall", 1, "the slot cannot advance although a packet requires it")
	m.Wire("overdue", 1, "")
	m.Wire("notice", 1, "sends a notice")
	m.Wire("notice_ports", b.Workers, "to these ports")
	m.Wire("notice_code", 8, "")
	m.Wire("notice_vid", 32, "")
}

// deadlines adds agg_deadlines, which finds overdue slots.
func (b *coreBuilder) deadlines() {
	i := b.m.Instance("agg_deadlines", "u_deadlines", "").Connect("job", "commit_index").Connect("close", "complete")
	b.params(i, "JOBS", "JOB_BITS", "SLOT_BITS")
}

// slots adds agg_slots, which holds the state of every slot.
func (b *coreBuilder) slots() {
	m := b.m
	m.Wire("refused", 1, "")
	m.Wire("refused_code", 8, "")
	m.Wire("refused_answer", 1, "a status may answer the refused packet")
	i := m.Instance("agg_slots", "u_slots", "")
	b.params(i, "PORTS")
	i.Param("WINDOW", fmt.Sprint(b.Window))
	b.params(i, "SLOT_BITS")
	i.Param("ROW_BITS", fmt.Sprint(indexWidth(b.Window)))
	for _, w := range []jobWire{
		{"job_first", 32, ""}, {"job_window", b.slotBits, ""}, {"slot_mask", b.slotBits, ""}, {"slot_base", b.slotBits, ""},
		{"evicted", b.Workers, ""},
	} {
		i.Connect(w.name, b.ofJob(w.name, w.width, "commit_index"))
	}
	prefixed(i, "commit_", "refuse", "data", "ask", "finish", "code", "belongs", "ports", "vid", "ecn", "writable",
		"nonfinite")
	i.Connect("partial", b.ofJob("job_partial", 1, "commit_index")).
		Connect("member", b.ofJob("present", b.Workers, "commit_index")).
		Connect("reduced_slot", "sum_slot").
		Connect("store", "commit_store")
}
