package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/config"
	"tributary/hwgen/netlist"
)

// none is the bare core: AXI4-Stream ports for each worker, and a register port.
var none = Shell{
	Name:    wire.ShellNone.String(),
	Code:    wire.ShellNone,
	Doc:     "One AXI4-Stream input and output for each worker, and a register port.",
	Down:    "The card drops packets that arrive meanwhile; results and statuses that it has started to send, or that wait in a port's queue, leave completely.",
	modules: noneModules,
}

const (
	// queueSlack is the number of beats that a port's queue holds besides a packet, so that
	// packets follow one another without a bubble. It covers the cycles from the start of a
	// packet to its first beat, and those from a beat that leaves to the room it frees.
	queueSlack = 12

	// queuePacketBits is log2 of the packets that a port's queue holds: enough for packets
	// of one beat without a bubble, with the same slack.
	queuePacketBits = 4

	// queueFree is the depth of an FPGA's block RAM at its widest. A shallower queue saves
	// nothing.
	queueFree = 512

	// queueLatency is the number of cycles that an empty queue adds.
	queueLatency = 1
)

// queueDepthBits returns log2 of the beats in a port's queue: room for the largest packet and the
// slack and, where it is free, for as many of the largest packets as the queue counts.
func (p *Plan) queueDepthBits() int {
	return indexWidth(max(p.Beats+queueSlack, min(p.Beats<<queuePacketBits, queueFree)))
}

// noneHeaderBits is the width of tuser at a port's output: the header with
// mask.
const noneHeaderBits = 8 * wire.MaskHeaderBytes

// queuedHeaderBits is the width of a header in a port's queue: without the mask's bits of ports that
// the card lacks, unless they are global ranks.
func (p *Plan) queuedHeaderBits() int {
	if p.Parent {
		return noneHeaderBits
	}
	return noneHeaderBits - 64 + p.Workers
}

// noneModules builds agg_top: the core, and a queue behind each output.
func noneModules(p *Plan) []*netlist.Module {
	m := netlist.New("agg_top", fmt.Sprintf(`The card with bare AXI4-Stream ports: %d ports, %d lanes.

s_axis_p0..%d -> core -> a queue per port -> m_axis_p0..%d

tuser is the header, byte k in bits 8k+7..8k. Inputs: 14 bytes, valid on a packet's first beat;
bit 112 marks a damaged payload, on the last beat. Outputs: 22 bytes, valid on every beat.
tkeep is all ones in a beat of a payload; a packet without payload is one beat with tkeep = 0.

A port that accepts no packets does not delay other ports. link_up is synchronous to clk. While
it is low, and until its jobs have drained, the card accepts no register access and drops
incoming packets. An access under way is answered, and packets in a queue leave completely.
Latency from the last contribution's last beat to the result's first: %d cycles. rst is
synchronous. beat_strobe is high in each cycle in which a beat enters the lanes.`,
		p.Workers, p.Lanes, p.Workers-1, p.Workers-1, p.PortLatency))
	if p.Parent {
		m.Doc += noneUpDoc
	}
	p.nonePorts(m)
	p.noneCore(m)
	p.noneQueues(m)
	return []*netlist.Module{m}
}

func (p *Plan) nonePorts(m *netlist.Module) {
	m.Input("clk", 1)
	m.Input("rst", 1)
	m.Input("link_up", 1)
	for port := range p.Inputs() {
		m.PortComment(p.portTitle(port))
		m.Input(p.axis("s", port, "tdata"), p.BeatBits)
		m.Input(p.axis("s", port, "tkeep"), p.KeepBits)
		m.Input(p.axis("s", port, "tvalid"), 1)
		m.Output(p.axis("s", port, "tready"), 1)
		m.Input(p.axis("s", port, "tlast"), 1)
		m.Input(p.axis("s", port, "tuser"), p.portHeaderBits(port))
		m.Output(p.axis("m", port, "tdata"), p.ResultBeatBits)
		m.Output(p.axis("m", port, "tkeep"), p.ResultKeepBits)
		m.Output(p.axis("m", port, "tvalid"), 1)
		m.Input(p.axis("m", port, "tready"), 1)
		m.Output(p.axis("m", port, "tlast"), 1)
		m.Output(p.axis("m", port, "tuser"), noneHeaderBits)
	}
	if p.RegPort == config.RegPortAXIL {
		axilPorts(m)
	} else {
		registerPorts(m)
	}
	p.verdictPorts(m)
	m.PortComment("A beat enters the lanes")
	m.Output("beat_strobe", 1)
}

func (p *Plan) noneCore(m *netlist.Module) {
	includeHeader(m)
	m.Wire("down", 1, "the link is down, or its jobs have not drained")
	m.Wire("hold", 1, "the core ends a job or sets one up")
	m.Wire("unused_unjudged", 1, "workers may send at any time")
	m.Wire("out_tdata", p.ResultBeatBits, "")
	m.Wire("out_tkeep", p.ResultKeepBits, "")
	m.Wire("unused_tvalid", 1, "out_tdest has it")
	m.Wire("out_tlast", 1, "")
	m.Wire("out_tuser", 8*wire.MaxHeaderBytes, "")
	m.Wire("out_tdest", p.Inputs(), "ports that the beat is for; 0: there is none")
	m.Wire("out_tpayload", 1, "the beat has payload: all bytes")
	m.Wire("port_ready", p.Inputs(), "the port's queue has room for a packet")
	m.Wire("port_start", p.Inputs(), "a packet starts for the port")
	m.Wire("unused_member", p.Workers*p.Jobs, "each port is a link of its own")
	m.Wire("unused_rank_of_port", 8*p.Workers*p.Jobs, "")
	unusedNetwork(m)
	for _, s := range p.releaseOutputs() {
		m.Wire("unused_"+s.name, s.width, "for cards under RoCE")
	}

	m.Instance("agg_link_session", "u_session", "").
		Connect("busy", "hold")

	p.noneRegisters(m)

	core := m.Instance("agg_core", "u_core", "").
		Connect("link_down", "down").
		Connect("unjudged", "unused_unjudged")
	if p.RegPort == config.RegPortBus {
		core.Connect("s_reg_valid", "s_reg_valid && !down").Connect("s_reg_ready", "reg_ready").
			Connect("s_reg_partial", "1'b0")
	} else {
		for _, name := range accessSignals {
			core.Connect("s_reg_"+name, "reg_"+name)
		}
		for _, name := range answerSignals {
			core.Connect("m_reg_"+name, "answer_"+name)
		}
	}
	for _, signal := range []string{"tdata", "tkeep", "tlast", "tuser", "tdest"} {
		core.Connect("m_axis_"+signal, "out_"+signal)
	}
	for _, signal := range []string{"tdata", "tkeep", "tvalid", "tready", "tlast"} {
		core.Connect("s_axis_"+signal, p.eachAxis("s", signal))
	}
	core.Connect("s_axis_tuser", join(p.Workers, func(port int) string { return p.axis("s", port, "tuser") }))
	core.Connect("m_axis_tvalid", "unused_tvalid").Connect("m_axis_tready", "1'b1")
	prefixed(core, "unused_", "member", "rank_of_port")
	for _, e := range shellEvents {
		core.Connect(e.core, "1'b0")
	}
	p.withoutNetwork(core)
	for _, s := range p.releaseOutputs() {
		core.Connect(s.name, "unused_"+s.name)
	}

	header := p.queuedHeaderBits()
	m.Wire("unused_fields", 8*wire.MaxHeaderBytes-header, "the mask's bits of ports that the card lacks, and receivers")
	m.Assign("unused_fields", netlist.Slice("out_tuser", header, 8*wire.MaxHeaderBytes-header))
	m.Assign("out_tpayload", "|out_tkeep")
}

// eachAxis concatenates a signal of the AXI4-Streams of all ports.
func (p *Plan) eachAxis(side, signal string) string {
	return join(p.Inputs(), func(port int) string { return p.axis(side, port, signal) })
}

// axis names a signal of a port's AXI4-Stream, also of the up port.
func (p *Plan) axis(side string, port int, signal string) string {
	if port == p.Workers {
		return side + "_axis_up_" + signal
	}
	return axis(side, port, signal)
}

// portTitle describes a port above its signals.
func (p *Plan) portTitle(port int) string {
	if port == p.Workers {
		return "Up port, for the parent"
	}
	return fmt.Sprintf("Port %d", port)
}

// portHeaderBits is the width of tuser at a port's input.
func (p *Plan) portHeaderBits(port int) int {
	if port == p.Workers {
		return upHeaderBits
	}
	return coreHeaderBits
}

// noneUpDoc continues the description of agg_top.
const noneUpDoc = `

The up port is one more port, for the parent in a tree of cards. Its input takes results, replays and
statuses: tuser has 22 bytes of header, and bit 176 marks a damaged payload. Its output sends data and
finishes; their headers have no mask.`

// noneRegisters adds the card's register port in front of the core's. While the link is down, no
// access passes.
func (p *Plan) noneRegisters(m *netlist.Module) {
	m.Wire("reg_ready", 1, "the core can take a register access")
	if p.RegPort == config.RegPortBus {
		m.Assign("s_reg_ready", "reg_ready && !down")
		return
	}
	m.Wire("reg_valid", 1, "")
	m.Wire("reg_write", 1, "")
	m.Wire("reg_addr", 32, "")
	m.Wire("reg_wdata", 64, "")
	m.Wire("reg_partial", 1, "a write lacks bytes")
	m.Wire("answer_valid", 1, "")
	m.Wire("answer_ready", 1, "")
	m.Wire("answer_code", 8, "")
	m.Wire("answer_value", 64, "")
	axil := m.Instance("agg_axil", "u_axil", "").Connect("link_down", "down")
	for _, name := range accessSignals {
		axil.Connect("m_reg_"+name, "reg_"+name)
	}
	for _, name := range answerSignals {
		axil.Connect("s_reg_"+name, "answer_"+name)
	}
}

// accessSignals and answerSignals name the signals of a register access and of its answer.
var (
	accessSignals = []string{"valid", "ready", "write", "addr", "wdata", "partial"}
	answerSignals = []string{"valid", "ready", "code", "value"}
)

func (p *Plan) noneQueues(m *netlist.Module) {
	m.Comment("Output queues of the ports, port 0 in the lowest bits of vectors")
	signals := []struct {
		name  string
		width int
	}{
		{"tvalid", 1}, {"tready", 1}, {"tdata", p.ResultBeatBits}, {"tkeep", p.ResultKeepBits}, {"tlast", 1},
		{"tuser", noneHeaderBits},
	}
	for _, s := range signals {
		m.Wire("queue_"+s.name, p.Inputs()*s.width, "")
	}
	depth := p.queueDepthBits()
	header := p.queuedHeaderBits()
	p.memory("output queue, one per port", p.Inputs(), 1<<depth, p.ResultBeatBits+1)
	p.memory("headers in an output queue, one per port", p.Inputs(), 1<<queuePacketBits, header+1)
	of := func(name string, width int) string { return element(name, width, p.Inputs(), "p") }
	loop := m.Loop("g_queue", "p", 0, p.Inputs())
	loop.Wire("header", header, "without bits of the mask that are always zero")
	loop.Assign(of("queue_tuser", noneHeaderBits), widen("header", header, noneHeaderBits))
	q := loop.Instance("agg_port_queue", "u_queue", "").
		Param("BEAT_BITS", fmt.Sprint(p.ResultBeatBits)).
		Param("USER_BITS", fmt.Sprint(header)).
		Param("BEATS", fmt.Sprint(p.Beats)).
		Param("DEPTH_BITS", fmt.Sprint(depth)).
		Param("PACKET_BITS", fmt.Sprint(queuePacketBits)).
		Connect("start", of("port_start", 1)).
		Connect("ready", of("port_ready", 1)).
		Connect("s_axis_tvalid", of("out_tdest", 1)).
		Connect("s_axis_tdata", "out_tdata").
		Connect("s_axis_tpayload", "out_tpayload").
		Connect("s_axis_tlast", "out_tlast").
		Connect("s_axis_tuser", netlist.Slice("out_tuser", 0, header)).
		Connect("m_axis_tuser", "header")
	for _, s := range signals {
		if s.name != "tuser" {
			q.Connect("m_axis_"+s.name, of("queue_"+s.name, s.width))
		}
		if s.name == "tready" {
			m.Assign("queue_tready", p.eachAxis("m", "tready"))
		} else {
			m.Assign(p.eachAxis("m", s.name), "queue_"+s.name)
		}
	}
}
