package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// The up port of a card for trees of cards: one more input, memory and lane operand, and one more
// output, the last ones. The functions here do nothing for a card without.

// upDoc continues the description of agg_core.
const upDoc = `

The last port is the up port. It takes results, replays and statuses of the parent, and sends data and
finishes; it is no member.`

// upHeaderBits is the width of tuser at the up port's input: a header with mask, and the mark of a
// damaged payload.
const upHeaderBits = noneHeaderBits + 1

// upPort returns the last input of a vector for all ports.
func (b *coreBuilder) upPort(name string, width int) string {
	return netlist.Slice(name, b.Workers*width, width)
}

// workers returns a vector's part without the up port.
func (b *coreBuilder) workers(name string, width int) string {
	if !b.Parent {
		return name
	}
	return netlist.Slice(name, 0, b.Workers*width)
}

// withUpPort returns the vector for all ports.
func (b *coreBuilder) withUpPort(up, workers string) string {
	if !b.Parent {
		return workers
	}
	return netlist.Concat(up, workers)
}

// jobIndex returns a job's number as an index.
func (b *coreBuilder) jobIndex(number string) string {
	if b.Jobs == 1 {
		return "1'd0"
	}
	return netlist.Slice(number, 0, b.jobBits)
}

// upJobs declares what jobs have of a tree, and adds the leaf that holds it.
func (b *coreBuilder) upJobs() {
	m := b.m
	m.Comment("Trees of cards")
	b.wires("", []jobWire{
		{"job_tree", b.Jobs, "results come from the parent" + b.byJob()},
		{"job_up", 32 * b.Jobs, "JOB_PARENT"},
		{"job_up_rank", 8 * b.Jobs, "the card's rank at its parent"},
		{"job_tree_ranks", 64 * b.Jobs, ""},
		{"job_refusal", 40 * b.Jobs, "the parent's last refusal: VID and code"},
		{"job_repeat", 25 * b.Jobs, "cycles"},
		{"finished_port", b.Workers * b.Jobs, "ports that have finished"},
		{"tree_done", b.Jobs, "the parent has answered the card's finish"},
		{"asks_op", 1, "agg_registers requests an operation"},
		{"tree_same", 1, ""}, {"tree_parent", 1, ""}, {"tree_ranks", 1, ""}, {"tree_nested", 1, ""},
		{"staged_parent", 64, ""}, {"staged_repeat", 64, ""}, {"staged_tree", 64, ""},
		{"up_clear_staged", 1, ""},
		{"ranks_write", 1, "MEMBER_RANKS of a port"},
		{"ranks_port", b.portBits, ""},
		{"ranks_wdata", 64, ""},
		{"ranks_of_job", 1, "reads JOB_RANKS instead"},
		{"ranks_job", b.jobBits, ""},
		{"ranks_value", 64, ""},
		{"global_write", 1, "the global ranks of a member are set"},
		{"global_job", b.jobBits, ""},
		{"global_port", b.portBits, ""},
		{"global_ranks", 64, ""},
	})
	m.Comment("A packet of the up port was judged (agg_up_commit)")
	b.wires("up_", []jobWire{
		{"judged", 1, ""},
		{"mask", 64, "in its header"},
		{"passes_on", 1, "a finish is owed to the parent, not answered"},
		{"done", 1, "the parent ends the job"},
		{"notice", 1, "all members get a notice"},
		{"code", 8, "of the notice, or the refusal"},
		{"taken", 1, "a final sum is taken"},
		{"refused", 1, "the parent refused a packet"},
		{"dropped", 1, ""},
	})
	i := m.Instance("agg_up_jobs", "u_up_jobs", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	if b.parentOnNetwork() {
		i.Param("UDP", "1")
	}
	i.Connect("parent", "staged_parent").Connect("repeats", "staged_repeat").Connect("tree", "staged_tree").
		Connect("clear_staged", "up_clear_staged").
		Connect("op_valid", "asks_op").Connect("op_job", b.jobIndex("op_job")).
		Connect("op_ports", netlist.Slice("op_ports", 0, b.Workers)).
		Connect("m_op_valid", "op_valid").
		Connect("sets_up", "|sets_up").
		Connect("refused", "up_refused").Connect("refused_job", "e_job").
		Connect("refused_code", "up_code").Connect("refused_vid", "e_vid").
		Connect("wr_en", "global_write").Connect("wr_job", "global_job").Connect("wr_port", "global_port").
		Connect("wr_ranks", "global_ranks")
	m.Assign("job_up_rank", join(b.Jobs, func(j int) string { return netlist.Slice("job_up", 32*j+8, 8) }))
	if b.parentOnNetwork() {
		m.Assign("staged_up", netlist.Slice("staged_parent", 0, 1))
		m.Assign("staged_up_port", netlist.Slice("staged_parent", 16, 16))
		m.Assign("up_runs", "job_valid & job_tree")
		m.Assign("up_ports", join(b.Jobs, func(j int) string { return netlist.Slice("job_up", 32*j+16, 16) }))
	}
}

// upNetworkInputs and upNetworkOutputs list what the core and agg_parent_table of a shell on a network
// share.
func (p *Plan) upNetworkInputs() []jobWire {
	return []jobWire{
		{"parent_good", 1, "a parent can have the staged address"},
		{"parent_same", 1, "it is that of the job's parent"},
		{"up_lost", p.Ethernet, "a packet of the parent is dropped, by Ethernet port"},
	}
}

func (p *Plan) upNetworkOutputs() []jobWire {
	return []jobWire{
		{"staged_up", 1, "JOB_PARENT: the job is a tree job"},
		{"staged_up_port", 16, "its upward UDP port"},
		{"up_runs", p.Jobs, "tree jobs that are set up"},
		{"up_ports", 16 * p.Jobs, "upward UDP ports"},
	}
}

// upNetworkPorts declares the core's ports for a parent on a network.
func (b *coreBuilder) upNetworkPorts() {
	if !b.parentOnNetwork() {
		return
	}
	b.m.PortComment("Parents on a network, job 0 in the lowest bits: addresses, upward UDP ports, drops in front of the core")
	for _, w := range b.upNetworkInputs() {
		b.m.Input(w.name, w.width)
	}
	for _, w := range b.upNetworkOutputs() {
		b.m.Output(w.name, w.width)
	}
}

// upAddressChecks lets agg_jobs check and compare the parent's address with JOB_PARENT.
func (b *coreBuilder) upAddressChecks(jobs *netlist.Instance) {
	if b.parentOnNetwork() {
		jobs.Connect("tree_parent", "tree_parent && parent_good").Connect("tree_same", "tree_same && parent_same")
	}
}

// upReceive adds the translation of the headers at the up port, in front of its ingress.
func (b *coreBuilder) upReceive() {
	m := b.m
	m.Wire("up_tuser", coreHeaderBits, "")
	m.Wire("in_tuser", b.Inputs()*coreHeaderBits, "of all ports")
	m.Wire("in_judged", b.Inputs(), "")
	m.Assign("in_tuser", netlist.Concat("up_tuser", "s_axis_tuser"))
	m.Assign("in_judged", netlist.Concat("up_judged", "judged"))
	i := m.Instance("agg_up_receive", "u_up_receive", "")
	b.params(i, "JOBS", "JOB_BITS")
	i.Connect("tree_ranks", "job_tree_ranks").
		Connect("s_axis_tvalid", b.upPort("s_axis_tvalid", 1)).
		Connect("s_axis_tready", b.upPort("s_axis_tready", 1)).
		Connect("s_axis_tlast", b.upPort("s_axis_tlast", 1)).
		Connect("s_axis_tuser", "s_axis_up_tuser").
		Connect("m_axis_tuser", "up_tuser").
		Connect("judged", "up_judged").Connect("mask", "up_mask")
}

// upCommit adds the checks of the parent's packets.
func (b *coreBuilder) upCommit() {
	m := b.m
	b.wires("up_checked_", []jobWire{
		{"valid", 1, "the operation is a packet of the up port"},
		{"sum", 1, "a final sum"},
		{"marked", 1, "the same, for two cycles"},
		{"nonfinite", 1, "its mark"},
	})
	i := m.Instance("agg_up_commit", "u_up_commit", "")
	b.params(i, "PORTS", "JOBS", "JOB_BITS")
	i.Param("FORMAT", fmt.Sprintf("8'd%d", b.Format.Format)).
		Connect("valid", "granted_valid && "+b.upPort("granted_ports", 1)).
		Connect("request", "granted_request").
		Connect("checked", "up_checked_valid").Connect("final_sum", "up_checked_sum").
		Connect("marked", "up_checked_marked").Connect("nonfinite", "up_checked_nonfinite").
		Connect("job", "e_job").Connect("port", "judged").
		Connect("sum_taken", "up_taken")
	prefixed(i, "up_", "judged", "passes_on", "done", "notice", "code", "refused", "dropped")
}

// upMasks adds agg_up_masks, which returns the global ranks of a set of ports.
func (b *coreBuilder) upMasks(name, job, ports, given, mask, result string) {
	i := b.m.Instance("agg_up_masks", name, "")
	b.params(i, "PORTS", "PORT_BITS", "JOB_BITS")
	i.Param("STAGES", fmt.Sprint(b.rankStages())).
		Connect("wr_en", "global_write").Connect("wr_job", "global_job").Connect("wr_port", "global_port").
		Connect("wr_ranks", "global_ranks").
		Connect("job", job).Connect("ports", ports).Connect("given", given).Connect("given_mask", mask).
		Connect("mask", result)
}

// upReplies declares the replies to the members, with those that the parent causes.
func (b *coreBuilder) upReplies() {
	m := b.m
	m.Comment("Replies, with those that the parent causes")
	b.wires("all_", []jobWire{
		{"answer", 1, ""}, {"notice", 1, ""},
		{"notice_code", 8, ""}, {"notice_ports", b.Workers, ""}, {"notice_vid", 32, ""},
	})
	m.Assign("all_answer", "answer && !up_passes_on")
	m.Assign("all_notice", "notice || up_notice")
	m.Assign("all_notice_code", "up_notice ? up_code : notice_code")
	m.Assign("all_notice_ports", "up_notice ? "+b.ofJob("present", b.Workers, "e_job")+" : notice_ports")
	m.Assign("all_notice_vid", "up_notice ? e_vid : notice_vid")
}

// reply returns the wire with all replies of a kind.
func (b *coreBuilder) reply(event string) string {
	if b.Parent {
		return "all_" + event
	}
	return event
}

// upFinish adds the finishes to the parent, which leave between the statuses.
func (b *coreBuilder) upFinish(status []jobWire) {
	m := b.m
	b.wires("status_", status)
	m.Wire("finish_repeats", 1, "a finish is owed again")
	i := m.Instance("agg_up_finish", "u_up_finish", "")
	i.Param("PORTS", fmt.Sprint(b.Inputs()))
	b.params(i, "JOBS", "JOB_BITS")
	i.Connect("passes_on", "up_passes_on").Connect("job", "e_job").Connect("vid", "e_vid").
		Connect("repeats", "finish_repeats").
		Connect("up_ready", b.upPort("ready", 1))
	for _, s := range status {
		i.Connect("status_"+s.name, "member_status_"+s.name).Connect("pick_"+s.name, "status_"+s.name)
	}
}

// upOwed adds the own sums that are owed to the parent. They take turns with the results.
func (b *coreBuilder) upOwed() {
	m := b.m
	m.Comment("Own sums for the parent")
	b.wires("up_pick_", []jobWire{
		{"wants", 1, ""}, {"ready", 1, ""}, {"valid", 1, ""}, {"slot", b.slotBits, ""}, {"job", b.jobBits, ""},
	})
	m.Wire("sum_repeats", 1, "an own sum is owed again")
	m.Wire("pick_up", 1, "the pick is an own sum")
	m.Wire("turn_ready", 2, "")
	i := m.Instance("agg_up_owed", "u_up_owed", "")
	b.params(i, "JOBS", "JOB_BITS", "SLOT_BITS")
	i.Connect("enter", "begun && "+b.ofJob("job_tree", 1, "begun_job")+" && begun_gen").
		Connect("enter_slot", "begun_slot").Connect("enter_job", "begun_job").
		Connect("reduced", "reduced && "+b.ofJob("job_tree", 1, "reduced_job")+" && !reduced_gen").
		Connect("slot", "e_slot").Connect("job", "e_job").Connect("vid", "e_vid").
		Connect("repeats", "sum_repeats").
		Connect("pick_ready", "up_pick_ready && "+b.upPort("ready", 1))
	for _, name := range []string{"wants", "valid", "slot", "job"} {
		i.Connect("pick_"+name, "up_pick_"+name)
	}
	i = m.Instance("agg_turns", "u_up_turns", "")
	i.Param("PORTS", fmt.Sprint(b.Inputs())).Param("JOBS", "2").Param("JOB_BITS", "1").
		Param("SLOT_BITS", fmt.Sprint(b.slotBits)).
		Connect("job_wants", netlist.Concat("up_pick_wants && "+b.upPort("ready", 1), "result_wants")).
		Connect("job_ready", "turn_ready").
		Connect("job_valid", netlist.Concat("up_pick_valid", "result_valid")).
		Connect("job_slot", netlist.Concat("up_pick_slot", "result_slot")).
		Connect("job_receivers", netlist.Concat(fmt.Sprintf("1'd1, %d'd0, 1'd0", b.Workers), "result_receivers_of")).
		Connect("job_replay", netlist.Concat("1'd0", "result_replay")).
		Connect("pick_job", "pick_up")
	m.Assign("up_pick_ready", "turn_ready[1]")
	m.Assign("result_ready", "turn_ready[0]")
	if b.Jobs == 1 {
		m.Wire("unused_jobs", 2, "there is one job")
		m.Assign("unused_jobs", netlist.Concat("up_pick_job", "pick_up"))
		m.Assign("pick_job", "1'd0")
	} else {
		m.Assign("pick_job", "pick_up ? up_pick_job : result_job")
	}
}

// chunkTurn adds a wire with a bit that alternates from a slot's chunk to its next one: gen does not,
// where a chunk has two sums.
func (b *coreBuilder) chunkTurn(wire, vid, job string) {
	bits := b.slotBits + 1
	b.m.Wire(wire, 1, "alternates with the slot's chunks")
	b.m.Assign(wire, fmt.Sprintf("|(%s & (%s + %d'd1))", vid,
		widen(b.ofJob("slot_mask", b.slotBits, job), b.slotBits, bits), bits))
}

// upRegisters adds the registers of trees of cards, in front of the others.
func (b *coreBuilder) upRegisters() {
	m := b.m
	b.wires("bank_", []jobWire{
		{"valid", 1, ""}, {"ready", 1, ""}, {"write", 1, ""}, {"addr", 32, ""}, {"wdata", 64, ""}, {"partial", 1, ""},
		{"stranger", 1, ""},
		{"answer_valid", 1, ""}, {"answer_ready", 1, ""}, {"answer_code", 8, ""}, {"answer_value", 64, ""},
	})
	dropped := "up_dropped"
	if b.parentOnNetwork() {
		m.Wire("all_up_dropped", 1, "a packet of the parent is dropped in the core, or in front of it")
		m.Instance("agg_up_drops", "u_up_drops", "").
			Param("EVENTS", fmt.Sprint(b.Ethernet+1)).
			Connect("events", netlist.Concat("up_dropped", "up_lost")).
			Connect("dropped", "all_up_dropped")
		dropped = "all_up_dropped"
	}
	m.Wire("up_code_valid", 1, "a write was answered here")
	m.Wire("up_reg_code", 8, "")
	i := m.Instance("agg_up_registers", "u_up_registers", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	for _, name := range []string{"valid", "ready", "write", "addr", "wdata", "partial", "stranger"} {
		i.Connect("core_"+name, "bank_"+name)
	}
	for _, name := range answerSignals {
		i.Connect("answer_"+name, "bank_answer_"+name)
	}
	i.Connect("m_code_valid", "up_code_valid").Connect("m_code", "up_reg_code").
		Connect("parent", "staged_parent").Connect("repeats", "staged_repeat").Connect("tree", "staged_tree").
		Connect("clear_staged", "up_clear_staged").
		Connect("up_sent", "sends_up").Connect("up_dropped", dropped).
		Connect("repeats_sum", "sum_repeats").Connect("repeats_finish", "finish_repeats")
}

// behindUpRegisters connects agg_registers to them.
func (b *coreBuilder) behindUpRegisters(i *netlist.Instance) {
	for _, name := range []string{"valid", "ready", "write", "addr", "wdata", "partial", "stranger"} {
		i.Connect("s_reg_"+name, "bank_"+name)
	}
	for _, name := range answerSignals {
		i.Connect("m_reg_"+name, "bank_answer_"+name)
	}
	i.Connect("s_code_valid", "s_code_valid || up_code_valid").
		Connect("s_code", "s_code_valid ? s_code : up_reg_code").
		Connect("op_valid", "asks_op")
}
