package plan

import (
	"fmt"
	"math/bits"

	"tributary/hwgen/netlist"
)

// jobs adds agg_jobs, and declares its outputs.
func (b *coreBuilder) jobs() {
	m := b.m
	m.Comment("-- Jobs --")
	m.Wire("flush", b.Jobs, "the job ends"+b.byJob())
	m.Wire("hold_commits", 1, "nothing is picked for the commit")
	m.Wire("idle", 1, "and nothing is being judged")
	m.Wire("clear", 1, "empties a slot")
	m.Wire("clear_slot", b.slotBits, "")
	m.Wire("drop_statuses", b.Jobs, "")
	m.Wire("drained", b.Jobs, "no slot of the job is being reduced")
	m.Wire("sets_up", b.Jobs, "the job is being set up")
	m.Wire("sets_up_job", b.jobBits, "the job's number")
	m.Wire("cleared", 1, "the job's old counts are cleared")
	for _, w := range b.jobWires() {
		m.Wire(w.name, w.width*b.Jobs, w.doc)
	}
	for _, w := range operations {
		m.Wire(w.name, w.width, "")
	}
	evicted := "answer_mask"
	if b.Parent {
		b.upJobs()
		evicted = "answer_ranks"
	}
	i := m.Instance("agg_jobs", "u_jobs", "")
	b.params(i, "PORTS", "PORT_BITS", "JOBS", "JOB_BITS")
	i.Param("CHUNK", fmt.Sprint(b.Chunk)).Param("WINDOW", fmt.Sprint(b.Window))
	b.params(i, "SLOT_BITS", "INDEX_BITS")
	i.Param("LANE_BITS", fmt.Sprint(bits.TrailingZeros(uint(b.Lanes)))).
		Param("STAGES", fmt.Sprint(b.rankStages())).
		Connect("finish", "finished").Connect("finish_job", "e_job").
		Connect("finish_bit", "e_rank_bit").Connect("finish_ports", "judged").
		Connect("evict_job", "e_job").Connect("evict_ranks", evicted)
	if b.Parent {
		i.Connect("parent_done", "up_done").Connect("parent_job", "e_job")
		b.upAddressChecks(i)
	}
	m.Assign("job_ports", "op_ports")
	m.Assign("set_up", "|sets_up")
}

// jobWire is an output of agg_jobs, with a field for every job.
type jobWire struct {
	name  string
	width int // for one job
	doc   string
}

// jobWires lists the outputs of agg_jobs that describe the jobs.
func (b *coreBuilder) jobWires() []jobWire {
	return []jobWire{
		{"job_valid", 1, "set up"},
		{"job_complete", 1, "the last one ended because all ranks finished"},
		{"job_ever", 1, "the job has had an epoch"},
		{"job_epoch", 16, ""},
		{"job_chunk", 16, "elements"},
		{"job_last", b.indexBits, "number of a chunk's last beat"},
		{"job_window", b.slotBits, "chunks"},
		{"slot_mask", b.slotBits, "twice the window, minus 1"},
		{"slot_base", b.slotBits, "the first slot"},
		{"job_first", 32, "first VID"},
		{"job_deadline", 32, "cycles; 0: no deadline"},
		{"job_partial", 1, "partial sums are enabled"},
		{"job_finished", b.Workers, "finished ranks"},
		{"job_evicted", b.Workers, "evicted ranks"},
		{"evicted", b.Workers, "evicted ports"},
		{"present", b.Workers, "member ports that are not evicted"},
	}
}

// byJob returns a comment on the order of the jobs in vectors.
func (b *coreBuilder) byJob() string {
	if b.Jobs == 1 {
		return ""
	}
	return ", job 0 in the lowest bits"
}

// ofJob selects the field of a vector for the job whose number is on a wire.
func (b *coreBuilder) ofJob(name string, width int, index string) string {
	return element(name, width, b.Jobs, index)
}

// forJob selects the field of a vector for one job.
func (b *coreBuilder) forJob(name string, width, job int) string {
	if b.Jobs == 1 {
		return name
	}
	return netlist.Slice(name, job*width, width)
}

// eachJob returns where to add a part of the core that each job has: in a loop, or in the module
// if there is only one job.
func (b *coreBuilder) eachJob(loop string) *netlist.Body {
	if b.Jobs == 1 {
		return b.m.Body
	}
	return b.m.Loop(loop, "j", 0, b.Jobs).Body
}

// decodeJob adds a wire with the job whose number is on another wire, one hot. ifJob needs it.
func (b *coreBuilder) decodeJob(jobs, index string) {
	if b.Jobs > 1 {
		b.m.Wire(jobs, b.Jobs, index+", one hot")
		b.m.Assign(jobs, fmt.Sprintf("%d'd1 << %s", b.Jobs, index))
	}
}

// ifJob restricts a condition to a job, in the loop over all jobs.
func (b *coreBuilder) ifJob(condition, jobs string) string {
	if b.Jobs == 1 {
		return condition
	}
	return fmt.Sprintf("%s && %s[j]", condition, jobs)
}

// rankStages returns the cycles that agg_port_ranks takes.
func (p *Plan) rankStages() int {
	if p.Workers > 16 {
		return 2
	}
	return 1
}

// portRanks adds agg_port_ranks, which converts a mask of ports of a job to ranks.
func (b *coreBuilder) portRanks(name, index, ports, ranks string) {
	i := b.m.Instance("agg_port_ranks", name, "")
	b.params(i, "PORTS", "PORT_BITS")
	i.Param("STAGES", fmt.Sprint(b.rankStages())).
		Connect("member", b.ofJob("member", b.Workers, index)).
		Connect("rank_of_port", b.ofJob("rank_of_port", 8*b.Workers, index)).
		Connect("ports", ports).
		Connect("ranks", ranks)
}

// operations lists the wires by which agg_registers makes agg_jobs set up and end
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
