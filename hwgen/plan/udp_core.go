package plan

import (
	"strings"

	"tributary/hwgen/netlist"
)

// udpCore adds the core, and what ends its jobs when a lease is over.
func (p *Plan) udpCore(m *netlist.Module) {
	m.Comment("-- Core --")
	m.Wire("lease_holds", 1, "")
	m.Wire("unused_member", p.Workers*p.Jobs, "the address table has the ranks")
	m.Wire("unused_rank_of_port", 8*p.Workers*p.Jobs, "")
	m.Assign("lease_holds", "!lease_over")
	m.Instance("agg_link_session", "u_session", "").
		Connect("link_up", "lease_holds").
		Connect("busy", "hold")

	core := m.Instance("agg_core", "u_core", "").Connect("link_down", "down")
	for _, signal := range p.beatSignals() {
		core.Connect("s_axis_"+signal.name, "ingress_"+signal.name)
	}
	for _, signal := range []string{"tdata", "tkeep", "tvalid", "tready", "tlast", "tuser", "tdest"} {
		core.Connect("m_axis_"+signal, "egress_"+signal)
	}
	core.Connect("port_ready", repeat(p.Workers, "1'b1")).
		Connect("port_start", "packet_start").
		Connect("s_reg_partial", "1'b0")
	prefixed(core, "unused_", "member", "rank_of_port")
	for _, name := range []string{"valid", "ready", "write", "addr", "wdata"} {
		core.Connect("s_reg_"+name, "reg_"+name)
	}
	for _, name := range answerSignals {
		core.Connect("m_reg_"+name, "answer_"+name)
	}
	for _, e := range shellEvents {
		if !e.several {
			core.Connect(e.core, "1'b0")
			continue
		}
		core.Connect(e.core, p.howMany("event_"+e.leaf))
	}
	for _, w := range p.verdict() {
		core.Connect(w.name, "unused_"+w.name)
	}
}

// howMany returns how many bits of a vector with a bit for each Ethernet port are high.
func (p *Plan) howMany(vector string) string {
	if p.Ethernet == 1 {
		return vector
	}
	var terms []string
	for port := range p.Ethernet {
		terms = append(terms, widen(netlist.Slice(vector, port, 1), 1, p.eventBits()))
	}
	return strings.Join(terms, " + ")
}
