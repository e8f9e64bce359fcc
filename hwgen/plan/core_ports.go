package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// ports declares the core's ports.
func (b *coreBuilder) ports() {
	m := b.m
	m.Input("clk", 1)
	m.Input("rst", 1)
	m.PortComment("The host's link; work that the last host left behind")
	m.Input("link_down", 1)
	m.Output("hold", 1)
	m.Output("unjudged", 1)
	m.PortComment("In, for each port")
	m.Input("s_axis_tdata", b.Inputs()*b.BeatBits)
	m.Input("s_axis_tkeep", b.Inputs()*b.KeepBits)
	m.Input("s_axis_tvalid", b.Inputs())
	m.Output("s_axis_tready", b.Inputs())
	m.Input("s_axis_tlast", b.Inputs())
	m.Input("s_axis_tuser", b.Workers*coreHeaderBits)
	if b.Parent {
		m.PortComment("At the up port: a header with mask, and in bit 176 the mark of a damaged payload")
		m.Input("s_axis_up_tuser", upHeaderBits)
	}
	m.PortComment("Out, for all ports")
	m.Output("m_axis_tdata", b.ResultBeatBits)
	m.Output("m_axis_tkeep", b.ResultKeepBits)
	m.Output("m_axis_tvalid", 1)
	m.Input("m_axis_tready", 1)
	m.Output("m_axis_tlast", 1)
	m.Output("m_axis_tuser", 8*wire.MaxHeaderBytes)
	m.Output("m_axis_tdest", b.Inputs())
	for _, s := range b.releaseOutputs() {
		m.PortComment(s.doc)
		m.Output(s.name, s.width)
	}
	m.PortComment("Ports with room for a whole packet")
	m.Input("port_ready", b.Inputs())
	m.PortComment("Ports for which a packet starts: its beats come later")
	m.Output("port_start", b.Inputs())
	m.PortComment("The members and their ranks" + b.byJob())
	m.Output("member", b.Workers*b.Jobs)
	m.Output("rank_of_port", 8*b.Workers*b.Jobs)
	if b.Shell.Release {
		m.PortComment("Jobs, for what checks packets of connections" + b.byJob())
		for _, w := range b.coreJobs() {
			m.Output(w.name, w.width)
		}
	}
	registerPorts(m)
	m.PortComment("A write lacks bytes: it is refused")
	m.Input("s_reg_partial", 1)
	m.PortComment("The registers, addresses and owners of a shell on a network")
	for _, s := range b.networkInputs() {
		m.Input(s.name, s.width)
	}
	for _, s := range networkOutputs {
		m.Output(s.name, s.width)
	}
	b.upNetworkPorts()
	m.PortComment("Events of the shell: how many in a cycle")
	for _, e := range shellEvents {
		m.Input(e.core, b.eventWidth(e))
	}
	b.verdictPorts(m)
	m.PortComment("A beat enters the lanes")
	m.Output("beat_strobe", 1)
}

// networkInput is an input of the core that a shell on a network drives.
type networkInput struct {
	name  string
	width int
	tied  string // its value in other shells
}

// networkInputs lists these inputs: what agg_registers must know about owners, and agg_job_checks
// about addresses.
func (p *Plan) networkInputs() []networkInput {
	return []networkInput{
		{"s_reg_stranger", 1, "1'b0"},
		{"s_code_valid", 1, "1'b0"},
		{"s_code", 8, "8'd0"},
		{"clear_staged", 1, "1'b0"},
		{"members_whole", p.Workers, fmt.Sprintf("{%d{1'b1}}", p.Workers)},
		{"members_same", 1, "1'b1"},
	}
}

// releaseOutputs lists the outputs that only a core with agg_release has.
func (p *Plan) releaseOutputs() []jobWire {
	if !p.Release {
		return nil
	}
	return []jobWire{
		{"m_axis_tslot", indexWidth(p.Slots), "The slot of a result; undefined with a status"},
		{"released_early", 1, "A result was picked for a port that misses the one before"},
	}
}

// parentOnNetwork reports whether the parent of the card's tree jobs is on a network.
func (p *Plan) parentOnNetwork() bool { return p.Parent && p.Shell.Ethernet }

// networkOutputs lists the outputs of the core that only a shell on a network uses.
var networkOutputs = []struct {
	name  string
	width int
}{
	{"owned", 1},
	{"job_ports", 64},
	{"clear_counters", 1},
	{"set_up", 1},
}

// unusedNetwork declares the wires that withoutNetwork leaves unused.
func unusedNetwork(m *netlist.Module) {
	for _, s := range networkOutputs {
		m.Wire("unused_"+s.name, s.width, "for cards on a network")
	}
}

// withoutNetwork ties off what only a shell on a network drives or uses.
func (p *Plan) withoutNetwork(core *netlist.Instance) {
	for _, s := range p.networkInputs() {
		core.Connect(s.name, s.tied)
	}
	for _, s := range networkOutputs {
		core.Connect(s.name, "unused_"+s.name)
	}
}

// eventWidth returns the width of an event of the shell: how many of its receivers may have it in one
// cycle.
func (p *Plan) eventWidth(e shellEvent) int {
	if !e.several {
		return 1
	}
	return p.eventBits()
}

// eventBits returns the width of the events that each Ethernet port has.
func (p *Plan) eventBits() int { return indexWidth(p.Ethernet + 1) }

// verdict lists the outputs that report what became of a data packet.
func (p *Plan) verdict() []jobWire {
	return []jobWire{
		{"verdict_valid", 1, ""},
		{"verdict_port", indexWidth(p.Workers), ""},
		{"verdict_slot", indexWidth(p.Slots), ""},
		{"verdict_vid", 32, ""},
		{"verdict_result", 3, ""},
		{"verdict_code", 8, ""},
	}
}

// verdictPorts declares the verdicts, which core and top share.
func (p *Plan) verdictPorts(m *netlist.Module) {
	m.PortComment("What became of a data packet: one event for each that entered, in the order of their port")
	for _, w := range p.verdict() {
		m.Output(w.name, w.width)
	}
}

// registerPorts declares the register bus, which core and top share.
func registerPorts(m *netlist.Module) {
	m.PortComment("Register accesses, one at a time; replies in order")
	m.Input("s_reg_valid", 1)
	m.Output("s_reg_ready", 1)
	m.Input("s_reg_write", 1)
	m.Input("s_reg_addr", 32)
	m.Input("s_reg_wdata", 64)
	m.Output("m_reg_valid", 1)
	m.Input("m_reg_ready", 1)
	m.Output("m_reg_code", 8)
	m.Output("m_reg_value", 64)
}

// axilPorts declares the AXI4-Lite port of a top.
func axilPorts(m *netlist.Module) {
	m.PortComment("Registers, as an AXI4-Lite subordinate")
	m.Input("s_axil_awaddr", 32)
	m.Input("s_axil_awprot", 3)
	m.Input("s_axil_awvalid", 1)
	m.Output("s_axil_awready", 1)
	m.Input("s_axil_wdata", 64)
	m.Input("s_axil_wstrb", 8)
	m.Input("s_axil_wvalid", 1)
	m.Output("s_axil_wready", 1)
	m.Output("s_axil_bresp", 2)
	m.Output("s_axil_bvalid", 1)
	m.Input("s_axil_bready", 1)
	m.Input("s_axil_araddr", 32)
	m.Input("s_axil_arprot", 3)
	m.Input("s_axil_arvalid", 1)
	m.Output("s_axil_arready", 1)
	m.Output("s_axil_rdata", 64)
	m.Output("s_axil_rresp", 2)
	m.Output("s_axil_rvalid", 1)
	m.Input("s_axil_rready", 1)
}

// axis names a signal of a port's AXI4-Stream; side is "s" for input, "m" for
// output.
func axis(side string, port int, signal string) string {
	return fmt.Sprintf("%s_axis_p%d_%s", side, port, signal)
}
