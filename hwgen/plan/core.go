package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// coreLatency is what the core adds to the lanes' latency: the port's
// register, the grant of the commit, its check, the slot's read, the gate behind the
// memories' output, and the egress's register.
const coreLatency = 7

// requestBits is the width of a commit's request; agg_ingress lists its fields.
const requestBits = 102

// coreBuilder holds the module agg_core while it is put together.
type coreBuilder struct {
	*Plan
	m *netlist.Module

	portBits  int // of a port's number
	jobBits   int // of a job's number
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
		jobBits:   indexWidth(p.Jobs),
		slotBits:  indexWidth(p.Slots),
		indexBits: indexWidth(p.Beats),
		countBits: indexWidth(p.Lanes + 1),
	}
	b.m.Doc = fmt.Sprintf(`The aggregator between AXI4-Stream ports.

Every port's chunks are stored in its slot memory; a slot that holds all members of its job is read
from all memories at once, summed lane by lane, and its result is kept in the cache and sent.

Into each port go data, ask and finish packets: the 14 bytes of the header stand in tuser[111:0]
on a packet's first beat, tuser[112] on its last says that the payload is bad. Packets without
payload are one beat with tkeep = 0. Out of m_axis come results and statuses: the 30 bytes of
the header stand in tuser during the whole packet, the ports that it is for in tdest. A
packet is begun only for ports that are ready, and m_axis_tready must then let it pass.

Latency from a chunk's last beat to its result's first: %d cycles, %d of them in the
lanes. rst is synchronous. hold is high while a job ends or is set up, unjudged while packets wait
to be judged. Not done here: framing and CRC, which are the shell's.`, p.Latency, p.SumLatency)
	b.ports()
	b.jobs()
	b.portWires()
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
	return i
}

// params sets parameters that several leaves have alike.
func (b *coreBuilder) params(i *netlist.Instance, names ...string) {
	values := map[string]int{
		"PORTS":      b.Workers,
		"PORT_BITS":  b.portBits,
		"JOBS":       b.Jobs,
		"JOB_BITS":   b.jobBits,
		"SLOT_BITS":  b.slotBits,
		"INDEX_BITS": b.indexBits,
		"BEAT_BITS":  b.BeatBits,
	}
	for _, n := range names {
		i.Param(n, fmt.Sprint(values[n]))
	}
}

// prefixed connects ports to wires that have a prefix before their names.
func prefixed(i *netlist.Instance, prefix string, names ...string) {
	for _, n := range names {
		i.Connect(n, prefix+n)
	}
}
