package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// egress adds the queues of results and statuses, and their sender.
func (b *coreBuilder) egress() {
	m := b.m
	m.Comment("-- Egress --")
	m.Wire("pick_job", b.jobBits, "of the result that is picked")
	b.owed()
	m.Comment("The picked result; its ranks")
	b.wires("label_", []jobWire{
		{"job", b.jobBits, ""},
		{"receivers", b.Inputs(), "destination ports"},
	})
	b.wires("result_", []jobWire{
		{"mask", b.maskBits(), "ranks in the sum"},
		{"receivers", b.Workers, "ranks that receive it"},
	})
	if b.Parent {
		b.upMasks("u_contributors", "label_job", b.workers("result_ports", 1), b.ofJob("job_tree", 1, "label_job"),
			b.ofJob("job_tree_ranks", 64, "label_job"), "result_mask")
	} else {
		b.portRanks("u_contributors", "label_job", "result_ports", "result_mask")
	}
	if b.Parent {
		m.Wire("unused_up", 2, "no result goes to the up port")
		m.Assign("unused_up", netlist.Concat(b.upPort("starting", 1), b.upPort("label_receivers", 1)))
	}
	b.portRanks("u_receivers", "label_job", b.workers("label_receivers", 1), "result_receivers")

	b.statuses()
	b.sender()
}

// statuses adds the queue of statuses, and declares its head. Replies wait for the ranks that they
// name.
func (b *coreBuilder) statuses() {
	m := b.m
	status := []jobWire{
		{"wants", 1, ""}, {"ready", 1, "picks a status now"}, {"valid", 1, "the pick"}, {"ports", b.Workers, "its port, one hot"},
		{"job", 8, ""}, {"epoch", 16, ""}, {"rank", 8, ""}, {"code", 8, ""}, {"vid", 32, ""}, {"mask", b.maskBits(), ""},
	}
	reply := []struct {
		jobWire
		event string // the wire that is delayed
	}{
		{jobWire{"answer", 1, ""}, b.reply("answer")},
		{jobWire{"refuse", 1, ""}, "refused_answer"},
		{jobWire{"notice", 1, ""}, b.reply("notice")},
		{jobWire{"answer_code", 8, ""}, "answer_code"},
		{jobWire{"refuse_code", 8, ""}, "refused_code"},
		{jobWire{"notice_code", 8, ""}, b.reply("notice_code")},
		{jobWire{"port", b.portBits, ""}, "e_port"},
		{jobWire{"job", 8, ""}, "e_number"},
		{jobWire{"epoch", 16, ""}, "e_epoch"},
		{jobWire{"rank", 8, ""}, "e_rank"},
		{jobWire{"vid", 32, ""}, "e_vid"},
		{jobWire{"notice_ports", b.Workers, ""}, b.reply("notice_ports")},
		{jobWire{"notice_job", b.jobBits, ""}, "e_job"},
		{jobWire{"notice_vid", 32, ""}, b.reply("notice_vid")},
	}
	if b.Parent {
		b.upReplies()
	}
	m.Comment("Replies, in the cycle of the ranks that they name")
	m.Wire("reply_valid", 1, "")
	var in, out []string
	width := 0
	for _, r := range reply {
		m.Wire("reply_"+r.name, r.width, "")
		in, out = append(in, r.event), append(out, "reply_"+r.name)
		width += r.width
	}
	m.Instance("agg_tag_delay", "u_replies", "").
		Param("WIDTH", fmt.Sprint(width)).
		Param("CYCLES", fmt.Sprint(b.rankStages())).
		Connect("in_valid", fmt.Sprintf("%s || refused_answer || %s", b.reply("answer"), b.reply("notice"))).
		Connect("in_tag", netlist.Concat(in...)).
		Connect("out_valid", "reply_valid").
		Connect("out_tag", netlist.Concat(out...))
	to := "status_"
	if b.Parent {
		to = "member_status_"
	}
	b.wires(to, status)
	if b.Release {
		m.Wire("unused_status_wants", 1, "no status leaves")
		m.Assign("status_wants", "1'b0")
	}
	i := m.Instance("agg_status", "u_status", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	for _, r := range reply {
		value := "reply_" + r.name
		if r.name == "answer" || r.name == "refuse" || r.name == "notice" {
			value = "reply_valid && " + value
		}
		i.Connect(r.name, value)
	}
	i.Connect("drop", "drop_statuses").
		Connect("notice_epoch", b.ofJob("job_epoch", 16, "reply_notice_job")).
		Connect("notice_ranks", b.ofJob("rank_of_port", 8*b.Workers, "reply_notice_job"))
	for _, s := range status {
		if b.Release && s.name == "wants" {
			i.Connect("pick_wants", "unused_status_wants")
			continue
		}
		i.Connect("pick_"+s.name, to+s.name)
	}
	if b.Parent {
		i.Connect("ready", b.workers("ready", 1))
		status[3].width = b.Inputs()
		b.upFinish(status)
	}
}

// sender adds agg_egress, which sends results and statuses.
func (b *coreBuilder) sender() {
	for _, kind := range []string{"result", "replay", "status"} {
		b.m.Wire("sends_"+kind, 1, "")
	}
	if b.Parent {
		b.m.Wire("sends_up", 1, "")
	}
	i := b.m.Instance("agg_egress", "u_egress", "")
	b.inputParams(i, "PORTS", "JOB_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Param("RANKS_LATENCY", fmt.Sprint(b.rankStages())).
		Param("FORMAT", fmt.Sprintf("8'd%d", b.Result.Format)).
		Connect("start", "port_start").
		Connect("job_last", b.ofJob("job_last", b.indexBits, "label_job")).
		Connect("job_number", b.number("label_job")).
		Connect("job_epoch", b.ofJob("job_epoch", 16, "label_job")).
		Connect("job_chunk", b.ofJob("job_chunk", 16, "label_job")).
		Connect("job_member", b.withUpPort("1'd0", b.ofJob("member", b.Workers, "label_job"))).
		Connect("rd_slot", "send_read_slot").Connect("rd_beat", "send_beat")
	if b.Parent {
		i.Connect("job_up_rank", b.ofJob("job_up_rank", 8, "label_job")).
			Connect("result_receivers", netlist.Concat("1'd0", "result_receivers"))
	}
	b.output(i)
}

// outFields are the fields of the core's output, without tdata.
func (b *coreBuilder) outFields() []jobWire {
	return []jobWire{
		{"tpayload", 1, "the beat has bytes"},
		{"tlast", 1, ""},
		{"tuser", 8 * wire.MaxHeaderBytes, ""},
		{"tdest", b.Inputs(), ""},
	}
}

// output adds the register behind agg_egress. That of tdata is in the cache.
func (b *coreBuilder) output(egress *netlist.Instance) {
	m := b.m
	egress.Connect("m_axis_tvalid", "out_tvalid").Connect("m_axis_tready", "out_tready")
	m.Wire("m_axis_tpayload", 1, "")
	var in, out []string
	width := 0
	for _, f := range b.outFields() {
		egress.Connect("m_axis_"+f.name, "out_"+f.name)
		if f.name == "tdest" {
			continue
		}
		in, out = append(in, "out_"+f.name), append(out, "m_axis_"+f.name)
		width += f.width
	}
	if b.Release {
		in, out = append(in, "out_tslot"), append(out, "m_axis_tslot")
		width += b.slotBits
		b.outputSlot()
	}
	m.Instance("agg_stage", "u_output", "").
		Param("WIDTH", fmt.Sprint(width)).Param("PORTS", fmt.Sprint(b.Inputs())).
		Connect("s_axis_tvalid", "out_tvalid").Connect("s_axis_tready", "out_tready").
		Connect("s_axis_tuser", netlist.Concat(in...)).
		Connect("m_axis_tuser", netlist.Concat(out...)).
		Connect("s_axis_tdest", "out_tdest")
	m.Assign("m_axis_tkeep", fmt.Sprintf("{%d{m_axis_tpayload}}", b.ResultKeepBits))
}

// outputSlot adds a register for the slot of a beat. It follows the cache's reads, as the data does.
func (b *coreBuilder) outputSlot() {
	m := b.m
	m.Wire("out_tslot", b.slotBits, "of the result")
	m.Wire("unused_slot_stage", 3, "its slot follows the beats that are read, valid or not")
	m.Instance("agg_stage", "u_slot", "").
		Param("WIDTH", fmt.Sprint(b.slotBits)).Param("PORTS", "1").
		Connect("s_axis_tvalid", "1'b1").Connect("s_axis_tready", "unused_slot_stage[0]").
		Connect("s_axis_tuser", "send_read_slot").Connect("s_axis_tdest", "1'd0").
		Connect("m_axis_tvalid", "unused_slot_stage[1]").
		Connect("m_axis_tready", "!out_tvalid || out_tready").
		Connect("m_axis_tuser", "out_tslot").Connect("m_axis_tdest", "unused_slot_stage[2]")
}

// labels adds agg_labels, which holds the header fields of the chunk in every slot.
func (b *coreBuilder) labels() {
	m := b.m
	m.Comment("-- Labels --")
	m.Wire("begun_gen", 1, "of begun_slot")
	m.Comment("The label of label_slot, two cycles later")
	b.wires("result_", []jobWire{
		{"ports", b.Inputs(), "that contributed"},
		{"vid", 32, ""},
		{"ecn", 2, ""},
		{"nonfinite", 1, ""},
		{"gen", 1, ""},
	})
	beat := "beat_members"
	if b.Parent {
		beat = "label_members"
		m.Wire("begun_vid", b.slotBits+1, "the lowest bits of its VID")
	}
	i := m.Instance("agg_labels", "u_labels", "")
	b.inputParams(i, "PORTS", "JOB_BITS", "SLOT_BITS")
	i.Connect("complete_slot", "e_slot").Connect("complete_job", "e_job").Connect("complete_gen", "e_gen").
		Connect("rd_slot", "choice_slot").
		Connect("complete_ports", b.withUpPort("taken", "complete_ports")).Connect("beat_ports", beat).
		Connect("wr_slot", "cache_sum_slot").
		Connect("send_slot", "label_slot").Connect("send_ports", "result_ports").Connect("send_vid", "result_vid").
		Connect("send_ecn", "result_ecn").Connect("send_nonfinite", "result_nonfinite").Connect("send_gen", "result_gen")
}

// number widens a job's number to the width of the header's field.
func (b *coreBuilder) number(index string) string { return widen(index, b.jobBits, 8) }
