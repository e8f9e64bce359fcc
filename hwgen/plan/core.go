package plan

import (
	"fmt"
	"math/bits"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// coreLatency is what the core adds to the lanes' latency: the port's
// register, the commit, the slot's read, the memories' output, and the
// egress's register.
const coreLatency = 5

// requestBits is the width of a commit's request; agg_ingress says what is in
// it.
const requestBits = 102

// coreBuilder holds the module agg_core while it is put together.
type coreBuilder struct {
	*Plan
	m *netlist.Module

	portBits  int // of a port's number
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
		slotBits:  indexWidth(p.Slots),
		indexBits: indexWidth(p.Beats),
		countBits: indexWidth(p.Lanes + 1),
	}
	b.m.Doc = fmt.Sprintf(`The aggregator between AXI4-Stream ports.

Every port's chunks are stored in its slot memory; a slot that holds all ranks is read from all
memories at once, summed lane by lane, and its result is kept in the cache and sent.

Into each port go data, ask and finish packets: the 14 bytes of the header stand in tuser[111:0]
on a packet's first beat, tuser[112] on its last says that the payload is bad. Packets without
payload are one beat with tkeep = 0. Out of m_axis come results and statuses: the 30 bytes of
the header stand in tuser during the whole packet; agg_distribute knows whom they are for. A
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
	m.Output("m_axis_tdest", 8)
	m.PortComment("Ports that can take a whole packet")
	m.Input("port_ready", b.Workers)
	m.PortComment("Who has which rank")
	m.Output("member", b.Workers)
	m.Output("rank_of_port", 8*b.Workers)
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

// jobs adds the job's life and what the rest reads of it.
func (b *coreBuilder) jobs() {
	m := b.m
	m.Comment("-- Job --")
	m.Wire("flush", 1, "the job ends")
	m.Wire("drop_statuses", 1, "")
	m.Wire("drained", 1, "nothing is being reduced")
	m.Wire("sending", 1, "a result leaves: its cache entry must not change")
	m.Wire("sets_up", 1, "a job is being set up")
	m.Wire("job_valid", 1, "a job is set up")
	m.Wire("job_complete", 1, "the last one ended because all had finished")
	m.Wire("job_ever", 1, "an epoch was ever set")
	m.Wire("job_epoch", 16, "")
	m.Wire("job_chunk", 16, "elements")
	m.Wire("job_last", b.indexBits, "number of a chunk's last beat")
	m.Wire("job_window", b.slotBits, "chunks")
	m.Wire("slot_mask", b.slotBits, "twice the window, less 1")
	m.Wire("job_first", 32, "first VID")
	m.Wire("job_finished", b.Workers, "ranks that have finished")
	m.Wire("job_ranks", b.Workers, "a bit for every rank there is")
	for _, w := range operations {
		m.Wire(w.name, w.width, "")
	}
	m.Wire("commit_finish", 1, "")
	m.Wire("commit_rank_bit", b.Workers, "")

	i := m.Instance("agg_jobs", "u_jobs", "")
	b.params(i, "PORTS", "PORT_BITS")
	i.Param("CHUNK", fmt.Sprint(b.Chunk)).Param("WINDOW", fmt.Sprint(b.Window))
	b.params(i, "SLOT_BITS", "INDEX_BITS")
	i.Param("LANE_BITS", fmt.Sprint(bits.TrailingZeros(uint(b.Lanes))))
	same(i, "clk", "rst", "link_down")
	for _, w := range operations {
		same(i, w.name)
	}
	i.Connect("finish", "commit_finish").Connect("finish_bit", "commit_rank_bit")
	keepRanks := "1'b0"
	if b.Shell.byRanks {
		keepRanks = "sending"
	}
	same(i, "drained")
	i.Connect("keep_ranks", keepRanks)
	same(i, "flush", "hold", "drop_statuses", "sets_up", "job_valid", "job_complete", "job_ever", "job_epoch",
		"job_chunk", "job_last", "job_window", "slot_mask", "job_first", "job_finished", "job_ranks", "member",
		"rank_of_port")
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
	{"op_done", 1},
	{"op_code", 8},
}

// ingress adds one port's way in, its slot memory, and the gate that keeps an
// absent port out of the sums.
func (b *coreBuilder) ingress(p int) {
	m := b.m
	if p == 0 {
		m.Comment("What all ports are told")
		m.Wire("slot", b.slotBits, "of the packet that is committed")
		m.Wire("commit_store", 1, "it is stored")
		m.Wire("resolve", b.Workers, "the fate of the port's written data is known")
		m.Wire("reduced", 1, "a slot has been summed")
		m.Wire("sum_slot", b.slotBits, "this one")
		m.Wire("req_valid", b.Workers, "ports that ask for a commit")
		m.Wire("req_grant", b.Workers, "")
		m.Wire("rd_en", 1, "all slot memories are read")
		m.Wire("rd_slot", b.slotBits, "")
		m.Wire("rd_beat", b.indexBits, "")
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
	b.params(i, "BEAT_BITS", "SLOT_BITS", "INDEX_BITS")
	same(i, "clk", "rst", "flush", "slot_mask", "job_last")
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
		Param("IDENTITY", fmt.Sprintf("64'h%x", b.Format.Identity)).
		Connect("enable", bit("member", p, b.Workers)).
		Connect("x", stored).
		Connect("y", gated)
}

// commits adds what judges packets, one a cycle.
func (b *coreBuilder) commits() {
	m := b.m
	m.Comment("-- Commit --")
	m.Wire("commit_valid", 1, "a packet is judged")
	m.Wire("commit_ports", b.Workers, "the port it came by, one hot")
	m.Wire("commit_port", b.portBits, "")
	m.Wire("commit_request", requestBits, "")
	var requests []string
	for p := b.Workers - 1; p >= 0; p-- {
		requests = append(requests, fmt.Sprintf("p%d_request", p))
	}
	i := m.Instance("agg_arbiter", "u_arbiter", "")
	b.params(i, "PORTS", "PORT_BITS")
	i.Param("WIDTH", fmt.Sprint(requestBits))
	same(i, "clk", "rst", "hold", "req_valid", "req_grant")
	i.Connect("req_data", netlist.Concat(requests...)).
		Connect("out_valid", "commit_valid").
		Connect("out_ports", "commit_ports").
		Connect("out_port", "commit_port").
		Connect("out_data", "commit_request")
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
	i = m.Instance("agg_commit", "u_commit", "")
	b.params(i, "PORTS", "PORT_BITS")
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Format.Format)).
		Connect("valid", "commit_valid").Connect("port", "commit_port").Connect("request", "commit_request")
	same(i, "job_valid", "job_complete", "job_epoch", "job_chunk", "member", "rank_of_port")
	i.Connect("refused", "commit_refuse")
	prefixed(i, "commit_", "code", "belongs", "data", "ask", "finish", "writable", "nonfinite", "ecn", "job", "epoch",
		"rank", "vid")

	m.Wire("turn_over", 1, "the slot takes a new VID")
	m.Wire("store_ce", 1, "")
	m.Wire("store_nonfinite", 1, "")
	m.Wire("owe", 1, "the sender is owed the result")
	m.Wire("complete", 1, "the slot holds all ranks")
	m.Wire("complete_ecn", 2, "")
	m.Wire("complete_nonfinite", 1, "")
	m.Wire("asked", 1, "an ask is not refused")
	m.Wire("answer", 1, "an ask or a finish is answered with a status")
	m.Wire("answer_code", 8, "")
	m.Wire("answer_mask", b.Workers, "")
	m.Wire("refused", 1, "")
	m.Wire("refused_code", 8, "")
	m.Wire("refused_answer", 1, "it may be answered with a status")
	i = m.Instance("agg_slots", "u_slots", "")
	b.params(i, "PORTS")
	i.Param("WINDOW", fmt.Sprint(b.Window))
	b.params(i, "SLOT_BITS")
	i.Param("ROW_BITS", fmt.Sprint(indexWidth(b.Window)))
	i.Param("RANK_BITS", fmt.Sprint(b.portBits))
	same(i, "clk", "flush", "job_first", "job_window", "slot_mask", "job_ranks")
	prefixed(i, "commit_", "refuse", "data", "ask", "finish", "code", "belongs", "ports")
	i.Connect("rank", netlist.Slice("commit_rank", 0, b.portBits))
	prefixed(i, "commit_", "vid", "ecn", "writable", "nonfinite")
	i.Connect("reduced", "reduced").Connect("reduced_slot", "sum_slot").
		Connect("slot", "slot").Connect("rank_bit", "commit_rank_bit").
		Connect("turn_over", "turn_over").Connect("store", "commit_store")
	same(i, "store_ce", "store_nonfinite", "resolve", "owe", "complete", "complete_ecn", "complete_nonfinite", "asked",
		"answer", "answer_code", "answer_mask", "refused", "refused_code", "refused_answer")
}

// egress adds what chooses and sends packets.
func (b *coreBuilder) egress() {
	m := b.m
	m.Comment("-- Out --")
	m.Wire("rank_ready", b.Workers, "ranks whose port is ready")
	i := m.Instance("agg_rank_ready", "u_rank_ready", "")
	b.params(i, "PORTS")
	same(i, "member", "rank_of_port", "port_ready", "rank_ready")

	m.Wire("result_valid", 1, "a result can be sent")
	m.Wire("result_slot", b.slotBits, "")
	m.Wire("result_receivers", b.Workers, "")
	m.Wire("result_replay", 1, "")
	m.Wire("result_take", 1, "")
	i = m.Instance("agg_owed", "u_owed", "")
	b.params(i, "PORTS", "SLOT_BITS")
	same(i, "clk", "rst", "flush", "slot_mask", "job_ranks", "begun")
	i.Connect("begun_slot", "sum_slot")
	same(i, "slot", "turn_over", "owe")
	i.Connect("rank_bit", "commit_rank_bit").Connect("ready", "rank_ready").
		Connect("pick_valid", "result_valid").Connect("pick_slot", "result_slot").
		Connect("pick_receivers", "result_receivers").Connect("pick_replay", "result_replay").
		Connect("pick_take", "result_take")

	status := []struct {
		name  string
		width int
	}{{"valid", 1}, {"port", b.portBits}, {"job", 8}, {"epoch", 16}, {"rank", 8}, {"code", 8}, {"vid", 32}, {"mask", b.Workers}, {"take", 1}}
	for _, s := range status {
		m.Wire("status_"+s.name, s.width, "")
	}
	i = m.Instance("agg_status", "u_status", "")
	b.params(i, "PORTS", "PORT_BITS")
	same(i, "clk", "rst")
	i.Connect("drop", "drop_statuses")
	same(i, "answer", "answer_code", "answer_mask")
	i.Connect("refuse", "refused_answer").Connect("refuse_code", "refused_code")
	prefixed(i, "commit_", "port", "job", "epoch", "rank", "vid")
	i.Connect("ready", "port_ready")
	for _, s := range status {
		i.Connect("pick_"+s.name, "status_"+s.name)
	}

	i = m.Instance("agg_egress", "u_egress", "")
	b.params(i, "PORTS", "PORT_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Param("KEEP_BITS", fmt.Sprint(b.ResultKeepBits))
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Result.Format))
	same(i, "clk", "rst", "job_last", "job_epoch", "job_chunk", "job_ranks", "complete")
	i.Connect("complete_slot", "slot").Connect("complete_vid", "commit_vid")
	same(i, "complete_ecn", "complete_nonfinite",
		"result_valid", "result_slot", "result_receivers", "result_replay", "result_take")
	for _, s := range status {
		same(i, "status_"+s.name)
	}
	i.Connect("rd_en", "send_en").Connect("rd_slot", "send_slot").Connect("rd_beat", "send_beat").
		Connect("rd_written", "send_written").Connect("sending", "sending")
	same(i, "m_axis_tkeep", "m_axis_tvalid", "m_axis_tready", "m_axis_tlast", "m_axis_tuser", "m_axis_tdest")
}

// registers adds the register bank and the counters.
func (b *coreBuilder) registers() {
	m := b.m
	m.Comment("-- Registers --")
	m.Wire("counter_index", 5, "")
	m.Wire("counter_value", 32, "")
	m.Wire("clear_counters", 1, "")
	for _, c := range jobCounts {
		m.Wire(c.name, c.width, "")
	}
	i := m.Instance("agg_registers", "u_registers", "")
	for _, r := range wire.Registers {
		if v, ok := b.Constant(r.Addr); ok && (r.Ident || r.Addr == wire.RegConfigHash) {
			i.Param(r.Name, constant(v, r))
		}
	}
	same(i, "clk", "rst", "link_down", "s_reg_valid", "s_reg_ready", "s_reg_write", "s_reg_addr", "s_reg_wdata",
		"m_reg_valid", "m_reg_ready", "m_reg_code", "m_reg_value")
	for _, w := range operations {
		same(i, w.name)
	}
	same(i, "job_valid", "job_ever", "job_epoch")
	i.Connect("job_finished", widen("job_finished", b.Workers, 64))
	for _, c := range jobCounts {
		same(i, c.name)
	}
	same(i, "counter_index", "counter_value", "clear_counters")

	i = m.Instance("agg_job_counts", "u_job_counts", "")
	b.params(i, "SLOT_BITS")
	i.Param("COUNT_BITS", fmt.Sprint(b.countBits))
	same(i, "clk", "rst")
	i.Connect("clear", "sets_up").Connect("stored_nonfinite", "store_nonfinite").Connect("complete", "complete").
		Connect("slot", "slot").Connect("vid", "commit_vid").Connect("rank", "commit_rank").
		Connect("wr_en", "cache_wr_en").Connect("wr_slot", "cache_wr_slot")
	same(i, "nonfinite", "overflow")
	for _, c := range jobCounts {
		same(i, c.name)
	}

	i = m.Instance("agg_counters", "u_counters", "")
	i.Param("COUNT_BITS", fmt.Sprint(b.countBits))
	same(i, "clk", "rst")
	i.Connect("clear", "clear_counters").
		Connect("stored", "commit_store").Connect("stored_ce", "store_ce").
		Connect("stored_nonfinite", "store_nonfinite").
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
