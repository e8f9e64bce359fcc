package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// registers adds the register bank and the counters.
func (b *coreBuilder) registers() {
	b.m.Comment("-- Registers --")
	b.registerBank()
	b.jobCounts()
	b.lags()
	b.counters()
}

// registerBank adds agg_registers, and declares its inputs from the counters.
func (b *coreBuilder) registerBank() {
	m := b.m
	m.Wire("lag_job", b.jobBits, "")
	m.Wire("lag_rank", b.portBits, "")
	m.Wire("lag_bucket", 4, "")
	m.Wire("lag_value", 32, "")
	m.Wire("counter_index", 6, "")
	m.Wire("counter_value", 32, "")
	for _, c := range jobCounts {
		m.Wire(c.name, c.width*b.Jobs, "")
	}
	if b.Parent {
		b.upRegisters()
	}
	i := m.Instance("agg_registers", "u_registers", "")
	if b.Parent {
		b.behindUpRegisters(i)
	}
	for _, r := range wire.Registers {
		if v, ok := b.Constant(r.Addr); ok && (r.Ident || r.Addr == wire.RegConfigHash) {
			i.Param(r.Name, constant(v, r))
		}
	}
	b.params(i, "JOB_BITS")
	i.Param("RANK_BITS", fmt.Sprint(b.portBits))
	// each widens the field of every job.
	each := func(name string, from, to int) string {
		return join(b.Jobs, func(j int) string { return widen(b.forJob(name, from, j), from, to) })
	}
	i.Connect("job_finished", each("job_finished", b.Workers, 64)).
		Connect("job_members", each("member", b.Workers, 64)).
		Connect("job_evicted", each("job_evicted", b.Workers, 64)).
		Connect("job_base", each("slot_base", b.slotBits, 16)).
		Connect("job_slots", join(b.Jobs, func(j int) string {
			return fmt.Sprintf("16'd1 + %s", widen(b.forJob("slot_mask", b.slotBits, j), b.slotBits, 16))
		}))
}

// jobCounts adds agg_job_counts, which counts NaNs, infinities and overflows of one job.
func (b *coreBuilder) jobCounts() {
	b.decodeJob("written_jobs", "written_job")
	i := b.eachJob("g_counts").Instance("agg_job_counts", "u_job_counts", "").
		Param("COUNT_BITS", fmt.Sprint(b.countBits)).
		Connect("clear", b.ofJob("sets_up", 1, "j")).
		Connect("stored_nonfinite", b.ifJob("store_nonfinite", "e_jobs")).
		Connect("vid", "e_vid").Connect("rank", "e_rank").
		Connect("wr_en", b.ifJob("written", "written_jobs")).Connect("wr_vid", "written_vid")
	for _, c := range jobCounts {
		i.Connect(c.name, b.ofJob(c.name, c.width, "j"))
	}
}

// lags adds agg_lags, the histograms of lateness by rank.
func (b *coreBuilder) lags() {
	i := b.m.Instance("agg_lags", "u_lags", "").
		Param("RANK_BITS", fmt.Sprint(b.portBits))
	b.params(i, "JOB_BITS", "SLOT_BITS")
	i.Connect("clear", "|sets_up").Connect("clear_job", "sets_up_job").Connect("ready", "cleared").
		Connect("slot", "e_slot").Connect("job", "e_job").Connect("rank", netlist.Slice("e_rank", 0, b.portBits)).
		Connect("rd_job", "lag_job").Connect("rd_rank", "lag_rank").Connect("rd_bucket", "lag_bucket").
		Connect("value", "lag_value")
}

// counters adds agg_counters, the event counters of the card.
func (b *coreBuilder) counters() {
	undecided, stalled := "1'b0", "1'b0"
	if b.Lane.Shared != nil {
		undecided, stalled = "undecided", "stalled"
	}
	i := b.m.Instance("agg_counters", "u_counters", "").
		Param("COUNT_BITS", fmt.Sprint(b.countBits))
	if b.Shell.Code.Network() {
		i.Param("EVENT_BITS", fmt.Sprint(b.eventBits())).Param("LINK", "0")
	}
	i.Connect("clear", "clear_counters").
		Connect("stored", "store").Connect("stored_ce", "store_ce").
		Connect("stored_nonfinite", "store_nonfinite").
		Connect("partial", fmt.Sprintf("complete && |(%s & ~complete_ports)", b.ofJob("member", b.Workers, "e_job"))).
		Connect("evicts", "|evict").
		Connect("chunk", "reduced").Connect("beat", "beat_strobe").
		Connect("result", "sends_result").
		Connect("replay", "sends_replay").
		Connect("status", "sends_status").
		Connect("nonfinite_out", "nonfinite").Connect("undecided", undecided).Connect("stalled", stalled).
		Connect("index", "counter_index").Connect("value", "counter_value")
}

// jobCounts lists the wires from agg_job_counts to agg_registers.
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

// constant writes the value of a register in a readable base: hashes and formats in
// hexadecimal, everything else in decimal.
func constant(v uint64, r wire.Register) string {
	if r.Addr == wire.RegConfigHash || r.Addr == wire.RegFormat {
		return fmt.Sprintf("64'h%x", v)
	}
	return fmt.Sprintf("64'd%d", v)
}
