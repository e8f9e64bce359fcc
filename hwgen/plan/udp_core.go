package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// udpCore adds the core, and what ends its jobs when a lease is over.
func (p *Plan) udpCore(m *netlist.Module) {
	m.Comment("-- Core --")
	m.Wire("lease_holds", 1, "")
	m.Wire("unused_member", p.Workers*p.Jobs, "the address table has the ranks")
	ranks := "unused_rank_of_port"
	if p.Shell.Release {
		ranks = "rank_of_port"
	} else {
		m.Wire(ranks, 8*p.Workers*p.Jobs, "")
	}
	m.Assign("lease_holds", "!lease_over")
	m.Instance("agg_link_session", "u_session", "").
		Connect("link_up", "lease_holds").
		Connect("busy", "hold")

	counts := map[string]string{} // by event of the core
	for _, e := range shellEvents {
		counts[e.core] = "1'b0"
		if e.several {
			counts[e.core] = p.howMany(m, e.leaf)
		}
	}
	core := m.Instance("agg_core", "u_core", "").Connect("link_down", "down")
	for _, signal := range p.beatSignals() {
		core.Connect("s_axis_"+signal.name, "ingress_"+signal.name)
	}
	for _, signal := range []string{"tdata", "tkeep", "tvalid", "tready", "tlast", "tdest"} {
		core.Connect("m_axis_"+signal, "egress_"+signal)
	}
	user := "egress_tuser"
	if p.Shell.Release {
		user = netlist.Concat("unused_egress_receivers", user)
	}
	core.Connect("m_axis_tuser", user)
	core.Connect("port_ready", repeat(p.Inputs(), "1'b1")).
		Connect("port_start", "packet_start").
		Connect("s_reg_partial", "1'b0")
	prefixed(core, "unused_", "member")
	core.Connect("rank_of_port", ranks)
	for _, name := range []string{"valid", "ready", "write", "addr", "wdata"} {
		core.Connect("s_reg_"+name, "reg_"+name)
	}
	for _, name := range answerSignals {
		core.Connect("m_reg_"+name, "answer_"+name)
	}
	for _, e := range shellEvents {
		core.Connect(e.core, counts[e.core])
	}
	if p.Parent {
		core.Connect("s_axis_up_tuser", "ingress_up_tuser")
	}
	for _, w := range p.verdict() {
		core.Connect(w.name, p.verdictWire(w.name))
	}
	if p.Shell.Release {
		core.Connect("m_axis_tslot", "egress_tslot")
	}
}

// verdictWire names the wire of a verdict's signal in the shell.
func (p *Plan) verdictWire(signal string) string {
	if p.Shell.Release && signal != "verdict_vid" && signal != "verdict_code" {
		return signal
	}
	return "unused_" + signal
}

// howMany returns how many Ethernet ports have an event, and adds the wires for that.
func (p *Plan) howMany(m *netlist.Module, event string) string {
	if p.Ethernet == 1 {
		return "event_" + event
	}
	of := func(port int) string { return widen(netlist.Slice("event_"+event, port, 1), 1, p.eventBits()) }
	sum := of(0)
	for port := 1; port < p.Ethernet; port++ {
		next := fmt.Sprintf("%s_of_%d", event, port+1)
		m.Wire(next, p.eventBits(), "")
		m.Assign(next, sum+" + "+of(port))
		sum = next
	}
	return sum
}
