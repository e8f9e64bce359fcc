package plan

import (
	"fmt"
	"math/bits"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// coreLatency is what the core adds to the lanes' latency: the port's
// register, the grant of the commit, its check, the slot's read, the gate behind the
// memories' output, and the egress's register.
const coreLatency = 7

// requestBits is the width of a commit's request; agg_ingress says what is in
// it.
const requestBits = 102

// coreBuilder holds the module agg_core while it is put together.
type coreBuilder struct {
	*Plan
	m *netlist.Module

	portBits  int // of a port's number
	jobBits   int // of a job's number
	slotBits  int // of a slot's number
	indexBits int // of a beat's number in its chunk
	countBits int // of a number of lanes
}

// core builds agg_core.
func (p *Plan) core() *netlist.Module {
	b := &coreBuilder{
		Plan:      p,
		m:         netlist.New("agg_core", ""),
		portBits:  indexWidth(p.Workers),
		jobBits:   indexWidth(p.Jobs),
		slotBits:  indexWidth(p.Slots),
		indexBits: indexWidth(p.Beats),
		countBits: indexWidth(p.Lanes + 1),
	}
	b.m.Doc = fmt.Sprintf(`The aggregator between AXI4-Stream ports.

Every port's chunks are stored in its slot memory; a slot that holds all members of its job is read
from all memories at once, summed lane by lane, and its result is kept in the cache and sent.

Into each port go data, ask and finish packets: the 14 bytes of the header stand in tuser[111:0]
on a packet's first beat, tuser[112] on its last says that the payload is bad. Packets without
payload are one beat with tkeep = 0. Out of m_axis come results and statuses: the 30 bytes of
the header stand in tuser during the whole packet, the ports that it is for in tdest. A
packet is begun only for ports that are ready, and m_axis_tready must then let it pass.

Latency from a chunk's last beat to its result's first: %d cycles, %d of them in the
lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets wait
to be judged. Not done here: framing and CRC, which are the shell's.`, p.Latency, p.SumLatency)
	b.ports()
	b.jobs()
	for port := range p.Workers {
		b.ingress(port)
	}
	b.commits()
	b.reader()
	b.sums()
	b.cache()
	b.egress()
	b.registers()
	b.note()
	return b.m
}

// ports declares the core's ports.
func (b *coreBuilder) ports() {
	m := b.m
	m.Input("clk", 1)
	m.Input("rst", 1)
	m.PortComment("The host; whether what it left behind is still at work")
	m.Input("link_down", 1)
	m.Output("hold", 1)
	m.Output("unjudged", 1)
	for p := range b.Workers {
		m.PortComment(fmt.Sprintf("Port %d, in", p))
		m.Input(axis("s", p, "tdata"), b.BeatBits)
		m.Input(axis("s", p, "tkeep"), b.KeepBits)
		m.Input(axis("s", p, "tvalid"), 1)
		m.Output(axis("s", p, "tready"), 1)
		m.Input(axis("s", p, "tlast"), 1)
		m.Input(axis("s", p, "tuser"), coreHeaderBits)
	}
	m.PortComment("Out, for all ports")
	m.Output("m_axis_tdata", b.ResultBeatBits)
	m.Output("m_axis_tkeep", b.ResultKeepBits)
	m.Output("m_axis_tvalid", 1)
	m.Input("m_axis_tready", 1)
	m.Output("m_axis_tlast", 1)
	m.Output("m_axis_tuser", 8*wire.MaxHeaderBytes)
	m.Output("m_axis_tdest", b.Workers)
	m.PortComment("Ports that can take a whole packet")
	m.Input("port_ready", b.Workers)
	m.PortComment("Who has which rank" + b.byJob())
	m.Output("member", b.Workers*b.Jobs)
	m.Output("rank_of_port", 8*b.Workers*b.Jobs)
	registerPorts(m)
	m.PortComment("Events of the shell, one count a cycle")
	for _, e := range shellEvents {
		m.Input(e.core, 1)
	}
	m.PortComment("A beat enters the lanes")
	m.Output("beat_strobe", 1)
}

// registerPorts declares the register bus, which core and top have alike.
func registerPorts(m *netlist.Module) {
	m.PortComment("Register accesses, answered in order, one at a time")
	m.Input("s_reg_valid", 1)
	m.Output("s_reg_ready", 1)
	m.Input("s_reg_write", 1)
	m.Input("s_reg_addr", 32)
	m.Input("s_reg_wdata", 64)
	m.Output("m_reg_valid", 1)
	m.Input("m_reg_ready", 1)
	m.Output("m_reg_code", 8)
	m.Output("m_reg_value", 64)
}

// byJob says in comments how vectors hold what is known of several jobs.
func (b *coreBuilder) byJob() string {
	if b.Jobs == 1 {
		return ""
	}
	return ", job 0 in the lowest bits"
}

// jobs adds the jobs' lives and what the rest reads of them.
func (b *coreBuilder) jobs() {
	m := b.m
	m.Comment("-- Jobs --")
	m.Wire("flush", b.Jobs, "the job ends"+b.byJob())
	m.Wire("flush_slots", b.Slots, "their job ends")
	m.Wire("quiet", 1, "all jobs end: no packet is judged")
	m.Wire("drop_statuses", b.Jobs, "")
	m.Wire("drained", b.Jobs, "nothing of the job is being reduced")
	m.Wire("sending", 1, "a result leaves: its cache entry must not change")
	m.Wire("sets_up", b.Jobs, "the job is being set up")
	m.Wire("sets_up_job", b.jobBits, "this one")
	m.Wire("cleared", 1, "what was counted of it before")
	for _, w := range b.jobWires() {
		m.Wire(w.name, w.width*b.Jobs, w.doc)
	}
	for _, w := range operations {
		m.Wire(w.name, w.width, "")
	}
	m.Wire("commit_finish", 1, "")
	m.Wire("commit_index", b.jobBits, "the job of the packet, or of the slot that is acted upon")
	m.Wire("commit_rank_bit", b.Workers, "its sender")
	m.Wire("evict", b.Workers, "these are members no more")
	m.Wire("answer_mask", b.Workers, "ranks that are missing, or were evicted")

	i := m.Instance("agg_jobs", "u_jobs", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	i.Param("CHUNK", fmt.Sprint(b.Chunk)).Param("WINDOW", fmt.Sprint(b.Window))
	b.params(i, "SLOT_BITS", "INDEX_BITS")
	i.Param("LANE_BITS", fmt.Sprint(bits.TrailingZeros(uint(b.Lanes))))
	same(i, "clk", "rst", "link_down")
	for _, w := range operations {
		same(i, w.name)
	}
	i.Connect("finish", "commit_finish").Connect("finish_job", "commit_index").Connect("finish_bit", "commit_rank_bit")
	same(i, "drained", "evict")
	i.Connect("evict_job", "commit_index").Connect("evict_ranks", "answer_mask")
	same(i, "flush", "flush_slots", "quiet", "hold", "drop_statuses", "sets_up", "sets_up_job",
		"cleared")
	for _, w := range b.jobWires() {
		same(i, w.name)
	}
	same(i, "member", "rank_of_port")
}

// jobWire is what agg_jobs says of every job.
type jobWire struct {
	name  string
	width int // for one job
	doc   string
}

// jobWires are the wires on which agg_jobs tells what the jobs are.
func (b *coreBuilder) jobWires() []jobWire {
	return []jobWire{
		{"job_valid", 1, "set up"},
		{"job_complete", 1, "the last one ended because all had finished"},
		{"job_ever", 1, "an epoch was ever set"},
		{"job_epoch", 16, ""},
		{"job_chunk", 16, "elements"},
		{"job_last", b.indexBits, "number of a chunk's last beat"},
		{"job_window", b.slotBits, "chunks"},
		{"slot_mask", b.slotBits, "twice the window, less 1"},
		{"slot_base", b.slotBits, "the first slot"},
		{"job_first", 32, "first VID"},
		{"job_deadline", 32, "cycles; 0: none"},
		{"job_partial", 1, "sums"},
		{"job_finished", b.Workers, "ranks that have finished"},
		{"job_evicted", b.Workers, "ranks that were evicted"},
		{"evicted", b.Workers, "their ports"},
		{"present", b.Workers, "members that were not, by port"},
	}
}

// ofJob selects what a vector holds for the job whose number is on a wire.
func (b *coreBuilder) ofJob(name string, width int, index string) string {
	switch {
	case b.Jobs == 1:
		return name
	case width == 1:
		return fmt.Sprintf("%s[%s]", name, index)
	}
	return fmt.Sprintf("%s[%d*%s+:%d]", name, width, index, width)
}

// forJob selects what a vector holds for one job.
func (b *coreBuilder) forJob(name string, width, job int) string {
	if b.Jobs == 1 {
		return name
	}
	return netlist.Slice(name, job*width, width)
}

// ifJob is a condition that must also hold for the job whose number is on a
// wire.
func (b *coreBuilder) ifJob(condition, index string, job int) string {
	if b.Jobs == 1 {
		return condition
	}
	return fmt.Sprintf("%s && %s == %d'd%d", condition, index, b.jobBits, job)
}

// eachJob puts together what is known of each job, job 0 in the lowest bits.
func (b *coreBuilder) eachJob(of func(job int) string) string {
	var parts []string
	for j := b.Jobs - 1; j >= 0; j-- {
		parts = append(parts, of(j))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return netlist.Concat(parts...)
}

// portRanks adds what turns ports of a job into its ranks.
func (b *coreBuilder) portRanks(name, index, ports, ranks string) {
	i := b.m.Instance("agg_port_ranks", name, "")
	b.params(i, "PORTS")
	i.Connect("member", b.ofJob("member", b.Workers, index)).
		Connect("rank_of_port", b.ofJob("rank_of_port", 8*b.Workers, index)).
		Connect("ports", ports).
		Connect("ranks", ranks)
}

// operations are the wires on which agg_registers has agg_jobs set up and end
// jobs.
var operations = []struct {
	name  string
	width int
}{
	{"op_valid", 1},
	{"op_commit", 1},
	{"op_abort", 1},
	{"op_job", 8},
	{"op_epoch", 16},
	{"op_first", 32},
	{"op_ports", 64},
	{"op_chunk", 64},
	{"op_window", 64},
	{"op_deadline", 64},
	{"op_done", 1},
	{"op_code", 8},
}

// ingress adds one port's way in, its slot memory, and the gate that keeps an
// absent port out of the sums.
func (b *coreBuilder) ingress(p int) {
	m := b.m
	if p == 0 {
		m.Comment("What all ports are told")
		m.Wire("slot", b.slotBits, "of the packet that is judged, or the one that is acted upon")
		m.Wire("commit_store", 1, "it is stored")
		m.Wire("resolve", b.Workers, "the fate of the port's written data is known")
		m.Wire("reduced", 1, "a slot has been summed")
		m.Wire("sum_slot", b.slotBits, "this one")
		m.Wire("sum_job", b.jobBits, "its job")
		m.Wire("req_valid", b.Workers, "ports that ask for a commit")
		m.Wire("req_grant", b.Workers, "")
		m.Wire("rd_en", 1, "all slot memories are read")
		m.Wire("rd_slot", b.slotBits, "")
		m.Wire("rd_beat", b.indexBits, "")
		m.Wire("beat_members", b.Workers, "ports in the sum of the beat that goes into the lanes")
	}
	m.Comment(fmt.Sprintf("-- Port %d --", p))
	of := func(name string) string { return fmt.Sprintf("p%d_%s", p, name) }
	nonfinite, request := of("nonfinite"), of("request")
	wrEn, wrSlot, wrBeat, wrData := of("wr_en"), of("wr_slot"), of("wr_beat"), of("wr_data")
	stored, gated := of("stored"), of("gated")
	m.Wire(nonfinite, b.Lanes, "elements that are a NaN or an infinity")
	m.Wire(request, requestBits, "commit")
	m.Wire(wrEn, 1, "")
	m.Wire(wrSlot, b.slotBits, "")
	m.Wire(wrBeat, b.indexBits, "")
	m.Wire(wrData, b.BeatBits, "")
	m.Wire(stored, b.BeatBits, "as read")
	m.Wire(gated, b.Lanes*b.operandBits(), "as summed")

	b.nonfinite(b.Format, fmt.Sprintf("u_nonfinite_p%d", p), axis("s", p, "tdata"), nonfinite)

	i := m.Instance("agg_ingress", fmt.Sprintf("u_ingress_p%d", p), "")
	b.params(i, "BEAT_BITS", "JOBS", "JOB_BITS", "SLOT_BITS", "INDEX_BITS")
	same(i, "clk", "rst", "flush", "flush_slots", "job_valid", "slot_mask", "slot_base", "job_last")
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
		Connect("reduced", "reduced").Connect("reduced_slot", "sum_slot")

	b.ram(fmt.Sprintf("u_slots_p%d", p), b.BeatBits, false).
		Connect("wr_en", wrEn).Connect("wr_addr", netlist.Concat(wrSlot, wrBeat)).Connect("wr_data", wrData).
		Connect("rd_en", "rd_en").Connect("rd_addr", netlist.Concat("rd_slot", "rd_beat")).Connect("rd_data", stored)

	if b.Lane.Shared != nil {
		b.sharedGate(p, stored, gated)
		return
	}
	m.Instance("agg_gate", fmt.Sprintf("u_gate_p%d", p), "").
		Param("LANES", fmt.Sprint(b.Lanes)).
		Param("ELEM_BITS", fmt.Sprint(b.ElemBits)).
		Param("IDENTITY", b.identity(b.Format)).
		Connect("clk", "clk").
		Connect("enable", bit("beat_members", p, b.Workers)).
		Connect("x", stored).
		Connect("y", gated)
}

// commits adds what judges packets, one a cycle.
func (b *coreBuilder) commits() {
	m := b.m
	m.Comment("-- Commit --")
	m.Wire("granted_valid", 1, "a packet's header is checked; it is judged in the next cycle")
	m.Wire("granted_ports", b.Workers, "the port it came by, one hot")
	m.Wire("granted_port", b.portBits, "")
	m.Wire("granted_request", requestBits, "")
	m.Wire("pause", 1, "a slot is to be acted upon")
	m.Wire("act_next", 1, "in the next cycle")
	m.Wire("act_slot", b.slotBits, "")
	m.Wire("act_job", b.jobBits, "")
	var requests []string
	for p := b.Workers - 1; p >= 0; p-- {
		requests = append(requests, fmt.Sprintf("p%d_request", p))
	}
	i := m.Instance("agg_arbiter", "u_arbiter", "")
	b.params(i, "PORTS", "PORT_BITS")
	i.Param("WIDTH", fmt.Sprint(requestBits))
	same(i, "clk", "rst")
	i.Connect("hold", "quiet || pause")
	same(i, "req_valid", "req_grant")
	i.Connect("req_data", netlist.Concat(requests...)).
		Connect("out_valid", "granted_valid").
		Connect("out_ports", "granted_ports").
		Connect("out_port", "granted_port").
		Connect("out_data", "granted_request")
	m.Assign("unjudged", "|req_valid")

	m.Wire("commit_refuse", 1, "it fails a check")
	m.Wire("commit_code", 8, "")
	m.Wire("commit_belongs", 1, "its rank is its port's")
	m.Wire("commit_data", 1, "")
	m.Wire("commit_ask", 1, "")
	m.Wire("commit_writable", 1, "its payload was written")
	m.Wire("commit_nonfinite", 1, "")
	m.Wire("commit_ecn", 2, "")
	m.Wire("commit_job", 8, "")
	m.Wire("commit_epoch", 16, "")
	m.Wire("commit_rank", 8, "")
	m.Wire("commit_vid", 32, "")
	m.Wire("commit_ports", b.Workers, "the port it came by, one hot")
	m.Wire("commit_port", b.portBits, "")
	i = m.Instance("agg_commit", "u_commit", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS", "SLOT_BITS")
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Format.Format))
	same(i, "clk", "rst")
	prefixed(i, "granted_", "valid", "ports", "port", "request")
	same(i, "act_next", "act_slot", "act_job", "job_valid", "job_complete", "job_epoch", "job_chunk", "slot_mask",
		"slot_base", "member", "evicted", "rank_of_port")
	i.Connect("refused", "commit_refuse")
	prefixed(i, "commit_", "code", "belongs", "data", "ask", "finish", "writable", "nonfinite", "ecn", "job", "index")
	same(i, "slot")
	prefixed(i, "commit_", "epoch", "rank", "vid")
	i.Connect("from_ports", "commit_ports").Connect("from_port", "commit_port")
	m.Assign("commit_rank_bit", fmt.Sprintf("%d'd1 << %s", b.Workers, netlist.Slice("commit_rank", 0, b.portBits)))

	m.Wire("turn_over", 1, "the slot takes a new VID")
	m.Wire("store_ce", 1, "")
	m.Wire("store_nonfinite", 1, "")
	m.Wire("owe", 1, "the sender is owed the result")
	m.Wire("complete", 1, "the slot is closed")
	m.Wire("complete_ports", b.Workers, "")
	m.Wire("complete_vid", 32, "")
	m.Wire("complete_ecn", 2, "")
	m.Wire("complete_nonfinite", 1, "")
	m.Wire("asked", 1, "an ask is not refused")
	m.Wire("answer", 1, "an ask or a finish is answered with a status")
	m.Wire("answer_code", 8, "")
	m.Wire("answer_ports", b.Workers, "whose contribution is missing, or that were evicted")
	m.Wire("act", 1, "the slot is overdue")
	m.Wire("stall", 1, "the slot does not turn over though it is asked to")
	m.Wire("overdue", 1, "")
	m.Wire("notice", 1, "that is told to others")
	m.Wire("notice_ports", b.Workers, "to these")
	m.Wire("notice_code", 8, "")
	m.Wire("notice_vid", 32, "")

	d := m.Instance("agg_deadlines", "u_deadlines", "")
	b.params(d, "JOBS", "JOB_BITS", "SLOT_BITS")
	same(d, "clk", "rst", "flush", "flush_slots", "job_deadline", "slot")
	d.Connect("job", "commit_index")
	same(d, "turn_over")
	d.Connect("close", "complete")
	same(d, "stall", "pause", "act_next", "act", "act_slot", "act_job")

	m.Wire("refused", 1, "")
	m.Wire("refused_code", 8, "")
	m.Wire("refused_answer", 1, "it may be answered with a status")
	i = m.Instance("agg_slots", "u_slots", "")
	b.params(i, "PORTS")
	i.Param("WINDOW", fmt.Sprint(b.Window))
	b.params(i, "SLOT_BITS")
	i.Param("ROW_BITS", fmt.Sprint(indexWidth(b.Window)))
	same(i, "clk", "flush_slots")
	for _, w := range []jobWire{
		{"job_first", 32, ""}, {"job_window", b.slotBits, ""}, {"slot_mask", b.slotBits, ""}, {"slot_base", b.slotBits, ""},
		{"evicted", b.Workers, ""},
	} {
		i.Connect(w.name, b.ofJob(w.name, w.width, "commit_index"))
	}
	i.Connect("partial", b.ofJob("job_partial", 1, "commit_index"))
	i.Connect("member", b.ofJob("present", b.Workers, "commit_index"))
	same(i, "act", "slot")
	prefixed(i, "commit_", "refuse", "data", "ask", "finish", "code", "belongs", "ports", "vid", "ecn", "writable",
		"nonfinite")
	i.Connect("reduced", "reduced").Connect("reduced_slot", "sum_slot").
		Connect("turn_over", "turn_over").Connect("store", "commit_store")
	same(i, "store_ce", "store_nonfinite", "resolve", "owe", "complete", "complete_ports", "complete_vid", "complete_ecn",
		"complete_nonfinite", "stall", "overdue", "evict", "notice", "notice_ports", "notice_code", "notice_vid", "asked", "answer", "answer_code", "answer_ports", "refused", "refused_code", "refused_answer")
	b.portRanks("u_named", "commit_index", "answer_ports", "answer_mask")
}

// labels adds what keeps beside every slot what is known of its chunk.
func (b *coreBuilder) labels() {
	m := b.m
	written := "written_job"
	if b.Jobs == 1 {
		written = "unused_written_job"
	}
	m.Wire(written, b.jobBits, "of the sum that is written")
	m.Wire("written_vid", 32, "")
	m.Wire("result_ports", b.Workers, "in the result that can be sent")
	m.Wire("result_vid", 32, "")
	m.Wire("result_ecn", 2, "")
	m.Wire("result_nonfinite", 1, "")
	i := m.Instance("agg_labels", "u_labels", "")
	b.params(i, "PORTS", "JOB_BITS", "SLOT_BITS")
	same(i, "clk", "complete")
	i.Connect("complete_slot", "slot").Connect("complete_job", "commit_index")
	same(i, "complete_ports", "complete_vid", "complete_ecn", "complete_nonfinite", "beat_slot")
	i.Connect("beat_ports", "beat_members")
	same(i, "sum_slot", "sum_job")
	i.Connect("written_job", written)
	same(i, "written_vid")
	i.Connect("send_slot", "result_slot").Connect("send_ports", "result_ports").Connect("send_vid", "result_vid").
		Connect("send_ecn", "result_ecn").Connect("send_nonfinite", "result_nonfinite")
}

// egress adds what chooses and sends packets.
func (b *coreBuilder) egress() {
	m := b.m
	m.Comment("-- Out --")
	m.Wire("result_valid", 1, "a result can be sent")
	m.Wire("result_job", b.jobBits, "")
	m.Wire("result_slot", b.slotBits, "")
	m.Wire("result_to", b.Workers, "the ports that it is for")
	m.Wire("result_replay", 1, "")
	m.Wire("result_take", 1, "")
	b.owed()
	b.labels()
	m.Wire("result_mask", b.Workers, "ranks in it")
	m.Wire("result_receivers", b.Workers, "ranks that it is for")
	b.portRanks("u_contributors", "result_job", "result_ports", "result_mask")
	b.portRanks("u_receivers", "result_job", "result_to", "result_receivers")

	status := []struct {
		name  string
		width int
	}{{"valid", 1}, {"port", b.portBits}, {"job", 8}, {"epoch", 16}, {"rank", 8}, {"code", 8}, {"vid", 32}, {"mask", b.Workers}, {"take", 1}}
	for _, s := range status {
		m.Wire("status_"+s.name, s.width, "")
	}
	i := m.Instance("agg_status", "u_status", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	same(i, "clk", "rst")
	i.Connect("drop", "drop_statuses")
	same(i, "answer", "answer_code", "answer_mask")
	i.Connect("refuse", "refused_answer").Connect("refuse_code", "refused_code")
	prefixed(i, "commit_", "port", "job", "epoch", "rank", "vid")
	same(i, "notice", "notice_ports", "notice_code")
	i.Connect("notice_job", "commit_index").
		Connect("notice_epoch", b.ofJob("job_epoch", 16, "commit_index"))
	same(i, "notice_vid")
	i.Connect("notice_ranks", b.ofJob("rank_of_port", 8*b.Workers, "commit_index"))
	i.Connect("ready", "port_ready")
	for _, s := range status {
		i.Connect("pick_"+s.name, "status_"+s.name)
	}

	i = m.Instance("agg_egress", "u_egress", "")
	b.params(i, "PORTS", "PORT_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Param("KEEP_BITS", fmt.Sprint(b.ResultKeepBits))
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Result.Format))
	same(i, "clk", "rst", "result_valid", "result_slot")
	i.Connect("result_last", b.ofJob("job_last", b.indexBits, "result_job")).
		Connect("result_ports", "result_to").
		Connect("result_job", b.number("result_job")).
		Connect("result_epoch", b.ofJob("job_epoch", 16, "result_job")).
		Connect("result_chunk", b.ofJob("job_chunk", 16, "result_job"))
	same(i, "result_vid", "result_ecn", "result_nonfinite")
	i.Connect("result_partial", fmt.Sprintf("|(%s & ~result_ports)", b.ofJob("member", b.Workers, "result_job")))
	same(i, "result_mask", "result_receivers", "result_replay", "result_take")
	for _, s := range status {
		same(i, "status_"+s.name)
	}
	i.Connect("rd_en", "send_en").Connect("rd_slot", "send_slot").Connect("rd_beat", "send_beat").
		Connect("rd_written", "send_written").Connect("sending", "sending")
	same(i, "m_axis_tkeep", "m_axis_tvalid", "m_axis_tready", "m_axis_tlast", "m_axis_tuser", "m_axis_tdest")
}

// number widens a job's number to the field of a header.
func (b *coreBuilder) number(index string) string { return widen(index, b.jobBits, 8) }

// owed adds what knows, for each job, who is to be sent what, and the jobs'
// turns.
func (b *coreBuilder) owed() {
	m := b.m
	pick := map[string]string{"valid": "result_valid", "slot": "result_slot", "receivers": "result_to", "replay": "result_replay", "take": "result_take"}
	if b.Jobs > 1 {
		m.Comment("What each job has to send" + b.byJob() + "; slots from its first on")
		m.Wire("owed_valid", b.Jobs, "")
		m.Wire("owed_slot", b.slotBits*b.Jobs, "")
		m.Wire("owed_receivers", b.Workers*b.Jobs, "")
		m.Wire("owed_replay", b.Jobs, "")
		m.Wire("owed_take", b.Jobs, "")
		for signal := range pick {
			pick[signal] = "owed_" + signal
		}
	}
	for j := range b.Jobs {
		name, within := "u_owed", func(slot string) string { return slot }
		if b.Jobs > 1 {
			name = fmt.Sprintf("u_owed_j%d", j)
			within = func(slot string) string { return slot + " & " + b.forJob("slot_mask", b.slotBits, j) }
		}
		i := m.Instance("agg_owed", name, "")
		b.params(i, "PORTS", "SLOT_BITS")
		same(i, "clk", "rst")
		i.Connect("flush", b.forJob("flush", 1, j)).
			Connect("slot_mask", b.forJob("slot_mask", b.slotBits, j)).
			Connect("member", b.forJob("present", b.Workers, j)).
			Connect("begun", b.ifJob("begun", "sum_job", j)).Connect("begun_slot", within("sum_slot")).
			Connect("slot", within("slot")).
			Connect("turn_over", b.ifJob("turn_over", "commit_index", j)).
			Connect("owe", b.ifJob("owe", "commit_index", j)).
			Connect("port", "commit_ports").Connect("ready", "port_ready").
			Connect("pick_valid", b.forJob(pick["valid"], 1, j)).
			Connect("pick_slot", b.forJob(pick["slot"], b.slotBits, j)).
			Connect("pick_receivers", b.forJob(pick["receivers"], b.Workers, j)).
			Connect("pick_replay", b.forJob(pick["replay"], 1, j)).
			Connect("pick_take", b.forJob(pick["take"], 1, j))
	}
	if b.Jobs == 1 {
		m.Assign("result_job", "1'd0")
		return
	}
	i := m.Instance("agg_turns", "u_turns", "")
	b.params(i, "PORTS", "JOBS", "JOB_BITS", "SLOT_BITS")
	same(i, "clk", "rst")
	i.Connect("job_valid", "owed_valid").
		Connect("job_slot", "owed_slot | slot_base").
		Connect("job_receivers", "owed_receivers").
		Connect("job_replay", "owed_replay").
		Connect("job_take", "owed_take").
		Connect("pick_valid", "result_valid").Connect("pick_job", "result_job").
		Connect("pick_slot", "result_slot").Connect("pick_receivers", "result_to").
		Connect("pick_replay", "result_replay").Connect("pick_take", "result_take")
}

// registers adds the register bank and the counters.
func (b *coreBuilder) registers() {
	m := b.m
	m.Comment("-- Registers --")
	m.Wire("lag_job", b.jobBits, "")
	m.Wire("lag_rank", b.portBits, "")
	m.Wire("lag_bucket", 4, "")
	m.Wire("lag_value", 32, "")
	m.Wire("counter_index", 6, "")
	m.Wire("counter_value", 32, "")
	m.Wire("clear_counters", 1, "")
	for _, c := range jobCounts {
		m.Wire(c.name, c.width*b.Jobs, "")
	}
	i := m.Instance("agg_registers", "u_registers", "")
	for _, r := range wire.Registers {
		if v, ok := b.Constant(r.Addr); ok && (r.Ident || r.Addr == wire.RegConfigHash) {
			i.Param(r.Name, constant(v, r))
		}
	}
	b.params(i, "JOB_BITS")
	i.Param("RANK_BITS", fmt.Sprint(b.portBits))
	same(i, "clk", "rst", "link_down", "s_reg_valid", "s_reg_ready", "s_reg_write", "s_reg_addr", "s_reg_wdata",
		"m_reg_valid", "m_reg_ready", "m_reg_code", "m_reg_value")
	for _, w := range operations {
		same(i, w.name)
	}
	same(i, "job_valid", "job_ever", "job_epoch")
	i.Connect("job_finished", b.eachJob(func(j int) string {
		return widen(b.forJob("job_finished", b.Workers, j), b.Workers, 64)
	})).Connect("job_members", b.eachJob(func(j int) string {
		return widen(b.forJob("member", b.Workers, j), b.Workers, 64)
	})).Connect("job_evicted", b.eachJob(func(j int) string {
		return widen(b.forJob("job_evicted", b.Workers, j), b.Workers, 64)
	})).Connect("job_base", b.eachJob(func(j int) string {
		return widen(b.forJob("slot_base", b.slotBits, j), b.slotBits, 16)
	})).Connect("job_slots", b.eachJob(func(j int) string {
		return fmt.Sprintf("16'd1 + %s", widen(b.forJob("slot_mask", b.slotBits, j), b.slotBits, 16))
	}))
	for _, c := range jobCounts {
		same(i, c.name)
	}
	same(i, "lag_job", "lag_rank", "lag_bucket", "lag_value")
	same(i, "counter_index", "counter_value", "clear_counters")

	for j := range b.Jobs {
		name := "u_job_counts"
		if b.Jobs > 1 {
			name = fmt.Sprintf("u_job_counts_j%d", j)
		}
		i = m.Instance("agg_job_counts", name, "").
			Param("COUNT_BITS", fmt.Sprint(b.countBits)).
			Connect("clk", "clk").
			Connect("rst", "rst").
			Connect("clear", b.forJob("sets_up", 1, j)).
			Connect("stored_nonfinite", b.ifJob("store_nonfinite", "commit_index", j)).
			Connect("vid", "commit_vid").Connect("rank", "commit_rank").
			Connect("wr_en", b.ifJob("cache_wr_en", "written_job", j)).Connect("wr_vid", "written_vid")
		same(i, "nonfinite", "overflow")
		for _, c := range jobCounts {
			i.Connect(c.name, b.forJob(c.name, c.width, j))
		}
	}

	lags := m.Instance("agg_lags", "u_lags", "").
		Param("RANK_BITS", fmt.Sprint(b.portBits))
	b.params(lags, "JOB_BITS", "SLOT_BITS")
	same(lags, "clk", "rst")
	lags.Connect("clear", "|sets_up").Connect("clear_job", "sets_up_job").Connect("ready", "cleared").
		Connect("store", "commit_store").Connect("turn_over", "turn_over").Connect("slot", "slot").
		Connect("job", "commit_index").Connect("rank", netlist.Slice("commit_rank", 0, b.portBits)).
		Connect("rd_job", "lag_job").Connect("rd_rank", "lag_rank").Connect("rd_bucket", "lag_bucket").
		Connect("value", "lag_value")

	i = m.Instance("agg_counters", "u_counters", "")
	i.Param("COUNT_BITS", fmt.Sprint(b.countBits))
	same(i, "clk", "rst")
	i.Connect("clear", "clear_counters").
		Connect("stored", "commit_store").Connect("stored_ce", "store_ce").
		Connect("stored_nonfinite", "store_nonfinite").
		Connect("overdue", "overdue").
		Connect("partial", fmt.Sprintf("complete && |(%s & ~complete_ports)", b.ofJob("member", b.Workers, "commit_index"))).
		Connect("evicts", "|evict").
		Connect("asked", "asked").Connect("finished", "commit_finish").
		Connect("chunk", "reduced").Connect("beat", "beat_strobe").
		Connect("result", "result_take && !result_replay").
		Connect("replay", "result_take && result_replay").
		Connect("status", "status_take")
	undecided, stalled := "1'b0", "1'b0"
	if b.Lane.Shared != nil {
		undecided, stalled = "undecided", "stalled"
	}
	i.Connect("nonfinite_out", "nonfinite").Connect("overflow", "overflow").
		Connect("undecided", undecided).Connect("stalled", stalled)
	same(i, "link_down", "refused", "refused_code")
	for _, e := range shellEvents {
		same(i, e.core)
	}
	i.Connect("index", "counter_index").Connect("value", "counter_value")
}

// jobCounts are the wires on which agg_registers reads what agg_job_counts
// holds.
var jobCounts = []struct {
	name  string
	width int
}{
	{"nonfinite_in", 32},
	{"nonfinite_out", 32},
	{"overflows", 32},
	{"first_in", 64},
	{"first_out", 64},
	{"first_overflow", 64},
}

// note tells the datasheet of the memories.
func (b *coreBuilder) note() {
	words := 1 << (b.slotBits + b.indexBits)
	b.memory("slot memory, one a port", b.Workers, words, b.BeatBits)
	b.memory("result cache", 1, words, b.ResultBeatBits)
}

// ram adds a memory with a word for every beat of every slot.
func (b *coreBuilder) ram(name string, width int, forward bool) *netlist.Instance {
	i := b.m.Instance("agg_ram", name, "").
		Param("WIDTH", fmt.Sprint(width)).
		Param("ADDR_BITS", fmt.Sprint(b.slotBits+b.indexBits))
	if forward {
		i.Param("FORWARD", "1")
	}
	return i.Connect("clk", "clk")
}

// params sets parameters that several leaves have alike.
func (b *coreBuilder) params(i *netlist.Instance, names ...string) {
	values := map[string]int{
		"PORTS":      b.Workers,
		"PORT_BITS":  b.portBits,
		"JOBS":       b.Jobs,
		"JOB_BITS":   b.jobBits,
		"SLOT_BITS":  b.slotBits,
		"INDEX_BITS": b.indexBits,
		"BEAT_BITS":  b.BeatBits,
	}
	for _, n := range names {
		i.Param(n, fmt.Sprint(values[n]))
	}
}

// same connects ports to wires of their own names.
func same(i *netlist.Instance, names ...string) { prefixed(i, "", names...) }

// prefixed connects ports to wires that have a prefix before their names.
func prefixed(i *netlist.Instance, prefix string, names ...string) {
	for _, n := range names {
		i.Connect(n, prefix+n)
	}
}

// axis names a signal of a port's AXI4-Stream; side is "s" for in, "m" for
// out.
func axis(side string, port int, signal string) string {
	return fmt.Sprintf("%s_axis_p%d_%s", side, port, signal)
}

// bit selects a bit of a vector that is one bit wide when width is 1.
func bit(name string, at, width int) string {
	if width == 1 {
		return name
	}
	return netlist.Slice(name, at, 1)
}

// widen pads a vector with zeros above.
func widen(name string, from, to int) string {
	if from == to {
		return name
	}
	return netlist.Concat(fmt.Sprintf("%d'd0", to-from), name)
}

// constant writes the value of a register as a reader of it wants to see it.
func constant(v uint64, r wire.Register) string {
	if r.Addr == wire.RegConfigHash || r.Addr == wire.RegFormat {
		return fmt.Sprintf("64'h%x", v)
	}
	return fmt.Sprintf("64'd%d", v)
}

// indexWidth returns the bits of a number below n, at least one.
func indexWidth(n int) int { return max(1, bits.Len(uint(n-1))) }
