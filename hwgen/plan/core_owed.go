package plan

import "tributary/hwgen/netlist"

// picker adds the leaf that picks a job's results, with what only agg_owed or agg_release has.
func (b *coreBuilder) picker() *netlist.Instance {
	if !b.Release {
		i := b.eachJob("g_owed").Instance("agg_owed", "u_owed", "")
		b.params(i, "PORTS", "SLOT_BITS")
		return i.Connect("owe_nearly_full", b.ofJob("owe_nearly_full", 1, "j"))
	}
	early := "released_early"
	if b.Jobs > 1 {
		early = "early"
		b.m.Wire(early, b.Jobs, "a job's pick is for a port that misses the result before")
		b.m.Assign("released_early", "|early")
	}
	i := b.eachJob("g_release").Instance("agg_release", "u_release", "")
	b.params(i, "PORTS", "PORT_BITS", "SLOT_BITS")
	return i.Connect("store", b.ifJob("store", "e_jobs")).Connect("store_ports", "complete_ports").
		Connect("port_index", "e_port").
		Connect("released_early", b.ofJob(early, 1, "j"))
}

// owed adds a queue of results and receivers for each job, and agg_turns, which
// alternates between the jobs. They declare what is picked, and when.
func (b *coreBuilder) owed() {
	m := b.m
	b.wires("", []jobWire{
		{"decide", 1, "every second cycle: picks are made"},
		{"ready", b.Inputs(), "ports that can take a packet"},
		{"starting", b.Inputs(), "ports that were just given one: not ready yet"},
	})
	if b.Release {
		m.Assign("slow", "1'b0")
	} else {
		m.Wire("owe_nearly_full", b.Jobs, "")
		m.Assign("slow", "|owe_nearly_full")
	}
	result := []jobWire{
		{"ready", 1, "picks a result now"},
		{"valid", 1, "the pick"},
		{"slot", b.slotBits, ""},
		{"receivers", b.Workers, "destination ports"},
		{"replay", 1, ""},
	}
	picked := append(result[:1:1], result[3:]...) // the others are declared with the reader
	if b.Parent {
		picked[1].width = b.Inputs()
	}
	b.wires("pick_", picked)
	within := func(slot string) string { return slot }
	pick, ready := "pick_", "pick_ready"
	all, wants, merged := "pick_", "unused_pick_wants", "pick_job"
	begun, begunGen, gen := "begun", "begun_gen", "e_gen"
	if b.Parent {
		all, wants, merged = "result_", "result_wants", "result_job"
		begun, begunGen, gen = "begun_result", "begun_turn", "e_turn"
		m.Comment("Results for the members; own sums are not owed to them")
		b.wires("result_", []jobWire{{"wants", 1, ""}, {"ready", 1, ""}, {"valid", 1, ""}, {"slot", b.slotBits, ""}})
		m.Wire("result_receivers_of", b.Workers, "destination ports")
		m.Wire("result_replay", 1, "")
		m.Wire(begun, 1, "")
		m.Assign(begun, "begun && !("+b.ofJob("job_tree", 1, "begun_job")+" && begun_gen)")
		b.chunkTurn(begunGen, "begun_vid", "begun_job")
		b.chunkTurn(gen, netlist.Slice("e_vid", 0, b.slotBits+1), "e_job")
		if b.Jobs == 1 {
			pick, ready = "result_", "result_ready"
		} else {
			m.Wire("result_job", b.jobBits, "")
		}
	}
	if b.Jobs == 1 && !b.Parent {
		m.Wire(wants, 1, "")
	}
	if b.Jobs > 1 {
		m.Comment("Each job's picks" + b.byJob() + "; slots relative to the job's first")
		m.Wire("owed_wants", b.Jobs, "")
		for _, w := range result {
			m.Wire("owed_"+w.name, w.width*b.Jobs, "")
		}
		within = func(slot string) string { return slot + " & " + b.ofJob("slot_mask", b.slotBits, "j") }
		pick, ready = "owed_", "owed_ready"
	}
	b.decodeJob("begun_jobs", "begun_job")
	i := b.picker()
	i.Connect("flush", b.ofJob("flush", 1, "j")).
		Connect("clear_slot", within("clear_slot")).
		Connect("slot_mask", b.ofJob("slot_mask", b.slotBits, "j")).
		Connect("member", b.ofJob("present", b.Workers, "j")).
		Connect("begun", b.ifJob(begun, "begun_jobs")).Connect("begun_slot", within("begun_slot")).
		Connect("begun_gen", begunGen).
		Connect("slot", within("e_slot")).Connect("gen", gen).
		Connect("turn_over", b.ifJob("turn_over", "e_jobs")).
		Connect("owe", b.ifJob("owe", "e_jobs")).
		Connect("port", "judged").
		Connect("pick_ready", b.ofJob(ready, 1, "j"))
	if b.Parent {
		i.Connect("ready", b.workers("ready", 1)).Connect("starting", b.workers("starting", 1))
	}
	if b.Jobs == 1 {
		i.Connect("pick_wants", wants)
		if !b.Parent {
			m.Assign("pick_job", "1'd0")
		}
	} else {
		i.Connect("pick_wants", b.ofJob("owed_wants", 1, "j"))
	}
	for _, w := range result[1:] {
		name := w.name
		if pick == "result_" && name == "receivers" {
			name = "receivers_of"
		}
		i.Connect("pick_"+w.name, b.ofJob(pick+name, w.width, "j"))
	}
	if b.Parent {
		defer b.upOwed()
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
	if b.Parent {
		m.Assign("result_wants", "|owed_wants")
		for _, name := range []string{"ready", "valid", "slot", "replay"} {
			i.Connect("pick_"+name, all+name)
		}
		i.Connect("pick_receivers", "result_receivers_of").Connect("pick_job", merged)
	}
}
