package plan

// owed adds a queue of results and receivers for each job, and agg_turns, which
// alternates between the jobs.
func (b *coreBuilder) owed() {
	m := b.m
	pick := map[string]string{"valid": "result_valid", "slot": "result_slot", "receivers": "result_to", "replay": "result_replay", "take": "result_take"}
	if b.Jobs > 1 {
		m.Comment("Each job's next result" + b.byJob() + "; slots relative to the job's first")
		m.Wire("owed_valid", b.Jobs, "")
		m.Wire("owed_slot", b.slotBits*b.Jobs, "")
		m.Wire("owed_receivers", b.Workers*b.Jobs, "")
		m.Wire("owed_replay", b.Jobs, "")
		m.Wire("owed_take", b.Jobs, "")
		for signal := range pick {
			pick[signal] = "owed_" + signal
		}
	}
	b.decodeJob("sum_jobs", "sum_job")
	within := func(slot string) string { return slot }
	if b.Jobs > 1 {
		within = func(slot string) string { return slot + " & " + b.ofJob("slot_mask", b.slotBits, "j") }
	}
	i := b.eachJob("g_owed").Instance("agg_owed", "u_owed", "")
	b.params(i, "PORTS", "SLOT_BITS")
	i.Connect("flush", b.ofJob("flush", 1, "j")).
		Connect("slot_mask", b.ofJob("slot_mask", b.slotBits, "j")).
		Connect("member", b.ofJob("present", b.Workers, "j")).
		Connect("begun", b.ifJob("begun", "sum_jobs")).Connect("begun_slot", within("sum_slot")).
		Connect("slot", within("slot")).
		Connect("turn_over", b.ifJob("turn_over", "commit_jobs")).
		Connect("owe", b.ifJob("owe", "commit_jobs")).
		Connect("port", "commit_ports").Connect("ready", "port_ready").
		Connect("pick_valid", b.ofJob(pick["valid"], 1, "j")).
		Connect("pick_slot", b.ofJob(pick["slot"], b.slotBits, "j")).
		Connect("pick_receivers", b.ofJob(pick["receivers"], b.Workers, "j")).
		Connect("pick_replay", b.ofJob(pick["replay"], 1, "j")).
		Connect("pick_take", b.ofJob(pick["take"], 1, "j"))
	if b.Jobs == 1 {
		m.Assign("result_job", "1'd0")
		return
	}
	i = m.Instance("agg_turns", "u_turns", "")
	b.params(i, "PORTS", "JOBS", "JOB_BITS", "SLOT_BITS")
	i.Connect("job_valid", "owed_valid").
		Connect("job_slot", "owed_slot | slot_base").
		Connect("job_receivers", "owed_receivers").
		Connect("job_replay", "owed_replay").
		Connect("job_take", "owed_take").
		Connect("pick_valid", "result_valid").Connect("pick_job", "result_job").
		Connect("pick_slot", "result_slot").Connect("pick_receivers", "result_to").
		Connect("pick_replay", "result_replay").Connect("pick_take", "result_take")
}
