package plan

import "fmt"

// egress adds the queues of results and statuses, and their sender.
func (b *coreBuilder) egress() {
	m := b.m
	m.Comment("-- Egress --")
	m.Wire("result_valid", 1, "a result is ready to send")
	m.Wire("result_job", b.jobBits, "")
	m.Wire("result_slot", b.slotBits, "")
	m.Wire("result_to", b.Workers, "the destination ports")
	m.Wire("result_replay", 1, "")
	m.Wire("result_take", 1, "")
	b.owed()
	b.labels()
	m.Wire("result_mask", b.Workers, "ranks in the sum")
	m.Wire("result_receivers", b.Workers, "ranks that receive it")
	b.portRanks("u_contributors", "result_job", "result_ports", "result_mask")
	b.portRanks("u_receivers", "result_job", "result_to", "result_receivers")

	b.statuses()
	b.sender()
}

// statuses adds the queue of statuses, and declares its head.
func (b *coreBuilder) statuses() {
	m := b.m
	status := []struct {
		name  string
		width int
	}{{"valid", 1}, {"port", b.portBits}, {"job", 8}, {"epoch", 16}, {"rank", 8}, {"code", 8}, {"vid", 32}, {"mask", b.Workers}, {"take", 1}}
	for _, s := range status {
		m.Wire("status_"+s.name, s.width, "")
	}
	i := m.Instance("agg_status", "u_status", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	prefixed(i, "commit_", "port", "job", "epoch", "rank", "vid")
	i.Connect("drop", "drop_statuses").
		Connect("refuse", "refused_answer").Connect("refuse_code", "refused_code").
		Connect("notice_job", "commit_index").
		Connect("notice_epoch", b.ofJob("job_epoch", 16, "commit_index")).
		Connect("notice_ranks", b.ofJob("rank_of_port", 8*b.Workers, "commit_index")).
		Connect("ready", "port_ready")
	for _, s := range status {
		i.Connect("pick_"+s.name, "status_"+s.name)
	}
}

// sender adds agg_egress, which sends results and statuses.
func (b *coreBuilder) sender() {
	i := b.m.Instance("agg_egress", "u_egress", "")
	b.params(i, "PORTS", "PORT_BITS", "SLOT_BITS", "INDEX_BITS")
	i.Param("KEEP_BITS", fmt.Sprint(b.ResultKeepBits)).
		Param("FORMAT", fmt.Sprintf("8'd%d", b.Result.Format)).
		Connect("result_last", b.ofJob("job_last", b.indexBits, "result_job")).
		Connect("result_ports", "result_to").
		Connect("result_job", b.number("result_job")).
		Connect("result_epoch", b.ofJob("job_epoch", 16, "result_job")).
		Connect("result_chunk", b.ofJob("job_chunk", 16, "result_job")).
		Connect("result_partial", fmt.Sprintf("|(%s & ~result_ports)", b.ofJob("member", b.Workers, "result_job"))).
		Connect("rd_en", "send_en").Connect("rd_slot", "send_slot").Connect("rd_beat", "send_beat").
		Connect("rd_written", "send_written")
	b.m.Assign("port_start", fmt.Sprintf("(result_take ? result_to : %[1]d'd0) | (status_take ? %[1]d'd1 << status_port : %[1]d'd0)", b.Workers))
}

// labels adds agg_labels, which holds the header fields of the chunk in every slot.
func (b *coreBuilder) labels() {
	m := b.m
	written := "written_job"
	if b.Jobs == 1 {
		written = "unused_written_job"
	}
	m.Wire(written, b.jobBits, "of the sum being written")
	m.Wire("written_vid", 32, "")
	m.Wire("result_ports", b.Workers, "ports in the result that is ready to send")
	m.Wire("result_vid", 32, "")
	m.Wire("result_ecn", 2, "")
	m.Wire("result_nonfinite", 1, "")
	i := m.Instance("agg_labels", "u_labels", "")
	b.params(i, "PORTS", "JOB_BITS", "SLOT_BITS")
	i.Connect("complete_slot", "slot").Connect("complete_job", "commit_index").
		Connect("beat_ports", "beat_members").
		Connect("written_job", written).
		Connect("send_slot", "result_slot").Connect("send_ports", "result_ports").Connect("send_vid", "result_vid").
		Connect("send_ecn", "result_ecn").Connect("send_nonfinite", "result_nonfinite")
}

// number widens a job's number to the width of the header's field.
func (b *coreBuilder) number(index string) string { return widen(index, b.jobBits, 8) }
