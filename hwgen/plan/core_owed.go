package plan

// owed adds a queue of results and receivers for each job, and agg_turns, which
// alternates between the jobs. They declare what is picked, and when.
func (b *coreBuilder) owed() {
	m := b.m
	b.wires("", []jobWire{
		{"decide", 1, "every second cycle: picks are made"},
		{"ready", b.Workers, "ports that can take a packet"},
		{"starting", b.Workers, "ports that were just given one: not ready yet"},
		{"owe_nearly_full", b.Jobs, ""},
	})
	m.Assign("slow", "|owe_nearly_full")
	result := []jobWire{
		{"ready", 1, "picks a result now"},
		{"valid", 1, "the pick"},
		{"slot", b.slotBits, ""},
		{"receivers", b.Workers, "destination ports"},
		{"replay", 1, ""},
	}
	b.wires("pick_", append(result[:1:1], result[3:]...)) // the others are declared with the reader
	within := func(slot string) string { return slot }
	pick, ready := "pick_", "pick_ready"
	if b.Jobs == 1 {
		m.Wire("unused_pick_wants", 1, "")
	} else {
		m.Comment("Each job's picks" + b.byJob() + "; slots relative to the job's first")
		m.Wire("owed_wants", b.Jobs, "")
		for _, w := range result {
			m.Wire("owed_"+w.name, w.width*b.Jobs, "")
		}
		within = func(slot string) string { return slot + " & " + b.ofJob("slot_mask", b.slotBits, "j") }
		pick, ready = "owed_", "owed_ready"
	}
	b.decodeJob("begun_jobs", "begun_job")
	i := b.eachJob("g_owed").Instance("agg_owed", "u_owed", "")
	b.params(i, "PORTS", "SLOT_BITS")
	i.Connect("flush", b.ofJob("flush", 1, "j")).
		Connect("clear_slot", within("clear_slot")).
		Connect("slot_mask", b.ofJob("slot_mask", b.slotBits, "j")).
		Connect("member", b.ofJob("present", b.Workers, "j")).
		Connect("begun", b.ifJob("begun", "begun_jobs")).Connect("begun_slot", within("begun_slot")).
		Connect("slot", within("e_slot")).Connect("gen", "e_gen").
		Connect("turn_over", b.ifJob("turn_over", "e_jobs")).
		Connect("owe", b.ifJob("owe", "e_jobs")).
		Connect("port", "judged").
		Connect("owe_nearly_full", b.ofJob("owe_nearly_full", 1, "j")).
		Connect("pick_ready", b.ofJob(ready, 1, "j"))
	if b.Jobs == 1 {
		i.Connect("pick_wants", "unused_pick_wants")
		m.Assign("pick_job", "1'd0")
	} else {
		i.Connect("pick_wants", b.ofJob("owed_wants", 1, "j"))
	}
	for _, w := range result[1:] {
		i.Connect("pick_"+w.name, b.ofJob(pick+w.name, w.width, "j"))
	}
	if b.Jobs == 1 {
		return
	}
	i = m.Instance("agg_turns", "u_turns", "")
	b.params(i, "PORTS", "JOBS", "JOB_BITS", "SLOT_BITS")
	i.Connect("job_wants", "owed_wants").
		Connect("job_ready", "owed_ready").
		Connect("job_valid", "owed_valid").
		Connect("job_slot", "owed_slot | slot_base").
		Connect("job_receivers", "owed_receivers").
		Connect("job_replay", "owed_replay")
}
