package plan

import (
	"fmt"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// udp is the shell with Ethernet ports, whose workers are on a network.
var udp = Shell{
	Name:     wire.ShellUDP.String(),
	Code:     wire.ShellUDP,
	Doc:      "Ethernet ports, behind which workers and owner send datagrams over UDP.",
	Down:     "The card has no link that falls; when the owner's lease ends, it drops packets that arrive in the next few cycles.",
	Ethernet: true,
	modules:  udpModules,
}

// largestFrame is the size in bytes of the largest Ethernet frame that the card takes, without FCS.
const largestFrame = 9018

// udpModules builds agg_top: receivers, registers, core and transmitter.
func udpModules(p *Plan) []*netlist.Module {
	m := netlist.New("agg_top", fmt.Sprintf(`The card on Ethernet: %s, %d ports of the core, %d lanes.

eth_rx -> checks -> queue -> sender's address -> beats -> rank's port -> core
core, replies -> datagram, checks -> copy for each address -> frame -> eth_tx

Frames are without FCS, from the destination's MAC address on; byte k of a word is in bits
8k+7..8k, and tkeep is contiguous from bit 0. eth_rx takes every beat; tuser marks a frame that
the MAC found bad, on its last beat. A frame on eth_tx has 60 bytes or more, and no pause inside.
rst is synchronous. beat_strobe is high in each cycle in which a beat enters the lanes,
error_strobe for one cycle for each frame that is dropped because it is damaged or not for this
card.`,
		count(p.Ethernet, "port"), p.Workers, p.Lanes))
	p.udpPorts(m)
	p.udpWires(m)
	p.udpReceiver(m)
	if p.Ethernet > 1 {
		p.udpSwitch(m)
	}
	p.udpNetwork(m)
	p.udpCore(m)
	p.udpTransmitter(m)
	return []*netlist.Module{m}
}

// count writes a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// ethernet names a signal of an Ethernet port's stream; side is "rx" or "tx".
func ethernet(side string, port int, signal string) string {
	return fmt.Sprintf("eth_%s_p%d_%s", side, port, signal)
}

// eachEthernet concatenates a signal of all Ethernet ports.
func (p *Plan) eachEthernet(side, signal string) string {
	return join(p.Ethernet, func(port int) string { return ethernet(side, port, signal) })
}

// perEthernet returns where to add what each Ethernet port has: in a loop, or in the module if there
// is only one port.
func (p *Plan) perEthernet(m *netlist.Module, loop string) *netlist.Body {
	if p.Ethernet == 1 {
		return m.Body
	}
	return m.Loop(loop, "e", 0, p.Ethernet).Body
}

// ofEthernet selects the element of a vector for an Ethernet port, in such a loop.
func (p *Plan) ofEthernet(name string, width int) string {
	return element(name, width, p.Ethernet, "e")
}

func (p *Plan) udpPorts(m *netlist.Module) {
	m.Input("clk", 1)
	m.Input("rst", 1)
	for port := range p.Ethernet {
		m.PortComment(fmt.Sprintf("Ethernet port %d", port))
		m.Input(ethernet("rx", port, "tdata"), p.Link)
		m.Input(ethernet("rx", port, "tkeep"), p.Link/8)
		m.Input(ethernet("rx", port, "tvalid"), 1)
		m.Input(ethernet("rx", port, "tlast"), 1)
		m.Input(ethernet("rx", port, "tuser"), 1)
		m.Output(ethernet("tx", port, "tdata"), p.Link)
		m.Output(ethernet("tx", port, "tkeep"), p.Link/8)
		m.Output(ethernet("tx", port, "tvalid"), 1)
		m.Input(ethernet("tx", port, "tready"), 1)
		m.Output(ethernet("tx", port, "tlast"), 1)
	}
	m.PortComment("Strobes for counters and LEDs")
	m.Output("beat_strobe", 1)
	m.Output("error_strobe", 1)
}

// udpWires declares what passes between the parts of the shell. Vectors have Ethernet port 0 in the
// lowest bits.
func (p *Plan) udpWires(m *netlist.Module) {
	includeHeader(m)
	m.Comment("Ethernet ports, port 0 in the lowest bits of vectors")
	for _, signal := range p.frameSignals() {
		m.Wire("rx_"+signal.name, signal.width*p.Ethernet, "")
		m.Assign("rx_"+signal.name, p.eachEthernet("rx", signal.name))
	}
	m.Wire("received_valid", p.Ethernet, "a verdict on a frame")
	m.Wire("received_kind", 3*p.Ethernet, "")
	m.Wire("ethernet_number", 8*p.Ethernet, "")
	m.Assign("ethernet_number", join(p.Ethernet, func(port int) string { return fmt.Sprintf("8'd%d", port) }))

	m.Comment("Answers to ARP and echo requests")
	for _, signal := range p.streamSignals() {
		m.Wire("answers_"+signal.name, signal.width*p.Ethernet, "")
	}

	m.Comment("Registers, addresses and what they hold up")
	for _, w := range p.networkWires() {
		m.Wire(w.name, w.width, w.doc)
	}
	m.Wire("hold", 1, "the core ends a job or sets one up")

	m.Comment("Contributions, at the core's ports")
	for _, signal := range p.beatSignals() {
		m.Wire("ingress_"+signal.name, signal.width*p.ingressPorts(signal), "")
	}
	p.udpUpWires(m)
	m.Wire("check_busy", p.Ethernet, "")
	m.Wire("pack_busy", p.Ethernet, "")
	m.Wire("unjudged", 1, "packets wait in the core for the commit")

	m.Comment("The core's packets")
	p.packetWires(m, "egress", p.ResultBeatBits, p.egressBits())
	if rest := 8*wire.MaxHeaderBytes - p.egressBits(); rest > 0 {
		m.Wire("unused_egress_receivers", rest, "ranks")
	}
	m.Wire("egress_tdest", p.Inputs(), "")
	m.Wire("packet_start", p.Inputs(), "ports for which the core begins a packet")
	for _, w := range p.verdict() {
		m.Wire(p.verdictWire(w.name), w.width, "")
	}

	m.Comment("Events of each Ethernet port")
	for _, e := range udpEvents {
		m.Wire("event_"+e.name, e.width*p.Ethernet, e.doc)
	}
	m.Assign("packets_busy", "|{check_busy, pack_busy, unjudged}")
	m.Assign("packet_started", "|packet_start")
	dropped := []string{"event_answer_lost", "event_accesses_full", "event_queue_full"}
	if p.Ethernet > 1 || p.Shell.Release {
		dropped = append(dropped, "event_unpassed")
		m.Wire("event_unpassed", p.Ethernet, "a frame for another "+map[bool]string{true: "port", false: "station"}[p.Ethernet > 1]+" is dropped")
	}
	if p.Shell.Release {
		m.Wire("unused_behind", p.Ethernet*p.Jobs*p.Workers, "connections leave where their receivers are")
	} else if p.Ethernet > 1 {
		m.Wire("behind", p.Ethernet*p.Jobs*p.Workers, "ports of the core behind each Ethernet port, for each job")
	} else {
		m.Wire("unused_behind", p.Jobs*p.Workers, "all are behind one port")
	}
	m.Assign("dropped", netlist.Concat(dropped...))
	if !p.Shell.Release { // its packets can be dropped, too
		m.Assign("error_strobe", "|drop_valid")
	}
}

// egressBits is the width of the header of the core's packets that the shell uses: connections are told by
// their ports, not by ranks.
func (p *Plan) egressBits() int {
	if p.Shell.Release {
		return 8 * wire.MaskHeaderBytes
	}
	return 8 * wire.MaxHeaderBytes
}

// frameSignals lists the signals of a received frame's stream.
func (p *Plan) frameSignals() []jobWire {
	return []jobWire{{"tdata", p.Link, ""}, {"tkeep", p.Link / 8, ""}, {"tvalid", 1, ""}, {"tlast", 1, ""}, {"tuser", 1, ""}}
}

// accessFields lists the fields of a register access with its sender.
var accessFields = []jobWire{
	{"write", 1, ""}, {"addr", 32, ""}, {"tag", 16, ""}, {"wdata", 64, ""},
	{"mac", 48, ""}, {"ip", 32, ""}, {"port", 16, ""}, {"ethernet", 8, ""},
}

// udpEvents lists the events of an Ethernet port.
var udpEvents = []jobWire{
	{"frame", 1, "a datagram whose checks hold"},
	{"bad_version", 1, ""},
	{"bad_kind", 1, ""},
	{"bad_length", 1, ""},
	{"queue_full", 1, "a packet is dropped"},
	{"accesses_full", 1, "an access is dropped"},
	{"answer_lost", 1, "an ARP or echo request is dropped"},
}
