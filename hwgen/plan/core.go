package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// coreLatency is the core's latency besides the lanes, in cycles: two registers of the port; the
// commit's pick, multiplexer and check; the slot's read, two steps of it, judgement, two steps of
// it, and events; the choice of the slot, its read, two of the gate; then, behind the lanes, the cache,
// which forwards, and the output.
const coreLatency = 15

const (
	// labelLatency is the maximum latency of a sum that is in the cache before its result is labelled,
	// without the cycles that ports take to become ranks: up to the choice of the slot as above, and
	// its announcement; the choice of the result, at every second cycle, and its pick; its header; its
	// first beat, and the output.
	labelLatency = 23

	// ResultSpacing is the minimum number of cycles from the start of a result to the next one's: only
	// then do the ports' queues know whether they have room for it.
	ResultSpacing = 6

	// CommitSpacing is the number of cycles from a commit to the next.
	CommitSpacing = 2

	// clearOverhead is the maximum number of cycles for which the commit pauses before and after the
	// clearing of a job's slots, and setupOverhead those, besides one for each port, in which another
	// job is set up in its place. agg_jobs lists them.
	clearOverhead = 14
	setupOverhead = 2
)

// readLatency is the number of cycles from agg_reader's choice of a beat to its arrival at the slot
// memories' outputs.
const readLatency = 2

// coreBuilder builds the module agg_core.
type coreBuilder struct {
	*Plan
	m *netlist.Module

	portBits  int // width of a port's number
	inputBits int // the same, with the up port
	jobBits   int // width of a job's number
	slotBits  int // width of a slot's number
	indexBits int // width of a beat's number in its chunk
	rowBits   int // width of a number of a pair of slots
	countBits int // width of a number of lanes
}

// core builds agg_core.
func (p *Plan) core() *netlist.Module {
	b := &coreBuilder{
		Plan:      p,
		m:         netlist.New("agg_core", ""),
		portBits:  indexWidth(p.Workers),
		inputBits: indexWidth(p.Inputs()),
		jobBits:   indexWidth(p.Jobs),
		slotBits:  indexWidth(p.Slots),
		indexBits: indexWidth(p.Beats),
		rowBits:   indexWidth(p.Window),
		countBits: indexWidth(p.Lanes + 1),
	}
	b.m.Doc = fmt.Sprintf(`The aggregator between AXI4-Stream ports.

Each port stores its chunks in a slot memory of its own. Once a slot has a chunk from every
member of its job, the core reads all memories, sums lane by lane, caches and sends the result.

Ports accept data, ask and finish packets. tuser[111:0] is the 14-byte header, on a packet's
first beat; tuser[112] marks a damaged payload, on the last beat. A packet without payload is
one beat with tkeep = 0. m_axis sends results and statuses: tuser is the 30-byte header during
the whole packet, tdest the destination ports. The core starts a packet only for ports that are
ready, and announces it at port_start; m_axis_tready must then let the whole packet pass. Port 0
has the lowest bits of vectors.

Latency from a chunk's last beat to its result's first: %d cycles, %d of them in the
lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets
wait for the commit. Not done here: framing and CRC, which the shell does.`, p.Latency, p.SumLatency)
	if p.Parent {
		b.m.Doc += upDoc
	}
	b.ports()
	b.events()
	b.jobs()
	b.ingress()
	b.commits()
	b.reader()
	b.sums()
	b.cache()
	b.labels()
	b.egress()
	b.registers()
	if b.Shell.Release {
		b.m.Assign("job_on", "job_valid")
		b.m.Assign("job_epochs", "job_epoch")
	}
	b.note()
	return b.m
}

// note records the memories for the datasheet.
func (b *coreBuilder) note() {
	words := 1 << (b.slotBits + b.indexBits)
	b.memory("slot memory, one per port", b.Inputs(), words, b.BeatBits)
	if b.Lane.Shared != nil {
		b.memory("result cache, one per lane", b.Lanes, words, b.ResultBits)
		return
	}
	b.memory("result cache", 1, words, b.ResultBeatBits)
}

// params sets parameters that several leaves share.
func (b *coreBuilder) params(i *netlist.Instance, names ...string) {
	values := map[string]int{
		"PORTS":      b.Workers,
		"PORT_BITS":  b.portBits,
		"JOBS":       b.Jobs,
		"JOB_BITS":   b.jobBits,
		"SLOT_BITS":  b.slotBits,
		"INDEX_BITS": b.indexBits,
		"ROW_BITS":   b.rowBits,
		"LANES":      b.Lanes,
		"BEAT_BITS":  b.BeatBits,
	}
	for _, n := range names {
		i.Param(n, fmt.Sprint(values[n]))
	}
}

// inputParams is params for a leaf that also has the up port, if there is one.
func (b *coreBuilder) inputParams(i *netlist.Instance, names ...string) {
	for _, n := range names {
		switch n {
		case "PORTS":
			i.Param(n, fmt.Sprint(b.Inputs()))
		case "PORT_BITS":
			i.Param(n, fmt.Sprint(b.inputBits))
		default:
			b.params(i, n)
		}
	}
}

// prefixed connects ports to wires of the same names with a prefix.
func prefixed(i *netlist.Instance, prefix string, names ...string) {
	for _, n := range names {
		i.Connect(n, prefix+n)
	}
}
