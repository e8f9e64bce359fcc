package plan

import (
	"fmt"
	"math/bits"

	"tributary/driver/wire"
	"tributary/hwgen/netlist"
)

// roce is the shell with Ethernet ports, whose workers have connections of RoCEv2 to one another.
var roce = Shell{
	Name:     wire.ShellRoCE.String(),
	Code:     wire.ShellRoCE,
	Doc:      "Ethernet ports, through which connections of RoCEv2 pass; their payloads become sums.",
	Down:     "The card has no link that falls; when the owner's lease ends, it drops packets that arrive in the next few cycles.",
	Ethernet: true,
	Release:  true,
	modules:  roceModules,
}

// headerRecordBits is the width of a header in agg_roce_headers: its part of an ICRC, a code of its size, and
// up to 74 bytes.
const headerRecordBits = 32 + 2 + 8*74

// The kinds of a frame by agg_eth_judge and agg_roce_judge.
const (
	kindIgnored = 5 // for the card, and without effect

	roceNone    = 0 // of no registered connection
	roceDropped = 2
)

// roceModules builds agg_top: receivers, registers, connections, core and transmitters.
func roceModules(p *Plan) []*netlist.Module {
	others := "All other frames pass."
	if p.Ethernet == 1 {
		others = "Frames for neighbours pass."
	}
	m := netlist.New("agg_top", fmt.Sprintf(`The card under RoCEv2: %s, %d ports of the core, %d lanes.

eth_rx -> packets of registered connections -> queue -> header and payload -> core
core -> ICRC of the payload -> header of each connection -> frame -> eth_tx

Registers are accessed over UDP, as on a card of shell udp.
%s

Frames are without FCS, from the destination's MAC address on; byte k of a word is in bits
8k+7..8k, and tkeep is contiguous from bit 0. eth_rx takes every beat; tuser marks a frame that
the MAC found bad, on its last beat. A frame on eth_tx has no pause inside. rst is synchronous.
beat_strobe is high in each cycle in which a beat enters the lanes, error_strobe for one cycle for
each frame that is dropped because it is damaged or not for this card.`,
		count(p.Ethernet, "port"), p.Workers, p.Lanes, others))
	p.udpPorts(m)
	p.udpWires(m)
	p.roceWires(m)
	p.roceReceiver(m)
	if p.Ethernet > 1 {
		p.udpSwitch(m)
	}
	p.roceNetwork(m)
	p.udpCore(m)
	p.roceTransmitter(m)
	return []*netlist.Module{m}
}

// tagBits is the width of what tells headers apart: job, epoch and VID.
func (p *Plan) tagBits() int { return indexWidth(p.Jobs) + 16 + 32 }

// placeBits is the width of a header's place while its packet has no verdict.
func (p *Plan) placeBits() int { return 3 + bits.Len(uint(p.Ethernet-1)) }

// connectionBits is the width of agg_roce_receive's descriptor.
func (p *Plan) connectionBits() int { return 671 + indexWidth(p.Jobs) + indexWidth(p.Workers) }

// connectionWires lists the wires of a lookup among the connections, of which each Ethernet port has one.
func (p *Plan) connectionWires() []jobWire {
	return []jobWire{
		{"lookup_ip", 32, ""}, {"lookup_qpn", 24, ""},
		{"found", 1, "two cycles later"}, {"found_ip", 1, "a receiver has this address"},
		{"found_job", indexWidth(p.Jobs), ""}, {"found_port", indexWidth(p.Workers), ""},
		{"found_source", 32, "the member's address"}, {"found_ethernet", 8, ""},
		{"found_psn", 24, "the first"}, {"found_mtu", 3, ""}, {"found_epoch", 16, ""},
	}
}

// coreJobs lists the core's outputs that a shell with connections uses besides.
func (p *Plan) coreJobs() []jobWire {
	return []jobWire{
		{"job_on", p.Jobs, "jobs that are set up"},
		{"job_epochs", 16 * p.Jobs, ""},
	}
}

// roceWires declares what passes between the parts of the shell, besides what shell udp has.
func (p *Plan) roceWires(m *netlist.Module) {
	entries := p.Jobs * p.Workers
	m.Comment("Connections, Ethernet port 0 in the lowest bits")
	for _, w := range p.connectionWires() {
		m.Wire(w.name, w.width*p.Ethernet, w.doc)
	}
	m.Wire("receivers", indexWidth(p.Workers)*entries, "the receiver's port of each connection, job 0 lowest")
	if p.Ethernet > 1 {
		m.Wire("leaves_at", entries*p.Ethernet, "connections whose receiver is behind each Ethernet port")
	} else {
		m.Wire("unused_leaves_at", entries, "all are behind one port")
	}
	m.Wire("roce_dropped", p.Ethernet, "a packet of a connection")
	m.Wire("roce_reason", 3*p.Ethernet, "")
	m.Wire("relayed", p.Ethernet, "")
	neighbours, neighbour := p.neighbours()
	m.Wire(neighbour+"_ip", 32*max(1, neighbours), "")
	m.Wire(neighbour+"_mac", 48*max(1, neighbours), "")
	m.Wire("reply_tready", p.Ethernet, "")
	for _, w := range p.coreJobs() {
		m.Wire(w.name, w.width, w.doc)
	}
	m.Wire("rank_of_port", 8*entries, "")
	m.Wire("released_early", 1, "a sum leaves before the one that it follows")
	m.Wire("egress_tslot", indexWidth(p.Slots), "")
	m.Assign("error_strobe", "|{drop_valid, roce_dropped}")

	m.Comment("Headers of connections")
	m.Wire("newest_vid", 32*p.Jobs, "")
	for _, w := range []jobWire{
		{"record_valid", 1, "a packet goes to the core"}, {"record_ready", 1, ""}, {"record_place", p.placeBits(), ""},
		{"record", p.tagBits() + headerRecordBits, ""},
		{"read_valid", 1, "a header is wanted"}, {"read_ready", 1, ""}, {"read_port", indexWidth(p.Workers), ""},
		{"read_slot", indexWidth(p.Slots), ""}, {"read_done", 1, ""},
	} {
		m.Wire(w.name, w.width*p.Ethernet, w.doc)
	}
	m.Wire("read_tag", p.tagBits(), "")
	m.Wire("read_record", headerRecordBits, "")
}
