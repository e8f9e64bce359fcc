package plan

import (
	"fmt"

	"tributary/hwgen/netlist"
)

// Parents of a card with shell udp: what takes the parent's packets from the Ethernet ports to the core's
// up port, and the core's packets for it to an Ethernet port. The functions here do nothing for a card
// without an up port, or are not called.

// upDescriptorBits returns the width of agg_datagram_accept's second descriptor: whether it is the
// parent's packet and its last word is brief, the job, and the mask.
func (p *Plan) upDescriptorBits() int { return 2 + indexWidth(p.Jobs) + 64 }

// upDescriptor returns the second descriptor in a wire with both.
func (p *Plan) upDescriptor(wire string) string {
	return netlist.Slice(wire, descriptorBits, p.upDescriptorBits())
}

// memberDest returns the ports of members in a destination.
func (p *Plan) memberDest(dest string) string {
	if p.Parent {
		return netlist.Slice(dest, 0, p.Workers)
	}
	return dest
}

// upKeys lists the wires of a lookup in agg_parent_table, of which each Ethernet port has one.
func (p *Plan) upKeys() []jobWire {
	job := indexWidth(p.Jobs)
	return []jobWire{
		{"parent_en", 1, ""}, {"parent_job", job, ""}, {"parent_valid", 1, "two enabled cycles later"},
		{"parent_ip", 32, ""}, {"parent_port", 16, ""}, {"parent_ethernet", 8, ""},
		{"up_en", 1, ""}, {"up_job", job, ""}, {"up_mac", 48, "two enabled cycles later"},
		{"up_ip", 32, ""}, {"up_udp_port", 16, ""}, {"up_source", 16, "the upward UDP port"},
	}
}

// ingressPorts returns the ports of the core whose beats have a signal: the header at the up port has
// another width.
func (p *Plan) ingressPorts(signal jobWire) int {
	if signal.name == "tuser" {
		return p.Workers
	}
	return p.Inputs()
}

// udpUpWires declares what passes between the parts of the shell.
func (p *Plan) udpUpWires(m *netlist.Module) {
	if !p.Parent {
		return
	}
	m.Wire("ingress_up_tuser", upHeaderBits, "")

	m.Comment("Parents: addresses, and upward UDP ports of jobs")
	for _, list := range [][]jobWire{p.upNetworkInputs(), p.upNetworkOutputs()} {
		for _, w := range list {
			m.Wire(w.name, w.width, w.doc)
		}
	}
	for _, w := range p.upKeys() {
		m.Wire(w.name, w.width*p.Ethernet, w.doc)
	}
	m.Wire("parent_write", 1, "to PARENT_ADDRESS or PARENT_MAC")
	m.Wire("parent_value", 64, "")
	m.Wire("parent_receives", 1, "entries for received packets change")
	m.Wire("parent_sends", 1, "those for packets that leave do")
	m.Wire("parent_partial", 1, "the entries of the commit's job are not whole")
	if p.Ethernet > 1 {
		m.Wire("above", p.Ethernet*p.Jobs, "jobs whose parent is behind each Ethernet port")
	} else {
		m.Wire("unused_above", p.Jobs, "all parents are behind one port")
	}
}

// parentTable adds agg_parent_table, and records its memories.
func (p *Plan) parentTable(m *netlist.Module) {
	if !p.Parent {
		return
	}
	jobs := 1 << indexWidth(p.Jobs)
	p.memory("addresses of parents, for registers", 1, jobs, 104)
	p.memory("addresses of parents, for received packets", p.Ethernet, jobs, 56)
	p.memory("addresses of parents, for packets", p.Ethernet, jobs, 112)
	i := m.Instance("agg_parent_table", "u_parent_table", "").
		Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Param("ETHERNET", fmt.Sprint(p.Ethernet)).
		Connect("clear", "table_clear").
		Connect("reg_write", "parent_write").
		Connect("reg_mac", "table_mac").
		Connect("reg_wdata", "access_wdata").
		Connect("reg_value", "parent_value").
		Connect("receives", "parent_receives").
		Connect("sends", "parent_sends").
		Connect("partial", "parent_partial")
	if p.Ethernet == 1 {
		i.Connect("above", "unused_above")
	}
}

// upReceiverWires declares what an Ethernet port's receiver has of the parent's packets.
func (p *Plan) upReceiverWires(b *netlist.Body) {
	if p.Parent {
		b.Wire("received_up", 1, "for the upward UDP port of a job")
		b.Wire("received_up_job", indexWidth(p.Jobs), "")
		b.Wire("checked_mask", 64, "")
	}
}

// receiveUp lets the receiver of frames know upward UDP ports.
func (p *Plan) receiveUp(receive *netlist.Instance) {
	if !p.Parent {
		return
	}
	receive.Param("JOBS", fmt.Sprint(p.Jobs)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Connect("m_verdict_up", "received_up").
		Connect("m_verdict_up_job", "received_up_job")
}

// acceptUp connects the checks of datagrams with the verdict on upward UDP ports.
func (p *Plan) acceptUp(accept *netlist.Instance) {
	if p.Parent {
		accept.Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
			Connect("s_verdict_up", "received_up").
			Connect("s_verdict_up_job", "received_up_job").
			Connect("m_verdict_up_descriptor", p.upDescriptor("accepted_descriptor"))
	}
}

// unwrapUp takes mask and receivers off the parent's packets. It returns the prefix of the signals of
// packets for agg_member_check.
func (p *Plan) unwrapUp(b *netlist.Body) string {
	if !p.Parent {
		return "queued_"
	}
	signals := p.queuedSignals()[:5] // without descriptors
	for _, s := range signals {
		b.Wire("unwrapped_"+s.name, s.width, "")
	}
	i := b.Instance("agg_up_unwrap", "u_unwrap", "").
		Param("BYTES", fmt.Sprint(p.Link/8)).
		Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Connect("s_axis_tup", p.upDescriptor("queued_tuser"))
	for _, s := range signals {
		i.Connect("s_axis_"+s.name, "queued_"+s.name).Connect("m_axis_"+s.name, "unwrapped_"+s.name)
	}
	return "unwrapped_"
}

// checkUp connects agg_member_check with the parents' addresses.
func (p *Plan) checkUp(b *netlist.Body, check *netlist.Instance) {
	if !p.Parent {
		return
	}
	check.Param("JOB_BITS", fmt.Sprint(indexWidth(p.Jobs))).
		Connect("s_axis_tup", p.upDescriptor("queued_tuser")).
		Connect("m_axis_tup", netlist.Slice("checked_dest", p.Workers, 1)).
		Connect("m_axis_tmask", "checked_mask").
		Connect("event_up_dropped", p.ofEthernet("up_lost", 1))
	b.Assign(p.ofEthernet("parent_en", 1), p.ofEthernet("from_en", 1))
	for _, w := range p.upKeys()[1:6] {
		check.Connect(w.name, p.ofEthernet(w.name, w.width))
	}
}

// upHeader assigns the header at the up port from that of a beat and the mask beside it.
func (p *Plan) upHeader(m *netlist.Module, user, mask string) {
	if p.Parent {
		m.Assign("ingress_up_tuser", netlist.Concat(netlist.Slice(user, coreHeaderBits-1, 1), mask,
			netlist.Slice(user, 0, coreHeaderBits-1)))
	}
}

// crossUp brings beats from several Ethernet ports to the up port.
func (p *Plan) crossUp(m *netlist.Module) {
	if !p.Parent {
		return
	}
	// A word has a beat, its mask and header, and whether it has bytes.
	width := p.BeatBits + coreHeaderBits + 64 + 1
	bytes := (width + 7) / 8
	m.Wire("up_crossing_tdata", 8*bytes*p.Ethernet, "for the up port: beats with header and mask")
	m.Wire("up_crossing_tready", p.Ethernet, "")
	m.Wire("up_word", 8*bytes, "")
	m.Wire("unused_up_tkeep", bytes, "")
	m.Assign("up_crossing_tdata", join(p.Ethernet, func(e int) string {
		return widen(netlist.Concat(
			"&"+netlist.Slice("beat_tkeep", e*p.KeepBits, p.KeepBits), netlist.Slice("beat_tmask", e*64, 64),
			netlist.Slice("beat_tuser", e*coreHeaderBits, coreHeaderBits), netlist.Slice("beat_tdata", e*p.BeatBits, p.BeatBits)),
			width, 8*bytes)
	}))
	up := func(name string, width int) string { return netlist.Slice(name, p.Workers*width, width) }
	m.Instance("agg_eth_merge", "u_cross_up", "").
		Param("STREAMS", fmt.Sprint(p.Ethernet)).
		Param("BYTES", fmt.Sprint(bytes)).
		Connect("s_axis_tdata", "up_crossing_tdata").
		Connect("s_axis_tkeep", fmt.Sprintf("{%d{1'b0}}", bytes*p.Ethernet)).
		Connect("s_axis_tvalid", join(p.Ethernet, func(e int) string {
			return fmt.Sprintf("beat_tvalid[%d] && beat_tdest[%d]", e, e*p.Inputs()+p.Workers)
		})).
		Connect("s_axis_tready", "up_crossing_tready").
		Connect("s_axis_tlast", "beat_tlast").
		Connect("m_axis_tdata", "up_word").
		Connect("m_axis_tkeep", "unused_up_tkeep").
		Connect("m_axis_tvalid", up("ingress_tvalid", 1)).
		Connect("m_axis_tready", up("ingress_tready", 1)).
		Connect("m_axis_tlast", up("ingress_tlast", 1))
	if padding := 8*bytes - width; padding > 0 {
		m.Wire("unused_up_padding", padding, "")
		m.Assign("unused_up_padding", netlist.Slice("up_word", width, padding))
	}
	m.Wire("up_beat_tuser", coreHeaderBits, "")
	m.Assign("up_beat_tuser", netlist.Slice("up_word", p.BeatBits, coreHeaderBits))
	m.Assign(up("ingress_tdata", p.BeatBits), netlist.Slice("up_word", 0, p.BeatBits))
	m.Assign(up("ingress_tkeep", p.KeepBits), fmt.Sprintf("{%d{%s}}", p.KeepBits, netlist.Slice("up_word", width-1, 1)))
	p.upHeader(m, "up_beat_tuser", netlist.Slice("up_word", p.BeatBits+coreHeaderBits, 64))
}

// behindWithParents returns the ports of the core behind each Ethernet port, for each job: the member
// ports, and the up port if the job's parent is there.
func (p *Plan) behindWithParents() string {
	return join(p.Ethernet*p.Jobs, func(i int) string {
		return netlist.Concat(netlist.Slice("above", i, 1), netlist.Slice("behind", i*p.Workers, p.Workers))
	})
}

// upCopyFields lists what a copy has besides, for the parent. copy_source is there with the address.
func (p *Plan) upCopyFields() []jobWire {
	if !p.Parent {
		return nil
	}
	return []jobWire{{"up", 1, "it is for the parent"}, {"source", 16, "the upward UDP port"}}
}

// addressUp returns what agg_copy_address takes from an address table: the parent's address for a copy
// that is for the parent, otherwise a member's.
func (p *Plan) addressUp(b *netlist.Body) map[string]string {
	of := map[string]string{}
	for _, w := range p.lookups("to_") {
		of[w.name] = p.ofEthernet(w.name, w.width)
	}
	if !p.Parent {
		return of
	}
	job := indexWidth(p.Jobs)
	b.Assign("copy_up", netlist.Slice("copy_dest", p.Workers, 1))
	b.Assign("copy_source", p.ofEthernet("up_source", 16))
	b.Assign(p.ofEthernet("up_en", 1), of["to_en"])
	b.Assign(p.ofEthernet("up_job", job), fmt.Sprintf("copy_header[HDR_JOB_LSB+:%d]", job))
	for _, w := range []jobWire{{"mac", 48, ""}, {"ip", 32, ""}, {"udp_port", 16, ""}} {
		of["to_"+w.name] = fmt.Sprintf("copy_up ? %s : %s", p.ofEthernet("up_"+w.name, w.width), of["to_"+w.name])
	}
	of["to_same"] = fmt.Sprintf("{copy_up, %s & {%d{!copy_up}}}", of["to_same"], p.Workers)
	if indexWidth(p.Inputs()) > indexWidth(p.Workers) {
		b.Wire("unused_to_port", 1, "only the up port has it")
		of["to_port"] = netlist.Concat("unused_to_port", of["to_port"])
	}
	return of
}
