package plan

import (
	"fmt"
	"strings"

	"tributary/hwgen/netlist"
)

// requestField is a field of a request for a commit.
type requestField struct {
	name  string
	width int
}

// requestFields lists the fields of a request from the highest bits on, as agg_commit takes them.
var requestFields = []requestField{
	{"entered", 1},
	{"writable", 1},
	{"nonfinite", 1},
	{"bad", 1},
	{"whole", 1},
	{"length", 16},
	{"vid", 32},
	{"rank", 8},
	{"epoch", 16},
	{"format", 8},
	{"job", 8},
	{"ecn", 2},
	{"kind", 4},
	{"version", 4},
}

// requestBits is the width of a request.
var requestBits = func() (sum int) {
	for _, f := range requestFields {
		sum += f.width
	}
	return sum
}()

// events declares the wires that tell all parts of the core what has happened.
func (b *coreBuilder) events() {
	m := b.m
	m.Comment("-- Events, for one cycle each --")
	m.Comment("A packet, or an overdue slot, was judged (agg_slots)")
	b.wires("", []jobWire{
		{"judged", b.Workers, "a packet: its port, one hot"},
		{"e_port", b.portBits, "its port"},
		{"e_slot", b.slotBits, "its slot, or the overdue one"},
		{"e_job", b.jobBits, ""},
		{"e_number", 8, "the packet's job, as in its header"},
		{"e_epoch", 16, ""},
		{"e_rank", 8, ""},
		{"e_rank_bit", b.Workers, "the rank, one hot"},
		{"e_vid", 32, ""},
		{"e_gen", 1, "the slot's generation"},
		{"turn_over", 1, "the slot advances to a new VID"},
		{"store", 1, "the payload is stored"},
		{"store_ce", 1, "it is marked CE"},
		{"store_nonfinite", 1, "it has a NaN or an infinity"},
		{"owe", 1, "the sender is owed the result"},
		{"complete", 1, "the slot closes, and is summed"},
		{"complete_ports", b.Workers, "ports in the sum"},
		{"complete_vid", 32, ""},
		{"complete_ecn", 2, ""},
		{"complete_nonfinite", 1, ""},
		{"timer_start", 1, "the slot's deadline starts"},
		{"timer_stop", 1, "the slot has no deadline"},
		{"acted", 1, "the overdue slot's deadline starts again"},
		{"overdue", 1, "it still waits"},
		{"evict", b.Workers, "ports to evict"},
		{"notice", 1, "the members get a notice"},
		{"notice_ports", b.Workers, ""},
		{"notice_code", 8, ""},
		{"notice_vid", 32, ""},
		{"asked", 1, "an ask is accepted"},
		{"finished", 1, "a finish is accepted"},
		{"answer", 1, "a status answers the ask or finish"},
		{"answer_code", 8, ""},
		{"answer_ports", b.Workers, "that it names, or that were evicted"},
		{"answer_mask", b.maskBits(), fmt.Sprintf("their ranks, %s later", cycles(b.rankStages()))},
		{"refused", 1, "the packet is refused"},
		{"refused_code", 8, ""},
		{"refused_answer", 1, "a status may answer it"},
	})
	if b.Parent {
		m.Wire("taken", 1, "a final sum is stored, with complete")
		m.Wire("again", 1, "a member repeats while the slot waits for the final sum")
		m.Wire("answer_ranks", b.Workers, "ranks of answer_ports in the job, likewise")
	}
	m.Comment("A slot was summed (agg_writer)")
	m.Wire("reduces", 1, "in the next cycle: reduced")
	b.wires("reduced", []jobWire{
		{"", 1, ""},
		{"_slot", b.slotBits, ""},
		{"_gen", 1, "its generation"},
		{"_job", b.jobBits, ""},
	})
}

// cycles writes a number of cycles.
func cycles(n int) string {
	if n == 1 {
		return "1 cycle"
	}
	return fmt.Sprintf("%d cycles", n)
}

// commits adds the commit, which judges one packet, or one overdue slot, every second cycle.
func (b *coreBuilder) commits() {
	b.m.Comment("-- Commit --")
	b.arbiter()
	b.commit()
	b.slots()
	b.deadlines()
	if !b.Parent {
		b.portRanks("u_named", "e_job", "answer_ports", "answer_mask")
		return
	}
	b.portRanks("u_named", "e_job", "answer_ports", "answer_ranks")
	b.upMasks("u_named_global", "e_job", "answer_ports", "up_notice", "up_code == 8'd0 ? 64'd0 : up_mask", "answer_mask")
}

// wires declares wires of one prefix.
func (b *coreBuilder) wires(prefix string, wires []jobWire) {
	for _, w := range wires {
		b.m.Wire(prefix+w.name, w.width, w.doc)
	}
}

// arbiter adds agg_arbiter, which picks the next operation.
func (b *coreBuilder) arbiter() {
	m := b.m
	m.Wire("slow", 1, "too many results are being owed")
	m.Wire("act_valid", 1, "a slot is overdue")
	m.Wire("act_slot", b.slotBits, "")
	m.Wire("act_job", b.jobBits, "")
	m.Wire("act_grant", 1, "")
	m.Wire("act_ok", 1, "the slot's timer still runs")
	b.wires("granted_", []jobWire{
		{"valid", 1, "a packet's header is checked from this cycle on"},
		{"act", 1, "an overdue slot instead"},
		{"ports", b.Inputs(), "the packet's port, one hot"},
		{"port", b.inputBits, ""},
		{"request", requestBits, ""},
		{"slot", b.slotBits, "the overdue slot"},
		{"job", b.jobBits, "its job"},
	})
	i := m.Instance("agg_arbiter", "u_arbiter", "")
	b.inputParams(i, "PORTS", "PORT_BITS", "JOB_BITS", "SLOT_BITS")
	i.Param("WIDTH", fmt.Sprint(requestBits)).
		Connect("hold", "hold_commits").
		Connect("req_data", "requests").
		Connect("out_valid", "granted_valid").
		Connect("out_act", "granted_act").
		Connect("out_ports", "granted_ports").
		Connect("out_port", "granted_port").
		Connect("out_data", "granted_request").
		Connect("out_slot", "granted_slot").
		Connect("out_job", "granted_job")
}

// commit adds agg_commit, which checks a packet against its job.
func (b *coreBuilder) commit() {
	m := b.m
	b.wires("read", []jobWire{
		{"", 1, "a slot is read"},
		{"_row", b.rowBits, "the slot and its neighbour, by one window"},
		{"_slot", b.slotBits, ""},
		{"_other", b.slotBits, ""},
		{"_vid", 32, ""},
		{"_window", b.slotBits, ""},
		{"_mask", b.slotBits, ""},
		{"_first", 32, ""},
	})
	b.wires("checked_", []jobWire{
		{"act", 1, "an overdue slot"},
		{"refuse", 1, "the packet fails a check"},
		{"data", 1, ""},
		{"ask", 1, ""},
		{"finish", 1, ""},
		{"code", 8, ""},
		{"belongs", 1, "the packet's rank is its port's"},
		{"of_data", 1, ""},
		{"placed", 1, ""},
		{"ended", 1, ""},
		{"writable", 1, "the packet's payload was written"},
		{"nonfinite", 1, ""},
		{"ecn", 2, ""},
		{"number", 8, "of the job"},
		{"job", b.jobBits, ""},
		{"epoch", 16, ""},
		{"rank", 8, ""},
		{"ports", b.Workers, "the packet's port, one hot"},
		{"port", b.portBits, ""},
		{"member", b.Workers, "ports that the job waits for"},
		{"evicted", b.Workers, ""},
		{"partial", 1, ""},
	})
	i := m.Instance("agg_commit", "u_commit", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS", "SLOT_BITS", "ROW_BITS")
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Format.Format))
	prefixed(i, "granted_", "valid", "act", "request")
	i.Connect("ports", b.workers("granted_ports", 1)).Connect("port", b.grantedPort())
	i.Connect("act_slot", "granted_slot").Connect("act_job", "granted_job")
	prefixed(i, "checked_", "data", "ask", "finish", "code", "belongs", "of_data", "placed", "ended", "writable",
		"nonfinite", "ecn", "epoch", "rank", "partial")
	i.Connect("acts", "checked_act").Connect("refused", "checked_refuse").
		Connect("job", "checked_number").Connect("index", "checked_job").
		Connect("from_ports", "checked_ports").Connect("from_port", "checked_port").
		Connect("waits_for", "checked_member").Connect("gone", "checked_evicted")
}

// slots adds agg_slots, which holds the state of every slot.
func (b *coreBuilder) slots() {
	m := b.m
	if b.Parent {
		b.upCommit()
	}
	i := m.Instance("agg_slots", "u_slots", "")
	b.params(i, "PORTS", "PORT_BITS", "JOB_BITS", "SLOT_BITS", "ROW_BITS")
	if b.Parent {
		prefixed(i, "checked_", "act")
		i.Connect("refuse", "checked_refuse && !up_checked_valid").Connect("settle", "up_checked_sum").
			Connect("nonfinite", "up_checked_marked ? up_checked_nonfinite : checked_nonfinite").
			Connect("tree", b.ofJob("job_tree", 1, "checked_job"))
	} else {
		prefixed(i, "checked_", "act", "refuse", "nonfinite")
	}
	prefixed(i, "checked_", "data", "ask", "finish", "code", "belongs", "of_data", "placed", "ended",
		"writable", "ecn", "number", "job", "epoch", "rank", "ports", "port", "member", "evicted", "partial")
	b.decodeJob("e_jobs", "e_job")
	m.Assign("e_rank_bit", fmt.Sprintf("%d'd1 << %s", b.Workers, netlist.Slice("e_rank", 0, b.portBits)))
}

// grantedPort returns the number of the port of a request, without the bit that only the up port has.
func (b *coreBuilder) grantedPort() string {
	if b.inputBits == b.portBits {
		return "granted_port"
	}
	b.m.Wire("unused_granted", 1, "only the up port has it")
	b.m.Assign("unused_granted", netlist.Slice("granted_port", b.portBits, 1))
	return netlist.Slice("granted_port", 0, b.portBits)
}

// maskBits returns the width of the masks in results and statuses: ranks in the job, or global ones.
func (b *coreBuilder) maskBits() int {
	if b.Parent {
		return 64
	}
	return b.Workers
}

// deadlines adds agg_deadlines, which finds overdue slots.
func (b *coreBuilder) deadlines() {
	i := b.m.Instance("agg_deadlines", "u_deadlines", "").
		Connect("slot", "e_slot").Connect("job", "e_job").
		Connect("start", "timer_start").Connect("stop", "timer_stop")
	b.params(i, "JOBS", "JOB_BITS", "SLOT_BITS")
}

// request concatenates the fields of a request, in the loop over the ports.
func request() string {
	var fields []string
	for _, f := range requestFields {
		fields = append(fields, "req_"+f.name)
	}
	return "{" + strings.Join(fields, ", ") + "}"
}
